package ensemble

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/bench/ensemble/part"
	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/suggest"
)

// Limits of files: more than any has, so that hostile ones cost little.
const (
	configLimit = 16 << 20
	pythonLimit = 1 << 20
)

// Model is a model of a repository that is a step.
type Model struct {
	Name    string
	Version int64
	// Folder is that of the model; Config what is in its config.pbtxt.
	Folder string
	Config *configgen.Config
	// Kind is that of a Python model; [part.Unknown] for models of a backend.
	Kind part.Kind
	// File is what an engine opens; "" for models that package part computes.
	File string
}

// HasEngine says whether the model runs on an engine.
func (m *Model) HasEngine() bool { return m.File != "" }

// configFile is the path of its config, for messages.
func (m *Model) configFile() string { return filepath.Join(m.Folder, "config.pbtxt") }

// repository is a folder of models.
type repository struct {
	path   string
	models map[string]*Model
}

// refused is a fault of a file.
func refused(path, format string, args ...any) *fault.Error {
	return fault.New(fault.Input, "%s: %w", path, fmt.Errorf(format, args...))
}

// config reads a model's config.
func (r *repository) config(name string) (*configgen.Config, error) {
	if name == "" || strings.ContainsAny(name, `/\`) || !filepath.IsLocal(name) || name == "." {
		return nil, fault.New(fault.Input, "%q is no name of a model", name)
	}
	path := filepath.Join(r.path, name, "config.pbtxt")
	data, err := readFile(path, configLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Input, "there is no model %q in %s", name, r.path).With("%s", suggest.Text(name, r.names()))
	}
	if err != nil {
		return nil, fault.New(fault.Input, "read the config: %w", err)
	}
	doc, err := configgen.Parse(path, data)
	if err != nil {
		return nil, fault.New(fault.Input, "%w", err)
	}
	return doc.Config(), nil
}

// names are the models that the repository has.
func (r *repository) names() (names []string) {
	paths, err := filepath.Glob(filepath.Join(r.path, "*", "config.pbtxt"))
	if err != nil {
		return nil
	}
	for _, path := range paths {
		names = append(names, filepath.Base(filepath.Dir(path)))
	}
	return names
}

func readFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > limit) {
		err = fmt.Errorf("%s is no file of at most %d bytes", path, limit)
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// model finds a model that can be a step, with its files. A version of -1 is the newest
// that is served.
func (r *repository) model(name string, version int64) (*Model, error) {
	key := fmt.Sprintf("%s/%d", name, version)
	if m := r.models[key]; m != nil {
		return m, nil
	}
	c, err := r.config(name)
	if err != nil {
		return nil, err
	}
	m := &Model{Name: name, Folder: filepath.Join(r.path, name), Config: c}
	if len(c.Input) == 0 || len(c.Output) == 0 {
		return nil, refused(m.configFile(), "it does not list inputs and outputs").With("npuctl config writes them")
	}
	if m.Version, err = m.newest(version); err != nil {
		return nil, err
	}
	if err := m.find(); err != nil {
		return nil, err
	}
	for _, other := range r.models {
		if other.Name == name && other.Version == m.Version {
			m = other // asked for by its number and as the newest
		}
	}
	r.models[key] = m
	return m, nil
}

// newest chooses a version.
func (m *Model) newest(wanted int64) (int64, error) {
	entries, err := os.ReadDir(m.Folder)
	if err != nil {
		return 0, fault.New(fault.Input, "list the versions of the model: %w", err)
	}
	var there []int64
	for _, e := range entries {
		n, err := strconv.ParseInt(e.Name(), 10, 64)
		if err != nil || n < 1 || strconv.FormatInt(n, 10) != e.Name() {
			continue
		}
		if info, err := os.Stat(filepath.Join(m.Folder, e.Name())); err == nil && info.IsDir() {
			there = append(there, n)
		}
	}
	slices.Sort(there)
	if p := m.Config.VersionPolicy; p != nil && p.Specific != nil {
		there = slices.DeleteFunc(there, func(n int64) bool { return !slices.Contains(p.Specific.Versions, n) })
	}
	switch {
	case len(there) == 0:
		return 0, refused(m.Folder, "it has no folder of a version that is served, such as %s", filepath.Join(m.Folder, "1"))
	case wanted == -1:
		return there[len(there)-1], nil
	case !slices.Contains(there, wanted):
		return 0, refused(m.Folder, "version %d is not served, but %v", wanted, there)
	}
	return wanted, nil
}

// find says what runs the model, and finds its file.
func (m *Model) find() error {
	c := m.Config
	backend := c.Backend
	if backend == "" && strings.HasPrefix(c.Platform, "onnxruntime") {
		backend = "onnxruntime"
	}
	switch backend {
	case "npu_ge", "onnxruntime":
		return m.findFile(c.DefaultModelFilename)
	case "python":
		return m.findPython()
	}
	return refused(m.configFile(), "the backend %q is not run here", backend).
		With("npu_ge, onnxruntime and the Python models of npuctl are; npuctl config writes such a model")
}

// version is the folder of the version.
func (m *Model) version() string { return filepath.Join(m.Folder, strconv.FormatInt(m.Version, 10)) }

// findFile finds the file of a model for an engine: the one named, model.onnx, model.om, or
// the only one there is.
func (m *Model) findFile(name string) error {
	if name != "" && (!filepath.IsLocal(name) || filepath.Base(name) != name) {
		return refused(m.configFile(), "%q is no file in a version's folder", name)
	}
	names := []string{"model.onnx", "model.om"}
	if name != "" {
		names = []string{name}
	}
	for _, name := range names {
		path := filepath.Join(m.version(), name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			m.File = path
			return nil
		}
	}
	others, err := filepath.Glob(filepath.Join(m.version(), "*.onnx"))
	if name == "" && err == nil && len(others) == 1 {
		m.File = others[0]
		return nil
	}
	return refused(m.version(), "there is no %s", names[0]).With("npuctl validate says what else is missing in the repository")
}

// findPython says which of npuctl's Python models it is.
func (m *Model) findPython() error {
	path := filepath.Join(m.version(), "model.py")
	data, err := readFile(path, pythonLimit)
	if err != nil {
		return fault.New(fault.Input, "read the Python model: %w", err)
	}
	switch m.Kind = part.KindOf(data); m.Kind {
	case part.ONNXRuntime, part.Compiled:
		name, ok := m.Config.Parameter("model")
		if !ok {
			return refused(m.configFile(), "the parameter model is missing")
		}
		return m.findFile(name)
	case part.Speech:
		return refused(path, "the model %s is speech recognition in Python, which is not run here", m.Name).
			With("measure its encoder and decoder each by themselves")
	case part.Unknown:
		return refused(path, "the model %s is Python that npuctl does not know, and nothing here can run it", m.Name).
			With("measure the models around it each by themselves; if npuctl config ensemble wrote it and it was changed, or is of another release, npuctl config ensemble --force writes it anew")
	}
	return nil
}
