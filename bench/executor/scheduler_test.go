package executor

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// bench is a driver for tests: it keeps what runs until the test lets it end, and checks
// at each step what must hold whatever happens.
type bench struct {
	fataler
	setup    Setup
	s        *Scheduler
	now      time.Duration
	running  []*Batch
	requests []*tracked
	busy     map[int]bool
	order    []int // requests in the order in which they began to run
	answers  []int // requests that were computed, in the order of their answers
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// tracked is a request with what the test knows of it.
type tracked struct {
	Request
	answers int
	outcome Outcome
	level   int
}

func newBench(t fataler, setup Setup) *bench {
	t.Helper()
	b := &bench{fataler: t, setup: setup, busy: map[int]bool{}}
	s, err := NewScheduler(setup, b)
	if err != nil {
		t.Fatalf("%v", err)
	}
	b.s = s
	return b
}

func (b *bench) Start(batch *Batch) {
	if batch.Items > max(1, b.setup.Policy.MaxBatch) {
		b.Fatalf("a batch of %d items, the limit is %d", batch.Items, b.setup.Policy.MaxBatch)
	}
	if b.busy[batch.Instance] {
		b.Fatalf("instance %d runs two batches", batch.Instance)
	}
	b.busy[batch.Instance] = true
	b.checkStreams(batch)
	items, inChunks := 0, 0
	for _, r := range batch.Requests {
		items += r.items
		b.order = append(b.order, r.Tag)
		if (b.setup.Policy.ComparesShapes || b.setup.Policy.ComparesInputs) && r.Class != batch.Class {
			b.Fatalf("classes %d and %d in one batch", r.Class, batch.Class)
		}
	}
	for _, c := range batch.Chunks {
		inChunks += c.Items
	}
	if items != batch.Items || inChunks != items {
		b.Fatalf("a batch of %d items says %d, and %d in its chunks", items, batch.Items, inChunks)
	}
	b.running = append(b.running, batch)
}

// checkStreams holds that there are streams for a batch that begins.
func (b *bench) checkStreams(batch *Batch) {
	limit, each := b.setup.Streams, max(1, b.setup.StreamsPerBatch)
	if limit == 0 {
		return
	}
	onDevice := 1
	for _, other := range b.running {
		onDevice += boolToInt(other.Device == batch.Device)
	}
	if used := (len(b.running) + 1) * each; onDevice > limit || used > limit*len(distinct(b.setup.Devices)) {
		b.Fatalf("%d batches on device %d, %d streams in use: a device has %d", onDevice, batch.Device, used, limit)
	}
}

func (b *bench) Answer(r *Request, o Outcome) {
	k := b.requests[r.Tag]
	k.answers++
	k.outcome = o
	if r.Ended != b.now || r.Started < r.Arrived || r.Ended < r.Started {
		b.Fatalf("request %d: arrived %v, started %v, ended %v, now %v", r.Tag, r.Arrived, r.Started, r.Ended, b.now)
	}
	if o == OK {
		b.answers = append(b.answers, r.Tag)
	}
}

// advance lets time go by, and has the scheduler called at the times it asked for.
func (b *bench) advance(d time.Duration) {
	end := b.now + d
	for {
		at, ok := b.s.NextWake()
		if !ok || at > end {
			break
		}
		if at <= b.now {
			b.now += 1 // it asks for now: it must not do so for ever
		}
		b.now = max(b.now, at)
		b.s.Wake(b.now)
	}
	b.now = max(b.now, end)
}

func (b *bench) submit(r Request) {
	k := &tracked{Request: r, level: b.setup.Policy.Level(r.Level)}
	k.Tag = len(b.requests)
	b.requests = append(b.requests, k)
	b.s.Submit(b.now, &k.Request)
}

// finish ends the i-th running batch.
func (b *bench) finish(i int, err error) {
	batch := b.running[i]
	b.running = append(b.running[:i], b.running[i+1:]...)
	b.busy[batch.Instance] = false
	b.s.Finish(b.now, batch, err)
}

// drain lets everything end.
func (b *bench) drain() {
	for range 10 * (len(b.requests) + 10) {
		b.advance(time.Second)
		if len(b.running) == 0 {
			if _, waits := b.s.NextWake(); !waits {
				break
			}
		}
		for len(b.running) > 0 {
			b.finish(0, nil)
		}
	}
	for _, k := range b.requests {
		if k.answers != 1 {
			b.Fatalf("request %d was answered %d times", k.Tag, k.answers)
		}
	}
	if b.s.Idle() != len(b.setup.Devices) || b.s.Waiting() != 0 {
		b.Fatalf("%d of %d instances are idle, %d requests wait", b.s.Idle(), len(b.setup.Devices), b.s.Waiting())
	}
	c := b.s.Counters()
	if sum := c.OK + c.Rejected + c.Failed + c.Cancelled; sum != int64(len(b.requests)) {
		b.Fatalf("%+v count %d requests of %d", c, sum, len(b.requests))
	}
}

// checkFIFO holds the order of runs against the order of arrival, within a level.
func (b *bench) checkFIFO() {
	last := map[int]int{}
	for _, tag := range b.order {
		level := b.requests[tag].level
		if before, found := last[level]; found && before > tag {
			b.Fatalf("level %d: request %d ran before %d: %v", level, before, tag, b.order)
		}
		last[level] = tag
	}
}

// checkBusy holds that nobody waits for nothing: where an instance is idle, requests wait
// for others, and no longer than the delay.
func (b *bench) checkBusy() {
	delay := b.setup.Policy.Delay
	if !b.setup.Policy.Dynamic {
		delay = 0
	}
	for _, k := range b.requests {
		waits := k.state == stateWaiting || k.state == stateReady
		if waits && k.batch != nil && k.batch.taken {
			b.checkNoStream(k)
			continue
		}
		if waits && b.s.Idle() > 0 && (delay == 0 || b.now-k.Arrived > delay) {
			b.Fatalf("request %d of %v waits at %v, and an instance is idle", k.Tag, k.Arrived, b.now)
		}
	}
}

// checkNoStream holds that a batch, which an instance has, waits for a stream that is not
// there.
func (b *bench) checkNoStream(k *tracked) {
	if b.setup.StreamsPerBatch > 1 && (len(b.running)+1)*b.setup.StreamsPerBatch > b.setup.Streams*len(distinct(b.setup.Devices)) {
		return
	}
	on := map[int]int{}
	for _, batch := range b.running {
		on[batch.Device]++
	}
	for i, device := range b.setup.Devices {
		isFree := b.setup.Streams == 0 || b.setup.StreamsPerBatch <= 1 && on[device] < b.setup.Streams
		if isFree && !b.busy[i] {
			b.Fatalf("request %d waits for a stream, and device %d has one: %v run", k.Tag, device, on)
		}
	}
}

var policies = rapid.Custom(func(t *rapid.T) Policy {
	p := Policy{
		MaxBatch: rapid.SampledFrom([]int{0, 1, 2, 3, 4, 8, 16}).Draw(t, "max batch"),
		Dynamic:  rapid.IntRange(0, 9).Draw(t, "batcher") > 0,
		Delay:    time.Duration(rapid.SampledFrom([]int{0, 0, 1, 5, 50}).Draw(t, "delay")) * time.Millisecond,
	}
	if p.MaxBatch > 0 {
		p.Preferred = rapid.SliceOfN(rapid.IntRange(1, p.MaxBatch), 0, 3).Draw(t, "preferred")
	}
	queues := rapid.Custom(func(t *rapid.T) QueuePolicy {
		return QueuePolicy{
			MaxSize: rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "queue size"), AllowOverride: rapid.Bool().Draw(t, "override"),
			Timeout: time.Duration(rapid.SampledFrom([]int{0, 0, 3, 20}).Draw(t, "timeout")) * time.Millisecond,
		}
	})
	p.Queue = queues.Draw(t, "queue")
	if p.Levels = rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "levels"); p.Levels > 0 {
		p.DefaultLevel = rapid.IntRange(1, p.Levels).Draw(t, "default level")
		p.LevelQueue = map[int]QueuePolicy{1: queues.Draw(t, "queue of level 1")}
	}
	p.PreserveOrdering = p.Levels <= 1 && rapid.Bool().Draw(t, "order")
	p.ComparesShapes, p.ComparesInputs = rapid.Bool().Draw(t, "shapes"), rapid.Bool().Draw(t, "inputs")
	if p.PreserveOrdering {
		return p
	}
	p.Queue.DelayExpired = rapid.Bool().Draw(t, "delay action")
	return p
})

// Whatever comes, in whatever order, with runs that fail and clients that go: every
// request is answered once, batches keep their limits, within a level the first to come
// is the first to run, and every lease ends.
func TestWhateverComes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		setup := Setup{Policy: policies.Draw(t, "policy"), Devices: rapid.SliceOfN(rapid.IntRange(0, 2), 1, 4).Draw(t, "devices"),
			Streams: rapid.IntRange(0, 3).Draw(t, "streams"), StreamsPerBatch: rapid.IntRange(0, 2).Draw(t, "streams of a batch")}
		if setup.AtOnce() == 0 {
			t.Skip("no batch could run")
		}
		b := newBench(t, setup)
		failure := errors.New("the device is gone")
		t.Repeat(map[string]func(*rapid.T){
			"submit": func(t *rapid.T) {
				b.submit(Request{Size: rapid.IntRange(1, max(1, setup.Policy.MaxBatch)+1).Draw(t, "size"), Class: Class(rapid.IntRange(0, 1).Draw(t, "class")),
					Level: rapid.IntRange(0, 4).Draw(t, "level"), Timeout: time.Duration(rapid.IntRange(0, 9).Draw(t, "timeout")) * time.Millisecond})
			},
			"burst": func(*rapid.T) {
				for range 5 {
					b.submit(Request{Size: 1})
				}
			},
			"pass time": func(t *rapid.T) {
				b.advance(time.Duration(rapid.IntRange(0, 30).Draw(t, "ms")) * time.Millisecond)
			},
			"finish": func(t *rapid.T) {
				if len(b.running) == 0 {
					t.Skip("nothing runs")
				}
				var err error
				if rapid.IntRange(0, 4).Draw(t, "luck") == 0 {
					err = failure
				}
				b.finish(rapid.IntRange(0, len(b.running)-1).Draw(t, "which"), err)
			},
			"cancel": func(t *rapid.T) {
				if len(b.requests) == 0 {
					t.Skip("nobody is there")
				}
				b.s.Cancel(b.now, &b.requests[rapid.IntRange(0, len(b.requests)-1).Draw(t, "who")].Request)
			},
			"": func(*rapid.T) { b.checkBusy() },
		})
		b.drain()
		if !setup.Policy.Queue.DelayExpired {
			b.checkFIFO()
		}
		if setup.Policy.PreserveOrdering && setup.Policy.Dynamic {
			for i := 1; i < len(b.answers); i++ {
				if b.answers[i] < b.answers[i-1] {
					t.Fatalf("answers left in the order %v", b.answers)
				}
			}
		}
	})
}

