package load

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// collector keeps all records, and has seen enough at a time.
type collector struct {
	t       *testing.T
	until   time.Duration // 0 is never
	records []Record
	settled time.Duration
	end     End
	calls   int
}

func (c *collector) Observe(now, settled time.Duration, records []Record) (bool, error) {
	for _, r := range records {
		if r.Intended < c.settled {
			c.t.Errorf("request %d was due at %v, when all up to %v were said to be known", r.Number, r.Intended, c.settled)
		}
	}
	c.settled = settled
	c.records = append(c.records, records...)
	c.calls++
	return c.until > 0 && now >= c.until, nil
}

func (c *collector) Ended(e End) { c.end = e }

// sorted gives the records by number, each of which must be there once.
func (c *collector) sorted() []Record {
	slices.SortFunc(c.records, func(a, b Record) int { return int(a.Number - b.Number) })
	for i, r := range c.records {
		if r.Number != int64(i) {
			c.t.Fatalf("record %d has number %d", i, r.Number)
		}
		if r.Intended > r.Ready || r.Ready > r.Sent || r.Sent > r.Done {
			c.t.Fatalf("request %d: intended %v, ready %v, sent %v, done %v", i, r.Intended, r.Ready, r.Sent, r.Done)
		}
		sum := time.Duration(0)
		for _, t := range r.Stages {
			sum += t
		}
		if sum != r.Latency() {
			c.t.Fatalf("request %d: stages add up to %v, the latency is %v", i, sum, r.Latency())
		}
	}
	return c.records
}

// takes is a target that answers after a time.
func takes(d time.Duration) Target {
	return TargetFunc(func(ctx context.Context, _ Request) (Result, error) {
		select {
		case <-time.After(d):
			return Result{}, nil
		case <-ctx.Done():
			return Result{}, ctx.Err()
		}
	})
}

// virtual runs in virtual time.
func virtual(t *testing.T, target Target, o Options, until time.Duration) *collector {
	c := &collector{t: t, until: until}
	synctest.Test(t, func(t *testing.T) {
		o.Clock = NewPlainClock()
		if _, err := Run(t.Context(), target, o, c); err != nil {
			t.Fatal(err)
		}
	})
	return c
}

func open(t *testing.T, rate float64) Schedule {
	t.Helper()
	s, err := Constant(rate)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestClosedLoop(t *testing.T) {
	var inside, most atomic.Int64
	slow := takes(10 * time.Millisecond)
	c := virtual(t, TargetFunc(func(ctx context.Context, r Request) (Result, error) {
		now := inside.Add(1)
		defer inside.Add(-1)
		for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
		}
		return slow.Do(ctx, r)
	}), Options{Workers: 4, Count: 100, WarmCount: 8}, 0)
	records := c.sorted()
	if len(records) != 108 || most.Load() != 4 {
		t.Errorf("%d requests, %d in flight", len(records), most.Load())
	}
	if c.end.Ending != Counted || c.end.Last != 270*time.Millisecond {
		t.Errorf("ended %+v", c.end)
	}
	for i, r := range records {
		if r.Warm != (i < 8) || r.Latency() != 10*time.Millisecond || r.Intended != time.Duration(i/4)*10*time.Millisecond {
			t.Errorf("request %d: %+v", i, r)
		}
	}
}

// Four senders, answers after 100 ms, 20 requests a second: all leave in time. With one
// sender every second one waits, and its time counts from when it was due.
func TestOpenLoop(t *testing.T) {
	c := virtual(t, takes(100*time.Millisecond), Options{Schedule: open(t, 20), Workers: 4, WarmTime: time.Second}, 3*time.Second)
	records := c.sorted()
	if len(records) != 60 && len(records) != 61 {
		t.Errorf("%d requests in 3 s", len(records))
	}
	for i, r := range records {
		if at := time.Duration(i) * 50 * time.Millisecond; r.Intended != at || r.Sent != at || r.Latency() != 100*time.Millisecond || r.Warm != (at < time.Second) {
			t.Errorf("request %d: %+v", i, r)
		}
	}
}

func TestOpenLoopIsBounded(t *testing.T) {
	c := virtual(t, takes(100*time.Millisecond), Options{Schedule: open(t, 20), Workers: 1}, time.Second)
	records := c.sorted()
	unsent := 0
	for i, r := range records {
		if r.Outcome == Unsent {
			unsent++
			continue
		}
		want := time.Duration(i) * 100 * time.Millisecond
		if r.Sent != want || r.Ready != want || r.Lateness() != 0 || r.Latency() != want+100*time.Millisecond-r.Intended {
			t.Errorf("request %d: %+v", i, r)
		}
	}
	// In one second 20 were due; ten or eleven were sent.
	if len(records) != 20 || unsent < 9 || unsent > 10 {
		t.Errorf("%d requests, %d not sent", len(records), unsent)
	}
}

func TestScheduleEnds(t *testing.T) {
	s, err := Trace([]time.Duration{0, 1, 1, time.Second}, 1)
	if err != nil {
		t.Fatal(err)
	}
	c := virtual(t, takes(time.Millisecond), Options{Schedule: s, Workers: 2}, 0)
	if records := c.sorted(); len(records) != 4 || c.end.Ending != Scheduled || c.end.Last != time.Second+time.Millisecond {
		t.Errorf("%d requests, %+v", len(records), c.end)
	}
}

