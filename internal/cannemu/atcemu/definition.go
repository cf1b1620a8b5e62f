package atcemu

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/internal/cannemu/datatype"
	"github.com/npuctl/npuctl/internal/cannemu/omwriter"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/infer"
)

// maxGearOps bounds the operators of all gears together: beyond it, a gear's body is
// told as one operator. Readers count on bodies being there, not on their details.
const maxGearOps = 20000

// definition makes the graph of MODEL_DEF: Data, one operator for each node that is
// left after folding, NetOutput; with gears, a Case with a body for each.
type definition struct {
	request   *request
	carried   *carried
	analysis  *analysis
	signature *omwriter.Signature
	engines   engines
	names     map[*onnx.Node]string // of the folded model's nodes
}

func (d *definition) graphs() []omwriter.Graph {
	if d.request.gears.Kind == atc.NoGears {
		return []omwriter.Graph{d.flat()}
	}
	graphs := []omwriter.Graph{d.root()}
	for i := range d.request.gears.Rows {
		graphs = append(graphs, d.gear(i))
	}
	return graphs
}

// flat is the graph of a model without gears.
func (d *definition) flat() omwriter.Graph {
	g := omwriter.Graph{Name: "ge_default"}
	for i := range d.signature.Inputs {
		g.Ops = append(g.Ops, d.data(i))
		g.Inputs = append(g.Inputs, d.signature.Inputs[i].Name+":0")
	}
	g.Ops = append(g.Ops, d.body("", nil, d.analysis.infos)...)
	g.Ops = append(g.Ops, d.netOutput(d.outputSources("")))
	g.Outputs = d.sourceTexts("")
	return number(g)
}

// root is the main graph of a model with gears: the inputs, the gears' values as a
// constant, the choice, and the Case that holds the bodies.
func (d *definition) root() omwriter.Graph {
	const prefix = "ascend_mbatch_shape_"
	g := omwriter.Graph{Name: "ge_default"}
	caseOp := omwriter.Op{Name: prefix + "case", Type: "Case", Inputs: []string{prefix + "mapindex:0"}, Attributes: d.caseAttributes()}
	for i, in := range d.signature.Inputs {
		op := d.data(i)
		if in.Name != hiddenInput {
			caseOp.Inputs = append(caseOp.Inputs, in.Name+":0")
			caseOp.InputDescs = append(caseOp.InputDescs, op.InputDescs...)
		}
		g.Ops = append(g.Ops, op)
		g.Inputs = append(g.Inputs, in.Name+":0")
	}
	inserted := []omwriter.Attribute{{Name: "mbatch-inserted-node", Value: omwriter.Bool(true)}}
	var outputs []outputSource
	for i := range d.signature.Outputs {
		caseOp.OutputDescs = append(caseOp.OutputDescs, d.outputDesc(i))
		outputs = append(outputs, outputSource{caseOp.Name, i})
		g.Outputs = append(g.Outputs, fmt.Sprintf("%s:%d", caseOp.Name, i))
	}
	for i := range d.request.gears.Rows {
		caseOp.Subgraphs = append(caseOp.Subgraphs, d.gearName(i))
	}
	net := d.netOutput(outputs)
	net.Attributes = append(net.Attributes, omwriter.Attribute{Name: "_dynamic_output_dims", Value: omwriter.Texts(d.signature.OutputShapes)})
	g.Ops = append(g.Ops,
		omwriter.Op{Name: prefix + "const", Type: "Const", Attributes: inserted},
		omwriter.Op{Name: prefix + "mapindex", Type: "MapIndex", Inputs: []string{hiddenInput + ":0", prefix + "const:0"}, Attributes: inserted},
		caseOp, net)
	return number(g)
}

// dynamicType is mbatch_dynamic_type: which kind of gears a Case has.
var dynamicType = map[atc.GearKind]omwriter.Int{atc.BatchGears: 1, atc.ImageGears: 2, atc.DimsGears: 3}

