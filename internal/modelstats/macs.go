package modelstats

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/infer"
	"github.com/npuctl/npuctl/onnx/schema"
)

// counter counts the MACs of a graph.
type counter struct {
	inference *infer.Inference
	depth     int
	visited   int // nodes looked at
	called    map[string]MACs
}

// maxVisited bounds the work where calls cannot be recognised as done before:
// functions that call others twice double it with each level.
const maxVisited = 1 << 16

// maxDepth bounds nested graphs and calls: a file may make functions call each other.
const maxDepth = 64

func countMACs(m *onnx.Model, inference *infer.Inference) MACs {
	c := counter{inference: inference, called: map[string]MACs{}}
	return c.graph(m.Graph, 1)
}

func (t *MACs) add(o MACs) {
	t.Known = saturated(t.Known, o.Known)
	t.Nodes += o.Nodes
	t.Unknown += o.Unknown
	t.Opaque += o.Opaque
	t.Loops += o.Loops
}

func saturated(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// graph counts a graph that runs rounds times.
func (c *counter) graph(g *onnx.Graph, rounds int64) (total MACs) {
	if c.depth >= maxDepth {
		return MACs{}
	}
	c.depth++
	defer func() { c.depth-- }()
	for _, n := range g.Nodes() {
		if c.visited++; c.visited > maxVisited {
			break
		}
		total.add(c.node(n, rounds))
	}
	return total
}

func (c *counter) node(n *onnx.Node, rounds int64) (total MACs) {
	if f := n.Model().Callee(n); f != nil {
		return c.call(n, f, rounds)
	}
	if count := macRules[n.OpType]; count != nil && n.CanonicalDomain() == "" {
		total.Nodes = 1
		if once, ok := count(view{c.inference, n}); ok {
			total.Known = product(once, rounds)
		} else {
			total.Unknown = 1
		}
	}
	if len(schema.Versions(n.CanonicalDomain(), n.OpType)) == 0 {
		total.Opaque = 1
	}
	switch subgraphs := n.Subgraphs(); {
	case len(subgraphs) == 0:
	case n.Is("If"):
		total.add(c.larger(subgraphs, rounds))
	default:
		times, known := c.rounds(n)
		if !known {
			times = 1
		}
		for _, g := range subgraphs {
			inside := c.graph(g, product(rounds, times))
			if !known && inside.Nodes > 0 {
				inside.Loops++
			}
			total.add(inside)
		}
	}
	return total
}

// larger counts the branch that does the most.
func (c *counter) larger(branches []*onnx.Graph, rounds int64) (most MACs) {
	for _, g := range branches {
		if t := c.graph(g, rounds); t.Known > most.Known || t.Known == most.Known && t.Nodes > most.Nodes {
			most = t
		}
	}
	return most
}

// rounds is how often the body of a Loop or Scan runs.
func (c *counter) rounds(n *onnx.Node) (int64, bool) {
	switch {
	case n.Is("Loop") && n.Input(0) != nil:
		values := c.inference.Of(n.Input(0)).Values()
		if len(values) == 1 {
			return values[0].Int()
		}
	case n.Is("Scan"):
		scanned := int(n.Int("num_scan_inputs", 0))
		if i := len(n.Inputs()) - scanned; scanned > 0 && n.Input(i) != nil && n.Opset() >= 9 {
			if axes, given := n.Ints("scan_input_axes"); !given || axes[0] == 0 {
				return view{c.inference, n}.dim(i, 0)
			}
		}
	}
	return 0, false
}

// call counts a function for one call: the shapes inside are those of its inputs.
// What a call with the same inputs came to is remembered.
func (c *counter) call(n *onnx.Node, f *onnx.Function, rounds int64) MACs {
	key := fmt.Sprintf("%p", f)
	for _, in := range n.Inputs() {
		if in != nil {
			key += " " + c.inference.Of(in).String()
		}
		key += ","
	}
	once, known := c.called[key]
	switch depends := len(n.Attributes()) > 0; {
	case depends:
		once = c.body(n, f)
	case !known:
		once = c.body(n, f)
		c.called[key] = once
	}
	once.Known = product(once.Known, rounds)
	return once
}

func (c *counter) body(n *onnx.Node, f *onnx.Function) MACs {
	if c.depth >= maxDepth || c.visited > maxVisited || f.Body.Sort() != nil {
		return MACs{}
	}
	for i, v := range f.Body.Inputs() {
		c.inference.Forget(v)
		if in := n.Input(i); in != nil {
			c.inference.Set(v, *c.inference.Of(in))
		}
	}
	for _, inner := range f.Body.Nodes() {
		c.inference.Node(inner)
	}
	return c.graph(f.Body, 1)
}

// product multiplies counts, and stops at the largest number.
func product(factors ...int64) int64 {
	total := uint64(1)
	for _, f := range factors {
		high, low := bits.Mul64(total, uint64(max(f, 0)))
		if high > 0 || low > math.MaxInt64 {
			return math.MaxInt64
		}
		total = low
	}
	return int64(total)
}

// view is a node with the shapes of its inputs and outputs.
type view struct {
	inference *infer.Inference
	node      *onnx.Node
}

// shape gives the dims of input i.
func (v view) shape(i int) ([]int64, bool) { return v.shapeOf(v.node.Input(i)) }

// result gives the dims of the first output.
func (v view) result() ([]int64, bool) { return v.shapeOf(v.node.Output(0)) }

func (v view) shapeOf(value *onnx.Value) ([]int64, bool) {
	if value == nil {
		return nil, false
	}
	dims, ok := v.inference.Of(value).Shape()
	if !ok {
		return nil, false
	}
	out := make([]int64, len(dims))
	for i, d := range dims {
		out[i] = int64(d)
	}
	return out, true
}

// dim gives one dim of input i, counted from the end when axis is negative.
func (v view) dim(i, axis int) (int64, bool) {
	value := v.node.Input(i)
	if value == nil {
		return 0, false
	}
	info := v.inference.Of(value)
	if axis < 0 {
		axis += len(info.Dims)
	}
	if !info.Ranked || axis < 0 || axis >= len(info.Dims) {
		return 0, false
	}
	return info.Dims[axis].Known()
}

// macRules counts, by operator, the MACs of one run; false when shapes are not known.
var macRules = map[string]func(view) (int64, bool){
	"MatMul":        matMul(0),
	"MatMulInteger": matMul(0),
	"QLinearMatMul": matMul(0),
	"Gemm":          gemm,
	"Conv":          conv(1),
	"ConvInteger":   conv(1),
	"DeformConv":    conv(1),
	"QLinearConv":   conv(3),
	"ConvTranspose": convTranspose,
	"RNN":           recurrent(1),
	"GRU":           recurrent(3),
	"LSTM":          recurrent(4),
}

// matMul: every element of the result is a sum over the last axis of the left side.
func matMul(left int) func(view) (int64, bool) {
	return func(v view) (int64, bool) {
		out, ok := v.result()
		depth, okDepth := v.dim(left, -1)
		return product(append(out, depth)...), ok && okDepth
	}
}

func gemm(v view) (int64, bool) {
	out, ok := v.result()
	axis := 1
	if v.node.Int("transA", 0) != 0 {
		axis = 0
	}
	depth, okDepth := v.dim(0, axis)
	return product(append(out, depth)...), ok && okDepth
}

// conv: every element of the result is a sum over one filter, [M, C/group, kernel…].
func conv(weight int) func(view) (int64, bool) {
	return func(v view) (int64, bool) {
		out, ok := v.result()
		filter, okFilter := v.shape(weight)
		if !ok || !okFilter || len(filter) < 2 {
			return 0, false
		}
		return product(append(out, filter[1:]...)...), true
	}
}

// convTranspose: every element of the input is spread by one filter, [C, M/group, kernel…].
func convTranspose(v view) (int64, bool) {
	in, ok := v.shape(0)
	filter, okFilter := v.shape(1)
	if !ok || !okFilter || len(filter) < 2 {
		return 0, false
	}
	return product(append(in, filter[1:]...)...), true
}

// recurrent: at every step each gate multiplies the input and the last state by
// its weights, W [directions, gates·hidden, input] and R [directions, gates·hidden, hidden].
func recurrent(gates int64) func(view) (int64, bool) {
	return func(v view) (int64, bool) {
		x, ok := v.shape(0)
		w, okW := v.shape(1)
		r, okR := v.shape(2)
		if !ok || !okW || !okR || len(x) != 3 || len(w) != 3 || len(r) != 3 || r[1] != gates*r[2] {
			return 0, false
		}
		steps := product(x[0], x[1])
		return saturated(product(append(w, steps)...), product(append(r, steps)...)), true
	}
}
