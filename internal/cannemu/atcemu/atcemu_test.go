package atcemu_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/internal/cannemu/atcemu"
	"github.com/npuctl/npuctl/om"
	"github.com/npuctl/npuctl/onnx/text"
)

// shop is a folder with a model in it, where the program runs.
type shop struct {
	t   *testing.T
	dir string
	env map[string]string
	// died says that the process would have been ended by a signal.
	died bool
}

// open makes a shop with model.onnx of a text.
func open(t *testing.T, model string) *shop {
	t.Helper()
	s := &shop{t: t, dir: t.TempDir(), env: map[string]string{}}
	s.env["HOME"] = filepath.Join(s.dir, "home")
	t.Chdir(s.dir)
	s.write("model.onnx", model)
	return s
}

func (s *shop) write(name, model string) {
	s.t.Helper()
	data, err := text.MustParse(s.t, model).Encode()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// noon is the time at which the tests run.
var noon = time.Date(2026, 11, 30, 12, 0, 0, 123456000, time.UTC)

// run runs the program as process 42.
func (s *shop) run(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errOut bytes.Buffer
	p := atcemu.Process{
		Getenv: func(name string) string { return s.env[name] }, Now: func() time.Time { return noon }, PID: 42, Version: "v1",
		Die: func() { s.died = true },
	}
	code = atcemu.Main(ctx, args, p, &out, &errOut)
	return code, out.String(), errOut.String()
}

// compile compiles model.onnx to out/m.om, with more arguments.
func (s *shop) compile(args ...string) (code int, stdout, stderr string) {
	return s.run(context.Background(), append([]string{"--framework=5", "--model=model.onnx", "--output=out/m", "--soc_version=Ascend910B3"}, args...)...)
}

// must is compile that has to succeed; it gives what was written.
func (s *shop) must(args ...string) *om.File {
	s.t.Helper()
	code, stdout, stderr := s.compile(args...)
	if code != 0 || !strings.HasSuffix(stdout, "...\nATC run success, welcome to the next use.\n") || stderr != "" {
		s.t.Fatalf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
	return s.read("out/m.om")
}

func (s *shop) read(path string) *om.File {
	s.t.Helper()
	f, err := om.Open(path)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { f.Close() })
	return f
}

// carried gives the ONNX model that an .om carries.
func carried(t *testing.T, f *om.File) []byte {
	t.Helper()
	p, ok := f.Partition(0, om.EmulatedModel)
	if !ok {
		t.Fatal("there is no partition of the emulator's own")
	}
	data, err := io.ReadAll(f.Section(p))
	if err != nil || string(data[:8]) != "NPUCEMU1" {
		t.Fatalf("own partition begins with %q, %v", data[:8], err)
	}
	rest := data[12:]
	for range binary.LittleEndian.Uint32(data[8:]) {
		key, value := binary.LittleEndian.Uint32(rest), binary.LittleEndian.Uint32(rest[4:])
		body := rest[8:]
		if string(body[:key]) == "model" {
			return body[key : key+value]
		}
		rest = body[key+value:]
	}
	t.Fatal("there is no model in it")
	return nil
}

// small is y = relu(x·w), with a batch that is open.
const small = `<ir_version: 8, opset_import: ["": 17]>
small (float[N,2] x) => (float[N,3] y)
<float[2,3] w = {1, -2, 3, -4, 5, -6}> {
	[product] p = MatMul (x, w)
	[positive] y = Relu (p)
}`

// image has an input of the four dims that images have.
const image = `<ir_version: 8, opset_import: ["": 17]>
image (float[N,3,H,W] x) => (float[N,3,H,W] y) {
	[double] y = Add (x, x)
}`

// pair has two inputs of open dims, and an output that depends on one of them.
const pair = `<ir_version: 8, opset_import: ["": 17]>
pair (int64[B,S] ids, float[B,S] mask) => (float[B] total, float[B,S] masked) {
	[asFloat] f = Cast <to = 1> (ids)
	[product] masked = Mul (f, mask)
	[sum] total = ReduceSum <keepdims = 0> (masked, axes)
}`

var pairModel = strings.Replace(pair, " {\n\t[asFloat]", "\n<int64[1] axes = {1}> {\n\t[asFloat]", 1)

func TestWhatIsPrinted(t *testing.T) {
	const warning = "[2026-11-30-12:00:00.123.456]42 WARNING: this atc is emulated by npuctl: what it makes runs on the emulator alone, on no NPU\n"
	const failed = "ATC run failed, Please check the detail log, Try 'atc --help' for more information\n"
	for _, test := range []struct {
		name           string
		args           []string
		code           int
		stdout, stderr string
	}{
		{"success", []string{"--input_shape=x:4,2"}, 0,
			"ATC start working now, please wait for a moment.\n" + warning + "...\nATC run success, welcome to the next use.\n", ""},
		{"a flag that is none", []string{"--input_shapes=x:4,2"}, 255,
			"ATC start working now, please wait for a moment.\n" + failed + "\n", "ERROR: --input_shapes is no flag of ATC\n"},
		{"host flags for a static model", []string{"--input_shape=x:4,2", "--host_env_os=linux", "--host_env_cpu=x86_64"}, 0,
			"ATC start working now, please wait for a moment.\n" + warning +
				"This model is irrelevant to the host platform, parameters about host os and host cpu are ignored.\n...\nATC run success, welcome to the next use.\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, stdout, stderr := open(t, small).compile(test.args...)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if d := cmp.Diff(test.stdout, stdout); d != "" {
				t.Errorf("standard output: %s", d)
			}
			if d := cmp.Diff(test.stderr, stderr); d != "" {
				t.Errorf("standard error: %s", d)
			}
		})
	}
}

