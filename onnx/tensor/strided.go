package tensor

import (
	"fmt"
	"slices"
)

// Strided returns a fresh array of this shape whose element at index i is the
// element of d at offset + Σ i[axis]·strides[axis]. Strides may be 0 or negative,
// so Transpose, Slice, Expand, Split and diagonals are all of this form. It fails
// when an index would leave d.
func (d *Dense) Strided(offset int, shape, strides []int) (*Dense, error) {
	if err := d.checkStrided(offset, shape, strides); err != nil {
		return nil, fmt.Errorf("take shape %v with strides %v at %d from %v%v: %w",
			shape, strides, offset, d.typ, d.shape, err)
	}
	result, err := New(d.typ, shape...)
	if err != nil {
		return nil, err
	}
	if result.count == 0 {
		return result, nil
	}
	dims, merged := mergeAxes(shape, [][]int{strides})
	if t, ok := planTiles(dims, merged[0]); ok {
		tiledCopy.For(d.typ)(result, d, offset, t)
	} else {
		runCopy.For(d.typ)(result, d, offset, newWalk(dims, merged))
	}
	return result, nil
}

// checkStrided bounds the lowest and highest position that will be read.
func (d *Dense) checkStrided(offset int, shape, strides []int) error {
	count, err := Count(shape)
	if err != nil {
		return err
	}
	if len(strides) != len(shape) {
		return fmt.Errorf("%d strides for %d axes", len(strides), len(shape))
	}
	if count == 0 {
		return nil
	}
	if offset < 0 || offset >= d.count {
		return fmt.Errorf("offset is outside %d elements", d.count)
	}
	lowest, highest := offset, offset
	for axis, dim := range shape {
		if dim == 1 {
			continue
		}
		if limit := d.count / (dim - 1); strides[axis] > limit || strides[axis] < -limit {
			return fmt.Errorf("axis %d leaves the %d elements", axis, d.count)
		}
		span := strides[axis] * (dim - 1)
		lowest, highest = lowest+min(span, 0), highest+max(span, 0)
		if lowest < 0 || highest >= d.count {
			return fmt.Errorf("axis %d leaves the %d elements", axis, d.count)
		}
	}
	return nil
}

var runCopy = NewMovers(copyRuns[uint8], copyRuns[uint16], copyRuns[uint32],
	copyRuns[uint64], copyRuns[[2]uint64], copyRuns[string])

// copyRuns fills dst run by run.
func copyRuns[T Word](dst, src *Dense, offset int, walk *Walk) {
	to, from := Words[T](dst), Words[T](src)
	step := walk.Step(0)
	walk.Range(0, walk.Runs(), func(run int, at []int) {
		row := to[run*walk.Len():][:walk.Len()]
		start := offset + at[0]
		if step == 1 {
			Move(row, from[start:start+len(row)])
			return
		}
		for i := range row {
			row[i] = from[start+i*step]
		}
	})
}

// tiles is a plan to copy while the last axis changes places with another: rows
// that are contiguous in the source become columns of the result. Block by block,
// every cache line of both is used up while it is there.
type tiles struct {
	outer         *Walk // the other axes; operand 0 is the source, 1 the result
	rows, columns int
	rowStep       int // from row to row in the result; 1 in the source
	columnStep    int // from column to column in the source; 1 in the result
}

// tileSide is the side of a block: a cache line of 32-bit words. Larger blocks
// fall out of the first-level cache where dims are powers of two.
const tileSide = 16

// planTiles finds the axis to change places with. ok is false when rows are short
// or the result is better filled run by run.
func planTiles(dims, strides []int) (t tiles, ok bool) {
	last := len(dims) - 1
	across := slices.Index(strides, 1)
	if across < 0 || across == last || strides[last] == 0 || min(dims[across], dims[last]) < tileSide/2 {
		return tiles{}, false
	}
	own := Strides(dims)
	without := func(list []int) []int { return slices.Delete(slices.Clone(list[:last]), across, across+1) }
	return tiles{
		outer:      newWalk(without(dims), [][]int{without(strides), without(own)}),
		rows:       dims[across],
		columns:    dims[last],
		rowStep:    own[across],
		columnStep: strides[last],
	}, true
}

var tiledCopy = NewMovers(copyTiles[uint8], copyTiles[uint16], copyTiles[uint32],
	copyTiles[uint64], copyTiles[[2]uint64], copyTiles[string])

// copyTiles fills dst block by block.
func copyTiles[T Word](dst, src *Dense, offset int, t tiles) {
	to, from := Words[T](dst), Words[T](src)
	t.outer.Range(0, t.outer.Runs(), func(_ int, at []int) {
		for i := range t.outer.Len() {
			source := offset + at[0] + i*t.outer.Step(0)
			target := at[1] + i*t.outer.Step(1)
			for row := 0; row < t.rows; row += tileSide {
				for column := 0; column < t.columns; column += tileSide {
					copyTile(to, from, target+row*t.rowStep+column, source+row+column*t.columnStep,
						min(tileSide, t.rows-row), min(tileSide, t.columns-column), t)
				}
			}
		}
	})
}

// copyTile copies one block; target and source are the places of its first
// element.
func copyTile[T Word](to, from []T, target, source, rows, columns int, t tiles) {
	for row := range rows {
		line := to[target+row*t.rowStep:][:columns]
		at := source + row
		for column := range line {
			line[column] = from[at]
			at += t.columnStep
		}
	}
}
