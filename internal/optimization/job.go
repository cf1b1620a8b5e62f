// Package optimization is what `npuctl optimize` does, from file to file: open,
// fix what the user fixes, run the passes, hold the result against the goals,
// save, and say what happened.
//
// Nothing is written before every goal is reached, and then in one step. The
// result is plain data: the command prints it as a table, or as JSON as it is.
package optimization

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/npuctl/npuctl/internal/atomicfile"
	"github.com/npuctl/npuctl/internal/engine"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/modelfile"
	"github.com/npuctl/npuctl/internal/modelstats"
	"github.com/npuctl/npuctl/internal/suggest"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/infer"
	"github.com/npuctl/npuctl/onnxpass"
)

// Job says what to optimise, how, and where the result goes.
type Job struct {
	Input  string
	Output string // "" writes beside the input: see DefaultOutput
	// InPlace allows Output to be the input itself.
	InPlace bool
	// Static demands that every shape of the result is known.
	Static         bool
	Specialization onnxpass.Specialization
	Passes         onnxpass.Options
	External       onnx.ExternalData
	// Check compares original and result on that many random inputs, and on edge
	// values; 0 does not.
	Check int
	// CheckSeed makes the random inputs.
	CheckSeed uint64
	// Judge is the engine that runs both for the check, one of [engine.Names]; ""
	// takes ONNX Runtime when it is there and knows the model, else the built-in one.
	Judge string
	// EngineLibrary is the ONNX Runtime library to judge with; "" looks for one.
	EngineLibrary string
	// Progress is told, when set, what the job is at.
	Progress func(text string)
}

// DefaultOutput is the file that a result goes to unless the user names one:
// model.onnx becomes model.opt.onnx, beside it.
func DefaultOutput(input string) string {
	return strings.TrimSuffix(input, filepath.Ext(input)) + ".opt.onnx"
}

