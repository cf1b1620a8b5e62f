package onnx

import (
	"errors"
	"os"
	"runtime/debug"
)

// errChanged says that a file lost bytes while a model stood on it.
var errChanged = errors.New("the file changed while it was being read; start again when nobody writes to it")

// guarded runs f, which reads from mapped files. When one of them is cut short
// meanwhile, touching the lost pages is a fault of the processor; it becomes an error.
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }: // a fault outside of Go's memory
			err = errChanged
		default:
			panic(r)
		}
	}()
	return f()
}

// checkSize finds out early that a mapped file has been cut short.
func (m *mapping) checkSize() error {
	if m == nil || m.file == nil {
		return nil
	}
	info, err := m.file.Stat()
	if err == nil && info.Size() < int64(len(m.data)) {
		err = errChanged
	}
	return err
}

// regular opens a file to read, if it is one: opening a pipe would wait for a writer.
func regular(path string) (*os.File, int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	if info.IsDir() {
		return nil, 0, &os.PathError{Op: "open", Path: path, Err: errors.New("it is a directory")}
	}
	if !info.Mode().IsRegular() {
		return nil, 0, &os.PathError{Op: "open", Path: path, Err: errors.New("it is not a regular file")}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	if info, err = f.Stat(); err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}
