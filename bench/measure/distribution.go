package measure

import (
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Distribution collects times. Up to a number of values it keeps them all, and is exact;
// beyond it keeps a histogram, whose percentiles are right to three digits.
type Distribution struct {
	exact     []int64
	isSorted  bool
	histogram *hdrhistogram.Histogram
	n         int64
	// Sums of what values are above the first one, and of its squares: near the values,
	// so that nothing is lost when their squares are large.
	first        int64
	sum, squares float64
	least, most  int64
}

// mostExact is how many values are kept.
const mostExact = 1 << 17

// Histograms go from a nanosecond to some ten hours.
const (
	longestTime = int64(1)<<45 - 1
	digits      = 3
)

// Add adds a time.
func (d *Distribution) Add(t time.Duration) { d.add(int64(t), mostExact) }

func (d *Distribution) add(t int64, keep int) {
	if d.n == 0 {
		d.first, d.least, d.most = t, t, t
	}
	d.n++
	above := float64(t - d.first)
	d.sum += above
	d.squares += above * above
	d.least, d.most = min(d.least, t), max(d.most, t)
	d.isSorted = false
	if d.histogram == nil && len(d.exact) >= keep {
		d.histogram = hdrhistogram.New(1, longestTime, digits)
		for _, value := range d.exact {
			record(d.histogram, value)
		}
		d.exact = nil
	}
	if d.histogram != nil {
		record(d.histogram, t)
		return
	}
	d.exact = append(d.exact, t)
}

// record counts a time; one outside the range counts as the nearest one in it.
func record(h *hdrhistogram.Histogram, t int64) {
	_ = h.RecordValue(min(max(t, 0), longestTime)) // its only error is a value out of range
}

// Count is the number of values.
func (d *Distribution) Count() int64 { return d.n }

// Mean is their mean.
func (d *Distribution) Mean() time.Duration { return time.Duration(math.Round(d.mean())) }

func (d *Distribution) mean() float64 { return float64(d.first) + quotient(d.sum, d.n) }

// Std is their standard deviation, as of a sample.
func (d *Distribution) Std() time.Duration {
	if d.n < 2 {
		return 0
	}
	n := float64(d.n)
	return time.Duration(math.Round(math.Sqrt(max(0, d.squares-d.sum*d.sum/n) / (n - 1))))
}

// Max is the largest value, always exact.
func (d *Distribution) Max() time.Duration { return time.Duration(d.most) }

// Percentile is the smallest time that a share p of the values, such as 0.99, does not
// exceed. Of no values it is 0.
func (d *Distribution) Percentile(p float64) time.Duration {
	// 0.95·20 is a little above 19 in floating point, and means 19.
	return d.rank(int64(math.Ceil(p*float64(d.n) - 1e-9)))
}

// Interval is where the percentile of all requests there could have been lies, with a
// probability of confidence. It gives false when there are too few values to say.
func (d *Distribution) Interval(p, confidence float64) (low, high time.Duration, ok bool) {
	first, last, ok := ranks(d.n, p, confidence)
	if !ok {
		return 0, 0, false
	}
	return d.rank(first), d.rank(last), true
}

// rank is the value of a rank, from 1.
func (d *Distribution) rank(k int64) time.Duration {
	if d.n == 0 {
		return 0
	}
	k = min(max(k, 1), d.n)
	if d.histogram == nil {
		if !d.isSorted {
			slices.Sort(d.exact)
			d.isSorted = true
		}
		return time.Duration(d.exact[k-1])
	}
	if k == d.n {
		return time.Duration(d.most)
	}
	// The library takes a percentage and rounds what it makes of it to a rank.
	value := d.histogram.ValueAtQuantile(100 * float64(k) / float64(d.n))
	return time.Duration(min(max(value, d.least), d.most))
}

// Figures describe a distribution, in milliseconds.
type Figures struct {
	Mean float64 `json:"mean"`
	Std  float64 `json:"std"`
	Min  float64 `json:"min"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
	// Intervals are, of each percentile, the bounds of its 95 % confidence interval.
	Intervals map[string][2]float64 `json:"intervals"`
	// TooFew names the percentiles for which there are too few values: they have no
	// interval, and are no more than the largest values seen.
	TooFew []string `json:"too_few"`
}

// Confidence is that of all intervals.
const Confidence = 0.95

// percentiles are those that reports have.
var percentiles = [...]struct {
	name  string
	share float64
	into  func(*Figures) *float64
}{
	{"p50", 0.5, func(f *Figures) *float64 { return &f.P50 }},
	{"p90", 0.9, func(f *Figures) *float64 { return &f.P90 }},
	{"p95", 0.95, func(f *Figures) *float64 { return &f.P95 }},
	{"p99", 0.99, func(f *Figures) *float64 { return &f.P99 }},
	{"p999", 0.999, func(f *Figures) *float64 { return &f.P999 }},
}

// PercentileNames are the percentiles of [Figures], the smallest first.
func PercentileNames() []string {
	names := make([]string, len(percentiles))
	for i, p := range percentiles {
		names[i] = p.name
	}
	return names
}

// Value gives a figure by its name: mean, std, max or a percentile, such as p99.
func (f *Figures) Value(name string) (float64, bool) {
	switch name {
	case "mean":
		return f.Mean, true
	case "std":
		return f.Std, true
	case "max":
		return f.Max, true
	}
	for _, p := range percentiles {
		if p.name == name {
			return *p.into(f), true
		}
	}
	return 0, false
}

// Figures gives the figures.
func (d *Distribution) Figures() Figures {
	f := Figures{Mean: d.mean() / 1e6, Std: milliseconds(d.Std()), Min: milliseconds(time.Duration(d.least)),
		Max: milliseconds(d.Max()), Intervals: map[string][2]float64{}, TooFew: []string{}}
	for _, p := range percentiles {
		*p.into(&f) = milliseconds(d.Percentile(p.share))
		low, high, ok := d.Interval(p.share, Confidence)
		if !ok {
			f.TooFew = append(f.TooFew, p.name)
			continue
		}
		f.Intervals[p.name] = [2]float64{milliseconds(low), milliseconds(high)}
	}
	return f
}

func milliseconds(t time.Duration) float64 { return float64(t) / 1e6 }

// merge adds the values of another one.
func (d *Distribution) merge(other *Distribution, keep int) {
	if other.histogram == nil {
		for _, t := range other.exact {
			d.add(t, keep)
		}
		return
	}
	for _, bar := range other.histogram.Distribution() {
		for range bar.Count {
			d.add(bar.To, keep)
		}
	}
}
