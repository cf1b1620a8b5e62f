package onnx

import (
	"fmt"
	"iter"
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// Graph is a list of nodes with inputs, outputs and stored tensors: the main
// graph, a function body, or a branch or body inside a node.
type Graph struct {
	Name string
	Doc  string

	model        *Model
	owner        *Node // the node whose attribute holds the graph; nil for main graphs and function bodies
	function     *Function
	nodes        []*Node
	removed      int // nodes in the list that are removed already
	inputs       []*Value
	outputs      []*Value
	outputInfo   [][]byte // the ValueInfoProto that declares each output; nil for one not read
	initializers []*Value
	valueInfo    []infoEntry
	encoded      []byte // the GraphProto as read: metadata, quantization annotations, unknown fields
}

// infoEntry is one line of value_info: of a value, or of a name that nothing bears.
type infoEntry struct {
	value    *Value
	dangling []byte
}

func (m *Model) newGraph(owner *Node) *Graph {
	return &Graph{model: m, owner: owner}
}

// Model is the model the graph belongs to.
func (g *Graph) Model() *Model { return g.model }

// Owner is the node that holds the graph as a branch or body; nil for a main graph or function body.
func (g *Graph) Owner() *Node { return g.owner }

// Outer is the graph around this one; nil for a main graph or function body.
func (g *Graph) Outer() *Graph {
	if g.owner == nil {
		return nil
	}
	return g.owner.graph
}

// Function is the function whose body the graph is, or lies in; nil for the main graph and those in it.
func (g *Graph) Function() *Function {
	for g.owner != nil {
		g = g.owner.graph
	}
	return g.function
}

// Encloses says whether g is h or lies around it, so that h sees g's values.
func (g *Graph) Encloses(h *Graph) bool {
	for ; h != nil; h = h.Outer() {
		if h == g {
			return true
		}
	}
	return false
}

// Opset is the version that g's nodes mean by operators of domain: the
// function's import inside a function body, else the model's; 0 if there is none.
func (g *Graph) Opset(domain string) int {
	if f := g.Function(); f != nil {
		return findOpset(f.Opsets, domain)
	}
	return g.model.Opset(domain)
}

// Inputs lists the graph's inputs in order; before IR version 4 initializers are among them.
func (g *Graph) Inputs() []*Value { return g.inputs }

// Outputs lists the graph's outputs in order. In a branch they may be values of a graph around it.
func (g *Graph) Outputs() []*Value { return g.outputs }

// Initializers lists the values whose tensors the graph stores.
func (g *Graph) Initializers() []*Value { return g.initializers }

// Nodes lists the nodes, without the removed ones. An edit does not change a list
// that was given out before: a loop over it meets nodes that have been removed
// since ([Node.Removed]), and none that have been added.
func (g *Graph) Nodes() []*Node {
	if g.removed > 0 {
		g.nodes = slices.DeleteFunc(slices.Clone(g.nodes), (*Node).Removed)
		g.removed = 0
	}
	return g.nodes[:len(g.nodes):len(g.nodes)]
}

// Values yields every value that the graph itself defines.
func (g *Graph) Values() iter.Seq[*Value] {
	return func(yield func(*Value) bool) {
		for _, v := range g.inputs {
			if !yield(v) {
				return
			}
		}
		for _, v := range g.initializers {
			if !v.isInput && !yield(v) {
				return
			}
		}
		for _, n := range g.Nodes() {
			for _, v := range n.outputs {
				if v != nil && !yield(v) {
					return
				}
			}
		}
	}
}

// NewSubgraph makes an empty graph for an attribute of a node of g. Its nodes
// see g's values.
func (g *Graph) NewSubgraph(name string) *Graph {
	// The owner is set for good when a node takes the attribute; until then a
	// stand-in in g gives the scope.
	s := g.model.newGraph(&Node{graph: g})
	s.Name = name
	return s
}

// AddInput adds a graph input.
func (g *Graph) AddInput(name string, t *Type) *Value {
	v := g.model.newValue(g, name)
	v.Type, v.isInput = t, true
	g.inputs = append(g.inputs, v)
	g.model.takeName(name)
	return v
}

// RemoveInput takes an input that nobody reads off the list.
func (g *Graph) RemoveInput(v *Value) {
	g.inputs = slices.DeleteFunc(g.inputs, func(w *Value) bool { return w == v })
	v.isInput = false
	if v.init == nil {
		g.model.forgetName(v.name)
	}
}

// AddOutput lists v as the graph's next output.
func (g *Graph) AddOutput(v *Value) {
	g.outputs = append(g.outputs, v)
	g.outputInfo = append(g.outputInfo, nil)
	v.outputOf = append(v.outputOf, g)
}

// SetOutput makes v output i instead of the value that was. In a main graph v must bear its name.
func (g *Graph) SetOutput(i int, v *Value) {
	old := g.outputs[i]
	at := slices.Index(old.outputOf, g)
	old.outputOf = slices.Delete(old.outputOf, at, at+1)
	g.outputs[i] = v
	v.outputOf = append(v.outputOf, g)
}

// AddInitializer stores d under a name made fresh from base.
func (g *Graph) AddInitializer(base string, d *tensor.Dense) *Value {
	return g.AddInitializerTensor(g.model.FreshName(base), NewTensor(d))
}

// AddInitializerTensor stores t under a name that must be free.
func (g *Graph) AddInitializerTensor(name string, t *Tensor) *Value {
	v := g.model.newValue(g, name)
	v.init = t
	v.Type = TensorType(t.Type(), t.Shape()...)
	g.initializers = append(g.initializers, v)
	g.model.takeName(name)
	return v
}

// StoreAs turns a value that a node of g made, or that is an input nobody may
// set any more, into an initializer that holds t. The node lets go of it. The type
// that an output of the graph declares stays, if t is of it.
func (g *Graph) StoreAs(v *Value, t *Tensor) {
	if n := v.producer; n != nil {
		n.outputs[slices.Index(n.outputs, v)] = nil
		v.producer = nil
	}
	if v.isInput {
		g.inputs = slices.DeleteFunc(g.inputs, func(w *Value) bool { return w == v })
		v.isInput = false
	}
	if v.init == nil {
		g.initializers = append(g.initializers, v)
	}
	v.init, v.sparse = t, t.sparse != nil
	if !v.IsOutput() || v.fits() != nil || v.Type == nil {
		v.Type = TensorType(t.Type(), t.Shape()...)
	}
}

// RemoveInitializers drops the stored tensors for which drop answers true. They
// may not be read by anyone. Those of them that are inputs as well stay inputs,
// unless the IR version is below 4, where that listing was a formality.
func (g *Graph) RemoveInitializers(drop func(*Value) bool) (removed int) {
	g.initializers = slices.DeleteFunc(slices.Clone(g.initializers), func(v *Value) bool {
		if !drop(v) {
			return false
		}
		removed++
		v.init = nil
		switch {
		case !v.isInput:
			g.model.forgetName(v.name)
		case g.model.IRVersion < 4 && g.owner == nil:
			g.RemoveInput(v)
		}
		return true
	})
	return removed
}

// Add appends a node. Its outputs are new values named after outputs; an empty
// name leaves that output out. The list is in order again after [Graph.Sort].
func (g *Graph) Add(opType string, inputs []*Value, outputs []string, attributes ...*Attribute) *Node {
	n := &Node{OpType: opType, graph: g}
	n.SetInputs(inputs...)
	for _, name := range outputs {
		var v *Value
		if name != "" {
			v = g.model.newValue(g, name)
			v.producer = n
			g.model.takeName(name)
		}
		n.outputs = append(n.outputs, v)
	}
	for _, a := range attributes {
		n.SetAttribute(a)
	}
	g.nodes = append(g.nodes, n)
	return n
}

// Remove takes a node out of its graph, with everything inside its subgraphs.
// Nobody may read its outputs.
func (g *Graph) Remove(n *Node) {
	if n.removed {
		return
	}
	n.removed = true
	g.removed++
	for i, v := range n.inputs {
		if v != nil {
			v.dropUse(n, i)
		}
	}
	for _, v := range n.outputs {
		if v != nil {
			g.model.forgetName(v.name)
		}
	}
	for _, s := range n.Subgraphs() {
		if s.owner == n {
			s.dismantle()
		}
	}
}

// dismantle lets go of everything a graph's contents hold on to outside it.
func (g *Graph) dismantle() {
	g.releaseOutputs()
	for _, n := range slices.Clone(g.Nodes()) {
		g.Remove(n)
	}
	for _, v := range g.inputs {
		g.model.forgetName(v.name)
	}
	for _, v := range g.initializers {
		if !v.isInput {
			g.model.forgetName(v.name)
		}
	}
}

// RemoveDead removes every node whose outputs nobody reads, for which keep does
// not answer true, in g and the graphs inside it. It returns how many.
func (g *Graph) RemoveDead(keep func(*Node) bool) (removed int) {
	nodes := g.Nodes()
	for i := len(nodes) - 1; i >= 0; i-- {
		removed += g.removeIfDead(nodes[i], keep)
	}
	return removed
}

func (g *Graph) removeIfDead(n *Node, keep func(*Node) bool) (removed int) {
	work := []*Node{n}
	for len(work) > 0 {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		if n.removed || keep != nil && keep(n) || slices.ContainsFunc(n.outputs, func(v *Value) bool { return v != nil && v.HasUses() }) {
			continue
		}
		inputs := n.inputs
		n.graph.Remove(n)
		removed++
		for _, v := range inputs {
			if v != nil && v.producer != nil {
				work = append(work, v.producer)
			}
		}
	}
	for _, s := range n.Subgraphs() {
		if !n.removed {
			removed += s.RemoveDead(keep)
		}
	}
	return removed
}

// ClearValueInfo forgets what the file declared for values in between.
func (g *Graph) ClearValueInfo() { g.valueInfo = nil }

// AnnotateValues makes value_info say the type of every node output that is no
// output of the graph and has a type, once each, in order.
func (g *Graph) AnnotateValues() {
	g.valueInfo = g.valueInfo[:0]
	for _, n := range g.Nodes() {
		for _, v := range n.outputs {
			if v != nil && v.Type != nil && !slices.Contains(v.outputOf, g) {
				g.valueInfo = append(g.valueInfo, infoEntry{value: v})
			}
		}
	}
}

// Find gives the value of that name that g defines or sees, or nil.
func (g *Graph) Find(name string) *Value {
	for h := g; h != nil; h = h.Outer() {
		for v := range h.Values() {
			if v.name == name {
				return v
			}
		}
	}
	return nil
}

// Metadata lists the graph's metadata_props.
func (g *Graph) Metadata() []Property { return decodeProperties(g.encoded, graphMetadata) }

// Where says which graph this is, for messages.
func (g *Graph) Where() string {
	switch {
	case g.owner != nil && g.Name != "":
		return fmt.Sprintf("graph %q of %s", g.Name, g.owner.Where())
	case g.owner != nil:
		return "a graph of " + g.owner.Where()
	case g.function != nil:
		return fmt.Sprintf("function %q", g.function.Name)
	}
	return "the main graph"
}
