package om

import (
	"fmt"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/npuctl/npuctl/internal/fault"
)

// Value is an attribute's value: string, int64, float32, bool, []string, []int64,
// []float32, []bool, or [Unread] for what this package does not look into.
type Value any

// Unread stands for the value of an attribute that is a tensor, a graph, raw bytes
// or larger than attributes that say something about the model.
type Unread struct{ Bytes int64 }

// Attributes are those of a model or of an operator, by their names in clear.
type Attributes map[string]Value

// Text gives a string attribute; ok tells an empty one from none.
func (a Attributes) Text(name string) (text string, ok bool) {
	text, ok = a[name].(string)
	return text, ok
}

// Int gives an integer attribute, 0 when there is none.
func (a Attributes) Int(name string) int64 {
	n, _ := a[name].(int64)
	return n
}

// Ints gives a list of integers.
func (a Attributes) Ints(name string) []int64 {
	list, _ := a[name].([]int64)
	return list
}

// Texts gives a list of strings.
func (a Attributes) Texts(name string) []string {
	list, _ := a[name].([]string)
	return list
}

const (
	maxValueBytes  = 1 << 16 // of most attributes
	maxEntries     = 1 << 17 // of a list
	maxAttributes  = 1 << 14 // of a model or an operator
	maxTotalValues = 64 << 20
)

// Field numbers of the messages that an attribute is made of.
const (
	entryKey   = 1
	entryValue = 2

	valueList  = 1
	valueText  = 2
	valueInt   = 3
	valueFloat = 4
	valueBool  = 5
)

// attribute is one entry of an attribute map, its value not yet read.
type attribute struct {
	name  string
	value span
}

// attribute reads an entry's name, as the file has it, and finds its value.
func (w *window) attribute(entry span) (a attribute, err error) {
	for f, err := range w.fields(entry) {
		switch {
		case err != nil:
			return a, err
		case f.is(entryKey, protowire.BytesType) && f.body.size() <= maxNameBytes:
			if a.name, err = w.text(f.body); err != nil {
				return a, err
			}
		case f.is(entryValue, protowire.BytesType):
			a.value = f.body
		}
	}
	return a, nil
}