// A request is refused when its time is up, and not when somebody next looks.
func TestRefusedAtOnce(t *testing.T) {
	p := Policy{MaxBatch: 4, Dynamic: true, Queue: QueuePolicy{Timeout: 50 * time.Millisecond, AllowOverride: true}}
	b := newBench(t, Setup{Policy: p, Devices: []int{0}})
	b.submit(Request{Size: 1})
	b.submit(Request{Size: 1})
	b.submit(Request{Size: 1, Timeout: 20 * time.Millisecond})
	b.submit(Request{Size: 1, Timeout: time.Hour})
	b.advance(49 * time.Millisecond)
	if k := b.requests[2]; k.outcome != Rejected || k.Ended != 20*time.Millisecond || k.Err != ErrTimeout {
		t.Errorf("the one of 20 ms: %v at %v, %v", k.outcome, k.Ended, k.Err)
	}
	if b.requests[1].answers+b.requests[3].answers > 0 {
		t.Error("a request was refused before its time")
	}
	b.advance(time.Millisecond)
	if b.requests[1].outcome != Rejected || b.requests[3].outcome != Rejected {
		t.Error("requests outlived the time-out, which no request can lengthen")
	}
	b.drain()
}

// A queue that is full has room again as soon as one of those that wait is refused.
func TestRoomAfterRefusal(t *testing.T) {
	p := Policy{MaxBatch: 4, Dynamic: true, Queue: QueuePolicy{Timeout: 10 * time.Millisecond, MaxSize: 1}}
	b := newBench(t, Setup{Policy: p, Devices: []int{0}})
	for range 3 {
		b.submit(Request{Size: 1}) // runs, waits, finds the queue full
	}
	if k := b.requests[2]; k.Err != ErrQueueFull {
		t.Errorf("the third: %v", k.Err)
	}
	b.advance(10 * time.Millisecond)
	b.submit(Request{Size: 1})
	if k := b.requests[3]; k.answers != 0 {
		t.Errorf("the fourth: %v", k.Err)
	}
	b.drain()
}

