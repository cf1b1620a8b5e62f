package tensor

import "fmt"

// Walk visits all positions of a shape in row-major order and knows where each of
// several operands stands at every step. Axes that all operands cross evenly are
// merged, so that what remains is few long runs:
//
//	walk, err := tensor.BroadcastWalk(shape, a.Shape(), b.Shape())
//	walk.Range(0, walk.Runs(), func(run int, at []int) {
//		// element i of this run: out[run*walk.Len()+i],
//		// a[at[0]+i*walk.Step(0)], b[at[1]+i*walk.Step(1)]
//	})
//
// A Walk does not change; parts of its range may be visited concurrently.
type Walk struct {
	dims    []int   // outer axes
	strides [][]int // by operand, along dims
	runs    int
	length  int   // positions in one run
	steps   []int // by operand, along the run
}

// NewWalk returns a walk over shape in which operand k moves strides[k][axis]
// elements along each axis.
func NewWalk(shape []int, strides ...[]int) (*Walk, error) {
	if _, err := Count(shape); err != nil {
		return nil, fmt.Errorf("walk: %w", err)
	}
	for k, s := range strides {
		if len(s) != len(shape) {
			return nil, fmt.Errorf("walk: operand %d has %d strides for shape %v", k, len(s), shape)
		}
	}
	return newWalk(mergeAxes(shape, strides)), nil
}

// newWalk splits merged axes into the outer ones and the run.
func newWalk(dims []int, strides [][]int) *Walk {
	w := &Walk{runs: 1, length: 1, steps: make([]int, len(strides)), strides: make([][]int, len(strides))}
	if last := len(dims) - 1; last >= 0 {
		w.length, w.dims = dims[last], dims[:last]
		for k, s := range strides {
			w.steps[k], w.strides[k] = s[last], s[:last]
		}
	}
	for _, dim := range w.dims {
		w.runs *= dim
	}
	if w.length == 0 {
		w.runs = 0
	}
	return w
}

// BroadcastWalk returns a walk over shape of operands that broadcast to it.
func BroadcastWalk(shape []int, operands ...[]int) (*Walk, error) {
	strides := make([][]int, len(operands))
	for k, operand := range operands {
		var err error
		if strides[k], err = BroadcastStrides(operand, shape); err != nil {
			return nil, err
		}
	}
	return NewWalk(shape, strides...)
}

// mergeAxes drops axes of one position and joins neighbours that every operand
// crosses with one constant step.
func mergeAxes(shape []int, strides [][]int) (dims []int, merged [][]int) {
	merged = make([][]int, len(strides))
	for axis, dim := range shape {
		if dim == 1 {
			continue
		}
		last := len(dims) - 1
		if last >= 0 && joins(strides, merged, axis, dim) {
			dims[last] *= dim
			for k := range merged {
				merged[k][last] = strides[k][axis]
			}
			continue
		}
		dims = append(dims, dim)
		for k := range merged {
			merged[k] = append(merged[k], strides[k][axis])
		}
	}
	return dims, merged
}

func joins(strides, merged [][]int, axis, dim int) bool {
	for k, m := range merged {
		if m[len(m)-1] != strides[k][axis]*dim {
			return false
		}
	}
	return true
}

// Runs returns the number of runs.
func (w *Walk) Runs() int { return w.runs }

// Len returns the number of positions in every run.
func (w *Walk) Len() int { return w.length }

// Step returns how many elements operand k moves from one position of a run to
// the next: 0 when it repeats one element, 1 when it is contiguous.
func (w *Walk) Step(k int) int { return w.steps[k] }

// Range calls visit for the runs first to last-1 in order, with the offset of
// each operand at the start of the run. The slice is reused from call to call.
func (w *Walk) Range(first, last int, visit func(run int, at []int)) {
	if first >= last {
		return
	}
	index := make([]int, len(w.dims))
	at := make([]int, len(w.steps))
	w.seek(first, index, at)
	for run := first; ; run++ {
		visit(run, at)
		if run+1 >= last {
			return
		}
		w.advance(index, at)
	}
}

// seek sets index and at to the start of a run.
func (w *Walk) seek(run int, index, at []int) {
	for axis := len(w.dims) - 1; axis >= 0; axis-- {
		index[axis] = run % w.dims[axis]
		run /= w.dims[axis]
		for k := range at {
			at[k] += index[axis] * w.strides[k][axis]
		}
	}
}

// advance moves index and at to the next run.
func (w *Walk) advance(index, at []int) {
	for axis := len(w.dims) - 1; axis >= 0; axis-- {
		index[axis]++
		back := 0
		if index[axis] == w.dims[axis] {
			back, index[axis] = w.dims[axis], 0
		}
		for k := range at {
			at[k] += (1 - back) * w.strides[k][axis]
		}
		if back == 0 {
			return
		}
	}
}
