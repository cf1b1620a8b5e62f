package eval

import (
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// controlOperators decide what runs.
var controlOperators = []operator{
	{name: "Constant", since: 1, run: runConstant},
	{name: "Identity", since: 1, run: identity},
	{name: "If", since: 1, run: runIf},
	{name: "Loop", since: 1, run: runLoop},
	{name: "Scan", since: 8, run: runScan8},
	{name: "Scan", since: 9, run: runScan},
}

// runConstant gives the tensor a Constant node carries. A program takes it without
// running the node, unless the attribute is a reference to a function's.
func runConstant(c *Call) error {
	t := c.Node.ConstantValue()
	if t == nil && len(c.Node.Attributes()) == 1 {
		// As if the attribute that the reference means stood in the node.
		t = constantOf(c.Attribute(c.Node.Attributes()[0].Name()))
	}
	if t == nil {
		return c.Errorf("the node carries no constant")
	}
	if err := c.reserve(t.Type(), t.Shape()); err != nil && t.IsSparse() {
		return err
	}
	d, err := t.Dense()
	if err != nil {
		return c.Errorf("%w", err)
	}
	c.Outputs[0] = d
	return nil
}

// constantOf gives the tensor that a constant's attribute stands for; nil for none.
func constantOf(a *onnx.Attribute) *onnx.Tensor {
	if a == nil {
		return nil
	}
	switch a.Kind() {
	case onnx.AttributeTensor, onnx.AttributeSparseTensor:
		return a.Tensor()
	case onnx.AttributeFloat:
		return onnx.NewTensor(tensor.Scalar(a.Float()))
	case onnx.AttributeInt:
		return onnx.NewTensor(tensor.Scalar(a.Int()))
	case onnx.AttributeString:
		return onnx.NewTensor(tensor.Scalar(a.String()))
	case onnx.AttributeFloats:
		return onnx.NewTensor(tensor.Of(a.Floats(), len(a.Floats())))
	case onnx.AttributeInts:
		return onnx.NewTensor(tensor.Of(a.Ints(), len(a.Ints())))
	case onnx.AttributeStrings:
		return onnx.NewTensor(tensor.Of(a.Strings(), len(a.Strings())))
	}
	return nil
}

func identity(c *Call) error {
	if !c.Has(0) {
		return c.Errorf("input 0 is missing")
	}
	c.Outputs[0] = c.Inputs[0]
	return nil
}

// flag gives the one element of a BOOL tensor of any rank.
func (c *Call) flag(v Value, what string) (bool, error) {
	d, ok := v.(*tensor.Dense)
	if !ok || d.Type() != tensor.Bool || d.Len() != 1 {
		return false, c.Errorf("%s is not one BOOL", what)
	}
	return tensor.Data[bool](d)[0], nil
}

// runIf runs one branch. The condition is one element of any rank.
func runIf(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	holds, err := c.flag(d, "the condition")
	if err != nil {
		return err
	}
	name := "else_branch"
	if holds {
		name = "then_branch"
	}
	g, err := c.Subgraph(name)
	if err != nil {
		return err
	}
	out, err := c.RunGraph(g)
	if err != nil {
		return err
	}
	if len(out) < len(c.Outputs) {
		return c.Errorf("the branch gives %d of the node's %d outputs", len(out), len(c.Outputs))
	}
	copy(c.Outputs, out)
	return nil
}

// runLoop runs the body again and again: at most as often as the trip count says,
// and as long as the condition holds. The specification has the body's condition
// ignored when the node is given none, runtimes obey it; where that makes a
// difference folding refuses, and evaluation obeys.
func runLoop(c *Call) error {
	body, err := c.Subgraph("body")
	if err != nil {
		return err
	}
	l, err := newLoop(c, body)
	if err != nil {
		return err
	}
	for l.trip = 0; l.goesOn && (l.limit < 0 || l.trip < l.limit); l.trip++ {
		if err := l.round(); err != nil {
			return err
		}
	}
	return l.finish()
}

// loop is the state of one execution of a Loop.
type loop struct {
	call   *Call
	body   *onnx.Graph
	limit  int64 // trip count, -1 for none
	trip   int64
	goesOn bool
	state  []Value           // condition, then what each round hands to the next
	scans  [][]*tensor.Dense // by scan output, one item a round
	args   []Value
}

func newLoop(c *Call, body *onnx.Graph) (*loop, error) {
	l := &loop{call: c, body: body, limit: -1, goesOn: true}
	carried := max(len(c.Inputs)-2, 0)
	if len(body.Inputs()) != 2+carried || len(body.Outputs()) < 1+carried {
		return nil, c.Errorf("the body has %d inputs and %d outputs, which does not fit %d carried values",
			len(body.Inputs()), len(body.Outputs()), carried)
	}
	if len(c.Outputs) > len(body.Outputs())-1 {
		return nil, c.Errorf("the node has %d outputs, its body gives %d", len(c.Outputs), len(body.Outputs())-1)
	}
	if c.Has(0) {
		n, err := c.IntsInput(0)
		if err != nil {
			return nil, err
		}
		if len(n) != 1 {
			return nil, c.Errorf("the trip count has %d elements, not one", len(n))
		}
		l.limit = max(n[0], 0)
	}
	var first Value = tensor.Scalar(true)
	if c.Has(1) {
		first = c.Inputs[1]
	}
	var err error
	if l.goesOn, err = c.flag(first, "the condition"); err != nil {
		return nil, err
	}
	l.state = append([]Value{first}, c.Inputs[min(2, len(c.Inputs)):]...)
	for i, v := range l.state {
		if v == nil {
			return nil, c.Errorf("input %d is missing", i+1)
		}
	}
	l.scans = make([][]*tensor.Dense, len(body.Outputs())-len(l.state))
	l.args = make([]Value, len(body.Inputs()))
	return l, nil
}

// round runs the body once.
func (l *loop) round() error {
	c := l.call
	if err := c.frame.run.step(); err != nil {
		return err
	}
	l.args[0] = tripNumber(l.trip, l.body.Inputs()[0])
	copy(l.args[1:], l.state)
	out, err := c.RunGraph(l.body, l.args...)
	if err != nil {
		return err
	}
	if err := c.collect(l.scans, out[len(l.state):]); err != nil {
		return err
	}
	c.Release(l.state...)
	copy(l.state, out)
	if l.goesOn, err = c.flag(out[0], "the body's condition"); err != nil {
		return err
	}
	if !l.goesOn && !c.Has(1) {
		return c.Undefined("the body ends the loop, but the node has no condition")
	}
	return nil
}

// collect adds what one round gave to the columns that will be stacked.
func (c *Call) collect(columns [][]*tensor.Dense, given []Value) error {
	for k := range columns {
		d, ok := given[k].(*tensor.Dense)
		if !ok {
			return c.Errorf("scan output %d is no tensor", k)
		}
		if d.Len() == 0 {
			if err := c.Charge(arrayHeader); err != nil {
				return err
			}
		}
		columns[k] = append(columns[k], d)
	}
	return nil
}

// tripNumber is a scalar, unless the body declares one axis for it.
func tripNumber(i int64, v *onnx.Value) *tensor.Dense {
	if v.Type.IsTensor() && v.Type.Shape != nil && len(v.Type.Shape.Dims) == 1 {
		return tensor.Of([]int64{i}, 1)
	}
	return tensor.Scalar(i)
}

func (l *loop) finish() error {
	c := l.call
	carried := l.state[1:]
	copy(c.Outputs, carried)
	for k, items := range l.scans {
		i := len(carried) + k
		if i >= len(c.Outputs) || !c.Wants(i) {
			continue
		}
		d, err := c.stackRounds(items, 0, false, l.body.Outputs()[len(l.state)+k])
		if err != nil {
			return err
		}
		c.Outputs[i] = d
	}
	return nil
}

// stackRounds puts what the rounds gave beside each other along a new axis. After
// no round at all there is only what the body declares of the value: dims it
// leaves open count as 0 then, and folding refuses.
func (c *Call) stackRounds(items []*tensor.Dense, axis int, backwards bool, declared *onnx.Value) (*tensor.Dense, error) {
	if len(items) > 0 {
		return c.stack(items, axis, backwards)
	}
	t := declared.Type
	if !t.IsTensor() || t.Shape == nil {
		return nil, c.Unsupported("no round gives output %q, and the body does not declare its shape", declared.Name())
	}
	dims, known := t.Shape.Ints()
	if !known {
		if err := c.Undefined("the shape of %q after no round", declared.Name()); err != nil {
			return nil, err
		}
		dims = make([]int, len(t.Shape.Dims))
		for i, d := range t.Shape.Dims {
			dims[i] = int(d.Value)
		}
	}
	at, err := normalAxis(c, int64(axis), len(dims)+1)
	if err != nil {
		return nil, err
	}
	return c.New(t.Elem, insertDim(dims, at, 0)...)
}
