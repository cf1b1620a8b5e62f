// Package fourier transforms signals to frequencies and back, at any length, with
// the same bits on every host.
//
// Lengths that are a power of two go through the classic butterflies; short others
// through the sum of the definition; long others through Bluestein's identity
// nk = (n² + k² - (k-n)²)/2, which makes the sum a convolution, and that a product
// of two transforms whose length is a power of two. Both keep the work at n·log n.
// Everything is float64, and products are rounded before they are added, so that
// no host fuses them.
package fourier

import (
	"math/bits"

	"github.com/npuctl/npuctl/onnx/eval/internal/elementary"
)

// shortest is the first length that is worth a convolution.
const shortest = 48

// Transform is the discrete Fourier transform of one length. It does not change,
// and may be used by several goroutines, each with its own [Work].
type Transform struct {
	n             int
	cosine, sine  []float64    // of 2πk/n, for k below n
	convolution   *Transform   // of a power of two; nil when n needs none
	chirp, filter [2][]float64 // real and imaginary: e^(-πik²/n), and the transform of its conjugate
}

// Work is the room a transform needs.
type Work struct{ real, imaginary []float64 }

// New prepares the transform of length n, which must be at least 1.
func New(n int) *Transform {
	t := &Transform{n: n, cosine: make([]float64, n), sine: make([]float64, n)}
	for k := range n {
		t.sine[k], t.cosine[k] = elementary.SincosTurn(k, n)
	}
	if n&(n-1) != 0 && n >= shortest {
		t.prepareConvolution()
	}
	return t
}

// Bytes is the memory that a transform of length n takes at most, its work apart.
func Bytes(n int) int64 { return int64(n) * 16 * 12 }

// WorkBytes is the memory of the work for length n at most.
func WorkBytes(n int) int64 { return int64(n) * 16 * 4 }

// Len is the transform's length.
func (t *Transform) Len() int { return t.n }

// NewWork makes room for one goroutine.
func (t *Transform) NewWork() *Work {
	n := t.n
	if t.convolution != nil {
		n = t.convolution.n
	}
	return &Work{make([]float64, n), make([]float64, n)}
}

func (t *Transform) prepareConvolution() {
	n := t.n
	size := 1 << bits.Len(uint(2*n-2))
	t.convolution = New(size)
	for i := range t.chirp {
		t.chirp[i], t.filter[i] = make([]float64, n), make([]float64, size)
	}
	square := 0 // k² modulo 2n
	for k := range n {
		sine, cosine := elementary.SincosTurn(square, 2*n)
		t.chirp[0][k], t.chirp[1][k] = cosine, -sine
		for _, at := range [2]int{k, (size - k) % size} {
			t.filter[0][at], t.filter[1][at] = cosine, sine
		}
		square = (square + 2*k + 1) % (2 * n)
	}
	t.convolution.butterflies(t.filter[0], t.filter[1])
}

// Forward replaces a signal of complex numbers, in two slices of the transform's
// length, by its frequencies: X[k] = Σ x[j]·e^(-2πijk/n).
func (t *Transform) Forward(real, imaginary []float64, w *Work) {
	switch {
	case t.convolution != nil:
		t.convolve(real, imaginary, w)
	case t.n&(t.n-1) == 0:
		t.butterflies(real, imaginary)
	default:
		t.sum(real, imaginary, w)
	}
}

// Inverse replaces frequencies by the signal that has them: x[j] = 1/n·Σ X[k]·e^(2πijk/n).
func (t *Transform) Inverse(real, imaginary []float64, w *Work) {
	// With real and imaginary parts exchanged, e^i becomes e^-i.
	t.Forward(imaginary, real, w)
	n := float64(t.n)
	for i := range real {
		real[i] /= n
		imaginary[i] /= n
	}
}

// sum is the definition.
func (t *Transform) sum(real, imaginary []float64, w *Work) {
	for k := range t.n {
		var r, i float64
		turn := 0
		for j := range t.n {
			c, s := t.cosine[turn], t.sine[turn]
			r += float64(real[j]*c) + float64(imaginary[j]*s)
			i += float64(imaginary[j]*c) - float64(real[j]*s)
			if turn += k; turn >= t.n {
				turn -= t.n
			}
		}
		w.real[k], w.imaginary[k] = r, i
	}
	copy(real, w.real)
	copy(imaginary, w.imaginary)
}

// butterflies halves the problem again and again; n is a power of two.
func (t *Transform) butterflies(real, imaginary []float64) {
	n := t.n
	shift := 64 - bits.Len(uint(n-1))
	for i := 1; i < n; i++ {
		if j := int(bits.Reverse64(uint64(i)) >> shift); j > i {
			real[i], real[j] = real[j], real[i]
			imaginary[i], imaginary[j] = imaginary[j], imaginary[i]
		}
	}
	for half := 1; half < n; half *= 2 {
		turns := n / (2 * half)
		for k := range half {
			c, s := t.cosine[k*turns], t.sine[k*turns]
			for i := k; i < n; i += 2 * half {
				j := i + half
				r := float64(real[j]*c) + float64(imaginary[j]*s)
				m := float64(imaginary[j]*c) - float64(real[j]*s)
				real[j], imaginary[j] = real[i]-r, imaginary[i]-m
				real[i], imaginary[i] = real[i]+r, imaginary[i]+m
			}
		}
	}
}

// convolve is Bluestein's way.
func (t *Transform) convolve(real, imaginary []float64, w *Work) {
	multiply(w.real, w.imaginary, real, imaginary, t.chirp)
	clear(w.real[t.n:])
	clear(w.imaginary[t.n:])
	t.convolution.butterflies(w.real, w.imaginary)
	multiply(w.real, w.imaginary, w.real, w.imaginary, t.filter)
	t.convolution.Inverse(w.real, w.imaginary, nil)
	multiply(real, imaginary, w.real, w.imaginary, t.chirp)
}

// multiply writes the products of complex numbers, as many as by has.
func multiply(toReal, toImaginary, real, imaginary []float64, by [2][]float64) {
	for i, c := range by[0] {
		s, r, m := by[1][i], real[i], imaginary[i]
		toReal[i] = float64(r*c) - float64(m*s)
		toImaginary[i] = float64(r*s) + float64(m*c)
	}
}
