package eval

import (
	"math"

	"github.com/npuctl/npuctl/onnx/eval/internal/elementary"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// power is Pow; the result has the base's type. Integers with whole exponents are
// multiplied out and wrap; a negative exponent of an integer is undefined and
// gives the quotient truncated towards zero, 0 for a base of 0. Everything else is
// computed in float64.
func power(c *Call) error {
	a, b, err := c.pair()
	if err != nil {
		return err
	}
	switch {
	case a.Type().IsFloat() && a.Type() == b.Type():
		return c.setOutput(computeFloats(c, a, b, power64))
	case a.Type().IsInteger() && (b.Type().IsInteger() || wholeNumbers(b)):
		return c.setOutput(integerPower(c, a, b))
	}
	x, err := c.cast(a, tensor.Float64)
	if err != nil {
		return err
	}
	y, err := c.cast(b, tensor.Float64)
	if err != nil {
		return err
	}
	z, err := computeFloats(c, x, y, power64)
	if err != nil {
		return err
	}
	return c.setOutput(c.cast(z, a.Type()))
}

// wholeNumbers says whether all elements are whole and fit int64.
func wholeNumbers(d *tensor.Dense) bool {
	values, ok := d.Float64s()
	for _, v := range values {
		ok = ok && v == math.Trunc(v) && math.Abs(v) < 1<<63
	}
	return ok
}

// integerPower computes in int64: its low bits are those of any narrower type.
func integerPower(c *Call, a, b *tensor.Dense) (*tensor.Dense, error) {
	x, err := c.cast(a, tensor.Int64)
	if err != nil {
		return nil, err
	}
	if _, ok := b.Int64s(); !ok && b.Type() == tensor.Uint64 {
		return nil, c.Unsupported("exponents beyond int64")
	}
	y, err := c.cast(b, tensor.Int64)
	if err != nil {
		return nil, err
	}
	for _, v := range tensor.Data[int64](y) {
		if v >= 0 {
			continue
		}
		if err := c.Undefined("an integer to a negative power"); err != nil {
			return nil, err
		}
		break
	}
	z, err := combined(c, x, y, func(out, a, b []int64) {
		for i := range out {
			out[i] = power64Int(a[i], b[i])
		}
	})
	if err != nil {
		return nil, err
	}
	return c.cast(z, a.Type())
}

func power64Int(x, y int64) int64 {
	if y < 0 {
		switch {
		case x == 1 || x == -1 && y%2 == 0:
			return 1
		case x == -1:
			return -1
		}
		return 0
	}
	result := int64(1)
	for ; y > 0; y >>= 1 {
		if y&1 == 1 {
			result *= x
		}
		x *= x
	}
	return result
}

// power64 is x^y with the same bits on every host, for which package math does not
// vouch. The exponent's whole part is multiplied out, with the powers of two kept
// apart, so that only its fraction goes through a logarithm.
func power64(x, y float64) float64 {
	const manyBits = 1 << 62
	size := math.Abs(y)
	switch {
	case y == 2:
		return x * x
	case y == 1:
		return x
	case x == 0 || x != x || y != y || y == 0 || math.IsInf(x, 0) || size > manyBits:
		return math.Pow(x, y) // exact: a special case, 0 or infinity
	case y == 0.5 && x > 0:
		return math.Sqrt(x)
	case x < 0 && size != math.Trunc(size):
		return math.NaN()
	}
	whole, fraction := math.Modf(size)
	if fraction > 0.5 {
		whole, fraction = whole+1, fraction-1
	}
	result, exponent := 1.0, int64(0)
	if fraction != 0 {
		result = elementary.Exp(fraction * elementary.Log(x))
	}
	base, e := math.Frexp(x)
	baseExponent := int64(e)
	for n := int64(whole); n > 0; n >>= 1 {
		if n&1 == 1 {
			result *= base
			exponent += baseExponent
		}
		base, e = math.Frexp(base * base)
		baseExponent = 2*baseExponent + int64(e)
		if baseExponent > 1<<40 || baseExponent < -1<<40 {
			baseExponent = max(min(baseExponent, 1<<40), -1<<40) // far out: infinity or 0
		}
		if r, e := math.Frexp(result); r != 0 {
			result, exponent = r, exponent+int64(e)
		}
	}
	if y < 0 {
		result, exponent = 1/result, -exponent
	}
	return math.Ldexp(result, int(max(min(exponent, 1<<20), -1<<20)))
}
