package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options are what a run does.
type Options struct {
	// Schedule makes an open loop; without one the loop is closed.
	Schedule Schedule
	// Workers are the clients of a closed loop; in an open one the senders, which is the
	// most requests in flight.
	Workers int
	// The warm-up lasts until both are over: requests due before WarmTime, and the first
	// WarmCount ones.
	WarmTime  time.Duration
	WarmCount int64
	// Count is how many requests are sent after the warm-up, at most; 0 is no limit.
	Count int64
	// Poll is how often the observer is asked; 0 is every 20 ms.
	Poll time.Duration
	// Grace is for how long answers are waited for after the end, before their requests
	// are cancelled; 0 is a minute. When the context ended it is half a second at most.
	Grace time.Duration
	// Clock is [NewClock] when nil. Whenever it began, the times of a run count from its
	// own beginning.
	Clock Clock
}

// mostWorkers is how many workers a run may have.
const mostWorkers = 1 << 16

func (o *Options) complete() error {
	if o.Workers < 1 || o.Workers > mostWorkers {
		return fmt.Errorf("%d requests in flight: give 1 to %d", o.Workers, mostWorkers)
	}
	if o.WarmTime < 0 || o.WarmCount < 0 || o.Count < 0 || o.Poll < 0 || o.Grace < 0 {
		return errors.New("a time or a count of the run is negative")
	}
	if o.Poll == 0 {
		o.Poll = 20 * time.Millisecond
	}
	if o.Grace == 0 {
		o.Grace = time.Minute
	}
	if o.Clock == nil {
		o.Clock = NewClock()
	}
	return nil
}

// Observer sees the records of a run as it goes on.
type Observer interface {
	// Observe gets what is over since the last call, in no order. All requests due before
	// settled are among the records by now. The records are the run's: what is kept must
	// be copied. It says whether it has seen enough, and is called by one goroutine. An
	// error ends the run.
	Observe(now, settled time.Duration, records []Record) (enough bool, err error)
	// Ended says how the run ended, when all that was sent is answered. One last call of
	// Observe follows, whose result nobody asks for but its error.
	Ended(End)
}

// settledAll is the settled time of the last call.
const settledAll = time.Duration(math.MaxInt64)

// Ending says why a run ended.
type Ending string

// The endings.
const (
	Enough      Ending = "enough"      // the observer said so
	Counted     Ending = "count"       // all requests that were asked for are sent
	Scheduled   Ending = "schedule"    // the schedule has no more
	Interrupted Ending = "interrupted" // the context ended
)

// End is how a run ended.
type End struct {
	Ending Ending
	// At is when sending ended.
	At time.Duration
	// Last is when the last answer came.
	Last time.Duration
	// MoreUnsent is true when more was due and not sent than there are records of it.
	MoreUnsent bool
	// CPU is the processor time that this process used until Last, on how many processors
	// it could; 0 where the system does not say.
	CPU        time.Duration
	Processors int
}

// mostUnsent is how many records are made of what was not sent.
const mostUnsent = 1 << 20

// run is a run while it lasts.
type run struct {
	Options
	target   Target
	begin    time.Duration   // of the run, by the clock
	requests context.Context // of the requests
	stopped  chan struct{}   // closed when nothing more is to be sent
	stopOnce sync.Once
	cpu      time.Duration // of the process at the beginning
	end      End           // written under stopOnce
	workers  []worker

	number   atomic.Int64 // of the next request
	measured atomic.Int64

	token   chan struct{} // who holds it may use the schedule
	next    atomic.Int64  // nothing that is due before it has yet to be taken
	pending time.Duration // taken from the schedule and not sent; -1 is none
	texts   texts
	records []Record // between two calls of the observer
}

// worker is a client or a sender.
type worker struct {
	id     int
	open   atomic.Int64 // when its request was due; idle when it has none
	record Record       // of that request

	mu      sync.Mutex
	room    sync.Cond // of mu: there is room for a record
	records []Record  // of requests that are over
	spare   []Record
	_       [64]byte // workers do not share cache lines
}

// mostKept is how many records a worker keeps until the observer has seen them. When that
// is slower than the requests, they wait: a generator that is late shows, a machine without
// memory does not.
const mostKept = 1 << 14

const idle = math.MaxInt64

// retryAfter is when a client of a closed loop sends again at the earliest after a request
// that was refused at once.
const retryAfter = time.Millisecond

