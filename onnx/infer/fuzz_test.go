package infer

import (
	"context"
	"testing"
	"time"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/text"
)

// hostile are models that try to make inference crash, hang or grow.
var hostile = map[string]string{
	"huge dims": `g (float[9223372036854775807,9223372036854775807] x) => (y, s) { y = Concat <axis = 0> (x, x)  s = Size (x) }`,
	"an empty tensor of many rows": `g (float[1000000000000,0] x) => (y) { y = Concat <axis = 1> (x, x)  s = Constant <value = int64[0] {}> ()
		t = ConstantOfShape (u)  u = Constant <value_ints = [1000000000, 0]> ()  v = Concat <axis = 1> (t, t) }`,
	"a product of many": `g (int64[4] x) => (y) { a = Mul (x, x)  b = Mul (a, a)  c = Mul (b, b)  d = Mul (c, c)  e = Mul (d, d)
		f = Mul (e, e)  y = Reshape (x, f) }`,
	"zeros everywhere": `g (float[0,0] x) => (y, z, w) { k = Constant <value_ints = [0, -1]> ()  y = Reshape (x, k)
		n = Size (x)  z = Div (n, n)  w = Mod (n, n) }`,
	"bad attributes": `g (float[2,3,4] x) => (a, b, c, d, e) { a = Transpose <perm = [7, -1, 2]> (x)  b = Concat <axis = -9> (x)
		c = DepthToSpace <blocksize = 0> (x)  d = Split <num_outputs = 0> (x)  e = Flatten <axis = 99> (x) }`,
	"bad windows": `g (float[1,1,9] x, float[1,1,3] w) => (a, b, c) { a = Conv <strides = [0]> (x, w)  b = Conv <dilations = [9223372036854775807]> (x, w)
		c = MaxPool <kernel_shape = [-5], pads = [1]> (x) }`,
	"no inputs": `g () => (a, b, c, d, e, f) { a = Concat () b = Reshape () c = Loop () d = If () e = Einsum <equation = "->"> () f = Scan () }`,
	"a loop in a loop": `g (float[n] x, int64 k) => (y) { y = Loop (k, "", x) <body = a (i, c, s) => (c, t) {
		t = Loop (k, "", s) <body = b (j, d, u) => (d, v) { v = Loop (k, "", u) <body = e (l, f, w) => (f, q) { q = Concat <axis = 0> (w, x) }> }> }> }`,
	"functions that double": `<ir_version: 10, opset_import: ["": 21, "d": 1]> g (float[n] x) => (y) { y = d.F0 (x) }
		<domain: "d", opset_import: ["": 21, "d": 1]> F0 (x) => (y) { a = F1 (x) y = F1 (a) b = d.F1 (x) c = d.F1 (b) d = d.F1 (c) }
		<domain: "d", opset_import: ["": 21, "d": 1]> F1 (x) => (y) { y = d.F0 (x)  z = d.F0 (x)  w = d.F1 (x) }`,
}

func TestHostileModels(t *testing.T) {
	for name, source := range hostile {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			inferAnything(text.MustParse(t, source))
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// inferAnything runs all of the package's entry points on a model.
func inferAnything(m *onnx.Model) {
	if m.Graph.Sort() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	i := New(m, Options{})
	if i.Run(ctx) != nil {
		return
	}
	for _, f := range m.Functions {
		for _, n := range f.Body.Nodes() {
			i.Node(n)
		}
	}
	for g := range m.Graphs() {
		for v := range g.Values() {
			_ = i.Of(v).String()
			i.Declare(v)
		}
	}
}

func FuzzInfer(f *testing.F) {
	for _, source := range hostile {
		f.Add(encoded(f, source))
	}
	for _, cases := range [][]inferCase{shapeCases, oldCases, valueCases, controlCases} {
		for _, c := range cases {
			f.Add(encoded(f, c.model))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := onnx.Parse(data, ""); err == nil {
			inferAnything(m)
		}
	})
}

func encoded(t text.TB, source string) []byte {
	data, err := text.MustParse(t, source).Encode()
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	return data
}
