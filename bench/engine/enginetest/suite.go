package enginetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// Feature is something that not every engine can do.
type Feature string

// The features.
const (
	OpenDims      Feature = "open dims"
	Empty         Feature = "tensors without elements"
	Scalars       Feature = "scalars"
	ElementTypes  Feature = "all element types"
	Strings       Feature = "strings"
	Optional      Feature = "optional inputs"
	Arithmetic    Feature = "arithmetic"
	DecidedShapes Feature = "shapes that the elements decide"
	Files         Feature = "faults of files"
)

// Suite is an engine that is to be tested.
type Suite struct {
	// Engine is open, and stays the caller's.
	Engine engine.Engine
	// File writes a model in the form that the engine runs, and gives its path; nil writes
	// .onnx.
	File func(t testing.TB, m Model) string
	// Without has, for each feature that the engine lacks, the reason.
	Without map[Feature]string
	// Slow opens a model that has one input, an int64 without dims, or none, and runs for
	// at least 10 seconds. Nil takes one of many short operators.
	Slow func(t testing.TB) engine.Model
	// Allocations is how many a run may make that is like the run before it, filling and
	// reading included; below 0 they are not counted.
	Allocations float64
}

// Run holds an engine against what package engine promises.
func Run(t *testing.T, s Suite) {
	if s.File == nil {
		s.File = SaveONNX
	}
	for _, m := range Models() {
		t.Run(m.Name, func(t *testing.T) {
			s.need(t, m.Needs...)
			s.testModel(t, m)
		})
	}
	for _, check := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"about", s.testAbout},
		{"refuses shapes", s.testShapes},
		{"misses inputs", s.testMissing},
		{"memory stays", s.testMemory},
		{"borrowed memory", s.testBorrow},
		{"two at once", s.testAtOnce},
		{"context over", s.testContextOver},
		{"context ends", s.testContextEnds},
		{"closed", s.testClosed},
		{"files", s.testFiles},
		{"allocations", s.testAllocations},
	} {
		t.Run(check.name, check.run)
	}
}

// need skips a test of what the engine cannot do.
func (s Suite) need(t testing.TB, features ...Feature) {
	t.Helper()
	for _, f := range features {
		if why, lacks := s.Without[f]; lacks {
			t.Skipf("SKIPPED, %s: %s", f, why)
		}
	}
}

// open opens a model; it is closed with the test.
func (s Suite) open(t testing.TB, m Model) engine.Model {
	t.Helper()
	opened, err := s.Engine.Open(context.Background(), s.File(t, m))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return opened
}

