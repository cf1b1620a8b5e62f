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
	"runtime"
	"slices"
	"unsafe"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// Binding is a run that is done again and again, from inputs that stay where they are.
// What a run needs is made once for each shape of the inputs and kept: a run like the one
// before it is a single call of ONNX Runtime, and allocates nothing here.
//
// One goroutine uses a binding at a time; a session may have any number of them.
type Binding struct {
	session *Session
	library *Library

	inputs []bound // Inputs, then OverridableInitializers
	// What is handed to ONNX Runtime, without the inputs that are left out.
	inputNames  []*C.char
	inputValues []*C.OrtValue
	settled     bool // both hold

	outputNames  []*C.char
	outputValues []*C.OrtValue
	outputs      []Tensor
	// stays says of each output that its shape follows from those of the inputs. Its value
	// is handed to the next run, which writes into it.
	stays []bool
	kept  bool // there are values that stay
	// distrusts is set when a run failed with values that stayed: a model may declare dims
	// that it does not keep to.
	distrusts bool

	options *C.OrtRunOptions
	ctx     context.Context // the one whose end stops runs
	forget  func() bool
	stopped chan struct{} // closed when its end has been told
	closed  bool
}

// bound is an input.
type bound struct {
	*declared
	value  *C.OrtValue
	pinner *runtime.Pinner
	shape  []int64
}

// NewBinding makes a binding without inputs. Models with inputs or outputs other than
// tensors have none.
func (s *Session) NewBinding() (*Binding, error) {
	s.running.RLock()
	defer s.running.RUnlock()
	if s.closed {
		return nil, fmt.Errorf("bind: session: %w", ErrClosed)
	}
	b := &Binding{session: s, library: s.library}
	for _, list := range [][]declared{s.inputs, s.initializers} {
		for i := range list {
			if list[i].Kind != KindTensor {
				return nil, fmt.Errorf("bind: input %q is a %v, no tensor", list[i].Name, list[i].Kind)
			}
			b.inputs = append(b.inputs, bound{declared: &list[i], pinner: &runtime.Pinner{}})
		}
	}
	for _, d := range s.outputs {
		if d.Kind != KindTensor {
			return nil, fmt.Errorf("bind: output %q is a %v, no tensor", d.Name, d.Kind)
		}
		b.outputNames = append(b.outputNames, d.name)
		b.stays = append(b.stays, b.follows(&d.Type))
	}
	b.outputValues = make([]*C.OrtValue, len(s.outputs))
	b.outputs = make([]Tensor, len(s.outputs))
	if err := s.library.check(C.ort_CreateRunOptions(s.library.table, &b.options)); err != nil {
		return nil, fmt.Errorf("bind: make run options: %w", err)
	}
	s.library.retain()
	// Memory that stays pinned when nobody has the binding any more would end the program.
	runtime.SetFinalizer(b, func(b *Binding) { b.Close() })
	return b, nil
}

// follows says whether the shape of an output follows from the shapes of the inputs: each
// dim is fixed, or has the name of one of theirs.
func (b *Binding) follows(t *Type) bool {
	if t.Shape == nil || t.Elem == tensor.String {
		return false
	}
	for i, d := range t.Shape {
		if d >= 0 {
			continue
		}
		name := t.DimNames[i]
		if name == "" || !slices.ContainsFunc(b.inputs, func(in bound) bool { return slices.Contains(in.DimNames, name) }) {
			return false
		}
	}
	return true
}

// SetInput has an input read from data in every run that follows; i counts Inputs, and
// behind them OverridableInitializers. The memory is not copied: it must be as long as
// the shape says and stay where it is, but may be written to between runs.
func (b *Binding) SetInput(i int, shape []int64, data []byte) error {
	in := &b.inputs[i]
	size, err := rawSize(in.Elem, shape)
	if err != nil {
		return fmt.Errorf("input %q: %w", in.Name, err)
	}
	if size != int64(len(data)) {
		return fmt.Errorf("input %q: %d bytes for %v of shape %v, which has %d", in.Name, len(data), in.Elem, shape, size)
	}
	number, ok := elementNumber(in.Elem)
	if !ok {
		return fmt.Errorf("input %q: ONNX Runtime has no element type %v", in.Name, in.Elem)
	}
	b.release(i)
	memory := unsafe.Pointer(unsafe.SliceData(data))
	in.pinner.Pin(memory)
	dims := cDims(shape)
	var value *C.OrtValue
	err = b.library.check(C.ort_CreateTensorWithDataAsOrtValue(b.library.table, b.library.memory, memory, C.size_t(len(data)),
		unsafe.SliceData(dims), C.size_t(len(shape)), C.int(number), &value))
	if err != nil {
		in.pinner.Unpin()
		return fmt.Errorf("input %q: %w", in.Name, err)
	}
	b.set(i, value, shape)
	return nil
}

