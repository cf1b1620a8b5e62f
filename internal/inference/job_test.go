package inference

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/internal/engine"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/valuefile"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/text"
	"github.com/npuctl/npuctl/onnxpass"
)

// jobOf is a job for the model that src is the text of.
func jobOf(t *testing.T, src string) Job {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := text.MustParse(t, src).Save(path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return Job{Model: path, Engine: engine.Reference, Format: "npy", Seed: 1}
}

const header = `<ir_version: 8, opset_import: ["": 17]> `

// Random inputs: when the model refuses the likeliest sizes and values, others are tried.
func TestRandomInputsThatSuit(t *testing.T) {
	for _, test := range []struct{ name, src, want string }{
		{"any size", `(float[N,3] x) => (y) { y = Relu (x) }`, "N=1"},
		{"a multiple of 3", `(float[N,M] x) => (y) <int64[2] s = {-1, 3}> { y = Reshape (x, s) }`, "N=2, M=6"},
		{"lengths", `(float[N,T,1] x, int64[N] n) => (y) <int64[1] zero = {0}, int64[1] one = {1}> {
			top = ReduceMax <keepdims = 1> (n)  shape = Shape <start = 1, end = 2> (x)  same = Sub (shape, top)
			y = Gather <axis = 0> (one, same) }`, ""}, // any that is equal to the lengths
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := jobOf(t, header+test.src).Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if !r.Random || r.Sizes == "" || test.want != "" && r.Sizes != test.want {
				t.Errorf("random %v, sizes %q, want %q", r.Random, r.Sizes, test.want)
			}
		})
	}
	_, err := jobOf(t, header+`(float[4] x, int64[2] s) => (y) <int64[2] a = {1000, 1000}> { t = Mul (s, a)  y = Reshape (x, t) }`).Run(context.Background())
	if fault.FamilyOf(err) != fault.Usage || !strings.Contains(err.Error(), "random inputs do not suit the model") || !strings.Contains(err.Error(), "--inputs") {
		t.Errorf("error %v", err)
	}
}

// Failures go to whoever can act.
func TestFamilies(t *testing.T) {
	add := header + `(float[N,3] x) => (y) { y = Add (x, x) }`
	for _, test := range []struct {
		name   string
		change func(*Job)
		src    string
		want   fault.Family
	}{
		{"an operator nobody knows", nil, `<opset_import: ["": 17, "org.example": 1]> (float[2] x) => (y) { y = org.example.Frob (x) }`, fault.Missing},
		{"memory", func(j *Job) {
			j.EngineOptions.MaxBytes = 10
			j.Sizes = onnxpass.Specialization{Batch: 100}
		}, add, fault.Missing},
		{"no such dim", func(j *Job) { j.Sizes.Dims = map[string]int64{"M": 1} }, add, fault.Usage},
		{"no such format", func(j *Job) { j.Format = "png" }, add, fault.Usage},
		{"no such file", func(j *Job) { j.Model += "x" }, add, fault.Input},
		{"no such expectation", func(j *Job) { j.Expect = "/nowhere" }, add, fault.Usage},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := jobOf(t, test.src)
			if test.change != nil {
				test.change(&j)
			}
			if _, err := j.Run(context.Background()); fault.FamilyOf(err) != test.want {
				t.Errorf("%v: %v, want %v", fault.FamilyOf(err), err, test.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := jobOf(t, add).Run(ctx); fault.FamilyOf(err) != fault.Interrupted {
		t.Errorf("given up: %v", err)
	}
}

// Outputs of every kind are written, read back and equal; a partial expectation compares what is there.
func TestExpectations(t *testing.T) {
	j := jobOf(t, header+`(float[2] x) => (y, s, z) { y = Abs (x)  s = SequenceConstruct (x, y)  z = Neg (x) }`)
	for _, format := range valuefile.Formats() {
		first := j
		first.Format, first.Output = format, filepath.Join(t.TempDir(), "out")
		if _, err := first.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		again := j
		again.Expect = first.Output
		r, err := again.Run(context.Background())
		if err != nil || r.Equal == nil || !*r.Equal || len(r.Comparisons) != 3 {
			t.Errorf("%s: %+v, %v", format, r, err)
		}
		again.Seed = 2
		r, err = again.Run(context.Background())
		if fault.FamilyOf(err) != fault.Goal || r == nil || *r.Equal {
			t.Errorf("%s: other inputs are equal: %v", format, err)
		}
	}
	partial := j
	partial.Output = filepath.Join(t.TempDir(), "out")
	if _, err := partial.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"s.pb", "z.npy"} {
		if err := os.Remove(filepath.Join(partial.Output, name)); err != nil {
			t.Fatal(err)
		}
	}
	partial.Expect, partial.Output = partial.Output, ""
	if r, err := partial.Run(context.Background()); err != nil || len(r.Comparisons) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestDescribe(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	o := describe("x", tensor.Of([]float64{1, nan, 4, inf}, 4))
	if o.NotFinite != 2 || *o.Min != 1 || *o.Max != 4 || *o.Mean != 2.5 || o.Type != "DOUBLE[4]" {
		t.Errorf("got %+v", o)
	}
	for name, v := range map[string]eval.Value{
		"STRING[1]":                          tensor.Of([]string{"a"}, 1),
		"FLOAT[0]":                           tensor.Of([]float32{}, 0),
		"sequence(FLOAT[...])":               &eval.Sequence{Items: []eval.Value{tensor.Of([]float32{1}, 1), tensor.Scalar(float32(2))}},
		"sequence(INT64[])":                  &eval.Sequence{Items: []eval.Value{tensor.Scalar(int64(2))}},
		"optional(INT64[])":                  &eval.Optional{Value: tensor.Scalar(int64(2))},
		"sequence(map(STRING,FLOAT[]))":      &eval.Sequence{Items: []eval.Value{&eval.Map{Keys: tensor.Of([]string{"a"}, 1), Values: tensor.Of([]float32{1}, 1)}}},
		"sequence(FLOAT[...]) of no element": &eval.Sequence{Elem: tensor.Float32},
	} {
		o := describe("x", v)
		if want, _, _ := strings.Cut(name, " of"); o.Type != want || o.Min != nil && name != "optional(INT64[])" {
			t.Errorf("%s: got %+v", name, o)
		}
	}
}
