package omwriter

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// ModelDef is the content of MODEL_DEF: ge.proto.ModelDef, as far as it is written here.
type ModelDef struct {
	Name string
	// Version is 2 in files of real compilers; 0 leaves it out, as GE's tests do.
	Version uint32
	// Platform is the field custom_version.
	Platform   string
	Graphs     []Graph
	Attributes []Attribute
	// Compress replaces names and texts of the attributes of operators and tensors by
	// places in two lists of the model, as atc does unless told otherwise.
	Compress bool
}

// Graph is a ge.proto.GraphDef: the first of a model is the main one, the others are
// the bodies of its operators.
type Graph struct {
	Name            string
	Inputs, Outputs []string
	Ops             []Op
	Attributes      []Attribute
}

// Op is a ge.proto.OpDef.
type Op struct {
	Name, Type string
	// Inputs are the sources, "operator:output"; "" where there is none.
	Inputs       []string
	ID, StreamID int64
	// SourceNames and SourceIndices say the same of a NetOutput's inputs, in two lists.
	SourceNames   []string
	SourceIndices []int64
	// Targets are the operators that read the outputs.
	Targets        []string
	TargetIndices  []int64
	InputOffsets   []int64
	OutputOffsets  []int64
	IsInputConst   []bool
	InputDescs     []TensorDesc
	OutputDescs    []TensorDesc
	Subgraphs      []string
	Attributes     []Attribute
	WorkspaceBytes []int64
}

// TensorDesc is a ge.proto.TensorDescriptor.
type TensorDesc struct {
	Name string
	// DataType is a number of ge.proto.DataType, which is not that of AscendCL.
	DataType   int32
	Dims       []int64
	Layout     string // "ND", "NCHW"
	Size       int64
	WeightSize int64
	DataOffset int64
	Attributes []Attribute
}

// Field numbers of ge_ir.proto.
const (
	modelName, modelVersion, modelPlatform, modelGraph, modelAttribute        = 1, 2, 3, 7, 11
	graphName, graphInput, graphOutput, graphOp, graphAttribute               = 1, 4, 5, 6, 11
	opName, opType, opInput, opAttribute, opHasOut                            = 1, 2, 5, 10, 20
	opID, opStream                                                            = 21, 22
	opSourceName, opSourceIndex, opTargetName, opTargetIndex                  = 24, 25, 26, 27
	opInputOffset, opOutputOffset, opWorkspaceBytes, opIsConst                = 28, 29, 31, 32
	opInputDesc, opOutputDesc, opSubgraph                                     = 33, 34, 35
	descName, descType, descShape, descLayout, descAttribute, descHas         = 1, 2, 3, 4, 5, 9
	descSize, descWeight, descDevice, descRank, descOffset                    = 10, 11, 14, 16, 18
	shapeDim                                                                  = 1
	mapKey, mapValue                                                          = 1, 2
	attrList, attrString, attrInt, attrFloat, attrBool, attrBytes             = 1, 2, 3, 4, 5, 7
	listString, listInt, listFloat, listBool, listKind                        = 2, 3, 4, 5, 20
	kindString, kindInt, kindFloat, kindBool                           uint64 = 1, 2, 3, 4
)

// encode gives the message; attributes are in the order of their names, as a
// deterministic writer of the map would have them.
func (m *ModelDef) encode() (out []byte) {
	var names dictionary
	if m.Compress {
		names = newDictionary(m.Graphs)
	}
	out = appendText(out, modelName, m.Name)
	out = appendInt(out, modelVersion, int64(m.Version))
	out = appendText(out, modelPlatform, m.Platform)
	for i := range m.Graphs {
		out = appendBytes(out, modelGraph, m.Graphs[i].encode(&names))
	}
	return appendAttributes(out, modelAttribute, append(names.attributes(), m.Attributes...), nil)
}

func (g *Graph) encode(names *dictionary) (out []byte) {
	out = appendText(out, graphName, g.Name)
	out = appendTexts(out, graphInput, g.Inputs)
	out = appendTexts(out, graphOutput, g.Outputs)
	for i := range g.Ops {
		out = appendBytes(out, graphOp, g.Ops[i].encode(names))
	}
	return appendAttributes(out, graphAttribute, g.Attributes, nil)
}

func (o *Op) encode(names *dictionary) (out []byte) {
	out = appendText(out, opName, o.Name)
	out = appendText(out, opType, o.Type)
	out = appendTexts(out, opInput, o.Inputs)
	out = appendAttributes(out, opAttribute, o.Attributes, names)
	out = appendInt(out, opHasOut, 1)
	out = appendInt(out, opID, o.ID)
	out = appendInt(out, opStream, o.StreamID)
	out = appendTexts(out, opSourceName, o.SourceNames)
	out = appendPacked(out, opSourceIndex, o.SourceIndices)
	out = appendTexts(out, opTargetName, o.Targets)
	out = appendPacked(out, opTargetIndex, o.TargetIndices)
	out = appendPacked(out, opInputOffset, o.InputOffsets)
	out = appendPacked(out, opOutputOffset, o.OutputOffsets)
	out = appendPacked(out, opWorkspaceBytes, o.WorkspaceBytes)
	out = appendPackedBools(out, opIsConst, o.IsInputConst)
	for i := range o.InputDescs {
		out = appendBytes(out, opInputDesc, o.InputDescs[i].encode(names))
	}
	for i := range o.OutputDescs {
		out = appendBytes(out, opOutputDesc, o.OutputDescs[i].encode(names))
	}
	return appendTexts(out, opSubgraph, o.Subgraphs)
}

func (d *TensorDesc) encode(names *dictionary) (out []byte) {
	out = appendText(out, descName, d.Name)
	out = appendInt(out, descType, int64(d.DataType))
	out = appendBytes(out, descShape, appendPacked(nil, shapeDim, d.Dims))
	out = appendText(out, descLayout, d.Layout)
	out = appendAttributes(out, descAttribute, d.Attributes, names)
	out = appendInt(out, descHas, 1)
	out = appendInt(out, descSize, d.Size)
	out = appendInt(out, descWeight, d.WeightSize)
	out = appendText(out, descDevice, "NPU")
	out = appendInt(out, descRank, int64(len(d.Dims)))
	return appendInt(out, descOffset, d.DataOffset)
}

// The fields of proto3: what holds nothing is left out.

func appendText(out []byte, field protowire.Number, text string) []byte {
	if text == "" {
		return out
	}
	return appendBytes(out, field, []byte(text))
}

func appendTexts(out []byte, field protowire.Number, texts []string) []byte {
	for _, text := range texts {
		out = appendBytes(out, field, []byte(text))
	}
	return out
}

func appendBytes(out []byte, field protowire.Number, data []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(out, field, protowire.BytesType), data)
}

func appendInt(out []byte, field protowire.Number, v int64) []byte {
	if v == 0 {
		return out
	}
	return appendVarint(out, field, uint64(v))
}

func appendVarint(out []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(out, field, protowire.VarintType), v)
}

func appendPacked(out []byte, field protowire.Number, values []int64) []byte {
	if len(values) == 0 {
		return out
	}
	var packed []byte
	for _, v := range values {
		packed = protowire.AppendVarint(packed, uint64(v))
	}
	return appendBytes(out, field, packed)
}

func appendPackedBools(out []byte, field protowire.Number, values []bool) []byte {
	if len(values) == 0 {
		return out
	}
	packed := make([]byte, len(values))
	for i, v := range values {
		packed[i] = flag(v)
	}
	return appendBytes(out, field, packed)
}
