package onnxpass

import (
	"github.com/npuctl/npuctl/onnx"
)

// eliminateUnits removes arithmetic with a neutral constant.
//
//	before: y = Mul(x, 1)
//	after:  x for y
//
// The result must have x's shape and type: a neutral constant of higher rank, or
// with larger dims, enlarges x and stays. Multiplying by 0 is no such case:
// NaN and infinity do not become 0. Adding 0 turns -0 into +0, which compares
// equal, and is let go like every optimiser does.
func eliminateUnits(s *State) error {
	return s.eachNode(func(n *onnx.Node) error {
		unit, ok := unitRules[n.OpType]
		if !ok || n.CanonicalDomain() != "" || len(n.Inputs()) != 2 || n.Output(0) == nil {
			return nil
		}
		for i, v := range n.Inputs() {
			x := n.Input(1 - i)
			if v == nil || x == nil || i == 0 && !unit.commutes || !isUniform(v, unit.value) && !isUniformBool(v, unit) {
				continue
			}
			if s.sameShape(x, n.Output(0)) && s.sameType(x, n.Output(0)) {
				s.replace(n, x)
				return nil
			}
		}
		return nil
	})
}

// unitRule names the neutral element of an operator, on the right or on both sides.
type unitRule struct {
	value    float64
	logical  bool // the operator is of truth values: value is 1 for true
	commutes bool
}

var unitRules = map[string]unitRule{
	"Add": {value: 0, commutes: true},
	"Sub": {value: 0},
	"Mul": {value: 1, commutes: true},
	"Div": {value: 1},
	"Pow": {value: 1},
	"And": {value: 1, logical: true, commutes: true},
	"Or":  {value: 0, logical: true, commutes: true},
	"Xor": {value: 0, logical: true, commutes: true},
}

func isUniformBool(v *onnx.Value, unit unitRule) bool {
	values, ok := constantInts(v)
	return unit.logical && ok && len(values) > 0 && allEqual(values, int64(unit.value))
}
