package eval

import (
	"math"
	"slices"

	"github.com/npuctl/npuctl/onnx/eval/internal/elementary"
)

// attentionHelpers are the operators that come with attention in language models.
var attentionHelpers = []operator{
	{name: "RotaryEmbedding", since: 23, run: onFloats(0, rotaryEmbedding[float32], rotaryEmbedding[float64])},
	{name: "TensorScatter", since: 24, run: tensorScatter},
	{name: "LinearAttention", since: 27, run: onFloats(0, linearAttention[float32], linearAttention[float64])},
}

// rotaryEmbedding turns pairs of elements of every head by the angle of their position,
// whose cosines and sines are given by position or, without positions, one for every
// token. Elements beyond rotary_embedding_dim stay.
func rotaryEmbedding[T floating](c *Call) error {
	x, err := headsInput[T](c, 0, "num_heads")
	if err != nil {
		return err
	}
	turned := int(c.Int("rotary_embedding_dim", 0))
	if turned == 0 {
		turned = x.size
	}
	if turned < 0 || turned > x.size || turned%2 != 0 {
		return c.Errorf("cannot turn %d elements of a head of %d", turned, x.size)
	}
	angles, err := newRotation(c, x, turned/2)
	if err != nil {
		return err
	}
	d, _ := c.Tensor(0)
	out, err := newResult[T](c, 0, x.typ, d.Shape()...)
	if err != nil {
		return err
	}
	copy(out.data, x.data)
	interleaved := c.Int("interleaved", 0) != 0
	c.Parallel(x.batch*x.length, 1+elementGrain/max(1, 4*x.count*turned), func(first, last int) {
		for token := first; token < last; token++ {
			cosine, sine := angles.of(token)
			for h := range x.count {
				at := x.at(token/x.length, h) + token%x.length*x.step
				turn(out.data[at:][:turned], x.data[at:][:turned], cosine, sine, interleaved)
			}
		}
	})
	return out.finish()
}

// turn rotates pairs: neighbours, or elements half a head apart.
func turn[T floating](out, x, cosine, sine []T, interleaved bool) {
	half := len(cosine)
	for i := range half {
		a, b := i, half+i
		if interleaved {
			a, b = 2*i, 2*i+1
		}
		out[a] = T(cosine[i]*x[a]) - T(sine[i]*x[b])
		out[b] = T(sine[i]*x[a]) + T(cosine[i]*x[b])
	}
}

// rotation finds the angles of a token.
type rotation[T floating] struct {
	cosine, sine []T
	half         int
	rows         []int64 // of the caches, by token; nil when tokens have rows of their own
}

func newRotation[T floating](c *Call, x heads[T], half int) (*rotation[T], error) {
	r := &rotation[T]{half: half}
	positions, err := c.IntsInput(3)
	if err != nil {
		return nil, err
	}
	cosine, err := numberInput[T](c, 1)
	if err != nil {
		return nil, err
	}
	sine, err := numberInput[T](c, 2)
	if err != nil {
		return nil, err
	}
	rows := []int{x.batch, x.length}
	if positions != nil {
		if len(cosine.shape) != 2 || len(positions) != x.batch*x.length {
			return nil, c.Errorf("%d positions for %d tokens, caches of shape %v", len(positions), x.batch*x.length, cosine.shape)
		}
		rows = cosine.shape[:1]
	}
	if want := append(slices.Clone(rows), half); !slices.Equal(cosine.shape, want) || !slices.Equal(sine.shape, want) {
		return nil, c.Errorf("caches of shape %v and %v, not %v", cosine.shape, sine.shape, want)
	}
	for _, p := range positions {
		if p < 0 || p >= int64(rows[0]) {
			return nil, c.Errorf("position %d in caches of %d", p, rows[0])
		}
	}
	r.cosine, r.sine, r.rows = cosine.data, sine.data, positions
	return r, nil
}

func (r *rotation[T]) of(token int) (cosine, sine []T) {
	if r.rows != nil {
		token = int(r.rows[token])
	}
	return r.cosine[token*r.half:][:r.half], r.sine[token*r.half:][:r.half]
}

