package onnxpass

import (
	"slices"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/infer"
	"github.com/npuctl/npuctl/onnx/schema"
)

// literalReshapes gives a Reshape whose target is computed a constant target,
// with 0 for a dim that is its input's at that place and one -1 for a dim that
// follows from the others. The arithmetic that computed the target dies.
//
//	before: n = Gather(Shape(x), 0);  t = Concat(n, [-1]);  y = Reshape(x, t)
//	after:  y = Reshape(x, [0, -1])
//
// What the target will be is read off what inference says of the result's dims.
//
// A -1 beside a dim that is empty has no meaning, and runtimes fail on it. An empty
// batch is legal, so a -1 may stand beside the 0 that copies the batch only where it
// costs no input: where the original has its -1 at that very place and fails alike,
// or where the other dims cannot be empty. A target whose dims are all computed, as
// [N, 4, H*W] of [N,4,H,W], works for an empty batch, and there is no literal that
// does. Then the node becomes the Unsqueeze, Squeeze or Flatten that it amounts to;
// if it amounts to none, the target stays computed. Fixing the batch (--batch, --dim)
// makes it a literal.
//
// A computed 0 without allowzero copies the input's dim, as a literal one does: with
// both empty, [N,1,4,L] for the target [N,4,L] becomes [0,4,4], where everybody meant
// [0,4,0]. Inference knows, so nothing is made of a target that would do otherwise.
func literalReshapes(s *State) error {
	return s.eachNode(func(n *onnx.Node) error {
		if !n.Is("Reshape") || n.Opset() < 5 || n.Input(1) == nil || n.Input(1).Constant() != nil {
			return nil
		}
		in, okIn := s.dims(n.Input(0))
		out, okOut := s.dims(n.Output(0))
		if !okIn || !okOut {
			return nil
		}
		target, ok := literalTarget(in, out)
		switch {
		case ok && s.worksAsComputed(n, out, target):
			n.SetInput(1, s.intsConstant(n.Graph(), n.Output(0).Name()+"_shape", target))
			n.DropAttribute("allowzero")
			s.changed()
		case s.reshapeByAxes(n, in, out):
			s.changed()
		}
		return nil
	})
}

// literalTarget spells the dims out as a Reshape target for an input of dims in,
// with allowzero 0; ok is false when more than one of them is neither a number
// nor the input's. A 0 is preferred to a -1: a -1 beside an empty dim has no meaning.
func literalTarget(in, out []infer.Dim) (target []int64, ok bool) {
	target = make([]int64, len(out))
	inferred := 0
	for i, d := range out {
		size, known := d.Known()
		switch {
		case known && size != 0:
			target[i] = size
		case i < len(in) && d.Equal(in[i]):
			target[i] = 0
		case known:
			return nil, false // a dim of 0 that the input does not have there
		default:
			target[i] = -1
			inferred++
		}
	}
	return target, inferred <= 1
}

// worksAsComputed says whether a literal target of a Reshape works for every input
// that its computed one works for. Only a -1 can fail, and only beside an empty dim.
func (s *State) worksAsComputed(n *onnx.Node, out []infer.Dim, target []int64) bool {
	at := slices.Index(target, -1)
	if at < 0 {
		return true
	}
	if computed := s.infer.Of(n.Input(1)).Values(); at < len(computed) && computed[at].Dim().Is(-1) {
		return true // it fails for the same inputs
	}
	for i, d := range out {
		if i != at && !s.infer.Positive(d) {
			return false
		}
	}
	return true
}

// reshapeByAxes makes a Reshape the operator that does the same by naming axes. It
// takes no target, so it needs no size to be known, and empty dims are as good as any.
func (s *State) reshapeByAxes(n *onnx.Node, in, out []infer.Dim) bool {
	if axes, ok := onesBetween(in, out); ok && s.takesElements(n, "Unsqueeze") {
		return s.becomeAxesOperator(n, "Unsqueeze", axes)
	}
	if axes, ok := onesBetween(out, in); ok && s.takesElements(n, "Squeeze") {
		return s.becomeAxesOperator(n, "Squeeze", axes)
	}
	// Flatten takes all types from 9 on, as a Reshape of any opset does.
	if axis, ok := flattenAxis(in, out); ok && n.Opset() >= 9 && s.takesElements(n, "Flatten") {
		n.OpType = "Flatten"
		n.ClearAttributes()
		n.SetInputs(n.Input(0))
		n.SetAttribute(onnx.IntAttribute("axis", int64(axis)))
		return true
	}
	return false
}

// onesBetween gives the places of the ones that long has more than short; ok is
// false when that is not all in which they differ.
func onesBetween(short, long []infer.Dim) (axes []int, ok bool) {
	matched := 0
	for i, d := range long {
		switch {
		case matched < len(short) && d.Equal(short[matched]):
			matched++
		case d.Is(1):
			axes = append(axes, i)
		default:
			return nil, false
		}
	}
	return axes, matched == len(short) && len(axes) > 0
}

// flattenAxis gives the axis at which a Flatten parts the dims of in to make out.
func flattenAxis(in, out []infer.Dim) (axis int, ok bool) {
	if len(out) != 2 {
		return 0, false
	}
	for axis = range len(in) + 1 {
		if product(in[:axis]).Equal(out[0]) && product(in[axis:]).Equal(out[1]) {
			return axis, true
		}
	}
	return 0, false
}

func product(dims []infer.Dim) infer.Dim {
	p := infer.Const(1)
	for _, d := range dims {
		p = p.Mul(d)
	}
	return p
}

// takesElements says whether an operator takes elements of the type of n's first
// input, in n's opset.
func (s *State) takesElements(n *onnx.Node, operator string) bool {
	o, ok := schema.Lookup("", operator, n.Opset())
	return ok && slices.Contains(o.AllowedTypes(&o.Inputs[0]), schemaType(s.infer.Of(n.Input(0)).Elem))
}

// becomeAxesOperator makes a node a Squeeze or Unsqueeze of its first input.
func (s *State) becomeAxesOperator(n *onnx.Node, operator string, axes []int) bool {
	n.OpType = operator
	n.ClearAttributes()
	n.SetInputs(n.Input(0))
	return s.setAxes(n, n, axes)
}
