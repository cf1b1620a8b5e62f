package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/npuctl/npuctl/bench/load"
)

// queueing measures a server with exponential service times, 1,000 a second on average, at
// Poisson arrivals: M/M/1.
func queueing(t testing.TB, n int) func(context.Context, float64, int) (*Level, error) {
	return func(_ context.Context, rate float64, attempt int) (*Level, error) {
		schedule, err := load.Poisson(rate, uint64(rate*1000)+uint64(attempt))
		random := rand.New(rand.NewPCG(uint64(attempt), uint64(rate*1000)))
		service := func() time.Duration { return time.Duration(random.ExpFloat64() * 1e6) }
		arrivals := times(t, schedule, err, n<<attempt)
		return levelOf(t, Settings{Mode: Open, Workers: 1 << 15, Rate: rate, Arrivals: "poisson", WarmTime: time.Second}, served(arrivals, service)), nil
	}
}

// In M/M/1 the time of a request is exponential with the rate 1,000 − λ: its p99 is 20 ms
// at λ = 1,000 − ln 100 / 0.02 = 769.7.
func TestSearch(t *testing.T) {
	notUnderRace(t)
	goal, err := ParseGoal("p99=20ms")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Search{Goal: goal, Measure: queueing(t, 40_000)}.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := 1000 - math.Log(100)/0.02
	if got.Rate < want*0.97 || got.Misses > want*1.05 || got.Misses/got.Rate > 1.02001 {
		t.Errorf("holds at %v and misses at %v, want about %.1f", got.Rate, got.Misses, want)
	}
	t.Logf("%+v: %d trials, theory %.1f", got.Reason, len(got.Trials), want)
}

// steps is a target that holds up to a rate. What it gives at each rate is exact.
func steps(holds float64, rates *[]float64) func(context.Context, float64, int) (*Level, error) {
	return func(_ context.Context, rate float64, _ int) (*Level, error) {
		*rates = append(*rates, rate)
		l := &Level{Requests: 1000, OK: 1000, Stable: true, Valid: true}
		l.Latency.P99 = 10
		if rate > holds {
			l.Latency.P99 = 90
		}
		l.Latency.Intervals = map[string][2]float64{"p99": {l.Latency.P99, l.Latency.P99}}
		return l, nil
	}
}

func TestSearchSteps(t *testing.T) {
	goal := Goal{Figure: "p99", Limit: 50 * time.Millisecond}
	for _, c := range []struct {
		name   string
		s      Search
		holds  float64
		rate   float64 // 0 is about holds
		misses float64 // of infinity there are none
		most   int
	}{
		{"above the start", Search{Start: 10}, 777, 0, 0, 16},
		{"below the start", Search{Start: 1000}, 3.3, 0, 0, 20},
		{"at the start", Search{Start: 100}, 100, 0, 0, 9},
		{"never", Search{Start: 1, Lowest: 0.1}, 0.01, 0, 0.1, 6},
		{"always", Search{Start: 100, Highest: 5000}, 1e9, 5000, 0, 8},
		{"finely", Search{Start: 100, Precision: 0.001}, 345.6, 0, 0, 20},
	} {
		var rates []float64
		c.s.Goal, c.s.Measure = goal, steps(c.holds, &rates)
		got, err := c.s.Do(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case c.name == "never":
			if got.Rate != 0 || got.Misses != 0.1 || !got.Sure {
				t.Errorf("%s: %+v", c.name, got)
			}
		case c.name == "always":
			if got.Rate != 5000 || got.Misses != 0 || !got.Sure {
				t.Errorf("%s: %+v", c.name, got)
			}
		case got.Rate > c.holds || got.Misses <= c.holds || got.Misses/got.Rate > 1+max(0.02, c.s.Precision)+1e-9 || !got.Sure:
			t.Errorf("%s: %+v", c.name, got)
		}
		if len(rates) > c.most {
			t.Errorf("%s: %d levels: %v", c.name, len(rates), rates)
		}
	}
}

