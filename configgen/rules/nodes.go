package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/infer"
	"github.com/npuctl/npuctl/onnx/schema"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/soc"
)

// nodeFinding is something about a node, or about the graph, in the model's words.
type nodeFinding struct {
	rule   string
	node   string // its name, else its operator
	kind   string // its operator: each kind is told once a reason
	reason Text
	remedy Text // empty for what the rule says
}

// nodesLimit bounds the graphs that are looked at with types and shapes.
const nodesLimit = 200_000

// examineModel holds a model's nodes against CANN's parser and, with a chip, against
// the AI Core. Findings come in the order of the nodes. Bodies of local functions are
// not looked at: the parser does not take their calls.
func examineModel(m *onnx.Model, chip *soc.Chip) []nodeFinding {
	e := &examiner{model: m, forms: map[string][]form{}, settled: map[*onnx.Value]bool{}}
	if chip != nil {
		e.family = chip.Shared()
		e.name = chip.Family
	}
	for _, f := range forms() {
		for _, operator := range f.operators {
			e.forms[operator] = append(e.forms[operator], f)
		}
	}
	e.graph()
	e.opset()
	count := 0
	for n := range m.Nodes() {
		if n.Graph().Function() == nil {
			e.node(n)
		}
		if count++; count > nodesLimit {
			return e.found
		}
	}
	if chip != nil && e.family.Engines && len(m.Functions) == 0 {
		e.inferred()
	}
	return e.found
}

type examiner struct {
	model  *onnx.Model
	family soc.Family
	name   soc.FamilyName
	forms  map[string][]form
	found  []nodeFinding
	// settled are the values that follow from constants and from sizes.
	settled map[*onnx.Value]bool
}

func (e *examiner) tell(rule string, n *onnx.Node, reason, remedy Text) {
	name := n.Name
	if name == "" {
		name = n.OpType
	}
	e.found = append(e.found, nodeFinding{rule, name, n.OpType, reason, remedy})
}

// same is a text that stands in one language alone.
func same(text string) Text { return Text{text, text} }

// opset tells of an opset that the parser has nothing for, once for all nodes.
func (e *examiner) opset() {
	version := e.model.Opset("")
	if version <= soc.NewestOpset {
		return
	}
	for n := range e.model.Nodes() {
		if n.CanonicalDomain() == "" && n.Graph().Function() == nil {
			e.found = append(e.found, nodeFinding{rule: "chip-opset", node: fmt.Sprint(version), reason: same(fmt.Sprintf("%d-%d", soc.OldestOpset, soc.NewestOpset))})
			return
		}
	}
}

const graphRule = "chip-graph"

// graph looks at what the parser wants of a graph as a whole.
func (e *examiner) graph() {
	tell := func(what string, reason, remedy Text) {
		e.found = append(e.found, nodeFinding{graphRule, what, what, reason, remedy})
	}
	name := e.model.Graph.Name
	if len(e.model.Graph.Inputs()) == 0 {
		tell(name, Text{"the graph has no input", "图没有输入"}, Text{"give it one; a graph of constants can be computed once and for all", "添加输入；只有常量的图可以预先算出"})
	}
	if len(e.model.Graph.Outputs()) == 0 {
		tell(name, Text{"the graph has no output", "图没有输出"}, Text{"make what it computes an output", "把计算结果设为输出"})
	}
	if e.model.Opset("") == 0 && len(e.model.Graph.Nodes()) > 0 {
		tell(name, Text{"it imports no opset of ai.onnx", "没有导入 ai.onnx 的 opset"}, Text{"write an opset_import of the domain \"\"", "写上域 \"\" 的 opset_import"})
	}
	for _, v := range e.model.Graph.Inputs() {
		switch {
		case v.Type == nil:
		case v.Type.Kind != onnx.KindTensor:
			tell(v.Name(), Text{"it is an input that is no tensor", "该输入不是张量"}, Text{"pass its parts as tensors", "把各部分作为张量传入"})
		case slices.Contains(unreadInputs, v.Type.Elem):
			tell(v.Name(), Text{"it is an input of a type that the parser does not know: " + shortType(v.Type.Elem), "输入类型解析器不认识：" + shortType(v.Type.Elem)}, Text{"use another type, and cast in the model", "改用其他类型，在模型中转换"})
		}
	}
	for g := range e.model.Graphs() {
		if g.Function() == nil {
			e.names(g, tell)
		}
	}
}

// unreadInputs are types of inputs that the parser does not know.
var unreadInputs = []tensor.Type{tensor.Float8E4M3FNUZ, tensor.Float8E5M2FNUZ, tensor.Uint4, tensor.Float4E2M1, tensor.Float8E8M0}

