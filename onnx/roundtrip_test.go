package onnx_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/npuctl/npuctl/internal/onnxpb"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// unknown is a field that no schema knows, for the end of any message.
func unknown(note string) []byte {
	b := protowire.AppendTag(nil, 1234, protowire.BytesType)
	return protowire.AppendString(b, note)
}

// addUnknown puts an unknown field into m and every message inside it.
func addUnknown(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil || f.IsMap():
		case f.IsList():
			for i := range v.List().Len() {
				addUnknown(v.List().Get(i).Message())
			}
		default:
			addUnknown(v.Message())
		}
		return true
	})
	m.SetUnknown(unknown(string(m.Descriptor().Name())))
}

func str(s string) *string { return &s }

func num[T any](v T) *T { return &v }

func property(key, value string) []*onnxpb.StringStringEntryProto {
	return []*onnxpb.StringStringEntryProto{{Key: &key, Value: &value}}
}

func tensorType(elem tensor.Type, dims ...any) *onnxpb.TypeProto {
	shape := &onnxpb.TensorShapeProto{}
	for _, d := range dims {
		dim := &onnxpb.TensorShapeProto_Dimension{}
		switch d := d.(type) {
		case int:
			dim.Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: int64(d)}
		case string:
			dim.Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: d}
			dim.Denotation = str("DATA_BATCH")
		}
		shape.Dim = append(shape.Dim, dim)
	}
	return &onnxpb.TypeProto{
		Value:      &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{ElemType: num(int32(elem)), Shape: shape}},
		Denotation: str("IMAGE"),
	}
}

func info(name string, t *onnxpb.TypeProto) *onnxpb.ValueInfoProto {
	return &onnxpb.ValueInfoProto{Name: &name, Type: t, DocString: str("value " + name), MetadataProps: property("of", name)}
}

func rawTensor(name string, elem tensor.Type, raw []byte, dims ...int64) *onnxpb.TensorProto {
	return &onnxpb.TensorProto{Name: &name, DataType: num(int32(elem)), Dims: dims, RawData: raw, DocString: str("doc"), MetadataProps: property("t", name)}
}

// everyTensor gives one tensor of each element type as raw_data, and one of each
// typed field.
func everyTensor() (out []*onnxpb.TensorProto) {
	for _, elem := range tensor.Types() {
		if size, ok := elem.RawSize(5); ok {
			out = append(out, rawTensor("raw_"+elem.String(), elem, bytes.Repeat([]byte{1}, int(size)), 5))
		}
	}
	typed := func(name string, elem tensor.Type, n int64) *onnxpb.TensorProto {
		t := &onnxpb.TensorProto{Name: str("typed_" + name), DataType: num(int32(elem)), Dims: []int64{n}}
		out = append(out, t)
		return t
	}
	typed("float", tensor.Float32, 2).FloatData = []float32{1, 2}
	typed("complex", tensor.Complex64, 1).FloatData = []float32{1, 2}
	typed("double", tensor.Float64, 1).DoubleData = []float64{1.5}
	typed("int32", tensor.Int32, 2).Int32Data = []int32{-1, 2}
	typed("half", tensor.Float16, 1).Int32Data = []int32{0x3c00}
	typed("int4", tensor.Int4, 3).Int32Data = []int32{0x21, 3}
	typed("uint2", tensor.Uint2, 5).Int32Data = []int32{0xe4, 1}
	typed("fp8", tensor.Float8E4M3FN, 2).Int32Data = []int32{0x38, 0x7f}
	typed("int64", tensor.Int64, 2).Int64Data = []int64{-3, 4}
	typed("uint64", tensor.Uint64, 1).Uint64Data = []uint64{1 << 63}
	typed("uint32", tensor.Uint32, 1).Uint64Data = []uint64{7}
	typed("strings", tensor.String, 2).StringData = [][]byte{[]byte("a"), {0xff, 0}}
	typed("empty", tensor.Float32, 0)
	return out
}

func sparse(name string) *onnxpb.SparseTensorProto {
	return &onnxpb.SparseTensorProto{
		Values:  rawTensor(name, tensor.Float32, make([]byte, 8), 2),
		Indices: &onnxpb.TensorProto{Name: str("positions"), DataType: num(int32(tensor.Int64)), Dims: []int64{2}, Int64Data: []int64{0, 5}},
		Dims:    []int64{3, 4},
	}
}

