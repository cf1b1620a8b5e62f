package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/npuctl/npuctl/bench/executor"
)

func pair() *executor.Signature {
	return executor.NewSignature([]executor.Input{{Name: "x", Dims: []int64{-1, 3}}, {Name: "z", Dims: []int64{-1}, Optional: true}}, 8)
}

// Lines in the order of columns, or under a header; what is missing has its default.
func TestReadArrivals(t *testing.T) {
	for _, test := range []struct{ name, file, want string }{
		{"all columns", "0,2,4x3,1,50,x\n", "[0s 2 4x3 1 50ms]"},
		{"times alone", "0\n1.5\n2.000001\n", "[0s 1  0 0s] [1.5ms 1  0 0s] [2.000001ms 1  0 0s]"},
		{"a header in another order", "size,time_ms,timeout_ms\n3,10,0.5\n,20,\n", "[10ms 3  0 500µs] [20ms 1  0 0s]"},
		{"comments and blank lines", "# a day\n\n0,1 # no comment\n", "line 3: size: \"1 # no comment\" is no whole number from 0 to 2147483647"},
		{"times out of order", "20\n10\n20\n", "[10ms 1  0 0s] [20ms 1  0 0s] [20ms 1  0 0s]"},
		{"shapes by input", "0,1,x=4x3+z=7\n", "[0s 1 x=4x3+z=7 0 0s]"},
		{"a byte-order mark", "\ufefftime_ms,size\n1,2\n", "[1ms 2  0 0s]"},
		{"nothing", "time_ms\n", "no requests"},
		{"empty", "", "no requests"},
		{"no number", "soon\n", `line 1: there is no column "soon"; there are "time_ms", "size", "shape", "level", "timeout_ms", "inputs"`},
		{"a column misspelt", "time_ms,sise\n", `line 1: there is no column "sise"; did you mean "size"?`},
		{"a column twice", "time_ms,time_ms\n", `line 1: column "time_ms" is there twice`},
		{"no times", "size\n1\n", "line 1: there is no column time_ms"},
		{"a time below 0", "-1\n", `line 1: time_ms: "-1" is no time in milliseconds, from 0 to 1e+12`},
		{"no time", "0\nNaN\n", `line 2: time_ms: "NaN" is no time in milliseconds, from 0 to 1e+12`},
		{"an endless time", "1e300\n", `line 1: time_ms: "1e300" is no time in milliseconds, from 0 to 1e+12`},
		{"a size that is none", "0,two\n", `line 1: size: "two" is no whole number from 0 to 2147483647`},
		{"a size below 0", "0,-2\n", `line 1: size: "-2" is no whole number from 0 to 2147483647`},
		{"a shape that is none", "0,1,4*3\n", `line 1: the shape "4*3": give sizes from 0 to 2147483647 with x between, as in 4x3`},
		{"an input that is none", "0,1,,,,x+y\n", `line 1: the model has no input "y"; did you mean "x"?`},
		{"too many fields", "0,1,,,,,7\n", "line 1: 7 fields, and there are 6 columns"},
		{"an open quote", "\"0\n", `read arrivals: parse error on line 1, column 4: extraneous or missing " in quoted-field`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			traffic, err := ReadArrivals(strings.NewReader(test.file), pair())
			if err != nil {
				got = err.Error()
			} else {
				var words []string
				for _, a := range traffic.Rows {
					words = append(words, fmt.Sprintf("[%v %d %s %d %v]", a.At, a.Size, traffic.Kinds[a.Kind].Shape, a.Level, a.Timeout))
				}
				got = strings.Join(words, " ")
			}
			if got != test.want {
				t.Errorf("%s\nwant %s", got, test.want)
			}
		})
	}
}

// Rows keep the numbers that they have in the file, whatever the order of their times.
func TestRowNumbers(t *testing.T) {
	traffic, err := ReadArrivals(strings.NewReader("20\n10\n20\n0\n"), pair())
	if err != nil {
		t.Fatal(err)
	}
	var rows []int
	for _, a := range traffic.Rows {
		rows = append(rows, a.Row)
	}
	if fmt.Sprint(rows) != "[3 1 0 2]" {
		t.Errorf("rows %v", rows)
	}
}

