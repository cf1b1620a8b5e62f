package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/npuctl/npuctl/bench/load"
)

// Compare measures two targets in turns, and tests whether they differ.
//
// In each round either target gets the same requests, which of them first by chance: what
// happens to the machine meanwhile happens to both. A round gives one value of each, its
// median latency, and a second one, its throughput, where a round has several requests.
// Values of rounds are compared, not single requests, since requests of one round depend
// on each other.
type Compare struct {
	// Rounds is how many rounds count; 0 is 500. Warm rounds come before; 0 is 10.
	Rounds, Warm int
	// Requests of each target in a round; 0 is 1 for each client.
	Requests int
	// Clients of the closed loop; 0 is 1.
	Clients int
	// Alpha is the share of comparisons of equal targets in which a difference is found;
	// 0 is 0.05.
	Alpha float64
	// Resamples are those of the bootstrap; 0 is 2,000.
	Resamples int
	Seed      uint64
	Clock     load.Clock
	// Progress, when set, is told how many rounds are done.
	Progress func(round, rounds int)
}

// Comparison is what came of it. Ratios are b over a.
type Comparison struct {
	Rounds int `json:"rounds"`
	// Requests of each target in a round, and clients.
	Requests int `json:"requests"`
	Clients  int `json:"clients"`
	// Errors are requests that were not answered; a round that has one is left out.
	ErrorsA int64 `json:"errors_a"`
	ErrorsB int64 `json:"errors_b"`
	// A and B are the latencies of all requests of the rounds that count.
	A          Figures     `json:"a_latency_ms"`
	B          Figures     `json:"b_latency_ms"`
	Latency    Difference  `json:"latency"`
	Throughput *Difference `json:"throughput,omitempty"` // of rounds with several requests
	Alpha      float64     `json:"alpha"`
	// Verdict is no difference, b is slower, or b is faster.
	Verdict string `json:"verdict"`
}

// The verdicts of a comparison.
const (
	NoDifference = "no difference"
	Slower       = "b is slower"
	Faster       = "b is faster"
)

// Difference is how values of rounds differ.
type Difference struct {
	MedianA float64 `json:"median_a"`
	MedianB float64 `json:"median_b"`
	Ratio   float64 `json:"ratio"`
	// Interval holds the ratio with 95 % confidence: a bootstrap over rounds.
	Interval [2]float64 `json:"interval"`
	// P is the probability of such ranks if there is no difference (Mann–Whitney).
	P float64 `json:"p"`
	// Larger is the share of pairs of rounds in which b has the larger value.
	Larger float64 `json:"larger"`
}

func (c *Compare) complete() error {
	c.Clients = max(1, c.Clients)
	for _, d := range []struct {
		into    *int
		without int
	}{{&c.Rounds, 500}, {&c.Warm, 10}, {&c.Requests, c.Clients}, {&c.Resamples, 2000}} {
		if *d.into < 0 {
			return errors.New("a count of the comparison is negative")
		}
		if *d.into == 0 {
			*d.into = d.without
		}
	}
	if c.Alpha == 0 {
		c.Alpha = 0.05
	}
	if !(c.Alpha > 0 && c.Alpha < 1) {
		return fmt.Errorf("alpha %v: give a share between 0 and 1, such as 0.05", c.Alpha)
	}
	if c.Clock == nil {
		c.Clock = load.NewClock()
	}
	return nil
}

// side is one of the two targets, and its rounds.
type side struct {
	target     load.Target
	latencies  []float64 // medians of rounds, in milliseconds
	throughput []float64
	all        Distribution
	errors     int64
	round      roundObserver
}

// Do compares.
func (c Compare) Do(ctx context.Context, a, b load.Target) (*Comparison, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	sides := [2]*side{{target: a}, {target: b}}
	coin := rand.New(rand.NewPCG(c.Seed, 0x636f6d70617265))
	for round := range c.Warm + c.Rounds {
		if err := c.round(ctx, round, &sides, coin.IntN(2)); err != nil {
			return nil, err
		}
		if c.Progress != nil && round >= c.Warm {
			c.Progress(round-c.Warm+1, c.Rounds)
		}
	}
	return c.result(&sides, coin)
}

