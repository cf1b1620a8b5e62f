//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// stopSignals are those that end a job cleanly. A closed terminal is one, unless nohup
// has it ignored.
func stopSignals() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}
