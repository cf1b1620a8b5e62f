package cannemu_test

import (
	"bufio"
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/npuctl/npuctl/internal/cannemu"
	"github.com/npuctl/npuctl/internal/cannemu/cannemutest"
	"github.com/npuctl/npuctl/internal/cannemu/omwriter"
	"github.com/npuctl/npuctl/soc"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) {
	code := cannemutest.Main(m)
	for _, b := range benches.made {
		os.RemoveAll(b.folder)
	}
	os.Exit(code)
}

// variant is a way to compile the libraries and the programs that use them.
type variant struct {
	name  string
	flags string   // of the compilers
	env   []string // of what runs
}

var (
	plain   = variant{name: "plain"}
	address = variant{"address", "-g -fsanitize=address,undefined -fno-sanitize-recover=undefined", nil}
	// ONNX Runtime is not compiled for the thread sanitizer, which cannot see its locks.
	threads = variant{"threads", "-g -fsanitize=thread", []string{"NPUCTL_EMULATOR_COMPUTE=interpreter"}}
)

// bench is a built emulator with compiled test programs and models.
type bench struct {
	variant
	emulator cannemutest.Emulator
	folder   string // of the programs, and of models
	problem  string // why there is none
}

// programs are the C files of lib/testdata, each a program of its own.
var programs = []string{"scenarios", "stress", "damage"}

// benches are kept for all tests: they take a while to compile.
var benches = struct {
	lock sync.Mutex
	made map[string]bench
}{made: map[string]bench{}}

// newBench compiles a variant on first use. Where there is no compiler, or it cannot do
// it, the test is skipped and says so.
func newBench(t *testing.T, v variant) bench {
	t.Helper()
	if testing.Short() && v.flags != "" {
		t.Skip("a library compiled with a sanitizer takes a while; not with -short")
	}
	emulator := cannemutest.Build(t)
	benches.lock.Lock()
	defer benches.lock.Unlock()
	b, found := benches.made[v.name]
	if !found {
		folder, err := os.MkdirTemp("", "npuctl-bench-")
		if err != nil {
			t.Fatal(err)
		}
		b = bench{variant: v, emulator: emulator, folder: folder}
		b.fill(t)
		benches.made[v.name] = b
	}
	if b.problem != "" {
		t.Skip(b.problem)
	}
	return b
}

