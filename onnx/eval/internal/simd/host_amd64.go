package simd

import "golang.org/x/sys/cpu"

// hasVectors says whether the host has vectors of eight float32 with fused
// multiply-add, which the assembly uses.
func hasVectors() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA }
