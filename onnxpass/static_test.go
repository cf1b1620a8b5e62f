package onnxpass

import (
	"strings"
	"testing"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// Every input that is not static has a reason that can be acted on.
func TestReasonsOfInputs(t *testing.T) {
	open := &onnx.Shape{Dims: []onnx.Dim{{}, {Param: "n"}}}
	for _, c := range []struct {
		of   *onnx.Type
		want string
	}{
		{nil, "declares no element type"},
		{&onnx.Type{Kind: onnx.KindTensor, Shape: &onnx.Shape{Dims: []onnx.Dim{onnx.KnownDim(2)}}}, "declares no element type"},
		{&onnx.Type{Kind: onnx.KindTensor, Elem: tensor.Float32}, "fix it with --input-shape x:…"},
		{&onnx.Type{Kind: onnx.KindTensor, Elem: tensor.Float32, Shape: open}, `dim 0 has no name (--input-shape x:…), dim 1 is "n" (--dim n=SIZE)`},
		{&onnx.Type{Kind: onnx.KindSequence, Inner: &onnx.Type{Kind: onnx.KindTensor, Elem: tensor.Float32, Shape: open}}, "sequence(FLOAT[?,n]): no flag fixes"},
	} {
		m := onnx.NewModel(10, 21)
		if got := inputReason(m.Graph, m.Graph.AddInput("x", c.of)); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.of, got, c.want)
		}
	}
}
