package main

import (
	"cmp"
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/onnxpb"
	"github.com/npuctl/npuctl/onnx/text"
)

// brokenModel is a model that cannot run, whatever its inputs are.
type brokenModel struct {
	name string
	// source is the model as text; "" is a model of one Relu. edit breaks what the text
	// cannot say; raw is the whole file instead.
	source string
	edit   func(*onnxpb.ModelProto)
	raw    string
	// want is what is said of it, behind the file's name.
	want string
	// isSeen says that inference sees it, so that it need not run.
	isSeen bool
}

const aRelu = `<ir_version: 8, opset_import: ["": 17]> net (float[2] x) => (float[2] y) { y = Relu (x) }`
const aWeight = `<ir_version: 8, opset_import: ["": 17]> net (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Mul (x, w) }`
const opset17 = `<ir_version: 8, opset_import: ["": 17]> `

func weight(edit func(*onnxpb.TensorProto)) func(*onnxpb.ModelProto) {
	return func(m *onnxpb.ModelProto) { edit(m.Graph.Initializer[0]) }
}

func external(entries ...string) func(*onnxpb.ModelProto) {
	return weight(func(t *onnxpb.TensorProto) {
		t.RawData = nil
		t.DataLocation = onnxpb.TensorProto_EXTERNAL.Enum()
		for i := 0; i < len(entries); i += 2 {
			t.ExternalData = append(t.ExternalData, &onnxpb.StringStringEntryProto{Key: &entries[i], Value: &entries[i+1]})
		}
	})
}

