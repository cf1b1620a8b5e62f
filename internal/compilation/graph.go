package compilation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/suggest"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnxpass"
)

// origins leads nodes of the graph that ATC gets back to the user's.
type origins struct {
	byName   map[string]bool   // names of the original's nodes
	byOutput map[string]string // the original's node that makes a value, by the value's name
	renamed  map[string]string // a node of the new graph to one of the original
}

// originsOf takes the names down before anything changes.
func originsOf(m *onnx.Model) *origins {
	o := &origins{byName: map[string]bool{}, byOutput: map[string]string{}, renamed: map[string]string{}}
	for n := range m.Nodes() {
		o.byName[n.Name] = true
		for _, v := range n.Outputs() {
			if v != nil {
				o.byOutput[v.Name()] = n.Where()
			}
		}
	}
	return o
}

// nameNodes gives every node a name of its own: ATC refuses two of one name, an input or
// a stored value being a node of its name, and makes up others for those without, which nobody can find
// again. Most often it is that of the value the node makes.
func (o *origins) nameNodes(m *onnx.Model) {
	taken := map[string]bool{}
	for g := range m.Graphs() {
		for _, v := range slices.Concat(g.Inputs(), g.Initializers()) {
			taken[v.Name()] = true
		}
	}
	for n := range m.Nodes() {
		name := n.Name
		for i, v := range n.Outputs() {
			if name == "" && v != nil {
				name = n.Outputs()[i].Name()
			}
		}
		if name == "" {
			name = n.OpType
		}
		base := name
		for i := 1; taken[name]; i++ {
			name = fmt.Sprintf("%s_%d", base, i)
		}
		taken[name] = true
		n.Name = name
		if where := o.find(n); where != "" && (!o.byName[name] || name != base) {
			o.renamed[name] = where
		}
	}
}

// find gives the original's node that made one of a node's results.
func (o *origins) find(n *onnx.Node) string {
	for _, v := range n.Outputs() {
		if v == nil {
			continue
		}
		if where := o.byOutput[v.Name()]; where != "" {
			return where
		}
	}
	return ""
}

// explain says in a diagnosis which of the user's nodes is meant, where the graph
// that ATC got has another name for it.
func (o *origins) explain(d *atc.Diagnosis) {
	for _, name := range slices.Clone(d.Names) {
		where := o.renamed[name]
		if where == "" {
			continue
		}
		d.Names = append(d.Names, where)
		d.Message += fmt.Sprintf(" (%s is %s of the model)", name, where)
	}
}

// optimise runs the passes on an opened model whose sizes are set. Legalising for the
// chip has its place here, behind the passes and before the names.
func (b *build) optimise(ctx context.Context, m *onnx.Model) error {
	before := countNodes(m)
	o := b.job.Passes
	o.Specialized = b.sizesAreSet() || len(b.job.Sizes.Bind) > 0
	if o.MaxTotalGrowth == 0 {
		o.MaxTotalGrowth = onnxpass.DefaultMaxTotalGrowth(b.input[0].Bytes)
	}
	o.Progress = func(round int, pass string) { b.say("optimising, round %d: %s", round, pass) }
	report, err := onnxpass.Optimize(ctx, m, o)
	if err != nil {
		return b.sort(err)
	}
	b.result.Nodes = &NodesChange{before, countNodes(m)}
	if b.shapes.kind != StaticKind || len(report.Dynamic) == 0 {
		return nil
	}
	if b.job.Static {
		b.result.Dynamic = report.Dynamic
		first := report.Dynamic[0]
		return fault.New(fault.Goal, "--static: %d tensors stay dynamic, the first is %q %s: %s; nothing was written",
			len(report.Dynamic), first.Name, first.Type, first.Reason)
	}
	b.note(fmt.Sprintf("%d tensors have shapes that are known only when running, so that the result is a dynamic model (--static lists them)", len(report.Dynamic)))
	return nil
}

// sort gives a failure of the passes its family: a pass that there is not is a mistake
// of usage, a model that breaks the rules of the format the input's fault.
func (b *build) sort(err error) error {
	var unknown *onnxpass.UnknownPassError
	switch {
	case fault.FamilyOf(err) != fault.Internal:
		return err
	case errors.As(err, &unknown):
		return b.job.wishes.unknownPass(err, b.job.Passes).With("%s", suggest.Text(unknown.Name, unknown.Known))
	}
	return fault.New(fault.Input, "%s: %w", b.model, err)
}

func countNodes(m *onnx.Model) (n int) {
	for range m.Nodes() {
		n++
	}
	return n
}

// saveGraph writes the graph into the build's folder. Where the result will stand
// beside the original, its external data need not be written again: the folder gets
// links, so that the new model is seen to find it.
func (b *build) saveGraph(m *onnx.Model, path string) error {
	if b.isBeside && sameFile(filepath.Dir(b.model), filepath.Dir(b.target)) {
		for _, side := range sideFiles(m) {
			below, err := filepath.Rel(filepath.Dir(m.Path), side)
			if err != nil {
				continue
			}
			link := filepath.Join(b.folder, below)
			if err := os.MkdirAll(filepath.Dir(link), 0o777); err == nil {
				_ = os.Link(side, link) // else the data is written again
			}
			b.links = append(b.links, link)
		}
	}
	if err := m.Save(path, onnx.SaveOptions{BareExternal: true}); err != nil {
		return fault.New(fault.Missing, "write the optimised graph: %w", err)
	}
	return nil
}
