package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/npuctl/npuctl/bench/load"
)

// Recorder watches a run and sums it up. It is a [load.Observer].
type Recorder struct {
	settings Settings
	// Progress, when set, is told now and then how far the run is.
	Progress func(Progress)

	from  time.Duration // when the first measured request was due; -1 is none yet
	end   load.End
	ended bool

	outcomes     [len(load.OutcomeNames)]int64
	warm         int64
	reasons      map[string]int64
	latency      Distribution
	send         Distribution
	stages       [load.StageCount]Distribution
	lateness     Distribution
	held         int64
	inconsistent int64
	tally        tally
	early        []answer // of the warm-up, that may have come after from
	batches      map[int64]batchTally
	gears        []gearTally
	kinds        []kindTally
	windows      *windows
	timeline     *timeline
	sample       []load.Record
	seen         int64
	random       *rand.Rand
}

// Progress is how far a run is.
type Progress struct {
	Elapsed  time.Duration // of the run, warm-up included
	Warm     bool          // it is still warming up
	Requests int64         // measured
	Errors   int64
	Rate     float64 // answers a second since the warm-up
	Stable   bool
}

// tally counts answers that came while it was measured.
type tally struct{ answered, items, good int64 }

func (t *tally) add(a answer) {
	t.answered++
	t.items += a.items
	if a.good {
		t.good++
	}
}

type answer struct {
	done  time.Duration
	items int64
	good  bool
}

type batchTally struct {
	runs int64
	time time.Duration
}

type gearTally struct {
	runs, items, elements, padding int64
	time                           time.Duration
}

type kindTally struct {
	requests, errors int64
	latency          Distribution
}

func (k *kindTally) add(x *load.Record) {
	k.requests++
	if x.Outcome != load.OK {
		k.errors++
		return
	}
	k.latency.Add(x.Latency())
}

// The largest numbers of different reasons, batch sizes, gears and kinds that are kept
// apart: a stream of records is a file, and may hold anything.
const (
	mostReasons = 100
	mostSizes   = 1 << 16
	mostNames   = 1 << 12
	mostSample  = 1 << 14
)

