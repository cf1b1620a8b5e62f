package compilation

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/suggest"
)

// argument is an option of ATC's command line.
type argument struct{ name, value string }

func (a argument) String() string {
	if a.value == noValue {
		return "--" + a.name
	}
	return "--" + a.name + "=" + a.value
}

// noValue stands for the value of an option that was given none, which only one can be
// that npuctl does not know.
const noValue = "\x00"

// newerArguments are the options that only a newer ATC than our table can know.
func newerArguments(line *atc.CommandLine) (list arguments) {
	for _, u := range line.Unknown {
		a := argument{u.Name, noValue}
		if u.HasValue {
			a.value = u.Value
		}
		list = append(list, a)
	}
	return list
}

// arguments is a command line in the order in which it is written.
type arguments []argument

func (list arguments) words() []string {
	words := make([]string, len(list))
	for i, a := range list {
		words[i] = a.String()
	}
	return words
}

func (list arguments) has(name string) bool {
	return slices.ContainsFunc(list, func(a argument) bool { return a.name == name })
}

// Options that a build sets itself, and what to say instead of passing them.
var owned = map[string]string{
	"model": "name the model as an argument", "output": "use -o", "framework": "the model is ONNX", "mode": "npuctl atc runs any command line",
	"soc_version": "use --soc", "input_shape": "use --input-shape, --batch or --dim", "input_shape_range": "use --dynamic",
	"dynamic_batch_size": "use --gears", "dynamic_image_size": "use --gears", "dynamic_dims": "use --gears",
	"om": "npuctl atc runs any command line", "singleop": "npuctl atc runs any command line", "json": "npuctl atc runs any command line",
}

// fileOptions are the options that name a file to be read: ATC runs in another folder, so
// that their paths are made absolute for it.
var fileOptions = []string{
	"keep_dtype", "modify_mixlist", "fusion_switch_file", "insert_op_conf", "op_precision_mode", "op_debug_config",
	"compression_optimize_conf", "compress_weight_conf", "customize_dtypes", "raw_ge_options", "op_bank_path", "mdl_bank_path",
	"weight", "op_name_map", "op_compiler_cache_dir", "debug_dir", "check_report",
}

// arguments makes ATC's command line for a build. The paths of model and output are
// as they are given; those of files as the user gave them.
func (b *build) arguments(model, output string) (arguments, error) {
	extra, err := b.job.extraOptions()
	if err != nil {
		return nil, err
	}
	wishes := b.job.Options
	o := atc.Options{
		Model: model, Output: output, SoC: b.chip.Name, KeepDType: wishes.KeepDType, ModifyMixList: wishes.Mixlist, FusionSwitchFile: wishes.FusionSwitch,
		AICoreNum: wishes.AICoreNum, InputFormat: wishes.InputFormat, OutputType: wishes.OutputType, InputFP16Nodes: wishes.FP16Inputs, Extra: extra.words(),
	}
	setPrecision(&o, wishes.Precision)
	b.setShapes(&o, extra)
	if !extra.has("op_compiler_cache_mode") && !extra.has("op_compiler_cache_dir") && !extra.has("op_debug_level") {
		o.OpCompilerCacheMode, o.OpCompilerCacheDir = "enable", b.operatorCache()
	}
	line, problems := atc.Parse(o.Arguments())
	if problems = line.Known(problems); len(problems) > 0 { // those of --atc-arg alone can be unknown
		return nil, fault.New(fault.Usage, "%s", problems[0].Message).With("%s", problems[0].Remedy)
	}
	var list arguments
	for _, s := range line.Settings {
		list = append(list, argument{s.Flag.Name, s.Value})
	}
	return append(list, newerArguments(line)...), nil
}

// The options of a precision mode, the newer one first.
var precisionOptions = [...]string{"precision_mode_v2", "precision_mode"}

// precisionWords are the words that an option takes.
func precisionWords(option string) []string {
	for _, f := range atc.Flags() {
		if f.Name == option {
			return f.Values
		}
	}
	return nil
}

// PrecisionModes lists the words of --precision: those of both options.
func PrecisionModes() (modes []string) {
	for _, option := range precisionOptions {
		for _, word := range precisionWords(option) {
			if !slices.Contains(modes, word) {
				modes = append(modes, word)
			}
		}
	}
	return modes
}

// otherNames are what other tools call some of the modes.
var otherNames = map[string]string{
	"float16": "fp16", "half": "fp16", "f16": "fp16", "fp32": "force_fp32", "float32": "force_fp32", "float": "force_fp32", "original": "origin",
	"mixed": "mixed_float16", "amp": "mixed_float16", "mixed_fp16": "mixed_float16", "mixed_bf16": "mixed_bfloat16",
}

// checkPrecision refuses a mode that there is not, with the words of the flag.
func (j Job) checkPrecision() error {
	mode, modes := j.Options.Precision, PrecisionModes()
	if mode == "" || slices.Contains(modes, mode) {
		return nil
	}
	near := otherNames[strings.ToLower(mode)]
	if near == "" {
		near = suggest.Nearest(mode, modes)
	}
	remedy := "it takes " + strings.Join(modes, ", ")
	if near != "" {
		remedy = fmt.Sprintf("did you mean %s? %s", near, remedy)
	}
	return fault.New(j.wishes.family("precision"), "%s %s: there is no such mode", j.wishes.name("precision"), mode).With("%s", remedy)
}

