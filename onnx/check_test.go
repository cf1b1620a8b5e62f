package onnx

import (
	"strings"
	"testing"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// sample is a model with an initializer, an If whose branches read around them,
// and a function that the main graph calls.
func sample() *Model {
	m := NewModel(10, 21)
	m.Opsets = append(m.Opsets, OpsetImport{"my", 1})
	g := m.Graph
	c := g.AddInput("c", TensorType(tensor.Bool))
	x := g.AddInput("x", TensorType(tensor.Float32, 2))
	w := g.AddInitializer("w", tensor.Of([]float32{1, 2}, 2))
	a := g.Add("Add", []*Value{x, w}, []string{"a"}).Output(0)
	branch := func(name string) *Attribute {
		s := g.NewSubgraph(name)
		s.AddOutput(s.Add("Mul", []*Value{a, x}, []string{name + "_out"}).Output(0))
		return GraphAttribute(name, s)
	}
	y := g.Add("If", []*Value{c}, []string{"y"}, branch("then_branch"), branch("else_branch")).Output(0)
	call := g.Add("F", []*Value{y}, []string{"z"})
	call.Domain = "my"
	g.AddOutput(call.Output(0))
	f := &Function{Domain: "my", Name: "F", Opsets: []OpsetImport{{"", 21}, {"my", 1}}, Body: m.newGraph(nil)}
	f.Body.function = f
	p := f.Body.AddInput("p", nil)
	f.Body.AddOutput(f.Body.Add("Neg", []*Value{p}, []string{"q"}).Output(0))
	m.Functions = append(m.Functions, f)
	return m
}

func TestCheckFindsWhatIsBroken(t *testing.T) {
	if err := sample().Check(); err != nil {
		t.Fatalf("the sound model: %v", err)
	}
	for _, c := range []struct {
		name  string
		smash func(m *Model, g *Graph)
		want  string
	}{
		{"order", func(m *Model, g *Graph) { g.nodes[0], g.nodes[1] = g.nodes[1], g.nodes[0] }, "made later"},
		{"missing use", func(m *Model, g *Graph) { g.Find("w").uses = nil }, `value "w" has 1 readers and lists 0`},
		{"use of another input", func(m *Model, g *Graph) { g.Find("w").uses[0].Input = 7 }, `does not read it there`},
		{"use twice", func(m *Model, g *Graph) { v := g.Find("a"); v.uses[1] = v.uses[0] }, `and that thinks it is at`},
		{"use by a removed node", func(m *Model, g *Graph) {
			n := g.nodes[2]
			n.inputs, n.outputs[0].outputOf = nil, nil
			g.outputs, g.outputInfo = nil, nil
			g.Remove(n)
		}, `value "y" has 0 readers and lists 1`},
		{"many uses twice", func(m *Model, g *Graph) {
			n := g.Add("Concat", make([]*Value, 12), []string{"k"})
			for i := range 12 {
				n.SetInput(i, g.Find("w"))
			}
			v := g.Find("w")
			v.uses[4] = v.uses[3]
		}, `and that thinks it is at`},
		{"producer", func(m *Model, g *Graph) { g.Find("a").producer = g.nodes[1] }, `made by something else`},
		{"made twice", func(m *Model, g *Graph) { g.nodes[1].outputs = append(g.nodes[1].outputs, g.Find("a")) }, `has two places`},
		{"removed producer", func(m *Model, g *Graph) { g.Remove(g.nodes[0]) }, "made by a node that has been removed"},
		{"removed node counted wrong", func(m *Model, g *Graph) { g.Remove(g.Add("Neg", nil, []string{"k"})); g.removed = 0 }, "1 removed nodes are counted as 0"},
		{"value of nothing", func(m *Model, g *Graph) { g.inputs = g.inputs[:1]; g.Find("x"); g.nodes[0].inputs[0].isInput = false }, "made by nothing"},
		{"input not marked", func(m *Model, g *Graph) { g.inputs[0].isInput = false }, "not marked"},
		{"node in two places", func(m *Model, g *Graph) { g.nodes = append(g.nodes, g.nodes[0]) }, "two places"},
		{"node of another graph", func(m *Model, g *Graph) { g.nodes[0].graph = m.Functions[0].Body }, "thinks it is part of"},
		{"value of another graph", func(m *Model, g *Graph) { g.Find("a").graph = m.Functions[0].Body }, "thinks it is part of"},
		{"value of another model", func(m *Model, g *Graph) { g.nodes[0].inputs[0] = sample().Graph.AddInput("far", nil) }, "another model"},
		{"graph of another model", func(m *Model, g *Graph) { g.model = sample() }, "another model"},
		{"owner", func(m *Model, g *Graph) { g.nodes[1].Subgraphs()[0].owner = g.nodes[0] }, "another owner"},
		{"graph in two places", func(m *Model, g *Graph) { a := g.nodes[1].attributes; a[1].graphs[0] = a[0].graphs[0] }, "stands in two places"},
		{"out of scope", func(m *Model, g *Graph) {
			g.nodes[2].SetInput(0, g.nodes[1].Subgraphs()[0].nodes[0].outputs[0])
		}, "cannot be seen here"},
		{"name twice", func(m *Model, g *Graph) { g.Find("a").name = "x" }, `two values bear the name "x"`},
		{"shadowing", func(m *Model, g *Graph) { g.nodes[1].Subgraphs()[0].nodes[0].outputs[0].name = "x" }, "shadows"},
		{"name means another", func(m *Model, g *Graph) {
			s := g.nodes[1].Subgraphs()[0]
			s.AddInput("a", nil)
		}, "another one bears that name"},
		{"empty name", func(m *Model, g *Graph) { g.Find("a").name = "" }, "empty name"},
		{"name list", func(m *Model, g *Graph) { m.FreshName("k"); delete(m.names, "a") }, "list of names"},
		{"output unaware", func(m *Model, g *Graph) { g.outputs[0].outputOf = nil }, "does not know that it is one"},
		{"output too aware", func(m *Model, g *Graph) { v := g.Find("a"); v.outputOf = append(v.outputOf, g) }, "knows of 1"},
		{"output declarations", func(m *Model, g *Graph) { g.outputInfo = nil }, "declarations"},
		{"outer value given back", func(m *Model, g *Graph) { g.nodes[1].Subgraphs()[0].SetOutput(0, g.Find("x")) }, "takes an Identity"},
		{"initializer without tensor", func(m *Model, g *Graph) { g.Find("w").init = nil }, "no tensor"},
		{"initializer twice", func(m *Model, g *Graph) { g.initializers = append(g.initializers, g.initializers[0]) }, "two places"},
		{"default not stored", func(m *Model, g *Graph) { g.Find("x").init = NewTensor(tensor.Of([]float32{1, 2}, 2)) }, "not among the initializers"},
		{"initializer type", func(m *Model, g *Graph) { g.Find("w").Type = TensorType(tensor.Int8, 2) }, "declared INT8[2], but its tensor is FLOAT[2]"},
		{"initializer shape", func(m *Model, g *Graph) { g.Find("w").SetInitializer(NewTensor(tensor.Scalar(float32(1)))) }, "declared FLOAT[2], but its tensor is FLOAT[]"},
		{"no import", func(m *Model, g *Graph) { g.nodes[0].Domain = "com.example" }, `imports no opset for its domain "com.example"`},
		{"function without import", func(m *Model, g *Graph) { m.Functions[0].Opsets = nil }, `imports no opset for its domain ""`},
		{"recursion", func(m *Model, g *Graph) {
			n := m.Functions[0].Body.nodes[0]
			n.Domain, n.OpType = "my", "F"
		}, `function "F" calls itself`},
		{"functions of one name", func(m *Model, g *Graph) { m.Functions = append(m.Functions, m.Functions[0]) }, "two functions"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := sample()
			c.smash(m, m.Graph)
			err := m.Check()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Check: %v, want %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Error("the error has more than one line")
			}
		})
	}
}

// Functions that call each other in a long chain are no recursion, and must not
// become one in the checker.
func TestCheckOfManyFunctions(t *testing.T) {
	m := sample()
	for i := range 20_000 {
		f := &Function{Domain: "my", Name: "F" + strings.Repeat("'", i%7) + string(rune('a'+i%26)) + quote(string(rune(i))), Opsets: []OpsetImport{{"", 21}, {"my", 1}}, Body: m.newGraph(nil)}
		f.Body.function = f
		p := f.Body.AddInput("p", nil)
		n := f.Body.Add(m.Functions[len(m.Functions)-1].Name, []*Value{p}, []string{"q"})
		n.Domain = "my"
		f.Body.AddOutput(n.Output(0))
		m.Functions = append(m.Functions, f)
	}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
}
