package onnx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// Kind says what a value is: a tensor in most graphs.
type Kind int

// The kinds of a TypeProto.
const (
	KindTensor Kind = iota
	KindSparseTensor
	KindSequence
	KindOptional
	KindMap
	KindOpaque
)

// Type is the type of a value. Types are immutable; edits make new ones.
type Type struct {
	Kind  Kind
	Elem  tensor.Type // element type of a tensor; key type of a map
	Shape *Shape      // dims of a tensor; nil when even the rank is unknown
	Inner *Type       // what a sequence or an optional holds; the value type of a map

	opaque     []byte // the contents of an opaque type
	denotation string
}

// Shape is the list of a tensor's dims; an empty one is a scalar's.
type Shape struct{ Dims []Dim }

// Dim is one axis of a declared shape: a number, a name, or nothing known.
type Dim struct {
	Value      int64  // size when Known
	Known      bool   // Value holds
	Param      string // symbolic name, such as "batch", when not Known
	denotation string
}

// TensorType makes the type of a tensor of the given element type and known dims.
func TensorType(elem tensor.Type, dims ...int) *Type {
	s := &Shape{Dims: make([]Dim, len(dims))}
	for i, d := range dims {
		s.Dims[i] = KnownDim(d)
	}
	return &Type{Kind: KindTensor, Elem: elem, Shape: s}
}

// SequenceType makes the type of a sequence of inner.
func SequenceType(inner *Type) *Type { return &Type{Kind: KindSequence, Inner: inner} }

// OptionalType makes the type of an optional inner.
func OptionalType(inner *Type) *Type { return &Type{Kind: KindOptional, Inner: inner} }

// KnownDim is a dim of known size.
func KnownDim(n int) Dim { return Dim{Value: int64(n), Known: true} }

// String gives a dim as people write it: 3, batch, or ?.
func (d Dim) String() string {
	switch {
	case d.Known:
		return fmt.Sprint(d.Value)
	case d.Param != "":
		return d.Param
	}
	return "?"
}

// Ints gives the dims as numbers; ok is false when one of them is not known.
func (s *Shape) Ints() (dims []int, ok bool) {
	if s == nil {
		return nil, false
	}
	dims = make([]int, len(s.Dims))
	for i, d := range s.Dims {
		if !d.Known {
			return nil, false
		}
		dims[i] = int(d.Value)
	}
	return dims, true
}

// String gives the shape as [batch,3,224,224], or [...] when the rank is unknown.
func (s *Shape) String() string {
	if s == nil {
		return "[...]"
	}
	parts := make([]string, len(s.Dims))
	for i, d := range s.Dims {
		parts[i] = d.String()
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// String gives the type as FLOAT[batch,3], sequence(INT64[?]), map(STRING,FLOAT[]).
func (t *Type) String() string {
	if t == nil {
		return "?"
	}
	switch t.Kind {
	case KindTensor:
		return t.Elem.String() + t.Shape.String()
	case KindSparseTensor:
		return "sparse(" + t.Elem.String() + t.Shape.String() + ")"
	case KindSequence:
		return "sequence(" + t.Inner.String() + ")"
	case KindOptional:
		return "optional(" + t.Inner.String() + ")"
	case KindMap:
		return "map(" + t.Elem.String() + "," + t.Inner.String() + ")"
	}
	domain, name := t.OpaqueName()
	return "opaque(" + domain + "," + name + ")"
}

// OpaqueName is the domain and name of an opaque type.
func (t *Type) OpaqueName() (domain, name string) {
	return string(find(t.opaque, 1)), string(find(t.opaque, 2))
}

// IsTensor says whether t is the type of a dense tensor; false for nil.
func (t *Type) IsTensor() bool { return t != nil && t.Kind == KindTensor }

// WithShape is t with another shape; denotations stay where the rank does.
func (t *Type) WithShape(s *Shape) *Type {
	c := *t
	c.Shape = s
	if s != nil && t.Shape != nil && len(s.Dims) == len(t.Shape.Dims) {
		c.Shape = &Shape{Dims: slices.Clone(s.Dims)}
		for i := range c.Shape.Dims {
			c.Shape.Dims[i].denotation = t.Shape.Dims[i].denotation
		}
	}
	return &c
}
