package compilation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/modelfile"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnxpass"
	"github.com/npuctl/npuctl/soc"
)

// build is one model for one chip.
type build struct {
	job     Job
	find    func() (atc.Toolkit, error)
	toolkit atc.Toolkit // once found
	chip    soc.Chip
	model   string
	target  string // path of the result without .om

	folder string // where the build goes on
	// isBeside says that the folder is beside the target. It is elsewhere when the path
	// there has letters that ATC does not take.
	isBeside bool
	links    []string // to external data, in the folder
	shapes   shapes
	origins  *origins
	opset    int64
	input    []FileFacts
	key      string
	list     arguments

	result Build
}

func (b *build) note(text string) { b.result.Notes = append(b.result.Notes, text) }

func (b *build) say(format string, args ...any) {
	b.job.say("%s for %s: %s", filepath.Base(b.model), b.chip.Name, fmt.Sprintf(format, args...))
}

// run does the build and takes down how it went.
func (b *build) run(ctx context.Context) error {
	start := time.Now()
	if b.chip.Caution != "" {
		b.note(b.chip.Name + ": " + b.chip.Caution)
	}
	err := b.steps(ctx)
	b.result.Seconds = time.Since(start).Seconds()
	if err != nil {
		b.result.Status, b.result.Error = Failed, err.Error()
	}
	return err
}

func (b *build) steps(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m, err := b.open()
	if err != nil {
		return err
	}
	defer m.Close()
	for _, out := range b.outputs() {
		if err := b.keepsInputs(out, sideFiles(m)); err != nil {
			return err
		}
	}
	b.origins = originsOf(m)
	if err := onnxpass.Specialize(m, b.job.Sizes); err != nil {
		return b.job.wishes.locate(err)
	}
	if err := b.chooseShapes(m); err != nil {
		return err
	}
	b.job.say("looking for atc")
	if b.toolkit, err = b.find(); err != nil {
		return err
	}
	b.result.Emulated = b.toolkit.Emulated
	if b.list, err = b.arguments(b.graphPath(), b.target); err != nil {
		return err
	}
	b.result.Arguments = b.list.words()
	b.result.CommandLine = atc.ShellCommand(b.toolkit.Program, b.result.Arguments)
	b.say("hashing")
	if err := b.identify(m, b.list); err != nil {
		return err
	}
	if b.job.DryRun {
		b.result.Status = Planned
		return b.rehearse(ctx, m)
	}
	if !b.job.Force && b.isUnchanged() {
		b.result.Status = Unchanged
		return nil
	}
	return b.make(ctx, m)
}

func (b *build) open() (*onnx.Model, error) {
	m, err := modelfile.Open(b.model)
	if err != nil {
		return nil, err
	}
	b.opset = int64(m.Opset(""))
	return m, nil
}

// graphPath is the file that ATC reads: the optimised graph beside the result, or
// the model itself.
func (b *build) graphPath() string {
	if b.job.NoOptimize {
		return b.model
	}
	return b.target + graphSuffix
}

// make builds in a folder of its own, which is gone afterwards whatever happens.
func (b *build) make(ctx context.Context, m *onnx.Model) (err error) {
	parent := filepath.Dir(b.target)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return fault.New(fault.Missing, "make the folder of the result: %w", err).With("name a place that can be written with -o")
	}
	if b.folder, err = b.workFolder(parent); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeAll(b.folder)) }()
	graph, err := b.prepareGraph(ctx, m)
	if err != nil {
		return err
	}
	// ATC gets names without folders, so that what it writes down of its command line
	// is the same wherever the build is done.
	name := b.atcName()
	list := b.list.absolute().with("model", graph).with("output", name)
	if err := b.check(ctx, list); err != nil {
		return err
	}
	outcome, err := b.runATC(ctx, list)
	if err != nil {
		return err
	}
	made, err := b.judge(outcome, name)
	if err != nil {
		return err
	}
	b.say("reading the result back")
	if err := b.verify(made, m); err != nil {
		b.keepOutput(outcome)
		return err
	}
	return b.finish(ctx, made, graph)
}

// rehearse goes through a build up to where ATC would start, in a folder that nobody
// sees, so that a dry run finds the mistakes that the real one would.
func (b *build) rehearse(ctx context.Context, m *onnx.Model) (err error) {
	if b.folder, err = os.MkdirTemp("", buildPattern); err != nil {
		return fault.New(fault.Missing, "make a folder to try in: %w", err).With("set TMPDIR to a folder that can be written")
	}
	defer func() { err = errors.Join(err, removeAll(b.folder)) }()
	graph, err := b.prepareGraph(ctx, m)
	if err != nil {
		return err
	}
	return b.check(ctx, b.list.absolute().with("model", graph).with("output", b.atcName()))
}

// prepareGraph gives the path of the graph for ATC, as seen from the build's folder.
func (b *build) prepareGraph(ctx context.Context, m *onnx.Model) (string, error) {
	if b.job.NoOptimize {
		if b.job.Static { // what folding shows to be static, ATC's own will
			if err := b.optimise(ctx, m); err != nil {
				return "", err
			}
			b.result.Nodes = nil
		}
		if err := b.checkGears(ctx, m); err != nil {
			return "", err
		}
		return filepath.Abs(b.model)
	}
	if err := b.optimise(ctx, m); err != nil {
		return "", err
	}
	if err := b.checkGears(ctx, m); err != nil {
		return "", err
	}
	b.origins.nameNodes(m)
	name := b.atcName() + graphSuffix
	return name, b.saveGraph(m, filepath.Join(b.folder, name))
}

// check holds the command line against ATC's rules, so that a mistake costs no compile.
func (b *build) check(ctx context.Context, list arguments) error {
	verdict, err := atc.Check(ctx, list.words(), atc.Environment{Dir: b.folder, Toolkit: b.toolkit}, atc.Strict)
	if err != nil {
		return err
	}
	for i := range verdict.Notes {
		n := &verdict.Notes[i]
		b.origins.explain(n)
		b.nameModel(n, list)
		b.note(n.Text())
	}
	if verdict.Accept {
		return nil
	}
	b.result.Diagnoses = verdict.Diagnoses
	for i := range verdict.Diagnoses {
		b.origins.explain(&verdict.Diagnoses[i])
		b.nameModel(&verdict.Diagnoses[i], list)
	}
	return b.refused(verdict.Diagnoses[0])
}

// refused is the failure of a command line that ATC would not take: the model's fault,
// the project file's, or the flags'.
func (b *build) refused(first atc.Diagnosis) error {
	family, where, about := fault.Usage, "", ""
	if len(first.Names) > 0 {
		about = strings.TrimPrefix(first.Names[0], "--")
	}
	if place := b.job.inFile(about); place != "" {
		family, where = fault.Input, place+": "
	}
	if about == "model" {
		family = fault.Input
	}
	return fault.New(family, "%s%s: atc would refuse this (%s): %s", where, b.model, first.Code, first.Message).With("%s", first.Remedy)
}

// nameModel names the user's model in a diagnosis of a graph that is not written yet,
// and most often never will be.
func (b *build) nameModel(d *atc.Diagnosis, list arguments) {
	i := slices.IndexFunc(list, func(a argument) bool { return a.name == "model" })
	if b.job.NoOptimize || i < 0 {
		return
	}
	name := filepath.Base(b.model)
	d.Message = strings.TrimPrefix(d.Message, list[i].String()+": ")
	d.Message, d.Remedy = strings.ReplaceAll(d.Message, list[i].value, name), strings.ReplaceAll(d.Remedy, list[i].value, name)
}
