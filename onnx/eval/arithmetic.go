package eval

import (
	"math"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// arithmeticOperators compute with two or more numbers at each place. Integers
// wrap; FLOAT16 and BFLOAT16 are computed in float32 and rounded once.
var arithmeticOperators = []operator{
	{name: "Add", since: 1, run: arithmetic(opAdd)},
	{name: "Sub", since: 1, run: arithmetic(opSub)},
	{name: "Mul", since: 1, run: arithmetic(opMul)},
	{name: "Div", since: 1, run: divide},
	{name: "Mod", since: 10, run: modulo},
	{name: "Pow", since: 1, run: power},
	{name: "Min", since: 1, run: variadic(opMin)},
	{name: "Max", since: 1, run: variadic(opMax)},
	{name: "Sum", since: 1, run: sum},
	{name: "Mean", since: 1, run: mean},
}

// binaryOp names what happens to two numbers.
type binaryOp int

const (
	opAdd binaryOp = iota
	opSub
	opMul
	opDiv // of floats
	opMin
	opMax
	opQuotient  // of integers, towards zero
	opRemainder // of integers, with the sign of the dividend
	opModulo    // of integers, with the sign of the divisor
	opAnd
	opOr
	opXor
	opShiftLeft
	opShiftRight
)

// binaryKernel computes op for two operands of one type.
type binaryKernel func(c *Call, op binaryOp, a, b *tensor.Dense) (*tensor.Dense, error)

var numberKernels = tensor.Numbers[binaryKernel]{
	Float32: numbers[float32], Float64: numbers[float64],
	Int8: numbers[int8], Int16: numbers[int16], Int32: numbers[int32], Int64: numbers[int64],
	Uint8: numbers[uint8], Uint16: numbers[uint16], Uint32: numbers[uint32], Uint64: numbers[uint64],
}

func numbers[T tensor.Number](c *Call, op binaryOp, a, b *tensor.Dense) (*tensor.Dense, error) {
	return combined(c, a, b, numberLoop[T](op))
}

// compute finds the kernel for the operands' type.
func compute(c *Call, op binaryOp, a, b *tensor.Dense) (*tensor.Dense, error) {
	switch a.Type() {
	case tensor.Float16:
		return combined(c, a, b, pairViaFloat32(tensor.F16From, numberLoop[float32](op)))
	case tensor.BFloat16:
		return combined(c, a, b, pairViaFloat32(tensor.BF16From, numberLoop[float32](op)))
	}
	kernels := &numberKernels
	if op >= opQuotient {
		kernels = &integerKernels
	}
	if k := kernels.For(a.Type()); k != nil {
		return k(c, op, a, b)
	}
	return nil, c.noKernel(a.Type())
}

func arithmetic(op binaryOp) Kernel {
	return func(c *Call) error {
		a, b, err := c.samePair()
		if err != nil {
			return err
		}
		return c.setOutput(compute(c, op, a, b))
	}
}

// setOutput makes d, when there is one, the call's first output.
func (c *Call) setOutput(d *tensor.Dense, err error) error {
	if err != nil {
		return err
	}
	c.Outputs[0] = d
	return nil
}

// numberLoop gives the loop for an operation that all numbers have. Minimum and
// maximum of a NaN and anything are NaN, as in NumPy.
func numberLoop[T tensor.Number](op binaryOp) func(out, a, b []T) {
	switch op {
	case opAdd:
		return func(out, a, b []T) {
			a, b = a[:len(out)], b[:len(out)]
			for i := range out {
				out[i] = a[i] + b[i]
			}
		}
	case opSub:
		return func(out, a, b []T) {
			a, b = a[:len(out)], b[:len(out)]
			for i := range out {
				out[i] = a[i] - b[i]
			}
		}
	case opMul:
		return func(out, a, b []T) {
			a, b = a[:len(out)], b[:len(out)]
			for i := range out {
				out[i] = a[i] * b[i]
			}
		}
	case opDiv:
		return func(out, a, b []T) {
			a, b = a[:len(out)], b[:len(out)]
			for i := range out {
				out[i] = a[i] / b[i]
			}
		}
	case opMin:
		return func(out, a, b []T) {
			a, b = a[:len(out)], b[:len(out)]
			for i := range out {
				out[i] = min(a[i], b[i])
			}
		}
	}
	return func(out, a, b []T) {
		a, b = a[:len(out)], b[:len(out)]
		for i := range out {
			out[i] = max(a[i], b[i])
		}
	}
}

// divide is Div: of integers it truncates towards zero.
func divide(c *Call) error {
	a, b, err := c.samePair()
	if err != nil {
		return err
	}
	if !a.Type().IsInteger() {
		return c.setOutput(compute(c, opDiv, a, b))
	}
	if err := c.checkDivision(a, b); err != nil {
		return err
	}
	return c.setOutput(compute(c, opQuotient, a, b))
}

// modulo is Mod. Of integers it has the sign of the divisor, with fmod that of the
// dividend; a divisor of 0 gives 0. Floats need fmod before opset 28: without it
// folding refuses, and evaluation does what opset 28 says.
func modulo(c *Call) error {
	a, b, err := c.samePair()
	if err != nil {
		return err
	}
	fmod := c.Int("fmod", 0) != 0
	if a.Type().IsInteger() {
		if err := c.checkDivision(a, b); err != nil {
			return err
		}
		op := opModulo
		if fmod {
			op = opRemainder
		}
		return c.setOutput(compute(c, op, a, b))
	}
	f := floorModulo
	if fmod {
		f = math.Mod
	} else if c.Opset < 28 {
		if err := c.Undefined("Mod of floats without fmod"); err != nil {
			return err
		}
	}
	return c.setOutput(computeFloats(c, a, b, f))
}

// floorModulo has the sign of y. Where x is no multiple of an infinite y, it is y
// unless their signs agree.
func floorModulo(x, y float64) float64 {
	r := math.Mod(x, y)
	switch {
	case r == 0:
		return math.Copysign(0, y)
	case r < 0 != (y < 0):
		return r + y
	}
	return r
}

// computeFloats computes a function of two floats of one type, in float64.
func computeFloats(c *Call, a, b *tensor.Dense, f func(x, y float64) float64) (*tensor.Dense, error) {
	narrow := func(out, a, b []float32) {
		for i := range out {
			out[i] = float32(f(float64(a[i]), float64(b[i])))
		}
	}
	switch a.Type() {
	case tensor.Float32:
		return combined(c, a, b, narrow)
	case tensor.Float64:
		return combined(c, a, b, func(out, a, b []float64) {
			for i := range out {
				out[i] = f(a[i], b[i])
			}
		})
	case tensor.Float16:
		return combined(c, a, b, pairViaFloat32(tensor.F16From, narrow))
	case tensor.BFloat16:
		return combined(c, a, b, pairViaFloat32(tensor.BF16From, narrow))
	}
	return nil, c.noKernel(a.Type())
}

// variadic makes the kernel of an operator that takes any number of operands.
func variadic(op binaryOp) Kernel {
	return func(c *Call) error {
		all, err := c.Tensors(0)
		if err != nil {
			return err
		}
		return c.setOutput(accumulate(c, op, all))
	}
}

// accumulate computes op from left to right.
func accumulate(c *Call, op binaryOp, all []*tensor.Dense) (*tensor.Dense, error) {
	if len(all) == 0 {
		return nil, c.Errorf("there are no inputs")
	}
	total := all[0]
	for i, d := range all[1:] {
		if d.Type() != total.Type() {
			return nil, c.Errorf("inputs are %s and %s, which should be of one type", total.Type(), d.Type())
		}
		next, err := compute(c, op, total, d)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			c.Release(total)
		}
		total = next
	}
	return total, nil
}