// What is refused is told in the form that our own reader of ATC's output knows, and
// nothing is written.
func TestRefusals(t *testing.T) {
	node := func(operator string) string {
		return `<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> (float[1,3,8,8] x) => (y) { [n] ` + operator + ` }`
	}
	for _, test := range []struct {
		name, model string
		args        []string
		code, says  string
	}{
		{"a wrong shape", small, []string{"--input_shape=x:4,2;z:4,2"}, "E10016", "z"},
		{"an open shape", small, nil, "E10001", "--input_shape"},
		{"one gear", small, []string{"--input_shape=x:-1,2", "--dynamic_batch_size=4"}, "E10035", "1"},
		{"an operator without a plugin", node(`y = QuantizeLinear (x, x)`), nil, "E13010", "No operator plugin is registered for Op: n, optype: ai.onnx::17::QuantizeLinear."},
		{"a foreign domain", node(`y = com.microsoft.Gelu (x)`), nil, "E13010", "com.microsoft::1::Gelu"},
		{"an opset that is too new", strings.Replace(node(`y = Relu (x)`), `"": 17`, `"": 19`, 1), nil, "E13010", "ai.onnx::19::Relu"},
		{"a plugin that refuses", node(`y = Transpose (x)`), nil, "EZ9999", "perm"},
		{"before anybody looks at the shape", strings.Replace(node(`y = QuantizeLinear (x, x)`), "[1,3", "[N,3", 1), nil, "E13010", "QuantizeLinear"},
		{"booleans to choose from", `<ir_version: 8, opset_import: ["": 17]> (bool[4] c, bool[4] x) => (bool[4] y) { [choice] y = Where (c, x, c) }`, nil, "EZ3003", "[choice], optype [SelectV2]"},
		{"two nodes of a name", `<ir_version: 8, opset_import: ["": 17]> (float[4] x) => (float[4] y) { [n] z = Relu (x) [n] y = Relu (z) }`, nil, "E13009", "n"},
		{"parts that do not come out equal", `<ir_version: 8, opset_import: ["": 18]> (float[5] x) => (float[3] y, float[2] z) { y, z = Split <num_outputs = 2> (x) }`, nil, "EZ9999", "evenly"},
		{"a split whose shape nobody knows yet", `<ir_version: 8, opset_import: ["": 18]> (float[4] x) => (float[2] y, float[2] z) { p = Relu (x) y, z = Split <num_outputs = 2> (p) }`, nil, "EZ9999", "not there yet"},
		{"a branch of nothing", `<ir_version: 8, opset_import: ["": 17]> (float[2] x, bool c) => (float[2] z) {
			r = Relu (x) z = If (c) <then_branch = yes () => (r) { }, else_branch = no () => (float[2] e) { e = Neg (x) }> }`, nil, "E19999", "has no node"},
		{"a branch that means another thing by a name", `<ir_version: 8, opset_import: ["": 17]> (float[2] x, bool c) => (float[2] z) <float[2] r = {1, 2}> {
			z = If (c) <then_branch = yes () => (float[2] t) { r = Neg (x) t = Exp (r) }, else_branch = no () => (float[2] e) { e = Add (x, r) }> }`, nil, "E19999", "defined outside"},
		{"no input", `<ir_version: 8, opset_import: ["": 17]> () => (float[1] y) <float[1] c = {1}> { y = Relu (c) }`, nil, "E16001", "no input node"},
		{"an input of a type that there is not", `<ir_version: 10, opset_import: ["": 17]> (uint4[4] x) => (uint4[4] y) { y = Identity (x) }`, nil, "E19999", "21"},
		{"a constant that the parser leaves empty", `<ir_version: 8, opset_import: ["": 17]> (float[4] x) => (float[4] y) { c = Constant <value_float = 2.0> () y = Mul (x, c) }`, nil, "E19999", "no tensor"},
		{"shapes that contradict", small, []string{"--input_shape=x:4,5"}, "E19999", "infer shape failed"},
		{"a gear whose shapes depend on data", `<ir_version: 8, opset_import: ["": 17]> (float[N] x) => (int64[1,M] y) { y = NonZero (x) }`,
			[]string{"--input_shape=x:-1", "--dynamic_dims=4;8", "--input_format=ND"}, "E19999", "leaves a shape open"},
		{"an output type that cannot be computed", small, []string{"--input_shape=x:4,2", "--output_type=HIF8"}, "E19999", "HIF8"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t, test.model)
			code, stdout, stderr := s.compile(test.args...)
			if code != 255 || stderr != "" {
				t.Errorf("exit code %d, standard error %q", code, stderr)
			}
			log := atc.ReadLog(stdout)
			if !log.Started || !log.Failed || log.Succeeded {
				t.Errorf("read as %+v", log)
			}
			if got := log.Leading(); got != test.code {
				t.Errorf("code %q, want %q:\n%s", got, test.code, stdout)
			}
			if !strings.Contains(stdout, test.says) {
				t.Errorf("it does not say %q:\n%s", test.says, stdout)
			}
			if _, err := os.Stat("out/m.om"); !os.IsNotExist(err) {
				t.Errorf("there is a result: %v", err)
			}
		})
	}
}

