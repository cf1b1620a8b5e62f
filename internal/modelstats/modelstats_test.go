package modelstats

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/text"
)

func describe(t *testing.T, src string) *Description {
	t.Helper()
	d, err := Describe(context.Background(), text.MustParse(t, src), false)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestMACs(t *testing.T) {
	for _, test := range []struct {
		name, src string
		want      MACs
	}{
		{"matrix product", `(float[2,3] a, float[3,5] b) => (y) { y = MatMul (a, b) }`, MACs{Known: 2 * 5 * 3, Nodes: 1}},
		{"batched, broadcast", `(float[7,1,2,3] a, float[4,3,5] b) => (y) { y = MatMul (a, b) }`, MACs{Known: 7 * 4 * 2 * 5 * 3, Nodes: 1}},
		{"vectors", `(float[3] a, float[3] b) => (y) { y = MatMul (a, b) }`, MACs{Known: 3, Nodes: 1}},
		{"integers", `(uint8[2,3] a, uint8[3,5] b) => (y) { y = MatMulInteger (a, b) }`, MACs{Known: 30, Nodes: 1}},
		{"Gemm", `(float[3,2] a, float[5,3] b) => (y) { y = Gemm <transA = 1, transB = 1> (a, b) }`, MACs{Known: 30, Nodes: 1}},
		{"convolution", `(float[2,3,8,8] x, float[16,3,3,3] w) => (y) { y = Conv <pads = [1, 1, 1, 1]> (x, w) }`, MACs{Known: 2 * 16 * 64 * 27, Nodes: 1}},
		{"strided", `(float[1,3,8,8] x, float[16,3,3,3] w) => (y) { y = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, w) }`, MACs{Known: 16 * 16 * 27, Nodes: 1}},
		{"depthwise", `(float[1,8,8,8] x, float[8,1,3,3] w) => (y) { y = Conv <group = 8, pads = [1, 1, 1, 1]> (x, w) }`, MACs{Known: 8 * 64 * 9, Nodes: 1}},
		{"transposed", `(float[1,4,5,5] x, float[4,2,3,3] w) => (y) { y = ConvTranspose (x, w) }`, MACs{Known: 100 * 18, Nodes: 1}},
		{"LSTM", `(float[10,2,3] x, float[1,16,3] w, float[1,16,4] r) => (y) { y = LSTM <hidden_size = 4> (x, w, r) }`, MACs{Known: 20 * (16*3 + 16*4), Nodes: 1}},
		{"both ways", `(float[10,2,3] x, float[2,12,3] w, float[2,12,4] r) => (y) { y = GRU <hidden_size = 4, direction = "bidirectional"> (x, w, r) }`, MACs{Known: 20 * 2 * (12*3 + 12*4), Nodes: 1}},
		{"an open batch", `(float[N,3] a, float[3,5] b) => (y) { y = MatMul (a, b)  z = MatMul (b2, b)  b2 = Transpose (b3)  b3 = Identity (b) }`, MACs{Known: 5 * 5 * 3, Nodes: 2, Unknown: 1}},
		{"nothing to multiply", `(float[2,3] a) => (y) { y = Relu (a) }`, MACs{}},
		{"another domain's operator", `<opset_import: ["": 18, "x": 1]> (float[2,2] a) => (y) { y = x.MatMul (a, a) }`, MACs{Opaque: 1}},
		{"the larger branch", `(float[2,3] a, float[3,5] b, bool c) => (y) { y = If (c) <then_branch = t () => (s) { s = MatMul (a, b) },
			else_branch = e () => (u) { p = Identity (a)  q = MatMul (p, b)  u = Add (q, r)  r = MatMul (a, b) }> }`, MACs{Known: 60, Nodes: 2}},
		{"a loop of known length", `(float[2,2] a, bool c) => (y) <int64 n = {7}> { y = Loop (n, c, a) <body = b (int64 i, bool go, float[2,2] s) => (go2, s2) { go2 = Identity (go)  s2 = MatMul (s, a) }> }`,
			MACs{Known: 7 * 8, Nodes: 1}},
		{"of unknown length", `(float[2,2] a, bool c, int64 n) => (y) { y = Loop (n, c, a) <body = b (int64 i, bool go, float[2,2] s) => (go2, s2) { go2 = Identity (go)  s2 = MatMul (s, a) }> }`,
			MACs{Known: 8, Nodes: 1, Loops: 1}},
		{"a scan", `(float[2,2] a, float[5,2,2] xs) => (y, ys) { y, ys = Scan <num_scan_inputs = 1> (a, xs) <body = b (float[2,2] s, float[2,2] x) => (s2, o) { s2 = MatMul (s, x)  o = Identity (s) }> }`,
			MACs{Known: 5 * 8, Nodes: 1}},
		{"a function called with two sizes", `<opset_import: ["": 18, "my": 1]> (float[2,3] a, float[4,3] c, float[3,5] b) => (y, z) { y = my.Dense (a, b)  z = my.Dense (c, b) }
			<domain: "my", opset_import: ["": 18]> Dense (x, w) => (o) { o = MatMul (x, w) }`, MACs{Known: 30 + 60, Nodes: 2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, describe(t, test.src).MACs); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Sizes in a file may be anything: sums stop at the largest number.
func TestMACsDoNotOverflow(t *testing.T) {
	d := describe(t, `(float[1000000,1000000] a, float[1000000,1000000] b) => (y, z) { y = MatMul (a, b)  z = MatMul (y, b) }`)
	if d.MACs.Known != 2e18 {
		t.Errorf("got %d", d.MACs.Known)
	}
	d = describe(t, `(float[3000000,3000000] a, float[3000000,3000000] b) => (y) { y = MatMul (a, b) }`)
	if d.MACs.Known != math.MaxInt64 {
		t.Errorf("got %d", d.MACs.Known)
	}
}

func TestParameters(t *testing.T) {
	d := describe(t, `(float[2] x, bool c) => (y, z) <float[2,3] w = {1,2,3,4,5,6}, int64[2] n = {1,2}> {
		y = Add (x, k)  k = Constant <value = float16[2] {1, 2}> ()
		z = If (c) <then_branch = t () => (s) <int8[5] inner = {1,2,3,4,5}> { s = Identity (inner) }, else_branch = e () => (u) { u = Identity (x) }>
	}`)
	want := Parameters{Count: 6 + 2 + 2 + 5, Bytes: 24 + 16 + 4 + 5, ByType: []TypeCount{
		{"FLOAT", 6, 24}, {"INT64", 2, 16}, {"INT8", 5, 5}, {"FLOAT16", 2, 4},
	}}
	if diff := cmp.Diff(want, d.Parameters); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Stored{{"w", "FLOAT[2,3]", 24}, {"n", "INT64[2]", 16}, {"inner", "INT8[5]", 5}, {"k", "FLOAT16[2]", 4}}, d.Largest); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOperators(t *testing.T) {
	d := describe(t, `<opset_import: ["": 18, "my": 1, "com.microsoft": 1]> (float[2] x, bool c) => (y) {
		a = Relu (x)  b = com.microsoft.Gelu (a)  d = my.Twice (b)
		y = If (c) <then_branch = t () => (s) { s = Relu (d) }, else_branch = e () => (u) { u = Identity (x) }>
	} <domain: "my", opset_import: ["": 18]> Twice (p) => (q) { q = Add (p, p) }`)
	want := map[string]int{"Relu": 2, "com.microsoft.Gelu": 1, "my.Twice": 1, "If": 1, "Identity": 1, "Add": 1}
	if diff := cmp.Diff(want, d.Operators); diff != "" || d.Nodes != 7 {
		t.Errorf("%d nodes (-want +got):\n%s", d.Nodes, diff)
	}
	if fmt.Sprint(d.Functions) != "[my.Twice]" {
		t.Errorf("functions %q", d.Functions)
	}
}

func TestSignature(t *testing.T) {
	d := describe(t, `<ir_version: 8> (float[batch,3,?] image, float[batch,batch] m, seq(float) s, float[] any, float[1] k = {1}) => (y, float[batch,3] z) {
		y = Shape (image)  z = Identity (w)  w = ReduceMax <keepdims = 0> (image, ax)  ax = Constant <value_ints = [2]> ()
	}`)
	if diff := cmp.Diff([]Port{
		{Name: "image", Type: "FLOAT[batch,3,?]", Elem: "FLOAT", Dims: []any{"batch", int64(3), nil}},
		{Name: "m", Type: "FLOAT[batch,batch]", Elem: "FLOAT", Dims: []any{"batch", "batch"}},
		{Name: "s", Type: "sequence(FLOAT[])"},
		{Name: "any", Type: "FLOAT[...]", Elem: "FLOAT"},
		{Name: "k", Type: "FLOAT[1]", Elem: "FLOAT", Dims: []any{int64(1)}, Default: true},
	}, d.Inputs); diff != "" {
		t.Errorf("inputs (-want +got):\n%s", diff)
	}
	if d.Outputs[0].Type != "INT64[3]" || d.Outputs[1].Type != "FLOAT[batch,3]" {
		t.Errorf("outputs %+v", d.Outputs)
	}
	if d := describe(t, `(float[N,3] x, float[3,5] w) => (float[N,?] y, float[?,?] z) { y = MatMul (x, w)  z = Transpose (y) }`); d.Outputs[0].Type != "FLOAT[N,5]" || d.Outputs[1].Type != "FLOAT[5,?]" {
		t.Errorf("outputs %+v", d.Outputs)
	}
	if diff := cmp.Diff([]Axis{{"batch", []string{"image[0]", "m[0]", "m[1]"}}}, d.DynamicAxes); diff != "" {
		t.Errorf("axes (-want +got):\n%s", diff)
	}
}

func TestExternalData(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.onnx")
	values := strings.Repeat("1,", 299) + "1"
	if err := text.MustParse(t, `(float[300] x) => (y) <float[300] w = {`+values+`}> { y = Add (x, w) }`).Save(path, onnx.SaveOptions{ExternalData: onnx.SplitExternal}); err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	d, err := Describe(context.Background(), m, false)
	if err != nil {
		t.Fatal(err)
	}
	if d.BytesOutside != 1200 || fmt.Sprint(d.OutsideFiles) != "[m.onnx.data]" || d.Bytes == 0 || d.File != path {
		t.Errorf("got %+v", d)
	}
}

// Lists are [] in JSON and never null, so that scripts need not look.
func TestJSONHasNoNullLists(t *testing.T) {
	data, err := json.Marshal(describe(t, `(float[2] x) => (y) { y = Relu (x) }`))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "null") {
		t.Errorf("%s", data)
	}
}

// Thirty functions, each of which calls the next twice, are a billion calls.
func TestFunctionsThatDouble(t *testing.T) {
	var b strings.Builder
	b.WriteString(`<opset_import: ["": 18, "my": 1]> (float[2,2] a) => (y) { y = my.F0 (a) }`)
	for i := range 30 {
		fmt.Fprintf(&b, `<domain: "my", opset_import: ["": 18, "my": 1]> F%d (x) => (o) { p = my.F%d (x)  o = my.F%d (p) }`, i, i+1, i+1)
	}
	b.WriteString(`<domain: "my", opset_import: ["": 18]> F30 (x) => (o) { o = MatMul (x, x) }`)
	start := time.Now()
	if _, err := Describe(context.Background(), text.MustParse(t, b.String()), false); err != nil {
		t.Log(err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestFunctionsThatCallEachOther(t *testing.T) {
	m, err := text.Parse(`<opset_import: ["": 18, "my": 1]> (float[2,2] a) => (y) { y = my.A (a) }
		<domain: "my", opset_import: ["": 18, "my": 1]> A (x) => (o) { p = MatMul (x, x)  o = my.B (p) }
		<domain: "my", opset_import: ["": 18, "my": 1]> B (x) => (o) { p = MatMul (x, x)  o = my.A (p) }`)
	if err != nil {
		t.Skip(err)
	}
	if d, err := Describe(context.Background(), m, false); err == nil && d.MACs.Nodes > 10_000 {
		t.Errorf("%d nodes", d.MACs.Nodes)
	}
}
