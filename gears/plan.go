package gears

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Plan is a choice of gears for a model.
type Plan struct {
	// Axes are the open axes, in the order of the inputs and their dims.
	Axes []Axis `json:"axes"`
	// Gears lists the sizes: one number for each axis.
	Gears [][]int64 `json:"gears"`
}

// Axis is a size that gears choose.
type Axis struct {
	Name string `json:"name"` // symbolic name; "" when the model gives none
	// Places are where the size occurs. One number of a gear sets them all.
	Places []Place `json:"places"`
}

// Place is a dim of an input, counted from 0.
type Place struct {
	Input string `json:"input"`
	Dim   int    `json:"dim"`
}

func (p Place) String() string { return fmt.Sprintf("%s[%d]", p.Input, p.Dim) }

func (a Axis) String() string {
	places := make([]string, len(a.Places))
	for i, p := range a.Places {
		places[i] = p.String()
	}
	if a.Name == "" {
		return strings.Join(places, ", ")
	}
	return fmt.Sprintf("%s (%s)", a.Name, strings.Join(places, ", "))
}

// Input is what a plan must know of a model's input: its dims, each a size, a
// name, or neither.
type Input struct {
	Name string
	Dims []Dim
}

// Dim is one axis of an input.
type Dim struct {
	Size int64  // of a fixed axis
	Open bool   // the size is not known
	Name string // of an open axis, when the model names it
}

// OpenAxes lists the axes that inputs leave open. Those of one name are one.
func OpenAxes(inputs []Input) (axes []Axis) {
	for _, in := range inputs {
		for i, d := range in.Dims {
			if !d.Open {
				continue
			}
			place := Place{in.Name, i}
			at := slices.IndexFunc(axes, func(a Axis) bool { return d.Name != "" && a.Name == d.Name })
			if at < 0 {
				axes = append(axes, Axis{d.Name, []Place{place}})
				continue
			}
			axes[at].Places = append(axes[at].Places, place)
		}
	}
	return axes
}

// maxGears bounds what is read of a list; every limit of a chip is lower.
const maxGears = 1024

// Parse reads a list of gears as people write it: gears apart by semicolons and
// the numbers of a gear by commas; where there is one number a gear, commas do.
//
//	262;326;390     1,2,4,8     224,224;336,336
//
// Names of the axes may stand before it, with a colon, for [Fit]:
//
//	height,width: 224,224;336,336
func Parse(text string) (gears [][]int64, err error) {
	_, gears, err = parseNamed(text)
	return gears, err
}

// parseNamed reads a list, and the names before it; nil where there are none.
func parseNamed(text string) (names []string, gears [][]int64, err error) {
	if head, list, ok := strings.Cut(text, ":"); ok {
		for name := range strings.SplitSeq(head, ",") {
			names = append(names, strings.TrimSpace(name))
		}
		if slices.Contains(names, "") {
			return nil, nil, fmt.Errorf("before the colon the names of the axes are wanted, as in height,width: 224,224;336,336")
		}
		text = list
	}
	gears, err = parseList(text)
	return names, gears, err
}

func parseList(text string) (gears [][]int64, err error) {
	text = strings.TrimRight(strings.TrimSpace(text), ";, ")
	if text == "" {
		return nil, fmt.Errorf("no gears are given")
	}
	for _, part := range strings.Split(text, ";") {
		var gear []int64
		for _, word := range strings.Split(part, ",") {
			n, err := parseSize(strings.TrimSpace(word))
			if err != nil {
				return nil, err
			}
			gear = append(gear, n)
		}
		gears = append(gears, gear)
		if len(gears) > maxGears {
			return nil, fmt.Errorf("more than %d gears", maxGears)
		}
	}
	return gears, nil
}

// parseSize reads one size of a gear.
func parseSize(word string) (int64, error) {
	n, err := strconv.ParseInt(word, 10, 32)
	switch {
	case errors.Is(err, strconv.ErrRange) && !strings.HasPrefix(word, "-"):
		return 0, fmt.Errorf("%s is too large for a size: at most %d", word, math.MaxInt32)
	case err != nil || n < 1:
		return 0, fmt.Errorf("%q is no size: give whole numbers from 1 to %d", word, math.MaxInt32)
	}
	return n, nil
}

