package ascendcl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// HomeVariable names the root of an installed CANN; its set_env.sh sets it.
const HomeVariable = "ASCEND_HOME_PATH"

// Remedy says how to get the libraries, for the messages of those who need them.
const Remedy = "install CANN and run `source <cann>/set_env.sh`, or set " + HomeVariable + "; without a device, `eval \"$(npuctl emulator env)\"` gives an emulated one"

// umbrella has everything. Newer releases split it, and may drop it one day.
const umbrella = "libascendcl.so"

// split are the libraries that together have what npuctl uses.
var split = []string{"libacl_rt.so", "libacl_mdl.so"}

// Find gives the libraries of AscendCL on this machine, in the order in which they
// are to be opened. The first of these decides:
//
//  1. explicit, what a flag says, when it is not empty: a library, or a folder
//  2. ASCEND_HOME_PATH and ASCEND_TOOLKIT_HOME, below which lies lib64
//  3. the folders of LD_LIBRARY_PATH
//  4. where CANN installs itself, for root and for the user
//
// tried tells of every folder that was looked at; the error contains it as well. A
// folder that 1 or 2 name and that has no library ends the search: another CANN than
// the one that was asked for would surprise.
func Find(explicit string) (paths, tried []string, err error) {
	home, _ := os.UserHomeDir() // without one, the places below it are left out
	return find(explicit, os.Getenv, "/", home)
}

func find(explicit string, getenv func(string) string, root, home string) (paths, tried []string, err error) {
	for _, place := range places(explicit, getenv, root, home) {
		tried = append(tried, place.folder)
		if paths := librariesIn(place.folder); paths != nil {
			return paths, tried, nil
		}
		if place.by != "" {
			return nil, tried, fmt.Errorf("find the AscendCL library that %s names: there is no %s in %s; %s", place.by, umbrella, place.folder, Remedy)
		}
	}
	return nil, tried, fmt.Errorf("find the AscendCL library %s: none in the places looked at; %s; looked at:\n  %s",
		umbrella, Remedy, strings.Join(tried, "\n  "))
}

// place is a folder to look into; by says who named it, "" when nobody did.
type place struct{ folder, by string }

func places(explicit string, getenv func(string) string, root, home string) (all []place) {
	if explicit != "" {
		return []place{{explicit, "the flag"}}
	}
	for _, variable := range []string{HomeVariable, "ASCEND_TOOLKIT_HOME"} {
		if folder := getenv(variable); folder != "" {
			return []place{{filepath.Join(folder, "lib64"), variable}}
		}
	}
	for _, folder := range filepath.SplitList(getenv("LD_LIBRARY_PATH")) {
		if filepath.IsAbs(folder) { // others would depend on the working directory
			all = append(all, place{folder, ""})
		}
	}
	bases := []string{filepath.Join(root, "usr/local/Ascend")}
	if home != "" {
		bases = append(bases, filepath.Join(home, "Ascend"))
	}
	for _, base := range bases {
		for _, release := range []string{"cann", "ascend-toolkit/latest", "nnrt/latest"} {
			all = append(all, place{filepath.Join(base, release, "lib64"), ""})
		}
	}
	return all
}

// librariesIn gives the libraries of a folder, or the one that is named itself.
func librariesIn(folder string) []string {
	if isFile(folder) {
		return []string{folder}
	}
	if path := filepath.Join(folder, umbrella); isFile(path) {
		return []string{path}
	}
	var paths []string
	for _, name := range split {
		path := filepath.Join(folder, name)
		if !isFile(path) {
			return nil
		}
		paths = append(paths, path)
	}
	return paths
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