func FuzzReadArrivals(f *testing.F) {
	for _, seed := range []string{"0,2,4x3,1,50,x\n", "size,time_ms\n1,2\n", "0\n1e9\n", "0,1,x=4x3+z=7\n", "\"0\",\"1\n2\"", "0,1,9999999999x1\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file string) {
		traffic, err := ReadArrivals(strings.NewReader(file), pair())
		if err != nil {
			return
		}
		setup := executor.Setup{Signature: pair(), Devices: []int{0}, Policy: executor.Policy{MaxBatch: 8, Dynamic: true, Levels: 1, DefaultLevel: 1}}
		r, err := (&Run{Setup: setup, Traffic: traffic, Service: &Service{Item: time.Millisecond}, Keeps: true}).Do(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if n := r.OK + r.Errors + r.Rejected; n != int64(len(traffic.Rows)) {
			t.Errorf("%d of %d requests were answered", n, len(traffic.Rows))
		}
		var b bytes.Buffer
		if err := (&Report{Summary: r}).WriteJSON(&b, traffic.Kinds); err != nil || !json.Valid(b.Bytes()) {
			t.Errorf("%v: %s", err, b.Bytes())
		}
	})
}

func TestService(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"fixed=4ms,item=0.5ms", "4.5ms 6ms 8ms"},
		{"item=1us", "1µs 4µs 8µs"},
		{"fixed=1s,distribution=constant", "1s 1s 1s"},
		{"table:batch,time_ms\n1,4\n4,10\n", "4ms 10ms 20ms"},
		{"table:batch,time_ms\n# measured\n8,8\n2,3\n", "3ms 4.666667ms 8ms"},
		{"fixed=4", `fixed: "4" is no time with its unit, such as 4ms or 500us, up to a day`},
		{"fixed=-4ms", `fixed: "-4ms" is no time with its unit, such as 4ms or 500us, up to a day`},
		{"fixd=4ms", `"fixd=4ms": give fixed=4ms,item=0.5ms, a distribution, or a file`},
		{"distribution=normal", `distribution: "normal": there are constant and exponential`},
		{"table:size,time_ms\n", `the first line is "size,time_ms": it must be batch,time_ms or gear,time_ms`},
		{"table:batch,time_ms\n", "the table is empty"},
		{"table:batch,time_ms\n0,1\n", `line 2: "0" is no batch: give whole numbers from 1 to 2147483647`},
		{"table:batch,time_ms\n1,1\n1,2\n", "batch 1 is there twice"},
		{"table:batch,time_ms\n1,x\n", `line 2: time_ms: "x" is no time in milliseconds, from 0 to 1e+12`},
		{"table:gear,time_ms\n4,1\n4,1\n", "line 3: gear 4 is there twice"},
		{"table:", "it is empty: the first line must be batch,time_ms or gear,time_ms"},
	} {
		s, err := (*Service)(nil), error(nil)
		if table, ok := strings.CutPrefix(test.text, "table:"); ok {
			s, err = ReadService(strings.NewReader(table))
		} else {
			s, err = ParseService(test.text)
		}
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprint(s.Mean(nil, executor.Chunk{Batch: 1}), s.Mean(nil, executor.Chunk{Batch: 4}), s.Mean(nil, executor.Chunk{Batch: 8}))
		}
		if got != test.want {
			t.Errorf("%s:\n%s\nwant %s", test.text, got, test.want)
		}
	}
}

