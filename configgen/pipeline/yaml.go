package pipeline

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/suggest"
	"github.com/npuctl/npuctl/internal/yamlfile"
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

// readFile reads a file of at most a megabyte.
func readFile(path string) ([]byte, error) {
	data, err := yamlfile.Read(path)
	if err != nil {
		return nil, fault.New(fault.Input, "read the pipeline %s: %w", path, err)
	}
	return data, nil
}

// decodeFile reads one YAML document into a struct whose fields are settings, or pointers
// to structs.
func decodeFile(file string, data []byte, target any) error {
	root, err := yamlfile.Parse(file, data)
	switch {
	case err != nil:
		return err
	case root == nil:
		return fault.New(fault.Input, "%s: the file is empty", file)
	}
	return yamlfile.NewDecoder(file).Decode(root, target)
}

// SetPlace lets the decoder tell a section where it stands.
func (p *place) SetPlace(at yamlfile.Place) { *p = place{at.File, at.Line, at.Column} }

// DecodeYAML reads the value, and keeps its place.
func (s *setting[T]) DecodeYAML(d *yamlfile.Decoder, n *yaml.Node) error {
	s.SetPlace(d.Place(n))
	return d.Decode(n, &s.Value)
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
