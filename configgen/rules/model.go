package rules

import (
	"errors"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/npuctl/npuctl/configgen"
)

// Repository is a folder of models, or the made-up one around a lone config.
type Repository struct {
	Path   string
	Models []*Model
	// Folders are all names in the repository's folder, models or not.
	entries []string
	disk    diskFolder
	lone    bool

	// byName finds the first models, as many as indexed says.
	byName  map[string]*Model
	indexed int
}

// Model is one model of a repository.
type Model struct {
	// Name is the name of its folder.
	Name string
	// Path is the folder, and ConfigPath the config file, for messages.
	Path, ConfigPath string
	// Doc and Config are nil when there is no config file, or when it cannot be read.
	Doc       *configgen.Document
	Config    *configgen.Config
	ParseErr  *configgen.ParseError
	HasConfig bool
	Versions  []Version

	folder   folder
	imagined bool
	// readErr is set when the config file is there and cannot be opened.
	readErr error
	// of is the repository it belongs to.
	of *Repository

	completeOnce sync.Once
	completed    identity
	onnxOnce     sync.Once
	onnx         modelFile
	refused      *bool
}

// Version is one folder that the server takes for a version.
type Version struct {
	Folder string
	Number int64
	// IsPlain is set when the folder's name is the number and nothing else.
	IsPlain bool
	// TooLarge is set when the number does not fit.
	TooLarge bool
}

// notVersions are folders that the server never takes for versions.
var notVersions = []string{"warmup", "initial_state", "configs"}

// readModel reads a model's folder from disk.
func readModel(of *Repository, folderPath, configPath string) *Model {
	absolute, err := filepath.Abs(folderPath)
	if err != nil {
		absolute = folderPath
	}
	m := &Model{Name: filepath.Base(absolute), Path: folderPath, ConfigPath: configPath, folder: diskFolder(folderPath), of: of}
	data, err := readConfig(configPath)
	switch {
	case errors.Is(err, os.ErrNotExist):
		m.Config = &configgen.Config{}
	case err != nil:
		m.HasConfig, m.readErr = true, err
	default:
		m.HasConfig = true
		m.parse(data)
	}
	m.Versions = versionsIn(m.folder)
	return m
}

// parse reads the text of the config.
func (m *Model) parse(data []byte) {
	doc, err := configgen.Parse(m.ConfigPath, data)
	m.Doc = doc
	if errors.As(err, &m.ParseErr) {
		return
	}
	m.Config = doc.Config()
}

// versionsIn gives the folders that the server takes for versions: those whose names
// begin with a number, read as C reads it.
func versionsIn(d folder) (out []Version) {
	for _, name := range subfolders(d, ".") {
		if slices.Contains(notVersions, name) || hasLeadingZero(name) {
			continue
		}
		number, tooLarge, ok := leadingNumber(name)
		if !ok {
			continue
		}
		out = append(out, Version{Folder: name, Number: number, TooLarge: tooLarge, IsPlain: name == strconv.FormatInt(number, 10)})
	}
	return out
}

func hasLeadingZero(name string) bool { return len(name) > 1 && name[0] == '0' }

// leadingNumber reads the number with which a name begins: blanks, a sign, digits.
func leadingNumber(name string) (number int64, tooLarge, ok bool) {
	text := strings.TrimLeft(name, " \t\n\v\f\r")
	sign := ""
	if text != "" && (text[0] == '-' || text[0] == '+') {
		sign, text = text[:1], text[1:]
	}
	digits := text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
	if digits == "" {
		return 0, false, false
	}
	number, err := strconv.ParseInt(sign+digits, 10, 64)
	return number, err != nil, true
}

// served gives the numbers of the versions that the policy lets the server load.
func (m *Model) served() []int64 {
	var there []int64
	for _, v := range m.Versions {
		if !v.TooLarge && !slices.Contains(there, v.Number) {
			there = append(there, v.Number)
		}
	}
	slices.Sort(there)
	slices.Reverse(there)
	policy := m.Config.VersionPolicy
	switch {
	case policy == nil:
		return there[:min(1, len(there))]
	case policy.Latest != nil:
		n := int64(min(int64(policy.Latest.NumVersions), math.MaxInt32))
		return there[:min(n, int64(len(there)))]
	case policy.Specific != nil:
		return slices.DeleteFunc(there, func(v int64) bool { return !slices.Contains(policy.Specific.Versions, v) })
	}
	return there
}

