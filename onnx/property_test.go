package onnx_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/text"
)

// editor makes random edits of a model through the calls that passes use. The
// operators mean nothing; only the wires count.
type editor struct {
	*rapid.T
	m *onnx.Model
}

// before lists what n can read where it stands; nil stands for the end of g.
func before(g *onnx.Graph, n *onnx.Node) (out []*onnx.Value) {
	for ; g != nil; g, n = g.Outer(), g.Owner() {
		for v := range g.Values() {
			if v.Producer() == nil || n == nil || slices.Index(g.Nodes(), v.Producer()) < slices.Index(g.Nodes(), n) {
				out = append(out, v)
			}
		}
	}
	return out
}

func (e editor) readable(g *onnx.Graph, n *onnx.Node) *onnx.Value {
	return rapid.SampledFrom(before(g, n)).Draw(e.T, "value")
}

func (e editor) graph() *onnx.Graph {
	return rapid.SampledFrom(slices.Collect(e.m.Graphs())).Draw(e.T, "graph")
}

// node draws a node for which ok answers true; nil when there is none.
func (e editor) node(ok func(*onnx.Node) bool) *onnx.Node {
	nodes := slices.DeleteFunc(slices.Collect(e.m.Nodes()), func(n *onnx.Node) bool { return !ok(n) })
	if len(nodes) == 0 {
		return nil
	}
	return rapid.SampledFrom(nodes).Draw(e.T, "node")
}

func any1(*onnx.Node) bool { return true }

func isIf(n *onnx.Node) bool { return n.OpType == "If" }

func makesOne(n *onnx.Node) bool { return n.Output(0) != nil }

func (e editor) addNode() {
	g := e.graph()
	inputs := make([]*onnx.Value, rapid.IntRange(0, 3).Draw(e.T, "inputs"))
	for i := range inputs {
		if rapid.Bool().Draw(e.T, "given") {
			inputs[i] = e.readable(g, nil)
		}
	}
	first := ""
	if rapid.Bool().Draw(e.T, "first") {
		first = e.m.FreshName("v")
	}
	g.Add("Op", inputs, []string{first, e.m.FreshName("w")})
}

func (e editor) addIf() {
	g := e.graph()
	n := g.Add("If", []*onnx.Value{e.readable(g, nil)}, []string{e.m.FreshName("y")})
	for _, name := range []string{"then_branch", "else_branch"} {
		s := g.NewSubgraph(name)
		made := s.Add("Op", []*onnx.Value{e.readable(g, n)}, []string{e.m.FreshName("b")})
		s.AddOutput(made.Output(0))
		n.SetAttribute(onnx.GraphAttribute(name, s))
	}
}

func (e editor) setInput() {
	if n := e.node(any1); n != nil {
		n.SetInput(rapid.IntRange(0, 3).Draw(e.T, "at"), e.readable(n.Graph(), n))
	}
}

func (e editor) setInputs() {
	if n := e.node(any1); n != nil && len(n.Inputs()) > 0 {
		n.SetInputs(n.Inputs()[rapid.IntRange(0, len(n.Inputs())).Draw(e.T, "from"):]...)
	}
}

func (e editor) replaceUses() {
	if n := e.node(makesOne); n != nil {
		n.Output(0).ReplaceUses(e.readable(n.Graph(), n))
	}
}

func (e editor) forward() {
	if n := e.node(makesOne); n != nil {
		n.Graph().Forward(n, n.Output(0), e.readable(n.Graph(), n))
	}
}

func (e editor) storeAs() {
	if n := e.node(makesOne); n != nil && n.Graph().Function() == nil {
		n.Graph().StoreAs(n.Output(0), onnx.NewTensor(tensor.Scalar(int64(7))))
	}
}

func (e editor) addOutput() {
	g := e.graph()
	for v := range g.Values() {
		if v.Producer() != nil {
			g.AddOutput(v)
			return
		}
	}
}

func (e editor) dropOutput() {
	if n := e.node(any1); n != nil {
		for i, v := range n.Outputs() {
			if v != nil && !v.HasUses() {
				n.DropOutput(i)
				return
			}
		}
	}
}

func (e editor) removeDead() {
	e.m.Graph.RemoveDead(func(*onnx.Node) bool { return rapid.IntRange(0, 3).Draw(e.T, "keep") == 0 })
	for g := range e.m.Graphs() {
		g.RemoveInitializers(func(v *onnx.Value) bool { return !v.HasUses() })
	}
}

func (e editor) inline() {
	n := e.node(isIf)
	if n == nil || len(n.Subgraphs()) == 0 || n.Output(0) == nil {
		return
	}
	g := n.Graph()
	results := g.MoveNodes(n.Subgraphs()[0])
	if g.Forward(n, n.Output(0), results[0]); !n.Output(0).HasUses() {
		g.Remove(n)
	} else {
		n.ClearAttributes()
	}
}

func (e editor) dropBranch() {
	if n := e.node(isIf); n != nil {
		n.DropAttribute("else_branch")
	}
}

func (e editor) makeNamesUnique() { e.m.MakeNamesUnique() }

// Whatever edits are made in whatever order, the model stands after each of them,
// and what is written reads back as the same graph.
func TestRandomEditsKeepTheModelSound(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		e := editor{r, onnx.NewModel(10, 21)}
		g := e.m.Graph
		g.AddInput("x", onnx.TensorType(tensor.Float32, 2))
		g.AddInitializer("c", tensor.Scalar(int64(1)))
		g.AddOutput(g.Add("Op", g.Inputs(), []string{"out"}).Output(0))
		edits := []func(){
			e.addNode, e.addNode, e.addIf, e.setInput, e.setInputs, e.replaceUses, e.forward, e.forward, e.storeAs,
			e.addOutput, e.dropOutput, e.removeDead, e.inline, e.dropBranch, e.makeNamesUnique,
		}
		for range rapid.IntRange(1, 30).Draw(r, "edits") {
			at := rapid.IntRange(0, len(edits)-1).Draw(r, "edit")
			edits[at]()
			if err := g.Sort(); err != nil {
				r.Fatalf("after edit %d: %v", at, err)
			}
			if err := e.m.Check(); err != nil {
				r.Fatalf("after edit %d: %v\n%s", at, err, text.String(e.m))
			}
		}
		if g.Outputs()[0].Name() != "out" {
			r.Fatalf("the output is called %q now", g.Outputs()[0].Name())
		}
		b, err := e.m.Encode()
		if err != nil {
			r.Fatal(err)
		}
		again, err := onnx.Parse(b, "")
		if err != nil {
			r.Fatal(err)
		}
		if text.String(again) != text.String(e.m) || again.Check() != nil {
			r.Fatalf("written:\n%s\nread: %v\n%s", text.String(e.m), again.Check(), text.String(again))
		}
	})
}
