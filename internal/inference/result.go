package inference

import (
	"fmt"
	"math"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/valuefile"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/compare"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnxpass"
)

// Result says what a run gave. Its JSON form is the contract of `npuctl infer
// --json`: fields are added, never renamed.
type Result struct {
	Model  string `json:"model"`
	Engine string `json:"engine"`
	// Emulated says that npuctl's emulator ran the model, and no NPU.
	Emulated bool `json:"emulated"`
	// Random says that the inputs were random; Seed made them, Values says of which sort
	// they are, and Sizes what open dims got.
	Random bool   `json:"random"`
	Seed   uint64 `json:"seed,omitempty"`
	Values string `json:"values,omitempty"`
	Sizes  string `json:"sizes,omitempty"`
	// Gear is the gear that ran, such as "batch 4", of a compiled model that has gears.
	Gear string `json:"gear,omitempty"`
	// Gears lists all of them.
	Gears string `json:"gears,omitempty"`
	// Notes are what else there is to know.
	Notes []string `json:"notes,omitempty"`

	Inputs  []Input  `json:"inputs"`
	Outputs []Output `json:"outputs"`

	// Comparisons are there when outputs were expected, one for each of those;
	// Equal says whether all of them are as expected.
	Comparisons []Comparison `json:"comparisons,omitempty"`
	Equal       *bool        `json:"equal,omitempty"`

	LoadSeconds float64 `json:"load_seconds"`
	RunSeconds  float64 `json:"run_seconds"`

	otherChip string // says that the model was compiled for another chip than the device's
}

// Port is a value with its name and its type as it was: FLOAT[2,3].
type Port struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Input is a value that the run was given, and the file it was saved to.
type Input struct {
	Port
	File string `json:"file,omitempty"`
}

// Output is a value that the run gave.
type Output struct {
	Port
	File string `json:"file,omitempty"`
	// Min, Max and Mean are over the finite elements of a tensor of real numbers;
	// NotFinite counts the others.
	Min       *float64 `json:"min,omitempty"`
	Max       *float64 `json:"max,omitempty"`
	Mean      *float64 `json:"mean,omitempty"`
	NotFinite int      `json:"not_finite"`
}

// Comparison says how one output compares with what was expected.
type Comparison struct {
	Output string `json:"output"`
	Equal  bool   `json:"equal"`
	// Problem is set when type, shape or structure differ.
	Problem   string `json:"problem,omitempty"`
	Elements  int    `json:"elements"`
	Differing int    `json:"differing"`
	// Finite counts the elements that are finite on both sides: the following measure
	// these, and mean nothing when there is none.
	Finite int     `json:"finite"`
	Cosine float64 `json:"cosine"`
	MaxAbs float64 `json:"max_abs"`
	MaxRel float64 `json:"max_rel"`
	// First is the first element that differs.
	First *FirstDifference `json:"first,omitempty"`
}

// FirstDifference is one element that is not what was expected.
type FirstDifference struct {
	Path  string `json:"path,omitempty"` // inside a sequence, optional or map
	Index []int  `json:"index"`
	Want  string `json:"want"`
	Got   string `json:"got"`
}

// ports lists the inputs that a run was given.
func ports(m *onnx.Model, values map[string]eval.Value) []Input {
	out := []Input{}
	for _, v := range onnxpass.RealInputs(m) {
		if given := values[v.Name()]; given != nil {
			out = append(out, Input{Port: Port{v.Name(), typeOf(given).String()}})
		}
	}
	return out
}

// typeOf is the type of a value as it is.
func typeOf(v eval.Value) *onnx.Type {
	switch v := v.(type) {
	case *tensor.Dense:
		return onnx.TensorType(v.Type(), v.Shape()...)
	case *eval.Sequence:
		if len(v.Items) == 0 {
			return onnx.SequenceType(&onnx.Type{Elem: v.Elem})
		}
		return onnx.SequenceType(itemType(v.Items))
	case *eval.Optional:
		if v.Value == nil {
			return onnx.OptionalType(&onnx.Type{})
		}
		return onnx.OptionalType(typeOf(v.Value))
	case *eval.Map:
		return &onnx.Type{Kind: onnx.KindMap, Elem: v.Keys.Type(), Inner: onnx.TensorType(v.Values.Type())}
	}
	return nil
}

// itemType is the type of the items of a sequence, without a shape if theirs differ.
func itemType(items []eval.Value) *onnx.Type {
	t := typeOf(items[0])
	for _, item := range items[1:] {
		if typeOf(item).String() != t.String() && t.IsTensor() {
			return t.WithShape(nil)
		}
	}
	return t
}

// saveInputs writes the inputs that were used where the job wants them.
func (j Job) saveInputs(m *onnx.Model, inputs map[string]eval.Value, r *Result) error {
	if j.SaveInputs == "" {
		return nil
	}
	var values []valuefile.Named
	for _, v := range onnxpass.RealInputs(m) {
		if given := inputs[v.Name()]; given != nil {
			values = append(values, valuefile.Named{Name: v.Name(), Value: given})
		}
	}
	j.progress("write %s", j.SaveInputs)
	paths, err := valuefile.Write(j.SaveInputs, j.Format, valuefile.Inputs, values)
	if err != nil {
		return fault.New(fault.Missing, "%w", err)
	}
	for i := range r.Inputs {
		r.Inputs[i].File = paths[min(i, len(paths)-1)]
	}
	return nil
}

