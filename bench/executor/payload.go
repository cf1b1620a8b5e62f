package executor

import (
	"slices"
	"sync"
	"time"

	"github.com/npuctl/npuctl/bench/engine"
)

// Payload is what a request of a [Model] carries in [Request.Data]: its inputs, room for
// its outputs, and what its run took. The caller may use one again after the answer.
type Payload struct {
	// Inputs are those of the request in the order of [Model.Inputs]. The shapes have the
	// batch axis where the model has one, so that the first dim is the number of items. An
	// input without a shape is left out. A scalar has an empty shape.
	Inputs []engine.Buffer
	// Outputs is the answer, in the order of [Model.Outputs]. Memory that is there and large
	// enough is used again: who wants to keep an answer takes it out.
	Outputs []engine.Buffer
	// Times says what the run took. It holds after the answer, if that is OK.
	Times RunTimes
	// Execution is the batch that the request ran in.
	Execution Execution

	mu     sync.Mutex // of all, while parts of the batch run at the same time
	filled []bool     // by output: rows of this run are in it
	batch  *Batch
	serial int64
	given  []Given // used again by each Prepare
}

// RunTimes are the times of a run. Of parts that ran at the same time they are those of
// the one that took longest.
type RunTimes struct {
	// Join is how long it took to write the rows of all requests into the memory of the
	// engine, and Cut to write the outputs into theirs.
	Join, Cut time.Duration
	// Engine is what the engine stamped, all chunks together.
	Engine engine.Times
}

func (t *RunTimes) sum() time.Duration {
	return t.Join + t.Engine.H2D + t.Engine.Compute + t.Engine.D2H + t.Cut
}

// Execution is a batch, as one of its requests tells it.
type Execution struct {
	// Serial counts the batches of the executor from 1.
	Serial int64
	// Items is its size, Chunks the runs that it took.
	Items, Chunks int
	// Gear is that of its first chunk, -1 for none.
	Gear int
	// Elements of the inputs that were computed, where there are gears, and those of them
	// that were padding.
	Elements, Padding int64
	// Device and Instance are where it ran.
	Device, Instance int
	// Lead is set for one request of each batch, so that it is counted once.
	Lead bool
}

// Stages are the times that a request spent on its way. They sum to the time from its
// arrival to its answer.
type Stages struct {
	Queue    time.Duration // until it became part of a batch
	Batching time.Duration // until that was given to its instance
	H2D      time.Duration // rows to the memory of the engine, and from there to the device
	Compute  time.Duration // the model
	D2H      time.Duration // outputs from the device, and to the memory of the request
	Respond  time.Duration // all that is left: hand-overs and waiting for other parts
}

// Stages gives the stages of a request of a [Model] that is answered. One that never ran
// was in the queue, or in a batch that waited.
func (r *Request) Stages() (s Stages) {
	p, ok := r.Data.(*Payload)
	if !ok || p.serial == 0 || r.Started == r.Ended {
		s.Queue = r.Ended - r.Arrived
		if r.Joined > 0 {
			s.Queue, s.Batching = r.Joined-r.Arrived, r.Ended-r.Joined
		}
		return s
	}
	t := &p.Times
	s.Queue, s.Batching = r.Joined-r.Arrived, r.Started-r.Joined
	s.H2D, s.Compute, s.D2H = t.Join+t.Engine.H2D, t.Engine.Compute, t.Engine.D2H+t.Cut
	s.Respond = r.Ended - r.Started - s.H2D - s.Compute - s.D2H
	return s
}

// begin makes a payload ready for a batch: by the first of its parts that comes to it.
func (p *Payload) begin(b *Batch, outputs int) {
	if p.batch == b && p.serial == b.Serial {
		return
	}
	p.batch, p.serial = b, b.Serial
	p.Times = RunTimes{}
	if len(p.Outputs) != outputs {
		p.Outputs = slices.Grow(p.Outputs[:0], outputs)[:outputs]
	}
	if len(p.filled) != outputs {
		p.filled = make([]bool, outputs)
	}
	clear(p.filled)
}

// end says what a part of a batch took.
func (p *Payload) end(b *Batch, t *RunTimes, lead bool) {
	if t.sum() >= p.Times.sum() {
		p.Times = *t
	}
	e := Execution{Serial: b.Serial, Items: b.Items, Chunks: len(b.Chunks), Gear: b.Chunks[0].Gear, Device: b.Device, Instance: b.Instance, Lead: lead}
	for _, c := range b.Chunks {
		e.Elements += c.Elements
		e.Padding += c.Padding
	}
	p.Execution = e
}
