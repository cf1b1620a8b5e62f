package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Runner runs batches on instances: an engine, as the executor sees it.
type Runner interface {
	// Run computes a batch on its instance, from the inputs of its requests to their
	// outputs, chunk by chunk; the parts of a batch may run at the same time. It is called
	// for one batch of an instance at a time, and always from the goroutine of that
	// instance, which an engine may lock to its thread. It must not keep the batch.
	Run(b *Batch) error
}

// ErrClosed is the reason for which a [Live] that is shutting down refuses requests.
var ErrClosed = errors.New("the executor is shutting down")

// Live runs a scheduler in real time, with a goroutine for each instance.
type Live struct {
	runner Runner
	begin  time.Time
	work   []chan *Batch // by instance
	ended  sync.WaitGroup

	mu        sync.Mutex // of all below
	scheduler *Scheduler
	alarm     *time.Timer
	alarmAt   time.Duration
	inside    int // calls without an answer
	closed    bool
	empty     chan struct{} // closed when a closed executor has answered everything
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

// NewLive starts an executor. Close ends it.
func NewLive(s Setup, r Runner) (*Live, error) {
	l := &Live{runner: r, begin: time.Now(), alarmAt: never, empty: make(chan struct{})}
	scheduler, err := NewScheduler(s, l)
	if err != nil {
		return nil, err
	}
	l.scheduler = scheduler
	l.alarm = time.AfterFunc(time.Hour, l.wake)
	l.alarm.Stop()
	for range s.Devices {
		in := make(chan *Batch, 1)
		l.work = append(l.work, in)
		l.ended.Go(func() { l.serve(in) })
	}
	return l, nil
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
	defer l.mu.Unlock()
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
	defer l.mu.Unlock()
	l.scheduler.Cancel(l.now(), &c.Request)
	l.setAlarm()
}

// serve runs the batches of an instance.
func (l *Live) serve(in <-chan *Batch) {
	for b := range in {
		err := l.run(b)
		l.mu.Lock()
		l.scheduler.Finish(l.now(), b, err)
		l.setAlarm()
		l.mu.Unlock()
	}
}

// run has the engine run a batch. A panic in it fails the batch, and nothing else.
func (l *Live) run(b *Batch) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the engine panicked: %v", r)
		}
	}()
	return l.runner.Run(b)
}

func (l *Live) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.alarmAt = never
	l.scheduler.Wake(l.now())
	l.setAlarm()
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
		l.alarm.Reset(max(0, at-l.now()))
		l.alarmAt = at
	}
}

// Start hands a batch to its instance, which waits for it.
func (l *Live) Start(b *Batch) { l.work[b.Instance] <- b }

// Answer sends an answer on its way.
func (l *Live) Answer(r *Request, o Outcome) {
	l.inside--
	if l.closed && l.inside == 0 {
		close(l.empty)
	}
	r.call.answer <- o
}

// Counters gives the counters of the scheduler.
func (l *Live) Counters() Counters {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.scheduler.Counters()
}

// Close refuses new requests, waits until all others are answered, and ends the
// goroutines. When the context ends before, it gives its error, and may be called again.
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
	return nil
}
