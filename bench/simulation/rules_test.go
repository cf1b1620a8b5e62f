package simulation

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/npuctl/npuctl/bench/executor"
	"github.com/npuctl/npuctl/bench/executor/tritonconfig"
	"github.com/npuctl/npuctl/configgen"
)

// setupOf reads the setup of a config that is written in short: what stands there goes
// behind the inputs.
func setupOf(t testing.TB, config string) executor.Setup {
	t.Helper()
	if !strings.Contains(config, "input {") {
		config += ` input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }`
	}
	doc, err := configgen.Parse("config.pbtxt", []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	setup, _, err := tritonconfig.Read(doc.Config(), tritonconfig.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return setup
}

// replayed gives the batches of requests that are written one after the other, as in
// "0 0 30*5": at 0 ms twice one item, at 30 ms five items. Behind a size may stand
// @LEVEL, ~TIMEOUT_MS, :SHAPE and !INPUTS.
func replayed(t testing.TB, setup executor.Setup, service, arrivals string) *Result {
	t.Helper()
	var file strings.Builder
	for word := range strings.FieldsSeq(arrivals) {
		fields := map[byte]string{'*': "1"}
		at := byte('t')
		for i := range len(word) {
			if strings.IndexByte("*@~:!", word[i]) >= 0 {
				at = word[i]
				fields[at] = ""
				continue
			}
			fields[at] += word[i : i+1]
		}
		fmt.Fprintf(&file, "%s,%s,%s,%s,%s,%s\n", fields['t'], fields['*'], fields[':'], fields['@'], fields['~'], fields['!'])
	}
	traffic, err := ReadArrivals(strings.NewReader(file.String()), setup.Signature)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseService(service)
	if err != nil {
		t.Fatal(err)
	}
	return simulated(t, Run{Setup: setup, Traffic: traffic, Service: s, Keeps: true})
}

// text writes the batches with their starts, and behind them what was not computed.
func (r *Result) text() string {
	var words []string
	for _, e := range r.Runs {
		words = append(words, fmt.Sprintf("%v@%v", e.Requests, e.Start.Milliseconds()))
	}
	for i, row := range r.Rows {
		if row.Outcome != executor.OK {
			words = append(words, fmt.Sprintf("%d:%v@%v", i, row.Outcome, (row.Arrival+row.Latency).Milliseconds()))
		}
	}
	return strings.Join(words, " ")
}

const (
	open     = ` input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }`
	ragged   = ` input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }`
	optional = ` input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } input { name: "z" data_type: TYPE_FP32 dims: [ 4 ] optional: true }`
)

// The rules of the batcher, one by one: which requests run together, and when.
func TestRules(t *testing.T) {
	for _, test := range []struct {
		name, config, service, arrivals, want string
	}{
		{"without a batcher each request runs alone", `max_batch_size: 8`, "fixed=10ms", "0 0*3 0", "[0]@0 [1]@10 [2]@20"},
		{"without a batch axis nothing is grouped", `dynamic_batching {}`, "fixed=10ms", "0 0 0", "[0]@0 [1]@10 [2]@20"},
		{"an idle instance takes the first at once", `max_batch_size: 8 dynamic_batching {}`, "fixed=10ms", "0 0 0", "[0]@0 [1 2]@10"},
		{"what waits for an instance grows up to the limit", `max_batch_size: 4 dynamic_batching {}`, "fixed=90ms", "0 1 2 3 4 5 6", "[0]@0 [1 2 3 4]@90 [5 6]@180"},
		{"no request is split, none overtakes", `max_batch_size: 8 dynamic_batching {}`, "fixed=90ms", "0 1*5 2*5 3*3", "[0]@0 [1]@90 [2 3]@180"},
		{"the oldest waits for the delay", `max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 50000 }`, "fixed=5ms", "0 20 40 70 90", "[0 1 2]@50 [3 4]@120"},
		{"a full batch does not wait", `max_batch_size: 2 dynamic_batching { max_queue_delay_microseconds: 50000 }`, "fixed=5ms", "0 10 20", "[0 1]@10 [2]@70"},
		{"a preferred size goes at once", `max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 2, 4 ] max_queue_delay_microseconds: 50000 }`, "fixed=5ms", "0 10 20 30", "[0 1]@10 [2 3]@30"},
		{"a preferred size of one defeats grouping", `max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 1 ] }`, "fixed=10ms", "0 1 2", "[0]@0 [1]@10 [2]@20"},
		{"late, a batch may pass the preferred size", `max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 3 ] max_queue_delay_microseconds: 30000 }` + open, "fixed=80ms", "0*3 10 20 60", "[0]@0 [1 2 3]@80"},
		{"a request above the preferred size goes alone", `max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 50000 }`, "fixed=5ms", "0*6", "[0]@0"},
		{"two that pass the preferred size together", `max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 50000 }`, "fixed=5ms", "0*3 0*3", "[0]@0 [1]@50"},
		{"one more than the largest preferred size", `max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 90000 }` + open, "fixed=80ms", "0 0 10 20 30 40", "[0 1]@0 [2 3 4]@80 [5]@160"},
		{"that needs room in the largest batch", `max_batch_size: 2 dynamic_batching { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 90000 }` + open, "fixed=80ms", "0 0 10 20 30 40", "[0 1]@0 [2 3]@80 [4 5]@160"},
		{"without a delay a preferred size ends the batch", `max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 2 ] }`, "fixed=50ms", "0 10 20 30", "[0]@0 [1 2]@50 [3]@100"},
		{"shapes must be equal", `max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 30000 }` + open, "fixed=5ms", "0:4 0:4 0:5 0:4", "[0 1]@0 [2]@5 [3]@30"},
		{"a shape that is not said is the default one", `max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 30000 }` + open, "fixed=5ms", "0 0:4 0:5", "[0 1]@0 [2]@30"},
		{"ragged inputs need not", `max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 30000 }` + ragged, "fixed=5ms", "0:4 0:4 0:5 0:4", "[0 1 2 3]@30"},
		{"the same inputs must be there, which shows when the delay is over", `max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 30000 }` + optional, "fixed=5ms", "0!x 0!x 0 0!x", "[0 1]@30 [2]@35 [3]@40"},
		{"urgent levels first, mixed in one batch", `max_batch_size: 2 dynamic_batching { priority_levels: 3 default_priority_level: 2 }`, "fixed=50ms", "0 10@3 11@2 12@1 13 14@9", "[0]@0 [3 2]@50 [4 5]@100 [1]@150"},
		{"a full queue refuses at once", `max_batch_size: 4 dynamic_batching { default_queue_policy { max_queue_size: 2 } }`, "fixed=50ms", "0 10 20 30", "[0]@0 [1 2]@50 3:rejected@30"},
		{"a limit holds for its level", `max_batch_size: 4 dynamic_batching { priority_levels: 2 default_priority_level: 2 priority_queue_policy { key: 1 value { max_queue_size: 1 } } }`, "fixed=50ms", "0 10@1 20@1 30 40", "[0]@0 [1 3 4]@50 2:rejected@20"},
		{"a time-out refuses when it is over", `max_batch_size: 4 dynamic_batching { default_queue_policy { default_timeout_microseconds: 30000 } }`, "fixed=90ms", "0 10 70", "[0]@0 [2]@90 1:rejected@40"},
		{"a request may shorten it", `max_batch_size: 4 dynamic_batching { default_queue_policy { default_timeout_microseconds: 100000 allow_timeout_override: true } }`, "fixed=90ms", "0 10~20 11~500 12", "[0]@0 [2 3]@90 1:rejected@30"},
		{"but only where it is allowed", `max_batch_size: 4 dynamic_batching { default_queue_policy { default_timeout_microseconds: 100000 } }`, "fixed=90ms", "0 10~20", "[0]@0 [1]@90"},
		{"and where there is one", `max_batch_size: 4 dynamic_batching { default_queue_policy { allow_timeout_override: true } }`, "fixed=90ms", "0 10~20", "[0]@0 [1]@90"},
		{"what is delayed comes behind the others", `max_batch_size: 1 dynamic_batching { default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 60000 } }`, "fixed=90ms", "0 10 80 100", "[0]@0 [2]@90 [1]@180 [3]@270"},
		{"delayed within its level, before the next", `max_batch_size: 1 dynamic_batching { priority_levels: 2 default_priority_level: 2 default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 60000 } }`, "fixed=90ms", "0 10@1 85@2 86@1", "[0]@0 [3]@90 [1]@180 [2]@270"},
		{"several instances", `max_batch_size: 4 instance_group { kind: KIND_CPU count: 2 } dynamic_batching {}`, "fixed=100ms", "0 30 50 50 50", "[0]@0 [1]@30 [2 3 4]@100"},
		{"time an item", `max_batch_size: 4 dynamic_batching {}`, "fixed=10ms,item=5ms", "0*4 1*2 2", "[0]@0 [1 2]@30"},
		{"sizes that no batch holds", `max_batch_size: 4 dynamic_batching {}`, "fixed=10ms", "0*5 1*0 2*4", "[2]@2 0:error@0 1:error@1"},
		{"shapes that the config excludes", `max_batch_size: 4 dynamic_batching {}`, "fixed=10ms", "0:5 1:4x4 2", "[2]@2 0:error@0 1:error@1"},
		{"an input that is missing", `max_batch_size: 4 dynamic_batching {}` + optional, "fixed=10ms", "0!z 1!x", "[1]@1 0:error@0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			setup := setupOf(t, test.config)
			if got := replayed(t, setup, test.service, test.arrivals).text(); got != test.want {
				t.Errorf("%s\nwant %s", got, test.want)
			}
		})
	}
}

// With preserve_ordering answers leave in the order of arrival; runs overlap as ever, and
// what is refused holds nobody up.
func TestPreserveOrdering(t *testing.T) {
	setup := setupOf(t, `max_batch_size: 4 instance_group { kind: KIND_CPU count: 2 } dynamic_batching { preserve_ordering: true default_queue_policy { max_queue_size: 1 } }`)
	r := replayed(t, setup, "fixed=0ms,item=30ms", "0*4 10 20 21")
	if got, want := r.text(), "[0]@0 [1]@10 [2]@40 3:rejected@21"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	var answers []time.Duration
	for _, row := range r.Rows {
		answers = append(answers, row.Arrival+row.Latency)
	}
	if got, want := fmt.Sprint(answers), "[120ms 120ms 120ms 21ms]"; got != want {
		t.Errorf("answers at %s, want %s", got, want)
	}
}

// Batches run in the smallest gear that they fit, split above the largest.
func TestGears(t *testing.T) {
	const lengths = `backend: "npu_ge" max_batch_size: 4 dynamic_batching {} input { name: "ids" data_type: TYPE_INT64 dims: [ -1 ] }
		parameters { key: "graph.ge.inputShape" value { string_value: "ids:-1,-1" } } parameters { key: "graph.ge.dynamicDims" value { string_value: "1,16;4,16;4,64" } }`
	for _, test := range []struct{ name, config, arrivals, gears, padding string }{
		{"one gear", `backend: "npu_ge" max_batch_size: 8 dynamic_batching {} parameters { key: "graph.ge.inputShape" value { string_value: "x:-1,4" } }
			parameters { key: "graph.ge.dynamicDims" value { string_value: "1;2;4" } }`, "0*1 1*3 2*7 3*8", "1 4 4+4 4+4", "0.095"},
		{"lengths", lengths, "0:9 1:16 2:17 3:64 4*4:1", "1,16 1,16 4,64 4,64 4,16", "0.819"},
		{"no gear", lengths, "0:65 1:16", "1,16", "0.000"},
		{"static", `backend: "npu_ge" max_batch_size: 8 parameters { key: "static_model" value { string_value: "1" } }`, "0*3", "1+1+1", "0.000"},
		{"none", `max_batch_size: 8`, "0*3", "", "0.000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := replayed(t, setupOf(t, test.config), "fixed=0ms,item=1us", test.arrivals)
			var used []string
			for _, e := range r.Runs {
				used = append(used, e.Gear)
			}
			if got := strings.Join(used, " "); got != test.gears {
				t.Errorf("gears %s, want %s", got, test.gears)
			}
			if got := fmt.Sprintf("%.3f", r.Padding); got != test.padding {
				t.Errorf("padding %s, want %s", got, test.padding)
			}
		})
	}
	r := replayed(t, setupOf(t, lengths), "fixed=1ms", "0:65")
	if got := r.Reasons[r.Rows[0].Reason]; got != "no gear is large enough for ids 65" {
		t.Errorf("reason %q", got)
	}
}

