//go:build unix

package tritonserver

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// inGroup makes a program start in a process group of its own, so that Python models
// and whatever else it starts can be ended with it, and so that Ctrl-C reaches us alone.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(cmd.SysProcAttr)
}

// askToEnd asks the program to end.
func askToEnd(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

// killGroup ends all processes of the group at once, and waits until they are gone.
func killGroup(p *os.Process) {
	for give := time.Now().Add(killPatience); time.Now().Before(give); time.Sleep(pollInterval) {
		if err := syscall.Kill(-p.Pid, syscall.SIGKILL); errors.Is(err, syscall.ESRCH) {
			return
		}
	}
}

// howItEnded says how a program ended.
func howItEnded(state *os.ProcessState) string {
	status, ok := state.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return "died of signal " + signalName(status.Signal())
	}
	return state.String()
}

// signalNames are the signals that end servers, as logs call them.
var signalNames = map[syscall.Signal]string{
	syscall.SIGABRT: "SIGABRT", syscall.SIGSEGV: "SIGSEGV", syscall.SIGBUS: "SIGBUS",
	syscall.SIGILL: "SIGILL", syscall.SIGFPE: "SIGFPE", syscall.SIGKILL: "SIGKILL", syscall.SIGTERM: "SIGTERM",
}

func signalName(s syscall.Signal) string {
	if name, ok := signalNames[s]; ok {
		return name
	}
	return s.String()
}
