package simulation

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/npuctl/npuctl/bench/executor"
)

// simulated runs a simulation that must succeed.
func simulated(t testing.TB, r Run) *Result {
	t.Helper()
	if r.Traffic.Kinds == nil {
		r.Traffic.Kinds = []Kind{{}}
	}
	result, err := r.Do(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// near holds a figure against theory.
func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	off := math.Abs(got-want) / want
	t.Logf("%s: %.5g, theory %.5g, off by %.2f %%", what, got, want, 100*off)
	if off > tolerance {
		t.Errorf("%s: %.5g, theory says %.5g", what, got, want)
	}
}

func on(devices ...int) executor.Setup { return executor.Setup{Devices: devices} }

// Single servers at 70 % load. With a service time S and a load ρ the mean wait is
// ρS/2(1−ρ) where all take as long (M/D/1), and ρS/(1−ρ) where times are exponential
// (M/M/1).
func TestSingleServer(t *testing.T) {
	const load, service = 0.7, 10 * time.Millisecond
	for _, test := range []struct {
		name        string
		exponential bool
		wait        float64 // in service times
	}{
		{"M/D/1", false, load / (2 * (1 - load))},
		{"M/M/1", true, load / (1 - load)},
	} {
		t.Run(test.name, func(t *testing.T) {
			const seeds = 4
			wait, use := 0.0, 0.0
			for seed := range uint64(seeds) {
				r := simulated(t, Run{Setup: on(0), Seed: 100 + seed,
					Traffic: &Traffic{Rate: load / service.Seconds(), Poisson: true, Requests: 250_000},
					Service: &Service{Fixed: service, Exponential: test.exponential}})
				wait, use = wait+r.Queue.Mean/seeds, use+r.Use/seeds
			}
			near(t, "mean wait, ms", wait, test.wait*10, 0.02)
			near(t, "utilization", use, load, 0.01)
		})
	}
}

// Four servers with exponential times (M/M/4) at 70 %: Erlang's formula.
func TestErlangC(t *testing.T) {
	const servers, load = 4, 0.7
	term, sum := 1.0, 0.0
	for k := range servers {
		sum += term
		term *= servers * load / float64(k+1)
	}
	term /= 1 - load
	waits := term / (sum + term) // the share of requests that wait
	r := simulated(t, Run{Setup: on(0, 0, 1, 1), Seed: 2,
		Traffic: &Traffic{Rate: servers * load * 100, Poisson: true, Requests: 250_000},
		Service: &Service{Fixed: 10 * time.Millisecond, Exponential: true}})
	near(t, "mean wait, ms", r.Queue.Mean, waits/(servers*(1-load))*10, 0.02)
}

// More clients than batches have room for: every batch is full, on every instance, and
// throughput is that of full batches. The fixed cost of a launch is paid once a batch.
func TestThroughputOptimum(t *testing.T) {
	const (
		batch = 8
		fixed = 4 * time.Millisecond
		item  = 500 * time.Microsecond
	)
	gears := func(sizes ...int64) func(*executor.Setup) {
		return func(s *executor.Setup) {
			s.Signature = executor.NewSignature(nil, batch)
			var err error
			if s.Gears, err = executor.BatchGears(s.Signature, sizes...); err != nil {
				panic(err)
			}
		}
	}
	for _, test := range []struct {
		name      string
		instances int
		clients   int
		change    func(*executor.Setup)
		run       time.Duration // of a full batch, all its chunks
		perRun    float64       // items in that time
	}{
		{"one instance", 1, 32, nil, fixed + batch*item, batch},
		{"eight instances", 8, 256, nil, fixed + batch*item, batch},
		{"as many clients as places", 8, 64, func(s *executor.Setup) { s.Policy.Delay = time.Millisecond }, fixed + batch*item, batch},
		{"a delay changes nothing", 8, 256, func(s *executor.Setup) { s.Policy.Delay = 50 * time.Millisecond }, fixed + batch*item, batch},
		{"gears that fit", 8, 256, gears(1, 2, 4, 8), fixed + batch*item, batch},
		{"two runs in the largest gear", 8, 256, gears(1, 4), 2*fixed + batch*item, batch},
		{"padding to the next gear", 8, 256, gears(10), fixed + 10*item, batch},
		{"a static model, split", 8, 256, gears(1), batch * (fixed + item), batch},
		{"no batcher", 8, 256, func(s *executor.Setup) { s.Policy.Dynamic = false }, fixed + item, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			setup := on(make([]int, test.instances)...)
			setup.Policy = executor.Policy{MaxBatch: batch, Dynamic: true}
			if test.change != nil {
				test.change(&setup)
			}
			r := simulated(t, Run{Setup: setup, Seed: 1, Traffic: &Traffic{Clients: test.clients, Duration: 10 * time.Second}, Service: &Service{Fixed: fixed, Item: item}})
			near(t, "items a second", r.ItemThroughput, float64(test.instances)*test.perRun/test.run.Seconds(), 0.03)
			near(t, "latency, ms", r.Latency.Mean, float64(test.clients)/r.Throughput*1000, 0.03) // Little's law
		})
	}
}

// Arrivals of equal distance under a delay: the batch is what comes within it, and the
// mean wait is half of what the first one waits.
func TestDelayCollects(t *testing.T) {
	setup := on(0)
	setup.Policy = executor.Policy{MaxBatch: 64, Dynamic: true, Delay: 9500 * time.Microsecond}
	r := simulated(t, Run{Setup: setup, Traffic: &Traffic{Rate: 1000, Requests: 100_000}, Service: &Service{Fixed: time.Millisecond}})
	near(t, "batch", r.MeanBatch, 10, 0.01)
	near(t, "mean wait, ms", r.Queue.Mean, 5, 0.01)
}

// An hour at 1,000 requests a second.
func TestHour(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("an hour takes minutes here")
	}
	setup := on(0, 1)
	setup.Policy = executor.Policy{MaxBatch: 8, Dynamic: true, Delay: 2 * time.Millisecond}
	start := time.Now()
	r := simulated(t, Run{Setup: setup, Seed: 7, Traffic: &Traffic{Rate: 1000, Poisson: true, Duration: time.Hour}, Service: &Service{Fixed: 4 * time.Millisecond, Item: 500 * time.Microsecond}})
	if r.OK < 3_590_000 || r.OK != r.Requests {
		t.Errorf("%d of %d requests", r.OK, r.Requests)
	}
	t.Logf("an hour in %v", time.Since(start))
}
