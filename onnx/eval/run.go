package eval

import (
	"context"
	"fmt"
	"runtime"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// run is one execution of a program, or of one node. One goroutine works on it;
// kernels may spread a loop over others with [Call.Parallel].
type run struct {
	ctx     context.Context
	table   operatorTable
	plans   plans
	fixed   bool // plans is complete and shared with other runs
	threads int
	strict  bool
	lookup  func(*onnx.Value) (Value, bool)
	observe func(*onnx.Node, []Value)
	memory  memory
	depth   int // nested subgraphs and function calls
	steps   int // nodes computed so far
}

// maxCallDepth bounds nested graphs and calls.
const maxCallDepth = 200

// maxFoldSteps bounds the nodes that folding one node may compute, inside its
// subgraphs: a loop of constant inputs need not end.
const maxFoldSteps = 1 << 18

func (r *run) cores() int {
	if r.threads > 0 {
		return r.threads
	}
	return runtime.GOMAXPROCS(0)
}

// parallel splits 0..n into equal pieces, at most one a core, none below grain.
func (r *run) parallel(n, grain int, f func(first, last int)) {
	pieces := min(r.cores(), n/max(grain, 1))
	if pieces <= 1 {
		if n > 0 {
			f(0, n)
		}
		return
	}
	var others workers
	for i := 1; i < pieces; i++ {
		others.start(func() { f(i*n/pieces, (i+1)*n/pieces) })
	}
	defer others.wait()
	f(0, n/pieces)
}

func (r *run) planOf(g *onnx.Graph) (*plan, error) {
	if p, ok := r.plans[g]; ok || r.fixed {
		return p, nil
	}
	// A folded node's subgraph: the values around it are the caller's to look up.
	if r.plans == nil {
		r.plans = plans{}
	}
	p := r.plans.add(g, r.table, nil)
	if err := r.memory.fits(p.unfolded); err != nil {
		return nil, fmt.Errorf("sparse tensors of %s: %w", g.Where(), err)
	}
	r.memory.used += p.unfolded
	return p, nil
}

// frame holds the values of one graph while it runs.
type frame struct {
	run    *run
	outer  *frame
	plan   *plan
	values []Value                    // by slot
	bound  map[string]*onnx.Attribute // attributes of the function around, by name; nil outside functions
	call   Call                       // the step at hand
}

// runGraph computes a graph in a new frame. The caller holds the results then.
func (r *run) runGraph(g *onnx.Graph, outer *frame, bound map[string]*onnx.Attribute, inputs []Value) ([]Value, error) {
	r.depth++
	defer func() { r.depth-- }()
	if r.depth > maxCallDepth {
		return nil, fmt.Errorf("%s: graphs and calls nested deeper than %d", g.Where(), maxCallDepth)
	}
	if len(inputs) > len(g.Inputs()) {
		return nil, fmt.Errorf("%s takes %d inputs, not %d", g.Where(), len(g.Inputs()), len(inputs))
	}
	p, err := r.planOf(g)
	if err != nil {
		return nil, err
	}
	if p.refers && bound == nil {
		return nil, fmt.Errorf("%s: a node refers to an attribute of a function around it, but is in none: %w", g.Where(), ErrUnsupported)
	}
	f := &frame{run: r, outer: outer, plan: p, values: make([]Value, p.slots), bound: bound}
	defer f.close()
	if err := f.setInputs(inputs); err != nil {
		return nil, err
	}
	if err := f.runSteps(); err != nil {
		return nil, err
	}
	return f.results()
}

// setInputs fills the slots of the graph's inputs. What nobody holds yet is the
// caller's, and free.
func (f *frame) setInputs(inputs []Value) error {
	for i, otherwise := range f.plan.defaults {
		if i < len(inputs) && inputs[i] != nil {
			f.values[i] = inputs[i]
		} else if otherwise != nil {
			d, err := otherwise.load()
			if err != nil {
				return err
			}
			f.values[i] = d
		}
		if err := f.run.memory.hold(f.values[i], always); err != nil {
			return err
		}
	}
	return nil
}

func (f *frame) runSteps() error {
	p := f.plan
	inputs, outputs := make([]Value, p.reads), make([]Value, p.writes)
	for i := range p.steps {
		s := &p.steps[i]
		if err := f.run.step(); err != nil {
			return err
		}
		for k, from := range s.inputs {
			var err error
			if inputs[k], err = f.read(from); err != nil {
				return fmt.Errorf("%s: input %d: %w", s.node.Where(), k, err)
			}
		}
		c := &f.call
		*c = Call{Node: s.node, Opset: s.opset, Inputs: inputs[:len(s.inputs)], Outputs: outputs[:len(s.outputs)], frame: f, step: s, held: c.held[:0]}
		if err := c.run(s.run, s.callee); err != nil {
			return err
		}
		if f.run.observe != nil {
			f.run.observe(s.node, c.Outputs)
		}
		if err := f.keep(c, s); err != nil {
			return fmt.Errorf("%s: %w", s.node.Where(), err)
		}
		clear(inputs)
		clear(outputs)
	}
	return nil
}

// step counts a node, and says when the run has to end.
func (r *run) step() error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if r.steps++; r.strict && r.steps > maxFoldSteps {
		return fmt.Errorf("%w: folding would compute more than %d nodes", ErrBudget, maxFoldSteps)
	}
	return nil
}

