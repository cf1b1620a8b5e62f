package eval

import (
	"math"

	"github.com/npuctl/npuctl/onnx/eval/internal/elementary"
	"github.com/npuctl/npuctl/onnx/eval/internal/simd"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// softmaxOperators turn lines of numbers into shares. Until version 12 a line is all
// axes from axis, 1 by default, on; from 13 the elements along axis, the last by default.
var softmaxOperators = []operator{
	{name: "Softmax", since: 1, run: onFloats(0, softmaxLines(softmaxLine[float32]), softmaxLines(softmaxLine[float64]))},
	{name: "LogSoftmax", since: 1, run: onFloats(0, softmaxLines(logSoftmaxLine[float32]), softmaxLines(logSoftmaxLine[float64]))},
	{name: "Hardmax", since: 1, run: onFloats(0, softmaxLines(hardmaxLine[float32]), softmaxLines(hardmaxLine[float64]))},
}

func softmaxLines[T floating](line func(c *Call) func(in, out []T)) Kernel {
	return func(c *Call) error {
		x, err := numberInput[T](c, 0)
		if err != nil {
			return err
		}
		otherwise := int64(-1)
		if c.Opset < 13 {
			otherwise = 1
		}
		shape, axis := x.shape, 0
		switch given := c.Int("axis", otherwise); {
		case c.Opset < 13 && given == int64(len(x.shape)):
			// Flattened behind its last axis, an array is a column.
			shape, axis = []int{len(x.data), 1}, 1
		default:
			if axis, err = normalAxis(c, given, len(x.shape)); err != nil {
				return err
			}
			if c.Opset < 13 {
				shape, axis = []int{product(x.shape[:axis]), product(x.shape[axis:])}, 1
			}
		}
		out, err := newResult[T](c, 0, x.typ, x.shape...)
		if err != nil {
			return err
		}
		alongAxis(c, shape, axis, x.data, out.data, line(c))
		return out.finish()
	}
}

// softmaxLine makes shares: e^x over the sum of all. A line that holds nothing but
// -Inf, or that holds +Inf, gives NaN.
func softmaxLine[T floating](c *Call) func(in, out []T) {
	sum := lineSum[T](c)
	return func(in, out []T) {
		inverse := 1 / sum(in, out, largestOf(in))
		scaleLine(out, inverse)
	}
}

// lineSum gives the way to write e^(x-top) for a line and to add it up: by vectors
// where T is float32 and the call need not have the same bits on every host.
func lineSum[T floating](c *Call) func(in, out []T, top T) float64 {
	vectors := func(in, out []float32, top float32) float64 { return float64(simd.ExpSum(out, in, top)) }
	if f, ok := any(vectors).(func(in, out []T, top T) float64); ok && !c.Strict() {
		return f
	}
	return exponentials[T]
}

func scaleLine[T floating](line []T, factor float64) {
	if single, ok := any(line).([]float32); ok {
		simd.Scale(single, single, float32(factor))
		return
	}
	for i, v := range line {
		line[i] = T(float64(v) * factor)
	}
}

// logSoftmaxLine is the logarithm of softmaxLine.
func logSoftmaxLine[T floating](c *Call) func(in, out []T) {
	sum := lineSum[T](c)
	return func(in, out []T) {
		top := largestOf(in)
		shift := elementary.Log(sum(in, out, top))
		for i, v := range in {
			out[i] = T(float64(v-top) - shift)
		}
	}
}

// hardmaxLine marks the first of the largest elements.
func hardmaxLine[T floating](*Call) func(in, out []T) {
	return func(in, out []T) {
		clear(out)
		top := largestOf(in)
		for i, v := range in {
			if v == top {
				out[i] = 1
				return
			}
		}
	}
}

// largestOf is the largest number of a line, -Inf when there is none.
func largestOf[T floating](line []T) T {
	if single, ok := any(line).([]float32); ok {
		return T(simd.Max(single))
	}
	best := T(math.Inf(-1))
	for _, v := range line {
		if v > best {
			best = v
		}
	}
	return best
}

// exponentials writes e^(x-top) and returns the sum.
func exponentials[T floating](in, out []T, top T) float64 {
	exp := elementary.Exp
	if tensor.TypeOf[T]() == tensor.Float32 {
		exp = elementary.FastExp
	}
	sum := 0.0
	for i, v := range in {
		e := exp(float64(v - top))
		sum += e
		out[i] = T(e)
	}
	return sum
}
