package eval

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/npuctl/npuctl/onnx/tensor"
)

func TestArithmetic(t *testing.T) {
	runOperatorCases(t, []operatorCase{
		{opset: 14, stored: "int8[2] a = {127, -128}, int8 b = {1}", node: "y = Add (a, b)", want: "INT8[2]{-128, -127}"},
		{opset: 14, stored: "uint8[2] a = {0, 200}, uint8[2] b = {1, 100}", node: "y = Sub (a, b)", want: "UINT8[2]{255, 100}"},
		{opset: 14, stored: "int64 a = {9007199254740993}, int64 b = {3}", node: "y = Mul (a, b)", want: "INT64[]{27021597764222979}"},
		{opset: 14, stored: "float16[2] a = {2048, 1}, float16 b = {1}", node: "y = Add (a, b)", want: "FLOAT16[2]{2048, 2}"},
		{opset: 14, stored: "bfloat16[2] a = {256, 3}, bfloat16 b = {1}", node: "y = Add (a, b)", want: "BFLOAT16[2]{256, 4}"},
		{opset: 14, stored: "float[2,1] a = {1, 2}, float[1,3] b = {10, 20, 30}", node: "y = Mul (a, b)", want: "FLOAT[2,3]{10, 20, 30, 20, 40, 60}"},
		{opset: 14, stored: "float[0] a = {}, float[1] b = {1}", node: "y = Add (a, b)", want: "FLOAT[0]{}"},
		{opset: 14, stored: "float[2] a = {1, 2}, float[3] b = {1, 2, 3}", node: "y = Add (a, b)", want: "error: "},
		{opset: 14, stored: "float[1] a = {1}, double[1] b = {1}", node: "y = Add (a, b)", want: "error: one type"},
		{opset: 14, stored: "bool[1] a = {1}, bool[1] b = {1}", node: "y = Add (a, b)", want: "error: Add of BOOL"},

		{opset: 14, stored: "int32[4] a = {-7, 7, -7, 7}, int32[4] b = {2, 2, -2, -2}", node: "y = Div (a, b)", want: "INT32[4]{-3, 3, 3, -3}"},
		{opset: 14, stored: "int32[2] a = {5, 6}, int32[2] b = {0, 2}", node: "y = Div (a, b)", want: "INT32[2]{0, 3}", folds: ErrUndefined},
		{opset: 14, stored: "int64 a = {-9223372036854775808}, int64 b = {-1}", node: "y = Div (a, b)", want: "INT64[]{-9223372036854775808}", folds: ErrUndefined},
		{opset: 14, stored: "float[3] a = {1, -1, 0}, float b = {0}", node: "y = Div (a, b)", want: "FLOAT[3]{+Inf, -Inf, NaN}"},

		{opset: 13, stored: "int32[4] a = {-7, 7, -7, 7}, int32[4] b = {3, 3, -3, -3}", node: "y = Mod (a, b)", want: "INT32[4]{2, 1, -1, -2}"},
		{opset: 13, stored: "int32[4] a = {-7, 7, -7, 7}, int32[4] b = {3, 3, -3, -3}", node: "y = Mod <fmod = 1> (a, b)", want: "INT32[4]{-1, 1, -1, 1}"},
		{opset: 13, stored: "uint8[2] a = {200, 7}, uint8[2] b = {7, 0}", node: "y = Mod (a, b)", want: "UINT8[2]{4, 0}", folds: ErrUndefined},
		{opset: 13, stored: "float[2] a = {-7.5, 7.5}, float b = {2}", node: "y = Mod <fmod = 1> (a, b)", want: "FLOAT[2]{-1.5, 1.5}"},
		{opset: 13, stored: "float[2] a = {-7.5, 7.5}, float b = {2}", node: "y = Mod (a, b)", want: "FLOAT[2]{0.5, 1.5}", folds: ErrUndefined},
		{opset: 28, stored: "float[4] a = {-7.5, 7.5, 3, -0}, float[4] b = {2, -2, -inf, 2}", node: "y = Mod (a, b)", want: "FLOAT[4]{0.5, -0.5, -Inf, 0}"},

		{opset: 15, stored: "float[4] a = {2, -2, 4, 0}, float[4] b = {10, 3, 0.5, 0}", node: "y = Pow (a, b)", want: "FLOAT[4]{1024, -8, 2, 1}"},
		{opset: 15, stored: "float[2] a = {2, 3}, int64 b = {2}", node: "y = Pow (a, b)", want: "FLOAT[2]{4, 9}"},
		{opset: 15, stored: "int64[2] a = {3, -3}, int64[2] b = {39, 3}", node: "y = Pow (a, b)", want: "INT64[2]{4052555153018976267, -27}"},
		{opset: 15, stored: "int32[2] a = {3, 65537}, float[2] b = {3, 2}", node: "y = Pow (a, b)", want: "INT32[2]{27, 131073}"},
		{opset: 15, stored: "int32[4] a = {2, 1, -1, 0}, int32 b = {-1}", node: "y = Pow (a, b)", want: "INT32[4]{0, 1, -1, 0}", folds: ErrUndefined},
		{opset: 15, stored: "int32[2] a = {4, 9}, float b = {0.5}", node: "y = Pow (a, b)", want: "INT32[2]{2, 3}"},
		{opset: 15, stored: "float16 a = {10}, int64 b = {6}", node: "y = Pow (a, b)", want: "FLOAT16[]{+Inf}"},

		{opset: 13, stored: "float[2] a = {1, nan}, float[2] b = {nan, 2}", node: "y = Max (a, b)", want: "FLOAT[2]{NaN, NaN}"},
		{opset: 13, stored: "int16[2] a = {1, -5}, int16 b = {0}, int16 c = {-1}", node: "y = Min (a, b, c)", want: "INT16[2]{-1, -5}"},
		{opset: 13, stored: "float[1] a = {1}", node: "y = Max (a)", want: "FLOAT[1]{1}"},
		{opset: 13, stored: "float16[1] a = {2048}, float16[1] b = {1}", node: "y = Sum (a, b, b)", want: "FLOAT16[1]{2050}"},
		{opset: 13, stored: "float[2,1] a = {1, 2}, float[2] b = {10, 20}", node: "y = Mean (a, b)", want: "FLOAT[2,2]{5.5, 10.5, 6, 11}"},

		{opset: 11, stored: "uint8[2] a = {1, 129}, uint8[2] b = {3, 1}", node: `y = BitShift <direction = "LEFT"> (a, b)`, want: "UINT8[2]{8, 2}"},
		{opset: 11, stored: "uint8[2] a = {1, 129}, uint8[2] b = {8, 1}", node: `y = BitShift <direction = "RIGHT"> (a, b)`, want: "UINT8[2]{0, 64}", folds: ErrUndefined},
		{opset: 28, stored: "int8[3] a = {-2, -2, 2}, int8[3] b = {1, 9, -1}", node: `y = BitShift <direction = "RIGHT"> (a, b)`, want: "INT8[3]{-1, -1, 0}"},
		{opset: 11, stored: "uint8 a = {1}", node: "y = BitShift (a, a)", want: "error: neither LEFT nor RIGHT"},
		{opset: 18, stored: "int32[2] a = {12, -1}, int32 b = {10}", node: "y = BitwiseXor (a, b)", want: "INT32[2]{6, -11}"},
		{opset: 7, stored: "bool[2] a = {1, 0}, bool b = {1}", node: "y = Xor (a, b)", want: "BOOL[2]{false, true}"},
	})
}

