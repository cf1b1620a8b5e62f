package onnx

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// kindFields gives the field of TypeProto that holds each kind.
var kindFields = [...]protowire.Number{
	KindTensor: 1, KindSequence: 4, KindMap: 5, KindOpaque: 7, KindSparseTensor: 8, KindOptional: 9,
}

// maxTypeDepth bounds how deeply sequences, optionals and maps may be nested.
const maxTypeDepth = 100

// decodeType reads a TypeProto; nil when it says nothing.
func decodeType(message []byte, depth int) (t *Type, err error) {
	if depth > maxTypeDepth {
		return nil, fmt.Errorf("types nested deeper than %d", maxTypeDepth)
	}
	var contents []byte
	denotation := ""
	f := fields{rest: message}
	for f.next() {
		switch {
		case !f.isBytes():
		case f.number == 6:
			denotation = string(f.bytes)
		default:
			for kind, number := range kindFields {
				if f.number == number {
					// Of the members of a oneof the last counts; the same one twice is merged.
					if t != nil && t.Kind == Kind(kind) {
						contents = merged(contents, f.bytes)
					} else {
						t, contents = &Type{Kind: Kind(kind)}, f.bytes
					}
				}
			}
		}
	}
	if f.err != nil || t == nil {
		return nil, f.err
	}
	t.denotation = denotation
	return t, t.decodeContents(contents, depth)
}

// decodeContents reads what TypeProto has for the kind. In all of them field 1 is
// the element's type, and field 2 the shape of a tensor or the value type of a map.
func (t *Type) decodeContents(message []byte, depth int) error {
	if t.Kind == KindOpaque {
		t.opaque = message
		return nil
	}
	var inner, shape []byte
	f := fields{rest: message}
	for f.next() {
		switch {
		case f.number == 1 && f.isVarint():
			t.Elem = tensor.Type(int32(f.bits))
		case f.number == 1 && f.isBytes():
			inner = merged(inner, f.bytes)
		case f.number == 2 && f.isBytes():
			shape = merged(shape, f.bytes)
		}
	}
	if f.err != nil {
		return f.err
	}
	var err error
	switch {
	case t.Kind == KindTensor || t.Kind == KindSparseTensor:
		if shape != nil {
			t.Shape, err = decodeShape(shape)
		}
	case t.Kind == KindMap:
		t.Inner, err = decodeType(shape, depth+1)
	default:
		t.Inner, err = decodeType(inner, depth+1)
	}
	return err
}

func decodeShape(message []byte) (*Shape, error) {
	s := &Shape{}
	f := fields{rest: message}
	for f.next() {
		if f.number == 1 && f.isBytes() {
			d, err := decodeDim(f.bytes)
			if err != nil {
				return nil, err
			}
			s.Dims = append(s.Dims, d)
		}
	}
	return s, f.err
}

// errNegativeDim says that a type declares a size that no tensor can have.
var errNegativeDim = errors.New("there is no dim")

func decodeDim(message []byte) (d Dim, err error) {
	f := fields{rest: message}
	for f.next() {
		switch {
		case f.number == 1 && f.isVarint() && int64(f.bits) < -1:
			return d, fmt.Errorf("%w of %d", errNegativeDim, int64(f.bits))
		case f.number == 1 && f.isVarint():
			// -1 is how some exporters spell "not known".
			d.Value, d.Known, d.Param = max(int64(f.bits), 0), int64(f.bits) >= 0, ""
		case f.number == 2 && f.isBytes():
			d.Value, d.Known, d.Param = 0, false, string(f.bytes)
		case f.number == 3 && f.isBytes():
			d.denotation = string(f.bytes)
		}
	}
	return d, f.err
}

// encodeType writes t as the contents of a TypeProto.
func (r *rope) encodeType(t *Type) {
	r.message(kindFields[t.Kind], func() { r.typeContents(t) })
	if t.denotation != "" {
		r.string(6, t.denotation)
	}
}

func (r *rope) typeContents(t *Type) {
	switch t.Kind {
	case KindOpaque:
		r.add(t.opaque, nil)
	case KindTensor, KindSparseTensor:
		r.varint(1, uint64(t.Elem))
		if t.Shape != nil {
			r.message(2, func() { r.shape(t.Shape) })
		}
	case KindMap:
		r.varint(1, uint64(t.Elem))
		r.inner(2, t.Inner)
	default:
		r.inner(1, t.Inner)
	}
}

// inner writes the type inside of another one; a file may leave it out.
func (r *rope) inner(number protowire.Number, t *Type) {
	if t != nil {
		r.message(number, func() { r.encodeType(t) })
	}
}

func (r *rope) shape(s *Shape) {
	for _, d := range s.Dims {
		r.message(1, func() {
			switch {
			case d.Known:
				r.varint(1, uint64(d.Value))
			case d.Param != "":
				r.string(2, d.Param)
			}
			if d.denotation != "" {
				r.string(3, d.denotation)
			}
		})
	}
}
