package configgen

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/types/dynamicpb"
)

// probes are pieces of text with what protobuf's text format says to them in C++, the
// reader inside the server: "" for taken, else its words. Where Go's reader differs it
// is said.
var probes = []struct {
	text   string
	server string
	goSays bool // Go's reader says the opposite
}{
	{text: ``},
	{text: `# nothing but a comment`},
	{text: `name: "m"`},
	{text: `name: 'm'`},
	{text: `name: "a" "b" 'c'`},
	{text: "name: \"a\" # first\n  \"b\""},
	{text: `name: "m", backend: "b"; max_batch_size: 4`},
	{text: `name: "m",, backend: "b"`, server: "Expected identifier, got: ,"},
	{text: `name: "m";;`, server: "Expected identifier, got: ;"},
	{text: `name "m"`, server: `Expected ":", found ""m"".`},
	{text: `name = "m"`, server: `Expected ":", found "=".`},
	{text: `name: m`, server: "Expected string, got: m"},
	{text: `"name": "m"`, server: `Expected identifier, got: "name"`},
	{text: `{ name: "m" }`, server: "Expected identifier, got: {"},
	{text: `names: "m"`, server: `Message type "inference.ModelConfig" has no field named "names".`},
	{text: `Name: "m"`, server: `Message type "inference.ModelConfig" has no field named "Name".`},
	{text: `1: "m"`, server: "Expected identifier, got: 1"},
	{text: `[a.b]: 1`, server: `Extension "a.b" is not defined or is not an extension of "inference.ModelConfig".`},
	{text: `name: "a" name: "b"`, server: `Non-repeated field "name" is specified multiple times.`},
	{text: `name: "" name: "b"`, goSays: true},
	{text: `max_batch_size: 0 max_batch_size: 8`, goSays: true},
	{text: `max_batch_size: 8 max_batch_size: 8`, server: `Non-repeated field "max_batch_size" is specified multiple times.`},
	{text: `dynamic_batching { } dynamic_batching { }`, server: `Non-repeated field "dynamic_batching" is specified multiple times.`},
	{text: `dynamic_batching { } ensemble_scheduling { }`, server: `Field "ensemble_scheduling" is specified along with field "dynamic_batching", another member of oneof "scheduling_choice".`},
	{text: `dynamic_batching: { }`},
	{text: `dynamic_batching <>`},
	{text: `dynamic_batching < }`, server: `Expected ">", found "}".`},
	{text: `dynamic_batching true`, server: `Expected "{", found "true".`},
	{text: `dynamic_batching {`, server: "Expected identifier, got: "},
	{text: `dynamic_batching [ { } ]`, server: `Expected "{", found "[".`},
	{text: `input [ ]`},
	{text: `input: [ { }, { } ]`},
	{text: `input [ { } { } ]`, server: `Expected ",", found "{".`},
	{text: `input [ { }, ]`, server: `Expected "{", found "]".`},
	{text: `input [ { name: "a" } ] input { name: "b" } input <name: "c">`},
	{text: `input { dims: [ 1, 2 ] dims: 3 }`},
	{text: `input { dims [ 1 ] }`, server: `Expected ":", found "[".`},
	{text: `input { dims: [ 1 2 ] }`, server: `Expected ",", found "2".`},
	{text: `input { dims: [ 1, ] }`, server: "Expected integer, got: ]"},
	{text: `input { dims: [ [ 1 ] ] }`, server: "Expected integer, got: ["},
	{text: `input { dims: - 1 }`},
	{text: `input { dims: +1 }`, server: "Expected integer, got: +"},
	{text: `input { dims: 0x1F }`},
	{text: `input { dims: 0x }`, server: `"0x" must be followed by hex digits.`},
	{text: `input { dims: 017 }`},
	{text: `input { dims: 018 }`, server: "Numbers starting with leading zero must be in octal."},
	{text: `input { dims: 1.0 }`, server: "Expected integer, got: 1.0"},
	{text: `input { dims: 8f }`, server: "Expected integer, got: 8f"},
	{text: `input { dims: 1e2 }`, server: "Expected integer, got: 1e2"},
	{text: `input { dims: 1_000 }`, server: "Need space between number and identifier."},
	{text: `input { dims: "1" }`, server: `Expected integer, got: "1"`},
	{text: `input { dims: 9223372036854775807 }`},
	{text: `input { dims: 9223372036854775808 }`, server: "Integer out of range (9223372036854775808)"},
	{text: `input { dims: -9223372036854775808 }`},
	{text: `max_batch_size: 2147483648`, server: "Integer out of range (2147483648)"},
	{text: `model_warmup { count: -1 }`, server: "Expected integer, got: -"},
	{text: `model_warmup { count: 4294967296 }`, server: "Integer out of range (4294967296)"},
	{text: `dynamic_batching { max_queue_delay_microseconds: 18446744073709551615 }`},
	{text: `dynamic_batching { preserve_ordering: True }`},
	{text: `dynamic_batching { preserve_ordering: t }`},
	{text: `dynamic_batching { preserve_ordering: 1 }`},
	{text: `dynamic_batching { preserve_ordering: 0x1 }`},
	{text: `dynamic_batching { preserve_ordering: 2 }`, server: "Integer out of range (2)"},
	{text: `dynamic_batching { preserve_ordering: TRUE }`, server: `Invalid value for boolean field "preserve_ordering". Value: "TRUE".`},
	{text: `dynamic_batching { preserve_ordering: "true" }`, server: `Expected identifier, got: "true"`},
	{text: `input { data_type: TYPE_FP32 }`},
	{text: `input { data_type: 11 }`},
	{text: `input { data_type: 99 }`},
	{text: `input { data_type: -1 }`},
	{text: `input { data_type: FP32 }`, server: `Unknown enumeration value of "FP32" for field "data_type".`},
	{text: `input { data_type: "TYPE_FP32" }`, server: `Expected integer or identifier, got: "TYPE_FP32"`},
	{text: `sequence_batching { direct { minimum_slot_utilization: .5 } }`},
	{text: `sequence_batching { direct { minimum_slot_utilization: 5e-1f } }`},
	{text: `sequence_batching { direct { minimum_slot_utilization: -inf } }`},
	{text: `sequence_batching { direct { minimum_slot_utilization: NaN } }`},
	{text: `sequence_batching { direct { minimum_slot_utilization: 010 } }`, server: "Expect a decimal number, got: 010", goSays: true},
	{text: `sequence_batching { direct { minimum_slot_utilization: 1.2.3 } }`, server: "Already saw decimal point or exponent; can't have another one."},
	{text: `sequence_batching { direct { minimum_slot_utilization: half } }`, server: "Expected double, got: half"},
	{text: `parameters { key: "k" value { string_value: "v" } }`},
	{text: `parameters [ { key: "k", value: { string_value: "v" } }, { key: "k" } ]`},
	{text: `parameters { }`},
	{text: `parameters { key: "a" key: "b" }`, server: `Non-repeated field "key" is specified multiple times.`},
	{text: `parameters { key: "k" value: "v" }`, server: `Expected "{", found ""v"".`},
	{text: `parameters { k: "v" }`, server: `Message type "inference.ModelConfig.ParametersEntry" has no field named "k".`},
	{text: `name: "\x41\101\n\t\u5317\U0001F600\?"`},
	{text: `name: "\q"`, server: "Invalid escape sequence in string literal."},
	{text: `name: "\X41"`, server: "Invalid escape sequence in string literal."},
	{text: `name: "\x"`, server: "Expected hex digits for escape sequence."},
	{text: `name: "\u12"`, server: `Expected four hex digits for \u escape sequence.`},
	{text: `name: "\U00110000"`, goSays: true},
	{text: `name: "\U00200000"`, server: `Expected eight hex digits up to 10ffff for \U escape sequence`},
	{text: "name: \"a\nb\"", server: "String literals cannot cross line boundaries."},
	{text: `name: "a`, server: "Unexpected end of string."},
	{text: "\ufeffname: \"m\"", server: "Interpreting non ascii codepoint 239."},
	{text: "name:\u00a0\"m\"", server: "Interpreting non ascii codepoint 194."},
	{text: "name: \"m\"\x00", server: "Invalid control characters encountered in text."},
	{text: "name:\t\"m\"\r\n\f\vbackend: \"b\"", goSays: true},
	{text: `// comment`, server: "Expected identifier, got: /"},
	{text: `}`, server: "Expected identifier, got: }"},
}

