package load

import (
	"context"
	"errors"
	"time"
)

// Target is what requests are sent to: an executor, an engine, a server.
type Target interface {
	// Do sends a request and waits for its answer. It is called by many goroutines, but
	// by one for each [Request.Worker] at a time. An error that wraps [ErrRejected] is a
	// refusal, any other a failure. It must return soon after the context ends.
	Do(ctx context.Context, r Request) (Result, error)
}

// TargetFunc is a target made of a function.
type TargetFunc func(ctx context.Context, r Request) (Result, error)

// Do calls the function.
func (f TargetFunc) Do(ctx context.Context, r Request) (Result, error) { return f(ctx, r) }

// Request says which request is to be sent.
type Request struct {
	// Number counts from 0 in the order of intended times, warm-up included. Of a trace
	// it is the row.
	Number int64
	// Worker is the client or sender, from 0: what belongs to it may be used again by it.
	Worker int
}

// ErrRejected is the reason of requests that the target had no place for.
var ErrRejected = errors.New("rejected")

// Stage is a part of the way of a request.
type Stage int

// The stages, in their order. Their times add up to the latency from the intended time.
const (
	Lag      Stage = iota // from the intended to the actual sending; computed here
	Queue                 // until it is part of a batch
	Batching              // until that batch begins to run
	H2D                   // inputs to the device
	Compute               // the model
	D2H                   // outputs to the host
	Respond               // what is left until the answer is there; computed here
	StageCount
)

// StageNames are the names of the stages in reports.
var StageNames = [StageCount]string{"schedule", "queue", "batch", "h2d", "compute", "d2h", "respond"}

func (s Stage) String() string { return StageNames[s] }

// Stages are the times that a request spent in each stage.
type Stages [StageCount]time.Duration

// Result is what a target tells about a request beside its answer. A target that knows
// nothing leaves it empty.
type Result struct {
	// Stages of which the target knows the times: those from Queue to D2H.
	Stages Stages
	// Items is the number of items of the request; 0 counts as 1.
	Items int32
	// Kind is the caller's own number for a kind of request, such as the model in a mix.
	Kind int32
	// Batch is the execution that it was part of.
	Batch Batch
}

// Batch is an execution, as one of its requests tells it.
type Batch struct {
	// Items is its size; 0 when the target does not know.
	Items int32
	// Gear is what it was padded to: an index, from 1, of a list of names that the caller
	// keeps; 0 is none.
	Gear int32
	// Elements of the inputs that were computed, and how many of them were padding.
	Elements, Padding int64
	// Lead is set by one request of each execution, so that it is counted once.
	Lead bool
}

// Outcome is what became of a request.
type Outcome uint8

// The outcomes.
const (
	OK Outcome = iota
	Rejected
	Failed
	// Cancelled is one whose answer was not waited for: the run was ended.
	Cancelled
	// Unsent is one that was due before the end of an open loop and for which there was
	// no sender.
	Unsent
)

// OutcomeNames are the names of the outcomes in files.
var OutcomeNames = [...]string{OK: "ok", Rejected: "rejected", Failed: "error", Cancelled: "cancelled", Unsent: "unsent"}

func (o Outcome) String() string { return OutcomeNames[o] }

// Record is a request that is over. Its times count from the beginning of the run.
type Record struct {
	Number  int64
	Worker  int32
	Outcome Outcome
	// Warm is true for the requests of the warm-up.
	Warm bool
	// Intended, Ready, Sent and Done: see the package's comment.
	Intended, Ready, Sent, Done time.Duration
	Result
	// Reason says why it has no answer.
	Reason string
}

// Latency is the time from the intended sending to the answer.
func (r *Record) Latency() time.Duration { return r.Done - r.Intended }

// SendLatency is the time from the actual sending to the answer.
func (r *Record) SendLatency() time.Duration { return r.Done - r.Sent }

// Lateness is how late the generator itself was.
func (r *Record) Lateness() time.Duration { return r.Sent - r.Ready }

// Complete computes the stages that no target knows.
func (r *Record) Complete() {
	r.Items = max(1, r.Items)
	r.Stages[Lag] = r.Sent - r.Intended
	known := time.Duration(0)
	for _, t := range r.Stages[Queue:Respond] {
		known += t
	}
	r.Stages[Respond] = r.SendLatency() - known
}
