package eval

import (
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// scatterOperators put updates into a copy of a tensor, at places an input names.
var scatterOperators = []operator{
	{name: "Scatter", since: 9, run: scatterElements},
	{name: "ScatterElements", since: 11, run: scatterElements},
	{name: "ScatterND", since: 11, run: scatterND},
}

func scatterElements(c *Call) error {
	d, updates, err := c.scatterInputs()
	if err != nil {
		return err
	}
	where, err := c.Tensor(1)
	if err != nil {
		return err
	}
	if !slices.Equal(where.Shape(), updates.Shape()) {
		return c.Errorf("indices of shape %v for updates of shape %v", where.Shape(), updates.Shape())
	}
	places, err := c.elementPlaces(d, where.Shape())
	if err != nil {
		return err
	}
	return c.scatter(d, updates, places, 1)
}

func scatterND(c *Call) error {
	d, updates, err := c.scatterInputs()
	if err != nil {
		return err
	}
	places, block, err := c.tuplePlaces(d, 0)
	if err != nil {
		return err
	}
	where, err := c.Tensor(1)
	if err != nil {
		return err
	}
	want := slices.Concat(where.Shape()[:where.Rank()-1], block)
	if !slices.Equal(updates.Shape(), want) {
		return c.Errorf("updates have shape %v, not %v", updates.Shape(), want)
	}
	return c.scatter(d, updates, places, product(block))
}

func (c *Call) scatterInputs() (d, updates *tensor.Dense, err error) {
	if d, err = c.Tensor(0); err != nil {
		return nil, nil, err
	}
	if updates, err = c.Tensor(2); err != nil {
		return nil, nil, err
	}
	if d.Type() != updates.Type() {
		return nil, nil, c.Errorf("updates are %s, the data is %s", updates.Type(), d.Type())
	}
	return d, updates, nil
}

// reductions are the values of the attribute reduction.
var reductions = map[string]binaryOp{"add": opAdd, "mul": opMul, "min": opMin, "max": opMax}

// scatter makes the result: block i of the updates, of n elements, goes to block
// places[i] of a copy of d. Without a reduction no place may be named twice: then
// folding refuses, and evaluation lets the last one win.
func (c *Call) scatter(d, updates *tensor.Dense, places []int, n int) error {
	out, err := c.New(d.Type(), d.Shape()...)
	if err != nil {
		return err
	}
	copyPart(out, 0, d, 0, d.Len())
	c.Outputs[0] = out
	if updates.Len() == 0 {
		return nil
	}
	how := c.String("reduction", "none")
	if how == "none" {
		if err := c.checkDistinct(places, d.Len()/n); err != nil {
			return err
		}
		putBlocks.For(d.Type())(out, updates, places, n)
		return nil
	}
	op, ok := reductions[how]
	if !ok {
		return c.Errorf("reduction is %q", how)
	}
	switch d.Type() {
	case tensor.Float16:
		mergeLoop(pairViaFloat32(tensor.F16From, numberLoop[float32](op)), out, updates, places, n)
	case tensor.BFloat16:
		mergeLoop(pairViaFloat32(tensor.BF16From, numberLoop[float32](op)), out, updates, places, n)
	default:
		merge := mergeKernels.For(d.Type())
		if merge == nil {
			return c.noKernel(d.Type())
		}
		merge(op, out, updates, places, n)
	}
	return nil
}

// checkDistinct refuses, while folding, places that are named twice.
func (c *Call) checkDistinct(places []int, n int) error {
	if !c.Strict() {
		return nil
	}
	if err := c.Charge(int64(n)); err != nil {
		return err
	}
	seen := make([]bool, n)
	for _, place := range places {
		if seen[place] {
			return c.Undefined("two updates of one place")
		}
		seen[place] = true
	}
	return nil
}

var putBlocks = tensor.NewMovers(putWordBlocks[uint8], putWordBlocks[uint16], putWordBlocks[uint32],
	putWordBlocks[uint64], putWordBlocks[[2]uint64], putWordBlocks[string])

func putWordBlocks[T tensor.Word](to, from *tensor.Dense, places []int, n int) {
	dst, src := tensor.Words[T](to), tensor.Words[T](from)
	for i, place := range places {
		tensor.Move(dst[place*n:(place+1)*n], src[i*n:(i+1)*n])
	}
}

var mergeKernels = tensor.Numbers[func(op binaryOp, out, updates *tensor.Dense, places []int, n int)]{
	Float32: merge[float32], Float64: merge[float64],
	Int8: merge[int8], Int16: merge[int16], Int32: merge[int32], Int64: merge[int64],
	Uint8: merge[uint8], Uint16: merge[uint16], Uint32: merge[uint32], Uint64: merge[uint64],
}

func merge[T tensor.Number](op binaryOp, out, updates *tensor.Dense, places []int, n int) {
	mergeLoop(numberLoop[T](op), out, updates, places, n)
}

// mergeLoop reduces block after block, in the order of the updates.
func mergeLoop[T tensor.Element](f func(out, a, b []T), out, updates *tensor.Dense, places []int, n int) {
	dst, src := tensor.Data[T](out), tensor.Data[T](updates)
	for i, place := range places {
		block := dst[place*n : (place+1)*n]
		f(block, block, src[i*n:(i+1)*n])
	}
}
