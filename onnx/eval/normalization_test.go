package eval

import "testing"

func TestNormalization(t *testing.T) {
	stored := "float[1,2,2] x = {1, 3, 10, 30}, float[2] one = {1, 1}, float[2] zero = {0, 0}, float[2] s = {2, 4}, float[2] b = {100, 200}, float[2] v = {4, 16}"
	runOperatorCases(t, []operatorCase{
		{opset: 15, stored: stored, node: "y = BatchNormalization <epsilon = 0.0> (x, s, b, one, v)", want: "FLOAT[1,2,2]{100, 102, 209, 229}"},
		{opset: 6, stored: stored, node: "y = BatchNormalization <epsilon = 0.0, is_test = 1> (x, s, b, one, v)", want: "FLOAT[1,2,2]{100, 102, 209, 229}"},
		{opset: 15, stored: stored, node: "y, m, n = BatchNormalization <epsilon = 0.0, training_mode = 1> (x, s, b, one, v)", want: "FLOAT[1,2,2]{98, 102, 196, 204}"},
		{opset: 15, stored: stored, node: "z, y, n = BatchNormalization <momentum = 0.5, training_mode = 1> (x, s, b, one, v)", want: "FLOAT[2]{1.5, 10.5}"},
		{opset: 15, stored: stored, node: "z, n, y = BatchNormalization <momentum = 0.5, training_mode = 1> (x, s, b, one, v)", want: "FLOAT[2]{2.5, 58}"},
		{opset: 7, stored: stored, node: "z, n, m, k, y = BatchNormalization (x, s, b, one, v)", want: "FLOAT[2]{1, 100}"},
		{opset: 7, stored: "float[2,2] x = {1, 2, 3, 4}, float[2] one = {1, 1}, float[2] m = {1, 2}", node: "y = BatchNormalization <epsilon = 0.0, spatial = 0> (x, one, one, m, one)", want: "FLOAT[2,2]{1, 1, 3, 3}"},
		{opset: 15, stored: stored + ", float[3] three = {1, 2, 3}", node: "y = BatchNormalization (x, three, b, one, v)", want: "error: not 2 elements"},

		{opset: 6, stored: stored, node: "y = InstanceNormalization <epsilon = 0.0> (x, s, b)", want: "FLOAT[1,2,2]{98, 102, 196, 204}"},
		{opset: 17, stored: stored, node: "y = LayerNormalization <epsilon = 0.0> (x, one, zero)", want: "FLOAT[1,2,2]{-1, 1, -1, 1}"},
		{opset: 17, stored: stored, node: "z, y = LayerNormalization (x, one)", want: "FLOAT[1,2,1]{2, 20}"},
		{opset: 17, stored: stored, node: "z, m, y = LayerNormalization <epsilon = 0.0> (x, one)", want: "FLOAT[1,2,1]{1, 0.1}"},
		{opset: 17, stored: "float[2,2] x = {1, 3, 1, 3}, float[2,1] s = {1, 10}", node: "y = LayerNormalization <epsilon = 0.0> (x, s)", want: "FLOAT[2,2]{-1, 1, -10, 10}"},
		{opset: 17, stored: "float[2] x = {100000, 100002}, float one = {1}", node: "y = LayerNormalization <epsilon = 0.0> (x, one)", want: "FLOAT[2]{-1, 1}"},
		{opset: 23, stored: "float[2] x = {1, 7}, float[1] s = {5}", node: "y = RMSNormalization <epsilon = 0.0> (x, s)", want: "FLOAT[2]{1, 7}"},

		// Scales are those of a group in version 18, of a channel from 21 on.
		{opset: 18, stored: "float[1,4] x = {1, 3, 10, 30}, float[2] s = {1, 2}, float[2] b = {0, 5}", node: "y = GroupNormalization <num_groups = 2, epsilon = 0.0> (x, s, b)", want: "FLOAT[1,4]{-1, 1, 3, 7}"},
		{opset: 21, stored: "float[1,4] x = {1, 3, 10, 30}, float[4] s = {1, 2, 3, 4}, float[4] b = {0, 0, 0, 5}", node: "y = GroupNormalization <num_groups = 2, epsilon = 0.0> (x, s, b)", want: "FLOAT[1,4]{-1, 2, -3, 9}"},
		{opset: 21, stored: "float[1,4] x = {1, 3, 10, 30}, float[4] s = {1, 2, 3, 4}", node: "y = GroupNormalization <num_groups = 3> (x, s, s)", want: "error: 3 groups"},

		{opset: 1, stored: "float[2,2] x = {3, -4, 0, 0}", node: "y = LpNormalization (x)", want: "FLOAT[2,2]{0.6, -0.8, 0, 0}"},
		{opset: 1, stored: "float[2,2] x = {3, -4, 1, 12}", node: "y = LpNormalization <axis = 0, p = 1> (x)", want: "FLOAT[2,2]{0.75, -0.25, 0.25, 0.75}"},
		{opset: 13, stored: "float[2,2] x = {1, 10, 3, 30}", node: "y = MeanVarianceNormalization <axes = [0]> (x)", want: "FLOAT[2,2]{-1, -1, 1, 1}"},
	})
}

func TestSoftmax(t *testing.T) {
	stored := "float[2,2] x = {0, 0, 0, 1000}, float[2,1,2] deep = {0, 0, 0, 0}, float[2] masked = {-inf, -inf}, float[3] v = {1, 3, 3}"
	runOperatorCases(t, []operatorCase{
		{opset: 13, stored: stored, node: "y = Softmax (x)", want: "FLOAT[2,2]{0.5, 0.5, 0, 1}"},
		{opset: 13, stored: stored, node: "y = Softmax <axis = 0> (x)", want: "FLOAT[2,2]{0.5, 0, 0.5, 1}"},
		{opset: 11, stored: stored, node: "y = Softmax (x)", want: "FLOAT[2,2]{0.5, 0.5, 0, 1}"},
		// Until version 12 a line is all that follows the axis.
		{opset: 11, stored: stored, node: "y = Softmax <axis = 0> (x)", want: "FLOAT[2,2]{0, 0, 0, 1}"},
		{opset: 11, stored: stored, node: "y = Softmax <axis = 0> (deep)", want: "FLOAT[2,1,2]{0.25, 0.25, 0.25, 0.25}"},
		{opset: 13, stored: stored, node: "y = Softmax <axis = 0> (deep)", want: "FLOAT[2,1,2]{0.5, 0.5, 0.5, 0.5}"},
		{opset: 13, stored: stored, node: "y = Softmax (masked)", want: "FLOAT[2]{NaN, NaN}"},
		{opset: 13, stored: stored, node: "y = LogSoftmax (x)", want: "FLOAT[2,2]{-0.6931472, -0.6931472, -1000, 0}"},
		{opset: 13, stored: stored, node: "y = Hardmax (v)", want: "FLOAT[3]{0, 1, 0}"},
		{opset: 13, stored: "float[0,3] none = {}", node: "y = Softmax (none)", want: "FLOAT[0,3]{}"},
		{opset: 13, stored: "float[2,0] none = {}", node: "y = Softmax (none)", want: "FLOAT[2,0]{}"},
		{opset: 13, stored: stored, node: "y = Softmax <axis = 2> (x)", want: "error: outside rank"},
	})
}
