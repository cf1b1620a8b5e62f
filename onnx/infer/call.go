package infer

import (
	"slices"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// call is one node whose outputs are being inferred.
type call struct {
	*Inference
	node    *onnx.Node
	opset   int
	inputs  []*Info // nil for one left out
	outputs []Info
}

// borrow readies a call for a node. Calls are used again: most models have
// thousands of nodes, and few nest.
func (i *Inference) borrow(n *onnx.Node, e *entry) *call {
	c := &call{Inference: i}
	if last := len(i.spare) - 1; last >= 0 {
		c, i.spare = i.spare[last], i.spare[:last]
	}
	c.node, c.opset = n, e.opset
	for _, v := range n.Inputs() {
		f := i.Of(v)
		if v == nil || f.leftOut {
			f = nil
		}
		c.inputs = append(c.inputs, f)
	}
	for range n.Outputs() {
		c.outputs = append(c.outputs, Info{})
	}
	return c
}

func (i *Inference) giveBack(c *call) {
	c.inputs, c.outputs = c.inputs[:0], c.outputs[:0]
	i.spare = append(i.spare, c)
}

// unresolved says whether an attribute is the parameter of a function that
// nobody calls just now: its value can be anything.
func (c *call) unresolved() bool { return c.scope == nil && c.node.HasReferences() }

// has says whether input i is there.
func (c *call) has(i int) bool { return i < len(c.inputs) && c.inputs[i] != nil }

// in is what is known of input i, never nil.
func (c *call) in(i int) *Info {
	if !c.has(i) {
		return &c.nothing
	}
	return c.inputs[i]
}

// dims gives the dims of input i; ok is false when the rank is not known.
func (c *call) dims(i int) (dims []Dim, ok bool) {
	f := c.in(i)
	return f.Dims, f.Ranked && f.Kind == onnx.KindTensor
}

// values gives the known elements of input i, or nil.
func (c *call) values(i int) []Value { return c.in(i).Values() }

// follow says whether the elements of all these inputs can be followed. Stored
// tensors are read only when none of the others rules it out.
func (c *call) follow(inputs ...int) bool {
	for _, i := range inputs {
		if !c.in(i).HasValues() {
			return false
		}
	}
	for _, i := range inputs {
		if c.values(i) == nil || !c.in(i).Count().Is(int64(len(c.values(i)))) {
			return false
		}
	}
	return true
}

// ints gives the elements of input i when all of them are known integers.
func (c *call) ints(i int) (ints []int64, ok bool) {
	values := c.values(i)
	if values == nil {
		return nil, false
	}
	ints = make([]int64, len(values))
	for k, v := range values {
		if ints[k], ok = v.Int(); !ok {
			return nil, false
		}
	}
	return ints, true
}

// integer gives the only element of input i when it is a known integer.
func (c *call) integer(i int) (n int64, ok bool) {
	values := c.values(i)
	if len(values) != 1 {
		return 0, false
	}
	return values[0].Int()
}

// elements gives input i, an integer or bool tensor of few elements, as
// expressions: those not known are nameless symbols, which the input keeps. It is
// nil when the input is no such tensor.
func (c *call) elements(i int) []Value {
	f := c.in(i)
	if f.HasValues() && f.values == nil {
		f.Values()
	}
	if f.values == nil {
		n, ok := f.Count().Known()
		if !ok || n > maxMinted || !f.Elem.IsInteger() && f.Elem != tensor.Bool || !tracked(f.Elem, n) {
			return nil
		}
		f.values = make([]Value, n)
	}
	if f.Elem.IsInteger() || f.Elem == tensor.Bool {
		c.mint(f.values)
	}
	return f.values
}

// maxMinted bounds the tensors whose unknown elements are given symbols.
const maxMinted = 64

// mint gives a nameless symbol to every unknown integer element.
func (i *Inference) mint(values []Value) {
	for k, v := range values {
		if v.IsUnknown() {
			values[k] = Integer(i.freshElement())
		}
	}
}

// attribute gives the attribute of that name, parameters of a function resolved;
// nil when the call leaves it out.
func (c *call) attribute(name string) *onnx.Attribute {
	a := c.node.Attribute(name)
	if a != nil && a.Reference() != "" {
		return c.scope.attributes[a.Reference()]
	}
	return a
}

func (c *call) int(name string, otherwise int64) int64 {
	if a := c.attribute(name); a != nil {
		return a.Int()
	}
	return otherwise
}

func (c *call) string(name, otherwise string) string {
	if a := c.attribute(name); a != nil {
		return a.String()
	}
	return otherwise
}

// intList gives an ints attribute; ok says whether the call has it.
func (c *call) intList(name string) (list []int64, ok bool) {
	if a := c.attribute(name); a != nil {
		return a.Ints(), true
	}
	return nil, false
}

// axis gives an axis attribute as a number from 0 to limit-1.
func (c *call) axis(name string, otherwise int64, limit int) (axis int, ok bool) {
	return c.normalAxis(c.int(name, otherwise), limit)
}

// normalAxis counts a negative axis from the end. One out of range is a conflict.
func (c *call) normalAxis(axis int64, limit int) (int, bool) {
	k, ok := normalAxis(axis, limit)
	if !ok {
		c.conflictf("axis %d is outside rank %d of %s", axis, limit, c.describe(0))
	}
	return k, ok
}

// normalAxis counts a negative axis from the end; one out of range is -1.
func normalAxis(axis int64, limit int) (int, bool) {
	n := int64(limit)
	if axis < -n || axis >= n {
		return -1, false
	}
	if axis < 0 {
		axis += n
	}
	return int(axis), true
}

// setElem says the element type of output i.
func (c *call) setElem(i int, t tensor.Type) {
	if i < len(c.outputs) {
		c.outputs[i].Elem = t
	}
}

// setDims says the dims of output i.
func (c *call) setDims(i int, dims ...Dim) {
	if i < len(c.outputs) && len(dims) <= maxRank {
		c.outputs[i].Ranked, c.outputs[i].Dims = true, dims
	}
}

// maxRank bounds the rank that is followed.
const maxRank = 64

// setValues says the elements of output i; nil says nothing.
func (c *call) setValues(i int, values []Value) {
	if i < len(c.outputs) {
		c.outputs[i].values = values
	}
}

// set says everything of output i.
func (c *call) set(i int, f Info) {
	if i < len(c.outputs) {
		c.outputs[i] = f
	}
}

// sameDims gives output i the dims of an input.
func (c *call) sameDims(i, input int) {
	if dims, ok := c.dims(input); ok {
		c.setDims(i, dims...)
	}
}

// believeDeclaration takes what the file says of the outputs, for operators that
// have no rule. Names that no input defines say nothing.
func (c *call) believeDeclaration() {
	for i, v := range c.node.Outputs() {
		if v == nil {
			continue
		}
		f := c.declared(v.Type, false)
		if c.options.StaleDeclarations {
			for k := range f.Dims {
				f.Dims[k] = Unknown()
			}
		}
		c.set(i, f)
	}
}

// finish fills in element types, gives every unknown dim a symbol, and writes
// the outputs into the table.
func (c *call) finish(e *entry) {
	for i, v := range c.node.Outputs() {
		if v == nil {
			continue
		}
		f := &c.outputs[i]
		f.leftOut = false
		c.completeType(e, i, f)
		c.settle(f)
		c.put(v, *f)
		if v.IsOutput() {
			c.checkDeclared(v, f)
		}
	}
}

// completeType takes the element type from the schema where the rule did not say.
func (c *call) completeType(e *entry, i int, f *Info) {
	if f.Elem != tensor.Undefined || f.Inner != nil || len(e.outputs) == 0 {
		return
	}
	source := e.outputs[min(i, len(e.outputs)-1)]
	if !source.fixed.typeless() {
		f.Kind, f.Elem, f.Inner = source.fixed.Kind, source.fixed.Elem, source.fixed.Inner
		return
	}
	for _, formal := range source.inputs {
		for k := formal; k <= e.lastActual(formal, len(c.inputs)); k++ {
			if in := c.in(k); !in.typeless() {
				f.Kind, f.Elem, f.Inner = in.Kind, in.Elem, in.Inner
				return
			}
		}
	}
}

// maxFollowed bounds the elements that are kept of all values together.
const maxFollowed = 1 << 22

// impossible says whether d is no size that could be kept.
func impossible(d Dim) bool {
	n, known := d.Known()
	return d.IsUnknown() || known && n < 0
}

// settle makes what a rule found fit to be kept.
func (i *Inference) settle(f *Info) {
	if f.Inner != nil && f.Kind == onnx.KindOptional {
		inner := *f.Inner
		i.settle(&inner)
		f.Inner = &inner
	}
	if !f.Ranked {
		f.values = nil
		return
	}
	if slices.ContainsFunc(f.Dims, impossible) {
		f.Dims = slices.Clone(f.Dims)
		for k, d := range f.Dims {
			if impossible(d) {
				f.Dims[k] = i.fresh()
			}
		}
	}
	f.Dims = i.noteSizes(f.Dims)
	if f.values != nil && !f.Count().Is(int64(len(f.values))) {
		f.values = nil
	}
	if i.followed+len(f.values) > maxFollowed {
		f.values = nil
	}
}
