package configgen

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"
)

// example is a file as people write them: in no order, with comments everywhere.
const example = `# Served on two cards.
parameters: [ # of the backend
  { key: "device_ids" value: { string_value: "0,1" } }, # both
  { key: "graph.ge.dynamicDims", value { string_value: "1;2;4;8" } }
]
input { name: "image"; data_type: TYPE_FP32 dims: [ 3, # channels
  224, 224 ] } # RGB
backend: 'npu_ge'

# largest gear
max_batch_size: 8 # and no more
input <
  name: "mask" data_type: TYPE_BOOL dims: 1
  # the end
>
output { name: "feat" data_type: TYPE_FP32 dims: [ 512 ] }
dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 2000 }
version_policy { latest { num_versions: 2 } }
# last words
`

const examplePrinted = `backend: "npu_ge"
# largest gear
max_batch_size: 8 # and no more
input [
  {
    name: "image"
    data_type: TYPE_FP32
    dims: [
      3, # channels
      224,
      224
    ]
  }, # RGB
  {
    name: "mask"
    data_type: TYPE_BOOL
    dims: [ 1 ]
    # the end
  }
]
output [
  {
    name: "feat"
    data_type: TYPE_FP32
    dims: [ 512 ]
  }
]
dynamic_batching {
  preferred_batch_size: [ 4, 8 ]
  max_queue_delay_microseconds: 2000
}
version_policy { latest { num_versions: 2 } }
# Served on two cards.
# of the backend
parameters { key: "device_ids" value { string_value: "0,1" } } # both
parameters { key: "graph.ge.dynamicDims" value { string_value: "1;2;4;8" } }
# last words
`