func TestStaticModel(t *testing.T) {
	s := open(t, small)
	f := s.must("--input_shape=x:4,2")
	if info, err := os.Stat("out/m.om"); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	var partitions []om.PartitionType
	for _, p := range f.Partitions() {
		partitions = append(partitions, p.Type)
	}
	if want := []om.PartitionType{om.ModelInOutInfo, om.ModelDef, om.WeightsData, om.TBEKernels, om.CustomAICPU, om.TaskInfo, om.EmulatedModel}; !slices.Equal(partitions, want) {
		t.Errorf("partitions %v, want %v", partitions, want)
	}
	if h := f.Header; h.Dynamic || h.NeedsHost || h.ModelNum != 1 || h.Name != "m" || h.Platform != "1.11.z.0" || !h.Wide {
		t.Errorf("header %+v", h)
	}
	signature, err := f.Signature()
	if err != nil {
		t.Fatal(err)
	}
	want := &om.Signature{
		Inputs:  []om.Tensor{{Name: "x", DType: "float32", Format: "ND", Dims: []int64{4, 2}, PlainDims: []int64{4, 2}, Bytes: 32}},
		Outputs: []om.Tensor{{Name: "positive:0:y", Tensor: "y", DType: "float32", Format: "ND", Dims: []int64{4, 3}, PlainDims: []int64{4, 3}, Bytes: 48}},
	}
	want.AllInputs = want.Inputs
	if d := cmp.Diff(want, signature); d != "" {
		t.Errorf("signature: %s", d)
	}
	p, err := f.Provenance()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(om.Provenance{Model: "m", SoC: "Ascend910B3", ArchType: "0", TargetType: "MINI", Framework: "Onnx", Tool: "npuctl-emulator v1",
		Compiler: "npuctl-emulator v1", Operators: "npuctl-emulator v1", CustomVersion: "1.11.z.0",
		CommandLine: "atc.bin --framework=5 --model=model.onnx --output=out/m --soc_version=Ascend910B3 --input_shape=x:4,2"}, p); d != "" {
		t.Errorf("provenance: %s", d)
	}
	needs, err := f.Needs()
	if err != nil {
		t.Fatal(err)
	}
	// Two results of 48 bytes in blocks of 512, one constant of 24 bytes in one of 32.
	if d := cmp.Diff(om.Needs{MemoryBytes: 1024, WeightBytes: 32, ZeroCopyBytes: 80, Streams: 1}, needs); d != "" {
		t.Errorf("needs: %s", d)
	}
	var operators []string
	for op, err := range f.Operators(0) {
		if err != nil {
			t.Fatal(err)
		}
		operators = append(operators, op.Name+" "+op.Type)
	}
	if want := []string{"x Data", "product BatchMatMulV2", "positive Relu", "Node_Output NetOutput"}; !slices.Equal(operators, want) {
		t.Errorf("operators %q, want %q", operators, want)
	}
}

