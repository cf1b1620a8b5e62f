package eval

import "testing"

func TestPools(t *testing.T) {
	stored := "float[1,1,5] x = {1, -2, 3, -4, 5}, float[1,1,2,2] square = {1, 2, 3, 4}, uint8[1,1,3] bytes = {3, 255, 0}"
	runOperatorCases(t, []operatorCase{
		{opset: 12, stored: stored, node: "y = MaxPool <kernel_shape = [2]> (x)", want: "FLOAT[1,1,4]{1, 3, 3, 5}"},
		{opset: 12, stored: stored, node: "y = MaxPool <kernel_shape = [2], dilations = [2]> (x)", want: "FLOAT[1,1,3]{3, -2, 5}"},
		{opset: 12, stored: stored, node: "y = MaxPool <kernel_shape = [2]> (bytes)", want: "UINT8[1,1,2]{255, 255}"},
		{opset: 12, stored: stored, node: "y = MaxPool <kernel_shape = [3], strides = [3], ceil_mode = 1> (x)", want: "FLOAT[1,1,2]{3, 5}"},
		// With padding at both ends the last window would start behind the input: it is left out.
		{opset: 12, stored: "float[1,1,2] x = {1, 2}", node: "y = MaxPool <kernel_shape = [2], strides = [3], pads = [1, 1], ceil_mode = 1> (x)", want: "FLOAT[1,1,1]{1}"},
		{opset: 12, stored: stored, node: "v, y = MaxPool <kernel_shape = [1, 2], pads = [0, 1, 0, 0]> (square)", want: "INT64[1,1,2,2]{0, 1, 2, 3}"},
		{opset: 12, stored: stored, node: "v, y = MaxPool <kernel_shape = [1, 2], storage_order = 1> (square)", want: "INT64[1,1,2,1]{2, 3}"},
		{opset: 12, stored: "float[1,1,3] x = {7, 7, nan}", node: "v, y = MaxPool <kernel_shape = [2]> (x)", want: "INT64[1,1,2]{0, 2}"},
		{opset: 12, stored: stored, node: "y = MaxPool (x)", want: "error: kernel"},
		{opset: 12, stored: stored, node: "y = MaxPool <kernel_shape = [6]> (x)", want: "error: runtimes disagree", folds: ErrUnsupported},
		{opset: 12, stored: stored, node: "y = MaxPool <kernel_shape = [7]> (x)", want: "error: does not fit"},

		{opset: 19, stored: stored, node: "y = AveragePool <kernel_shape = [2], strides = [2]> (x)", want: "FLOAT[1,1,2]{-0.5, -0.5}"},
		{opset: 7, stored: stored, node: "y = AveragePool <kernel_shape = [2], strides = [2], pads = [1, 0]> (x)", want: "FLOAT[1,1,3]{1, 0.5, 0.5}"},
		{opset: 7, stored: stored, node: "y = AveragePool <kernel_shape = [2], strides = [2], pads = [1, 0], count_include_pad = 1> (x)", want: "FLOAT[1,1,3]{0.5, 0.5, 0.5}"},
		// What a window rounded up sees beyond the padding is in no count.
		{opset: 19, stored: stored, node: "y = AveragePool <kernel_shape = [3], strides = [4], ceil_mode = 1, count_include_pad = 1> (x)", want: "FLOAT[1,1,2]{0.6666667, 5}"},
		{opset: 19, stored: stored, node: "y = AveragePool <kernel_shape = [2], dilations = [3]> (x)", want: "FLOAT[1,1,2]{-1.5, 1.5}"},

		{opset: 18, stored: stored, node: "y = LpPool <kernel_shape = [2], strides = [2], p = 1> (x)", want: "FLOAT[1,1,2]{3, 7}"},
		{opset: 2, stored: "float[1,1,2] x = {3, -4}", node: "y = LpPool <kernel_shape = [2]> (x)", want: "FLOAT[1,1,1]{5}"},
		{opset: 1, stored: "float[1,1,2] x = {3, -4}", node: "y = LpPool <kernel_shape = [2], p = 1.0> (x)", want: "FLOAT[1,1,1]{7}"},

		{opset: 1, stored: stored, node: "y = GlobalAveragePool (square)", want: "FLOAT[1,1,1,1]{2.5}"},
		{opset: 1, stored: stored, node: "y = GlobalMaxPool (x)", want: "FLOAT[1,1,1]{5}"},
		{opset: 2, stored: stored, node: "y = GlobalLpPool <p = 1> (x)", want: "FLOAT[1,1,1]{15}"},
	})
}

