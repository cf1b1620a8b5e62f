//go:build !amd64

package simd

// There is no assembly for this architecture; the functions below are never called.

func hasVectors() bool { return false }

func maximumLanes(_, _ *float32, _ int)                        {}
func scaleEights(_, _ *float32, _ int, _ float32)              {}
func addScaledEights(_, _ *float32, _ int, _ float32)          {}
func expSumEights(_, _ *float32, _ int, _ float32, _ *float32) {}
func sigmoidEights(_, _ *float32, _ int)                       {}
func tanhEights(_, _ *float32, _ int)                          {}
func erfEights(_, _ *float32, _ int)                           {}
