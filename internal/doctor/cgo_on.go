//go:build cgo

package doctor

const hasCGo = true
