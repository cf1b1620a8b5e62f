package atc

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// searchPath is a variable that lists folders, and which of a toolkit's belong at
// its front. {arch} is the processor's folder, {cpu} its name.
type searchPath struct {
	name    string
	folders []string
}

// searchPaths is what a toolkit's set_env.sh puts in front, as far as the folders
// are there: releases move them.
var searchPaths = []searchPath{
	{"PATH", []string{"bin", "compiler/ccec_compiler/bin", "tools/ccec_compiler/bin"}},
	{"LD_LIBRARY_PATH", []string{
		"lib64", "{arch}/lib64", "compiler/lib64", "lib64/plugin/opskernel", "lib64/plugin/nnengine",
		"opp/built-in/op_impl/ai_core/tbe/op_tiling/lib/linux/{cpu}", "tools/aml/lib64",
	}},
	{"PYTHONPATH", []string{"python/site-packages", "opp/built-in/op_impl/ai_core/tbe", "{arch}/python/site-packages"}},
}

// namedFolders are variables that name one folder of a toolkit.
var namedFolders = []struct{ name, below string }{
	{"ASCEND_HOME_PATH", ""},
	{"ASCEND_TOOLKIT_HOME", ""},
	{"ASCEND_OPP_PATH", "opp"},
	{"TOOLCHAIN_HOME", "toolkit"},
}

// driverLibrary is what the NPU's driver installs, and stubFolders are where a
// toolkit keeps a stand-in for it, to link and to compile with on a machine without.
const (
	driverLibrary = "libascend_hal.so"
	driverFolder  = "/usr/local/Ascend/driver/lib64"
)

var stubFolders = []string{"{arch}/devlib", "devlib", "{arch}/lib64/stub", "lib64/stub", "runtime/lib64/stub"}

// Environment gives the environment for a toolkit's programs: base, as os.Environ
// has it, with what sourcing the toolkit's set_env.sh would do. On a machine
// without an NPU's driver the toolkit's stand-in for it is found as well; where
// there is a driver the two must never mix. base is not changed.
func (t Toolkit) Environment(base []string) []string {
	return t.environment(base, driverFolder)
}

func (t Toolkit) environment(base []string, driver string) []string {
	env := newEnvironment(base)
	for _, v := range namedFolders {
		if _, own := env.find(v.name); strings.HasPrefix(t.FoundBy, "ASCEND_") && isFolder(own) {
			continue // the shell was set up for this toolkit, operators elsewhere included
		}
		if path := filepath.Join(t.Root, v.below); v.below == "" || isFolder(path) {
			env.set(v.name, path)
		}
	}
	for _, p := range searchPaths {
		env.prepend(p.name, t.existing(p.folders))
	}
	if drivers := driverFolders(driver); len(drivers) > 0 {
		env.add("LD_LIBRARY_PATH", drivers)
	} else if stubs := t.existing(stubFolders); len(stubs) > 0 {
		env.add("LD_LIBRARY_PATH", stubs[:1])
	}
	return env.list
}

// existing gives those of a toolkit's folders that are there.
func (t Toolkit) existing(folders []string) (out []string) {
	fill := strings.NewReplacer("{arch}", architectureFolder(), "{cpu}", strings.TrimSuffix(architectureFolder(), "-linux"))
	for _, below := range folders {
		if path := filepath.Join(t.Root, fill.Replace(below)); isFolder(path) {
			out = append(out, path)
		}
	}
	return out
}

// driverFolders are the folders of the driver's libraries; none without a driver.
func driverFolders(root string) (out []string) {
	hasDriver := false
	for _, below := range []string{"", "common", "driver"} {
		path := filepath.Join(root, below)
		if isFolder(path) {
			out = append(out, path)
		}
		if _, err := os.Stat(filepath.Join(path, driverLibrary)); err == nil {
			hasDriver = true
		}
	}
	if !hasDriver {
		return nil
	}
	return out
}

// environment is a list of NAME=value in which each name occurs once.
type environment struct{ list []string }

func newEnvironment(base []string) *environment {
	e := &environment{}
	for _, entry := range base {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
			e.set(name, value)
		}
	}
	return e
}

func (e *environment) find(name string) (at int, value string) {
	for i, entry := range e.list {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return i, value
		}
	}
	return -1, ""
}

func (e *environment) set(name, value string) {
	if i, _ := e.find(name); i >= 0 {
		e.list[i] = name + "=" + value
		return
	}
	e.list = append(e.list, name+"="+value)
}

// prepend puts folders in front of a search path, each once.
func (e *environment) prepend(name string, folders []string) {
	_, old := e.find(name)
	e.join(name, append(slices.Clone(folders), filepath.SplitList(old)...))
}

// add puts folders at the end of a search path, unless they are there.
func (e *environment) add(name string, folders []string) {
	_, old := e.find(name)
	e.join(name, append(filepath.SplitList(old), folders...))
}

func (e *environment) join(name string, folders []string) {
	var out []string
	for _, f := range folders {
		if f != "" && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	if len(out) > 0 {
		e.set(name, strings.Join(out, string(os.PathListSeparator)))
	}
}
