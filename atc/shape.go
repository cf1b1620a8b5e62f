package atc

import (
	"slices"
	"strconv"
	"strings"
)

// Range is the sizes that one axis may have, from Low to High; High -1 is any
// size. Low equal to High is a fixed size.
type Range struct{ Low, High int64 }

// IsFixed says whether the axis has one size.
func (r Range) IsFixed() bool { return r.Low == r.High && r.High >= 0 }

// anySize is the axis of which nothing is said: -1 on the command line. ATC has
// such an axis begin at 1.
var anySize = Range{1, -1}

// Fixed is the axis of one size.
func Fixed(size int64) Range { return Range{size, size} }

// AnySize is the axis that may have any size, -1 on the command line.
func AnySize() Range { return anySize }

func (r Range) String() string {
	switch {
	case r.High < 0:
		return "-1"
	case r.Low == r.High && r.Low > 0:
		return strconv.FormatInt(r.Low, 10)
	}
	// A size of 0 passes as a range only.
	return strconv.FormatInt(r.Low, 10) + "~" + strconv.FormatInt(r.High, 10)
}

// InputShape is what --input_shape says of one input. No axes at all is a scalar.
type InputShape struct {
	Name string
	Axes []Range
}

// String writes the shape as --input_shape takes it: name:1,3~8,-1.
func (s InputShape) String() string {
	axes := make([]string, len(s.Axes))
	for i, a := range s.Axes {
		axes[i] = a.String()
	}
	return s.Name + ":" + strings.Join(axes, ",")
}

// ParseInputShape reads the value of --input_shape: name:axes, inputs separated by
// semicolons. A name may hold colons: the last one counts. The code of a failure is
// ATC's.
func ParseInputShape(text string) ([]InputShape, *Diagnosis) {
	if hasRange(text) && strings.Contains(text, "~") {
		return parseRangedShape(text)
	}
	sizes, d := parseSizes(text, true)
	if d != nil {
		return nil, d
	}
	shapes := make([]InputShape, len(sizes))
	for i, s := range sizes {
		shapes[i].Name = s.name
		for _, size := range s.sizes {
			if size < -1 || size == 0 {
				d := notPositive(s.name, size)
				return nil, &d
			}
			axis := Fixed(size)
			if size == -1 {
				axis = anySize
			}
			shapes[i].Axes = append(shapes[i].Axes, axis)
		}
	}
	return shapes, nil
}

func parseRangedShape(text string) ([]InputShape, *Diagnosis) {
	var shapes []InputShape
	for _, item := range strings.Split(text, ";") {
		name, axes, d := splitRanged(item)
		if d != nil {
			return nil, d
		}
		shape := InputShape{Name: strings.TrimSpace(name)}
		if axes != "" {
			if shape.Axes, d = parseAxes(axes); d != nil {
				return nil, d
			}
			if i := slices.IndexFunc(shape.Axes, func(a Range) bool { return a.High < -1 }); i >= 0 {
				d := notPositive(item, shape.Axes[i].High)
				return nil, &d
			}
		}
		shapes = append(shapes, shape)
	}
	return shapes, nil
}

// sizedInput is an input with its sizes as they were given: -1 is an axis that is
// open. No sizes at all is a scalar.
type sizedInput struct {
	name  string
	sizes []int64
}

// open counts the axes that are -1.
func (s sizedInput) open() (n int) {
	for _, size := range s.sizes {
		if size == -1 {
			n++
		}
	}
	return n
}

// hasRange says whether ATC reads --input_shape as ranges, which makes a model of
// dynamic shape. It looks at the text alone: an input named b-1 is enough.
func hasRange(text string) bool {
	return strings.Contains(text, "~") || strings.Contains(text, "-1")
}

// parseSizes reads --input_shape as plain numbers. Without gears every size has to
// be positive; with gears -1 marks the axes that change, and ATC lets other
// negative numbers and 0 pass.
func parseSizes(text string, gears bool) ([]sizedInput, *Diagnosis) {
	var out []sizedInput
	for _, item := range strings.Split(text, ";") {
		name, list, ok := splitName(item)
		if !ok {
			d := badShape(item, "it is not of the form name:sizes")
			return nil, &d
		}
		input := sizedInput{name: strings.TrimSpace(name)}
		if list != "" {
			for _, word := range strings.Split(list, ",") {
				size, d := parseSize(item, word)
				if d == nil && !gears && size <= 0 {
					bad := notPositive(item, size)
					d = &bad
				}
				if d != nil {
					return nil, d
				}
				input.sizes = append(input.sizes, size)
			}
		}
		out = append(out, input)
	}
	return out, nil
}

// splitName splits name:sizes at the last colon.
func splitName(item string) (name, sizes string, ok bool) {
	at := strings.LastIndexByte(item, ':')
	if at < 0 {
		return "", "", false
	}
	return item[:at], item[at+1:], true
}

// parseSize reads one size as ATC does: a point is refused first, then a number
// is read from the front, then what is left over is looked at.
func parseSize(item, word string) (int64, *Diagnosis) {
	word = strings.TrimSpace(word)
	var d Diagnosis
	size, digits, err := leadingInteger(word)
	switch {
	case strings.Contains(word, "."):
		d = badShape(item, "%s is not a whole number", word)
	case digits == 0:
		d = wrongValue("E10014", "input_shape", word, "a size is missing or is no number (in %q)", item)
	case err != nil:
		d = wrongValue("E10013", "input_shape", word, "the size is beyond 64 bits")
	case strings.Trim(strings.TrimPrefix(word, "-"), "0123456789") != "":
		d = badShape(item, "%s is not made of digits", word)
	default:
		return size, nil
	}
	return 0, &d
}

