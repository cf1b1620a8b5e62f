package eval

import (
	"fmt"
	"testing"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

func TestMatMul(t *testing.T) {
	stored := "float[2,3] a = {1, 2, 3, 4, 5, 6}, float[3] v = {1, 0, -1}, float[3,1] column = {1, 1, 1}, float s = {2}"
	runOperatorCases(t, []operatorCase{
		{opset: 13, stored: stored, node: "y = MatMul (a, column)", want: "FLOAT[2,1]{6, 15}"},
		{opset: 13, stored: stored, node: "y = MatMul (a, v)", want: "FLOAT[2]{-2, -2}"},
		{opset: 13, stored: stored, node: "y = MatMul (v, column)", want: "FLOAT[1]{0}"},
		{opset: 13, stored: stored, node: "y = MatMul (v, v)", want: "FLOAT[]{2}"},
		{opset: 13, stored: stored, node: "y = MatMul (a, a)", want: "error: 3 against 2"},
		{opset: 13, stored: stored, node: "y = MatMul (a, s)", want: "error: scalar"},

		{opset: 13, stored: "float[2,1,1,2] a = {1, 2, 3, 4}, float[3,2,1] b = {1, 0, 0, 1, 1, 1}", node: "y = MatMul (a, b)", want: "FLOAT[2,3,1,1]{1, 2, 3, 3, 4, 7}"},
		{opset: 13, stored: "float[2,1,2] a = {1, 2, 3, 4}, float[3,2,1] b = {1, 0, 0, 1, 1, 1}", node: "y = MatMul (a, b)", want: "error: do not broadcast"},
		{opset: 13, stored: "float[0,3] a = {}, float[3,2] b = {1, 2, 3, 4, 5, 6}", node: "y = MatMul (a, b)", want: "FLOAT[0,2]{}"},
		{opset: 13, stored: "float[2,0] a = {}, float[0,2] b = {}", node: "y = MatMul (a, b)", want: "FLOAT[2,2]{0, 0, 0, 0}"},

		// Integers are exact and wrap; halves are summed in float32 and rounded once.
		{opset: 13, stored: "int64[1,2] a = {9007199254740993, 1}, int64[2,1] b = {1, 0}", node: "y = MatMul (a, b)", want: "INT64[1,1]{9007199254740993}"},
		{opset: 13, stored: "int32[1,2] a = {2147483647, 1}, int32[2,1] b = {1, 1}", node: "y = MatMul (a, b)", want: "INT32[1,1]{-2147483648}"},
		{opset: 13, stored: "float16[1,3] a = {2048, 1, 1}, float16[3,1] b = {1, 1, 1}", node: "y = MatMul (a, b)", want: "FLOAT16[1,1]{2050}"},
		{opset: 13, stored: "double[1,2] a = {1, 1e-12}, double[2,1] b = {1, 1}", node: "y = MatMul (a, b)", want: "DOUBLE[1,1]{1.000000000001}"},
	})
}

// The packed form of a constant left side depends on the rank of the right one, which
// may differ from run to run.
func TestMatMulKeepsWhatFits(t *testing.T) {
	m := onnx.NewModel(10, 13)
	a := m.Graph.AddInitializer("a", tensor.Of([]float32{1, 2, 3, 4}, 2, 1, 2))
	b := m.Graph.AddInput("b", &onnx.Type{Kind: onnx.KindTensor, Elem: tensor.Float32})
	m.Graph.AddOutput(m.Graph.Add("MatMul", []*onnx.Value{a, b}, []string{"y"}).Output(0))
	program, err := Prepare(m, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		shape []int
		want  string
	}{{[]int{2, 1}, "FLOAT[2,1,1]{21, 43}"}, {[]int{1, 2, 1}, "FLOAT[2,1,1]{21, 43}"}, {[]int{2}, "FLOAT[2,1]{21, 43}"}} {
		out, err := program.Run(t.Context(), map[string]Value{"b": tensor.Of([]float32{1, 10}, c.shape...)}, nil)
		checkOutcome(t, fmt.Sprintf("b of shape %v", c.shape), out["y"], err, c.want)
	}
}

func TestGemm(t *testing.T) {
	stored := "float[2,1] a = {1, 2}, float[1,2] b = {3, 4}, float[2] row = {10, 20}, float[2,1] column = {100, 200}, float s = {1}"
	runOperatorCases(t, []operatorCase{
		{opset: 13, stored: stored, node: "y = Gemm (a, b)", want: "FLOAT[2,2]{3, 4, 6, 8}"},
		{opset: 13, stored: stored, node: "y = Gemm (a, b, row)", want: "FLOAT[2,2]{13, 24, 16, 28}"},
		{opset: 13, stored: stored, node: "y = Gemm (a, b, column)", want: "FLOAT[2,2]{103, 104, 206, 208}"},
		{opset: 7, stored: stored, node: "y = Gemm <alpha = 0.5, beta = 2.0> (a, b, s)", want: "FLOAT[2,2]{3.5, 4, 5, 6}"},
		{opset: 6, stored: stored, node: "y = Gemm <broadcast = 1> (a, b, row)", want: "FLOAT[2,2]{13, 24, 16, 28}"},
		{opset: 13, stored: stored, node: "y = Gemm <transA = 1, transB = 1> (a, b)", want: "FLOAT[1,1]{11}"},
		{opset: 13, stored: stored, node: "y = Gemm <transA = 1> (a, b)", want: "error: cannot multiply"},
		{opset: 13, stored: stored, node: "y = Gemm (a, b, a, b)", want: "FLOAT[2,2]{4, 5, 8, 10}"},
		{opset: 11, stored: "int32[1,1] a = {3}, int32[1,1] b = {3}", node: "y = Gemm <alpha = 0.5> (a, b)", want: "INT32[1,1]{4}", folds: ErrUndefined},
		{opset: 11, stored: "int64[1,1] a = {4503599627370497}, int64[1,1] b = {3}", node: "y = Gemm <alpha = 2.0> (a, b)", want: "INT64[1,1]{27021597764222982}"},
	})
}

func TestIntegerProducts(t *testing.T) {
	stored := "uint8[1,2] a = {255, 255}, int8[2,1] b = {-128, -128}, uint8 za = {0}, int8 zb = {127}, float half = {0.5}, float one = {1}, uint8 zy = {10}"
	runOperatorCases(t, []operatorCase{
		{opset: 10, stored: stored, node: "y = MatMulInteger (a, b)", want: "INT32[1,1]{-65280}"},
		{opset: 10, stored: stored, node: "y = MatMulInteger (a, b, za, zb)", want: "INT32[1,1]{-130050}"},
		{opset: 10, stored: "uint8[2,1] a = {5, 7}, uint8[1,2] b = {2, 3}, uint8[2] rows = {5, 6}, uint8[2] columns = {1, 0}",
			node: "y = MatMulInteger (a, b, rows, columns)", want: "INT32[2,2]{0, 0, 1, 3}"},
		// 4.5 rounds to the even 4 before the zero point is added; results saturate.
		{opset: 10, stored: stored + ", uint8[1,1] x = {9}, uint8[1,1] w = {1}", node: "y = QLinearMatMul (x, half, za, w, one, za, one, zy)", want: "UINT8[1,1]{14}"},
		{opset: 10, stored: stored, node: "y = QLinearMatMul (a, one, za, b, one, zb, one, zy)", want: "UINT8[1,1]{0}"},
		{opset: 10, stored: "uint8[1,1,2,2] x = {1, 2, 3, 4}, uint8[1,1,1,1] w = {3}, uint8 zx = {1}", node: "y = ConvInteger <pads = [0, 0, 0, 1]> (x, w, zx)", want: "INT32[1,1,2,3]{0, 3, 0, 6, 9, 0}"},
		{opset: 10, stored: "uint8[1,1,1,2] x = {11, 13}, int8[2,1,1,1] w = {1, 1}, float[2] ws = {1, 2}, int8 wz = {0}, uint8 z = {10}, float s = {1}, int32[2] bias = {1, -1}",
			node: "y = QLinearConv (x, s, z, w, ws, wz, s, z, bias)", want: "UINT8[1,2,1,2]{12, 14, 10, 14}"},
	})
}

// Sums of products of 8-bit numbers are exact however deep the product is.
func TestIntegerProductsAreExact(t *testing.T) {
	const depth = 1000
	a, b := make([]uint8, depth), make([]uint8, depth)
	want := int32(0)
	for i := range a {
		a[i], b[i] = 255, uint8(255-i%3)
		want += int32(a[i]) * int32(b[i])
	}
	out, err := foldNode(t, 10, "MatMulInteger", []*tensor.Dense{tensor.Of(a, 1, depth), tensor.Of(b, depth, 1)}, 1)
	if err != nil {
		t.Fatal(err)
	}
	checkOutcome(t, "folding", out[0], nil, tensor.Of([]int32{want}, 1, 1).String())
}

func TestEinsum(t *testing.T) {
	stored := "float[2,2] a = {1, 2, 3, 4}, float[2] v = {10, 100}, float[1,2] wide = {5, 6}, float[3,2] b = {1, 2, 3, 4, 5, 6}"
	runOperatorCases(t, []operatorCase{
		{opset: 12, stored: stored, node: `y = Einsum <equation = "ij,jk->ik"> (b, a)`, want: "FLOAT[3,2]{7, 10, 15, 22, 23, 34}"},
		{opset: 12, stored: stored, node: `y = Einsum <equation = "ii"> (a)`, want: "FLOAT[]{5}"},
		{opset: 12, stored: stored, node: `y = Einsum <equation = "ii->i"> (a)`, want: "FLOAT[2]{1, 4}"},
		{opset: 12, stored: stored, node: `y = Einsum <equation = "ba"> (a)`, want: "FLOAT[2,2]{1, 3, 2, 4}"},
		{opset: 12, stored: stored, node: `y = Einsum <equation = " i , i -> "> (v, v)`, want: "FLOAT[]{10100}"},
		{opset: 12, stored: stored, node: `y = Einsum <equation = "...j,j"> (b, v)`, want: "FLOAT[3]{210, 430, 650}"},
		{opset: 12, stored: stored, node: `y = Einsum <equation = "ij,jk,k->i"> (b, a, v)`, want: "FLOAT[3]{1070, 2350, 3630}"},
		{opset: 12, stored: stored, node: `y = Einsum <equation = "...,...->..."> (a, wide)`, want: "FLOAT[2,2]{5, 12, 15, 24}"},
		{opset: 12, stored: stored, node: `y = Einsum <equation = "i,j->ij"> (v, v)`, want: "FLOAT[2,2]{100, 1000, 1000, 10000}"},
		{opset: 12, stored: "int8[2] v = {100, 100}", node: `y = Einsum <equation = "i->"> (v)`, want: "INT8[]{-56}"},
		{opset: 12, stored: stored, node: `y = Einsum <equation = "ij,jk"> (a, b)`, want: "error: size 2 and size 3"},
		{opset: 12, stored: stored, node: `y = Einsum <equation = "i->ik"> (v)`, want: "error: in no term"},
		{opset: 12, stored: stored, node: `y = Einsum <equation = "ij->ii"> (a)`, want: "error: twice"},
		{opset: 12, stored: stored, node: `y = Einsum <equation = "i"> (a)`, want: "error: names 1 axes"},
		{opset: 12, stored: stored, node: `y = Einsum <equation = "i,j"> (a)`, want: "error: 2 terms"},
	})
}

func TestDeterminant(t *testing.T) {
	runOperatorCases(t, []operatorCase{
		{opset: 11, stored: "float[2,2,2] a = {0, 1, 2, 0, 1, 2, 3, 4}", node: "y = Det (a)", want: "FLOAT[2]{-2, -2}"},
		{opset: 11, stored: "double[3,3] a = {2, 0, 0, 0, 3, 0, 0, 0, 4}", node: "y = Det (a)", want: "DOUBLE[]{24}"},
		{opset: 11, stored: "float[2,2] a = {1, 2, 2, 4}", node: "y = Det (a)", want: "FLOAT[]{0}"},
		{opset: 11, stored: "float[2,3] a = {1, 2, 3, 4, 5, 6}", node: "y = Det (a)", want: "error: no square matrices"},
	})
}
