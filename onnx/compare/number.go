package compare

import (
	"iter"
	"math"
	"slices"

	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// chunk is how many elements are looked at as float64 at one time: weights of
// any size must not be widened whole.
const chunk = 1 << 15

// numbers yields the elements of d as float64, in pieces; a complex element is two numbers.
func numbers(d *tensor.Dense) iter.Seq[[]float64] {
	return func(yield func([]float64) bool) {
		for at := 0; at < d.Len(); at += chunk {
			if !yield(piece(d, at, min(chunk, d.Len()-at))) {
				return
			}
		}
	}
}

// piece gives n elements from at on.
func piece(d *tensor.Dense, at, n int) []float64 {
	switch d.Type() {
	case tensor.Complex64:
		return parts(tensor.Data[complex64](d)[at : at+n])
	case tensor.Complex128:
		return parts(tensor.Data[complex128](d)[at : at+n])
	}
	part, err := d.Strided(at, []int{n}, []int{1})
	if err != nil {
		return nil
	}
	values, _ := part.Float64s()
	return values
}

func parts[T complex64 | complex128](data []T) []float64 {
	out := make([]float64, 0, 2*len(data))
	for _, x := range data {
		c := complex128(x)
		out = append(out, real(c), imag(c))
	}
	return out
}

// perElement is how many numbers one element is.
func perElement(t tensor.Type) int {
	if t.IsComplex() {
		return 2
	}
	return 1
}

// pairs yields the numbers of two arrays of one type and shape side by side.
func pairs(want, got *tensor.Dense) iter.Seq2[float64, float64] {
	return func(yield func(float64, float64) bool) {
		next, stop := iter.Pull(numbers(got))
		defer stop()
		for w := range numbers(want) {
			g, _ := next()
			for i := range min(len(w), len(g)) {
				if !yield(w[i], g[i]) {
					return
				}
			}
		}
	}
}

// floats counts the elements that are further apart than the options allow, and
// gives the first.
func (o Options) floats(want, got *tensor.Dense) (differing, first int) {
	first = -1
	t := o.tolerance(want.Type())
	absolute := o.Uncertainty
	if t.Absolute > 0 {
		absolute += t.Absolute * max(scaleOf(want), o.Scale, smallestScale)
	}
	each, at, last := perElement(want.Type()), 0, -1
	for w, g := range pairs(want, got) {
		element := at / each
		at++
		if element == last || near(w, g, absolute+t.Relative*math.Abs(w)) || o.AllowOverflow && !(isFinite(w) && isFinite(g)) {
			continue
		}
		last = element
		differing++
		if first < 0 {
			first = element
		}
	}
	return differing, first
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// smallestScale keeps an array of zeros from having no tolerance at all.
const smallestScale = 1e-4

func near(want, got, allowed float64) bool {
	switch {
	case want == got:
		return true
	case math.IsNaN(want) || math.IsNaN(got):
		return math.IsNaN(want) && math.IsNaN(got)
	case math.IsInf(want, 0) || math.IsInf(got, 0):
		return false
	}
	return math.Abs(want-got) <= allowed
}

// ScaleOf is how large the floats of a value are: see the package comment; 0 when
// it holds none.
func ScaleOf(v eval.Value) float64 {
	switch v := v.(type) {
	case *tensor.Dense:
		if v != nil && ToleranceOf(v.Type()) != (Tolerance{}) {
			return scaleOf(v)
		}
	case *eval.Sequence:
		top := 0.0
		for _, item := range v.Items {
			top = max(top, ScaleOf(item))
		}
		return top
	case *eval.Optional:
		return ScaleOf(v.Value)
	case *eval.Map:
		return ScaleOf(v.Values)
	}
	return 0
}

// scaleOf is how large the elements of d are: the largest finite magnitude, or a
// hundred times the typical one if that is less.
func scaleOf(d *tensor.Dense) float64 {
	top := largest(d)
	if typical := typical(d); typical > 0 {
		return min(top, 100*typical)
	}
	return top
}

// largest is the largest finite magnitude in d.
func largest(d *tensor.Dense) float64 {
	top := 0.0
	for values := range numbers(d) {
		for _, x := range values {
			if x = math.Abs(x); x > top && !math.IsInf(x, 0) {
				top = x
			}
		}
	}
	return top
}

// samples is how many elements the typical magnitude is found from.
const samples = 4096

// typical is the median magnitude of evenly spaced elements that are finite and
// not 0; 0 when there is none.
func typical(d *tensor.Dense) float64 {
	var seen []float64
	step := max(d.Len()/samples, 1)
	for at := 0; at < d.Len(); at += step {
		for _, x := range piece(d, at, 1) {
			if x = math.Abs(x); x > 0 && !math.IsInf(x, 0) {
				seen = append(seen, x)
			}
		}
	}
	if len(seen) == 0 {
		return 0
	}
	slices.Sort(seen)
	return seen[len(seen)/2]
}

// distance gathers how far two vectors are apart.
type distance struct {
	scale            float64 // divides elements, so that squares do not overflow
	dot, wants, gots float64
	maxAbs, maxRel   float64
	finite           int
}

func (m *distance) add(want, got float64) {
	if !isFinite(want) || !isFinite(got) {
		return
	}
	m.finite++
	w, g := want/m.scale, got/m.scale
	m.dot += w * g
	m.wants += w * w
	m.gots += g * g
	apart := min(math.Abs(want-got), math.MaxFloat64)
	m.maxAbs = max(m.maxAbs, apart)
	if want != 0 && apart > 0 {
		m.maxRel = max(m.maxRel, min(apart/math.Abs(want), math.MaxFloat64))
	}
}

// cosine is not there when nothing finite was compared. Two vectors of zeros
// point the same way, a vector of zeros and another do not.
func (m *distance) cosine() (float64, bool) {
	switch {
	case m.finite == 0:
		return 0, false
	case m.wants == 0 && m.gots == 0:
		return 1, true
	case m.wants == 0 || m.gots == 0:
		return 0, true
	}
	return max(-1, min(1, m.dot/math.Sqrt(m.wants)/math.Sqrt(m.gots))), true
}
