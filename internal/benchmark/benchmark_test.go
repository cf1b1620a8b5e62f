package benchmark

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/npuctl/npuctl/bench/measure"
	"github.com/npuctl/npuctl/bench/report"
	"github.com/npuctl/npuctl/configgen/pipeline"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/text"
	"github.com/npuctl/npuctl/onnxpass"
)

// doubled is a model whose rows depend on themselves alone.
const doubled = `<ir_version: 8, opset_import: ["": 17]>
g (float[N,T] x, int64[N] n) => (float[N,T] y, int64[N] m) { y = Add (x, x)  m = Neg (n) }`

// model writes a model into a folder of its own.
func model(t *testing.T, source string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := text.MustParse(t, source).Save(path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// short is a job that ends after some requests, whatever the machine is at.
func short(models ...string) Job {
	return Job{
		Models: models, Engine: Engine{Name: Reference, Threads: 1},
		Requests: Requests{Seed: 1, Sizes: onnxpass.Specialization{Dims: map[string]int64{"T": 3}}},
		Load:     Load{Concurrency: []int{4}, MaxRequests: 200, MaxDuration: time.Minute},
		Rounds:   20, MaxRegression: 0.05,
	}
}

func run(t *testing.T, j Job) *report.Report {
	t.Helper()
	r, err := j.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestClosedLoop(t *testing.T) {
	j := short(model(t, doubled))
	j.Serving = Serving{MaxBatch: 8, Instances: 2}
	j.Verify = true
	r := run(t, j)
	if r.Requests != 200 || r.Errors != 0 || r.Engine != "ref" || r.Emulated || len(r.ModelSum) != 64 {
		t.Errorf("%d requests, %d errors, engine %q, emulated %v, sum %q", r.Requests, r.Errors, r.Engine, r.Emulated, r.ModelSum)
	}
	if want := int64(8 * rounds * DefaultDistinct); r.Verified != want {
		t.Errorf("%d answers verified, want %d", r.Verified, want)
	}
	executions := int64(0)
	for _, b := range r.Batches {
		executions += b.Executions * b.Size
	}
	if executions != r.Requests {
		t.Errorf("the batches hold %d requests of %d", executions, r.Requests)
	}
	sum := 0.0
	for _, s := range r.Stages {
		sum += s.Mean
	}
	if math.Abs(sum-r.Latency.Mean) > 1e-6+0.001*r.Latency.Mean {
		t.Errorf("the stages sum to %v ms, the latency is %v ms", sum, r.Latency.Mean)
	}
}

// Every kind of load makes the requests that it should.
func TestLoads(t *testing.T) {
	path := model(t, doubled)
	for _, c := range []struct {
		name   string
		change func(*Job)
		levels []string
	}{
		{"clients", func(j *Job) { j.Load.Concurrency = []int{1, 2} }, []string{"1 client", "2 clients"}},
		{"rate", func(j *Job) { j.Load.Concurrency, j.Load.Rates = nil, []float64{2000} }, []string{"constant 2000/s"}},
		{"poisson", func(j *Job) { j.Load.Concurrency, j.Load.Rates, j.Load.Arrivals = nil, []float64{2000}, Poisson }, []string{"poisson 2000/s"}},
		{"ramp", func(j *Job) {
			j.Load.Concurrency, j.Load.RampFrom, j.Load.RampTo, j.Load.Duration = nil, 100, 1000, time.Second
		}, []string{"ramp"}},
		{"trace", func(j *Job) {
			j.Load.Concurrency, j.Load.Trace = nil, file(t, "day.csv", "time_ms,size\n0,1\n1.5,1\n3,1\n")
		}, []string{"trace"}},
		{"raw", func(j *Job) { j.Raw = true }, []string{"4 clients"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := short(path)
			c.change(&j)
			r := run(t, j)
			var names []string
			for _, l := range r.Levels {
				names = append(names, l.Name())
				if l.Errors != 0 || l.OK == 0 {
					t.Errorf("%s: %d answered, %d errors: %v", l.Name(), l.OK, l.Errors, l.Reasons)
				}
			}
			if !slices.Equal(names, c.levels) {
				t.Errorf("levels %q, want %q", names, c.levels)
			}
		})
	}
}

// A mix sends to each model as often as its weight says.
func TestMix(t *testing.T) {
	j := short(model(t, doubled), model(t, doubled))
	j.Weights = []float64{3, 1}
	j.Load.MaxRequests = 1000
	r := run(t, j)
	if len(r.Kinds) != 2 {
		t.Fatalf("kinds: %+v", r.Kinds)
	}
	if share := float64(r.Kinds[0].Requests) / float64(r.Requests); share < 0.7 || share > 0.8 {
		t.Errorf("%.0f %% went to the first model, want 75", 100*share)
	}
}

// A folder of a model repository is served as its configuration says.
func TestRepository(t *testing.T) {
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "2"), 0o777); err != nil {
		t.Fatal(err)
	}
	// The configuration has another order of inputs than the model.
	config := `name: "net" backend: "onnxruntime" max_batch_size: 4
input [ { name: "n" data_type: TYPE_INT64 dims: [ ] }, { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 100000 }
instance_group [ { kind: KIND_CPU } ]`
	if err := os.WriteFile(filepath.Join(folder, "config.pbtxt"), []byte(config), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := text.MustParse(t, doubled).Save(filepath.Join(folder, "2", "model.onnx"), onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	j := short(folder)
	j.Verify = true
	r := run(t, j)
	if r.Errors != 0 || r.MeanBatch <= 1 {
		t.Errorf("%d errors, %.2f items in a batch: %v", r.Errors, r.MeanBatch, r.Reasons)
	}
}

// A pipeline of npuctl config ensemble is served whole: pictures in, vectors out.
func TestPipeline(t *testing.T) {
	folder := t.TempDir()
	graph := filepath.Join(folder, "net.onnx")
	if err := text.MustParse(t, `<ir_version: 8, opset_import: ["": 17]>
		net (float[N,3,4,4] image) => (float[N,3] vector) { p = GlobalAveragePool (image)  vector = Flatten (p) }`).Save(graph, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	repository := filepath.Join(folder, "pipelines")
	spec := file(t, "pipeline.yaml", "name: clip\npreprocess:\n  preset: clip\nmodel:\n  path: "+graph+"\n  backend: python\npostprocess:\n  kind: features\n")
	if _, err := (pipeline.EnsembleJob{Pipeline: spec, Options: pipeline.Options{Repository: repository}}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	pictures := filepath.Join(folder, "pictures")
	if err := os.Mkdir(pictures, 0o777); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		drawn := image.NewNRGBA(image.Rect(0, 0, 9+i, 7))
		for k := range drawn.Pix {
			drawn.Pix[k] = byte(k * (i + 3))
		}
		out, err := os.Create(filepath.Join(pictures, fmt.Sprintf("%d.png", i)))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(png.Encode(out, drawn), out.Close()); err != nil {
			t.Fatal(err)
		}
	}
	j := short(filepath.Join(repository, "clip"))
	j.Requests = Requests{Files: []string{pictures}}
	j.Verify = true
	r := run(t, j)
	if want := int64(leastVerified * rounds * 3); r.Errors != 0 || r.Verified != want {
		t.Errorf("%d errors %v, %d answers verified of %d", r.Errors, r.Reasons, r.Verified, want)
	}
	for name, c := range map[string]struct {
		files []string
		want  string
	}{
		"no pictures":        {nil, "takes files, such as pictures"},
		"no picture":         {[]string{file(t, "no.png", "text")}, "no.png: "},
		"pictures of no end": {[]string{filepath.Join(folder, "gone")}, "no such file or folder"},
	} {
		j := short(filepath.Join(repository, "clip"))
		j.Requests = Requests{Files: c.files}
		if _, err := j.Run(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

func TestShapesComeAsOftenAsTheySay(t *testing.T) {
	j := short(model(t, doubled))
	j.Requests.Shapes = file(t, "shapes.csv", "N,T,weight\n1,3,9\n2,5,1\n")
	j.Load.MaxRequests = 1000
	r := run(t, j)
	if r.Errors != 0 {
		t.Fatalf("%v", r.Reasons)
	}
	if items := r.ItemThroughput / r.Throughput; items < 1.05 || items > 1.15 {
		t.Errorf("%.3f items a request, want 1.1", items)
	}
}

func TestCompareGateAndSearch(t *testing.T) {
	path := model(t, doubled)
	t.Run("compare", func(t *testing.T) {
		config := `max_batch_size: 4 input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "n" data_type: TYPE_INT64 dims: [ ] } ] output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]`
		j := short(path)
		j.Load.Concurrency = []int{1}
		j.Compare = []string{file(t, "a.pbtxt", config), file(t, "b.pbtxt", config)}
		if r := run(t, j); r.Comparison == nil || r.Comparison.Rounds != 20 || r.Comparison.ErrorsA != 0 {
			t.Errorf("%+v", r.Comparison)
		}
	})
	t.Run("gate", func(t *testing.T) {
		j := short(path)
		j.Out = filepath.Join(t.TempDir(), "run")
		first := run(t, j)
		baseline := filepath.Join(j.Out, "report.json")
		first.Levels[0].Throughput, first.Levels[0].Latency.P50 = 1e12, 1e-9
		first.Levels[0].Windows = nil
		first.Levels[0].Latency.Intervals = map[string][2]float64{"p50": {1e-9, 1e-9}}
		w, err := os.Create(baseline)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(first.WriteJSON(w), w.Close()); err != nil {
			t.Fatal(err)
		}
		j.Baseline, j.Out = baseline, filepath.Join(t.TempDir(), "again")
		r, err := j.Run(t.Context())
		if r == nil || r.Gate == nil {
			t.Fatalf("no gate: %v", err)
		}
		// A machine that is too busy to measure on leaves it unsure.
		if missed := fault.FamilyOf(err) == fault.Goal; missed == r.Gate.Passed || r.Valid && r.Gate.Passed {
			t.Errorf("error %v, valid %v, gate %+v", err, r.Valid, r.Gate)
		}
		if again, err := report.Read(filepath.Join(j.Out, "report.json")); err != nil || again.Gate == nil {
			t.Errorf("the report that was kept has no gate: %v", err)
		}
	})
	t.Run("search", func(t *testing.T) {
		j := short(path)
		j.Load = Load{Duration: 200 * time.Millisecond, Rates: []float64{400}}
		j.Goal = &measure.Goal{Figure: "p50", Limit: time.Nanosecond}
		r, err := j.Run(t.Context())
		if fault.FamilyOf(err) != fault.Goal || r == nil || r.Search == nil || len(r.Search.Trials) == 0 {
			t.Errorf("error %v", err)
		}
	})
}

// What is wrong is told before any load, with what to do.
func TestRefusals(t *testing.T) {
	path := model(t, doubled)
	for _, c := range []struct {
		name   string
		change func(*Job)
		family fault.Family
		want   string
	}{
		{"no model", func(j *Job) { j.Models = nil }, fault.Usage, "no model to measure"},
		{"a model that is not there", func(j *Job) { j.Models = []string{"gone.onnx"} }, fault.Input, "gone.onnx: no such file"},
		{"an engine that is not there", func(j *Job) { j.Engine.Name = "rfe" }, fault.Usage, `did you mean "ref"`},
		{"weights", func(j *Job) { j.Weights = []float64{1, 2} }, fault.Usage, "2 for 1 models"},
		{"two loads", func(j *Job) { j.Load.Rates = []float64{1} }, fault.Usage, "four kinds of load"},
		{"clients", func(j *Job) { j.Load.Concurrency = []int{0} }, fault.Usage, "--concurrency 0"},
		{"shape", func(j *Job) { j.Requests.Sizes.Dims = map[string]int64{"X": 1} }, fault.Usage, `no symbolic dim of that name`},
		{"batch", func(j *Job) { j.Serving.MaxBatch = 2; j.Requests.Sizes.Batch = 3 }, fault.Usage, "--max-batch 2: a request has 3 items"},
		{"baseline", func(j *Job) { j.Baseline = "gone.json" }, fault.Input, "gone.json"},
		{"shapes", func(j *Job) { j.Requests.Shapes = file(t, "s.csv", "N,Q\n1,2\n") }, fault.Usage, "s.csv:2: --dim Q"},
		{"trace", func(j *Job) { j.Load.Concurrency, j.Load.Trace = nil, file(t, "t.csv", "0\nx\n") }, fault.Input, `t.csv:2: "x" is no time`},
		{"folder", func(j *Job) { j.Models = []string{t.TempDir()} }, fault.Input, "without config.pbtxt"},
		{"no batch axis", func(j *Job) {
			j.Models = []string{model(t, `<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Neg (x) }`)}
			j.Requests.Sizes.Dims, j.Serving.Delay = nil, time.Millisecond
		}, fault.Usage, "it has no open batch axis"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := short(path)
			c.change(&j)
			_, err := j.Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) || fault.FamilyOf(err) != c.family {
				t.Errorf("error %v (%v), want %q (%v)", err, fault.FamilyOf(err), c.want, c.family)
			}
		})
	}
}

// A run that is stopped reports what was measured.
func TestInterrupted(t *testing.T) {
	j := short(model(t, doubled))
	j.Load.MaxRequests = 0
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	r, err := j.Run(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || r == nil || len(r.Levels) != 1 || r.Ending != "interrupted" {
		t.Errorf("error %v, report %+v", err, r)
	}
}

func TestJSONRequests(t *testing.T) {
	for _, c := range []struct{ name, data, want string }{
		{"flat, the model's own shape left open", `{"data": [{"x": [1, 2], "n": [3]}]}`, "dim 1 is open"},
		{"a shape without the batch", `{"data": [{"x": {"content": [1, 2], "shape": [2]}, "n": [3]}]}`, ""},
		{"nested, with the batch", `{"data": [{"x": {"content": [[1, 2], [3, 4]], "shape": [2, 2]}, "n": {"content": [3, 4], "shape": [2]}}]}`, ""},
		{"streams", `{"data": [[{"x": {"content": [1], "shape": [1]}, "n": [3]}], [{"x": {"content": [1], "shape": [1]}, "n": [3]}]]}`, ""},
		{"base64", `{"data": [{"x": {"b64": "AACAPwAAAEA=", "shape": [2]}, "n": [3]}]}`, ""},
		{"too few", `{"data": [{"x": {"content": [1, 2, 3], "shape": [2]}, "n": [3]}]}`, "3 values"},
		{"no data", `{}`, "lists no requests"},
		{"another input", `{"data": [{"z": [1]}]}`, `no input "z"`},
		{"no JSON", `{"data": [`, "unexpected end"},
		{"a missing input", `{"data": [{"n": [3]}]}`, `input "x" has no value`},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := short(model(t, doubled))
			j.Requests = Requests{Files: []string{file(t, "data.json", c.data)}}
			j.Load.MaxRequests = 3
			_, err := j.Run(t.Context())
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func FuzzShapes(f *testing.F) {
	for _, seed := range []string{"a,weight\n1,2\n", "a\n1\n", "", "weight\nNaN\n", "a,a\n1,1\n", "#x\na\n-1\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data string) {
		rows, err := parseShapes(strings.NewReader(data))
		if err == nil && len(rows) == 0 {
			t.Error("no rows and no error")
		}
		for _, r := range rows {
			if !(r.weight > 0) {
				t.Errorf("weight %v", r.weight)
			}
		}
	})
}
