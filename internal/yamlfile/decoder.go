package yamlfile

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/suggest"
)

// Decoder reads the tree of one file.
type Decoder struct {
	file string
	left int // nodes that may still be read: aliases can multiply
}

// NewDecoder makes the decoder of a file, whose name is for messages.
func NewDecoder(file string) *Decoder { return &Decoder{file, maxNodes} }

// Custom is a type that reads itself. Aliases have been followed, and n is no null.
type Custom interface {
	DecodeYAML(d *Decoder, n *yaml.Node) error
}

// Placed is a struct that wants to know where it stands.
type Placed interface{ SetPlace(Place) }

// Place is where a node stands.
func (d *Decoder) Place(n *yaml.Node) Place { return PlaceOf(d.file, n) }

// Refuse is a fault of the file at a node.
func (d *Decoder) Refuse(n *yaml.Node, format string, args ...any) *fault.Error {
	return d.Place(n).Refuse(format, args...)
}

// knownTags are the types of YAML that may be written out.
var knownTags = []string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!seq", "!!map"}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// Decode reads a node into what target points to. A name without a value is as good as
// none, but for a section that is a pointer: there it is not clear what is meant.
func (d *Decoder) Decode(n *yaml.Node, target any) error {
	if d.left--; d.left < 0 {
		return d.Refuse(n, "the file is too large, or its aliases multiply")
	}
	if n.Kind == yaml.AliasNode {
		return d.Decode(n.Alias, target)
	}
	if n.Style&yaml.TaggedStyle != 0 && !slices.Contains(knownTags, n.ShortTag()) {
		return d.Refuse(n, "the tag %s means nothing here", n.Tag).With("leave it out")
	}
	v := reflect.ValueOf(target).Elem()
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		return d.Fields(n, v.Interface())
	}
	if isNull(n) {
		return nil
	}
	if c, ok := target.(Custom); ok {
		return c.DecodeYAML(d, n)
	}
	switch v.Kind() {
	case reflect.Struct:
		return d.Fields(n, target)
	case reflect.Slice:
		return d.list(n, v)
	case reflect.Map:
		return d.names(n, v)
	}
	return d.scalar(n, v)
}

// Fields reads a mapping into the struct that target points to, also of a type that reads
// itself otherwise.
func (d *Decoder) Fields(n *yaml.Node, target any) error {
	if n.Kind != yaml.MappingNode {
		return d.Refuse(n, "a list of name: value is wanted here, not %s", KindText(n))
	}
	if p, ok := target.(Placed); ok {
		p.SetPlace(d.Place(n))
	}
	v := reflect.ValueOf(target).Elem()
	known, at := fieldNames(v.Type())
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		field, isKnown := at[key.Value]
		if !isKnown {
			return d.Refuse(key, "there is no %q here", key.Value).With("%s", suggest.Text(key.Value, known))
		}
		if line, isTwice := seen[key.Value]; isTwice {
			return d.Refuse(key, "%s is given twice; the first stands in line %d", key.Value, line)
		}
		seen[key.Value] = key.Line
		if err := d.Decode(value, v.Field(field).Addr().Interface()); err != nil {
			return err
		}
	}
	return nil
}

// fieldNames lists the yaml names of a struct's fields, and the field of each.
func fieldNames(t reflect.Type) (names []string, at map[string]int) {
	at = map[string]int{}
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("yaml"); name != "" && name != "-" {
			names, at[name] = append(names, name), i
		}
	}
	return names, at
}

// list reads a sequence; a value alone is a list of one.
func (d *Decoder) list(n *yaml.Node, v reflect.Value) error {
	entries := []*yaml.Node{n}
	switch n.Kind {
	case yaml.SequenceNode:
		entries = n.Content
	case yaml.MappingNode:
		return d.Refuse(n, "a list is wanted here, not %s", KindText(n))
	}
	for _, e := range entries {
		one := reflect.New(v.Type().Elem())
		if isNull(e) {
			return d.Refuse(e, "%s is wanted here, not nothing", wanted(one.Elem()))
		}
		if err := d.Decode(e, one.Interface()); err != nil {
			return err
		}
		v.Set(reflect.Append(v, one.Elem()))
	}
	return nil
}

// names reads a mapping whose keys are no names of ours.
func (d *Decoder) names(n *yaml.Node, v reflect.Value) error {
	if n.Kind != yaml.MappingNode {
		return d.Refuse(n, "a list of name: value is wanted here, not %s", KindText(n))
	}
	v.Set(reflect.MakeMap(v.Type()))
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if seen[key.Value] {
			return d.Refuse(key, "%s is given twice", key.Value)
		}
		seen[key.Value] = true
		if isNull(value) { // as good as none
			continue
		}
		one := reflect.New(v.Type().Elem())
		if err := d.Decode(value, one.Interface()); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(key.Value), one.Elem())
	}
	return nil
}

// scalar reads a single value.
func (d *Decoder) scalar(n *yaml.Node, v reflect.Value) error {
	if n.Kind != yaml.ScalarNode {
		return d.Refuse(n, "%s is wanted here, not %s", wanted(v), KindText(n))
	}
	if !set(v, n.Value) {
		return d.Refuse(n, "%q is not %s", n.Value, wanted(v))
	}
	return nil
}

// set writes a value of the file into v, and says whether it is of v's type.
func set(v reflect.Value, text string) bool {
	switch v.Interface().(type) {
	case time.Duration:
		t, err := time.ParseDuration(text)
		v.SetInt(int64(t))
		return err == nil && t >= 0
	case string:
		v.SetString(text)
		return true
	case bool:
		v.SetBool(text == "true")
		return text == "true" || text == "false"
	case int64:
		n, err := strconv.ParseInt(text, 10, 64)
		v.SetInt(n)
		return err == nil
	case float64:
		x, err := strconv.ParseFloat(text, 64)
		v.SetFloat(x)
		return err == nil
	}
	return false
}

// wanted says what a field takes.
func wanted(v reflect.Value) string {
	switch v.Interface().(type) {
	case time.Duration:
		return "a time such as 30m, 90s or 2ms"
	case bool:
		return "true or false"
	case int64:
		return "a whole number"
	case float64:
		return "a number"
	}
	return "a text"
}

// KindText says what a node is.
func KindText(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a list of name: value"
	case yaml.SequenceNode:
		return "a list"
	}
	return fmt.Sprintf("%q", n.Value)
}

// Key is the key of a name in a mapping; the mapping itself when it has none.
func Key(n *yaml.Node, name string) *yaml.Node {
	if key, _ := find(n, name); key != nil {
		return key
	}
	return n
}

// Value is the value of a name in a mapping; nil when it is not there.
func Value(n *yaml.Node, name string) *yaml.Node {
	_, value := find(n, name)
	return value
}

func find(n *yaml.Node, name string) (key, value *yaml.Node) {
	if n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}
