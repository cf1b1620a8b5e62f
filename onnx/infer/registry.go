package infer

import (
	"slices"
	"strings"
	"sync"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/internal/optable"
	"github.com/npuctl/npuctl/onnx/schema"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// rule says what a node makes of its inputs. It sets what it knows of the
// outputs; element types that follow from the schema need no rule.
type rule func(c *call)

// operator is one row of the table: the rule that holds for an operator from
// version since on, until a later row takes over.
type operator struct {
	domain string // "" is the default domain
	name   string
	since  int
	rule   rule
}

func (o operator) key() optable.Key {
	return optable.Key{Operator: optable.Operator{Domain: o.domain, Name: o.name}, Since: o.since}
}

// families lists every family of operators.
func families() [][]operator {
	return [][]operator{
		elementwiseOperators,
		sameShapeRows(),
		shapeOperators,
		joinOperators,
		indexOperators,
		sliceOperators,
		reduceOperators,
		matrixOperators,
		windowOperators,
		normalizeOperators,
		generateOperators,
		controlOperators,
		loopOperators,
		sequenceOperators,
		imageOperators,
		recurrentOperators,
		signalOperators,
		attentionOperators,
		einsumOperators,
		detectionOperators,
		textOperators,
		lossOperators,
		traditionalOperators,
		contribOperators,
	}
}

// operatorTable is the look-up form of all families. An Inference holds it as a
// value: rules that infer subgraphs would otherwise refer to the table that lists them.
type operatorTable struct{ optable.Table[operator] }

// table is made on first use.
var table = sync.OnceValue(func() operatorTable {
	return operatorTable{optable.New(families(), operator.key)}
})

func (t operatorTable) rule(domain, name string, opset int) rule {
	row, _ := t.Lookup(domain, name, opset)
	return row.rule
}

// Supports says whether there is a rule for an operator at an opset of its domain.
func Supports(domain, name string, opset int) bool {
	return table().rule(onnx.CanonicalDomain(domain), name, opset) != nil
}

// operatorKey tells apart what nodes of one model can mean by an operator.
type operatorKey struct {
	domain, name, overload string
	function               *onnx.Function // around the node: it has opsets of its own
}

// entry is what is known of an operator as the nodes of one key mean it.
type entry struct {
	opset    int
	function *onnx.Function // the local function of that name
	rule     rule
	schema   *schema.Operator
	graphs   bool         // its attributes hold graphs
	outputs  []typeSource // of each formal output
}

// lastActual is the last of so many actual inputs that the formal one stands for:
// itself, or all that are left when it is variadic.
func (e *entry) lastActual(formal, inputs int) int {
	if e.schema.Inputs[formal].Option == schema.Variadic {
		return inputs - 1
	}
	return formal
}

// typeSource says where an output's element type comes from.
type typeSource struct {
	fixed  Info  // when the schema allows one type only
	inputs []int // else the formal inputs that share its type variable
}

func (i *Inference) entryOf(n *onnx.Node) *entry {
	function := n.Graph().Function()
	if n.Domain == "" && n.Overload == "" && function == nil {
		// Nearly all nodes: one short key to look up.
		e := i.common[n.OpType]
		if e == nil {
			e = i.newEntry(n)
			i.common[n.OpType] = e
		}
		return e
	}
	k := operatorKey{n.Domain, n.OpType, n.Overload, function}
	e := i.operators[k]
	if e == nil {
		e = i.newEntry(n)
		i.operators[k] = e
	}
	return e
}

func (i *Inference) newEntry(n *onnx.Node) *entry {
	e := &entry{opset: n.Opset(), function: i.model.Callee(n)}
	if e.opset == 0 && i.model.IRVersion < 3 {
		e.opset = 1 // before IR version 3 there were no imports
	}
	if e.function == nil {
		e.rule = i.table.rule(n.CanonicalDomain(), n.OpType, e.opset)
		e.schema, _ = schema.Lookup(n.CanonicalDomain(), n.OpType, e.opset)
	}
	if e.schema != nil {
		e.graphs = slices.ContainsFunc(e.schema.Attributes, func(a schema.Attribute) bool { return a.Kind == schema.KindGraph })
		e.outputs = typeSources(e.schema)
	}
	return e
}

func typeSources(o *schema.Operator) []typeSource {
	sources := make([]typeSource, len(o.Outputs))
	for i := range o.Outputs {
		p := &o.Outputs[i]
		if allowed := o.AllowedTypes(p); len(allowed) == 1 {
			sources[i].fixed = parseType(allowed[0])
			continue
		}
		for k, in := range o.Inputs {
			// Where parameters may differ from each other the variable binds nothing.
			if in.Type == p.Type && !in.Heterogeneous && !p.Heterogeneous {
				sources[i].inputs = append(sources[i].inputs, k)
			}
		}
	}
	return sources
}

// parseType reads a type in the specification's notation, such as seq(tensor(float)).
func parseType(text string) Info {
	name, rest, _ := strings.Cut(strings.TrimSuffix(text, ")"), "(")
	switch name {
	case "tensor":
		t, _ := tensor.ParseType(rest)
		return Info{Elem: t}
	case "sparse_tensor":
		t, _ := tensor.ParseType(rest)
		return Info{Kind: onnx.KindSparseTensor, Elem: t}
	case "seq", "optional":
		inner := parseType(rest)
		kind := onnx.KindSequence
		if name == "optional" {
			kind = onnx.KindOptional
		}
		return Info{Kind: kind, Inner: &inner}
	case "map":
		key, value, _ := strings.Cut(rest, ",")
		k, _ := tensor.ParseType(key)
		inner := parseType(strings.TrimSpace(value))
		return Info{Kind: onnx.KindMap, Elem: k, Inner: &inner}
	}
	return Info{}
}
