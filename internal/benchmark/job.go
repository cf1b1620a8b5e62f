package benchmark

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/bench/load"
	"github.com/npuctl/npuctl/bench/measure"
	"github.com/npuctl/npuctl/bench/report"
	"github.com/npuctl/npuctl/internal/fault"
)

// Job says what to measure, under which load, and what to hold the result against.
type Job struct {
	// Models are .onnx or .om files, or folders of models in a Triton repository. Several
	// get one mixed load, each as often as its weight says; without weights equally often.
	Models  []string
	Weights []float64

	Engine   Engine
	Serving  Serving
	Requests Requests
	Load     Load

	// Raw leaves out the executor: each client calls an instance of its own, as tools that
	// measure a model alone do.
	Raw bool
	// Verify holds every answer of a first, unmeasured load against that of the same
	// request alone.
	Verify bool
	// Goal, when set, has the highest rate searched at which it holds.
	Goal *measure.Goal
	// Compare names two configurations of the one model, which are measured in turns.
	Compare []string
	Rounds  int
	// Baseline is an earlier report; figures may be worse by no more than MaxRegression.
	Baseline      string
	MaxRegression float64

	// Out is a folder for the records of all requests and the reports; "" keeps none.
	Out string
	// Version and Commit are those of npuctl, and Options the command line, for the report.
	Version, Commit string
	Options         []string
	// Remarks are what was chosen for the job, for the report.
	Remarks []string
	// Progress is told, when set, what the job is at.
	Progress func(text string)
}

// bench is a job under way.
type bench struct {
	Job
	ctx      context.Context // of the run, for what is called back without one
	places   []place         // of the models
	result   *report.Report
	about    engine.About
	verified int64
	sum      string // of the model's file
	folder   *report.Folder
	levels   []*measure.Level
}

// Run does the job. A goal that is not reached, a regression and a difference under load
// are failures of a goal; the result is there then, too, as it is, with what was measured
// so far, when the context ended.
func (j Job) Run(ctx context.Context) (*report.Report, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	b := &bench{Job: j, ctx: ctx}
	base, err := b.baseline()
	if err != nil {
		return nil, err
	}
	var files []string
	for _, path := range b.Models {
		at, err := locate(path, b.Serving.Config)
		if err != nil {
			return nil, err
		}
		b.places, files = append(b.places, at), append(files, at.files()...)
	}
	devices, err := b.devices()
	if err != nil {
		return nil, err
	}
	e, err := b.Engine.open(ctx, files, devices, b.note)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	b.about = e.About()
	if len(b.Serving.Devices) > 0 && (b.about.Name == ONNXRuntime || b.about.Name == Reference) {
		return nil, fault.New(fault.Usage, "--devices would be ignored: %s runs on the CPU", b.about.Version).With("leave it out, or measure an .om")
	}
	if len(b.Compare) > 0 {
		return b.compare(ctx, e)
	}
	t, err := b.targets(ctx, e)
	if err != nil {
		return nil, err
	}
	err = b.measure(ctx, t)
	if closing := t.close(); err == nil {
		err = closing
	}
	if b.result == nil {
		return nil, err
	}
	if err == nil {
		err = b.answered()
	}
	return b.result, errors.Join(err, b.gate(base))
}

// check refuses what does not go together, before anything is opened.
func (j Job) check() error {
	switch {
	case len(j.Models) == 0:
		return fault.New(fault.Usage, "there is no model to measure").With("name one")
	case len(j.Weights) > 0 && len(j.Weights) != len(j.Models):
		return fault.New(fault.Usage, "--weights: %d for %d models", len(j.Weights), len(j.Models)).With("give each model one")
	case len(j.Models) > 1 && j.Serving.Config != "":
		return fault.New(fault.Usage, "--config is for one model, and there are %d", len(j.Models)).With("name folders of a model repository, which have their own")
	case len(j.Compare) > 0 && (len(j.Models) > 1 || j.Goal != nil || j.Raw):
		return fault.New(fault.Usage, "--compare measures one model under two configurations").With("leave out --slo, --raw and other models")
	case j.Raw && (j.Serving.MaxBatch > 0 || j.Serving.Delay > 0 || len(j.Serving.Preferred) > 0 || j.Serving.QueueSize > 0 || j.Serving.QueueTimeout > 0 || j.Serving.Instances > 0 || j.Serving.Config != ""):
		return fault.New(fault.Usage, "--raw has neither queue nor batches, and an instance for each client").With("leave out --config, --max-batch, --preferred, --delay, --queue, --queue-timeout and --instances")
	case j.Serving.Instances > mostInstances:
		return fault.New(fault.Usage, "--instances %d: at most %d can be run here", j.Serving.Instances, mostInstances)
	case j.Goal != nil && j.Raw:
		return fault.New(fault.Usage, "--slo needs a queue, which --raw leaves out").With("leave one of them out")
	}
	return j.Load.check(j.Goal != nil)
}

func (b *bench) note(format string, args ...any) {
	b.Remarks = append(b.Remarks, fmt.Sprintf(format, args...))
}

func (b *bench) say(format string, args ...any) {
	if b.Progress != nil {
		b.Progress(fmt.Sprintf(format, args...))
	}
}

