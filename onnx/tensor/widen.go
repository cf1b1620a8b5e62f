package tensor

import (
	"fmt"
	"math"
)

// Int64s returns the elements of an integer or Bool array widened to int64, true
// as 1. ok is false for other types, and for Uint64 when an element is beyond
// int64. The elements of an Int64 array are returned without copying.
func (d *Dense) Int64s() (values []int64, ok bool) {
	switch d.typ {
	case Int64:
		return view[int64](d), true
	case Int32:
		return convert[int32, int64](d), true
	case Int16:
		return convert[int16, int64](d), true
	case Int8, Int4, Int2:
		return convert[int8, int64](d), true
	case Uint64:
		if !fitInt64(view[uint64](d)) {
			return nil, false
		}
		return convert[uint64, int64](d), true
	case Uint32:
		return convert[uint32, int64](d), true
	case Uint16:
		return convert[uint16, int64](d), true
	case Uint8, Uint4, Uint2, Bool:
		return convert[uint8, int64](d), true
	}
	return nil, false
}

func fitInt64(values []uint64) bool {
	for _, v := range values {
		if v > math.MaxInt64 {
			return false
		}
	}
	return true
}

// Float64s returns the elements of an array of real numbers or of Bool as
// float64, true as 1 and integers beyond 2^53 rounded to nearest even. ok is
// false for strings and complex numbers. The elements of a Float64 array are
// returned without copying.
func (d *Dense) Float64s() (values []float64, ok bool) {
	switch d.typ {
	case Float64:
		return view[float64](d), true
	case Uint64:
		return convert[uint64, float64](d), true
	}
	if small, ok := d.Float32s(); ok {
		return convertAll[float32, float64](small), true
	}
	if integers, ok := d.Int64s(); ok {
		return convertAll[int64, float64](integers), true
	}
	return nil, false
}

// Float32s returns the elements of an array of floats of at most 32 bits, all of
// which float32 holds exactly. ok is false for other types. The elements of a
// Float32 array are returned without copying.
func (d *Dense) Float32s() (values []float32, ok bool) {
	switch d.typ {
	case Float32:
		return view[float32](d), true
	case Float16:
		return mapped(view[F16](d), F16.Float32), true
	case BFloat16:
		return mapped(view[BF16](d), BF16.Float32), true
	case Float8E4M3FN:
		return decodeBytes[E4M3FN](d), true
	case Float8E4M3FNUZ:
		return decodeBytes[E4M3FNUZ](d), true
	case Float8E5M2:
		return decodeBytes[E5M2](d), true
	case Float8E5M2FNUZ:
		return decodeBytes[E5M2FNUZ](d), true
	case Float8E8M0:
		return decodeBytes[E8M0](d), true
	case Float4E2M1:
		return decodeBytes[E2M1](d), true
	}
	return nil, false
}

// FromFloat32s returns an array of a float type of at most 32 bits whose elements
// are values, each rounded once to nearest even. Numbers beyond an 8- or 4-bit
// type saturate, Float8E8M0 rounds up, as Cast does by default. A Float32 array
// takes ownership of values. It fails for other types, and when the dims do not
// multiply to len(values).
func FromFloat32s(t Type, values []float32, shape ...int) (*Dense, error) {
	switch t {
	case Float32:
		return Make(values, shape...)
	case Float16:
		return Make(mapped(values, F16From), shape...)
	case BFloat16:
		return Make(mapped(values, BF16From), shape...)
	case Float8E4M3FN:
		return Make(mapped(values, func(f float32) E4M3FN { return E4M3FNFrom(f, true) }), shape...)
	case Float8E4M3FNUZ:
		return Make(mapped(values, func(f float32) E4M3FNUZ { return E4M3FNUZFrom(f, true) }), shape...)
	case Float8E5M2:
		return Make(mapped(values, func(f float32) E5M2 { return E5M2From(f, true) }), shape...)
	case Float8E5M2FNUZ:
		return Make(mapped(values, func(f float32) E5M2FNUZ { return E5M2FNUZFrom(f, true) }), shape...)
	case Float8E8M0:
		return Make(mapped(values, func(f float32) E8M0 { return E8M0From(f, RoundUp, true) }), shape...)
	case Float4E2M1:
		return Make(mapped(values, E2M1From), shape...)
	}
	return nil, fmt.Errorf("make %v array from 32-bit floats: the type is not a float of at most 32 bits", t)
}

// convert copies the elements of d, which are stored as From, to To by Go's
// conversion.
func convert[From, To Number](d *Dense) []To { return convertAll[From, To](view[From](d)) }

func convertAll[From, To Number](src []From) []To {
	dst := make([]To, len(src))
	for i, v := range src {
		dst[i] = To(v)
	}
	return dst
}

// mapped returns f of every element. It is small enough to be inlined, and f
// with it.
func mapped[From, To any](src []From, f func(From) To) []To {
	dst := make([]To, len(src))
	for i, v := range src {
		dst[i] = f(v)
	}
	return dst
}

// byteFloat is an 8-bit float, or a 4-bit one in a byte.
type byteFloat interface {
	~uint8
	Float32() float32
}

// decodeBytes decodes by a table of all values when there are more elements than
// values.
func decodeBytes[T byteFloat](d *Dense) []float32 {
	var table [256]float32
	if d.count < len(table) {
		return mapped(view[T](d), T.Float32)
	}
	for code := range table {
		table[code] = T(code).Float32()
	}
	return mapped(view[uint8](d), func(code uint8) float32 { return table[code] })
}
