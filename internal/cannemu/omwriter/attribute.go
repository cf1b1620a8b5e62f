package omwriter

import (
	"cmp"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Attribute is a named value of a model, a graph, an operator or a tensor.
type Attribute struct {
	Name  string
	Value AttributeValue
}

// AttributeValue is one of [Text], [Int], [Float], [Bool], [Bytes], [Texts], [Ints],
// [Floats] and [Bools].
type AttributeValue interface{ encode() []byte }

// The values an attribute may have.
type (
	Text   string
	Int    int64
	Float  float32
	Bool   bool
	Bytes  []byte
	Texts  []string
	Ints   []int64
	Floats []float32
	Bools  []bool
)

func (v Text) encode() []byte { return appendBytes(nil, attrString, []byte(v)) }
func (v Int) encode() []byte  { return appendVarint(nil, attrInt, uint64(v)) }
func (v Float) encode() []byte {
	return protowire.AppendFixed32(protowire.AppendTag(nil, attrFloat, protowire.Fixed32Type), math.Float32bits(float32(v)))
}
func (v Bool) encode() []byte  { return appendVarint(nil, attrBool, uint64(flag(bool(v)))) }
func (v Bytes) encode() []byte { return appendBytes(nil, attrBytes, v) }
func (v Texts) encode() []byte {
	return appendList(appendTexts(nil, listString, v), kindString)
}
func (v Ints) encode() []byte  { return appendList(appendPacked(nil, listInt, v), kindInt) }
func (v Bools) encode() []byte { return appendList(appendPackedBools(nil, listBool, v), kindBool) }
func (v Floats) encode() []byte {
	var packed []byte
	for _, f := range v {
		packed = protowire.AppendFixed32(packed, math.Float32bits(f))
	}
	return appendList(appendBytes(nil, listFloat, packed), kindFloat)
}

// appendList closes a list with the kind of its elements.
func appendList(elements []byte, kind uint64) []byte {
	return appendBytes(nil, attrList, appendVarint(elements, listKind, kind))
}

// appendAttributes writes a map of attributes in the order of their names; names, when
// set, shortens them.
func appendAttributes(out []byte, field protowire.Number, attributes []Attribute, names *dictionary) []byte {
	sorted := slices.Clone(attributes)
	if names != nil {
		for i := range sorted {
			sorted[i] = names.shorten(sorted[i])
		}
	}
	slices.SortStableFunc(sorted, func(a, b Attribute) int { return cmp.Compare(a.Name, b.Name) })
	for _, a := range sorted {
		entry := appendBytes(nil, mapKey, []byte(a.Name))
		out = appendBytes(out, field, appendBytes(entry, mapValue, a.Value.encode()))
	}
	return out
}
