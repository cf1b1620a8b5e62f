package gemm

// DepthBlock is the number of steps of a product whose sum is made in registers
// before it is added to C. It is part of what defines the bits of a result.
const DepthBlock = 256

// Kernel is one way to multiply matrices of T: a micro-kernel with the size of its
// tile. Operands are packed for one kernel and must not be given to another.
type Kernel[T Number] struct {
	name          string
	rows, columns int // of a tile of C
	// tile adds to a tile of C, whose rows are step elements apart, the product of
	// a panel of A and one of B that are depth steps long.
	tile func(depth int, a, b, c []T, step int)
	// row does the same for the first row of the tile alone; nil when the kernel
	// has no faster way for it.
	row func(depth int, a, b, c []T, step int)
}

// String names the kernel for reports: "portable", "avx2", "neon".
func (k *Kernel[T]) String() string { return k.name }

// Portable returns the kernel that gives the same bits on every host.
func Portable[T Number]() *Kernel[T] {
	return &Kernel[T]{name: "portable", rows: 4, columns: 2, tile: portableTile[T]}
}

// Fast32 returns the fastest kernel that the host has for float32.
func Fast32() *Kernel[float32] {
	if k := hostKernel(); k != nil {
		return k
	}
	return Portable[float32]()
}

// portableTile is the micro-kernel in Go, 4 by 2: its sums and operands fit the 16
// registers of amd64. Products are converted to T before they are added, which
// keeps the compiler from fusing the two where the host could.
func portableTile[T Number](depth int, a, b, c []T, step int) {
	var c00, c01, c10, c11, c20, c21, c30, c31 T
	for k := range depth {
		x, y := (*[4]T)(a[4*k:]), (*[2]T)(b[2*k:])
		c00 += T(x[0] * y[0])
		c01 += T(x[0] * y[1])
		c10 += T(x[1] * y[0])
		c11 += T(x[1] * y[1])
		c20 += T(x[2] * y[0])
		c21 += T(x[2] * y[1])
		c30 += T(x[3] * y[0])
		c31 += T(x[3] * y[1])
	}
	for i, r := range [4][2]T{{c00, c01}, {c10, c11}, {c20, c21}, {c30, c31}} {
		row := c[i*step:][:2]
		row[0] += r[0]
		row[1] += r[1]
	}
}
