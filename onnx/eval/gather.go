package eval

import (
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// gatherOperators take elements from places that an input names.
var gatherOperators = []operator{
	{name: "Gather", since: 1, run: gather},
	{name: "GatherElements", since: 11, run: gatherElements},
	{name: "GatherND", since: 11, run: gatherND},
	{name: "Compress", since: 9, run: compress},
}

// indices gives input i as places within n, where negative ones count from the end.
func (c *Call) indices(i, n int) ([]int, error) {
	list, err := c.IntsInput(i)
	if err != nil {
		return nil, err
	}
	out := make([]int, len(list))
	for k, v := range list {
		if v < -int64(n) || v >= int64(n) {
			return nil, c.Errorf("index %d is outside %d", v, n)
		}
		if v < 0 {
			v += int64(n)
		}
		out[k] = int(v)
	}
	return out, nil
}

// takeBlocks copies blocks of n elements, that at places[i] to block i of the result.
var takeBlocks = tensor.NewMovers(takeWordBlocks[uint8], takeWordBlocks[uint16], takeWordBlocks[uint32],
	takeWordBlocks[uint64], takeWordBlocks[[2]uint64], takeWordBlocks[string])

func takeWordBlocks[T tensor.Word](to *tensor.Dense, toAt int, from *tensor.Dense, fromAt int, places []int, n int) {
	dst, src := tensor.Words[T](to)[toAt:], tensor.Words[T](from)[fromAt:]
	if n == 1 {
		for i, place := range places {
			dst[i] = src[place]
		}
		return
	}
	for i, place := range places {
		tensor.Move(dst[i*n:(i+1)*n], src[place*n:(place+1)*n])
	}
}

// gather takes slices along one axis. Indices outside the axis are an error.
func gather(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	axis, err := normalAxis(c, c.Int("axis", 0), d.Rank())
	if err != nil {
		return err
	}
	places, err := c.indices(1, d.Shape()[axis])
	if err != nil {
		return err
	}
	where, err := c.Tensor(1)
	if err != nil {
		return err
	}
	return c.setOutput(c.taken(d, axis, places, where.Shape()))
}

// taken gives the slices of d at places of an axis, which becomes axes of the
// given shape.
func (c *Call) taken(d *tensor.Dense, axis int, places, shape []int) (*tensor.Dense, error) {
	inner := product(d.Shape()[axis+1:])
	out, err := c.New(d.Type(), slices.Concat(d.Shape()[:axis], shape, d.Shape()[axis+1:])...)
	if err != nil || out.Len() == 0 {
		return out, err
	}
	take := takeBlocks.For(d.Type())
	step := d.Shape()[axis] * inner
	each := len(places) * inner
	c.Parallel(product(d.Shape()[:axis]), elementGrain/each+1, func(first, last int) {
		for o := first; o < last; o++ {
			take(out, o*each, d, o*step, places, inner)
		}
	})
	return out, nil
}

// elementPlaces gives, for every entry of the indices of a GatherElements or
// ScatterElements, input 1 of the given shape, the place in d that it means.
func (c *Call) elementPlaces(d *tensor.Dense, shape []int) (places []int, err error) {
	if d.Rank() == 0 || len(shape) != d.Rank() {
		return nil, c.Errorf("indices of shape %v for data of shape %v", shape, d.Shape())
	}
	axis, err := normalAxis(c, c.Int("axis", 0), d.Rank())
	if err != nil {
		return nil, err
	}
	for i, dim := range shape {
		if i != axis && dim > d.Shape()[i] {
			return nil, c.Errorf("indices of shape %v reach beyond data of shape %v", shape, d.Shape())
		}
	}
	if places, err = c.indices(1, d.Shape()[axis]); err != nil {
		return nil, err
	}
	strides := tensor.Strides(d.Shape())
	along := strides[axis]
	strides[axis] = 0
	walk, err := tensor.NewWalk(shape, strides)
	if err != nil {
		return nil, c.Errorf("%w", err)
	}
	walk.Range(0, walk.Runs(), func(run int, at []int) {
		row := places[run*walk.Len():][:walk.Len()]
		for i := range row {
			row[i] = row[i]*along + at[0] + i*walk.Step(0)
		}
	})
	return places, nil
}

func gatherElements(c *Call) error {
	all, err := c.Tensors(0)
	if err != nil {
		return err
	}
	if len(all) != 2 {
		return c.Errorf("%d inputs instead of 2", len(all))
	}
	places, err := c.elementPlaces(all[0], all[1].Shape())
	if err != nil {
		return err
	}
	out, err := c.New(all[0].Type(), all[1].Shape()...)
	if err != nil {
		return err
	}
	takeBlocks.For(out.Type())(out, 0, all[0], 0, places, 1)
	c.Outputs[0] = out
	return nil
}

// tuplePlaces gives the block of d that each tuple of indices, input 1, means, and
// the shape of a block. The first axes of both, batch many, go side by side.
func (c *Call) tuplePlaces(d *tensor.Dense, batch int) (places, block []int, err error) {
	where, err := c.Tensor(1)
	if err != nil {
		return nil, nil, err
	}
	shape := where.Shape()
	if d.Rank() == 0 || len(shape) == 0 || batch < 0 || batch >= min(len(shape), d.Rank()) ||
		!slices.Equal(shape[:batch], d.Shape()[:batch]) || shape[len(shape)-1] > d.Rank()-batch {
		return nil, nil, c.Errorf("indices of shape %v for data of shape %v, %d of the axes shared", shape, d.Shape(), batch)
	}
	list, err := c.IntsInput(1)
	if err != nil {
		return nil, nil, err
	}
	long := shape[len(shape)-1]
	dims, block := d.Shape()[batch:batch+long], d.Shape()[batch+long:]
	places = make([]int, product(shape[:len(shape)-1]))
	eachBatch := product(shape[batch : len(shape)-1])
	for i := range places {
		place := 0
		if batch > 0 {
			place = i / eachBatch
		}
		for k, dim := range dims {
			v := list[i*long+k]
			if v < -int64(dim) || v >= int64(dim) {
				return nil, nil, c.Errorf("index %d is outside %d", v, dim)
			}
			if v < 0 {
				v += int64(dim)
			}
			place = place*dim + int(v)
		}
		places[i] = place
	}
	return places, block, nil
}

func gatherND(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	places, block, err := c.tuplePlaces(d, int(c.Int("batch_dims", 0)))
	if err != nil {
		return err
	}
	where, err := c.Tensor(1)
	if err != nil {
		return err
	}
	outer := where.Shape()[:where.Rank()-1]
	out, err := c.New(d.Type(), slices.Concat(outer, block)...)
	if err != nil {
		return err
	}
	if out.Len() > 0 {
		takeBlocks.For(d.Type())(out, 0, d, 0, places, product(block))
	}
	c.Outputs[0] = out
	return nil
}

// compress keeps the slices along an axis, or the elements, at which a condition
// holds; the condition may be shorter than the axis.
func compress(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	cond, err := c.Tensor(1)
	if err != nil {
		return err
	}
	if cond.Type() != tensor.Bool || cond.Rank() != 1 {
		return c.Errorf("the condition is %s%v, not BOOL of rank 1", cond.Type(), cond.Shape())
	}
	axis := 0
	if c.Attribute("axis") == nil {
		d, err = d.Reshape(d.Len())
	} else {
		axis, err = normalAxis(c, c.Int("axis", 0), d.Rank())
	}
	if err != nil {
		return err
	}
	var places []int
	for i, keep := range tensor.Data[bool](cond) {
		if keep && i >= d.Shape()[axis] {
			return c.Errorf("the condition holds at %d of %d", i, d.Shape()[axis])
		}
		if keep {
			places = append(places, i)
		}
	}
	return c.setOutput(c.taken(d, axis, places, []int{len(places)}))
}
