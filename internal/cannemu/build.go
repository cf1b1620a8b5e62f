package cannemu

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/internal/compiler"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/onnxruntime"
)

// MarkerFile stands in the emulator's folder and in no real toolkit.
const MarkerFile = atc.MarkerFile

// Marker is what the marker file says.
type Marker struct {
	// Version is npuctl's; Sources the hash of what the libraries were compiled from.
	Version string `json:"version"`
	Sources string `json:"sources"`
	// Interpreter is the command that computes models where there is no ONNX Runtime:
	// program and arguments.
	Interpreter []string `json:"interpreter"`
	Compiler    string   `json:"compiler"`
	Libraries   []string `json:"libraries"` // files in lib64
	// LeftOut lists libraries that need a C++ compiler, when there was none.
	LeftOut  []string `json:"left_out,omitempty"`
	Emulated bool     `json:"emulated"` // always true
}

// Options says how to build. The zero value of a field takes what the machine has.
type Options struct {
	// Program is the npuctl that the emulator calls; "" is this process's.
	Program string
	// Version is npuctl's own.
	Version string
	// CC and CXX are the compilers, as commands that may carry arguments; "" is $CC and
	// $CXX, else gcc or cc, and g++ or c++. A cross compiler makes libraries for its target.
	CC, CXX string
	// Building is called, when set, before [Find] builds: that takes a while.
	Building func()
	// Getenv is os.Getenv but in tests.
	Getenv func(string) string

	tree fs.FS // of sources; the embedded one but in tests
}

func (o *Options) settle() error {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.tree == nil {
		o.tree = sources
	}
	if o.Program == "" {
		program, err := os.Executable()
		if err != nil {
			return fault.New(fault.Internal, "find the program of npuctl: %w", err)
		}
		o.Program = program
	}
	program, err := filepath.Abs(o.Program)
	if err != nil {
		return fault.New(fault.Internal, "find the program of npuctl: %w", err)
	}
	o.Program = program
	return nil
}

// Build makes the emulator in dir, which appears whole or not at all. A folder that
// is no emulator is not replaced.
func Build(ctx context.Context, dir string, o Options) (*Marker, error) {
	if err := o.settle(); err != nil {
		return nil, err
	}
	if runtime.GOOS != "linux" {
		return nil, fault.New(fault.Missing, "the CANN emulator's libraries are for Linux, not %s", runtime.GOOS).With("build it on a Linux machine or in a container")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fault.New(fault.Usage, "%s: %w", dir, err)
	}
	if err := mayBuild(dir); err != nil {
		return nil, err
	}
	compilers, err := findCompilers(o)
	if err != nil {
		return nil, err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fault.New(fault.Missing, "make the folder of the emulator: %w", err)
	}
	work, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+"-")
	if err != nil { // a folder that is there may be writable where that around it is not
		work, err = os.MkdirTemp(dir, ".work-")
	}
	if err != nil {
		return nil, fault.New(fault.Missing, "make a folder beside the emulator's: %w", err)
	}
	defer os.RemoveAll(work)
	b := builder{options: o, compilers: compilers, final: dir, work: work, root: filepath.Join(work, "root")}
	marker, err := b.build(ctx)
	if err != nil {
		return nil, err
	}
	return marker, b.place()
}

// mayBuild refuses a path that is in use for something else.
func mayBuild(dir string) error {
	if strings.ContainsAny(dir, ":\n") {
		return fault.New(fault.Usage, "%q cannot stand in PATH", dir).With("choose a folder without colons and line ends in its name")
	}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fault.New(fault.Usage, "%w", err)
	case len(entries) == 0:
		return nil
	}
	if _, err := ReadMarker(dir); err != nil {
		return fault.New(fault.Usage, "%s is not empty, and no emulator of npuctl", dir).With("name an empty or a new folder")
	}
	return nil
}

