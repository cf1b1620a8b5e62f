package optimization

import (
	"context"
	"fmt"
	"slices"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/compare"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/infer"
	"github.com/npuctl/npuctl/onnx/schema"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// randomOutputs names the outputs of a model whose values two runs need not agree on.
func randomOutputs(m *onnx.Model) map[string]bool {
	seen := map[*onnx.Value]bool{}
	var work []*onnx.Value
	for n := range m.Nodes() {
		if !drawsNumbers(n) {
			continue
		}
		work = append(work, n.Outputs()...)
		// Whatever lies around a random node may be as random.
		for g := n.Graph(); g.Owner() != nil; g = g.Owner().Graph() {
			work = append(work, g.Owner().Outputs()...)
		}
	}
	for len(work) > 0 {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		if v == nil || seen[v] {
			continue
		}
		seen[v] = true
		for _, g := range v.OutputOf() {
			if g.Owner() != nil {
				work = append(work, g.Owner().Outputs()...)
			}
		}
		for _, u := range v.Uses() {
			work = append(work, u.Node.Outputs()...)
		}
	}
	out := map[string]bool{}
	for _, v := range m.Graph.Outputs() {
		if seen[v] {
			out[v.Name()] = true
		}
	}
	return out
}

// drawsNumbers says whether a node's result is random: by its operator, in
// training, or because the function it calls is.
func drawsNumbers(n *onnx.Node) bool { return draws(n, 0) }

// maxCalls bounds functions that call functions: a file may make them call each other.
const maxCalls = 50

func draws(n *onnx.Node, depth int) bool {
	if depth > maxCalls {
		return false
	}
	if f := n.Model().Callee(n); f != nil {
		return slices.ContainsFunc(f.Body.Nodes(), func(n *onnx.Node) bool { return draws(n, depth+1) })
	}
	if schema.NonDeterministic(n.Domain, n.OpType) || n.Is("Dropout") && dropoutDraws(n) {
		return true
	}
	for _, g := range n.Subgraphs() {
		if slices.ContainsFunc(g.Nodes(), func(n *onnx.Node) bool { return draws(n, depth+1) }) {
			return true
		}
	}
	return false
}

// dropoutDraws says whether a Dropout may drop: before version 7 unless it is
// told to test, from version 12 on when its training_mode is not known to be false.
func dropoutDraws(n *onnx.Node) bool {
	if n.Opset() < 7 {
		return n.Int("is_test", 0) == 0
	}
	mode := n.Input(2)
	if mode == nil {
		return false
	}
	if c := mode.Constant(); c != nil && c.Type() == tensor.Bool && c.Len() == 1 {
		d, err := c.Dense()
		return err != nil || tensor.Data[bool](d)[0]
	}
	return true
}

// fixedAxes says, for outputs that depend on random numbers, on which axes their
// size does not: where inference gives a number or the name of an input's dim. An
// output of unknown rank has none.
func fixedAxes(ctx context.Context, m *onnx.Model, random map[string]bool) (map[string][]bool, error) {
	out := map[string][]bool{}
	if len(random) == 0 {
		return out, nil
	}
	if err := m.Graph.Sort(); err != nil {
		return nil, err
	}
	inference := infer.New(m, infer.Options{StaleDeclarations: true})
	if err := inference.Run(ctx); err != nil {
		return nil, err
	}
	for _, v := range m.Graph.Outputs() {
		if !random[v.Name()] {
			continue
		}
		axes := []bool{}
		for _, d := range inference.Of(v).Dims {
			_, isNumber := d.Known()
			_, isName := d.Symbol()
			axes = append(axes, isNumber || isName)
		}
		out[v.Name()] = axes
	}
	return out, nil
}

// compareShapes compares what two runs of a random model have in common: the kind
// of value, its type, its rank, and the sizes of the fixed axes.
func compareShapes(want, got eval.Value, fixed []bool) compare.Result {
	w, isTensor := want.(*tensor.Dense)
	g, isSame := got.(*tensor.Dense)
	problem := func(format string, args ...any) compare.Result {
		return compare.Result{Problem: fmt.Sprintf(format, args...)}
	}
	switch {
	case isTensor != isSame || !isTensor && fmt.Sprintf("%T", want) != fmt.Sprintf("%T", got):
		return problem("%T instead of %T", got, want)
	case !isTensor:
		return compare.Result{Equal: true, Cosine: 1}
	case w.Type() != g.Type() || w.Rank() != g.Rank():
		return problem("%s%v instead of %s%v", g.Type(), g.Shape(), w.Type(), w.Shape())
	}
	for axis, size := range w.Shape() {
		if axis < len(fixed) && fixed[axis] && g.Shape()[axis] != size {
			return problem("shape %v instead of %v", g.Shape(), w.Shape())
		}
	}
	return compare.Result{Equal: true, Cosine: 1}
}
