package configgen

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
)

// Node is where a part of a Config stands in its document. In a Config that was not
// read from one it knows nothing.
type Node struct{ message *Message }

// Message gives the part's place in the tree, or nil.
func (n Node) Message() *Message { return n.message }

// At gives the offset of a field, or of the whole part when the field is not there.
func (n Node) At(field string) int {
	if n.message == nil {
		return 0
	}
	if f := n.message.Field(field); f != nil {
		return f.Start
	}
	return n.message.Start
}

// ValueAt gives the offset of one value of a repeated field.
func (n Node) ValueAt(field string, i int) int {
	if n.message == nil {
		return 0
	}
	for _, f := range n.message.Fields {
		switch {
		case f.Name != field:
		case i < len(f.Values):
			return f.Values[i].Start
		default:
			i -= len(f.Values)
		}
	}
	return n.At(field)
}

// Has says whether a field is written, be it with its default.
func (n Node) Has(field string) bool { return n.message != nil && n.message.Field(field) != nil }

// enumText is the name of an enumeration's value, or its number.
func enumText(enum string, number int32) string {
	if name := theSchema().enum(enum).ByNumber(number); name != "" {
		return name
	}
	return strconv.Itoa(int(number))
}

// Config gives the tree as plain values.
func (d *Document) Config() *Config {
	c := &Config{}
	decode(d.Root, reflect.ValueOf(c).Elem())
	return c
}

// decode fills a struct from a message.
func decode(m *Message, into reflect.Value) {
	for i := range into.NumField() {
		name := into.Type().Field(i).Tag.Get("pb")
		if name == "" {
			into.Field(i).Set(reflect.ValueOf(Node{m}))
			continue
		}
		values := m.Values(name)
		if len(values) == 0 {
			continue
		}
		t, field := m.Type.Field(name), into.Field(i)
		switch {
		case t.Map:
			decodeMap(values, field)
		case t.Repeated:
			for _, v := range values {
				element := reflect.New(field.Type().Elem()).Elem()
				decodeValue(v, element)
				field.Set(reflect.Append(field, element))
			}
		default:
			decodeValue(values[len(values)-1], field)
		}
	}
}

// decodeMap appends entries; of those with one key the last is kept, at its place.
func decodeMap(values []*Value, field reflect.Value) {
	entries := make([]reflect.Value, len(values))
	last := map[any]int{}
	for i, v := range values {
		entries[i] = reflect.New(field.Type().Elem()).Elem()
		decodeValue(v, entries[i])
		last[entries[i].FieldByName("Key").Interface()] = i
	}
	for i, entry := range entries {
		if last[entry.FieldByName("Key").Interface()] == i {
			field.Set(reflect.Append(field, entry))
		}
	}
}

func decodeValue(v *Value, into reflect.Value) {
	if into.Kind() == reflect.Pointer {
		into.Set(reflect.New(into.Type().Elem()))
		into = into.Elem()
	}
	if v.Message != nil {
		decode(v.Message, into)
		return
	}
	if v.Scalar != nil {
		into.Set(reflect.ValueOf(v.Scalar).Convert(into.Type()))
	}
}

// NewDocument makes a tree of a Config. What has its default is left out, but for
// max_batch_size: its 0 says that the model does not batch.
func NewDocument(name string, c *Config) *Document {
	root := encode(reflect.ValueOf(c).Elem(), Root())
	if c.MaxBatchSize == 0 && c.Ensemble == nil {
		root.set("max_batch_size", &Value{Scalar: int32(0)})
	}
	return &Document{Name: name, Root: root}
}

// encode makes a message of a struct.
func encode(from reflect.Value, t *MessageType) *Message {
	m := &Message{Type: t}
	for i := range from.NumField() {
		name := from.Type().Field(i).Tag.Get("pb")
		if name == "" {
			continue
		}
		ft, field := t.Field(name), from.Field(i)
		switch {
		case ft == nil:
			panic(fmt.Sprintf("configgen: %s has no field %s", t.Name, name))
		case ft.Repeated:
			for j := range field.Len() {
				m.add(ft, encodeValue(field.Index(j), ft))
			}
		case !field.IsZero():
			m.add(ft, encodeValue(field, ft))
		case ft.Kind == Nested && field.Kind() == reflect.Struct:
			// The value of a map's entry is written even when it is empty.
			m.add(ft, encodeValue(field, ft))
		}
	}
	return m
}

func encodeValue(from reflect.Value, t *FieldType) *Value {
	if from.Kind() == reflect.Pointer {
		from = from.Elem()
	}
	switch t.Kind {
	case Nested:
		return &Value{Message: encode(from, t.Message)}
	case EnumOf:
		return &Value{Scalar: Enum(from.Int())}
	}
	return &Value{Scalar: from.Interface()}
}

func (m *Message) add(t *FieldType, v *Value) {
	if t.Repeated && !t.Map {
		if f := m.Field(t.Name); f != nil {
			f.Values = append(f.Values, v)
			return
		}
	}
	m.Fields = append(m.Fields, &Field{Type: t, Name: t.Name, Values: []*Value{v}, Brackets: t.Repeated && !t.Map})
}

// set replaces what a message says of a field.
func (m *Message) set(name string, values ...*Value) {
	t := m.Type.Field(name)
	leading, trailing := []string(nil), ""
	if old := m.Field(name); old != nil {
		leading, trailing = old.Leading, old.Trailing
	}
	m.Fields = slices.DeleteFunc(m.Fields, func(f *Field) bool { return f.Name == name })
	m.Fields = append(m.Fields, &Field{Type: t, Name: name, Values: values, Brackets: t.Repeated && !t.Map, Leading: leading, Trailing: trailing})
}

// Explain puts a comment above a field: text that says why the field has its value.
// It does nothing when the field is not there.
func (m *Message) Explain(field, text string) {
	if f := m.Field(field); f != nil {
		f.Leading = append(f.Leading, " "+text)
	}
}
