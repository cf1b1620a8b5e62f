package tensor

import (
	"fmt"
	"slices"
	"unsafe"
)

// FromRaw returns an array whose elements are packed little-endian in raw, as
// raw_data of a TensorProto has them: elements of less than a byte lie low bits
// first and the last byte is filled up. It fails when the type has no raw form or
// raw is not exactly as long as the shape needs.
//
// The array stands on raw itself, without copying, when the host is
// little-endian, raw is aligned for the element, and the type is not packed; else
// on a copy. So raw must live and stay unchanged as long as the array.
// In a Bool array every byte that is not 0 is true; raw is copied unless all
// bytes are 0 or 1.
func FromRaw(t Type, shape []int, raw []byte) (*Dense, error) {
	count, err := Count(shape)
	if err != nil {
		return nil, fmt.Errorf("read raw %v data: %w", t, err)
	}
	size, ok := t.RawSize(int64(count))
	if !ok {
		return nil, fmt.Errorf("read raw %v data: the type has no raw form", t)
	}
	if int64(len(raw)) != size {
		return nil, fmt.Errorf("read raw %v data of shape %v: %d bytes, want %d", t, shape, len(raw), size)
	}
	d := &Dense{typ: t, shape: slices.Clone(shape), count: count}
	if canAlias(t, raw) {
		d.base = unsafe.Pointer(unsafe.SliceData(raw))
		return d, nil
	}
	d.base = allocate(t, count)
	decode(d, raw)
	return d, nil
}

// Raw returns the elements packed little-endian, as [FromRaw] reads them, or nil
// for String. Where the host allows, the bytes are the memory of the array: the
// caller must not change them.
func (d *Dense) Raw() []byte {
	switch {
	case d.typ == String:
		return nil
	case d.typ.Bits() < 8:
		return pack(d.memory(), d.typ.Bits())
	case hostLittleEndian || d.typ.Width() == 1:
		return d.memory()
	}
	raw := slices.Clone(d.memory())
	swapBytes(raw, d.swapUnit())
	return raw
}
