package eval

import (
	"math"

	"github.com/npuctl/npuctl/onnx/eval/internal/elementary"
	"github.com/npuctl/npuctl/onnx/eval/internal/simd"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// activationOperators are the activation functions of neural networks. NaN stays
// NaN, except where the formula itself says 0 (ThresholdedRelu, Shrink).
var activationOperators = []operator{
	{name: "Celu", since: 12, run: floatKernel(celu)},
	{name: "Elu", since: 1, run: floatKernel(elu)},
	{name: "Gelu", since: 20, run: gelu},
	{name: "HardSigmoid", since: 1, run: floatKernel(hardSigmoid)},
	{name: "HardSwish", since: 14, run: floatKernel(hardSwish)},
	{name: "LeakyRelu", since: 1, run: floatKernel(leakyRelu)},
	{name: "Mish", since: 18, run: floatKernel(mish)},
	{name: "PRelu", since: 1, run: prelu1},
	{name: "PRelu", since: 7, run: prelu},
	{name: "Relu", since: 1, run: relu},
	{name: "Selu", since: 1, run: floatKernel(selu1)},
	{name: "Selu", since: 6, run: floatKernel(selu)},
	{name: "Shrink", since: 9, run: shrink},
	{name: "Sigmoid", since: 1, run: floatKernel(sigmoid)},
	{name: "Softplus", since: 1, run: floatKernel(softplus)},
	{name: "Softsign", since: 1, run: floatKernel(softsign)},
	{name: "SwiGLU", since: 28, run: onFloats(0, swiGLU[float32](elementary.FastSigmoid), swiGLU[float64](elementary.Sigmoid))},
	{name: "Swish", since: 24, run: floatKernel(swish)},
	{name: "Tanh", since: 1, run: floatKernel(tanh)},
	{name: "ThresholdedRelu", since: 1, run: floatKernel(thresholdedRelu)},
}

func sigmoid(c *Call) floatFunction {
	return viaDouble(elementary.FastSigmoid, elementary.Sigmoid).withVectors(c, simd.Sigmoid)
}

func tanh(c *Call) floatFunction {
	return viaDouble(elementary.FastTanh, elementary.Tanh).withVectors(c, simd.Tanh)
}

// elu is x, or alpha·(e^x - 1) below 0.
func elu(c *Call) floatFunction {
	return scaledElu(float64(c.Float("alpha", 1)), 1)
}

// celu is x, or alpha·(e^(x/alpha) - 1) below 0; for a negative alpha, too, it is
// max(0, x) + min(0, …).
func celu(c *Call) floatFunction {
	alpha := float64(c.Float("alpha", 1))
	of := func(expm1 func(float64) float64) func(float64) float64 {
		return func(x float64) float64 { return max(0, x) + min(0, alpha*expm1(x/alpha)) }
	}
	return viaDouble(of(elementary.FastExpm1), of(elementary.Expm1))
}

// selu1 has the defaults of before opset 6.
func selu1(c *Call) floatFunction {
	return scaledElu(float64(c.Float("alpha", 1.6732)), float64(c.Float("gamma", 1.0507)))
}

func selu(c *Call) floatFunction {
	return scaledElu(float64(c.Float("alpha", 1.67326319217681884765625)), float64(c.Float("gamma", 1.05070102214813232421875)))
}

// scaledElu is gamma·x above 0 and gamma·alpha·(e^x - 1) below. Both sides agree at 0.
func scaledElu(alpha, gamma float64) floatFunction {
	of := func(expm1 func(float64) float64) func(float64) float64 {
		return func(x float64) float64 {
			if x < 0 {
				x = alpha * expm1(x)
			}
			return gamma * x
		}
	}
	return viaDouble(of(elementary.FastExpm1), of(elementary.Expm1))
}

// softplus is ln(e^x + 1), written so that it neither overflows nor loses digits.
func softplus(*Call) floatFunction {
	of := func(exp func(float64) float64) func(float64) float64 {
		return func(x float64) float64 { return max(x, 0) + elementary.Log1p(exp(-math.Abs(x))) }
	}
	return viaDouble(of(elementary.FastExp), of(elementary.Exp))
}

// mish is x·tanh(ln(1 + e^x)). With n = e^x·(e^x + 2) that is x·n/(n + 2).
func mish(*Call) floatFunction {
	of := func(exp func(float64) float64) func(float64) float64 {
		return func(x float64) float64 {
			if x > 40 {
				return x
			}
			e := exp(x)
			n := float64(e * (e + 2))
			return x * (n / (n + 2))
		}
	}
	return viaDouble(of(elementary.FastExp), of(elementary.Exp))
}

// swish is x·sigmoid(alpha·x).
func swish(c *Call) floatFunction {
	alpha := float64(c.Float("alpha", 1))
	of := func(sigmoid func(float64) float64) func(float64) float64 {
		return func(x float64) float64 { return x * sigmoid(alpha*x) }
	}
	vectors := func(dst, src []float32) {
		simd.Scale(dst, src, float32(alpha))
		simd.Sigmoid(dst, dst)
		for i, x := range src {
			dst[i] *= x
		}
	}
	return viaDouble(of(elementary.FastSigmoid), of(elementary.Sigmoid)).withVectors(c, vectors)
}

// gelu is x·Φ(x) with the normal distribution's Φ, or its approximation by tanh.
func gelu(c *Call) error {
	switch how := c.String("approximate", "none"); how {
	case "none":
		return floatKernel(geluExact)(c)
	case "tanh":
		return floatKernel(geluTanh)(c)
	default:
		return c.Errorf("attribute \"approximate\" is %q, not \"none\" or \"tanh\"", how)
	}
}

func geluExact(*Call) floatFunction {
	return viaDouble(geluBy(elementary.FastErfc), geluBy(elementary.Erfc))
}

func geluTanh(*Call) floatFunction {
	return viaDouble(geluTanhBy(elementary.FastSigmoid), geluTanhBy(elementary.Sigmoid))
}

// geluBy is x·½·(1 + erf(x/√2)); the second half is erfc(-x/√2), which keeps its
// digits where erf is near -1.
func geluBy(erfc func(float64) float64) func(float64) float64 {
	return func(x float64) float64 {
		if math.IsInf(x, -1) {
			return 0 // the limit, not -Inf·0
		}
		return 0.5 * x * erfc(-x/math.Sqrt2)
	}
}

// geluTanhBy is x·½·(1 + tanh(t)) = x·sigmoid(2t) with t = √(2/π)·(x + 0.044715·x³).
func geluTanhBy(sigmoid func(float64) float64) func(float64) float64 {
	const factor = 2 * 0.7978845608028654
	return func(x float64) float64 {
		if math.IsInf(x, -1) {
			return 0
		}
		return x * sigmoid(factor*(x+float64(0.044715*x*x*x)))
	}
}

func hardSigmoid(c *Call) floatFunction {
	alpha, beta := c.Float("alpha", 0.2), c.Float("beta", 0.5)
	return floatFunction{hardSigmoidOf(alpha, beta), hardSigmoidOf(float64(alpha), float64(beta))}
}

func hardSigmoidOf[T floating](alpha, beta T) func(dst, src []T) {
	return func(dst, src []T) {
		for i, x := range src {
			dst[i] = max(0, min(1, T(alpha*x)+beta))
		}
	}
}

func hardSwish(*Call) floatFunction { return floatFunction{hardSwishOf[float32], hardSwishOf[float64]} }

func hardSwishOf[T floating](dst, src []T) {
	for i, x := range src {
		dst[i] = x * max(0, min(1, T(x/6)+0.5))
	}
}

func leakyRelu(c *Call) floatFunction {
	alpha := c.Float("alpha", 0.01)
	f := floatFunction{leakyReluOf(alpha), leakyReluOf(float64(alpha))}
	if alpha >= 0 {
		f.single = leakyReluBySign(alpha)
	}
	return f
}

// leakyReluBySign picks the factor by the sign bit: processors foresee a branch on
// data badly. A zero keeps its sign, as alpha has none.
func leakyReluBySign(alpha float32) func(dst, src []float32) {
	one, slope := math.Float32bits(1), math.Float32bits(alpha)
	return func(dst, src []float32) {
		for i, x := range src {
			negative := uint32(int32(math.Float32bits(x)) >> 31)
			dst[i] = x * math.Float32frombits(negative&slope|^negative&one)
		}
	}
}

func leakyReluOf[T floating](alpha T) func(dst, src []T) {
	return func(dst, src []T) {
		for i, x := range src {
			if x < 0 {
				x *= alpha
			}
			dst[i] = x
		}
	}
}

func thresholdedRelu(c *Call) floatFunction {
	alpha := c.Float("alpha", 1)
	return floatFunction{thresholdedReluOf(alpha), thresholdedReluOf(float64(alpha))}
}

func thresholdedReluOf[T floating](alpha T) func(dst, src []T) {
	return func(dst, src []T) {
		for i, x := range src {
			if !(x > alpha) {
				x = 0
			}
			dst[i] = x
		}
	}
}

func softsign(*Call) floatFunction { return floatFunction{softsignOf[float32], softsignOf[float64]} }

func softsignOf[T floating](dst, src []T) {
	for i, x := range src {
		dst[i] = x / (1 + max(x, -x))
	}
}

// swiGLU is swish of the gate times the value, two arrays of one shape.
func swiGLU[T floating](sigmoid func(float64) float64) Kernel {
	return func(c *Call) error {
		gate, err := numberInput[T](c, 0)
		if err != nil {
			return err
		}
		value, err := shapedInput[T](c, 1, gate.shape...)
		if err != nil {
			return err
		}
		y, err := newResult[T](c, 0, gate.typ, gate.shape...)
		if err != nil {
			return err
		}
		alpha := float64(c.Float("alpha", 1))
		c.Parallel(len(y.data), functionGrain, func(first, last int) {
			for i := first; i < last; i++ {
				x := float64(gate.data[i])
				y.data[i] = T(x * sigmoid(alpha*x) * float64(value[i]))
			}
		})
		return y.finish()
	}
}

// relu is max(0, x), for integers too.
var relu = onNumbers(0, tensor.Numbers[Kernel]{
	Float32: reluOf[float32], Float64: reluOf[float64], Int32: reluOf[int32], Int64: reluOf[int64],
})

func reluOf[T number](c *Call) error {
	x, err := numberInput[T](c, 0)
	if err != nil {
		return err
	}
	y, err := newResult[T](c, 0, x.typ, x.shape...)
	if err != nil {
		return err
	}
	c.Parallel(len(x.data), elementGrain, func(first, last int) {
		dst := y.data[first:last]
		for i, v := range x.data[first:last] {
			dst[i] = max(v, 0)
		}
	})
	return y.finish()
}
