//go:build !unix

package main

import (
	"os"
	"syscall"
)

// stopSignals are those that end a job cleanly.
func stopSignals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }
