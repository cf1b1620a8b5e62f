package executor

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/bench/engine/null"
	"github.com/npuctl/npuctl/bench/engine/ort"
	"github.com/npuctl/npuctl/bench/engine/ref"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/text"
)

// copyPorts is a signature of rows of several kinds. The null engine copies x to y, and k
// to z, as their types say.
var (
	copyInputs = []engine.Port{
		{Name: "x", Type: tensor.Float32, Dims: []int64{-1, 3}}, {Name: "k", Type: tensor.Int64, Dims: []int64{-1}}, {Name: "s", Type: tensor.String, Dims: []int64{-1, 2}},
		{Name: "o", Type: tensor.Uint8, Dims: []int64{-1}, Optional: true}}
	copyOutputs = []engine.Port{
		{Name: "t", Type: tensor.String, Dims: []int64{-1, 2}}, {Name: "y", Type: tensor.Float32, Dims: []int64{-1, 3}}, {Name: "z", Type: tensor.Int64, Dims: []int64{-1}}}
)

// copyPayload is a request of so many rows, which no other has, with the optional input or
// without.
func copyPayload(random *rand.Rand, items int) *Payload {
	p := &Payload{Inputs: []engine.Buffer{
		{Shape: []int64{int64(items), 3}, Bytes: make([]byte, 12*items)},
		{Shape: []int64{int64(items)}, Bytes: make([]byte, 8*items)},
		{Shape: []int64{int64(items), 2}, Strings: make([]string, 2*items)},
		{},
	}}
	if random.IntN(3) == 0 {
		p.Inputs[3] = engine.Buffer{Shape: []int64{int64(items)}, Bytes: make([]byte, items)}
	}
	for _, in := range p.Inputs {
		for i := range in.Bytes {
			in.Bytes[i] = byte(random.Uint32())
		}
		for i := range in.Strings {
			in.Strings[i] = fmt.Sprint(random.Uint64())
		}
	}
	return p
}

// checkCopies holds that the outputs are what the inputs were.
func checkCopies(p *Payload) error {
	for o, i := range []int{2, 0, 1} {
		got, want := p.Outputs[o], p.Inputs[i]
		if !slices.Equal(got.Shape, want.Shape) || !bytes.Equal(got.Bytes, want.Bytes) || !slices.Equal(got.Strings, want.Strings) {
			return fmt.Errorf("output %d is %+v, want %+v", o, got, want)
		}
	}
	return nil
}

// gearsOf are gears for the batch of all inputs of the copying model.
func gearsOf(sizes ...int64) *engine.Gears {
	g := &engine.Gears{Dims: [][]int64{{-1, 3}, {-1}, {-1, 2}, {-1}}}
	for _, n := range sizes {
		g.Rows = append(g.Rows, []int64{n, n, n, n})
	}
	return g
}

// withBatch fixes the first dim.
func withBatch(n int64, ports []engine.Port) []engine.Port {
	ports = slices.Clone(ports)
	for i := range ports {
		ports[i].Dims = slices.Clone(ports[i].Dims)
		ports[i].Dims[0] = n
	}
	return ports
}

// Whatever the batches, gears and streams are, and whatever goes wrong: each request is
// answered once, with its own rows or an error, all leases come back, and the stages sum
// to the latency.
func TestRowsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 9).Draw(t, "max batch")
		setup := Setup{
			Policy: Policy{MaxBatch: limit, Dynamic: rapid.Bool().Draw(t, "dynamic"),
				Delay: time.Duration(rapid.IntRange(0, 1).Draw(t, "delay")) * 50 * time.Microsecond, PreserveOrdering: rapid.Bool().Draw(t, "ordered")},
			Devices:         rapid.SliceOfN(rapid.IntRange(0, 1), 1, 4).Draw(t, "devices"),
			StreamsPerBatch: rapid.IntRange(0, 3).Draw(t, "streams of a batch"),
		}
		if rapid.Bool().Draw(t, "has streams") {
			setup.Streams = rapid.IntRange(max(1, setup.StreamsPerBatch), 4).Draw(t, "streams")
		}
		options := null.Options{Inputs: copyInputs, Outputs: copyOutputs, Devices: 2}
		switch rapid.IntRange(0, 2).Draw(t, "sizes") {
		case 1:
			options.Gears = gearsOf(rapid.SliceOfNDistinct(rapid.Int64Range(1, 8), 1, 4, rapid.ID).Draw(t, "gears")...)
		case 2:
			fixed := rapid.Int64Range(1, 4).Draw(t, "fixed batch")
			options.Inputs, options.Outputs = withBatch(fixed, copyInputs), withBatch(fixed, copyOutputs)
		}
		faults := rapid.Bool().Draw(t, "faults")
		if faults {
			options.Faults = null.Faults{Fail: rapid.IntRange(3, 9).Draw(t, "fail"), Break: rapid.IntRange(5, 15).Draw(t, "break"), Panic: rapid.IntRange(7, 20).Draw(t, "panic")}
			if rapid.Bool().Draw(t, "cannot be remade") {
				options.Faults.NewInstance = func(number int, _ engine.Placement) error {
					if number >= 20 {
						return errors.New("the device is gone")
					}
					return nil
				}
			}
		}
		before := runtime.NumGoroutine()
		if err := runRows(&setup, options, faults, rapid.Uint64().Draw(t, "seed")); err != nil {
			t.Fatal(err)
		}
		for range 200 {
			if runtime.NumGoroutine() <= before {
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Fatalf("%d goroutines are left", runtime.NumGoroutine()-before)
	})
}

// runRows sends requests of random sizes from several clients.
func runRows(setup *Setup, o null.Options, faults bool, seed uint64) error {
	opened, err := null.New(o).Open(context.Background(), "")
	if err != nil {
		return err
	}
	m, err := NewModel(opened, setup, ModelOptions{})
	if err != nil {
		return err
	}
	l, err := NewLive(*setup, m)
	if err != nil {
		return err
	}
	const clients, each = 4, 25
	var mu sync.Mutex
	var answers [Waiting]int64
	var problems []error
	var wait sync.WaitGroup
	for client := range clients {
		wait.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(client)))
			call := NewCall()
			for range each {
				p := copyPayload(random, 1+random.IntN(setup.Policy.MaxBatch))
				outcome, err := sendRows(l, m, call, p, faults)
				mu.Lock()
				answers[outcome]++
				if err != nil {
					problems = append(problems, err)
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	c := l.Counters()
	if c.OK != answers[OK] || c.Failed != answers[Failed] || answers[OK]+answers[Failed] != clients*each || !faults && c.Failed > 0 {
		problems = append(problems, fmt.Errorf("%v answers, the counters are %+v", answers, c))
	}
	if err := l.leases(); err != nil {
		problems = append(problems, err)
	}
	return errors.Join(errors.Join(problems...), l.Close(context.Background()), opened.Close())
}

// sendRows sends one request and looks at its answer.
func sendRows(l *Live, m *Model, call *Call, p *Payload, faults bool) (Outcome, error) {
	if err := m.Prepare(call, p); err != nil {
		return Failed, err
	}
	outcome := l.Do(context.Background(), call)
	if len(call.answer) > 0 {
		return outcome, errors.New("answered twice")
	}
	if outcome != OK {
		isMeant := faults && outcome == Failed && call.Err != nil
		if !isMeant {
			return outcome, fmt.Errorf("%v: %w", outcome, call.Err)
		}
		return outcome, nil
	}
	s := call.Stages()
	if sum := s.Queue + s.Batching + s.H2D + s.Compute + s.D2H + s.Respond; sum != call.Ended-call.Arrived || s.Queue < 0 || s.Batching < 0 || s.Respond < 0 {
		return outcome, fmt.Errorf("stages %+v of a latency of %v", s, call.Ended-call.Arrived)
	}
	if e := p.Execution; e.Items < call.Size || e.Chunks < 1 || e.Serial < 1 {
		return outcome, fmt.Errorf("execution %+v of a request of %d", e, call.Size)
	}
	return outcome, checkCopies(p)
}

// requests is how many requests TestTraffic sends: -args -requests=1000000.
var requests = flag.Int("requests", 100_000, "requests of TestTraffic")

// Traffic for as long as one likes, with faults all the time: nothing is lost, nothing is
// answered twice, and memory stays as it is.
func TestTraffic(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	setup := Setup{Policy: Policy{MaxBatch: 8, Dynamic: true, Queue: QueuePolicy{MaxSize: 12}}, Devices: []int{0, 0, 0}}
	l := liveModel(t, null.New(null.Options{Inputs: copyInputs, Outputs: copyOutputs, Gears: gearsOf(1, 3, 6),
		Faults: null.Faults{Fail: 17, Break: 101, Panic: 131, Stall: 1009, StallTime: 200 * time.Microsecond}}), &setup, ModelOptions{})
	const clients = 16
	var answers [Waiting]atomic.Int64
	var heaps []uint64
	for range 4 {
		var wait sync.WaitGroup
		for client := range clients {
			wait.Go(func() {
				random := rand.New(rand.NewPCG(9, uint64(client)))
				payloads := make([]*Payload, 64)
				for i := range payloads {
					payloads[i] = copyPayload(random, 1+random.IntN(8))
				}
				call := NewCall()
				for n := range *requests / clients / 4 {
					ctx, cancel := context.Background(), func() {}
					if n%50 == 0 {
						ctx, cancel = context.WithTimeout(ctx, time.Duration(random.IntN(100))*time.Microsecond)
					}
					outcome, err := sendTraffic(ctx, l, call, payloads[random.IntN(len(payloads))])
					cancel()
					if err != nil {
						t.Error(err)
						return
					}
					answers[outcome].Add(1)
				}
			})
		}
		wait.Wait()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		heaps = append(heaps, m.HeapAlloc)
	}
	c := l.Counters()
	for o, want := range map[Outcome]int64{OK: c.OK, Rejected: c.Rejected, Failed: c.Failed, Cancelled: c.Cancelled} {
		if got := answers[o].Load(); got != want {
			t.Errorf("%v: %d, the counters say %d", o, got, want)
		}
		if want == 0 {
			t.Errorf("no request was %v", o)
		}
	}
	if err := l.leases(); err != nil {
		t.Error(err)
	}
	if most := heaps[0] + 1<<20; heaps[len(heaps)-1] > most {
		t.Errorf("memory grows: %d bytes after each quarter", heaps)
	}
	t.Logf("%+v, %d instances were made anew, %d bytes of heap", c, l.model.Remade(), heaps)
}

// sendTraffic sends a request that may be refused, cancelled or fail.
func sendTraffic(ctx context.Context, l modelLive, call *Call, p *Payload) (Outcome, error) {
	if err := l.model.Prepare(call, p); err != nil {
		return Failed, err
	}
	outcome := l.Do(ctx, call)
	switch {
	case len(call.answer) > 0:
		return outcome, errors.New("answered twice")
	case outcome != OK && call.Err == nil:
		return outcome, fmt.Errorf("%v without a reason", outcome)
	case outcome != OK:
		return outcome, nil
	}
	return outcome, checkCopies(p)
}

// leases says which leases are out, when there should be none.
func (l *Live) leases() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	in := &l.scheduler.instances
	lost := 0
	for _, isLost := range in.lost {
		lost += boolToInt(isLost)
	}
	busy := 0
	for _, isBusy := range in.busy {
		busy += boolToInt(isBusy)
	}
	if in.streams > 0 && busy > 0 || in.streams == 0 && busy != lost || in.idle != len(in.lost)-lost || slices.Max(in.running) > 0 {
		return fmt.Errorf("%d instances are busy, %d of %d workers idle, %d lost, %v streams run", busy, in.idle, len(in.lost), lost, in.running)
	}
	if l.scheduler.batcher.idle+boolToInt(in.streams == 0)*lost != len(in.devices) {
		return fmt.Errorf("the batcher counts %d idle instances of %d, %d are lost", l.scheduler.batcher.idle, len(in.devices), lost)
	}
	return nil
}

