package onnxpass

import (
	"slices"

	"github.com/npuctl/npuctl/onnx"
)

// fusePads puts zeros that a Pad adds around an image into the Convs that read it.
//
//	before: p = Pad<constant>(x, [0,0,1,1,0,0,1,1], 0);  y = Conv<pads=[0,0,0,0]>(p, W)
//	after:  y = Conv<pads=[1,1,1,1]>(x, W)
//
// Everybody who reads the Pad must be such a Conv. Batch and channels must not be
// padded, and nothing cut off. No side may become as large as the kernel reaches:
// beyond that whole rows of results are of zeros alone, which not every backend takes.
func fusePads(s *State) error {
	return s.eachNode(func(n *onnx.Node) error {
		before, after, ok := s.zerosAround(n)
		if !ok {
			return nil
		}
		var pads [][]int64
		for _, u := range n.Output(0).Uses() {
			p, ok := s.padsWith(u, n.Graph(), before, after)
			if !ok {
				return nil
			}
			pads = append(pads, p)
		}
		for i, u := range n.Output(0).Uses() {
			u.Node.DropAttribute("auto_pad")
			u.Node.SetAttribute(onnx.IntsAttribute("pads", pads[i]...))
		}
		s.replaceOutput(n, n.Input(0))
		return nil
	})
}

// zerosAround reads a Pad that adds zeros on the axes behind the first two: how many
// before and after each of these.
func (s *State) zerosAround(n *onnx.Node) (before, after []int64, ok bool) {
	rank, isRanked := s.rank(n.Input(0))
	if !n.Is("Pad") || n.Opset() < 2 || n.HasReferences() || !isRanked || rank < 3 || n.String("mode", "constant") != "constant" ||
		n.Output(0) == nil || n.Output(0).IsOutput() || !n.Output(0).HasUses() || !s.padsWithZero(n) {
		return nil, nil, false
	}
	counts, ok := s.padCounts(n, rank)
	if !ok {
		return nil, nil, false
	}
	for i, count := range counts {
		if count < 0 || count > 0 && i%rank < 2 {
			return nil, nil, false
		}
	}
	return counts[2:rank], counts[rank+2:], true
}

// padCounts gives how many elements a Pad adds before every axis, and then after every
// axis.
func (s *State) padCounts(n *onnx.Node, rank int) ([]int64, bool) {
	counts, _, known := s.attributeOrInts(n, "pads", 1)
	axes, ok := s.paddedAxes(n, rank)
	if !known || !ok || len(counts) != 2*len(axes) {
		return nil, false
	}
	all := make([]int64, 2*rank)
	for i, axis := range axes {
		all[axis], all[rank+axis] = counts[i], counts[len(axes)+i]
	}
	return all, true
}

// padLast moves a Pad behind the Transpose that reads it: the Transpose has less to
// move, and may meet its inverse; the Pad may meet a Conv.
//
//	before: p = Pad(x, [0,1,1,0,0,1,1,0]);  y = Transpose<0,3,1,2>(p)
//	after:  t = Transpose<0,3,1,2>(x);      y = Pad(t, [0,0,1,1,0,0,1,1])
func padLast(s *State, first, then *onnx.Node) bool {
	rank, ok := s.rank(first.Input(0))
	if !ok || first.Opset() < 2 || then.HasReferences() || !onlyUse(first.Output(0)) {
		return false
	}
	counts, ok := s.padCounts(first, rank)
	if !ok {
		return false
	}
	perm := permutation(then, rank)
	moved := make([]int64, 2*rank)
	for to, from := range perm {
		moved[to], moved[rank+to] = counts[from], counts[rank+from]
	}
	attributes, value, between := first.Attributes(), first.Input(2), first.Output(0)
	transpose := then.Attributes()
	then.OpType, first.OpType = first.OpType, then.OpType
	then.Name, first.Name = first.Name, then.Name
	copyAttributes(then, attributes)
	copyAttributes(first, transpose)
	first.SetInputs(first.Input(0))
	if then.Opset() < 11 {
		then.SetAttribute(onnx.IntsAttribute("pads", moved...))
		then.SetInputs(between)
	} else {
		then.SetInputs(between, s.intsConstant(then.Graph(), then.Output(0).Name()+"_pads", moved), value)
	}
	between.Type = nil
	s.infer.Node(first)
	return true
}

// copyAttributes gives a node these attributes and no others.
func copyAttributes(n *onnx.Node, attributes []*onnx.Attribute) {
	n.ClearAttributes()
	for _, a := range attributes {
		n.SetAttribute(a)
	}
}

// padsWithZero says whether the value that a Pad adds is 0.
func (s *State) padsWithZero(n *onnx.Node) bool {
	if n.Opset() < 11 {
		return n.Float("value", 0) == 0
	}
	if n.Input(2) == nil {
		return true
	}
	w := s.weightOf(n.Input(2))
	return w != nil && w.len() == 1 && w.at(0) == 0
}

// paddedAxes lists the axes that the counts of a Pad are about: all, or from opset 18
// on those of its fourth input, each once.
func (s *State) paddedAxes(n *onnx.Node, rank int) (axes []int, ok bool) {
	if n.Input(3) == nil {
		for axis := range rank {
			axes = append(axes, axis)
		}
		return axes, true
	}
	values, known := s.ints(n.Input(3))
	if !known {
		return nil, false
	}
	seen := make([]bool, rank)
	for _, v := range values {
		axis := int(v)
		if v < 0 {
			axis += rank
		}
		if axis < 0 || axis >= rank || seen[axis] {
			return nil, false
		}
		seen[axis] = true
		axes = append(axes, axis)
	}
	return axes, true
}

// padsWith gives the pads of a Conv that reads a Pad's result, with the Pad's own added.
func (s *State) padsWith(u onnx.Use, g *onnx.Graph, before, after []int64) ([]int64, bool) {
	c := u.Node
	kernel, ok := s.knownDims(c.Input(1))
	spatial := len(before)
	auto := c.String("auto_pad", "NOTSET")
	if !c.Is("Conv") || u.Input != 0 || c.Graph() != g || c.HasReferences() || !ok || len(kernel) != spatial+2 || auto != "NOTSET" && auto != "VALID" {
		return nil, false
	}
	pads := make([]int64, 2*spatial)
	if own, given := c.Ints("pads"); given && auto == "NOTSET" {
		if len(own) != len(pads) {
			return nil, false
		}
		copy(pads, own)
	}
	dilations, _ := c.Ints("dilations")
	around := slices.Concat(before, after)
	for i := range pads {
		axis := i % spatial
		pads[i] += around[i]
		reach := int64(kernel[axis+2])
		if axis < len(dilations) {
			reach = (reach-1)*dilations[axis] + 1
		}
		if pads[i] >= reach && around[i] > 0 {
			return nil, false
		}
	}
	return pads, true
}
