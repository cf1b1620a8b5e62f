package optimization

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/internal/engine"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/text"
	"github.com/npuctl/npuctl/onnxpass"
)

// write saves the model that src is the text of in a fresh folder.
func write(t *testing.T, src string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "model.onnx")
	if err := text.MustParse(t, src).Save(path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}

// judges calls f for every engine that is there.
func judges(t *testing.T, f func(t *testing.T, judge string)) {
	for _, name := range engine.GraphEngines() {
		t.Run(name, func(t *testing.T) {
			e, err := engine.Open(name, engine.Options{})
			if fault.FamilyOf(err) == fault.Missing {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			e.Close()
			f(t, name)
		})
	}
}

const header = `<ir_version: 8, opset_import: ["": 17]> `

// What an optimiser could do wrong, put in by hand, must be found.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	for _, test := range []struct {
		name, original, result string
		want                   string // of the failure
	}{
		{"another value",
			`g (float[N,3] x) => (float[N,3] y) <float[3] w = {1, 2, 3}> { y = Mul (x, w) }`,
			`g (float[N,3] x) => (float[N,3] y) <float[3] w = {1, 2, 3.1}> { y = Mul (x, w) }`,
			`output "y" of the result is not that of the original`},
		{"another value of one element in a thousand",
			`g (float[1,1000] x) => (float[1,1000] y) { y = Identity (x) }`,
			`g (float[1,1000] x) => (float[1,1000] y) <int64[1,2] i = {0, 577}, float[1] v = {0.5}> { y = ScatterND (x, i, v) }`,
			"1 of 1000 elements differ"},
		{"NaN is lost",
			`g (float[N] x) => (float[N] y) <float z = {0}> { y = Mul (x, z) }`,
			`g (float[N] x) => (float[N] y) { s = Shape (x)  y = ConstantOfShape (s) }`,
			"instead of NaN (inputs: NaN"},
		{"an edge of integers",
			`g (int32[N] x) => (float[N] y) { a = Cast <to = 11> (x)  y = Cast <to = 1> (a) }`,
			`g (int32[N] x) => (float[N] y) { a = Cast <to = 6> (x) b = Cast <to = 5> (a) c = Cast <to = 6> (b) y = Cast <to = 1> (c) }`,
			"(inputs: extremes"},
		{"a shape that is right for one size only",
			`g (float[N,4] x) => (y) { y = Identity (x) }`,
			`g (float[N,4] x) => (y) <int64[2] s = {1, 4}> { y = Reshape (x, s) }`,
			"the result fails where the original runs (random, N="},
		{"another type",
			`g (float[N] x) => (y) { y = Identity (x) }`,
			`g (float[N] x) => (y) { y = Cast <to = 11> (x) }`,
			"DOUBLE[1] instead of FLOAT[1]"},
		{"the second output",
			`g (float[N] x) => (float[N] y, float[N] z) { y = Relu (x)  z = Neg (x) }`,
			`g (float[N] x) => (float[N] y, float[N] z) { y = Relu (x)  z = Abs (x) }`,
			`output "z" of the result is not that of the original`},
		{"a small fault in a model that computes in half precision elsewhere",
			`g (float[N,3] x) => (float[N,3] y, float[N,3] z) <float[3] w = {1, 2, 3}> { y = Mul (x, w)  h = Cast <to = 10> (x)  z = Cast <to = 1> (h) }`,
			`g (float[N,3] x) => (float[N,3] y, float[N,3] z) <float[3] w = {1, 2, 3.001}> { y = Mul (x, w)  h = Cast <to = 10> (x)  z = Cast <to = 1> (h) }`,
			`output "y" of the result is not that of the original`},
		{"a fault larger than half precision excuses",
			`g (float[N,3] x) => (float[N,3] y) { h = Cast <to = 10> (x)  y = Cast <to = 1> (h) }`,
			`g (float[N,3] x) => (float[N,3] y) <float a = {1.02}> { y = Mul (x, a) }`,
			`output "y" of the result is not that of the original`},
		{"a fault in a model that answers wildly to a rounding",
			`g (float[N,3] x) => (float[N,3] y) <float a = {10000000}> { b = Mul (x, a)  y = Sin (b) }`,
			`g (float[N,3] x) => (float[N,3] y) <float a = {10000000}> { b = Mul (x, a)  y = Cos (b) }`,
			`output "y" of the result is not that of the original`},
		{"a default that became a constant",
			`g (float[N] x, float[1] bias = {0}) => (float[N] y) { y = Add (x, bias) }`,
			`g (float[N] x, float[1] bias = {0}) => (float[N] y) { y = Identity (x) }`,
			"(inputs: random, defaults overridden"},
		{"a result that does not load",
			`g (float[N] x) => (float[N] y) { y = Relu (x) }`,
			`g (float[N] x) => (float[N] y) { y = org.example.Relu (x) }`,
			"runs the original but cannot load the result"},
	} {
		t.Run(test.name, func(t *testing.T) {
			judges(t, func(t *testing.T, judge string) {
				j := Job{Input: write(t, header+test.original), Check: 3, CheckSeed: 1, Judge: judge}
				j.Output = DefaultOutput(j.Input)
				broken := text.MustParse(t, header+test.result)
				report, err := j.check(context.Background(), broken)
				if fault.FamilyOf(err) != fault.Goal || !strings.Contains(err.Error(), test.want) {
					t.Fatalf("error %v, want %q", err, test.want)
				}
				if report == nil || report.Equal {
					t.Errorf("report %+v", report)
				}
			})
		})
	}
}

