// Package elementary has the functions of the mathematics library that give the
// same bits on every host.
//
// Go's package math is free to differ between architectures: it has assembly for
// some, and elsewhere the compiler may fuse a product and a sum into one
// instruction with one rounding. A constant that was folded on a workstation must
// not change when the fold is repeated on an arm64 board, so the interpreter
// computes with these. Every product that is added to something is rounded by an
// explicit conversion, which the language says is never fused.
//
// The functions take and give float64, with an error of at most 4 units in the
// last place: rounded to float32 they are correct but for a few ties in a billion.
// Those named Fast… keep a relative error below 2e-9, which is still a rounding
// away from exact in float32, at half the work; they are for the activation
// functions that large tensors go through.
//
// The polynomials are series, or Chebyshev fits of the stated interval made for
// this package.
package elementary
