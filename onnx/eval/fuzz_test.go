package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/metrics"
	"slices"
	"testing"
	"time"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/internal/optable"
	"github.com/npuctl/npuctl/onnx/schema"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/text"
)

// FuzzRun opens, runs and folds whatever bytes make a model.
func FuzzRun(f *testing.F) {
	for _, source := range []string{
		chain(3),
		`g (float[2,3] x, int64[2] s) => (y) <float[3,2] w = {1, 2, 3, 4, 5, 6}> { a = MatMul (x, w)  y = Reshape (a, s) }`,
		`g (int64 n, float x) => (y) <bool c = {1}> {
			y = Loop <body = b (int64 i, bool c, float s) => (c2, s2) { c2 = Identity (c)  s2 = Neg (s) }> (n, c, x)
		}`,
		`<ir_version: 10, opset_import: ["": 21, "my": 1]> g (float[2] x) => (y) { y = my.Twice (x) }` + functions,
	} {
		data, err := text.MustParse(f, source).Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := onnx.Parse(data, "/nonexistent")
		if err != nil {
			return
		}
		defer m.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		p, err := Prepare(m, Options{Threads: 1, MaxBytes: 16 << 20})
		if err != nil {
			return
		}
		if _, err := p.Run(ctx, zeroInputs(m.Graph), nil); errors.Is(err, ErrFault) {
			t.Error(err)
		}
		foldConstants(ctx, t, m.Graph)
	})
}

// zeroInputs makes arrays of zeros for the inputs that say what they are; dims that
// are open count 2.
func zeroInputs(g *onnx.Graph) map[string]Value {
	inputs := map[string]Value{}
	for _, v := range g.Inputs() {
		if !v.Type.IsTensor() || v.Type.Shape == nil || v.Initializer() != nil {
			continue
		}
		var shape []int
		for _, dim := range v.Type.Shape.Dims {
			if !dim.Known {
				dim.Value = 2
			}
			shape = append(shape, int(min(dim.Value, 1<<20)))
		}
		if n, err := tensor.Count(shape); err != nil || n > 1<<20 {
			continue
		}
		if d, err := tensor.New(v.Type.Elem, shape...); err == nil {
			inputs[v.Name()] = d
		}
	}
	return inputs
}

// foldConstants folds the nodes of a graph whose inputs are stored.
func foldConstants(ctx context.Context, t *testing.T, g *onnx.Graph) {
	for _, n := range g.Nodes() {
		inputs := make([]Value, len(n.Inputs()))
		for i, v := range n.Inputs() {
			if v == nil {
				continue
			}
			if v.Constant() == nil {
				break
			}
			if d, err := v.Constant().Dense(); err == nil {
				inputs[i] = d
			}
		}
		if _, err := Fold(ctx, n, inputs, nil, 16<<20); errors.Is(err, ErrFault) {
			t.Error(err)
		}
	}
}

// FuzzKernels computes single nodes that are made up from a number.
func FuzzKernels(f *testing.F) {
	for seed := range uint64(16) {
		f.Add(seed)
	}
	names := table().Operators()
	f.Fuzz(func(t *testing.T, seed uint64) { tryNonsense(t, names, seed) })
}

// TestKernelsSurviveNonsense is a short FuzzKernels: whatever a node says, its
// kernel returns.
func TestKernelsSurviveNonsense(t *testing.T) {
	names := table().Operators()
	count := uint64(20_000)
	if testing.Short() {
		count = 2_000
	}
	for seed := range count {
		tryNonsense(t, names, seed)
	}
}

