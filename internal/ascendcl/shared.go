//go:build cgo && linux

package ascendcl

/*
#include <stdlib.h>
#include "api.h"
*/
import "C"

import (
	"fmt"
	"path/filepath"
	"sync"
	"unsafe"
)

// Shared is the model of a file on one device, whose weights lie there once for all of
// its sessions. Goroutines may share it.
type Shared struct {
	device *Device
	path   string // as it was given
	shared *C.acl_shared

	mu       sync.Mutex
	sessions int
	closed   bool
}

// Share makes the weights of a model's file ready for sessions. The file must stay as it
// is while sessions are made.
func (d *Device) Share(path string) (*Shared, error) { return d.share(path, true) }

// ShareNothing is for models of open shape: AscendCL does not say before how much memory
// they take, so every session has weights of its own.
func (d *Device) ShareNothing(path string) (*Shared, error) { return d.share(path, false) }

func (d *Device) share(path string, lends bool) (*Shared, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	if err := d.acquire(); err != nil {
		return nil, err
	}
	s := &Shared{device: d, path: path, shared: (*C.acl_shared)(C.calloc(1, C.sizeof_acl_shared))}
	*s.shared = C.acl_shared{library: d.runtime.library, device: d.device, path: C.CString(absolute), lends: C.bool(lends)}
	var failure C.acl_failure
	if !C.acl_shared_open(s.shared, &failure) {
		s.closed = true
		s.end()
		return nil, fmt.Errorf("load %s: %w", path, failed(&failure))
	}
	return s, nil
}

// Close gives the weights back, once the sessions are closed.
func (s *Shared) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.end()
	}
	return nil
}

func (s *Shared) end() {
	if s.closed && s.sessions == 0 && s.shared != nil {
		C.acl_shared_close(s.shared)
		C.free(unsafe.Pointer(s.shared))
		s.shared = nil
		s.device.release()
	}
}

func (s *Shared) acquire() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("model: %w", ErrClosed)
	}
	s.sessions++
	return nil
}

func (s *Shared) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions--
	s.end()
}