// folderOf gives the folder in which the server looks for a version: that of exactly
// this name.
func folderOf(version int64) string { return strconv.FormatInt(version, 10) }

// isEnsemble says whether the model is a graph of others.
func (m *Model) isEnsemble() bool { return m.Config != nil && m.Config.Ensemble != nil }

// displayName is the name that the server uses in its messages.
func (m *Model) displayName() string {
	if m.Config != nil && m.Config.Name != "" {
		return m.Config.Name
	}
	return m.Name
}

// identity is what the server makes of platform, backend and file name.
type identity struct {
	platform, backend, filename string
	// undetermined is set when nothing says which backend it is.
	undetermined bool
	// guessed is set when the backend is not written in the config.
	guessed bool
}

// knownBackend is a backend that the server recognises by platform or file name.
type knownBackend struct {
	backend, platform, file string
	// isFolder and isFile say what the file in the version folder must be.
	mustBeFile bool
}

// knownBackends stand in the order in which the server tries them.
var knownBackends = []knownBackend{
	{"tensorrt", "tensorrt_plan", "model.plan", true},
	{"onnxruntime", "onnxruntime_onnx", "model.onnx", false},
	{"openvino", "", "model.xml", false},
	{"pytorch", "pytorch_libtorch", "model.pt", true},
	{"python", "", "model.py", false},
}

// identify completes platform and backend as the server does before it checks them.
func (m *Model) identify() identity {
	m.completeOnce.Do(func() { m.completed = m.completeIdentity() })
	return m.completed
}

func (m *Model) completeIdentity() identity {
	c := m.Config
	id := identity{platform: c.Platform, backend: c.Backend, filename: c.DefaultModelFilename, guessed: c.Backend == ""}
	first := m.firstFolder()
	has := func(name string, want ...entryKind) bool {
		if first == "" {
			return false
		}
		kind, _ := m.folder.stat(path.Join(first, name))
		return slices.Contains(want, kind)
	}
	if id.tensorflow(has) {
		return id
	}
	for _, k := range knownBackends {
		if id.backend == "" && id.isKnown(k, has) {
			id.backend = k.backend
		}
		if id.backend != k.backend {
			continue
		}
		if id.platform == "" {
			id.platform = k.platform
		}
		if id.filename == "" && !(k.backend == "pytorch" && c.Runtime == "model.py") {
			id.filename = k.file
		}
		return id
	}
	if id.backend != "" || id.platform != "" || id.filename != "" {
		return id
	}
	_, backend, ok := strings.Cut(m.Name, ".")
	id.backend, id.filename, id.undetermined = backend, "model."+backend, !ok
	return id
}

// firstFolder is the folder in which the server looks for a known file: the first by
// name, version or not.
func (m *Model) firstFolder() string {
	all := subfolders(m.folder, ".")
	if len(all) == 0 {
		return ""
	}
	return slices.Min(all)
}

func (id *identity) isKnown(k knownBackend, has func(string, ...entryKind) bool) bool {
	if id.platform == k.platform && k.platform != "" || id.filename == k.file {
		return true
	}
	kinds := []entryKind{regularFile, directory}
	if k.mustBeFile {
		kinds = kinds[:1]
	}
	return id.platform == "" && id.filename == "" && has(k.file, kinds...)
}

// tensorflow recognises TensorFlow models, which need a platform.
func (id *identity) tensorflow(has func(string, ...entryKind) bool) bool {
	const saved, graph = "tensorflow_savedmodel", "tensorflow_graphdef"
	if id.platform == "" && (id.backend == "" || id.backend == "tensorflow") {
		switch {
		case id.filename == "model.savedmodel":
			id.platform = saved
		case id.filename == "model.graphdef":
			id.platform = graph
		case id.filename == "" && has("model.graphdef", regularFile):
			id.platform = graph
		case id.filename == "" && has("model.savedmodel", directory):
			id.platform = saved
		}
	}
	if id.platform != saved && id.platform != graph {
		return false
	}
	if id.backend == "" {
		id.backend = "tensorflow"
	}
	if id.filename == "" {
		id.filename = map[string]string{saved: "model.savedmodel", graph: "model.graphdef"}[id.platform]
	}
	return true
}

// isGE says whether the model is served by the Ascend GE backend.
func (m *Model) isGE() bool { return m.Config != nil && m.identify().backend == geBackend }

const geBackend = "npu_ge"
