package text

import (
	"encoding/binary"
	"math"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/npuctl/npuctl/internal/onnxpb"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// tensorConstant reads float[2] name {1, 2}, of which the name may be left out.
func (p *parser) tensorConstant() *onnxpb.TensorProto {
	elem := p.element(p.expect(tokenName, "an element type"))
	shape := p.shape()
	name := p.peek()
	named := p.isIdentifier()
	if named {
		p.take()
	}
	if !p.at('[') { // external data needs its sign, see tensorData
		p.accept('=')
	}
	t := p.tensorData(elem, shape, name)
	if !named {
		t.Name = nil
	}
	return t
}

// tensorData reads {1, 2, …}, or the place of external data as ["location": …].
func (p *parser) tensorData(elem int32, shape *onnxpb.TensorShapeProto, name token) *onnxpb.TensorProto {
	t := &onnxpb.TensorProto{DataType: &elem, Name: proto.String(name.text), Dims: p.fixedDims(shape, name)}
	if p.at('[') {
		t.DataLocation = onnxpb.TensorProto_EXTERNAL.Enum()
		t.ExternalData = p.properties()
		return t
	}
	start := p.peek()
	p.punctuation('{')
	values := p.literals()
	if p.err != nil {
		return t
	}
	e := tensor.Type(elem)
	per := 1
	if e.IsComplex() {
		per = 2
	}
	if want := count(t.Dims) * int64(per); int64(len(values)) != want {
		p.fail(start, "%d elements for dims %v, which need %d", len(values), t.Dims, want)
		return t
	}
	p.store(t, e, values)
	return t
}

// literals reads the tokens up to the closing brace.
func (p *parser) literals() (out []token) {
	p.list('}', func() {
		t := p.take()
		if t.kind == tokenMore {
			p.fail(t, "elements were left out when this text was printed; print the whole tensor to read it back")
		}
		out = append(out, t)
	})
	return out
}

func (p *parser) fixedDims(shape *onnxpb.TensorShapeProto, name token) []int64 {
	if shape == nil {
		p.fail(name, "a stored tensor needs a known rank")
	}
	var dims []int64
	total := int64(1)
	for _, d := range shape.GetDim() {
		v, ok := d.GetValue().(*onnxpb.TensorShapeProto_Dimension_DimValue)
		if !ok || v.DimValue < 0 || v.DimValue > math.MaxInt32 {
			p.fail(name, "a stored tensor needs known dims")
			return nil
		}
		if total *= max(v.DimValue, 1); total > math.MaxInt32 {
			p.fail(name, "a stored tensor of more than %d elements", math.MaxInt32)
			return nil
		}
		dims = append(dims, v.DimValue)
	}
	return dims
}

func count(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	return n
}

// sparseConstant reads sparse_tensor(float[3,4]) name {values, indices}.
func (p *parser) sparseConstant() *onnxpb.SparseTensorProto {
	start := p.peek()
	t := p.typeProto().GetSparseTensorType()
	if t == nil {
		p.fail(start, "a sparse_tensor is expected")
		return nil
	}
	name := p.peek()
	named := p.isIdentifier()
	if named {
		p.take()
	}
	s := p.sparseData(t.GetShape(), name)
	if !named && s.Values != nil {
		s.Values.Name = nil
	}
	return s
}

// sparseData reads {values, indices}, both written as tensors.
func (p *parser) sparseData(shape *onnxpb.TensorShapeProto, name token) *onnxpb.SparseTensorProto {
	s := &onnxpb.SparseTensorProto{Dims: p.fixedDims(shape, name)}
	p.punctuation('{')
	s.Values = p.tensorConstant()
	s.Values.Name = proto.String(name.text)
	p.punctuation(',')
	s.Indices = p.tensorConstant()
	p.punctuation('}')
	return s
}

// store puts the elements into the message as raw bytes, strings as strings.
func (p *parser) store(t *onnxpb.TensorProto, elem tensor.Type, values []token) {
	if elem == tensor.String {
		for _, v := range values {
			if v.kind != tokenString {
				p.fail(v, "a quoted string is expected, not %s", v.describe())
			}
			t.StringData = append(t.StringData, []byte(v.text))
		}
		return
	}
	parse := elementParsers[elem]
	if parse == nil {
		p.fail(p.peek(), "tensors of type %s cannot be written", typeWord(elem))
		return
	}
	bits := elem.Bits()
	if elem.IsComplex() {
		bits /= 2
	}
	raw := make([]byte, 0, (len(values)*bits+7)/8)
	for i, v := range values {
		word, ok := parse(v)
		if !ok {
			p.fail(v, "%s is no element of %s", v.describe(), typeWord(elem))
			return
		}
		raw = appendBits(raw, word, bits, i)
	}
	t.RawData = raw
}

// appendBits adds the element of index i: whole bytes little-endian, elements
// below a byte in its lower bits first.
func appendBits(raw []byte, word uint64, bits, i int) []byte {
	if bits >= 8 {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], word)
		return append(raw, b[:bits/8]...)
	}
	shift := i * bits % 8
	if shift == 0 {
		raw = append(raw, 0)
	}
	raw[len(raw)-1] |= byte(word&(1<<bits-1)) << shift
	return raw
}

