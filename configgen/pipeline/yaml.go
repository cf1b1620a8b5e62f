package pipeline

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/suggest"
)

// setting is a value of the file that knows where it stands.
type setting[T any] struct {
	Value T
	place
}

// place is where something stands in a file; the zero value is nowhere.
type place struct {
	file         string
	line, column int
}

// given says whether the file has it.
func (p place) given() bool { return p.line > 0 }

// refuse is a fault of the file at this place.
func (p place) refuse(format string, args ...any) *fault.Error {
	return fault.New(fault.Input, "%s: %s", p, fmt.Sprintf(format, args...))
}

func (p place) String() string {
	if !p.given() {
		return p.file
	}
	return fmt.Sprintf("%s:%d:%d", p.file, p.line, p.column)
}

// or gives the value, or another where the file has none.
func (s setting[T]) or(other T) T {
	if s.given() {
		return s.Value
	}
	return other
}

// leaf is a setting of any type.
type leaf interface {
	read(d *decoder, n *yaml.Node) error
}

// Limits of what a hostile file may cost.
const (
	fileLimit = 1 << 20
	nodeLimit = 100_000
)

// decoder reads one file into structs whose fields are settings, or pointers to structs.
type decoder struct {
	file string
	left int // nodes that may still be read: aliases can multiply
}

// readFile reads a file of at most a megabyte.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > fileLimit) {
		err = fmt.Errorf("it is no file of at most %d bytes", fileLimit)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fault.New(fault.Input, "read the pipeline %s: %w", path, err)
	}
	return data, nil
}

// decodeFile reads one YAML document.
func decodeFile(file string, data []byte, target any) error {
	d := &decoder{file: file, left: nodeLimit}
	documents := yaml.NewDecoder(bytes.NewReader(data))
	var document, more yaml.Node
	if err := documents.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return fault.New(fault.Input, "%s: %s", file, strings.ReplaceAll(err.Error(), "yaml: ", ""))
	}
	if len(document.Content) == 0 {
		return fault.New(fault.Input, "%s: the file is empty", file)
	}
	if err := documents.Decode(&more); !errors.Is(err, io.EOF) {
		return d.at(&more).refuse("a second document begins here, and one is all that is read")
	}
	return d.section(document.Content[0], reflect.ValueOf(target).Elem())
}

func (d *decoder) at(n *yaml.Node) place { return place{d.file, n.Line, n.Column} }

// follow resolves an alias, and counts.
func (d *decoder) follow(n *yaml.Node) (*yaml.Node, error) {
	if d.left--; d.left < 0 {
		return nil, d.at(n).refuse("the file is too large, or its aliases multiply")
	}
	if n.Kind == yaml.AliasNode {
		return n.Alias, nil
	}
	return n, nil
}

// section reads a mapping into a struct.
func (d *decoder) section(n *yaml.Node, into reflect.Value) error {
	n, err := d.follow(n)
	if err != nil {
		return err
	}
	if n.Kind != yaml.MappingNode {
		return d.at(n).refuse("a list of name: value is wanted here, not %s", kindText(n))
	}
	if p := into.FieldByName("place"); p.IsValid() && p.Type() == reflect.TypeFor[place]() {
		*into.Addr().Interface().(interface{ self() *place }).self() = d.at(n)
	}
	known, fields := fieldsOf(into.Type())
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		index, ok := fields[key.Value]
		if !ok {
			return d.at(key).refuse("there is no %q here", key.Value).With("%s", suggest.Text(key.Value, known))
		}
		if line, ok := seen[key.Value]; ok {
			return d.at(key).refuse("%s is given twice; the first stands in line %d", key.Value, line)
		}
		seen[key.Value] = key.Line
		if err := d.field(value, into.Field(index)); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) field(n *yaml.Node, into reflect.Value) error {
	if into.Kind() == reflect.Pointer { // a section that may be left out
		into.Set(reflect.New(into.Type().Elem()))
		return d.section(n, into.Elem())
	}
	if l, ok := into.Addr().Interface().(leaf); ok {
		return l.read(d, n)
	}
	return d.section(n, into)
}

