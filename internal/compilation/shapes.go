package compilation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/gears"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnxpass"
	"github.com/npuctl/npuctl/soc"
)

// shapes is how the inputs of a build are sized.
type shapes struct {
	kind   Kind
	inputs []gears.Input // after what the flags fix
	plan   *gears.Plan   // of a build with gears
	flag   atc.GearKind
}

// GearInputs describes a model's inputs as gears see them: those that a caller has
// to set. ATC takes an input with a stored value for a constant.
func GearInputs(m *onnx.Model) (inputs []gears.Input, err error) {
	for _, v := range fedInputs(m) {
		if !v.Type.IsTensor() || v.Type.Shape == nil {
			return nil, fault.New(fault.Input, "the input %s is %s: a compiled model takes tensors of known rank only", v.Name(), v.Type).
				With("give its shape with --input-shape %s:…", v.Name())
		}
		inputs = append(inputs, gearInput(v))
	}
	return inputs, nil
}

// fedInputs are the inputs that a caller has to set.
func fedInputs(m *onnx.Model) []*onnx.Value {
	return slices.DeleteFunc(onnxpass.RealInputs(m), func(v *onnx.Value) bool { return v.Initializer() != nil })
}

// gearInput describes an input of known rank.
func gearInput(v *onnx.Value) gears.Input {
	in := gears.Input{Name: v.Name()}
	for _, d := range v.Type.Shape.Dims {
		in.Dims = append(in.Dims, gears.Dim{Size: d.Value, Open: !d.Known, Name: d.Param})
	}
	return in
}

// chooseShapes decides how the build is sized, of a model whose sizes are set.
func (b *build) chooseShapes(m *onnx.Model) error {
	inputs, err := GearInputs(m)
	if err != nil {
		return err
	}
	b.shapes = shapes{kind: StaticKind, inputs: inputs}
	open := openDims(inputs)
	if b.job.Gears != "" || b.job.Dynamic {
		if err := refuseEmpty(inputs); err != nil {
			return err
		}
	}
	switch {
	case b.job.Gears != "":
		return b.fitGears()
	case b.job.Dynamic:
		b.shapes.kind = DynamicKind
		if len(open) == 0 {
			b.shapes.kind = StaticKind
			b.note("every input has a fixed shape, so that --dynamic changes nothing")
		}
	case len(open) > 0:
		b.result.Open = open
		return openError(open, b.job.Static)
	}
	b.result.Kind = b.shapes.kind
	return nil
}

// refuseEmpty refuses inputs without elements, which ATC takes in static models alone.
func refuseEmpty(inputs []gears.Input) error {
	for _, in := range inputs {
		for i, d := range in.Dims {
			if !d.Open && d.Size == 0 {
				return fault.New(fault.Usage, "dim %d of input %s has size 0: ATC takes no such input in a model with gears or open dims", i, in.Name).
					With("give it a size with --input-shape, or make the model static")
			}
		}
	}
	return nil
}

// openDims lists the dims that nothing fixes, and how to fix each.
func openDims(inputs []gears.Input) []OpenDim {
	out := []OpenDim{}
	for _, in := range inputs {
		for i, d := range in.Dims {
			if !d.Open {
				continue
			}
			var ways []string
			if i == 0 {
				ways = append(ways, "--batch N")
			}
			if d.Name != "" {
				ways = append(ways, fmt.Sprintf("--dim %s=SIZE", d.Name))
			} else if i > 0 { // no shorter way
				ways = append(ways, fmt.Sprintf("--input-shape %s:%s", in.Name, dimsText(in)))
			}
			out = append(out, OpenDim{Input: in.Name, Dim: i, Name: d.Name, Fix: strings.Join(ways, " or ")})
		}
	}
	return out
}

// dimsText writes dims as --input-shape takes them, open ones as N.
func dimsText(in gears.Input) string {
	words := make([]string, len(in.Dims))
	for i, d := range in.Dims {
		words[i] = "N"
		if !d.Open {
			words[i] = fmt.Sprint(d.Size)
		}
	}
	return strings.Join(words, ",")
}

// fixOf is the shortest list of flags that fixes all these dims.
func fixOf(open []OpenDim) string {
	var flags []string
	for _, d := range open {
		first, _, _ := strings.Cut(d.Fix, " or ")
		if !slices.Contains(flags, first) {
			flags = append(flags, first)
		}
	}
	return strings.Join(flags, " ")
}

// openError is the failure of a model with open inputs. With --static a goal was
// missed; else it is not said what to do with them.
func openError(open []OpenDim, static bool) error {
	first := open[0]
	what, them := fmt.Sprintf("dim %d of input %s is open", first.Dim, first.Input), "it"
	if len(open) > 1 {
		what, them = fmt.Sprintf("%s (%d dims in all)", what, len(open)), "them"
	}
	if static {
		return fault.New(fault.Goal, "--static: %s; nothing was written", what).With("fix %s with %s", them, fixOf(open))
	}
	return fault.New(fault.Usage, "%s", what).With("fix %s with %s, give sizes with --gears, or say --dynamic", them, fixOf(open))
}

