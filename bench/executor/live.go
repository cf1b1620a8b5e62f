package executor

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/npuctl/npuctl/internal/nap"
)

// Runner runs batches on instances: an engine, as the executor sees it. [Model] is the
// one for package engine.
type Runner interface {
	// Run computes a part of a batch, from the inputs of its requests to their outputs,
	// chunk by chunk: those of [Batch.Chunks] with this number. It is called for one part
	// at a time on each worker, and always from the goroutine of that worker; the parts of
	// a batch run at the same time. It must not keep the batch. An error fails the batch;
	// one that wraps [ErrOutOfService] takes the worker out of service as well.
	Run(b *Batch, part int) error
}

// Starter is a runner that has something to make, and to give back, on the goroutine of
// each worker.
type Starter interface {
	Runner
	// Begin is the first call on a worker's goroutine. When one fails nothing is run.
	Begin(worker, device int) error
	// End is the last, whatever Begin came to.
	End(worker int) error
}

// ErrOutOfService is the error of a worker that can run nothing any more.
var ErrOutOfService = errors.New("out of service")

// ErrClosed is the reason for which a [Live] that is shutting down refuses requests.
var ErrClosed = errors.New("the executor is shutting down")

// Live runs a scheduler in real time, with a goroutine for each worker.
type Live struct {
	runner Runner
	begin  time.Time
	work   []chan task // by worker
	ended  sync.WaitGroup
	ends   []error // what each worker's end came to

	mu        sync.Mutex // of all below
	scheduler *Scheduler
	alarm     *time.Timer
	alarmAt   time.Duration
	napping   bool // a goroutine waits out the last part until the alarm
	inside    int  // calls without an answer
	// answered are requests whose answers are sent when the lock is free again, linked by
	// next: who is woken would only wait for it.
	answered, lastAnswered *Request
	closed                 bool
	empty                  chan struct{} // closed when a closed executor has answered everything
}

// task is a part of a batch for a worker.
type task struct {
	batch *Batch
	part  int
}

// Call is a request of [Live.Do] with its way back. It may be used again and again, for
// one request at a time.
type Call struct {
	Request
	answer chan Outcome
}

// NewCall makes a call.
func NewCall() *Call {
	c := &Call{answer: make(chan Outcome, 1)}
	c.call = c
	return c
}

// NewLive starts an executor. It returns when all workers are ready, or with the reasons
// of those that are not. Close ends it.
func NewLive(s Setup, r Runner) (*Live, error) {
	l := &Live{runner: r, begin: time.Now(), alarmAt: never, empty: make(chan struct{})}
	if s.Streams == 0 && s.StreamsPerBatch > 1 {
		// Every part has a worker, which must be there before any batch is.
		s.Streams = s.evenStreams(1)
	}
	scheduler, err := NewScheduler(s, l)
	if err != nil {
		return nil, err
	}
	l.scheduler = scheduler
	l.alarm = time.AfterFunc(time.Hour, l.wake)
	l.alarm.Stop()
	if err := l.start(s.Workers()); err != nil {
		return nil, errors.Join(err, l.Close(context.Background()))
	}
	return l, nil
}

// start starts the workers, and waits until all are ready.
func (l *Live) start(devices []int) error {
	begun := make([]error, len(devices))
	l.ends = make([]error, len(devices))
	var ready sync.WaitGroup
	ready.Add(len(devices))
	starter, isStarter := l.runner.(Starter)
	for worker, device := range devices {
		in := make(chan task, 1)
		l.work = append(l.work, in)
		l.ended.Go(func() {
			if isStarter {
				begun[worker] = l.guard(func() error { return starter.Begin(worker, device) })
			}
			ready.Done()
			l.serve(worker, in)
			if isStarter {
				l.ends[worker] = l.guard(func() error { return starter.End(worker) })
			}
		})
	}
	ready.Wait()
	return errors.Join(begun...)
}

// now is the time of the scheduler. Under the lock it never goes back.
func (l *Live) now() time.Duration { return time.Since(l.begin) }

// Do has a request run, and waits for its answer. When the context ends first the request
// is cancelled; one that runs already is waited for, as its buffers are in use.
func (l *Live) Do(ctx context.Context, c *Call) Outcome {
	if !l.submit(c) {
		c.Err = ErrClosed
		return Rejected
	}
	if ctx.Done() == nil {
		return <-c.answer
	}
	select {
	case o := <-c.answer:
		return o
	case <-ctx.Done():
		l.cancel(c)
		return <-c.answer
	}
}

func (l *Live) submit(c *Call) bool {
	l.mu.Lock()
	defer l.unlock()
	if l.closed {
		return false
	}
	l.inside++
	l.scheduler.Submit(l.now(), &c.Request)
	l.setAlarm()
	return true
}