// tryNonsense computes one made-up node, strictly and not.
func tryNonsense(t *testing.T, names []optable.Operator, seed uint64) {
	w := &nonsense{rand.New(rand.NewPCG(seed, 0))}
	n, inputs := w.node(names)
	if n == nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := Fold(ctx, n, inputs, nil, 4<<20); errors.Is(err, ErrFault) {
		t.Errorf("seed %d: %v\n%s", seed, err, describe(n, inputs))
	}
	p, err := Prepare(n.Model(), Options{Threads: 1, MaxBytes: 4 << 20})
	if err != nil {
		return
	}
	named := map[string]Value{}
	for i, v := range n.Inputs() {
		if v != nil {
			named[v.Name()] = inputs[i]
		}
	}
	if complaint := observeRun(ctx, p, named, 256<<20); complaint != "" {
		t.Errorf("seed %d: %s\n%s", seed, complaint, describe(n, inputs))
	}
}

// observeRun says what is wrong with the way a run ended: a fault, too long a
// time, or more bytes taken in all, garbage included, than atMost.
func observeRun(ctx context.Context, p *Program, inputs map[string]Value, atMost uint64) string {
	start, before := time.Now(), allocated()
	_, err := p.Run(ctx, inputs, nil)
	took, bytes := time.Since(start), allocated()-before
	switch {
	case errors.Is(err, ErrFault):
		return err.Error()
	case took > 8*time.Second:
		return "it took " + took.String()
	case bytes > atMost:
		return fmt.Sprintf("it took %d MiB of memory", bytes>>20)
	}
	return ""
}

// allocated is how many bytes the process has asked for so far.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func describe(n *onnx.Node, inputs []Value) string {
	s := text.String(n.Model())
	for _, v := range inputs {
		if d, ok := v.(*tensor.Dense); ok {
			s += "\n" + d.String()
		}
	}
	return s
}

// nonsense makes up nodes that are half right, so that kernels get past their
// first checks.
type nonsense struct{ *rand.Rand }

func (w *nonsense) node(names []optable.Operator) (*onnx.Node, []Value) {
	k := names[w.IntN(len(names))]
	versions := schema.Versions(k.Domain, k.Name)
	if len(versions) == 0 {
		return nil, nil
	}
	opset := versions[w.IntN(len(versions))]
	op, _ := schema.Lookup(k.Domain, k.Name, opset)
	m := onnx.NewModel(10, opset)
	if k.Domain != "" {
		m.Opsets = append(m.Opsets, onnx.OpsetImport{Domain: k.Domain, Version: int64(opset)})
	}
	common := w.shape()
	elem := tensor.Types()[w.IntN(len(tensor.Types()))]
	var in []*onnx.Value
	var values []Value
	for i := range w.between(op.MinInputs, op.MaxInputs) {
		if w.IntN(12) == 0 {
			in, values = append(in, nil), append(values, nil)
			continue
		}
		d := w.array(w.inputType(op, i, elem), common)
		in = append(in, m.Graph.AddInput(m.FreshName("x"), onnx.TensorType(d.Type(), d.Shape()...)))
		values = append(values, d)
	}
	outputs := make([]string, w.between(max(op.MinOutputs, 1), op.MaxOutputs))
	for i := range outputs {
		outputs[i] = m.FreshName("y")
	}
	n := m.Graph.Add(k.Name, in, outputs, w.attributes(op, len(common))...)
	n.Domain = k.Domain
	for _, v := range n.Outputs() {
		m.Graph.AddOutput(v)
	}
	return n, values
}

func (w *nonsense) between(low, high int) int {
	return low + w.IntN(min(high, low+3)-low+1)
}

// inputType is mostly a type that the operator has at that place.
func (w *nonsense) inputType(op *schema.Operator, i int, elem tensor.Type) tensor.Type {
	p, ok := op.Input(i)
	if !ok || w.IntN(20) == 0 {
		return elem
	}
	if t, ok := tensor.ParseType(p.Type); ok {
		return t
	}
	allowed := op.AllowedTypes(p)
	if len(allowed) == 0 {
		return elem
	}
	// Inputs of one type variable mostly have one type.
	at := int(elem) % len(allowed)
	if w.IntN(10) == 0 {
		at = w.IntN(len(allowed))
	}
	if t, ok := tensor.ParseType(allowed[at]); ok {
		return t
	}
	return tensor.Float32
}

