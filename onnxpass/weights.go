package onnxpass

import (
	"fmt"
	"math"
	"slices"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// weight is a constant that a fusion computes with: its elements, or, when a
// ConstantOfShape makes it, the one value it repeats.
type weight struct {
	elem  tensor.Type
	shape []int
	data  []float64 // one element when splat
	splat bool
}

// maxVector bounds the per-channel constants that fusions look at.
const maxVector = 1 << 20

// weightOf reads a float constant; nil when v is none.
func (s *State) weightOf(v *onnx.Value) *weight {
	if v == nil {
		return nil
	}
	if t := v.Constant(); t != nil {
		d, err := t.Dense()
		if err != nil || !fusable(d.Type()) {
			return nil
		}
		data, ok := d.Float64s()
		if !ok {
			return nil
		}
		return &weight{elem: d.Type(), shape: d.Shape(), data: data}
	}
	p := v.Producer()
	if p == nil || !p.Is("ConstantOfShape") || p.HasReferences() {
		return nil
	}
	dims, ok := s.knownDims(v)
	scalar := fillOf(p)
	if !ok || scalar == nil || !fusable(scalar.Type()) {
		return nil
	}
	data, ok := scalar.Float64s()
	if !ok {
		return nil
	}
	return &weight{elem: scalar.Type(), shape: dims, data: data, splat: true}
}

// fusable lists the types whose weights may be computed anew: in float64, and
// rounded once.
func fusable(t tensor.Type) bool {
	return t == tensor.Float32 || t == tensor.Float64 || t == tensor.Float16 || t == tensor.BFloat16
}

func (w *weight) len() int {
	n, err := tensor.Count(w.shape)
	if err != nil {
		return 0
	}
	return n
}

// at is element i in row-major order.
func (w *weight) at(i int) float64 {
	if w.splat {
		return w.data[0]
	}
	return w.data[i]
}

// vector gives a constant as one number per channel: from a scalar, or from a
// tensor whose dims are 1 but for the channels' axis. rank and axis are those of
// the tensor it meets by broadcasting.
func (w *weight) vector(channels, rank, axis int) (v []float64, ok bool) {
	n := w.len()
	if n == 0 || channels > maxVector || len(w.shape) > rank {
		return nil, false
	}
	for k, d := range w.shape {
		if d != 1 && (k+rank-len(w.shape) != axis || d != channels) {
			return nil, false
		}
	}
	v = make([]float64, channels)
	for i := range v {
		v[i] = w.at(min(i, n-1))
	}
	return v, true
}

// isUniformVector says whether all numbers are the same.
func isUniformVector(v []float64) bool {
	return !slices.ContainsFunc(v, func(x float64) bool { return x != v[0] })
}

// scaled is w with every element multiplied by the factor that channel gives for
// its position. A splat stays one when all factors are the same, else it is
// refused: unfolding it would store what the file does not have. So is what the type
// cannot hold as precisely.
func (w *weight) scaled(factors []float64, channel func(i int) int) (*weight, bool) {
	out := &weight{elem: w.elem, shape: w.shape, splat: w.splat}
	if w.splat {
		if !isUniformVector(factors) {
			return nil, false
		}
		out.data = []float64{w.data[0] * factors[0]}
		return out, true
	}
	if w.underflows(factors, channel) {
		return nil, false
	}
	out.data = make([]float64, len(w.data))
	for i, x := range w.data {
		out.data[i] = x * factors[channel(i)]
	}
	return out, true
}

// fits says whether the type can hold every element: a product that overflows the
// weights' type need not overflow where the graph computes it.
func (w *weight) fits() bool {
	largest, ok := w.elem.LargestFinite()
	return ok && !slices.ContainsFunc(w.data, func(x float64) bool { return !(math.Abs(x) <= largest) })
}

// putWeight stores a weight in g, in the form it has.
func (s *State) putWeight(g *onnx.Graph, base string, w *weight) (*onnx.Value, error) {
	d, err := fromFloat64s(w.elem, w.data, w.storedShape()...)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", base, err)
	}
	if !w.splat {
		return s.constant(g, base, d), nil
	}
	shape := make([]int64, len(w.shape))
	for i, n := range w.shape {
		shape[i] = int64(n)
	}
	n := g.Add("ConstantOfShape", []*onnx.Value{s.intsConstant(g, base+"_shape", shape)},
		[]string{s.model.FreshName(base)}, onnx.TensorAttribute("value", d))
	s.infer.Node(n)
	return n.Output(0), nil
}

func (w *weight) storedShape() []int {
	if w.splat {
		return []int{1}
	}
	return w.shape
}

// fromFloat64s makes an array of any fusable type, rounding each element once.
func fromFloat64s(t tensor.Type, data []float64, shape ...int) (*tensor.Dense, error) {
	switch t {
	case tensor.Float64:
		return tensor.Make(data, shape...)
	case tensor.Float32:
		return tensor.Make(convertAll(data, func(x float64) float32 { return float32(x) }), shape...)
	case tensor.Float16:
		return tensor.Make(convertAll(data, tensor.F16FromFloat64), shape...)
	case tensor.BFloat16:
		return tensor.Make(convertAll(data, tensor.BF16FromFloat64), shape...)
	}
	return nil, fmt.Errorf("no weights of type %s", t)
}

func convertAll[T any](data []float64, convert func(float64) T) []T {
	out := make([]T, len(data))
	for i, x := range data {
		out[i] = convert(x)
	}
	return out
}
