package eval

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

func TestConv(t *testing.T) {
	stored := "float[1,1,1,5] x = {1, 2, 3, 4, 5}, float[1,1,1,2] w = {1, 10}, float[1,1,1,3] w3 = {1, 10, 100}, float[1] b = {1000}"
	runOperatorCases(t, []operatorCase{
		{opset: 11, stored: stored, node: "y = Conv (x, w)", want: "FLOAT[1,1,1,4]{21, 32, 43, 54}"},
		{opset: 1, stored: stored, node: "y = Conv <kernel_shape = [1, 2], strides = [1, 2]> (x, w, b)", want: "FLOAT[1,1,1,2]{1021, 1043}"},
		{opset: 11, stored: stored, node: "y = Conv <dilations = [1, 3]> (x, w)", want: "FLOAT[1,1,1,2]{41, 52}"},
		{opset: 11, stored: stored, node: "y = Conv <pads = [0, 1, 0, 2]> (x, w)", want: "FLOAT[1,1,1,7]{10, 21, 32, 43, 54, 5, 0}"},
		{opset: 11, stored: stored, node: "y = Conv <pads = [0, -1, 0, 0]> (x, w)", want: "FLOAT[1,1,1,3]{32, 43, 54}"},
		// One element of padding goes to the end with SAME_UPPER, to the front with SAME_LOWER.
		{opset: 11, stored: stored, node: `y = Conv <auto_pad = "SAME_UPPER", strides = [1, 2]> (x, w)`, want: "FLOAT[1,1,1,3]{21, 43, 5}"},
		{opset: 11, stored: stored, node: `y = Conv <auto_pad = "SAME_LOWER", strides = [1, 2]> (x, w)`, want: "FLOAT[1,1,1,3]{10, 32, 54}"},
		{opset: 11, stored: stored, node: `y = Conv <auto_pad = "VALID", pads = [9, 9, 9, 9]> (x, w3)`, want: "FLOAT[1,1,1,3]{321, 432, 543}"},
		{opset: 11, stored: stored, node: "y = Conv <kernel_shape = [2, 2]> (x, w)", want: "error: kernel_shape"},
		{opset: 11, stored: stored, node: "y = Conv <dilations = [1, 9]> (x, w)", want: "error: does not fit"},
		{opset: 11, stored: stored, node: "y = Conv <strides = [0, 1]> (x, w)", want: "error: strides"},
		{opset: 11, stored: stored, node: "y = Conv <group = 2> (x, w)", want: "error: in 2 groups"},
		{opset: 11, stored: stored, node: "y = Conv <pads = [0, 1073741824, 0, 1073741824]> (x, w)", want: "error: budget"},

		// Two groups of two channels, one feature each; then one channel with two features.
		{opset: 11, stored: "float[1,4,1] x = {1, 2, 3, 4}, float[2,2,1] w = {1, 10, 1, 10}", node: "y = Conv <group = 2> (x, w)", want: "FLOAT[1,2,1]{21, 43}"},
		{opset: 11, stored: "float[1,2,1] x = {1, 2}, float[4,1,1] w = {1, 2, 3, 4}", node: "y = Conv <group = 2> (x, w)", want: "FLOAT[1,4,1]{1, 2, 6, 8}"},
		{opset: 11, stored: "float[1,1,1,1,2] x = {1, 2}, float[1,1,1,1,1] w = {3}", node: "y = Conv (x, w)", want: "FLOAT[1,1,1,1,2]{3, 6}"},
		{opset: 11, stored: "float[0,1,3] x = {}, float[2,1,2] w = {1, 2, 3, 4}", node: "y = Conv (x, w)", want: "FLOAT[0,2,2]{}"},
		{opset: 11, stored: "float[1,1,0] x = {}, float[1,1,1] w = {1}", node: "y = Conv (x, w)", want: "error: no pixels"},
		{opset: 11, stored: "float16[1,1,3] x = {1, 2, 3}, float16[1,1,2] w = {0.5, 0.25}", node: "y = Conv (x, w)", want: "FLOAT16[1,1,2]{1, 1.75}"},
	})
}

