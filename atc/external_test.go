package atc

import (
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/npuctl/npuctl/internal/onnxpb"
	"github.com/npuctl/npuctl/onnx"
)

// writeExternal makes a model y = x + w whose weight lies in a side file, described by
// its place and, where there is one, a further entry.
func writeExternal(t testing.TB, path string, further ...*onnxpb.StringStringEntryProto) {
	t.Helper()
	shape := &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{
		ElemType: proto.Int32(1), Shape: &onnxpb.TensorShapeProto{Dim: []*onnxpb.TensorShapeProto_Dimension{
			{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: 2}}}}}}}
	entries := []*onnxpb.StringStringEntryProto{{Key: proto.String("location"), Value: proto.String("weights.bin")}}
	m := &onnxpb.ModelProto{
		IrVersion: proto.Int64(8), OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(13)}},
		Graph: &onnxpb.GraphProto{
			Name:   proto.String("g"),
			Input:  []*onnxpb.ValueInfoProto{{Name: proto.String("x"), Type: shape}},
			Output: []*onnxpb.ValueInfoProto{{Name: proto.String("y"), Type: shape}},
			Node:   []*onnxpb.NodeProto{{OpType: proto.String("Add"), Name: proto.String("add"), Input: []string{"x", "w"}, Output: []string{"y"}}},
			Initializer: []*onnxpb.TensorProto{{Name: proto.String("w"), Dims: []int64{2}, DataType: proto.Int32(1),
				DataLocation: onnxpb.TensorProto_EXTERNAL.Enum(), ExternalData: append(entries, further...)}},
		},
	}
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{path: data, filepath.Join(filepath.Dir(path), "weights.bin"): make([]byte, 8)} {
		if err := os.WriteFile(file, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A model that is saved as compile saves it has no entry that ATC would take for the
// length.
func TestBareExternalData(t *testing.T) {
	dir := testFolder(t)
	m, err := onnx.Open(filepath.Join(dir, "summed.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.Save(filepath.Join(dir, "bare.onnx"), onnx.SaveOptions{BareExternal: true}); err != nil {
		t.Fatal(err)
	}
	if result := mustCheck(t, words("bare", ""), testEnvironment(dir), Strict); !result.Accept {
		t.Errorf("%v", result.Diagnoses)
	}
}
