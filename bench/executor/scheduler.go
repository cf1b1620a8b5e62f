package executor

import (
	"errors"
	"fmt"
	"time"
)

// Driver does what a [Scheduler] decides. Its methods are called from within the
// scheduler's own, and must not call it back.
type Driver interface {
	// Start has a batch run on its instance. Finish must follow, later.
	Start(b *Batch)
	// Answer ends a request: the only answer that it gets.
	Answer(r *Request, o Outcome)
}

// Setup is everything that a scheduler decides by.
type Setup struct {
	Policy Policy
	// Signature is the inputs of the model. Without one every request fits.
	Signature *Signature
	// Gears are the compiled sizes; nil means that any batch runs as it is.
	Gears *Gears
	// Devices has the device of each instance.
	Devices []int
	// Streams is how many batches a device runs at once; 0 is as many as it has
	// instances. An instance may have its batch before a stream is free: that batch takes
	// no more requests, and starts in its turn.
	Streams int
	// StreamsPerBatch is how many streams, on whatever devices, a batch takes and is split
	// over; 0 is one. The whole batch waits until so many are free.
	StreamsPerBatch int
}

// AtOnce is how many batches can run at once, where instances are spread evenly.
func (s *Setup) AtOnce() int {
	if s.Streams == 0 {
		return len(s.Devices)
	}
	return min(len(s.Devices), s.Streams*len(distinct(s.Devices))/max(1, s.StreamsPerBatch))
}

// Workers gives the device of each worker: what runs a batch, or a part of one, with an
// instance of the engine. There are as many as batches, or parts, can run at once.
func (s *Setup) Workers() (devices []int) {
	each := max(1, s.StreamsPerBatch)
	for _, device := range distinct(s.Devices) {
		here := 0
		for _, d := range s.Devices {
			here += boolToInt(d == device)
		}
		count := here
		switch {
		case s.Streams > 0 && each == 1:
			count = min(here, s.Streams)
		case s.Streams > 0:
			count = min(s.Streams, each*len(s.Devices))
		case each > 1:
			count = s.evenStreams(here)
		}
		for range count {
			devices = append(devices, device)
		}
	}
	return devices
}

// evenStreams is how many streams of a device all instances need, when their batches are
// spread over the devices.
func (s *Setup) evenStreams(here int) int {
	total, devices := len(s.Devices)*s.StreamsPerBatch, len(distinct(s.Devices))
	return max(here, (total+devices-1)/devices)
}

func (s *Setup) check() error {
	switch {
	case len(s.Devices) == 0:
		return errors.New("no instances")
	case s.Streams < 0 || s.StreamsPerBatch < 0:
		return fmt.Errorf("%d streams of a device and %d of a batch: they are not below 0", s.Streams, s.StreamsPerBatch)
	case s.AtOnce() == 0:
		return fmt.Errorf("a batch takes %d streams, and all devices together have %d: it would wait for ever",
			s.StreamsPerBatch, s.Streams*len(distinct(s.Devices)))
	}
	return s.Policy.Check()
}

// The reasons for which requests are refused.
var (
	ErrQueueFull = errors.New("the queue is full")
	ErrTimeout   = errors.New("the request waited longer than its timeout")
	ErrCancelled = errors.New("the request was cancelled")
)

// Scheduler takes requests to their answers. Its methods may not be called by two
// goroutines at once, and the times that they are given must not go back.
type Scheduler struct {
	setup     Setup
	driver    Driver
	batcher   *Batcher
	instances instances
	order     order
	stats     Counters
	serial    int64
	dead      error // why nothing can run any more
}

// Counters count what a scheduler has done. They are those of Triton's statistics.
type Counters struct {
	// Requests by what became of them.
	OK, Rejected, Failed, Cancelled int64
	// Items that were computed, and executions. Chunks are the runs that these took.
	Items, Executions, Chunks int64
	// Elements of inputs that were computed, and those that were padding.
	Elements, Padding int64
}

// NewScheduler makes a scheduler.
func NewScheduler(s Setup, d Driver) (*Scheduler, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if s.Signature != nil {
		s.Policy.ComparesShapes = s.Signature.ComparesShapes()
		s.Policy.ComparesInputs = s.Signature.ComparesInputs()
	}
	return &Scheduler{setup: s, driver: d, batcher: newBatcher(newRules(s.Policy), len(s.Devices)), instances: newInstances(&s)}, nil
}

