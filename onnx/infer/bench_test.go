package infer

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// BenchmarkInfer infers a transformer's worth of blocks, 8,000 nodes in all, as an
// exporter writes them with folding off; or the model file that NPUCTL_BENCH_MODEL names.
func BenchmarkInfer(b *testing.B) {
	m := attentionBlocks(b, 500)
	if path := os.Getenv("NPUCTL_BENCH_MODEL"); path != "" {
		var err error
		if m, err = onnx.Open(path); err != nil {
			b.Fatal(err)
		}
		if err := m.Graph.Sort(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		i := New(m, Options{})
		if err := i.Run(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	nodes := 0
	for range m.Nodes() {
		nodes++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*nodes), "ns/node")
}

// attentionBlocks makes a chain of blocks of 16 nodes that split heads and join them again.
func attentionBlocks(b *testing.B, blocks int) *onnx.Model {
	m := onnx.NewModel(8, 14)
	g := m.Graph
	t := onnx.TensorType(tensor.Float32, 1, 1, 64)
	t.Shape.Dims[0] = onnx.Dim{Param: "batch"}
	t.Shape.Dims[1] = onnx.Dim{Param: "sequence"}
	x := g.AddInput("x", t)
	weight, err := tensor.New(tensor.Float32, 64, 64)
	if err != nil {
		b.Fatal(err)
	}
	w := g.AddInitializer("w", weight)
	serial := 0
	add := func(op string, inputs []*onnx.Value, attributes ...*onnx.Attribute) *onnx.Value {
		serial++
		return g.Add(op, inputs, []string{fmt.Sprintf("v%d", serial)}, attributes...).Output(0)
	}
	constant := func(d *tensor.Dense) *onnx.Value { return add("Constant", nil, onnx.TensorAttribute("value", d)) }
	for range blocks {
		y := add("MatMul", []*onnx.Value{x, w})
		shape := add("Shape", []*onnx.Value{y})
		axis := constant(tensor.Of([]int64{0}, 1))
		batch := add("Unsqueeze", []*onnx.Value{add("Gather", []*onnx.Value{shape, constant(tensor.Scalar(int64(0)))}), axis})
		sequence := add("Unsqueeze", []*onnx.Value{add("Gather", []*onnx.Value{shape, constant(tensor.Scalar(int64(1)))}), axis})
		heads := constant(tensor.Of([]int64{8, 8}, 2))
		target := add("Concat", []*onnx.Value{batch, sequence, heads}, onnx.IntAttribute("axis", 0))
		split := add("Transpose", []*onnx.Value{add("Reshape", []*onnx.Value{y, target})}, onnx.IntsAttribute("perm", 0, 2, 1, 3))
		back := add("Transpose", []*onnx.Value{split}, onnx.IntsAttribute("perm", 0, 2, 1, 3))
		joined := add("Reshape", []*onnx.Value{back, shape})
		x = add("Add", []*onnx.Value{add("Relu", []*onnx.Value{joined}), x})
	}
	g.AddOutput(x)
	return m
}
