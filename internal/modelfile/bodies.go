package modelfile

import (
	"fmt"

	"github.com/npuctl/npuctl/internal/terminal"
	"github.com/npuctl/npuctl/onnx"
)

// bodyRules holds the nodes that run graphs inside them against these: how many values
// go in and come out. No runtime takes a body that does not fit.
var bodyRules = map[string]func(*onnx.Node) string{
	"If": fitsIf, "Loop": fitsLoop, "Scan": fitsScan,
}

// checkBodies finds the first node whose body does not fit it.
func checkBodies(m *onnx.Model) error {
	for n := range m.Nodes() {
		rule := bodyRules[n.OpType]
		if rule == nil || n.CanonicalDomain() != "" {
			continue
		}
		if problem := rule(n); problem != "" {
			return fmt.Errorf("%s: %s", n.Where(), problem)
		}
	}
	return nil
}

func bodyOf(n *onnx.Node, name string) *onnx.Graph {
	if a := n.Attribute(name); a != nil {
		return a.Graph()
	}
	return nil
}

func fitsIf(n *onnx.Node) string {
	then, otherwise := bodyOf(n, "then_branch"), bodyOf(n, "else_branch")
	if then == nil || otherwise == nil {
		return ""
	}
	a, b := len(then.Outputs()), len(otherwise.Outputs())
	switch {
	case a != b:
		return fmt.Sprintf("its branches do not give the same: then_branch has %s, else_branch %d", terminal.Counted(a, "output"), b)
	case given(n) > a:
		return fmt.Sprintf("it has %s, and its branches give %d", terminal.Counted(given(n), "output"), a)
	}
	return ""
}

// fitsLoop: a body gets the turn, the condition and what is carried, and gives the
// condition, what is carried, and what is collected.
func fitsLoop(n *onnx.Node) string {
	body := bodyOf(n, "body")
	if body == nil || len(n.Inputs()) < 2 {
		return ""
	}
	carried := len(n.Inputs()) - 2
	in, out := len(body.Inputs()), len(body.Outputs())
	switch {
	case in != carried+2:
		return fmt.Sprintf("its body has %s; with %s carried from turn to turn it needs %d", terminal.Counted(in, "input"), terminal.Counted(carried, "value"), carried+2)
	case out < carried+1 || given(n) > out-1:
		return fmt.Sprintf("its body has %s; it needs %d", terminal.Counted(out, "output"), 1+max(carried, given(n)))
	}
	return ""
}

// fitsScan: since opset 9 all inputs of the node are states and sequences, as are those of the body.
func fitsScan(n *onnx.Node) string {
	const opsetWithoutLengths = 9
	body := bodyOf(n, "body")
	if body == nil || n.Opset() < opsetWithoutLengths {
		return ""
	}
	states := len(n.Inputs()) - int(n.Int("num_scan_inputs", 0))
	in, out := len(body.Inputs()), len(body.Outputs())
	switch {
	case states < 0:
		return fmt.Sprintf("num_scan_inputs is %d, and it has %s", n.Int("num_scan_inputs", 0), terminal.Counted(len(n.Inputs()), "input"))
	case in != len(n.Inputs()):
		return fmt.Sprintf("it has %s, and its body %d", terminal.Counted(len(n.Inputs()), "input"), in)
	case out < states || given(n) > out:
		return fmt.Sprintf("its body has %s; it needs %d", terminal.Counted(out, "output"), max(states, given(n)))
	}
	return ""
}

// given counts the outputs of a node, without those at the end that have no name.
func given(n *onnx.Node) int {
	count := len(n.Outputs())
	for count > 0 && n.Outputs()[count-1] == nil {
		count--
	}
	return count
}