// keep puts the outputs of a finished call into their slots, and lets go of what
// the call held and of values that were read for the last time.
func (f *frame) keep(c *Call, s *step) error {
	for k, slot := range s.outputs {
		if slot < 0 || c.Outputs[k] == nil {
			continue
		}
		if err := f.run.memory.hold(c.Outputs[k], c.isInput); err != nil {
			return err
		}
		f.values[slot] = c.Outputs[k]
	}
	c.letGo()
	for _, slot := range s.release {
		f.run.memory.drop(f.values[slot])
		f.values[slot] = nil
	}
	return nil
}

// read gives a value of this frame or one around it, or a constant; nil for an
// input that is left out.
func (f *frame) read(from source) (Value, error) {
	switch {
	case from.constant != nil:
		return from.constant.load()
	case from.outside != nil:
		if f.run.lookup != nil {
			if v, ok := f.run.lookup(from.outside); ok {
				return v, nil
			}
		}
		return nil, fmt.Errorf("value %q is not known here", from.outside.Name())
	case from.slot < 0:
		return nil, nil
	}
	g := f
	for range from.up {
		g = g.outer
	}
	v := g.values[from.slot]
	if v == nil && !(g.plan.optional && from.slot < len(g.plan.defaults)) {
		return nil, fmt.Errorf("a value it reads has not been computed")
	}
	return v, nil
}

// results gives the graph's outputs, with a holder for each.
func (f *frame) results() ([]Value, error) {
	out := make([]Value, len(f.plan.outputs))
	for i, from := range f.plan.outputs {
		var err error
		if out[i], err = f.read(from); err == nil {
			err = f.run.memory.hold(out[i], always)
		}
		if err != nil {
			g := f.plan.graph
			return nil, fmt.Errorf("output %q of %s: %w", g.Outputs()[i].Name(), g.Where(), err)
		}
	}
	return out, nil
}

// close lets go of what is left in the slots.
func (f *frame) close() {
	if f.run.memory.held == nil {
		return
	}
	for _, v := range f.values {
		f.run.memory.drop(v)
	}
}

// callFunction computes a local function's body with the call's attributes bound.
func (f *frame) callFunction(c *Call, callee *onnx.Function) error {
	bound := map[string]*onnx.Attribute{}
	for _, a := range callee.Defaults {
		bound[a.Name()] = a
	}
	for _, a := range c.Node.Attributes() {
		if given := c.Attribute(a.Name()); given != nil {
			bound[a.Name()] = given
		}
	}
	out, err := f.run.runGraph(callee.Body, nil, bound, c.Inputs)
	if err != nil {
		return fmt.Errorf("in %s: %w", c.Node.Where(), err)
	}
	c.held = append(c.held, out...)
	if len(out) < len(c.Outputs) {
		return c.Errorf("the function gives %d outputs, the node has %d", len(out), len(c.Outputs))
	}
	copy(c.Outputs, out)
	return nil
}

// isInput says whether d stands on the memory of one of the call's inputs, which
// is somebody's already.
func (c *Call) isInput(d *tensor.Dense) bool {
	for _, v := range c.Inputs {
		if in, ok := v.(*tensor.Dense); ok && in.Len() > 0 && address(in) == address(d) {
			return true
		}
	}
	return false
}
