package valuefile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/tensor/npy"
)

// readers reads single-value files by their extension.
var readers = map[string]func(path string, t *onnx.Type) (eval.Value, error){
	".npy": readNPY, ".bin": readRaw, ".pb": readProto,
}

// isValueFile says whether a file's extension is one that is read.
func isValueFile(name string) bool {
	extension := strings.ToLower(filepath.Ext(name))
	return readers[extension] != nil || extension == archive
}

// Reads says whether there are files that hold values of type t. A model that does not
// say its input's type takes tensors.
func Reads(t *onnx.Type) bool {
	switch {
	case t == nil:
		return true
	case t.Kind == onnx.KindMap:
		return t.Inner.IsTensor() && (t.Elem == tensor.String || t.Elem == tensor.Int64)
	case t.Kind == onnx.KindSequence, t.Kind == onnx.KindOptional:
		return t.Inner != nil && Reads(t.Inner)
	}
	return t.Kind == onnx.KindTensor
}

// FileName is a name of a file that is read for a slot: tensors may be arrays of NumPy,
// all else has only ONNX's own form.
func FileName(s Slot) string {
	t := s.Type
	if t != nil && t.Kind == onnx.KindOptional {
		t = t.Inner
	}
	if t == nil || t.IsTensor() {
		return Escape(s.Name) + ".npy"
	}
	return Escape(s.Name) + ".pb"
}

// archive is the extension of files that hold many values.
const archive = ".npz"

// read reads a value that should be of type t from a file.
func read(path string, t *onnx.Type) (eval.Value, error) {
	v, err := readers[strings.ToLower(filepath.Ext(path))](path, t)
	if err != nil {
		return nil, unwrapPath(err)
	}
	return v, nil
}

// unwrapPath drops the path from a system's error: the message names it already.
func unwrapPath(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// openRegular opens a file that is one: a pipe would be waited for.
func openRegular(path string) (*os.File, int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errors.New("it is not a file")
	}
	f, err := os.Open(path)
	return f, info.Size(), err
}

func elemOf(t *onnx.Type) tensor.Type {
	if t.IsTensor() {
		return t.Elem
	}
	return tensor.Undefined
}

func readNPY(path string, t *onnx.Type) (eval.Value, error) {
	f, _, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d, err := npy.ReadNPYAs(f, elemOf(t))
	return wrap(d, t), err
}

// wrap makes an optional of a tensor where the model wants one.
func wrap(d *tensor.Dense, t *onnx.Type) eval.Value {
	if t != nil && t.Kind == onnx.KindOptional && t.Inner.IsTensor() {
		return &eval.Optional{Value: d}
	}
	return d
}

func readProto(path string, t *onnx.Type) (eval.Value, error) {
	data, err := readAll(path)
	if err != nil {
		return nil, err
	}
	return decode(data, t, filepath.Dir(path), 0)
}

func readAll(path string) ([]byte, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > tensor.MaxBytes {
		return nil, fmt.Errorf("it is larger than %d GiB", tensor.MaxBytes>>30)
	}
	data := make([]byte, size)
	_, err = io.ReadFull(f, data)
	return data, err
}

// readRaw reads elements without a header. One open dim follows from the file's size.
func readRaw(path string, t *onnx.Type) (eval.Value, error) {
	if !t.IsTensor() || t.Shape == nil || t.Elem.Bits() == 0 {
		return nil, fmt.Errorf("a .bin file cannot hold %s", t)
	}
	data, err := readAll(path)
	if err != nil {
		return nil, err
	}
	shape, open, known := make([]int, len(t.Shape.Dims)), -1, 1
	for axis, d := range t.Shape.Dims {
		switch {
		case d.Known:
			shape[axis] = int(d.Value)
			known *= int(d.Value)
		case open >= 0:
			return nil, fmt.Errorf("the model's %s leaves several dims open, and a .bin file has no shape: give it with --input-shape or --dim", t)
		default:
			open = axis
		}
	}
	if open >= 0 {
		if known <= 0 || t.Elem.Bits() < 8 {
			return nil, fmt.Errorf("the open dim of %s cannot be told from a file's size", t)
		}
		shape[open] = len(data) / (known * t.Elem.Bits() / 8)
	}
	d, err := tensor.FromRaw(t.Elem, shape, data)
	if err != nil {
		return nil, fmt.Errorf("%d bytes do not make %s: %w", len(data), t, err)
	}
	return d, nil
}

// readArchive reads all arrays of a .npz file.
func readArchive(path string, expected func(name string) tensor.Type) (map[string]*tensor.Dense, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, unwrapPath(err)
	}
	defer f.Close()
	return npy.ReadNPZ(f, size, expected)
}

// fits says how a value breaks with the type that the model declares.
func fits(v eval.Value, t *onnx.Type) error {
	switch v := v.(type) {
	case *tensor.Dense:
		if t == nil {
			return nil
		}
		if !t.IsTensor() {
			return fmt.Errorf("it holds a tensor, the model wants %s, which has a file of its own kind: a .pb as ONNX's test data have it", t)
		}
		return tensorFits(v, t)
	case *eval.Optional:
		if inner, ok := v.Value.(*tensor.Dense); ok && t.Inner.IsTensor() {
			return tensorFits(inner, t.Inner)
		}
	}
	return nil
}

func tensorFits(d *tensor.Dense, t *onnx.Type) error {
	have := onnx.TensorType(d.Type(), d.Shape()...)
	if t.Elem != tensor.Undefined && d.Type() != t.Elem {
		err := fmt.Errorf("it holds %s, the model wants %s", have, t)
		if name := t.Elem.NumPy(); name != "" && t.Elem != tensor.String {
			err = fmt.Errorf("%w; in Python, array.astype(%q) converts it", err, name)
		}
		return err
	}
	if t.Shape == nil {
		return nil
	}
	bad := len(t.Shape.Dims) != d.Rank()
	for axis := 0; !bad && axis < d.Rank(); axis++ {
		dim := t.Shape.Dims[axis]
		bad = dim.Known && int(dim.Value) != d.Shape()[axis]
	}
	if bad {
		return fmt.Errorf("it holds %s, the model wants %s", have, t)
	}
	return nil
}
