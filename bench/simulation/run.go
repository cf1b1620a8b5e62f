package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/npuctl/npuctl/bench/executor"
)

// Run is a simulation to be made.
type Run struct {
	Setup   executor.Setup
	Traffic *Traffic
	Service *Service
	Seed    uint64
	// OfGE says that npu_ge runs the gears, which neither pads nor splits: batches without
	// a gear of their own are counted. NoPadding has them fail, as they do there.
	OfGE, NoPadding bool
	// Keeps has every execution and request kept in the result.
	Keeps bool
}

// Do runs it. The result is the same for the same Run; the setup must be fresh, as its
// signature is written to.
func (r *Run) Do(ctx context.Context) (*Result, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	m := newMachine(r)
	scheduler, err := executor.NewScheduler(r.Setup, m)
	if err != nil {
		return nil, err
	}
	m.scheduler = scheduler
	if err := m.run(ctx); err != nil {
		return nil, err
	}
	return m.record.result(m), nil
}

func (r *Run) check() error {
	t := r.Traffic
	if err := r.Service.Check(r.Setup.Gears); err != nil {
		return err
	}
	if len(t.Rows) > 0 {
		return nil
	}
	switch {
	case t.Duration <= 0 && t.Requests <= 0:
		return errors.New("nothing says when to stop: give a duration or a number of requests")
	case t.Requests > MostRequests:
		return fmt.Errorf("%d requests: at most %d", t.Requests, MostRequests)
	case t.Requests == 0 && t.Clients == 0 && t.Rate*t.Duration.Seconds() > MostRequests:
		return fmt.Errorf("%.3g requests a second for %v are more than %d", t.Rate, t.Duration, MostRequests)
	case t.Clients > 0 && t.Requests == 0 && r.isInstant():
		return errors.New("clients that are answered at once send without end: give a service time, a think time or a number of requests")
	}
	return nil
}

// isInstant says that a client may go round without time going by.
func (r *Run) isInstant() bool {
	return r.Traffic.Think == 0 && r.Service.Mean(r.Setup.Gears, executor.Chunk{Batch: 1}) == 0
}

// refusedPause is how long a client waits after a refusal, if it does not think longer:
// otherwise it would ask again without end at the same moment.
const refusedPause = time.Millisecond

// machine is the state of a run.
type machine struct {
	*Run
	scheduler *executor.Scheduler
	now       time.Duration
	running   times[*executor.Batch]
	clients   times[int32]
	sent      int
	nextRow   int
	nextAt    time.Duration // of open arrivals
	pool      []*executor.Request
	arrivals  *rand.Rand
	mix       *rand.Rand
	service   *rand.Rand
	record    recorder
	// tooLong is set when something would happen after the end of time.
	tooLong bool
}

// The streams of chance, each of its own, so that other service times do not change the
// arrivals.
const (
	arrivalStream = iota + 1
	mixStream
	serviceStream
)

func newMachine(r *Run) *machine {
	m := &machine{Run: r,
		arrivals: rand.New(rand.NewPCG(r.Seed, arrivalStream)),
		mix:      rand.New(rand.NewPCG(r.Seed, mixStream)),
		service:  rand.New(rand.NewPCG(r.Seed, serviceStream)),
	}
	m.record.start(r)
	for i := range int32(r.Traffic.Clients) {
		m.clients.push(0, i)
	}
	if r.Traffic.Rate > 0 {
		m.nextAt = m.gap()
	}
	return m
}

// gap is the time to the next open arrival.
func (m *machine) gap() time.Duration {
	seconds := 1 / m.Traffic.Rate
	if m.Traffic.Poisson {
		seconds *= m.arrivals.ExpFloat64()
	}
	return duration(seconds * float64(time.Second))
}

// checkEvery is after how many events an interrupt is looked for.
const checkEvery = 1 << 14

func (m *machine) run(ctx context.Context) error {
	for n := 0; m.step(); n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if m.tooLong {
		return fmt.Errorf("requests, or their batches, last longer than %.0f years: give a higher rate, or shorter times", never.Hours()/24/365)
	}
	return nil
}

// step lets the earliest event happen; it says whether there was one.
func (m *machine) step() bool {
	if m.tooLong {
		return false
	}
	arrival, comes := m.arrival()
	wake, wakes := m.scheduler.NextWake()
	done, runs := m.running.first()
	switch {
	case comes && (!wakes || arrival <= wake) && (!runs || arrival <= done):
		m.now = arrival
		m.submit()
	case wakes && (!runs || wake <= done):
		m.now = max(m.now, wake)
		m.scheduler.Wake(m.now)
	case runs:
		m.now = done
		b := m.running.pop()
		m.scheduler.Finish(m.now, b, m.failure(b))
	default:
		return false
	}
	return true
}