// Counters gives the counters.
func (s *Scheduler) Counters() Counters { return s.stats }

// Waiting is how many requests wait in the queue, those in batches that are ready not
// counted.
func (s *Scheduler) Waiting() int { return s.batcher.queue.size }

// Idle says how many instances have no batch.
func (s *Scheduler) Idle() int { return s.batcher.idle }

// NextWake is when Wake must be called, if nothing else happens before; ok is false when
// it need not be.
func (s *Scheduler) NextWake() (at time.Duration, ok bool) {
	at = s.batcher.nextWake()
	return at, at != never
}

// Submit takes a request in. It may be refused, or run, before Submit returns. A request
// that Signature.Admit refused must not come here: [Scheduler.Refuse] answers it.
func (s *Scheduler) Submit(now time.Duration, r *Request) {
	r.begin(now)
	r.items = 1
	if s.setup.Policy.MaxBatch > 0 {
		r.items = max(1, r.Size)
	}
	if err := s.unfit(r); err != nil {
		s.answer(now, r, Failed, err)
		return
	}
	if s.dead != nil {
		s.answer(now, r, Failed, s.dead)
		return
	}
	s.expire(now)
	if s.setup.Policy.PreserveOrdering {
		s.order.push(r)
	}
	if !s.batcher.arrive(now, r) {
		s.answer(now, r, Rejected, ErrQueueFull)
		return
	}
	s.dispatch(now)
}

// unfit says why a request can never run.
func (s *Scheduler) unfit(r *Request) error {
	if limit := s.setup.Policy.MaxBatch; limit > 0 && (r.Size < 1 || r.Size > limit) {
		return fmt.Errorf("a request of %d items: the model takes 1 to %d", r.Size, limit)
	}
	if !s.setup.Gears.Fits(r.Class) {
		return fmt.Errorf("no gear is large enough for %s", s.setup.Signature.text(r.Class))
	}
	return nil
}

// Refuse answers a request that does not fit the model.
func (s *Scheduler) Refuse(now time.Duration, r *Request, why error) {
	r.begin(now)
	s.answer(now, r, Failed, why)
}

// Cancel ends a request whose client is gone. One that runs is answered when its batch is
// done; what was computed for it is dropped.
func (s *Scheduler) Cancel(now time.Duration, r *Request) {
	if s.batcher.cancel(r) {
		s.answer(now, r, Cancelled, ErrCancelled)
		s.batcher.nudge(now)
		s.dispatch(now)
		return
	}
	if r.state == stateRunning {
		r.Err = ErrCancelled
	}
}

// Wake does what has become due.
func (s *Scheduler) Wake(now time.Duration) {
	s.expire(now)
	if s.batcher.wakeAt <= now {
		s.batcher.nudge(now)
	}
	s.dispatch(now)
}

// expire refuses what has waited too long.
func (s *Scheduler) expire(now time.Duration) {
	isAny := false
	for r := s.batcher.expire(now); r != nil; r = s.batcher.expire(now) {
		isAny = true
		s.answer(now, r, Rejected, ErrTimeout)
	}
	if isAny {
		s.batcher.nudge(now)
	}
}

// Finish tells that a batch is done, with an error when its run failed. The instance is
// free again in any case, the requests are answered, and the batch is the scheduler's.
func (s *Scheduler) Finish(now time.Duration, b *Batch, err error) {
	if s.instances.release(b.Instance) {
		s.batcher.idle++
	} else {
		s.batcher.total--
	}
	s.count(b)
	for _, r := range b.Requests {
		r.batch = nil
		switch {
		case r.Err == ErrCancelled:
			s.settle(now, r, Cancelled)
		case err != nil:
			r.Err = err
			s.settle(now, r, Failed)
		default:
			s.settle(now, r, OK)
		}
	}
	if err == nil {
		s.stats.Items += int64(b.Items)
	}
	s.batcher.recycle(b)
	if s.dead != nil {
		s.abandon(now)
		return
	}
	s.expire(now)
	s.dispatch(now) // what is ready goes as it is, before the batcher looks again
	s.batcher.nudge(now)
	s.dispatch(now)
}

