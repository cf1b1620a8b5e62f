package eval

import (
	"math"

	"github.com/npuctl/npuctl/onnx/eval/internal/elementary"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// unaryOperators compute each element of the result from one element.
var unaryOperators = []operator{
	{name: "Neg", since: 1, run: unary(opNeg)},
	{name: "Abs", since: 1, run: unary(opAbs)},
	{name: "Sign", since: 9, run: unary(opSign)},
	{name: "Floor", since: 1, run: unaryFloat(math.Floor)},
	{name: "Ceil", since: 1, run: unaryFloat(math.Ceil)},
	{name: "Round", since: 11, run: unaryFloat(math.RoundToEven)},
	{name: "Sqrt", since: 1, run: unaryFloat(math.Sqrt)},
	{name: "Reciprocal", since: 1, run: unaryFloat(func(x float64) float64 { return 1 / x })},
	{name: "Exp", since: 1, run: unaryFloat(elementary.Exp)},
	{name: "Log", since: 1, run: unaryFloat(elementary.Log)},
	{name: "Not", since: 1, run: not},
	{name: "BitwiseNot", since: 18, run: bitwiseNot},
	{name: "IsNaN", since: 9, run: isNaN},
	{name: "IsInf", since: 10, run: isInf},
	{name: "Clip", since: 1, run: clipAttributes},
	{name: "Clip", since: 11, run: clip},
}

// unaryOp names what happens to a number.
type unaryOp int

const (
	opNeg unaryOp = iota
	opAbs
	opSign
)

var unaryKernels = tensor.Numbers[func(c *Call, op unaryOp, d *tensor.Dense) (*tensor.Dense, error)]{
	Float32: unaryNumbers[float32], Float64: unaryNumbers[float64],
	Int8: unaryNumbers[int8], Int16: unaryNumbers[int16], Int32: unaryNumbers[int32], Int64: unaryNumbers[int64],
	Uint8: unaryNumbers[uint8], Uint16: unaryNumbers[uint16], Uint32: unaryNumbers[uint32], Uint64: unaryNumbers[uint64],
}

func unaryNumbers[T tensor.Number](c *Call, op unaryOp, d *tensor.Dense) (*tensor.Dense, error) {
	return mapped(c, d, unaryLoop[T](op))
}

func unary(op unaryOp) Kernel {
	return func(c *Call) error {
		d, err := c.Tensor(0)
		if err != nil {
			return err
		}
		if op == opSign {
			if err := c.foldsNaN(d, "the sign of NaN"); err != nil {
				return err
			}
		}
		switch d.Type() {
		case tensor.Float16:
			return c.setOutput(mapped(c, d, viaFloat32(tensor.F16From, unaryLoop[float32](op))))
		case tensor.BFloat16:
			return c.setOutput(mapped(c, d, viaFloat32(tensor.BF16From, unaryLoop[float32](op))))
		}
		if k := unaryKernels.For(d.Type()); k != nil {
			return c.setOutput(k(c, op, d))
		}
		return c.noKernel(d.Type())
	}
}

// unaryLoop gives the loop for an operation. The smallest integer is its own
// negative and magnitude; the sign of NaN is NaN, that of zero the zero itself.
func unaryLoop[T tensor.Number](op unaryOp) func(out, in []T) {
	switch op {
	case opNeg:
		return func(out, in []T) {
			for i, v := range in {
				out[i] = -v
			}
		}
	case opAbs:
		return func(out, in []T) {
			for i, v := range in {
				if v <= 0 {
					v = 0 - v // which makes a positive zero of a negative one
				}
				out[i] = v
			}
		}
	}
	return func(out, in []T) {
		for i, v := range in {
			switch {
			case v > 0:
				v = 1
			case v < 0:
				v = 0
				v--
			}
			out[i] = v
		}
	}
}

// unaryFloat makes the kernel of an operator that only floats have. Narrow types
// are computed in float64 and rounded once.
func unaryFloat(f func(float64) float64) Kernel {
	function := viaDouble(f, f)
	return floatKernel(func(*Call) floatFunction { return function })
}

func not(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	if d.Type() != tensor.Bool {
		return c.noKernel(d.Type())
	}
	return c.setOutput(mapped(c, d, func(out, in []bool) {
		for i, v := range in {
			out[i] = !v
		}
	}))
}

var bitwiseNotKernels = tensor.Numbers[func(c *Call, d *tensor.Dense) (*tensor.Dense, error)]{
	Int8: invert[int8], Int16: invert[int16], Int32: invert[int32], Int64: invert[int64],
	Uint8: invert[uint8], Uint16: invert[uint16], Uint32: invert[uint32], Uint64: invert[uint64],
}

func invert[T integer](c *Call, d *tensor.Dense) (*tensor.Dense, error) {
	return mapped(c, d, func(out, in []T) {
		for i, v := range in {
			out[i] = ^v
		}
	})
}

func bitwiseNot(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	if k := bitwiseNotKernels.For(d.Type()); k != nil {
		return c.setOutput(k(c, d))
	}
	return c.noKernel(d.Type())
}

func isNaN(c *Call) error {
	return testFloats(c, func(v float64) bool { return v != v })
}

// isInf finds infinities of the signs that the attributes ask for, both by default.
func isInf(c *Call) error {
	negative, positive := c.Int("detect_negative", 1) != 0, c.Int("detect_positive", 1) != 0
	return testFloats(c, func(v float64) bool {
		return positive && math.IsInf(v, 1) || negative && math.IsInf(v, -1)
	})
}

// testFloats asks a question of each element of a float tensor.
func testFloats(c *Call, f func(float64) bool) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	narrow := func(out []bool, in []float32) {
		for i, v := range in {
			out[i] = f(float64(v))
		}
	}
	switch d.Type() {
	case tensor.Float32:
		return c.setOutput(mapped(c, d, narrow))
	case tensor.Float64:
		return c.setOutput(mapped(c, d, func(out []bool, in []float64) {
			for i, v := range in {
				out[i] = f(v)
			}
		}))
	case tensor.Float16:
		return c.setOutput(mapped(c, d, testVia[tensor.F16](narrow)))
	case tensor.BFloat16:
		return c.setOutput(mapped(c, d, testVia[tensor.BF16](narrow)))
	case tensor.Float8E4M3FN:
		return c.setOutput(mapped(c, d, testVia[tensor.E4M3FN](narrow)))
	case tensor.Float8E4M3FNUZ:
		return c.setOutput(mapped(c, d, testVia[tensor.E4M3FNUZ](narrow)))
	case tensor.Float8E5M2:
		return c.setOutput(mapped(c, d, testVia[tensor.E5M2](narrow)))
	case tensor.Float8E5M2FNUZ:
		return c.setOutput(mapped(c, d, testVia[tensor.E5M2FNUZ](narrow)))
	}
	return c.noKernel(d.Type())
}