func (b *bench) fill(t *testing.T) {
	t.Helper()
	for name, m := range testModels {
		data, err := os.ReadFile(b.emulator.Compile(t, m.source, m.arguments...))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(b.folder, name+".om"), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := settingsModel().Save(filepath.Join(b.folder, "aipp.om")); err != nil {
		t.Fatal(err)
	}
	if b.flags != "" {
		b.emulator = cannemutest.Emulator{Root: filepath.Join(b.folder, "emulator")}
		options := cannemu.Options{Version: "test", CC: "gcc " + b.flags, CXX: "g++ " + b.flags}
		if _, err := cannemu.Build(context.Background(), b.emulator.Root, options); err != nil {
			b.problem = fmt.Sprintf("no emulator compiled with %s: %v", b.flags, err)
			return
		}
	}
	for _, name := range programs {
		b.compile(t, name)
	}
}

// testModels double their input, in every way a model can have shapes.
var testModels = map[string]struct {
	source    string
	arguments []string
}{
	"static":  {double("4,6"), []string{"--input_shape=x:4,6"}},
	"batch":   {double("n,6"), []string{"--input_shape=x:-1,6", "--dynamic_batch_size=1,2,4"}},
	"hw":      {double("1,1,h,w"), []string{"--input_format=NCHW", "--input_shape=x:1,1,-1,-1", "--dynamic_image_size=2,4;4,8"}},
	"dims":    {double("a,b,3"), []string{"--input_format=ND", "--input_shape=x:-1,-1,3", "--dynamic_dims=1,4;2,5;4,8"}},
	"dynamic": {double("a,b"), []string{"--input_shape=x:-1,-1"}},
	"many":    {doubles(40), nil},
}

func double(shape string) string {
	return fmt.Sprintf(`<ir_version: 8, opset_import: ["": 13]> g (float[%s] x) => (float[%s] y) { [add] y = Add (x, x) }`, shape, shape)
}

// doubles doubles many inputs, floats and integers by turns.
func doubles(count int) string {
	var inputs, outputs, nodes []string
	for i := range count {
		element := []string{"float", "int32"}[i%2]
		inputs = append(inputs, fmt.Sprintf("%s[4] x%d", element, i))
		outputs = append(outputs, fmt.Sprintf("%s[4] y%d", element, i))
		nodes = append(nodes, fmt.Sprintf("y%d = Add (x%d, x%d)", i, i, i))
	}
	return fmt.Sprintf(`<ir_version: 8, opset_import: ["": 13]> g (%s) => (%s) { %s }`,
		strings.Join(inputs, ", "), strings.Join(outputs, ", "), strings.Join(nodes, "\n"))
}

// settingsModel is a file with an input for the settings of dynamic AIPP, which the
// emulator's atc does not make.
func settingsModel() *omwriter.File {
	image := omwriter.Port{Name: "x", Bytes: 48, DataType: 4, Dims: []int64{1, 3, 4, 4}, DimsV2: []int64{1, 3, 4, 4}}
	settings := omwriter.Port{Name: "ascend_dynamic_aipp_data", Bytes: 256, Format: 2, DataType: 4, Dims: []int64{256}, DimsV2: []int64{256}}
	y := omwriter.Port{Name: "n:0:y", Bytes: 48, DataType: 4, Dims: []int64{1, 3, 4, 4}, DimsV2: []int64{1, 3, 4, 4}}
	return &omwriter.File{Name: "aipp", Models: []omwriter.Model{omwriter.NewModel(omwriter.Parts{
		ModelDef: &omwriter.ModelDef{Name: "aipp"}, Signature: &omwriter.Signature{Inputs: []omwriter.Port{image, settings}, Outputs: []omwriter.Port{y}}})}}
}

func (b *bench) compile(t *testing.T, program string) {
	t.Helper()
	compiler := os.Getenv("CC")
	if compiler == "" || b.flags != "" {
		compiler = "gcc"
	}
	arguments := append(strings.Fields(compiler)[1:], strings.Fields(b.flags)...)
	library := filepath.Dir(b.emulator.Library())
	arguments = append(arguments, "-std=gnu11", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-pthread", "-I", "lib/include",
		"-o", filepath.Join(b.folder, program), filepath.Join("lib", "testdata", program+".c"),
		"-L", library, "-lascendcl", "-lacl_op_compiler", "-lacl_cblas", "-Wl,-rpath,"+library)
	if said, err := exec.Command(strings.Fields(compiler)[0], arguments...).CombinedOutput(); err != nil {
		t.Fatalf("compile %s: %v\n%s", program, err, said)
	}
}

// run gives what a program printed, and the lines of the emulator's report by their kind.
func (b bench) run(t *testing.T, env []string, program string, arguments ...string) (string, map[string][]reportLine) {
	t.Helper()
	report := filepath.Join(t.TempDir(), "report")
	command := exec.Command(filepath.Join(b.folder, program), arguments...)
	command.Env = append(append(append(os.Environ(), "NPUCTL_EMULATOR_REPORT="+report), b.env...), env...)
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(arguments, " "), err, said)
	}
	return string(said), readReport(t, report)
}

// reportLine is a line of the emulator's report.
type reportLine struct {
	Kind     string
	Function string
	Text     string
	What     string
	At       string
	Count    int
	Bytes    int
	Misuse   int
	Loads    int `json:"model_loads"`
	Runs     int `json:"model_executions"`
}

func readReport(t *testing.T, path string) map[string][]reportLine {
	t.Helper()
	lines := map[string][]reportLine{}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		var line reportLine
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			t.Fatalf("report line %q: %v", s.Text(), err)
		}
		lines[line.Kind] = append(lines[line.Kind], line)
	}
	return lines
}

