package validation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/configgen/rules"
	"github.com/npuctl/npuctl/internal/compilation"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/modelfile"
	"github.com/npuctl/npuctl/internal/optimization"
	"github.com/npuctl/npuctl/internal/project"
	"github.com/npuctl/npuctl/internal/suggest"
	"github.com/npuctl/npuctl/internal/valuefile"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/compare"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnxpass"
)

// Numerics says how to compare a model with the one it was made from.
type Numerics struct {
	// Original is that one; "" finds it: by the build record, by the name (model.onnx for
	// model.opt.onnx and model.om.onnx), and else optimises the model and compares the result.
	Original string
	// Inputs are files and folders of values; without any, Samples random sets are made.
	Inputs  []string
	Samples int
	Seed    uint64
	// Sizes fixes open dims for random inputs.
	Sizes onnxpass.Specialization
	// Tolerances replace those of the element types: see [ParseTolerances].
	Tolerances Tolerances
	// Engine is one of [engine.GraphEngines]; "" takes the most independent there is.
	Engine  string
	Library string
}

// Tolerances say how far floats may be off. What is said of an output counts before
// what is said of its type, and that before what is said of all.
type Tolerances struct {
	All      *compare.Tolerance
	ByType   map[tensor.Type]compare.Tolerance
	ByOutput map[string]compare.Tolerance
}

// ParseTolerances reads words of the form RELATIVE[,ABSOLUTE], TYPE=… or OUTPUT=…, such
// as 1e-3, float16=1e-2,1e-3 or logits=0.05. Absolute is a share of how large the
// elements of the output are; left out it is as relative.
func ParseTolerances(words []string) (t Tolerances, err error) {
	t = Tolerances{ByType: map[tensor.Type]compare.Tolerance{}, ByOutput: map[string]compare.Tolerance{}}
	for _, word := range words {
		name, text := "", word
		if i := strings.LastIndex(word, "="); i >= 0 {
			name, text = word[:i], word[i+1:]
		}
		one, ok := parseTolerance(text)
		if !ok {
			return t, fault.New(fault.Usage, "--tolerance %s: give it as 1e-3, or RELATIVE,ABSOLUTE; TYPE= or OUTPUT= before it", word)
		}
		kind, isType := tensor.ParseType(name) // float, float32, float16
		switch {
		case name == "" && text == word:
			t.All = &one
		case name == "":
			return t, fault.New(fault.Usage, "--tolerance %s: there is no name before the =", word)
		case isType:
			t.ByType[kind] = one
		default:
			t.ByOutput[name] = one
		}
	}
	return t, nil
}

func parseTolerance(text string) (t compare.Tolerance, ok bool) {
	relative, absolute, both := strings.Cut(text, ",")
	if !both {
		absolute = relative
	}
	var errs [2]error
	t.Relative, errs[0] = strconv.ParseFloat(relative, 64)
	t.Absolute, errs[1] = strconv.ParseFloat(absolute, 64)
	isFine := func(x float64) bool { return x >= 0 && !math.IsInf(x, 0) }
	return t, errors.Join(errs[:]...) == nil && isFine(t.Relative) && isFine(t.Absolute)
}

// of is the tolerance for an output, and whether somebody asked for it.
func (t Tolerances) of(name string, kind tensor.Type) (tolerance compare.Tolerance, isWish bool) {
	if one, ok := t.ByOutput[name]; ok {
		return one, true
	}
	if one, ok := t.ByType[kind]; ok {
		return one, true
	}
	if t.All != nil {
		return *t.All, true
	}
	return compare.ToleranceOf(kind), false
}

// Comparison is how a model and its original compared. Its JSON form is part of the
// contract of `npuctl validate --json`.
type Comparison struct {
	Model    string `json:"model"`
	Original string `json:"original"`
	// Optimised is set when the model is the original, and what was compared with it is
	// what npuctl optimize makes of it.
	Optimised bool   `json:"optimised,omitempty"`
	Engine    string `json:"engine"`
	// Independent says whether the engine had no part in making the model.
	Independent bool             `json:"independent"`
	Samples     int              `json:"samples"` // sets of inputs that both took
	Random      bool             `json:"random"`
	Seed        uint64           `json:"seed,omitempty"`
	Outputs     []ComparedOutput `json:"outputs"`
}

