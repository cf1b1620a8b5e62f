package compiledmodel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/npuctl/npuctl/internal/cannemu/omwriter"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/om"
	"github.com/npuctl/npuctl/onnx"
)

// save writes an .om of the given inputs, with a record beside it when there is one.
func save(t *testing.T, dynamic bool, record string, signature omwriter.Signature) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "net.om")
	file := omwriter.File{Name: "net", IsDynamic: dynamic, Models: []omwriter.Model{omwriter.NewModel(omwriter.Parts{Signature: &signature,
		ModelDef: &omwriter.ModelDef{Name: "net", Attributes: []omwriter.Attribute{{Name: "soc_version", Value: omwriter.Text("Ascend310P3")}}}})}}
	if err := file.Save(path); err != nil {
		t.Fatal(err)
	}
	if record != "" {
		if err := os.WriteFile(path+".json", []byte(record), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func port(name string, dims ...int64) omwriter.Port {
	return omwriter.Port{Name: name, Format: 2, Dims: dims}
}

// Names of open dims come from the build record where there is one, else from what the
// gears set, else from their place.
func TestNamesOfDims(t *testing.T) {
	batch := omwriter.Signature{Inputs: []omwriter.Port{port("x", -1, 3)}, Batches: []uint64{1, 4}}
	image := omwriter.Signature{Inputs: []omwriter.Port{port("x", 1, 3, -1, -1)}, Images: [][]uint64{{224, 320}}}
	dims := omwriter.Signature{Inputs: []omwriter.Port{port("x", 2, -1)}, Dims: [][]uint64{{8}}, ShapeOrder: []string{"x"}}
	for _, test := range []struct {
		name, record string
		signature    omwriter.Signature
		dynamic      bool
		want         string
	}{
		{"a batch", "", batch, false, "FLOAT[batch,3]"},
		{"a batch with a name", `{"gears": {"axes": [{"name": "n", "places": [{"input": "x", "dim": 0}]}]}}`, batch, false, "FLOAT[n,3]"},
		{"a record without gears", `{}`, batch, false, "FLOAT[batch,3]"},
		{"a record that is damaged", `{"gears": `, batch, false, "FLOAT[batch,3]"},
		{"an image", "", image, false, "FLOAT[1,3,height,width]"},
		{"dims", "", dims, false, "FLOAT[2,x_1]"},
		{"an open shape", "", omwriter.Signature{Inputs: []omwriter.Port{port("x", -1)}}, true, "FLOAT[x_0]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, err := Open(save(t, test.dynamic, test.record, test.signature))
			if err != nil {
				t.Fatal(err)
			}
			m, err := f.Model()
			if err != nil {
				t.Fatal(err)
			}
			if got := m.Graph.Inputs()[0].Type.String(); got != test.want || f.Open != test.dynamic || f.Chip != "Ascend310P3" || f.Emulated {
				t.Errorf("input %s, want %s; %+v", got, test.want, f)
			}
		})
	}
}

// What is no .om that could be run is told with its name.
func TestOpenRefuses(t *testing.T) {
	folder := t.TempDir()
	text := filepath.Join(folder, "text.om")
	if err := os.WriteFile(text, []byte("not a model"), 0o644); err != nil {
		t.Fatal(err)
	}
	nano := filepath.Join(folder, "net.exeom")
	if err := os.Rename(save(t, false, "", omwriter.Signature{}), nano); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{text: "a text of 11 bytes", filepath.Join(folder, "gone.om"): "no such file", nano: "cannot be run: it is a nano model"} {
		if _, err := Open(path); fault.FamilyOf(err) != fault.Input || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
}

// Sizes that no device could hold are the file's fault, and nobody's memory is short.
func TestOpenRefusesSizes(t *testing.T) {
	const huge = 1 << 50
	for name, test := range map[string]struct {
		signature omwriter.Signature
		memory    int64
		want      string
	}{
		"an input":              {omwriter.Signature{Inputs: []omwriter.Port{port("x", 1<<20, 1<<20)}}, 0, `input "x" would be [1048576 1048576]`},
		"beyond any number":     {omwriter.Signature{Inputs: []omwriter.Port{port("x", 1<<40, 1<<40, 1<<40)}}, 0, `input "x" would be `},
		"an output":             {omwriter.Signature{Outputs: []omwriter.Port{port("y", huge)}}, 0, `output "y" would be `},
		"the bytes of an input": {omwriter.Signature{Inputs: []omwriter.Port{{Name: "x", Bytes: huge, Dims: []int64{2}}}}, 0, `input "x" would take `},
		"a gear":                {omwriter.Signature{Inputs: []omwriter.Port{port("x", -1, 3)}, Batches: []uint64{1, huge}}, 0, `input "x" would be `},
		"a gear below nothing":  {omwriter.Signature{Inputs: []omwriter.Port{port("x", -1, 3)}, Batches: []uint64{1, 1 << 63}}, 0, `input "x" has a dim of size -9223372036854775808`},
		"a dim below nothing":   {omwriter.Signature{Inputs: []omwriter.Port{port("x", -3)}}, 0, `input "x" has a dim of size -3`},
		"memory to work in":     {omwriter.Signature{}, huge, "the memory to work in would take 1125899906842624 bytes"},
		"memory below nothing":  {omwriter.Signature{}, -1, "the memory to work in would take -1 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "net.om")
			file := omwriter.File{Name: "net", Models: []omwriter.Model{omwriter.NewModel(omwriter.Parts{Signature: &test.signature,
				ModelDef: &omwriter.ModelDef{Name: "net", Attributes: []omwriter.Attribute{{Name: "memory_size", Value: omwriter.Int(test.memory)}}}})}}
			if err := file.Save(path); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(path); fault.FamilyOf(err) != fault.Input || !strings.HasPrefix(err.Error(), path+" is damaged, or made for sizes that no device has: "+test.want) {
				t.Errorf("%v error %v", fault.FamilyOf(err), err)
			}
		})
	}
}

func TestGearsFor(t *testing.T) {
	f := fileOf(&om.Gears{Kind: "dims", Rows: [][]int64{{1, 128}, {1, 256}, {2, 256}}, Order: []string{"x"}}, input("x", -1, -1), input("table", 5))
	for _, test := range []struct {
		name string
		dims []onnx.Dim
		want []int
	}{
		{"nothing is fixed: the last first", []onnx.Dim{{Param: "a"}, {Param: "b"}}, []int{2, 1, 0}},
		{"one dim", []onnx.Dim{onnx.KnownDim(1), {Param: "b"}}, []int{1, 0}},
		{"both", []onnx.Dim{onnx.KnownDim(2), onnx.KnownDim(256)}, []int{2}},
		{"between gears", []onnx.Dim{onnx.KnownDim(2), onnx.KnownDim(128)}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, err := f.Model()
			if err != nil {
				t.Fatal(err)
			}
			x := m.Graph.Inputs()[0]
			x.Type = x.Type.WithShape(&onnx.Shape{Dims: test.dims})
			got, err := f.GearsFor(m)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if test.want == nil && (fault.FamilyOf(err) != fault.Usage || !strings.Contains(err.Error(), "has no gear for x FLOAT[2,128]: it has gears dims 1,128; 1,256; 2,256")) {
				t.Errorf("error %v", err)
			}
		})
	}
}
