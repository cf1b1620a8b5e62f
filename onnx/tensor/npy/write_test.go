package npy_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/tensor/npy"
	"pgregory.net/rapid"
)

func ExampleWriteNPY() {
	var file bytes.Buffer
	if err := npy.WriteNPY(&file, tensor.Of([]tensor.BF16{0x3f80, 0x4000}, 2)); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%d bytes: %s\n", file.Len(), bytes.TrimSpace(file.Bytes()[10:128]))
	fmt.Println(npy.ReadNPY(&file))
	// Output:
	// 132 bytes: {'descr': [('BFLOAT16', '<u2')], 'fortran_order': False, 'shape': (2,), }
	// BFLOAT16[2]{1, 2} <nil>
}

// dense draws an array of any type and shape that the format can hold.
func dense() *rapid.Generator[*tensor.Dense] {
	return rapid.Custom(func(t *rapid.T) *tensor.Dense {
		typ := rapid.SampledFrom(tensor.Types()).Draw(t, "type")
		shape := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 4).Draw(t, "shape")
		n, err := tensor.Count(shape)
		if err != nil {
			t.Fatal(err)
		}
		if typ == tensor.String {
			text := rapid.Map(rapid.String(), func(s string) string { return strings.TrimRight(s, "\x00") })
			return tensor.Of(rapid.SliceOfN(text, n, n).Draw(t, "strings"), shape...)
		}
		size, _ := typ.RawSize(int64(n))
		d, err := tensor.FromRaw(typ, shape, rapid.SliceOfN(rapid.Byte(), int(size), int(size)).Draw(t, "raw"))
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}

func TestArraysRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := dense().Draw(t, "array")
		var first, second bytes.Buffer
		if err := errors.Join(npy.WriteNPY(&first, d), npy.WriteNPY(&second, d)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("%v was written in two ways", d)
		}
		again, err := npy.ReadNPY(&first)
		if err != nil || !tensor.EqualBits(d, again) {
			t.Fatalf("%v came back as %v, %v", d, again, err)
		}
	})
}

func TestDataIsAligned(t *testing.T) {
	for rank := range 40 {
		var file bytes.Buffer
		shape := make([]int, rank)
		for axis := range shape {
			shape[axis] = 1
		}
		if err := npy.WriteNPY(&file, tensor.Of([]uint8{0xee}, shape...)); err != nil {
			t.Fatal(err)
		}
		if at := bytes.IndexByte(file.Bytes(), 0xee); at%64 != 0 || at != file.Len()-1 {
			t.Errorf("rank %d: data at byte %d of %d", rank, at, file.Len())
		}
	}
}

func TestArraysThatCannotBeWritten(t *testing.T) {
	tests := []struct {
		name, says string
		d          *tensor.Dense
	}{
		{"not UTF-8", "element 1 is not UTF-8", tensor.Of([]string{"a", "\xff"}, 2)},
		{"zero at the end", "ends in a zero character", tensor.Scalar("a\x00")},
		{"a shape of 70 kB", "does not fit a header", tensor.Of([]int8{}, make([]int, 30000)...)},
	}
	for _, test := range tests {
		var file bytes.Buffer
		err := npy.WriteNPY(&file, test.d)
		if err == nil || !strings.Contains(err.Error(), test.says) || file.Len() > 0 {
			t.Errorf("%s: error %v and %d bytes, want %q", test.name, err, file.Len(), test.says)
		}
	}
}

// failing is a disk that is full after so many bytes.
type failing struct{ left int }

func (f *failing) Write(b []byte) (int, error) {
	if len(b) > f.left {
		return 0, errors.New("disk full")
	}
	f.left -= len(b)
	return len(b), nil
}

func TestWriteErrorsAreReported(t *testing.T) {
	d := tensor.Of([]int64{1, 2, 3}, 3)
	for _, left := range []int{0, 128} {
		if err := npy.WriteNPY(&failing{left}, d); err == nil {
			t.Errorf("%d bytes of room were enough", left)
		}
	}
	if err := npy.WriteNPZ(&failing{100}, map[string]*tensor.Dense{"x": d}); err == nil {
		t.Error("100 bytes of room were enough for an archive")
	}
}

