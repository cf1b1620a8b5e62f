package configgen

import (
	"slices"
	"strings"
)

// OwnMark begins a comment that npuctl wrote, behind the #: such a comment goes, or is
// written anew, with the value that it explains. Every other comment is its author's
// and stays.
const OwnMark = ":"

// Patch changes what a document says at its top level, and leaves every byte of other
// fields alone: order, layout, comments, what the format does not know.
type Patch struct {
	doc     *Document
	edits   []Edit
	removed map[*Field]bool
	added   []addition
}

// addition is a new field, as text without the line's end.
type addition struct {
	name, text string
}

// NewPatch begins a change of a document that was read from a file.
func NewPatch(d *Document) *Patch { return &Patch{doc: d, removed: map[*Field]bool{}} }

// Set makes a field hold these values and nothing else, with comments of npuctl above
// it, one a line. Its own place in the file stays; a field that was not there comes
// behind those that are printed before it. No values take it away.
func (p *Patch) Set(name string, values []*Value, own []string) {
	occurrences := p.doc.Root.All(name)
	if len(values) == 0 {
		for _, f := range occurrences {
			p.remove(f)
		}
		return
	}
	t := Root().Field(name)
	field := &Field{Type: t, Name: name, Values: values, Brackets: t.Repeated && !t.Map}
	if len(occurrences) == 0 {
		field.Leading = own
		p.add(field)
		return
	}
	for _, f := range occurrences[1:] {
		p.remove(f)
	}
	first := occurrences[0]
	p.explain(first.Start, own)
	p.replace(first.Start, first.End, strings.TrimSuffix(printed(field), "\n"))
}

// SetEntry makes the entry of a key in a map have this value, with comments of npuctl
// above it.
func (p *Patch) SetEntry(name string, key any, entry *Value, own []string) {
	found := p.entries(name, key)
	if len(found) == 0 {
		t := Root().Field(name)
		p.add(&Field{Type: t, Name: name, Values: []*Value{{Message: entry.Message, Leading: own}}})
		return
	}
	for _, e := range found[:len(found)-1] { // the last one counts
		p.removeElement(e)
	}
	last := found[len(found)-1]
	changed := *last.value()
	changed.Message = changed.Message.Copy()
	changed.Message.become(entry.Message)
	w := &printer{}
	w.value(Root().Field(name), &changed, "", 0, "")
	p.explain(last.value().Start, own)
	p.replace(last.value().Start, last.value().End, strings.TrimSuffix(w.String(), "\n"))
}

// RemoveEntry takes the entry of a key out of a map.
func (p *Patch) RemoveEntry(name string, key any) {
	for _, e := range p.entries(name, key) {
		p.removeElement(e)
	}
}

// Text gives the file with all changes made.
func (p *Patch) Text() (string, error) {
	edits := slices.Clone(p.edits)
	for _, a := range p.added {
		edits = append(edits, p.insertion(a))
	}
	if first, _, _ := strings.Cut(p.doc.Text, "\n"); strings.HasSuffix(first, "\r") {
		for i := range edits {
			edits[i].Text = strings.ReplaceAll(strings.ReplaceAll(edits[i].Text, "\r\n", "\n"), "\n", "\r\n")
		}
	}
	return ApplyEdits(p.doc.Text, edits)
}

// element is one value of an occurrence of a field.
type element struct {
	field *Field
	index int
}

func (e element) value() *Value { return e.field.Values[e.index] }

func (p *Patch) entries(name string, key any) (out []element) {
	for _, f := range p.doc.Root.All(name) {
		for i, v := range f.Values {
			if k := v.Message.Field("key"); k != nil && k.Values[0].Scalar == key {
				out = append(out, element{f, i})
			}
		}
	}
	return out
}

func (p *Patch) replace(start, end int, text string) {
	p.edits = append(p.edits, Edit{Start: start, End: end, Text: text})
}

func (p *Patch) add(f *Field) {
	p.added = append(p.added, addition{f.Name, strings.TrimSuffix(printed(f), "\n")})
}

// printed is one field as the printer writes it.
func printed(f *Field) string {
	w := &printer{}
	w.fields(&Message{Type: Root(), Fields: []*Field{f}}, 0)
	return w.String()
}

// remove takes out a field with npuctl's comments above it.
func (p *Patch) remove(f *Field) {
	if p.removed[f] {
		return
	}
	p.removed[f] = true
	p.explain(f.Start, nil)
	e := p.doc.Removal(f)
	p.edits = append(p.edits, e)
}

// removeElement takes a value out of its list; the last one takes its field along.
func (p *Patch) removeElement(e element) {
	if len(e.field.Values) == 1 {
		p.remove(e.field)
		return
	}
	text, v := p.doc.Text, e.value()
	p.explain(v.Start, nil)
	if comma := skipBlanks(text, v.End); comma < len(text) && text[comma] == ',' {
		p.replace(v.Start, skipLineEnd(text, comma+1), "")
		return
	}
	before := e.field.Values[e.index-1]
	if comma := skipBlanks(text, before.End); text[comma] == ',' {
		p.replace(comma, comma+1, "")
	}
	p.replace(v.Start, v.End, "")
}

func skipBlanks(text string, at int) int {
	for at < len(text) && strings.ContainsRune(" \t\r\n", rune(text[at])) {
		at++
	}
	return at
}

// skipLineEnd goes over blanks and one line's end, if nothing else is before it.
func skipLineEnd(text string, at int) int {
	end := at
	for end < len(text) && (text[end] == ' ' || text[end] == '\t' || text[end] == '\r') {
		end++
	}
	if end < len(text) && text[end] == '\n' {
		return end + 1 + len(text[end+1:]) - len(strings.TrimLeft(text[end+1:], " \t"))
	}
	return end
}