// scenarioTests are the scenarios of lib/testdata/scenarios.c, with what the emulator
// must report of them: nothing, unless it is said here. lib/README.md tells which
// programs they play.
var scenarioTests = []struct {
	name   string
	env    []string
	misuse []string // parts of the texts, in order
	leaks  []string // what leaked
	end    string   // how the process ended; "aclFinalize" unless it is said
}{
	{name: "static_sync"},
	{name: "static_async_callbacks"},
	{name: "dynamic_batch"},
	{name: "dynamic_image"},
	{name: "dynamic_dims"},
	{name: "dynamic_aipp"},
	{name: "dynamic_shape"},
	{name: "several_threads"},
	{name: "descriptions"},
	{name: "gears_by_argument"},
	{name: "many_inputs"},
	{name: "kinds_found_out"},
	{name: "provider", end: "exit"},
	{name: "single_operators"},
	{name: "gemm"},
	{name: "several_devices", env: []string{"NPUCTL_EMULATOR_DEVICES=3"}},
	{name: "architectures", env: []string{"NPUCTL_EMULATOR_SOC=Ascend910B3"}},
	{name: "core_limits"},
	{name: "stream_limit"},
	{name: "stream_ends"},
	{name: "event_outlives_context"},
	{name: "event_chain"},
	{name: "messages_of_process"},
	{name: "last_error"},
	{name: "half_precision", end: "never began"},
	{name: "host_dereference"},
	{name: "wrong_pointers", misuse: []string{
		"512 bytes from byte 0 of an allocation of 256", "64 bytes from byte 224 of an allocation of 256", "is not device memory",
		"is device memory where host memory belongs", "is not allocated, or has been freed", "is not allocated, or has been freed",
		"is not the start of what was allocated", "is not device memory"}},
	{name: "freed_too_early", misuse: []string{"is freed while 1 tasks or models use it"}},
	{name: "two_streams_one_model", env: []string{"NPUCTL_EMULATOR_STRICT=1"}, misuse: []string{"model 1 is executed while another stream or thread executes it"}},
	{name: "leaks", leaks: []string{"dataset", "event", "model", "pinned host memory", "device memory"}},
	{name: "never_finalized", leaks: []string{"device memory"}, end: "exit"},
	{name: "out_of_memory", env: []string{"NPUCTL_EMULATOR_FAULT=oom@3x1"}},
	{name: "operator_exception", env: []string{"NPUCTL_EMULATOR_FAULT=exception@2x1"}},
	{name: "failure_stops_stream", env: []string{"NPUCTL_EMULATOR_FAULT=exception@2x1"}},
	{name: "device_lost", env: []string{"NPUCTL_EMULATOR_FAULT=crash,device-lost@20"}},
	{name: "slow_stream", env: []string{"NPUCTL_EMULATOR_FAULT=slow-stream=50"}},
}

func TestLibraryScenarios(t *testing.T) {
	for _, v := range []variant{plain, address, threads} {
		t.Run(v.name, func(t *testing.T) {
			b := newBench(t, v)
			for _, test := range scenarioTests {
				t.Run(test.name, func(t *testing.T) {
					env := test.env
					if len(test.leaks) > 0 {
						env = append(slices.Clone(env), "ASAN_OPTIONS=detect_leaks=0") // it leaks on purpose
					}
					said, report := b.run(t, env, "scenarios", test.name, b.folder)
					if !strings.Contains(said, "reached the end") {
						t.Errorf("it printed %q", said)
					}
					checkTexts(t, "misuse", test.misuse, report["misuse"], func(l reportLine) string { return l.Text })
					checkTexts(t, "leaks", test.leaks, report["leak"], func(l reportLine) string { return l.What })
					end := test.end
					if end == "" {
						end = "aclFinalize"
					}
					switch ends := report["end"]; {
					case end == "never began" && len(ends) == 0:
					case len(ends) != 1:
						t.Errorf("%d reports of the end", len(ends))
					case ends[0].At != end || ends[0].Misuse != len(test.misuse):
						t.Errorf("the report of the end: %+v", ends[0])
					}
				})
			}
		})
	}
}

