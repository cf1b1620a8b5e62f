package onnxpass

import (
	"slices"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/infer"
)

// shrinkSplats feeds element-wise operators the small operand that broadcasts by
// itself instead of one that was enlarged before.
//
//	before: c = ConstantOfShape<value = 2>([64,1024,1024]);  y = Mul(x, c)    x [64,1024,1024]
//	after:  y = Mul(x, 2)
//
// The same goes for an Expand, and for a Tile along axes of size one. The result
// must keep its shape, so the other operands must give it alone.
func shrinkSplats(s *State) error {
	return s.eachNode(func(n *onnx.Node) error {
		if n.CanonicalDomain() != "" || !broadcasts[n.OpType] || !broadcastsFreely(n) || n.Output(0) == nil {
			return nil
		}
		for i, v := range n.Inputs() {
			if v == nil || v.Producer() == nil || v.Producer().Graph() != n.Graph() {
				continue
			}
			small, dims := s.beforeEnlarging(v.Producer())
			if dims == nil || !s.broadcastsTo(n, i, dims) {
				continue
			}
			n.SetInput(i, small())
			s.changed()
		}
		return nil
	})
}

// broadcasts lists the element-wise operators of several operands.
var broadcasts = map[string]bool{
	"Add": true, "Sub": true, "Mul": true, "Div": true, "Pow": true, "Mod": true,
	"Max": true, "Min": true, "Sum": true, "Mean": true,
	"And": true, "Or": true, "Xor": true, "Equal": true, "Less": true, "Greater": true,
	"LessOrEqual": true, "GreaterOrEqual": true, "Where": true,
	"BitwiseAnd": true, "BitwiseOr": true, "BitwiseXor": true, "BitShift": true,
}

// broadcastsFreely says whether n's opset lets its operands differ in shape: from 7
// on, and from 8 for operators of any number of operands.
func broadcastsFreely(n *onnx.Node) bool {
	switch n.OpType {
	case "Max", "Min", "Sum", "Mean":
		return n.Opset() >= 8
	}
	return n.Opset() >= 7
}

// beforeEnlarging gives, for a node that repeats a smaller tensor, a function
// that yields that tensor, and its dims; nil dims when the node is no such one.
func (s *State) beforeEnlarging(p *onnx.Node) (small func() *onnx.Value, dims []infer.Dim) {
	if p.CanonicalDomain() != "" || p.HasReferences() {
		return nil, nil
	}
	switch p.OpType {
	case "ConstantOfShape":
		scalar := fillOf(p)
		if scalar == nil {
			return nil, nil
		}
		return func() *onnx.Value { return s.constant(p.Graph(), p.Output(0).Name()+"_fill", scalar) }, []infer.Dim{}
	case "Expand":
	case "Tile":
		if !s.tilesOnesOnly(p) {
			return nil, nil
		}
	default:
		return nil, nil
	}
	dims, ok := s.dims(p.Input(0))
	if !ok {
		return nil, nil
	}
	return func() *onnx.Value { return p.Input(0) }, dims
}

// tilesOnesOnly says whether a Tile repeats only axes of size one, which is what
// an Expand does.
func (s *State) tilesOnesOnly(p *onnx.Node) bool {
	dims, ok := s.dims(p.Input(0))
	if !ok || p.Opset() < 6 {
		return false
	}
	repeats, ok := s.ints(p.Input(1))
	if !ok || len(repeats) != len(dims) {
		return false
	}
	for i, r := range repeats {
		if !dims[i].Is(1) && r != 1 {
			return false
		}
	}
	return true
}

// broadcastsTo says whether n's result keeps its dims when input i has the given
// dims instead of its own: each axis of the result must come from another
// operand, or still from this one.
func (s *State) broadcastsTo(n *onnx.Node, i int, dims []infer.Dim) bool {
	out, ok := s.dims(n.Output(0))
	if !ok || len(dims) > len(out) {
		return false
	}
	operands := [][]infer.Dim{dims}
	for k, v := range n.Inputs() {
		if k == i {
			continue
		}
		other, ok := s.dims(v)
		if !ok {
			return false
		}
		operands = append(operands, other)
	}
	// A leading axis of size 1 may be the enlarged operand's alone: without it the rank falls.
	if !slices.ContainsFunc(operands, func(o []infer.Dim) bool { return len(o) == len(out) }) {
		return false
	}
	for axis, d := range out {
		given := slices.ContainsFunc(operands, func(o []infer.Dim) bool {
			k := axis - (len(out) - len(o))
			return k >= 0 && o[k].Equal(d)
		})
		if !given && !d.Is(1) {
			return false
		}
	}
	return true
}