// instance makes an instance; it is closed with the test.
func instance(t testing.TB, m engine.Model) engine.Instance {
	t.Helper()
	i, err := m.NewInstance(engine.Placement{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	return i
}

func (s Suite) testAbout(t *testing.T) {
	if a := s.Engine.About(); a.Name == "" || a.Version == "" || a.Device == "" || a.Devices < 1 {
		t.Errorf("%+v: it leaves something open", a)
	}
}

func (s Suite) testModel(t *testing.T, m Model) {
	opened := s.open(t, m)
	checkPorts(t, "inputs", opened.Inputs(), m.Inputs)
	checkPorts(t, "outputs", opened.Outputs(), m.Outputs)
	i := instance(t, opened)
	for seed, shapes := range m.Sets {
		if err := runSet(opened, i, m, shapes, seed); err != nil {
			t.Errorf("set %d: %v", seed, err)
		}
	}
}

func checkPorts(t *testing.T, what string, got, want []engine.Port) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
	for _, w := range want {
		g, err := find(got, w.Name)
		if err != nil {
			t.Fatal(err)
		}
		p := got[g]
		// A library may not tell a scalar from a tensor of unknown rank.
		isScalar := len(w.Dims) == 0 && p.Dims == nil
		if p.Type != w.Type || p.Optional != w.Optional || !slices.Equal(p.Dims, w.Dims) || p.Dims == nil && !isScalar {
			t.Errorf("%s: %+v, want %+v", what, p, w)
		}
	}
}

func find(ports []engine.Port, name string) (int, error) {
	i := slices.IndexFunc(ports, func(p engine.Port) bool { return p.Name == name })
	if i < 0 {
		return 0, fmt.Errorf("no port %q in %v", name, ports)
	}
	return i, nil
}

// runSet runs a model once and compares its outputs.
func runSet(opened engine.Model, i engine.Instance, m Model, shapes map[string][]int64, seed int) error {
	given, err := fillAll(opened, i, shapes, seed)
	if err != nil {
		return err
	}
	times, err := i.Run(context.Background())
	if err != nil {
		return err
	}
	if times.Compute < 0 || times.H2D < 0 || times.D2H < 0 {
		return fmt.Errorf("times %+v", times)
	}
	return compareAll(opened, i, m.Want(given))
}

// fillAll fills the inputs of the given shapes. What it gives is a copy.
func fillAll(opened engine.Model, i engine.Instance, shapes map[string][]int64, seed int) (map[string]engine.Buffer, error) {
	given := map[string]engine.Buffer{}
	for at, p := range opened.Inputs() {
		shape, ok := shapes[p.Name]
		if !ok {
			continue
		}
		b, err := i.Input(at, shape)
		if err != nil {
			return nil, err
		}
		if err := checkBuffer(b, p.Type, shape); err != nil {
			return nil, fmt.Errorf("input %s: %w", p.Name, err)
		}
		fill(b, p.Type, seed+at)
		given[p.Name] = clone(b)
	}
	return given, nil
}

func clone(b engine.Buffer) engine.Buffer {
	return engine.Buffer{Shape: slices.Clone(b.Shape), Bytes: slices.Clone(b.Bytes), Strings: slices.Clone(b.Strings)}
}

// checkBuffer holds that a buffer has the memory that its shape takes.
func checkBuffer(b engine.Buffer, t tensor.Type, shape []int64) error {
	count := product(shape)
	size, _ := t.RawSize(count)
	texts := int64(0)
	if t == tensor.String {
		texts = count
	}
	if !slices.Equal(b.Shape, shape) || int64(len(b.Bytes)) != size || int64(len(b.Strings)) != texts {
		return fmt.Errorf("shape %v, %d bytes, %d strings; want %v, %d, %d", b.Shape, len(b.Bytes), len(b.Strings), shape, size, texts)
	}
	return nil
}

func compareAll(opened engine.Model, i engine.Instance, want map[string]engine.Buffer) error {
	for at, p := range opened.Outputs() {
		got, w := i.Output(at), want[p.Name]
		if err := checkBuffer(got, p.Type, w.Shape); err != nil {
			return fmt.Errorf("output %s: %w", p.Name, err)
		}
		if !bytes.Equal(got.Bytes, w.Bytes) || !slices.Equal(got.Strings, w.Strings) {
			return fmt.Errorf("output %s: %v%q, want %v%q", p.Name, got.Bytes, got.Strings, w.Bytes, w.Strings)
		}
	}
	return nil
}

// Shapes that do not fit are refused with the name of the input, and leave the instance
// as it was.
func (s Suite) testShapes(t *testing.T) {
	opened := s.open(t, fixed)
	i := instance(t, opened)
	x, err := find(opened.Inputs(), "x")
	if err != nil {
		t.Fatal(err)
	}
	for _, shape := range [][]int64{{2, 4}, {6}, {2, 3, 1}, {2, -3}, {}, {1 << 40, 1 << 40}} {
		_, err := i.Input(x, shape)
		if err == nil || !strings.Contains(err.Error(), `"x"`) || !strings.Contains(err.Error(), "2x3") {
			t.Errorf("shape %v: error %v; it must name the input and its shape 2x3", shape, err)
		}
	}
	for _, number := range []int{-1, 2} {
		if _, err := i.Input(number, []int64{2, 3}); err == nil {
			t.Errorf("there is no input %d", number)
		}
	}
	if err := runSet(opened, i, fixed, fixed.Sets[0], 5); err != nil {
		t.Error(err)
	}
}

// A run without an input that it needs says which.
func (s Suite) testMissing(t *testing.T) {
	opened := s.open(t, fixed)
	i := instance(t, opened)
	for range 2 { // also when the run before had it
		if _, err := fillAll(opened, i, map[string][]int64{"x": {2, 3}}, 1); err != nil {
			t.Fatal(err)
		}
		if _, err := i.Run(context.Background()); err == nil || !strings.Contains(err.Error(), `"k"`) {
			t.Errorf("error %v, want one that names k", err)
		}
		if err := runSet(opened, i, fixed, fixed.Sets[0], 5); err != nil {
			t.Error(err)
		}
	}
}

// Outputs stay as they are while the next inputs are written, and inputs as they were
// filled, run or not.
func (s Suite) testMemory(t *testing.T) {
	opened := s.open(t, fixed)
	i := instance(t, opened)
	shapes := fixed.Sets[0]
	first, err := fillAll(opened, i, shapes, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	for at, p := range opened.Inputs() {
		b, err := i.Input(at, shapes[p.Name])
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b.Bytes, first[p.Name].Bytes) {
			t.Errorf("input %s is %v after the run, was %v", p.Name, b.Bytes, first[p.Name].Bytes)
		}
		clear(b.Bytes)
	}
	if err := compareAll(opened, i, fixed.Want(first)); err != nil {
		t.Errorf("after the next inputs were written: %v", err)
	}
}

// Memory that is lent is read where it is, left as it is, and no output stands on it.
func (s Suite) testBorrow(t *testing.T) {
	opened := s.open(t, fixed)
	i := instance(t, opened)
	borrower, ok := i.(engine.Borrower)
	if !ok {
		t.Skip("SKIPPED: it reads inputs in its own memory only")
	}
	for seed := range 6 {
		given := map[string]engine.Buffer{}
		for at, p := range opened.Inputs() {
			shape := slices.Clone(fixed.Sets[0][p.Name])
			size, _ := p.Type.RawSize(product(shape))
			b := engine.Buffer{Shape: shape, Bytes: make([]byte, size)}
			fill(b, p.Type, seed+at)
			given[p.Name] = clone(b)
			if seed%3 == 2 { // own memory in between
				own, err := i.Input(at, b.Shape)
				if err != nil {
					t.Fatal(err)
				}
				copy(own.Bytes, b.Bytes)
			} else if err := borrower.Borrow(at, b); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if !bytes.Equal(b.Bytes, given[p.Name].Bytes) {
					t.Errorf("lent memory of %s is %v, was %v", p.Name, b.Bytes, given[p.Name].Bytes)
				}
			}()
		}
		if _, err := i.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := compareAll(opened, i, fixed.Want(given)); err != nil {
			t.Errorf("round %d: %v", seed, err)
		}
	}
	x, err := find(opened.Inputs(), "x")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []engine.Buffer{{Shape: []int64{2, 4}, Bytes: make([]byte, 32)}, {Shape: []int64{2, 3}, Bytes: make([]byte, 23)}} {
		if err := borrower.Borrow(x, b); err == nil || !strings.Contains(err.Error(), `"x"`) {
			t.Errorf("%d bytes of shape %v: %v", len(b.Bytes), b.Shape, err)
		}
	}
	lent := engine.Buffer{Shape: []int64{2, 3}, Bytes: floats(1, 2, 3, 4, 5, 6)}
	if err := borrower.Borrow(x, lent); err != nil {
		t.Fatal(err)
	}
	k, err := find(opened.Inputs(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if err := borrower.Borrow(k, engine.Buffer{Shape: []int64{3}, Bytes: make([]byte, 12)}); err != nil {
		t.Fatal(err)
	}
	if _, err := i.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	clear(lent.Bytes)
	y, err := find(opened.Outputs(), "y")
	if err != nil {
		t.Fatal(err)
	}
	if got := i.Output(y); !bytes.Equal(got.Bytes, floats(1, 2, 3, 4, 5, 6)) {
		t.Errorf("the output follows memory that was lent: %v", got.Bytes)
	}
}

func product(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	return n
}

// Instances that run at the same time, each on its goroutine, give what one alone does.
func (s Suite) testAtOnce(t *testing.T) {
	opened := s.open(t, fixed)
	var group sync.WaitGroup
	for worker := range 2 {
		group.Go(func() {
			i, err := opened.NewInstance(engine.Placement{})
			if err != nil {
				t.Error(err)
				return
			}
			for round := range 50 {
				if err := runSet(opened, i, fixed, fixed.Sets[0], 1000*worker+round); err != nil {
					t.Errorf("instance %d, round %d: %v", worker, round, err)
				}
			}
			if err := i.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// A context that is over stops a run before it begins, and the next one goes well.
func (s Suite) testContextOver(t *testing.T) {
	opened := s.open(t, fixed)
	i := instance(t, opened)
	for range 2 {
		if _, err := fillAll(opened, i, fixed.Sets[0], 1); err != nil {
			t.Fatal(err)
		}
		over, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := i.Run(over); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want that of the context", err)
		}
		living, cancel := context.WithCancel(context.Background())
		if _, err := fillAll(opened, i, fixed.Sets[0], 1); err != nil {
			t.Fatal(err)
		}
		if _, err := i.Run(living); err != nil {
			t.Error(err)
		}
		cancel()
		if err := runSet(opened, i, fixed, fixed.Sets[0], 7); err != nil {
			t.Error(err)
		}
	}
}

// A context that ends stops a run that goes on. Then the instance says that it is broken,
// or works.
func (s Suite) testContextEnds(t *testing.T) {
	const soon = 3 * time.Second
	var opened engine.Model
	if s.Slow != nil {
		opened = s.Slow(t)
	} else {
		s.need(t, slow.Needs...)
		var err error
		if opened, err = s.Engine.Open(context.Background(), s.File(t, slow)); err != nil {
			t.Fatal(err)
		}
	}
	i, err := opened.NewInstance(engine.Placement{})
	if err != nil {
		t.Fatal(err)
	}
	if err := fillCount(opened, i, 1<<40); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, err := i.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error %v, want that of the context", err)
	}
	if took := time.Since(begin); took > soon {
		t.Errorf("it came back after %v", took)
	}
	_ = fillCount(opened, i, 1)
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = i.Run(short)
	if err != nil && !errors.Is(err, engine.ErrBroken) && s.Slow == nil {
		t.Errorf("the run after it: %v, want none, or one that says that the instance is broken", err)
	}
	begin = time.Now()
	if err := errors.Join(i.Close(), opened.Close()); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > soon {
		t.Errorf("it was closed after %v", took)
	}
}

// fillCount writes the one number that a slow model takes, if it takes one.
func fillCount(opened engine.Model, i engine.Instance, n int64) error {
	if len(opened.Inputs()) == 0 {
		return nil
	}
	b, err := i.Input(0, []int64{})
	if err != nil {
		return err
	}
	for k := range b.Bytes {
		b.Bytes[k] = byte(n >> (8 * k))
	}
	return nil
}

// What is closed says so, and may be closed again.
func (s Suite) testClosed(t *testing.T) {
	opened, err := s.Engine.Open(context.Background(), s.File(t, fixed))
	if err != nil {
		t.Fatal(err)
	}
	i, err := opened.NewInstance(engine.Placement{})
	if err != nil {
		t.Fatal(err)
	}
	if err := runSet(opened, i, fixed, fixed.Sets[0], 1); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := i.Close(); err != nil {
			t.Errorf("close the instance: %v", err)
		}
	}
	if _, err := i.Run(context.Background()); err == nil {
		t.Error("a closed instance ran")
	}
	if _, err := i.Input(0, []int64{2, 3}); err == nil {
		t.Error("a closed instance gave the memory of an input")
	}
	for range 2 {
		if err := opened.Close(); err != nil {
			t.Errorf("close the model: %v", err)
		}
	}
	if _, err := opened.NewInstance(engine.Placement{}); err == nil {
		t.Error("a closed model made an instance")
	}
}

// Files that are not there, and those that are no model, are faults that name the file; a
// device that there is not is missing.
func (s Suite) testFiles(t *testing.T) {
	s.need(t, Files)
	folder := t.TempDir()
	garbage := filepath.Join(folder, "garbage"+filepath.Ext(s.File(t, fixed)))
	if err := os.WriteFile(garbage, []byte("not a model, whatever it is called"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(folder, "gone.onnx"), garbage} {
		m, err := s.Engine.Open(context.Background(), path)
		if err == nil {
			m.Close()
			t.Errorf("%s was opened", path)
			continue
		}
		if f := fault.FamilyOf(err); f != fault.Input && f != fault.Usage || !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Errorf("%s: a fault of family %v: %v", path, f, err)
		}
	}
	opened := s.open(t, fixed)
	if i, err := opened.NewInstance(engine.Placement{Device: 1 << 20}); err == nil {
		i.Close()
		t.Error("an instance on device 1048576")
	} else if fault.FamilyOf(err) != fault.Missing {
		t.Errorf("device 1048576: family %v: %v", fault.FamilyOf(err), err)
	}
}

// A run like the one before it allocates next to nothing.
func (s Suite) testAllocations(t *testing.T) {
	if s.Allocations < 0 {
		t.Skip("SKIPPED, they are not counted")
	}
	opened := s.open(t, fixed)
	i := instance(t, opened)
	shapes := make([][]int64, len(opened.Inputs()))
	for at, p := range opened.Inputs() {
		shapes[at] = fixed.Sets[0][p.Name]
	}
	run := func() {
		for at, shape := range shapes {
			if _, err := i.Input(at, shape); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := i.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		for at := range fixed.Outputs {
			i.Output(at)
		}
	}
	if n := testing.AllocsPerRun(100, run); n > s.Allocations {
		t.Errorf("%.1f allocations a run, at most %.1f are expected", n, s.Allocations)
	}
}