func TestPrint(t *testing.T) {
	doc, err := Parse("config.pbtxt", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(examplePrinted, string(doc.Print())); d != "" {
		t.Errorf("printed (-want +got):\n%s", d)
	}
	sameAgain(t, doc, Parse)
}

func TestNewDocument(t *testing.T) {
	c := &Config{
		Name: "resnet", Backend: "npu_ge",
		Input:         []Input{{Name: "x", DataType: TypeFP32, Format: FormatNCHW, Dims: []int64{3, -1, -1}}},
		Output:        []Output{{Name: "y", DataType: TypeFP32, Dims: []int64{1000}, LabelFilename: "labels.txt"}},
		InstanceGroup: []InstanceGroup{{Kind: KindCPU, Count: 4}},
		Parameters:    []Entry[string, Parameter]{{Key: "static_model", Value: Parameter{StringValue: "1"}}, {Key: "empty"}},
	}
	doc := NewDocument("config.pbtxt", c)
	doc.Root.Explain("max_batch_size", "the graph has its batch in its shapes")
	want := `name: "resnet"
backend: "npu_ge"
# the graph has its batch in its shapes
max_batch_size: 0
input [
  {
    name: "x"
    data_type: TYPE_FP32
    format: FORMAT_NCHW
    dims: [ 3, -1, -1 ]
  }
]
output [
  {
    name: "y"
    data_type: TYPE_FP32
    dims: [ 1000 ]
    label_filename: "labels.txt"
  }
]
instance_group [
  {
    kind: KIND_CPU
    count: 4
  }
]
parameters { key: "static_model" value { string_value: "1" } }
parameters { key: "empty" value { } }
`
	if d := cmp.Diff(want, string(doc.Print())); d != "" {
		t.Errorf("printed (-want +got):\n%s", d)
	}
}

// What the format does not know survives printing, and so do comments.
func TestUnknownSurvives(t *testing.T) {
	text := "name: \"m\" # mine\n# of the future\nfuture_block {\n   depth: [ 1, { a: 2 } ] # kept\n}\ninput [ { name: \"x\" speed: fast } ]\n"
	if _, err := Parse("c", []byte(text)); err == nil {
		t.Error("the strict reader takes it")
	}
	doc, err := ParseLenient("c", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(doc.Unknown()); n != 2 {
		t.Errorf("%d unknown fields", n)
	}
	printed := string(doc.Print())
	for _, piece := range []string{"# mine", "# of the future\nfuture_block {\n   depth: [ 1, { a: 2 } ] # kept\n}", "speed: fast"} {
		if !strings.Contains(printed, piece) {
			t.Errorf("%q is lost:\n%s", piece, printed)
		}
	}
	sameAgain(t, doc, ParseLenient)
}

// No comment is lost, wherever it stands.
func TestCommentsSurvive(t *testing.T) {
	pieces := []string{"name", ":", `"a"`, `"b"`, ";", "input", "[", "{", "name", ":", `"x"`, "dims", ":", "[", "1", ",", "2", "]", "}", ",", "{", "}", "]",
		"parameters", "{", "key", ":", `"k"`, "value", "{", "}", "}", "dynamic_batching", ":", "<", ">"}
	for at := range len(pieces) + 1 {
		var b strings.Builder
		for i, p := range pieces {
			if i == at {
				b.WriteString("# one\n# two\n")
			}
			b.WriteString(p + " ")
		}
		if at == len(pieces) {
			b.WriteString("# one\n# two\n")
		}
		doc, err := Parse("c", []byte(b.String()))
		if err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
		printed := string(doc.Print())
		if strings.Count(printed, "one") != 1 || strings.Count(printed, "two") != 1 {
			t.Errorf("comments before piece %d:\n%s\nprinted\n%s", at, b.String(), printed)
		}
		sameAgain(t, doc, Parse)
	}
}

// Printing, reading and printing again changes nothing, and loses nothing, for any
// config; Go's reader reads the same from what is printed.
func TestRoundTrip(t *testing.T) {
	second := descriptor(t)
	rapid.Check(t, func(t *rapid.T) {
		c := &Config{}
		fill(t, reflect.ValueOf(c).Elem(), Root(), 0)
		printed := NewDocument("c", c).Print()
		doc, err := Parse("c", printed)
		if err != nil {
			t.Fatalf("%v\n%s", err, printed)
		}
		if again := doc.Print(); string(again) != string(printed) {
			t.Fatalf("printed a second time it differs:\n%s\n---\n%s", printed, again)
		}
		back := doc.Config()
		if again := NewDocument("c", back).Print(); string(again) != string(printed) {
			t.Fatalf("the values differ:\n%s\n---\n%s", printed, again)
		}
		m := dynamicpb.NewMessage(second)
		if err := prototext.Unmarshal(printed, m); err != nil {
			t.Fatalf("Go's reader: %v\n%s", err, printed)
		}
		wire, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if n := proto.Size(m); n != len(wire) {
			t.Fatalf("%d bytes and %d", n, len(wire))
		}
	})
}

// fill sets fields of a struct at random.
func fill(t *rapid.T, v reflect.Value, m *MessageType, depth int) {
	oneofs := map[string]bool{}
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("pb")
		if name == "" {
			continue
		}
		f := m.Field(name)
		isMapValue := f.Kind == Nested && v.Field(i).Kind() == reflect.Struct
		if !isMapValue && rapid.IntRange(0, 2+depth).Draw(t, name+"?") != 0 || oneofs[f.Oneof] {
			continue
		}
		if f.Oneof != "" {
			oneofs[f.Oneof] = true
		}
		fillField(t, v.Field(i), f, depth)
	}
}

func fillField(t *rapid.T, v reflect.Value, f *FieldType, depth int) {
	if !f.Repeated {
		fillValue(t, v, f, depth)
		return
	}
	keys := map[any]bool{}
	for range rapid.IntRange(1, 3).Draw(t, f.Name+" count") {
		element := reflect.New(v.Type().Elem()).Elem()
		fillValue(t, element, f, depth)
		if f.Map {
			key := element.FieldByName("Key").Interface()
			if keys[key] {
				continue
			}
			keys[key] = true
		}
		v.Set(reflect.Append(v, element))
	}
}

func fillValue(t *rapid.T, v reflect.Value, f *FieldType, depth int) {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch f.Kind {
	case Nested:
		fill(t, v, f.Message, depth+1)
	case EnumOf:
		v.SetInt(int64(rapid.SampledFrom(f.Enum.Values).Draw(t, f.Name).Number))
	case Int32:
		v.SetInt(int64(rapid.Int32().Draw(t, f.Name)))
	case Int64:
		v.SetInt(rapid.Int64().Draw(t, f.Name))
	case Uint32:
		v.SetUint(uint64(rapid.Uint32().Draw(t, f.Name)))
	case Uint64:
		v.SetUint(rapid.Uint64().Draw(t, f.Name))
	case Float:
		v.SetFloat(float64(rapid.Float32().Draw(t, f.Name)))
	case Double:
		v.SetFloat(rapid.Float64().Draw(t, f.Name))
	case Bool:
		v.SetBool(rapid.Bool().Draw(t, f.Name))
	case String:
		v.SetString(rapid.String().Draw(t, f.Name))
	}
}

func TestApplyEdits(t *testing.T) {
	got, err := ApplyEdits("name: \"m\"\nmax: 8\n", []Edit{{10, 13, "max_batch_size"}, {6, 9, `"n"`}, {17, 17, "# end\n"}})
	if err != nil || got != "name: \"n\"\nmax_batch_size: 8\n# end\n" {
		t.Errorf("%q, %v", got, err)
	}
	for _, edits := range [][]Edit{{{0, 3, ""}, {2, 4, ""}}, {{5, 4, ""}}, {{0, 100, ""}}} {
		if _, err := ApplyEdits("name: \"m\"", edits); err == nil {
			t.Errorf("%v is taken", edits)
		}
	}
}

// Any string comes back from a literal.
func TestQuote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		if got := unquote(quote(want)); got != want {
			t.Fatalf("%q became %q by %s", want, got, quote(want))
		}
	})
}
