package atcemu_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/internal/cannemu/atcemu"
	"github.com/npuctl/npuctl/om"
)

// files lists what is below a folder.
func files(t *testing.T, root string) (list []string) {
	t.Helper()
	err := filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			path, err = filepath.Rel(root, path)
			list = append(list, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func readText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestSideProducts(t *testing.T) {
	const shape = "--input_shape=x:4,2"
	for _, test := range []struct {
		name string
		args []string
		env  map[string]string
		want []string // besides model.onnx, out/m.om and the log
	}{
		{"nothing special", []string{shape}, nil, []string{"fusion_result.json"}},
		{"no statistics", []string{shape, "--export_compile_stat=0"}, nil, nil},
		{"a folder for work", []string{shape}, map[string]string{"ASCEND_WORK_PATH": "work"}, []string{"work/fusion_result.json"}},
		{"the original model", []string{shape, "--save_original_model=true"}, nil, []string{"fusion_result.json", "out/m_original.om"}},
		{"weights in files of their own", []string{shape, "--external_weight=1"}, nil, []string{"fusion_result.json", "out/weight/weight_*"}},
		{"weights in one file", []string{shape, "--external_weight=2"}, nil, []string{"fusion_result.json", "out/m_weight_combined"}},
		{"a cache", []string{shape, "--op_compiler_cache_mode=enable", "--op_compiler_cache_dir=cache"}, nil,
			[]string{"cache/kernel_cache/Ascend910B3/te_batchmatmulv2_emulated__kernel0.json", "cache/kernel_cache/Ascend910B3/te_batchmatmulv2_emulated__kernel0.o",
				"cache/kernel_cache/Ascend910B3/te_relu_emulated__kernel0.json", "cache/kernel_cache/Ascend910B3/te_relu_emulated__kernel0.o", "fusion_result.json"}},
		{"a cache that the environment names", []string{shape, "--op_compiler_cache_mode=force", "--export_compile_stat=0"}, map[string]string{"ASCEND_CACHE_PATH": "elsewhere"},
			[]string{"elsewhere/kernel_cache/Ascend910B3/te_batchmatmulv2_emulated__kernel0.json", "elsewhere/kernel_cache/Ascend910B3/te_batchmatmulv2_emulated__kernel0.o",
				"elsewhere/kernel_cache/Ascend910B3/te_relu_emulated__kernel0.json", "elsewhere/kernel_cache/Ascend910B3/te_relu_emulated__kernel0.o"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t, small)
			for name, value := range test.env {
				s.env[name] = value
			}
			s.must(test.args...)
			got := slices.DeleteFunc(files(t, "."), func(f string) bool {
				return f == "model.onnx" || f == "out/m.om" || strings.Contains(f, "plog")
			})
			if !slices.EqualFunc(got, test.want, func(f, pattern string) bool {
				match, _ := filepath.Match(pattern, f)
				return match
			}) {
				t.Errorf("left %q, want %q", got, test.want)
			}
		})
	}
}

// Weights outside are no longer inside.
func TestExternalWeights(t *testing.T) {
	s := open(t, small)
	f := s.must("--input_shape=x:4,2", "--external_weight=1")
	needs, err := f.Needs()
	if p, _ := f.Partition(0, om.WeightsData); err != nil || needs.WeightBytes != 0 || p.Bytes != 0 {
		t.Errorf("needs %+v, partition %+v, %v", needs, p, err)
	}
	matches, err := filepath.Glob("out/weight/weight_*")
	if err != nil || len(matches) != 1 {
		t.Fatalf("weights %q, %v", matches, err)
	}
	if info, err := os.Stat(matches[0]); err != nil || info.Size() != 24 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestProcessLogs(t *testing.T) {
	for _, test := range []struct {
		name, variable, below string
	}{
		{"a folder for logs", "ASCEND_PROCESS_LOG_PATH", ""},
		{"a folder for work", "ASCEND_WORK_PATH", "log"},
		{"at home", "HOME", "ascend/log"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t, small)
			s.env = map[string]string{test.variable: filepath.Join(s.dir, "place")}
			if code, _, _ := s.compile(); code != 255 {
				t.Fatal("it succeeds")
			}
			root := filepath.Join(s.dir, "place", test.below)
			path := filepath.Join(root, "debug/plog/plog-42_20261130120000123.log")
			line, ok := atc.ParseLogLine(strings.TrimSuffix(readText(t, path), "\n"))
			if !ok || line.Level != "ERROR" || line.Module != "GE" || !strings.Contains(line.Text, "--input_shape") {
				t.Errorf("line %+v, %v", line, ok)
			}
			if lines := atc.ReadProcessLogs(root); len(lines) != 1 {
				t.Errorf("our reader finds %+v", lines)
			}
		})
	}
	s := open(t, small)
	s.env["ASCEND_SLOG_PRINT_TO_STDOUT"] = "1"
	if _, stdout, _ := s.compile(); !strings.Contains(stdout, "\n[ERROR] GE(42,atc.bin):2026-11-30-12:00:00.123.456 [") {
		t.Errorf("the log is not on the screen:\n%s", stdout)
	}
}

