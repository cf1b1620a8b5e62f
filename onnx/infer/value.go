package infer

import (
	"math"
	"strconv"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// Value is what is known of one element of a tensor: an integer expression, a
// quotient of one and a number, or a float. The zero Value is unknown.
//
// Booleans are 0 and 1. Elements of float tensors are numbers as their type can
// hold them, or, where they came from sizes, exact quotients: height/2, which
// Floor and Cast turn back into integers.
type Value struct {
	numerator   Dim
	denominator int64 // 0 when nothing is known, isFloat when numerator holds the bits of a float
}

// isFloat stands for the denominator of an element that is a float.
const isFloat = -1

// Integer makes the Value of an integer or boolean element.
func Integer(d Dim) Value {
	if d.IsUnknown() {
		return Value{}
	}
	return Value{d, 1}
}

// Float makes the Value of a float element.
func Float(x float64) Value { return Value{Const(int64(math.Float64bits(x))), isFloat} }

// IsUnknown says whether nothing at all is known of the element.
func (v Value) IsUnknown() bool { return v.denominator == 0 }

// Dim gives the element as an expression; it is unknown when the element is none.
func (v Value) Dim() Dim {
	if v.denominator != 1 {
		return Unknown()
	}
	return v.numerator
}

// Int gives the number that the element of an integer or boolean tensor is.
func (v Value) Int() (int64, bool) {
	if v.denominator != 1 {
		return 0, false
	}
	return v.numerator.Known()
}

// Float gives the number that the element of a float tensor is.
func (v Value) Float() (float64, bool) {
	if v.denominator != isFloat {
		return 0, false
	}
	return math.Float64frombits(uint64(v.numerator.constant)), true
}

// Equal says whether two elements are known to be the same, floats bit by bit.
func (v Value) Equal(w Value) bool {
	return v.denominator == w.denominator && v.denominator != 0 && v.numerator.Equal(w.numerator)
}

// String gives the element as people write it.
func (v Value) String() string {
	if x, ok := v.Float(); ok {
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	switch {
	case v.denominator == 0:
		return "?"
	case v.denominator == 1:
		return v.numerator.String()
	}
	return group(v.numerator.String()) + "/" + Const(v.denominator).String()
}

// maxRatio bounds the numbers that a symbolic quotient in a float tensor may be
// made of: with sizes below 2^24, products and quotients by these stay exact, or
// round to something with the same floor.
const maxRatio = 1 << 12

// ratio makes numerator/denominator in lowest terms.
func ratio(numerator Dim, denominator int64) Value {
	if numerator.IsUnknown() || denominator == 0 {
		return Value{}
	}
	if denominator < 0 {
		numerator, denominator = numerator.MulConst(-1), -denominator
	}
	if g := gcd(numerator.content(), denominator); g > 1 {
		numerator, denominator = numerator.shrink(g), denominator/g
	}
	if denominator > maxRatio || numerator.IsUnknown() {
		return Value{}
	}
	return Value{numerator: numerator, denominator: denominator}
}

// fraction gives a float element as a quotient, when it is a simple one.
func (v Value) fraction() (Dim, int64, bool) {
	x, ok := v.Float()
	if !ok {
		return v.numerator, v.denominator, v.denominator != 0
	}
	for d := int64(1); d <= maxRatio; d *= 2 {
		if n := x * float64(d); n == math.Trunc(n) {
			return Const(int64(n)), d, math.Abs(n) <= maxRatio
		}
	}
	return Dim{}, 0, false
}

// roundTo gives x as an element of a float type holds it.
func roundTo(t tensor.Type, x float64) Value {
	switch t {
	case tensor.Float64:
		return Float(x)
	case tensor.Float32:
		return Float(float64(float32(x)))
	case tensor.Float16:
		return Float(float64(tensor.F16FromFloat64(x).Float32()))
	case tensor.BFloat16:
		return Float(float64(tensor.BF16FromFloat64(x).Float32()))
	}
	return Value{}
}

// wrap gives an integer element as its type holds it. Expressions are taken to
// fit 32 bits; what they are in fewer is not known.
func wrap(t tensor.Type, d Dim) Value {
	n, ok := d.Known()
	switch t {
	case tensor.Int64:
		return Integer(d)
	case tensor.Int32:
		if ok {
			return Integer(Const(int64(int32(n))))
		}
		return Integer(d)
	case tensor.Uint32, tensor.Uint64:
		if ok && n < 0 {
			return Value{}
		}
		if ok && t == tensor.Uint32 {
			return Integer(Const(int64(uint32(n))))
		}
		if !ok && !d.NonNegative() {
			return Value{}
		}
		return Integer(d)
	}
	if !ok {
		return Value{}
	}
	switch t {
	case tensor.Int16:
		return Integer(Const(int64(int16(n))))
	case tensor.Int8:
		return Integer(Const(int64(int8(n))))
	case tensor.Uint16:
		return Integer(Const(int64(uint16(n))))
	case tensor.Uint8:
		return Integer(Const(int64(uint8(n))))
	}
	return Value{}
}

// boolean makes the Value of a decided bool element.
func boolean(b bool) Value {
	if b {
		return Integer(Const(1))
	}
	return Integer(Const(0))
}

// valuesOf gives the elements of a small stored tensor; nil for types whose
// elements are not followed.
func valuesOf(d *tensor.Dense) []Value {
	if !tracked(d.Type(), int64(d.Len())) {
		return nil
	}
	out := make([]Value, d.Len())
	if d.Type() == tensor.Bool {
		for i, b := range tensor.Data[bool](d) {
			out[i] = boolean(b)
		}
		return out
	}
	if ints, ok := d.Int64s(); ok {
		for i, n := range ints {
			out[i] = Integer(Const(n))
		}
		return out
	}
	floats, ok := d.Float64s()
	if !ok || d.Type().IsInteger() {
		return nil // integers beyond int64 are not followed
	}
	for i, x := range floats {
		out[i] = Float(x)
	}
	return out
}

// Tensors with more elements than this are no shape arithmetic.
const (
	maxValues = 1024
	maxFloats = 64
)

// tracked says whether the elements of such a tensor are followed.
func tracked(t tensor.Type, elements int64) bool {
	switch t {
	case tensor.Bool, tensor.Int64, tensor.Int32, tensor.Int16, tensor.Int8,
		tensor.Uint64, tensor.Uint32, tensor.Uint16, tensor.Uint8:
		return elements <= maxValues
	case tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16:
		return elements <= maxFloats
	}
	return false
}
