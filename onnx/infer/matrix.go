package infer

import (
	"slices"
)

// matrixOperators multiply matrices.
var matrixOperators = []operator{
	{name: "MatMul", since: 1, rule: matMul(0, 1)},
	{name: "MatMulInteger", since: 10, rule: matMul(0, 1)},
	{name: "QLinearMatMul", since: 10, rule: matMul(0, 3)},
	{name: "Gemm", since: 1, rule: gemm},
	{name: "Det", since: 11, rule: determinant},
}

// matMul multiplies the last two dims and broadcasts the rest. A vector on the
// left is a row, on the right a column, whose dim of 1 goes away.
func matMul(a, b int) rule {
	return func(c *call) {
		left, ok := c.dims(a)
		right, okToo := c.dims(b)
		if !ok || !okToo {
			return
		}
		if len(left) == 0 || len(right) == 0 {
			c.conflictf("%s and %s: a scalar is no matrix", c.describe(a), c.describe(b))
			return
		}
		inner := max(len(right)-2, 0)
		c.agree(a, len(left)-1, b, inner)
		var out []Dim
		switch {
		case len(left) == 1:
			out = slices.Clone(right[:inner])
		case len(right) == 1:
			out = slices.Clone(left[:len(left)-1])
		default:
			batch := c.broadcast(left[:len(left)-2], right[:inner], b)
			out = append(slices.Clone(batch), left[len(left)-2])
		}
		if len(right) > 1 {
			out = append(out, right[len(right)-1])
		}
		c.setDims(0, out...)
	}
}

// gemm multiplies two matrices, either of them transposed.
func gemm(c *call) {
	a, ok := c.dims(0)
	b, okToo := c.dims(1)
	rows, columns := Unknown(), Unknown()
	leftInner, rightInner := 1, 0
	if ok && len(a) == 2 {
		rows = a[0]
		if c.int("transA", 0) != 0 {
			rows, leftInner = a[1], 0
		}
	}
	if okToo && len(b) == 2 {
		columns = b[1]
		if c.int("transB", 0) != 0 {
			columns, rightInner = b[0], 1
		}
	}
	if ok && okToo && len(a) == 2 && len(b) == 2 {
		c.agree(0, leftInner, 1, rightInner)
	}
	c.setDims(0, rows, columns)
}

// determinant drops the last two dims.
func determinant(c *call) {
	if dims, ok := c.dims(0); ok && len(dims) >= 2 {
		c.setDims(0, dims[:len(dims)-2]...)
	}
}
