package eval

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

func TestShapes(t *testing.T) {
	stored := "float[2,3] a = {1, 2, 3, 4, 5, 6}, float[0,2] none = {}, float s = {7}, float[1,2,1] thin = {8, 9}"
	runOperatorCases(t, []operatorCase{
		{opset: 13, stored: stored, node: "y = Shape (s)", want: "INT64[0]{}"},
		{opset: 15, stored: stored, node: "y = Shape <start = -1> (a)", want: "INT64[1]{3}"},
		{opset: 15, stored: stored, node: "y = Shape <start = 1, end = -9> (a)", want: "INT64[0]{}"},
		{opset: 13, stored: stored, node: "y = Size (none)", want: "INT64[]{0}"},

		{opset: 14, stored: stored + ", int64[2] to = {0, -1}", node: "y = Reshape (a, to)", want: "FLOAT[2,3]{1, 2, 3, 4, 5, 6}"},
		{opset: 14, stored: stored + ", int64[2] to = {-1, 2}", node: "y = Reshape (a, to)", want: "FLOAT[3,2]{1, 2, 3, 4, 5, 6}"},
		{opset: 14, stored: stored + ", int64[0] to = {}", node: "y = Reshape (s, to)", want: "FLOAT[]{7}"},
		{opset: 14, stored: stored + ", int64[2] to = {3, 0}", node: "y = Reshape <allowzero = 1> (none, to)", want: "FLOAT[3,0]{}"},
		{opset: 14, stored: stored + ", int64[2] to = {0, -1}", node: "y = Reshape <allowzero = 1> (none, to)", want: "error: do not fill"},
		{opset: 14, stored: stored + ", int64[2] to = {-1, -1}", node: "y = Reshape (a, to)", want: "error: two dims"},
		{opset: 14, stored: stored + ", int64[3] to = {2, 3, 0}", node: "y = Reshape (a, to)", want: "error: dim 2"},
		{opset: 14, stored: stored + ", int64[2] to = {4, 2}", node: "y = Reshape (a, to)", want: "error: cannot become"},
		{opset: 14, stored: stored + ", int64[3] to = {9223372036854775807, 9223372036854775807, -1}", node: "y = Reshape (a, to)", want: "error: too large"},
		{opset: 1, stored: stored, node: "y = Reshape <shape = [6]> (a)", want: "FLOAT[6]{1, 2, 3, 4, 5, 6}"},
		{opset: 5, stored: stored, node: "y = Reshape <shape = [6]> (a)", want: "error: no shape"},

		{opset: 13, stored: stored, node: "y = Flatten <axis = 0> (a)", want: "FLOAT[1,6]{1, 2, 3, 4, 5, 6}"},
		{opset: 13, stored: stored, node: "y = Flatten <axis = 2> (a)", want: "FLOAT[6,1]{1, 2, 3, 4, 5, 6}"},
		{opset: 13, stored: stored, node: "y = Flatten <axis = -1> (a)", want: "FLOAT[2,3]{1, 2, 3, 4, 5, 6}"},
		{opset: 13, stored: stored, node: "y = Flatten <axis = -2> (a)", want: "FLOAT[1,6]{1, 2, 3, 4, 5, 6}"},
		{opset: 13, stored: stored, node: "y = Flatten <axis = -3> (a)", want: "error: outside rank"},

		{opset: 13, stored: stored, node: "y = Squeeze (thin)", want: "FLOAT[2]{8, 9}"},
		{opset: 13, stored: stored + ", int64[1] axes = {-1}", node: "y = Squeeze (thin, axes)", want: "FLOAT[1,2]{8, 9}"},
		{opset: 11, stored: stored, node: "y = Squeeze <axes = [0]> (thin)", want: "FLOAT[2,1]{8, 9}"},
		{opset: 13, stored: stored + ", int64[1] axes = {1}", node: "y = Squeeze (thin, axes)", want: "error: is not 1"},
		{opset: 13, stored: stored + ", int64[0] axes = {}", node: "y = Squeeze (thin, axes)", want: "FLOAT[1,2,1]{8, 9}", folds: ErrUndefined},
		{opset: 13, stored: stored + ", int64[2] axes = {-1, 0}", node: "y = Unsqueeze (a, axes)", want: "FLOAT[1,2,3,1]{1, 2, 3, 4, 5, 6}"},
		{opset: 11, stored: stored, node: "y = Unsqueeze <axes = [1]> (a)", want: "FLOAT[2,1,3]{1, 2, 3, 4, 5, 6}"},
		{opset: 13, stored: stored + ", int64[2] axes = {0, -4}", node: "y = Unsqueeze (a, axes)", want: "error: named twice"},
	})
}