// clipAttributes is Clip with its bounds as attributes, up to opset 10.
func clipAttributes(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	if !d.Type().IsFloat() {
		return c.noKernel(d.Type())
	}
	var bounds [2]*tensor.Dense
	for i, name := range []string{"min", "max"} {
		if c.Attribute(name) == nil {
			continue
		}
		if bounds[i], err = c.cast(tensor.Scalar(c.Float(name, 0)), d.Type()); err != nil {
			return err
		}
	}
	return c.clip(d, bounds[0], bounds[1])
}

// clip is Clip with its bounds as inputs, which may be left out.
func clip(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	var bounds [2]*tensor.Dense
	for i := range bounds {
		if !c.Has(1 + i) {
			continue
		}
		if bounds[i], err = c.Tensor(1 + i); err != nil {
			return err
		}
		if bounds[i].Type() != d.Type() || bounds[i].Len() != 1 {
			return c.Errorf("input %d is %s%v, not one %s", 1+i, bounds[i].Type(), bounds[i].Shape(), d.Type())
		}
	}
	return c.clip(d, bounds[0], bounds[1])
}

var clipKernels = tensor.Numbers[func(c *Call, d, low, high *tensor.Dense) (*tensor.Dense, error)]{
	Float32: clipNumbers[float32], Float64: clipNumbers[float64],
	Int8: clipNumbers[int8], Int16: clipNumbers[int16], Int32: clipNumbers[int32], Int64: clipNumbers[int64],
	Uint8: clipNumbers[uint8], Uint16: clipNumbers[uint16], Uint32: clipNumbers[uint32], Uint64: clipNumbers[uint64],
}

// clip bounds the elements of d; a bound may be nil. A low bound above the high
// one gives the high one, NaN stays NaN. Floats without a bound are bounded by the
// largest number, so that an infinity becomes that.
func (c *Call) clip(d, low, high *tensor.Dense) error {
	wide := [3]*tensor.Dense{d, low, high}
	if top, isFloat := d.Type().LargestFinite(); isFloat {
		for i, limit := range [3]float64{1: -top, 2: top} {
			if wide[i] != nil {
				continue
			}
			var err error
			if wide[i], err = c.cast(tensor.Scalar(limit), d.Type()); err != nil {
				return err
			}
		}
	}
	if wide[1] == nil && wide[2] == nil {
		c.Outputs[0] = d
		return nil
	}
	for i, w := range wide {
		if w == nil {
			continue
		}
		var err error
		if wide[i], err = c.widen(w); err != nil {
			return err
		}
	}
	k := clipKernels.For(wide[0].Type())
	if k == nil {
		return c.noKernel(d.Type())
	}
	out, err := k(c, wide[0], wide[1], wide[2])
	if err != nil {
		return err
	}
	return c.setOutput(c.narrow(out, d.Type()))
}

func clipNumbers[T tensor.Number](c *Call, d, low, high *tensor.Dense) (*tensor.Dense, error) {
	bound := func(d *tensor.Dense) (v T, there bool) {
		if d == nil {
			return v, false
		}
		return tensor.Data[T](d)[0], true
	}
	bottom, hasBottom := bound(low)
	top, hasTop := bound(high)
	return mapped(c, d, func(out, in []T) {
		for i, v := range in {
			if hasBottom && v < bottom {
				v = bottom
			}
			if hasTop && v > top {
				v = top
			}
			out[i] = v
		}
	})
}
