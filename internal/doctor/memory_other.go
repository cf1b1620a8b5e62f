//go:build !linux && !darwin

package doctor

// memoryBytes is not known here.
func memoryBytes() int64 { return 0 }
