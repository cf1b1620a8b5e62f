package atc

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// CodeNote marks what is no mistake but worth a look.
const CodeNote = "note"

// remarks are the things worth a look in a command line that compiles.
var remarks = []struct {
	name  string
	tasks task
	reads []string
	look  func(*checker) []Diagnosis
}{
	{"flag-twice", anyTask, nil, flagTwice},
	{"chip-caution", checks, flags("soc_version"), chipCaution},
	{"range-deprecated", checks, flags("input_shape_range"), rangeDeprecated},
	{"weight-unused", checks, flags("weight", "framework"), ifGiven("weight", weightUnused)},
	{"size-overwritten", builds, flags("model", "input_shape"), ifONNX(sizeOverwritten)},
	{"range-swapped", builds, flags("input_shape", "input_shape_range"), rangeSwapped},
	{"gear-zero", builds, append(flags("input_shape"), gearFlagNames...), gearZero},
	{"hw_layout-alone", builds, flags("input_fp16_nodes", "is_input_adjust_hw_layout"), layoutAlone},
	{"keep_dtype-idle", checks, flags("keep_dtype", "precision_mode", "precision_mode_v2"), ifGiven("keep_dtype", keepIdle)},
	{"plugins-needed", checks, flags("model"), ifONNX(pluginsNeeded)},
	{"late-files", builds, nil, lateFiles},
}

// notes looks at what is worth a word although ATC takes it.
func (c *checker) notes() (out []Diagnosis) {
	for _, r := range remarks {
		if c.concerns(rule{tasks: r.tasks, reads: r.reads}) {
			out = append(out, r.look(c)...)
		}
	}
	return out
}

func note(flag, format string, args ...any) Diagnosis {
	return problem(CodeNote, flag, format, args...)
}

func flagTwice(c *checker) (out []Diagnosis) {
	counts := map[string]int{}
	for _, s := range c.line.Settings {
		if counts[s.Flag.Name]++; counts[s.Flag.Name] == 2 {
			out = append(out, note(s.Flag.Name, "--%s is given more than once: the last value counts, %s", s.Flag.Name, c.line.Value(s.Flag.Name)))
		}
	}
	return out
}

func chipCaution(c *checker) []Diagnosis {
	chip, _, known := c.chip()
	if !known || chip.Caution == "" {
		return nil
	}
	return []Diagnosis{note("soc_version", "--soc_version=%s: %s", chip.Name, chip.Caution)}
}

func rangeDeprecated(c *checker) []Diagnosis {
	if c.value("input_shape_range") == "" {
		return nil
	}
	d := note("input_shape_range", "--input_shape_range is deprecated").with("--input_shape takes ranges too, without brackets")
	if c.value("input_shape") != "" {
		d.Message += ", and --input_shape beside it is passed over"
	}
	return []Diagnosis{d}
}

func weightUnused(c *checker) []Diagnosis {
	if !c.isONNX() {
		return nil
	}
	return []Diagnosis{note("weight", "--weight does nothing for ONNX, the model names its weights itself").with("leave it out")}
}

func sizeOverwritten(c *checker) (out []Diagnosis) {
	given := c.sortedInputs()
	for _, in := range c.graph().inputs {
		at := slices.IndexFunc(given, func(g sizedInput) bool { return g.name == in.name })
		if at < 0 || len(given[at].sizes) != len(in.dims) {
			continue
		}
		for i, size := range given[at].sizes {
			if in.dims[i] >= 0 && size != in.dims[i] {
				out = append(out, note("input_shape", "--input_shape gives axis %d of %q the size %d, the model says %d: ATC takes yours without a word", i, in.name, size, in.dims[i]).about(in.name))
			}
		}
	}
	return out
}

func rangeSwapped(c *checker) (out []Diagnosis) {
	for _, r := range c.ranges() {
		for i, a := range r.axes {
			if a.High >= 0 && a.Low > a.High {
				out = append(out, note("input_shape", "axis %d of %q has the range %d~%d, whose ends are swapped", i, r.name, a.Low, a.High).about(r.name))
			}
		}
	}
	return out
}

func gearZero(c *checker) []Diagnosis {
	kind, text, ok := c.gearText()
	if !ok {
		return nil
	}
	rows, _ := gearRows(kind, text)
	if !slices.ContainsFunc(rows, func(row []int64) bool { return slices.Contains(row, 0) }) {
		return nil
	}
	return []Diagnosis{note(kind.Flag(), "--%s has a size of 0, which ATC takes and no model does", kind.Flag())}
}

func layoutAlone(c *checker) []Diagnosis {
	layout, nodes := c.value("is_input_adjust_hw_layout"), c.value("input_fp16_nodes")
	entries := strings.Count(layout, ",") + 1
	if named := strings.Count(nodes, ";") + 1; layout == "" || nodes != "" && named == entries {
		return nil
	}
	return []Diagnosis{note("is_input_adjust_hw_layout", "--is_input_adjust_hw_layout has %d entries that do not go with --input_fp16_nodes=%s, one for one", entries, nodes)}
}

func keepIdle(c *checker) []Diagnosis {
	if c.value("precision_mode") != "must_keep_origin_dtype" && c.value("precision_mode_v2") != "origin" {
		return nil
	}
	return []Diagnosis{note("keep_dtype", "--keep_dtype does nothing here: the precision mode keeps every operator's type")}
}

// lateFiles are files that only the operator engines read, minutes into a compile.
func lateFiles(c *checker) (out []Diagnosis) {
	for _, flag := range flags("modify_mixlist", "customize_dtypes", "fusion_switch_file", "op_debug_config", "compression_optimize_conf") {
		path := c.value(flag)
		if path == "" || c.spoilt[flag] {
			continue
		}
		if _, err := os.Stat(c.path(path)); err != nil {
			out = append(out, note(flag, "--%s=%s: %s; the engines will miss it late in the compile", flag, path, reasonOf(err)).
				about(path).with("%s", c.fileRemedy(path)))
		}
	}
	if v := c.value("enable_small_channel"); v != "0" && v != "1" && v != "" {
		out = append(out, note("enable_small_channel", "%s", fmt.Sprintf("--enable_small_channel=%s: the guide knows 0 and 1", v)))
	}
	return out
}
