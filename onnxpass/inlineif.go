package onnxpass

import (
	"slices"

	"github.com/npuctl/npuctl/onnx"
)

// inlineIf replaces an If whose condition is a constant by the branch it takes,
// at any depth.
//
//	before: y = If(true) <then_branch = { t = Relu(x) => t }, else_branch = { … }>
//	after:  y = Relu(x)
//
// The branch's stored tensors move with its nodes; names are unique in the whole
// model, so none can collide.
func inlineIf(s *State) error {
	// Inlining brings inner Ifs to the outside; go on until none is left.
	for again := true; again; {
		again = false
		err := s.eachNode(func(n *onnx.Node) error {
			if n.Removed() || !n.Is("If") {
				return nil
			}
			known, taken := constantBool(n.Input(0))
			if !known || !inlineBranch(n, taken) {
				return nil
			}
			s.changed()
			again = true
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func inlineBranch(n *onnx.Node, taken bool) bool {
	name := "else_branch"
	if taken {
		name = "then_branch"
	}
	a := n.Attribute(name)
	if a == nil || a.Graph() == nil || len(a.Graph().Outputs()) < len(n.Outputs()) {
		return false
	}
	branch, g := a.Graph(), n.Graph()
	if g.Function() != nil && len(branch.Initializers()) > 0 {
		return false // a function body cannot store tensors
	}
	if slices.ContainsFunc(n.Outputs(), needsIdentityOfSequence) {
		return false
	}
	results := g.MoveNodes(branch)
	for i, old := range n.Outputs() {
		if old != nil {
			g.Forward(n, old, results[i])
		}
	}
	return removeUnread(n)
}

// needsIdentityOfSequence says whether v is a graph output that may have to become
// an Identity of a sequence or optional, which old opsets do not have.
func needsIdentityOfSequence(v *onnx.Value) bool {
	return v != nil && v.IsOutput() && v.Type != nil && !v.Type.IsTensor() && v.Graph().Opset("") < 16
}