func TestSameBytesEveryTime(t *testing.T) {
	for _, args := range [][]string{{"--input_shape=ids:2,4;mask:2,4"}, {"--input_shape=ids:-1,-1;mask:-1,-1", "--dynamic_dims=1,4,1,4;2,8,2,8", "--input_format=ND"}} {
		s := open(t, pairModel)
		s.must(args...)
		first, err := os.ReadFile("out/m.om")
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			s.must(args...)
			if again, err := os.ReadFile("out/m.om"); err != nil || !bytes.Equal(first, again) {
				t.Fatalf("other bytes, %v", err)
			}
		}
	}
}

func TestGears(t *testing.T) {
	for _, test := range []struct {
		name, model string
		args        []string
		want        om.Gears
		inputs      []om.Tensor
		outputs     []om.Tensor
		shapes      []om.GearOutput
		hiddenDims  []int64
	}{
		{name: "batch", model: small, args: []string{"--input_shape=x:-1,2", "--dynamic_batch_size=1,8,4"},
			want:       om.Gears{Kind: "batch", Rows: [][]int64{{1}, {8}, {4}}, Order: []string{"x"}},
			inputs:     []om.Tensor{{Name: "x", DType: "float32", Format: "ND", Dims: []int64{-1, 2}, PlainDims: []int64{-1, 2}, Bytes: 64}},
			outputs:    []om.Tensor{{Name: "positive:0:y", Tensor: "y", DType: "float32", Format: "ND", Dims: []int64{8, 3}, PlainDims: []int64{8, 3}, Bytes: 96}},
			shapes:     []om.GearOutput{{Gear: 0, Dims: []int64{1, 3}}, {Gear: 1, Dims: []int64{8, 3}}, {Gear: 2, Dims: []int64{4, 3}}},
			hiddenDims: []int64{1}},
		{name: "image", model: image, args: []string{"--input_shape=x:1,3,-1,-1", "--dynamic_image_size=8,4;2,2"},
			want:       om.Gears{Kind: "image", Rows: [][]int64{{8, 4}, {2, 2}}, Order: []string{"x"}},
			inputs:     []om.Tensor{{Name: "x", DType: "float32", Format: "NCHW", Dims: []int64{1, 3, -1, -1}, PlainDims: []int64{1, 3, -1, -1}, Bytes: 384}},
			outputs:    []om.Tensor{{Name: "double:0:y", Tensor: "y", DType: "float32", Format: "NCHW", Dims: []int64{1, 3, 8, 4}, PlainDims: []int64{1, 3, 8, 4}, Bytes: 384}},
			shapes:     []om.GearOutput{{Gear: 0, Dims: []int64{1, 3, 8, 4}}, {Gear: 1, Dims: []int64{1, 3, 2, 2}}},
			hiddenDims: []int64{2}},
		// The values of a gear go to the inputs in the order of --input_shape.
		{name: "dims", model: pairModel, args: []string{"--input_shape=mask:2,-1;ids:2,-1", "--dynamic_dims=4,4;8,8", "--input_format=ND"},
			want: om.Gears{Kind: "dims", Rows: [][]int64{{4, 4}, {8, 8}}, Order: []string{"mask", "ids"}},
			inputs: []om.Tensor{{Name: "ids", DType: "int64", Format: "ND", Dims: []int64{2, -1}, PlainDims: []int64{2, -1}, Bytes: 128},
				{Name: "mask", DType: "float32", Format: "ND", Dims: []int64{2, -1}, PlainDims: []int64{2, -1}, Bytes: 64}},
			outputs: []om.Tensor{{Name: "sum:0:total", Tensor: "total", DType: "float32", Format: "ND", Dims: []int64{2}, PlainDims: []int64{2}, Bytes: 8},
				{Name: "product:0:masked", Tensor: "masked", DType: "float32", Format: "ND", Dims: []int64{2, 8}, PlainDims: []int64{2, 8}, Bytes: 64}},
			shapes:     []om.GearOutput{{Gear: -1, Output: 0, Dims: []int64{2}}, {Gear: 0, Output: 1, Dims: []int64{2, 4}}, {Gear: 1, Output: 1, Dims: []int64{2, 8}}},
			hiddenDims: []int64{2}},
		{name: "dims of two inputs", model: `<ir_version: 8, opset_import: ["": 17]> (float[N] a, float[M] b) => (float[N] c, float[M] d) { [first] c = Neg (a) [second] d = Abs (b) }`,
			args: []string{"--input_shape=b:-1;a:-1", "--dynamic_dims=2,16;4,8", "--input_format=ND"},
			want: om.Gears{Kind: "dims", Rows: [][]int64{{2, 16}, {4, 8}}, Order: []string{"b", "a"}},
			inputs: []om.Tensor{{Name: "a", DType: "float32", Format: "ND", Dims: []int64{-1}, PlainDims: []int64{-1}, Bytes: 64},
				{Name: "b", DType: "float32", Format: "ND", Dims: []int64{-1}, PlainDims: []int64{-1}, Bytes: 16}},
			outputs: []om.Tensor{{Name: "first:0:c", Tensor: "c", DType: "float32", Format: "ND", Dims: []int64{16}, PlainDims: []int64{16}, Bytes: 64},
				{Name: "second:0:d", Tensor: "d", DType: "float32", Format: "ND", Dims: []int64{4}, PlainDims: []int64{4}, Bytes: 16}},
			shapes: []om.GearOutput{{Gear: 0, Output: 0, Dims: []int64{16}}, {Gear: 0, Output: 1, Dims: []int64{2}},
				{Gear: 1, Output: 0, Dims: []int64{8}}, {Gear: 1, Output: 1, Dims: []int64{4}}},
			hiddenDims: []int64{2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := open(t, test.model).must(test.args...)
			if f.Header.Dynamic {
				t.Error("a model of gears is no dynamic one")
			}
			s, err := f.Signature()
			if err != nil {
				t.Fatal(err)
			}
			for what, d := range map[string]string{
				"gears": cmp.Diff(&test.want, s.Gears), "inputs": cmp.Diff(test.inputs, s.Inputs),
				"outputs": cmp.Diff(test.outputs, s.Outputs), "shapes": cmp.Diff(test.shapes, s.GearOutputs),
			} {
				if d != "" {
					t.Errorf("%s: %s", what, d)
				}
			}
			if len(s.Hidden) != 1 || s.AllInputs[len(s.AllInputs)-1].Name != om.GearInput || !slices.Equal(s.Hidden[0].Dims, test.hiddenDims) || s.Hidden[0].DType != "int32" {
				t.Errorf("hidden input %+v", s.Hidden)
			}
			checkCase(t, f, test.want)
		})
	}
}

