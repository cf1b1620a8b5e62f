//go:build unix

package load

import (
	"syscall"
	"time"
)

// processCPU is the processor time that this process has used so far.
func processCPU() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
