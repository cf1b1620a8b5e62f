package eval

import (
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// This file holds what operators that work element by element share: how operands
// are lined up and how the work is cut. The loops themselves run over slices of
// one length and know nothing of shapes.

// blockLength is the number of elements of the work arrays that loops go through
// when an operand repeats or has to be widened: two of them fit the first-level cache.
const blockLength = 512

// mapped makes an array of f of the elements of d, of the same shape.
func mapped[T, R tensor.Element](c *Call, d *tensor.Dense, f func(out []R, in []T)) (*tensor.Dense, error) {
	out, err := c.New(tensor.TypeOf[R](), d.Shape()...)
	if err != nil {
		return nil, err
	}
	to, from := tensor.Data[R](out), tensor.Data[T](d)
	c.Parallel(len(to), elementGrain, func(first, last int) { f(to[first:last], from[first:last]) })
	return out, nil
}

// combined makes an array of f of the elements of a and b, which broadcast.
func combined[T, R tensor.Element](c *Call, a, b *tensor.Dense, f func(out []R, a, b []T)) (*tensor.Dense, error) {
	if slices.Equal(a.Shape(), b.Shape()) {
		out, err := c.New(tensor.TypeOf[R](), a.Shape()...)
		if err != nil {
			return nil, err
		}
		to, x, y := tensor.Data[R](out), tensor.Data[T](a), tensor.Data[T](b)
		c.Parallel(len(to), elementGrain, func(first, last int) { f(to[first:last], x[first:last], y[first:last]) })
		return out, nil
	}
	shape, err := tensor.BroadcastShapes(a.Shape(), b.Shape())
	if err != nil {
		return nil, c.Errorf("%w", err)
	}
	out, err := c.New(tensor.TypeOf[R](), shape...)
	if err != nil {
		return nil, err
	}
	walk, err := tensor.BroadcastWalk(shape, a.Shape(), b.Shape())
	if err != nil {
		return nil, c.Errorf("%w", err)
	}
	p := pairing[T, R]{tensor.Data[R](out), tensor.Data[T](a), tensor.Data[T](b), walk, f}
	eachRun(c, walk, 2, func(run int, at []int, first, last int) { p.part(run, at, first, last) })
	return out, nil
}

// eachRun calls visit, with where each operand stands, for pieces that cover all runs of a walk, on several cores
// when there is much to do: whole runs, or parts of the only one.
func eachRun(c *Call, walk *tensor.Walk, operands int, visit func(run int, at []int, first, last int)) {
	if walk.Runs() == 1 {
		at := make([]int, operands)
		c.Parallel(walk.Len(), elementGrain, func(first, last int) { visit(0, at, first, last) })
		return
	}
	c.Parallel(walk.Runs(), elementGrain/max(walk.Len(), 1)+1, func(first, last int) {
		walk.Range(first, last, func(run int, at []int) { visit(run, at, 0, walk.Len()) })
	})
}

// pairing is a loop over two operands that are walked together.
type pairing[T, R tensor.Element] struct {
	out  []R
	a, b []T
	walk *tensor.Walk
	f    func(out []R, a, b []T)
}

// part computes elements first to last of one run. An operand that repeats is
// laid out in a block, so that f needs one loop only.
func (p *pairing[T, R]) part(run int, at []int, first, last int) {
	out := p.out[run*p.walk.Len()+first:][:last-first]
	repeatA, repeatB := p.walk.Step(0) == 0, p.walk.Step(1) == 0
	a, b := operandPart(p.a, at[0], repeatA, first, len(out)), operandPart(p.b, at[1], repeatB, first, len(out))
	if !repeatA && !repeatB {
		p.f(out, a, b)
		return
	}
	for len(out) > 0 {
		n := min(len(out), blockLength)
		p.f(out[:n], a[:n], b[:n])
		out = out[n:]
		if !repeatA {
			a = a[n:]
		}
		if !repeatB {
			b = b[n:]
		}
	}
}

// operandPart gives n elements of a run, or a block of the one that repeats.
func operandPart[T any](data []T, at int, repeats bool, first, n int) []T {
	if !repeats {
		return data[at+first:][:n]
	}
	return slices.Repeat(data[at:at+1], min(n, blockLength))
}

// narrowFloat is a float type that is computed in float32.
type narrowFloat interface {
	tensor.Element
	Float32() float32
}

func widenTo[S narrowFloat](out []float32, in []S) {
	for i, v := range in {
		out[i] = v.Float32()
	}
}

// viaFloat32 makes a loop over a narrow type of one over float32: the result is
// rounded once.
func viaFloat32[S narrowFloat](encode func(float32) S, f func(out, in []float32)) func(out, in []S) {
	return func(out, in []S) {
		x, y := make([]float32, min(len(in), blockLength)), make([]float32, min(len(in), blockLength))
		for len(out) > 0 {
			n := min(len(out), blockLength)
			widenTo(x, in[:n])
			f(y[:n], x[:n])
			for i, v := range y[:n] {
				out[i] = encode(v)
			}
			out, in = out[n:], in[n:]
		}
	}
}

// testVia makes a loop from a narrow type to another element of one from float32.
func testVia[S narrowFloat, R tensor.Element](f func(out []R, in []float32)) func(out []R, in []S) {
	return func(out []R, in []S) {
		x := make([]float32, min(len(in), blockLength))
		for len(out) > 0 {
			n := min(len(out), blockLength)
			widenTo(x, in[:n])
			f(out[:n], x[:n])
			out, in = out[n:], in[n:]
		}
	}
}

// pairViaFloat32 is viaFloat32 for two operands.
func pairViaFloat32[S narrowFloat](encode func(float32) S, f func(out, a, b []float32)) func(out, a, b []S) {
	return func(out, a, b []S) {
		work := make([]float32, min(len(out), blockLength))
		for len(out) > 0 {
			n := min(len(out), blockLength)
			comparePairVia[S](f)(work[:n], a[:n], b[:n])
			for i, v := range work[:n] {
				out[i] = encode(v)
			}
			out, a, b = out[n:], a[n:], b[n:]
		}
	}
}

// comparePairVia makes a loop from two operands of a narrow type of one from float32.
func comparePairVia[S narrowFloat, R tensor.Element](f func(out []R, a, b []float32)) func(out []R, a, b []S) {
	return func(out []R, a, b []S) {
		x, y := make([]float32, min(len(out), blockLength)), make([]float32, min(len(out), blockLength))
		for len(out) > 0 {
			n := min(len(out), blockLength)
			widenTo(x, a[:n])
			widenTo(y, b[:n])
			f(out[:n], x[:n], y[:n])
			out, a, b = out[n:], a[n:], b[n:]
		}
	}
}

// pair gives the two operands of a binary operator. Up to opset 6 they broadcast
// only when an attribute says so, and the second one's axes may lie anywhere
// within the first one's.
func (c *Call) pair() (a, b *tensor.Dense, err error) {
	if a, err = c.Tensor(0); err != nil {
		return nil, nil, err
	}
	if b, err = c.Tensor(1); err != nil {
		return nil, nil, err
	}
	if c.Opset < 7 && c.Node.CanonicalDomain() == "" {
		b, err = c.alignLegacy(a, b)
	}
	return a, b, err
}

// samePair is pair for operands of one type.
func (c *Call) samePair() (a, b *tensor.Dense, err error) {
	if a, b, err = c.pair(); err != nil {
		return nil, nil, err
	}
	if a.Type() != b.Type() {
		return nil, nil, c.Errorf("the inputs are %s and %s, which should be of one type", a.Type(), b.Type())
	}
	return a, b, nil
}

// alignLegacy reshapes b so that today's broadcasting does what opset 1 to 6 meant.
func (c *Call) alignLegacy(a, b *tensor.Dense) (*tensor.Dense, error) {
	if c.Int("broadcast", 0) == 0 {
		if !slices.Equal(a.Shape(), b.Shape()) {
			return nil, c.Errorf("shapes %v and %v differ, and the attribute broadcast is not set", a.Shape(), b.Shape())
		}
		return b, nil
	}
	if b.Len() == 1 && b.Rank() <= a.Rank() {
		return b.Reshape()
	}
	axis, err := normalAxis(c, c.Int("axis", int64(a.Rank()-b.Rank())), a.Rank()+1)
	if err != nil {
		return nil, err
	}
	after := a.Rank() - axis - b.Rank()
	fits := after >= 0
	for i := 0; fits && i < b.Rank(); i++ {
		// A dim of 1 against a larger one is beyond the text, but exporters relied on it.
		fits = b.Shape()[i] == 1 || b.Shape()[i] == a.Shape()[axis+i]
	}
	if !fits {
		return nil, c.Errorf("shape %v is no part of %v at axis %d", b.Shape(), a.Shape(), axis)
	}
	return b.Reshape(append(slices.Clone(b.Shape()), slices.Repeat([]int{1}, after)...)...)
}

// noKernel says that the operator has no meaning for a type.
func (c *Call) noKernel(t tensor.Type) error {
	return c.Unsupported("%s of %s", c.Node.OpType, t)
}
