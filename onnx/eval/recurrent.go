package eval

import (
	"slices"

	"github.com/npuctl/npuctl/onnx/eval/internal/gemm"
)

// recurrentOperators carry a state along a sequence.
var recurrentOperators = []operator{
	{name: "RNN", since: 1, run: onFloats(0, recurrent(rnnKind, rnnStep[float32]), recurrent(rnnKind, rnnStep[float64]))},
	{name: "GRU", since: 1, run: onFloats(0, recurrent(gruKind, gruStep[float32]), recurrent(gruKind, gruStep[float64]))},
	{name: "LSTM", since: 1, run: onFloats(0, recurrent(lstmKind, lstmStep[float32]), recurrent(lstmKind, lstmStep[float64]))},
}

// cellKind is what tells the three operators apart.
type cellKind struct {
	gates       int      // parts of the weights
	activations []string // of one direction, by default
	hasCell     bool     // there is a cell state beside the hidden one
	splitsLast  bool     // the last gate looks at the state through another gate
}

var (
	rnnKind  = cellKind{gates: 1, activations: []string{"Tanh"}}
	gruKind  = cellKind{gates: 3, activations: []string{"Sigmoid", "Tanh"}, splitsLast: true}
	lstmKind = cellKind{gates: 4, activations: []string{"Sigmoid", "Tanh", "Tanh"}, hasCell: true}
)

// recurrence is the geometry of a recurrent operator.
type recurrence[T floating] struct {
	c      *Call
	kind   cellKind
	kernel *gemm.Kernel[T]

	x                                array[T]
	steps, batch, in, hidden, passes int // passes: directions
	batchFirst                       bool
	lengths                          []int // of each sequence of the batch
	clip                             float64
	coupled                          bool // LSTM: the forget gate is what the input gate leaves
	resetLast                        bool // GRU: linear_before_reset
}

// recurrent makes the kernel of one of the operators. The input's share of all gates
// is computed for all steps in one product; then the steps follow each other, each
// with a product of the state before it.
//
// Sequences end at their own length: the outputs beyond are 0, the last state is that
// of the last step, and the backward pass starts there.
func recurrent[T floating](kind cellKind, step func(*direction[T])) Kernel {
	return func(c *Call) error {
		r, err := newRecurrence[T](c, kind)
		if err != nil {
			return err
		}
		y, err := newResult[T](c, 0, r.x.typ, r.sequenceShape()...)
		if err != nil {
			return err
		}
		states := []*result[T]{}
		for i := range 2 {
			if i == 1 && !kind.hasCell {
				break
			}
			s, err := newResult[T](c, 1+i, r.x.typ, r.stateShape()...)
			if err != nil {
				return err
			}
			states = append(states, s)
		}
		for pass := range r.passes {
			if err := r.run(pass, step, y.data, states); err != nil {
				return err
			}
		}
		for _, s := range states {
			if err := s.finish(); err != nil {
				return err
			}
		}
		return y.finish()
	}
}

func newRecurrence[T floating](c *Call, kind cellKind) (*recurrence[T], error) {
	x, err := numberInput[T](c, 0)
	if err != nil {
		return nil, err
	}
	w, err := c.Tensor(1)
	if err != nil {
		return nil, err
	}
	r := &recurrence[T]{
		c: c, kind: kind, kernel: multiplier[T](c), x: x, batchFirst: c.Int("layout", 0) != 0,
		clip: float64(c.Float("clip", 0)), coupled: c.Int("input_forget", 0) != 0, resetLast: c.Int("linear_before_reset", 0) != 0,
	}
	if len(x.shape) != 3 || w.Rank() != 3 || w.Shape()[2] != x.shape[2] || w.Shape()[1]%kind.gates != 0 {
		return nil, c.Errorf("weights of shape %v do not fit a sequence of shape %v", w.Shape(), x.shape)
	}
	r.steps, r.batch, r.in = x.shape[0], x.shape[1], x.shape[2]
	if r.batchFirst {
		r.steps, r.batch = r.batch, r.steps
	}
	r.passes, r.hidden = w.Shape()[0], w.Shape()[1]/kind.gates
	if h := c.Int("hidden_size", int64(r.hidden)); h != int64(r.hidden) {
		return nil, c.Errorf("hidden_size is %d, the weights are for %d", h, r.hidden)
	}
	direction := c.String("direction", "forward")
	passes, known := map[string]int{"forward": 1, "reverse": 1, "bidirectional": 2}[direction]
	if !known || passes != r.passes {
		return nil, c.Errorf("direction %q does not fit weights for %d directions", direction, r.passes)
	}
	return r, r.readLengths()
}

