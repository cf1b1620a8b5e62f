package benchmark

import (
	"context"
	"fmt"
	"sync"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx/compare"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// rounds is how often each client sends every request while answers are compared.
const rounds = 8

// verify has every target compare what requests get alone and among others.
func (b *bench) verify(ctx context.Context, w *workload) error {
	if !b.Verify {
		return nil
	}
	clients := 8
	for _, n := range b.Load.Concurrency {
		clients = max(clients, n)
	}
	for i, t := range w.list {
		if t.verify == nil {
			return fault.New(fault.Usage, "--verify compares what the executor does, which --raw leaves out").With("leave one of them out")
		}
		b.say("comparing answers of %s under load with those of single requests", b.Models[i])
		n, err := t.verify(ctx, clients)
		if err != nil {
			return err
		}
		b.verified += n
	}
	return nil
}

// verify sends every set alone, and then all of them from many clients at a time, and
// holds each answer against that of its set alone.
func (x *executed) verify(ctx context.Context, clients int) (compared int64, err error) {
	alone := make([][]engine.Buffer, len(x.sets.list))
	c := newClient()
	for i := range x.sets.list {
		if _, err := x.send(ctx, &c, i); err != nil {
			return 0, fmt.Errorf("%s, alone: %w", x.sets.list[i].name, err)
		}
		alone[i] = kept(c.payload.Outputs)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var together sync.WaitGroup
	var mu sync.Mutex
	for k := range clients {
		together.Go(func() {
			n, err := x.compareAll(ctx, k, alone)
			mu.Lock()
			compared += n
			mu.Unlock()
			if err != nil {
				stop(err)
			}
		})
	}
	together.Wait()
	return compared, context.Cause(ctx)
}

// compareAll is what one client does.
func (x *executed) compareAll(ctx context.Context, first int, alone [][]engine.Buffer) (compared int64, err error) {
	c := newClient()
	for k := range rounds * len(alone) {
		if ctx.Err() != nil {
			return compared, ctx.Err()
		}
		i := (first + k) % len(alone)
		if _, err := x.send(ctx, &c, i); err != nil {
			return compared, fmt.Errorf("%s, among others: %w", x.sets.list[i].name, err)
		}
		for o := range c.payload.Outputs {
			if err := x.same(o, alone[i][o], c.payload.Outputs[o]); err != nil {
				return compared, fault.New(fault.Goal, "--verify: %s gets another answer among others than alone: output %q: %w", x.sets.list[i].name, x.model.OutputPort(o).Name, err)
			}
		}
		compared++
	}
	return compared, nil
}

// kept copies outputs out of the memory that the next request uses again.
func kept(outputs []engine.Buffer) []engine.Buffer {
	list := make([]engine.Buffer, len(outputs))
	for i, b := range outputs {
		list[i] = engine.Buffer{Shape: append([]int64{}, b.Shape...), Bytes: append([]byte(nil), b.Bytes...), Strings: append([]string(nil), b.Strings...)}
	}
	return list
}

// same holds an output against that of the request alone: floats within the tolerance of
// their type, as the order of sums may differ with the size of a batch.
func (x *executed) same(o int, want, got engine.Buffer) error {
	kind := x.model.OutputPort(o).Type
	w, err := tensorOf(kind, want)
	if err != nil {
		return err
	}
	g, err := tensorOf(kind, got)
	if err != nil {
		return err
	}
	if r := compare.Values(w, g, compare.Options{}); !r.Equal {
		return fmt.Errorf("%s", r)
	}
	return nil
}

func tensorOf(kind tensor.Type, b engine.Buffer) (*tensor.Dense, error) {
	dims := make([]int, len(b.Shape))
	for i, n := range b.Shape {
		dims[i] = int(n)
	}
	if kind == tensor.String {
		return tensor.Make(b.Strings, dims...)
	}
	return tensor.FromRaw(kind, dims, b.Bytes)
}