// A table by gear has a line for each, and a batch takes the times of its runs.
func TestServiceByGear(t *testing.T) {
	s, err := ReadService(strings.NewReader("gear,time_ms\n1,2\n4,5\n"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := executor.BatchGears(pair(), 1, 4)
	if err != nil {
		t.Fatal(err)
	}
	batch := &executor.Batch{Chunks: g.Plan(nil, 0, 5)}
	if got := s.of(g, batch, nil); got != 7*time.Millisecond {
		t.Errorf("five items take %v", got)
	}
	more, err := executor.BatchGears(pair(), 1, 4, 8)
	if err != nil {
		t.Fatal(err)
	}
	for want, gears := range map[string]*executor.Gears{"": g, "there is no service time of gear 8": more, "the service times are by gear, and the model has none": nil} {
		if got := fmt.Sprint(s.Check(gears)); got != want && !(want == "" && got == "<nil>") {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func FuzzReadService(f *testing.F) {
	for _, seed := range []string{"batch,time_ms\n1,4\n4,10\n", "gear,time_ms\n1x16,2\n", "batch,time_ms\n2147483647,1e12\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file string) {
		s, err := ReadService(strings.NewReader(file))
		if err != nil || len(s.batches) == 0 {
			return
		}
		for _, batch := range []int{1, 3, 1000} {
			if d := s.Mean(nil, executor.Chunk{Batch: batch}); d < 0 {
				t.Errorf("a batch of %d takes %v", batch, d)
			}
		}
	})
}

func TestSizes(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"4", "map[4:1000]"}, {"1-4", "map[1:240 2:228 3:265 4:267]"}, {"1:3,4:1", "map[1:733 4:267]"},
		{"0", `"0" is no size: give 4, 1-8 or 1:3,4:1, up to 2147483647`}, {"4-1", `"4-1" is no size: give 4, 1-8 or 1:3,4:1, up to 2147483647`},
		{"2147483648", `"2147483648" is no size: give 4, 1-8 or 1:3,4:1, up to 2147483647`}, {"1:1e13", `"1:1e13": the weight "1e13" is no number above 0, up to 1e+12`},
		{"1:0", `"1:0": the weight "0" is no number above 0, up to 1e+12`}, {"1-99999999", `"1-99999999": a range holds 65537 sizes at most`},
	} {
		w, err := ParseSizes(test.text)
		got := fmt.Sprint(err)
		if err == nil {
			counts, r := map[int]int{}, rand.New(rand.NewPCG(1, 1))
			for range 1000 {
				counts[w.draw(r, 0)]++
			}
			got = fmt.Sprint(counts)
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.text, got, test.want)
		}
	}
}

// Every request and every execution is in the JSON, and one seed gives one result.
func TestJSON(t *testing.T) {
	setup := func() executor.Setup {
		return executor.Setup{Signature: pair(), Devices: []int{0, 1}, Policy: executor.Policy{MaxBatch: 8, Dynamic: true, Delay: time.Millisecond}}
	}
	write := func(seed uint64) []byte {
		s := setup()
		traffic := &Traffic{Clients: 5, Requests: 300, Think: 300 * time.Microsecond}
		var err error
		if traffic.Kinds, traffic.KindWeights, err = ParseShapes("x=4x3:3,x=5x3", s.Signature); err == nil {
			traffic.Sizes, err = ParseSizes("1-3")
		}
		if err != nil {
			t.Fatal(err)
		}
		r := simulated(t, Run{Setup: s, Seed: seed, Traffic: traffic, Service: &Service{Fixed: time.Millisecond, Exponential: true}, Keeps: true})
		var b bytes.Buffer
		if err := (&Report{Seed: seed, Notes: []string{}, Summary: r}).WriteJSON(&b, traffic.Kinds); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	data := write(1)
	if !bytes.Equal(data, write(1)) || bytes.Equal(data, write(2)) {
		t.Error("a seed does not decide what happens")
	}
	var said struct {
		Summary    struct{ Requests, OK int }
		Executions []struct {
			Start, End float64
			Items      int
			Requests   []int
		}
		Requests []struct {
			Arrival, Queue, Latency float64
			Size                    int
			Shape, Outcome          string
		}
	}
	if err := json.Unmarshal(data, &said); err != nil {
		t.Fatal(err)
	}
	seen := make([]int, len(said.Requests))
	for _, e := range said.Executions {
		items := 0
		for _, id := range e.Requests {
			r := said.Requests[id]
			seen[id]++
			items += r.Size
			if diff := r.Arrival + r.Queue - e.Start; diff > 1e-6 || diff < -1e-6 || r.Arrival+r.Latency > e.End+1e-6 {
				t.Errorf("request %d %+v in the execution %+v", id, r, e)
			}
			if r.Shape != said.Requests[e.Requests[0]].Shape {
				t.Errorf("shapes differ in %v", e.Requests)
			}
		}
		if items != e.Items {
			t.Errorf("%d items in %+v", items, e)
		}
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("request %d ran %d times", id, n)
		}
	}
	if len(seen) != 300 || said.Summary.OK != 300 {
		t.Errorf("%d requests, %+v", len(seen), said.Summary)
	}
}

func TestTimeText(t *testing.T) {
	for ns, want := range map[time.Duration]string{0: "0", 1: "0.000001", time.Millisecond: "1", 1500 * time.Microsecond: "1.5", 1001 * time.Microsecond: "1.001", time.Hour + 10: "3600000.00001"} {
		if got := string(appendTime(nil, ns)); got != want {
			t.Errorf("%d ns: %s, want %s", ns, got, want)
		}
	}
}

func TestDescribe(t *testing.T) {
	var ns []int64
	for i := range int64(1000) {
		ns = append(ns, (1000-i)*1e6)
	}
	want := Distribution{Mean: 500.5, Std: 288.8194360957494, P50: 500, P90: 900, P95: 950, P99: 990, P999: 999, Max: 1000}
	if diff := cmp.Diff(want, describe(ns), cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Error(diff)
	}
	if got := describe([]int64{7e6}); got.P50 != 7 || got.P999 != 7 || got.Std != 0 {
		t.Errorf("one time: %+v", got)
	}
}

// Times are sorted, few and many, whatever they are.
func TestSortTimes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 100, 5000, 20000} {
		for _, most := range []int64{1, 1000, 1 << 40, 1<<63 - 1} {
			ns := make([]int64, n)
			for i := range ns {
				ns[i] = r.Int64N(most)
			}
			want := slices.Sorted(slices.Values(ns))
			if sortTimes(ns); !slices.Equal(ns, want) {
				t.Errorf("%d times below %d are not sorted", n, most)
			}
		}
	}
}

