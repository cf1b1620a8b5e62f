package eval

import (
	"math"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// attentionMask is what an Attention adds to the scores of a query: a mask given as
// input 3, and -Inf for keys that come too late, too early or are padding.
type attentionMask[T floating] struct {
	queries, heads int // of an item of the batch
	keys           int
	causal         bool
	left, right    int // how far from its place a query looks; -1 for no bound

	given   []T // the mask; nil when there is none
	strides []int
	width   int // of the mask: keys beyond it are masked

	lengths []int64 // keys of each item that are not padding; nil when all are not
	past    int     // keys before the first query
}

func newAttentionMask[T floating](d *dot[T], past int) (*attentionMask[T], error) {
	c := d.c
	m := &attentionMask[T]{
		queries: d.q.length, heads: d.q.count, keys: d.k.length, past: past,
		causal: c.Int("is_causal", 0) != 0,
	}
	left, right := c.Int("left_window_size", -1), c.Int("right_window_size", -1)
	if min(left, right) < -1 {
		return nil, c.Errorf("a window of %d and %d is not possible", left, right)
	}
	m.left, m.right = int(min(left, tensor.MaxElements)), int(min(right, tensor.MaxElements))
	if err := m.readLengths(c, d.q.batch); err != nil {
		return nil, err
	}
	return m, m.readMask(c, d.q.batch)
}

func (m *attentionMask[T]) readLengths(c *Call, batch int) error {
	lengths, err := c.IntsInput(6)
	if err != nil || lengths == nil {
		return err
	}
	if len(lengths) != batch || c.Has(4) {
		return c.Errorf("%d key lengths for a batch of %d, or together with past keys", len(lengths), batch)
	}
	for _, n := range lengths {
		if n < 0 || n > int64(m.keys) {
			return c.Errorf("a key length of %d of %d", n, m.keys)
		}
	}
	m.lengths = lengths
	return nil
}

// readMask reads input 3, whose last dim may be shorter than the keys.
func (m *attentionMask[T]) readMask(c *Call, batch int) error {
	if !c.Has(3) {
		return nil
	}
	d, err := c.Tensor(3)
	if err != nil {
		return err
	}
	if d.Rank() == 0 {
		return c.Errorf("the mask is a scalar")
	}
	m.width = d.Shape()[d.Rank()-1]
	if m.width > m.keys {
		return c.Errorf("a mask of shape %v for %d keys", d.Shape(), m.keys)
	}
	if m.strides, err = tensor.BroadcastStrides(d.Shape(), []int{batch, m.heads, m.queries, m.width}); err != nil {
		return c.Errorf("the mask: %w", err)
	}
	if m.width == 1 {
		m.strides[3] = 0
	}
	m.given, err = maskValues[T](c, d)
	return err
}

// maskValues gives a mask as numbers to add: false is -Inf, true 0.
func maskValues[T floating](c *Call, d *tensor.Dense) ([]T, error) {
	values, err := scratch[T](c, d.Len())
	if err != nil {
		return nil, err
	}
	if d.Type() == tensor.Bool {
		for i, attend := range tensor.Data[bool](d) {
			if !attend {
				values[i] = T(math.Inf(-1))
			}
		}
		return values, nil
	}
	wide, ok := d.Float64s()
	if !ok {
		return nil, c.Errorf("the mask is %s, which is no type for it", d.Type())
	}
	for i, v := range wide {
		values[i] = T(v)
	}
	return values, nil
}

// fill writes what is added to the scores of query r of all, counted on over heads and
// items of the batch. It says whether every key is masked.
func (m *attentionMask[T]) fill(bias []T, r int) (masked bool) {
	query, head, item := r%m.queries, r/m.queries%m.heads, r/m.queries/m.heads
	m.fillGiven(bias, query, head, item)
	first, last := 0, m.keys
	place := query + m.past
	if m.lengths != nil {
		last = int(m.lengths[item])
		place = query + last - m.queries
	}
	if m.causal {
		last = min(last, place+1)
	}
	if m.left >= 0 {
		first = max(first, place-m.left)
	}
	if m.right >= 0 {
		last = min(last, place+m.right+1)
	}
	first = min(max(first, 0), len(bias))
	last = max(last, first)
	none := T(math.Inf(-1))
	for i := range bias[:first] {
		bias[i] = none
	}
	for i := range bias[last:] {
		bias[last+i] = none
	}
	for _, b := range bias[first:last] {
		if b != none {
			return false
		}
	}
	return true
}

func (m *attentionMask[T]) fillGiven(bias []T, query, head, item int) {
	if m.given == nil {
		clear(bias)
		return
	}
	if m.width > 0 {
		row := m.given[item*m.strides[0]+head*m.strides[1]+query*m.strides[2]:]
		copy(bias[:m.width], row)
	}
	for i := range bias[m.width:] {
		bias[m.width+i] = T(math.Inf(-1))
	}
}
