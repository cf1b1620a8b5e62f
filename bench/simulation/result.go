package simulation

import (
	"math"
	"slices"
	"time"

	"github.com/npuctl/npuctl/bench/executor"
)

// Result is what a simulation found. Times in its JSON are milliseconds unless their name
// says otherwise.
type Result struct {
	// Seconds are simulated, from the beginning to the last answer.
	Seconds float64 `json:"duration_s"`
	// Requests that came, and what became of them.
	Requests  int64 `json:"requests"`
	OK        int64 `json:"ok"`
	Rejected  int64 `json:"rejected"`
	QueueFull int64 `json:"queue_full"`
	TimedOut  int64 `json:"timed_out"`
	Errors    int64 `json:"errors"`
	// Waiting are those without an answer: they still waited when nothing more could
	// happen, as those do whose queue delay never ends.
	Waiting int64 `json:"waiting"`
	// WithoutGear are those in batches for which npu_ge has no gear of exactly their size.
	// It fails them; without [Run.NoPadding] they were padded, or split.
	WithoutGear int64 `json:"without_gear"`
	// Items are those of requests that were computed.
	Items          int64   `json:"items"`
	Throughput     float64 `json:"throughput"`       // requests a second that were computed
	ItemThroughput float64 `json:"items_throughput"` // items a second
	// Latency and Queue are of requests that were computed: to the answer, and to the
	// beginning of the run.
	Latency Distribution `json:"latency_ms"`
	Queue   Distribution `json:"queue_ms"`
	// Batches and Gears count what ran together, and in what.
	MeanBatch float64    `json:"mean_batch"`
	Batches   []BatchUse `json:"batches"`
	Gears     []GearUse  `json:"gears"`
	Padding   float64    `json:"padding_waste"` // share of computed elements that was padding
	Instances []Instance `json:"instances"`
	// AtOnce is how many batches can run at the same time, and Use the share of the time
	// in which they did.
	AtOnce int     `json:"at_once"`
	Use    float64 `json:"utilization"`
	// MostInside is how many requests were waiting or running at most.
	MostInside int         `json:"most_in_flight"`
	Rows       []Row       `json:"-"`
	Reasons    []string    `json:"-"` // of rows; "" first
	Runs       []Execution `json:"-"`
}