func TestProbes(t *testing.T) {
	second := descriptor(t)
	for _, p := range probes {
		_, err := Parse("config.pbtxt", []byte(p.text))
		var parseErr *ParseError
		got := ""
		if errors.As(err, &parseErr) {
			_, got, _ = strings.Cut(parseErr.Server(), ": ")
			got = got[strings.Index(got, ": ")+2:]
		}
		if got != p.server {
			t.Errorf("%s\n got %q\nwant %q", p.text, got, p.server)
		}
		isTaken := prototext.Unmarshal([]byte(p.text), dynamicpb.NewMessage(second)) == nil
		if (isTaken != (p.server == "")) != p.goSays {
			t.Errorf("%s: Go's reader takes it: %v", p.text, isTaken)
		}
	}
	if len(probes) < 60 {
		t.Errorf("only %d probes", len(probes))
	}
}

// An error names the place, shows the line, and says what was expected.
func TestErrorText(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"name: \"m\"\nmax_batchsize: 8\n", `config.pbtxt:2:1: ModelConfig has no field "max_batchsize"; did you mean "max_batch_size"?
  max_batchsize: 8
  ^`},
		{"input [\n\t{ name: \"输入\" data_type: TYPE_FLOAT }\n]", "config.pbtxt:2:26: data_type: there is no value \"TYPE_FLOAT\"; did you mean \"TYPE_FP32\"?\n" +
			"  \t{ name: \"输入\" data_type: TYPE_FLOAT }\n" +
			"  \t                        ^"},
		{"max_batch_size = 8", `config.pbtxt:1:16: expected ":", found "=": values are written max_batch_size: …
  max_batch_size = 8
                 ^`},
		{"instance_group {\n  kind: KIND_CPU\n", "config.pbtxt:3:1: expected the name of a field, found the end of the file: a block of ModelInstanceGroup is not closed\n  \n  ^"},
	} {
		_, err := Parse("config.pbtxt", []byte(test.text))
		if err == nil || err.Error() != test.want {
			t.Errorf("%s\n got %v\nwant %s", test.text, err, test.want)
		}
	}
}

