package onnx

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// AttributeKind says what an attribute holds; the numbers are those of AttributeProto.AttributeType.
type AttributeKind int32

// The kinds of an attribute.
const (
	AttributeUndefined     AttributeKind = 0
	AttributeFloat         AttributeKind = 1
	AttributeInt           AttributeKind = 2
	AttributeString        AttributeKind = 3
	AttributeTensor        AttributeKind = 4
	AttributeGraph         AttributeKind = 5
	AttributeFloats        AttributeKind = 6
	AttributeInts          AttributeKind = 7
	AttributeStrings       AttributeKind = 8
	AttributeTensors       AttributeKind = 9
	AttributeGraphs        AttributeKind = 10
	AttributeSparseTensor  AttributeKind = 11
	AttributeSparseTensors AttributeKind = 12
	AttributeType          AttributeKind = 13
	AttributeTypes         AttributeKind = 14
)

// Attribute is one named parameter of a node. Attributes are immutable: an
// edit puts another in the place ([Node.SetAttribute]). The subgraphs that an
// attribute holds are edited in place, as graphs.
type Attribute struct {
	name      string
	reference string
	kind      AttributeKind

	// What the attribute holds; set is the fields of AttributeProto that are there.
	// The field, not the declared kind, says where a tensor or graph goes: the two
	// contradict each other in bad files.
	set          fieldSet
	integer      int64
	float        float32
	text         []byte
	ints         []int64
	floats       []float32
	texts        [][]byte
	types        []*Type
	tensors      []*Tensor
	tensorFields []protowire.Number
	graphs       []*Graph
	graphFields  []protowire.Number

	encoded []byte // the message without graphs, and without tensors made in memory
}

// The fields of AttributeProto.
const (
	attrName          protowire.Number = 1
	attrFloat         protowire.Number = 2
	attrInt           protowire.Number = 3
	attrString        protowire.Number = 4
	attrTensor        protowire.Number = 5
	attrGraph         protowire.Number = 6
	attrFloats        protowire.Number = 7
	attrInts          protowire.Number = 8
	attrStrings       protowire.Number = 9
	attrTensors       protowire.Number = 10
	attrGraphs        protowire.Number = 11
	attrDoc           protowire.Number = 13
	attrType          protowire.Number = 14
	attrTypes         protowire.Number = 15
	attrKind          protowire.Number = 20
	attrReference     protowire.Number = 21
	attrSparseTensor  protowire.Number = 22
	attrSparseTensors protowire.Number = 23
)

// kindOfField gives the kind of an attribute that holds a field and does not say
// its kind, in the order in which the fields are asked: files older than IR
// version 2 leave the type out.
var kindOfField = [...]struct {
	field protowire.Number
	kind  AttributeKind
}{
	{attrFloat, AttributeFloat}, {attrInt, AttributeInt}, {attrString, AttributeString},
	{attrTensor, AttributeTensor}, {attrGraph, AttributeGraph}, {attrSparseTensor, AttributeSparseTensor},
	{attrType, AttributeType}, {attrFloats, AttributeFloats}, {attrInts, AttributeInts},
	{attrStrings, AttributeStrings}, {attrTensors, AttributeTensors}, {attrGraphs, AttributeGraphs},
	{attrSparseTensors, AttributeSparseTensors}, {attrTypes, AttributeTypes},
}

// Name is the attribute's name.
func (a *Attribute) Name() string { return a.name }

// Kind says what the attribute holds; where the file leaves that out it follows
// from the field that is there.
func (a *Attribute) Kind() AttributeKind {
	if a.kind != AttributeUndefined {
		return a.kind
	}
	for _, k := range kindOfField {
		if a.set.has(k.field) {
			return k.kind
		}
	}
	return AttributeUndefined
}

// Reference is the name of the function's attribute that stands here, inside a
// function body; "" for an attribute with a value of its own.
func (a *Attribute) Reference() string { return a.reference }

// Doc is the documentation the file gives for the attribute.
func (a *Attribute) Doc() string { return string(find(a.encoded, attrDoc)) }

// Int is the value of an int attribute.
func (a *Attribute) Int() int64 { return a.integer }

// Float is the value of a float attribute.
func (a *Attribute) Float() float32 { return a.float }

// String is the value of a string attribute, whatever bytes it has.
func (a *Attribute) String() string { return string(a.text) }

// Ints is the value of an ints attribute; not to be changed.
func (a *Attribute) Ints() []int64 { return a.ints }

// Floats is the value of a floats attribute; not to be changed.
func (a *Attribute) Floats() []float32 { return a.floats }

// Strings is the value of a strings attribute.
func (a *Attribute) Strings() []string {
	s := make([]string, len(a.texts))
	for i, b := range a.texts {
		s[i] = string(b)
	}
	return s
}

