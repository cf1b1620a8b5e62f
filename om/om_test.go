package om_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/om"
)

var update = flag.Bool("update", false, "write the golden files anew")

func read(t *testing.T, b []byte) *om.File {
	t.Helper()
	f, err := om.Read(bytes.NewReader(b), int64(len(b)), "net.om")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func signatureOf(t *testing.T, c container) *om.Signature {
	t.Helper()
	s, err := read(t, c.bytes()).Signature()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (- want, + got):\n%s", what, diff)
	}
}

// The whole of a file, as `npuctl inspect --json` tells it.
func TestSummary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "net.om")
	if err := os.WriteFile(path, resnet().bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := om.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := f.Summary()
	if err != nil {
		t.Fatal(err)
	}
	s.File = "net.om"
	got, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "summary.json", append(got, '\n'))
	golden(t, "report.txt", []byte(reportText(s)))
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, name, string(got), string(want))
}

// reportText prints a report plainly.
func reportText(s om.Summary) string {
	var b strings.Builder
	r := s.Report(func(n int64) string { return fmt.Sprintf("%d B", n) })
	for _, f := range r.Facts {
		fmt.Fprintf(&b, "%-12s %s\n", f.Label, f.Text)
	}
	for _, t := range r.Tables {
		fmt.Fprintf(&b, "\n%s\n", t.Title)
		for _, row := range append([][]string{t.Header}, t.Rows...) {
			fmt.Fprintln(&b, strings.TrimRight(strings.Join(row, " | "), " "))
		}
	}
	return b.String()
}

// Three generations of the container tell the same of the same model.
func TestGenerations(t *testing.T) {
	for _, test := range []struct {
		name    string
		version uint32
		wide    bool
	}{
		{"of 2020", 0x10000000, false},
		{"of CANN 5", 0x20000000, false},
		{"of today", 0x20000000, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := container{version: test.version, wide: test.wide, name: "resnet", platform: "1.11.z.0",
				models: [][]part{{resnetGraph(), {om.WeightsData, []byte{1}}, kernels(om.TBEKernels, "conv1"), {om.TaskInfo, nil}}}}
			f := read(t, c.bytes())
			h := f.Header
			if f.Kind != om.KindOM || h.ModelNum != 1 || h.Platform != "1.11.z.0" || h.PlatformType != 1 || h.Wide != test.wide || h.Name != "resnet" {
				t.Errorf("header %+v", h)
			}
			var names []string
			for _, p := range f.Partitions() {
				names = append(names, fmt.Sprintf("%v:%d", p.Type, p.Bytes))
			}
			equal(t, "partitions", names[1:], []string{"WEIGHTS_DATA:1", "TBE_KERNELS:26", "TASK_INFO:0"})
			s, err := f.Signature()
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "inputs", s.Inputs, []om.Tensor{{Name: "input", DType: "float32", Format: "NCHW", Dims: []int64{1, 3, 224, 224}, Bytes: 602112}})
			// The graph says a padded size for outputs; the signature the real one.
			equal(t, "outputs", s.Outputs, []om.Tensor{{Name: "fc:0:logits", Tensor: "logits", DType: "float32", Format: "ND", Dims: []int64{1, 1000}, Bytes: 4000}})
			if !s.FromGraph {
				t.Error("it does not say that the signature is from the graph")
			}
		})
	}
}

func TestPartitionsAreWhereTheyAre(t *testing.T) {
	f := read(t, resnet().bytes())
	p, ok := f.Partition(0, om.TaskInfo)
	if !ok {
		t.Fatal("no TASK_INFO")
	}
	b := make([]byte, p.Bytes)
	if _, err := f.Section(p).ReadAt(b, 0); err != nil || !bytes.Equal(b, []byte{1, 2, 3}) {
		t.Errorf("TASK_INFO holds %v, %v", b, err)
	}
	if p.Offset+p.Bytes != f.Size() {
		t.Errorf("the last partition ends at %d of %d", p.Offset+p.Bytes, f.Size())
	}
	if _, ok := f.Partition(1, om.ModelDef); ok {
		t.Error("there is a second model")
	}
}

