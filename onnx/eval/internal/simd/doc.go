// Package simd has loops over float32 that use the vector units of the host, and
// otherwise do the same in Go.
//
// Functions that take dst and src want them equally long; they may be the same slice.
// A result depends only on the elements, on their number and on whether the host has
// the vector unit, never on alignment. Where the bits must be those of every other
// host, as when constants are folded, use package elementary.
package simd

//go:generate go run -C ../assembly ./simd -out ../simd/simd_amd64.s -stubs ../simd/simd_amd64.go -pkg simd
