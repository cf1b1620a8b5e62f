package onnx_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/text"
)

// show gives the main graph as text without the types of values in between.
func show(t testing.TB, m *onnx.Model) string {
	t.Helper()
	var b strings.Builder
	if err := text.Print(&b, m, text.Options{OmitTypes: true}); err != nil {
		t.Fatal(err)
	}
	_, graph, _ := strings.Cut(b.String(), "\n")
	return graph
}

// expect checks that the model stands and prints as want does.
func expect(t testing.TB, m *onnx.Model, want string) {
	t.Helper()
	if err := m.Check(); err != nil {
		t.Errorf("Check: %v", err)
	}
	if diff := cmp.Diff(show(t, text.MustParse(t, want)), show(t, m)); diff != "" {
		t.Errorf("graph differs (-want +got):\n%s", diff)
	}
}

// node gives the node that makes the value of that name anywhere in the model.
func node(t testing.TB, m *onnx.Model, output string) *onnx.Node {
	t.Helper()
	for n := range m.Nodes() {
		for _, v := range n.Outputs() {
			if v != nil && v.Name() == output {
				return n
			}
		}
	}
	t.Fatalf("no node makes %q", output)
	return nil
}

func TestForward(t *testing.T) {
	for _, c := range []struct {
		name     string
		before   string
		node, to string // the output of the node to go, and the value to read instead
		same     bool   // nothing changes
		after    string // without the node, if it can go
	}{
		{
			name:   "readers in the graph and in a branch",
			before: `(bool c, float[2] x) => (y) { a = Identity (x) b = Neg (a) y = If (c) <then_branch = t () => (p) { p = Add (a, b) }, else_branch = e () => (q) { q = Neg (b) }> }`,
			node:   "a", to: "x",
			after: `(bool c, float[2] x) => (y) { b = Neg (x) y = If (c) <then_branch = t () => (p) { p = Add (x, b) }, else_branch = e () => (q) { q = Neg (b) }> }`,
		},
		{
			name:   "an output passes its name on",
			before: `(float[2] x) => (float[N] y) { a = Neg (x) b = Abs (a) y = Identity (a) }`,
			node:   "y", to: "a",
			after: `(float[2] x) => (float[N] y) { y = Neg (x) b = Abs (y) }`,
		},
		{
			name:   "the type that the output declares stays",
			before: `(float[2] x) => (float[N] y) <float[2] a> { a = Neg (x) y = Identity (a) }`,
			node:   "y", to: "a",
			after: `(float[2] x) => (float[N] y) { y = Neg (x) }`,
		},
		{
			name:   "an output that is listed twice",
			before: `(float[2] x) => (float[2] y, float[2] y) { a = Neg (x) y = Identity (a) }`,
			node:   "y", to: "a",
			after: `(float[2] x) => (float[2] y, float[2] y) { y = Neg (x) }`,
		},
		{
			name:   "a graph input cannot be renamed",
			before: `(float[2] x) => (float[2] y) { y = Cast <to = 1> (x) }`,
			node:   "y", to: "x",
			after: `(float[2] x) => (float[2] y) { y = Identity (x) }`,
		},
		{
			name:   "an output cannot bear two names",
			before: `(float[2] x) => (float[2] a, float[2] y) { a = Neg (x) y = Cast <to = 1> (a) }`,
			node:   "y", to: "a",
			after: `(float[2] x) => (float[2] a, float[2] y) { a = Neg (x) y = Identity (a) }`,
		},
		{
			name:   "a stored tensor becomes the output",
			before: `() => (float[2] y) <float[2] w = {1, 2}> { y = Identity (w) }`,
			node:   "y", to: "w",
			after: `() => (float[2] y) <float[2] y = {1, 2}> { }`,
		},
		{
			name:   "a stored tensor of another type than the output declares",
			before: `() => (float[3] y) <float[2] w = {1, 2}> { y = Cast <to = 1> (w) }`,
			node:   "y", to: "w",
			after: `() => (float[3] y) <float[2] w = {1, 2}> { y = Identity (w) }`,
		},
		{
			name:   "a node that makes more than one thing",
			before: `(float[2] x) => (float[2] y, bool[2] m) { y, m = Dropout (x) }`,
			node:   "y", to: "x",
			after: `(float[2] x) => (float[2] y, bool[2] m) { y_old, m = Dropout (x) y = Identity (x) }`,
		},
		{
			name:   "a branch gives back what it makes",
			before: `(bool c, float[2] x) => (y) { y = If (c) <then_branch = t () => (p) { o = Neg (x) p = Identity (o) }, else_branch = e () => (q) { q = Neg (x) }> }`,
			node:   "p", to: "o",
			after: `(bool c, float[2] x) => (y) { y = If (c) <then_branch = t () => (o) { o = Neg (x) }, else_branch = e () => (q) { q = Neg (x) }> }`,
		},
		{
			name:   "a branch must not give back what is around it",
			before: `(bool c, float[2] x) => (y) { y = If (c) <then_branch = t () => (p) { p = Cast <to = 1> (x) }, else_branch = e () => (q) { q = Neg (x) }> }`,
			node:   "p", to: "x",
			after: `(bool c, float[2] x) => (y) { y = If (c) <then_branch = t () => (p_identity) { p_identity = Identity (x) }, else_branch = e () => (q) { q = Neg (x) }> }`,
		},
		{
			name:   "a body must not pass its input on",
			before: `(int64 n, bool c, float[2] x) => (y) { y = Loop (n, c, x) <body = b (int64 i, bool go, float[2] s) => (g2, s2) { g2 = Identity (go) s2 = Neg (s) }> }`,
			node:   "g2", to: "go", same: true,
			after: `(int64 n, bool c, float[2] x) => (y) { y = Loop (n, c, x) <body = b (int64 i, bool go, float[2] s) => (g2, s2) { g2 = Identity (go) s2 = Neg (s) }> }`,
		},
		{
			name:   "an Identity that must stay",
			before: `(float[2] x) => (float[2] y) { y = Identity (x) }`,
			node:   "y", to: "x", same: true,
			after: `(float[2] x) => (float[2] y) { y = Identity (x) }`,
		},
		{
			name:   "a sequence in an opset whose Identity takes none",
			before: `<ir_version: 7, opset_import: ["": 13]> (seq(float) x) => (seq(float) y) { y = Foo (x) }`,
			node:   "y", to: "x", same: true,
			after: `<ir_version: 7, opset_import: ["": 13]> (seq(float) x) => (seq(float) y) { y = Foo (x) }`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := text.MustParse(t, c.before)
			n := node(t, m, c.node)
			g, old := n.Graph(), n.Output(0)
			if changed := g.Forward(n, old, g.Find(c.to)); changed == c.same {
				t.Errorf("Forward says changed: %v", changed)
			}
			if !old.HasUses() && (n.Output(1) == nil || !n.Output(1).HasUses()) {
				g.Remove(n)
			}
			if err := g.Sort(); err != nil {
				t.Fatal(err)
			}
			expect(t, m, c.after)
		})
	}
}

