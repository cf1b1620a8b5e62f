package optimization

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/compare"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/infer"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// A model's own results are not exact: each operator rounds, and a deep model, or
// one that computes in float16, passes roundings on and makes them larger. A result
// that rounds at other places is not wrong for being as far off as the original
// itself is. How far that is can be measured, with the engine that judges and
// nothing else: move every float input by one rounding, and see how far each output
// moves. It is measured only when an output is further off than its tolerance.

// shakes is how many times the inputs are moved, each time another way.
const shakes = 4

// perShake is how many times as far off as the inputs' roundings made it a result
// may be: a model rounds once in every operator, not just once.
const perShake = 8

// mostUncertain bounds what counts as uncertain, as a part of an output's size: a
// model that reacts more than that to a rounding cannot be told from a wrong one.
const mostUncertain = 0.01

// spacings is how far the numbers of a float type lie apart, relative to their size.
var spacings = map[tensor.Type]float64{
	tensor.BFloat16: 0x1p-7,
	tensor.Float16:  0x1p-10,
	tensor.Float32:  0x1p-23,
	tensor.Float64:  0x1p-52,
}

// coarsest gives, by the name of an output, the spacing of the coarsest float type
// among everything that the output is computed from.
func coarsest(ctx context.Context, m *onnx.Model) (map[string]float64, error) {
	if err := m.Graph.Sort(); err != nil {
		return nil, err
	}
	inference := infer.New(m, infer.Options{StaleDeclarations: true})
	if err := inference.Run(ctx); err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for _, v := range m.Graph.Outputs() {
		spacing := 0.0
		for source := range ancestors(v) {
			spacing = max(spacing, spacings[inference.Of(source).Elem])
		}
		out[v.Name()] = spacing
	}
	return out, nil
}

// ancestors is every value that v is computed from, itself and those inside nested
// graphs among them.
func ancestors(v *onnx.Value) map[*onnx.Value]bool {
	seen := map[*onnx.Value]bool{}
	work := []*onnx.Value{v}
	for len(work) > 0 {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		if v == nil || seen[v] {
			continue
		}
		seen[v] = true
		n := v.Producer()
		if n == nil {
			continue
		}
		work = append(work, n.Inputs()...)
		for _, g := range n.Subgraphs() {
			work = append(work, g.Outputs()...)
		}
	}
	return seen
}

// uncertainty is how far an output of the original may be off by itself on these
// inputs, where want is what it gave. 0 when it cannot be told.
func (t *trial) uncertainty(ctx context.Context, s *shaken, output string, want eval.Value) float64 {
	spacing := t.checker.spacing[output]
	if spacing == 0 {
		return 0
	}
	moved := 0.0
	for _, results := range s.results(ctx, t, spacing) {
		moved = max(moved, compare.Values(want, results[output], compare.Options{AllowOverflow: true}).MaxAbs)
	}
	return min(perShake*moved, mostUncertain*max(t.scales[output], compare.ScaleOf(want)))
}

// shaken holds what the original gives when a set of inputs is moved, by how far:
// outputs that round alike share the runs.
type shaken struct {
	inputs map[string]eval.Value
	runs   map[float64][]map[string]eval.Value
}

// results runs the original on moved inputs; sets that it refuses are left out.
func (s *shaken) results(ctx context.Context, t *trial, spacing float64) []map[string]eval.Value {
	if runs, done := s.runs[spacing]; done {
		return runs
	}
	var runs []map[string]eval.Value
	for i := range shakes {
		draw := rand.New(rand.NewPCG(uint64(i), math.Float64bits(spacing)))
		if results, err := t.runOriginal(ctx, shake(s.inputs, spacing, draw)); err == nil {
			runs = append(runs, results)
		}
	}
	if s.runs == nil {
		s.runs = map[float64][]map[string]eval.Value{}
	}
	s.runs[spacing] = runs
	return runs
}

// shake moves every float by one rounding, up or down; a zero, which has no size of
// its own, as if it were 1. What is not finite, and what is no tensor of floats, stays.
func shake(inputs map[string]eval.Value, spacing float64, draw *rand.Rand) map[string]eval.Value {
	out := map[string]eval.Value{}
	for name, v := range inputs {
		out[name] = v
		d, ok := v.(*tensor.Dense)
		if !ok || spacings[d.Type()] == 0 {
			continue
		}
		values, _ := d.Float64s()
		step := max(spacing, spacings[d.Type()])
		moved := make([]float64, len(values))
		for i, x := range values {
			moved[i] = x
			if size := math.Abs(x); size <= math.MaxFloat64 {
				moved[i] += step * cmp.Or(size, 1) * float64(1-2*draw.IntN(2))
			}
		}
		if shaken, err := floatsOf(d.Type(), moved, d.Shape()); err == nil {
			out[name] = shaken
		}
	}
	return out
}

// floatsOf makes a tensor of a float type.
func floatsOf(t tensor.Type, values []float64, shape []int) (*tensor.Dense, error) {
	if t == tensor.Float64 {
		return tensor.Make(values, shape...)
	}
	narrow := make([]float32, len(values))
	for i, x := range values {
		narrow[i] = float32(x)
	}
	return tensor.FromFloat32s(t, narrow, shape...)
}