func TestCheckOfEqualModels(t *testing.T) {
	for _, test := range []struct {
		name, original, result string
		bind                   map[string]string
		inputs                 int // compared sets; 0: not looked at
		compared               string
	}{
		{name: "the same", inputs: 3 + 4, compared: "values",
			original: `g (float[N,3] x) => (float[N,3] y) { y = Relu (x) }`,
			result:   `g (float[N,3] x) => (float[N,3] y) { y = Relu (x) }`},
		{name: "rounded otherwise", compared: "values",
			original: `g (float[N,3] x) => (float[N,3] y) <float[3] a = {3, 3, 3}> { y = Div (x, a) }`,
			result:   `g (float[N,3] x) => (float[N,3] y) <float[3] a = {0.33333334, 0.33333334, 0.33333334}> { y = Mul (x, a) }`},
		{name: "half inside", compared: "values",
			original: `g (float[N,3] x) => (float[N,3] y) { h = Cast <to = 10> (x)  y = Cast <to = 1> (h) }`,
			result:   `g (float[N,3] x) => (float[N,3] y) { y = Identity (x) }`},
		{name: "overflow at another place", compared: "values",
			original: `g (float[N,3] x) => (float[N,3] y) <float a = {100}, float b = {0.01}> { z = Mul (x, a)  y = Mul (z, b) }`,
			result:   `g (float[N,3] x) => (float[N,3] y) { y = Identity (x) }`},
		{name: "cancelled but for rounding", compared: "values",
			original: `g (float[N,3] x) => (float[N,3] y) <float a = {1}, float b = {1.00001}> { z = Add (x, a)  y = Sub (b, z) }`,
			result:   `g (float[N,3] x) => (float[N,3] y) <float c = {0.00001}> { y = Sub (c, x) }`},
		{name: "no inputs", inputs: 1, compared: "values",
			original: `g () => (float[2] y) <float[2] a = {1, 2}> { y = Neg (a) }`,
			result:   `g () => (float[2] y) <float[2] a = {-1, -2}> { y = Identity (a) }`},
		{name: "a bound input", compared: "values", bind: map[string]string{"k": "2"},
			original: `g (float[N] x, float k) => (float[N] y) { y = Mul (x, k) }`,
			result:   `g (float[N] x) => (float[N] y) <float k = {2}> { y = Mul (x, k) }`},
		{name: "a random output is compared by shape", compared: "shape",
			original: `g (float[N] x) => (float[N] y) { y = RandomUniformLike (x) }`,
			result:   `g (float[N] x) => (float[N] y) { y = RandomUniformLike (x) }`},
		{name: "a random shape, too", compared: "shape",
			original: `g (float[10] x) => (int64[?,?] y) { r = RandomNormalLike (x)  p = Relu (r)  y = NonZero (p) }`,
			result:   `g (float[10] x) => (int64[?,?] y) { r = RandomNormalLike (x)  p = Relu (r)  y = NonZero (p) }`},
		{name: "sizes that the original refuses do not count", compared: "values",
			original: `g (float[N,M] x) => (float[?,?] y) <int64[2] s = {-1, 5}> { y = Reshape (x, s) }`,
			result:   `g (float[N,M] x) => (float[?,?] y) <int64[2] s = {-1, 5}> { y = Reshape (x, s) }`},
	} {
		t.Run(test.name, func(t *testing.T) {
			judges(t, func(t *testing.T, judge string) {
				j := Job{Input: write(t, header+test.original), Check: 3, CheckSeed: 1, Judge: judge,
					Specialization: onnxpass.Specialization{Bind: test.bind}}
				j.Output = DefaultOutput(j.Input)
				r, err := j.check(context.Background(), text.MustParse(t, header+test.result))
				if err != nil {
					t.Fatal(err)
				}
				if !r.Equal || r.Outputs[0].Compared != test.compared || r.Inputs == 0 || len(r.Sets) != r.Inputs {
					t.Errorf("report %+v", r)
				}
				if test.inputs > 0 && r.Inputs != test.inputs {
					t.Errorf("%d sets compared, want %d: %+v", r.Inputs, test.inputs, r.Sets)
				}
				if r.Independent != (judge == engine.ONNXRuntime) || r.Independent == (r.Note != "") {
					t.Errorf("%s: independent %v, note %q", r.Engine, r.Independent, r.Note)
				}
			})
		})
	}
}

