//go:build cgo && linux

package ascendcl

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "api.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"unsafe"
)

// Runtime is AscendCL, started. It may be used by several goroutines.
type Runtime struct {
	path     string
	version  string
	emulated bool
	began    bool // this runtime started AscendCL, so that it has to end it

	mu      sync.Mutex
	library *C.acl_library // nil once it has ended
	users   int            // open devices, and calls under way; the last of a closed runtime ends it
	closed  bool
}

// Open maps the libraries that [Find] gave and starts AscendCL. The error says what is
// missing: a library that CANN's own environment has to provide, or a function that
// the release is too old for.
func Open(paths []string) (*Runtime, error) {
	if len(paths) == 0 {
		return nil, errors.New("open AscendCL: no library is given")
	}
	r := &Runtime{path: paths[0], library: (*C.acl_library)(C.calloc(1, C.sizeof_acl_library))}
	if err := r.open(paths); err != nil {
		C.free(unsafe.Pointer(r.library))
		return nil, fmt.Errorf("open AscendCL %s: %w", r.path, err)
	}
	return r, nil
}

func (r *Runtime) open(paths []string) error {
	list := make([]*C.char, len(paths))
	for i, path := range paths {
		// dlopen would look for a name without a slash in the system's folders.
		absolute, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		list[i] = C.CString(absolute)
		defer C.free(unsafe.Pointer(list[i]))
	}
	var pinner runtime.Pinner
	defer pinner.Unpin()
	pinner.Pin(&list[0])
	if message := C.acl_open(r.library, &list[0], C.int(len(list))); message != nil {
		defer C.free(unsafe.Pointer(message))
		return errors.New(C.GoString(message))
	}
	r.emulated = bool(r.library.emulated)
	return r.start()
}

func (r *Runtime) start() error {
	var failure C.acl_failure
	var began C.bool
	if !C.acl_start(r.library, &began, &failure) {
		return failed(&failure)
	}
	r.began = bool(began)
	var major, minor, patch C.int32_t
	if C.acl_version(r.library, &major, &minor, &patch) == 0 {
		r.version = fmt.Sprintf("%d.%d.%d", major, minor, patch)
	}
	return nil
}

// failed turns what a job noted into an error.
func failed(f *C.acl_failure) error {
	return &Error{Call: C.GoString(f.call), Code: int(f.code), Text: C.GoString(&f.text[0])}
}

// Path is the first library's.
func (r *Runtime) Path() string { return r.path }

// Version is that of AscendCL's interface, such as "1.17.0"; "" when it does not say.
func (r *Runtime) Version() string { return r.version }

// Emulated says that no device is behind this: the library is npuctl's own emulator.
func (r *Runtime) Emulated() bool { return r.emulated }

// Devices is how many devices there are.
func (r *Runtime) Devices() (int, error) {
	if err := r.acquire(); err != nil {
		return 0, err
	}
	defer r.release()
	var failure C.acl_failure
	var count C.uint32_t
	if !C.acl_devices(r.library, &count, &failure) {
		return 0, failed(&failure)
	}
	return int(count), nil
}

// Close ends the use of AscendCL. Devices that are still open keep working; the last
// one to be closed ends it. It returns nil always.
func (r *Runtime) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		r.end()
	}
	return nil
}

// end stops AscendCL when nobody uses it any more.
func (r *Runtime) end() {
	if !r.closed || r.users > 0 || r.library == nil {
		return
	}
	if r.began {
		C.acl_stop(r.library)
	}
	C.free(unsafe.Pointer(r.library))
	r.library = nil
}

func (r *Runtime) acquire() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return fmt.Errorf("AscendCL %s: %w", r.path, ErrClosed)
	}
	r.users++
	return nil
}

func (r *Runtime) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.users--
	r.end()
}

// Device is a device with a context of its own on it.
type Device struct {
	runtime *Runtime
	device  *C.acl_device
	chip    string

	mu     sync.Mutex
	models int
	closed bool
}

// Device opens device number n, from 0.
func (r *Runtime) Device(n int) (*Device, error) {
	if err := r.acquire(); err != nil {
		return nil, err
	}
	d := &Device{runtime: r, device: (*C.acl_device)(C.calloc(1, C.sizeof_acl_device))}
	var failure C.acl_failure
	if !C.acl_device_open(r.library, d.device, C.int32_t(n), &failure) {
		C.free(unsafe.Pointer(d.device))
		r.release()
		return nil, fmt.Errorf("open device %d: %w", n, failed(&failure))
	}
	d.chip = C.GoString(C.acl_device_chip(r.library, d.device))
	return d, nil
}

// Chip is what the device calls itself, such as "Ascend910B3"; "" when it does not say.
func (d *Device) Chip() string { return d.chip }

// Cores are how many cores of each kind the device has. Where it has no vector cores of
// their own, the cube cores do both.
func (d *Device) Cores() (cube, vector int, err error) {
	if err := d.acquire(); err != nil {
		return 0, 0, err
	}
	defer d.release()
	var c, v C.int64_t
	var failure C.acl_failure
	if !C.acl_device_cores(d.runtime.library, d.device, &c, &v, &failure) {
		return 0, 0, fmt.Errorf("ask for the cores of device %d: %w", d.device.number, failed(&failure))
	}
	if v == 0 {
		v = c
	}
	return int(c), int(v), nil
}

// Close gives the device back, once its models are closed.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.closed = true
		d.end()
	}
	return nil
}

func (d *Device) end() {
	if d.closed && d.models == 0 && d.device != nil {
		C.acl_device_close(d.runtime.library, d.device)
		C.free(unsafe.Pointer(d.device))
		d.device = nil
		d.runtime.release()
	}
}

func (d *Device) acquire() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("device: %w", ErrClosed)
	}
	d.models++
	return nil
}

func (d *Device) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.models--
	d.end()
}
