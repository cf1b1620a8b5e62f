package onnxpass

import (
	"slices"

	"github.com/npuctl/npuctl/onnx"
)

// removeDead removes what nothing uses: nodes whose results nobody reads, stored
// tensors, local functions that nothing calls, and imports of domains that no
// node is of.
//
//	before: a = Relu(x);  b = Exp(x);  output a
//	after:  a = Relu(x);               output a
//
// Graph inputs stay, and a graph input keeps its default.
func removeDead(s *State) error {
	removed := s.model.Graph.RemoveDead(nil)
	for _, f := range s.model.Functions {
		removed += f.Body.RemoveDead(nil)
	}
	for g := range s.model.Graphs() {
		removed += g.RemoveInitializers(func(v *onnx.Value) bool {
			isDefault := v.IsInput() && s.model.IRVersion >= 4
			return !v.HasUses() && !isDefault
		})
	}
	removed += removeUncalled(s.model)
	removed += removeImports(s.model)
	s.changes += removed
	return nil
}

// removeUncalled drops functions that no call can reach from the main graph.
func removeUncalled(m *onnx.Model) (removed int) {
	if len(m.Functions) == 0 {
		return 0
	}
	called := map[*onnx.Function]bool{}
	var visit func(g *onnx.Graph)
	visit = func(g *onnx.Graph) {
		for _, n := range g.Nodes() {
			if f := m.Callee(n); f != nil && !called[f] {
				called[f] = true
				visit(f.Body)
			}
			for _, h := range n.Subgraphs() {
				visit(h)
			}
		}
	}
	visit(m.Graph)
	before := len(m.Functions)
	m.Functions = slices.DeleteFunc(m.Functions, func(f *onnx.Function) bool { return !called[f] })
	return before - len(m.Functions)
}

// removeImports drops imports that no node of the main graph, or of a function,
// needs. The default domain's stays: it says which ONNX the file speaks.
func removeImports(m *onnx.Model) (removed int) {
	used := map[*onnx.Function]map[string]bool{nil: {"": true}}
	for g := range m.Graphs() {
		f := g.Function()
		if used[f] == nil {
			used[f] = map[string]bool{"": true}
		}
		for _, n := range g.Nodes() {
			used[f][n.CanonicalDomain()] = true
		}
	}
	for _, f := range m.Functions {
		// A model must import every domain that its functions are of or use.
		used[nil][onnx.CanonicalDomain(f.Domain)] = true
		for domain := range used[f] {
			used[nil][domain] = true
		}
	}
	drop := func(imports []onnx.OpsetImport, used map[string]bool) []onnx.OpsetImport {
		kept := slices.DeleteFunc(slices.Clone(imports), func(o onnx.OpsetImport) bool { return !used[onnx.CanonicalDomain(o.Domain)] })
		if len(kept) == 0 {
			kept = imports[:min(1, len(imports))] // the format asks for one
		}
		removed += len(imports) - len(kept)
		return kept
	}
	m.Opsets = drop(m.Opsets, used[nil])
	for _, f := range m.Functions {
		f.Opsets = drop(f.Opsets, used[f])
	}
	return removed
}
