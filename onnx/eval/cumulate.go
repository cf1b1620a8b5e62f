package eval

import (
	"github.com/npuctl/npuctl/onnx/tensor"
)

// cumulateOperators give, at each place of an axis, what has come together so far.
var cumulateOperators = []operator{
	{name: "CumSum", since: 11, run: cumulate(bySum)},
	{name: "CumProd", since: 26, run: cumulate(byProduct)},
}

// line is one way through a tensor along an axis.
type line struct {
	first, step, n int
	exclusive      bool // what stands at a place does not count there
}

// lineAt is line number i along an axis, counted row-major.
func lineAt(i int, shape []int, axis int) line {
	n, inner := shape[axis], product(shape[axis+1:])
	return line{first: i/inner*n*inner + i%inner, step: inner, n: n}
}

var cumulateKernels = tensor.Numbers[func(out, in *tensor.Dense, l line, by gathering)]{
	Float32: cumulateFloats[float32], Float64: cumulateFloats[float64],
	Int8: cumulateIntegers[int8], Int16: cumulateIntegers[int16], Int32: cumulateIntegers[int32], Int64: cumulateIntegers[int64],
	Uint8: cumulateIntegers[uint8], Uint16: cumulateIntegers[uint16], Uint32: cumulateIntegers[uint32], Uint64: cumulateIntegers[uint64],
}

// cumulate makes the kernel. Floats come together in float64 and are rounded at
// each place, integers wrap.
func cumulate(by gathering) Kernel {
	return func(c *Call) error {
		d, err := c.Tensor(0)
		if err != nil {
			return err
		}
		list, err := c.IntsInput(1)
		if err != nil {
			return err
		}
		if len(list) != 1 {
			return c.Errorf("the axis is given by %d numbers", len(list))
		}
		axis, err := normalAxis(c, list[0], d.Rank())
		if err != nil {
			return err
		}
		wide, err := c.widen(d)
		if err != nil {
			return err
		}
		k := cumulateKernels.For(wide.Type())
		if k == nil {
			return c.noKernel(d.Type())
		}
		out, err := c.New(wide.Type(), d.Shape()...)
		if err != nil {
			return err
		}
		n := d.Shape()[axis]
		back, exclusive := c.Int("reverse", 0) != 0, c.Int("exclusive", 0) != 0
		c.Parallel(d.Len()/max(n, 1), elementGrain/max(n, 1)+1, func(first, last int) {
			for i := first; i < last; i++ {
				l := lineAt(i, d.Shape(), axis)
				l.exclusive = exclusive
				if back {
					l.first, l.step = l.first+(n-1)*l.step, -l.step
				}
				k(out, wide, l, by)
			}
		})
		return c.setOutput(c.narrow(out, d.Type()))
	}
}

func cumulateFloats[T floating](out, in *tensor.Dense, l line, by gathering) {
	cumulateLine(tensor.Data[T](out), tensor.Data[T](in), l, by, func(v T) float64 { return float64(v) }, func(v float64) T { return T(v) })
}

func cumulateIntegers[T integer](out, in *tensor.Dense, l line, by gathering) {
	same := func(v T) T { return v }
	cumulateLine(tensor.Data[T](out), tensor.Data[T](in), l, by, same, same)
}

// cumulateLine works in type A.
func cumulateLine[T, A tensor.Number](out, in []T, l line, by gathering, load func(T) A, store func(A) T) {
	var sum A
	if by == byProduct {
		sum = 1
	}
	at := l.first
	for range l.n {
		if l.exclusive {
			out[at] = store(sum)
		}
		if by == byProduct {
			sum *= load(in[at])
		} else {
			sum += load(in[at])
		}
		if !l.exclusive {
			out[at] = store(sum)
		}
		at += l.step
	}
}
