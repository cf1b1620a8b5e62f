//go:build unix

package tritonserver

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// fakeVariable makes the test's own binary a server. Its value says how it behaves.
const fakeVariable = "NPUCTL_TEST_TRITON"

func TestMain(m *testing.M) {
	if mode := os.Getenv(fakeVariable); mode != "" {
		os.Exit(fakeServer(mode))
	}
	os.Exit(m.Run())
}

// fakeServer answers as a Triton server does. What it does to a model goes by the
// model's name: fine, refused, silent (only the answer tells), killer, sleeper, bomb (it
// dies when it is unloaded).
func fakeServer(mode string) int {
	switch mode {
	case "dumb":
		time.Sleep(time.Minute)
	case "broken":
		fmt.Fprintln(os.Stderr, `E1130 00:00:00.000000 1 main.cc:1] "no such repository"`)
		return 3
	}
	arguments := map[string]string{}
	for _, a := range os.Args[1:] {
		name, value, _ := strings.Cut(a, "=")
		arguments[name] = value
	}
	if mode == "taken" {
		marker := arguments["--model-repository"] + "/tried"
		if _, err := os.Stat(marker); err != nil {
			_ = os.WriteFile(marker, nil, 0o644)
			fmt.Fprintln(os.Stderr, `E1130 00:00:00.000000 1 main.cc:1] "failed to bind: Address already in use"`)
			return 1
		}
	}
	health := http.NewServeMux()
	health.HandleFunc("GET /v2/health/live", func(http.ResponseWriter, *http.Request) {})
	go func() { _ = http.ListenAndServe("127.0.0.1:"+arguments["--http-port"], health) }()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	listener, err := net.Listen("tcp", "127.0.0.1:"+arguments["--grpc-port"])
	if err != nil {
		return 1
	}
	return exit((&http.Server{Handler: http.HandlerFunc(fakeCall), Protocols: protocols}).Serve(listener))
}

func exit(error) int { return 1 }

func fakeCall(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	model := ""
	if len(body) > rpcFrame {
		_ = eachField(body[rpcFrame:], func(number protowire.Number, value []byte) error {
			if number == modelNameField {
				model = string(value)
			}
			return nil
		})
	}
	method := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	status, message := "0", ""
	switch method + " " + model {
	case "RepositoryModelLoad refused":
		fmt.Fprintln(os.Stderr, `E1130 00:00:00.000000 1 model.cc:1] "Poll failed for model directory 'refused': dims are missing in `+os.Args[1][len("--model-repository="):]+`/refused"`)
		status, message = "13", "failed to load 'refused', failed to poll from model repository"
	case "RepositoryModelLoad silent":
		status, message = "3", "load failed for model 'silent': version 1 is at UNAVAILABLE state: it is %22odd%22; "
	case "RepositoryModelLoad killer", "RepositoryModelUnload bomb":
		fmt.Fprintln(os.Stderr, "terminate called after throwing an instance of 'std::length_error'")
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "RepositoryModelLoad sleeper":
		<-r.Context().Done()
	}
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status, Grpc-Message")
	if method == "RepositoryIndex" {
		entry := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "fine")
		entry = protowire.AppendString(protowire.AppendTag(entry, 3, protowire.BytesType), "READY")
		answer := protowire.AppendBytes(protowire.AppendTag(nil, indexModelsField, protowire.BytesType), entry)
		_, _ = w.Write(append([]byte{0, 0, 0, 0, byte(len(answer))}, answer...))
	} else {
		_, _ = w.Write(make([]byte, rpcFrame))
	}
	w.Header().Set("Grpc-Status", status)
	w.Header().Set("Grpc-Message", message)
}
