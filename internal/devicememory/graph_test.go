package devicememory_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/npuctl/npuctl/internal/cannemu/omwriter"
	"github.com/npuctl/npuctl/internal/devicememory"
	"github.com/npuctl/npuctl/onnx/text"
)

// What is alive at one time, counted by hand for graphs of a few nodes. Every tensor
// has four floats: 16 bytes, half of it with half precision.
func TestOfGraph(t *testing.T) {
	for _, test := range []struct {
		name, graph string
		want        devicememory.Needs
	}{
		{"inputs and outputs are not counted", `(float[4] x) => (float[4] y) { y = Relu (x) }`, devicememory.Needs{}},
		{"a chain needs two", `(float[4] x) => (float[4] y) { a = Relu (x) b = Neg (a) c = Abs (b) y = Neg (c) }`, devicememory.Needs{Work: 32}},
		{"what is read late stays", `(float[4] x) => (float[4] y) { a = Relu (x) b = Neg (a) c = Abs (b) d = Neg (c) y = Add (a, d) }`, devicememory.Needs{Work: 48}},
		{"what nobody reads goes at once", `(float[4] x) => (float[4] y) { a = Relu (x) b = Neg (x) y = Abs (x) }`, devicememory.Needs{Work: 16}},
		{"a view is no memory, and keeps what it looks at", `(float[4] x) => (float[2,2] y) <int64[2] s = {2,2}> { a = Relu (x) v = Reshape (a, s) b = Neg (v) c = Abs (b) y = Add (c, v) }`,
			devicememory.Needs{Weights: 16, Work: 48}},
		{"weights", `(float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}> { c = Constant <value = float[2] {1,2}> () a = Add (x, w) y = Neg (a) }`,
			devicememory.Needs{Weights: 24, Work: 16}},
		{"a branch is added while its node runs", `(bool c, float[4] x) => (float[4] y) { a = Relu (x)
			b = If (c) <then_branch = t () => (float[4] r) { p = Neg (a) q = Abs (p) r = Relu (q) }, else_branch = e () => (float[4] r) { r = Identity (a) }> y = Neg (b) }`,
			devicememory.Needs{Work: 16 + 16 + 32}},
		{"sizes that depend on data are told", `(float[4] x) => (int64[1,n] y) { a = NonZero (x) y = Neg (a) }`, devicememory.Needs{Unknown: 1}},
	} {
		m, err := text.Parse(`<ir_version: 8, opset_import: ["": 13]> net ` + test.graph)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if err := m.Graph.Sort(); err != nil {
			t.Fatal(err)
		}
		got, err := devicememory.OfGraph(context.Background(), m, devicememory.Precision{})
		if err != nil || !cmp.Equal(got, test.want) {
			t.Errorf("%s: %+v, %v, want %+v", test.name, got, err, test.want)
		}
		half, err := devicememory.OfGraph(context.Background(), m, devicememory.Precision{HalfFloats: true})
		if err != nil || half.Work != test.want.Work/2 {
			t.Errorf("%s: half %+v, %v", test.name, half, err)
		}
	}
}

// The needs of an .om are what its compiler planned; buffers of inputs and outputs that
// lie in the planned memory are not counted twice.
func TestOfCompiled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "net.om")
	definition := omwriter.ModelDef{Name: "net", Attributes: []omwriter.Attribute{
		{Name: "soc_version", Value: omwriter.Text("Ascend310P3")}, {Name: "memory_size", Value: omwriter.Int(1000)},
		{Name: "zero_copy_memory_size", Value: omwriter.Int(300)}, {Name: "weight_size", Value: omwriter.Int(64)}}}
	file := omwriter.File{Name: "net", Models: []omwriter.Model{omwriter.NewModel(omwriter.Parts{
		Signature: &omwriter.Signature{Inputs: []omwriter.Port{{Name: "x", Dims: []int64{1, 4}}}}, ModelDef: &definition})}}
	if err := file.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := devicememory.OfCompiled(path)
	want := devicememory.Needs{Weights: 64, Work: 700, SoC: "Ascend310P3", Inputs: []string{"x"}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
	if _, err := devicememory.OfCompiled(filepath.Join(t.TempDir(), "missing.om")); err == nil {
		t.Error("no error")
	}
}
