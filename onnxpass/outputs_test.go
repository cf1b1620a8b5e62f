package onnxpass

import (
	"context"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/infer"
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
