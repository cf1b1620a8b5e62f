package executor

import "time"

// Batcher groups the requests of one model. It is a function of what it was told and
// when: the queue, the policy and the time decide, nothing else.
//
// Three things are in its hands: the queue; the open batch, which still takes requests;
// and the line of batches that are ready, in which the open batch may already stand. An
// instance that is free takes the first of the line, and from then on that batch is
// closed. The batcher looks at its queue when something happened that may matter to it,
// and says with NextWake when it wants to look next.
type Batcher struct {
	rules *rules
	queue queue
	late  deadlines
	open  *Batch
	ready line
	// taken are batches that instances have, and that wait for a stream.
	taken line
	pool  []*Batch
	idle  int // instances without a batch
	total int // all instances

	doze doze
	// wakeAt is when it looks again, whatever happens.
	wakeAt time.Duration
	// wanted is how many items must wait before an arrival is worth a look.
	wanted int
}

// doze is why the batcher does not look at its queue.
type doze uint8

const (
	// resting: an arrival wakes it, if it may matter.
	resting doze = iota
	// noSlot: enough batches are ready; an instance that takes one wakes it.
	noSlot
	// blocked: the next request does not go with the open batch; anything wakes it.
	blocked
)

// newBatcher makes a batcher for a number of instances, which are all idle.
func newBatcher(r *rules, instances int) *Batcher {
	b := &Batcher{rules: r, queue: queue{rules: r}, idle: instances, total: instances, wakeAt: never}
	b.open = b.newBatch()
	return b
}

func (b *Batcher) newBatch() *Batch {
	if n := len(b.pool); n > 0 {
		last := b.pool[n-1]
		b.pool = b.pool[:n-1]
		return last
	}
	return &Batch{}
}

// recycle takes a batch back that nobody needs any more.
func (b *Batcher) recycle(done *Batch) {
	done.reset()
	b.pool = append(b.pool, done)
}

// arrive takes a request in. It says whether there was room.
func (b *Batcher) arrive(now time.Duration, r *Request) bool {
	if !b.rules.Dynamic {
		alone := b.newBatch()
		r.Joined = now
		alone.add(r)
		alone.queued = true
		b.ready.push(alone)
		return true
	}
	if !b.queue.push(now, r) {
		return false
	}
	if r.expires {
		b.late.push(r)
	}
	if b.doze == blocked || b.doze == resting && b.hasSlot() && b.mattersNow() {
		b.look(now)
	}
	return true
}

// mattersNow says whether a look at the queue can change anything. Where shapes must be
// equal every arrival may; otherwise it takes as many items as the next preferred size
// still lacks.
func (b *Batcher) mattersNow() bool {
	return b.rules.ComparesShapes || b.open.full || b.open.closed || b.queue.items >= b.wanted
}

// hasSlot says whether one more batch may be made ready. Ahead of time that is two for
// each instance; where requests must not leave the queue before they run, only as many as
// instances are waiting for.
func (b *Batcher) hasSlot() bool {
	if b.rules.prefetches {
		return b.ready.len() < 2*b.total
	}
	return b.idle > b.ready.len()
}

// nudge has the batcher look at its queue.
func (b *Batcher) nudge(now time.Duration) {
	if b.rules.Dynamic {
		b.look(now)
	}
}

// look makes batches until there is nothing to do but wait.
func (b *Batcher) look(now time.Duration) {
	for {
		if b.open.full || b.open.closed {
			b.renew()
		}
		b.wakeAt = never
		if b.queue.size == 0 {
			b.doze = resting
			if !b.open.queued {
				b.wanted = 0 // nothing waits that an arrival would have to join
			}
			return
		}
		if !b.hasSlot() {
			b.doze = noSlot
			return
		}
		v := b.decide(now)
		if v.waits {
			b.doze, b.wakeAt = resting, v.until
			return
		}
		if v.count == 0 && !b.open.full {
			b.doze = blocked
			return
		}
		b.fill(now, v.count)
	}
}

// renew opens another batch.
func (b *Batcher) renew() {
	if !b.open.queued && !b.open.closed {
		b.recycle(b.open)
	}
	b.open = b.newBatch()
	b.wanted = 0
}

