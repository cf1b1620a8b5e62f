package eval

import (
	"errors"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// foldNode folds one node of opType with constant inputs, given as arrays, nil for
// one left out.
func foldNode(t testing.TB, opset int, opType string, inputs []*tensor.Dense, outputs int, attributes ...*onnx.Attribute) ([]Value, error) {
	t.Helper()
	n, values := newNode(opset, opType, inputs, outputs, attributes...)
	return Fold(t.Context(), n, values, nil, 1<<30)
}

// newNode makes a model of one node, whose inputs are graph inputs.
func newNode(opset int, opType string, inputs []*tensor.Dense, outputs int, attributes ...*onnx.Attribute) (*onnx.Node, []Value) {
	m := onnx.NewModel(10, opset)
	var in []*onnx.Value
	values := make([]Value, len(inputs))
	for i, d := range inputs {
		if d == nil {
			in = append(in, nil)
			continue
		}
		in = append(in, m.Graph.AddInput(m.FreshName("x"), onnx.TensorType(d.Type(), d.Shape()...)))
		values[i] = d
	}
	names := make([]string, outputs)
	for i := range names {
		names[i] = m.FreshName("y")
	}
	n := m.Graph.Add(opType, in, names, attributes...)
	for _, v := range n.Outputs() {
		m.Graph.AddOutput(v)
	}
	return n, values
}

func vector[T tensor.Element](data ...T) *tensor.Dense { return tensor.Of(data, len(data)) }

func TestFoldNeedsNoProgram(t *testing.T) {
	out, err := foldNode(t, 13, "Add", []*tensor.Dense{vector[int64](1, 2), tensor.Scalar(int64(10))}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if want := vector[int64](11, 12); !tensor.EqualBits(out[0].(*tensor.Dense), want) {
		t.Errorf("got %v, want %v", out[0], want)
	}
}

func TestFoldRefuses(t *testing.T) {
	m := onnx.NewModel(10, 13)
	x := m.Graph.AddInput("x", onnx.TensorType(tensor.Float32, 1))
	reference := m.Graph.Add("Flatten", []*onnx.Value{x}, []string{"y"}, onnx.ReferenceAttribute("axis", onnx.AttributeInt, "axis"))
	unknown := m.Graph.Add("Frobnicate", []*onnx.Value{x}, []string{"z"})
	for _, n := range []*onnx.Node{reference, unknown} {
		if _, err := Fold(t.Context(), n, []Value{vector[float32](1)}, nil, 0); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: got error %v, want one that is ErrUnsupported", n.Where(), err)
		}
	}
}

func BenchmarkFold(b *testing.B) {
	one, two := vector[int64](1, 2), vector[int64](3, 4)
	for _, bench := range []struct {
		name string
		node *onnx.Node
		in   []Value
	}{
		folding("Add", one, two),
		folding("Gather", one, tensor.Scalar(int64(1))),
		folding("Concat", one, two),
		folding("Unsqueeze", one, vector[int64](0)),
		folding("Cast", one),
		folding("Slice", one, vector[int64](0), vector[int64](1)),
		folding("Shape", one),
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Fold(b.Context(), bench.node, bench.in, nil, 1<<20); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func folding(opType string, inputs ...*tensor.Dense) struct {
	name string
	node *onnx.Node
	in   []Value
} {
	var attributes []*onnx.Attribute
	switch opType {
	case "Concat":
		attributes = append(attributes, onnx.IntAttribute("axis", 0))
	case "Cast":
		attributes = append(attributes, onnx.IntAttribute("to", int64(tensor.Float32)))
	}
	n, values := newNode(18, opType, inputs, 1, attributes...)
	return struct {
		name string
		node *onnx.Node
		in   []Value
	}{opType, n, values}
}

// TestPanicsBecomeErrors holds for kernels and for the goroutines they spread over.
func TestPanicsBecomeErrors(t *testing.T) {
	for name, kernel := range map[string]Kernel{
		"kernel": func(c *Call) error { return []error{}[c.Opset] },
		"piece": func(c *Call) error {
			c.Parallel(2, 1, func(first, last int) {
				if first > 0 {
					_ = []int{}[first]
				}
			})
			return nil
		},
	} {
		n, _ := newNode(13, "Add", nil, 1)
		c := &Call{Node: n, Opset: 13, frame: &frame{run: &run{ctx: t.Context(), threads: 2}}}
		err := c.run(kernel, nil)
		if !errors.Is(err, ErrFault) || !strings.Contains(err.Error(), "onnx/eval/fold_test.go:") || !strings.Contains(err.Error(), "Add node") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
