package onnxpass

import (
	"slices"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/infer"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// constantDense gives the elements of a value that is a constant of at most
// maxBytes; nil otherwise. Tensors that cannot be read count as not constant:
// whoever must have them says what is wrong.
func constantDense(v *onnx.Value, maxBytes int64) *tensor.Dense {
	t := v.Constant()
	if t == nil || t.Bytes() > maxBytes {
		return nil
	}
	d, err := t.Dense()
	if err != nil {
		return nil
	}
	return d
}

// smallConstant is the size in bytes up to which a pass looks at a constant's elements.
const smallConstant = 64 << 10

// constantInts gives the elements of a constant integer tensor.
func constantInts(v *onnx.Value) (values []int64, ok bool) {
	d := constantDense(v, smallConstant)
	if d == nil || !d.Type().IsInteger() && d.Type() != tensor.Bool {
		return nil, false
	}
	return d.Int64s()
}

// constantBool gives a constant truth value of one element.
func constantBool(v *onnx.Value) (known, value bool) {
	d := constantDense(v, 1)
	if d == nil || d.Type() != tensor.Bool || d.Len() != 1 {
		return false, false
	}
	return true, tensor.Data[bool](d)[0]
}

// ints gives the elements of an integer tensor that inference knows whole,
// whether it is stored or computed from shapes.
func (s *State) ints(v *onnx.Value) (values []int64, ok bool) {
	if v == nil {
		return nil, false
	}
	if values, ok := constantInts(v); ok {
		return values, true
	}
	return infoInts(s.infer.Of(v))
}

// infoInts gives the elements of an integer or boolean tensor that are all known.
func infoInts(info *infer.Info) (values []int64, ok bool) {
	entries := info.Values()
	if entries == nil {
		return nil, false
	}
	values = make([]int64, len(entries))
	for i, e := range entries {
		if values[i], ok = e.Int(); !ok {
			return nil, false
		}
	}
	return values, true
}

// denseOf makes the array of an integer or boolean tensor whose shape and
// elements inference knows whole; nil when it does not.
func denseOf(info *infer.Info) *tensor.Dense {
	if info.Kind != onnx.KindTensor || !info.Elem.IsInteger() && info.Elem != tensor.Bool {
		return nil
	}
	dims, ok := info.Shape()
	if !ok {
		return nil
	}
	values, ok := infoInts(info)
	if !ok {
		return nil
	}
	d, err := denseFromInts(info.Elem, values, dims)
	if err != nil {
		return nil
	}
	return d
}

// attributeOrInts gives a list that is an attribute in old versions of an
// operator and input i in later ones. present is false when the node leaves it
// out, known when its elements are not known.
func (s *State) attributeOrInts(n *onnx.Node, attribute string, i int) (values []int64, present, known bool) {
	if values, ok := n.Ints(attribute); ok {
		return values, true, true
	}
	if n.Input(i) == nil {
		return nil, false, true
	}
	values, known = s.ints(n.Input(i))
	return values, true, known
}

// dims gives the dims of a value of known rank.
func (s *State) dims(v *onnx.Value) (dims []infer.Dim, ok bool) {
	info := s.infer.Of(v)
	return info.Dims, info.Ranked
}

// knownDims gives the dims of a value whose shape is all numbers.
func (s *State) knownDims(v *onnx.Value) (dims []int, ok bool) {
	return s.infer.Of(v).Shape()
}

// sameShape says whether two values surely have the same dims at every run.
func (s *State) sameShape(v, w *onnx.Value) bool {
	a, okA := s.dims(v)
	b, okB := s.dims(w)
	return okA && okB && slices.EqualFunc(a, b, infer.Dim.Equal)
}

// sameType says whether two values surely have the same element type.
func (s *State) sameType(v, w *onnx.Value) bool {
	a, b := s.infer.Of(v).Elem, s.infer.Of(w).Elem
	return a == b && a != tensor.Undefined
}

// rank gives a value's number of dims.
func (s *State) rank(v *onnx.Value) (rank int, ok bool) {
	ds, ok := s.dims(v)
	return len(ds), ok
}

// normalizeAxes brings axes into 0..rank; ok is false when one lies outside.
func normalizeAxes(axes []int64, rank int) (out []int, ok bool) {
	out = make([]int, len(axes))
	for i, a := range axes {
		if a < 0 {
			a += int64(rank)
		}
		if a < 0 || a >= int64(rank) {
			return nil, false
		}
		out[i] = int(a)
	}
	return out, true
}

func allEqual(values []int64, want int64) bool {
	return !slices.ContainsFunc(values, func(v int64) bool { return v != want })
}

// onlyUse says whether u is the only reader of v, graph outputs included.
func onlyUse(v *onnx.Value) bool { return len(v.Uses()) == 1 && !v.IsOutput() }
