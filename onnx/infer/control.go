package infer

import (
	"slices"

	"github.com/npuctl/npuctl/onnx"
)

// controlOperators run graphs.
var controlOperators = []operator{
	{name: "If", since: 1, rule: branch},
}

// graph gives the graph that an attribute holds, or nil.
func (c *call) graph(name string) *onnx.Graph {
	if a := c.attribute(name); a != nil {
		return a.Graph()
	}
	return nil
}

// runGraph infers a graph inside the node, for inputs of which so much is known.
// ok is false when graphs nest beyond reason.
func (c *call) runGraph(g *onnx.Graph, inputs ...Info) (outputs []*Info, ok bool) {
	if g == nil || c.overLimit() {
		return nil, false
	}
	c.depth++
	defer func() { c.depth-- }()
	for k, v := range g.Inputs() {
		f := Info{}
		if k < len(inputs) {
			f = inputs[k]
		}
		c.Set(v, f)
		c.checkInput(g, v)
	}
	for _, n := range g.Nodes() {
		c.Node(n)
	}
	for _, v := range g.Outputs() {
		outputs = append(outputs, c.Of(v))
	}
	return outputs, true
}

// branch is If. When the condition is known the other branch is not looked at:
// it may make no sense for these shapes. Else what both say holds.
func branch(c *call) {
	if taken, known := c.integer(0); known {
		name := "else_branch"
		if taken != 0 {
			name = "then_branch"
		}
		outputs, _ := c.runGraph(c.graph(name))
		for k, f := range outputs {
			c.set(k, *f)
		}
		return
	}
	c.undecided++
	defer func() { c.undecided-- }()
	yes, ok := c.runGraph(c.graph("then_branch"))
	no, okToo := c.runGraph(c.graph("else_branch"))
	if !ok || !okToo || len(yes) != len(no) {
		return
	}
	for k := range yes {
		c.set(k, yes[k].meet(no[k], Unknown))
	}
}

// callFunction infers a local function's body for this call. Afterwards the
// body's values are as they were: what holds for one call need not for another.
func (c *call) callFunction(f *onnx.Function) {
	if c.overLimit() {
		return
	}
	attributes := map[string]*onnx.Attribute{}
	for _, a := range f.Defaults {
		attributes[a.Name()] = a
	}
	for _, a := range c.node.Attributes() {
		if bound := c.attribute(a.Name()); bound != nil {
			attributes[a.Name()] = bound
		}
	}
	restore := c.remember(f.Body)
	defer restore()
	outer := c.scope
	c.scope = &scope{attributes}
	defer func() { c.scope = outer }()

	outputs, _ := c.runBody(f.Body)
	for k, out := range outputs {
		c.set(k, *out)
	}
}

// runBody infers a function body on the call's inputs; those left out are left
// out inside.
func (c *call) runBody(body *onnx.Graph) ([]*Info, bool) {
	inputs := make([]Info, len(body.Inputs()))
	for k := range inputs {
		inputs[k] = *c.in(k)
		inputs[k].leftOut = !c.has(k)
	}
	return c.runGraph(body, inputs...)
}

// remember notes what is known inside a graph; the function that it returns
// brings that back.
func (i *Inference) remember(g *onnx.Graph) (restore func()) {
	type entry struct {
		id   int
		info *Info
	}
	var was []entry
	i.visitValues(g, func(v *onnx.Value) { was = append(was, entry{v.ID(), *i.at(v.ID())}) })
	return func() {
		for _, e := range was {
			*i.at(e.id) = e.info
		}
	}
}

// visitValues calls f with every value defined in g and the graphs inside it.
func (i *Inference) visitValues(g *onnx.Graph, f func(*onnx.Value)) {
	for v := range g.Values() {
		f(v)
	}
	for _, n := range g.Nodes() {
		for _, inner := range n.Subgraphs() {
			i.visitValues(inner, f)
		}
	}
}

