package npy_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/tensor/npy"
)

// TestFilesOfNumPy reads what numpy and ml_dtypes wrote (testdata/generate.py).
func TestFilesOfNumPy(t *testing.T) {
	tests := []struct {
		file     string
		expected tensor.Type
		want     string
	}{
		{"float32", 0, "FLOAT[2,3]{0, 0.5, 1, 1.5, 2, 2.5}"},
		{"float64_big_endian", 0, "DOUBLE[2,3]{0, 0.5, 1, 1.5, 2, 2.5}"},
		{"float16", 0, "FLOAT16[2,3]{0, 1, 2, 3, 4, 5}"},
		{"int16_big_endian", 0, "INT16[2,3]{-3, -2, -1, 0, 1, 2}"},
		{"uint64", 0, "UINT64[1]{18446744073709551615}"},
		{"int64_fortran", 0, "INT64[2,3]{0, 1, 2, 3, 4, 5}"},
		{"int32_fortran_3d", 0, "INT32[2,3,4]{0, 1, 2, 3, 4, 5, 6, 7, …}"},
		{"bool", 0, "BOOL[3]{true, false, true}"},
		{"complex64_big_endian", 0, "COMPLEX64[2]{(1+2i), (-0-3i)}"},
		{"complex128", 0, "COMPLEX128[1]{(1+2i)}"},
		{"scalar", 0, "INT32[]{7}"},
		{"empty", 0, "FLOAT[2,0,3]{}"},
		{"text", 0, `STRING[2,2]{"né", "", "日本", "😀 x"}`},
		{"text_big_endian", 0, `STRING[2]{"né", "😀"}`},
		{"bytes", 0, `STRING[3]{"abc", "\xff", ""}`},
		{"version2", 0, "INT8[2,3]{0, 1, 2, 3, 4, 5}"},
		{"version3", 0, "UINT8[2,3]{0, 1, 2, 3, 4, 5}"},
		{"e5m2", 0, "FLOAT8E5M2[2]{1, -2}"},
		{"bfloat16_unnamed", tensor.BFloat16, "BFLOAT16[3]{1, -2, +Inf}"},
		{"int4_unnamed", tensor.Int4, "INT4[4]{-8, -1, 0, 7}"},
		{"uint4_unnamed", tensor.Uint4, "UINT4[3]{0, 8, 15}"},
		{"e4m3fn_unnamed", tensor.Float8E4M3FN, "FLOAT8E4M3FN[3]{1, -448, NaN}"},
		{"version3", tensor.Uint4, "UINT4[2,3]{0, 1, 2, 3, 4, 5}"},
		{"float32", tensor.Float16, "FLOAT[2,3]{0, 0.5, 1, 1.5, 2, 2.5}"},
		{"version3", tensor.Int8, "UINT8[2,3]{0, 1, 2, 3, 4, 5}"},
	}
	for _, test := range tests {
		file, err := os.Open(filepath.Join("testdata", test.file+".npy"))
		if err != nil {
			t.Fatal(err)
		}
		d, err := npy.ReadNPYAs(file, test.expected)
		if err != nil || d.String() != test.want {
			t.Errorf("%s as %v: %v, %v, want %s", test.file, test.expected, d, err, test.want)
		}
		file.Close()
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	tests := []struct {
		file     string
		expected tensor.Type
		says     string
	}{
		{"refused_object", 0, `dtype "|O" has no ONNX type`},
		{"refused_date", 0, `dtype "<M8[D]" has no ONNX type`},
		{"refused_fields", 0, "structured dtype of 2 fields"},
		{"refused_longdouble", 0, `dtype "<f16" has no ONNX type`},
		{"bfloat16_unnamed", 0, "the file does not say their type"},
		{"bfloat16_unnamed", tensor.Float8E5M2, "2 raw bytes are not of type FLOAT8E5M2"},
		{"uint4_unnamed", tensor.Uint2, "element 1: 8 is not a UINT2"},
	}
	for _, test := range tests {
		content, err := os.ReadFile(filepath.Join("testdata", test.file+".npy"))
		if err != nil {
			t.Fatal(err)
		}
		d, err := npy.ReadNPYAs(bytes.NewReader(content), test.expected)
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s as %v: %v, %v, want an error with %q", test.file, test.expected, d, err, test.says)
		}
	}
}

// file makes a version 1 file of a header and data.
func file(header string, data ...byte) []byte {
	start := []byte{0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, byte(len(header)), byte(len(header) >> 8)}
	return append(append(start, header...), data...)
}

func TestHeaders(t *testing.T) {
	tests := []struct {
		name, header, want string
	}{
		{"keys in another order", `{"shape": (2,), "fortran_order": False, "descr": "|i1"}`, "INT8[2]{1, 2}"},
		{"no space", `{'descr':'|i1','fortran_order':True,'shape':(1,2)}`, "INT8[1,2]{1, 2}"},
		{"Python 2", `{'descr': '|i1', 'fortran_order': False, 'shape': (2L,), } `, "INT8[2]{1, 2}"},
		{"named type", `{'descr': [('UINT4', '|u1')], 'fortran_order': False, 'shape': (2,)}`, "UINT4[2]{1, 2}"},
		{"named type of 2 bytes", `{'descr': [('BFLOAT16', '>u2')], 'fortran_order': False, 'shape': (1,)}`, "BFLOAT16[1]{2.387723e-38}"},
	}
	for _, test := range tests {
		d, err := npy.ReadNPY(bytes.NewReader(file(test.header, 1, 2)))
		if err != nil || d.String() != test.want {
			t.Errorf("%s: %v, %v, want %s", test.name, d, err, test.want)
		}
	}
}

