package devicememory

import (
	"context"
	"math"

	"github.com/npuctl/npuctl/internal/modelstats"
	"github.com/npuctl/npuctl/om"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/infer"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// Needs is what one instance of a graph takes, in bytes.
type Needs struct {
	Weights int64
	// Work is the most that results in between take at one time.
	Work int64
	// Unknown is how many results were not counted, as their size depends on data.
	Unknown int
	// Emulated is set for an .om of npuctl's emulator, whose plan is none of a real
	// compiler's.
	Emulated bool
	// SoC is the chip of an .om; "" when it does not say, and for graphs.
	SoC string
	// Inputs are the names of an .om's inputs, which tell whose it is; nil for graphs.
	Inputs []string
}

// Precision says how wide numbers are on the device.
type Precision struct {
	// HalfFloats has float32 weights and results take half, as with precision mode fp16.
	HalfFloats bool
}

// bytes is the size of n elements.
func (p Precision) bytes(elem tensor.Type, n int64) (int64, bool) {
	if elem == tensor.Float32 && p.HalfFloats {
		elem = tensor.Float16
	}
	return elem.RawSize(n)
}

// OfCompiled reads what the compiler of an .om planned.
func OfCompiled(path string) (Needs, error) {
	f, err := om.Open(path)
	if err != nil {
		return Needs{}, err
	}
	defer f.Close()
	planned, err := f.Needs()
	if err != nil {
		return Needs{}, err
	}
	from, err := f.Provenance()
	if err != nil {
		return Needs{}, err
	}
	signature, err := f.Signature()
	if err != nil {
		return Needs{}, err
	}
	_, emulated := f.Partition(0, om.EmulatedModel)
	needs := Needs{
		Weights: max(0, planned.WeightBytes), Work: max(0, planned.MemoryBytes-planned.ZeroCopyBytes),
		Emulated: emulated, SoC: from.SoC,
	}
	for _, in := range signature.Inputs {
		needs.Inputs = append(needs.Inputs, in.Name)
	}
	return needs, nil
}

// OfGraph estimates the needs of a model whose inputs have sizes; the nodes must be in
// order (see [onnx.Graph.Sort]).
func OfGraph(ctx context.Context, m *onnx.Model, p Precision) (Needs, error) {
	inference := infer.New(m, infer.Options{StaleDeclarations: true})
	if err := inference.Run(ctx); err != nil {
		return Needs{}, err
	}
	e := &estimate{inference: inference, precision: p}
	for _, t := range modelstats.StoredTensors(m) {
		n, _ := p.bytes(t.Type(), int64(t.Len()))
		e.needs.Weights = saturated(e.needs.Weights, n)
	}
	e.needs.Work = e.graph(m.Graph, 0)
	return e.needs, ctx.Err()
}

type estimate struct {
	inference *infer.Inference
	precision Precision
	needs     Needs
}

// views are operators whose result is their first input in another shape.
var views = map[string]bool{"Reshape": true, "Squeeze": true, "Unsqueeze": true, "Flatten": true, "Identity": true, "Dropout": true}

// maxDepth bounds nested graphs.
const maxDepth = 64

// graph gives the most that the results of a graph's nodes take at one time.
func (e *estimate) graph(g *onnx.Graph, depth int) (peak int64) {
	if depth > maxDepth {
		return 0
	}
	nodes := g.Nodes()
	last := lastUses(nodes)
	var alive int64
	dies := map[int][]int64{} // bytes by the node after which they are free
	for i, n := range nodes {
		var inner int64
		for _, body := range n.Subgraphs() {
			inner = max(inner, e.graph(body, depth+1))
		}
		for _, v := range n.Outputs() {
			if v == nil || v.IsOutput() || isView(n) || n.ConstantValue() != nil {
				continue
			}
			bytes := e.size(v)
			alive = saturated(alive, bytes)
			end := max(last[root(v)], i)
			dies[end] = append(dies[end], bytes)
		}
		peak = max(peak, saturated(alive, inner))
		for _, bytes := range dies[i] {
			alive -= bytes
		}
	}
	return peak
}

// isView says whether a node's only result is its first input in another shape.
func isView(n *onnx.Node) bool {
	return views[n.OpType] && n.CanonicalDomain() == "" && n.Input(0) != nil
}

// root is the value whose memory a value lies in. Views of views are followed.
func root(v *onnx.Value) *onnx.Value {
	for range maxViews {
		n := v.Producer()
		if n == nil || !isView(n) || n.Output(0) != v {
			return v
		}
		v = n.Input(0)
	}
	return v
}

const maxViews = 1000

// lastUses says for each value that has memory of its own which node reads it last,
// graphs inside nodes counted.
func lastUses(nodes []*onnx.Node) map[*onnx.Value]int {
	last := map[*onnx.Value]int{}
	for i, n := range nodes {
		for _, v := range n.Inputs() {
			if v != nil {
				last[root(v)] = i
			}
		}
		for _, body := range n.Subgraphs() {
			for _, v := range body.Captures() {
				last[root(v)] = i
			}
		}
	}
	return last
}

// size is what a value takes; 0 for what is no tensor or has no known size, which is
// counted.
func (e *estimate) size(v *onnx.Value) int64 {
	info := e.inference.Of(v)
	if info.Kind != onnx.KindTensor || info.Elem == tensor.Undefined || info.Elem == tensor.String {
		e.needs.Unknown++
		return 0
	}
	dims, ok := info.Shape()
	if !ok {
		e.needs.Unknown++
		return 0
	}
	n := int64(1)
	for _, d := range dims {
		if d > 0 && n > math.MaxInt64/16/int64(d) {
			return math.MaxInt64 / 16
		}
		n *= int64(d)
	}
	bytes, ok := e.precision.bytes(info.Elem, n)
	if !ok {
		e.needs.Unknown++
	}
	return bytes
}

func saturated(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
