package tensor

import (
	"math"
	"strings"
)

// Type is an ONNX element type. The numbers are those of TensorProto.DataType,
// so a value read from a file converts by a plain Go conversion; call
// [Type.Valid] on it before use.
type Type int32

// The element types of ONNX IR 13.
const (
	Undefined      Type = 0
	Float32        Type = 1
	Uint8          Type = 2
	Int8           Type = 3
	Uint16         Type = 4
	Int16          Type = 5
	Int32          Type = 6
	Int64          Type = 7
	String         Type = 8
	Bool           Type = 9
	Float16        Type = 10
	Float64        Type = 11
	Uint32         Type = 12
	Uint64         Type = 13
	Complex64      Type = 14
	Complex128     Type = 15
	BFloat16       Type = 16
	Float8E4M3FN   Type = 17
	Float8E4M3FNUZ Type = 18
	Float8E5M2     Type = 19
	Float8E5M2FNUZ Type = 20
	Uint4          Type = 21
	Int4           Type = 22
	Float4E2M1     Type = 23
	Float8E8M0     Type = 24
	Uint2          Type = 25
	Int2           Type = 26
)

// class is the arithmetic family of a type.
type class uint8

const (
	classNone class = iota
	classSigned
	classUnsigned
	classFloat
	classComplex
	classBool
	classString
)

// typeInfo is what this package knows of one element type.
type typeInfo struct {
	name   string // as TensorProto.DataType spells it
	numpy  string // as numpy, or the ml_dtypes package for numpy, spells it
	bits   int    // of one element in raw_data; 0 when there is no raw form
	width  int    // bytes of one element in a Dense; 0 for strings
	family class
}

// typeTable is indexed by Type.
var typeTable = [...]typeInfo{
	Undefined:      {name: "UNDEFINED"},
	Float32:        {"FLOAT", "float32", 32, 4, classFloat},
	Uint8:          {"UINT8", "uint8", 8, 1, classUnsigned},
	Int8:           {"INT8", "int8", 8, 1, classSigned},
	Uint16:         {"UINT16", "uint16", 16, 2, classUnsigned},
	Int16:          {"INT16", "int16", 16, 2, classSigned},
	Int32:          {"INT32", "int32", 32, 4, classSigned},
	Int64:          {"INT64", "int64", 64, 8, classSigned},
	String:         {"STRING", "str", 0, 0, classString},
	Bool:           {"BOOL", "bool_", 8, 1, classBool},
	Float16:        {"FLOAT16", "float16", 16, 2, classFloat},
	Float64:        {"DOUBLE", "float64", 64, 8, classFloat},
	Uint32:         {"UINT32", "uint32", 32, 4, classUnsigned},
	Uint64:         {"UINT64", "uint64", 64, 8, classUnsigned},
	Complex64:      {"COMPLEX64", "complex64", 64, 8, classComplex},
	Complex128:     {"COMPLEX128", "complex128", 128, 16, classComplex},
	BFloat16:       {"BFLOAT16", "bfloat16", 16, 2, classFloat},
	Float8E4M3FN:   {"FLOAT8E4M3FN", "float8_e4m3fn", 8, 1, classFloat},
	Float8E4M3FNUZ: {"FLOAT8E4M3FNUZ", "float8_e4m3fnuz", 8, 1, classFloat},
	Float8E5M2:     {"FLOAT8E5M2", "float8_e5m2", 8, 1, classFloat},
	Float8E5M2FNUZ: {"FLOAT8E5M2FNUZ", "float8_e5m2fnuz", 8, 1, classFloat},
	Uint4:          {"UINT4", "uint4", 4, 1, classUnsigned},
	Int4:           {"INT4", "int4", 4, 1, classSigned},
	Float4E2M1:     {"FLOAT4E2M1", "float4_e2m1fn", 4, 1, classFloat},
	Float8E8M0:     {"FLOAT8E8M0", "float8_e8m0fnu", 8, 1, classFloat},
	Uint2:          {"UINT2", "uint2", 2, 1, classUnsigned},
	Int2:           {"INT2", "int2", 2, 1, classSigned},
}

