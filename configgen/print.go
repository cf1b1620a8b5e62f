package configgen

import (
	"slices"
	"strconv"
	"strings"
)

// Width is how long a line may get before a list or a block is broken into lines.
const Width = 100

// Print writes a document: fields in the order of the format's table, every list in
// one pair of brackets, maps as a block an entry, comments where they were. The same
// tree gives the same bytes.
func (d *Document) Print() []byte {
	w := &printer{}
	w.fields(d.Root, 0)
	w.comments(d.Root.Trailing, 0)
	return []byte(w.String())
}

type printer struct{ strings.Builder }

func (w *printer) line(depth int, text, trailing string) {
	w.WriteString(strings.Repeat("  ", depth) + text)
	if trailing != "" {
		w.WriteString(" #" + strings.TrimRight(trailing, " \t"))
	}
	w.WriteByte('\n')
}

func (w *printer) comments(comments []string, depth int) {
	for _, c := range comments {
		w.line(depth, strings.TrimRight("#"+c, " \t"), "")
	}
}

// gathered is everything that a message says of one field.
type gathered struct {
	kind     *FieldType
	leading  []string
	values   []*Value
	trailing string
}

// gather brings occurrences of fields together, in the order of printing. Unknown
// fields are not among them.
func gather(m *Message) (out []gathered) {
	for _, t := range m.Type.Fields {
		occurrences := m.All(t.Name)
		if len(occurrences) == 0 {
			continue
		}
		if !t.Repeated {
			occurrences = occurrences[len(occurrences)-1:]
		}
		g := gathered{kind: t}
		for i, f := range occurrences {
			g.add(f, i == 0, len(occurrences) == 1)
		}
		out = append(out, g)
	}
	return out
}

func (g *gathered) add(f *Field, isFirst, isOnly bool) {
	switch {
	case isOnly:
		g.leading, g.trailing, g.values = f.Leading, f.Trailing, f.Values
		return
	case len(f.Values) == 0 || isFirst && f.Brackets:
		g.leading = append(g.leading, f.Leading...)
	}
	for i, v := range f.Values {
		copied := *v
		if i == 0 && (!isFirst || !f.Brackets) {
			copied.Leading = append(slices.Clone(f.Leading), v.Leading...)
		}
		if i == len(f.Values)-1 {
			copied.Trailing = joinComments(v.Trailing, f.Trailing)
		}
		g.values = append(g.values, &copied)
	}
	if len(f.Values) == 0 && f.Trailing != "" {
		g.leading = append(g.leading, f.Trailing)
	}
}

// joinComments makes one comment of two that would stand on one line.
func joinComments(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " #" + b
}

func (w *printer) fields(m *Message, depth int) {
	for _, g := range gather(m) {
		switch {
		case g.kind.Map:
			w.entries(g, depth)
		case g.kind.Repeated:
			w.list(g, depth)
		default:
			w.single(g, depth)
		}
	}
	for _, f := range m.Fields {
		if f.Type == nil {
			w.comments(f.Leading, depth)
			w.line(depth, f.Raw, f.Trailing)
		}
	}
}

func (w *printer) single(g gathered, depth int) {
	w.comments(g.leading, depth)
	w.value(g.kind, g.values[0], g.kind.Name, depth, g.trailing)
}

// entries writes a map: one block an entry.
func (w *printer) entries(g gathered, depth int) {
	w.comments(g.leading, depth)
	if len(g.values) == 0 {
		w.line(depth, g.kind.Name+" [ ]", g.trailing)
	}
	for i, v := range g.values {
		trailing := v.Trailing
		if i == len(g.values)-1 {
			trailing = joinComments(trailing, g.trailing)
		}
		w.comments(v.Leading, depth)
		w.value(g.kind, v, g.kind.Name, depth, trailing)
	}
}

