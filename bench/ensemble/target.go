package ensemble

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/npuctl/npuctl/bench/executor"
	"github.com/npuctl/npuctl/bench/load"
)

// Traffic says what a [load.Target] sends.
type Traffic struct {
	// Fill sets the inputs of a request, and what else it is to have. It is called by many
	// goroutines, by one for each worker at a time, and a worker has one call of its own.
	Fill func(c *Call, r load.Request) error
	// Answer, when set, sees each answer, before the worker sends its next request.
	Answer func(c *Call, r load.Request) error
	// Kind is that of all results, and Gears how many gears of other models come before
	// those of this one: see [load.Result].
	Kind  int32
	Gears int
}

// Target makes a target of an ensemble.
func (e *Ensemble) Target(t Traffic) load.Target {
	return &target{ensemble: e, traffic: t, calls: map[int]*Call{}}
}

type target struct {
	ensemble *Ensemble
	traffic  Traffic
	mu       sync.RWMutex
	calls    map[int]*Call // by worker
}

func (t *target) call(worker int) *Call {
	t.mu.RLock()
	c := t.calls[worker]
	t.mu.RUnlock()
	if c != nil {
		return c
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c = t.ensemble.NewCall()
	t.calls[worker] = c
	return c
}

// Do sends a request. A refusal of any step wraps [load.ErrRejected].
func (t *target) Do(ctx context.Context, r load.Request) (load.Result, error) {
	c := t.call(r.Worker)
	if err := t.traffic.Fill(c, r); err != nil {
		return load.Result{}, err
	}
	err := t.ensemble.Do(ctx, c)
	result := t.result(c)
	var failed *StepError
	switch {
	case errors.Is(err, executor.ErrClosed), errors.As(err, &failed) && failed.Outcome == executor.Rejected:
		return result, fmt.Errorf("%w: %w", load.ErrRejected, err)
	case err == nil && t.traffic.Answer != nil:
		err = t.traffic.Answer(c, r)
	}
	return result, err
}

func (t *target) result(c *Call) load.Result {
	r := load.Result{Items: int32(c.Size), Kind: t.traffic.Kind}
	s := &c.Stages
	r.Stages[load.Queue], r.Stages[load.Batching], r.Stages[load.H2D] = s.Queue, s.Batching, s.H2D
	r.Stages[load.Compute], r.Stages[load.D2H] = s.Compute, s.D2H
	if x, ok := c.Execution(); ok {
		r.Batch = load.Batch{Items: int32(x.Items), Elements: x.Elements, Padding: x.Padding, Lead: x.Lead}
		if x.Gear >= 0 {
			r.Batch.Gear = int32(t.traffic.Gears + x.Gear + 1)
		}
	}
	return r
}
