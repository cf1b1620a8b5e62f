package configgen

import (
	"fmt"
	"strings"
)

// ErrorKind sorts what can be wrong with the text of a file.
type ErrorKind string

// The kinds of syntax errors.
const (
	BadCharacter  ErrorKind = "character" // control characters, characters outside ASCII
	BadNumber     ErrorKind = "number"    // digits that make no number
	BadString     ErrorKind = "string"    // no end, or a wrong escape
	BadToken      ErrorKind = "token"     // a brace, colon or comma is missing or too many
	BadValue      ErrorKind = "value"     // a value of another type
	BadRange      ErrorKind = "range"     // a number too large
	BadEnum       ErrorKind = "enum"      // no such value of the enumeration
	UnknownField  ErrorKind = "field"     // no such field
	DuplicateOnce ErrorKind = "duplicate" // a field twice that may be set once
	OneofClash    ErrorKind = "oneof"     // two of which only one may be set
	BadExtension  ErrorKind = "extension" // [name]
)

// SyntaxError is one thing that is wrong with the text of a file.
type SyntaxError struct {
	Kind ErrorKind
	// Offset is where the culprit begins.
	Offset int
	// Message says what is wrong and what was expected.
	Message string
	// Near is a name that was probably meant; empty when there is none.
	Near string
	// Field is the field concerned, where there is one.
	Field string
	// Expected says what was expected in its place, where that is one thing.
	Expected string

	serverText   string
	serverOffset int
}

// ParseError is everything that is wrong with the text of a file, in the order in
// which it was found. The first error is what the server stops at.
type ParseError struct {
	Document *Document
	Errors   []SyntaxError
}

// Error gives the first error with its place, the line and a mark under it.
func (e *ParseError) Error() string {
	first := e.Errors[0]
	line, column := e.Document.Place(first.Offset)
	text := e.Document.Line(line)
	mark := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, string([]rune(text)[:min(column-1, len([]rune(text)))])) + "^"
	message := first.Message
	if first.Near != "" {
		message += fmt.Sprintf("; did you mean %q?", first.Near)
	}
	return fmt.Sprintf("%s:%d:%d: %s\n  %s\n  %s", e.Document.Name, line, column, message, text, mark)
}

// Server is what the server says of the file, place first. Its place is where it
// noticed, often the token behind the culprit.
func (e *ParseError) Server() string {
	first := e.Errors[0]
	line, column := e.Document.serverPlace(first.serverOffset)
	return fmt.Sprintf("Error parsing text-format inference.ModelConfig: %d:%d: %s", line, column, first.serverText)
}

// serverPlace counts as the server does: bytes, and tabs to the next multiple of 8.
func (d *Document) serverPlace(offset int) (line, column int) {
	line, _ = d.Place(offset)
	for i := d.lines[line-1]; i < offset; i++ {
		column++
		if d.Text[i] == '\t' {
			column += 7 - (column-1)%8
		}
	}
	return line, column + 1
}
