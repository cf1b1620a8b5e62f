package cpu

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/npuctl/npuctl/bench/engine"
)

// Patience is how long a run may go on that was given up: engines look at the context
// between operators, and one operator may take minutes.
const Patience = 300 * time.Millisecond

// Worker does the runs of an instance. With a context that can end it does them on a
// goroutine of its own, so that the instance can come back when its run does not; without
// one, where they are called.
type Worker struct {
	work   func(context.Context) error
	begin  chan context.Context
	ended  chan error
	broken bool
	// release is what is to be done when a run that was left has ended after all.
	release func()
}

// NewWorker makes a worker. It does one run at a time.
func NewWorker(work func(context.Context) error) *Worker { return &Worker{work: work} }

// Do does a run. When the context ends it gives the context's error: the run has ended
// then, or the worker is broken.
func (w *Worker) Do(ctx context.Context) error {
	switch {
	case w.broken:
		return fmt.Errorf("%w: it is still in a run that could not be stopped", engine.ErrBroken)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case ctx.Done() == nil:
		return w.work(ctx)
	}
	if w.begin == nil {
		w.begin, w.ended = make(chan context.Context), make(chan error, 1)
		go w.serve()
	}
	w.begin <- ctx
	select {
	case err := <-w.ended:
		return err
	case <-ctx.Done():
	}
	patience := time.NewTimer(Patience)
	defer patience.Stop()
	select {
	case err := <-w.ended:
		return err
	case <-patience.C:
		w.broken = true
		return fmt.Errorf("%w: the run could not be stopped, and was left", context.Cause(ctx))
	}
}

func (w *Worker) serve() {
	for ctx := range w.begin {
		w.ended <- w.guarded(ctx)
	}
	if w.release != nil {
		w.release()
	}
}

// guarded does a run; a panic in it is an error.
func (w *Worker) guarded(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the engine panicked: %v", r)
		}
	}()
	return w.work(ctx)
}

// Close ends the worker, and gives back what its instance holds. Where a run was left that
// is still going on, that is done when it has ended, and the model is kept as long.
func (w *Worker) Close(model *Shared, release func() error) (err error) {
	if w.broken {
		model.lose()
		w.release = func() {
			_ = release() // nobody is there to be told
			model.find()
		}
	} else {
		err = release()
	}
	if w.begin != nil {
		close(w.begin)
		w.begin = nil
	}
	return err
}

// Shared is what the instances of a model share. It is given back when the model is closed
// and no run is left that uses it.
type Shared struct {
	mu     sync.Mutex // of all
	lost   int
	closed bool
	free   func() error
}

// NewShared makes one, with what gives it back.
func NewShared(free func() error) *Shared { return &Shared{free: free} }

// Check gives an error when it is closed.
func (s *Shared) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("the model: %w", ErrClosed)
	}
	return nil
}

// Close gives it back, now or with the last run that was left.
func (s *Shared) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.lost > 0 {
		return nil
	}
	return s.free()
}

// lose counts a run that was left.
func (s *Shared) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost++
}

// find counts one that has ended.
func (s *Shared) find() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost--
	if s.closed && s.lost == 0 {
		_ = s.free() // nobody is there to be told
	}
}

// Patiently does work that makes something and cannot be stopped. When the context ends
// it comes back; what is made later is discarded.
func Patiently[T any](ctx context.Context, work func() (T, error), discard func(T)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, context.Cause(ctx)
	}
	if ctx.Done() == nil {
		return work()
	}
	type made struct {
		it  T
		err error
	}
	ended := make(chan made, 1)
	go func() {
		it, err := work()
		ended <- made{it, err}
	}()
	select {
	case m := <-ended:
		return m.it, m.err
	case <-ctx.Done():
		go func() {
			if m := <-ended; m.err == nil {
				discard(m.it)
			}
		}()
		return none, context.Cause(ctx)
	}
}
