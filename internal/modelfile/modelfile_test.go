package modelfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/text"
)

func TestOpen(t *testing.T) {
	folder := t.TempDir()
	good, bad, gone := filepath.Join(folder, "good.onnx"), filepath.Join(folder, "bad.onnx"), filepath.Join(folder, "gone.onnx")
	if err := text.MustParse(t, `(float[2] x) => (y) { y = Relu (x) }`).Save(good, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bad, []byte("no model"), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := Open(good)
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
	for path, want := range map[string]string{
		bad:    bad + ": not an ONNX model: it is a text file",
		gone:   gone + ": no such file or directory",
		folder: folder + ": it is a directory",
	} {
		if _, err := Open(path); fault.FamilyOf(err) != fault.Input || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
