package text

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/npuctl/npuctl/internal/onnxpb"
	"github.com/npuctl/npuctl/onnx"
)

func (p *parser) nodes() (out []*onnxpb.NodeProto) {
	p.punctuation('{')
	for p.err == nil && !p.accept('}') {
		out = append(out, p.node())
	}
	return out
}

func (p *parser) node() *onnxpb.NodeProto {
	n := &onnxpb.NodeProto{}
	if p.accept('[') {
		n.Name = proto.String(p.identifier("a node's name").text)
		p.punctuation(']')
	}
	p.list('=', func() {
		t := p.identifier("the name of an output")
		if t.text != "" {
			p.define(t)
		}
		n.Output = append(n.Output, t.text)
	})
	p.operator(n)
	n.Attribute = p.attributes()
	p.punctuation('(')
	p.list(')', func() {
		t := p.identifier("the name of an input")
		if t.text != "" {
			p.scope.read = append(p.scope.read, t)
		}
		n.Input = append(n.Input, t.text)
	})
	n.Attribute = append(n.Attribute, p.attributes()...)
	p.notes(&n.DocString, &n.MetadataProps)
	return n
}

// operator reads domain.name:overload, of which only the name must be there.
func (p *parser) operator(n *onnxpb.NodeProto) {
	parts := []string{p.identifier("an operator").text}
	for p.accept('.') {
		parts = append(parts, p.identifier("an operator").text)
	}
	last := len(parts) - 1
	n.OpType = &parts[last]
	if last > 0 {
		n.Domain = proto.String(strings.Join(parts[:last], "."))
	}
	if p.accept(':') {
		n.Overload = proto.String(p.identifier("the name of an overload").text)
	}
}

func (p *parser) attributes() (out []*onnxpb.AttributeProto) {
	if !p.accept('<') {
		return nil
	}
	p.list('>', func() { out = append(out, p.attribute()) })
	return out
}

// attributeKinds are the kinds of an attribute as the text names them.
var attributeKinds = map[string]onnx.AttributeKind{
	"float": onnx.AttributeFloat, "floats": onnx.AttributeFloats,
	"int": onnx.AttributeInt, "ints": onnx.AttributeInts,
	"string": onnx.AttributeString, "strings": onnx.AttributeStrings,
	"tensor": onnx.AttributeTensor, "tensors": onnx.AttributeTensors,
	"graph": onnx.AttributeGraph, "graphs": onnx.AttributeGraphs,
	"sparse_tensor": onnx.AttributeSparseTensor, "sparse_tensors": onnx.AttributeSparseTensors,
	"type_proto": onnx.AttributeType, "type_protos": onnx.AttributeTypes,
}

// listKinds gives the kind of a list of values of a kind.
var listKinds = map[onnx.AttributeKind]onnx.AttributeKind{
	onnx.AttributeFloat: onnx.AttributeFloats, onnx.AttributeInt: onnx.AttributeInts,
	onnx.AttributeString: onnx.AttributeStrings, onnx.AttributeTensor: onnx.AttributeTensors,
	onnx.AttributeGraph: onnx.AttributeGraphs, onnx.AttributeSparseTensor: onnx.AttributeSparseTensors,
	onnx.AttributeType: onnx.AttributeTypes,
}

func kindName(k onnx.AttributeKind) string {
	for name, kind := range attributeKinds {
		if kind == k {
			return name
		}
	}
	return "undefined"
}

// attribute reads name: kind = value; the kind may be left out where the value tells it.
func (p *parser) attribute() *onnxpb.AttributeProto {
	a := &onnxpb.AttributeProto{Name: proto.String(p.identifier("an attribute's name").text)}
	var kind onnx.AttributeKind
	if p.accept(':') {
		t := p.expect(tokenName, "the kind of an attribute")
		known := false
		if kind, known = attributeKinds[t.text]; !known {
			p.fail(t, "there is no kind of attribute %q%s", t.text, nearest(t.text, slices.Sorted(maps.Keys(attributeKinds))))
		}
	}
	p.punctuation('=')
	switch start := p.peek(); {
	case p.accept('@'):
		a.RefAttrName = proto.String(p.identifier("the name of the function's attribute").text)
		if kind == 0 {
			p.fail(start, "a reference needs a kind: %s: int = @%s", a.GetName(), a.GetRefAttrName())
		}
	case p.accept('['):
		kind = p.attributeList(a, start, kind)
	default:
		if kind == 0 {
			kind = p.guessKind()
		}
		if listKinds[kind] == 0 && p.err == nil {
			p.fail(start, "%s is expected in brackets", kindName(kind))
		}
		p.attributeValue(a, kind, false)
	}
	k := onnxpb.AttributeProto_AttributeType(kind)
	a.Type = &k
	p.notes(&a.DocString, nil)
	return a
}

