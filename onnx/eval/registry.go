package eval

import (
	"cmp"
	"slices"
	"sync"

	"github.com/npuctl/npuctl/onnx"
)

// Kernel computes a node's outputs from its inputs.
type Kernel func(c *Call) error

// operator is one row of the table: the kernel that holds for an operator from
// version since on, until a later row takes over.
type operator struct {
	domain string // "" is the default domain
	name   string
	since  int
	run    Kernel
}

// families lists every family of operators.
func families() [][]operator {
	return [][]operator{
		controlOperators,
		imageOperators,
		treeOperators,
		supportVectorOperators,
		linearModelOperators,
		featureOperators,
		categoryOperators,
		mapOperators,
		randomOperators,
		trainingOperators,
		activationOperators,
		mathFunctionOperators,
		quantizationOperators,
		signalOperators,
		sequenceOperators,
		lossOperators,
		detectionOperators,
		textOperators,
		linearOperators,
		convOperators,
		quantizedProductOperators,
		einsumOperators,
		poolOperators,
		roiOperators,
		recurrentOperators,
		normalizationOperators,
		softmaxOperators,
		attentionOperators,
		attentionHelpers,
		resizeOperators,
		gridOperators,
		arithmeticOperators,
		bitOperators,
		unaryOperators,
		compareOperators,
		castOperators,
		shapeOperators,
		movementOperators,
		padOperators,
		gatherOperators,
		scatterOperators,
		generateOperators,
		selectOperators,
		reduceOperators,
		orderOperators,
		cumulateOperators,
		dropoutOperators,
	}
}

type operatorKey struct{ domain, name string }

// operatorTable is the look-up form of all families. A run holds it as a value:
// kernels that run subgraphs would otherwise refer to the table that lists them.
type operatorTable map[operatorKey][]operator

// table is made on first use.
var table = sync.OnceValue(func() operatorTable {
	t := operatorTable{}
	for _, family := range families() {
		for _, o := range family {
			k := operatorKey{o.domain, o.name}
			t[k] = append(t[k], o)
		}
	}
	for _, rows := range t {
		slices.SortFunc(rows, func(a, b operator) int { return cmp.Compare(a.since, b.since) })
	}
	return t
})

// lookup finds the kernel for a node; nil when there is none for its version.
func (t operatorTable) lookup(n *onnx.Node) Kernel {
	rows := t[operatorKey{n.CanonicalDomain(), n.OpType}]
	opset := n.Opset()
	var run Kernel
	for _, row := range rows {
		if row.since <= opset {
			run = row.run
		}
	}
	return run
}

// Supports says whether the interpreter has a kernel for the node, or its model
// a function of that name.
func Supports(n *onnx.Node) bool {
	return table().lookup(n) != nil || n.Model().Callee(n) != nil
}
