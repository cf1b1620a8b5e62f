package omwriter_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/npuctl/npuctl/internal/cannemu/omwriter"
	"github.com/npuctl/npuctl/om"
)

// write gives the bytes of a file, and the same as the reader of .om files sees it.
func write(t *testing.T, f *omwriter.File) ([]byte, *om.File) {
	t.Helper()
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	if int64(b.Len()) != f.Size() {
		t.Errorf("%d bytes, announced %d", b.Len(), f.Size())
	}
	read, err := om.Read(bytes.NewReader(b.Bytes()), int64(b.Len()), "written.om")
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), read
}

// full is a model with everything that this package can write.
func full() omwriter.Parts {
	desc := omwriter.TensorDesc{DataType: 1, Dims: []int64{2, 3}, Layout: "ND", Size: 24, Attributes: []omwriter.Attribute{
		{Name: "origin_shape", Value: omwriter.Ints{2, 3}}, {Name: "note", Value: omwriter.Text("tensor")}}}
	return omwriter.Parts{
		Signature: &omwriter.Signature{
			Inputs: []omwriter.Port{
				{Name: "x", Bytes: 24, Format: 2, DataType: 0, Dims: []int64{2, 3}, DimsV2: []int64{2, 3}},
				{Name: "s", Bytes: 8, Format: 2, DataType: 9, Dims: []int64{}},
			},
			Outputs: []omwriter.Port{{Name: "add:0:y", Bytes: 24, Format: 0, DataType: 1, Dims: []int64{2, 3}}},
		},
		ModelDef: &omwriter.ModelDef{Name: "m", Version: 2, Platform: omwriter.DefaultPlatform,
			Graphs: []omwriter.Graph{{Name: "g", Inputs: []string{"x:0"}, Outputs: []string{"add:0"}, Ops: []omwriter.Op{
				{Name: "x", Type: "Data", OutputDescs: []omwriter.TensorDesc{desc}, Attributes: []omwriter.Attribute{{Name: "index", Value: omwriter.Int(0)}}},
				{Name: "add", Type: "Add", Inputs: []string{"x:0", "x:0"}, InputDescs: []omwriter.TensorDesc{desc, desc}, Attributes: []omwriter.Attribute{
					{Name: "engine", Value: omwriter.Text("AIcoreEngine")}, {Name: "names", Value: omwriter.Texts{"a", "b", "a"}},
					{Name: "flag", Value: omwriter.Bool(true)}, {Name: "scale", Value: omwriter.Float(0.5)}, {Name: "_ir_attr_names", Value: omwriter.Texts{"plain"}},
				}},
				{Name: "Node_Output", Type: "NetOutput", SourceNames: []string{"add"}, SourceIndices: []int64{0}, InputDescs: []omwriter.TensorDesc{desc}},
			}}},
			Attributes: []omwriter.Attribute{{Name: "soc_version", Value: omwriter.Text("Ascend910B3")}, {Name: "memory_size", Value: omwriter.Int(512)}},
		},
		Weights:       [][]byte{{1, 2}, {3, 4}},
		Kernels:       omwriter.Kernels{{Name: "te_add", Binary: []byte("\x7fELF")}, {Name: "te_mul", Binary: nil}},
		AICPUKernels:  omwriter.Kernels{},
		Tasks:         &omwriter.Tasks{Version: "v", StreamNum: 1, Tasks: []omwriter.Task{{KernelName: "te_add", Blocks: 8}}},
		SharedObjects: omwriter.SharedObjects{{Name: "libx.so", Vendor: "v", Kind: 1, Binary: []byte("so")}},
		Emulation:     omwriter.Emulation{{Key: "info", Value: []byte("{}")}, {Key: "model", Value: []byte("onnx")}},
	}
}