// What would never end is said before it begins.
func TestRefusedRuns(t *testing.T) {
	for want, traffic := range map[string]*Traffic{
		"nothing says when to stop: give a duration or a number of requests":                                            {Rate: 1},
		"1e+09 requests a second for 1h0m0s are more than 100000000":                                                    {Rate: 1e9, Duration: time.Hour},
		"200000000 requests: at most 100000000":                                                                         {Rate: 1, Requests: 200_000_000},
		"clients that are answered at once send without end: give a service time, a think time or a number of requests": {Clients: 1, Duration: time.Second},
	} {
		_, err := (&Run{Setup: on(0), Traffic: traffic, Service: &Service{}}).Do(context.Background())
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := (&Run{Setup: on(0), Traffic: &Traffic{Rate: 1000, Duration: time.Hour, Kinds: []Kind{{}}}, Service: &Service{}}).Do(ctx); err != context.Canceled {
		t.Errorf("interrupted: %v", err)
	}
}

// Clients that are refused try again later, and do not stop time.
func TestRefusedClients(t *testing.T) {
	setup := on(0)
	setup.Policy = executor.Policy{MaxBatch: 1, Dynamic: true, Queue: executor.QueuePolicy{MaxSize: 1}}
	r := simulated(t, Run{Setup: setup, Traffic: &Traffic{Clients: 5, Duration: time.Second}, Service: &Service{Fixed: 10 * time.Millisecond}})
	if r.Rejected == 0 || r.QueueFull != r.Rejected || r.OK < 95 {
		t.Errorf("%+v", r)
	}
}

// Times that are longer than time itself end a run with an error; before, they turned into
// times below 0.
func TestEndOfTime(t *testing.T) {
	const day = 24 * time.Hour
	for _, test := range []struct {
		name    string
		traffic Traffic
		service Service
		refused bool
	}{
		{"a rate near 0", Traffic{Rate: 1e-300, Requests: 5}, Service{}, true},
		{"some requests within it", Traffic{Rate: 2e-10, Requests: 5}, Service{}, true},
		{"at random", Traffic{Rate: 1e-300, Poisson: true, Requests: 5}, Service{}, true},
		{"none while requests are sent", Traffic{Rate: 1e-300, Duration: time.Hour}, Service{}, false},
		{"one batch", Traffic{Rate: 1, Requests: 1}, Service{Item: never}, true},
		{"batches one after the other", Traffic{Clients: 1, Requests: 500_000}, Service{Fixed: day}, true},
		{"thought", Traffic{Clients: 1, Requests: 3, Think: never - 1}, Service{Fixed: day}, true},
		{"thought that nobody waits for", Traffic{Clients: 1, Duration: day, Think: never}, Service{Fixed: time.Hour}, false},
		{"long, and no longer", Traffic{Clients: 1, Requests: 100_000}, Service{Fixed: day}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.traffic.Kinds = []Kind{{}}
			r, err := (&Run{Setup: on(0), Traffic: &test.traffic, Service: &test.service}).Do(context.Background())
			switch {
			case test.refused && (err == nil || err.Error() != "requests, or their batches, last longer than 292 years: give a higher rate, or shorter times"):
				t.Errorf("%v, %+v", err, r)
			case !test.refused && err != nil:
				t.Error(err)
			case !test.refused && (r.Latency.Mean < 0 || r.Use < 0 || r.Use > 1 || r.Waiting != 0):
				t.Errorf("%+v", r)
			}
		})
	}
}
