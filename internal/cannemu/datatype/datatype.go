// Package datatype translates ONNX's element types into the two numberings that CANN
// has for the same thing: aclDataType, which programs see, and ge.proto.DataType,
// which stands inside the MODEL_DEF of an .om.
package datatype

import "github.com/npuctl/npuctl/onnx/tensor"

// numbers says how CANN counts each element type; types that CANN does not have are missing.
var numbers = []struct {
	onnx    tensor.Type
	acl, ge int32
	name    string // as GE prints it, behind DT_
}{
	{tensor.Float32, 0, 1, "FLOAT"},
	{tensor.Float16, 1, 2, "FLOAT16"},
	{tensor.Int8, 2, 3, "INT8"},
	{tensor.Int32, 3, 7, "INT32"},
	{tensor.Uint8, 4, 4, "UINT8"},
	{tensor.Int16, 6, 5, "INT16"},
	{tensor.Uint16, 7, 6, "UINT16"},
	{tensor.Uint32, 8, 9, "UINT32"},
	{tensor.Int64, 9, 8, "INT64"},
	{tensor.Uint64, 10, 10, "UINT64"},
	{tensor.Float64, 11, 12, "DOUBLE"},
	{tensor.Bool, 12, 11, "BOOL"},
	{tensor.String, 13, 13, "STRING"},
	{tensor.Complex64, 16, 16, "COMPLEX64"},
	{tensor.Complex128, 17, 17, "COMPLEX128"},
	{tensor.BFloat16, 27, 27, "BF16"},
	{tensor.Int4, 29, 28, "INT4"},
	{tensor.Float8E5M2, 35, 34, "FLOAT8_E5M2"},
	{tensor.Float8E4M3FN, 36, 35, "FLOAT8_E4M3FN"},
	{tensor.Float8E8M0, 37, 36, "FLOAT8_E8M0"},
	{tensor.Float4E2M1, 40, 39, "FLOAT4_E2M1"},
}

// ACL is the aclDataType of an element type; ok is false when CANN has none.
func ACL(t tensor.Type) (number int32, ok bool) {
	for _, n := range numbers {
		if n.onnx == t {
			return n.acl, true
		}
	}
	return -1, false
}

// GE is the ge.proto.DataType of an element type, 0 (undefined) when CANN has none.
func GE(t tensor.Type) int32 {
	for _, n := range numbers {
		if n.onnx == t {
			return n.ge
		}
	}
	return 0
}

// Name is how GE calls an element type: FLOAT16; "UNDEFINED" when CANN has none.
func Name(t tensor.Type) string {
	for _, n := range numbers {
		if n.onnx == t {
			return n.name
		}
	}
	return "UNDEFINED"
}

// FromACL is the element type of an aclDataType; ok is false for numbers that ONNX
// has no type for.
func FromACL(number int32) (t tensor.Type, ok bool) {
	for _, n := range numbers {
		if n.acl == number {
			return n.onnx, true
		}
	}
	return tensor.Undefined, false
}
