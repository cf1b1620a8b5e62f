package nap

import (
	"syscall"
	"time"
)

// Sleep sleeps in the kernel, whose timers are finer than those of Go's scheduler. It holds
// a thread meanwhile, and may end early at a signal.
func Sleep(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // who needs all of it looks at the clock
}
