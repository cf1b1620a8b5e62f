package onnxpass

import (
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// removeZeroTripLoops replaces a Loop that surely never runs by its initial state.
//
//	before: y = Loop(0, "", x) <body = …>
//	after:  x for y
//
// Scan outputs are empty then; where their other dims are known they become
// empty constants, else the Loop stays.
func removeZeroTripLoops(s *State) error {
	return s.eachNode(func(n *onnx.Node) error {
		if !n.Is("Loop") || !neverRuns(n) {
			return nil
		}
		states := len(n.Inputs()) - 2
		replacements := make([]*onnx.Value, len(n.Outputs()))
		for i, v := range n.Outputs() {
			switch {
			case v == nil || !v.HasUses():
			case i < states && n.Input(i+2) != nil:
				replacements[i] = n.Input(i + 2)
			default:
				if replacements[i] = s.emptyConstant(n, v); replacements[i] == nil {
					return nil
				}
			}
		}
		for i, w := range replacements {
			if w != nil {
				n.Graph().Forward(n, n.Output(i), w)
			}
		}
		if removeUnread(n) {
			s.changed()
		}
		return nil
	})
}

func neverRuns(n *onnx.Node) bool {
	if trips := n.Input(0); trips != nil {
		if m, ok := constantInts(trips); ok && len(m) == 1 && m[0] <= 0 {
			return true
		}
	}
	if cond := n.Input(1); cond != nil {
		known, value := constantBool(cond)
		return known && !value
	}
	return false
}

// emptyConstant stores an empty tensor in place of v; nil when its type is not known.
func (s *State) emptyConstant(n *onnx.Node, v *onnx.Value) *onnx.Value {
	dims, ok := s.knownDims(v)
	if !ok || len(dims) == 0 {
		return nil
	}
	dims[0] = 0
	d, err := tensor.New(s.infer.Of(v).Elem, dims...)
	if err != nil {
		return nil
	}
	return s.constant(n.Graph(), v.Name()+"_empty", d)
}