// attributeList reads the values behind an opening bracket and gives the kind of the list.
func (p *parser) attributeList(a *onnxpb.AttributeProto, start token, kind onnx.AttributeKind) onnx.AttributeKind {
	var of onnx.AttributeKind
	for one, many := range listKinds {
		if many == kind {
			of = one
		}
	}
	if kind != 0 && of == 0 {
		p.fail(start, "one %s is expected, not a list", kindName(kind))
		return kind
	}
	if of == 0 {
		if p.at(']') {
			p.fail(start, "an empty list needs a kind, such as ints")
			return kind
		}
		of = p.guessKind()
	}
	p.list(']', func() { p.attributeValue(a, of, true) })
	return listKinds[of]
}

// guessKind tells the kind of a value from how it starts.
func (p *parser) guessKind() onnx.AttributeKind {
	t, next := p.peek(), p.ahead(1).kind
	_, isType := elementType(t.text)
	switch {
	case t.kind == tokenInt:
		return onnx.AttributeInt
	case t.kind == tokenFloat, t.kind == tokenName && isFloatWord(t.text):
		return onnx.AttributeFloat
	case t.kind == tokenString && next != '(':
		return onnx.AttributeString
	case t.kind == tokenName && t.text == "sparse_tensor" && p.ahead(2).kind == tokenName:
		return onnx.AttributeSparseTensor
	case t.kind == tokenName && isType && next != '(':
		return onnx.AttributeTensor
	case t.kind == '(', p.isIdentifier() && next == '(':
		return onnx.AttributeGraph
	}
	p.fail(t, "the value of an attribute is expected, not %s", t.describe())
	return 0
}

// attributeValue reads one value and puts it where its kind belongs, in the
// field of one or at the end of the list.
func (p *parser) attributeValue(a *onnxpb.AttributeProto, kind onnx.AttributeKind, many bool) {
	switch kind {
	case onnx.AttributeFloat:
		put(&a.F, &a.Floats, float32(p.number(32)), many)
	case onnx.AttributeInt:
		put(&a.I, &a.Ints, *p.integer(), many)
	case onnx.AttributeString:
		s := []byte(p.expect(tokenString, "a quoted string").text)
		if many {
			a.Strings = append(a.Strings, s)
		} else {
			a.S = s
		}
	case onnx.AttributeTensor:
		putMessage(&a.T, &a.Tensors, p.tensorConstant(), many)
	case onnx.AttributeGraph:
		putMessage(&a.G, &a.Graphs, p.graph(), many)
	case onnx.AttributeSparseTensor:
		putMessage(&a.SparseTensor, &a.SparseTensors, p.sparseConstant(), many)
	case onnx.AttributeType:
		putMessage(&a.Tp, &a.TypeProtos, p.typeProto(), many)
	}
}

func put[T any](one **T, list *[]T, v T, many bool) {
	if many {
		*list = append(*list, v)
		return
	}
	*one = &v
}

func putMessage[T any](one **T, list *[]*T, v *T, many bool) {
	if many {
		*list = append(*list, v)
		return
	}
	*one = v
}

func isFloatWord(s string) bool {
	return strings.EqualFold(s, "inf") || strings.EqualFold(s, "nan")
}

// number reads a float, or an integer as one, rounded once to so many bits.
func (p *parser) number(bits int) float64 {
	t := p.take()
	f, ok := parseFloat(t, bits)
	if !ok {
		p.fail(t, "a number of %d bits is expected, not %s", bits, t.describe())
	}
	return f
}