// value writes one value behind what stands before it: a name, or nothing in a list.
func (w *printer) value(t *FieldType, v *Value, before string, depth int, trailing string) {
	if short, ok := short(t, v, before); ok && (v.Message == nil || 2*depth+len(short) <= Width) {
		w.line(depth, short, trailing)
		return
	}
	if before != "" {
		before += " "
	}
	w.line(depth, before+"{", "")
	w.fields(v.Message, depth+1)
	w.comments(v.Message.Trailing, depth+1)
	w.line(depth, "}", trailing)
}

// short gives a value as one line, where it may be one: plain values always, blocks
// that hold at most one field, and entries of maps.
func short(t *FieldType, v *Value, before string) (text string, ok bool) {
	if v.Message == nil {
		if before != "" {
			before += ": "
		}
		return before + literal(t, v.Scalar), true
	}
	if before != "" {
		before += " "
	}
	inner, ok := shortFields(v.Message)
	if !ok || len(gather(v.Message)) > 1 && !t.Map {
		return "", false
	}
	if inner == "" {
		return before + "{ }", true
	}
	return before + "{ " + inner + " }", true
}

// shortFields gives the fields of a message as one line, where nothing speaks
// against it.
func shortFields(m *Message) (text string, ok bool) {
	if len(m.Trailing) > 0 {
		return "", false
	}
	var parts []string
	for _, f := range m.Fields {
		if f.Type == nil || len(f.Leading) > 0 || f.Trailing != "" {
			return "", false
		}
	}
	for _, g := range gather(m) {
		if g.kind.Repeated {
			part, ok := shortList(g)
			if !ok || g.kind.Kind == Nested {
				return "", false
			}
			parts = append(parts, part)
			continue
		}
		part, ok := short(g.kind, g.values[0], g.kind.Name)
		if !ok {
			return "", false
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " "), true
}

func (w *printer) list(g gathered, depth int) {
	w.comments(g.leading, depth)
	if text, ok := shortList(g); ok && 2*depth+len(text) <= Width {
		w.line(depth, text, g.trailing)
		return
	}
	opening := g.kind.Name + ": ["
	if g.kind.Kind == Nested {
		opening = g.kind.Name + " ["
	}
	w.line(depth, opening, "")
	for i, v := range g.values {
		comma := ","
		if i == len(g.values)-1 {
			comma = ""
		}
		w.comments(v.Leading, depth+1)
		w.element(g.kind, v, depth+1, comma)
	}
	w.line(depth, "]", g.trailing)
}

// element writes an element of a list. The comma stands right behind it.
func (w *printer) element(t *FieldType, v *Value, depth int, comma string) {
	inner := &printer{}
	inner.value(t, v, "", depth, "")
	text := strings.TrimSuffix(inner.String(), "\n")
	w.WriteString(text)
	w.line(0, comma, v.Trailing)
}

// shortList gives a list as one line, where its elements are short and have no
// comments.
func shortList(g gathered) (text string, ok bool) {
	name := g.kind.Name + ":"
	if g.kind.Kind == Nested {
		name = g.kind.Name
	}
	if len(g.values) == 0 {
		return name + " [ ]", true
	}
	var parts []string
	for _, v := range g.values {
		part, ok := short(g.kind, v, "")
		if !ok || len(v.Leading) > 0 || v.Trailing != "" {
			return "", false
		}
		parts = append(parts, part)
	}
	return name + " [ " + strings.Join(parts, ", ") + " ]", true
}

// literal writes a plain value.
func literal(t *FieldType, scalar any) string {
	switch v := scalar.(type) {
	case int32:
		return strconv.FormatInt(int64(v), 10)
	case int64:
		return strconv.FormatInt(v, 10)
	case uint32:
		return strconv.FormatUint(uint64(v), 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	case float32:
		return formatFloat(float64(v), 32)
	case float64:
		return formatFloat(v, 64)
	case bool:
		return strconv.FormatBool(v)
	case Enum:
		if name := t.Enum.ByNumber(int32(v)); name != "" {
			return name
		}
		return strconv.FormatInt(int64(v), 10)
	case string:
		return quote(v)
	}
	return ""
}