func checkTexts(t *testing.T, what string, want []string, lines []reportLine, text func(reportLine) string) {
	t.Helper()
	if len(want) != len(lines) {
		t.Errorf("%d reports of %s, not %d: %+v", len(lines), what, len(want), lines)
		return
	}
	for i, line := range lines {
		if !strings.Contains(text(line), want[i]) {
			t.Errorf("%s %d: %q, not %q", what, i, text(line), want[i])
		}
	}
}

// Eight threads with eight streams each: no result is lost or another's.
func TestLibraryStress(t *testing.T) {
	for _, v := range []variant{plain, address, threads} {
		t.Run(v.name, func(t *testing.T) {
			b := newBench(t, v)
			seconds := os.Getenv("NPUCTL_STRESS_SECONDS")
			if seconds == "" {
				seconds = "2"
			}
			said, report := b.run(t, []string{"NPUCTL_EMULATOR_STRICT=1"}, "stress", b.folder, seconds, "8", "8")
			if len(report["misuse"])+len(report["leak"]) > 0 || len(report["end"]) != 1 {
				t.Fatalf("report %+v", report)
			}
			end := report["end"][0]
			if want := fmt.Sprintf("%d runs\n", end.Runs); said != want || end.Loads != 64 {
				t.Errorf("it counted %q and the library %q, with %d models", said, want, end.Loads)
			}
			t.Log(strings.TrimSpace(said))
		})
	}
}

// Damaged files are refused, or read as far as they go.
func TestLibraryReadsDamagedFiles(t *testing.T) {
	b := newBench(t, address)
	files, err := filepath.Glob(filepath.Join(b.folder, "*.om"))
	if err != nil || len(files) != len(testModels)+1 {
		t.Fatal(files, err)
	}
	b.run(t, nil, "damage", append([]string{"3", "1"}, files...)...)
}

// The C library and package soc tell the same of every chip.
func TestLibraryKnowsChips(t *testing.T) {
	b := newBench(t, plain)
	var names []string
	for _, chip := range soc.Chips() {
		names = append(names, chip.Name)
	}
	for _, chip := range soc.Chips() {
		// Of these the source says too little.
		if chip.AICores == 0 || chip.Development || chip.Family == soc.Family031 || chip.Family == soc.Family035 {
			continue
		}
		said, _ := b.run(t, []string{"NPUCTL_EMULATOR_SOC=" + chip.Name, "NPUCTL_TEST_CHIPS=" + strings.Join(names, ",")}, "scenarios", "chip", b.folder)
		want := []string{chip.Name, fmt.Sprintf("cores=%d", chip.AICores), fmt.Sprintf("vector=%d", chip.VectorCores), fmt.Sprintf("cpus=%d", chip.AICPUs),
			fmt.Sprintf("l2=%d", chip.L2Bytes)}
		if chip.MemoryBytes > 0 {
			want = append(want, fmt.Sprintf("memory=%d", chip.MemoryBytes))
		}
		if family := chip.Shared(); family.Streams > 0 {
			want = append(want, fmt.Sprintf("streams=%d", family.Streams), "kind="+string(family.Memory))
		}
		got := strings.Fields(said)
		for _, other := range soc.Chips() {
			if runs := slices.Contains(got, "runs="+other.Name); other.Arch != "" && runs != (other.Arch == chip.Arch) {
				t.Errorf("%s: that it runs code for %s is %v", chip.Name, other.Name, runs)
			}
		}
		for _, fact := range want {
			if !slices.Contains(got, fact) {
				t.Errorf("%s: %q is not among %q", chip.Name, fact, got)
			}
		}
	}
}

