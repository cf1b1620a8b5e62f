package eval

import "testing"

func TestActivations(t *testing.T) {
	stored := "float[3] x = {-1, 0, 2}, double[3] d = {-1, 0, 2}, float16[3] h = {-1, 0, 2}, float[3] odd = {nan, inf, -inf}, int8[3] i = {-1, 0, 2}"
	runOperatorCases(t, []operatorCase{
		{opset: 6, stored: stored, node: "y = Relu (odd)", want: "FLOAT[3]{NaN, +Inf, 0}"},
		{opset: 14, stored: stored, node: "y = Relu (i)", want: "INT8[3]{0, 0, 2}"},
		{opset: 16, stored: stored, node: "y = LeakyRelu <alpha = 0.5> (h)", want: "FLOAT16[3]{-0.5, 0, 2}"},
		{opset: 6, stored: stored, node: "y = LeakyRelu <alpha = -1.0> (x)", want: "FLOAT[3]{1, 0, 2}"},
		{opset: 6, stored: "float[3] odd = {nan, inf, -0.0}", node: "y = LeakyRelu <alpha = 0.0> (odd)", want: "FLOAT[3]{NaN, +Inf, -0}"},
		{opset: 6, stored: stored, node: "y = LeakyRelu (x)", want: "FLOAT[3]{-0.01, 0, 2}"},
		{opset: 10, stored: stored, node: "y = ThresholdedRelu (x)", want: "FLOAT[3]{0, 0, 2}"},
		{opset: 10, stored: stored, node: "y = ThresholdedRelu <alpha = 2.0> (odd)", want: "FLOAT[3]{0, +Inf, 0}"},
		{opset: 6, stored: stored, node: "y = HardSigmoid (x)", want: "FLOAT[3]{0.3, 0.5, 0.9}"},
		{opset: 14, stored: stored, node: "y = HardSwish (x)", want: "FLOAT[3]{-0.3333333, 0, 1.6666667}"},
		{opset: 13, stored: stored, node: "y = Sigmoid (d)", want: "DOUBLE[3]{0.2689414213699951, 0.5, 0.8807970779778823}"},
		{opset: 13, stored: stored, node: "y = Sigmoid (odd)", want: "FLOAT[3]{NaN, 1, 0}"},
		{opset: 13, stored: stored, node: "y = Tanh (d)", want: "DOUBLE[3]{-0.7615941559557649, 0, 0.9640275800758169}"},
		{opset: 6, stored: stored, node: "y = Elu <alpha = 2.0> (x)", want: "FLOAT[3]{-1.2642411, 0, 2}"},
		{opset: 1, stored: stored, node: "y = Selu (x)", want: "FLOAT[3]{-1.1112876, 0, 2.1014}"}, // 1.6732 and 1.0507
		{opset: 6, stored: stored, node: "y = Selu (x)", want: "FLOAT[3]{-1.1113307, 0, 2.101402}"},
		{opset: 12, stored: stored, node: "y = Celu <alpha = 2.0> (x)", want: "FLOAT[3]{-0.78693867, 0, 2}"},
		{opset: 22, stored: "float[2] x = {-1000, 1000}", node: "y = Softplus (x)", want: "FLOAT[2]{0, 1000}"},
		{opset: 22, stored: stored, node: "y = Softsign (x)", want: "FLOAT[3]{-0.5, 0, 0.6666667}"},
		{opset: 18, stored: stored, node: "y = Mish (x)", want: "FLOAT[3]{-0.30340147, 0, 1.943959}"},
		{opset: 18, stored: "float[2] x = {-500, 500}", node: "y = Mish (x)", want: "FLOAT[2]{-0, 500}"},
		{opset: 20, stored: stored, node: "y = Gelu (x)", want: "FLOAT[3]{-0.15865526, 0, 1.9544997}"},
		{opset: 20, stored: stored, node: "y = Gelu (odd)", want: "FLOAT[3]{NaN, +Inf, 0}"},
		{opset: 20, stored: stored, node: `y = Gelu <approximate = "tanh"> (x)`, want: "FLOAT[3]{-0.15880801, 0, 1.9545977}"},
		{opset: 20, stored: stored, node: `y = Gelu <approximate = "erf"> (x)`, want: `error: attribute "approximate" is "erf"`},
		{opset: 24, stored: stored, node: "y = Swish <alpha = 2.0> (x)", want: "FLOAT[3]{-0.11920292, 0, 1.9640275}"},
		{opset: 28, stored: stored, node: "y = SwiGLU (x, x)", want: "FLOAT[3]{0.26894143, 0, 3.5231884}"},
		{opset: 28, stored: stored + ", float[1] one = {1}", node: "y = SwiGLU (x, one)", want: "error: input 1 has shape [1], not [3]"},
		{opset: 13, stored: stored, node: "y = Sigmoid (i)", want: "error: INT8"},
	})
}

