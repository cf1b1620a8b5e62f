package onnxpass

import (
	"math"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// Fusing adds up numbers that the graph adds one after the other. Where these cancel,
// as in x + 12582912 - 12582912, the graph rounds its result to a multiple of what the
// large number can tell apart, here to integers, and that may be what it is for. The
// sum, which is nothing, does not.

// cancels says whether a column of results of type t that is fused would be rounded
// less than the graph rounds it, by more than can be put down to rounding: before is
// the largest number that the graph adds to it, after what all of them come to, and
// weights the sum of the magnitudes that multiply its inputs. Those are taken to be
// about 1, so results are about as large as weights and after together.
func cancels(t tensor.Type, before, after, weights float64) bool {
	const small = 0x1p-10 // of a result's size
	unit := unitOf[t]
	return before*unit > max(small, 64*unit)*(weights+math.Abs(after))
}

// unitOf is the distance from 1 to the next number.
var unitOf = map[tensor.Type]float64{tensor.Float64: 0x1p-52, tensor.Float32: 0x1p-23, tensor.Float16: 0x1p-10, tensor.BFloat16: 0x1p-7}

// magnitudes sums up how large the elements of each channel are.
func (w *weight) magnitudes(channels int, channel func(i int) int) []float64 {
	sums := make([]float64, channels)
	if w.splat {
		for k := range sums {
			sums[k] = math.Abs(w.data[0]) * float64(w.len()) / float64(channels)
		}
		return sums
	}
	for i, x := range w.data {
		sums[channel(i)] += math.Abs(x)
	}
	return sums
}

// underflows says whether a channel's factor makes all of its weights so small that
// float16, whose normal numbers end at 2^-14, holds them with less precision than
// before. Weights of other types do not come near that end.
func (w *weight) underflows(factors []float64, channel func(i int) int) bool {
	const least = 0x1p-14
	if w.elem != tensor.Float16 {
		return false
	}
	largest := make([]float64, len(factors))
	for i, x := range w.data {
		k := channel(i)
		largest[k] = max(largest[k], math.Abs(x))
	}
	for k, f := range factors {
		if product := largest[k] * math.Abs(f); product != 0 && product < least && product < largest[k] {
			return true
		}
	}
	return false
}
