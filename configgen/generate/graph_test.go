package generate_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/npuctl/npuctl/configgen/generate"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/findings"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnxpass"
)

// constantMod has a Mod of constants, which the AI Core does not compute, and a shape
// that is computed although it is fixed once the batch is.
const constantMod = `net (float[N,4] x) => (float[N,4] y) <int64[4] a = {7, 8, 9, 10}, int64[4] b = {3, 3, 5, 5}> {
	m = Mod (a, b)
	f = Cast <to = 1> (m)
	s = Shape (x)
	r = Reshape (x, s)
	y = Mul (r, f)
}`

func operators(t *testing.T, path string) (list []string) {
	t.Helper()
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for n := range m.Nodes() {
		list = append(list, n.OpType)
	}
	return list
}

// npu_ge gets what the passes leave of a model, and the findings are about that.
func TestGraphIsOptimised(t *testing.T) {
	tells := func(r *generate.Result) bool {
		for _, f := range r.Findings {
			if strings.Contains(f.Message, "Mod") {
				return true
			}
		}
		return false
	}
	for _, test := range []struct {
		name string
		job  generate.Job
		want string // the operators in the repository
		how  string
		mod  bool // is told of
	}{
		{"open dims stay", generate.Job{}, "Mul", "optimized", false},
		{"for some sizes", generate.Job{Sizes: onnxpass.Specialization{Batch: 2}}, "Mul", "optimized", false},
		{"as it is", generate.Job{NoOptimize: true}, "Mod Cast Shape Reshape Mul", "copied", true},
		{"without the passes that do it", generate.Job{Passes: onnxpass.Options{Only: []string{"fuse-pad"}}}, "Mod Cast Shape Reshape Mul", "copied", true},
		{"for onnxruntime, which has passes of its own", generate.Job{Backend: generate.ONNXRuntime}, "Mod Cast Shape Reshape Mul", "copied", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			job := test.job
			job.Model, job.Repository = model(t, constantMod), t.TempDir()
			if job.Backend == "" {
				job.Chip = chip("910B3")
			}
			r, err := job.Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(operators(t, r.Files[0].Path), " "); got != test.want || r.Files[0].How != test.how {
				t.Errorf("%s %s, want %s %s", r.Files[0].How, got, test.how, test.want)
			}
			if tells(r) != test.mod {
				t.Errorf("findings %v", r.Findings)
			}
			if (r.Optimized != nil) != (test.how == "optimized") || r.Optimized != nil && (r.Optimized.NodesBefore != 5 || r.Optimized.NodesAfter != 1 || len(r.Optimized.Passes) == 0) {
				t.Errorf("%+v", r.Optimized)
			}
			stands(t, r)
			again, err := job.Run(context.Background())
			if err != nil || again.Written {
				t.Errorf("the same again writes: %v", err)
			}
		})
	}
	job := generate.Job{Model: model(t, constantMod), Repository: t.TempDir(), Passes: onnxpass.Options{Only: []string{"fold-it"}}}
	if _, err := job.Run(context.Background()); fault.FamilyOf(err) != fault.Input || !strings.Contains(err.Error(), "fold") {
		t.Errorf("a pass that there is not: %v", err)
	}
}

// A new model takes the place of the old one, and what people wrote into the config
// stays; --force loses it, and says so.
func TestAnotherModel(t *testing.T) {
	job := generate.Job{Model: model(t, batched), Repository: t.TempDir(), Name: "net"}
	r, err := job.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(r.Text, "count: 1", "count: 6 # as measured", 1)
	line := strings.Count(edited[:strings.Index(edited, "count: 6")], "\n") + 1
	if err := os.WriteFile(r.Config, []byte(edited), 0o644); err != nil {
		t.Fatal(err)
	}
	job.Model = model(t, strings.ReplaceAll(batched, "Relu", "Neg"))
	if _, err := job.Run(context.Background()); fault.FamilyOf(err) != fault.Usage || !strings.Contains(err.Error(), "--replace-model replaces it and keeps the config") {
		t.Errorf("%v", err)
	}
	job.ReplaceModel = true
	if err := os.WriteFile(filepath.Join(filepath.Dir(r.Files[0].Path), "weights.bin"), []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r, err = job.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, "where the new model does not read it: weights.bin") {
		t.Errorf("notes %q", notes)
	}
	if r.Text != edited || len(r.Lost) != 0 || strings.Join(operators(t, r.Files[0].Path), " ") != "Neg Identity" {
		t.Errorf("%+v\n%s", r.Files, cmp.Diff(edited, r.Text))
	}
	job.ReplaceModel, job.Force = false, true
	if r, err = job.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]generate.Line{{Number: line, Text: "count: 6 # as measured"}}, r.Lost); d != "" {
		t.Error(d)
	}
}

// An error that stands in the config is told where it stands, not where it would; the
// diff is given all the same.
func TestFailuresOfAStandingConfig(t *testing.T) {
	text := "# A comment.\n\n\n" + theirs + "\nspeed: 1\n"
	text = strings.Replace(text, "max_batch_size: 8   # what the cards were bought for\n", "", 1)
	job := generate.Job{Gears: "1,2,4", Preview: true}
	r, err := mergeInto(t, batched, text, job)
	if fault.FamilyOf(err) != fault.Goal || r == nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		if f.Severity != findings.Error {
			continue
		}
		line := strings.Split(text, "\n")
		at := strings.Index(err.Error(), "config.pbtxt:") + len("config.pbtxt:")
		number, _, _ := strings.Cut(err.Error()[at:], ":")
		if strings.Contains(err.Error(), "would be written") || !strings.Contains(line[atoi(t, number)-1], "speed") {
			t.Errorf("%v", err)
		}
		break
	}
	if !strings.Contains(r.Diff, "+max_batch_size: 4") {
		t.Errorf("no diff: %q", r.Diff)
	}
}

func TestNameOf(t *testing.T) {
	for path, want := range map[string]string{
		"a/net.onnx": "net", "net.opt.onnx": "net", "net.om.onnx": "net", "net.om": "net", "my net.onnx": "my_net", ".onnx": "model", ".opt.onnx": "model", "v1.2.onnx": "v1.2",
	} {
		if got := generate.NameOf(filepath.FromSlash(path)); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func atoi(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