func TestPRelu(t *testing.T) {
	stored := "float[1,2,2] x = {-1, -2, -3, 4}, float[2] s = {10, 100}, float[1] one = {2}"
	runOperatorCases(t, []operatorCase{
		{opset: 6, stored: stored, node: "y = PRelu (x, s)", want: "FLOAT[1,2,2]{-10, -20, -300, 4}"},
		{opset: 6, stored: stored, node: "y = PRelu (x, one)", want: "FLOAT[1,2,2]{-2, -4, -6, 4}"},
		{opset: 7, stored: stored, node: "y = PRelu (x, s)", want: "FLOAT[1,2,2]{-10, -200, -30, 4}"},
		{opset: 9, stored: "int32[2] x = {-3, 3}, int32[1] s = {-5}", node: "y = PRelu (x, s)", want: "INT32[2]{15, 3}"},
		{opset: 9, stored: "uint64[1] x = {18446744073709551615}, uint64[1] s = {5}", node: "y = PRelu (x, s)", want: "UINT64[1]{18446744073709551615}"},
		{opset: 9, stored: "float[2] x = {-3, 3}, float[2,2] s = {1, 2, 3, 4}", node: "y = PRelu (x, s)", want: "error: "},
	})
}

func TestShrink(t *testing.T) {
	runOperatorCases(t, []operatorCase{
		{opset: 9, stored: "float[4] x = {-2, -0.25, 2, nan}", node: "y = Shrink <lambd = 0.5, bias = 1.5> (x)", want: "FLOAT[4]{-0.5, 0, 0.5, 0}"},
		{opset: 9, stored: "int8[4] x = {-4, -1, 1, 4}", node: "y = Shrink <lambd = 1.0, bias = 1.5> (x)", want: "INT8[4]{-2, 0, 0, 2}"},
		{opset: 9, stored: "int64[2] x = {9007199254740993, -9007199254740993}", node: "y = Shrink <bias = 1.0> (x)", want: "INT64[2]{9007199254740992, -9007199254740992}"},
		{opset: 9, stored: "uint8[2] x = {1, 200}", node: "y = Shrink <bias = 2.0> (x)", want: "UINT8[2]{1, 198}", folds: ErrUndefined},
		{opset: 9, stored: "uint64[2] x = {18446744073709549568, 0}", node: "y = Shrink <bias = 1.0> (x)", want: "UINT64[2]{18446744073709549567, 0}"},
	})
}

func TestMathFunctions(t *testing.T) {
	stored := "float[2] x = {0.5, -0.5}, float[2] far = {1e10, 3}, double[1] d = {0.5}, bfloat16[1] b = {0.5}"
	runOperatorCases(t, []operatorCase{
		{opset: 7, stored: stored, node: "y = Sin (far)", want: "FLOAT[2]{-0.48750603, 0.14112}"},
		{opset: 7, stored: stored, node: "y = Cos (x)", want: "FLOAT[2]{0.87758255, 0.87758255}"},
		{opset: 7, stored: stored, node: "y = Tan (d)", want: "DOUBLE[1]{0.5463024898437905}"},
		{opset: 7, stored: stored, node: "y = Asin (x)", want: "FLOAT[2]{0.5235988, -0.5235988}"},
		{opset: 7, stored: stored, node: "y = Acos (far)", want: "FLOAT[2]{NaN, NaN}"},
		{opset: 22, stored: stored, node: "y = Atan (b)", want: "BFLOAT16[1]{0.46289062}"},
		{opset: 9, stored: stored, node: "y = Sinh (x)", want: "FLOAT[2]{0.5210953, -0.5210953}"},
		{opset: 9, stored: stored, node: "y = Cosh (x)", want: "FLOAT[2]{1.127626, 1.127626}"},
		{opset: 9, stored: stored, node: "y = Asinh (x)", want: "FLOAT[2]{0.4812118, -0.4812118}"},
		{opset: 9, stored: stored, node: "y = Acosh (far)", want: "FLOAT[2]{23.718998, 1.7627472}"},
		{opset: 9, stored: stored, node: "y = Atanh (x)", want: "FLOAT[2]{0.54930615, -0.54930615}"},
		{opset: 13, stored: stored, node: "y = Erf (x)", want: "FLOAT[2]{0.5204999, -0.5204999}"},
		{opset: 9, stored: "int32[3] i = {0, 1, 9}", node: "y = Erf (i)", want: "INT32[3]{0, 0, 1}", folds: ErrUndefined},
	})
}
