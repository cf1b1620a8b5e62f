package eval

import (
	"math"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// generateOperators make tensors of little input.
var generateOperators = []operator{
	{name: "ConstantOfShape", since: 9, run: constantOfShape},
	{name: "EyeLike", since: 9, run: eyeLike},
	{name: "Range", since: 11, run: rangeOf},
	{name: "OneHot", since: 9, run: oneHot},
}

// constantOfShape fills a shape with one value, FLOAT 0 by default.
func constantOfShape(c *Call) error {
	list, err := c.IntsInput(0)
	if err != nil {
		return err
	}
	if !c.Has(0) {
		return c.Errorf("input 0 is missing")
	}
	shape, err := toInts(c, list)
	if err != nil {
		return err
	}
	value := tensor.Scalar(float32(0))
	if a := c.Attribute("value"); a != nil {
		if a.Tensor() == nil || a.Tensor().Len() != 1 {
			return c.Errorf("the value is not one element")
		}
		if value, err = a.Tensor().Dense(); err != nil {
			return c.Errorf("%w", err)
		}
	}
	out, err := c.New(value.Type(), shape...)
	if err != nil {
		return err
	}
	fill.For(out.Type())(out, value)
	c.Outputs[0] = out
	return nil
}

// eyeLike has ones on one diagonal.
func eyeLike(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	if d.Rank() != 2 {
		return c.Errorf("shape %v is no matrix", d.Shape())
	}
	t := tensor.Type(c.Int("dtype", int64(d.Type())))
	if !t.Valid() {
		return c.Unsupported("element type %d", t)
	}
	one, err := c.cast(tensor.Scalar(int8(1)), t)
	if err != nil {
		return err
	}
	out, err := c.New(t, d.Shape()...)
	if err != nil {
		return err
	}
	rows, columns, k := d.Shape()[0], d.Shape()[1], c.Int("k", 0)
	first := int(max(-k, 0))
	if k > -int64(rows) && k < int64(columns) {
		n := min(rows-first, columns-int(max(k, 0)))
		copyRows.For(t)(out, first*columns+first+int(k), columns+1, one, 0, 0, 1, n)
	}
	c.Outputs[0] = out
	return nil
}

// rangeOf counts from start to limit; element i is start + i·delta. FLOAT16 and
// BFLOAT16 count in float32.
func rangeOf(c *Call) error {
	all, err := c.Tensors(0)
	if err != nil {
		return err
	}
	if len(all) != 3 {
		return c.Errorf("%d inputs instead of 3", len(all))
	}
	t := all[0].Type()
	for i, d := range all {
		if d.Len() != 1 || d.Type() != t {
			return c.Errorf("input %d is %s%v, not one %s", i, d.Type(), d.Shape(), t)
		}
		if all[i], err = c.widen(d); err != nil {
			return err
		}
	}
	count := rangeKernels.For(all[0].Type())
	if count == nil {
		return c.noKernel(t)
	}
	out, err := count(c, all[0], all[1], all[2])
	if err != nil {
		return err
	}
	return c.setOutput(c.narrow(out, t))
}

var rangeKernels = tensor.Numbers[func(c *Call, start, limit, delta *tensor.Dense) (*tensor.Dense, error)]{
	Float32: floatRange[float32], Float64: floatRange[float64],
	Int16: integerRange[int16], Int32: integerRange[int32], Int64: integerRange[int64],
}

func floatRange[T floating](c *Call, from, to, by *tensor.Dense) (*tensor.Dense, error) {
	start, limit, delta := tensor.Data[T](from)[0], tensor.Data[T](to)[0], tensor.Data[T](by)[0]
	n := math.Ceil(float64(limit-start) / float64(delta))
	if !(math.Abs(n) <= float64(tensor.MaxElements)) {
		return nil, c.Errorf("no range from %v to %v by %v", start, limit, delta)
	}
	return filledRange(c, int(max(n, 0)), func(i int) T {
		return start + T(T(i)*delta) // rounded before the sum on every host
	})
}

func integerRange[T int16 | int32 | int64](c *Call, from, to, by *tensor.Dense) (*tensor.Dense, error) {
	start, limit, delta := int64(tensor.Data[T](from)[0]), int64(tensor.Data[T](to)[0]), int64(tensor.Data[T](by)[0])
	var span, step uint64 // differences of int64 fit uint64
	switch {
	case delta == 0:
		return nil, c.Errorf("the step of a range is 0")
	case delta > 0 && limit > start:
		span, step = uint64(limit)-uint64(start), uint64(delta)
	case delta < 0 && limit < start:
		span, step = uint64(start)-uint64(limit), -uint64(delta)
	default:
		return c.New(tensor.TypeOf[T](), 0)
	}
	n := (span-1)/step + 1
	if n > uint64(tensor.MaxElements) {
		return nil, c.Errorf("a range of %d elements: %w", n, tensor.ErrTooLarge)
	}
	return filledRange(c, int(n), func(i int) T { return T(start + int64(i)*delta) })
}

func filledRange[T tensor.Element](c *Call, n int, f func(i int) T) (*tensor.Dense, error) {
	out, err := c.New(tensor.TypeOf[T](), n)
	if err != nil {
		return nil, err
	}
	for i := range tensor.Data[T](out) {
		tensor.Data[T](out)[i] = f(i)
	}
	return out, nil
}

// oneHot puts an axis in whose elements are all the off value, but for the one that
// an index names. Indices out of range have no such one; in version 9 that goes
// for negative ones, too. Indices and depth may be floats, which are cut to int64.
func oneHot(c *Call) error {
	all, err := c.Tensors(0)
	if err != nil {
		return err
	}
	if len(all) != 3 || all[1].Len() != 1 || all[2].Len() != 2 {
		return c.Errorf("the inputs are not indices, one depth and two values")
	}
	index, err := c.cast(all[0], tensor.Int64)
	if err != nil {
		return err
	}
	wide, err := c.cast(all[1], tensor.Int64)
	if err != nil {
		return err
	}
	depths, err := toInts(c, tensor.Data[int64](wide))
	if err != nil {
		return err
	}
	depth := depths[0]
	axis, err := normalAxis(c, c.Int("axis", -1), index.Rank()+1)
	if err != nil {
		return err
	}
	out, err := c.New(all[2].Type(), insertDim(index.Shape(), axis, depth)...)
	if err != nil {
		return err
	}
	fill.For(out.Type())(out, all[2])
	inner, move := product(index.Shape()[axis:]), copyRows.For(out.Type())
	for i, v := range tensor.Data[int64](index) {
		if v < 0 && c.Opset >= 11 {
			v += int64(depth)
		}
		if v >= 0 && v < int64(depth) {
			move(out, (i/inner*depth+int(v))*inner+i%inner, 0, all[2], 1, 0, 1, 1)
		}
	}
	c.Outputs[0] = out
	return nil
}
