//go:build unix

package atc

import (
	"os"
	"syscall"
)

// signalOf names the signal that ended a process; "" when none did.
func signalOf(state *os.ProcessState) string {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal().String()
	}
	return ""
}
