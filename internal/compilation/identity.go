package compilation

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/files"
	"github.com/npuctl/npuctl/onnx"
)

// FileFacts is a file as the record knows it. Paths are relative to the record.
type FileFacts struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// factsOf hashes a file.
func factsOf(path string) (FileFacts, error) {
	if err := files.Regular(path); err != nil {
		return FileFacts{}, err
	}
	f, err := os.Open(path)
	if err != nil {
		return FileFacts{}, err
	}
	defer f.Close()
	hash := sha256.New()
	n, err := io.Copy(hash, f)
	if err != nil {
		return FileFacts{}, err
	}
	return FileFacts{Path: path, SHA256: hex.EncodeToString(hash.Sum(nil)), Bytes: n}, nil
}

// allFacts hashes files in their order.
func allFacts(paths []string) (list []FileFacts, err error) {
	for _, p := range paths {
		f, err := factsOf(p)
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return list, nil
}

// withoutCall is an error of the system without the name of the call, which says nothing
// to a user.
func withoutCall(err error) error {
	var system *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such file")
	case errors.As(err, &system):
		return system.Err
	}
	return err
}

// identity is everything that decides what a build gives. Two builds of one
// identity need not be done twice.
type identity struct {
	Format    int                `json:"format"`
	Input     []string           `json:"input"` // hashes of the model and its external data
	SoC       string             `json:"soc"`
	Release   string             `json:"release"` // of CANN
	Program   string             `json:"program"` // ATC's size and time, where there is no release
	Emulated  bool               `json:"emulated"`
	NPUCTL    string             `json:"npuctl"`
	Sizes     map[string][]int64 `json:"sizes"`
	Dims      map[string]int64   `json:"dims"`
	Batch     int64              `json:"batch"`
	Bind      map[string]string  `json:"bind"`
	Optimize  bool               `json:"optimize"`
	Only      []string           `json:"only"`
	Skip      []string           `json:"skip"`
	Arguments []string           `json:"arguments"` // without paths
	Files     map[string]string  `json:"files"`     // hashes of the files that options name
	Static    bool               `json:"static"`
}

// identityFormat changes with what a build of one identity gives.
const identityFormat = 1

// withoutMeaning are options that change how long a build takes or what it tells, not
// what it gives.
var withoutMeaning = []string{"model", "output", "op_compiler_cache_mode", "op_compiler_cache_dir", "log", "check_report", "debug_dir"}

// identify hashes what decides the result.
func (b *build) identify(m *onnx.Model, list arguments) error {
	input, err := allFacts(append([]string{b.model}, sideFiles(m)...))
	if err != nil {
		return fault.New(fault.Input, "%s cannot be read: %w", b.model, withoutCall(err))
	}
	b.input = input
	j := b.job
	id := identity{
		Format: identityFormat, SoC: b.chip.Name, Release: b.toolkit.Version, Emulated: b.toolkit.Emulated, NPUCTL: j.Version,
		Sizes: j.Sizes.Shapes, Dims: j.Sizes.Dims, Batch: j.Sizes.Batch, Bind: j.Sizes.Bind,
		Optimize: !j.NoOptimize, Only: j.Passes.Only, Skip: j.Passes.Skip, Static: j.Static, Files: map[string]string{},
	}
	if id.Release == "" {
		id.Program = programText(b.toolkit.Program)
	}
	for _, f := range input {
		id.Input = append(id.Input, f.SHA256)
	}
	for _, a := range list {
		switch {
		case slices.Contains(withoutMeaning, a.name):
		case slices.Contains(fileOptions, a.name):
			f, err := factsOf(a.value)
			if err != nil {
				return fault.New(fault.Input, "%s: %w", b.fileText(a), withoutCall(err))
			}
			id.Files[a.name] = f.SHA256
		default:
			id.Arguments = append(id.Arguments, a.String())
		}
	}
	data, err := json.Marshal(id)
	if err != nil {
		return fault.New(fault.Internal, "identify the build: %w", err)
	}
	sum := sha256.Sum256(data)
	b.key = hex.EncodeToString(sum[:])
	return nil
}

// fileText names the file of an option, and who asked for it.
func (b *build) fileText(a argument) string {
	name := "--" + a.name
	if place := b.job.inFile(a.name); place != "" {
		name = place
	}
	return fmt.Sprintf("the file of %s, %s", name, a.value)
}

func programText(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return path
	}
	return fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
}

// sideFiles lists the files outside the model that hold its tensors.
func sideFiles(m *onnx.Model) []string {
	found := map[string]bool{}
	add := func(t *onnx.Tensor) {
		if t != nil && t.IsExternal() {
			location, _, _ := t.External()
			found[filepath.Join(filepath.Dir(m.Path), filepath.FromSlash(location))] = true
		}
	}
	for g := range m.Graphs() {
		for _, v := range g.Initializers() {
			add(v.Initializer())
		}
	}
	for n := range m.Nodes() {
		add(n.ConstantValue())
	}
	return slices.Sorted(maps.Keys(found))
}
