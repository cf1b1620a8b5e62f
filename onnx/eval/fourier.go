package eval

import (
	"slices"

	"github.com/npuctl/npuctl/onnx/eval/internal/fourier"
)

// dft17 has its axis as an attribute.
var dft17 = onFloats(0, dftOf[float32](axisAttribute), dftOf[float64](axisAttribute))

// dft20 has its axis as an input.
var dft20 = onFloats(0, dftOf[float32](axisInput), dftOf[float64](axisInput))

func axisAttribute(c *Call) (int64, error) { return c.Int("axis", 1), nil }

func axisInput(c *Call) (int64, error) {
	values, err := c.IntsInput(2)
	if err != nil || len(values) == 0 {
		return -2, err
	}
	if len(values) != 1 {
		return 0, c.Errorf("the axis is %v", values)
	}
	return values[0], nil
}

// dftShape is what a DFT does to one axis of a signal whose last axis holds a real
// part, and maybe an imaginary one.
type dftShape struct {
	inverse, onesided bool
	n                 int // length of the transform
	axis              int
	in, out           []int
	parts, outParts   int // 1 or 2: the last axis
}

// dftOf transforms along one axis. One-sided, the forward direction leaves out the
// frequencies beyond the middle, which for real signals mirror the others; the
// inverse adds them and gives a real signal.
func dftOf[T floating](axisOf func(c *Call) (int64, error)) Kernel {
	return func(c *Call) error {
		x, err := numberInput[T](c, 0)
		if err != nil {
			return err
		}
		axis, err := axisOf(c)
		if err != nil {
			return err
		}
		s, err := newDFTShape(c, x.shape, axis)
		if err != nil {
			return err
		}
		y, err := newResult[T](c, 0, x.typ, s.out...)
		if err != nil {
			return err
		}
		if len(y.data) == 0 {
			return nil
		}
		t, err := c.transform(s.n)
		if err != nil {
			return err
		}
		inner := product(s.in[s.axis+1 : len(s.in)-1])
		c.Parallel(product(s.in[:s.axis])*inner, 1+(1<<12)/s.n, func(first, last int) {
			work := newSpectrum(t)
			for line := first; line < last; line++ {
				before, after := line/inner, line%inner
				readLine(work, x.data, (before*s.in[s.axis]*inner+after)*s.parts, inner*s.parts, min(s.n, s.in[s.axis]), s.parts)
				s.transform(work)
				writeLine(work, y.data, (before*s.out[s.axis]*inner+after)*s.outParts, inner*s.outParts, s.out[s.axis], s.outParts)
			}
		})
		return y.finish()
	}
}

func newDFTShape(c *Call, in []int, axis int64) (dftShape, error) {
	s := dftShape{inverse: c.Int("inverse", 0) != 0, onesided: c.Int("onesided", 0) != 0, in: in}
	if len(in) < 2 || in[len(in)-1] < 1 || in[len(in)-1] > 2 {
		return s, c.Errorf("a signal of shape %v: the last dim must be 1 or 2", in)
	}
	s.parts, s.outParts = in[len(in)-1], 2
	var err error
	if s.axis, err = normalAxis(c, axis, len(in)); err != nil {
		return s, err
	}
	if s.axis == len(in)-1 {
		return s, c.Errorf("axis %d holds the parts of complex numbers", axis)
	}
	s.n = in[s.axis]
	if s.inverse && s.onesided {
		s.n = 2 * (s.n - 1)
	}
	if c.Has(1) {
		if s.n, err = c.count(1); err != nil {
			return s, err
		}
	}
	if s.n < 1 {
		return s, c.Errorf("a transform of length %d", s.n)
	}
	s.out = slices.Clone(in)
	s.out[s.axis] = s.n
	switch {
	case s.inverse && s.onesided:
		s.outParts = 1
	case s.onesided && s.parts == 2:
		return s, c.Errorf("attribute \"onesided\" with a complex signal")
	case s.onesided:
		s.out[s.axis] = s.n/2 + 1
	}
	s.out[len(in)-1] = s.outParts
	return s, nil
}

func (s dftShape) transform(w *spectrum) {
	if !s.inverse {
		w.forward()
		return
	}
	if s.onesided {
		w.mirror()
	}
	w.inverse()
}

// transform prepares the transform of length n and charges what it takes, with the
// work of all cores.
func (c *Call) transform(n int) (*fourier.Transform, error) {
	if err := c.Charge(fourier.Bytes(n) + int64(c.frame.run.cores())*(fourier.WorkBytes(n)+int64(n)*16)); err != nil {
		return nil, err
	}
	return fourier.New(n), nil
}