// fitGears makes the plan of --gears and holds it against the chip.
func (b *build) fitGears() error {
	list := b.job.Gears
	plan, err := gears.Fit(b.shapes.inputs, list)
	if err != nil {
		f := fault.New(b.job.wishes.family("gears"), "%s %s: %w", b.job.wishes.name("gears"), list, err)
		return f.With("%s", b.gearRemedy())
	}
	family := b.chip.Shared()
	most := family.Gears()
	if family.Name == "" { // only CANN knows the chip
		most = soc.QueryGears
	}
	if len(plan.Gears) > most {
		return fault.New(b.job.wishes.family("gears"), "%s: %d gears, %s takes at most %d", b.job.wishes.name("gears"), len(plan.Gears), b.chip.Name, most).
			With("leave out those that are seldom used")
	}
	if family.DocumentedGears > soc.QueryGears && len(plan.Gears) == soc.QueryGears {
		b.note(fmt.Sprintf("the runtime can tell of %d gears at most", soc.QueryGears))
	}
	b.shapes.kind, b.shapes.plan, b.shapes.flag = GearsKind, &plan, gearFlag(b.shapes.inputs, plan)
	b.result.Kind, b.result.Gears = GearsKind, &plan
	return nil
}

// gearRemedy says what to do about gears that do not fit the model.
func (b *build) gearRemedy() string {
	axes := gears.OpenAxes(b.shapes.inputs)
	rows, err := gears.Parse(b.job.Gears)
	isOfAll := !slices.ContainsFunc(rows, func(row []int64) bool { return len(row) != len(axes) })
	switch {
	case len(axes) == 0 && b.sizesAreSet():
		return "--batch, --dim and --input-shape fix the dims that gears would set; leave them out, or --gears"
	case len(axes) < 2 || err != nil || isOfAll: // the message says it all
		return ""
	}
	return fmt.Sprintf("for gears of one of them fix the others first, with %s; else give every gear %d numbers, as in --gears %q",
		fixOf(openDims(b.shapes.inputs)), len(axes), exampleOf(len(axes)))
}

// exampleOf is a list of two gears with that many numbers each.
func exampleOf(axes int) string {
	return strings.TrimSuffix(strings.Repeat("1,", axes), ",") + ";" + strings.TrimSuffix(strings.Repeat("2,", axes), ",")
}

// gearFlag chooses the flag that fits a plan: the first axis alone is a batch,
// height and width of pictures a size of images, everything else dims.
func gearFlag(inputs []gears.Input, plan gears.Plan) atc.GearKind {
	isBatch, isImage := len(plan.Axes) == 1, len(plan.Axes) == 2
	for i, axis := range plan.Axes {
		for _, p := range axis.Places {
			isBatch = isBatch && p.Dim == 0
			isImage = isImage && p.Dim == i+2 && rankOf(inputs, p.Input) == 4
		}
	}
	if isImage { // both axes of every picture
		isImage = slices.EqualFunc(plan.Axes[0].Places, plan.Axes[1].Places, func(a, b gears.Place) bool { return a.Input == b.Input })
	}
	switch {
	case isBatch:
		return atc.BatchGears
	case isImage:
		return atc.ImageGears
	}
	return atc.DimsGears
}

func rankOf(inputs []gears.Input, name string) int {
	i := slices.IndexFunc(inputs, func(in gears.Input) bool { return in.Name == name })
	return len(inputs[i].Dims)
}

// gearRows are the gears as the flag takes them: dims want a number for every open
// place, in the order of the inputs.
func (s shapes) gearRows() [][]int64 {
	if s.flag != atc.DimsGears {
		return s.plan.Gears
	}
	var rows [][]int64
	for _, gear := range s.plan.Gears {
		var row []int64
		for _, in := range s.inputs {
			for i, d := range in.Dims {
				if !d.Open {
					continue
				}
				size, _ := s.plan.SizeAt(gear, gears.Place{Input: in.Name, Dim: i})
				row = append(row, size)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// inputShapes are the shapes of all inputs, with -1 for what is open.
func (s shapes) inputShapes() []atc.InputShape {
	list := make([]atc.InputShape, len(s.inputs))
	for i, in := range s.inputs {
		list[i].Name = in.Name
		for _, d := range in.Dims {
			axis := atc.AnySize()
			if !d.Open {
				axis = atc.Fixed(d.Size)
			}
			list[i].Axes = append(list[i].Axes, axis)
		}
	}
	return list
}

// gearTexts are the gears as ATC was given them, for messages.
func (s shapes) gearTexts() (texts []string) {
	if s.plan == nil {
		return nil
	}
	for _, row := range s.gearRows() {
		texts = append(texts, gears.Text(row))
	}
	return texts
}
