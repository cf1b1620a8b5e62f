//go:build cgo && (linux || darwin)

package onnxruntime

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/npuctl/npuctl/internal/onnxpb"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// The tests make their models from messages, so that they stand on nothing above
// this package.

// The newest format that ONNX Runtime 1.17 reads, and the one that brought 4-bit types.
const (
	baseIR, baseOpset       = 9, 20
	fourBitIR, fourBitOpset = 10, 21
)

// model is an ONNX file with the given graph.
func model(t testing.TB, g *onnxpb.GraphProto) []byte {
	t.Helper()
	return modelOf(t, baseIR, baseOpset, g)
}

// modelOf is model for a format and an opset.
func modelOf(t testing.TB, ir, opset int64, g *onnxpb.GraphProto) []byte {
	t.Helper()
	g.Name = proto.String("test")
	b, err := proto.Marshal(&onnxpb.ModelProto{
		IrVersion: proto.Int64(ir),
		OpsetImport: []*onnxpb.OperatorSetIdProto{
			{Version: proto.Int64(opset)},
			{Domain: proto.String("ai.onnx.ml"), Version: proto.Int64(3)},
			{Domain: proto.String("org.example"), Version: proto.Int64(1)},
		},
		Graph: g,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// oneNode is an ONNX file with one node.
func oneNode(t testing.TB, n *onnxpb.NodeProto, inputs, outputs []*onnxpb.ValueInfoProto) []byte {
	t.Helper()
	return model(t, &onnxpb.GraphProto{Node: []*onnxpb.NodeProto{n}, Input: inputs, Output: outputs})
}

func node(op string, inputs, outputs []string, attributes ...*onnxpb.AttributeProto) *onnxpb.NodeProto {
	return &onnxpb.NodeProto{OpType: proto.String(op), Input: inputs, Output: outputs, Attribute: attributes}
}

// inDomain puts a node into another operator set.
func inDomain(domain string, n *onnxpb.NodeProto) *onnxpb.NodeProto {
	n.Domain = proto.String(domain)
	return n
}

func declare(name string, t *onnxpb.TypeProto) *onnxpb.ValueInfoProto {
	return &onnxpb.ValueInfoProto{Name: proto.String(name), Type: t}
}

// tensorOf is the type of a tensor: a number is a fixed dim, a string a named one
// and nil one of which nothing is known. Without dims it is a scalar.
func tensorOf(elem tensor.Type, dims ...any) *onnxpb.TypeProto {
	shape := &onnxpb.TensorShapeProto{}
	for _, dim := range dims {
		d := &onnxpb.TensorShapeProto_Dimension{}
		switch dim := dim.(type) {
		case int:
			d.Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: int64(dim)}
		case string:
			d.Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: dim}
		}
		shape.Dim = append(shape.Dim, d)
	}
	p := anyRank(elem)
	p.GetTensorType().Shape = shape
	return p
}

// anyRank is the type of a tensor of unknown rank.
func anyRank(elem tensor.Type) *onnxpb.TypeProto {
	return &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
		TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(elem))}}}
}

func sequenceOf(inner *onnxpb.TypeProto) *onnxpb.TypeProto {
	return &onnxpb.TypeProto{Value: &onnxpb.TypeProto_SequenceType{
		SequenceType: &onnxpb.TypeProto_Sequence{ElemType: inner}}}
}

func optionalOf(inner *onnxpb.TypeProto) *onnxpb.TypeProto {
	return &onnxpb.TypeProto{Value: &onnxpb.TypeProto_OptionalType{
		OptionalType: &onnxpb.TypeProto_Optional{ElemType: inner}}}
}

func mapOf(key tensor.Type, value *onnxpb.TypeProto) *onnxpb.TypeProto {
	return &onnxpb.TypeProto{Value: &onnxpb.TypeProto_MapType{
		MapType: &onnxpb.TypeProto_Map{KeyType: proto.Int32(int32(key)), ValueType: value}}}
}

func intAttribute(name string, i int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: &name, Type: onnxpb.AttributeProto_INT.Enum(), I: &i}
}

func intsAttribute(name string, ints ...int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: &name, Type: onnxpb.AttributeProto_INTS.Enum(), Ints: ints}
}

func stringsAttribute(name string, list ...string) *onnxpb.AttributeProto {
	a := &onnxpb.AttributeProto{Name: &name, Type: onnxpb.AttributeProto_STRINGS.Enum()}
	for _, s := range list {
		a.Strings = append(a.Strings, []byte(s))
	}
	return a
}

func graphAttribute(name string, g *onnxpb.GraphProto) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: &name, Type: onnxpb.AttributeProto_GRAPH.Enum(), G: g}
}

// initializer is a constant of the graph.
func initializer(name string, d *tensor.Dense) *onnxpb.TensorProto {
	p := &onnxpb.TensorProto{Name: &name, DataType: proto.Int32(int32(d.Type())), RawData: d.Raw()}
	for _, dim := range d.Shape() {
		p.Dims = append(p.Dims, int64(dim))
	}
	return p
}

// identity is a model that gives back its input x as y.
func identity(t testing.TB, x *onnxpb.TypeProto) []byte {
	t.Helper()
	return oneNode(t, node("Identity", []string{"x"}, []string{"y"}),
		[]*onnxpb.ValueInfoProto{declare("x", x)}, []*onnxpb.ValueInfoProto{declare("y", x)})
}

// samples returns an array of the given type and shape with elements that differ.
func samples(t testing.TB, elem tensor.Type, shape ...int) *tensor.Dense {
	t.Helper()
	count, err := tensor.Count(shape)
	if err != nil {
		t.Fatal(err)
	}
	if elem == tensor.String {
		words := []string{"", "a", "nul\x00inside", "größer", "长"}
		list := make([]string, count)
		for i := range list {
			list[i] = words[i%len(words)]
		}
		return tensor.Of(list, shape...)
	}
	size, ok := elem.RawSize(int64(count))
	if !ok {
		t.Fatalf("%v has no raw form", elem)
	}
	raw := make([]byte, size, size+8)
	for i := range raw {
		raw[i] = byte(7*i + 1)
		if elem == tensor.Bool {
			raw[i] = byte(i % 2)
		}
	}
	if bits := count * elem.Bits() % 8; bits != 0 {
		raw[size-1] &= 1<<bits - 1 // the filling of the last byte
	}
	d, err := tensor.FromRaw(elem, shape, raw)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