// A slow answer is waited for after the end, up to the grace.
func TestGrace(t *testing.T) {
	for _, c := range []struct {
		grace time.Duration
		want  Outcome
	}{{10 * time.Second, OK}, {time.Second, Cancelled}} {
		got := virtual(t, takes(5*time.Second), Options{Workers: 3, Grace: c.grace}, time.Second).sorted()
		if len(got) != 3 || got[0].Outcome != c.want {
			t.Errorf("grace %v: %d requests, %v", c.grace, len(got), got[0].Outcome)
		}
	}
}

func TestOutcomes(t *testing.T) {
	c := virtual(t, TargetFunc(func(_ context.Context, r Request) (Result, error) {
		switch r.Number % 3 {
		case 1:
			return Result{}, errors.Join(ErrRejected, errors.New("the queue is full"))
		case 2:
			return Result{}, errors.New("the device is gone")
		}
		time.Sleep(time.Millisecond)
		return Result{}, nil
	}), Options{Workers: 1, Count: 9}, 0)
	for i, r := range c.sorted() {
		want := []Outcome{OK, Rejected, Failed}[i%3]
		if r.Outcome != want || (r.Reason == "") != (want == OK) {
			t.Errorf("request %d: %v, %q", i, r.Outcome, r.Reason)
		}
		// A client that is refused at once does not try again at once.
		if at := time.Duration(i) * time.Millisecond; r.Sent != at {
			t.Errorf("request %d at %v", i, r.Sent)
		}
	}
}

func TestInterrupted(t *testing.T) {
	for _, o := range []Options{{Workers: 3}, {Workers: 3, Schedule: open(t, 0.001)}} {
		c := &collector{t: t}
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			o.Clock = NewPlainClock()
			end, err := Run(ctx, takes(300*time.Millisecond), o, c)
			if !errors.Is(err, context.DeadlineExceeded) || end.Ending != Interrupted || end.At != time.Second {
				t.Errorf("%+v, %v", end, err)
			}
		})
		// What was in flight is answered: four rounds of three, or the one at 0.
		if n := len(c.sorted()); n != 12 && n != 1 {
			t.Errorf("%d requests", n)
		}
	}
}

// Who interrupts a run does not wait for long; what was in flight is cancelled.
func TestInterruptedWithSlowAnswers(t *testing.T) {
	c := &collector{t: t}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		_, err := Run(ctx, takes(time.Hour), Options{Workers: 2, Clock: NewPlainClock()}, c)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 1500*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
	if got := c.sorted(); len(got) != 2 || got[0].Outcome != Cancelled {
		t.Errorf("%+v", got)
	}
}

// A clock that has run for a while is as good as a new one.
func TestClockOfLongAgo(t *testing.T) {
	c := &collector{t: t, until: time.Second}
	synctest.Test(t, func(t *testing.T) {
		clock := NewPlainClock()
		time.Sleep(time.Hour)
		if _, err := Run(t.Context(), takes(time.Millisecond), Options{Workers: 2, Schedule: open(t, 10), Clock: clock}, c); err != nil {
			t.Fatal(err)
		}
	})
	got := c.sorted()
	if len(got) < 10 || got[9].Intended != 900*time.Millisecond || got[9].Latency() != time.Millisecond {
		t.Errorf("%d requests: %+v", len(got), got)
	}
}

func TestObserverFails(t *testing.T) {
	wrong := errors.New("the disk is full")
	synctest.Test(t, func(t *testing.T) {
		_, err := Run(t.Context(), takes(time.Millisecond), Options{Workers: 1, Clock: NewPlainClock()}, failing{wrong})
		if !errors.Is(err, wrong) {
			t.Error(err)
		}
	})
}

type failing struct{ err error }

func (f failing) Observe(time.Duration, time.Duration, []Record) (bool, error) { return false, f.err }
func (f failing) Ended(End)                                                    {}

func TestRefusedOptions(t *testing.T) {
	for _, o := range []Options{{}, {Workers: 1 << 20}, {Workers: 1, Count: -1}, {Workers: 1, WarmTime: -1}} {
		if _, err := Run(t.Context(), takes(0), o, &collector{t: t}); err == nil {
			t.Errorf("%+v: taken", o)
		}
	}
}

// Requests of any length, from many senders: what is said to be settled is.
func TestSettled(t *testing.T) {
	target := TargetFunc(func(_ context.Context, r Request) (Result, error) {
		time.Sleep(time.Duration(rand.New(rand.NewPCG(uint64(r.Number), 1)).IntN(int(200 * time.Millisecond))))
		return Result{}, nil
	})
	s, err := Poisson(300, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{Workers: 30, Count: 5000}, {Workers: 40, Schedule: s, Count: 5000}} {
		o.Poll = 7 * time.Millisecond
		if c := virtual(t, target, o, 0); len(c.sorted()) != 5000 || c.calls < 100 {
			t.Errorf("%d requests in %d calls", len(c.records), c.calls)
		}
	}
}

