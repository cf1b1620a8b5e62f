package generate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/gears"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/terminal"
	"github.com/npuctl/npuctl/soc"
)

// gearSet are the gears of a graph.
type gearSet struct {
	plan gears.Plan
	// rows are what graph.ge.dynamicDims takes: a number for each open place, in the
	// order of the inputs.
	rows [][]int64
	// batchAxis is the axis of the plan that is the batch, or -1; largest its largest size.
	batchAxis int
	largest   int64
	// added are the gears that the user did not list, as text.
	added []string
}

// gearInputs are the inputs as package gears sees them.
func (s *signature) gearInputs() []gears.Input {
	list := make([]gears.Input, len(s.inputs))
	for i, in := range s.inputs {
		list[i].Name = in.name
		for k, d := range in.dims {
			if s.batch && k == 0 && d.name == "" {
				d.name = "batch" // one axis, though the model gives it no name
			}
			list[i].Dims = append(list[i].Dims, gears.Dim{Size: d.size, Open: d.size == open, Name: d.name})
		}
	}
	return list
}

// readGears makes the gears of a list for a model, and fills up the batches.
func (j *Job) readGears(s *signature) (*gearSet, error) {
	inputs := s.gearInputs()
	for _, in := range s.inputs {
		if len(in.dims) == 0 {
			return nil, fault.New(fault.Input, "%s: input %s is a scalar, and graph.ge.inputShape cannot say that", s.path, in.name).With("give it the shape [1] in the model")
		}
		if strings.ContainsAny(in.name, ";:,") {
			return nil, fault.New(fault.Input, "%s: input %q: graph.ge.inputShape cannot hold that name", s.path, in.name).With("rename the input in the model")
		}
	}
	plan, err := gears.Fit(inputs, j.Gears)
	if err != nil {
		f := fault.New(fault.Usage, "--gears %s: %w", j.Gears, err)
		if how := howToWrite(j.Gears, s); how != "" {
			f = f.With("%s", how)
		}
		return nil, f
	}
	if plan, err = mergeAxes(plan, gears.OpenAxes(inputs)); err != nil {
		return nil, fault.New(fault.Usage, "--gears %s: %w", j.Gears, err)
	}
	g := &gearSet{plan: plan, batchAxis: -1}
	if s.batch {
		g.batchAxis = slices.IndexFunc(plan.Axes, func(a gears.Axis) bool { return a.Places[0].Dim == 0 })
	}
	if err := g.fillBatches(j.Gears); err != nil {
		return nil, err
	}
	most, of := mostGears(j.Chip)
	if len(g.plan.Gears) > most {
		f := fault.New(fault.Usage, "--gears %s: %d gears, %s takes at most %d", j.Gears, len(g.plan.Gears), of, most)
		if len(g.added) > 0 {
			f = f.With("every batch up to the largest needs a gear, as npu_ge does not pad: lower the largest")
		}
		return nil, f
	}
	for _, gear := range g.plan.Gears {
		g.rows = append(g.rows, g.row(gear, s))
	}
	return g, nil
}

// howToWrite says what to do with gears of too few numbers, where there are several
// axes: fix some of them first, or write a number for each. "" where there is one axis.
func howToWrite(text string, s *signature) string {
	axes := gears.OpenAxes(s.gearInputs())
	list, err := gears.Parse(text)
	if err != nil || len(axes) < 2 {
		return ""
	}
	firsts := list[0] // as many gears as numbers
	if len(list) > 1 {
		firsts = nil
		for _, gear := range list {
			firsts = append(firsts, gear[0])
		}
	}
	names, flags := make([]string, len(axes)), make([]string, len(axes))
	for i, a := range axes {
		names[i], flags[i] = cmp.Or(a.Name, a.Places[0].String()), s.fixing(a)
	}
	var shown []string
	for _, n := range firsts[:min(len(firsts), 4)] {
		shown = append(shown, fmt.Sprintf("%d,%s", n, strings.Join(names[1:], ",")))
	}
	return fmt.Sprintf("first fix the axes that gears do not set: %s; or give each gear a number for each of %s: %q with sizes for %s",
		strings.Join(slices.Compact(flags), ", "), strings.Join(names, ", "), strings.Join(shown, ";"), strings.Join(names[1:], " and "))
}

