package eval

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// TryMutant changes a model and its inputs a little, as a number says, in ways that
// get past first checks, and runs it: kernels may refuse, but must return.
func TryMutant(t *testing.T, name string, m *onnx.Model, inputs map[string]Value, seed uint64) {
	for _, v := range m.Graph.Inputs() {
		v.Type = nil // so that Run takes whatever comes
	}
	u := &mutator{nonsense{rand.New(rand.NewPCG(seed, 7))}}
	u.mutate(m.Graph, inputs)
	p, err := Prepare(m, Options{Threads: 1, MaxBytes: 64 << 20})
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if complaint := observeRun(ctx, p, inputs, 1<<30); complaint != "" {
		t.Errorf("%s, seed %d: %s", name, seed, complaint)
	}
}

// mutator changes nodes and inputs.
type mutator struct{ nonsense }

// mutate makes one or two changes.
func (u *mutator) mutate(g *onnx.Graph, inputs map[string]Value) {
	for range 1 + u.IntN(2) {
		if u.IntN(3) == 0 && len(g.Nodes()) > 0 {
			u.mutateNode(g.Nodes()[u.IntN(len(g.Nodes()))])
		} else {
			u.mutateInput(g, inputs)
		}
	}
}

func (u *mutator) mutateInput(g *onnx.Graph, inputs map[string]Value) {
	if len(g.Inputs()) == 0 {
		return
	}
	name := g.Inputs()[u.IntN(len(g.Inputs()))].Name()
	d, ok := inputs[name].(*tensor.Dense)
	if !ok {
		return
	}
	switch u.IntN(4) {
	case 0:
		inputs[name] = u.reshaped(d)
	case 1, 2:
		inputs[name] = u.renumbered(d)
	default:
		inputs[name] = u.array(d.Type(), d.Shape())
	}
}

// reshaped changes a dim, or the rank; elements repeat or go.
func (u *mutator) reshaped(d *tensor.Dense) *tensor.Dense {
	shape := slices.Clone(d.Shape())
	switch {
	case len(shape) == 0 || u.IntN(6) == 0:
		shape = append(shape, 1+u.IntN(2))
	case u.IntN(6) == 0:
		shape = shape[1:]
	default:
		axis := u.IntN(len(shape))
		shape[axis] = []int{0, 1, 2, shape[axis] + 1, max(shape[axis]-1, 0), 2 * shape[axis]}[u.IntN(6)]
	}
	out, err := tensor.New(d.Type(), shape...)
	if err != nil || d.Len() == 0 {
		return d
	}
	for at := 0; at < out.Len(); at += d.Len() {
		copyPart(out, at, d, 0, min(d.Len(), out.Len()-at))
	}
	return out
}

// renumbered changes some elements.
func (u *mutator) renumbered(d *tensor.Dense) *tensor.Dense {
	out, err := tensor.New(d.Type(), d.Shape()...)
	if err != nil || d.Len() == 0 {
		return d
	}
	copyPart(out, 0, d, 0, d.Len())
	odd := u.array(d.Type(), d.Shape())
	for range 1 + u.IntN(3) {
		if at := u.IntN(d.Len()); at < odd.Len() {
			copyPart(out, at, odd, at, 1)
		}
	}
	return out
}

// mutateNode changes an attribute, or leaves an input out.
func (u *mutator) mutateNode(n *onnx.Node) {
	if len(n.Attributes()) == 0 || u.IntN(5) == 0 {
		if len(n.Inputs()) > 0 {
			n.SetInput(u.IntN(len(n.Inputs())), nil)
		}
		return
	}
	a := n.Attributes()[u.IntN(len(n.Attributes()))]
	switch a.Kind() {
	case onnx.AttributeInt:
		n.SetAttribute(onnx.IntAttribute(a.Name(), u.whole()))
	case onnx.AttributeFloat:
		n.SetAttribute(onnx.FloatAttribute(a.Name(), float32(u.number())))
	case onnx.AttributeString:
		n.SetAttribute(onnx.StringAttribute(a.Name(), words[u.IntN(len(words))]))
	case onnx.AttributeInts:
		list := slices.Clone(a.Ints())
		if len(list) > 0 && u.IntN(4) > 0 {
			list[u.IntN(len(list))] = u.whole()
		} else {
			list = append(list, u.whole())
		}
		n.SetAttribute(onnx.IntsAttribute(a.Name(), list...))
	case onnx.AttributeFloats:
		n.SetAttribute(onnx.FloatsAttribute(a.Name(), append(slices.Clone(a.Floats()), 1)...))
	default:
		n.DropAttribute(a.Name())
	}
}
