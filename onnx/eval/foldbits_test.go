package eval

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// TestFoldedBitsAreTheSameOnEveryHost folds nodes over random numbers and holds a hash
// of the result's bits against the one that amd64 gave. Where a compiler fuses a
// product with a sum, or a kernel takes a detour of its own, the hash differs.
func TestFoldedBitsAreTheSameOnEveryHost(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	f := func(shape ...int) *tensor.Dense { return normal[float32](r, shape) }
	d := func(shape ...int) *tensor.Dense { return normal[float64](r, shape) }
	ints := func(values ...int64) *tensor.Dense { return vector(values...) }
	type list = []*tensor.Dense
	whole, text, numbers := onnx.IntAttribute, onnx.StringAttribute, onnx.IntsAttribute
	for _, c := range []struct {
		op         string
		opset      int
		inputs     list
		outputs    int
		attributes []*onnx.Attribute
		want       uint64
	}{
		{"MatMul", 13, list{f(17, 300), f(300, 19)}, 1, nil, 0xec7ed95287a6732e},
		{"MatMul", 13, list{d(17, 300), d(300, 19)}, 1, nil, 0x191b976393885bd2},
		{"Gemm", 13, list{f(17, 30), f(30, 19), f(19)}, 1, []*onnx.Attribute{onnx.FloatAttribute("alpha", 0.3), onnx.FloatAttribute("beta", 0.7)}, 0x6cdb1800829738e7},
		{"Einsum", 13, list{f(5, 6), f(6, 7), f(7, 3)}, 1, []*onnx.Attribute{text("equation", "ij,jk,kl->il")}, 0xbf21dbb1ff0ffcd0},
		{"Det", 13, list{f(3, 6, 6)}, 1, nil, 0xa250ee2ae921690c},
		{"Conv", 13, list{f(2, 6, 11, 11), f(4, 3, 3, 3), f(4)}, 1, []*onnx.Attribute{whole("group", 2)}, 0x81c340a59bbe63a4},
		{"Conv", 13, list{f(2, 6, 11, 11), f(6, 1, 3, 3)}, 1, []*onnx.Attribute{whole("group", 6)}, 0xa82bed05f149f1b7},
		{"ConvTranspose", 13, list{f(2, 6, 5, 5), f(6, 3, 3, 3)}, 1, nil, 0x269cecb5a6b18d9f},
		{"DeformConv", 19, list{f(1, 2, 6, 6), f(3, 2, 3, 3), f(1, 18, 4, 4)}, 1, nil, 0xe9eb2f5ce179924e},
		{"CausalConvWithState", 27, list{f(1, 3, 9), f(3, 1, 4), f(3)}, 2, []*onnx.Attribute{text("activation", "silu")}, 0xdf2e0e079fe239c0},
		{"AveragePool", 13, list{f(1, 2, 9, 9)}, 1, []*onnx.Attribute{numbers("kernel_shape", 3, 3)}, 0x83430c2a35bba91},
		{"LpPool", 13, list{f(1, 2, 9, 9)}, 1, []*onnx.Attribute{numbers("kernel_shape", 3, 3), whole("p", 3)}, 0x9e21e0774666e02f},
		{"RoiAlign", 16, list{f(1, 2, 8, 8), tensor.Of([]float32{0.3, 0.7, 5.1, 6.2}, 1, 4), ints(0)}, 1, []*onnx.Attribute{whole("output_height", 3)}, 0x9c9ff66043e6de47},
		{"LRN", 13, list{f(1, 5, 3, 3)}, 1, []*onnx.Attribute{whole("size", 3)}, 0xd4f57bb43b6f11e},
		{"LSTM", 13, list{f(5, 2, 4), f(1, 20, 4), f(1, 20, 5), f(1, 40)}, 3, nil, 0x94b9f9faf3b2eb2e},
		{"GRU", 13, list{f(5, 2, 4), f(1, 15, 4), f(1, 15, 5), f(1, 30)}, 2, nil, 0x37044446f7eae396},
		{"Softmax", 13, list{f(7, 33)}, 1, nil, 0xdd0d803182b52512},
		{"Softmax", 13, list{d(7, 33)}, 1, nil, 0xc062380416fca0df},
		{"LogSoftmax", 13, list{f(7, 33)}, 1, nil, 0x8a7ebe31467085cb},
		{"LayerNormalization", 17, list{f(7, 33), f(33), f(33)}, 3, nil, 0xddda0800392d2ca},
		{"RMSNormalization", 23, list{f(7, 33), f(33)}, 1, nil, 0xbf70ff69966d42bb},
		{"GroupNormalization", 21, list{f(2, 4, 4, 4), f(4), f(4)}, 1, []*onnx.Attribute{whole("num_groups", 2)}, 0xa22e9a5ff2786603},
		{"InstanceNormalization", 13, list{f(2, 4, 4, 4), f(4), f(4)}, 1, nil, 0x957371c7b8d899ff},
		{"BatchNormalization", 15, list{f(2, 3, 4, 4), f(3), f(3), f(3), tensor.Of([]float32{0.3, 1, 7}, 3)}, 1, nil, 0xee36e6bfa5c1aefa},
		{"LpNormalization", 13, list{f(7, 33)}, 1, nil, 0x4bdf57d880c799f4},
		{"MeanVarianceNormalization", 13, list{f(2, 3, 4, 4)}, 1, nil, 0x78c9f6587a6aadc},
		{"Attention", 23, list{f(1, 2, 5, 8), f(1, 2, 6, 8), f(1, 2, 6, 8)}, 1, nil, 0xc0857553fa762a9f},
		{"LinearAttention", 27, list{f(1, 4, 8), f(1, 4, 8), f(1, 4, 8), nil, f(1, 4, 2), f(1, 4, 2)}, 2, []*onnx.Attribute{whole("q_num_heads", 2), whole("kv_num_heads", 2)}, 0x4ad96adec4769539},
		{"RotaryEmbedding", 23, list{f(1, 2, 3, 8), f(1, 3, 4), f(1, 3, 4)}, 1, nil, 0x85d592b0586e8a6d},
		{"Resize", 13, list{f(1, 2, 5, 5), nil, nil, ints(1, 2, 8, 7)}, 1, []*onnx.Attribute{text("mode", "cubic")}, 0x9e22dc1f58ef0efb},
		{"Resize", 13, list{f(1, 2, 5, 5), nil, nil, ints(1, 2, 8, 7)}, 1, []*onnx.Attribute{text("mode", "linear")}, 0x313813f2e49e866f},
		{"GridSample", 16, list{f(1, 2, 5, 5), f(1, 4, 4, 2)}, 1, []*onnx.Attribute{text("mode", "bicubic")}, 0xe6ed0c54d47ad19},
		{"AffineGrid", 20, list{f(2, 2, 3), ints(2, 1, 5, 6)}, 1, nil, 0xb00eca945a421d83},
	} {
		out, err := foldNode(t, c.opset, c.op, c.inputs, c.outputs, c.attributes...)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := hashOf(out); got != c.want {
			t.Errorf("%s of %v: the hash of the result is %#x, not %#x", c.op, c.inputs[0], got, c.want)
		}
	}
}

func normal[T float32 | float64](r *rand.Rand, shape []int) *tensor.Dense {
	data := make([]T, product(shape))
	for i := range data {
		data[i] = T(r.NormFloat64())
	}
	return tensor.Of(data, shape...)
}

func hashOf(values []Value) uint64 {
	h := fnv.New64a()
	for _, v := range values {
		numbers, _ := v.(*tensor.Dense).Float64s()
		for _, x := range numbers {
			_ = binary.Write(h, binary.LittleEndian, math.Float64bits(x)) // a hash takes everything
		}
	}
	return h.Sum64()
}
