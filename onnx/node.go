package onnx

import (
	"slices"
	"strings"
	"unicode"
)

// Node is one operator call of a graph, or the call of a local function.
type Node struct {
	Name     string // may be empty, and may be another node's too: the format does not ask for more
	OpType   string
	Domain   string // "" is the default domain, also written ai.onnx: see [Node.CanonicalDomain]
	Overload string // which of several functions of one name, from IR version 10
	Doc      string

	inputs     []*Value // nil is an input left out
	slots      []int32  // for each input, where it stands in the use list of its value
	outputs    []*Value // nil is an output left out
	attributes []*Attribute
	graph      *Graph
	removed    bool
	sorting    sortState
	place      int    // where checking met the node
	encoded    []byte // the NodeProto as read: metadata, device configurations, fields unknown here
}

// Graph is the graph the node stands in.
func (n *Node) Graph() *Graph { return n.graph }

// Model is the model the node belongs to.
func (n *Node) Model() *Model { return n.graph.model }

// Removed says whether the node has been taken out of its graph.
func (n *Node) Removed() bool { return n.removed }

// CanonicalDomain is the node's domain with "ai.onnx" written as "".
func (n *Node) CanonicalDomain() string { return CanonicalDomain(n.Domain) }

// Is says whether the node calls the operator of that name in the default domain.
func (n *Node) Is(opType string) bool { return n.OpType == opType && n.CanonicalDomain() == "" }

// Opset is the version of the node's domain that its model, or function, imports;
// 0 when it imports none.
func (n *Node) Opset() int { return n.graph.Opset(n.Domain) }

// Inputs lists the node's inputs; nil stands for one left out. Not to be changed.
func (n *Node) Inputs() []*Value { return n.inputs }

// Outputs lists the node's outputs; nil stands for one left out. Not to be changed.
func (n *Node) Outputs() []*Value { return n.outputs }

// Input is input i, or nil when it is left out or beyond the last.
func (n *Node) Input(i int) *Value {
	if i < 0 || i >= len(n.inputs) {
		return nil
	}
	return n.inputs[i]
}

// Output is output i, or nil when it is left out or beyond the last.
func (n *Node) Output(i int) *Value {
	if i < 0 || i >= len(n.outputs) {
		return nil
	}
	return n.outputs[i]
}

// SetInput makes v input i; nil leaves the input out. The list grows as needed.
func (n *Node) SetInput(i int, v *Value) {
	for len(n.inputs) <= i {
		n.inputs = append(n.inputs, nil)
		n.slots = append(n.slots, 0)
	}
	if n.inputs[i] != nil {
		n.inputs[i].dropUse(n, i)
	}
	n.inputs[i] = v
	if v != nil {
		v.addUse(n, i)
	}
}

// SetInputs replaces the whole list of inputs. Trailing absent ones are dropped.
func (n *Node) SetInputs(values ...*Value) {
	values = slices.Clone(values) // they may be a piece of the list that is emptied now
	for i := range n.inputs {
		n.SetInput(i, nil)
	}
	for len(values) > 0 && values[len(values)-1] == nil {
		values = values[:len(values)-1]
	}
	n.inputs, n.slots = make([]*Value, len(values)), make([]int32, len(values))
	for i, v := range values {
		n.SetInput(i, v)
	}
}

// SetOutputs replaces the list of outputs with values of the same graph that no
// node produces. The node lets go of those it had.
func (n *Node) SetOutputs(values ...*Value) {
	for _, v := range n.outputs {
		if v != nil {
			v.producer = nil
		}
	}
	n.outputs = slices.Clone(values)
	for _, v := range n.outputs {
		if v != nil {
			v.producer = n
		}
	}
}

// DropOutput leaves output i out; nobody may read it.
func (n *Node) DropOutput(i int) {
	if v := n.outputs[i]; v != nil {
		v.producer = nil
		n.graph.model.forgetName(v.name)
		n.outputs[i] = nil
	}
	for len(n.outputs) > 0 && n.outputs[len(n.outputs)-1] == nil {
		n.outputs = n.outputs[:len(n.outputs)-1]
	}
}