// ComparedOutput is the worst that was seen of an output.
type ComparedOutput struct {
	Name   string  `json:"name"`
	Type   string  `json:"type"`
	Equal  bool    `json:"equal"`
	MaxAbs float64 `json:"max_abs"`
	MaxRel float64 `json:"max_rel"`
	Cosine float64 `json:"cosine"`
	// Relative and Absolute are the tolerance.
	Relative   float64 `json:"relative_tolerance"`
	Absolute   float64 `json:"absolute_tolerance"`
	Difference string  `json:"difference,omitempty"`
}

// compare adds what comparing the one model of the paths with its original gives.
func (j Job) compare(ctx context.Context, r *Result) error {
	path, err := j.comparedModel()
	if err != nil {
		return err
	}
	c := &comparison{Numerics: *j.Numerics, path: path, report: &Comparison{Model: path, Random: len(j.Numerics.Inputs) == 0}}
	done, err := c.findOriginal(ctx, j)
	defer done()
	if err != nil {
		return err
	}
	if err := c.run(ctx, j); err != nil {
		return err
	}
	r.Numerics = c.report
	for _, o := range c.report.Outputs {
		if !o.Equal {
			r.Findings = append(r.Findings, rules.Find("numerics", j.Language, path, o.Name, o.Difference))
		}
	}
	return nil
}

// comparedModel is the one .onnx that the paths name, be it through a project file.
func (j Job) comparedModel() (string, error) {
	var models []string
	for _, path := range j.Paths {
		switch {
		case strings.EqualFold(filepath.Ext(path), ".onnx"):
			models = append(models, path)
		case isProject(path):
			if p, err := project.Read(path); err == nil && p.ModelPath() != "" {
				models = append(models, p.ModelPath())
			}
		}
	}
	if len(models) != 1 {
		return "", fault.New(fault.Usage, "--check-numerics takes one PATH.onnx, or a project file that names one; there are %d", len(models))
	}
	return models[0], nil
}

type comparison struct {
	Numerics
	path, original, result string
	sets                   []map[string]eval.Value // those given; nil for random ones
	report                 *Comparison
}

// findOriginal settles which two files are compared. done takes away what was made.
func (c *comparison) findOriginal(ctx context.Context, j Job) (done func(), err error) {
	done = func() {}
	c.result, c.original = c.path, c.Original
	if c.original == "" {
		c.original = originalOf(c.path)
	}
	c.report.Original = c.original
	if c.original != "" {
		return done, nil
	}
	c.original, c.report.Original, c.report.Optimised = c.path, c.path, true
	folder, err := os.MkdirTemp("", "npuctl-numerics-")
	if err != nil {
		return done, fault.New(fault.Missing, "make a folder to optimise in: %w", err)
	}
	done = func() { os.RemoveAll(folder) }
	c.result = filepath.Join(folder, "model.opt.onnx")
	j.progress("optimise " + c.path)
	_, err = optimization.Job{Input: c.path, Output: c.result}.Run(ctx)
	return done, err
}

// originalOf finds what a model was made from; "" when nothing tells.
func originalOf(path string) string {
	for _, ending := range []string{".om.onnx", ".opt.onnx"} {
		stem, isSo := strings.CutSuffix(path, ending)
		if !isSo {
			continue
		}
		if r, err := compilation.ReadRecord(stem + ".om.json"); err == nil && ending == ".om.onnx" && len(r.Input) > 0 {
			if source := filepath.Join(filepath.Dir(path), filepath.FromSlash(r.Input[0].Path)); exists(source) {
				return source
			}
		}
		if exists(stem + ".onnx") {
			return stem + ".onnx"
		}
	}
	return ""
}

// run compares, and keeps what came out.
func (c *comparison) run(ctx context.Context, j Job) error {
	if err := c.prepare(); err != nil {
		return err
	}
	if err := c.fixSizes(); err != nil {
		return err
	}
	j.progress("compare")
	check, err := optimization.Comparison{
		Original: c.original, Result: c.result, Inputs: c.sets, Samples: c.Samples, Seed: c.Seed, Specialization: c.Sizes,
		Tolerance: c.tolerance, Engine: c.Engine, Library: c.Library, Progress: j.Progress,
	}.Run(ctx)
	if err != nil {
		return fmt.Errorf("--check-numerics: %w", err)
	}
	c.report.Engine, c.report.Independent, c.report.Samples = check.Engine, check.Independent, check.Inputs
	if c.report.Random {
		c.report.Seed = c.Seed
	}
	for i, o := range check.Outputs {
		row := &c.report.Outputs[i]
		row.Equal, row.MaxAbs, row.MaxRel, row.Cosine, row.Difference = o.Equal, o.MaxAbs, o.MaxRel, o.Cosine, o.Difference
	}
	return nil
}

