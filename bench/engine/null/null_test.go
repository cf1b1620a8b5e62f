package null

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/bench/engine/enginetest"
	"github.com/npuctl/npuctl/onnx/tensor"
)

func TestEngine(t *testing.T) {
	enginetest.Run(t, enginetest.Suite{
		Engine:  New(Options{}),
		Without: map[enginetest.Feature]string{enginetest.Arithmetic: "it computes nothing", enginetest.Optional: "it knows no defaults"},
		Slow: func(t testing.TB) engine.Model {
			m, err := New(Options{Outputs: []engine.Port{{Name: "y", Type: tensor.Float32, Dims: []int64{1}}}, Fixed: time.Minute}).Open(context.Background(), "")
			if err != nil {
				t.Fatal(err)
			}
			return m
		},
	})
}

// newInstance makes an instance with one input and one output of rows.
func newInstance(t *testing.T, o Options) engine.Instance {
	t.Helper()
	if o.Inputs == nil {
		o.Inputs = []engine.Port{{Name: "x", Type: tensor.Uint8, Dims: []int64{-1, 3}}}
	}
	if o.Outputs == nil {
		o.Outputs = []engine.Port{{Name: "y", Type: tensor.Uint8, Dims: []int64{-1, 3}}}
	}
	m, err := New(o).Open(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	i, err := m.NewInstance(engine.Placement{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.Close() })
	return i
}

// run gives rows to an instance.
func run(t *testing.T, i engine.Instance, rows int64, bytes ...byte) ([]byte, engine.Times, error) {
	t.Helper()
	x, err := i.Input(0, []int64{rows, int64(len(bytes)) / rows})
	if err != nil {
		t.Fatal(err)
	}
	copy(x.Bytes, bytes)
	times, err := i.Run(context.Background())
	return i.Output(0).Bytes, times, err
}

// A row of an output is made of the row of its input, longer or shorter.
func TestRowsFollowRows(t *testing.T) {
	for _, test := range []struct {
		name string
		dims []int64
		want string
	}{
		{"as long", []int64{-1, 3}, "[1 2 3 4 5 6]"},
		{"longer", []int64{-1, 4}, "[1 2 3 1 4 5 6 4]"},
		{"shorter", []int64{-1}, "[1 4]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			i := newInstance(t, Options{Outputs: []engine.Port{{Name: "y", Type: tensor.Uint8, Dims: test.dims}}})
			y, _, err := run(t, i, 2, 1, 2, 3, 4, 5, 6)
			if err != nil || fmt.Sprint(y) != test.want {
				t.Errorf("%v, %v; want %s", y, err, test.want)
			}
		})
	}
}

func TestTime(t *testing.T) {
	for name, o := range map[string]Options{
		"fixed and by item": {Fixed: 2 * time.Millisecond, Item: time.Millisecond},
		"a function":        {Time: func(shapes [][]int64) time.Duration { return time.Duration(2+shapes[0][0]) * time.Millisecond }},
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			_, times, err := run(t, newInstance(t, o), 2, 1, 2, 3, 4, 5, 6)
			if err != nil {
				t.Fatal(err)
			}
			const want, late = 4 * time.Millisecond, 50 * time.Millisecond
			if took := time.Since(begin); times.Compute < want || times.Compute > took || took > want+late {
				t.Errorf("it took %v and says %v, want %v", took, times.Compute, want)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	fails := newInstance(t, Options{Faults: Faults{Fail: 3}})
	breaks := newInstance(t, Options{Faults: Faults{Break: 3}})
	stalls := newInstance(t, Options{Faults: Faults{Stall: 3, StallTime: 5 * time.Millisecond}})
	for n := 1; n <= 6; n++ {
		_, _, err := run(t, fails, 1, 1, 2, 3)
		if isThird := n%3 == 0; errors.Is(err, ErrInjected) != isThird || errors.Is(err, engine.ErrBroken) {
			t.Errorf("run %d: %v", n, err)
		}
		_, _, err = run(t, breaks, 1, 1, 2, 3)
		if errors.Is(err, engine.ErrBroken) != (n >= 3) {
			t.Errorf("run %d: %v", n, err)
		}
		_, times, err := run(t, stalls, 1, 1, 2, 3)
		if err != nil || (times.Compute >= 5*time.Millisecond) != (n%3 == 0) {
			t.Errorf("run %d took %v: %v", n, times.Compute, err)
		}
	}
}

func TestGears(t *testing.T) {
	i := newInstance(t, Options{Gears: &engine.Gears{Dims: [][]int64{{-1, 3}}, Rows: [][]int64{{1}, {4}}}})
	if _, _, err := run(t, i, 1, 1, 2, 3); err != nil {
		t.Error(err)
	}
	if _, _, err := run(t, i, 2, 1, 2, 3, 4, 5, 6); err == nil {
		t.Error("2 is no gear")
	}
}

// A run without anything to do is what all measuring stands on.
func BenchmarkRun(b *testing.B) {
	ports := []engine.Port{{Name: "x", Type: tensor.Float32, Dims: []int64{-1, 16}}}
	m, err := New(Options{Inputs: ports, Outputs: ports}).Open(context.Background(), "")
	if err != nil {
		b.Fatal(err)
	}
	i, err := m.NewInstance(engine.Placement{})
	if err != nil {
		b.Fatal(err)
	}
	shape := []int64{8, 16}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := i.Input(0, shape); err != nil {
			b.Fatal(err)
		}
		if _, err := i.Run(context.Background()); err != nil {
			b.Fatal(err)
		}
		i.Output(0)
	}
}
