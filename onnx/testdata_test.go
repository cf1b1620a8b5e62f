package onnx_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/text"
)

// conformanceModels lists the models of the ONNX conformance tests, which
// .ci/fetch-testdata brings here. Without them the test is skipped.
func conformanceModels(t testing.TB) (paths []string) {
	t.Helper()
	root := os.Getenv("NPUCTL_TESTDATA")
	if home, err := os.UserHomeDir(); root == "" && err == nil {
		root = filepath.Join(home, ".cache", "npuctl", "testdata")
	}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".onnx") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) == 0 {
		t.Skipf("SKIPPED: no conformance tests in %q (%v); .ci/fetch-testdata brings them, NPUCTL_TESTDATA names another place", root, err)
	}
	return paths
}

// Every model of the conformance tests comes back byte for byte, stands up to the
// checker and to what its operators ask, and, unless it is large, prints as a text
// that reads back as the same.
func TestConformanceModels(t *testing.T) {
	paths := conformanceModels(t)
	if testing.Short() {
		paths = paths[:len(paths)/20]
	}
	for _, path := range paths {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			m := open(t, path)
			if !bytes.Equal(encode(t, m), want) {
				t.Error("the model came back as other bytes")
			}
			if err := m.Graph.Sort(); err != nil {
				t.Error(err)
			}
			if err := m.Check(); err != nil {
				t.Errorf("Check: %v", err)
			}
			for _, f := range m.Validate() {
				if f.Severity == onnx.Error {
					t.Error(f)
				}
			}
			if len(want) > 100<<10 {
				return
			}
			once := text.String(m)
			if twice := text.String(text.MustParse(t, once)); twice != once {
				t.Errorf("printed:\n%s\nand after parsing that:\n%s", once, twice)
			}
		})
	}
	t.Logf("%d models", len(paths))
}
