// Package inference is what `npuctl infer` does: one run of a model, from files or
// random numbers to files, and a comparison with what was expected.
//
// The result is plain data: the command prints it as tables, or as JSON as it is.
package inference

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/npuctl/npuctl/internal/compiledmodel"
	"github.com/npuctl/npuctl/internal/engine"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/feeds"
	"github.com/npuctl/npuctl/internal/onnxruntime"
	"github.com/npuctl/npuctl/internal/suggest"
	"github.com/npuctl/npuctl/internal/valuefile"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/compare"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnxpass"
)

// Job says what to run, on what, and where the results go.
type Job struct {
	Model string
	// Inputs are files and folders of values; without any, inputs are random.
	Inputs []string
	// Seed makes the random inputs; Sizes gives open dims their size.
	Seed  uint64
	Sizes onnxpass.Specialization

	// Engine is one of [engine.Names]; "" is the one that suits the model.
	Engine        string
	EngineOptions engine.Options

	// Output is a folder, or a .npz file, for the outputs; "" writes none. Format is
	// one of [valuefile.Formats].
	Output, Format string
	// Expect holds files of what the outputs should be; "" compares nothing.
	Expect string
	// Tolerance replaces the tolerances of [compare.ToleranceOf].
	Tolerance *compare.Tolerance
	// Progress is told, when set, what the job is at.
	Progress func(text string)
}

// Run does the job. Outputs that are not as expected are a failure of a goal; the
// result is there then, too. An error has the family of whoever must act.
func (j Job) Run(ctx context.Context) (*Result, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	m, err := j.openModel()
	if err != nil {
		return nil, err
	}
	defer m.Close()
	given, err := j.givenInputs(m)
	if err != nil {
		return nil, err
	}
	e, err := engine.Open(j.engine(), j.EngineOptions)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	r := &Result{Model: j.Model, Engine: e.Name(), Inputs: []Port{}, Outputs: []Output{}}
	outputs, err := j.run(ctx, e, m, given, r)
	if err != nil {
		return nil, err
	}
	if err := j.write(m, outputs, r); err != nil {
		return nil, err
	}
	return r, j.compare(m, outputs, r)
}

// check refuses flags that contradict each other.
func (j Job) check() error {
	if !slices.Contains(valuefile.Formats(), j.Format) {
		return fault.New(fault.Usage, "--format %s: there is no such format", j.Format).With("%s", suggest.Text(j.Format, valuefile.Formats()))
	}
	if j.Output == "-" {
		return fault.New(fault.Usage, "-o -: outputs are not written to standard output").With("name a folder or a .npz file; ./- is one of that name")
	}
	if j.EngineOptions.MaxBytes > 0 && j.engine() != engine.Reference {
		return fault.New(fault.Usage, "--max-memory: only the built-in interpreter has such a limit").With("use --engine ref with it")
	}
	if compiledmodel.Is(j.Model) && j.engine() != engine.Ascend {
		return fault.New(fault.Usage, "--engine %s: a compiled model runs on an NPU only", j.engine()).With("leave --engine out, or give the .onnx")
	}
	return nil
}

// givenInputs reads the inputs that the user gives; nil when they are to be random.
func (j Job) givenInputs(m *onnx.Model) (map[string]eval.Value, error) {
	if len(j.Inputs) == 0 {
		return nil, nil
	}
	reader := valuefile.Reader{Side: valuefile.Inputs, Flag: "--inputs", Ignore: names(m.Graph.Outputs())}
	types := map[string]string{}
	optional := map[string]bool{}
	for _, v := range onnxpass.RealInputs(m) {
		reader.Slots = append(reader.Slots, valuefile.Slot{Name: v.Name(), Type: v.Type})
		types[v.Name()] = v.Type.String()
		optional[v.Name()] = v.Initializer() != nil || v.Type != nil && v.Type.Kind == onnx.KindOptional
	}
	values, err := reader.Read(j.Inputs)
	if err != nil {
		return nil, err
	}
	missing := reader.Missing(values, func(name string) bool { return optional[name] })
	if len(missing) == 0 {
		return values, nil
	}
	for i, name := range missing {
		missing[i] = fmt.Sprintf("%q %s", name, types[name])
	}
	return nil, fault.New(fault.Usage, "--inputs: no value is given for %s", strings.Join(missing, ", ")).
		With("name the files after the inputs, as in %s", valuefile.Escape(reader.Slots[0].Name)+".npy")
}

