package eval

import (
	"math"
	"slices"

	"github.com/npuctl/npuctl/onnx/eval/internal/elementary"
	"github.com/npuctl/npuctl/onnx/eval/internal/gemm"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// attentionOperators weigh values by how well keys match queries.
var attentionOperators = []operator{
	{name: "Attention", since: 23, run: onFloats(0, attention[float32], attention[float64])},
	{domain: "ai.onnx.preview", name: "FlexAttention", since: 1, run: onFloats(0, flexAttention[float32], flexAttention[float64])},
}

// heads is a tensor of queries, keys or values, head by head: its dims are batch,
// head, position and element of the head, in whatever order they are stored.
type heads[T floating] struct {
	typ                        tensor.Type
	data                       []T
	batch, count, length, size int
	batchStep, headStep, step  int
}

// headsInput gives input i: rank 4 in that order, or rank 3 with the heads of a
// position packed into one axis, of which count says how many there are.
func headsInput[T floating](c *Call, i int, count string) (heads[T], error) {
	x, err := numberInput[T](c, i)
	if err != nil {
		return heads[T]{}, err
	}
	if len(x.shape) == 4 {
		return plainHeads(x), nil
	}
	n := int(c.Int(count, 0))
	if len(x.shape) != 3 || n < 1 || x.shape[2]%n != 0 {
		return heads[T]{}, c.Errorf("input %d of shape %v does not fall into %d heads", i, x.shape, n)
	}
	size := x.shape[2] / n
	return heads[T]{
		typ: x.typ, data: x.data, batch: x.shape[0], count: n, length: x.shape[1], size: size,
		batchStep: x.shape[1] * x.shape[2], headStep: size, step: x.shape[2],
	}, nil
}

func plainHeads[T floating](x array[T]) heads[T] {
	return heads[T]{
		typ: x.typ, data: x.data, batch: x.shape[0], count: x.shape[1], length: x.shape[2], size: x.shape[3],
		batchStep: x.shape[1] * x.shape[2] * x.shape[3], headStep: x.shape[2] * x.shape[3], step: x.shape[3],
	}
}

// at is where the head h of item b of the batch starts.
func (x *heads[T]) at(b, h int) int { return b*x.batchStep + h*x.headStep }

// matrix is one head: a row for every position.
func (x *heads[T]) matrix(b, h int) gemm.Matrix[T] {
	return gemm.Matrix[T]{Data: x.data[min(x.at(b, h), len(x.data)):], Rows: x.length, Columns: x.size, RowStep: x.step, ColumnStep: 1}
}

// dot is the geometry of an attention: which queries meet which keys and values.
type dot[T floating] struct {
	c       *Call
	kernel  *gemm.Kernel[T]
	q, k, v heads[T]
	group   int // query heads that share a key and value head
}

func newDot[T floating](c *Call, q, k, v heads[T]) (*dot[T], error) {
	if q.batch != k.batch || q.batch != v.batch || k.count != v.count || k.length != v.length || q.size != k.size ||
		k.count == 0 || q.count%k.count != 0 {
		return nil, c.Errorf("queries (%d of %d heads, %d elements), keys (%d of %d, %d) and values (%d of %d) do not fit each other",
			q.batch, q.count, q.size, k.batch, k.count, k.size, v.batch, v.count)
	}
	return &dot[T]{c: c, kernel: multiplier[T](c), q: q, k: k, v: v, group: q.count / k.count}, nil
}

// rows is the number of rows of scores of one head, width their length.
func (d *dot[T]) width() int { return d.k.length }

// score computes the products of queries and keys for the heads first to last of all
// items of the batch, counted on; scores are zeros before.
func (d *dot[T]) score(scores []T, first, last int) {
	size := d.q.length * d.k.length
	products := make([]gemm.Product[T], 0, last-first)
	for i := first; i < last; i++ {
		b, h := i/d.q.count, i%d.q.count
		products = append(products, gemm.Product[T]{
			C: scores[(i-first)*size:][:size], Step: d.k.length,
			A: d.kernel.Left(d.q.matrix(b, h)), B: d.kernel.Right(d.k.matrix(b, h/d.group).Transposed()),
		})
	}
	d.kernel.Run(d.c.Parallel, products...)
}

// weigh adds to y the values weighed by the rows of scores, for the same heads.
func (d *dot[T]) weigh(y heads[T], scores []T, first, last int) {
	size := d.q.length * d.k.length
	products := make([]gemm.Product[T], 0, last-first)
	for i := first; i < last; i++ {
		b, h := i/d.q.count, i%d.q.count
		products = append(products, gemm.Product[T]{
			C: y.data[min(y.at(b, h), len(y.data)):], Step: y.step,
			A: d.kernel.Left(gemm.RowMajor(scores[(i-first)*size:][:size], d.q.length, d.k.length)),
			B: d.kernel.Right(d.v.matrix(b, h/d.group)),
		})
	}
	d.kernel.Run(d.c.Parallel, products...)
}

// scoreChunk bounds the elements of scores that exist at one time, where one head's
// are not more: they should still be in a cache when they are used.
const scoreChunk = 1 << 20

// attention computes scores for some heads at a time: product, cap, mask, softmax,
// product. A row whose every key is masked gives zeros. Scores are computed in the
// type computed in; only softmax_precision can ask for less.
func attention[T floating](c *Call) error {
	a, err := newAttention[T](c)
	if err != nil {
		return err
	}
	out, err := newResult[T](c, 0, a.q.typ, a.outputShape()...)
	if err != nil {
		return err
	}
	y := heads[T]{data: out.data, batchStep: a.q.count * a.q.length * a.v.size, headStep: a.q.length * a.v.size, step: a.v.size}
	if a.packed {
		y.headStep, y.step = a.v.size, a.q.count*a.v.size
	}
	size, all := a.q.length*a.k.length, a.q.batch*a.q.count
	chunk := max(1, min(all, scoreChunk/max(1, size)))
	shown, err := a.shownScores(c)
	if err != nil {
		return err
	}
	scores, err := scratch[T](c, chunk, a.q.length, a.k.length)
	if err != nil {
		return err
	}
	for first := 0; first < all; first += chunk {
		last := min(first+chunk, all)
		clear(scores)
		a.score(scores, first, last)
		c.Parallel((last-first)*a.q.length, 1+elementGrain/max(1, 16*a.width()), func(from, to int) {
			bias := make([]T, a.width())
			for r := from; r < to; r++ {
				a.row(scores[r*a.width():][:a.width()], bias, first*a.q.length+r, shown)
			}
		})
		a.weigh(y, scores, first, last)
	}
	if shown != nil {
		if err := shown.finish(); err != nil {
			return err
		}
	}
	return out.finish()
}

// scaledDot is an Attention with all that it does between the products.
type scaledDot[T floating] struct {
	*dot[T]
	packed     bool // the inputs have rank 3
	scale, cap float64
	mode       int64 // which scores output 3 shows
	round      func(float32) float32
	softmax    func(in, out []T)
	mask       *attentionMask[T]
}

func newAttention[T floating](c *Call) (*scaledDot[T], error) {
	var x [3]heads[T]
	for i, count := range []string{"q_num_heads", "kv_num_heads", "kv_num_heads"} {
		var err error
		if x[i], err = headsInput[T](c, i, count); err != nil {
			return nil, err
		}
	}
	if c.Has(4) != c.Has(5) {
		return nil, c.Errorf("only one of past_key and past_value is there")
	}
	past := 0
	for i := 1; i <= 2; i++ {
		if !c.Has(3+i) && !c.Wants(i) {
			continue
		}
		var err error
		if x[i], past, err = presentHeads(c, x[i], i); err != nil {
			return nil, err
		}
	}
	d, err := newDot(c, x[0], x[1], x[2])
	if err != nil {
		return nil, err
	}
	q, _ := c.Tensor(0)
	a := &scaledDot[T]{
		dot: d, packed: q.Rank() == 3, softmax: softmaxLine[T](c), mode: c.Int("qk_matmul_output_mode", 0),
		scale: attentionScale(c, d.q.size), cap: float64(c.Float("softcap", 0)),
	}
	switch t := tensor.Type(c.Int("softmax_precision", 0)); t {
	case tensor.Float16, tensor.BFloat16:
		a.round = roundTo(t)
	}
	a.mask, err = newAttentionMask(d, past)
	return a, err
}

// attentionScale is the attribute scale, by default one over the root of a head's size.
func attentionScale(c *Call, size int) float64 {
	if a := c.Attribute("scale"); a != nil {
		return float64(a.Float())
	}
	return 1 / math.Sqrt(float64(size))
}

// presentHeads puts the past keys or values, input 3+i, before those of input i, and
// sets output i to all of them.
func presentHeads[T floating](c *Call, x heads[T], i int) (all heads[T], past int, err error) {
	var before heads[T]
	if c.Has(3 + i) {
		v, err := numberInput[T](c, 3+i)
		if err != nil {
			return x, 0, err
		}
		if len(v.shape) != 4 || v.shape[0] != x.batch || v.shape[1] != x.count || v.shape[3] != x.size {
			return x, 0, c.Errorf("input %d has shape %v, which does not fit input %d", 3+i, v.shape, i)
		}
		before = plainHeads(v)
	}
	past = before.length
	present, err := newResult[T](c, i, x.typ, x.batch, x.count, past+x.length, x.size)
	if err != nil {
		return x, 0, err
	}
	all = plainHeads(array[T]{x.typ, present.shape, present.data})
	for b := range x.batch {
		for h := range x.count {
			to := all.data[all.at(b, h):]
			copy(to[:past*x.size], before.data[min(before.at(b, h), len(before.data)):])
			for p := range x.length {
				copy(to[(past+p)*x.size:][:x.size], x.data[x.at(b, h)+p*x.step:])
			}
		}
	}
	return all, past, present.finish()
}

func (a *scaledDot[T]) outputShape() []int {
	if a.packed {
		return []int{a.q.batch, a.q.length, a.q.count * a.v.size}
	}
	return []int{a.q.batch, a.q.count, a.q.length, a.v.size}
}

// shownScores makes room for output 3, if anybody wants it.
func (a *scaledDot[T]) shownScores(c *Call) (*result[T], error) {
	if !c.Wants(3) {
		return nil, nil
	}
	return newResult[T](c, 3, a.q.typ, a.q.batch, a.q.count, a.q.length, a.k.length)
}

// The stages at which output 3 can show the scores.
const (
	showProduct = iota
	showCapped
	showMasked
	showShares
)

// row turns the raw scores of one query into the shares of the values. The query is
// row r of all, bias is room for the mask.
func (a *scaledDot[T]) row(scores, bias []T, r int, shown *result[T]) {
	show := func(stage int64) {
		if shown != nil && a.mode == stage {
			copy(shown.data[r*len(scores):][:len(scores)], scores)
		}
	}
	for i, v := range scores {
		scores[i] = T(float64(v) * a.scale)
	}
	show(showProduct)
	if a.cap > 0 {
		for i, v := range scores {
			scores[i] = T(a.cap * elementary.Tanh(float64(v)/a.cap))
		}
	}
	show(showCapped)
	masked := a.mask.fill(bias, r)
	for i, b := range bias {
		scores[i] += b
	}
	show(showMasked)
	switch {
	case masked:
		clear(scores)
	case a.round != nil:
		a.roundRow(scores)
		a.softmax(scores, scores)
		a.roundRow(scores)
	default:
		a.softmax(scores, scores)
	}
	show(showShares)
}

func (a *scaledDot[T]) roundRow(row []T) {
	for i, v := range row {
		row[i] = T(a.round(float32(v)))
	}
}

// flexAttention hands the scores, and the shares after the softmax, to subgraphs that
// may change them.
func flexAttention[T floating](c *Call) error {
	var x [3]heads[T]
	for i := range x {
		v, err := numberInput[T](c, i)
		if err != nil {
			return err
		}
		if len(v.shape) != 4 {
			return c.Errorf("input %d has shape %v, not four dims", i, v.shape)
		}
		x[i] = plainHeads(v)
	}
	d, err := newDot(c, x[0], x[1], x[2])
	if err != nil {
		return err
	}
	precision := tensor.TypeOf[T]()
	if t := tensor.Type(c.Int("softmax_precision", 0)); t != tensor.Undefined {
		precision = t
	}
	shape := []int{d.q.batch, d.q.count, d.q.length, d.k.length}
	scores, err := scratch[T](c, shape...)
	if err != nil {
		return err
	}
	d.score(scores, 0, d.q.batch*d.q.count)
	scale := attentionScale(c, d.q.size)
	convertTo(c, scores, scores, func(v T) T { return T(float64(v) * scale) })
	if scores, err = modified(c, "score_mod", precision, scores, shape); err != nil {
		return err
	}
	shares, err := scratch[T](c, shape...)
	if err != nil {
		return err
	}
	alongAxis(c, shape, 3, scores, shares, softmaxLine[T](c))
	if shares, err = modified(c, "prob_mod", precision, shares, shape); err != nil {
		return err
	}
	out, err := newResult[T](c, 0, d.q.typ, d.q.batch, d.q.count, d.q.length, d.v.size)
	if err != nil {
		return err
	}
	d.weigh(plainHeads(array[T]{d.q.typ, out.shape, out.data}), shares, 0, d.q.batch*d.q.count)
	return out.finish()
}

// modified runs a subgraph, if the attribute of that name holds one, on scores in the
// given precision.
func modified[T floating](c *Call, name string, precision tensor.Type, scores []T, shape []int) ([]T, error) {
	if c.Attribute(name) == nil {
		return scores, nil
	}
	g, err := c.Subgraph(name)
	if err != nil {
		return nil, err
	}
	given, err := tensor.Make(scores, shape...)
	if err == nil && precision != given.Type() {
		if given, err = c.New(precision, shape...); err == nil && !narrow(c, given, scores) {
			err = c.Unsupported("softmax_precision %s", precision)
		}
	}
	if err != nil {
		return nil, err
	}
	values, err := c.RunGraph(g, given)
	if err != nil {
		return nil, err
	}
	if len(values) != 1 {
		return nil, c.Errorf("%q gives %d outputs, not one", name, len(values))
	}
	d, ok := values[0].(*tensor.Dense)
	if !ok || !slices.Equal(d.Shape(), shape) {
		return nil, c.Errorf("%q does not give scores of shape %v", name, shape)
	}
	if d.Type() == tensor.Float64 && tensor.TypeOf[T]() == tensor.Float32 {
		wide := tensor.Data[float64](d)
		data, err := scratch[T](c, shape...)
		if err == nil {
			convertTo(c, data, wide, func(v float64) T { return T(v) })
		}
		return data, err
	}
	data, ok := widened[T](d)
	if !ok {
		return nil, c.Errorf("%q gives %s, which is no type for scores", name, d.Type())
	}
	return data, nil
}
