// Package compiledmodel shows an .om file as the rest of npuctl sees models: inputs
// and outputs with names, types and sizes, and the gears that it can run in.
//
// A compiled model has no graph that anybody but the device could run. So
// [File.Model] gives an ONNX model without nodes: enough to make inputs for it, to
// read them from files, and to say what is missing.
package compiledmodel

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/om"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// File is what an .om says of itself.
type File struct {
	Path      string
	Signature *om.Signature
	// Chip is what it was compiled for, such as "Ascend910B3"; "" when it does not say.
	Chip string
	// Emulated says that npuctl's own emulator made the file: it holds nothing for a
	// device.
	Emulated bool
	// Open says that shapes are open until a run: the model has no gears, and dims
	// that are not fixed.
	Open bool

	names map[place]string // of open dims, where something tells them
}

// Is says whether a path names a compiled model, by its ending.
func Is(path string) bool {
	return slices.ContainsFunc([]string{".om", ".om2", ".exeom"}, func(ending string) bool { return strings.HasSuffix(path, ending) })
}

// Open reads the signature of an .om. Whatever is wrong with the file is a fault of
// the input, which begins with the file's name.
func Open(path string) (*File, error) {
	file, err := om.Open(path)
	if err != nil {
		var system *fs.PathError
		if errors.As(err, &system) && system.Path == path {
			return nil, fault.New(fault.Input, "%s: %w", path, system.Err)
		}
		return nil, fault.New(fault.Input, "%w", err)
	}
	defer file.Close()
	if file.Kind != om.KindOM {
		return nil, fault.New(fault.Input, "%s cannot be run: it is %s", path, file.Kind.Statement())
	}
	summary, err := file.Summary()
	if err != nil {
		return nil, fault.New(fault.Input, "%w", err)
	}
	signature, err := file.Signature()
	if err != nil {
		return nil, fault.New(fault.Input, "%w", err)
	}
	f := &File{Path: path, Signature: signature, Chip: summary.SoC, Emulated: summary.Emulated}
	f.Open = signature.Gears == nil && (summary.Dynamic || slices.ContainsFunc(signature.Inputs, hasOpenDim))
	if err := f.checkSizes(summary.Needs); err != nil {
		return nil, err
	}
	f.names = recordedNames(path)
	return f, nil
}

func hasOpenDim(t om.Tensor) bool {
	return slices.ContainsFunc(t.Dims, func(n int64) bool { return n < 0 })
}

// OutputName is what the ONNX model called an output, as far as the file still knows.
func OutputName(t om.Tensor) string {
	if t.Tensor != "" {
		return t.Tensor
	}
	return t.Name
}

// Model is the signature as an ONNX model without nodes. Dims that are open, those
// that gears set among them, have names: see [File.dimName].
func (f *File) Model() (*onnx.Model, error) { return f.model(f.Signature.Inputs) }

// InGear is the signature with the sizes of a gear, by its number.
func (f *File) InGear(gear int) (*onnx.Model, error) {
	shapes, err := f.GearShapes(gear)
	if err != nil {
		return nil, err
	}
	inputs := slices.Clone(f.Signature.Inputs)
	for i := range inputs {
		inputs[i].Dims = shapes[i]
	}
	return f.model(inputs)
}

// The versions of the model that carries a signature: old enough for everybody.
const (
	irVersion = 10
	opset     = 21
)

func (f *File) model(inputs []om.Tensor) (*onnx.Model, error) {
	m := onnx.NewModel(irVersion, opset)
	for _, in := range inputs {
		t, err := typeOf(in, f.dimName)
		if err != nil {
			return nil, fault.New(fault.Input, "%s: input %q: %w", f.Path, in.Name, err)
		}
		m.Graph.AddInput(in.Name, t)
	}
	for _, out := range f.Signature.Outputs {
		t, err := typeOf(out, placeName)
		if err != nil {
			return nil, fault.New(fault.Input, "%s: output %q: %w", f.Path, out.Name, err)
		}
		// The outputs of a model need a node that makes them; nobody runs this one.
		made := m.Graph.Add("Compiled", nil, []string{OutputName(out)}).Output(0)
		made.Type = t
		m.Graph.AddOutput(made)
	}
	return m, nil
}

func typeOf(t om.Tensor, dimName func(tensor string, axis int) string) (*onnx.Type, error) {
	element, ok := tensor.ParseType(t.DType)
	if !ok {
		return nil, fmt.Errorf("its element type is %s, which ONNX has not", t.DType)
	}
	shape := &onnx.Shape{}
	for axis, n := range t.Dims {
		if n < 0 {
			shape.Dims = append(shape.Dims, onnx.Dim{Param: dimName(t.Name, axis)})
			continue
		}
		shape.Dims = append(shape.Dims, onnx.KnownDim(int(n)))
	}
	return &onnx.Type{Kind: onnx.KindTensor, Elem: element, Shape: shape}, nil
}
