package atcemu

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnxpass"
)

// carried is the ONNX model that an .om of the emulator carries, while it is made: the
// user's model with the sizes, types and outputs that the options ask for.
type carried struct {
	model   *onnx.Model
	inputs  []*carriedInput
	outputs []*carriedOutput
	// isRewritten says that the outputs are no longer those of the file.
	isRewritten bool
}

// carriedInput is one input of the compiled model.
type carriedInput struct {
	value *onnx.Value
	// dims are what the options and the model say of each axis.
	dims []atc.Range
	// isPacked says that the caller feeds the layout NC1HWC0.
	isPacked bool
	channels int64 // of a packed input
}

// carriedOutput is one output of the compiled model.
type carriedOutput struct {
	value    *onnx.Value
	port     outNode
	tensor   string // the ONNX name of the tensor
	isPacked bool
	producer *onnx.Node // of the user's model; nil for a graph input or a constant
}

// carry applies the options to the model. A failure is the user's: it speaks of names
// and shapes as ATC does.
func (r *request) carry(ctx context.Context, m *onnx.Model) (*carried, error) {
	c := &carried{model: m}
	c.fixDefaults()
	c.takeInputs()
	if err := c.setShapes(r.shapes); err != nil {
		return nil, err
	}
	if err := c.takeOutputs(r.outNodes); err != nil {
		return nil, err
	}
	if err := c.castOutputs(ctx, r); err != nil {
		return nil, err
	}
	return c, c.castInputs(r)
}

// fixDefaults makes constants of inputs with a stored value: the parser takes them for
// constants, whatever the IR version.
func (c *carried) fixDefaults() {
	for _, v := range slices.Clone(c.model.Graph.Inputs()) {
		if v.Initializer() != nil && c.model.IRVersion >= 4 {
			c.model.Graph.StoreAs(v, v.Initializer())
		}
	}
}

func (c *carried) takeInputs() {
	for _, v := range onnxpass.RealInputs(c.model) {
		in := &carriedInput{value: v}
		if v.Type.IsTensor() && v.Type.Shape != nil {
			for _, d := range v.Type.Shape.Dims {
				b := atc.AnySize()
				if d.Known {
					b = atc.Fixed(d.Value)
				}
				in.dims = append(in.dims, b)
			}
		}
		c.inputs = append(c.inputs, in)
	}
}

// setShapes writes the sizes of the options into the inputs. They win over the
// model's own, silently, as ATC has it. Names of open axes are dropped: gears and
// callers may give two axes of one name different sizes.
func (c *carried) setShapes(shapes []atc.InputShape) error {
	for _, s := range shapes {
		in := c.find(s.Name)
		if in == nil {
			return fmt.Errorf("the model has no input %q", s.Name)
		}
		if in.value.Type.Shape != nil && len(in.dims) != len(s.Axes) {
			return fmt.Errorf("input %q has rank %d, its shape was given with %d dims", s.Name, len(in.dims), len(s.Axes))
		}
		in.dims = slices.Clone(s.Axes)
	}
	for _, in := range c.inputs {
		dims := make([]onnx.Dim, len(in.dims))
		for i, b := range in.dims {
			if b.IsFixed() {
				dims[i] = onnx.KnownDim(int(b.Low))
			}
		}
		in.value.Type = in.value.Type.WithShape(&onnx.Shape{Dims: dims})
	}
	return nil
}

func (c *carried) find(name string) *carriedInput {
	for _, in := range c.inputs {
		if in.value.Name() == name {
			return in
		}
	}
	return nil
}

// takeOutputs lists the outputs: those the user names, else the model's.
func (c *carried) takeOutputs(named []outNode) error {
	if len(named) == 0 {
		for _, v := range c.model.Graph.Outputs() {
			c.outputs = append(c.outputs, newOutput(v))
		}
		return nil
	}
	c.isRewritten = true
	for _, n := range named {
		v := c.lookup(n)
		if v == nil {
			return fmt.Errorf("--out_nodes: the model has no %s", n)
		}
		out := newOutput(v)
		if n.tensor == "" {
			out.port = n
			out.tensor = ""
		}
		c.outputs = append(c.outputs, out)
	}
	c.separateOutputs()
	return nil
}

func (n outNode) String() string {
	if n.tensor != "" {
		return fmt.Sprintf("tensor %q", n.tensor)
	}
	return fmt.Sprintf("output %d of a node %q", n.port, n.node)
}