// refusedModels break the rules of the format, or of operators whatever flows between them.
var refusedModels = []brokenModel{
	{name: "no protobuf", raw: "\x00", want: `damaged, or no protobuf`},
	{name: "no graph", edit: func(m *onnxpb.ModelProto) { m.Graph = nil }, want: `it holds no graph`},
	{name: "no outputs", edit: func(m *onnxpb.ModelProto) { m.Graph.Output = nil }, want: `the graph has no outputs`},
	{name: "no opset", edit: func(m *onnxpb.ModelProto) { m.OpsetImport = nil }, want: `Relu node that makes "y": the model, or function, imports no opset`},
	{name: "no version of the format", edit: func(m *onnxpb.ModelProto) { m.IrVersion = proto.Int64(0) }, want: `ir_version 0: there is no such version`},
	{name: "a format to come", edit: func(m *onnxpb.ModelProto) { m.IrVersion = proto.Int64(99) }, want: `ir_version 99 is newer`},
	{name: "no such opset", edit: func(m *onnxpb.ModelProto) { m.OpsetImport[0].Version = proto.Int64(0) }, want: `opset 0: there is no such opset`},
	{name: "no bytes", source: aWeight, edit: weight(func(t *onnxpb.TensorProto) { t.RawData = []byte{} }), want: `the main graph: initializer "w": 0 bytes of raw_data for FLOAT[2], which needs 8`},
	{name: "no field with elements", source: aWeight, edit: weight(func(t *onnxpb.TensorProto) { t.RawData = nil }), want: `the main graph: initializer "w": its elements do not make FLOAT[2]: 0 bytes, want 8; the export left them out`},
	{name: "too few bytes", source: aWeight, edit: weight(func(t *onnxpb.TensorProto) { t.RawData = t.RawData[:4] }), want: `initializer "w": 4 bytes of raw_data`},
	{name: "too many bytes", source: aWeight, edit: weight(func(t *onnxpb.TensorProto) { t.RawData = append(t.RawData, 0, 0, 0, 0) }), want: `initializer "w": 12 bytes of raw_data`},
	{name: "too few numbers", source: aWeight, edit: weight(func(t *onnxpb.TensorProto) { t.RawData, t.FloatData = nil, []float32{1} }), want: `initializer "w": its elements do not make FLOAT[2]: 4 bytes, want 8`},
	{name: "too many numbers", source: aWeight, edit: weight(func(t *onnxpb.TensorProto) { t.RawData, t.FloatData = nil, []float32{1, 2, 3} }), want: `initializer "w": its elements do not make FLOAT[2]: 12 bytes, want 8`},
	{name: "numbers of another type", source: aWeight, edit: weight(func(t *onnxpb.TensorProto) { t.RawData, t.Int64Data = nil, []int64{1, 2} }), want: `initializer "w": its elements do not make FLOAT[2]: 0 bytes, want 8`},
	{name: "elements twice", source: aWeight, edit: weight(func(t *onnxpb.TensorProto) { t.FloatData = []float32{1, 2} }), want: `initializer "w": its elements are stored twice`},
	{name: "no element type", source: aWeight, edit: weight(func(t *onnxpb.TensorProto) { t.DataType = proto.Int32(0) }), want: `initializer "w": element type 0`},
	{name: "an element type there is not", source: aWeight, edit: weight(func(t *onnxpb.TensorProto) { t.DataType = proto.Int32(99) }), want: `initializer "w": element type 99`},
	{name: "a dim below nothing", source: aWeight, edit: weight(func(t *onnxpb.TensorProto) { t.Dims = []int64{-2} }), want: `initializer "w": dims [-2] are not possible`},
	{name: "dims beyond all memory", source: aWeight, edit: weight(func(t *onnxpb.TensorProto) { t.Dims = []int64{math.MaxInt64, 2} }), want: `initializer "w": dims [9223372036854775807 2] are not possible`},
	{name: "a segment", source: aWeight, edit: weight(func(t *onnxpb.TensorProto) { t.Segment = &onnxpb.TensorProto_Segment{} }), want: `initializer "w": the tensor is stored in segments`},
	{name: "too few strings", source: opset17 + `net (float[2] x) => (string[2] y) <string[2] w = {"a", "b"}> { y = Identity (w) }`, edit: weight(func(t *onnxpb.TensorProto) { t.StringData = t.StringData[:1] }), want: `initializer "w": its elements do not make STRING[2]: 1 elements do not fill shape [2]`},
	{name: "a side file that is gone", source: aWeight, edit: external("location", "gone.bin"), want: `initializer "w": external data file "gone.bin": no such file`},
	{name: "a side file outside", source: aWeight, edit: external("location", "../gone.bin"), want: `initializer "w": external data location "../gone.bin" leaves`},
	{name: "a side file without a name", source: aWeight, edit: external(), want: `initializer "w": external data without a location`},
	{name: "a place before a side file", source: aWeight, edit: external("location", "model.onnx", "offset", "-1"), want: `initializer "w": external data at offset -1`},
	{name: "a place behind a side file", source: aWeight, edit: external("location", "model.onnx", "offset", "100000"), want: `initializer "w": external data file "model.onnx" has `},
	{name: "initializer twice", source: aWeight, edit: func(m *onnxpb.ModelProto) { m.Graph.Initializer = append(m.Graph.Initializer, m.Graph.Initializer[0]) }, want: `two initializers bear the name "w"`},
	{name: "an initializer without a name", source: aWeight, edit: weight(func(t *onnxpb.TensorProto) { t.Name = nil }), want: `Mul node that makes "y": input "w" is made by nothing`},
	{name: "a default of another type than its input", source: opset17 + `net (float[2] x, float[2] w = {1, 2}) => (float[2] y) { y = Mul (x, w) }`, edit: weight(func(t *onnxpb.TensorProto) {
		t.DataType = proto.Int32(7)
		t.RawData = make([]byte, 16)
	}), want: `initializer "w": it is declared as an input of type FLOAT[2], and stored as INT64[2]`},
	{name: "an initializer that nobody reads", source: opset17 + `net (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Neg (x) }`, edit: weight(func(t *onnxpb.TensorProto) { t.RawData = nil }), want: `initializer "w": its elements do not make FLOAT[2]`},
	{name: "a Constant without elements", source: opset17 + `net (float[2] x) => (float[2] y) { w = Constant <value = float[2] {1, 2}> ()  y = Mul (x, w) }`, edit: func(m *onnxpb.ModelProto) { m.Graph.Node[0].Attribute[0].T.RawData = nil }, want: `Constant node that makes "w": attribute "value": its elements do not make FLOAT[2]`},
	{name: "a Constant without a value", source: opset17 + `net (float[2] x) => (float[2] y) { w = Constant ()  y = Mul (x, w) }`, want: `Constant node that makes "w": 0 of its attributes hold a value`},
	{name: "a Constant with two values", source: opset17 + `net (float[2] x) => (float[2] y) { w = Constant <value_float = 1.0, value_int = 2> ()  y = Mul (x, w) }`, want: `Constant node that makes "w": 2 of its attributes hold a value`},
	{name: "an attribute without elements", source: opset17 + `net (int64[1] x) => (float[?] y) { y = ConstantOfShape <value = float[1] {1}> (x) }`, edit: func(m *onnxpb.ModelProto) { m.Graph.Node[0].Attribute[0].T.RawData = nil }, want: `ConstantOfShape node that makes "y": attribute "value": its elements do not make FLOAT[1]`},
	{name: "an initializer of a branch", source: opset17 + `net (float[2] x, bool c) => (float[2] y) { y = If (c) <then_branch = a () => (s) <float[2] w = {1, 2}> { s = Mul (x, w) }, else_branch = b () => (e) { e = Identity (x) }> }`, edit: func(m *onnxpb.ModelProto) {
		for _, a := range m.Graph.Node[0].Attribute {
			if len(a.G.Initializer) > 0 {
				a.G.Initializer[0].RawData = nil
			}
		}
	}, want: `graph "a" of If node that makes "y": initializer "w": its elements`},
	{name: "a Constant of a function", source: `<ir_version: 8, opset_import: ["": 17, "my": 1]> net (float[2] x) => (float[2] y) { y = my.F (x) }
<domain: "my", opset_import: ["": 17]> F (a) => (b) { w = Constant <value = float[2] {1, 2}> () b = Mul (a, w) }`, edit: func(m *onnxpb.ModelProto) { m.Functions[0].Node[0].Attribute[0].T.RawData = nil }, want: `Constant node that makes "w": attribute "value": its elements`},
	{name: "a sparse index outside", source: opset17 + `net (float[3] x) => (float[3] y) <sparse_tensor(float[3]) w = {float[1] {1}, int64[1] {7}}> { y = Mul (x, w) }`, want: `initializer "w": its elements do not make FLOAT[3]: index 7 is outside [3]`},
	{name: "more sparse values than indices", source: opset17 + `net (float[3] x) => (float[3] y) <sparse_tensor(float[3]) w = {float[2] {1, 2}, int64[1] {1}}> { y = Mul (x, w) }`, want: `initializer "w": its elements do not make FLOAT[3]: 8 bytes of values`},
	{name: "a cycle", source: opset17 + `net (float[2] x) => (float[2] y) { a = Add (x, b)  b = Relu (a)  y = Neg (b) }`, want: `depends on its own output (a cycle)`},
	{name: "a value that nobody makes", source: opset17 + `net (float[2] x) => (float[2] y) { y = Add (x, x) }`, edit: func(m *onnxpb.ModelProto) { m.Graph.Node[0].Input[1] = "gone" }, want: `Add node that makes "y": input "gone" is made by nothing`},
	{name: "a value that two make", source: opset17 + `net (float[2] x) => (float[2] y) { y = Relu (x) z = Neg (x) }`, edit: func(m *onnxpb.ModelProto) { m.Graph.Node[1].Output[0] = "y" }, want: `Neg node that makes "y": two values bear the name "y"`},
	{name: "an input twice", edit: func(m *onnxpb.ModelProto) { m.Graph.Input = append(m.Graph.Input, m.Graph.Input[0]) }, want: `input "x": two values bear the name "x"`},
	{name: "an input without a name", edit: func(m *onnxpb.ModelProto) { m.Graph.Input[0].Name = nil }, want: `Relu node that makes "y": input "x" is made by nothing`},
	{name: "an input of less than nothing", edit: func(m *onnxpb.ModelProto) {
		m.Graph.Input[0].Type.GetTensorType().Shape.Dim[0].Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: -3}
	}, want: `input "x": there is no dim of -3`},
	{name: "an output that nobody makes", edit: func(m *onnxpb.ModelProto) { m.Graph.Output[0].Name = proto.String("gone") }, want: `output "gone" is made by nothing`},
	{name: "an output without a name", edit: func(m *onnxpb.ModelProto) { m.Graph.Output[0].Name = nil }, want: `output "" is made by nothing`},
	{name: "a node that makes an input", edit: func(m *onnxpb.ModelProto) { m.Graph.Node[0].Output[0] = "x" }, want: `Relu node that makes "x": two values bear the name "x"`},
	{name: "a node without an operator", edit: func(m *onnxpb.ModelProto) { m.Graph.Node[0].OpType = nil }, want: `node that makes "y": it names no operator`},
	{name: "a domain without an opset", source: aRelu, edit: func(m *onnxpb.ModelProto) { m.Graph.Node[0].Domain = proto.String("gone") }, want: `Relu node that makes "y": the model, or function, imports no opset for its domain "gone"`},
	{name: "too many inputs", source: opset17 + `net (float[2] x) => (float[2] y) { y = Relu (x, x) }`, want: `Relu node that makes "y": it has 2 inputs; Relu takes 1`},
	{name: "too few inputs", source: opset17 + `net (float[2] x) => (float[2] y) { y = Add (x) }`, want: `Add node that makes "y": it has 1 input`},
	{name: "missing attribute", source: opset17 + `net (float[2] x) => (float[2] y) { y = Cast (x) }`, want: `Cast node that makes "y": attribute "to" is missing`},
	{name: "an attribute of another kind", source: opset17 + `net (float[2] x) => (float[2] y) { y = Cast <to = 1.0> (x) }`, want: `Cast node that makes "y": attribute "to" is `},
	{name: "an attribute twice", source: opset17 + `net (float[2] x) => (float[2] y) { y = Cast <to = 1> (x) }`, edit: func(m *onnxpb.ModelProto) {
		m.Graph.Node[0].Attribute = append(m.Graph.Node[0].Attribute, m.Graph.Node[0].Attribute[0])
	}, want: `Cast node that makes "y": attribute "to" is given twice`},
	{name: "an attribute that means nothing", source: opset17 + `net (float[2] x) => (float[2] y) { y = Cast <to = 77> (x) }`, want: `Cast node that makes "y": attribute "to" is 77`},
	{name: "an order that is none", source: opset17 + `net (float[2,3] x) => (y) { y = Transpose <perm = [1, 1]> (x) }`, want: `Transpose node that makes "y": attribute "perm" is [1 1]`},
	{name: "an If without a branch", source: opset17 + `net (float[2] x, bool c) => (y) { y = If (c) <then_branch = a () => (s) { s = Neg (x) }> }`, want: `If node that makes "y": attribute "else_branch" is missing`},
	{name: "an If whose branches differ", source: opset17 + `net (float[2] x, bool c) => (y) { y = If (c) <then_branch = a () => (s) { s = Neg (x) }, else_branch = b () => (e, f) { e = Identity (x) f = Neg (x) }> }`, want: `If node that makes "y": its branches do not give the same: then_branch has 1 output, else_branch 2`},
	{name: "an If with more outputs than its branches", source: opset17 + `net (float[2] x, bool c) => (y, z) { y, z = If (c) <then_branch = a () => (s) { s = Neg (x) }, else_branch = b () => (e) { e = Identity (x) }> }`, want: `If node that makes "y": it has 2 outputs, and its branches give 1`},
	{name: "a Loop whose body takes too little", source: opset17 + `net (float[2] x, int64 n) => (y) { y = Loop (n, "", x) <body = a (int64 i) => (c) { c = Cast <to = 9> (i) }> }`, want: `Loop node that makes "y": its body has 1 input; with 1 value carried from turn to turn it needs 3`},
	{name: "a function that calls itself", source: `<ir_version: 8, opset_import: ["": 17, "my": 1]> net (float[2] x) => (float[2] y) { y = my.F (x) }
<domain: "my", opset_import: ["my": 1]> F (a) => (b) { b = my.F (a) }`, want: `F node that makes "b": by this call function "F" calls itself`},
	{name: "a call with too many inputs", source: `<ir_version: 8, opset_import: ["": 17, "my": 1]> net (float[2] x) => (float[2] y) { y = my.F (x, x) }
<domain: "my", opset_import: ["": 17]> F (a) => (b) { b = Neg (a) }`, want: `F node that makes "y": it has 2 inputs; function F takes at most 1`},
	{name: "a function without an opset", source: `<ir_version: 8, opset_import: ["": 17, "my": 1]> net (float[2] x) => (float[2] y) { y = my.F (x) }
<domain: "my", opset_import: ["my": 1]> F (a) => (b) { b = Neg (a) }`, want: `Neg node that makes "b": the model, or function, imports no opset`},
	{name: "an output whose node does not name it", source: opset17 + `net (float[2] x) => (y) { y = Relu (x) }`, edit: func(m *onnxpb.ModelProto) { m.Graph.Node[0].Output[0] = "" }, want: `output "y" is made by nothing`},
	{name: "a word that means nothing", source: opset17 + `net (float[1,1,8,8] x) => (y) <float[1,1,3,3] w = {1,2,3,4,5,6,7,8,9}> { y = Conv <auto_pad = "SAMEISH"> (x, w) }`, want: `Conv node that makes "y": attribute "auto_pad" is "SAMEISH"`},
}

