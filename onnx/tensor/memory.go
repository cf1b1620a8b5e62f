package tensor

import (
	"encoding/binary"
	"runtime"
	"slices"
	"unsafe"
)

// hostLittleEndian says whether memory already has the byte order of raw_data.
var hostLittleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// memory returns the bytes of the elements as they lie in memory; nil for String.
func (d *Dense) memory() []byte {
	if d.typ == String {
		return nil
	}
	if d.count == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(d.base), d.count*d.typ.Width())
}

// swapUnit returns the bytes of the number whose order depends on the host: the
// element, or the half of a complex one.
func (d *Dense) swapUnit() int {
	if d.typ.IsComplex() {
		return d.typ.Width() / 2
	}
	return d.typ.Width()
}

// swapBytes reverses the bytes of every number of unit bytes.
func swapBytes(b []byte, unit int) {
	for ; len(b) >= unit; b = b[unit:] {
		slices.Reverse(b[:unit])
	}
}

// aligned reports whether elements of type t may lie at p: every type is read
// at its storage word, too, so complex64 needs 8 bytes.
func aligned(t Type, p unsafe.Pointer) bool {
	return uintptr(p)%uintptr(max(1, min(t.Width(), 8))) == 0
}

// canAlias reports whether raw can be the memory of an array of type t.
func canAlias(t Type, raw []byte) bool {
	switch {
	case t.Bits() < 8:
		return false
	case t == Bool:
		return validBools(raw)
	case t.Width() > 1 && !hostLittleEndian:
		return false
	}
	return aligned(t, unsafe.Pointer(unsafe.SliceData(raw)))
}

// validBools reports whether every byte is a Go bool; Go does not define what any
// other one does when it is read as such.
func validBools(raw []byte) bool {
	const ones = 0x0101010101010101
	for ; len(raw) >= 8; raw = raw[8:] {
		if binary.NativeEndian.Uint64(raw)&^ones != 0 {
			return false
		}
	}
	for _, b := range raw {
		if b > 1 {
			return false
		}
	}
	return true
}

// piece is how many elements [Move] copies at once.
const piece = 1 << 18

// Move copies src to dst, which is as long and does not overlap it. The runtime cannot
// interrupt one copy, and holds up the whole process while it wants to: gigabytes go in
// pieces with a chance for others between them, so that a run that is given up need not
// wait for all of it.
func Move[T any](dst, src []T) {
	for len(src) > piece {
		copy(dst, src[:piece])
		runtime.Gosched()
		dst, src = dst[piece:], src[piece:]
	}
	copy(dst, src)
}

// decode fills the fresh array d from raw.
func decode(d *Dense, raw []byte) {
	memory := d.memory()
	switch {
	case d.typ.Bits() < 8:
		unpack(memory, raw, d.typ)
	case d.typ == Bool:
		for i, b := range raw {
			if b != 0 {
				memory[i] = 1
			}
		}
	default:
		Move(memory, raw)
		if !hostLittleEndian {
			swapBytes(memory, d.swapUnit())
		}
	}
}

// unpack spreads elements of 2 or 4 bits over a byte each, with their sign. The
// first element of a byte is in its lowest bits.
func unpack(dst, raw []byte, t Type) {
	bits := t.Bits()
	perByte := 8 / bits
	mask := byte(1)<<bits - 1
	var sign byte // of a signed element: inverting and subtracting it extends it
	if t.IsInteger() && t.IsSigned() {
		sign = 1 << (bits - 1)
	}
	for i, packed := range raw {
		elements := dst[i*perByte : min((i+1)*perByte, len(dst))]
		for k := range elements {
			elements[k] = packed&mask ^ sign - sign
			packed >>= bits
		}
	}
}

// pack is the inverse of unpack.
func pack(src []byte, bits int) []byte {
	perByte := 8 / bits
	mask := byte(1)<<bits - 1
	raw := make([]byte, (len(src)+perByte-1)/perByte)
	for i := range raw {
		group := src[i*perByte : min((i+1)*perByte, len(src))]
		for k, element := range group {
			raw[i] |= element & mask << (k * bits)
		}
	}
	return raw
}