// sum adds its inputs up from left to right; narrow floats in float32, rounded at the end.
func sum(c *Call) error {
	total, t, err := c.wideSum()
	if err != nil {
		return err
	}
	return c.setOutput(c.narrow(total, t))
}

// mean is the sum divided by the number of inputs, both in float32 for narrow floats.
func mean(c *Call) error {
	total, t, err := c.wideSum()
	if err != nil {
		return err
	}
	n := len(c.Inputs)
	switch total.Type() {
	case tensor.Float32:
		total, err = mapped(c, total, divideBy(float32(n)))
	case tensor.Float64:
		total, err = mapped(c, total, divideBy(float64(n)))
	default:
		err = c.noKernel(total.Type())
	}
	if err != nil {
		return err
	}
	return c.setOutput(c.narrow(total, t))
}

func divideBy[T floating](n T) func(out, in []T) {
	return func(out, in []T) {
		for i, v := range in {
			out[i] = v / n
		}
	}
}

// wideSum adds the inputs up, narrow ones as FLOAT; t is the type they had.
func (c *Call) wideSum() (total *tensor.Dense, t tensor.Type, err error) {
	all, err := c.Tensors(0)
	if err != nil {
		return nil, 0, err
	}
	if len(all) == 0 {
		return nil, 0, c.Errorf("there are no inputs")
	}
	t = all[0].Type()
	for i, d := range all {
		if d.Type() != t {
			return nil, 0, c.Errorf("inputs are %s and %s, which should be of one type", t, d.Type())
		}
		if all[i], err = c.widen(d); err != nil {
			return nil, 0, err
		}
	}
	total, err = accumulate(c, opAdd, all)
	return total, t, err
}

// widen gives d as FLOAT when it is a float that is computed in that type, else d.
func (c *Call) widen(d *tensor.Dense) (*tensor.Dense, error) {
	switch d.Type() {
	case tensor.Float16:
		return mapped(c, d, widenTo[tensor.F16])
	case tensor.BFloat16:
		return mapped(c, d, widenTo[tensor.BF16])
	}
	return d, nil
}

// narrow undoes widen.
func (c *Call) narrow(d *tensor.Dense, t tensor.Type) (*tensor.Dense, error) {
	switch t {
	case tensor.Float16:
		return mapped(c, d, encodeTo(tensor.F16From))
	case tensor.BFloat16:
		return mapped(c, d, encodeTo(tensor.BF16From))
	}
	return d, nil
}

func encodeTo[S tensor.Element](encode func(float32) S) func(out []S, in []float32) {
	return func(out []S, in []float32) {
		for i, v := range in {
			out[i] = encode(v)
		}
	}
}
