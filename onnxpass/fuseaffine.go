package onnxpass

import (
	"math"

	"github.com/npuctl/npuctl/onnx"
)

// fuseAffine puts a scale and a shift per channel that follow a Conv or
// ConvTranspose into its weights: a BatchNormalization, or a Mul, Add, Sub or Div
// with a constant.
//
//	before: a = Conv(x, W, B);  b = BatchNormalization(a, s, t, m, v);  y = Add(b, c)
//	after:  y = Conv(x, W·k, (B-m)·k + t + c)      with k = s / sqrt(v + epsilon)
//
// Nobody else may read the Conv's result. The constant must be a scalar or vary
// along the channels only, and not enlarge the result. Weights are computed in
// float64 and rounded once, so results move by rounding. A BatchNormalization in
// training mode stays, and so does what would be rounded less: see cancels.
func fuseAffine(s *State) error {
	return s.eachNode(func(n *onnx.Node) error {
		if n.CanonicalDomain() != "" || n.Output(0) == nil {
			return nil
		}
		rule := affineRules[n.OpType]
		if rule == nil {
			return nil
		}
		for i, v := range n.Inputs() {
			if v == nil || v.Producer() == nil || !onlyUse(v) {
				continue
			}
			c := v.Producer()
			if c.Graph() != n.Graph() || c.HasReferences() || !c.Is("Conv") && !c.Is("ConvTranspose") {
				continue
			}
			channels, rank, ok := s.channelsOf(c)
			if !ok {
				continue
			}
			a, ok := rule(s, n, i, channels, rank)
			if !ok {
				continue
			}
			return s.fuseInto(c, n, a)
		}
		return nil
	})
}

// affine is y = x·scale + shift, per channel.
type affine struct {
	scale, shift []float64
	through      []float64 // the largest number that the graph adds on the way to y
}

func newAffine(channels int) affine {
	return affine{make([]float64, channels), make([]float64, channels), make([]float64, channels)}
}

// affineRules reads, for each operator that is affine in input i when its other
// inputs are constant, the numbers per channel.
var affineRules = map[string]func(s *State, n *onnx.Node, i, channels, rank int) (affine, bool){
	"BatchNormalization": normalizationAffine,
	"Mul":                binaryAffine(func(c float64, _ int) (float64, float64) { return c, 0 }),
	"Add":                binaryAffine(func(c float64, _ int) (float64, float64) { return 1, c }),
	"Sub": binaryAffine(func(c float64, i int) (float64, float64) {
		if i == 0 {
			return 1, -c
		}
		return -1, c
	}),
	"Div": binaryAffine(func(c float64, i int) (float64, float64) {
		if i == 0 {
			return 1 / c, 0
		}
		return math.NaN(), 0 // c / x is not affine
	}),
}

// binaryAffine makes a rule of what a constant operand c does to a result that
// is input i of the operator.
func binaryAffine(of func(c float64, i int) (scale, shift float64)) func(*State, *onnx.Node, int, int, int) (affine, bool) {
	return func(s *State, n *onnx.Node, i, channels, rank int) (affine, bool) {
		if n.Opset() < 7 || len(n.Inputs()) != 2 || !s.sameShape(n.Input(i), n.Output(0)) {
			return affine{}, false
		}
		w := s.weightOf(n.Input(1 - i))
		if w == nil {
			return affine{}, false
		}
		c, ok := w.vector(channels, rank, 1)
		if !ok {
			return affine{}, false
		}
		a := newAffine(channels)
		for k := range c {
			a.scale[k], a.shift[k] = of(c[k], i)
			a.through[k] = math.Abs(a.shift[k])
		}
		return a, a.isFinite()
	}
}

func (a affine) isFinite() bool {
	for k := range a.scale {
		if sum := a.scale[k] + a.shift[k]; math.IsNaN(sum) || math.IsInf(sum, 0) {
			return false
		}
	}
	return true
}

