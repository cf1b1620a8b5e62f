package ensemble

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/bench/executor"
)

// Call is a request with its way back. It may be used again and again, for one request at
// a time.
type Call struct {
	// Inputs are the tensors of the request, in the order of [Plan.Inputs]; one without a
	// shape is left out. Nothing of them is changed.
	Inputs []engine.Buffer
	// Level and Timeout go to every step: see [executor.Request].
	Level   int
	Timeout time.Duration

	// Outputs are the answer, in the order of [Plan.Outputs], until the next request.
	Outputs []engine.Buffer
	// Size is the number of items.
	Size int
	// Latency is how long it took, and Stages what of: see the package's comment.
	Latency time.Duration
	Stages  executor.Stages
	// Steps are in the order of [Plan.Steps].
	Steps []StepTimes

	ensemble *Ensemble
	values   []engine.Buffer // of the wires
	runs     []stepRun
	given    []executor.Given

	begin time.Time
	ctx   context.Context
	wait  sync.WaitGroup

	mu   sync.Mutex // of all below, and of waiting and cause in runs
	err  error
	last int // the step that ended last
}

// StepTimes are what a step had in a request.
type StepTimes struct {
	// Ran is false for a step that did not start, as another failed.
	Ran bool
	// Begin and End are counted from when the request came.
	Begin, End time.Duration
	// Stages add up to the time in the executor of the step, which is a little less than that
	// from Begin to End.
	Stages executor.Stages
	// IsCritical is set for the steps that the latency is made of.
	IsCritical bool
}

// stepRun is a step with what a request needs there.
type stepRun struct {
	call    *executor.Call
	payload *executor.Payload // of a model
	part    *partPayload      // of a part
	shapes  [][]int64         // of inputs that change theirs
	waiting int               // steps that it still waits for
	cause   int               // the step that it waited for last; -1 for none
	isDone  bool
}

// StepError is the failure of a step.
type StepError struct {
	// Ensemble is the name of the ensemble; "" for a model alone.
	Ensemble string
	// Model is that of the step.
	Model string
	// Outcome is what became of the request there.
	Outcome executor.Outcome
	Err     error
}

func (e *StepError) Error() string {
	if e.Ensemble == "" {
		return fmt.Sprintf("model %s: %v", e.Model, e.Err)
	}
	return fmt.Sprintf("in ensemble %s, model %s: %v", e.Ensemble, e.Model, e.Err)
}

// Unwrap gives the failure itself.
func (e *StepError) Unwrap() error { return e.Err }

// NewCall makes a call.
func (e *Ensemble) NewCall() *Call {
	c := &Call{ensemble: e, Inputs: make([]engine.Buffer, len(e.Plan.Inputs)), Outputs: make([]engine.Buffer, len(e.Plan.Outputs)),
		Steps: make([]StepTimes, len(e.Plan.Steps)), values: make([]engine.Buffer, len(e.Plan.tensors)), runs: make([]stepRun, len(e.Plan.Steps))}
	for i, s := range e.Plan.Steps {
		r := &c.runs[i]
		r.call, r.shapes = executor.NewCall(), make([][]int64, len(s.inputs))
		if e.of[i].model != nil {
			r.payload = &executor.Payload{Inputs: make([]engine.Buffer, len(s.inputs))}
		} else {
			r.part = &partPayload{inputs: make([]engine.Buffer, len(s.inputs))}
		}
	}
	return c
}

// Do sends a request and waits for its answer. The error of a step is a [*StepError]. When
// the context ends, steps that wait are given up; one that runs already is waited for.
func (e *Ensemble) Do(ctx context.Context, c *Call) error {
	if !e.enter() {
		return executor.ErrClosed
	}
	defer e.inside.Done()
	c.begin, c.ctx, c.err, c.last = time.Now(), ctx, nil, -1
	c.Stages = executor.Stages{}
	if err := c.admit(); err != nil {
		c.Latency = time.Since(c.begin)
		return err
	}
	for i, in := range e.Plan.Inputs {
		c.values[in.wire] = c.Inputs[i]
	}
	first := -1
	for i, s := range e.Plan.Steps {
		c.runs[i].waiting, c.runs[i].cause, c.runs[i].isDone = len(s.after), -1, false
		c.Steps[i] = StepTimes{}
	}
	for i, s := range e.Plan.Steps {
		switch {
		case len(s.after) > 0:
		case first < 0:
			first = i
		default:
			c.wait.Go(func() { c.follow(i) })
		}
	}
	c.follow(first)
	c.wait.Wait()
	c.finish()
	return c.err
}

// admit holds the inputs against the ensemble.
func (c *Call) admit() error {
	p := c.ensemble.Plan
	if len(c.Inputs) != len(p.Inputs) {
		return fmt.Errorf("%d inputs: %s has %d", len(c.Inputs), p.Name, len(p.Inputs))
	}
	size := -1
	c.given = c.given[:0]
	for i, in := range p.Inputs {
		shape := c.Inputs[i].Shape
		if shape == nil {
			continue
		}
		if p.MaxBatch > 0 {
			switch {
			case len(shape) == 0:
				return fmt.Errorf("input %q is a scalar: the first dim must be the number of items", in.Name)
			case size >= 0 && int64(size) != shape[0]:
				return fmt.Errorf("input %q has %d items, another has %d", in.Name, shape[0], size)
			}
			size, shape = int(shape[0]), shape[1:]
		}
		c.given = append(c.given, executor.Given{Input: i, Shape: shape})
	}
	if len(c.given) == 0 {
		size = 1 // what is said then is that they are missing
	}
	c.Size = max(1, size)
	_, err := c.ensemble.signature.Admit(size, c.given)
	return err
}

