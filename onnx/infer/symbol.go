package infer

import (
	"strconv"
	"strings"
)

// symbol stands for an integer that is not known: one that the model names, a
// nameless one, or the result of an operation that is not linear. Symbols of one
// key are the same integer.
type symbol struct {
	key       string // identity, and the order inside expressions
	text      string // for people
	operation operation
	a, b      Dim  // what the operation is applied to
	size      bool // never negative
	newest    int  // serial number of the youngest nameless symbol in it
}

// operation is what makes a symbol.
type operation uint8

const (
	opName      operation = iota // a name of the model
	opNameless                   // an unknown
	opFloor                      // a / b, rounded down
	opTruncate                   // a / b, rounded toward zero
	opPositive                   // max(a, 0)
	opBroadcast                  // the dim that a and b broadcast to
	opNonzero                    // a, or b where a is 0
)

// maxKey bounds the names in an expression that becomes part of a symbol: nested
// ones would grow without end.
const maxKey = 400

func newNamed(name string) *symbol {
	return &symbol{key: strconv.Quote(name), text: name, size: true}
}

func newNameless(serial int, size bool) *symbol {
	text := "?" + strconv.Itoa(serial)
	return &symbol{key: text, text: text, operation: opNameless, size: size, newest: serial}
}

func (s *symbol) dim() Dim { return Dim{form: &form{[]term{{1, []*symbol{s}}}}} }

func (s *symbol) compare(t *symbol) int {
	if s == t {
		return 0
	}
	return strings.Compare(s.key, t.key)
}

// derive makes the symbol of an operation on a and b.
func derive(operation operation, a, b Dim, size bool) Dim {
	if a.IsUnknown() || b.IsUnknown() {
		return Unknown()
	}
	if a.keySize()+b.keySize() > maxKey {
		return Unknown()
	}
	s := &symbol{operation: operation, a: a, b: b, size: size, newest: max(a.newest(), b.newest())}
	s.key = s.write(true)
	s.text = s.write(false)
	return s.dim()
}

// keySize is about the length of d's key.
func (d Dim) keySize() int {
	n := 0
	for _, t := range d.terms() {
		for _, s := range t.factors {
			n += len(s.key)
		}
	}
	return n
}

func (s *symbol) write(key bool) string {
	a, b := s.a.write(key), s.b.write(key)
	switch s.operation {
	case opFloor:
		return "floor(" + group(a) + "/" + group(b) + ")"
	case opTruncate:
		return "trunc(" + group(a) + "/" + group(b) + ")"
	case opPositive:
		return "max(" + a + ",0)"
	case opNonzero:
		return "nonzero(" + a + "," + b + ")"
	}
	return "broadcast(" + a + "," + b + ")"
}

// group puts brackets around what is more than one operand.
func group(text string) string {
	depth := 0
	for i, r := range text {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case depth == 0 && (r == '*' || r == '+' || r == '-' && i > 0):
			return "(" + text + ")"
		}
	}
	return text
}

// String gives the expression as people write it: "2*batch+1".
func (d Dim) String() string { return d.write(false) }

// key is a text that only equal expressions share.
func (d Dim) key() string { return d.write(true) }

func (d Dim) write(key bool) string {
	if d.form == nil {
		return strconv.FormatInt(d.constant, 10)
	}
	if d.IsUnknown() {
		return "?"
	}
	var b strings.Builder
	for i, t := range d.form.terms {
		if i > 0 && t.coefficient > 0 {
			b.WriteByte('+')
		}
		t.write(&b, key)
	}
	if d.constant != 0 {
		if d.constant > 0 {
			b.WriteByte('+')
		}
		b.WriteString(strconv.FormatInt(d.constant, 10))
	}
	return b.String()
}

func (t term) write(b *strings.Builder, key bool) {
	switch t.coefficient {
	case 1:
	case -1:
		b.WriteByte('-')
	default:
		b.WriteString(strconv.FormatInt(t.coefficient, 10))
		b.WriteByte('*')
	}
	for i, s := range t.factors {
		if i > 0 {
			b.WriteByte('*')
		}
		if key {
			b.WriteString(s.key)
		} else {
			b.WriteString(s.text)
		}
	}
}
