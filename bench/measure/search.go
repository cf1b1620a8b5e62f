package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Search looks for the highest rate at which a goal is met: it doubles or halves the rate
// until one holds and one misses, and then bisects.
type Search struct {
	Goal Goal
	// Start is the first rate that is tried; 0 is 10 a second.
	Start float64
	// Lowest and Highest are the ends of the search; 0 is Start/1024 and 1e6.
	Lowest, Highest float64
	// Precision is how near the highest rate that holds and the lowest that misses are in
	// the end, as a share; 0 is 0.02.
	Precision float64
	// Attempts is how often a rate is measured at most, as long as its verdict is not
	// sure; 0 is 3.
	Attempts int
	// Measure measures a rate. From one attempt, from 0, to the next it should take
	// longer: twice the time and count.
	Measure func(ctx context.Context, rate float64, attempt int) (*Level, error)
	// Journal, when set, holds the trials of a search that was ended before.
	Journal *Journal
	// Progress, when set, is told of each trial.
	Progress func(Trial)
}

// Trial is a rate that was measured.
type Trial struct {
	Rate    float64    `json:"rate"`
	Attempt int        `json:"attempt"`
	Verdict Verdict    `json:"verdict"`
	Sure    bool       `json:"sure"`
	Reason  string     `json:"reason"`
	Value   float64    `json:"value_ms"`
	Range   [2]float64 `json:"interval_ms"` // both 0 when there are too few values
	// Throughput is answers a second.
	Throughput float64 `json:"throughput"`
}

// SearchResult is what a search found.
type SearchResult struct {
	Goal string `json:"goal"`
	// Rate is the highest that held, 0 when none did; Misses the lowest that did not, 0
	// when all held up to the end of the search.
	Rate   float64 `json:"rate"`
	Misses float64 `json:"misses"`
	// Sure is true when the verdicts of both were.
	Sure   bool    `json:"sure"`
	Reason string  `json:"reason"`
	Trials []Trial `json:"trials"`
}

func (s *Search) complete() error {
	for _, d := range []struct {
		into    *float64
		without float64
	}{{&s.Start, 10}, {&s.Highest, 1e6}, {&s.Precision, 0.02}} {
		if *d.into == 0 {
			*d.into = d.without
		}
	}
	if s.Lowest == 0 {
		s.Lowest = s.Start / 1024
	}
	if s.Attempts == 0 {
		s.Attempts = 3
	}
	if !(s.Lowest > 0 && s.Lowest <= s.Start && s.Start <= s.Highest) || s.Highest > 1e9 {
		return fmt.Errorf("a search from %v, between %v and %v requests a second, is none", s.Start, s.Lowest, s.Highest)
	}
	if s.Precision < 0.001 || s.Precision > 1 {
		return errors.New("the precision of a search is a share from 0.001 to 1")
	}
	return nil
}

// Do searches. When the context ends, what was found so far is given with its error.
func (s Search) Do(ctx context.Context) (*SearchResult, error) {
	if err := s.complete(); err != nil {
		return nil, err
	}
	b := bracket{low: 0, high: math.Inf(1)}
	result := &SearchResult{Goal: s.Goal.String(), Trials: []Trial{}}
	var void *Trial
	for rate := s.Start; rate > 0; rate = s.next(&b) {
		trial, err := s.try(ctx, rate, result)
		if err != nil {
			return b.sumUp(result, void), err
		}
		if trial.Verdict == Void {
			void = trial
		}
		b.narrow(trial)
	}
	return b.sumUp(result, void), nil
}

// bracket is between which rates the answer lies.
type bracket struct {
	low, high         float64 // holds, and does not
	lowSure, highSure bool
}

func (b *bracket) narrow(t *Trial) {
	if t.Verdict == Holds {
		b.low, b.lowSure = t.Rate, t.Sure
	} else {
		b.high, b.highSure = t.Rate, t.Sure
	}
}

// next is the next rate; 0 when the search is over.
func (s *Search) next(b *bracket) float64 {
	switch {
	case math.IsInf(b.high, 1):
		if b.low >= s.Highest {
			return 0
		}
		return min(s.Highest, 2*b.low)
	case b.low == 0:
		if b.high <= s.Lowest {
			return 0
		}
		return max(s.Lowest, b.high/2)
	case b.high/b.low <= 1+s.Precision:
		return 0
	}
	rate := roundRate(math.Sqrt(b.low * b.high))
	if rate <= b.low || rate >= b.high {
		return 0
	}
	return rate
}

// roundRate keeps four digits: nobody asks for 1,234.567 requests a second.
func roundRate(rate float64) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(rate, 'g', 4, 64), 64)
	return rounded
}

// try measures a rate until its verdict is sure, or often enough.
func (s *Search) try(ctx context.Context, rate float64, result *SearchResult) (*Trial, error) {
	for attempt := 0; ; attempt++ {
		trial, known := s.Journal.trial(rate, attempt)
		if !known {
			level, err := s.Measure(ctx, rate, attempt)
			if err != nil {
				return nil, fmt.Errorf("measure %.6g requests a second: %w", rate, err)
			}
			trial = s.judge(rate, attempt, level)
			if err := s.Journal.keep(trial); err != nil {
				return nil, err
			}
		}
		result.Trials = append(result.Trials, trial)
		if s.Progress != nil {
			s.Progress(trial)
		}
		if trial.Sure || attempt+1 >= s.Attempts {
			return &trial, nil
		}
	}
}

func (s *Search) judge(rate float64, attempt int, l *Level) Trial {
	t := Trial{Rate: rate, Attempt: attempt, Range: l.Latency.Intervals[s.Goal.Figure], Throughput: l.Throughput}
	t.Value, _ = l.Latency.Value(s.Goal.Figure)
	t.Verdict, t.Sure, t.Reason = s.Goal.Judge(l)
	return t
}

func (b *bracket) sumUp(r *SearchResult, void *Trial) *SearchResult {
	r.Rate, r.Sure = b.low, b.lowSure
	if math.IsInf(b.high, 1) {
		r.Reason = "it held at every rate that was tried"
		return r
	}
	r.Misses, r.Sure = b.high, b.highSure && (b.lowSure || b.low == 0)
	switch {
	case void != nil && void.Rate == b.high:
		r.Reason = fmt.Sprintf("at %.6g/s the load could not be made: %s", void.Rate, void.Reason)
	case b.low == 0:
		r.Reason = "it held at no rate that was tried"
	default:
		r.Reason = fmt.Sprintf("held at %.6g/s, missed at %.6g/s", b.low, b.high)
	}
	return r
}
