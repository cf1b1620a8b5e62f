package measure

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/npuctl/npuctl/bench/load"
)

// noisy is a target whose latency is log-normal around a median: mostly within some 12 %
// of it, now and then twice as much, which is what engines do.
func noisy(median time.Duration, seed uint64) load.Target {
	random := rand.New(rand.NewPCG(seed, 5))
	return load.TargetFunc(func(context.Context, load.Request) (load.Result, error) {
		factor := math.Exp(0.12 * random.NormFloat64())
		if random.IntN(50) == 0 {
			factor *= 2
		}
		time.Sleep(time.Duration(float64(median) * factor))
		return load.Result{}, nil
	})
}

// compareNoisy compares targets in trials of other seeds, in virtual time, and counts the
// verdicts. The medians are those of a trial.
func compareNoisy(t *testing.T, trials int, medians func(trial int) (a, b time.Duration)) []string {
	var verdicts []string
	inside := 0
	for trial := range trials {
		a, b := medians(trial)
		seed := uint64(trial)
		synctest.Test(t, func(t *testing.T) {
			c := Compare{Rounds: 500, Resamples: 100, Seed: seed, Clock: load.NewPlainClock()}
			got, err := c.Do(t.Context(), noisy(a, 2*seed), noisy(b, 2*seed+1))
			if err != nil {
				t.Fatal(err)
			}
			verdicts = append(verdicts, got.Verdict)
			if truth := float64(b) / float64(a); got.Latency.Interval[0] <= truth && truth <= got.Latency.Interval[1] {
				inside++
			}
		})
	}
	t.Logf("%d of %d intervals hold the true ratio", inside, trials)
	if inside < trials*88/100 {
		t.Errorf("%d of %d intervals hold the true ratio", inside, trials)
	}
	return verdicts
}

// The promise: of 200 comparisons of equal engines no more than 8 % find a difference.
func TestFalseAlarms(t *testing.T) {
	notUnderRace(t)
	alarms := 0
	for _, verdict := range compareNoisy(t, 200, func(int) (a, b time.Duration) { return 5 * time.Millisecond, 5 * time.Millisecond }) {
		if verdict != NoDifference {
			alarms++
		}
	}
	t.Logf("%d false alarms in 200 comparisons", alarms)
	if alarms > 16 {
		t.Errorf("%d false alarms in 200 comparisons", alarms)
	}
}

// And of 200 comparisons with an engine that is 5 % slower, or faster, 90 % find it, with
// 500 values of each.
func TestFindsFivePercent(t *testing.T) {
	notUnderRace(t)
	if testing.Short() {
		t.Skip("200,000 requests in virtual time")
	}
	shifted := [2]time.Duration{5250 * time.Microsecond, 4750 * time.Microsecond}
	found := 0
	for trial, verdict := range compareNoisy(t, 200, func(trial int) (a, b time.Duration) { return 5 * time.Millisecond, shifted[trial%2] }) {
		if verdict == [2]string{Slower, Faster}[trial%2] {
			found++
		}
	}
	t.Logf("found in %d of 200 comparisons", found)
	if found < 180 {
		t.Errorf("found in %d of 200 comparisons", found)
	}
}

// Rounds of several clients compare throughput too; what drifts does so for both.
func TestCompareRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		drifts := func(base time.Duration) load.Target {
			return load.TargetFunc(func(context.Context, load.Request) (load.Result, error) {
				slower := 1 + time.Since(begin).Seconds()/10
				time.Sleep(time.Duration(float64(base) * slower))
				return load.Result{}, nil
			})
		}
		c := Compare{Rounds: 100, Clients: 4, Requests: 20, Clock: load.NewPlainClock()}
		got, err := c.Do(t.Context(), drifts(time.Millisecond), drifts(2*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		if got.Verdict != Slower || math.Abs(got.Latency.Ratio-2) > 0.05 || got.Throughput == nil || math.Abs(got.Throughput.Ratio-0.5) > 0.02 {
			t.Errorf("%+v", got)
		}
		if got.A.P50 == 0 || got.Rounds != 100 {
			t.Errorf("%+v", got)
		}
	})
}

// Both sides get the same requests, in rounds that go on counting.
func TestCompareNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var numbers [2][]int64
		side := func(i int) load.Target {
			return load.TargetFunc(func(_ context.Context, r load.Request) (load.Result, error) {
				numbers[i] = append(numbers[i], r.Number)
				return load.Result{}, nil
			})
		}
		c := Compare{Rounds: 3, Warm: 1, Requests: 2, Clock: load.NewPlainClock()}
		if _, err := c.Do(t.Context(), side(0), side(1)); err != nil {
			t.Fatal(err)
		}
		for i := range numbers {
			for n, got := range numbers[i] {
				if got != int64(n) || len(numbers[i]) != 8 {
					t.Errorf("side %d: %v", i, numbers[i])
				}
			}
		}
	})
}

func TestCompareErrors(t *testing.T) {
	fails := load.TargetFunc(func(context.Context, load.Request) (load.Result, error) {
		return load.Result{}, errors.New("the device is gone")
	})
	synctest.Test(t, func(t *testing.T) {
		c := Compare{Rounds: 5, Clock: load.NewPlainClock()}
		if got, err := c.Do(t.Context(), noisy(time.Millisecond, 1), fails); err == nil {
			t.Errorf("%+v", got)
		}
	})
	for _, c := range []Compare{{Rounds: -1}, {Alpha: 2}, {Alpha: math.NaN()}} {
		if _, err := c.Do(t.Context(), fails, fails); err == nil {
			t.Errorf("%+v: taken", c)
		}
	}
}

// notUnderRace leaves a test of nothing but statistics to a run without the race detector,
// which takes ten times as long: CI makes both.
func notUnderRace(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("statistics over hundreds of thousands of requests: run without the race detector")
	}
}