// A check that could not look at anything is no success.
func TestCheckThatCannotJudge(t *testing.T) {
	for _, test := range []struct{ name, src, want string }{
		{"an operator nobody knows", `<ir_version: 8, opset_import: ["": 17, "org.example": 1]> g (float[N] x) => (float[N] y) { y = org.example.Frobnicate (x) }`, "Frobnicate"},
		{"inputs nobody can guess", header + `g (float[4] x, int64[2] s) => (float[?,?] y) <int64[2] a = {1000, 1000}> { t = Mul (s, a)  y = Reshape (x, t) }`, "refused all"},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := Job{Input: write(t, test.src), Check: 2, CheckSeed: 1}
			j.Output = DefaultOutput(j.Input)
			m := text.MustParse(t, test.src)
			r, err := j.check(context.Background(), m)
			if r != nil || fault.FamilyOf(err) != fault.Goal || !strings.Contains(err.Error(), "nothing could be compared") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("report %v, error %v, want %q", r, err, test.want)
			}
		})
	}
}

// ONNX Runtime does not know every type; the built-in interpreter stands in and says so.
func TestCheckFallsBack(t *testing.T) {
	e, err := engine.Open(engine.ONNXRuntime, engine.Options{})
	if err != nil {
		t.Skip(err)
	}
	e.Close()
	src := `<ir_version: 10, opset_import: ["": 21]> g (bfloat16[N] x) => (bfloat16[N] y) { y = Floor (x) }`
	j := Job{Input: write(t, src), Check: 1, CheckSeed: 1}
	j.Output = DefaultOutput(j.Input)
	r, err := j.check(context.Background(), text.MustParse(t, src))
	if err != nil {
		t.Fatal(err)
	}
	if r.Independent || r.Engine != "built-in interpreter" || !strings.Contains(r.Note, "cannot run the original") {
		t.Errorf("report %+v", r)
	}
	j.Judge = engine.ONNXRuntime
	if _, err := j.check(context.Background(), text.MustParse(t, src)); fault.FamilyOf(err) != fault.Goal {
		t.Errorf("ONNX Runtime was asked for by name: %v", err)
	}
}

func TestCheckIsGivenUpWithTheContext(t *testing.T) {
	src := header + `g (float[N] x) => (float[N] y) { y = Relu (x) }`
	j := Job{Input: write(t, src), Check: 1}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := j.check(ctx, text.MustParse(t, src)); fault.FamilyOf(err) != fault.Interrupted {
		t.Errorf("error %v", err)
	}
}