func attribute(name string, kind onnxpb.AttributeProto_AttributeType, set func(*onnxpb.AttributeProto)) *onnxpb.AttributeProto {
	a := &onnxpb.AttributeProto{Name: &name, Type: &kind, DocString: str("attribute")}
	if set != nil {
		set(a)
	}
	return a
}

func branch(output string) *onnxpb.GraphProto {
	return &onnxpb.GraphProto{
		Name:        str("branch"),
		Node:        []*onnxpb.NodeProto{{OpType: str("Add"), Input: []string{"x", "inner_" + output}, Output: []string{output}}},
		Initializer: []*onnxpb.TensorProto{rawTensor("inner_"+output, tensor.Float32, make([]byte, 8), 2)},
		Output:      []*onnxpb.ValueInfoProto{info(output, tensorType(tensor.Float32, 2))},
		ValueInfo:   []*onnxpb.ValueInfoProto{info("nobody", nil)},
	}
}

func everyAttribute() []*onnxpb.AttributeProto {
	type a = onnxpb.AttributeProto
	return []*onnxpb.AttributeProto{
		attribute("f", onnxpb.AttributeProto_FLOAT, func(p *a) { p.F = num(float32(0)) }),
		attribute("i", onnxpb.AttributeProto_INT, func(p *a) { p.I = num(int64(0)) }),
		attribute("absent", onnxpb.AttributeProto_INT, nil),
		attribute("s", onnxpb.AttributeProto_STRING, func(p *a) { p.S = []byte{} }),
		attribute("t", onnxpb.AttributeProto_TENSOR, func(p *a) { p.T = rawTensor("inside", tensor.Int64, make([]byte, 8)) }),
		attribute("g", onnxpb.AttributeProto_GRAPH, func(p *a) { p.G = branch("g_out") }),
		attribute("floats", onnxpb.AttributeProto_FLOATS, func(p *a) { p.Floats = []float32{1, 0.5} }),
		attribute("ints", onnxpb.AttributeProto_INTS, func(p *a) { p.Ints = []int64{-1, 1 << 40} }),
		attribute("none", onnxpb.AttributeProto_INTS, nil),
		attribute("strings", onnxpb.AttributeProto_STRINGS, func(p *a) { p.Strings = [][]byte{[]byte("a"), {}} }),
		attribute("tensors", onnxpb.AttributeProto_TENSORS, func(p *a) { p.Tensors = everyTensor() }),
		attribute("graphs", onnxpb.AttributeProto_GRAPHS, func(p *a) { p.Graphs = []*onnxpb.GraphProto{branch("a_out"), branch("b_out")} }),
		attribute("tp", onnxpb.AttributeProto_TYPE_PROTO, func(p *a) { p.Tp = tensorType(tensor.Bool, "n") }),
		attribute("tps", onnxpb.AttributeProto_TYPE_PROTOS, func(p *a) { p.TypeProtos = []*onnxpb.TypeProto{tensorType(tensor.Int8, 1), {}} }),
		attribute("sparse", onnxpb.AttributeProto_SPARSE_TENSOR, func(p *a) { p.SparseTensor = sparse("s") }),
		attribute("sparses", onnxpb.AttributeProto_SPARSE_TENSORS, func(p *a) { p.SparseTensors = []*onnxpb.SparseTensorProto{sparse(""), sparse("t")} }),
		attribute("lies", onnxpb.AttributeProto_FLOAT, func(p *a) { p.T = rawTensor("hidden", tensor.Bool, []byte{1}, 1) }),
	}
}