func TestGears(t *testing.T) {
	input := func(dims ...int64) []described {
		return []described{
			{name: "x", dims: dims, bytes: 4096},
			{name: om.GearInput, dtype: 3, format: 2, dims: []int64{1}, bytes: 4},
		}
	}
	y := []described{{name: "y", dims: []int64{-1, 8}, bytes: 64}}
	for _, test := range []struct {
		name  string
		file  part
		gears om.Gears
	}{
		{"batch", signature(input(-1, 3), y, block(2, numbers(u32(nil, 3), []int64{1, 2, 4}))),
			om.Gears{Kind: "batch", Rows: [][]int64{{1}, {2}, {4}}}},
		{"image", signature(input(1, 3, -1, -1), y, rows(3, []int64{224, 224}, []int64{336, 448})),
			om.Gears{Kind: "image", Rows: [][]int64{{224, 224}, {336, 448}}}},
		{"dims", signature(input(-1, 3), y, rows(4, []int64{1, 16, 16}, []int64{2, 32, 32}), texts(6, "x", "mask")),
			om.Gears{Kind: "dims", Rows: [][]int64{{1, 16, 16}, {2, 32, 32}}, Order: []string{"x", "mask"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := signatureOf(t, current(test.file, modelDef("net")))
			equal(t, "gears", s.Gears, &test.gears)
			if len(s.Inputs) != 1 || len(s.Hidden) != 1 || len(s.AllInputs) != 2 || s.Hidden[0].Name != om.GearInput {
				t.Errorf("inputs %v, hidden %v", s.Inputs, s.Hidden)
			}
		})
	}
}

func TestGearsFromTheGraph(t *testing.T) {
	s := signatureOf(t, current(modelDef("net", graph("main",
		operator("x", "Data", attribute(10, "index", 0), attribute(10, "_mbatch_origin_input_dims", []int64{-1, 3}), tensor(33, 1, "ND", 48, 4, 3)),
		operator(om.GearInput, "Data", attribute(10, "index", 1), tensor(33, 7, "ND", 4, 1)),
		operator("plain", "Case"),
		operator("ascend_mbatch_case", "Case", attribute(10, "_batch_num", 2), attribute(10, "mbatch_dynamic_type", 1),
			attribute(10, "_pred_value_0", []int64{1}), attribute(10, "_pred_value_1", []int64{4}),
			attribute(10, "user_designate_shape_order", []string{"x"})),
		operator("Node_Output", "NetOutput", tensor(33, 1, "ND", 0, -1, 3))))))
	equal(t, "gears", s.Gears, &om.Gears{Kind: "batch", Rows: [][]int64{{1}, {4}}, Order: []string{"x"}})
	// The buffer is that of the largest gear.
	equal(t, "inputs", s.Inputs, []om.Tensor{{Name: "x", DType: "float32", Format: "ND", Dims: []int64{-1, 3}, Bytes: 48}})
	equal(t, "outputs", s.Outputs, []om.Tensor{{Name: "output_0", DType: "float32", Format: "ND", Dims: []int64{-1, 3}}})
}

func TestStatedSignature(t *testing.T) {
	s := signatureOf(t, current(modelDef("net"), signature(
		[]described{
			{name: "ids", dtype: 9, format: 2, dims: []int64{-1, -1}, plain: []int64{-1, -1}, ranges: []int64{1, 8, 1, -1}},
			{name: "", dtype: 27, format: 29, bytes: 2, dims: nil},
			{name: "odd", dtype: 99, format: 99, dims: []int64{0}},
		},
		[]described{{name: "node:0:a:0", dtype: 12, format: 2, dims: []int64{2}, bytes: 2}, {name: "tf/node:1", dtype: 4294967295, format: 4294967295}},
		texts(5, "0,0,1,8", "-1,1,4"), block(77, []byte("of a later version")),
	)))
	equal(t, "inputs", s.Inputs, []om.Tensor{
		{Name: "ids", DType: "int64", Format: "ND", Dims: []int64{-1, -1}, PlainDims: []int64{-1, -1}, Ranges: [][2]int64{{1, 8}, {1, -1}}},
		{DType: "bfloat16", Format: "FRACTAL_NZ", Dims: []int64{}, Bytes: 2},
		{Name: "odd", DType: "type 99", Format: "format 99", Dims: []int64{0}},
	})
	equal(t, "outputs", s.Outputs, []om.Tensor{
		{Name: "node:0:a:0", Tensor: "a:0", DType: "bool", Format: "ND", Dims: []int64{2}, Bytes: 2},
		{Name: "tf/node:1", DType: "undefined", Format: "undefined", Dims: []int64{}},
	})
	equal(t, "shapes in gears", s.GearOutputs, []om.GearOutput{{Gear: 0, Output: 0, Dims: []int64{1, 8}}, {Gear: -1, Output: 1, Dims: []int64{4}}})
}

// Only the main graph's Data and NetOutput are the model's; inputs go by index, not
// by place; what the input port says counts, not the output port.
func TestSignatureFromGraph(t *testing.T) {
	s := signatureOf(t, current(modelDef("net",
		graph("main",
			operator("Node_Output", "NetOutput", tensor(33, 2, "NC1HWC0", 352, 3, 10), tensor(33, 8, "ND", 64)),
			operator("second", "Data", attribute(10, "index", 1), tensor(33, 3, "ND", 4, 4)),
			operator("first", "Data", attribute(10, "index", 0), tensor(33, 1, "NHWC", 7056, 1, 42, 42, 1), tensor(34, 2, "NC1HWC0", 9999, 1, 1, 42, 42, 16)),
			operator("third", "Data", tensor(34, 11, "ND", 2, 2))),
		graph("branch", operator("inner", "Data", tensor(33, 1, "ND", 4, 1)), operator("out", "NetOutput", tensor(33, 1, "ND", 4, 1))),
		attribute(11, "attr_model_out_nodes_name", []string{"a:0"}))))
	equal(t, "inputs", s.Inputs, []om.Tensor{
		{Name: "first", DType: "float32", Format: "NHWC", Dims: []int64{1, 42, 42, 1}, Bytes: 7056},
		{Name: "second", DType: "int8", Format: "ND", Dims: []int64{4}, Bytes: 4},
		{Name: "third", DType: "bool", Format: "ND", Dims: []int64{2}, Bytes: 2},
	})
	equal(t, "outputs", s.Outputs, []om.Tensor{
		{Name: "a:0", DType: "float16", Format: "NC1HWC0", Dims: []int64{3, 10}, Bytes: 352},
		{Name: "output_1", DType: "int64", Format: "ND", Dims: []int64{}, Bytes: 8},
	})
}

// Names and texts of attributes may be numbers of a dictionary, to base 127 with two
// digits here; a sub-model's dictionary may itself be in numbers of the root's.
func TestCompressedAttributes(t *testing.T) {
	names := make([]string, 130)
	flags := make([]bool, 130)
	for i := range names {
		names[i] = fmt.Sprint("name", i)
	}
	names[0], names[129], flags[129] = "index", "_kernel", true
	root := modelDef("root",
		graph("main",
			operator("b", "Data", attribute(10, "\x00\x01", 1), tensor(33, 1, "ND", 4, 1)),
			operator("a", "Data", attribute(10, "\x00\x01", 0), attribute(10, "plain", 7), tensor(33, 1, "ND", 4, 1)),
			operator("k", "Conv2D", attribute(10, "\x00\x03\x02", 1), attribute(10, "\x00\x7f\x7f", 5))),
		attribute(11, "attr_name_enum", names), attribute(11, "attr_value_enum", []string{"zero", "one"}), attribute(11, "attrs_use_string_value", flags))
	sub := modelDef("sub",
		graph("main", operator("c", "Data", attribute(10, "\x00\x02", 3))),
		attribute(11, "attr_name_enum", []string{"own", "\x00\x03\x02"}), attribute(11, "attr_value_enum", []string{}), attribute(11, "attrs_use_string_value", []bool{false, false}))
	c := current(root)
	c.models = append(c.models, []part{sub})
	f := read(t, c.bytes())

	found := map[string]om.Attributes{}
	for model := range 2 {
		for op, err := range f.Operators(model) {
			if err != nil {
				t.Fatal(err)
			}
			if found[op.Name], err = op.Attributes(); err != nil {
				t.Fatal(err)
			}
		}
	}
	equal(t, "attributes", found, map[string]om.Attributes{
		"a": {"index": int64(0), "plain": int64(7)},
		"b": {"index": int64(1)},
		"k": {"_kernel": "one", "\x00\x7f\x7f": int64(5)}, // the dictionary has no such number
		"c": {"_kernel": int64(3)},
	})
	if s := signatureOf(t, c); s.Inputs[0].Name != "a" || s.Inputs[1].Name != "b" {
		t.Errorf("compressed indices were not used: %v", s.Inputs)
	}
	if !f.Header.Dynamic || f.Header.ModelNum != 2 {
		t.Errorf("header %+v", f.Header)
	}
}

func TestAttributes(t *testing.T) {
	a, err := read(t, resnet().bytes()).Attributes(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, skipped := a["tasks"].(om.Unread); !skipped {
		t.Errorf("the copy of the tasks was read: %v", a["tasks"])
	}
	if text, ok := a.Text("soc_version"); text != "Ascend310P3" || !ok || a.Int("stream_num") != 3 || len(a.Ints("om_info_list")) != 5 {
		t.Errorf("attributes %v", a)
	}
	if _, ok := a.Text("no such"); ok || a.Int("soc_version") != 0 || a.Texts("stream_num") != nil {
		t.Error("attributes that are not there, or of another type, are given")
	}
}

func TestCommandLineOptions(t *testing.T) {
	p, err := read(t, resnet().bytes()).Provenance()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "framework", p.Framework, "ONNX")
	equal(t, "options", p.Options(), []om.Option{{"model", "a b.onnx"}, {"framework", "5"}, {"output", "o"}, {"soc_version", "Ascend310P3"}})
	if options := (om.Provenance{}).Options(); len(options) != 0 {
		t.Errorf("an empty command line has options: %v", options)
	}
}

func TestKernels(t *testing.T) {
	var names []string
	for k, err := range read(t, resnet().bytes()).Kernels(0) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, fmt.Sprintf("%v %s %d", k.Store, k.Name, k.Bytes))
	}
	equal(t, "kernels", names, []string{"TBE_KERNELS conv1 9", "TBE_KERNELS relu1 9", "TBE_KERNELS te_matmulv2_0123456789abcdef0123_1 38", "CUST_AICPU_KERNELS where 9"})
}

