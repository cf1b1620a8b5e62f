package atc

import (
	"slices"
	"strings"
)

// shapes is what --input_shape and --input_shape_range come to. ATC takes one of
// three ways by the text alone: gears, ranges, or fixed sizes.
type shapes struct {
	gears  GearKind
	sizes  string     // the text read as plain sizes: with gears, or fixed
	ranges string     // the text read as ranges
	wrong  *Diagnosis // what kept --input_shape from being read as ranges
}

// shape settles what the flags of shapes mean.
func (c *checker) shape() *shapes {
	if c.shapes == nil {
		c.shapes = c.readShape()
	}
	return c.shapes
}

func (c *checker) readShape() *shapes {
	s := &shapes{gears: c.gearKind(), sizes: c.value("input_shape")}
	if ranges := c.value("input_shape_range"); ranges != "" {
		s.ranges, s.sizes = ranges, ""
		return s
	}
	if s.gears == NoGears && hasRange(s.sizes) {
		s.ranges, s.wrong = rangesOfShape(s.sizes)
		s.sizes = ""
	}
	return s
}

// gearKind gives the kind of gears that is given; with several, which is an error
// of its own, the first.
func (c *checker) gearKind() GearKind {
	for _, kind := range []GearKind{BatchGears, ImageGears, DimsGears} {
		if c.value(kind.Flag()) != "" {
			return kind
		}
	}
	return NoGears
}

// inputs gives the inputs with plain sizes, in the order of the command line.
// What does not parse is told by the rules of the grammar.
func (c *checker) inputs() []sizedInput {
	s := c.shape()
	if s.sizes == "" {
		return nil
	}
	inputs, _ := parseSizes(s.sizes, s.gears != NoGears)
	return inputs
}

// sortedInputs gives each input once, the first mention, by name: so ATC looks at
// them.
func (c *checker) sortedInputs() (out []sizedInput) {
	for _, in := range c.inputs() {
		if !slices.ContainsFunc(out, func(o sizedInput) bool { return o.name == in.name }) {
			out = append(out, in)
		}
	}
	slices.SortFunc(out, func(a, b sizedInput) int { return strings.Compare(a.name, b.name) })
	return out
}

func shapeForm(c *checker) *Diagnosis {
	s := c.shape()
	if s.gears != NoGears && s.ranges == "" && strings.Contains(s.sizes, "~") {
		d := problem("E10040", "input_shape", "--input_shape=%s: ranges (~) do not go with --dynamic_batch_size, --dynamic_image_size and --dynamic_dims", s.sizes).
			about("--" + s.gears.Flag()).with("write -1 for the axes that gears change")
		return &d
	}
	return s.wrong
}

func gearNoHint(c *checker) *Diagnosis {
	hint, kind := c.value("input_hint_shape"), c.gearKind()
	if hint == "" || kind == NoGears {
		return nil
	}
	d := wrongValue("E10001", "input_hint_shape", hint, "it does not go with --%s", kind.Flag()).
		about("--" + kind.Flag()).with("leave one of them out")
	return &d
}

func gearExclusive(c *checker) *Diagnosis {
	var given []string
	for _, flag := range append(slices.Clone(gearFlagNames), "input_shape_range") {
		if c.value(flag) != "" {
			given = append(given, "--"+flag)
		}
	}
	// Ranges inside --input_shape are told before, so these are the flags' own.
	if len(given) < 2 {
		return nil
	}
	d := Diagnosis{Code: "E10009", Names: given, Message: "of --dynamic_batch_size, --dynamic_image_size, --dynamic_dims and --input_shape_range only one can be given, here are " + strings.Join(given, " and ")}
	d = d.with("--dynamic_dims can do what the others do")
	return &d
}

// rangeForm looks at the grammar of ranges that are given by name.
func rangeForm(c *checker) *Diagnosis {
	s := c.shape()
	if s.gears != NoGears || !strings.Contains(s.ranges, ":") {
		return nil
	}
	_, d := parseRanges(s.ranges)
	return d
}

// rangePositions refuses ranges without names, which only the model's parser does.
func rangePositions(c *checker) *Diagnosis {
	s := c.shape()
	if s.ranges == "" || strings.Contains(s.ranges, ":") {
		return nil
	}
	_, d := parseRanges(s.ranges)
	return d
}

func gearShapeNeeded(c *checker) *Diagnosis {
	s := c.shape()
	if s.gears == NoGears || s.sizes != "" {
		return nil
	}
	d := problem("E10004", "input_shape", "--input_shape is empty, --%s needs it", s.gears.Flag()).
		with("list the inputs, with -1 for the axes that gears change")
	return &d
}

func gearShapeForm(c *checker) *Diagnosis {
	s := c.shape()
	if s.gears == NoGears {
		return nil
	}
	_, d := parseSizes(s.sizes, true)
	return d
}

// shapeStatic looks at the grammar of fixed sizes. ATC does so late.
func shapeStatic(c *checker) *Diagnosis {
	s := c.shape()
	if s.gears != NoGears || s.sizes == "" {
		return nil
	}
	_, d := parseSizes(s.sizes, false)
	return d
}

