package infer

import (
	"math"
	"slices"
)

// sliceOperators cut pieces out along axes.
var sliceOperators = []operator{
	{name: "Slice", since: 1, rule: sliceRule},
}

// cut is one axis of a Slice. An unknown bound is an unknown Dim.
type cut struct {
	axis             int
	start, end, step Dim
}

// sliceRule has starts, ends and axes in attributes before opset 10, in inputs
// since, with steps.
func sliceRule(c *call) {
	dims, ok := c.dims(0)
	if !ok {
		return
	}
	cuts, ok := c.cuts(len(dims))
	if !ok {
		c.setDims(0, unknowns(len(dims))...)
		return
	}
	out := slices.Clone(dims)
	for _, s := range cuts {
		out[s.axis] = c.cutLength(s, dims[s.axis])
	}
	c.setDims(0, out...)
	c.sliceValues(cuts)
}

func (c *call) cuts(rank int) ([]cut, bool) {
	starts, ends := c.sliceBounds("starts", 1), c.sliceBounds("ends", 2)
	n := max(len(starts), len(ends))
	axes, given, known := c.axes(3, 10)
	if !known || n == 0 && !c.boundsAreEmpty() {
		return nil, false
	}
	if !given {
		for k := range n {
			axes = append(axes, int64(k))
		}
	}
	if n != 0 && len(axes) != n {
		return nil, false
	}
	var steps []Value
	if c.has(4) {
		if steps = c.elements(4); steps == nil {
			return nil, false
		}
	}
	cuts := make([]cut, n)
	for k := range cuts {
		axis, ok := c.normalAxis(axes[k], rank)
		if !ok {
			return nil, false
		}
		cuts[k] = cut{axis, dimAt(starts, k), dimAt(ends, k), Const(1)}
		if k < len(steps) {
			cuts[k].step = steps[k].Dim()
		}
	}
	return cuts, true
}

// boundsAreEmpty says whether the node is known to cut nothing.
func (c *call) boundsAreEmpty() bool {
	n, ok := c.vectorLength(1)
	return ok && n == 0
}

// sliceBounds gives starts or ends: an attribute before opset 10, an input since.
func (c *call) sliceBounds(name string, input int) []Value {
	if c.opset >= 10 {
		return c.elements(input)
	}
	list, _ := c.intList(name)
	out := make([]Value, len(list))
	for k, n := range list {
		out[k] = Integer(Const(n))
	}
	return out
}

func dimAt(values []Value, k int) Dim {
	if k >= len(values) {
		return Unknown()
	}
	return values[k].Dim()
}

// cutLength is the number of positions that a cut takes from an axis of size n.
func (c *call) cutLength(s cut, n Dim) Dim {
	step, ok := s.step.Known()
	if !ok || step == 0 || step == math.MinInt64 {
		return Unknown()
	}
	if end, known := s.end.Known(); known && end >= farAway && step < 0 {
		return Unknown() // by the specification nothing; ONNX Runtime goes to the beginning
	}
	start, end := c.cutBounds(s, n, step)
	span := end.Sub(start)
	if step < 0 {
		span, step = start.Sub(end), -step
	}
	return c.positivePart(span).CeilDiv(Const(step))
}

// cutBounds clamps start and end as the operator does: going up both to 0..n,
// going down start to 0..n-1 and end to -1..n-1.
func (c *call) cutBounds(s cut, n Dim, step int64) (start, end Dim) {
	if step > 0 {
		return c.clampUp(s.start, n), c.clampUp(s.end, n)
	}
	return c.startDown(s.start, n), c.clampDown(s.end, n)
}

// farAway is from where on a bound means "all there is": exporters write the
// largest int32 or int64, and no followed size is that large.
const farAway = math.MaxInt32

func (c *call) clampUp(x, n Dim) Dim {
	switch k, number := x.Known(); {
	case number && k >= farAway && n.form != nil:
		return n
	case number && k <= -farAway && (n.form != nil || k == math.MinInt64):
		return Const(0)
	case c.isSize(x):
		return c.min(x, n)
	case x.MulConst(-1).Positive():
		return c.positivePart(n.Add(x))
	}
	return Unknown()
}

// startDown is clampDown for a start, which is never before the first element: unlike
// in Python, a start further back than that takes this one.
func (c *call) startDown(x, n Dim) Dim {
	last := n.AddConst(-1)
	start := c.clampDown(x, n)
	switch k, isNumber := start.Known(); {
	case isNumber && k < 0:
		return Const(0).Min(last)
	case isNumber || x.Is(-1) || c.isSize(x) || start.Equal(last):
		return start
	case start.IsUnknown():
		return start
	}
	return start.Max(Const(0)).Min(last)
}

func (c *call) clampDown(x, n Dim) Dim {
	last := n.AddConst(-1)
	switch k, number := x.Known(); {
	case number && k >= farAway && n.form != nil:
		return last
	case number && k <= -farAway && (n.form != nil || k == math.MinInt64):
		return Const(-1)
	case c.isSize(x):
		return x.Min(last)
	case x.MulConst(-1).Positive():
		return n.Add(x).Max(Const(-1))
	}
	return Unknown()
}

// sliceValues cuts known elements, axis by axis.
func (c *call) sliceValues(cuts []cut) {
	shape, ok := c.in(0).Shape()
	final, okToo := c.outputs[0].Shape()
	if !ok || !okToo || !c.follow(0) {
		return
	}
	values := c.values(0)
	for _, s := range cuts {
		n := Const(int64(shape[s.axis]))
		step, _ := s.step.Known()
		start, _ := c.cutBounds(s, n, step)
		first, known := start.Known()
		if !known {
			return
		}
		to := slices.Clone(shape)
		to[s.axis] = final[s.axis]
		if values = window(values, shape, to, s.axis, int(first), int(step)); values == nil {
			return
		}
		shape = to
	}
	c.setValues(0, values)
}
