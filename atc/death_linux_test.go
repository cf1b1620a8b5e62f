package atc

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// deathVariable makes this test program start an atc that never ends, and be killed.
const deathVariable = "NPUCTL_TEST_DEATH"

func init() {
	if os.Getenv(deathVariable) != "parent" {
		return
	}
	run := Run{Toolkit: Toolkit{Program: "/bin/sleep"}, Args: []string{"60"}}
	run.Environment = []string{deathVariable + "=child" + os.Getenv("NPUCTL_TEST_MARK")}
	_, _ = run.Do(context.Background())
	os.Exit(0)
}

// A program that npuctl drives ends with npuctl, even with one that is killed.
func TestRunEndsWithParent(t *testing.T) {
	if _, err := os.Stat("/bin/sleep"); err != nil {
		t.Skip(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	mark := t.TempDir()
	parent := exec.Command(self, "-test.run=^$")
	parent.Env = append(os.Environ(), deathVariable+"=parent", "NPUCTL_TEST_MARK="+mark+t.Name())
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	child := deathVariable + "=child" + mark + t.Name()
	if !within(5*time.Second, func() bool { return lives(child) }) {
		_ = parent.Process.Kill()
		t.Fatal("the program was never seen")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if !within(5*time.Second, func() bool { return !lives(child) }) {
		t.Error("the program lives on")
	}
}

func within(limit time.Duration, holds func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if holds() {
			return true
		}
	}
	return false
}

// lives says whether a program with this entry in its environment runs.
func lives(entry string) bool {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(data, []byte(entry)) {
			continue
		}
		program, err := os.ReadFile(filepath.Join(filepath.Dir(path), "comm"))
		if err == nil && strings.HasPrefix(string(program), "sleep") {
			return true
		}
	}
	return false
}
