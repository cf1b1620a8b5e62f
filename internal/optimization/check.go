package optimization

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/npuctl/npuctl/internal/engine"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/feeds"
	"github.com/npuctl/npuctl/internal/modelfile"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/compare"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnxpass"
)

// Check says how original and result compared on the same inputs.
type Check struct {
	// Engine ran both; Independent says whether it is another than the one that
	// folded the constants, and Note, when it is not, why.
	Engine      string `json:"engine"`
	Independent bool   `json:"independent"`
	Note        string `json:"note,omitempty"`
	// Tried is how many sets of inputs were made, Inputs how many of them the
	// original accepted: those were compared, and Sets says what they were.
	Tried  int          `json:"tried"`
	Inputs int          `json:"inputs"`
	Sets   []CheckedSet `json:"sets"`
	// Outputs says of each output how it compared over all sets.
	Outputs []CheckedOutput `json:"outputs"`
	Equal   bool            `json:"equal"`
}

// CheckedSet is one set of inputs that was compared.
type CheckedSet struct {
	Values string `json:"values"` // what sort: random, zeros, NaN, …
	Seed   uint64 `json:"seed"`
	Sizes  string `json:"sizes,omitempty"` // of open dims: batch=2, seq=8
	// Defaults is set when inputs that have a default were given other values.
	Defaults bool `json:"overrides_defaults,omitempty"`
}

// CheckedOutput is the worst that was seen of one output.
type CheckedOutput struct {
	Name string `json:"name"`
	// Compared is "values", or "shape" for an output that depends on random numbers.
	Compared string  `json:"compared"`
	Equal    bool    `json:"equal"`
	MaxAbs   float64 `json:"max_abs"`
	MaxRel   float64 `json:"max_rel"`
	Cosine   float64 `json:"cosine"`
	// Uncertain is how far the original's own result may be off, as far as it was
	// measured: where a difference was beyond the tolerance.
	Uncertain float64 `json:"uncertain,omitempty"`
	// Difference says what differs first, and on which set.
	Difference string `json:"difference,omitempty"`
}

// checker holds a result against its original.
type checker struct {
	job      Job
	maker    *feeds.Maker
	bound    map[string]eval.Value // inputs that the user made constants of: the original still takes them
	outputs  []string
	spacing  map[string]float64 // of the coarsest floats that an output is computed in
	random   map[string]bool    // outputs that depend on random numbers
	fixed    map[string][]bool  // of those, the axes whose size does not
	original engine.Source
	result   engine.Source
	// given are inputs to compare on; nil makes random ones, and with edges those of edge
	// values.
	given []map[string]eval.Value
	edges bool
	// tolerance, when set, gives how far the floats of an output may be off.
	tolerance func(output string, t tensor.Type) (tolerance compare.Tolerance, isWish bool)
}

// check runs the original and m on the same inputs and compares. A difference, and
// a comparison that could not be made, are failures of a goal.
func (j Job) check(ctx context.Context, m *onnx.Model) (*Check, error) {
	c, err := j.newChecker(ctx)
	if err != nil {
		return nil, err
	}
	c.edges = true
	result, done, err := contents(m, j.Output)
	if err != nil {
		return nil, err
	}
	defer done()
	c.result = result
	report, err := c.judged(ctx)
	var unable *unableError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &unable):
		return nil, fault.New(fault.Goal, "--check: nothing could be compared: %s", strings.ReplaceAll(err.Error(), "\n", "; ")).
			With("%s", joined(unable.remedy, "leave --check out"))
	case err != nil:
		return nil, err
	case !report.Equal:
		return report, differs(report)
	}
	return report, nil
}

// joined are remedies of which one will do.
func joined(first, second string) string {
	if first == "" {
		return second
	}
	return first + ", or " + second
}

// judged compares with the engine that the job names. When it names none, the
// built-in interpreter stands in for an ONNX Runtime that does not know the model.
func (c *checker) judged(ctx context.Context) (*Check, error) {
	options := engine.Options{Library: c.job.EngineLibrary}
	if c.job.Judge != "" {
		e, err := engine.Open(c.job.Judge, options)
		if err != nil {
			return nil, err
		}
		return c.by(ctx, e, c.job.Judge != engine.Reference)
	}
	first, independent, err := engine.Judge(options)
	if err != nil {
		return nil, err
	}
	report, err := c.by(ctx, first, independent)
	var unable *unableError
	if !independent || !errors.As(err, &unable) || ctx.Err() != nil {
		return report, err
	}
	second, openErr := engine.Open(engine.Reference, options)
	if openErr != nil {
		return nil, openErr
	}
	why := err
	if report, err = c.by(ctx, second, false); report != nil {
		report.Note = why.Error()
		return report, err
	}
	return nil, errors.Join(why, err)
}