// verdict is what a look at the queue comes to: so many requests go into the open batch
// now, or the batcher waits.
type verdict struct {
	count int
	waits bool
	until time.Duration
}

// decide walks over the queue and applies the rules of the dynamic batcher.
//
// The rules in short. A request joins while the batch stays within the limit and the
// class is the same. Reaching a preferred size sends at once, as does anything that
// keeps the next request out. Otherwise the oldest request waits up to the delay, and
// then all of them go, whatever the size. Without a delay nobody waits.
func (b *Batcher) decide(now time.Duration) verdict {
	w := b.gather(now)
	isLate := b.rules.Delay > 0 && w.count > 0 && now-w.oldest >= b.rules.Delay
	if w.bestItems > 0 && !isLate {
		if b.rules.Delay == 0 {
			b.open.full = true
		}
		return verdict{count: w.bestCount}
	}
	if w.count == 0 {
		return verdict{}
	}
	items := b.open.Items + w.items
	if w.ends || items >= b.rules.largest {
		b.open.full = true
		return verdict{count: w.count}
	}
	if isLate || b.rules.Delay == 0 {
		return verdict{count: w.count}
	}
	b.wanted = max(0, b.rules.preferredAbove(items)-b.open.Items)
	if !b.open.full && b.open.Items > 0 && !b.rules.isPreferred(b.open.Items) {
		return verdict{count: w.count} // what waits for an instance anyway may as well grow
	}
	return verdict{waits: true, until: min(after(w.oldest, b.rules.Delay), w.deadline)}
}

// gathered is what a walk over the queue found.
type gathered struct {
	count, items int
	// bestCount and bestItems are the largest start of it that makes a preferred size.
	bestCount, bestItems int
	oldest, deadline     time.Duration
	ends                 bool // the next request does not go in
}

// gather walks over the requests that may go into the open batch.
func (b *Batcher) gather(now time.Duration) gathered {
	w := gathered{oldest: never, deadline: never}
	class, isFirst := b.open.Class, len(b.open.Requests) == 0
	for c := b.queue.walk(now); c.next != nil; c.advance() {
		r := c.next
		if isFirst {
			class, isFirst = r.Class, false
		} else if b.keepsOut(&w, r, class) {
			w.ends = true
			break
		}
		w.count++
		w.items += r.items
		w.oldest, w.deadline = min(w.oldest, r.Arrived), min(w.deadline, r.deadline)
		if b.rules.isPreferred(b.open.Items + w.items) {
			w.bestCount, w.bestItems = w.count, w.items
		}
	}
	return w
}

// keepsOut says whether a request has no place in the open batch.
//
// What exceeds the largest preferred size marks the point before it as the best one, if
// there was none. That point may be 0, when the batch holds that size already and waits
// for an instance; then it counts as none, and the request goes in after all. So a batch
// may come to have one request more than the largest preferred size.
func (b *Batcher) keepsOut(w *gathered, r *Request, class Class) bool {
	items := b.open.Items + w.items + r.items
	if items > b.rules.largest && w.bestItems == 0 {
		w.bestCount, w.bestItems = w.count, w.items
		b.open.full = true
	}
	if items > b.rules.limit {
		return true
	}
	if b.rules.compares && r.Class != class {
		b.open.differs = true
		return true
	}
	return false
}

// fill moves requests from the head of the queue to the open batch and puts that into
// the line.
func (b *Batcher) fill(now time.Duration, count int) {
	c := b.queue.walk(now)
	for range count {
		r := c.next
		c.advance()
		b.leave(r)
		r.Joined = now
		b.open.add(r)
	}
	if count > 0 && !b.open.queued {
		b.open.queued = true
		b.ready.push(b.open)
	}
}

// leave takes a request out of the queue.
func (b *Batcher) leave(r *Request) {
	b.late.remove(r)
	b.queue.remove(r)
}