func TestLegacyBroadcasting(t *testing.T) {
	stored := "float[2,3] a = {1, 2, 3, 4, 5, 6}, float[2] rows = {10, 20}, float[3] columns = {10, 20, 30}, float[1,1] one = {100}"
	runOperatorCases(t, []operatorCase{
		{opset: 6, stored: stored, node: "y = Add <broadcast = 1, axis = 0> (a, rows)", want: "FLOAT[2,3]{11, 12, 13, 24, 25, 26}"},
		{opset: 6, stored: stored, node: "y = Add <broadcast = 1> (a, columns)", want: "FLOAT[2,3]{11, 22, 33, 14, 25, 36}"},
		{opset: 1, stored: stored, node: "y = Sub <broadcast = 1> (a, one)", want: "FLOAT[2,3]{-99, -98, -97, -96, -95, -94}"},
		{opset: 6, stored: stored, node: "y = Add <broadcast = 1> (a, rows)", want: "error: no part of"},
		{opset: 6, stored: stored, node: "y = Add (a, columns)", want: "error: broadcast is not set"},
		{opset: 7, stored: stored, node: "y = Add (a, columns)", want: "FLOAT[2,3]{11, 22, 33, 14, 25, 36}"},
		{opset: 1, stored: stored, node: "y = Less <broadcast = 1, axis = 0> (a, rows)", want: "BOOL[2,3]{true, true, true, true, true, true}"},
	})
}

