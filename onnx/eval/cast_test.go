package eval

import (
	"fmt"
	"math"
	"testing"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

func TestCast(t *testing.T) {
	runOperatorCases(t, []operatorCase{
		{opset: 13, stored: "float[4] a = {-1.9, 1.9, -0, 127}", node: "y = Cast <to = 3> (a)", want: "INT8[4]{-1, 1, 0, 127}"},
		{opset: 13, stored: "float[3] a = {300, -129, 1e10}", node: "y = Cast <to = 3> (a)", want: "INT8[3]{44, 127, 0}", folds: ErrUndefined},
		{opset: 13, stored: "float[3] a = {nan, inf, 3e9}", node: "y = Cast <to = 6> (a)", want: "INT32[3]{-2147483648, -2147483648, -2147483648}", folds: ErrUndefined},
		{opset: 13, stored: "double[2] a = {9223372036854774784, -9223372036854775808}", node: "y = Cast <to = 7> (a)", want: "INT64[2]{9223372036854774784, -9223372036854775808}"},
		{opset: 13, stored: "double a = {9223372036854775808}", node: "y = Cast <to = 7> (a)", want: "INT64[]{-9223372036854775808}", folds: ErrUndefined},
		{opset: 13, stored: "double a = {9223372036854775808}", node: "y = Cast <to = 13> (a)", want: "UINT64[]{9223372036854775808}"},
		{opset: 13, stored: "int16[2] a = {200, -1}", node: "y = Cast <to = 3> (a)", want: "INT8[2]{-56, -1}"},
		{opset: 13, stored: "int64[2] a = {4294967297, -1}", node: "y = Cast <to = 12> (a)", want: "UINT32[2]{1, 4294967295}"},
		{opset: 13, stored: "uint64 a = {18446744073709551615}", node: "y = Cast <to = 7> (a)", want: "INT64[]{-1}"},
		{opset: 13, stored: "uint64 a = {18446744073709551615}", node: "y = Cast <to = 1> (a)", want: "FLOAT[]{1.8446744e+19}"},
		// Half-way between two floats plus a little: two roundings would miss it.
		{opset: 13, stored: "int64 a = {2305843146652647425}", node: "y = Cast <to = 1> (a)", want: "FLOAT[]{2.3058433e+18}"},
		{opset: 13, stored: "double a = {1.0000000596046450}", node: "y = Cast <to = 1> (a)", want: "FLOAT[]{1.0000001}"},
		{opset: 13, stored: "double[3] a = {1.00048828125, 1.0004882812500002, 65520}", node: "y = Cast <to = 10> (a)", want: "FLOAT16[3]{1, 1.0009766, +Inf}"},
		{opset: 13, stored: "float[3] a = {0, nan, -0}", node: "y = Cast <to = 9> (a)", want: "BOOL[3]{false, true, false}"},
		{opset: 13, stored: "bool[2] a = {1, 0}", node: "y = Cast <to = 16> (a)", want: "BFLOAT16[2]{1, 0}"},
		{opset: 1, stored: "float[2] a = {1.5, 2}", node: `y = Cast <to = "INT64"> (a)`, want: "INT64[2]{1, 2}"},
		{opset: 13, stored: "float a = {1}", node: "y = Cast <to = 99> (a)", want: "error: element type"},
		{opset: 13, stored: "complex64 a = {1, 2}", node: "y = Cast <to = 1> (a)", want: "error: Cast of COMPLEX64"},

		{opset: 21, stored: "float[3] a = {-9, 7.9, 15}", node: "y = Cast <to = 22> (a)", want: "INT4[3]{7, 7, -1}", folds: ErrUndefined},
		{opset: 21, stored: "int8[3] a = {-9, 7, 17}", node: "y = Cast <to = 21> (a)", want: "UINT4[3]{7, 7, 1}"},
		{opset: 25, stored: "int8[3] a = {-3, 1, 2}", node: "y = Cast <to = 26> (a)", want: "INT2[3]{1, 1, -2}"},
		{opset: 21, stored: "int4[2] a = {-8, 7}", node: "y = Cast <to = 7> (a)", want: "INT64[2]{-8, 7}"},

		{opset: 19, stored: "float[3] a = {1000, -inf, nan}", node: "y = Cast <to = 17> (a)", want: "FLOAT8E4M3FN[3]{448, -448, NaN}"},
		{opset: 19, stored: "float[3] a = {1000, -inf, 0.3}", node: "y = Cast <to = 17, saturate = 0> (a)", want: "FLOAT8E4M3FN[3]{NaN, NaN, 0.3125}"},
		{opset: 19, stored: "float[2] a = {1e9, -1e9}", node: "y = Cast <to = 19, saturate = 0> (a)", want: "FLOAT8E5M2[2]{+Inf, -Inf}"},
		{opset: 19, stored: "int32[2] a = {-7, 1000}", node: "y = Cast <to = 18> (a)", want: "FLOAT8E4M3FNUZ[2]{-7, 240}"},
		{opset: 19, stored: "float8e5m2[2] a = {1.5, inf}", node: "y = Cast <to = 17> (a)", want: "FLOAT8E4M3FN[2]{1.5, 448}"},
		{opset: 24, stored: "float[3] a = {3, 5, 6}", node: "y = Cast <to = 24> (a)", want: "FLOAT8E8M0[3]{4, 8, 8}"},
		{opset: 24, stored: "float[3] a = {3, 5, 6}", node: `y = Cast <to = 24, round_mode = "down"> (a)`, want: "FLOAT8E8M0[3]{2, 4, 4}"},
		{opset: 24, stored: "float[3] a = {3, 5, 6}", node: `y = Cast <to = 24, round_mode = "nearest"> (a)`, want: "FLOAT8E8M0[3]{4, 4, 8}"},
		{opset: 24, stored: "float[1] a = {-1}", node: "y = Cast <to = 24> (a)", want: "FLOAT8E8M0[1]{1}", folds: ErrUndefined},
		{opset: 23, stored: "float[3] a = {0.25, 100, -5.1}", node: "y = Cast <to = 23> (a)", want: "FLOAT4E2M1[3]{0, 6, -6}"},

		{opset: 13, stored: `string[6] a = {"1e3", "-INF", "+inf", "nan", " 2.5", "0x10"}`, node: "y = Cast <to = 1> (a)", want: `error: "0x10" is no number`, folds: ErrUndefined},
		{opset: 13, stored: `string[5] a = {"1e3", "-INF", "+inf", "NaN", "0.1"}`, node: "y = Cast <to = 11> (a)", want: "DOUBLE[5]{1000, -Inf, +Inf, NaN, 0.1}"},
		{opset: 13, stored: `string[2] a = {"9007199254740993", "-1"}`, node: "y = Cast <to = 7> (a)", want: "INT64[2]{9007199254740993, -1}"},
		{opset: 13, stored: `string[1] a = {"18446744073709551615"}`, node: "y = Cast <to = 13> (a)", want: "UINT64[1]{18446744073709551615}"},
		{opset: 13, stored: `string[1] a = {"2.9"}`, node: "y = Cast <to = 6> (a)", want: "INT32[1]{2}", folds: ErrUndefined},
		{opset: 13, stored: "int8[2] a = {-5, 7}", node: "y = Cast <to = 8> (a)", want: `STRING[2]{"-5", "7"}`},
		{opset: 13, stored: "float[4] a = {0.1, 1e-7, nan, -inf}", node: "y = Cast <to = 8> (a)", want: `STRING[4]{"0.1", "0.0000001", "NaN", "-INF"}`, folds: ErrUndefined},

		{opset: 19, stored: "float[1] a = {1.5}, int8[0] like = {}", node: "y = CastLike (a, like)", want: "INT8[1]{1}"},
		{opset: 26, stored: "float[2] a = {1, -0}", node: "y = BitCast <to = 12> (a)", want: "UINT32[2]{1065353216, 2147483648}"},
		{opset: 26, stored: "int4[3] a = {-1, 3, -8}", node: "y = BitCast <to = 21> (a)", want: "UINT4[3]{15, 3, 8}"},
		{opset: 26, stored: "float[1] a = {1}", node: "y = BitCast <to = 11> (a)", want: "error: widths differ"},
	})
}

// TestCastTableIsWhole converts small numbers between all types that Cast has.
func TestCastTableIsWhole(t *testing.T) {
	for _, from := range tensor.Types() {
		for _, to := range tensor.Types() {
			if from.IsComplex() || to.IsComplex() {
				continue
			}
			c := &Call{frame: &frame{run: &run{ctx: t.Context(), threads: 1, memory: newMemory(0, false)}}}
			m := onnx.NewModel(10, 25)
			c.Node = m.Graph.Add("Cast", nil, nil)
			one, err := c.cast(tensor.Of([]float32{1, 1}, 2), from)
			if err != nil {
				t.Fatal(err)
			}
			there, err := c.cast(one, to)
			if err != nil {
				t.Errorf("%s to %s: %v", from, to, err)
				continue
			}
			back, err := c.cast(there, tensor.Float32)
			if from == tensor.Bool && to == tensor.String || err == nil {
				if got := fmt.Sprint(back); got != "FLOAT[2]{1, 1}" {
					t.Errorf("%s to %s and back: %s, %v", from, to, got, err)
				}
			}
		}
	}
}

// TestCastRoundsOnce compares whole numbers with what the exact value rounds to.
func TestCastRoundsOnce(t *testing.T) {
	for _, v := range []int64{1<<53 + 1, 1<<62 + 1<<38 + 1, -(1<<62 + 1<<38 + 1), 1<<62 + 1<<38, 1<<62 + 1<<38 - 1, math.MinInt64, math.MaxInt64} {
		out, err := foldNode(t, 13, "Cast", []*tensor.Dense{tensor.Scalar(v)}, 1, onnx.IntAttribute("to", int64(tensor.Float32)))
		if err != nil {
			t.Fatal(err)
		}
		if got := tensor.Data[float32](out[0].(*tensor.Dense))[0]; got != float32(v) {
			t.Errorf("%d becomes %v, want %v", v, got, float32(v))
		}
	}
}
