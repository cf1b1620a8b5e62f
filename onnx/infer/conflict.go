package infer

import (
	"fmt"
	"slices"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// Conflict is a place where two things that the model says cannot both hold.
type Conflict struct {
	// Node is the node at which they meet; nil when a graph's declaration is one of the two.
	Node *onnx.Node
	// Value is the value whose type is in question.
	Value *onnx.Value
	// Message tells both sides and where each comes from.
	Message string
	// Warning is set when the model runs all the same: a graph's output that is
	// declared with another type than it has, or something in a branch that may
	// never be taken.
	Warning bool
}

type conflictKey struct {
	node    *onnx.Node
	value   *onnx.Value
	message string
}

// maxConflicts bounds what is collected from one model.
const maxConflicts = 100

// Conflicts lists what has been found so far, each once, in the order of finding.
func (i *Inference) Conflicts() []Conflict { return i.conflicts }

func (i *Inference) addConflict(f Conflict) {
	k := conflictKey{f.Node, f.Value, f.Message}
	if i.seen[k] || len(i.conflicts) >= maxConflicts {
		return
	}
	i.seen[k] = true
	i.conflicts = append(i.conflicts, f)
}

// conflictf reports that the node's inputs do not go together.
func (c *call) conflictf(format string, args ...any) {
	c.addConflict(Conflict{
		Node: c.node, Value: c.node.Output(0), Warning: c.conditional(),
		Message: c.node.Where() + ": " + fmt.Sprintf(format, args...),
	})
}

// conditional says whether the node may never run: it lies in a branch that is
// not decided, or in the body of a loop.
func (c *call) conditional() bool {
	return c.undecided > 0 || c.depth == 0 && c.node.Graph().Owner() != nil
}

// describe names input i with its type and where it comes from.
func (c *call) describe(i int) string {
	v := c.node.Input(i)
	if v == nil {
		return fmt.Sprintf("input %d (left out)", i)
	}
	return fmt.Sprintf("%q %s (%s)", v.Name(), c.in(i), origin(v))
}

// origin says where a value comes from.
func origin(v *onnx.Value) string {
	switch {
	case v.Producer() != nil:
		return "made by " + v.Producer().Where()
	case v.Initializer() != nil:
		return "a stored tensor"
	}
	return "an input of " + v.Graph().Where()
}

// agreement is a number that an operator demands of a symbol.
type agreement struct {
	size  int64
	where string
}

// agree gives the one dim that dim k of input a and dim m of input b, which must
// be equal, both are.
func (c *call) agree(a, k, b, m int) Dim {
	return c.agreeDims(c.in(a).Dims[k], c.in(b).Dims[m], func() string { return c.dimsOf(a, k, b, m) })
}

// dimsOf names two dims for a message.
func (c *call) dimsOf(a, k, b, m int) string {
	return fmt.Sprintf("dim %d of %s and dim %d of %s", k, c.describe(a), m, c.describe(b))
}

// agreeDims gives the one dim that d and e are in a run that succeeds. It never
// makes two symbols one: a number says more than a symbol, and a named symbol
// more than another.
func (c *call) agreeDims(d, e Dim, what func() string) Dim {
	if d.Equal(e) {
		return d
	}
	if d.sameSize(e) {
		return d.capped()
	}
	if d.Differ(e) {
		c.conflictf("%s must be equal", what())
	}
	n, known := e.Known()
	if !known {
		d, e = e, d
		n, known = e.Known()
	}
	if known {
		c.noteAgreement(d, n)
		return e
	}
	if _, named := d.Symbol(); named || e.isNonzeroOf(d) {
		return d
	}
	if _, named := e.Symbol(); named || d.isNonzeroOf(e) || len(e.terms()) < len(d.terms()) {
		return e
	}
	return d
}

// noteAgreement remembers that a run needs the named size d to be n; a second
// number for one name is a conflict.
func (c *call) noteAgreement(d Dim, n int64) {
	s := d.bare()
	if s == nil || s.operation != opName || c.conditional() {
		return
	}
	was, ok := c.agreed[s]
	if !ok {
		c.agreed[s] = agreement{n, c.node.Where()}
	} else if was.size != n {
		c.conflictf("the dim named %q must be %d here and %d at %s", s.text, n, was.size, was.where)
	}
}

// checkDeclared holds what was found of a graph output against what the graph says.
func (i *Inference) checkDeclared(v *onnx.Value, f *Info) {
	if !slices.Contains(v.OutputOf(), v.Graph()) {
		return // its own graph declares nothing of it
	}
	if why := i.contradiction(v.Type, f); why != "" {
		i.addConflict(Conflict{
			Value: v, Warning: true,
			Message: fmt.Sprintf("%s declares output %q as %s, but %s makes %s: %s",
				v.Graph().Where(), v.Name(), v.Type, v.Producer().Where(), f, why),
		})
	}
}

// checkInput holds what a node gives to a graph inside it against what that graph declares.
func (c *call) checkInput(g *onnx.Graph, v *onnx.Value) {
	f := c.Of(v)
	if why := c.contradiction(v.Type, f); why != "" {
		c.addConflict(Conflict{
			Node: c.node, Value: v, Warning: true,
			Message: fmt.Sprintf("%s declares input %q as %s, but is given %s: %s", g.Where(), v.Name(), v.Type, f, why),
		})
	}
}

// contradiction says why a value that is f cannot have the declared type; "" when it can.
func (i *Inference) contradiction(t *onnx.Type, f *Info) string {
	switch {
	case t == nil || f.typeless():
		return ""
	case t.Kind == onnx.KindOptional && f.Kind != onnx.KindOptional:
		return i.contradiction(t.Inner, f) // what is there may stand for an optional
	case t.Kind != f.Kind:
		return "one is no tensor, or of another kind"
	case t.Elem != f.Elem && t.Elem != tensor.Undefined && f.Elem != tensor.Undefined:
		return "the element types differ"
	case t.Inner != nil && f.Inner != nil:
		return i.contradiction(t.Inner, f.Inner)
	case t.Shape == nil || !f.Ranked:
		return ""
	case len(t.Shape.Dims) != len(f.Dims):
		return "the ranks differ"
	}
	for k, d := range t.Shape.Dims {
		if d.Known && f.Dims[k].Differ(Const(d.Value)) || i.misnamed(d, f.Dims[k]) {
			return fmt.Sprintf("dim %d differs", k)
		}
	}
	return ""
}

// misnamed says whether a declared dim bears the name of a size of the inputs
// that it is not. Other names on outputs are mere labels.
func (i *Inference) misnamed(declared onnx.Dim, found Dim) bool {
	s := i.names[declared.Param]
	if s == nil || declared.Known || found.IsUnknown() {
		return false
	}
	_, number := found.Known()
	other, named := found.Symbol()
	return number || named && other != declared.Param || found.Differ(s.dim())
}
