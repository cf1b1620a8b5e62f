package ascendcl_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/internal/ascendcl"
	"github.com/npuctl/npuctl/internal/cannemu/cannemutest"
	"github.com/npuctl/npuctl/onnx/tensor"
)

func TestMain(m *testing.M) { os.Exit(cannemutest.Main(m)) }

// open starts AscendCL on the emulator.
func open(t *testing.T, library string) *ascendcl.Runtime {
	t.Helper()
	runtime, err := ascendcl.Open([]string{library})
	if err != nil && strings.Contains(err.Error(), "cgo") {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return runtime
}

const twoOutputs = `<ir_version: 8, opset_import: ["": 13]> g (float[n] x) => (float[n] y, float[n] z) { y = Add (x, x)  z = Mul (x, x) }`

// Whatever is closed first: what is still open keeps working, what is closed says so, and
// the last one ends AscendCL with nothing left behind.
func TestClosedInAnyOrder(t *testing.T) {
	emulator := cannemutest.Build(t)
	path := emulator.Compile(t, twoOutputs, "--input_shape=x:3")
	for _, order := range []string{"model device runtime", "runtime device model", "device runtime model", "runtime model device"} {
		t.Run(order, func(t *testing.T) {
			report := filepath.Join(t.TempDir(), "report")
			t.Setenv("NPUCTL_EMULATOR_REPORT", report)
			runtime := open(t, emulator.Library())
			device, err := runtime.Device(0)
			if err != nil {
				t.Fatal(err)
			}
			model, err := device.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			run := func() error {
				outputs, err := model.Run(context.Background(), []*tensor.Dense{tensor.Of([]float32{1, 2, 3}, 3)}, ascendcl.Gear{})
				if err == nil && tensor.Data[float32](outputs[0])[2] != 6 {
					t.Errorf("outputs %v", outputs)
				}
				return err
			}
			things := map[string]struct {
				close func() error
				use   func() error
			}{
				"model":   {model.Close, run},
				"device":  {device.Close, func() error { _, err := device.Load(path); return err }},
				"runtime": {runtime.Close, func() error { _, err := runtime.Devices(); return err }},
			}
			words := strings.Fields(order)
			for i, name := range words {
				for range 2 { // a second time does nothing
					if err := things[name].close(); err != nil {
						t.Fatal(err)
					}
				}
				for _, closed := range words[:i+1] {
					if err := things[closed].use(); !errors.Is(err, ascendcl.ErrClosed) {
						t.Errorf("%s is closed, and using it gives %v", closed, err)
					}
				}
				if slices.Contains(words[i+1:], "model") && run() != nil {
					t.Errorf("with %s closed, the model does not run", name)
				}
			}
			if !runtime.Emulated() || runtime.Version() == "" || device.Chip() != "Ascend910B3" {
				t.Errorf("what was found out is forgotten: %v, %q, %q", runtime.Emulated(), runtime.Version(), device.Chip())
			}
			cannemutest.CheckReport(t, report)
		})
	}
}

// What the runtime made for outputs of open shape is given back when it breaks off before
// the last of them.
func TestBrokenOffRunLeavesNothing(t *testing.T) {
	emulator := cannemutest.Build(t)
	report := filepath.Join(t.TempDir(), "report")
	// The library reads its faults once, so this takes a process of its own. Mallocs: work
	// and weights, the input, the first output, the second.
	command := exec.Command(os.Args[0], "-test.run=^TestBrokenOffChild$", "-test.v")
	command.Env = append(os.Environ(), "NPUCTL_TEST_LIBRARY="+emulator.Library(), "NPUCTL_TEST_MODEL="+emulator.Compile(t, twoOutputs, "--input_shape=x:-1"),
		"NPUCTL_EMULATOR_FAULT=oom@5x1", "NPUCTL_EMULATOR_REPORT="+report)
	said, err := command.CombinedOutput()
	if strings.Contains(string(said), "SKIP: TestBrokenOffChild") {
		t.Skipf("%s", said)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	cannemutest.CheckReport(t, report)
}

// TestBrokenOffChild is what TestBrokenOffRunLeavesNothing runs.
func TestBrokenOffChild(t *testing.T) {
	path := os.Getenv("NPUCTL_TEST_MODEL")
	if path == "" {
		t.Skip("run by TestBrokenOffRunLeavesNothing alone")
	}
	runtime := open(t, os.Getenv("NPUCTL_TEST_LIBRARY"))
	defer runtime.Close()
	device, err := runtime.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	model, err := device.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	x := []*tensor.Dense{tensor.Of([]float32{1, 2, 3}, 3)}
	var failure *ascendcl.Error
	if _, err := model.Run(context.Background(), x, ascendcl.Gear{Kind: ascendcl.OpenShape}); !errors.As(err, &failure) || failure.Code != 207001 {
		t.Errorf("with the second output's memory refused: %v", err)
	}
	if !failure.Shortage() || !strings.Contains(failure.Text, "oom") {
		t.Errorf("the failure is %+v", failure)
	}
	if outputs, err := model.Run(context.Background(), x, ascendcl.Gear{Kind: ascendcl.OpenShape}); err != nil || tensor.Data[float32](outputs[1])[2] != 9 {
		t.Errorf("the run after it: %v, %v", outputs, err)
	}
}

// What does not suit the model is refused before anything is copied.
func TestInputsThatDoNotSuit(t *testing.T) {
	emulator := cannemutest.Build(t)
	report := filepath.Join(t.TempDir(), "report")
	t.Setenv("NPUCTL_EMULATOR_REPORT", report)
	runtime := open(t, emulator.Library())
	device, err := runtime.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	model, err := device.Load(emulator.Compile(t, twoOutputs, "--input_shape=x:-1", "--dynamic_dims=2;4", "--input_format=ND"))
	if err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancelCause(context.Background())
	reason := errors.New("no time left")
	stop(reason)
	for _, test := range []struct {
		name   string
		ctx    context.Context
		inputs []*tensor.Dense
		gear   ascendcl.Gear
		want   string
	}{
		{"none", context.Background(), nil, ascendcl.Gear{}, "0 inputs are given; the model has 1"},
		{"another type", context.Background(), []*tensor.Dense{tensor.Of([]int32{1, 2}, 2)}, ascendcl.Gear{}, "INT32; the model takes FLOAT"},
		{"too large", context.Background(), []*tensor.Dense{tensor.Of(make([]float32, 8), 8)}, ascendcl.Gear{Kind: ascendcl.DimsGear, Values: []int64{8}}, "the largest gear takes 16"},
		{"no such gear", context.Background(), []*tensor.Dense{tensor.Of(make([]float32, 3), 3)}, ascendcl.Gear{Kind: ascendcl.DimsGear, Values: []int64{3}}, "145013"},
		{"a gear of another kind", context.Background(), []*tensor.Dense{tensor.Of(make([]float32, 2), 2)}, ascendcl.Gear{Kind: ascendcl.BatchGear, Values: []int64{2}}, "aclmdlSetDynamicBatchSize"},
		{"too late", stopped, []*tensor.Dense{tensor.Of(make([]float32, 2), 2)}, ascendcl.Gear{Kind: ascendcl.DimsGear, Values: []int64{2}}, reason.Error()},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := model.Run(test.ctx, test.inputs, test.gear); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
	if n, err := runtime.Devices(); n != 1 || err != nil {
		t.Errorf("%d devices, %v", n, err)
	}
	model.Close()
	device.Close()
	runtime.Close()
	cannemutest.CheckReport(t, report)
}
