package onnxpb

import (
	"bytes"
	"os"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// The generated code and the descriptor beside it must have come from one run of
// the generator.
func TestGeneratedCodeMatchesTheDescriptor(t *testing.T) {
	text, err := os.ReadFile("onnx.textproto")
	if err != nil {
		t.Fatal(err)
	}
	want := new(descriptorpb.FileDescriptorProto)
	if err := prototext.Unmarshal(text, want); err != nil {
		t.Fatalf("parse onnx.textproto: %v", err)
	}
	want.Options = &descriptorpb.FileOptions{}
	got := protodesc.ToFileDescriptorProto(File_npuctl_onnx_proto)
	got.Options = &descriptorpb.FileOptions{}
	got.Syntax, want.Syntax = nil, nil // proto2 is what an absent syntax means
	if !proto.Equal(got, want) {
		t.Errorf("onnx.pb.go and onnx.textproto differ; run go generate\n got %v\nwant %v", got, want)
	}
}

func TestSchema(t *testing.T) {
	if name := File_npuctl_onnx_proto.Package(); name != "npuctl.onnx" {
		t.Errorf("proto package %q would clash with other ONNX bindings", name)
	}
	if syntax := File_npuctl_onnx_proto.Syntax(); syntax != protoreflect.Proto2 {
		t.Errorf("syntax %v, want proto2", syntax)
	}
	if Version_IR_VERSION < 13 {
		t.Errorf("IR version %d, want at least 13", Version_IR_VERSION)
	}
	for _, name := range []string{"FLOAT8E8M0", "UINT4", "INT2", "FLOAT4E2M1"} {
		if _, found := TensorProto_DataType_value[name]; !found {
			t.Errorf("element type %s is missing", name)
		}
	}
}

// What the choice of proto2 is for: each of these messages comes back byte for byte.
// (Lists that a proto3 writer packed against the schema come back unpacked, equal in
// meaning only; who needs the bytes must not marshal what nobody changed.)
func TestRoundTripKeepsBytes(t *testing.T) {
	tests := []struct {
		name    string
		message proto.Message
		wire    []byte
	}{
		{"explicit zero", new(AttributeProto), []byte{0x18, 0x00}},                           // i = 0
		{"empty string", new(NodeProto), []byte{0x0a, 0x00}},                                 // input = [""]
		{"name that is not UTF-8", new(NodeProto), []byte{0x1a, 0x01, 0xff}},                 // name
		{"list that is not packed", new(AttributeProto), []byte{0x40, 0x01, 0x40, 0x02}},     // ints = [1, 2]
		{"unknown field", new(ModelProto), []byte{0x08, 0x0d, 0xba, 0x3e, 0x02, 'h', 'i'}},   // field 999
		{"unknown enumeration", new(TensorProto), []byte{0x10, 0x63}},                        // data_type = 99
		{"overload of a node", new(NodeProto), []byte{0x42, 0x01, 'o'}},                      // overload
		{"device configuration", new(ModelProto), []byte{0xd2, 0x01, 0x03, 0x0a, 0x01, 'd'}}, // configuration
	}
	for _, test := range tests {
		if err := proto.Unmarshal(test.wire, test.message); err != nil {
			t.Errorf("%s: unmarshal: %v", test.name, err)
			continue
		}
		got, err := proto.MarshalOptions{Deterministic: true}.Marshal(test.message)
		if err != nil {
			t.Errorf("%s: marshal: %v", test.name, err)
			continue
		}
		if !bytes.Equal(got, test.wire) {
			t.Errorf("%s: % x came back as % x", test.name, test.wire, got)
		}
	}
}
