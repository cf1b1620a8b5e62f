package onnxpass

import "github.com/npuctl/npuctl/onnx"

// liftConstants makes the tensors of Constant nodes initializers.
//
//	before: c = Constant<value = t>();  y = Add(x, c)
//	after:  initializer c = t;          y = Add(x, c)
//
// The tensor's bytes stay where they are in the file. Function bodies keep their
// Constant nodes: a function has no initializers.
func liftConstants(s *State) error {
	return s.eachNode(func(n *onnx.Node) error {
		t := n.ConstantValue()
		if t == nil || t.IsSparse() || n.Graph().Function() != nil {
			return nil
		}
		g, v := n.Graph(), n.Output(0)
		if v != nil {
			g.StoreAs(v, t)
		}
		g.Remove(n)
		s.changed()
		return nil
	})
}