// What nothing ends the wait of is neither computed nor refused, and counts for itself.
func TestWaitingForEver(t *testing.T) {
	setup := setupOf(t, `max_batch_size: 4 dynamic_batching { max_queue_delay_microseconds: 18446744073709551615 }`)
	r := replayed(t, setup, "fixed=10ms", "0 100 200 300 400")
	if got, want := r.text(), "[0 1 2 3]@300 4:waiting@400"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if r.OK != 4 || r.Waiting != 1 || r.Rejected+r.Errors != 0 || r.Requests != 5 || r.Latency.P50 != 110 {
		t.Errorf("%+v", r)
	}
	var b bytes.Buffer
	if err := (&Report{Summary: r}).WriteJSON(&b, []Kind{{}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"waiting":1,`, `{"arrival": 400, "size": 1, "shape": "", "level": 0, "queue": null, "latency": null, "outcome": "waiting"}]}`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in %s", want, b.String())
		}
	}
}

// npu_ge runs as many batches at once as it has streams, on each device.
func TestStreams(t *testing.T) {
	const eight = `backend: "npu_ge" instance_group { kind: KIND_CPU count: 8 }`
	parameter := func(name, value string) string {
		return fmt.Sprintf(` parameters { key: %q value { string_value: %q } }`, name, value)
	}
	two := eight + parameter("device_exec_blocks", "2")
	for _, test := range []struct{ name, config, service, arrivals, want string }{
		{"one for every instance", eight, "fixed=10ms", "0 0 0 0", "[0]@0 [1]@0 [2]@0 [3]@0"},
		{"two", two, "fixed=10ms", "0 0 0 0 0", "[0]@0 [1]@0 [2]@10 [3]@10 [4]@20"},
		{"two on each of two", two + parameter("device_ids", "0,1"), "fixed=10ms", "0 0 0 0 0", "[0]@0 [1]@0 [2]@0 [3]@0 [4]@10"},
		{"a batch that waits for a stream does not grow", two + " max_batch_size: 4 dynamic_batching {}", "fixed=50ms", "0 1 2 3 4 5", "[0]@0 [1]@1 [2]@50 [3]@51 [4]@100 [5]@101"},
		{"one that waits for an instance does", `backend: "npu_ge" max_batch_size: 4 dynamic_batching {} instance_group { kind: KIND_CPU count: 3 }` + parameter("device_exec_blocks", "2"),
			"fixed=50ms", "0 1 2 3 4 5", "[0]@0 [1]@1 [2]@50 [3 4 5]@51"},
		{"two for each batch, which is split", two + " max_batch_size: 4" + parameter("instance_exec_blocks", "2"), "fixed=1ms,item=10ms", "0*4 0*1 0*3", "[0]@0 [1]@21 [2]@32"},
		{"of any devices", eight + " max_batch_size: 4" + parameter("device_exec_blocks", "3") + parameter("device_ids", "0,1") + parameter("instance_exec_blocks", "2"),
			"fixed=0ms,item=10ms", "0*2 0*2 0*2 0*2", "[0]@0 [1]@0 [2]@0 [3]@10"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := replayed(t, setupOf(t, test.config), test.service, test.arrivals).text(); got != test.want {
				t.Errorf("%s\nwant %s", got, test.want)
			}
		})
	}
	r := simulated(t, Run{Setup: setupOf(t, two), Traffic: &Traffic{Clients: 16, Duration: time.Minute}, Service: &Service{Fixed: 10 * time.Millisecond}})
	if r.AtOnce != 2 || r.Throughput < 199 || r.Throughput > 200.1 || r.Use < 0.999 || r.Use > 1 {
		t.Errorf("two streams of 100 batches a second: %.1f a second, %d at once, %.3f in use", r.Throughput, r.AtOnce, r.Use)
	}
}
