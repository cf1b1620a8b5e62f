package onnx

import "slices"

// MoveNodes moves every node and initializer of branch, a graph inside g, into
// g, and gives the values that were the branch's outputs: what inlining a branch
// comes down to. Names must be unique: see [Model.MakeNamesUnique]. What is left of
// the branch is empty.
func (g *Graph) MoveNodes(branch *Graph) (outputs []*Value) {
	for _, n := range branch.Nodes() {
		n.graph = g
		for _, v := range n.outputs {
			if v != nil {
				v.graph = g
			}
		}
	}
	g.nodes = append(g.Nodes(), branch.nodes...)
	for _, v := range branch.initializers {
		v.graph = g
		if v.isInput {
			branch.inputs = slices.DeleteFunc(branch.inputs, func(w *Value) bool { return w == v })
			v.isInput = false
		}
	}
	g.initializers = append(g.initializers, branch.initializers...)
	g.valueInfo = append(g.valueInfo, branch.valueInfo...)
	outputs = branch.outputs
	branch.releaseOutputs()
	branch.nodes, branch.initializers, branch.valueInfo = nil, nil, nil
	return outputs
}

func (g *Graph) releaseOutputs() {
	for _, v := range g.outputs {
		v.outputOf = slices.DeleteFunc(v.outputOf, func(h *Graph) bool { return h == g })
	}
	g.outputs, g.outputInfo = nil, nil
}

// Forward makes every reader of old, an output of node n in g, read v instead, so
// that n can go. Where old is an output of g, v takes its place if it can (see
// canBecome); in a main graph or function it takes its name as well, which belongs
// to the signature. If it cannot, an Identity of v becomes the output; when n is
// that Identity already, or the opset has none for such a type, old stays the
// output. Forward says whether it changed anything.
func (g *Graph) Forward(n *Node, old, v *Value) (changed bool) {
	changed = len(old.uses) > 0
	old.ReplaceUses(v)
	if !old.IsOutput() {
		return true
	}
	if !g.canBecome(v, old) {
		if n.Is("Identity") && n.Input(0) == v || !g.allowsIdentity(old, v) {
			return changed
		}
		node := g.Add("Identity", []*Value{v}, []string{g.model.FreshName(old.name + "_identity")})
		node.Name = n.Name
		v = node.outputs[0]
	}
	if v.Type == nil {
		v.Type = old.Type
	}
	if g.owner == nil {
		v.takeOver(old)
	}
	for _, h := range slices.Clone(old.outputOf) {
		for i, o := range h.outputs {
			if o == old {
				h.SetOutput(i, v)
			}
		}
	}
	return true
}

// canBecome says whether v can be the output of g that old is. It must be made in
// g: a branch must not give back a value of a graph around it, nor a body its own
// input, nor can an input of the main graph or of a function be renamed. And it
// cannot be two outputs.
func (g *Graph) canBecome(v, old *Value) bool {
	if v.graph != g {
		return false
	}
	if g.owner != nil {
		// Runtimes hand the outputs of a body on by place: each must be a value of
		// its own, made by a node.
		return v.producer != nil && !v.IsOutput()
	}
	typed := v.init == nil || (&Value{Type: old.Type, init: v.init}).fits() == nil
	return !v.isInput && !v.IsOutput() && typed
}

// allowsIdentity says whether an Identity can copy v in g: the operator needs its
// domain imported, and takes sequences and optionals only in later versions.
func (g *Graph) allowsIdentity(old, v *Value) bool {
	need := 1
	for _, t := range []*Type{old.Type, v.Type} {
		if t != nil && t.Kind == KindSequence {
			need = max(need, 14)
		} else if t != nil && t.Kind != KindTensor {
			need = max(need, 16)
		}
	}
	return g.Opset("") >= need
}

// takeOver gives v the name and the declared type of old, an output of its graph.
func (v *Value) takeOver(old *Value) {
	name := old.name
	old.Rename(v.graph.model.FreshName(name + "_old"))
	v.Rename(name)
	v.info, v.declared = old.info, old.declared
	if old.Type != nil {
		v.Type = old.Type
	}
}

// IsolateBranchOutputs puts an Identity in front of every output of a nested graph
// that is a value of a graph around it: the format asks for one, and some exporters
// leave it out. It returns how many.
func (m *Model) IsolateBranchOutputs() (added int) {
	for g := range m.Graphs() {
		for i, v := range g.outputs {
			if v.graph == g || !g.allowsIdentity(v, v) {
				continue
			}
			n := g.Add("Identity", []*Value{v}, []string{m.FreshName(v.name + "_out")})
			n.outputs[0].Type = v.Type
			g.SetOutput(i, n.outputs[0])
			added++
		}
	}
	return added
}
