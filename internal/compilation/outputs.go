package compilation

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/npuctl/npuctl/internal/atomicfile"
	"github.com/npuctl/npuctl/internal/fault"
)

// graphSuffix is what the optimised graph of a result is called by. It is not what
// `npuctl optimize` writes (.opt.onnx): nobody's file is replaced by a side product.
const graphSuffix = ".om.onnx"

// omSuffixes are the ends of the names that ATC gives a result: the host's system and
// processor are added when the model carries code for it.
var omSuffixes = []string{".om", "_linux_x86_64.om", "_linux_aarch64.om"}

// madeAt finds the .om that ATC has made for a target; "" when there is none. Of a link,
// a folder or the like in its place it says so, in odd, and nobody looks into it: only a
// link that stood there before, old says which, is the user's.
func madeAt(target string, old func(path string) bool) (made, odd string) {
	for _, suffix := range omSuffixes {
		path := target + suffix
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		if info.Mode()&fs.ModeSymlink != 0 && old(path) {
			if info, err = os.Stat(path); err != nil { // nothing was written through it
				continue
			}
		}
		if info.Mode().IsRegular() {
			return path, ""
		}
		odd = kindOf(info.Mode())
	}
	return "", odd
}

// isMade says whether a graph is one that npuctl wrote, of another one.
func isMade(name string) bool {
	return strings.HasSuffix(name, ".opt.onnx") || strings.HasSuffix(name, graphSuffix)
}

// plainModelName is the name of a model's file without its ends: net of net.onnx, and
// of the net.opt.onnx that `npuctl optimize` makes of it.
func plainModelName(model string) string {
	base := filepath.Base(model)
	name := strings.TrimSuffix(base, filepath.Ext(base))
	for _, end := range []string{".opt", ".om"} {
		if short := strings.TrimSuffix(name, end); short != "" && isMade(base) {
			name = short
		}
	}
	return name
}

// outputs lists the files that a build may write, but for weights, which are known
// only when ATC has made them.
func (b *build) outputs() (paths []string) {
	for _, suffix := range omSuffixes {
		paths = append(paths, b.target+suffix, b.target+suffix+".json")
	}
	if !b.job.NoOptimize {
		paths = append(paths, b.target+graphSuffix, b.target+graphSuffix+".data")
	}
	return paths
}

// protected lists the files that a job reads, which it may not write: models and the
// files of options. The external data of models is looked at when they are opened.
func (j Job) protected() (paths []string) {
	paths = slices.Clone(j.Models)
	paths = append(paths, j.Options.KeepDType, j.Options.Mixlist, j.Options.FusionSwitch)
	if extra, err := j.extraOptions(); err == nil { // else it is told later
		for _, a := range extra {
			if slices.Contains(fileOptions, a.name) {
				paths = append(paths, a.value)
			}
		}
	}
	return slices.DeleteFunc(paths, func(p string) bool { return p == "" })
}

// checkOutputs refuses a job that would write over what it reads, over each other's
// results, or where something else than a file stands.
func checkOutputs(builds []*build, inputs []string) error {
	taken := map[string]*build{}
	for _, b := range builds {
		for _, out := range b.outputs() {
			if err := mayWrite(out); err != nil {
				return err
			}
			if err := b.keepsInputs(out, inputs); err != nil {
				return err
			}
			place := canonical(out)
			if other := taken[place]; other != nil {
				return clash(other, b, out)
			}
			taken[place] = b
		}
	}
	return nil
}

// mayWrite refuses a path at which a folder, a device or the like stands: a result
// replaces files alone. A link is followed.
func mayWrite(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return fault.New(fault.Usage, "%s is %s, and the result would be written there", path, kindOf(info.Mode())).
			With("move it away, or name another result with -o")
	case errors.Is(err, syscall.ELOOP):
		return fault.New(fault.Usage, "%s is a link that leads nowhere, and the result would be written there", path).
			With("remove it, or name another result with -o")
	}
	return nil
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeSymlink != 0:
		return "a link"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeDevice != 0:
		return "a device"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "no plain file"
}

// keepsInputs refuses an output that is one of the files that are read.
func (b *build) keepsInputs(out string, inputs []string) error {
	for _, in := range inputs {
		if canonical(out) != canonical(in) && !sameFile(out, in) {
			continue
		}
		if strings.HasSuffix(in, graphSuffix) {
			return fault.New(fault.Usage, "%s would be written over: it is the graph that npuctl compile writes beside its result", in).
				With("compile the model it was made of, or name another result with -o")
		}
		return fault.New(fault.Usage, "compiling %s would write %s, which is read (%s)", b.model, out, in).
			With("name another result with -o")
	}
	return nil
}

// clash is the failure of two builds that would write one file.
func clash(a, b *build, out string) error {
	f := fault.New(fault.Usage, "%s and %s would both be written to %s", a.model, b.model, out)
	switch {
	case sameFile(a.model, b.model) || a.model == b.model:
		return fault.New(fault.Usage, "%s is named twice", b.model).With("leave it out once")
	case isMade(filepath.Base(a.model)) || isMade(filepath.Base(b.model)):
		return f.With("leave out the one that npuctl made of the other")
	case a.job.Output != "":
		return f.With("compile them one at a time, each with its own -o, or give them different names")
	}
	return f.With("compile them one at a time, each with its own -o")
}

// canonical is a path by which files are told apart that need not be there yet.
func canonical(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	path = atomicfile.Resolve(path)
	if folder, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(folder, filepath.Base(path))
	}
	return path
}

// missingFolders lists the folders of the results that are not there yet, the
// innermost first: a job that fails takes away those that it made for nothing.
func missingFolders(builds []*build) (folders []string) {
	for _, b := range builds {
		for folder := filepath.Dir(b.target); ; folder = filepath.Dir(folder) {
			if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) || slices.Contains(folders, folder) {
				break
			}
			folders = append(folders, folder)
		}
	}
	slices.SortStableFunc(folders, func(a, b string) int { return len(b) - len(a) })
	return folders
}

// removeEmpty takes away those folders that are empty.
func removeEmpty(folders []string) {
	for _, folder := range folders {
		_ = os.Remove(folder) // the system keeps one that holds anything
	}
}
