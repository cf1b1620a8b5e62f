// Package load sends requests to a [Target] and says of each when it should have been
// sent, when it was, and when its answer came.
//
// # Two loops
//
// In a closed loop a number of clients each send a request, wait for its answer and send
// the next one. In an open loop a [Schedule] says when requests are due, whatever became
// of those before: constant, Poisson, a ramp, the times of a trace. Both are bounded: the
// clients of the one, and the most requests in flight of the other.
//
// # The intended time
//
// A request that could not leave in time, as every sender was still waiting for an answer,
// has waited all the same: its client did. [Record] therefore holds four times. Intended
// is when it was due; Ready when a sender was there for it; Sent and Done are the call.
// Done less Intended is the latency that a client sees, Done less Sent what the target
// alone would be asked about, and Sent less Ready the lateness of this generator itself,
// for which nobody else is to blame.
//
// # How it runs
//
// Senders of an open loop share one token. Who holds it takes the next time of the
// schedule, waits for it, passes the token on and sends: so only one of them waits at a
// time, no request goes through a channel, and the one that is longest without work is
// the next. Records are collected in a buffer of each sender and handed to an [Observer]
// now and then, together with the time up to which all is known; the observer says when
// it has seen enough. Nothing is allocated for a request once those buffers have grown.
//
// A run ends when all that was sent is answered. Nothing that was in flight is left out,
// and what was due and not sent is reported as such.
//
// Time comes from a [Clock]. [NewClock] is precise to microseconds: it sleeps, and spins
// at the end. [NewPlainClock] only sleeps, which makes it the one for tests in virtual
// time (package testing/synctest).
package load
