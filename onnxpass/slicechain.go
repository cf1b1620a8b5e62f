package onnxpass

import (
	"maps"
	"math"
	"slices"

	"github.com/npuctl/npuctl/onnx"
)

// sliceRange is what a Slice takes of one axis, with a step of 1 and both ends
// counted from the start of the axis.
type sliceRange struct{ start, end int64 }

// mergeSlices makes one Slice of two: on axes that both cut, the second range
// lies inside the first.
//
//	before: a = Slice(x, [2], [10], [1]);  y = Slice(a, [1], [4], [1])
//	after:  y = Slice(x, [3], [6], [1])
func mergeSlices(s *State, first, then *onnx.Node) bool {
	a, ok := s.sliceRanges(first)
	if !ok {
		return false
	}
	b, ok := s.sliceRanges(then)
	if !ok {
		return false
	}
	for axis, outer := range b {
		inner, both := a[axis]
		if both {
			outer = sliceRange{inner.start + outer.start, min(inner.end, addClamped(inner.start, outer.end))}
		}
		a[axis] = outer
	}
	then.SetInput(0, first.Input(0))
	s.setSlice(then, a)
	return true
}

func addClamped(a, b int64) int64 {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}

// sliceRanges reads a Slice whose numbers are all known and whose steps are 1.
// Ends counted from the back need the size of the axis.
func (s *State) sliceRanges(n *onnx.Node) (ranges map[int]sliceRange, ok bool) {
	starts, _, ok1 := s.attributeOrInts(n, "starts", 1)
	ends, _, ok2 := s.attributeOrInts(n, "ends", 2)
	given, haveAxes, ok3 := s.attributeOrInts(n, "axes", 3)
	steps, haveSteps, ok4 := s.attributeOrInts(n, "steps", 4)
	dims, ranked := s.dims(n.Input(0))
	if !ok1 || !ok2 || !ok3 || !ok4 || !ranked || haveSteps && !allEqual(steps, 1) || len(starts) != len(ends) {
		return nil, false
	}
	if !haveAxes {
		for i := range starts {
			given = append(given, int64(i))
		}
	}
	axes, ok := normalizeAxes(given, len(dims))
	if !ok || len(axes) != len(starts) {
		return nil, false
	}
	ranges = map[int]sliceRange{}
	for i, axis := range axes {
		r := sliceRange{starts[i], ends[i]}
		if r.start < 0 || r.end < 0 {
			size, known := dims[axis].Known()
			if !known {
				return nil, false
			}
			r = sliceRange{fromFront(r.start, size), fromFront(r.end, size)}
		}
		if _, twice := ranges[axis]; twice {
			return nil, false
		}
		ranges[axis] = r
	}
	return ranges, true
}

func fromFront(position, size int64) int64 {
	if position < 0 {
		position += size
	}
	return min(max(position, 0), size)
}

// setSlice writes the ranges into n, in the form of its opset.
func (s *State) setSlice(n *onnx.Node, ranges map[int]sliceRange) {
	var starts, ends, axes []int64
	for _, axis := range slices.Sorted(maps.Keys(ranges)) {
		axes = append(axes, int64(axis))
		starts = append(starts, ranges[axis].start)
		ends = append(ends, ranges[axis].end)
	}
	if n.Opset() < 10 {
		n.SetAttribute(onnx.IntsAttribute("starts", starts...))
		n.SetAttribute(onnx.IntsAttribute("ends", ends...))
		n.SetAttribute(onnx.IntsAttribute("axes", axes...))
		return
	}
	g, base := n.Graph(), n.Output(0).Name()
	n.SetInputs(n.Input(0), s.intsConstant(g, base+"_starts", starts), s.intsConstant(g, base+"_ends", ends), s.intsConstant(g, base+"_axes", axes))
}
