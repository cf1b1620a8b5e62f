package infer

import (
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// shapeOperators read shapes, or give elements another shape.
var shapeOperators = []operator{
	{name: "Shape", since: 1, rule: shapeOf},
	{name: "Size", since: 1, rule: sizeOf},
	{name: "Reshape", since: 1, rule: reshape},
	{name: "Flatten", since: 1, rule: flatten},
	{name: "Squeeze", since: 1, rule: squeeze},
	{name: "Unsqueeze", since: 1, rule: unsqueeze},
	{name: "Transpose", since: 1, rule: transpose},
	{name: "Expand", since: 8, rule: expand},
	{name: "Tile", since: 1, rule: tileAlongAxis},
	{name: "Tile", since: 6, rule: tile},
	{name: "DepthToSpace", since: 1, rule: depthToSpace},
	{name: "SpaceToDepth", since: 1, rule: spaceToDepth},
}

// shapeOf gives the dims as elements, from start to end since opset 15.
func shapeOf(c *call) {
	dims, ok := c.dims(0)
	if !ok {
		c.setDims(0, Unknown())
		return
	}
	start, end := clampRange(c.int("start", 0), c.int("end", int64(len(dims))), len(dims))
	values := make([]Value, 0, end-start)
	for _, d := range dims[start:end] {
		values = append(values, Integer(d))
	}
	c.setDims(0, Const(int64(len(values))))
	c.setValues(0, values)
}

// clampRange counts negative ends from the end and brings both into 0..n, in order.
func clampRange(start, end int64, n int) (from, to int) {
	clamp := func(x int64) int {
		if x < 0 {
			x += int64(n)
		}
		return int(min(max(x, 0), int64(n)))
	}
	from, to = clamp(start), clamp(end)
	return from, max(from, to)
}

func sizeOf(c *call) {
	c.setDims(0)
	if _, ok := c.dims(0); ok {
		c.setValues(0, []Value{Integer(c.in(0).Count())})
	}
}

// reshape resolves the target's 0s, its -1 and what may turn out to be one.
func reshape(c *call) {
	target := c.reshapeTarget()
	if target == nil {
		if n, ok := c.vectorLength(1); ok {
			c.setDims(0, c.resolveTarget(make([]Value, n))...)
		}
		return
	}
	dims := c.resolveTarget(target)
	c.setDims(0, dims...)
	c.keepElements()
}

// keepElements passes on the elements of input 0 to an output of another shape.
func (c *call) keepElements() {
	if c.follow(0) {
		c.setValues(0, c.values(0))
	}
}

// reshapeTarget gives the wanted dims: an attribute before opset 5, an input since.
func (c *call) reshapeTarget() []Value {
	if c.opset >= 5 {
		return c.elements(1)
	}
	list, ok := c.intList("shape")
	if !ok {
		return nil
	}
	target := make([]Value, len(list))
	for i, n := range list {
		target[i] = Integer(Const(n))
	}
	return target
}

// vectorLength gives the length of input i, a vector, when it is a small number.
func (c *call) vectorLength(i int) (int, bool) {
	dims, ok := c.dims(i)
	if !ok || len(dims) != 1 {
		return 0, false
	}
	n, ok := dims[0].Known()
	return int(n), ok && n <= maxRank
}

// resolveTarget gives the dims that a Reshape makes. Elements that are not known
// to be sizes may be -1; when only one is, its dim follows from the others.
func (c *call) resolveTarget(target []Value) []Dim {
	dims := make([]Dim, len(target))
	explicit := slices.ContainsFunc(target, func(v Value) bool { return v.Dim().Is(-1) })
	var open []int
	for k, v := range target {
		d := v.Dim()
		switch {
		case d.Is(0) && c.int("allowzero", 0) == 0:
			d = c.copiedDim(k)
		case d.Is(-1), !explicit && !c.isSize(d), d.IsUnknown():
			d = Unknown()
		}
		if dims[k] = d; d.IsUnknown() {
			open = append(open, k)
		}
	}
	if c.int("allowzero", 0) == 0 {
		dims = c.copyWhereZero(target, dims)
	}
	if in, ok := c.dims(0); ok && len(open) == 1 {
		dims[open[0]] = c.remainingDim(in, dims, open[0])
	} else if ok && len(open) == 0 {
		c.checkReshape(in, dims)
	}
	return dims
}

// copiedDim is what a 0 at position k of a target means.
func (c *call) copiedDim(k int) Dim {
	in, ok := c.dims(0)
	if !ok {
		return Unknown()
	}
	if k >= len(in) {
		c.conflictf("the target copies dim %d of %s", k, c.describe(0))
		return Unknown()
	}
	return in[k]
}

func (c *call) checkReshape(in, out []Dim) {
	if a, b := product(in), product(out); a.Differ(b) {
		c.conflictf("%s has %s elements, the target [%s] asks for %s", c.describe(0), a, join(out), b)
	}
}

// remainingDim is what the one open dim must be for the element counts to agree.
// Dims that occur on both sides cancel.
func (c *call) remainingDim(in, out []Dim, open int) Dim {
	above := slices.Clone(in)
	below := Const(1)
	for k, d := range out {
		if k == open {
			continue
		}
		if at := slices.IndexFunc(above, d.Equal); at >= 0 && !d.Is(0) {
			above = slices.Delete(above, at, at+1)
		} else {
			below = below.Mul(d)
		}
	}
	total := product(above)
	if below.Is(0) {
		return Unknown()
	}
	n, known := total.Known()
	if m, ok := below.Known(); ok && known && n%m != 0 {
		c.conflictf("%s does not divide into the target [%s]", c.describe(0), join(out))
		return Unknown()
	}
	return total.Div(below)
}

// flatten makes two dims of all: those before the axis, and the rest.
func flatten(c *call) {
	dims, ok := c.dims(0)
	if !ok {
		c.setDims(0, Unknown(), Unknown())
		return
	}
	axis := c.int("axis", 1)
	if axis < 0 {
		axis += int64(len(dims))
	}
	if axis < 0 || axis > int64(len(dims)) {
		c.conflictf("axis %d is outside rank %d of %s", axis, len(dims), c.describe(0))
		return
	}
	c.setDims(0, product(dims[:axis]), product(dims[axis:]))
	c.keepElements()
}

// axes gives the axes that a node names in an attribute, or since some opset in
// input i. known is false when an input is given that is not known.
func (c *call) axes(i, inputSince int) (axes []int64, given, known bool) {
	if c.opset < inputSince {
		axes, given = c.intList("axes")
		return axes, given, true
	}
	if !c.has(i) {
		return nil, false, true
	}
	axes, known = c.ints(i)
	return axes, true, known
}

// axisSet marks normalised axes of a rank; ok is false when one is out of range.
func (c *call) axisSet(axes []int64, rank int) (set []bool, ok bool) {
	set = make([]bool, rank)
	for _, a := range axes {
		n, ok := c.normalAxis(a, rank)
		if !ok {
			return nil, false
		}
		set[n] = true
	}
	return set, true
}

// squeeze drops the named dims, or every dim of 1.
func squeeze(c *call) {
	dims, ok := c.dims(0)
	axes, given, known := c.axes(1, 13)
	if !ok {
		return
	}
	if !known {
		if n, ok := c.vectorLength(1); ok && n <= len(dims) {
			c.setDims(0, unknowns(len(dims)-n)...)
		}
		return
	}
	drop, ok := c.axisSet(axes, len(dims))
	if !ok {
		return
	}
	for k, d := range dims {
		switch {
		case !given && d.Is(1):
			drop[k] = true
		case !given && !d.Differ(Const(1)):
			return // nobody knows the rank
		case drop[k] && d.Differ(Const(1)):
			c.conflictf("dim %d of %s is not 1", k, c.describe(0))
		}
	}
	var kept []Dim
	for k, d := range dims {
		if !drop[k] {
			kept = append(kept, d)
		}
	}
	c.setDims(0, kept...)
	c.keepElements()
}

// unknowns makes n unknown dims.
func unknowns(n int) []Dim {
	dims := make([]Dim, n)
	for i := range dims {
		dims[i] = Unknown()
	}
	return dims
}

// unsqueeze puts in dims of 1; axes count in the result.
func unsqueeze(c *call) {
	dims, ok := c.dims(0)
	axes, given, known := c.axes(1, 13)
	if !ok || !given {
		return
	}
	if !known {
		if n, ok := c.vectorLength(1); ok {
			c.setDims(0, unknowns(len(dims)+n)...)
		}
		return
	}
	if len(axes) > maxRank {
		return
	}
	rank := len(dims) + len(axes)
	isNew, ok := c.axisSet(axes, rank)
	if !ok {
		return
	}
	out := make([]Dim, 0, rank)
	for _, fresh := range isNew {
		switch {
		case fresh:
			out = append(out, Const(1))
		case len(dims) > 0:
			out, dims = append(out, dims[0]), dims[1:]
		default:
			c.conflictf("axes %v name a dim twice", axes)
			return
		}
	}
	c.setDims(0, out...)
	c.keepElements()
}

// transpose permutes dims; without perm it reverses them.
func transpose(c *call) {
	dims, ok := c.dims(0)
	perm, given := c.intList("perm")
	switch {
	case !ok && given:
		c.setDims(0, unknowns(len(perm))...)
		return
	case !ok:
		return
	case !given:
		perm = make([]int64, len(dims))
		for k := range perm {
			perm[k] = int64(len(dims) - 1 - k)
		}
	case len(perm) != len(dims):
		c.conflictf("perm %v does not fit %s", perm, c.describe(0))
		return
	}
	out := make([]Dim, len(dims))
	for k, p := range perm {
		if p < 0 || p >= int64(len(dims)) {
			c.conflictf("perm %v does not fit %s", perm, c.describe(0))
			return
		}
		out[k] = dims[p]
	}
	c.setDims(0, out...)
	c.transposeElements(perm)
}

func (c *call) transposeElements(perm []int64) {
	shape, ok := c.in(0).Shape()
	if !ok || !c.follow(0) {
		return
	}
	strides := tensor.Strides(shape)
	turned, to := make([]int, len(perm)), make([]int, len(perm))
	for k, p := range perm {
		turned[k], to[k] = strides[p], shape[p]
	}
	c.setValues(0, pick(c.values(0), to, func(index []int) int { return dot(index, turned) }))
}

// pick makes the elements of a tensor of the given shape: each is the one of
// values at the position that at gives for its index, or unknown when that is negative.
func pick(values []Value, shape []int, at func(index []int) int) []Value {
	n, err := tensor.Count(shape)
	if err != nil || n > maxValues || values == nil {
		return nil
	}
	out := make([]Value, n)
	index := make([]int, len(shape))
	for k := range out {
		if from := at(index); from >= 0 && from < len(values) {
			out[k] = values[from]
		}
		advance(index, shape)
	}
	return out
}

// advance moves an index to the next element in row-major order.
func advance(index, shape []int) {
	for a := len(index) - 1; a >= 0; a-- {
		if index[a]++; index[a] < shape[a] {
			return
		}
		index[a] = 0
	}
}

func dot(index, strides []int) int {
	at := 0
	for a, i := range index {
		at += i * strides[a]
	}
	return at
}

// expand broadcasts to a target that may be smaller.
func expand(c *call) {
	dims, ok := c.dims(0)
	target := c.elements(1)
	if target == nil {
		if n, known := c.vectorLength(1); ok && known {
			c.setDims(0, unknowns(max(n, len(dims)))...)
		}
		return
	}
	if !ok || len(target) > maxRank {
		return
	}
	wanted := make([]Dim, len(target))
	for k, v := range target {
		wanted[k] = v.Dim()
	}
	c.setDims(0, c.broadcast(dims, wanted, 1)...)
	if n, ok := c.outputs[0].Count().Known(); ok && n <= maxValues && c.follow(0) {
		c.setValues(0, c.spread(0, int(n)))
	}
}

// tile repeats every dim.
func tile(c *call) {
	dims, ok := c.dims(0)
	if !ok {
		if n, known := c.vectorLength(1); known {
			c.setDims(0, unknowns(n)...)
		}
		return
	}
	repeats := c.elements(1)
	if len(repeats) != len(dims) {
		c.setDims(0, unknowns(len(dims))...)
		return
	}
	out := make([]Dim, len(dims))
	for k, d := range dims {
		out[k] = d.Mul(repeats[k].Dim())
	}
	c.setDims(0, out...)
	c.tileElements()
}

func (c *call) tileElements() {
	from, ok := c.in(0).Shape()
	to, okToo := c.outputs[0].Shape()
	if !ok || !okToo || !c.follow(0) {
		return
	}
	strides := tensor.Strides(from)
	c.setValues(0, pick(c.values(0), to, func(index []int) int {
		at := 0
		for a, i := range index {
			at += i % from[a] * strides[a]
		}
		return at
	}))
}

// tileAlongAxis is version 1: so many tiles along one axis, both inputs.
func tileAlongAxis(c *call) {
	dims, ok := c.dims(0)
	if !ok {
		return
	}
	axis, known := c.integer(2)
	tiles := c.elements(1)
	if !known || len(tiles) != 1 || axis < 0 || axis >= int64(len(dims)) {
		c.setDims(0, unknowns(len(dims))...)
		return
	}
	out := slices.Clone(dims)
	out[axis] = out[axis].Mul(tiles[0].Dim())
	c.setDims(0, out...)
}

func depthToSpace(c *call) {
	b := c.int("blocksize", 0)
	dims, ok := c.dims(0)
	if !ok || len(dims) != 4 || b <= 0 || b > maxBlock {
		c.setDims(0, unknowns(4)...)
		return
	}
	c.setDims(0, dims[0], dims[1].Div(Const(b*b)), dims[2].MulConst(b), dims[3].MulConst(b))
}

func spaceToDepth(c *call) {
	b := c.int("blocksize", 0)
	dims, ok := c.dims(0)
	if !ok || len(dims) != 4 || b <= 0 || b > maxBlock {
		c.setDims(0, unknowns(4)...)
		return
	}
	c.setDims(0, dims[0], dims[1].MulConst(b*b), dims[2].Div(Const(b)), dims[3].Div(Const(b)))
}

// maxBlock keeps the square of a block size within an int64.
const maxBlock = 1 << 30
