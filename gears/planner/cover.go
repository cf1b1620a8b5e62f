package planner

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
)

// How much the search does. All of it is counted in steps and not in time, so that the
// same observations give the same gears everywhere.
const (
	mostPlaces = 2500          // of a coarse grid
	mostFine   = 50_000        // distinct sizes that are told apart on the fine one
	mostSteps  = 1_000_000_000 // for all numbers of gears; half of it for the most gears
	mostTries  = 400           // for one number of gears
	sameGrid   = 8             // tries on one coarse grid
	mostGone   = 5             // gears that are taken away for a try
	fewPlaces  = 6             // of which the best is taken at random
	patience   = 16            // tries until the search goes back to the best
	slack      = 0.003         // how much worse a choice may be to go on from
)

// search finds gears for several axes, for each number of gears up to the most.
type searcher struct {
	ctx          context.Context
	o            Options
	work         worker
	fine         *cells
	lines        [][]point // the distinct sizes of each axis
	levels       grid      // the sizes that a gear may have in each axis
	coarseLevels int       // of an axis of a coarse grid, beside those of gears
	fixed        []gear
	best         []*arrangement // by number of gears; nil where there is none
	mutex        sync.Mutex
}

// search makes a choice for every number of gears that is enough.
func search(ctx context.Context, observed *Sizes, work worker, o Options) ([]arrangement, error) {
	s := &searcher{ctx: ctx, o: o, work: work, best: make([]*arrangement, o.Max+1)}
	points := observed.rounded(o.Multiple, nil)
	exact := observed.rounded(o.Multiple, o.Include)
	for _, size := range o.Include {
		s.fixed = append(s.fixed, gear{size, work.of(size), true})
	}
	for a := range work {
		s.lines = append(s.lines, lineOf(points, a))
	}
	for limit := 4096; ; limit /= 2 {
		s.levels = s.levelsOf(limit, 0, nil)
		s.fine = s.cellsOn(s.levels, exact)
		if len(s.fine.points) <= mostFine || limit <= 4 {
			break
		}
	}
	for s.coarseLevels = 2; pow(s.coarseLevels+1, len(work)) <= mostPlaces; s.coarseLevels++ {
	}
	s.fromSquares(points)
	s.path()
	if err := s.improve(); err != nil {
		return nil, err
	}
	s.path() // what one number of gears has found helps its neighbours
	return s.found(), ctx.Err()
}

// levelsOf lists at most n sizes of each axis, equally many requests between them, and
// those of given gears.
func (s *searcher) levelsOf(n int, shift float64, keep []gear) grid {
	levels := make(grid, len(s.work))
	for a := range levels {
		levels[a] = quantiles(s.lines[a], n, shift)
		for _, g := range keep {
			if !g.fixed {
				levels[a] = append(levels[a], g.size[a])
			}
		}
		slices.Sort(levels[a])
		levels[a] = slices.Compact(levels[a])
	}
	return levels
}

// cellsOn rounds points up to where gears may stand, and to the fixed gears: no choice can
// tell the difference.
func (s *searcher) cellsOn(levels grid, points []point) *cells {
	all := make(grid, len(levels))
	for a := range levels {
		all[a] = slices.Clone(levels[a])
		for _, g := range s.fixed {
			all[a] = append(all[a], g.size[a])
		}
		slices.Sort(all[a])
		all[a] = slices.Compact(all[a])
	}
	c := newCells(aligned(points, all), s.work)
	c.multiple = s.o.Multiple
	return c
}

// lineOf lists the distinct sizes of an axis with their weights, ascending.
func lineOf(points []point, axis int) []point {
	line := make([]point, len(points))
	for i, p := range points {
		line[i] = point{p.size[axis : axis+1], p.weight}
	}
	return together(line)
}

// quantiles are at most n sizes of a line, the largest among them, with equal weights
// between them; shift, from 0 to 1, moves the others.
func quantiles(line []point, n int, shift float64) (sizes []int64) {
	total := 0.0
	for _, p := range line {
		total += p.weight
	}
	sum := 0.0
	for i, p := range line {
		sum += p.weight
		left := n - len(sizes) - 1 // beside the largest
		isDue := sum*float64(n) >= total*(float64(len(sizes))+1-shift)
		if i == len(line)-1 || left > 0 && (isDue || left >= len(line)-1-i) {
			sizes = append(sizes, p.size[0])
		}
	}
	return sizes
}

// aligned rounds sizes up to levels: gears that stand on levels cannot tell the difference.
func aligned(points []point, levels grid) []point {
	out := make([]point, len(points))
	for i, p := range points {
		size := make([]int64, len(p.size))
		for a, n := range p.size {
			at, _ := slices.BinarySearch(levels[a], n)
			size[a] = levels[a][at]
		}
		out[i] = point{size, p.weight}
	}
	return together(out)
}