func newOutput(v *onnx.Value) *carriedOutput {
	out := &carriedOutput{value: v, tensor: v.Name(), producer: v.Producer()}
	out.port.node = v.Name()
	if p := v.Producer(); p != nil {
		out.port = outNode{node: nodeName(p), port: slices.Index(p.Outputs(), v)}
	}
	return out
}

// lookup finds what the user named; a graph input may stand for the node of its name.
func (c *carried) lookup(n outNode) *onnx.Value {
	if n.tensor != "" {
		return c.model.Graph.Find(n.tensor)
	}
	for _, node := range c.model.Graph.Nodes() {
		if nodeName(node) == n.node {
			return node.Output(n.port)
		}
	}
	if in := c.find(n.node); in != nil && n.port == 0 {
		return in.value
	}
	return nil
}

// separateOutputs puts an Identity in front of outputs that ONNX could not list as
// they are: one that is named twice, an input, a constant.
func (c *carried) separateOutputs() {
	seen := map[*onnx.Value]bool{}
	for _, out := range c.outputs {
		if seen[out.value] || out.value.Producer() == nil {
			n := c.model.Graph.Add("Identity", []*onnx.Value{out.value}, []string{c.model.FreshName(out.value.Name())})
			n.Output(0).Type = out.value.Type
			out.value = n.Output(0)
		}
		seen[out.value] = true
	}
}

// castTypes are the types that --output_type can ask for and ONNX can make.
var castTypes = map[string]tensor.Type{
	"FP32": tensor.Float32, "FP16": tensor.Float16, "UINT8": tensor.Uint8, "INT8": tensor.Int8,
	"FP8E5M2": tensor.Float8E5M2, "FP8E4M3FN": tensor.Float8E4M3FN,
}

// castOutputs changes the types of outputs as the options ask for. The tensor that the
// user knows by its name is the cast one.
func (c *carried) castOutputs(ctx context.Context, r *request) error {
	for i, out := range c.outputs {
		isAdjusted := i < len(r.adjustOutputs) && r.adjustOutputs[i]
		name := r.typeOf(out.port)
		if isAdjusted {
			name = "FP16"
		}
		if name == "" {
			continue
		}
		t, ok := castTypes[name]
		if !ok {
			return fmt.Errorf("--output_type: the emulator cannot compute outputs of type %s", name)
		}
		c.isRewritten = true
		c.castOutput(out, t)
		if !isAdjusted {
			continue
		}
		if err := c.adjustOutput(ctx, out); err != nil {
			return err
		}
	}
	return nil
}

// typeOf is the type that the options ask for an output, "" for the model's own.
func (r *request) typeOf(port outNode) string {
	for p, name := range r.outputTypes {
		if p.node == port.node && p.port == port.port {
			return name
		}
	}
	return r.outputType
}

// adjustOutput gives an output the layout NC1HWC0; its sizes are inferred.
func (c *carried) adjustOutput(ctx context.Context, out *carriedOutput) error {
	if err := c.model.Graph.Sort(); err != nil {
		return err
	}
	infos, err := inferAll(ctx, c.model)
	if err != nil {
		return err
	}
	dims, ok := infos.Of(out.value).Shape()
	if !ok {
		return fmt.Errorf("--is_output_adjust_hw_layout: the shape of output %q is not known", out.value.Name())
	}
	wide := make([]int64, len(dims))
	for i, d := range dims {
		wide[i] = int64(d)
	}
	return c.packOutput(out, wide)
}

// takeName gives the name of a value to what is made of it.
func (c *carried) takeName(v *onnx.Value) string {
	name := v.Name()
	v.Rename(c.model.FreshName(name + "_inner"))
	return name
}

func (c *carried) castOutput(out *carriedOutput, t tensor.Type) {
	inner := out.value
	n := c.model.Graph.Add("Cast", []*onnx.Value{inner}, []string{c.takeName(inner)}, onnx.IntAttribute("to", int64(t)))
	out.value = n.Output(0)
}

// castInputs lets the caller feed FLOAT16 where the options ask for it: the input
// changes its type, and a Cast makes what the model reads.
func (c *carried) castInputs(r *request) error {
	for i, name := range r.fp16Inputs {
		in := c.find(name)
		if in == nil {
			return fmt.Errorf("--input_fp16_nodes: the model has no input %q", name)
		}
		v := in.value
		old := v.Type.Elem
		if old != tensor.Float16 {
			c.readBy(v, "Cast", onnx.IntAttribute("to", int64(old)))
			v.Type = retyped(v.Type, tensor.Float16)
		}
		if i < len(r.adjustInputs) && r.adjustInputs[i] {
			if err := c.packInput(in); err != nil {
				return err
			}
		}
	}
	return nil
}

