package eval

import "github.com/npuctl/npuctl/onnx/tensor"

// bitOperators work on the bits of integers, and on truth values.
var bitOperators = []operator{
	{name: "BitShift", since: 11, run: bitShift},
	{name: "BitwiseAnd", since: 18, run: bitwise(opAnd)},
	{name: "BitwiseOr", since: 18, run: bitwise(opOr)},
	{name: "BitwiseXor", since: 18, run: bitwise(opXor)},
	{name: "And", since: 1, run: logic(func(a, b bool) bool { return a && b })},
	{name: "Or", since: 1, run: logic(func(a, b bool) bool { return a || b })},
	{name: "Xor", since: 1, run: logic(func(a, b bool) bool { return a != b })},
}

// integer is the types that hold whole numbers.
type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

var integerKernels = tensor.Numbers[binaryKernel]{
	Int8: integers[int8], Int16: integers[int16], Int32: integers[int32], Int64: integers[int64],
	Uint8: integers[uint8], Uint16: integers[uint16], Uint32: integers[uint32], Uint64: integers[uint64],
}

func integers[T integer](c *Call, op binaryOp, a, b *tensor.Dense) (*tensor.Dense, error) {
	return combined(c, a, b, integerLoop[T](op))
}

// integerLoop gives the loop for an operation that only integers have. Division
// by zero gives 0; the smallest number divided by -1 is itself.
func integerLoop[T integer](op binaryOp) func(out, a, b []T) {
	f := integerFunc[T](op)
	return func(out, a, b []T) {
		a, b = a[:len(out)], b[:len(out)]
		for i := range out {
			out[i] = f(a[i], b[i])
		}
	}
}

func integerFunc[T integer](op binaryOp) func(a, b T) T {
	switch op {
	case opQuotient:
		return func(a, b T) T {
			if b == 0 {
				return 0
			}
			return a / b
		}
	case opRemainder:
		return func(a, b T) T {
			if b == 0 {
				return 0
			}
			return a % b
		}
	case opModulo:
		return func(a, b T) T {
			if b == 0 {
				return 0
			}
			r := a % b
			if r != 0 && (r < 0) != (b < 0) {
				r += b
			}
			return r
		}
	case opAnd:
		return func(a, b T) T { return a & b }
	case opOr:
		return func(a, b T) T { return a | b }
	case opXor:
		return func(a, b T) T { return a ^ b }
	case opShiftLeft:
		return func(a, b T) T { return a << shiftCount(b) }
	}
	return func(a, b T) T { return a >> shiftCount(b) }
}

// shiftCount makes a negative count one that shifts everything out.
func shiftCount[T integer](b T) uint64 {
	if b < 0 {
		return 64
	}
	return uint64(b)
}

var divisionChecks = tensor.Numbers[func(c *Call, a, b *tensor.Dense) error]{
	Int8: checkQuotients[int8], Int16: checkQuotients[int16], Int32: checkQuotients[int32], Int64: checkQuotients[int64],
	Uint8: checkQuotients[uint8], Uint16: checkQuotients[uint16], Uint32: checkQuotients[uint32], Uint64: checkQuotients[uint64],
}

// checkDivision refuses, while folding, integer divisions without a result.
func (c *Call) checkDivision(a, b *tensor.Dense) error {
	if check := divisionChecks.For(a.Type()); check != nil && c.Strict() {
		return check(c, a, b)
	}
	return nil
}

// checkQuotients is checkDivision for one type.
func checkQuotients[T integer](c *Call, a, b *tensor.Dense) error {
	minusOne := false
	for _, v := range tensor.Data[T](b) {
		if v == 0 {
			return c.Undefined("integer division by zero")
		}
		minusOne = minusOne || v < 0 && v+1 == 0
	}
	if !minusOne {
		return nil
	}
	for _, v := range tensor.Data[T](a) {
		if v < 0 && v == -v {
			return c.Undefined("the smallest integer divided by -1")
		}
	}
	return nil
}

// bitShift moves bits. Opset 28 says what a count beyond the width does: all bits
// go, and a right shift fills with the sign. Before, folding refuses, and
// evaluation does the same.
func bitShift(c *Call) error {
	a, b, err := c.samePair()
	if err != nil {
		return err
	}
	if !a.Type().IsInteger() || a.Type().Bits() < 8 {
		return c.noKernel(a.Type())
	}
	if c.Opset < 28 && c.Strict() {
		counts, ok := b.Float64s() // exact where it matters
		for _, n := range counts {
			if !ok || n < 0 || n >= float64(b.Type().Bits()) {
				return c.Undefined("a shift by more bits than there are")
			}
		}
	}
	switch direction := c.String("direction", ""); direction {
	case "LEFT":
		return c.setOutput(compute(c, opShiftLeft, a, b))
	case "RIGHT":
		return c.setOutput(compute(c, opShiftRight, a, b))
	default:
		return c.Errorf("direction %q is neither LEFT nor RIGHT", direction)
	}
}

func bitwise(op binaryOp) Kernel {
	return func(c *Call) error {
		a, b, err := c.samePair()
		if err != nil {
			return err
		}
		if !a.Type().IsInteger() {
			return c.noKernel(a.Type())
		}
		return c.setOutput(compute(c, op, a, b))
	}
}

func logic(f func(a, b bool) bool) Kernel {
	return func(c *Call) error {
		a, b, err := c.samePair()
		if err != nil {
			return err
		}
		if a.Type() != tensor.Bool {
			return c.noKernel(a.Type())
		}
		return c.setOutput(combined(c, a, b, func(out, a, b []bool) {
			for i := range out {
				out[i] = f(a[i], b[i])
			}
		}))
	}
}