// fixing is the flag that gives an open axis a size.
func (s *signature) fixing(a gears.Axis) string {
	switch {
	case s.batch && a.Places[0].Dim == 0:
		return "--batch 1"
	case a.Name != "":
		return "--dim " + a.Name + "=N"
	}
	return "--input-shape " + a.Places[0].Input + ":…"
}

// mostGears is how many gears a chip takes, or any.
func mostGears(chip *soc.Chip) (most int, of string) {
	if chip != nil {
		return chip.Shared().Gears(), chip.Name
	}
	for _, f := range soc.Families() {
		most = max(most, f.Gears())
	}
	return most, "a graph"
}

// mergeAxes makes a plan that has a number for each open place one with a number for
// each axis.
func mergeAxes(p gears.Plan, axes []gears.Axis) (gears.Plan, error) {
	if len(p.Axes) == len(axes) {
		return p, nil
	}
	merged := gears.Plan{Axes: axes}
	for _, gear := range p.Gears {
		row := make([]int64, len(axes))
		for i, axis := range axes {
			for _, place := range axis.Places {
				size, _ := p.SizeAt(gear, place)
				if row[i] != 0 && row[i] != size {
					return p, fmt.Errorf("gear %s: %s is one size, and gets %d and %d", gears.Text(gear), axis, row[i], size)
				}
				row[i] = size
			}
		}
		merged.Gears = append(merged.Gears, row)
	}
	return merged, nil
}

// fillBatches adds a gear for every batch from 1 to the largest, beside each choice of
// the other axes.
func (g *gearSet) fillBatches(text string) error {
	if g.batchAxis < 0 {
		return nil
	}
	var others [][]int64 // gears with the batch as 0
	for _, gear := range g.plan.Gears {
		g.largest = max(g.largest, gear[g.batchAxis])
		other := slices.Clone(gear)
		other[g.batchAxis] = 0
		if !slices.ContainsFunc(others, func(o []int64) bool { return slices.Equal(o, other) }) {
			others = append(others, other)
		}
	}
	if g.largest*int64(len(others)) > maxGears {
		return fault.New(fault.Usage, "--gears %s: every batch up to %d needs a gear, as %s does not pad: that is more than %d", text, g.largest, GE, maxGears).
			With("lower the largest batch")
	}
	var all [][]int64
	for _, other := range others {
		for batch := int64(1); batch <= g.largest; batch++ {
			gear := slices.Clone(other)
			gear[g.batchAxis] = batch
			if !slices.ContainsFunc(g.plan.Gears, func(have []int64) bool { return slices.Equal(have, gear) }) {
				g.added = append(g.added, gears.Text(gear))
			}
			all = append(all, gear)
		}
	}
	g.plan.Gears = all
	return nil
}

// maxGears bounds what is made of a list; every limit of a chip is lower.
const maxGears = 1024

// sizeAt is the size that a gear gives a dim of an input.
func (g *gearSet) sizeAt(gear []int64, input string, axis int) (size int64, ok bool) {
	return g.plan.SizeAt(gear, gears.Place{Input: input, Dim: axis})
}

// row gives a gear's number for each open place.
func (g *gearSet) row(gear []int64, s *signature) (row []int64) {
	for _, in := range s.inputs {
		for i, d := range in.dims {
			if d.size != open {
				continue
			}
			size, _ := g.sizeAt(gear, in.name, i)
			row = append(row, size)
		}
	}
	return row
}

// dimsText is the value of graph.ge.dynamicDims.
func (g *gearSet) dimsText() string {
	words := make([]string, len(g.rows))
	for i, row := range g.rows {
		words[i] = gears.Text(row)
	}
	return strings.Join(words, ";")
}

// shapeText is the value of graph.ge.inputShape.
func (s *signature) shapeText() string {
	parts := make([]string, len(s.inputs))
	for i, in := range s.inputs {
		words := make([]string, len(in.dims))
		for k, d := range in.dims {
			words[k] = strconv.FormatInt(d.size, 10)
		}
		parts[i] = in.name + ":" + strings.Join(words, ",")
	}
	return strings.Join(parts, ";")
}

// axesText names the axes that gears set.
func (g *gearSet) axesText() string {
	names := make([]string, len(g.plan.Axes))
	for i, a := range g.plan.Axes {
		names[i] = a.String()
	}
	return fmt.Sprintf("%s of %s", terminal.Counted(len(g.rows), "gear"), strings.Join(names, " and "))
}
