package measure

import "math"

// ranks gives the ranks, from 1, of the two order statistics between which the quantile p
// of a distribution lies with a probability of at least confidence, whatever the
// distribution is: of n independent values as many as a binomial variable says lie below
// the quantile. It gives false when n values are too few for that.
func ranks(n int64, p, confidence float64) (low, high int64, ok bool) {
	if n < 1 || !(p > 0 && p < 1) {
		return 0, 0, false
	}
	tail := (1 - confidence) / 2
	// P(fewer than low lie below) and P(high or more lie below) must not exceed tail.
	low = binomialQuantile(n, p, tail)
	high = n - binomialQuantile(n, 1-p, tail) + 1
	return low, high, low >= 1 && high <= n
}

// binomialQuantile is the largest k for which a binomial variable is below k with a
// probability of no more than tail; tail is below one half.
func binomialQuantile(n int64, p, tail float64) int64 {
	mode := min(n, int64(float64(n+1)*p))
	atMode := math.Exp(logBinomial(n, mode, p))
	// Sum the probabilities of mode, mode−1, … until nothing more comes; then go down the
	// same way again until what is left is no more than tail.
	below := 0.0
	for k, term := mode, atMode; k >= 0 && term > 1e-18; k-- {
		below += term
		term *= ratioDown(n, k, p)
	}
	k, term := mode+1, atMode
	for k > 0 && below > tail {
		k--
		below -= term
		term *= ratioDown(n, k, p)
	}
	return k
}

// ratioDown is P(k−1) / P(k).
func ratioDown(n, k int64, p float64) float64 {
	return float64(k) / float64(n-k+1) * (1 - p) / p
}

// logBinomial is the logarithm of the probability of k.
func logBinomial(n, k int64, p float64) float64 {
	all, _ := math.Lgamma(float64(n + 1))
	of, _ := math.Lgamma(float64(k + 1))
	rest, _ := math.Lgamma(float64(n - k + 1))
	return all - of - rest + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p)
}