// Large requests that run alone are read where they are; with others, and padded, they are
// copied. The rows are the same.
func TestLargeRequests(t *testing.T) {
	ports := func(name string) []engine.Port {
		return []engine.Port{{Name: name, Type: tensor.Uint8, Dims: []int64{-1, worthLending}}}
	}
	setup := Setup{Policy: Policy{MaxBatch: 4, Dynamic: true}, Devices: []int{0}}
	l := liveModel(t, null.New(null.Options{Inputs: ports("x"), Outputs: ports("y"),
		Gears: &engine.Gears{Dims: [][]int64{{-1, worthLending}}, Rows: [][]int64{{1}, {2}, {4}}}}), &setup, ModelOptions{})
	var wait sync.WaitGroup
	for client := range 3 {
		wait.Go(func() {
			random := rand.New(rand.NewPCG(11, uint64(client)))
			call := NewCall()
			for n := range 60 {
				items := 1 + random.IntN(3)
				x := bytes.Repeat([]byte{byte(100*client + n)}, items*worthLending)
				p := &Payload{Inputs: []engine.Buffer{{Shape: []int64{int64(items), worthLending}, Bytes: x}}}
				if err := l.model.Prepare(call, p); err != nil {
					t.Error(err)
					return
				}
				if o := l.Do(context.Background(), call); o != OK || !bytes.Equal(p.Outputs[0].Bytes, x) {
					t.Errorf("client %d, request %d: %v, %v; %d bytes", client, n, o, call.Err, len(p.Outputs[0].Bytes))
				}
			}
		})
	}
	wait.Wait()
	call := NewCall()
	p := &Payload{Inputs: []engine.Buffer{{Shape: []int64{2, worthLending}, Bytes: make([]byte, 2*worthLending)}}}
	if err := l.model.Prepare(call, p); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { l.Do(context.Background(), call) }); n > 0 {
		t.Errorf("%.1f allocations a request", n)
	}
}

