package engine

import (
	"context"
	"fmt"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/eval"
)

// reference is the built-in interpreter.
type reference struct{ options eval.Options }

func newReference(o Options) reference {
	return reference{eval.Options{Threads: o.Threads, MaxBytes: o.MaxBytes}}
}

// Name returns "built-in interpreter".
func (reference) Name() string { return "built-in interpreter" }

// Close returns nil.
func (reference) Close() error { return nil }

// Load reads the model and looks for kernels of all its operators.
func (r reference) Load(_ context.Context, s Source) (Program, error) {
	m, err := open(s)
	if err != nil {
		return nil, fmt.Errorf("read the model: %w", err)
	}
	p, err := eval.Prepare(m, r.options)
	if err != nil {
		m.Close()
		return nil, err
	}
	return &interpreted{model: m, program: p}, nil
}

func open(s Source) (*onnx.Model, error) {
	if s.Path == "" {
		return onnx.Parse(s.Bytes, "")
	}
	return onnx.Open(s.Path)
}

type interpreted struct {
	model   *onnx.Model
	program *eval.Program
	leash   leash
}

// Run computes all outputs.
func (p *interpreted) Run(ctx context.Context, inputs map[string]eval.Value) (map[string]eval.Value, error) {
	given := make(map[string]eval.Value, len(inputs))
	for name, v := range inputs {
		if v != nil {
			given[name] = v
		}
	}
	return held(ctx, &p.leash, func() (map[string]eval.Value, error) { return p.program.Run(ctx, given, nil) })
}

// Close gives back the model's file.
func (p *interpreted) Close() error {
	if p.leash.isLoose() {
		return nil
	}
	return p.model.Close()
}
