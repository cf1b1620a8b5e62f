package onnx

// Value is one edge bundle of a graph: a graph input, an initializer or the
// output of a node, together with everybody who reads it.
type Value struct {
	// Type is what the file declares, or what inference found; nil when nothing is known.
	Type *Type

	name     string
	id       int
	graph    *Graph
	producer *Node
	init     *Tensor
	isInput  bool
	uses     []Use
	outputOf []*Graph // graphs that list the value among their outputs; a graph may list it twice
	info     []byte   // the ValueInfoProto that declares it in the file; nil when none does
	declared *Type    // the Type that info spells; when Type still points there, info is written as it was
	sparse   bool     // an initializer that the file holds among the sparse ones
}

// Use is one place that reads a value: input number Input of Node.
type Use struct {
	Node  *Node
	Input int
}

// Name is the name the file gives the value; unique in its scope.
func (v *Value) Name() string { return v.name }

// ID is a small number, unique in the model and fixed for the value's life;
// side tables are slices indexed by it. See [Model.MaxID].
func (v *Value) ID() int { return v.id }

// Graph is the graph in which the value is defined.
func (v *Value) Graph() *Graph { return v.graph }

// Producer is the node whose output the value is; nil for graph inputs and initializers.
func (v *Value) Producer() *Node { return v.producer }

// Initializer is the tensor that a file stores for the value; nil for others.
// A value that is a graph input as well has only a default there: see [Value.Constant].
func (v *Value) Initializer() *Tensor { return v.init }

// IsInput says whether the value is listed among its graph's inputs.
func (v *Value) IsInput() bool { return v.isInput }

// IsOutput says whether any graph lists the value among its outputs.
func (v *Value) IsOutput() bool { return len(v.outputOf) > 0 }

// OutputOf lists the graphs that have the value among their outputs.
func (v *Value) OutputOf() []*Graph { return v.outputOf }

// Uses lists the node inputs that read the value, those of nested graphs
// included, in no particular order. The slice must not be kept across edits.
func (v *Value) Uses() []Use { return v.uses }

// HasUses says whether a node or a graph output reads the value.
func (v *Value) HasUses() bool { return len(v.uses) > 0 || len(v.outputOf) > 0 }

// Constant is the tensor the value always holds, or nil: an initializer that
// no caller can override, or the result of a Constant node that carries one
// tensor. Before IR version 4 every initializer had to be listed as an input
// and none was one.
func (v *Value) Constant() *Tensor {
	if v == nil {
		return nil
	}
	if v.init != nil {
		if v.isInput && v.graph.model.IRVersion >= 4 && v.graph.owner == nil {
			return nil
		}
		return v.init
	}
	if v.producer != nil {
		return v.producer.ConstantValue()
	}
	return nil
}

// Doc is the documentation the file declares for the value.
func (v *Value) Doc() string { return string(find(v.info, infoDoc)) }

// Metadata lists the metadata_props that the file declares for the value.
func (v *Value) Metadata() []Property { return decodeProperties(v.info, infoMetadata) }

// addUse lists input number input of n, which reads v now.
func (v *Value) addUse(n *Node, input int) {
	n.slots[input] = int32(len(v.uses))
	v.uses = append(v.uses, Use{n, input})
}

// dropUse takes an input off the list. A constant may have very many readers, so
// each input knows its place there.
func (v *Value) dropUse(n *Node, input int) {
	last := len(v.uses) - 1
	moved, at := v.uses[last], n.slots[input]
	v.uses[at] = moved
	moved.Node.slots[moved.Input] = at
	v.uses = v.uses[:last]
}

// exists says whether the value still has a place in its graph: something makes
// it, stores it or passes it in.
func (v *Value) exists() bool {
	return v.isInput || v.init != nil || v.producer != nil && !v.producer.removed
}

// ReplaceUses makes every node that reads v read w instead. Graph outputs are
// left alone: their names belong to the model's signature; see [Graph.Forward].
func (v *Value) ReplaceUses(w *Value) {
	if v == w {
		return
	}
	for _, u := range v.uses {
		u.Node.inputs[u.Input] = w
		w.addUse(u.Node, u.Input)
	}
	v.uses = nil
}

// Rename gives the value another name, which must be free: see [Model.FreshName].
func (v *Value) Rename(name string) {
	v.graph.model.forgetName(v.name)
	v.name = name
	v.graph.model.takeName(name)
}

// SetInitializer makes t the stored tensor of an initializer, in place of the
// one it had.
func (v *Value) SetInitializer(t *Tensor) { v.init = t; v.sparse = false }