// The server counts bytes, and a tab to the next multiple of 8.
func TestServerPlace(t *testing.T) {
	_, err := Parse("c", []byte("\tmax: 1"))
	var e *ParseError
	if !errors.As(err, &e) || !strings.Contains(e.Server(), " 1:12: ") {
		t.Errorf("%v", err)
	}
}

// All errors that can be told without guessing are told at once.
func TestAllErrors(t *testing.T) {
	_, err := Parse("c", []byte("nam: \"m\"\nmax_batch_size: 99999999999\ninput { data_type: FP32 dims: [ 1, 2 ] }\noutput { label: { a: [ 1 ] } dims: 4 }\n"))
	var e *ParseError
	if !errors.As(err, &e) {
		t.Fatal("no error")
	}
	var got []string
	for _, one := range e.Errors {
		got = append(got, string(one.Kind))
	}
	if strings.Join(got, " ") != "field range enum field" {
		t.Errorf("found %v", got)
	}
}

func TestValues(t *testing.T) {
	doc, err := Parse("c", []byte(`
		name: "a\x62\143" "d"
		max_batch_size: 010
		input { name: "x" dims: [ 0x10, -1 ] dims: 3 reshape { } }
		output { data_type: 99 }
		parameters { key: "k" value { string_value: "1" } }
		parameters [ { key: "j" value { string_value: "2" } }, { key: "k" value { string_value: "3" } } ]
		sequence_batching { direct { minimum_slot_utilization: 5e-1f } }
		model_warmup { inputs { key: "x" value { zero_data: false } } }`))
	if err != nil {
		t.Fatal(err)
	}
	c := doc.Config()
	if c.Name != "abcd" || c.MaxBatchSize != 8 || c.Output[0].DataType != 99 {
		t.Errorf("%q, %d, %d", c.Name, c.MaxBatchSize, c.Output[0].DataType)
	}
	if d := c.Input[0].Dims; len(d) != 3 || d[0] != 16 || d[1] != -1 || d[2] != 3 {
		t.Errorf("dims %v", d)
	}
	if c.Input[0].Reshape == nil || c.Output[0].Reshape != nil {
		t.Error("an empty reshape is there, one that is not written is not")
	}
	if len(c.Parameters) != 2 || c.Parameters[0].Key != "j" {
		t.Errorf("parameters %+v", c.Parameters)
	}
	if v, ok := c.Parameter("k"); !ok || v != "3" {
		t.Errorf("the last k is %q", v)
	}
	if c.SequenceBatching.Direct.MinimumSlotUtilization != 0.5 {
		t.Error("5e-1f is a half")
	}
	if z := c.Warmup[0].Inputs[0].Value.ZeroData; z == nil || *z {
		t.Error("zero_data: false is set, and false")
	}
	line, column := doc.Place(c.Input[0].ValueAt("dims", 1))
	if line != 4 || column != 35 {
		t.Errorf("the second dim is at %d:%d", line, column)
	}
}

