package tensor_test

import (
	"math"
	"testing"

	"github.com/npuctl/npuctl/onnx/tensor"
)

func TestTypeFacts(t *testing.T) {
	tests := []struct {
		typ                            tensor.Type
		name                           string
		bits, width                    int
		float, integer, signed, cmplex bool
	}{
		{tensor.Float32, "FLOAT", 32, 4, true, false, true, false},
		{tensor.Float64, "DOUBLE", 64, 8, true, false, true, false},
		{tensor.Int64, "INT64", 64, 8, false, true, true, false},
		{tensor.Uint8, "UINT8", 8, 1, false, true, false, false},
		{tensor.Bool, "BOOL", 8, 1, false, false, false, false},
		{tensor.String, "STRING", 0, 0, false, false, false, false},
		{tensor.Complex64, "COMPLEX64", 64, 8, false, false, true, true},
		{tensor.Complex128, "COMPLEX128", 128, 16, false, false, true, true},
		{tensor.BFloat16, "BFLOAT16", 16, 2, true, false, true, false},
		{tensor.Float8E4M3FNUZ, "FLOAT8E4M3FNUZ", 8, 1, true, false, true, false},
		{tensor.Float8E8M0, "FLOAT8E8M0", 8, 1, true, false, false, false},
		{tensor.Float4E2M1, "FLOAT4E2M1", 4, 1, true, false, true, false},
		{tensor.Int4, "INT4", 4, 1, false, true, true, false},
		{tensor.Uint2, "UINT2", 2, 1, false, true, false, false},
	}
	for _, test := range tests {
		typ := test.typ
		if typ.String() != test.name || typ.Bits() != test.bits || typ.Width() != test.width {
			t.Errorf("type %d is %v with %d bits and width %d, want %s, %d, %d",
				typ, typ, typ.Bits(), typ.Width(), test.name, test.bits, test.width)
		}
		if typ.IsFloat() != test.float || typ.IsInteger() != test.integer ||
			typ.IsSigned() != test.signed || typ.IsComplex() != test.cmplex {
			t.Errorf("%v: float %v, integer %v, signed %v, complex %v", typ,
				typ.IsFloat(), typ.IsInteger(), typ.IsSigned(), typ.IsComplex())
		}
	}
}

func TestUnknownTypesAreInvalid(t *testing.T) {
	for _, typ := range []tensor.Type{-1, 0, 27, math.MaxInt32, math.MinInt32} {
		if typ.Valid() || typ.Bits() != 0 || typ.String() != "UNDEFINED" {
			t.Errorf("type %d: valid %v, bits %d, name %v", int32(typ), typ.Valid(), typ.Bits(), typ)
		}
	}
}

func TestParseTypeKnowsEveryName(t *testing.T) {
	for _, typ := range tensor.Types() {
		for _, name := range []string{typ.String(), typ.NumPy(), "tensor(" + typ.String() + ")"} {
			if got, ok := tensor.ParseType(name); got != typ || !ok {
				t.Errorf("ParseType(%q) = %v, %v, want %v", name, got, ok, typ)
			}
		}
	}
}

func TestParseType(t *testing.T) {
	tests := []struct {
		name string
		want tensor.Type
	}{
		{"tensor(float)", tensor.Float32},
		{"float", tensor.Float32},
		{"double", tensor.Float64},
		{"float64", tensor.Float64},
		{"bool", tensor.Bool},
		{" int64 ", tensor.Int64},
		{"tensor(bfloat16)", tensor.BFloat16},
		{"float8_e4m3fn", tensor.Float8E4M3FN},
		{"tensor(float", tensor.Undefined},
		{"tensor()", tensor.Undefined},
		{"undefined", tensor.Undefined},
		{"", tensor.Undefined},
		{"float128", tensor.Undefined},
	}
	for _, test := range tests {
		got, ok := tensor.ParseType(test.name)
		if got != test.want || ok != (test.want != tensor.Undefined) {
			t.Errorf("ParseType(%q) = %v, %v, want %v", test.name, got, ok, test.want)
		}
	}
}

