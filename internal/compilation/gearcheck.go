package compilation

import (
	"context"
	"fmt"
	"slices"

	"github.com/npuctl/npuctl/gears"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/infer"
	"github.com/npuctl/npuctl/soc"
)

// checkGears follows each gear through the graph: ATC compiles them one after the other,
// so that the last one may fail after an hour. A gear whose sizes contradict each other
// in some node is refused, and so are shapes that depend on data, which ATC's guide
// forbids beside gears. A shape that is only not known here is noted: ATC may know more,
// of operators of other domains for example.
//
// The model's inputs have their own types again afterwards.
func (b *build) checkGears(ctx context.Context, m *onnx.Model) error {
	if b.shapes.kind != GearsKind {
		return nil
	}
	if err := m.Graph.Sort(); err != nil {
		return b.sort(err)
	}
	open, err := inferred(ctx, m)
	if err != nil {
		return err
	}
	types := map[*onnx.Value]*onnx.Type{}
	for _, v := range fedInputs(m) {
		types[v] = v.Type
	}
	defer func() {
		for v, t := range types {
			v.Type = t
		}
	}()
	var unclear []string
	first := ""
	for i, gear := range b.shapes.plan.Gears {
		b.say("checking gear %s, %d of %d", gears.Text(gear), i+1, len(b.shapes.plan.Gears))
		for v, t := range types {
			v.Type = gearType(*b.shapes.plan, gear, v.Name(), t)
		}
		inference, err := inferred(ctx, m)
		if err != nil {
			return err
		}
		if c := newConflict(inference, open); c != nil {
			return fault.New(b.job.wishes.family("gears"), "%s: the gear %s of %s does not go through the model: %s", b.job.wishes.name("gears"), gears.Text(gear), b.model, c.Message).
				With("leave that gear out, or give it sizes that go together")
		}
		node, known := openShape(m.Graph, inference)
		switch {
		case node == nil:
		case known:
			return fault.New(fault.Goal, "%s: the shape of what %s gives depends on data, which ATC does not take beside gears", b.model, node.Where()).
				With("compile it with --dynamic, or end the model before that node")
		default:
			unclear = append(unclear, gears.Text(gear))
			first = node.Where()
		}
	}
	if len(unclear) > 0 {
		b.note(fmt.Sprintf("with %d of %d gears (%s) the shape of what %s gives is not known before running, and ATC takes no such shapes beside gears", len(unclear), len(b.shapes.plan.Gears), unclear[0], first))
	}
	return nil
}

func inferred(ctx context.Context, m *onnx.Model) (*infer.Inference, error) {
	i := infer.New(m, infer.Options{StaleDeclarations: true})
	return i, i.Run(ctx)
}

// gearType is the type of an input in a gear.
func gearType(plan gears.Plan, gear []int64, input string, t *onnx.Type) *onnx.Type {
	if t == nil || t.Shape == nil {
		return t
	}
	dims := slices.Clone(t.Shape.Dims)
	for i := range dims {
		if size, isSet := plan.SizeAt(gear, gears.Place{Input: input, Dim: i}); isSet {
			dims[i] = onnx.KnownDim(int(size))
		}
	}
	return t.WithShape(&onnx.Shape{Dims: dims})
}

// newConflict is a contradiction that fixed sizes bring, at a node that has none with
// open ones; nil without.
func newConflict(fixed, open *infer.Inference) *infer.Conflict {
	old := map[*onnx.Node]bool{}
	for _, c := range open.Conflicts() {
		old[c.Node] = true
	}
	for _, c := range fixed.Conflicts() {
		if !c.Warning && c.Node != nil && !old[c.Node] {
			return &c
		}
	}
	return nil
}

// openShape finds the node that the first result of unknown shape comes from, branches
// included. One whose shapes depend on values, as far as is known, goes before others,
// and isData says so. nil: every shape is known.
func openShape(g *onnx.Graph, inference *infer.Inference) (node *onnx.Node, isData bool) {
	for _, n := range g.Nodes() {
		for _, sub := range n.Subgraphs() {
			inner, isInnerData := openShape(sub, inference)
			if isInnerData {
				return inner, true
			}
			if node == nil {
				node = inner
			}
		}
		for _, v := range n.Outputs() {
			if v == nil || inference.Of(v).IsStatic() {
				continue
			}
			from := origin(n, inference.Of(v), inference)
			if o, err := soc.LookupOperator(from.Domain, from.OpType); err == nil && o.DataShape {
				return from, true
			}
			if node == nil {
				node = from
			}
		}
	}
	return node, false
}

// origin is the node that leaves a dim of a result of n open: n itself when nobody says.
func origin(n *onnx.Node, info *infer.Info, inference *infer.Inference) *onnx.Node {
	for _, d := range info.Dims {
		for _, c := range inference.Causes(d) {
			if c.Node != nil {
				return c.Node
			}
		}
	}
	return n
}
