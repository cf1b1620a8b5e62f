package planner

import (
	"cmp"
	"math"
	"slices"
)

// chain is a row of sizes in which each covers those before it. There a gear of a best
// choice serves a run of sizes, and is the last of them.
type chain struct {
	work   []float64 // of a gear of each size; ascending
	before []float64 // before[i] is the weight of the first i sizes; one longer than work
	forced []int     // sizes that must be gears, as places in the row; ascending
}

// newChain orders points of which one always covers the other; ok is false when there are
// two that do not.
func newChain(points []point, work worker) (c chain, sizes [][]int64, ok bool) {
	byWork := func(a, b point) int {
		if c := cmp.Compare(work.of(a.size), work.of(b.size)); c != 0 {
			return c
		}
		return bySize(a, b)
	}
	if !slices.IsSortedFunc(points, byWork) {
		points = slices.Clone(points)
		slices.SortFunc(points, byWork)
	}
	c.before = []float64{0}
	for i, p := range points {
		if i > 0 && !covers(p.size, points[i-1].size) {
			return chain{}, nil, false
		}
		c.work = append(c.work, work.of(p.size))
		c.before = append(c.before, c.before[i]+p.weight)
		sizes = append(sizes, p.size)
	}
	return c, sizes, true
}

// layers is the table of the dynamic programme: for each number of gears, where the last
// gear's run begins when the first j sizes are served.
type layers struct {
	chain
	cost  []float64 // of the layer before: with one gear less
	next  []float64
	hull  []line
	start [][]int32 // start[k-1][j], for k gears
	total []float64 // total[k-1] is the least work with k gears; infinite when they are too few
}

// best finds the least work with 1 to most gears. It takes most × len(c.work) steps, and four
// bytes for each.
func (c chain) best(most int) *layers {
	n := len(c.work)
	l := &layers{chain: c, cost: make([]float64, n+1), next: make([]float64, n+1), hull: make([]line, 0, n+1)}
	for j := 1; j <= n; j++ {
		l.cost[j] = math.Inf(1) // no gear serves nobody
	}
	for k := 1; k <= min(most, n); k++ {
		l.add(k)
		l.total = append(l.total, l.cost[n])
	}
	return l
}

// add makes the layer of k gears of the one of k-1.
//
// When the last of k gears serves the sizes from i to j, all together cost
// cost[i] + work[j]·(before[j] - before[i]). As work grows with j, each i is a line over
// work, the steeper down the later it begins; what counts for a j is the lowest line there.
// The lines that are lowest somewhere stand in hull, and work only grows: so the lowest
// one is found by going along the hull once.
func (l *layers) add(k int) {
	start := make([]int32, len(l.next))
	reach, last := l.reach(k-1), l.reach(k)
	for j := range l.next {
		if j < k || j > last {
			l.next[j] = math.Inf(1)
		}
	}
	hull := l.hull[:0]
	begin := 0 // of the part of hull that is in use
	forced := 0
	for j := k; j <= last; j++ {
		if i := j - 1; i <= reach {
			if forced < len(l.forced) && l.forced[forced] < i {
				forced++ // the size before i must be a gear: a run begins at i or later
				hull, begin = hull[:0], 0
			}
			added := line{l.cost[i], l.before[i], int32(i)}
			for len(hull)-begin >= 2 && !isLowest(hull[len(hull)-2], hull[len(hull)-1], added) {
				hull = hull[:len(hull)-1]
			}
			hull = append(hull, added)
		}
		work, before := l.work[j-1], l.before[j]
		lowest := hull[begin].at(work, before)
		for ; begin+1 < len(hull); begin++ {
			next := hull[begin+1].at(work, before)
			if next > lowest {
				break
			}
			lowest = next
		}
		start[j], l.next[j] = hull[begin].start, lowest
	}
	l.cost, l.next, l.hull = l.next, l.cost, hull[:0]
	l.start = append(l.start, start)
}

// line is what it costs to begin the last run at a size.
type line struct {
	cost   float64 // of the sizes before
	before float64 // their weight
	start  int32
}

// at is the cost when the last gear has this work, and serves all up to this weight.
func (l line) at(work, weight float64) float64 { return l.cost + work*(weight-l.before) }

// isLowest says whether of three lines, each steeper down than the one before, the second
// is the lowest somewhere. Where weights and work are whole numbers it is exact.
func isLowest(a, b, c line) bool {
	return isLess(b.cost-a.cost, c.before-b.before, c.cost-b.cost, b.before-a.before)
}

// isLess says whether a·b < c·d, exactly: products that round to the same number are told
// apart by what rounding took away.
func isLess(a, b, c, d float64) bool {
	x, y := a*b, c*d
	if x != y {
		return x < y
	}
	return math.FMA(a, b, -x) < math.FMA(c, d, -y)
}

// reach is the most sizes that k gears can serve: the k-th of those that must be gears ends
// the k-th run at the latest.
func (l *layers) reach(k int) int {
	if k == 0 {
		return 0
	}
	if k-1 < len(l.forced) {
		return l.forced[k-1] + 1
	}
	return len(l.work)
}

// gears are the places of the gears of a best choice of k, ascending.
func (l *layers) gears(k int) []int {
	places := make([]int, k)
	for j := len(l.work); k > 0; k-- {
		places[k-1] = j - 1
		j = int(l.start[k-1][j])
	}
	return places
}
