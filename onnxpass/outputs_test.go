package onnxpass

import (
	"context"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/infer"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/text"
)

// A pass that makes something else of an output is found out.
func TestOutputsAreHeldToWhatTheyWere(t *testing.T) {
	const graph = `g (float[N,3] x, float[2,3] z, int64[1] one) => (y, w) { y = Relu (x)  w = Relu (z) }`
	for _, c := range []struct {
		name  string
		smash func(g *onnx.Graph, y, w *onnx.Node)
		want  string
	}{
		{"nothing", func(*onnx.Graph, *onnx.Node, *onnx.Node) {}, ""},
		{"a dim that was open may be anything", func(_ *onnx.Graph, y, w *onnx.Node) { y.SetInput(0, w.Input(0)) }, ""},
		{"element type", func(_ *onnx.Graph, y, _ *onnx.Node) {
			y.OpType = "IsNaN"
		}, `output "y" was FLOAT[N,3] and is BOOL[N,3]: its element type is another`},
		{"rank", func(_ *onnx.Graph, _, w *onnx.Node) {
			w.OpType = "Unsqueeze"
			w.SetInput(1, w.Model().Graph.Find("one"))
			w.SetInput(0, w.Input(0))
		}, `output "w" was FLOAT[2,3] and is FLOAT[?1,?2,?3]: its rank is another`},
		{"a fixed dim", func(_ *onnx.Graph, _, w *onnx.Node) { w.OpType = "Transpose" }, `output "w" was FLOAT[2,3] and is FLOAT[3,2]: its dim 0 is another`},
		{"a fixed dim that is not known any more", func(_ *onnx.Graph, y, w *onnx.Node) { w.SetInput(0, y.Input(0)) }, `output "w" was FLOAT[2,3] and is FLOAT[N,3]: its dim 0 is another, or not known`},
		{"an output", func(g *onnx.Graph, _, w *onnx.Node) { g.AddOutput(w.Output(0)) }, `it had 2 outputs and has 3`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := text.MustParse(t, graph)
			s := &State{ctx: context.Background(), model: m}
			s.infer = infer.New(m, infer.Options{})
			if err := s.infer.Run(s.ctx); err != nil {
				t.Fatal(err)
			}
			s.outputs = outputsOf(m, s.infer)
			nodes := m.Graph.Nodes()
			c.smash(m.Graph, nodes[0], nodes[1])
			err := s.checkOutputs()
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// What the model declares of an output and inference does not know stays when sizes of
// inputs are given, and what inference knows better does not.
func TestDeclaredOutputsOutliveGivenSizes(t *testing.T) {
	m := text.MustParse(t, `<ir_version: 10, opset_import: ["": 21, "my": 1]>
	g (int64 n, float[N,3] x) => (float[2,5] computed, float[2,M] opaque, float[N,5] named, float[7,3] y) <int64 z = {0}, int64 o = {1}> {
		r = Range (z, n, o)
		computed = ConstantOfShape (r)
		opaque = my.Op (x)
		named = my.Op (x)
		y = Relu (x)
	}`)
	if err := Specialize(m, Specialization{Dims: map[string]int64{"N": 1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := Optimize(t.Context(), m, Options{Specialized: true, Verify: true}); err != nil {
		t.Fatal(err)
	}
	want := []string{"FLOAT[2,5]", "FLOAT[2,M]", "FLOAT[1,5]", "FLOAT[1,3]"}
	for i, v := range m.Graph.Outputs() {
		if got := v.Type.String(); got != want[i] {
			t.Errorf("output %q is declared %s, want %s", v.Name(), got, want[i])
		}
	}
}

// A declaration that is lost is found out.
func TestLostDeclarations(t *testing.T) {
	declared := func(dims ...onnx.Dim) *onnx.Type {
		return onnx.TensorType(tensor.Float32).WithShape(&onnx.Shape{Dims: dims})
	}
	two, five, open := onnx.Dim{Value: 2, Known: true}, onnx.Dim{Value: 5, Known: true}, onnx.Dim{Param: "N"}
	unknown := infer.Info{Elem: tensor.Float32}
	known := infer.Info{Elem: tensor.Float32, Ranked: true, Dims: []infer.Dim{infer.Const(1), infer.Const(5)}}
	for _, c := range []struct {
		name     string
		was, now *onnx.Type
		info     infer.Info
		want     string
	}{
		{"all kept", declared(two, five), declared(two, five), unknown, ""},
		{"a name may go", declared(open, five), declared(onnx.Dim{}, five), unknown, ""},
		{"the type", declared(two, five), nil, unknown, "type"},
		{"the rank", declared(two, five), onnx.TensorType(tensor.Float32).WithShape(nil), unknown, "rank"},
		{"a dim", declared(two, five), declared(two, open), unknown, "dim 1"},
		{"inference knows better", declared(two, five), declared(onnx.Dim{Value: 1, Known: true}, five), known, ""},
	} {
		if got := lostDeclaration(c.was, c.now, &c.info); got != c.want {
			t.Errorf("%s: lost %q, want %q", c.name, got, c.want)
		}
	}
}