func TestRawSize(t *testing.T) {
	tests := []struct {
		typ   tensor.Type
		count int64
		want  int64
		ok    bool
	}{
		{tensor.Float32, 3, 12, true},
		{tensor.Int4, 3, 2, true},
		{tensor.Uint2, 5, 2, true},
		{tensor.Uint2, 0, 0, true},
		{tensor.Bool, 7, 7, true},
		{tensor.Int8, math.MaxInt64, 0, false},
		{tensor.Complex128, math.MaxInt64 / 16, 0, false},
		{tensor.Complex128, 1 << 55, 1 << 59, true},
		{tensor.Float32, -1, 0, false},
		{tensor.String, 1, 0, false},
		{tensor.Undefined, 1, 0, false},
	}
	for _, test := range tests {
		got, ok := test.typ.RawSize(test.count)
		if got != test.want || ok != test.ok {
			t.Errorf("%v.RawSize(%d) = %d, %v, want %d, %v", test.typ, test.count, got, ok, test.want, test.ok)
		}
	}
}

func TestTypeOf(t *testing.T) {
	got := []tensor.Type{
		tensor.Undefined, tensor.TypeOf[float32](), tensor.TypeOf[uint8](), tensor.TypeOf[int8](),
		tensor.TypeOf[uint16](), tensor.TypeOf[int16](), tensor.TypeOf[int32](), tensor.TypeOf[int64](),
		tensor.TypeOf[string](), tensor.TypeOf[bool](), tensor.TypeOf[tensor.F16](), tensor.TypeOf[float64](),
		tensor.TypeOf[uint32](), tensor.TypeOf[uint64](), tensor.TypeOf[complex64](), tensor.TypeOf[complex128](),
		tensor.TypeOf[tensor.BF16](), tensor.TypeOf[tensor.E4M3FN](), tensor.TypeOf[tensor.E4M3FNUZ](),
		tensor.TypeOf[tensor.E5M2](), tensor.TypeOf[tensor.E5M2FNUZ](), tensor.TypeOf[tensor.U4](),
		tensor.TypeOf[tensor.I4](), tensor.TypeOf[tensor.E2M1](), tensor.TypeOf[tensor.E8M0](),
		tensor.TypeOf[tensor.U2](), tensor.TypeOf[tensor.I2](),
	}
	for number, typ := range got {
		if typ != tensor.Type(number) {
			t.Errorf("the Go type of %v has type %v", tensor.Type(number), typ)
		}
	}
	if len(got) != len(tensor.Types())+1 {
		t.Errorf("%d types looked at, there are %d", len(got)-1, len(tensor.Types()))
	}
}

// The largest number of each float type is one that it holds, and one more in its last
// digit is none.
func TestLargestFinite(t *testing.T) {
	for _, c := range []struct {
		typ    tensor.Type
		holds  func(float64) float64
		digits int
	}{
		{tensor.Float64, func(x float64) float64 { return x }, 53},
		{tensor.Float32, func(x float64) float64 { return float64(float32(x)) }, 24},
		{tensor.Float16, func(x float64) float64 { return float64(tensor.F16FromFloat64(x).Float32()) }, 11},
		{tensor.BFloat16, func(x float64) float64 { return float64(tensor.BF16FromFloat64(x).Float32()) }, 8},
	} {
		largest, ok := c.typ.LargestFinite()
		if !ok || c.holds(largest) != largest {
			t.Errorf("%s: %v, which it holds as %v", c.typ, largest, c.holds(largest))
		}
		if beyond := largest * (1 + math.Ldexp(1, 1-c.digits)); !math.IsInf(c.holds(beyond), 1) {
			t.Errorf("%s holds %v, which is beyond its largest number", c.typ, beyond)
		}
	}
	if _, ok := tensor.Int32.LargestFinite(); ok {
		t.Error("an integer has a largest float")
	}
}
