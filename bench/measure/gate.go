package measure

import (
	"cmp"
	"errors"
	"fmt"
	"math"
)

// Gate holds levels to those of an earlier run.
type Gate struct {
	Limit  float64 `json:"limit"` // the largest share by which a figure may be worse
	Passed bool    `json:"passed"`
	Checks []Check `json:"checks"`
}

// Check is a figure of a level beside its earlier value.
type Check struct {
	Level  string  `json:"level"`
	Figure string  `json:"figure"`
	Base   float64 `json:"base"`
	Now    float64 `json:"now"`
	// Worse is by which share it is worse; below 0 it is better.
	Worse   float64 `json:"worse"`
	Verdict string  `json:"verdict"`
	Reason  string  `json:"reason"`
}

// The verdicts of a check.
const (
	Kept      = "ok"
	Regressed = "regressed"
	// Unsure is a figure that is worse, with intervals that overlap, or one that was not
	// measured well enough: it does not fail the gate.
	Unsure = "unsure"
)

// mostMoreErrors is by how much the share of errors may grow.
const mostMoreErrors = 0.001

// Against compares levels with earlier ones of the same name. A latency has regressed when
// it is worse by more than limit and its confidence interval is clear of the earlier one,
// a throughput when it is worse by more than limit and no window of the run was as fast as
// one of the baseline.
func Against(base, now []*Level, limit float64) (*Gate, error) {
	g := &Gate{Limit: limit, Passed: true, Checks: []Check{}}
	before := map[string]*Level{}
	for _, l := range base {
		before[l.Name()] = l
	}
	matched := 0
	for _, l := range now {
		if b := before[l.Name()]; b != nil {
			matched++
			g.level(b, l)
		}
	}
	if matched == 0 {
		return nil, errors.New("the baseline has none of the levels that were measured")
	}
	for _, c := range g.Checks {
		g.Passed = g.Passed && c.Verdict != Regressed
	}
	return g, nil
}

func (g *Gate) level(base, now *Level) {
	g.throughput(base, now)
	for _, figure := range []string{"p50", "p99"} {
		g.latency(base, now, figure)
	}
	errorRate := Check{Level: now.Name(), Figure: "error_rate", Base: base.ErrorRate, Now: now.ErrorRate, Worse: now.ErrorRate - base.ErrorRate, Verdict: Kept}
	if errorRate.Worse > mostMoreErrors {
		errorRate.Verdict, errorRate.Reason = Regressed, "more requests fail"
	}
	g.Checks = append(g.Checks, errorRate)
	if now.Overloaded && !base.Overloaded {
		g.Checks = append(g.Checks, Check{Level: now.Name(), Figure: "overloaded", Now: 1, Worse: 1, Verdict: Regressed, Reason: now.OverloadReason})
	}
}

func (g *Gate) throughput(base, now *Level) {
	c := Check{Level: now.Name(), Figure: "throughput", Base: base.Throughput, Now: now.Throughput, Verdict: Kept}
	if base.Throughput > 0 {
		c.Worse = 1 - now.Throughput/base.Throughput
	}
	if c.Worse > g.Limit {
		c.Verdict = Regressed
		if why := cmp.Or(doubt(base, now), throughputOverlaps(base.Windows, now.Windows)); why != "" {
			c.Verdict, c.Reason = Unsure, why
		}
	}
	g.Checks = append(g.Checks, c)
}

func (g *Gate) latency(base, now *Level, figure string) {
	c := Check{Level: now.Name(), Figure: figure, Verdict: Kept}
	c.Base, _ = base.Latency.Value(figure)
	c.Now, _ = now.Latency.Value(figure)
	if c.Base > 0 {
		c.Worse = c.Now/c.Base - 1
	}
	if c.Worse > g.Limit {
		c.Verdict, c.Reason = apart(base.Latency.Intervals, now.Latency.Intervals, figure)
		if !now.Valid || !base.Valid {
			c.Verdict, c.Reason = Unsure, doubt(base, now)
		}
	}
	g.Checks = append(g.Checks, c)
}

// apart says whether a figure's interval lies above the earlier one.
func apart(base, now map[string][2]float64, figure string) (verdict, reason string) {
	before, hadOne := base[figure]
	after, hasOne := now[figure]
	switch {
	case !hadOne || !hasOne:
		return Unsure, "there are too few requests for an interval"
	case after[0] <= before[1]:
		return Unsure, fmt.Sprintf("the intervals overlap: %.4g to %.4g ms, and %.4g to %.4g ms", before[0], before[1], after[0], after[1])
	}
	return Regressed, ""
}

// doubt says why two levels are not to be compared.
func doubt(base, now *Level) string {
	if !base.Valid {
		return "the baseline is not valid: " + base.Invalid
	}
	if !now.Valid {
		return "the run is not valid: " + now.Invalid
	}
	return ""
}

// throughputOverlaps says whether a window of the run was as fast as one of the baseline.
// Without windows there is nothing to tell it by.
func throughputOverlaps(base, now []Window) string {
	if len(base) == 0 || len(now) == 0 {
		return ""
	}
	slowest, fastest := math.Inf(1), 0.0
	for _, w := range base {
		slowest = min(slowest, w.Throughput)
	}
	for _, w := range now {
		fastest = max(fastest, w.Throughput)
	}
	if fastest < slowest {
		return ""
	}
	return fmt.Sprintf("windows overlap: down to %.4g/s, and up to %.4g/s", slowest, fastest)
}