// Run sends requests until the observer has seen enough, the schedule or the count is at
// its end, or the context ends, and then waits for what is in flight. When the context
// ended, its error is given beside what was done.
func Run(ctx context.Context, target Target, o Options, observer Observer) (End, error) {
	if err := o.complete(); err != nil {
		return End{}, err
	}
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	r := &run{Options: o, target: target, begin: o.Clock.Now(), requests: requests, stopped: make(chan struct{}), cpu: processCPU(),
		workers: make([]worker, o.Workers), token: make(chan struct{}, 1), pending: -1}
	r.token <- struct{}{}
	work := r.client
	if o.Schedule != nil {
		work = r.sender
	}
	var ended sync.WaitGroup
	for i := range r.workers {
		w := &r.workers[i]
		w.id = i
		w.room.L = &w.mu
		w.open.Store(0)
		ended.Go(func() { work(w) })
	}
	over := make(chan struct{})
	go func() { ended.Wait(); close(over) }()
	err := r.watch(ctx, observer, over)
	r.await(ctx, over, cancel)
	lastErr := r.last(observer)
	return r.end, errors.Join(err, lastErr, ctx.Err())
}

// watch asks the observer until the end of sending.
func (r *run) watch(ctx context.Context, observer Observer, over <-chan struct{}) error {
	poll := time.NewTicker(r.Poll)
	defer poll.Stop()
	for {
		select {
		case <-over:
			return nil
		case <-ctx.Done():
			r.stop(Interrupted)
			return nil
		case <-poll.C:
		}
		now, settled := r.now(), r.settled()
		enough, err := observer.Observe(now, min(now, settled), r.collect())
		if enough || err != nil {
			r.stop(Enough)
			return err
		}
	}
}

// impatient is the grace of a run that was interrupted, by somebody who waits.
const impatient = 500 * time.Millisecond

// await waits for the workers; after the grace it has the requests cancelled.
func (r *run) await(ctx context.Context, over <-chan struct{}, cancel func()) {
	patience := r.Grace
	if ctx.Err() != nil {
		patience = min(patience, impatient)
	}
	grace := time.NewTimer(patience)
	defer grace.Stop()
	select {
	case <-over:
	case <-grace.C:
		cancel()
		<-over
	}
}

// last hands over what is left, and what was due and never sent.
func (r *run) last(observer Observer) error {
	r.stop(Enough) // sets the end, if nothing has yet
	records := r.collect()
	r.end.Last = r.end.At
	for i := range r.workers {
		r.end.Last = max(r.end.Last, r.workers[i].record.Done)
	}
	if r.Schedule != nil && r.end.Ending != Counted {
		records = r.unsent(records)
	}
	r.end.CPU, r.end.Processors = processCPU()-r.cpu, runtime.GOMAXPROCS(0)
	observer.Ended(r.end)
	_, err := observer.Observe(r.now(), settledAll, records)
	return err
}

// unsent adds what was due at the end of sending and was not sent.
func (r *run) unsent(records []Record) []Record {
	end := r.end.At
	at, ok := r.pending, true
	if at < 0 {
		at, ok = r.Schedule.Next()
	}
	for n := 0; ok && at < end; at, ok = r.Schedule.Next() {
		if n++; n > mostUnsent {
			r.end.MoreUnsent = true
			break
		}
		number := r.number.Add(1) - 1
		late := Record{Number: number, Worker: -1, Outcome: Unsent, Warm: r.warm(at, number), Intended: at, Ready: end, Sent: end, Done: end, Reason: "no sender was free"}
		late.Complete()
		records = append(records, late)
	}
	return records
}

func (r *run) stop(why Ending) {
	r.stopOnce.Do(func() {
		r.end.Ending, r.end.At = why, r.now()
		close(r.stopped)
		for i := range r.workers { // nobody may collect any more
			w := &r.workers[i]
			w.mu.Lock()
			w.room.Signal()
			w.mu.Unlock()
		}
	})
}

// settled is the time before which all requests are over. The order of the two reads
// matters: a sender opens its request before it moves next on.
func (r *run) settled() time.Duration {
	first := int64(idle)
	if r.Schedule != nil {
		first = r.next.Load()
	}
	for i := range r.workers {
		first = min(first, r.workers[i].open.Load())
	}
	return time.Duration(first)
}

