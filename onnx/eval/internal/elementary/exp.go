package elementary

import "math"

// The natural logarithm of 2 in two parts; the first has 32 bits, so that its
// product with a small integer is exact.
const (
	ln2High   = 0.6931471803691238
	ln2Low    = 1.9082149292705877e-10
	log2OfE   = 1.4426950408889634
	maxExp    = 709.782712893384 // above, exp overflows
	minExp    = -745.14          // below, exp is 0
	roundBias = 1.5 * (1 << 52)  // adding and subtracting it rounds to an integer
)

// reduceExp writes x as k·ln2 + r with |r| at most a little over ln2/2. x must lie
// between minExp and maxExp.
func reduceExp(x float64) (r float64, k int) {
	n := float64(x*log2OfE) + roundBias - roundBias
	high := x - float64(n*ln2High)
	return high - float64(n*ln2Low), int(n)
}

// expm1Reduced is exp(r)-1 for |r| up to ln2/2.
func expm1Reduced(r float64) float64 {
	// (exp(r)-1-r)/r²; the odd and even halves do not wait for each other.
	r2 := float64(r * r)
	even := 0.5000000000000001 + float64(r2*(0.041666666666623824+float64(r2*(0.0013888888917367081+
		float64(r2*(2.4801521057868204e-05+float64(r2*2.7620201591031547e-07)))))))
	odd := 0.16666666666666669 + float64(r2*(0.008333333333330039+float64(r2*(0.00019841269863171557+
		float64(r2*(2.7557268276905696e-06+float64(r2*2.5100472505694996e-08)))))))
	return r + float64(r2*(even+float64(r*odd)))
}

// fastExpm1Reduced is expm1Reduced with a relative error of 6e-10.
func fastExpm1Reduced(r float64) float64 {
	r2 := float64(r * r)
	even := 0.500000001353873 + float64(r2*(0.04166646419740569+float64(r2*0.0013933730715792083)))
	odd := 0.16666666681704215 + float64(r2*(0.008333310844647862+float64(r2*0.00019891080463998843)))
	return r + float64(r2*(even+float64(r*odd)))
}

// power2 is 2^k for k of a normal number.
func power2(k int) float64 { return math.Float64frombits(uint64(k+1023) << 52) }

// scale is v·2^k for v between ½ and 2, rounded once where the result is subnormal.
func scale(v float64, k int) float64 {
	switch {
	case k > 1023:
		return v * 2 * power2(k-1)
	case k < -1021:
		return float64(v*power2(k+128)) * power2(-128)
	}
	return v * power2(k)
}

// Exp is e^x.
func Exp(x float64) float64 {
	if !(x > minExp && x < maxExp) {
		return expLimit(x)
	}
	r, k := reduceExp(x)
	return scale(1+expm1Reduced(r), k)
}

// expLimit is Exp where it leaves the range of float64, and of NaN.
func expLimit(x float64) float64 {
	switch {
	case x != x:
		return x
	case x <= minExp:
		return 0
	case x == maxExp:
		return math.MaxFloat64
	}
	return math.Inf(1)
}

// FastExp is e^x to about 30 bits, for |x| below 700; further out it gives 0 or
// infinity.
func FastExp(x float64) float64 {
	if !(x > -700 && x < 700) {
		return expLimit(x * 1.1)
	}
	r, k := reduceExp(x)
	return float64((1 + fastExpm1Reduced(r)) * power2(k))
}

// Expm1 is e^x - 1, accurate near 0 as well.
func Expm1(x float64) float64 {
	switch {
	case x == 0:
		return x
	case x != x || x >= maxExp:
		return expLimit(x)
	case x < -40:
		return -1
	}
	r, k := reduceExp(x)
	m := expm1Reduced(r)
	switch {
	case k == 0:
		return m
	case k > 1023:
		return 2 * (float64(m*power2(k-1)) + power2(k-1))
	}
	s := power2(k)
	return float64(m*s) + (s - 1)
}

// FastExpm1 is e^x - 1 to about 30 bits, near 0 as well, for x below 700.
func FastExpm1(x float64) float64 {
	if !(x > -40 && x < 700) || x == 0 {
		return expm1Limit(x)
	}
	r, k := reduceExp(x)
	s := power2(k)
	return float64(fastExpm1Reduced(r)*s) + (s - 1)
}

// expm1Limit is FastExpm1 where its polynomial does not hold, and at 0, whose sign it keeps.
func expm1Limit(x float64) float64 {
	switch {
	case x == 0:
		return x
	case x <= -40:
		return -1
	}
	return expLimit(x * 1.1)
}

// Sinh is the hyperbolic sine.
func Sinh(x float64) float64 {
	a := math.Abs(x)
	if a > 22 {
		return math.Copysign(halfExp(a), x)
	}
	e := Expm1(a)
	return math.Copysign((e+e/(e+1))/2, x)
}

// Cosh is the hyperbolic cosine.
func Cosh(x float64) float64 {
	a := math.Abs(x)
	if a < 22 {
		e := Exp(a)
		return (e + 1/e) / 2
	}
	return halfExp(a)
}

// halfExp is e^a/2, which fits where e^a alone may not.
func halfExp(a float64) float64 {
	h := Exp(a / 2)
	return float64(h/2) * h
}

// Tanh is the hyperbolic tangent.
func Tanh(x float64) float64 {
	if a := math.Abs(x); a > 22 {
		return math.Copysign(1, x)
	}
	e := Expm1(2 * x)
	return e / (e + 2)
}

// FastTanh is the hyperbolic tangent to about 29 bits.
func FastTanh(x float64) float64 {
	if x > 22 {
		return 1
	}
	e := FastExpm1(2 * x)
	return e / (e + 2)
}

// Sigmoid is 1/(1+e^-x).
func Sigmoid(x float64) float64 { return 1 / (1 + Exp(-x)) }

// FastSigmoid is 1/(1+e^-x) to about 30 bits.
func FastSigmoid(x float64) float64 { return 1 / (1 + FastExp(-x)) }
