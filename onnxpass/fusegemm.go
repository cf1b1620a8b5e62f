package onnxpass

import (
	"math"
	"slices"

	"github.com/npuctl/npuctl/onnx"
)

// fuseGemm makes a Gemm of a MatMul of matrices and the Add after it, and takes
// constants that follow a Gemm into it.
//
//	before: a = MatMul(x, W);  y = Add(a, b)           x, W of rank 2
//	after:  y = Gemm(x, W, b)
//
//	before: a = Gemm(x, W, b);  y = Mul(a, c)          W, b, c constant
//	after:  y = Gemm(x, W·c, b·c)
//
// Only for float types: integer Gemms have no kernel in the usual runtimes. The
// operands keep their sides, and what is added must broadcast to the product
// without enlarging it.
func fuseGemm(s *State) error {
	return s.eachNode(func(n *onnx.Node) error {
		if !n.Is("Add") && !n.Is("Mul") || len(n.Inputs()) != 2 || n.Output(0) == nil || n.Opset() < 7 {
			return nil
		}
		for i, v := range n.Inputs() {
			if v == nil || v.Producer() == nil || !onlyUse(v) || n.Input(1-i) == nil {
				continue
			}
			p := v.Producer()
			if p.Graph() != n.Graph() || p.HasReferences() || !fusable(s.infer.Of(v).Elem) || !s.sameShape(v, n.Output(0)) {
				continue
			}
			switch {
			case n.Is("Add") && p.Is("MatMul"):
				if s.matMulToGemm(p, n, n.Input(1-i)) {
					return nil
				}
			case n.Is("Add") && p.Is("Gemm"):
				if done, err := s.addToGemm(p, n, n.Input(1-i)); done || err != nil {
					return err
				}
			case n.Is("Mul") && p.Is("Gemm"):
				if done, err := s.scaleGemm(p, n, n.Input(1-i)); done || err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// matMulToGemm turns n, the Add, into the Gemm.
func (s *State) matMulToGemm(p, n *onnx.Node, c *onnx.Value) bool {
	for _, v := range []*onnx.Value{p.Input(0), p.Input(1)} {
		if rank, ok := s.rank(v); !ok || rank != 2 {
			return false
		}
	}
	if rank, ok := s.rank(c); !ok || rank > 2 {
		return false
	}
	n.OpType = "Gemm"
	n.SetInputs(p.Input(0), p.Input(1), c)
	s.changed()
	return true
}

// addToGemm adds a constant to what the Gemm adds.
func (s *State) addToGemm(p, n *onnx.Node, c *onnx.Value) (done bool, err error) {
	if rank, ok := s.rank(c); !ok || rank > 2 {
		return false, nil
	}
	if p.Input(2) == nil {
		p.SetInput(2, c)
		p.DropAttribute("beta")
		s.replaceOutput(n, p.Output(0))
		return true, nil
	}
	bias, added := s.rowOf(p, p.Input(2)), s.rowOf(p, c)
	if bias == nil || added == nil {
		return false, nil
	}
	beta := float64(p.Float("beta", 1))
	sizes := s.columnSizes(p, len(bias))
	for k := range bias {
		before := max(math.Abs(bias[k]*beta), math.Abs(added[k]))
		bias[k] = bias[k]*beta + added[k]
		if cancels(s.infer.Of(p.Output(0)).Elem, before, bias[k], sizes[k]) {
			return false, nil
		}
	}
	if !s.rowWeight(p, bias).fits() {
		return false, nil
	}
	return true, s.setRow(p, n, bias)
}

// scaleGemm multiplies the columns of the Gemm's second operand, and what it adds.
func (s *State) scaleGemm(p, n *onnx.Node, c *onnx.Value) (done bool, err error) {
	w, factors := s.weightOf(p.Input(1)), s.rowOf(p, c)
	if w == nil || len(w.shape) != 2 || factors == nil {
		return false, nil
	}
	var bias []float64
	if p.Input(2) != nil {
		if bias = s.rowOf(p, p.Input(2)); bias == nil {
			return false, nil
		}
		beta := float64(p.Float("beta", 1))
		for k := range bias {
			bias[k] *= beta * factors[k]
		}
	}
	scaled, ok := w.scaled(factors, columnOf(p, w.shape))
	if !ok || !scaled.fits() || !s.rowWeight(p, bias).fits() {
		return false, nil
	}
	weights, err := s.putWeight(p.Graph(), n.Output(0).Name()+"_weight", scaled)
	if err != nil {
		return false, err
	}
	p.SetInput(1, weights)
	if bias == nil {
		s.replaceOutput(n, p.Output(0))
		return true, nil
	}
	return true, s.setRow(p, n, bias)
}

// columnOf says which column of the Gemm's result each element of the second operand,
// a matrix, belongs to.
func columnOf(p *onnx.Node, shape []int) func(i int) int {
	if p.Int("transB", 0) != 0 {
		return func(i int) int { return i / shape[1] }
	}
	return func(i int) int { return i % shape[1] }
}

// columnSizes sums up the magnitudes of the second operand by columns of the result,
// of which there are n; where it is no constant they are taken to be 1.
func (s *State) columnSizes(p *onnx.Node, n int) []float64 {
	w := s.weightOf(p.Input(1))
	if w == nil || len(w.shape) != 2 {
		return slices.Repeat([]float64{1}, n)
	}
	sizes := w.magnitudes(n, columnOf(p, w.shape))
	for k := range sizes {
		sizes[k] *= math.Abs(float64(p.Float("alpha", 1)))
	}
	return sizes
}

// rowOf reads a constant as one number per column of the Gemm's result; nil when
// it is none, or differs by row.
func (s *State) rowOf(p *onnx.Node, v *onnx.Value) []float64 {
	dims, ok := s.dims(p.Output(0))
	if !ok || len(dims) != 2 {
		return nil
	}
	columns, known := dims[1].Known()
	w := s.weightOf(v)
	if !known || w == nil {
		return nil
	}
	row, ok := w.vector(int(columns), 2, 1)
	if !ok {
		return nil
	}
	return row
}

// setRow makes row what the Gemm adds, and lets it make what n made.
func (s *State) setRow(p, n *onnx.Node, row []float64) error {
	v, err := s.putWeight(p.Graph(), n.Output(0).Name()+"_bias", s.rowWeight(p, row))
	if err != nil {
		return err
	}
	p.SetInput(2, v)
	p.DropAttribute("beta")
	s.replaceOutput(n, p.Output(0))
	return nil
}

// rowWeight is row as a tensor of the Gemm's type.
func (s *State) rowWeight(p *onnx.Node, row []float64) *weight {
	return &weight{elem: s.infer.Of(p.Output(0)).Elem, shape: []int{len(row)}, data: row}
}