// readLengths reads the lengths of the sequences, all of them by default.
func (r *recurrence[T]) readLengths() error {
	r.lengths = slices.Repeat([]int{r.steps}, r.batch)
	given, err := r.c.IntsInput(4)
	if err != nil || given == nil {
		return err
	}
	if len(given) != r.batch {
		return r.c.Errorf("%d lengths for a batch of %d", len(given), r.batch)
	}
	for i, n := range given {
		if n < 0 || n > int64(r.steps) {
			return r.c.Errorf("a length of %d in a sequence of %d", n, r.steps)
		}
		r.lengths[i] = int(n)
	}
	return nil
}

func (r *recurrence[T]) sequenceShape() []int {
	if r.batchFirst {
		return []int{r.batch, r.steps, r.passes, r.hidden}
	}
	return []int{r.steps, r.passes, r.batch, r.hidden}
}

func (r *recurrence[T]) stateShape() []int {
	if r.batchFirst {
		return []int{r.batch, r.passes, r.hidden}
	}
	return []int{r.passes, r.batch, r.hidden}
}

// inputRow is the number of the row of X that is one step of one sequence.
func (r *recurrence[T]) inputRow(step, item int) int {
	if r.batchFirst {
		return item*r.steps + step
	}
	return step*r.batch + item
}

// outputRow is the place in Y of one step of one sequence.
func (r *recurrence[T]) outputRow(step, pass, item int) int {
	if r.batchFirst {
		return ((item*r.steps+step)*r.passes + pass) * r.hidden
	}
	return ((step*r.passes+pass)*r.batch + item) * r.hidden
}

// stateRow is the place of one sequence in a state.
func (r *recurrence[T]) stateRow(pass, item int) int {
	if r.batchFirst {
		return (item*r.passes + pass) * r.hidden
	}
	return (pass*r.batch + item) * r.hidden
}

// recurrentWeights are the weights of one direction, packed.
type recurrentWeights[T floating] struct{ input, state, last *gemm.Operand[T] }

// weights packs the weights of all directions. The last gate's share of the state is
// an operand of its own where it has to wait for the others, or is changed by them.
func (r *recurrence[T]) weights() ([]recurrentWeights[T], error) {
	rows := r.kind.gates * r.hidden
	pack := func() (any, error) {
		w, err := shapedInput[T](r.c, 1, r.passes, rows, r.in)
		if err != nil {
			return nil, err
		}
		s, err := shapedInput[T](r.c, 2, r.passes, rows, r.hidden)
		if err != nil {
			return nil, err
		}
		part := func(data []T, pass, from, to, width int) *gemm.Operand[T] {
			m := gemm.RowMajor(data[(pass*rows+from)*width:][:(to-from)*width], to-from, width)
			return r.kernel.Right(m.Transposed()).Pack(r.c.Parallel)
		}
		out := make([]recurrentWeights[T], r.passes)
		for p := range out {
			out[p] = recurrentWeights[T]{input: part(w, p, 0, rows, r.in), state: part(s, p, 0, r.firstGates(), r.hidden)}
			out[p].last = part(s, p, r.firstGates(), rows, r.hidden)
		}
		return out, nil
	}
	var kept any
	var err error
	if r.c.keeps(1) && r.c.keeps(2) {
		kept, err = r.c.Once(pack)
	} else {
		kept, err = pack()
	}
	if err != nil {
		return nil, err
	}
	return kept.([]recurrentWeights[T]), nil
}

// firstGates is the width of the gates whose shares of the state come in one product.
func (r *recurrence[T]) firstGates() int {
	if r.kind.splitsLast {
		return (r.kind.gates - 1) * r.hidden
	}
	return r.kind.gates * r.hidden
}

// biases gives, for one direction, the input's and the state's biases, gate by gate.
func (r *recurrence[T]) biases(pass int) (input, state []T, err error) {
	rows := r.kind.gates * r.hidden
	if !r.c.Has(3) {
		zeros := make([]T, rows)
		return zeros, zeros, nil
	}
	b, err := shapedInput[T](r.c, 3, r.passes, 2*rows)
	if err != nil {
		return nil, nil, err
	}
	return b[2*pass*rows:][:rows], b[(2*pass+1)*rows:][:rows], nil
}

