package text

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/npuctl/npuctl/internal/onnxpb"
	"github.com/npuctl/npuctl/internal/suggest"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// typeProto reads a type: float[N,3], seq(…), optional(…), map(key,…),
// sparse_tensor(float[3]), opaque(domain,name). A bare element type is a
// scalar's; with empty brackets the rank is unknown.
func (p *parser) typeProto() *onnxpb.TypeProto {
	t := &onnxpb.TypeProto{}
	p.nested(func() {
		word := p.expect(tokenName, "a type")
		switch word.text {
		case "seq", "optional", "map", "sparse_tensor", "opaque":
			p.punctuation('(')
			p.composite(t, word.text)
			p.punctuation(')')
		default:
			elem, shape := p.element(word), p.shape()
			if elem == 0 && shape != nil && len(shape.Dim) == 0 {
				return // "undefined": no type at all
			}
			t.Value = &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{ElemType: &elem, Shape: shape}}
		}
	})
	return t
}

// composite reads what stands in the parentheses of a type that is no dense tensor.
func (p *parser) composite(t *onnxpb.TypeProto, word string) {
	switch word {
	case "seq":
		t.Value = &onnxpb.TypeProto_SequenceType{SequenceType: &onnxpb.TypeProto_Sequence{ElemType: p.typeProto()}}
	case "optional":
		t.Value = &onnxpb.TypeProto_OptionalType{OptionalType: &onnxpb.TypeProto_Optional{ElemType: p.typeProto()}}
	case "map":
		key := p.element(p.expect(tokenName, "an element type"))
		p.punctuation(',')
		t.Value = &onnxpb.TypeProto_MapType{MapType: &onnxpb.TypeProto_Map{KeyType: &key, ValueType: p.typeProto()}}
	case "sparse_tensor":
		elem := p.element(p.expect(tokenName, "an element type"))
		t.Value = &onnxpb.TypeProto_SparseTensorType{SparseTensorType: &onnxpb.TypeProto_SparseTensor{ElemType: &elem, Shape: p.shape()}}
	case "opaque":
		t.Value = &onnxpb.TypeProto_OpaqueType{OpaqueType: p.opaque()}
	}
}

// opaque reads nothing, a name, or a domain and a name.
func (p *parser) opaque() *onnxpb.TypeProto_Opaque {
	o := &onnxpb.TypeProto_Opaque{}
	if p.at(')') {
		return o
	}
	o.Name = proto.String(p.dotted())
	if p.accept(',') {
		o.Domain = o.Name
		o.Name = proto.String(p.dotted())
	}
	return o
}

// dotted reads names joined by points.
func (p *parser) dotted() string {
	s := p.identifier("a name").text
	for p.accept('.') {
		s += "." + p.identifier("a name").text
	}
	return s
}

func (p *parser) element(word token) int32 {
	t, ok := elementType(word.text)
	if !ok && p.err == nil {
		p.fail(word, "there is no type %q%s", word.text, nearest(word.text, typeWords()))
	}
	return int32(t)
}

func typeWords() []string {
	words := []string{"seq", "optional", "map", "sparse_tensor", "opaque"}
	for _, t := range tensor.Types() {
		words = append(words, typeWord(t))
	}
	return words
}

// elementType is the element type that a word of the text names.
func elementType(word string) (tensor.Type, bool) {
	if word == "undefined" {
		return tensor.Undefined, true
	}
	t, ok := tensor.ParseType(word)
	return t, ok && word == typeWord(t)
}

func typeWord(t tensor.Type) string { return strings.ToLower(t.String()) }

// shape reads the brackets behind an element type: none is a scalar, empty ones
// are an unknown rank.
func (p *parser) shape() *onnxpb.TensorShapeProto {
	s := &onnxpb.TensorShapeProto{}
	if !p.accept('[') {
		return s
	}
	if p.accept(']') {
		return nil
	}
	p.list(']', func() { s.Dim = append(s.Dim, p.dim()) })
	return s
}

// dim reads a size, a name, or ? for one not known.
func (p *parser) dim() *onnxpb.TensorShapeProto_Dimension {
	d := &onnxpb.TensorShapeProto_Dimension{}
	switch {
	case p.accept('?'):
	case p.at(tokenInt):
		d.Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: *p.integer()}
	default:
		d.Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: p.identifier("a dim").text}
	}
	return d
}

// nearest names the word that was probably meant, if one is near.
func nearest(wrong string, words []string) string {
	if near := suggest.Nearest(wrong, words); near != "" {
		return "; did you mean " + identifier(near) + "?"
	}
	return ""
}
