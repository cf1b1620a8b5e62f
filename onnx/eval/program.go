package eval

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// Options says how a program runs. The zero value is the default.
type Options struct {
	// Threads is how many cores a run may use; 0 means all there are.
	Threads int
	// MaxBytes bounds the arrays that are alive at one time, weights and inputs apart; 0 means DefaultMaxBytes.
	MaxBytes int64
	// Observe is called, when set, with every node after it ran, those inside
	// subgraphs and functions too; for profiles and for finding the first
	// difference. Constant nodes do not run. The slice is reused, and Run may
	// call from several goroutines when it is called from several.
	Observe func(n *onnx.Node, outputs []Value)
}

// DefaultMaxBytes is the memory that intermediate results may take unless the caller says otherwise.
const DefaultMaxBytes = 8 << 30

// Program is a model made ready to run. It may run in several goroutines at once.
// The model must not be edited after [Prepare].
type Program struct {
	model   *onnx.Model
	options Options
	table   operatorTable
	plans   plans
	// unfolded is what the model's sparse tensors take as dense ones.
	unfolded int64
}

// Prepare makes a program of a model, whose nodes it sorts. It needs no types and
// no shapes. Operators that the interpreter lacks are all named in one error.
func Prepare(m *onnx.Model, o Options) (*Program, error) {
	for _, f := range m.Functions {
		if err := f.Body.Sort(); err != nil {
			return nil, err
		}
	}
	if err := m.Graph.Sort(); err != nil {
		return nil, err
	}
	p := &Program{model: m, options: o, table: table(), plans: plans{}}
	p.plans.add(m.Graph, p.table, nil)
	if err := p.checkSupport(); err != nil {
		return nil, err
	}
	if err := p.checkRecursion(); err != nil {
		return nil, err
	}
	for _, plan := range p.plans {
		p.unfolded += plan.unfolded
	}
	memory := newMemory(o.MaxBytes, false)
	if err := memory.fits(p.unfolded); err != nil {
		return nil, fmt.Errorf("unfold the model's sparse tensors: %w", err)
	}
	return p, nil
}

// checkSupport looks for nodes that can be reached and have no kernel.
func (p *Program) checkSupport() error {
	var missing []error
	seen := map[string]bool{}
	for g := range p.model.Graphs() {
		plan := p.plans[g]
		if plan == nil {
			continue // a function that nobody calls
		}
		for _, s := range plan.steps {
			name := fmt.Sprintf("%s of domain %q at opset %d", s.node.OpType, s.node.Domain, s.opset)
			if s.run == nil && s.callee == nil && !seen[name] {
				seen[name] = true
				missing = append(missing, fmt.Errorf("operator %s (%s): %w", name, s.node.Where(), ErrUnsupported))
			}
		}
	}
	return errors.Join(missing...)
}

// checkRecursion refuses functions that call themselves, directly or through others.
func (p *Program) checkRecursion() error {
	const (
		open = 1
		done = 2
	)
	state := map[*onnx.Function]int{}
	var visit func(g *onnx.Graph) error
	visit = func(g *onnx.Graph) error {
		for _, s := range p.plans[g].steps {
			for _, h := range s.node.Subgraphs() {
				if err := visit(h); err != nil {
					return err
				}
			}
			switch {
			case s.callee == nil || state[s.callee] == done:
				continue
			case state[s.callee] == open:
				return fmt.Errorf("%s: function %q calls itself, which ONNX forbids", s.node.Where(), s.callee.Name)
			}
			state[s.callee] = open
			if err := visit(s.callee.Body); err != nil {
				return err
			}
			state[s.callee] = done
		}
		return nil
	}
	return visit(p.model.Graph)
}

// Run computes the graph outputs named in outputs (nil: all of them) from the
// graph inputs by name. Inputs with a default may be left out. It ends with the
// context's error soon after the context is done.
func (p *Program) Run(ctx context.Context, inputs map[string]Value, outputs []string) (map[string]Value, error) {
	ordered, err := p.orderInputs(inputs)
	if err != nil {
		return nil, err
	}
	r := &run{
		ctx: ctx, table: p.table, plans: p.plans, fixed: true,
		threads: p.options.Threads, observe: p.options.Observe, memory: newMemory(p.options.MaxBytes, true),
	}
	r.memory.used = p.unfolded
	results, err := r.runGraph(p.model.Graph, nil, nil, ordered)
	if err != nil {
		return nil, err
	}
	return pick(p.model.Graph, results, outputs)
}