// follow runs a step, and after it those that it was the last to be waited for: one of
// them here, others beside it.
func (c *Call) follow(step int) {
	for step >= 0 {
		err := c.run(step)
		c.mu.Lock()
		c.last = step
		next := -1
		if err != nil && c.err == nil {
			c.err = err
		}
		if c.err == nil {
			next = c.ready(step)
		}
		c.mu.Unlock()
		step = next
	}
}

// ready starts what a step that ended was the last for, but one, which it gives.
func (c *Call) ready(ended int) (next int) {
	next = -1
	for _, i := range c.ensemble.Plan.Steps[ended].before {
		r := &c.runs[i]
		r.waiting--
		if r.waiting > 0 {
			continue
		}
		r.cause = ended
		if next < 0 {
			next = i
			continue
		}
		c.wait.Go(func() { c.follow(i) })
	}
	return next
}

// run has a step answer.
func (c *Call) run(step int) error {
	t := &c.Steps[step]
	t.Ran, t.Begin = true, time.Since(c.begin)
	err := c.submit(step)
	t.End = time.Since(c.begin)
	return err
}

func (c *Call) submit(step int) error {
	s, served, r := c.ensemble.Plan.Steps[step], c.ensemble.of[step], &c.runs[step]
	fail := func(o executor.Outcome, err error) error {
		e := &StepError{Model: s.Name, Outcome: o, Err: err}
		if c.ensemble.Plan.IsEnsemble {
			e.Ensemble = c.ensemble.Plan.Name
		}
		return e
	}
	if c.ctx.Err() != nil {
		return fail(executor.Cancelled, context.Cause(c.ctx))
	}
	c.fill(step)
	var err error
	if r.payload != nil {
		err = served.model.Prepare(r.call, r.payload)
	} else {
		err = served.parts.prepare(r.call, r.part)
	}
	if err != nil {
		return fail(executor.Failed, err)
	}
	r.call.Level, r.call.Timeout = c.Level, c.Timeout
	outcome := served.live.Do(c.ctx, r.call)
	c.Steps[step].Stages = r.stages()
	switch {
	case outcome == executor.Cancelled && c.ctx.Err() != nil:
		return fail(outcome, fmt.Errorf("%w: %w", r.call.Err, context.Cause(c.ctx)))
	case outcome != executor.OK:
		return fail(outcome, r.call.Err)
	case r.part != nil && r.part.err != nil:
		return fail(executor.Failed, r.part.err)
	}
	c.take(step)
	return nil
}

// fill leads tensors to the inputs of a step.
func (c *Call) fill(step int) {
	s, r := c.ensemble.Plan.Steps[step], &c.runs[step]
	inputs := r.inputs()
	for i, wire := range s.inputs {
		in := &s.Config.Input[i]
		inputs[i] = engine.Buffer{}
		if wire >= 0 {
			inputs[i] = fitted(c.values[wire], in.Dims, s.Config.MaxBatchSize > 0, &r.shapes[i])
		}
	}
}

// stages are those of a request that has its answer.
func (r *stepRun) stages() executor.Stages {
	if r.payload != nil {
		return r.call.Stages()
	}
	return r.part.stagesOf(&r.call.Request)
}

func (r *stepRun) inputs() []engine.Buffer {
	if r.payload != nil {
		return r.payload.Inputs
	}
	return r.part.inputs
}

// take has the wires lead to what a step computed.
func (c *Call) take(step int) {
	r := &c.runs[step]
	r.isDone = true
	outputs := r.outputs()
	for i, wire := range c.ensemble.Plan.Steps[step].outputs {
		if wire >= 0 {
			c.values[wire] = outputs[i]
		}
	}
}

func (r *stepRun) outputs() []engine.Buffer {
	if r.payload != nil {
		return r.payload.Outputs
	}
	return r.part.outputs
}

// finish adds up the stages of the critical path, and gives the outputs.
func (c *Call) finish() {
	p := c.ensemble.Plan
	if c.err == nil {
		hasBatch := p.MaxBatch > 0
		for i, out := range p.Outputs {
			c.Outputs[i] = c.values[out.wire]
			if p.IsEnsemble && p.tensors[out.wire].from != nil && (p.tensors[out.wire].from.Config.MaxBatchSize > 0) != hasBatch {
				var scratch []int64
				c.Outputs[i] = fitted(c.Outputs[i], out.Dims, hasBatch, &scratch)
			}
		}
	}
	c.Latency = time.Since(c.begin)
	known := time.Duration(0)
	for step := c.last; step >= 0; step = c.runs[step].cause {
		t := &c.Steps[step]
		t.IsCritical = true
		s := &t.Stages
		c.Stages.Queue += s.Queue
		c.Stages.Batching += s.Batching
		c.Stages.H2D += s.H2D
		c.Stages.Compute += s.Compute
		c.Stages.D2H += s.D2H
		known += s.Queue + s.Batching + s.H2D + s.Compute + s.D2H
	}
	c.Stages.Respond = c.Latency - known
}

// Execution is the batch that the request ran in: that of the first step that an engine
// runs. A plan without one has none.
func (c *Call) Execution() (x executor.Execution, ok bool) {
	main := c.ensemble.main
	if main < 0 || !c.runs[main].isDone {
		return x, false
	}
	return c.runs[main].payload.Execution, true
}