// coarse begins a walk with gears on a coarse grid, on which they stand. With many axes the
// grid has no room for all their places, and they move up to the next one.
func (s *searcher) coarse(shift float64, gears []gear, effort *int64) *walk {
	levels := s.levelsOf(s.coarseLevels, shift, gears)
	for n := s.coarseLevels; levels.len() > mostPlaces && n > 1; {
		n = n * 9 / 10
		levels = s.levelsOf(n, shift, gears)
	}
	if levels.len() > mostPlaces {
		levels = s.levelsOf(s.coarseLevels, shift, nil)
		gears = s.snapped(gears, levels)
	}
	return newWalk(s, s.cellsOn(levels, s.fine.points), levels, gears, effort)
}

// snapped moves gears up to a grid.
func (s *searcher) snapped(gears []gear, levels grid) []gear {
	out := slices.Clone(gears)
	for i, g := range gears {
		if g.fixed {
			continue
		}
		size := slices.Clone(g.size)
		for a, n := range size {
			at, _ := slices.BinarySearch(levels[a], n)
			size[a] = levels[a][min(at, len(levels[a])-1)]
		}
		out[i] = gear{size: size, work: s.work.of(size)}
	}
	return out
}

// fromSquares notes the best choices whose gears are as large in every axis, as far as it
// goes: they are a chain, and exact.
func (s *searcher) fromSquares(points []point) {
	largest := make([]int64, len(s.work))
	for _, p := range points {
		grow(largest, p.size)
	}
	squares := make([]point, len(points))
	for i, p := range points {
		side := slices.Max(p.size)
		size := make([]int64, len(p.size))
		for a := range size {
			at, found := slices.BinarySearch(s.levels[a], side)
			if !found && at == len(s.levels[a]) {
				at--
			}
			size[a] = min(s.levels[a][at], largest[a])
		}
		squares[i] = point{size, p.weight}
	}
	c, sizes, ok := newChain(together(squares), s.work)
	if !ok {
		return
	}
	for _, choice := range c.choices(sizes, s.o.Max-len(s.fixed)) {
		gears := slices.Clone(s.fixed)
		for _, size := range choice.gears {
			gears = append(gears, gear{size, s.work.of(size), false})
		}
		effort := int64(0)
		st := newState(s.fine, gears, &effort)
		st.tighten()
		s.note(st)
	}
}

// note keeps a choice when it is better than what is known for as many gears. All its
// cells have a gear.
func (s *searcher) note(st *state) {
	if st.uncovered() != nil {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	n := len(st.gears)
	if s.best[n] != nil && s.best[n].work <= st.cost {
		return
	}
	a := &arrangement{work: st.cost}
	for _, g := range st.gears {
		a.gears = append(a.gears, g.size)
	}
	s.best[n] = a
}

// known gives what is known for a number of gears.
func (s *searcher) known(n int) (gears []gear, ok bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.best[n] == nil {
		return nil, false
	}
	for _, size := range s.best[n].gears {
		isFixed := slices.ContainsFunc(s.fixed, func(f gear) bool { return slices.Equal(f.size, size) })
		gears = append(gears, gear{size, s.work.of(size), isFixed})
	}
	return gears, true
}

// path goes from few gears to many, one added at a time, and back, one left out at a time.
func (s *searcher) path() {
	effort := int64(0)
	least := max(1, len(s.fixed))
	for n := least; n <= s.o.Max && s.ctx.Err() == nil; n++ {
		s.say("%d of %d gears", n, s.o.Max)
		gears := s.fixed
		if n > least {
			if known, ok := s.known(n - 1); ok {
				gears = known
			}
		}
		walk := s.coarse(0, gears, &effort)
		walk.fill(n, nil)
		walk.descend()
		s.note(s.settle(walk.state, &effort))
	}
	for n := s.o.Max - 1; n >= least && s.ctx.Err() == nil; n-- {
		gears, ok := s.known(n + 1)
		if !ok {
			continue
		}
		st := newState(s.fine, gears, &effort)
		if st.dropOne() {
			s.note(s.settle(st, &effort))
		}
	}
}

// dropOne leaves out the gear that costs least to leave out, if one may go.
func (s *state) dropOne() bool {
	costs := make([]float64, len(s.gears))
	needed := make([]bool, len(s.gears))
	for i, g := range s.first {
		if int(s.second[i]) == len(s.gears) {
			needed[g] = true
		}
		costs[g] += s.points[i].weight * (s.workOf(s.second[i]) - s.gears[g].work)
	}
	at := -1
	for g, cost := range costs {
		if !needed[g] && !s.gears[g].fixed && (at < 0 || cost < costs[at]) {
			at = g
		}
	}
	if at < 0 {
		return false
	}
	s.set(slices.Delete(slices.Clone(s.gears), at, at+1))
	return true
}

// improve searches on for each number of gears, several at a time.
func (s *searcher) improve() error {
	var wait sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for n := s.o.Max; n >= max(1, len(s.fixed)); n-- {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			share := int64(mostSteps / 2)
			if n < s.o.Max {
				share /= int64(s.o.Max)
			}
			s.improveOne(n, share)
		})
	}
	wait.Wait()
	return s.ctx.Err()
}

