package measure

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/npuctl/npuctl/internal/suggest"
)

// Goal is a limit of a latency: p99 of no more than 50 ms.
type Goal struct {
	Figure string        `json:"figure"` // mean, max or a percentile
	Limit  time.Duration `json:"limit_ns"`
	// Errors is the share of requests that may be without an answer.
	Errors float64 `json:"errors"`
}

func (g Goal) String() string { return fmt.Sprintf("%s=%v", g.Figure, g.Limit) }

// ParseGoal reads a goal as it is typed: p99=50ms, and with p99=50ms,errors=0.1% the share
// of requests that may fail (else none may).
func ParseGoal(text string) (Goal, error) {
	first, second, hasErrors := strings.Cut(text, ",")
	name, value, found := strings.Cut(first, "=")
	if !found {
		return Goal{}, fmt.Errorf("%q is no goal: give p99=50ms", text)
	}
	names := append(PercentileNames(), "mean", "max")
	if name = strings.TrimSpace(name); !slices.Contains(names, name) {
		return Goal{}, fmt.Errorf("there is no figure %q; %s", name, suggest.Text(name, names))
	}
	limit, err := time.ParseDuration(strings.TrimSpace(value))
	if err != nil || limit <= 0 {
		return Goal{}, fmt.Errorf("%q is no time above 0, such as 50ms", value)
	}
	g := Goal{Figure: name, Limit: limit}
	if !hasErrors {
		return g, nil
	}
	share, isErrors := strings.CutPrefix(strings.TrimSpace(second), "errors=")
	if !isErrors {
		return Goal{}, fmt.Errorf("%q is no part of a goal: give errors=0.1%%", second)
	}
	g.Errors, err = ParseShare(share)
	return g, err
}

// ParseShare reads a share: 5% or 0.05.
func ParseShare(text string) (float64, error) {
	digits, isPercent := strings.CutSuffix(strings.TrimSpace(text), "%")
	share, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(share >= 0) {
		return 0, fmt.Errorf("%q is no share: give 5%% or 0.05", text)
	}
	if isPercent {
		share /= 100
	}
	if share > 1 {
		return 0, fmt.Errorf("%q is more than all; give 5%% or 0.05", text)
	}
	return share, nil
}

// Verdict is whether a goal was met.
type Verdict string

// The verdicts.
const (
	Holds  Verdict = "holds"
	Misses Verdict = "misses"
	// Void is that of a level that says nothing of the target: the generator was late.
	Void Verdict = "void"
)

// Judge says whether a level meets a goal, whether that is sure, and why.
//
// It is sure when the whole confidence interval is on one side of the limit and the level
// was stable. A target that is overloaded or fails more than it may misses the goal
// whatever the latencies of the requests that it answered.
func (g Goal) Judge(l *Level) (v Verdict, sure bool, why string) {
	value, _ := l.Latency.Value(g.Figure)
	limit := milliseconds(g.Limit)
	interval, known := l.Latency.Intervals[g.Figure]
	switch {
	case l.Overloaded:
		return Misses, true, l.OverloadReason
	case l.Requests > 0 && l.ErrorRate > g.Errors:
		return Misses, true, fmt.Sprintf("%.3g %% of the requests were not answered", 100*l.ErrorRate)
	case !l.Valid:
		return Void, false, l.Invalid
	case value > limit:
		return Misses, known && interval[0] > limit, fmt.Sprintf("%s is %.4g ms", g.Figure, value)
	}
	return Holds, known && interval[1] <= limit && l.Stable, fmt.Sprintf("%s is %.4g ms", g.Figure, value)
}