func TestReplaceUsesLeavesOutputs(t *testing.T) {
	m := text.MustParse(t, `(float[2] x) => (float[2] y) { y = Neg (x) z = Add (y, y) }`)
	g := m.Graph
	y := g.Find("y")
	y.ReplaceUses(y)
	if len(y.Uses()) != 2 {
		t.Fatalf("%d uses after replacing a value by itself", len(y.Uses()))
	}
	y.ReplaceUses(g.Find("x"))
	expect(t, m, `(float[2] x) => (float[2] y) { y = Neg (x) z = Add (x, x) }`)
}

func TestRemoveDead(t *testing.T) {
	m := text.MustParse(t, `(bool c, float[2] x) => (float[2] y) {
		a = Neg (x)
		b = Abs (a)
		r = RandomNormalLike (x)
		y = If (c) <then_branch = t () => (p) { dead = Add (b, b) p = Neg (x) }, else_branch = e () => (q) { q = Neg (x) }>
		u, v = Split (a)
		w = If (c) <then_branch = f () => (p2) { p2 = Neg (a) }, else_branch = h () => (q2) { q2 = Neg (b) }>
	}`)
	if n := m.Graph.RemoveDead(func(n *onnx.Node) bool { return n.OpType == "RandomNormalLike" }); n != 5 {
		t.Errorf("%d nodes removed", n)
	}
	expect(t, m, `(bool c, float[2] x) => (float[2] y) {
		r = RandomNormalLike (x)
		y = If (c) <then_branch = t () => (p) { p = Neg (x) }, else_branch = e () => (q) { q = Neg (x) }>
	}`)
}