func TestDamagedKernelStores(t *testing.T) {
	head := func(name, binary uint32) []byte { return u32(u32(u32(nil, 0x5D776EFD), name), binary) }
	for _, test := range []struct {
		name  string
		store []byte
		says  string
	}{
		{"binary beyond the store", append(head(1, 5), "kELF"...), "longer than its store"},
		{"name beyond the store", head(9, 0), "longer than its store"},
		{"head that is cut", head(0, 0)[:11], "no kernel at byte"},
		{"other magic", make([]byte, 12), "no kernel at byte"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := read(t, current(modelDef("net"), part{om.TBEKernels, test.store}, part{om.TaskInfo, make([]byte, 64)}).bytes())
			var last error
			for _, err := range f.Kernels(0) {
				last = err
			}
			if last == nil || !strings.Contains(last.Error(), test.says) {
				t.Errorf("%v, want %q", last, test.says)
			}
		})
	}
}

// The loader goes by sizes; what the table says of offsets does not matter.
func TestOffsetsOfTheTableAreNotUsed(t *testing.T) {
	b := resnet().bytes()
	binary.LittleEndian.PutUint64(b[256+8+24+8:], 7)
	binary.LittleEndian.PutUint64(b[256+8+2*24+8:], 1<<20)
	equal(t, "partitions", read(t, b).Partitions(), read(t, resnet().bytes()).Partitions())
}

