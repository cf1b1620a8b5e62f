package executor

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/bench/engine/null"
	"github.com/npuctl/npuctl/bench/engine/ort"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// rowPorts is a signature of rows of numbers: x and y.
func rowPorts(name string) []engine.Port {
	return []engine.Port{{Name: name, Type: tensor.Float32, Dims: []int64{-1, 16}}}
}

// BenchmarkOverhead is what the executor adds to a request: the time that its client waits,
// less what the engine itself stamped. The engine copies 64 bytes an item.
func BenchmarkOverhead(b *testing.B) {
	for _, clients := range []int{1, 8} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			setup := Setup{Policy: Policy{MaxBatch: 8, Dynamic: true}, Devices: []int{0}}
			live := liveModel(b, null.New(null.Options{Inputs: rowPorts("x"), Outputs: rowPorts("y")}), &setup, ModelOptions{})
			overhead := make([][]time.Duration, clients)
			origin := time.Now()
			var left atomic.Int64
			left.Store(int64(b.N))
			var wait sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for client := range clients {
				call := rowCall(b, live.model, client)
				overhead[client] = make([]time.Duration, 0, b.N)
				wait.Go(func() {
					p := call.Data.(*Payload)
					for left.Add(-1) >= 0 {
						begin := time.Since(origin)
						live.Do(context.Background(), call)
						t := &p.Times.Engine
						overhead[client] = append(overhead[client], time.Since(origin)-begin-t.H2D-t.Compute-t.D2H)
					}
				})
			}
			wait.Wait()
			b.StopTimer()
			all := slices.Concat(overhead...)
			slices.Sort(all)
			for _, q := range []int{50, 99} {
				b.ReportMetric(float64(all[(len(all)-1)*q/100].Nanoseconds())/1e3, fmt.Sprintf("p%d-µs", q))
			}
			c := live.Counters()
			b.ReportMetric(float64(c.Items)/float64(c.Executions), "items/batch")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e3, "kreq/s")
		})
	}
}

// bareModel is the model of BenchmarkAgainstBareLoop: -args -bare-model=FILE. Its open dims
// are 1 but for the batch. That of the examples takes some 0.2 ms an item.
var bareModel = flag.String("bare-model", "../../examples/attention.onnx", "model of BenchmarkAgainstBareLoop")

// BenchmarkAgainstBareLoop holds the executor over ONNX Runtime against loops that do
// nothing but call the same session, which has one thread: not even copy rows. Both take
// turns in slices of the same time. A ratio of 1 is the throughput of the loop; where
// several clients send it is held against the best number of loops.
func BenchmarkAgainstBareLoop(b *testing.B) {
	e, err := ort.New(ort.Options{Threads: 1})
	if fault.FamilyOf(err) == fault.Missing {
		b.Skip("SKIPPED, nothing was measured: ONNX Runtime is not on this machine; bring it by running .ci/fetch-onnxruntime")
	}
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	opened, err := e.Open(context.Background(), *bareModel)
	if err != nil {
		b.Fatal(err)
	}
	defer opened.Close()
	for _, test := range []struct {
		clients, items, instances int
		loops                     []int
	}{{1, 1, 1, []int{1}}, {1, 8, 1, []int{1}}, {8, 1, 2, []int{1, 2, 4, 8}}} {
		b.Run(fmt.Sprintf("clients=%d/items=%d", test.clients, test.items), func(b *testing.B) {
			if *bareModel != flag.Lookup("bare-model").DefValue && test.items > 1 {
				b.Skip("SKIPPED: its batch may be fixed")
			}
			payload := func() *Payload { return zeros(opened, test.items) }
			setup := Setup{Devices: make([]int, test.instances)}
			if HasBatchAxis(opened) {
				setup.Policy = Policy{MaxBatch: 8, Dynamic: true}
			}
			m, err := NewModel(opened, &setup, ModelOptions{})
			if err != nil {
				b.Fatal(err)
			}
			l, err := NewLive(setup, m)
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close(context.Background())
			const slice = 50 * time.Millisecond
			bare := make([]float64, len(test.loops))
			executed := 0.0
			fastest := [2]time.Duration{time.Hour, time.Hour} // of the loops, and of the executor
			for b.Loop() {
				for i, loops := range test.loops {
					bare[i] += perSecond(b, loops, slice, &fastest[0], bareLoop(b, opened, payload()))
				}
				executed += perSecond(b, test.clients, slice, &fastest[1], func() (func() error, func() error) {
					return throughExecutor(b, l, m, payload()), func() error { return nil }
				})
			}
			rounds := float64(b.N)
			b.ReportMetric(executed/slices.Max(bare), "ratio")
			// A busy machine gives a loop and a pair of goroutines unequal shares of its time;
			// the fastest calls of both still compare.
			b.ReportMetric(float64(fastest[0])/float64(fastest[1]), "fastest-ratio")
			b.ReportMetric(executed/rounds, "executor-req/s")
			b.ReportMetric(slices.Max(bare)/rounds, "bare-req/s")
			c := l.Counters()
			b.ReportMetric(float64(c.Items)/float64(c.Executions), "items/batch")
		})
	}
}