func TestMovement(t *testing.T) {
	stored := "int8[2,3] a = {1, 2, 3, 4, 5, 6}, int8[3] v = {1, 2, 3}, int8 s = {9}"
	runOperatorCases(t, []operatorCase{
		{opset: 13, stored: stored, node: "y = Transpose (a)", want: "INT8[3,2]{1, 4, 2, 5, 3, 6}"},
		{opset: 13, stored: stored, node: "y = Transpose <perm = [0, 0]> (a)", want: "error: named twice"},
		{opset: 13, stored: stored + ", int64[3] to = {2, 1, 1}", node: "y = Expand (v, to)", want: "INT8[2,1,3]{1, 2, 3, 1, 2, 3}"},
		{opset: 13, stored: stored + ", int64[1] to = {1}", node: "y = Expand (v, to)", want: "INT8[3]{1, 2, 3}"},
		{opset: 13, stored: stored + ", int64[1] to = {2}", node: "y = Expand (v, to)", want: "error: "},
		{opset: 13, stored: stored + ", int64[2] n = {2, 1}", node: "y = Tile (a, n)", want: "INT8[4,3]{1, 2, 3, 4, 5, 6, 1, 2, …}"},
		{opset: 13, stored: stored + ", int64[2] n = {1, 0}", node: "y = Tile (a, n)", want: "INT8[2,0]{}"},
		{opset: 1, stored: "float[2] x = {1, 2}, float n = {2}, float axis = {0}", node: "y = Tile (x, n, axis)", want: "FLOAT[4]{1, 2, 1, 2}"},

		{opset: 13, stored: stored, node: "y = Concat <axis = -1> (a, a)", want: "INT8[2,6]{1, 2, 3, 1, 2, 3, 4, 5, …}"},
		{opset: 1, stored: stored, node: "y = Concat (a, a)", want: "INT8[2,6]{1, 2, 3, 1, 2, 3, 4, 5, …}"},
		{opset: 4, stored: stored, node: "y = Concat (a, a)", want: "error: axis is missing"},
		{opset: 13, stored: stored, node: "y = Concat <axis = 0> (a, v)", want: "error: cannot join"},

		{opset: 13, stored: stored + ", int64[2] parts = {1, 2}", node: "x, y = Split <axis = 1> (a, parts)", want: "INT8[2,2]{2, 3, 5, 6}"},
		{opset: 13, stored: stored + ", int64[2] parts = {3, 0}", node: "x, y = Split <axis = 1> (a, parts)", want: "INT8[2,0]{}"},
		{opset: 11, stored: stored, node: "x, y = Split <axis = 1, split = [1, 2]> (a)", want: "INT8[2,2]{2, 3, 5, 6}"},
		{opset: 2, stored: stored, node: "x, y = Split (a)", want: "INT8[1,3]{4, 5, 6}"},
		{opset: 13, stored: stored, node: "x, y = Split (v)", want: "error: equal parts"},
		{opset: 18, stored: stored, node: "x, y = Split <num_outputs = 2> (v)", want: "INT8[1]{3}"},
		{opset: 18, stored: stored, node: "x, y = Split <num_outputs = 3> (v)", want: "error: num_outputs"},
		{opset: 13, stored: stored + ", int64[2] parts = {1, 1}", node: "x, y = Split <axis = 1> (a, parts)", want: "error: do not make"},

		{opset: 1, stored: stored, node: "y = Slice <starts = [-2], ends = [9223372036854775807], axes = [1]> (a)", want: "INT8[2,2]{2, 3, 5, 6}"},
		{opset: 13, stored: stored + ", int64[1] b = {-1}, int64[1] e = {-9223372036854775808}, int64[1] x = {0}, int64[1] d = {-1}", node: "y = Slice (v, b, e, x, d)", want: "INT8[3]{3, 2, 1}"},
		{opset: 13, stored: stored + ", int64[1] b = {-1}, int64[1] e = {9223372036854775807}, int64[1] x = {0}, int64[1] d = {-1}", node: "y = Slice (v, b, e, x, d)", want: "INT8[0]{}", folds: ErrUndefined},
		{opset: 13, stored: stored + ", int64[1] b = {0}, int64[1] e = {9}, int64[1] x = {0}, int64[1] d = {2}", node: "y = Slice (v, b, e, x, d)", want: "INT8[2]{1, 3}"},
		{opset: 13, stored: stored + ", int64[1] b = {9}, int64[1] e = {0}, int64[1] x = {0}, int64[1] d = {-9223372036854775808}", node: "y = Slice (v, b, e, x, d)", want: "INT8[1]{3}"},
		{opset: 13, stored: stored + ", int32[1] b = {2}, int32[1] e = {1}", node: "y = Slice (v, b, e)", want: "INT8[0]{}"},
		{opset: 13, stored: stored + ", int64[1] b = {0}, int64[1] e = {1}, int64[1] x = {0}, int64[1] d = {0}", node: "y = Slice (v, b, e, x, d)", want: "error: step"},
		{opset: 13, stored: stored + ", int64[1] b = {0}, int64[2] e = {1, 1}", node: "y = Slice (v, b, e)", want: "error: 1 starts, 2 ends"},

		{opset: 14, stored: stored + ", int64 k = {1}", node: "y = Trilu (a, k)", want: "INT8[2,3]{0, 2, 3, 0, 0, 6}"},
		{opset: 14, stored: stored + ", int64 k = {-9223372036854775808}", node: "y = Trilu (a, k)", want: "INT8[2,3]{1, 2, 3, 4, 5, 6}"},
		{opset: 14, stored: stored, node: "y = Trilu <upper = 0> (a)", want: "INT8[2,3]{1, 0, 0, 4, 5, 0}"},
		{opset: 10, stored: stored + ", int64[2] n = {2, 3}", node: "y = ReverseSequence <batch_axis = 0, time_axis = 1> (a, n)", want: "INT8[2,3]{2, 1, 3, 6, 5, 4}"},
		{opset: 10, stored: stored + ", int64[2] n = {2, 4}", node: "y = ReverseSequence <batch_axis = 0, time_axis = 1> (a, n)", want: "error: sequence length"},
		{opset: 13, stored: "float[1,4,1,1] p = {1, 2, 3, 4}", node: "y = DepthToSpace <blocksize = 2> (p)", want: "FLOAT[1,1,2,2]{1, 2, 3, 4}"},
		{opset: 13, stored: "float[1,3,1,1] p = {1, 2, 3}", node: "y = DepthToSpace <blocksize = 2> (p)", want: "error: do not fill"},
		{opset: 13, stored: "float[1,1,2,2] p = {1, 2, 3, 4}", node: "y = SpaceToDepth <blocksize = 2> (p)", want: "FLOAT[1,4,1,1]{1, 2, 3, 4}"},
	})
}