// Fit makes a plan of a list of gears for a model. A gear has a number for each
// open axis; one for each open place does as well, in the order of the inputs,
// which is how ATC wants them. Where the list names its axes as the model does, they come
// in the model's order, whatever that of the list. What does not fit is an error that
// names the axes.
func Fit(inputs []Input, text string) (Plan, error) {
	names, list, err := parseNamed(text)
	if err != nil {
		return Plan{}, err
	}
	axes := OpenAxes(inputs)
	if len(axes) == 0 {
		return Plan{}, fmt.Errorf("the model leaves no dim open that gears could set; give the one whose sizes are not fixed yet (--batch, --dim and --input-shape of npuctl optimize fix them)")
	}
	if len(axes) == 1 && len(list) == 1 { // 1,2,4,8
		list = columns(list[0])
	}
	if list, err = inOrder(list, names, axes); err != nil {
		return Plan{}, err
	}
	if places := openPlaces(inputs); len(places) != len(axes) && allOfLength(list, len(places)) {
		axes = places
	}
	p := Plan{axes, list}
	return p, p.check()
}

// inOrder gives gears the order of a model's axes. Names of which the model knows none, as
// where it names no axis, are no more than a comment: then the order is right as it is.
func inOrder(list [][]int64, names []string, axes []Axis) ([][]int64, error) {
	order := make([]int, len(axes)) // of the numbers in a gear
	known := 0
	for i, axis := range axes {
		if order[i] = slices.Index(names, axis.Name); order[i] >= 0 && axis.Name != "" {
			known++
		}
	}
	switch {
	case known == 0 || !allOfLength(list, len(names)):
		return list, nil // the numbers of each gear are counted later
	case known < len(axes) || len(names) != len(axes):
		return nil, fmt.Errorf("the gears are of %s, the model leaves %s open: %s", strings.Join(names, ", "), axesText(len(axes)), Plan{Axes: axes}.axisNames())
	}
	sorted := make([][]int64, len(list))
	for i, gear := range list {
		for _, at := range order {
			sorted[i] = append(sorted[i], gear[at])
		}
	}
	return sorted, nil
}

// columns makes a gear of each number.
func columns(numbers []int64) (gears [][]int64) {
	for _, n := range numbers {
		gears = append(gears, []int64{n})
	}
	return gears
}

// openPlaces are the open dims, each an axis of its own.
func openPlaces(inputs []Input) (axes []Axis) {
	for _, a := range OpenAxes(inputs) {
		for _, p := range a.Places {
			axes = append(axes, Axis{a.Name, []Place{p}})
		}
	}
	order := map[Place]int{}
	for _, in := range inputs {
		for i := range in.Dims {
			order[Place{in.Name, i}] = len(order)
		}
	}
	slices.SortFunc(axes, func(a, b Axis) int { return order[a.Places[0]] - order[b.Places[0]] })
	return axes
}

func allOfLength(list [][]int64, n int) bool {
	return !slices.ContainsFunc(list, func(g []int64) bool { return len(g) != n })
}

func (p Plan) check() error {
	for i, gear := range p.Gears {
		if len(gear) != len(p.Axes) {
			return fmt.Errorf("gear %s has %s, the model leaves %s open: %s", Text(gear), numbers(len(gear)), axesText(len(p.Axes)), p.axisNames())
		}
		for _, earlier := range p.Gears[:i] {
			if slices.Equal(earlier, gear) {
				return fmt.Errorf("gear %s is given twice", Text(gear))
			}
		}
	}
	if len(p.Gears) < 2 {
		return fmt.Errorf("one gear is none: give at least two, or fix the shape")
	}
	return nil
}

func numbers(n int) string {
	if n == 1 {
		return "1 number"
	}
	return fmt.Sprintf("%d numbers", n)
}

func axesText(n int) string {
	if n == 1 {
		return "1 axis"
	}
	return fmt.Sprintf("%d axes", n)
}

func (p Plan) axisNames() string {
	names := make([]string, len(p.Axes))
	for i, a := range p.Axes {
		names[i] = a.String()
	}
	return strings.Join(names, ", ")
}

// Text writes a gear as people do: 224,224.
func Text(gear []int64) string {
	words := make([]string, len(gear))
	for i, n := range gear {
		words[i] = strconv.FormatInt(n, 10)
	}
	return strings.Join(words, ",")
}

// SizeAt is the size that a gear of the plan gives a dim of an input; ok is false
// when no axis has it.
func (p Plan) SizeAt(gear []int64, place Place) (size int64, ok bool) {
	for i, a := range p.Axes {
		if slices.Contains(a.Places, place) && i < len(gear) {
			return gear[i], true
		}
	}
	return 0, false
}

// Largest is the gear with the most elements in the places it sets; memory is
// sized for it.
func (p Plan) Largest() []int64 {
	return slices.MaxFunc(p.Gears, func(a, b []int64) int {
		x, y := 1.0, 1.0
		for i := range p.Axes {
			x, y = x*float64(a[i]), y*float64(b[i])
		}
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
}
