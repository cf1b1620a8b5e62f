package eval

import (
	"math"
	"slices"

	"github.com/npuctl/npuctl/onnx/eval/internal/gemm"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// linearOperators multiply matrices.
var linearOperators = []operator{
	{name: "MatMul", since: 1, run: onNumbers(0, tensor.Numbers[Kernel]{
		Float32: matMul[float32], Float64: matMul[float64],
		Int32: matMul[int32], Int64: matMul[int64], Uint32: matMul[uint32], Uint64: matMul[uint64],
	})},
	{name: "Gemm", since: 1, run: onNumbers(0, tensor.Numbers[Kernel]{
		Float32: generalMatMul[float32], Float64: generalMatMul[float64],
		Int32: generalMatMul[int32], Int64: generalMatMul[int64], Uint32: generalMatMul[uint32], Uint64: generalMatMul[uint64],
	})},
	{name: "Det", since: 11, run: onFloats(0, determinant[float32], determinant[float64])},
}

// matMul multiplies as numpy's matmul does: a vector is a row on the left and a
// column on the right, and outer dims broadcast.
func matMul[T number](c *Call) error {
	a, err := c.Tensor(0)
	if err != nil {
		return err
	}
	b, err := c.Tensor(1)
	if err != nil {
		return err
	}
	g, err := newMatGrid(c, a.Shape(), b.Shape())
	if err != nil {
		return err
	}
	out, err := newResult[T](c, 0, a.Type(), g.shape...)
	if err != nil {
		return err
	}
	k := multiplier[T](c)
	left, err := matrices(c, 0, !c.keeps(1) && c.keeps(0), g.rows*g.depth, func(data []T) *gemm.Operand[T] {
		return k.Left(gemm.RowMajor(data, g.rows, g.depth))
	})
	if err != nil {
		return err
	}
	right, err := matrices(c, 1, c.keeps(1), g.depth*g.columns, func(data []T) *gemm.Operand[T] {
		return k.Right(gemm.RowMajor(data, g.depth, g.columns))
	})
	if err != nil {
		return err
	}
	g.run(func(products []matPlace) {
		list := make([]gemm.Product[T], len(products))
		for i, p := range products {
			list[i] = gemm.Product[T]{
				C:    out.data[p.out*g.rows*g.columns:][:g.rows*g.columns],
				Step: g.columns, A: left(p.a), B: right(p.b),
			}
		}
		k.Run(c.Parallel, list...)
	})
	return out.finish()
}

// matGrid is how matrices of two operands pair up to those of a result.
type matGrid struct {
	shape                []int // of the result
	rows, columns, depth int
	walk                 *tensor.Walk // over pairs of matrices
}

// matPlace is one product: the numbers of its matrices in each array.
type matPlace struct{ a, b, out int }

func newMatGrid(c *Call, a, b []int) (*matGrid, error) {
	if len(a) == 0 || len(b) == 0 {
		return nil, c.Errorf("cannot multiply shapes %v and %v: a scalar is no matrix", a, b)
	}
	wide, high := slices.Clone(a), slices.Clone(b)
	if len(a) == 1 {
		wide = []int{1, a[0]}
	}
	if len(b) == 1 {
		high = []int{b[0], 1}
	}
	n, m := len(wide), len(high)
	g := &matGrid{rows: wide[n-2], depth: wide[n-1], columns: high[m-1]}
	if g.depth != high[m-2] {
		return nil, c.Errorf("cannot multiply shapes %v and %v: %d against %d", a, b, g.depth, high[m-2])
	}
	outerA, outerB := wide[:n-2], high[:m-2]
	if len(b) <= 2 {
		// All matrices on the left meet the same one on the right: one tall matrix.
		g.rows *= product(outerA)
		g.shape = append(g.shape, wide[:n-1]...)
		outerA = nil
	} else {
		var err error
		if g.shape, err = tensor.BroadcastShapes(outerA, outerB); err != nil {
			return nil, c.Errorf("cannot multiply shapes %v and %v: %w", a, b, err)
		}
		outer := slices.Clone(g.shape)
		if g.walk, err = tensor.BroadcastWalk(outer, outerA, outerB); err != nil {
			return nil, c.Errorf("cannot multiply shapes %v and %v: %w", a, b, err)
		}
		g.shape = append(g.shape, g.rows)
	}
	g.shape = append(g.shape, g.columns)
	if len(a) == 1 {
		g.shape = slices.Delete(g.shape, len(g.shape)-2, len(g.shape)-1)
	}
	if len(b) == 1 {
		g.shape = g.shape[:len(g.shape)-1]
	}
	return g, nil
}

// productChunk is how many products are listed at a time: enough for all cores,
// and few enough that the list costs no memory that counts.
const productChunk = 1024

// run calls f with the products in order, some at a time.
func (g *matGrid) run(f func([]matPlace)) {
	if g.walk == nil {
		f([]matPlace{{}})
		return
	}
	list := make([]matPlace, 0, min(productChunk, g.walk.Runs()*g.walk.Len()))
	g.walk.Range(0, g.walk.Runs(), func(run int, at []int) {
		for i := range g.walk.Len() {
			if len(list) == productChunk {
				f(list)
				list = list[:0]
			}
			list = append(list, matPlace{at[0] + i*g.walk.Step(0), at[1] + i*g.walk.Step(1), run*g.walk.Len() + i})
		}
	})
	f(list)
}

// matrices gives the operands that the matrices of an input make, each size
// elements, by number. When they may be kept, all are packed once for the life of
// the program.
func matrices[T number](c *Call, input int, keep bool, size int, operand func(data []T) *gemm.Operand[T]) (func(i int) *gemm.Operand[T], error) {
	if keep && size > 0 {
		kept, err := c.Once(func() (any, error) { return packMatrices(c, input, size, operand) })
		if err != nil {
			return nil, err
		}
		// Another input of another rank can ask for matrices of another size.
		if k := kept.(keptMatrices[T]); k.size == size {
			return func(i int) *gemm.Operand[T] { return k.packed[i] }, nil
		}
	}
	v, err := numberInput[T](c, input)
	if err != nil {
		return nil, err
	}
	return func(i int) *gemm.Operand[T] { return operand(v.data[i*size:][:size]) }, nil
}

// keptMatrices are the matrices of a constant input, packed.
type keptMatrices[T number] struct {
	size   int
	packed []*gemm.Operand[T]
}

func packMatrices[T number](c *Call, input, size int, operand func(data []T) *gemm.Operand[T]) (keptMatrices[T], error) {
	v, err := numberInput[T](c, input)
	if err != nil {
		return keptMatrices[T]{}, err
	}
	k := keptMatrices[T]{size: size}
	for at := 0; at+size <= len(v.data); at += size {
		k.packed = append(k.packed, operand(v.data[at:][:size]).Pack(c.Parallel))
	}
	return k, nil
}

// generalMatMul is Gemm: alpha·A'·B' + beta·C, where A' and B' may be transposed and
// C broadcasts to the result. On integers, factors that are no integers make the
// specification's result a matter of taste: we round each scaled term to zero.
func generalMatMul[T number](c *Call) error {
	a, err := gemmMatrix[T](c, 0, "transA")
	if err != nil {
		return err
	}
	b, err := gemmMatrix[T](c, 1, "transB")
	if err != nil {
		return err
	}
	if a.Columns != b.Rows {
		return c.Errorf("cannot multiply %dx%d by %dx%d", a.Rows, a.Columns, b.Rows, b.Columns)
	}
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	out, err := newResult[T](c, 0, d.Type(), a.Rows, b.Columns)
	if err != nil {
		return err
	}
	k := multiplier[T](c)
	right, err := c.packed(1, func() (any, error) {
		m, err := gemmMatrix[T](c, 1, "transB")
		return k.Right(m).Pack(c.Parallel), err
	})
	if err != nil {
		return err
	}
	operand, ok := right.(*gemm.Operand[T])
	if !ok {
		operand = k.Right(b)
	}
	k.Run(c.Parallel, gemm.Product[T]{C: out.data, Step: b.Columns, A: k.Left(a), B: operand})
	if err := addScaled(c, out.data, a.Rows, b.Columns); err != nil {
		return err
	}
	return out.finish()
}

// packed keeps what make makes of input i; it gives nil when that cannot be kept.
func (c *Call) packed(i int, make func() (any, error)) (any, error) {
	if !c.keeps(i) {
		return nil, nil
	}
	return c.Once(make)
}

// gemmMatrix gives an input of Gemm as a matrix, transposed when the attribute says so.
func gemmMatrix[T number](c *Call, i int, transpose string) (gemm.Matrix[T], error) {
	v, err := numberInput[T](c, i)
	if err != nil {
		return gemm.Matrix[T]{}, err
	}
	if len(v.shape) != 2 {
		return gemm.Matrix[T]{}, c.Errorf("input %d has shape %v, not two dims", i, v.shape)
	}
	m := gemm.RowMajor(v.data, v.shape[0], v.shape[1])
	if c.Int(transpose, 0) != 0 {
		m = m.Transposed()
	}
	return m, nil
}

// addScaled makes alpha·y + beta·C of y.
func addScaled[T number](c *Call, y []T, rows, columns int) error {
	alpha, beta := c.Float("alpha", 1), c.Float("beta", 1)
	bias, err := optionalNumbers[T](c, 2)
	if err != nil {
		return err
	}
	if bias.data == nil && alpha == 1 {
		return nil
	}
	if tensor.TypeOf[T]().IsInteger() && (float32(T(alpha)) != alpha || float32(T(beta)) != beta) {
		if err := c.Undefined("integers scaled by %v and %v", alpha, beta); err != nil {
			return err
		}
	}
	strides := []int{0, 0}
	if bias.data != nil {
		if strides, err = tensor.BroadcastStrides(bias.shape, []int{rows, columns}); err != nil {
			return c.Errorf("input 2: %w", err)
		}
	}
	c.Parallel(rows, 1+elementGrain/max(1, columns), func(first, last int) {
		for i := first; i < last; i++ {
			row := y[i*columns:][:columns]
			if alpha != 1 {
				for j, v := range row {
					row[j] = times(v, alpha)
				}
			}
			if bias.data != nil {
				addRow(row, bias.data[i*strides[0]:], strides[1], beta)
			}
		}
	})
	return nil
}

// addRow adds beta times a row, or times one element when step is 0.
func addRow[T number](row, bias []T, step int, beta float32) {
	if step == 0 {
		v := times(bias[0], beta)
		for j := range row {
			row[j] += v
		}
		return
	}
	bias = bias[:len(row)]
	if beta == 1 {
		for j, v := range bias {
			row[j] += v
		}
		return
	}
	for j, v := range bias {
		row[j] += times(v, beta)
	}
}

// times is v·factor, in T when the factor is a number of T.
func times[T number](v T, factor float32) T {
	if f := T(factor); float32(f) == factor {
		return T(v * f)
	}
	return T(float64(v) * float64(factor))
}

// determinant computes determinants of square matrices by elimination with the
// largest pivot of each column, in float64.
func determinant[T floating](c *Call) error {
	x, err := numberInput[T](c, 0)
	if err != nil {
		return err
	}
	rank := len(x.shape)
	if rank < 2 || x.shape[rank-1] != x.shape[rank-2] {
		return c.Errorf("input 0 has shape %v, which holds no square matrices", x.shape)
	}
	n := x.shape[rank-1]
	out, err := newResult[T](c, 0, x.typ, x.shape[:rank-2]...)
	if err != nil {
		return err
	}
	if err := c.Charge(int64(n) * int64(n) * 8); err != nil {
		return err
	}
	work := make([]float64, n*n)
	for i := range out.data {
		for j, v := range x.data[i*n*n:][:n*n] {
			work[j] = float64(v)
		}
		out.data[i] = T(eliminate(work, n))
	}
	return out.finish()
}

// eliminate brings the n by n matrix m to triangular form and returns the product
// of its diagonal, with the sign of the exchanges.
func eliminate(m []float64, n int) float64 {
	det := 1.0
	for k := range n {
		pivot := k
		for i := k + 1; i < n; i++ {
			if math.Abs(m[i*n+k]) > math.Abs(m[pivot*n+k]) {
				pivot = i
			}
		}
		if pivot != k {
			det = -det
			for j := k; j < n; j++ {
				m[k*n+j], m[pivot*n+j] = m[pivot*n+j], m[k*n+j]
			}
		}
		diagonal := m[k*n+k]
		if diagonal == 0 {
			return 0
		}
		det *= diagonal
		for i := k + 1; i < n; i++ {
			factor := m[i*n+k] / diagonal
			for j := k + 1; j < n; j++ {
				m[i*n+j] -= float64(factor * m[k*n+j])
			}
		}
	}
	return det
}
