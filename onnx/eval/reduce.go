package eval

import (
	"math"
	"slices"

	"github.com/npuctl/npuctl/onnx/eval/internal/elementary"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// reduceOperators take axes out of a tensor. Sums of floats add up in float64 and
// are rounded once; sums of integers wrap.
var reduceOperators = []operator{
	{name: "ReduceSum", since: 1, run: reduce(&reduceSum, 13)},
	{name: "ReduceMean", since: 1, run: reduce(&reduceMean, 18)},
	{name: "ReduceProd", since: 1, run: reduce(&reduceProd, 18)},
	{name: "ReduceMax", since: 1, run: reduce(&reduceMax, 18)},
	{name: "ReduceMin", since: 1, run: reduce(&reduceMin, 18)},
	{name: "ReduceL1", since: 1, run: reduce(&reduceL1, 18)},
	{name: "ReduceL2", since: 1, run: reduce(&reduceL2, 18)},
	{name: "ReduceSumSquare", since: 1, run: reduce(&reduceSumSquare, 18)},
	{name: "ReduceLogSum", since: 1, run: reduce(&reduceLogSum, 18)},
	{name: "ReduceLogSumExp", since: 1, run: reduce(&reduceLogSumExp, 18)},
}

// gathering is how elements are brought together.
type gathering int

const (
	bySum gathering = iota
	bySumOfMagnitudes
	bySumOfSquares
	byProduct
	byMaximum
	byMinimum
	byLogSumExp
)

// reduction is one operator: how elements are gathered, and what becomes of the
// result of n of them.
type reduction struct {
	by      gathering
	finish  func(v float64, n int) float64 // nil for nothing
	plain   bool                           // of one element it is the element
	unclear bool                           // of no elements it is undefined
}

// The operators. Of no elements a mean is undefined, here NaN, 0 for integers.
var (
	reduceSum       = reduction{by: bySum, plain: true}
	reduceMean      = reduction{by: bySum, finish: func(v float64, n int) float64 { return v / float64(n) }, plain: true, unclear: true}
	reduceProd      = reduction{by: byProduct, plain: true}
	reduceMax       = reduction{by: byMaximum, plain: true}
	reduceMin       = reduction{by: byMinimum, plain: true}
	reduceL1        = reduction{by: bySumOfMagnitudes}
	reduceL2        = reduction{by: bySumOfSquares, finish: func(v float64, _ int) float64 { return math.Sqrt(v) }}
	reduceSumSquare = reduction{by: bySumOfSquares}
	reduceLogSum    = reduction{by: bySum, finish: func(v float64, _ int) float64 { return elementary.Log(v) }}
	reduceLogSumExp = reduction{by: byLogSumExp}
)

// reduce makes the kernel of an operator whose axes are an input from opset
// inputFrom on. With no axes named all are reduced, or with noop_with_empty_axes
// none: each element is then reduced alone.
func reduce(how *reduction, inputFrom int) Kernel {
	return func(c *Call) error {
		d, err := c.Tensor(0)
		if err != nil {
			return err
		}
		list, err := axesOf(c, inputFrom, 1)
		if err != nil {
			return err
		}
		axes, err := normalAxes(c, list, d.Rank())
		if err != nil {
			return err
		}
		if len(axes) == 0 && c.Int("noop_with_empty_axes", 0) == 0 {
			for i := range d.Rank() {
				axes = append(axes, i)
			}
		}
		if len(axes) == 0 && how.plain {
			c.Outputs[0] = d
			return nil
		}
		return c.reduce(d, axes, how)
	}
}

func (c *Call) reduce(d *tensor.Dense, axes []int, how *reduction) error {
	rows, n, err := c.rowsOf(d, axes)
	if err != nil {
		return err
	}
	if n == 0 && rows.Shape()[0] > 0 && (how.unclear || (how.by == byMaximum || how.by == byMinimum) && c.Opset < 20) {
		if err := c.Undefined("%s of no elements", c.Node.OpType); err != nil {
			return err
		}
	}
	out, err := c.reduceRows(rows, how)
	if err != nil {
		return err
	}
	return c.Reshape(0, out, reducedShape(d.Shape(), axes, c.Int("keepdims", 1) != 0)...)
}

// reducedShape is shape without axes, or with 1 in their places.
func reducedShape(shape, axes []int, keep bool) []int {
	var out []int
	for i, dim := range shape {
		switch {
		case !slices.Contains(axes, i):
			out = append(out, dim)
		case keep:
			out = append(out, 1)
		}
	}
	return out
}

// rowsOf lays out as rows of n the elements that come together when axes are
// reduced. It is d itself when the axes are its last ones.
func (c *Call) rowsOf(d *tensor.Dense, axes []int) (rows *tensor.Dense, n int, err error) {
	n = 1
	var perm, tail []int
	for i, dim := range d.Shape() {
		if slices.Contains(axes, i) {
			tail = append(tail, i)
			n *= dim
		} else {
			perm = append(perm, i)
		}
	}
	count := 1
	for _, i := range perm {
		count *= d.Shape()[i]
	}
	if perm = append(perm, tail...); !slices.IsSorted(perm) {
		if d, err = c.permuted(d, d.Shape(), perm); err != nil {
			return nil, 0, err
		}
	}
	rows, err = d.Reshape(count, n)
	return rows, n, err
}

var integerReducers = tensor.Numbers[func(c *Call, rows *tensor.Dense, how *reduction) (*tensor.Dense, error)]{
	Int8: reduceIntegers[int8], Int16: reduceIntegers[int16], Int32: reduceIntegers[int32], Int64: reduceIntegers[int64],
	Uint8: reduceIntegers[uint8], Uint16: reduceIntegers[uint16], Uint32: reduceIntegers[uint32], Uint64: reduceIntegers[uint64],
}

// reduceRows reduces each row of a matrix.
func (c *Call) reduceRows(rows *tensor.Dense, how *reduction) (*tensor.Dense, error) {
	switch t := rows.Type(); t {
	case tensor.Float32:
		return reduceFloats[float32](c, rows, how)
	case tensor.Float64:
		return reduceFloats[float64](c, rows, how)
	case tensor.Float16, tensor.BFloat16:
		wide, err := c.widen(rows)
		if err != nil {
			return nil, err
		}
		out, err := reduceFloats[float32](c, wide, how)
		if err != nil {
			return nil, err
		}
		return c.narrow(out, t)
	case tensor.Bool:
		return c.reduceBools(rows, how)
	}
	if k := integerReducers.For(rows.Type()); k != nil {
		return k(c, rows, how)
	}
	return nil, c.noKernel(rows.Type())
}

// reduceBools has false below true.
func (c *Call) reduceBools(rows *tensor.Dense, how *reduction) (*tensor.Dense, error) {
	if how.by != byMaximum && how.by != byMinimum {
		return nil, c.noKernel(tensor.Bool)
	}
	numbers, err := c.cast(rows, tensor.Uint8)
	if err != nil {
		return nil, err
	}
	out, err := c.reduceRows(numbers, how)
	if err != nil {
		return nil, err
	}
	return c.cast(out, tensor.Bool)
}

// chunkLength is the number of elements that are gathered in one go. Longer rows
// are gathered chunk by chunk, so that several cores can share a row, and the
// result does not depend on how many do.
const chunkLength = 1 << 14

// reduceFloats gathers in float64.
func reduceFloats[T floating](c *Call, rows *tensor.Dense, how *reduction) (*tensor.Dense, error) {
	count, n := rows.Shape()[0], rows.Shape()[1]
	out, err := c.New(rows.Type(), count)
	if err != nil {
		return nil, err
	}
	in, to := tensor.Data[T](rows), tensor.Data[T](out)
	set := func(i int, v float64) {
		if how.finish != nil {
			v = how.finish(v, n)
		}
		to[i] = T(v)
	}
	if how.by == byLogSumExp {
		c.Parallel(count, elementGrain/max(8*n, 1)+1, func(first, last int) {
			for i := first; i < last; i++ {
				set(i, logSumExp(in[i*n:(i+1)*n]))
			}
		})
		return out, nil
	}
	gather := gatherFloats[T](how.by)
	chunks := (n + chunkLength - 1) / chunkLength
	if count == 1 && chunks > 1 {
		parts := make([]float64, chunks)
		c.Parallel(chunks, 4, func(first, last int) {
			for k := first; k < last; k++ {
				parts[k] = gather(in[k*chunkLength : min((k+1)*chunkLength, n)])
			}
		})
		set(0, mergeParts(how.by, parts))
		return out, nil
	}
	c.Parallel(count, elementGrain/max(n, 1)+1, func(first, last int) {
		parts := make([]float64, max(chunks, 1))
		for i := first; i < last; i++ {
			row := in[i*n : (i+1)*n]
			for k := range parts {
				parts[k] = gather(row[k*chunkLength : min((k+1)*chunkLength, n)])
			}
			set(i, mergeParts(how.by, parts))
		}
	})
	return out, nil
}

// mergeParts brings what was gathered of chunks together.
func mergeParts(by gathering, parts []float64) float64 {
	v := parts[0]
	for _, part := range parts[1:] {
		switch by {
		case byProduct:
			v *= part
		case byMaximum:
			v = max(v, part)
		case byMinimum:
			v = min(v, part)
		default:
			v += part
		}
	}
	return v
}

// gatherFloats gives the function that gathers one chunk. Sums run in four lanes,
// which the processor can work on at once.
func gatherFloats[T floating](by gathering) func(row []T) float64 {
	switch by {
	case bySumOfMagnitudes:
		return func(row []T) float64 {
			return sumLanes(row, func(v T) float64 { return math.Abs(float64(v)) })
		}
	case bySumOfSquares:
		return func(row []T) float64 {
			return sumLanes(row, func(v T) float64 { return float64(float64(v) * float64(v)) })
		}
	case byProduct:
		return func(row []T) float64 {
			p := 1.0
			for _, v := range row {
				p *= float64(v)
			}
			return p
		}
	case byMaximum:
		return func(row []T) float64 {
			m := T(math.Inf(-1))
			for _, v := range row {
				m = max(m, v)
			}
			return float64(m)
		}
	case byMinimum:
		return func(row []T) float64 {
			m := T(math.Inf(1))
			for _, v := range row {
				m = min(m, v)
			}
			return float64(m)
		}
	}
	return func(row []T) float64 {
		var a, b, c, d float64
		for ; len(row) >= 4; row = row[4:] {
			a += float64(row[0])
			b += float64(row[1])
			c += float64(row[2])
			d += float64(row[3])
		}
		for _, v := range row {
			a += float64(v)
		}
		return (a + b) + (c + d)
	}
}

func sumLanes[T floating](row []T, f func(T) float64) float64 {
	var a, b float64
	for ; len(row) >= 2; row = row[2:] {
		a += f(row[0])
		b += f(row[1])
	}
	for _, v := range row {
		a += f(v)
	}
	return a + b
}

// logSumExp takes the maximum out first, so that no exponential overflows.
func logSumExp[T floating](row []T) float64 {
	top := gatherFloats[T](byMaximum)(row)
	if math.IsInf(top, 0) || top != top {
		return top
	}
	return top + elementary.Log(sumLanes(row, func(v T) float64 { return elementary.Exp(float64(v) - top) }))
}

// reduceIntegers gathers in the element type, where sums and products wrap; what
// remains to be done is computed in float64 and cut to a whole number. The mean
// divides, towards zero, a sum that wraps in 64 bits.
func reduceIntegers[T integer](c *Call, rows *tensor.Dense, how *reduction) (*tensor.Dense, error) {
	count, n := rows.Shape()[0], rows.Shape()[1]
	out, err := c.New(rows.Type(), count)
	if err != nil {
		return nil, err
	}
	in, to := tensor.Data[T](rows), tensor.Data[T](out)
	c.Parallel(count, elementGrain/max(n, 1)+1, func(first, last int) {
		for i := first; i < last; i++ {
			to[i] = reduceIntegerRow(in[i*n:(i+1)*n], how)
		}
	})
	return out, nil
}

func reduceIntegerRow[T integer](row []T, how *reduction) T {
	switch {
	case how == &reduceMean:
		return integerMean(row)
	case how.by == byLogSumExp:
		wide := make([]float64, len(row))
		for i, v := range row {
			wide[i] = float64(v)
		}
		return T(truncate(logSumExp(wide), tensor.TypeOf[T]()))
	}
	v := gatherIntegers(row, how.by)
	if how.finish != nil {
		return T(truncate(how.finish(float64(v), len(row)), tensor.TypeOf[T]()))
	}
	return v
}

func integerMean[T integer](row []T) T {
	if len(row) == 0 {
		return 0
	}
	if tensor.TypeOf[T]() == tensor.Uint64 {
		var sum uint64
		for _, v := range row {
			sum += uint64(v)
		}
		return T(sum / uint64(len(row)))
	}
	var sum int64
	for _, v := range row {
		sum += int64(v)
	}
	return T(sum / int64(len(row)))
}

func gatherIntegers[T integer](row []T, by gathering) T {
	var v T
	switch by {
	case byProduct:
		v = 1
	case byMaximum:
		v = smallest[T]()
	case byMinimum:
		v = ^smallest[T]()
	}
	for _, x := range row {
		switch by {
		case bySumOfMagnitudes:
			if x < 0 {
				x = -x
			}
			v += x
		case bySumOfSquares:
			v += x * x
		case byProduct:
			v *= x
		case byMaximum:
			v = max(v, x)
		case byMinimum:
			v = min(v, x)
		default:
			v += x
		}
	}
	return v
}

// smallest is the least number of a type; the greatest is its complement.
func smallest[T integer]() T {
	t := tensor.TypeOf[T]()
	if !t.IsSigned() {
		return 0
	}
	return T(1) << (t.Bits() - 1)
}
