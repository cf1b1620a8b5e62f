// Command attention writes attention.onnx, the model of the README: two blocks
// of a vision transformer, as torch.onnx.export leaves them with constant
// folding off and a dynamic batch.
//
// Every block computes its target shapes from Shape, Gather and Concat, scales
// by a Sqrt of a Cast constant, and picks an axis with the (3-1) Mod 3 that the
// TorchScript exporter makes of a negative index: an AI CPU operator on the NPU.
// The weights are pseudo-random and small.
//
//	go run ./examples/attention > examples/attention.onnx
package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

const (
	width  = 32
	heads  = 4
	blocks = 2
	opset  = 14
)

func main() {
	data, err := model().Encode()
	if err == nil {
		_, err = bytes.NewReader(data).WriteTo(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "attention:", err)
		os.Exit(1)
	}
}

// builder adds nodes to a graph and names what they make.
type builder struct {
	graph  *onnx.Graph
	random *rand.Rand
	made   int
}

func model() *onnx.Model {
	m := onnx.NewModel(7, opset)
	m.ProducerName, m.ProducerVersion = "pytorch", "2.8.0"
	m.Graph.Name = "main_graph"
	b := &builder{graph: m.Graph, random: rand.New(rand.NewPCG(1, 2))}
	images := onnx.TensorType(tensor.Float32, 0, 3, 32, 32)
	images.Shape.Dims[0] = onnx.Dim{Param: "batch"}
	x := b.patches(b.graph.AddInput("images", images))
	for range blocks {
		x = b.add("Add", x, b.attention(b.norm(x)))
		x = b.add("Add", x, b.feedForward(b.norm(x)))
	}
	features := b.node("ReduceMean", []*onnx.Value{b.norm(x)}, onnx.IntsAttribute("axes", 1), onnx.IntAttribute("keepdims", 0))
	features.Rename("features")
	features.Type = onnx.TensorType(tensor.Float32, 0, width)
	features.Type.Shape.Dims[0] = onnx.Dim{Param: "batch"}
	m.Graph.AddOutput(features)
	return m
}

func (b *builder) node(op string, inputs []*onnx.Value, attributes ...*onnx.Attribute) *onnx.Value {
	b.made++
	n := b.graph.Add(op, inputs, []string{fmt.Sprintf("/%s_%d_output_0", op, b.made)}, attributes...)
	n.Name = fmt.Sprintf("/%s_%d", op, b.made)
	return n.Output(0)
}

func (b *builder) add(op string, inputs ...*onnx.Value) *onnx.Value { return b.node(op, inputs) }

func (b *builder) constant(d *tensor.Dense) *onnx.Value {
	return b.node("Constant", nil, onnx.TensorAttribute("value", d))
}

func (b *builder) ints(v ...int64) *onnx.Value { return b.constant(tensor.Of(v, len(v))) }

func (b *builder) int(v int64) *onnx.Value { return b.constant(tensor.Scalar(v)) }

func (b *builder) float(v float32) *onnx.Value { return b.constant(tensor.Scalar(v)) }

func (b *builder) weight(scale float32, shape ...int) *onnx.Value {
	count := 1
	for _, d := range shape {
		count *= d
	}
	data := make([]float32, count)
	for i := range data {
		data[i] = scale * (b.random.Float32() - 0.5)
	}
	return b.graph.AddInitializer("weight", tensor.Of(data, shape...))
}

// patches cuts the images into 8×8 patches and embeds each: [batch,16,width].
func (b *builder) patches(images *onnx.Value) *onnx.Value {
	x := b.node("Conv", []*onnx.Value{images, b.weight(0.2, width, 3, 8, 8), b.weight(0.2, width)},
		onnx.IntsAttribute("kernel_shape", 8, 8), onnx.IntsAttribute("strides", 8, 8))
	x = b.add("Reshape", x, b.shape(b.size(x, 0), b.size(x, 1), b.int(-1)))
	return b.node("Transpose", []*onnx.Value{x}, onnx.IntsAttribute("perm", 0, 2, 1))
}

