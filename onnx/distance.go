package onnx

import "unsafe"

// distance is how far b starts behind a in memory, negative when before it. It
// only tells whether two slices share a mapping; nothing is read through it.
func distance(a, b []byte) int64 {
	return int64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) - int64(uintptr(unsafe.Pointer(unsafe.SliceData(a))))
}
