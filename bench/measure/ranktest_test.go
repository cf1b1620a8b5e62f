package measure

import (
	"math"
	"math/rand/v2"
	"testing"
)

// By hand: of {1, 2, 3} and {4, 5, 6} all nine pairs have the larger value in b. Of the
// twenty orders of three and three values one is as far on either side.
func TestMannWhitneyByHand(t *testing.T) {
	for _, c := range []struct {
		a, b      []float64
		p, larger float64
	}{
		{[]float64{1, 2, 3}, []float64{4, 5, 6}, 2. / 20, 1},
		{[]float64{4, 5, 6}, []float64{1, 2, 3}, 2. / 20, 0},
		{[]float64{1, 3}, []float64{2, 4}, 4. / 6, 0.75},
		{[]float64{1}, []float64{2}, 1, 1},
		{[]float64{5, 5, 5}, []float64{5, 5}, 1, 0.5},
		{nil, []float64{1}, 1, 0.5},
	} {
		if p, larger := MannWhitney(c.a, c.b); math.Abs(p-c.p) > 1e-12 || larger != c.larger {
			t.Errorf("%v and %v: p = %v, larger %v; want %v, %v", c.a, c.b, p, larger, c.p, c.larger)
		}
	}
}

// The exact test counts every order: here all of them are made.
func TestExactRanksAgainstBruteForce(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {3, 2}, {4, 5}, {6, 6}, {2, 9}} {
		n, m := size[0], size[1]
		var counts []float64
		for set := range 1 << (n + m) {
			u, inA, ones := 0., 0., 0
			for i := range n + m {
				if set>>i&1 == 1 {
					u += inA
					ones++
				} else {
					inA++
				}
			}
			if ones == m {
				counts = append(counts, u)
			}
		}
		for u := range n*m + 1 {
			far, extreme := math.Abs(float64(u)-float64(n*m)/2), 0.
			for _, c := range counts {
				if math.Abs(c-float64(n*m)/2) >= far {
					extreme++
				}
			}
			if got, want := exactRanks(n, m, float64(u)), extreme/float64(len(counts)); math.Abs(got-want) > 1e-12 {
				t.Errorf("%d and %d values, u = %d: %v, want %v", n, m, u, got, want)
			}
		}
	}
}

// Where the exact test and the approximation meet they agree; with many ties the
// approximation keeps its level.
func TestMannWhitneyApproximation(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	draw := func(n int, of func() float64) []float64 {
		values := make([]float64, n)
		for i := range values {
			values[i] = of()
		}
		return values
	}
	for range 200 {
		a, b := draw(20, random.NormFloat64), draw(20, random.NormFloat64)
		exact, _ := MannWhitney(a, b)
		u, _ := rankSum(a, b)
		near := math.Erfc(max(0, math.Abs(u-200)-0.5) / math.Sqrt(2*20*20/12.*41))
		if math.Abs(exact-near) > 0.01 {
			t.Errorf("u = %v: %v exactly, %v nearly", u, exact, near)
		}
	}
	found := 0
	dice := func() float64 { return float64(random.IntN(4)) }
	for range 2000 {
		if p, _ := MannWhitney(draw(60, dice), draw(60, dice)); p < 0.05 {
			found++
		}
	}
	if found < 60 || found > 140 {
		t.Errorf("in 2,000 trials of equal dice %d differences at 5 %%", found)
	}
}
