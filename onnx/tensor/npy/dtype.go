package npy

import (
	"fmt"
	"strconv"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// dtype is a numpy dtype as far as headers say it: '<f4', '|b1', '>U7'.
type dtype struct {
	bigEndian bool
	kind      byte // b, i, u, f, c as in numpy; V for raw bytes; U and S for text
	size      int  // bytes of an element
	// field is the ONNX type that the only field of a structured dtype names, or
	// Undefined for a plain dtype.
	field tensor.Type
}

// plainTypes are the ONNX types that numpy has, by kind and size. The Python
// package ml_dtypes registers its E5M2 as a float of one byte.
var plainTypes = map[string]tensor.Type{
	"b1": tensor.Bool,
	"i1": tensor.Int8, "i2": tensor.Int16, "i4": tensor.Int32, "i8": tensor.Int64,
	"u1": tensor.Uint8, "u2": tensor.Uint16, "u4": tensor.Uint32, "u8": tensor.Uint64,
	"f1": tensor.Float8E5M2, "f2": tensor.Float16, "f4": tensor.Float32, "f8": tensor.Float64,
	"c8": tensor.Complex64, "c16": tensor.Complex128,
}

// descriptors is the inverse of plainTypes, for writing.
var descriptors = invert(plainTypes)

func invert(types map[string]tensor.Type) map[tensor.Type]string {
	inverse := make(map[tensor.Type]string, len(types))
	for name, t := range types {
		if name == "f1" {
			continue // only files of ml_dtypes have it
		}
		order := "<"
		if t.Width() == 1 {
			order = "|"
		}
		inverse[t] = order + name
	}
	return inverse
}

// foreign reports whether numpy has no dtype for t.
func foreign(t tensor.Type) bool {
	_, plain := descriptors[t]
	return t.Valid() && t != tensor.String && !plain
}

// storage is the dtype of the integers under a foreign type.
func storage(t tensor.Type) string {
	switch {
	case t.Width() == 2:
		return "<u2"
	case t.IsInteger() && t.IsSigned():
		return "|i1"
	}
	return "|u1"
}

// parseDtype reads the value of the header's key descr: a string, or a list of
// one field.
func parseDtype(descr any) (dtype, error) {
	switch descr := descr.(type) {
	case string:
		return parsePlain(descr)
	case []any:
		return parseStructured(descr)
	}
	return dtype{}, fmt.Errorf("dtype %v is neither a string nor a list", descr)
}

func parsePlain(descr string) (dtype, error) {
	refused := fmt.Errorf("dtype %q has no ONNX type", descr)
	if len(descr) < 3 {
		return dtype{}, refused
	}
	size, err := strconv.ParseUint(descr[2:], 10, 31)
	if err != nil || size == 0 {
		return dtype{}, refused
	}
	d := dtype{bigEndian: descr[0] == '>', kind: descr[1], size: int(size)}
	switch descr[0] {
	case '<', '>', '|':
	default:
		return dtype{}, refused
	}
	switch d.kind {
	case 'U':
		if size > maxText {
			return dtype{}, fmt.Errorf("dtype %q: text elements of more than %d characters", descr, maxText)
		}
		d.size *= runeSize
	case 'S', 'V':
	default:
		if _, ok := plainTypes[d.name()]; !ok {
			return dtype{}, refused
		}
	}
	return d, nil
}

// maxText bounds the characters of a text element, so that sizes do not overflow.
const maxText = 1 << 28

// runeSize is the bytes of one character of 'U' text.
const runeSize = 4

func parseStructured(fields []any) (dtype, error) {
	if len(fields) != 1 {
		return dtype{}, fmt.Errorf("structured dtype of %d fields has no ONNX type", len(fields))
	}
	field, _ := fields[0].([]any)
	if len(field) != 2 {
		return dtype{}, fmt.Errorf("field %v of a structured dtype is not a name and a dtype", fields[0])
	}
	name, isName := field[0].(string)
	descr, isDescr := field[1].(string)
	if !isName || !isDescr {
		return dtype{}, fmt.Errorf("field %v of a structured dtype is not a name and a dtype", field)
	}
	d, err := parsePlain(descr)
	if err != nil {
		return dtype{}, err
	}
	t, ok := tensor.ParseType(name)
	if !ok || !foreign(t) || t.Width() != d.size || d.kind != 'u' && d.kind != 'i' {
		return dtype{}, fmt.Errorf("structured dtype with field %q over %q has no ONNX type", name, descr)
	}
	d.field = t
	return d, nil
}

// name is kind and size, as plainTypes has them.
func (d dtype) name() string { return string(d.kind) + strconv.Itoa(d.size) }

// elementType returns the ONNX type of the elements; hint says what unnamed bytes
// and integers are.
func (d dtype) elementType(hint tensor.Type) (tensor.Type, error) {
	switch d.kind {
	case 'U', 'S':
		return tensor.String, nil
	}
	if d.field != tensor.Undefined {
		return d.field, nil
	}
	if foreign(hint) && hint.Width() == d.size && (d.kind == 'V' || d.kind == 'u' || d.kind == 'i') {
		return hint, nil
	}
	t, ok := plainTypes[d.name()]
	switch {
	case d.kind == 'V' && hint.Valid():
		return 0, fmt.Errorf("elements of %d raw bytes are not of type %v", d.size, hint)
	case !ok:
		return 0, fmt.Errorf("elements of %d raw bytes: the file does not say their type, so it must be given", d.size)
	}
	return t, nil
}
