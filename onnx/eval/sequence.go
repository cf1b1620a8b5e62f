package eval

import (
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// sequenceOperators make lists of values and take them apart. Values are shared
// between lists, never copied.
var sequenceOperators = []operator{
	{name: "ConcatFromSequence", since: 11, run: concatFromSequence},
	{name: "Optional", since: 15, run: makeOptional},
	{name: "OptionalGetElement", since: 15, run: optionalGetElement},
	{name: "OptionalHasElement", since: 15, run: optionalHasElement},
	{name: "SequenceAt", since: 11, run: sequenceAt},
	{name: "SequenceConstruct", since: 11, run: sequenceConstruct},
	{name: "SequenceEmpty", since: 11, run: sequenceEmpty},
	{name: "SequenceErase", since: 11, run: sequenceErase},
	{name: "SequenceInsert", since: 11, run: sequenceInsert},
	{name: "SequenceLength", since: 11, run: sequenceLength},
	{name: "SequenceMap", since: 17, run: sequenceMap},
	{name: "SplitToSequence", since: 11, run: splitToSequence},
}

// sequenceInput gives input i, which must be a sequence.
func (c *Call) sequenceInput(i int) (*Sequence, error) {
	if !c.Has(i) {
		return nil, c.Errorf("input %d is missing", i)
	}
	s, ok := c.Inputs[i].(*Sequence)
	if !ok {
		return nil, c.Errorf("input %d is no sequence", i)
	}
	return s, nil
}

// position gives input i, a place in 0..last that may count from the end, where
// -1 is last; or otherwise when the input is left out.
func (c *Call) position(i, end, last, otherwise int) (int, error) {
	if !c.Has(i) {
		return otherwise, nil
	}
	values, err := c.IntsInput(i)
	if err != nil {
		return 0, err
	}
	if len(values) != 1 {
		return 0, c.Errorf("the position is %v, not one number", values)
	}
	at := values[0]
	if at < 0 {
		at += int64(end)
	}
	if at < 0 || at > int64(last) {
		return 0, c.Errorf("position %d is outside a sequence of %d", values[0], end)
	}
	return int(at), nil
}

func sequenceEmpty(c *Call) error {
	typ := tensor.Type(c.Int("dtype", int64(tensor.Float32)))
	if !typ.Valid() {
		return c.Errorf("attribute \"dtype\" is %d", typ)
	}
	c.Outputs[0] = &Sequence{Elem: typ}
	return nil
}

func sequenceConstruct(c *Call) error {
	items, err := c.Tensors(0)
	if err != nil {
		return err
	}
	s := &Sequence{}
	for i, d := range items {
		if d.Type() != items[0].Type() {
			return c.Errorf("input %d is %s, the first %s", i, d.Type(), items[0].Type())
		}
		s.Items = append(s.Items, d)
		s.Elem = d.Type()
	}
	c.Outputs[0] = s
	return nil
}

func sequenceAt(c *Call) error {
	s, err := c.sequenceInput(0)
	if err != nil {
		return err
	}
	at, err := c.position(1, len(s.Items), len(s.Items)-1, len(s.Items)-1)
	if err != nil {
		return err
	}
	if at < 0 {
		return c.Errorf("an element of an empty sequence")
	}
	c.Outputs[0] = s.Items[at]
	return nil
}

// sequenceInsert puts a tensor before a position, by default at the end.
func sequenceInsert(c *Call) error {
	s, err := c.sequenceInput(0)
	if err != nil {
		return err
	}
	d, err := c.Tensor(1)
	if err != nil {
		return err
	}
	if s.Elem != tensor.Undefined && d.Type() != s.Elem {
		return c.Errorf("a tensor of %s for a sequence of %s", d.Type(), s.Elem)
	}
	at, err := c.position(2, len(s.Items), len(s.Items), len(s.Items))
	if err != nil {
		return err
	}
	c.Outputs[0] = &Sequence{Elem: d.Type(), Items: slices.Insert(slices.Clone(s.Items), at, Value(d))}
	return nil
}

// sequenceErase leaves out the item at a position, by default the last.
func sequenceErase(c *Call) error {
	s, err := c.sequenceInput(0)
	if err != nil {
		return err
	}
	at, err := c.position(1, len(s.Items), len(s.Items)-1, len(s.Items)-1)
	if err != nil {
		return err
	}
	if at < 0 {
		return c.Errorf("an element of an empty sequence")
	}
	c.Outputs[0] = &Sequence{Elem: s.Elem, Items: slices.Delete(slices.Clone(s.Items), at, at+1)}
	return nil
}

func sequenceLength(c *Call) error {
	s, err := c.sequenceInput(0)
	if err != nil {
		return err
	}
	c.scalars(0, tensor.Scalar(int64(len(s.Items))))
	return nil
}

// sequenceMap runs the body for each item of the first input. Other sequences give
// their item at the same place, tensors are passed on whole.
func sequenceMap(c *Call) error {
	body, err := c.Subgraph("body")
	if err != nil {
		return err
	}
	s, err := c.sequenceInput(0)
	if err != nil {
		return err
	}
	if len(body.Outputs()) < len(c.Outputs) {
		return c.Errorf("the body gives %d outputs, the node has %d", len(body.Outputs()), len(c.Outputs))
	}
	results := make([]*Sequence, len(c.Outputs))
	for k := range results {
		results[k] = &Sequence{}
		if t := body.Outputs()[k].Type; t != nil {
			results[k].Elem = t.Elem
		}
		c.Outputs[k] = results[k]
	}
	for i := range s.Items {
		arguments, err := c.itemsAt(i)
		if err != nil {
			return err
		}
		out, err := c.RunGraph(body, arguments...)
		if err != nil {
			return err
		}
		for k, r := range results {
			if d, ok := out[k].(*tensor.Dense); ok {
				r.Elem = d.Type()
			}
			r.Items = append(r.Items, out[k])
		}
	}
	return nil
}

// itemsAt gives the inputs of one round of SequenceMap.
func (c *Call) itemsAt(i int) ([]Value, error) {
	arguments := slices.Clone(c.Inputs)
	for k, input := range c.Inputs {
		s, ok := input.(*Sequence)
		if !ok {
			continue
		}
		if i >= len(s.Items) {
			return nil, c.Errorf("input %d has only %d items", k, len(s.Items))
		}
		arguments[k] = s.Items[i]
	}
	return arguments, nil
}

// splitToSequence cuts a tensor along an axis: into single indices, which lose the
// axis without keepdims; into pieces of one length, the last maybe shorter; or into
// pieces of given lengths.
func splitToSequence(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	axis, err := normalAxis(c, c.Int("axis", 0), d.Rank())
	if err != nil {
		return err
	}
	lengths, err := c.splitLengths(d.Shape()[axis])
	if err != nil {
		return err
	}
	squeeze := !c.Has(1) && c.Int("keepdims", 1) == 0
	s := &Sequence{Elem: d.Type()}
	shape, strides := slices.Clone(d.Shape()), tensor.Strides(d.Shape())
	at := 0
	for _, n := range lengths {
		shape[axis] = n
		var piece *tensor.Dense
		if squeeze {
			piece, err = c.takeIndex(d, axis, at)
		} else {
			piece, err = c.Strided(d, at*strides[axis], shape, strides)
		}
		if err != nil {
			return err
		}
		s.Items = append(s.Items, piece)
		at += n
	}
	c.Outputs[0] = s
	return nil
}

// splitLengths reads input 1 of SplitToSequence for an axis of dim indices.
func (c *Call) splitLengths(dim int) ([]int, error) {
	if !c.Has(1) {
		return c.equalLengths(dim, 1)
	}
	d, err := c.Tensor(1)
	if err != nil {
		return nil, err
	}
	values, err := c.IntsInput(1)
	if err != nil {
		return nil, err
	}
	if d.Rank() == 0 {
		if values[0] < 1 {
			return nil, c.Errorf("pieces of length %d", values[0])
		}
		return c.equalLengths(dim, int(min(values[0], int64(max(dim, 1)))))
	}
	lengths := make([]int, len(values))
	rest := int64(dim)
	for i, v := range values {
		if v < 0 || v > rest {
			return nil, c.Errorf("pieces of lengths %v of an axis of %d", values, dim)
		}
		rest -= v
		lengths[i] = int(v)
	}
	if rest != 0 {
		return nil, c.Errorf("pieces of lengths %v of an axis of %d", values, dim)
	}
	return lengths, nil
}

// equalLengths cuts dim into pieces of n, the last of which may be shorter. The
// pieces of an empty array cost little, but not nothing.
func (c *Call) equalLengths(dim, n int) ([]int, error) {
	if err := c.Charge(int64(dim/n) * arrayHeader); err != nil {
		return nil, err
	}
	lengths := slices.Repeat([]int{n}, dim/n)
	if dim%n != 0 {
		lengths = append(lengths, dim%n)
	}
	return lengths, nil
}

// concatFromSequence joins the tensors of a sequence along an axis, or stacks them
// along a new one.
func concatFromSequence(c *Call) error {
	s, err := c.sequenceInput(0)
	if err != nil {
		return err
	}
	if len(s.Items) == 0 {
		return c.Errorf("an empty sequence has no shape to join to")
	}
	items := make([]*tensor.Dense, len(s.Items))
	for i, item := range s.Items {
		var ok bool
		if items[i], ok = item.(*tensor.Dense); !ok {
			return c.Errorf("item %d is no tensor", i)
		}
	}
	axis := c.Int("axis", 0)
	if c.Int("new_axis", 0) != 0 {
		at, err := normalAxis(c, axis, items[0].Rank()+1)
		if err != nil {
			return err
		}
		return c.setOutput(c.stack(items, at, false))
	}
	at, err := normalAxis(c, axis, items[0].Rank())
	if err != nil {
		return err
	}
	return c.setOutput(c.joined(items, at))
}

// makeOptional wraps its input, or nothing.
func makeOptional(c *Call) error {
	o := &Optional{}
	if c.Has(0) {
		o.Value = c.Inputs[0]
	}
	c.Outputs[0] = o
	return nil
}

// optionalHasElement is true for what is no optional, and false for no input at all.
func optionalHasElement(c *Call) error {
	has := c.Has(0)
	if o, ok := c.value(0).(*Optional); ok {
		has = o.Value != nil
	}
	c.scalars(0, tensor.Scalar(has))
	return nil
}

// optionalGetElement unwraps an optional, and passes on anything else.
func optionalGetElement(c *Call) error {
	v := c.value(0)
	if o, ok := v.(*Optional); ok {
		v = o.Value
	}
	if v == nil {
		return c.Errorf("the optional is empty")
	}
	c.Outputs[0] = v
	return nil
}

// value gives input i of any kind, nil when it is left out.
func (c *Call) value(i int) Value {
	if !c.Has(i) {
		return nil
	}
	return c.Inputs[i]
}
