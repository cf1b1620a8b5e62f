package planner

import (
	"math"
	"slices"
)

// cells are distinct sizes as the search sees them: ordered by [bySize], so that the last
// axis ascends.
type cells struct {
	points   []point
	work     worker
	multiple []int64 // of which sizes of gears are one; nil for any
	most     float64 // work of the smallest gear that holds all
	total    float64 // weight of all
}

func newCells(points []point, work worker) *cells {
	c := &cells{points: points, work: work}
	largest := make([]int64, len(work))
	for _, p := range points {
		grow(largest, p.size)
		c.total += p.weight
	}
	c.most = work.of(largest)
	return c
}

// gear is a gear of a choice under search.
type gear struct {
	size  []int64
	work  float64
	fixed bool // it must stay
}

// state is a choice of gears, by their work, and where each cell runs.
type state struct {
	*cells
	gears []gear
	// first is the cheapest gear that holds a cell, second the next one that would; a
	// place in gears, or their number where there is none.
	first, second []int32
	cost          float64 // work of all cells; those without a gear count as the most
	effort        *int64  // steps taken
	buffers
}

func newState(c *cells, gears []gear, effort *int64) *state {
	s := &state{cells: c, effort: effort}
	s.set(gears)
	return s
}

// buffers are kept from one step to the next.
type buffers struct {
	near    []member
	members []int32
	class   []int32
	scores  []float64
}

// set takes over gears, and puts each cell where it runs.
func (s *state) set(gears []gear) {
	s.gears = slices.Clone(gears)
	slices.SortStableFunc(s.gears, func(a, b gear) int {
		switch {
		case a.work < b.work:
			return -1
		case a.work > b.work:
			return 1
		}
		return slices.Compare(a.size, b.size)
	})
	if s.first == nil {
		s.first, s.second = make([]int32, len(s.points)), make([]int32, len(s.points))
	}
	s.cost = 0
	none := int32(len(s.gears))
	steps := 0
	for i := range s.points {
		s.first[i], s.second[i] = none, none
		size := s.points[i].size
		for g := range s.gears {
			steps++
			if !covers(s.gears[g].size, size) {
				continue
			}
			if s.first[i] == none {
				s.first[i] = int32(g)
				continue
			}
			s.second[i] = int32(g)
			break
		}
		s.cost += s.points[i].weight * s.workOf(s.first[i])
	}
	*s.effort += int64(steps)
}

// workOf is the work of a gear, or the most where there is none.
func (s *state) workOf(g int32) float64 {
	if int(g) == len(s.gears) {
		return s.most
	}
	return s.gears[g].work
}

// works are those of all gears, and the most behind them.
func (s *state) works() []float64 {
	works := make([]float64, 0, len(s.gears)+1)
	for _, g := range s.gears {
		works = append(works, g.work)
	}
	return append(works, s.most)
}

// uncovered is the smallest gear that holds the cells without one; nil when all have.
func (s *state) uncovered() (corner []int64) {
	for i, g := range s.first {
		if int(g) < len(s.gears) {
			continue
		}
		if corner == nil {
			corner = make([]int64, len(s.work))
		}
		grow(corner, s.points[i].size)
	}
	return corner
}

// tighten makes each gear as small as what runs in it allows.
func (s *state) tighten() {
	gears := slices.Clone(s.gears)
	hulls := make([][]int64, len(gears))
	for i, g := range s.first {
		if int(g) == len(gears) {
			continue
		}
		if hulls[g] == nil {
			hulls[g] = make([]int64, len(s.work))
		}
		grow(hulls[g], s.points[i].size)
	}
	isTight := true
	for g, hull := range hulls {
		for a := range hull {
			if s.multiple != nil {
				hull[a] = roundUp(hull[a], s.multiple[a])
			}
		}
		if hull == nil || gears[g].fixed || slices.Equal(hull, gears[g].size) {
			continue
		}
		gears[g] = gear{size: hull, work: s.work.of(hull)}
		isTight = false
	}
	if !isTight {
		s.set(gears)
	}
}

// grid is where gears may stand: all combinations of the sizes of its axes, ascending.
type grid [][]int64

// len is the number of places.
func (g grid) len() int {
	n := 1
	for _, sizes := range g {
		n *= len(sizes)
	}
	return n
}

// at is the size of a place; the last axis counts fastest.
func (g grid) at(place int) []int64 {
	size := make([]int64, len(g))
	for a := len(g) - 1; a >= 0; a-- {
		size[a] = g[a][place%len(g[a])]
		place /= len(g[a])
	}
	return size
}

