package infer

import (
	"slices"
	"strings"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// Info is what is known of a value. The zero Info, a tensor of undefined element
// type and unknown rank, says nothing.
type Info struct {
	Kind onnx.Kind
	// Elem is the element type of a tensor, or the key type of a map; Undefined when not known.
	Elem tensor.Type
	// Ranked says whether Dims holds: without it even the rank is unknown.
	Ranked  bool
	leftOut bool // an input that the call of a function leaves out
	void    bool // of what a sequence holds: it holds nothing, so anything is true of it
	// Dims are the sizes, outermost first. Not to be changed.
	Dims []Dim
	// Inner is what a sequence or an optional holds, or the values of a map; nil
	// when not known. Of a sequence it says what holds for every element, so dims
	// in which elements may differ are Unknown.
	Inner *Info

	values   []Value
	constant *onnx.Tensor // the stored tensor; its elements are read when somebody asks
}

// Tensor makes the Info of a tensor of known rank.
func Tensor(elem tensor.Type, dims ...Dim) Info {
	return Info{Elem: elem, Ranked: true, Dims: dims}
}

// WithValues is f with known elements, in row-major order.
func (f Info) WithValues(values ...Value) Info {
	f.values, f.constant = values, nil
	return f
}

// Values gives the elements of a small tensor in row-major order, as far as they
// are known; nil when they are not followed. Not to be changed.
func (f *Info) Values() []Value {
	if f.values != nil || f.constant == nil || !tracked(f.constant.Type(), int64(f.constant.Len())) {
		return f.values
	}
	// A tensor that cannot be read is an error to whoever needs its elements; here they are just not known.
	if d, err := f.constant.Dense(); err == nil {
		f.values = valuesOf(d)
	}
	return f.values
}

// HasValues says whether Values would give elements, without reading a stored tensor.
func (f *Info) HasValues() bool {
	return f.values != nil || f.constant != nil && tracked(f.constant.Type(), int64(f.constant.Len()))
}

// Shape gives the dims as numbers; ok is false when the rank or one of them is not known.
func (f *Info) Shape() (dims []int, ok bool) {
	if !f.Ranked {
		return nil, false
	}
	dims = make([]int, len(f.Dims))
	for i, d := range f.Dims {
		n, known := d.Known()
		if !known || int64(int(n)) != n {
			return nil, false
		}
		dims[i] = int(n)
	}
	return dims, true
}

// Count gives the number of elements.
func (f *Info) Count() Dim {
	if !f.Ranked {
		return Unknown()
	}
	return product(f.Dims)
}

// product multiplies numbers first: expressions are dearer.
func product(dims []Dim) Dim {
	number, symbolic := Const(1), Const(1)
	for _, d := range dims {
		if d.form == nil {
			number = number.Mul(d)
		} else {
			symbolic = symbolic.Mul(d)
		}
	}
	return symbolic.Mul(number)
}

// IsStatic says whether everything about the type is known: kind, element types and every dim as a number.
func (f *Info) IsStatic() bool {
	if f.Kind == onnx.KindTensor || f.Kind == onnx.KindSparseTensor {
		_, ok := f.Shape()
		return ok && f.Elem != tensor.Undefined
	}
	return f.Inner != nil && f.Inner.IsStatic()
}

// Type gives the type as ONNX declares it: numbers, names, and blanks for other
// expressions; nil when not even the element type is known.
func (f *Info) Type() *onnx.Type {
	t := &onnx.Type{Kind: f.Kind, Elem: f.Elem}
	switch f.Kind {
	case onnx.KindTensor, onnx.KindSparseTensor:
		if f.Elem == tensor.Undefined {
			return nil
		}
		t.Shape = f.shape()
		return t
	case onnx.KindSequence, onnx.KindOptional, onnx.KindMap:
		if f.Inner == nil {
			return nil
		}
		t.Inner = f.Inner.Type()
		if t.Inner == nil || f.Kind == onnx.KindMap && f.Elem == tensor.Undefined {
			return nil
		}
		return t
	}
	return nil
}

func (f *Info) shape() *onnx.Shape {
	if !f.Ranked {
		return nil
	}
	s := &onnx.Shape{Dims: make([]onnx.Dim, len(f.Dims))}
	for i, d := range f.Dims {
		if n, ok := d.Known(); ok {
			s.Dims[i] = onnx.Dim{Value: n, Known: true}
		} else if name, ok := d.Symbol(); ok {
			s.Dims[i] = onnx.Dim{Param: name}
		}
	}
	return s
}

// String gives the Info as people write it: FLOAT[batch,3], INT64[2]{batch,64}.
func (f *Info) String() string {
	inner := "?"
	if f.Inner != nil {
		inner = f.Inner.String()
	}
	switch f.Kind {
	case onnx.KindSequence:
		return "sequence(" + inner + ")"
	case onnx.KindOptional:
		return "optional(" + inner + ")"
	case onnx.KindMap:
		return "map(" + f.Elem.String() + "," + inner + ")"
	case onnx.KindOpaque:
		return "opaque"
	}
	text := f.Elem.String() + "[...]"
	if f.Ranked {
		text = f.Elem.String() + "[" + join(f.Dims) + "]"
	}
	if f.values != nil {
		text += "{" + join(f.values) + "}"
	}
	if f.Kind == onnx.KindSparseTensor {
		return "sparse(" + text + ")"
	}
	return text
}

func join[T interface{ String() string }](items []T) string {
	parts := make([]string, len(items))
	for i, item := range items {
		parts[i] = item.String()
	}
	return strings.Join(parts, ",")
}

// meet keeps what holds of both: it is the Info of a value that is either. A dim
// on which they differ comes out of fresh.
func (f *Info) meet(g *Info, fresh func() Dim) Info {
	switch {
	case f.void:
		return *g
	case g.void:
		return *f
	case f.Kind != g.Kind:
		return Info{}
	}
	out := Info{Kind: f.Kind}
	if f.Elem == g.Elem {
		out.Elem = f.Elem
	}
	if f.Inner != nil && g.Inner != nil {
		inner := f.Inner.meet(g.Inner, Unknown)
		out.Inner = &inner
	}
	if !f.Ranked || !g.Ranked || len(f.Dims) != len(g.Dims) {
		return out
	}
	out.Ranked, out.Dims = true, slices.Clone(f.Dims)
	for i, d := range out.Dims {
		if !d.Equal(g.Dims[i]) {
			out.Dims[i] = fresh()
		}
	}
	if f.HasValues() && g.HasValues() {
		out.values = meetValues(f.Values(), g.Values())
	}
	return out
}

// typeless says whether not even the kind of value is known.
func (f *Info) typeless() bool {
	return f.Kind == onnx.KindTensor && f.Elem == tensor.Undefined && f.Inner == nil
}

// sameType says whether f and g know the same of types and shapes.
func (f *Info) sameType(g *Info) bool {
	if f.Kind != g.Kind || f.Elem != g.Elem || f.Ranked != g.Ranked || f.void != g.void || (f.Inner == nil) != (g.Inner == nil) {
		return false
	}
	if f.Inner != nil && !f.Inner.sameType(g.Inner) {
		return false
	}
	return slices.EqualFunc(f.Dims, g.Dims, func(a, b Dim) bool {
		return a.Equal(b) || a.IsUnknown() && b.IsUnknown()
	})
}

func meetValues(a, b []Value) []Value {
	if len(a) != len(b) {
		return nil
	}
	out := make([]Value, len(a))
	for i := range a {
		if a[i].Equal(b[i]) {
			out[i] = a[i]
		}
	}
	return out
}
