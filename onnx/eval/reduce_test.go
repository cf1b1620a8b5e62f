package eval

import (
	"math/rand/v2"
	"testing"

	"github.com/npuctl/npuctl/onnx/tensor"
)

func TestReductions(t *testing.T) {
	stored := "float[2,3] a = {1, 2, 3, 4, 5, 6}, float[0,2] none = {}, int8[3] i = {100, 100, -3}, int64[1] first = {0}, int64[1] last = {-1}, int64[0] noaxes = {}"
	runOperatorCases(t, []operatorCase{
		{opset: 13, stored: stored, node: "y = ReduceSum (a, first)", want: "FLOAT[1,3]{5, 7, 9}"},
		{opset: 13, stored: stored, node: "y = ReduceSum <keepdims = 0> (a, last)", want: "FLOAT[2]{6, 15}"},
		{opset: 13, stored: stored, node: "y = ReduceSum <keepdims = 0> (a)", want: "FLOAT[]{21}"},
		{opset: 13, stored: stored, node: "y = ReduceSum (a, noaxes)", want: "FLOAT[1,1]{21}"},
		{opset: 13, stored: stored, node: "y = ReduceSum <noop_with_empty_axes = 1> (a, noaxes)", want: "FLOAT[2,3]{1, 2, 3, 4, 5, 6}"},
		{opset: 18, stored: stored, node: "y = ReduceSumSquare <noop_with_empty_axes = 1> (a)", want: "FLOAT[2,3]{1, 4, 9, 16, 25, 36}"},
		{opset: 11, stored: stored, node: "y = ReduceSum <axes = [1], keepdims = 0> (a)", want: "FLOAT[2]{6, 15}"},
		{opset: 13, stored: stored, node: "y = ReduceMax <axes = [1], keepdims = 0> (a)", want: "FLOAT[2]{3, 6}"},
		{opset: 18, stored: stored, node: "y = ReduceMax <keepdims = 0> (a, first)", want: "FLOAT[3]{4, 5, 6}"},
		{opset: 13, stored: stored, node: "y = ReduceMax <axes = [0, 0]> (a)", want: "error: named twice"},

		{opset: 13, stored: stored, node: "y = ReduceSum <keepdims = 0> (none, first)", want: "FLOAT[2]{0, 0}"},
		{opset: 18, stored: stored, node: "y = ReduceProd <keepdims = 0> (none, first)", want: "FLOAT[2]{1, 1}"},
		{opset: 20, stored: stored, node: "y = ReduceMax <keepdims = 0> (none, first)", want: "FLOAT[2]{-Inf, -Inf}"},
		{opset: 18, stored: stored, node: "y = ReduceMin <keepdims = 0> (none, first)", want: "FLOAT[2]{+Inf, +Inf}", folds: ErrUndefined},
		{opset: 18, stored: stored, node: "y = ReduceMean <keepdims = 0> (none, first)", want: "FLOAT[2]{NaN, NaN}", folds: ErrUndefined},
		{opset: 18, stored: stored, node: "y = ReduceLogSumExp <keepdims = 0> (none, first)", want: "FLOAT[2]{-Inf, -Inf}"},
		{opset: 18, stored: stored, node: "y = ReduceSum <keepdims = 0> (none, last)", want: "FLOAT[0]{}"},

		{opset: 18, stored: stored, node: "y = ReduceSum <keepdims = 0> (i)", want: "INT8[]{-59}"},
		{opset: 18, stored: stored, node: "y = ReduceMean <keepdims = 0> (i)", want: "INT8[]{65}"},
		{opset: 18, stored: "int32[2] i = {-3, -4}", node: "y = ReduceMean <keepdims = 0> (i)", want: "INT32[]{-3}"},
		{opset: 18, stored: "int32[2] i = {-3, -4}", node: "y = ReduceL2 <keepdims = 0> (i)", want: "INT32[]{5}"},
		{opset: 18, stored: "int32[2] i = {-3, -4}", node: "y = ReduceL1 <keepdims = 0> (i)", want: "INT32[]{7}"},
		{opset: 20, stored: "int8[0] i = {}", node: "y = ReduceMin <keepdims = 0> (i)", want: "INT8[]{127}"},
		{opset: 20, stored: "bool[2,2] b = {1, 0, 1, 1}, int64[1] x = {1}", node: "y = ReduceMin <keepdims = 0> (b, x)", want: "BOOL[2]{false, true}"},
		{opset: 20, stored: "bool[2] b = {1, 0}", node: "y = ReduceSum (b)", want: "error: ReduceSum of BOOL"},
		{opset: 18, stored: "float16[3] h = {2048, 1, 1}", node: "y = ReduceSum <keepdims = 0> (h)", want: "FLOAT16[]{2050}"},
		{opset: 18, stored: "float[2] f = {1000, 1000}", node: "y = ReduceLogSumExp <keepdims = 0> (f)", want: "FLOAT[]{1000.6932}"},
		{opset: 18, stored: "float[2] f = {inf, -inf}", node: "y = ReduceLogSumExp <keepdims = 0> (f)", want: "FLOAT[]{+Inf}"},
		{opset: 18, stored: "float[2] f = {nan, 1}", node: "y = ReduceMax <keepdims = 0> (f)", want: "FLOAT[]{NaN}"},
	})
}

