package onnx_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/npuctl/npuctl/internal/onnxpb"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/text"
)

// FuzzOpen reads whatever bytes there are, touches every tensor, and writes the
// model again. What was read must then say the same as the generated bindings find
// in the bytes, and writing twice must give the same bytes.
func FuzzOpen(f *testing.F) {
	f.Add(marshal(f, everything()))
	f.Add([]byte("PK\x03\x04"))
	// What fuzzing has found before: a name that is a number, an operator's name of two
	// lines, a type attribute without a type.
	f.Add([]byte("\b0:\x02\x100"))
	f.Add([]byte(":\x0a\x0a\x08\x12\x010\x22\x030\n0"))
	f.Add([]byte("\b\n:\x1b\n\x19\x12\x01c\"\x02Op*\x10\n\x05value\xa0\x01\rr\x02\x10\x00"))
	for _, source := range []string{
		`(bool c, float[2] x) => (y) <float[2] w = {1, 2}> { y = If (c) <then_branch = t () => (p) { p = Add (x, w) }, else_branch = e () => (q) { q = Neg (x) }> }`,
		`<ir_version: 3, opset_import: ["": 7]> (float[2] x = {1, 2}) => (y) { y = Relu (x) }`,
		`(int64 n, bool c) => (s) { s = Loop (n, c) <body = b (int64 i, bool go) => (go, i) { }> } <domain: "d", opset_import: ["": 18]> F <a, b = 1> (x) => (y) { y = G <to: int = @a> (x) }`,
		`(x) => (s) <sparse_tensor(float[3]) s = {float[1] {1}, int64[1] {2}}> { c = Constant <value = int4[3] {1, 2, 3}> () }`,
	} {
		f.Add(encode(f, text.MustParse(f, source)))
	}
	folder := f.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "w.bin"), make([]byte, 64), 0o644); err != nil {
		f.Fatal(err)
	}
	externalModel(f, filepath.Join(folder, "m.onnx"), "location", "w.bin", "offset", "8")
	b, err := os.ReadFile(filepath.Join(folder, "m.onnx"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := onnx.Parse(b, folder)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("an error of more than one line: %v", err)
			}
			return
		}
		touch(m)
		written, err := m.Encode()
		if err != nil {
			return // an external tensor, or one whose elements do not fit
		}
		again, err := onnx.Parse(written, folder)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if twice, err := again.Encode(); err != nil || !bytes.Equal(twice, written) {
			t.Fatalf("written twice, the model changes: %v", err)
		}
		if m.IRVersion >= 4 && !hasExternal(m) {
			sameFields(t, b, written)
		}
		sorted := m.Graph.Sort() == nil
		m.MakeNamesUnique()
		m.IsolateBranchOutputs()
		if err := m.Check(); err == nil && sorted {
			m.Validate()
			_ = text.String(m)
		}
		m.Graph.RemoveDead(nil)
	})
}

// touch asks for the elements of every tensor.
func touch(m *onnx.Model) {
	for g := range m.Graphs() {
		for v := range g.Values() {
			if c := v.Constant(); c != nil {
				_, _ = c.Dense()
				_, _ = c.Raw()
			}
		}
		for _, n := range g.Nodes() {
			for _, a := range n.Attributes() {
				for _, t := range a.Tensors() {
					_, _ = t.Dense()
				}
			}
		}
	}
}

func hasExternal(m *onnx.Model) bool {
	for n := range m.Nodes() {
		for _, a := range n.Attributes() {
			for _, t := range a.Tensors() {
				if t.IsExternal() {
					return true
				}
			}
		}
	}
	for g := range m.Graphs() {
		for _, v := range g.Initializers() {
			if v.Initializer().IsExternal() {
				return true
			}
		}
	}
	return false
}

// sameFields holds two messages against each other as the generated bindings read
// them, apart from fields unknown to them.
func sameFields(t *testing.T, want, got []byte) {
	read := func(b []byte) *onnxpb.ModelProto {
		m := &onnxpb.ModelProto{}
		if err := (proto.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: 1000}).Unmarshal(b, m); err != nil {
			return nil
		}
		return m
	}
	a, b := read(want), read(got)
	if a == nil {
		return // a part that the model does not look into is damaged
	}
	if b == nil || !proto.Equal(a, b) {
		t.Fatalf("read:    %v\nwritten: %v", a, b)
	}
}
