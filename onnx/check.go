package onnx

import (
	"fmt"
	"slices"
)

// Check proves that the model stands: that its graphs, values, use lists and names
// say the same of each other, that every value is made before it is read and can
// be seen there, and that whoever reads the file again will find the same wires by
// name. It is fast enough to run after every pass. A model that has just been
// opened passes once it is sorted ([Graph.Sort]) and its names do not shadow each
// other ([Model.MakeNamesUnique]), unless the file breaks a rule of the format.
//
// The error is the first thing that is wrong. What operators ask of their inputs
// and attributes is another matter: see [Model.Validate].
func (m *Model) Check() error {
	c := &checker{
		model:   m,
		inScope: make([]bool, m.nextID),
		seen:    make([]*Value, m.nextID),
		reads:   make([]int, m.nextID),
		listed:  make([]int, m.nextID),
		names:   make(map[string]*Value, m.nextID),
		graphs:  map[*Graph]bool{},
		calls:   map[*Function][]*Function{},
	}
	if err := c.functions(); err != nil {
		return err
	}
	if err := c.graph(m.Graph, nil); err != nil {
		return err
	}
	for _, f := range m.Functions {
		c.function = f
		if err := c.graph(f.Body, nil); err != nil {
			return err
		}
	}
	if err := c.links(); err != nil {
		return err
	}
	return c.recursion()
}

// checker walks a model in the order in which it would be computed.
type checker struct {
	model    *Model
	function *Function // whose body is being walked; nil for the main graph

	// By value ID:
	inScope []bool   // defined at this place of the walk, here or in a graph around
	seen    []*Value // defined somewhere
	reads   []int    // how many node inputs read it
	listed  []int    // how many graph outputs it is

	names  map[string]*Value // what each name means at this place
	nodes  []*Node           // all there are; Node.place is the index
	graphs map[*Graph]bool
	byKey  map[functionKey]*Function
	calls  map[*Function][]*Function // who calls whom; the main graph has the key nil
}

type functionKey struct{ domain, name, overload string }

func (c *checker) functions() error {
	c.byKey = make(map[functionKey]*Function, len(c.model.Functions))
	for _, f := range c.model.Functions {
		key := functionKey{CanonicalDomain(f.Domain), f.Name, f.Overload}
		if c.byKey[key] != nil {
			return fmt.Errorf("two functions are called %q", f.Name)
		}
		c.byKey[key] = f
		if f.Body == nil || f.Body.function != f {
			return fmt.Errorf("the body of function %q belongs to another function", f.Name)
		}
	}
	return nil
}

func (c *checker) graph(g *Graph, owner *Node) error {
	switch {
	case c.graphs[g]:
		return fmt.Errorf("%s stands in two places", g.Where())
	case g.model != c.model:
		return fmt.Errorf("%s belongs to another model", g.Where())
	case g.owner != owner:
		return fmt.Errorf("%s has another owner than the node that holds it", g.Where())
	case len(g.outputInfo) != len(g.outputs):
		return fmt.Errorf("%s has %d outputs and %d declarations of them", g.Where(), len(g.outputs), len(g.outputInfo))
	}
	c.graphs[g] = true
	var own scopeUndo
	for _, check := range []func(*Graph, *scopeUndo) error{c.inputs, c.initializers, c.body, c.outputs} {
		if err := check(g, &own); err != nil {
			return fmt.Errorf("%s: %w", g.Where(), err)
		}
	}
	if owner == nil {
		clear(c.names) // nothing around it
	}
	c.leave(own)
	return nil
}

// scopeUndo is what a graph has brought into scope, and what its names meant before.
type scopeUndo []struct{ defined, shadowed *Value }