// A cancelled request does not run, even if it stands in a batch that is ready.
func TestCancel(t *testing.T) {
	b := newBench(t, Setup{Policy: Policy{MaxBatch: 2, Dynamic: true}, Devices: []int{0}})
	for range 5 {
		b.submit(Request{Size: 1}) // one runs; two pairs are ready
	}
	for _, tag := range []int{0, 1, 3, 4} {
		b.s.Cancel(b.now, &b.requests[tag].Request)
	}
	for len(b.running) > 0 {
		b.finish(0, nil)
	}
	if got := fmt.Sprint(b.order); got != "[0 2]" {
		t.Errorf("%s ran", got)
	}
	for i, want := range []Outcome{Cancelled, Cancelled, OK, Cancelled, Cancelled} {
		if got := b.requests[i].outcome; got != want {
			t.Errorf("request %d: %v, want %v", i, got, want)
		}
	}
	b.drain()
}

// A request that comes when others have gone away is looked at: it waits for its own
// delay, and not for as many as they lacked.
func TestLoneRequestAfterCancel(t *testing.T) {
	b := newBench(t, Setup{Policy: Policy{MaxBatch: 4, Dynamic: true, Delay: 5 * time.Millisecond}, Devices: []int{0}})
	b.submit(Request{Size: 1})
	b.s.Cancel(b.now, &b.requests[0].Request)
	b.submit(Request{Size: 1})
	b.advance(5 * time.Millisecond)
	if len(b.running) != 1 {
		t.Errorf("%d batches run after the delay", len(b.running))
	}
	b.drain()
}

// Batches go to the device that runs the fewest.
func TestLeastLoadedDevice(t *testing.T) {
	b := newBench(t, Setup{Devices: []int{0, 0, 1, 1}})
	for range 4 {
		b.submit(Request{})
	}
	var got []int
	for _, batch := range b.running {
		got = append(got, batch.Device)
	}
	if fmt.Sprint(got) != "[0 1 0 1]" {
		t.Errorf("devices %v", got)
	}
	b.drain()
}

