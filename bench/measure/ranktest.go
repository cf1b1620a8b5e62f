package measure

import (
	"cmp"
	"math"
	"slices"
)

// MannWhitney tests whether values of b tend to be larger or smaller than those of a. It
// gives the probability, under the hypothesis that they are alike, of ranks that differ as
// much as these or more (two-sided), and the share of pairs in which b is the larger one,
// ties counting half: one half when they are alike. Nothing is supposed of the form of the
// distributions.
//
// Small samples without ties are tested exactly; others by the normal approximation, with
// the corrections for ties and for continuity.
func MannWhitney(a, b []float64) (p, larger float64) {
	n, m := float64(len(a)), float64(len(b))
	if n == 0 || m == 0 {
		return 1, 0.5
	}
	u, ties := rankSum(a, b)
	larger = u / (n * m)
	if ties == 0 && len(a) <= mostExactRanks && len(b) <= mostExactRanks {
		return exactRanks(len(a), len(b), u), larger
	}
	total := n + m
	variance := n * m / 12 * (total + 1 - ties/(total*(total-1)))
	if variance <= 0 {
		return 1, larger // all values are equal
	}
	distance := max(0, math.Abs(u-n*m/2)-0.5)
	return math.Erfc(distance / math.Sqrt(2*variance)), larger
}

// mostExactRanks is the largest sample that is tested exactly.
const mostExactRanks = 20

// rankSum counts the pairs in which b is larger, ties half, and sums t³−t over groups of t
// equal values.
func rankSum(a, b []float64) (u, ties float64) {
	type ranked struct {
		value float64
		isB   bool
	}
	all := make([]ranked, 0, len(a)+len(b))
	for _, v := range a {
		all = append(all, ranked{v, false})
	}
	for _, v := range b {
		all = append(all, ranked{v, true})
	}
	slices.SortFunc(all, func(x, y ranked) int { return cmp.Compare(x.value, y.value) })
	below := 0.0 // values of a
	for from := 0; from < len(all); {
		to, inA, inB := from, 0.0, 0.0
		for ; to < len(all) && all[to].value == all[from].value; to++ {
			if all[to].isB {
				inB++
			} else {
				inA++
			}
		}
		u += inB * (below + inA/2)
		below += inA
		t := inA + inB
		ties += t*t*t - t
		from = to
	}
	return u, ties
}

// exactRanks counts the orders of n and m values in which the count of pairs lies as far
// from its middle as u. There are as many ways to reach a count as partitions of it into at
// most n parts of at most m each: the coefficients of a Gaussian binomial, which grow by a
// factor (1−x^(m+k))/(1−x^k) for each k up to n.
func exactRanks(n, m int, u float64) float64 {
	most := n * m
	ways := make([]float64, most+1)
	ways[0] = 1
	for k := 1; k <= n; k++ {
		for i := most; i >= m+k; i-- {
			ways[i] -= ways[i-m-k]
		}
		for i := k; i <= most; i++ {
			ways[i] += ways[i-k]
		}
	}
	far, all, extreme := math.Abs(u-float64(most)/2), 0.0, 0.0
	for i, w := range ways {
		all += w
		if math.Abs(float64(i)-float64(most)/2) >= far {
			extreme += w
		}
	}
	return min(1, extreme/all)
}