// define brings a value of g into scope. Inputs of a body may bear the names of
// outer values, which then cannot be read inside; nothing else may.
func (c *checker) define(v *Value, g *Graph, own *scopeUndo) error {
	if v == nil {
		return fmt.Errorf("an input or initializer is nil")
	}
	before := c.names[v.name]
	switch {
	case v.id < 0 || v.id >= len(c.seen):
		return fmt.Errorf("value %q belongs to another model", v.name)
	case c.seen[v.id] != nil:
		return fmt.Errorf("value %q has two places, or its ID has", v.name)
	case v.graph != g:
		return fmt.Errorf("value %q thinks it is part of %s", v.name, v.graph.Where())
	case v.name == "":
		return fmt.Errorf("a value has an empty name")
	case before != nil && before.graph == g:
		return fmt.Errorf("two values bear the name %q", v.name)
	case before != nil && !v.isInput:
		return fmt.Errorf("value %q shadows the one of that name in %s", v.name, before.graph.Where())
	case c.model.names != nil && c.model.names[v.name] == 0:
		return fmt.Errorf("the name %q is not in the model's list of names", v.name)
	}
	c.seen[v.id], c.inScope[v.id], c.names[v.name] = v, true, v
	*own = append(*own, struct{ defined, shadowed *Value }{v, before})
	return nil
}

func (c *checker) leave(own scopeUndo) {
	for _, o := range slices.Backward(own) {
		c.inScope[o.defined.id] = false
		if len(c.names) == 0 {
			continue
		}
		if o.shadowed == nil {
			delete(c.names, o.defined.name)
		} else {
			c.names[o.defined.name] = o.shadowed
		}
	}
}

func (c *checker) inputs(g *Graph, own *scopeUndo) error {
	for _, v := range g.inputs {
		if err := c.define(v, g, own); err != nil {
			return err
		}
		if !v.isInput || v.producer != nil {
			return fmt.Errorf("input %q is not marked as one, or a node makes it", v.name)
		}
	}
	return nil
}

func (c *checker) initializers(g *Graph, own *scopeUndo) error {
	stored := make(map[*Value]bool, len(g.initializers))
	for _, v := range g.initializers {
		if v != nil && !v.isInput {
			if err := c.define(v, g, own); err != nil {
				return err
			}
		}
		switch {
		case v == nil || v.init == nil:
			return fmt.Errorf("an initializer holds no tensor")
		case v.producer != nil:
			return fmt.Errorf("initializer %q is made by %s as well", v.name, v.producer.Where())
		case v.isInput && (v.graph != g || !c.inScope[v.id]):
			return fmt.Errorf("initializer %q is marked as an input, but is none", v.name)
		case stored[v]:
			return fmt.Errorf("initializer %q is listed twice", v.name)
		}
		stored[v] = true
		if err := v.fits(); err != nil {
			return err
		}
	}
	for _, v := range g.inputs {
		if v.init != nil && !stored[v] {
			return fmt.Errorf("input %q has a default that is not among the initializers", v.name)
		}
	}
	return nil
}

// fits holds a stored tensor against the type that its value declares.
func (v *Value) fits() error {
	t := v.Type
	if t == nil || t.Kind == KindOpaque {
		return nil
	}
	bad := t.Elem != v.init.elem || t.Kind != KindTensor && t.Kind != KindSparseTensor
	if !bad && t.Shape != nil {
		bad = !slices.EqualFunc(t.Shape.Dims, v.init.dims, func(d Dim, n int) bool {
			return !d.Known || d.Value == int64(n)
		})
	}
	if bad {
		return fmt.Errorf("initializer %q is declared %s, but its tensor is %s", v.name, t, TensorType(v.init.elem, v.init.dims...))
	}
	return nil
}

func (c *checker) body(g *Graph, own *scopeUndo) error {
	removed := 0
	for _, n := range g.nodes {
		if n.removed {
			removed++
			continue
		}
		if err := c.node(n, g, own); err != nil {
			return fmt.Errorf("%s: %w", n.Where(), err)
		}
	}
	if removed != g.removed {
		return fmt.Errorf("%d removed nodes are counted as %d", removed, g.removed)
	}
	return nil
}

func (c *checker) node(n *Node, g *Graph, own *scopeUndo) error {
	switch {
	case c.has(n):
		return fmt.Errorf("it stands in two places")
	case n.graph != g:
		return fmt.Errorf("it thinks it is part of %s", n.graph.Where())
	case n.Opset() == 0:
		return fmt.Errorf("the model, or function, imports no opset for its domain %q; the export should list one in opset_import", n.Domain)
	}
	n.place = len(c.nodes)
	c.nodes = append(c.nodes, n)
	if f := c.byKey[functionKey{n.CanonicalDomain(), n.OpType, n.Overload}]; f != nil {
		c.calls[c.function] = append(c.calls[c.function], f)
	}
	for i, v := range n.inputs {
		if v == nil {
			continue
		}
		if err := c.read(v); err != nil {
			return fmt.Errorf("input %d: %w", i, err)
		}
		c.reads[v.id]++
	}
	for _, a := range n.attributes {
		for _, s := range a.graphs {
			if err := c.graph(s, n); err != nil {
				return err
			}
		}
	}
	for _, v := range n.outputs {
		if v == nil {
			continue
		}
		if err := c.define(v, g, own); err != nil {
			return err
		}
		if v.producer != n || v.init != nil || v.isInput {
			return fmt.Errorf("output %q thinks it is made by something else", v.name)
		}
	}
	return nil
}

