//go:build unix

package atc

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// processGroup is a program with all it starts.
type processGroup struct {
	cmd     *exec.Cmd
	askedAt *time.Time // when it was asked to end; zero before
}

// prepareGroup makes cmd start in a process group of its own, so that the whole of
// it can be ended, and so that a Ctrl-C reaches us alone.
func prepareGroup(cmd *exec.Cmd) processGroup {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(cmd.SysProcAttr)
	return processGroup{cmd, new(time.Time)}
}

// interrupt asks all processes of the group to end.
func (g processGroup) interrupt() error {
	*g.askedAt = time.Now()
	err := syscall.Kill(-g.cmd.Process.Pid, syscall.SIGTERM)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// pollInterval is how often a group that should end is looked at.
const pollInterval = 5 * time.Millisecond

// end makes sure that no process of the group is left once its first one has
// ended. Those that were asked to end have the grace time, others none.
func (g processGroup) end(grace time.Duration) {
	deadline := g.askedAt.Add(grace)
	for g.isAlive() && time.Now().Before(deadline) {
		time.Sleep(pollInterval)
	}
	// The kernel ends a killed process soon, but not at once: one may be in a read
	// from a slow disk. There is nothing more to do about one that stays.
	for give := time.Now().Add(defaultGrace); g.isAlive() && time.Now().Before(give); time.Sleep(pollInterval) {
		_ = syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL) // one that finds nobody is as good
	}
}

// isAlive says whether a process of the group runs. One that has ended and that
// nobody has asked about still takes signals; where /proc tells, it does not count:
// in a container the first process may never ask.
func (g processGroup) isAlive() bool {
	if syscall.Kill(-g.cmd.Process.Pid, 0) != nil {
		return false
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return true
	}
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has gone
		}
		// pid (name) state parent group …; the name may hold anything.
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		if len(fields) > 2 && fields[2] == strconv.Itoa(g.cmd.Process.Pid) && fields[0] != "Z" && fields[0] != "X" {
			return true
		}
	}
	return false
}

// signalOf names the signal that ended a process; "" when none did.
func signalOf(state *os.ProcessState) string {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal().String()
	}
	return ""
}