func TestPlaceholders(t *testing.T) {
	doc, _ := Parse("c", []byte("# ${not_this}\nmax_batch_size: ${b}\nname: \"${n}\" # ${nor_this}\nparameters { key: \"{{ k }}\" }\n"))
	var got []string
	for _, p := range doc.Placeholders() {
		line, _ := doc.Place(p.Offset)
		got = append(got, strings.Repeat(" ", line)+p.Text)
	}
	if strings.Join(got, ",") != "  ${b},   ${n},    {{ k }}" {
		t.Errorf("found %q", got)
	}
	if ps := doc.Placeholders(); ps[0].InString || !ps[1].InString {
		t.Error("only the second one stands in a string")
	}
}

// Reading never panics, what is taken is printed, and printing is stable. Go's reader
// must not take what ours refuses for its form, but for the differences it is known for.
func FuzzParse(f *testing.F) {
	for _, p := range probes {
		f.Add(p.text)
	}
	f.Add(example)
	f.Fuzz(func(t *testing.T, text string) {
		lenient, lenientErr := ParseLenient("c", []byte(text))
		doc, err := Parse("c", []byte(text))
		if err == nil && lenientErr != nil {
			t.Fatalf("taken, but not for editing: %v", lenientErr)
		}
		if err != nil {
			_ = err.Error()
		} else {
			sameAgain(t, doc, Parse)
			doc.Config()
		}
		if lenientErr == nil {
			sameAgain(t, lenient, ParseLenient)
		}
	})
}

// sameAgain prints a document, reads that, and prints it again.
func sameAgain(t *testing.T, doc *Document, parse func(string, []byte) (*Document, error)) {
	t.Helper()
	first := doc.Print()
	again, err := parse("printed", first)
	if err != nil {
		t.Fatalf("what was printed is not read: %v\n%s", err, first)
	}
	if second := again.Print(); string(first) != string(second) {
		t.Fatalf("printed a second time it differs:\n%s\n---\n%s", first, second)
	}
}
