package load

import (
	"time"

	"github.com/npuctl/npuctl/internal/nap"
)

// Clock is where a run has its time from.
type Clock interface {
	// Now is the time since a beginning that does not change. It never goes back.
	Now() time.Duration
	// Wait returns at a time, or sooner when the channel is closed: then it gives false.
	// One goroutine waits at a time.
	Wait(until time.Duration, stop <-chan struct{}) bool
}

// lastSpin is the last part of a wait, for which not even the system's sleep is precise
// enough: it may be some 60 µs late.
const lastSpin = 100 * time.Microsecond

// clock is the clock of the machine.
type clock struct {
	begin   time.Time
	timer   *time.Timer
	precise bool
}

// NewClock gives a clock that begins now, and whose waits end within microseconds of their
// time on a machine that is not busy.
func NewClock() Clock { return &clock{begin: time.Now(), precise: true} }

// NewPlainClock gives a clock that waits with timers alone: up to a millisecond late, but
// idle while it waits.
func NewPlainClock() Clock { return &clock{begin: time.Now()} }

func (c *clock) Now() time.Duration { return time.Since(c.begin) }

func (c *clock) Wait(until time.Duration, stop <-chan struct{}) bool {
	early := time.Duration(0)
	if c.precise {
		early = nap.Early
	}
	if !c.sleep(until-early-c.Now(), stop) {
		return false
	}
	if !c.precise {
		return true
	}
	if left := until - lastSpin - c.Now(); left > 0 {
		nap.Sleep(left)
	}
	for c.Now() < until {
		// Who waits for less than lastSpin keeps the processor.
	}
	return true
}

// sleep waits for a timer.
func (c *clock) sleep(d time.Duration, stop <-chan struct{}) bool {
	select {
	case <-stop:
		return false
	default:
	}
	if d <= 0 {
		return true
	}
	if c.timer == nil {
		c.timer = time.NewTimer(d)
	} else {
		c.timer.Reset(d)
	}
	select {
	case <-c.timer.C:
		return true
	case <-stop:
		c.timer.Stop()
		return false
	}
}
