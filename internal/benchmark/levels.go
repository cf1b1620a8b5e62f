package benchmark

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/npuctl/npuctl/bench/load"
	"github.com/npuctl/npuctl/bench/measure"
	"github.com/npuctl/npuctl/bench/report"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/terminal"
)

// The kinds of open loops.
const (
	Constant = "constant"
	Poisson  = "poisson"
)

// Load says which loads are made, one after the other.
type Load struct {
	// Concurrency are numbers of clients, Rates requests a second: one of the two, or
	// neither with Ramp or Trace. Nothing at all is one client.
	Concurrency []int
	Rates       []float64
	// Arrivals is how requests of a rate come: [Constant] or [Poisson]; "" is constant.
	Arrivals string
	// RampFrom and RampTo are the rates of a load that goes evenly from one to the other in
	// Duration.
	RampFrom, RampTo float64
	// Trace is a file of times, in milliseconds, played Speed times as fast; 0 is 1.
	Trace string
	Speed float64
	// InFlight is the most requests under way in an open loop; 0 is [DefaultInFlight].
	InFlight int

	// Each level warms up for Warmup, and then goes on until Duration and MinRequests are
	// reached and, with UntilStable, it is stable, but no longer than MaxDuration and
	// MaxRequests. A MaxDuration of 0 is Duration where nothing else is waited for, and
	// [mostDurations] of it otherwise.
	Warmup, Duration, MaxDuration time.Duration
	MinRequests, MaxRequests      int64
	UntilStable                   bool
	// Deadline is how late an answer may be to count for the goodput; 0 is any.
	Deadline time.Duration
	Seed     uint64
}

// DefaultInFlight is the most requests under way in an open loop.
const DefaultInFlight = 256

// mostClients bounds clients and requests in flight.
const mostClients = 1 << 16

// check refuses loads that contradict themselves.
func (l Load) check(searches bool) error {
	kinds := 0
	for _, is := range []bool{len(l.Concurrency) > 0, len(l.Rates) > 0, l.Trace != "", l.RampTo > 0} {
		if is {
			kinds++
		}
	}
	switch {
	case kinds > 1:
		return fault.New(fault.Usage, "--concurrency, --rate, --ramp and --trace are four kinds of load").With("give one of them")
	case searches && (kinds > 1 || len(l.Concurrency) > 0 || l.Trace != "" || l.RampTo > 0 || len(l.Rates) > 1):
		return fault.New(fault.Usage, "--slo searches for a rate").With("leave out --concurrency, --ramp and --trace; one --rate is where it begins")
	case l.MaxDuration > 0 && l.MaxDuration < l.Duration:
		return fault.New(fault.Usage, "--max-duration %s is shorter than --duration %s", l.MaxDuration, l.Duration)
	case l.InFlight < 0 || l.InFlight > mostClients:
		return fault.New(fault.Usage, "--in-flight %d: give 1 to %d", l.InFlight, mostClients)
	}
	for _, n := range l.Concurrency {
		if n < 1 || n > mostClients {
			return fault.New(fault.Usage, "--concurrency %d: give 1 to %d", n, mostClients)
		}
	}
	return nil
}

// level is one load.
type level struct {
	settings measure.Settings
	schedule load.Schedule // nil for a closed loop
}

// mostDurations is for how many times its duration a level may be waited for.
const mostDurations = 6

// settings are those that all levels share.
func (b *bench) settings(w *workload) measure.Settings {
	l := &b.Load
	longest := l.MaxDuration
	switch {
	case longest > 0:
	case l.UntilStable || l.MinRequests > 0:
		longest = mostDurations * l.Duration
	default:
		longest = l.Duration
	}
	return measure.Settings{
		WarmTime: l.Warmup, MinTime: l.Duration, MinCount: l.MinRequests, MaxTime: longest, MaxCount: l.MaxRequests,
		WaitStable: l.UntilStable, Stability: measure.DefaultStability(), Limits: measure.DefaultLimits(), Deadline: l.Deadline,
		Gears: w.gears, Kinds: w.kinds,
	}
}

