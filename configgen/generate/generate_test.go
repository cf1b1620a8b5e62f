package generate_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/configgen/generate"
	"github.com/npuctl/npuctl/configgen/rules"
	"github.com/npuctl/npuctl/gears"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/findings"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/text"
	"github.com/npuctl/npuctl/onnxpass"
	"github.com/npuctl/npuctl/soc"
)

var update = flag.Bool("update", false, "write the golden configs anew")

// Models of each kind that matters.
const (
	fixed   = `net (float[2,3,8,8] image) => (float[2,3,8,8] y) { y = Relu (image) }`
	batched = `net (float[N,3,8,8] image, int64[N,4] words) => (float[N,3,8,8] y, int64[N,4] z) { y = Relu (image) z = Identity (words) }`
	lengths = `net (float[N,L,4] x) => (float[N,L,4] y) { y = Relu (x) }`
	pooled  = `net (float[N,L] x) => (float[N] y) { y = ReduceMean <axes = [1], keepdims = 0> (x) }`
	picture = `net (float[1,3,H,W] image) => (float[1,3,H,W] y) { y = Relu (image) }`
	// longer has an output dim whose name npu_ge cannot compute, and the operators can.
	longer = `net (float[N,L,4] x) => (float[N,longer,4] y) { y = Concat <axis = 1> (x, x) }`
	scalar = `net (float[N,4] x, float gain) => (float[N,4] y, float total) { y = Mul (x, gain) total = ReduceSum <keepdims = 0> (y) }`
	data   = `net (float[N,4] x) => (int64[2,found] y) { y = NonZero (x) }`
)

// model writes a model into a folder of its own.
func model(t testing.TB, graph string) string {
	t.Helper()
	return modelIn(t, t.TempDir(), graph, onnx.SaveOptions{})
}

func modelIn(t testing.TB, folder, graph string, options onnx.SaveOptions) string {
	t.Helper()
	m, err := text.Parse(`<ir_version: 8, opset_import: ["": 13]> ` + graph)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "net.onnx")
	if err := m.Save(path, options); err != nil {
		t.Fatal(err)
	}
	return path
}

func sized(n int32) *int32 { return &n }

func chip(name string) *soc.Chip {
	c, err := soc.Lookup(name)
	if err != nil {
		panic(err)
	}
	return &c
}

// What is written for each form; run with -update after a change, and read the diff.
func TestGolden(t *testing.T) {
	for _, test := range []struct {
		name, graph string
		job         generate.Job
	}{
		{"static", fixed, generate.Job{Static: true, Devices: []int{0, 1}, Instances: 4, Precision: "origin"}},
		{"static_batch", batched, generate.Job{Static: true, MaxBatch: sized(4)}},
		{"gears", batched, generate.Job{Gears: "1,2,4", MaxQueueDelay: 2 * time.Millisecond, AICoreNum: "12|10", Devices: []int{4}, Streams: 2}},
		{"gears_all", batched, generate.Job{Gears: "1,2", Warmup: &generate.Warmup{Kind: "random", Count: 2}, Profiling: "dynamic", Dump: []string{"graph", "data"},
			Queue: generate.Queue{Priorities: 3, DefaultPriority: 2, Timeout: time.Second, Action: "delay", AllowOverride: true, MaxSize: 64}}},
		{"gears_picture", picture, generate.Job{Gears: "224,224;336,336", Precision: "force_fp32"}},
		{"gears_length", pooled, generate.Job{Gears: "1,16;2,32"}},
		{"dynamic", batched, generate.Job{Preferred: []int32{4, 8}, VersionPolicy: "specific:3", Version: 3}},
		{"dynamic_open", lengths, generate.Job{}},
		{"dynamic_renamed", longer, generate.Job{}},
		{"dynamic_fixed", lengths, generate.Job{Sizes: onnxpass.Specialization{Dims: map[string]int64{"L": 16}}, NoBatching: true}},
		{"scalar", scalar, generate.Job{Sizes: onnxpass.Specialization{Batch: 1}}},
		{"onnxruntime", pooled, generate.Job{Backend: generate.ONNXRuntime, Devices: []int{1, 0}, Instances: 2}},
		{"onnxruntime_data", data, generate.Job{Backend: generate.ONNXRuntime, CPU: true, VersionPolicy: "all"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			job := test.job
			job.Model, job.Repository, job.Name = model(t, test.graph), t.TempDir(), test.name
			r, err := job.Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(r.Config)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", test.name+".pbtxt")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), string(got)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			stands(t, r)
		})
	}
}

