package executor

import (
	"cmp"
	"slices"
	"time"
)

// list holds requests in their order, linked through them, so that any of them leaves
// without a search.
type list struct{ first, last *Request }

func (l *list) push(r *Request) {
	r.list, r.prev, r.next = l, l.last, nil
	if l.last != nil {
		l.last.next = r
	} else {
		l.first = r
	}
	l.last = r
}

func (l *list) remove(r *Request) {
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		l.first = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	} else {
		l.last = r.prev
	}
	r.list, r.prev, r.next = nil, nil, nil
}

// level is the queue of one priority: what waits in its order, and behind that what
// waited too long where that only delays.
type level struct {
	number  int
	policy  QueuePolicy
	waiting list
	delayed list
	size    int
}

// queue is the queue of a model. The most urgent level comes first.
type queue struct {
	rules  *rules
	levels []*level
	size   int // requests
	items  int
}

// find gives a level, which it makes when there is none yet.
func (q *queue) find(number int) *level {
	if len(q.levels) == 1 && q.levels[0].number == number {
		return q.levels[0]
	}
	i, found := slices.BinarySearchFunc(q.levels, number, func(l *level, n int) int { return cmp.Compare(l.number, n) })
	if !found {
		q.tidy()
		i, _ = slices.BinarySearchFunc(q.levels, number, func(l *level, n int) int { return cmp.Compare(l.number, n) })
		q.levels = slices.Insert(q.levels, i, &level{number: number, policy: q.rules.queue(number)})
	}
	return q.levels[i]
}

// manyLevels is from when on empty levels are dropped: a config may have millions.
const manyLevels = 64

func (q *queue) tidy() {
	if len(q.levels) >= manyLevels {
		q.levels = slices.DeleteFunc(q.levels, func(l *level) bool { return l.size == 0 })
	}
}

// push puts a request at the end of its level, unless that is full.
func (q *queue) push(now time.Duration, r *Request) bool {
	l := q.find(q.rules.Level(r.Level))
	if l.policy.MaxSize > 0 && l.size >= l.policy.MaxSize {
		return false
	}
	r.deadline = l.policy.deadline(now, r.Timeout)
	r.expires = r.deadline != never && !l.policy.DelayExpired
	r.state, r.home = stateWaiting, l
	l.waiting.push(r)
	l.size++
	q.size++
	q.items += r.items
	return true
}

// remove takes a request that waits out of the queue.
func (q *queue) remove(r *Request) {
	r.list.remove(r)
	r.home.size--
	r.home = nil
	q.size--
	q.items -= r.items
}

// delay moves a request behind the others of its level. It has no deadline any more.
func (l *level) delay(r *Request) {
	l.waiting.remove(r)
	l.delayed.push(r)
	r.deadline = never
}

// cursor walks over the requests in the order in which they are served.
type cursor struct {
	queue *queue
	at    int // level
	now   time.Duration
	next  *Request
	// inDelayed is set in the second half of a level.
	inDelayed bool
}

func (q *queue) walk(now time.Duration) cursor {
	c := cursor{queue: q, at: -1, now: now, inDelayed: true}
	c.settle()
	return c
}

// advance goes to the next request.
func (c *cursor) advance() {
	c.next = c.next.next
	c.settle()
}

// settle goes on to a request that may be taken: those that waited too long are put
// behind the others on the way.
func (c *cursor) settle() {
	for {
		if c.next == nil && !c.enterNextList() {
			return
		}
		if c.next == nil {
			continue
		}
		l := c.queue.levels[c.at]
		if c.inDelayed || !l.policy.DelayExpired || c.now < c.next.deadline {
			return
		}
		late := c.next
		c.next = late.next
		l.delay(late)
	}
}

// enterNextList goes to the delayed requests of a level, or to the next level.
func (c *cursor) enterNextList() bool {
	if !c.inDelayed {
		c.inDelayed = true
		c.next = c.queue.levels[c.at].delayed.first
		return true
	}
	if c.at+1 >= len(c.queue.levels) {
		return false
	}
	c.at++
	c.inDelayed = false
	c.next = c.queue.levels[c.at].waiting.first
	return true
}

// deadlines is a heap of the requests that are refused when they waited too long: the
// earliest first, and of those the one that came first.
type deadlines []*Request

func (h deadlines) less(i, j int) bool {
	if h[i].deadline != h[j].deadline {
		return h[i].deadline < h[j].deadline
	}
	return h[i].Arrived < h[j].Arrived
}

func (h deadlines) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapAt, h[j].heapAt = i+1, j+1
}

func (h *deadlines) push(r *Request) {
	*h = append(*h, r)
	r.heapAt = len(*h)
	h.up(len(*h) - 1)
}

func (h *deadlines) remove(r *Request) {
	i, last := r.heapAt-1, len(*h)-1
	if i < 0 {
		return
	}
	h.swap(i, last)
	(*h)[last] = nil
	*h = (*h)[:last]
	r.heapAt = 0
	if i < last {
		h.down(i)
		h.up(i)
	}
}

func (h deadlines) up(i int) {
	for i > 0 && h.less(i, (i-1)/2) {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (h deadlines) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h.less(child+1, child) {
			child++
		}
		if !h.less(child, i) {
			return
		}
		h.swap(i, child)
		i = child
	}
}