func TestPartitionsInTheOrderOfGE(t *testing.T) {
	raw, f := write(t, &omwriter.File{Name: "m", Models: []omwriter.Model{omwriter.NewModel(full())}})
	var got []om.PartitionType
	for _, p := range f.Partitions() {
		got = append(got, p.Type)
	}
	want := []om.PartitionType{om.HostLibraries, om.ModelInOutInfo, om.ModelDef, om.WeightsData, om.TBEKernels, om.CustomAICPU, om.TaskInfo, om.EmulatedModel}
	if !slices.Equal(got, want) {
		t.Errorf("partitions %v, want %v", got, want)
	}
	weights, _ := f.Partition(0, om.WeightsData)
	if data, err := io.ReadAll(f.Section(weights)); err != nil || !bytes.Equal(data, []byte{1, 2, 3, 4}) {
		t.Errorf("weights %v, %v", data, err)
	}
	own, _ := f.Partition(0, om.EmulatedModel)
	want8 := "NPUCEMU1\x02\x00\x00\x00\x04\x00\x00\x00\x02\x00\x00\x00info{}\x05\x00\x00\x00\x04\x00\x00\x00modelonnx"
	if data, err := io.ReadAll(f.Section(own)); err != nil || string(data) != want8 {
		t.Errorf("own partition %q, %v", data, err)
	}
	if binary.LittleEndian.Uint64(raw[184:]) != uint64(len(raw)-256) {
		t.Error("model_length is not what follows the header")
	}
}

func TestSignatureComesBack(t *testing.T) {
	parts := full()
	_, f := write(t, &omwriter.File{Models: []omwriter.Model{omwriter.NewModel(parts)}})
	got, err := f.Signature()
	if err != nil {
		t.Fatal(err)
	}
	want := []om.Tensor{
		{Name: "x", DType: "float32", Format: "ND", Dims: []int64{2, 3}, PlainDims: []int64{2, 3}, Bytes: 24},
		{Name: "s", DType: "int64", Format: "ND", Dims: []int64{}, Bytes: 8},
	}
	if d := cmp.Diff(want, got.Inputs); d != "" {
		t.Errorf("inputs: %s", d)
	}
	if d := cmp.Diff([]om.Tensor{{Name: "add:0:y", Tensor: "y", DType: "float16", Format: "NCHW", Dims: []int64{2, 3}, Bytes: 24}}, got.Outputs); d != "" {
		t.Errorf("outputs: %s", d)
	}
	if got.Gears != nil {
		t.Errorf("gears %+v", got.Gears)
	}
}

