package text

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/npuctl/npuctl/internal/onnxpb"
)

// scope collects the names that a graph defines and those it reads, so that an
// unknown one is told with its place. Nodes may stand in any order; what a graph
// does not define itself is the business of the graph around it.
type scope struct {
	defined map[string]bool
	read    []token
	outer   *scope
}

func (p *parser) openScope() { p.scope = &scope{defined: map[string]bool{}, outer: p.scope} }

func (p *parser) closeScope() {
	s := p.scope
	p.scope = s.outer
	for _, t := range s.read {
		switch {
		case s.defined[t.text]:
		case s.outer != nil:
			s.outer.read = append(s.outer.read, t)
		default:
			p.fail(t, "nothing makes %q%s", t.text, nearest(t.text, slices.Collect(maps.Keys(s.defined))))
		}
	}
}

func (p *parser) define(t token) {
	if p.scope.defined[t.text] {
		p.fail(t, "%q is made twice in one graph", t.text)
	}
	p.scope.defined[t.text] = true
}

func (p *parser) graph() *onnxpb.GraphProto {
	g := &onnxpb.GraphProto{}
	p.nested(func() {
		p.openScope()
		if p.isIdentifier() {
			g.Name = proto.String(p.take().text)
		}
		p.punctuation('(')
		p.list(')', func() { p.input(g) })
		p.expect(tokenArrow, `"=>"`)
		p.punctuation('(')
		p.list(')', func() {
			vi, name := p.valueInfo()
			p.scope.read = append(p.scope.read, name)
			g.Output = append(g.Output, vi)
		})
		if p.accept('<') {
			p.list('>', func() { p.stored(g) })
		}
		p.notes(&g.DocString, &g.MetadataProps)
		g.Node = p.nodes()
		p.closeScope()
	})
	return g
}

// input reads an input, perhaps with a default.
func (p *parser) input(g *onnxpb.GraphProto) {
	vi, name := p.valueInfo()
	p.define(name)
	g.Input = append(g.Input, vi)
	if p.at('=') {
		p.initializer(g, vi, name)
	}
}

// stored reads an entry of the list behind the outputs: an initializer, or the
// type of a value in between.
func (p *parser) stored(g *onnxpb.GraphProto) {
	vi, name := p.valueInfo()
	if !p.at('=') {
		g.ValueInfo = append(g.ValueInfo, vi)
		return
	}
	if !slices.ContainsFunc(g.Input, func(in *onnxpb.ValueInfoProto) bool { return in.GetName() == name.text }) {
		p.define(name)
	}
	if vi.DocString != nil || vi.MetadataProps != nil {
		g.ValueInfo = append(g.ValueInfo, vi) // a tensor's own notes have no other place
	}
	p.initializer(g, vi, name)
}

func (p *parser) initializer(g *onnxpb.GraphProto, vi *onnxpb.ValueInfoProto, name token) {
	p.punctuation('=')
	switch v := vi.GetType().GetValue().(type) {
	case *onnxpb.TypeProto_TensorType:
		g.Initializer = append(g.Initializer, p.tensorData(v.TensorType.GetElemType(), v.TensorType.GetShape(), name))
	case *onnxpb.TypeProto_SparseTensorType:
		g.SparseInitializer = append(g.SparseInitializer, p.sparseData(v.SparseTensorType.GetShape(), name))
	default:
		p.fail(name, "%q cannot be stored: only a tensor of known shape can", name.text)
	}
}

// valueInfo reads a value's type, which may be left out, its name and its notes.
func (p *parser) valueInfo() (*onnxpb.ValueInfoProto, token) {
	vi := &onnxpb.ValueInfoProto{}
	if next := p.ahead(1).kind; p.at(tokenName) && next != ',' && next != ')' && next != '>' && next != '=' && next != '@' {
		vi.Type = p.typeProto()
	}
	name := p.identifier("the name of a value")
	vi.Name = proto.String(name.text)
	p.notes(&vi.DocString, &vi.MetadataProps)
	return vi, name
}

func (p *parser) function() *onnxpb.FunctionProto {
	f := &onnxpb.FunctionProto{}
	if p.at('<') {
		p.header(map[string]func(){
			"opset_import":   func() { f.OpsetImport = p.opsets() },
			"domain":         func() { f.Domain = p.str() },
			"overload":       func() { f.Overload = p.str() },
			"doc_string":     func() { f.DocString = p.str() },
			"metadata_props": func() { f.MetadataProps = p.properties() },
		})
	}
	p.openScope()
	f.Name = proto.String(p.identifier("a function's name").text)
	if p.accept('<') {
		p.list('>', func() { p.functionAttribute(f) })
	}
	p.punctuation('(')
	p.list(')', func() {
		name := p.functionValue(f)
		p.define(name)
		f.Input = append(f.Input, name.text)
	})
	p.expect(tokenArrow, `"=>"`)
	p.punctuation('(')
	p.list(')', func() {
		name := p.functionValue(f)
		p.scope.read = append(p.scope.read, name)
		f.Output = append(f.Output, name.text)
	})
	if p.accept('<') {
		p.list('>', func() { p.functionValue(f) })
	}
	f.Node = p.nodes()
	p.closeScope()
	return f
}

// functionValue reads a name of a function's signature or body. A type that
// stands before it goes to the function's value_info, the only place there is.
func (p *parser) functionValue(f *onnxpb.FunctionProto) token {
	vi, name := p.valueInfo()
	if vi.Type != nil || vi.DocString != nil || vi.MetadataProps != nil {
		f.ValueInfo = append(f.ValueInfo, vi)
	}
	return name
}

// functionAttribute reads the name of an attribute a call must give, or one with its default.
func (p *parser) functionAttribute(f *onnxpb.FunctionProto) {
	if next := p.ahead(1).kind; next == ':' || next == '=' {
		f.AttributeProto = append(f.AttributeProto, p.attribute())
		return
	}
	f.Attribute = append(f.Attribute, p.identifier("an attribute's name").text)
}
