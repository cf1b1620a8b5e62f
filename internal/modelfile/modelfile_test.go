package modelfile

import (
	"os"
	"path/filepath"
	"strings"
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

// What every runtime refuses is refused, in one line that names the file; so is what
// is newer than this build.
func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"too many inputs", `(float[2] x) => (y) { y = Neg (x, x, x) }`, `Neg node that makes "y": it has 3 inputs; Neg takes 1`},
		{"several faults", `(float[2] x) => (z) { y = Neg (x, x)  z = Cast (y) }`, `Neg node that makes "y": it has 2 inputs; Neg takes 1 (the first of 2 faults)`},
		{"an attribute that means nothing", `(float[2] x) => (y) { y = Transpose <perm = [5]> (x) }`, `attribute "perm" is [5], no order of 1 axis`},
		{"no outputs", `(float[2] x) => () { y = Neg (x) }`, "the graph has no outputs"},
		{"no opset", `<ir_version: 8, opset_import: ["": 0]> (float[2] x) => (y) { y = Neg (x) }`, "opset 0: there is no such opset; the export should import one from 1 to "},
		{"a newer opset", `<ir_version: 8, opset_import: ["ai.onnx": 99]> (float[2] x) => (y) { y = Neg (x) }`, "opset 99 is newer than this npuctl knows ("},
		{"a function's opset", `<ir_version: 8, opset_import: ["": 17, "my": 1]> (float[2] x) => (y) { y = my.F (x) } <domain: "my", opset_import: ["": 99]> F (a) => (b) { b = Neg (a) }`, `function "F": opset 99 is newer`},
		{"no version of the format", `<ir_version: 0, opset_import: ["": 17]> (float[2] x) => (y) { y = Neg (x) }`, "ir_version 0: there is no such version"},
		{"a newer format", `<ir_version: 99, opset_import: ["": 17]> (float[2] x) => (y) { y = Neg (x) }`, "ir_version 99 is newer than this npuctl knows (14); update npuctl"},
		{"a function that calls itself", `<ir_version: 8, opset_import: ["": 17, "my": 1]> (float[2] x) => (y) { y = my.F (x) } <domain: "my", opset_import: ["my": 1]> F (a) => (b) { b = my.F (a) }`, `function "F" calls itself`},
		{"a cycle in a function", `<ir_version: 8, opset_import: ["": 17, "my": 1]> (float[2] x) => (y) { y = my.F (x) } <domain: "my", opset_import: ["": 17]> F (a) => (b) { c = Add (a, b)  b = Neg (c) }`, `function "F": `},
		{"a Loop that lacks what it carries", `<ir_version: 8, opset_import: ["": 17]> (float[2] x, int64 n) => (y) { y = Loop (n, "", x) <body = a (int64 i, bool c, float[2] z) => (d) { d = Identity (c) }> }`, `Loop node that makes "y": its body has 1 output; it needs 2`},
		{"a Scan of more sequences than inputs", `<ir_version: 8, opset_import: ["": 17]> (float[2] x) => (y) { y = Scan <num_scan_inputs = 2> (x) <body = a (float z) => (d) { d = Identity (z) }> }`, `Scan node that makes "y": num_scan_inputs is 2, and it has 1 input`},
		{"a Scan whose body takes less", `<ir_version: 8, opset_import: ["": 17]> (float[2] x, float s) => (t, y) { t, y = Scan <num_scan_inputs = 1> (s, x) <body = a (float z) => (d, e) { d = Identity (z)  e = Neg (z) }> }`, `it has 2 inputs, and its body 1`},
		{"a Scan whose body gives less", `<ir_version: 8, opset_import: ["": 17]> (float[2] x, float s) => (t, y) { t, y = Scan <num_scan_inputs = 1> (s, x) <body = a (float z, float r) => (d) { d = Add (z, r) }> }`, `its body has 1 output; it needs 2`},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := save(t, c.source)
			m, err := Open(path)
			if err == nil {
				m.Close()
			}
			if fault.FamilyOf(err) != fault.Input || err == nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

// Files with flaws that runtimes live with are opened.
func TestOpenTakes(t *testing.T) {
	for name, source := range map[string]string{
		"a stale type":                      `<ir_version: 8, opset_import: ["": 17]> (float[2] x) => (int64[7] y) { y = Neg (x) }`,
		"an operator of a later opset":      `<ir_version: 8, opset_import: ["": 11]> (float[2,2] x, float[2] s) => (y) { y = LayerNormalization (x, s) }`,
		"an operator nobody knows":          `<ir_version: 8, opset_import: ["": 17, "com.example": 3]> (float[2] x) => (y) { a = Mush (x, x, x)  y = com.example.Thing (a) }`,
		"an attribute nobody knows":         `<ir_version: 8, opset_import: ["": 17]> (float[2] x) => (y) { y = Neg <speed = 3> (x) }`,
		"a domain newer than known":         `<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 99]> (float[2] x) => (y) { y = Neg (x) }`,
		"a call without an attribute":       `<ir_version: 8, opset_import: ["": 17, "my": 1]> (float[2] x) => (y) { y = my.F (x) } <domain: "my", opset_import: ["": 17]> F <k> (a) => (b) { b = Neg (a) }`,
		"the newest opset and format":       `<ir_version: 14, opset_import: ["": 28]> (float[2] x) => (y) { y = Neg (x) }`,
		"operators of versions long ago":    `<ir_version: 3, opset_import: ["": 1]> (float[2] x) => (y) { y = Dropout <is_test = 1, consumed_inputs = [0]> (x) }`,
		"nodes in no order":                 `<ir_version: 8, opset_import: ["": 17, "my": 1]> (float[2] x) => (y) { y = my.F (a)  a = Neg (x) } <domain: "my", opset_import: ["": 17]> F (a) => (b) { b = Neg (c)  c = Abs (a) }`,
		"a Loop that collects":              `<ir_version: 8, opset_import: ["": 17]> (float[2] x, int64 n) => (y, s) { y, s = Loop (n, "", x) <body = a (int64 i, bool c, float[2] z) => (d, w, v) { d = Identity (c)  w = Neg (z)  v = Abs (z) }> }`,
		"a Loop whose results nobody names": `<ir_version: 8, opset_import: ["": 17]> (float[2] x, int64 n) => (y) { y = Loop (n, "", x) <body = a (int64 i, bool c, float[2] z) => (d, w, v) { d = Identity (c)  w = Neg (z)  v = Abs (z) }> }`,
		"a Scan":                            `<ir_version: 8, opset_import: ["": 17]> (float[2] x, float s) => (t, y) { t, y = Scan <num_scan_inputs = 1> (s, x) <body = a (float z, float r) => (d, e) { d = Add (z, r)  e = Neg (z) }> }`,
		"a sparse tensor":                   `<ir_version: 8, opset_import: ["": 17]> (float[3] x) => (y) <sparse_tensor(float[3]) w = {float[1] {1}, int64[1] {2}}> { y = Mul (x, w) }`,
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Open(save(t, source))
			if err != nil {
				t.Fatal(err)
			}
			m.Close()
		})
	}
}

func TestOpenOfADanglingLink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.onnx")
	if err := os.Symlink("gone.onnx", path); err != nil {
		t.Skip("no links here: ", err)
	}
	_, err := Open(path)
	if want := path + ": it is a link to gone.onnx, where there is no file"; fault.FamilyOf(err) != fault.Input || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func save(t *testing.T, source string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "m.onnx")
	if err := text.MustParse(t, source).Save(path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}
