package ascend

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/bench/engine/enginetest"
	"github.com/npuctl/npuctl/internal/cannemu/cannemutest"
	"github.com/npuctl/npuctl/internal/compiledmodel"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/om"
)

// Every test has two devices, and an emulator that forgives nothing.
func TestMain(m *testing.M) {
	os.Setenv("NPUCTL_EMULATOR_DEVICES", "2")
	os.Setenv("NPUCTL_EMULATOR_STRICT", "1")
	if what := os.Getenv(childVariable); what != "" && len(os.Args) == 1 { // not as the emulator's interpreter
		os.Exit(child(what))
	}
	os.Exit(cannemutest.Main(m))
}

// emulated opens the engine on the emulator. At the end of the test nothing may be left.
func emulated(t testing.TB, devices ...int) (cannemutest.Emulator, engine.Engine) {
	t.Helper()
	emulator := cannemutest.Build(t)
	report := filepath.Join(t.TempDir(), "report")
	t.Setenv("NPUCTL_EMULATOR_REPORT", report)
	e, err := New(Options{Library: emulator.Library(), Devices: devices})
	if fault.FamilyOf(err) == fault.Missing && strings.Contains(err.Error(), "cgo") {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		cannemutest.CheckReport(t, report)
	})
	return emulator, e
}

// What every engine promises.
func TestEngine(t *testing.T) {
	emulator, e := emulated(t)
	enginetest.Run(t, enginetest.Suite{
		Engine: e,
		File: func(t testing.TB, m enginetest.Model) string {
			return emulator.Compile(t, m.Source, m.Compile...)
		},
		Slow: func(t testing.TB) engine.Model {
			t.Skip("SKIPPED, it leaves the device at work: TestGivenUp does that in a process of its own")
			return nil
		},
		Without: map[enginetest.Feature]string{
			enginetest.Strings:  "devices have none",
			enginetest.Empty:    "AscendCL takes no dim of 0",
			enginetest.Optional: "defaults are compiled in",
		},
	})
}

const (
	weights = `<ir_version: 8, opset_import: ["": 13]> g (float[2,3] x, int32[3] k) => (float[2,3] y, int32[3] z) <float[3] w = {1, 2, 3}> { a = Mul (x, w)  y = Relu (a)  z = Add (k, k) }`
	batches = `<ir_version: 8, opset_import: ["": 13]> g (float[n,3] x, int32[5] k) => (float[n,3] y, int32[5] z) { y = Relu (x)  z = Add (k, k) }`
	picture = `<ir_version: 8, opset_import: ["": 13]> g (float[1,3,h,w] x) => (y) { y = Relu (x) }`
	text    = `<ir_version: 8, opset_import: ["": 13]> g (float[n,s] x, int32[m] k) => (y, z) { y = Relu (x)  z = Add (k, k) }`
	rounds  = `<ir_version: 8, opset_import: ["": 13]> g (float[n] x, float[n,2] q) => (float[n] y, float[n,2] r) { y = Relu (x)  r = Relu (q) }`
)

// put fills an input with small numbers that differ by seed: floats, or for k int32.
func put(b engine.Buffer, name string, seed int) {
	for at := 0; at < len(b.Bytes); at += 4 {
		v := (at/4*5+seed*7)%23 - 11
		word := math.Float32bits(float32(v))
		if name == "k" {
			word = uint32(int32(v))
		}
		binary.LittleEndian.PutUint32(b.Bytes[at:], word)
	}
}

// want computes an output of the models above: floats keep what is above 0, and the
// int32 of z are doubled.
func want(in []byte, output string) []byte {
	out := bytes.Clone(in)
	for at := 0; at < len(out); at += 4 {
		word := binary.LittleEndian.Uint32(in[at:])
		if output == "z" {
			word *= 2
		} else if int32(word) < 0 {
			word = 0
		}
		binary.LittleEndian.PutUint32(out[at:], word)
	}
	return out
}

// runOnce fills the inputs in shapes, runs, and compares every output with want of the
// input of the same number.
func runOnce(m engine.Model, i engine.Instance, seed int, shapes ...[]int64) error {
	given := make([][]byte, len(shapes))
	for n, shape := range shapes {
		b, err := i.Input(n, shape)
		if err != nil {
			return err
		}
		put(b, m.Inputs()[n].Name, seed+n)
		given[n] = bytes.Clone(b.Bytes)
	}
	if _, err := i.Run(context.Background()); err != nil {
		return err
	}
	for n, shape := range shapes {
		got := i.Output(n)
		if w := want(given[n], m.Outputs()[n].Name); !slices.Equal(got.Shape, shape) || !bytes.Equal(got.Bytes, w) {
			return fmt.Errorf("output %d: %v %v, want %v %v", n, got.Shape, got.Bytes, shape, w)
		}
	}
	return nil
}

