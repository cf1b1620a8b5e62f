package project

import (
	"fmt"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/npuctl/npuctl/gears"
)

// Facts is what a first project file is written from.
type Facts struct {
	Model  string // path, relative to where the file will be
	SoC    string // "" leaves a line to fill in
	Inputs []gears.Input
	// Outputs are outputs as people read them, for a comment.
	Outputs []string
}

// Template writes a first project file: what is known, and what else there is as
// comments. Reading it back gives the model and the chip.
func Template(f Facts) string {
	w := &strings.Builder{}
	line := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	line("# Defaults for npuctl's commands in this folder; flags win over them.")
	line("# Everything behind a # is off. Paths are relative to this file.")
	line("")
	line("model:")
	line("  path: %s", quote(filepath.ToSlash(f.Model)))
	for _, in := range f.Inputs {
		line("  # input  %s", comment(inputText(in)))
	}
	for _, out := range f.Outputs {
		line("  # output %s", comment(out))
	}
	writeSizes(line, gears.OpenAxes(f.Inputs))
	line("")
	line("# The chip: Ascend and the Name column of npu-smi info. A list compiles for several.")
	if f.SoC == "" {
		line("# soc: Ascend910B3          # still to be set, or given as --soc")
	} else {
		line("soc: %s", quote(f.SoC))
	}
	line("")
	line("# optimize:")
	line("#   off: true                 # give the compiler the model as it is")
	line("#   skip: [fuse-affine]       # passes to leave out: npuctl optimize --list-passes")
	line("")
	writeGears(line, gears.OpenAxes(f.Inputs))
	line("")
	line("# compile:")
	line("#   static: true              # demand that every shape is known")
	line("#   precision: fp16           # or origin, mixed_float16, … (--precision)")
	line("#   keep_dtype: keep.txt      # nodes that keep their type")
	line(`#   aicore_num: "12|10"       # cube and vector cores to use`)
	line("#   timeout: 30m")
	line("#   atc_args: [--log=info]    # anything else for atc")
	line("")
	line("# serve:")
	line("#   repository: models        # any flag of npuctl config, with _ for -")
	line("#   max_batch_size: 8")
	line("#   instances: 1")
	line("")
	line("# bench:")
	line("#   concurrency: 8")
	line("#   duration: 30s")
	return w.String()
}

// writeSizes writes how open dims are given sizes.
func writeSizes(line func(string, ...any), axes []gears.Axis) {
	if len(axes) == 0 {
		return
	}
	line("  # Open dims; give each a size here, or all of them gears below:")
	var named, nameless []gears.Axis
	for _, a := range axes {
		if a.Name != "" {
			named = append(named, a)
		} else {
			nameless = append(nameless, a)
		}
	}
	if len(named) > 0 {
		line("  # dims:")
	}
	for _, a := range named {
		line("  #   %s: 1   # %s", comment(quote(a.Name)), comment(a.String()))
	}
	if len(nameless) > 0 {
		line("  # input_shapes:           # ? leaves a dim as it is")
	}
	for _, a := range nameless {
		line("  #   %s: \"…\"   # %s has no name", comment(quote(a.Places[0].Input)), comment(a.String()))
	}
}

func writeGears(line func(string, ...any), axes []gears.Axis) {
	switch len(axes) {
	case 0:
		line("# gears: none, for every dim of the model is fixed")
	case 1:
		line("# gears: [1, 2, 4, 8]        # sizes of %s, compiled beside each other", comment(axes[0].String()))
	default:
		names := make([]string, len(axes))
		for i, a := range axes {
			names[i] = a.String()
		}
		line("# gears: compiled beside each other, each with a number for %s", comment(strings.Join(names, "; ")))
	}
}

func inputText(in gears.Input) string {
	dims := make([]string, len(in.Dims))
	for i, d := range in.Dims {
		switch {
		case !d.Open:
			dims[i] = fmt.Sprint(d.Size)
		case d.Name != "":
			dims[i] = d.Name
		default:
			dims[i] = "?"
		}
	}
	return fmt.Sprintf("%s [%s]", in.Name, strings.Join(dims, ", "))
}

// comment makes text from a model fit for a comment: it may hold line breaks.
func comment(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xfeff {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// quote writes a text as a value of YAML, in quotes when it would be something else without.
func quote(s string) string {
	node := yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if strings.ContainsAny(s, "\r\n\t") {
		node.Style = yaml.DoubleQuotedStyle
	}
	data, err := yaml.Marshal(&node)
	if err != nil {
		return fmt.Sprintf("%q", s)
	}
	return strings.TrimSpace(string(data))
}