func TestArchivesOfNumPy(t *testing.T) {
	tests := []struct {
		file string
		want map[string]string
	}{
		{"stored", map[string]string{"x": "INT64[2,3]{0, 1, 2, 3, 4, 5}", "deep/name": "DOUBLE[]{1.5}"}},
		{"deflated", map[string]string{"zeros": "FLOAT[1000]{0, 0, 0, 0, 0, 0, 0, 0, …}", "one": "BOOL[1]{true}"}},
	}
	for _, test := range tests {
		content, err := os.ReadFile(filepath.Join("testdata", test.file+".npz"))
		if err != nil {
			t.Fatal(err)
		}
		arrays, err := npy.ReadNPZ(bytes.NewReader(content), int64(len(content)), nil)
		if err != nil || len(arrays) != len(test.want) {
			t.Errorf("%s: %v, %v", test.file, arrays, err)
		}
		for name, want := range test.want {
			if d := arrays[name]; d == nil || d.String() != want {
				t.Errorf("%s: %s is %v, want %s", test.file, name, d, want)
			}
		}
	}
}

func TestArchivesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		arrays := rapid.MapOfN(rapid.String(), dense(), 0, 4).Draw(t, "arrays")
		var first, second bytes.Buffer
		if err := errors.Join(npy.WriteNPZ(&first, arrays), npy.WriteNPZ(&second, arrays)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatal("the same arrays made two archives")
		}
		again, err := npy.ReadNPZ(bytes.NewReader(first.Bytes()), int64(first.Len()), nil)
		if err != nil || len(again) != len(arrays) {
			t.Fatalf("%d arrays came back as %d, %v", len(arrays), len(again), err)
		}
		for name, d := range arrays {
			if again[name] == nil || !tensor.EqualBits(d, again[name]) {
				t.Fatalf("%q: %v came back as %v", name, d, again[name])
			}
		}
	})
}

func TestArchiveWithExpectedTypes(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("testdata", "bfloat16_unnamed.npy"))
	if err != nil {
		t.Fatal(err)
	}
	archive := zipOf(t, map[string][]byte{"x.npy": content})
	if _, err := npy.ReadNPZ(bytes.NewReader(archive), int64(len(archive)), nil); err == nil {
		t.Error("unnamed bytes were read without a type")
	}
	arrays, err := npy.ReadNPZ(bytes.NewReader(archive), int64(len(archive)), func(name string) tensor.Type {
		return map[string]tensor.Type{"x": tensor.BFloat16}[name]
	})
	if err != nil || arrays["x"].String() != "BFLOAT16[3]{1, -2, +Inf}" {
		t.Errorf("read %v, %v", arrays, err)
	}
}

func zipOf(t *testing.T, entries map[string][]byte) []byte {
	t.Helper()
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	for name, content := range entries {
		entry, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := entry.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

func TestArchivesThatAreRefused(t *testing.T) {
	array := file("{'descr': '|i1', 'fortran_order': False, 'shape': (2,)}", 1, 2)
	var stored bytes.Buffer
	if err := npy.WriteNPZ(&stored, map[string]*tensor.Dense{"x": tensor.Scalar(int32(0x55aa55aa))}); err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Replace(stored.Bytes(), []byte{0xaa, 0x55, 0xaa, 0x55}, []byte{0xab, 0x55, 0xaa, 0x55}, 1)
	tests := []struct {
		name, says string
		content    []byte
	}{
		{"no archive", "not a valid zip file", []byte("hello")},
		{"an entry of another kind", `"a.txt" is not an array`, zipOf(t, map[string][]byte{"a.txt": nil})},
		{"a broken array", `array "x": not a .npy file`, zipOf(t, map[string][]byte{"x.npy": []byte("text")})},
		{"data after the array", "more data than", zipOf(t, map[string][]byte{"x.npy": append(bytes.Clone(array), 3)})},
		{"a flipped bit", "checksum error", damaged},
		{"a bomb", "claim to hold more than", bomb(t)},
		{"a name that occurs twice", "occurs twice", twice(t, array)},
	}
	for _, test := range tests {
		arrays, err := npy.ReadNPZ(bytes.NewReader(test.content), int64(len(test.content)), nil)
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, %v, want an error with %q", test.name, arrays, err, test.says)
		}
	}
}

// bomb claims an entry far larger than the file could hold.
func bomb(t *testing.T) []byte {
	t.Helper()
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	_, err := w.CreateRaw(&zip.FileHeader{
		Name: "x.npy", Method: zip.Deflate, CompressedSize64: 2, UncompressedSize64: 1 << 33,
	})
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

func twice(t *testing.T, array []byte) []byte {
	t.Helper()
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	for range 2 {
		entry, err := w.Create("x.npy")
		if err == nil {
			_, err = entry.Write(array)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}