// Models of every kind, each with sizes that come and go.
func TestSizes(t *testing.T) {
	emulator, e := emulated(t, 0)
	for _, test := range []struct {
		name, source string
		arguments    []string
		gears        *engine.Gears
		runs         [][][]int64 // shapes of all inputs
		refused      [][][]int64
		says         string
	}{
		{"gears of a batch", batches, []string{"--input_shape=x:-1,3;k:5", "--dynamic_batch_size=1,4,8"},
			&engine.Gears{Dims: [][]int64{{-1, 3}, {5}}, Rows: [][]int64{{1}, {4}, {8}}},
			[][][]int64{{{4, 3}, {5}}, {{1, 3}, {5}}, {{8, 3}, {5}}, {{8, 3}, {5}}, {{4, 3}, {5}}},
			[][][]int64{{{2, 3}, {5}}, {{9, 3}, {5}}}, "gear"},
		{"gears of a batch in several inputs", rounds, []string{"--input_shape=x:-1;q:-1,2", "--dynamic_batch_size=2,6"},
			&engine.Gears{Dims: [][]int64{{-1}, {-1, 2}}, Rows: [][]int64{{2, 2}, {6, 6}}},
			[][][]int64{{{6}, {6, 2}}, {{2}, {2, 2}}},
			[][][]int64{{{6}, {2, 2}}}, "has no gear for x 6, q 2x2: it has gears batch 2, 6; pad"},
		{"gears of an image", picture, []string{"--input_shape=x:1,3,-1,-1", "--dynamic_image_size=4,8;6,6"},
			&engine.Gears{Dims: [][]int64{{1, 3, -1, -1}}, Rows: [][]int64{{4, 8}, {6, 6}}},
			[][][]int64{{{1, 3, 4, 8}}, {{1, 3, 6, 6}}, {{1, 3, 4, 8}}},
			[][][]int64{{{1, 3, 8, 4}}}, "has no gear for x 1x3x8x4"},
		{"gears of dims, in an order of their own", text, []string{"--input_format=ND", "--input_shape=k:-1;x:-1,3", "--dynamic_dims=2,1;7,4"},
			&engine.Gears{Dims: [][]int64{{-1, 3}, {-1}}, Rows: [][]int64{{1, 2}, {4, 7}}},
			[][][]int64{{{4, 3}, {7}}, {{1, 3}, {2}}},
			[][][]int64{{{4, 3}, {2}}}, "has no gear for x 4x3, k 2"},
		{"an open shape", text, []string{"--input_shape=x:-1,3;k:-1"}, nil,
			[][][]int64{{{4, 3}, {7}}, {{4000, 3}, {2}}, {{1, 3}, {70000}}, {{4, 3}, {7}}},
			[][][]int64{{{4, 2}, {7}}, {{4, 3}, {1 << 60}}}, `input "`},
		{"an open shape with bounds", text, []string{"--input_shape=x:1~4,3;k:2~9"}, nil,
			[][][]int64{{{4, 3}, {7}}, {{1, 3}, {9}}, {{4, 3}, {2}}},
			[][][]int64{{{5, 3}, {7}}}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, err := e.Open(context.Background(), emulator.Compile(t, test.source, test.arguments...))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if g := m.Gears(); fmt.Sprint(g) != fmt.Sprint(test.gears) && (g == nil || test.gears == nil || fmt.Sprint(*g) != fmt.Sprint(*test.gears)) {
				t.Errorf("gears %+v, want %+v", g, test.gears)
			}
			i, err := m.NewInstance(engine.Placement{})
			if err != nil {
				t.Fatal(err)
			}
			defer i.Close()
			for round := range 2 {
				for n, shapes := range test.runs {
					if err := runOnce(m, i, 10*round+n, shapes...); err != nil {
						t.Errorf("run %d of round %d: %v", n, round, err)
					}
				}
				for _, shapes := range test.refused {
					if err := runOnce(m, i, 0, shapes...); err == nil || !strings.Contains(err.Error(), test.says) {
						t.Errorf("shapes %v: error %v, want %q", shapes, err, test.says)
					}
				}
			}
		})
	}
}

