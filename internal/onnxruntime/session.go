//go:build cgo && (linux || darwin)

package onnxruntime

/*
#include <stdlib.h>
#include "api.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"unsafe"
)

// Session is a loaded model. It may be run by several goroutines at the same time.
type Session struct {
	library *Library
	handle  *C.OrtSession

	inputs, outputs, initializers []declared

	// running is held for reading by every run; Close waits for them.
	running sync.RWMutex
	closed  bool
}

// declared is one input, output or overridable initializer.
type declared struct {
	Info
	name *C.char // Info.Name for C; freed with the session
}

// NewSession loads the model file at path. External data is read from beside it.
// Failures of ONNX Runtime, such as an operator it does not know, are an [Error].
func (l *Library) NewSession(path string, o Options) (*Session, error) {
	if err := l.acquire(); err != nil {
		return nil, err
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	s, err := l.newSession(o, func(options *C.OrtSessionOptions, out **C.OrtSession) *C.OrtStatus {
		return C.ort_CreateSession(l.table, l.env, name, options, out)
	})
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	return s, nil
}

// NewSessionFromBytes loads a model that is the content of an ONNX file. The bytes
// are not needed any longer when it returns.
func (l *Library) NewSessionFromBytes(model []byte, o Options) (*Session, error) {
	if len(model) == 0 {
		return nil, errors.New("load model: it has no bytes")
	}
	if err := l.acquire(); err != nil {
		return nil, err
	}
	return l.fromBytes(model, o)
}

// fromBytes is NewSessionFromBytes for a library that has been acquired or retained.
func (l *Library) fromBytes(model []byte, o Options) (*Session, error) {
	s, err := l.newSession(o, func(options *C.OrtSessionOptions, out **C.OrtSession) *C.OrtStatus {
		return C.ort_CreateSessionFromArray(l.table, l.env, unsafe.Pointer(&model[0]), C.size_t(len(model)), options, out)
	})
	if err != nil {
		return nil, fmt.Errorf("load model: %w", err)
	}
	return s, nil
}

// newSession opens a session by the function create. It takes over what acquire or
// retain counted.
func (l *Library) newSession(o Options, create func(*C.OrtSessionOptions, **C.OrtSession) *C.OrtStatus) (*Session, error) {
	s := &Session{library: l}
	if err := s.open(o, create); err != nil {
		s.free()
		return nil, err
	}
	return s, nil
}

func (s *Session) open(o Options, create func(*C.OrtSessionOptions, **C.OrtSession) *C.OrtStatus) error {
	options, err := s.library.options(o)
	if err != nil {
		return err
	}
	defer C.ort_ReleaseSessionOptions(s.library.table, options)
	var handle *C.OrtSession // C must not see the Go pointers beside s.handle
	if err := s.library.check(create(options, &handle)); err != nil {
		return err
	}
	s.handle = handle
	return s.describe()
}

// Close waits for the runs that are under way and releases the model. It returns
// nil always.
func (s *Session) Close() error {
	s.running.Lock()
	defer s.running.Unlock()
	if !s.closed {
		s.free()
	}
	return nil
}

func (s *Session) free() {
	s.closed = true
	for _, d := range slices.Concat(s.inputs, s.outputs, s.initializers) {
		C.free(unsafe.Pointer(d.name))
	}
	if s.handle != nil {
		C.ort_ReleaseSession(s.library.table, s.handle)
	}
	s.handle = nil
	s.library.release()
}

// Inputs returns the inputs that a run needs, in the order of the model.
func (s *Session) Inputs() []Info { return infos(s.inputs) }

// Outputs returns the outputs of the model in its order.
func (s *Session) Outputs() []Info { return infos(s.outputs) }

// OverridableInitializers returns the inputs that have a default in the model: a run
// may leave them out.
func (s *Session) OverridableInitializers() []Info { return infos(s.initializers) }

func infos(list []declared) []Info {
	result := make([]Info, len(list))
	for i, d := range list {
		result[i] = d.Info
	}
	return result
}

// optimizationLevels has ONNX Runtime's numbers (GraphOptimizationLevel).
var optimizationLevels = map[Optimization]C.int{OptimizeNone: 0, OptimizeBasic: 1, OptimizeExtended: 2, OptimizeAll: 99}

// options makes the C form of o.
func (l *Library) options(o Options) (*C.OrtSessionOptions, error) {
	level, ok := optimizationLevels[o.Optimization]
	if !ok {
		return nil, fmt.Errorf("there is no optimization level %d", int(o.Optimization))
	}
	if o.IntraOpThreads < 0 || o.InterOpThreads < 0 {
		return nil, fmt.Errorf("the number of threads cannot be negative: %d intra-op, %d inter-op", o.IntraOpThreads, o.InterOpThreads)
	}
	config, err := l.config(o)
	if err != nil {
		return nil, err
	}
	var options *C.OrtSessionOptions
	if err := l.check(C.ort_CreateSessionOptions(l.table, &options)); err != nil {
		return nil, fmt.Errorf("make session options: %w", err)
	}
	path := C.CString(o.OptimizedModelPath)
	defer C.free(unsafe.Pointer(path))
	for _, option := range []struct {
		name   string
		wanted bool
		set    func() *C.OrtStatus
	}{
		{"log level", true, func() *C.OrtStatus { return C.ort_SetSessionLogSeverityLevel(l.table, options, logFatal) }},
		{"optimization level", true, func() *C.OrtStatus { return C.ort_SetSessionGraphOptimizationLevel(l.table, options, level) }},
		{"intra-op threads", o.IntraOpThreads > 0, func() *C.OrtStatus {
			return C.ort_SetIntraOpNumThreads(l.table, options, C.int(o.IntraOpThreads))
		}},
		{"inter-op threads", o.InterOpThreads > 0, func() *C.OrtStatus {
			return C.ort_SetInterOpNumThreads(l.table, options, C.int(o.InterOpThreads))
		}},
		{"parallel execution", o.InterOpThreads > 1, func() *C.OrtStatus {
			return C.ort_SetSessionExecutionMode(l.table, options, parallelRun)
		}},
		{"optimized model path", o.OptimizedModelPath != "", func() *C.OrtStatus {
			return C.ort_SetOptimizedModelFilePath(l.table, options, path)
		}},
		{"deterministic compute", o.Deterministic, func() *C.OrtStatus {
			return C.ort_SetDeterministicCompute(l.table, options, true)
		}},
		{"configuration", len(config) > 0, func() *C.OrtStatus { return l.configure(options, config) }},
	} {
		if !option.wanted {
			continue
		}
		if err := l.check(option.set()); err != nil {
			C.ort_ReleaseSessionOptions(l.table, options)
			return nil, fmt.Errorf("set %s: %w", option.name, err)
		}
	}
	return options, nil
}

// The entry that says where external data lies, and the release 1.N that brought it:
// those before look in the working directory whatever it says.
const (
	externalDataEntry = "session.model_external_initializers_file_folder_path"
	externalDataMinor = 21
)

// config returns the entries of the session configuration that o asks for.
func (l *Library) config(o Options) (map[string]string, error) {
	if o.ExternalDataFolder == "" {
		return o.Config, nil
	}
	if l.minor < externalDataMinor {
		return nil, fmt.Errorf("external data of a model that is given as bytes needs ONNX Runtime 1.%d; this is %s", externalDataMinor, l.version)
	}
	config := maps.Clone(o.Config)
	if config == nil {
		config = map[string]string{}
	}
	config[externalDataEntry] = o.ExternalDataFolder
	return config, nil
}

// configure adds config entries to options. The first status that is not nil is returned.
func (l *Library) configure(options *C.OrtSessionOptions, config map[string]string) *C.OrtStatus {
	for _, key := range slices.Sorted(maps.Keys(config)) {
		k, v := C.CString(key), C.CString(config[key])
		status := C.ort_AddSessionConfigEntry(l.table, options, k, v)
		C.free(unsafe.Pointer(k))
		C.free(unsafe.Pointer(v))
		if status != nil {
			return status
		}
	}
	return nil
}
