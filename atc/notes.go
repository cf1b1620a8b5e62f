package atc

import (
	"regexp"
	"slices"
	"strconv"
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
	{"chip-unknown", checks | singleOp, flags("soc_version"), chipUnknown},
	{"range-deprecated", checks, flags("input_shape_range"), rangeDeprecated},
	{"weight-unused", checks, flags("weight", "framework"), ifGiven("weight", weightUnused)},
	{"size-overwritten", builds, flags("model", "input_shape"), ifONNX(sizeOverwritten)},
	{"range-swapped", builds, flags("input_shape", "input_shape_range"), rangeSwapped},
	{"gear-zero", builds, append(flags("input_shape"), gearFlagNames...), gearZero},
	{"hw_layout-alone", builds, flags("input_fp16_nodes", "is_input_adjust_hw_layout"), layoutAlone},
	{"keep_dtype-idle", checks, flags("keep_dtype", "precision_mode", "precision_mode_v2"), ifGiven("keep_dtype", keepIdle)},
	{"keep_dtype-beaten", checks, flags("keep_dtype", "customize_dtypes"), ifGiven("keep_dtype", keepBeaten)},
	{"optypelist-for-all", checks | singleOp, flags("optypelist_for_implmode", "op_select_implmode"), ifGiven("optypelist_for_implmode", typesForAll)},
	{"op_name_map-unused", checks, flags("op_name_map", "framework"), ifGiven("op_name_map", ifONNX(nameMapUnused))},
	{"dump_mode-idle", builds | preCheck, flags("dump_mode"), dumpIdle},
	{"debug-idle", builds, flags("op_debug_level", "debug_dir", "op_compiler_cache_mode"), debugIdle},
	{"deprecated", checks, flags("shape_generalized_build_mode", "allow_hf32"), deprecated},
	{"gear-large-batch", builds, append(flags("input_shape"), gearFlagNames...), largeBatch},
	{"hint-form", builds, flags("input_hint_shape", "model"), ifGiven("input_hint_shape", ifONNX(hintForm))},
	{"aipp-form", builds, flags("insert_op_conf", "model", "dynamic_image_size"), ifGiven("insert_op_conf", ifONNX(formOfAIPP))},
	{"small_channel-alone", builds, flags("enable_small_channel", "insert_op_conf"), smallChannelAlone},
	{"operators-unknown", checks, flags("model"), ifONNX(unknownOperators)},
	{"late-files", builds, nil, lateFiles}, // each flag for itself
	{"late-forms", builds, nil, valuesThatFail},
	{"bank-letters", anyTask, flags("op_bank_path", "mdl_bank_path", "singleop"), bankLetters},
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

// flagsUnknown notes the flags that only a newer toolkit can know.
func flagsUnknown(c *checker) (out []Diagnosis) {
	for _, u := range c.line.Unknown {
		out = append(out, note(u.Name, "--%s: not in npuctl's table of ATC's flags; %s will decide", u.Name, c.env.Toolkit.name()).with("%s", u.suggestion()))
	}
	return out
}

// suggestion is what was meant, when it was a mistake.
func (u UnknownFlag) suggestion() string {
	if len(u.problem.Names) < 2 {
		return ""
	}
	return u.problem.Remedy
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

func keepBeaten(c *checker) []Diagnosis {
	if c.value("customize_dtypes") == "" {
		return nil
	}
	return []Diagnosis{note("keep_dtype", "--customize_dtypes wins over --keep_dtype where both name an operator").about("--customize_dtypes")}
}

func typesForAll(c *checker) []Diagnosis {
	mode := c.value("op_select_implmode")
	if !strings.HasSuffix(mode, "_for_all") {
		return nil
	}
	return []Diagnosis{note("optypelist_for_implmode", "--optypelist_for_implmode goes with %s: --op_select_implmode=%s is for all types", listed(implModes[:2]), mode).
		about("--op_select_implmode").with("write --op_select_implmode=%s", strings.TrimSuffix(mode, "_for_all"))}
}

func nameMapUnused(*checker) []Diagnosis {
	return []Diagnosis{note("op_name_map", "--op_name_map is for Caffe and does nothing for ONNX").with("leave it out")}
}

func dumpIdle(c *checker) []Diagnosis {
	if c.value("dump_mode") != "1" {
		return nil
	}
	return []Diagnosis{note("dump_mode", "--dump_mode=1 does something in --mode=1 only").with("leave it out")}
}

// debugIdle is about what belongs to a level of debugging, and what a level switches off.
func debugIdle(c *checker) (out []Diagnosis) {
	level := c.value("op_debug_level")
	if c.value("debug_dir") != "" && level == "0" {
		out = append(out, note("debug_dir", "--debug_dir does nothing without --op_debug_level").about("--op_debug_level"))
	}
	if mode := c.value("op_compiler_cache_mode"); mode != "disable" && level != "0" {
		out = append(out, note("op_compiler_cache_mode", "--op_compiler_cache_mode=%s does nothing beside --op_debug_level=%s", mode, level).about("--op_debug_level"))
	}
	return out
}

func deprecated(c *checker) (out []Diagnosis) {
	for flag, why := range map[string]string{
		"shape_generalized_build_mode": "is deprecated", "allow_hf32": "is reserved, and does nothing yet",
	} {
		if c.isSet(flag) {
			out = append(out, note(flag, "--%s %s", flag, why).with("leave it out"))
		}
	}
	slices.SortFunc(out, func(a, b Diagnosis) int { return strings.Compare(a.Message, b.Message) })
	return out
}

// mostBatch is the largest batch that the user guide proposes.
const mostBatch = 2048

func largeBatch(c *checker) []Diagnosis {
	kind, text, ok := c.gearText()
	if !ok || kind != BatchGears {
		return nil
	}
	rows, _ := gearRows(kind, text)
	if !slices.ContainsFunc(rows, func(row []int64) bool { return row[0] > mostBatch }) {
		return nil
	}
	return []Diagnosis{note(kind.Flag(), "--dynamic_batch_size has a batch beyond %d, the most that the guide proposes", mostBatch)}
}

func readHint(text string) (index int, dims int, ok bool) {
	m := hintEntry.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return 0, 0, false
	}
	index, err := strconv.Atoi(m[1])
	return index, strings.Count(m[2], ",") + 1, err == nil
}

// hintEntry is one entry of --input_hint_shape: the number of an input and its sizes.
var hintEntry = regexp.MustCompile(`^(\d+):\[(\d+(?:,\d+)*)\]$`)

// hintForm holds --input_hint_shape against the inputs it numbers.
func hintForm(c *checker) (out []Diagnosis) {
	inputs := c.graph().inputs
	for _, entry := range strings.Split(c.value("input_hint_shape"), ";") {
		index, dims, ok := readHint(entry)
		switch {
		case !ok:
			out = append(out, note("input_hint_shape", "--input_hint_shape: %q is not of the form index:[sizes]", entry).with(`write it as --input_hint_shape="0:[1,3,224,224]"`))
		case index >= len(inputs):
			out = append(out, note("input_hint_shape", "--input_hint_shape: there is no input %d, the model has %d, counted from 0", index, len(inputs)))
		case inputs[index].ranked && dims != len(inputs[index].dims):
			out = append(out, note("input_hint_shape", "--input_hint_shape gives input %d (%s) %d sizes, in the model it has %d axes", index, inputs[index].name, dims, len(inputs[index].dims)).about(inputs[index].name))
		}
	}
	return out
}

func smallChannelAlone(c *checker) []Diagnosis {
	if c.value("enable_small_channel") != "1" || c.value("insert_op_conf") != "" {
		return nil
	}
	return []Diagnosis{note("enable_small_channel", "--enable_small_channel=1 does something with static AIPP only").about("--insert_op_conf")}
}