// leadingInteger reads the number that a text begins with, as C's strtol does;
// digits is how many digits it has.
func leadingInteger(text string) (n int64, digits int, err error) {
	at := 0
	if text != "" && (text[0] == '-' || text[0] == '+') {
		at = 1
	}
	end := at
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	if end == at {
		return 0, 0, nil
	}
	n, err = strconv.ParseInt(text[:end], 10, 64)
	return n, end - at, err
}

func badShape(value, why string, args ...any) Diagnosis {
	return wrongValue("E10002", "input_shape", value, why, args...).
		with(`write it as --input_shape="name:1,3,224,224;other:1,8"`)
}

func notPositive(item string, size int64) Diagnosis {
	return wrongValue("E10011", "input_shape", item, "sizes are positive, %d is not", size).
		with("give the real size, or -1 for an axis of any size")
}

// namedRange is an input with the ranges of its axes.
type namedRange struct {
	name string
	axes []Range
}

// rangesOfShape rewrites --input_shape, when it holds ranges, as ATC does: into
// the text of --input_shape_range, with names or by position.
func rangesOfShape(text string) (string, *Diagnosis) {
	items := strings.Split(text, ";")
	if !strings.Contains(text, ":") {
		for _, item := range items {
			if d := checkRangeLetters(item); d != nil {
				return "", d
			}
		}
		return "[" + strings.Join(items, "],[") + "]", nil
	}
	var ranges []string
	for _, item := range items {
		name, axes, d := splitRanged(item)
		if d != nil {
			return "", d
		}
		if axes != "" { // else a scalar
			ranges = append(ranges, name+":["+axes+"]")
		}
	}
	return strings.Join(ranges, ";"), nil
}

func splitRanged(item string) (name, axes string, d *Diagnosis) {
	name, axes, ok := splitName(item)
	switch {
	case !ok:
		bad := badShape(item, "it is not of the form name:sizes")
		return "", "", &bad
	case name == "":
		bad := badShape(item, "the input's name is missing")
		return "", "", &bad
	}
	return name, axes, checkRangeLetters(axes)
}

func checkRangeLetters(axes string) *Diagnosis {
	if strings.Trim(axes, "0123456789 ,~-") == "" {
		return nil
	}
	d := badShape(axes, "sizes are made of digits, -1 and ~")
	return &d
}

// parseRanges reads the value of --input_shape_range: name:[1~8,3,-1], inputs
// separated by semicolons. They come out in the order of their names, each once,
// as ATC keeps them.
func parseRanges(text string) ([]namedRange, *Diagnosis) {
	var out []namedRange
	for _, item := range strings.Split(text, ";") {
		name, list, ok := splitName(item)
		var d Diagnosis
		switch {
		case !ok:
			d = badRange(text, "%q is not of the form name:[sizes]", item)
		case list == "":
			d = badRange(text, "the ranges of %q are missing", item)
		default:
			axes, d := parseBrackets(list)
			if d != nil {
				return nil, d
			}
			name = strings.TrimSpace(name)
			if !slices.ContainsFunc(out, func(r namedRange) bool { return r.name == name }) {
				out = append(out, namedRange{name, axes})
			}
			continue
		}
		return nil, &d
	}
	slices.SortFunc(out, func(a, b namedRange) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// parseBrackets reads [1~8,3,-1]: one pair of brackets, no other.
func parseBrackets(text string) ([]Range, *Diagnosis) {
	brackets := strings.Map(func(r rune) rune {
		if r == '[' || r == ']' {
			return r
		}
		return -1
	}, text)
	if brackets != "[]" {
		d := badRange(text, "it takes one pair of brackets around the sizes")
		return nil, &d
	}
	return parseAxes(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
}

// parseAxes reads 1~8,3,-1.
func parseAxes(text string) ([]Range, *Diagnosis) {
	var axes []Range
	for _, word := range strings.Split(text, ",") {
		axis, d := parseAxis(text, word)
		if d != nil {
			return nil, d
		}
		axes = append(axes, axis)
	}
	return axes, nil
}

func parseAxis(text, word string) (Range, *Diagnosis) {
	ends := strings.Split(word, "~")
	var bounds []int64
	for _, end := range ends[:min(len(ends), 3)] {
		n, err := strconv.ParseInt(strings.TrimSpace(end), 10, 64)
		if err != nil {
			d := badRange(end, "it is no number (in %q)", text)
			if len(ends) > 2 {
				d = badRange(text, "%s has more than two ends", word)
			}
			return Range{}, &d
		}
		bounds = append(bounds, n)
	}
	switch {
	case len(bounds) == 1 && bounds[0] < 0:
		return Range{anySize.Low, bounds[0]}, nil
	case len(bounds) == 1:
		return Fixed(bounds[0]), nil
	case len(bounds) == 2 && bounds[0] >= 0 && bounds[1] >= 0:
		return Range{bounds[0], bounds[1]}, nil
	case len(bounds) == 2:
		d := badRange(text, "%s has an end below 0; an axis of any size is -1 alone", word)
		return Range{}, &d
	}
	d := badRange(text, "%s has more than two ends", word)
	return Range{}, &d
}

func badRange(value, why string, args ...any) Diagnosis {
	return wrongValue("E10048", "input_shape_range", value, why, args...).
		with(`write ranges as --input_shape="name:1~8,3,-1", or --input_shape_range="name:[1~8,3,-1]"`)
}
