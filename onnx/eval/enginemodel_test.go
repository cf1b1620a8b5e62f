package eval

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// modelMaker builds models in code, with random weights of a size that keeps values
// near 1 from layer to layer.
type modelMaker struct {
	*onnx.Model
	random *rand.Rand
	count  int
}

func newModelMaker(opset int) *modelMaker {
	return &modelMaker{Model: onnx.NewModel(8, opset), random: rand.New(rand.NewPCG(7, 11))}
}

// weight is an initializer of normal random numbers.
func (m *modelMaker) weight(deviation float64, shape ...int) *onnx.Value {
	data := make([]float32, product(shape))
	for i := range data {
		data[i] = float32(m.random.NormFloat64() * deviation)
	}
	return m.Graph.AddInitializer("weight", tensor.Of(data, shape...))
}

func (m *modelMaker) ints(values ...int64) *onnx.Value {
	return m.Graph.AddInitializer("ints", tensor.Of(values, len(values)))
}

func (m *modelMaker) scalar(v float32) *onnx.Value {
	return m.Graph.AddInitializer("scalar", tensor.Scalar(v))
}

// node adds a node of one output.
func (m *modelMaker) node(op string, inputs []*onnx.Value, attributes ...*onnx.Attribute) *onnx.Value {
	m.count++
	return m.Graph.Add(op, inputs, []string{fmt.Sprintf("%s_%d", op, m.count)}, attributes...).Output(0)
}

func (m *modelMaker) call(op string, inputs ...*onnx.Value) *onnx.Value { return m.node(op, inputs) }

// resNet50 is the network of He et al. with the stride in the 3x3 convolution and the
// batch normalisations folded into the convolutions, as exporters write it.
func resNet50() *onnx.Model {
	m := newModelMaker(17)
	x := m.Graph.AddInput("image", onnx.TensorType(tensor.Float32, 1, 3, 224, 224))
	x = m.call("Relu", m.conv(x, 3, 64, 7, 2, 1))
	x = m.node("MaxPool", []*onnx.Value{x}, onnx.IntsAttribute("kernel_shape", 3, 3), onnx.IntsAttribute("strides", 2, 2), onnx.IntsAttribute("pads", 1, 1, 1, 1))
	channels := 64
	for stage, blocks := range []int{3, 4, 6, 3} {
		width := 64 << stage
		for block := range blocks {
			stride := 1
			if block == 0 && stage > 0 {
				stride = 2
			}
			x = m.bottleneck(x, channels, width, stride)
			channels = 4 * width
		}
	}
	x = m.call("Flatten", m.call("GlobalAveragePool", x))
	y := m.node("Gemm", []*onnx.Value{x, m.weight(0.02, 1000, channels), m.weight(0.1, 1000)}, onnx.IntAttribute("transB", 1))
	m.Graph.AddOutput(y)
	return m.Model
}

func (m *modelMaker) bottleneck(x *onnx.Value, channels, width, stride int) *onnx.Value {
	y := m.call("Relu", m.conv(x, channels, width, 1, 1, 1))
	y = m.call("Relu", m.conv(y, width, width, 3, stride, 1))
	y = m.conv(y, width, 4*width, 1, 1, 0.5)
	if channels != 4*width || stride != 1 {
		x = m.conv(x, channels, 4*width, 1, stride, 1)
	}
	return m.call("Relu", m.call("Add", y, x))
}

func (m *modelMaker) conv(x *onnx.Value, in, out, kernel, stride int, gain float64) *onnx.Value {
	k, s, p := int64(kernel), int64(stride), int64(kernel/2)
	w := m.weight(gain*math.Sqrt(1.5/float64(in*kernel*kernel)), out, in, kernel, kernel)
	return m.node("Conv", []*onnx.Value{x, w, m.weight(0.1, out)}, onnx.IntsAttribute("kernel_shape", k, k),
		onnx.IntsAttribute("strides", s, s), onnx.IntsAttribute("pads", p, p, p, p))
}

// bert is an encoder of so many layers like BERT-base's, from embedded tokens to hidden
// states, with the attention and the GELU spelled out as exporters do before opset 20.
func bert(layers, sequence int) *onnx.Model {
	const hidden, heads = 768, 12
	m := newModelMaker(17)
	x := m.Graph.AddInput("embeddings", onnx.TensorType(tensor.Float32, 1, sequence, hidden))
	mask := m.Graph.AddInput("mask", onnx.TensorType(tensor.Float32, 1, 1, 1, sequence))
	split, merge := m.ints(0, 0, heads, hidden/heads), m.ints(0, 0, hidden)
	for range layers {
		part := func(perm ...int64) *onnx.Value {
			y := m.call("Reshape", m.linear(x, hidden, hidden), split)
			return m.node("Transpose", []*onnx.Value{y}, onnx.IntsAttribute("perm", perm...))
		}
		scores := m.call("MatMul", part(0, 2, 1, 3), part(0, 2, 3, 1))
		scores = m.call("Add", m.call("Div", scores, m.scalar(8)), mask)
		shares := m.node("Softmax", []*onnx.Value{scores}, onnx.IntAttribute("axis", -1))
		y := m.node("Transpose", []*onnx.Value{m.call("MatMul", shares, part(0, 2, 1, 3))}, onnx.IntsAttribute("perm", 0, 2, 1, 3))
		y = m.linear(m.call("Reshape", y, merge), hidden, hidden)
		x = m.layerNorm(m.call("Add", y, x), hidden)
		y = m.linear(m.gelu(m.linear(x, hidden, 4*hidden)), 4*hidden, hidden)
		x = m.layerNorm(m.call("Add", y, x), hidden)
	}
	m.Graph.AddOutput(x)
	return m.Model
}

func (m *modelMaker) linear(x *onnx.Value, in, out int) *onnx.Value {
	return m.call("Add", m.call("MatMul", x, m.weight(1/math.Sqrt(float64(in)), in, out)), m.weight(0.1, out))
}

func (m *modelMaker) layerNorm(x *onnx.Value, size int) *onnx.Value {
	return m.call("LayerNormalization", x, m.weight(1, size), m.weight(0.1, size))
}

func (m *modelMaker) gelu(x *onnx.Value) *onnx.Value {
	y := m.call("Add", m.call("Erf", m.call("Div", x, m.scalar(math.Sqrt2))), m.scalar(1))
	return m.call("Mul", m.call("Mul", x, y), m.scalar(0.5))
}