// Dims of outputs are open where gears differ, and known where they do not.
func TestOutputDims(t *testing.T) {
	emulator, e := emulated(t, 1)
	m, err := e.Open(context.Background(), emulator.Compile(t, batches, "--input_shape=x:-1,3;k:5", "--dynamic_batch_size=1,4"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if got := fmt.Sprint(m.Outputs()[0].Dims, m.Outputs()[1].Dims); got != "[-1 3] [5]" {
		t.Errorf("dims %s", got)
	}
}

// An image goes in as it is before the preprocessing that is compiled in. One that every
// run would have to set is refused.
func TestImagePreprocessing(t *testing.T) {
	signature := om.Signature{Inputs: []om.Tensor{{Name: "x", DType: "uint8", Dims: []int64{1, 3, 4, 6}, PlainDims: []int64{1, 4, 6, 3}}}}
	m := &model{file: &compiledmodel.File{Path: "net.om", Signature: &signature}}
	if err := m.describe(); err != nil || fmt.Sprint(m.inputs[0].Dims) != "[1 4 6 3]" {
		t.Errorf("%v, %v", m.inputs, err)
	}
	signature.Inputs = append(signature.Inputs, om.Tensor{Name: aippInput, DType: "uint8", Dims: []int64{128}})
	if err := m.describe(); fault.FamilyOf(err) != fault.Input || !strings.Contains(err.Error(), "net.om: its image preprocessing (AIPP) is set in each run") {
		t.Errorf("error %v", err)
	}
}

// Several instances on each of two devices, all at once, of two models.
func TestAtOnce(t *testing.T) {
	emulator, e := emulated(t)
	if a := e.About(); a.Devices != 2 || !a.Emulated || a.Device != "Ascend910B3" || !strings.HasPrefix(a.Version, "AscendCL 1.") {
		t.Errorf("%+v", a)
	}
	gears, err := e.Open(context.Background(), emulator.Compile(t, batches, "--input_shape=x:-1,3;k:5", "--dynamic_batch_size=1,4"))
	if err != nil {
		t.Fatal(err)
	}
	defer gears.Close()
	open, err := e.Open(context.Background(), emulator.Compile(t, text, "--input_shape=x:-1,3;k:-1"))
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			m := gears
			if worker >= 4 {
				m = open
			}
			i, err := m.NewInstance(engine.Placement{Device: worker % 2, CubeCores: 1 + worker, VectorCores: worker})
			if err != nil {
				t.Error(err)
				return
			}
			defer i.Close()
			for round := range 20 {
				rows := int64(1 + 3*(round%2))
				if err := runOnce(m, i, 100*worker+round, []int64{rows, 3}, []int64{5}); err != nil {
					t.Errorf("worker %d, round %d: %v", worker, round, err)
				}
			}
			if _, err := i.Run(ctx); err == nil || !strings.Contains(err.Error(), "missing") {
				t.Errorf("worker %d: a run without inputs: %v", worker, err)
			}
		})
	}
	group.Wait()
}

// What cannot be opened or made says why, and leaves nothing behind.
func TestRefuses(t *testing.T) {
	emulator, e := emulated(t)
	path := emulator.Compile(t, weights)
	m, err := e.Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	over, cancel := context.WithCancel(context.Background())
	cancel()
	open := func(ctx context.Context, path string) error {
		m, err := e.Open(ctx, path)
		if err == nil {
			m.Close()
		}
		return err
	}
	place := func(p engine.Placement) error {
		i, err := m.NewInstance(p)
		if err == nil {
			i.Close()
		}
		return err
	}
	short := filepath.Join(t.TempDir(), "short.om")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(short, whole[:len(whole)/2], 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		err    error
		family fault.Family
		says   string
	}{
		{"no .om", open(context.Background(), "model.onnx"), fault.Usage, "npuctl compile"},
		{"half a file", open(context.Background(), short), fault.Input, "short.om"},
		{"a context that is over", open(over, path), fault.Interrupted, "canceled"},
		{"a device that is not in use", place(engine.Placement{Device: 2}), fault.Missing, "no device 2 among those in use: [0 1]"},
		{"too many cube cores", place(engine.Placement{CubeCores: 21}), fault.Usage, "device 0 has 20"},
		{"too many vector cores", place(engine.Placement{VectorCores: 41}), fault.Usage, "device 0 has 40"},
		{"fewer than no cores", place(engine.Placement{VectorCores: -1}), fault.Usage, "from 1 to 40"},
		{"as many as there are", place(engine.Placement{Device: 1, CubeCores: 20, VectorCores: 40}), fault.Internal, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.says == "" {
				if test.err != nil {
					t.Error(test.err)
				}
				return
			}
			if test.err == nil || fault.FamilyOf(test.err) != test.family || !strings.Contains(test.err.Error(), test.says) {
				t.Errorf("family %v: %v; want %v, %q", fault.FamilyOf(test.err), test.err, test.family, test.says)
			}
		})
	}
	if err := os.WriteFile(path, append(whole, 0), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := place(engine.Placement{Device: 1}); err == nil || !strings.Contains(err.Error(), "was changed after it was opened") {
		t.Errorf("a file that was written to: %v", err)
	}
}