func TestPad(t *testing.T) {
	stored := "float[3] v = {1, 2, 3}, float[2,2] m = {1, 2, 3, 4}, float five = {5}"
	runOperatorCases(t, []operatorCase{
		{opset: 13, stored: stored + ", int64[2] p = {1, 2}", node: "y = Pad (v, p, five)", want: "FLOAT[6]{5, 1, 2, 3, 5, 5}"},
		{opset: 13, stored: stored + ", int64[2] p = {-1, 2}", node: "y = Pad (v, p)", want: "FLOAT[4]{2, 3, 0, 0}"},
		{opset: 13, stored: stored + ", int64[2] p = {-4, 3}", node: "y = Pad (v, p, five)", want: "FLOAT[2]{5, 5}"},
		{opset: 13, stored: stored + ", int64[2] p = {-4, 0}", node: "y = Pad (v, p)", want: "error: leave nothing"},
		{opset: 13, stored: stored + ", int64[2] p = {2, 2}", node: `y = Pad <mode = "reflect"> (v, p)`, want: "FLOAT[7]{3, 2, 1, 2, 3, 2, 1}"},
		{opset: 13, stored: stored + ", int64[2] p = {3, 0}", node: `y = Pad <mode = "reflect"> (v, p)`, want: "FLOAT[6]{2, 3, 2, 1, 2, 3}", folds: ErrUndefined},
		{opset: 13, stored: stored + ", int64[2] p = {2, 1}", node: `y = Pad <mode = "edge"> (v, p)`, want: "FLOAT[6]{1, 1, 1, 2, 3, 3}"},
		{opset: 19, stored: stored + ", int64[2] p = {2, 4}", node: `y = Pad <mode = "wrap"> (v, p)`, want: "FLOAT[9]{2, 3, 1, 2, 3, 1, 2, 3, …}"},
		{opset: 13, stored: stored + ", int64[4] p = {1, 0, 0, 1}", node: `y = Pad (m, p, five)`, want: "FLOAT[3,3]{5, 5, 5, 1, 2, 5, 3, 4, …}"},
		{opset: 18, stored: stored + `, int64[2] p = {0, 1}, int64[1] x = {-1}`, node: `y = Pad (m, p, "", x)`, want: "FLOAT[2,3]{1, 2, 0, 3, 4, 0}"},
		{opset: 2, stored: stored, node: "y = Pad <pads = [1, 0], value = 9.0> (v)", want: "FLOAT[4]{9, 1, 2, 3}"},
		{opset: 1, stored: stored, node: `y = Pad <paddings = [1, 0], mode = "edge"> (v)`, want: "FLOAT[4]{1, 1, 2, 3}"},
		{opset: 13, stored: stored + ", float[0] none = {}, int64[2] p = {1, 0}", node: `y = Pad <mode = "edge"> (none, p)`, want: "error: nothing is left"},
		{opset: 13, stored: stored + ", int64[2] p = {0, 0}", node: `y = Pad <mode = "mirror"> (v, p)`, want: "error: mode"},
		{opset: 18, stored: stored + ", int64[1] s = {2}", node: "y = CenterCropPad (v, s)", want: "FLOAT[2]{1, 2}"},
		{opset: 18, stored: stored + ", int64[1] s = {6}", node: "y = CenterCropPad (v, s)", want: "FLOAT[6]{0, 1, 2, 3, 0, 0}"},
		{opset: 18, stored: stored + ", int64[1] s = {1}", node: "y = CenterCropPad <axes = [-1]> (m, s)", want: "FLOAT[2,1]{1, 3}"},
	})
}