// orderInputs lists the given inputs in the graph's order.
func (p *Program) orderInputs(inputs map[string]Value) ([]Value, error) {
	ordered := make([]Value, len(p.model.Graph.Inputs()))
	used := 0
	for i, v := range p.model.Graph.Inputs() {
		given := inputs[v.Name()]
		switch {
		case given == nil && v.Initializer() == nil:
			return nil, fmt.Errorf("input %q is missing", v.Name())
		case given == nil:
			continue
		case isFixed(v):
			return nil, fmt.Errorf("input %q is a constant: before IR version 4, which the model is of, initializers cannot be set", v.Name())
		}
		if err := checkInput(v, given); err != nil {
			return nil, err
		}
		ordered[i] = given
		used++
	}
	if used < len(inputs) {
		for name := range inputs {
			if !slices.ContainsFunc(p.model.Graph.Inputs(), func(v *onnx.Value) bool { return v.Name() == name }) {
				return nil, fmt.Errorf("the model has no input %q", name)
			}
		}
	}
	return ordered, nil
}

func checkInput(v *onnx.Value, given Value) error {
	d, isTensor := given.(*tensor.Dense)
	if !v.Type.IsTensor() || !isTensor {
		return nil
	}
	if v.Type.Elem != tensor.Undefined && d.Type() != v.Type.Elem {
		return fmt.Errorf("input %q is %s, the model wants %s", v.Name(), d.Type(), v.Type.Elem)
	}
	s := v.Type.Shape
	if s == nil {
		return nil
	}
	bad := len(s.Dims) != d.Rank()
	for i := 0; !bad && i < d.Rank(); i++ {
		bad = s.Dims[i].Known && int(s.Dims[i].Value) != d.Shape()[i]
	}
	if bad {
		return fmt.Errorf("input %q has shape %v, the model wants %s", v.Name(), d.Shape(), s)
	}
	return nil
}

func pick(g *onnx.Graph, results []Value, names []string) (map[string]Value, error) {
	all := map[string]Value{}
	for i, v := range g.Outputs() {
		all[v.Name()] = results[i]
	}
	if names == nil {
		return all, nil
	}
	out := map[string]Value{}
	for _, name := range names {
		v, ok := all[name]
		if !ok {
			return nil, fmt.Errorf("the model has no output %q", name)
		}
		out[name] = v
	}
	return out, nil
}

// Fold computes one node from the values of its inputs, strictly: undefined
// results are errors, and the arrays it makes may take at most maxBytes (0 means
// DefaultMaxBytes). Nodes inside its subgraphs count, too, and may not be
// endlessly many. lookup gives the constants that subgraphs of the node capture;
// it may be nil. Nodes that take attributes from a function around are refused.
func Fold(ctx context.Context, n *onnx.Node, inputs []Value, lookup func(*onnx.Value) (Value, bool), maxBytes int64) ([]Value, error) {
	if n.HasReferences() {
		return nil, fmt.Errorf("%s: attributes stand for those of the function around: %w", n.Where(), ErrUnsupported)
	}
	callee := n.Model().Callee(n)
	// One allocation for all that is needed: folding calls this very often.
	var f struct {
		run   run
		frame frame
		call  Call
	}
	nested := callee != nil || len(n.Subgraphs()) > 0
	f.run = run{ctx: ctx, table: table(), threads: 1, strict: true, lookup: lookup, memory: newMemory(maxBytes, nested)}
	f.frame.run = &f.run
	f.call = Call{Node: n, Opset: n.Opset(), Inputs: inputs, Outputs: make([]Value, len(n.Outputs())), frame: &f.frame}
	if err := f.run.step(); err != nil {
		return nil, err
	}
	if err := f.call.run(f.run.table.lookup(n), callee); err != nil {
		return nil, err
	}
	return f.call.Outputs, nil
}
