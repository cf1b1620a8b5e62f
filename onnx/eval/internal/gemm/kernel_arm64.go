package gemm

// hostKernel returns the kernel of the vector unit that every arm64 processor has.
func hostKernel() *Kernel[float32] {
	return &Kernel[float32]{
		name: "neon", rows: 8, columns: 8,
		tile: func(depth int, a, b, c []float32, step int) { tile8x8(depth, &a[0], &b[0], &c[0], step) },
		row:  func(depth int, a, b, c []float32, _ int) { tile1x8(depth, &a[0], &b[0], &c[0]) },
	}
}

// tile8x8 adds to 8 rows of 8 elements at c, step elements apart, the product of the
// panels a and b.
//
//go:noescape
func tile8x8(depth int, a, b, c *float32, step int)

// tile1x8 adds to the first row of a tile at c the product of the panels a and b.
//
//go:noescape
func tile1x8(depth int, a, b, c *float32)
