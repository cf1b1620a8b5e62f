package elementary

import "math"

// log1pReduced is log(1+f) for f between √½-1 and √2-1. With s = f/(2+f) it is
// 2·(s + s³/3 + s⁵/5 + …), and 2s = f - f²/2 + s·f²/2.
func log1pReduced(f float64) float64 {
	s := f / (2 + f)
	z := float64(s * s)
	series := polynomial(z, logSeries[:])
	h := float64(0.5 * f * f)
	return f - (h - float64(s*(h+float64(z*series))))
}

// logSeries are 2/3, 2/5, 2/7, …
var logSeries = [...]float64{
	2. / 3, 2. / 5, 2. / 7, 2. / 9, 2. / 11, 2. / 13, 2. / 15, 2. / 17, 2. / 19, 2. / 21, 2. / 23,
}

// polynomial evaluates c[0] + c[1]·x + c[2]·x² + ….
func polynomial(x float64, c []float64) float64 {
	sum := c[len(c)-1]
	for i := len(c) - 2; i >= 0; i-- {
		sum = float64(sum*x) + c[i]
	}
	return sum
}

// split writes x, which is positive and finite, as 2^k·m with m from √½ to √2.
func split(x float64) (m float64, k int) {
	m, k = math.Frexp(x)
	if m < math.Sqrt2/2 {
		return 2 * m, k - 1
	}
	return m, k
}

// Log is the natural logarithm; NaN for negative numbers, -Inf for 0.
func Log(x float64) float64 {
	if !(x > 0) || x > math.MaxFloat64 {
		return logLimit(x)
	}
	m, k := split(x)
	n := float64(k)
	return float64(n*ln2High) + (log1pReduced(m-1) + float64(n*ln2Low))
}

func logLimit(x float64) float64 {
	switch {
	case x != x || x > 0:
		return x
	case x == 0:
		return math.Inf(-1)
	}
	return math.NaN()
}

// Log1p is log(1+x), accurate near 0 as well.
func Log1p(x float64) float64 {
	if x > math.Sqrt2/2-1 && x < math.Sqrt2-1 {
		return log1pReduced(x)
	}
	u := 1 + x
	if !(u > 0) || u > 1<<53 {
		return Log(u)
	}
	// What the addition lost moves the logarithm by its share of u.
	lost := x - (u - 1)
	if x >= 1 {
		lost = 1 - (u - x)
	}
	m, k := split(u)
	n := float64(k)
	return float64(n*ln2High) + (log1pReduced(m-1) + (float64(n*ln2Low) + lost/u))
}

// Asinh is the inverse hyperbolic sine.
func Asinh(x float64) float64 {
	a := math.Abs(x)
	y := a
	switch {
	case a > 1<<28:
		y = Log(a) + math.Ln2
	case a > 0:
		z := float64(a * a)
		y = Log1p(a + z/(1+math.Sqrt(1+z)))
	}
	return math.Copysign(y, x)
}

// Acosh is the inverse hyperbolic cosine; NaN below 1.
func Acosh(x float64) float64 {
	switch {
	case !(x >= 1):
		return math.NaN()
	case x > 1<<28:
		return Log(x) + math.Ln2
	}
	t := x - 1
	return Log1p(t + math.Sqrt(2*t+float64(t*t)))
}

// Atanh is the inverse hyperbolic tangent; NaN outside -1 to 1.
func Atanh(x float64) float64 {
	a := math.Abs(x)
	return math.Copysign(0.5*Log1p(2*a/(1-a)), x)
}
