package infer

import (
	"testing"

	"github.com/npuctl/npuctl/onnx/text"
)

// What was inferred otherwise than engines compute it, each found by hand.
func TestFoundByHand(t *testing.T) {
	for _, test := range []struct{ name, src, want string }{
		{"a Slice that goes down from before the first element takes the first",
			`<opset_import: ["": 18]> g (float[3] x) => (y) <int64[1] s = {-4}, int64[1] e = {-5}, int64[1] a = {0}, int64[1] d = {-1}> { y = Slice (x, s, e, a, d) }`,
			"y FLOAT[1]"},
		{"but nothing of nothing",
			`<opset_import: ["": 18]> g (float[0] x) => (y) <int64[1] s = {-4}, int64[1] e = {-5}, int64[1] a = {0}, int64[1] d = {-1}> { y = Slice (x, s, e, a, d) }`,
			"y FLOAT[0]"},
		{"a reversed axis",
			`<opset_import: ["": 18]> g (float[n] x) => (y) <int64[1] s = {-1}, int64[1] e = {-9223372036854775807}, int64[1] a = {0}, int64[1] d = {-1}> { y = Slice (x, s, e, a, d) }`,
			"y FLOAT[n]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := text.MustParse(t, test.src)
			i := New(m, Options{})
			if err := i.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := outputsOf(m, i); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
	m := text.MustParse(t, `<opset_import: ["": 18]> g (float[1,1,3,7] x) => (y) { y = MaxPool <kernel_shape = [8, 4], strides = [2, 2]> (x) }`)
	i := New(m, Options{})
	if err := i.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(i.Conflicts()) == 0 {
		t.Errorf("a window larger than its input is no conflict: %s", outputsOf(m, i))
	}
}

// What ONNX Runtime runs, or may never run, is no reason to call a model impossible.
func TestNoFalseConflicts(t *testing.T) {
	for _, c := range []struct{ name, model, want string }{
		{"a pool that hangs over by less than a stride", `g (float[1,1,3,7] x) => (y) { y = MaxPool <kernel_shape = [4, 4], strides = [2, 2]> (x) }`, "y FLOAT[1,1,?1,2]"},
		{"a pool that is one too large", `g (float[1,1,2,2] x) => (y) { y = AveragePool <kernel_shape = [3, 3]> (x) }`, "y FLOAT[1,1,?1,?2]"},
		{"an empty part of other dims", `g (float[2,3] x, float[0,7] past) => (y) { y = Concat <axis = 0> (past, x) }`, "y FLOAT[2,3]"},
		{"an empty part of other dims along the axis as well", `g (float[2,3] x, float[0,7] past) => (y) { y = Concat <axis = 1> (past, x) }`, "y FLOAT[2,?1]"},
		{"parts that are all empty", `g (float[0,3] x, float[0,3] z) => (y) { y = Concat <axis = 0> (z, x) }`, "y FLOAT[0,3]"},
		{"-1 beside a dim of 0", `g (float[2,0,5] x) => (y) { t = Constant <value_ints = [4, 0, -1]> ()  y = Reshape (x, t) }`, "y FLOAT[4,0,?1]"},
		{"the body of a SequenceMap", `g () => (y) {
			s = SequenceEmpty ()
			y = SequenceMap <body = b (float[2,3] e) => (r) { t = Constant <value_ints = [7]> ()  r = Reshape (e, t) }> (s)
		}`, ""},
		{"an image that padding makes large enough", `g (float[1,1,H,W] x, float[1,1,3,3] w) => (y) { c = Conv <pads = [2, 2, 2, 2]> (x, w)  t = Constant <value_ints = [0, 0, -1]> ()  y = Reshape (x, t) }`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, i := inferText(t, sorted(t, c.model))
			for _, found := range i.Conflicts() {
				if !found.Warning {
					t.Errorf("a conflict: %s", found.Message)
				}
			}
			if got := outputsOf(m, i); c.want != "" && got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