// value reads an attribute's value; limit is the size above which it is left unread.
func (w *window) value(s span, limit int64) (Value, error) {
	if s.size() > limit {
		return Unread{s.size()}, nil
	}
	var v Value = Unread{s.size()}
	for f, err := range w.fields(s) {
		if err != nil {
			return nil, err
		}
		switch {
		case f.is(valueText, protowire.BytesType):
			v, err = w.text(f.body)
		case f.is(valueInt, protowire.VarintType):
			v = int64(f.value)
		case f.is(valueBool, protowire.VarintType):
			v = f.value != 0
		case f.is(valueFloat, protowire.Fixed32Type):
			v, err = w.float(f.body)
		case f.is(valueList, protowire.BytesType):
			v, err = w.list(f.body)
		}
		if err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (w *window) float(s span) (float32, error) {
	b, err := w.at(s.start, 4, s.end)
	if err != nil {
		return 0, err
	}
	bits, _ := protowire.ConsumeFixed32(b)
	return math.Float32frombits(bits), nil
}

// list reads a list. Numbers may be packed into one field or come one a field. An
// empty list is a []string, whatever it should have held.
func (w *window) list(s span) (Value, error) {
	var l struct {
		texts  []string
		ints   []int64
		floats []float32
		bools  []bool
	}
	for f, err := range w.fields(s) {
		if err != nil {
			return nil, err
		}
		packed := int64(0)
		if f.wire == protowire.BytesType && f.number != valueText {
			packed = f.body.size()
		}
		if int64(len(l.texts)+len(l.ints)+len(l.floats)+len(l.bools))+packed >= maxEntries {
			return Unread{s.size()}, nil
		}
		switch f.number {
		case valueText:
			var text string
			if f.wire == protowire.BytesType {
				text, err = w.text(f.body)
			}
			l.texts = append(l.texts, text)
		case valueInt:
			err = w.varints(f, func(n uint64) { l.ints = append(l.ints, int64(n)) })
		case valueBool:
			err = w.varints(f, func(n uint64) { l.bools = append(l.bools, n != 0) })
		case valueFloat:
			err = w.floats(f, func(x float32) { l.floats = append(l.floats, x) })
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case l.ints != nil:
		return l.ints, nil
	case l.floats != nil:
		return l.floats, nil
	case l.bools != nil:
		return l.bools, nil
	}
	return l.texts, nil
}

// varints gives the numbers of a repeated field, packed or not.
func (w *window) varints(f field, give func(uint64)) error {
	if f.wire == protowire.VarintType {
		give(f.value)
		return nil
	}
	for at := f.body.start; f.wire == protowire.BytesType && at < f.body.end; {
		n, next, err := w.varint(at, f.body.end)
		if err != nil {
			return err
		}
		give(n)
		at = next
	}
	return nil
}

func (w *window) floats(f field, give func(float32)) error {
	if f.wire != protowire.Fixed32Type && f.wire != protowire.BytesType {
		return nil
	}
	for at := f.body.start; at+4 <= f.body.end; at += 4 {
		x, err := w.float(span{at, at + 4})
		if err != nil {
			return err
		}
		give(x)
	}
	return nil
}

// The model attributes that are the dictionary of compressed attributes.
const (
	attrNames      = "attr_name_enum"
	attrTexts      = "attr_value_enum"
	attrTextsFlags = "attrs_use_string_value"
)

// dictionary gives names and texts that operators have as numbers back in clear.
type dictionary struct {
	names []string
	texts []string
	// isText tells for each name whether its integer values are numbers of texts.
	isText []bool
	// root is the dictionary of the root model: the names in that of a sub-model may
	// themselves be numbers of it.
	root *dictionary
}

// newDictionary takes the dictionary from a model's attributes.
func newDictionary(a Attributes, root *dictionary) *dictionary {
	d := &dictionary{names: a.Texts(attrNames), texts: a.Texts(attrTexts), root: root}
	d.isText, _ = a[attrTextsFlags].([]bool)
	return d
}

// index decodes a compressed name: a zero byte, then digits to base 127, the lowest
// first, each stored one higher. ok is false for a name in clear.
func index(name string) (n int, ok bool) {
	digits, compressed := strings.CutPrefix(name, "\x00")
	if !compressed || digits == "" || len(digits) > 4 {
		return 0, false
	}
	for i := len(digits) - 1; i >= 0; i-- {
		digit := int(digits[i]) - 1
		if digit < 0 || digit >= 127 {
			return 0, false
		}
		n = n*127 + digit
	}
	return n, true
}

// name gives a name in clear, and whether the attribute's integers stand for texts.
// A name that the dictionary does not have stays as it is.
func (d *dictionary) name(name string) (clear string, isText bool) {
	n, ok := index(name)
	if d == nil || !ok || n >= len(d.names) {
		return name, false
	}
	clear = d.names[n]
	isText = n < len(d.isText) && d.isText[n]
	if d.root != nil {
		clear, _ = d.root.name(clear)
	}
	return clear, isText
}

// value replaces numbers by the texts they stand for.
func (d *dictionary) value(v Value) Value {
	switch v := v.(type) {
	case int64:
		if text, ok := d.text(v); ok {
			return text
		}
	case []int64:
		texts := make([]string, len(v))
		for i, n := range v {
			text, ok := d.text(n)
			if !ok {
				return v
			}
			texts[i] = text
		}
		return texts
	}
	return v
}

func (d *dictionary) text(n int64) (string, bool) {
	if n < 0 || n >= int64(len(d.texts)) {
		return "", false
	}
	return d.texts[n], true
}

// attributes reads the entries of a map in clear.
func (w *window) attributes(entries []span, d *dictionary) (Attributes, error) {
	if len(entries) > maxAttributes {
		return nil, fault.New(fault.Input, "%d attributes at one place", len(entries))
	}
	attributes, total := make(Attributes, len(entries)), int64(0)
	for _, entry := range entries {
		a, err := w.attribute(entry)
		if err != nil {
			return nil, err
		}
		name, isText := d.name(a.name)
		value, err := w.value(a.value, min(valueLimit(name), maxTotalValues-total))
		if err != nil {
			return nil, fmt.Errorf("attribute %q: %w", name, err)
		}
		if isText {
			value = d.value(value)
		}
		if _, unread := value.(Unread); !unread {
			total += a.value.size()
		}
		attributes[name] = value
	}
	return attributes, nil
}

// largeValues may be larger than other attributes: the dictionary, what the user
// typed and the names of outputs.
var largeValues = map[string]int64{
	attrNames: 16 << 20, attrTexts: 16 << 20, attrTextsFlags: 16 << 20,
	attrCommandLine: 1 << 20, attrOutputNames: 1 << 20,
}

func valueLimit(name string) int64 {
	return max(maxValueBytes, largeValues[name])
}
