package cpu

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/modelfile"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/infer"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// Signature is what an ONNX file says of its inputs and outputs.
type Signature struct {
	Inputs, Outputs []engine.Port
	// InputNames and OutputNames have the names of dims that are open, "" where one has
	// none. Dims of one name are equal.
	InputNames, OutputNames [][]string
}

// CheckKind refuses files that are no ONNX models, by their ending.
func CheckKind(path string) error {
	if strings.EqualFold(filepath.Ext(path), ".om") {
		return fault.New(fault.Usage, "%s is compiled for an NPU, and no CPU runs it", path).With("give the .onnx that it was made of, or --engine ascend")
	}
	return nil
}

// Open opens an ONNX file and reads its signature.
func Open(ctx context.Context, path string) (*onnx.Model, *Signature, error) {
	if err := CheckKind(path); err != nil {
		return nil, nil, err
	}
	m, err := modelfile.Open(path)
	if err != nil {
		return nil, nil, err
	}
	s, err := read(ctx, m)
	if err != nil {
		m.Close()
		return nil, nil, fault.New(fault.Input, "%s: %w", path, err)
	}
	return m, s, nil
}

// read takes the declared types. Outputs that declare none have them inferred.
func read(ctx context.Context, m *onnx.Model) (*Signature, error) {
	s := &Signature{}
	for _, v := range m.Graph.Inputs() {
		if v.Constant() != nil {
			continue // old files list their weights
		}
		p, names, err := port(v, v.Type)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", v.Name(), err)
		}
		p.Optional = v.Initializer() != nil
		s.Inputs, s.InputNames = append(s.Inputs, p), append(s.InputNames, names)
	}
	var inference *infer.Inference
	for _, v := range m.Graph.Outputs() {
		t := v.Type
		if !isTyped(t) {
			if inference == nil {
				inference = infer.New(m, infer.Options{})
				if err := inference.Run(ctx); err != nil {
					return nil, err
				}
			}
			t = inferred(inference.Of(v))
		}
		p, names, err := port(v, t)
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", v.Name(), err)
		}
		s.Outputs, s.OutputNames = append(s.Outputs, p), append(s.OutputNames, names)
	}
	return s, nil
}

func isTyped(t *onnx.Type) bool {
	return t != nil && (t.Kind != onnx.KindTensor || t.Elem != tensor.Undefined)
}

// inferred is the type that was inferred; nil when nothing was.
func inferred(f *infer.Info) *onnx.Type {
	if f == nil || f.Kind != onnx.KindTensor || f.Elem == tensor.Undefined {
		return nil
	}
	t := &onnx.Type{Kind: onnx.KindTensor, Elem: f.Elem}
	if !f.Ranked {
		return t
	}
	t.Shape = &onnx.Shape{}
	for _, d := range f.Dims {
		var own onnx.Dim
		if n, ok := d.Known(); ok {
			own = onnx.KnownDim(int(n))
		} else if name, ok := d.Symbol(); ok {
			own.Param = name
		}
		t.Shape.Dims = append(t.Shape.Dims, own)
	}
	return t
}

func port(v *onnx.Value, t *onnx.Type) (p engine.Port, names []string, err error) {
	switch {
	case !isTyped(t):
		return p, nil, fmt.Errorf("its type is not known; the export should declare it")
	case t.Kind != onnx.KindTensor:
		return p, nil, fmt.Errorf("it is no tensor, and only tensors can be run here")
	}
	p = engine.Port{Name: v.Name(), Type: t.Elem}
	if t.Shape == nil {
		return p, nil, nil
	}
	p.Dims = []int64{}
	for _, d := range t.Shape.Dims {
		size := int64(-1)
		if d.Known {
			size = d.Value
		}
		p.Dims, names = append(p.Dims, size), append(names, d.Param)
	}
	return p, names, nil
}