// elementParsers give the bits of an element from its token. Complex numbers
// are written as two floats.
var elementParsers = map[tensor.Type]func(token) (uint64, bool){
	tensor.Bool: parseBool,
	tensor.Int8: signed(8), tensor.Int16: signed(16), tensor.Int32: signed(32), tensor.Int64: signed(64),
	tensor.Int4: signed(4), tensor.Int2: signed(2),
	tensor.Uint8: unsigned(8), tensor.Uint16: unsigned(16), tensor.Uint32: unsigned(32), tensor.Uint64: unsigned(64),
	tensor.Uint4: unsigned(4), tensor.Uint2: unsigned(2),
	tensor.Float32: parseFloat32, tensor.Complex64: parseFloat32,
	tensor.Float64: parseFloat64, tensor.Complex128: parseFloat64,
	tensor.Float16:        small(tensor.F16FromFloat64),
	tensor.BFloat16:       small(tensor.BF16FromFloat64),
	tensor.Float8E4M3FN:   small(func(f float64) tensor.E4M3FN { return tensor.E4M3FNFromFloat64(f, false) }),
	tensor.Float8E4M3FNUZ: small(func(f float64) tensor.E4M3FNUZ { return tensor.E4M3FNUZFromFloat64(f, false) }),
	tensor.Float8E5M2:     small(func(f float64) tensor.E5M2 { return tensor.E5M2FromFloat64(f, false) }),
	tensor.Float8E5M2FNUZ: small(func(f float64) tensor.E5M2FNUZ { return tensor.E5M2FNUZFromFloat64(f, false) }),
	tensor.Float8E8M0:     small(func(f float64) tensor.E8M0 { return tensor.E8M0FromFloat64(f, tensor.RoundNearest, false) }),
	tensor.Float4E2M1:     small(tensor.E2M1FromFloat64),
}

func parseBool(t token) (uint64, bool) {
	switch t.text {
	case "1", "true":
		return 1, true
	case "0", "false":
		return 0, true
	}
	return 0, false
}

func signed(bits int) func(token) (uint64, bool) {
	return func(t token) (uint64, bool) {
		n, err := strconv.ParseInt(t.text, 10, bits)
		return uint64(n), err == nil && t.kind == tokenInt
	}
}

func unsigned(bits int) func(token) (uint64, bool) {
	return func(t token) (uint64, bool) {
		n, err := strconv.ParseUint(t.text, 10, bits)
		return n, err == nil && t.kind == tokenInt
	}
}

func parseFloat32(t token) (uint64, bool) {
	f, err := parseFloat(t, 32)
	return uint64(math.Float32bits(float32(f))), err
}

func parseFloat64(t token) (uint64, bool) {
	f, err := parseFloat(t, 64)
	return math.Float64bits(f), err
}

func parseFloat(t token, bits int) (float64, bool) {
	if t.kind != tokenInt && t.kind != tokenFloat && (t.kind != tokenName || !isFloatWord(t.text)) {
		return 0, false
	}
	f, err := strconv.ParseFloat(t.text, bits)
	return f, err == nil
}

// small makes the parser of a float type of at most 16 bits. A number that would
// become infinite or NaN there, and an infinity or NaN that it does not have, is refused.
func small[T interface {
	~uint8 | ~uint16
	Float32() float32
}](from func(float64) T) func(token) (uint64, bool) {
	return func(t token) (uint64, bool) {
		f, ok := parseFloat(t, 64)
		v := from(f)
		return uint64(v), ok && finite(f) == finite(float64(v.Float32()))
	}
}

func finite(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) }
