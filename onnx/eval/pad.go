package eval

import (
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// padOperators add elements around a tensor, or cut them off.
var padOperators = []operator{
	{name: "Pad", since: 1, run: padAttributes},
	{name: "Pad", since: 11, run: pad},
	{name: "CenterCropPad", since: 18, run: centerCropPad},
}

// padAttributes is Pad with the numbers as attributes, up to opset 10.
func padAttributes(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	pads, ok := c.Ints("pads")
	if !ok {
		pads, _ = c.Ints("paddings") // version 1
	}
	value, err := c.cast(tensor.Scalar(c.Float("value", 0)), d.Type())
	if err != nil {
		return err
	}
	return c.pad(d, pads, nil, value, c.String("mode", "constant"))
}

// pad is Pad with the numbers as inputs; from opset 18 on for some axes only.
func pad(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	pads, err := c.IntsInput(1)
	if err != nil {
		return err
	}
	var value *tensor.Dense
	if c.Has(2) {
		if value, err = c.Tensor(2); err != nil {
			return err
		}
		if value.Len() != 1 || value.Type() != d.Type() {
			return c.Errorf("the constant value is %s%v, not one %s", value.Type(), value.Shape(), d.Type())
		}
	}
	axes, err := c.IntsInput(3)
	if err != nil {
		return err
	}
	return c.pad(d, pads, axes, value, c.String("mode", "constant"))
}

// pad pads the named axes, all when axes is nil. value is what constant mode puts
// in, nil for zero.
func (c *Call) pad(d *tensor.Dense, pads, list []int64, value *tensor.Dense, mode string) error {
	if padModes[mode] == nil {
		return c.Errorf("mode is %q", mode)
	}
	if list == nil {
		for i := range d.Rank() {
			list = append(list, int64(i))
		}
	}
	axes, err := normalAxes(c, list, d.Rank())
	if err != nil {
		return err
	}
	amounts, err := toInts(c, pads)
	if err != nil {
		return err
	}
	if len(amounts) != 2*len(axes) {
		return c.Errorf("%d pads for %d axes", len(amounts), len(axes))
	}
	p := padding{mode: mode, shape: slices.Clone(d.Shape()), parts: make([][]segment, d.Rank()), last: -1}
	for i, axis := range axes {
		if p.shape[axis] += amounts[i] + amounts[len(axes)+i]; p.shape[axis] < 0 {
			return c.Errorf("pads %d and %d leave nothing of shape %v at axis %d", amounts[i], amounts[len(axes)+i], d.Shape(), axis)
		}
	}
	out, err := c.New(d.Type(), p.shape...)
	if err != nil {
		return err
	}
	c.Outputs[0] = out
	if out.Len() == 0 {
		return nil
	}
	for i, axis := range axes {
		if err := p.addAxis(c, axis, d.Shape()[axis], amounts[i], amounts[len(axes)+i]); err != nil {
			return err
		}
	}
	if p.last < 0 {
		c.Outputs[0] = d
		return nil
	}
	p.run(out, d, value)
	return nil
}

// centerCropPad cuts or pads both ends of axes alike; what is odd goes to the end.
func centerCropPad(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	wanted, err := c.IntsInput(1)
	if err != nil {
		return err
	}
	list, ok := c.Ints("axes")
	if !ok {
		for i := range d.Rank() {
			list = append(list, int64(i))
		}
	}
	axes, err := normalAxes(c, list, d.Rank())
	if err != nil {
		return err
	}
	if len(wanted) != len(axes) {
		return c.Errorf("%d dims for %d axes", len(wanted), len(axes))
	}
	pads := make([]int64, 2*len(axes))
	for i, axis := range axes {
		if wanted[i] < 0 {
			return c.Errorf("a dim of %d", wanted[i])
		}
		// Go's division truncates, so that the cut at the start is rounded down, too.
		more := wanted[i] - int64(d.Shape()[axis])
		pads[i], pads[len(axes)+i] = more/2, more-more/2
	}
	return c.pad(d, pads, list, nil, "constant")
}

// padModes give the place, within n elements, that stands at place i, which may
// lie outside them; -1 for the constant.
var padModes = map[string]func(i, n int) int{
	"constant": func(i, n int) int {
		if i < 0 || i >= n {
			return -1
		}
		return i
	},
	"edge": func(i, n int) int { return max(min(i, n-1), 0) },
	"reflect": func(i, n int) int {
		if n == 1 {
			return 0
		}
		period := 2 * (n - 1)
		i = (i%period + period) % period
		return min(i, period-i)
	},
	"wrap": func(i, n int) int { return (i%n + n) % n },
}

// segment is a part of a padded axis: n places that come one after the other from
// place from of the source, or hold the constant where from is -1.
type segment struct{ from, n int }

// padding is a plan: for every axis the segments it is made of, nil for one that
// stays as it is.
type padding struct {
	mode  string
	shape []int // of the result
	parts [][]segment
	last  int // the innermost axis that changes, -1 for none
}

// addAxis plans an axis of n elements. Negative numbers cut off; what is left is
// then padded. Reflections beyond the other end go back and forth, as in NumPy,
// though the specification does not say so: folding refuses them.
func (p *padding) addAxis(c *Call, axis, n, before, after int) error {
	if before == 0 && after == 0 {
		return nil
	}
	p.last = max(p.last, axis)
	cut := max(-before, 0)
	left := max(n-cut-max(-after, 0), 0)
	if p.mode != "constant" && left == 0 {
		return c.Errorf("nothing is left to pad axis %d with", axis)
	}
	if p.mode == "reflect" && max(before, after) >= left {
		if err := c.Undefined("a reflection of %d of %d elements", max(before, after), left); err != nil {
			return err
		}
	}
	place := padModes[p.mode]
	at := func(i int) int {
		from := place(i-max(before, 0), left)
		if from >= 0 {
			from += cut
		}
		return from
	}
	p.parts[axis] = []segment{}
	for i := 0; i < p.shape[axis]; {
		s := segment{from: at(i), n: 1}
		for i++; i < p.shape[axis] && (s.from < 0 && at(i) < 0 || s.from >= 0 && at(i) == s.from+s.n); i++ {
			s.n++
		}
		p.parts[axis] = append(p.parts[axis], s)
	}
	return nil
}

func (p *padding) run(out, d, value *tensor.Dense) {
	if value != nil && p.mode == "constant" {
		fill.For(out.Type())(out, value)
	}
	m := padMove{
		out: out, from: d, plan: p, move: copyRows.For(d.Type()),
		toStrides: tensor.Strides(p.shape), fromStrides: tensor.Strides(d.Shape()),
	}
	m.axis(0, 0, 0)
}

// padMove copies what a padding takes from the source; the rest is filled already.
type padMove struct {
	out, from              *tensor.Dense
	plan                   *padding
	move                   func(to *tensor.Dense, toAt, toStep int, from *tensor.Dense, fromAt, fromStep, n, count int)
	toStrides, fromStrides []int
}

func (m *padMove) axis(axis, to, from int) {
	segments := m.plan.parts[axis]
	if segments == nil {
		segments = []segment{{0, m.plan.shape[axis]}}
	}
	toStep, fromStep := m.toStrides[axis], m.fromStrides[axis]
	for _, s := range segments {
		switch {
		case s.from < 0:
		case axis == m.plan.last:
			m.move(m.out, to, 0, m.from, from+s.from*fromStep, 0, s.n*fromStep, 1)
		default:
			for i := range s.n {
				m.axis(axis+1, to+i*toStep, from+(s.from+i)*fromStep)
			}
		}
		to += s.n * toStep
	}
}
