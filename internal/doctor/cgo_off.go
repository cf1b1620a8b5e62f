//go:build !cgo

package doctor

const hasCGo = false