// NewRecorder makes a recorder of a level.
func NewRecorder(s Settings) (*Recorder, error) {
	if s.Stability == (Stability{}) {
		s.Stability = DefaultStability()
	}
	if s.Limits == (Limits{}) {
		s.Limits = DefaultLimits()
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	return &Recorder{settings: s, from: -1, reasons: map[string]int64{}, batches: map[int64]batchTally{}, windows: newWindows(&s), timeline: newTimeline(),
		sample: make([]load.Record, 0, mostSample), random: rand.New(rand.NewPCG(1, 2))}, nil
}

// Run measures the level of the settings: it makes the load, watches it and sums it up. An
// open loop needs a schedule; a nil clock is that of the machine. When the context ends,
// what was measured so far is given with its error. More observers see what the recorder
// sees, before it: a [StreamWriter], say.
func (r *Recorder) Run(ctx context.Context, target load.Target, schedule load.Schedule, clock load.Clock, more ...load.Observer) (*Level, error) {
	if (schedule != nil) != (r.settings.Mode == Open) {
		return nil, errors.New("an open loop needs a schedule, and a closed one has none")
	}
	_, err := load.Run(ctx, target, r.settings.options(schedule, clock), observers(append(more, r)))
	return r.Level(), err
}

// observers are several as one: it has seen enough when one of them has.
type observers []load.Observer

func (o observers) Observe(now, settled time.Duration, records []load.Record) (enough bool, err error) {
	for _, each := range o {
		has, err := each.Observe(now, settled, records)
		if err != nil {
			return true, err
		}
		enough = enough || has
	}
	return enough, nil
}

func (o observers) Ended(e load.End) {
	for _, each := range o {
		each.Ended(e)
	}
}

// Observe counts records, and says whether there are enough.
func (r *Recorder) Observe(now, settled time.Duration, records []load.Record) (bool, error) {
	if r.from < 0 {
		r.findBegin(settled, records)
	}
	for i := range records {
		r.add(&records[i])
	}
	r.windows.settle(min(settled, r.until()))
	if r.Progress != nil {
		r.Progress(r.progress(now))
	}
	return !r.ended && r.enough(now), nil
}

// Ended is told how the run ended.
func (r *Recorder) Ended(e load.End) { r.end, r.ended = e, true }

// until is the end of what is measured, as far as it is known.
func (r *Recorder) until() time.Duration {
	switch {
	case !r.ended:
		return math.MaxInt64
	case r.end.Ending == load.Counted || r.end.Ending == load.Scheduled:
		return r.end.Last
	}
	return r.end.At
}

// findBegin looks for the first measured request. While there is none, answers of the
// warm-up before settled cannot have come while it was measured: all due before it is known.
func (r *Recorder) findBegin(settled time.Duration, records []load.Record) {
	for i := range records {
		if x := &records[i]; !x.Warm && (r.from < 0 || x.Intended < r.from) {
			r.from = x.Intended
		}
	}
	first := r.from
	if first < 0 {
		first = settled
	}
	r.early = slices.DeleteFunc(r.early, func(a answer) bool { return a.done <= first })
}

func (r *Recorder) add(x *load.Record) {
	r.timeline.add(x)
	a := answer{done: x.Done, items: int64(x.Items), good: r.settings.Deadline == 0 || x.Latency() <= r.settings.Deadline}
	if x.Warm {
		r.warm++
		if x.Outcome == load.OK && x.Done > r.from {
			r.early = append(r.early, a)
		}
		return
	}
	r.from = min(r.from, x.Intended)
	r.windows.add(x)
	r.outcomes[x.Outcome]++
	if len(r.settings.Kinds) > 1 {
		r.kind(x.Kind).add(x)
	}
	if x.Outcome != load.Unsent {
		r.lateness.Add(x.Lateness())
		if x.Ready > x.Intended && r.settings.Mode == Open {
			r.held++
		}
	}
	if x.Outcome != load.OK {
		r.reason(x.Reason)
		return
	}
	r.answered(x, a)
}

// answered counts a measured request that was answered.
func (r *Recorder) answered(x *load.Record, a answer) {
	if a.done <= r.until() {
		r.tally.add(a)
	}
	r.latency.Add(x.Latency())
	r.send.Add(x.SendLatency())
	for s, t := range x.Stages {
		r.stages[s].Add(t)
	}
	if x.Stages[load.Respond] < 0 {
		r.inconsistent++
	}
	if x.Batch.Lead {
		r.execution(&x.Batch, x.Stages[load.H2D]+x.Stages[load.Compute]+x.Stages[load.D2H])
	}
	r.keep(x)
}

func (r *Recorder) reason(text string) {
	if _, known := r.reasons[text]; !known && len(r.reasons) >= mostReasons {
		text = "other reasons"
	}
	r.reasons[text]++
}

func (r *Recorder) kind(number int32) *kindTally {
	i := min(max(int(number), 0), mostNames)
	for len(r.kinds) <= i {
		r.kinds = append(r.kinds, kindTally{})
	}
	return &r.kinds[i]
}

// execution counts an execution that took a time.
func (r *Recorder) execution(b *load.Batch, lasted time.Duration) {
	if size, known := r.batches[int64(b.Items)]; known || len(r.batches) < mostSizes {
		r.batches[int64(b.Items)] = batchTally{size.runs + 1, size.time + lasted}
	}
	i := min(max(int(b.Gear), 0), mostNames)
	for len(r.gears) <= i {
		r.gears = append(r.gears, gearTally{})
	}
	g := &r.gears[i]
	g.runs++
	g.time += lasted
	g.items += int64(b.Items)
	g.elements += b.Elements
	g.padding += b.Padding
}

// keep keeps a sample of the records, in which each is as likely as any other.
func (r *Recorder) keep(x *load.Record) {
	r.seen++
	if len(r.sample) < mostSample {
		r.sample = append(r.sample, *x)
		return
	}
	if i := r.random.Int64N(r.seen); i < mostSample {
		r.sample[i] = *x
	}
}

// measured is for how long it has been measured.
func (r *Recorder) measured(now time.Duration) time.Duration {
	if r.from < 0 {
		return now - r.settings.WarmTime
	}
	return now - r.from
}

// enough says whether the run may end.
func (r *Recorder) enough(now time.Duration) bool {
	s := &r.settings
	lasts := r.measured(now)
	if s.MaxTime > 0 && lasts >= s.MaxTime {
		return true
	}
	if s.MinTime == 0 && s.MinCount == 0 && !s.WaitStable || r.from < 0 {
		return false
	}
	if lasts < s.MinTime || r.latency.n < s.MinCount {
		return false
	}
	if !s.WaitStable {
		return true
	}
	stable, _ := r.windows.stable()
	return stable
}

func (r *Recorder) progress(now time.Duration) Progress {
	p := Progress{Elapsed: now, Warm: r.from < 0}
	for outcome, n := range r.outcomes {
		p.Requests += n
		if load.Outcome(outcome) != load.OK {
			p.Errors += n
		}
	}
	if lasts := r.measured(now); !p.Warm && lasts > 0 {
		p.Rate = float64(r.tally.answered) / lasts.Seconds()
	}
	p.Stable, _ = r.windows.stable()
	return p
}

// Level sums up what was observed.
func (r *Recorder) Level() *Level {
	l := &Level{Settings: r.settings, Ending: string(r.end.Ending), WarmRequests: r.warm, Reasons: r.reasons, Notes: []string{},
		Latency: r.latency.Figures(), SendLatency: r.send.Figures(), Stages: map[string]Figures{}, StagesAt: map[string]map[string]float64{},
		Windows: append([]Window{}, r.windows.closed...), Timeline: r.timeline.report(), Histogram: r.latency.bars(), Batches: []BatchUse{}, Gears: []GearUse{}, Kinds: []KindUse{}}
	r.counts(l)
	r.rates(l)
	for s, name := range load.StageNames {
		l.Stages[name] = r.stages[s].Figures()
	}
	slices.SortFunc(r.sample, func(a, b load.Record) int {
		return cmp.Or(cmp.Compare(a.Latency(), b.Latency()), cmp.Compare(a.Number, b.Number))
	})
	for _, p := range percentiles {
		if means := cohort(r.sample, p.share); means != nil {
			l.StagesAt[p.name] = means
		}
	}
	r.executions(l)
	r.judge(l)
	return l
}

func (r *Recorder) counts(l *Level) {
	for outcome, n := range r.outcomes {
		l.Requests += n
		*[...]*int64{&l.OK, &l.Rejected, &l.Failed, &l.Cancelled, &l.Unsent}[outcome] = n
	}
	l.Errors = l.Requests - l.OK
	l.ErrorRate = quotient(float64(l.Errors), l.Requests)
	for i := range r.kinds {
		if k := &r.kinds[i]; k.requests > 0 {
			l.Kinds = append(l.Kinds, KindUse{Kind: name(r.settings.Kinds, i), Requests: k.requests, Errors: k.errors, Latency: k.latency.Figures()})
		}
	}
}

// name is an entry of a list of names that may be too short.
func name(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("number %d", i)
}

// rates computes what is a second.
func (r *Recorder) rates(l *Level) {
	begin, until := max(0, r.from), r.until()
	if !r.ended || until <= begin {
		return
	}
	sum := r.tally
	for _, a := range r.early {
		if a.done > begin && a.done <= until {
			sum.add(a)
		}
	}
	seconds := (until - begin).Seconds()
	l.Duration = seconds
	l.Throughput = float64(sum.answered) / seconds
	l.ItemThroughput = float64(sum.items) / seconds
	l.Goodput = float64(sum.good) / seconds
	l.OfferedRate = float64(l.Requests) / seconds
}

func (r *Recorder) executions(l *Level) {
	var items, runs, elements, padding int64
	for _, size := range slices.Sorted(maps.Keys(r.batches)) {
		if size == 0 {
			continue // a target that does not know
		}
		of := r.batches[size]
		l.Batches = append(l.Batches, BatchUse{Size: size, Executions: of.runs, Mean: quotient(milliseconds(of.time), of.runs)})
		items, runs = items+size*of.runs, runs+of.runs
	}
	l.MeanBatch = quotient(float64(items), runs)
	for i, g := range r.gears {
		elements, padding = elements+g.elements, padding+g.padding
		if i > 0 && g.runs > 0 {
			l.Gears = append(l.Gears, GearUse{Gear: name(r.settings.Gears, i-1), Runs: g.runs, Items: g.items, Padding: quotient(float64(g.padding), g.elements), Mean: quotient(milliseconds(g.time), g.runs)})
		}
	}
	l.Padding = quotient(float64(padding), elements)
}

// judge says how far the figures may be believed.
func (r *Recorder) judge(l *Level) {
	l.Stable, l.Instability = r.windows.stable()
	if r.settings.Mode == Open {
		l.Overloaded, l.OverloadReason = r.timeline.backlog(max(0, r.from), min(r.until(), r.end.At))
	}
	l.Generator = Generator{Lateness: r.lateness.Figures(), Held: quotient(float64(r.held), r.lateness.n)}
	if r.end.Processors > 0 && r.end.Last > 0 {
		l.Generator.CPU = r.end.CPU.Seconds() / r.end.Last.Seconds() / float64(r.end.Processors)
	}
	l.Invalid = r.invalid(l)
	l.Valid = l.Invalid == ""
	r.note(l)
}

func (r *Recorder) invalid(l *Level) string {
	limits := r.settings.Limits
	late, most := r.lateness.Percentile(0.99), max(limits.Lateness, time.Duration(limits.LatenessShare*float64(r.latency.Percentile(0.5))))
	switch {
	case l.OK == 0:
		return "no request was answered"
	case late > most:
		return fmt.Sprintf("the generator was late: %v at the 99th percentile, more than %v", late.Round(time.Microsecond), most.Round(time.Microsecond))
	case limits.CPU > 0 && l.Generator.CPU > limits.CPU:
		return fmt.Sprintf("the generator used %.0f %% of the processors, more than %.0f %%", 100*l.Generator.CPU, 100*limits.CPU)
	}
	return ""
}

func (r *Recorder) note(l *Level) {
	if len(l.Latency.TooFew) > 0 && l.OK > 0 {
		l.Notes = append(l.Notes, fmt.Sprintf("%d answers are too few for an interval of %s", l.OK, joined(l.Latency.TooFew)))
	}
	if r.latency.histogram != nil {
		l.Notes = append(l.Notes, fmt.Sprintf("percentiles of more than %d values are right to three digits", mostExact))
	}
	if r.inconsistent > 0 {
		l.Notes = append(l.Notes, fmt.Sprintf("of %d requests the stages that the target told are longer than the latency", r.inconsistent))
	}
	if r.end.MoreUnsent {
		l.Notes = append(l.Notes, fmt.Sprintf("more than %d requests were due and not sent; the rest is not counted", l.Unsent))
	}
	if r.from < 0 {
		l.Notes = append(l.Notes, "the warm-up did not end")
	}
}

// joined writes names as in a sentence.
func joined(names []string) string {
	text := names[0]
	for i, each := range names[1:] {
		separator := ", "
		if i == len(names)-2 {
			separator = " and "
		}
		text += separator + each
	}
	return text
}

// bars is the distribution as a histogram, with bars that grow in width as latencies do.
func (d *Distribution) bars() []Bar {
	bars := []Bar{}
	if d.n == 0 {
		return bars
	}
	const each = 60
	low, high := math.Log(max(1, float64(d.least))), math.Log(max(1, float64(d.most)))
	before := int64(0)
	for i := 1; i <= each; i++ {
		edge := int64(math.Ceil(math.Exp(low + (high-low)*float64(i)/each)))
		if i == each {
			edge = d.most
		}
		count := d.upTo(edge)
		bars = append(bars, Bar{UpTo: float64(edge) / 1e6, Count: count - before})
		before = count
	}
	return bars
}

// upTo is how many values are no larger than t.
func (d *Distribution) upTo(t int64) int64 {
	if t >= d.most {
		return d.n
	}
	if d.histogram == nil {
		d.rank(1) // sorts
		i, _ := slices.BinarySearch(d.exact, t+1)
		return int64(i)
	}
	low, high := int64(0), d.n // the rank of the last value up to t
	for low < high {
		middle := (low + high + 1) / 2
		if int64(d.rank(middle)) <= t {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}
