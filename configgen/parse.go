package configgen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/internal/suggest"
)

// Parse reads a file as the server does. The error is a *ParseError; the document
// is given even then, as far as it was understood.
func Parse(name string, data []byte) (*Document, error) { return parse(name, data, false) }

// ParseLenient reads a file for editing: what the format does not know is kept as it
// stands instead of being an error.
func ParseLenient(name string, data []byte) (*Document, error) { return parse(name, data, true) }

func parse(name string, data []byte, keepUnknown bool) (*Document, error) {
	p := &parser{doc: &Document{Name: name, Text: string(data)}, keepUnknown: keepUnknown}
	p.scan = scanner{text: p.doc.Text, failed: func(e SyntaxError) { p.note(e) }}
	p.doc.Root = &Message{Type: Root(), End: len(data)}
	p.advance()
	p.message(p.doc.Root, tokenEnd, "")
	if len(p.errors) > 0 {
		return p.doc, &ParseError{Document: p.doc, Errors: p.errors}
	}
	return p.doc, nil
}

// parser follows the grammar of protobuf's text format. Methods that give a bool say
// whether reading can go on. It goes only as deep as the format nests: what is unknown
// is read over without going into it.
type parser struct {
	doc         *Document
	scan        scanner
	now         token
	lastEnd     int       // where the token before ended
	pending     []comment // comments that nothing has taken yet
	errors      []SyntaxError
	keepUnknown bool
}

func (p *parser) advance() {
	p.lastEnd = p.now.end
	p.now = p.scan.next(p.now)
	p.pending = append(p.pending, p.now.comments...)
}

func (p *parser) at(text string) bool { return p.now.kind == tokenSymbol && p.now.text == text }

func (p *parser) take(text string) bool {
	if !p.at(text) {
		return false
	}
	p.advance()
	return true
}

// fail reports an error at the present token.
func (p *parser) fail(kind ErrorKind, server, format string, args ...any) *SyntaxError {
	return p.failAt(p.now.start, kind, server, format, args...)
}

// failAt reports an error whose culprit stands before the present token, where the
// server sees it.
func (p *parser) failAt(offset int, kind ErrorKind, server, format string, args ...any) *SyntaxError {
	return p.note(SyntaxError{Kind: kind, Offset: offset, serverOffset: p.now.start, serverText: server,
		Message: fmt.Sprintf(format, args...)})
}

// maxErrors is how many errors of a file are kept: more tell nobody anything.
const maxErrors = 100

// note keeps an error, unless there are enough.
func (p *parser) note(e SyntaxError) *SyntaxError {
	if len(p.errors) >= maxErrors {
		return &e
	}
	p.errors = append(p.errors, e)
	return &p.errors[len(p.errors)-1]
}

// found says for people what the present token is.
func (p *parser) found() string {
	if p.now.kind == tokenEnd {
		return "the end of the file"
	}
	if p.now.kind == tokenString {
		return p.now.text
	}
	return fmt.Sprintf("%q", p.now.text)
}

// want takes a symbol that must stand here.
func (p *parser) want(text, hint string) bool {
	if p.take(text) {
		return true
	}
	e := p.fail(BadToken, fmt.Sprintf("Expected \"%s\", found \"%s\".", text, p.now.text), "expected %q, found %s%s", text, p.found(), hint)
	e.Expected = text
	return false
}

// comments takes the comments that nothing has taken yet.
func (p *parser) comments() []string {
	var out []string
	for _, c := range p.pending {
		out = append(out, c.text)
	}
	p.pending = nil
	return out
}

// trailing takes the comment that stands on the line on which the last token ended.
func (p *parser) trailing(end int) string {
	if len(p.pending) == 0 {
		return ""
	}
	if start := p.pending[0].start; start > end && strings.Contains(p.doc.Text[end:start], "\n") {
		return ""
	}
	text := p.pending[0].text
	p.pending = p.pending[1:]
	return text
}