// impossibleModels obey the rules, and no inputs suit them.
var impossibleModels = []brokenModel{
	{name: "an order of other axes", source: opset17 + `net (float[2,3] x) => (y) { y = Transpose <perm = [0, 2, 1]> (x) }`, want: `Transpose node that makes "y": `, isSeen: true},
	{name: "types that differ", source: opset17 + `net (float[2] x, int64[2] z) => (y) { y = Add (x, z) }`, want: `Add node that makes "y": `},
	{name: "a type that the operator does not take", source: opset17 + `net (string[2] x) => (y) { y = Relu (x) }`, want: `Relu node that makes "y": `},
	{name: "matrices that do not fit", source: opset17 + `net (float[2,3] x) => (y) <float[2,2] w = {1,2,3,4}> { y = MatMul (x, w) }`, want: `MatMul node that makes "y": `, isSeen: true},
	{name: "in whatever size", source: opset17 + `net (float[N,3] x) => (y) <float[2,2] w = {1,2,3,4}> { y = MatMul (x, w) }`, want: `MatMul node that makes "y": `, isSeen: true},
	{name: "shapes that do not broadcast", source: opset17 + `net (float[2,3] x, float[4] z) => (y) { y = Add (x, z) }`, want: `Add node that makes "y": `, isSeen: true},
	{name: "a Reshape to another size", source: opset17 + `net (float[2,3] x) => (y) <int64[2] s = {4, 2}> { y = Reshape (x, s) }`, want: `Reshape node that makes "y": `, isSeen: true},
	{name: "a Reshape with two -1", source: opset17 + `net (float[2,3] x) => (y) <int64[2] s = {-1, -1}> { y = Reshape (x, s) }`, want: `Reshape node that makes "y": `},
	{name: "a constant index outside", source: opset17 + `net (float[2,3] x) => (y) <int64 i = {5}> { y = Gather (x, i) }`, want: `Gather node that makes "y": `},
	{name: "a Concat of other ranks", source: opset17 + `net (float[2,3] x, float[3] z) => (y) { y = Concat <axis = 0> (x, z) }`, want: `Concat node that makes "y": `, isSeen: true},
	{name: "an axis outside", source: opset17 + `net (float[2,3] x) => (y) { y = Softmax <axis = 4> (x) }`, want: `Softmax node that makes "y": `},
	{name: "channels that do not fit", source: opset17 + `net (float[1,4,8,8] x) => (y) <float[2,3,1,1] w = {1,2,3,4,5,6}> { y = Conv (x, w) }`, want: `Conv node that makes "y": `, isSeen: true},
	{name: "parts that do not make the whole", source: opset17 + `net (float[6] x) => (y, z) <int64[2] s = {2, 2}> { y, z = Split (x, s) }`, want: `Split node that makes "y": `},
	{name: "a Squeeze of an axis that is not 1", source: opset17 + `net (float[2,3] x) => (y) <int64[1] a = {0}> { y = Squeeze (x, a) }`, want: `Squeeze node that makes "y": `, isSeen: true},
	{name: "constants that do not fit", source: opset17 + `net (float[2] x) => (y) <float[2] a = {1,2}, float[3] b = {1,2,3}> { c = Add (a, b)  d = ReduceSum <keepdims = 0> (c)  y = Add (x, d) }`, want: `Add node that makes "c": `, isSeen: true},
	{name: "a word that is no number", source: opset17 + `net (float[2] x) => (y) <string[1] a = {"abc"}> { c = Cast <to = 1> (a)  y = Add (x, c) }`, want: `Cast node that makes "c": `},
	{name: "a bound that is no scalar", source: opset17 + `net (float[2] x) => (y) <float[2] a = {1,2}> { y = Clip (x, a) }`, want: `Clip node that makes "y": `},
	{name: "an equation for two", source: opset17 + `net (float[2,3] x) => (y) { y = Einsum <equation = "ij,jk->ik"> (x) }`, want: `Einsum node that makes "y": `, isSeen: true},
	{name: "an equation that is none", source: opset17 + `net (float[2,3] x) => (y) { y = Einsum <equation = "i?->"> (x) }`, want: `Einsum node that makes "y": `},
	{name: "weights of another layer", source: opset17 + `net (float[2,1,3] x) => (y) <float[1,8,4] w = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}, float[1,8,2] r = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}> { y = LSTM <hidden_size = 2> (x, w, r) }`, want: `LSTM node that makes "y": `},
	{name: "a type that is not quantized to", source: opset17 + `net (float[2] x) => (y) <float s = {1}, int32 z = {0}> { y = QuantizeLinear (x, s, z) }`, want: `QuantizeLinear node that makes "y": `},
	{name: "names that command a terminal", source: opset17 + `net (float[2,3] x) => (y) <float[2,2] "w\x1b[31m" = {1,2,3,4}> { ["n\x1b]0;t\x07"] y = MatMul (x, "w\x1b[31m") }`, want: `MatMul node "n\x1b]0;t\a": `, isSeen: true},
	{name: "names that are no text", source: opset17 + `net (float[2,3] x) => (y) <float[2,2] "w\xff" = {1,2,3,4}> { ["n\xfe"] y = MatMul (x, "w\xff") }`, want: `MatMul node "n\xfe": `, isSeen: true},
}

