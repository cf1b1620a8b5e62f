package tensor

// The Go types of the ONNX types that Go does not have. The floats are bit
// patterns: convert them, never do arithmetic on them.
type (
	// F16 is an IEEE 754 binary16.
	F16 uint16
	// BF16 is the upper half of an IEEE 754 binary32.
	BF16 uint16
	// E4M3FN is an 8-bit float with 4 exponent bits, one NaN a sign and no infinity.
	E4M3FN uint8
	// E4M3FNUZ is an 8-bit float with 4 exponent bits, one NaN, no infinity and no negative zero.
	E4M3FNUZ uint8
	// E5M2 is an 8-bit float with 5 exponent bits, infinities and NaNs: the upper half of an F16.
	E5M2 uint8
	// E5M2FNUZ is an 8-bit float with 5 exponent bits, one NaN, no infinity and no negative zero.
	E5M2FNUZ uint8
	// E8M0 is a power of two from 2^-127 to 2^127, or NaN; it has no sign and no zero.
	E8M0 uint8
	// E2M1 is a 4-bit float in the low nibble: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
	E2M1 uint8
	// I4 is an integer from -8 to 7.
	I4 int8
	// U4 is an integer from 0 to 15.
	U4 uint8
	// I2 is an integer from -2 to 1.
	I2 int8
	// U2 is an integer from 0 to 3.
	U2 uint8
)

// Element is the set of Go types that a [Dense] holds, one for each ONNX type.
type Element interface {
	float32 | float64 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 |
		bool | string | complex64 | complex128 |
		F16 | BF16 | E4M3FN | E4M3FNUZ | E5M2 | E5M2FNUZ | E8M0 | E2M1 | I4 | U4 | I2 | U2
}

// Number is the set of element types on which Go's arithmetic operators compute
// what ONNX means.
type Number interface {
	float32 | float64 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

// TypeOf returns the ONNX type whose elements are Go values of type T.
func TypeOf[T Element]() Type {
	var zero T
	switch any(zero).(type) {
	case float32:
		return Float32
	case float64:
		return Float64
	case int8:
		return Int8
	case int16:
		return Int16
	case int32:
		return Int32
	case int64:
		return Int64
	case uint8:
		return Uint8
	case uint16:
		return Uint16
	case uint32:
		return Uint32
	case uint64:
		return Uint64
	case bool:
		return Bool
	case string:
		return String
	case complex64:
		return Complex64
	case complex128:
		return Complex128
	case F16:
		return Float16
	case BF16:
		return BFloat16
	case E4M3FN:
		return Float8E4M3FN
	case E4M3FNUZ:
		return Float8E4M3FNUZ
	case E5M2:
		return Float8E5M2
	case E5M2FNUZ:
		return Float8E5M2FNUZ
	case E8M0:
		return Float8E8M0
	case E2M1:
		return Float4E2M1
	case I4:
		return Int4
	case U4:
		return Uint4
	case I2:
		return Int2
	case U2:
		return Uint2
	}
	return Undefined
}