// perSecond has loops call a function for a time. Each makes its own, and ends it. It keeps
// the time of the fastest call.
func perSecond(b *testing.B, loops int, slice time.Duration, fastest *time.Duration, prepare func() (call, end func() error)) float64 {
	b.Helper()
	var wait, ready sync.WaitGroup
	var mu sync.Mutex // of fastest
	var count atomic.Int64
	begin := make(chan time.Time)
	ready.Add(loops)
	for range loops {
		wait.Go(func() {
			call, end := prepare()
			err := call() // once, so that all memory is there
			ready.Done()
			from := <-begin
			n, least := int64(0), time.Hour
			for last := time.Duration(0); err == nil && last < slice; n++ {
				err = call()
				now := time.Since(from)
				last, least = now, min(least, now-last)
			}
			count.Add(n)
			mu.Lock()
			*fastest = min(*fastest, least)
			mu.Unlock()
			if err := errors.Join(err, end()); err != nil {
				b.Error(err)
			}
		})
	}
	ready.Wait()
	from := time.Now()
	for range loops {
		begin <- from
	}
	wait.Wait()
	return float64(count.Load()) / time.Since(from).Seconds()
}

// bareLoop calls an instance of its own.
func bareLoop(b *testing.B, opened engine.Model, p *Payload) func() (call, end func() error) {
	return func() (func() error, func() error) {
		i, err := opened.NewInstance(engine.Placement{})
		if err != nil {
			b.Error(err)
			return func() error { return err }, func() error { return nil }
		}
		return func() error {
			for at := range p.Inputs {
				if _, err := i.Input(at, p.Inputs[at].Shape); err != nil {
					return err
				}
			}
			_, err := i.Run(context.Background())
			return err
		}, i.Close
	}
}

// zeros is a request without anything in it.
func zeros(m engine.Model, items int) *Payload {
	p := &Payload{}
	for _, port := range m.Inputs() {
		shape := slices.Clone(port.Dims)
		for axis, d := range shape {
			if d < 0 {
				shape[axis] = 1
			}
			if axis == 0 && d < 0 {
				shape[axis] = int64(items)
			}
		}
		p.Inputs = append(p.Inputs, engine.Buffer{Shape: shape, Bytes: make([]byte, unitOf(port.Type).size(elements(shape)))})
	}
	return p
}

// throughExecutor sends a request.
func throughExecutor(b *testing.B, l *Live, m *Model, p *Payload) func() error {
	call := NewCall()
	if err := m.Prepare(call, p); err != nil {
		b.Error(err)
	}
	return func() error {
		if o := l.Do(context.Background(), call); o != OK {
			return fmt.Errorf("%v: %w", o, call.Err)
		}
		return nil
	}
}

// rowCall is a call of one row.
func rowCall(t testing.TB, m *Model, seed int) *Call {
	t.Helper()
	row := make([]byte, 64)
	for i := range row {
		row[i] = byte(seed + i)
	}
	call := NewCall()
	if err := m.Prepare(call, &Payload{Inputs: []engine.Buffer{{Shape: []int64{1, 16}, Bytes: row}}}); err != nil {
		t.Fatal(err)
	}
	return call
}

// modelLive is an executor with its model.
type modelLive struct {
	*Live
	model *Model
}

// liveModel starts an executor over an engine; it is closed with the test.
func liveModel(t testing.TB, e engine.Engine, s *Setup, o ModelOptions) modelLive {
	t.Helper()
	opened, err := e.Open(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewModel(opened, s, o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLive(*s, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return modelLive{l, m}
}