// message reads fields up to a closing symbol, or to the end of the file.
func (p *parser) message(m *Message, end tokenKind, closing string) bool {
	for {
		switch {
		case end == tokenEnd && p.now.kind == tokenEnd:
			m.Trailing = p.comments()
			return true
		case closing != "" && (p.at("}") || p.at(">")):
			m.Trailing = p.comments()
			m.End = p.now.end
			return p.want(closing, "")
		}
		if !p.field(m) {
			return false
		}
	}
}

func (p *parser) field(m *Message) bool {
	f := &Field{Leading: p.comments(), Start: p.now.start}
	if p.at("[") {
		return p.extension(m)
	}
	if p.now.kind != tokenIdentifier {
		p.fail(BadToken, "Expected identifier, got: "+p.now.text, "expected the name of a field, found %s%s", p.found(), p.hint(m))
		return false
	}
	f.Name, f.Type = p.now.text, m.Type.Field(p.now.text)
	p.advance()
	m.Fields = append(m.Fields, f)
	canGoOn := false
	switch {
	case f.Type == nil:
		canGoOn = p.unknown(m, f)
	default:
		p.checkOnce(m, f)
		canGoOn = p.values(f)
	}
	if !canGoOn {
		return false
	}
	m.mark(f)
	f.End = p.lastEnd
	if f.Type == nil {
		f.Raw = p.doc.Text[f.Start:f.End]
	}
	separatorAt := p.now.end
	if p.take(";") || p.take(",") {
		f.Trailing = p.trailing(separatorAt)
	} else {
		f.Trailing = p.trailing(f.End)
	}
	return true
}

// hint says what a stray symbol at the place of a field may come from.
func (p *parser) hint(m *Message) string {
	switch {
	case p.at("{") && len(m.Fields) == 0 && m.Type == Root():
		return ": the file itself has no braces, as JSON has them"
	case p.at("/"):
		return ": comments begin with #"
	case p.at("}") || p.at(">") || p.at("]"):
		return ": nothing is open that it could close"
	case p.now.kind == tokenString:
		return ": names of fields have no quotes"
	case p.now.kind == tokenEnd:
		return fmt.Sprintf(": a block of %s is not closed", m.Type.Name)
	case p.at("$"):
		return ": a placeholder that nothing has filled in"
	}
	return ""
}

// extension reads [name], which this format has none of.
func (p *parser) extension(m *Message) bool {
	start := p.now.start
	p.advance()
	name := ""
	for {
		if p.now.kind != tokenIdentifier {
			p.fail(BadToken, "Expected identifier, got: "+p.now.text, "expected a name in brackets, found %s", p.found())
			return false
		}
		name += p.now.text
		p.advance()
		if !p.take(".") {
			break
		}
		name += "."
	}
	if !p.want("]", "") {
		return false
	}
	p.failAt(start, BadExtension, fmt.Sprintf("Extension \"%s\" is not defined or is not an extension of \"inference.%s\".", name, m.Type.Name),
		"[%s]: the format has no extensions", name)
	return false
}

// checkOnce reports a field that may occur once and has, and a member of a group of
// which another is set.
func (p *parser) checkOnce(m *Message, f *Field) {
	if !f.Type.Repeated && m.given[f.Type] {
		e := p.failAt(f.Start, DuplicateOnce, fmt.Sprintf("Non-repeated field \"%s\" is specified multiple times.", f.Name),
			"%s is set a second time", f.Name)
		e.Field = f.Name
		return
	}
	if f.Type.Oneof == "" {
		return
	}
	for _, other := range m.Type.Fields {
		if other != f.Type && other.Oneof == f.Type.Oneof && m.given[other] {
			e := p.failAt(f.Start, OneofClash,
				fmt.Sprintf("Field \"%s\" is specified along with field \"%s\", another member of oneof \"%s\".", f.Name, other.Name, f.Type.Oneof),
				"%s and %s exclude each other (%s)", f.Name, other.Name, f.Type.Oneof)
			e.Field = f.Name
		}
	}
}