// size is one dim of x, as the exporter asks for it at run time.
func (b *builder) size(x *onnx.Value, axis int64) *onnx.Value {
	return b.node("Gather", []*onnx.Value{b.add("Shape", x), b.int(axis)}, onnx.IntAttribute("axis", 0))
}

// shape joins scalar sizes into a target for Reshape.
func (b *builder) shape(sizes ...*onnx.Value) *onnx.Value {
	var parts []*onnx.Value
	for _, s := range sizes {
		parts = append(parts, b.add("Unsqueeze", s, b.ints(0)))
	}
	return b.node("Concat", parts, onnx.IntAttribute("axis", 0))
}

func (b *builder) linear(x *onnx.Value, in, out int) *onnx.Value {
	return b.add("Add", b.weight(0.2, out), b.add("MatMul", x, b.weight(0.3, in, out)))
}

// norm is a layer normalization in the operators that opset 14 has.
func (b *builder) norm(x *onnx.Value) *onnx.Value {
	last, keep := onnx.IntsAttribute("axes", -1), onnx.IntAttribute("keepdims", 1)
	d := b.add("Sub", x, b.node("ReduceMean", []*onnx.Value{x}, last, keep))
	variance := b.node("ReduceMean", []*onnx.Value{b.add("Pow", d, b.float(2))}, last, keep)
	y := b.add("Div", d, b.add("Sqrt", b.add("Add", variance, b.float(1e-5))))
	return b.add("Add", b.add("Mul", y, b.weight(2, width)), b.weight(0.2, width))
}

// attention is multi-head self-attention with the joint projection of q, k and v.
func (b *builder) attention(x *onnx.Value) *onnx.Value {
	batch, tokens := b.size(x, 0), b.size(x, 1)
	joint := b.linear(x, width, 3*width)
	joint = b.add("Reshape", joint, b.shape(batch, tokens, b.int(3), b.int(heads), b.int(width/heads)))
	joint = b.node("Transpose", []*onnx.Value{joint}, onnx.IntsAttribute("perm", 2, 0, 3, 1, 4))
	pick := func(i int64) *onnx.Value {
		// x[-3+i] as the exporter writes it: (i-3 + 3) Mod 3.
		index := b.node("Mod", []*onnx.Value{b.add("Add", b.int(i-3), b.int(3)), b.int(3)}, onnx.IntAttribute("fmod", 0))
		return b.node("Gather", []*onnx.Value{joint, index}, onnx.IntAttribute("axis", 0))
	}
	q, k, v := pick(0), pick(1), pick(2)
	scale := b.add("Sqrt", b.node("Cast", []*onnx.Value{b.int(width / heads)}, onnx.IntAttribute("to", int64(tensor.Float32))))
	scores := b.add("Div", b.add("MatMul", q, b.node("Transpose", []*onnx.Value{k}, onnx.IntsAttribute("perm", 0, 1, 3, 2))), scale)
	y := b.add("MatMul", b.node("Softmax", []*onnx.Value{scores}, onnx.IntAttribute("axis", -1)), v)
	y = b.node("Transpose", []*onnx.Value{y}, onnx.IntsAttribute("perm", 0, 2, 1, 3))
	y = b.add("Reshape", y, b.shape(batch, tokens, b.int(width)))
	return b.node("Dropout", []*onnx.Value{b.linear(y, width, width)})
}

// feedForward is two linear layers around an exact GELU in parts.
func (b *builder) feedForward(x *onnx.Value) *onnx.Value {
	y := b.linear(x, width, 4*width)
	root := b.add("Sqrt", b.float(2))
	e := b.add("Add", b.add("Erf", b.add("Div", y, root)), b.float(1))
	y = b.add("Mul", b.add("Mul", y, e), b.float(0.5))
	return b.linear(y, 4*width, width)
}