func TestComparisons(t *testing.T) {
	runOperatorCases(t, []operatorCase{
		{opset: 13, stored: "float[3] a = {1, nan, -0}, float[3] b = {1, nan, 0}", node: "y = Equal (a, b)", want: "BOOL[3]{true, false, true}"},
		{opset: 19, stored: `string[2] a = {"x", "y"}, string b = {"x"}`, node: "y = Equal (a, b)", want: "BOOL[2]{true, false}"},
		{opset: 13, stored: "int64[2] a = {9007199254740993, 1}, int64 b = {9007199254740992}", node: "y = Greater (a, b)", want: "BOOL[2]{true, false}"},
		{opset: 16, stored: "bfloat16[2] a = {1, 3}, bfloat16 b = {2}", node: "y = LessOrEqual (a, b)", want: "BOOL[2]{true, false}"},
		{opset: 16, stored: "float[2] a = {nan, 3}, float b = {3}", node: "y = GreaterOrEqual (a, b)", want: "BOOL[2]{false, true}"},
		{opset: 16, stored: `bool[2,1] c = {1, 0}, string[2] a = {"p", "q"}, string b = {"z"}`, node: "y = Where (c, a, b)", want: `STRING[2,2]{"p", "q", "z", "z"}`},
		{opset: 16, stored: "bool c = {0}, float a = {nan}, float b = {1}", node: "y = Where (c, a, b)", want: "FLOAT[]{1}"},
		{opset: 20, stored: "float8e4m3fn[2] a = {1, nan}", node: "y = IsNaN (a)", want: "BOOL[2]{false, true}"},
		{opset: 20, stored: "float16[3] a = {inf, -inf, 1}", node: "y = IsInf <detect_negative = 0> (a)", want: "BOOL[3]{true, false, false}"},
	})
}

func TestUnary(t *testing.T) {
	runOperatorCases(t, []operatorCase{
		{opset: 13, stored: "int8[2] a = {-128, 5}", node: "y = Neg (a)", want: "INT8[2]{-128, -5}"},
		{opset: 13, stored: "int8[2] a = {-128, -5}", node: "y = Abs (a)", want: "INT8[2]{-128, 5}"},
		{opset: 13, stored: "float[2] a = {-0, -inf}", node: "y = Abs (a)", want: "FLOAT[2]{0, +Inf}"},
		{opset: 13, stored: "float[4] a = {-3, 0, 7, nan}", node: "y = Sign (a)", want: "FLOAT[4]{-1, 0, 1, NaN}", folds: ErrUndefined},
		{opset: 13, stored: "uint8[2] a = {0, 255}", node: "y = Sign (a)", want: "UINT8[2]{0, 1}"},
		{opset: 22, stored: "float[5] a = {0.5, 1.5, 2.5, -0.5, -2.7}", node: "y = Round (a)", want: "FLOAT[5]{0, 2, 2, -0, -3}"},
		{opset: 13, stored: "float16 a = {3}", node: "y = Reciprocal (a)", want: "FLOAT16[]{0.33325195}"},
		{opset: 13, stored: "int32 a = {3}", node: "y = Floor (a)", want: "error: Floor of INT32"},
		{opset: 18, stored: "uint16 a = {1}", node: "y = BitwiseNot (a)", want: "UINT16[]{65534}"},
		{opset: 13, stored: "float[3] a = {-9, 0, 9}, float lo = {-1}, float hi = {2}", node: "y = Clip (a, lo, hi)", want: "FLOAT[3]{-1, 0, 2}"},
		{opset: 13, stored: "int8[3] a = {-9, 0, 9}, int8 hi = {2}", node: `y = Clip (a, "", hi)`, want: "INT8[3]{-9, 0, 2}"},
		{opset: 13, stored: "float[2] a = {nan, 3}, float lo = {5}, float hi = {1}", node: "y = Clip (a, lo, hi)", want: "FLOAT[2]{NaN, 1}"},
		{opset: 6, stored: "float[3] a = {-9, 0, 9}", node: "y = Clip <min = -1.0> (a)", want: "FLOAT[3]{-1, 0, 9}"},
		{opset: 6, stored: "float16[3] a = {-9, 0, 9}", node: "y = Clip <max = 0.1> (a)", want: "FLOAT16[3]{-9, 0, 0.099975586}"},
	})
}