// improveOne searches with n gears: it takes a few away, fills up with others on a coarse
// grid, moves all on the fine one, and goes on from there when that is hardly worse than
// where it was, else from the best.
func (s *searcher) improveOne(n int, most int64) {
	gears, ok := s.known(n)
	if !ok || n-len(s.fixed) < 2 {
		return
	}
	s.say("searching with %d gears", n)
	random := rand.New(rand.NewPCG(1, uint64(n)))
	effort, tries := int64(0), 0
	best := newState(s.fine, gears, &effort)
	now := best
	spare := &state{cells: s.fine, effort: &effort}
	var w *walk
	for wide := false; effort < most && tries < mostTries && s.ctx.Err() == nil; tries++ {
		if w == nil || tries%sameGrid == 0 {
			w = s.coarse(random.Float64(), now.gears, &effort)
		}
		w.shake(s.snapped(now.gears, w.places), random, wide)
		wide = false
		st := s.settleInto(spare, w.gears)
		spare = nil
		if st.cost < best.cost {
			best = st
		}
		switch {
		case st.cost <= now.cost*(1+slack):
			now = st
		case tries%patience == patience-1:
			now, wide = best, tries%(2*patience) == patience-1
			spare = st
		default:
			spare = st
		}
		if spare == nil || spare == best {
			spare = &state{cells: s.fine, effort: &effort}
		}
	}
	s.note(best)
}

func (s *searcher) say(format string, args ...any) {
	if s.o.Progress != nil {
		s.o.Progress(fmt.Sprintf(format, args...))
	}
}

// found lists the choices, from few gears to many: only those that pad less than all with
// fewer.
func (s *searcher) found() (list []arrangement) {
	for _, a := range s.best {
		if a != nil && (len(list) == 0 || a.work < list[len(list)-1].work) {
			list = append(list, *a)
		}
	}
	return list
}

// walk is a search on a grid.
type walk struct {
	*state
	s      *searcher
	places grid
	all    []int32   // every cell
	added  []float64 // by place: what a gear there would save beside all others
	ofGear [][]int32
	traded []float64 // and what more, if one of them went
}

func newWalk(s *searcher, c *cells, places grid, gears []gear, effort *int64) *walk {
	w := &walk{state: newState(c, gears, effort), s: s, places: places}
	w.all = make([]int32, len(c.points))
	for i := range w.all {
		w.all[i] = int32(i)
	}
	w.added, w.traded = make([]float64, places.len()), make([]float64, places.len())
	return w
}

// fill adds the best gears until there are n. The last one has to hold what no other does.
// With chance, where there is any, one before it is the best of a few at random.
func (w *walk) fill(n int, random *rand.Rand) {
	for len(w.gears) < n {
		w.gains(w.added, w.places, w.all, w.first, w.works(), 0)
		isLast := len(w.gears) == n-1
		var corner []int64
		if isLast {
			corner = w.uncovered()
		}
		at, _ := w.places.best(w.added, nil, corner)
		if random != nil && !isLast && random.IntN(3) == 0 {
			at = random.IntN(len(w.added))
			for range fewPlaces - 1 {
				if other := random.IntN(len(w.added)); w.added[other] > w.added[at] {
					at = other
				}
			}
		}
		size := w.places.at(at)
		w.set(append(slices.Clone(w.gears), gear{size, w.work.of(size), false}))
	}
}

// descend trades gears as long as that helps.
func (w *walk) descend() {
	for w.s.ctx.Err() == nil && w.trade() {
	}
}

