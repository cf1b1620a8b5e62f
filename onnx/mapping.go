package onnx

import (
	"errors"
	"io"
	"os"
	"sync"
)

// mapping is a file's bytes in memory: mapped where the system can, else read.
type mapping struct {
	data    []byte
	file    *os.File // kept open so that ranges can be copied from file to file; nil when the bytes came from memory
	release func() error
	seeking sync.Mutex // held while a range is copied: it moves the file's position
}

// Close gives back the memory and the file.
func (m *mapping) Close() error {
	var errs []error
	if m.release != nil {
		errs = append(errs, m.release())
	}
	if m.file != nil {
		errs = append(errs, m.file.Close())
	}
	m.data, m.file, m.release = nil, nil, nil
	return errors.Join(errs...)
}

// offsetOf says where in the mapping the bytes b lie; ok is false when they lie elsewhere.
func (m *mapping) offsetOf(b []byte) (offset int64, ok bool) {
	if m == nil || m.file == nil || len(b) == 0 || len(m.data) == 0 {
		return 0, false
	}
	d := distance(m.data, b)
	if d < 0 || d+int64(len(b)) > int64(len(m.data)) {
		return 0, false
	}
	return d, true
}

// copyTo copies a range of the file to another one, inside the system where it can.
func (m *mapping) copyTo(f *os.File, offset, size int64) error {
	m.seeking.Lock()
	defer m.seeking.Unlock()
	if _, err := m.file.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	n, err := f.ReadFrom(io.LimitReader(m.file, size))
	if err == nil && n != size {
		err = errChanged
	}
	return err
}

// readFile is how a file gets into memory where it cannot be mapped.
func readFile(f *os.File, size int64) ([]byte, error) {
	data := make([]byte, size)
	_, err := io.ReadFull(f, data)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errChanged
	}
	return data, err
}
