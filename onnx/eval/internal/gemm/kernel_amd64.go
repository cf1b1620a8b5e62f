package gemm

import "golang.org/x/sys/cpu"

// hostKernel returns the kernel of a processor with 256-bit vectors and fused
// multiply-add, or nil when this one lacks them.
func hostKernel() *Kernel[float32] {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasFMA {
		return nil
	}
	return &Kernel[float32]{
		name: "avx2", rows: 6, columns: 16,
		tile: func(depth int, a, b, c []float32, step int) { tile6x16(depth, &a[0], &b[0], &c[0], step) },
		row:  func(depth int, a, b, c []float32, _ int) { tile1x16(depth, &a[0], &b[0], &c[0]) },
	}
}
