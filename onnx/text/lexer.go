package text

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// tokenKind is what a token is; punctuation has its own first byte as kind.
type tokenKind rune

const (
	tokenEnd    tokenKind = -1 - iota // the end of the source
	tokenName                         // a bare identifier
	tokenString                       // a quoted string
	tokenInt                          // digits, perhaps with a sign
	tokenFloat                        // a number with a point, an exponent, or -inf
	tokenArrow                        // =>
	tokenMore                         // … or ..., where printing left elements out
)

// token is one word of the source. Its text is what the word stands for: a
// string without its quotes.
type token struct {
	kind tokenKind
	text string
	at   int // offset in the source
}

func (t token) describe() string {
	switch t.kind {
	case tokenEnd:
		return "the end"
	case tokenString:
		return "the string " + strconv.Quote(t.text)
	}
	return strconv.Quote(t.text)
}

// Error says what is wrong with a text, and where.
type Error struct {
	Line, Column int // from 1; the column counts characters
	Message      string
}

func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message) }

func errorAt(source string, at int, format string, args ...any) *Error {
	before := source[:at]
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return &Error{line, column, fmt.Sprintf(format, args...)}
}

// scan splits the whole source into tokens, the last of which is tokenEnd.
func scan(source string) ([]token, *Error) {
	var out []token
	for at := 0; ; {
		at += blank(source[at:])
		if at == len(source) {
			return append(out, token{tokenEnd, "", at}), nil
		}
		t, n, problem := scanOne(source[at:])
		if problem != "" {
			return nil, errorAt(source, at, "%s", problem)
		}
		t.at = at
		out = append(out, t)
		at += n
	}
}

// blank is the length of the white space and comments that s starts with.
func blank(s string) int {
	rest := s
	for {
		rest = strings.TrimLeft(rest, " \t\r\n")
		if !strings.HasPrefix(rest, "#") {
			return len(s) - len(rest)
		}
		end := strings.IndexByte(rest, '\n')
		if end < 0 {
			return len(s)
		}
		rest = rest[end:]
	}
}

// scanOne reads the token that s starts with, n bytes of it.
func scanOne(s string) (t token, n int, problem string) {
	switch c := s[0]; {
	case isLetter(c):
		n = runLength(s, isWordByte)
		return token{kind: tokenName, text: s[:n]}, n, ""
	case c == '"':
		return scanString(s)
	case isDigit(c), c == '-', c == '+', c == '.' && len(s) > 1 && isDigit(s[1]):
		return scanNumber(s)
	}
	for _, fixed := range []struct {
		text string
		kind tokenKind
	}{{"=>", tokenArrow}, {"...", tokenMore}, {"…", tokenMore}} {
		if strings.HasPrefix(s, fixed.text) {
			return token{kind: fixed.kind, text: fixed.text}, len(fixed.text), ""
		}
	}
	if strings.IndexByte("()[]{}<>=,:.?@", s[0]) >= 0 {
		return token{kind: tokenKind(s[0]), text: s[:1]}, 1, ""
	}
	r, _ := utf8.DecodeRuneInString(s)
	return token{}, 0, fmt.Sprintf("the character %q has no meaning here", r)
}

func scanString(s string) (token, int, string) {
	quoted, err := strconv.QuotedPrefix(s)
	if err != nil {
		return token{}, 0, "a string is not closed in its line, or has an unknown escape"
	}
	content, err := strconv.Unquote(quoted)
	if err != nil {
		return token{}, 0, "a string has an unknown escape"
	}
	return token{kind: tokenString, text: content}, len(quoted), ""
}

func scanNumber(s string) (token, int, string) {
	n := 0
	if s[0] == '-' || s[0] == '+' {
		n = 1
	}
	if word := runLength(s[n:], isWordByte); strings.EqualFold(s[n:n+word], "inf") {
		return token{kind: tokenFloat, text: s[:n+word]}, n + word, ""
	}
	n += runLength(s[n:], func(c byte) bool { return isDigit(c) || c == '.' })
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		n++
		if n < len(s) && (s[n] == '-' || s[n] == '+') {
			n++
		}
		n += runLength(s[n:], isDigit)
	}
	text := s[:n]
	if _, err := strconv.ParseFloat(text, 64); err != nil && !isRangeError(err) {
		return token{}, 0, fmt.Sprintf("%q is no number", text)
	}
	if strings.ContainsAny(text, ".eE") {
		return token{kind: tokenFloat, text: text}, n, ""
	}
	return token{kind: tokenInt, text: text}, n, ""
}

func isRangeError(err error) bool {
	e, ok := err.(*strconv.NumError)
	return ok && e.Err == strconv.ErrRange
}

func runLength(s string, in func(byte) bool) int {
	n := 0
	for n < len(s) && in(s[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' }

func isWordByte(c byte) bool { return isLetter(c) || isDigit(c) }
