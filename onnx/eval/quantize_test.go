package eval

import "testing"

func TestQuantizeLinear(t *testing.T) {
	stored := "float[6] x = {-1, 0.5, 1.5, 2.5, 300, -300}, float two = {2}, float one = {1}, uint8 z = {128}, int8 zi = {0}, int16 z16 = {1000}, " +
		"float[2,3] m = {1, 2, 3, 10, 20, 30}, float[2] rows = {1, 10}, float[3] columns = {1, 2, 3}, float[2,2] blocks = {1, 2, 10, 20}"
	runOperatorCases(t, []operatorCase{
		{opset: 10, stored: stored, node: "y = QuantizeLinear (x, one)", want: "UINT8[6]{0, 0, 2, 2, 255, 0}"},
		{opset: 13, stored: stored, node: "y = QuantizeLinear (x, two, z)", want: "UINT8[6]{128, 128, 129, 129, 255, 0}"},
		{opset: 13, stored: stored, node: "y = QuantizeLinear (x, one, zi)", want: "INT8[6]{-1, 0, 2, 2, 127, -128}"},
		{opset: 21, stored: stored, node: "y = QuantizeLinear (x, one, z16)", want: "INT16[6]{999, 1000, 1002, 1002, 1300, 700}"},
		{opset: 21, stored: stored, node: "y = QuantizeLinear <output_dtype = 22> (x, one)", want: "INT4[6]{-1, 0, 2, 2, 7, -8}"},
		{opset: 25, stored: stored, node: "y = QuantizeLinear <output_dtype = 25> (x, one)", want: "UINT2[6]{0, 0, 2, 2, 3, 0}"},
		{opset: 19, stored: stored + ", float8e4m3fn z8 = {0}", node: "y = QuantizeLinear (x, one, z8)", want: "FLOAT8E4M3FN[6]{-1, 0.5, 1.5, 2.5, 288, -288}"},
		{opset: 19, stored: "float[2] x = {1000, -1000}, float one = {1}, float8e4m3fn z8 = {0}", node: "y = QuantizeLinear <saturate = 0> (x, one, z8)", want: "FLOAT8E4M3FN[2]{NaN, NaN}"},
		{opset: 23, stored: stored, node: "y = QuantizeLinear <output_dtype = 23> (x, one)", want: "FLOAT4E2M1[6]{-1, 0.5, 1.5, 2, 6, -6}"},
		{opset: 13, stored: stored, node: "y = QuantizeLinear <axis = 0> (m, rows)", want: "UINT8[2,3]{1, 2, 3, 1, 2, 3}"},
		{opset: 13, stored: stored, node: "y = QuantizeLinear (m, columns)", want: "UINT8[2,3]{1, 1, 1, 10, 10, 10}"},
		{opset: 13, stored: stored, node: "y = QuantizeLinear (m, rows)", want: "error: scales of shape [2] fit neither"},
		{opset: 21, stored: stored, node: "y = QuantizeLinear <block_size = 2> (m, blocks)", want: "UINT8[2,3]{1, 2, 2, 1, 2, 2}"},
		{opset: 21, stored: stored, node: "y = QuantizeLinear <block_size = 1> (m, blocks)", want: "error: need [2 3]"},
		{opset: 21, stored: stored, node: "y = QuantizeLinear <output_dtype = 3> (x, one, z)", want: `error: attribute "output_dtype" says INT8`},
		{opset: 13, stored: "float[2] x = {nan, inf}, float one = {1}", node: "y = QuantizeLinear (x, one)", want: "UINT8[2]{0, 255}", folds: ErrUndefined},
		{opset: 13, stored: "int32[2] x = {-7, 16777217}, float s = {2}, int8 z = {0}", node: "y = QuantizeLinear (x, s, z)", want: "INT8[2]{-4, 127}"},
		// 2049/2 has one bit more than FLOAT16; in that precision it is the even 1024.
		{opset: 23, stored: "float[1] x = {1025}, float s = {2}, int16 z = {0}", node: "y = QuantizeLinear <precision = 10> (x, s, z)", want: "INT16[1]{512}"},
		{opset: 23, stored: "float[1] x = {2051}, float s = {1}, int16 z = {0}", node: "y = QuantizeLinear <precision = 10> (x, s, z)", want: "INT16[1]{2052}"},
		{opset: 13, stored: "float[0,3] x = {}, float[3] s = {1, 2, 3}", node: "y = QuantizeLinear (x, s)", want: "UINT8[0,3]{}"},
	})
}

