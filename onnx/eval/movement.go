package eval

import (
	"math"
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// movementOperators bring elements to other places by rules that do not depend on
// what they hold. Most are a walk with other strides: see [tensor.Dense.Strided].
var movementOperators = []operator{
	{name: "Transpose", since: 1, run: transpose},
	{name: "Expand", since: 8, run: expand},
	{name: "Tile", since: 1, run: tileAxis},
	{name: "Tile", since: 6, run: tile},
	{name: "Concat", since: 1, run: concat},
	{name: "Split", since: 1, run: split},
	{name: "Slice", since: 1, run: sliceAttributes},
	{name: "Slice", since: 10, run: slice},
	{name: "DepthToSpace", since: 1, run: depthToSpace},
	{name: "SpaceToDepth", since: 1, run: spaceToDepth},
	{name: "Trilu", since: 14, run: trilu},
	{name: "ReverseSequence", since: 10, run: reverseSequence},
}

func transpose(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	perm := make([]int, d.Rank())
	for i := range perm {
		perm[i] = d.Rank() - 1 - i
	}
	if list, ok := c.Ints("perm"); ok {
		if len(list) != d.Rank() {
			return c.Errorf("perm %v for rank %d", list, d.Rank())
		}
		if perm, err = normalAxes(c, list, d.Rank()); err != nil {
			return err
		}
	}
	return c.setOutput(c.permuted(d, d.Shape(), perm))
}

// permuted gives d, seen under another shape, with its axes in the order of perm.
func (c *Call) permuted(d *tensor.Dense, shape, perm []int) (*tensor.Dense, error) {
	strides := tensor.Strides(shape)
	toShape, toStrides := make([]int, len(perm)), make([]int, len(perm))
	for i, axis := range perm {
		toShape[i], toStrides[i] = shape[axis], strides[axis]
	}
	return c.Strided(d, 0, toShape, toStrides)
}

// expand broadcasts both ways: a dim of 1 in the wanted shape keeps the input's.
func expand(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	list, err := c.IntsInput(1)
	if err != nil {
		return err
	}
	wanted, err := toInts(c, list)
	if err != nil {
		return err
	}
	shape, err := tensor.BroadcastShapes(d.Shape(), wanted)
	if err != nil {
		return c.Errorf("%w", err)
	}
	if slices.Equal(shape, d.Shape()) {
		c.Outputs[0] = d
		return nil
	}
	strides, err := tensor.BroadcastStrides(d.Shape(), shape)
	if err != nil {
		return c.Errorf("%w", err)
	}
	return c.setOutput(c.Strided(d, 0, shape, strides))
}

func tile(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	list, err := c.IntsInput(1)
	if err != nil {
		return err
	}
	repeats, err := toInts(c, list)
	if err != nil {
		return err
	}
	if len(repeats) != d.Rank() {
		return c.Errorf("%d repeats for rank %d", len(repeats), d.Rank())
	}
	return c.setOutput(c.tiled(d, repeats))
}

// tileAxis is Tile as version 1 had it: one axis and its repeats, of the data's type.
func tileAxis(c *Call) error {
	all, err := c.Tensors(0)
	if err != nil {
		return err
	}
	if len(all) != 3 || all[1].Len() != 1 || all[2].Len() != 1 {
		return c.Errorf("the inputs are not a tensor, one count and one axis")
	}
	var numbers [2]int64
	for i := range numbers {
		d, err := c.cast(all[1+i], tensor.Int64)
		if err != nil {
			return err
		}
		numbers[i] = tensor.Data[int64](d)[0]
	}
	axis, err := normalAxis(c, numbers[1], all[0].Rank())
	if err != nil {
		return err
	}
	count, err := toInts(c, numbers[:1])
	if err != nil {
		return err
	}
	repeats := slices.Repeat([]int{1}, all[0].Rank())
	repeats[axis] = count[0]
	return c.setOutput(c.tiled(all[0], repeats))
}

func (c *Call) tiled(d *tensor.Dense, repeats []int) (*tensor.Dense, error) {
	strides := tensor.Strides(d.Shape())
	var view, steps, shape []int
	for i, dim := range d.Shape() {
		if repeats[i] < 0 {
			return nil, c.Errorf("axis %d is repeated %d times", i, repeats[i])
		}
		view, steps = append(view, repeats[i], dim), append(steps, 0, strides[i])
		shape = append(shape, repeats[i]*dim)
	}
	out, err := c.Strided(d, 0, view, steps)
	if err != nil {
		return nil, err
	}
	return out.Reshape(shape...)
}

// concat is Concat, whose axis is 1 by default in version 1 and required from 4 on.
func concat(c *Call) error {
	all, err := c.Tensors(0)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return c.Errorf("there are no inputs")
	}
	if c.Opset >= 4 && c.Attribute("axis") == nil {
		return c.Errorf("the attribute axis is missing")
	}
	axis, err := normalAxis(c, c.Int("axis", 1), all[0].Rank())
	if err != nil {
		return err
	}
	return c.setOutput(c.joined(all, axis))
}