// With fewer streams than instances, batches that instances have start in their turn,
// take no more requests, and give their instance back when all of theirs went away.
func TestStreams(t *testing.T) {
	b := newBench(t, Setup{Policy: Policy{MaxBatch: 4, Dynamic: true}, Devices: []int{0, 0, 0, 0}, Streams: 2})
	for range 4 {
		b.submit(Request{Size: 1})
	}
	if len(b.running) != 2 || b.s.Idle() != 0 {
		t.Fatalf("%d batches run on 2 streams, %d of 4 instances are idle", len(b.running), b.s.Idle())
	}
	b.submit(Request{Size: 1})
	b.submit(Request{Size: 1}) // both wait for an instance
	b.s.Cancel(b.now, &b.requests[2].Request)
	if k := b.requests[2]; k.outcome != Cancelled || k.answers != 1 {
		t.Errorf("cancelled in a batch that waits for a stream: %v", k.outcome)
	}
	for len(b.running) > 0 {
		b.finish(0, nil)
	}
	if got := fmt.Sprint(b.order); got != "[0 1 3 4 5]" {
		t.Errorf("%s ran", got)
	}
	b.drain()
	for _, test := range []struct {
		setup Setup
		want  string // devices of the batches that run
	}{
		{Setup{Devices: []int{0, 0, 0, 1}, Streams: 2}, "[0 1 0]"}, // device 1 has streams and no instance
		{Setup{Devices: []int{0, 0}, Streams: 3, StreamsPerBatch: 2}, "[0]"},
	} {
		b := newBench(t, test.setup)
		var got []int
		for range 4 {
			b.submit(Request{})
		}
		for _, batch := range b.running {
			got = append(got, batch.Device)
		}
		if fmt.Sprint(got) != test.want {
			t.Errorf("%+v: devices %v, want %s", test.setup, got, test.want)
		}
		b.drain()
	}
	for want, setup := range map[string]Setup{
		"a batch takes 3 streams, and all devices together have 2: it would wait for ever": {Devices: []int{0, 1, 1}, Streams: 1, StreamsPerBatch: 3},
		"-1 streams of a device and 0 of a batch: they are not below 0":                    {Devices: []int{0}, Streams: -1},
		"no instances": {Streams: 1},
	} {
		if _, err := NewScheduler(setup, b); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A million requests under load, with runs that fail: nothing is lost, and nothing grows.
func TestMillionRequests(t *testing.T) {
	count := 1_000_000
	if testing.Short() {
		count = 50_000
	}
	for _, streams := range []int{0, 1} {
		load := newLoad(t, streams)
		load.run(count)
		if load.answered != count || load.s.Idle() != len(load.setup.Devices) {
			t.Errorf("%d of %d requests answered, %d instances idle", load.answered, count, load.s.Idle())
		}
		if most := 64 + 2*len(load.setup.Devices); len(load.s.batcher.pool) > most {
			t.Errorf("%d batches in the pool", len(load.s.batcher.pool))
		}
	}
}

// Once pools and queues have grown to the load, nothing is allocated.
func TestNoAllocation(t *testing.T) {
	for _, streams := range []int{0, 1} {
		load := newLoad(t, streams)
		load.run(5000)
		if n := testing.AllocsPerRun(20, func() { load.run(1000) }); n > 0 {
			t.Errorf("%.0f allocations for 1000 requests with %d streams", n, streams)
		}
	}
}

func BenchmarkScheduler(b *testing.B) {
	load := newLoad(b, 0)
	load.run(5000)
	b.ReportAllocs()
	b.ResetTimer()
	load.run(b.N)
}

// load keeps a scheduler busy: a fixed number of requests in flight, batches that end in
// turn, every 97th with an error.
type load struct {
	s        *Scheduler
	setup    Setup
	now      time.Duration
	free     []*Request
	running  []*Batch
	answered int
	ends     int
	atOnce   int
}

func newLoad(t testing.TB, streams int) *load {
	t.Helper()
	g, err := BatchGears(NewSignature(nil, 8), 1, 2, 4)
	if err != nil {
		t.Fatal(err)
	}
	p := Policy{MaxBatch: 8, Dynamic: true, Preferred: []int{4, 8}, Delay: 3 * time.Millisecond, Levels: 2, DefaultLevel: 2,
		Queue: QueuePolicy{Timeout: 40 * time.Millisecond, MaxSize: 20}}
	l := &load{setup: Setup{Policy: p, Gears: g, Devices: []int{0, 0, 1}, Streams: streams}}
	l.atOnce = l.setup.AtOnce()
	if l.s, err = NewScheduler(l.setup, l); err != nil {
		t.Fatal(err)
	}
	for i := range 64 {
		l.free = append(l.free, &Request{Tag: i})
	}
	return l
}

func (l *load) Start(b *Batch) { l.running = append(l.running, b) }

func (l *load) Answer(r *Request, _ Outcome) {
	l.answered++
	l.free = append(l.free, r)
}

var errLoad = errors.New("a run failed")

// run sends so many requests, and lets all of them end.
func (l *load) run(count int) {
	sent := 0
	for target := l.answered + count; l.answered < target; {
		l.now += 300 * time.Microsecond
		if at, ok := l.s.NextWake(); ok && at <= l.now {
			l.s.Wake(l.now)
		}
		if n := len(l.free); n > 0 && sent < count {
			r := l.free[n-1]
			l.free = l.free[:n-1]
			r.Size, r.Level = 1+sent%3, sent%4
			l.s.Submit(l.now, r)
			sent++
		}
		if len(l.running) > 0 && (len(l.running) == l.atOnce || sent == count) {
			b := l.running[0]
			l.running = append(l.running[:0], l.running[1:]...)
			var err error
			if l.ends++; l.ends%97 == 0 {
				err = errLoad
			}
			l.s.Finish(l.now, b, err)
		}
	}
}
