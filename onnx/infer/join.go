package infer

import "slices"

// joinOperators put tensors together along an axis, or take them apart.
var joinOperators = []operator{
	{name: "Concat", since: 1, rule: concat},
	{name: "Split", since: 1, rule: split},
}

// concat adds up the dims along the axis; all others agree, but for those of parts that
// hold nothing. The axis was 1 by default in version 1.
func concat(c *call) {
	dims, ok := c.commonDims()
	if !ok {
		return
	}
	axis, ok := c.axis("axis", 1, len(dims))
	if !ok {
		return
	}
	sum := Const(0)
	for i := range c.inputs {
		in, ranked := c.dims(i)
		if !ranked || c.isEmptyPart(i) && !in[axis].Is(0) {
			sum = Unknown()
			continue
		}
		sum = sum.Add(in[axis])
	}
	dims[axis] = sum
	for k := range dims {
		if k != axis {
			dims[k] = c.agreeAll(k)
		}
	}
	c.setDims(0, dims...)
	c.concatElements(axis)
}

// isEmptyPart says whether input i surely holds no elements, while another one may: runtimes
// let such a part have any other dims, as a first, empty past of a decoder has.
func (c *call) isEmptyPart(i int) bool {
	return isEmpty(c.in(i)) && slices.ContainsFunc(c.inputs, func(f *Info) bool { return f != nil && f.Ranked && !isEmpty(f) })
}

func isEmpty(f *Info) bool {
	return f != nil && f.Ranked && slices.ContainsFunc(f.Dims, func(d Dim) bool { return d.Is(0) })
}

// commonDims gives the dims of the first input whose rank is known, in a new
// slice. Inputs of another rank are a conflict.
func (c *call) commonDims() (dims []Dim, ok bool) {
	first := -1
	for i := range c.inputs {
		in, ranked := c.dims(i)
		switch {
		case !ranked:
		case first < 0:
			first, dims = i, slices.Clone(in)
		case len(in) != len(dims):
			c.conflictf("%s and %s have different ranks", c.describe(first), c.describe(i))
			return nil, false
		}
	}
	return dims, first >= 0
}

// agreeAll gives the one dim k that all inputs of known rank share.
func (c *call) agreeAll(k int) Dim {
	first := -1
	var d Dim
	for i := range c.inputs {
		if _, ranked := c.dims(i); !ranked || c.isEmptyPart(i) {
			continue
		}
		if first < 0 {
			first, d = i, c.in(i).Dims[k]
			continue
		}
		d = c.agreeDims(d, c.in(i).Dims[k], func() string { return c.dimsOf(first, k, i, k) })
	}
	return d
}

// concatElements joins known elements; unknown ones get symbols once any is known.
func (c *call) concatElements(axis int) {
	count, ok := c.outputs[0].Count().Known()
	if !ok || count > maxValues || !slices.ContainsFunc(c.inputs, func(f *Info) bool { return f != nil && f.HasValues() }) {
		return
	}
	parts := make([][]Value, len(c.inputs))
	for i := range c.inputs {
		if parts[i] = c.elements(i); parts[i] == nil {
			return
		}
	}
	if count == 0 {
		c.setValues(0, []Value{})
		return
	}
	outer := 1
	for _, d := range c.outputs[0].Dims[:axis] {
		outer *= int(d.constant)
	}
	out := make([]Value, 0, count)
	for o := range outer {
		for _, part := range parts {
			run := len(part) / outer
			out = append(out, part[o*run:(o+1)*run]...)
		}
	}
	c.setValues(0, out)
}

// split gives each output its piece of the axis: sizes that an attribute, or
// since opset 13 an input, lists, or equal ones.
func split(c *call) {
	dims, ok := c.dims(0)
	if !ok {
		return
	}
	axis, ok := c.axis("axis", 0, len(dims))
	if !ok {
		return
	}
	sizes, explicit := c.splitSizes(dims[axis])
	if explicit {
		c.checkPieces(sizes, dims[axis])
	}
	offset := Const(0)
	for i := range c.outputs {
		out := slices.Clone(dims)
		out[axis] = Unknown()
		if i < len(sizes) {
			out[axis] = sizes[i]
		}
		c.setDims(i, out...)
		c.splitElements(i, axis, offset)
		offset = offset.Add(out[axis])
	}
}

// checkPieces holds the sizes that a Split is given against its outputs and its axis.
func (c *call) checkPieces(sizes []Dim, whole Dim) {
	if len(sizes) == 0 {
		return // an input that is not known
	}
	if len(sizes) != len(c.outputs) {
		c.conflictf("sizes of %d pieces for %d outputs", len(sizes), len(c.outputs))
		return
	}
	sum := Const(0)
	for _, size := range sizes {
		sum = sum.Add(size)
	}
	if sum.Differ(whole) {
		c.conflictf("the sizes [%s] add up to %s, and the axis of %s has %s", join(sizes), sum, c.describe(0), whole)
	}
}

// splitSizes gives the size of each piece; explicit says that the model lists them.
func (c *call) splitSizes(whole Dim) (sizes []Dim, explicit bool) {
	if list, ok := c.intList("split"); ok && c.opset < 13 {
		sizes = make([]Dim, len(list))
		for k, n := range list {
			sizes[k] = Const(n)
		}
		return sizes, true
	}
	if c.has(1) {
		for _, v := range c.elements(1) {
			sizes = append(sizes, v.Dim())
		}
		return sizes, true
	}
	return c.equalPieces(whole, len(c.outputs)), false
}

// equalPieces divides an axis. Since opset 18 the last piece may be smaller.
func (c *call) equalPieces(whole Dim, n int) []Dim {
	if n == 0 {
		return nil
	}
	if c.opset >= 18 {
		piece := whole.CeilDiv(Const(int64(n)))
		sizes := slices.Repeat([]Dim{piece}, n)
		sizes[n-1] = whole.Sub(piece.MulConst(int64(n - 1)))
		return sizes
	}
	if w, ok := whole.Known(); ok && w%int64(n) != 0 {
		c.conflictf("%s does not split into %d equal pieces", c.describe(0), n)
		return nil
	}
	return slices.Repeat([]Dim{whole.Div(Const(int64(n)))}, n)
}

func (c *call) splitElements(i, axis int, offset Dim) {
	from, ok := c.in(0).Shape()
	to, okToo := c.outputs[i].Shape()
	start, okStart := offset.Known()
	if !ok || !okToo || !okStart || !c.follow(0) {
		return
	}
	c.setValues(i, window(c.values(0), from, to, axis, int(start), 1))
}

// window takes elements along one axis from start in the given step.
func window(values []Value, from, to []int, axis, start, step int) []Value {
	inner := 1
	for _, n := range from[axis+1:] {
		inner *= n
	}
	length := from[axis]
	n := 1
	for _, d := range to {
		n *= d
	}
	if n > len(values) {
		return nil
	}
	out := make([]Value, 0, n)
	for block := 0; len(out) < n; block += length * inner {
		for k := range to[axis] {
			at := block + (start+k*step)*inner
			if at < 0 || at+inner > len(values) {
				return nil
			}
			out = append(out, values[at:at+inner]...)
		}
	}
	return out
}
