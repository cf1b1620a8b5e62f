package measure

import "github.com/npuctl/npuctl/bench/load"

// Level is what was found at one level of load. Times are milliseconds unless their name
// says otherwise.
type Level struct {
	Settings Settings `json:"settings"`
	// Ending is why it ended: enough, count, schedule or interrupted.
	Ending string `json:"ending"`
	// Requests are those that were sent or due after the warm-up, and what became of them:
	// OK ones were answered; Errors are all others, of four kinds.
	Requests  int64 `json:"requests"`
	OK        int64 `json:"ok"`
	Errors    int64 `json:"errors"`
	Rejected  int64 `json:"rejected"`
	Failed    int64 `json:"failed"`
	Cancelled int64 `json:"cancelled"`
	Unsent    int64 `json:"unsent"`
	// WarmRequests are those of the warm-up. They are in no other figure but the timeline.
	WarmRequests int64            `json:"warm_requests"`
	Reasons      map[string]int64 `json:"reasons"`
	ErrorRate    float64          `json:"error_rate"`
	// Duration is from the first measured request's time to the end of sending or, when a
	// count or a schedule ended it, to the last answer.
	Duration float64 `json:"duration_s"`
	// OfferedRate is requests that were due a second, Throughput answers a second within
	// Duration, Goodput those of them within the deadline.
	OfferedRate    float64 `json:"offered_rate"`
	Throughput     float64 `json:"throughput"`
	Goodput        float64 `json:"goodput"`
	ItemThroughput float64 `json:"items_throughput"`
	// Latency is from the intended time, SendLatency from the actual sending, of requests
	// that were answered.
	Latency     Figures `json:"latency_ms"`
	SendLatency Figures `json:"send_latency_ms"`
	// Stages are the times spent in each stage, by name; they add up to the latency.
	Stages map[string]Figures `json:"stages_ms"`
	// StagesAt tells what the requests around a percentile of the latency spent their
	// time on: the mean of each stage over them.
	StagesAt map[string]map[string]float64 `json:"stages_at_ms"`

	MeanBatch float64    `json:"mean_batch"`
	Batches   []BatchUse `json:"batches"`
	Gears     []GearUse  `json:"gears"`
	Padding   float64    `json:"padding_waste"` // share of the computed elements
	Kinds     []KindUse  `json:"kinds"`

	Stable         bool     `json:"stable"`
	Instability    string   `json:"instability"` // why not
	Windows        []Window `json:"windows"`
	Overloaded     bool     `json:"overloaded"`
	OverloadReason string   `json:"overload_reason"`
	// Valid is false when the generator was too late for the figures to be the target's.
	Valid     bool      `json:"valid"`
	Invalid   string    `json:"invalid_reason"`
	Generator Generator `json:"generator"`
	Timeline  Timeline  `json:"timeline"`
	Histogram []Bar     `json:"histogram"`
	Notes     []string  `json:"notes"`
}

// BatchUse counts executions of so many items.
type BatchUse struct {
	Size       int64 `json:"size"`
	Executions int64 `json:"executions"`
	// Mean is how long one took, in milliseconds: h2d, compute and d2h.
	Mean float64 `json:"mean_ms"`
}

// GearUse counts executions in a gear.
type GearUse struct {
	Gear    string  `json:"gear"`
	Runs    int64   `json:"runs"`
	Items   int64   `json:"items"`
	Padding float64 `json:"padding_waste"`
	Mean    float64 `json:"mean_ms"` // as of a batch
}

// KindUse are the requests of a kind.
type KindUse struct {
	Kind     string  `json:"kind"`
	Requests int64   `json:"requests"`
	Errors   int64   `json:"errors"`
	Latency  Figures `json:"latency_ms"`
}

// Generator says how well the load was made.
type Generator struct {
	// Lateness is how late requests were sent though a sender was free.
	Lateness Figures `json:"lateness_ms"`
	// Held is the share of the requests that waited for a sender, as all of them had a
	// request in flight. That is the target's doing, and in the latency.
	Held float64 `json:"held"`
	// CPU is the share of the processors that this process used, the target in it
	// included; 0 where the system does not say.
	CPU float64 `json:"cpu"`
}

// Bar counts requests with a latency above the last bar's and up to its own.
type Bar struct {
	UpTo  float64 `json:"up_to_ms"`
	Count int64   `json:"count"`
}

// Name is how a level is called: 8 clients, or 200/s.
func (l *Level) Name() string { return l.Settings.Name() }

// cohort are the requests around a percentile: what of them is known.
func cohort(sample []load.Record, p float64) map[string]float64 {
	n := len(sample)
	if n == 0 {
		return nil
	}
	middle := int(p * float64(n))
	half := max(1, n/200)
	from, to := max(0, min(middle, n-1)-half), min(n, min(middle, n-1)+half+1)
	means := map[string]float64{}
	for s, name := range load.StageNames {
		sum := 0.0
		for i := range sample[from:to] {
			sum += float64(sample[from+i].Stages[s])
		}
		means[name] = sum / float64(to-from) / 1e6
	}
	return means
}
