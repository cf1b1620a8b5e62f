package simd

import (
	"math"

	"github.com/npuctl/npuctl/onnx/eval/internal/elementary"
)

// Max is the largest element of x that is a number, or -Inf when there is none.
func Max(x []float32) float32 {
	best := float32(math.Inf(-1))
	if n := eights(len(x)); n > 0 {
		lanes := [8]float32{best, best, best, best, best, best, best, best}
		maximumLanes(&lanes[0], &x[0], n)
		for _, v := range lanes {
			best = max(best, v)
		}
		x = x[n:]
	}
	for _, v := range x {
		if v > best {
			best = v
		}
	}
	return best
}

// Scale writes factor times each element.
func Scale(dst, src []float32, factor float32) {
	dst = dst[:len(src)]
	if n := eights(len(src)); n > 0 {
		scaleEights(&dst[0], &src[0], n, factor)
		dst, src = dst[n:], src[n:]
	}
	for i, v := range src {
		dst[i] = v * factor
	}
}

// AddScaled adds factor times each element of src to dst; product and sum are rounded
// each, so that the bits are the same on every host.
func AddScaled(dst, src []float32, factor float32) {
	dst = dst[:len(src)]
	if n := eights(len(src)); n > 0 {
		addScaledEights(&dst[0], &src[0], n, factor)
		dst, src = dst[n:], src[n:]
	}
	for i, v := range src {
		dst[i] += float32(v * factor)
	}
}

// ExpSum writes e^(x-shift) for every element x, none of which may be above shift, and
// returns the sum. The error is at most 2 units in the last place; results below the
// smallest normal number may be 0.
func ExpSum(dst, src []float32, shift float32) float32 {
	dst = dst[:len(src)]
	if !hasVectors() {
		sum := float32(0)
		for i, v := range src {
			dst[i] = float32(elementary.FastExp(float64(v - shift)))
			sum += dst[i]
		}
		return sum
	}
	var lanes [8]float32
	n := len(src) &^ 7
	if n > 0 {
		expSumEights(&dst[0], &src[0], n, shift, &lanes[0])
	}
	if n < len(src) {
		none := float32(math.Inf(-1))
		rest := [8]float32{none, none, none, none, none, none, none, none}
		copy(rest[:], src[n:])
		expSumEights(&rest[0], &rest[0], 8, shift, &lanes[0])
		copy(dst[n:], rest[:])
	}
	return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]))
}

// Sigmoid writes 1/(1+e^-x), to at most 3 units in the last place.
func Sigmoid(dst, src []float32) { apply(dst, src, sigmoidEights, elementary.FastSigmoid) }

// Tanh writes the hyperbolic tangent, to at most 3 units in the last place.
func Tanh(dst, src []float32) { apply(dst, src, tanhEights, elementary.FastTanh) }

// Erf writes the error function, to at most 3 units in the last place.
func Erf(dst, src []float32) { apply(dst, src, erfEights, elementary.FastErf) }

// apply runs the vector form of a function, or where there is no vector unit the other.
func apply(dst, src []float32, eights func(dst, src *float32, n int), single func(float64) float64) {
	dst = dst[:len(src)]
	if !hasVectors() {
		for i, v := range src {
			dst[i] = float32(single(float64(v)))
		}
		return
	}
	n := len(src) &^ 7
	if n > 0 {
		eights(&dst[0], &src[0], n)
	}
	if n < len(src) {
		var rest [8]float32
		copy(rest[:], src[n:])
		eights(&rest[0], &rest[0], 8)
		copy(dst[n:], rest[:])
	}
}

// eights is how many of n elements the vector unit can take: a multiple of eight.
func eights(n int) int {
	if !hasVectors() {
		return 0
	}
	return n &^ 7
}
