package infer

import (
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// indexOperators pick elements by position, or put them there.
var indexOperators = []operator{
	{name: "Gather", since: 1, rule: gather},
	{name: "GatherElements", since: 11, rule: gatherElements},
	{name: "GatherND", since: 11, rule: gatherND},
	{name: "Scatter", since: 9, rule: scatterElements},
	{name: "ScatterElements", since: 11, rule: scatterElements},
	{name: "ScatterND", since: 11, rule: scatterND},
	{name: "TensorScatter", since: 24, rule: sameAsFirst},
	{name: "NonZero", since: 9, rule: nonZero},
	{name: "OneHot", since: 9, rule: oneHot},
	{name: "TopK", since: 1, rule: topK},
	{name: "Compress", since: 9, rule: compress},
	{name: "Unique", since: 11, rule: unique},
	{name: "Trilu", since: 14, rule: sameAsFirst},
	{name: "CumSum", since: 11, rule: cumulativeSum},
}

// gather puts the dims of the indices in the place of the axis.
func gather(c *call) {
	data, ok := c.dims(0)
	indices, okToo := c.dims(1)
	if !ok || !okToo {
		return
	}
	axis, ok := c.axis("axis", 0, len(data))
	if !ok {
		return
	}
	c.setDims(0, slices.Concat(data[:axis], indices, data[axis+1:])...)
	c.gatherValues(axis)
}

func (c *call) gatherValues(axis int) {
	from, ok := c.in(0).Shape()
	count, okToo := c.outputs[0].Count().Known()
	if !ok || !okToo || count > maxValues || !c.follow(0, 1) {
		return
	}
	values, indices := c.values(0), c.values(1)
	inner, length := 1, from[axis]
	for _, n := range from[axis+1:] {
		inner *= n
	}
	out := make([]Value, 0, count)
	for block := 0; len(out) < int(count); block += length * inner {
		for _, index := range indices {
			out = append(out, c.gathered(values, index, length, block, inner)...)
		}
	}
	c.setValues(0, out)
}

// gathered gives the run of elements that one index means in the block that starts there.
func (c *call) gathered(values []Value, index Value, length, block, inner int) []Value {
	n, ok := index.Int()
	if n < 0 {
		n += int64(length)
	}
	if ok && (n < 0 || n >= int64(length)) {
		c.conflictf("an index is outside the %d positions of %s", length, c.describe(0))
		ok = false
	}
	if !ok {
		return make([]Value, inner)
	}
	at := block + int(n)*inner
	return values[at : at+inner]
}

// gatherElements has the dims of the indices.
func gatherElements(c *call) {
	c.sameDims(0, 1)
	if data, ok := c.dims(0); ok && len(data) == 1 && c.follow(0, 1) {
		values := c.values(0)
		var out []Value
		for _, index := range c.values(1) {
			out = append(out, c.gathered(values, index, len(values), 0, 1)...)
		}
		c.setValues(0, out)
	}
}

// gatherND replaces leading dims by those of the indices but their last, which
// says how many coordinates there are.
func gatherND(c *call) {
	data, ok := c.dims(0)
	indices, okToo := c.dims(1)
	batch := c.int("batch_dims", 0)
	if !ok || !okToo || len(indices) == 0 {
		return
	}
	last := len(indices) - 1
	n, known := indices[last].Known()
	if !known {
		return
	}
	if batch < 0 || n < 0 || batch+n > int64(len(data)) {
		c.conflictf("%s indexes %d dims of %s after %d", c.describe(1), n, c.describe(0), batch)
		return
	}
	c.setDims(0, slices.Concat(indices[:last], data[batch+n:])...)
}

// scatterElements keeps the dims; single known positions of a vector are followed.
func scatterElements(c *call) {
	c.sameDims(0, 0)
	data, ok := c.dims(0)
	if ok && len(data) == 1 && c.string("reduction", "none") == "none" && c.int("axis", 0) <= 0 {
		c.scatterVector()
	}
}

// scatterND keeps the dims; known positions of a vector are followed.
func scatterND(c *call) {
	c.sameDims(0, 0)
	data, ok := c.dims(0)
	indices, okToo := c.dims(1)
	if ok && okToo && len(data) == 1 && len(indices) > 0 && indices[len(indices)-1].Is(1) && c.string("reduction", "none") == "none" {
		c.scatterVector()
	}
}

func (c *call) scatterVector() {
	if !c.followAll() || len(c.inputs) != 3 {
		return
	}
	positions, updates := c.values(1), c.values(2)
	if len(positions) != len(updates) {
		return
	}
	out := slices.Clone(c.values(0))
	for k, p := range positions {
		n, ok := p.Int()
		if n < 0 {
			n += int64(len(out))
		}
		if !ok || n < 0 || n >= int64(len(out)) {
			return
		}
		out[n] = updates[k]
	}
	c.setValues(0, out)
}

// nonZero has a row for each dim and a column for each element found.
func nonZero(c *call) {
	dims, ok := c.dims(0)
	if !ok {
		c.setDims(0, Unknown(), Unknown())
		return
	}
	rank := int64(len(dims))
	if rank == 0 {
		c.setDims(0, Unknown(), Unknown()) // whether a scalar has a row is not agreed on
		return
	}
	found, known := c.nonZeroPositions()
	if !known {
		c.setDims(0, Const(rank), Unknown())
		return
	}
	c.setDims(0, Const(rank), Const(int64(len(found))))
	shape, ok := c.in(0).Shape()
	if !ok {
		return
	}
	out := make([]Value, 0, len(shape)*len(found))
	for axis, stride := range tensor.Strides(shape) {
		for _, at := range found {
			out = append(out, Integer(Const(int64(at/stride%shape[axis]))))
		}
	}
	c.setValues(0, out)
}

// nonZeroPositions lists the elements of input 0 that are not zero, when all are decided.
func (c *call) nonZeroPositions() (found []int, known bool) {
	if !c.follow(0) {
		return nil, false
	}
	for k, v := range c.values(0) {
		n, ok := toBool(v).Int()
		if v.IsUnknown() || !ok {
			return nil, false
		}
		if n != 0 {
			found = append(found, k)
		}
	}
	return found, true
}

// oneHot puts a dim of the given depth in.
func oneHot(c *call) {
	dims, ok := c.dims(0)
	c.setElem(0, c.in(2).Elem)
	if !ok {
		return
	}
	axis, ok := c.axis("axis", -1, len(dims)+1)
	if !ok {
		return
	}
	depth := Unknown()
	if v := c.scalar(1); !v.IsUnknown() {
		depth = convert(c.in(1).Elem, tensor.Int64, v).Dim() // it may be a float
	}
	c.setDims(0, slices.Insert(slices.Clone(dims), axis, depth)...)
}

// topK keeps k along the axis, in values and indices.
func topK(c *call) {
	c.setElem(0, c.in(0).Elem)
	c.setElem(1, tensor.Int64)
	dims, ok := c.dims(0)
	if !ok {
		return
	}
	axis, ok := c.axis("axis", -1, len(dims))
	if !ok {
		return
	}
	k := Unknown()
	if a := c.attribute("k"); a != nil && c.opset < 10 {
		k = Const(a.Int())
	} else if v := c.elements(1); len(v) == 1 {
		k = v[0].Dim()
	}
	out := slices.Clone(dims)
	out[axis] = k
	c.setDims(0, out...)
	c.setDims(1, out...)
}

// compress keeps positions that a condition picks, along an axis or of all elements.
func compress(c *call) {
	kept := c.trueCount()
	if c.attribute("axis") == nil {
		c.setDims(0, kept)
		return
	}
	dims, ok := c.dims(0)
	if !ok {
		return
	}
	axis, ok := c.axis("axis", 0, len(dims))
	if !ok {
		return
	}
	out := slices.Clone(dims)
	out[axis] = kept
	c.setDims(0, out...)
}

// trueCount counts the true elements of input 1, when all are known.
func (c *call) trueCount() Dim {
	picks, ok := c.ints(1)
	if !ok {
		return Unknown()
	}
	n := int64(0)
	for _, p := range picks {
		n += p
	}
	return Const(n)
}

// unique gives the distinct elements, or slices along an axis, with three lists of positions.
func unique(c *call) {
	for i := 1; i < 4; i++ {
		c.setElem(i, tensor.Int64)
	}
	found := c.fresh()
	c.setDims(1, found)
	c.setDims(3, found)
	dims, ok := c.dims(0)
	if c.attribute("axis") == nil {
		c.setDims(0, found)
		c.setDims(2, c.in(0).Count())
		return
	}
	c.setDims(2, Unknown())
	if !ok {
		return
	}
	axis, ok := c.axis("axis", 0, len(dims))
	if !ok {
		return
	}
	out := slices.Clone(dims)
	out[axis] = found
	c.setDims(0, out...)
	c.setDims(2, dims[axis])
}

// cumulativeSum follows the plain sum along a vector of integers.
func cumulativeSum(c *call) {
	c.sameDims(0, 0)
	dims, ok := c.dims(0)
	if !ok || len(dims) != 1 || !c.in(0).Elem.IsInteger() || !c.follow(0) || c.int("exclusive", 0) != 0 || c.int("reverse", 0) != 0 {
		return
	}
	out := slices.Clone(c.values(0))
	for k := 1; k < len(out); k++ {
		out[k] = add(c.in(0).Elem, out[k-1], out[k])
	}
	c.setValues(0, out)
}
