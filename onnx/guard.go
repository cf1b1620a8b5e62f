package onnx

import (
	"errors"
	"os"
	"runtime"
	"runtime/debug"
)

// errChanged says that a file lost bytes while a model stood on it.
var errChanged = errors.New("the file changed while it was being read; start again when nobody writes to it")

// guarded runs f, which reads from the mapped files of a model. When one of them is
// cut short meanwhile, touching the lost pages is a fault of the processor; it
// becomes an error.
func (s *source) guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		_, isFault := r.(interface{ Addr() uintptr }) // outside of Go's memory
		if _, isRuntime := r.(runtime.Error); !isFault && !(isRuntime && s.lostBytes()) {
			panic(r)
		}
		err = errChanged
	}()
	return f()
}

// lostBytes says whether one of the files is shorter than it was. Where programs
// run under an emulator, a fault does not come with its address, and this tells.
func (s *source) lostBytes() bool {
	if s == nil {
		return false
	}
	lost := s.file.checkSize() != nil
	for _, side := range s.sides {
		side.mu.Lock()
		lost = lost || side.mapped.checkSize() != nil
		side.mu.Unlock()
	}
	return lost
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
