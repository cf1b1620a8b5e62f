package onnxpass_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/npuctl/npuctl/internal/feeds"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/compare"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/text"
	"github.com/npuctl/npuctl/onnxpass"
)

// graphs gives every graph of testdata, as passes find it.
func graphs(tb testing.TB) map[string]string {
	tb.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no graphs: %v", err)
	}
	out := map[string]string{}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		for _, f := range archive.Files {
			if f.Name != "after" {
				out[filepath.Base(file)+": "+f.Name] = string(f.Data)
			}
		}
	}
	return out
}

// TestResultsStayTheSame optimises every graph of testdata with all passes and
// runs it beside the original.
func TestResultsStayTheSame(t *testing.T) {
	compared := 0
	for name, source := range graphs(t) {
		t.Run(name, func(t *testing.T) {
			original, optimised := text.MustParse(t, source), text.MustParse(t, source)
			report, err := onnxpass.Optimize(context.Background(), optimised, onnxpass.Options{Verify: true})
			if err != nil {
				t.Fatal(err)
			}
			ran := sameResults(t, original, optimised)
			for _, found := range report.Conflicts {
				if ran > 0 && !found.Warning {
					t.Errorf("it runs, and is told to contradict itself: %s", found.Message)
				}
			}
			compared += ran
		})
	}
	if compared < 100 {
		t.Errorf("only %d runs were compared", compared)
	}
}

// sameResults runs both models on the same inputs and says how many runs it
// compared: none when the interpreter lacks an operator, or the results are random.
func sameResults(t *testing.T, original, optimised *onnx.Model) (compared int) {
	t.Helper()
	for n := range original.Nodes() {
		if !eval.Supports(n) || n.OpType == "RandomNormalLike" || n.OpType == "RandomUniformLike" || n.Is("Dropout") && n.Input(2) != nil {
			return 0
		}
	}
	before, err := eval.Prepare(original, eval.Options{Threads: 1, MaxBytes: 1 << 28})
	if err != nil {
		return 0
	}
	after, err := eval.Prepare(optimised, eval.Options{Threads: 1, MaxBytes: 1 << 28})
	if err != nil {
		t.Fatalf("the optimised model cannot be run: %v", err)
	}
	maker := feeds.New(original, onnxpass.RealInputs(original))
	for _, kind := range append([]feeds.Kind{feeds.Normal, feeds.Binary}, maker.Edges()...) {
		inputs, err := maker.Make(feeds.Set{Kind: kind, Seed: 1})
		if err != nil {
			continue // sizes that no one asks for
		}
		want, err := before.Run(context.Background(), inputs, nil)
		if err != nil {
			continue // the inputs are not legal for this model
		}
		got, err := after.Run(context.Background(), inputs, nil)
		if err != nil {
			t.Errorf("%s inputs: the original runs, the result does not: %v", kind, err)
			continue
		}
		for name := range want {
			if r := compare.Values(want[name], got[name], compare.Options{}); !r.Equal {
				t.Errorf("%s inputs: output %q: %s", kind, name, r)
			}
		}
		compared++
	}
	return compared
}

// TestEmptyDimsStayLegal runs every graph of testdata with each of its named dims
// empty in turn, each two of them, and all: where the original can be run, the result
// can, and gives the same.
func TestEmptyDimsStayLegal(t *testing.T) {
	compared := 0
	for name, source := range graphs(t) {
		t.Run(name, func(t *testing.T) {
			original, optimised := text.MustParse(t, source), text.MustParse(t, source)
			if _, err := onnxpass.Optimize(context.Background(), optimised, onnxpass.Options{Verify: true}); err != nil {
				t.Fatal(err)
			}
			for _, empty := range emptied(namedDims(original)) {
				inputs := inputsWithEmpty(original, empty)
				want, err := runAlone(original, inputs)
				if err != nil {
					continue // it does not take that dim empty
				}
				got, err := runAlone(optimised, inputs)
				if err != nil {
					t.Errorf("%s = 0: the original runs, the result does not: %v\n%s", empty, err, text.String(optimised))
					continue
				}
				for name := range want {
					if r := compare.Values(want[name], got[name], compare.Options{}); !r.Equal {
						t.Errorf("%s = 0: output %q: %s", empty, name, r)
					}
				}
				compared++
			}
		})
	}
	if compared < 20 {
		t.Errorf("only %d runs were compared", compared)
	}
}

