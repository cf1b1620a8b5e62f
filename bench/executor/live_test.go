package executor

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// runFunc is an engine made of a function.
type runFunc func(*Batch) error

func (f runFunc) Run(b *Batch, _ int) error { return f(b) }

func newLive(t testing.TB, p Policy, instances int, run runFunc) *Live {
	t.Helper()
	return newLiveOf(t, Setup{Policy: p, Devices: make([]int, instances)}, run)
}

func newLiveOf(t testing.TB, s Setup, run runFunc) *Live {
	t.Helper()
	before := runtime.NumGoroutine()
	l, err := NewLive(s, run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
		for range 100 {
			if runtime.NumGoroutine() <= before {
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
	})
	return l
}

// Many clients, an engine that fails and panics now and then, clients that go away: each
// gets its one answer, and the executor ends with nothing left.
func TestLive(t *testing.T) {
	var runs, items atomic.Int64
	p := Policy{MaxBatch: 4, Dynamic: true, Delay: 200 * time.Microsecond, Queue: QueuePolicy{Timeout: 50 * time.Millisecond}}
	l := newLive(t, p, 3, func(b *Batch) error {
		items.Add(int64(b.Items))
		switch runs.Add(1) % 10 {
		case 3:
			return errors.New("the device is gone")
		case 7:
			panic("a fault of the engine")
		}
		return nil
	})
	const clients, each = 8, 500
	var outcomes [4]atomic.Int64
	var wait sync.WaitGroup
	for i := range clients {
		wait.Go(func() {
			call := NewCall()
			for k := range each {
				ctx, cancel := context.WithCancel(context.Background())
				call.Size = 1 + k%3
				if (i+k)%11 == 0 {
					cancel()
				}
				outcomes[l.Do(ctx, call)].Add(1)
				cancel()
			}
		})
	}
	wait.Wait()
	c := l.Counters()
	if sum := c.OK + c.Rejected + c.Failed + c.Cancelled; sum != clients*each {
		t.Errorf("%+v: %d answers to %d requests", c, sum, clients*each)
	}
	for o, want := range map[Outcome]int64{OK: c.OK, Rejected: c.Rejected, Failed: c.Failed, Cancelled: c.Cancelled} {
		if got := outcomes[o].Load(); got != want {
			t.Errorf("%v: %d, the counters say %d", o, got, want)
		}
	}
	if c.Failed == 0 || c.OK == 0 || c.Executions != runs.Load() {
		t.Errorf("%+v after %d runs", c, runs.Load())
	}
}

// With two streams two batches run at once, whatever the number of instances.
func TestLiveStreams(t *testing.T) {
	var running, most atomic.Int64
	l := newLiveOf(t, Setup{Policy: Policy{MaxBatch: 2, Dynamic: true}, Devices: make([]int, 6), Streams: 2}, func(*Batch) error {
		for n := running.Add(1); ; {
			if before := most.Load(); n <= before || most.CompareAndSwap(before, n) {
				break
			}
		}
		runtime.Gosched()
		running.Add(-1)
		return nil
	})
	var wait sync.WaitGroup
	for i := range 12 {
		wait.Go(func() {
			call := NewCall()
			for k := range 200 {
				ctx, cancel := context.WithCancel(context.Background())
				call.Size = 1
				if (i+k)%5 == 0 {
					cancel()
				}
				l.Do(ctx, call)
				cancel()
			}
		})
	}
	wait.Wait()
	if c := l.Counters(); most.Load() > 2 || c.OK+c.Cancelled != 12*200 || c.OK == 0 {
		t.Errorf("%d batches ran at once; %+v", most.Load(), c)
	}
}

// Time-outs and delays come by the clock, without another request.
func TestLiveTimes(t *testing.T) {
	release := make(chan struct{})
	p := Policy{MaxBatch: 4, Dynamic: true, Queue: QueuePolicy{Timeout: 20 * time.Millisecond}}
	l := newLive(t, p, 1, func(*Batch) error { <-release; return nil })
	first, second := NewCall(), NewCall()
	first.Size, second.Size = 1, 1
	done := make(chan Outcome)
	go func() { done <- l.Do(context.Background(), first) }()
	for l.isIdle() {
		time.Sleep(time.Millisecond)
	}
	if o := l.Do(context.Background(), second); o != Rejected || second.Err != ErrTimeout {
		t.Errorf("%v, %v", o, second.Err)
	}
	if waited := second.Ended - second.Arrived; waited < 20*time.Millisecond {
		t.Errorf("refused after %v", waited)
	}
	close(release)
	if o := <-done; o != OK {
		t.Errorf("the first: %v", o)
	}
}

func (l *Live) isIdle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.scheduler.Idle() == len(l.work)
}

// An executor that shuts down answers what it has, and refuses what comes.
func TestLiveClose(t *testing.T) {
	release := make(chan struct{})
	l := newLive(t, Policy{}, 1, func(*Batch) error { <-release; return nil })
	done := make(chan Outcome)
	go func() { done <- l.Do(context.Background(), NewCall()) }()
	for l.isIdle() {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	if err := l.Close(ctx); err != context.DeadlineExceeded {
		t.Errorf("closed with a request inside: %v", err)
	}
	late := NewCall()
	if o := l.Do(context.Background(), late); o != Rejected || late.Err != ErrClosed {
		t.Errorf("%v, %v", o, late.Err)
	}
	close(release)
	if o := <-done; o != OK {
		t.Errorf("%v", o)
	}
}

func TestLiveAllocatesNothing(t *testing.T) {
	l := newLive(t, Policy{MaxBatch: 4, Dynamic: true}, 1, func(*Batch) error { return nil })
	call := NewCall()
	call.Size = 1
	if n := testing.AllocsPerRun(1000, func() { l.Do(context.Background(), call) }); n > 0 {
		t.Errorf("%.1f allocations a request", n)
	}
}

// BenchmarkLive is what a request costs above the engine, which takes no time here.
func BenchmarkLive(b *testing.B) {
	for name, clients := range map[string]int{"1 client": 1, "8 clients": 8} {
		b.Run(name, func(b *testing.B) {
			l := newLive(b, Policy{MaxBatch: 8, Dynamic: true}, 1, func(*Batch) error { return nil })
			b.ReportAllocs()
			var left atomic.Int64
			left.Store(int64(b.N))
			var wait sync.WaitGroup
			b.ResetTimer()
			for range clients {
				wait.Go(func() {
					call := NewCall()
					call.Size = 1
					for left.Add(-1) >= 0 {
						l.Do(context.Background(), call)
					}
				})
			}
			wait.Wait()
		})
	}
}
