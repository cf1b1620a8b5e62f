// Package executor is what stands between a request and its answer: admission, the
// queue with its levels and time-outs, the dynamic batcher, the choice of a gear, the
// instances and their leases, and the order of answers.
//
// # One piece of code, two clocks
//
// [Scheduler] decides everything and does nothing: it starts no goroutine, reads no
// clock and runs no model. It is told what happens and when, and tells its [Driver] what
// to do about it:
//
//	Submit(now, request)   a request came            Start(batch)             run it
//	Finish(now, batch)     an instance is done  ──▶  Answer(request, outcome) tell the client
//	Cancel(now, request)   a client went away
//	Wake(now)              the time NextWake gave has come
//
// Time is what has passed since a beginning of the caller's choice. A driver that takes
// its times from an event queue runs in virtual time (package simulation: an hour in
// seconds, the same on every run); [Live] takes them from the clock of the machine and
// hands batches to a [Runner], an engine. Both run the same policy, so that what one
// foretells the other does.
//
// # What it keeps to
//
// [Batcher] follows the rules of Triton's dynamic batcher to the request: which ones run
// together, and when a batch is sent. Where that server is late or wrong (a lost wake-up
// after each run, refusals that come up to a second after their time, cancelled requests
// that are computed and counted as done) it does what the documentation promises, at
// once. docs/simulate.md lists the differences.
//
// Every request that was submitted is answered exactly once. A lease of an instance ends
// with Finish, whatever the run came to.
//
// # Rows
//
// [Model] is the runner for the engines of package engine. [NewModel] holds a model against
// the setup before anything runs. [NewLive] then has each worker make its instance, on the
// goroutine that will run it. A request carries a [Payload]: rows of inputs, room for rows
// of outputs. Those of a batch are joined in the memory of the instance, padded to the gear
// with zeros, and the outputs cut back to whom they belong. [Request.Stages] says where the
// time went; its parts sum to the latency.
//
// A run that fails fails its batch. An instance that breaks is made anew, and when that is
// not possible its worker takes no more batches: see [ErrOutOfService].
//
// # Memory
//
// Requests belong to the caller, who may use one again after its answer; a batch belongs
// to the scheduler again from the moment of Finish. Nothing is allocated on the way of a
// request once the pools and queues have grown to what the load needs.
package executor