// A node that goes lets go of what its branches read, and of what they give back.
func TestRemoveDeadTakesWhatBranchesHeld(t *testing.T) {
	m := text.MustParse(t, `(bool c, float[2] x) => (float[2] y) {
		a = Neg (x) b = Neg (x)
		w = If (c) <then_branch = t () => (a) { }, else_branch = e () => (q) { q = Abs (b) }>
		y = Abs (x)
	}`)
	if n := m.Graph.RemoveDead(nil); n != 3 {
		t.Errorf("%d nodes removed", n)
	}
	expect(t, m, `(bool c, float[2] x) => (float[2] y) { y = Abs (x) }`)
}

// A loop over nodes may remove and look at names without losing its place.
func TestNodesMayBeRemovedWhileTheyAreListed(t *testing.T) {
	m := text.MustParse(t, `(float[2] x) => (y) { a = Neg (x) b = Neg (x) c = Neg (x) d = Neg (x) y = Abs (x) }`)
	met := 0
	for _, n := range m.Graph.Nodes() {
		met++
		if n.OpType == "Neg" {
			m.Graph.Remove(n)
			m.FreshName(fmt.Sprint("n", met))
		}
	}
	if met != 5 {
		t.Errorf("%d nodes met", met)
	}
	expect(t, m, `(float[2] x) => (y) { y = Abs (x) }`)
}

func TestMoveNodesInlinesABranch(t *testing.T) {
	m := text.MustParse(t, `(float[2] x) => (float[2] y) <bool c = {1}> {
		z = Neg (x)
		y = If (c) <then_branch = t () => (p) <float[2] w = {1, 2}, float[2] o> { o = Add (z, w) p = Mul (o, o) }, else_branch = e () => (q) { q = Neg (x) }>
	}`)
	n := node(t, m, "y")
	branch := n.Attribute("then_branch").Graph()
	results := m.Graph.MoveNodes(branch)
	if !m.Graph.Forward(n, n.Output(0), results[0]) {
		t.Fatal("nothing has changed")
	}
	m.Graph.Remove(n)
	m.Graph.RemoveInitializers(func(v *onnx.Value) bool { return !v.HasUses() })
	expect(t, m, `(float[2] x) => (float[2] y) <float[2] w = {1, 2}> { z = Neg (x) o = Add (z, w) y = Mul (o, o) }`)
	if o := parse(t, encode(t, m)).Graph.Find("o"); o.Type.String() != "FLOAT[2]" {
		t.Errorf("the file does not declare the type of o any more: %s", o.Type)
	}
}

func TestStoreAs(t *testing.T) {
	d := tensor.Of([]float32{3, 4}, 2)
	m := text.MustParse(t, `(float[2] x, float[2] s) => (float[N] y, float[2] z) { y, k = Foo (x) z = Add (k, s) }`)
	g := m.Graph
	g.StoreAs(g.Find("y"), onnx.NewTensor(d))
	g.StoreAs(g.Find("s"), onnx.NewTensor(d))
	if y := g.Find("y"); y.Type.String() != "FLOAT[N]" {
		t.Errorf("output y is declared %s now", y.Type)
	}
	g.Find("y").Type = onnx.TensorType(tensor.Float32, 2)
	expect(t, m, `(float[2] x) => (float[2] y, float[2] z) <float[2] y = {3, 4}, float[2] s = {3, 4}> { "", k = Foo (x) z = Add (k, s) }`)
	g.StoreAs(g.Find("s"), onnx.NewTensor(tensor.Of([]float32{5}, 1)))
	if s := g.Find("s"); s.Type.String() != "FLOAT[1]" || len(g.Initializers()) != 2 {
		t.Errorf("s is %s, %d initializers", s.Type, len(g.Initializers()))
	}
}

