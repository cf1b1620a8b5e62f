package eval

import (
	"context"
	"fmt"
	"slices"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// Call is one execution of a node.
type Call struct {
	Node *onnx.Node
	// Opset is the imported version of the node's domain.
	Opset int
	// Inputs are the node's inputs; trailing ones may be missing, absent ones are nil.
	Inputs []Value
	// Outputs is as long as the node's list of outputs; the kernel fills it.
	Outputs []Value

	frame *frame
	step  *step   // nil for a folded node
	held  []Value // arrays made for the call, and results of its subgraphs
	extra int64   // bytes charged by Charge
}

// run calls the kernel, or the local function.
func (c *Call) run(kernel Kernel, callee *onnx.Function) error {
	if callee != nil {
		return c.frame.callFunction(c, callee)
	}
	if kernel == nil {
		return fmt.Errorf("%s (domain %q, opset %d): %w", c.Node.Where(), c.Node.Domain, c.Opset, ErrUnsupported)
	}
	return guarded(kernel, c)
}

// Context ends when the run is given up.
func (c *Call) Context() context.Context { return c.frame.run.ctx }

// Errorf makes an error about this call: use it for inputs that the
// specification forbids.
func (c *Call) Errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %w", c.Node.Where(), fmt.Errorf(format, args...))
}

// Unsupported says that the interpreter has no way to compute this call.
func (c *Call) Unsupported(format string, args ...any) error {
	return fmt.Errorf("%s: %w: %s", c.Node.Where(), ErrUnsupported, fmt.Sprintf(format, args...))
}

// Undefined says that the specification leaves the result open. While folding
// it returns an error, which the kernel must pass on; else nil, and the kernel
// goes on with the result that its comment documents.
func (c *Call) Undefined(format string, args ...any) error {
	if !c.frame.run.strict {
		return nil
	}
	return fmt.Errorf("%s: %w: %s", c.Node.Where(), ErrUndefined, fmt.Sprintf(format, args...))
}

// Strict says whether the call folds a constant: results must then be exact for
// every host, and undefined ones are refused.
func (c *Call) Strict() bool { return c.frame.run.strict }

// Has says whether input i is there.
func (c *Call) Has(i int) bool { return i < len(c.Inputs) && c.Inputs[i] != nil }

// Wants says whether anybody may read output i.
func (c *Call) Wants(i int) bool { return c.Node.Output(i) != nil }

// Tensor gives input i, which must be there and a tensor.
func (c *Call) Tensor(i int) (*tensor.Dense, error) {
	if !c.Has(i) {
		return nil, c.Errorf("input %d is missing", i)
	}
	d, ok := c.Inputs[i].(*tensor.Dense)
	if !ok {
		return nil, c.Errorf("input %d is no tensor", i)
	}
	return d, nil
}