// A card runs code for its own architecture. An emulated device whose chip nobody chose
// takes a model for any chip, and beside it those that the same chips run. Package soc
// says what is of one architecture.
func TestLibraryRefusesOtherChips(t *testing.T) {
	b := newBench(t, plain)
	architecture := func(name string) string {
		chip, err := soc.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		return chip.Arch
	}
	const refused = 507008
	for _, test := range []struct{ device, first, second string }{
		{"", "Ascend310P3", "Ascend310P1"},
		{"", "Ascend310P3", "Ascend910B3"},
		{"", "Ascend910B4", "Ascend910_9391"},
		{"", "Ascend910B", "Ascend910B1"}, // a chip of the first generation, for all its name
		{"Ascend910B3", "Ascend910B1", "Ascend310P3"},
		{"Ascend310P3", "Ascend910B3", "Ascend310P1"},
		{"Ascend310B4", "Ascend310P3", "Ascend310B1"},
		{"Ascend910A", "Ascend910ProB", "Ascend910B3"},
	} {
		t.Run(fmt.Sprintf("%s and %s on %q", test.first, test.second, test.device), func(t *testing.T) {
			chips := [2]string{test.first, test.second}
			folder := t.TempDir()
			for i, name := range []string{"first.om", "second.om"} {
				path := cannemutest.Build(t).Compile(t, double("2"), "--soc_version="+chips[i])
				if err := os.Rename(path, filepath.Join(folder, name)); err != nil {
					t.Fatal(err)
				}
			}
			runs := func(device, model string) int {
				if device == "" || architecture(device) == architecture(model) {
					return 0
				}
				return refused
			}
			first, second := runs(test.device, test.first), runs(test.device, test.second)
			if test.device == "" {
				second = runs(test.first, test.second)
			}
			said, report := b.run(t, []string{"NPUCTL_EMULATOR_SOC=" + test.device}, "scenarios", "chips_of_models", folder)
			if want := fmt.Sprintf("first=%d second=%d\n", first, second); !strings.HasPrefix(said, want) {
				t.Errorf("it said %q, not %q", said, want)
			}
			if len(report["leak"])+len(report["misuse"]) > 0 {
				t.Errorf("report %+v", report)
			}
		})
	}
}

// What the libraries offer is what programs link: a name that goes away is a program
// that does not start any more.
func TestLibraryExports(t *testing.T) {
	folder := filepath.Dir(cannemutest.Build(t).Library())
	files, err := filepath.Glob(filepath.Join(folder, "*.so"))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, path := range files {
		file, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		symbols, err := file.DynamicSymbols()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range symbols {
			isOurs := strings.HasPrefix(s.Name, "acl") || strings.HasPrefix(s.Name, "_ZN2ge") || strings.HasPrefix(s.Name, "_ZNK2ge") || elf.ST_TYPE(s.Info) != elf.STT_FUNC
			switch {
			case s.Section == elf.SHN_UNDEF || elf.ST_BIND(s.Info) == elf.STB_WEAK:
			case isOurs || strings.HasPrefix(s.Name, "npuctl_"):
				names = append(names, s.Name)
			default:
				t.Errorf("%s lets out %s", filepath.Base(path), s.Name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			fmt.Fprintf(&got, "%s %s\n", filepath.Base(path), name)
		}
	}
	const golden = "testdata/exports.txt"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the exported names differ from %s; go test -update rewrites it\ngot:\n%s", golden, got.String())
	}
}

// The libraries are for arm64 as well.
func TestLibraryCrossCompiles(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short")
	}
	const compiler = "aarch64-linux-gnu-gcc"
	for _, name := range []string{compiler, "aarch64-linux-gnu-g++"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("there is no %s", name)
		}
	}
	dir := filepath.Join(t.TempDir(), "emulator")
	if _, err := cannemu.Build(context.Background(), dir, cannemu.Options{Version: "test", CC: compiler}); err != nil {
		t.Fatal(err)
	}
	file, err := elf.Open(filepath.Join(dir, "lib64", "libascendcl.so"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if file.Machine != elf.EM_AARCH64 {
		t.Errorf("it is for %v", file.Machine)
	}
}