const unknownOperators = `<ir_version: 8, opset_import: ["": 17]>
net (float[4] x) => (float[4] y) { [a] p = Bad (x) [b] q = Relu (p) [c] y = Worse (q) }`

// One run tells of every operator that cannot be parsed, on the screen and in the report.
func TestCheckReport(t *testing.T) {
	s := open(t, unknownOperators)
	code, stdout, _ := s.compile()
	if code != 255 || strings.Count(stdout, "No operator plugin is registered for Op: ") != 2 {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
	want := map[string]any{"total": 4.0, "pass": 2.0, "fail": 2.0, "result": "failed", "name": "net", "op": []any{
		map[string]any{"name": "x", "type": "ai.onnx::Data", "result": "success"},
		map[string]any{"name": "a", "type": "ai.onnx::17::Bad", "result": "failed", "cause": []any{map[string]any{"code": 1.0, "message": "The type is not supported."}}},
		map[string]any{"name": "b", "type": "ai.onnx::17::Relu", "result": "success"},
		map[string]any{"name": "c", "type": "ai.onnx::17::Worse", "result": "failed", "cause": []any{map[string]any{"code": 1.0, "message": "The type is not supported."}}},
	}}
	var got map[string]any
	if err := json.Unmarshal([]byte(readText(t, "check_result.json")), &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestModes(t *testing.T) {
	s := open(t, small)
	ctx := context.Background()
	run := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := s.run(ctx, args...)
		if code != 0 {
			t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
		}
		return stdout
	}
	run("--mode=3", "--framework=5", "--model=model.onnx", "--output=out/m", "--soc_version=Ascend910B3", "--input_shape=x:4,2", "--check_report=report.json")
	if text := readText(t, "report.json"); !strings.Contains(text, `"result": "success"`) {
		t.Errorf("report %s", text)
	}
	s.must("--input_shape=x:4,2", "--enable_attr_compression=true")
	info := run("--mode=6", "--om=out/m.om")
	for _, line := range []string{
		"============ Display Model Info start ============\n",
		"Original Atc command line: atc.bin --framework=5 --model=model.onnx --output=out/m --soc_version=Ascend910B3 --input_shape=x:4,2 --enable_attr_compression=true\n",
		"system   info: atc_version[npuctl-emulator v1], soc_version[Ascend910B3], framework_type[Onnx].\n",
		"resource info: memory_size[1024 B], weight_size[32 B], stream_num[1], event_num[0].\n",
		"cust_aicpu_kernel_store_size[0 B]",
	} {
		if !strings.Contains(info, line) {
			t.Errorf("mode 6 does not print %q:\n%s", line, info)
		}
	}
	_, shown, _ := s.compile("--input_shape=x:4,2", "--display_model_info=1")
	if !strings.Contains(shown, "resource info: memory_size[1024 B]") {
		t.Errorf("--display_model_info=1 prints\n%s", shown)
	}
	run("--mode=1", "--om=out/m.om", "--json=m.json")
	var graph struct {
		Graph []struct {
			Op []struct {
				Name, Type string
				Attr       map[string]any
			}
		}
	}
	if err := json.Unmarshal([]byte(readText(t, "m.json")), &graph); err != nil {
		t.Fatal(err)
	}
	if op := graph.Graph[0].Op[1]; op.Name != "product" || op.Attr["_ge_attr_op_kernel_lib_name"] != "AIcoreEngine" {
		t.Errorf("operator %+v", op)
	}
	run("--mode=1", "--framework=5", "--om=model.onnx", "--json=onnx.json")
	if text := readText(t, "onnx.json"); !strings.Contains(text, `"op_type": "MatMul"`) {
		t.Errorf("the model as JSON: %s", text)
	}
	if err := os.WriteFile("graph.txt", []byte("name: \"net\" # a comment\nop { name: \"a\" input: \"x:0\" input: 'y' }\nop { n: -1.5 }"), 0o644); err != nil {
		t.Fatal(err)
	}
	run("--mode=5", "--om=graph.txt", "--json=text.json")
	var value any
	if err := json.Unmarshal([]byte(readText(t, "text.json")), &value); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"name": "net", "op": []any{map[string]any{"name": "a", "input": []any{"x:0", "'y'"}}, map[string]any{"n": "-1.5"}}}
	if d := cmp.Diff(want, value); d != "" {
		t.Error(d)
	}
	run("--mode=7", "--framework=5", "--model=model.onnx", "--output=out/m", "--soc_version=Ascend910B3", "--input_shape=x:4,2")
	f := s.read("out/m.om2")
	summary, err := f.Summary()
	if err != nil || f.Package.Version != "0" || f.Package.Models != 1 || summary.SoC != "Ascend910B3" || !summary.Emulated || len(summary.Remarks) > 0 {
		t.Errorf("package %+v, %+v, %v", f.Package, summary, err)
	}
	if in, out := summary.Inputs[0], summary.Outputs[0]; in.TypeText() != "FLOAT[4,2]" || in.Name != "x" || out.Tensor != "y" || out.DType != "float32" {
		t.Errorf("package: inputs %+v, outputs %+v", summary.Inputs, summary.Outputs)
	}
	if stdout := run("--help"); !strings.Contains(stdout, "--dynamic_batch_size\n") || strings.Contains(stdout, "success") {
		t.Errorf("--help prints\n%s", stdout)
	}
}

// Faults come when they are asked for, in the shape in which they were asked for.
func TestFaults(t *testing.T) {
	const shape = "--input_shape=x:4,2"
	leaves := func(s *shop) []string { return files(t, filepath.Join(s.dir, "out")) }

	s := open(t, small)
	s.must(shape)
	whole := readText(t, "out/m.om")

	s.env[atcemu.FaultVariable] = "oom@3, disk-full"
	code, stdout, _ := s.compile(shape)
	if log := atc.ReadLog(stdout); code != 255 || log.Leading() != "E13004" || !strings.Contains(stdout, "no space left") {
		t.Errorf("a full disk: exit code %d\n%s", code, stdout)
	}
	if readText(t, "out/m.om") != whole || len(leaves(s)) != 1 {
		t.Errorf("a full disk costs what was there: %q", leaves(s))
	}

	s.env[atcemu.FaultVariable] = "garbage"
	code, stdout, _ = s.compile(shape)
	if half := readText(t, "out/m.om"); code != 0 || strings.Contains(stdout, "success") || len(half) != len(whole)/2 {
		t.Errorf("garbage: exit code %d, %d bytes\n%q", code, len(half), stdout)
	}

	s.env[atcemu.FaultVariable] = "crash"
	if s.compile(shape); !s.died {
		t.Error("no crash")
	}

	s.env[atcemu.FaultVariable] = "hang"
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	code, stdout, _ = s.run(ctx, "--framework=5", "--model=model.onnx", "--output=out/n", "--soc_version=Ascend910B3", shape)
	if code != 130 || strings.Contains(stdout, "ATC run") {
		t.Errorf("hang: exit code %d\n%s", code, stdout)
	}

	s.env[atcemu.FaultVariable] = "slow=0.05"
	start := time.Now()
	if s.must(shape); time.Since(start) < 50*time.Millisecond {
		t.Error("it is not slow")
	}
}

// Nodes that leave the AI Core are told one by one.
func TestAICPUIsTold(t *testing.T) {
	s := open(t, `<ir_version: 8, opset_import: ["": 17]> (int64[4] x, int64[4] m) => (int64[4] y) { [rest] y = Mod (x, m) }`)
	code, stdout, _ := s.compile()
	if code != 0 || !bytes.Contains([]byte(stdout), []byte("(W11001): Op rest does not hit the high-priority operator information library")) {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
}