// names looks for names that two nodes of a graph have. An input is a node, too.
func (e *examiner) names(g *onnx.Graph, tell func(string, Text, Text)) {
	seen := map[string]int{}
	if g == e.model.Graph {
		for _, v := range g.Inputs() {
			if v.Initializer() == nil {
				seen[v.Name()]++
			}
		}
	}
	for _, n := range g.Nodes() {
		if seen[n.Name]++; seen[n.Name] == 2 && n.Name != "" {
			tell(n.Name, Text{"two nodes have this name", "两个节点同名"}, Text{})
		}
	}
}

// node looks at a node alone.
func (e *examiner) node(n *onnx.Node) {
	seen := soc.Node{Name: n.Name, Domain: n.CanonicalDomain(), Type: n.OpType, Opset: n.Opset()}
	isStandard := n.CanonicalDomain() == ""
	if isStandard && seen.Opset > soc.NewestOpset {
		// The opset is told; what the operator lacks at any opset is told all the same.
		o, err := soc.LookupOperator("", n.OpType)
		if err == nil && len(o.Opsets) > 0 {
			seen.Opset = preferredOpset(o)
		}
	}
	family := e.name
	if !e.family.Engines {
		family = ""
	}
	isRefused := false
	for _, f := range soc.Examine(family, []soc.Node{seen}) {
		rule := slowRule
		switch f.Kind {
		case soc.Refused:
			rule, isRefused = refusedRule, true
		case soc.Unproven:
			rule = unprovenRule
		case soc.DataSize:
			if n.Is("If") {
				continue // told below, with what it is
			}
			rule = dynamicRule
		}
		e.tell(rule, n, inBoth(f.Reason), inBoth(f.Remedy))
	}
	if isRefused || !isStandard {
		return
	}
	seenNode := onnxNode{n, declaredRank, declaredSize}
	for _, f := range e.forms[n.OpType] {
		isOfChip := f.rule == slowRule && !e.family.Engines
		if !isOfChip && f.first <= n.Opset() && n.Opset() <= f.last && f.applies(seenNode) {
			e.tell(f.rule, n, f.reason, f.remedy)
		}
	}
}

// preferredOpset is one at which the operator is known.
func preferredOpset(o soc.Operator) int {
	last := o.Opsets[len(o.Opsets)-1].Last
	return min(last, soc.NewestOpset)
}

// declaredRank is the rank that the file gives a value; -1 when it gives none.
func declaredRank(v *onnx.Value) int {
	if t := v.Constant(); t != nil {
		return len(t.Shape())
	}
	if v.Type == nil || v.Type.Shape == nil {
		return -1
	}
	return len(v.Type.Shape.Dims)
}

func declaredSize(v *onnx.Value, axis int) int64 {
	if axis < 0 || axis >= declaredRank(v) {
		return -1
	}
	if t := v.Constant(); t != nil {
		return int64(t.Shape()[axis])
	}
	if d := v.Type.Shape.Dims[axis]; d.Known {
		return d.Value
	}
	return -1
}

// inferred looks at element types, and at what shapes depend on.
func (e *examiner) inferred() {
	infos := infer.New(e.model, infer.Options{})
	for _, n := range e.model.Graph.Nodes() {
		infos.Node(n)
		e.settle(n)
		o, err := soc.LookupOperator(n.CanonicalDomain(), n.OpType)
		if err != nil || !o.Opsets.Has(n.Opset()) {
			continue
		}
		e.types(n, o, infos)
		e.operands(n, o)
	}
}

var foldsIt = Text{"npuctl optimize computes it once and for all: its inputs are constants", "npuctl optimize 会预先算出它：输入都是常量"}

// types tells of nodes that the AI Core does not compute for their element type.
func (e *examiner) types(n *onnx.Node, o soc.Operator, infos *infer.Inference) {
	if o.Engine(e.name) != soc.CoreOr {
		return
	}
	elem := dataType(n, infos)
	remedy := inBoth(o.Remedy)
	if isFoldable(n) {
		remedy = foldsIt
	}
	if n.Is("Cast") {
		to := tensor.Type(n.Int("to", 0))
		if to == tensor.Undefined || elem == tensor.Undefined || e.coreCasts(elem, to) {
			return
		}
		e.tell(slowRule, n, Text{fmt.Sprintf("%s to %s is not on the AI Core of %s", shortType(elem), shortType(to), e.name),
			fmt.Sprintf("%[3]s 的 AI Core 不支持 %[1]s 到 %[2]s 的转换", shortType(elem), shortType(to), e.name)}, remedy)
		return
	}
	if isOneHot := n.Is("OneHot"); !isOneHot && takesType(o.CoreTypes(e.name), elem) || isOneHot && elem != tensor.Int64 {
		return
	}
	e.tell(slowRule, n, Text{fmt.Sprintf("%s of %s is not on the AI Core of %s", n.OpType, shortType(elem), e.name),
		fmt.Sprintf("%[3]s 的 AI Core 不支持 %[2]s 的 %[1]s", n.OpType, shortType(elem), e.name)}, remedy)
}