// Workers that cannot be replaced go out of service one by one; with the last one all
// that waits is answered, and all that comes.
func TestOutOfService(t *testing.T) {
	setup := Setup{Policy: Policy{MaxBatch: 1}, Devices: []int{0, 0}}
	gone := errors.New("the device is gone")
	e := null.New(null.Options{Inputs: copyInputs, Outputs: copyOutputs, Faults: null.Faults{Break: 1,
		NewInstance: func(number int, _ engine.Placement) error {
			if number >= 2 {
				return gone
			}
			return nil
		}}})
	l := liveModel(t, e, &setup, ModelOptions{})
	var wait sync.WaitGroup
	for client := range 8 {
		wait.Go(func() {
			call := NewCall()
			random := rand.New(rand.NewPCG(1, uint64(client)))
			if err := l.model.Prepare(call, copyPayload(random, 1)); err != nil {
				t.Error(err)
			}
			if o := l.Do(context.Background(), call); o != Failed || !errors.Is(call.Err, gone) || !strings.Contains(call.Err.Error(), "out of service") {
				t.Errorf("%v: %v", o, call.Err)
			}
		})
	}
	wait.Wait()
	if c := l.Counters(); c.Executions != 2 || c.Failed != 8 {
		t.Errorf("%+v, want 2 executions and 8 failures", c)
	}
	if l.model.Remade() != 0 {
		t.Errorf("%d instances were made anew", l.model.Remade())
	}
}

// An instance that breaks again each time is given up.
func TestBreaksAgain(t *testing.T) {
	setup := Setup{Policy: Policy{MaxBatch: 1}, Devices: []int{0}}
	l := liveModel(t, null.New(null.Options{Inputs: copyInputs, Outputs: copyOutputs, Faults: null.Faults{Break: 1}}), &setup, ModelOptions{})
	call := NewCall()
	for n := range mostRemakes + 2 {
		if err := l.model.Prepare(call, copyPayload(rand.New(rand.NewPCG(1, 2)), 1)); err != nil {
			t.Fatal(err)
		}
		o := l.Do(context.Background(), call)
		if isGone := errors.Is(call.Err, ErrOutOfService); o != Failed || isGone != (n >= mostRemakes) {
			t.Errorf("request %d: %v, %v", n, o, call.Err)
		}
	}
	if l.model.Remade() != mostRemakes {
		t.Errorf("made anew %d times", l.model.Remade())
	}
}

