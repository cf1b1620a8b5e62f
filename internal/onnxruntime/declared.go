//go:build cgo && (linux || darwin)

package onnxruntime

/*
#include <stdlib.h>
#include "api.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// describe reads what the model declares.
func (s *Session) describe() error {
	table := s.library.table
	for _, list := range []struct {
		what  string
		into  *[]declared
		count func(out *C.size_t) *C.OrtStatus
		name  func(i C.size_t, out **C.char) *C.OrtStatus
		info  func(i C.size_t, out **C.OrtTypeInfo) *C.OrtStatus
	}{
		{
			"input", &s.inputs,
			func(out *C.size_t) *C.OrtStatus { return C.ort_SessionGetInputCount(table, s.handle, out) },
			func(i C.size_t, out **C.char) *C.OrtStatus {
				return C.ort_SessionGetInputName(table, s.handle, i, s.library.allocator, out)
			},
			func(i C.size_t, out **C.OrtTypeInfo) *C.OrtStatus {
				return C.ort_SessionGetInputTypeInfo(table, s.handle, i, out)
			},
		},
		{
			"output", &s.outputs,
			func(out *C.size_t) *C.OrtStatus { return C.ort_SessionGetOutputCount(table, s.handle, out) },
			func(i C.size_t, out **C.char) *C.OrtStatus {
				return C.ort_SessionGetOutputName(table, s.handle, i, s.library.allocator, out)
			},
			func(i C.size_t, out **C.OrtTypeInfo) *C.OrtStatus {
				return C.ort_SessionGetOutputTypeInfo(table, s.handle, i, out)
			},
		},
		{
			"overridable initializer", &s.initializers,
			func(out *C.size_t) *C.OrtStatus {
				return C.ort_SessionGetOverridableInitializerCount(table, s.handle, out)
			},
			func(i C.size_t, out **C.char) *C.OrtStatus {
				return C.ort_SessionGetOverridableInitializerName(table, s.handle, i, s.library.allocator, out)
			},
			func(i C.size_t, out **C.OrtTypeInfo) *C.OrtStatus {
				return C.ort_SessionGetOverridableInitializerTypeInfo(table, s.handle, i, out)
			},
		},
	} {
		var count C.size_t
		if err := s.library.check(list.count(&count)); err != nil {
			return fmt.Errorf("count the model's %ss: %w", list.what, err)
		}
		for i := range count {
			d, err := s.library.describe(i, list.name, list.info)
			if err != nil {
				return fmt.Errorf("describe %s %d of the model: %w", list.what, i, err)
			}
			*list.into = append(*list.into, d)
		}
	}
	return nil
}

// describe reads the name and the type of the i-th of a list.
func (l *Library) describe(i C.size_t, getName func(C.size_t, **C.char) *C.OrtStatus, getInfo func(C.size_t, **C.OrtTypeInfo) *C.OrtStatus) (declared, error) {
	var info *C.OrtTypeInfo
	if err := l.check(getInfo(i, &info)); err != nil {
		return declared{}, err
	}
	defer C.ort_ReleaseTypeInfo(l.table, info)
	t, err := l.typeOf(info)
	if err != nil {
		return declared{}, err
	}
	var allocated *C.char
	if err := l.check(getName(i, &allocated)); err != nil {
		return declared{}, err
	}
	name := C.GoString(allocated)
	if err := l.check(C.ort_AllocatorFree(l.table, l.allocator, unsafe.Pointer(allocated))); err != nil {
		return declared{}, err
	}
	return declared{Info: Info{Name: name, Type: *t}, name: C.CString(name)}, nil
}

// typeOf reads a declared type.
func (l *Library) typeOf(info *C.OrtTypeInfo) (*Type, error) {
	var kind C.int
	if err := l.check(C.ort_GetOnnxTypeFromTypeInfo(l.table, info, &kind)); err != nil {
		return nil, err
	}
	t := &Type{Kind: Kind(kind)}
	var inner *C.OrtTypeInfo // released here: it does not belong to info
	defer func() {
		if inner != nil {
			C.ort_ReleaseTypeInfo(l.table, inner)
		}
	}()
	var err error
	switch t.Kind {
	case KindTensor, KindSparseTensor:
		return t, l.tensorType(info, t)
	case KindSequence:
		var sequence *C.OrtSequenceInfo
		err = l.first(
			func() *C.OrtStatus { return C.ort_CastTypeInfoToSequenceTypeInfo(l.table, info, &sequence) },
			func() *C.OrtStatus { return C.ort_GetSequenceElementType(l.table, sequence, &inner) })
	case KindOptional:
		var optional *C.OrtOptionalInfo
		err = l.first(
			func() *C.OrtStatus { return C.ort_CastTypeInfoToOptionalTypeInfo(l.table, info, &optional) },
			func() *C.OrtStatus { return C.ort_GetOptionalContainedTypeInfo(l.table, optional, &inner) })
	case KindMap:
		var mapping *C.OrtMapInfo
		var key C.int
		err = l.first(
			func() *C.OrtStatus { return C.ort_CastTypeInfoToMapTypeInfo(l.table, info, &mapping) },
			func() *C.OrtStatus { return C.ort_GetMapKeyType(l.table, mapping, &key) },
			func() *C.OrtStatus { return C.ort_GetMapValueType(l.table, mapping, &inner) })
		t.Elem = elementType(int(key))
	}
	if err != nil || inner == nil {
		return t, err
	}
	t.Inner, err = l.typeOf(inner)
	return t, err
}

// first makes calls until one fails.
func (l *Library) first(calls ...func() *C.OrtStatus) error {
	for _, call := range calls {
		if err := l.check(call()); err != nil {
			return err
		}
	}
	return nil
}

// tensorType reads the element type and dims of a declared tensor into t.
func (l *Library) tensorType(info *C.OrtTypeInfo, t *Type) error {
	var declared *C.OrtTensorInfo
	if err := l.check(C.ort_CastTypeInfoToTensorInfo(l.table, info, &declared)); err != nil || declared == nil {
		return err
	}
	elem, dims, err := l.elementsOf(declared)
	if err != nil {
		return err
	}
	t.Elem = elementType(elem)
	if !C.ort_has_shape(l.table, declared, C.size_t(len(dims))) {
		return nil
	}
	t.Shape, t.DimNames = dims, make([]string, len(dims))
	if len(dims) == 0 {
		return nil
	}
	names := make([]*C.char, len(dims)) // memory of info
	if err := l.check(C.ort_GetSymbolicDimensions(l.table, declared, &names[0], C.size_t(len(names)))); err != nil {
		return err
	}
	for i, name := range names {
		t.DimNames[i] = C.GoString(name)
	}
	return nil
}

// elementsOf reads the element type, as ONNX Runtime numbers it, and the dims.
func (l *Library) elementsOf(info *C.OrtTensorInfo) (elem int, dims []int64, err error) {
	var element C.int
	var rank C.size_t
	err = l.first(
		func() *C.OrtStatus { return C.ort_GetTensorElementType(l.table, info, &element) },
		func() *C.OrtStatus { return C.ort_GetDimensionsCount(l.table, info, &rank) })
	if err != nil {
		return 0, nil, err
	}
	dims = make([]int64, rank)
	if rank > 0 {
		err = l.check(C.ort_GetDimensions(l.table, info, (*C.int64_t)(&dims[0]), rank))
	}
	return int(element), dims, err
}

// ONNX Runtime numbers the element types as TensorProto.DataType does up to
// Float4E2M1. Then it leaves out Float8E8M0, which it does not have.
const (
	elementUint2 = 24
	elementInt2  = 25
)

// elementType converts ONNX Runtime's number of an element type. One that we do not
// know becomes Undefined.
func elementType(number int) tensor.Type {
	switch {
	case number == elementUint2:
		return tensor.Uint2
	case number == elementInt2:
		return tensor.Int2
	case number > 0 && number <= int(tensor.Float4E2M1):
		return tensor.Type(number)
	}
	return tensor.Undefined
}

// elementNumber is the inverse of elementType; ok is false for types that ONNX
// Runtime does not have.
func elementNumber(t tensor.Type) (number int, ok bool) {
	switch {
	case t == tensor.Uint2:
		return elementUint2, true
	case t == tensor.Int2:
		return elementInt2, true
	case t.Valid() && t <= tensor.Float4E2M1:
		return int(t), true
	}
	return 0, false
}