// path writes the model into a folder of its own.
func (b brokenModel) path(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.onnx")
	if b.raw != "" {
		if err := os.WriteFile(path, []byte(b.raw), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	data, err := text.MustParse(t, cmp.Or(b.source, aRelu)).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if b.edit != nil {
		var m onnxpb.ModelProto
		if err := proto.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		b.edit(&m)
		if data, err = proto.Marshal(&m); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Every command that reads a model says the same line of one that is broken, which names
// the file and the place, and ends with the same code.
func TestBrokenModels(t *testing.T) {
	for _, b := range refusedModels {
		t.Run(b.name, func(t *testing.T) {
			path := b.path(t)
			first := ""
			for _, args := range [][]string{{"optimize"}, {"inspect"}, {"infer"}, {"compile", "--dry-run", "--soc", "Ascend910B3"}} {
				code, _, stderr := runs(context.Background(), append(args, path)...)
				if first == "" {
					first = stderr
				}
				if code != int(fault.Input) || stderr != first || strings.Count(stderr, "\n") != 1 {
					t.Errorf("%s: exit code %d, %q; the first command said %q", args[0], code, stderr, first)
				}
			}
			if !strings.HasPrefix(first, "npuctl: "+path+": ") || !strings.Contains(first, b.want) {
				t.Errorf("%q, want %q", first, b.want)
			}
		})
	}
}

// A model that no inputs suit is the model's fault, not that of the random inputs; inspect,
// which describes what it can, says so too where it sees it.
func TestImpossibleModels(t *testing.T) {
	for _, b := range impossibleModels {
		t.Run(b.name, func(t *testing.T) {
			path := b.path(t)
			code, _, stderr := runs(context.Background(), "infer", path)
			if code != int(fault.Input) || !strings.HasPrefix(stderr, "npuctl: "+path+": ") || !strings.Contains(stderr, b.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("infer: exit code %d, %q, want %q", code, stderr, b.want)
			}
			code, stdout, stderr := runs(context.Background(), "inspect", path)
			says := strings.Contains(stdout, b.want) && strings.Contains(stdout, "it can never run so")
			if isRefused := code == int(fault.Input) && strings.Contains(stderr, b.want); !isRefused && (code != 0 || b.isSeen && !says) {
				t.Errorf("inspect: exit code %d, says it %v:\n%s%s", code, says, stdout, stderr)
			}
			_, stdout, _ = runs(context.Background(), "inspect", "--json", path)
			if strings.Contains(stdout, `"runnable": false`) != says {
				t.Errorf("inspect says it %v, --json:\n%s", says, stdout)
			}
		})
	}
}
