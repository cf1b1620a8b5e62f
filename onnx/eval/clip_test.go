package eval

import (
	"context"
	"math"
	"testing"

	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/text"
)

// A Clip without a bound has that of the type: "defaults are type limits".
func TestClipWithoutBounds(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, src := range []string{
		`<opset_import: ["": 13]> g (float[3] x) => (y) { y = Clip (x) }`,
		`<opset_import: ["": 6]> g (float[3] x) => (y) { y = Clip (x) }`,
	} {
		p, err := Prepare(text.MustParse(t, src), Options{})
		if err != nil {
			t.Fatal(err)
		}
		out, err := p.Run(context.Background(), map[string]Value{"x": tensor.Of([]float32{-inf, 1, inf}, 3)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := tensor.Data[float32](out["y"].(*tensor.Dense))
		if got[0] != -math.MaxFloat32 || got[1] != 1 || got[2] != math.MaxFloat32 {
			t.Errorf("%s: %v", src, got)
		}
	}
}
