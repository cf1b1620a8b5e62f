// Package ort is the engine of ONNX Runtime on the CPU.
//
// A run is one call into the library: inputs are read where the caller wrote them, outputs
// where ONNX Runtime left them, and what a run needs besides is kept from the run before
// as long as the shapes are the same.
package ort

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/bench/engine/cpu"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/onnxruntime"
	"github.com/npuctl/npuctl/internal/suggest"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// Options say how ONNX Runtime runs models.
type Options struct {
	// Library is its shared library, or the folder that it lies in; "" looks for it.
	Library string
	// Threads is how many share the work of an operator; 0 is one for each core. With a
	// session for each instance each has as many.
	Threads int
	// InterOpThreads is how many operators may run at the same time; 0 and 1 run one after
	// the other.
	InterOpThreads int
	// Level is how far the graph may be rewritten: one of [Levels]; "" is all.
	Level string
	// SessionPerInstance gives each instance a session, with weights and threads of its
	// own. Without it all instances of a model share one.
	SessionPerInstance bool
	// NoSpinning has threads without work sleep at once, instead of looking for more.
	NoSpinning bool
}

var levels = map[string]onnxruntime.Optimization{
	"none": onnxruntime.OptimizeNone, "basic": onnxruntime.OptimizeBasic,
	"extended": onnxruntime.OptimizeExtended, "all": onnxruntime.OptimizeAll,
}

// Levels are the levels of optimisation, each with what the one before does.
func Levels() []string { return []string{"none", "basic", "extended", "all"} }

// ort is an opened library.
type ort struct {
	library *onnxruntime.Library
	options Options
	session onnxruntime.Options
}

// New opens the library. One that is not there is a fault of the machine, with the
// remedy; options that there are not are faults of usage.
func New(o Options) (engine.Engine, error) {
	level := o.Level
	if level == "" {
		level = "all"
	}
	optimization, ok := levels[level]
	if !ok {
		return nil, fault.New(fault.Usage, "there is no level of optimisation %q", o.Level).With("%s", suggest.Text(o.Level, Levels()))
	}
	if o.Threads < 0 || o.InterOpThreads < 0 {
		return nil, fault.New(fault.Usage, "%d threads, %d between operators: they are not below 0", o.Threads, o.InterOpThreads)
	}
	path, _, err := onnxruntime.Find(o.Library)
	if err != nil {
		return nil, fault.New(fault.Missing, "%w", err)
	}
	library, err := onnxruntime.Open(path)
	if err != nil {
		return nil, fault.New(fault.Missing, "%w", err)
	}
	e := &ort{library: library, options: o, session: onnxruntime.Options{
		IntraOpThreads: o.Threads, InterOpThreads: o.InterOpThreads, Optimization: optimization}}
	if o.NoSpinning {
		e.session.Config = map[string]string{"session.intra_op.allow_spinning": "0", "session.inter_op.allow_spinning": "0"}
	}
	return e, nil
}

// About gives the version of the library.
func (e *ort) About() engine.About {
	return engine.About{Name: "ort", Version: "ONNX Runtime " + e.library.Version(), Device: "CPU", Devices: 1}
}

// Close ends the use of the library.
func (e *ort) Close() error { return e.library.Close() }

// Open makes a session of an ONNX file.
func (e *ort) Open(ctx context.Context, path string) (engine.Model, error) {
	if err := cpu.CheckKind(path); err != nil {
		return nil, err
	}
	if err := checkFile(path); err != nil {
		return nil, err
	}
	m := &model{engine: e, path: filepath.Clean(path)}
	session, err := cpu.Patiently(ctx, m.newSession, func(s *onnxruntime.Session) { s.Close() })
	if err != nil {
		return nil, err
	}
	m.session, m.Shared = session, cpu.NewShared(session.Close)
	if err := m.describe(); err != nil {
		session.Close()
		return nil, fault.New(fault.Input, "%s: %w", path, err)
	}
	return m, nil
}

// checkFile says in clearer words than the library's what is wrong with a path.
func checkFile(path string) error {
	info, err := os.Stat(path)
	var system *fs.PathError
	switch {
	case errors.As(err, &system):
		return fault.New(fault.Input, "%s: %w", path, system.Err)
	case err != nil:
		return fault.New(fault.Input, "%s: %w", path, err)
	case info.IsDir():
		return fault.New(fault.Input, "%s is a folder; give an .onnx file", path)
	}
	return nil
}

// model is an opened file. Its session is that of its instances, or with a session for
// each that of the first.
type model struct {
	*cpu.Shared     // the session
	engine          *ort
	path            string
	session         *onnxruntime.Session
	inputs, outputs []engine.Port

	mu   sync.Mutex
	lent bool // an instance has the session for itself
}