// counter counts records.
type counter struct {
	n     int
	until int
}

func (c *counter) Observe(_, _ time.Duration, records []Record) (bool, error) {
	c.n += len(records)
	return c.n >= c.until, nil
}
func (c *counter) Ended(End) {}

// On the machine's clock: nothing is allocated for a request, and no goroutine is left.
func TestAllocations(t *testing.T) {
	before := runtime.NumGoroutine()
	nothing := TargetFunc(func(context.Context, Request) (Result, error) { return Result{}, nil })
	for _, c := range []struct {
		name string
		o    Options
	}{{"closed", Options{Workers: 2, Count: 400_000}}, {"open", Options{Workers: 4, Count: 100_000, Schedule: open(t, 1e8)}}} {
		o := c.o
		o.Poll = time.Millisecond
		var first, last runtime.MemStats
		runtime.ReadMemStats(&first)
		begin := time.Now()
		if _, err := Run(t.Context(), nothing, o, &counter{until: 1 << 40}); err != nil {
			t.Fatal(err)
		}
		lasted := time.Since(begin)
		runtime.ReadMemStats(&last)
		each := float64(last.Mallocs-first.Mallocs) / float64(o.Count)
		t.Logf("%s: %.5f allocations and %v a request", c.name, each, lasted/time.Duration(o.Count))
		if each > 0.01 {
			t.Errorf("%s: %.4f allocations a request", c.name, each)
		}
	}
	for range 1000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// How precise the clock is depends on the machine, and is only told. That it never sends
// too early does not.
func TestClockIsNeverEarly(t *testing.T) {
	c := &collector{t: t}
	if _, err := Run(t.Context(), takes(0), Options{Workers: 4, Schedule: open(t, 500), Count: 200}, c); err != nil {
		t.Fatal(err)
	}
	var late []time.Duration
	for _, r := range c.sorted() {
		late = append(late, r.Lateness())
	}
	slices.Sort(late)
	t.Logf("late by %v in the median, %v at the 90th percentile, %v at most", late[100], late[180], late[199])
}

func TestClockStops(t *testing.T) {
	stop := make(chan struct{})
	close(stop)
	for _, c := range []Clock{NewClock(), NewPlainClock()} {
		if c.Wait(time.Hour, stop) || !c.Wait(c.Now()+time.Millisecond, nil) {
			t.Error("a wait does not stop, or always does")
		}
	}
}

// A mix goes by its weights, is the same every time, and says which target it was.
func TestMix(t *testing.T) {
	counts := [3]int{}
	targets := []Target{}
	for i := range counts {
		targets = append(targets, TargetFunc(func(context.Context, Request) (Result, error) {
			counts[i]++
			return Result{Items: int32(10 + i)}, nil
		}))
	}
	m, err := Mix(targets, []float64{1, 3, 6}, 5)
	if err != nil {
		t.Fatal(err)
	}
	const n = 30_000
	var first []int32
	for number := range int64(n) {
		got, err := m.Do(t.Context(), Request{Number: number})
		if err != nil || got.Items != 10+got.Kind {
			t.Fatalf("%+v, %v", got, err)
		}
		first = append(first, got.Kind)
	}
	for i, want := range []int{n / 10, n * 3 / 10, n * 6 / 10} {
		if counts[i] < want-300 || counts[i] > want+300 {
			t.Errorf("target %d got %d of %d", i, counts[i], n)
		}
	}
	for number, want := range first {
		if got, _ := m.Do(t.Context(), Request{Number: int64(number)}); got.Kind != want {
			t.Fatalf("request %d went to %d, then to %d", number, want, got.Kind)
		}
	}
	if each := testing.AllocsPerRun(100, func() { _, _ = m.Do(t.Context(), Request{}) }); each > 0 {
		t.Errorf("%v allocations", each)
	}
	for _, weights := range [][]float64{nil, {1}, {1, 2, 0}, {1, 2, -1}} {
		if _, err := Mix(targets, weights, 1); err == nil {
			t.Errorf("%v: taken", weights)
		}
	}
}

// slow is an observer that is slower than the requests.
type slow struct {
	n, most int
	until   int
}

func (s *slow) Observe(_, _ time.Duration, records []Record) (bool, error) {
	s.n, s.most = s.n+len(records), max(s.most, len(records))
	time.Sleep(50 * time.Millisecond)
	return s.n >= s.until, nil
}
func (s *slow) Ended(End) {}

// Records that nobody has seen are bounded; a run that is ended while a worker waits for
// room ends all the same.
func TestSlowObserver(t *testing.T) {
	nothing := TargetFunc(func(context.Context, Request) (Result, error) { return Result{}, nil })
	s := &slow{until: 5 * mostKept}
	end, err := Run(t.Context(), nothing, Options{Workers: 2, Poll: time.Millisecond, Clock: NewPlainClock()}, s)
	if err != nil || end.Ending != Enough || s.n < s.until {
		t.Errorf("%+v, %v after %d", end, err, s.n)
	}
	if s.most > 2*(mostKept+2) {
		t.Errorf("%d records at once", s.most)
	}
}
