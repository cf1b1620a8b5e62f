package ensemble

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/bench/engine/null"
	"github.com/npuctl/npuctl/bench/engine/ref"
	"github.com/npuctl/npuctl/bench/ensemble/part"
	"github.com/npuctl/npuctl/bench/executor"
	"github.com/npuctl/npuctl/bench/load"
	"github.com/npuctl/npuctl/configgen/pipeline"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/text"
)

// repositoryOf writes files of a repository: configs, and models as ONNX text.
func repositoryOf(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(name) != ".onnx" {
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		m, err := text.Parse(`<ir_version: 8, opset_import: ["": 13]> ` + content)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Save(path, onnx.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// rows is the config of a model of rows of four numbers.
func rows(inputs, outputs string, more ...string) string {
	list := func(what, names string) (text string) {
		for name := range strings.FieldsSeq(names) {
			text += fmt.Sprintf("%s { name: %q data_type: TYPE_FP32 dims: [ 4 ] }\n", what, name)
		}
		return text
	}
	return `backend: "onnxruntime" max_batch_size: 8 instance_group { kind: KIND_CPU count: 2 } dynamic_batching { }` + "\n" +
		list("input", inputs) + list("output", outputs) + strings.Join(more, "\n")
}

// graph is the config of an ensemble of such models; each step is "model in=tensor … > out=tensor …".
func graph(inputs, outputs string, steps ...string) string {
	text := strings.NewReplacer(`backend: "onnxruntime"`, `platform: "ensemble"`, "instance_group { kind: KIND_CPU count: 2 } dynamic_batching { }", "").Replace(rows(inputs, outputs))
	text += "ensemble_scheduling {\n"
	for _, step := range steps {
		words := strings.Fields(step)
		text += fmt.Sprintf("step { model_name: %q model_version: -1 ", words[0])
		kind := "input_map"
		for _, word := range words[1:] {
			if word == ">" {
				kind = "output_map"
				continue
			}
			key, value, _ := strings.Cut(word, "=")
			text += fmt.Sprintf("%s { key: %q value: %q } ", kind, key, value)
		}
		text += "}\n"
	}
	return text + "}\n"
}

// diamond is a graph with two branches: y = relu(x) + -x.
func diamond() map[string]string {
	return map[string]string{
		"fork/config.pbtxt": graph("x", "y negative", "join a=positive b=negative > sum=y", "relu in=x > out=positive", "negate in=x > out=negative"),
		"relu/config.pbtxt": rows("in", "out"), "relu/1/model.onnx": `relu (float[N,4] in) => (float[N,4] out) { out = Relu (in) }`,
		"negate/config.pbtxt": rows("in", "out"), "negate/1/model.onnx": `negate (float[N,4] in) => (float[N,4] out) { out = Neg (in) }`,
		"join/config.pbtxt": rows("a b", "sum"), "join/1/model.onnx": `join (float[N,4] a, float[N,4] b) => (float[N,4] sum) { sum = Add (a, b) }`,
		"fork/1/.keep": "",
	}
}

// opened opens an ensemble until the test ends.
func opened(t testing.TB, repository, name string, e engine.Engine) *Ensemble {
	t.Helper()
	p, err := Read(repository, name)
	if err != nil {
		t.Fatal(err)
	}
	open, err := p.Open(context.Background(), Options{Engine: e})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := open.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return open
}

func floats(values ...float32) engine.Buffer {
	b := engine.Buffer{Shape: []int64{int64(len(values) / 4), 4}}
	for _, x := range values {
		b.Bytes = binary.LittleEndian.AppendUint32(b.Bytes, math.Float32bits(x))
	}
	return b
}

func numbers(b engine.Buffer) (list []float32) {
	for at := 0; at < len(b.Bytes); at += 4 {
		list = append(list, math.Float32frombits(binary.LittleEndian.Uint32(b.Bytes[at:])))
	}
	return list
}

// A graph with two branches gives its outputs, for one item and for several.
func TestBranches(t *testing.T) {
	e := opened(t, repositoryOf(t, diamond()), "fork", ref.New(ref.Options{}))
	c := e.NewCall()
	for _, test := range []struct{ in, y, negative []float32 }{
		{[]float32{1, -2, 3, -4}, []float32{0, 2, 0, 4}, []float32{-1, 2, -3, 4}},
		{[]float32{1, -2, 3, -4, 5, 6, -7, -8}, []float32{0, 2, 0, 4, 0, 0, 7, 8}, []float32{-1, 2, -3, 4, -5, -6, 7, 8}},
	} {
		c.Inputs[0] = floats(test.in...)
		if err := e.Do(context.Background(), c); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(numbers(c.Outputs[0]), numbers(c.Outputs[1])) != fmt.Sprint(test.y, test.negative) || c.Size != len(test.in)/4 {
			t.Errorf("%v: %v, of %d items", test.in, c.Outputs, c.Size)
		}
		holdStages(t, c)
	}
	for _, m := range e.Counters() {
		if m.OK != 2 || m.Items != 3 || m.Executions != 2 {
			t.Errorf("%s: %+v", m.Model.Name, m.Counters)
		}
	}
}

// holdStages holds that the stages add up to the latency, and that the critical path is one.
func holdStages(t *testing.T, c *Call) {
	t.Helper()
	s := c.Stages
	if sum := s.Queue + s.Batching + s.H2D + s.Compute + s.D2H + s.Respond; sum != c.Latency || s.Respond < 0 {
		t.Errorf("stages of %v for a latency of %v: %+v", sum, c.Latency, s)
	}
	end := time.Duration(0)
	for i, step := range c.Steps {
		if !step.IsCritical {
			continue
		}
		if step.Begin < end || step.End > c.Latency {
			t.Errorf("step %d runs from %v to %v, behind %v and before %v", i, step.Begin, step.End, end, c.Latency)
		}
		end = step.End
	}
}

// Branches run at the same time, and the time is that of the longer one.
func TestBranchesAtTheSameTime(t *testing.T) {
	const each = 60 * time.Millisecond
	e := opened(t, repositoryOf(t, diamond()), "fork", null.New(null.Options{Fixed: each}))
	c := e.NewCall()
	c.Inputs[0] = floats(1, 2, 3, 4)
	if err := e.Do(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	a, b := c.Steps[0], c.Steps[1]
	if a.Begin >= b.End || b.Begin >= a.End {
		t.Errorf("steps that need not wait for each other ran from %v to %v and from %v to %v", a.Begin, a.End, b.Begin, b.End)
	}
	critical, all := 0, time.Duration(0)
	for _, s := range c.Steps {
		all += s.Stages.Compute
		if s.IsCritical {
			critical++
		}
	}
	if critical != 2 || c.Stages.Compute < 2*each || c.Stages.Compute > all-each {
		t.Errorf("%d steps are critical; they compute for %v of %v", critical, c.Stages.Compute, all)
	}
	holdStages(t, c)
}

// What cannot run is told with file, step and tensor, before anything is loaded.
func TestRefused(t *testing.T) {
	for _, test := range []struct {
		name, want string
		change     map[string]string
	}{
		{"no such model", `there is no model "fork"`, map[string]string{"fork/config.pbtxt": "-"}},
		{"a step that is not there", `fork/config.pbtxt: step 0: there is no model "rel" in `, map[string]string{"fork/config.pbtxt": graph("x", "y", "rel in=x > out=y")}},
		{"a name that leads out", `step 0: "../relu" is no name of a model`, map[string]string{"fork/config.pbtxt": graph("x", "y", "../relu in=x > out=y")}},
		{"a circle", `steps wait for each other in a circle: step 0 (relu) waits for step 1 (negate) waits for step 0 (relu)`, map[string]string{"fork/config.pbtxt": graph("x", "a", "relu in=b > out=a", "negate in=a > out=b", "join a=x b=a > sum=c")}},
		{"a tensor of nowhere", `step 1: negate takes "z", which is no input of the ensemble, and no step makes it; add it to the output_map`, map[string]string{"fork/config.pbtxt": graph("x", "y", "relu in=x > out=y", "negate in=z > out=w")}},
		{"an input that is not mapped", `step 0: nothing is mapped to input "b" of join`, map[string]string{"fork/config.pbtxt": graph("x", "y", "join a=x > sum=y")}},
		{"an input that the model has not", `step 0: relu has no input "inn"; did you mean "in"?`, map[string]string{"fork/config.pbtxt": graph("x", "y", "relu in=x inn=x > out=y")}},
		{"an output that the model has not", `step 0: relu has no output "outt"; did you mean "out"?`, map[string]string{"fork/config.pbtxt": graph("x", "y", "relu in=x > outt=y")}},
		{"a tensor twice", `step 1: negate writes "y", which comes from relu already`, map[string]string{"fork/config.pbtxt": graph("x", "y", "relu in=x > out=y", "negate in=x > out=y")}},
		{"a step that writes an input", `step 0: relu writes "x", which is an input of the ensemble`, map[string]string{"fork/config.pbtxt": graph("x", "y", "relu in=x > out=x")}},
		{"an output of nowhere", `no step makes the output "y"`, map[string]string{"fork/config.pbtxt": graph("x", "y", "relu in=x > out=z")}},
		{"an input for nothing", `no step takes the input "w"`, map[string]string{"fork/config.pbtxt": graph("x w", "y", "relu in=x > out=y")}},
		{"a tensor for nothing", `step 1: nothing takes "z", which negate makes`, map[string]string{"fork/config.pbtxt": graph("x", "y", "relu in=x > out=y", "negate in=x > out=z")}},
		{"another type", `tensor "positive": output out of relu is TYPE_FP16, and input a of join is TYPE_FP32`, map[string]string{"relu/config.pbtxt": strings.Replace(rows("in", "out"), `"out" data_type: TYPE_FP32`, `"out" data_type: TYPE_FP16`, 1)}},
		{"another shape", `tensor "positive": output out of relu is [batch, 5], and input a of join is [batch, 4]`, map[string]string{"relu/config.pbtxt": strings.Replace(rows("in", "out"), `"out" data_type: TYPE_FP32 dims: [ 4 ]`, `"out" data_type: TYPE_FP32 dims: [ 5 ]`, 1)}},
		{"another shape of an output", `tensor "y": output sum of join is [batch, 3], and the output y is [batch, 4]`, map[string]string{"join/config.pbtxt": strings.Replace(rows("a b", "sum"), `"sum" data_type: TYPE_FP32 dims: [ 4 ]`, `"sum" data_type: TYPE_FP32 dims: [ 3 ]`, 1)}},
		{"a smaller batch", `relu takes batches up to 4, and the ensemble up to 8`, map[string]string{"relu/config.pbtxt": strings.Replace(rows("in", "out"), "max_batch_size: 8", "max_batch_size: 4", 1)}},
		{"no version", `relu: it has no folder of a version that is served, such as `, map[string]string{"relu/1/model.onnx": "-"}},
		{"no file", `there is no model.onnx`, map[string]string{"relu/1/model.onnx": "-", "relu/1/x.txt": ""}},
		{"another version", `version 3 is not served, but [1]`, map[string]string{"fork/config.pbtxt": strings.Replace(graph("x", "y", "relu in=x > out=y"), "model_version: -1", "model_version: 3", 1)}},
		{"another backend", `the backend "tensorrt" is not run here; npu_ge, onnxruntime and`, map[string]string{"relu/config.pbtxt": strings.Replace(rows("in", "out"), "onnxruntime", "tensorrt", 1)}},
		{"an ensemble inside", `step 0: fork is an ensemble itself, which is not run here`, map[string]string{"fork/config.pbtxt": graph("x", "y", "fork in=x > out=y")}},
		{"no tensors", `relu/config.pbtxt: it does not list inputs and outputs; npuctl config writes them`, map[string]string{"relu/config.pbtxt": `backend: "onnxruntime"`}},
		{"somebody's Python", `the model relu is Python that npuctl does not know, and nothing here can run it; measure the models around it`, map[string]string{"relu/config.pbtxt": strings.Replace(rows("in", "out"), "onnxruntime", "python", 1), "relu/1/model.py": "class TritonPythonModel: pass"}},
		{"broken text", `relu/config.pbtxt`, map[string]string{"relu/config.pbtxt": "input {"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := diamond()
			for name, content := range test.change {
				files[name] = content
				if content == "-" {
					delete(files, name)
				}
			}
			_, err := Read(repositoryOf(t, files), "fork")
			if err == nil || !strings.Contains(filepath.ToSlash(err.Error()), test.want) || fault.FamilyOf(err) != fault.Input {
				t.Errorf("%v\nwant %s", err, test.want)
			}
		})
	}
}

// A request that does not fit is refused with the input's name; one that does not fit a
// step, with the step's.
func TestRequestsRefused(t *testing.T) {
	e := opened(t, repositoryOf(t, diamond()), "fork", ref.New(ref.Options{}))
	c := e.NewCall()
	for _, test := range []struct {
		in   engine.Buffer
		want string
	}{
		{engine.Buffer{}, `input "x" is missing`},
		{engine.Buffer{Shape: []int64{}}, `input "x" is a scalar`},
		{engine.Buffer{Shape: []int64{1, 5}, Bytes: make([]byte, 20)}, `input "x": the shape 5 does not fit 4`},
		{engine.Buffer{Shape: []int64{9, 4}, Bytes: make([]byte, 144)}, `a request of 9 items: the model takes 1 to 8`},
		{engine.Buffer{Shape: []int64{1, 4}, Bytes: make([]byte, 15)}, `takes 16 bytes, and there are 15`},
	} {
		c.Inputs[0] = test.in
		if err := e.Do(context.Background(), c); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v, want %s", test.in.Shape, err, test.want)
		}
	}
}

// When a step fails, the error names it, no later step starts, and the next request is
// answered.
func TestStepFails(t *testing.T) {
	e := opened(t, repositoryOf(t, diamond()), "fork", null.New(null.Options{Faults: null.Faults{Fail: 2}}))
	c := e.NewCall()
	c.Inputs[0] = floats(1, 2, 3, 4)
	failed := 0
	for range 40 {
		err := e.Do(context.Background(), c)
		holdStages(t, c)
		if err == nil {
			continue
		}
		failed++
		var step *StepError
		if !errors.As(err, &step) || step.Ensemble != "fork" || step.Outcome != executor.Failed || !errors.Is(err, null.ErrInjected) || !strings.HasPrefix(err.Error(), "in ensemble fork, model "+step.Model+": ") {
			t.Fatalf("%v", err)
		}
		if step.Model != "join" && c.Steps[2].Ran {
			t.Error("join ran although ", step.Model, " failed")
		}
	}
	if failed == 0 || failed == 40 {
		t.Errorf("%d of 40 failed", failed)
	}
}

// A request that is given up ends soon, and says so.
func TestCancelled(t *testing.T) {
	e := opened(t, repositoryOf(t, diamond()), "fork", null.New(null.Options{Fixed: 20 * time.Millisecond}))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	c := e.NewCall()
	c.Inputs[0] = floats(1, 2, 3, 4)
	begin := time.Now()
	err := e.Do(ctx, c)
	var step *StepError
	if !errors.As(err, &step) || step.Outcome != executor.Cancelled || !errors.Is(err, context.DeadlineExceeded) || c.Steps[2].Ran {
		t.Errorf("%v", err)
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
	ended, stop := context.WithCancel(context.Background())
	stop()
	if err := e.Do(ended, c); !errors.Is(err, context.Canceled) || c.Steps[2].Ran {
		t.Errorf("%v", err)
	}
	if err := e.Do(context.Background(), c); err != nil {
		t.Error(err)
	}
}

// Many clients at a time, with faults and cancellations: every request has its own answer,
// steps batch, counters add up, and nothing is left behind. 10,000 requests under the race
// detector take some seconds.
func TestManyClients(t *testing.T) {
	before := runtime.NumGoroutine()
	e := opened(t, repositoryOf(t, diamond()), "fork", null.New(null.Options{Faults: null.Faults{Fail: 97, Break: 1003, Panic: 499}}))
	requests := 10_000
	if testing.Short() {
		requests = 1000
	}
	var number, ok, failed, cancelled atomic.Int64
	target := e.Target(Traffic{
		Fill: func(c *Call, r load.Request) error {
			x := float32(r.Number)
			c.Inputs[0] = floats(x, -x, x+1, float32(r.Worker))
			return nil
		},
		Answer: func(c *Call, r load.Request) error {
			// Without computing, every output is the first input.
			if fmt.Sprint(c.Outputs[0].Bytes) != fmt.Sprint(c.Inputs[0].Bytes) || c.Size != 1 {
				return fmt.Errorf("request %d got %v", r.Number, c.Outputs)
			}
			return nil
		},
	})
	var wait sync.WaitGroup
	for worker := range 16 {
		wait.Go(func() {
			for {
				n := number.Add(1) - 1
				if n >= int64(requests) {
					return
				}
				ctx, cancel := context.WithCancel(context.Background())
				if n%41 == 0 {
					go cancel()
				}
				begin := time.Now()
				result, err := target.Do(ctx, load.Request{Number: n, Worker: worker})
				holdResult(t, result, err, time.Since(begin))
				cancel()
				var step *StepError
				switch {
				case err == nil:
					ok.Add(1)
				case errors.Is(err, context.Canceled):
					cancelled.Add(1)
				case errors.As(err, &step):
					failed.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	t.Logf("%d answered, %d failed, %d cancelled", ok.Load(), failed.Load(), cancelled.Load())
	if ok.Load()+failed.Load()+cancelled.Load() != int64(requests) || ok.Load() < int64(requests)/2 || failed.Load() == 0 {
		t.Error("requests are missing")
	}
	join := e.Counters()[len(e.Counters())-1]
	if join.Model.Name != "join" || join.OK != ok.Load() {
		t.Errorf("%s counts %+v for %d answers", join.Model.Name, join.Counters, ok.Load())
	}
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := e.Do(context.Background(), e.NewCall()); !errors.Is(err, executor.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// holdResult holds what a target tells of a request against how long it took.
func holdResult(t *testing.T, r load.Result, err error, took time.Duration) {
	t.Helper()
	sum := time.Duration(0)
	for _, stage := range r.Stages {
		sum += stage
	}
	if sum > took || r.Items != 1 {
		t.Errorf("stages of %v in %v, of %d items", sum, took, r.Items)
	}
	if err == nil && (r.Batch.Items < 1 || r.Batch.Items > 8 || r.Batch.Gear != 0) {
		t.Errorf("it ran in %+v", r.Batch)
	}
}

// Close waits for requests in the middle of the graph.
func TestCloseDrains(t *testing.T) {
	running := make(chan bool, 3)
	e := opened(t, repositoryOf(t, diamond()), "fork", null.New(null.Options{Time: func([][]int64) time.Duration {
		running <- true
		return 20 * time.Millisecond
	}}))
	answered := make(chan error)
	go func() {
		c := e.NewCall()
		c.Inputs[0] = floats(1, 2, 3, 4)
		answered <- e.Do(context.Background(), c)
	}()
	<-running
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := e.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("closed within a millisecond: %v", err)
	}
	done := make(chan error)
	go func() { done <- e.Close(context.Background()) }()
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The pipelines that npuctl config ensemble writes.
const (
	clip = `clip (float[N,3,32,32] image, int64[N,4] words) => (float[N,96] image_features, float[N,4] word_features) {
		rows = ReduceMean <axes = [3], keepdims = 0> (image)
		image_features = Flatten (rows)
		word_features = Cast <to = 1> (words)
	}`
	classifier = `net (float[N,16,16,3] pixels) => (float[N,5] p) <int64[1] five = {5}> {
		flat = ReduceMean <axes = [1, 2], keepdims = 0> (pixels)
		more = Concat <axis = 1> (flat, flat)
		zero = Constant <value = int64[1] {0}> ()
		axis = Constant <value = int64[1] {1}> ()
		p = Slice (more, zero, five, axis)
	}`
)

// detector gives, for each of 16 places of a grid, a box of 24 x 24 and as scores of three
// classes the means of the three channels there.
func detector() string {
	var x, y, side []string
	for row := range 4 {
		for column := range 4 {
			x, y, side = append(x, fmt.Sprint(16*column+8)), append(y, fmt.Sprint(16*row+8)), append(side, "24")
		}
	}
	grid := strings.Join([]string{strings.Join(x, ","), strings.Join(y, ","), strings.Join(side, ","), strings.Join(side, ",")}, ",")
	return `detector (float[1,3,64,64] images) => (float[1,7,16] output0) <float[1,4,16] grid = {` + grid + `}, int64[3] flat = {1, 3, 16}> {
		means = AveragePool <kernel_shape = [16, 16], strides = [16, 16]> (images)
		scores = Reshape (means, flat)
		output0 = Concat <axis = 1> (grid, scores)
	}`
}

// photo is a picture with slopes and edges, as PNG.
func photo(t testing.TB, width, height, seed int) string {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			u, v := float64(x)/float64(width), float64(y)/float64(height)
			wave := func(a, b float64) uint8 {
				return uint8(127 + 90*math.Sin(a*u+b*v+float64(seed)) + 30*math.Cos(9*u*v))
			}
			m.Set(x, y, color.RGBA{wave(5, 2), wave(-3, 6), wave(8, -4), 255})
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, m); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// pipelineOf has npuctl config ensemble make a repository.
func pipelineOf(t testing.TB, files map[string]string) string {
	t.Helper()
	dir, repository := repositoryOf(t, files), t.TempDir()
	job := pipeline.EnsembleJob{Pipeline: filepath.Join(dir, "pipe.yaml"), Options: pipeline.Options{Repository: repository}}
	if _, err := job.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return repository
}

// Pictures go through the pipelines that npuctl config ensemble writes, many at a time,
// and every output is what the steps give one after another by hand.
func TestPipelines(t *testing.T) {
	batch := func(n int, names ...string) engine.Buffer {
		return engine.Buffer{Shape: []int64{int64(n), 1}, Strings: names}
	}
	pictures := []string{photo(t, 90, 60, 1), photo(t, 31, 77, 2), photo(t, 200, 150, 3)}
	words := func(n int) engine.Buffer {
		b := engine.Buffer{Shape: []int64{int64(n), 4}}
		for i := range 4 * n {
			b.Bytes = binary.LittleEndian.AppendUint64(b.Bytes, uint64(i*i))
		}
		return b
	}
	for _, test := range []struct {
		name, model, pipe string
		requests          [][]engine.Buffer
	}{
		{"features", clip, `
preprocess: { preset: cn_clip, instances: 2 }
model: { path: model.onnx, backend: python, max_queue_delay: 2ms, preferred: [4] }
postprocess: { kind: features, from: image_features }
outputs: [word_features]`, [][]engine.Buffer{
			{batch(1, pictures[0]), words(1)}, {batch(1, pictures[1]), words(1)}, {batch(3, pictures...), words(3)},
		}},
		{"topk", classifier, `
preprocess: { preset: imagenet, size: 16 }
model: { path: model.onnx, backend: onnxruntime }
postprocess: { kind: topk, k: 3, labels: names.txt }`, [][]engine.Buffer{{batch(1, pictures[0])}, {batch(2, pictures[1], pictures[2])}}},
		{"boxes", detector(), `
preprocess: { preset: yolo }
model: { path: model.onnx, gears: "", precision: origin, devices: [0, 1], instances: 2 }
postprocess: { kind: boxes, confidence: 0.4, overlap: 0.2, max_boxes: 20, labels: colours.txt }`, [][]engine.Buffer{
			{{Shape: []int64{1}, Strings: pictures[:1]}}, {{Shape: []int64{1}, Strings: pictures[1:2]}}, {{Shape: []int64{1}, Strings: pictures[2:]}},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			repository := pipelineOf(t, map[string]string{"model.onnx": test.model, "pipe.yaml": test.pipe, "names.txt": "cat\ndog\n人\nbird\nfish", "colours.txt": "red\ngreen\nblue\n"})
			e := opened(t, repository, "pipe", ref.New(ref.Options{}))
			var want []string
			for _, inputs := range test.requests {
				want = append(want, fmt.Sprint(byHand(t, e.Plan, inputs)))
			}
			var wait sync.WaitGroup
			for client := range 8 {
				wait.Go(func() {
					c := e.NewCall()
					for i := range 12 {
						n := (i + client) % len(want)
						copy(c.Inputs, test.requests[n])
						if err := e.Do(context.Background(), c); err != nil {
							t.Error(err)
							return
						}
						if got := fmt.Sprint(c.Outputs); got != want[n] {
							t.Errorf("request %d: got %.300s\nwant %.300s", n, got, want[n])
						}
						holdStages(t, c)
						if x, ok := c.Execution(); !ok || x.Items < 1 {
							t.Errorf("no execution: %+v", x)
						}
					}
				})
			}
			wait.Wait()
			broken := e.NewCall()
			copy(broken.Inputs, test.requests[0])
			broken.Inputs[0].Strings = []string{"no picture"}
			want0 := "in ensemble pipe, model pipe_preprocess: picture 0 of the request is 10 bytes that are no picture"
			if err := e.Do(context.Background(), broken); err == nil || err.Error() != want0 {
				t.Errorf("%v, want %s", err, want0)
			}
			for _, m := range e.Counters() {
				wantFailed := int64(0)
				if m.Model.Kind == part.Image {
					wantFailed = 1
				}
				if m.OK != 96 || m.Failed != wantFailed || m.Executions > m.OK+m.Failed {
					t.Errorf("%s: %+v", m.Model.Name, m.Counters)
				}
			}
			t.Log(e.Notes())
		})
	}
}

// byHand has a request go through the steps one after another, without executors.
func byHand(t *testing.T, p *Plan, inputs []engine.Buffer) (outputs []engine.Buffer) {
	t.Helper()
	values := make([]engine.Buffer, len(p.tensors))
	for i, in := range p.Inputs {
		values[in.wire] = inputs[i]
	}
	for _, s := range p.Steps {
		in, out := make([]engine.Buffer, len(s.inputs)), make([]engine.Buffer, len(s.outputs))
		for i, wire := range s.inputs {
			in[i] = values[wire]
		}
		if s.HasEngine() {
			evaluate(t, s, in, out)
		} else {
			computed, err := part.New(s.Kind, s.Config, s.Folder)
			if err == nil {
				err = computed.Run(in, out)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for i, wire := range s.outputs {
			if wire >= 0 {
				values[wire] = out[i]
			}
		}
	}
	for _, out := range p.Outputs {
		outputs = append(outputs, values[out.wire])
	}
	return outputs
}

// evaluate computes a model by the interpreter.
func evaluate(t *testing.T, s *Step, in, out []engine.Buffer) {
	t.Helper()
	m, err := onnx.Open(s.File)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	program, err := eval.Prepare(m, eval.Options{})
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]eval.Value{}
	for i, b := range in {
		shape := make([]int, len(b.Shape))
		for axis, d := range b.Shape {
			shape[axis] = int(d)
		}
		kind := tensor.Float32
		if strings.Contains(s.Config.Input[i].DataType.String(), "INT64") {
			kind = tensor.Int64
		}
		if given[s.Config.Input[i].Name], err = tensor.FromRaw(kind, shape, b.Bytes); err != nil {
			t.Fatal(err)
		}
	}
	results, err := program.Run(context.Background(), given, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range out {
		d := results[s.Config.Output[i].Name].(*tensor.Dense)
		out[i].Shape = []int64{}
		for _, n := range d.Shape() {
			out[i].Shape = append(out[i].Shape, int64(n))
		}
		out[i].Bytes = bytes.Clone(d.Raw())
	}
}

// A model alone is an ensemble of one step; parts alone run without an engine.
func TestModelAlone(t *testing.T) {
	repository := pipelineOf(t, map[string]string{"model.onnx": clip, "pipe.yaml": "preprocess: {preset: clip}\nmodel: {path: model.onnx, backend: python}"})
	p, err := ReadFolder(filepath.Join(repository, "pipe_preprocess"))
	if err != nil || p.IsEnsemble || p.MaxBatch == 0 {
		t.Fatalf("%v: %+v", err, p)
	}
	e, err := p.Open(context.Background(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	c := e.NewCall()
	c.Inputs[0] = engine.Buffer{Shape: []int64{2, 1}, Strings: []string{photo(t, 40, 50, 1), photo(t, 50, 40, 1)}}
	if err := e.Do(context.Background(), c); err != nil || fmt.Sprint(c.Outputs[0].Shape) != "[2 3 32 32]" {
		t.Errorf("%v: %v", err, c.Outputs[0].Shape)
	}
	holdStages(t, c)
	c.Inputs[0].Strings[0] = ""
	if err := e.Do(context.Background(), c); err == nil || err.Error() != "model pipe_preprocess: picture 0 of the request is 0 bytes that are no picture" {
		t.Error(err)
	}
	if _, err := (must(ReadFolder(filepath.Join(repository, "pipe")))(t)).Open(context.Background(), Options{}); err == nil || !strings.Contains(err.Error(), "model pipe_model: there is no engine") {
		t.Error(err)
	}
}

func must(p *Plan, err error) func(*testing.T) *Plan {
	return func(t *testing.T) *Plan {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
}

// Who opens an ensemble may give other files to the engine, and change how models run.
// What cannot be opened is named, and what was opened is closed again.
func TestOptions(t *testing.T) {
	before := runtime.NumGoroutine()
	p := must(Read(repositoryOf(t, diamond()), "fork"))(t)
	var asked []string
	o := Options{Engine: ref.New(ref.Options{}), File: func(m *Model) (string, error) {
		asked = append(asked, m.Name)
		return strings.Replace(m.File, "negate", "relu", 1), nil // its output is called the same
	}, Adjust: func(m *Model, s *executor.Setup, o *executor.ModelOptions) error {
		s.Policy.MaxBatch, s.Signature.MaxBatch = 3, 3
		if m.Name == "join" {
			s.Policy.MaxBatch, s.Signature.MaxBatch = 1, 1
		}
		return nil
	}}
	e, err := p.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	c := e.NewCall()
	c.Inputs[0] = floats(1, -2, 3, -4)
	if err := e.Do(context.Background(), c); err != nil || fmt.Sprint(numbers(c.Outputs[1]), asked) != "[1 0 3 0] [relu negate join]" {
		t.Errorf("%v: %v %v", err, numbers(c.Outputs[1]), asked)
	}
	c.Inputs[0] = floats(1, 2, 3, 4, 5, 6, 7, 8)
	if err := e.Do(context.Background(), c); err == nil || !strings.Contains(err.Error(), "model join: a request of 2 items: the model takes 1 to 1") {
		t.Error(err)
	}
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
	o.File = func(m *Model) (string, error) { return filepath.Join(m.Folder, "..", "join", "1", "model.onnx"), nil }
	if _, err := p.Open(context.Background(), o); err == nil || !strings.HasPrefix(err.Error(), `model relu: the model has no input "in"`) || fault.FamilyOf(err) != fault.Input {
		t.Error(err)
	}
	o.File = func(m *Model) (string, error) {
		if m.Name == "join" {
			return "", errors.New("it was not compiled")
		}
		return m.File, nil
	}
	if _, err := p.Open(context.Background(), o); err == nil || err.Error() != "model join: it was not compiled" {
		t.Error(err)
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// A batch of 1 comes and goes between models that batch and such that do not.
func TestBatchOfOne(t *testing.T) {
	files := diamond()
	files["fork/config.pbtxt"] = graph("x", "y", "relu in=x > out=a", "negate in=a > out=y")
	files["negate/config.pbtxt"] = strings.NewReplacer("max_batch_size: 8", "max_batch_size: 0", "dynamic_batching { }", "").Replace(rows("in", "out"))
	files["negate/1/model.onnx"] = `negate (float[4] in) => (float[4] out) { out = Neg (in) }`
	e := opened(t, repositoryOf(t, files), "fork", ref.New(ref.Options{}))
	c := e.NewCall()
	c.Inputs[0] = floats(1, -2, 3, -4)
	if err := e.Do(context.Background(), c); err != nil || fmt.Sprint(c.Outputs[0].Shape, numbers(c.Outputs[0])) != "[1 4] [-1 -0 -3 -0]" {
		t.Errorf("%v: %v %v", err, c.Outputs[0].Shape, numbers(c.Outputs[0]))
	}
	c.Inputs[0] = floats(1, 2, 3, 4, 5, 6, 7, 8)
	if err := e.Do(context.Background(), c); err == nil || !strings.Contains(err.Error(), `model negate: input "in": the shape 2x4 does not fit 4`) {
		t.Error(err)
	}
}

// Whatever a config says, it becomes a plan or a fault of the input.
func FuzzRead(f *testing.F) {
	f.Add(diamond()["fork/config.pbtxt"])
	f.Add(graph("x", "y", "relu in=x > out=a", "relu in=a > out=y"))
	f.Add(graph("x", "a", "relu in=b > out=a", "negate in=a > out=b"))
	files := diamond()
	dir := repositoryOf(f, files)
	f.Fuzz(func(t *testing.T, config string) {
		if err := os.WriteFile(filepath.Join(dir, "fork", "config.pbtxt"), []byte(config), 0o644); err != nil {
			t.Fatal(err)
		}
		p, err := Read(dir, "fork")
		if err != nil {
			if fault.FamilyOf(err) != fault.Input {
				t.Errorf("%v", err)
			}
			return
		}
		for i, s := range p.Steps {
			for _, before := range s.after {
				if before >= i {
					t.Errorf("step %d waits for step %d", i, before)
				}
			}
		}
	})
}
