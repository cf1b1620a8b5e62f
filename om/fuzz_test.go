package om_test

import (
	"bytes"
	"encoding/json"
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

func FuzzOpen(f *testing.F) {
	compressed := modelDef("root",
		graph("main", operator("a", "Data", attribute(10, "\x00\x01", 0), tensor(33, 1, "ND", 4, 1)),
			operator("case", "Case", attribute(10, "_batch_num", 2), attribute(10, "_pred_value_0", []int64{1}), attribute(10, "_pred_value_1", []int64{2})),
			operator("out", "NetOutput", tensor(33, 1, "ND", 4, -1))),
		attribute(11, "attr_name_enum", []string{"index"}), attribute(11, "attr_value_enum", []string{"v"}), attribute(11, "attrs_use_string_value", []bool{true}))
	several := current(compressed)
	several.models = append(several.models, []part{modelDef("sub")}, []part{modelDef("sub2"), kernels(om.TBEKernels, "k")})
	for _, c := range []container{
		resnet(),
		several,
		current(modelDef("g"), signature([]described{{name: "x", dims: []int64{-1, -1}, ranges: []int64{1, 2, 1, -1}}}, nil,
			rows(4, []int64{1, 2}, []int64{3, 4}), rows(3, []int64{1, 2}), block(2, numbers(u32(nil, 1), []int64{1})), texts(5, "0,0,1"), texts(6, "x"))),
		{version: 0x10000000, models: [][]part{{compressed, {om.TaskInfo, nil}}}},
		{version: 0x10000000, kind: om.TypeFlow, platform: "3.51.z.0", models: [][]part{{compressed}}},
		{version: 0x20000000, models: [][]part{{compressed}}},
		{version: 0x20000000, kind: om.TypeFlow, wide: true, models: [][]part{{compressed, {om.FlowSubmodel, nil}}}},
		current(part{9, []byte("t")}, part{20, nil}),
	} {
		f.Add(c.bytes())
	}
	f.Add(archive(f, `{"om2_version": "0"}`))
	f.Add([]byte("IMOD"))
	f.Add([]byte("../a.om"))

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
