package optimization

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

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
	// Difference says what differs first, and on which set.
	Difference string `json:"difference,omitempty"`
}

// checker holds a result against its original.
type checker struct {
	job      Job
	maker    *feeds.Maker
	bound    map[string]eval.Value // inputs that the user made constants of: the original still takes them
	outputs  []string
	random   map[string]bool   // outputs that depend on random numbers
	fixed    map[string][]bool // of those, the axes whose size does not
	original engine.Source
	result   engine.Source
}

// check runs the original and m on the same inputs and compares. A difference, and
// a comparison that could not be made, are failures of a goal.
func (j Job) check(ctx context.Context, m *onnx.Model) (*Check, error) {
	c, done, err := j.newChecker(ctx, m)
	if err != nil {
		return nil, err
	}
	defer done()
	report, err := c.judged(ctx)
	var unable *unableError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &unable):
		return nil, fault.New(fault.Goal, "--check: nothing could be compared: %s", strings.ReplaceAll(err.Error(), "\n", "; ")).
			With("%s", unable.remedy)
	case err != nil:
		return nil, err
	case !report.Equal:
		return report, differs(report)
	}
	return report, nil
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

// newChecker makes ready what does not depend on the engine. done gives it back.
func (j Job) newChecker(ctx context.Context, m *onnx.Model) (c *checker, done func(), err error) {
	original, err := modelfile.Open(j.Input)
	if err != nil {
		return nil, nil, err
	}
	defer original.Close()
	if err := onnxpass.Specialize(original, j.Specialization); err != nil {
		return nil, nil, err
	}
	c = &checker{
		job: j, maker: feeds.New(original, onnxpass.RealInputs(original)), bound: map[string]eval.Value{},
		random: randomOutputs(original), original: engine.Source{Path: j.Input},
	}
	for _, v := range original.Graph.Outputs() {
		c.outputs = append(c.outputs, v.Name())
	}
	for name := range j.Specialization.Bind {
		d, err := original.Graph.Find(name).Initializer().Dense()
		if err != nil {
			return nil, nil, fmt.Errorf("bound input %q: %w", name, err)
		}
		c.bound[name] = d
	}
	if c.fixed, err = fixedAxes(ctx, original, c.random); err != nil {
		return nil, nil, err
	}
	c.result, done, err = contents(m, j.Output)
	return c, done, err
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
		return nil, &unableError{fmt.Errorf("%s cannot run the original: %w", e.Name(), err), "leave --check out"}
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
	t.randomSets(ctx)
	t.edgeSets(ctx)
	if t.report.Inputs == 0 && t.report.Equal {
		return nil, &unableError{
			fmt.Errorf("%s refused all %d sets of inputs for the original, the last with: %w", e.Name(), t.report.Tried, t.refusal),
			"fix sizes with --dim, --batch or --input-shape, or leave --check out",
		}
	}
	return t.report, ctx.Err()
}

// trial is a comparison under way.
type trial struct {
	checker          *checker
	original, result engine.Program
	report           *Check
	refusal          error              // why the original refused a set last
	accepted         []feeds.Set        // sets that it took
	longest          time.Duration      // that it took for one
	scales           map[string]float64 // how large each output is on ordinary inputs
}

// kinds are the sorts of values for random sets, in the order in which they are
// tried: zeros are better than nothing for a model that takes nothing else.
var kinds = [...]feeds.Kind{feeds.Normal, feeds.Binary, feeds.Lengths, feeds.Zeros}

// maxRefused bounds how many sets in a row are tried that the original refuses.
const maxRefused = 30

// randomSets compares on as many random sets as the job asks for, each with other
// sizes of the open dims as long as the original takes them.
func (t *trial) randomSets(ctx context.Context) {
	refused := map[feeds.Set]bool{} // without its seed
	sets := t.checker.job.Check
	if t.checker.maker.IsEmpty() {
		sets = 1
	}
	for i := range sets {
		t.checker.job.progress("check: random inputs %d of %d", i+1, sets)
		t.randomSet(ctx, i, refused)
		if ctx.Err() != nil || len(t.accepted) == 0 {
			return
		}
	}
	if t.checker.maker.HasDefaults() {
		s := t.accepted[0]
		s.Override = true
		t.compare(ctx, s, true)
	}
}

// randomSet compares on one set: number i begins with plan i, so that sizes differ.
func (t *trial) randomSet(ctx context.Context, i int, refused map[feeds.Set]bool) {
	plans := t.checker.maker.Plans()
	for k := range plans {
		for _, kind := range kinds {
			s := feeds.Set{Plan: (i + k) % plans, Kind: kind}
			if refused[s] || len(refused) > maxRefused || ctx.Err() != nil {
				continue
			}
			seeded := s
			seeded.Seed = t.checker.job.CheckSeed + uint64(i)
			if t.compare(ctx, seeded, false) {
				t.accepted = append(t.accepted, seeded)
				return
			}
			refused[s] = true
		}
	}
}

