package onnxpass

import (
	"slices"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/infer"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// mergeChains makes one node of two that follow each other and do the same kind
// of thing. A chain of any length shrinks step by step.
//
//	before: a = Transpose<perm = [1,0]>(x);  y = Transpose<perm = [1,0]>(a)
//	after:  y = Transpose<perm = [0,1]>(x)      (which eliminateIdentities removes)
//
// The first node stays for its other readers. A merge is done only where the
// numbers it needs are known.
func mergeChains(s *State) error {
	return s.eachNode(func(n *onnx.Node) error {
		if n.CanonicalDomain() != "" || n.Input(0) == nil || n.Output(0) == nil {
			return nil
		}
		p := n.Input(0).Producer()
		if p == nil || p.CanonicalDomain() != "" || p.HasReferences() || p.Input(0) == nil || p.Graph() != n.Graph() || p.Output(0) != n.Input(0) {
			return nil
		}
		for _, rule := range chainRules {
			if slices.Contains(rule.first, p.OpType) && slices.Contains(rule.then, n.OpType) && rule.merge(s, p, n) {
				s.changed()
				return nil
			}
		}
		return nil
	})
}

var reshapers = []string{"Reshape", "Flatten", "Squeeze", "Unsqueeze"}

// chainRules lists what can be merged: merge(first, then) rewires the second
// node so that it reads past the first.
var chainRules = []struct {
	first, then []string
	merge       func(s *State, first, then *onnx.Node) bool
}{
	{[]string{"Cast"}, []string{"Cast"}, mergeCasts},
	{[]string{"Transpose"}, []string{"Transpose"}, mergeTransposes},
	{[]string{"Transpose"}, reshapers, mergeUnitTranspose},
	{reshapers, []string{"Transpose"}, mergeUnitTranspose},
	{[]string{"Transpose"}, reshapers, transposeOnes},
	{[]string{"Transpose"}, []string{"Squeeze"}, squeezeFirst},
	{[]string{"Pad"}, []string{"Transpose"}, padLast},
	{[]string{"Unsqueeze"}, []string{"Unsqueeze"}, mergeUnsqueezes},
	{[]string{"Squeeze"}, []string{"Squeeze"}, mergeSqueezes},
	{reshapers, reshapers, mergeReshapes},
	{[]string{"Slice"}, []string{"Slice"}, mergeSlices},
	{[]string{"Relu"}, []string{"Relu"}, mergeRelus},
	{[]string{"Relu"}, []string{"Clip"}, mergeReluClip},
	{reducers, []string{"Unsqueeze"}, mergeReduceUnsqueeze},
}

// mergeCasts drops a first Cast that loses nothing: what comes after sees the
// same values.
func mergeCasts(s *State, first, then *onnx.Node) bool {
	from, to := s.infer.Of(first.Input(0)).Elem, s.infer.Of(first.Output(0)).Elem
	if !holdsAll(to, from) {
		return false
	}
	then.SetInput(0, first.Input(0))
	return true
}

// holdsAll says whether every value of type from has an equal of type to.
func holdsAll(to, from tensor.Type) bool {
	if from == tensor.Undefined || to == tensor.Undefined {
		return false
	}
	if from == to {
		return true
	}
	have, fits := exactBits[from], exactBits[to]
	switch {
	case have.bits == 0 || fits.bits == 0 || have.float && !fits.float:
		return false
	case have.float:
		return fits.bits >= have.bits && fits.exponent >= have.exponent
	case have.signed && !fits.signed:
		return false
	}
	return fits.bits >= have.bits
}

// exactBits says of each type how many bits of an integer it holds exactly
// (sign apart), and of a float how many bits its exponent has.
var exactBits = map[tensor.Type]struct {
	bits, exponent int
	signed, float  bool
}{
	tensor.Bool:     {bits: 1},
	tensor.Uint8:    {bits: 8},
	tensor.Uint16:   {bits: 16},
	tensor.Uint32:   {bits: 32},
	tensor.Uint64:   {bits: 64},
	tensor.Int8:     {bits: 7, signed: true},
	tensor.Int16:    {bits: 15, signed: true},
	tensor.Int32:    {bits: 31, signed: true},
	tensor.Int64:    {bits: 63, signed: true},
	tensor.Float16:  {bits: 11, exponent: 5, signed: true, float: true},
	tensor.BFloat16: {bits: 8, exponent: 8, signed: true, float: true},
	tensor.Float32:  {bits: 24, exponent: 8, signed: true, float: true},
	tensor.Float64:  {bits: 53, exponent: 11, signed: true, float: true},
}

func mergeTransposes(s *State, first, then *onnx.Node) bool {
	rank, ok := s.rank(first.Input(0))
	if !ok {
		return false
	}
	a, b := permutation(first, rank), permutation(then, rank)
	perm := make([]int64, rank)
	for i := range perm {
		perm[i] = int64(a[b[i]])
	}
	then.SetInput(0, first.Input(0))
	then.SetAttribute(onnx.IntsAttribute("perm", perm...))
	return true
}

// mergeUnitTranspose: a Transpose that moves nothing but axes of size 1 leaves the
// elements in their order, as a Reshape does.
func mergeUnitTranspose(s *State, first, then *onnx.Node) bool {
	transpose := first
	if then.Is("Transpose") {
		transpose = then
	}
	dims, ok := s.dims(transpose.Input(0))
	if !ok || transpose.HasReferences() {
		return false
	}
	last := -1
	for _, from := range permutation(transpose, len(dims)) {
		if size, known := dims[from].Known(); known && size == 1 {
			continue
		}
		if from < last {
			return false
		}
		last = from
	}
	return mergeReshapes(s, first, then)
}

// transposeOnes: where a Reshape behind a Transpose does nothing but put axes of size
// 1 elsewhere, one Transpose does both.
//
//	before: t = Transpose<0,2,3,1>(x[1,36,1,172]);  y = Reshape(t, [1,172,36,1])
//	after:  y = Transpose<0,3,1,2>(x)
func transposeOnes(s *State, first, then *onnx.Node) bool {
	in, okIn := s.knownDims(first.Output(0))
	out, okOut := s.knownDims(then.Output(0))
	if !okIn || !okOut || len(in) != len(out) {
		return false
	}
	var ones, others []int // the axes that the Transpose reads, in the order in which it gives them
	for axis, from := range permutation(first, len(in)) {
		if in[axis] == 1 {
			ones = append(ones, from)
		} else {
			others = append(others, from)
		}
	}
	isOne := func(n int) bool { return n == 1 }
	if !slices.Equal(slices.DeleteFunc(slices.Clone(in), isOne), slices.DeleteFunc(slices.Clone(out), isOne)) {
		return false
	}
	perm := make([]int64, len(out))
	for axis, size := range out {
		next := &others
		if size == 1 {
			next = &ones
		}
		perm[axis] = int64((*next)[0])
		*next = (*next)[1:]
	}
	then.OpType = "Transpose"
	then.ClearAttributes()
	then.SetInputs(first.Input(0))
	then.SetAttribute(onnx.IntsAttribute("perm", perm...))
	return true
}

// squeezeFirst moves a Squeeze before the Transpose where it then meets a Reshape or
// its like, with which it becomes one.
//
//	before: r = Reshape(x, [1,4,2,3]);  t = Transpose<2,1,0,3>(r);  y = Squeeze(t, [2])
//	after:  r = Reshape(x, [4,2,3]);    y = Transpose<1,0,2>(r)
func squeezeFirst(s *State, first, then *onnx.Node) bool {
	rank, ok := s.rank(first.Input(0))
	axes, known := s.axesOf(then, rank)
	if !ok || !known || !onlyUse(first.Output(0)) || first.Output(0).IsOutput() || !onlyUse(first.Input(0)) {
		return false
	}
	before := first.Input(0).Producer()
	if before == nil || before.Graph() != first.Graph() || before.CanonicalDomain() != "" || !slices.Contains(reshapers, before.OpType) {
		return false
	}
	perm := permutation(first, rank)
	var gone, kept []int
	for i, from := range perm {
		if slices.Contains(axes, i) {
			gone = append(gone, from)
		} else {
			kept = append(kept, from)
		}
	}
	shorter := make([]int64, len(kept))
	for i, from := range kept {
		shorter[i] = int64(from)
		for _, g := range gone {
			if g < from {
				shorter[i]--
			}
		}
	}
	between := first.Output(0)
	then.OpType, first.OpType = first.OpType, then.OpType
	then.Name, first.Name = first.Name, then.Name
	first.ClearAttributes()
	s.setAxesOf(first, gone)
	between.Type = nil
	s.infer.Node(first)
	then.ClearAttributes()
	then.SetAttribute(onnx.IntsAttribute("perm", shorter...))
	then.SetInputs(between)
	return true
}

// axesOf gives the axes of a Squeeze or Unsqueeze, normalized for rank: that of
// its input for the one, of its output for the other.
func (s *State) axesOf(n *onnx.Node, rank int) (axes []int, ok bool) {
	values, present, known := s.attributeOrInts(n, "axes", 1)
	if !present || !known {
		return nil, false
	}
	axes, ok = normalizeAxes(values, rank)
	slices.Sort(axes)
	return axes, ok
}

// mergeUnsqueezes: the axes that the first adds are moved up by those that the
// second adds before or at them.
func mergeUnsqueezes(s *State, first, then *onnx.Node) bool {
	rank, ok := s.rank(then.Output(0))
	if !ok {
		return false
	}
	outer, ok := s.axesOf(then, rank)
	if !ok {
		return false
	}
	inner, ok := s.axesOf(first, rank-len(outer))
	if !ok {
		return false
	}
	return s.setAxes(first, then, slices.Concat(outer, keptPositions(inner, outer, rank)))
}

// mergeSqueezes: the axes that the second removes lie among those the first left.
func mergeSqueezes(s *State, first, then *onnx.Node) bool {
	rank, ok := s.rank(first.Input(0))
	if !ok {
		return false
	}
	inner, ok := s.axesOf(first, rank)
	if !ok {
		return false
	}
	outer, ok := s.axesOf(then, rank-len(inner))
	if !ok {
		return false
	}
	return s.setAxes(first, then, slices.Concat(inner, keptPositions(outer, inner, rank)))
}

// keptPositions translates positions among the axes of 0..rank that are not in
// taken into positions among all.
func keptPositions(positions, taken []int, rank int) []int {
	var free []int
	for axis := range rank {
		if !slices.Contains(taken, axis) {
			free = append(free, axis)
		}
	}
	out := make([]int, len(positions))
	for i, p := range positions {
		out[i] = free[p]
	}
	return out
}

// setAxes makes then read past first and gives it the axes.
func (s *State) setAxes(first, then *onnx.Node, axes []int) bool {
	s.setAxesOf(then, axes)
	then.SetInput(0, first.Input(0))
	return true
}

// setAxesOf gives a Squeeze or Unsqueeze its axes, in the form of its opset.
func (s *State) setAxesOf(n *onnx.Node, axes []int) {
	slices.Sort(axes)
	values := make([]int64, len(axes))
	for i, a := range axes {
		values[i] = int64(a)
	}
	if n.Opset() < 13 {
		n.SetAttribute(onnx.IntsAttribute("axes", values...))
		return
	}
	n.SetInput(1, s.intsConstant(n.Graph(), n.Output(0).Name()+"_axes", values))
}

// mergeReshapes makes one Reshape of two operators that only change the shape,
// when the result's dims can be spelled out against the first one's input.
func mergeReshapes(s *State, first, then *onnx.Node) bool {
	if then.Opset() < 5 {
		return false
	}
	in, okIn := s.dims(first.Input(0))
	out, okOut := s.dims(then.Output(0))
	if !okIn || !okOut {
		return false
	}
	if slices.EqualFunc(in, out, infer.Dim.Equal) {
		s.replace(then, first.Input(0))
		return true
	}
	target, ok := literalTarget(in, out)
	if !ok || slices.Contains(target, -1) && slices.Contains(target, 0) {
		return false // a -1 has no meaning when the dim that 0 copies is empty
	}
	then.OpType = "Reshape"
	then.ClearAttributes()
	then.SetInputs(first.Input(0), s.intsConstant(then.Graph(), then.Output(0).Name()+"_shape", target))
	return true
}

func mergeRelus(_ *State, first, then *onnx.Node) bool {
	then.SetInput(0, first.Input(0))
	return true
}

// mergeReluClip: a Clip that cuts at 0 or above does not need a Relu before it.
func mergeReluClip(s *State, first, then *onnx.Node) bool {
	low := float64(then.Float("min", -1))
	if then.Opset() >= 11 {
		if then.Input(1) == nil {
			return false
		}
		d := constantDense(then.Input(1), 8)
		if d == nil {
			return false
		}
		values, ok := d.Float64s()
		if !ok || len(values) != 1 {
			return false
		}
		low = values[0]
	}
	if !(low >= 0) {
		return false
	}
	then.SetInput(0, first.Input(0))
	return true
}

var reducers = []string{"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd",
	"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"}

// mergeReduceUnsqueeze: adding the reduced axes back as ones is keepdims.
func mergeReduceUnsqueeze(s *State, first, then *onnx.Node) bool {
	rank, ok := s.rank(first.Input(0))
	if !ok || first.Int("keepdims", 1) != 0 || !onlyUse(first.Output(0)) {
		return false
	}
	values, present, known := s.attributeOrInts(first, "axes", 1)
	if !present || !known || len(values) == 0 {
		return false
	}
	reduced, ok := normalizeAxes(values, rank)
	if !ok {
		return false
	}
	slices.Sort(reduced)
	added, ok := s.axesOf(then, rank)
	if !ok || !slices.Equal(reduced, added) {
		return false
	}
	then.OpType = first.OpType
	then.SetInputs(first.Inputs()...)
	then.ClearAttributes()
	for _, a := range first.Attributes() {
		if a.Name() != "keepdims" {
			then.SetAttribute(a)
		}
	}
	then.SetAttribute(onnx.IntAttribute("keepdims", 1))
	return true
}
