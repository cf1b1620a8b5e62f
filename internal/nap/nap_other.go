//go:build !linux

package nap

import "time"

// Sleep sleeps as precisely as Go does.
func Sleep(d time.Duration) { time.Sleep(d) }