// take gives an idle instance the first batch of the line, and puts it among those that
// are taken. It says whether there was one.
//
// With a delay, batches behind it that have waited longer than that are joined to it as
// long as they fit. One that was looked at and does not fit takes no more requests.
func (b *Batcher) take(now time.Duration) bool {
	if b.idle == 0 || b.ready.len() == 0 {
		return false
	}
	first := b.ready.pop()
	first.closed = true
	for b.rules.Dynamic && b.rules.Delay > 0 && b.rules.limit > 1 && !first.differs && b.ready.len() > 0 {
		next := b.ready.first()
		if next.differs || now-next.oldest <= b.rules.Delay {
			break
		}
		next.closed = true
		if first.Items+next.Items > b.rules.limit || b.rules.compares && next.Class != first.Class {
			break
		}
		b.ready.pop()
		b.join(first, next)
	}
	b.idle--
	first.taken = true
	b.taken.push(first)
	return true
}

// start gives the first of the batches that are taken, of which there must be one: it
// runs from now on.
func (b *Batcher) start() *Batch {
	first := b.taken.pop()
	for _, r := range first.Requests {
		r.state = stateRunning
	}
	return first
}

// join moves the requests of a batch to the one before it.
func (b *Batcher) join(into, from *Batch) {
	oldest := into.oldest // a batch keeps the age that it had
	for _, r := range from.Requests {
		into.add(r)
	}
	into.oldest = oldest
	if from != b.open {
		b.recycle(from)
		return
	}
	// The open batch is given up at the next look.
	clear(from.Requests)
	from.Requests, from.Items, from.queued, from.closed = from.Requests[:0], 0, false, false
	from.full = true
}

// expire gives the next request that waited too long and is refused, nil when there is
// none. It has left the queue.
func (b *Batcher) expire(now time.Duration) *Request {
	if len(b.late) == 0 || b.late[0].deadline > now {
		return nil
	}
	r := b.late[0]
	b.leave(r)
	return r
}

// cancel takes a request out of the queue or out of a batch that is ready. It says
// whether that was possible: one that runs cannot be taken back.
func (b *Batcher) cancel(r *Request) bool {
	switch r.state {
	case stateWaiting:
		b.leave(r)
		return true
	case stateReady:
		b.takeBack(r)
		return true
	}
	return false
}

// takeBack takes a request out of its batch, and the batch out of its line when it was
// the only one. An instance that had it is idle again.
func (b *Batcher) takeBack(r *Request) {
	from := r.batch
	from.remove(r)
	if len(from.Requests) > 0 {
		return
	}
	if from.taken {
		b.taken.drop(from)
		b.idle++
	} else {
		b.ready.drop(from)
	}
	from.queued = false
	if from == b.open {
		from.full = true // the next look opens another
		return
	}
	b.recycle(from)
}

// all gives the requests that wait or are in batches that do.
func (b *Batcher) all() (list []*Request) {
	for _, l := range b.queue.levels {
		for _, half := range []*Request{l.waiting.first, l.delayed.first} {
			for r := half; r != nil; r = r.next {
				list = append(list, r)
			}
		}
	}
	for _, l := range []*line{&b.taken, &b.ready} {
		for _, batch := range l.batches[l.head:] {
			list = append(list, batch.Requests...)
		}
	}
	return list
}

// nextWake is when the batcher must be called again.
func (b *Batcher) nextWake() time.Duration {
	t := b.wakeAt
	if len(b.late) > 0 {
		t = min(t, b.late[0].deadline)
	}
	return t
}

// line holds batches in their order. Its space is used again.
type line struct {
	batches []*Batch
	head    int
}

func (l *line) len() int      { return len(l.batches) - l.head }
func (l *line) first() *Batch { return l.batches[l.head] }

func (l *line) push(b *Batch) {
	if l.head > 32 && l.head*2 > len(l.batches) {
		n := copy(l.batches, l.batches[l.head:])
		clear(l.batches[n:])
		l.batches, l.head = l.batches[:n], 0
	}
	l.batches = append(l.batches, b)
}

func (l *line) pop() *Batch {
	b := l.batches[l.head]
	l.batches[l.head] = nil
	l.head++
	return b
}

// drop takes a batch out of the middle.
func (l *line) drop(b *Batch) {
	for i := l.head; i < len(l.batches); i++ {
		if l.batches[i] == b {
			copy(l.batches[i:], l.batches[i+1:])
			l.batches[len(l.batches)-1] = nil
			l.batches = l.batches[:len(l.batches)-1]
			return
		}
	}
}
