package infer

import (
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// reduceOperators take axes together.
var reduceOperators = []operator{
	{name: "ReduceSum", since: 1, rule: reduction(13, add)},
	{name: "ReduceProd", since: 1, rule: reduction(18, multiply)},
	{name: "ReduceMax", since: 1, rule: reduction(18, maximum)},
	{name: "ReduceMin", since: 1, rule: reduction(18, minimum)},
	{name: "ReduceMean", since: 1, rule: reduction(18, nil)},
	{name: "ReduceL1", since: 1, rule: reduction(18, nil)},
	{name: "ReduceL2", since: 1, rule: reduction(18, nil)},
	{name: "ReduceLogSum", since: 1, rule: reduction(18, nil)},
	{name: "ReduceLogSumExp", since: 1, rule: reduction(18, nil)},
	{name: "ReduceSumSquare", since: 1, rule: reduction(18, nil)},
	{name: "ArgMax", since: 1, rule: argument},
	{name: "ArgMin", since: 1, rule: argument},
	{name: "GlobalAveragePool", since: 1, rule: globalPool},
	{name: "GlobalMaxPool", since: 1, rule: globalPool},
	{name: "GlobalLpPool", since: 1, rule: globalPool},
}

// reduction makes the rule of a reduction whose axes are an input since some
// opset; combine, if there is one, follows elements.
func reduction(inputSince int, combine binaryValue) rule {
	return func(c *call) {
		dims, ok := c.dims(0)
		if !ok {
			return
		}
		keep := c.int("keepdims", 1) != 0
		axes, given, known := c.axes(1, inputSince)
		if !known {
			c.reduceUnknown(dims, keep)
			return
		}
		if (!given || len(axes) == 0) && c.int("noop_with_empty_axes", 0) != 0 {
			c.setDims(0, dims...)
			return
		}
		reduced, ok := c.axisSet(axes, len(dims))
		if !ok {
			return
		}
		if len(axes) == 0 {
			for k := range reduced {
				reduced[k] = true
			}
		}
		c.setDims(0, reduceDims(dims, reduced, keep)...)
		// Sums of floats depend on an order that is not said.
		if combine != nil && c.in(0).Elem.IsInteger() && c.follow(0) {
			c.setValues(0, c.reduceValues(reduced, combine))
		}
	}
}

// reduceUnknown says what holds whatever the axes are.
func (c *call) reduceUnknown(dims []Dim, keep bool) {
	if n, ok := c.vectorLength(1); ok && n > 0 && n <= len(dims) && !keep {
		c.setDims(0, unknowns(len(dims)-n)...)
	}
	if keep {
		c.setDims(0, unknowns(len(dims))...)
	}
}

func reduceDims(dims []Dim, reduced []bool, keep bool) []Dim {
	out := make([]Dim, 0, len(dims))
	for k, d := range dims {
		switch {
		case !reduced[k]:
			out = append(out, d)
		case keep:
			out = append(out, Const(1))
		}
	}
	return out
}

// reduceValues combines known elements; an empty axis has no first one to start from.
func (c *call) reduceValues(reduced []bool, combine binaryValue) []Value {
	shape, ok := c.in(0).Shape()
	if !ok || slices.Contains(shape, 0) {
		return nil
	}
	kept := slices.Clone(shape)
	for k, gone := range reduced {
		if gone {
			kept[k] = 1
		}
	}
	count, _ := tensor.Count(kept)
	out, begun := make([]Value, count), make([]bool, count)
	strides := tensor.Strides(kept)
	for k := range strides {
		if reduced[k] {
			strides[k] = 0
		}
	}
	index := make([]int, len(shape))
	for _, v := range c.values(0) {
		at := dot(index, strides)
		if begun[at] {
			v = combine(c.in(0).Elem, out[at], v)
		}
		out[at], begun[at] = v, true
		advance(index, shape)
	}
	return out
}

// argument gives positions along one axis.
func argument(c *call) {
	c.setElem(0, tensor.Int64)
	dims, ok := c.dims(0)
	if !ok {
		return
	}
	axis, ok := c.axis("axis", 0, len(dims))
	if !ok {
		return
	}
	reduced := make([]bool, len(dims))
	reduced[axis] = true
	c.setDims(0, reduceDims(dims, reduced, c.int("keepdims", 1) != 0)...)
}

// globalPool leaves 1 of every spatial dim.
func globalPool(c *call) {
	dims, ok := c.dims(0)
	if !ok || len(dims) < 2 {
		return
	}
	out := slices.Clone(dims)
	for k := range out[2:] {
		out[2+k] = Const(1)
	}
	c.setDims(0, out...)
}