func (l *Live) cancel(c *Call) {
	l.mu.Lock()
	defer l.unlock()
	l.scheduler.Cancel(l.now(), &c.Request)
	l.setAlarm()
}

// serve runs what a worker gets.
func (l *Live) serve(worker int, in <-chan task) {
	for t := range in {
		err := l.run(t)
		l.mu.Lock()
		took := l.finish(worker, t.batch, err)
		l.unlock()
		if took < shortRun {
			// Those who have their answers, and all who are ready, come in before this
			// goroutine goes on: what it takes next is a larger batch. Else it and one client
			// would hand over to each other while others wait for the processor.
			runtime.Gosched()
		}
	}
}

// shortRun is a run in which others did not have the time to come in. In longer ones the
// processor is theirs.
const shortRun = 20 * time.Microsecond

// finish ends a part of a batch, and with the last one the batch. It says how long ago that
// began.
func (l *Live) finish(worker int, b *Batch, err error) time.Duration {
	if err != nil {
		if errors.Is(err, ErrOutOfService) {
			l.scheduler.Retire(worker, err)
		}
		if b.err == nil {
			b.err = err
		}
	}
	now := l.now()
	took := now - b.Started
	b.left--
	if b.left == 0 {
		l.scheduler.Finish(now, b, b.err)
		l.setAlarm()
	}
	return took
}

// run has the engine run a part. A panic in it fails the batch, and nothing else.
func (l *Live) run(t task) (err error) {
	defer recoverInto(&err)
	return l.runner.Run(t.batch, t.part)
}

// guard does what an engine might panic in.
func (l *Live) guard(do func() error) (err error) {
	defer recoverInto(&err)
	return do()
}

func recoverInto(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the engine panicked: %v", r)
	}
}

// napSlice is for how long the executor sleeps before it looks whether an alarm has become
// an earlier one.
const napSlice = 50 * time.Microsecond

// wake waits out what is left until the alarm, precisely, and does what is due. Only one
// goroutine does so at a time: it sees to alarms that are set meanwhile, as long as they
// are near.
func (l *Live) wake() {
	l.mu.Lock()
	if l.napping {
		l.mu.Unlock()
		return
	}
	l.napping = true
	for l.alarmAt != never && l.alarmAt-l.now() <= nap.Early {
		left := l.alarmAt - l.now()
		if left <= 0 {
			l.alarmAt = never
			l.scheduler.Wake(l.now())
			l.setAlarm()
		}
		l.unlock()
		if left > 0 {
			nap.Sleep(min(left, napSlice))
		}
		l.mu.Lock()
	}
	l.napping = false
	l.unlock()
}

// setAlarm sets the timer to the next time for which the scheduler asks.
func (l *Live) setAlarm() {
	at, ok := l.scheduler.NextWake()
	switch {
	case at == l.alarmAt:
	case !ok:
		l.alarm.Stop()
		l.alarmAt = never
	default:
		l.alarmAt = at
		if left := at - l.now() - nap.Early; left > 0 || !l.napping {
			l.alarm.Reset(max(0, left))
		}
	}
}

// Start hands the parts of a batch to their workers, which wait for them.
func (l *Live) Start(b *Batch) {
	b.left = b.Parts()
	for part := range b.left {
		l.work[b.Workers[part]] <- task{b, part}
	}
}

// Answer has an answer sent on its way, soon.
func (l *Live) Answer(r *Request, o Outcome) {
	l.inside--
	if l.closed && l.inside == 0 {
		close(l.empty)
	}
	r.outcome = o
	if l.lastAnswered == nil {
		l.answered = r
	} else {
		l.lastAnswered.next = r
	}
	l.lastAnswered = r
}

// unlock ends what was done under the lock, and sends the answers that it came to.
func (l *Live) unlock() {
	r := l.answered
	l.answered, l.lastAnswered = nil, nil
	l.mu.Unlock()
	for r != nil {
		next := r.next // the request is its caller's from the moment of its answer
		r.next = nil
		r.call.answer <- r.outcome
		r = next
	}
}

// Counters gives the counters of the scheduler.
func (l *Live) Counters() Counters {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.scheduler.Counters()
}

// Close refuses new requests, waits until all others are answered, and ends the
// goroutines. When the context ends before, it gives its error, and may be called again;
// else it gives what the ends of the workers came to.
func (l *Live) Close(ctx context.Context) error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		if l.inside == 0 {
			close(l.empty)
		}
	}
	l.mu.Unlock()
	select {
	case <-l.empty:
	case <-ctx.Done():
		return ctx.Err()
	}
	l.mu.Lock()
	l.alarm.Stop()
	work := l.work
	l.work = nil
	l.mu.Unlock()
	for _, in := range work {
		close(in)
	}
	l.ended.Wait()
	ends := l.ends
	l.ends = nil
	return errors.Join(ends...)
}
