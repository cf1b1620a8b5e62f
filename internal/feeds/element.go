package feeds

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// tensor makes an array of the generator's kind.
func (g *generator) tensor(t tensor.Type, shape []int) (*tensor.Dense, error) {
	count, err := g.charge(t, shape)
	if err != nil {
		return nil, err
	}
	switch {
	case t == tensor.String:
		return tensor.Make(g.strings(count), shape...)
	case t == tensor.Bool:
		return tensor.Make(g.bools(count), shape...)
	case t == tensor.Complex64:
		return tensor.Make(complexes[complex64](g.floats(tensor.Float32, 2*count)), shape...)
	case t == tensor.Complex128:
		return tensor.Make(complexes[complex128](g.floats(tensor.Float64, 2*count)), shape...)
	case t == tensor.Float64:
		return tensor.Make(g.floats(t, count), shape...)
	case t.IsFloat():
		return tensor.FromFloat32s(t, narrow(g.floats(t, count)), shape...)
	case t.IsInteger():
		return packed(t, g.integers(t, count, len(shape)), shape)
	}
	return nil, fmt.Errorf("values of type %s cannot be made", t)
}

// words are the strings of random inputs.
var words = [...]string{"a", "npu", "", "Zürich", "0", "a b", "true", "中"}

func (g *generator) strings(count int) []string {
	out := make([]string, count)
	for i := range out {
		if g.kind != Zeros {
			out[i] = words[g.random.IntN(len(words))]
		}
	}
	return out
}

func (g *generator) bools(count int) []bool {
	out := make([]bool, count)
	for i := range out {
		out[i] = g.kind != Zeros && g.random.IntN(2) == 1
	}
	return out
}

func complexes[T complex64 | complex128](parts []float64) []T {
	out := make([]T, len(parts)/2)
	for i := range out {
		out[i] = T(complex(parts[2*i], parts[2*i+1]))
	}
	return out
}

func narrow(values []float64) []float32 {
	out := make([]float32, len(values))
	for i, x := range values {
		out[i] = float32(x)
	}
	return out
}

// floats makes numbers for elements of type t; some are beyond what a small type holds.
func (g *generator) floats(t tensor.Type, count int) []float64 {
	out := make([]float64, count)
	if g.traits.size {
		for i := range out {
			out[i] = float64(1 + g.random.IntN(2))
		}
		return out
	}
	special := g.specials(t)
	for i := range out {
		switch {
		case len(special) > 0 && (g.kind == Zeros || sprinkled(i, count)):
			out[i] = special[g.random.IntN(len(special))]
		case g.kind == Binary:
			out[i] = g.random.Float64()
		default:
			out[i] = g.random.NormFloat64()
		}
	}
	return out
}

// sprinkled says which elements of an edge set are edge values: a few at the
// front, so that short arrays have one, and then every 13th.
func sprinkled(i, count int) bool { return i%13 == 1 || count == 1 }

// specials lists the edge values of the kind for elements of a float type.
func (g *generator) specials(t tensor.Type) []float64 {
	switch g.kind {
	case Zeros:
		return []float64{0, math.Copysign(0, -1)}
	case NotNumbers:
		return []float64{math.NaN()}
	case Infinities:
		return []float64{math.Inf(1), math.Inf(-1)}
	case Extremes:
		top, least := floatLimits(t)
		return []float64{top, -top, least, -least}
	}
	return nil
}

// floatLimits gives the largest finite number of a type, and the smallest above 0.
// Types of at most 8 bits saturate, so theirs need not be exact.
func floatLimits(t tensor.Type) (top, least float64) {
	switch t {
	case tensor.Float64, tensor.Complex128:
		return math.MaxFloat64, math.SmallestNonzeroFloat64
	case tensor.Float16:
		least = 0x1p-24
	case tensor.BFloat16:
		least = 0x1p-133
	default:
		return math.MaxFloat32, math.SmallestNonzeroFloat32
	}
	top, _ = t.LargestFinite()
	return top, least
}

// integers makes integers of type t, as bit patterns of 64 bits.
func (g *generator) integers(t tensor.Type, count, rank int) []int64 {
	low, high := g.integerRange(t)
	least, most := integerLimits(t)
	edge := []int64{least, most}
	if g.traits.size || g.traits.below > 0 {
		edge = []int64{low, high - 1}
	}
	out := make([]int64, count)
	for i := range out {
		switch {
		case g.kind == Zeros && !g.traits.size:
		case g.kind == Extremes && sprinkled(i, count):
			out[i] = edge[g.random.IntN(2)]
		case g.kind == Lengths && rank <= 1 && g.length > 0:
			out[i] = min(g.length, most)
		default:
			out[i] = low + g.random.Int64N(high-low)
		}
	}
	return out
}

// integerRange gives the range of ordinary integers, high excluded.
func (g *generator) integerRange(t tensor.Type) (low, high int64) {
	_, most := integerLimits(t)
	switch {
	case g.traits.size:
		return 1, 3
	case g.kind == Binary:
		return 0, 2
	case g.traits.below > 0:
		return 0, min(g.traits.below, most)
	case t.Bits() <= 8:
		// Pixels and quantized numbers use all of their range.
		low, high = integerLimits(t)
		return low, high + 1
	}
	return 0, 7
}

// integerLimits gives the smallest and the largest integer of a type; that of
// Uint64 is its bit pattern.
func integerLimits(t tensor.Type) (least, most int64) {
	switch {
	case t == tensor.Uint64:
		return 0, math.MaxInt64 // the half above is left out: int64 holds no more
	case t.IsSigned():
		return -1 << (t.Bits() - 1), 1<<(t.Bits()-1) - 1
	}
	return 0, 1<<t.Bits() - 1
}

// packed makes an array of integers of any width from its values.
func packed(t tensor.Type, values []int64, shape []int) (*tensor.Dense, error) {
	bits := t.Bits()
	raw := make([]byte, 0, (len(values)*bits+7)/8)
	if bits >= 8 {
		for _, v := range values {
			raw = append(raw, binary.LittleEndian.AppendUint64(nil, uint64(v))[:bits/8]...)
		}
		return tensor.FromRaw(t, shape, raw)
	}
	raw = raw[:cap(raw)]
	for i, v := range values {
		raw[i*bits/8] |= byte(v) & (1<<bits - 1) << (i * bits % 8)
	}
	return tensor.FromRaw(t, shape, raw)
}