func TestHostileHeaders(t *testing.T) {
	plain := func(descr, shape string) string {
		return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + "}"
	}
	tests := []struct{ name, header, says string }{
		{"nothing", "", "expected a dict"},
		{"not closed", "{'descr': '<f4'", "expected a comma or the end of the dict"},
		{"text after it", plain("'<f4'", "(1,)") + " x", "expected the end"},
		{"a key too few", "{'descr': '<f4', 'shape': (1,)}", "not a dict of"},
		{"a key too many", "{'descr': '<f4', 'shape': (1,), 'fortran_order': True, 'x': 1}", "not a dict of"},
		{"a key twice", "{'descr': '<f4', 'descr': '<f4'}", `key "descr" occurs twice`},
		{"order that is no bool", "{'descr': '<f4', 'fortran_order': 0, 'shape': ()}", "not a dict of"},
		{"negative dim", plain("'<f4'", "(-1,)"), "expected a value"},
		{"dim that overflows", plain("'<f4'", "(99999999999999999999,)"), "expected a value"},
		{"dim that is no number", plain("'<f4'", "('a',)"), "dim 0 of the shape"},
		{"shape without a comma", plain("'<f4'", "(3)"), "not a dict of"},
		{"code", plain("'<f4'", "(__import__('os'),)"), "expected a value"},
		{"an escape", plain(`'\x3cf4'`, "()"), "expected a plain string"},
		{"deep nesting", plain(strings.Repeat("[", 10000), "()"), "nested more than"},
		{"more elements than can be", plain("'|i1'", "(1099511627776, 1099511627776)"), "too large"},
		{"more bytes than can be", plain("'<c16'", "(1099511627776,)"), "too large"},
		{"more text than can be", plain("'<U2147483647'", "(1,)"), "characters"},
		{"text without width", plain("'<U0'", "(1099511627776,)"), "has no ONNX type"},
		{"large shape without data", plain("'<f8'", "(1000000000,)"), "unexpected EOF"},
		{"size that is no number", plain("'<f+4'", "()"), "has no ONNX type"},
		{"native byte order", plain("'=f4'", "()"), "has no ONNX type"},
		{"short dtype", plain("'<f'", "()"), "has no ONNX type"},
		{"dtype that is a number", plain("4", "()"), "neither a string nor a list"},
		{"field without name", plain("[('<u2',)]", "()"), "not a name and a dtype"},
		{"field that is a string", plain("['<u2']", "()"), "not a name and a dtype"},
		{"field of numbers", plain("[(1, 2)]", "()"), "not a name and a dtype"},
		{"field of an unknown type", plain("[('x', '<u2')]", "()"), "has no ONNX type"},
		{"field of a type numpy has", plain("[('INT16', '<u2')]", "()"), "has no ONNX type"},
		{"field of the wrong width", plain("[('BFLOAT16', '<u4')]", "()"), "has no ONNX type"},
		{"field over floats", plain("[('BFLOAT16', '<f2')]", "()"), "has no ONNX type"},
		{"character out of range", plain("'<U1'", "()"), "unexpected EOF"},
	}
	for _, test := range tests {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		d, err := npy.ReadNPY(bytes.NewReader(file(test.header)))
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, %v, want an error with %q", test.name, d, err, test.says)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
			t.Errorf("%s: %d bytes allocated", test.name, used)
		}
	}
}

func TestBrokenFiles(t *testing.T) {
	whole := file("{'descr': '<i2', 'fortran_order': False, 'shape': (2,)}", 1, 0, 2, 0)
	for n := range whole {
		if d, err := npy.ReadNPY(bytes.NewReader(whole[:n])); err == nil {
			t.Errorf("the first %d of %d bytes are %v", n, len(whole), d)
		}
	}
	tests := []struct {
		name, says string
		content    []byte
	}{
		{"another format", "does not start with", []byte("PK\x03\x04 and so on")},
		{"version 9", "version 9 is not known", []byte("\x93NUMPY\x09\x00\x00\x00")},
		{"a header of 4 GB", "header of 4294967295 bytes", []byte("\x93NUMPY\x02\x00\xff\xff\xff\xff")},
		{"a surrogate as a character", "0xd800 is not a character",
			file("{'descr': '<U1', 'fortran_order': False, 'shape': ()}", 0, 0xd8, 0, 0)},
		{"a character beyond Unicode", "is not a character",
			file("{'descr': '<U1', 'fortran_order': False, 'shape': ()}", 0, 0, 0, 0xff)},
	}
	for _, test := range tests {
		d, err := npy.ReadNPY(bytes.NewReader(test.content))
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, %v, want an error with %q", test.name, d, err, test.says)
		}
	}
}

// TestReadsStreams reads from a source that gives a byte at a time and does not
// know its size, and leaves what follows the array.
func TestReadsStreams(t *testing.T) {
	var first, second = tensor.Of([]int64{1, 2, 3}, 3), tensor.Scalar("then")
	var content bytes.Buffer
	for _, d := range []*tensor.Dense{first, second} {
		if err := npy.WriteNPY(&content, d); err != nil {
			t.Fatal(err)
		}
	}
	stream := iotest.OneByteReader(io.MultiReader(&content))
	for _, want := range []*tensor.Dense{first, second} {
		if d, err := npy.ReadNPY(stream); err != nil || !tensor.EqualBits(d, want) {
			t.Errorf("read %v, %v, want %v", d, err, want)
		}
	}
	large := tensor.Of(make([]float32, 1<<20), 1<<20)
	tensor.Data[float32](large)[1<<20-1] = 7
	if err := npy.WriteNPY(&content, large); err != nil {
		t.Fatal(err)
	}
	if d, err := npy.ReadNPY(iotest.HalfReader(io.MultiReader(&content))); err != nil || !tensor.EqualBits(d, large) {
		t.Errorf("read %v, %v, want %v", d, err, large)
	}
}
