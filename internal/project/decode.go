package project

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/suggest"
)

// maxNodes bounds how much of a file is looked at: aliases multiply.
const maxNodes = 100_000

// decoder reads a tree of YAML into structs whose fields carry yaml names. It knows
// no other types than those in decode, so that every error can say what is wanted.
type decoder struct {
	path   string
	budget int
}

// knownTags are the types of YAML that may be written out.
var knownTags = []string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!seq", "!!map"}

// custom is a type that reads itself.
type custom interface {
	decodeYAML(d *decoder, n *yaml.Node) error
}

// refuse is an error at a place of the file.
func (d *decoder) refuse(n *yaml.Node, format string, args ...any) *fault.Error {
	return fault.New(fault.Input, "%s:%d:%d: %s", d.path, n.Line, n.Column, fmt.Sprintf(format, args...))
}

// decode reads n into what target points to.
func (d *decoder) decode(n *yaml.Node, target any) error {
	if d.budget--; d.budget < 0 {
		return d.refuse(n, "the file is too large, or its aliases multiply")
	}
	if n.Kind == yaml.AliasNode {
		return d.decode(n.Alias, target)
	}
	if n.Style&yaml.TaggedStyle != 0 && !slices.Contains(knownTags, n.ShortTag()) {
		return d.refuse(n, "the tag %s means nothing here", n.Tag).With("leave it out")
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil // a name without a value is as good as none
	}
	if c, ok := target.(custom); ok {
		return c.decodeYAML(d, n)
	}
	v := reflect.ValueOf(target).Elem()
	switch v.Kind() {
	case reflect.Struct:
		return d.fields(n, v)
	case reflect.Slice:
		return d.list(n, v)
	case reflect.Map:
		return d.names(n, v)
	}
	return d.scalar(n, v)
}

// fields reads a mapping into a struct.
func (d *decoder) fields(n *yaml.Node, v reflect.Value) error {
	if n.Kind != yaml.MappingNode {
		return d.refuse(n, "a list of name: value is wanted here, not %s", kindText(n))
	}
	known, at := fieldNames(v.Type())
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		field, isKnown := at[key.Value]
		if !isKnown {
			return d.refuse(key, "there is no %q here", key.Value).With("%s", suggest.Text(key.Value, known))
		}
		if first := seen[key.Value]; first != nil {
			return d.refuse(key, "%s is given twice; the first stands in line %d", key.Value, first.Line)
		}
		seen[key.Value] = key
		if err := d.decode(value, v.Field(field).Addr().Interface()); err != nil {
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
func (d *decoder) list(n *yaml.Node, v reflect.Value) error {
	entries := []*yaml.Node{n}
	switch n.Kind {
	case yaml.SequenceNode:
		entries = n.Content
	case yaml.MappingNode:
		return d.refuse(n, "a list is wanted here, not %s", kindText(n))
	}
	for _, e := range entries {
		one := reflect.New(v.Type().Elem())
		if err := d.decode(e, one.Interface()); err != nil {
			return err
		}
		v.Set(reflect.Append(v, one.Elem()))
	}
	return nil
}

// names reads a mapping whose keys are names of the model's.
func (d *decoder) names(n *yaml.Node, v reflect.Value) error {
	if n.Kind != yaml.MappingNode {
		return d.refuse(n, "a list of name: value is wanted here, not %s", kindText(n))
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		name := reflect.ValueOf(key.Value)
		if v.MapIndex(name).IsValid() {
			return d.refuse(key, "%s is given twice", key.Value)
		}
		one := reflect.New(v.Type().Elem())
		if err := d.decode(n.Content[i+1], one.Interface()); err != nil {
			return err
		}
		v.SetMapIndex(name, one.Elem())
	}
	return nil
}

// scalar reads a single value.
func (d *decoder) scalar(n *yaml.Node, v reflect.Value) error {
	if n.Kind != yaml.ScalarNode {
		return d.refuse(n, "%s is wanted here, not %s", wanted(v), kindText(n))
	}
	if !set(v, n.Value) {
		return d.refuse(n, "%q is not %s", n.Value, wanted(v))
	}
	return nil
}

// set writes a value of the file into v.
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
		f, err := strconv.ParseFloat(text, 64)
		v.SetFloat(f)
		return err == nil
	}
	return false
}

// wanted says what a field takes.
func wanted(v reflect.Value) string {
	switch v.Interface().(type) {
	case time.Duration:
		return "a time such as 30m or 90s"
	case bool:
		return "true or false"
	case int64:
		return "a whole number"
	case float64:
		return "a number"
	}
	return "a text"
}

func kindText(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a list of name: value"
	case yaml.SequenceNode:
		return "a list"
	}
	return fmt.Sprintf("%q", n.Value)
}

// keyOf is the key of a section, for messages about it.
func keyOf(root *yaml.Node, section string) *yaml.Node {
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == section {
			return root.Content[i]
		}
	}
	return root
}

// valueOf is the value of a name in a mapping; nil when it is not there.
func valueOf(n *yaml.Node, name string) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// decodeYAML reads the section model: a path, or its fields.
func (m *Model) decodeYAML(d *decoder, n *yaml.Node) error {
	switch n.Kind {
	case yaml.ScalarNode:
		m.Path = n.Value
		return nil
	case yaml.SequenceNode:
		return d.refuse(n, "one model is wanted here: its path, or path, batch, dims, input_shapes and bind").
			With("name several on the command line")
	}
	return d.fields(n, reflect.ValueOf(m).Elem())
}

// Gears are gears as --gears takes them.
type Gears struct{ Text string }

// decodeYAML reads the section gears: a text, or a list of numbers, texts or lists
// of numbers.
func (g *Gears) decodeYAML(d *decoder, n *yaml.Node) error {
	switch n.Kind {
	case yaml.ScalarNode:
		g.Text = n.Value
		return nil
	case yaml.MappingNode:
		return d.refuse(n, "a list of gears is wanted here, not %s", kindText(n))
	}
	var parts []string
	for _, e := range n.Content {
		var numbers []string
		if err := d.decode(e, &numbers); err != nil {
			return err
		}
		parts = append(parts, strings.Join(numbers, ","))
	}
	g.Text = strings.Join(parts, ";")
	return nil
}
