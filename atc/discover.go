package atc

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Toolkit is a folder of CANN, or of the emulator, with an ATC in it.
type Toolkit struct {
	Root    string `json:"root"`
	Program string `json:"program"`           // the atc to run
	Version string `json:"version,omitempty"` // release, such as 8.1.RC1; "" when no file says it
	FoundBy string `json:"found_by"`          // what led here: an option, a variable, a usual place
	// Emulated says that no CANN is here but npuctl's emulator of it.
	Emulated bool `json:"emulated"`
	// PassedOver lists the places before this one that had no ATC.
	PassedOver []Place `json:"-"`
}

// name is the toolkit as messages call it.
func (t Toolkit) name() string {
	if t.Version == "" {
		return "this CANN"
	}
	return "CANN " + t.Version
}

// Place is somewhere that was looked at, and what was found there.
type Place struct {
	Path  string `json:"path"`
	From  string `json:"from"`  // what led there
	Found string `json:"found"` // what was there
	// IsToolkit says that CANN is there without an ATC: its runtime alone, most often.
	IsToolkit bool `json:"is_toolkit"`
}

func (p Place) String() string { return fmt.Sprintf("%s (%s): %s", p.Path, p.From, p.Found) }

// NotFoundError says that there is no ATC, and where it was looked for.
type NotFoundError struct{ Looked []Place }

func (e *NotFoundError) Error() string {
	lines := make([]string, len(e.Looked))
	for i, p := range e.Looked {
		lines[i] = p.String()
	}
	return "there is no atc on this machine; looked at " + strings.Join(lines, ", ")
}

// Finder looks for ATC. Only tests set more than Given and NoEmulator.
type Finder struct {
	// Given is what the user named: the toolkit's folder or the program; nothing
	// else is looked at then.
	Given string
	// NoEmulator passes over emulators, wherever they are.
	NoEmulator bool

	Getenv func(string) string                  // nil is os.Getenv
	Which  func(program string) (string, error) // nil is exec.LookPath
	Home   string                               // "" is the user's home folder
	Prefix string                               // put before absolute places
}

// emulatorThere is what stands where an emulator is passed over.
const emulatorThere = "npuctl's emulator, which is no CANN"

// candidate is a place that may be a toolkit.
type candidate struct{ root, from string }

// Find gives the first toolkit with an ATC: what the user named, what the
// environment names, where releases install themselves, what is on the PATH. A
// failure is a [NotFoundError].
func (f Finder) Find() (Toolkit, error) {
	f.settle()
	var looked []Place
	for _, c := range f.candidates() {
		program, found := programIn(c.root)
		if program == "" {
			looked = append(looked, Place{c.root, c.from, found, isToolkit(c.root)})
			continue
		}
		t := describe(c.root, program)
		if f.NoEmulator && t.Emulated {
			looked = append(looked, Place{Path: c.root, From: c.from, Found: emulatorThere})
			continue
		}
		t.FoundBy, t.PassedOver = c.from, looked
		return t, nil
	}
	if f.Given != "" {
		return Toolkit{}, &NotFoundError{looked}
	}
	program, err := f.Which("atc")
	if err != nil {
		return Toolkit{}, &NotFoundError{append(looked, Place{Path: "atc", From: "PATH", Found: "not there"})}
	}
	t := describe(rootOf(program), program)
	if f.NoEmulator && t.Emulated {
		return Toolkit{}, &NotFoundError{append(looked, Place{Path: program, From: "PATH", Found: emulatorThere})}
	}
	t.FoundBy, t.PassedOver = "PATH", looked
	return t, nil
}

func (f *Finder) settle() {
	if f.Getenv == nil {
		f.Getenv = os.Getenv
	}
	if f.Which == nil {
		f.Which = exec.LookPath
	}
	if f.Home == "" {
		f.Home, _ = os.UserHomeDir() // without one there is nothing to look at
	}
}

// installed is where releases put themselves below Ascend: 8.5 and later, then those
// before, then the runtime that comes without an ATC.
var installed = []string{"cann", "ascend-toolkit/latest", "latest", "nnrt/latest"}

// usualPlace is what led to a folder that nobody has named.
const usualPlace = "usual place"

// IsNamed says that a variable or the user named the toolkit; else its environment is
// not set either.
func (t Toolkit) IsNamed() bool { return t.FoundBy != usualPlace }

func (f Finder) candidates() (out []candidate) {
	if f.Given != "" {
		return []candidate{{f.Given, "given"}}
	}
	for _, name := range []string{"ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"} {
		if root := f.Getenv(name); root != "" {
			out = append(out, candidate{root, name})
		}
	}
	parents := []string{f.Prefix + "/usr/local/Ascend"}
	if f.Home != "" {
		parents = append(parents, filepath.Join(f.Home, "Ascend"))
	}
	for _, parent := range parents {
		for _, below := range installed {
			out = append(out, candidate{filepath.Join(parent, below), usualPlace})
		}
	}
	return out
}

// programIn finds the atc of a toolkit folder; a file is taken for the program
// itself. When there is none it says what is there.
func programIn(root string) (program, found string) {
	info, err := os.Stat(root)
	switch {
	case err != nil:
		return "", "nothing there"
	case !info.IsDir():
		if !isProgram(root) {
			return "", "not a program"
		}
		return root, ""
	}
	for _, below := range []string{"bin", architectureFolder() + "/bin", "compiler/bin", "atc/bin"} {
		if path := filepath.Join(root, below, "atc"); isProgram(path) {
			return path, ""
		}
	}
	return "", "no bin/atc in it"
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0)
}

// architectureFolder is where a toolkit keeps what is built for this processor.
func architectureFolder() string { return cpuName(runtime.GOARCH) + "-linux" }

// cpuName is a processor as CANN spells it.
func cpuName(goarch string) string {
	switch goarch {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return goarch
}

// rootOf is the toolkit that a program on the PATH belongs to: the nearest folder
// above it, by its own path or by what a link leads to, that looks like one.
func rootOf(program string) string {
	paths := []string{program}
	if real, err := filepath.EvalSymlinks(program); err == nil && real != program {
		paths = append(paths, real)
	}
	for _, path := range paths {
		folder := filepath.Dir(path)
		for range 3 {
			folder = filepath.Dir(folder)
			if isToolkit(folder) {
				return folder
			}
		}
	}
	return filepath.Dir(filepath.Dir(program))
}

func isToolkit(folder string) bool {
	return slices.ContainsFunc([]string{"set_env.sh", "opp", MarkerFile, "version.cfg", "version.info"}, func(name string) bool {
		_, err := os.Stat(filepath.Join(folder, name))
		return err == nil
	})
}

// MarkerFile stands in the root of an emulator and in no real toolkit.
const MarkerFile = "npuctl-emulator.json"

// describe says what a toolkit is.
func describe(root, program string) Toolkit {
	if !isFolder(root) { // the program itself was given
		root = rootOf(root)
	}
	t := Toolkit{Root: root, Program: program}
	if absolute, err := filepath.Abs(program); err == nil {
		t.Program = absolute // it is run in another folder
	}
	if absolute, err := filepath.Abs(root); err == nil {
		t.Root = absolute
	}
	if data, err := readSmall(filepath.Join(t.Root, MarkerFile)); err == nil {
		t.Emulated = true
		var marker struct {
			Version string `json:"version"`
		}
		if json.Unmarshal(data, &marker) == nil {
			t.Version = marker.Version
		}
		return t
	}
	t.Version = ToolkitVersion(t.Root)
	return t
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// maxSmall bounds what is read of a file that should be a few lines.
const maxSmall = 64 << 10

func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxSmall {
		return nil, fmt.Errorf("%s is no small file", path)
	}
	return os.ReadFile(path)
}

// versionFiles is where releases write their number, the surest first, each with
// the key of the line.
var versionFiles = []struct{ pattern, key string }{
	{"*-linux/ascend_toolkit_install.info", "version"},
	{"version.cfg", "toolkit_running_version"},
	{"version.cfg", "runtime_running_version"},
	{"ascend_*_install.info", "version"},
	{"*-linux/ascend_*_install.info", "version"},
	{"version.info", "version"},
	{"compiler/version.info", "version"},
}

// ToolkitVersion reads the release of the CANN in a folder; "" when no file says it.
func ToolkitVersion(root string) string {
	for _, file := range versionFiles {
		matches, err := filepath.Glob(filepath.Join(escapeGlob(root), file.pattern))
		if err != nil {
			continue
		}
		for _, path := range matches {
			if v := VersionIn(path, file.key); v != "" {
				return v
			}
		}
	}
	return ""
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// VersionIn reads the line of a key in one of the files that releases and drivers leave:
// version=8.1.RC1 or toolkit_running_version=[7.7.0:8.1.RC1], where the release stands
// last. "" when there is none.
func VersionIn(path, key string) string {
	data, err := readSmall(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if !strings.EqualFold(name, key) {
			continue
		}
		value = strings.Trim(value, `[]"' `)
		if i := strings.LastIndexByte(value, ':'); i >= 0 {
			value = value[i+1:]
		}
		if value != "" {
			return value
		}
	}
	return ""
}
