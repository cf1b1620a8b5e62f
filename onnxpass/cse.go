package onnxpass

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/schema"
)

// mergeCommonSubexpressions keeps one of several nodes that compute the same.
//
//	before: a = Relu(x);  b = Relu(x);  y = Add(a, b)
//	after:  a = Relu(x);                y = Add(a, a)
//
// Same means: domain, operator, overload, inputs with those left out, which
// outputs there are, and attributes, where one left out counts as its default.
// Nodes that draw random numbers, train, or hold subgraphs are never merged. A
// node inside a subgraph may be replaced by one of a graph around it.
func mergeCommonSubexpressions(s *State) error {
	for _, root := range roots(s.model) {
		mergeIn(s, root, nil)
	}
	return nil
}

// roots lists the graphs that no other encloses.
func roots(m *onnx.Model) []*onnx.Graph {
	out := []*onnx.Graph{m.Graph}
	for _, f := range m.Functions {
		out = append(out, f.Body)
	}
	return out
}

// expressions finds the first node of a graph, or of one around it, by what it computes.
type expressions struct {
	nodes map[string]*onnx.Node
	outer *expressions
}

func (e *expressions) find(key string) *onnx.Node {
	for ; e != nil; e = e.outer {
		if n := e.nodes[key]; n != nil {
			return n
		}
	}
	return nil
}

func mergeIn(s *State, g *onnx.Graph, outer *expressions) {
	here := &expressions{nodes: map[string]*onnx.Node{}, outer: outer}
	nodes := slices.Clone(g.Nodes())
	var key []byte
	for _, n := range nodes {
		if !s.mayMerge(n) {
			continue
		}
		key = appendExpression(key[:0], n)
		twin := here.find(string(key))
		if twin == nil {
			here.nodes[string(key)] = n
			continue
		}
		if replaceByTwin(g, n, twin) {
			s.changed()
		}
	}
	// The inner graphs come last: they see every expression of this one.
	for _, n := range g.Nodes() {
		for _, h := range n.Subgraphs() {
			mergeIn(s, h, here)
		}
	}
}

func (s *State) mayMerge(n *onnx.Node) bool {
	return len(n.Subgraphs()) == 0 && len(n.Inputs()) > 0 && !n.Is("Identity") && !s.isEffectful(n)
}

func replaceByTwin(g *onnx.Graph, n, twin *onnx.Node) bool {
	for i, v := range n.Outputs() {
		if v != nil && v.HasUses() && twin.Output(i) == nil {
			return false
		}
	}
	changed := false
	for i, v := range n.Outputs() {
		if v != nil && v.HasUses() {
			changed = g.Forward(n, v, twin.Output(i)) || changed
		}
	}
	return removeUnread(n) || changed
}

// appendExpression writes what a node computes as a key. Outputs are not part of
// it: see replaceByTwin. How many there are is, since Split's depend on it.
func appendExpression(key []byte, n *onnx.Node) []byte {
	key = appendText(key, n.CanonicalDomain())
	key = appendText(key, n.OpType)
	key = appendText(key, n.Overload)
	key = binary.AppendUvarint(key, uint64(len(n.Outputs())))
	key = binary.AppendUvarint(key, uint64(len(n.Inputs())))
	for _, v := range n.Inputs() {
		id := 0
		if v != nil {
			id = v.ID() + 1
		}
		key = binary.AppendUvarint(key, uint64(id))
	}
	attributes := slices.Clone(n.Attributes())
	slices.SortFunc(attributes, func(a, b *onnx.Attribute) int { return strings.Compare(a.Name(), b.Name()) })
	facts, _ := schema.Lookup(n.CanonicalDomain(), n.OpType, n.Opset())
	for _, a := range attributes {
		if !isDefault(facts, a) {
			key = appendAttribute(key, a)
		}
	}
	return key
}

func appendText(key []byte, s string) []byte {
	key = binary.AppendUvarint(key, uint64(len(s)))
	return append(key, s...)
}

// isDefault says whether leaving the attribute out would mean the same.
func isDefault(facts *schema.Operator, a *onnx.Attribute) bool {
	if facts == nil {
		return false
	}
	f, ok := facts.Attribute(a.Name())
	if !ok || f.Default == nil || a.Reference() != "" {
		return false
	}
	d := f.Default
	switch a.Kind() {
	case onnx.AttributeInt:
		return d.Int == a.Int()
	case onnx.AttributeFloat:
		return math.Float32bits(d.Float) == math.Float32bits(a.Float())
	case onnx.AttributeString:
		return d.String == a.String()
	}
	return false
}

func appendAttribute(key []byte, a *onnx.Attribute) []byte {
	key = appendText(key, a.Name())
	key = binary.AppendUvarint(key, uint64(a.Kind()))
	key = appendText(key, a.Reference())
	key = binary.AppendVarint(key, a.Int())
	key = binary.LittleEndian.AppendUint32(key, math.Float32bits(a.Float()))
	key = appendText(key, a.String())
	key = binary.AppendUvarint(key, uint64(len(a.Ints())))
	for _, i := range a.Ints() {
		key = binary.AppendVarint(key, i)
	}
	key = binary.AppendUvarint(key, uint64(len(a.Floats())))
	for _, f := range a.Floats() {
		key = binary.LittleEndian.AppendUint32(key, math.Float32bits(f))
	}
	strs := a.Strings()
	key = binary.AppendUvarint(key, uint64(len(strs)))
	for _, s := range strs {
		key = appendText(key, s)
	}
	for _, t := range a.Tensors() {
		key = appendTensor(key, t)
	}
	if t := a.Type(); t != nil {
		key = appendText(key, t.String())
	}
	return key
}

// appendTensor writes a small tensor whole, and a large one by its identity:
// merging nodes with large equal attributes is not worth reading them.
func appendTensor(key []byte, t *onnx.Tensor) []byte {
	raw, err := t.Raw()
	if err != nil || t.Bytes() > smallConstant || raw == nil {
		return appendText(key, fmt.Sprintf("tensor %p", t))
	}
	key = appendText(key, fmt.Sprint(t.Type(), t.Shape()))
	return appendText(key, string(raw))
}
