package text

import (
	"fmt"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/npuctl/npuctl/internal/onnxpb"
	"github.com/npuctl/npuctl/onnx"
)

const (
	// defaultIRVersion and defaultOpset hold for a text that does not say its own.
	defaultIRVersion = 10
	defaultOpset     = 21
	// maxNesting bounds how deeply types and graphs may be nested.
	maxNesting = 250
)

// Parse reads a model. A text without a header means IR version 10 and opset 21
// of the default domain. The error is an [*Error] where the text is to blame.
func Parse(source string) (*onnx.Model, error) {
	tokens, problem := scan(source)
	if problem != nil {
		return nil, problem
	}
	p := &parser{source: source, tokens: tokens}
	message := p.model()
	if p.err != nil {
		return nil, p.err
	}
	data, err := proto.MarshalOptions{AllowPartial: true}.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("make a model of the text: %w", err)
	}
	return onnx.Parse(data, "")
}

// TB is the part of testing.TB that MustParse needs.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// MustParse is Parse for tests: a text that is wrong ends the test.
func MustParse(t TB, source string) *onnx.Model {
	t.Helper()
	m, err := Parse(source)
	if err != nil {
		t.Fatalf("parse the model text: %v", err)
	}
	return m
}

// parser turns tokens into messages. After the first error every token is the
// end, so that no rule needs to look whether the one before it went well.
type parser struct {
	source string
	tokens []token
	next   int
	err    error
	depth  int
	scope  *scope
}

func (p *parser) peek() token         { return p.ahead(0) }
func (p *parser) at(k tokenKind) bool { return p.peek().kind == k }

func (p *parser) ahead(n int) token {
	if last := len(p.tokens) - 1; p.err != nil || p.next+n > last {
		return p.tokens[last]
	}
	return p.tokens[p.next+n]
}

func (p *parser) take() token {
	t := p.peek()
	p.next++
	return t
}

// accept takes the next token if it is of kind k.
func (p *parser) accept(k tokenKind) bool {
	if !p.at(k) {
		return false
	}
	p.next++
	return true
}

func (p *parser) expect(k tokenKind, what string) token {
	if !p.at(k) {
		p.fail(p.peek(), "%s is expected, not %s", what, p.peek().describe())
		return token{}
	}
	return p.take()
}

func (p *parser) punctuation(c rune) { p.expect(tokenKind(c), strconv.Quote(string(c))) }

func (p *parser) fail(t token, format string, args ...any) {
	if p.err == nil {
		p.err = errorAt(p.source, t.at, format, args...)
	}
}

// list reads items with commas between them up to the closing token, which it takes.
func (p *parser) list(closing rune, item func()) {
	for p.err == nil && !p.accept(tokenKind(closing)) {
		item()
		if !p.at(tokenKind(closing)) {
			p.expect(',', fmt.Sprintf("%q or %q", ",", closing))
		}
	}
}

// nested runs f one level deeper.
func (p *parser) nested(f func()) {
	if p.depth == maxNesting {
		p.fail(p.peek(), "nested deeper than %d", maxNesting)
		return
	}
	p.depth++
	f()
	p.depth--
}

// isIdentifier says whether the next token is a name, bare or quoted.
func (p *parser) isIdentifier() bool { return p.at(tokenName) || p.at(tokenString) }

// identifier reads a name, bare or quoted.
func (p *parser) identifier(what string) token {
	if p.at(tokenString) {
		return p.take()
	}
	return p.expect(tokenName, what)
}

func (p *parser) str() *string {
	s := p.expect(tokenString, "a quoted string").text
	return &s
}

func (p *parser) integer() *int64 {
	t := p.expect(tokenInt, "an integer")
	n, err := strconv.ParseInt(t.text, 10, 64)
	if err != nil {
		p.fail(t, "%s is beyond 64 bits", t.text)
	}
	return &n
}

func (p *parser) model() *onnxpb.ModelProto {
	m := &onnxpb.ModelProto{
		IrVersion:   proto.Int64(defaultIRVersion),
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(defaultOpset)}},
	}
	if p.at('<') {
		p.header(map[string]func(){
			"ir_version":       func() { m.IrVersion = p.integer() },
			"opset_import":     func() { m.OpsetImport = p.opsets() },
			"producer_name":    func() { m.ProducerName = p.str() },
			"producer_version": func() { m.ProducerVersion = p.str() },
			"domain":           func() { m.Domain = p.str() },
			"model_version":    func() { m.ModelVersion = p.integer() },
			"doc_string":       func() { m.DocString = p.str() },
			"metadata_props":   func() { m.MetadataProps = p.properties() },
		})
	}
	m.Graph = p.graph()
	for p.err == nil && !p.at(tokenEnd) {
		m.Functions = append(m.Functions, p.function())
	}
	return m
}

// header reads <key: value, …>, each key by its own rule.
func (p *parser) header(rules map[string]func()) {
	p.punctuation('<')
	p.list('>', func() {
		key := p.expect(tokenName, "a key")
		p.punctuation(':')
		rule := rules[key.text]
		if rule == nil {
			p.fail(key, "there is no key %q here", key.text)
			return
		}
		rule()
	})
}

func (p *parser) opsets() (out []*onnxpb.OperatorSetIdProto) {
	p.punctuation('[')
	p.list(']', func() {
		domain := p.str()
		p.punctuation(':')
		out = append(out, &onnxpb.OperatorSetIdProto{Domain: domain, Version: p.integer()})
	})
	return out
}

// properties reads ["key": "value", …].
func (p *parser) properties() (out []*onnxpb.StringStringEntryProto) {
	p.punctuation('[')
	p.list(']', func() {
		key := p.str()
		p.punctuation(':')
		out = append(out, &onnxpb.StringStringEntryProto{Key: key, Value: p.str()})
	})
	return out
}

// notes reads what may follow a node, a value or a graph's signature: @doc "…" and @meta [...].
func (p *parser) notes(doc **string, meta *[]*onnxpb.StringStringEntryProto) {
	for p.accept('@') {
		switch word := p.expect(tokenName, `"doc" or "meta"`); {
		case word.text == "doc":
			*doc = p.str()
		case word.text == "meta" && meta != nil:
			*meta = p.properties()
		default:
			p.fail(word, "there is no note @%s here", word.text)
		}
	}
}
