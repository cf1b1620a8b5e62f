package simulation

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/npuctl/npuctl/bench/executor"
)

// BenchmarkRun is what a simulated request costs, and BenchmarkJSON one with its line.
func BenchmarkRun(b *testing.B) { benchmark(b, false) }

func BenchmarkJSON(b *testing.B) { benchmark(b, true) }

func benchmark(b *testing.B, keeps bool) {
	setup := on(0)
	setup.Policy = executor.Policy{MaxBatch: 8, Dynamic: true, Delay: 5 * time.Millisecond}
	r := simulated(b, Run{Setup: setup, Seed: 1, Keeps: keeps, Traffic: &Traffic{Rate: 1000, Poisson: true, Requests: b.N},
		Service: &Service{Fixed: 4 * time.Millisecond, Item: 400 * time.Microsecond}})
	if keeps {
		if err := (&Report{Summary: r}).WriteJSON(io.Discard, []Kind{{}}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAgainstLive runs the same clients through a simulation and, by the clock,
// through [executor.Live] with an engine that sleeps, and reports both: requests a second,
// the mean latency and the mean batch. Not a test, as a busy machine sleeps too long.
func BenchmarkAgainstLive(b *testing.B) {
	batching := executor.Policy{MaxBatch: 8, Dynamic: true, Delay: 5 * time.Millisecond}
	for _, scenario := range []struct {
		name    string
		setup   executor.Setup
		clients int
	}{
		{"one at a time", on(0, 0), 6},
		{"batches", executor.Setup{Policy: batching, Devices: []int{0, 1}}, 24},
		{"few clients and a delay", executor.Setup{Policy: batching, Devices: []int{0}}, 3},
		{"two streams for eight instances", executor.Setup{Policy: executor.Policy{MaxBatch: 8, Dynamic: true}, Devices: make([]int, 8), Streams: 2}, 32},
	} {
		b.Run(scenario.name, func(b *testing.B) {
			const duration = 2 * time.Second
			service := &Service{Fixed: 8 * time.Millisecond, Item: time.Millisecond}
			foretold := simulated(b, Run{Setup: scenario.setup, Traffic: &Traffic{Clients: scenario.clients, Duration: duration}, Service: service})
			for b.Loop() {
				c, latency := live(b, scenario.setup, service, scenario.clients, duration)
				b.ReportMetric(float64(c.OK)/duration.Seconds(), "live-req/s")
				b.ReportMetric(latency, "live-ms")
				b.ReportMetric(share(c.Items, c.Executions), "live-batch")
			}
			b.ReportMetric(foretold.Throughput, "simulated-req/s")
			b.ReportMetric(foretold.Latency.Mean, "simulated-ms")
			b.ReportMetric(foretold.MeanBatch, "simulated-batch")
		})
	}
}

// sleeper is an engine that takes the time of a batch and does nothing.
type sleeper struct{ service *Service }

func (s sleeper) Run(b *executor.Batch, _ int) error {
	time.Sleep(s.service.of(nil, b, nil))
	return nil
}

// live has clients send for a time; it gives the counters and the mean latency in
// milliseconds.
func live(b *testing.B, setup executor.Setup, service *Service, clients int, duration time.Duration) (executor.Counters, float64) {
	b.Helper()
	l, err := executor.NewLive(setup, sleeper{service})
	if err != nil {
		b.Fatal(err)
	}
	var wait sync.WaitGroup
	var latency atomic.Int64
	end := time.Now().Add(duration)
	for range clients {
		wait.Go(func() {
			call := executor.NewCall()
			for call.Size = 1; time.Now().Before(end); {
				if o := l.Do(context.Background(), call); o != executor.OK {
					b.Errorf("%v: %v", o, call.Err)
					return
				}
				latency.Add(int64(call.Ended - call.Arrived))
			}
		})
	}
	wait.Wait()
	if err := l.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	c := l.Counters()
	return c, milliseconds(latency.Load()) / float64(max(1, c.OK))
}
