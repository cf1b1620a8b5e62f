package inference

import (
	"context"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnxpass"
)

// Who is to blame when a model refuses all random inputs.
func TestBlame(t *testing.T) {
	for _, test := range []struct {
		name, src string
		sizes     onnxpass.Specialization
		want      fault.Family
		says      string
	}{
		{"shapes that contradict each other", `(float[2,3] x, float[4] z) => (y) { y = Add (x, z) }`, onnxpass.Specialization{}, fault.Input, "do not broadcast"},
		{"in any size", `(float[N,3] x) => (y) { y = Softmax <axis = 4> (x) }`, onnxpass.Specialization{}, fault.Input, "axis 4 is outside rank 2"},
		{"a type that is none for the operator", `(string[2] x) => (y) { y = Relu (x) }`, onnxpass.Specialization{}, fault.Input, "which is no type for it"},
		{"constants behind a Shape", `(float[N,3] x) => (y) <int64 i = {7}> { s = Shape (x)  y = Gather (s, i) }`, onnxpass.Specialization{}, fault.Input, "no inputs suit the model: Gather node that makes \"y\": "},
		{"what an input asks for", `(float[4] x, int64[2] s) => (y) <int64[2] a = {1000, 1000}> { t = Mul (s, a)  y = Reshape (x, t) }`, onnxpass.Specialization{}, fault.Usage, "give inputs with --inputs"},
		{"the same of any input", `(float[4] x, int64 i) => (y) <int64 a = {0}, int64 b = {9}> { z = Mul (i, a)  k = Add (z, b)  y = Gather (x, k) }`, onnxpass.Specialization{}, fault.Usage, "index 9 is outside 4"},
		{"a truth that chooses", `(float[4] x, bool c) => (y) <int64 a = {9}> { y = If (c) <then_branch = t () => (s) { s = Gather (x, a) }, else_branch = e () => (s) { s = Gather (x, a) }> }`, onnxpass.Specialization{}, fault.Usage, "random inputs do not suit"},
		{"a size that is not tried", `(float[N] x) => (y) <int64[2] s = {1009, 7}> { y = Reshape (x, s) }`, onnxpass.Specialization{}, fault.Usage, "or sizes with --dim"},
		{"a size that the user gives", `(float[3,N] x) => (y) <float[2,2] w = {1, 2, 3, 4}> { y = MatMul (x, w) }`, onnxpass.Specialization{Dims: map[string]int64{"N": 5}}, fault.Usage, "cannot run in the sizes that are given"},
		{"a size of a model that no size suits", `(float[N,3] x) => (y) <float[2,2] w = {1, 2, 3, 4}> { y = MatMul (x, w) }`, onnxpass.Specialization{Dims: map[string]int64{"N": 5}}, fault.Input, "no inputs suit the model"},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := jobOf(t, header+test.src)
			j.Sizes = test.sizes
			_, err := j.Run(context.Background())
			if fault.FamilyOf(err) != test.want || err == nil || !strings.HasPrefix(err.Error(), j.Model+": ") || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v: %v, want %v, %q", fault.FamilyOf(err), err, test.want, test.says)
			}
		})
	}
}

// Values that nobody can make up: what the user can do about it.
func TestUnmade(t *testing.T) {
	for _, test := range []struct {
		name, src string
		want      fault.Family
		says      string
	}{
		{"too large, in a fixed size", `(float[100000,100000] x) => (y) { y = Neg (x) }`, fault.Usage, "takes more than a random input may; give inputs with --inputs"},
		{"of no type", `(x) => (y) { y = Neg (x) }`, fault.Usage, "the model does not say its type; give inputs with --inputs"},
		{"in no file", `(opaque("d", "t") x) => (y) { y = Identity (x) }`, fault.Missing, "cannot be made, nor read from files"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := jobOf(t, header+test.src).Run(context.Background())
			if fault.FamilyOf(err) != test.want || err == nil || !strings.HasSuffix(strings.TrimSuffix(err.Error(), ": npuctl does not run such models"), test.says) {
				t.Errorf("%v: %v, want %v, %q", fault.FamilyOf(err), err, test.want, test.says)
			}
		})
	}
}
