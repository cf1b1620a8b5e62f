//go:build cgo && (linux || darwin)

package onnxruntime

/*
#include "api.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"unsafe"
)

// Run computes the outputs of the given names, or all outputs in the order of the
// model when outputs is nil. Inputs are given by name: all of Inputs that are not
// optional, and any of OverridableInitializers. The memory of the tensors is read in place and must not
// be changed until Run returns; the results own theirs.
//
// When ctx ends, the run stops at the next operator, and the error wraps the cause.
// Failures of ONNX Runtime, such as an input of the wrong shape, are an [Error].
func (s *Session) Run(ctx context.Context, inputs map[string]Value, outputs []string) ([]Value, error) {
	s.running.RLock()
	defer s.running.RUnlock()
	if s.closed {
		return nil, fmt.Errorf("run: session: %w", ErrClosed)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("run: %w", context.Cause(ctx))
	}
	c := &call{session: s, library: s.library}
	defer c.release()
	if err := c.prepare(inputs, outputs); err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	if err := c.run(ctx); err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	results := make([]Value, len(c.outputs))
	for i, value := range c.outputs {
		var err error
		if results[i], err = s.library.read(value); err != nil {
			return nil, fmt.Errorf("run: read output %q: %w", C.GoString(c.outputNames[i]), err)
		}
	}
	return results, nil
}

// call is one run: what is handed to ONNX Runtime, and all that must be released
// when it is over.
type call struct {
	session *Session
	library *Library

	inputNames, outputNames []*C.char // memory of the session
	inputs, outputs         []*C.OrtValue

	pinner runtime.Pinner // keeps the memory of input tensors in place
	made   []*C.OrtValue  // every value made for the inputs
}

func (c *call) release() {
	for _, value := range slices.Concat(c.made, c.outputs) {
		if value != nil {
			C.ort_ReleaseValue(c.library.table, value)
		}
	}
	c.pinner.Unpin()
}

// prepare looks up the names and makes the input values.
func (c *call) prepare(inputs map[string]Value, outputs []string) error {
	if err := c.resolveOutputs(outputs); err != nil {
		return err
	}
	for _, d := range c.session.inputs {
		if _, given := inputs[d.Name]; !given && d.Kind != KindOptional {
			return fmt.Errorf("input %q is missing", d.Name)
		}
	}
	known := slices.Concat(c.session.inputs, c.session.initializers)
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		d := lookUp(known, name)
		if d == nil {
			return fmt.Errorf("the model has no input %q; it has %s", name, names(known))
		}
		if inputs[name] == nil && d.Kind == KindOptional {
			// An optional that holds nothing is one that is not given: handing one
			// over makes ONNX Runtime crash (seen up to 1.32).
			continue
		}
		value, err := c.value(inputs[name], &d.Type)
		if err != nil {
			return fmt.Errorf("input %q: %w", name, err)
		}
		c.inputNames = append(c.inputNames, d.name)
		c.inputs = append(c.inputs, value)
	}
	return nil
}

func (c *call) resolveOutputs(wanted []string) error {
	if wanted == nil {
		for _, d := range c.session.outputs {
			c.outputNames = append(c.outputNames, d.name)
		}
	}
	for i, name := range wanted {
		d := lookUp(c.session.outputs, name)
		if d == nil {
			return fmt.Errorf("the model has no output %q; it has %s", name, names(c.session.outputs))
		}
		if slices.Contains(wanted[:i], name) {
			return fmt.Errorf("output %q is asked for twice", name)
		}
		c.outputNames = append(c.outputNames, d.name)
	}
	if len(c.outputNames) == 0 {
		return errors.New("no output is asked for")
	}
	c.outputs = make([]*C.OrtValue, len(c.outputNames))
	return nil
}

func lookUp(list []declared, name string) *declared {
	i := slices.IndexFunc(list, func(d declared) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return &list[i]
}

func names(list []declared) string {
	quoted := make([]string, len(list))
	for i, d := range list {
		quoted[i] = fmt.Sprintf("%q", d.Name)
	}
	if len(quoted) == 0 {
		return "none"
	}
	return strings.Join(quoted, ", ")
}

// run makes ONNX Runtime fill c.outputs.
func (c *call) run(ctx context.Context) error {
	options, stop, err := c.library.cancellable(ctx)
	if err != nil {
		return err
	}
	err = c.library.check(C.ort_Run(c.library.table, c.session.handle, options,
		unsafe.SliceData(c.inputNames), unsafe.SliceData(c.inputs), C.size_t(len(c.inputs)),
		unsafe.SliceData(c.outputNames), C.size_t(len(c.outputs)), unsafe.SliceData(c.outputs)))
	stop()
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("stopped: %w", context.Cause(ctx))
	}
	return err
}

// cancellable returns options by which the end of ctx stops a run, nil when ctx has
// no end, and a function that must be called when the run is over.
func (l *Library) cancellable(ctx context.Context) (options *C.OrtRunOptions, stop func(), err error) {
	if ctx.Done() == nil {
		return nil, func() {}, nil
	}
	if err := l.check(C.ort_CreateRunOptions(l.table, &options)); err != nil {
		return nil, nil, fmt.Errorf("make run options: %w", err)
	}
	terminated := make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		defer close(terminated)
		// It cannot fail, and the run goes on to its end if it does.
		_ = l.check(C.ort_RunOptionsSetTerminate(l.table, options))
	})
	return options, func() {
		if !forget() {
			<-terminated
		}
		C.ort_ReleaseRunOptions(l.table, options)
	}, nil
}
