package onnx

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// fields walks over the fields of an encoded message.
type fields struct {
	rest []byte
	err  error

	number protowire.Number
	kind   protowire.Type
	bytes  []byte // the contents of a field of bytes: a string or a message
	bits   uint64 // the value of a varint or fixed field
	whole  []byte // the field as it stands in the message, tag and all
}

// errCutShort says that a message ends inside of a field.
var errCutShort = errors.New("cut short: it ends in the middle of a field")

// next steps to the next field; false at the end of the message, or of what makes sense.
func (f *fields) next() bool {
	if len(f.rest) == 0 || f.err != nil {
		return false
	}
	if f.nextShort() {
		return true
	}
	number, kind, n := protowire.ConsumeTag(f.rest)
	if n < 0 {
		return f.fail(n)
	}
	size := 0
	f.bytes = nil
	switch kind {
	case protowire.BytesType:
		f.bytes, size = protowire.ConsumeBytes(f.rest[n:])
	case protowire.VarintType:
		f.bits, size = protowire.ConsumeVarint(f.rest[n:])
	case protowire.Fixed32Type:
		var v uint32
		v, size = protowire.ConsumeFixed32(f.rest[n:])
		f.bits = uint64(v)
	case protowire.Fixed64Type:
		f.bits, size = protowire.ConsumeFixed64(f.rest[n:])
	default:
		size = protowire.ConsumeFieldValue(number, kind, f.rest[n:])
	}
	if size < 0 {
		return f.fail(size)
	}
	f.number, f.kind, f.whole, f.rest = number, kind, f.rest[:n+size], f.rest[n+size:]
	return true
}

// nextShort is next for what nearly every field is: a string or message of less
// than 128 bytes whose tag takes one byte. It says whether that is so.
func (f *fields) nextShort() bool {
	b := f.rest
	if len(b) < 2 || b[0] >= 0x80 || b[0]&7 != byte(protowire.BytesType) || b[0] < 1<<3 || b[1] >= 0x80 || len(b)-2 < int(b[1]) {
		return false
	}
	end := 2 + int(b[1])
	f.number, f.kind = protowire.Number(b[0]>>3), protowire.BytesType
	f.bytes, f.whole, f.rest = b[2:end:end], b[:end:end], b[end:]
	return true
}

func (f *fields) fail(code int) bool {
	f.err = protowire.ParseError(code)
	if errors.Is(f.err, io.ErrUnexpectedEOF) {
		f.err = errCutShort
	} else {
		// protowire puts a no-break space into its errors, to keep people from comparing them.
		why := strings.TrimPrefix(strings.ReplaceAll(f.err.Error(), "\u00a0", " "), "proto: ")
		f.err = fmt.Errorf("damaged, or no protobuf: %s", why)
	}
	return false
}

// isBytes says whether the field holds a string, bytes or a message. A field of
// another kind than its schema's is unknown, as for every protobuf reader.
func (f *fields) isBytes() bool { return f.kind == protowire.BytesType }

func (f *fields) isVarint() bool { return f.kind == protowire.VarintType }

// find gives the last field of that number that holds bytes, nil if there is none.
func find(message []byte, number protowire.Number) (last []byte) {
	for f := (fields{rest: message}); f.next(); {
		if f.number == number && f.isBytes() {
			last = f.bytes
		}
	}
	return last
}

// merged is how a message field that stands twice counts: as one message with the
// fields of both.
func merged(was, more []byte) []byte {
	if was == nil {
		return more
	}
	return slices.Concat(was, more)
}

// appendVarints adds the elements of a repeated integer field, packed or not.
func appendVarints[T ~int | ~int32 | ~int64 | ~uint64](list []T, f *fields) []T {
	switch f.kind {
	case protowire.VarintType:
		return append(list, T(f.bits))
	case protowire.BytesType:
		for b := f.bytes; len(b) > 0; {
			v, n := protowire.ConsumeVarint(b)
			if n < 0 {
				f.fail(n)
				return list
			}
			list = append(list, T(v))
			b = b[n:]
		}
	}
	return list
}

// appendFloats adds the elements of a repeated float field, packed or not.
func appendFloats(list []float32, f *fields) []float32 {
	switch f.kind {
	case protowire.Fixed32Type:
		return append(list, math.Float32frombits(uint32(f.bits)))
	case protowire.BytesType:
		for b := f.bytes; len(b) > 0; {
			v, n := protowire.ConsumeFixed32(b)
			if n < 0 {
				f.fail(n)
				return list
			}
			list = append(list, math.Float32frombits(v))
			b = b[n:]
		}
	}
	return list
}