// What keeps an instance from being made comes out before anything runs.
func TestInstancesThatCannotBeMade(t *testing.T) {
	before := runtime.NumGoroutine()
	setup := Setup{Policy: Policy{MaxBatch: 1}, Devices: []int{0, 1, 0}}
	opened, err := null.New(null.Options{Inputs: copyInputs, Outputs: copyOutputs}).Open(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewModel(opened, &setup, ModelOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewLive(setup, m); fault.FamilyOf(err) != fault.Missing || !strings.Contains(err.Error(), "on device 1") {
		t.Errorf("%v", err)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines are left", n-before)
	}
}

// threadEngine holds that an instance is made, used and closed on one goroutine.
type threadEngine struct{ engine.Model }

type threadInstance struct {
	engine.Instance
	goroutine string
}

func goroutine() string {
	b := make([]byte, 64)
	return strings.Fields(string(b[:runtime.Stack(b, false)]))[1]
}

func (e threadEngine) NewInstance(p engine.Placement) (engine.Instance, error) {
	i, err := e.Model.NewInstance(p)
	return &threadInstance{i, goroutine()}, err
}

func (i *threadInstance) Run(ctx context.Context) (engine.Times, error) {
	if now := goroutine(); now != i.goroutine {
		return engine.Times{}, fmt.Errorf("made on goroutine %s, run on %s", i.goroutine, now)
	}
	return i.Instance.Run(ctx)
}

func (i *threadInstance) Close() error {
	if now := goroutine(); now != i.goroutine {
		return fmt.Errorf("made on goroutine %s, closed on %s", i.goroutine, now)
	}
	return i.Instance.Close()
}

func TestInstancesStayOnTheirGoroutine(t *testing.T) {
	setup := Setup{Policy: Policy{MaxBatch: 4, Dynamic: true}, Devices: []int{0, 0, 0}, StreamsPerBatch: 2}
	opened, err := null.New(null.Options{Inputs: copyInputs, Outputs: copyOutputs}).Open(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewModel(threadEngine{opened}, &setup, ModelOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLive(setup, m)
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for client := range 4 {
		wait.Go(func() {
			call := NewCall()
			random := rand.New(rand.NewPCG(3, uint64(client)))
			for range 50 {
				if o, err := sendRows(l, m, call, copyPayload(random, 1+random.IntN(4)), false); err != nil {
					t.Errorf("%v: %v", o, err)
				}
			}
		})
	}
	wait.Wait()
	if err := l.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// Gears of inner dims: rows are padded inside, and cut back where outputs follow.
func TestGearsOfInnerDims(t *testing.T) {
	ports := func(name string) []engine.Port {
		return []engine.Port{{Name: name, Type: tensor.Uint8, Dims: []int64{-1, -1, 2}}}
	}
	gears := &engine.Gears{Dims: [][]int64{{-1, -1, 2}}, Rows: [][]int64{{1, 2}, {2, 4}}}
	for _, test := range []struct {
		name    string
		follows []Follow
		want    []string // for 1 item of 3x2, 2 of 1x2, 2 of 3x2, 1 of 2x2
	}{
		{"as large as the gear", nil, []string{"[1 4 2] [1 2 3 4 5 6 0 0]", "[2 4 2] [1 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0]", "[2 4 2] [1 2 3 4 5 6 0 0 7 8 9 10 11 12 0 0]", "[1 2 2] [1 2 3 4]"}},
		{"as large as the request", []Follow{{"y", 1, "x", 1}}, []string{"[1 3 2] [1 2 3 4 5 6]", "[2 1 2] [1 2 3 4]", "[2 3 2] [1 2 3 4 5 6 7 8 9 10 11 12]", "[1 2 2] [1 2 3 4]"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			setup := Setup{Policy: Policy{MaxBatch: 4}, Devices: []int{0}}
			l := liveModel(t, null.New(null.Options{Inputs: ports("x"), Outputs: ports("y"), Gears: gears}), &setup, ModelOptions{Follows: test.follows})
			for range 2 {
				for i, shape := range [][]int64{{1, 3, 2}, {2, 1, 2}, {2, 3, 2}, {1, 2, 2}} {
					p := &Payload{Inputs: []engine.Buffer{{Shape: shape}}}
					for k := range elements(shape) {
						p.Inputs[0].Bytes = append(p.Inputs[0].Bytes, byte(k+1))
					}
					call := NewCall()
					if err := l.model.Prepare(call, p); err != nil {
						t.Fatal(err)
					}
					if o := l.Do(context.Background(), call); o != OK {
						t.Fatal(call.Err)
					}
					if got := fmt.Sprint(p.Outputs[0].Shape, " ", p.Outputs[0].Bytes); got != test.want[i] {
						t.Errorf("%v: %s, want %s", shape, got, test.want[i])
					}
				}
			}
			p := &Payload{Inputs: []engine.Buffer{{Shape: []int64{1, 5, 2}, Bytes: make([]byte, 10)}}}
			call := NewCall()
			if err := l.model.Prepare(call, p); err != nil {
				t.Fatal(err)
			}
			if o := l.Do(context.Background(), call); o != Failed || !strings.Contains(call.Err.Error(), "x 5x2") {
				t.Errorf("no gear has 5: %v, %v", o, call.Err)
			}
		})
	}
}

// Memory behind the rows is zero, whatever was in it, and is not cleared again and again.
func TestPaddingIsZero(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		memory := bytes.Repeat([]byte{7}, 64)
		var p padding
		for range 20 {
			size := rapid.IntRange(1, 64).Draw(t, "size")
			used := rapid.IntRange(0, size).Draw(t, "used")
			if rapid.IntRange(0, 9).Draw(t, "moves") == 0 {
				memory = bytes.Repeat([]byte{7}, 64)
			}
			buffer := memory[:size]
			p.rows(buffer, used)
			for i := range used {
				buffer[i] = 9
			}
			for i, b := range buffer[used:] {
				if b != 0 {
					t.Fatalf("byte %d behind %d used ones of %d is %d", used+i, used, size, b)
				}
			}
		}
	})
}

func TestPayloadsAreChecked(t *testing.T) {
	setup := Setup{Policy: Policy{MaxBatch: 4}, Devices: []int{0}}
	l := liveModel(t, null.New(null.Options{Inputs: copyInputs, Outputs: copyOutputs}), &setup, ModelOptions{})
	good := func() *Payload { return copyPayload(rand.New(rand.NewPCG(1, 2)), 2) }
	for want, spoil := range map[string]func(*Payload){
		"2 inputs: the model has 4":                    func(p *Payload) { p.Inputs = p.Inputs[:2] },
		`input "k" is missing`:                         func(p *Payload) { p.Inputs[1].Shape = nil },
		`input "s" has 1 items, another has 2`:         func(p *Payload) { p.Inputs[2].Shape = []int64{1, 2} },
		`input "x" is a scalar`:                        func(p *Payload) { p.Inputs[0].Shape = []int64{} },
		`the shape 4 does not fit 3`:                   func(p *Payload) { p.Inputs[0].Shape = []int64{2, 4} },
		"FLOAT 2x3 takes 24 bytes, and there are 23":   func(p *Payload) { p.Inputs[0].Bytes = p.Inputs[0].Bytes[:23] },
		"STRING 2x2 takes 4 strings, and there are 1":  func(p *Payload) { p.Inputs[2].Strings = p.Inputs[2].Strings[:1] },
		"a request of 5 items: the model takes 1 to 4": func(p *Payload) { *p = *copyPayload(rand.New(rand.NewPCG(1, 2)), 5) },
		"a request of 0 items: the model takes 1 to 4": func(p *Payload) { *p = *copyPayload(rand.New(rand.NewPCG(1, 2)), 0) },
	} {
		p := good()
		spoil(p)
		if err := l.model.Prepare(NewCall(), p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	call := NewCall()
	p := good()
	if err := l.model.Prepare(call, p); err != nil {
		t.Fatal(err)
	}
	p.Inputs[0].Bytes = p.Inputs[0].Bytes[:3]
	if o := l.Do(context.Background(), call); o != Failed || !strings.Contains(call.Err.Error(), "after it was prepared") {
		t.Errorf("%v: %v", o, call.Err)
	}
}

// What does not go together is named, with the remedy, before anything runs.
func TestModelAgainstSetup(t *testing.T) {
	x := func(dims ...int64) engine.Port { return engine.Port{Name: "x", Type: tensor.Float32, Dims: dims} }
	y := engine.Port{Name: "y", Type: tensor.Float32, Dims: []int64{-1, 3}}
	type test struct {
		want     string
		inputs   []engine.Port
		outputs  []engine.Port
		gears    *engine.Gears
		maxBatch int
		declares []Input
		options  ModelOptions
		setGears []int64
	}
	for _, c := range []test{
		{want: `the model has no input "z"; did you mean`, inputs: []engine.Port{x(-1, 3)}, maxBatch: 4, declares: []Input{{Name: "z", Dims: []int64{3}}}},
		{want: `needs input "k" (INT64 -1), which the configuration does not have; add it`, inputs: []engine.Port{x(-1, 3), {Name: "k", Type: tensor.Int64, Dims: []int64{-1}}}, maxBatch: 4, declares: []Input{{Name: "x", Dims: []int64{3}}}},
		{want: `takes ragged batches (allow_ragged_batch)`, inputs: []engine.Port{x(-1, 3)}, maxBatch: 4, declares: []Input{{Name: "x", Dims: []int64{3}, Ragged: true}}},
		{want: `set optional to false`, inputs: []engine.Port{x(-1, 3)}, maxBatch: 4, declares: []Input{{Name: "x", Dims: []int64{3}, Optional: true}}},
		{want: `"x" is 4 in the configuration, and 3 in the model; set dims to that`, inputs: []engine.Port{x(-1, 3)}, maxBatch: 4, declares: []Input{{Name: "x", Dims: []int64{4}}}},
		{want: `"x" is 3 in the configuration, and -1x3 in the model; set dims to that, or max_batch_size to more than 0`, inputs: []engine.Port{x(-1, 3)}, declares: []Input{{Name: "x", Dims: []int64{3}}}},
		{want: `leaves no dim for the batch`, inputs: []engine.Port{x(3)}, maxBatch: 4, declares: []Input{{Name: "x", Dims: []int64{3}}}},
		{want: `"x" is INT64 in the configuration, and FLOAT in the model; set data_type to that`, inputs: []engine.Port{x(-1, 3)}, maxBatch: 4, declares: []Input{{Name: "x", Dims: []int64{3}}},
			options: ModelOptions{Inputs: []Declared{{Name: "x", Type: tensor.Int64, Dims: []int64{3}}}}},
		{want: `the model has no output "w"; did you mean`, inputs: []engine.Port{x(-1, 3)}, maxBatch: 4, options: ModelOptions{Outputs: []Declared{{Name: "w"}}}},
		{want: `output "y" is 2x3 in the model, for a batch of 1`, inputs: []engine.Port{x(1, 3)}, outputs: []engine.Port{{Name: "y", Type: tensor.Float32, Dims: []int64{2, 3}}}, maxBatch: 4},
		{want: `the first dim is 2 of input "x" and 3 of input "k"`, inputs: []engine.Port{x(2, 3), {Name: "k", Type: tensor.Int64, Dims: []int64{3}}}, maxBatch: 4},
		{want: `the configuration has the gears 1x3; 4x3, and the model was made for 1x3; 2x3`, inputs: []engine.Port{x(-1, 3)}, maxBatch: 4, setGears: []int64{1, 4}, gears: &engine.Gears{Dims: [][]int64{{-1, 3}}, Rows: [][]int64{{1}, {2}}}},
		{want: `no gear is large enough for x 5; there are 1,3; 2,4: compile`, inputs: []engine.Port{x(-1, -1)}, maxBatch: 4, declares: []Input{{Name: "x", Dims: []int64{5}}}, gears: &engine.Gears{Dims: [][]int64{{-1, -1}}, Rows: [][]int64{{1, 3}, {2, 4}}}},
		{want: `input "x" is a scalar and has no dim for the batch`, inputs: []engine.Port{x()}, maxBatch: 4},
	} {
		if c.inputs[0].Dims == nil {
			c.inputs[0].Dims = []int64{}
		}
		if c.outputs == nil {
			c.outputs = []engine.Port{y}
		}
		opened, err := null.New(null.Options{Inputs: c.inputs, Outputs: c.outputs, Gears: c.gears}).Open(context.Background(), "")
		if err != nil {
			t.Fatal(err)
		}
		setup := Setup{Policy: Policy{MaxBatch: c.maxBatch}, Devices: []int{0}}
		if c.declares != nil {
			setup.Signature = NewSignature(c.declares, c.maxBatch)
		}
		if c.setGears != nil {
			setup.Signature = NewSignature([]Input{{Name: "x", Dims: []int64{3}}}, c.maxBatch)
			if setup.Gears, err = BatchGears(setup.Signature, c.setGears...); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := NewModel(opened, &setup, c.options); fault.FamilyOf(err) != fault.Input || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

// Models without a batch take requests as they are, scalars among them.
func TestModelWithoutBatch(t *testing.T) {
	inputs := []engine.Port{{Name: "x", Type: tensor.Int64, Dims: []int64{}}, {Name: "k", Type: tensor.Float32, Dims: []int64{2, -1}}}
	outputs := []engine.Port{{Name: "y", Type: tensor.Int64, Dims: []int64{}}, {Name: "z", Type: tensor.Float32, Dims: []int64{2, -1}}}
	setup := Setup{Devices: []int{0}}
	l := liveModel(t, null.New(null.Options{Inputs: inputs, Outputs: outputs}), &setup, ModelOptions{})
	for _, n := range []int64{3, 1} {
		p := &Payload{Inputs: []engine.Buffer{{Shape: []int64{}, Bytes: []byte{1, 2, 3, 4, 5, 6, 7, 8}}, {Shape: []int64{2, n}, Bytes: bytes.Repeat([]byte{5}, int(8*n))}}}
		call := NewCall()
		if err := l.model.Prepare(call, p); err != nil {
			t.Fatal(err)
		}
		if o := l.Do(context.Background(), call); o != OK {
			t.Fatal(call.Err)
		}
		for i, want := range p.Inputs {
			if got := p.Outputs[i]; got.Shape == nil || !slices.Equal(got.Shape, want.Shape) || !bytes.Equal(got.Bytes, want.Bytes) {
				t.Errorf("output %d: %v, want %v", i, got, want)
			}
		}
	}
}

// An output without the batch is an error of its batch that says what to do.
func TestOutputWithoutBatch(t *testing.T) {
	setup := Setup{Policy: Policy{MaxBatch: 4}, Devices: []int{0}}
	outputs := []engine.Port{{Name: "y", Type: tensor.Float32, Dims: []int64{1, 3}}}
	l := liveModel(t, null.New(null.Options{Inputs: copyInputs, Outputs: outputs}), &setup, ModelOptions{})
	call := NewCall()
	if err := l.model.Prepare(call, copyPayload(rand.New(rand.NewPCG(1, 2)), 2)); err != nil {
		t.Fatal(err)
	}
	if o := l.Do(context.Background(), call); o != Failed || !strings.Contains(call.Err.Error(), `output "y": it has the shape 1x3 for a batch of 2`) {
		t.Errorf("%v: %v", o, call.Err)
	}
}

// A steady run allocates nothing, gears and all.
func TestModelAllocatesNothing(t *testing.T) {
	for name, gears := range map[string]*engine.Gears{"any size": nil, "gears": gearsOf(2, 4)} {
		t.Run(name, func(t *testing.T) {
			setup := Setup{Policy: Policy{MaxBatch: 4, Dynamic: true}, Devices: []int{0}}
			l := liveModel(t, null.New(null.Options{Inputs: copyInputs, Outputs: copyOutputs, Gears: gears}), &setup, ModelOptions{})
			call := NewCall()
			p := copyPayload(rand.New(rand.NewPCG(1, 2)), 3)
			run := func() {
				if err := l.model.Prepare(call, p); err != nil {
					t.Fatal(err)
				}
				if o := l.Do(context.Background(), call); o != OK {
					t.Fatal(call.Err)
				}
			}
			if n := testing.AllocsPerRun(1000, run); n > 0 {
				t.Errorf("%.1f allocations a request", n)
			}
		})
	}
}

// network is a model of rows: each is multiplied by weights and squashed.
const network = `<ir_version: 8, opset_import: ["": 13]> g (float[n,8] x, float[1] d = {0.5}) => (float[n,8] y, int64[n] best)
	<float[8,8] w = {%s}> { h = MatMul (x, w)  k = Add (h, d)  y = Tanh (k)  best = ArgMax <axis = 1, keepdims = 0> (y) }`

func saveNetwork(t testing.TB) string {
	t.Helper()
	weights := make([]string, 64)
	for i := range weights {
		weights[i] = fmt.Sprint(float64(i%13-6) / 8)
	}
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := text.MustParse(t, fmt.Sprintf(network, strings.Join(weights, ", "))).Save(path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}

// Rows that were computed in batches are those of the same requests alone, with engines
// that compute, and with and without an optional input.
func TestBatchesEqualSingleExecution(t *testing.T) {
	path := saveNetwork(t)
	for name, open := range map[string]func() (engine.Engine, error){
		"ref": func() (engine.Engine, error) { return ref.New(ref.Options{Threads: 1}), nil },
		"ort": func() (engine.Engine, error) { return ort.New(ort.Options{Threads: 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			e, err := open()
			if fault.FamilyOf(err) == fault.Missing {
				t.Skip("SKIPPED, nothing was tested: ONNX Runtime is not on this machine; bring it by running .ci/fetch-onnxruntime")
			}
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			opened, err := e.Open(context.Background(), path)
			if err != nil {
				t.Fatal(err)
			}
			defer opened.Close()
			// The optional input has no batch; it stays with the default.
			signature := NewSignature([]Input{{Name: "x", Dims: []int64{8}}}, 6)
			batched := Setup{Policy: Policy{MaxBatch: 6, Dynamic: true, Delay: 100 * time.Microsecond}, Signature: signature, Devices: []int{0, 0}}
			alone := Setup{Policy: Policy{MaxBatch: 6}, Signature: NewSignature(signature.Inputs, 6), Devices: []int{0}}
			if alone.Gears, err = BatchGears(alone.Signature, 1); err != nil {
				t.Fatal(err)
			}
			if batched.Gears, err = BatchGears(signature, 2, 4); err != nil {
				t.Fatal(err)
			}
			compareExecutors(t, opened, &batched, &alone)
		})
	}
}

// alike compares answers. Products of matrices may round in another way in a batch.
func alike(kind tensor.Type, a, b engine.Buffer) bool {
	if !slices.Equal(a.Shape, b.Shape) || len(a.Bytes) != len(b.Bytes) {
		return false
	}
	if kind != tensor.Float32 {
		return bytes.Equal(a.Bytes, b.Bytes)
	}
	for i := 0; i < len(a.Bytes); i += 4 {
		x, y := math.Float32frombits(binary.LittleEndian.Uint32(a.Bytes[i:])), math.Float32frombits(binary.LittleEndian.Uint32(b.Bytes[i:]))
		if math.Abs(float64(x-y)) > 1e-5 {
			return false
		}
	}
	return true
}

// compareExecutors has two executors run the same requests.
func compareExecutors(t *testing.T, opened engine.Model, first, second *Setup) {
	t.Helper()
	var lives []modelLive
	for _, s := range []*Setup{first, second} {
		m, err := NewModel(opened, s, ModelOptions{})
		if err != nil {
			t.Fatal(err)
		}
		l, err := NewLive(*s, m)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(context.Background())
		lives = append(lives, modelLive{l, m})
	}
	var wait sync.WaitGroup
	for client := range 6 {
		wait.Go(func() {
			random := rand.New(rand.NewPCG(5, uint64(client)))
			for range 40 {
				items := 1 + random.IntN(6)
				rows := make([]byte, 0, 32*items)
				for range 8 * items {
					rows = binary.LittleEndian.AppendUint32(rows, 0x3f000000+random.Uint32N(1<<24))
				}
				var answers [2]*Payload
				for i, l := range lives {
					answers[i] = &Payload{Inputs: []engine.Buffer{{Shape: []int64{int64(items), 8}, Bytes: rows}}}
					call := NewCall()
					if err := l.model.Prepare(call, answers[i]); err != nil {
						t.Error(err)
						return
					}
					if o := l.Do(context.Background(), call); o != OK {
						t.Errorf("%v: %v", o, call.Err)
						return
					}
				}
				for o := range answers[0].Outputs {
					if !alike(lives[0].model.OutputPort(o).Type, answers[0].Outputs[o], answers[1].Outputs[o]) {
						t.Errorf("output %d in a batch of %d: %v, alone %v", o, answers[0].Execution.Items, answers[0].Outputs[o], answers[1].Outputs[o])
					}
				}
			}
		})
	}
	wait.Wait()
	if c := lives[0].Counters(); c.Executions >= c.OK {
		t.Errorf("%+v: nothing was batched", c)
	}
}
