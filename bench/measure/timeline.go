package measure

import (
	"time"

	"github.com/npuctl/npuctl/bench/load"
)

// timeline counts what happened when, in a fixed number of bins: when they no longer
// reach, each two of them become one.
type timeline struct {
	width time.Duration
	bins  []bin
}

// Bins are 10 ms wide at first.
const (
	mostBins  = 1 << 10
	firstBins = 10 * time.Millisecond
)

// bin is what happened in a stretch of time.
type bin struct {
	due, sent, begun, done int64 // requests
	answered, failed       int64
	items                  int64 // of answered requests
	latency                time.Duration
	slowest                time.Duration
	batches, batchItems    int64
}

func (b *bin) add(c *bin) {
	b.due += c.due
	b.sent += c.sent
	b.begun += c.begun
	b.done += c.done
	b.answered += c.answered
	b.failed += c.failed
	b.items += c.items
	b.latency += c.latency
	b.slowest = max(b.slowest, c.slowest)
	b.batches += c.batches
	b.batchItems += c.batchItems
}

func newTimeline() *timeline { return &timeline{width: firstBins} }

// at gives the bin of a time.
func (t *timeline) at(when time.Duration) *bin {
	i := int64(max(0, when) / t.width)
	for ; i >= mostBins; i /= 2 {
		t.halve()
	}
	for int64(len(t.bins)) <= i {
		t.bins = append(t.bins, bin{})
	}
	return &t.bins[i]
}

func (t *timeline) halve() {
	t.width *= 2
	half := (len(t.bins) + 1) / 2
	for i := range half {
		sum := t.bins[2*i]
		if 2*i+1 < len(t.bins) {
			sum.add(&t.bins[2*i+1])
		}
		t.bins[i] = sum
	}
	t.bins = t.bins[:half]
}

// add counts a record, of the warm-up too: what waits from then is there.
func (t *timeline) add(r *load.Record) {
	t.at(r.Intended).due++
	if r.Outcome == load.Unsent {
		return
	}
	begun := r.Sent + r.Stages[load.Queue] + r.Stages[load.Batching]
	t.at(r.Sent).sent++
	t.at(begun).begun++
	done := t.at(r.Done)
	done.done++
	if r.Outcome != load.OK {
		done.failed++
		return
	}
	done.answered++
	done.items += int64(r.Items)
	done.latency += r.Latency()
	done.slowest = max(done.slowest, r.Latency())
	if r.Batch.Lead {
		b := t.at(begun)
		b.batches++
		b.batchItems += int64(r.Batch.Items)
	}
}

// Moment is a stretch of the timeline.
type Moment struct {
	Start float64 `json:"start_s"`
	// Throughput is answers a second, Failures what failed or was refused a second.
	Throughput float64 `json:"throughput"`
	Failures   float64 `json:"failures"`
	// Waiting are the requests at its end that were due and did not run yet, Running
	// those that ran.
	Waiting int64 `json:"waiting"`
	Running int64 `json:"running"`
	// Latency, in milliseconds, is of what was answered in it.
	MeanLatency float64 `json:"mean_latency_ms"`
	MaxLatency  float64 `json:"max_latency_ms"`
	// MeanBatch is the mean number of items of the executions that began in it.
	MeanBatch float64 `json:"mean_batch"`
}

// Timeline is a run over time.
type Timeline struct {
	Width   float64  `json:"width_s"`
	Moments []Moment `json:"moments"`
}

// mostMoments is how many moments a report has.
const mostMoments = 256

// report makes moments of bins.
func (t *timeline) report() Timeline {
	short := &timeline{width: t.width, bins: append([]bin(nil), t.bins...)}
	for len(short.bins) > mostMoments {
		short.halve()
	}
	out := Timeline{Width: short.width.Seconds(), Moments: []Moment{}}
	var due, begun, done int64
	for i, b := range short.bins {
		due, begun, done = due+b.due, begun+b.begun, done+b.done
		m := Moment{Start: (time.Duration(i) * short.width).Seconds(), Waiting: due - begun, Running: begun - done,
			Throughput: float64(b.answered) / out.Width, Failures: float64(b.failed) / out.Width,
			MeanLatency: quotient(milliseconds(b.latency), b.answered), MaxLatency: milliseconds(b.slowest), MeanBatch: quotient(float64(b.batchItems), b.batches)}
		out.Moments = append(out.Moments, m)
	}
	return out
}

// quotient is 0 of nothing.
func quotient(sum float64, n int64) float64 {
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}