// edgePatience is how long an edge set may run: it may send a loop round for ever.
const edgePatience = 10 * time.Second

// edgeSets compares on edge values.
func (t *trial) edgeSets(ctx context.Context) {
	if len(t.accepted) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, edgePatience+20*t.longest)
	defer cancel()
	for _, kind := range t.checker.maker.Edges() {
		t.checker.job.progress("check: %s", kind)
		s := t.accepted[0]
		s.Kind = kind
		t.compare(ctx, s, true)
	}
}

// errHollow says why a set that the original ran proves nothing.
var errHollow = errors.New("most of the original's results are NaN or infinite")

// compare runs both models on a set; false when the original refuses it. Results
// that are mostly NaN prove nothing: unless hollow ones are asked for, as edge
// values do, such a set counts as refused, though a difference is still one.
func (t *trial) compare(ctx context.Context, s feeds.Set, hollow bool) bool {
	t.report.Tried++
	values, err := t.checker.maker.Make(s)
	if err != nil {
		t.refusal = err
		return false
	}
	start := time.Now()
	want, err := t.runOriginal(ctx, values)
	if err != nil {
		t.refusal = err
		return false
	}
	t.longest = max(t.longest, time.Since(start))
	got, err := t.result.Run(ctx, values)
	if err != nil && ctx.Err() != nil {
		t.refusal = ctx.Err()
		return false
	}
	set := CheckedSet{Values: s.Kind.String(), Seed: s.Seed, Sizes: t.checker.maker.PlanText(s.Plan), Defaults: s.Override}
	proves := hollow || !isHollow(want)
	if proves {
		t.report.Inputs++
		t.report.Sets = append(t.report.Sets, set)
	} else {
		t.refusal = errHollow
	}
	if err != nil {
		t.fail(fmt.Sprintf("the result fails where the original runs (%s): %v", set, err))
		return true
	}
	for i := range t.report.Outputs {
		o := &t.report.Outputs[i]
		if o.Compared == "shape" {
			o.note(compareShapes(want[o.Name], got[o.Name], t.checker.fixed[o.Name]), set)
		} else {
			o.note(compare.Values(want[o.Name], got[o.Name], t.options(s, o.Name, want[o.Name])), set)
		}
		t.report.Equal = t.report.Equal && o.Equal
	}
	return proves || !t.report.Equal
}

// isHollow says whether the float results of a run are mostly no finite numbers.
func isHollow(results map[string]eval.Value) bool {
	finite, all := 0, 0
	for _, v := range results {
		d, ok := v.(*tensor.Dense)
		if !ok || !d.Type().IsFloat() {
			continue
		}
		values, _ := d.Float64s()
		for _, x := range values {
			if x-x == 0 {
				finite++
			}
		}
		all += len(values)
	}
	return 2*finite < all
}

// options says how to compare an output on a set. Fused operators round, and
// overflow, at other places than separate ones: what is 0 but for rounding is held
// against the output's usual size, and what is beyond the range of floats says nothing.
func (t *trial) options(s feeds.Set, output string, want eval.Value) compare.Options {
	if !s.Kind.IsEdge() {
		t.scales[output] = max(t.scales[output], compare.ScaleOf(want))
	}
	return compare.Options{Scale: t.scales[output], AllowOverflow: s.Kind == feeds.Extremes}
}

// runOriginal runs the original, which still has inputs that the user bound.
func (t *trial) runOriginal(ctx context.Context, values map[string]eval.Value) (map[string]eval.Value, error) {
	all := maps.Clone(values)
	maps.Copy(all, t.checker.bound)
	return t.original.Run(ctx, all)
}

// fail notes that the result as a whole is wrong.
func (t *trial) fail(why string) {
	t.report.Equal = false
	for i := range t.report.Outputs {
		if o := &t.report.Outputs[i]; o.Equal {
			o.Equal, o.Cosine, o.Difference = false, 0, why
		}
	}
}

// String says which set it is: random, batch=2.
func (s CheckedSet) String() string {
	text := s.Values
	if s.Defaults {
		text += ", defaults overridden"
	}
	if s.Sizes != "" {
		text += ", " + s.Sizes
	}
	return text
}

// note takes one comparison into account.
func (o *CheckedOutput) note(r compare.Result, s CheckedSet) {
	o.MaxAbs, o.MaxRel, o.Cosine = max(o.MaxAbs, r.MaxAbs), max(o.MaxRel, r.MaxRel), min(o.Cosine, r.Cosine)
	if !r.Equal && o.Equal {
		o.Equal, o.Difference = false, fmt.Sprintf("%s (inputs: %s)", r, s)
	}
}

// progress tells what the job is at.
func (j Job) progress(format string, args ...any) {
	if j.Progress != nil {
		j.Progress(fmt.Sprintf(format, args...))
	}
}