// Types returns every valid element type in the order of its number.
func Types() []Type {
	types := make([]Type, 0, len(typeTable)-1)
	for t := Undefined + 1; int(t) < len(typeTable); t++ {
		types = append(types, t)
	}
	return types
}

func (t Type) info() *typeInfo {
	if t < 0 || int(t) >= len(typeTable) {
		return &typeTable[Undefined]
	}
	return &typeTable[t]
}

// Valid reports whether t is one of the element types above other than
// Undefined.
func (t Type) Valid() bool { return t.info().family != classNone }

// String returns the name of t in TensorProto.DataType: "FLOAT", "INT64", …
// A number the schema does not know is "UNDEFINED".
func (t Type) String() string { return t.info().name }

// NumPy returns the name numpy gives the type ("float32", "bool_"), or the one
// the ml_dtypes package adds to it ("bfloat16", "float8_e4m3fn", "int4").
// It is empty for an invalid type.
func (t Type) NumPy() string { return t.info().numpy }

// Bits returns the bits one element takes in raw_data: 8 for Bool, 4 for Int4,
// 2 for Int2. It is 0 for String, which has no raw form, and for an invalid
// type.
func (t Type) Bits() int { return t.info().bits }

// Width returns the bytes one element takes in a [Dense]: 1 for all types of at
// most 8 bits, and 0 for String and invalid types.
func (t Type) Width() int { return t.info().width }

// RawSize returns the bytes that n elements take in raw_data; elements of less
// than a byte are packed and the last byte is filled up. ok is false when the
// type has no raw form, n is negative or the size overflows.
func (t Type) RawSize(n int64) (bytes int64, ok bool) {
	bits := int64(t.Bits())
	if bits == 0 || n < 0 || n > (math.MaxInt64-7)/bits {
		return 0, false
	}
	return (n*bits + 7) / 8, true
}

// IsFloat reports whether t is a real floating-point type of any width.
func (t Type) IsFloat() bool { return t.info().family == classFloat }

// IsInteger reports whether t is a signed or unsigned integer; Bool is not.
func (t Type) IsInteger() bool {
	family := t.info().family
	return family == classSigned || family == classUnsigned
}

// IsSigned reports whether t can hold a negative number: signed integers, floats
// and complex numbers, but not Float8E8M0, which is a scale without a sign.
func (t Type) IsSigned() bool {
	family := t.info().family
	return family == classSigned || family == classComplex || family == classFloat && t != Float8E8M0
}

// IsComplex reports whether t is Complex64 or Complex128.
func (t Type) IsComplex() bool { return t.info().family == classComplex }

// ParseType returns the type that s names. It knows the names of
// TensorProto.DataType ("FLOAT"), the type strings of operator specifications
// ("tensor(float)", or just "float") and the names of numpy and ml_dtypes
// ("float32", "bool", "float8_e4m3fn"). Letter case does not matter. "float" is
// Float32, as in ONNX, although numpy means 64 bits by it.
func ParseType(s string) (Type, bool) {
	name := strings.ToLower(strings.TrimSpace(s))
	if inner, ok := strings.CutPrefix(name, "tensor("); ok {
		name, ok = strings.CutSuffix(inner, ")")
		if !ok {
			return Undefined, false
		}
	}
	for _, t := range Types() {
		if name == strings.ToLower(t.String()) || name == t.NumPy() {
			return t, true
		}
	}
	return Undefined, false
}

// LargestFinite gives the largest finite number of a float type of at least 16 bits;
// ok is false for any other type. Narrower floats saturate, or have no infinity.
func (t Type) LargestFinite() (largest float64, ok bool) {
	switch t {
	case Float64:
		return math.MaxFloat64, true
	case Float32:
		return math.MaxFloat32, true
	case BFloat16:
		return 0x1.fep127, true
	case Float16:
		return 65504, true
	}
	return 0, false
}