// rope is an encoded message whose large pieces are still where they were: all
// other bytes in one buffer, and the places where the pieces go.
type rope struct {
	small []byte
	large []piece
	extra int64 // total length of the large pieces
}

// piece is a run of bytes that goes before small[at:].
type piece struct {
	at   int
	data []byte
	from *mapping // the file that data may be a piece of
}

// largePiece is the size from which bytes are not copied into the buffer.
const largePiece = 64 << 10

// total is the length of the whole message.
func (r *rope) total() int64 { return int64(len(r.small)) + r.extra }

// flat gives the message in one piece.
func (r *rope) flat() []byte {
	if len(r.large) == 0 {
		return r.small
	}
	out := make([]byte, 0, r.total())
	at := 0
	for _, p := range r.large {
		out = append(out, r.small[at:p.at]...)
		out = append(out, p.data...)
		at = p.at
	}
	return append(out, r.small[at:]...)
}

// add appends bytes that are fields already.
func (r *rope) add(b []byte, from *mapping) {
	if len(b) < largePiece {
		r.small = append(r.small, b...)
		return
	}
	r.large = append(r.large, piece{len(r.small), b, from})
	r.extra += int64(len(b))
}

func (r *rope) bytes(number protowire.Number, b []byte, from *mapping) {
	r.small = protowire.AppendTag(r.small, number, protowire.BytesType)
	r.small = protowire.AppendVarint(r.small, uint64(len(b)))
	r.add(b, from)
}

func (r *rope) string(number protowire.Number, s string) {
	r.small = protowire.AppendTag(r.small, number, protowire.BytesType)
	r.small = protowire.AppendString(r.small, s)
}

func (r *rope) varint(number protowire.Number, v uint64) {
	r.small = protowire.AppendTag(r.small, number, protowire.VarintType)
	r.small = protowire.AppendVarint(r.small, v)
}

func (r *rope) float(number protowire.Number, v float32) {
	r.small = protowire.AppendTag(r.small, number, protowire.Fixed32Type)
	r.small = protowire.AppendFixed32(r.small, math.Float32bits(v))
}

// message appends a nested message that write makes. Its length is known only
// afterwards; most take one byte, for longer ones the contents move up.
func (r *rope) message(number protowire.Number, write func()) {
	r.small = protowire.AppendTag(r.small, number, protowire.BytesType)
	start, pieces, before := len(r.small), len(r.large), r.extra
	r.small = append(r.small, 0)
	write()
	length := uint64(len(r.small)-start-1) + uint64(r.extra-before)
	more := protowire.SizeVarint(length) - 1
	if more > 0 {
		r.small = slices.Insert(r.small, start, make([]byte, more)...)
		for i := range r.large[pieces:] {
			r.large[pieces+i].at += more
		}
	}
	protowire.AppendVarint(r.small[:start], length)
}

// fieldSet is a set of field numbers below 64.
type fieldSet uint64

func numbers(list ...protowire.Number) (s fieldSet) {
	for _, n := range list {
		s |= 1 << n
	}
	return s
}

func (s fieldSet) has(n protowire.Number) bool { return n < 64 && s>>n&1 != 0 }

// ownFields are the fields of a message that are written anew: those of bytes
// (strings, messages, packed lists), and those of other kinds. A field of another
// kind than its schema's is unknown, and copied like all that is unknown.
type ownFields struct{ bytes, other fieldSet }

func (o ownFields) has(f *fields) bool {
	return f.isBytes() && o.bytes.has(f.number) || !f.isBytes() && o.other.has(f.number)
}

// patch appends an encoded message in which the own fields are written anew, each
// in the place its number gives it. Everything else is copied.
func (r *rope) patch(encoded []byte, from *mapping, own ownFields, write func(protowire.Number)) {
	left := own.bytes | own.other
	flush := func(upTo protowire.Number) {
		for n := protowire.Number(1); left != 0 && n <= upTo; n++ {
			if left.has(n) {
				left &^= 1 << n
				write(n)
			}
		}
	}
	for f := (fields{rest: encoded}); f.next(); {
		flush(min(f.number, 63))
		if !own.has(&f) {
			r.add(f.whole, from)
		}
	}
	flush(63)
}
