package om

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/npuctl/npuctl/internal/fault"
)

// Kind says what a file is.
type Kind string

// The kinds of model files. Only KindOM can be loaded by a runner of .om files.
const (
	KindOM       Kind = "om"
	KindOM2      Kind = "om2"      // a zip package, of ATC mode 7
	KindNano     Kind = "exeom"    // for the nano chips, of ATC mode 30
	KindPhone    Kind = "hiai"     // for Kirin phones
	KindDataflow Kind = "dataflow" // several models with queues between them
	KindBundle   Kind = "bundle"   // several models that share their variables
)

// statements say in one sentence what a file is that is not a plain .om.
var statements = map[Kind]string{
	KindOM2:      "an OM2 package (zip, of ATC mode 7), which is not loaded as an .om is",
	KindNano:     "a nano model (of ATC mode 30); it runs on the Ascend035 series only",
	KindPhone:    "a HiAI model for Kirin phones; the Ascend runtime does not load it",
	KindDataflow: "a dataflow model: several networks with queues between them, not one that can be run by itself",
	KindBundle:   "a bundle of models that share variables",
}

// Statement says in one sentence what the kind is; empty for an .om.
func (k Kind) Statement() string { return statements[k] }

// File is an open model file. Its methods may be called from several goroutines.
type File struct {
	// Name is what messages call the file.
	Name   string
	Kind   Kind
	Header Header // zero for an OM2 package
	// Package describes an OM2 package, nil for all others.
	Package *Package

	source     io.ReaderAt
	size       int64
	partitions []Partition
	meta       *zip.File // the description of the first model in an OM2 package; nil without
	remarks    []string
	closer     io.Closer
}

// Open opens a file and reads its header and tables.
func Open(path string) (*File, error) {
	info, err := os.Stat(path) // first: opening a pipe would wait for a writer
	if err == nil && !info.Mode().IsRegular() {
		return nil, fault.New(fault.Input, "%s is no regular file", path)
	}
	if err != nil {
		return nil, fault.New(fault.Input, "%w", err)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fault.New(fault.Input, "%w", err)
	}
	if info, err = file.Stat(); err != nil {
		file.Close()
		return nil, fault.New(fault.Input, "%w", err)
	}
	f, err := Read(file, info.Size(), path)
	if err != nil {
		file.Close()
		return nil, err
	}
	f.closer = file
	return f, nil
}

// Close ends reading. It does nothing for a file that [Read] made.
func (f *File) Close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// Size is the file's length in bytes.
func (f *File) Size() int64 { return f.size }

// Read looks at a model that is size bytes long. The source must stay readable as
// long as the File is used.
func Read(source io.ReaderAt, size int64, name string) (*File, error) {
	f := &File{Name: name, source: source, size: size}
	if err := f.recognise(); err != nil {
		return nil, named(name, err)
	}
	return f, nil
}

// named puts the file before an error's message, and keeps its remedy.
func named(name string, err error) error {
	return fault.New(fault.Input, "%s: %w", name, err)
}

func (f *File) recognise() error {
	start, err := f.read(0, min(f.size, headerBytes))
	switch {
	case err != nil:
		return err
	case f.size == 0:
		return fault.New(fault.Input, "the file is empty")
	case bytes.HasPrefix(start, []byte(magic)):
		return f.recogniseContainer(start)
	case bytes.HasPrefix(start, []byte("PK\x03\x04")):
		f.Kind = KindOM2
		return f.readPackage()
	}
	return noModel(start, f.size)
}

// recogniseContainer reads header and tables, and sorts the kinds that share them.
func (f *File) recogniseContainer(start []byte) (err error) {
	if f.size < headerBytes {
		return fault.New(fault.Input, "the file has %d bytes; the header alone takes %d", f.size, headerBytes)
	}
	if f.Header, err = parseHeader(start); err != nil {
		return err
	}
	if f.Header.phone() {
		return f.readPhone()
	}
	if err := f.Header.checkLength(f.size); err != nil {
		return err
	}
	if err := f.readTables(); err != nil {
		return err
	}
	f.Kind = f.containerKind()
	if f.Kind == KindOM && !f.Header.Encrypted {
		return f.requireGraph()
	}
	return nil
}

// readPhone takes what it can: that the file is for a phone matters more than
// whether all of it is there.
func (f *File) readPhone() error {
	f.Kind = KindPhone
	err := f.Header.checkLength(f.size)
	if err == nil {
		err = f.readTables()
	}
	if err != nil {
		f.remark("it was not read further: %v", err)
		f.partitions = nil
	}
	return nil
}

func (f *File) containerKind() Kind {
	holds := func(types ...PartitionType) bool {
		return slices.ContainsFunc(f.partitions, func(p Partition) bool { return slices.Contains(types, p.Type) })
	}
	switch {
	case holds(nanoPartitions...) || strings.EqualFold(filepath.Ext(f.Name), ".exeom"):
		return KindNano
	case f.Header.Type == TypeFlow || holds(FlowModel, FlowSubmodel):
		return KindDataflow
	case f.Header.Type == TypeBundle || holds(BundleModelInfo):
		return KindBundle
	}
	return KindOM
}

// requireGraph refuses what the loader would: a model without a graph.
func (f *File) requireGraph() error {
	for model := range int(f.Header.ModelNum) {
		if _, ok := f.Partition(model, ModelDef); !ok {
			return fault.New(fault.Input, "model %d of the file has no MODEL_DEF partition", model)
		}
	}
	return nil
}

// beginnings are what other files start with.
var beginnings = []struct{ bytes, what string }{
	{"version https://git-lfs", "a Git LFS pointer; `git lfs pull` fetches the file itself"},
	{"\x7fELF", "an ELF program or library"},
	{"\x89HDF\r\n", "an HDF5 file"},
	{"\x1f\x8b", "a gzip archive; unpack it first"},
}

// noModel says what a file looks like that is no model.
func noModel(start []byte, size int64) error {
	for _, b := range beginnings {
		if bytes.HasPrefix(start, []byte(b.bytes)) {
			return fault.New(fault.Input, "no offline model, but %s", b.what)
		}
	}
	if len(start) > 2 && start[0] == 8 && start[1] < 32 && start[2] == 0x12 {
		return fault.New(fault.Input, "no offline model, but probably an ONNX one").With("compile it first")
	}
	if !isText(start) {
		return fault.New(fault.Input, "no offline model: it begins with % x, not with %q", start[:min(4, len(start))], magic)
	}
	line, _, _ := strings.Cut(string(start), "\n")
	if runes := []rune(line); len(runes) > 60 {
		line = string(runes[:60]) + "…"
	}
	return fault.New(fault.Input, "no offline model, but a text of %d bytes: %q", size, line).
		With("a link or a placeholder may have been saved in place of the model")
}

// isText takes a beginning that may end within a letter.
func isText(b []byte) bool {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && utf8.FullRune(b) || r < ' ' && !strings.ContainsRune("\t\r\n", r) {
			return false
		}
		b = b[n:]
	}
	return true
}

// remark keeps what a reader should know but what is no error.
func (f *File) remark(format string, args ...any) {
	f.remarks = append(f.remarks, fmt.Sprintf(format, args...))
}

// window starts reading for one question.
func (f *File) window() *window { return &window{source: f.source} }
