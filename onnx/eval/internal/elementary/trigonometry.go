package elementary

import (
	"math"
	"math/big"
	"sync"
)

// π/2 in three parts; the first two have 33 bits, so that their products with an
// integer below 2^20 are exact.
const (
	halfPi1    = 1.5707963267341256
	halfPi2    = 6.077100506303966e-11
	halfPi3    = 2.0222662487959506e-21
	twoOverPi  = 0.6366197723675814
	mediumSize = 1 << 20
)

// reduceAngle writes x, which is finite, as n·π/2 + r + low with |r| at most a
// little over π/4. Only the last two bits of n count.
func reduceAngle(x float64) (r, low float64, n int) {
	switch a := math.Abs(x); {
	case a <= math.Pi/4:
		return x, 0, 0
	case a > mediumSize:
		return reduceLargeAngle(x)
	}
	q := float64(x*twoOverPi) + roundBias - roundBias
	t := x - float64(q*halfPi1)
	w := float64(q * halfPi2)
	u := t - w
	rest := ((t - u) - w) - float64(q*halfPi3)
	r = u + rest
	return r, (u - r) + rest, int(int64(q) & 3)
}

// anglePrecision holds the largest float64 and 100 bits below its units.
const anglePrecision = 1024 + 53 + 100

// halfPi is π/2 to anglePrecision bits, by Machin's formula.
var halfPi = sync.OnceValue(func() *big.Float {
	one := new(big.Int).Lsh(big.NewInt(1), anglePrecision+32)
	sum := new(big.Int).Mul(big.NewInt(16), arccot(5, one))
	sum.Sub(sum, new(big.Int).Mul(big.NewInt(4), arccot(239, one)))
	f := new(big.Float).SetPrec(anglePrecision).SetInt(sum)
	return f.SetMantExp(f, -(anglePrecision+32)-1)
})

// arccot is one·arccot(n), summed as one·(1/n - 1/3n³ + 1/5n⁵ - …).
func arccot(n int64, one *big.Int) *big.Int {
	sum, term := new(big.Int), new(big.Int).Div(one, big.NewInt(n))
	square := big.NewInt(n * n)
	for k := int64(1); term.Sign() != 0; k += 2 {
		t := new(big.Int).Div(term, big.NewInt(k))
		if k%4 == 1 {
			sum.Add(sum, t)
		} else {
			sum.Sub(sum, t)
		}
		term.Div(term, square)
	}
	return sum
}

// reduceLargeAngle is reduceAngle for angles so large that π is needed to more
// digits than floats have. It is slow, and rarely called.
func reduceLargeAngle(x float64) (r, low float64, n int) {
	value := new(big.Float).SetPrec(anglePrecision).SetFloat64(x)
	quotient := new(big.Float).SetPrec(anglePrecision).Quo(value, halfPi())
	quotient.Add(quotient, big.NewFloat(math.Copysign(0.5, x)))
	count, _ := quotient.Int(nil)
	rest := new(big.Float).SetPrec(anglePrecision).SetInt(count)
	rest.Sub(value, rest.Mul(rest, halfPi()))
	r, _ = rest.Float64()
	rest.Sub(rest, big.NewFloat(r))
	low, _ = rest.Float64()
	last := new(big.Int).And(count, big.NewInt(3)) // two's complement, as n is used
	return r, low, int(last.Int64())
}

var sineSeries = [...]float64{
	-1. / 6, 1. / 120, -1. / 5040, 1. / 362880, -1. / 39916800, 1. / 6227020800, -1. / 1307674368000, 1. / 355687428096000,
}

var cosineSeries = [...]float64{
	1. / 24, -1. / 720, 1. / 40320, -1. / 3628800, 1. / 479001600, -1. / 87178291200, 1. / 20922789888000,
}

// sineReduced is sin(r+low) for |r| up to π/4.
func sineReduced(r, low float64) float64 {
	z := float64(r * r)
	cubic := float64(float64(z*r) * polynomial(z, sineSeries[:]))
	return r + (cubic + float64(low*(1-float64(z/2))))
}

