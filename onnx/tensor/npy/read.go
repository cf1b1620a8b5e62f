package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/npuctl/npuctl/onnx/tensor"
)

const magic = "\x93NUMPY"

// maxHeader bounds the header of a file; one of an array has some 120 bytes.
const maxHeader = 1 << 16

// header is what a file says before its data.
type header struct {
	dtype   dtype
	fortran bool // columns first
	shape   []int
}

// ReadNPY reads one array in .npy form and leaves what follows it unread. It
// fails on arrays of Python objects, of dtypes without an ONNX type, and of raw
// bytes whose type the file does not say ([ReadNPYAs]). Memory grows with the
// data that is there, not with the shape that the header claims.
func ReadNPY(r io.Reader) (*tensor.Dense, error) { return ReadNPYAs(r, tensor.Undefined) }

// ReadNPYAs is [ReadNPY] for a caller that knows which type to expect. Where
// numpy has no dtype for it, raw bytes and integers of its width are read as
// elements of that type. Else the array has the type that the file says, be it
// the expected one or not: nothing is converted.
func ReadNPYAs(r io.Reader, expected tensor.Type) (*tensor.Dense, error) {
	d, err := read(r, expected, available(r))
	if err != nil {
		return nil, fmt.Errorf("read npy array: %w", err)
	}
	return d, nil
}

// available returns how many bytes r certainly has at most, or 0 when it does not
// say.
func available(r io.Reader) int64 {
	switch r := r.(type) {
	case interface{ Len() int }:
		return int64(r.Len())
	case interface{ Stat() (fs.FileInfo, error) }:
		if info, err := r.Stat(); err == nil && info.Mode().IsRegular() {
			return info.Size()
		}
	}
	return 0
}

func read(r io.Reader, expected tensor.Type, available int64) (*tensor.Dense, error) {
	h, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	elementType, err := h.dtype.elementType(expected)
	if err != nil {
		return nil, err
	}
	count, err := tensor.Count(h.shape)
	if err != nil {
		return nil, err
	}
	size := int64(h.dtype.size)
	if limit := min(tensor.MaxBytes, math.MaxInt); int64(count) > limit/size {
		return nil, fmt.Errorf("shape %v: %w: more than %d bytes", h.shape, tensor.ErrTooLarge, limit)
	}
	data, err := readData(r, int64(count)*size, available)
	if err != nil {
		return nil, fmt.Errorf("data of shape %v: %w", h.shape, err)
	}
	if !h.fortran {
		return decode(h.dtype, elementType, h.shape, data)
	}
	reversed := slices.Clone(h.shape)
	slices.Reverse(reversed)
	columns, err := decode(h.dtype, elementType, reversed, data)
	if err != nil {
		return nil, err
	}
	strides := tensor.Strides(reversed)
	slices.Reverse(strides)
	return columns.Strided(0, h.shape, strides)
}

func readHeader(r io.Reader) (header, error) {
	var start [len(magic) + 2]byte
	if _, err := io.ReadFull(r, start[:]); err != nil || string(start[:len(magic)]) != magic {
		return header{}, errors.New("not a .npy file: it does not start with \\x93NUMPY")
	}
	length, err := readHeaderLength(r, start[len(magic)])
	if err != nil {
		return header{}, fmt.Errorf("header: %w", err)
	}
	if length > maxHeader {
		return header{}, fmt.Errorf("header of %d bytes, the limit is %d", length, maxHeader)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return header{}, fmt.Errorf("header: %w", unexpected(err))
	}
	h, err := parseHeader(string(text))
	if err != nil {
		return header{}, fmt.Errorf("header: %w", err)
	}
	return h, nil
}

// readHeaderLength reads the length field: 2 bytes in version 1, else 4.
func readHeaderLength(r io.Reader, version byte) (uint32, error) {
	var field [4]byte
	n := 4
	switch version {
	case 1:
		n = 2
	case 2, 3:
	default:
		return 0, fmt.Errorf("format version %d is not known", version)
	}
	if _, err := io.ReadFull(r, field[:n]); err != nil {
		return 0, unexpected(err)
	}
	return binary.LittleEndian.Uint32(field[:]), nil
}

