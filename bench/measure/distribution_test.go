package measure

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// fill makes a distribution of values, keeping some of them exactly.
func distributionOf(values []int64, keep int) *Distribution {
	d := &Distribution{}
	for _, v := range values {
		d.add(v, keep)
	}
	return d
}

// Percentiles are, by their definition, the smallest value that a share of all values does
// not exceed.
func TestPercentilesAgainstBruteForce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for n := range 300 {
		n++
		values := make([]int64, n)
		for i := range values {
			values[i] = random.Int64N(50)
		}
		d := distributionOf(values, 1000)
		for _, percent := range []int{1, 10, 50, 90, 95, 99, 100} {
			want := int64(math.MaxInt64)
			for _, candidate := range values {
				covered := 0
				for _, v := range values {
					if v <= candidate {
						covered++
					}
				}
				if covered*100 >= percent*n {
					want = min(want, candidate)
				}
			}
			if got := d.Percentile(float64(percent) / 100); int64(got) != want {
				t.Fatalf("n = %d: p%d is %d, want %d", n, percent, got, want)
			}
		}
	}
}

// Beyond what is kept percentiles are right to three digits; counts, mean, deviation, least
// and largest stay exact.
func TestHistogram(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	values := make([]int64, 50_000)
	for i := range values {
		values[i] = int64(1e6 * math.Exp(2*random.NormFloat64()))
	}
	exact, short := distributionOf(values, len(values)), distributionOf(values, 1000)
	if short.histogram == nil || exact.histogram != nil {
		t.Fatal("a histogram where there should be none, or none where there should")
	}
	for p := 0.001; p < 1; p += 0.001 {
		a, b := float64(exact.Percentile(p)), float64(short.Percentile(p))
		if math.Abs(b/a-1) > 0.001 {
			t.Errorf("p%.1f: %v and %v", 100*p, a, b)
		}
	}
	if exact.Mean() != short.Mean() || exact.Std() != short.Std() || exact.Max() != short.Max() || short.Percentile(1) != short.Max() {
		t.Error("mean, deviation or largest value differ")
	}
	sum := 0.0
	for _, v := range values {
		sum += float64(v)
	}
	if math.Abs(float64(exact.Mean())-sum/float64(len(values))) > 1 {
		t.Errorf("the mean is %v", exact.Mean())
	}
	var low, high int64
	for _, v := range values {
		if v <= 1e6 {
			low++
		}
		if v <= 1e8 {
			high++
		}
	}
	if got := exact.upTo(1e6); got != low {
		t.Errorf("%d values up to 1 ms, want %d", got, low)
	}
	if got := short.upTo(1e8); math.Abs(float64(got-high)) > 50 {
		t.Errorf("%d values up to 100 ms, want about %d", got, high)
	}
	bars, all := short.bars(), int64(0)
	for _, b := range bars {
		all += b.Count
	}
	if all != int64(len(values)) {
		t.Errorf("bars hold %d of %d values", all, len(values))
	}
}

func TestMerge(t *testing.T) {
	a, b := distributionOf([]int64{1, 5}, 10), distributionOf([]int64{3}, 10)
	a.merge(b, 10)
	if a.Count() != 3 || a.Percentile(0.5) != 3 || a.Mean() != 3 {
		t.Errorf("%+v", a)
	}
	c := distributionOf([]int64{100, 200, 300, 400}, 2)
	c.merge(distributionOf([]int64{500, 600, 700}, 2), 2)
	if c.Count() != 7 || c.Percentile(0.5) != 400 || c.Max() != 700 {
		t.Errorf("%+v", c)
	}
}

func TestDistributionOfLittle(t *testing.T) {
	none := Distribution{}
	if f := none.Figures(); f.P99 != 0 || f.Max != 0 || len(f.TooFew) != len(percentiles) {
		t.Errorf("of nothing: %+v", f)
	}
	one := distributionOf([]int64{7e6}, 10)
	if f := one.Figures(); f.P50 != 7 || f.P999 != 7 || f.Mean != 7 || f.Std != 0 || len(f.TooFew) != len(percentiles) {
		t.Errorf("of one value: %+v", f)
	}
}

// The ranks are those that the sum of the binomial distribution gives.
func TestRanksAgainstBruteForce(t *testing.T) {
	below := func(n int64, p float64, k int64) (sum float64) { // P(B < k)
		for i := range max(0, k) {
			sum += math.Exp(logBinomial(n, i, p))
		}
		return sum
	}
	for _, n := range []int64{1, 2, 5, 6, 29, 59, 100, 367, 368, 369, 700} {
		for _, p := range []float64{0.01, 0.3, 0.5, 0.9, 0.95, 0.99, 0.999} {
			wantLow, wantHigh := int64(0), n+1
			for below(n, p, wantLow+1) <= 0.025 {
				wantLow++
			}
			for 1-below(n, p, wantHigh-1) <= 0.025 {
				wantHigh--
			}
			low, high, ok := ranks(n, p, 0.95)
			if low != wantLow || high != wantHigh || ok != (wantLow >= 1 && wantHigh <= n) {
				t.Errorf("n = %d, p = %v: %d to %d (%v), want %d to %d", n, p, low, high, ok, wantLow, wantHigh)
			}
		}
	}
	// Where it is known: 1 − 0.99ⁿ reaches 97.5 % at 368 values.
	for n, want := range map[int64]bool{367: false, 368: true, 10_000_000: true} {
		if _, _, ok := ranks(n, 0.99, 0.95); ok != want {
			t.Errorf("p99 of %d values: %v", n, ok)
		}
	}
}

// Of 2,000 samples the intervals hold the true percentile in 95 % or more.
func TestIntervalsCover(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for _, c := range []struct {
		n int
		p float64
	}{{20, 0.5}, {200, 0.9}, {1000, 0.99}} {
		truth := -math.Log(1-c.p) * 1e6
		const trials = 2000
		hits := 0
		for range trials {
			d := &Distribution{}
			for range c.n {
				d.Add(time.Duration(random.ExpFloat64() * 1e6))
			}
			low, high, ok := d.Interval(c.p, Confidence)
			if !ok {
				t.Fatalf("n = %d: no interval of %v", c.n, c.p)
			}
			if float64(low) <= truth && truth <= float64(high)+1 {
				hits++
			}
		}
		if share := float64(hits) / trials; share < 0.945 || share > 0.985 {
			t.Errorf("n = %d, p = %v: %.1f %% of the intervals hold it", c.n, c.p, 100*share)
		}
	}
}

func TestFigureNames(t *testing.T) {
	d := distributionOf([]int64{1e6, 2e6, 3e6}, 10)
	f := d.Figures()
	for name, want := range map[string]float64{"mean": 2, "max": 3, "p50": 2, "p99": 3} {
		if got, ok := f.Value(name); !ok || got != want {
			t.Errorf("%s is %v", name, got)
		}
	}
	if _, ok := f.Value("p42"); ok || slices.Contains(PercentileNames(), "p42") {
		t.Error("p42 is there")
	}
}
