package npy

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// suffix of the entries of an archive; their names without it are the arrays'.
const suffix = ".npy"

// maxExpansion is more than any honest archive expands: deflate reaches 1,032.
// What claims more shares its data among entries to exhaust memory.
const maxExpansion = 1100

// ReadNPZ reads all arrays of a .npz archive of size bytes, by name. Names are
// what the archive says, slashes and all: they are not safe as paths. expected,
// which may be nil, gives the type to expect of each, as in [ReadNPYAs], or
// Undefined. It fails when one entry is not an array or a name occurs twice.
func ReadNPZ(r io.ReaderAt, size int64, expected func(name string) tensor.Type) (map[string]*tensor.Dense, error) {
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("read npz archive: %w", err)
	}
	if err := checkExpansion(archive.File, size); err != nil {
		return nil, fmt.Errorf("read npz archive: %w", err)
	}
	arrays := make(map[string]*tensor.Dense, len(archive.File))
	for _, file := range archive.File {
		name, ok := strings.CutSuffix(file.Name, suffix)
		if !ok {
			return nil, fmt.Errorf("read npz archive: entry %q is not an array: no %s at the end", file.Name, suffix)
		}
		if arrays[name] != nil {
			return nil, fmt.Errorf("read npz archive: array %q occurs twice", name)
		}
		hint := tensor.Undefined
		if expected != nil {
			hint = expected(name)
		}
		if arrays[name], err = readEntry(file, hint); err != nil {
			return nil, fmt.Errorf("read npz archive: array %q: %w", name, err)
		}
	}
	return arrays, nil
}

// checkExpansion bounds the sum of the sizes that the directory declares, and
// with it all that is ever read.
func checkExpansion(files []*zip.File, size int64) error {
	left := uint64(size) * maxExpansion
	for _, file := range files {
		if file.UncompressedSize64 > left {
			return fmt.Errorf("%d bytes claim to hold more than %d times as many", size, maxExpansion)
		}
		left -= file.UncompressedSize64
	}
	return nil
}

func readEntry(file *zip.File, hint tensor.Type) (*tensor.Dense, error) {
	entry, err := file.Open()
	if err != nil {
		return nil, err
	}
	defer entry.Close()
	d, err := read(entry, hint, int64(file.UncompressedSize64))
	if err != nil {
		return nil, err
	}
	// Only the read that finds the end compares the checksum.
	extra, err := io.Copy(io.Discard, entry)
	if err != nil {
		return nil, err
	}
	if extra > 0 {
		return nil, errors.New("more data than the shape has elements")
	}
	return d, nil
}

// WriteNPZ writes arrays as a .npz archive, sorted by name and without
// compression, as numpy.savez does: the same bytes for the same arrays.
func WriteNPZ(w io.Writer, arrays map[string]*tensor.Dense) error {
	archive := zip.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		entry, err := archive.CreateHeader(&zip.FileHeader{Name: name + suffix, Method: zip.Store})
		if err != nil {
			return fmt.Errorf("write npz archive: array %q: %w", name, err)
		}
		if err := write(entry, arrays[name]); err != nil {
			return fmt.Errorf("write npz archive: array %q: %w", name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("write npz archive: %w", err)
	}
	return nil
}