// A convolution by unfolded products, one by rows (depthwise) and the definition must
// agree, whatever the geometry.
func TestConvAgainstDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func(shape ...int) *tensor.Dense {
		data := make([]float32, product(shape))
		for i := range data {
			data[i] = float32(r.IntN(9) - 4) // small integers: every order of summing gives the same
		}
		return tensor.Of(data, shape...)
	}
	pick := func(n int) int64 { return int64(1 + r.IntN(n)) }
	for range 300 {
		groups := 1 + r.IntN(3)
		in, out := groups*(1+r.IntN(3)), groups*(1+r.IntN(3))
		x, w := random(1+r.IntN(2), in, 4+r.IntN(20), 4+r.IntN(20)), random(out, in/groups, 1+r.IntN(3), 1+r.IntN(3))
		attributes := []*onnx.Attribute{
			onnx.IntAttribute("group", int64(groups)), onnx.IntsAttribute("strides", pick(3), pick(3)), onnx.IntsAttribute("dilations", pick(2), pick(2)),
			onnx.IntsAttribute("pads", pick(3), pick(3), pick(3), pick(3)),
		}
		results, err := foldNode(t, 11, "Conv", []*tensor.Dense{x, w}, 1, attributes...)
		if err != nil {
			t.Fatal(err)
		}
		n, values := newNode(11, "Conv", []*tensor.Dense{x, w}, 1, attributes...)
		program, err := Prepare(n.Model(), Options{Threads: 3})
		if err != nil {
			t.Fatal(err)
		}
		ran, err := program.Run(t.Context(), map[string]Value{n.Input(0).Name(): values[0], n.Input(1).Name(): values[1]}, nil)
		if err != nil {
			t.Fatal(err)
		}
		folded, got := results[0].(*tensor.Dense), ran[n.Output(0).Name()].(*tensor.Dense)
		want := convByDefinition(n, x, w, got.Shape())
		if !tensor.EqualBits(folded, want) || !tensor.EqualBits(got, want) {
			t.Fatalf("Conv of %v by %v with %v is wrong", x.Shape(), w.Shape(), attributes)
		}
	}
}

func convByDefinition(n *onnx.Node, x, w *tensor.Dense, shape []int) *tensor.Dense {
	strides, _ := n.Ints("strides")
	dilations, _ := n.Ints("dilations")
	pads, _ := n.Ints("pads")
	xs, ws := x.Shape(), w.Shape()
	out := make([]float32, product(shape))
	for i := range out {
		column, row, feature, item := i%shape[3], i/shape[3]%shape[2], i/shape[3]/shape[2]%shape[1], i/shape[3]/shape[2]/shape[1]
		first := feature / (ws[0] * ws[1] / xs[1]) * ws[1]
		for k := range ws[1] * ws[2] * ws[3] {
			kx, ky, channel := k%ws[3], k/ws[3]%ws[2], k/ws[3]/ws[2]
			atY := row*int(strides[0]) + ky*int(dilations[0]) - int(pads[0])
			atX := column*int(strides[1]) + kx*int(dilations[1]) - int(pads[1])
			if atY >= 0 && atY < xs[2] && atX >= 0 && atX < xs[3] {
				out[i] += tensor.Data[float32](x)[((item*xs[1]+first+channel)*xs[2]+atY)*xs[3]+atX] *
					tensor.Data[float32](w)[feature*ws[1]*ws[2]*ws[3]+k]
			}
		}
	}
	return tensor.Of(out, shape...)
}

func TestConvTranspose(t *testing.T) {
	stored := "float[1,1,2] x = {1, 10}, float[1,1,3] w = {1, 2, 3}, float[1] b = {100}"
	runOperatorCases(t, []operatorCase{
		{opset: 11, stored: stored, node: "y = ConvTranspose (x, w)", want: "FLOAT[1,1,4]{1, 12, 23, 30}"},
		{opset: 11, stored: stored, node: "y = ConvTranspose <strides = [2], output_padding = [1]> (x, w, b)", want: "FLOAT[1,1,6]{101, 102, 113, 120, 130, 100}"},
		{opset: 11, stored: stored, node: "y = ConvTranspose <pads = [1, 1]> (x, w)", want: "FLOAT[1,1,2]{12, 23}"},
		{opset: 11, stored: stored, node: "y = ConvTranspose <dilations = [2]> (x, w)", want: "FLOAT[1,1,6]{1, 10, 2, 20, 3, 30}"},
		// What is too much is cut off the end first with SAME_UPPER, else off the front.
		{opset: 11, stored: stored, node: `y = ConvTranspose <auto_pad = "SAME_UPPER", strides = [2]> (x, w)`, want: "FLOAT[1,1,4]{1, 2, 13, 20}"},
		{opset: 11, stored: stored, node: `y = ConvTranspose <auto_pad = "SAME_LOWER", strides = [2]> (x, w)`, want: "FLOAT[1,1,4]{2, 13, 20, 30}"},
		{opset: 11, stored: stored, node: "y = ConvTranspose <output_shape = [3]> (x, w)", want: "FLOAT[1,1,3]{12, 23, 30}"},
		{opset: 11, stored: stored, node: "y = ConvTranspose <output_shape = [6]> (x, w)", want: "FLOAT[1,1,6]{1, 12, 23, 30, 0, 0}"},
		{opset: 11, stored: "float[1,2,1] x = {1, 10}, float[2,2,1] w = {1, 2, 3, 4}", node: "y = ConvTranspose <group = 2> (x, w)", want: "FLOAT[1,4,1]{1, 2, 30, 40}"},
		{opset: 11, stored: "float[1,2,1] x = {1, 10}, float[2,2,1] w = {1, 2, 3, 4}", node: "y = ConvTranspose (x, w)", want: "FLOAT[1,2,1]{31, 42}"},
		{opset: 11, stored: stored, node: "y = ConvTranspose <pads = [3, 3]> (x, w)", want: "error: size -2"},

		{opset: 18, stored: "int8[1,2,2] x = {1, 2, 3, 4}, int64[1] size = {3}, int64[1] block = {2}", node: "y = Col2Im (x, size, block)", want: "INT8[1,1,3]{1, 5, 4}"},
		{opset: 18, stored: "float[1,2,3] x = {1, 2, 3, 4, 5, 6}, int64[1] size = {3}, int64[1] block = {2}", node: "y = Col2Im (x, size, block)", want: "error: do not hold 2 blocks"},
	})
}

