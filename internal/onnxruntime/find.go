package onnxruntime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// EnvironmentVariable names the library, or the folder it lies in.
const EnvironmentVariable = "NPUCTL_ORT_LIB"

// Remedy says how to get the library, for the messages of those who need it.
const Remedy = "install it with `pip install onnxruntime` or `npm install -g onnxruntime-node`, or name its file with " + EnvironmentVariable

// Find returns the path of the ONNX Runtime library of this machine. The first of
// these decides:
//
//  1. explicit, what a flag says, when it is not empty
//  2. the environment variable NPUCTL_ORT_LIB, when it is not empty
//  3. the well-known places, in this order: npuctl's own cache, the library folders
//     of the system, the Python environments that are active or installed, and the
//     node_modules folders of the system and of NODE_PATH
//
// The working directory and the folders above it are not searched: what lies there
// may have come with somebody's model, and opening a library runs its code.
//
// 1 and 2 may name the file or the folder it lies in; when there is none, Find does
// not look any further. Where one place has several, the newest release wins. Files
// made for another processor and releases that are too old are passed over.
//
// tried tells of every place that was looked at and what was wrong with it; the
// error contains it as well.
func Find(explicit string) (path string, tried []string, err error) {
	home, _ := os.UserHomeDir() // without one, the places below it are left out
	search := search{system: runtime.GOOS, processor: runtime.GOARCH, root: "/", home: home, getenv: os.Getenv}
	return search.find(explicit)
}

// search is what Find needs to know of the machine.
type search struct {
	system, processor string // as runtime.GOOS and runtime.GOARCH spell them
	root              string // of the file system: "/", but in tests
	home              string // the user's home folder, or ""
	getenv            func(string) string

	tried []string
}

// naming is how the library and the folders around it are called on one system.
type naming struct {
	glob string // what the library's file name looks like
	// before and after are the name without the release, which may stand between
	// them behind a dot.
	before, after string
	node          string // the system's name in node packages
}

var (
	namings = map[string]naming{
		"linux":   {"libonnxruntime.so*", "libonnxruntime.so", "", "linux"},
		"darwin":  {"libonnxruntime*.dylib", "libonnxruntime", ".dylib", "darwin"},
		"windows": {"onnxruntime.dll", "onnxruntime.dll", "", "win32"},
	}
	// nodeProcessors has the names of processors in node packages.
	nodeProcessors = map[string]string{"amd64": "x64", "arm64": "arm64"}
)

// naming returns the naming of the system; others than those listed are taken for
// relatives of Linux.
func (s *search) naming() naming {
	if n, ok := namings[s.system]; ok {
		return n
	}
	return namings["linux"]
}

func (s *search) find(explicit string) (string, []string, error) {
	for _, said := range []struct{ by, path string }{
		{"the flag", explicit},
		{EnvironmentVariable, s.getenv(EnvironmentVariable)},
	} {
		if said.path != "" {
			return s.named(said.by, said.path)
		}
	}
	for _, pattern := range s.places() {
		if path := s.newest(pattern); path != "" {
			return path, s.tried, nil
		}
	}
	return "", s.tried, fmt.Errorf("find the ONNX Runtime library: none in the places looked at; %s; looked at:\n  %s",
		Remedy, strings.Join(s.tried, "\n  "))
}

// named handles a path that the user gave.
func (s *search) named(by, path string) (string, []string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		s.try(path, err)
	case info.IsDir():
		if found := s.newest(filepath.Join(escapeGlob(path), s.naming().glob)); found != "" {
			return found, s.tried, nil
		}
	default:
		return path, nil, nil
	}
	return "", s.tried, fmt.Errorf("find the ONNX Runtime library that %s names: %s", by, strings.Join(s.tried, "; "))
}

func (s *search) try(place string, why error) {
	if inner := new(fs.PathError); errors.As(why, &inner) {
		why = inner.Err
	}
	s.tried = append(s.tried, fmt.Sprintf("%s: %v", place, why))
}

// newest returns the file with the newest release of those that match pattern and
// can be used, or "". Whatever cannot be used is noted.
func (s *search) newest(pattern string) string {
	matches, err := filepath.Glob(pattern)
	if err != nil {
		s.try(pattern, err)
		return ""
	}
	matches = slices.DeleteFunc(matches, func(path string) bool { return s.release(path) == nil })
	if len(matches) == 0 {
		s.try(pattern, errors.New("nothing there"))
	}
	slices.SortStableFunc(matches, func(a, b string) int { return slices.Compare(s.release(b), s.release(a)) })
	for _, path := range matches {
		if err := s.usable(path); err != nil {
			s.try(path, err)
			continue
		}
		return path
	}
	return ""
}

