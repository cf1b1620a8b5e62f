package eval

import "testing"

// With weights of 1 and activations that let everything through, states are sums.
func TestRecurrent(t *testing.T) {
	stored := "float[3,1,1] x = {1, 2, 3}, float[1,1,1] w = {1}, float[2,1,1] both = {1, 1}, float[1,1,1] h = {10}, int32[1] two = {2}, float[1,2] b = {100, 1000}, float[1,3,1] first = {1, 2, 3}"
	relu := `activations = ["Relu"]`
	runOperatorCases(t, []operatorCase{
		{opset: 7, stored: stored, node: "y = RNN <" + relu + "> (x, w, w)", want: "FLOAT[3,1,1,1]{1, 3, 6}"},
		{opset: 7, stored: stored, node: "z, y = RNN <" + relu + "> (x, w, w)", want: "FLOAT[1,1,1]{6}"},
		{opset: 7, stored: stored, node: `y = RNN <` + relu + `> (x, w, w, b, "", h)`, want: "FLOAT[3,1,1,1]{1111, 2213, 3316}"},
		{opset: 7, stored: stored, node: `y = RNN <` + relu + `, direction = "reverse"> (x, w, w)`, want: "FLOAT[3,1,1,1]{6, 5, 3}"},
		{opset: 7, stored: stored, node: `y = RNN <activations = ["Relu", "relu"], direction = "bidirectional"> (x, both, both)`, want: "FLOAT[3,2,1,1]{1, 6, 3, 5, 6, 3}"},
		// A sequence that ends early: backwards from its own end, zeros behind it.
		{opset: 7, stored: stored, node: `y = RNN <` + relu + `, direction = "reverse"> (x, w, w, "", two)`, want: "FLOAT[3,1,1,1]{3, 2, 0}"},
		{opset: 7, stored: stored, node: `z, y = RNN <` + relu + `> (x, w, w, "", two)`, want: "FLOAT[1,1,1]{3}"},
		{opset: 14, stored: stored, node: "y = RNN <" + relu + ", layout = 1> (first, w, w)", want: "FLOAT[1,3,1,1]{1, 3, 6}"},
		{opset: 7, stored: stored, node: `y = RNN <activations = ["Affine"], activation_alpha = [2.0], activation_beta = [1.0]> (x, w, w)`, want: "FLOAT[3,1,1,1]{3, 11, 29}"},
		{opset: 7, stored: stored, node: "y = RNN <" + relu + ", clip = 2.5> (x, w, w)", want: "FLOAT[3,1,1,1]{1, 2.5, 2.5}"},
		{opset: 7, stored: stored, node: `y = RNN <activations = ["Relux"]> (x, w, w)`, want: "error: not known"},
		{opset: 7, stored: stored, node: `y = RNN <direction = "bidirectional"> (x, w, w)`, want: "error: 1 directions"},
		{opset: 7, stored: stored, node: "y = RNN <hidden_size = 2> (x, w, w)", want: "error: hidden_size"},
		{opset: 7, stored: stored, node: "y = RNN (x, w, both)", want: "error: input 2"},

		// z = 0.5 and r = 1 or 2 at every step, from biases alone; h' = x + 2·r·h + 10, or x + r·(2·h + 10).
		{opset: 7, stored: stored + ", float[1,3,1] gw = {0, 0, 1}, float[1,3,1] gr = {0, 0, 2}, float[1,6] gb = {0.5, 1, 0, 0, 0, 10}",
			node: `y = GRU <activations = ["Relu", "Relu"]> (x, gw, gr, gb)`, want: "FLOAT[3,1,1,1]{5.5, 14.25, 27.875}"},
		{opset: 7, stored: stored + ", float[1,3,1] gw = {0, 0, 1}, float[1,3,1] gr = {0, 0, 2}, float[1,6] gb = {0.5, 2, 0, 0, 0, 10}",
			node: `y = GRU <activations = ["Relu", "Relu"], linear_before_reset = 1> (x, gw, gr, gb)`, want: "FLOAT[3,1,1,1]{10.5, 37.25, 104.625}"},

		// Gates i, o, f = 1, 2, 3 from biases; c = 3·c + x, h = 2·c.
		{opset: 7, stored: stored + ", float[1,4,1] lw = {0, 0, 0, 1}, float[1,4,1] lr = {0, 0, 0, 0}, float[1,8] lb = {1, 2, 3, 0, 0, 0, 0, 0}",
			node: `y = LSTM <activations = ["Relu", "Relu", "Relu"]> (x, lw, lr, lb)`, want: "FLOAT[3,1,1,1]{2, 10, 36}"},
		{opset: 7, stored: stored + ", float[1,4,1] lw = {0, 0, 0, 1}, float[1,4,1] lr = {0, 0, 0, 0}, float[1,8] lb = {1, 2, 3, 0, 0, 0, 0, 0}, float[1,1,1] c0 = {1}",
			node: `z, h1, y = LSTM <activations = ["Relu", "Relu", "Relu"]> (x, lw, lr, lb, two, "", c0)`, want: "FLOAT[1,1,1]{14}"},
		// Peepholes i, o, f of 0, 1, 0: the output gate is 2 + c. With coupled gates f = 1 - i.
		{opset: 7, stored: stored + ", float[1,4,1] lw = {0, 0, 0, 1}, float[1,4,1] lr = {0, 0, 0, 0}, float[1,8] lb = {1, 2, 3, 0, 0, 0, 0, 0}, float[1,3] p = {0, 1, 0}",
			node: `y = LSTM <activations = ["Relu", "Relu", "Relu"]> (x, lw, lr, lb, "", "", "", p)`, want: "FLOAT[3,1,1,1]{3, 35, 360}"},
		{opset: 7, stored: stored + ", float[1,4,1] lw = {0, 0, 0, 1}, float[1,4,1] lr = {0, 0, 0, 0}, float[1,8] lb = {0.5, 2, 3, 0, 0, 0, 0, 0}",
			node: `y = LSTM <activations = ["Relu", "Relu", "Relu"], input_forget = 1> (x, lw, lr, lb)`, want: "FLOAT[3,1,1,1]{1, 2.5, 4.25}"},
	})
}