func TestGearsComeBack(t *testing.T) {
	for _, test := range []struct {
		name      string
		signature omwriter.Signature
		want      om.Gears
	}{
		{"batch", omwriter.Signature{Batches: []uint64{1, 8}}, om.Gears{Kind: "batch", Rows: [][]int64{{1}, {8}}, Order: []string{"x", "long name"}}},
		{"image", omwriter.Signature{Images: [][]uint64{{224, 224}, {448, 320}}}, om.Gears{Kind: "image", Rows: [][]int64{{224, 224}, {448, 320}}, Order: []string{"x", "long name"}}},
		{"dims", omwriter.Signature{Dims: [][]uint64{{1, 64, 3}, {2, 128, 3}}}, om.Gears{Kind: "dims", Rows: [][]int64{{1, 64, 3}, {2, 128, 3}}, Order: []string{"x", "long name"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := test.signature
			s.ShapeOrder = []string{"x", "long name"}
			s.OutputShapes = []string{"0,0,1,10", "1,0,8,10", "-1,1,5"}
			s.Inputs = []omwriter.Port{
				{Name: "x", Bytes: 32, Format: 2, DataType: 0, Dims: []int64{-1}},
				{Name: om.GearInput, Bytes: 4, Format: 2, DataType: 3, Dims: []int64{1}},
			}
			parts := full()
			parts.Signature = &s
			_, f := write(t, &omwriter.File{Models: []omwriter.Model{omwriter.NewModel(parts)}})
			got, err := f.Signature()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(&test.want, got.Gears); d != "" {
				t.Errorf("gears: %s", d)
			}
			wantShapes := []om.GearOutput{{Gear: 0, Output: 0, Dims: []int64{1, 10}}, {Gear: 1, Output: 0, Dims: []int64{8, 10}}, {Gear: -1, Output: 1, Dims: []int64{5}}}
			if d := cmp.Diff(wantShapes, got.GearOutputs); d != "" {
				t.Errorf("output shapes: %s", d)
			}
			if len(got.Hidden) != 1 || len(got.Inputs) != 1 {
				t.Errorf("inputs %+v, hidden %+v", got.Inputs, got.Hidden)
			}
		})
	}
}

// attributesOf gives the attributes of every operator, names and texts in clear.
func attributesOf(t *testing.T, f *om.File) map[string]om.Attributes {
	t.Helper()
	all := map[string]om.Attributes{}
	for op, err := range f.Operators(0) {
		if err != nil {
			t.Fatal(err)
		}
		a, err := op.Attributes()
		if err != nil {
			t.Fatal(err)
		}
		all[op.Name] = a
	}
	return all
}

// Shortened or not, attributes say the same; shortened, their names are not in the file.
func TestCompressedAttributes(t *testing.T) {
	parts := full()
	raw, plain := write(t, &omwriter.File{Models: []omwriter.Model{omwriter.NewModel(parts)}})
	parts.ModelDef.Compress = true
	shortRaw, short := write(t, &omwriter.File{Models: []omwriter.Model{omwriter.NewModel(parts)}})
	if d := cmp.Diff(attributesOf(t, plain), attributesOf(t, short)); d != "" {
		t.Error(d)
	}
	for _, text := range []string{"AIcoreEngine", "engine", "note"} {
		if n, want := bytes.Count(shortRaw, []byte(text)), 1; n > bytes.Count(raw, []byte(text)) || text == "note" && n != want {
			t.Errorf("%q occurs %d times when shortened", text, n)
		}
	}
}

// More than 127 names need two digits, more than 127² three.
func TestManyAttributeNames(t *testing.T) {
	parts := full()
	var list []omwriter.Attribute
	for i := range 300 {
		list = append(list, omwriter.Attribute{Name: fmt.Sprintf("name%d", i), Value: omwriter.Text(fmt.Sprintf("text%d", i))})
	}
	parts.ModelDef.Graphs[0].Ops[1].Attributes = list
	parts.ModelDef.Compress = true
	_, f := write(t, &omwriter.File{Models: []omwriter.Model{omwriter.NewModel(parts)}})
	got := attributesOf(t, f)["add"]
	for i := range 300 {
		if text, ok := got.Text(fmt.Sprintf("name%d", i)); !ok || text != fmt.Sprintf("text%d", i) {
			t.Fatalf("name%d is %q, %v", i, text, ok)
		}
	}
}

func TestModelAttributes(t *testing.T) {
	_, f := write(t, &omwriter.File{Models: []omwriter.Model{omwriter.NewModel(full())}})
	a, err := f.Attributes(0)
	if err != nil {
		t.Fatal(err)
	}
	partition := func(p om.PartitionType) int64 { found, _ := f.Partition(0, p); return found.Bytes }
	want := []int64{4, partition(om.TBEKernels), 0, partition(om.TaskInfo), partition(om.HostLibraries)}
	if got := a.Ints("om_info_list"); !slices.Equal(got, want) {
		t.Errorf("om_info_list %v, want %v", got, want)
	}
	if soc, _ := a.Text("soc_version"); soc != "Ascend910B3" || a.Int("memory_size") != 512 {
		t.Errorf("attributes %v", a)
	}
	var kernels []string
	for k, err := range f.Kernels(0) {
		if err != nil {
			t.Fatal(err)
		}
		kernels = append(kernels, fmt.Sprintf("%s %d", k.Name, k.Bytes))
	}
	if want := []string{"te_add 4", "te_mul 0"}; !slices.Equal(kernels, want) {
		t.Errorf("kernels %v, want %v", kernels, want)
	}
}

func TestGenerations(t *testing.T) {
	for _, test := range []struct {
		generation omwriter.Generation
		version    string
		wide       bool
		models     uint32
	}{
		{omwriter.Current, "0x20000000", true, 1},
		{omwriter.CANN5, "0x20000000", false, 1},
		{omwriter.First, "0x10000000", false, 1},
	} {
		parts := full()
		parts.SharedObjects, parts.Emulation = nil, nil
		raw, f := write(t, &omwriter.File{Generation: test.generation, Name: "a model with a name of more than thirty-one bytes", Models: []omwriter.Model{omwriter.NewModel(parts)}})
		h := f.Header
		if h.VersionText() != test.version || h.Wide != test.wide || h.ModelNum != test.models || h.Platform != omwriter.DefaultPlatform || h.PlatformType != 1 {
			t.Errorf("%v: header %+v", test.generation, h)
		}
		if h.Name != "a model with a name of more tha" {
			t.Errorf("name %q", h.Name)
		}
		if test.generation == omwriter.First && string(raw[156:160]) != "1.11" {
			t.Errorf("the platform begins at %q", raw[156:160])
		}
		if s, err := f.Signature(); err != nil || len(s.Inputs) != 2 {
			t.Errorf("%v: signature %+v, %v", test.generation, s, err)
		}
	}
}

func TestDynamicModelWithParts(t *testing.T) {
	_, f := write(t, &omwriter.File{IsDynamic: true, NeedsHost: true, Models: []omwriter.Model{omwriter.NewModel(full()), omwriter.NewModel(omwriter.Parts{ModelDef: &omwriter.ModelDef{Name: "part"}})}})
	if !f.Header.Dynamic || !f.Header.NeedsHost || f.Header.ModelNum != 2 || len(f.Partitions()) != 9 {
		t.Errorf("header %+v, %d partitions", f.Header, len(f.Partitions()))
	}
}

func TestSameBytesEveryTime(t *testing.T) {
	parts := full()
	parts.ModelDef.Compress = true
	first, _ := write(t, &omwriter.File{Models: []omwriter.Model{omwriter.NewModel(parts)}})
	for range 20 {
		parts := full()
		parts.ModelDef.Compress = true
		if again, _ := write(t, &omwriter.File{Models: []omwriter.Model{omwriter.NewModel(parts)}}); !bytes.Equal(first, again) {
			t.Fatal("the same description gave other bytes")
		}
	}
}

func TestSave(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "on the way", "m.om")
	f := &omwriter.File{Models: []omwriter.Model{omwriter.NewModel(full())}}
	if err := f.Save(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 || info.Size() != f.Size() {
		t.Errorf("%v, %v", info, err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("left beside it: %v", entries)
	}
}

func TestWhatCannotBeWritten(t *testing.T) {
	many := omwriter.Model{}
	for range 9 {
		many.Partitions = append(many.Partitions, omwriter.NewPartition(omwriter.ModelDefPartition))
	}
	for name, f := range map[string]*omwriter.File{
		"no model":            {},
		"too many partitions": {Models: []omwriter.Model{many}},
		"an empty model":      {Models: []omwriter.Model{{}}},
		"a long platform":     {Platform: "longer than twenty bytes", Models: []omwriter.Model{omwriter.NewModel(full())}},
	} {
		if err := f.Write(io.Discard); err == nil {
			t.Errorf("%s is written", name)
		}
		path := filepath.Join(t.TempDir(), "m.om")
		if err := f.Save(path); err == nil {
			t.Errorf("%s is saved", name)
		}
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s leaves a file", name)
		}
	}
}