// fixSizes gives the original the sizes that the result was fixed to: inputs of others suit
// one of the two alone.
func (c *comparison) fixSizes() error {
	result, err := modelfile.Open(c.result)
	if err != nil {
		return err
	}
	defer result.Close()
	original, err := modelfile.Open(c.original)
	if err != nil {
		return err
	}
	defer original.Close()
	if c.Sizes.Shapes == nil {
		c.Sizes.Shapes = map[string][]int64{}
	}
	for _, v := range onnxpass.RealInputs(original) {
		fixed := result.Graph.Find(v.Name())
		if _, given := c.Sizes.Shapes[v.Name()]; given || fixed == nil || !hasShape(v) || !hasShape(fixed) {
			continue
		}
		own, others := v.Type.Shape.Dims, fixed.Type.Shape.Dims
		if len(own) != len(others) {
			continue
		}
		sizes, isFixed := make([]int64, len(own)), false
		for axis, d := range own {
			sizes[axis] = -1
			if !d.Known && others[axis].Known {
				sizes[axis], isFixed = others[axis].Value, true
			}
		}
		if isFixed {
			c.Sizes.Shapes[v.Name()] = sizes
		}
	}
	return nil
}

func hasShape(v *onnx.Value) bool { return v.Type.IsTensor() && v.Type.Shape != nil }

// tolerance is how far an output may be off; where the model does not say its type, the
// values do.
func (c *comparison) tolerance(output string, kind tensor.Type) (compare.Tolerance, bool) {
	tolerance, isWish := c.Tolerances.of(output, kind)
	for i := range c.report.Outputs {
		if row := &c.report.Outputs[i]; row.Name == output {
			row.Type, row.Relative, row.Absolute = strings.ToLower(kind.String()), tolerance.Relative, tolerance.Absolute
		}
	}
	return tolerance, isWish
}

// prepare opens the original, makes the report's rows and reads the inputs.
func (c *comparison) prepare() error {
	model, err := modelfile.Open(c.original)
	if err != nil {
		return err
	}
	defer model.Close()
	if err := onnxpass.Specialize(model, c.Sizes); err != nil {
		return err
	}
	if err := c.checkNames(model); err != nil || c.report.Random {
		return err
	}
	c.sets, err = c.readInputs(model)
	return err
}

// checkNames refuses tolerances for outputs that there are not, and makes the report's rows.
func (c *comparison) checkNames(m *onnx.Model) error {
	var known []string
	for _, v := range m.Graph.Outputs() {
		known = append(known, v.Name())
		kind := tensor.Undefined
		if v.Type != nil && v.Type.Kind == onnx.KindTensor {
			kind = v.Type.Elem
		}
		t, _ := c.Tolerances.of(v.Name(), kind)
		c.report.Outputs = append(c.report.Outputs, ComparedOutput{Name: v.Name(), Type: strings.ToLower(kind.String()), Equal: true, Cosine: 1, Relative: t.Relative, Absolute: t.Absolute})
	}
	for name := range c.Tolerances.ByOutput {
		if !slices.Contains(known, name) {
			return fault.New(fault.Usage, "--tolerance: %q is neither an output of %s nor a type", name, c.original).With("%s", suggest.Text(name, known))
		}
	}
	return nil
}

// readInputs reads the inputs that are given.
func (c *comparison) readInputs(m *onnx.Model) ([]map[string]eval.Value, error) {
	reader := valuefile.Reader{Side: valuefile.Inputs, Flag: "--inputs"}
	for _, v := range m.Graph.Outputs() {
		reader.Ignore = append(reader.Ignore, v.Name())
	}
	hasDefault := map[string]bool{}
	for _, v := range onnxpass.RealInputs(m) {
		reader.Slots = append(reader.Slots, valuefile.Slot{Name: v.Name(), Type: v.Type})
		hasDefault[v.Name()] = v.Initializer() != nil
	}
	values, err := reader.Read(c.Inputs)
	if err != nil {
		return nil, err
	}
	if missing := reader.Missing(values, func(name string) bool { return hasDefault[name] }); len(missing) > 0 {
		return nil, fault.New(fault.Usage, "--inputs: no value is given for %s", strings.Join(missing, ", "))
	}
	return []map[string]eval.Value{values}, nil
}