func TestGatherAndScatter(t *testing.T) {
	stored := `float[2,3] a = {1, 2, 3, 4, 5, 6}, string[2] s = {"p", "q"}, float[3] v = {1, 2, 3}`
	runOperatorCases(t, []operatorCase{
		{opset: 13, stored: stored + ", int64[2,1] i = {-1, 0}", node: "y = Gather <axis = 1> (a, i)", want: "FLOAT[2,2,1]{3, 1, 6, 4}"},
		{opset: 13, stored: stored + ", int32 i = {1}", node: "y = Gather (s, i)", want: `STRING[]{"q"}`},
		{opset: 13, stored: stored + ", int64 i = {3}", node: "y = Gather (v, i)", want: "error: index 3 is outside 3"},
		{opset: 13, stored: stored + ", int64[2,2] i = {0, 2, 1, 1}", node: "y = GatherElements <axis = 1> (a, i)", want: "FLOAT[2,2]{1, 3, 5, 5}"},
		{opset: 13, stored: stored + ", int64[1,2] i = {1, 0}", node: "y = GatherElements (a, i)", want: "FLOAT[1,2]{4, 2}"},
		{opset: 13, stored: stored + ", int64[3,2] i = {0, 0, 0, 0, 0, 0}", node: "y = GatherElements <axis = 1> (a, i)", want: "error: reach beyond"},
		{opset: 13, stored: stored + ", int64[2,2] i = {0, 1, -1, -1}", node: "y = GatherND (a, i)", want: "FLOAT[2]{2, 6}"},
		{opset: 13, stored: stored + ", int64[1,1] i = {1}", node: "y = GatherND (a, i)", want: "FLOAT[1,3]{4, 5, 6}"},
		{opset: 12, stored: stored + ", int64[2,1] i = {2, 0}", node: "y = GatherND <batch_dims = 1> (a, i)", want: "FLOAT[2]{3, 4}"},
		{opset: 13, stored: stored + ", int64[1,3] i = {0, 0, 0}", node: "y = GatherND (a, i)", want: "error: indices of shape"},
		{opset: 11, stored: stored + ", bool[2] c = {0, 1}", node: "y = Compress <axis = 1> (a, c)", want: "FLOAT[2,1]{2, 5}"},
		{opset: 11, stored: stored + ", bool[5] c = {0, 1, 0, 0, 1}", node: "y = Compress (a, c)", want: "FLOAT[2]{2, 5}"},
		{opset: 11, stored: stored + ", bool[4] c = {0, 1, 0, 1}", node: "y = Compress (v, c)", want: "error: holds at 3 of 3"},

		{opset: 18, stored: stored + ", int64[1,2] i = {1, 0}, float[1,2] u = {10, 20}", node: "y = ScatterElements (a, i, u)", want: "FLOAT[2,3]{1, 20, 3, 10, 5, 6}"},
		{opset: 9, stored: stored + ", int64[2,1] i = {0, 2}, float[2,1] u = {10, 20}", node: "y = Scatter <axis = 1> (a, i, u)", want: "FLOAT[2,3]{10, 2, 3, 4, 5, 20}"},
		{opset: 18, stored: stored + ", int64[2] i = {0, 0}, float[2] u = {10, 20}", node: "y = ScatterElements (v, i, u)", want: "FLOAT[3]{20, 2, 3}", folds: ErrUndefined},
		{opset: 18, stored: stored + ", int64[2] i = {0, 0}, float[2] u = {10, 20}", node: `y = ScatterElements <reduction = "add"> (v, i, u)`, want: "FLOAT[3]{31, 2, 3}"},
		{opset: 18, stored: stored + ", int64[1,1] i = {1}, float[1,3] u = {9, 0, 9}", node: `y = ScatterND <reduction = "max"> (a, i, u)`, want: "FLOAT[2,3]{1, 2, 3, 9, 5, 9}"},
		{opset: 18, stored: stored + `, int64[1,1] i = {1}, string[1] u = {"z"}`, node: `y = ScatterND (s, i, u)`, want: `STRING[2]{"p", "z"}`},
		{opset: 18, stored: stored + `, int64[1,1] i = {1}, string[1] u = {"z"}`, node: `y = ScatterND <reduction = "add"> (s, i, u)`, want: "error: ScatterND of STRING"},
		{opset: 18, stored: stored + ", int64[1,1] i = {2}, float[1,3] u = {9, 0, 9}", node: "y = ScatterND (a, i, u)", want: "error: index 2 is outside 2"},
		{opset: 18, stored: stored + ", int64[1,1] i = {1}, float[1,2] u = {9, 0}", node: "y = ScatterND (a, i, u)", want: "error: updates have shape"},
		{opset: 18, stored: "float16[1] h = {2048}, int64[2] i = {0, 0}, float16[2] u = {1, 1}", node: `y = ScatterElements <reduction = "add"> (h, i, u)`, want: "FLOAT16[1]{2048}"},
	})
}