// checkCase looks at the operator that chooses a gear, and at the gears' bodies.
func checkCase(t *testing.T, f *om.File, want om.Gears) {
	t.Helper()
	labels := map[string]int{}
	var found om.Attributes
	for op, err := range f.Operators(0) {
		if err != nil {
			t.Fatal(err)
		}
		a, err := op.Attributes()
		if err != nil {
			t.Fatal(err)
		}
		if op.Type == "Case" {
			found = a
		}
		if label, ok := a.Text("_batch_label"); ok {
			labels[label]++
			if suffix := "_ascend_mbatch_batch_" + strings.TrimPrefix(label, "Batch_"); !strings.HasSuffix(op.Name, suffix) {
				t.Errorf("operator %q of %s", op.Name, label)
			}
		}
	}
	kind := map[string]int64{"batch": 1, "image": 2, "dims": 3}[want.Kind]
	if found.Int("_batch_num") != int64(len(want.Rows)) || found.Int("mbatch_dynamic_type") != kind || !slices.Equal(found.Ints("_pred_value_1"), want.Rows[1]) ||
		!slices.Equal(found.Texts("user_designate_shape_order"), want.Order) {
		t.Errorf("Case has %v", found)
	}
	if len(labels) != len(want.Rows) {
		t.Errorf("bodies %v", labels)
	}
}