// Retire takes a worker of a batch that runs out of service: it gets no other. Finish must
// follow as ever. When too few are left for any batch, all requests are answered with the
// reason.
func (s *Scheduler) Retire(worker int, why error) {
	if !s.instances.retire(worker) && s.dead == nil {
		s.dead = fmt.Errorf("nothing can run any more: %w", why)
	}
}

// abandon answers all that waits.
func (s *Scheduler) abandon(now time.Duration) {
	for _, r := range s.batcher.all() {
		if s.batcher.cancel(r) {
			s.answer(now, r, Failed, s.dead)
		}
	}
}

// count adds a batch to the counters. Failed runs count as executions, their items do not.
func (s *Scheduler) count(b *Batch) {
	s.stats.Executions++
	s.stats.Chunks += int64(len(b.Chunks))
	for _, c := range b.Chunks {
		s.stats.Elements += c.Elements
		s.stats.Padding += c.Padding
	}
}

// dispatch gives batches to instances and starts them, as long as there are any,
// instances are idle and streams are free.
func (s *Scheduler) dispatch(now time.Duration) {
	for {
		s.startTaken(now)
		if !s.batcher.take(now) {
			return
		}
		s.batcher.nudge(now)
	}
}

// startTaken starts the batches that instances have, in the order in which they were
// taken, as far as there are streams.
func (s *Scheduler) startTaken(now time.Duration) {
	for s.batcher.taken.len() > 0 {
		instance, ok := s.instances.lease()
		if !ok {
			return
		}
		b := s.batcher.start()
		b.Chunks = s.plan(b)
		b.Instance, b.Device, b.Started = instance, s.instances.devices[instance], now
		b.Workers = append(b.Workers[:0], s.instances.lent[instance]...)
		s.serial++
		b.Serial = s.serial
		for _, r := range b.Requests {
			r.Started = now
		}
		s.driver.Start(b)
	}
}

// plan makes the runs of a batch. Of parts that are not equal the first have one item more.
func (s *Scheduler) plan(b *Batch) []Chunk {
	list, parts := b.Chunks[:0], max(1, s.setup.StreamsPerBatch)
	for part := range min(parts, b.Items) {
		from := len(list)
		items := b.Items / parts
		if part < b.Items%parts {
			items++
		}
		list = s.setup.Gears.Plan(list, b.Class, items)
		for i := range list[from:] {
			list[from+i].Part = part
		}
	}
	return list
}

// settle ends a request that came to its turn: at once, or behind those before it.
func (s *Scheduler) settle(now time.Duration, r *Request, o Outcome) {
	if !s.setup.Policy.PreserveOrdering {
		s.tell(now, r, o)
		return
	}
	r.outcome, r.state = o, stateHeld
	s.release(now)
}

// release answers the requests at the head of the order that are done.
func (s *Scheduler) release(now time.Duration) {
	for first := s.order.first; first != nil && first.state == stateHeld; first = s.order.first {
		s.order.remove(first)
		s.tell(now, first, first.outcome)
	}
}

// answer ends a request that never ran: at once, and whatever holds others up for it no
// longer does.
func (s *Scheduler) answer(now time.Duration, r *Request, o Outcome, why error) {
	r.Started, r.Err = now, why
	if s.order.remove(r) {
		defer s.release(now)
	}
	s.tell(now, r, o)
}

func (s *Scheduler) tell(now time.Duration, r *Request, o Outcome) {
	r.state, r.Ended = stateAnswered, now
	switch o {
	case OK:
		s.stats.OK++
	case Rejected:
		s.stats.Rejected++
	case Failed:
		s.stats.Failed++
	case Cancelled:
		s.stats.Cancelled++
	}
	s.driver.Answer(r, o)
}

// order holds the requests whose answers must leave in the order of arrival.
type order struct{ first, last *Request }

func (o *order) push(r *Request) {
	r.before = o.last
	if o.last != nil {
		o.last.behind = r
	} else {
		o.first = r
	}
	o.last = r
}

// remove takes a request out; it says whether it was there.
func (o *order) remove(r *Request) bool {
	if o.first != r && r.before == nil {
		return false
	}
	if r.before != nil {
		r.before.behind = r.behind
	} else {
		o.first = r.behind
	}
	if r.behind != nil {
		r.behind.before = r.before
	} else {
		o.last = r.before
	}
	r.before, r.behind = nil, nil
	return true
}
