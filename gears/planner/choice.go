package planner

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
)

// Options say which gears may be found.
type Options struct {
	// Max is the most gears, at least 1.
	Max int
	// Multiple, where it is given, has a number for each axis that sizes of gears are a
	// multiple of.
	Multiple []int64
	// Include are gears that must be among those found; they count as others do.
	Include [][]int64
	// Exponents are the powers of the axes in the work of a gear; nil is 1 for each.
	Exponents []int
	// Progress is told, when set, what the search is at.
	Progress func(text string)
}

// Choice is a choice of gears.
type Choice struct {
	// Gears are the sizes, by work, each with a number for each axis.
	Gears [][]int64 `json:"gears"`
	// Padded is the work that they add to that of the requests.
	Padded float64 `json:"padded"`
	// Waste is Padded by the work of the requests.
	Waste float64 `json:"waste"`
}

// Result is what [Make] finds.
type Result struct {
	// Total is the work of the requests themselves, as if nothing was padded.
	Total float64
	// Choices are the best that was found for each number of gears, from the fewest.
	Choices []Choice
	// Knee is the number of gears that is recommended: see [Knee].
	Knee int
	// Exact says that no choice pads less; else a search found them.
	Exact bool
}

// Best is the choice with the most gears.
func (r *Result) Best() Choice { return r.Choices[len(r.Choices)-1] }

// mostCells bounds the table of the exact method: four bytes each.
const mostCells = 1 << 26

// Make finds gears for observed sizes. With one axis, and wherever of two sizes one always
// covers the other, no choice of as many gears pads less; else it is a search that tells
// the same on every machine. Errors are those of the options, and of ctx.
func Make(ctx context.Context, s *Sizes, o Options) (*Result, error) {
	if err := o.check(s); err != nil {
		return nil, err
	}
	work := worker(o.Exponents)
	if work == nil {
		work = slices.Repeat(worker{1}, len(s.Axes))
	}
	r := &Result{}
	for i, weight := range s.weights {
		r.Total += weight * work.of(s.row(i))
	}
	var found []arrangement
	if c, sizes, ok := chainOf(s, o, work); ok {
		for _, gear := range o.Include {
			c.forced = append(c.forced, slices.IndexFunc(sizes, func(s []int64) bool { return slices.Equal(s, gear) }))
		}
		slices.Sort(c.forced)
		if len(sizes)*o.Max > mostCells {
			return nil, fmt.Errorf("%d distinct sizes and %d gears are more than can be planned for: fewer gears, or sizes rounded to multiples, make it less", len(sizes), o.Max)
		}
		r.Exact = true
		found = c.choices(sizes, o.Max)
	} else {
		var err error
		if found, err = search(ctx, s, work, o); err != nil {
			return nil, err
		}
	}
	for _, f := range found {
		slices.SortFunc(f.gears, func(a, b []int64) int { return cmp.Or(cmp.Compare(work.of(a), work.of(b)), slices.Compare(a, b)) })
		padded := max(f.work-r.Total, 0) // sums of fractions are not quite exact
		r.Choices = append(r.Choices, Choice{f.gears, padded, padded / r.Total})
	}
	r.Knee = Knee(r.Choices)
	return r, ctx.Err()
}

// chainOf makes a chain of sizes and of the gears that must be, if they are one.
func chainOf(s *Sizes, o Options, work worker) (c chain, sizes [][]int64, ok bool) {
	if len(s.Axes) > 1 && len(o.Multiple) > 0 && len(o.Include) > 0 {
		return c, nil, false // a size between both may be neither
	}
	points := s.rounded(o.Multiple, o.Include)
	for _, gear := range o.Include {
		if !slices.ContainsFunc(points, func(p point) bool { return slices.Equal(p.size, gear) }) {
			points = append(points, point{size: gear})
		}
	}
	return newChain(points, work)
}

// arrangement is a choice of gears, and the work of all requests in them.
type arrangement struct {
	gears [][]int64
	work  float64
}

// choices are the best choices of a chain for each number of gears that is enough.
func (c chain) choices(sizes [][]int64, most int) (found []arrangement) {
	l := c.best(most)
	for i, total := range l.total {
		if math.IsInf(total, 1) {
			continue
		}
		var gears [][]int64
		for _, at := range l.gears(i + 1) {
			gears = append(gears, sizes[at])
		}
		found = append(found, arrangement{gears, total})
	}
	return found
}

