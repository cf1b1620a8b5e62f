package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/onnxruntime"
	"github.com/npuctl/npuctl/onnx/compare"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/text"
)

// engines calls f with every engine that this machine has.
func engines(t *testing.T, f func(t *testing.T, e Engine)) {
	for _, name := range GraphEngines() {
		t.Run(name, func(t *testing.T) {
			e, err := Open(name, Options{})
			if fault.FamilyOf(err) == fault.Missing {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			f(t, e)
		})
	}
}

func encode(t *testing.T, src string) []byte {
	t.Helper()
	b, err := text.MustParse(t, src).Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func runOnce(t *testing.T, e Engine, s Source, inputs map[string]eval.Value) (map[string]eval.Value, error) {
	t.Helper()
	p, err := e.Load(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	return p.Run(context.Background(), inputs)
}

const addModel = `<ir_version: 8, opset_import: ["": 17]> (float[N] x, float[1] bias = {1}) => (float[N] y) { y = Add (x, bias) }`

func TestRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "add.onnx")
	if err := os.WriteFile(path, encode(t, addModel), 0o644); err != nil {
		t.Fatal(err)
	}
	x := tensor.Of([]float32{1, 2}, 2)
	for _, test := range []struct {
		name   string
		source Source
		inputs map[string]eval.Value
		want   []float32
	}{
		{"from bytes", Source{Bytes: encode(t, addModel)}, map[string]eval.Value{"x": x}, []float32{2, 3}},
		{"from a file", Source{Path: path}, map[string]eval.Value{"x": x}, []float32{2, 3}},
		{"with the default overridden", Source{Path: path}, map[string]eval.Value{"x": x, "bias": tensor.Of([]float32{5}, 1)}, []float32{6, 7}},
	} {
		engines(t, func(t *testing.T, e Engine) {
			out, err := runOnce(t, e, test.source, test.inputs)
			if err != nil {
				t.Fatal(err)
			}
			if r := compare.Values(tensor.Of(test.want, len(test.want)), out["y"], compare.Options{}); !r.Equal {
				t.Errorf("%s: %v", test.name, r)
			}
		})
	}
}

func TestRunFails(t *testing.T) {
	engines(t, func(t *testing.T, e Engine) {
		source := Source{Bytes: encode(t, addModel)}
		if _, err := runOnce(t, e, source, nil); err == nil || !strings.Contains(err.Error(), `input "x" is missing`) {
			t.Errorf("without inputs: %v", err)
		}
		if _, err := runOnce(t, e, source, map[string]eval.Value{"x": tensor.Of([]int64{1}, 1)}); err == nil {
			t.Error("a wrong type is taken")
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		p, err := e.Load(context.Background(), source)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if _, err := p.Run(ctx, map[string]eval.Value{"x": tensor.Of([]float32{1}, 1)}); !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
		if _, err := e.Load(context.Background(), Source{Bytes: encode(t, `(float[1] x) => (y) { y = org.example.Frob (x) }`)}); err == nil || !strings.Contains(err.Error(), "Frob") {
			t.Errorf("an operator nobody knows: %v", err)
		}
	})
}

// Values of every kind come through an engine as they went in.
func TestKindsOfValues(t *testing.T) {
	one, two := tensor.Of([]float32{1}, 1), tensor.Of([]float32{1, 2}, 2)
	for _, test := range []struct {
		name, src string
		in        eval.Value
		want      eval.Value // nil: the same
	}{
		{"tensor", `<ir_version: 8, opset_import: ["": 17]> (float[N] x) => (float[N] y) { y = Identity (x) }`, two, nil},
		{"strings", `<ir_version: 8, opset_import: ["": 17]> (string[N] x) => (string[N] y) { y = Identity (x) }`, tensor.Of([]string{"a", "ü"}, 2), nil},
		{"sequence", `<ir_version: 8, opset_import: ["": 17]> (seq(float[N]) x) => (seq(float[N]) y) { y = Identity (x) }`,
			&eval.Sequence{Elem: tensor.Float32, Items: []eval.Value{one, two}}, nil},
		{"full optional", `<ir_version: 8, opset_import: ["": 17]> (optional(float[N]) x) => (bool y) { y = OptionalHasElement (x) }`,
			&eval.Optional{Value: one}, tensor.Scalar(true)},
		{"empty optional", `<ir_version: 8, opset_import: ["": 17]> (optional(float[N]) x) => (bool y) { y = OptionalHasElement (x) }`,
			&eval.Optional{}, tensor.Scalar(false)},
		{"maps", `<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 3]> (float[1,2] x) => (seq(map(string, float)) y) {
			y = ai.onnx.ml.ZipMap <classlabels_strings = ["a", "b"]> (x) }`, tensor.Of([]float32{1, 2}, 1, 2),
			&eval.Sequence{Items: []eval.Value{&eval.Map{Keys: tensor.Of([]string{"a", "b"}, 2), Values: two}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			engines(t, func(t *testing.T, e Engine) {
				out, err := runOnce(t, e, Source{Bytes: encode(t, test.src)}, map[string]eval.Value{"x": test.in})
				if err != nil {
					t.Fatal(err)
				}
				want := test.want
				if want == nil {
					want = test.in
				}
				if r := compare.Values(want, out["y"], compare.Options{}); !r.Equal {
					t.Errorf("%v", r)
				}
			})
		})
	}
}

func TestOpenNames(t *testing.T) {
	_, err := Open("orb", Options{})
	if fault.FamilyOf(err) != fault.Usage || !strings.Contains(err.Error(), `did you mean "ort"?`) {
		t.Errorf("error %v", err)
	}
	if _, err := Open(ONNXRuntime, Options{Library: filepath.Join(t.TempDir(), "gone.so")}); fault.FamilyOf(err) != fault.Missing {
		t.Errorf("error %v", err)
	}
}

// A judge that was named must not be replaced in silence by another.
func TestJudge(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone.so")
	if _, _, err := Judge(Options{Library: gone}); fault.FamilyOf(err) != fault.Missing {
		t.Errorf("a library that is not there: %v", err)
	}
	t.Setenv(onnxruntime.EnvironmentVariable, gone)
	if _, _, err := Judge(Options{}); fault.FamilyOf(err) != fault.Missing {
		t.Errorf("the same by the environment: %v", err)
	}
	t.Setenv(onnxruntime.EnvironmentVariable, "")
	e, independent, err := Judge(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if independent != strings.HasPrefix(e.Name(), "ONNX Runtime") {
		t.Errorf("%s, independent %v", e.Name(), independent)
	}
}
