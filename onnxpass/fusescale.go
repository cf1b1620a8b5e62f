package onnxpass

import (
	"math"

	"github.com/npuctl/npuctl/onnx"
)

// fuseScales puts a constant factor before a Conv into its weights: a Mul, or a Div by
// the constant, of a scalar or of one number per channel.
//
//	before: a = Mul(x, k);  y = Conv(a, W, B)
//	after:  y = Conv(x, W·k, B)
//
// Everybody who reads the product must be such a Conv with constant weights of its
// own; its padding stays, since nothing times k is nothing. Weights are computed in
// float64 and rounded once, so results move by rounding. A factor that follows a Conv
// goes into that one: see fuseAffine.
func fuseScales(s *State) error {
	return s.eachNode(func(n *onnx.Node) error {
		i, factors, ok := s.constantFactor(n)
		if !ok {
			return nil
		}
		var scaled []*weight
		for _, u := range n.Output(0).Uses() {
			w := s.scaledInputs(u, n.Graph(), factors)
			if w == nil {
				return nil
			}
			scaled = append(scaled, w)
		}
		for k, u := range n.Output(0).Uses() {
			weights, err := s.putWeight(u.Node.Graph(), u.Node.Output(0).Name()+"_weight", scaled[k])
			if err != nil {
				return err
			}
			u.Node.SetInput(1, weights)
		}
		s.replaceOutput(n, n.Input(i))
		return nil
	})
}

// constantFactor reads a node that multiplies its input i by one number per channel.
func (s *State) constantFactor(n *onnx.Node) (i int, factors []float64, ok bool) {
	isProduct := n.Is("Mul") || n.Is("Div")
	if !isProduct || n.Opset() < 7 || len(n.Inputs()) != 2 || n.Output(0) == nil || n.Output(0).IsOutput() || !n.Output(0).HasUses() {
		return 0, nil, false
	}
	for i := range 2 {
		w := s.weightOf(n.Input(1 - i))
		dims, ranked := s.dims(n.Output(0))
		if w == nil || !ranked || len(dims) < 3 || n.Is("Div") && i == 1 || !s.sameShape(n.Input(i), n.Output(0)) {
			continue
		}
		channels, known := dims[1].Known()
		if !known {
			continue
		}
		factors, ok := w.vector(int(channels), len(dims), 1)
		if !ok {
			continue
		}
		for k, f := range factors {
			if n.Is("Div") {
				f = 1 / f
			}
			if f == 0 || math.IsNaN(f) || math.IsInf(f, 0) {
				return 0, nil, false
			}
			factors[k] = f
		}
		return i, factors, true
	}
	return 0, nil, false
}

// scaledInputs gives the weights of a Conv that reads a product, with each input
// channel's factor in them; nil when it is no Conv that can take them.
func (s *State) scaledInputs(u onnx.Use, g *onnx.Graph, factors []float64) *weight {
	c := u.Node
	if !c.Is("Conv") || u.Input != 0 || c.Graph() != g || c.HasReferences() || c.Output(0) == nil || c.Input(1) == nil || !onlyUse(c.Input(1)) || c.Input(1).IsOutput() {
		return nil
	}
	channels, _, ok := s.channelsOf(c)
	w := s.weightOf(c.Input(1))
	if !ok || w == nil || w.elem != s.infer.Of(c.Output(0)).Elem || len(factors) != w.shape[1]*int(c.Int("group", 1)) {
		return nil
	}
	inner := 1
	for _, d := range w.shape[2:] {
		inner *= d
	}
	perGroup, inputs := channels/int(c.Int("group", 1)), w.shape[1]
	scaled, ok := w.scaled(factors, func(i int) int {
		out, in := i/(inner*inputs), i/inner%inputs
		return out/perGroup*inputs + in
	})
	if !ok || !scaled.fits() {
		return nil
	}
	return scaled
}
