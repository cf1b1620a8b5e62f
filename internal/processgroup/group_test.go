//go:build unix

package processgroup_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/npuctl/npuctl/internal/processgroup"
)

// ownerVariable has this test's program start a group and wait to be killed.
const ownerVariable = "NPUCTL_TEST_OWNER"

func TestMain(m *testing.M) {
	if folder := os.Getenv(ownerVariable); folder != "" {
		cmd := family(folder, false)
		processgroup.New(cmd, time.Second)
		if err := cmd.Start(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		_ = cmd.Wait()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// family is a program that starts a child and writes both numbers into a folder. A deaf
// one takes no notice of polite signals.
func family(folder string, deaf bool) *exec.Cmd {
	script := `sleep 60 & echo $$ $! > "$1/new" && mv "$1/new" "$1/pids"; wait; sleep 60`
	if deaf {
		script = "trap '' TERM\n" + script
	}
	return exec.Command("/bin/sh", "-c", script, "family", folder)
}

// members waits for the numbers that a family wrote.
func members(t *testing.T, folder string) (pids []int) {
	t.Helper()
	var data []byte
	await(t, "the family's numbers", func() bool {
		data, _ = os.ReadFile(filepath.Join(folder, "pids"))
		return len(data) > 0
	})
	for _, word := range strings.Fields(string(data)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func await(t *testing.T, what string, isSo func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !isSo(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// runs says whether a process runs: one that has ended and that nobody asked about does not.
func runs(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !os.IsNotExist(err)
	}
	state := bytes.TrimLeft(stat[bytes.LastIndexByte(stat, ')')+1:], " ")
	return len(state) > 0 && state[0] != 'Z'
}

// What a program started ends with it, whether it was asked to or not.
func TestEnd(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		folder := t.TempDir()
		cmd := family(folder, deaf)
		g := processgroup.New(cmd, time.Second)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pids := members(t, folder)
		if !deaf {
			if err := g.Interrupt(); err != nil {
				t.Error(err)
			}
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		g.End(time.Second)
		<-ended
		for _, pid := range pids {
			await(t, fmt.Sprintf("the end of %d", pid), func() bool { return !runs(pid) })
		}
	}
}

// A group whose owner is killed ends by its guard.
func TestOwnerIsKilled(t *testing.T) {
	folder := t.TempDir()
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerVariable+"="+folder)
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	pids := members(t, folder)
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // that it was killed is no news
	for _, pid := range pids {
		await(t, fmt.Sprintf("the end of %d", pid), func() bool { return !runs(pid) })
	}
}

// A program that cannot be started leaves no guard.
func TestNothingToStart(t *testing.T) {
	cmd := exec.Command(filepath.Join(t.TempDir(), "none"))
	g := processgroup.New(cmd, time.Second)
	if cmd.Start() == nil {
		t.Fatal("it started")
	}
	guard := cmd.SysProcAttr.Pgid
	g.End(0)
	if guard != 0 && runs(guard) {
		t.Errorf("the guard %d is left", guard)
	}
}
