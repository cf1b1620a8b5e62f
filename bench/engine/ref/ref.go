// Package ref is the engine of the built-in interpreter: it is always there, needs nothing
// of the machine, and is slow. What it computes is what others are held against.
package ref

import (
	"context"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/bench/engine/cpu"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// Options says what the interpreter may use.
type Options struct {
	// Threads is how many cores a run may use; 0 is all.
	Threads int
	// MaxBytes bounds the intermediate results of a run; 0 is [eval.DefaultMaxBytes].
	MaxBytes int64
	// Version is that of npuctl, for reports; "" is "built in".
	Version string
}

type interpreter struct{ options Options }

// New makes the engine.
func New(o Options) engine.Engine { return interpreter{o} }

// About says that it is the interpreter.
func (e interpreter) About() engine.About {
	version := "built-in interpreter"
	if e.options.Version != "" {
		version += " of npuctl " + e.options.Version
	}
	return engine.About{Name: "ref", Version: version, Device: "CPU", Devices: 1}
}

// Close returns nil.
func (interpreter) Close() error { return nil }

// Open reads the model and looks for kernels of all its operators.
func (e interpreter) Open(ctx context.Context, path string) (engine.Model, error) {
	file, s, err := cpu.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	program, err := eval.Prepare(file, eval.Options{Threads: e.options.Threads, MaxBytes: e.options.MaxBytes})
	if err != nil {
		file.Close()
		return nil, fault.New(fault.Input, "%s: %w", path, err)
	}
	return &model{Shared: cpu.NewShared(file.Close), program: program, signature: s}, nil
}

type model struct {
	*cpu.Shared // the file
	program     *eval.Program
	signature   *cpu.Signature
}

// Inputs are those of the graph; weights that old files list among them are not.
func (m *model) Inputs() []engine.Port { return m.signature.Inputs }

// Outputs are those of the graph.
func (m *model) Outputs() []engine.Port { return m.signature.Outputs }

// Gears returns nil: the interpreter takes any size that the dims allow.
func (m *model) Gears() *engine.Gears { return nil }

// NewInstance makes an instance: the memory of its inputs. The program is shared.
func (m *model) NewInstance(p engine.Placement) (engine.Instance, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	if err := cpu.CheckPlacement(p); err != nil {
		return nil, err
	}
	i := &instance{Inputs: cpu.NewInputs(m.signature.Inputs), made: time.Now(), model: m, given: map[string]eval.Value{},
		views: make([]*tensor.Dense, len(m.signature.Inputs)), outputs: make([]engine.Buffer, len(m.signature.Outputs))}
	i.worker = cpu.NewWorker(i.compute)
	return i, nil
}

type instance struct {
	*cpu.Inputs
	model   *model
	worker  *cpu.Worker
	made    time.Time // which times count from
	given   map[string]eval.Value
	views   []*tensor.Dense // of the inputs' memory
	results map[string]eval.Value
	outputs []engine.Buffer
	closed  bool
}

// Run interprets the model.
func (i *instance) Run(ctx context.Context) (engine.Times, error) {
	begin := time.Since(i.made)
	if err := i.Take(i.give, i.leave); err != nil {
		return engine.Times{}, err
	}
	if err := i.worker.Do(ctx); err != nil {
		return engine.Times{}, err
	}
	return engine.Times{Compute: time.Since(i.made) - begin}, i.keep()
}

// give has the program see the memory of an input.
func (i *instance) give(at int, b engine.Buffer, changed bool) error {
	p := &i.model.signature.Inputs[at]
	if changed || !staysView(p.Type) {
		view, err := viewOf(p.Type, b)
		if err != nil {
			return err
		}
		i.views[at] = view
	}
	i.given[p.Name] = i.views[at]
	return nil
}

// staysView says whether arrays of a type always stand on the memory that they are made
// of. The others must be made for every run.
func staysView(t tensor.Type) bool { return t.Bits() >= 8 && t != tensor.Bool || t == tensor.String }

func viewOf(t tensor.Type, b engine.Buffer) (*tensor.Dense, error) {
	shape := make([]int, len(b.Shape))
	for i, d := range b.Shape {
		shape[i] = int(d)
	}
	if t == tensor.String {
		return tensor.Make(b.Strings, shape...)
	}
	return tensor.FromRaw(t, shape, b.Bytes)
}

func (i *instance) leave(at int) error {
	delete(i.given, i.model.signature.Inputs[at].Name)
	return nil
}

func (i *instance) compute(ctx context.Context) (err error) {
	i.results, err = i.model.program.Run(ctx, i.given, nil)
	return err
}

// keep takes the results. Those that stand on the memory of an input are copied: it may be
// written to while they are still read.
func (i *instance) keep() error {
	for at := range i.outputs {
		p := &i.model.signature.Outputs[at]
		d, ok := i.results[p.Name].(*tensor.Dense)
		if !ok || d.Type() != p.Type {
			return fmt.Errorf("output %q is no tensor of type %v", p.Name, p.Type)
		}
		b := engine.Buffer{Shape: make([]int64, d.Rank())}
		for axis, n := range d.Shape() {
			b.Shape[axis] = int64(n)
		}
		if p.Type == tensor.String {
			b.Strings = tensor.Data[string](d)
			if i.isInput(b.Strings) {
				b.Strings = slices.Clone(b.Strings)
			}
		} else {
			b.Bytes = d.Raw()
			if i.Overlaps(b.Bytes) {
				b.Bytes = slices.Clone(b.Bytes)
			}
		}
		i.outputs[at] = b
	}
	i.results = nil
	return nil
}

// isInput says whether strings are the memory of an input, or a part of it.
func (i *instance) isInput(s []string) bool {
	if len(s) == 0 {
		return false
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(s)))
	for _, v := range i.views {
		if v == nil || v.Type() != tensor.String || v.Len() == 0 {
			continue
		}
		all := tensor.Data[string](v)
		from := uintptr(unsafe.Pointer(unsafe.SliceData(all)))
		if at >= from && at < from+uintptr(len(all))*unsafe.Sizeof("") {
			return true
		}
	}
	return false
}

// Output gives what the last run computed.
func (i *instance) Output(at int) engine.Buffer { return i.outputs[at] }

// Close lets go of the memory.
func (i *instance) Close() error {
	if i.closed {
		return nil
	}
	i.closed = true
	i.Inputs.Close()
	return i.worker.Close(i.model.Shared, func() error { return nil })
}
