package eval

import (
	"cmp"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// compareOperators give BOOL, or choose by it.
var compareOperators = []operator{
	{name: "Equal", since: 1, run: comparison(opEqual)},
	{name: "Less", since: 1, run: comparison(opLess)},
	{name: "LessOrEqual", since: 12, run: comparison(opLessOrEqual)},
	{name: "Greater", since: 1, run: comparison(opGreater)},
	{name: "GreaterOrEqual", since: 12, run: comparison(opGreaterOrEqual)},
	{name: "Where", since: 9, run: where},
}

// comparisonOp names a question about two elements.
type comparisonOp int

const (
	opEqual comparisonOp = iota
	opLess
	opLessOrEqual
	opGreater
	opGreaterOrEqual
)

// comparisonKernel answers op for two operands of one type.
type comparisonKernel func(c *Call, op comparisonOp, a, b *tensor.Dense) (*tensor.Dense, error)

var comparisonKernels = tensor.Numbers[comparisonKernel]{
	Float32: compareOrdered[float32], Float64: compareOrdered[float64],
	Int8: compareOrdered[int8], Int16: compareOrdered[int16], Int32: compareOrdered[int32], Int64: compareOrdered[int64],
	Uint8: compareOrdered[uint8], Uint16: compareOrdered[uint16], Uint32: compareOrdered[uint32], Uint64: compareOrdered[uint64],
}

// ordered is the types whose elements Go compares as ONNX means it: NaN is
// neither equal to, nor less, nor greater than anything.
type ordered interface {
	tensor.Element
	cmp.Ordered
}

func compareOrdered[T ordered](c *Call, op comparisonOp, a, b *tensor.Dense) (*tensor.Dense, error) {
	return combined(c, a, b, comparisonLoop[T](op))
}

func comparisonLoop[T ordered](op comparisonOp) func(out []bool, a, b []T) {
	switch op {
	case opEqual:
		return func(out []bool, a, b []T) {
			a, b = a[:len(out)], b[:len(out)]
			for i := range out {
				out[i] = a[i] == b[i]
			}
		}
	case opLess:
		return func(out []bool, a, b []T) {
			a, b = a[:len(out)], b[:len(out)]
			for i := range out {
				out[i] = a[i] < b[i]
			}
		}
	case opLessOrEqual:
		return func(out []bool, a, b []T) {
			a, b = a[:len(out)], b[:len(out)]
			for i := range out {
				out[i] = a[i] <= b[i]
			}
		}
	case opGreater:
		less := comparisonLoop[T](opLess)
		return func(out []bool, a, b []T) { less(out, b, a) }
	}
	lessOrEqual := comparisonLoop[T](opLessOrEqual)
	return func(out []bool, a, b []T) { lessOrEqual(out, b, a) }
}

func comparison(op comparisonOp) Kernel {
	return func(c *Call) error {
		a, b, err := c.samePair()
		if err != nil {
			return err
		}
		switch t := a.Type(); {
		case t == tensor.Float16:
			return c.setOutput(combined(c, a, b, comparePairVia[tensor.F16](comparisonLoop[float32](op))))
		case t == tensor.BFloat16:
			return c.setOutput(combined(c, a, b, comparePairVia[tensor.BF16](comparisonLoop[float32](op))))
		case t == tensor.String && op == opEqual:
			return c.setOutput(compareOrdered[string](c, op, a, b))
		case t == tensor.Bool && op == opEqual:
			return c.setOutput(combined(c, a, b, func(out, a, b []bool) {
				for i := range out {
					out[i] = a[i] == b[i]
				}
			}))
		}
		if k := comparisonKernels.For(a.Type()); k != nil {
			return c.setOutput(k(c, op, a, b))
		}
		return c.noKernel(a.Type())
	}
}

var chooseKernels = tensor.NewMovers(chooseWords[uint8], chooseWords[uint16], chooseWords[uint32],
	chooseWords[uint64], chooseWords[[2]uint64], chooseWords[string])

// chooseWords fills out, element by element, from yes where the condition holds,
// else from no.
func chooseWords[T tensor.Word](c *Call, walk *tensor.Walk, out, cond, yes, no *tensor.Dense) {
	to, x, y, choice := tensor.Words[T](out), tensor.Words[T](yes), tensor.Words[T](no), tensor.Data[bool](cond)
	n, stepC, stepX, stepY := walk.Len(), walk.Step(0), walk.Step(1), walk.Step(2)
	eachRun(c, walk, 3, func(run int, at []int, first, last int) {
		row := to[run*n : (run+1)*n]
		for i := first; i < last; i++ {
			if choice[at[0]+i*stepC] {
				row[i] = x[at[1]+i*stepX]
			} else {
				row[i] = y[at[2]+i*stepY]
			}
		}
	})
}

// where takes each element from one of two tensors; all three inputs broadcast.
func where(c *Call) error {
	all, err := c.Tensors(0)
	if err != nil {
		return err
	}
	if len(all) != 3 {
		return c.Errorf("%d inputs instead of 3", len(all))
	}
	cond, yes, no := all[0], all[1], all[2]
	if cond.Type() != tensor.Bool || yes.Type() != no.Type() {
		return c.Errorf("inputs are %s, %s and %s, not BOOL and two of one type", cond.Type(), yes.Type(), no.Type())
	}
	shape := cond.Shape()
	for _, d := range all[1:] {
		if shape, err = tensor.BroadcastShapes(shape, d.Shape()); err != nil {
			return c.Errorf("%w", err)
		}
	}
	out, err := c.New(yes.Type(), shape...)
	if err != nil {
		return err
	}
	walk, err := tensor.BroadcastWalk(shape, cond.Shape(), yes.Shape(), no.Shape())
	if err != nil {
		return c.Errorf("%w", err)
	}
	chooseKernels.For(yes.Type())(c, walk, out, cond, yes, no)
	c.Outputs[0] = out
	return nil
}
