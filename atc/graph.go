package atc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/soc"
)

// graphFacts is what the checks ask of a model, with nodes named as ATC names them.
type graphFacts struct {
	err   error
	model *onnx.Model
	// inputs are those that a caller feeds: ATC takes an input with a stored value
	// for a constant.
	inputs []graphInput
	nodes  map[string]graphNode
	// graphs are the model's graph and those nested in it, in that order.
	graphs []nestedGraph
	// tensors gives for each value of the graph the node that makes it.
	tensors map[string]string
	outputs []string
}

// nestedGraph is a graph as ATC's parser meets it: its nodes, and in names behind
// theirs the names of inputs and stored values, which are nodes for ATC.
type nestedGraph struct {
	nodes []soc.Node
	names []string
}

type graphInput struct {
	name   string
	dims   []int64 // -1 is open
	ranked bool    // the rank is known, and there are axes
}

type graphNode struct {
	isInput bool
	outputs int
}

// graph opens the model of a flag, once.
func (c *checker) graph() *graphFacts { return c.graphOf("model") }

func (c *checker) graphOf(flag string) *graphFacts {
	if c.opened == nil {
		c.opened = readGraph(c.path(c.value(flag)))
	}
	return c.opened
}

func readGraph(path string) *graphFacts {
	g := &graphFacts{nodes: map[string]graphNode{}, tensors: map[string]string{}}
	if g.err = regular(path); g.err != nil {
		return g
	}
	if g.model, g.err = onnx.Open(path); g.err != nil {
		return g
	}
	for _, v := range g.model.Graph.Inputs() {
		if v.Initializer() == nil {
			g.addInput(v)
		}
	}
	g.addNodes()
	for _, v := range g.model.Graph.Outputs() {
		g.outputs = append(g.outputs, v.Name())
	}
	for sub := range g.model.Graphs() {
		if sub != g.model.Graph && sub.Function() == nil {
			g.graphs = append(g.graphs, nestedIn(sub))
		}
	}
	return g
}

func (g *graphFacts) addInput(v *onnx.Value) {
	in := graphInput{name: v.Name()}
	if t := v.Type; t != nil && t.IsTensor() && t.Shape != nil {
		in.ranked = len(t.Shape.Dims) > 0
		for _, d := range t.Shape.Dims {
			size := int64(-1)
			if d.Known {
				size = d.Value
			}
			in.dims = append(in.dims, size)
		}
	}
	g.inputs = append(g.inputs, in)
}

// addNodes names the nodes as ATC does: a node without a name is called by its
// operator and how many such came before it; an input is a node of its name; a
// stored value is one too, of a name that is made up.
func (g *graphFacts) addNodes() {
	root := nestedGraph{nodes: nodesOf(g.model.Graph)}
	add := func(name string, n graphNode, outputs ...string) {
		root.names = append(root.names, name)
		if _, twice := g.nodes[name]; !twice {
			g.nodes[name] = n
		}
		for _, o := range outputs {
			g.tensors[o] = name
		}
	}
	unnamed := 0
	for _, n := range g.model.Graph.Nodes() {
		name := n.Name
		if name == "" {
			name = fmt.Sprintf("%s_%d", n.OpType, unnamed)
			unnamed++
		}
		var outputs []string
		for _, o := range n.Outputs() {
			if o != nil {
				outputs = append(outputs, o.Name())
			}
		}
		add(name, graphNode{outputs: len(n.Outputs())}, outputs...)
	}
	for _, in := range g.inputs {
		add(in.name, graphNode{isInput: true, outputs: 1}, in.name)
	}
	var stored []string
	for _, v := range g.model.Graph.Initializers() {
		stored = append(stored, v.Name())
	}
	slices.Sort(stored)
	for i, name := range stored {
		add(fmt.Sprintf("%s_Initializer_%d", name, i), graphNode{outputs: 1}, name)
	}
	g.graphs = append(g.graphs, root)
}

func nodesOf(g *onnx.Graph) (nodes []soc.Node) {
	for _, n := range g.Nodes() {
		nodes = append(nodes, soc.Node{Name: n.Name, Domain: n.Domain, Type: n.OpType, Opset: n.Opset()})
	}
	return nodes
}

// nestedIn takes a nested graph apart. ATC makes up the names that are missing,
// each another.
func nestedIn(g *onnx.Graph) nestedGraph {
	nested := nestedGraph{nodes: nodesOf(g)}
	for i, n := range nested.nodes {
		if n.Name == "" {
			n.Name = fmt.Sprintf("%s, node %d of %s", n.Type, i, g.Where())
		}
		nested.names = append(nested.names, n.Name)
	}
	return nested
}

func (g *graphFacts) inputNames() []string {
	names := make([]string, len(g.inputs))
	for i, in := range g.inputs {
		names[i] = in.name
	}
	return names
}

// modelFile looks whether the file of a flag is an ONNX model that can be parsed.
func (c *checker) modelFile(flag string) *Diagnosis {
	if !c.isONNX() {
		return nil
	}
	name := c.value(flag)
	g := c.graphOf(flag)
	info, err := os.Stat(c.path(name))
	var d Diagnosis
	var path *fs.PathError
	switch {
	case err == nil && info.Size() == 0:
		d = wrongValue("E13015", flag, name, "the file is empty").about(name)
	case g.err != nil && errors.As(g.err, &path):
		d = wrongValue("E13005", flag, name, "it cannot be read: %v", path.Err).about(name)
	case g.err != nil:
		d = wrongValue("E13005", flag, name, "it cannot be parsed as ONNX: %v", g.err).about(name).
			with("`npuctl inspect` says more of a model")
	case len(g.inputs) == 0 && len(g.model.Graph.Inputs()) == 0:
		d = wrongValue("E16001", flag, name, "the model has no input").about(name)
	case len(g.outputs) == 0:
		d = wrongValue("E16001", flag, name, "the model has no output").about(name)
	default:
		return nil
	}
	return &d
}