// unexpected makes an end of file what it is in the middle of an array.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func parseHeader(text string) (header, error) {
	p := parser{text: text}
	entries, err := p.dict()
	if err != nil {
		return header{}, err
	}
	descr, hasDescr := entries["descr"]
	fortran, hasOrder := entries["fortran_order"].(bool)
	dims, hasShape := entries["shape"].([]any)
	if len(entries) != 3 || !hasDescr || !hasOrder || !hasShape {
		return header{}, errors.New("not a dict of descr, fortran_order and shape")
	}
	h := header{fortran: fortran, shape: make([]int, len(dims))}
	for axis, dim := range dims {
		n, ok := dim.(int)
		if !ok {
			return header{}, fmt.Errorf("dim %d of the shape is not a number", axis)
		}
		h.shape[axis] = n
	}
	h.dtype, err = parseDtype(descr)
	return h, err
}

// firstRead is how much is allocated for data that may not be there.
const firstRead = 1 << 20

// readData reads exactly size bytes. It allocates them at once only when so many
// are known to be available, else as they come.
func readData(r io.Reader, size, available int64) ([]byte, error) {
	data := make([]byte, 0, min(size, max(available, firstRead)))
	for {
		filled := len(data)
		data = data[:min(int64(cap(data)), size)]
		if _, err := io.ReadFull(r, data[filled:]); err != nil {
			return nil, unexpected(err)
		}
		if int64(len(data)) == size {
			return data, nil
		}
		data = slices.Grow(data, int(min(size-int64(len(data)), int64(len(data)))))
	}
}

// decode makes an array from data, in the byte order of dt.
func decode(dt dtype, t tensor.Type, shape []int, data []byte) (*tensor.Dense, error) {
	if t == tensor.String {
		return decodeText(dt, shape, data)
	}
	if dt.bigEndian {
		unit := dt.size
		if t.IsComplex() {
			unit /= 2
		}
		for number := range slices.Chunk(data, unit) {
			slices.Reverse(number)
		}
	}
	if t.Bits() >= 8 {
		return tensor.FromRaw(t, shape, data)
	}
	return decodeNarrow(t, shape, data)
}

// decodeNarrow reads elements of 2 or 4 bits from a byte each. The bits above may
// be zeros or copies of the sign.
func decodeNarrow(t tensor.Type, shape []int, data []byte) (*tensor.Dense, error) {
	d, err := tensor.New(t, shape...)
	if err != nil {
		return nil, err
	}
	spare := 8 - t.Bits()
	elements := tensor.Words[uint8](d)
	for i, b := range data {
		unsigned, signed := b<<spare>>spare, uint8(int8(b<<spare)>>spare)
		if b != unsigned && b != signed {
			return nil, fmt.Errorf("element %d: %d is not a %v", i, b, t)
		}
		elements[i] = unsigned
		if t.IsInteger() && t.IsSigned() {
			elements[i] = signed
		}
	}
	return d, nil
}

// decodeText reads text elements, which are filled up with zeros.
func decodeText(dt dtype, shape []int, data []byte) (*tensor.Dense, error) {
	texts := make([]string, 0, len(data)/dt.size)
	for element := range slices.Chunk(data, dt.size) {
		if dt.kind == 'S' {
			texts = append(texts, string(bytes.TrimRight(element, "\x00")))
			continue
		}
		text, err := decodeRunes(element, dt.bigEndian)
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", len(texts), err)
		}
		texts = append(texts, text)
	}
	return tensor.Make(texts, shape...)
}

func decodeRunes(element []byte, bigEndian bool) (string, error) {
	var order binary.ByteOrder = binary.LittleEndian
	if bigEndian {
		order = binary.BigEndian
	}
	text := make([]byte, 0, len(element)/runeSize)
	end := 0 // of the last character that is not zero
	for character := range slices.Chunk(element, runeSize) {
		r := order.Uint32(character)
		if r > utf8.MaxRune || !utf8.ValidRune(rune(r)) {
			return "", fmt.Errorf("%#x is not a character", r)
		}
		text = utf8.AppendRune(text, rune(r))
		if r != 0 {
			end = len(text)
		}
	}
	return string(text[:end]), nil
}
