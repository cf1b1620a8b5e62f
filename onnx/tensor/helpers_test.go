package tensor_test

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/npuctl/npuctl/onnx/tensor"
	"pgregory.net/rapid"
)

// rawTypes are the types that have a raw form.
func rawTypes() []tensor.Type {
	return slices.DeleteFunc(tensor.Types(), func(t tensor.Type) bool { return t == tensor.String })
}

// shapes draws small shapes, among them empty ones and rank 0.
func shapes() *rapid.Generator[[]int] { return rapid.SliceOfN(rapid.IntRange(0, 5), 0, 4) }

// rawBytes draws raw data of n elements, with zeros where the last byte is
// filled up.
func rawBytes(t *rapid.T, typ tensor.Type, n int) []byte {
	size, _ := typ.RawSize(int64(n))
	raw := rapid.SliceOfN(rapid.Byte(), int(size), int(size)).Draw(t, "raw")
	if used := n * typ.Bits() % 8; used != 0 {
		raw[len(raw)-1] &= 1<<used - 1
	}
	if typ == tensor.Bool {
		for i := range raw {
			raw[i] &= 1
		}
	}
	return raw
}

// dense draws an array of any type and shape.
func dense() *rapid.Generator[*tensor.Dense] {
	return rapid.Custom(func(t *rapid.T) *tensor.Dense {
		typ := rapid.SampledFrom(tensor.Types()).Draw(t, "type")
		shape := shapes().Draw(t, "shape")
		n, err := tensor.Count(shape)
		if err != nil {
			t.Fatal(err)
		}
		if typ == tensor.String {
			return tensor.Of(rapid.SliceOfN(rapid.String(), n, n).Draw(t, "strings"), shape...)
		}
		d, err := tensor.FromRaw(typ, shape, rawBytes(t, typ, n))
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}

// shifted returns a copy of raw that starts off bytes after an address divisible
// by 16.
func shifted(raw []byte, off int) []byte {
	memory := make([]byte, len(raw)+32)
	start := off + int(-uintptr(unsafe.Pointer(&memory[0]))&15)
	return memory[start : start+copy(memory[start:], raw)]
}

func checkElements[T tensor.Element](t *testing.T, d *tensor.Dense, want ...T) {
	t.Helper()
	if got := tensor.Data[T](d); !slices.Equal(got, want) {
		t.Errorf("%v has elements %v, want %v", d, got, want)
	}
}