func names(values []*onnx.Value) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = v.Name()
	}
	return out
}

// run loads the model and runs it on the given inputs, or on random ones.
func (j Job) run(ctx context.Context, e engine.Engine, m *onnx.Model, given map[string]eval.Value, r *Result) (map[string]eval.Value, error) {
	j.progress("load %s", j.Model)
	start := time.Now()
	program, err := e.Load(ctx, engine.Source{Path: j.Model})
	if err != nil {
		return nil, j.sort(ctx, "load", err)
	}
	defer program.Close()
	r.LoadSeconds = time.Since(start).Seconds()
	j.progress("run")
	attempts := []attempt{{values: given}}
	if given == nil {
		r.Random, r.Seed = true, j.Seed
		if attempts, err = j.attempts(m); err != nil {
			return nil, err
		}
	}
	var first error
	for _, a := range attempts {
		values, err := a.make()
		if err != nil {
			return nil, fault.New(fault.Usage, "%w", err).With("give inputs with --inputs, or sizes with --dim, --batch or --input-shape")
		}
		start = time.Now()
		outputs, err := program.Run(ctx, values)
		if err == nil {
			r.RunSeconds, r.Sizes = time.Since(start).Seconds(), a.sizes
			r.Inputs = ports(m, values)
			return outputs, nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil || errors.Is(err, eval.ErrUnsupported) || errors.Is(err, eval.ErrBudget) {
			break
		}
	}
	err = j.sort(ctx, "run", first)
	var f *fault.Error
	if given == nil && errors.As(err, &f) && f.Family == fault.Input {
		return nil, fault.New(fault.Usage, "random inputs do not suit the model: %w", first).
			With("give inputs with --inputs, or sizes with --dim, --batch or --input-shape")
	}
	return nil, err
}

// attempt is one set of inputs.
type attempt struct {
	values map[string]eval.Value // nil: make the set
	maker  *feeds.Maker
	set    feeds.Set
	sizes  string
}

func (a attempt) make() (map[string]eval.Value, error) {
	if a.maker == nil {
		return a.values, nil
	}
	return a.maker.Make(a.set)
}

// maxAttempts is how many sets of random inputs a model may refuse.
const maxAttempts = 40

// randomInputs lists sets of inputs, the likeliest to suit the model first.
func (j Job) randomInputs(m *onnx.Model) (out []attempt) {
	maker := feeds.New(m, onnxpass.RealInputs(m))
	for _, kind := range []feeds.Kind{feeds.Normal, feeds.Binary, feeds.Lengths} {
		for plan := range maker.Plans() {
			if len(out) < maxAttempts {
				out = append(out, attempt{maker: maker, set: feeds.Set{Plan: plan, Kind: kind, Seed: j.Seed}, sizes: maker.PlanText(plan)})
			}
		}
	}
	return out
}

// sort gives a failure of an engine its family.
func (j Job) sort(ctx context.Context, doing string, err error) error {
	var ort *onnxruntime.Error
	other := engine.ONNXRuntime
	if j.engine() == engine.ONNXRuntime {
		other = engine.Reference
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, eval.ErrBudget):
		return fault.New(fault.Missing, "%s %s: %w", doing, j.Model, err).With("allow more with --max-memory")
	case errors.Is(err, eval.ErrUnsupported), errors.As(err, &ort) && ort.Code == onnxruntime.CodeNotImplemented:
		return fault.New(fault.Missing, "%s %s: %w", doing, j.Model, err).With("try --engine %s", other)
	}
	return fault.New(fault.Input, "%s %s: %w", doing, j.Model, err)
}

func (j Job) progress(format string, args ...any) {
	if j.Progress != nil {
		j.Progress(fmt.Sprintf(format, args...))
	}
}