// Files that are something else are told to be what they are.
func TestOtherKinds(t *testing.T) {
	phone := container{version: 0x10000000, kind: om.TypeFlow, platform: "3.51.z.0", models: [][]part{{modelDef("ge_default", graph("g", operator("i", "Data", tensor(33, 1, "NCHW", 4, 1, 1))))}}}
	cut := phone.bytes()
	for _, test := range []struct {
		name  string
		bytes []byte
		kind  om.Kind
		says  string
	}{
		{"phone model", phone.bytes(), om.KindPhone, "HiAI"},
		{"phone model that is cut short", cut[:len(cut)-9], om.KindPhone, "HiAI"},
		{"dataflow", container{version: 0x20000000, kind: om.TypeFlow, wide: true, models: [][]part{{modelDef("flow"), {om.FlowModel, []byte("f")}, {om.FlowSubmodel, nil}, {om.FlowSubmodel, nil}}}}.bytes(), om.KindDataflow, "dataflow"},
		{"nano", current(modelDef("nano"), part{9, []byte("task")}).bytes(), om.KindNano, "Ascend035"},
		{"bundle", container{version: 0x20000000, kind: om.TypeBundle, wide: true, models: [][]part{{{om.BundleModelInfo, []byte("b")}}}}.bytes(), om.KindBundle, "share variables"},
		{"package", archive(t, "manifest.json", `{"om2_version": "0", "model_num": 2, "atc_command": "atc --mode=7"}`), om.KindOM2, "OM2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := read(t, test.bytes)
			s, err := f.Summary()
			if err != nil || s.Kind != test.kind || !strings.Contains(s.Statement, test.says) {
				t.Errorf("kind %q, %q, %v", s.Kind, s.Statement, err)
			}
			if s.Inputs == nil || s.Outputs == nil || s.Partitions == nil {
				t.Error("lists that are null in JSON")
			}
		})
	}
}