// carried follows the values that a loop hands from one round to the next, until
// nothing more has to be given up for all rounds to agree.
type carried struct {
	call    *call
	mark    int // symbols made since belong to one round
	state   []Info
	widened [][]bool // dims that differ from round to round
}

func (c *call) newCarried(initial []Info) *carried {
	s := &carried{call: c, mark: c.serial(), state: initial, widened: make([][]bool, len(initial))}
	for k := range initial {
		f := &s.state[k]
		f.values, f.constant = f.Values(), nil
		s.widened[k] = make([]bool, len(f.Dims))
	}
	return s
}

// maxRounds bounds how often a body is inferred; after that only types are kept.
const maxRounds = 8

// settle infers the body again and again until the state that goes in holds
// for what comes out as well. body infers it and gives what comes out.
func (s *carried) settle(body func(state []Info) (next []*Info, ok bool)) bool {
	s.call.undecided++ // it may run no round at all
	defer func() { s.call.undecided-- }()
	for range maxRounds {
		next, ok := body(s.snapshot())
		if !ok || len(next) < len(s.state) {
			return false
		}
		changed := false
		for k := range s.state {
			changed = s.absorb(k, next[k]) || changed
		}
		if !changed {
			return true
		}
	}
	for k := range s.state {
		f := &s.state[k]
		f.Ranked, f.Dims, f.values = false, nil, nil
	}
	_, ok := body(s.snapshot())
	return ok
}

// snapshot gives the state as one round sees it: symbols that the round gives to
// unknown elements are not the state's.
func (s *carried) snapshot() []Info {
	state := slices.Clone(s.state)
	for k := range state {
		state[k].values = slices.Clone(state[k].values)
	}
	return state
}

// absorb makes state k hold for next too, and says whether that changed it.
func (s *carried) absorb(k int, next *Info) (changed bool) {
	f := &s.state[k]
	if f.typeless() || f.Kind != next.Kind && !next.typeless() {
		// An optional may come out as what it holds: then that is its type from then on.
		f.Kind, f.Elem, f.Inner = next.Kind, next.Elem, next.Inner
		changed = !next.typeless()
	}
	if f.Inner != nil && next.Inner != nil {
		met := f.meet(next, Unknown)
		changed = changed || !met.Inner.sameType(f.Inner)
		f.Inner = met.Inner
	}
	if f.Ranked && (!next.Ranked || len(next.Dims) != len(f.Dims)) {
		f.Ranked, f.Dims, f.values = false, nil, nil
		return true
	}
	for d := range f.Dims {
		if !s.widened[k][d] && !f.Dims[d].Equal(next.Dims[d]) {
			f.Dims = slices.Clone(f.Dims)
			f.Dims[d], s.widened[k][d], changed = s.call.fresh(), true, true
		}
	}
	return f.absorbValues(next) || changed
}

// absorbValues keeps the elements that are the same in next, and says whether any is given up.
func (f *Info) absorbValues(next *Info) (changed bool) {
	if f.values == nil {
		return false
	}
	was := f.values
	f.values = meetValues(was, next.Values())
	return f.values == nil || !slices.EqualFunc(was, f.values, func(v, w Value) bool { return v.IsUnknown() == w.IsUnknown() })
}

// outside gives what is known of f after the loop: sizes and elements that
// belong to one round are new unknowns there.
func (s *carried) outside(f Info) Info {
	f.Dims = slices.Clone(f.Dims)
	for d := range f.Dims {
		if f.Dims[d].newest() > s.mark {
			f.Dims[d] = Unknown()
		}
	}
	if f.Inner != nil {
		inner := s.outside(*f.Inner)
		f.Inner = &inner
	}
	if f.values != nil {
		f.values = slices.Clone(f.values)
		for i, v := range f.values {
			if v.numerator.newest() > s.mark {
				f.values[i] = Value{}
			}
		}
	}
	return f
}
