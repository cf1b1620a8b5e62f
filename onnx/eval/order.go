package eval

import (
	"cmp"
	"math"
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// orderOperators look for the largest or smallest along an axis.
var orderOperators = []operator{
	{name: "ArgMax", since: 1, run: argument(true)},
	{name: "ArgMin", since: 1, run: argument(false)},
	{name: "TopK", since: 1, run: topK},
}

// orderable gives the elements of d in a type that Go can order, and refuses NaN
// while folding: the specification says nothing of its place. Here it counts as
// larger than everything else, but for ArgMin, which finds it, too, as NumPy does.
func (c *Call) orderable(d *tensor.Dense) (*tensor.Dense, error) {
	d, err := c.widen(d)
	if err != nil {
		return nil, err
	}
	return d, c.foldsNaN(d, "the order of NaN")
}

// foldsNaN refuses to fold what a call makes of NaN, where the specification is silent.
func (c *Call) foldsNaN(d *tensor.Dense, what string) error {
	if !c.Strict() || !d.Type().IsFloat() {
		return nil
	}
	values, _ := d.Float64s()
	if slices.ContainsFunc(values, math.IsNaN) {
		return c.Undefined("%s", what)
	}
	return nil
}

var argumentKernels = tensor.Numbers[func(in *tensor.Dense, l line, most, last bool) int64]{
	Float32: argumentLine[float32], Float64: argumentLine[float64],
	Int8: argumentLine[int8], Int16: argumentLine[int16], Int32: argumentLine[int32], Int64: argumentLine[int64],
	Uint8: argumentLine[uint8], Uint16: argumentLine[uint16], Uint32: argumentLine[uint32], Uint64: argumentLine[uint64],
}

// argument makes ArgMax (most) or ArgMin: the first place of the extreme element,
// or the last one when select_last_index says so.
func argument(most bool) Kernel {
	return func(c *Call) error {
		d, err := c.Tensor(0)
		if err != nil {
			return err
		}
		axis, err := normalAxis(c, c.Int("axis", 0), d.Rank())
		if err != nil {
			return err
		}
		n := d.Shape()[axis]
		if n == 0 {
			return c.Errorf("axis %d of shape %v holds nothing to choose from", axis, d.Shape())
		}
		in, err := c.orderable(d)
		if err != nil {
			return err
		}
		find := argumentKernels.For(in.Type())
		if find == nil {
			return c.noKernel(d.Type())
		}
		out, err := Output[int64](c, 0, reducedShape(d.Shape(), []int{axis}, c.Int("keepdims", 1) != 0)...)
		if err != nil {
			return err
		}
		last := c.Int("select_last_index", 0) != 0
		c.Parallel(len(out), elementGrain/n+1, func(first, end int) {
			for i := first; i < end; i++ {
				out[i] = find(in, lineAt(i, d.Shape(), axis), most, last)
			}
		})
		return nil
	}
}

// argumentLine finds the extreme element of one line. A NaN stays once it is found.
func argumentLine[T tensor.Number](d *tensor.Dense, l line, most, last bool) int64 {
	in := tensor.Data[T](d)
	found, best, at := 0, in[l.first], l.first
	for k := range l.n {
		v := in[at]
		at += l.step
		if v > best && most || v < best && !most || v == best && last || v != v && best == best {
			found, best = k, v
		}
		if best != best {
			break
		}
	}
	return int64(found)
}

var topKernels = tensor.Numbers[func(c *Call, rows *tensor.Dense, k int, most bool) []int]{
	Float32: topRows[float32], Float64: topRows[float64],
	Int8: topRows[int8], Int16: topRows[int16], Int32: topRows[int32], Int64: topRows[int64],
	Uint8: topRows[uint8], Uint16: topRows[uint16], Uint32: topRows[uint32], Uint64: topRows[uint64],
}

// topK gives the k largest or smallest along an axis, and where they stand: the
// extreme one first, equal ones in the order of their places, whether the node
// asks for an order or not.
func topK(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	axis, err := normalAxis(c, c.Int("axis", -1), d.Rank())
	if err != nil {
		return err
	}
	k := []int64{c.Int("k", -1)}
	if c.Opset >= 10 {
		if k, err = c.IntsInput(1); err != nil {
			return err
		}
	}
	if len(k) != 1 || k[0] < 0 || k[0] > int64(d.Shape()[axis]) {
		return c.Errorf("k is %v for %d elements", k, d.Shape()[axis])
	}
	rows, n, err := c.rowsOf(d, []int{axis})
	if err != nil {
		return err
	}
	ordered, err := c.orderable(rows)
	if err != nil {
		return err
	}
	find := topKernels.For(ordered.Type())
	if find == nil {
		return c.noKernel(d.Type())
	}
	found := find(c, ordered, int(k[0]), c.Int("largest", 1) != 0)
	return c.setTop(d, axis, rows, n, int(k[0]), found)
}

// setTop makes the two outputs of the places found, k a row, and brings the axis
// back to where it was.
func (c *Call) setTop(d *tensor.Dense, axis int, rows *tensor.Dense, n, k int, found []int) error {
	values, err := c.New(d.Type(), len(found))
	if err != nil {
		return err
	}
	places, err := c.New(tensor.Int64, len(found))
	if err != nil {
		return err
	}
	for i, place := range found {
		tensor.Data[int64](places)[i] = int64(place)
		found[i] = place + i/k*n
	}
	takeBlocks.For(d.Type())(values, 0, rows, 0, found, 1)
	shape := append(removeDim(d.Shape(), axis), k)
	perm := make([]int, 0, d.Rank())
	for i := range d.Rank() - 1 {
		perm = append(perm, i)
	}
	perm = slices.Insert(perm, axis, d.Rank()-1)
	for i, list := range []*tensor.Dense{values, places} {
		if i >= len(c.Outputs) {
			break
		}
		if axis == d.Rank()-1 {
			err = c.Reshape(i, list, shape...)
		} else {
			c.Outputs[i], err = c.permuted(list, shape, perm)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func topRows[T tensor.Number](c *Call, rows *tensor.Dense, k int, most bool) []int {
	in, count, n := tensor.Data[T](rows), rows.Shape()[0], rows.Shape()[1]
	out := make([]int, count*k)
	c.Parallel(count, elementGrain/max(8*n, 1)+1, func(first, last int) {
		order := make([]int, n)
		for i := first; i < last; i++ {
			row := in[i*n : (i+1)*n]
			for place := range order {
				order[place] = place
			}
			slices.SortFunc(order, func(a, b int) int {
				by := compareNaNLast(row[a], row[b])
				if most {
					by = -by
				}
				if by == 0 {
					return cmp.Compare(a, b)
				}
				return by
			})
			copy(out[i*k:], order[:k])
		}
	})
	return out
}
