package eval

import (
	"slices"
	"strings"

	"github.com/npuctl/npuctl/onnx/eval/internal/gemm"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// einsumOperators sum products over named axes.
var einsumOperators = []operator{
	{name: "Einsum", since: 12, run: onNumbers(0, tensor.Numbers[Kernel]{
		Float32: einsum[float32], Float64: einsum[float64],
		Int32: einsum[int32], Int64: einsum[int64], Uint32: einsum[uint32], Uint64: einsum[uint64],
	})},
}

// label names an axis: the character of the equation, or -1, -2, … for the axes that
// an ellipsis stands for, counted from the last.
type label int

// einsum multiplies its operands from left to right. Labels that no later operand
// and not the output needs are summed over as soon as they can be, so that what is
// left of two operands is a batch of matrix products.
func einsum[T number](c *Call) error {
	first, err := c.Tensor(0)
	if err != nil {
		return err
	}
	terms, output, err := parseEinsum(c)
	if err != nil {
		return err
	}
	sizes, err := labelSizes(c, terms)
	if err != nil {
		return err
	}
	e := &einsumOf[T]{c: c, sizes: sizes}
	sum, err := e.operand(0, terms[0])
	if err != nil {
		return err
	}
	for i := 1; i < len(terms); i++ {
		next, err := e.operand(i, terms[i])
		if err != nil {
			return err
		}
		if sum, err = e.multiply(sum, next, neededBy(terms[i+1:], output)); err != nil {
			return err
		}
	}
	if sum, err = e.reduce(sum, output); err != nil {
		return err
	}
	for _, l := range output {
		if !slices.Contains(sum.labels, l) {
			return c.Errorf("the output's %q is in no term of the equation", rune(l))
		}
	}
	out, err := newResult[T](c, 0, first.Type(), e.shape(output)...)
	if err != nil {
		return err
	}
	view, err := e.arrange(sum, output)
	if err != nil {
		return err
	}
	copy(out.data, view)
	return out.finish()
}

// labeled is an array whose axes have labels, each at most once.
type labeled struct {
	labels []label
	array  *tensor.Dense
}

type einsumOf[T number] struct {
	c     *Call
	sizes map[label]int
}

// shape gives the sizes of labels.
func (e *einsumOf[T]) shape(labels []label) []int {
	shape := make([]int, len(labels))
	for i, l := range labels {
		shape[i] = e.sizes[l]
	}
	return shape
}

// operand gives input i in the type to compute in, with the diagonal taken of labels
// that occur more than once, and axes of size 1 stretched to their label's size.
func (e *einsumOf[T]) operand(i int, term []label) (labeled, error) {
	v, err := numberInput[T](e.c, i)
	if err != nil {
		return labeled{}, err
	}
	d, err := tensor.Make(v.data, v.shape...)
	if err != nil {
		return labeled{}, e.c.Errorf("%w", err)
	}
	own := tensor.Strides(v.shape)
	var labels []label
	var strides []int
	plain := true
	for axis, l := range term {
		step := own[axis]
		if v.shape[axis] != e.sizes[l] {
			step, plain = 0, false
		}
		if at := slices.Index(labels, l); at >= 0 {
			strides[at] += step
			plain = false
			continue
		}
		labels, strides = append(labels, l), append(strides, step)
	}
	if !plain {
		if d, err = e.c.Strided(d, 0, e.shape(labels), strides); err != nil {
			return labeled{}, err
		}
	}
	return labeled{labels, d}, nil
}

// neededBy gives the labels that terms or the output have.
func neededBy(terms [][]label, output []label) []label {
	return append(slices.Concat(terms...), output...)
}

// arrange gives the elements of x with its axes in the order of labels, which are
// all of its own.
func (e *einsumOf[T]) arrange(x labeled, labels []label) ([]T, error) {
	if slices.Equal(x.labels, labels) {
		return tensor.Data[T](x.array), nil
	}
	own := tensor.Strides(x.array.Shape())
	strides := make([]int, len(labels))
	for i, l := range labels {
		strides[i] = own[slices.Index(x.labels, l)]
	}
	d, err := e.c.Strided(x.array, 0, e.shape(labels), strides)
	if err != nil {
		return nil, err
	}
	return tensor.Data[T](d), nil
}

// reduce sums over the labels that are not needed.
func (e *einsumOf[T]) reduce(x labeled, needed []label) (labeled, error) {
	var kept, summed []label
	for _, l := range x.labels {
		if slices.Contains(needed, l) {
			kept = append(kept, l)
		} else {
			summed = append(summed, l)
		}
	}
	if len(summed) == 0 {
		return x, nil
	}
	data, err := e.arrange(x, slices.Concat(kept, summed))
	if err != nil {
		return x, err
	}
	out, err := e.c.New(tensor.TypeOf[T](), e.shape(kept)...)
	if err != nil {
		return x, err
	}
	sums, size := tensor.Data[T](out), product(e.shape(summed))
	e.c.Parallel(len(sums), 1+elementGrain/max(1, size), func(first, last int) {
		for i := first; i < last; i++ {
			var sum T
			for _, v := range data[i*size:][:size] {
				sum += v
			}
			sums[i] = sum
		}
	})
	return labeled{kept, out}, nil
}

// multiply gives the product of two arrays, summed over the labels that are not needed.
func (e *einsumOf[T]) multiply(a, b labeled, needed []label) (labeled, error) {
	var err error
	if a, err = e.reduce(a, slices.Concat(needed, b.labels)); err != nil {
		return a, err
	}
	if b, err = e.reduce(b, slices.Concat(needed, a.labels)); err != nil {
		return b, err
	}
	var batch, rows, depth, columns []label
	for _, l := range a.labels {
		switch {
		case !slices.Contains(b.labels, l):
			rows = append(rows, l)
		case slices.Contains(needed, l):
			batch = append(batch, l)
		default:
			depth = append(depth, l)
		}
	}
	for _, l := range b.labels {
		if !slices.Contains(a.labels, l) {
			columns = append(columns, l)
		}
	}
	left, err := e.arrange(a, slices.Concat(batch, rows, depth))
	if err != nil {
		return a, err
	}
	right, err := e.arrange(b, slices.Concat(batch, depth, columns))
	if err != nil {
		return b, err
	}
	labels := slices.Concat(batch, rows, columns)
	out, err := e.c.New(tensor.TypeOf[T](), e.shape(labels)...)
	if err != nil {
		return a, err
	}
	g := einsumGrid{product(e.shape(batch)), product(e.shape(rows)), product(e.shape(depth)), product(e.shape(columns))}
	multiplyGrid(e.c, g, tensor.Data[T](out), left, right)
	return labeled{labels, out}, nil
}

// einsumGrid is a batch of matrix products of one size.
type einsumGrid struct{ batch, rows, depth, columns int }

// multiplyGrid adds to the matrices in out the products of those in a and b.
func multiplyGrid[T number](c *Call, g einsumGrid, out, a, b []T) {
	k := multiplier[T](c)
	for first := 0; first < g.batch; first += productChunk {
		last := min(first+productChunk, g.batch)
		list := make([]gemm.Product[T], 0, last-first)
		for i := first; i < last; i++ {
			list = append(list, gemm.Product[T]{
				C: out[i*g.rows*g.columns:][:g.rows*g.columns], Step: g.columns,
				A: k.Left(gemm.RowMajor(a[i*g.rows*g.depth:][:g.rows*g.depth], g.rows, g.depth)),
				B: k.Right(gemm.RowMajor(b[i*g.depth*g.columns:][:g.depth*g.columns], g.depth, g.columns)),
			})
		}
		k.Run(c.Parallel, list...)
	}
}

// parseEinsum reads the equation: the labels of every input, and of the output.
func parseEinsum(c *Call) (terms [][]label, output []label, err error) {
	equation := strings.ReplaceAll(c.String("equation", ""), " ", "")
	left, right, explicit := strings.Cut(equation, "->")
	parts := strings.Split(left, ",")
	if len(parts) != len(c.Inputs) {
		return nil, nil, c.Errorf("the equation %q has %d terms, the node %d inputs", equation, len(parts), len(c.Inputs))
	}
	dots := 0
	for i, part := range parts {
		d, err := c.Tensor(i)
		if err != nil {
			return nil, nil, err
		}
		hidden := d.Rank() - len(part) + len("...")
		if !strings.Contains(part, "...") {
			hidden = 0
		}
		term, err := parseTerm(c, part, hidden)
		if err != nil {
			return nil, nil, err
		}
		if len(term) != d.Rank() {
			return nil, nil, c.Errorf("term %q of the equation names %d axes, input %d has %d", part, len(term), i, d.Rank())
		}
		terms, dots = append(terms, term), max(dots, hidden)
	}
	if !explicit {
		return terms, implicitOutput(terms, dots), nil
	}
	output, err = parseTerm(c, right, dots)
	if err != nil {
		return nil, nil, err
	}
	for i, l := range output {
		if slices.Contains(output[:i], l) {
			return nil, nil, c.Errorf("the output of the equation %q names an axis twice", equation)
		}
	}
	return terms, output, nil
}

// parseTerm reads one term; its ellipsis stands for hidden axes.
func parseTerm(c *Call, term string, hidden int) ([]label, error) {
	var labels []label
	before, after, dotted := strings.Cut(term, "...")
	if hidden < 0 {
		return nil, c.Errorf("term %q of the equation names more axes than there are", term)
	}
	for _, part := range []string{before, after} {
		for _, r := range part {
			if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
				return nil, c.Errorf("term %q of the equation holds %q", term, r)
			}
			labels = append(labels, label(r))
		}
		for i := range hidden {
			if dotted {
				labels = append(labels, label(i-hidden))
			}
		}
		dotted = false
	}
	return labels, nil
}

// implicitOutput is the output of an equation that names none: the ellipsis, then
// the labels that occur once, in order.
func implicitOutput(terms [][]label, dots int) []label {
	var output []label
	for i := range dots {
		output = append(output, label(i-dots))
	}
	all := slices.Sorted(slices.Values(slices.Concat(terms...)))
	for i, l := range all {
		if l > 0 && (i == 0 || all[i-1] != l) && (i == len(all)-1 || all[i+1] != l) {
			output = append(output, l)
		}
	}
	return output
}

// labelSizes finds the size of each label; axes of size 1 stretch.
func labelSizes(c *Call, terms [][]label) (map[label]int, error) {
	sizes := map[label]int{}
	for i, term := range terms {
		d, err := c.Tensor(i)
		if err != nil {
			return nil, err
		}
		for axis, l := range term {
			size, known := sizes[l]
			dim := d.Shape()[axis]
			switch {
			case !known || size == 1:
				sizes[l] = dim
			case dim != size && dim != 1:
				return nil, c.Errorf("an axis of the equation has size %d and size %d", size, dim)
			}
		}
	}
	return sizes, nil
}