// setPrecision sets the option of a precision mode: the newer one where it has the word.
func setPrecision(o *atc.Options, mode string) {
	if slices.Contains(precisionWords(precisionOptions[0]), mode) {
		o.PrecisionModeV2 = mode
		return
	}
	o.PrecisionMode = mode
}

// setShapes says how inputs are sized. A graph whose inputs are all fixed needs
// nothing: the optimised one, most often.
func (b *build) setShapes(o *atc.Options, extra arguments) {
	s := b.shapes
	switch {
	case s.kind == GearsKind:
		if o.InputFormat == "" && s.flag == atc.DimsGears && !extra.has("input_format") {
			o.InputFormat = "ND" // the axes of dims are no pictures'
		}
		o.InputShapes, o.Gears = s.inputShapes(), atc.Gears{Kind: s.flag, Rows: s.gearRows()}
	case s.kind == DynamicKind || b.job.NoOptimize && b.sizesAreSet():
		o.InputShapes = s.inputShapes()
	}
}

// sizesAreSet says whether flags fix a size that the model's file leaves open.
func (b *build) sizesAreSet() bool {
	sp := b.job.Sizes
	return sp.Batch > 0 || len(sp.Dims)+len(sp.Shapes) > 0
}

// operatorCache is the folder for compiled operators. A first compile takes minutes,
// and most of them the operators: the cache is on unless the user has said anything
// about it. Each release and chip has one of its own, and so has each number of cores:
// ATC takes what it finds there whatever the number was.
func (b *build) operatorCache() string {
	release := b.toolkit.Version
	switch {
	case b.toolkit.Emulated:
		release = "emulator"
	case release == "":
		release = "unknown"
	}
	name := b.chip.Name
	if cores := b.job.Options.AICoreNum; cores != "" {
		name += "-" + cores
	}
	return filepath.Join(b.job.cacheFolder(), "operators", plainName(release), plainName(name))
}

// plainName makes a text fit for the name of a folder, as ATC takes them.
func plainName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.", r) {
			return r
		}
		return '_'
	}, s)
}

// extraOptions reads the options that are passed on.
func (j Job) extraOptions() (list arguments, err error) {
	wrong := func(text, format string, args ...any) *fault.Error {
		return fault.New(j.wishes.family("atc-arg"), "%s %s: %s", j.wishes.name("atc-arg"), text, fmt.Sprintf(format, args...))
	}
	for _, text := range j.Options.Extra {
		word := "--" + strings.TrimLeft(text, "-")
		if name, _, _ := strings.Cut(word, "="); name == "--help" || name == "--h" {
			return nil, wrong(text, "it would compile nothing").With("npuctl atc -- --help prints ATC's help")
		}
		line, problems := atc.Parse([]string{word})
		if len(problems) > 0 && j.installed().Program != "" { // which may be newer, and decides
			problems = line.Known(problems)
		}
		if len(problems) > 0 {
			return nil, wrong(text, "%s", problems[0].Message).With("%s", problems[0].Remedy)
		}
		for _, s := range line.Settings {
			if instead, ours := owned[s.Flag.Name]; ours {
				return nil, wrong(text, "npuctl sets --%s itself", s.Flag.Name).With("%s", instead)
			}
			list = append(list, argument{s.Flag.Name, s.Value})
		}
		list = append(list, newerArguments(line)...)
	}
	return list, nil
}

// absolute gives the arguments with the paths of files made absolute.
func (list arguments) absolute() arguments {
	out := slices.Clone(list)
	for i, a := range out {
		if slices.Contains(fileOptions, a.name) {
			if path, err := filepath.Abs(a.value); err == nil {
				out[i].value = path
			}
		}
	}
	return out
}

// with gives the arguments with another value of an option.
func (list arguments) with(name, value string) arguments {
	out := slices.Clone(list)
	for i := range out {
		if out[i].name == name {
			out[i].value = value
		}
	}
	return out
}

// cacheVariable names the folder that npuctl keeps things in that it can make again.
const cacheVariable = "NPUCTL_CACHE"

// cacheFolder is where compiled operators, logs and times are kept.
func (j Job) cacheFolder() string {
	if j.Cache != "" {
		return j.Cache
	}
	if folder := os.Getenv(cacheVariable); folder != "" {
		return folder
	}
	folder, err := os.UserCacheDir()
	if err != nil {
		return "" // which findCache has refused
	}
	return filepath.Join(folder, "npuctl")
}

// cacheRemedy is what to do when the cache cannot be used.
const cacheRemedy = "set " + cacheVariable + " to a folder that can be written, or HOME or XDG_CACHE_HOME"

// findCache makes sure that there is a cache: a folder that others share is none, as
// ATC runs what it finds there.
func (j Job) findCache() error {
	if j.cacheFolder() != "" {
		return nil
	}
	return fault.New(fault.Missing, "there is no folder for npuctl's cache: neither HOME nor XDG_CACHE_HOME is set").With(cacheRemedy)
}
