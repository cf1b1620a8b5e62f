package text

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// identifier writes a name bare where Parse would read it so, else quoted. Words
// that mean something in the place of a value are quoted, too.
func identifier(s string) string {
	if s == "" || !isLetter(s[0]) || runLength(s, isWordByte) != len(s) || isReserved(s) {
		return strconv.Quote(s)
	}
	return s
}

func isReserved(s string) bool {
	_, isType := elementType(s)
	return isType || isFloatWord(s) || s == "sparse_tensor"
}

func (p *printer) node(n *onnx.Node) {
	if n.Name != "" {
		p.f("[%s] ", identifier(n.Name))
	}
	name := func(v *onnx.Value) {
		if v == nil {
			p.WriteString(`""`)
			return
		}
		p.WriteString(identifier(v.Name()))
	}
	each(p, n.Outputs(), name)
	p.f(" = %s", operatorText(n))
	var plain, graphs []*onnx.Attribute
	for _, a := range n.Attributes() {
		if len(a.Graphs()) > 0 {
			graphs = append(graphs, a)
		} else {
			plain = append(plain, a)
		}
	}
	p.attributes(plain)
	p.WriteString(" (")
	each(p, n.Inputs(), name)
	p.WriteByte(')')
	p.attributes(graphs)
	p.notes(n.Doc, n.Metadata())
}

// operatorText writes domain.name:overload.
func operatorText(n *onnx.Node) string {
	text := identifier(n.OpType)
	if n.Domain != "" {
		text = domainText(n.Domain) + "." + text
	}
	if n.Overload != "" {
		text += ":" + identifier(n.Overload)
	}
	return text
}

// domainText writes names joined by points, all in one pair of quotes if one of them needs it.
func domainText(domain string) string {
	for part := range strings.SplitSeq(domain, ".") {
		if identifier(part) != part {
			return strconv.Quote(domain)
		}
	}
	return domain
}

func (p *printer) attributes(list []*onnx.Attribute) {
	if len(list) == 0 {
		return
	}
	p.WriteString(" <")
	each(p, list, p.attribute)
	p.WriteByte('>')
}

func (p *printer) attribute(a *onnx.Attribute) {
	kind := a.Kind()
	p.WriteString(identifier(a.Name()))
	if needsKind(a) {
		p.f(": %s", kindName(kind))
	}
	p.WriteString(" = ")
	switch {
	case a.Reference() != "":
		p.f("@%s", identifier(a.Reference()))
	case listKinds[kind] == 0:
		p.WriteByte('[')
		p.values(a)
		p.WriteByte(']')
	default:
		p.values(a)
	}
	p.notes(a.Doc(), nil)
}

// needsKind says whether the value alone would not tell the attribute's kind.
func needsKind(a *onnx.Attribute) bool {
	switch a.Kind() {
	case onnx.AttributeType, onnx.AttributeTypes:
		return true
	case onnx.AttributeInts:
		return a.Reference() != "" || len(a.Ints()) == 0
	case onnx.AttributeFloats:
		return a.Reference() != "" || len(a.Floats()) == 0
	case onnx.AttributeStrings:
		return a.Reference() != "" || len(a.Strings()) == 0
	case onnx.AttributeTensors, onnx.AttributeSparseTensors:
		return a.Reference() != "" || len(a.Tensors()) == 0
	case onnx.AttributeGraphs:
		return a.Reference() != "" || len(a.Graphs()) == 0
	}
	return a.Reference() != ""
}

// values writes what the attribute holds, one or many.
func (p *printer) values(a *onnx.Attribute) {
	switch a.Kind() {
	case onnx.AttributeFloat:
		p.WriteString(floatText(float64(a.Float()), 32))
	case onnx.AttributeInt:
		p.f("%d", a.Int())
	case onnx.AttributeString:
		p.f("%q", a.String())
	case onnx.AttributeFloats:
		each(p, a.Floats(), func(v float32) { p.WriteString(floatText(float64(v), 32)) })
	case onnx.AttributeInts:
		each(p, a.Ints(), func(v int64) { p.f("%d", v) })
	case onnx.AttributeStrings:
		each(p, a.Strings(), func(s string) { p.f("%q", s) })
	case onnx.AttributeTensor, onnx.AttributeTensors, onnx.AttributeSparseTensor, onnx.AttributeSparseTensors:
		each(p, a.Tensors(), p.tensorConstant)
	case onnx.AttributeGraph, onnx.AttributeGraphs:
		each(p, a.Graphs(), p.graph)
	case onnx.AttributeType:
		p.WriteString(typeText(a.Type()))
	case onnx.AttributeTypes:
		each(p, a.Types(), func(t *onnx.Type) { p.WriteString(typeText(t)) })
	}
}

// floatText writes a float so that it reads back as the same one, and as no integer.
func floatText(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 0):
		return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(f, 'g', -1, bits)), "+")
	}
	s := strconv.FormatFloat(f, 'g', -1, bits)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// tensorHead writes the type of a stored tensor as it stands before its name.
