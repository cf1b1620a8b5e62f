// Package gemm multiplies matrices: C += A·B, the operation under MatMul, Gemm,
// convolutions, recurrent layers and attention.
//
// # How it works
//
// A [Kernel] owns a micro-kernel: a function that keeps a small tile of C in
// registers and runs down the depth of the product, reading a panel of A and a
// panel of B. A panel holds a few lines (rows of A, columns of B) interleaved,
// so that the micro-kernel reads both panels from front to back. An [Operand] is
// a matrix that can be had in panels: packed once and kept, as weights are, or
// packed block by block while the product runs. The columns of an unfolded image
// never exist as a matrix: [Kernel.RightRows] makes their panels on the fly.
//
// Around the micro-kernel run the usual loops: a block of B that the second-level
// cache holds, a block of A, one panel of B in the first-level cache, the panels
// of A. Cores share the panels of one side of C.
//
// # Bits
//
// An element of C is the sum, over blocks of [DepthBlock] steps in order, of the
// sum over the steps of the block in order. Neither tile nor split changes that,
// so a kernel gives the same bits for any number of cores and however operands
// were packed. The portable kernel rounds every product and every sum and gives
// the same bits on every host; the fast kernels fuse the two, so they agree with each
// other, too.
//
// The assembly of amd64 is written by a program in the directory assembly beside this
// one, that of arm64 by hand.
package gemm

//go:generate go run -C ../assembly ./gemm -out ../gemm/tile_amd64.s -stubs ../gemm/tile_amd64.go -pkg gemm
