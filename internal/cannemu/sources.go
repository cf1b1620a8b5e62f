package cannemu

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/internal/onnxruntime"
)

// sources are the C and C++ sources of the emulated libraries, in lib.
//
//go:embed lib
var sources embed.FS

const (
	sourceFolder  = "lib"
	includeFolder = "lib/include"
	testFolder    = "lib/testdata"
	// shimFolder is where the shim over ONNX Runtime is unpacked, beside lib.
	shimFolder = "onnxruntime"
)

// library is what a library needs besides its own sources. Those that are not listed
// are linked with libascendcl.so alone.
type library struct {
	name string // of its folder, and of the file without .so
	// system are the system's libraries that it links.
	system []string
	// callsONNXRuntime adds our own shim over ONNX Runtime's C API.
	callsONNXRuntime bool
	// isBase marks the one that the others link.
	isBase bool
}

var libraries = []library{
	{name: "libascendcl", system: []string{"-ldl", "-lm"}, callsONNXRuntime: true, isBase: true},
}

// unit is one library to be compiled.
type unit struct {
	library
	files []string // paths in the tree of sources
}

// isCPlusPlus says whether any source needs the C++ compiler.
func (u unit) isCPlusPlus() bool {
	return slices.ContainsFunc(u.files, func(f string) bool { return path.Ext(f) != ".c" })
}

// sources are all files to be compiled, as they lie when unpacked.
func (u unit) sources() []string {
	if u.callsONNXRuntime {
		return append(slices.Clone(u.files), path.Join(shimFolder, "api.c"))
	}
	return u.files
}

// units lists the libraries in the order of their compilation: the base first.
func units(tree fs.FS) ([]unit, error) {
	folders, err := fs.ReadDir(tree, sourceFolder)
	if err != nil {
		return nil, err
	}
	var list []unit
	for _, folder := range folders {
		place := path.Join(sourceFolder, folder.Name())
		if !folder.IsDir() || place == includeFolder || place == testFolder {
			continue
		}
		u := unit{library: library{name: folder.Name()}}
		for _, l := range libraries {
			if l.name == folder.Name() {
				u.library = l
			}
		}
		for _, pattern := range []string{"*.c", "*.cc", "*.cpp"} {
			files, err := fs.Glob(tree, path.Join(place, pattern))
			if err != nil {
				return nil, err
			}
			u.files = append(u.files, files...)
		}
		if len(u.files) > 0 {
			list = append(list, u)
		}
	}
	slices.SortStableFunc(list, func(a, b unit) int {
		switch {
		case a.isBase == b.isBase:
			return strings.Compare(a.name, b.name)
		case a.isBase:
			return -1
		}
		return 1
	})
	return list, nil
}

// SourceHash is a hash over all sources of the libraries: 64 hexadecimal digits.
func SourceHash() (string, error) { return hashOf(sources) }

func hashOf(tree fs.FS) (string, error) {
	sum := sha256.New()
	for _, tree := range []fs.FS{tree, onnxruntime.Sources} {
		err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasPrefix(name, testFolder) {
				return err
			}
			data, err := fs.ReadFile(tree, name)
			if err != nil {
				return err
			}
			fmt.Fprintf(sum, "%s %d\n", name, len(data))
			_, err = sum.Write(data)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