// readBy puts a node between a value and all that read it, and gives its output.
func (c *carried) readBy(v *onnx.Value, op string, attributes ...*onnx.Attribute) *onnx.Value {
	n := c.model.Graph.Add(op, nil, []string{c.model.FreshName(v.Name() + "_" + op)}, attributes...)
	made := n.Output(0)
	made.Type = v.Type
	for _, out := range c.outputs {
		if out.value == v {
			out.value, c.isRewritten = made, true
		}
	}
	v.ReplaceUses(made)
	n.SetInputs(v)
	return made
}

// retyped is a tensor type with another element type.
func retyped(t *onnx.Type, elem tensor.Type) *onnx.Type {
	return onnx.TensorType(elem).WithShape(t.Shape)
}

// encode gives the carried model as bytes, its weights inside.
func (c *carried) encode(types func(*onnx.Value) *onnx.Type) ([]byte, error) {
	if err := c.model.Graph.Sort(); err != nil {
		return nil, err
	}
	data, err := c.model.Encode()
	if err != nil || !c.isRewritten {
		return data, err
	}
	var outputs [][]byte
	for _, out := range c.outputs {
		outputs = append(outputs, encodeValueInfo(out.value.Name(), types(out.value)))
	}
	return replaceOutputs(data, outputs)
}

// Field numbers of onnx.proto.
const (
	modelGraphField  = 7
	graphOutputField = 12
	infoNameField    = 1
	infoTypeField    = 2
	typeTensorField  = 1
	tensorElemField  = 1
	tensorShapeField = 2
	shapeDimField    = 1
	dimValueField    = 1
)

// replaceOutputs puts other outputs into the main graph of an encoded model.
func replaceOutputs(model []byte, outputs [][]byte) ([]byte, error) {
	return editField(model, modelGraphField, func(graph []byte) ([]byte, error) {
		kept, err := editField(graph, graphOutputField, nil)
		for _, out := range outputs {
			kept = protowire.AppendBytes(protowire.AppendTag(kept, graphOutputField, protowire.BytesType), out)
		}
		return kept, err
	})
}

// editField copies a message with every occurrence of a field edited, or dropped when
// edit is nil.
func editField(message []byte, field protowire.Number, edit func([]byte) ([]byte, error)) ([]byte, error) {
	out := make([]byte, 0, len(message))
	for len(message) > 0 {
		number, _, length := protowire.ConsumeField(message)
		if length < 0 {
			return nil, protowire.ParseError(length)
		}
		whole := message[:length]
		message = message[length:]
		if number != field {
			out = append(out, whole...)
			continue
		}
		if edit == nil {
			continue
		}
		_, _, tag := protowire.ConsumeTag(whole)
		body, n := protowire.ConsumeBytes(whole[tag:])
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		edited, err := edit(body)
		if err != nil {
			return nil, err
		}
		out = protowire.AppendBytes(protowire.AppendTag(out, field, protowire.BytesType), edited)
	}
	return out, nil
}

// encodeValueInfo is a ValueInfoProto; without a type it has the name alone.
func encodeValueInfo(name string, t *onnx.Type) []byte {
	info := protowire.AppendBytes(protowire.AppendTag(nil, infoNameField, protowire.BytesType), []byte(name))
	if !t.IsTensor() {
		return info
	}
	body := protowire.AppendVarint(protowire.AppendTag(nil, tensorElemField, protowire.VarintType), uint64(t.Elem))
	if t.Shape != nil {
		var dims []byte
		for _, d := range t.Shape.Dims {
			var dim []byte
			if d.Known {
				dim = protowire.AppendVarint(protowire.AppendTag(nil, dimValueField, protowire.VarintType), uint64(d.Value))
			}
			dims = protowire.AppendBytes(protowire.AppendTag(dims, shapeDimField, protowire.BytesType), dim)
		}
		body = protowire.AppendBytes(protowire.AppendTag(body, tensorShapeField, protowire.BytesType), dims)
	}
	typ := protowire.AppendBytes(protowire.AppendTag(nil, typeTensorField, protowire.BytesType), body)
	return protowire.AppendBytes(protowire.AppendTag(info, infoTypeField, protowire.BytesType), typ)
}
