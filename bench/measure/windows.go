package measure

import (
	"fmt"
	"time"

	"github.com/npuctl/npuctl/bench/load"
)

// Window is a stretch of the run, over which figures are compared.
type Window struct {
	Start float64 `json:"start_s"`
	End   float64 `json:"end_s"`
	// Due is how many requests were due in it, Answered how many were answered.
	Due      int64 `json:"due"`
	Answered int64 `json:"answered"`
	// Throughput is answers a second; Latency, in milliseconds, is of the requests that
	// were due in it: a slow one counts where it was caused.
	Throughput float64 `json:"throughput"`
	Latency    float64 `json:"latency_ms"`
}

// windows cuts a run into windows. Times are cut at multiples of the window from the
// beginning, whatever comes when.
type windows struct {
	rule   Stability
	isOpen bool
	begin  time.Duration // of what is measured
	cells  []cell        // whose times are not settled; the first one is number first
	first  int64
	carry  cell // settled, with too few answers
	closed []Window
}

// cell is a window while it is filled.
type cell struct {
	start, end    time.Duration
	due, answered int64
	latency       Distribution
}

// keepInWindow is how many latencies of a window are kept before they are a histogram.
const keepInWindow = 1 << 14

func newWindows(s *Settings) *windows {
	w := &windows{rule: s.Stability, isOpen: s.Mode == Open}
	if s.WarmTime > 0 || s.WarmCount > 0 {
		w.begin = -1 // not known yet
	}
	return w
}

// at gives the cell of a time, or nothing when its window is closed or before begin.
func (w *windows) at(t time.Duration) *cell {
	i := int64(t/w.rule.Window) - w.first
	if i < 0 || t < w.begin {
		return nil
	}
	for int64(len(w.cells)) <= i {
		w.cells = append(w.cells, cell{})
	}
	return &w.cells[i]
}

// mostCells is how far ahead of what is settled a window may lie: what is beyond, as in a
// hostile file, counts in none.
const mostCells = 1 << 16

// add counts a measured record that was answered or not.
func (w *windows) add(r *load.Record) {
	if w.begin < 0 {
		w.begin = r.Intended
	}
	if int64(r.Done/w.rule.Window)-w.first > mostCells {
		return
	}
	if c := w.at(r.Intended); c != nil {
		c.due++
		if r.Outcome == load.OK {
			c.latency.add(int64(r.Latency()), keepInWindow)
		}
	}
	if c := w.at(r.Done); c != nil && r.Outcome == load.OK {
		c.answered++
	}
}

// settle closes the windows that end before a time.
func (w *windows) settle(t time.Duration) {
	if w.begin < 0 {
		return
	}
	for len(w.cells) > 0 && time.Duration(w.first+1)*w.rule.Window <= t {
		w.close(&w.cells[0], time.Duration(w.first)*w.rule.Window)
		w.cells = w.cells[1:]
		w.first++
	}
}

// close makes a window of a cell and of those before it that had too few answers. What
// began before the measured time did is no window.
func (w *windows) close(c *cell, start time.Duration) {
	if start < w.begin && start+w.rule.Window > w.begin {
		return
	}
	sum := &w.carry
	if sum.end == 0 {
		sum.start = start
	}
	sum.end = start + w.rule.Window
	sum.due += c.due
	sum.answered += c.answered
	sum.latency.merge(&c.latency, keepInWindow)
	if sum.answered < w.rule.Requests || sum.latency.n == 0 {
		return
	}
	figures := sum.latency.Figures()
	latency, _ := figures.Value(w.rule.Figure)
	w.closed = append(w.closed, Window{Start: sum.start.Seconds(), End: sum.end.Seconds(), Due: sum.due, Answered: sum.answered,
		Throughput: float64(sum.answered) / (sum.end - sum.start).Seconds(), Latency: latency})
	w.carry = cell{}
}

// stable says whether the last windows agree, and if not, why.
func (w *windows) stable() (bool, string) {
	if len(w.closed) < w.rule.Windows {
		return false, fmt.Sprintf("%d of %d windows of %v with %d answers: measure longer", len(w.closed), w.rule.Windows, w.rule.Window, w.rule.Requests)
	}
	last := w.closed[len(w.closed)-w.rule.Windows:]
	name, pace := "throughput", func(x Window) float64 { return x.Throughput }
	if w.isOpen {
		name, pace = "the share of due requests that is answered", func(x Window) float64 { return float64(x.Answered) / float64(max(1, x.Due)) }
	}
	if text := w.spread(last, name, pace); text != "" {
		return false, text
	}
	if text := w.spread(last, w.rule.Figure+" latency", func(x Window) float64 { return x.Latency }); text != "" {
		return false, text
	}
	return true, ""
}

// spread says by how much windows differ, if that is too much.
func (w *windows) spread(last []Window, name string, of func(Window) float64) string {
	least, most := of(last[0]), of(last[0])
	for _, x := range last[1:] {
		least, most = min(least, of(x)), max(most, of(x))
	}
	if most <= least*(1+w.rule.Tolerance) {
		return ""
	}
	return fmt.Sprintf("%s went from %.4g to %.4g over the last %d windows, more than %.3g %%", name, least, most, len(last), 100*w.rule.Tolerance)
}
