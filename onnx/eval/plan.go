package eval

import (
	"sync"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// plan is all that has to be known of a graph to run it: where values lie, what
// each node calls, and when values can be let go. It does not change.
type plan struct {
	graph    *onnx.Graph
	slots    int               // values a frame has room for
	defaults []*storedConstant // by graph input, whose slots are the first ones; nil for one without a default
	steps    []step
	outputs  []source
	// reads and writes are the largest numbers of inputs and outputs of a step.
	reads, writes int
	// optional says that inputs may be absent: those of a function.
	optional bool
	// refers says that a node takes an attribute from the function around.
	refers bool
	// unfolded is what the graph's sparse tensors take as dense ones.
	unfolded int64
}

// step is one node of a plan.
type step struct {
	node    *onnx.Node
	opset   int
	run     Kernel         // nil when callee is set, or there is no kernel
	callee  *onnx.Function // the local function that the node calls
	inputs  []source
	outputs []int // slots; -1 for one left out
	release []int // slots that nothing reads after this step
	kept    *kept // what the kernel keeps from run to run
}

// source says where a value is read from.
type source struct {
	constant *storedConstant // the value never changes
	up, slot int             // else the slot of the frame so many further out; slot -1 is an input left out
	outside  *onnx.Value     // else a value of a graph that is not run
}

// storedConstant is a stored tensor, decoded when first used and then kept.
type storedConstant struct {
	tensor *onnx.Tensor
	once   sync.Once
	value  *tensor.Dense
	err    error
}

func (c *storedConstant) load() (*tensor.Dense, error) {
	c.once.Do(func() { c.value, c.err = c.tensor.Dense() })
	return c.value, c.err
}

// kept is what one step keeps for the life of the program: see [Call.Once].
type kept struct {
	once  sync.Once
	value any
	err   error
}

// plans holds the plan of every graph that can be reached.
type plans map[*onnx.Graph]*plan

// planner makes the plan of one graph.
type planner struct {
	plans     plans
	table     operatorTable
	plan      *plan
	outer     *planner // plans the graph around; nil for a main graph, a function body and a folded node's
	slots     map[*onnx.Value]int
	constants map[*onnx.Value]*storedConstant
	reads     []int // slots that the node at hand reads, itself or inside its subgraphs
}

// add plans g and the graphs inside it.
func (ps plans) add(g *onnx.Graph, table operatorTable, outer *planner) *plan {
	p := &planner{
		plans: ps, table: table, outer: outer, plan: &plan{graph: g, optional: g.Function() != nil && g.Owner() == nil},
		slots: map[*onnx.Value]int{}, constants: map[*onnx.Value]*storedConstant{},
	}
	ps[g] = p.plan
	p.define()
	nodes := g.Nodes()
	p.plan.steps = make([]step, 0, len(nodes))
	reads := make([][]int, 0, len(nodes))
	for _, n := range nodes {
		if p.addConstant(n) {
			continue
		}
		p.reads = nil
		p.plan.steps = append(p.plan.steps, p.step(n))
		reads = append(reads, p.reads)
	}
	p.reads = nil
	for _, v := range g.Outputs() {
		p.plan.outputs = append(p.plan.outputs, p.find(v))
	}
	p.plan.planReleases(reads, p.reads)
	return p.plan
}

// define gives inputs slots, and initializers that nobody can set a constant.
func (p *planner) define() {
	for _, v := range p.plan.graph.Inputs() {
		var otherwise *storedConstant
		if t := v.Initializer(); t != nil {
			otherwise = p.newConstant(t)
		}
		p.plan.defaults = append(p.plan.defaults, otherwise)
		if otherwise != nil && isFixed(v) {
			p.constants[v] = otherwise
		}
		p.newSlot(v)
	}
	for _, v := range p.plan.graph.Initializers() {
		if !v.IsInput() {
			p.constants[v] = p.newConstant(v.Initializer())
		}
	}
}

// isFixed says whether a graph input is one by formality only: before IR version 4
// all initializers of the main graph had to be listed as inputs.
func isFixed(v *onnx.Value) bool {
	return v.Constant() != nil && v.Graph().Owner() == nil
}

func (p *planner) newSlot(v *onnx.Value) int {
	slot := p.plan.slots
	p.slots[v] = slot
	p.plan.slots++
	return slot
}

func (p *planner) newConstant(t *onnx.Tensor) *storedConstant {
	if t.IsSparse() {
		p.plan.unfolded += t.Bytes()
	}
	return &storedConstant{tensor: t}
}

// addConstant takes the value of a Constant node, which then need not run.
func (p *planner) addConstant(n *onnx.Node) bool {
	t := n.ConstantValue()
	if t == nil || n.Output(0) == nil {
		return false
	}
	p.constants[n.Output(0)] = p.newConstant(t)
	return true
}

func (p *planner) step(n *onnx.Node) step {
	s := step{node: n, opset: n.Opset(), kept: &kept{}, callee: n.Model().Callee(n)}
	if s.callee == nil {
		s.run = p.table.lookup(n)
	} else if _, planned := p.plans[s.callee.Body]; !planned {
		p.plans.add(s.callee.Body, p.table, nil)
	}
	p.plan.refers = p.plan.refers || n.HasReferences()
	for _, v := range n.Inputs() {
		s.inputs = append(s.inputs, p.find(v))
	}
	for _, g := range n.Subgraphs() {
		p.plans.add(g, p.table, p)
	}
	for _, v := range n.Outputs() {
		slot := -1
		if v != nil {
			slot = p.newSlot(v)
		}
		s.outputs = append(s.outputs, slot)
	}
	p.plan.reads = max(p.plan.reads, len(s.inputs))
	p.plan.writes = max(p.plan.writes, len(s.outputs))
	return s
}

// find says where v is read from, and notes the reading with the graph that owns it.
func (p *planner) find(v *onnx.Value) source {
	if v == nil {
		return source{slot: -1}
	}
	up := 0
	for q := p; q != nil; q = q.outer {
		if c := q.constants[v]; c != nil {
			return source{constant: c}
		}
		if slot, ok := q.slots[v]; ok {
			q.reads = append(q.reads, slot)
			return source{up: up, slot: slot}
		}
		up++
	}
	return source{outside: v}
}

// planReleases finds for every slot the step after which nothing reads it. reads
// lists the slots that each step reads; outputs those that outlive all steps.
func (p *plan) planReleases(reads [][]int, outputs []int) {
	done := make([]bool, p.slots)
	for _, slot := range outputs {
		done[slot] = true
	}
	for i := len(p.steps) - 1; i >= 0; i-- {
		s := &p.steps[i]
		for _, slots := range [2][]int{reads[i], s.outputs} {
			for _, slot := range slots {
				if slot >= 0 && !done[slot] {
					done[slot] = true
					s.release = append(s.release, slot)
				}
			}
		}
	}
}