// initial gives, for one direction, the state that input i starts from: zeros when it
// is left out.
func (r *recurrence[T]) initial(i, pass int) ([]T, error) {
	state, err := scratch[T](r.c, r.batch, r.hidden)
	if err != nil || !r.c.Has(i) {
		return state, err
	}
	given, err := shapedInput[T](r.c, i, r.stateShape()...)
	if err != nil {
		return nil, err
	}
	for item := range r.batch {
		copy(state[item*r.hidden:][:r.hidden], given[r.stateRow(pass, item):])
	}
	return state, nil
}

// direction is one pass along the sequence.
type direction[T floating] struct {
	*recurrence[T]
	weights     recurrentWeights[T]
	activations []func([]T)
	peepholes   []T // of the input, output and forget gates; nil when there are none
	lastBias    []T // the state's bias of the last gate, where that gate splits

	// By item of the batch: the states, the gates of the step at hand, and room.
	hiddenState, cellState, gates, rest []T
	active                              []bool // the sequence has not ended
}

// run goes along the sequence in one direction.
func (r *recurrence[T]) run(pass int, step func(*direction[T]), y []T, last []*result[T]) error {
	d, err := r.newDirection(pass)
	if err != nil || r.batch == 0 {
		return err
	}
	shares, err := r.inputShares(d, pass)
	if err != nil {
		return err
	}
	wide := r.kind.gates * r.hidden
	backwards := pass == 1 || r.c.String("direction", "forward") == "reverse"
	place := func(item, s int) int {
		if backwards {
			return r.lengths[item] - 1 - s
		}
		return s
	}
	for s := range r.steps {
		if err := r.c.Context().Err(); err != nil {
			return err
		}
		for item := range r.batch {
			if d.active[item] = s < r.lengths[item]; d.active[item] {
				copy(d.gates[item*wide:][:wide], shares[r.inputRow(place(item, s), item)*wide:])
			}
		}
		step(d)
		for item := range r.batch {
			if d.active[item] {
				copy(y[r.outputRow(place(item, s), pass, item):][:r.hidden], d.hiddenState[item*r.hidden:])
			}
		}
	}
	for k, state := range [][]T{d.hiddenState, d.cellState}[:len(last)] {
		for item := range r.batch {
			copy(last[k].data[r.stateRow(pass, item):][:r.hidden], state[item*r.hidden:])
		}
	}
	return nil
}

func (r *recurrence[T]) newDirection(pass int) (*direction[T], error) {
	weights, err := r.weights()
	if err != nil {
		return nil, err
	}
	d := &direction[T]{recurrence: r, weights: weights[pass], active: make([]bool, r.batch)}
	if d.hiddenState, err = r.initial(5, pass); err != nil {
		return nil, err
	}
	if d.activations, err = r.activationsOf(pass); err != nil {
		return nil, err
	}
	if d.gates, err = scratch[T](r.c, r.batch, r.kind.gates*r.hidden); err != nil {
		return nil, err
	}
	if d.rest, err = scratch[T](r.c, r.batch, r.hidden); err != nil {
		return nil, err
	}
	if !r.kind.hasCell {
		return d, nil
	}
	if d.cellState, err = r.initial(6, pass); err != nil {
		return nil, err
	}
	if r.c.Has(7) {
		p, err := shapedInput[T](r.c, 7, r.passes, 3*r.hidden)
		if err != nil {
			return nil, err
		}
		d.peepholes = p[3*pass*r.hidden:][:3*r.hidden]
	}
	return d, nil
}

// inputShares computes what the input adds to the gates at every step, with the
// biases that do not wait for another gate.
func (r *recurrence[T]) inputShares(d *direction[T], pass int) ([]T, error) {
	bias, stateBias, err := r.biases(pass)
	if err != nil {
		return nil, err
	}
	wide, rows := r.kind.gates*r.hidden, r.steps*r.batch
	shares, err := scratch[T](r.c, rows, wide)
	if err != nil {
		return nil, err
	}
	both := slices.Clone(bias)
	for i, b := range stateBias {
		if r.kind.splitsLast && r.resetLast && i >= r.firstGates() {
			break
		}
		both[i] += b
	}
	d.lastBias = stateBias[wide-r.hidden:]
	for i := range rows {
		copy(shares[i*wide:][:wide], both)
	}
	left := r.kernel.Left(gemm.RowMajor(r.x.data, rows, r.in))
	r.kernel.Run(r.c.Parallel, gemm.Product[T]{C: shares, Step: wide, A: left, B: d.weights.input})
	return shares, nil
}