// archive makes a zip archive of names and contents.
func archive(t testing.TB, members ...string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for pair := range slices.Chunk(members, 2) {
		w, err := z.Create(pair[0])
		if err == nil {
			_, err = w.Write([]byte(pair[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const (
	manifest = `{"om2_version": "0", "model_num": 1, "atc_command": "atc --mode=7 --soc_version=Ascend910B3 --output=net"}`
	meta     = `{"name": "net", "work_size": 2048, "zero_copy_size": 96, "dynamic_type": 0, "dynamic_batch_info": [], "dynamic_output_shape": [],
		"user_designate_shape_order": [],
		"inputs": [{"name": "mask", "index": 1, "data_type": "DT_BF16", "format": "ND", "shape": [-1, 4], "shape_range": [[1, 8], [4, 4]], "size": 0},
			{"name": "x", "index": 0, "data_type": "DT_FLOAT", "format": "NCHW", "shape": [1, 3, 2, 2], "shape_v2": [1, 3, 2, 2], "shape_range": [], "size": 0}],
		"outputs": [{"name": "node:0:y", "index": 0, "data_type": "DT_DOUBLE", "format": "ND", "shape": [2], "size": 16}]}`
	gearMeta = `{"name": "net", "dynamic_type": 3, "dynamic_batch_info": [[1, 4], [2, 8]], "dynamic_output_shape": ["0,0,1,4", "1,0,2,8"],
		"user_designate_shape_order": ["x"],
		"inputs": [{"name": "x", "index": 0, "data_type": 9, "format": 2, "shape": [-1, -1], "size": 128},
			{"name": "ascend_mbatch_shape_data", "index": 1, "data_type": "DT_INT32", "format": "ND", "shape": [2], "size": 8}],
		"outputs": []}`
)

// Of an OM2 package, manifest and description are read, wherever its writer put them.
func TestPackages(t *testing.T) {
	for _, folder := range []string{"", "net/"} {
		f := read(t, archive(t, folder+"manifest.json", manifest, folder+"data/constants/constant_0", "weights", folder+"data/model_0/model_meta.json", meta))
		equal(t, "package", f.Package, &om.Package{Version: "0", Models: 1, CommandLine: "atc --mode=7 --soc_version=Ascend910B3 --output=net"})
		s, err := f.Summary()
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "inputs", s.Inputs, []om.Tensor{
			{Name: "x", DType: "float32", Format: "NCHW", Dims: []int64{1, 3, 2, 2}, PlainDims: []int64{1, 3, 2, 2}, Ranges: [][2]int64{}, Bytes: 48},
			{Name: "mask", DType: "bfloat16", Format: "ND", Dims: []int64{-1, 4}, Ranges: [][2]int64{{1, 8}, {4, 4}}},
		})
		equal(t, "outputs", s.Outputs, []om.Tensor{{Name: "node:0:y", Tensor: "y", DType: "float64", Format: "ND", Dims: []int64{2}, Bytes: 16}})
		if s.SoC != "Ascend910B3" || s.Name != "net" || s.Needs.MemoryBytes != 2048 || s.SignatureFrom != "model_meta.json" || s.Gears != nil || s.Emulated || len(s.Remarks) > 0 {
			t.Errorf("summary %+v", s)
		}
	}
	s, err := read(t, archive(t, "manifest.json", strings.Replace(manifest, "{", `{"emulated": true, `, 1), "data/model_0/model_meta.json", gearMeta)).Summary()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "gears", s.Gears, &om.Gears{Kind: "dims", Rows: [][]int64{{1, 4}, {2, 8}}, Order: []string{"x"}})
	equal(t, "shapes in gears", s.GearOutputs, []om.GearOutput{{Gear: 0, Output: 0, Dims: []int64{1, 4}}, {Gear: 1, Output: 0, Dims: []int64{2, 8}}})
	if len(s.Inputs) != 1 || s.Inputs[0].DType != "int64" || len(s.Hidden) != 1 || !s.Emulated {
		t.Errorf("summary %+v", s)
	}
}

// A description that cannot be read leaves what the manifest says, and a remark.
func TestDamagedPackages(t *testing.T) {
	for _, test := range []struct{ name, meta, says string }{
		{"no description", "", "has no data/model_0/model_meta.json"},
		{"no JSON", "{", "model_meta.json: "},
		{"no gear", `{"dynamic_type": 1, "dynamic_batch_info": ["many"]}`, `"many" is no gear`},
		{"no shape", `{"dynamic_output_shape": ["0,zero"]}`, "no shape of an output"},
	} {
		t.Run(test.name, func(t *testing.T) {
			members := []string{"manifest.json", manifest}
			if test.meta != "" {
				members = append(members, "data/model_0/model_meta.json", test.meta)
			}
			f := read(t, archive(t, members...))
			s, err := f.Summary()
			if err != nil || s.SoC != "Ascend910B3" || len(s.Remarks) != 1 || !strings.Contains(s.Remarks[0], test.says) {
				t.Errorf("%v, remarks %q", err, s.Remarks)
			}
			if _, err := f.Signature(); fault.FamilyOf(err) != fault.Input {
				t.Errorf("signature: %v", err)
			}
		})
	}
}

func TestNanoModelsMayHaveGaps(t *testing.T) {
	b := current(part{9, []byte("task")}, part{10, []byte("more")}).bytes()
	start := 256 + 8 + 2*24
	gapped := append(append(append([]byte{}, b[:start+4]...), make([]byte, 12)...), b[start+4:]...)
	binary.LittleEndian.PutUint64(gapped[184:], uint64(len(gapped)-256))
	binary.LittleEndian.PutUint64(gapped[256+8+24+8:], 16)
	p, _ := read(t, gapped).Partition(0, 10)
	if p.Offset != int64(start+16) || p.Bytes != 4 {
		t.Errorf("the second partition is at %d with %d bytes", p.Offset, p.Bytes)
	}
}

// What is no model, or a damaged one, is one line that says so.
func TestErrors(t *testing.T) {
	good := resnet().bytes()
	changed := func(at int, values ...byte) []byte {
		b := bytes.Clone(good)
		copy(b[at:], values)
		return b
	}
	for _, test := range []struct {
		name  string
		bytes []byte
		says  string
	}{
		{"empty", nil, "empty"},
		{"link saved as text", []byte("../models/a.om"), `a text of 14 bytes: "../models/a.om"`},
		{"LFS pointer", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:00"), "git lfs pull"},
		{"ONNX", []byte("\x08\x08\x12\x07pytorch"), "ONNX"},
		{"binary", []byte{0xde, 0xad, 0xbe, 0xef}, "begins with de ad be ef"},
		{"short header", []byte("IMOD\x00\x01\x00\x00"), "header alone takes 256"},
		{"another manifest", archive(t, "manifest.json", `{"a": 1}`), "not that of an OM2 package"},
		{"another archive", archive(t, "a/b/manifest.json", manifest), "without manifest.json"},
		{"a manifest that unpacks to much", archive(t, "manifest.json", strings.Repeat(" ", 2<<20)+manifest), "more than 1048576 bytes"},
		{"broken archive", []byte("PK\x03\x04 and then nothing"), "archive is damaged"},
		{"cut short", good[:len(good)-1], "cut short"},
		{"more than announced", append(bytes.Clone(good), 0), "something was added"},
		{"unknown version", changed(8, 0, 0, 0, 0x15), "version 0x15000000"},
		{"header of another size", changed(4, 0xff), "every known one has 256"},
		{"no models", changed(156, 0), "0 models"},
		{"models without tables", changed(156, 2), "partition table 1"},
		{"no partitions", changed(256, 0), "0 entries"},
		{"too many partitions", changed(256, 200), "200 entries"},
		{"partition beyond the end", changed(256+8+16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), "MODEL_INOUT_INFO should have"},
		{"bytes behind several models", afterLast(), "the models end at byte"},
		{"no graph", current(part{om.WeightsData, []byte("w")}).bytes(), "no MODEL_DEF"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := om.Read(bytes.NewReader(test.bytes), int64(len(test.bytes)), "net.om")
			if err == nil || !strings.Contains(err.Error(), test.says) || !strings.HasPrefix(err.Error(), "net.om: ") || fault.FamilyOf(err) != fault.Input {
				t.Errorf("%v, want one of input with %q", err, test.says)
			}
		})
	}
	if _, err := om.Open(t.TempDir()); err == nil || fault.FamilyOf(err) != fault.Input {
		t.Errorf("a folder opens: %v", err)
	}
	if _, err := om.Open(filepath.Join(t.TempDir(), "gone.om")); err == nil || fault.FamilyOf(err) != fault.Input {
		t.Errorf("a missing file opens: %v", err)
	}
}

// afterLast has bytes behind its two models that no partition holds.
func afterLast() []byte {
	c := current(modelDef("root"))
	c.models = append(c.models, []part{modelDef("sub")})
	b := append(c.bytes(), "more"...)
	binary.LittleEndian.PutUint64(b[184:], uint64(len(b)-256))
	return b
}

func TestBytesBehindTheLastPartition(t *testing.T) {
	b := append(resnet().bytes(), "more"...)
	binary.LittleEndian.PutUint64(b[184:], uint64(len(b)-256))
	if s, err := read(t, b).Summary(); err != nil || len(s.Remarks) != 1 || !strings.HasPrefix(s.Remarks[0], "4 bytes") {
		t.Errorf("%v, remarks %v", err, s.Remarks)
	}
}

func TestSignatureErrors(t *testing.T) {
	graphless := modelDef("net")
	for _, test := range []struct {
		name string
		file container
		says string
	}{
		{"block beyond the partition", current(graphless, part{om.ModelInOutInfo, u32(u32(nil, 0), 99)}), "block 0 is longer"},
		{"more tensors than bytes", current(graphless, part{om.ModelInOutInfo, block(0, u32(nil, 1<<30))}), "announces 1073741824 tensors"},
		{"tensor beyond its block", current(graphless, part{om.ModelInOutInfo, block(0, append(u32(nil, 1), bytes.Repeat([]byte{0xff}, 32)...))}), "tensor 0 is longer"},
		{"more gears than bytes", current(graphless, part{om.ModelInOutInfo, block(2, u32(nil, 1<<31))}), "more than it has room for"},
		{"shape that is none", current(graphless, signature(nil, nil, texts(5, "0,zero,1"))), "no shape of an output"},
		{"no graph at all", current(graphless), "no graph"},
		{"missing gear", current(modelDef("net", graph("g", operator("case", "Case", attribute(10, "_batch_num", 2), attribute(10, "_pred_value_0", []int64{1}))))), "gear 1 of 2"},
		{"damaged graph", current(part{om.ModelDef, []byte{0x3a, 0xff}}), "MODEL_DEF"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := read(t, test.file.bytes()).Signature()
			if err == nil || !strings.Contains(err.Error(), test.says) || fault.FamilyOf(err) != fault.Input {
				t.Errorf("%v, want %q", err, test.says)
			}
		})
	}
}

func TestEncryptedModelsSaySo(t *testing.T) {
	b := resnet().bytes()
	b[80] = 1
	f := read(t, b)
	if _, err := f.Signature(); err == nil || !strings.Contains(err.Error(), "encrypted") {
		t.Errorf("signature: %v", err)
	}
	if s, err := f.Summary(); err != nil || !s.Encrypted || s.Name != "net" {
		t.Errorf("summary %+v, %v", s, err)
	}
}

// What cannot be read beside the signature is a remark, not an error.
func TestDamageBesideTheSignature(t *testing.T) {
	c := resnet()
	c.models[0][3] = part{om.TBEKernels, []byte("no kernels here")}
	s, err := read(t, c.bytes()).Summary()
	if err != nil || len(s.Inputs) != 1 || len(s.Remarks) != 1 || !strings.Contains(s.Remarks[0], "kernels could not be read") {
		t.Errorf("%v, remarks %v", err, s.Remarks)
	}
	c.models[0][1] = part{om.ModelDef, []byte{0x0a, 0xff, 0xff}}
	if s, err = read(t, c.bytes()).Summary(); err != nil || len(s.Inputs) != 1 || s.SoC != "" || len(s.Remarks) != 1 {
		t.Errorf("%v, remarks %v", err, s.Remarks)
	}
}

func TestEmulatedModelsSaySo(t *testing.T) {
	c := resnet()
	c.models[0] = append(c.models[0], part{om.EmulatedModel, []byte("NPUCEMU1")})
	if s, err := read(t, c.bytes()).Summary(); err != nil || !s.Emulated {
		t.Errorf("emulated %v, %v", s.Emulated, err)
	}
}
