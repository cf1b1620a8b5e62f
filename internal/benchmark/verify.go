package benchmark

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx/compare"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// rounds is how often each client sends every request while answers are compared.
const rounds = 8

// leastVerified is how many clients there are then at least.
const leastVerified = 8

// verifier knows how to get answers, to hold them against each other.
type verifier struct {
	sets    *requests
	outputs []output
	// client makes a client: a function that sends a set and gives its answer, which is
	// valid until its next call.
	client func() func(ctx context.Context, set int) ([]engine.Buffer, error)
}

// output is what must be known of an output to compare it.
type output struct {
	name string
	kind tensor.Type
}

// verify has every target compare what requests get alone and among others.
func (b *bench) verify(ctx context.Context, w *workload) error {
	if !b.Verify {
		return nil
	}
	clients := leastVerified
	for _, n := range b.Load.Concurrency {
		clients = max(clients, n)
	}
	for i, t := range w.list {
		if t.verifier == nil {
			return fault.New(fault.Usage, "--verify compares what the executor does, which --raw leaves out").With("leave one of them out")
		}
		b.say("comparing answers of %s under load with those of single requests", b.Models[i])
		n, err := t.verifier.run(ctx, clients)
		if err != nil {
			return err
		}
		b.verified += n
	}
	return nil
}

// run sends every set alone, and then all of them from many clients at a time, and holds
// each answer against that of its set alone. It counts the answers that it compared.
func (v *verifier) run(ctx context.Context, clients int) (compared int64, err error) {
	alone := make([][]engine.Buffer, len(v.sets.list))
	send := v.client()
	for i := range alone {
		answer, err := send(ctx, i)
		if err != nil {
			return 0, refused(ctx, fmt.Errorf("%s, alone: %w", v.sets.list[i].name, err))
		}
		alone[i] = kept(answer)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var together sync.WaitGroup
	var mu sync.Mutex
	for k := range clients {
		together.Go(func() {
			n, err := v.compareAll(ctx, k, alone)
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
func (v *verifier) compareAll(ctx context.Context, first int, alone [][]engine.Buffer) (compared int64, err error) {
	send := v.client()
	for k := range rounds * len(alone) {
		if ctx.Err() != nil {
			return compared, ctx.Err()
		}
		i := (first + k) % len(alone)
		answer, err := send(ctx, i)
		if err != nil {
			return compared, refused(ctx, fmt.Errorf("%s, among others: %w", v.sets.list[i].name, err))
		}
		for o := range answer {
			if err := v.outputs[o].same(alone[i][o], answer[o]); err != nil {
				return compared, fault.New(fault.Goal, "--verify: %s gets another answer among others than alone: output %q: %w", v.sets.list[i].name, v.outputs[o].name, err)
			}
		}
		compared++
	}
	return compared, nil
}

// refused gives the failure of a request a family: the model's, unless an engine knows
// better.
func refused(ctx context.Context, err error) error {
	var known *fault.Error
	if ctx.Err() != nil || errors.As(err, &known) {
		return err
	}
	return fault.New(fault.Input, "%w", err)
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
func (o output) same(want, got engine.Buffer) error {
	w, err := tensorOf(o.kind, want)
	if err != nil {
		return err
	}
	g, err := tensorOf(o.kind, got)
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