// A verdict that is not sure is looked for again, up to the number of attempts; a load that
// cannot be made is not the target's fault, and said to be none.
func TestUnsureTrials(t *testing.T) {
	attempts := map[float64]int{}
	unstable := func(_ context.Context, rate float64, attempt int) (*Level, error) {
		attempts[rate]++
		l := &Level{Requests: 100, OK: 100, Valid: rate < 100, Invalid: "the generator was late"}
		l.Stable = attempt == 1
		l.Latency.P50 = 1
		l.Latency.Intervals = map[string][2]float64{"p50": {1, 1}}
		return l, nil
	}
	got, err := Search{Goal: Goal{Figure: "p50", Limit: time.Second}, Start: 40, Measure: unstable}.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if attempts[40] != 2 || attempts[160] != 3 || got.Rate < 95 || got.Rate >= 100 || got.Sure || !strings.Contains(got.Reason, "could not be made") {
		t.Errorf("%v: %+v", attempts, got)
	}
}

func TestJudge(t *testing.T) {
	level := func(change func(*Level)) *Level {
		l := &Level{Requests: 1000, OK: 1000, Stable: true, Valid: true}
		l.Latency.P99, l.Latency.Intervals = 40, map[string][2]float64{"p99": {35, 45}}
		change(l)
		return l
	}
	for _, c := range []struct {
		name   string
		change func(*Level)
		want   Verdict
		sure   bool
	}{
		{"well below", func(*Level) {}, Holds, true},
		{"below, unstable", func(l *Level) { l.Stable = false }, Holds, false},
		{"about the limit, below", func(l *Level) { l.Latency.Intervals["p99"] = [2]float64{35, 55} }, Holds, false},
		{"about the limit, above", func(l *Level) { l.Latency.P99, l.Latency.Intervals["p99"] = 52, [2]float64{48, 60} }, Misses, false},
		{"well above", func(l *Level) { l.Latency.P99, l.Latency.Intervals["p99"] = 70, [2]float64{60, 80} }, Misses, true},
		{"too few", func(l *Level) { l.Latency.Intervals = nil }, Holds, false},
		{"overloaded", func(l *Level) { l.Overloaded = true }, Misses, true},
		{"errors", func(l *Level) { l.ErrorRate = 0.01 }, Misses, true},
		{"errors that are allowed", func(l *Level) { l.ErrorRate = 0.0001 }, Holds, true},
		{"generator", func(l *Level) { l.Valid = false }, Void, false},
	} {
		if v, sure, _ := (Goal{"p99", 50 * time.Millisecond, 0.001}).Judge(level(c.change)); v != c.want || sure != c.sure {
			t.Errorf("%s: %v, sure %v", c.name, v, sure)
		}
	}
}