// release returns the numbers in the name of a library file, empty when it has
// none, or nil when the file is something else.
func (s *search) release(path string) []int {
	naming := s.naming()
	rest, isOurs := strings.CutPrefix(filepath.Base(path), naming.before)
	middle, ends := strings.CutSuffix(rest, naming.after)
	if !isOurs || !ends || middle != "" && (middle[0] != '.' || strings.Trim(middle, ".0123456789") != "") {
		return nil
	}
	numbers := []int{}
	for part := range strings.SplitSeq(middle, ".") {
		if n, err := strconv.Atoi(part); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// usable says why the file at path cannot be the library: it is made for another
// processor, or the release in its name is too old.
func (s *search) usable(path string) error {
	if r := s.release(path); len(r) > 1 {
		if _, err := apiVersion(fmt.Sprintf("%d.%d", r[0], r[1])); err != nil {
			return err
		}
	}
	return checkFile(path, s.system, s.processor)
}

// places returns the patterns of the well-known places, best first.
func (s *search) places() []string {
	naming := s.naming()
	var patterns []string
	add := func(folder string, below ...string) {
		if folder != "" {
			patterns = append(patterns, filepath.Join(append([]string{escapeGlob(folder)}, below...)...))
		}
	}
	add(s.below(".cache/npuctl", "NPUCTL_CACHE"), "onnxruntime", naming.glob)
	for _, folder := range []string{"usr/local/lib", "usr/lib", "usr/lib64", "opt/homebrew/lib"} {
		add(filepath.Join(s.root, folder), naming.glob)
	}
	add(filepath.Join(s.root, "usr/lib"), "*-linux-gnu", naming.glob)
	for _, prefix := range s.pythonPrefixes() {
		add(prefix, "lib", "python3*", "*-packages", "onnxruntime", "capi", naming.glob)
	}
	add(s.below(".pyenv", "PYENV_ROOT"), "versions", "*", "lib", "python3*", "site-packages", "onnxruntime", "capi", naming.glob)
	for _, folder := range s.nodeFolders() {
		add(folder, "onnxruntime-node", "bin", "napi-v*", naming.node, nodeProcessors[s.processor], naming.glob)
	}
	return patterns
}

// below returns the folder that an environment variable names or, without it, the
// one of this name below the user's home; "" when there is no home either.
func (s *search) below(name, variable string) string {
	if folder := s.getenv(variable); folder != "" || s.home == "" {
		return folder
	}
	return filepath.Join(s.home, name)
}

// pythonPrefixes returns the folders in which a Python environment has its lib: the
// active ones first, then the user's, then the system's.
func (s *search) pythonPrefixes() []string {
	prefixes := []string{s.getenv("VIRTUAL_ENV"), s.getenv("CONDA_PREFIX")}
	for _, folder := range filepath.SplitList(s.getenv("PATH")) {
		// A virtual environment's python3 is a link to the one it was made with.
		python, err := filepath.EvalSymlinks(filepath.Join(folder, "python3"))
		if err == nil && filepath.IsAbs(folder) {
			prefixes = append(prefixes, filepath.Dir(folder), filepath.Dir(filepath.Dir(python)))
		}
	}
	return unique(append(prefixes, s.below(".local", "PYTHONUSERBASE"), filepath.Join(s.root, "usr/local"), filepath.Join(s.root, "usr")))
}

// nodeFolders returns the node_modules folders to look into. A relative one in
// NODE_PATH would depend on the working directory, and is left out.
func (s *search) nodeFolders() []string {
	folders := []string{filepath.Join(s.root, "usr/local/lib/node_modules"), filepath.Join(s.root, "usr/lib/node_modules")}
	for _, folder := range filepath.SplitList(s.getenv("NODE_PATH")) {
		if filepath.IsAbs(folder) {
			folders = append(folders, folder)
		}
	}
	return unique(folders)
}

// unique returns list without its empty and its repeated elements.
func unique(list []string) []string {
	seen := map[string]bool{"": true}
	return slices.DeleteFunc(list, func(s string) bool {
		again := seen[s]
		seen[s] = true
		return again
	})
}

// escapeGlob returns a pattern that matches path alone.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
