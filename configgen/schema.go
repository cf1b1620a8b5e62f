package configgen

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed modelconfig.proto
var protoText string

// Kind is the type of a field's values.
type Kind string

// The kinds, by their names in a .proto file.
const (
	Int32   Kind = "int32"
	Int64   Kind = "int64"
	Uint32  Kind = "uint32"
	Uint64  Kind = "uint64"
	Float   Kind = "float"
	Double  Kind = "double"
	Bool    Kind = "bool"
	String  Kind = "string"
	EnumOf  Kind = "enum"
	Nested  Kind = "message"
	unknown Kind = ""
)

var scalarKinds = []Kind{Int32, Int64, Uint32, Uint64, Float, Double, Bool, String}

// FieldType is one field of a message, as modelconfig.proto declares it.
type FieldType struct {
	Name   string
	Number int32
	Kind   Kind
	// Repeated fields may occur any number of times; a map is a repeated field whose
	// messages are entries of a key and a value.
	Repeated, Map bool
	Message       *MessageType // of Nested
	Enum          *EnumType    // of EnumOf
	// Oneof is the group of which at most one member may be set; empty for most.
	Oneof string
	// Since is the first server release that knows the field; empty when all do.
	Since string
	// Parent is the message it belongs to.
	Parent *MessageType
}

// MessageType is a message and its fields in the order of printing.
type MessageType struct {
	// Name is the name with its outer messages: ModelInstanceGroup.SecondaryDevice.
	Name   string
	Fields []*FieldType
	byName map[string]*FieldType
}

// Field gives the field of a name, or nil.
func (m *MessageType) Field(name string) *FieldType { return m.byName[name] }

// Names lists the names of all fields.
func (m *MessageType) Names() []string {
	out := make([]string, len(m.Fields))
	for i, f := range m.Fields {
		out[i] = f.Name
	}
	return out
}

// EnumType is an enumeration.
type EnumType struct {
	Name   string
	Values []EnumValue
}

// EnumValue is one value of an enumeration.
type EnumValue struct {
	Name   string
	Number int32
}

// ByName gives the number of a value.
func (e *EnumType) ByName(name string) (int32, bool) {
	i := slices.IndexFunc(e.Values, func(v EnumValue) bool { return v.Name == name })
	if i < 0 {
		return 0, false
	}
	return e.Values[i].Number, true
}

// ByNumber gives the name of a value, or "".
func (e *EnumType) ByNumber(number int32) string {
	i := slices.IndexFunc(e.Values, func(v EnumValue) bool { return v.Number == number })
	if i < 0 {
		return ""
	}
	return e.Values[i].Name
}

// Names lists the names of all values.
func (e *EnumType) Names() []string {
	out := make([]string, len(e.Values))
	for i, v := range e.Values {
		out[i] = v.Name
	}
	return out
}

// Schema gives the messages and enumerations of a config.pbtxt.
func Schema() (messages []*MessageType, enums []*EnumType) {
	s := theSchema()
	return slices.Clone(s.messages), slices.Clone(s.enums)
}

// Root is the type of a whole config.pbtxt.
func Root() *MessageType { return theSchema().message("ModelConfig") }

type schema struct {
	messages []*MessageType
	enums    []*EnumType
}

// theSchema reads the embedded file once. That it can be read is what the package's
// first test shows.
var theSchema = sync.OnceValue(func() *schema {
	s, err := readSchema(protoText)
	if err != nil {
		panic(fmt.Sprintf("modelconfig.proto: %v", err))
	}
	return s
})