// Engines that cannot be opened say what is missing.
func TestMissing(t *testing.T) {
	emulator := cannemutest.Build(t)
	t.Setenv("NPUCTL_EMULATOR_REPORT", filepath.Join(t.TempDir(), "report"))
	for name, test := range map[string]struct {
		options Options
		says    string
	}{
		"device 7":         {Options{Library: emulator.Library(), Devices: []int{0, 7}}, "there is no device 7: there are 2, numbers 0 to 1"},
		"a device twice":   {Options{Library: emulator.Library(), Devices: []int{1, 1}}, "named twice"},
		"no library":       {Options{Library: filepath.Join(emulator.Root, "npuctl-emulator.json")}, "npuctl-emulator.json"},
		"an empty folder":  {Options{Library: emulator.Root}, "set_env.sh"},
		"an older library": {Options{Library: older(t, emulator, "aclrtCreateEventExWithFlag")}, "the library has no function aclrtCreateEventExWithFlag; npuctl needs CANN 8.0"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := New(test.options)
			if err == nil {
				e.Close()
				t.Fatal("it was opened")
			}
			if strings.Contains(err.Error(), "cgo") {
				t.Skip(err)
			}
			if f := fault.FamilyOf(err); f != fault.Missing && f != fault.Usage || !strings.Contains(err.Error(), test.says) {
				t.Errorf("family %v: %v", f, err)
			}
		})
	}
}

// older gives the emulator's library without a function.
func older(t testing.TB, emulator cannemutest.Emulator, function string) string {
	t.Helper()
	data, err := os.ReadFile(emulator.Library())
	if err != nil {
		t.Fatal(err)
	}
	name := []byte("\x00" + function + "\x00")
	if !bytes.Contains(data, name) {
		t.Fatalf("the library has no function %s", function)
	}
	other := bytes.Clone(name)
	other[len(other)-2] ^= 1
	path := filepath.Join(filepath.Dir(emulator.Library()), "without-"+function+".so")
	if err := os.WriteFile(path, bytes.ReplaceAll(data, name, other), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(path) })
	return path
}

// BenchmarkRun reports, besides the whole time of a run, what remains of it without the
// times of the events: that is the engine's own part, and here that of the emulator's
// queues between its tasks.
func BenchmarkRun(b *testing.B) {
	emulator, e := emulated(b, 0)
	for _, bench := range []struct {
		name, source string
		arguments    []string
		shapes       [][]int64
	}{
		{"static", weights, nil, [][]int64{{2, 3}, {3}}},
		{"gears", batches, []string{"--input_shape=x:-1,3;k:5", "--dynamic_batch_size=1,4"}, [][]int64{{4, 3}, {5}}},
		{"open", text, []string{"--input_shape=x:-1,3;k:-1"}, [][]int64{{4, 3}, {5}}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			m, err := e.Open(context.Background(), emulator.Compile(b, bench.source, bench.arguments...))
			if err != nil {
				b.Fatal(err)
			}
			defer m.Close()
			i, err := m.NewInstance(engine.Placement{})
			if err != nil {
				b.Fatal(err)
			}
			defer i.Close()
			var stages engine.Times
			b.ReportAllocs()
			for b.Loop() {
				for n, shape := range bench.shapes {
					if _, err := i.Input(n, shape); err != nil {
						b.Fatal(err)
					}
				}
				times, err := i.Run(context.Background())
				if err != nil {
					b.Fatal(err)
				}
				stages.H2D += times.H2D
				stages.Compute += times.Compute
				stages.D2H += times.D2H
			}
			n := float64(b.N)
			b.ReportMetric(float64(b.Elapsed()-stages.H2D-stages.Compute-stages.D2H)/n, "overhead-ns/op")
			b.ReportMetric(float64(stages.Compute)/n, "compute-ns/op")
		})
	}
}