func TestGenerators(t *testing.T) {
	runOperatorCases(t, []operatorCase{
		{opset: 9, stored: "int64[2] s = {1, 2}", node: "y = ConstantOfShape (s)", want: "FLOAT[1,2]{0, 0}"},
		{opset: 9, stored: "int64[0] s = {}", node: "y = ConstantOfShape <value = bool[1] {1}> (s)", want: "BOOL[]{true}"},
		{opset: 9, stored: "int64[1] s = {-1}", node: "y = ConstantOfShape (s)", want: "error: "},
		{opset: 9, stored: "float[2,3] a = {1, 2, 3, 4, 5, 6}", node: "y = EyeLike <k = 1, dtype = 6> (a)", want: "INT32[2,3]{0, 1, 0, 0, 0, 1}"},
		{opset: 9, stored: "float[3,2] a = {1, 2, 3, 4, 5, 6}", node: "y = EyeLike <k = -1> (a)", want: "FLOAT[3,2]{0, 0, 1, 0, 0, 1}"},
		{opset: 9, stored: "float[2,2] a = {1, 2, 3, 4}", node: "y = EyeLike <k = -9> (a)", want: "FLOAT[2,2]{0, 0, 0, 0}"},
		{opset: 11, stored: "int64 a = {10}, int64 b = {4}, int64 c = {-2}", node: "y = Range (a, b, c)", want: "INT64[3]{10, 8, 6}"},
		{opset: 11, stored: "int64 a = {-9223372036854775808}, int64 b = {9223372036854775807}, int64 c = {9223372036854775807}", node: "y = Range (a, b, c)", want: "INT64[3]{-9223372036854775808, -1, 9223372036854775806}"},
		{opset: 11, stored: "int64 a = {1}, int64 b = {4}, int64 c = {0}", node: "y = Range (a, b, c)", want: "error: step"},
		{opset: 11, stored: "float a = {0}, float b = {0.5}, float c = {0.2}", node: "y = Range (a, b, c)", want: "FLOAT[3]{0, 0.2, 0.4}"},
		{opset: 11, stored: "float a = {0}, float b = {nan}, float c = {1}", node: "y = Range (a, b, c)", want: "error: no range"},
		{opset: 27, stored: "float16 a = {2046}, float16 b = {2050}, float16 c = {1}", node: "y = Range (a, b, c)", want: "FLOAT16[4]{2046, 2047, 2048, 2048}"},
		{opset: 11, stored: "int64[3] i = {0, -1, 9}, int64 d = {3}, float[2] v = {0, 1}", node: "y = OneHot (i, d, v)", want: "FLOAT[3,3]{1, 0, 0, 0, 0, 1, 0, 0, …}"},
		{opset: 11, stored: "float[2] i = {1.9, 0}, float d = {2}, int32[2] v = {5, 7}", node: "y = OneHot <axis = 0> (i, d, v)", want: "INT32[2,2]{5, 7, 7, 5}"},
		{opset: 9, stored: "int64[1] i = {-1}, int64 d = {2}, float[2] v = {0, 1}", node: "y = OneHot (i, d, v)", want: "FLOAT[1,2]{0, 0}"},
		{opset: 13, stored: "float[2,2] a = {0, 1, nan, 0}", node: "y = NonZero (a)", want: "INT64[2,2]{0, 1, 1, 0}"},
		{opset: 13, stored: "float a = {3}", node: "y = NonZero (a)", want: "INT64[0,1]{}", folds: ErrUndefined},
		{opset: 11, stored: "int64[5] a = {2, 1, 1, 3, 2}", node: "y = Unique (a)", want: "INT64[3]{1, 2, 3}"},
		{opset: 11, stored: "int64[5] a = {2, 1, 1, 3, 2}", node: "y, i, j, n = Unique <sorted = 0> (a)", want: "INT64[3]{2, 1, 3}"},
		{opset: 11, stored: "int64[5] a = {2, 1, 1, 3, 2}", node: `u, i, y, n = Unique <sorted = 0> (a)`, want: "INT64[5]{0, 1, 1, 2, 0}"},
		{opset: 11, stored: "float[4] a = {nan, 1, nan, -inf}", node: `u, i, j, y = Unique (a)`, want: "INT64[3]{1, 1, 2}", folds: ErrUndefined},
		{opset: 11, stored: `string[2,2] a = {"b", "a", "b", "a"}`, node: `y = Unique <axis = 0> (a)`, want: `STRING[1,2]{"b", "a"}`},
		{opset: 22, stored: "float[2] a = {1, 2}", node: "y = Dropout (a)", want: "FLOAT[2]{1, 2}"},
		{opset: 10, stored: "float[2] a = {1, 2}", node: "x, y = Dropout (a)", want: "BOOL[2]{true, true}", folds: ErrUndefined},
		{opset: 7, stored: "float[2] a = {1, 2}", node: "x, y = Dropout (a)", want: "FLOAT[2]{1, 1}", folds: ErrUndefined},
		{opset: 6, stored: "float[2] a = {1, 2}", node: "y = Dropout (a)", want: "error: random", folds: ErrUnsupported},
		{opset: 6, stored: "float[2] a = {1, 2}", node: "y = Dropout <is_test = 1> (a)", want: "FLOAT[2]{1, 2}"},
		{opset: 12, stored: "float[2] a = {1, 2}, float r = {0.5}, bool yes = {1}", node: "y = Dropout (a, r, yes)", want: "error: random", folds: ErrUnsupported},
	})
}