// The whole job: an unequal result leaves nothing behind.
func TestJobWithCheck(t *testing.T) {
	src := header + `g (float[N,3] x) => (float[N,3] y) { a = Identity (x)  b = Relu (a)  y = Identity (b) }`
	judges(t, func(t *testing.T, judge string) {
		j := Job{Input: write(t, src), Check: 2, CheckSeed: 1, Judge: judge}
		var told []string
		j.Progress = func(text string) { told = append(told, text) }
		r, err := j.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if r.NodesAfter != 1 || r.Check == nil || !r.Check.Equal {
			t.Errorf("result %+v", r)
		}
		if _, err := os.Stat(DefaultOutput(j.Input)); err != nil {
			t.Error(err)
		}
		if all := strings.Join(told, "\n"); !strings.Contains(all, "round 1: fold") || !strings.Contains(all, "check: random inputs 2 of 2") {
			t.Errorf("progress:\n%s", all)
		}
	})
}

func TestRandomOutputs(t *testing.T) {
	for _, test := range []struct{ name, src, want string }{
		{"none", `(float[2] x) => (y) { y = Relu (x) }`, ""},
		{"what it leads to", `(float[2] x) => (y, z) { r = RandomNormalLike (x)  y = Add (x, r)  z = Relu (x) }`, "y"},
		{"in a branch", `(float[2] x, bool c) => (y, z) { y = If (c) <then_branch = a () => (s) { s = RandomNormalLike (x) }, else_branch = b () => (e) { e = Identity (x) }>  z = Relu (x) }`, "y"},
		{"captured by a branch", `(float[2] x, bool c) => (y) { r = RandomNormalLike (x)  y = If (c) <then_branch = a () => (s) { s = Neg (r) }, else_branch = b () => (e) { e = Identity (x) }> }`, "y"},
		{"in a function", `<opset_import: ["": 17, "my": 1]> (float[2] x) => (y, z) { y = my.Noise (x)  z = Relu (x) }
			<domain: "my", opset_import: ["": 17]> Noise (a) => (b) { b = RandomUniformLike (a) }`, "y"},
		{"a dropout in inference", `<opset_import: ["": 17]> (float[2] x) => (y) { y = Dropout (x) }`, ""},
		{"a dropout in training", `<opset_import: ["": 17]> (float[2] x) => (y) <float r = {0.5}, bool t = {1}> { y = Dropout (x, r, t) }`, "y"},
		{"a dropout told not to", `<opset_import: ["": 17]> (float[2] x) => (y) <float r = {0.5}, bool t = {0}> { y = Dropout (x, r, t) }`, ""},
		{"a dropout told by an input", `<opset_import: ["": 17]> (float[2] x, bool t) => (y) <float r = {0.5}> { y = Dropout (x, r, t) }`, "y"},
	} {
		var got []string
		m := text.MustParse(t, test.src)
		random := randomOutputs(m)
		for _, v := range m.Graph.Outputs() {
			if random[v.Name()] {
				got = append(got, v.Name())
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// Results that are NaN on both sides are equal and prove nothing: the check goes on
// to inputs that give numbers, and says so when there are none.
func TestCheckWantsNumbers(t *testing.T) {
	judges(t, func(t *testing.T, judge string) {
		j := Job{Input: write(t, `g (float[8] x) => (y) { a = Log (x)  y = ReduceSum <keepdims = 0> (a) }`), Check: 2, CheckSeed: 1, Judge: judge, Output: filepath.Join(t.TempDir(), "o.onnx")}
		r, err := j.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Check.Sets[0].Values; got != "random in 0..1" {
			t.Errorf("the first set that counts is %s; logarithms need positive numbers", got)
		}
		j.Input = write(t, `g (float[8] x) => (y) { a = Abs (x)  b = Neg (a)  c = Exp (b)  d = Sub (b, c)  y = Sqrt (d) }`)
		if _, err := j.Run(t.Context()); fault.FamilyOf(err) != fault.Goal || !strings.Contains(err.Error(), "NaN") {
			t.Errorf("nothing but NaN: %v", err)
		}
	})
}
