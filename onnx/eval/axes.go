package eval

import (
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// normalAxis brings an axis, which may count from the end, into 0..rank-1.
func normalAxis(c *Call, axis int64, rank int) (int, error) {
	if axis < -int64(rank) || axis >= int64(rank) {
		return 0, c.Errorf("axis %d is outside rank %d", axis, rank)
	}
	if axis < 0 {
		axis += int64(rank)
	}
	return int(axis), nil
}

// normalAxes does the same to a list, which must not name an axis twice.
func normalAxes(c *Call, axes []int64, rank int) ([]int, error) {
	out := make([]int, len(axes))
	for i, a := range axes {
		axis, err := normalAxis(c, a, rank)
		if err != nil {
			return nil, err
		}
		if slices.Contains(out[:i], axis) {
			return nil, c.Errorf("axis %d is named twice", axis)
		}
		out[i] = axis
	}
	return out, nil
}

// axesOf gives the axes of a node whose opset may have them as an attribute or,
// from opset fromInput on, as an input; nil when they are left out.
func axesOf(c *Call, fromInput, input int) ([]int64, error) {
	if c.Opset >= fromInput {
		return c.IntsInput(input)
	}
	axes, _ := c.Ints("axes")
	return axes, nil
}

// product is the number of elements of a part of a shape that an array has.
func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// insertDim gives shape with one more dim at axis.
func insertDim(shape []int, axis, dim int) []int {
	out := make([]int, 0, len(shape)+1)
	return append(append(append(out, shape[:axis]...), dim), shape[axis:]...)
}

// removeDim gives shape without the dim at axis.
func removeDim(shape []int, axis int) []int {
	out := make([]int, 0, len(shape))
	return append(append(out, shape[:axis]...), shape[axis+1:]...)
}

// toInts gives numbers as ints; they must be array dims or positions.
func toInts(c *Call, values []int64) ([]int, error) {
	out := make([]int, len(values))
	for i, v := range values {
		if v < -tensor.MaxElements || v > tensor.MaxElements {
			return nil, c.Errorf("%d is too large", v)
		}
		out[i] = int(v)
	}
	return out, nil
}

// copyRows copies count rows of n elements between arrays of one type: row i from
// fromAt + i·fromStep to toAt + i·toStep.
var copyRows = tensor.NewMovers(copyWordRows[uint8], copyWordRows[uint16], copyWordRows[uint32],
	copyWordRows[uint64], copyWordRows[[2]uint64], copyWordRows[string])

func copyWordRows[T tensor.Word](to *tensor.Dense, toAt, toStep int, from *tensor.Dense, fromAt, fromStep, n, count int) {
	if n == 0 {
		return
	}
	dst, src := tensor.Words[T](to), tensor.Words[T](from)
	for range count {
		tensor.Move(dst[toAt:toAt+n], src[fromAt:fromAt+n])
		toAt, fromAt = toAt+toStep, fromAt+fromStep
	}
}

// copyPart copies n elements between arrays of one type.
func copyPart(to *tensor.Dense, toAt int, from *tensor.Dense, fromAt, n int) {
	copyRows.For(to.Type())(to, toAt, 0, from, fromAt, 0, n, 1)
}

// fill sets all elements of an array to the first one of another of its type.
var fill = tensor.NewMovers(fillWords[uint8], fillWords[uint16], fillWords[uint32],
	fillWords[uint64], fillWords[[2]uint64], fillWords[string])

func fillWords[T tensor.Word](to, with *tensor.Dense) {
	dst, v := tensor.Words[T](to), tensor.Words[T](with)[0]
	for i := range dst {
		dst[i] = v
	}
}

// takeIndex gives the slice of d at one index of an axis, without that axis.
func (c *Call) takeIndex(d *tensor.Dense, axis, index int) (*tensor.Dense, error) {
	if axis >= d.Rank() {
		return nil, c.Errorf("shape %v has no axis %d", d.Shape(), axis)
	}
	strides := tensor.Strides(d.Shape())
	return c.Strided(d, index*strides[axis], removeDim(d.Shape(), axis), removeDim(strides, axis))
}

// stack puts arrays of one type and shape beside each other along a new axis.
func (c *Call) stack(items []*tensor.Dense, axis int, backwards bool) (*tensor.Dense, error) {
	first := items[0]
	for _, d := range items {
		if d.Type() != first.Type() || !slices.Equal(d.Shape(), first.Shape()) {
			return nil, c.Errorf("cannot stack %s%v and %s%v", first.Type(), first.Shape(), d.Type(), d.Shape())
		}
	}
	at, err := normalAxis(c, int64(axis), first.Rank()+1)
	if err != nil {
		return nil, err
	}
	out, err := c.New(first.Type(), insertDim(first.Shape(), at, len(items))...)
	if err != nil {
		return nil, err
	}
	outer, inner := product(first.Shape()[:at]), product(first.Shape()[at:])
	for k, d := range items {
		if backwards {
			k = len(items) - 1 - k
		}
		copyRows.For(out.Type())(out, k*inner, len(items)*inner, d, 0, inner, inner, outer)
	}
	return out, nil
}
