// Package engine runs models with whichever engine there is: the built-in
// interpreter, which is always there, ONNX Runtime, which may be, or, for models that
// are compiled, a device behind AscendCL.
//
// All are behind one small interface, [Engine]: load a model, run it from values
// by name to values by name. They know nothing of each other. [Open] gives the one
// that was asked for, [Judge] the best one to hold others against.
package engine

import (
	"context"
	"fmt"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/suggest"
	"github.com/npuctl/npuctl/onnx/eval"
)

// Engine makes models ready to run.
type Engine interface {
	// Name says which engine it is, with its version, for reports.
	Name() string
	// Load makes a model ready. The source must not change until the program is closed.
	Load(ctx context.Context, s Source) (Program, error)
	Close() error
}

// Device is what engines are that run on a device.
type Device interface {
	Engine
	// Chip is the device's, such as "Ascend910B3"; "" when it does not say.
	Chip() string
	// Emulated says that no device had a part in what the engine gives.
	Emulated() bool
}

// Program is a model that is ready to run.
type Program interface {
	// Run computes all outputs from inputs, both by name. Inputs that have a default,
	// and optional ones, may be left out. When the context ends it comes back soon, with
	// the context's error; an engine in the midst of a long operator is left behind then,
	// and the inputs must not be changed any more.
	Run(ctx context.Context, inputs map[string]eval.Value) (map[string]eval.Value, error)
	Close() error
}

// Source is a model: a file, or, when Path is empty, the contents of one.
type Source struct {
	Path  string
	Bytes []byte
}

// Options says what an engine may use.
type Options struct {
	// Threads is how many cores a run may use; 0 means all.
	Threads int
	// MaxBytes bounds the intermediate results of the built-in interpreter; 0 is its
	// default. ONNX Runtime has no such limit.
	MaxBytes int64
	// Library is the ONNX Runtime library, or the folder it lies in; "" looks for it.
	Library string
	// AscendLibrary is the library of AscendCL, or the folder it lies in; "" looks for
	// it. Device is the number of the NPU to use.
	AscendLibrary string
	Device        int
}

// The engines by the names that flags give them.
const (
	Reference   = "ref"
	ONNXRuntime = "ort"
	Ascend      = "ascend"
)

// Names lists the engines that [Open] knows.
func Names() []string { return append(GraphEngines(), Ascend) }

// GraphEngines lists those that run ONNX models as they are.
func GraphEngines() []string { return []string{Reference, ONNXRuntime} }

// Open gives the engine of that name. ONNX Runtime that cannot be had is a fault of
// the machine, with the remedy.
func Open(name string, o Options) (Engine, error) {
	switch name {
	case Reference:
		return newReference(o), nil
	case ONNXRuntime:
		return openONNXRuntime(o)
	case Ascend:
		return openAscend(o)
	}
	return nil, fault.New(fault.Usage, "--engine %s: there is no such engine", name).With("%s", suggest.Text(name, Names()))
}

// Judge gives the engine by which to hold a rewritten model against its original:
// ONNX Runtime, which had no part in the rewriting, or, when it is not there, the
// built-in interpreter; independent says which of the two kinds it is. A library
// that was asked for by name and cannot be used is an error.
func Judge(o Options) (e Engine, independent bool, err error) {
	ort, err := openONNXRuntime(o)
	if err == nil {
		return ort, true, nil
	}
	if o.Library != "" || environmentNamesLibrary() {
		return nil, false, err
	}
	return newReference(o), false, nil
}

// missing says that a program got no value for an input it needs.
func missing(name string) error { return fmt.Errorf("input %q is missing", name) }
