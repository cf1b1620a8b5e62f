// Package nap sleeps for less than a millisecond. The timers of Go's scheduler wait in
// whole milliseconds while the program has nothing else to do: of 100 µs they make 1.1 ms.
package nap

import "time"

// Early is by how much a Go timer should be set too early, so that the rest can be slept
// precisely.
const Early = 1500 * time.Microsecond
