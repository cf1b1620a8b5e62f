package infer

import (
	"slices"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// sequenceOperators make and read sequences and optionals.
var sequenceOperators = []operator{
	{name: "SequenceConstruct", since: 11, rule: sequenceConstruct},
	{name: "SequenceEmpty", since: 11, rule: sequenceEmpty},
	{name: "SequenceInsert", since: 11, rule: sequenceInsert},
	{name: "SequenceErase", since: 11, rule: identity},
	{name: "SequenceAt", since: 11, rule: sequenceAt},
	{name: "SequenceLength", since: 11, rule: scalarOf(tensor.Int64)},
	{name: "SplitToSequence", since: 11, rule: splitToSequence},
	{name: "ConcatFromSequence", since: 11, rule: concatFromSequence},
	{name: "Optional", since: 15, rule: optional},
	{name: "OptionalGetElement", since: 15, rule: optionalGetElement},
	{name: "OptionalHasElement", since: 15, rule: optionalHasElement},
}

// scalarOf makes the rule of an operator that gives one number of a type.
func scalarOf(t tensor.Type) rule {
	return func(c *call) { c.set(0, Tensor(t)) }
}

// setSequence says what every element of the sequence that is output 0 is.
func (c *call) setSequence(inner Info) {
	inner.values, inner.constant = nil, nil
	c.set(0, Info{Kind: onnx.KindSequence, Inner: &inner})
}

func sequenceConstruct(c *call) {
	inner := *c.in(0)
	for i := 1; i < len(c.inputs); i++ {
		inner = inner.meet(c.in(i), Unknown)
	}
	c.setSequence(inner)
}

func sequenceEmpty(c *call) {
	c.setSequence(Info{Elem: c.typeAttribute("dtype", tensor.Float32), void: true})
}

func sequenceInsert(c *call) {
	if inner := c.in(0).Inner; inner != nil {
		c.setSequence(inner.meet(c.in(1), Unknown))
	}
}

func sequenceAt(c *call) {
	if inner := c.in(0).Inner; inner != nil {
		c.set(0, element(*inner))
	}
}

// element is what one element taken out of a sequence is known to be.
func element(inner Info) Info {
	inner.void = false
	return inner
}

// splitToSequence cuts along an axis: into pieces of one size but perhaps the
// last, pieces of listed sizes, or single positions whose dim may go.
func splitToSequence(c *call) {
	inner := *c.in(0)
	dims, ok := c.dims(0)
	if !ok {
		c.setSequence(inner)
		return
	}
	axis, ok := c.axis("axis", 0, len(dims))
	if !ok {
		return
	}
	inner.Dims = slices.Clone(dims)
	switch {
	case c.has(1):
		inner.Dims[axis] = c.pieceSize(dims[axis])
	case c.int("keepdims", 1) != 0:
		inner.Dims[axis] = Const(1)
	default:
		inner.Dims = slices.Delete(inner.Dims, axis, axis+1)
	}
	c.setSequence(inner)
}

// pieceSize is the size that all pieces of a SplitToSequence share.
func (c *call) pieceSize(whole Dim) Dim {
	sizes := c.elements(1)
	if len(sizes) == 0 {
		return Unknown()
	}
	first := sizes[0].Dim()
	if list, ok := c.dims(1); ok && len(list) == 0 {
		if _, divides := whole.quotient(first); !divides {
			return Unknown()
		}
		return first
	}
	for _, v := range sizes[1:] {
		if !v.Dim().Equal(first) {
			return Unknown()
		}
	}
	return first
}

// concatFromSequence joins the elements along an axis that is there or new.
func concatFromSequence(c *call) {
	inner := c.in(0).Inner
	if inner == nil {
		return
	}
	c.setElem(0, inner.Elem)
	if !inner.Ranked {
		return
	}
	out := slices.Clone(inner.Dims)
	if c.int("new_axis", 0) != 0 {
		if axis, ok := c.axis("axis", 0, len(out)+1); ok {
			c.setDims(0, slices.Insert(out, axis, Unknown())...)
		}
		return
	}
	if axis, ok := c.axis("axis", 0, len(out)); ok {
		out[axis] = Unknown()
		c.setDims(0, out...)
	}
}

// optional wraps its input, or nothing of a stated type.
func optional(c *call) {
	inner := Info{}
	if c.has(0) {
		inner = *c.in(0)
	} else if a := c.attribute("type"); a != nil {
		inner = c.declared(a.Type(), false)
	}
	c.set(0, Info{Kind: onnx.KindOptional, Inner: &inner})
}

// optionalGetElement unwraps; since opset 18 what is no optional is its own element.
func optionalGetElement(c *call) {
	f := *c.in(0)
	if f.Kind == onnx.KindOptional {
		if f.Inner == nil {
			return
		}
		f = *f.Inner
	}
	c.set(0, f)
}

// optionalHasElement is decided for what is left out, and for what is no optional.
func optionalHasElement(c *call) {
	f := Tensor(tensor.Bool)
	switch in := c.in(0); {
	case !c.has(0):
		f = f.WithValues(boolean(false))
	case !in.typeless() && in.Kind != onnx.KindOptional:
		f = f.WithValues(boolean(true))
	}
	c.set(0, f)
}
