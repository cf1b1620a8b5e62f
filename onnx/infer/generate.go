package infer

import (
	"math"
	"slices"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// generateOperators make tensors out of a shape or a few numbers.
var generateOperators = []operator{
	{name: "Constant", since: 1, rule: constantRule},
	{name: "ConstantOfShape", since: 9, rule: constantOfShape},
	{name: "Range", since: 11, rule: rangeRule},
	{name: "RandomNormal", since: 1, rule: random},
	{name: "RandomUniform", since: 1, rule: random},
	{name: "RandomNormalLike", since: 1, rule: sameShapeOfType},
	{name: "RandomUniformLike", since: 1, rule: sameShapeOfType},
	{name: "EyeLike", since: 9, rule: sameShapeOfType},
	{name: "Bernoulli", since: 15, rule: sameShapeOfType},
	{name: "Multinomial", since: 7, rule: multinomial},
}

// constantRule is for a Constant inside a function whose attribute is one of the
// call's; others hold a tensor and are known by that.
func constantRule(c *call) {
	for _, own := range c.node.Attributes() {
		if a := c.attribute(own.Name()); a != nil {
			c.constantAttribute(own.Name(), a)
		}
	}
}

func (c *call) constantAttribute(form string, a *onnx.Attribute) {
	switch form {
	case "value", "sparse_value":
		if t := a.Tensor(); t != nil {
			c.set(0, constantInfo(t))
		}
	case "value_int":
		c.set(0, Tensor(tensor.Int64).WithValues(Integer(Const(a.Int()))))
	case "value_ints":
		values := make([]Value, len(a.Ints()))
		for k, n := range a.Ints() {
			values[k] = Integer(Const(n))
		}
		c.set(0, Tensor(tensor.Int64, Const(int64(len(values)))).WithValues(values...))
	case "value_float":
		c.set(0, Tensor(tensor.Float32).WithValues(Float(float64(a.Float()))))
	case "value_floats":
		c.set(0, Tensor(tensor.Float32, Const(int64(len(a.Floats())))))
	case "value_string":
		c.set(0, Tensor(tensor.String))
	case "value_strings":
		c.set(0, Tensor(tensor.String, Const(int64(len(a.Strings())))))
	}
}

// constantOfShape repeats one element, float 0 unless an attribute says another.
func constantOfShape(c *call) {
	fill := Float(0)
	elem := tensor.Float32
	if a := c.attribute("value"); a != nil && a.Tensor() != nil {
		elem, fill = a.Tensor().Type(), Value{}
		f := constantInfo(a.Tensor())
		if v := f.Values(); len(v) == 1 {
			fill = v[0]
		}
	}
	c.setElem(0, elem)
	target := c.elements(0)
	if target == nil {
		if n, ok := c.vectorLength(0); ok {
			c.setDims(0, unknowns(n)...)
		}
		return
	}
	if len(target) > maxRank {
		return
	}
	dims := make([]Dim, len(target))
	for k, v := range target {
		dims[k] = v.Dim()
	}
	c.setDims(0, dims...)
	if n, ok := product(dims).Known(); ok && n >= 0 && tracked(elem, n) && !fill.IsUnknown() {
		c.setValues(0, slices.Repeat([]Value{fill}, int(n)))
	}
}

// rangeRule counts from start by delta up to limit: max(ceil((limit-start)/delta), 0) elements.
func rangeRule(c *call) {
	start, limit, delta := c.scalar(0), c.scalar(1), c.scalar(2)
	t := c.in(0).Elem
	count := c.rangeCount(subtract(t, limit, start), delta)
	c.setDims(0, count)
	n, ok := count.Known()
	if !ok || n > maxValues || !t.IsInteger() {
		return
	}
	out := make([]Value, n)
	for k := range out {
		out[k] = Integer(start.Dim().Add(delta.Dim().MulConst(int64(k))))
	}
	c.setValues(0, out)
}

// rangeCount divides the span by the step. Of floats the quotient depends on the
// precision it is computed in; where that matters nothing is known.
func (c *call) rangeCount(span, step Value) Dim {
	if steps := divideExactly(span, step); !steps.IsUnknown() {
		return c.positivePart(steps.numerator.CeilDiv(Const(steps.denominator)))
	}
	x, ok := span.Float()
	y, okToo := step.Float()
	if !ok || !okToo {
		return Unknown()
	}
	n, rough := math.Ceil(x/y), math.Ceil(float64(float32(x)/float32(y)))
	if n != rough || !(math.Abs(n) < 1<<53) {
		return Unknown()
	}
	return Const(max(int64(n), 0))
}

// scalar gives the only element of input i, an integer that nobody knows as a symbol.
func (c *call) scalar(i int) Value {
	v := c.elements(i)
	if len(v) != 1 {
		return Value{}
	}
	return v[0]
}

// divideExactly gives a/b for a number b as a quotient, without rounding.
func divideExactly(a, b Value) Value {
	n, d, ok := a.fraction()
	m, e, okToo := b.fraction()
	k, known := m.Known()
	denominator, fits := mulInt(d, k)
	if !ok || !okToo || !known || !fits || k == 0 {
		return Value{}
	}
	numerator := n.MulConst(e)
	if denominator < 0 {
		numerator, denominator = numerator.MulConst(-1), -denominator
	}
	if numerator.IsUnknown() {
		return Value{}
	}
	return Value{numerator: numerator, denominator: denominator}
}

// random takes the shape from an attribute, and the type: float by default.
func random(c *call) {
	c.setElem(0, c.typeAttribute("dtype", tensor.Float32))
	list, ok := c.intList("shape")
	if !ok || len(list) > maxRank {
		return
	}
	dims := make([]Dim, len(list))
	for k, n := range list {
		dims[k] = Const(n)
	}
	c.setDims(0, dims...)
}

// typeAttribute reads an element type, or gives otherwise.
func (c *call) typeAttribute(name string, otherwise tensor.Type) tensor.Type {
	if a := c.attribute(name); a != nil {
		return knownType(a.Int())
	}
	return otherwise
}

// sameShapeOfType has the dims of the input and the type of an attribute, or of the input.
func sameShapeOfType(c *call) {
	c.sameDims(0, 0)
	c.setElem(0, c.typeAttribute("dtype", c.in(0).Elem))
}

// multinomial draws so many samples for each row.
func multinomial(c *call) {
	c.setElem(0, c.typeAttribute("dtype", tensor.Int32))
	rows := Unknown()
	if dims, ok := c.dims(0); ok && len(dims) == 2 {
		rows = dims[0]
	}
	c.setDims(0, rows, Const(c.int("sample_size", 1)))
}
