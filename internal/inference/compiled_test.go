package inference

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/internal/ascendcl"
	"github.com/npuctl/npuctl/internal/cannemu/cannemutest"
	"github.com/npuctl/npuctl/internal/engine"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/text"
	"github.com/npuctl/npuctl/onnxpass"
)

func TestMain(m *testing.M) { os.Exit(cannemutest.Main(m)) }

// emulatedJob is a job for an .om of the emulator, on a machine that has no CANN.
func emulatedJob(t *testing.T, src string, arguments ...string) Job {
	t.Helper()
	emulator := cannemutest.Build(t)
	for _, name := range []string{"ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "LD_LIBRARY_PATH"} {
		t.Setenv(name, "")
	}
	return Job{
		Model: emulator.Compile(t, src, arguments...), Format: "npy", Seed: 1,
		Emulator: func(context.Context) (string, error) { return emulator.Root, nil },
	}
}

// runEmulated runs a job, where this build can.
func runEmulated(t *testing.T, j Job) (*Result, error) {
	t.Helper()
	r, err := j.Run(context.Background())
	if err != nil && strings.Contains(err.Error(), "without cgo") {
		t.Skip(err)
	}
	return r, err
}

const table = header + `(float[batch,3] x, int64[2] i) => (float[2,3] y) <float[4,3] rows = {1,2,3,4,5,6,7,8,9,10,11,12}> {
	y0 = Gather (rows, i)  s = ReduceMean <axes = [0], keepdims = 1> (x)  y = Add (y0, s) }`

// The inputs that one model ran on are saved, and another runs on the same: random
// numbers are none, as the .om does not say how large the table is that i leads into.
func TestSavedInputsAreTheSame(t *testing.T) {
	om := emulatedJob(t, table, "--input_shape=x:2,3;i:2")
	graph := jobOf(t, table)
	folder := t.TempDir()
	graph.Seed, graph.Sizes = 7, onnxpass.Specialization{Batch: 2}
	graph.SaveInputs, graph.Output = filepath.Join(folder, "inputs"), filepath.Join(folder, "expected")
	r, err := graph.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if r.Emulated || r.Inputs[1].File != filepath.Join(folder, "inputs", "i.npy") {
		t.Errorf("%+v", r)
	}
	om.Inputs, om.Expect = []string{graph.SaveInputs}, graph.Output
	r, err = runEmulated(t, om)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Emulated || !*r.Equal || r.Random || !strings.Contains(strings.Join(r.Notes, "\n"), "compiled by npuctl's emulator, so that it runs on it") {
		t.Errorf("%+v", r)
	}
	graph.SaveInputs = graph.Output + "/"
	if _, err := graph.Run(context.Background()); fault.FamilyOf(err) != fault.Usage {
		t.Errorf("inputs over outputs: %v", err)
	}
}

// Numbered files, as ONNX's test data.
func TestSavedInputsAreNumbered(t *testing.T) {
	j := jobOf(t, header+`(float[2] x) => (y) { y = Abs (x) }`)
	j.SaveInputs, j.Format = t.TempDir(), "pb"
	if _, err := j.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	j.Inputs = []string{filepath.Join(j.SaveInputs, "input_0.pb")}
	j.SaveInputs = ""
	if _, err := j.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestGears(t *testing.T) {
	for _, test := range []struct {
		name      string
		sizes     onnxpass.Specialization
		record    string // the build record beside the .om
		gear, err string
	}{
		{name: "the largest", gear: "batch 4"},
		{name: "by --batch", sizes: onnxpass.Specialization{Batch: 2}, gear: "batch 2"},
		{name: "by --dim", sizes: onnxpass.Specialization{Dims: map[string]int64{"batch": 1}}, gear: "batch 1"},
		{name: "by --dim of the model's name", sizes: onnxpass.Specialization{Dims: map[string]int64{"N": 2}}, gear: "batch 2",
			record: `{"gears": {"axes": [{"name": "N", "places": [{"input": "x", "dim": 0}]}]}}`},
		{name: "by --input-shape", sizes: onnxpass.Specialization{Shapes: map[string][]int64{"x": {2, 3}}}, gear: "batch 2"},
		{name: "none fits --batch", sizes: onnxpass.Specialization{Batch: 3}, err: "no gear for x FLOAT[3,3]: it has gears batch 1, 2, 4"},
		{name: "none fits --input-shape", sizes: onnxpass.Specialization{Shapes: map[string][]int64{"x": {3, 3}}}, err: "it has gears batch 1, 2, 4"},
		{name: "another dim is fixed", sizes: onnxpass.Specialization{Shapes: map[string][]int64{"x": {2, 5}}}, err: "it has gears batch 1, 2, 4"},
		{name: "no such dim", sizes: onnxpass.Specialization{Dims: map[string]int64{"bach": 1}}, err: `did you mean "batch"?`},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := emulatedJob(t, header+`(float[N,3] x) => (y) { y = Abs (x) }`, "--input_shape=x:-1,3", "--dynamic_batch_size=1,2,4")
			if test.record != "" {
				if err := os.WriteFile(j.Model+".json", []byte(test.record), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			j.Sizes = test.sizes
			r, err := runEmulated(t, j)
			switch {
			case test.err != "":
				if fault.FamilyOf(err) != fault.Usage || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want %q", err, test.err)
				}
			case err != nil:
				t.Error(err)
			case r.Gear != test.gear || r.Gears != "batch 1, 2, 4":
				t.Errorf("gear %q of %q, want %q", r.Gear, r.Gears, test.gear)
			}
		})
	}
}

