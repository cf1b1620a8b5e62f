package om_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/npuctl/npuctl/om"
)

// tryEverything asks a file all there is to ask.
func tryEverything(b []byte) (om.Summary, error) {
	f, err := om.Read(bytes.NewReader(b), int64(len(b)), "fuzz.om")
	if err != nil {
		return om.Summary{}, err
	}
	for model := range min(int(f.Header.ModelNum), 4) {
		for op, err := range f.Operators(model) {
			if err != nil {
				break
			}
			if _, err := op.Attributes(); err != nil {
				break
			}
		}
		_, _ = f.Attributes(model)
	}
	return f.Summary()
}

// seeds are small files of every structure that the reader knows.
func seeds(t testing.TB) map[string][]byte {
	compressed := modelDef("root",
		graph("main", operator("a", "Data", attribute(10, "\x00\x01", 0), tensor(33, 1, "ND", 4, 1)),
			operator("case", "Case", attribute(10, "_batch_num", 2), attribute(10, "_pred_value_0", []int64{1}), attribute(10, "_pred_value_1", []int64{2})),
			operator("out", "NetOutput", tensor(33, 1, "ND", 4, -1))),
		attribute(11, "attr_name_enum", []string{"index"}), attribute(11, "attr_value_enum", []string{"v"}), attribute(11, "attrs_use_string_value", []bool{true}))
	several := current(compressed)
	several.models = append(several.models, []part{modelDef("sub")}, []part{modelDef("sub2"), kernels(om.TBEKernels, "k")})
	encrypted := resnet().bytes()
	encrypted[80] = 1
	everything := resnet()
	everything.host, everything.dynamic = true, true
	everything.models[0] = append([]part{{om.HostLibraries, []byte("so")}}, append(everything.models[0], part{om.EmulatedModel, []byte("NPUCEMU1")})...)
	files := map[string][]byte{
		"all partitions of today":  everything.bytes(),
		"a dictionary, and models": several.bytes(),
		"every block of the signature": current(modelDef("g"), signature(
			[]described{{name: "x", dims: []int64{-1, -1}, plain: []int64{-1, -1}, ranges: []int64{1, 2, 1, -1}}}, []described{{name: "n:0:y"}},
			rows(4, []int64{1, 2}, []int64{3, 4}), rows(3, []int64{1, 2}), block(2, numbers(u32(nil, 1), []int64{1})), texts(5, "0,0,1"), texts(6, "x"))).bytes(),
		"every kind of attribute": current(modelDef("g", graph("main", operator("a", "Data",
			attribute(10, "s", "text"), attribute(10, "i", -1), attribute(10, "b", true), attribute(10, "bytes", []byte{1}), attribute(10, "f", float32(1.5)),
			attribute(10, "texts", []string{"a", "b"}), attribute(10, "ints", []int64{1, -1}), attribute(10, "bools", []bool{true}), attribute(10, "floats", []float32{1, 2}))))).bytes(),
		"a graph of 2020":       container{version: 0x10000000, models: [][]part{{compressed, {om.TaskInfo, nil}}}}.bytes(),
		"a graph of CANN5":      container{version: 0x20000000, models: [][]part{{compressed}}}.bytes(),
		"a phone model":         container{version: 0x10000000, kind: om.TypeFlow, platform: "3.51.z.0", models: [][]part{{compressed}}}.bytes(),
		"dataflow":              container{version: 0x20000000, kind: om.TypeFlow, wide: true, models: [][]part{{compressed, {om.FlowModel, []byte("f")}, {om.FlowSubmodel, nil}}}}.bytes(),
		"a bundle":              container{version: 0x20000000, kind: om.TypeBundle, wide: true, models: [][]part{{{om.BundleModelInfo, []byte("b")}}}}.bytes(),
		"a nano model":          current(part{9, []byte("t")}, part{20, nil}).bytes(),
		"encrypted":             encrypted,
		"a package":             archive(t, "manifest.json", manifest, "data/model_0/model_meta.json", meta),
		"a gear package":        archive(t, "net/manifest.json", manifest, "net/data/model_0/model_meta.json", gearMeta),
		"a bare package":        archive(t, "manifest.json", manifest),
		"no more than the mark": []byte("IMOD"),
		"a text":                []byte("../a.om"),
	}
	return files
}

// The seeds reach what they are there for: each is read, and together they have every
// kind of file, block, attribute and kernel store.
func TestSeedsReachEverything(t *testing.T) {
	kinds := map[om.Kind]bool{}
	values := map[string]bool{}
	sources := map[string]bool{}
	for name, b := range seeds(t) {
		s, err := tryEverything(b)
		if len(b) > 256 && err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		kinds[s.Kind] = true
		sources[s.SignatureFrom] = true
		for _, k := range s.Kernels {
			sources[k.Store] = true
		}
		f, err := om.Read(bytes.NewReader(b), int64(len(b)), name)
		if err != nil {
			continue
		}
		for op, err := range f.Operators(0) {
			if err != nil {
				break
			}
			attributes, err := op.Attributes()
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for _, v := range attributes {
				values[fmt.Sprintf("%T", v)] = true
			}
		}
	}
	for _, kind := range []om.Kind{om.KindOM, om.KindOM2, om.KindNano, om.KindPhone, om.KindDataflow, om.KindBundle} {
		if !kinds[kind] {
			t.Errorf("no seed of kind %s", kind)
		}
	}
	for _, value := range []string{"string", "int64", "float32", "bool", "[]string", "[]int64", "[]float32", "[]bool", "om.Unread"} {
		if !values[value] {
			t.Errorf("no seed has an attribute of %s", value)
		}
	}
	for _, source := range []string{"MODEL_INOUT_INFO", "MODEL_DEF", "model_meta.json", "TBE_KERNELS", "CUST_AICPU_KERNELS"} {
		if !sources[source] {
			t.Errorf("no seed is read from %s", source)
		}
	}
}

func FuzzOpen(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := tryEverything(b)
		if err != nil {
			return
		}
		if s.Inputs == nil || s.Outputs == nil || s.Partitions == nil {
			t.Fatal("lists that are null in JSON")
		}
		for _, p := range s.Partitions {
			if p.Offset < 0 || p.Bytes < 0 || p.Offset+p.Bytes > int64(len(b)) {
				t.Fatalf("partition %+v of a file of %d bytes", p, len(b))
			}
		}
		if _, err := json.Marshal(s); err != nil {
			t.Fatal(err)
		}
		s.Report(func(int64) string { return "" })
	})
}
