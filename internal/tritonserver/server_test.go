//go:build unix

package tritonserver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/npuctl/npuctl/internal/fault"
)

// fake is an installation of the server in fake_test.go.
func fake(t *testing.T, mode string) (Installation, Options) {
	t.Helper()
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Skip("servers run on Linux")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	return Installation{Program: program, backends: t.TempDir()},
		Options{Environment: []string{fakeVariable + "=" + mode}, LoadPatience: time.Second, StartPatience: 10 * time.Second}
}

// nothingLeft fails when a server left something in the folder for such things.
func nothingLeft(t *testing.T) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Every model is judged, whatever the ones before did to the server.
func TestLoadEach(t *testing.T) {
	server, o := fake(t, "normal")
	var told []string
	outcomes, err := server.LoadEach(context.Background(), t.TempDir(), []string{"killer", "fine", "refused", "sleeper", "silent", "bomb", "fine"}, o,
		func(o Outcome) { told = append(told, o.Model) })
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		state State
		cause string
	}{
		{Killed, "died of signal SIGKILL; terminate called after throwing an instance of 'std::length_error'"},
		{Ready, ""},
		{Refused, "dims are missing in refused"},
		{Hung, "no answer to the load within 1s"},
		{Refused, `it is "odd"`},
		{Killed, "after loading: died of signal SIGKILL; terminate called after throwing an instance of 'std::length_error'"},
		{Ready, ""},
	}
	for n, o := range outcomes {
		if o.State != want[n].state || o.Cause != want[n].cause {
			t.Errorf("%s: %s, %q", o.Model, o.State, o.Cause)
		}
	}
	if len(told) != len(want) {
		t.Errorf("told of %v", told)
	}
	nothingLeft(t)
}

// A port that somebody took in between is no reason to fail.
func TestStartAgain(t *testing.T) {
	server, o := fake(t, "taken")
	s, err := server.Start(context.Background(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	index, err := s.Index(context.Background())
	if err != nil || len(index) != 1 || index[0] != (Entry{Model: "fine", State: "READY"}) {
		t.Errorf("index %v, %v", index, err)
	}
	s.Stop()
	s.Stop() // as good
	nothingLeft(t)
}

// A server that does not start says why, and leaves nothing.
func TestStartFails(t *testing.T) {
	for mode, want := range map[string]string{"broken": "exit status 3: no such repository", "dumb": "did not answer within 300ms"} {
		t.Run(mode, func(t *testing.T) {
			server, o := fake(t, mode)
			if mode == "dumb" {
				o.StartPatience = 300 * time.Millisecond
			}
			_, err := server.Start(context.Background(), t.TempDir(), o)
			if fault.FamilyOf(err) != fault.Program || !strings.Contains(err.Error(), want) {
				t.Errorf("%v", err)
			}
			nothingLeft(t)
		})
	}
}

// Who stops a load stops the server.
func TestCancel(t *testing.T) {
	server, o := fake(t, "normal")
	o.LoadPatience = time.Minute
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(time.Second, cancel)
	start := time.Now()
	outcomes, err := server.LoadEach(ctx, t.TempDir(), []string{"sleeper", "fine"}, o, nil)
	if !errors.Is(err, context.Canceled) || len(outcomes) > 0 || time.Since(start) > 20*time.Second {
		t.Errorf("%v, %v after %s", outcomes, err, time.Since(start))
	}
	nothingLeft(t)
}

// A backend that the server lacks is replaced, one that it has is not.
func TestStandIns(t *testing.T) {
	server, o := fake(t, "normal")
	if err := os.Mkdir(filepath.Join(server.backends, "python"), 0o755); err != nil {
		t.Fatal(err)
	}
	o.StandIns = []string{"python", "npu_ge"}
	s, err := server.Start(context.Background(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	if _, err := findCompiler(); err != nil {
		if len(s.StandIns()) > 0 {
			t.Errorf("made %v without a compiler", s.StandIns())
		}
		t.Skip("NOT TESTED: there is no C compiler")
	}
	library := filepath.Join(s.backendFolder(), "npu_ge", "libtriton_npu_ge.so")
	if got := s.StandIns(); len(got) != 1 || got[0] != "npu_ge" || !isFile(library) {
		t.Errorf("stand-ins %v", got)
	}
}
