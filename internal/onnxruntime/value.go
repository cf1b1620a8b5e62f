//go:build cgo && (linux || darwin)

package onnxruntime

/*
#include "api.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// value makes the C form of v, which is declared to be a t. It lives until the call
// is released.
func (c *call) value(v Value, t *Type) (*C.OrtValue, error) {
	if t.Kind == KindOptional && t.Inner != nil {
		t = t.Inner
	}
	switch v := v.(type) {
	case nil:
		return nil, fmt.Errorf("no value is given where a %v is declared", t.Kind)
	case *tensor.Dense:
		if v == nil {
			return nil, errors.New("the tensor is a nil pointer")
		}
		return c.tensor(v)
	case Sequence:
		return c.sequence(v, t)
	case *Map:
		if v == nil {
			return nil, errors.New("the map is a nil pointer")
		}
		return c.mapping(v)
	}
	return nil, fmt.Errorf("a %T is not a value", v)
}

// keep checks the status of the call that made value, and has it released in the end.
func (c *call) keep(status *C.OrtStatus, value **C.OrtValue) (*C.OrtValue, error) {
	if err := c.library.check(status); err != nil {
		return nil, err
	}
	c.made = append(c.made, *value)
	return *value, nil
}

// tensor makes a tensor that stands on the memory of d.
func (c *call) tensor(d *tensor.Dense) (*C.OrtValue, error) {
	number, ok := elementNumber(d.Type())
	if !ok {
		return nil, fmt.Errorf("ONNX Runtime has no element type %v", d.Type())
	}
	dims := make([]C.int64_t, len(d.Shape()), len(d.Shape())+1) // never without memory to point at
	for i, dim := range d.Shape() {
		dims[i] = C.int64_t(dim)
	}
	var value *C.OrtValue
	if d.Type() == tensor.String {
		status := C.ort_CreateTensorAsOrtValue(c.library.table, c.library.allocator,
			unsafe.SliceData(dims), C.size_t(len(dims)), C.int(number), &value)
		if _, err := c.keep(status, &value); err != nil {
			return nil, err
		}
		return value, c.library.fill(value, tensor.Data[string](d))
	}
	raw := d.Raw()
	data := unsafe.Pointer(unsafe.SliceData(raw))
	c.pinner.Pin(data)
	status := C.ort_CreateTensorWithDataAsOrtValue(c.library.table, c.library.memory, data, C.size_t(len(raw)),
		unsafe.SliceData(dims), C.size_t(len(dims)), C.int(number), &value)
	return c.keep(status, &value)
}

// fill copies strings, which may contain NULs, into a string tensor.
func (l *Library) fill(value *C.OrtValue, elements []string) error {
	for i, s := range elements {
		var buffer *C.char
		status := C.ort_GetResizedStringTensorElementBuffer(l.table, value, C.size_t(i), C.size_t(len(s)), &buffer)
		if err := l.check(status); err != nil {
			return err
		}
		copy(unsafe.Slice((*byte)(unsafe.Pointer(buffer)), len(s)), s)
	}
	return nil
}

// sequence makes a sequence; t says of what, which matters when it is empty.
func (c *call) sequence(s Sequence, t *Type) (*C.OrtValue, error) {
	if t.Kind != KindSequence || t.Inner == nil {
		return nil, fmt.Errorf("a sequence is given where a %v is declared", t.Kind)
	}
	if len(s) == 0 {
		return c.emptySequence(t)
	}
	parts := make([]*C.OrtValue, len(s))
	for i, element := range s {
		var err error
		if parts[i], err = c.value(element, t.Inner); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return c.compound(parts, KindSequence)
}

// mapping makes a map.
func (c *call) mapping(m *Map) (*C.OrtValue, error) {
	if m.Keys == nil || m.Values == nil {
		return nil, errors.New("the map has no keys or no values")
	}
	keys, err := c.tensor(m.Keys)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	values, err := c.tensor(m.Values)
	if err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	return c.compound([]*C.OrtValue{keys, values}, KindMap)
}

// compound makes a value out of others.
func (c *call) compound(parts []*C.OrtValue, kind Kind) (*C.OrtValue, error) {
	var value *C.OrtValue
	status := C.ort_CreateValue(c.library.table, unsafe.SliceData(parts), C.size_t(len(parts)), C.int(kind), &value)
	return c.keep(status, &value)
}

// read returns the Go form of a value, which stays the caller's.
func (l *Library) read(value *C.OrtValue) (Value, error) {
	if value == nil {
		return nil, errors.New("ONNX Runtime made no value")
	}
	var present C.int
	if err := l.check(C.ort_HasValue(l.table, value, &present)); err != nil {
		return nil, err
	}
	if present == 0 {
		return nil, nil // an optional that holds nothing
	}
	var kind C.int
	if err := l.check(C.ort_GetValueType(l.table, value, &kind)); err != nil {
		return nil, err
	}
	switch Kind(kind) {
	case KindTensor:
		return l.readTensor(value)
	case KindSequence:
		return l.readSequence(value)
	case KindMap:
		return l.readMap(value)
	}
	return nil, fmt.Errorf("a value of kind %v cannot be read", Kind(kind))
}

func (l *Library) readTensor(value *C.OrtValue) (*tensor.Dense, error) {
	var info *C.OrtTensorInfo
	if err := l.check(C.ort_GetTensorTypeAndShape(l.table, value, &info)); err != nil {
		return nil, err
	}
	defer C.ort_ReleaseTensorTypeAndShapeInfo(l.table, info)
	number, dims, err := l.elementsOf(info)
	if err != nil {
		return nil, err
	}
	shape := make([]int, len(dims))
	for i, dim := range dims {
		shape[i] = int(dim)
	}
	count, err := tensor.Count(shape)
	if err != nil {
		return nil, err
	}
	elem := elementType(number)
	if elem == tensor.String {
		return l.readStrings(value, count, shape)
	}
	size, ok := elem.RawSize(int64(count))
	if !ok {
		return nil, fmt.Errorf("element type %d of ONNX Runtime is not known", number)
	}
	var data unsafe.Pointer
	if err := l.check(C.ort_GetTensorMutableData(l.table, value, &data)); err != nil {
		return nil, err
	}
	raw := make([]byte, size)
	copy(raw, unsafe.Slice((*byte)(data), size))
	return tensor.FromRaw(elem, shape, raw)
}

func (l *Library) readStrings(value *C.OrtValue, count int, shape []int) (*tensor.Dense, error) {
	elements := make([]string, count)
	if count == 0 {
		return tensor.Make(elements, shape...)
	}
	var size C.size_t
	if err := l.check(C.ort_GetStringTensorDataLength(l.table, value, &size)); err != nil {
		return nil, err
	}
	content := make([]byte, size+1) // one more, so that there is memory to point at
	starts := make([]C.size_t, count+1)
	status := C.ort_GetStringTensorContent(l.table, value, unsafe.Pointer(&content[0]), size, &starts[0], C.size_t(count))
	if err := l.check(status); err != nil {
		return nil, err
	}
	starts[count] = size
	all := string(content)
	for i := range elements {
		elements[i] = all[starts[i]:starts[i+1]]
	}
	return tensor.Make(elements, shape...)
}

func (l *Library) readSequence(value *C.OrtValue) (Sequence, error) {
	var count C.size_t
	if err := l.check(C.ort_GetValueCount(l.table, value, &count)); err != nil {
		return nil, err
	}
	sequence := make(Sequence, count)
	for i := range sequence {
		var err error
		if sequence[i], err = l.readPart(value, i); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return sequence, nil
}

func (l *Library) readMap(value *C.OrtValue) (*Map, error) {
	keys, err := l.readPart(value, 0)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	values, err := l.readPart(value, 1)
	if err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	m := &Map{}
	m.Keys, _ = keys.(*tensor.Dense)
	m.Values, _ = values.(*tensor.Dense)
	if m.Keys == nil || m.Values == nil {
		return nil, fmt.Errorf("a map from %T to %T cannot be read", keys, values)
	}
	return m, nil
}

// readPart reads the i-th element of a sequence, or the keys (0) or values (1) of a
// map.
func (l *Library) readPart(value *C.OrtValue, i int) (Value, error) {
	var part *C.OrtValue
	if err := l.check(C.ort_GetValue(l.table, value, C.int(i), l.allocator, &part)); err != nil {
		return nil, err
	}
	defer C.ort_ReleaseValue(l.table, part)
	return l.read(part)
}
