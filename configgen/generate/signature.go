package generate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/modelfile"
	"github.com/npuctl/npuctl/internal/modelstats"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/infer"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnxpass"
)

// open is the size of a dim that is not known.
const open = -1

// dim is one axis of a tensor.
type dim struct {
	size int64 // or open
	// name is what the file calls the axis; of outputs it may be an expression.
	name string
	// computed is an expression over input dims that the operators amount to, in
	// npu_ge's language; "" when there is none. Of outputs only.
	computed string
}

// port is one input or output.
type port struct {
	name string
	kind configgen.DataType
	dims []dim
}

// where writes an axis for messages.
func (p port) where(axis int) string { return fmt.Sprintf("%s[%d]", p.name, axis) }

// signature is what a config must know of a model.
type signature struct {
	path            string
	inputs, outputs []port
	// batch says that the first axis of everything is one and the same open size.
	batch bool
	// noBatch says why it is not; "" when it is.
	noBatch string
	// left are outputs that are no tensors.
	left []string
	// sides are the files beside the model that hold tensors, relative to its folder.
	sides []string
}

// types are the element types that the server knows.
var types = map[tensor.Type]configgen.DataType{
	tensor.Bool: configgen.TypeBool, tensor.String: configgen.TypeString,
	tensor.Uint8: configgen.TypeUint8, tensor.Uint16: configgen.TypeUint16, tensor.Uint32: configgen.TypeUint32, tensor.Uint64: configgen.TypeUint64,
	tensor.Int8: configgen.TypeInt8, tensor.Int16: configgen.TypeInt16, tensor.Int32: configgen.TypeInt32, tensor.Int64: configgen.TypeInt64,
	tensor.Float16: configgen.TypeFP16, tensor.BFloat16: configgen.TypeBF16, tensor.Float32: configgen.TypeFP32, tensor.Float64: configgen.TypeFP64,
}

// reader gathers a signature.
type reader struct {
	*signature
	inference *infer.Inference
	// fixed are the names of dims that got sizes.
	fixed map[string]int64
}

// readSignature opens a model, fixes the dims that sizes fix, and computes what its
// outputs are.
func readSignature(ctx context.Context, path string, sizes onnxpass.Specialization) (*signature, error) {
	m, err := modelfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	r := &reader{signature: &signature{path: path}, fixed: map[string]int64{}}
	_, r.sides = modelstats.Outside(m)
	declared := map[*onnx.Value]*onnx.Type{}
	for _, v := range m.Graph.Inputs() {
		declared[v] = v.Type
	}
	if err := onnxpass.Specialize(m, sizes); err != nil {
		return nil, err
	}
	if err := m.Graph.Sort(); err != nil {
		return nil, fault.New(fault.Input, "%s: %w", path, err)
	}
	r.inference = infer.New(m, infer.Options{StaleDeclarations: specializes(sizes)})
	if err := r.inference.Run(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fault.New(fault.Input, "%s: %w", path, err)
	}
	var first []infer.Dim
	for _, v := range m.Graph.Inputs() {
		if v.Initializer() != nil {
			continue // it has a value; the server's clients need not give one
		}
		p, err := r.input(v, declared[v])
		if err != nil {
			return nil, err
		}
		r.inputs = append(r.inputs, p)
		if dims := r.inference.Of(v).Dims; len(dims) > 0 {
			first = append(first, dims[0])
		}
	}
	if len(r.inputs) == 0 {
		return nil, fault.New(fault.Input, "%s: the model has no inputs, and the server serves none without", path)
	}
	for _, v := range m.Graph.Outputs() {
		if err := r.output(v); err != nil {
			return nil, err
		}
	}
	if len(r.outputs) == 0 {
		return nil, fault.New(fault.Input, "%s: no output is a tensor", path)
	}
	r.findBatch(m, first)
	return r.signature, nil
}

func (r *reader) input(v *onnx.Value, declared *onnx.Type) (p port, err error) {
	if !v.Type.IsTensor() || v.Type.Shape == nil {
		return p, fault.New(fault.Input, "%s: the input %s is %s: the server takes tensors of known rank only", r.path, v.Name(), v.Type).
			With("give its shape with --input-shape %s:…", v.Name())
	}
	p.name = v.Name()
	if p.kind = types[v.Type.Elem]; p.kind == configgen.TypeInvalid {
		return p, r.noType("input", v.Name(), v.Type.Elem)
	}
	for i, d := range v.Type.Shape.Dims {
		axis := dim{size: open, name: d.Param}
		if declared != nil && declared.Shape != nil && i < len(declared.Shape.Dims) {
			axis.name = declared.Shape.Dims[i].Param
		}
		if d.Known {
			axis.size = d.Value
			if axis.name != "" {
				r.fixed[axis.name] = d.Value
			}
		}
		p.dims = append(p.dims, axis)
	}
	return p, r.noEmpty("input", p)
}

