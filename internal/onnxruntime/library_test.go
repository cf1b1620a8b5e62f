//go:build cgo && (linux || darwin)

package onnxruntime

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/npuctl/npuctl/internal/onnxpb"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// library opens ONNX Runtime, or skips the test where there is none.
func library(t testing.TB) *Library {
	t.Helper()
	path, _, err := Find("")
	if err != nil {
		t.Skip("SKIPPED, nothing was tested: ONNX Runtime is not on this machine; bring it by running .ci/fetch-onnxruntime")
	}
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// session loads a model.
func session(t testing.TB, l *Library, model []byte) *Session {
	t.Helper()
	s, err := l.NewSessionFromBytes(model, Options{IntraOpThreads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestOpen(t *testing.T) {
	l := library(t)
	if _, err := apiVersion(l.Version()); err != nil {
		t.Errorf("version %q: %v", l.Version(), err)
	}
	if !filepath.IsAbs(l.Path()) {
		t.Errorf("path %q is not absolute", l.Path())
	}
	t.Logf("ONNX Runtime %s in %s", l.Version(), l.Path())
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	folder := tree(t, "text.so (text)", "empty.so (text)", "truncated.so")
	if err := os.WriteFile(filepath.Join(folder, "empty.so"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ path, want string }{
		{filepath.Join(folder, "gone.so"), "gone.so: no such file or directory"},
		{"gone.so", "gone.so: no such file or directory"}, // never looked for in the system's folders
		{folder, "it is not a file"},
		{filepath.Join(folder, "text.so"), ""},
		{filepath.Join(folder, "empty.so"), ""},
		{filepath.Join(folder, "truncated.so"), ""},
	}
	for _, test := range tests {
		l, err := Open(test.path)
		if err == nil {
			l.Close()
			t.Fatalf("opened %s", test.path)
		}
		if !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "open ONNX Runtime library "+test.path) {
			t.Errorf("%s: error %q, want %q in it", test.path, err, test.want)
		}
	}
	if _, err := Open("gone.so"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is not fs.ErrNotExist", err)
	}
}

func TestOpenOfAnotherLibrary(t *testing.T) {
	libraries, err := filepath.Glob("/lib/*-linux-gnu/libm.so.6")
	if err != nil || len(libraries) == 0 {
		t.Skip("SKIPPED: this machine has no libm.so.6 to mistake for ONNX Runtime; any Debian has one")
	}
	_, err = Open(libraries[0])
	if err == nil || !strings.Contains(err.Error(), "it is a shared library, but not ONNX Runtime: it has no function OrtGetApiBase") {
		t.Errorf("error %v", err)
	}
}

func TestOpenAgainAndAgain(t *testing.T) {
	path := library(t).Path()
	for range 20 {
		l, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		s := session(t, l, identity(t, tensorOf(tensor.Float32)))
		l.Close()
		if _, err := run(t, s, tensor.Scalar(float32(1))); err != nil {
			t.Fatalf("a session outlives its library's Close: %v", err)
		}
		s.Close()
	}
}

func TestClosedThings(t *testing.T) {
	path := library(t).Path()
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s := session(t, l, identity(t, tensorOf(tensor.Float32)))
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := l.NewSessionFromBytes(identity(t, tensorOf(tensor.Float32)), Options{}); !errors.Is(err, ErrClosed) {
		t.Errorf("session of a closed library: %v", err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := run(t, s, tensor.Scalar(float32(1))); !errors.Is(err, ErrClosed) {
		t.Errorf("run of a closed session: %v", err)
	}
	if _, err := l.NewSession("model.onnx", Options{}); !errors.Is(err, ErrClosed) {
		t.Errorf("session of a released library: %v", err)
	}
}

func TestModelsThatFail(t *testing.T) {
	l := library(t)
	x := []*onnxpb.ValueInfoProto{declare("x", tensorOf(tensor.Float32, 2))}
	y := []*onnxpb.ValueInfoProto{declare("y", tensorOf(tensor.Float32, 2))}
	one := func(n *onnxpb.NodeProto) []byte { return oneNode(t, n, x, y) }
	tests := []struct {
		name  string
		model []byte
		code  Code // CodeOK where releases differ
		want  string
	}{
		{"garbage", []byte("not a model at all"), CodeInvalidProtobuf, "protobuf"},
		{"truncated", one(node("Relu", []string{"x"}, []string{"y"}))[:40], CodeInvalidProtobuf, "protobuf"},
		{"unknown operator", one(node("Frobnicate", []string{"x"}, []string{"y"})), CodeInvalidGraph, "Frobnicate"},
		{"custom operator", one(inDomain("org.example", node("Frobnicate", []string{"x"}, []string{"y"}))), CodeFail, "org.example:Frobnicate"},
		{"undefined value", one(node("Relu", []string{"nowhere"}, []string{"y"})), CodeOK, "nowhere"},
		{"no kernel", oneNode(t, node("Relu", []string{"x"}, []string{"y"}),
			[]*onnxpb.ValueInfoProto{declare("x", tensorOf(tensor.BFloat16, 2))},
			[]*onnxpb.ValueInfoProto{declare("y", tensorOf(tensor.BFloat16, 2))}), CodeNotImplemented, "Relu"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, err := l.NewSessionFromBytes(test.model, Options{})
			if err == nil {
				s.Close()
				t.Fatal("it was loaded")
			}
			var failure *Error
			if !errors.As(err, &failure) || test.code != CodeOK && failure.Code != test.code || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %v and %q", err, test.code, test.want)
			}
		})
	}
	if _, err := l.NewSessionFromBytes(nil, Options{}); err == nil {
		t.Error("a model without bytes was loaded")
	}
	missing := filepath.Join(t.TempDir(), "gone.onnx")
	var failure *Error
	if _, err := l.NewSession(missing, Options{}); !errors.As(err, &failure) || failure.Code != CodeNoSuchFile || !strings.Contains(err.Error(), missing) {
		t.Errorf("missing file: %v", err)
	}
}

// ONNX Runtime must not print, whatever happens: what it says is in the errors.
func TestNothingIsPrinted(t *testing.T) {
	library(t)
	if os.Getenv("NPUCTL_TEST_QUIET") != "" {
		t.Skip("this is the inner run")
	}
	command := exec.Command(os.Args[0], "-test.run=^(TestModelsThatFail|TestInputsThatDoNotFit|TestOptions.*|TestOpenSaysWhatIsWrong|TestCancel)$")
	command.Env = append(os.Environ(), "NPUCTL_TEST_QUIET=1")
	var stdout, stderr strings.Builder
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	if errors.Is(err, syscall.ENOEXEC) {
		t.Skip("SKIPPED: the tests run in an emulator and cannot start themselves")
	}
	if err != nil {
		t.Fatalf("%v\n%s%s", err, &stdout, &stderr)
	}
	if !strings.HasPrefix(stdout.String(), "PASS\n") {
		t.Errorf("standard output: %q", &stdout)
	}
	for line := range strings.Lines(stderr.String()) {
		// Some releases greet processors they do not know before anybody can ask
		// them to be quiet.
		if !strings.HasPrefix(line, "onnxruntime cpuid_info warning") {
			t.Errorf("standard error: %q", line)
		}
	}
}
