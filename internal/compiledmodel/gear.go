package compiledmodel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/internal/ascendcl"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/om"
	"github.com/npuctl/npuctl/onnx"
)

// gearKinds are the kinds of gears as the runtime numbers them.
var gearKinds = map[string]ascendcl.GearKind{"batch": ascendcl.BatchGear, "image": ascendcl.ImageGear, "dims": ascendcl.DimsGear}

// Gears is how many gears there are.
func (f *File) Gears() int {
	if f.Signature.Gears == nil {
		return 0
	}
	return len(f.Signature.Gears.Rows)
}

// GearShapes gives the shape of every input in a gear, in the order of the inputs: the
// values of the gear fill the open dims in turn.
func (f *File) GearShapes(gear int) ([][]int64, error) {
	g := f.Signature.Gears
	row := g.Rows[gear]
	shapes := make([][]int64, len(f.Signature.Inputs))
	for _, i := range f.order() {
		in := f.Signature.Inputs[i]
		shapes[i] = slices.Clone(in.Dims)
		next := row // a batch, and height and width, are the same in every input
		if g.Kind == "dims" {
			next = row[:min(len(row), open(in))]
			row = row[len(next):]
		}
		if len(next) < open(in) {
			return nil, fault.New(fault.Input, "%s: gear %d has %d values, which is not enough for the open dims of its inputs", f.Path, gear, len(g.Rows[gear]))
		}
		for axis, n := range in.Dims {
			if n < 0 {
				shapes[i][axis], next = next[0], next[1:]
			}
		}
	}
	return shapes, nil
}

// order lists the inputs in the order in which gears fill them: that of the file, then
// those it does not name.
func (f *File) order() []int {
	var order []int
	for _, name := range f.Signature.Gears.Order {
		if i := slices.IndexFunc(f.Signature.Inputs, func(t om.Tensor) bool { return t.Name == name }); i >= 0 && !slices.Contains(order, i) {
			order = append(order, i)
		}
	}
	for i := range f.Signature.Inputs {
		if !slices.Contains(order, i) {
			order = append(order, i)
		}
	}
	return order
}

func open(t om.Tensor) (n int) {
	for _, d := range t.Dims {
		if d < 0 {
			n++
		}
	}
	return n
}

// GearFor chooses the gear of these input shapes, in the order of the inputs. Sizes
// that are between gears are a mistake of whoever gives them: padding is not the engine's
// to do.
func (f *File) GearFor(shapes [][]int) (ascendcl.Gear, error) {
	switch {
	case f.Open:
		return ascendcl.Gear{Kind: ascendcl.OpenShape}, nil
	case f.Signature.Gears == nil:
		return ascendcl.Gear{Kind: ascendcl.NoGear}, nil
	}
	gear, err := f.GearOf(shapes)
	if err != nil {
		return ascendcl.Gear{}, err
	}
	have, err := f.GearShapes(gear)
	return f.gear(f.Signature.Gears.Rows[gear], have), err
}

// GearOf gives the number of the gear of these input shapes. That there is none is a
// mistake of usage: the file is as it should be.
func (f *File) GearOf(shapes [][]int) (int, error) {
	for gear := range f.Gears() {
		have, err := f.GearShapes(gear)
		if err != nil {
			return 0, err
		}
		if same(shapes, have) {
			return gear, nil
		}
	}
	return 0, fault.New(fault.Usage, "%s has no gear for inputs of %v: it has gears %s", f.Path, shapes, f.GearText()).
		With("pad the inputs to a gear, or compile the model with this one")
}

// GearsFor lists the gears that agree with the known sizes of a model, which is
// [File.Model] with some dims fixed: the last of the file first, as it is most often
// the largest.
func (f *File) GearsFor(m *onnx.Model) ([]int, error) {
	var list []int
	for gear := f.Gears() - 1; gear >= 0; gear-- {
		shapes, err := f.GearShapes(gear)
		if err != nil {
			return nil, err
		}
		agrees := true
		for i, in := range m.Graph.Inputs() {
			for axis, d := range in.Type.Shape.Dims {
				agrees = agrees && (!d.Known || d.Value == shapes[i][axis])
			}
		}
		if agrees {
			list = append(list, gear)
		}
	}
	if len(list) > 0 {
		return list, nil
	}
	var asked []string
	for i, in := range m.Graph.Inputs() {
		if open(f.Signature.Inputs[i]) > 0 {
			asked = append(asked, in.Name()+" "+in.Type.String())
		}
	}
	return nil, fault.New(fault.Usage, "%s has no gear for %s: it has gears %s", f.Path, strings.Join(asked, ", "), f.GearText()).
		With("choose one of them with --batch, --dim or --input-shape, or compile the model with this one")
}

func same(shapes [][]int, have [][]int64) bool {
	return slices.EqualFunc(shapes, have, func(a []int, b []int64) bool {
		return slices.EqualFunc(a, b, func(x int, y int64) bool { return int64(x) == y })
	})
}

// gear puts a gear as the runtime wants it: for dims these are all of all inputs.
func (f *File) gear(row []int64, shapes [][]int64) ascendcl.Gear {
	g := ascendcl.Gear{Kind: gearKinds[f.Signature.Gears.Kind], Values: row}
	if g.Kind == ascendcl.DimsGear {
		g.Values = nil
		for _, i := range f.order() {
			g.Values = append(g.Values, shapes[i]...)
		}
	}
	return g
}

// GearText lists the gears for messages: "batch 1, 4, 8" or "dims 1,128; 1,256".
func (f *File) GearText() string {
	g := f.Signature.Gears
	var rows []string
	for _, row := range g.Rows {
		rows = append(rows, rowText(row))
	}
	separator := "; "
	if g.Kind == "batch" {
		separator = ", "
	}
	return g.Kind + " " + strings.Join(rows, separator)
}

// RowText writes one gear: "batch 4".
func (f *File) RowText(gear int) string {
	return f.Signature.Gears.Kind + " " + rowText(f.Signature.Gears.Rows[gear])
}

func rowText(row []int64) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(row), "[]"), " ", ",")
}
