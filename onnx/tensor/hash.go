package tensor

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"unsafe"
)

// EqualBits reports whether a and b have the same type, shape and element bits:
// NaNs with the same payload are equal, and 0 differs from -0.
func EqualBits(a, b *Dense) bool {
	switch {
	case a.typ != b.typ || !slices.Equal(a.shape, b.shape):
		return false
	case a.base == b.base:
		return true
	case a.typ == String:
		return slices.Equal(view[string](a), view[string](b))
	}
	return bytes.Equal(a.memory(), b.memory())
}

// Hash returns a hash over type, shape and element bits. Arrays that are equal by
// [EqualBits] have the same one, in every process and on every host. It is no
// defence against collisions made on purpose: compare before believing it.
func (d *Dense) Hash() uint64 {
	h := fold(uint64(d.typ), uint64(len(d.shape)))
	for _, dim := range d.shape {
		h = fold(h, uint64(dim))
	}
	switch {
	case d.typ == String:
		for _, s := range view[string](d) {
			h = hashBytes(h, unsafe.Slice(unsafe.StringData(s), len(s)))
		}
		return h
	case d.typ.Width() == 1:
		return hashBytes(h, d.memory())
	}
	return hashBytes(h, d.Raw())
}

// Odd constants with an even spread of bits, to keep zeros from staying zeros.
const (
	salt0 = 0x9e3779b97f4a7c15
	salt1 = 0xd6e8feb86659fd93
	salt2 = 0xa0761d6478bd642f
	salt3 = 0xe7037ed1a0b428db
)

// fold mixes two words by the halves of their 128-bit product.
func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a^salt0, b^salt1)
	return high ^ low
}

// hashBytes folds b and its length into h. Two lanes of 16 bytes each keep the
// multiplier busy.
func hashBytes(h uint64, b []byte) uint64 {
	h = fold(h, uint64(len(b)))
	other := h ^ salt2
	for ; len(b) >= 32; b = b[32:] {
		h = fold(binary.LittleEndian.Uint64(b)^h, binary.LittleEndian.Uint64(b[8:]))
		other = fold(binary.LittleEndian.Uint64(b[16:])^other, binary.LittleEndian.Uint64(b[24:])^salt3)
	}
	var rest [32]byte
	copy(rest[:], b)
	for at := 0; at < len(b); at += 8 {
		h = fold(h, binary.LittleEndian.Uint64(rest[at:]))
	}
	return fold(h, other)
}