// stands checks a result that was written: the file is what the result says, it reads
// and prints back the same, and the rules have nothing against it and its model.
func stands(t rapid.TB, r *generate.Result) {
	t.Helper()
	written, err := os.ReadFile(r.Config)
	if err != nil || string(written) != r.Text {
		t.Fatalf("the file is not what was told (%v)", err)
	}
	doc, err := configgen.Parse(r.Config, written)
	if err != nil {
		t.Fatal(err)
	}
	if printed := string(doc.Print()); printed != r.Text {
		t.Errorf("read and printed again (-written +printed)\n%s", cmp.Diff(r.Text, printed))
	}
	again, err := configgen.Parse("", configgen.NewDocument("", doc.Config()).Print())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(doc.Config(), again.Config(), cmpopts.IgnoreTypes(configgen.Node{})); d != "" {
		t.Errorf("without comments it says something else\n%s", d)
	}
	if n := doc.Placeholders(); len(n) > 0 {
		t.Errorf("placeholders %v", n)
	}
	for _, f := range rules.CheckText(r.Config, written, rules.Options{}).Findings {
		if f.Severity == findings.Error || f.Refuses {
			t.Errorf("alone: %s: %s", f.Rule, f.Message)
		}
	}
	result, err := rules.Check([]string{filepath.Dir(r.Config)}, rules.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if result.Verdict != rules.Accept {
		t.Errorf("verdict %s", result.Verdict)
	}
	for _, f := range result.Findings {
		isOperator := f.Rule == "chip-refused"
		isExpected := f.Rule == "backend-installed" || f.Rule == "scalar-tensor" || f.Rule == "batch-in-dims" || f.Rule == "instance-gpu-there" || strings.HasPrefix(f.Rule, "preferred-") || strings.HasPrefix(f.Rule, "queue-") ||
			f.Rule == "ge-gears-input" && strings.Contains(r.Text, "reshape { }") // the rule takes dims for what the model sees
		if f.Severity == findings.Error && !isOperator || f.Severity == findings.Warning && !isExpected {
			t.Errorf("%s: %s", f.Rule, f.Message)
		}
	}
}

// Whatever the model and the job: what is written stands, batches have their gears, and
// what is not written is refused with a reason.
func TestWhatIsWrittenStands(t *testing.T) {
	folder := t.TempDir()
	n, written := 0, map[generate.Form]int{}
	for range 4 { // a hundred each
		rapid.Check(t, func(rt *rapid.T) {
			n++
			own := filepath.Join(folder, fmt.Sprint(n))
			if err := os.Mkdir(own, 0o755); err != nil {
				t.Fatal(err)
			}
			graph, axes := randomGraph(rt)
			job := randomJob(rt, axes)
			job.Model = modelIn(t, own, graph, onnx.SaveOptions{})
			job.Repository = filepath.Join(own, "repository")
			r, err := job.Run(context.Background())
			if err != nil {
				if family := fault.FamilyOf(err); family == fault.Internal {
					rt.Fatalf("%v", err)
				}
				if _, err := os.Stat(job.Repository); !errors.Is(err, fs.ErrNotExist) {
					rt.Fatalf("refused, and yet %s is there", job.Repository)
				}
				return
			}
			written[r.Form]++
			stands(rt, r)
			everyBatchHasItsGear(rt, r)
		})
	}
	for _, form := range []generate.Form{generate.Static, generate.Gears, generate.Dynamic} {
		if written[form] == 0 {
			t.Errorf("no config of the form %s was written: the test is empty", form)
		}
	}
}

func everyBatchHasItsGear(t rapid.TB, r *generate.Result) {
	if r.Form != generate.Gears || r.MaxBatchSize == 0 {
		return
	}
	for batch := int64(1); batch <= int64(r.MaxBatchSize); batch++ {
		has := false
		for _, gear := range r.Gears {
			has = has || gear[0] == batch
		}
		if !has {
			t.Errorf("no gear for batch %d of %d: %v", batch, r.MaxBatchSize, r.Gears)
		}
	}
}

// randomGraph makes a model of one to three inputs, each with an output, and says how
// many sizes it leaves open.
func randomGraph(t *rapid.T) (graph string, axes int) {
	dims := rapid.SampledFrom([][]string{{"1", "3", "8"}, {"1", "3", "N"}, {"3", "8", "L"}, {"N", "L", "seq_len", "8", "?"}}).Draw(t, "dims")
	open := map[string]bool{}
	var inputs, outputs, nodes []string
	for i := range rapid.IntRange(1, 3).Draw(t, "inputs") {
		kind := rapid.SampledFrom([]string{"float", "float16", "int64", "int32"}).Draw(t, "type")
		shape := rapid.SliceOfN(rapid.SampledFrom(dims), 0, 4).Draw(t, "shape")
		if rapid.Bool().Draw(t, "batched") {
			shape = append([]string{"N"}, shape...)
		}
		for at, name := range shape {
			if name == "?" {
				open[fmt.Sprint(i, at)] = true
			} else if strings.Trim(name, "0123456789") != "" {
				open[name] = true
			}
		}
		typ := kind
		if len(shape) > 0 {
			typ = fmt.Sprintf("%s[%s]", kind, strings.Join(shape, ","))
		}
		inputs = append(inputs, fmt.Sprintf("%s x%d", typ, i))
		outputs = append(outputs, fmt.Sprintf("%s y%d", typ, i))
		nodes = append(nodes, fmt.Sprintf("y%d = Identity (x%d)", i, i))
	}
	return fmt.Sprintf("net (%s) => (%s) { %s }", strings.Join(inputs, ", "), strings.Join(outputs, ", "), strings.Join(nodes, " ")), len(open)
}

func randomJob(t *rapid.T, axes int) generate.Job {
	j := generate.Job{
		Backend:       rapid.SampledFrom([]string{"", generate.GE, generate.ONNXRuntime}).Draw(t, "backend"),
		Static:        rapid.IntRange(0, 3).Draw(t, "static") == 0,
		NoBatching:    rapid.Bool().Draw(t, "no batching"),
		Instances:     rapid.IntRange(0, 20).Draw(t, "instances"),
		Devices:       rapid.SampledFrom([][]int{nil, nil, {0}, {3, 1}}).Draw(t, "devices"),
		VersionPolicy: rapid.SampledFrom([]string{"", "latest:2", "all", "specific:1"}).Draw(t, "policy"),
		MaxQueueDelay: time.Duration(rapid.SampledFrom([]int{0, 0, 1}).Draw(t, "delay")) * time.Millisecond,
	}
	if rapid.Bool().Draw(t, "sized") {
		j.MaxBatch = sized(rapid.Int32Range(0, 9).Draw(t, "max batch"))
	}
	if !j.Static && rapid.Bool().Draw(t, "has gears") {
		var list []string
		for range rapid.IntRange(1, 4).Draw(t, "gears") {
			list = append(list, gears.Text(rapid.SliceOfN(rapid.Int64Range(1, 20), axes, axes).Draw(t, "gear")))
		}
		j.Gears = strings.Join(list, ";")
	}
	if j.Backend != generate.ONNXRuntime {
		j.Precision = rapid.SampledFrom([]string{"", "fp16", "must_keep_origin_dtype"}).Draw(t, "precision")
	}
	if rapid.Bool().Draw(t, "fixed") {
		j.Sizes = onnxpass.Specialization{Batch: 2}
	}
	return j
}

// What cannot be meant, or would not work, is refused, with what to do.
func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		name, graph string
		job         generate.Job
		family      fault.Family
		want        string
	}{
		{"two forms", batched, generate.Job{Static: true, Gears: "1,2"}, fault.Usage, "--static and --gears"},
		{"a backend that there is not", batched, generate.Job{Backend: "tensorrt"}, fault.Usage, "npu_ge and onnxruntime"},
		{"a name that no URL carries", batched, generate.Job{Name: "a b"}, fault.Usage, "--name a b"},
		{"a name that leads out", batched, generate.Job{Name: ".."}, fault.Usage, "--name .."},
		{"gears without NPU", batched, generate.Job{Backend: generate.ONNXRuntime, Gears: "1,2"}, fault.Usage, "--gears would be ignored"},
		{"static with open dims", lengths, generate.Job{Static: true}, fault.Goal, "x[1] (L)"},
		{"static that depends on data", data, generate.Job{Static: true, Sizes: onnxpass.Specialization{Batch: 1}}, fault.Goal, "y[1] (found)"},
		{"an output of unknown size", data, generate.Job{}, fault.Input, `dim 1 of output y`},
		{"the batch twice", fixed, generate.Job{MaxBatch: sized(4)}, fault.Usage, "the first dim of input image is 2"},
		{"a batch of a model with open outputs", lengths, generate.Job{MaxBatch: sized(4)}, fault.Usage, "wrong axis"},
		{"another batch than the gears", batched, generate.Job{Gears: "1,2", MaxBatch: sized(4)}, fault.Usage, "largest batch of --gears is 2"},
		{"gears of one axis for three", `net (float[N,L,W] x) => (float[N,L,W] y) { y = Relu (x) }`, generate.Job{Gears: "1,2,4"}, fault.Usage, `first fix the axes that gears do not set: --batch 1, --dim L=N, --dim W=N; or give each gear a number for each of N, L, W: "1,L,W;2,L,W;4,L,W" with sizes for L and W`},
		{"gears of one axis for two", lengths, generate.Job{Gears: "1,2,4"}, fault.Usage, `"1,L;2,L;4,L" with sizes for L`},
		{"gears of one axis for two without names", picture, generate.Job{Gears: "224;336"}, fault.Usage, `"224,W;336,W" with sizes for W`},
		{"more gears than there can be", batched, generate.Job{Gears: "1,200"}, fault.Usage, "200 gears"},
		{"many more", batched, generate.Job{Gears: "1,2147483647"}, fault.Usage, "does not pad"},
		{"preferred above the largest", batched, generate.Job{Preferred: []int32{16}}, fault.Usage, "above max_batch_size 8"},
		{"merging with open dims", pooled, generate.Job{Preferred: []int32{4}}, fault.Usage, "x[1] (L) is open"},
		{"merging a static graph", batched, generate.Job{Static: true, MaxQueueDelay: time.Millisecond}, fault.Usage, "one by one"},
		{"an endless delay", batched, generate.Job{MaxQueueDelay: time.Hour}, fault.Usage, "up to 1m0s"},
		{"a precision that there is not", batched, generate.Job{Precision: "orign"}, fault.Usage, "origin"},
		{"cores", batched, generate.Job{AICoreNum: "a|b"}, fault.Usage, "cube|vector"},
		{"more cores than the chip", batched, generate.Job{AICoreNum: "30|10", Chip: chip("910B3")}, fault.Usage, "Ascend910B3 has 20|40"},
		{"two kinds of cores where there is one", batched, generate.Job{AICoreNum: "4|4", Chip: chip("310P3")}, fault.Usage, "one kind of core"},
		{"no cores", batched, generate.Job{AICoreNum: "4|0", Chip: chip("910B3")}, fault.Usage, "Ascend910B3 has 20|40"},
		{"a profiler that there is not", batched, generate.Job{Profiling: "on"}, fault.Usage, "true or dynamic"},
		{"a dump that there is not", batched, generate.Job{Dump: []string{"graph", "all"}}, fault.Usage, "--dump graph,all"},
		{"a profiler on CPUs", batched, generate.Job{Profiling: "true", Backend: generate.ONNXRuntime}, fault.Usage, "--profiling would be ignored"},
		{"a queue without batches", fixed, generate.Job{Queue: generate.Queue{MaxSize: 4}}, fault.Usage, "requests are not merged"},
		{"a priority that there is not", batched, generate.Job{Queue: generate.Queue{Priorities: 2, DefaultPriority: 3}}, fault.Usage, "there are 2 levels"},
		{"an order and priorities", batched, generate.Job{Queue: generate.Queue{Priorities: 2, PreserveOrdering: true}}, fault.Usage, "takes one of them"},
		{"an override of nothing", batched, generate.Job{Queue: generate.Queue{AllowOverride: true}}, fault.Usage, "can only shorten"},
		{"an action without a timeout", batched, generate.Job{Queue: generate.Queue{Action: "delay"}}, fault.Usage, "nothing times out"},
		{"a warm-up of open dims", pooled, generate.Job{Warmup: &generate.Warmup{}}, fault.Usage, "x[1] (L) is open, and a warm-up needs sizes"},
		{"a warm-up that there is not", batched, generate.Job{Warmup: &generate.Warmup{Kind: "ones"}}, fault.Usage, "zero or random"},
		{"data for no input", batched, generate.Job{Warmup: &generate.Warmup{Data: map[string]string{"imag": "x.npy"}}}, fault.Usage, "image"},
		{"a device twice", batched, generate.Job{Devices: []int{1, 1}}, fault.Usage, "--devices"},
		{"an NPU called cpu", batched, generate.Job{CPU: true}, fault.Usage, "--devices cpu"},
		{"a version that is not there", batched, generate.Job{VersionPolicy: "specific:1,2"}, fault.Input, "version 2"},
		{"a version that is not served", batched, generate.Job{Version: 3, VersionPolicy: "specific:1,2"}, fault.Usage, "version 3 is not among"},
		{"a policy", batched, generate.Job{VersionPolicy: "newest"}, fault.Usage, "latest, latest:N"},
		{"the batch as an output's own dim", `net (float[N,4] x) => (float[4,N] y) { y = Transpose <perm = [1,0]> (x) }`, generate.Job{}, fault.Input, "dim 1 of output y"},
		{"a dim of 0", `net (float[0,4] x) => (float[0,4] y) { y = Relu (x) }`, generate.Job{}, fault.Input, "is empty"},
		{"no input", `net () => (float[2] y) <float[2] w = {1, 2}> { y = Relu (w) }`, generate.Job{}, fault.Input, "no inputs"},
		{"a sequence", `net (float[N] x) => (seq(float[N]) y) { y = SequenceConstruct (x) }`, generate.Job{}, fault.Input, "no output is a tensor"},
	} {
		t.Run(test.name, func(t *testing.T) {
			job := test.job
			job.Model, job.Repository = model(t, test.graph), filepath.Join(t.TempDir(), "repository")
			_, err := job.Run(context.Background())
			if err == nil || fault.FamilyOf(err) != test.family || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want family %s and %q", err, test.family, test.want)
			}
			if _, err := os.Stat(job.Repository); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("something was written")
			}
		})
	}
	for path, want := range map[string]string{"model.om": "does not load compiled models", "missing.onnx": "missing.onnx"} {
		job := generate.Job{Model: path, Repository: t.TempDir()}
		if _, err := job.Run(context.Background()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// The same again changes nothing; anything else needs force, and comes whole or not.
func TestPlaces(t *testing.T) {
	folder := t.TempDir()
	job := generate.Job{Model: model(t, batched), Repository: filepath.Join(folder, "a", "repository")}
	run := func(j generate.Job) (*generate.Result, error) { return j.Run(context.Background()) }

	preview := job
	preview.Preview = true
	if r, err := run(preview); err != nil || r.Written || !strings.Contains(r.Diff, `+name: "net"`) {
		t.Fatalf("preview: %+v, %v", r, err)
	}
	if _, err := os.Stat(filepath.Join(folder, "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal("a preview wrote something")
	}

	first, err := run(job)
	if err != nil || !first.Written || first.Files[0].How != "copied" {
		t.Fatalf("first: %+v, %v", first, err)
	}
	if r, err := run(job); err != nil || r.Written || r.Diff != "" || r.Files[0].How != "kept" {
		t.Errorf("again: %+v, %v", r, err)
	}

	other := job
	other.Gears = "1,2"
	if r, err := run(other); err != nil || !r.Written || !strings.Contains(r.Diff, "\n-max_batch_size: 8\n") || len(r.Changes) != 5 {
		t.Errorf("another config: %+v, %v", r, err)
	}
	other.Force = true
	if r, err := run(other); err != nil || len(r.Changes) > 0 || r.Text == first.Text {
		t.Errorf("with force: %+v, %v", r, err)
	}

	model2 := other
	model2.Model, model2.Force = model(t, strings.ReplaceAll(batched, "Relu", "Neg")), false
	model2.Name = "net"
	if _, err := run(model2); err == nil || !strings.Contains(err.Error(), "is another file") {
		t.Errorf("another model: %v", err)
	}
	beside := other
	beside.Version, beside.Force = 2, false
	if _, err := run(beside); err == nil || !strings.Contains(err.Error(), "takes the first .onnx") {
		t.Errorf("a second version: %v", err)
	}
	beside.Force = true
	if r, err := run(beside); err != nil || len(r.Notes) == 0 {
		t.Errorf("a second version with force: %+v, %v", r, err)
	}

	// A model that lies in its place already stays there.
	inPlace := job
	inPlace.Model = filepath.Join(folder, "b", "net", "1", "model.onnx")
	inPlace.Repository, inPlace.Name = filepath.Join(folder, "b"), "net"
	if err := os.MkdirAll(filepath.Dir(inPlace.Model), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(model(t, batched), inPlace.Model); err != nil {
		t.Fatal(err)
	}
	if r, err := run(inPlace); err != nil || r.Files[0].How != "kept" || !r.Written {
		t.Errorf("in place: %+v, %v", r, err)
	}
}

// Data beside the model comes along, copied or linked.
func TestSideFiles(t *testing.T) {
	m := onnx.NewModel(8, 13)
	x := m.Graph.AddInput("x", onnx.TensorType(tensor.Float32, 2, 4096))
	w, err := tensor.Make(slices.Repeat([]float32{1, 2}, 2048), 4096)
	if err != nil {
		t.Fatal(err)
	}
	y := m.Graph.Add("Add", []*onnx.Value{x, m.Graph.AddInitializer("w", w)}, []string{"y"}).Output(0)
	y.Type = x.Type
	m.Graph.AddOutput(y)
	path := filepath.Join(t.TempDir(), "net.onnx")
	if err := m.Save(path, onnx.SaveOptions{ExternalData: onnx.SplitExternal}); err != nil {
		t.Fatal(err)
	}
	for _, link := range []bool{false, true} {
		job := generate.Job{Model: path, Repository: t.TempDir(), Link: link}
		r, err := job.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Files) != 2 {
			t.Fatalf("files %v", r.Files)
		}
		original, _ := os.Stat(path)
		placed, err := os.Stat(r.Files[0].Path)
		if err != nil || os.SameFile(original, placed) != link {
			t.Errorf("link %v: same file %v, %v", link, os.SameFile(original, placed), err)
		}
		m, err := onnx.Open(r.Files[0].Path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Graph.Find("w").Initializer().Dense(); err != nil {
			t.Error(err)
		}
		m.Close()
		stands(t, r)
	}
}

// The copy of a model whose output dims got names differs in these alone.
func TestRenamed(t *testing.T) {
	job := generate.Job{Model: model(t, longer), Repository: t.TempDir()}
	r, err := job.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	read := func(path string) string {
		m, err := onnx.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		return text.String(m)
	}
	got, want := read(r.Files[0].Path), strings.Replace(read(job.Model), "longer", `"2*L"`, 1)
	if got != want || r.Files[0].How != "rewritten" {
		t.Errorf("%s (-want +got)\n%s", r.Files[0].How, cmp.Diff(want, got))
	}
	if again, err := job.Run(context.Background()); err != nil || again.Written {
		t.Errorf("again: %+v, %v", again, err)
	}
}

// What fails or is stopped leaves nothing.
func TestNothingIsLeft(t *testing.T) {
	folder := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	job := generate.Job{Model: model(t, batched), Repository: filepath.Join(folder, "repository")}
	if _, err := job.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was stopped", err)
	}
	// A folder stands where the config should go.
	if err := os.MkdirAll(filepath.Join(folder, "repository", "net", "config.pbtxt"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := job.Run(context.Background()); err == nil {
		t.Error("a folder was replaced")
	}
	entries, err := os.ReadDir(filepath.Join(folder, "repository", "net"))
	if err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// Names from a file cannot break out of their place in the config.
func TestHostileNames(t *testing.T) {
	graph := `net (float[N,3] "x\"}\n# \\ ${A}") => (float[N,3] "y\nname: \"z\"") { "y\nname: \"z\"" = Relu ("x\"}\n# \\ ${A}") }`
	job := generate.Job{Model: model(t, graph), Repository: t.TempDir(), MaxBatch: sized(2)}
	r, err := job.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := configgen.Parse("", []byte(r.Text))
	if err != nil {
		t.Fatal(err)
	}
	c := doc.Config()
	if c.Name != "net" || c.Input[0].Name != "x\"}\n# \\ ${A}" || c.Output[0].Name != "y\nname: \"z\"" {
		t.Errorf("read back: %q %q %q", c.Name, c.Input[0].Name, c.Output[0].Name)
	}
}