func TestRegions(t *testing.T) {
	stored := "float[1,1,4,4] x = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, int64[1] first = {0}, int64[1] second = {1}"
	runOperatorCases(t, []operatorCase{
		{opset: 1, stored: stored + ", float[2,5] rois = {0, 0, 0, 3, 3, 0, 2, 2, 9, 9}", node: "y = MaxRoiPool <pooled_shape = [1, 2]> (x, rois)", want: "FLOAT[2,1,1,2]{13, 15, 15, 0}"},
		{opset: 1, stored: stored + ", float[1,5] rois = {1, 0, 0, 3, 3}", node: "y = MaxRoiPool <pooled_shape = [1, 2]> (x, rois)", want: "error: on image 1"},

		// Half a pixel apart: whole pixels from version 16 on, places between them before.
		{opset: 16, stored: stored + ", float[1,4] rois = {1, 1, 2, 2}", node: "y = RoiAlign <sampling_ratio = 1> (x, rois, first)", want: "FLOAT[1,1,1,1]{5}"},
		{opset: 10, stored: stored + ", float[1,4] rois = {1, 1, 2, 2}", node: "y = RoiAlign <sampling_ratio = 1> (x, rois, first)", want: "FLOAT[1,1,1,1]{7.5}"},
		{opset: 16, stored: stored + ", float[1,4] rois = {0, 0, 4, 4}", node: "y = RoiAlign <output_width = 2> (x, rois, first)", want: "FLOAT[1,1,1,2]{6.5, 8.5}"},
		{opset: 16, stored: stored + ", float[1,4] rois = {0, 0, 4, 4}", node: `y = RoiAlign <mode = "max"> (x, rois, first)`, want: "FLOAT[1,1,1,1]{15}"},
		{opset: 16, stored: stored + ", float[1,4] rois = {-9e9, -9e9, 9e9, 9e9}", node: "y = RoiAlign (x, rois, first)", want: "FLOAT[1,1,1,1]{0}"},
		{opset: 16, stored: stored + ", float[1,4] rois = {0, 0, 4, 4}", node: "y = RoiAlign (x, rois, second)", want: "error: on image 1"},

		{opset: 11, stored: "float[1,1,1,2] x = {5, 6}, int64[1,1,1,2] at = {1, 6}", node: "y = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (x, at)", want: "FLOAT[1,1,2,4]{0, 5, 0, 0, 0, 0, 6, 0}"},
		{opset: 11, stored: "float[1,1,1,2] x = {5, 6}, int64[1,1,1,2] at = {1, 3}, int64[4] size = {1, 1, 2, 3}", node: "y = MaxUnpool <kernel_shape = [2, 1]> (x, at, size)",
			want: "FLOAT[1,1,2,3]{0, 5, 0, 0, 6, 0}"},
		{opset: 11, stored: "float[1,1,1,2] x = {5, 6}, int64[1,1,1,2] at = {1, 8}", node: "y = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (x, at)", want: "error: position 8"},

		{opset: 13, stored: "float[1,3,1] x = {1, 2, 3}", node: "y = LRN <size = 2, alpha = 2.0, beta = 1.0, bias = 0.0> (x)", want: "FLOAT[1,3,1]{0.2, 0.15384616, 0.33333334}"},
		{opset: 13, stored: "float[1,3,1] x = {1, 2, 3}", node: "y = LRN <size = 0> (x)", want: "error: size 0"},
	})
}
