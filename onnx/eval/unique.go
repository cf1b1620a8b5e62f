package eval

import (
	"cmp"
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// selectOperators give as many elements as their input's values make them.
var selectOperators = []operator{
	{name: "NonZero", since: 9, run: nonZero},
	{name: "Unique", since: 11, run: unique},
}

// nonZero gives the positions of elements that are not zero, false or empty, one
// column each. Of a scalar there is no axis to tell: the result has shape [0,n].
func nonZero(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	if d.Rank() == 0 {
		if err := c.Undefined("the places of a single number"); err != nil {
			return err
		}
	}
	var places []int
	keep := func(i int, zero bool) {
		if !zero {
			places = append(places, i)
		}
	}
	if d.Type() == tensor.String {
		for i, s := range tensor.Data[string](d) {
			keep(i, s == "")
		}
	} else if d.Type().IsComplex() {
		return c.noKernel(d.Type())
	} else {
		truth, err := c.cast(d, tensor.Bool)
		if err != nil {
			return err
		}
		for i, v := range tensor.Data[bool](truth) {
			keep(i, !v)
		}
	}
	out, err := Output[int64](c, 0, d.Rank(), len(places))
	if err != nil {
		return err
	}
	for axis := d.Rank() - 1; axis >= 0; axis-- {
		dim, row := d.Shape()[axis], out[axis*len(places):]
		for i, place := range places {
			row[i] = int64(place % dim)
			places[i] = place / dim
		}
	}
	return nil
}

// unique finds the distinct elements, or the distinct slices along an axis, with
// the first place of each, the one that every element is equal to, and how often
// each occurs. NaNs come last and count as equal, as in NumPy; the specification
// does not say so, and folding refuses them.
func unique(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	axis := 0
	rows := d
	if c.Attribute("axis") == nil {
		d, err = d.Reshape(d.Len())
		rows = d
	} else if axis, err = normalAxis(c, c.Int("axis", 0), d.Rank()); err == nil {
		perm := []int{axis}
		for i := range d.Rank() {
			if i != axis {
				perm = append(perm, i)
			}
		}
		rows, err = c.permuted(d, d.Shape(), perm)
	}
	if err != nil {
		return err
	}
	compare, err := c.rowOrder(rows)
	if err != nil {
		return err
	}
	groups := groupRows(rows.Shape()[0], compare)
	if c.Int("sorted", 1) == 0 {
		slices.SortFunc(groups, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
	}
	return c.setUnique(d, axis, groups)
}

// groupRows sorts n rows and puts equal ones together; each group is in order.
func groupRows(n int, compare func(a, b int) int) (groups [][]int) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, compare)
	for start := 0; start < n; {
		end := start + 1
		for end < n && compare(order[start], order[end]) == 0 {
			end++
		}
		groups = append(groups, order[start:end])
		start = end
	}
	return groups
}

// setUnique makes the four outputs.
func (c *Call) setUnique(d *tensor.Dense, axis int, groups [][]int) error {
	first := make([]int, len(groups))
	for i, g := range groups {
		first[i] = g[0]
	}
	var err error
	if c.Outputs[0], err = c.taken(d, axis, first, []int{len(first)}); err != nil {
		return err
	}
	lengths := []int{0, len(groups), d.Shape()[axis], len(groups)}
	var lists [4][]int64
	for i := 1; i < len(c.Outputs) && i < len(lists); i++ {
		if lists[i], err = Output[int64](c, i, lengths[i]); err != nil {
			return err
		}
	}
	for i, g := range groups {
		if lists[1] != nil {
			lists[1][i] = int64(g[0])
		}
		if lists[2] != nil {
			for _, place := range g {
				lists[2][place] = int64(i)
			}
		}
		if lists[3] != nil {
			lists[3][i] = int64(len(g))
		}
	}
	return nil
}

// rowOrder gives the function that compares rows, along the first axis of d, by
// their elements from left to right.
func (c *Call) rowOrder(d *tensor.Dense) (func(a, b int) int, error) {
	switch d.Type() {
	case tensor.String:
		return orderRows(tensor.Data[string](d), d.Shape()), nil
	case tensor.Uint64:
		return orderRows(tensor.Data[uint64](d), d.Shape()), nil
	}
	if integers, ok := d.Int64s(); ok {
		return orderRows(integers, d.Shape()), nil
	}
	floats, ok := d.Float64s()
	if !ok {
		return nil, c.noKernel(d.Type())
	}
	for _, v := range floats {
		if v == v {
			continue
		}
		if err := c.Undefined("the order of NaN"); err != nil {
			return nil, err
		}
		break
	}
	return orderRows(floats, d.Shape()), nil
}

func orderRows[T cmp.Ordered](data []T, shape []int) func(a, b int) int {
	n := product(shape[1:])
	return func(a, b int) int {
		for i := range n {
			if order := compareNaNLast(data[a*n+i], data[b*n+i]); order != 0 {
				return order
			}
		}
		return 0
	}
}

// compareNaNLast orders as cmp.Compare does, but for NaNs, which come last.
func compareNaNLast[T cmp.Ordered](a, b T) int {
	switch {
	case a != a || b != b:
		return -cmp.Compare(a, b)
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
