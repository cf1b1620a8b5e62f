package benchmark

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/bench/load"
)

// alone gives each client an instance of its own, and nothing between them.
func (b *bench) alone(ctx context.Context, t *target, m engine.Model) error {
	a := &rawModel{bench: b, model: m, sets: t.sets}
	err := a.add(1)
	for set := range t.sets.list { // what cannot run at all is told before any load
		if err == nil {
			if _, err = a.send(ctx, 0, set); err != nil {
				err = fmt.Errorf("%s: %w", t.sets.list[set].name, err)
			}
		}
	}
	if err != nil {
		return errors.Join(refused(ctx, err), a.close())
	}
	t.Target, t.close = a, func() error { return errors.Join(a.close(), m.Close()) }
	t.ready = a.add
	return nil
}

// rawModel is an engine's model without an executor.
type rawModel struct {
	bench *bench
	model engine.Model
	sets  *requests

	mu      sync.Mutex // of instances, while they are made
	workers []*rawWorker
}

// rawWorker is an instance on its goroutine.
type rawWorker struct {
	model *rawModel
	work  chan *rawCall
	made  chan error
	ended chan error
	// set is what the inputs hold, at these places.
	set    int
	filled []*byte
}

// rawCall is a request on its way to an instance and back.
type rawCall struct {
	ctx   context.Context
	set   int
	times engine.Times
	done  chan error
}

// add makes instances up to a number.
func (a *rawModel) add(number int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.workers) < number {
		w := &rawWorker{model: a, work: make(chan *rawCall), made: make(chan error, 1), ended: make(chan error, 1), set: -1}
		go w.serve(len(a.workers))
		if err := <-w.made; err != nil {
			return fmt.Errorf("make instance %d: %w", len(a.workers)+1, err)
		}
		a.workers = append(a.workers, w)
	}
	return nil
}

func (a *rawModel) close() (err error) {
	for _, w := range a.workers {
		close(w.work)
		err = errors.Join(err, <-w.ended)
	}
	a.workers = nil
	return err
}

// serve makes an instance and runs what it is given.
func (w *rawWorker) serve(number int) {
	e := &w.model.bench.Engine
	device := 0
	if on := w.model.bench.Serving.Devices; len(on) > 0 {
		device = on[number%len(on)]
	}
	instance, err := w.model.model.NewInstance(engine.Placement{Device: device, CubeCores: e.CubeCores, VectorCores: e.VectorCores})
	w.made <- err
	if err != nil {
		return
	}
	for c := range w.work {
		c.times, err = w.run(c, instance)
		c.done <- err
	}
	w.ended <- instance.Close()
}

// run asks for the memory of all inputs, fills in what is not there yet, and runs.
func (w *rawWorker) run(c *rawCall, instance engine.Instance) (engine.Times, error) {
	given := w.model.sets.list[c.set].inputs
	if w.filled == nil {
		w.filled = make([]*byte, len(given))
	}
	for i := range given {
		if given[i].Shape == nil {
			continue
		}
		b, err := instance.Input(i, given[i].Shape)
		if err != nil {
			w.set = -1
			return engine.Times{}, err
		}
		if at := unsafe.SliceData(b.Bytes); w.set != c.set || at != w.filled[i] {
			copy(b.Bytes, given[i].Bytes)
			copy(b.Strings, given[i].Strings)
			w.filled[i] = at
		}
	}
	w.set = c.set
	return instance.Run(c.ctx)
}

// Do has the client's instance run.
func (a *rawModel) Do(ctx context.Context, r load.Request) (load.Result, error) {
	set := a.sets.pick(r.Number)
	times, err := a.send(ctx, r.Worker, set)
	result := load.Result{Items: int32(a.sets.list[set].items)}
	result.Stages[load.H2D], result.Stages[load.Compute], result.Stages[load.D2H] = times.H2D, times.Compute, times.D2H
	return result, err
}

// send has an instance run a set.
func (a *rawModel) send(ctx context.Context, worker, set int) (engine.Times, error) {
	c := &rawCall{ctx: ctx, set: set, done: make(chan error, 1)}
	a.workers[worker].work <- c
	err := <-c.done
	return c.times, err
}