func (m *model) newSession() (*onnxruntime.Session, error) {
	s, err := m.engine.library.NewSession(m.path, m.engine.session)
	if err != nil {
		return nil, fault.New(fault.Input, "%w", err)
	}
	return s, nil
}

// describe reads the signature. Inputs that have a default stand behind the others.
func (m *model) describe() error {
	for _, list := range []struct {
		infos    []onnxruntime.Info
		into     *[]engine.Port
		what     string
		optional bool
	}{
		{m.session.Inputs(), &m.inputs, "input", false},
		{m.session.OverridableInitializers(), &m.inputs, "input", true},
		{m.session.Outputs(), &m.outputs, "output", false},
	} {
		for _, info := range list.infos {
			if info.Kind != onnxruntime.KindTensor {
				return fmt.Errorf("%s %q is a %v, and only tensors can be run here", list.what, info.Name, info.Kind)
			}
			*list.into = append(*list.into, engine.Port{Name: info.Name, Type: info.Elem, Dims: info.Shape, Optional: list.optional})
		}
	}
	return nil
}

// Inputs are those of the graph, those with a default last.
func (m *model) Inputs() []engine.Port { return m.inputs }

// Outputs are those of the graph.
func (m *model) Outputs() []engine.Port { return m.outputs }

// Gears returns nil: ONNX Runtime takes any size that the dims allow.
func (m *model) Gears() *engine.Gears { return nil }

// NewInstance makes an instance, with a session of its own if the options say so.
func (m *model) NewInstance(p engine.Placement) (engine.Instance, error) {
	if err := cpu.CheckPlacement(p); err != nil {
		return nil, err
	}
	if err := m.Check(); err != nil {
		return nil, err
	}
	session, giveBack, err := m.sessionFor()
	if err != nil {
		return nil, err
	}
	binding, err := session.NewBinding()
	if err != nil {
		return nil, errors.Join(err, giveBack())
	}
	i := &instance{Inputs: cpu.NewInputs(m.inputs), made: time.Now(), model: m, giveBack: giveBack, binding: binding}
	i.give, i.leave = i.giveInput, i.leaveInput
	i.worker = cpu.NewWorker(binding.Run)
	return i, nil
}

// sessionFor gives the session of a new instance, and what ends its use. The one by which
// the signature was read serves an instance first.
func (m *model) sessionFor() (s *onnxruntime.Session, giveBack func() error, err error) {
	if !m.engine.options.SessionPerInstance {
		return m.session, func() error { return nil }, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lent {
		if s, err = m.newSession(); err != nil {
			return nil, nil, err
		}
		return s, s.Close, nil
	}
	m.lent = true
	return m.session, func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.lent = false
		return nil
	}, nil
}

type instance struct {
	*cpu.Inputs
	model    *model
	giveBack func() error // of the session
	binding  *onnxruntime.Binding
	worker   *cpu.Worker
	made     time.Time // which times count from
	closed   bool
	// The methods as values, made once.
	give  func(int, engine.Buffer, bool) error
	leave func(int) error
}

// Run has ONNX Runtime compute the outputs.
func (i *instance) Run(ctx context.Context) (engine.Times, error) {
	begin := time.Since(i.made)
	if err := i.Take(i.give, i.leave); err != nil {
		return engine.Times{}, err
	}
	if err := i.worker.Do(ctx); err != nil {
		return engine.Times{}, err
	}
	return engine.Times{Compute: time.Since(i.made) - begin}, nil
}

func (i *instance) giveInput(at int, b engine.Buffer, changed bool) error {
	if i.model.inputs[at].Type == tensor.String {
		return i.binding.SetStrings(at, b.Shape, b.Strings)
	}
	if !changed {
		return nil
	}
	return i.binding.SetInput(at, b.Shape, b.Bytes)
}

func (i *instance) leaveInput(at int) error {
	i.binding.Omit(at)
	return nil
}

// Output gives what the last run computed, where ONNX Runtime left it.
func (i *instance) Output(at int) engine.Buffer {
	t := i.binding.Output(at)
	return engine.Buffer{Shape: t.Shape, Bytes: t.Bytes, Strings: t.Strings}
}

// Close gives back what the instance holds.
func (i *instance) Close() error {
	if i.closed {
		return nil
	}
	i.closed = true
	i.Inputs.Close()
	return i.worker.Close(i.model.Shared, func() error { return errors.Join(i.binding.Close(), i.giveBack()) })
}