// modelNodes tells of operators that ATC's parser does not know, of each once, then of
// names that a graph has twice, an input being a node of its name: the parser looks the
// operators up before it makes any node.
func modelNodes(c *checker) (out []Diagnosis) {
	for _, r := range c.refusedOperators() {
		if c.isOthersToSay(r.node) {
			continue // a note, see unknownOperators
		}
		out = append(out, problem(r.finding.Code, "model", "--model=%s: node %q (%s) cannot be parsed: %s", c.value("model"), r.name, r.node.Type, r.finding.Reason).
			about(r.name).with("%s", r.finding.Remedy))
	}
	for _, nested := range c.graph().graphs {
		seen := map[string]int{}
		for _, name := range nested.names {
			if seen[name]++; seen[name] == 2 {
				out = append(out, problem("E13009", "model", "--model=%s: two nodes are called %q, which ATC does not take", c.value("model"), name).
					about(name).with("give every node, and every input, a name of its own; `npuctl compile` does, without --no-optimize"))
			}
		}
	}
	return out
}

// externalKeys tells of the first stored value whose external_data says more than its
// place. ATC reads any other entry for the length.
func externalKeys(c *checker) *Diagnosis {
	tell := func(name string, t *onnx.Tensor) *Diagnosis {
		extras := t.ExternalExtras()
		if len(extras) == 0 {
			return nil
		}
		d := problem("E10001", "model", "--model=%s: the external_data of %q has the entry %q, which ATC takes for the length", c.value("model"), name, extras[0]).
			about(name).with("take the entry out; `npuctl compile` does, without --no-optimize")
		return &d
	}
	g := c.graph().model.Graph
	for _, v := range g.Initializers() {
		if d := tell(v.Name(), v.Initializer()); d != nil {
			return d
		}
	}
	for _, n := range g.Nodes() {
		if a := n.Attribute("value"); n.Is("Constant") && a != nil && a.Tensor() != nil {
			if d := tell(n.Output(0).Name(), a.Tensor()); d != nil {
				return d
			}
		}
	}
	return nil
}

// refusedOperator is a node that is not in the table of ATC's parser, the first of
// its operator.
type refusedOperator struct {
	name    string // the node's, as ATC calls it
	node    soc.Node
	finding soc.Finding
}

func (c *checker) refusedOperators() (out []refusedOperator) {
	told := map[soc.Node]bool{}
	for _, nested := range c.graph().graphs {
		for _, f := range soc.Refusals(nested.nodes) {
			n := nested.nodes[f.Node]
			if kind := kindOf(n); !told[kind] {
				told[kind] = true
				out = append(out, refusedOperator{nested.names[f.Node], n, f})
			}
		}
	}
	return out
}

// kindOf is the operator of a node.
func kindOf(n soc.Node) soc.Node { return soc.Node{Domain: n.Domain, Type: n.Type} }

// mayHavePlugin says whether an operator, of a domain that is neither ONNX's nor of
// the model's own functions, may have come with a plugin: nobody but the toolkit
// knows, so that is a note and no refusal.
func (c *checker) mayHavePlugin(n soc.Node) bool {
	isOwn := slices.ContainsFunc(c.graph().model.Functions, func(f *onnx.Function) bool { return f.Domain == n.Domain && f.Name == n.Type })
	domain := onnx.CanonicalDomain(n.Domain)
	return !isOwn && domain != "" && !strings.HasPrefix(domain, "ai.onnx.")
}

// isOthersToSay says whether somebody else knows better than the table of ATC's
// parser: a real CANN of its parser, whoever wrote a plugin of that.
func (c *checker) isOthersToSay(n soc.Node) bool { return c.env.decidesItself() || c.mayHavePlugin(n) }

// maxNamedOperators bounds how many operators a note lists.
const maxNamedOperators = 8

// unknownOperators notes the operators that are not in the table and that are not for
// us to refuse: those that compile only with a plugin, and, where a real CANN compiles,
// all others in one note, for at a new opset they are all there are.
func unknownOperators(c *checker) (out []Diagnosis) {
	var first refusedOperator
	var names []string
	for _, r := range c.refusedOperators() {
		switch {
		case c.mayHavePlugin(r.node):
			out = append(out, note("model", "--model=%s: node %q (%s.%s) needs a plugin for ATC's parser", c.value("model"), r.name, r.node.Domain, r.node.Type).
				about(r.name))
		case c.env.decidesItself():
			if len(names) == 0 {
				first = r
			}
			names = append(names, r.node.Type)
		}
	}
	if len(names) == 0 {
		return out
	}
	text := strings.Join(names[:min(len(names), maxNamedOperators)], ", ")
	if more := len(names) - maxNamedOperators; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return append(out, note("model", "--model=%s: %s: not in npuctl's table of ATC's parser (node %q: %s); %s will decide", c.value("model"), text, first.name, first.finding.Reason, c.env.Toolkit.name()).
		about(first.name).with("%s", first.finding.Remedy))
}
