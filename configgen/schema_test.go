package configgen

import (
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

func TestSchemaReads(t *testing.T) {
	s, err := readSchema(protoText)
	if err != nil {
		t.Fatal(err)
	}
	root := s.message("ModelConfig")
	for _, test := range []struct {
		name   string
		number int32
		kind   Kind
	}{
		{"name", 1, String}, {"max_batch_size", 4, Int32}, {"input", 5, Nested}, {"parameters", 14, Nested},
		{"backend", 17, String}, {"response_cache", 24, Nested}, {"model_metrics", 26, Nested},
	} {
		f := root.Field(test.name)
		if f == nil || f.Number != test.number || f.Kind != test.kind {
			t.Errorf("%s: %+v", test.name, f)
		}
	}
	if f := root.Field("dynamic_batching"); f.Oneof != "scheduling_choice" {
		t.Errorf("dynamic_batching is in %q", f.Oneof)
	}
	if f := root.Field("parameters"); !f.Map || f.Message.Name != "ModelConfig.ParametersEntry" || f.Message.Field("value").Message.Name != "ModelParameter" {
		t.Errorf("parameters: %+v", f)
	}
}

// Everything the typed model names is in the schema, and the other way round.
func TestTypedModelIsComplete(t *testing.T) {
	seen := map[string]bool{}
	var visit func(typ reflect.Type, m *MessageType)
	visit = func(typ reflect.Type, m *MessageType) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		fields := 0
		for i := range typ.NumField() {
			name := typ.Field(i).Tag.Get("pb")
			if name == "" {
				continue
			}
			fields++
			f := m.Field(name)
			if f == nil {
				t.Errorf("%s: the format has no field %s", m.Name, name)
				continue
			}
			if f.Kind == Nested {
				visit(typ.Field(i).Type, f.Message)
			}
		}
		if fields != len(m.Fields) {
			t.Errorf("%s has %d fields, the typed model %d", m.Name, len(m.Fields), fields)
		}
		seen[m.Name] = true
	}
	visit(reflect.TypeFor[Config](), Root())
	messages, _ := Schema()
	for _, m := range messages {
		if !seen[m.Name] {
			t.Errorf("%s is not in the typed model", m.Name)
		}
	}
}

// descriptor makes the schema known to Go's protobuf library, which is a second reader
// in tests.
func descriptor(t testing.TB) protoreflect.MessageDescriptor {
	t.Helper()
	file := &descriptorpb.FileDescriptorProto{Name: proto.String("modelconfig.proto"), Package: proto.String("npuctl.triton"), Syntax: proto.String("proto3")}
	messages, enums := Schema()
	for _, e := range enums {
		d := &descriptorpb.EnumDescriptorProto{Name: proto.String(flat(e.Name))}
		for _, v := range e.Values {
			// Go wants names that are unique in the package; the reader looks them up by field.
			d.Value = append(d.Value, &descriptorpb.EnumValueDescriptorProto{Name: proto.String(v.Name), Number: proto.Int32(v.Number)})
		}
		file.EnumType = append(file.EnumType, d)
	}
	for _, m := range messages {
		file.MessageType = append(file.MessageType, describe(m))
	}
	d, err := protodesc.NewFile(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d.Messages().ByName("ModelConfig")
}

// flat makes one name of the names of nested messages.
func flat(name string) string {
	out := []byte(name)
	for i, b := range out {
		if b == '.' {
			out[i] = '_'
		}
	}
	return string(out)
}

var kinds = map[Kind]descriptorpb.FieldDescriptorProto_Type{
	Int32: descriptorpb.FieldDescriptorProto_TYPE_INT32, Int64: descriptorpb.FieldDescriptorProto_TYPE_INT64,
	Uint32: descriptorpb.FieldDescriptorProto_TYPE_UINT32, Uint64: descriptorpb.FieldDescriptorProto_TYPE_UINT64,
	Float: descriptorpb.FieldDescriptorProto_TYPE_FLOAT, Double: descriptorpb.FieldDescriptorProto_TYPE_DOUBLE,
	Bool: descriptorpb.FieldDescriptorProto_TYPE_BOOL, String: descriptorpb.FieldDescriptorProto_TYPE_STRING,
	EnumOf: descriptorpb.FieldDescriptorProto_TYPE_ENUM, Nested: descriptorpb.FieldDescriptorProto_TYPE_MESSAGE,
}

func describe(m *MessageType) *descriptorpb.DescriptorProto {
	d := &descriptorpb.DescriptorProto{Name: proto.String(flat(m.Name))}
	oneofs := map[string]int32{}
	for _, f := range m.Fields {
		label := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
		if f.Repeated {
			label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED
		}
		kind := kinds[f.Kind]
		field := &descriptorpb.FieldDescriptorProto{Name: proto.String(f.Name), Number: proto.Int32(f.Number), Label: &label, Type: &kind}
		switch {
		case f.Message != nil:
			field.TypeName = proto.String(".npuctl.triton." + flat(f.Message.Name))
		case f.Enum != nil:
			field.TypeName = proto.String(".npuctl.triton." + flat(f.Enum.Name))
		}
		if f.Oneof != "" {
			index, ok := oneofs[f.Oneof]
			if !ok {
				index = int32(len(d.OneofDecl))
				oneofs[f.Oneof] = index
				d.OneofDecl = append(d.OneofDecl, &descriptorpb.OneofDescriptorProto{Name: proto.String(f.Oneof)})
			}
			field.OneofIndex = proto.Int32(index)
		}
		d.Field = append(d.Field, field)
	}
	return d
}

// A descriptor that Go's protobuf library accepts has well-formed names and numbers.
func TestSchemaIsADescriptor(t *testing.T) {
	m := dynamicpb.NewMessage(descriptor(t))
	if m.Descriptor().Fields().Len() != len(Root().Fields) {
		t.Errorf("%d fields", m.Descriptor().Fields().Len())
	}
}