// explain replaces npuctl's comments on the lines above an offset.
func (p *Patch) explain(offset int, own []string) {
	text := p.doc.Text
	line := lineStart(text, offset)
	indent := text[line : line+len(text[line:])-len(strings.TrimLeft(text[line:], " \t"))]
	top := line
	for top > 0 {
		above := lineStart(text, top-1)
		word := strings.TrimSpace(text[above : top-1])
		if !strings.HasPrefix(word, "#") {
			break
		}
		if strings.HasPrefix(word, "#"+OwnMark) {
			p.replace(above, top, "")
		}
		top = above
	}
	if before := strings.TrimSpace(text[line:offset]); before != "" && !isNameOnly(before) {
		return // it is not alone on its line: no place for a comment
	}
	for _, c := range own {
		p.replace(line, line, indent+"#"+c+"\n")
	}
}

func lineStart(text string, offset int) int { return strings.LastIndexByte(text[:offset], '\n') + 1 }

// insertion places a new field behind the last one that is printed before it.
func (p *Patch) insertion(a addition) Edit {
	order := Root().Names()
	rank := slices.Index(order, a.name)
	at := -1
	for _, f := range p.doc.Root.Fields {
		if f.Type != nil && !p.removed[f] && slices.Index(order, f.Name) <= rank {
			at = max(at, f.End)
		}
	}
	text := p.doc.Text
	if at < 0 {
		if len(p.doc.Root.Fields) > 0 && !p.removed[p.doc.Root.Fields[0]] {
			start := lineStart(text, p.doc.Root.Fields[0].Start)
			return Edit{Start: start, End: start, Text: a.text + "\n"}
		}
		at = len(text)
	}
	end := strings.IndexByte(text[at:], '\n')
	if end < 0 {
		return Edit{Start: len(text), End: len(text), Text: "\n" + a.text + "\n"}
	}
	if rest := strings.TrimSpace(text[at : at+end]); rest != "" && rest != "," && rest != ";" && rest[0] != '#' {
		return Edit{Start: at, End: at, Text: "\n" + a.text + "\n"} // another field stands on its line
	}
	if end > 0 && text[at+end-1] == '\r' {
		end-- // part of the line's end
	}
	return Edit{Start: at + end, End: at + end, Text: "\n" + a.text}
}

// Removal is the edit that takes a field out, with its separator and the line that it
// leaves empty.
func (d *Document) Removal(f *Field) Edit {
	text, start, end := d.Text, f.Start, f.End
	for end < len(text) && (text[end] == ',' || text[end] == ';') {
		end++
	}
	from, to := lineStart(text, start), end
	for to < len(text) && (text[to] == ' ' || text[to] == '\t' || text[to] == '\r') {
		to++
	}
	isAlone := strings.TrimSpace(text[from:start]) == "" && (to == len(text) || text[to] == '\n')
	if isAlone {
		return Edit{Start: from, End: min(to+1, len(text))}
	}
	if end < len(text) && text[end] == ' ' {
		end++
	}
	return Edit{Start: start, End: end}
}

// Copy is the message with fields and values of its own, so that a change of them is
// none of the original.
func (m *Message) Copy() *Message {
	c := *m
	c.Fields = make([]*Field, len(m.Fields))
	for i, f := range m.Fields {
		field := *f
		field.Values = make([]*Value, len(f.Values))
		for k, v := range f.Values {
			value := *v
			if v.Message != nil {
				value.Message = v.Message.Copy()
			}
			field.Values[k] = &value
		}
		c.Fields[i] = &field
	}
	return &c
}

// become makes a message say what another one says, and nothing else; its comments stay.
func (m *Message) become(other *Message) {
	for _, name := range m.Type.Names() {
		have, want := m.Values(name), other.Values(name)
		if len(have) == 1 && len(want) == 1 && have[0].Message != nil && want[0].Message != nil {
			inner := *have[0]
			inner.Message = inner.Message.Copy()
			inner.Message.become(want[0].Message)
			m.Set(name, &inner)
			continue
		}
		m.Set(name, want...)
	}
}

// Set makes a field hold these values and nothing else; its comments stay, and those of
// plain values go to the values in their places. No values take it away.
func (m *Message) Set(name string, values ...*Value) {
	if len(values) == 0 {
		m.Fields = slices.DeleteFunc(m.Fields, func(f *Field) bool { return f.Name == name })
		return
	}
	m.set(name, withComments(m.Values(name), values)...)
}

// withComments gives plain values the comments of those whose places they take; where
// there are fewer now, the last one has the comments of the rest above it.
func withComments(old, values []*Value) []*Value {
	out := slices.Clone(values)
	for i, o := range old {
		at := min(i, len(out)-1)
		v := *out[at]
		if o.Message != nil || v.Message != nil || o == out[at] || len(o.Leading) == 0 && o.Trailing == "" {
			continue
		}
		v.Leading = append(slices.Clone(v.Leading), o.Leading...)
		switch {
		case o.Trailing == "":
		case v.Trailing == "" && i == at:
			v.Trailing = o.Trailing
		default:
			v.Leading = append(v.Leading, o.Trailing)
		}
		out[at] = &v
	}
	return out
}

// WithoutOwn is a list of comments without those of npuctl.
func WithoutOwn(comments []string) []string {
	return slices.DeleteFunc(slices.Clone(comments), func(c string) bool { return strings.HasPrefix(c, OwnMark) })
}

// isNameOnly says whether a text is the name of a field and no more: what stands before
// the braces of a block.
func isNameOnly(text string) bool {
	return Root().Field(strings.TrimSpace(strings.TrimSuffix(text, ":"))) != nil
}