// A model for another chip: a note where it runs all the same, the reason where it does not.
func TestAnotherChip(t *testing.T) {
	const want = "compiled for Ascend310P3; the device is Ascend910B3"
	j := emulatedJob(t, header+`(float[2] x) => (y) { y = Abs (x) }`, "--soc_version=Ascend310P3")
	r, err := runEmulated(t, j)
	if err != nil || !strings.Contains(strings.Join(r.Notes, "\n"), want) {
		t.Errorf("%+v, %v", r, err)
	}
	t.Setenv("NPUCTL_EMULATOR_SOC", "Ascend910B3") // then the emulator insists
	if _, err = j.Run(context.Background()); fault.FamilyOf(err) != fault.Input || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "load "+j.Model) != 1 {
		t.Errorf("error %v", err)
	}
}

// Without CANN, what CANN compiled cannot run: the first thing said is what to do.
func TestNoCANN(t *testing.T) {
	j := emulatedJob(t, header+`(float[2] x) => (y) { y = Abs (x) }`)
	s, err := j.open()
	if err != nil {
		t.Fatal(err)
	}
	s.file.Emulated = false
	_, err = j.openEngine(context.Background(), s, &Result{})
	if fault.FamilyOf(err) != fault.Missing || !strings.HasPrefix(err.Error(), "install CANN to run ") || !strings.Contains(err.Error(), "compiled for Ascend910B3") {
		t.Errorf("error %v", err)
	}
}

// A device that is not there and one that is lost are told as what they are, with their
// exit codes, and never as a CANN that is missing.
func TestNoDevice(t *testing.T) {
	j := emulatedJob(t, header+`(float[2] x) => (y) { y = Abs (x) }`)
	s, err := j.open()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		code   int
		family fault.Family
		want   string
	}{
		"there is none":       {107001, fault.Missing, "open device 3: aclrtSetDevice failed with 107001, there is no such device; `npu-smi info` and `npuctl doctor` list the devices; --device chooses another"},
		"no permission":       {207006, fault.Missing, "no permission; `npu-smi info` and"},
		"lost":                {507010, fault.Program, "the device gives no sign of life; look at the device with `npu-smi info` and at its logs; --device chooses another"},
		"could not be opened": {507033, fault.Program, "the device could not be opened; look at the device with"},
	} {
		failed := fmt.Errorf("open device 3: %w", &ascendcl.Error{Call: "aclrtSetDevice", Code: test.code})
		// As the engine gives it, whatever family it thinks right.
		err := j.notOpened(s, engine.Options{}, fault.New(fault.Missing, "%w", failed).With("install something"))
		if fault.FamilyOf(err) != test.family || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "install") {
			t.Errorf("%s: %v error %v", name, fault.FamilyOf(err), err)
		}
	}
	// A library that was found and cannot be used is no missing one.
	broken := errors.New("open libascendcl.so: file too short")
	if err := j.notOpened(s, engine.Options{AscendLibrary: "/emulator/lib64"}, broken); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	// The emulator has one device.
	j.EngineOptions.Device = 7
	if _, err := runEmulated(t, j); fault.FamilyOf(err) != fault.Missing || !strings.Contains(err.Error(), "`npuctl doctor` list the devices") {
		t.Errorf("%v error %v", fault.FamilyOf(err), err)
	}
}

// Inputs that the user gives and that suit no gear are the user's mistake.
func TestInputsOfNoGear(t *testing.T) {
	j := emulatedJob(t, header+`(float[N,3] x) => (y) { y = Abs (x) }`, "--input_shape=x:-1,3", "--dynamic_batch_size=1,2,4")
	graph := jobOf(t, header+`(float[3,3] x) => (y) { y = Abs (x) }`)
	graph.SaveInputs = t.TempDir()
	if _, err := graph.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	j.Inputs = []string{graph.SaveInputs}
	if _, err := runEmulated(t, j); fault.FamilyOf(err) != fault.Usage || !strings.Contains(err.Error(), "has no gear for inputs of [[3 3]]: it has gears batch 1, 2, 4; pad the inputs to a gear") {
		t.Errorf("%v error %v", fault.FamilyOf(err), err)
	}
}

// Inputs that give nothing finite are no use: others are tried, and if none does
// better that is said.
func TestHollowInputs(t *testing.T) {
	for _, test := range []struct{ name, src, values, note string }{
		{"the second sort", `(float[64] x) => (y) <float one = {1}> { s = ReduceMin <keepdims = 0> (x)  y = Sqrt (s) }`, "random in 0..1", ""},
		{"none", `(float[2] x) => (y) <float less = {-1000}> { s = Add (x, less)  y = Log (s) }`, "random", "the random inputs do not suit this model"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "model.onnx")
			if err := text.MustParse(t, header+test.src).Save(path, onnx.SaveOptions{}); err != nil {
				t.Fatal(err)
			}
			r, err := Job{Model: path, Format: "npy", Seed: 1}.Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(r.Notes, "\n"); r.Values != test.values || (got == "") != (test.note == "") || !strings.Contains(got, test.note) {
				t.Errorf("values %q, notes %q", r.Values, got)
			}
		})
	}
}