func (d *definition) caseAttributes() []omwriter.Attribute {
	rows := d.request.gears.Rows
	list := []omwriter.Attribute{
		{Name: "_batch_num", Value: omwriter.Int(len(rows))},
		{Name: "mbatch_dynamic_type", Value: dynamicType[d.request.gears.Kind]},
		{Name: "user_designate_shape_order", Value: omwriter.Texts(d.signature.ShapeOrder)},
		{Name: "mbatch-inserted-node", Value: omwriter.Bool(true)},
	}
	for i, row := range rows {
		list = append(list, omwriter.Attribute{Name: fmt.Sprintf("_pred_value_%d", i), Value: omwriter.Ints(row)})
	}
	return list
}

func (d *definition) gearName(i int) string { return fmt.Sprintf("Batch_%d", i) }

// gear is the body of one gear.
func (d *definition) gear(i int) omwriter.Graph {
	suffix := fmt.Sprintf("_ascend_mbatch_batch_%d", i)
	label := []omwriter.Attribute{{Name: "_batch_label", Value: omwriter.Text(d.gearName(i))}}
	g := omwriter.Graph{Name: d.gearName(i)}
	for k, in := range d.carried.inputs {
		op := d.data(k)
		op.Name += suffix
		op.Attributes = append([]omwriter.Attribute{{Name: "_parent_node_index", Value: omwriter.Int(k + 1)}, {Name: "index", Value: omwriter.Int(k)}}, label...)
		g.Ops = append(g.Ops, op)
		g.Inputs = append(g.Inputs, in.value.Name()+suffix+":0")
	}
	sources := d.outputSources(suffix)
	if len(d.analysis.model.Graph.Nodes())*len(d.request.gears.Rows) <= maxGearOps {
		g.Ops = append(g.Ops, d.body(suffix, label, nil)...)
	} else {
		call := omwriter.Op{Name: "body" + suffix, Type: "PartitionedCall", Inputs: g.Inputs, Attributes: label}
		g.Ops = append(g.Ops, call)
		for k := range sources {
			sources[k] = outputSource{call.Name, k}
		}
	}
	net := d.netOutput(sources)
	net.Name += suffix
	net.Attributes = append(net.Attributes, label...)
	g.Ops = append(g.Ops, net)
	for _, s := range sources {
		g.Outputs = append(g.Outputs, s.String())
	}
	return number(g)
}

// data is the operator of an input.
func (d *definition) data(i int) omwriter.Op {
	p := d.signature.Inputs[i]
	desc := descOf(p)
	op := omwriter.Op{Name: p.Name, Type: "Data", Inputs: []string{""}, InputDescs: []omwriter.TensorDesc{desc}, OutputDescs: []omwriter.TensorDesc{desc},
		Attributes: []omwriter.Attribute{{Name: "index", Value: omwriter.Int(i)}}}
	if slices.Contains(p.Dims, -1) && d.request.gears.Kind != atc.NoGears {
		op.Attributes = append(op.Attributes, omwriter.Attribute{Name: "_mbatch_origin_input_dims", Value: omwriter.Ints(p.Dims)})
	}
	return op
}

// layoutName is what GE calls a format of AscendCL's numbering.
func layoutName(format int32) string {
	return cmp.Or(map[int32]string{formatNCHW: "NCHW", formatNCDHW: "NCDHW", formatNC1HWC0: "NC1HWC0"}[format], "ND")
}

// descOf describes a port as a tensor of MODEL_DEF.
func descOf(p omwriter.Port) omwriter.TensorDesc {
	layout := layoutName(p.Format)
	t, _ := datatype.FromACL(p.DataType)
	return omwriter.TensorDesc{DataType: datatype.GE(t), Dims: p.Dims, Layout: layout, Size: int64(p.Bytes), Attributes: []omwriter.Attribute{
		{Name: "origin_shape", Value: omwriter.Ints(p.Dims)},
		{Name: "origin_format", Value: omwriter.Text(layout)},
		{Name: "format_for_int", Value: omwriter.Int(p.Format)},
	}}
}