// dataType is the element type by which a kernel is chosen: that of the data.
func dataType(n *onnx.Node, infos *infer.Inference) tensor.Type {
	data := 0
	if n.Is("Where") {
		data = 1 // the condition comes first
	}
	v := n.Input(data)
	if v == nil {
		return tensor.Undefined
	}
	return infos.Of(v).Elem
}

// isFoldable says whether all inputs are constants.
func isFoldable(n *onnx.Node) bool {
	return len(n.Inputs()) > 0 && !slices.ContainsFunc(n.Inputs(), func(v *onnx.Value) bool { return v != nil && v.Constant() == nil })
}

func shortType(t tensor.Type) string { return strings.ToLower(t.String()) }

// takesType says whether the AI Core has a type. Floats of 16 and 32 bits are turned
// into each other; a type that no list tells of is taken.
func takesType(types soc.Types, elem tensor.Type) bool {
	has, known := types.Has(shortType(elem))
	if has || !known || elem == tensor.Undefined {
		return true
	}
	hasHalf, _ := types.Has("float16")
	return hasHalf && slices.Contains([]tensor.Type{tensor.Float16, tensor.Float32, tensor.BFloat16}, elem)
}

// coreCasts says whether the AI Core converts between two types. 64-bit floats and
// unsigned integers never; the older cores do not go between int64 and float.
func (e *examiner) coreCasts(from, to tensor.Type) bool {
	never := []tensor.Type{tensor.Float64, tensor.Uint64}
	if slices.Contains(never, from) || slices.Contains(never, to) {
		return false
	}
	isOlder := e.name == soc.Family310P || e.name == soc.Family910
	isBetween := func(a, b tensor.Type) bool { return a == tensor.Int64 && b == tensor.Float32 }
	return !isOlder || !isBetween(from, to) && !isBetween(to, from)
}

// operands tells of nodes whose shapes depend on what earlier nodes computed of the
// data. What follows from the sizes of the inputs does not count: with the inputs'
// sizes fixed it is a constant, which npuctl optimize writes.
func (e *examiner) operands(n *onnx.Node, o soc.Operator) {
	if n.Is("If") {
		if condition := n.Input(0); condition != nil && !e.isSettled(condition) {
			e.tell(dynamicRule, n, Text{"which branch runs is decided by values: the graph is cut here", "运行哪个分支由数值决定：图在此被切断"},
				Text{"compute both branches and choose with Where, or bind the input that decides: npuctl optimize --bind", "两个分支都计算后用 Where 选择，或绑定决定它的输入：npuctl optimize --bind"})
		}
		return
	}
	facts, ok := schema.Lookup(n.CanonicalDomain(), n.OpType, n.Opset())
	if !ok {
		return
	}
	for i, v := range n.Inputs() {
		parameter, has := facts.Input(i)
		if !has || v == nil || !slices.Contains(o.ConstantInputs, parameter.Name) || e.isSettled(v) {
			continue
		}
		e.tell(dynamicRule, n, Text{fmt.Sprintf("its %s is computed from values, so that its shape is not known", parameter.Name),
			fmt.Sprintf("它的 %s 由数值算出，形状不可知", parameter.Name)},
			Text{"make it a constant", "改为常量"})
	}
}

// settle notes which outputs of a node follow from constants and from sizes alone.
func (e *examiner) settle(n *onnx.Node) {
	isSize := n.Is("Shape") || n.Is("Size")
	isOpen := slices.ContainsFunc(n.Inputs(), func(v *onnx.Value) bool { return v != nil && !e.isSettled(v) })
	if isOpen && !isSize || len(n.Subgraphs()) > 0 || schema.NonDeterministic(n.CanonicalDomain(), n.OpType) {
		return
	}
	for _, v := range n.Outputs() {
		e.settled[v] = true
	}
}

func (e *examiner) isSettled(v *onnx.Value) bool { return v.Constant() != nil || e.settled[v] }