func (r *reader) noType(side, name string, elem tensor.Type) error {
	return fault.New(fault.Input, "%s: the %s %s has elements of %s, a type that the server does not know", r.path, side, name, elem).
		With("cast it in the model")
}

// noEmpty refuses a dim of 0, which the server does not take in a config.
func (r *reader) noEmpty(side string, p port) error {
	for i, d := range p.dims {
		if d.size == 0 {
			return fault.New(fault.Input, "%s: %s %s is empty: dim %d is 0, which no config can say", r.path, side, p.name, i)
		}
	}
	return nil
}

func (r *reader) output(v *onnx.Value) error {
	info := r.inference.Of(v)
	isTensor := info.Kind == onnx.KindTensor
	elem := info.Elem
	if v.Type != nil {
		isTensor = v.Type.IsTensor()
		if v.Type.Elem != tensor.Undefined {
			elem = v.Type.Elem
		}
	}
	if !isTensor {
		r.left = append(r.left, v.Name())
		return nil
	}
	p := port{name: v.Name(), kind: types[elem]}
	if p.kind == configgen.TypeInvalid {
		return r.noType("output", p.name, elem)
	}
	var known []onnx.Dim
	isRanked := v.Type != nil && v.Type.Shape != nil
	if isRanked {
		known = v.Type.Shape.Dims
	}
	if !isRanked && !info.Ranked {
		return fault.New(fault.Input, "%s: nothing says how many dims the output %s has", r.path, p.name).
			With("declare its shape in the export, or fix open dims with --batch, --dim and --input-shape")
	}
	rank := len(known)
	if !isRanked {
		rank = len(info.Dims)
	}
	for i := range rank {
		axis := dim{size: open}
		if i < len(known) {
			axis = r.declaredDim(known[i])
		}
		if info.Ranked && len(info.Dims) == rank {
			axis = axis.learn(info.Dims[i])
		}
		p.dims = append(p.dims, axis)
	}
	r.outputs = append(r.outputs, p)
	return r.noEmpty("output", p)
}

// declaredDim is a dim of an output as the file declares it, with the sizes that its
// name got.
func (r *reader) declaredDim(d onnx.Dim) dim {
	if d.Known {
		return dim{size: d.Value}
	}
	if size, ok := r.fixed[d.Param]; ok {
		return dim{size: size, name: d.Param}
	}
	return dim{size: open, name: d.Param}
}

// learn adds what the operators tell. What the file declares as a number stays: the
// server's backends believe it.
func (a dim) learn(d infer.Dim) dim {
	if n, ok := d.Known(); ok && (a.size == open || a.name != "") {
		a.size = n
	}
	if a.size == open && !d.IsUnknown() {
		a.computed = expressionOf(d)
	}
	return a
}

// expressionOf writes a dim in npu_ge's language, in which / rounds down by itself.
func expressionOf(d infer.Dim) string {
	return strings.ReplaceAll(strings.ReplaceAll(d.String(), "floor(", "("), " ", "")
}

// findBatch says whether the first axis of all inputs and outputs is one batch.
func (r *reader) findBatch(m *onnx.Model, first []infer.Dim) {
	r.noBatch = r.whyNoBatch(m, first)
	r.batch = r.noBatch == ""
}

func (r *reader) whyNoBatch(m *onnx.Model, first []infer.Dim) string {
	if len(r.left) > 0 {
		return fmt.Sprintf("output %s is no tensor", r.left[0])
	}
	for _, in := range r.inputs {
		switch {
		case len(in.dims) == 0:
			return fmt.Sprintf("input %s is a scalar", in.name)
		case in.dims[0].size != open:
			return fmt.Sprintf("the first dim of input %s is %d", in.name, in.dims[0].size)
		case in.dims[0].name != r.inputs[0].dims[0].name:
			return fmt.Sprintf("the first dims of inputs %s and %s have different names", r.inputs[0].name, in.name)
		}
	}
	batch := r.inputs[0].dims[0].name
	for _, out := range r.outputs {
		switch {
		case len(out.dims) == 0:
			return fmt.Sprintf("output %s is a scalar", out.name)
		case out.dims[0].size != open:
			return fmt.Sprintf("the first dim of output %s is %d", out.name, out.dims[0].size)
		}
		info := r.inference.Of(outputOf(m, out.name))
		if info.Ranked && len(info.Dims) > 0 && slices.ContainsFunc(first, info.Dims[0].Equal) {
			continue
		}
		if batch == "" || out.dims[0].name != batch {
			return fmt.Sprintf("the first dim of output %s is not that of the inputs", out.name)
		}
	}
	return ""
}

func outputOf(m *onnx.Model, name string) *onnx.Value {
	for _, v := range m.Graph.Outputs() {
		if v.Name() == name {
			return v
		}
	}
	return nil
}