// addState adds to columns of the gates, from column first on, what weights make of a
// state.
func (d *direction[T]) addState(gates []T, step int, state []T, weights *gemm.Operand[T]) {
	left := d.kernel.Left(gemm.RowMajor(state, d.batch, d.hidden))
	d.kernel.Run(d.c.Parallel, gemm.Product[T]{C: gates, Step: step, A: left, B: weights})
}

// each calls f for every sequence that has not ended, with its number and gates.
func (d *direction[T]) each(f func(item int, gates []T)) {
	wide := d.kind.gates * d.hidden
	d.c.Parallel(d.batch, 1+elementGrain/max(1, 8*wide), func(first, last int) {
		for item := first; item < last; item++ {
			if d.active[item] {
				f(item, d.gates[item*wide:][:wide])
			}
		}
	})
}

// activate limits a row to the clipping bounds and applies activation k to it.
func (d *direction[T]) activate(k int, row []T) {
	if d.clip > 0 {
		for i, v := range row {
			row[i] = min(max(v, T(-d.clip)), T(d.clip))
		}
	}
	d.activations[k](row)
}

// addPeephole adds to a gate what it sees of the cell.
func (d *direction[T]) addPeephole(k int, gate, cell []T) {
	if d.peepholes == nil {
		return
	}
	for i, p := range d.peepholes[k*d.hidden:][:d.hidden] {
		gate[i] += T(p * cell[i])
	}
}

func rnnStep[T floating](d *direction[T]) {
	d.addState(d.gates, d.hidden, d.hiddenState, d.weights.state)
	d.each(func(item int, gates []T) {
		d.activate(0, gates)
		copy(d.hiddenState[item*d.hidden:][:d.hidden], gates)
	})
}

// gruStep: update gate z, reset gate r, new value. The reset gate acts on the state
// before its product with the weights, or on the product.
func gruStep[T floating](d *direction[T]) {
	n, wide := d.hidden, 3*d.hidden
	d.addState(d.gates, wide, d.hiddenState, d.weights.state)
	if d.resetLast {
		for item := range d.batch {
			copy(d.rest[item*n:][:n], d.lastBias)
		}
		d.addState(d.rest, n, d.hiddenState, d.weights.last)
	}
	d.each(func(item int, gates []T) {
		d.activate(0, gates[:2*n])
		rest, state := d.rest[item*n:][:n], d.hiddenState[item*n:][:n]
		for i, r := range gates[n : 2*n] {
			if d.resetLast {
				gates[2*n+i] += T(r * rest[i])
			} else {
				rest[i] = r * state[i]
			}
		}
	})
	if !d.resetLast {
		d.addState(d.gates[2*n:], wide, d.rest, d.weights.last)
	}
	d.each(func(item int, gates []T) {
		d.activate(1, gates[2*n:])
		state := d.hiddenState[item*n:][:n]
		for i, z := range gates[:n] {
			state[i] = T((1-z)*gates[2*n+i]) + T(z*state[i])
		}
	})
}

// lstmStep: input, output and forget gates, and the new value of the cell. With
// coupled gates the forget gate is one less the input gate. Clipping is for the gates
// and the new value, not for the cell on its way out: so does ONNX Runtime, where the
// specification could be read either way.
func lstmStep[T floating](d *direction[T]) {
	n := d.hidden
	d.addState(d.gates, 4*n, d.hiddenState, d.weights.state)
	d.each(func(item int, gates []T) {
		in, out, forget, value := gates[:n], gates[n:2*n], gates[2*n:3*n], gates[3*n:]
		cell, state, shown := d.cellState[item*n:][:n], d.hiddenState[item*n:][:n], d.rest[item*n:][:n]
		d.addPeephole(0, in, cell)
		d.addPeephole(2, forget, cell)
		d.activate(0, in)
		if d.coupled {
			for i, v := range in {
				forget[i] = 1 - v
			}
		} else {
			d.activate(0, forget)
		}
		d.activate(1, value)
		for i, f := range forget {
			cell[i] = T(f*cell[i]) + T(in[i]*value[i])
		}
		d.addPeephole(1, out, cell)
		d.activate(0, out)
		copy(shown, cell)
		d.activations[2](shown)
		for i, o := range out {
			state[i] = o * shown[i]
		}
	})
}