// write writes the outputs where the job wants them, and describes them.
func (j Job) write(m *onnx.Model, outputs map[string]eval.Value, r *Result) error {
	var values []valuefile.Named
	for _, v := range m.Graph.Outputs() {
		value := outputs[v.Name()]
		values = append(values, valuefile.Named{Name: v.Name(), Value: value})
		r.Outputs = append(r.Outputs, describe(v.Name(), value))
	}
	if j.Output == "" {
		return nil
	}
	j.progress("write %s", j.Output)
	paths, err := valuefile.Write(j.Output, j.Format, valuefile.Outputs, values)
	if err != nil {
		return fault.New(fault.Missing, "%w", err)
	}
	for i := range r.Outputs {
		r.Outputs[i].File = paths[min(i, len(paths)-1)]
	}
	return nil
}

func describe(name string, v eval.Value) Output {
	o := Output{Port: Port{name, typeOf(v).String()}}
	d, ok := v.(*tensor.Dense)
	if !ok {
		return o
	}
	numbers, ok := d.Float64s()
	if !ok {
		return o
	}
	low, high, sum, count := math.Inf(1), math.Inf(-1), 0.0, 0
	for _, x := range numbers {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			o.NotFinite++
			continue
		}
		low, high, sum = min(low, x), max(high, x), sum+x
		count++
	}
	if count > 0 {
		mean := max(-math.MaxFloat64, min(math.MaxFloat64, sum)) / float64(count)
		o.Min, o.Max, o.Mean = &low, &high, &mean
	}
	return o
}

// compare holds the outputs against what is expected.
func (j Job) compare(m *onnx.Model, outputs map[string]eval.Value, r *Result) error {
	if j.Expect == "" {
		return nil
	}
	reader := valuefile.Reader{Side: valuefile.Outputs, Flag: "--expect", Ignore: names(m.Graph.Inputs()), AnyType: true}
	for _, v := range m.Graph.Outputs() {
		reader.Slots = append(reader.Slots, valuefile.Slot{Name: v.Name(), Type: typeOf(outputs[v.Name()])})
	}
	expected, err := reader.Read([]string{j.Expect})
	if err != nil {
		return err
	}
	if len(expected) == 0 {
		return fault.New(fault.Usage, "--expect %s: it holds nothing for an output of the model", j.Expect)
	}
	equal := true
	for _, v := range m.Graph.Outputs() {
		want, given := expected[v.Name()]
		if !given {
			continue
		}
		c := compare.Values(want, outputs[v.Name()], compare.Options{Tolerance: j.Tolerance})
		r.Comparisons = append(r.Comparisons, comparison(v.Name(), c, finitePairs(want, outputs[v.Name()], c)))
		equal = equal && c.Equal
	}
	r.Equal = &equal
	return r.verdict(len(j.Inputs) == 0)
}

// finitePairs counts the elements that a comparison could measure.
func finitePairs(want, got eval.Value, c compare.Result) int {
	a, isDense := want.(*tensor.Dense)
	b, isToo := got.(*tensor.Dense)
	switch {
	case c.Problem != "":
		return 0
	case !isDense || !isToo:
		return c.Elements
	}
	x, isReal := a.Float64s()
	y, isRealToo := b.Float64s()
	if !isReal || !isRealToo || len(x) != len(y) {
		return c.Elements
	}
	pairs := 0
	for i := range x {
		if x[i]-x[i] == 0 && y[i]-y[i] == 0 {
			pairs++
		}
	}
	return pairs
}

func comparison(name string, c compare.Result, finite int) Comparison {
	out := Comparison{
		Output: name, Equal: c.Equal, Problem: c.Problem, Elements: c.Elements, Differing: c.Differing,
		Finite: finite, Cosine: c.Cosine, MaxAbs: c.MaxAbs, MaxRel: c.MaxRel,
	}
	if c.First != nil {
		out.First = &FirstDifference{c.First.Path, c.First.Index, c.First.Want, c.First.Got}
	}
	return out
}

// Text says what differs: the problem, or the first element.
func (c Comparison) Text() string {
	switch {
	case c.Problem != "":
		return c.Problem
	case c.First != nil:
		return compare.Difference{Path: c.First.Path, Index: c.First.Index, Want: c.First.Want, Got: c.First.Got}.String()
	}
	return ""
}

// verdict is the failure of a comparison that found differences.
func (r *Result) verdict(isRandom bool) error {
	var first *Comparison
	differing := 0
	for i, c := range r.Comparisons {
		if c.Equal {
			continue
		}
		if first == nil {
			first = &r.Comparisons[i]
		}
		differing++
	}
	if first == nil {
		return nil
	}
	missed := fault.New(fault.Goal, "--expect: %d of %d outputs are not as expected; %s", differing, len(r.Comparisons),
		fmt.Sprintf("the first is %q: %s", first.Output, first.Text()))
	if isRandom {
		return missed.With("the inputs were random: give those that the expected outputs were made of, with --inputs")
	}
	return missed
}