// TestPowerAgainstMath holds our own power, which is the same on every host,
// against the library's.
func TestPowerAgainstMath(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	special := []float64{0, math.Copysign(0, -1), 1, -1, 2, -2, 0.5, -0.5, 3, 1e300, 1e-300, math.Inf(1), math.Inf(-1), math.NaN(), 1 << 62, 5e-324}
	check := func(x, y float64) {
		got, want := power64(x, y), math.Pow(x, y)
		if got != want && !(got != got && want != want) && math.Abs(got-want) > 2e-13*math.Abs(want) {
			t.Errorf("%v^%v = %v, want %v", x, y, got, want)
		}
	}
	for _, x := range special {
		for _, y := range special {
			check(x, y)
		}
	}
	for range 10000 {
		check(math.Exp(random.NormFloat64()*3), random.NormFloat64()*20)
		check(-random.Float64()*10, float64(random.IntN(60)-30))
	}
}

// TestBroadcastingOfLongOperands takes the paths that small tensors do not.
func TestBroadcastingOfLongOperands(t *testing.T) {
	const rows, columns = 7, 3 * blockLength
	a := make([]float32, rows*columns)
	for i := range a {
		a[i] = float32(i)
	}
	for _, c := range []struct {
		shape []int
		at    func(row, column int) int
	}{
		{[]int{rows, 1}, func(row, _ int) int { return row }},
		{[]int{columns}, func(_, column int) int { return column }},
		{[]int{1, 1}, func(_, _ int) int { return 0 }},
	} {
		n, _ := tensor.Count(c.shape)
		b := tensor.Of(append([]float32{}, a[:n]...), c.shape...)
		for _, inputs := range [][]*tensor.Dense{{tensor.Of(a, rows, columns), b}, {b, tensor.Of(a, rows, columns)}} {
			out, err := foldNode(t, 13, "Sub", inputs, 1)
			if err != nil {
				t.Fatal(err)
			}
			for i, got := range tensor.Data[float32](out[0].(*tensor.Dense)) {
				want := a[i] - a[c.at(i/columns, i%columns)]
				if inputs[0] == b {
					want = -want
				}
				if got != want {
					t.Fatalf("shape %v, element %d is %v, want %v", c.shape, i, got, want)
				}
			}
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	a := tensor.Of(make([]float32, 1<<20), 16, 1<<16)
	for name, other := range map[string]*tensor.Dense{
		"same": a, "scalar": tensor.Scalar(float32(1)), "rows": tensor.Of(make([]float32, 16), 16, 1), "columns": tensor.Of(make([]float32, 1<<16), 1<<16),
	} {
		b.Run(name, func(b *testing.B) {
			n, in := newNode(13, "Add", []*tensor.Dense{a, other}, 1)
			b.SetBytes(4 << 20)
			for b.Loop() {
				if _, err := Fold(b.Context(), n, in, nil, 1<<30); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
