package configgen

import (
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// Document is a file as a tree: every field with its place and its comments.
type Document struct {
	// Name is the name of the file, for messages.
	Name string
	// Text is what the file holds.
	Text string
	Root *Message

	lines []int // offsets at which lines begin
}

// Message is one message: the file itself, a block, or an element of a list.
type Message struct {
	Type   *MessageType
	Fields []*Field
	// Trailing comments stand before the closing brace.
	Trailing []string
	// Start and End are offsets into the text, braces included.
	Start, End int

	// given are the fields that may occur once and have, while the message is read.
	given map[*FieldType]bool
}

// Field is one occurrence of a field.
type Field struct {
	// Type is nil for a field that the format does not know.
	Type *FieldType
	Name string
	// Values holds one value, or any number of them in brackets.
	Values   []*Value
	Brackets bool
	// Raw is an unknown field as it stands in the file.
	Raw string
	// Leading comments stand on lines of their own above the field, Trailing on its
	// last line.
	Leading  []string
	Trailing string
	// Start and End are offsets into the text: from the name to behind the value.
	Start, End int
}

// Value is one value of a field.
type Value struct {
	// Message is the value of a message field.
	Message *Message
	// Scalar is any other value: int32, int64, uint32, uint64, float32, float64, bool,
	// string or, for enumerations, [Enum].
	Scalar any
	// Leading and Trailing are comments around an element of a list.
	Leading    []string
	Trailing   string
	Start, End int
}

// Enum is a value of an enumeration by its number, which may be one that has no name.
type Enum int32

// Place gives line and column of an offset, both from 1; columns count characters.
func (d *Document) Place(offset int) (line, column int) {
	offset = min(max(offset, 0), len(d.Text))
	if d.lines == nil {
		d.lines = []int{0}
		for i := range len(d.Text) {
			if d.Text[i] == '\n' {
				d.lines = append(d.lines, i+1)
			}
		}
	}
	line = sort.SearchInts(d.lines, offset+1)
	return line, utf8.RuneCountInString(d.Text[d.lines[line-1]:offset]) + 1
}

// Line gives the text of a line, from 1, without its end.
func (d *Document) Line(line int) string {
	d.Place(0)
	if line < 1 || line > len(d.lines) {
		return ""
	}
	text, _, _ := strings.Cut(d.Text[d.lines[line-1]:], "\n")
	return strings.TrimSuffix(text, "\r")
}

// All gives the occurrences of a field.
func (m *Message) All(name string) []*Field {
	var out []*Field
	for _, f := range m.Fields {
		if f.Name == name {
			out = append(out, f)
		}
	}
	return out
}

// Values gives all values of a field, over all its occurrences.
func (m *Message) Values(name string) []*Value {
	var out []*Value
	for _, f := range m.Fields {
		if f.Name == name {
			out = append(out, f.Values...)
		}
	}
	return out
}

// Field gives the last occurrence of a field, or nil.
func (m *Message) Field(name string) *Field {
	for _, f := range slices.Backward(m.Fields) {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// mark notes that a field has been read, if it counts as present to a reader that
// keeps no presence of plain values: a 0 that is spelled out is as good as none.
func (m *Message) mark(f *Field) {
	if f.Type == nil || f.Type.Repeated {
		return
	}
	for _, v := range f.Values {
		if v.Message == nil && f.Type.Oneof == "" && isZero(v.Scalar) {
			continue
		}
		if m.given == nil {
			m.given = map[*FieldType]bool{}
		}
		m.given[f.Type] = true
	}
}

func isZero(scalar any) bool {
	switch v := scalar.(type) {
	case int32:
		return v == 0
	case int64:
		return v == 0
	case uint32:
		return v == 0
	case uint64:
		return v == 0
	case float32:
		return v == 0
	case float64:
		return v == 0
	case bool:
		return !v
	case string:
		return v == ""
	case Enum:
		return v == 0
	}
	return false
}

// Unknown gives all fields of the tree that the format does not know.
func (d *Document) Unknown() []*Field {
	var out []*Field
	d.Root.walk(func(f *Field) {
		if f.Type == nil {
			out = append(out, f)
		}
	})
	return out
}

// walk visits all fields in the order of the file.
func (m *Message) walk(visit func(*Field)) {
	for _, f := range m.Fields {
		visit(f)
		for _, v := range f.Values {
			if v.Message != nil {
				v.Message.walk(visit)
			}
		}
	}
}
