package eval

import (
	"sync"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/internal/optable"
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

func (o operator) key() optable.Key {
	return optable.Key{Operator: optable.Operator{Domain: o.domain, Name: o.name}, Since: o.since}
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

// operatorTable is the look-up form of all families. A run holds it as a value:
// kernels that run subgraphs would otherwise refer to the table that lists them.
type operatorTable struct{ optable.Table[operator] }

// table is made on first use.
var table = sync.OnceValue(func() operatorTable {
	return operatorTable{optable.New(families(), operator.key)}
})

// lookup finds the kernel for a node; nil when there is none for its version.
func (t operatorTable) lookup(n *onnx.Node) Kernel {
	row, _ := t.Lookup(n.CanonicalDomain(), n.OpType, n.Opset())
	return row.run
}

// Supports says whether the interpreter has a kernel for the node, or its model
// a function of that name.
func Supports(n *onnx.Node) bool {
	return table().lookup(n) != nil || n.Model().Callee(n) != nil
}