// collect takes the records from the workers.
func (r *run) collect() []Record {
	r.records = r.records[:0]
	for i := range r.workers {
		w := &r.workers[i]
		w.mu.Lock()
		w.records, w.spare = w.spare[:0], w.records
		w.room.Signal()
		w.mu.Unlock()
		r.records = append(r.records, w.spare...)
	}
	return r.records
}

// now is the time since the beginning of the run.
func (r *run) now() time.Duration { return r.Clock.Now() - r.begin }

func (r *run) isStopped() bool {
	select {
	case <-r.stopped:
		return true
	default:
		return false
	}
}

func (r *run) warm(at time.Duration, number int64) bool {
	return at < r.WarmTime || number < r.WarmCount
}

// admit gives a request that is due its number. It gives false when there are enough.
func (r *run) admit(w *worker, at time.Duration) bool {
	if r.Count > 0 && r.measured.Load() >= r.Count {
		return false
	}
	number := r.number.Add(1) - 1
	isWarm := r.warm(at, number)
	if !isWarm && r.measured.Add(1) > r.Count && r.Count > 0 {
		return false
	}
	w.record = Record{Number: number, Worker: int32(w.id), Warm: isWarm, Intended: at}
	return true
}

// client is one client of a closed loop.
func (r *run) client(w *worker) {
	defer w.open.Store(idle)
	at := r.now()
	for !r.isStopped() {
		w.open.Store(int64(at))
		if !r.admit(w, at) {
			r.stop(Counted)
			return
		}
		w.record.Ready = at
		r.send(w)
		at = w.record.Done
		if again := w.record.Sent + retryAfter; w.record.Outcome != OK && at < again {
			select {
			case <-time.After(again - at):
			case <-r.stopped:
				return
			}
			at = r.now()
		}
	}
}

// sender is one sender of an open loop.
func (r *run) sender(w *worker) {
	w.open.Store(idle)
	ready := r.now()
	for r.take(w) {
		w.record.Ready = max(w.record.Intended, ready)
		r.send(w)
		ready = w.record.Done
		w.open.Store(idle)
	}
}

// take waits for the token, and with it for the time of the next request.
func (r *run) take(w *worker) bool {
	select {
	case <-r.stopped:
		return false
	case <-r.token:
	}
	defer func() { r.token <- struct{}{} }()
	if r.isStopped() {
		return false
	}
	at, ok := r.Schedule.Next()
	if !ok {
		r.stop(Scheduled)
		return false
	}
	r.next.Store(int64(at))
	if r.pending = at; !r.Clock.Wait(r.begin+at, r.stopped) {
		return false
	}
	if !r.admit(w, at) {
		r.stop(Counted)
		return false
	}
	r.pending = -1
	w.open.Store(int64(at))
	return true
}

// send sends the request of a worker, and keeps its record.
func (r *run) send(w *worker) {
	record := &w.record
	record.Sent = r.now()
	result, err := r.target.Do(r.requests, Request{Number: record.Number, Worker: w.id})
	record.Done = r.now()
	record.Result = result
	if err != nil {
		record.Outcome, record.Reason = outcome(err), r.texts.of(err)
	}
	record.Complete()
	w.mu.Lock()
	for len(w.records) >= mostKept && !r.isStopped() {
		w.room.Wait()
	}
	w.records = append(w.records, *record)
	w.mu.Unlock()
}

func outcome(err error) Outcome {
	switch {
	case errors.Is(err, ErrRejected):
		return Rejected
	case errors.Is(err, context.Canceled):
		return Cancelled
	}
	return Failed
}

// mostTexts is how many reasons of failure are kept apart.
const mostTexts = 64

// texts keeps each reason once, and not too many.
type texts struct {
	mu    sync.Mutex
	known map[string]string
}

func (t *texts) of(err error) string {
	text := oneLine(err.Error())
	t.mu.Lock()
	defer t.mu.Unlock()
	if same, found := t.known[text]; found {
		return same
	}
	if len(t.known) >= mostTexts {
		return "other reasons"
	}
	if t.known == nil {
		t.known = map[string]string{}
	}
	t.known[text] = text
	return text
}

// mostText is how long a reason may be.
const mostText = 1 << 10

// oneLine makes a text fit for a line of a file: joined errors come on several.
func oneLine(text string) string {
	text = strings.ReplaceAll(text[:min(len(text), mostText)], "\n", "; ")
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text), "?")
}