// joined puts arrays of one type that differ in one dim behind each other.
func (c *Call) joined(all []*tensor.Dense, axis int) (*tensor.Dense, error) {
	all, err := c.parts(all, axis)
	if err != nil {
		return nil, err
	}
	shape := slices.Clone(all[0].Shape())
	shape[axis] = 0
	for _, d := range all {
		if d.Type() != all[0].Type() || d.Rank() != len(shape) {
			return nil, c.Errorf("cannot join %s%v and %s%v", all[0].Type(), all[0].Shape(), d.Type(), d.Shape())
		}
		for i, dim := range d.Shape() {
			if i != axis && dim != shape[i] {
				return nil, c.Errorf("cannot join %v and %v at axis %d", all[0].Shape(), d.Shape(), axis)
			}
		}
		shape[axis] += d.Shape()[axis]
	}
	if len(all) == 1 {
		return all[0], nil
	}
	out, err := c.New(all[0].Type(), shape...)
	if err != nil {
		return nil, err
	}
	outer, inner := product(shape[:axis]), product(shape[axis+1:])
	move, at := copyRows.For(out.Type()), 0
	for _, d := range all {
		n := d.Shape()[axis] * inner
		move(out, at, shape[axis]*inner, d, 0, n, n, outer)
		at += n
	}
	return out, nil
}

// parts leaves out those arrays without elements whose other dims differ from those of
// the others: the specification wants them equal, and runtimes do not look.
func (c *Call) parts(all []*tensor.Dense, axis int) ([]*tensor.Dense, error) {
	full := slices.IndexFunc(all, func(d *tensor.Dense) bool { return d.Len() > 0 })
	if full < 0 {
		return all, nil
	}
	strange := func(d *tensor.Dense) bool {
		return d.Len() == 0 && d.Rank() == all[full].Rank() && d.Shape()[axis] == 0 && !equalBut(d.Shape(), all[full].Shape(), axis)
	}
	if !slices.ContainsFunc(all, strange) {
		return all, nil
	}
	if err := c.Undefined("an empty part of other dims than the others"); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), strange), nil
}

// equalBut says whether two shapes of one rank differ at most at an axis.
func equalBut(a, b []int, axis int) bool {
	for i := range a {
		if i != axis && a[i] != b[i] {
			return false
		}
	}
	return true
}

// split is Split: by sizes (an attribute up to opset 12, which an input in version
// 1 could replace, an input from 13 on), by num_outputs, else into equal parts.
func split(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	axis, err := normalAxis(c, c.Int("axis", 0), d.Rank())
	if err != nil {
		return err
	}
	sizes, err := c.splitSizes(d.Shape()[axis])
	if err != nil {
		return err
	}
	strides := tensor.Strides(d.Shape())
	shape, start := slices.Clone(d.Shape()), 0
	for i, n := range sizes {
		shape[axis] = n
		if c.Wants(i) {
			part, err := c.Strided(d, start*strides[axis], shape, strides)
			if err != nil {
				return err
			}
			c.Outputs[i] = part
		}
		start += n
	}
	return nil
}

func (c *Call) splitSizes(dim int) ([]int, error) {
	parts := len(c.Outputs)
	list, _ := c.Ints("split")
	if c.Has(1) {
		d, err := c.Tensor(1)
		if err != nil {
			return nil, err
		}
		if d, err = c.cast(d, tensor.Int64); err != nil { // in version 1 of the data's type
			return nil, err
		}
		list = tensor.Data[int64](d)
	}
	if list == nil {
		if given := c.Int("num_outputs", int64(parts)); given != int64(parts) {
			return nil, c.Errorf("num_outputs is %d, but the node has %d outputs", given, parts)
		}
		return c.equalParts(dim, parts)
	}
	sizes, err := toInts(c, list)
	if err != nil {
		return nil, err
	}
	sum := 0
	for _, n := range sizes {
		if n < 0 || n > dim-sum {
			return nil, c.Errorf("parts %v do not fit %d", sizes, dim)
		}
		sum += n
	}
	if sum != dim || len(sizes) != parts {
		return nil, c.Errorf("parts %v do not make %d, or are not as many as the %d outputs", sizes, dim, parts)
	}
	return sizes, nil
}