func TestOrder(t *testing.T) {
	stored := "float[2,3] a = {3, 1, 3, 2, 5, 4}, float[2] odd = {nan, 1}, int64[1] two = {2}"
	runOperatorCases(t, []operatorCase{
		{opset: 13, stored: stored, node: "y = ArgMax <axis = 1> (a)", want: "INT64[2,1]{0, 1}"},
		{opset: 13, stored: stored, node: "y = ArgMax <axis = -1, select_last_index = 1, keepdims = 0> (a)", want: "INT64[2]{2, 1}"},
		{opset: 13, stored: stored, node: "y = ArgMin <keepdims = 0> (a)", want: "INT64[3]{1, 0, 0}"},
		{opset: 13, stored: stored, node: "y = ArgMin <keepdims = 0> (odd)", want: "INT64[]{0}", folds: ErrUndefined},
		{opset: 13, stored: "float[0] a = {}", node: "y = ArgMax (a)", want: "error: nothing to choose from"},
		{opset: 11, stored: stored, node: "y, i = TopK (a, two)", want: "FLOAT[2,2]{3, 3, 5, 4}"},
		{opset: 11, stored: stored, node: "v, y = TopK (a, two)", want: "INT64[2,2]{0, 2, 1, 2}"},
		{opset: 11, stored: stored, node: "v, y = TopK <largest = 0> (a, two)", want: "INT64[2,2]{1, 0, 0, 2}"},
		{opset: 11, stored: stored + ", int64[1] one = {1}", node: "v, y = TopK <axis = 0> (a, one)", want: "INT64[1,3]{0, 1, 1}"},
		{opset: 1, stored: stored, node: "y, i = TopK <k = 1, axis = 0> (a)", want: "FLOAT[1,3]{3, 5, 4}"},
		{opset: 11, stored: stored + ", int64[1] k = {4}", node: "y, i = TopK (a, k)", want: "error: k is [4] for 3"},
		{opset: 11, stored: stored + ", int64[1] k = {0}", node: "y, i = TopK (a, k)", want: "FLOAT[2,0]{}"},
		{opset: 11, stored: stored, node: "v, y = TopK (odd, two)", want: "INT64[2]{0, 1}", folds: ErrUndefined},

		{opset: 14, stored: stored + ", int64 x = {1}", node: "y = CumSum (a, x)", want: "FLOAT[2,3]{3, 4, 7, 2, 7, 11}"},
		{opset: 14, stored: stored + ", int32 x = {-2}", node: "y = CumSum <reverse = 1> (a, x)", want: "FLOAT[2,3]{5, 6, 7, 2, 5, 4}"},
		{opset: 14, stored: stored + ", int64 x = {1}", node: "y = CumSum <exclusive = 1, reverse = 1> (a, x)", want: "FLOAT[2,3]{4, 3, 0, 9, 4, 0}"},
		{opset: 26, stored: "int32[3] i = {2, 3, 4}, int64 x = {0}", node: "y = CumProd <exclusive = 1> (i, x)", want: "INT32[3]{1, 2, 6}"},
		{opset: 14, stored: stored + ", int64 x = {2}", node: "y = CumSum (a, x)", want: "error: outside rank"},
		{opset: 14, stored: "float[2,0] a = {}, int64 x = {1}", node: "y = CumSum <reverse = 1> (a, x)", want: "FLOAT[2,0]{}"},
	})
}

// TestReductionsDoNotDependOnCores compares bits between thread counts, on one long
// row, on many short ones, and across axes that are not the last.
func TestReductionsDoNotDependOnCores(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	data := make([]float32, 1<<18)
	for i := range data {
		data[i] = float32(random.NormFloat64())
	}
	for _, shape := range [][]int{{1 << 18}, {1 << 12, 1 << 6}, {1 << 6, 1 << 12}} {
		for _, op := range []string{"ReduceSum", "ReduceL2", "ReduceLogSumExp", "ReduceMean"} {
			var first *tensor.Dense
			for threads := 1; threads <= 3; threads++ {
				p := prepare(t, "g (float[] x) => (y) { y = "+op+" <axes = [0]> (x) }", Options{Threads: threads})
				p.model.Opsets[0].Version = 12
				out, err := p.Run(t.Context(), map[string]Value{"x": tensor.Of(data, shape...)}, nil)
				if err != nil {
					t.Fatal(err)
				}
				d := out["y"].(*tensor.Dense)
				if first == nil {
					first = d
				} else if !tensor.EqualBits(first, d) {
					t.Errorf("%s of %v differs with %d threads", op, shape, threads)
				}
			}
		}
	}
}
