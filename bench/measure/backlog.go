package measure

import (
	"fmt"
	"math"
	"time"
)

// backlog says whether what is due and not answered grows, from begin to end: then the
// target does not keep up, and every latency depends on how long one measured.
//
// A queue also goes up and down by chance. So the growth from the second quarter to the
// last one must be more than three standard deviations of the number of arrivals between
// them would explain, or, where it is less, must go on in each of ten equal parts.
func (t *timeline) backlog(begin, end time.Duration) (bool, string) {
	var due, open []float64 // due since the beginning, and of those open, at the end of each bin
	sumDue, sumDone := int64(0), int64(0)
	for i, b := range t.bins {
		sumDue, sumDone = sumDue+b.due, sumDone+b.done
		if at := time.Duration(i) * t.width; at >= begin && at+t.width <= end {
			due, open = append(due, float64(sumDue)), append(open, float64(sumDue-sumDone))
		}
	}
	n := len(open)
	if n < 2*parts {
		return false, ""
	}
	arrivals := (due[n-1] - due[0]) / 2
	growth := mean(open[n*3/4:]) - mean(open[n/4:n/2])
	if growth < leastGrowth || growth < leastShare*arrivals {
		return false, ""
	}
	if growth <= 3*math.Sqrt(arrivals) && !rises(open) {
		return false, ""
	}
	return true, fmt.Sprintf("what is due and not answered grew by %.0f while %.0f requests came", growth, arrivals)
}

// parts are the parts of a run in each of which a backlog grows.
const parts = 10

// A backlog that grows by less is none.
const (
	leastGrowth = 5
	leastShare  = 0.01
)

// rises says whether each part lies above the one before it.
func rises(open []float64) bool {
	last := math.Inf(-1)
	for i := range parts {
		part := mean(open[len(open)*i/parts : len(open)*(i+1)/parts])
		if part <= last {
			return false
		}
		last = part
	}
	return true
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(1, len(values)))
}