// has says whether the walk has met the node.
func (c *checker) has(n *Node) bool { return n.place < len(c.nodes) && c.nodes[n.place] == n }

// read proves that a value can be read at this place, and that its name says so.
func (c *checker) read(v *Value) error {
	switch {
	case v.id < 0 || v.id >= len(c.inScope):
		return fmt.Errorf("value %q belongs to another model", v.name)
	case c.inScope[v.id] && c.names[v.name] == v:
		return nil
	case c.inScope[v.id]:
		return fmt.Errorf("value %q is meant, but another one bears that name here", v.name)
	case v.producer != nil && v.producer.removed:
		return fmt.Errorf("value %q was made by a node that has been removed", v.name)
	case !v.exists():
		return fmt.Errorf("value %q is made by nothing any more", v.name)
	}
	return fmt.Errorf("value %q of %s cannot be seen here, or is made later", v.name, v.graph.Where())
}

func (c *checker) outputs(g *Graph, _ *scopeUndo) error {
	for i, v := range g.outputs {
		if v == nil {
			return fmt.Errorf("output %d is nil", i)
		}
		if err := c.read(v); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
		if v.graph != g {
			return fmt.Errorf("output %d is value %q of %s, which must not be given back directly; it takes an Identity", i, v.name, v.graph.Where())
		}
		c.listed[v.id]++
		if !slices.Contains(v.outputOf, g) {
			return fmt.Errorf("output %d: value %q does not know that it is one", i, v.name)
		}
	}
	return nil
}

// links holds the use lists of values against what the walk has met.
func (c *checker) links() error {
	for id, v := range c.seen {
		if v == nil {
			continue
		}
		if len(v.uses) != c.reads[id] {
			return fmt.Errorf("value %q has %d readers and lists %d", v.name, c.reads[id], len(v.uses))
		}
		if len(v.outputOf) != c.listed[id] {
			return fmt.Errorf("value %q is listed %d times as an output and knows of %d", v.name, c.listed[id], len(v.outputOf))
		}
		for i, u := range v.uses {
			if !c.has(u.Node) || u.Input >= len(u.Node.inputs) || u.Node.inputs[u.Input] != v {
				return fmt.Errorf("value %q lists %s among its readers, which does not read it there", v.name, u.Node.Where())
			}
			if u.Node.slots[u.Input] != int32(i) { // so none is listed twice either
				return fmt.Errorf("value %q lists %s at %d, and that thinks it is at %d", v.name, u.Node.Where(), i, u.Node.slots[u.Input])
			}
		}
	}
	return nil
}

// recursion is the rule that no function may call itself.
func (c *checker) recursion() error {
	if caller, callee := recursion(c.model.Functions, c.calls); caller != nil {
		return fmt.Errorf("function %q calls itself, through %q", callee.Name, caller.Name)
	}
	return nil
}

// recursion finds a function that calls itself, directly or through others, and the
// one whose call closes the circle; nil when there is none.
func recursion(functions []*Function, calls map[*Function][]*Function) (caller, callee *Function) {
	const (
		open = 1
		done = 2
	)
	state := map[*Function]int{}
	type frame struct {
		f    *Function
		next int
	}
	for _, root := range functions {
		for stack := []frame{{root, 0}}; len(stack) > 0 && state[root] != done; {
			top := &stack[len(stack)-1]
			state[top.f] = open
			called := calls[top.f]
			if top.next == len(called) {
				state[top.f] = done
				stack = stack[:len(stack)-1]
				continue
			}
			callee := called[top.next]
			top.next++
			switch state[callee] {
			case open:
				return top.f, callee
			case 0:
				stack = append(stack, frame{callee, 0})
			}
		}
	}
	return nil, nil
}