// Tensors gives all inputs from first on, each of which must be there and a tensor.
func (c *Call) Tensors(first int) ([]*tensor.Dense, error) {
	var out []*tensor.Dense
	for i := first; i < len(c.Inputs); i++ {
		d, err := c.Tensor(i)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// IntsInput gives input i, an integer tensor of any shape, as numbers; nil when absent.
func (c *Call) IntsInput(i int) ([]int64, error) {
	if !c.Has(i) {
		return nil, nil
	}
	d, err := c.Tensor(i)
	if err != nil {
		return nil, err
	}
	v, ok := d.Int64s()
	if !ok {
		return nil, c.Errorf("input %d is %s, not an integer tensor", i, d.Type())
	}
	return v, nil
}

// Attribute gives the attribute of that name, references to a surrounding
// function's attributes resolved; nil when the call leaves it out.
func (c *Call) Attribute(name string) *onnx.Attribute {
	a := c.Node.Attribute(name)
	if a != nil && a.Reference() != "" {
		return c.frame.bound[a.Reference()]
	}
	return a
}

// Int gives an int attribute, or otherwise.
func (c *Call) Int(name string, otherwise int64) int64 {
	if a := c.Attribute(name); a != nil {
		return a.Int()
	}
	return otherwise
}

// Float gives a float attribute, or otherwise.
func (c *Call) Float(name string, otherwise float32) float32 {
	if a := c.Attribute(name); a != nil {
		return a.Float()
	}
	return otherwise
}

// String gives a string attribute, or otherwise.
func (c *Call) String(name, otherwise string) string {
	if a := c.Attribute(name); a != nil {
		return a.String()
	}
	return otherwise
}

// Ints gives an ints attribute; ok says whether the call has it.
func (c *Call) Ints(name string) (v []int64, ok bool) {
	if a := c.Attribute(name); a != nil {
		return a.Ints(), true
	}
	return nil, false
}

// New makes a zeroed array for a result or for work, charged to the run's budget
// until the call ends, or for as long as it is an output. Kernels must not call it
// inside [Call.Parallel].
func (c *Call) New(t tensor.Type, shape ...int) (*tensor.Dense, error) {
	if err := c.reserve(t, shape); err != nil {
		return nil, err
	}
	d, err := tensor.New(t, shape...)
	if err != nil {
		return nil, c.Errorf("%w", err)
	}
	c.own(d)
	return d, nil
}

// reserve refuses an array that is beyond what is left of the budget, before it is made.
func (c *Call) reserve(t tensor.Type, shape []int) error {
	n, err := tensor.Count(shape)
	if err != nil {
		return c.Errorf("%w", err)
	}
	if err := c.frame.run.memory.fits(sizeFor(t, n)); err != nil {
		return c.Errorf("a result of shape %v: %w", shape, err)
	}
	return nil
}

// own charges an array that was made for this call.
func (c *Call) own(d *tensor.Dense) {
	m := &c.frame.run.memory
	m.made(d)
	if m.held != nil {
		c.held = append(c.held, d)
	}
}

// Charge takes bytes from the run's budget until the call ends, for work memory
// that does not come from [Call.New].
func (c *Call) Charge(bytes int64) error {
	m := &c.frame.run.memory
	if err := m.fits(bytes); err != nil {
		return c.Errorf("%w", err)
	}
	m.used += bytes
	c.extra += bytes
	return nil
}

// Strided makes an array of elements of d, as [tensor.Dense.Strided] does, charged to the run's budget.
func (c *Call) Strided(d *tensor.Dense, offset int, shape, strides []int) (*tensor.Dense, error) {
	if err := c.reserve(d.Type(), shape); err != nil {
		return nil, err
	}
	out, err := d.Strided(offset, shape, strides)
	if err != nil {
		return nil, c.Errorf("%w", err)
	}
	c.own(out)
	return out, nil
}

// Reshape sets output i to d under another shape; both share the elements.
func (c *Call) Reshape(i int, d *tensor.Dense, shape ...int) error {
	out, err := d.Reshape(shape...)
	if err != nil {
		return c.Errorf("%w", err)
	}
	c.Outputs[i] = out
	return nil
}

// Output makes a zeroed array of Go elements for a result of the given shape,
// charged to the run's budget, and sets it as output i.
func Output[T tensor.Element](c *Call, i int, shape ...int) ([]T, error) {
	d, err := c.New(tensor.TypeOf[T](), shape...)
	if err != nil {
		return nil, err
	}
	c.Outputs[i] = d
	return tensor.Data[T](d), nil
}

// Parallel calls f for pieces of 0..n that together cover it, on as many cores
// as the run may use. A piece holds at least grain items; f must write only what
// belongs to its items, so that the result does not depend on the split.
func (c *Call) Parallel(n, grain int, f func(first, last int)) {
	c.frame.run.parallel(n, grain, f)
}

// Once gives what make makes, kept with the node for the life of the program:
// packed weights and the like. Use it only for what depends on nothing but
// attributes and constant inputs: see [Call.IsConstant]. What make allocates
// counts as weights do, so it must be in proportion to them.
func (c *Call) Once(make func() (any, error)) (any, error) {
	// Inside a function an attribute may differ from call to call.
	if c.step == nil || c.Node.HasReferences() {
		return make()
	}
	k := c.step.kept
	k.once.Do(func() { k.value, k.err = make() })
	return k.value, k.err
}

// IsConstant says whether input i is the same at every run of the program.
func (c *Call) IsConstant(i int) bool {
	if c.step == nil {
		return true
	}
	return i < len(c.step.inputs) && c.step.inputs[i].constant != nil
}

// Subgraph gives the branch or body of that name.
func (c *Call) Subgraph(name string) (*onnx.Graph, error) {
	a := c.Attribute(name)
	if a == nil || a.Graph() == nil {
		return nil, c.Errorf("attribute %q holds no graph", name)
	}
	g := a.Graph()
	if c.step != nil && g.Outer() != c.frame.plan.graph {
		return nil, c.Unsupported("the graph %q comes through an attribute of a function", name)
	}
	return g, nil
}

// RunGraph computes a subgraph of the node: inputs are its inputs in order, the
// result its outputs. It sees the values around it. The call holds the results
// until it ends, or until [Call.Release].
func (c *Call) RunGraph(g *onnx.Graph, inputs ...Value) ([]Value, error) {
	f := c.frame
	outer := f
	if c.step == nil {
		outer = nil
	}
	out, err := f.run.runGraph(g, outer, f.bound, inputs)
	if err != nil {
		return nil, err
	}
	c.held = append(c.held, out...)
	return out, nil
}

// Release lets go, before the call ends, of results of [Call.RunGraph] and of
// arrays the call made: what one round of a loop handed to the next.
func (c *Call) Release(values ...Value) {
	for _, v := range values {
		for i := len(c.held) - 1; i >= 0; i-- { // they came last
			if c.held[i] == v {
				c.frame.run.memory.drop(v)
				c.held = slices.Delete(c.held, i, i+1)
				break
			}
		}
	}
}

// letGo ends the holding of all that the call made or was given by subgraphs.
func (c *Call) letGo() {
	for _, v := range c.held {
		c.frame.run.memory.drop(v)
	}
	c.frame.run.memory.used -= c.extra
	clear(c.held)
	c.held, c.extra = c.held[:0], 0
}
