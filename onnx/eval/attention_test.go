package eval

import "testing"

func TestAttention(t *testing.T) {
	// One head of one element: scores are products, values tell the keys apart.
	stored := "float[1,1,2,1] q = {0, 0}, float[1,1,2,1] k = {5, 7}, float[1,1,2,1] v = {10, 30}, float[1,1,1,1] past = {0}, float[1,1,1,1] pastv = {60}, " +
		"bool[2,2] mask = {1, 0, 0, 0}, float[2,1] short = {0, 0}, int64[1] one = {1}"
	runOperatorCases(t, []operatorCase{
		{opset: 23, stored: stored, node: "y = Attention (q, k, v)", want: "FLOAT[1,1,2,1]{20, 20}"},
		{opset: 23, stored: stored, node: "y = Attention <is_causal = 1> (q, k, v)", want: "FLOAT[1,1,2,1]{10, 20}"},
		{opset: 23, stored: stored, node: "y = Attention (q, k, v, mask)", want: "FLOAT[1,1,2,1]{10, 0}"},
		{opset: 23, stored: stored, node: "y = Attention (q, k, v, short)", want: "FLOAT[1,1,2,1]{10, 10}"},
		{opset: 23, stored: stored + ", float[1,1,2,1] u = {30, 90}", node: `y = Attention <is_causal = 1> (q, k, u, "", past, pastv)`, want: "FLOAT[1,1,2,1]{45, 60}"},
		{opset: 23, stored: stored, node: `z, y = Attention (q, k, v, "", past, pastv)`, want: "FLOAT[1,1,3,1]{0, 5, 7}"},
		{opset: 23, stored: stored, node: `y = Attention (q, k, v, "", past)`, want: "error: only one"},
		{opset: 24, stored: stored, node: `y = Attention (q, k, v, "", "", "", one)`, want: "FLOAT[1,1,2,1]{10, 10}"},
		// More queries than keys: the first has none, and gives zeros.
		{opset: 24, stored: stored, node: `y = Attention <is_causal = 1> (q, k, v, "", "", "", one)`, want: "FLOAT[1,1,2,1]{0, 10}"},
		{opset: 25, stored: stored, node: "y = Attention <left_window_size = 0> (q, k, v)", want: "FLOAT[1,1,2,1]{20, 30}"},
		{opset: 25, stored: stored, node: "y = Attention <right_window_size = 0, left_window_size = 9> (q, k, v)", want: "FLOAT[1,1,2,1]{10, 20}"},

		// Two query heads share a key and value head; heads packed into the last axis.
		{opset: 23, stored: "float[1,1,2] q = {1, 2}, float[1,2,1] k = {3, 3}, float[1,2,1] v = {10, 30}", node: "y = Attention <q_num_heads = 2, kv_num_heads = 1> (q, k, v)", want: "FLOAT[1,1,2]{20, 20}"},
		{opset: 23, stored: "float[1,1,2] q = {1, 2}, float[1,2,1] k = {3, 3}, float[1,2,1] v = {10, 30}",
			node: "o, pk, pv, y = Attention <q_num_heads = 2, kv_num_heads = 1, scale = 0.5> (q, k, v)", want: "FLOAT[1,2,1,2]{1.5, 1.5, 3, 3}"},
		{opset: 23, stored: "float[1,1,2] q = {1, 2}, float[1,2,1] k = {3, 3}, float[1,2,1] v = {10, 30}",
			node: "o, pk, pv, y = Attention <q_num_heads = 2, kv_num_heads = 1, qk_matmul_output_mode = 3> (q, k, v)", want: "FLOAT[1,2,1,2]{0.5, 0.5, 0.5, 0.5}"},
		{opset: 23, stored: "float[1,1,2] q = {1, 2}, float[1,2,1] k = {3, 3}, float[1,2,1] v = {10, 30}", node: "y = Attention (q, k, v)", want: "error: 0 heads"},
		{opset: 23, stored: stored + ", float[1,1,2,2] wide = {1, 2, 3, 4}", node: "y = Attention (q, wide, v)", want: "error: do not fit"},
	})
}

func TestAttentionHelpers(t *testing.T) {
	stored := "float[1,1,1,4] x = {1, 2, 3, 4}, float[2,2] cosines = {1, 1, 0, 0}, float[2,2] sines = {0, 0, 1, 1}, int64[1,1] at = {1}, int64[1,1] far = {2}"
	runOperatorCases(t, []operatorCase{
		{opset: 23, stored: stored, node: "y = RotaryEmbedding (x, cosines, sines, at)", want: "FLOAT[1,1,1,4]{-3, -4, 1, 2}"},
		{opset: 23, stored: stored, node: "y = RotaryEmbedding <interleaved = 1> (x, cosines, sines, at)", want: "FLOAT[1,1,1,4]{-2, 1, -4, 3}"},
		{opset: 23, stored: stored, node: "y = RotaryEmbedding (x, cosines, sines, far)", want: "error: position 2"},
		{opset: 23, stored: "float[1,1,1,4] x = {1, 2, 3, 4}, float[1,1,1] c = {0}, float[1,1,1] s = {1}", node: "y = RotaryEmbedding <rotary_embedding_dim = 2> (x, c, s)", want: "FLOAT[1,1,1,4]{-2, 1, 3, 4}"},

		{opset: 24, stored: "int8[1,3,1] cache = {1, 2, 3}, int8[1,2,1] new = {8, 9}, int64[1] at = {1}", node: "y = TensorScatter (cache, new, at)", want: "INT8[1,3,1]{1, 8, 9}"},
		{opset: 24, stored: "int8[1,3,1] cache = {1, 2, 3}, int8[1,2,1] new = {8, 9}, int64[1] at = {5}", node: `y = TensorScatter <mode = "circular"> (cache, new, at)`, want: "INT8[1,3,1]{9, 2, 8}"},
		{opset: 24, stored: "int8[1,3,1] cache = {1, 2, 3}, int8[1,2,1] new = {8, 9}, int64[1] at = {2}", node: "y = TensorScatter (cache, new, at)", want: "error: write index 2"},

		// The state adds up key times value; the delta rule first takes off what is there.
		{opset: 27, stored: "float[1,2,1] q = {1, 1}, float[1,2,1] k = {1, 2}, float[1,2,1] v = {3, 5}",
			node: `y, state = LinearAttention <q_num_heads = 1, kv_num_heads = 1, update_rule = "linear"> (q, k, v)`, want: "FLOAT[1,2,1]{3, 13}"},
		{opset: 27, stored: "float[1,2,1] q = {1, 1}, float[1,2,1] k = {1, 1}, float[1,2,1] v = {3, 5}, float[1,2,1] beta = {1, 1}",
			node: `y, state = LinearAttention <q_num_heads = 1, kv_num_heads = 1, update_rule = "delta"> (q, k, v, "", "", beta)`, want: "FLOAT[1,2,1]{3, 5}"},
		{opset: 27, stored: "float[1,2,1] q = {1, 1}", node: `y, state = LinearAttention <q_num_heads = 1, kv_num_heads = 1> (q, q, q)`, want: "error: update_rule"},
	})
}