func (o Options) check(s *Sizes) error {
	switch {
	case s.Len() == 0:
		return errEmpty
	case len(s.Axes) > MaxAxes:
		return fmt.Errorf("%d axes: at most %d can be planned for", len(s.Axes), MaxAxes)
	case o.Max < 1 || o.Max < len(o.Include):
		return fmt.Errorf("at most %d gears are too few", o.Max)
	case o.Exponents != nil && len(o.Exponents) != len(s.Axes):
		return fmt.Errorf("%d exponents for %d axes", len(o.Exponents), len(s.Axes))
	case len(o.Multiple) > 0 && len(o.Multiple) != len(s.Axes):
		return fmt.Errorf("%d multiples for %d axes", len(o.Multiple), len(s.Axes))
	}
	for _, n := range o.Multiple {
		if n < 1 || n > math.MaxInt32 {
			return fmt.Errorf("a multiple of %d is no size", n)
		}
	}
	for a, n := range s.Largest() {
		if len(o.Multiple) > 0 && roundUp(n, o.Multiple[a]) > math.MaxInt32 {
			return fmt.Errorf("the next multiple of %d behind %d is too large for a size", o.Multiple[a], n)
		}
	}
	for i, gear := range o.Include {
		if len(gear) != len(s.Axes) {
			return fmt.Errorf("the gear %v has not one number for each of %d axes", gear, len(s.Axes))
		}
		if slices.ContainsFunc(o.Include[:i], func(g []int64) bool { return slices.Equal(g, gear) }) {
			return fmt.Errorf("the gear %v is given twice", gear)
		}
		for _, n := range gear {
			if n < 1 || n > math.MaxInt32 {
				return fmt.Errorf("the gear %v has a number that is no size", gear)
			}
		}
	}
	covered := slices.ContainsFunc(o.Include, func(g []int64) bool { return covers(g, s.Largest()) })
	if !covered && o.Max == len(o.Include) && !everyCovered(s, o) {
		return fmt.Errorf("the gears that must be there do not hold the largest size %v, and the most gears leave none for it", s.Largest())
	}
	return nil
}

// everyCovered says whether the gears that must be there hold all sizes.
func everyCovered(s *Sizes, o Options) bool {
	for i := range s.Len() {
		if !slices.ContainsFunc(o.Include, func(g []int64) bool { return covers(g, s.row(i)) }) {
			return false
		}
	}
	return true
}

// Use is what a gear is for.
type Use struct {
	Gear   []int64 `json:"gear"`
	Weight float64 `json:"weight"` // of the sizes that run in it
	Padded float64 `json:"padded"` // work that it adds to theirs
}

// Uses says what each gear of a list is for, in the order of their work; fits is false when
// a size has no gear. Exponents are as in [Options].
func Uses(s *Sizes, gears [][]int64, exponents []int) (uses []Use, fits bool) {
	work := worker(exponents)
	if work == nil {
		work = slices.Repeat(worker{1}, len(s.Axes))
	}
	for _, g := range gears {
		if len(g) != len(s.Axes) {
			return nil, false
		}
		uses = append(uses, Use{Gear: g})
	}
	slices.SortStableFunc(uses, func(a, b Use) int { return cmp.Compare(work.of(a.Gear), work.of(b.Gear)) })
	works := make([]float64, len(uses))
	for i, u := range uses {
		works[i] = work.of(u.Gear)
	}
	for i, weight := range s.weights {
		size := s.row(i)
		at := slices.IndexFunc(uses, func(u Use) bool { return covers(u.Gear, size) })
		if at < 0 {
			return nil, false
		}
		uses[at].Weight += weight
		uses[at].Padded += weight * (works[at] - work.of(size))
	}
	return uses, true
}

// WorthOfGear is the least that a gear must save to be recommended, as a share of the work
// of the requests.
const WorthOfGear = 0.01

// Knee is the number of gears from which on more are not worth their compile time and
// memory: the fewest such that no greater number saves [WorthOfGear] for each gear added.
// Choices are in the order of their number of gears.
func Knee(choices []Choice) int {
	for i, c := range choices {
		isWorth := slices.ContainsFunc(choices[i+1:], func(more Choice) bool {
			return c.Waste-more.Waste >= WorthOfGear*float64(len(more.Gears)-len(c.Gears))
		})
		if !isWorth {
			return len(c.Gears)
		}
	}
	return 0
}