// Tensor is the tensor, sparse or dense, of an attribute of one; nil for other kinds.
func (a *Attribute) Tensor() *Tensor {
	if len(a.tensors) != 1 {
		return nil
	}
	return a.tensors[0]
}

// Tensors lists all tensors of the attribute, sparse or dense.
func (a *Attribute) Tensors() []*Tensor { return a.tensors }

// Graph is the subgraph of an attribute of one; nil for other kinds.
func (a *Attribute) Graph() *Graph {
	if len(a.graphs) != 1 {
		return nil
	}
	return a.graphs[0]
}

// Graphs lists all subgraphs of the attribute.
func (a *Attribute) Graphs() []*Graph { return a.graphs }

// Type is the value of a type attribute; nil for other kinds.
func (a *Attribute) Type() *Type {
	if !a.set.has(attrType) || len(a.types) == 0 {
		return nil
	}
	return a.types[len(a.types)-1]
}

// Types lists all types of the attribute.
func (a *Attribute) Types() []*Type { return a.types }

// newAttribute makes an attribute whose message write completes with the fields
// between the name and the kind.
func newAttribute(name string, kind AttributeKind, field protowire.Number, write func(*rope)) *Attribute {
	r := &rope{}
	r.string(attrName, name)
	if write != nil {
		write(r)
	}
	r.varint(attrKind, uint64(kind))
	return &Attribute{name: name, kind: kind, set: numbers(field), encoded: r.small}
}

// IntAttribute makes an int attribute.
func IntAttribute(name string, v int64) *Attribute {
	a := newAttribute(name, AttributeInt, attrInt, func(r *rope) { r.varint(attrInt, uint64(v)) })
	a.integer = v
	return a
}

// FloatAttribute makes a float attribute.
func FloatAttribute(name string, v float32) *Attribute {
	a := newAttribute(name, AttributeFloat, attrFloat, func(r *rope) { r.float(attrFloat, v) })
	a.float = v
	return a
}

// StringAttribute makes a string attribute.
func StringAttribute(name, v string) *Attribute {
	a := newAttribute(name, AttributeString, attrString, func(r *rope) { r.string(attrString, v) })
	a.text = []byte(v)
	return a
}

// IntsAttribute makes an ints attribute.
func IntsAttribute(name string, v ...int64) *Attribute {
	a := newAttribute(name, AttributeInts, attrInts, func(r *rope) {
		for _, i := range v {
			r.varint(attrInts, uint64(i))
		}
	})
	a.ints = v
	return a
}

// FloatsAttribute makes a floats attribute.
func FloatsAttribute(name string, v ...float32) *Attribute {
	a := newAttribute(name, AttributeFloats, attrFloats, func(r *rope) {
		for _, f := range v {
			r.float(attrFloats, f)
		}
	})
	a.floats = v
	return a
}

// StringsAttribute makes a strings attribute.
func StringsAttribute(name string, v ...string) *Attribute {
	a := newAttribute(name, AttributeStrings, attrStrings, func(r *rope) {
		for _, s := range v {
			r.string(attrStrings, s)
		}
	})
	for _, s := range v {
		a.texts = append(a.texts, []byte(s))
	}
	return a
}

// TensorAttribute makes a tensor attribute.
func TensorAttribute(name string, d *tensor.Dense) *Attribute {
	a := newAttribute(name, AttributeTensor, attrTensor, nil)
	a.addTensor(attrTensor, NewTensor(d))
	return a
}

// TypeAttribute makes a type attribute.
func TypeAttribute(name string, t *Type) *Attribute {
	a := newAttribute(name, AttributeType, attrType, func(r *rope) {
		r.message(attrType, func() { r.encodeType(t) })
	})
	a.types = []*Type{t}
	return a
}

// GraphAttribute makes a graph attribute around a graph made by [Graph.NewSubgraph].
// It becomes part of the model when a node takes it.
func GraphAttribute(name string, g *Graph) *Attribute {
	a := newAttribute(name, AttributeGraph, attrGraph, nil)
	a.addGraph(attrGraph, g)
	return a
}

// ReferenceAttribute makes an attribute of a node inside a function body that
// takes the value of the function's attribute of the name reference.
func ReferenceAttribute(name string, kind AttributeKind, reference string) *Attribute {
	a := newAttribute(name, kind, attrReference, nil)
	r := rope{small: a.encoded}
	r.string(attrReference, reference)
	a.encoded, a.reference = r.small, reference
	return a
}

func (a *Attribute) addTensor(field protowire.Number, t *Tensor) {
	a.tensors = append(a.tensors, t)
	a.tensorFields = append(a.tensorFields, field)
}

func (a *Attribute) addGraph(field protowire.Number, g *Graph) {
	a.graphs = append(a.graphs, g)
	a.graphFields = append(a.graphFields, field)
}
