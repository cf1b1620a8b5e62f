package load

import (
	"syscall"
	"time"
)

// shortSleep sleeps in the kernel, whose timers are finer than those of Go's scheduler.
func shortSleep(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // one that a signal ends early is followed by a longer spin
}
