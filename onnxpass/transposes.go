package onnxpass

import (
	"slices"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// sinkTransposes moves Transposes behind element-wise operators where that makes
// them fewer: two operands transposed alike need one Transpose after the
// operator, and one that meets its inverse vanishes. Graphs of exporters that
// think in NHWC have one around every convolution.
//
//	before: a = Transpose<0,2,3,1>(x);  b = Clip(a, 0, 6);  y = Transpose<0,3,1,2>(b)
//	after:  y = Clip(x, 0, 6)
//
// Constant operands are transposed back when they are small.
func sinkTransposes(s *State) error {
	return s.eachNode(func(n *onnx.Node) error {
		operands, ok := elementwise[n.OpType]
		if !ok || n.CanonicalDomain() != "" || !broadcastsFreely(n) || len(n.Outputs()) != 1 || n.Output(0) == nil || n.Output(0).IsOutput() {
			return nil
		}
		plan := s.planSink(n, operands)
		if plan == nil || plan.gain(n) < 1 {
			return nil
		}
		s.sink(n, plan)
		s.changed()
		return nil
	})
}

// elementwise lists operators that treat every element alike, with how many
// leading inputs are broadcast operands: 0 stands for all. The others are
// parameters.
var elementwise = map[string]int{
	"Relu": 1, "LeakyRelu": 1, "Sigmoid": 1, "Tanh": 1, "Clip": 1, "Elu": 1, "Selu": 1, "HardSigmoid": 1, "HardSwish": 1,
	"Softplus": 1, "Softsign": 1, "Mish": 1, "Gelu": 1, "Erf": 1, "Exp": 1, "Log": 1, "Sqrt": 1, "Neg": 1, "Abs": 1,
	"Floor": 1, "Ceil": 1, "Round": 1, "Reciprocal": 1, "Sign": 1, "Cast": 1, "Not": 1, "Identity": 1,
	"Add": 0, "Sub": 0, "Mul": 0, "Div": 0, "Pow": 0, "Max": 0, "Min": 0, "Sum": 0, "Mean": 0,
}

// sinkPlan says how an operator can work on what was before the Transposes.
type sinkPlan struct {
	perm     []int
	inputs   []*onnx.Node          // for each operand its Transpose; nil for a constant
	constant map[int]*tensor.Dense // operands that are constant, transposed back
	freed    int                   // Transposes that nobody else reads
}

func (s *State) planSink(n *onnx.Node, operands int) *sinkPlan {
	if operands == 0 {
		operands = len(n.Inputs())
	}
	rank, ok := s.rank(n.Output(0))
	if !ok {
		return nil
	}
	p := &sinkPlan{inputs: make([]*onnx.Node, operands), constant: map[int]*tensor.Dense{}}
	for i, v := range n.Inputs()[:operands] {
		t := transposeOf(v, n)
		if t == nil {
			continue
		}
		if r, ok := s.rank(t.Input(0)); !ok || r != rank {
			return nil
		}
		perm := permutation(t, rank)
		if p.perm != nil && !slices.Equal(p.perm, perm) {
			return nil
		}
		p.perm, p.inputs[i] = perm, t
		if onlyUse(v) {
			p.freed++
		}
	}
	if p.perm == nil {
		return nil
	}
	for i, v := range n.Inputs()[:operands] {
		if p.inputs[i] != nil {
			continue
		}
		if p.constant[i] = transposedBack(v, p.perm); p.constant[i] == nil {
			return nil
		}
	}
	return p
}

func transposeOf(v *onnx.Value, n *onnx.Node) *onnx.Node {
	if v == nil || v.Producer() == nil {
		return nil
	}
	t := v.Producer()
	if !t.Is("Transpose") || t.Graph() != n.Graph() || t.HasReferences() {
		return nil
	}
	return t
}

// transposedBack gives a constant operand as it has to be before the Transpose;
// nil when v is no small constant.
func transposedBack(v *onnx.Value, perm []int) *tensor.Dense {
	if v == nil {
		return nil
	}
	d := constantDense(v, smallConstant)
	if d == nil || d.Rank() > len(perm) {
		return nil
	}
	if d.Len() == 1 && d.Rank() == 0 {
		return d
	}
	shape := slices.Concat(slices.Repeat([]int{1}, len(perm)-d.Rank()), d.Shape())
	full, err := d.Reshape(shape...)
	if err != nil {
		return nil
	}
	strides := tensor.Strides(shape)
	outShape, outStrides := make([]int, len(perm)), make([]int, len(perm))
	for to, from := range perm {
		outShape[from], outStrides[from] = shape[to], strides[to]
	}
	back, err := full.Strided(0, outShape, outStrides)
	if err != nil {
		return nil
	}
	return back
}

// gain is how many Transposes fewer there are after the move.
func (p *sinkPlan) gain(n *onnx.Node) int {
	cancelled, others := 0, 0
	for _, u := range n.Output(0).Uses() {
		if u.Node.Is("Transpose") && u.Node.Graph() == n.Graph() && isInverse(permutation(u.Node, len(p.perm)), p.perm) {
			cancelled++
		} else if leadsToInverse(u.Node, p.perm, 4) {
			cancelled++
			others++
		} else {
			others++
		}
	}
	added := 0
	if others > 0 {
		added = 1
	}
	return p.freed + cancelled - added
}

// leadsToInverse looks ahead: whether n only transforms elements and its one
// reader, or that one's, is the inverse Transpose.
func leadsToInverse(n *onnx.Node, perm []int, steps int) bool {
	if operands, ok := elementwise[n.OpType]; !ok || operands != 1 || steps == 0 || n.CanonicalDomain() != "" || len(n.Outputs()) != 1 || n.Output(0) == nil || !onlyUse(n.Output(0)) {
		return false
	}
	next := n.Output(0).Uses()[0].Node
	if next.Is("Transpose") {
		return isInverse(permutation(next, len(perm)), perm)
	}
	return leadsToInverse(next, perm, steps-1)
}

func isInverse(a, b []int) bool {
	for i := range a {
		if b[a[i]] != i {
			return false
		}
	}
	return true
}

// sink makes n work on the untransposed operands and puts one Transpose after it.
func (s *State) sink(n *onnx.Node, p *sinkPlan) {
	g, out := n.Graph(), n.Output(0)
	perm := make([]int64, len(p.perm))
	for i, a := range p.perm {
		perm[i] = int64(a)
	}
	for i, t := range p.inputs {
		switch {
		case t != nil:
			n.SetInput(i, t.Input(0))
		case p.constant[i].Rank() > 0:
			n.SetInput(i, s.constant(g, n.Input(i).Name()+"_transposed", p.constant[i]))
		}
	}
	after := g.Add("Transpose", nil, []string{s.model.FreshName(out.Name() + "_transposed")}, onnx.IntsAttribute("perm", perm...))
	s.infer.Set(after.Output(0), *s.infer.Of(out))
	out.ReplaceUses(after.Output(0))
	after.SetInputs(out)
	s.infer.Node(n)
	out.Type = nil
}