// Distribution describes times, in milliseconds. Percentiles are exact: the smallest time
// that is not exceeded by that share.
type Distribution struct {
	Mean float64 `json:"mean"`
	Std  float64 `json:"std"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// BatchUse counts executions of so many items.
type BatchUse struct {
	Size       int   `json:"size"`
	Executions int64 `json:"executions"`
}

// GearUse counts runs in a gear.
type GearUse struct {
	Gear    string  `json:"gear"`
	Runs    int64   `json:"runs"`
	Items   int64   `json:"items"`
	Padding float64 `json:"padding_waste"`
}

// Instance is one instance, and the share of the time in which it ran.
type Instance struct {
	Instance   int     `json:"instance"`
	Device     int     `json:"device"`
	Executions int64   `json:"executions"`
	Use        float64 `json:"utilization"`
}

// Row is one request. One that is [executor.Waiting] has no Queue and no Latency.
type Row struct {
	Arrival, Queue, Latency time.Duration
	Size                    int32
	Level                   int32
	Kind                    int32
	Outcome                 executor.Outcome
	Reason                  int32 // why it was not computed: an index of Reasons
}

// Execution is one batch.
type Execution struct {
	Start, End       time.Duration
	Device, Instance int32
	Items            int32
	Gear             string
	Requests         []int32
}

// recorder collects what a run does.
type recorder struct {
	keeps          bool
	levels         executor.Policy
	gears          *executor.Gears
	rows           []Row
	runs           []Execution
	ids            []int32 // space for the requests of executions
	latency, queue []int64
	batches        []int64 // executions by items
	gearRuns       []GearUse
	gearElements   [][2]int64 // elements and padding
	instances      []Instance
	busy           []time.Duration
	queueFull      int64
	timedOut       int64
	ofGE           bool
	noPadding      bool
	withoutGear    int64
	count          int64
	inside, most   int
	atOnce         int
	end            time.Duration
	texts          map[[2]int]string
	reasons        []string
	reasonAt       map[string]int32
}

func (c *recorder) start(r *Run) {
	c.keeps, c.levels, c.gears, c.atOnce = r.Keeps, r.Setup.Policy, r.Setup.Gears, r.Setup.AtOnce()
	c.ofGE, c.noPadding = r.OfGE, r.NoPadding
	expected := r.Traffic.expected()
	c.latency, c.queue = make([]int64, 0, expected), make([]int64, 0, expected)
	if c.keeps {
		c.rows = make([]Row, len(r.Traffic.Rows), expected)
	}
	c.reasons, c.reasonAt = []string{""}, map[string]int32{}
	c.batches = make([]int64, max(1, r.Setup.Policy.MaxBatch)+1)
	for i, device := range r.Setup.Devices {
		c.instances = append(c.instances, Instance{Instance: i, Device: device})
	}
	c.busy = make([]time.Duration, len(c.instances))
	for i := range c.gears.Len() {
		c.gearRuns = append(c.gearRuns, GearUse{Gear: c.gears.Text(i)})
	}
	c.gearElements = make([][2]int64, len(c.gearRuns))
	c.texts = map[[2]int]string{}
}

func (c *recorder) arrived(now time.Duration, a Arrival) {
	c.count++
	c.inside++
	c.most = max(c.most, c.inside)
	if !c.keeps {
		return
	}
	for a.Row >= len(c.rows) {
		c.rows = append(c.rows, Row{})
	}
	c.rows[a.Row] = Row{Arrival: now, Size: int32(a.Size), Level: int32(c.levels.Level(a.Level)), Kind: int32(a.Kind), Outcome: executor.Waiting}
}

func (c *recorder) started(b *executor.Batch, end time.Duration) {
	c.batches[b.Items]++
	c.busy[b.Instance] += end - b.Started
	c.instances[b.Instance].Executions++
	isFit := !c.ofGE || hasOwnGear(b)
	if !isFit {
		c.withoutGear += int64(len(b.Requests))
	}
	runs := isFit || !c.noPadding
	for _, chunk := range b.Chunks {
		if chunk.Gear >= 0 && runs {
			c.gearRuns[chunk.Gear].Runs++
			c.gearRuns[chunk.Gear].Items += int64(chunk.Items)
			c.gearElements[chunk.Gear][0] += chunk.Elements
			c.gearElements[chunk.Gear][1] += chunk.Padding
		}
	}
	if !c.keeps {
		return
	}
	e := Execution{Start: b.Started, End: end, Device: int32(b.Device), Instance: int32(b.Instance), Items: int32(b.Items)}
	if runs {
		e.Gear = c.gearText(b)
	}
	if cap(c.ids)-len(c.ids) < len(b.Requests) {
		c.ids = make([]int32, 0, max(1<<14, len(b.Requests)))
	}
	from := len(c.ids)
	for _, r := range b.Requests {
		c.ids = append(c.ids, int32(r.Tag))
	}
	e.Requests = c.ids[from:len(c.ids):len(c.ids)]
	c.runs = append(c.runs, e)
}

// gearText writes the gears of a batch: 4, or 4+4+2 when it was split.
func (c *recorder) gearText(b *executor.Batch) string {
	if c.gears == nil {
		return ""
	}
	key := [2]int{int(b.Class), b.Items}
	if text, found := c.texts[key]; found {
		return text
	}
	text := ""
	for i, chunk := range b.Chunks {
		if i > 0 {
			text += "+"
		}
		text += c.gears.Text(chunk.Gear)
	}
	c.texts[key] = text
	return text
}

func (c *recorder) answered(r *executor.Request, o executor.Outcome) {
	c.inside--
	c.end = max(c.end, r.Ended)
	switch {
	case o == executor.OK:
		c.latency = append(c.latency, int64(r.Ended-r.Arrived))
		c.queue = append(c.queue, int64(r.Started-r.Arrived))
	case r.Err == executor.ErrQueueFull:
		c.queueFull++
	case r.Err == executor.ErrTimeout:
		c.timedOut++
	}
	if !c.keeps {
		return
	}
	row := &c.rows[r.Tag]
	row.Queue, row.Latency, row.Outcome = r.Started-r.Arrived, r.Ended-r.Arrived, o
	if r.Err != nil {
		row.Reason = c.reason(r.Err.Error())
	}
}

// reason gives the number of a text. There are few: requests of one kind have one.
func (c *recorder) reason(text string) int32 {
	at, found := c.reasonAt[text]
	if !found {
		at = int32(len(c.reasons))
		c.reasons, c.reasonAt[text] = append(c.reasons, text), at
	}
	return at
}

// result sums up.
func (c *recorder) result(m *machine) *Result {
	n := m.scheduler.Counters()
	r := &Result{Seconds: c.end.Seconds(), Requests: c.count, OK: n.OK, Rejected: n.Rejected, Errors: n.Failed, Waiting: int64(c.inside), WithoutGear: c.withoutGear, AtOnce: c.atOnce,
		QueueFull: c.queueFull, TimedOut: c.timedOut, Items: n.Items, MostInside: c.most,
		Latency: describe(c.latency), Queue: describe(c.queue), Rows: c.rows, Reasons: c.reasons, Runs: c.runs, Instances: c.instances, Gears: []GearUse{}, Batches: []BatchUse{}}
	r.Throughput, r.ItemThroughput = perSecond(n.OK, c.end), perSecond(n.Items, c.end)
	r.MeanBatch = share(n.Items, n.Executions)
	for size, executions := range c.batches {
		if executions > 0 {
			r.Batches = append(r.Batches, BatchUse{size, executions})
		}
	}
	var elements, padding int64
	for i, g := range c.gearRuns {
		elements, padding = elements+c.gearElements[i][0], padding+c.gearElements[i][1]
		if g.Padding = share(c.gearElements[i][1], c.gearElements[i][0]); g.Runs > 0 {
			r.Gears = append(r.Gears, g)
		}
	}
	r.Padding = share(padding, elements)
	for i, busy := range c.busy {
		r.Instances[i].Use = share(int64(busy), int64(c.end))
		r.Use += r.Instances[i].Use / float64(c.atOnce)
	}
	return r
}

func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

func perSecond(n int64, d time.Duration) float64 {
	if d == 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// describe sorts times, and says what they are like.
func describe(ns []int64) (d Distribution) {
	n := len(ns)
	if n == 0 {
		return d
	}
	sortTimes(ns)
	sum := 0.0
	for _, t := range ns {
		sum += float64(t)
	}
	mean := sum / float64(n)
	squares := 0.0
	for _, t := range ns {
		squares += (float64(t) - mean) * (float64(t) - mean)
	}
	at := func(p float64) float64 { return milliseconds(ns[max(0, int(math.Ceil(p*float64(n)))-1)]) }
	return Distribution{Mean: mean / 1e6, Std: math.Sqrt(squares/float64(max(1, n-1))) / 1e6,
		P50: at(0.5), P90: at(0.9), P95: at(0.95), P99: at(0.99), P999: at(0.999), Max: milliseconds(ns[n-1])}
}

// sortTimes sorts times that are not below 0: many of them by their digits, which takes a
// quarter of the time.
func sortTimes(ns []int64) {
	const digit, few = 11, 1 << 12
	if len(ns) < few {
		slices.Sort(ns)
		return
	}
	from, to := ns, make([]int64, len(ns))
	largest := slices.Max(ns)
	for shift := 0; largest>>shift > 0; shift += digit {
		var starts [1 << digit]int
		for _, t := range from {
			starts[t>>shift&(1<<digit-1)]++
		}
		sum := 0
		for i, n := range starts {
			starts[i], sum = sum, sum+n
		}
		for _, t := range from {
			at := &starts[t>>shift&(1<<digit-1)]
			to[*at] = t
			*at++
		}
		from, to = to, from
	}
	copy(ns, from)
}

func milliseconds(ns int64) float64 { return float64(ns) / 1e6 }