// place is where a size of the grid's stands.
func (g grid) place(size []int64) (place int) {
	for a, n := range size {
		at, _ := slices.BinarySearch(g[a], n)
		place = place*len(g[a]) + at
	}
	return place
}

// gains writes what a gear more would save, for each place of a grid: for those of the
// members that fit in, by how much its work is below the work that class says. Classes are
// places in works, which ascend. own is the work that members have now, and that a gear
// which is about to go saved already; 0 for none.
//
// A place's members are found by going along the last axis, in which members ascend, and
// so does the work of the places: a class whose work is reached saves nothing from there on.
func (s *state) gains(out []float64, places grid, members, class []int32, works []float64, own float64) {
	d := len(places)
	last := places[d-1]
	s.gather(members, class, last[len(last)-1])
	powers := make([]float64, len(last))
	for i, n := range last {
		powers[i] = power(n, s.work[d-1])
	}
	lead := make([]int, d-1) // of the place, in the axes before the last
	prefix := make([]int64, d-1)
	sums := make([]float64, len(works))
	for out := out; ; out = out[len(last):] {
		base := 1.0
		for a, at := range lead {
			prefix[a] = places[a][at]
			base *= power(prefix[a], s.work[a])
		}
		clear(sums)
		s.along(out[:len(last)], last, powers, prefix, base, works, sums, own)
		*s.effort += int64(len(s.near) + 2*len(last))
		if !places.step(lead) {
			return
		}
	}
}

// along writes the gains of a row of places, which differ in the last axis.
func (s *state) along(out []float64, last []int64, powers []float64, prefix []int64, base float64, works, sums []float64, own float64) {
	weight, cost, all := 0.0, 0.0, 0.0
	dropped, at := int32(0), 0
	rest := s.near
	for i, size := range last {
		work := base * powers[i]
		for int(dropped) < len(works) && works[dropped] <= work {
			weight -= sums[dropped]
			cost -= sums[dropped] * works[dropped]
			dropped++
		}
		for ; at < len(rest) && rest[at].last <= size; at++ {
			m := &rest[at]
			if len(prefix) == 1 {
				if m.lead > prefix[0] {
					continue
				}
			} else if !fits(m.size, prefix) {
				continue
			}
			all += m.weight
			if m.class < dropped {
				continue
			}
			sums[m.class] += m.weight
			weight += m.weight
			cost += m.weight * works[m.class]
		}
		out[i] = cost - work*weight - all*max(own-work, 0)
	}
}

// member is a cell as gains goes through them, over and over.
type member struct {
	last, lead int64 // its sizes in the last axis and the first
	weight     float64
	class      int32
	size       []int64
}

// gather lists members with their class in near, but those beyond the largest place.
func (s *state) gather(members, class []int32, most int64) {
	s.near = s.near[:0]
	for _, i := range members {
		p := &s.points[i]
		last := p.size[len(p.size)-1]
		if last > most {
			break
		}
		s.near = append(s.near, member{last, p.size[0], p.weight, class[i], p.size})
	}
}

func power(n int64, exponent int) float64 {
	x := 1.0
	for range exponent {
		x *= float64(n)
	}
	return x
}

// fits says whether a size is within a place in the axes before the last.
func fits(size, prefix []int64) bool {
	for a, most := range prefix {
		if size[a] > most {
			return false
		}
	}
	return true
}

// step counts up the axes before the last, the last of them fastest.
func (g grid) step(lead []int) bool {
	for a := len(lead) - 1; a >= 0; a-- {
		if lead[a]++; lead[a] < len(g[a]) {
			return true
		}
		lead[a] = 0
	}
	return false
}

// from is the least place in each axis that holds a corner; the first when there is none.
func (g grid) from(corner []int64) []int {
	least := make([]int, len(g))
	for a := range corner {
		least[a], _ = slices.BinarySearch(g[a], corner[a])
	}
	return least
}

// best is the place with the highest score, and what more says besides where it is not nil,
// that holds a corner (nil is any); place is -1 when none does.
func (g grid) best(scores, more []float64, corner []int64) (place int, score float64) {
	place, score = -1, math.Inf(-1)
	least := g.from(corner)
	d := len(g)
	lead := make([]int, d-1)
	for base := 0; ; base += len(g[d-1]) {
		isIn := true
		for a, at := range lead {
			isIn = isIn && at >= least[a]
		}
		if isIn {
			first := scores[base : base+len(g[d-1])]
			for i := least[d-1]; i < len(first); i++ {
				sum := first[i]
				if more != nil {
					sum += more[base+i]
				}
				if sum > score {
					place, score = base+i, sum
				}
			}
		}
		if !g.step(lead) {
			return place, score
		}
	}
}
