package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/onnxruntime"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// runtimeEngine is ONNX Runtime with its optimisations off: the model as it is written.
type runtimeEngine struct {
	library *onnxruntime.Library
	threads int
	leash   leash
}

func environmentNamesLibrary() bool { return os.Getenv(onnxruntime.EnvironmentVariable) != "" }

func openONNXRuntime(o Options) (Engine, error) {
	path, _, err := onnxruntime.Find(o.Library)
	if err != nil {
		return nil, fault.New(fault.Missing, "%w", err)
	}
	library, err := onnxruntime.Open(path)
	if err != nil {
		return nil, fault.New(fault.Missing, "%w", err)
	}
	return &runtimeEngine{library: library, threads: o.Threads}, nil
}

// Name returns the library's name and version.
func (e *runtimeEngine) Name() string { return "ONNX Runtime " + e.library.Version() }

// Close ends the use of the library.
func (e *runtimeEngine) Close() error {
	if e.leash.isLoose() {
		return nil
	}
	return e.library.Close()
}

// exactIntegers keeps ONNX Runtime on x86 from its faster product of 8-bit integers,
// which saturates in between and is off by more than rounding.
var exactIntegers = map[string]string{"session.x64quantprecision": "1"}

// Load makes a session.
func (e *runtimeEngine) Load(ctx context.Context, s Source) (Program, error) {
	session, err := held(ctx, &e.leash, func() (*onnxruntime.Session, error) { return e.session(s) })
	if err != nil {
		return nil, err
	}
	return &runtimeProgram{session, &e.leash}, nil
}

func (e *runtimeEngine) session(s Source) (*onnxruntime.Session, error) {
	options := onnxruntime.Options{IntraOpThreads: e.threads, Config: exactIntegers}
	if s.Path != "" {
		return e.library.NewSession(filepath.Clean(s.Path), options)
	}
	return e.library.NewSessionFromBytes(s.Bytes, options)
}

type runtimeProgram struct {
	session *onnxruntime.Session
	leash   *leash
}

// Close releases the session.
func (p *runtimeProgram) Close() error {
	if p.leash.isLoose() {
		return nil
	}
	return p.session.Close()
}

// Run computes all outputs.
func (p *runtimeProgram) Run(ctx context.Context, inputs map[string]eval.Value) (map[string]eval.Value, error) {
	given := make(map[string]onnxruntime.Value, len(inputs))
	for name, v := range inputs {
		given[name] = toRuntime(v)
	}
	for _, in := range p.session.Inputs() {
		if _, ok := given[in.Name]; !ok && in.Kind != onnxruntime.KindOptional {
			return nil, missing(in.Name)
		}
	}
	results, err := held(ctx, p.leash, func() ([]onnxruntime.Value, error) { return p.session.Run(ctx, given, nil) })
	if err != nil {
		return nil, err
	}
	out := map[string]eval.Value{}
	for i, info := range p.session.Outputs() {
		if out[info.Name], err = fromRuntime(results[i], &info.Type); err != nil {
			return nil, fmt.Errorf("output %q: %w", info.Name, err)
		}
	}
	return out, nil
}

// toRuntime turns a value into ONNX Runtime's form, in which an optional is what it holds.
func toRuntime(v eval.Value) onnxruntime.Value {
	switch v := v.(type) {
	case *tensor.Dense:
		return v
	case *eval.Sequence:
		s := make(onnxruntime.Sequence, len(v.Items))
		for i, item := range v.Items {
			s[i] = toRuntime(item)
		}
		return s
	case *eval.Map:
		return &onnxruntime.Map{Keys: v.Keys, Values: v.Values}
	case *eval.Optional:
		return toRuntime(v.Value)
	}
	return nil
}

// fromRuntime is the way back; the declared type tells an optional.
func fromRuntime(v onnxruntime.Value, t *onnxruntime.Type) (eval.Value, error) {
	if t != nil && t.Kind == onnxruntime.KindOptional {
		if v == nil {
			return &eval.Optional{}, nil
		}
		inner, err := fromRuntime(v, t.Inner)
		return &eval.Optional{Value: inner}, err
	}
	switch v := v.(type) {
	case *tensor.Dense:
		return v, nil
	case *onnxruntime.Map:
		return &eval.Map{Keys: v.Keys, Values: v.Values}, nil
	case onnxruntime.Sequence:
		return sequenceFrom(v, t)
	}
	return nil, fmt.Errorf("a value of type %T", v)
}

func sequenceFrom(v onnxruntime.Sequence, t *onnxruntime.Type) (eval.Value, error) {
	s := &eval.Sequence{}
	var inner *onnxruntime.Type
	if t != nil && t.Inner != nil {
		inner = t.Inner
		s.Elem = inner.Elem
	}
	for _, item := range v {
		x, err := fromRuntime(item, inner)
		if err != nil {
			return nil, err
		}
		s.Items = append(s.Items, x)
	}
	return s, nil
}
