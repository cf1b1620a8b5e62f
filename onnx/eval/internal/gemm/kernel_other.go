//go:build !amd64 && !arm64

package gemm

// hostKernel returns nil: this architecture has no kernel of its own.
func hostKernel() *Kernel[float32] { return nil }
