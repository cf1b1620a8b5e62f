package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/npuctl/npuctl/internal/cannemu/cannemutest"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx/compare"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(givenUpVariable); path != "" && len(os.Args) == 1 { // not as the emulator's interpreter
		os.Exit(givenUp(path))
	}
	os.Exit(cannemutest.Main(m))
}

// emulated opens the engine on the emulator.
func emulated(t *testing.T) (cannemutest.Emulator, Engine) {
	t.Helper()
	emulator := cannemutest.Build(t)
	report := t.TempDir() + "/report"
	t.Setenv("NPUCTL_EMULATOR_REPORT", report)
	e, err := Open(Ascend, Options{AscendLibrary: emulator.Library()})
	if fault.FamilyOf(err) == fault.Missing && strings.Contains(err.Error(), "cgo") {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.Close()
		cannemutest.CheckReport(t, report)
	})
	return emulator, e
}

const (
	gearless = `<ir_version: 8, opset_import: ["": 13]> g (float[2,3] x, int32[3] k) => (float[2,3] y, int32[3] z) { r = Relu (x)  y = Add (r, x)  z = Add (k, k) }`
	openDims = `<ir_version: 8, opset_import: ["": 13]> g (float[n,c] x, float[m] k) => (y, z) { y = Relu (x)  z = Add (k, k) }`
	picture  = `<ir_version: 8, opset_import: ["": 13]> g (float[1,3,h,w] x) => (y) { y = Relu (x) }`
)

// What runs on the emulated device gives what the interpreter gives of the original.
func TestAscendRuns(t *testing.T) {
	emulator, ascend := emulated(t)
	if !strings.Contains(ascend.Name(), "emulated") || !strings.Contains(ascend.Name(), "Ascend910B3") {
		t.Errorf("it calls itself %s", ascend.Name())
	}
	row := func(n int, shape ...int) *tensor.Dense {
		data := make([]float32, n)
		for i := range data {
			data[i] = float32(i%7) - 3
		}
		return tensor.Of(data, shape...)
	}
	for _, test := range []struct {
		name, source string
		arguments    []string
		inputs       []map[string]eval.Value // one set after the other, on the same loaded model
	}{
		{"static", gearless, nil, []map[string]eval.Value{
			{"x": row(6, 2, 3), "k": tensor.Of([]int32{1, 2, 3}, 3)},
			{"x": row(6, 2, 3), "k": tensor.Of([]int32{4, 5, 6}, 3)}}},
		{"gears of a batch", openDims, []string{"--input_shape=x:-1,3;k:5", "--dynamic_batch_size=1,4"}, []map[string]eval.Value{
			{"x": row(12, 4, 3), "k": row(5, 5)}, {"x": row(3, 1, 3), "k": row(5, 5)}}},
		{"gears of an image", picture, []string{"--input_shape=x:1,3,-1,-1", "--dynamic_image_size=4,8;6,6"}, []map[string]eval.Value{
			{"x": row(96, 1, 3, 4, 8)}, {"x": row(108, 1, 3, 6, 6)}}},
		{"gears of dims, in an order of their own", openDims, []string{"--input_format=ND", "--input_shape=k:-1;x:-1,3", "--dynamic_dims=2,1;7,4"}, []map[string]eval.Value{
			{"x": row(12, 4, 3), "k": row(7, 7)}, {"x": row(3, 1, 3), "k": row(2, 2)}}},
		{"an open shape", openDims, []string{"--input_shape=x:-1,3;k:-1"}, []map[string]eval.Value{
			{"x": row(12, 4, 3), "k": row(7, 7)}, {"x": row(3, 1, 3), "k": row(2, 2)}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := ascend.Load(context.Background(), Source{Path: emulator.Compile(t, test.source, test.arguments...)})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			for i, inputs := range test.inputs {
				want, err := runOnce(t, newReference(Options{}), Source{Bytes: encode(t, test.source)}, inputs)
				if err != nil {
					t.Fatal(err)
				}
				got, err := p.Run(context.Background(), inputs)
				if err != nil {
					t.Fatalf("set %d: %v", i, err)
				}
				for name, v := range want {
					if r := compare.Values(v, got[name], compare.Options{}); !r.Equal {
						t.Errorf("set %d, %s: %v", i, name, r)
					}
				}
			}
		})
	}
}