func (w *nonsense) shape() []int {
	shape := make([]int, w.IntN(6))
	for i := range shape {
		shape[i] = w.IntN(5)
		if shape[i] == 0 && w.IntN(4) > 0 {
			shape[i] = 1
		}
	}
	return shape
}

// array is of the common shape, or of one near it, or of any.
func (w *nonsense) array(t tensor.Type, common []int) *tensor.Dense {
	shape := slices.Clone(common)
	switch w.IntN(6) {
	case 0:
		shape = w.shape()
	case 1:
		shape = []int{w.IntN(5)}
	case 2:
		shape = nil
	case 3:
		if len(shape) > 0 {
			shape[w.IntN(len(shape))] = w.IntN(4)
		}
	}
	n, _ := tensor.Count(shape)
	numbers := make([]float32, n)
	for i := range numbers {
		numbers[i] = float32(w.number())
	}
	c := &Call{frame: &frame{run: &run{threads: 1, memory: newMemory(0, false)}}}
	c.Node = onnx.NewModel(10, 21).Graph.Add("Cast", nil, nil)
	if d, err := c.cast(tensor.Of(numbers, shape...), t); err == nil {
		return d
	}
	d, _ := tensor.New(t, shape...)
	return d
}

// number is small, with an odd one now and then.
func (w *nonsense) number() float64 {
	switch w.IntN(40) {
	case 0:
		return []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e30, -1e30, 1 << 31, 1 << 40}[w.IntN(7)]
	case 1:
		return float64(w.IntN(2000) - 1000)
	}
	return float64(w.IntN(7) - 2)
}

// words are values of string attributes that operators know, and some they do not.
var words = []string{
	"constant", "reflect", "edge", "wrap", "linear", "nearest", "cubic", "add", "mul", "max", "min", "none", "LEFT", "RIGHT",
	"DCR", "CRD", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", "forward", "reverse", "bidirectional", "mean", "sum",
	"half_pixel", "asymmetric", "align_corners", "tf_crop_and_resize", "ij,jk->ik", "...i,...i", "ii->i", "avg", "TFIDF", "TF", "", "x",
}

// attributes makes up most of the attributes that the operator has.
func (w *nonsense) attributes(op *schema.Operator, rank int) []*onnx.Attribute {
	var out []*onnx.Attribute
	for _, a := range op.Attributes {
		if !a.Required && w.IntN(2) == 0 {
			continue
		}
		list := make([]int64, w.IntN(2)*w.IntN(5)+w.IntN(2)*rank)
		floats, strings := make([]float32, len(list)), make([]string, len(list))
		for i := range list {
			list[i], floats[i], strings[i] = w.whole(), float32(w.number()), words[w.IntN(len(words))]
		}
		switch a.Kind {
		case schema.KindInt:
			out = append(out, onnx.IntAttribute(a.Name, w.whole()))
		case schema.KindFloat:
			out = append(out, onnx.FloatAttribute(a.Name, float32(w.number())))
		case schema.KindString:
			out = append(out, onnx.StringAttribute(a.Name, words[w.IntN(len(words))]))
		case schema.KindInts:
			out = append(out, onnx.IntsAttribute(a.Name, list...))
		case schema.KindFloats:
			out = append(out, onnx.FloatsAttribute(a.Name, floats...))
		case schema.KindStrings:
			out = append(out, onnx.StringsAttribute(a.Name, strings...))
		case schema.KindTensor:
			out = append(out, onnx.TensorAttribute(a.Name, w.array(tensor.Types()[w.IntN(len(tensor.Types()))], w.shape())))
		}
	}
	return out
}

func (w *nonsense) whole() int64 {
	v := w.number()
	switch {
	case v != v, w.IntN(60) == 0:
		return math.MinInt64
	case v > 1<<40:
		return math.MaxInt64
	}
	return int64(max(v, -1<<40))
}
