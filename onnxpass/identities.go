package onnxpass

import (
	"slices"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// eliminateIdentities removes nodes that hand on one input unchanged.
//
//	before: a = Cast<to = FLOAT>(x);  y = Relu(a)      with x FLOAT
//	after:  y = Relu(x)
//
// Which conditions make an operator such a node is the table below. An Identity
// stays where a graph output needs a name of its own. Parts of a Concat that hold
// nothing go first.
func eliminateIdentities(s *State) error {
	return s.eachNode(func(n *onnx.Node) error {
		rule := identityRules[n.OpType]
		if rule == nil || n.CanonicalDomain() != "" || n.Input(0) == nil || n.Output(0) == nil {
			return nil
		}
		// Further outputs (a mask, a batch statistic) must have no readers.
		for _, v := range n.Outputs()[1:] {
			if v != nil && v.HasUses() {
				return nil
			}
		}
		if n.Is("Concat") {
			s.dropEmptyParts(n)
		}
		if rule(s, n) {
			s.replace(n, n.Input(0))
		}
		return nil
	})
}

// identityRules says of each operator when output 0 is input 0.
var identityRules = map[string]func(*State, *onnx.Node) bool{
	"Identity":     func(*State, *onnx.Node) bool { return true },
	"Cast":         keepsType,
	"CastLike":     keepsType,
	"Reshape":      keepsShape,
	"Flatten":      keepsShape,
	"Squeeze":      keepsShape,
	"Unsqueeze":    keepsShape,
	"Expand":       keepsShape,
	"Transpose":    transposeKeepsOrder,
	"Slice":        sliceTakesAll,
	"Pad":          padAddsNothing,
	"Tile":         tilesOnce,
	"Dropout":      func(_ *State, n *onnx.Node) bool { return !dropoutTrains(n) },
	"Concat":       hasOneInput,
	"Sum":          hasOneInput,
	"Max":          hasOneInput,
	"Min":          hasOneInput,
	"Mean":         hasOneInput,
	"Split":        func(s *State, n *onnx.Node) bool { return len(n.Outputs()) == 1 && keepsShape(s, n) },
	"ReduceSum":    keepsShape,
	"ReduceMean":   keepsShape,
	"ReduceMax":    keepsShape,
	"ReduceMin":    keepsShape,
	"ReduceProd":   keepsShape,
	"Clip":         clipsNothing,
	"Resize":       resizesByOne,
	"Upsample":     upsamplesByOne,
	"DepthToSpace": func(_ *State, n *onnx.Node) bool { return n.Int("blocksize", 0) == 1 },
	"SpaceToDepth": func(_ *State, n *onnx.Node) bool { return n.Int("blocksize", 0) == 1 },
	"Abs":          isUnsigned,
}

// dropEmptyParts takes those inputs from a Concat that have the size 0 along its axis,
// as long as one stays.
func (s *State) dropEmptyParts(n *onnx.Node) {
	axis := n.Int("axis", 1)
	isEmpty := func(v *onnx.Value) bool {
		if v == nil {
			return false
		}
		dims, ok := s.dims(v)
		at := axis
		if at < 0 {
			at += int64(len(dims))
		}
		return ok && at >= 0 && at < int64(len(dims)) && dims[at].Is(0)
	}
	kept := slices.DeleteFunc(slices.Clone(n.Inputs()), isEmpty)
	if len(kept) == 0 || len(kept) == len(n.Inputs()) {
		return
	}
	n.SetInputs(kept...)
	s.changed()
}

func hasOneInput(_ *State, n *onnx.Node) bool { return len(n.Inputs()) == 1 }

func keepsType(s *State, n *onnx.Node) bool {
	to := tensor.Type(n.Int("to", 0))
	if n.Is("CastLike") && n.Input(1) != nil {
		to = s.infer.Of(n.Input(1)).Elem
	}
	if to == tensor.Undefined {
		to = s.infer.Of(n.Output(0)).Elem
	}
	return to != tensor.Undefined && s.infer.Of(n.Input(0)).Elem == to
}

// keepsShape holds for operators that keep the elements and their order
// whatever the shape, or that can only keep the shape by doing nothing: a
// reduction does so over axes of size one.
func keepsShape(s *State, n *onnx.Node) bool { return s.sameShape(n.Input(0), n.Output(0)) }

// transposeKeepsOrder: axes of size one may move, the others keep their order,
// and the shape comes out the same.
func transposeKeepsOrder(s *State, n *onnx.Node) bool {
	dims, ok := s.dims(n.Input(0))
	if !ok {
		return false
	}
	last := -1
	for _, axis := range permutation(n, len(dims)) {
		if size, known := dims[axis].Known(); known && size == 1 {
			continue
		}
		if axis < last {
			return false
		}
		last = axis
	}
	return keepsShape(s, n)
}

// permutation is a Transpose's order of axes: reversed when it gives none.
func permutation(n *onnx.Node, rank int) []int {
	perm := make([]int, rank)
	given, ok := n.Ints("perm")
	for i := range perm {
		perm[i] = rank - 1 - i
		if ok && i < len(given) && given[i] >= 0 && int(given[i]) < rank {
			perm[i] = int(given[i])
		}
	}
	return perm
}

// sliceTakesAll: with every step 1, a slice as large as its input is the input.
func sliceTakesAll(s *State, n *onnx.Node) bool {
	steps, present, known := s.attributeOrInts(n, "steps", 4)
	return known && (!present || allEqual(steps, 1)) && keepsShape(s, n)
}

func padAddsNothing(s *State, n *onnx.Node) bool {
	name := "pads"
	if n.Opset() < 2 {
		name = "paddings"
	}
	pads, present, known := s.attributeOrInts(n, name, 1)
	return present && known && allEqual(pads, 0)
}

func tilesOnce(s *State, n *onnx.Node) bool {
	if n.Opset() < 6 {
		return false
	}
	repeats, ok := s.ints(n.Input(1))
	return ok && allEqual(repeats, 1)
}

// clipsNothing: without bounds those of the type hold, which infinities are beyond.
func clipsNothing(s *State, n *onnx.Node) bool {
	return s.infer.Of(n.Input(0)).Elem.IsInteger() && n.Attribute("min") == nil && n.Attribute("max") == nil && n.Input(1) == nil && n.Input(2) == nil
}

func isUnsigned(s *State, n *onnx.Node) bool {
	t := s.infer.Of(n.Input(0)).Elem
	return t.IsInteger() && !t.IsSigned()
}

// resizesByOne: every scale is 1, or the sizes asked for are those that are
// there. Two ways of mapping coordinates move the picture even then.
func resizesByOne(s *State, n *onnx.Node) bool {
	switch n.String("coordinate_transformation_mode", "half_pixel") {
	case "tf_crop_and_resize", "tf_half_pixel_for_nn":
		return false
	}
	scales, sizes := n.Input(2), n.Input(3)
	if n.Opset() < 11 {
		scales, sizes = n.Input(1), nil
	}
	if sizes != nil {
		return keepsShape(s, n)
	}
	return isUniform(scales, 1)
}

func upsamplesByOne(_ *State, n *onnx.Node) bool {
	if a := n.Attribute("scales"); a != nil {
		return !slices.ContainsFunc(a.Floats(), func(f float32) bool { return f != 1 })
	}
	return isUniform(n.Input(1), 1)
}

// isUniform says whether v is a non-empty constant of real numbers all equal to want.
func isUniform(v *onnx.Value, want float64) bool {
	if v == nil {
		return false
	}
	d := constantDense(v, smallConstant)
	if d == nil || d.Len() == 0 {
		return false
	}
	values, ok := d.Float64s()
	return ok && !slices.ContainsFunc(values, func(f float64) bool { return f != want })
}
