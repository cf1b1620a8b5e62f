package generate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/modelfile"
	"github.com/npuctl/npuctl/internal/suggest"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnxpass"
)

// graph is the model as it goes into the repository.
type graph struct {
	// path is the file, sides those beside it that hold tensors, relative to its folder.
	path  string
	sides []string
	// optimised says what the passes did; nil when they did nothing, or did not run.
	optimised *Optimized
}

// Optimized says what the passes of npuctl optimize made of a model.
type Optimized struct {
	NodesBefore int `json:"nodes_before"`
	NodesAfter  int `json:"nodes_after"`
	// Passes are those that changed something, in their order.
	Passes []onnxpass.PassChanges `json:"passes"`
}

// readyGraph gives the model as npu_ge is to have it. That backend compiles the file as it
// stands, so that the passes run here, for the sizes that are asked for; onnxruntime has
// passes of its own. What they leave as it is is the user's own file. done takes away
// what was made.
func (j *Job) readyGraph(ctx context.Context, s *signature) (g *graph, done func(), err error) {
	g, done = &graph{path: j.Model, sides: s.sides}, func() {}
	if j.NoOptimize || j.Backend != GE {
		return g, done, nil
	}
	m, err := modelfile.Open(j.Model)
	if err != nil {
		return nil, done, err
	}
	defer m.Close()
	report := &Optimized{NodesBefore: countNodes(m)}
	if report.Passes, err = j.optimise(ctx, m); err != nil || len(report.Passes) == 0 && len(j.Sizes.Bind) == 0 {
		return g, done, err
	}
	report.NodesAfter = countNodes(m)
	stage, err := os.MkdirTemp("", "npuctl-config-")
	if err != nil {
		return nil, done, fault.New(fault.Missing, "make a folder for the optimised model: %w", err)
	}
	done = func() { os.RemoveAll(stage) }
	g = &graph{optimised: report}
	if g.path, g.sides, err = saveIn(stage, m); err != nil {
		done()
		return nil, func() {}, err
	}
	return g, done, nil
}

// optimise runs the passes, and lists those that changed something.
func (j *Job) optimise(ctx context.Context, m *onnx.Model) ([]onnxpass.PassChanges, error) {
	if err := onnxpass.Specialize(m, j.Sizes); err != nil {
		return nil, err
	}
	o := j.Passes
	o.Specialized = specializes(j.Sizes)
	if info, err := os.Stat(j.Model); err == nil && o.MaxTotalGrowth == 0 {
		o.MaxTotalGrowth = onnxpass.DefaultMaxTotalGrowth(info.Size())
	}
	report, err := onnxpass.Optimize(ctx, m, o)
	var unknown *onnxpass.UnknownPassError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &unknown):
		return nil, fault.New(fault.Input, "optimize: %w", err).With("%s", suggest.Text(unknown.Name, unknown.Known))
	case err != nil && fault.FamilyOf(err) == fault.Internal:
		return nil, fault.New(fault.Input, "optimise %s: %w", j.Model, err).With("--no-optimize takes the model as it is")
	case err != nil:
		return nil, err
	}
	return slices.DeleteFunc(report.Changes, func(c onnxpass.PassChanges) bool { return c.Changes == 0 }), nil
}

// fixesAny says whether open dims of a model get sizes.
func fixesAny(s onnxpass.Specialization) bool { return s.Batch != 0 || len(s.Dims)+len(s.Shapes) > 0 }

// specializes says whether a model gets sizes or values, so that what it declares of
// shapes may no longer hold.
func specializes(s onnxpass.Specialization) bool { return fixesAny(s) || len(s.Bind) > 0 }

// saveIn saves a model in an empty folder; it gives the file and those beside it.
func saveIn(folder string, m *onnx.Model) (path string, sides []string, err error) {
	path = filepath.Join(folder, modelFile)
	if err := m.Save(path, onnx.SaveOptions{}); err != nil {
		return "", nil, fault.New(fault.Missing, "write the model for the repository: %w", err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", nil, fault.New(fault.Missing, "%w", err)
	}
	for _, e := range entries {
		if e.Name() != modelFile {
			sides = append(sides, e.Name())
		}
	}
	return path, sides, nil
}

func countNodes(m *onnx.Model) (n int) {
	for range m.Nodes() {
		n++
	}
	return n
}

// noteSizes says that the graph in the repository takes no other sizes, where it was
// optimised for some.
func (p *plan) noteSizes() {
	if p.graph.optimised != nil && fixesAny(p.Sizes) {
		p.note("the copy of the model was optimised for the sizes that --batch, --dim and --input-shape fix, and takes no others")
	}
}

// String is the change in a few words.
func (o *Optimized) String() string {
	return fmt.Sprintf("%d nodes are now %d", o.NodesBefore, o.NodesAfter)
}