// spectrum is one line of a signal, or its frequencies, with room to transform it.
type spectrum struct {
	transform       *fourier.Transform
	work            *fourier.Work
	real, imaginary []float64
}

func newSpectrum(t *fourier.Transform) *spectrum {
	n := t.Len()
	return &spectrum{t, t.NewWork(), make([]float64, n), make([]float64, n)}
}

func (w *spectrum) forward() { w.transform.Forward(w.real, w.imaginary, w.work) }
func (w *spectrum) inverse() { w.transform.Inverse(w.real, w.imaginary, w.work) }

// mirror fills the upper half with the conjugates of the lower, and takes the
// first, and the middle of an even number, for real.
func (w *spectrum) mirror() {
	n := len(w.real)
	w.imaginary[0] = 0
	if n%2 == 0 {
		w.imaginary[n/2] = 0
	}
	for k := n/2 + 1; k < n; k++ {
		w.real[k], w.imaginary[k] = w.real[n-k], -w.imaginary[n-k]
	}
}

// readLine takes n numbers from position at on, step elements apart, and zeros for
// the rest of the line.
func readLine[T floating](w *spectrum, data []T, at, step, n, parts int) {
	clear(w.real)
	clear(w.imaginary)
	for k := range n {
		w.real[k] = float64(data[at+k*step])
		if parts == 2 {
			w.imaginary[k] = float64(data[at+k*step+1])
		}
	}
}

// writeLine stores the first n numbers, from position at on, step elements apart.
func writeLine[T floating](w *spectrum, data []T, at, step, n, parts int) {
	for k := range n {
		data[at+k*step] = T(w.real[k])
		if parts == 2 {
			data[at+k*step+1] = T(w.imaginary[k])
		}
	}
}

// stft transforms pieces of a signal, step samples apart, each weighted by a window.
var stft = onFloats(0, stftOf[float32], stftOf[float64])

func stftOf[T floating](c *Call) error {
	x, err := numberInput[T](c, 0)
	if err != nil {
		return err
	}
	if len(x.shape) != 3 || x.shape[2] < 1 || x.shape[2] > 2 {
		return c.Errorf("a signal of shape %v, not [batch, length, 1 or 2]", x.shape)
	}
	batch, length, parts := x.shape[0], x.shape[1], x.shape[2]
	step, err := c.count(1)
	if err != nil {
		return err
	}
	window, n, err := stftWindow(c, length)
	if err != nil {
		return err
	}
	if step < 1 || n < 1 || n > length {
		return c.Errorf("frames of length %d, %d apart, of a signal of length %d", n, step, length)
	}
	frames, bins := (length-n)/step+1, n
	if c.Int("onesided", 1) != 0 {
		if parts == 2 {
			return c.Errorf("attribute \"onesided\" with a complex signal")
		}
		bins = n/2 + 1
	}
	y, err := newResult[T](c, 0, x.typ, batch, frames, bins, 2)
	if err != nil {
		return err
	}
	t, err := c.transform(n)
	if err != nil {
		return err
	}
	c.Parallel(batch*frames, 1+(1<<12)/n, func(first, last int) {
		w := newSpectrum(t)
		for f := first; f < last; f++ {
			readLine(w, x.data, (f/frames*length+f%frames*step)*parts, parts, n, parts)
			w.weigh(window)
			w.forward()
			writeLine(w, y.data, f*bins*2, 2, bins, 2)
		}
	})
	return y.finish()
}

// stftWindow gives the weights, nil when all are 1, and the length of a frame: that
// of the window, or what input 3 says, or all of the signal.
func stftWindow(c *Call, length int) (weights []float64, n int, err error) {
	n = length
	if c.Has(3) {
		if n, err = c.count(3); err != nil {
			return nil, 0, err
		}
	}
	if !c.Has(2) {
		return nil, n, nil
	}
	d, err := c.Tensor(2)
	if err != nil {
		return nil, 0, err
	}
	weights, ok := d.Float64s()
	if !ok || d.Rank() != 1 || c.Has(3) && d.Len() != n {
		return nil, 0, c.Errorf("a window %s%v for frames of length %d", d.Type(), d.Shape(), n)
	}
	return weights, d.Len(), nil
}

// weigh multiplies each sample by its weight. The product is rounded to float64, so
// that float32 signals lose nothing.
func (w *spectrum) weigh(weights []float64) {
	for i, v := range weights {
		w.real[i] *= v
		w.imaginary[i] *= v
	}
}
