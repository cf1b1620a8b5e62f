//go:build unix

package tritonserver

import (
	"os"
	"syscall"
)

// askToEnd asks the program to end, which ends its Python models itself.
func askToEnd(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

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
