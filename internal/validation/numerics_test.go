package validation

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/internal/engine"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx/compare"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnxpass"
)

func TestParseTolerances(t *testing.T) {
	got, err := ParseTolerances([]string{"1e-3", "float16=0.01,0.001", "float=1e-6", "a=b=0.5", "out=0"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		output string
		kind   tensor.Type
		want   compare.Tolerance
	}{
		{"x", tensor.Float16, compare.Tolerance{Relative: 0.01, Absolute: 0.001}},
		{"x", tensor.Float32, compare.Tolerance{Relative: 1e-6, Absolute: 1e-6}},
		{"x", tensor.BFloat16, compare.Tolerance{Relative: 1e-3, Absolute: 1e-3}},
		{"a=b", tensor.Float16, compare.Tolerance{Relative: 0.5, Absolute: 0.5}},
		{"out", tensor.Float16, compare.Tolerance{}},
	} {
		if got, isWish := got.of(test.output, test.kind); got != test.want || !isWish {
			t.Errorf("%s %v: %+v", test.output, test.kind, got)
		}
	}
	if got, isWish := (Tolerances{}).of("x", tensor.Float32); got != compare.ToleranceOf(tensor.Float32) || isWish {
		t.Errorf("without a word: %+v", got)
	}
	for _, word := range []string{"", "x", "-1", "=1", "out=", "1,", "1,2,3", "inf", "nan"} {
		if _, err := ParseTolerances([]string{word}); fault.FamilyOf(err) != fault.Usage {
			t.Errorf("%q: %v", word, err)
		}
	}
}

const slightlyOff = `<ir_version: 10, opset_import: ["": 13]>
net (float[batch,4] a, float[batch,4] b) => (float[batch,4] c)
<float[1] little = {0.001}> {
  d = Add (a, b)
  c = Add (d, little)
}`

func TestNumerics(t *testing.T) {
	folder := t.TempDir()
	original := save(t, filepath.Join(folder, "model.onnx"), someModel)
	result := save(t, filepath.Join(folder, "model.opt.onnx"), slightlyOff)
	noOutput := save(t, filepath.Join(folder, "less.onnx"), strings.ReplaceAll(someModel, " c", " d"))
	run := func(path string, n Numerics) (*Result, error) {
		if n.Samples == 0 {
			n.Samples = 2
		}
		n.Engine = engine.Reference
		return Job{Paths: []string{path}, Numerics: &n}.Run(context.Background())
	}
	tolerances := func(words ...string) Tolerances {
		got, err := ParseTolerances(words)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, test := range []struct {
		name, path string
		numerics   Numerics
		want       string
	}{
		{"beyond the default, the original by its name", result, Numerics{}, "numerics"},
		{"within what is allowed", result, Numerics{Tolerances: tolerances("0.1")}, ""},
		{"within what is allowed of the type", result, Numerics{Tolerances: tolerances("0", "float=0.1")}, ""},
		{"within what is allowed of the output", result, Numerics{Tolerances: tolerances("0", "c=0.1")}, ""},
		{"the original itself, optimised", original, Numerics{Sizes: onnxpass.Specialization{Batch: 3}}, ""},
		{"an output is missing", noOutput, Numerics{Original: original}, "numerics"},
	} {
		r, err := run(test.path, test.numerics)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if got := ids(r.Findings); got != test.want || r.Numerics.Samples < 1 {
			t.Errorf("%s: %q, %+v", test.name, got, r.Numerics)
		}
	}
	r, err := run(result, Numerics{})
	if err != nil {
		t.Fatal(err)
	}
	o := r.Numerics.Outputs[0]
	if o.Equal || o.MaxAbs < 0.0009 || o.MaxAbs > 0.0011 || o.Cosine < 0.99 || o.Cosine > 1 || r.Numerics.Original != original {
		t.Errorf("%+v", r.Numerics)
	}
	for want, job := range map[string]Job{
		"there are 0":       {Paths: []string{folder}},
		"there are 2":       {Paths: []string{original, result}},
		`did you mean "c"?`: {Paths: []string{result}},
	} {
		job.Numerics = &Numerics{Samples: 1, Engine: engine.Reference}
		if strings.Contains(want, "mean") {
			job.Numerics.Tolerances = tolerances("C=1")
		}
		if _, err := job.Run(context.Background()); fault.FamilyOf(err) != fault.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