// Several models on one device, each run from its own goroutine.
func TestAscendSideBySide(t *testing.T) {
	emulator, ascend := emulated(t)
	path := emulator.Compile(t, gearless)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			p, err := ascend.Load(context.Background(), Source{Path: path})
			if err != nil {
				t.Error(err)
				return
			}
			defer p.Close()
			for round := range 20 {
				k := int32(100*worker + round)
				out, err := p.Run(context.Background(), map[string]eval.Value{"x": tensor.Of(make([]float32, 6), 2, 3), "k": tensor.Of([]int32{k, k, k}, 3)})
				if err != nil {
					t.Error(err)
					return
				}
				if r := compare.Values(tensor.Of([]int32{2 * k, 2 * k, 2 * k}, 3), out["z"], compare.Options{}); !r.Equal {
					t.Errorf("worker %d, round %d: %v", worker, round, r)
				}
			}
		})
	}
	group.Wait()
}

func TestAscendRefuses(t *testing.T) {
	emulator, ascend := emulated(t)
	p, err := ascend.Load(context.Background(), Source{Path: emulator.Compile(t, openDims, "--input_shape=x:-1,3;k:5", "--dynamic_batch_size=1,4")})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	x, k := tensor.Of(make([]float32, 6), 2, 3), tensor.Of(make([]float32, 5), 5)
	for _, test := range []struct {
		name   string
		inputs map[string]eval.Value
		want   string
	}{
		{"no gear", map[string]eval.Value{"x": x, "k": k}, "it has gears batch 1, 4"},
		{"an input too few", map[string]eval.Value{"x": x}, `input "k" is missing`},
		{"another type", map[string]eval.Value{"x": tensor.Of(make([]float64, 3), 1, 3), "k": k}, "DOUBLE; the model takes FLOAT"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := p.Run(context.Background(), test.inputs); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
	broken := t.TempDir() + "/broken.om"
	if err := os.WriteFile(broken, []byte("IMOD, or so"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{broken: "broken.om", "model.onnx": "compile it first", t.TempDir() + "/gone.om": "gone.om"} {
		if _, err := ascend.Load(context.Background(), Source{Path: path}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
}

// A device that never ends a run does not hold up who wants to stop.
func TestAscendIsGivenUp(t *testing.T) {
	emulator := cannemutest.Build(t)
	t.Setenv("NPUCTL_EMULATOR_FAULT", "slow-stream=20000")
	if testing.Short() {
		t.Skip("the device is waited for at the end")
	}
	path := emulator.Compile(t, gearless)
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), "NPUCTL_TEST_LIBRARY="+emulator.Library(), givenUpVariable+"="+path)
	start := time.Now()
	said, err := command.CombinedOutput()
	if command.ProcessState.ExitCode() == int(fault.Missing) {
		t.Skipf("%s", said)
	}
	if err != nil || time.Since(start) > 15*time.Second {
		t.Errorf("after %v: %v\n%s", time.Since(start), err, said)
	}
}

// givenUpVariable names a model, and makes this test program do what TestAscendIsGivenUp
// needs a process of its own for: the library reads its faults once.
const givenUpVariable = "NPUCTL_TEST_GIVEN_UP"

// givenUp runs the model on a device that does not answer, and gives the exit code.
func givenUp(path string) int {
	e, err := Open(Ascend, Options{AscendLibrary: os.Getenv("NPUCTL_TEST_LIBRARY")})
	if err != nil {
		fmt.Println(err)
		return int(fault.FamilyOf(err)) // Missing where nothing can be opened
	}
	defer e.Close()
	p, err := e.Load(context.Background(), Source{Path: path})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer p.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	inputs := map[string]eval.Value{"x": tensor.Of(make([]float32, 6), 2, 3), "k": tensor.Of([]int32{1, 2, 3}, 3)}
	if _, err := p.Run(ctx, inputs); !errors.Is(err, context.DeadlineExceeded) {
		fmt.Printf("error %v\n", err)
		return 1
	}
	if _, err := p.Run(context.Background(), inputs); err == nil || !strings.Contains(err.Error(), "given up") {
		fmt.Printf("a run after it: %v\n", err)
		return 1
	}
	return 0
}

// A device that is not there, and a library that is something else.
func TestAscendIsNotThere(t *testing.T) {
	emulator := cannemutest.Build(t)
	for name, o := range map[string]Options{
		"device 99":       {AscendLibrary: emulator.Library(), Device: 99},
		"no library":      {AscendLibrary: emulator.Root + "/npuctl-emulator.json"},
		"an empty folder": {AscendLibrary: emulator.Root},
	} {
		if e, err := Open(Ascend, o); fault.FamilyOf(err) != fault.Missing {
			t.Errorf("%s: %v, %v", name, e, err)
		}
	}
}
