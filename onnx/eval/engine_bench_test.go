package eval

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/npuctl/npuctl/internal/onnxruntime"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// engineThreads is how many cores both engines may use.
const engineThreads = 2

// BenchmarkEngine times whole models and, where ONNX Runtime is found, that one beside
// us, taking turns. It prints the median of both and how many times slower we are:
//
//	go test ./onnx/eval -run '^$' -bench Engine
//
// The outputs of the two are held against each other, too.
func BenchmarkEngine(b *testing.B) {
	for _, c := range []struct {
		name  string
		model func() *onnx.Model
	}{
		{"resnet50", resNet50},
		{"bert6", func() *onnx.Model { return bert(6, 128) }},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkModel(b, c.model()) })
	}
}

func benchmarkModel(b *testing.B, m *onnx.Model) {
	inputs := randomInputs(m)
	run := ourEngine(b, m, inputs)
	other := onnxRuntime(b, m, inputs)
	want, got := other(), run()
	if want != nil {
		holdAgainst(b, got, want)
	}
	var ours, theirs []time.Duration
	for b.Loop() {
		ours = append(ours, timed(run))
		if want != nil {
			theirs = append(theirs, timed(other))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(milliseconds(ours), "ours-ms")
	if want == nil {
		b.Log("ONNX Runtime was not found; there is nothing to compare with")
		return
	}
	b.ReportMetric(milliseconds(theirs), "ort-ms")
	b.ReportMetric(milliseconds(ours)/milliseconds(theirs), "times-slower")
}

func timed(run func() *tensor.Dense) time.Duration {
	start := time.Now()
	run()
	return time.Since(start)
}

// milliseconds is the median.
func milliseconds(runs []time.Duration) float64 {
	slices.Sort(runs)
	return float64(runs[len(runs)/2]) / float64(time.Millisecond)
}

func randomInputs(m *onnx.Model) map[string]Value {
	r := rand.New(rand.NewPCG(1, 1))
	inputs := map[string]Value{}
	for _, v := range m.Graph.Inputs() {
		shape, _ := v.Type.Shape.Ints()
		data := make([]float32, product(shape))
		for i := range data {
			data[i] = float32(r.NormFloat64())
		}
		inputs[v.Name()] = tensor.Of(data, shape...)
	}
	return inputs
}

func ourEngine(tb testing.TB, m *onnx.Model, inputs map[string]Value) func() *tensor.Dense {
	program, err := Prepare(m, Options{Threads: engineThreads})
	if err != nil {
		tb.Fatal(err)
	}
	output := m.Graph.Outputs()[0].Name()
	return func() *tensor.Dense {
		out, err := program.Run(context.Background(), inputs, nil)
		if err != nil {
			tb.Fatal(err)
		}
		return out[output].(*tensor.Dense)
	}
}

// onnxRuntime makes a session of the model; its runs give nil where the library is missing.
func onnxRuntime(tb testing.TB, m *onnx.Model, inputs map[string]Value) func() *tensor.Dense {
	path, _, err := onnxruntime.Find("")
	if err != nil {
		tb.Log(err)
		return func() *tensor.Dense { return nil }
	}
	library, err := onnxruntime.Open(path)
	if err != nil {
		tb.Log(err)
		return func() *tensor.Dense { return nil }
	}
	tb.Cleanup(func() { _ = library.Close() })
	data, err := m.Encode()
	if err != nil {
		tb.Fatal(err)
	}
	session, err := library.NewSessionFromBytes(data, onnxruntime.Options{
		IntraOpThreads: engineThreads, Optimization: onnxruntime.OptimizeAll,
		// Threads that wait busily for the next operator would slow the other engine down.
		Config: map[string]string{"session.intra_op.allow_spinning": "0"},
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = session.Close() })
	values := map[string]onnxruntime.Value{}
	for name, v := range inputs {
		values[name] = v
	}
	return func() *tensor.Dense {
		out, err := session.Run(context.Background(), values, nil)
		if err != nil {
			tb.Fatal(err)
		}
		return out[0].(*tensor.Dense)
	}
}

// holdAgainst fails when two results differ by more than the order of sums explains.
func holdAgainst(tb testing.TB, got, want *tensor.Dense) {
	g, w := tensor.Data[float32](got), tensor.Data[float32](want)
	if len(g) != len(w) {
		tb.Fatalf("our result has %d elements, ONNX Runtime's %d", len(g), len(w))
	}
	largest, worst := 0.0, 0.0
	for i := range g {
		largest = max(largest, math.Abs(float64(w[i])))
		worst = max(worst, math.Abs(float64(g[i])-float64(w[i])))
	}
	if !(worst <= 1e-4*largest) {
		tb.Fatalf("results differ by %g, the largest element is %g", worst, largest)
	}
}