// baseline reads the report to hold the run against: before anything runs, so that a wrong
// name costs nothing.
func (b *bench) baseline() (*report.Report, error) {
	if b.Baseline == "" {
		return nil, nil
	}
	return report.Read(b.Baseline)
}

// answered is the failure of a level of which not one request was answered: there is
// nothing that was measured then.
func (b *bench) answered() error {
	for _, l := range b.levels {
		if l.Requests == 0 || l.OK > 0 || b.Goal != nil {
			continue
		}
		why, most := "", int64(0)
		for reason, n := range l.Reasons {
			if n > most || n == most && reason < why {
				why, most = reason, n
			}
		}
		family := fault.Program // an engine, or a device, that failed
		if l.Failed == 0 {
			family = fault.Goal // all were refused, or not waited for
		}
		return fault.New(family, "%s: none of %d requests was answered: %s", l.Name(), l.Requests, why)
	}
	return nil
}

// gate holds the run against the baseline.
func (b *bench) gate(base *report.Report) error {
	if base == nil || len(b.levels) == 0 {
		return nil
	}
	if why := b.result.Comparable(base); why != "" {
		return fault.New(fault.Usage, "--baseline %s cannot be compared with this run: %s", b.Baseline, why)
	}
	gate, err := measure.Against(base.Levels, b.levels, b.MaxRegression)
	if err != nil {
		return fault.New(fault.Usage, "--baseline %s: %w", b.Baseline, err).With("measure the same levels as the baseline")
	}
	b.result.Gate = gate
	b.result.Remarks = append(b.result.Remarks, b.unlike(base)...)
	if err := b.finish(); err != nil {
		return err
	}
	if !gate.Passed {
		return fault.New(fault.Goal, "--max-regression %.3g%%: the run is worse than %s by more", 100*b.MaxRegression, b.Baseline)
	}
	return nil
}

// unlike says what the baseline does not stand for.
func (b *bench) unlike(base *report.Report) (remarks []string) {
	if base.ModelSum != b.sum {
		remarks = append(remarks, fmt.Sprintf("the baseline %s is of another model, or of another state of it (SHA-256)", b.Baseline))
	}
	for _, l := range b.levels {
		if !slices.ContainsFunc(base.Levels, func(o *measure.Level) bool { return o.Name() == l.Name() }) {
			remarks = append(remarks, fmt.Sprintf("%s: the baseline has no such level, and nothing was compared", l.Name()))
		}
	}
	return remarks
}

// provenance says what is measured on.
func (b *bench) provenance() report.Provenance {
	return report.Provenance{
		Version: b.Version, Commit: b.Commit, Options: b.Options,
		Engine: b.about.Name, EngineVersion: b.about.Version, Device: b.about.Device, Emulated: b.about.Emulated,
		Model: strings.Join(b.Models, ", "), ModelSum: b.sum, Remarks: b.Remarks, Verified: b.verified,
		Host: report.ThisHost(), Started: time.Now(), Clock: report.RealClock,
	}
}

// begin makes the folder of the run, if one is wanted.
func (b *bench) begin() (err error) {
	b.result = report.New(b.provenance(), nil)
	if b.Out == "" {
		return nil
	}
	b.folder, err = report.CreateFolder(b.Out, b.result.Provenance)
	return err
}

// finish writes the reports.
func (b *bench) finish() error {
	if b.folder == nil {
		return nil
	}
	return b.folder.Finish(b.result)
}

// targets opens all models.
func (b *bench) targets(ctx context.Context, e engine.Engine) (*workload, error) {
	w := &workload{}
	for i, at := range b.places {
		b.say("opening %s", at.path)
		t, err := b.target(ctx, e, at, len(w.gears))
		if err != nil {
			return nil, errors.Join(err, w.close())
		}
		w.add(t)
		if i == 0 {
			b.sum = sumOf(t.file)
		}
	}
	if len(w.list) == 1 {
		w.Target = w.list[0]
		return w, nil
	}
	weights := b.Weights
	if len(weights) == 0 {
		for range b.Models {
			weights = append(weights, 1)
		}
	}
	var parts []load.Target
	for _, t := range w.list {
		parts = append(parts, t)
	}
	mixed, err := load.Mix(parts, weights, b.Requests.Seed)
	if err != nil {
		return nil, errors.Join(fault.New(fault.Usage, "--weights: %w", err), w.close())
	}
	w.Target, w.kinds = mixed, b.Models
	return w, nil
}

// workload is what requests are sent to: a model, or several.
type workload struct {
	load.Target
	list  []*target
	kinds []string // names of the models, when there are several
	gears []string // of all models, in the order in which records number them, from 1
}

func (w *workload) add(t *target) {
	w.list = append(w.list, t)
	w.gears = append(w.gears, t.gears...)
}

// ready makes room for so many clients.
func (w *workload) ready(clients int) (err error) {
	for _, t := range w.list {
		err = errors.Join(err, t.ready(clients))
	}
	return err
}

func (w *workload) close() (err error) {
	for _, t := range w.list {
		err = errors.Join(err, t.close())
	}
	return err
}

// sumOf is the SHA-256 of a file; "" when it cannot be read again.
func sumOf(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}