func (s *schema) message(name string) *MessageType {
	i := slices.IndexFunc(s.messages, func(m *MessageType) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return s.messages[i]
}

func (s *schema) enum(name string) *EnumType {
	i := slices.IndexFunc(s.enums, func(e *EnumType) bool { return e.Name == name })
	if i < 0 {
		return nil
	}
	return s.enums[i]
}

// schemaReader reads the part of the .proto language that modelconfig.proto uses:
// one declaration a line.
type schemaReader struct {
	schema
	scope []string       // names of the open messages
	open  []*MessageType // the open messages themselves
	enum  *EnumType      // the open enumeration
	oneof string
	// typeNames are the types of fields as written; they are looked up when all are known.
	typeNames map[*FieldType]string
}

func readSchema(text string) (*schema, error) {
	r := &schemaReader{typeNames: map[*FieldType]string{}}
	for i, line := range strings.Split(text, "\n") {
		code, comment, _ := strings.Cut(line, "//")
		if err := r.line(strings.Fields(strings.ReplaceAll(code, ";", "")), comment); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	for _, m := range r.messages {
		for _, f := range m.Fields {
			if err := r.resolve(f); err != nil {
				return nil, err
			}
		}
	}
	return &r.schema, nil
}

func (r *schemaReader) line(words []string, comment string) error {
	switch {
	case len(words) == 0 || words[0] == "syntax" || words[0] == "package":
		return nil
	case words[0] == "message":
		r.scope = append(r.scope, words[1])
		m := &MessageType{Name: strings.Join(r.scope, "."), byName: map[string]*FieldType{}}
		r.messages = append(r.messages, m)
		r.open = append(r.open, m)
		return nil
	case words[0] == "enum":
		r.enum = &EnumType{Name: strings.Join(append(slices.Clone(r.scope), words[1]), ".")}
		r.enums = append(r.enums, r.enum)
		return nil
	case words[0] == "oneof":
		r.oneof = words[1]
		return nil
	case words[0] == "}":
		r.close()
		return nil
	case r.enum != nil:
		number, err := strconv.ParseInt(words[2], 10, 32)
		r.enum.Values = append(r.enum.Values, EnumValue{words[0], int32(number)})
		return err
	}
	return r.field(words, comment)
}

func (r *schemaReader) close() {
	switch {
	case r.enum != nil:
		r.enum = nil
	case r.oneof != "":
		r.oneof = ""
	default:
		r.scope, r.open = r.scope[:len(r.scope)-1], r.open[:len(r.open)-1]
	}
}

func (r *schemaReader) field(words []string, comment string) error {
	f := &FieldType{Oneof: r.oneof, Parent: r.open[len(r.open)-1]}
	if since, ok := strings.CutPrefix(strings.TrimSpace(comment), "since "); ok {
		f.Since = since
	}
	switch {
	case words[0] == "repeated":
		f.Repeated, words = true, words[1:]
	case strings.HasPrefix(words[0], "map<"):
		f.Repeated, f.Map = true, true
		key := strings.TrimSuffix(strings.TrimPrefix(words[0], "map<"), ",")
		r.entry(f, key, strings.TrimSuffix(words[1], ">"), words[2])
		words = words[1:]
	}
	if len(words) != 4 || words[2] != "=" {
		return fmt.Errorf("no field: %v", words)
	}
	number, err := strconv.ParseInt(words[3], 10, 32)
	if err != nil {
		return err
	}
	f.Name, f.Number = words[1], int32(number)
	if !f.Map {
		r.typeNames[f] = words[0]
	}
	f.Parent.Fields = append(f.Parent.Fields, f)
	f.Parent.byName[f.Name] = f
	return nil
}

// entry makes the message of a map's entries, which is named after the map's field.
func (r *schemaReader) entry(f *FieldType, key, value, field string) {
	name := ""
	for word := range strings.SplitSeq(field, "_") {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	m := &MessageType{Name: f.Parent.Name + "." + name + "Entry"}
	keyField := &FieldType{Name: "key", Number: 1, Parent: m}
	valueField := &FieldType{Name: "value", Number: 2, Parent: m}
	r.typeNames[keyField], r.typeNames[valueField] = key, value
	m.Fields = []*FieldType{keyField, valueField}
	m.byName = map[string]*FieldType{"key": keyField, "value": valueField}
	r.messages = append(r.messages, m)
	f.Kind, f.Message = Nested, m
}

// resolve finds what the name of a field's type means: a scalar, or what is declared
// in the message, around it, or at the top.
func (r *schemaReader) resolve(f *FieldType) error {
	name, isOpen := r.typeNames[f]
	if !isOpen {
		return nil
	}
	if slices.Contains(scalarKinds, Kind(name)) {
		f.Kind = Kind(name)
		return nil
	}
	for scope := f.Parent.Name + "."; ; {
		if m := r.message(scope + name); m != nil {
			f.Kind, f.Message = Nested, m
			return nil
		}
		if e := r.schema.enum(scope + name); e != nil {
			f.Kind, f.Enum = EnumOf, e
			return nil
		}
		if scope == "" {
			return fmt.Errorf("%s.%s: no type %s", f.Parent.Name, f.Name, name)
		}
		outer := strings.LastIndex(strings.TrimSuffix(scope, "."), ".")
		scope = scope[:outer+1]
	}
}
