package onnxpass

import (
	"fmt"
	"slices"
)

// Pass is one step of the optimiser.
type Pass struct {
	// Name is how --skip and --passes call it, and the report.
	Name string
	// Does says in one line what it does.
	Does string
	// run does it and counts what it changed in the state.
	run func(*State) error
}

// passes is the whole list, in the order in which a round runs them.
func passes() []Pass {
	return []Pass{
		{"lift-constants", "Constant nodes become initializers", liftConstants},
		{"merge-constants", "stored tensors with the same bytes, type and shape become one", mergeConstants},
		{"cse", "nodes that compute the same become one", mergeCommonSubexpressions},
		{"fold", "nodes whose results are known before running become constants", fold},
		{"inline-if", "an If whose condition is known is replaced by the branch it takes", inlineIf},
		{"zero-trip-loop", "a Loop that never runs is replaced by its initial state", removeZeroTripLoops},
		{"identities", "nodes that hand on their input unchanged go", eliminateIdentities},
		{"units", "x+0, x-0, x*1, x/1 and the like become x", eliminateUnits},
		{"chains", "runs of Cast, Transpose, Reshape, Squeeze, Unsqueeze, Slice, Relu and Clip become one", mergeChains},
		{"transposes", "Transposes move behind element-wise operators where they meet others and vanish", sinkTransposes},
		{"reshape-literals", "a computed Reshape target becomes a literal with 0 and -1", literalReshapes},
		{"splats", "a large constant of one repeated value becomes a scalar or a ConstantOfShape", shrinkSplats},
		{"fuse-pad", "zeros that a Pad adds become the padding of the Conv that reads them", fusePads},
		{"fuse-affine", "BatchNormalization, and arithmetic with per-channel constants, go into the Conv before", fuseAffine},
		{"fuse-scale", "a constant factor before a Conv goes into its weights", fuseScales},
		{"fuse-gemm", "MatMul and Add of matrices become Gemm; constants around a Gemm go into it", fuseGemm},
		{"dead-code", "nodes, initializers, functions and imports that nothing uses go", removeDead},
	}
}

// order says which pass must come before which in a round, and why.
var order = []struct{ first, then, why string }{
	{"lift-constants", "fold", "fold sees constants only as initializers"},
	{"fold", "inline-if", "a condition is known once it is folded"},
	{"fold", "reshape-literals", "a target that is wholly known becomes a plain constant"},
	{"fold", "splats", "only a constant can be a splat"},
	{"inline-if", "identities", "inlining leaves Identity nodes at the branch's borders"},
	{"identities", "chains", "a chain is seen only when nothing stands in between"},
	{"merge-constants", "cse", "equal nodes are found by their inputs, and equal constants are equal inputs"},
	{"cse", "fold", "what many nodes compute alike is computed, and counted as growth, once"},
	{"units", "fuse-affine", "a neutral operand is not worth new weights"},
	{"fuse-affine", "fuse-scale", "between two Convs the first takes the factor, and a shift with it"},
	{"cse", "dead-code", "merged nodes die"},
}

// checkOrder proves that the table keeps its own rules.
func checkOrder(table []Pass) error {
	at := func(name string) int { return slices.IndexFunc(table, func(p Pass) bool { return p.Name == name }) }
	for _, o := range order {
		first, then := at(o.first), at(o.then)
		if first < 0 || then < 0 {
			return fmt.Errorf("the order rule %s before %s names a pass that is not there", o.first, o.then)
		}
		if first >= then {
			return fmt.Errorf("pass %s must come before %s: %s", o.first, o.then, o.why)
		}
	}
	return nil
}

// Passes lists the passes that [Optimize] knows, in their order.
func Passes() []Pass { return passes() }

// choose gives the passes that only and skip leave; unknown names are errors
// that suggest the nearest one.
func choose(only, skip []string) ([]Pass, error) {
	table := passes()
	if err := checkOrder(table); err != nil {
		return nil, err
	}
	var names []string
	for _, p := range table {
		names = append(names, p.Name)
	}
	for _, name := range slices.Concat(only, skip) {
		if !slices.Contains(names, name) {
			return nil, &UnknownPassError{Name: name, Known: names}
		}
	}
	return slices.DeleteFunc(table, func(p Pass) bool {
		return len(only) > 0 && !slices.Contains(only, p.Name) || slices.Contains(skip, p.Name)
	}), nil
}

// UnknownPassError says that a pass was asked for that does not exist.
type UnknownPassError struct {
	Name  string
	Known []string
}

func (e *UnknownPassError) Error() string { return fmt.Sprintf("there is no pass %q", e.Name) }
