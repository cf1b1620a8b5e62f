package infer

import (
	"slices"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// loopOperators run a body many times.
var loopOperators = []operator{
	{name: "Loop", since: 1, rule: loop},
	{name: "Scan", since: 8, rule: scanBatched},
	{name: "Scan", since: 9, rule: scan},
	{name: "SequenceMap", since: 17, rule: sequenceMap},
}

// loop has inputs trip count, condition, and what is carried; its body takes the
// number of the round instead of the trip count, and gives the condition, what is
// carried, and one slice a round of each scan output.
func loop(c *call) {
	initial := make([]Info, max(len(c.inputs)-2, 0))
	for k := range initial {
		initial[k] = *c.in(k + 2)
	}
	s := c.newCarried(initial)
	body := c.graph("body")
	var last []*Info
	ok := s.settle(func(state []Info) ([]*Info, bool) {
		round := Tensor(tensor.Int64).WithValues(Integer(c.fresh()))
		// The body runs while the condition holds.
		condition := Tensor(tensor.Bool).WithValues(boolean(true))
		outputs, ok := c.runGraph(body, append([]Info{round, condition}, state...)...)
		if !ok || len(outputs) == 0 {
			return nil, false
		}
		last = outputs
		return outputs[1:], true
	})
	if !ok {
		return
	}
	rounds := c.roundCount(last[0])
	for k := range s.state {
		c.set(k, s.outside(s.state[k]))
		if rounds.Is(0) {
			c.set(k, *c.in(k + 2))
		}
	}
	for k := len(s.state); k < len(last)-1; k++ {
		c.set(k, stack(s.outside(*last[k+1]), rounds, 0))
	}
}

// roundCount gives the number of rounds: none when the condition is false from
// the start, the trip count when what the body gives is always true.
func (c *call) roundCount(condition *Info) Dim {
	trips := c.elements(0)
	if decided, known := c.integer(1); known && decided == 0 {
		return Const(0)
	}
	if n, known := c.integer(0); known && n <= 0 {
		return Const(0)
	}
	values := condition.Values()
	if len(trips) != 1 || len(values) != 1 || !values[0].Equal(boolean(true)) {
		return Unknown()
	}
	return c.positivePart(trips[0].Dim())
}

// stack puts a new dim in.
func stack(f Info, n Dim, axis int) Info {
	f.values, f.constant = nil, nil
	if f.Ranked && axis >= 0 && axis <= len(f.Dims) {
		f.Dims = slices.Insert(slices.Clone(f.Dims), axis, n)
	} else {
		f.Ranked, f.Dims = false, nil
	}
	return f
}

// unstack takes a dim out; n is its size.
func unstack(f Info, axis int) (slice Info, n Dim) {
	f.values, f.constant = nil, nil
	if !f.Ranked || axis < 0 || axis >= len(f.Dims) {
		f.Ranked, f.Dims = false, nil
		return f, Unknown()
	}
	n = f.Dims[axis]
	f.Dims = slices.Delete(slices.Clone(f.Dims), axis, axis+1)
	return f, n
}

// scan hands the body one slice of each scan input a round. The last inputs are
// scan inputs, the last outputs scan outputs.
func scan(c *call) {
	scanned := int(min(max(c.int("num_scan_inputs", 0), 0), int64(len(c.inputs))))
	states := len(c.inputs) - scanned
	slicesIn, length := c.scanInputs(states)
	initial := make([]Info, states)
	for k := range initial {
		initial[k] = *c.in(k)
	}
	s, last, ok := c.scanBody(initial, slicesIn)
	if !ok {
		return
	}
	axes, _ := c.intList("scan_output_axes")
	for k := states; k < len(last); k++ {
		f := s.outside(*last[k])
		axis := 0
		if at := k - states; at < len(axes) {
			axis, _ = normalAxis(axes[at], len(f.Dims)+1)
		}
		c.set(k, stack(f, length, axis))
	}
}

// scanInputs gives one slice of each scan input and the length that they share.
func (c *call) scanInputs(states int) (slicesIn []Info, length Dim) {
	axes, _ := c.intList("scan_input_axes")
	length = Unknown()
	for k := states; k < len(c.inputs); k++ {
		axis := 0
		if at := k - states; at < len(axes) {
			axis, _ = normalAxis(axes[at], len(c.in(k).Dims))
		}
		slice, n := unstack(*c.in(k), axis)
		slicesIn = append(slicesIn, slice)
		if length.IsUnknown() {
			length = n
		} else if !n.IsUnknown() {
			length = c.agreeDims(length, n, func() string { return "the lengths of the scan inputs" })
		}
	}
	return slicesIn, length
}

// scanBody infers the body and sets the outputs of the states.
func (c *call) scanBody(initial, slicesIn []Info) (s *carried, last []*Info, ok bool) {
	s = c.newCarried(initial)
	body := c.graph("body")
	ok = s.settle(func(state []Info) ([]*Info, bool) {
		var ok bool
		last, ok = c.runGraph(body, slices.Concat(state, slicesIn)...)
		return last, ok
	})
	if !ok {
		return nil, nil, false
	}
	for k := range s.state {
		c.set(k, s.outside(s.state[k]))
	}
	return s, last, true
}

// scanBatched is version 8: input 0 may hold lengths, every other input and
// output has a batch dim in front, which the body does not see, and slices lie
// along the next.
func scanBatched(c *call) {
	scanned := int(min(max(c.int("num_scan_inputs", 0), 0), int64(max(len(c.inputs)-1, 0))))
	states := len(c.inputs) - 1 - scanned
	batch, length := Unknown(), Unknown()
	var initial, slicesIn []Info
	for k := 1; k < len(c.inputs); k++ {
		f, n := unstack(*c.in(k), 0)
		if batch.IsUnknown() {
			batch = n
		}
		if k-1 < states {
			initial = append(initial, f)
			continue
		}
		if f, n = unstack(f, 0); length.IsUnknown() {
			length = n
		}
		slicesIn = append(slicesIn, f)
	}
	s, last, ok := c.scanBody(initial, slicesIn)
	if !ok {
		return
	}
	for k := range last {
		f := s.outside(*last[k])
		if k < states {
			f = s.outside(s.state[k])
		} else {
			f = stack(f, length, 0)
		}
		c.set(k, stack(f, batch, 0))
	}
}

// sequenceMap runs the body on each element of a sequence, beside elements of
// other sequences and whole tensors.
func sequenceMap(c *call) {
	inputs := make([]Info, len(c.inputs))
	for k := range inputs {
		inputs[k] = *c.in(k)
		if f := c.in(k); f.Kind == onnx.KindSequence && f.Inner != nil {
			inputs[k] = *f.Inner
		}
	}
	mark := c.serial()
	c.undecided++ // the sequence may be empty
	outputs, ok := c.runGraph(c.graph("body"), inputs...)
	c.undecided--
	if !ok {
		return
	}
	for k, f := range outputs {
		inner := (&carried{mark: mark}).outside(*f)
		inner.values, inner.constant = nil, nil
		c.set(k, Info{Kind: onnx.KindSequence, Inner: &inner})
	}
}
