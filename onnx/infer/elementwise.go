package infer

import (
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// elementwiseOperators work on each element alone: outputs have the dims of the
// input, or those that the inputs broadcast to.
var elementwiseOperators = []operator{
	{name: "Identity", since: 1, rule: identity},
	{name: "Cast", since: 1, rule: cast},
	{name: "CastLike", since: 15, rule: castLike},
	{name: "BitCast", since: 26, rule: bitCast},
	{name: "Where", since: 9, rule: where},

	{name: "Abs", since: 1, rule: unary(absolute)},
	{name: "Neg", since: 1, rule: unary(negate)},
	{name: "Sign", since: 9, rule: unary(sign)},
	{name: "Floor", since: 1, rule: unary(floor)},
	{name: "Ceil", since: 1, rule: unary(ceil)},
	{name: "Round", since: 11, rule: unary(round)},
	{name: "Sqrt", since: 1, rule: unary(squareRoot)},
	{name: "Reciprocal", since: 1, rule: unary(reciprocal)},
	{name: "Relu", since: 1, rule: unary(rectify)},
	{name: "Not", since: 1, rule: unary(not)},
	{name: "Clip", since: 1, rule: clip},

	{name: "Add", since: 1, rule: binaryAttribute(add)},
	{name: "Add", since: 7, rule: binary(add)},
	{name: "Sub", since: 1, rule: binaryAttribute(subtract)},
	{name: "Sub", since: 7, rule: binary(subtract)},
	{name: "Mul", since: 1, rule: binaryAttribute(multiply)},
	{name: "Mul", since: 7, rule: binary(multiply)},
	{name: "Div", since: 1, rule: binaryAttribute(divide)},
	{name: "Div", since: 7, rule: binary(divide)},
	{name: "Pow", since: 1, rule: binaryAttribute(power)},
	{name: "Pow", since: 7, rule: binary(power)},
	{name: "Mod", since: 10, rule: modulo},
	{name: "And", since: 1, rule: binaryAttribute(and)},
	{name: "And", since: 7, rule: binary(and)},
	{name: "Or", since: 1, rule: binaryAttribute(or)},
	{name: "Or", since: 7, rule: binary(or)},
	{name: "Xor", since: 1, rule: binaryAttribute(xor)},
	{name: "Xor", since: 7, rule: binary(xor)},
	{name: "Equal", since: 1, rule: binaryAttribute(comparison(equal))},
	{name: "Equal", since: 7, rule: binary(comparison(equal))},
	{name: "Less", since: 1, rule: binaryAttribute(comparison(less))},
	{name: "Less", since: 7, rule: binary(comparison(less))},
	{name: "Greater", since: 1, rule: binaryAttribute(comparison(greater))},
	{name: "Greater", since: 7, rule: binary(comparison(greater))},
	{name: "LessOrEqual", since: 12, rule: binary(comparison(lessOrEqual))},
	{name: "GreaterOrEqual", since: 12, rule: binary(comparison(greaterOrEqual))},
	{name: "BitShift", since: 11, rule: broadcastAll},
	{name: "BitwiseAnd", since: 18, rule: broadcastAll},
	{name: "BitwiseOr", since: 18, rule: broadcastAll},
	{name: "BitwiseXor", since: 18, rule: broadcastAll},
	{name: "StringConcat", since: 20, rule: broadcastAll},

	{name: "Max", since: 1, rule: binary(maximum)},
	{name: "Min", since: 1, rule: binary(minimum)},
	{name: "Sum", since: 1, rule: binary(add)},
	{name: "Mean", since: 1, rule: broadcastAll},
	{name: "SwiGLU", since: 28, rule: sameAsFirst},
}

// sameShapeOperators are those whose first output looks like the first input, and
// of whose elements nothing is said.
var sameShapeOperators = []string{
	"Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Celu", "Cos", "Cosh",
	"CumProd", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish", "Hardmax",
	"InstanceNormalization", "IsInf", "IsNaN", "LRN", "LeakyRelu", "Log", "LogSoftmax", "LpNormalization",
	"MeanVarianceNormalization", "Mish", "PRelu", "RegexFullMatch", "ReverseSequence", "Selu", "Shrink",
	"Sigmoid", "Sin", "Sinh", "Softmax", "Softplus", "Softsign", "Swish", "Tan", "Tanh", "ThresholdedRelu",
}

func sameShapeRows() []operator {
	rows := make([]operator, len(sameShapeOperators))
	for i, name := range sameShapeOperators {
		rows[i] = operator{name: name, since: 1, rule: sameAsFirst}
	}
	return rows
}

func sameAsFirst(c *call) { c.sameDims(0, 0) }

// identity passes everything on, sequences and optionals too.
func identity(c *call) {
	f := *c.in(0)
	c.set(0, f)
}

// unaryValue computes one element of a result of type t.
type unaryValue func(t tensor.Type, v Value) Value

// binaryValue computes one element of a result from elements of type t.
type binaryValue func(t tensor.Type, v, w Value) Value

func unary(f unaryValue) rule {
	return func(c *call) {
		c.sameDims(0, 0)
		if c.follow(0) {
			c.setValues(0, mapValues(c.in(0).Elem, c.values(0), f))
		}
	}
}

func mapValues(t tensor.Type, values []Value, f unaryValue) []Value {
	if values == nil {
		return nil
	}
	out := make([]Value, len(values))
	for k, v := range values {
		out[k] = f(t, v)
	}
	return out
}

// cast keeps elements that the new type can hold.
func cast(c *call) {
	c.sameDims(0, 0)
	to := c.castTarget()
	c.setElem(0, to)
	c.castValues(0, to)
}

// castTarget reads the type to cast to: a name in version 1, a number since.
func (c *call) castTarget() tensor.Type {
	a := c.attribute("to")
	switch {
	case a == nil:
		return tensor.Undefined
	case a.Kind() == onnx.AttributeString:
		t, _ := tensor.ParseType(a.String())
		return t
	}
	return knownType(a.Int())
}

// knownType reads a number of TensorProto.DataType; Undefined when it is none.
func knownType(n int64) tensor.Type {
	if t := tensor.Type(n); int64(t) == n && t.Valid() {
		return t
	}
	return tensor.Undefined
}

func (c *call) castValues(i int, to tensor.Type) {
	if !c.follow(i) || to == tensor.Undefined {
		return
	}
	from := c.in(i).Elem
	c.setValues(0, mapValues(to, c.values(i), func(to tensor.Type, v Value) Value { return convert(from, to, v) }))
}

func castLike(c *call) {
	c.sameDims(0, 0)
	to := c.in(1).Elem
	c.setElem(0, to)
	c.castValues(0, to)
}

// bitCast keeps the dims where the widths agree, which the operator asks for.
func bitCast(c *call) {
	c.sameDims(0, 0)
	c.setElem(0, c.castTarget())
}

// binaryAttribute is the form before opset 7: the second input is fitted to the
// first, as attributes say.
func binaryAttribute(f binaryValue) rule {
	return func(c *call) {
		c.sameDims(0, 0)
		first, second := c.in(0), c.in(1)
		if !c.follow(0, 1) {
			return
		}
		v, w := first.Values(), second.Values()
		if len(w) != 1 && len(w) != len(v) {
			return
		}
		out := make([]Value, len(v))
		for k := range v {
			out[k] = f(first.Elem, v[k], w[k%len(w)])
		}
		c.setValues(0, out)
	}
}

// binary broadcasts any number of inputs and combines their elements from left to right.
func binary(f binaryValue) rule {
	return func(c *call) {
		broadcastAll(c)
		if c.followAll() {
			c.setValues(0, c.combine(f))
		}
	}
}

// followAll is follow for all inputs, of which there must be one.
func (c *call) followAll() bool {
	for i := range c.inputs {
		if !c.in(i).HasValues() {
			return false
		}
	}
	for i := range c.inputs {
		if !c.follow(i) {
			return false
		}
	}
	return len(c.inputs) > 0
}

// combine folds the inputs' elements over the dims of output 0.
func (c *call) combine(f binaryValue) []Value {
	count, ok := c.outputs[0].Count().Known()
	if !ok || count > maxValues {
		return nil
	}
	out := c.spread(0, int(count))
	for i := 1; i < len(c.inputs) && out != nil; i++ {
		next := c.spread(i, int(count))
		if next == nil {
			return nil
		}
		for k := range out {
			out[k] = f(c.in(0).Elem, out[k], next[k])
		}
	}
	return out
}

// spread gives the elements of input i broadcast to the dims of output 0, in a new slice.
func (c *call) spread(i, count int) []Value {
	values := c.values(i)
	if values == nil {
		return nil
	}
	return spreadValues(values, c.in(i).Dims, c.outputs[0].Dims, count)
}

// spreadValues repeats elements of dims to fill the larger dims of to, all numbers.
func spreadValues(values []Value, dims, to []Dim, count int) []Value {
	out := make([]Value, count)
	if len(values) == count {
		copy(out, values)
		return out
	}
	for k := range out {
		at, step, rest := 0, 1, k
		for a := 1; a <= len(to); a++ {
			n := int(to[len(to)-a].constant)
			if a <= len(dims) {
				if m := int(dims[len(dims)-a].constant); m != 1 {
					at += rest % n * step
					step *= m
				}
			}
			rest /= n
		}
		if at >= len(values) {
			return nil
		}
		out[k] = values[at]
	}
	return out
}

// broadcastAll gives output 0 the dims that all inputs broadcast to.
func broadcastAll(c *call) {
	dims, ok := c.dims(0)
	if !ok {
		return
	}
	for i := 1; i < len(c.inputs); i++ {
		next, ok := c.dims(i)
		if !ok {
			return
		}
		dims = c.broadcast(dims, next, i)
	}
	c.setDims(0, dims...)
}

// broadcast gives the dims that d and e, those of input i, broadcast to.
func (c *call) broadcast(d, e []Dim, i int) []Dim {
	if len(d) < len(e) {
		d, e = e, d
	}
	if sameDims(d[len(d)-len(e):], e) {
		return d
	}
	out := append([]Dim(nil), d...)
	lead := len(d) - len(e)
	for k, b := range e {
		joined, ok := broadcastDim(out[lead+k], b)
		if !ok {
			c.conflictf("%s and %s do not broadcast", c.describe(0), c.describe(i))
		}
		out[lead+k] = joined
	}
	return out
}

func sameDims(d, e []Dim) bool {
	for k := range d {
		if !d[k].Equal(e[k]) {
			return false
		}
	}
	return true
}

// broadcastDim gives the size that two sizes broadcast to: equal, or one of them
// 1. ok is false when no values of their symbols make that so.
func broadcastDim(a, b Dim) (joined Dim, ok bool) {
	switch {
	case a.Equal(b) || b.Is(1):
		return a, true
	case a.Is(1):
		return b, true
	case a.sameSize(b):
		return a.capped(), true
	case a.Differ(b) && a.Differ(Const(1)) && b.Differ(Const(1)):
		return Unknown(), false
	}
	// A number other than 1 decides: the other is the same, or 1.
	if _, known := a.Known(); known {
		return a, true
	}
	if _, known := b.Known(); known {
		return b, true
	}
	if isCapped(a, b) {
		return a, true
	}
	if isCapped(b, a) {
		return b, true
	}
	if a.isNonzeroOf(b) {
		return b, true
	}
	if b.isNonzeroOf(a) {
		return a, true
	}
	if b.key() < a.key() {
		a, b = b, a
	}
	switch {
	case b.isBroadcastOf(a):
		return b, true
	case a.isBroadcastOf(b):
		return a, true
	}
	return derive(opBroadcast, a, b, true), true
}

// isBroadcastOf says whether d is what e and something else broadcast to.
func (d Dim) isBroadcastOf(e Dim) bool {
	s := d.bare()
	if s == nil || s.operation != opBroadcast {
		return false
	}
	return s.a.Equal(e) || s.b.Equal(e) || s.a.isBroadcastOf(e) || s.b.isBroadcastOf(e)
}

// isCapped says whether b is min(a, k) with a number k >= 1, which broadcasts
// with a to a: where it is not a it is k, so it must be 1.
func isCapped(a, b Dim) bool {
	s := a.Sub(b).bare()
	if s == nil || s.operation != opPositive {
		return false
	}
	k, ok := a.Sub(s.a).Known()
	return ok && k >= 1
}

// where picks elements by a condition, three ways broadcast.
func where(c *call) {
	broadcastAll(c)
	c.setElem(0, firstElem(c.in(1), c.in(2)))
	count, ok := c.outputs[0].Count().Known()
	if !ok || count > maxValues || !c.followAll() {
		return
	}
	condition, yes, no := c.spread(0, int(count)), c.spread(1, int(count)), c.spread(2, int(count))
	if condition == nil || yes == nil || no == nil {
		return
	}
	for k := range yes {
		yes[k] = choose(condition[k], yes[k], no[k])
	}
	c.setValues(0, yes)
}

func choose(condition, yes, no Value) Value {
	n, known := condition.Int()
	switch {
	case !known && yes.Equal(no) || n == 1:
		return yes
	case known:
		return no
	}
	return Value{}
}

func firstElem(infos ...*Info) tensor.Type {
	for _, f := range infos {
		if f.Elem != tensor.Undefined {
			return f.Elem
		}
	}
	return tensor.Undefined
}

// clip limits elements; the limits are attributes before opset 11, inputs since.
func clip(c *call) {
	c.sameDims(0, 0)
	if c.opset < 11 || !c.follow(0) {
		return
	}
	out := append([]Value(nil), c.values(0)...)
	for i, f := range []binaryValue{maximum, minimum} {
		if !c.has(i + 1) {
			continue
		}
		limit := c.values(i + 1)
		if len(limit) != 1 {
			return
		}
		for k := range out {
			out[k] = f(c.in(0).Elem, out[k], limit[0])
		}
	}
	c.setValues(0, out)
}

// modulo is the remainder with the sign of the divisor, or with fmod=1 of the dividend.
func modulo(c *call) {
	if c.int("fmod", 0) == 1 {
		binary(remainder)(c)
		return
	}
	binary(mod)(c)
}