func TestRemoveInitializers(t *testing.T) {
	for ir, want := range map[int]string{
		3: `<ir_version: 3, opset_import: ["": 9]> (float[2] x) => (y) { y = Neg (x) }`,
		8: `<ir_version: 8, opset_import: ["": 9]> (float[2] x, float[2] w) => (y) { y = Neg (x) }`,
	} {
		m := text.MustParse(t, fmt.Sprintf(`<ir_version: %d, opset_import: ["": 9]> (float[2] x, float[2] w = {1, 2}) => (y) <float[1] k = {1}> { y = Neg (x) }`, ir))
		m.FreshName("k") // the model keeps a list of names from here on
		if n := m.Graph.RemoveInitializers(func(v *onnx.Value) bool { return !v.HasUses() }); n != 2 {
			t.Errorf("%d removed", n)
		}
		if m.FreshName("k") != "k" {
			t.Error("the name k is still taken")
		}
		expect(t, m, want)
	}
}

// Before IR version 4 whatever is stored is listed as an input, too; new tensors as well.
func TestInitializersAreInputsBeforeIRVersion4(t *testing.T) {
	m := text.MustParse(t, `<ir_version: 3, opset_import: ["": 9]> (float[2] x) => (y) { y = Neg (x) }`)
	w := m.Graph.AddInitializer("x", tensor.Of([]float32{1, 2}, 2))
	node(t, m, "y").SetInput(0, w)
	again := parse(t, encode(t, m))
	expect(t, again, `<ir_version: 3, opset_import: ["": 9]> (float[2] x, float[2] x_1 = {1, 2}) => (y) { y = Neg (x_1) }`)
}

func TestSetInputsAndOutputs(t *testing.T) {
	m := text.MustParse(t, `(float[2] x, float[2] z) => (y) { y = Clip (x, z, z) }`)
	g, n := m.Graph, node(t, m, "y")
	x, z := g.Find("x"), g.Find("z")
	n.SetInput(4, x)
	expect(t, m, `(float[2] x, float[2] z) => (y) { y = Clip (x, z, z, "", x) }`)
	n.SetInput(4, nil)
	n.SetInputs(n.Inputs()[1:]...)
	expect(t, m, `(float[2] x, float[2] z) => (y) { y = Clip (z, z) }`)
	n.SetInputs(z, nil, x, nil, nil)
	expect(t, m, `(float[2] x, float[2] z) => (y) { y = Clip (z, "", x) }`)
	other := g.Add("Split", []*onnx.Value{x, nil}, []string{"p", "", "q"})
	y := n.Output(0)
	n.SetOutputs()
	other.SetOutputs(other.Output(0), y)
	g.Remove(n)
	expect(t, m, `(float[2] x, float[2] z) => (y) { p, y = Split (x) }`)
	m.FreshName("p") // the model keeps a list of names from here on
	other.DropOutput(0)
	expect(t, m, `(float[2] x, float[2] z) => (y) { "", y = Split (x) }`)
	if m.FreshName("p") != "p" {
		t.Error("the name p is still taken")
	}
}

// An attribute that goes takes its subgraph with it, and what that reads.
func TestReplacedSubgraphsLetGo(t *testing.T) {
	const source = `(bool c, float[2] x) => (y) { a = Neg (x) y = If (c) <then_branch = t () => (p) { p = Abs (a) }, else_branch = e () => (q) { q = Abs (a) }> }`
	edits := map[string]func(*onnx.Node, *onnx.Graph){
		"drop":  func(n *onnx.Node, _ *onnx.Graph) { n.DropAttribute("then_branch") },
		"clear": func(n *onnx.Node, _ *onnx.Graph) { n.ClearAttributes() },
		"replace": func(n *onnx.Node, g *onnx.Graph) {
			s := g.NewSubgraph("new")
			s.AddOutput(s.Add("Abs", []*onnx.Value{g.Find("x")}, []string{"r"}).Output(0))
			n.SetAttribute(onnx.GraphAttribute("then_branch", s))
		},
		"move": func(n *onnx.Node, g *onnx.Graph) {
			other := g.Add("If", []*onnx.Value{g.Find("c")}, []string{"z"}, n.Attribute("then_branch"))
			n.DropAttribute("then_branch")
			if other.Subgraphs()[0].Owner() != other {
				t.Error("the moved branch has another owner")
			}
		},
	}
	left := map[string]int{"drop": 1, "clear": 0, "replace": 1, "move": 2}
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			m := text.MustParse(t, source)
			edit(node(t, m, "y"), m.Graph)
			if err := m.Check(); err != nil {
				t.Error(err)
			}
			if uses := len(m.Graph.Find("a").Uses()); uses != left[name] {
				t.Errorf("a is read %d times, want %d", uses, left[name])
			}
		})
	}
}