// Run does the job. An error has the family of whoever must act.
func (j Job) Run(ctx context.Context) (*Result, error) {
	start := time.Now()
	if err := j.settle(); err != nil {
		return nil, err
	}
	m, err := modelfile.Open(j.Input)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	sides := sideFiles(m)
	if slices.ContainsFunc(sides, func(side string) bool { return sameFile(side, j.Output) }) {
		return nil, fault.New(fault.Usage, "-o %s holds weights of the input", j.Output).With("choose another name")
	}
	r := &Result{Input: j.Input, Output: j.Output, BytesBefore: fileSize(j.Input)}
	r.before(m)
	if err := onnxpass.Specialize(m, j.Specialization); err != nil {
		return nil, err
	}
	report, err := onnxpass.Optimize(ctx, m, j.limits(r.BytesBefore))
	if err != nil {
		return nil, sort(err, j.Input)
	}
	r.after(m, report)
	if why, impossible := modelfile.Impossible(report.Conflicts); impossible {
		return r, j.impossible(ctx, why)
	}
	if j.Static && !r.Static {
		return r, notStatic(r)
	}
	if j.Check > 0 {
		if r.Check, err = j.check(ctx, m); err != nil {
			return r, err
		}
	}
	_, statErr := os.Lstat(j.Output)
	r.Replaced = statErr == nil
	if err := m.Save(j.Output, onnx.SaveOptions{ExternalData: j.External}); err != nil {
		return nil, fault.New(fault.Missing, "%w", err)
	}
	if err := r.written(j, sides); err != nil {
		return nil, fault.New(fault.Internal, "read the result again: %w", err)
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// impossible is the failure of a graph that contradicts itself, so that no run of it can
// end well. Where the file alone does not, the sizes that were given are to blame.
func (j Job) impossible(ctx context.Context, why string) error {
	m, err := modelfile.Open(j.Input)
	if err != nil {
		return err
	}
	defer m.Close()
	alone := infer.New(m, infer.Options{})
	if err := alone.Run(ctx); err != nil {
		return err
	}
	if _, always := modelfile.Impossible(alone.Conflicts()); always {
		return fault.New(fault.Input, "%s: no inputs suit the model: %s; nothing was written", j.Input, why).
			With("correct the export; `npuctl inspect` lists everything that contradicts itself")
	}
	return fault.New(fault.Usage, "%s: with the sizes or values given, no inputs suit the model: %s; nothing was written", j.Input, why).
		With("give sizes that go together")
}

// settle fills in what the job leaves open and refuses what would overwrite the input.
func (j *Job) settle() error {
	if j.Judge != "" && !slices.Contains(engine.GraphEngines(), j.Judge) {
		return fault.New(fault.Usage, "--judge %s: there is no such engine", j.Judge).With("%s", suggest.Text(j.Judge, engine.GraphEngines()))
	}
	if info, err := os.Stat(j.Output); err == nil && info.IsDir() {
		return fault.New(fault.Usage, "-o %s is a folder", j.Output).With("name a file in it: -o %s", filepath.Join(j.Output, filepath.Base(DefaultOutput(j.Input))))
	}
	switch {
	case j.Output == "-":
		return fault.New(fault.Usage, "-o -: a model is not written to standard output").With("name a file; ./- is one of that name")
	case j.InPlace && j.Output != "" && !sameFile(j.Input, j.Output):
		return fault.New(fault.Usage, "--in-place and -o %s name two targets", j.Output).With("give one of them")
	case j.InPlace:
		j.Output = j.Input
	case j.Output == "":
		j.Output = DefaultOutput(j.Input)
	}
	if !j.InPlace && sameFile(j.Input, j.Output) {
		return fault.New(fault.Usage, "-o %s is the input itself", j.Output).With("say --in-place if that is meant")
	}
	return nil
}

// sideFiles lists the files beside a model that hold weights of it.
func sideFiles(m *onnx.Model) (paths []string) {
	_, locations := modelstats.Outside(m)
	folder := filepath.Dir(atomicfile.Resolve(m.Path))
	for _, location := range locations {
		paths = append(paths, filepath.Join(folder, filepath.FromSlash(location)))
	}
	return paths
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// limits fills in the growth that folding may cause, which follows from the file's size.
func (j Job) limits(size int64) onnxpass.Options {
	o := j.Passes
	sp := j.Specialization
	o.Specialized = sp.Batch != 0 || len(sp.Shapes)+len(sp.Dims)+len(sp.Bind) > 0
	if j.Progress != nil && o.Progress == nil {
		o.Progress = func(round int, pass string) { j.progress("round %d: %s", round, pass) }
	}
	if o.MaxTotalGrowth == 0 {
		o.MaxTotalGrowth = onnxpass.DefaultMaxTotalGrowth(size)
	}
	return o
}

// notStatic is the failure of --static: it names what is dynamic first, and how
// much there is; the result lists all.
func notStatic(r *Result) error {
	first := r.Dynamic[0]
	if len(r.Dynamic) == 1 {
		return fault.New(fault.Goal, "--static: one tensor stays dynamic, %q %s: %s; nothing was written", first.Name, first.Type, first.Reason)
	}
	return fault.New(fault.Goal, "--static: %d tensors stay dynamic, the first is %q %s: %s; nothing was written",
		len(r.Dynamic), first.Name, first.Type, first.Reason)
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// sort gives a failure of the passes its family: a pass that does not exist is a
// mistake of usage, a model that breaks the rules of the format the input's fault.
func sort(err error, path string) error {
	if fault.FamilyOf(err) != fault.Internal {
		return err
	}
	var unknown *onnxpass.UnknownPassError
	if errors.As(err, &unknown) {
		return fault.New(fault.Usage, "%w", err).With("%s", suggest.Text(unknown.Name, unknown.Known))
	}
	return fault.New(fault.Input, "%s: %w", path, err)
}
