package feeds

import (
	"slices"

	"github.com/npuctl/npuctl/onnx"
)

// traits says what the model does with an input, as far as that limits its values.
type traits struct {
	// below bounds integers that are indices into a table; 0 when they are none.
	below int64
	// size is set when elements become a size, a count or a number of rounds.
	size bool
}

// traitsOf follows an input through the graph.
func traitsOf(v *onnx.Value) traits {
	return traits{below: indexBound(v), size: reachesSize(v)}
}

// place is an input of an operator of the default domain.
type place struct {
	op    string
	input int
}

// moves lists operators that hand on the elements of one input as they are.
var moves = map[place]bool{
	{"Identity", 0}: true, {"Cast", 0}: true, {"Reshape", 0}: true, {"Flatten", 0}: true, {"Squeeze", 0}: true,
	{"Unsqueeze", 0}: true, {"Transpose", 0}: true, {"Slice", 0}: true, {"Expand", 0}: true, {"Tile", 0}: true,
	{"Split", 0}: true, {"Gather", 0}: true, {"Concat", 0}: true, {"Concat", 1}: true, {"Concat", 2}: true,
}

// indexBound is the length of the shortest table that elements of v are indices
// into, when they get there unchanged.
func indexBound(v *onnx.Value) (bound int64) {
	seen := map[*onnx.Value]bool{}
	work := []*onnx.Value{v}
	for len(work) > 0 {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		if v == nil || seen[v] {
			continue
		}
		seen[v] = true
		for _, u := range v.Uses() {
			n := u.Node
			if f := n.Model().Callee(n); f != nil {
				if u.Input < len(f.Body.Inputs()) {
					work = append(work, f.Body.Inputs()[u.Input])
				}
				continue
			}
			if n.CanonicalDomain() != "" {
				continue
			}
			if limit := tableLength(n, u.Input); limit > 0 && (bound == 0 || limit < bound) {
				bound = limit
			}
			if moves[place{n.OpType, u.Input}] {
				work = append(work, n.Outputs()...)
			}
		}
	}
	return bound
}

// tableLength is the size of the axis that input number i of a Gather indexes, if
// it is known; 0 otherwise.
func tableLength(n *onnx.Node, i int) int64 {
	if i != 1 || n.OpType != "Gather" || n.Input(0) == nil {
		return 0
	}
	t := n.Input(0).Type
	if c := n.Input(0).Constant(); c != nil {
		t = onnx.TensorType(c.Type(), c.Shape()...)
	}
	if !t.IsTensor() || t.Shape == nil {
		return 0
	}
	axis := int(n.Int("axis", 0))
	if axis < 0 {
		axis += len(t.Shape.Dims)
	}
	if axis < 0 || axis >= len(t.Shape.Dims) || !t.Shape.Dims[axis].Known {
		return 0
	}
	return t.Shape.Dims[axis].Value
}

// sizeInputs lists, for operators of the default domain, the inputs that say how large
// a result is, where it is cut, or how often something runs.
var sizeInputs = map[string][]int{
	"AffineGrid": {1}, "BlackmanWindow": {0}, "CenterCropPad": {1}, "Col2Im": {1, 2}, "ConstantOfShape": {0}, "CumSum": {1},
	"DFT": {1, 2}, "Expand": {1}, "HammingWindow": {0}, "HannWindow": {0}, "Loop": {0}, "MaxUnpool": {2},
	"MelWeightMatrix": {0, 1, 2}, "NonMaxSuppression": {2}, "OneHot": {1}, "Pad": {1, 3}, "Range": {0, 1, 2}, "Reshape": {1},
	"Resize": {1, 2, 3}, "STFT": {1, 3}, "SequenceAt": {1}, "SequenceErase": {1}, "SequenceInsert": {2}, "Slice": {1, 2, 3, 4},
	"Split": {1}, "SplitToSequence": {1}, "Squeeze": {1}, "Tile": {1}, "TopK": {1}, "Trilu": {1}, "Unsqueeze": {1}, "Upsample": {1},
}

// ends lists operators beyond which an input is not followed: what they give says
// nothing of their input's elements, or no longer looks like it.
var ends = []string{
	"Attention", "AveragePool", "BatchNormalization", "Conv", "ConvInteger", "ConvTranspose", "Einsum", "GRU", "Gemm",
	"GlobalAveragePool", "InstanceNormalization", "LSTM", "LayerNormalization", "MatMul", "MatMulInteger", "MaxPool",
	"NonMaxSuppression", "QLinearConv", "QLinearMatMul", "RNN", "Shape", "Size", "Softmax",
}

// indexed lists inputs whose elements only choose among those of another.
var indexed = map[place]bool{{"Gather", 1}: true, {"GatherElements", 1}: true, {"GatherND", 1}: true}

// Decides says whether the elements of input number i of a node say how large its
// result is, where it is cut, which elements are taken or how often it runs: with other
// elements the node may fail, or no longer.
func Decides(n *onnx.Node, i int) bool {
	if n.CanonicalDomain() != "" || n.Model().Callee(n) != nil {
		return true // nobody knows
	}
	return slices.Contains(sizeInputs[n.OpType], i) || indexed[place{n.OpType, i}]
}

// reachesSize says whether elements of v become a size, as they are or computed
// with in simple ways.
func reachesSize(v *onnx.Value) bool {
	seen := map[*onnx.Value]bool{}
	work := []*onnx.Value{v}
	for len(work) > 0 {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		if v == nil || seen[v] {
			continue
		}
		seen[v] = true
		for _, g := range v.OutputOf() {
			if g.Owner() != nil {
				work = append(work, g.Owner().Outputs()...)
			}
		}
		for _, u := range v.Uses() {
			n := u.Node
			if n.CanonicalDomain() == "" && slices.Contains(sizeInputs[n.OpType], u.Input) {
				return true
			}
			if n.CanonicalDomain() == "" && (slices.Contains(ends, n.OpType) || indexed[place{n.OpType, u.Input}]) {
				continue
			}
			work = append(work, n.Outputs()...)
			for _, g := range n.Subgraphs() {
				work = append(work, g.Inputs()...)
			}
			if f := n.Model().Callee(n); f != nil && u.Input < len(f.Body.Inputs()) {
				work = append(work, f.Body.Inputs()[u.Input])
			}
		}
	}
	return false
}
