//go:build cgo && (linux || darwin)

package onnxruntime

/*
#cgo linux LDFLAGS: -ldl
#include <stdlib.h>
#include "api.h"
*/
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"unsafe"
)

// Enumerators of the C API.
const (
	logFatal       = 4 // ORT_LOGGING_LEVEL_FATAL
	arenaAllocator = 1 // OrtArenaAllocator
	defaultMemory  = 0 // OrtMemTypeDefault
	parallelRun    = 1 // ORT_PARALLEL
)

// Library is an opened ONNX Runtime. It may be used by several goroutines.
type Library struct {
	path, version string
	minor         int // of version

	table     *C.ort_library
	env       *C.OrtEnv
	memory    *C.OrtMemoryInfo // main memory
	allocator *C.OrtAllocator  // of the library; never released

	mu       sync.Mutex
	sessions int // open ones; the last of a closed library releases the environment
	closed   bool
}

// Open maps the ONNX Runtime library at path and starts it. The error says what is
// wrong with the file: it is missing, made for another machine, another library,
// or too old.
//
// Opening the same file twice gives two libraries that share ONNX Runtime's one
// environment.
func Open(path string) (*Library, error) {
	l := &Library{path: path, table: (*C.ort_library)(C.calloc(1, C.sizeof_ort_library))}
	if err := l.open(); err != nil {
		l.free()
		return nil, fmt.Errorf("open ONNX Runtime library %s: %w", path, err)
	}
	return l, nil
}

func (l *Library) open() error {
	// Tensors are handed over as raw_data, which is little-endian, and ONNX
	// Runtime reads them in the byte order of the machine.
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return errors.New("this machine is big-endian; only little-endian ones are supported")
	}
	// dlopen would look for a name without a slash in the system's folders.
	absolute, err := filepath.Abs(l.path)
	if err != nil {
		return err
	}
	l.path = absolute
	if err := checkFile(absolute, runtime.GOOS, runtime.GOARCH); err != nil {
		return err
	}
	if err := l.bind(); err != nil {
		return err
	}
	return l.start()
}

// bind maps the library and fills the table.
func (l *Library) bind() error {
	path := C.CString(l.path)
	defer C.free(unsafe.Pointer(path))
	if message := C.ort_open(l.table, path); message != nil {
		defer C.free(unsafe.Pointer(message))
		return errors.New(C.GoString(message))
	}
	l.version = C.GoString(l.table.version)
	minor, err := apiVersion(l.version)
	l.minor = minor
	if err == nil && !C.ort_bind(l.table, C.uint(minor)) {
		err = fmt.Errorf("version %s no longer offers version %d of its C API", l.version, C.ORT_API_WANTED)
	}
	if err != nil {
		C.ort_close(l.table)
	}
	return err
}

// start makes the objects that all sessions share.
func (l *Library) start() error {
	name := C.CString("npuctl")
	defer C.free(unsafe.Pointer(name))
	if err := l.check(C.ort_CreateEnv(l.table, logFatal, name, &l.env)); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if err := l.check(C.ort_CreateCpuMemoryInfo(l.table, arenaAllocator, defaultMemory, &l.memory)); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if err := l.check(C.ort_GetAllocatorWithDefaultOptions(l.table, &l.allocator)); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	return nil
}

// free releases what open made. The code of the library stays mapped: ONNX Runtime
// keeps static state that is not made to be unloaded, and a second Open of the same
// file finds it again.
func (l *Library) free() {
	if l.memory != nil {
		C.ort_ReleaseMemoryInfo(l.table, l.memory)
	}
	if l.env != nil {
		C.ort_ReleaseEnv(l.table, l.env)
	}
	C.free(unsafe.Pointer(l.table))
	l.memory, l.env, l.table = nil, nil, nil
}

// Path returns the absolute path of the library file.
func (l *Library) Path() string { return l.path }

// Version returns the version of ONNX Runtime, such as "1.24.3".
func (l *Library) Version() string { return l.version }

// Close ends the use of the library. Sessions that are still open keep working; the
// last one to be closed releases what they share. It returns nil always.
func (l *Library) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	if l.sessions == 0 {
		l.free()
	}
	return nil
}

// acquire keeps the library alive for one more session.
func (l *Library) acquire() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("ONNX Runtime library %s: %w", l.path, ErrClosed)
	}
	l.sessions++
	return nil
}

// retain is acquire for sessions that serve an open one.
func (l *Library) retain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions++
}

// release undoes one acquire or retain.
func (l *Library) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions--
	if l.closed && l.sessions == 0 {
		l.free()
	}
}

// check turns the status of a call into an error and releases it.
func (l *Library) check(status *C.OrtStatus) error {
	if status == nil {
		return nil
	}
	defer C.ort_ReleaseStatus(l.table, status)
	return &Error{
		Code:    Code(C.ort_GetErrorCode(l.table, status)),
		Message: C.GoString(C.ort_GetErrorMessage(l.table, status)),
	}
}