// ReadMarker reads the marker of an emulator's folder.
func ReadMarker(dir string) (*Marker, error) {
	const maxMarker = 1 << 20
	path := filepath.Join(dir, MarkerFile)
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxMarker {
		return nil, fmt.Errorf("%s: no small file", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var m Marker
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &m, nil
}

// compilers are the commands for C and for C++.
type compilers struct{ c, cxx []string }

func findCompilers(o Options) (compilers, error) {
	c, err := compiler.Find(cmp.Or(o.CC, o.Getenv("CC")), "CC", "gcc", "cc")
	if err != nil {
		return compilers{}, err
	}
	cxx, err := compiler.Find(cmp.Or(o.CXX, o.Getenv("CXX")), "CXX", beside(c, "gcc", "g++"), beside(c, "clang", "clang++"), beside(c, "cc", "c++"))
	if err != nil {
		return compilers{c: c}, nil // what needs it is left out, and that is told
	}
	return compilers{c: c, cxx: cxx}, nil
}

// beside is the name of the C++ compiler that belongs to a C compiler's name, such as
// aarch64-linux-gnu-g++.
func beside(c []string, suffix, replacement string) string {
	name, isSo := strings.CutSuffix(c[0], suffix)
	if !isSo {
		return ""
	}
	return name + replacement
}

// builder makes one emulator.
type builder struct {
	options   Options
	compilers compilers
	final     string // where the emulator will stand
	work      string // a folder beside it, which goes away
	root      string // the emulator while it is made, in work
}

func (b *builder) build(ctx context.Context) (*Marker, error) {
	if err := b.unpack(); err != nil {
		return nil, fault.New(fault.Missing, "unpack the emulator's sources: %w", err)
	}
	hash, err := hashOf(b.options.tree)
	if err != nil {
		return nil, err
	}
	m := &Marker{Version: b.options.Version, Sources: hash, Interpreter: []string{b.options.Program, "emulator", "interpreter"},
		Compiler: strings.Join(b.compilers.c, " "), Emulated: true}
	list, err := units(b.options.tree)
	if err != nil {
		return nil, err
	}
	if len(b.compilers.cxx) == 0 {
		for _, u := range list {
			if u.isCPlusPlus() {
				m.LeftOut = append(m.LeftOut, u.name+".so")
			}
		}
		list = slices.DeleteFunc(list, unit.isCPlusPlus)
	}
	if err := b.compileAll(ctx, list); err != nil {
		return nil, err
	}
	for _, u := range list {
		m.Libraries = append(m.Libraries, u.name+".so")
	}
	if err := b.writeFiles(m); err != nil {
		return nil, fault.New(fault.Missing, "write the emulator: %w", err)
	}
	return m, nil
}

// unpack writes the sources where the compiler can read them.
func (b *builder) unpack() error {
	for _, folder := range []string{"bin", "lib64", "opp"} {
		if err := os.MkdirAll(filepath.Join(b.root, folder), 0o755); err != nil {
			return err
		}
	}
	if err := os.CopyFS(filepath.Join(b.work, "source"), b.options.tree); err != nil {
		return err
	}
	return os.CopyFS(filepath.Join(b.work, "source", shimFolder), onnxruntime.Sources)
}

// compileAll makes the libraries: first every source for itself, as many at a time as
// there are cores, then the libraries, the one that others link before them.
func (b *builder) compileAll(ctx context.Context, list []unit) error {
	if err := os.MkdirAll(filepath.Join(b.work, "objects"), 0o755); err != nil {
		return fault.New(fault.Missing, "compile the emulator: %w", err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var running sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, u := range list {
		for _, file := range u.sources() {
			free <- struct{}{}
			running.Go(func() {
				defer func() { <-free }()
				if err := b.run(ctx, u, b.compileArguments(u, file)); err != nil {
					stop(err) // the first counts; the others end by it
				}
			})
		}
	}
	running.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	for _, u := range list {
		if err := b.run(ctx, u, b.linkArguments(u)); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) object(u unit, file string) string {
	return filepath.Join(b.work, "objects", u.name+"_"+filepath.Base(file)+".o")
}

func (b *builder) compileArguments(u unit, file string) []string {
	standard := "-std=gnu11"
	if u.isCPlusPlus() {
		standard = "-std=gnu++17"
	}
	args := []string{standard, "-D_GNU_SOURCE", "-O2", "-fPIC", "-fvisibility=hidden", "-pthread", "-I", includeFolder}
	if u.callsONNXRuntime {
		args = append(args, "-I", shimFolder)
	}
	return append(args, "-c", file, "-o", b.object(u, file))
}

func (b *builder) linkArguments(u unit) []string {
	args := []string{"-shared", "-pthread", "-Wl,-soname," + u.name + ".so", "-o", filepath.Join(b.root, "lib64", u.name+".so")}
	for _, file := range u.sources() {
		args = append(args, b.object(u, file))
	}
	if !u.isBase {
		args = append(args, "-L", filepath.Join(b.root, "lib64"), "-Wl,--no-as-needed", "-lascendcl", "-Wl,-rpath,$ORIGIN")
	}
	return append(args, u.system...)
}

// run runs the compiler of a library.
func (b *builder) run(ctx context.Context, u unit, args []string) error {
	command := b.compilers.c
	if u.isCPlusPlus() {
		command = b.compilers.cxx
	}
	cmd := exec.CommandContext(ctx, command[0], slices.Concat(command[1:], args)...)
	cmd.Dir = filepath.Join(b.work, "source")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fault.New(fault.Program, "compile %s with %s: %w\n%s", u.name, strings.Join(command, " "), err, lastLines(said.String(), 20))
	}
	return nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func (b *builder) writeFiles(m *Marker) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	atc := "#!/bin/sh\n# The emulator's atc: npuctl answers as CANN's compiler does.\n" +
		rootVariable + "=" + Quote(b.final) + "\nexport " + rootVariable + "\nexec " + Quote(b.options.Program) + " emulator atc \"$@\"\n"
	scene := "os=linux\narch=" + b.target() + "\n"
	for _, f := range []struct {
		path, text string
		mode       fs.FileMode
	}{
		{"bin/atc", atc, 0o755},
		{"opp/scene.info", scene, 0o644},
		{"set_env.sh", Exports(b.final), 0o644},
		{MarkerFile, string(data) + "\n", 0o644},
	} {
		if err := os.WriteFile(filepath.Join(b.root, f.path), []byte(f.text), f.mode); err != nil {
			return err
		}
	}
	return nil
}

// rootVariable tells atc where it stands.
const rootVariable = "NPUCTL_EMULATOR_ROOT"

// target is the processor that the libraries are for, as CANN spells it: a cross
// compiler has it in its name.
func (b *builder) target() string {
	name := filepath.Base(b.compilers.c[0])
	for _, cpu := range []string{"aarch64", "x86_64"} {
		if strings.HasPrefix(name, cpu+"-") {
			return cpu
		}
	}
	return machineName(runtime.GOARCH)
}

// machineName is a processor as CANN spells it.
func machineName(arch string) string {
	switch arch {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return arch
}

// place puts the finished folder where it belongs. One that is there already stays the
// same folder, which may be somebody's working directory, and gets new contents; the
// marker, by which an emulator is known, goes first and comes last.
func (b *builder) place() error {
	var err error
	for range 10 { // another process may be at the same
		// A rename would put a new folder into the place of an empty one, too.
		if _, statErr := os.Stat(b.final); statErr == nil {
			err = b.fill()
		} else {
			err = os.Rename(b.root, b.final)
		}
		if err == nil {
			return nil
		}
	}
	return fault.New(fault.Missing, "put the emulator in its place: %w", err)
}

// fill moves what was made into the folder that is there, in place of what it held.
func (b *builder) fill() error {
	made, err := os.ReadDir(b.root)
	if err != nil {
		return err
	}
	old, err := os.MkdirTemp(b.work, "old-")
	if err != nil {
		return err
	}
	names := []string{MarkerFile}
	for _, e := range made {
		if e.Name() != MarkerFile {
			names = append(names, e.Name())
		}
	}
	for _, name := range names {
		if err := os.Rename(filepath.Join(b.final, name), filepath.Join(old, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, name := range slices.Backward(names) {
		err := os.Rename(filepath.Join(b.root, name), filepath.Join(b.final, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // moved by a try before
			return err
		}
	}
	return nil
}
