package engine

import (
	"context"
	"sync/atomic"
	"time"
)

// patience is how long work may go on that was given up. Engines look at the context
// between nodes, and one node may take minutes.
const patience = 300 * time.Millisecond

// leash runs the work of one engine, and leaves work behind that does not end when it
// is given up. What such work holds cannot be taken from under it: whoever closes it
// asks [leash.isLoose] first. That leaks, in a process that is about to end.
type leash struct{ loose atomic.Bool }

// isLoose says whether work that was left behind may still be running.
func (l *leash) isLoose() bool { return l.loose.Load() }

// outcome is what work came to.
type outcome[R any] struct {
	result R
	err    error
	panic  any
}

// held does work until it ends, or the context does and patience with it.
func held[R any](ctx context.Context, l *leash, work func() (R, error)) (R, error) {
	if ctx.Done() == nil {
		return work()
	}
	ended := make(chan outcome[R], 1)
	go func() {
		var o outcome[R]
		defer func() {
			o.panic = recover()
			ended <- o
		}()
		o.result, o.err = work()
	}()
	select {
	case o := <-ended:
		return o.unpack()
	case <-ctx.Done():
	}
	select {
	case o := <-ended:
		return o.unpack()
	case <-time.After(patience):
		l.loose.Store(true)
		var none R
		return none, ctx.Err()
	}
}

// unpack gives what the work gave; a panic goes on in the caller's goroutine.
func (o outcome[R]) unpack() (R, error) {
	if o.panic != nil {
		panic(o.panic)
	}
	return o.result, o.err
}
