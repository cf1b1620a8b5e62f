package infer

import "github.com/npuctl/npuctl/onnx/tensor"

// relation says whether a comparison holds when its operands are ordered so:
// order is -1, 0 or 1.
type relation func(order int) bool

func equal(order int) bool          { return order == 0 }
func less(order int) bool           { return order < 0 }
func greater(order int) bool        { return order > 0 }
func lessOrEqual(order int) bool    { return order <= 0 }
func greaterOrEqual(order int) bool { return order >= 0 }

// comparison decides what it can: numbers always, expressions when their
// difference has one sign. What is not decided is an unknown boolean.
func comparison(holds relation) binaryValue {
	return func(t tensor.Type, v, w Value) Value {
		x, xKnown := v.Float()
		y, yKnown := w.Float()
		switch {
		case v.IsUnknown() || w.IsUnknown():
			return Value{}
		case xKnown && yKnown:
			return compareReals(x, y, holds)
		}
		n, d, ok := v.fraction()
		m, e, okToo := w.fraction()
		if !ok || !okToo || t.IsFloat() && (!powerOfTwo(d) || !powerOfTwo(e)) {
			return Value{}
		}
		return compareDims(n.MulConst(e), m.MulConst(d), holds)
	}
}

func compareReals(x, y float64, holds relation) Value {
	switch {
	case x < y:
		return boolean(holds(-1))
	case x > y:
		return boolean(holds(1))
	case x == y:
		return boolean(holds(0))
	}
	return boolean(false) // a NaN is in no relation
}

func compareDims(a, b Dim, holds relation) Value {
	if order, ok := a.Compare(b); ok {
		return boolean(holds(order))
	}
	difference := a.Sub(b)
	switch {
	case difference.NonNegative() && holds(0) == holds(1):
		return boolean(holds(0))
	case difference.MulConst(-1).NonNegative() && holds(0) == holds(-1):
		return boolean(holds(0))
	}
	return Value{}
}

func not(_ tensor.Type, v Value) Value {
	if v.IsUnknown() {
		return v
	}
	return Integer(Const(1).Sub(v.Dim()))
}

func and(_ tensor.Type, v, w Value) Value {
	a, aKnown := v.Int()
	b, bKnown := w.Int()
	switch {
	case aKnown && a == 0 || bKnown && b == 0:
		return boolean(false)
	case aKnown:
		return w
	case bKnown || v.Equal(w):
		return v
	}
	return Value{}
}

func or(t tensor.Type, v, w Value) Value {
	return not(t, and(t, not(t, v), not(t, w)))
}

func xor(_ tensor.Type, v, w Value) Value {
	a, aKnown := v.Int()
	b, bKnown := w.Int()
	if !aKnown || !bKnown {
		return Value{}
	}
	return boolean(a != b)
}