// unableError says that an engine cannot run the original, and what may help.
type unableError struct {
	error
	remedy string
}

func (e *unableError) Unwrap() error { return e.error }

// differs is the failure of a check that found a difference.
func differs(r *Check) error {
	for _, o := range r.Outputs {
		if !o.Equal {
			return fault.New(fault.Goal, "--check: output %q of the result is not that of the original: %s; nothing was written", o.Name, o.Difference).
				With("find the pass with --skip and report it: the result should always be equal")
		}
	}
	return fault.New(fault.Internal, "--check: unequal without an unequal output")
}

// newChecker makes ready what depends on neither the engine nor the result.
func (j Job) newChecker(ctx context.Context) (*checker, error) {
	original, err := modelfile.Open(j.Input)
	if err != nil {
		return nil, err
	}
	defer original.Close()
	if err := onnxpass.Specialize(original, j.Specialization); err != nil {
		return nil, err
	}
	c := &checker{
		job: j, maker: feeds.New(original, onnxpass.RealInputs(original)), bound: map[string]eval.Value{},
		random: randomOutputs(original), original: engine.Source{Path: j.Input},
	}
	for _, v := range original.Graph.Outputs() {
		c.outputs = append(c.outputs, v.Name())
	}
	for name := range j.Specialization.Bind {
		d, err := original.Graph.Find(name).Initializer().Dense()
		if err != nil {
			return nil, fmt.Errorf("bound input %q: %w", name, err)
		}
		c.bound[name] = d
	}
	if c.spacing, err = coarsest(ctx, original); err != nil {
		return nil, err
	}
	c.fixed, err = fixedAxes(ctx, original, c.random)
	return c, err
}

// contents gives a model as an engine takes it: as the bytes that would be
// written, or, when these are too many for one message, as a file in a folder of
// its own beside the target.
func contents(m *onnx.Model, target string) (engine.Source, func(), error) {
	if data, err := m.Encode(); err == nil {
		return engine.Source{Bytes: data}, func() {}, nil
	}
	folder, err := os.MkdirTemp(filepath.Dir(target), ".npuctl-check-")
	if err != nil {
		return engine.Source{}, nil, fault.New(fault.Missing, "make a folder for the check: %w", err)
	}
	done := func() { os.RemoveAll(folder) }
	path := filepath.Join(folder, "result.onnx")
	if err := m.Save(path, onnx.SaveOptions{ExternalData: onnx.SplitExternal}); err != nil {
		done()
		return engine.Source{}, nil, fault.New(fault.Missing, "write the result for the check: %w", err)
	}
	return engine.Source{Path: path}, done, nil
}

// by compares with one engine, which it closes.
func (c *checker) by(ctx context.Context, e engine.Engine, independent bool) (*Check, error) {
	defer e.Close()
	original, err := e.Load(ctx, c.original)
	if err != nil {
		return nil, &unableError{fmt.Errorf("%s cannot run the original: %w", e.Name(), err), ""}
	}
	defer original.Close()
	t := &trial{checker: c, original: original, scales: map[string]float64{}, report: &Check{Engine: e.Name(), Independent: independent, Equal: true}}
	if !independent {
		t.report.Note = "the same engine folded the constants; ONNX Runtime would be an independent judge"
	}
	for _, name := range c.outputs {
		o := CheckedOutput{Name: name, Compared: "values", Equal: true, Cosine: 1}
		if c.random[name] {
			o.Compared = "shape"
		}
		t.report.Outputs = append(t.report.Outputs, o)
	}
	result, err := e.Load(ctx, c.result)
	if err != nil {
		t.fail(fmt.Sprintf("%s runs the original but cannot load the result: %v", e.Name(), err))
		return t.report, nil
	}
	defer result.Close()
	t.result = result
	t.sets(ctx)
	if t.report.Inputs == 0 && t.report.Equal {
		return nil, &unableError{
			fmt.Errorf("%s refused all %d sets of inputs for the original, the last with: %w", e.Name(), t.report.Tried, t.refusal),
			"fix sizes with --dim, --batch or --input-shape",
		}
	}
	return t.report, ctx.Err()
}

// progress tells what the job is at.
func (j Job) progress(format string, args ...any) {
	if j.Progress != nil {
		j.Progress(fmt.Sprintf(format, args...))
	}
}
