package eval

import (
	"fmt"
	"math"
	"slices"

	"github.com/npuctl/npuctl/onnx/eval/internal/gemm"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// quantizedProductOperators multiply matrices and convolve images of 8-bit numbers.
var quantizedProductOperators = []operator{
	{name: "MatMulInteger", since: 10, run: matMulInteger},
	{name: "QLinearMatMul", since: 10, run: qlinearMatMul},
	{name: "ConvInteger", since: 10, run: convInteger},
	{name: "QLinearConv", since: 10, run: qlinearConv},
}

// Products of 8-bit numbers are computed by the float kernels, exactly: an 8-bit
// number less a zero point is below 2^8, and float32 holds every integer up to 2^24,
// which is more than exactDepth such products add up to. Blocks of that depth are
// added in int32, which may wrap, as the specification allows.
const exactDepth = 256

// integerProducts computes a list of products of integers that float32 holds.
type integerProducts struct {
	c      *Call
	kernel *gemm.Kernel[float32]
	work   []float32
}

// add adds to out, rows by columns, the product of a left and a right side that are
// depth deep; each is asked for its steps k0 to k1.
func (p *integerProducts) add(out []int32, rows, columns, depth int, left, right func(k0, k1 int) *gemm.Operand[float32]) error {
	size := rows * columns
	if len(p.work) < size {
		work, err := scratch[float32](p.c, size)
		if err != nil {
			return err
		}
		p.work = work
	}
	for k0 := 0; k0 < depth; k0 += exactDepth {
		k1 := min(k0+exactDepth, depth)
		clear(p.work[:size])
		p.kernel.Run(p.c.Parallel, gemm.Product[float32]{C: p.work, Step: columns, A: left(k0, k1), B: right(k0, k1)})
		p.c.Parallel(size, elementGrain, func(first, last int) {
			sums := out[first:last]
			for i, v := range p.work[first:last] {
				sums[i] += int32(v)
			}
		})
	}
	return nil
}

// centred gives the 8-bit input i less its zero point, which is input zero if there.
// The zero point has the shape that spread makes of its own.
func (c *Call) centred(i, zero int, spread func(shape []int) []int) (array[float32], error) {
	d, err := c.Tensor(i)
	if err != nil {
		return array[float32]{}, err
	}
	values, err := scratch[float32](c, d.Shape()...)
	if err != nil {
		return array[float32]{}, err
	}
	a := array[float32]{d.Type(), d.Shape(), values}
	switch d.Type() {
	case tensor.Uint8:
		convertTo8(c, values, tensor.Data[uint8](d))
	case tensor.Int8:
		convertTo8(c, values, tensor.Data[int8](d))
	default:
		return a, c.Unsupported("input %d of type %s", i, d.Type())
	}
	if !c.Has(zero) {
		return a, nil
	}
	z, err := c.Tensor(zero)
	if err != nil {
		return a, err
	}
	points, ok := z.Int64s()
	if !ok || z.Type() != d.Type() {
		return a, c.Errorf("input %d is %s, its zero point %s", i, d.Type(), z.Type())
	}
	return a, a.subtract(c, points, spread(z.Shape()))
}

func convertTo8[T uint8 | int8](c *Call, dst []float32, src []T) {
	c.Parallel(len(src), elementGrain, func(first, last int) {
		for i := first; i < last; i++ {
			dst[i] = float32(src[i])
		}
	})
}

// subtract takes zero points off the elements, to whose shape theirs broadcasts.
func (a *array[T]) subtract(c *Call, points []int64, shape []int) error {
	walk, err := tensor.BroadcastWalk(a.shape, shape)
	if err == nil && product(shape) != len(points) {
		err = fmt.Errorf("%d of them where there should be %d", len(points), product(shape))
	}
	if err != nil {
		return c.Errorf("zero points: %w", err)
	}
	c.Parallel(walk.Runs(), 1+elementGrain/max(1, walk.Len()), func(first, last int) {
		walk.Range(first, last, func(run int, at []int) {
			row := a.data[run*walk.Len():][:walk.Len()]
			for i := range row {
				row[i] -= T(points[at[0]+i*walk.Step(0)])
			}
		})
	})
	return nil
}

// perRow is the shape of a parameter that has an element for every row of a matrix.
func perRow(shape []int) []int {
	if len(shape) == 1 && shape[0] > 1 {
		return []int{shape[0], 1}
	}
	return shape
}

// perColumn is the shape of a parameter that has an element for every column.
func perColumn(shape []int) []int { return shape }

// integerMatMul is the product of two 8-bit inputs; the right one's zero point is
// input bZero, the left one's aZero.
func integerMatMul(c *Call, aInput, aZero, bInput, bZero int) (*matGrid, []int32, error) {
	aTensor, err := c.Tensor(aInput)
	if err != nil {
		return nil, nil, err
	}
	bTensor, err := c.Tensor(bInput)
	if err != nil {
		return nil, nil, err
	}
	g, err := newMatGrid(c, aTensor.Shape(), bTensor.Shape())
	if err != nil {
		return nil, nil, err
	}
	a, err := c.centred(aInput, aZero, perRow)
	if err != nil {
		return nil, nil, err
	}
	sums, err := c.New(tensor.Int32, g.shape...)
	if err != nil {
		return nil, nil, err
	}
	out := tensor.Data[int32](sums)
	p := &integerProducts{c: c, kernel: multiplier[float32](c)}
	right, err := p.rightBlocks(bInput, bZero, g)
	if err != nil {
		return nil, nil, err
	}
	g.run(func(products []matPlace) {
		for _, m := range products {
			if err != nil {
				return
			}
			matrix := a.data[m.a*g.rows*g.depth:][:g.rows*g.depth]
			err = p.add(out[m.out*g.rows*g.columns:][:g.rows*g.columns], g.rows, g.columns, g.depth, func(k0, k1 int) *gemm.Operand[float32] {
				return p.kernel.Left(gemm.Matrix[float32]{Data: matrix[min(k0, len(matrix)):], Rows: g.rows, Columns: k1 - k0, RowStep: g.depth, ColumnStep: 1})
			}, func(k0, _ int) *gemm.Operand[float32] { return right(m.b, k0) })
		}
	})
	return g, out, err
}

// rightBlocks gives the right side in blocks of exactDepth, by matrix and first step;
// those of a constant are packed once.
func (p *integerProducts) rightBlocks(input, zero int, g *matGrid) (func(matrix, k0 int) *gemm.Operand[float32], error) {
	c := p.c
	block := func(data []float32, matrix, k0 int) *gemm.Operand[float32] {
		k1 := min(k0+exactDepth, g.depth)
		at := matrix*g.depth*g.columns + k0*g.columns
		return p.kernel.Right(gemm.RowMajor(data[at:][:(k1-k0)*g.columns], k1-k0, g.columns))
	}
	if !c.keeps(input) || c.Has(zero) && !c.keeps(zero) {
		b, err := c.centred(input, zero, perColumn)
		return func(matrix, k0 int) *gemm.Operand[float32] { return block(b.data, matrix, k0) }, err
	}
	kept, err := c.Once(func() (any, error) {
		b, err := c.centred(input, zero, perColumn)
		if err != nil {
			return nil, err
		}
		var packed []*gemm.Operand[float32]
		for matrix := 0; g.depth*g.columns > 0 && matrix < len(b.data)/(g.depth*g.columns); matrix++ {
			for k0 := 0; k0 < g.depth; k0 += exactDepth {
				packed = append(packed, block(b.data, matrix, k0).Pack(c.Parallel))
			}
		}
		return packed, nil
	})
	if err != nil {
		return nil, err
	}
	packed, blocks := kept.([]*gemm.Operand[float32]), (g.depth+exactDepth-1)/exactDepth
	return func(matrix, k0 int) *gemm.Operand[float32] {
		if len(packed) == 0 { // no columns
			return block(nil, 0, 0)
		}
		return packed[matrix*blocks+k0/exactDepth]
	}, nil
}

func matMulInteger(c *Call) error {
	g, out, err := integerMatMul(c, 0, 2, 1, 3)
	if err != nil {
		return err
	}
	return setInt32(c, out, g.shape)
}

func setInt32(c *Call, data []int32, shape []int) error {
	d, err := tensor.Make(data, shape...)
	if err != nil {
		return c.Errorf("%w", err)
	}
	c.Outputs[0] = d
	return nil
}

// qlinearMatMul has inputs a, its scale and zero point, b, its two, the scale of y
// and the zero point of y.
func qlinearMatMul(c *Call) error {
	g, sums, err := integerMatMul(c, 0, 2, 3, 5)
	if err != nil {
		return err
	}
	// The scales' shapes are given for matrices; those of vectors have no other.
	full := slices.Clone(g.shape)
	if a, _ := c.Tensor(0); a.Rank() == 1 {
		full = slices.Insert(full, max(0, len(full)-1), 1)
	}
	if b, _ := c.Tensor(3); b.Rank() == 1 {
		full = append(full, 1)
	}
	return requantize(c, sums, full, g.shape, [3]scaleInput{{1, perRow}, {4, perColumn}, {6, perRow}}, 7)
}

// scaleInput is an input that holds scales, and what shape they have beside the result.
type scaleInput struct {
	input  int
	spread func(shape []int) []int
}

// requantize sets output 0 from sums of products of quantized numbers: the sum times
// the first two scales over the third, rounded half to even, plus the zero point,
// brought into the range of its type. The factor is computed in the type of the
// scales. The sums have shape full beside the scales, and the output shape.
func requantize(c *Call, sums []int32, full, shape []int, scales [3]scaleInput, zero int) error {
	points, err := c.Tensor(zero)
	if err != nil {
		return err
	}
	factors, err := factorsOf(c, scales, full)
	if err != nil {
		return err
	}
	offsets, ok := points.Int64s()
	if !ok || points.Len() == 0 {
		return c.Errorf("input %d is %s%v, no zero point", zero, points.Type(), points.Shape())
	}
	walk, err := tensor.BroadcastWalk(full, factors.shape, perRow(points.Shape()))
	if err != nil {
		return c.Errorf("scales and zero points: %w", err)
	}
	out, err := c.New(points.Type(), shape...)
	if err != nil {
		return err
	}
	c.Outputs[0] = out
	store, lowest, highest := store8(out)
	if store == nil {
		return c.Unsupported("results of type %s", out.Type())
	}
	c.Parallel(walk.Runs(), 1+elementGrain/max(1, walk.Len()), func(first, last int) {
		walk.Range(first, last, func(run int, at []int) {
			for i := range walk.Len() {
				p := run*walk.Len() + i
				v := math.RoundToEven(float64(sums[p])*float64(factors.data[at[0]+i*walk.Step(0)])) + float64(offsets[at[1]+i*walk.Step(1)])
				store(p, int(min(max(v, lowest), highest)))
			}
		})
	})
	return nil
}

// store8 gives the way to set an element of an 8-bit array, and its limits.
func store8(d *tensor.Dense) (store func(i, v int), lowest, highest float64) {
	if u := tensor.Data[uint8](d); u != nil {
		return func(i, v int) { u[i] = uint8(v) }, 0, math.MaxUint8
	}
	if s := tensor.Data[int8](d); s != nil {
		return func(i, v int) { s[i] = int8(v) }, math.MinInt8, math.MaxInt8
	}
	return nil, 0, 0
}

// factorsOf multiplies the first two scales and divides by the third, as they
// broadcast, rounding each step to their type.
func factorsOf(c *Call, scales [3]scaleInput, full []int) (array[float32], error) {
	var parts [3]array[float32]
	var shape []int
	for i, s := range scales {
		v, err := numberInput[float32](c, s.input)
		if err != nil {
			return v, err
		}
		v.shape = s.spread(v.shape)
		if shape, err = tensor.BroadcastShapes(shape, v.shape); err != nil {
			return v, c.Errorf("scales: %w", err)
		}
		parts[i] = v
	}
	if _, err := tensor.BroadcastStrides(shape, full); err != nil {
		return parts[0], c.Errorf("scales: %w", err)
	}
	out, err := scratch[float32](c, shape...)
	if err != nil {
		return parts[0], err
	}
	walk, err := tensor.BroadcastWalk(shape, parts[0].shape, parts[1].shape, parts[2].shape)
	if err != nil {
		return parts[0], c.Errorf("scales: %w", err)
	}
	round := roundTo(parts[0].typ)
	walk.Range(0, walk.Runs(), func(run int, at []int) {
		for i := range walk.Len() {
			p := func(k int) float32 { return parts[k].data[at[k]+i*walk.Step(k)] }
			out[run*walk.Len()+i] = round(round(p(0)*p(1)) / p(2))
		}
	})
	return array[float32]{parts[0].typ, shape, out}, nil
}

// roundTo rounds a float32 to one of the types that compute in it.
func roundTo(t tensor.Type) func(float32) float32 {
	switch t {
	case tensor.Float16:
		return func(v float32) float32 { return tensor.F16From(v).Float32() }
	case tensor.BFloat16:
		return func(v float32) float32 { return tensor.BF16From(v).Float32() }
	}
	return func(v float32) float32 { return v }
}

// integerConv convolves the 8-bit image that is input x by weights that are input w;
// their zero points are inputs xZero and wZero. Padding is with the zero point. The
// sums start from the int32 input bias, where there is one.
func integerConv(c *Call, x, xZero, w, wZero, bias int) (*convolution, []int32, error) {
	images, err := c.centred(x, xZero, func([]int) []int { return nil })
	if err != nil {
		return nil, nil, err
	}
	weights, err := c.centred(w, wZero, func(shape []int) []int {
		if d, _ := c.Tensor(w); len(shape) == 1 && d.Rank() > 0 {
			return append(slices.Clone(shape), slices.Repeat([]int{1}, d.Rank()-1)...)
		}
		return shape
	})
	if err != nil {
		return nil, nil, err
	}
	v, err := newConvolution(c, images.shape, weights.shape)
	if err != nil {
		return nil, nil, err
	}
	d, err := c.New(tensor.Int32, v.shape()...)
	if err != nil {
		return nil, nil, err
	}
	out := tensor.Data[int32](d)
	if err := fillBias(c, out, bias, v.batch, v.channels, product(v.out)); err != nil {
		return nil, nil, err
	}
	p := &integerProducts{c: c, kernel: multiplier[float32](c)}
	for n := range v.batch {
		for g := range v.groups {
			planes := image(v, images.data, n, g)
			kernels := weights.data[g*v.features*v.depth():][:v.features*v.depth()]
			err := p.add(feature(v, out, n, g), v.features, product(v.out), v.depth(), func(k0, k1 int) *gemm.Operand[float32] {
				return p.kernel.Left(gemm.Matrix[float32]{Data: kernels[min(k0, len(kernels)):], Rows: v.features, Columns: k1 - k0, RowStep: v.depth(), ColumnStep: 1}).Pack(c.Parallel)
			}, func(k0, k1 int) *gemm.Operand[float32] { return columnsOf(v, p.kernel, planes, k0, k1) })
			if err != nil {
				return nil, nil, err
			}
		}
	}
	return v, out, nil
}

func convInteger(c *Call) error {
	v, out, err := integerConv(c, 0, 2, 1, 3, len(c.Inputs))
	if err != nil {
		return err
	}
	return setInt32(c, out, v.shape())
}

// qlinearConv has inputs x, its scale and zero point, w, its two, the scale and the
// zero point of y, and a bias in steps of the product of the first two scales.
func qlinearConv(c *Call) error {
	v, sums, err := integerConv(c, 0, 2, 3, 5, 8)
	if err != nil {
		return err
	}
	channel := func(shape []int) []int {
		if len(shape) == 1 && shape[0] > 1 {
			return append([]int{shape[0]}, slices.Repeat([]int{1}, len(v.out))...)
		}
		return shape
	}
	scalar := func(shape []int) []int { return shape }
	return requantize(c, sums, v.shape(), v.shape(), [3]scaleInput{{1, scalar}, {4, channel}, {6, scalar}}, 7)
}