// SetStrings gives the elements of an input of strings. They are copied: each change
// must be told.
func (b *Binding) SetStrings(i int, shape []int64, data []string) error {
	in := &b.inputs[i]
	if in.value == nil || !slices.Equal(in.shape, shape) {
		b.release(i)
		number, _ := elementNumber(tensor.String)
		dims := cDims(shape)
		var value *C.OrtValue
		err := b.library.check(C.ort_CreateTensorAsOrtValue(b.library.table, b.library.allocator,
			unsafe.SliceData(dims), C.size_t(len(shape)), C.int(number), &value))
		if err != nil {
			return fmt.Errorf("input %q: %w", in.Name, err)
		}
		b.set(i, value, shape)
	}
	if err := b.library.fill(in.value, data); err != nil {
		return fmt.Errorf("input %q: %w", in.Name, err)
	}
	return nil
}

// set takes a value for an input. Where the shape is that of the one before, outputs stay.
func (b *Binding) set(i int, value *C.OrtValue, shape []int64) {
	in := &b.inputs[i]
	in.value = value
	b.settled = false
	if in.shape == nil || !slices.Equal(in.shape, shape) {
		in.shape = append(make([]int64, 0, len(shape)), shape...)
		b.dropOutputs(true)
	}
}

// Omit leaves an input out of the runs that follow.
func (b *Binding) Omit(i int) {
	if b.inputs[i].value != nil {
		b.release(i)
		b.inputs[i].shape = nil
		b.settled = false
		b.dropOutputs(true)
	}
}

// cDims is a shape for C, never without memory to point at.
func cDims(shape []int64) []C.int64_t {
	dims := make([]C.int64_t, len(shape), len(shape)+1)
	for i, d := range shape {
		dims[i] = C.int64_t(d)
	}
	return dims
}

// release lets go of the value of an input.
func (b *Binding) release(i int) {
	in := &b.inputs[i]
	if in.value != nil {
		C.ort_ReleaseValue(b.library.table, in.value)
		in.value = nil
	}
	in.pinner.Unpin()
}

// dropOutputs lets go of the values of outputs: of all, or of those that do not stay.
func (b *Binding) dropOutputs(all bool) {
	for i, value := range b.outputValues {
		if value != nil && (all || !b.stays[i] || b.distrusts) {
			C.ort_ReleaseValue(b.library.table, value)
			b.outputValues[i] = nil
			b.outputs[i] = Tensor{}
		}
	}
	if all {
		b.kept = false
	}
}

// Run computes the outputs. When ctx ends, the run stops at the next operator, and the
// error wraps the cause. Failures of ONNX Runtime are an [Error].
func (b *Binding) Run(ctx context.Context) error {
	b.session.running.RLock()
	defer b.session.running.RUnlock()
	if b.closed || b.session.closed {
		return fmt.Errorf("run: %w", ErrClosed)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("run: %w", context.Cause(ctx))
	}
	if err := b.settle(); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	if err := b.follow(ctx); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	b.dropOutputs(false)
	err := b.call()
	if err != nil && ctx.Err() == nil && b.kept && !b.distrusts {
		b.distrusts = true
		b.dropOutputs(true)
		err = b.call()
	}
	if err == nil {
		return b.read()
	}
	b.dropOutputs(true)
	if ctx.Err() != nil {
		return fmt.Errorf("run: stopped: %w", context.Cause(ctx))
	}
	return fmt.Errorf("run: %w", err)
}

// settle lists what is handed over.
func (b *Binding) settle() error {
	if b.settled {
		return nil
	}
	b.inputNames, b.inputValues = b.inputNames[:0], b.inputValues[:0]
	for i := range b.inputs {
		in := &b.inputs[i]
		switch {
		case in.value != nil:
			b.inputNames, b.inputValues = append(b.inputNames, in.name), append(b.inputValues, in.value)
		case i < len(b.session.inputs):
			return fmt.Errorf("input %q is missing", in.Name)
		}
	}
	if len(b.outputNames) == 0 {
		return errors.New("the model has no outputs")
	}
	b.settled = true
	return nil
}

