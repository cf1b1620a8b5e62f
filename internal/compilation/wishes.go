package compilation

import (
	"errors"
	"strings"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/project"
	"github.com/npuctl/npuctl/onnxpass"
)

// projectNames are where the project file says what flags say otherwise.
var projectNames = map[string][]string{
	"soc": {"soc"}, "gears": {"gears"}, "static": {"compile", "static"}, "dynamic": {"compile", "dynamic"},
	"batch": {"model", "batch"}, "dim": {"model", "dims"}, "input-shape": {"model", "input_shapes"}, "bind": {"model", "bind"},
	"no-optimize": {"optimize", "off"}, "passes": {"optimize", "passes"}, "skip": {"optimize", "skip"},
	"output": {"compile", "output"}, "cann": {"compile", "cann"}, "precision": {"compile", "precision"},
	"keep-dtype": {"compile", "keep_dtype"}, "mixlist": {"compile", "mixlist"}, "fusion-switch": {"compile", "fusion_switch"},
	"aicore-num": {"compile", "aicore_num"}, "input-format": {"compile", "input_format"}, "output-type": {"compile", "output_type"},
	"fp16-input": {"compile", "fp16_inputs"}, "atc-arg": {"compile", "atc_args"}, "timeout": {"compile", "timeout"}, "jobs": {"compile", "jobs"},
}

// flagsOfATC are the flags of `npuctl compile` that set options of ATC's; --atc-arg
// sets the others.
var flagsOfATC = map[string]string{
	"soc_version": "soc", "precision_mode_v2": "precision", "precision_mode": "precision", "keep_dtype": "keep-dtype", "modify_mixlist": "mixlist",
	"fusion_switch_file": "fusion-switch", "aicore_num": "aicore-num", "input_format": "input-format", "output_type": "output-type",
	"input_fp16_nodes": "fp16-input", "dynamic_batch_size": "gears", "dynamic_image_size": "gears", "dynamic_dims": "gears",
}

// wishes tell which of a job's settings the project file made, so that messages name
// the line that is wrong and not a flag that nobody gave. The zero wishes are all flags.
type wishes struct {
	project *project.Project
	flags   map[string]bool // flags for which the file stood in
}

// take notes that the file stands in for a flag.
func (w *wishes) take(flag string) {
	if w.flags == nil {
		w.flags = map[string]bool{}
	}
	w.flags[flag] = true
}

// name is how messages call a setting: --gears, or npuctl.yaml:7:8: gears.
func (w wishes) name(flag string) string {
	if !w.flags[flag] {
		return "--" + flag
	}
	names := projectNames[flag]
	return w.project.Place(names...) + ": " + strings.Join(names, ".")
}

// family is whose fault a wrong setting is: the command line's, or the file's.
func (w wishes) family(flag string) fault.Family {
	if w.flags[flag] {
		return fault.Input
	}
	return fault.Usage
}

// unknownPass is the failure of a list of passes with one that there is not.
func (w wishes) unknownPass(err error, o onnxpass.Options) *fault.Error {
	flag := "passes"
	if len(o.Skip) > 0 {
		flag = "skip"
	}
	return fault.New(w.family(flag), "%s: %w", w.name(flag), err)
}

// inFile is the place and the name, in the project file, of what gave ATC an option; ""
// when the file did not.
func (j Job) inFile(option string) string {
	flag, isOurs := flagsOfATC[option]
	if !isOurs {
		flag = "atc-arg"
		if extra, err := j.extraOptions(); err != nil || !extra.has(option) {
			return ""
		}
	}
	if !j.wishes.flags[flag] {
		return ""
	}
	return j.wishes.name(flag)
}

// locate gives a failure that speaks of flags the words of the file, when it is the
// file that said so.
func (w wishes) locate(err error) error {
	var f *fault.Error
	if err == nil || !errors.As(err, &f) || f.Family != fault.Usage {
		return err
	}
	for flag := range w.flags {
		text, isAbout := strings.CutPrefix(f.Err.Error(), "--"+flag)
		if isAbout && (strings.HasPrefix(text, " ") || strings.HasPrefix(text, ":")) {
			return fault.New(fault.Input, "%s%s", w.name(flag), text).With("%s", f.Remedy)
		}
	}
	return err
}

// Locate gives a failure that speaks of a flag, or of passes, the words of the project
// file, where [Job.Complete] took the setting from it. It is for commands that complete a
// job as npuctl compile does and then do something else with it.
func (j Job) Locate(err error) error {
	var unknown *onnxpass.UnknownPassError
	var f *fault.Error
	if errors.As(err, &unknown) && errors.As(err, &f) && j.wishes.project != nil {
		return j.wishes.unknownPass(unknown, j.Passes).With("%s", f.Remedy)
	}
	return j.wishes.locate(err)
}
