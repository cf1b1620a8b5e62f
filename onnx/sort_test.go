package onnx_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/text"
)

func TestSort(t *testing.T) {
	for _, c := range []struct{ name, before, after string }{
		{
			"what is in order stays",
			`(float[2] x) => (y) { b = Neg (x) a = Abs (x) y = Add (a, b) }`,
			`(float[2] x) => (y) { b = Neg (x) a = Abs (x) y = Add (a, b) }`,
		},
		{
			"only what must moves",
			`(float[2] x) => (y) { y = Add (a, b) c = Neg (x) b = Neg (x) a = Abs (b) }`,
			`(float[2] x) => (y) { b = Neg (x) a = Abs (b) y = Add (a, b) c = Neg (x) }`,
		},
		{
			"a branch reads what is made later",
			`(bool c, float[2] x) => (y) { y = If (c) <then_branch = t () => (p) { p = Neg (q) q = Abs (late) }, else_branch = e () => (r) { r = If (c) <then_branch = u () => (k) { k = Neg (last) }, else_branch = v () => (l) { l = Neg (x) }> }> late = Neg (x) last = Abs (x) }`,
			`(bool c, float[2] x) => (y) { late = Neg (x) last = Abs (x) y = If (c) <then_branch = t () => (p) { q = Abs (late) p = Neg (q) }, else_branch = e () => (r) { r = If (c) <then_branch = u () => (k) { k = Neg (last) }, else_branch = v () => (l) { l = Neg (x) }> }> }`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := text.MustParse(t, c.before)
			if err := m.Graph.Sort(); err != nil {
				t.Fatal(err)
			}
			expect(t, m, c.after)
		})
	}
}

func TestSortFindsCycles(t *testing.T) {
	for _, source := range []string{
		`(float[2] x) => (y) { [first] y = Add (x, z) [second] z = Neg (y) }`,
		`(float[2] x) => (y) { [self] y = Add (x, y) }`,
		`(bool c) => (y) { y = If (c) <then_branch = t () => (p) { p = Neg (y) }, else_branch = e () => (q) { q = Neg (c) }> }`,
		`(bool c) => (y) { y = If (c) <then_branch = t () => (p) { [in] p = Neg (p2) p2 = Neg (p) }, else_branch = e () => (q) { q = Neg (c) }> }`,
	} {
		err := text.MustParse(t, source).Graph.Sort()
		if err == nil || !strings.Contains(err.Error(), "cycle") || !strings.Contains(err.Error(), "node") {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// The depth of a graph is the file's choice; no stack may depend on it.
func TestDeepChains(t *testing.T) {
	const depth = 100_000
	m := onnx.NewModel(10, 21)
	g := m.Graph
	v := g.AddInput("x", onnx.TensorType(tensor.Float32, 1))
	w := g.AddInitializer("w", tensor.Scalar(float32(1)))
	chain := make([]*onnx.Value, depth)
	for i := range chain {
		v = g.Add("Add", []*onnx.Value{v, w}, []string{fmt.Sprint("v", i)}).Output(0)
		chain[i] = v
	}
	g.AddOutput(v)
	for i, n := range g.Nodes() { // every node reads the one behind it in the list
		if next := depth - 2 - i; next >= 0 {
			n.SetInput(0, chain[i])
			n.SetInput(0, chain[min(i+1, depth-1)])
		}
	}
	g.Nodes()[depth-1].SetInput(0, g.Inputs()[0])
	g.SetOutput(0, chain[0])
	if err := g.Sort(); err != nil {
		t.Fatal(err)
	}
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	if again := parse(t, encode(t, m)); len(again.Graph.Nodes()) != depth {
		t.Errorf("%d nodes came back", len(again.Graph.Nodes()))
	}
	end := g.Add("Neg", []*onnx.Value{w}, []string{"end"}).Output(0)
	g.SetOutput(0, end)
	if removed := g.RemoveDead(nil); removed != depth {
		t.Errorf("%d nodes removed, want %d", removed, depth)
	}
}
