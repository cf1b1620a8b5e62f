package eval

import "testing"

func TestLosses(t *testing.T) {
	stored := "float[2,3] x = {1, 2, 3, 4, 5, 6}, int64[2] c = {0, 2}, int32[2] ignored = {-1, 2}, float[3] w = {1, 10, 100}, int64[2] wrong = {0, 3}, float[2,3] same = {1, 1, 1, 2, 2, 2}, float16[1,2] h = {60000, 60000}, int64[1] first = {0}"
	runOperatorCases(t, []operatorCase{
		{opset: 13, stored: stored, node: "y = NegativeLogLikelihoodLoss (x, c)", want: "FLOAT[]{-3.5}"},
		{opset: 13, stored: stored, node: `y = NegativeLogLikelihoodLoss <reduction = "none"> (x, c, w)`, want: "FLOAT[2]{-1, -600}"},
		{opset: 13, stored: stored, node: `y = NegativeLogLikelihoodLoss <reduction = "sum"> (x, c, w)`, want: "FLOAT[]{-601}"},
		{opset: 13, stored: stored, node: "y = NegativeLogLikelihoodLoss (x, c, w)", want: "FLOAT[]{-5.9504952}"}, // -601/101
		{opset: 13, stored: stored, node: "y = NegativeLogLikelihoodLoss <ignore_index = -1> (x, ignored)", want: "FLOAT[]{-6}"},
		{opset: 13, stored: stored, node: "y = NegativeLogLikelihoodLoss (x, ignored)", want: "error: class -1 of 3"},
		{opset: 13, stored: stored, node: "y = NegativeLogLikelihoodLoss (x, wrong)", want: "error: class 3 of 3"},
		{opset: 13, stored: stored, node: "y = NegativeLogLikelihoodLoss (x, first)", want: "error: classes of shape [1]"},
		{opset: 13, stored: stored, node: `y = NegativeLogLikelihoodLoss <reduction = "max"> (x, c)`, want: `error: attribute "reduction" is "max"`},
		{opset: 13, stored: stored, node: "y = SoftmaxCrossEntropyLoss (same, c)", want: "FLOAT[]{1.0986123}"}, // ln 3
		{opset: 13, stored: stored, node: "l, y = SoftmaxCrossEntropyLoss (same, c)", want: "FLOAT[2,3]{-1.0986123, -1.0986123, -1.0986123, -1.0986123, -1.0986123, -1.0986123}"},
		{opset: 13, stored: stored, node: "y = SoftmaxCrossEntropyLoss (h, first)", want: "FLOAT16[]{0.6933594}"},
	})
}

func TestNonMaxSuppression(t *testing.T) {
	stored := "float[1,3,4] boxes = {0, 0, 2, 2, 0, 0, 2, 1.9, 5, 5, 7, 7}, float[1,1,3] scores = {0.5, 0.9, 0.5}, int64 most = {3}, float half = {0.5}, float all = {1}, float limit = {0.6}, " +
		"float[1,2,4] centers = {1, 1, 2, 2, 1, 1, 2, 2}, float[1,1,2] equal = {0.5, 0.5}, float[1,1,3] odd = {nan, 0.1, -inf}"
	runOperatorCases(t, []operatorCase{
		{opset: 11, stored: stored, node: "y = NonMaxSuppression (boxes, scores, most, half)", want: "INT64[2,3]{0, 0, 1, 0, 0, 2}"},
		{opset: 11, stored: stored, node: "y = NonMaxSuppression (boxes, scores, most, all)", want: "INT64[3,3]{0, 0, 1, 0, 0, 0, 0, 0, …}"},
		{opset: 11, stored: stored, node: "y = NonMaxSuppression (boxes, scores, most, half, limit)", want: "INT64[1,3]{0, 0, 1}"},
		{opset: 11, stored: stored, node: "y = NonMaxSuppression (boxes, scores)", want: "INT64[0,3]{}"},
		{opset: 10, stored: stored, node: "y = NonMaxSuppression <center_point_box = 1> (centers, equal, most, half)", want: "INT64[1,3]{0, 0, 0}"},
		{opset: 11, stored: stored, node: "y = NonMaxSuppression (boxes, odd, most, all)", want: "INT64[2,3]{0, 0, 1, 0, 0, 2}"},
		{opset: 11, stored: stored, node: "y = NonMaxSuppression (boxes, equal, most, half)", want: "error: boxes of shape [1 3 4] and scores of shape [1 1 2]"},
	})
}