// everything is a model that has every field of every message of the schema.
func everything() *onnxpb.ModelProto {
	opsets := []*onnxpb.OperatorSetIdProto{{Domain: str(""), Version: num(int64(25))}, {Version: num(int64(25))}, {Domain: str("my"), Version: num(int64(0))}}
	device := []*onnxpb.NodeDeviceConfigurationProto{{
		ConfigurationId: str("c"), PipelineStage: num(int32(0)),
		ShardingSpec: []*onnxpb.ShardingSpecProto{{
			TensorName: str("x"), Device: []int64{0, 1},
			IndexToDeviceGroupMap: []*onnxpb.IntIntListEntryProto{{Key: num(int64(0)), Value: []int64{1}}},
			ShardedDim: []*onnxpb.ShardedDimProto{{Axis: num(int64(0)), SimpleSharding: []*onnxpb.SimpleShardedDimProto{{
				Dim: &onnxpb.SimpleShardedDimProto_DimValue{DimValue: 2}, NumShards: num(int64(2)),
			}}}},
		}},
	}}
	sequence := &onnxpb.TypeProto{Value: &onnxpb.TypeProto_SequenceType{SequenceType: &onnxpb.TypeProto_Sequence{ElemType: &onnxpb.TypeProto{
		Value: &onnxpb.TypeProto_OptionalType{OptionalType: &onnxpb.TypeProto_Optional{ElemType: &onnxpb.TypeProto{
			Value: &onnxpb.TypeProto_MapType{MapType: &onnxpb.TypeProto_Map{KeyType: num(int32(tensor.String)), ValueType: tensorType(tensor.Int8)}},
		}}},
	}}}}
	opaque := &onnxpb.TypeProto{Value: &onnxpb.TypeProto_OpaqueType{OpaqueType: &onnxpb.TypeProto_Opaque{Domain: str("d"), Name: str("n")}}}
	return &onnxpb.ModelProto{
		IrVersion: num(int64(14)), ProducerName: str(""), ProducerVersion: str("1"), Domain: str("org"), ModelVersion: num(int64(0)),
		DocString: str(""), OpsetImport: opsets, MetadataProps: append(property("k", "v"), &onnxpb.StringStringEntryProto{Key: str("only key")}),
		TrainingInfo: []*onnxpb.TrainingInfoProto{{
			Initialization: branch("init"), Algorithm: branch("algorithm"),
			InitializationBinding: property("a", "b"), UpdateBinding: property("c", "d"),
		}},
		Configuration: []*onnxpb.DeviceConfigurationProto{{Name: str("c"), NumDevices: num(int32(2)), Device: []string{"a", "b"}}},
		Functions: []*onnxpb.FunctionProto{{
			Name: str("F"), Domain: str("my"), Overload: str("second"), DocString: str("doc"), Input: []string{"a", "b"}, Output: []string{"c"},
			Attribute: []string{"must"}, AttributeProto: everyAttribute()[:5], OpsetImport: opsets,
			Node: []*onnxpb.NodeProto{{
				OpType: str("LeakyRelu"), Domain: str(""), Input: []string{"a"}, Output: []string{"c"},
				Attribute: []*onnxpb.AttributeProto{attribute("alpha", onnxpb.AttributeProto_FLOAT, func(p *onnxpb.AttributeProto) { p.RefAttrName = str("must") })},
			}},
			ValueInfo: []*onnxpb.ValueInfoProto{info("c", sequence)}, MetadataProps: property("f", "F"),
		}},
		Graph: &onnxpb.GraphProto{
			Name: str(""), DocString: str("graph"), MetadataProps: property("g", "G"),
			Node: []*onnxpb.NodeProto{
				{ // before the node that makes its input
					Name: str("late"), OpType: str("F"), Domain: str("my"), Overload: str("second"), Input: []string{"t", "", "x"}, Output: []string{"", "y"},
					DocString: str("node"), MetadataProps: property("n", "N"), DeviceConfigurations: device,
				},
				{Name: str(""), OpType: str("Everything"), Domain: str("ai.onnx"), Input: []string{"x", ""}, Output: []string{"t", "u"}, Attribute: everyAttribute()},
			},
			Initializer:            everyTensor(),
			SparseInitializer:      []*onnxpb.SparseTensorProto{sparse("sp")},
			Input:                  []*onnxpb.ValueInfoProto{info("x", tensorType(tensor.Float32, "batch", 2, nil)), info("typed_float", tensorType(tensor.Float32, 2)), info("seq", sequence)},
			Output:                 []*onnxpb.ValueInfoProto{info("y", opaque), info("y", nil), info("u", &onnxpb.TypeProto{})},
			ValueInfo:              []*onnxpb.ValueInfoProto{info("t", tensorType(tensor.Float32, -1)), info("nobody", sequence), info("typed_int64", tensorType(tensor.Int64, 2)), info("y", nil)},
			QuantizationAnnotation: []*onnxpb.TensorAnnotation{{TensorName: str("x"), QuantParameterTensorNames: property("SCALE_TENSOR", "typed_float")}},
		},
	}
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parse(t testing.TB, b []byte) *onnx.Model {
	t.Helper()
	m, err := onnx.Parse(b, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func encode(t testing.TB, m *onnx.Model) []byte {
	t.Helper()
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sameMessage holds two encoded models against each other as the generated bindings read them.
func sameMessage(t testing.TB, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	var a, b onnxpb.ModelProto
	if err := proto.Unmarshal(got, &a); err != nil {
		t.Fatalf("what was encoded is no message: %v", err)
	}
	if err := proto.Unmarshal(want, &b); err != nil {
		t.Fatal(err)
	}
	t.Errorf("the model came back as other bytes (-want +got):\n%s", cmp.Diff(prototext.Format(&b), prototext.Format(&a)))
}

func TestRoundTripKeepsEveryByte(t *testing.T) {
	whole := everything()
	withUnknown := everything()
	addUnknown(withUnknown.ProtoReflect())
	empty := &onnxpb.ModelProto{Graph: &onnxpb.GraphProto{}}
	for name, message := range map[string]*onnxpb.ModelProto{"everything": whole, "unknown fields": withUnknown, "nothing": empty} {
		t.Run(name, func(t *testing.T) {
			b := marshal(t, message)
			m := parse(t, b)
			sameMessage(t, encode(t, m), b)
			path := filepath.Join(t.TempDir(), "m.onnx")
			if err := m.Save(path, onnx.SaveOptions{}); err != nil {
				t.Fatal(err)
			}
			saved, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			sameMessage(t, saved, b)
		})
	}
}

func TestRoundTripOfEveryIRVersion(t *testing.T) {
	for ir := int64(1); ir <= 14; ir++ {
		t.Run(fmt.Sprint(ir), func(t *testing.T) {
			p := &onnxpb.ModelProto{IrVersion: &ir, Graph: &onnxpb.GraphProto{
				Node:        []*onnxpb.NodeProto{{OpType: str("Add"), Input: []string{"x", "w"}, Output: []string{"y"}}},
				Initializer: []*onnxpb.TensorProto{rawTensor("w", tensor.Float32, make([]byte, 8), 2)},
				Input:       []*onnxpb.ValueInfoProto{info("x", tensorType(tensor.Float32, 2))},
				Output:      []*onnxpb.ValueInfoProto{info("y", tensorType(tensor.Float32, 2))},
			}}
			if ir < 4 {
				p.Graph.Input = append(p.Graph.Input, info("w", tensorType(tensor.Float32, 2)))
			}
			if ir >= 3 {
				p.OpsetImport = []*onnxpb.OperatorSetIdProto{{Version: num(int64(7))}}
			}
			b := marshal(t, p)
			m := parse(t, b)
			sameMessage(t, encode(t, m), b)
			if err := m.Check(); err != nil {
				t.Errorf("Check: %v", err)
			}
			if m.Graph.Find("w").Constant() == nil {
				t.Error("w is no constant")
			}
		})
	}
}

// Two fields where the schema has one are one message with the contents of both;
// this is what every protobuf reader makes of them.
func TestFieldsThatStandTwiceAreMerged(t *testing.T) {
	p := everything()
	half := proto.Clone(p).(*onnxpb.ModelProto)
	half.Graph = &onnxpb.GraphProto{Name: str("second half"), Initializer: []*onnxpb.TensorProto{rawTensor("more", tensor.Int8, []byte{1}, 1)}}
	b := append(marshal(t, p), marshal(t, half)...)
	m := parse(t, b)
	if m.Graph.Name != "second half" || m.Graph.Find("more") == nil || len(m.Graph.Nodes()) != 2 {
		t.Errorf("merged graph %q has %d nodes", m.Graph.Name, len(m.Graph.Nodes()))
	}
	var want, got onnxpb.ModelProto
	if err := proto.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(encode(t, m), &got); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got.Graph, want.Graph) {
		t.Error("the merged graph differs from what the generated bindings read")
	}
}

// The same inside of an attribute, a type and a tensor.
func TestMessagesInTwoPieces(t *testing.T) {
	piece := func(number protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
	}
	half := func(m proto.Message) []byte { return marshal(t, m) }
	head := half(&onnxpb.TensorProto{DataType: num(int32(tensor.Int8)), Dims: []int64{2}})
	data := half(&onnxpb.TensorProto{RawData: []byte{1, 2}, DataLocation: onnxpb.TensorProto_DEFAULT.Enum()})
	value := slices.Concat(piece(1, []byte("value")), piece(5, head), piece(5, data), []byte{0xa0, 1, 4})
	node := slices.Concat(piece(2, []byte("c")), piece(4, []byte("Constant")), piece(5, value))
	elem := half(&onnxpb.TypeProto_Tensor{ElemType: num(int32(tensor.Int8))})
	shape := half(&onnxpb.TypeProto_Tensor{Shape: tensorType(tensor.Int8, 2).GetTensorType().GetShape()})
	output := slices.Concat(piece(1, []byte("c")), piece(2, piece(1, elem)), piece(2, piece(1, shape)))
	b := piece(7, slices.Concat(piece(1, node), piece(12, output)))
	m := parse(t, b)
	c := m.Graph.Find("c")
	d, err := c.Constant().Dense()
	if err != nil || d.String() != "INT8[2]{1, 2}" || c.Type.String() != "INT8[2]" {
		t.Errorf("the constant is %v, %v, of type %s", d, err, c.Type)
	}
	if !bytes.Equal(encode(t, m), b) {
		t.Error("the model came back as other bytes")
	}
}

// What value_info says of a stored tensor counts less than the tensor, and stays
// in the file all the same.
func TestStaleTypeOfAnInitializer(t *testing.T) {
	b := marshal(t, &onnxpb.ModelProto{IrVersion: num(int64(8)), Graph: &onnxpb.GraphProto{
		Initializer: []*onnxpb.TensorProto{rawTensor("w", tensor.Int8, []byte{1, 2}, 2)},
		ValueInfo:   []*onnxpb.ValueInfoProto{info("w", tensorType(tensor.Float32, 9))},
	}})
	m := parse(t, b)
	if got := m.Graph.Find("w").Type.String(); got != "INT8[2]" {
		t.Errorf("w is %s", got)
	}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
	sameMessage(t, encode(t, m), b)
}

// A data_location that the schema does not know is none, as every reader of proto2 has it.
func TestUnknownDataLocation(t *testing.T) {
	w := rawTensor("w", tensor.Int8, []byte{1, 2}, 2)
	w.ProtoReflect().SetUnknown([]byte{14 << 3, 7})
	m := parse(t, marshal(t, &onnxpb.ModelProto{Graph: &onnxpb.GraphProto{Initializer: []*onnxpb.TensorProto{w}}}))
	if d, err := m.Graph.Find("w").Initializer().Dense(); err != nil || d.String() != "INT8[2]{1, 2}" {
		t.Errorf("w is %v, %v", d, err)
	}
}

// A packed list and fields in an order of their own are legal. Reading must not mind.
func TestReadsPackedAttributesAndOddOrder(t *testing.T) {
	var a []byte
	a = protowire.AppendTag(a, 20, protowire.VarintType)
	a = protowire.AppendVarint(a, uint64(onnx.AttributeInts))
	a = protowire.AppendTag(a, 8, protowire.BytesType)
	a = protowire.AppendBytes(a, []byte{1, 2, 3})
	a = protowire.AppendTag(a, 1, protowire.BytesType)
	a = protowire.AppendString(a, "axes")
	n := protowire.AppendTag(nil, 5, protowire.BytesType)
	n = protowire.AppendBytes(n, a)
	n = protowire.AppendTag(n, 4, protowire.BytesType)
	n = protowire.AppendString(n, "Squeeze")
	g := protowire.AppendTag(nil, 1, protowire.BytesType)
	g = protowire.AppendBytes(g, n)
	b := protowire.AppendTag(nil, 7, protowire.BytesType)
	b = protowire.AppendBytes(b, g)
	node := parse(t, b).Graph.Nodes()[0]
	if axes, _ := node.Ints("axes"); node.OpType != "Squeeze" || fmt.Sprint(axes) != "[1 2 3]" {
		t.Errorf("%s with axes %v", node.OpType, axes)
	}
}