// values reads what follows the name of a field.
func (p *parser) values(f *Field) bool {
	if f.Type.Kind == Nested {
		p.take(":")
	} else if !p.want(":", p.colonHint(f)) {
		return false
	}
	if !f.Type.Repeated || !p.at("[") {
		return p.value(f)
	}
	f.Brackets = true
	p.advance()
	if p.take("]") {
		return true
	}
	for {
		if !p.value(f) {
			return false
		}
		last := f.Values[len(f.Values)-1]
		last.Trailing = p.trailing(p.lastEnd)
		switch {
		case p.take("]"):
			return true
		case p.at(","):
			end := p.now.end
			p.advance()
			if last.Trailing == "" {
				last.Trailing = p.trailing(end)
			}
		default:
			p.want(",", " between elements of a list")
			return false
		}
	}
}

func (p *parser) colonHint(f *Field) string {
	switch {
	case p.at("="):
		return ": values are written " + f.Name + ": …"
	case p.at("["):
		return ": a list of plain values needs the colon, " + f.Name + ": […]"
	}
	return ""
}

func (p *parser) value(f *Field) bool {
	v := &Value{Leading: p.valueComments(f), Start: p.now.start}
	f.Values = append(f.Values, v)
	defer func() { v.End = p.lastEnd }()
	if f.Type.Kind == Nested {
		return p.nested(f, v)
	}
	return p.scalar(f, v)
}

// valueComments takes comments for an element of a list; others are left to the field.
func (p *parser) valueComments(f *Field) []string {
	if f.Brackets {
		return p.comments()
	}
	f.Leading = append(f.Leading, p.comments()...)
	return nil
}

func (p *parser) nested(f *Field, v *Value) bool {
	closing := "}"
	v.Message = &Message{Type: f.Type.Message, Start: p.now.start}
	if p.take("<") {
		closing = ">"
	} else if !p.want("{", p.braceHint(f)) {
		return false
	}
	return p.message(v.Message, tokenSymbol, closing)
}

func (p *parser) braceHint(f *Field) string {
	switch {
	case p.at("]") && len(f.Values) > 1:
		return ": a list does not end with a comma"
	case p.at("]") || p.at(","):
		return ": an element of the list is missing"
	case f.Name == "value" && p.now.kind == tokenString:
		return `: write value { string_value: … }`
	}
	return fmt.Sprintf(": %s is a block", f.Name)
}

// unknown reports a field that there is not and reads over it.
func (p *parser) unknown(m *Message, f *Field) bool {
	if !p.keepUnknown {
		e := p.failAt(f.Start, UnknownField, fmt.Sprintf("Message type \"inference.%s\" has no field named \"%s\".", m.Type.Name, f.Name),
			"%s has no field %q", m.Type.Name, f.Name)
		if e.Field = f.Name; len(p.errors) < maxErrors {
			e.Near = suggest.Nearest(f.Name, m.Type.Names())
		}
	}
	isColon := p.take(":")
	isOver := p.skipUnknown(isColon)
	p.dropInnerComments()
	return isOver
}

// dropInnerComments forgets the comments inside an unknown field, which are part of
// its raw text.
func (p *parser) dropInnerComments() {
	p.pending = slices.DeleteFunc(p.pending, func(c comment) bool { return c.start < p.lastEnd })
}

func (p *parser) skipUnknown(isColon bool) bool {
	switch {
	case p.at("{") || p.at("<"), p.at("["):
		return p.skipBlock()
	case !isColon:
		if p.keepUnknown {
			p.want(":", "")
		}
		return false
	case p.at("-"):
		p.advance()
	}
	switch p.now.kind {
	case tokenEnd, tokenSymbol:
		if p.keepUnknown {
			p.fail(BadToken, "", "expected a value, found %s", p.found())
		}
		return false
	case tokenString:
		for p.now.kind == tokenString {
			p.advance()
		}
	default:
		p.advance()
	}
	return true
}

// skipBlock reads over everything up to the brace that closes the present one.
func (p *parser) skipBlock() bool {
	depth := 0
	for {
		switch {
		case p.now.kind == tokenEnd:
			if p.keepUnknown {
				p.fail(BadToken, "", "the block is not closed")
			}
			return false
		case p.at("{") || p.at("<") || p.at("["):
			depth++
		case p.at("}") || p.at(">") || p.at("]"):
			depth--
		}
		p.advance()
		if depth == 0 {
			return true
		}
	}
}