// plan makes the levels.
func (b *bench) plan(w *workload) (levels []level, err error) {
	l := &b.Load
	inFlight := l.InFlight
	if inFlight == 0 {
		inFlight = DefaultInFlight
	}
	open := func(rate float64, kind string, s load.Schedule) {
		settings := b.settings(w)
		settings.Mode, settings.Workers, settings.Rate, settings.Arrivals = measure.Open, inFlight, rate, kind
		levels = append(levels, level{settings, s})
	}
	switch {
	case l.Trace != "":
		times, err := readTrace(l.Trace)
		if err != nil {
			return nil, err
		}
		speed := l.Speed
		if speed == 0 {
			speed = 1
		}
		s, err := load.Trace(times, speed)
		if err != nil {
			return nil, fault.New(fault.Usage, "--trace %s: %w", l.Trace, err)
		}
		open(0, "trace", s)
	case l.RampTo > 0:
		s, err := load.Ramp(l.RampFrom, l.RampTo, l.Warmup+l.Duration)
		if err != nil {
			return nil, fault.New(fault.Usage, "--ramp: %w", err)
		}
		open(0, "ramp", s)
	case len(l.Rates) > 0:
		for _, rate := range l.Rates {
			s, kind, err := l.schedule(rate)
			if err != nil {
				return nil, err
			}
			open(rate, kind, s)
		}
	default:
		for _, clients := range b.clients() {
			settings := b.settings(w)
			settings.Mode, settings.Workers = measure.Closed, clients
			levels = append(levels, level{settings: settings})
		}
	}
	return levels, nil
}

func (b *bench) clients() []int {
	if len(b.Load.Concurrency) == 0 {
		return []int{1}
	}
	return b.Load.Concurrency
}

// schedule makes the times of a rate.
func (l *Load) schedule(rate float64) (s load.Schedule, kind string, err error) {
	if l.Arrivals == Poisson {
		s, err = load.Poisson(rate, l.Seed)
	} else {
		s, err = load.Constant(rate)
	}
	if err != nil {
		return nil, "", fault.New(fault.Usage, "--rate %g: %w", rate, err)
	}
	if l.Arrivals == Poisson {
		return s, Poisson, nil
	}
	return s, Constant, nil
}

// mostTimes bounds the requests of a trace.
const mostTimes = 10_000_000

// readTrace reads times in milliseconds: the first column of a CSV file, with or without a
// line of names, as `npuctl simulate --arrivals` takes it.
func readTrace(path string) ([]time.Duration, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fault.New(fault.Input, "--trace: %w", err)
	}
	defer file.Close()
	table := csv.NewReader(file)
	table.FieldsPerRecord, table.Comment, table.ReuseRecord = -1, '#', true
	var times []time.Duration
	for first := true; ; first = false {
		cells, err := table.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fault.New(fault.Input, "--trace %s: %w", path, err)
		}
		at, err := strconv.ParseFloat(strings.TrimSpace(cells[0]), 64)
		line, _ := table.FieldPos(0)
		switch {
		case err != nil && first:
			continue // the names of the columns
		case err != nil || at < 0 || at > 1e12:
			return nil, fault.New(fault.Input, "--trace %s:%d: %q is no time in milliseconds", path, line, cells[0])
		case len(times) == mostTimes:
			return nil, fault.New(fault.Input, "--trace %s: more than %d requests", path, mostTimes)
		}
		times = append(times, time.Duration(at*float64(time.Millisecond)))
	}
	if len(times) == 0 {
		return nil, fault.New(fault.Input, "--trace %s holds no times", path)
	}
	slices.Sort(times)
	return times, nil
}

// measure verifies, if that is wanted, and makes the loads.
func (b *bench) measure(ctx context.Context, w *workload) error {
	if err := b.verify(ctx, w); err != nil {
		return err
	}
	if b.Goal != nil {
		return b.search(ctx, w)
	}
	levels, err := b.plan(w)
	if err != nil {
		return err
	}
	if err := w.prepare(levels); err != nil {
		return err
	}
	if err := b.begin(); err != nil {
		return err
	}
	for i, l := range levels {
		name := l.settings.Name()
		if len(levels) > 1 {
			name = fmt.Sprintf("level %d of %d, %s", i+1, len(levels), name)
		}
		found, err := b.level(ctx, w, l, name)
		if found != nil {
			b.levels = append(b.levels, found)
		}
		if err != nil {
			return errors.Join(err, b.report())
		}
	}
	return b.report()
}

// prepare makes room for the clients of the largest level.
func (w *workload) prepare(levels []level) error {
	most := 1
	for _, l := range levels {
		most = max(most, l.settings.Workers)
	}
	return w.ready(most)
}

