package tensor_test

import (
	"bytes"
	"math"
	"testing"
	"unsafe"

	"github.com/npuctl/npuctl/onnx/tensor"
	"pgregory.net/rapid"
)

func TestFromRaw(t *testing.T) {
	fromRaw := func(typ tensor.Type, n int, raw ...byte) *tensor.Dense {
		d, err := tensor.FromRaw(typ, []int{n}, raw)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	checkElements(t, fromRaw(tensor.Float32, 1, 0, 0, 0xc0, 0x3f), float32(1.5))
	checkElements(t, fromRaw(tensor.Int16, 2, 1, 2, 0xff, 0xff), int16(0x201), -1)
	checkElements(t, fromRaw(tensor.Complex64, 1, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40), complex64(1+2i))
	checkElements(t, fromRaw(tensor.Int4, 3, 0x8f, 0x07), tensor.I4(-1), -8, 7)
	checkElements(t, fromRaw(tensor.Uint4, 3, 0x8f, 0x07), tensor.U4(15), 8, 7)
	checkElements(t, fromRaw(tensor.Float4E2M1, 2, 0xf1), tensor.E2M1(1), 15)
	checkElements(t, fromRaw(tensor.Int2, 5, 0b01_10_11_00, 0b10), tensor.I2(0), -1, -2, 1, -2)
	checkElements(t, fromRaw(tensor.Uint2, 5, 0b01_10_11_00, 0b10), tensor.U2(0), 3, 2, 1, 2)
	checkElements(t, fromRaw(tensor.Bool, 3, 0, 1, 7), false, true, true)
	checkElements(t, fromRaw(tensor.Bool, 12, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80),
		false, true, false, false, false, false, false, false, false, false, false, true)
}

func TestFromRawRefuses(t *testing.T) {
	tests := []struct {
		name  string
		typ   tensor.Type
		shape []int
		bytes int
	}{
		{"too few bytes", tensor.Float32, []int{2}, 7},
		{"too many bytes", tensor.Float32, []int{2}, 9},
		{"a byte more than packed", tensor.Int4, []int{3}, 3},
		{"bytes for an empty array", tensor.Int64, []int{0}, 8},
		{"strings", tensor.String, []int{1}, 1},
		{"no type", tensor.Undefined, []int{0}, 0},
		{"unknown type", tensor.Type(1000), []int{1}, 1},
		{"negative dim", tensor.Int8, []int{-1}, 1},
		{"huge shape", tensor.Int8, []int{1 << 40, 1 << 40}, 0},
		{"large shape with little data", tensor.Int8, []int{1 << 39}, 3},
	}
	for _, test := range tests {
		if d, err := tensor.FromRaw(test.typ, test.shape, make([]byte, test.bytes)); err == nil {
			t.Errorf("%s: made %v", test.name, d)
		}
	}
}

func TestFromRawAliasesWhereItCan(t *testing.T) {
	tests := []struct {
		typ   tensor.Type
		off   int
		alias bool
	}{
		{tensor.Float32, 0, true},
		{tensor.Float32, 4, true},
		{tensor.Float32, 2, false},
		{tensor.Float64, 8, true},
		{tensor.Float64, 4, false},
		{tensor.Complex64, 4, false},
		{tensor.Complex128, 8, true},
		{tensor.BFloat16, 2, true},
		{tensor.BFloat16, 1, false},
		{tensor.Int8, 1, true},
		{tensor.Float8E5M2, 3, true},
		{tensor.Bool, 1, true},
		{tensor.Int4, 0, false},
	}
	for _, test := range tests {
		size, _ := test.typ.RawSize(4)
		raw := shifted(make([]byte, size), test.off)
		d, err := tensor.FromRaw(test.typ, []int{4}, raw)
		if err != nil {
			t.Fatal(err)
		}
		aliases := size == int64(len(d.Raw())) && unsafe.SliceData(d.Raw()) == unsafe.SliceData(raw)
		if littleEndian() && aliases != test.alias {
			t.Errorf("%v at an offset of %d bytes: aliases %v, want %v", test.typ, test.off, aliases, test.alias)
		}
	}
}

func littleEndian() bool {
	word := uint16(1)
	return *(*byte)(unsafe.Pointer(&word)) == 1
}

// TestRawRoundTrips is the rule of this file: for every type, count and place in
// memory, the bytes come back as they were.
func TestRawRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(rawTypes()).Draw(t, "type")
		shape := shapes().Draw(t, "shape")
		n, err := tensor.Count(shape)
		if err != nil {
			t.Fatal(err)
		}
		raw := shifted(rawBytes(t, typ, n), rapid.IntRange(0, 15).Draw(t, "offset"))
		d, err := tensor.FromRaw(typ, shape, raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Raw(); !bytes.Equal(got, raw) {
			t.Fatalf("%v came back as % x, not % x", d, got, raw)
		}
		if d.Bytes() != int64(len(raw)) || d.Len() != n {
			t.Fatalf("%v says %d bytes, %d elements", d, d.Bytes(), d.Len())
		}
		again, err := tensor.FromRaw(typ, shape, bytes.Clone(raw))
		if err != nil || !tensor.EqualBits(d, again) || d.Hash() != again.Hash() {
			t.Fatalf("%v and %v from the same bytes differ (%v)", d, again, err)
		}
	})
}

func TestRawOfValues(t *testing.T) {
	tests := []struct {
		d    *tensor.Dense
		want []byte
	}{
		{tensor.Scalar(math.Pi), []byte{0x18, 0x2d, 0x44, 0x54, 0xfb, 0x21, 0x09, 0x40}},
		{tensor.Of([]tensor.I4{-1, 7, -8}, 3), []byte{0x7f, 0x08}},
		{tensor.Of([]tensor.I2{-1, 1, -2, 0, 1}, 5), []byte{0b00_10_01_11, 1}},
		{tensor.Of([]tensor.U4{}, 0), []byte{}},
		{tensor.Of([]bool{true, false}, 2), []byte{1, 0}},
		{tensor.Scalar("text"), nil},
	}
	for _, test := range tests {
		got := test.d.Raw()
		if !bytes.Equal(got, test.want) || (got == nil) != (test.want == nil) {
			t.Errorf("%v is raw % x, want % x", test.d, got, test.want)
		}
	}
}

// FuzzFromRaw feeds a type, two dims and bytes that need not fit each other.
func FuzzFromRaw(f *testing.F) {
	f.Add(int32(1), 1, 2, []byte{0, 0, 128, 63, 0, 0, 0, 64})
	f.Add(int32(9), 3, 1, []byte{0, 1, 255})
	f.Add(int32(22), 5, 1, []byte{0x12, 0x34, 0xf5})
	f.Add(int32(25), 1<<62, 4, []byte{})
	f.Add(int32(8), 0, 0, []byte{})
	f.Fuzz(func(t *testing.T, number int32, rows, columns int, raw []byte) {
		d, err := tensor.FromRaw(tensor.Type(number), []int{rows, columns}, raw)
		if err != nil {
			return
		}
		if d.Len() != rows*columns || d.Bytes() != int64(len(raw)) {
			t.Fatalf("%d x %d of %v from %d bytes: %d elements", rows, columns, d.Type(), len(raw), d.Len())
		}
		again, err := tensor.FromRaw(d.Type(), d.Shape(), d.Raw())
		if err != nil || !tensor.EqualBits(d, again) {
			t.Fatalf("%v does not survive its raw form: %v, %v", d, again, err)
		}
		if _, ok := d.Float64s(); !ok && !d.Type().IsComplex() {
			t.Fatalf("%v has no numbers", d)
		}
	})
}