// round runs both sides, and keeps their values when all was answered.
func (c *Compare) round(ctx context.Context, number int, sides *[2]*side, first int) error {
	whole := true
	for _, i := range [2]int{first, 1 - first} {
		s := sides[i]
		s.round.reset()
		o := load.Options{Workers: c.Clients, Count: int64(c.Requests), Clock: c.Clock}
		begin := int64(number) * int64(c.Requests)
		target := load.TargetFunc(func(ctx context.Context, r load.Request) (load.Result, error) {
			r.Number += begin
			return s.target.Do(ctx, r)
		})
		if _, err := load.Run(ctx, target, o, &s.round); err != nil {
			return fmt.Errorf("round %d: %w", number+1, err)
		}
		if number >= c.Warm {
			s.errors += s.round.errors
		}
		whole = whole && s.round.errors == 0
	}
	if number < c.Warm || !whole {
		return nil
	}
	for _, s := range sides {
		s.keep()
	}
	return nil
}

func (s *side) keep() {
	for _, t := range s.round.latencies {
		s.all.Add(time.Duration(t))
	}
	slices.Sort(s.round.latencies)
	s.latencies = append(s.latencies, median(s.round.latencies)/1e6)
	if lasts := s.round.end - s.round.begin; lasts > 0 {
		s.throughput = append(s.throughput, float64(len(s.round.latencies))/lasts.Seconds())
	}
}

// median is that of sorted values: of an even number, the middle between two.
func median[T int64 | float64](sorted []T) float64 {
	n := len(sorted)
	return (float64(sorted[(n-1)/2]) + float64(sorted[n/2])) / 2
}

// roundObserver keeps the latencies of a round.
type roundObserver struct {
	latencies  []int64
	errors     int64
	begin, end time.Duration
}

func (o *roundObserver) reset() { *o = roundObserver{latencies: o.latencies[:0], begin: -1} }

func (o *roundObserver) Observe(_, _ time.Duration, records []load.Record) (bool, error) {
	for i := range records {
		r := &records[i]
		if o.begin < 0 || r.Sent < o.begin {
			o.begin = r.Sent
		}
		o.end = max(o.end, r.Done)
		if r.Outcome != load.OK {
			o.errors++
			continue
		}
		o.latencies = append(o.latencies, int64(r.SendLatency()))
	}
	return false, nil
}

func (o *roundObserver) Ended(load.End) {}

func (c *Compare) result(sides *[2]*side, coin *rand.Rand) (*Comparison, error) {
	a, b := sides[0], sides[1]
	if len(a.latencies) < 2 {
		return nil, fmt.Errorf("of %d rounds %d were without errors: too few to compare (%d requests of a failed, %d of b)", c.Rounds, len(a.latencies), a.errors, b.errors)
	}
	out := &Comparison{Rounds: len(a.latencies), Requests: c.Requests, Clients: c.Clients, ErrorsA: a.errors, ErrorsB: b.errors,
		A: a.all.Figures(), B: b.all.Figures(), Alpha: c.Alpha, Verdict: NoDifference}
	out.Latency = differ(a.latencies, b.latencies, c.Resamples, coin)
	if c.Requests > 1 && len(a.throughput) == len(b.throughput) && len(a.throughput) > 1 {
		d := differ(a.throughput, b.throughput, c.Resamples, coin)
		out.Throughput = &d
	}
	if out.Latency.P < c.Alpha {
		out.Verdict = Faster
		if out.Latency.Larger > 0.5 {
			out.Verdict = Slower
		}
	}
	return out, nil
}

// differ compares values of rounds.
func differ(a, b []float64, resamples int, random *rand.Rand) (d Difference) {
	d.P, d.Larger = MannWhitney(a, b)
	ratios := make([]float64, resamples)
	drawnA, drawnB := make([]float64, len(a)), make([]float64, len(b))
	for i := range ratios {
		for k := range drawnA {
			round := random.IntN(len(a)) // both sides of it, which shared their moment
			drawnA[k], drawnB[k] = a[round], b[round]
		}
		ratios[i] = ratio(medianOf(drawnB), medianOf(drawnA))
	}
	slices.Sort(ratios)
	at := func(p float64) float64 { return ratios[min(len(ratios)-1, int(p*float64(len(ratios))))] }
	d.Interval = [2]float64{at(0.025), at(0.975)}
	d.MedianA, d.MedianB = medianOf(slices.Clone(a)), medianOf(slices.Clone(b))
	d.Ratio = ratio(d.MedianB, d.MedianA)
	return d
}

// medianOf sorts values, and gives their median.
func medianOf(values []float64) float64 {
	slices.Sort(values)
	return median(values)
}

// ratio of times that are 0 is 1 or as large as a float can be, so that it can be printed.
func ratio(b, a float64) float64 {
	switch {
	case a == b:
		return 1
	case a == 0:
		return math.MaxFloat64
	}
	return b / a
}