// level makes one load.
func (b *bench) level(ctx context.Context, w *workload, l level, name string) (*measure.Level, error) {
	recorder, err := measure.NewRecorder(l.settings)
	if err != nil {
		return nil, fault.New(fault.Usage, "%w", err)
	}
	recorder.Progress = func(p measure.Progress) { b.say("%s: %s", name, progressText(p)) }
	var more []load.Observer
	if b.folder != nil {
		records, err := b.folder.Level(l.settings)
		if err != nil {
			return nil, err
		}
		defer records.Close()
		more = append(more, records)
	}
	found, err := recorder.Run(ctx, w.Target, l.schedule, nil, more...)
	var known *fault.Error
	if err != nil && ctx.Err() == nil && !errors.As(err, &known) {
		err = fault.New(fault.Missing, "keep the records: %w", err) // nothing else of a run fails
	}
	return found, err
}

func progressText(p measure.Progress) string {
	if p.Warm {
		return "warming up"
	}
	text := fmt.Sprintf("%s, %s requests, %.1f/s", p.Elapsed.Round(time.Second), terminal.Count(p.Requests), p.Rate)
	if p.Errors > 0 {
		text += fmt.Sprintf(", %s errors", terminal.Count(p.Errors))
	}
	if p.Stable {
		text += ", stable"
	}
	return text
}

// report puts the levels together.
func (b *bench) report() error {
	r := report.New(b.result.Provenance, b.levels)
	r.Search, r.Comparison = b.result.Search, b.result.Comparison
	b.result = r
	return b.finish()
}

// harmless is which part of a goal the generator may be late.
const harmless = 10

// defaultStart is the rate at which a search begins, a second.
const defaultStart = 10

// fewestRequests is how many requests a level of the search has at least, and firstRequests
// how many the first has where nobody says at which rate to begin: enough for an interval
// of p99.
const (
	fewestRequests = 20
	firstRequests  = 400
)

// search looks for the highest rate at which the goal holds.
func (b *bench) search(ctx context.Context, w *workload) error {
	l := &b.Load
	inFlight := l.InFlight
	if inFlight == 0 {
		inFlight = DefaultInFlight
	}
	if err := w.ready(inFlight); err != nil {
		return err
	}
	if err := b.begin(); err != nil {
		return err
	}
	search := measure.Search{Goal: *b.Goal, Start: defaultStart}
	if len(l.Rates) > 0 {
		search.Start = l.Rates[0]
	}
	// Of fewer requests than these a level says nothing, and of p99 little.
	search.Lowest = fewestRequests / b.settings(w).MaxTime.Seconds()
	if len(l.Rates) == 0 {
		search.Start = max(search.Start, firstRequests/b.settings(w).MaxTime.Seconds())
	}
	search.Start = max(search.Start, search.Lowest)
	if b.Out != "" {
		journal, err := measure.OpenJournal(filepath.Join(b.Out, "search.jsonl"), map[string]any{"goal": b.Goal.String(), "model": b.sum, "options": b.Options})
		if err != nil {
			return fault.New(fault.Input, "%w", err)
		}
		defer journal.Close()
		search.Journal = journal
	}
	rates := []float64{}
	search.Measure = func(ctx context.Context, rate float64, attempt int) (*measure.Level, error) {
		s, kind, err := l.schedule(rate)
		if err != nil {
			return nil, err
		}
		settings := b.settings(w)
		settings.Mode, settings.Workers, settings.Rate, settings.Arrivals = measure.Open, inFlight, rate, kind
		// What the generator is late is in the latency: a small share of the goal does no harm.
		settings.Limits.Lateness = max(settings.Limits.Lateness, b.Goal.Limit/harmless)
		if attempt > 0 {
			settings = settings.Longer(attempt)
		}
		found, err := b.level(ctx, w, level{settings, s}, fmt.Sprintf("trying %.1f/s", rate))
		if found != nil {
			b.levels, rates = append(b.levels, found), append(rates, rate)
		}
		return found, err
	}
	result, err := search.Do(ctx)
	b.result.Search = result
	if err := errors.Join(err, b.report()); err != nil {
		return err
	}
	if i := slices.Index(rates, result.Rate); i >= 0 {
		b.result.SetMain(i)
		if err := b.finish(); err != nil {
			return err
		}
	}
	if result.Rate == 0 {
		return fault.New(fault.Goal, "--slo %s: it held at no rate: %s", b.Goal, result.Reason)
	}
	return nil
}
