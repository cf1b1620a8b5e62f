// Package inference is what `npuctl infer` does: one run of a model, from files or
// random numbers to files, and a comparison with what was expected.
//
// The result is plain data: the command prints it as tables, or as JSON as it is.
package inference

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/npuctl/npuctl/internal/ascendcl"
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
	"github.com/npuctl/npuctl/onnx/tensor"
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

	// Output is a folder, or a .npz file, for the outputs; "" writes none. SaveInputs is
	// the same for the inputs that were used. Format is one of [valuefile.Formats].
	Output, SaveInputs, Format string
	// Expect holds files of what the outputs should be; "" compares nothing.
	Expect string
	// Tolerance replaces the tolerances of [compare.ToleranceOf].
	Tolerance *compare.Tolerance
	// Emulator gives the folder of npuctl's emulator, and makes it if need be: models
	// that it compiled run there. nil leaves them to what the machine has.
	Emulator func(ctx context.Context) (root string, err error)
	// Progress is told, when set, what the job is at.
	Progress func(text string)
}

// Run does the job. Outputs that are not as expected are a failure of a goal; the
// result is there then, too. An error has the family of whoever must act.
func (j Job) Run(ctx context.Context) (*Result, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	s, err := j.open()
	if err != nil {
		return nil, err
	}
	defer s.model.Close()
	given, err := j.givenInputs(s.model)
	if err != nil {
		return nil, err
	}
	if err := s.checkGear(given); err != nil {
		return nil, err
	}
	r := &Result{Model: j.Model, Inputs: []Input{}, Outputs: []Output{}}
	e, err := j.openEngine(ctx, s, r)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	r.Engine = e.Name()
	inputs, outputs, err := j.run(ctx, e, s, given, r)
	if err != nil {
		return nil, err
	}
	if r.Gear = s.gearText(inputs); r.Gear != "" {
		r.Gears = s.file.GearText()
	}
	if err := j.saveInputs(s.model, inputs, r); err != nil {
		return nil, err
	}
	if err := j.write(s.model, outputs, r); err != nil {
		return nil, err
	}
	return r, j.compare(s.model, outputs, r)
}

// check refuses flags that contradict each other.
func (j Job) check() error {
	if !slices.Contains(valuefile.Formats(), j.Format) {
		return fault.New(fault.Usage, "--format %s: there is no such format", j.Format).With("%s", suggest.Text(j.Format, valuefile.Formats()))
	}
	switch {
	case j.Output == "-":
		return fault.New(fault.Usage, "-o -: outputs are not written to standard output").With("name a folder or a .npz file; ./- is one of that name")
	case j.SaveInputs == "-":
		return fault.New(fault.Usage, "--save-inputs -: inputs are not written to standard output").With("name a folder or a .npz file; ./- is one of that name")
	case j.SaveInputs != "" && filepath.Clean(j.SaveInputs) == filepath.Clean(j.Output):
		return fault.New(fault.Usage, "--save-inputs and -o both name %s", j.Output).With("give inputs and outputs a place each")
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
	first := slices.IndexFunc(reader.Slots, func(slot valuefile.Slot) bool { return slot.Name == missing[0] })
	for i, name := range missing {
		missing[i] = fmt.Sprintf("%q %s", name, types[name])
	}
	return nil, fault.New(fault.Usage, "--inputs: no value is given for %s", strings.Join(missing, ", ")).
		With("name the files after the inputs, as in %s", valuefile.FileName(reader.Slots[first]))
}

func names(values []*onnx.Value) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = v.Name()
	}
	return out
}

// run loads the model and runs it on the given inputs, or on random ones. It gives the
// inputs it took, too.
func (j Job) run(ctx context.Context, e engine.Engine, s subject, given map[string]eval.Value, r *Result) (inputs, outputs map[string]eval.Value, err error) {
	j.progress("load %s", j.Model)
	start := time.Now()
	program, err := e.Load(ctx, engine.Source{Path: j.Model})
	if err != nil {
		return nil, nil, j.sort(ctx, "load", err, r)
	}
	defer program.Close()
	r.LoadSeconds = time.Since(start).Seconds()
	j.progress("run")
	if given == nil {
		return j.runRandom(ctx, program, s, r)
	}
	start = time.Now()
	if outputs, err = program.Run(ctx, given); err != nil {
		return nil, nil, j.sort(ctx, "run", err, r)
	}
	r.RunSeconds, r.Inputs = time.Since(start).Seconds(), ports(s.model, given)
	return given, outputs, nil
}

