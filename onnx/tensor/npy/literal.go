package npy

import (
	"fmt"
	"strconv"
	"strings"
)

// parser reads the subset of Python literals that headers consist of: strings,
// integers, True and False, tuples, lists, and one dict around them.
type parser struct {
	text  string
	depth int
}

// maxDepth is two more than any header needs: dict, list of fields, field.
const maxDepth = 5

// dict reads {'key': value, …} up to the end of the text.
func (p *parser) dict() (map[string]any, error) {
	if !p.take('{') {
		return nil, p.fail("a dict")
	}
	entries := make(map[string]any)
	for !p.take('}') {
		key, err := p.string()
		if err != nil {
			return nil, err
		}
		if _, twice := entries[key]; twice {
			return nil, fmt.Errorf("key %q occurs twice", key)
		}
		if !p.take(':') {
			return nil, p.fail("a colon")
		}
		if entries[key], err = p.value(); err != nil {
			return nil, err
		}
		if !p.take(',') && !p.next('}') {
			return nil, p.fail("a comma or the end of the dict")
		}
	}
	if p.skipSpace(); p.text != "" {
		return nil, p.fail("the end")
	}
	return entries, nil
}

// value reads one string, bool, int or sequence ([]any).
func (p *parser) value() (any, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		return nil, fmt.Errorf("values nested more than %d deep", maxDepth)
	}
	p.skipSpace()
	switch {
	case p.next('\'') || p.next('"'):
		return p.string()
	case p.take('('):
		return p.sequence(')')
	case p.take('['):
		return p.sequence(']')
	case p.word("True"):
		return true, nil
	case p.word("False"):
		return false, nil
	}
	return p.integer()
}

func (p *parser) sequence(end byte) (any, error) {
	items := []any{}
	for !p.take(end) {
		item, err := p.value()
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		if p.take(',') {
			continue
		}
		if !p.next(end) {
			return nil, p.fail("a comma or the end of the sequence")
		}
		if end == ')' && len(items) == 1 {
			p.take(end)
			return item, nil // (x) is x; a tuple of one is (x,)
		}
	}
	return items, nil
}

// string reads a quoted string. Nothing that headers hold needs an escape.
func (p *parser) string() (string, error) {
	p.skipSpace()
	for _, quote := range []byte{'\'', '"'} {
		if !p.take(quote) {
			continue
		}
		inner, rest, closed := strings.Cut(p.text, string(quote))
		if !closed || strings.ContainsAny(inner, "\\\n") {
			return "", p.fail("a plain string")
		}
		p.text = rest
		return inner, nil
	}
	return "", p.fail("a string")
}

// integer reads digits; Python 2 wrote an L after them.
func (p *parser) integer() (any, error) {
	digits := len(p.text) - len(strings.TrimLeft(p.text, "0123456789"))
	n, err := strconv.Atoi(p.text[:digits])
	if err != nil {
		return nil, p.fail("a value")
	}
	p.text = strings.TrimPrefix(p.text[digits:], "L")
	return n, nil
}

func (p *parser) skipSpace() { p.text = strings.TrimLeft(p.text, " \t\r\n") }

// next reports whether c comes next.
func (p *parser) next(c byte) bool {
	p.skipSpace()
	return p.text != "" && p.text[0] == c
}

// take is next, and goes past c.
func (p *parser) take(c byte) bool {
	if !p.next(c) {
		return false
	}
	p.text = p.text[1:]
	return true
}

func (p *parser) word(w string) bool {
	rest, ok := strings.CutPrefix(p.text, w)
	if ok {
		p.text = rest
	}
	return ok
}

// fail says what was expected and what is there.
func (p *parser) fail(expected string) error {
	const shown = 20
	found := p.text
	if len(found) > shown {
		found = found[:shown] + "…"
	}
	return fmt.Errorf("expected %s at %q", expected, found)
}
