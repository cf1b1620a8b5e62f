package gemm

// Number is the element types that can be multiplied. Integers wrap.
type Number interface {
	float32 | float64 | int32 | int64 | uint32 | uint64
}

// Matrix is a view of a matrix in memory: element (i, j) is
// Data[i*RowStep+j*ColumnStep].
type Matrix[T Number] struct {
	Data                []T
	Rows, Columns       int
	RowStep, ColumnStep int
}

// RowMajor is the view of a matrix whose rows lie one after the other.
func RowMajor[T Number](data []T, rows, columns int) Matrix[T] {
	return Matrix[T]{Data: data, Rows: rows, Columns: columns, RowStep: columns, ColumnStep: 1}
}

// Transposed is the view of the transposed matrix, on the same elements.
func (m Matrix[T]) Transposed() Matrix[T] {
	return Matrix[T]{Data: m.Data, Rows: m.Columns, Columns: m.Rows, RowStep: m.ColumnStep, ColumnStep: m.RowStep}
}

// Parallel calls f for pieces of 0..n that together cover it, possibly at the same
// time; a piece holds at least grain items.
type Parallel func(n, grain int, f func(first, last int))

// Serial is the [Parallel] of one core.
func Serial(n, _ int, f func(first, last int)) {
	if n > 0 {
		f(0, n)
	}
}