// arrival is when the next request comes.
func (m *machine) arrival() (at time.Duration, comes bool) {
	t := m.Traffic
	if len(t.Rows) > 0 {
		if m.nextRow == len(t.Rows) {
			return 0, false
		}
		return t.Rows[m.nextRow].At, true
	}
	if t.Requests > 0 && m.sent >= t.Requests {
		return 0, false
	}
	if at, comes = m.nextAt, t.Rate > 0; !comes {
		at, comes = m.clients.first()
	}
	m.tooLong = m.tooLong || comes && at == never && t.Duration == 0
	return at, comes && (t.Duration == 0 || at < t.Duration)
}

// submit has the next request come.
func (m *machine) submit() {
	r := m.request()
	a := m.next()
	r.Size, r.Level, r.Timeout, r.Tag = a.Size, a.Level, a.Timeout, a.Row
	m.sent++
	kind := &m.Traffic.Kinds[a.Kind]
	m.record.arrived(m.now, a)
	if kind.Err != nil {
		m.scheduler.Refuse(m.now, r, kind.Err)
		return
	}
	r.Class = kind.Class
	m.scheduler.Submit(m.now, r)
}

// next makes the next request.
func (m *machine) next() Arrival {
	t := m.Traffic
	if len(t.Rows) > 0 {
		m.nextRow++
		return t.Rows[m.nextRow-1]
	}
	a := Arrival{At: m.now, Row: m.sent, Size: t.Sizes.draw(m.mix, 1), Kind: t.KindWeights.draw(m.mix, 0)}
	if t.Rate > 0 {
		m.nextAt = after(m.nextAt, m.gap())
	} else {
		m.clients.pop()
	}
	return a
}

func (m *machine) request() *executor.Request {
	if n := len(m.pool); n > 0 {
		r := m.pool[n-1]
		m.pool = m.pool[:n-1]
		return r
	}
	return &executor.Request{}
}

// failure is why a batch fails; nil where it runs.
func (m *machine) failure(b *executor.Batch) error {
	if !m.NoPadding || !m.OfGE || hasOwnGear(b) {
		return nil
	}
	return fmt.Errorf("no gear is exactly what a batch of %d needs, and npu_ge does not pad", b.Items)
}

// hasOwnGear says whether a batch is exactly of the size of a gear, on each of its streams.
func hasOwnGear(b *executor.Batch) bool {
	for i, c := range b.Chunks {
		if c.Padding > 0 || i > 0 && b.Chunks[i-1].Part == c.Part {
			return false
		}
	}
	return true
}

// Start has a batch run for its service time. One that fails does so at once.
func (m *machine) Start(b *executor.Batch) {
	end := after(m.now, m.Service.of(m.Setup.Gears, b, m.service))
	if m.failure(b) != nil {
		end = m.now
	}
	m.tooLong = m.tooLong || end == never
	m.record.started(b, end)
	m.running.push(end, b)
}

// Answer lets the client go on.
func (m *machine) Answer(r *executor.Request, o executor.Outcome) {
	m.record.answered(r, o)
	if m.Traffic.Clients > 0 {
		pause := m.Traffic.Think
		if o != executor.OK {
			pause = max(pause, refusedPause)
		}
		m.clients.push(after(m.now, pause), 0)
	}
	m.pool = append(m.pool, r)
}

// times is a heap of things that happen at a time; of one time the first that was put in
// comes first.
type times[T any] struct {
	list  []timed[T]
	count uint64
}

type timed[T any] struct {
	at    time.Duration
	order uint64
	what  T
}

func (h *times[T]) less(i, j int) bool {
	a, b := &h.list[i], &h.list[j]
	return a.at < b.at || a.at == b.at && a.order < b.order
}

func (h *times[T]) first() (time.Duration, bool) {
	if len(h.list) == 0 {
		return 0, false
	}
	return h.list[0].at, true
}

func (h *times[T]) push(at time.Duration, what T) {
	h.list = append(h.list, timed[T]{at, h.count, what})
	h.count++
	for i := len(h.list) - 1; i > 0 && h.less(i, (i-1)/2); i = (i - 1) / 2 {
		h.list[i], h.list[(i-1)/2] = h.list[(i-1)/2], h.list[i]
	}
}

func (h *times[T]) pop() T {
	what, last := h.list[0].what, len(h.list)-1
	h.list[0] = h.list[last]
	h.list = h.list[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return what
		}
		if child+1 < last && h.less(child+1, child) {
			child++
		}
		if !h.less(child, i) {
			return what
		}
		h.list[i], h.list[child] = h.list[child], h.list[i]
		i = child
	}
}
