package infer

import (
	"slices"

	"github.com/npuctl/npuctl/onnx"
)

// Declare writes what is known of v into its type: numbers, bare names of the
// model, and blanks for other expressions. A value of which nothing is known
// loses its type, unless it is the output of a graph: there a declaration stays
// where inference knows no better, names of dims included, for it is part of the
// model's signature. That goes for a caller's own sizes of inputs as well: a number
// that the model declares holds for every size that it lets open.
func (i *Inference) Declare(v *onnx.Value) {
	f := i.Of(v)
	t := f.Type()
	if v.IsOutput() {
		t = i.refine(v.Type, f, t)
	}
	if !sameType(v.Type, t) {
		v.Type = t
	}
}

// refine fills the gaps of t, the type of f, from a declared type that f does not contradict.
func (i *Inference) refine(declared *onnx.Type, f *Info, t *onnx.Type) *onnx.Type {
	switch {
	case t == nil:
		return declared
	case declared == nil || declared.Kind != t.Kind || declared.Elem != t.Elem:
		return t
	case declared.Inner != nil && f.Inner != nil:
		refined := *declared
		refined.Inner = i.refine(declared.Inner, f.Inner, t.Inner)
		return &refined
	case t.Shape == nil:
		return declared
	case declared.Shape == nil || len(declared.Shape.Dims) != len(t.Shape.Dims):
		return declared.WithShape(t.Shape)
	}
	s := &onnx.Shape{Dims: slices.Clone(t.Shape.Dims)}
	for k, d := range declared.Shape.Dims {
		if i.keepsDeclared(d, f.Dims[k]) {
			s.Dims[k] = onnx.Dim{Value: d.Value, Known: d.Known, Param: d.Param}
		}
	}
	return declared.WithShape(s)
}

// keepsDeclared says whether a declared dim tells more than what was found, or
// labels it, and does not contradict it.
func (i *Inference) keepsDeclared(declared onnx.Dim, found Dim) bool {
	_, number := found.Known()
	if number || i.misnamed(declared, found) {
		return false
	}
	return declared.Known || declared.Param != ""
}

func sameType(a, b *onnx.Type) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Kind != b.Kind || a.Elem != b.Elem || (a.Shape == nil) != (b.Shape == nil) {
		return false
	}
	if a.Kind == onnx.KindOpaque {
		return true
	}
	if (a.Inner != nil || b.Inner != nil) && !sameType(a.Inner, b.Inner) {
		return false
	}
	return a.Shape == nil || slices.EqualFunc(a.Shape.Dims, b.Shape.Dims, func(d, e onnx.Dim) bool {
		return d.Known == e.Known && d.Value == e.Value && d.Param == e.Param
	})
}
