package onnxpass

import (
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/infer"
)

// literalReshapes gives a Reshape whose target is computed a constant target,
// with 0 for a dim that is its input's at that place and one -1 for a dim that
// follows from the others. The arithmetic that computed the target dies.
//
//	before: n = Gather(Shape(x), 0);  t = Concat(n, [-1]);  y = Reshape(x, t)
//	after:  y = Reshape(x, [0, -1])
//
// What the target will be is read off what inference says of the result's dims.
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
		if !ok {
			return nil
		}
		n.SetInput(1, s.intsConstant(n.Graph(), n.Output(0).Name()+"_shape", target))
		n.DropAttribute("allowzero")
		s.changed()
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
