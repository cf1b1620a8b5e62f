package executor

import "time"

// Request is one request, from Submit to Answer. The caller fills in the first fields
// and leaves the request alone until its answer; then it may be used again.
type Request struct {
	// Size is the number of items, the first dim of its inputs. Models without a batch
	// axis have none: it counts as 1.
	Size int
	// Class stands for shapes and inputs: see [Signature].
	Class Class
	// Level is the priority; 0 is the default one.
	Level int
	// Timeout is how long the client lets it wait; 0 leaves that to the policy.
	Timeout time.Duration
	// Tag and Data are the caller's own, and not looked at: a number, and what the engine
	// needs, inputs and room for outputs.
	Tag  int
	Data any

	// Arrived, Joined, Started and Ended are when it came, when it became part of a batch,
	// when that began to run and when it was answered. Of a request that never ran Started
	// is its end, and Joined is 0 or when it was part of a batch first.
	Arrived, Joined, Started, Ended time.Duration
	// Err says why it was refused or failed.
	Err error

	items    int // Size as it counts
	state    requestState
	home     *level // while waiting
	list     *list
	prev     *Request
	next     *Request
	deadline time.Duration
	expires  bool // it is refused at its deadline
	heapAt   int  // in the heap of deadlines, from 1; 0 when it is not there
	batch    *Batch
	// what PreserveOrdering needs
	before, behind *Request
	outcome        Outcome
	call           *Call // of [Live]
}

// begin makes a request ready for its way; what the caller filled in stays.
func (r *Request) begin(now time.Duration) {
	*r = Request{Size: r.Size, Class: r.Class, Level: r.Level, Timeout: r.Timeout, Tag: r.Tag, Data: r.Data, call: r.call, Arrived: now}
}

// requestState is where a request is.
type requestState uint8

const (
	stateNew requestState = iota
	stateWaiting
	stateReady   // in a batch that waits for an instance, or for a stream
	stateRunning // in a batch that runs
	stateHeld    // done, and waiting for the answers before it
	stateAnswered
)

// Outcome is what became of a request.
type Outcome uint8

// The outcomes.
const (
	OK Outcome = iota
	// Rejected is a request that the queue had no place for, or that waited too long.
	Rejected
	// Failed is a request that does not fit the model, or whose run failed.
	Failed
	// Cancelled is a request whose client went away.
	Cancelled
	// Waiting is a request without an answer. [Driver.Answer] never has it; it is for
	// those who look at requests before all are answered.
	Waiting
)

var outcomeNames = [...]string{OK: "ok", Rejected: "rejected", Failed: "error", Cancelled: "cancelled", Waiting: "waiting"}

func (o Outcome) String() string { return outcomeNames[o] }

// Batch is a group of requests that run together, in the order in which they were taken
// from the queue.
type Batch struct {
	// Requests are its members. Their rows are concatenated in this order.
	Requests []*Request
	// Items is the sum of their sizes.
	Items int
	// Class is that of the first request.
	Class Class
	// Instance and Device say where it runs.
	Instance, Device int
	// Workers has the worker of each part: see [Setup.Workers] and [Chunk.Part]. A batch
	// with fewer items than parts leaves the last ones without work.
	Workers []int
	// Serial counts batches from 1.
	Serial int64
	// Started is when it began.
	Started time.Duration
	// Chunks are the runs that it takes, one after the other within each part: see
	// [Gears].
	Chunks []Chunk

	left int   // parts that run
	err  error // of the first part that failed

	oldest  time.Duration // arrival of its oldest request
	queued  bool          // it waits for an instance
	full    bool          // nothing more goes in
	differs bool          // a request of another class ended it
	closed  bool          // an instance has taken it, or looked at it
	taken   bool          // an instance has it
}

// Parts is how many parts of it have items.
func (b *Batch) Parts() int {
	if len(b.Chunks) == 0 {
		return 0
	}
	return b.Chunks[len(b.Chunks)-1].Part + 1
}

func (b *Batch) add(r *Request) {
	if len(b.Requests) == 0 || r.Arrived < b.oldest {
		b.oldest = r.Arrived
	}
	if len(b.Requests) == 0 {
		b.Class = r.Class
	}
	r.state, r.batch = stateReady, b
	b.Requests = append(b.Requests, r)
	b.Items += r.items
}

// remove takes a request out again. What is left keeps its order.
func (b *Batch) remove(r *Request) {
	for i, other := range b.Requests {
		if other == r {
			copy(b.Requests[i:], b.Requests[i+1:])
			b.Requests[len(b.Requests)-1] = nil
			b.Requests = b.Requests[:len(b.Requests)-1]
			b.Items -= r.items
			r.batch = nil
			return
		}
	}
}

// reset empties a batch for its next use.
func (b *Batch) reset() {
	clear(b.Requests)
	*b = Batch{Requests: b.Requests[:0], Chunks: b.Chunks[:0], Workers: b.Workers[:0]}
}
