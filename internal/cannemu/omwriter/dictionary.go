package omwriter

import (
	"slices"
	"strings"
)

// dictionary shortens the attributes of operators and tensors. A name becomes a zero
// byte and its place in a list of names, in digits to the base 127 with the lowest
// first and 1 added to each; a text becomes its place in a list of texts, as a number.
// The zero dictionary shortens nothing.
type dictionary struct {
	names  []string
	places map[string]int
	// holdsText says for each name whether its values are texts.
	holdsText  []bool
	texts      []string
	textPlaces map[string]int
}

// plainNames stay as they are: GE writes them by another way.
var plainNames = map[string]bool{
	"_input_name_key": true, "_input_name_value": true, "_output_name_key": true, "_output_name_value": true,
	"origin_shape": true, "origin_format": true, "origin_shape_initialized": true,
	"format_for_int": true, "origin_format_for_int": true,
}

func isPlain(name string) bool { return plainNames[name] || strings.HasPrefix(name, "_ir_") }

func newDictionary(graphs []Graph) dictionary {
	d := dictionary{places: map[string]int{}, textPlaces: map[string]int{}}
	for _, g := range graphs {
		for _, op := range g.Ops {
			d.learn(op.Attributes)
			for _, desc := range slices.Concat(op.InputDescs, op.OutputDescs) {
				d.learn(desc.Attributes)
			}
		}
	}
	return d
}

func (d *dictionary) learn(attributes []Attribute) {
	for _, a := range attributes {
		if isPlain(a.Name) {
			continue
		}
		texts := textsOf(a.Value)
		if _, known := d.places[a.Name]; !known {
			d.places[a.Name] = len(d.names)
			d.names = append(d.names, a.Name)
			d.holdsText = append(d.holdsText, texts != nil)
		}
		for _, text := range texts {
			if _, known := d.textPlaces[text]; !known {
				d.textPlaces[text] = len(d.texts)
				d.texts = append(d.texts, text)
			}
		}
	}
}

// textsOf gives the texts of a value that is one or a list of them, else nil.
func textsOf(v AttributeValue) []string {
	switch v := v.(type) {
	case Text:
		return []string{string(v)}
	case Texts:
		return append([]string{}, v...)
	}
	return nil
}

// shorten gives an attribute as it is stored. A name whose first value was no text
// keeps its values whatever they are.
func (d *dictionary) shorten(a Attribute) Attribute {
	place, known := d.places[a.Name]
	if !known {
		return a
	}
	a.Name = "\x00" + digits(place)
	if !d.holdsText[place] {
		return a
	}
	switch v := a.Value.(type) {
	case Text:
		a.Value = Int(d.textPlaces[string(v)])
	case Texts:
		list := make(Ints, len(v))
		for i, text := range v {
			list[i] = int64(d.textPlaces[text])
		}
		a.Value = list
	}
	return a
}

const base = 127

func digits(n int) string {
	var out []byte
	for {
		out = append(out, byte(n%base)+1)
		if n /= base; n == 0 {
			return string(out)
		}
	}
}

// attributes are the lists as attributes of the model; none when nothing was shortened.
func (d *dictionary) attributes() []Attribute {
	if len(d.names) == 0 {
		return nil
	}
	return []Attribute{
		{"attr_name_enum", Texts(d.names)},
		{"attr_value_enum", Texts(d.texts)},
		{"attrs_use_string_value", Bools(d.holdsText)},
	}
}