// trade takes one gear away and adds the best other one, if any such pair helps; the best
// pair of all is taken.
func (w *walk) trade() bool {
	works := w.works()
	w.gains(w.added, w.places, w.all, w.first, works, 0)
	members := slices.Grow(w.ofGear[:0], len(w.gears))[:len(w.gears)]
	for g := range members {
		members[g] = members[g][:0]
	}
	w.ofGear = members
	for i, g := range w.first {
		if int(g) < len(w.gears) {
			members[g] = append(members[g], int32(i))
		}
	}
	best, from, to := 1e-9*w.cost, -1, -1
	for g, own := range members {
		if w.gears[g].fixed {
			continue
		}
		loss := 0.0
		var corner []int64
		for _, i := range own {
			loss += w.points[i].weight * (works[w.second[i]] - works[g])
			if int(w.second[i]) == len(w.gears) {
				if corner == nil {
					corner = make([]int64, len(w.work))
				}
				grow(corner, w.points[i].size)
			}
		}
		w.gains(w.traded, w.places, own, w.second, works, works[g])
		if at, gain := w.places.best(w.added, w.traded, corner); at >= 0 && gain-loss > best {
			best, from, to = gain-loss, g, at
		}
	}
	if from < 0 {
		return false
	}
	gears := slices.Clone(w.gears)
	size := w.places.at(to)
	gears[from] = gear{size, w.work.of(size), false}
	w.set(gears)
	return true
}

// shake takes a few of given gears away, fills up and descends.
func (w *walk) shake(gears []gear, random *rand.Rand, wide bool) {
	n, free := len(gears), len(gears)-len(w.s.fixed)
	kept := slices.Clone(gears)
	gone := 2 + random.IntN(min(mostGone, free)-1)
	if wide {
		gone = max(gone, free/2)
	}
	for range gone {
		at := random.IntN(len(kept))
		for kept[at].fixed {
			at = (at + 1) % len(kept)
		}
		kept = slices.Delete(kept, at, at+1)
	}
	w.set(kept)
	w.fill(n, random)
	w.descend()
}

// settle moves the gears of a choice over all observed sizes until no move helps.
func (s *searcher) settle(st *state, effort *int64) *state {
	return s.settleInto(&state{cells: s.fine, effort: effort}, st.gears)
}

// settleInto is [searcher.settle] for gears, in a state that is made anew.
func (s *searcher) settleInto(st *state, gears []gear) *state {
	st.set(gears)
	st.tighten()
	class := slices.Grow(st.class[:0], len(st.points))[:len(st.points)]
	st.class = class
	for hasMoved := true; hasMoved && s.ctx.Err() == nil; {
		hasMoved = false
		for g := 0; g < len(st.gears); g++ {
			if !st.gears[g].fixed && s.move(st, g, class) {
				hasMoved = true
			}
		}
	}
	st.tighten()
	return st
}

// pow is a whole power.
func pow(n, exponent int) int {
	x := 1
	for range exponent {
		x *= n
	}
	return x
}

// strides are how far a gear is moved at once, in observed sizes.
var strides = []int{1, 2, 3, 5, 8, 13, 21}

// move puts a gear where it saves most, near where it is in all axes at once; false when
// that is where it is.
func (s *searcher) move(st *state, g int, class []int32) bool {
	old := st.gears[g]
	places := s.near(old.size)
	least, most := places.at(0), places.at(places.len()-1)
	cheapest := s.work.of(least)
	works := st.works()
	var corner []int64
	members := st.members[:0]
	for i, k := range st.first {
		size := st.points[i].size
		if int(k) == g {
			if k = st.second[i]; int(k) == len(st.gears) {
				if corner == nil {
					corner = make([]int64, len(s.work))
				}
				grow(corner, size)
			}
		}
		if works[k] > cheapest && covers(most, size) {
			class[i] = k
			members = append(members, int32(i))
		}
	}
	*st.effort += int64(len(st.first))
	st.members = members
	st.scores = slices.Grow(st.scores[:0], places.len())[:places.len()]
	scores := st.scores
	st.gains(scores, places, members, class, works, 0)
	at, score := places.best(scores, nil, corner)
	now := places.place(old.size)
	if at < 0 || score-scores[now] <= 1e-12*st.cost {
		return false
	}
	gears := slices.Clone(st.gears)
	size := places.at(at)
	gears[g] = gear{size, s.work.of(size), false}
	st.set(gears)
	return true
}

// near is the grid around a size.
func (s *searcher) near(size []int64) grid {
	places := make(grid, len(size))
	perAxis := strides[:max(1, min(len(strides), 8-2*len(size)+3))]
	for a, n := range size {
		at, _ := slices.BinarySearch(s.levels[a], n)
		places[a] = []int64{n}
		for _, far := range perAxis {
			for _, to := range []int{at - far, at + far} {
				if to >= 0 && to < len(s.levels[a]) {
					places[a] = append(places[a], s.levels[a][to])
				}
			}
		}
		slices.Sort(places[a])
		places[a] = slices.Compact(places[a])
	}
	return places
}
