package infer

import (
	"math"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// Arithmetic on elements. Integers are expressions that wrap like their type;
// floats are numbers rounded once an operation, or exact quotients of an
// expression where those are what the float arithmetic gives.

// combineWith computes one element from two: integers by whole, floats by real,
// and quotients n/d and m/e by exact.
func combineWith(t tensor.Type, v, w Value, whole func(a, b Dim) Dim, real func(x, y float64) float64, exact func(n Dim, d int64, m Dim, e int64) Value) Value {
	switch {
	case v.IsUnknown() || w.IsUnknown():
		return Value{}
	case t.IsInteger():
		return wrap(t, whole(v.Dim(), w.Dim()))
	}
	x, xKnown := v.Float()
	y, yKnown := w.Float()
	if xKnown && yKnown {
		return roundTo(t, real(x, y))
	}
	n, d, ok := v.fraction()
	m, e, okToo := w.fraction()
	if !ok || !okToo || !holdsSizes(t) || !powerOfTwo(d) || !powerOfTwo(e) {
		return Value{}
	}
	return asFloat(t, exact(n, d, m, e))
}

// holdsSizes says whether a float type holds every size that is followed through it.
func holdsSizes(t tensor.Type) bool { return t == tensor.Float32 || t == tensor.Float64 }

// powerOfTwo says whether quotients by d are exact in binary. Others are rounded
// and may only be rounded to integers, not computed with.
func powerOfTwo(d int64) bool { return d > 0 && d&(d-1) == 0 }

// asFloat makes a quotient that has become a number a float.
func asFloat(t tensor.Type, v Value) Value {
	if n, ok := v.numerator.Known(); ok && v.denominator != 0 {
		return roundTo(t, float64(n)/float64(v.denominator))
	}
	return v
}

func add(t tensor.Type, v, w Value) Value {
	return combineWith(t, v, w, Dim.Add, func(x, y float64) float64 { return x + y },
		func(n Dim, d int64, m Dim, e int64) Value { return ratio(n.MulConst(e).Add(m.MulConst(d)), d*e) })
}

func subtract(t tensor.Type, v, w Value) Value {
	return combineWith(t, v, w, Dim.Sub, func(x, y float64) float64 { return x - y },
		func(n Dim, d int64, m Dim, e int64) Value { return ratio(n.MulConst(e).Sub(m.MulConst(d)), d*e) })
}

func multiply(t tensor.Type, v, w Value) Value {
	return combineWith(t, v, w, Dim.Mul, func(x, y float64) float64 { return x * y },
		func(n Dim, d int64, m Dim, e int64) Value { return ratio(n.Mul(m), d*e) })
}

// divide truncates integers. A float division by zero is left open.
func divide(t tensor.Type, v, w Value) Value {
	return combineWith(t, v, w, Dim.Div, func(x, y float64) float64 { return x / y }, divideRatios)
}

func divideRatios(n Dim, d int64, m Dim, e int64) Value {
	if k, ok := m.Known(); ok {
		denominator, fits := mulInt(d, k)
		if !fits || k == 0 {
			return Value{}
		}
		return ratio(n.MulConst(e), denominator)
	}
	a, b := cancel(n.MulConst(e), m.MulConst(d))
	if k, ok := b.Known(); ok {
		return ratio(a, k)
	}
	return Value{}
}

// power computes numbers alone.
func power(t tensor.Type, v, w Value) Value {
	x, xKnown := v.Float()
	if y, ok := w.Float(); ok && xKnown && y == 2 {
		return roundTo(t, x*x)
	}
	if n, ok := w.Int(); ok && t.IsInteger() && n >= 0 && n <= maxDegree {
		p := Const(1)
		for range n {
			p = p.Mul(v.Dim())
		}
		return wrap(t, p)
	}
	return Value{}
}

// mod has the sign of the divisor; integers only.
func mod(t tensor.Type, v, w Value) Value {
	if !t.IsInteger() || v.IsUnknown() || w.IsUnknown() {
		return Value{}
	}
	return wrap(t, v.Dim().Mod(w.Dim()))
}

// remainder has the sign of the dividend.
func remainder(t tensor.Type, v, w Value) Value {
	return combineWith(t, v, w, Dim.Remainder, math.Mod, func(n Dim, d int64, m Dim, e int64) Value {
		if d != 1 || e != 1 {
			return Value{}
		}
		return ratio(n.Remainder(m), 1)
	})
}

func maximum(t tensor.Type, v, w Value) Value { return extremum(t, v, w, Dim.Max, math.Max) }
func minimum(t tensor.Type, v, w Value) Value { return extremum(t, v, w, Dim.Min, math.Min) }

func extremum(t tensor.Type, v, w Value, whole func(a, b Dim) Dim, real func(x, y float64) float64) Value {
	return combineWith(t, v, w, whole, real, func(n Dim, d int64, m Dim, e int64) Value {
		return ratio(whole(n.MulConst(e), m.MulConst(d)), d*e)
	})
}

// alone computes one element from another: numbers by real, expressions n/d by exact.
func alone(t tensor.Type, v Value, real func(x float64) float64, exact func(n Dim, d int64) Value) Value {
	if v.IsUnknown() {
		return v
	}
	if x, ok := v.Float(); ok {
		return roundTo(t, real(x))
	}
	switch {
	case t.IsInteger():
		r := exact(v.Dim(), 1)
		if r.IsUnknown() {
			return r
		}
		return wrap(t, r.Dim())
	case !holdsSizes(t):
		return Value{}
	}
	return asFloat(t, exact(v.numerator, v.denominator))
}

func negate(t tensor.Type, v Value) Value {
	return alone(t, v, func(x float64) float64 { return -x }, func(n Dim, d int64) Value { return ratio(n.MulConst(-1), d) })
}

func absolute(t tensor.Type, v Value) Value {
	return alone(t, v, math.Abs, func(n Dim, d int64) Value {
		switch {
		case n.NonNegative():
			return ratio(n, d)
		case n.MulConst(-1).NonNegative():
			return ratio(n.MulConst(-1), d)
		}
		return Value{}
	})
}

func sign(t tensor.Type, v Value) Value {
	return alone(t, v, signOf, func(n Dim, _ int64) Value {
		order, ok := n.Compare(Const(0))
		if !ok {
			return Value{}
		}
		return Integer(Const(int64(order)))
	})
}

func signOf(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x
}

func floor(t tensor.Type, v Value) Value {
	return alone(t, v, math.Floor, func(n Dim, d int64) Value { return Integer(n.FloorDiv(Const(d))) })
}

func ceil(t tensor.Type, v Value) Value {
	return alone(t, v, math.Ceil, func(n Dim, d int64) Value { return Integer(n.CeilDiv(Const(d))) })
}

// round is to the nearest, halves to even: of a quotient by an odd number there are no halves.
func round(t tensor.Type, v Value) Value {
	return alone(t, v, math.RoundToEven, func(n Dim, d int64) Value {
		if d%2 == 0 {
			return Value{}
		}
		return Integer(n.MulConst(2).AddConst(d).FloorDiv(Const(2 * d)))
	})
}

func squareRoot(t tensor.Type, v Value) Value {
	return alone(t, v, math.Sqrt, func(Dim, int64) Value { return Value{} })
}

func reciprocal(t tensor.Type, v Value) Value { return divide(t, Float(1), v) }

func rectify(t tensor.Type, v Value) Value {
	return alone(t, v, func(x float64) float64 { return max(x, 0) }, func(n Dim, d int64) Value {
		return ratio(n.Max(Const(0)), d)
	})
}

// convert casts an element. What the specification leaves open is not known, and
// neither is an expression in a type that may be too narrow for it.
func convert(from, to tensor.Type, v Value) Value {
	x, real := v.Float()
	switch {
	case v.IsUnknown():
		return v
	case to == tensor.Bool:
		return toBool(v)
	case to.IsInteger() && real:
		return truncate(to, x)
	case to.IsInteger():
		return wrap(to, v.numerator.Div(Const(v.denominator)))
	case real:
		return roundTo(to, x)
	}
	if n, ok := v.numerator.Known(); ok {
		const exactInFloat64 = 1 << 53
		if n > exactInFloat64 || n < -exactInFloat64 {
			return Value{}
		}
		return roundTo(to, float64(n))
	}
	if from == tensor.Bool || !holdsSizes(to) {
		return Value{}
	}
	return v
}

func toBool(v Value) Value {
	if x, ok := v.Float(); ok {
		return boolean(x != 0)
	}
	order, ok := v.numerator.Compare(Const(0))
	if !ok {
		return Value{}
	}
	return boolean(order != 0)
}

// truncate casts a float to an integer type; out of its range the result is open.
func truncate(t tensor.Type, x float64) Value {
	const limit = 1 << 62
	if !(math.Abs(x) < limit) {
		return Value{}
	}
	n := int64(x)
	v := wrap(t, Const(n))
	if m, ok := v.Int(); !ok || m != n {
		return Value{}
	}
	return v
}
