package ensemble

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/bench/ensemble/part"
	"github.com/npuctl/npuctl/bench/executor"
	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// parts runs the batches of a Python model that package part computes: on each instance
// one request after another, as Python does. A request that fails does so alone.
type parts struct {
	part      part.Part
	config    *configgen.Config
	signature *executor.Signature
	failed    atomic.Int64
}

func newParts(p part.Part, c *configgen.Config, s *executor.Signature) *parts {
	return &parts{part: p, config: c, signature: s}
}

// partPayload is what a request of parts carries.
type partPayload struct {
	inputs, outputs []engine.Buffer
	given           []executor.Given // used again and again
	took            time.Duration
	err             error
}

// prepare makes a call of a payload, or says why it does not fit the model.
func (p *parts) prepare(c *executor.Call, load *partPayload) error {
	size := -1
	load.given, load.err, load.took = load.given[:0], nil, 0
	for i := range p.config.Input {
		in, b := &p.config.Input[i], &load.inputs[i]
		if b.Shape == nil {
			continue
		}
		item := b.Shape
		if p.config.MaxBatchSize > 0 {
			switch {
			case len(item) == 0:
				return fmt.Errorf("input %q is a scalar: the first dim must be the number of items", in.Name)
			case size >= 0 && int64(size) != item[0]:
				return fmt.Errorf("input %q has %d items, another has %d", in.Name, item[0], size)
			}
			size, item = int(item[0]), item[1:]
		}
		if err := checkRoom(in.Name, in.DataType, b); err != nil {
			return err
		}
		load.given = append(load.given, executor.Given{Input: i, Shape: item})
	}
	class, err := p.signature.Admit(size, load.given)
	if err != nil {
		return err
	}
	if len(load.outputs) != len(p.config.Output) {
		load.outputs = make([]engine.Buffer, len(p.config.Output))
	}
	c.Size, c.Class, c.Data = max(1, size), class, load
	return nil
}

// checkRoom holds that a tensor has the elements of its shape.
func checkRoom(name string, kind configgen.DataType, b *engine.Buffer) error {
	shape := make([]int, len(b.Shape))
	for i, d := range b.Shape {
		shape[i] = int(d)
	}
	count, err := tensor.Count(shape)
	if err != nil {
		return fmt.Errorf("input %q: %w", name, err)
	}
	have, want, unit := int64(len(b.Bytes)), int64(count)*kind.Bytes(), "bytes"
	if kind == configgen.TypeString {
		have, want, unit = int64(len(b.Strings)), int64(count), "strings"
	}
	if have != want {
		return fmt.Errorf("input %q: a tensor of the shape %s takes %d %s, and there are %d", name, executor.ShapeText(b.Shape), want, unit, have)
	}
	return nil
}

// Run answers the requests of a batch.
func (p *parts) Run(b *executor.Batch, _ int) error {
	for _, r := range b.Requests {
		load, ok := r.Data.(*partPayload)
		if !ok {
			return fmt.Errorf("a request carries %T, and not that of a part", r.Data)
		}
		begin := time.Now()
		if load.err = p.answer(load); load.err != nil {
			p.failed.Add(1)
		}
		load.took = time.Since(begin)
	}
	return nil
}

// answer computes one request. What panics on it fails it alone.
func (p *parts) answer(load *partPayload) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it panicked: %v", r)
		}
	}()
	return p.part.Run(load.inputs, load.outputs)
}

// stagesOf are the stages of a request of parts that was answered.
func (load *partPayload) stagesOf(r *executor.Request) (s executor.Stages) {
	if r.Joined == 0 || r.Started == r.Ended {
		s.Queue = r.Ended - r.Arrived
		return s
	}
	s.Queue, s.Batching, s.Compute = r.Joined-r.Arrived, r.Started-r.Joined, load.took
	s.Respond = r.Ended - r.Started - s.Compute
	return s
}

// fitted gives a tensor the shape for an input: a batch of 1 comes or goes where the model
// has another rank. The shape is written to scratch where it changes.
func fitted(b engine.Buffer, dims []int64, hasBatch bool, scratch *[]int64) engine.Buffer {
	if b.Shape == nil {
		return b
	}
	switch rank := len(b.Shape); {
	case !hasBatch && rank == len(dims)+1 && b.Shape[0] == 1:
		b.Shape = b.Shape[1:]
	case hasBatch && rank == len(dims):
		*scratch = append(append((*scratch)[:0], 1), b.Shape...)
		b.Shape = *scratch
	}
	return b
}
