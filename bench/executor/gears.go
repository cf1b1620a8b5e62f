package executor

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/npuctl/npuctl/gears"
)

// Gears are the sizes that a model was compiled for. A batch runs in the smallest one
// that it fits, padded; one that is larger than the largest runs in several.
type Gears struct {
	inputs    []GearInput
	rows      [][]int64
	batchAxis bool
	signature *Signature
	classes   [][]fit // by class, as far as they are known
}

// GearInput is an input as the gears see it: with its batch axis, if it has one. A dim of
// -1 is set by the gears.
type GearInput struct {
	Input int // in the signature
	Dims  []int64
}

// Chunk is one run of a batch.
type Chunk struct {
	// Gear is the row of the gears, -1 where there are none.
	Gear int
	// Items run in it, in the order of the batch, behind those of the chunks before.
	Items int
	// Batch is what it has room for: Items and padding.
	Batch int
	// Elements are those of all inputs, and Padding those among them that are padding.
	Elements, Padding int64
	// Part is the stream of the batch that it runs on. The runs of a part follow each
	// other, parts run at the same time: see [Setup.StreamsPerBatch].
	Part int
}

// NewGears makes gears of rows, which have a number for each dim of -1 in the order of
// the inputs. Where the signature has a batch axis it is the first dim of every input.
func NewGears(s *Signature, inputs []GearInput, rows [][]int64) (*Gears, error) {
	open := 0
	for _, in := range inputs {
		own := s.Inputs[in.Input]
		if want := len(own.Dims) + boolToInt(s.MaxBatch > 0); len(in.Dims) != want {
			return nil, fmt.Errorf("the gears of input %q have %d dims, the input %d", own.Name, len(in.Dims), want)
		}
		for _, d := range in.Dims {
			open += boolToInt(d < 0)
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("no gears")
	}
	for _, row := range rows {
		if len(row) != open {
			return nil, fmt.Errorf("gear %s: it has %d numbers, and the inputs leave %d dims open", gears.Text(row), len(row), open)
		}
	}
	return &Gears{inputs: inputs, rows: rows, batchAxis: s.MaxBatch > 0, signature: s}, nil
}

// BatchGears makes gears for the batch alone. One gear of 1 is a static model: a batch of
// n is n runs.
func BatchGears(s *Signature, sizes ...int64) (*Gears, error) {
	if s.MaxBatch < 1 {
		return nil, fmt.Errorf("gears for the batch need a max_batch_size above 0")
	}
	if len(sizes) == 0 {
		return nil, fmt.Errorf("no gears")
	}
	g := &Gears{inputs: []GearInput{{Input: allInputs, Dims: []int64{-1}}}, batchAxis: true, signature: s}
	for _, size := range sizes {
		g.rows = append(g.rows, []int64{size})
	}
	return g, nil
}

// allInputs is the one input of gears for the batch alone: an element is an item there.
const allInputs = -1

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Len is the number of gears.
func (g *Gears) Len() int {
	if g == nil {
		return 0
	}
	return len(g.rows)
}

// Text writes a gear: 4, or 4,224,224.
func (g *Gears) Text(gear int) string { return gears.Text(g.rows[gear]) }

// fit is a gear that the shapes of a class fit.
type fit struct {
	gear     int
	batch    int
	elements int64 // of the gear
	used     int64 // of one item of the class
}

// fits lists the gears of a class, those of small batches first and of those the one
// with the fewest elements.
func (g *Gears) fits(c Class) []fit {
	for int(c) >= len(g.classes) {
		g.classes = append(g.classes, g.findFits(Class(len(g.classes))))
	}
	return g.classes[c]
}

func (g *Gears) findFits(c Class) (list []fit) {
	for i := range g.rows {
		if f, ok := g.fit(i, c); ok {
			list = append(list, f)
		}
	}
	slices.SortStableFunc(list, func(a, b fit) int {
		return cmp.Or(cmp.Compare(a.batch, b.batch), cmp.Compare(a.elements, b.elements))
	})
	return list
}

// fit says whether the shapes of a class fit a gear.
func (g *Gears) fit(gear int, c Class) (f fit, ok bool) {
	f = fit{gear: gear, batch: math.MaxInt}
	next := 0
	for _, in := range g.inputs {
		shape, isGiven := g.shape(in.Input, c)
		elements, used := int64(1), int64(1)
		for axis, d := range in.Dims {
			if d < 0 {
				d = g.rows[gear][next]
				next++
			}
			elements = multiply(elements, d)
			if g.batchAxis && axis == 0 {
				f.batch = min(f.batch, int(min(d, math.MaxInt32)))
				continue
			}
			if size := axis - boolToInt(g.batchAxis); isGiven && size < len(shape) {
				if shape[size] > d {
					return f, false
				}
				used = multiply(used, shape[size])
			}
		}
		if isGiven {
			f.elements, f.used = f.elements+elements, f.used+used
		}
	}
	if !g.batchAxis {
		f.batch = 1
	}
	return f, f.batch > 0
}

// shape gives the item's shape of an input in a class.
func (g *Gears) shape(input int, c Class) (shape []int64, isGiven bool) {
	if input == allInputs {
		return nil, true
	}
	for _, given := range g.signature.Shapes(c) {
		if given.Input == input {
			return given.Shape, true
		}
	}
	return nil, false
}

// multiply stops at the largest number.
func multiply(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// Fits says whether there is a gear for requests of a class, whatever their number.
// Without gears there always is.
func (g *Gears) Fits(c Class) bool { return g == nil || len(g.fits(c)) > 0 }

// Plan adds the runs of a batch to a list. There must be a gear that fits.
func (g *Gears) Plan(list []Chunk, c Class, items int) []Chunk {
	if g == nil {
		return append(list, Chunk{Gear: -1, Items: items, Batch: items})
	}
	fits := g.fits(c)
	for items > 0 {
		f := choose(fits, items)
		n := min(items, f.batch)
		list = append(list, Chunk{Gear: f.gear, Items: n, Batch: f.batch,
			Elements: f.elements, Padding: f.elements - multiply(f.used, int64(n))})
		items -= n
	}
	return list
}

// choose gives the gear with the fewest elements that has room for the items, or the one
// with the most room.
func choose(fits []fit, items int) fit {
	from, _ := slices.BinarySearchFunc(fits, items, func(f fit, n int) int { return cmp.Compare(f.batch, n) })
	if from == len(fits) {
		largest := fits[len(fits)-1].batch
		from, _ = slices.BinarySearchFunc(fits, largest, func(f fit, n int) int { return cmp.Compare(f.batch, n) })
	}
	best := fits[from]
	for _, f := range fits[from+1:] {
		if f.elements < best.elements {
			best = f
		}
	}
	return best
}
