package generate

import (
	"fmt"
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
	q := &j.Queue
	_, isAction := timeoutActions[q.Action]
	switch {
	case q.Priorities < 0 || q.Priorities > mostPriorities:
		return fault.New(fault.Usage, "--priority-levels %d: give 1 to %d", q.Priorities, mostPriorities)
	case q.DefaultPriority < 0 || q.DefaultPriority > q.Priorities:
		return fault.New(fault.Usage, "--default-priority %d: there are %d levels (--priority-levels)", q.DefaultPriority, q.Priorities)
	case q.MaxSize < 0 || q.MaxSize > mostWaiting:
		return fault.New(fault.Usage, "--max-queue-size %d: give 1 to %d", q.MaxSize, mostWaiting)
	case q.Timeout < 0 || q.Timeout > longestTimeout || q.Timeout%time.Microsecond != 0:
		return fault.New(fault.Usage, "--queue-timeout %s: give a time up to %s, such as 500ms", q.Timeout, longestTimeout)
	case !isAction:
		return fault.New(fault.Usage, "--queue-timeout-action %s: give reject or delay", q.Action)
	case q.Action != "" && q.Timeout == 0:
		return fault.New(fault.Usage, "--queue-timeout-action would be ignored: nothing times out").With("give --queue-timeout")
	case q.AllowOverride && q.Timeout == 0:
		return fault.New(fault.Usage, "--allow-timeout-override would be ignored: a request can only shorten --queue-timeout").With("give one")
	case q.PreserveOrdering && q.Priorities > 1:
		return fault.New(fault.Usage, "--preserve-ordering and --priority-levels: the server takes one of them")
	case q.PreserveOrdering && q.Action == "delay":
		return fault.New(fault.Usage, "--preserve-ordering and --queue-timeout-action delay: the server takes one of them")
	}
	if q.Priorities > 0 && q.DefaultPriority == 0 {
		q.DefaultPriority = q.Priorities
	}
	return nil
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
