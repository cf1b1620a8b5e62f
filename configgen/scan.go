package configgen

import (
	"fmt"
	"strings"
)

// tokenKind is what a token is to the parser.
type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenIdentifier
	tokenInteger
	tokenFloat
	tokenString
	tokenSymbol // one byte
)

type token struct {
	kind       tokenKind
	text       string
	start, end int
	// comments stand between the token before and this one.
	comments []comment
}

// comment is one comment, without its mark.
type comment struct {
	text       string
	start, end int
}

// scanner cuts a file into tokens as the tokenizer of protobuf's text format does.
// It goes on after an error; the parser then refuses the file at its end.
type scanner struct {
	text   string
	at     int
	failed func(SyntaxError)
}

func (s *scanner) peek() byte {
	if s.at >= len(s.text) {
		return 0
	}
	return s.text[s.at]
}

func (s *scanner) take(accept func(byte) bool) bool {
	if s.at < len(s.text) && accept(s.text[s.at]) {
		s.at++
		return true
	}
	return false
}

func (s *scanner) takeByte(b byte) bool { return s.take(func(c byte) bool { return c == b }) }

func (s *scanner) skip(accept func(byte) bool) {
	for s.take(accept) {
	}
}

func isSpace(b byte) bool {
	return b == ' ' || b == '\n' || b == '\t' || b == '\r' || b == '\v' || b == '\f'
}
func isControl(b byte) bool { return b < ' ' && !isSpace(b) }
func isDigit(b byte) bool   { return '0' <= b && b <= '9' }
func isOctal(b byte) bool   { return '0' <= b && b <= '7' }
func isHex(b byte) bool     { return isDigit(b) || 'a' <= b && b <= 'f' || 'A' <= b && b <= 'F' }
func isLetter(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || b == '_'
}
func isAlphanumeric(b byte) bool { return isLetter(b) || isDigit(b) }

// fail reports an error at the place that has been reached. The server's words are
// for that place too.
func (s *scanner) fail(kind ErrorKind, server, message string) {
	s.failed(SyntaxError{Kind: kind, Offset: s.at, serverOffset: s.at, serverText: server, Message: message})
}

// next gives the next token; after the last one it gives tokenEnd for ever.
func (s *scanner) next(previous token) token {
	var comments []comment
	for {
		s.skip(isSpace)
		switch {
		case s.at >= len(s.text):
			return token{kind: tokenEnd, start: s.at, end: s.at, comments: comments}
		case s.peek() == '#':
			comments = append(comments, s.comment())
		case isControl(s.peek()):
			s.fail(BadCharacter, "Invalid control characters encountered in text.",
				fmt.Sprintf("control character 0x%02X", s.peek()))
			s.skip(isControl)
		default:
			t := token{start: s.at, comments: comments}
			t.kind = s.token(previous)
			t.end = s.at
			t.text = s.text[t.start:t.end]
			return t
		}
	}
}

// comment reads to the end of the line. A NUL ends a comment too; then it is an
// error of its own.
func (s *scanner) comment() comment {
	start := s.at
	s.skip(func(b byte) bool { return b != '\n' && b != 0 })
	text := s.text[start+1 : s.at]
	if n := len(text); n > 0 && text[n-1] == '\r' {
		text = text[:n-1]
	}
	return comment{text: text, start: start, end: s.at}
}

func (s *scanner) token(previous token) tokenKind {
	first := s.peek()
	s.at++
	switch {
	case isLetter(first):
		s.skip(isAlphanumeric)
		return tokenIdentifier
	case first == '.' && s.take(isDigit):
		if previous.kind == tokenIdentifier && previous.end == s.at-2 {
			s.failed(SyntaxError{Kind: BadNumber, Offset: s.at - 2, serverOffset: s.at - 2,
				serverText: "Need space between identifier and decimal point.", Message: "a name and a number need a space between them"})
		}
		return s.number(false, true)
	case isDigit(first):
		return s.number(first == '0', false)
	case first == '"' || first == '\'':
		s.quoted(first)
		return tokenString
	case first >= 0x80:
		s.at--
		s.fail(BadCharacter, fmt.Sprintf("Interpreting non ascii codepoint %d.", first), s.foreignText())
		s.at++
	}
	return tokenSymbol
}