// cosineReduced is cos(r+low) for |r| up to π/4.
func cosineReduced(r, low float64) float64 {
	z := float64(r * r)
	h := float64(z / 2)
	w := 1 - h
	return w + (((1 - w) - h) + (float64(float64(z*z)*polynomial(z, cosineSeries[:])) - float64(r*low)))
}

// Sincos is the sine and cosine of x radians; NaN for infinities.
func Sincos(x float64) (sine, cosine float64) {
	if math.IsInf(x, 0) || x != x {
		return math.NaN(), math.NaN()
	}
	if x == 0 {
		return x, 1 // with its sign
	}
	r, low, n := reduceAngle(x)
	s, c := sineReduced(r, low), cosineReduced(r, low)
	switch n {
	case 1:
		return c, -s
	case 2:
		return -s, -c
	case 3:
		return -c, s
	}
	return s, c
}

// SincosTurn is the sine and cosine of k/n of a full turn, for k from 0 up and n from
// 1 to 2^60. Points that mirror each other have equal values, and the quarters of a
// turn exact ones.
func SincosTurn(k, n int) (sine, cosine float64) {
	k %= n
	quarter, rest := 4*k/n, 4*k%n
	mirrored := 2*rest > n // beyond half of the quarter
	if mirrored {
		rest = n - rest
	}
	angle := float64(math.Pi / 2 * (float64(rest) / float64(n)))
	s, c := sineReduced(angle, 0), cosineReduced(angle, 0)
	switch {
	case mirrored:
		s, c = c, s
	case 2*rest == n:
		c = s
	}
	switch quarter {
	case 1:
		return c, -s
	case 2:
		return -s, -c
	case 3:
		return -c, s
	}
	return s, c
}

// Sin is the sine of x radians.
func Sin(x float64) float64 {
	s, _ := Sincos(x)
	return s
}

// Cos is the cosine of x radians.
func Cos(x float64) float64 {
	_, c := Sincos(x)
	return c
}

// Tan is the tangent of x radians.
func Tan(x float64) float64 {
	s, c := Sincos(x)
	return s / c
}

// arctangents are atan(i/8), each with what its rounding lost.
var arctangents = [...][2]float64{
	{0, 0},
	{0.12435499454676144, -3.1253241424539383e-18},
	{0.24497866312686414, 1.0698755618734451e-17},
	{0.35877067027057225, -2.4623815582638635e-17},
	{0.4636476090008061, 2.2698777452961687e-17},
	{0.5585993153435624, -5.4556305485916264e-18},
	{0.6435011087932844, 1.5834785051444286e-17},
	{0.7188299996216245, -2.1478388444456983e-17},
	{0.7853981633974483, 3.061616997868383e-17},
}

var arctangentSeries = [...]float64{-1. / 3, 1. / 5, -1. / 7, 1. / 9, -1. / 11, 1. / 13, -1. / 15}

// atanUnit is atan(x) for x from 0 to 1: that of the nearest eighth, and of what
// lies between.
func atanUnit(x float64) (high, low float64) {
	i := int(float64(8*x) + 0.5)
	c := float64(float64(i) / 8)
	t := (x - c) / (1 + float64(x*c))
	z := float64(t * t)
	return arctangents[i][0], arctangents[i][1] + (t + float64(float64(t*z)*polynomial(z, arctangentSeries[:])))
}

// Atan is the inverse tangent.
func Atan(x float64) float64 {
	a := math.Abs(x)
	switch {
	case x != x:
		return x
	case a <= 1:
		high, low := atanUnit(a)
		return math.Copysign(high+low, x)
	}
	high, low := atanUnit(1 / a)
	return math.Copysign((math.Pi/2-high)+(6.123233995736766e-17-low), x)
}

// Asin is the inverse sine; NaN outside -1 to 1.
func Asin(x float64) float64 { return Atan(x / math.Sqrt((1-x)*(1+x))) }

// Acos is the inverse cosine; NaN outside -1 to 1.
func Acos(x float64) float64 { return 2 * Atan(math.Sqrt((1-x)/(1+x))) }
