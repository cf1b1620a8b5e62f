package tensor

import "fmt"

// Count returns the number of elements of an array of this shape: the product of
// its dims, 1 for rank 0. It fails on a negative dim and beyond [MaxElements].
func Count(shape []int) (int, error) {
	product, empty := int64(1), false
	for axis, dim := range shape {
		switch {
		case dim < 0:
			return 0, fmt.Errorf("shape %v: dim %d is negative", shape, axis)
		case dim == 0:
			empty = true
		case int64(dim) > MaxElements/product:
			return 0, fmt.Errorf("shape %v: %w: more than %d elements", shape, ErrTooLarge, MaxElements)
		default:
			product *= int64(dim)
		}
	}
	if empty {
		return 0, nil
	}
	if int64(int(product)) != product {
		return 0, fmt.Errorf("shape %v: %w for this machine's integers", shape, ErrTooLarge)
	}
	return int(product), nil
}

// Strides returns for every axis how many elements apart two neighbours along it
// lie in a row-major array of this shape.
func Strides(shape []int) []int {
	strides := make([]int, len(shape))
	step := 1
	for axis := len(shape) - 1; axis >= 0; axis-- {
		strides[axis] = step
		step *= max(shape[axis], 1)
	}
	return strides
}

// BroadcastShapes returns the shape that a and b broadcast to by the rules of
// numpy: aligned at the last axis, each pair of dims equal or one of them 1. A 1
// against a 0 gives 0.
func BroadcastShapes(a, b []int) ([]int, error) {
	if len(a) < len(b) {
		a, b = b, a
	}
	result := make([]int, len(a))
	copy(result, a)
	lead := len(a) - len(b)
	for i, dim := range b {
		axis := lead + i
		switch {
		case result[axis] == dim || dim == 1:
		case result[axis] == 1:
			result[axis] = dim
		default:
			return nil, fmt.Errorf("shapes %v and %v do not broadcast: %d against %d", a, b, a[axis], dim)
		}
	}
	return result, nil
}

// BroadcastStrides returns the strides with which to walk an array of shape from
// in the larger shape to: 0 along every axis that is repeated. It fails when from
// does not broadcast to to in one direction.
func BroadcastStrides(from, to []int) ([]int, error) {
	lead := len(to) - len(from)
	if lead < 0 {
		return nil, fmt.Errorf("shape %v does not broadcast to %v: rank %d is above %d", from, to, len(from), len(to))
	}
	strides := make([]int, len(to))
	own := Strides(from)
	for i, dim := range from {
		switch {
		case dim == to[lead+i]:
			strides[lead+i] = own[i]
		case dim != 1:
			return nil, fmt.Errorf("shape %v does not broadcast to %v: %d against %d", from, to, dim, to[lead+i])
		}
		if dim == 1 {
			strides[lead+i] = 0
		}
	}
	return strides, nil
}