// foreignText says which character outside ASCII stands here.
func (s *scanner) foreignText() string {
	r := []rune(s.text[s.at:min(len(s.text), s.at+4)])[0]
	switch r {
	case '\ufeff':
		return "a byte-order mark: save the file as UTF-8 without it"
	case '\u00a0':
		return "a no-break space: it looks like a space and is none"
	case '“', '”', '‘', '’':
		return fmt.Sprintf("the typographic quote %c: write \" or '", r)
	case '，', '：', '；', '（', '）', '【', '】', '｛', '｝':
		return fmt.Sprintf("the full-width %c: switch the input method off", r)
	case '\ufffd':
		return fmt.Sprintf("the byte 0x%02X outside a string", s.peek())
	}
	return fmt.Sprintf("the character %q outside a string", r)
}

// number reads on after the first digit, or after a dot and a digit.
func (s *scanner) number(afterZero, afterDot bool) tokenKind {
	kind := tokenInteger
	switch {
	case afterZero && (s.takeByte('x') || s.takeByte('X')):
		if !s.take(isHex) {
			s.fail(BadNumber, `"0x" must be followed by hex digits.`, "0x without a hexadecimal digit")
		}
		s.skip(isHex)
	case afterZero && isDigit(s.peek()):
		s.skip(isOctal)
		if isDigit(s.peek()) {
			s.fail(BadNumber, "Numbers starting with leading zero must be in octal.", "a number that begins with 0 is octal and has no digit 8 or 9")
			s.skip(isDigit)
		}
	default:
		kind = s.decimal(afterDot)
	}
	switch {
	case isLetter(s.peek()):
		s.fail(BadNumber, "Need space between number and identifier.", "letters right behind a number: numbers have no unit and no suffix")
	case s.peek() == '.' && kind == tokenFloat:
		s.fail(BadNumber, "Already saw decimal point or exponent; can't have another one.", "a second decimal point in a number")
	case s.peek() == '.':
		s.fail(BadNumber, "Hex and octal numbers must be integers.", "a decimal point in a hexadecimal or octal number")
	}
	return kind
}

func (s *scanner) decimal(afterDot bool) tokenKind {
	kind := tokenInteger
	if afterDot {
		kind = tokenFloat
	}
	s.skip(isDigit)
	if !afterDot && s.takeByte('.') {
		kind = tokenFloat
		s.skip(isDigit)
	}
	if s.takeByte('e') || s.takeByte('E') {
		kind = tokenFloat
		_ = s.takeByte('-') || s.takeByte('+')
		if !s.take(isDigit) {
			s.fail(BadNumber, `"e" must be followed by exponent.`, "an exponent without digits")
		}
		s.skip(isDigit)
	}
	if s.takeByte('f') || s.takeByte('F') {
		kind = tokenFloat
	}
	return kind
}

// quoted reads on after an opening quote. It only looks whether escapes are well
// formed; unquote says what they mean.
func (s *scanner) quoted(quote byte) {
	for {
		switch {
		case s.at >= len(s.text) || s.peek() == 0:
			s.fail(BadString, "Unexpected end of string.", "the file ends inside a string: its closing quote is missing")
			return
		case s.peek() == '\n':
			s.fail(BadString, "String literals cannot cross line boundaries.", fmt.Sprintf("the line ends inside a string: the closing %c is missing", quote))
			return
		case s.takeByte(quote):
			return
		case s.takeByte('\\'):
			s.escape()
		default:
			s.at++
		}
	}
}

func (s *scanner) escape() {
	switch {
	case s.take(func(b byte) bool { return escapes[b] != 0 }), s.take(isOctal):
	case s.takeByte('x'):
		if !s.take(isHex) {
			s.fail(BadString, "Expected hex digits for escape sequence.", `\x without hexadecimal digits`)
		}
	case s.takeByte('u'):
		if !s.takeHex(4) {
			s.fail(BadString, `Expected four hex digits for \u escape sequence.`, `\u takes four hexadecimal digits`)
		}
	case s.takeByte('U'):
		isInRange := strings.HasPrefix(s.text[s.at:], "000") || strings.HasPrefix(s.text[s.at:], "001")
		if !isInRange || !s.takeHex(8) {
			s.fail(BadString, `Expected eight hex digits up to 10ffff for \U escape sequence`, `\U takes eight hexadecimal digits, at most 0010ffff`)
		}
	default:
		s.fail(BadString, "Invalid escape sequence in string literal.", `an escape that there is not: a backslash itself is written \\`)
	}
}

func (s *scanner) takeHex(n int) bool {
	for range n {
		if !s.take(isHex) {
			return false
		}
	}
	return true
}

// escapes are the bytes that may stand behind a backslash, with what they mean.
var escapes = [256]byte{
	'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v',
	'\\': '\\', '?': '?', '\'': '\'', '"': '"',
}
