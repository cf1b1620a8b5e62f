package eval

import (
	"math"

	"github.com/npuctl/npuctl/onnx/eval/internal/elementary"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// poolOperators make one element of all that a window sees.
var poolOperators = []operator{
	{name: "AveragePool", since: 1, run: onFloats(0, averagePool[float32], averagePool[float64])},
	{name: "MaxPool", since: 1, run: onNumbers(0, tensor.Numbers[Kernel]{
		Float32: maxPool[float32], Float64: maxPool[float64], Int32: maxPool[int32],
	})},
	{name: "LpPool", since: 1, run: onFloats(0, lpPool[float32], lpPool[float64])},
	{name: "GlobalAveragePool", since: 1, run: onFloats(0, globalAveragePool[float32], globalAveragePool[float64])},
	{name: "GlobalMaxPool", since: 1, run: onFloats(0, globalMaxPool[float32], globalMaxPool[float64])},
	{name: "GlobalLpPool", since: 1, run: onFloats(0, globalLpPool[float32], globalLpPool[float64])},
}

// pool is the geometry of a pooling operator and its image.
type pool[T number] struct {
	*window
	image  array[T]
	planes int // images times channels
}

func newPool[T number](c *Call) (*pool[T], error) {
	x, err := numberInput[T](c, 0)
	if err != nil {
		return nil, err
	}
	batch, channels, size, err := spatialShape(c, x.shape, 1)
	if err != nil {
		return nil, err
	}
	kernel, err := kernelShape(c, nil)
	if err != nil {
		return nil, err
	}
	w, err := newWindow(c, size, kernel)
	if err != nil {
		return nil, err
	}
	return &pool[T]{w, x, batch * channels}, nil
}

// shape is that of the output.
func (p *pool[T]) shape() []int { return append([]int{p.image.shape[0], p.image.shape[1]}, p.out...) }

// rows takes a visitor along every row of the output. What a window sees comes in
// the order in which the window is stored.
func (p *pool[T]) rows(c *Call, visit rowVisitor[T], out []T) {
	last := len(p.in) - 1
	wide := p.out[last]
	if len(out) == 0 {
		return
	}
	k0, k1 := p.kernelReach(last)
	high, inSize := rows(p.out), product(p.in)
	c.Parallel(p.planes*high, 1+elementGrain/max(1, wide*product(p.kernel)), func(first, end int) {
		var buffer []place
		for r := first; r < end; r++ {
			row := out[r*wide:][:wide]
			visit.begin(row, r)
			buffer = p.places(buffer, r%high)
			for _, place := range buffer {
				for k := k0; k < k1; k++ {
					from, to := p.valid(last, k)
					if from < to {
						at := place.inRow*p.in[last] + from*p.stride[last] + k*p.dilation[last] - p.begin[last]
						visit.see(row[from:to], r*wide+from, r/high*inSize+at)
					}
				}
			}
			visit.end(row, r%high)
		}
	})
}

// rowVisitor is what a pooling operator does with a row of the output: begin it, see
// elements of the image, end it. see gets elements of the row, which start at position
// at of the output, and the position of what the first of them sees in the image; the
// others see every stride-th element after it.
type rowVisitor[T number] struct {
	begin func(row []T, r int)
	see   func(dst []T, at, from int)
	end   func(row []T, r int)
}

func skipRow[T number]([]T, int) {}

// averagePool divides by the elements that a window sees, with those of the padding
// when the attribute says so. Windows that hang over the padding do not count what
// is beyond it. A window that sees nothing gives 0.
func averagePool[T floating](c *Call) error {
	p, err := newPool[T](c)
	if err != nil {
		return err
	}
	out, err := newResult[T](c, 0, p.image.typ, p.shape()...)
	if err != nil {
		return err
	}
	counts := make([][]int, len(p.in))
	for axis := range p.in {
		counts[axis] = p.counts(axis, c.Int("count_include_pad", 0) != 0)
	}
	last := len(p.in) - 1
	p.rows(c, rowVisitor[T]{
		begin: skipRow[T],
		see: func(dst []T, _, from int) {
			addTimes(dst, p.image.data[from:], p.stride[last], 1)
		},
		end: func(row []T, r int) {
			others := 1
			for axis := last - 1; axis >= 0; axis-- {
				others *= counts[axis][r%p.out[axis]]
				r /= p.out[axis]
			}
			for i := range row {
				if n := others * counts[last][i]; n > 0 {
					row[i] /= T(n)
				}
			}
		},
	}, out.data)
	return out.finish()
}

// counts gives, for every position of the output along an axis, how many positions
// of the kernel lie on the input, or on the input and its padding.
func (w *window) counts(axis int, padded bool) []int {
	wide := *w
	if padded {
		wide.in, wide.begin = append([]int(nil), w.in...), append([]int(nil), w.begin...)
		wide.in[axis] += w.begin[axis] + w.end[axis]
		wide.begin[axis] = 0
	}
	counts := make([]int, w.out[axis])
	for o := range counts {
		first, last := wide.kernelRange(axis, o)
		counts[o] = last - first
	}
	return counts
}

// maxPool gives the largest element, NaN where there is one, and on request its
// position among all elements of the input: the first one of several. A window that
// sees nothing gives the lowest number, and position 0.
func maxPool[T number](c *Call) error {
	p, err := newPool[T](c)
	if err != nil {
		return err
	}
	out, err := newResult[T](c, 0, p.image.typ, p.shape()...)
	if err != nil {
		return err
	}
	var indices []int64
	if c.Wants(1) {
		if indices, err = Output[int64](c, 1, p.shape()...); err != nil {
			return err
		}
	}
	least := lowest[T](p.image.typ)
	stride := p.stride[len(p.in)-1]
	p.rows(c, rowVisitor[T]{
		begin: func(row []T, _ int) {
			for i := range row {
				row[i] = least
			}
		},
		see: func(dst []T, at, from int) {
			if indices == nil {
				maximum(dst, p.image.data[from:], stride)
			} else {
				maximumAt(dst, indices[at:], p.image.data, from, stride)
			}
		},
		end: skipRow[T],
	}, out.data)
	if indices != nil && c.Int("storage_order", 0) != 0 {
		p.columnMajor(indices)
	}
	return out.finish()
}

// lowest is the least number that a type holds.
func lowest[T number](t tensor.Type) T {
	switch {
	case t.IsFloat():
		return T(math.Inf(-1))
	case !t.IsSigned():
		return 0
	}
	bits := int64(-1) << (t.Bits() - 1)
	return T(bits)
}

func maximum[T number](dst, src []T, step int) {
	at := 0
	for i, best := range dst {
		if v := src[at]; v > best || v != v {
			dst[i] = v
		}
		at += step
	}
}

// maximumAt is maximum that notes where each element of dst came from.
func maximumAt[T number](dst []T, indices []int64, src []T, at, step int) {
	for i, best := range dst {
		if v := src[at]; v > best || v != v && best == best {
			dst[i] = v
			indices[i] = int64(at)
		}
		at += step
	}
}

// columnMajor turns positions into those that elements have when the first spatial
// axis runs fastest.
func (p *pool[T]) columnMajor(indices []int64) {
	size := product(p.in)
	for i, index := range indices {
		rest, position, step := int(index)%size, 0, size
		for axis := len(p.in) - 1; axis >= 0; axis-- {
			step /= p.in[axis]
			position += rest % p.in[axis] * step
			rest /= p.in[axis]
		}
		indices[i] = index - index%int64(size) + int64(position)
	}
}

// lpPool gives the root of the sum of powers of magnitudes.
func lpPool[T floating](c *Call) error {
	p, err := newPool[T](c)
	if err != nil {
		return err
	}
	out, err := newResult[T](c, 0, p.image.typ, p.shape()...)
	if err != nil {
		return err
	}
	norm := normOf(c)
	stride := p.stride[len(p.in)-1]
	p.rows(c, rowVisitor[T]{
		begin: skipRow[T],
		see: func(dst []T, _, from int) {
			for i := range dst {
				dst[i] += T(norm.power(float64(p.image.data[from+i*stride])))
			}
		},
		end: func(row []T, _ int) {
			for i, v := range row {
				row[i] = T(norm.root(float64(v)))
			}
		},
	}, out.data)
	return out.finish()
}

// lpNorm is the exponent of a norm.
type lpNorm float64

// normOf reads the attribute p: an int, in the first version a float.
func normOf(c *Call) lpNorm {
	a := c.Attribute("p")
	switch {
	case a == nil:
		return 2
	case a.Float() != 0:
		return lpNorm(a.Float())
	}
	return lpNorm(a.Int())
}

// power is |x|^p.
func (p lpNorm) power(x float64) float64 {
	x = math.Abs(x)
	switch p {
	case 1:
		return x
	case 2:
		return x * x
	}
	return realPower(x, float64(p))
}

// root is x^(1/p).
func (p lpNorm) root(x float64) float64 {
	switch p {
	case 1:
		return x
	case 2:
		return math.Sqrt(x)
	}
	return realPower(x, 1/float64(p))
}

// realPower is x^p for x that is not negative.
func realPower(x, p float64) float64 {
	if x == 0 && p > 0 {
		return 0
	}
	return elementary.Exp(p * elementary.Log(x))
}

// globalPool makes one element of every plane of the image.
func globalPool[T floating](c *Call, reduce func(plane []T) T) error {
	x, err := numberInput[T](c, 0)
	if err != nil {
		return err
	}
	batch, channels, size, err := spatialShape(c, x.shape, 0)
	if err != nil {
		return err
	}
	shape := []int{batch, channels}
	for range size {
		shape = append(shape, 1)
	}
	out, err := newResult[T](c, 0, x.typ, shape...)
	if err != nil {
		return err
	}
	n := product(size)
	c.Parallel(batch*channels, 1+elementGrain/max(1, n), func(first, last int) {
		for p := first; p < last; p++ {
			out.data[p] = reduce(x.data[p*n:][:n])
		}
	})
	return out.finish()
}

func globalAveragePool[T floating](c *Call) error {
	return globalPool(c, func(plane []T) T { return T(total(plane) / float64(len(plane))) })
}

func globalMaxPool[T floating](c *Call) error {
	return globalPool(c, func(plane []T) T {
		best := T(math.Inf(-1))
		for _, v := range plane {
			if v > best || v != v {
				best = v
			}
		}
		return best
	})
}

func globalLpPool[T floating](c *Call) error {
	norm := normOf(c)
	return globalPool(c, func(plane []T) T {
		sum := 0.0
		for _, v := range plane {
			sum += float64(norm.power(float64(v)))
		}
		return T(norm.root(sum))
	})
}

// total adds up elements in float64, four sums at a time so that they need not wait
// for each other.
func total[T floating](data []T) float64 {
	var s0, s1, s2, s3 float64
	for len(data) >= 4 {
		s0 += float64(data[0])
		s1 += float64(data[1])
		s2 += float64(data[2])
		s3 += float64(data[3])
		data = data[4:]
	}
	for _, v := range data {
		s0 += float64(v)
	}
	return (s0 + s1) + (s2 + s3)
}
