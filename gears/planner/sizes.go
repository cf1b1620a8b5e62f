package planner

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Sizes are observed sizes of requests, and how often each came. Make them with [NewSizes].
type Sizes struct {
	// Axes are the names of the axes, in order; "" where there is none.
	Axes []string

	numbers []int64 // of all rows, one after the other
	weights []float64
}

// Limits of what is planned for.
const (
	// MaxAxes is how many axes a size may have.
	MaxAxes = 8
	// MaxRows is how many sizes may be observed.
	MaxRows = 1 << 24
	// maxWeight keeps sums of weights and work finite.
	maxWeight = 1e15
)

// NewSizes makes an empty list of sizes with axes of these names.
func NewSizes(axes ...string) *Sizes { return &Sizes{Axes: axes} }

// Len is the number of rows.
func (s *Sizes) Len() int { return len(s.weights) }

// Add notes a size, with a number from 1 to 2³¹-1 for each axis, and its weight: how
// often it came, relative to the others. One of weight 0 does not count.
func (s *Sizes) Add(size []int64, weight float64) error {
	if len(size) != len(s.Axes) {
		return fmt.Errorf("%d numbers, where there are %d axes", len(size), len(s.Axes))
	}
	for _, n := range size {
		if n < 1 || n > math.MaxInt32 {
			return fmt.Errorf("%d is no size: it is from 1 to %d", n, math.MaxInt32)
		}
	}
	switch {
	case !(weight >= 0) || weight > maxWeight:
		return fmt.Errorf("%v is no weight: it is from 0 to %g", weight, maxWeight)
	case weight == 0:
		return nil
	case s.Len() == MaxRows:
		return fmt.Errorf("there are more than %d sizes", MaxRows)
	}
	s.numbers = append(s.numbers, size...)
	s.weights = append(s.weights, weight)
	return nil
}

// Weight is the sum of all weights: how many requests there were.
func (s *Sizes) Weight() (sum float64) {
	for _, w := range s.weights {
		sum += w
	}
	return sum
}

// row is the size of a row.
func (s *Sizes) row(i int) []int64 {
	d := len(s.Axes)
	return s.numbers[i*d : (i+1)*d : (i+1)*d]
}

// Largest is the smallest size that covers all: the most of each axis.
func (s *Sizes) Largest() []int64 {
	most := make([]int64, len(s.Axes))
	for i := range s.Len() {
		grow(most, s.row(i))
	}
	return most
}

// grow makes a size cover another.
func grow(size, other []int64) {
	for a, n := range other {
		size[a] = max(size[a], n)
	}
}

// covers says whether a gear holds a size: it is not smaller in any axis.
func covers(gear, size []int64) bool {
	for a, n := range size {
		if gear[a] < n {
			return false
		}
	}
	return true
}

// Bin is a part of the range of an axis, both ends within it, and the weight of the sizes
// there.
type Bin struct {
	From   int64   `json:"from"`
	To     int64   `json:"to"`
	Weight float64 `json:"weight"`
}

// Histogram counts the sizes of an axis in at most n parts of equal width.
func (s *Sizes) Histogram(axis, n int) []Bin {
	if s.Len() == 0 || n < 1 {
		return nil
	}
	least, most := int64(math.MaxInt64), int64(0)
	for i := range s.Len() {
		size := s.row(i)[axis]
		least, most = min(least, size), max(most, size)
	}
	width := (most-least)/int64(n) + 1
	bins := make([]Bin, (most-least)/width+1)
	for i := range bins {
		from := least + int64(i)*width
		bins[i] = Bin{From: from, To: min(from+width-1, most)}
	}
	for i, weight := range s.weights {
		bins[(s.row(i)[axis]-least)/width].Weight += weight
	}
	return bins
}

// worker computes the work of sizes: the product of the axes, each to its power.
type worker []int

func (p worker) of(size []int64) float64 {
	work := 1.0
	for a, n := range size {
		work *= power(n, p[a])
	}
	return work
}

// point is a distinct size and its weight.
type point struct {
	size   []int64
	weight float64
}

// bySize orders points by their axes, the last one first.
func bySize(a, b point) int {
	for i := len(a.size) - 1; i >= 0; i-- {
		if c := cmp.Compare(a.size[i], b.size[i]); c != 0 {
			return c
		}
	}
	return 0
}

// together makes one point of those of one size, ordered by [bySize].
func together(points []point) []point {
	slices.SortFunc(points, bySize)
	kept := points[:0]
	for _, p := range points {
		if n := len(kept); n > 0 && slices.Equal(kept[n-1].size, p.size) {
			kept[n-1].weight += p.weight
			continue
		}
		kept = append(kept, p)
	}
	return kept
}

// rounded gives the distinct sizes as gears hold them: up to the next multiple, or up to a
// size of given gears where that comes before.
func (s *Sizes) rounded(multiple []int64, include [][]int64) []point {
	numbers := slices.Clone(s.numbers)
	if len(multiple) > 0 {
		d := len(s.Axes)
		for i, n := range numbers {
			numbers[i] = roundUp(n, multiple[i%d])
			for _, gear := range include {
				if gear[i%d] >= n {
					numbers[i] = min(numbers[i], gear[i%d])
				}
			}
		}
	}
	if len(s.Axes) == 1 { // a million numbers: as plain as can be
		return alongLine(numbers, s.weights)
	}
	points := make([]point, s.Len())
	for i, weight := range s.weights {
		d := len(s.Axes)
		points[i] = point{numbers[i*d : (i+1)*d : (i+1)*d], weight}
	}
	return together(points)
}

// alongLine is [together] for one axis.
func alongLine(numbers []int64, weights []float64) (points []point) {
	type pair struct {
		n      int64
		weight float64
	}
	pairs := make([]pair, len(numbers))
	for i, n := range numbers {
		pairs[i] = pair{n, weights[i]}
	}
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Compare(a.n, b.n) })
	distinct := numbers[:0] // its numbers are in pairs
	for _, p := range pairs {
		if n := len(points); n > 0 && distinct[n-1] == p.n {
			points[n-1].weight += p.weight
			continue
		}
		distinct = append(distinct, p.n)
		points = append(points, point{distinct[len(distinct)-1:], p.weight})
	}
	return points
}

func roundUp(n, multiple int64) int64 { return (n + multiple - 1) / multiple * multiple }

// errEmpty is the failure of planning for nothing.
var errEmpty = errors.New("there are no sizes to plan for")