// emptied gives each of the names, each two, and all of them.
func emptied(names []string) (sets [][]string) {
	for i, a := range names {
		sets = append(sets, []string{a})
		for _, b := range names[i+1:] {
			sets = append(sets, []string{a, b})
		}
	}
	if len(names) > 2 {
		sets = append(sets, names)
	}
	return sets
}

func namedDims(m *onnx.Model) (names []string) {
	for _, v := range onnxpass.RealInputs(m) {
		if !v.Type.IsTensor() || v.Type.Shape == nil {
			continue
		}
		for _, d := range v.Type.Shape.Dims {
			if !d.Known && d.Param != "" && !slices.Contains(names, d.Param) {
				names = append(names, d.Param)
			}
		}
	}
	return names
}

// inputsWithEmpty gives zeros for the tensors among the inputs, with 0 for the named
// dims and 2 for those that are open besides.
func inputsWithEmpty(m *onnx.Model, empty []string) map[string]eval.Value {
	inputs := map[string]eval.Value{}
	for _, v := range onnxpass.RealInputs(m) {
		if !v.Type.IsTensor() || v.Type.Shape == nil {
			continue
		}
		dims := make([]int, len(v.Type.Shape.Dims))
		for i, d := range v.Type.Shape.Dims {
			switch {
			case d.Known:
				dims[i] = int(d.Value)
			case !slices.Contains(empty, d.Param):
				dims[i] = 2
			}
		}
		if d, err := tensor.New(v.Type.Elem, dims...); err == nil {
			inputs[v.Name()] = d
		}
	}
	return inputs
}

func runAlone(m *onnx.Model, inputs map[string]eval.Value) (map[string]eval.Value, error) {
	p, err := eval.Prepare(m, eval.Options{Threads: 1, MaxBytes: 1 << 28})
	if err != nil {
		return nil, err
	}
	return p.Run(context.Background(), inputs, nil)
}

// TestSecondRunChangesNothing holds the optimiser to being idempotent, and to the
// same bytes at every run.
func TestSecondRunChangesNothing(t *testing.T) {
	for name, source := range graphs(t) {
		t.Run(name, func(t *testing.T) {
			once, again := optimised(t, source), optimised(t, source)
			if string(once) != string(again) {
				t.Fatal("two runs on the same model give different bytes")
			}
			m, err := onnx.Parse(once, "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := onnxpass.Optimize(context.Background(), m, onnxpass.Options{}); err != nil {
				t.Fatal(err)
			}
			twice, err := m.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if string(once) != string(twice) {
				t.Errorf("a second run changes the result:\n%s", text.String(m))
			}
		})
	}
}

func optimised(t *testing.T, source string) []byte {
	t.Helper()
	m := text.MustParse(t, source)
	if _, err := onnxpass.Optimize(context.Background(), m, onnxpass.Options{}); err != nil {
		t.Fatal(err)
	}
	data, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// FuzzOptimize gives the optimiser broken models: it may refuse them, but must
// neither crash nor leave a graph that does not stand, nor change results.
func FuzzOptimize(f *testing.F) {
	for _, source := range graphs(f) {
		m, err := text.Parse(source)
		if err != nil {
			f.Fatal(err)
		}
		data, err := m.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	if example, err := os.ReadFile("../examples/attention.onnx"); err == nil {
		f.Add(example)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := onnx.Parse(data, t.TempDir())
		if err != nil || m.Check() != nil {
			return
		}
		original, err := onnx.Parse(data, t.TempDir())
		if err != nil {
			t.Fatalf("the second reading fails: %v", err)
		}
		options := onnxpass.Options{MaxTotalGrowth: 1 << 16, MaxResultGrowth: 1 << 16, Verify: true}
		if _, err := onnxpass.Optimize(t.Context(), m, options); errors.Is(err, onnxpass.ErrBroken) {
			t.Fatal(err)
		} else if err != nil {
			return
		}
		if err := m.Check(); err != nil {
			t.Fatalf("the result does not stand: %v", err)
		}
		encoded, err := m.Encode()
		if err != nil {
			return // a tensor of the input cannot be read
		}
		if _, err := onnx.Parse(encoded, t.TempDir()); err != nil {
			t.Fatalf("the result cannot be read: %v", err)
		}
		sameResults(t, original, m)
	})
}