// equalParts gives all parts one size; only num_outputs lets the last be smaller.
func (c *Call) equalParts(dim, parts int) ([]int, error) {
	if parts == 0 || dim%parts != 0 && c.Attribute("num_outputs") == nil {
		return nil, c.Errorf("%d does not split into %d equal parts", dim, parts)
	}
	sizes := make([]int, parts)
	each := (dim + parts - 1) / parts
	for i := range sizes {
		sizes[i] = min(each, max(dim-i*each, 0))
	}
	return sizes, nil
}

func sliceAttributes(c *Call) error {
	starts, _ := c.Ints("starts")
	ends, _ := c.Ints("ends")
	axes, _ := c.Ints("axes")
	return c.slice(starts, ends, axes, nil)
}

func slice(c *Call) error {
	var lists [4][]int64
	for i := range lists {
		var err error
		if lists[i], err = c.IntsInput(1 + i); err != nil {
			return err
		}
	}
	return c.slice(lists[0], lists[1], lists[2], lists[3])
}

// slice cuts a part out. axes are the first ones by default, steps all 1. A
// backward slice that starts before the axis takes its first element, as the text
// says; the reference implementation takes none, and folding refuses.
func (c *Call) slice(starts, ends, list, steps []int64) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	if list == nil {
		for i := range starts {
			list = append(list, int64(i))
		}
	}
	if steps == nil {
		steps = slices.Repeat([]int64{1}, len(starts))
	}
	if len(ends) != len(starts) || len(list) != len(starts) || len(steps) != len(starts) {
		return c.Errorf("%d starts, %d ends, %d axes and %d steps", len(starts), len(ends), len(list), len(steps))
	}
	axes, err := normalAxes(c, list, d.Rank())
	if err != nil {
		return err
	}
	shape, strides, offset := slices.Clone(d.Shape()), tensor.Strides(d.Shape()), 0
	for i, axis := range axes {
		if steps[i] == 0 {
			return c.Errorf("the step of axis %d is 0", axis)
		}
		// Runtimes do not agree on these, and nobody means them.
		toEnd := ends[i] == math.MaxInt64 || ends[i] == math.MaxInt32
		if steps[i] < 0 && (toEnd || starts[i] < -int64(shape[axis])) {
			if err := c.Undefined("a backward slice from before the start, or to the end"); err != nil {
				return err
			}
		}
		start, count, step := sliceRange(starts[i], ends[i], steps[i], int64(shape[axis]))
		offset += start * strides[axis]
		shape[axis], strides[axis] = count, strides[axis]*step
	}
	if slices.Equal(shape, d.Shape()) && slices.Equal(strides, tensor.Strides(shape)) {
		c.Outputs[0] = d
		return nil
	}
	return c.setOutput(c.Strided(d, offset, shape, strides))
}

// sliceRange clamps start and end as ONNX says and counts what is taken. Steps
// longer than the axis take one element, wherever they lead.
func sliceRange(start, end, step, n int64) (first, count, stride int) {
	if start < 0 {
		start += n
	}
	if end < 0 {
		end += n
	}
	step = max(min(step, max(n, 1)), -max(n, 1))
	if step > 0 {
		start, end = max(min(start, n), 0), max(min(end, n), 0)
		count = int(max(end-start+step-1, 0) / step)
	} else {
		start, end = max(min(start, n-1), 0), max(min(end, n-1), -1)
		count = int(max(start-end-step-1, 0) / -step)
	}
	if n == 0 || count == 0 {
		return 0, 0, int(step)
	}
	return int(start), count, int(step)
}

// blocks gives the parts of the shape of a DepthToSpace or SpaceToDepth.
func (c *Call) blocks() (d *tensor.Dense, n, side int, err error) {
	if d, err = c.Tensor(0); err != nil {
		return nil, 0, 0, err
	}
	size := c.Int("blocksize", 0)
	if d.Rank() != 4 || size < 1 || size > 1<<15 {
		return nil, 0, 0, c.Errorf("blocksize %d for shape %v", size, d.Shape())
	}
	return d, d.Shape()[0], int(size), nil
}

