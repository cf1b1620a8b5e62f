package load

import (
	"math"
	"slices"
	"testing"
	"time"
)

// take gives the first times of a schedule.
func take(t *testing.T, s Schedule, err error, most int) []time.Duration {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var times []time.Duration
	for len(times) < most {
		at, ok := s.Next()
		if !ok {
			break
		}
		times = append(times, at)
	}
	if !slices.IsSorted(times) {
		t.Fatalf("times go back: %v", times)
	}
	return times
}

func TestConstant(t *testing.T) {
	s, err := Constant(3)
	times := take(t, s, err, 3_000_001)
	if want := time.Second / 3; times[0] != 0 || times[1] != want {
		t.Errorf("begins with %v, %v", times[0], times[1])
	}
	if last := times[3_000_000]; last != 1_000_000*time.Second {
		t.Errorf("after a million seconds it is off by %v", last-1_000_000*time.Second)
	}
}

// The times between Poisson arrivals are exponential: mean and standard deviation are
// 1/rate, and a share of 1/e is longer than the mean.
func TestPoisson(t *testing.T) {
	s, err := Poisson(200, 7)
	times := take(t, s, err, 100_000)
	var sum, squares, longer float64
	for i, at := range times {
		gap := at.Seconds()
		if i > 0 {
			gap = (at - times[i-1]).Seconds()
		}
		sum, squares = sum+gap, squares+gap*gap
		if gap > 1./200 {
			longer++
		}
	}
	n := float64(len(times))
	for _, c := range []struct {
		what      string
		got, want float64
	}{{"mean", sum / n, 0.005}, {"deviation", math.Sqrt(squares/n - sum/n*sum/n), 0.005}, {"share above the mean", longer / n, 1 / math.E}} {
		if math.Abs(c.got/c.want-1) > 0.015 {
			t.Errorf("%s is %v, want %v", c.what, c.got, c.want)
		}
	}
	again, err := Poisson(200, 7)
	if !slices.Equal(times, take(t, again, err, 100_000)) {
		t.Error("one seed gave two schedules")
	}
	other, err := Poisson(200, 8)
	if slices.Equal(times, take(t, other, err, 100_000)) {
		t.Error("two seeds gave one schedule")
	}
}

// A ramp sends the mean of its two rates, and half-way three eighths or five eighths of it.
func TestRamp(t *testing.T) {
	for _, c := range []struct{ from, to, all, firstHalf float64 }{
		{100, 300, 2000, 750}, {300, 100, 2000, 1250}, {200, 200, 2000, 1000}, {1e-9, 200, 1000, 250},
	} {
		s, err := Ramp(c.from, c.to, 10*time.Second)
		times := take(t, s, err, 1e6)
		half, _ := slices.BinarySearch(times, 5*time.Second)
		if math.Abs(float64(len(times))-c.all) > 1 || math.Abs(float64(half)-c.firstHalf) > 1 {
			t.Errorf("%v to %v: %d requests, %d in the first half; want %v and %v", c.from, c.to, len(times), half, c.all, c.firstHalf)
		}
	}
}

func TestTrace(t *testing.T) {
	s, err := Trace([]time.Duration{0, 4, 4, 20}, 2)
	if got := take(t, s, err, 10); !slices.Equal(got, []time.Duration{0, 2, 2, 10}) {
		t.Errorf("%v", got)
	}
}

func TestRefusedSchedules(t *testing.T) {
	for _, c := range []struct {
		what string
		make func() (Schedule, error)
	}{
		{"rate 0", func() (Schedule, error) { return Constant(0) }},
		{"rate NaN", func() (Schedule, error) { return Poisson(math.NaN(), 1) }},
		{"rate too high", func() (Schedule, error) { return Constant(1e10) }},
		{"ramp without time", func() (Schedule, error) { return Ramp(1, 2, 0) }},
		{"ramp from 0", func() (Schedule, error) { return Ramp(0, 2, 1) }},
		{"ramp to nothing", func() (Schedule, error) { return Ramp(1, -2, 1) }},
		{"trace that goes back", func() (Schedule, error) { return Trace([]time.Duration{2, 1}, 1) }},
		{"trace before the beginning", func() (Schedule, error) { return Trace([]time.Duration{-1}, 1) }},
		{"trace at no speed", func() (Schedule, error) { return Trace(nil, 0) }},
	} {
		if _, err := c.make(); err == nil {
			t.Errorf("%s: taken", c.what)
		}
	}
}

func TestParseLevels(t *testing.T) {
	for _, c := range []struct {
		text string
		want []float64
	}{
		{"8", []float64{8}},
		{"1,2, 8", []float64{1, 2, 8}},
		{"10:50:10", []float64{10, 20, 30, 40, 50}},
		{"10:49:20", []float64{10, 30}},
		{"1:32:x2", []float64{1, 2, 4, 8, 16, 32}},
		{"0.5:2:0.5", []float64{0.5, 1, 1.5, 2}},
		{"1:1:1,100", []float64{1, 100}},
	} {
		if got, err := ParseLevels(c.text); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: %v, %v", c.text, got, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "a", "1:2", "1:2:3:4", "1:8:x1", "8:1:1", "1:8:0", "1:1e9:1", "nan", "1:inf:x2", "1,,2"} {
		if got, err := ParseLevels(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
	if got, err := ParseCounts("1:32:x2", 32); err != nil || !slices.Equal(got, []int{1, 2, 4, 8, 16, 32}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"1.5", "33"} {
		if got, err := ParseCounts(text, 32); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// Whatever is typed, levels are in range and not too many.
func FuzzParseLevels(f *testing.F) {
	for _, seed := range []string{"8", "1:32:x2", "10:50:10", "1e9:1e9:1", "1:2:x1.0000000001"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		levels, err := ParseLevels(text)
		if err != nil {
			return
		}
		if len(levels) == 0 || len(levels) > mostLevels {
			t.Fatalf("%d levels", len(levels))
		}
		for _, level := range levels {
			if !(level > 0 && level <= 1e9*(1+1e-9)) {
				t.Fatalf("level %v", level)
			}
		}
	})
}