// outputDesc describes an output where GE pads it: to 32 bytes and 32 more.
func (d *definition) outputDesc(i int) omwriter.TensorDesc {
	desc := descOf(d.signature.Outputs[i])
	if desc.Size > 0 {
		desc.Size = (desc.Size+31)/32*32 + 32
	}
	return desc
}

// outputSource is the output of an operator.
type outputSource struct {
	op   string
	port int
}

func (s outputSource) String() string { return fmt.Sprintf("%s:%d", s.op, s.port) }

func (d *definition) netOutput(sources []outputSource) omwriter.Op {
	op := omwriter.Op{Name: "Node_Output", Type: "NetOutput"}
	for i, s := range sources {
		op.Inputs = append(op.Inputs, s.String())
		op.SourceNames = append(op.SourceNames, s.op)
		op.SourceIndices = append(op.SourceIndices, int64(s.port))
		op.InputDescs = append(op.InputDescs, d.outputDesc(i))
	}
	return op
}

func (d *definition) outputSources(suffix string) (sources []outputSource) {
	for _, v := range d.analysis.model.Graph.Outputs() {
		sources = append(sources, d.sourceOf(v, suffix))
	}
	return sources
}

func (d *definition) sourceTexts(suffix string) (texts []string) {
	for _, s := range d.outputSources(suffix) {
		texts = append(texts, s.String())
	}
	return texts
}

// sourceOf says which operator makes a value: a node, an input, or a constant.
func (d *definition) sourceOf(v *onnx.Value, suffix string) outputSource {
	n := v.Producer()
	if n == nil {
		return outputSource{v.Name() + suffix, 0}
	}
	return outputSource{d.names[n] + suffix, slices.Index(n.Outputs(), v)}
}

// body is one operator for each node; infos, when not nil, describe the outputs.
func (d *definition) body(suffix string, label []omwriter.Attribute, infos *infer.Inference) (ops []omwriter.Op) {
	for _, n := range d.analysis.model.Graph.Nodes() {
		op := omwriter.Op{Name: d.names[n] + suffix, Type: geType(n)}
		for _, v := range n.Inputs() {
			if v == nil {
				op.Inputs = append(op.Inputs, "")
				op.IsInputConst = append(op.IsInputConst, false)
				continue
			}
			op.Inputs = append(op.Inputs, d.sourceOf(v, suffix).String())
			op.IsInputConst = append(op.IsInputConst, v.Constant() != nil)
		}
		op.Attributes = append([]omwriter.Attribute{
			{Name: "_ge_attr_op_kernel_lib_name", Value: omwriter.Text(d.engines.library(n))},
			{Name: "_datadump_original_op_names", Value: omwriter.Texts{d.names[n]}},
		}, label...)
		if infos != nil {
			op.OutputDescs = describe(n, infos)
		}
		ops = append(ops, op)
	}
	return ops
}

// namesOf names all nodes at once: looking for one's place is slow in large graphs.
func namesOf(g *onnx.Graph) map[*onnx.Node]string {
	names := map[*onnx.Node]string{}
	for i, n := range g.Nodes() {
		names[n] = nodeNameAt(n, i)
	}
	return names
}

func describe(n *onnx.Node, infos *infer.Inference) (descs []omwriter.TensorDesc) {
	for _, v := range n.Outputs() {
		var desc omwriter.TensorDesc
		if v != nil {
			if t := infos.Of(v).Type(); t.IsTensor() {
				dims := dimsOf(t)
				desc = omwriter.TensorDesc{DataType: datatype.GE(t.Elem), Dims: dims, Layout: "ND", Size: int64(bytesOf(t.Elem, dims))}
			}
		}
		descs = append(descs, desc)
	}
	return descs
}

// number gives the operators their ids, in order.
func number(g omwriter.Graph) omwriter.Graph {
	for i := range g.Ops {
		g.Ops[i].ID = int64(i)
	}
	return g
}
