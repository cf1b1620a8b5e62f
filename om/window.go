package om

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"google.golang.org/protobuf/encoding/protowire"
)

// windowBytes is how much is read at a time. Messages are mostly jumped over, so a
// large window would read what nobody looks at.
const windowBytes = 512

// span is a range of the file.
type span struct{ start, end int64 }

func (s span) size() int64 { return s.end - s.start }

// window gives small pieces of a file, from the last few hundred bytes read where it
// can. It is not safe for concurrent use; each question to a File makes its own.
type window struct {
	source io.ReaderAt
	start  int64
	held   []byte
	buffer [windowBytes]byte
}

// at gives up to n bytes from an offset, fewer at the end of the limit; n is at most
// windowBytes. The bytes are valid until the next call.
func (w *window) at(offset int64, n int, limit int64) ([]byte, error) {
	n = int(min(int64(n), limit-offset))
	if n <= 0 {
		return nil, nil
	}
	if inside := offset - w.start; inside < 0 || inside+int64(n) > int64(len(w.held)) {
		if err := w.fill(offset, limit); err != nil {
			return nil, err
		}
	}
	inside := int(offset - w.start)
	return w.held[inside : inside+n], nil
}

func (w *window) fill(offset, limit int64) error {
	n := min(windowBytes, limit-offset)
	w.held = nil
	if _, err := readFull(w.source, w.buffer[:n], offset); err != nil {
		return err
	}
	w.start, w.held = offset, w.buffer[:n]
	return nil
}

// text reads a range as a string.
func (w *window) text(s span) (string, error) {
	b, err := w.bytes(s)
	return string(b), err
}

// bytes reads a range, which the caller has held against a limit.
func (w *window) bytes(s span) ([]byte, error) {
	if s.size() <= windowBytes {
		b, err := w.at(s.start, int(s.size()), s.end)
		return append([]byte(nil), b...), err
	}
	b := make([]byte, s.size())
	_, err := readFull(w.source, b, s.start)
	return b, err
}

// readFull reads exactly len(b) bytes; a reader may tell the end of the file along
// with the last of them.
func readFull(r io.ReaderAt, b []byte, offset int64) (int, error) {
	n, err := r.ReadAt(b, offset)
	if n == len(b) {
		return n, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, fmt.Errorf("reading %d bytes at %d: %w", len(b), offset, err)
}

// field is one field of a protobuf message: a number for the wire types that are
// one, else the range of its bytes.
type field struct {
	number protowire.Number
	wire   protowire.Type
	value  uint64
	body   span
}

// is tells whether the field is this one, with a wire type that fits.
func (f field) is(number protowire.Number, wire protowire.Type) bool {
	return f.number == number && f.wire == wire
}

// fields walks a message. Bodies are not read: whoever wants one reads its range.
// It ends at the first error.
func (w *window) fields(message span) iter.Seq2[field, error] {
	return func(yield func(field, error) bool) {
		at := message.start
		for at < message.end {
			f, next, err := w.field(at, message.end)
			if !yield(f, err) || err != nil {
				return
			}
			at = next
		}
	}
}

// field reads the tag at an offset, and the value or the length behind it.
func (w *window) field(at, end int64) (f field, next int64, err error) {
	tag, at, err := w.varint(at, end)
	if err != nil {
		return f, 0, err
	}
	f.number, f.wire = protowire.DecodeTag(tag)
	if !f.number.IsValid() {
		return f, 0, fmt.Errorf("no protobuf field number at %d", at)
	}
	switch f.wire {
	case protowire.VarintType:
		f.value, next, err = w.varint(at, end)
		return f, next, err
	case protowire.Fixed32Type:
		f.body = span{at, at + 4}
	case protowire.Fixed64Type:
		f.body = span{at, at + 8}
	case protowire.BytesType:
		length, start, err := w.varint(at, end)
		if err != nil {
			return f, 0, err
		}
		if length > uint64(end-start) {
			return f, 0, fmt.Errorf("a field at %d is longer than what holds it", at)
		}
		f.body = span{start, start + int64(length)}
	default:
		return f, 0, fmt.Errorf("protobuf wire type %d at %d", f.wire, at)
	}
	if f.body.end > end {
		return f, 0, fmt.Errorf("a field at %d is longer than what holds it", at)
	}
	return f, f.body.end, nil
}

func (w *window) varint(at, end int64) (uint64, int64, error) {
	b, err := w.at(at, 10, end)
	if err != nil {
		return 0, 0, err
	}
	v, n := protowire.ConsumeVarint(b)
	if n < 0 {
		return 0, 0, fmt.Errorf("no protobuf number at %d", at)
	}
	return v, at + int64(n), nil
}
