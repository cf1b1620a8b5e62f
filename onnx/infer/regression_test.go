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
	m := text.MustParse(t, `<opset_import: ["": 18]> g (float[1,1,3,7] x) => (y) { y = MaxPool <kernel_shape = [4, 4], strides = [2, 2]> (x) }`)
	i := New(m, Options{})
	if err := i.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(i.Conflicts()) == 0 {
		t.Errorf("a window larger than its input is no conflict: %s", outputsOf(m, i))
	}
}
