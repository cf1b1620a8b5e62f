//go:build unix

package processgroup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Group is a program with all it starts: a process group that a guard leads.
//
// Whoever is killed cannot end its children, and a program's own children do not end
// with it. So the guard, a shell of its own, sits in the group and waits: it reads from
// a pipe whose other end npuctl alone holds. When npuctl goes, in whatever way, the pipe
// closes, and the guard ends the group, itself last. It signals its own group and no
// number, so that it can never hit a stranger, and it is there before the program is.
type Group struct {
	cmd     *exec.Cmd
	guard   *exec.Cmd // nil where there is no shell: then only a living npuctl ends the group
	alive   *os.File  // our end of the pipe
	askedAt time.Time // when it was asked to end; zero before
}

// guardScript waits for the end of its input. It outlives the polite signal that it
// sends, and gives the others the time that they have with us.
const guardScript = `trap '' TERM INT HUP
read -r word
kill -s TERM 0
sleep "$1"
kill -s KILL 0`

// New makes cmd start in a process group of its own, so that the whole of
// it can be ended, and so that a Ctrl-C reaches us alone. Whoever called it calls [Group.End].
func New(cmd *exec.Cmd, grace time.Duration) *Group {
	g := &Group{cmd: cmd}
	g.startGuard(grace)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.leader()}
	return g
}

func (g *Group) startGuard(grace time.Duration) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return
	}
	defer theirs.Close()
	guard := exec.Command("/bin/sh", "-c", guardScript, "npuctl-guard", fmt.Sprint(max(1, int(grace.Seconds()))))
	guard.Stdin, guard.Dir, guard.Env = theirs, "/", []string{"PATH=/usr/bin:/bin"}
	guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if guard.Start() != nil {
		_ = ours.Close()
		return
	}
	g.guard, g.alive = guard, ours
}

// leader is the number of the group; 0 before the program runs in a group that it
// leads itself.
func (g *Group) leader() int {
	switch {
	case g.guard != nil:
		return g.guard.Process.Pid
	case g.cmd.Process != nil:
		return g.cmd.Process.Pid
	}
	return 0
}

// Interrupt asks all processes of the group to end.
func (g *Group) Interrupt() error {
	g.askedAt = time.Now()
	err := syscall.Kill(-g.leader(), syscall.SIGTERM)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

const (
	// pollInterval is how often a group that should end is looked at.
	pollInterval = 5 * time.Millisecond
	// killPatience is how long it may take until killed processes are gone.
	killPatience = 5 * time.Second
)

// End makes sure that no process of the group is left once its first one has ended, or
// could not be started. Those that were asked to end have the grace time, others none.
func (g *Group) End(grace time.Duration) {
	if !hasProcessTable() {
		g.dismissGuard() // it could not be told from the others
	}
	deadline := g.askedAt.Add(grace)
	for g.isAlive() && time.Now().Before(deadline) {
		time.Sleep(pollInterval)
	}
	// The kernel ends a killed process soon, but not at once: one may be in a read
	// from a slow disk. There is nothing more to do about one that stays.
	for give := time.Now().Add(killPatience); g.isAlive() && time.Now().Before(give); time.Sleep(pollInterval) {
		_ = syscall.Kill(-g.leader(), syscall.SIGKILL) // one that finds nobody is as good
	}
	g.dismissGuard()
}

// dismissGuard ends the guard, which has nobody left to end.
func (g *Group) dismissGuard() {
	if g.alive == nil {
		return
	}
	_ = g.guard.Process.Kill() // before the pipe closes, which would wake it
	_ = g.guard.Wait()         // that it was killed is no news
	_ = g.alive.Close()
	g.alive = nil
}

const processTable = "/proc"

// hasProcessTable says whether the system tells of processes in files.
func hasProcessTable() bool {
	_, err := os.Stat(filepath.Join(processTable, "self", "stat"))
	return err == nil
}

// isAlive says whether a process of the group runs, the guard aside. One that has ended
// and that nobody has asked about still takes signals; where /proc tells, it does not
// count: in a container the first process may never ask.
func (g *Group) isAlive() bool {
	leader := g.leader()
	if leader == 0 || syscall.Kill(-leader, 0) != nil {
		return false
	}
	stats, err := filepath.Glob(filepath.Join(processTable, "[0-9]*", "stat"))
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
		isGuard := g.guard != nil && filepath.Base(filepath.Dir(path)) == strconv.Itoa(leader)
		if !isGuard && len(fields) > 2 && fields[2] == strconv.Itoa(leader) && fields[0] != "Z" && fields[0] != "X" {
			return true
		}
	}
	return false
}
