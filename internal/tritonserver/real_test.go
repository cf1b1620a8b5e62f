package tritonserver_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/npuctl/npuctl/internal/tritonserver"
	"github.com/npuctl/npuctl/internal/tritonserver/tritontest"
)

// layRepository writes a repository from testdata.
func layRepository(t *testing.T, name string) string {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for _, f := range archive.Files {
		path := filepath.Join(folder, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// The real server's own words on models that load, are refused, kill it and hang it.
func TestLoadEachReal(t *testing.T) {
	server := tritontest.Find(t)
	repository := layRepository(t, "repository.txtar")
	o := tritonserver.Options{StandIns: []string{"npu_ge"}, LoadPatience: 6 * time.Second}
	outcomes, err := server.LoadEach(context.Background(), repository,
		[]string{"fine", "typo", "preferred", "agents", "python", "silent", "nowhere", "人脸", "ensemble"}, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		state tritonserver.State
		cause string
		place string
	}{
		{tritonserver.Ready, "", "0:0"},
		{tritonserver.Refused, `has no field named "dimz"`, "3:62"},
		{tritonserver.Refused, "dynamic batching preferred size must be <= max batch size for preferred", "0:0"},
		{tritonserver.Killed, "died of signal SIGSEGV", "0:0"},
		{tritonserver.Ready, "", "0:0"},
		{tritonserver.Hung, "no answer to the load within 6s", "0:0"},
		{tritonserver.Refused, "unable to find backend library for backend 'absent'", "0:0"},
		{tritonserver.Ready, "", "0:0"},
		{tritonserver.Ready, "", "0:0"},
	}
	for n, o := range outcomes {
		place := fmt.Sprintf("%d:%d", o.Line, o.Column)
		if o.State != want[n].state || !strings.Contains(o.Cause, want[n].cause) || place != want[n].place {
			t.Errorf("%s: %s at %s: %q", o.Model, o.State, place, o.Cause)
		}
		if strings.Contains(o.Cause, repository) {
			t.Errorf("%s: a path of this run is in %q", o.Model, o.Cause)
		}
	}
	if outcomes[6].MissingBackend != "absent" {
		t.Errorf("the missing backend is %q", outcomes[6].MissingBackend)
	}
}

// A Python model runs with the modules of its environment, and nothing of it is left:
// no process, no shared memory, no folder.
func TestStopReal(t *testing.T) {
	s := tritontest.Start(t, layRepository(t, "repository.txtar"), tritonserver.Options{})
	o, err := s.Load(context.Background(), "python")
	if err != nil || o.State != tritonserver.Ready {
		t.Fatalf("%+v, %v", o, err)
	}
	shared := func() []string {
		left, err := filepath.Glob("/dev/shm/" + s.Name() + "*")
		if err != nil {
			t.Fatal(err)
		}
		return left
	}
	if len(shared()) == 0 {
		t.Errorf("no shared memory is called %s: its name has changed", s.Name())
	}
	for _, want := range []string{`"datatype":"FP32","shape":[3],"data":[1.0,2.0,3.0]`} {
		answer := infer(t, s.HTTP, "python", `{"inputs":[{"name":"x","datatype":"FP32","shape":[3],"data":[1,4,9]}]}`)
		if !strings.Contains(answer, want) {
			t.Errorf("the answer is %s", answer)
		}
	}
	s.Stop()
	if left := shared(); len(left) > 0 {
		t.Errorf("shared memory is left: %v", left)
	}
	if _, err := os.Stat(s.Folder()); err == nil {
		t.Errorf("%s is left", s.Folder())
	}
	if _, err := http.Get("http://" + s.HTTP + "/v2/health/live"); err == nil {
		t.Error("it still answers")
	}
}

// The stand-in answers zeros in the shape that the config and the request say.
func TestStandInReal(t *testing.T) {
	s := tritontest.Start(t, layRepository(t, "repository.txtar"), tritonserver.Options{})
	if len(s.StandIns()) == 0 {
		t.Skip("NOT TESTED: the server has npu_ge itself, or there is no C compiler")
	}
	for model, want := range map[string]string{
		"open":  `"datatype":"FP32","shape":[2,3,2],"data":[0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0]`,
		"words": `"datatype":"BYTES","shape":[1,2],"data":["",""]`,
	} {
		if o, err := s.Load(context.Background(), model); err != nil || o.State != tritonserver.Ready {
			t.Fatalf("%s: %+v, %v", model, o, err)
		}
		batch := strings.Count(want, "[2,3,2]") + 1
		values := strings.TrimSuffix(strings.Repeat("1,", 3*batch), ",")
		answer := infer(t, s.HTTP, model, fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"FP32","shape":[%d,3],"data":[%s]}]}`, batch, values))
		if !strings.Contains(answer, want) {
			t.Errorf("%s: the answer is %s", model, answer)
		}
	}
}

func infer(t *testing.T, address, model, request string) string {
	t.Helper()
	response, err := http.Post("http://"+address+"/v2/models/"+model+"/infer", "application/json", strings.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}