// tensorScatter writes an update into a copy of a cache, along an axis, from an index
// of its own in every item of the batch; in circular mode it wraps around.
func tensorScatter(c *Call) error {
	cache, err := c.Tensor(0)
	if err != nil {
		return err
	}
	update, err := c.Tensor(1)
	if err != nil {
		return err
	}
	axis, err := normalAxis(c, c.Int("axis", -2), cache.Rank())
	if err != nil {
		return err
	}
	if axis == 0 || update.Rank() != cache.Rank() || update.Type() != cache.Type() ||
		!slices.Equal(removeDim(update.Shape(), axis), removeDim(cache.Shape(), axis)) || update.Shape()[axis] > cache.Shape()[axis] {
		return c.Errorf("an update of %s%v to a cache of %s%v along axis %d", update.Type(), update.Shape(), cache.Type(), cache.Shape(), axis)
	}
	mode := c.String("mode", "linear")
	if mode != "linear" && mode != "circular" {
		return c.Errorf("mode %q is not known", mode)
	}
	most, steps := cache.Shape()[axis], update.Shape()[axis]
	starts, err := writeIndices(c, cache.Shape()[0], most, steps, mode == "circular")
	if err != nil {
		return err
	}
	out, err := c.New(cache.Type(), cache.Shape()...)
	if err != nil {
		return err
	}
	copyPart(out, 0, cache, 0, cache.Len())
	lines, size := product(cache.Shape()[1:axis]), product(cache.Shape()[axis+1:])
	move := copyRows.For(cache.Type())
	for item, start := range starts {
		to, from := item*lines*most*size, item*lines*steps*size
		straight := min(steps, most-start)
		move(out, to+start*size, most*size, update, from, steps*size, straight*size, lines)
		move(out, to, most*size, update, from+straight*size, steps*size, (steps-straight)*size, lines)
	}
	c.Outputs[0] = out
	return nil
}

// writeIndices gives where each item's update starts: 0 by default.
func writeIndices(c *Call, batch, most, steps int, circular bool) ([]int, error) {
	given, err := c.IntsInput(2)
	if err != nil {
		return nil, err
	}
	starts := make([]int, batch)
	if given == nil {
		return starts, nil
	}
	if len(given) != batch {
		return nil, c.Errorf("%d write indices for a batch of %d", len(given), batch)
	}
	for i, n := range given {
		if n < 0 || !circular && n > int64(most-steps) {
			return nil, c.Errorf("write index %d for %d steps in a cache of %d", n, steps, most)
		}
		if most > 0 {
			starts[i] = int(n % int64(most))
		}
	}
	return starts, nil
}

// linearAttention keeps, for every head, a matrix from keys to values that each token
// fades, corrects and adds to, and that queries read.
func linearAttention[T floating](c *Call) error {
	l, err := newLinearAttention[T](c)
	if err != nil {
		return err
	}
	out, err := newResult[T](c, 0, l.q.typ, l.q.batch, l.q.length, l.q.count*l.v.size)
	if err != nil {
		return err
	}
	typ := l.q.typ
	if c.Has(3) {
		d, _ := c.Tensor(3)
		typ = d.Type()
	}
	state, err := newResult[T](c, 1, typ, l.q.batch, l.k.count, l.k.size, l.v.size)
	if err != nil {
		return err
	}
	if c.Has(3) {
		past, err := shapedInput[T](c, 3, state.shape...)
		if err != nil {
			return err
		}
		copy(state.data, past)
	}
	size := l.k.size * l.v.size
	c.Parallel(l.q.batch*l.k.count, 1+elementGrain/max(1, 4*size*l.q.length), func(first, last int) {
		fresh := make([]T, l.v.size)
		for i := first; i < last; i++ {
			for t := range l.q.length {
				l.step(out.data, state.data[i*size:][:size], fresh, i/l.k.count, i%l.k.count, t)
			}
		}
	})
	if err := state.finish(); err != nil {
		return err
	}
	return out.finish()
}