// depthToSpace spreads groups of channels over blocks of the plane.
func depthToSpace(c *Call) error {
	d, n, side, err := c.blocks()
	if err != nil {
		return err
	}
	channels, high, wide := d.Shape()[1], d.Shape()[2], d.Shape()[3]
	if channels%(side*side) != 0 {
		return c.Errorf("%d channels do not fill blocks of %d", channels, side)
	}
	channels /= side * side
	view, perm := []int{n, side, side, channels, high, wide}, []int{0, 3, 4, 1, 5, 2}
	if c.String("mode", "DCR") == "CRD" {
		view, perm = []int{n, channels, side, side, high, wide}, []int{0, 1, 4, 2, 5, 3}
	}
	return c.permuteTo(d, view, perm, n, channels, high*side, wide*side)
}

// spaceToDepth is the way back.
func spaceToDepth(c *Call) error {
	d, n, side, err := c.blocks()
	if err != nil {
		return err
	}
	channels, high, wide := d.Shape()[1], d.Shape()[2], d.Shape()[3]
	if high%side != 0 || wide%side != 0 {
		return c.Errorf("a plane of %d×%d has no whole blocks of %d", high, wide, side)
	}
	high, wide = high/side, wide/side
	perm := []int{0, 3, 5, 1, 2, 4}
	if c.String("mode", "DCR") == "CRD" {
		perm = []int{0, 1, 3, 5, 2, 4}
	}
	return c.permuteTo(d, []int{n, channels, high, side, wide, side}, perm, n, channels*side*side, high, wide)
}

// permuteTo is permuted, with the result under a shape of its own.
func (c *Call) permuteTo(d *tensor.Dense, view, perm []int, shape ...int) error {
	out, err := c.permuted(d, view, perm)
	if err != nil {
		return err
	}
	return c.Reshape(0, out, shape...)
}

// trilu keeps one triangle of each matrix, from diagonal k on.
func trilu(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	list, err := c.IntsInput(1)
	if err != nil {
		return err
	}
	if d.Rank() < 2 || len(list) > 1 {
		return c.Errorf("shape %v, and %d values of k", d.Shape(), len(list))
	}
	rows, columns := d.Shape()[d.Rank()-2], d.Shape()[d.Rank()-1]
	k := 0
	if len(list) == 1 {
		k = int(max(min(list[0], int64(columns)), -int64(rows)))
	}
	upper := c.Int("upper", 1) != 0
	out, err := c.New(d.Type(), d.Shape()...)
	if err != nil {
		return err
	}
	move, matrix := copyRows.For(d.Type()), rows*columns
	for row := range rows {
		first, last := max(row+k, 0), columns
		if !upper {
			first, last = 0, min(row+k+1, columns)
		}
		if n := last - first; n > 0 {
			at := row*columns + first
			move(out, at, matrix, d, at, matrix, n, d.Len()/matrix)
		}
	}
	c.Outputs[0] = out
	return nil
}

// reverseSequence turns the first part of each sequence of a batch round.
func reverseSequence(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	lengths, err := c.IntsInput(1)
	if err != nil {
		return err
	}
	batchAxis, timeAxis := c.Int("batch_axis", 1), c.Int("time_axis", 0)
	if d.Rank() < 2 || batchAxis+timeAxis != 1 || batchAxis*timeAxis != 0 {
		return c.Errorf("batch_axis %d and time_axis %d for shape %v", batchAxis, timeAxis, d.Shape())
	}
	batches, times := d.Shape()[batchAxis], d.Shape()[timeAxis]
	if len(lengths) != batches {
		return c.Errorf("%d lengths for %d sequences", len(lengths), batches)
	}
	out, err := c.New(d.Type(), d.Shape()...)
	if err != nil {
		return err
	}
	strides := tensor.Strides(d.Shape())
	batchStep, timeStep, inner := strides[batchAxis], strides[timeAxis], product(d.Shape()[2:])
	move := copyRows.For(d.Type())
	for b, length := range lengths {
		if length < 0 || length > int64(times) {
			return c.Errorf("a sequence length of %d in %d", length, times)
		}
		n := int(length)
		move(out, b*batchStep, timeStep, d, b*batchStep+max(n-1, 0)*timeStep, -timeStep, inner, n)
		rest := b*batchStep + n*timeStep
		move(out, rest, timeStep, d, rest, timeStep, inner, times-n)
	}
	c.Outputs[0] = out
	return nil
}
