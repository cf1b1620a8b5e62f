package configgen

import "regexp"

// Placeholder is a ${name} that a template engine should have replaced.
type Placeholder struct {
	Text string
	// Offset is where it begins.
	Offset int
	// InString is set when it stands inside a string, where the server takes it for text.
	InString bool
}

var placeholderPattern = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_.-]*\}|\{\{ *[A-Za-z_][A-Za-z0-9_.-]* *\}\}`)

// Placeholders lists what is left of a template, outside comments.
func (d *Document) Placeholders() []Placeholder {
	if !placeholderPattern.MatchString(d.Text) {
		return nil
	}
	strings, comments := d.spans()
	var out []Placeholder
	for _, at := range placeholderPattern.FindAllStringIndex(d.Text, -1) {
		if !within(comments, at[0]) {
			out = append(out, Placeholder{d.Text[at[0]:at[1]], at[0], within(strings, at[0])})
		}
	}
	return out
}

type span struct{ start, end int }

func within(spans []span, offset int) bool {
	for _, s := range spans {
		if s.start <= offset && offset < s.end {
			return true
		}
	}
	return false
}

// spans gives where strings and comments stand.
func (d *Document) spans() (strings, comments []span) {
	s := scanner{text: d.Text, failed: func(SyntaxError) {}}
	for t := s.next(token{}); ; t = s.next(t) {
		for _, c := range t.comments {
			comments = append(comments, span{c.start, c.end})
		}
		switch t.kind {
		case tokenEnd:
			return strings, comments
		case tokenString:
			strings = append(strings, span{t.start, t.end})
		}
	}
}

// Comments gives the comments of a file, each with its place: for what is written
// into them, such as suppressions.
func (d *Document) Comments() []Comment {
	s := scanner{text: d.Text, failed: func(SyntaxError) {}}
	var out []Comment
	for t := s.next(token{}); ; t = s.next(t) {
		for _, c := range t.comments {
			out = append(out, Comment{c.text, c.start})
		}
		if t.kind == tokenEnd {
			return out
		}
	}
}

// Comment is a comment without its mark, and where the mark stands.
type Comment struct {
	Text   string
	Offset int
}
