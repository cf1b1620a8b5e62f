package measure

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/npuctl/npuctl/bench/load"
)

// single is a server that serves one request after the other, in the order in which they
// come.
type single struct {
	mu      sync.Mutex
	clock   load.Clock
	free    time.Duration
	service func() time.Duration
}

func (s *single) Do(context.Context, load.Request) (load.Result, error) {
	s.mu.Lock()
	now := s.clock.Now()
	begin := max(now, s.free)
	service := s.service()
	s.free = begin + service
	s.mu.Unlock()
	time.Sleep(begin + service - now)
	var got load.Result
	got.Stages[load.Queue], got.Stages[load.Compute] = begin-now, service
	return got, nil
}

// Poisson arrivals at 70 % of what a server can do wait, on average, 1.167 service times if
// these are all alike, and 2.333 if they are exponential: Pollaczek and Khinchine. A sample
// strays from that by some percent; what is measured must be the very waits that follow
// from its arrivals, one after the other (Lindley). So it must be with any number of
// senders: with four, a request waits for a sender what it would else wait in the server.
func TestWaitingTimes(t *testing.T) {
	const n, warm = 60_000, 1000
	even := func(*rand.Rand) time.Duration { return time.Millisecond }
	random := func(r *rand.Rand) time.Duration { return time.Duration(r.ExpFloat64() * float64(time.Millisecond)) }
	for _, c := range []struct {
		name    string
		workers int
		theory  float64
		next    func(*rand.Rand) time.Duration
	}{{"M/D/1", 500, 0.7 / 0.6, even}, {"M/D/1 behind four senders", 4, 0.7 / 0.6, even}, {"M/M/1", 500, 0.7 / 0.3, random}} {
		var l *Level
		synctest.Test(t, func(t *testing.T) {
			clock := load.NewPlainClock()
			services := rand.New(rand.NewPCG(3, 4))
			server := &single{clock: clock, service: func() time.Duration { return c.next(services) }}
			schedule, err := load.Poisson(700, 11)
			if err != nil {
				t.Fatal(err)
			}
			r, err := NewRecorder(Settings{Mode: Open, Workers: c.workers, Rate: 700, Arrivals: "poisson", WarmCount: warm, MaxCount: n - warm})
			if err != nil {
				t.Fatal(err)
			}
			if l, err = r.Run(t.Context(), server, schedule, clock); err != nil {
				t.Fatal(err)
			}
		})
		got := l.Latency.Mean - l.Stages["compute"].Mean
		want := meanWait(t, n, warm, c.next)
		t.Logf("%s: waits %.4f ms; by Lindley %.4f, in the long run %.4f", c.name, got, want, c.theory)
		if math.Abs(got/want-1) > 1e-4 || math.Abs(got/c.theory-1) > 0.1 || l.Overloaded {
			t.Errorf("%s: waits %.4f ms, want %.4f (overloaded %v)", c.name, got, want, l.Overloaded)
		}
	}
}

// meanWait is the mean wait, in milliseconds, of the requests after the warm-up.
func meanWait(t *testing.T, n, warm int, next func(*rand.Rand) time.Duration) float64 {
	schedule, err := load.Poisson(700, 11)
	services := rand.New(rand.NewPCG(3, 4))
	sum := 0.0
	for i, r := range served(times(t, schedule, err, n), func() time.Duration { return next(services) }) {
		if i >= warm {
			sum += milliseconds(r.Stages[load.Queue])
		}
	}
	return sum / float64(n-warm)
}
