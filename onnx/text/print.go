package text

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/onnx"
)

// Options says how much Print tells.
type Options struct {
	// MaxElements is the number of elements up to which a tensor is written whole;
	// of a larger one the first few are. 0 stands for 16, a negative number for no limit.
	MaxElements int
	// OmitTypes leaves out the types of values in between.
	OmitTypes bool
}

const defaultMaxElements = 16

// Print writes the model as text. An error is the writer's, or says which tensor
// cannot be read.
func Print(w io.Writer, m *onnx.Model, o Options) error {
	if o.MaxElements == 0 {
		o.MaxElements = defaultMaxElements
	}
	p := &printer{Writer: bufio.NewWriter(w), options: o}
	p.model(m)
	if p.err != nil {
		return p.err
	}
	return p.Flush()
}

// String gives the model as text with every tensor whole, as Parse reads it
// back. What goes wrong is told in the text.
func String(m *onnx.Model) string {
	var b strings.Builder
	if err := Print(&b, m, Options{MaxElements: -1}); err != nil {
		return err.Error()
	}
	return b.String()
}

// printer writes pieces of a model. The writer keeps its own first error; err is
// that of a tensor.
type printer struct {
	*bufio.Writer
	options Options
	indent  string
	err     error
}

func (p *printer) f(format string, args ...any) { fmt.Fprintf(p, format, args...) }

// line starts a new line.
func (p *printer) line() { p.f("\n%s", p.indent) }

// each writes items with commas between them.
func each[T any](p *printer, items []T, write func(T)) {
	for i, item := range items {
		if i > 0 {
			p.WriteString(", ")
		}
		write(item)
	}
}

func (p *printer) model(m *onnx.Model) {
	p.f("<ir_version: %d, opset_import: %s", m.IRVersion, opsets(m.Opsets))
	p.entry("producer_name", m.ProducerName)
	p.entry("producer_version", m.ProducerVersion)
	p.entry("domain", m.Domain)
	if m.Version != 0 {
		p.f(", model_version: %d", m.Version)
	}
	p.entry("doc_string", m.Doc)
	if len(m.Metadata) > 0 {
		p.f(", metadata_props: %s", properties(m.Metadata))
	}
	p.WriteString(">\n")
	p.graph(m.Graph)
	p.WriteByte('\n')
	for _, f := range m.Functions {
		p.function(f)
	}
}

// entry writes one more entry of a header, unless it says nothing.
func (p *printer) entry(key, value string) {
	if value != "" {
		p.f(", %s: %s", key, strconv.Quote(value))
	}
}

func opsets(imports []onnx.OpsetImport) string {
	parts := make([]string, len(imports))
	for i, o := range imports {
		parts[i] = fmt.Sprintf("%q : %d", o.Domain, o.Version)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func properties(ps []onnx.Property) string {
	parts := make([]string, len(ps))
	for i, p := range ps {
		parts[i] = fmt.Sprintf("%q: %q", p.Key, p.Value)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func (p *printer) notes(doc string, meta []onnx.Property) {
	if doc != "" {
		p.f(" @doc %q", doc)
	}
	if len(meta) > 0 {
		p.f(" @meta %s", properties(meta))
	}
}

func (p *printer) graph(g *onnx.Graph) {
	p.f("%s (", identifier(g.Name))
	inline := map[*onnx.Value]bool{}
	each(p, g.Inputs(), func(v *onnx.Value) {
		p.value(v)
		if t := v.Initializer(); t != nil && v.Type.String() == storedType(t) {
			inline[v] = true
			p.WriteString(" = ")
			p.tensorData(t)
		}
	})
	p.WriteString(") => (")
	each(p, g.Outputs(), p.value)
	p.WriteByte(')')
	p.stored(g, inline)
	p.notes(g.Doc, g.Metadata())
	p.nodes(g)
}

// storedType is the type of a stored tensor, as a value's Type prints.
func storedType(t *onnx.Tensor) string {
	declared := onnx.TensorType(t.Type(), t.Shape()...)
	if t.IsSparse() {
		declared.Kind = onnx.KindSparseTensor
	}
	return declared.String()
}

// stored lists the initializers that are not written with the inputs, and the
// types of values in between.
func (p *printer) stored(g *onnx.Graph, inline map[*onnx.Value]bool) {
	var entries []func()
	for _, v := range g.Initializers() {
		if !inline[v] {
			entries = append(entries, func() { p.initializer(v) })
		}
	}
	for _, v := range p.between(g) {
		entries = append(entries, func() { p.value(v) })
	}
	if len(entries) == 0 {
		return
	}
	p.line()
	p.WriteByte('<')
	for i, write := range entries {
		if i > 0 {
			p.WriteByte(',')
			p.line()
			p.WriteByte(' ')
		}
		write()
	}
	p.WriteByte('>')
}

// between lists the node outputs of g whose type no other place of the text tells.
func (p *printer) between(g *onnx.Graph) (out []*onnx.Value) {
	if p.options.OmitTypes {
		return nil
	}
	listed := map[*onnx.Value]bool{}
	for _, v := range g.Outputs() {
		listed[v] = true
	}
	for _, n := range g.Nodes() {
		for _, v := range n.Outputs() {
			if v != nil && v.Type != nil && !listed[v] {
				out = append(out, v)
			}
		}
	}
	return out
}

func (p *printer) initializer(v *onnx.Value) {
	t := v.Initializer()
	p.f("%s %s", tensorHead(t), identifier(v.Name()))
	if !v.IsInput() {
		p.notes(v.Doc(), v.Metadata())
	}
	p.WriteString(" = ")
	p.tensorData(t)
}

// value writes a declaration: type, name, notes.
func (p *printer) value(v *onnx.Value) {
	if v.Type != nil {
		p.WriteString(typeText(v.Type))
		p.WriteByte(' ')
	}
	p.WriteString(identifier(v.Name()))
	p.notes(v.Doc(), v.Metadata())
}

func (p *printer) nodes(g *onnx.Graph) {
	p.WriteString(" {")
	outer := p.indent
	p.indent += "  "
	for _, n := range g.Nodes() {
		p.line()
		p.node(n)
	}
	p.indent = outer
	p.line()
	p.WriteByte('}')
}

func (p *printer) function(f *onnx.Function) {
	p.f("<domain: %q, opset_import: %s", f.Domain, opsets(f.Opsets))
	p.entry("overload", f.Overload)
	p.entry("doc_string", f.Doc)
	if meta := f.Metadata(); len(meta) > 0 {
		p.f(", metadata_props: %s", properties(meta))
	}
	p.f(">\n%s ", identifier(f.Name))
	if len(f.Attributes)+len(f.Defaults) > 0 {
		p.WriteByte('<')
		each(p, f.Attributes, func(name string) { p.WriteString(identifier(name)) })
		for i, a := range f.Defaults {
			if i+len(f.Attributes) > 0 {
				p.WriteString(", ")
			}
			p.attribute(a)
		}
		p.WriteString("> ")
	}
	p.WriteByte('(')
	each(p, f.Body.Inputs(), p.value)
	p.WriteString(") => (")
	each(p, f.Body.Outputs(), p.value)
	p.WriteByte(')')
	p.stored(f.Body, nil)
	p.nodes(f.Body)
	p.WriteByte('\n')
}
