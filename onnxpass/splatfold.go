package onnxpass

import (
	"slices"
	"strings"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/schema"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// shapeOnly lists operators that give every element of their first input
// somewhere in the result, and nothing else: of a repeated value they make the
// same value, repeated.
var shapeOnly = map[string]bool{
	"Identity": true, "Reshape": true, "Flatten": true, "Squeeze": true, "Unsqueeze": true,
	"Expand": true, "Tile": true, "Transpose": true, "Slice": true,
}

// repeatsOneValue says whether n's only result is large and holds one value over
// and over; it remembers the value.
func (f *folder) repeatsOneValue(n *onnx.Node) bool {
	if n.CanonicalDomain() != "" || len(n.Outputs()) != 1 || n.Output(0) == nil {
		return false
	}
	size, ok := f.size(n.Output(0))
	if !ok || size <= splatBytes {
		return false
	}
	switch {
	case n.Is("ConstantOfShape"):
		f.splat[n.Output(0)] = fillOf(n)
	case shapeOnly[n.OpType]:
		if scalar := f.splatOf(n.Input(0)); scalar != nil && canFill(n, scalar.Type()) {
			f.splat[n.Output(0)] = scalar
		}
	}
	return f.splat[n.Output(0)] != nil
}

// canFill says whether n's opset has a ConstantOfShape that makes elements of type t.
func canFill(n *onnx.Node, t tensor.Type) bool {
	o, ok := schema.Lookup("", "ConstantOfShape", n.Opset())
	return ok && slices.Contains(o.AllowedTypes(&o.Outputs[0]), schemaType(t))
}

// schemaType is the name of a tensor's type as the operator schemas write it.
func schemaType(t tensor.Type) string { return "tensor(" + strings.ToLower(t.String()) + ")" }

// splatOf is the value that v repeats; one that is a scalar in all but rank counts.
func (f *folder) splatOf(v *onnx.Value) *tensor.Dense {
	if v == nil {
		return nil
	}
	if scalar := f.splat[v]; scalar != nil {
		return scalar
	}
	d, ok := f.known[v].(*tensor.Dense)
	if !ok {
		d = constantDense(v, 64)
	}
	if d == nil || d.Len() != 1 {
		return nil
	}
	scalar, err := d.Reshape()
	if err != nil {
		return nil
	}
	return scalar
}

// fillOf is what a ConstantOfShape fills its result with: the float 0 unless it says otherwise.
func fillOf(n *onnx.Node) *tensor.Dense {
	a := n.Attribute("value")
	if a == nil {
		return tensor.Scalar(float32(0))
	}
	if a.Tensor() == nil {
		return nil
	}
	d, err := a.Tensor().Dense()
	if err != nil || d.Len() != 1 {
		return nil
	}
	scalar, err := d.Reshape()
	if err != nil {
		return nil
	}
	return scalar
}

// putConstantOfShape makes a ConstantOfShape the maker of v.
func (f *folder) putConstantOfShape(n *onnx.Node, v *onnx.Value, scalar *tensor.Dense) {
	dims, _ := f.knownDims(v)
	shape := make([]int64, len(dims))
	for i, d := range dims {
		shape[i] = int64(d)
	}
	g := n.Graph()
	value, _ := scalar.Reshape(1)
	c := g.Add("ConstantOfShape", []*onnx.Value{f.intsConstant(g, v.Name()+"_shape", shape)},
		[]string{f.model.FreshName(v.Name() + "_fill")}, onnx.TensorAttribute("value", value))
	c.Name = n.Name
	f.infer.Set(c.Output(0), *f.infer.Of(v))
	g.Forward(n, v, c.Output(0))
}