func TestSpecialConvolutions(t *testing.T) {
	stored := "float[1,1,3] x = {1, 2, 3}, float[1,1,2] w = {10, 1}, float[1,1,1] past = {5}, float[1] b = {0.5}"
	runOperatorCases(t, []operatorCase{
		{opset: 27, stored: stored, node: "y, state = CausalConvWithState (x, w)", want: "FLOAT[1,1,3]{1, 12, 23}"},
		{opset: 27, stored: stored, node: "y, state = CausalConvWithState (x, w, b, past)", want: "FLOAT[1,1,3]{51.5, 12.5, 23.5}"},
		{opset: 27, stored: stored, node: "z, y = CausalConvWithState (x, w)", want: "FLOAT[1,1,1]{3}"},
		{opset: 27, stored: stored, node: `y, state = CausalConvWithState <activation = "relu"> (x, w)`, want: "error: not known"},
		// The second element of the kernel looks half a pixel to the right.
		{opset: 19, stored: "float[1,1,1,3] x = {1, 2, 4}, float[1,1,1,2] w = {1, 10}, float[1,4,1,2] offset = {0, 0, 0, 0, 0, 0, 0.5, 0.5}",
			node: "y = DeformConv (x, w, offset)", want: "FLOAT[1,1,1,2]{31, 22}"},
		{opset: 19, stored: "float[1,1,1,3] x = {1, 2, 4}, float[1,1,1,2] w = {1, 10}, float[1,4,1,2] offset = {0, 0, 0, 0, 0, 0, 0, 0}, float[1,2,1,2] mask = {1, 0, 0.5, 1}",
			node: `y = DeformConv (x, w, offset, "", mask)`, want: "FLOAT[1,1,1,2]{11, 40}"},
	})
}

// The same bits come out for any number of cores.
func TestThreadsDoNotChangeBits(t *testing.T) {
	m := newModelMaker(17)
	x := m.Graph.AddInput("x", onnx.TensorType(tensor.Float32, 1, 24, 30, 30))
	y := m.call("Relu", m.conv(x, 24, 40, 3, 1, 1))
	y = m.bottleneck(y, 40, 16, 2)
	y = m.call("Reshape", y, m.ints(1, 225, 64))
	y = m.layerNorm(m.gelu(m.linear(y, 64, 96)), 96)
	y = m.node("Softmax", []*onnx.Value{m.call("MatMul", y, m.node("Transpose", []*onnx.Value{y}, onnx.IntsAttribute("perm", 0, 2, 1)))}, onnx.IntAttribute("axis", -1))
	m.Graph.AddOutput(y)
	inputs := randomInputs(m.Model)
	var first *tensor.Dense
	for _, threads := range []int{1, 2, 3, 8} {
		program, err := Prepare(m.Model, Options{Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			out, err := program.Run(t.Context(), inputs, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := out[y.Name()].(*tensor.Dense)
			if first == nil {
				first = got
			}
			if !tensor.EqualBits(got, first) {
				t.Errorf("%d threads give other bits than 1", threads)
			}
			if v := tensor.Data[float32](got)[0]; math.IsNaN(float64(v)) {
				t.Fatal("the result is NaN")
			}
		}
	}
}