func TestDequantizeLinear(t *testing.T) {
	stored := "uint8[3] x = {0, 128, 255}, float s = {0.5}, uint8 z = {128}, int8 wrong = {0}, int4[2,4] w = {-8, 7, 1, 2, 3, 4, 5, 6}, float[2,2] blocks = {1, 2, 10, 20}, float16 h = {0.1}"
	runOperatorCases(t, []operatorCase{
		{opset: 10, stored: stored, node: "y = DequantizeLinear (x, s, z)", want: "FLOAT[3]{-64, 0, 63.5}"},
		{opset: 13, stored: stored, node: "y = DequantizeLinear (x, s)", want: "FLOAT[3]{0, 64, 127.5}"},
		{opset: 13, stored: stored, node: "y = DequantizeLinear (x, s, wrong)", want: "error: x is UINT8, its zero point INT8"},
		{opset: 19, stored: stored, node: "y = DequantizeLinear (x, h)", want: "FLOAT16[3]{0, 12.796875, 25.5}"},
		{opset: 23, stored: stored, node: "y = DequantizeLinear <output_dtype = 16> (x, s)", want: "BFLOAT16[3]{0, 64, 127.5}"},
		{opset: 21, stored: stored, node: "y = DequantizeLinear <block_size = 2> (w, blocks)", want: "FLOAT[2,4]{-8, 7, 2, 4, 30, 40, 100, 120}"},
		{opset: 21, stored: "int4[3,2] w = {1, 2, 3, 4, 5, 6}, float[2,2] s = {1, 10, 100, 1000}", node: "y = DequantizeLinear <axis = 0, block_size = 2> (w, s)", want: "FLOAT[3,2]{1, 20, 3, 40, 500, 6000}"},
		{opset: 24, stored: "float4e2m1[2] x = {6, -0.5}, float8e8m0 s = {4}", node: "y = DequantizeLinear <output_dtype = 1> (x, s)", want: "FLOAT[2]{24, -2}"},
		{opset: 24, stored: "float4e2m1[2] x = {6, -0.5}, float8e8m0 s = {4}", node: "y = DequantizeLinear (x, s)", want: "error: the result would be FLOAT8E8M0"},
		{opset: 13, stored: "int32[2] x = {-5, 1000000}, float[2] s = {2, 3}", node: "y = DequantizeLinear <axis = 0> (x, s)", want: "FLOAT[2]{-10, 3e+06}"},
	})
}

func TestDynamicQuantizeLinear(t *testing.T) {
	stored := "float[6] x = {0, 2, -3, -2.5, 1.34, 0.5}, float[4] positive = {1, 2.1, 1.3, 2.5}, float[2] none = {0, 0}, float[0] empty = {}"
	runOperatorCases(t, []operatorCase{
		{opset: 11, stored: stored, node: "y, s, z = DynamicQuantizeLinear (x)", want: "UINT8[6]{153, 255, 0, 26, 221, 179}"},
		{opset: 11, stored: stored, node: "q, y, z = DynamicQuantizeLinear (x)", want: "FLOAT[]{0.019607844}"},
		{opset: 11, stored: stored, node: "q, s, y = DynamicQuantizeLinear (x)", want: "UINT8[]{153}"},
		{opset: 11, stored: stored, node: "y, s, z = DynamicQuantizeLinear (positive)", want: "UINT8[4]{102, 214, 133, 255}"},
		{opset: 11, stored: stored, node: "q, y, z = DynamicQuantizeLinear (none)", want: "FLOAT[]{1}", folds: ErrUndefined},
		{opset: 11, stored: stored, node: "q, s, y = DynamicQuantizeLinear (empty)", want: "UINT8[]{0}", folds: ErrUndefined},
	})
}
