package eval

import (
	"math"
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// alongAxis calls f with every line of an array along an axis: first its input, then
// room for its output, both contiguous. Lines of the input must not change.
func alongAxis[T floating](c *Call, shape []int, axis int, in, out []T, f func(in, out []T)) {
	n, inner := shape[axis], product(shape[axis+1:])
	lines := product(shape[:axis]) * inner
	c.Parallel(lines, 1+elementGrain/max(1, 8*n), func(first, last int) {
		if inner == 1 {
			for i := first; i < last; i++ {
				f(in[i*n:][:n], out[i*n:][:n])
			}
			return
		}
		line, result := make([]T, n), make([]T, n)
		for i := first; i < last; i++ {
			at := i/inner*n*inner + i%inner
			for k := range line {
				line[k] = in[at+k*inner]
			}
			f(line, result)
			for k, v := range result {
				out[at+k*inner] = v
			}
		}
	})
}

// lpNormalization divides lines by their norm; a line of zeros stays one.
func lpNormalization[T floating](c *Call) error {
	x, err := numberInput[T](c, 0)
	if err != nil {
		return err
	}
	axis, err := normalAxis(c, c.Int("axis", -1), len(x.shape))
	if err != nil {
		return err
	}
	out, err := newResult[T](c, 0, x.typ, x.shape...)
	if err != nil {
		return err
	}
	norm := normOf(c)
	alongAxis(c, x.shape, axis, x.data, out.data, func(in, out []T) {
		sum := 0.0
		for _, v := range in {
			sum += float64(norm.power(float64(v)))
		}
		length := norm.root(sum)
		clear(out)
		if length == 0 {
			return
		}
		for i, v := range in {
			out[i] = T(float64(v) / length)
		}
	})
	return out.finish()
}

// meanVariance normalises over a set of axes. What keeps it from dividing by zero is
// added to the deviation, as the specification's function has it.
func meanVariance[T floating](c *Call) error {
	x, err := numberInput[T](c, 0)
	if err != nil {
		return err
	}
	given, ok := c.Ints("axes")
	if !ok {
		given = []int64{0, 2, 3}
	}
	axes, err := normalAxes(c, given, len(x.shape))
	if err != nil {
		return err
	}
	var order []int // the other axes, then these
	for axis := range x.shape {
		if !slices.Contains(axes, axis) {
			order = append(order, axis)
		}
	}
	order = append(order, axes...)
	outer := len(order) - len(axes)
	d, err := tensor.Make(x.data, x.shape...)
	if err != nil {
		return c.Errorf("%w", err)
	}
	moved, back := permuted(x.shape, order)
	rows, err := c.Strided(d, 0, moved.shape, moved.strides)
	if err != nil {
		return err
	}
	data, n := tensor.Data[T](rows), product(moved.shape[outer:])
	c.Parallel(product(moved.shape[:outer]), 1+elementGrain/max(1, n), func(first, last int) {
		for i := first; i < last; i++ {
			row := data[i*n:][:n]
			mean, variance := moments(row)
			deviation := math.Sqrt(variance) + 1e-9
			for k, v := range row {
				row[k] = T((float64(v) - mean) / deviation)
			}
		}
	})
	out, err := newResult[T](c, 0, x.typ, x.shape...)
	if err != nil {
		return err
	}
	restored, err := rows.Strided(0, x.shape, back)
	if err != nil {
		return c.Errorf("%w", err)
	}
	copy(out.data, tensor.Data[T](restored))
	return out.finish()
}

// stridedShape is a shape with the strides to read it by.
type stridedShape struct{ shape, strides []int }

// permuted gives the shape whose axis i is axis order[i] of a row-major one, and the
// strides that lead back.
func permuted(shape, order []int) (to stridedShape, back []int) {
	own := tensor.Strides(shape)
	for _, axis := range order {
		to.shape = append(to.shape, shape[axis])
		to.strides = append(to.strides, own[axis])
	}
	back = make([]int, len(order))
	for i, step := range tensor.Strides(to.shape) {
		back[order[i]] = step
	}
	return to, back
}