func TestDynamicModel(t *testing.T) {
	s := open(t, small)
	f := s.must("--input_shape=x:1~8,2")
	if !f.Header.Dynamic {
		t.Error("it is not marked as dynamic")
	}
	signature, err := f.Signature()
	if err != nil {
		t.Fatal(err)
	}
	want := []om.Tensor{{Name: "x", DType: "float32", Format: "ND", Dims: []int64{-1, 2}, PlainDims: []int64{-1, 2}, Ranges: [][2]int64{{1, 8}, {2, 2}}}}
	if d := cmp.Diff(want, signature.Inputs); d != "" {
		t.Errorf("inputs: %s", d)
	}
	if out := signature.Outputs[0]; !slices.Equal(out.Dims, []int64{-1, 3}) || out.Bytes != 0 {
		t.Errorf("output %+v", out)
	}
	s.env[atcemu.HostCodeVariable] = "1"
	s.must("--input_shape=x:-1,2", "--host_env_os=linux", "--host_env_cpu=aarch64")
	f = s.read("out/m_linux_aarch64.om")
	p, err := f.Provenance()
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := f.Partition(0, om.HostLibraries); !ok || !f.Header.NeedsHost || p.HostOS != "linux" || p.HostCPU != "aarch64" {
		t.Errorf("header %+v, provenance %+v", f.Header, p)
	}
}

// A model of fixed inputs whose shapes depend on data is dynamic as well.
func TestDataMakesDynamic(t *testing.T) {
	f := open(t, `<ir_version: 8, opset_import: ["": 17]> (float[4] x) => (int64[1,M] y) { [where] y = NonZero (x) }`).must()
	signature, err := f.Signature()
	if err != nil {
		t.Fatal(err)
	}
	if !f.Header.Dynamic || signature.Inputs[0].Bytes != 16 || signature.Outputs[0].Bytes != 0 || !strings.HasPrefix(signature.Outputs[0].Name, "PartitionedCall_where_NonZero_") {
		t.Errorf("header %+v, signature %+v", f.Header, signature)
	}
}