// self lets the decoder write a section's place.
func (p *place) self() *place { return p }

// fieldsOf lists the names of a struct's fields in the file.
func fieldsOf(t reflect.Type) (names []string, fields map[string]int) {
	fields = map[string]int{}
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("yaml"); name != "" {
			names, fields[name] = append(names, name), i
		}
	}
	return names, fields
}

func (s *setting[T]) read(d *decoder, n *yaml.Node) error {
	n, err := d.follow(n)
	if err != nil {
		return err
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil // a name without a value is as good as none
	}
	s.place = d.at(n)
	return d.value(n, reflect.ValueOf(&s.Value).Elem())
}

// value reads a scalar, a list of scalars or a map of scalars.
func (d *decoder) value(n *yaml.Node, into reflect.Value) error {
	n, err := d.follow(n)
	switch {
	case err != nil:
		return err
	case into.Kind() == reflect.Slice:
		return d.list(n, into)
	case into.Kind() == reflect.Map:
		return d.entries(n, into)
	case n.Kind != yaml.ScalarNode:
		return d.at(n).refuse("%s is wanted here, not %s", wanted(into), kindText(n))
	case !setScalar(into, n.Value):
		return d.at(n).refuse("%q is not %s", n.Value, wanted(into))
	}
	return nil
}

// list reads a list; a single value is a list of one.
func (d *decoder) list(n *yaml.Node, into reflect.Value) error {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	for _, item := range items {
		one := reflect.New(into.Type().Elem()).Elem()
		if err := d.value(item, one); err != nil {
			return err
		}
		into.Set(reflect.Append(into, one))
	}
	return nil
}

func (d *decoder) entries(n *yaml.Node, into reflect.Value) error {
	if n.Kind != yaml.MappingNode {
		return d.at(n).refuse("a list of name: value is wanted here, not %s", kindText(n))
	}
	into.Set(reflect.MakeMap(into.Type()))
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := reflect.ValueOf(n.Content[i].Value)
		if into.MapIndex(name).IsValid() {
			return d.at(n.Content[i]).refuse("%s is given twice", name)
		}
		one := reflect.New(into.Type().Elem()).Elem()
		if err := d.value(n.Content[i+1], one); err != nil {
			return err
		}
		into.SetMapIndex(name, one)
	}
	return nil
}

// setScalar reads the text of a scalar, and says whether it is of the type.
func setScalar(into reflect.Value, text string) bool {
	var err error
	switch into.Interface().(type) {
	case time.Duration:
		var t time.Duration
		t, err = time.ParseDuration(text)
		into.SetInt(int64(t))
	case string:
		into.SetString(text)
	case bool:
		into.SetBool(text == "true")
		return text == "true" || text == "false"
	case int64:
		var n int64
		n, err = strconv.ParseInt(text, 10, 64)
		into.SetInt(n)
	case float64:
		var x float64
		x, err = strconv.ParseFloat(text, 64)
		into.SetFloat(x)
	}
	return err == nil
}

func wanted(v reflect.Value) string {
	switch v.Interface().(type) {
	case time.Duration:
		return "a time such as 2ms"
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

// oneOf refuses a word that is none of those there are.
func (s setting[T]) oneOf(words ...string) error {
	word := fmt.Sprint(s.Value)
	if !s.given() || slices.Contains(words, word) {
		return nil
	}
	return s.refuse("there is no %q here", word).With("%s", suggest.Text(word, words))
}

// within refuses a number outside of bounds.
func within[N int64 | float64](s setting[N], least, most N) error {
	if !s.given() || s.Value >= least && s.Value <= most {
		return nil
	}
	return s.refuse("%v is not between %v and %v", s.Value, least, most)
}
