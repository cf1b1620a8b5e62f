package planner

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// observed makes sizes of rows, each with its weight as the last number.
func observed(t testing.TB, axes int, rows ...[]int64) *Sizes {
	t.Helper()
	s := NewSizes(make([]string, axes)...)
	for _, row := range rows {
		if err := s.Add(row[:axes], float64(row[axes])); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func plan(t testing.TB, s *Sizes, o Options) *Result {
	t.Helper()
	r, err := Make(context.Background(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestMake(t *testing.T) {
	line := observed(t, 1, []int64{3, 1}, []int64{10, 5}, []int64{11, 1}, []int64{20, 1}, []int64{11, 1})
	images := observed(t, 2, []int64{10, 2, 1}, []int64{2, 10, 1}, []int64{10, 3, 1}, []int64{3, 10, 1})
	for name, c := range map[string]struct {
		sizes  *Sizes
		o      Options
		want   [][]int64
		padded float64
	}{
		"one":                {line, Options{Max: 1}, [][]int64{{20}}, 17 + 50 + 18},
		"two":                {line, Options{Max: 2}, [][]int64{{11}, {20}}, 8 + 5},
		"three":              {line, Options{Max: 3}, [][]int64{{3}, {11}, {20}}, 5},
		"more than sizes":    {line, Options{Max: 9}, [][]int64{{3}, {10}, {11}, {20}}, 0},
		"multiples":          {line, Options{Max: 2, Multiple: []int64{8}}, [][]int64{{16}, {24}}, 13 + 5*6 + 2*5 + 4},
		"one that must be":   {line, Options{Max: 2, Include: [][]int64{{10}}}, [][]int64{{10}, {20}}, 7 + 18},
		"one that is larger": {line, Options{Max: 2, Include: [][]int64{{32}}}, [][]int64{{11}, {32}}, 8 + 5 + 12},
		"squares of lengths": {line, Options{Max: 2, Exponents: []int{2}}, [][]int64{{11}, {20}}, 112 + 5*21},
		"images":             {images, Options{Max: 2}, [][]int64{{3, 10}, {10, 3}}, 20},
		"square images":      {images, Options{Max: 2, Include: [][]int64{{10, 10}}}, [][]int64{{3, 10}, {10, 10}}, 10 + 80 + 70},
	} {
		t.Run(name, func(t *testing.T) {
			best := plan(t, c.sizes, c.o).Best()
			if best.Padded != c.padded {
				t.Errorf("padded %v, want %v", best.Padded, c.padded)
			}
			if diff := cmp.Diff(c.want, best.Gears); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestMakeRefuses(t *testing.T) {
	s := observed(t, 1, []int64{3, 1}, []int64{10, 5})
	for want, c := range map[string]struct {
		sizes *Sizes
		o     Options
	}{
		"there are no sizes to plan for":                       {NewSizes(""), Options{Max: 2}},
		"at most 0 gears are too few":                          {s, Options{}},
		"at most 1 gears are too few":                          {s, Options{Max: 1, Include: [][]int64{{1}, {2}}}},
		"2 exponents for 1 axes":                               {s, Options{Max: 1, Exponents: []int{1, 1}}},
		"2 multiples for 1 axes":                               {s, Options{Max: 1, Multiple: []int64{1, 1}}},
		"a multiple of 0 is no size":                           {s, Options{Max: 1, Multiple: []int64{0}}},
		"the gear [1 1] has not one number for each of 1 axes": {s, Options{Max: 2, Include: [][]int64{{1, 1}}}},
		"the gear [1] is given twice":                          {s, Options{Max: 2, Include: [][]int64{{1}, {1}}}},
		"the gear [0] has a number that is no size":            {s, Options{Max: 2, Include: [][]int64{{0}}}},
		"the gears that must be there do not hold the largest size [10], and the most gears leave none for it": {s, Options{Max: 1, Include: [][]int64{{4}}}},
	} {
		if _, err := Make(context.Background(), c.sizes, c.o); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	big := observed(t, 1, []int64{math.MaxInt32, 1})
	if _, err := Make(context.Background(), big, Options{Max: 1, Multiple: []int64{16}}); err == nil {
		t.Error("a gear beyond the largest size is made")
	}
}

// instance is a random small problem.
func instance(random *rand.Rand, axes int) (*Sizes, Options) {
	s := NewSizes(make([]string, axes)...)
	largest := int64(2 + random.IntN(40))
	for range 1 + random.IntN(8) {
		size := make([]int64, axes)
		for a := range size {
			size[a] = 1 + random.Int64N(largest)
		}
		_ = s.Add(size, float64(1+random.IntN(9))) // it is in bounds
	}
	o := Options{Max: 1 + random.IntN(3)}
	if axes > 2 {
		o.Max = min(o.Max, 2) // for the sake of time
	}
	if random.IntN(3) == 0 {
		for range axes {
			o.Multiple = append(o.Multiple, 1+random.Int64N(5))
			o.Exponents = append(o.Exponents, 1+random.IntN(2))
		}
	}
	if random.IntN(3) == 0 {
		o.Max = min(o.Max+1, 4-axes/2)
		size := make([]int64, axes)
		for a := range size {
			size[a] = 1 + random.Int64N(largest+3)
		}
		o.Include = [][]int64{size}
	}
	return s, o
}

// leastByTrying tries every choice of at most o.Max gears.
func leastByTrying(s *Sizes, o Options) float64 {
	places := grid{}
	for a := range s.Axes {
		var sizes []int64
		for i := range s.Len() {
			n := s.row(i)[a]
			if o.Multiple != nil {
				n = roundUp(n, o.Multiple[a])
			}
			sizes = append(sizes, n)
		}
		slices.Sort(sizes)
		places = append(places, slices.Compact(sizes))
	}
	least := math.Inf(1)
	var try func(from int, gears [][]int64)
	try = func(from int, gears [][]int64) {
		if uses, ok := Uses(s, gears, o.Exponents); ok {
			padded := 0.0
			for _, u := range uses {
				padded += u.Padded
			}
			least = min(least, padded)
		}
		for at := from; len(gears) < o.Max && at < places.len(); at++ {
			try(at+1, append(slices.Clone(gears), places.at(at)))
		}
	}
	try(0, o.Include)
	return least
}

// One axis: the optimum, whatever the weights, multiples, powers and gears that must be.
func TestOneAxisIsOptimal(t *testing.T) {
	random := rand.New(rand.NewPCG(14, 1))
	for i := range 1000 {
		s, o := instance(random, 1)
		r := plan(t, s, o)
		if want := leastByTrying(s, o); r.Best().Padded != want || !r.Exact {
			t.Fatalf("instance %d: %v gives %v, want %v: sizes %v, weights %v", i, o, r.Best(), want, s.numbers, s.weights)
		}
		agrees(t, s, o, r)
	}
}

// agrees holds a result against what its gears do, and what a result promises.
func agrees(t *testing.T, s *Sizes, o Options, r *Result) {
	t.Helper()
	for i, c := range r.Choices {
		padded := 0.0
		uses, ok := Uses(s, c.Gears, o.Exponents)
		for _, u := range uses {
			padded += u.Padded
		}
		if !ok || math.Abs(padded-c.Padded) > 1e-9*r.Total || len(c.Gears) > o.Max {
			t.Errorf("%v: it pads %v, fits: %v", c, padded, ok)
		}
		if i > 0 && (len(c.Gears) <= len(r.Choices[i-1].Gears) || c.Padded > r.Choices[i-1].Padded) {
			t.Errorf("%v is worse than %v", c, r.Choices[i-1])
		}
		for _, must := range o.Include {
			if !slices.ContainsFunc(c.Gears, func(g []int64) bool { return slices.Equal(g, must) }) {
				t.Errorf("%v is without %v", c, must)
			}
		}
		for _, g := range c.Gears {
			isIncluded := slices.ContainsFunc(o.Include, func(must []int64) bool { return slices.Equal(g, must) })
			for a, n := range g {
				if o.Multiple != nil && !isIncluded && n%o.Multiple[a] != 0 {
					t.Errorf("%v is no multiple of %v", g, o.Multiple)
				}
			}
		}
	}
}

// Several axes: a search, which finds the optimum of problems as small as these.
func TestSeveralAxesOnSmallProblems(t *testing.T) {
	random := rand.New(rand.NewPCG(14, 2))
	for i := range 60 {
		s, o := instance(random, 2+i%5/4)
		r := plan(t, s, o)
		if want := leastByTrying(s, o); math.Abs(r.Best().Padded-want) > 1e-9*r.Total {
			t.Errorf("instance %d: %v gives %v, want %v: sizes %v, weights %v", i, o, r.Best(), want, s.numbers, s.weights)
		}
		agrees(t, s, o, r)
	}
}

// images makes sizes of pictures of mixed proportions.
func images(t testing.TB, n int) *Sizes {
	random := rand.New(rand.NewPCG(14, 3))
	var rows [][]int64
	for range n {
		area := 300 * math.Exp(0.5*random.NormFloat64())
		shape := math.Exp(0.4 * random.NormFloat64())
		rows = append(rows, []int64{int64(area*shape) + 16, int64(area/shape) + 16, 1 + random.Int64N(3)})
	}
	return observed(t, 2, rows...)
}

// No number of gears is worse than with the best square gears, and the same sizes give the
// same gears again.
func TestNeverWorseThanSquares(t *testing.T) {
	s := images(t, 100)
	o := Options{Max: 4}
	first, second := plan(t, s, o), plan(t, s, o)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the second time:\n%s", diff)
	}
	agrees(t, s, o, first)
	line := NewSizes("")
	for i, weight := range s.weights {
		_ = line.Add([]int64{max(s.row(i)[0], s.row(i)[1])}, weight)
	}
	squares := plan(t, line, Options{Max: 4, Exponents: []int{2}})
	for i, c := range first.Choices {
		sides := squares.Choices[i]
		if padded := sides.Padded + squares.Total - first.Total; c.Padded >= padded {
			t.Errorf("%d gears pad %v, squares %v", len(c.Gears), c.Padded, padded)
		}
	}
}

// Many axes have room for few places in each, and are still planned for.
func TestManyAxes(t *testing.T) {
	random := rand.New(rand.NewPCG(14, 5))
	for _, axes := range []int{3, 5, MaxAxes} {
		s := NewSizes(make([]string, axes)...)
		for range 20 {
			size := make([]int64, axes)
			for a := range size {
				size[a] = 1 + random.Int64N(100)
			}
			if err := s.Add(size, 1); err != nil {
				t.Fatal(err)
			}
		}
		o := Options{Max: 3}
		r := plan(t, s, o)
		agrees(t, s, o, r)
		if first := r.Choices[0]; r.Best().Padded >= first.Padded {
			t.Errorf("%d axes: 3 gears pad %v, one %v", axes, r.Best().Padded, first.Padded)
		}
	}
}

func TestMakeStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Make(ctx, images(t, 200), Options{Max: 8}); err != context.Canceled {
		t.Errorf("error %v", err)
	}
}

func TestKnee(t *testing.T) {
	choices := func(wastes ...float64) (list []Choice) {
		for i, w := range wastes {
			list = append(list, Choice{Gears: make([][]int64, i+1), Waste: w})
		}
		return list
	}
	for i, c := range []struct {
		choices []Choice
		want    int
	}{
		{choices(0.5), 1},
		{choices(0.5, 0.2, 0.1, 0.095, 0.093), 3},
		{choices(0.5, 0.2, 0.195, 0.1, 0.095), 4}, // one step saves little, two do
		{choices(0.005, 0.001), 1},
	} {
		if got := Knee(c.choices); got != c.want {
			t.Errorf("%d: %d, want %d", i, got, c.want)
		}
	}
}

func TestHistogram(t *testing.T) {
	s := observed(t, 1, []int64{10, 1}, []int64{12, 2}, []int64{19, 4})
	want := []Bin{{10, 13, 3}, {14, 17, 0}, {18, 19, 4}}
	if diff := cmp.Diff(want, s.Histogram(0, 3)); diff != "" {
		t.Error(diff)
	}
	one := observed(t, 1, []int64{math.MaxInt32, 2})
	if diff := cmp.Diff([]Bin{{math.MaxInt32, math.MaxInt32, 2}}, one.Histogram(0, 12)); diff != "" {
		t.Error(diff)
	}
}

func TestUses(t *testing.T) {
	s := observed(t, 1, []int64{3, 1}, []int64{10, 5}, []int64{20, 1})
	uses, ok := Uses(s, [][]int64{{20}, {10}}, nil)
	if diff := cmp.Diff([]Use{{[]int64{10}, 6, 7}, {[]int64{20}, 1, 0}}, uses); diff != "" || !ok {
		t.Error(diff, ok)
	}
	if _, ok := Uses(s, [][]int64{{10}}, nil); ok {
		t.Error("a size without a gear has one")
	}
}

// A million sizes: as long as utterances, and all different.
func BenchmarkMillion(b *testing.B) {
	random := rand.New(rand.NewPCG(14, 4))
	for name, draw := range map[string]func() int64{
		"utterances": func() int64 { return int64(499+194*random.NormFloat64())%1500 + 1500 },
		"different":  func() int64 { return 1 + random.Int64N(math.MaxInt32) },
	} {
		s := NewSizes("")
		for range 1_000_000 {
			if err := s.Add([]int64{draw()}, 1); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("%s/16 gears", name), func(b *testing.B) {
			for b.Loop() {
				plan(b, s, Options{Max: 16})
			}
		})
	}
}
