package gemm

// Operand is one side of a product: a number of lines (the rows of A, the columns
// of B), each as long as the product is deep, that can be had as panels.
//
// A panel holds width lines: element k of line i at k*width+i. Lines missing in
// the last panel are zeros. The panels of one block of depth follow each other.
type Operand[T Number] struct {
	lines, depth int
	width        int // lines in a panel
	// packed holds all panels, the blocks of depth one after the other; nil when
	// they are made when needed.
	packed []T
	// fill makes the panels of the steps k0 to k1 of the lines first to last, where
	// first is the start of a panel. What it leaves out of dst is zero already.
	fill func(dst []T, k0, k1, first, last int)
}

// Left returns the operand A = m, whose panels are made when needed.
func (k *Kernel[T]) Left(m Matrix[T]) *Operand[T] {
	return matrixOperand(m.Transposed(), k.rows)
}

// Right returns the operand B = m, whose panels are made when needed.
func (k *Kernel[T]) Right(m Matrix[T]) *Operand[T] {
	return matrixOperand(m, k.columns)
}

// RightRows returns an operand B of depth rows that exist only as a function:
// row fills dst with the elements of row k from column first on.
func (k *Kernel[T]) RightRows(depth, columns int, row func(dst []T, k, first int)) *Operand[T] {
	width := k.columns
	fill := func(dst []T, k0, k1, first, last int) {
		line := make([]T, last-first)
		for k := k0; k < k1; k++ {
			row(line, k, first)
			spread(dst[(k-k0)*width:], line, width, (k1-k0)*width)
		}
	}
	return &Operand[T]{lines: columns, depth: depth, width: width, fill: fill}
}

// Pack returns the operand with all its panels made, to be kept and used again.
func (o *Operand[T]) Pack(parallel Parallel) *Operand[T] {
	padded := roundUp(o.lines, o.width)
	packed := make([]T, padded*o.depth)
	panels := padded / o.width
	parallel(panels, 1+packGrain/max(1, o.depth*o.width), func(first, last int) {
		for k0 := 0; k0 < o.depth; k0 += DepthBlock {
			k1 := min(k0+DepthBlock, o.depth)
			panel := (k1 - k0) * o.width
			block := packed[k0*padded+first*panel : k0*padded+last*panel]
			o.fill(block, k0, k1, first*o.width, min(last*o.width, o.lines))
		}
	})
	return &Operand[T]{lines: o.lines, depth: o.depth, width: o.width, packed: packed}
}

// packGrain is the number of elements that are worth packing on another core.
const packGrain = 1 << 15

// panels returns the panels first to last of the steps k0 to k1, where k0 starts a
// block of depth. Scratch is room for them, used when they are not there yet.
func (o *Operand[T]) panels(scratch *[]T, k0, k1, first, last int) []T {
	size := (k1 - k0) * o.width
	if o.packed != nil {
		start := k0*roundUp(o.lines, o.width) + first*size
		return o.packed[start : start+(last-first)*size]
	}
	n := (last - first) * size
	if cap(*scratch) < n {
		*scratch = make([]T, n)
	}
	dst := (*scratch)[:n]
	if last*o.width > o.lines {
		clear(dst[n-size:])
	}
	o.fill(dst, k0, k1, first*o.width, min(last*o.width, o.lines))
	return dst
}

// matrixOperand makes panels of the columns of m.
func matrixOperand[T Number](m Matrix[T], width int) *Operand[T] {
	o := &Operand[T]{lines: m.Columns, depth: m.Rows, width: width}
	if m.ColumnStep == 1 {
		o.fill = func(dst []T, k0, k1, first, last int) {
			for k := k0; k < k1; k++ {
				line := m.Data[k*m.RowStep+first:][:last-first]
				spread(dst[(k-k0)*width:], line, width, (k1-k0)*width)
			}
		}
		return o
	}
	o.fill = func(dst []T, k0, k1, first, last int) {
		for ; first < last; first += width {
			interleave(dst, m, k0, k1, first, min(first+width, last), width)
			dst = dst[min(len(dst), (k1-k0)*width):]
		}
	}
	return o
}

// spread copies a line to the panels that share it, width elements to each; panels
// are size elements apart.
func spread[T Number](dst, line []T, width, size int) {
	if width == 16 {
		// The width of the fast kernels: the compiler moves an array of known
		// length without a call.
		for len(line) >= 16 {
			*(*[16]T)(dst) = *(*[16]T)(line)
			line = line[16:]
			dst = dst[min(size, len(dst)):]
		}
	}
	for len(line) > 0 {
		n := min(width, len(line))
		copy(dst, line[:n])
		line = line[n:]
		dst = dst[min(size, len(dst)):]
	}
}

// interleave writes one panel of columns first to last of m, which are read along
// their depth.
func interleave[T Number](dst []T, m Matrix[T], k0, k1, first, last, width int) {
	depth := k1 - k0
	if last-first == 6 && width == 6 && m.RowStep == 1 {
		interleave6(dst[:6*depth], m.Data[first*m.ColumnStep+k0:], m.ColumnStep)
		return
	}
	for j := first; j < last; j++ {
		at := k0*m.RowStep + j*m.ColumnStep
		for k := j - first; k < depth*width; k += width {
			dst[k] = m.Data[at]
			at += m.RowStep
		}
	}
}

// interleave6 is interleave for the commonest case, all six lines at a time.
func interleave6[T Number](dst, src []T, step int) {
	depth := len(dst) / 6
	s0 := src[:depth]
	s1 := src[step:][:depth]
	s2 := src[2*step:][:depth]
	s3 := src[3*step:][:depth]
	s4 := src[4*step:][:depth]
	s5 := src[5*step:][:depth]
	for k := range s0 {
		d := (*[6]T)(dst)
		d[0], d[1], d[2] = s0[k], s1[k], s2[k]
		d[3], d[4], d[5] = s3[k], s4[k], s5[k]
		dst = dst[6:]
	}
}

func roundUp(n, multiple int) int { return (n + multiple - 1) / multiple * multiple }
