package cpu

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/npuctl/npuctl/bench/engine"
)

// A run that cannot be stopped is left: the worker is broken, and what it holds is given
// back when the run has ended after all, the model last.
func TestRunsThatAreLeft(t *testing.T) {
	goOn := make(chan struct{})
	var order []string
	freed := make(chan struct{})
	shared := NewShared(func() error {
		order = append(order, "model")
		close(freed)
		return nil
	})
	w := NewWorker(func(context.Context) error { <-goOn; return nil })
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	begin := time.Now()
	if err := w.Do(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if took := time.Since(begin); took < Patience || took > 10*Patience {
		t.Errorf("it was left after %v", took)
	}
	if err := w.Do(context.Background()); !errors.Is(err, engine.ErrBroken) {
		t.Errorf("%v", err)
	}
	if err := w.Close(shared, func() error { order = append(order, "instance"); return nil }); err != nil {
		t.Error(err)
	}
	if err := shared.Close(); err != nil || len(order) > 0 {
		t.Errorf("%v, %v was given back under a run", err, order)
	}
	if err := shared.Check(); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	close(goOn)
	<-freed
	if strings.Join(order, " ") != "instance model" {
		t.Errorf("given back: %v", order)
	}
}

// Errors and panics of the work are those of the run, wherever it is done.
func TestWorkThatFails(t *testing.T) {
	bad := errors.New("bad")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := NewWorker(func(context.Context) error { return bad })
	for _, c := range []context.Context{context.Background(), ctx, ctx} {
		if err := w.Do(c); !errors.Is(err, bad) {
			t.Errorf("%v", err)
		}
	}
	panics := NewWorker(func(context.Context) error { panic("worse") })
	if err := panics.Do(ctx); err == nil || !strings.Contains(err.Error(), "worse") {
		t.Errorf("%v", err)
	}
	shared := NewShared(func() error { return bad })
	for _, w := range []*Worker{w, panics} {
		if err := w.Close(shared, func() error { return nil }); err != nil {
			t.Error(err)
		}
	}
	if err := shared.Close(); !errors.Is(err, bad) {
		t.Errorf("%v", err)
	}
	if err := shared.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

// What comes too late is discarded.
func TestPatiently(t *testing.T) {
	goOn, discarded := make(chan struct{}), make(chan int)
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err := Patiently(ctx, func() (int, error) { <-goOn; return 7, nil }, func(n int) { discarded <- n })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	close(goOn)
	if n := <-discarded; n != 7 {
		t.Errorf("%d was discarded", n)
	}
	if n, err := Patiently(context.Background(), func() (int, error) { return 3, nil }, nil); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}
