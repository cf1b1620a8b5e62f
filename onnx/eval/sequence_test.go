package eval

import (
	"fmt"
	"strings"
	"testing"
)

func TestSequences(t *testing.T) {
	tests := []struct{ nodes, want string }{
		{"s = SequenceConstruct (a, b) y = SequenceLength (s)", "INT64[]{2}"},
		{"s = SequenceConstruct (a, b) y = SequenceAt (s, last)", "FLOAT[1,2]{3, 4}"},
		{"s = SequenceConstruct (a, b) y = SequenceAt (s, two)", "error: position 2 is outside a sequence of 2"},
		{"s = SequenceConstruct (a, i) y = SequenceLength (s)", "error: input 1 is INT64, the first FLOAT"},
		{"s = SequenceEmpty <dtype = 7> () r = SequenceInsert (s, i) y = SequenceAt (r, zero)", "INT64[]{9}"},
		{"s = SequenceEmpty () y = SequenceInsert (s, i)", "error: a tensor of INT64 for a sequence of FLOAT"},
		{"s = SequenceEmpty () y = SequenceErase (s)", "error: an element of an empty sequence"},
		{"s = SequenceConstruct (a) r = SequenceInsert (s, b, last) y = ConcatFromSequence <axis = 0> (r)", "FLOAT[2,2]{3, 4, 1, 2}"},
		{"s = SequenceConstruct (a, b) r = SequenceErase (s, zero) y = ConcatFromSequence <axis = 1> (r)", "FLOAT[1,2]{3, 4}"},
		{"s = SequenceConstruct (a, b) y = ConcatFromSequence <axis = -1> (s)", "FLOAT[1,4]{1, 2, 3, 4}"},
		{"s = SequenceConstruct (a, b) y = ConcatFromSequence <axis = -1, new_axis = 1> (s)", "FLOAT[1,2,2]{1, 3, 2, 4}"},
		{"s = SequenceEmpty () y = ConcatFromSequence <axis = 0> (s)", "error: an empty sequence has no shape"},
		{"s = SplitToSequence <axis = 1> (m) y = SequenceAt (s, two)", "FLOAT[2,1]{3, 6}"},
		{"s = SplitToSequence <axis = 1, keepdims = 0> (m) y = SequenceAt (s, last)", "FLOAT[2]{3, 6}"},
		{"s = SplitToSequence <axis = 1, keepdims = 0> (m, two) y = SequenceAt (s, last)", "FLOAT[2,1]{3, 6}"},
		{"s = SplitToSequence <axis = 1> (m, lengths) y = SequenceAt (s, zero)", "FLOAT[2,1]{1, 4}"},
		{"s = SplitToSequence <axis = 0> (m, lengths) y = SequenceAt (s, zero)", "error: pieces of lengths [1 2] of an axis of 2"},
		{"s = SplitToSequence <axis = 0> (m, zero) y = SequenceAt (s, zero)", "error: pieces of length 0"},
		{"s = SequenceConstruct (a, b) r = SequenceMap <body = twice (float[1,2] x, float[1,2] z) => (float[1,2] w) { w = Add (x, z) }> (s, b) y = ConcatFromSequence <axis = 0> (r)", "FLOAT[2,2]{4, 6, 6, 8}"},

		{"o = Optional (a) y = OptionalHasElement (o)", "BOOL[]{true}"},
		{"o = Optional <type: type_proto = float[2]> () y = OptionalHasElement (o)", "BOOL[]{false}"},
		{"y = OptionalHasElement (a)", "BOOL[]{true}"},
		{"y = OptionalHasElement ()", "BOOL[]{false}"},
		{"o = Optional (a) y = OptionalGetElement (o)", "FLOAT[1,2]{1, 2}"},
		{"y = OptionalGetElement (a)", "FLOAT[1,2]{1, 2}"},
		{"o = Optional <type: type_proto = float[2]> () y = OptionalGetElement (o)", "error: the optional is empty"},
	}
	stored := "float[1,2] a = {1, 2}, float[1,2] b = {3, 4}, float[2,3] m = {1, 2, 3, 4, 5, 6}, int64 i = {9}, int64 zero = {0}, int64 two = {2}, int32 last = {-1}, int64[2] lengths = {1, 2}"
	for _, tt := range tests {
		t.Run(tt.nodes, func(t *testing.T) {
			source := fmt.Sprintf("<opset_import: [\"\": 18]> g () => (y) <%s> { %s }", stored, strings.ReplaceAll(tt.nodes, ") ", ")\n"))
			got, err := runText(t, source, Options{}, nil)
			checkOutcome(t, "running", got, err, tt.want)
		})
	}
}

// A tensor without elements may still claim very many pieces.
func TestSplitToSequenceOfVeryManyEmptyPieces(t *testing.T) {
	source := `<opset_import: ["": 18]> g () => (y) <int64[2] shape = {1000000000, 0}> { e = ConstantOfShape (shape)
		s = SplitToSequence (e)
		y = SequenceLength (s) }`
	got, err := runText(t, source, Options{MaxBytes: 1 << 20}, nil)
	checkOutcome(t, "running", got, err, "error: over the memory budget")
}