func (b *Binding) call() error {
	return b.library.check(C.ort_Run(b.library.table, b.session.handle, b.options,
		unsafe.SliceData(b.inputNames), unsafe.SliceData(b.inputValues), C.size_t(len(b.inputValues)),
		unsafe.SliceData(b.outputNames), C.size_t(len(b.outputNames)), unsafe.SliceData(b.outputValues)))
}

// follow has the end of a context stop the run. It is arranged once for all runs of one
// context.
func (b *Binding) follow(ctx context.Context) error {
	if ctx == b.ctx {
		return nil
	}
	if err := b.unfollow(); err != nil || ctx.Done() == nil {
		return err
	}
	b.ctx, b.stopped = ctx, make(chan struct{})
	library, options, stopped := b.library, b.options, b.stopped
	b.forget = context.AfterFunc(ctx, func() {
		defer close(stopped)
		// It cannot fail, and the run goes on to its end if it does.
		_ = library.check(C.ort_RunOptionsSetTerminate(library.table, options))
	})
	return nil
}

// unfollow ends what follow arranged.
func (b *Binding) unfollow() error {
	if b.ctx == nil {
		return nil
	}
	wasStopped := !b.forget()
	if wasStopped {
		<-b.stopped
	}
	b.ctx = nil
	if !wasStopped {
		return nil
	}
	return b.library.check(C.ort_RunOptionsUnsetTerminate(b.library.table, b.options))
}

// read looks at the outputs that are new.
func (b *Binding) read() error {
	for i, value := range b.outputValues {
		if b.outputs[i].Shape != nil {
			continue // it stayed
		}
		if err := b.library.look(value, &b.outputs[i]); err != nil {
			return fmt.Errorf("run: read output %q: %w", b.session.outputs[i].Name, err)
		}
	}
	b.kept = slices.Contains(b.stays, true)
	return nil
}

// look finds the memory of a tensor; strings are copied.
func (l *Library) look(value *C.OrtValue, t *Tensor) error {
	var info *C.OrtTensorInfo
	if err := l.check(C.ort_GetTensorTypeAndShape(l.table, value, &info)); err != nil {
		return err
	}
	defer C.ort_ReleaseTensorTypeAndShapeInfo(l.table, info)
	number, dims, err := l.elementsOf(info)
	if err != nil {
		return err
	}
	shape := make([]int64, len(dims))
	for i, d := range dims {
		shape[i] = int64(d)
	}
	t.Type = elementType(number)
	if t.Type == tensor.String {
		d, err := l.readTensor(value)
		if err != nil {
			return err
		}
		t.Shape, t.Strings = shape, tensor.Data[string](d)
		return nil
	}
	size, err := rawSize(t.Type, shape)
	if err != nil {
		return fmt.Errorf("element type %d of ONNX Runtime: %w", number, err)
	}
	var data unsafe.Pointer
	if err := l.check(C.ort_GetTensorMutableData(l.table, value, &data)); err != nil {
		return err
	}
	t.Shape, t.Bytes = shape, unsafe.Slice((*byte)(data), size)
	return nil
}

// rawSize is how many bytes a tensor has.
func rawSize(t tensor.Type, shape []int64) (int64, error) {
	dims := make([]int, len(shape))
	for i, d := range shape {
		dims[i] = int(d)
	}
	count, err := tensor.Count(dims)
	if err != nil {
		return 0, err
	}
	size, ok := t.RawSize(int64(count))
	if !ok {
		return 0, fmt.Errorf("%v has no raw form", t)
	}
	return size, nil
}

// Output gives what the last run computed. It is memory of ONNX Runtime, valid until the
// next run or Close.
func (b *Binding) Output(i int) Tensor { return b.outputs[i] }

// Close gives back what the binding holds; the session stays open. It returns nil always.
func (b *Binding) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	runtime.SetFinalizer(b, nil)
	_ = b.unfollow() // the options are given back in any case
	for i := range b.inputs {
		b.release(i)
	}
	b.dropOutputs(true)
	C.ort_ReleaseRunOptions(b.library.table, b.options)
	b.library.release()
	return nil
}
