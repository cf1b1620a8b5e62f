package atc

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// GearKind says which axes gears change.
type GearKind int

// The kinds of gears; a command line has one at most.
const (
	NoGears    GearKind = iota
	BatchGears          // dynamic_batch_size: the first axis
	ImageGears          // dynamic_image_size: height and width of NCHW
	DimsGears           // dynamic_dims: any axes
)

// gearFlags are the flags of the kinds.
var gearFlags = map[GearKind]string{
	BatchGears: "dynamic_batch_size", ImageGears: "dynamic_image_size", DimsGears: "dynamic_dims",
}

// Flag is the flag of the kind, without dashes; "" for none.
func (k GearKind) Flag() string { return gearFlags[k] }

// Gears are the sizes a model is compiled for, beside each other in one .om.
type Gears struct {
	Kind GearKind
	// Rows lists the gears: one number each for batches, height and width for
	// images, for dims one number for every -1 of --input_shape in its order.
	Rows [][]int64
}

// String writes the gears as their flag takes them.
func (g Gears) String() string {
	rows := make([]string, len(g.Rows))
	for i, row := range g.Rows {
		words := make([]string, len(row))
		for j, n := range row {
			words[j] = strconv.FormatInt(n, 10)
		}
		rows[i] = strings.Join(words, ",")
	}
	if g.Kind == BatchGears {
		return strings.Join(rows, ",")
	}
	return strings.Join(rows, ";")
}

// ParseGears reads the value of a gear flag. The code of a failure is ATC's.
func ParseGears(kind GearKind, text string) (Gears, *Diagnosis) {
	text, d := checkGearLetters(kind, text)
	if d != nil {
		return Gears{}, d
	}
	rows, d := gearRows(kind, text)
	return Gears{kind, rows}, d
}

// checkGearLetters looks at the letters of a gear flag's value and drops the one
// separator at its end that ATC drops.
func checkGearLetters(kind GearKind, text string) (string, *Diagnosis) {
	var d Diagnosis
	switch kind {
	case BatchGears:
		if strings.Trim(text, "0123456789,") != "" {
			d = wrongValue("E10003", kind.Flag(), text, "it is made of digits and commas only, without blanks").
				with("write it as --dynamic_batch_size=1,2,4,8")
			return "", &d
		}
		return strings.TrimSuffix(text, ","), nil
	case ImageGears:
		text = strings.TrimSuffix(text, ";")
		if strings.Trim(text, "0123456789,; ") != "" {
			d = wrongValue("E10003", kind.Flag(), text, "it is made of digits, commas and semicolons only").
				with(`write it as --dynamic_image_size="224,224;448,448"`)
			return "", &d
		}
		for _, gear := range strings.Split(text, ";") {
			if strings.Count(gear, ",") != 1 {
				d = wrongValue("E10020", kind.Flag(), text, "every gear is a height and a width, %q is not", gear).
					with(`write it as --dynamic_image_size="224,224;448,448"`)
				return "", &d
			}
		}
		return text, nil
	}
	text = strings.TrimSuffix(text, ";")
	if text == "" {
		d = problem("E10058", kind.Flag(), "--dynamic_dims is empty")
		return "", &d
	}
	return text, nil
}

// checkDims looks at each gear of dynamic_dims: as many numbers as there are open
// axes, and digits only.
func checkDims(text string, open int) *Diagnosis {
	for _, gear := range strings.Split(text, ";") {
		words := strings.Split(gear, ",")
		if len(words) != open {
			d := wrongValue("E10003", "dynamic_dims", text, "the gear %q has %d numbers, --input_shape has %d axes of -1", gear, len(words), open).
				about("--input_shape").with("give each gear one number for every -1, in the order of --input_shape")
			return &d
		}
		for _, word := range words {
			if strings.Trim(word, "0123456789") != "" {
				d := wrongValue("E10001", "dynamic_dims", text, "%q is not made of digits only", word).
					with("write it without blanks and signs, as in \"1,64;1,128\"")
				return &d
			}
		}
	}
	return nil
}

// gearRows gives the gears as ATC's compiler reads them: empty numbers and empty
// gears count for nothing, a number beyond 64 bits is the largest there is.
func gearRows(kind GearKind, text string) (rows [][]int64, d *Diagnosis) {
	separator := ";"
	if kind == BatchGears {
		separator = ","
	}
	for _, gear := range strings.Split(text, separator) {
		var row []int64
		for _, word := range strings.Split(gear, ",") {
			if word == "" {
				continue
			}
			if strings.Trim(word, "0123456789") != "" {
				bad := wrongValue("E19999", kind.Flag(), text, "%q is not made of digits only, which the compiler does not take", word).
					with("leave the blanks out")
				return nil, &bad
			}
			n, err := strconv.ParseInt(word, 10, 64)
			if err != nil {
				n = math.MaxInt64
			}
			row = append(row, n)
		}
		if len(row) > 0 {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// checkRows holds the gears against each other.
func checkRows(flag string, rows [][]int64) *Diagnosis {
	var d Diagnosis
	if len(rows) < 2 {
		d = problem("E10035", flag, "--%s has %d profiles, the minimum is 2 gears", flag, len(rows)).
			with("fix the size in --input_shape instead, or add a gear")
		return &d
	}
	for i, row := range rows {
		if len(row) != len(rows[0]) {
			d = problem("E10037", flag, "--%s: one gear has %d numbers, another %d", flag, len(rows[0]), len(row))
			return &d
		}
		for j, earlier := range rows[:i] {
			if slices.Equal(earlier, row) {
				d = problem("E10039", flag, "--%s: gears %d and %d are the same, %v", flag, j+1, i+1, row).
					with("leave one of them out")
				return &d
			}
		}
	}
	return nil
}
