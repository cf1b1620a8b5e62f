package npy_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/tensor/npy"
)

// seeds adds the files of testdata that a pattern matches.
func seeds(f *testing.F, pattern string, add func(content []byte)) {
	f.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(paths) == 0 {
		f.Fatalf("no seeds in testdata/%s: %v", pattern, err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		add(content)
	}
}

func FuzzReadNPY(f *testing.F) {
	seeds(f, "*.npy", func(content []byte) { f.Add(content, int32(tensor.BFloat16)) })
	f.Add(file("{'descr': [('INT2', '|i1')], 'fortran_order': True, 'shape': (1, 2)}", 1, 0xfe), int32(0))
	f.Fuzz(func(t *testing.T, content []byte, expected int32) {
		d, err := npy.ReadNPYAs(bytes.NewReader(content), tensor.Type(expected))
		if err != nil {
			return
		}
		checkSurvives(t, d)
	})
}

func FuzzReadNPZ(f *testing.F) {
	seeds(f, "*.npz", func(content []byte) { f.Add(content) })
	f.Fuzz(func(t *testing.T, content []byte) {
		arrays, err := npy.ReadNPZ(bytes.NewReader(content), int64(len(content)), nil)
		if err != nil {
			return
		}
		for _, d := range arrays {
			checkSurvives(t, d)
		}
	})
}

// checkSurvives writes d and reads it back. Bytes that are no text are all that
// can be read but not written.
func checkSurvives(t *testing.T, d *tensor.Dense) {
	t.Helper()
	var written bytes.Buffer
	if err := npy.WriteNPY(&written, d); err != nil {
		if d.Type() == tensor.String {
			return
		}
		t.Fatalf("%v was read but cannot be written: %v", d, err)
	}
	again, err := npy.ReadNPY(&written)
	if err != nil || !tensor.EqualBits(d, again) {
		t.Fatalf("%v came back as %v, %v", d, again, err)
	}
}