// gearBatch asks for -1 in front of some input, and nowhere else in it.
func gearBatch(c *checker) *Diagnosis {
	if c.shape().gears != BatchGears {
		return nil
	}
	var d Diagnosis
	hasBatch := false
	for _, in := range c.sortedInputs() {
		if len(in.sizes) == 0 {
			d = problem("E10012", "dynamic_batch_size", "--dynamic_batch_size: --input_shape lists %q as a scalar, which has no batch axis", in.name).
				about("--input_shape", in.name).with("use --dynamic_dims with --input_format=ND, which takes scalars")
			return &d
		}
		if in.sizes[0] != -1 {
			continue
		}
		if at := slices.IndexFunc(in.sizes[1:], func(size int64) bool { return size < 0 }); at >= 0 {
			d = problem("E10018", "dynamic_batch_size", "--dynamic_batch_size changes the first axis only, but axis %d of %q is %d in --input_shape", at+1, in.name, in.sizes[at+1]).
				about("--input_shape", in.name).with("fix it, or use --dynamic_dims")
			return &d
		}
		hasBatch = true
	}
	if !hasBatch {
		d = problem("E10031", "dynamic_batch_size", "--dynamic_batch_size: no input of --input_shape has -1 as its first axis").
			about("--input_shape").with("write -1 as the first axis of the inputs that have the batch")
		return &d
	}
	_, wrong := checkGearLetters(BatchGears, c.value("dynamic_batch_size"))
	return wrong
}

// gearImage asks for -1 as height and width, and nowhere else.
func gearImage(c *checker) *Diagnosis {
	if c.shape().gears != ImageGears {
		return nil
	}
	const place = "--dynamic_image_size changes height and width only"
	var d Diagnosis
	hasImage := false
	for _, in := range c.sortedInputs() {
		if in.open() == 0 {
			continue
		}
		if len(in.sizes) != 4 {
			d = problem("E10019", "dynamic_image_size", "%s: %q has %d axes in --input_shape, images have 4", place, in.name, len(in.sizes)).
				about("--input_shape", in.name).with("use --dynamic_dims with --input_format=ND")
			return &d
		}
		height := slices.Index([]string{"", "NHWC", "NCHW"}, c.layout())
		if height < 1 {
			d = problem("E10003", "input_format", "--input_format=%s does not go with --dynamic_image_size, which takes NCHW", c.layout()).
				about("--dynamic_image_size").with("leave --input_format out, or use --dynamic_dims")
			return &d
		}
		if in.sizes[height] != -1 || in.sizes[height+1] != -1 || in.open() != 2 {
			d = problem("E10019", "dynamic_image_size", "%s: in --input_shape just these two axes of %q have to be -1", place, in.name).
				about("--input_shape", in.name).with("write %s:1,3,-1,-1, or use --dynamic_dims", in.name)
			return &d
		}
		hasImage = true
	}
	if !hasImage {
		d = problem("E10019", "dynamic_image_size", "%s: no input of --input_shape has -1 there", place).
			about("--input_shape").with("write -1 as height and width of the image")
		return &d
	}
	_, wrong := checkGearLetters(ImageGears, c.value("dynamic_image_size"))
	return wrong
}

func gearDims(c *checker) *Diagnosis {
	if c.shape().gears != DimsGears {
		return nil
	}
	open := 0
	for _, in := range c.sortedInputs() {
		open += in.open()
	}
	if open == 0 {
		d := problem("E10001", "input_shape", "--input_shape has no axis of -1, --dynamic_dims needs one").
			about("--dynamic_dims").with("write -1 for the axes that gears change")
		return &d
	}
	text, d := checkGearLetters(DimsGears, c.value("dynamic_dims"))
	if d != nil {
		return d
	}
	return checkDims(text, open)
}

func gearDimsAIPP(c *checker) *Diagnosis {
	conf := c.value("insert_op_conf")
	if conf == "" || c.value("dynamic_dims") == "" {
		return nil
	}
	d := wrongValue("E10001", "insert_op_conf", conf, "--dynamic_dims does not go with AIPP").
		about("--dynamic_dims").with("use --dynamic_batch_size or --dynamic_image_size, or scale the input elsewhere")
	return &d
}

// gearText is the value of the gears, without the separator that ATC drops; ok is
// whether there are gears of a sound form.
func (c *checker) gearText() (kind GearKind, text string, ok bool) {
	kind = c.shape().gears
	if kind == NoGears {
		return kind, "", false
	}
	text, d := checkGearLetters(kind, c.value(kind.Flag()))
	return kind, text, d == nil
}

// gearNumbers holds the gears against each other, and against each input's axes.
func gearNumbers(c *checker) *Diagnosis {
	kind, text, ok := c.gearText()
	if !ok {
		return nil
	}
	rows, d := gearRows(kind, text)
	if d != nil || len(rows) == 0 {
		return d // without gears at all ATC compiles on
	}
	inputs := c.inputs()
	if d := gearDimCount(kind, rows, inputs); d != nil {
		return d
	}
	if d := checkRows(kind.Flag(), rows); d != nil {
		return d
	}
	for _, in := range inputs {
		if in.open() > len(rows[0]) {
			d := problem("E10046", kind.Flag(), "--%s: a gear has %d numbers, %q has %d axes of -1 in --input_shape", kind.Flag(), len(rows[0]), in.name, in.open()).
				about("--input_shape", in.name).with("use --dynamic_dims")
			return &d
		}
	}
	return nil
}

// gearDimCount counts what is left in each gear of dims once empty numbers are
// dropped; an input that is listed twice counts twice here.
func gearDimCount(kind GearKind, rows [][]int64, inputs []sizedInput) *Diagnosis {
	if kind != DimsGears {
		return nil
	}
	open := 0
	for _, in := range inputs {
		open += in.open()
	}
	for _, row := range rows {
		if len(row) != open {
			d := problem("E10001", "dynamic_dims", "--dynamic_dims: a gear has %d numbers, --input_shape has %d axes of -1", len(row), open).
				about("--input_shape").with("list every input once, and give each gear one number for every -1")
			return &d
		}
	}
	return nil
}
