package atcemu

import (
	"fmt"
	"strings"

	"github.com/npuctl/npuctl/internal/cannemu/datatype"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnxpass"
)

// gate is the ONNX parser's part: first a walk over the whole model for operators that
// nobody has registered, then what the parser and its plugins refuse, first come first
// served.
type gate struct {
	model  *onnx.Model
	report checkReport
}

// checkReport is what check_result.json says.
type checkReport struct {
	Total  int           `json:"total"`
	Pass   int           `json:"pass"`
	Fail   int           `json:"fail"`
	Result string        `json:"result"`
	Name   string        `json:"name"`
	Ops    []checkedNode `json:"op"`
}

type checkedNode struct {
	Name   string  `json:"name"`
	Type   string  `json:"type"`
	Result string  `json:"result"`
	Causes []cause `json:"cause,omitempty"`
}

type cause struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// unsupportedType is the cause number of an operator without a plugin.
const unsupportedType = 1

// preCheck looks every operator up and fills the report. The failure names the first
// that is not registered, and all others under it.
func (g *gate) preCheck() *failure {
	g.report = checkReport{Result: "success", Name: g.model.Graph.Name, Ops: []checkedNode{}}
	for _, v := range onnxpass.RealInputs(g.model) {
		g.note(v.Name(), "ai.onnx::Data", true)
	}
	var refused []string
	for m := range parsedGraphs(g.model.Graph) {
		for i, n := range m.Nodes() {
			known, name := isRegistered(n), nodeNameAt(n, i)
			g.note(name, domainType(n), known)
			if !known {
				refused = append(refused, fmt.Sprintf("No operator plugin is registered for Op: %s, optype: %s.", name, domainType(n)))
			}
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return &failure{code: "E13010", message: refused[0], trace: refused[1:],
		remedy: "Check that the operator is supported, or register a plugin for it."}
}

func (g *gate) note(name, typ string, passed bool) {
	node := checkedNode{Name: name, Type: typ, Result: "success"}
	g.report.Total++
	if passed {
		g.report.Pass++
	} else {
		g.report.Fail++
		g.report.Result, node.Result = "failed", "failed"
		node.Causes = []cause{{unsupportedType, "The type is not supported."}}
	}
	g.report.Ops = append(g.report.Ops, node)
}

// parsedGraphs yields a graph and the branches in it; bodies of local functions are
// not expanded by the parser.
func parsedGraphs(g *onnx.Graph) func(yield func(*onnx.Graph) bool) {
	return func(yield func(*onnx.Graph) bool) {
		var walk func(g *onnx.Graph) bool
		walk = func(g *onnx.Graph) bool {
			if !yield(g) {
				return false
			}
			for _, n := range g.Nodes() {
				for _, s := range n.Subgraphs() {
					if !walk(s) {
						return false
					}
				}
			}
			return true
		}
		walk(g)
	}
}

// parse is what the parser refuses after the walk.
func (g *gate) parse() *failure {
	for _, check := range []func() *failure{g.checkOpsets, g.checkEnds, g.checkInputs, g.checkNames, g.checkBranches, g.checkNodes} {
		if f := check(); f != nil {
			f.trace = append(f.trace, fmt.Sprintf("Model parse to graph failed, graph name:%s.[FUNC:ModelParseToGraph][FILE:onnx_parser.cc][LINE:1]", g.model.Graph.Name))
			return f
		}
	}
	return nil
}

func (g *gate) checkOpsets() *failure {
	for n := range g.model.Nodes() {
		if n.Opset() == 0 {
			domain := n.CanonicalDomain()
			if domain == "" {
				domain = "ai.onnx"
			}
			return parserFailure("The opset of domain[%s] has no responding version.", domain)
		}
	}
	return nil
}

// parserFailure is an internal one of the parser.
func parserFailure(format string, args ...any) *failure {
	return &failure{code: "E19999", message: fmt.Sprintf(format, args...) + "[FUNC:ParseAllNodeProto][FILE:onnx_parser.cc][LINE:1]"}
}

func (g *gate) checkEnds() *failure {
	if len(g.inputs()) == 0 {
		return &failure{code: "E16001", message: "The model has no input node."}
	}
	if len(g.model.Graph.Outputs()) == 0 {
		return &failure{code: "E16001", message: "The model has no output node."}
	}
	return nil
}

// inputs are those that the parser takes for inputs: with a stored value they are constants.
func (g *gate) inputs() (list []*onnx.Value) {
	for _, v := range g.model.Graph.Inputs() {
		if v.Initializer() == nil {
			list = append(list, v)
		}
	}
	return list
}

func (g *gate) checkInputs() *failure {
	for _, v := range g.inputs() {
		if !v.Type.IsTensor() {
			return parserFailure("tensor_proto data type 0 is undefined, input %s", v.Name())
		}
		if _, ok := datatype.ACL(v.Type.Elem); !ok {
			return parserFailure("tensor_proto data type %d is undefined, input %s", v.Type.Elem, v.Name())
		}
	}
	return nil
}

// checkNames refuses two nodes of one name in one graph.
func (g *gate) checkNames() *failure {
	for graph := range parsedGraphs(g.model.Graph) {
		seen := map[string]bool{}
		for _, n := range graph.Nodes() {
			if n.Name != "" && seen[n.Name] {
				return &failure{code: "E13009", message: fmt.Sprintf("Operator %s already exists in the graph. Ensure that operator names are unique.", n.Name)}
			}
			seen[n.Name] = true
		}
	}
	return nil
}

// checkBranches refuses branches that the parser cannot tie to the graph around them:
// those without any node, and those that give the name of a constant outside another
// meaning (the name of a node's result they may).
func (g *gate) checkBranches() *failure {
	for graph := range parsedGraphs(g.model.Graph) {
		outer := graph.Outer()
		if outer == nil {
			continue
		}
		if len(graph.Nodes()) == 0 {
			return parserFailure("Branch %s of %s has no node.", graph.Name, nodeName(graph.Owner()))
		}
		for _, n := range graph.Nodes() {
			for _, v := range n.Outputs() {
				if v == nil {
					continue
				}
				if other := outer.Find(v.Name()); other != nil && other.Initializer() != nil {
					return parserFailure("Tensor %s of branch %s is defined outside as well.", v.Name(), graph.Name)
				}
			}
		}
	}
	return nil
}

func (g *gate) checkNodes() *failure {
	for graph := range parsedGraphs(g.model.Graph) {
		for _, n := range graph.Nodes() {
			if f := checkConstant(n); f != nil {
				return f
			}
			for _, rule := range pluginRules[n.OpType] {
				if rule.applies(n) {
					return pluginFailure(n, rule)
				}
			}
		}
	}
	return nil
}

// checkConstant refuses what the parser cannot store. A Constant of another form than a
// tensor becomes an empty one there, without a word; what follows cannot be right, so
// the emulator says it at once.
func checkConstant(n *onnx.Node) *failure {
	if !n.Is("Constant") {
		return nil
	}
	a := n.Attribute("value")
	if a == nil || a.Tensor() == nil {
		return parserFailure("Constant node %s has no tensor in attribute value: its data is empty", nodeName(n))
	}
	switch t := a.Tensor().Type(); t {
	case tensor.Float8E4M3FN, tensor.Float8E4M3FNUZ, tensor.Float8E5M2, tensor.Float8E5M2FNUZ, tensor.Uint4, tensor.Float4E2M1:
		return parserFailure("data_type %d not support, node %s", t, nodeName(n))
	}
	return nil
}

// pluginRule is something that the plugin of an operator refuses.
type pluginRule struct {
	code    string // "" is EZ9999
	says    string
	applies func(*onnx.Node) bool
}

func pluginFailure(n *onnx.Node, rule pluginRule) *failure {
	f := &failure{code: "EZ9999", message: fmt.Sprintf("%s[FUNC:ParseParams][FILE:%s_onnx_plugin.cpp][LINE:1]", rule.says, strings.ToLower(n.OpType)),
		trace: []string{fmt.Sprintf("Get one to many graph failed for op:%s", nodeName(n))}}
	if rule.code != "" {
		f.code = rule.code
	}
	return f
}

// hasNone says that a node has none of the attributes.
func hasNone(n *onnx.Node, names ...string) bool {
	for _, name := range names {
		if n.Attribute(name) != nil {
			return false
		}
	}
	return true
}

func differs(name string, standard int64) func(*onnx.Node) bool {
	return func(n *onnx.Node) bool { return n.Int(name, standard) != standard }
}

func isAbsent(n *onnx.Node, from int, inputs ...int) bool {
	if n.Opset() < from {
		return false
	}
	for _, i := range inputs {
		if n.Input(i) != nil {
			return false
		}
	}
	return true
}

// splitsEvenly18 says that a Split of opset 18 goes by the number of its outputs. Its
// plugin then looks at the shape of the input, which only a graph input has so early.
func splitsEvenly18(n *onnx.Node) bool {
	return n.Opset() >= 18 && n.Input(0) != nil && n.Input(1) == nil
}

func isGraphInput(v *onnx.Value) bool { return v.IsInput() && v.Initializer() == nil }

// hasNoShapeYet is what the vendor's parser dies of.
func hasNoShapeYet(n *onnx.Node) bool { return splitsEvenly18(n) && !isGraphInput(n.Input(0)) }

// isUneven says that the parts of a Split of opset 18 do not come out equal, or not as
// many as there are outputs.
func isUneven(n *onnx.Node) bool {
	if !splitsEvenly18(n) || !isGraphInput(n.Input(0)) {
		return false
	}
	parts := n.Int("num_outputs", int64(len(n.Outputs())))
	t := n.Input(0).Type
	if !t.IsTensor() || t.Shape == nil || parts <= 0 || int(parts) != len(n.Outputs()) {
		return true
	}
	dims, axis := t.Shape.Dims, int(n.Int("axis", 0))
	if axis < 0 {
		axis += len(dims)
	}
	return axis < 0 || axis >= len(dims) || !dims[axis].Known || dims[axis].Value%parts != 0
}

// pluginRules are the refusals by operator, as the plugins answered when they were run.
var pluginRules = map[string][]pluginRule{
	"Transpose": {{"", "must input the attr of perm", func(n *onnx.Node) bool { return hasNone(n, "perm") }}},
	"Conv": {
		{"", "node must have attr (kernel_shape,pads,strides,dilations) at least one", func(n *onnx.Node) bool {
			return hasNone(n, "kernel_shape", "pads", "strides", "dilations")
		}},
		{"", "The attr of auto_pad is not NOTSET/VALID for 5D", func(n *onnx.Node) bool {
			kernel, _ := n.Ints("kernel_shape")
			return len(kernel) == 3 && strings.HasPrefix(n.String("auto_pad", ""), "SAME")
		}},
	},
	"ConvTranspose": {{"", "attr kernel_shape must have value", func(n *onnx.Node) bool { return hasNone(n, "kernel_shape") }}},
	"Clip":          {{"", "At least 'min' or 'max' must not be None or Empty", func(n *onnx.Node) bool { return isAbsent(n, 11, 1, 2) }}},
	"Split": {
		{"", "the shape of the input is not there yet", hasNoShapeYet},
		{"", "dim_size can not be evenly divided by split_size", isUneven},
		{"", "output size is not equal split size", func(n *onnx.Node) bool {
			parts, ok := n.Ints("split")
			return ok && n.Opset() < 13 && len(parts) != len(n.Outputs())
		}},
	},
	"MaxPool": {
		{"", "The output of Indices is not support, transforming failed", func(n *onnx.Node) bool { return n.Output(1) != nil }},
		{"", "only support storage_order=0", differs("storage_order", 0)},
	},
	"ArgMax":    {{"", "Only support select_last_index=0", differs("select_last_index", 0)}},
	"ArgMin":    {{"", "select_last_index should be 0", differs("select_last_index", 0)}},
	"GatherND":  {{"", "only support batch_dims=0", differs("batch_dims", 0)}},
	"ScatterND": {{"", "ScatterND with reduction='mul' is not supported in this plugin", func(n *onnx.Node) bool { return n.String("reduction", "") == "mul" }}},
	"IsInf": {{"", "The operator will computes both positive and negative cases", func(n *onnx.Node) bool {
		return n.Int("detect_negative", 1) != 1 || n.Int("detect_positive", 1) != 1
	}}},
	"Selu": {{"", "the attr of alpha or gamma is not default", func(n *onnx.Node) bool {
		return n.Float("alpha", 1.67326319) != 1.67326319 || n.Float("gamma", 1.05070102) != 1.05070102
	}}},
	"Col2Im":   {{"", "get attr dilation failed", func(n *onnx.Node) bool { return true }}},
	"Resize":   {{"", "Unsupported interpolation mode", func(n *onnx.Node) bool { return n.Opset() == 10 && n.String("mode", "") == "cubic" }}},
	"Pad":      {{"E19999", "Resolve operator IO name failed, dst index[3]", func(n *onnx.Node) bool { return n.Opset() >= 18 && n.Input(3) != nil }}},
	"Upsample": {{"E19999", "Assert ((src_out_anchor) != nullptr) failed", func(n *onnx.Node) bool { return n.Opset() == 8 }}},
	"ReduceSumSquare": {{"E19999", "Resolve operator IO name failed, dst index[1]", func(n *onnx.Node) bool {
		return n.Opset() >= 18 && n.Input(1) != nil
	}}},
}
