package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/npuctl/npuctl/bench/load"
)

// measured measures a level in virtual time.
func measured(t *testing.T, target load.Target, s Settings, schedule load.Schedule, more ...load.Observer) *Level {
	t.Helper()
	var level *Level
	synctest.Test(t, func(t *testing.T) {
		r, err := NewRecorder(s)
		if err != nil {
			t.Fatal(err)
		}
		if level, err = r.Run(t.Context(), target, schedule, load.NewPlainClock(), more...); err != nil {
			t.Fatal(err)
		}
	})
	return level
}

func constant(t *testing.T, rate float64) load.Schedule {
	t.Helper()
	s, err := load.Constant(rate)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stalls answers within a millisecond, and for half a second of every two not at all.
func stalls() load.Target {
	begin := time.Now()
	return load.TargetFunc(func(context.Context, load.Request) (load.Result, error) {
		if phase := time.Since(begin) % (2 * time.Second); phase < 500*time.Millisecond {
			time.Sleep(500*time.Millisecond - phase)
		}
		time.Sleep(time.Millisecond)
		return load.Result{}, nil
	})
}

// Honesty. Of requests at 100 a second a quarter come while the server stalls, and wait
// for what is left of half a second: 10 % for more than 300 ms, 5 % for more than 400 ms,
// 1 % for more than 480 ms. That must not depend on how many senders there are: with four,
// only four requests of a stall are in flight, and who looks at those alone sees nothing.
func TestHonesty(t *testing.T) {
	for _, workers := range []int{4, 200} {
		var level *Level
		synctest.Test(t, func(t *testing.T) {
			r, err := NewRecorder(Settings{Mode: Open, Workers: workers, Rate: 100, Arrivals: "constant", MaxCount: 4000})
			if err != nil {
				t.Fatal(err)
			}
			if level, err = r.Run(t.Context(), stalls(), constant(t, 100), load.NewPlainClock()); err != nil {
				t.Fatal(err)
			}
		})
		t.Logf("%d senders: from the intended time p90 %.0f, p95 %.0f, p99 %.0f ms; from the actual one p90 %.0f, p95 %.0f, p99 %.0f ms", workers,
			level.Latency.P90, level.Latency.P95, level.Latency.P99, level.SendLatency.P90, level.SendLatency.P95, level.SendLatency.P99)
		for _, c := range []struct{ got, want float64 }{{level.Latency.P90, 300}, {level.Latency.P95, 400}, {level.Latency.P99, 480}} {
			if math.Abs(c.got/c.want-1) > 0.05 {
				t.Errorf("%d senders: %.1f ms, want %v", workers, c.got, c.want)
			}
		}
		if workers == 4 && (level.SendLatency.P95 > 10 || level.Generator.Held < 0.2) {
			t.Errorf("from the actual sending p95 is %v ms; %v were held", level.SendLatency.P95, level.Generator.Held)
		}
		if !level.Valid || level.Overloaded || level.Stable {
			t.Errorf("valid %v (%s), overloaded %v (%s), stable %v (%s)", level.Valid, level.Invalid, level.Overloaded, level.OverloadReason, level.Stable, level.Instability)
		}
	}
}

// batching answers groups of four requests, as an executor with a batcher would tell it.
func batching() load.Target {
	return load.TargetFunc(func(_ context.Context, r load.Request) (load.Result, error) {
		time.Sleep(10 * time.Millisecond)
		if r.Number%50 == 49 {
			return load.Result{Kind: 1}, errors.Join(load.ErrRejected, errors.New("the queue is full"))
		}
		got := load.Result{Items: 2, Kind: int32(r.Number % 2), Batch: load.Batch{Items: 8, Gear: 2, Elements: 160, Padding: 40, Lead: r.Number%4 == 0}}
		got.Stages[load.Queue], got.Stages[load.Compute] = time.Millisecond, 6*time.Millisecond
		return got, nil
	})
}

var batchingSettings = Settings{Mode: Closed, Workers: 4, WarmCount: 20, MinTime: 2 * time.Second, MinCount: 300, WaitStable: true, MaxTime: 30 * time.Second,
	Stability: Stability{Window: time.Second, Requests: 50, Windows: 3, Tolerance: 0.1, Figure: "p99"},
	Deadline:  9 * time.Millisecond, Gears: []string{"4", "10"}, Kinds: []string{"even", "odd"}}

func TestLevel(t *testing.T) {
	l := measured(t, batching(), batchingSettings, nil)
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 0.02*max(1, math.Abs(want)) {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	near("throughput", l.Throughput, 400*0.98)
	near("items", l.ItemThroughput, 800*0.98)
	near("goodput", l.Goodput, 0)
	near("error rate", l.ErrorRate, 0.02)
	near("p50", l.Latency.P50, 10)
	near("compute", l.Stages["compute"].Mean, 6)
	near("respond", l.Stages["respond"].Mean, 3)
	near("compute of the slow ones", l.StagesAt["p99"]["compute"], 6)
	near("padding", l.Padding, 0.25)
	near("mean batch", l.MeanBatch, 8)
	if len(l.Gears) != 1 || l.Gears[0].Gear != "10" || l.Gears[0].Padding != 0.25 || len(l.Batches) != 1 || l.Batches[0].Executions != l.Gears[0].Runs {
		t.Errorf("gears %+v, batches %+v", l.Gears, l.Batches)
	}
	if len(l.Kinds) != 2 || l.Kinds[0].Kind != "even" || l.Kinds[0].Errors != 0 || l.Kinds[1].Errors != l.Errors {
		t.Errorf("kinds %+v", l.Kinds)
	}
	if !l.Stable || !l.Valid || l.Overloaded || l.Ending != "enough" || l.WarmRequests != 20 {
		t.Errorf("stable %v (%s), valid %v (%s), ended by %s, %d to warm up", l.Stable, l.Instability, l.Valid, l.Invalid, l.Ending, l.WarmRequests)
	}
	// Three whole windows after the warm-up of 50 ms: the first second counts for none.
	if l.Duration < 3.9 || l.Duration > 4.2 {
		t.Errorf("took %v s", l.Duration)
	}
	if l.Errors != l.Rejected || l.OK+l.Errors != l.Requests || l.Reasons["rejected; the queue is full"] != l.Rejected {
		t.Errorf("%d requests, %d ok, %d errors: %v", l.Requests, l.OK, l.Errors, l.Reasons)
	}
}

// The sum of the mean stages around a percentile is about that percentile.
func TestStagesAddUp(t *testing.T) {
	l := measured(t, stallsLater(), Settings{Mode: Open, Workers: 100, Rate: 200, Arrivals: "constant", MaxTime: 20 * time.Second}, constant(t, 200))
	for _, p := range percentiles {
		sum := 0.0
		for _, t := range l.StagesAt[p.name] {
			sum += t
		}
		if value, _ := l.Latency.Value(p.name); math.Abs(sum-value) > 0.05*value+1 {
			t.Errorf("%s is %.1f ms, and its stages add up to %.1f", p.name, value, sum)
		}
	}
}

// stallsLater is a target with a queue of its own that is told as such.
func stallsLater() load.Target {
	return load.TargetFunc(func(_ context.Context, r load.Request) (load.Result, error) {
		wait := time.Duration(r.Number%100) * time.Millisecond
		time.Sleep(wait + 2*time.Millisecond)
		got := load.Result{}
		got.Stages[load.Queue], got.Stages[load.Compute] = wait, 2*time.Millisecond
		return got, nil
	})
}

// Throughput is not quantised, and a count ends a level exactly: twenty requests of
// 92.3 ms, one at a time, are 10.83 a second.
func TestThroughputOfACount(t *testing.T) {
	slow := load.TargetFunc(func(context.Context, load.Request) (load.Result, error) {
		time.Sleep(92300 * time.Microsecond)
		return load.Result{}, nil
	})
	l := measured(t, slow, Settings{Mode: Closed, Workers: 1, MaxCount: 20}, nil)
	if l.Requests != 20 || math.Abs(l.Throughput-10.834) > 0.001 || l.Latency.Std != 0 || l.Ending != "count" {
		t.Errorf("%d requests, %v a second, deviation %v", l.Requests, l.Throughput, l.Latency.Std)
	}
	if !slices.Equal(l.Latency.TooFew, []string{"p90", "p95", "p99", "p999"}) || len(l.Notes) != 1 {
		t.Errorf("too few: %v, notes %q", l.Latency.TooFew, l.Notes)
	}
}

// Long latencies have a deviation: seconds, squared in nanoseconds, are more than 64 bits.
func TestDeviationOfLongLatencies(t *testing.T) {
	d := &Distribution{}
	for i := range 26 {
		d.Add(time.Duration(6+6*(i%2)) * time.Second)
	}
	if std := d.Std().Seconds(); math.Abs(std-3.06) > 0.01 {
		t.Errorf("the deviation is %v s", std)
	}
}

// A level that never becomes stable ends at its longest time and says so; one that may end
// waits for time and count.
func TestUntil(t *testing.T) {
	drift := func() load.Target {
		begin := time.Now()
		return load.TargetFunc(func(context.Context, load.Request) (load.Result, error) {
			time.Sleep(time.Duration(float64(5*time.Millisecond) * math.Exp(time.Since(begin).Seconds()/5)))
			return load.Result{}, nil
		})
	}
	even := func() load.Target {
		return load.TargetFunc(func(context.Context, load.Request) (load.Result, error) {
			time.Sleep(5 * time.Millisecond)
			return load.Result{}, nil
		})
	}
	for _, c := range []struct {
		name    string
		target  func() load.Target
		s       Settings
		stable  bool
		seconds float64
	}{
		{"unstable", drift, Settings{WaitStable: true, MaxTime: 12 * time.Second}, false, 12},
		{"stable", even, Settings{WaitStable: true, MaxTime: 12 * time.Second}, true, 3},
		{"stable, and a time", even, Settings{WaitStable: true, MinTime: 5 * time.Second, MaxTime: 12 * time.Second}, true, 5},
		{"stable, and a count", even, Settings{WaitStable: true, MinCount: 1400, MaxTime: 12 * time.Second}, true, 7},
		{"a time", even, Settings{MinTime: 2 * time.Second, MaxTime: 12 * time.Second}, false, 2},
		{"too short a time", even, Settings{MinTime: 2 * time.Second, WaitStable: true, MaxTime: 2 * time.Second}, false, 2},
	} {
		var l *Level
		synctest.Test(t, func(t *testing.T) {
			c.s.Mode, c.s.Workers = Closed, 1
			r, err := NewRecorder(c.s)
			if err != nil {
				t.Fatal(err)
			}
			if l, err = r.Run(t.Context(), c.target(), nil, load.NewPlainClock()); err != nil {
				t.Fatal(err)
			}
		})
		if l.Stable != c.stable || (l.Instability == "") != c.stable || math.Abs(l.Duration-c.seconds) > 0.2 {
			t.Errorf("%s: stable %v (%s) after %.2f s", c.name, l.Stable, l.Instability, l.Duration)
		}
	}
}

// served makes the records of a queue with one server: each request begins when it is due
// and the one before it is done.
func served(arrivals []time.Duration, service func() time.Duration) []load.Record {
	free := time.Duration(0)
	records := make([]load.Record, len(arrivals))
	for i, at := range arrivals {
		begin := max(free, at)
		free = begin + service()
		records[i] = load.Record{Number: int64(i), Intended: at, Ready: at, Sent: at, Done: free}
		records[i].Stages[load.Queue], records[i].Stages[load.Compute] = begin-at, free-begin
		records[i].Complete()
	}
	return records
}

// levelOf sums records up as a run would that ends with the last arrival.
func levelOf(t testing.TB, s Settings, records []load.Record) *Level {
	t.Helper()
	r, err := NewRecorder(s)
	if err != nil {
		t.Fatal(err)
	}
	last := records[len(records)-1].Intended
	done := records[len(records)-1].Done
	r.Ended(load.End{Ending: load.Enough, At: last, Last: done})
	for chunk := range slices.Chunk(records, 1000) {
		if _, err := r.Observe(last, chunk[len(chunk)-1].Intended, chunk); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Observe(last, math.MaxInt64, nil); err != nil {
		t.Fatal(err)
	}
	return r.Level()
}

func times(t testing.TB, schedule load.Schedule, err error, n int) []time.Duration {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	out := make([]time.Duration, n)
	for i := range out {
		out[i], _ = schedule.Next()
	}
	return out
}

// Overload: with a server that takes 1 ms, what comes at more than 1,000 a second piles up.
// At random arrivals and services a queue also grows for a while without being overloaded.
func TestOverload(t *testing.T) {
	notUnderRace(t)
	even := func() time.Duration { return time.Millisecond }
	for _, c := range []struct {
		rate    float64
		n       int
		poisson bool
		least   int // of ten seeds
		most    int
	}{
		{500, 3000, false, 0, 0}, {990, 3000, false, 0, 0}, {1000, 3000, false, 0, 0},
		{1050, 3000, false, 10, 10}, {1020, 20000, false, 10, 10}, {3000, 3000, false, 10, 10},
		{500, 20000, true, 0, 0}, {700, 40000, true, 0, 0}, {900, 40000, true, 0, 1},
		{1100, 20000, true, 10, 10}, {2000, 5000, true, 10, 10},
	} {
		found := 0
		for seed := range uint64(10) {
			schedule, err := load.Constant(c.rate)
			service := even
			if c.poisson {
				random := rand.New(rand.NewPCG(seed, 9))
				service = func() time.Duration { return time.Duration(random.ExpFloat64() * 1e6) }
				schedule, err = load.Poisson(c.rate, seed)
			}
			l := levelOf(t, Settings{Mode: Open, Workers: 1 << 15}, served(times(t, schedule, err, c.n), service))
			if l.Overloaded {
				found++
			}
			if l.Overloaded != (l.OverloadReason != "") {
				t.Error("a verdict and its reason differ")
			}
		}
		if found < c.least || found > c.most {
			t.Errorf("%v a second (Poisson: %v): overloaded in %d of 10 runs", c.rate, c.poisson, found)
		}
	}
}

// A server behind a bound is overloaded too, and what was not sent is counted.
func TestOverloadBehindABound(t *testing.T) {
	slow := load.TargetFunc(func(context.Context, load.Request) (load.Result, error) {
		time.Sleep(20 * time.Millisecond)
		return load.Result{}, nil
	})
	l := measured(t, slow, Settings{Mode: Open, Workers: 2, Rate: 150, Arrivals: "constant", MaxTime: 10 * time.Second}, constant(t, 150))
	if !l.Overloaded || math.Abs(l.Throughput-100) > 1 || l.Unsent < 480 || l.Unsent > 500 || l.Errors != l.Unsent {
		t.Errorf("overloaded %v, %v a second, %d not sent", l.Overloaded, l.Throughput, l.Unsent)
	}
	if p99 := l.Latency.P99; p99 < 2500 {
		t.Errorf("p99 is %v ms", p99)
	}
	if last := l.Timeline.Moments[len(l.Timeline.Moments)*9/10]; last.Waiting < 300 || last.Running != 2 {
		t.Errorf("near the end %+v", last)
	}
}

// The stability rule on windows of ten answers: what each throughput and latency give.
func TestStability(t *testing.T) {
	for _, c := range []struct {
		name      string
		gaps      []float64 // ms between answers in each second
		latencies []float64 // ms in each second
		isOpen    bool
		want      string // a part of the reason; "" is stable
	}{
		{"even", []float64{50, 50, 50, 50}, []float64{5, 5, 5, 5}, false, ""},
		{"too few", []float64{50, 50}, []float64{5, 5}, false, "2 of 3 windows"},
		{"early trouble is over", []float64{200, 20, 50, 50, 50}, []float64{90, 1, 5, 5, 5}, false, ""},
		{"throughput falls", []float64{50, 50, 50, 60}, []float64{5, 5, 5, 5}, false, "throughput went from"},
		{"within tolerance", []float64{50, 50, 50, 52}, []float64{5, 5, 5.4, 5}, false, ""},
		{"latency rises", []float64{50, 50, 50, 50}, []float64{5, 5, 5, 6}, false, "p50 latency went from"},
		{"nothing is answered at last", []float64{50, 50, 50, 2000, 50, 50}, []float64{5, 5, 5, 5, 5, 5}, false, "throughput went from"},
		{"an open loop may come unevenly", []float64{50, 20, 40, 25}, []float64{5, 5, 5, 5}, true, ""},
	} {
		s := Settings{Mode: Closed, Workers: 1, MaxCount: 1, Stability: Stability{Window: time.Second, Requests: 10, Windows: 3, Tolerance: 0.1, Figure: "p50"}}
		if c.isOpen {
			s.Mode = Open
		}
		w := newWindows(&s)
		for second := range c.gaps {
			for at := 0.0; at < 999; at += c.gaps[second] {
				due := time.Duration(second)*time.Second + time.Duration(at*1e6)
				w.add(&load.Record{Intended: due, Sent: due, Done: due + time.Duration(c.latencies[second]*1e6)})
			}
		}
		w.settle(time.Duration(len(c.gaps)) * time.Second)
		stable, why := w.stable()
		if stable != (c.want == "") || !strings.Contains(why, c.want) {
			t.Errorf("%s: %v, %q (windows %+v)", c.name, stable, why, w.closed)
		}
	}
}

// Windows with few answers are put together until they have enough.
func TestWindowsGrow(t *testing.T) {
	s := Settings{Mode: Closed, Stability: Stability{Window: time.Second, Requests: 10, Windows: 2, Tolerance: 0.1, Figure: "mean"}}
	w := newWindows(&s)
	for i := range 40 {
		at := time.Duration(i) * 250 * time.Millisecond
		w.add(&load.Record{Intended: at, Done: at + 100*time.Millisecond})
	}
	w.settle(10 * time.Second)
	if len(w.closed) != 3 || w.closed[0].End != 3 || w.closed[2].Start != 6 || w.closed[1].Throughput != 4 {
		t.Errorf("%+v", w.closed)
	}
}

// A level whose generator was late says so, whatever its figures; by how much it may be
// late depends on the latency.
func TestValidity(t *testing.T) {
	for _, c := range []struct {
		lateness, latency time.Duration
		limits            Limits
		valid             bool
	}{
		{500 * time.Microsecond, time.Millisecond, Limits{}, true},
		{2 * time.Millisecond, 5 * time.Millisecond, Limits{}, false},
		{2 * time.Millisecond, 50 * time.Millisecond, Limits{}, true},
		{2 * time.Millisecond, 50 * time.Millisecond, Limits{Lateness: time.Millisecond}, false},
	} {
		records := make([]load.Record, 200)
		for i := range records {
			at := time.Duration(i) * time.Second
			records[i] = load.Record{Number: int64(i), Intended: at, Ready: at, Sent: at + c.lateness, Done: at + c.latency}
			records[i].Complete()
		}
		l := levelOf(t, Settings{Mode: Open, Workers: 1, Limits: c.limits}, records)
		if l.Valid != c.valid || (l.Invalid == "") != c.valid {
			t.Errorf("%+v: valid %v (%s)", c, l.Valid, l.Invalid)
		}
	}
}

func TestRefusedSettings(t *testing.T) {
	good := Settings{Mode: Closed, Workers: 1, MaxTime: time.Second}
	for _, change := range []func(*Settings){
		func(s *Settings) { s.Mode = "" },
		func(s *Settings) { s.MaxTime = 0 },
		func(s *Settings) { s.Arrivals = "often\x1b[31m" },
		func(s *Settings) { s.MinTime = time.Minute },
		func(s *Settings) { s.MinCount, s.MaxCount = 2, 1 },
		func(s *Settings) { s.Deadline = -1 },
		func(s *Settings) { s.Stability = Stability{Window: 1, Windows: 3, Tolerance: 0.1, Figure: "p50"} },
		func(s *Settings) {
			s.Stability = Stability{Window: time.Second, Windows: 1, Tolerance: 0.1, Figure: "p50"}
		},
		func(s *Settings) { s.Stability = Stability{Window: time.Second, Windows: 3, Figure: "p50"} },
		func(s *Settings) {
			s.Stability = Stability{Window: time.Second, Windows: 3, Tolerance: 0.1, Figure: "p42"}
		},
	} {
		s := good
		change(&s)
		if _, err := NewRecorder(s); err == nil {
			t.Errorf("%+v: taken", s)
		}
	}
	r, err := NewRecorder(good)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Run(t.Context(), stalls(), constant(t, 1), nil); err == nil {
		t.Error("a closed loop with a schedule: taken")
	}
}

func TestLonger(t *testing.T) {
	s := Settings{MinTime: 1, MaxTime: 3, MinCount: 5, MaxCount: 0}
	if got := s.Longer(0); got.MinTime != 1 || got.MaxTime != 3 || got.MinCount != 5 {
		t.Errorf("%+v", got)
	}
	if got := s.Longer(2); got.MinTime != 4 || got.MaxTime != 12 || got.MinCount != 20 || got.MaxCount != 0 {
		t.Errorf("%+v", got)
	}
}

func TestNames(t *testing.T) {
	for want, s := range map[string]Settings{
		"1 client": {Mode: Closed, Workers: 1}, "8 clients": {Mode: Closed, Workers: 8},
		"poisson 12.5/s": {Mode: Open, Arrivals: "poisson", Rate: 12.5}, "trace": {Mode: Open, Arrivals: "trace"},
	} {
		if got := s.Name(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The cost of a record, with all that is made of it.
func BenchmarkObserve(b *testing.B) {
	r, err := NewRecorder(Settings{Mode: Closed, Workers: 1, MaxCount: 1})
	if err != nil {
		b.Fatal(err)
	}
	records := make([]load.Record, 1000)
	b.ReportAllocs()
	for n := 0; n < b.N; n += len(records) {
		for i := range records {
			at := time.Duration(n+i) * time.Microsecond
			records[i] = load.Record{Intended: at, Ready: at, Sent: at, Done: at + time.Duration(1000+i)}
			records[i].Complete()
		}
		if _, err := r.Observe(0, time.Duration(n)*time.Microsecond, records); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleParseGoal() {
	g, err := ParseGoal("p99=50ms,errors=0.1%")
	fmt.Println(g, g.Errors, err)
	// Output: p99=50ms 0.001 <nil>
}
