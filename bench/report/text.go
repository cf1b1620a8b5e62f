package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/bench/load"
	"github.com/npuctl/npuctl/bench/measure"
	"github.com/npuctl/npuctl/internal/terminal"
)

// WriteText writes the report for a terminal.
func (r *Report) WriteText(w io.Writer, p terminal.Palette) error {
	t := &text{out: w, palette: p}
	t.line("%s", r.title())
	for _, remark := range r.Remarks {
		t.line("  %s", terminal.Clean(remark))
	}
	if r.Verified > 0 {
		t.line("  %s under load equal to those of requests alone", terminal.Counted(int(r.Verified), "answer"))
	}
	t.levels(r.Levels)
	for _, l := range r.Levels {
		t.line("%s", Line(l))
	}
	if r.Level != nil {
		t.stages(r.Level)
		t.gears(r.Level)
	}
	for _, l := range r.Levels {
		t.doubts(l)
	}
	t.search(r.Search)
	t.comparison(r.Comparison)
	t.gate(r.Gate)
	return t.err
}

// title says what was measured, and never without saying that it was emulated.
func (r *Report) title() string {
	parts := []string{}
	for _, part := range []string{r.Model, strings.TrimSpace(r.Engine + " " + r.EngineVersion), r.Device, r.Host.CPU} {
		if part != "" {
			parts = append(parts, terminal.Clean(part))
		}
	}
	title := strings.Join(parts, ", ")
	if r.Emulated {
		title += ", emulated: the times say nothing of a real device"
	}
	return title
}

// Line describes a level on one line, in the form of Triton's perf_analyzer, which people
// and scripts know.
func Line(l *measure.Level) string {
	level := fmt.Sprintf("Concurrency: %d", l.Settings.Workers)
	if l.Settings.Mode == measure.Open {
		level = fmt.Sprintf("Request Rate: %.6g", l.Settings.Rate)
	}
	return fmt.Sprintf("%s, throughput: %.6g infer/sec, latency %.0f usec", level, l.Throughput, 1000*l.Latency.Mean)
}

// text is a report while it is printed.
type text struct {
	out     io.Writer
	palette terminal.Palette
	err     error
}

func (t *text) line(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.out, format+"\n", args...)
	}
}

func (t *text) table(table terminal.Table) {
	if t.err == nil {
		t.err = table.Write(t.out)
	}
}

func (t *text) levels(levels []*measure.Level) {
	table := terminal.Table{Header: []string{"load", "requests/s", "mean ms", "p50", "p90", "p95", "p99", "p99.9", "max", "sent p99", "errors", "verdict"},
		Right: []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}
	for _, l := range levels {
		f := &l.Latency
		row := []string{l.Name(), number(l.Throughput), number(f.Mean)}
		for _, name := range measure.PercentileNames() {
			value, _ := f.Value(name)
			mark := ""
			if slices.Contains(f.TooFew, name) {
				mark = "?"
			}
			row = append(row, number(value)+mark)
		}
		table.Rows = append(table.Rows, append(row, number(f.Max), number(l.SendLatency.P99), terminal.Count(l.Errors), t.verdict(l)))
	}
	if len(levels) > 0 {
		t.table(table)
	}
}