func tensorHead(t *onnx.Tensor) string {
	if t.IsSparse() {
		return "sparse_tensor(" + typeWord(t.Type()) + dimsText(t.Shape()) + ")"
	}
	return typeWord(t.Type()) + dimsText(t.Shape())
}

func dimsText(dims []int) string {
	if len(dims) == 0 {
		return ""
	}
	return strings.ReplaceAll(fmt.Sprint(dims), " ", ",")
}

func (p *printer) tensorConstant(t *onnx.Tensor) {
	p.WriteString(tensorHead(t))
	p.WriteByte(' ')
	if name := t.Name(); name != "" {
		p.f("%s = ", identifier(name))
	}
	p.tensorData(t)
}

// tensorData writes the elements in braces, or the place of external data in brackets.
func (p *printer) tensorData(t *onnx.Tensor) {
	if location, offset, length := t.External(); location != "" {
		p.f("[%q: %q, %q: \"%d\", %q: \"%d\"]", "location", location, "offset", offset, "length", length)
		return
	}
	p.WriteByte('{')
	if values, indices := t.SparseParts(); values != nil {
		p.f("%s ", tensorHead(values))
		p.tensorData(values)
		p.WriteString(", ")
		p.tensorConstant(indices)
	} else {
		p.elements(t)
	}
	p.WriteByte('}')
}

func (p *printer) elements(t *onnx.Tensor) {
	d, err := t.Dense()
	if err != nil {
		if p.err == nil {
			p.err = err
		}
		return
	}
	n, more := d.Len(), false
	if limit := p.options.MaxElements; limit >= 0 && n > limit {
		n, more = min(limit, defaultMaxElements/2), true
	}
	write := elementWriter(d)
	for i := range n {
		if i > 0 {
			p.WriteString(", ")
		}
		p.WriteString(write(i))
	}
	if more {
		p.WriteString(", …")
	}
}

// elementWriter gives the function that writes element i of d.
func elementWriter(d *tensor.Dense) func(i int) string {
	switch d.Type() {
	case tensor.String:
		data := tensor.Data[string](d)
		return func(i int) string { return strconv.Quote(data[i]) }
	case tensor.Uint64:
		data := tensor.Data[uint64](d)
		return func(i int) string { return strconv.FormatUint(data[i], 10) }
	case tensor.Float64:
		data := tensor.Data[float64](d)
		return func(i int) string { return floatElement(data[i], 64) }
	case tensor.Complex64:
		data := tensor.Data[complex64](d)
		return func(i int) string {
			return floatElement(float64(real(data[i])), 32) + ", " + floatElement(float64(imag(data[i])), 32)
		}
	case tensor.Complex128:
		data := tensor.Data[complex128](d)
		return func(i int) string { return floatElement(real(data[i]), 64) + ", " + floatElement(imag(data[i]), 64) }
	}
	if data, ok := d.Float32s(); ok {
		return func(i int) string { return floatElement(float64(data[i]), 32) }
	}
	data, _ := d.Int64s()
	return func(i int) string { return strconv.FormatInt(data[i], 10) }
}

// floatElement is floatText without the point that whole numbers do not need in a tensor.
func floatElement(f float64, bits int) string {
	return strings.TrimSuffix(floatText(f, bits), ".0")
}

// typeText writes a type as Parse reads it; one that a file leaves out is "undefined".
func typeText(t *onnx.Type) string {
	if t == nil {
		return typeWord(tensor.Undefined)
	}
	switch t.Kind {
	case onnx.KindTensor:
		return typeWord(t.Elem) + shapeText(t.Shape)
	case onnx.KindSparseTensor:
		return "sparse_tensor(" + typeWord(t.Elem) + shapeText(t.Shape) + ")"
	case onnx.KindSequence:
		return "seq(" + typeText(t.Inner) + ")"
	case onnx.KindOptional:
		return "optional(" + typeText(t.Inner) + ")"
	case onnx.KindMap:
		return "map(" + typeWord(t.Elem) + ", " + typeText(t.Inner) + ")"
	}
	domain, name := t.OpaqueName()
	switch {
	case domain != "":
		return "opaque(" + domainText(domain) + ", " + domainText(name) + ")"
	case name != "":
		return "opaque(" + domainText(name) + ")"
	}
	return "opaque()"
}

func shapeText(s *onnx.Shape) string {
	switch {
	case s == nil:
		return "[]"
	case len(s.Dims) == 0:
		return ""
	}
	parts := make([]string, len(s.Dims))
	for i, d := range s.Dims {
		switch {
		case d.Known:
			parts[i] = strconv.FormatInt(d.Value, 10)
		case d.Param != "":
			parts[i] = identifier(d.Param)
		default:
			parts[i] = "?"
		}
	}
	return "[" + strings.Join(parts, ",") + "]"
}
