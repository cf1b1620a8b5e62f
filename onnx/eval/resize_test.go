package eval

import "testing"

func TestResize(t *testing.T) {
	stored := "float[4] x = {1, 2, 3, 4}, float[1] twice = {2}, float[1] half = {0.5}, float[1] short = {0.6}, float[0] none = {}, int64[1] two = {2}, int64[1] seven = {7}, int64[1] three = {3}, int8[2] bytes = {-100, 101}"
	resize := func(opset int, attributes, inputs, want string) operatorCase {
		return operatorCase{opset: opset, stored: stored, node: "y = Resize <" + attributes + "> (" + inputs + ")", want: want}
	}
	runOperatorCases(t, []operatorCase{
		{opset: 7, stored: stored, node: "y = Upsample <scales = [2.0]> (x)", want: "FLOAT[8]{1, 1, 2, 2, 3, 3, 4, 4}"},
		{opset: 9, stored: stored, node: `y = Upsample <mode = "linear"> (x, twice)`, want: "FLOAT[8]{1, 1.5, 2, 2.5, 3, 3.5, 4, 4}"},
		{opset: 1, stored: "bool[1,1,1,2] x = {1, 0}", node: "y = Upsample <height_scale = 2.0, width_scale = 1.0> (x)", want: "BOOL[1,1,2,2]{true, false, true, false}"},
		{opset: 10, stored: stored, node: "y = Resize (x, short)", want: "FLOAT[2]{1, 3}"},

		resize(11, "", "x, none, half", "FLOAT[2]{1, 3}"), // at 0.5 and 2.5, rounded down
		resize(11, `nearest_mode = "round_prefer_ceil"`, "x, none, half", "FLOAT[2]{2, 4}"),
		resize(13, `mode = "linear"`, `x, "", half`, "FLOAT[2]{1.5, 3.5}"),
		resize(13, `mode = "linear", coordinate_transformation_mode = "align_corners"`, `x, "", "", seven`, "FLOAT[7]{1, 1.5, 2, 2.5, 3, 3.5, 4}"),
		resize(13, `mode = "linear", coordinate_transformation_mode = "asymmetric"`, `x, "", half`, "FLOAT[2]{1, 3}"),
		resize(11, `coordinate_transformation_mode = "tf_half_pixel_for_nn", nearest_mode = "floor"`, `x, none, half`, "FLOAT[2]{2, 4}"),
		resize(13, `mode = "cubic", cubic_coeff_a = -0.5`, `x, "", half`, "FLOAT[2]{1.4375, 3.5625}"),
		resize(18, `mode = "linear", antialias = 1`, `x, "", half`, "FLOAT[2]{1.625, 3.375}"),
		// A crop from the second element on, and one that leaves the array.
		{opset: 13, stored: stored + ", float[2] roi = {0.33333334, 1}", node: `y = Resize <mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize"> (x, roi, "", two)`, want: "FLOAT[2]{2, 4}"},
		{opset: 13, stored: stored + ", float[2] roi = {0, 2}", node: `y = Resize <coordinate_transformation_mode = "tf_crop_and_resize", extrapolation_value = 9.0> (x, roi, "", two)`, want: "FLOAT[2]{1, 9}"},
		// Integers round half to even.
		resize(13, `mode = "linear", coordinate_transformation_mode = "align_corners"`, `bytes, "", "", three`, "INT8[3]{-100, 0, 101}"),

		{opset: 18, stored: "float[2,4] x = {1, 2, 3, 4, 5, 6, 7, 8}, int64[2] sizes = {1, 4}", node: `y = Resize <axes = [0, 1], keep_aspect_ratio_policy = "not_larger"> (x, "", "", sizes)`, want: "FLOAT[1,2]{1, 3}"},
		{opset: 18, stored: "float[2,4] x = {1, 2, 3, 4, 5, 6, 7, 8}, int64[1] sizes = {2}", node: `y = Resize <axes = [-1]> (x, "", "", sizes)`, want: "FLOAT[2,2]{1, 3, 5, 7}"},

		resize(13, "", "x", "error: exactly one"),
		resize(13, "", `x, "", twice, two`, "error: exactly one"),
		resize(13, `mode = "area"`, `x, "", twice`, "error: not known"),
		{opset: 13, stored: stored + ", float[1] s = {-1}", node: `y = Resize (x, "", s)`, want: "error: cannot be scaled"},
		{opset: 13, stored: stored + ", float[1] s = {1e30}", node: `y = Resize (x, "", s)`, want: "error: cannot be scaled"},
		{opset: 13, stored: `string[2] x = {"a", "b"}, float[1] s = {2}`, node: `y = Resize (x, "", s)`, want: `STRING[4]{"a", "a", "b", "b"}`},
	})
}

func TestGrids(t *testing.T) {
	stored := "float[1,1,1,2] x = {10, 20}, float[1,1,3,2] grid = {-0.5, 0, 0, 0, 3, 0}, int64[4] size = {1, 1, 1, 2}, float[1,2,3] same = {1, 0, 0, 0, 1, 0}"
	runOperatorCases(t, []operatorCase{
		{opset: 16, stored: stored, node: "y = GridSample (x, grid)", want: "FLOAT[1,1,1,3]{10, 15, 0}"},
		{opset: 16, stored: stored, node: `y = GridSample <padding_mode = "border"> (x, grid)`, want: "FLOAT[1,1,1,3]{10, 15, 20}"},
		{opset: 16, stored: stored, node: `y = GridSample <padding_mode = "reflection"> (x, grid)`, want: "FLOAT[1,1,1,3]{10, 15, 10}"},
		{opset: 20, stored: stored, node: `y = GridSample <mode = "nearest", align_corners = 1> (x, grid)`, want: "FLOAT[1,1,1,3]{10, 10, 0}"},
		{opset: 20, stored: stored, node: `y = GridSample <mode = "cubic", padding_mode = "border"> (x, grid)`, want: "FLOAT[1,1,1,3]{10, 15, 20}"},
		{opset: 16, stored: stored, node: "y = GridSample (x, same)", want: "error: a grid"},
		{opset: 16, stored: stored + ", float[1,1,1,2] odd = {nan, 1e30}", node: "y = GridSample (x, odd)", want: "FLOAT[1,1,1,1]{0}"},

		{opset: 20, stored: stored, node: "y = AffineGrid (same, size)", want: "FLOAT[1,1,2,2]{-0.5, 0, 0.5, 0}"},
		{opset: 20, stored: stored, node: "y = AffineGrid <align_corners = 1> (same, size)", want: "FLOAT[1,1,2,2]{-1, -1, 1, -1}", folds: ErrUndefined},
	})
}
