package eval

import (
	"math"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// prelu multiplies what is below 0 by a slope, which broadcasts to x.
var prelu = onNumbers(0, preluKernels(sameShape))

// prelu1 is PRelu before opset 7: the slope is one number, or one a channel, which
// is axis 1.
var prelu1 = onNumbers(0, preluKernels(channelShape))

func preluKernels(slopeShape func(slope, x []int) []int) tensor.Numbers[Kernel] {
	return tensor.Numbers[Kernel]{
		Float32: preluOf[float32](slopeShape), Float64: preluOf[float64](slopeShape),
		Int32: preluOf[int32](slopeShape), Int64: preluOf[int64](slopeShape),
		Uint32: preluOf[uint32](slopeShape), Uint64: preluOf[uint64](slopeShape),
	}
}

func sameShape(slope, _ []int) []int { return slope }

// channelShape puts the one axis of a slope where the channels of x are.
func channelShape(slope, x []int) []int {
	if len(slope) != 1 || len(x) < 2 {
		return slope
	}
	shape := make([]int, len(x)-1)
	for i := range shape {
		shape[i] = 1
	}
	shape[0] = slope[0]
	return shape
}

func preluOf[T number](slopeShape func(slope, x []int) []int) Kernel {
	return func(c *Call) error {
		x, err := numberInput[T](c, 0)
		if err != nil {
			return err
		}
		slope, err := numberInput[T](c, 1)
		if err != nil {
			return err
		}
		walk, err := tensor.BroadcastWalk(x.shape, slopeShape(slope.shape, x.shape))
		if _, both := tensor.BroadcastShapes(x.shape, slopeShape(slope.shape, x.shape)); err != nil && both == nil {
			return c.Unsupported("a slope of shape %v that x of shape %v would have to be stretched to", slope.shape, x.shape)
		}
		if err != nil {
			return c.Errorf("%w", err)
		}
		y, err := newResult[T](c, 0, x.typ, x.shape...)
		if err != nil {
			return err
		}
		n, step := walk.Len(), walk.Step(0)
		c.Parallel(walk.Runs(), elementGrain/max(n, 1), func(first, last int) {
			walk.Range(first, last, func(run int, at []int) {
				src, dst := x.data[run*n:run*n+n], y.data[run*n:run*n+n]
				for i, v := range src {
					if v < 0 {
						v *= slope.data[at[0]+i*step]
					}
					dst[i] = v
				}
			})
		})
		return y.finish()
	}
}

// shrink moves what lies beyond ±lambd towards 0 by bias, and makes the rest 0.
// The result in integers is truncated, as Cast does; where it leaves the type, the
// specification says nothing, and ours is the number as it was.
var shrink = onNumbers(0, tensor.Numbers[Kernel]{
	Float32: floatKernel(shrinkFloats), Float64: floatKernel(shrinkFloats),
	Int32: shrinkIntegers[int32], Int64: shrinkIntegers[int64],
	Uint32: shrinkIntegers[uint32], Uint64: shrinkIntegers[uint64],
})

func shrinkFloats(c *Call) floatFunction {
	lambd, bias := c.Float("lambd", 0.5), c.Float("bias", 0)
	return floatFunction{shrinkOf(lambd, bias), shrinkOf(float64(lambd), float64(bias))}
}

func shrinkOf[T floating](lambd, bias T) func(dst, src []T) {
	return func(dst, src []T) {
		for i, x := range src {
			switch {
			case x < -lambd:
				dst[i] = x + bias
			case x > lambd:
				dst[i] = x - bias
			default:
				dst[i] = 0
			}
		}
	}
}

func shrinkIntegers[T int32 | int64 | uint32 | uint64](c *Call) error {
	x, err := numberInput[T](c, 0)
	if err != nil {
		return err
	}
	y, err := newResult[T](c, 0, x.typ, x.shape...)
	if err != nil {
		return err
	}
	lambd, bias := float64(c.Float("lambd", 0.5)), float64(c.Float("bias", 0))
	fits := true
	for i, v := range x.data {
		ok := true
		switch {
		case compareInteger(v, -lambd) < 0:
			y.data[i], ok = moveInteger(v, bias, x.typ)
		case compareInteger(v, lambd) > 0:
			y.data[i], ok = moveInteger(v, -bias, x.typ)
		}
		fits = fits && ok
	}
	if !fits {
		if err := c.Undefined("a result beyond %s", x.typ); err != nil {
			return err
		}
	}
	return y.finish()
}

// integerLimits is the least and the greatest number of an integer type of at most
// 32 bits, exactly, and those of a 64-bit one rounded to float64.
func integerLimits(t tensor.Type) (low, high float64) {
	bits := t.Bits()
	if t.IsSigned() {
		return -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1) - 1
	}
	return 0, math.Ldexp(1, bits) - 1
}

// compareInteger is the sign of v - limit, without rounding v to a float.
func compareInteger[T int32 | int64 | uint32 | uint64](v T, limit float64) int {
	low, high := integerLimits(tensor.TypeOf[T]())
	whole := math.Floor(limit)
	switch {
	case whole < low:
		return 1
	case !(whole < high): // NaN, too, is above nothing
		return -1
	case v < T(whole) || v == T(whole) && whole < limit:
		return -1
	case v == T(whole):
		return 0
	}
	return 1
}

// moveInteger is v + by truncated to an integer; ok says whether t can hold it.
func moveInteger[T int32 | int64 | uint32 | uint64](v T, by float64, t tensor.Type) (moved T, ok bool) {
	low, high := integerLimits(t)
	if sum := float64(v) + by; !(sum > low-1 && sum < high+1 && math.Abs(by) < 1<<62) {
		return v, false
	}
	whole := math.Floor(by)
	moved = v + T(int64(whole))
	if moved < 0 && whole < by {
		moved++
	}
	return moved, true
}