// Attributes lists the node's attributes. Not to be changed.
func (n *Node) Attributes() []*Attribute { return n.attributes }

// Attribute is the attribute of that name, or nil.
func (n *Node) Attribute(name string) *Attribute {
	for _, a := range n.attributes {
		if a.Name() == name {
			return a
		}
	}
	return nil
}

// HasReferences says whether an attribute takes its value from the function
// around; such a node cannot be computed before the call is inlined.
func (n *Node) HasReferences() bool {
	return slices.ContainsFunc(n.attributes, func(a *Attribute) bool { return a.Reference() != "" })
}

// Int is the int attribute of that name, or otherwise.
func (n *Node) Int(name string, otherwise int64) int64 {
	if a := n.Attribute(name); a != nil && a.set.has(attrInt) {
		return a.Int()
	}
	return otherwise
}

// Float is the float attribute of that name, or otherwise.
func (n *Node) Float(name string, otherwise float32) float32 {
	if a := n.Attribute(name); a != nil && a.set.has(attrFloat) {
		return a.Float()
	}
	return otherwise
}

// String is the string attribute of that name, or otherwise.
func (n *Node) String(name, otherwise string) string {
	if a := n.Attribute(name); a != nil && a.set.has(attrString) {
		return a.String()
	}
	return otherwise
}

// Ints is the ints attribute of that name, or nil; ok says whether it is there.
func (n *Node) Ints(name string) (v []int64, ok bool) {
	a := n.Attribute(name)
	if a == nil {
		return nil, false
	}
	return a.Ints(), true
}

// SetAttribute puts a in the place of the attribute of its name, or adds it.
// Subgraphs that a brings become the node's; those it replaces are taken apart.
func (n *Node) SetAttribute(a *Attribute) {
	for _, g := range a.graphs {
		g.owner = n
	}
	for i, old := range n.attributes {
		if old.Name() == a.Name() {
			n.attributes[i] = a
			n.release(old)
			return
		}
	}
	n.attributes = append(n.attributes, a)
}

// DropAttribute removes the attribute of that name, if there is one, and takes
// its subgraphs apart.
func (n *Node) DropAttribute(name string) {
	for i, a := range n.attributes {
		if a.Name() == name {
			n.attributes = slices.Delete(slices.Clone(n.attributes), i, i+1)
			n.release(a)
			return
		}
	}
}

// ClearAttributes removes all attributes and takes their subgraphs apart.
func (n *Node) ClearAttributes() {
	old := n.attributes
	n.attributes = nil
	for _, a := range old {
		n.release(a)
	}
}

// release takes the subgraphs of an attribute apart, unless the node still has
// them or another node has taken them over.
func (n *Node) release(a *Attribute) {
	kept := n.Subgraphs()
	for _, g := range a.graphs {
		if g.owner == n && !slices.Contains(kept, g) {
			g.dismantle()
		}
	}
}

// Subgraphs lists the graphs that the node's attributes hold: branches and bodies.
func (n *Node) Subgraphs() []*Graph {
	var gs []*Graph
	for _, a := range n.attributes {
		gs = append(gs, a.graphs...)
	}
	return gs
}

// ConstantValue is the tensor of a Constant node that carries one in any form
// (value, sparse_value, value_float, value_ints, …); nil for any other node.
func (n *Node) ConstantValue() *Tensor {
	if !n.Is("Constant") || len(n.attributes) != 1 || n.HasReferences() {
		return nil
	}
	return constantOf(n.attributes[0])
}

// Metadata lists the node's metadata_props.
func (n *Node) Metadata() []Property { return decodeProperties(n.encoded, nodeMetadata) }

// Where says which node this is, for messages: its name, or what it makes.
func (n *Node) Where() string {
	op := n.OpType
	if op == "" || strings.ContainsFunc(op, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' }) {
		op = quote(op)
	}
	switch {
	case n.Name != "":
		return op + " node " + quote(n.Name)
	case n.Output(0) != nil:
		return op + " node that makes " + quote(n.Output(0).Name())
	}
	return op + " node"
}
