package generate

import (
	"fmt"
	"math"
	"time"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/fault"
)

// Queue is what happens to requests that wait for a batch. The zero value is the
// server's own way: one queue without end, first come first served.
type Queue struct {
	// Priorities is how many levels there are, 1 being the most urgent; DefaultPriority
	// is that of requests without one (0 is the least urgent).
	Priorities, DefaultPriority int
	// Timeout is how long a request may wait, and Action what happens then: reject or
	// delay ("" is reject). AllowOverride lets requests ask for less.
	Timeout       time.Duration
	Action        string
	AllowOverride bool
	// MaxSize is how many requests may wait; 0 is any number.
	MaxSize int
	// PreserveOrdering has answers come in the order of the requests.
	PreserveOrdering bool
}

// timeoutActions are the words of Queue.Action.
var timeoutActions = map[string]configgen.TimeoutAction{"": configgen.TimeoutReject, "reject": configgen.TimeoutReject, "delay": configgen.TimeoutDelay}

// Bounds of what can be meant of a queue.
const (
	mostPriorities = 100
	mostWaiting    = 1 << 20
	longestTimeout = time.Hour
)

// asksBatching says whether anything is asked of how requests are grouped.
func (j *Job) asksBatching() bool {
	return j.Preferred != nil || j.MaxQueueDelay > 0 || j.Queue != Queue{}
}

func (j *Job) checkQueue() error {
	asked, q := &j.asked.queue, &j.Queue // with what the standing config has
	_, isAction := timeoutActions[q.Action]
	switch {
	case asked.Priorities < 0 || asked.Priorities > mostPriorities:
		return fault.New(fault.Usage, "--priority-levels %d: give 1 to %d", asked.Priorities, mostPriorities)
	case asked.DefaultPriority < 0 || asked.DefaultPriority > q.Priorities:
		return fault.New(fault.Usage, "--default-priority %d: there are %d levels (--priority-levels)", asked.DefaultPriority, q.Priorities)
	case asked.MaxSize < 0 || asked.MaxSize > mostWaiting:
		return fault.New(fault.Usage, "--max-queue-size %d: give 1 to %d", asked.MaxSize, mostWaiting)
	case asked.Timeout < 0 || asked.Timeout > longestTimeout || asked.Timeout%time.Microsecond != 0:
		return fault.New(fault.Usage, "--queue-timeout%s: give a time up to %s, such as 500ms", timeText(asked.Timeout), longestTimeout)
	case !isAction:
		return fault.New(fault.Usage, "--queue-timeout-action %s: give reject or delay", q.Action)
	case asked.Action != "" && q.Timeout == 0:
		return fault.New(fault.Usage, "--queue-timeout-action would be ignored: nothing times out").With("give --queue-timeout")
	case asked.AllowOverride && q.Timeout == 0:
		return fault.New(fault.Usage, "--allow-timeout-override would be ignored: a request can only shorten --queue-timeout").With("give one")
	case asked.PreserveOrdering && q.Priorities > 1:
		return fault.New(fault.Usage, "--preserve-ordering and --priority-levels: the server takes one of them")
	case asked.PreserveOrdering && q.Action == "delay":
		return fault.New(fault.Usage, "--preserve-ordering and --queue-timeout-action delay: the server takes one of them")
	}
	if q.Priorities > 0 && q.DefaultPriority == 0 {
		q.DefaultPriority = q.Priorities
	}
	return nil
}

// adoptQueue takes over what a standing block says of waiting and nobody asks for otherwise, so
// that one setting is checked, written and explained together with the others.
func (j *Job) adoptQueue(d *configgen.DynamicBatching) {
	if j.MaxQueueDelay == 0 {
		j.MaxQueueDelay = microseconds(d.MaxQueueDelay)
	}
	q := &j.Queue
	if q.Priorities == 0 {
		q.Priorities = int(min(d.PriorityLevels, math.MaxInt32))
		if q.DefaultPriority == 0 {
			q.DefaultPriority = int(min(d.DefaultPriority, math.MaxInt32))
		}
	}
	policy := d.DefaultQueuePolicy
	if policy == nil {
		return
	}
	if q.Timeout == 0 {
		q.Timeout = microseconds(policy.DefaultTimeout)
	}
	if q.Action == "" && policy.TimeoutAction == timeoutActions["delay"] {
		q.Action = "delay"
	}
	q.AllowOverride = q.AllowOverride || policy.AllowTimeoutOverride
	if q.MaxSize == 0 {
		q.MaxSize = int(policy.MaxQueueSize)
	}
}

// microseconds is a time; the longest there is for one that is longer.
func microseconds(n uint64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/1000)) * time.Microsecond
}

// policyFields are the fields of the queue's policy that are asked for.
func (q Queue) policyFields() (names []string) {
	for _, f := range []struct {
		isAsked bool
		name    string
	}{
		{q.Action != "", "timeout_action"},
		{q.Timeout > 0, "default_timeout_microseconds"},
		{q.AllowOverride, "allow_timeout_override"},
		{q.MaxSize > 0, "max_queue_size"},
	} {
		if f.isAsked {
			names = append(names, f.name)
		}
	}
	return names
}

// apply writes the queue into a block of dynamic batching, and says why.
func (q Queue) apply(d *configgen.DynamicBatching) (why string) {
	d.PreserveOrdering = q.PreserveOrdering
	d.PriorityLevels, d.DefaultPriority = uint64(q.Priorities), uint64(q.DefaultPriority)
	if q.Priorities > 0 {
		why += fmt.Sprintf(" Priority 1 goes first, and requests without one have %d.", q.DefaultPriority)
	}
	if q.Timeout > 0 || q.MaxSize > 0 {
		d.DefaultQueuePolicy = &configgen.QueuePolicy{
			TimeoutAction: timeoutActions[q.Action], DefaultTimeout: uint64(q.Timeout / time.Microsecond),
			AllowTimeoutOverride: q.AllowOverride, MaxQueueSize: uint32(q.MaxSize),
		}
	}
	if q.Timeout > 0 {
		end := "refused"
		if q.Action == "delay" {
			end = "served after all others"
		}
		why += fmt.Sprintf(" What has waited %s is %s, which the server may notice up to a second late.", q.Timeout, end)
	}
	if q.MaxSize > 0 {
		why += fmt.Sprintf(" More than %d waiting requests are refused.", q.MaxSize)
	}
	return why
}