// number writes a figure with four digits, or all before the point; small ones, as of
// microseconds in milliseconds, with three.
func number(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x >= 1000 || x <= -1000:
		return fmt.Sprintf("%.0f", x)
	case x >= 100:
		return fmt.Sprintf("%.1f", x)
	case x >= 10:
		return fmt.Sprintf("%.2f", x)
	case x >= 1:
		return fmt.Sprintf("%.3f", x)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// Verdicts are the words on how far a level may be believed: none is good.
func Verdicts(l *measure.Level) []string {
	words := []string{}
	for _, v := range []struct {
		is   bool
		word string
	}{{!l.Valid, "not valid"}, {l.Overloaded, "overloaded"}, {!l.Stable, "not stable"}, {l.Ending == string(load.Interrupted), "interrupted"}} {
		if v.is {
			words = append(words, v.word)
		}
	}
	return words
}

func (t *text) verdict(l *measure.Level) string {
	words := Verdicts(l)
	switch {
	case len(words) == 0:
		return t.palette.Good("ok")
	case !l.Valid || l.Overloaded:
		return t.palette.Bad(strings.Join(words, ", "))
	}
	return t.palette.Warn(strings.Join(words, ", "))
}

func (t *text) stages(l *measure.Level) {
	if l.OK == 0 {
		return
	}
	shown := []string{}
	for _, p := range []string{"p50", "p95", "p99"} {
		if l.StagesAt[p] != nil {
			shown = append(shown, p)
		}
	}
	table := terminal.Table{Header: []string{"stage, ms (" + l.Name() + ")", "mean"}, Right: []int{1}}
	for i, p := range shown {
		table.Header, table.Right = append(table.Header, "at "+p), append(table.Right, i+2)
	}
	sums := make([]float64, len(shown)+1)
	for _, name := range load.StageNames {
		values := []float64{l.Stages[name].Mean}
		for _, p := range shown {
			values = append(values, l.StagesAt[p][name])
		}
		row := []string{name}
		for i, v := range values {
			sums[i] += v
			row = append(row, number(v))
		}
		table.Rows = append(table.Rows, row)
	}
	footer := []string{"sum"}
	for _, s := range sums {
		footer = append(footer, number(s))
	}
	table.Footer = [][]string{footer}
	t.table(table)
}

func (t *text) gears(l *measure.Level) {
	if l.MeanBatch > 0 {
		t.line("batches: %s items on average", number(l.MeanBatch))
	}
	if len(l.Gears) == 0 {
		return
	}
	table := terminal.Table{Header: []string{"gear", "runs", "items", "padding"}, Right: []int{1, 2, 3}}
	for _, g := range l.Gears {
		table.Rows = append(table.Rows, []string{terminal.Clean(g.Gear), terminal.Count(g.Runs), terminal.Count(g.Items), percent(g.Padding)})
	}
	t.table(table)
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// doubts says why a level may not be believed, and what failed.
func (t *text) doubts(l *measure.Level) {
	for _, d := range []struct{ what, why string }{{"not valid", l.Invalid}, {"overloaded", l.OverloadReason}, {"not stable", l.Instability}} {
		if d.why != "" {
			t.line("%s: %s: %s", l.Name(), t.palette.Warn(d.what), d.why)
		}
	}
	for _, reason := range sortedReasons(l) {
		t.line("%s: %s failed: %s", l.Name(), terminal.Counted(int(l.Reasons[reason]), "request"), terminal.Shorten(terminal.Clean(reason), 200))
	}
	for _, note := range l.Notes {
		t.line("%s: %s", l.Name(), note)
	}
}

// sortedReasons are the reasons of failures, the most frequent first.
func sortedReasons(l *measure.Level) []string {
	reasons := make([]string, 0, len(l.Reasons))
	for reason := range l.Reasons {
		reasons = append(reasons, reason)
	}
	slices.SortFunc(reasons, func(a, b string) int {
		if l.Reasons[a] != l.Reasons[b] {
			return int(l.Reasons[b] - l.Reasons[a])
		}
		return strings.Compare(a, b)
	})
	return reasons
}

func (t *text) search(s *measure.SearchResult) {
	if s == nil {
		return
	}
	table := terminal.Table{Header: []string{"rate", "attempt", "value, ms", "interval", "requests/s", "goal", "why"}, Right: []int{0, 1, 2, 3, 4}}
	for _, trial := range s.Trials {
		verdict := t.palette.Good(terminal.Clean(string(trial.Verdict)))
		if trial.Verdict != measure.Holds {
			verdict = t.palette.Warn(terminal.Clean(string(trial.Verdict)))
		}
		if !trial.Sure {
			verdict += ", not sure"
		}
		interval := "too few"
		if trial.Range != [2]float64{} {
			interval = number(trial.Range[0]) + "–" + number(trial.Range[1])
		}
		table.Rows = append(table.Rows, []string{number(trial.Rate), fmt.Sprint(trial.Attempt + 1), number(trial.Value), interval, number(trial.Throughput), verdict, terminal.Clean(trial.Reason)})
	}
	t.table(table)
	doubt := ""
	if !s.Sure {
		doubt = " (not sure: see the trials)"
	}
	t.line("%s: %s requests a second%s; %s", t.palette.Bold(terminal.Clean(s.Goal)), t.palette.Bold(number(s.Rate)), doubt, terminal.Clean(s.Reason))
}

func (t *text) comparison(c *measure.Comparison) {
	if c == nil {
		return
	}
	t.line("%s: median latency of b over a %.4g, 95 %% between %.4g and %.4g; p = %.3g in %s", t.palette.Bold(terminal.Clean(c.Verdict)),
		c.Latency.Ratio, c.Latency.Interval[0], c.Latency.Interval[1], c.Latency.P, terminal.Counted(c.Rounds, "round"))
	if d := c.Throughput; d != nil {
		t.line("throughput of b over a %.4g, 95 %% between %.4g and %.4g; p = %.3g", d.Ratio, d.Interval[0], d.Interval[1], d.P)
	}
	if c.ErrorsA+c.ErrorsB > 0 {
		t.line("requests that failed: %d of a, %d of b; their rounds are left out", c.ErrorsA, c.ErrorsB)
	}
}

func (t *text) gate(g *measure.Gate) {
	if g == nil {
		return
	}
	table := terminal.Table{Header: []string{"load", "figure", "baseline", "now", "worse by", "verdict"}, Right: []int{2, 3, 4}}
	for _, c := range g.Checks {
		verdict := map[string]func(string) string{measure.Kept: t.palette.Good, measure.Regressed: t.palette.Bad}[c.Verdict]
		if verdict == nil {
			verdict = t.palette.Warn
		}
		words := verdict(terminal.Clean(c.Verdict))
		if c.Reason != "" {
			words += ": " + terminal.Clean(c.Reason)
		}
		table.Rows = append(table.Rows, []string{terminal.Clean(c.Level), terminal.Clean(c.Figure), number(c.Base), number(c.Now), percent(c.Worse), words})
	}
	t.table(table)
	result := t.palette.Good("passed")
	if !g.Passed {
		result = t.palette.Bad("failed")
	}
	t.line("gate %s: nothing may be worse by more than %s", result, percent(g.Limit))
}