// runRandom runs the model on the first random inputs that suit it. Those that give
// nothing finite do not, unless no others of the same sizes are better.
func (j Job) runRandom(ctx context.Context, program engine.Program, s subject, r *Result) (inputs, outputs map[string]eval.Value, err error) {
	attempts, err := j.attempts(s)
	if err != nil {
		return nil, nil, err
	}
	r.Random, r.Seed = true, j.Seed
	var refusals []error
	var hollow *attempt // the first that ran and gave nothing finite
	for i, a := range attempts {
		if hollow != nil && !a.isKindOf(*hollow) {
			continue
		}
		values, err := a.make()
		if err != nil {
			return nil, nil, j.unmade(s.model, err)
		}
		start := time.Now()
		got, err := program.Run(ctx, values)
		if err == nil {
			isFirst := hollow == nil
			if isFirst || !isHollow(got) {
				inputs, outputs = values, got
				r.RunSeconds, r.Sizes, r.Values = time.Since(start).Seconds(), a.sizes, a.set.Kind.String()
				r.Inputs = ports(s.model, values)
			}
			if !isHollow(got) {
				return inputs, outputs, nil
			}
			if isFirst {
				hollow = &attempts[i]
			}
			continue
		}
		if refusals = append(refusals, err); ctx.Err() != nil || isFinal(err) {
			break
		}
	}
	if hollow != nil && ctx.Err() == nil {
		r.note("no output is finite: the random inputs do not suit this model; give real ones with --inputs")
		return inputs, outputs, nil
	}
	err = j.sort(ctx, "run", refusals[0], r)
	var f *fault.Error
	if errors.As(err, &f) && f.Family == fault.Input {
		return nil, nil, j.blame(ctx, s, refusals)
	}
	return nil, nil, err
}

// isHollow says whether a run gave floats, and none of them finite.
func isHollow(results map[string]eval.Value) bool {
	all := 0
	for _, v := range results {
		d, ok := v.(*tensor.Dense)
		if !ok || !d.Type().IsFloat() {
			continue
		}
		values, _ := d.Float64s()
		if finite(values) > 0 {
			return false
		}
		all += len(values)
	}
	return all > 0
}

// finite counts the finite numbers.
func finite(values []float64) (n int) {
	for _, x := range values {
		if x-x == 0 {
			n++
		}
	}
	return n
}

// attempt is one set of random inputs.
type attempt struct {
	maker *feeds.Maker
	set   feeds.Set
	sizes string
}

func (a attempt) make() (map[string]eval.Value, error) { return a.maker.Make(a.set) }

// isKindOf says whether a is of the sizes of b, with another sort of values.
func (a attempt) isKindOf(b attempt) bool {
	return a.maker == b.maker && a.set.Plan == b.set.Plan && a.set.Kind != b.set.Kind
}

// maxAttempts is how many sets of random inputs a model may refuse.
const maxAttempts = 40

// randomInputs lists sets of inputs, the likeliest to suit the model first.
func (j Job) randomInputs(m *onnx.Model) (out []attempt) {
	maker := feeds.New(m, onnxpass.RealInputs(m))
	kinds := []feeds.Kind{feeds.Normal, feeds.Binary, feeds.Lengths}
	if compiledmodel.Is(j.Model) {
		// No graph says which integers are indices, and of what: 0 and 1 suit most.
		kinds = []feeds.Kind{feeds.Binary, feeds.Normal, feeds.Lengths}
	}
	for _, kind := range kinds {
		for plan := range maker.Plans() {
			if len(out) < maxAttempts {
				out = append(out, attempt{maker: maker, set: feeds.Set{Plan: plan, Kind: kind, Seed: j.Seed}, sizes: maker.PlanText(plan)})
			}
		}
	}
	return out
}

// sort gives a failure of an engine its family.
func (j Job) sort(ctx context.Context, doing string, err error, r *Result) error {
	var ort *onnxruntime.Error
	other := engine.ONNXRuntime
	if j.engine() == engine.ONNXRuntime {
		other = engine.Reference
	}
	// A library may say itself what it was at.
	err = &told{err, fmt.Sprintf("%s %s: ", doing, j.Model), doing + ": "}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, eval.ErrFault):
		return fault.New(fault.Internal, "%w", err).With("please report it with the model, or its `npuctl inspect --json`")
	case errors.Is(err, eval.ErrBudget):
		return fault.New(fault.Missing, "%w", err).With("allow more with --max-memory")
	case errors.Is(err, tensor.ErrTooLarge):
		return fault.New(fault.Missing, "%w", err).With("if such a size is meant, try --engine %s: the built-in interpreter's arrays are bounded", other)
	case errors.Is(err, eval.ErrUnsupported), errors.As(err, &ort) && ort.Code == onnxruntime.CodeNotImplemented:
		return fault.New(fault.Missing, "%w", err).With("try --engine %s", other)
	case r.otherChip != "" && doing == "load": // the likeliest reason, whatever the code
		return fault.New(fault.Input, "%w (%s)", err, r.otherChip)
	case isDeviceFault(err):
		return fault.New(fault.Program, "%w", err).With("look at the device with `npu-smi info` and at its logs")
	case isShortage(err):
		return fault.New(fault.Missing, "%w", err).With("free the device of other programs, or choose another with --device")
	}
	return fault.New(fault.Input, "%w", err)
}

// told is a failure with what was being done in front of it, once.
type told struct {
	error
	prefix, short string
}

func (e *told) Error() string {
	return e.prefix + strings.TrimPrefix(strings.TrimPrefix(e.error.Error(), e.prefix), e.short)
}

func (e *told) Unwrap() error { return e.error }

// isDeviceFault says whether the device or its driver failed, and not the request.
func isDeviceFault(err error) bool {
	var acl *ascendcl.Error
	return errors.As(err, &acl) && acl.Device()
}

// isShortage says whether the device lacks something: memory, streams, permission.
func isShortage(err error) bool {
	var acl *ascendcl.Error
	return errors.As(err, &acl) && acl.Shortage()
}

func (j Job) progress(format string, args ...any) {
	if j.Progress != nil {
		j.Progress(fmt.Sprintf(format, args...))
	}
}
