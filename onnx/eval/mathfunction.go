package eval

import (
	"github.com/npuctl/npuctl/onnx/eval/internal/elementary"
	"github.com/npuctl/npuctl/onnx/eval/internal/simd"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// mathFunctionOperators are the functions of a pocket calculator. Results are within
// one unit in the last place of float32 (Erf, which may use vectors: three), four of
// float64.
var mathFunctionOperators = []operator{
	{name: "Acos", since: 7, run: unaryFloat(elementary.Acos)},
	{name: "Acosh", since: 9, run: unaryFloat(elementary.Acosh)},
	{name: "Asin", since: 7, run: unaryFloat(elementary.Asin)},
	{name: "Asinh", since: 9, run: unaryFloat(elementary.Asinh)},
	{name: "Atan", since: 7, run: unaryFloat(elementary.Atan)},
	{name: "Atanh", since: 9, run: unaryFloat(elementary.Atanh)},
	{name: "Cos", since: 7, run: unaryFloat(elementary.Cos)},
	{name: "Cosh", since: 9, run: unaryFloat(elementary.Cosh)},
	{name: "Erf", since: 9, run: erf},
	{name: "Sin", since: 7, run: unaryFloat(elementary.Sin)},
	{name: "Sinh", since: 9, run: unaryFloat(elementary.Sinh)},
	{name: "Tan", since: 7, run: unaryFloat(elementary.Tan)},
}

// erf is the error function. For integers, which opset 9 allows, the specification
// does not say how the result, which lies between -1 and 1, becomes one; ours is
// truncated, as Cast does, after rounding to float64.
var erf = onNumbers(0, tensor.Numbers[Kernel]{
	Float32: floatKernel(erfFloats), Float64: floatKernel(erfFloats),
	Int32: erfIntegers[int32], Int64: erfIntegers[int64],
	Uint32: erfIntegers[uint32], Uint64: erfIntegers[uint64],
})

func erfFloats(c *Call) floatFunction {
	return viaDouble(elementary.FastErf, elementary.Erf).withVectors(c, simd.Erf)
}

func erfIntegers[T number](c *Call) error {
	if err := c.Undefined("Erf of integers"); err != nil {
		return err
	}
	x, err := numberInput[T](c, 0)
	if err != nil {
		return err
	}
	y, err := newResult[T](c, 0, x.typ, x.shape...)
	if err != nil {
		return err
	}
	for i, v := range x.data {
		y.data[i] = T(elementary.Erf(float64(v)))
	}
	return y.finish()
}