func TestNames(t *testing.T) {
	m := text.MustParse(t, `(bool c, float[2] x) => (y) {
		y = If (c) <then_branch = t () => (x_1) { x_1 = Neg (x) }, else_branch = e () => (r) <float[1] x = {1}> { x_1 = Neg (x) r = Add (x_1, x) }>
	}`)
	if got := m.FreshName("x"); got != "x_2" {
		t.Errorf("FreshName gives %q", got)
	}
	if got := m.FreshName("free"); got != "free" {
		t.Errorf("FreshName gives %q", got)
	}
	if got := parse(t, marshal(t, everything())).FreshName("nobody"); got != "nobody_1" {
		t.Errorf("%q would take over a stale line of value_info", got)
	}
	if m.Check() == nil {
		t.Error("Check does not see that a branch shadows x")
	}
	if n := m.MakeNamesUnique(); n != 2 {
		t.Errorf("%d renamed", n)
	}
	seen := map[string]bool{}
	for g := range m.Graphs() {
		for v := range g.Values() {
			if seen[v.Name()] {
				t.Errorf("%q twice", v.Name())
			}
			seen[v.Name()] = true
		}
	}
	expect(t, m, show(t, m))
	sameMessage(t, encode(t, parse(t, encode(t, m))), encode(t, m))
}

func TestIsolateBranchOutputs(t *testing.T) {
	m := text.MustParse(t, `(bool c, float[2] x) => (y) { y = If (c) <then_branch = t () => (x) { }, else_branch = e () => (q) { q = Neg (x) }> }`)
	if err := m.Check(); err == nil || !strings.Contains(err.Error(), "Identity") {
		t.Errorf("Check: %v", err)
	}
	if n := m.IsolateBranchOutputs(); n != 1 {
		t.Errorf("%d added", n)
	}
	expect(t, m, `(bool c, float[2] x) => (y) { y = If (c) <then_branch = t () => (float[2] x_out) { x_out = Identity (x) }, else_branch = e () => (q) { q = Neg (x) }> }`)
}

func TestCaptures(t *testing.T) {
	m := text.MustParse(t, `(bool c, float[2] x, float[2] z) => (y) {
		y = If (c) <then_branch = t () => (p) { p = If (c) <then_branch = u () => (k) { k = Add (z, own) }, else_branch = v () => (l) { l = Neg (x) }> own = Neg (z) }, else_branch = e () => (q) { q = Neg (x) }>
	}`)
	var names []string
	for _, v := range node(t, m, "y").Attribute("then_branch").Graph().Captures() {
		names = append(names, v.Name())
	}
	if fmt.Sprint(names) != "[c z x]" {
		t.Errorf("captures %v", names)
	}
}

func TestAnnotateValues(t *testing.T) {
	m := text.MustParse(t, `(float[2] x) => (y) <float[9] stale> { stale = Neg (x) y = Abs (stale) }`)
	stale := m.Graph.Find("stale")
	stale.Type = onnx.TensorType(tensor.Float32, 2)
	m.Graph.AnnotateValues()
	again := parse(t, encode(t, m))
	if got := again.Graph.Find("stale").Type.String(); got != "FLOAT[2]" {
		t.Errorf("the file declares %s", got)
	}
	m.Graph.ClearValueInfo()
	if got := parse(t, encode(t, m)).Graph.Find("stale").Type; got != nil {
		t.Errorf("the file declares %s", got)
	}
}