func TestParseGoal(t *testing.T) {
	for text, want := range map[string]Goal{
		"p99=50ms":              {"p99", 50 * time.Millisecond, 0},
		" mean = 1.5s ":         {"mean", 1500 * time.Millisecond, 0},
		"p999=2ms, errors=0.1%": {"p999", 2 * time.Millisecond, 0.001},
		"max=1h,errors=0.5":     {"max", time.Hour, 0.5},
	} {
		if got, err := ParseGoal(text); err != nil || got.Figure != want.Figure || got.Limit != want.Limit || math.Abs(got.Errors-want.Errors) > 1e-12 {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "p99", "p99=", "p99=50", "p99=-1ms", "p98=1ms", "p99=1ms,error=1%", "p99=1ms,errors=x", "p99=1ms,errors=200%", "p99=1ms,errors=-1", "p99=1ms,errors=nan"} {
		if got, err := ParseGoal(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// A search that is ended goes on where it was: nothing is measured twice, and the result is
// that of one that was not ended.
func TestJournal(t *testing.T) {
	goal := Goal{Figure: "p99", Limit: 50 * time.Millisecond}
	var all []float64
	whole, err := Search{Goal: goal, Measure: steps(333, &all)}.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "search.jsonl")
	killed := errors.New("killed")
	for end := 3; ; end += 3 {
		j, err := OpenJournal(path, goal)
		if err != nil {
			t.Fatal(err)
		}
		had := len(j.Trials())
		var rates []float64
		measure := steps(333, &rates)
		got, err := Search{Goal: goal, Journal: j, Measure: func(ctx context.Context, rate float64, attempt int) (*Level, error) {
			if had+len(rates) >= end {
				return nil, killed
			}
			return measure(ctx, rate, attempt)
		}}.Do(t.Context())
		if !slices.Equal(rates, all[had:had+len(rates)]) {
			t.Fatalf("measured %v of %v after %d", rates, all, had)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if err == nil {
			if fmt.Sprint(got) != fmt.Sprint(whole) {
				t.Errorf("%+v, want %+v", got, whole)
			}
			break
		}
		if !errors.Is(err, killed) || len(got.Trials) != end {
			t.Fatalf("%v after %d trials", err, len(got.Trials))
		}
		cutLastLine(t, path, end)
	}
	if _, err := OpenJournal(path, Goal{Figure: "p50"}); err == nil || !strings.Contains(err.Error(), "another search") {
		t.Errorf("the journal of another search: %v", err)
	}
}

// cutLastLine leaves the file as a process does that is killed while it writes.
func cutLastLine(t *testing.T, path string, end int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if end%2 == 1 {
		if _, err := f.WriteString(`{"rate": 12`); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRefusedJournals(t *testing.T) {
	head := `{"search":"x"}` + "\n"
	for _, c := range []struct {
		text  string
		taken bool
	}{
		{"", true}, {`{"sea`, true}, {head, true}, {head + `{"rate":1,"verdict":"holds"}` + "\n" + "half", true},
		{"something else", false}, {"something else\n", false}, {head + "{\n", false}, {head + `{"rate":1,"verdict":"perhaps"}` + "\n", false},
	} {
		path := filepath.Join(t.TempDir(), "j")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := OpenJournal(path, "x")
		if (err == nil) != c.taken {
			t.Errorf("%q: %v", c.text, err)
		}
		if after, _ := os.ReadFile(path); err != nil && string(after) != c.text {
			t.Errorf("%q was refused, and is now %q", c.text, after)
		}
		if err == nil {
			j.Close()
		}
	}
}

func TestRefusedSearches(t *testing.T) {
	for _, s := range []Search{{Start: -1}, {Start: 10, Lowest: 20}, {Start: 10, Highest: 5}, {Precision: 2}, {Start: math.NaN()}} {
		if _, err := s.Do(t.Context()); err == nil {
			t.Errorf("%+v: taken", s)
		}
	}
}

func TestGate(t *testing.T) {
	level := func(throughput, p50, p99 float64, change func(*Level)) *Level {
		l := &Level{Settings: Settings{Mode: Closed, Workers: 8}, Requests: 1000, OK: 1000, Stable: true, Valid: true, Throughput: throughput}
		l.Latency.P50, l.Latency.P99 = p50, p99
		l.Latency.Intervals = map[string][2]float64{"p50": {p50 * 0.99, p50 * 1.01}, "p99": {p99 * 0.95, p99 * 1.05}}
		l.Windows = []Window{{Throughput: throughput * 0.99}, {Throughput: throughput * 1.01}}
		if change != nil {
			change(l)
		}
		return l
	}
	base := level(100, 10, 20, nil)
	for _, c := range []struct {
		name   string
		now    *Level
		passed bool
		want   string // figure=verdict of what is not ok
	}{
		{"the same", base, true, ""},
		{"better", level(200, 5, 10, nil), true, ""},
		{"a little worse", level(96, 10.4, 20.9, nil), true, ""},
		{"slower", level(90, 10, 20, nil), false, "throughput=regressed"},
		{"slower in the middle", level(100, 11, 20, nil), false, "p50=regressed"},
		{"slower in the tail", level(100, 10, 23, nil), false, "p99=regressed"},
		{"slower in the tail, perhaps", level(100, 10, 22, nil), true, "p99=unsure"},
		{"slower, perhaps", level(93, 10, 20, func(l *Level) { l.Windows[0].Throughput = 105 }), true, "throughput=unsure"},
		{"errors", level(100, 10, 20, func(l *Level) { l.ErrorRate = 0.01 }), false, "error_rate=regressed"},
		{"overloaded", level(100, 10, 20, func(l *Level) { l.Overloaded = true }), false, "overloaded=regressed"},
		{"not valid", level(50, 30, 60, func(l *Level) { l.Valid = false }), true, "throughput=unsure p50=unsure p99=unsure"},
	} {
		g, err := Against([]*Level{base}, []*Level{c.now}, 0.05)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, check := range g.Checks {
			if check.Verdict != Kept {
				found = append(found, check.Figure+"="+check.Verdict)
			}
		}
		if g.Passed != c.passed || strings.Join(found, " ") != c.want {
			t.Errorf("%s: passed %v, %v", c.name, g.Passed, found)
		}
	}
	other := level(1, 1, 1, func(l *Level) { l.Settings.Workers = 9 })
	if _, err := Against([]*Level{base}, []*Level{other}, 0.05); err == nil {
		t.Error("levels of two names: compared")
	}
}
