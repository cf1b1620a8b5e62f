package load

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Schedule says when the requests of an open loop are due.
type Schedule interface {
	// Next gives the next time, never before the last one, from the beginning of the run.
	// It gives false when there are no more.
	Next() (time.Duration, bool)
}

// longest is the end of every schedule: some 140 years.
const longest = time.Duration(math.MaxInt64 / 2)

// after is the time of so many seconds.
func after(seconds float64) (time.Duration, bool) {
	if ns := seconds * 1e9; ns < float64(longest) {
		return time.Duration(math.Round(ns)), true
	}
	return 0, false
}

// checkRate refuses what is no rate. A request a year is a rate.
func checkRate(rate float64) error {
	if !(rate > 0) || rate > 1e9 {
		return fmt.Errorf("a rate of %v requests a second: give one above 0, up to 1e9", rate)
	}
	return nil
}

type constant struct{ rate, sent float64 }

// Constant is a request every 1/rate seconds, the first at 0.
func Constant(rate float64) (Schedule, error) { return &constant{rate: rate}, checkRate(rate) }

// Next computes each time from its number, so that no error adds up.
func (c *constant) Next() (time.Duration, bool) {
	at := c.sent / c.rate
	c.sent++
	return after(at)
}

type poisson struct {
	rate, at float64
	random   *rand.Rand
}

// Poisson is requests at random, rate a second on average: the times between them are
// exponential. One seed gives the same times on every run.
func Poisson(rate float64, seed uint64) (Schedule, error) {
	return &poisson{rate: rate, random: rand.New(rand.NewPCG(seed, poissonStream))}, checkRate(rate)
}

// poissonStream keeps the times apart from what else a seed is used for.
const poissonStream = 0x706f6973736f6e

func (p *poisson) Next() (time.Duration, bool) {
	p.at += p.random.ExpFloat64() / p.rate
	return after(p.at)
}

type ramp struct{ from, to, seconds, sent float64 }

// Ramp is a rate that goes evenly from one to another, and ends there.
func Ramp(from, to float64, over time.Duration) (Schedule, error) {
	if over <= 0 {
		return nil, fmt.Errorf("a ramp over %v: give a time above 0", over)
	}
	if err := checkRate(from); err != nil {
		return nil, err
	}
	return &ramp{from: from, to: to, seconds: over.Seconds()}, checkRate(to)
}

// Next solves sent = from·t + (to−from)/(2·over)·t² for t, in the form that is exact when
// the two rates are nearly equal.
func (r *ramp) Next() (time.Duration, bool) {
	rise := (r.to - r.from) / r.seconds
	root := r.from*r.from + 2*rise*r.sent
	if root < 0 {
		return 0, false // a ramp down has sent all it will
	}
	at := 2 * r.sent / (r.from + math.Sqrt(root))
	r.sent++
	if at > r.seconds {
		return 0, false
	}
	return after(at)
}

type trace struct {
	times []time.Duration
	speed float64
}

// Trace is requests at given times, in order, played speed times as fast.
func Trace(times []time.Duration, speed float64) (Schedule, error) {
	if !(speed > 0) || math.IsInf(speed, 0) {
		return nil, fmt.Errorf("a trace played %v times as fast: give a number above 0", speed)
	}
	for i, at := range times {
		if at < 0 || i > 0 && at < times[i-1] {
			return nil, fmt.Errorf("row %d of the trace is before the one above it", i)
		}
	}
	return &trace{times: times, speed: speed}, nil
}

func (t *trace) Next() (time.Duration, bool) {
	if len(t.times) == 0 {
		return 0, false
	}
	at := t.times[0]
	t.times = t.times[1:]
	return after(at.Seconds() / t.speed)
}