// TestSlicesAgainstAnIndexLoop holds Slice against the definition, index by index.
func TestSlicesAgainstAnIndexLoop(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		n := random.IntN(6)
		start, end := int64(random.IntN(16)-8), int64(random.IntN(16)-8)
		step := int64(random.IntN(9) - 4)
		if step == 0 {
			continue
		}
		data := make([]int64, n)
		for i := range data {
			data[i] = int64(i)
		}
		out, err := foldNode(t, 13, "Slice", []*tensor.Dense{vector(data...), vector(start), vector(end), vector[int64](0), vector(step)}, 1)
		if step < 0 && start < -int64(n) {
			if !errors.Is(err, ErrUndefined) {
				t.Fatalf("[%d:%d:%d] of %d: error %v", start, end, step, n, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, want := tensor.Data[int64](out[0].(*tensor.Dense)), pythonSlice(data, start, end, step); !slices.Equal(got, want) {
			t.Fatalf("[%d:%d:%d] of %d is %v, want %v", start, end, step, n, got, want)
		}
	}
}

// pythonSlice walks from start to end as a list of Python does.
func pythonSlice(data []int64, start, end, step int64) []int64 {
	n := int64(len(data))
	clamp := func(v, low, high int64) int64 {
		if v < 0 {
			v += n
		}
		return max(low, min(v, high))
	}
	out := []int64{}
	if step > 0 {
		for i := clamp(start, 0, n); i < clamp(end, 0, n); i += step {
			out = append(out, data[i])
		}
		return out
	}
	for i := clamp(start, -1, n-1); i > clamp(end, -1, n-1); i += step {
		if i >= 0 {
			out = append(out, data[i])
		}
	}
	return out
}

// TestWaysBack takes what pairs of operators must undo.
func TestWaysBack(t *testing.T) {
	a := make([]uint16, 2*3*4)
	for i := range a {
		a[i] = uint16(i)
	}
	d := tensor.Of(a, 2, 3, 4)
	for axis := range 3 {
		m := onnx.NewModel(10, 18)
		x := m.Graph.AddInput("x", onnx.TensorType(tensor.Uint16, 2, 3, 4))
		var names []string
		for i := range d.Shape()[axis] {
			names = append(names, fmt.Sprint("part", i))
		}
		parts := m.Graph.Add("Split", []*onnx.Value{x}, names, onnx.IntAttribute("axis", int64(axis)))
		joined := m.Graph.Add("Concat", parts.Outputs(), []string{"y"}, onnx.IntAttribute("axis", int64(axis)))
		m.Graph.AddOutput(joined.Output(0))
		p, err := Prepare(m, Options{})
		if err != nil {
			t.Fatal(err)
		}
		out, err := p.Run(t.Context(), map[string]Value{"x": d}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !tensor.EqualBits(out["y"].(*tensor.Dense), d) {
			t.Errorf("Concat of Split along axis %d is %v", axis, out["y"])
		}
	}
}