// linear is the inputs of a LinearAttention.
type linear[T floating] struct {
	q, k, v     heads[T]
	scale       T
	decay, beta heads[T] // of one element a head, or one a key element; beta may be one for all heads
	group       int
}

func newLinearAttention[T floating](c *Call) (*linear[T], error) {
	l := &linear[T]{}
	for i, into := range []*heads[T]{&l.q, &l.k, &l.v} {
		var err error
		if *into, err = headsInput[T](c, i, []string{"q_num_heads", "kv_num_heads", "kv_num_heads"}[i]); err != nil {
			return nil, err
		}
	}
	d, err := newDot(c, l.q, l.k, l.v)
	if err != nil {
		return nil, err
	}
	q, _ := c.Tensor(0)
	if q.Rank() != 3 || l.q.length != l.k.length {
		return nil, c.Errorf("input 0 has shape %v, which does not fit %d keys", q.Shape(), l.k.length)
	}
	l.group = d.group
	l.scale = T(c.Float("scale", 0))
	if l.scale == 0 {
		l.scale = T(1 / math.Sqrt(float64(l.q.size)))
	}
	return l, l.readGates(c)
}

// readGates reads decay and beta, which the update rule asks for or forbids.
func (l *linear[T]) readGates(c *Call) error {
	rules := map[string][2]bool{"linear": {}, "gated": {true, false}, "delta": {false, true}, "gated_delta": {true, true}}
	rule, known := rules[c.String("update_rule", "gated_delta")]
	if !known || rule[0] != c.Has(4) || rule[1] != c.Has(5) {
		return c.Errorf("update_rule %q does not go with the inputs that are there", c.String("update_rule", "gated_delta"))
	}
	for i, into := range []*heads[T]{&l.decay, &l.beta} {
		if !rule[i] {
			continue
		}
		x, err := numberInput[T](c, 4+i)
		if err != nil {
			return err
		}
		fits := len(x.shape) == 3 && x.shape[0] == l.k.batch && x.shape[1] == l.k.length
		wide := 0
		if fits {
			wide = x.shape[2]
		}
		*into = heads[T]{data: x.data, size: 1, headStep: 1, step: wide, batchStep: l.k.length * wide}
		switch {
		case fits && wide == l.k.count:
		case fits && i == 0 && wide == l.k.count*l.k.size:
			into.size, into.headStep = l.k.size, l.k.size
		case fits && i == 1 && wide == 1:
			into.headStep = 0
		default:
			return c.Errorf("input %d has shape %v, which does not fit %d heads", 4+i, x.shape, l.k.count)
		}
	}
	return nil
}

// step takes one token of one head into account.
func (l *linear[T]) step(out, state, fresh []T, b, h, t int) {
	key := l.k.data[l.k.at(b, h)+t*l.k.step:][:l.k.size]
	copy(fresh, l.v.data[l.v.at(b, h)+t*l.v.step:][:l.v.size])
	wide := len(fresh)
	if l.decay.data != nil {
		gates := l.decay.data[l.decay.at(b, h)+t*l.decay.step:][:l.decay.size]
		for i := range key {
			factor := T(elementary.Exp(float64(gates[i%len(gates)])))
			for j := range state[i*wide:][:wide] {
				state[i*wide+j] *= factor
			}
		}
	}
	if l.beta.data != nil {
		for i, k := range key {
			addTimes(fresh, state[i*wide:][:wide], 1, -k)
		}
		beta := l.beta.data[l.beta.at(b, h)+t*l.beta.step]
		for j := range fresh {
			fresh[j] *= beta
		}
	}
	for i, k := range key {
		addTimes(state[i*wide:][:wide], fresh, 1, k)
	}
	for g := range l.group {
		head := h*l.group + g
		query := l.q.data[l.q.at(b, head)+t*l.q.step:][:l.q.size]
		row := out[((b*l.q.length+t)*l.q.count+head)*wide:][:wide]
		for i, q := range query {
			addTimes(row, state[i*wide:][:wide], 1, q*l.scale)
		}
	}
}
