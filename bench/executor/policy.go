package executor

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Policy says how requests are grouped and how long they wait. The zero value is a
// server without a dynamic batcher: every request runs alone.
type Policy struct {
	// MaxBatch is max_batch_size: the items of the largest batch, and of the largest
	// request. 0 is a model without a batch axis, whose requests are never grouped.
	MaxBatch int
	// Dynamic is the dynamic batcher. What stands below means nothing without it.
	Dynamic bool
	// Preferred are the sizes, in items, at which a batch is sent at once. Empty means
	// MaxBatch.
	Preferred []int
	// Delay is how long the oldest request of a batch that is forming waits for others.
	Delay time.Duration
	// PreserveOrdering has answers leave in the order in which the requests came.
	PreserveOrdering bool
	// Levels is the number of priorities, of which 1 is the most urgent; 0 means none.
	Levels int
	// DefaultLevel is that of requests that name none, or one that there is not.
	DefaultLevel int
	// Queue is the policy of levels without one of their own.
	Queue QueuePolicy
	// LevelQueue are the policies of single levels.
	LevelQueue map[int]QueuePolicy
	// ComparesShapes is set when the model has an input of open dims that is not ragged:
	// every arrival is then looked at, and only requests of one [Class] share a batch.
	ComparesShapes bool
	// ComparesInputs is set when the model has an optional input: only requests of one
	// [Class] share a batch.
	ComparesInputs bool
}

// QueuePolicy is what holds for requests that wait.
type QueuePolicy struct {
	// MaxSize is how many requests may wait, those included that are delayed; 0 is no
	// limit. Requests that are in a batch already do not count.
	MaxSize int
	// Timeout is how long a request may wait for a batch; 0 is no limit.
	Timeout time.Duration
	// AllowOverride lets a request shorten Timeout. It cannot lengthen it, and where
	// Timeout is 0 it has no effect.
	AllowOverride bool
	// DelayExpired puts a request that waited too long behind the others of its level
	// instead of refusing it.
	DelayExpired bool
}

// Check says what is wrong with a policy.
func (p *Policy) Check() error {
	switch {
	case p.MaxBatch < 0:
		return fmt.Errorf("max_batch_size %d is below 0", p.MaxBatch)
	case p.Delay < 0:
		return fmt.Errorf("the queue delay %v is below 0", p.Delay)
	case p.Levels < 0:
		return fmt.Errorf("%d priority levels are below 0", p.Levels)
	case p.Levels > 0 && (p.DefaultLevel < 1 || p.DefaultLevel > p.Levels):
		return fmt.Errorf("the default priority level %d is not in 1 … %d", p.DefaultLevel, p.Levels)
	case p.Levels > 1 && p.PreserveOrdering:
		return fmt.Errorf("preserve_ordering and %d priority levels exclude each other", p.Levels)
	}
	for _, size := range p.Preferred {
		if size < 1 || size > p.MaxBatch {
			return fmt.Errorf("the preferred batch size %d is not in 1 … %d", size, p.MaxBatch)
		}
	}
	return p.checkQueues()
}

func (p *Policy) checkQueues() error {
	for level, q := range p.LevelQueue {
		if p.Levels > 0 && (level < 1 || level > p.Levels) {
			return fmt.Errorf("the queue policy of level %d: levels are 1 … %d", level, p.Levels)
		}
		if err := q.check(p.PreserveOrdering); err != nil {
			return fmt.Errorf("the queue policy of level %d: %w", level, err)
		}
	}
	if err := p.Queue.check(p.PreserveOrdering); err != nil {
		return fmt.Errorf("the default queue policy: %w", err)
	}
	return nil
}

func (q QueuePolicy) check(preservesOrder bool) error {
	switch {
	case q.MaxSize < 0:
		return fmt.Errorf("the queue size %d is below 0", q.MaxSize)
	case q.Timeout < 0:
		return fmt.Errorf("the timeout %v is below 0", q.Timeout)
	case preservesOrder && q.DelayExpired && q.Timeout > 0:
		return fmt.Errorf("preserve_ordering and delaying what waited too long exclude each other")
	}
	return nil
}

// rules is a policy in the form that the batcher asks.
type rules struct {
	Policy
	limit     int   // items of the largest batch, at least 1
	preferred []int // ascending, each once
	largest   int   // the largest preferred size, 0 when there is none
	// prefetches says that batches may be made before an instance is free: not where
	// the queue has limits that a request must meet while it still waits.
	prefetches bool
	compares   bool
}

func newRules(p Policy) *rules {
	r := &rules{Policy: p, limit: max(1, p.MaxBatch), compares: p.ComparesShapes || p.ComparesInputs}
	r.preferred = slices.Compact(slices.Sorted(slices.Values(p.Preferred)))
	if len(r.preferred) == 0 && p.MaxBatch > 0 {
		r.preferred = []int{p.MaxBatch}
	}
	if n := len(r.preferred); n > 0 {
		r.largest = r.preferred[n-1]
	}
	q := p.Queue
	r.prefetches = p.Levels == 0 && q.Timeout == 0 && !q.AllowOverride && q.MaxSize == 0
	return r
}

// Level gives the level that a request is queued in: the one it asks for, or the default
// one. It is 0 where there are none.
func (p *Policy) Level(asked int) int {
	switch {
	case !p.Dynamic || p.Levels == 0:
		return 0
	case asked < 1 || asked > p.Levels:
		return p.DefaultLevel
	}
	return asked
}

// queue gives the policy of a level.
func (r *rules) queue(level int) QueuePolicy {
	if own, ok := r.LevelQueue[level]; ok && r.Levels > 0 {
		return own
	}
	return r.Queue
}

// isPreferred says whether a batch of that many items is sent at once.
func (r *rules) isPreferred(items int) bool {
	_, found := slices.BinarySearch(r.preferred, items)
	return found
}

// preferredAbove gives the smallest preferred size above a number of items.
func (r *rules) preferredAbove(items int) int {
	i, _ := slices.BinarySearch(r.preferred, items+1)
	if i == len(r.preferred) {
		return 0
	}
	return r.preferred[i]
}

// never is a time that does not come.
const never = time.Duration(math.MaxInt64)

// after adds to a time without running over its end.
func after(t, d time.Duration) time.Duration {
	if d > never-t {
		return never
	}
	return t + d
}

// deadline is when a request that comes now has waited too long.
func (q QueuePolicy) deadline(now, own time.Duration) time.Duration {
	timeout := q.Timeout
	if q.AllowOverride && own > 0 && own < timeout {
		timeout = own
	}
	if timeout == 0 {
		return never
	}
	return after(now, timeout)
}
