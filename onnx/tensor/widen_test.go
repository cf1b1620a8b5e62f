package tensor_test

import (
	"math"
	"slices"
	"testing"

	"github.com/npuctl/npuctl/onnx/tensor"
	"pgregory.net/rapid"
)

func TestInt64s(t *testing.T) {
	tests := []struct {
		d    *tensor.Dense
		want []int64
		ok   bool
	}{
		{tensor.Of([]int64{math.MinInt64, 1}, 2), []int64{math.MinInt64, 1}, true},
		{tensor.Of([]int32{-5, 5}, 2), []int64{-5, 5}, true},
		{tensor.Of([]int16{-5}, 1), []int64{-5}, true},
		{tensor.Of([]int8{-128}, 1), []int64{-128}, true},
		{tensor.Of([]uint8{255}, 1), []int64{255}, true},
		{tensor.Of([]uint16{65535}, 1), []int64{65535}, true},
		{tensor.Of([]uint32{math.MaxUint32}, 1), []int64{math.MaxUint32}, true},
		{tensor.Of([]uint64{math.MaxInt64}, 1), []int64{math.MaxInt64}, true},
		{tensor.Of([]uint64{1, math.MaxInt64 + 1}, 2), nil, false},
		{tensor.Of([]tensor.I4{-8, 7}, 2), []int64{-8, 7}, true},
		{tensor.Of([]tensor.U4{15}, 1), []int64{15}, true},
		{tensor.Of([]tensor.I2{-2}, 1), []int64{-2}, true},
		{tensor.Of([]tensor.U2{3}, 1), []int64{3}, true},
		{tensor.Of([]bool{true, false}, 2), []int64{1, 0}, true},
		{tensor.Of([]int32{}, 0), []int64{}, true},
		{tensor.Scalar(float32(1)), nil, false},
		{tensor.Scalar(tensor.F16(0)), nil, false},
		{tensor.Scalar("1"), nil, false},
		{tensor.Scalar(complex64(1)), nil, false},
	}
	for _, test := range tests {
		got, ok := test.d.Int64s()
		if !slices.Equal(got, test.want) || ok != test.ok {
			t.Errorf("%v as int64: %v, %v", test.d, got, ok)
		}
	}
	own := tensor.Of([]int64{1}, 1)
	if got, _ := own.Int64s(); &got[0] != &tensor.Data[int64](own)[0] {
		t.Error("an Int64 array was copied")
	}
}

func TestFloat64s(t *testing.T) {
	tests := []struct {
		d    *tensor.Dense
		want []float64
		ok   bool
	}{
		{tensor.Of([]float64{0.1}, 1), []float64{0.1}, true},
		{tensor.Of([]float32{0.1}, 1), []float64{float64(float32(0.1))}, true},
		{tensor.Of([]tensor.F16{0x3c00}, 1), []float64{1}, true},
		{tensor.Of([]tensor.BF16{0xc000}, 1), []float64{-2}, true},
		{tensor.Of([]tensor.E4M3FN{0x38}, 1), []float64{1}, true},
		{tensor.Of([]tensor.E4M3FNUZ{0x40}, 1), []float64{1}, true},
		{tensor.Of([]tensor.E5M2{0x3c}, 1), []float64{1}, true},
		{tensor.Of([]tensor.E5M2FNUZ{0x40}, 1), []float64{1}, true},
		{tensor.Of([]tensor.E8M0{128}, 1), []float64{2}, true},
		{tensor.Of([]tensor.E2M1{0xf}, 1), []float64{-6}, true},
		{tensor.Of([]uint64{math.MaxUint64}, 1), []float64{0x1p64}, true},
		{tensor.Of([]int64{1<<53 + 1}, 1), []float64{1 << 53}, true},
		{tensor.Of([]tensor.I4{-3}, 1), []float64{-3}, true},
		{tensor.Of([]bool{true}, 1), []float64{1}, true},
		{tensor.Scalar("1"), nil, false},
		{tensor.Scalar(complex128(1)), nil, false},
	}
	for _, test := range tests {
		got, ok := test.d.Float64s()
		if !slices.Equal(got, test.want) || ok != test.ok {
			t.Errorf("%v as float64: %v, %v", test.d, got, ok)
		}
	}
}

// smallFloats are the types that float32 holds exactly.
func smallFloats() []tensor.Type {
	return slices.DeleteFunc(tensor.Types(), func(t tensor.Type) bool { return !t.IsFloat() || t == tensor.Float64 })
}

func TestFloat32sRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(smallFloats()).Draw(t, "type")
		n := rapid.IntRange(0, 40).Draw(t, "n")
		d, err := tensor.FromRaw(typ, []int{n}, rawBytes(t, typ, n))
		if err != nil {
			t.Fatal(err)
		}
		values, ok := d.Float32s()
		if !ok {
			t.Fatalf("%v has no 32-bit floats", d)
		}
		finite := !slices.ContainsFunc(values, func(f float32) bool { return f-f != 0 })
		again, err := tensor.FromFloat32s(typ, slices.Clone(values), n)
		if err != nil || finite && !tensor.EqualBits(d, again) {
			t.Fatalf("%v became %v, %v", d, again, err)
		}
	})
}

func TestFromFloat32s(t *testing.T) {
	for _, test := range []struct {
		typ  tensor.Type
		want string
	}{
		{tensor.Float32, "FLOAT[3]{1.1, -3, 100000}"},
		{tensor.Float16, "FLOAT16[3]{1.0996094, -3, +Inf}"},
		{tensor.BFloat16, "BFLOAT16[3]{1.1015625, -3, 99840}"},
		{tensor.Float8E4M3FN, "FLOAT8E4M3FN[3]{1.125, -3, 448}"},
		{tensor.Float8E5M2, "FLOAT8E5M2[3]{1, -3, 57344}"},
		{tensor.Float8E8M0, "FLOAT8E8M0[3]{2, 4, 131072}"},
		{tensor.Float4E2M1, "FLOAT4E2M1[3]{1, -3, 6}"},
	} {
		d, err := tensor.FromFloat32s(test.typ, []float32{1.1, -3, 1e5}, 3)
		if err != nil || d.String() != test.want {
			t.Errorf("%v, %v, want %s", d, err, test.want)
		}
	}
	if _, err := tensor.FromFloat32s(tensor.Float64, []float32{1}, 1); err == nil {
		t.Error("64-bit floats were made from 32-bit ones without a word")
	}
	if _, err := tensor.FromFloat32s(tensor.Float16, []float32{1}, 2); err == nil {
		t.Error("1 element filled shape [2]")
	}
}