// normalizationAffine reads a BatchNormalization that only applies what it has learnt.
func normalizationAffine(s *State, n *onnx.Node, i, channels, _ int) (affine, bool) {
	if i != 0 || s.isEffectful(n) || n.Opset() < 7 && n.Int("is_test", 0) == 0 || n.Int("spatial", 1) == 0 {
		return affine{}, false
	}
	for _, v := range n.Outputs()[1:] {
		if v != nil && v.HasUses() {
			return affine{}, false
		}
	}
	var p [4][]float64 // scale, bias, mean, variance
	for k := range p {
		w := s.weightOf(n.Input(k + 1))
		if w == nil || len(w.shape) != 1 {
			return affine{}, false
		}
		var ok bool
		if p[k], ok = w.vector(channels, 1, 0); !ok || w.len() != channels {
			return affine{}, false
		}
	}
	epsilon := float64(n.Float("epsilon", 1e-5))
	a := newAffine(channels)
	for k := range channels {
		a.scale[k] = p[0][k] / math.Sqrt(p[3][k]+epsilon)
		a.shift[k] = p[1][k] - p[2][k]*a.scale[k]
		a.through[k] = max(math.Abs(p[1][k]), math.Abs(p[2][k]*a.scale[k]))
	}
	return a, a.isFinite()
}

// channelsOf gives the number of channels that a convolution makes, and the rank
// of its result.
func (s *State) channelsOf(c *onnx.Node) (channels, rank int, ok bool) {
	dims, ok := s.knownDims(c.Input(1))
	if !ok || len(dims) < 3 {
		return 0, 0, false
	}
	group := c.Int("group", 1)
	if group < 1 || group > int64(dims[0]) || dims[0]%int(group) != 0 {
		return 0, 0, false
	}
	if c.Is("ConvTranspose") {
		return dims[1] * int(group), len(dims), true
	}
	return dims[0], len(dims), true
}

// fuseInto gives the convolution c new weights and lets it make what n made.
func (s *State) fuseInto(c, n *onnx.Node, a affine) error {
	w := s.weightOf(c.Input(1))
	if w == nil || w.elem != s.infer.Of(c.Output(0)).Elem {
		return nil
	}
	bias := make([]float64, len(a.shift))
	if c.Input(2) != nil {
		b := s.weightOf(c.Input(2))
		if b == nil || b.len() != len(bias) {
			return nil
		}
		for k := range bias {
			bias[k] = b.at(k)
		}
	}
	channel := channelOf(c, w.shape)
	scaled, ok := w.scaled(a.scale, channel)
	if !ok {
		return nil
	}
	sizes := scaled.magnitudes(len(bias), channel)
	for k := range bias {
		before := max(math.Abs(bias[k]*a.scale[k]), a.through[k])
		bias[k] = bias[k]*a.scale[k] + a.shift[k]
		if cancels(w.elem, before, bias[k], sizes[k]) {
			return nil
		}
	}
	added := &weight{elem: w.elem, shape: []int{len(bias)}, data: bias}
	if !scaled.fits() || !added.fits() {
		return nil
	}
	base := n.Output(0).Name()
	weights, err := s.putWeight(c.Graph(), base+"_weight", scaled)
	if err != nil {
		return err
	}
	shift, err := s.putWeight(c.Graph(), base+"_bias", added)
	if err != nil {
		return err
	}
	c.SetInput(1, weights)
	c.SetInput(2, shift)
	s.replaceOutput(n, c.Output(0))
	return nil
}

// channelOf says which output channel each element of the weights belongs to.
func channelOf(c *onnx.Node, shape []int) func(i int) int {
	inner := 1
	for _, d := range shape[2:] {
		inner *= d
	}
	if c.Is("Conv") {
		inner *= shape[1]
		return func(i int) int { return i / inner }
	}
	// Weights [in, out/group, …]: the group of an input channel says which outputs it makes.
	group := int(c.Int("group", 1))
	perGroup := shape[0] / group
	return func(i int) int {
		in, out := i/(inner*shape[1]), i/inner%shape[1]
		return in/perGroup*shape[1] + out
	}
}

// replaceOutput makes readers of n's first output read v and removes n.
func (s *State) replaceOutput(n *onnx.Node, v *onnx.Value) {
	n.Graph().Forward(n, n.Output(0), v)
	removeUnread(n)
	s.changed()
}
