package eval

import (
	"slices"
)

// shapeOperators ask for a shape, or give the same elements another one.
var shapeOperators = []operator{
	{name: "Shape", since: 1, run: shapeOf},
	{name: "Size", since: 1, run: size},
	{name: "Reshape", since: 1, run: reshape},
	{name: "Flatten", since: 1, run: flatten},
	{name: "Squeeze", since: 1, run: squeeze},
	{name: "Unsqueeze", since: 1, run: unsqueeze},
}

// shapeOf is Shape; from version 15 on start and end, clamped, cut a part out.
func shapeOf(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	rank := int64(d.Rank())
	bound := func(name string, otherwise int64) int64 {
		v := c.Int(name, otherwise)
		if v < 0 {
			v += rank
		}
		return max(min(v, rank), 0)
	}
	start, end := bound("start", 0), bound("end", rank)
	dims := d.Shape()[min(start, end):end]
	out, err := Output[int64](c, 0, len(dims))
	if err != nil {
		return err
	}
	for i, dim := range dims {
		out[i] = int64(dim)
	}
	return nil
}

func size(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	out, err := Output[int64](c, 0)
	if err != nil {
		return err
	}
	out[0] = int64(d.Len())
	return nil
}

// reshape is Reshape: 0 takes the input's dim over unless allowzero is set, -1
// stands for what is left.
func reshape(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	dims, ok := c.Ints("shape")
	if c.Opset >= 5 {
		if dims, err = c.IntsInput(1); err != nil {
			return err
		}
		ok = c.Has(1)
	}
	if !ok {
		return c.Errorf("there is no shape")
	}
	shape, err := toInts(c, dims)
	if err != nil {
		return err
	}
	shape = slices.Clone(shape)
	if c.Int("allowzero", 0) == 0 {
		for i, dim := range shape {
			if dim != 0 {
				continue
			}
			if i >= d.Rank() {
				return c.Errorf("dim %d of the shape %v is 0, but the input has shape %v", i, dims, d.Shape())
			}
			shape[i] = d.Shape()[i]
		}
	}
	if err := c.inferDim(shape, d.Len()); err != nil {
		return err
	}
	return c.Reshape(0, d, shape...)
}

// inferDim puts what is left of n elements in the place of -1.
func (c *Call) inferDim(shape []int, n int) error {
	at, rest := -1, 1
	for i, dim := range shape {
		switch {
		case dim == -1 && at >= 0:
			return c.Errorf("two dims of the shape %v are -1", shape)
		case dim == -1:
			at = i
		case dim < 0:
			return c.Errorf("dim %d of the shape is %d", i, dim)
		case dim > 0 && rest > n/dim:
			rest = n + 1 // too many; spares the overflow
		default:
			rest *= dim
		}
	}
	if at < 0 {
		return nil
	}
	if rest == 0 || n%rest != 0 {
		return c.Errorf("%d elements do not fill the shape %v", n, shape)
	}
	shape[at] = n / rest
	return nil
}

// flatten makes a matrix: the dims before axis, and the others.
func flatten(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	axis, err := normalAxis(c, c.Int("axis", 1), d.Rank()+1)
	if err != nil {
		return err
	}
	if c.Int("axis", 1) < 0 {
		axis-- // counted from the rank, which is itself allowed
	}
	if axis < 0 {
		return c.Errorf("axis %d is outside rank %d", c.Int("axis", 1), d.Rank())
	}
	return c.Reshape(0, d, product(d.Shape()[:axis]), product(d.Shape()[axis:]))
}

// squeeze takes out dims of 1: those named, else all. An empty list of axes takes
// none, as its text says; runtimes differ, so folding refuses where it matters.
func squeeze(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	list, err := axesOf(c, 13, 1)
	if err != nil {
		return err
	}
	if list == nil {
		return c.Reshape(0, d, slices.DeleteFunc(slices.Clone(d.Shape()), func(dim int) bool { return dim == 1 })...)
	}
	if len(list) == 0 && slices.Contains(d.Shape(), 1) {
		if err := c.Undefined("Squeeze with an empty list of axes"); err != nil {
			return err
		}
	}
	axes, err := normalAxes(c, list, d.Rank())
	if err != nil {
		return err
	}
	var shape []int
	for i, dim := range d.Shape() {
		switch {
		case !slices.Contains(axes, i):
			shape = append(shape, dim)
		case dim != 1:
			return c.Errorf("axis %d of shape %v is not 1", i, d.Shape())
		}
	}
	return c.Reshape(0, d, shape...)
}

// unsqueeze puts dims of 1 in; axes count in the result.
func unsqueeze(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	list, err := axesOf(c, 13, 1)
	if err != nil {
		return err
	}
	rank := d.Rank() + len(list)
	if rank > maxRank {
		return c.Errorf("rank %d", rank)
	}
	axes, err := normalAxes(c, list, rank)
	if err != nil {
		return err
	}
	shape, rest := make([]int, rank), d.Shape()
	for i := range shape {
		if slices.Contains(axes, i) {
			shape[i] = 1
			continue
		}
		shape[i], rest = rest[0], rest[1:]
	}
	return c.Reshape(0, d, shape...)
}

// maxRank bounds what an operator may make of a list of axes; NumPy stops at 64.
const maxRank = 1024
