package valuefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/npuctl/npuctl/internal/atomicfile"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/tensor/npy"
)

// Named is a value with the name of its input or output.
type Named struct {
	Name  string
	Value eval.Value
}

// Formats lists the forms in which [Write] writes single files.
func Formats() []string { return []string{"npy", "pb"} }

// Write writes values to target: all into one archive if it ends in .npz, else each
// into a file of its own in the folder of that name, which is made. In the format
// "npy" files are named after the values, in "pb" they are numbered output_0.pb and
// so on, or input_0.pb by their side, as ONNX's test data is. What .npy cannot hold (sequences, optionals, maps)
// is written as .pb in both. The files appear all or none; they are listed in order.
func Write(target, format string, side Side, values []Named) (paths []string, err error) {
	if strings.EqualFold(filepath.Ext(target), archive) {
		return []string{target}, writeArchive(target, side, values)
	}
	if err := os.MkdirAll(target, 0o777); err != nil {
		return nil, fmt.Errorf("make the folder %s: %w", target, unwrapPath(err))
	}
	var files []*atomicfile.File
	defer func() {
		for _, f := range files {
			f.Abort()
		}
	}()
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = v.Name
	}
	for i, name := range EscapeAll(names) {
		write, extension, err := writerOf(format, side, values[i])
		if err != nil {
			return nil, err
		}
		if format == "pb" {
			name = fmt.Sprintf("%s_%d", side, i)
		}
		path := filepath.Join(target, name+extension)
		f, err := create(path)
		if err != nil {
			return nil, fmt.Errorf("write %s %q: %w", side, values[i].Name, err)
		}
		files = append(files, f)
		if err := write(f); err != nil {
			return nil, fmt.Errorf("write %s %q: %w", side, values[i].Name, f.Told(err))
		}
		paths = append(paths, path)
	}
	return paths, atomicfile.Commit(files...)
}

// maxFileName is the longest name that common file systems take, less what a
// temporary one adds.
const maxFileName = 220

// create begins a file. A link in its place would lead out of the folder.
func create(path string) (*atomicfile.File, error) {
	if len(filepath.Base(path)) > maxFileName {
		return nil, errors.New("its name is too long for a file; write a .npz file")
	}
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is there and is not a regular file", path)
	}
	return atomicfile.Create(path)
}

// writerOf gives what writes a value in a format, and the extension of its file.
func writerOf(format string, side Side, v Named) (write func(io.Writer) error, extension string, err error) {
	if d, ok := v.Value.(*tensor.Dense); ok && format != "pb" {
		return func(w io.Writer) error { return npy.WriteNPY(w, d) }, ".npy", nil
	}
	data, err := encode(v.Name, v.Value)
	if err != nil {
		return nil, "", fmt.Errorf("write %s %q: %w", side, v.Name, err)
	}
	return func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(data))
		return err
	}, ".pb", nil
}

// writeArchive writes a .npz file. Its entries have the names of the values, but
// those that would leave the folder in which somebody unpacks it.
func writeArchive(path string, side Side, values []Named) error {
	arrays := map[string]*tensor.Dense{}
	for _, v := range values {
		d, ok := v.Value.(*tensor.Dense)
		if !ok {
			return fmt.Errorf("write %s %q: a .npz file holds tensors only; write to a folder", side, v.Name)
		}
		name := v.Name
		if name == "" || !filepath.IsLocal(filepath.FromSlash(name)) || strings.Contains(name, `\`) {
			name = Escape(name)
		}
		arrays[name] = d
	}
	return atomicfile.Write(path, func(f *os.File) error { return npy.WriteNPZ(f, arrays) })
}
