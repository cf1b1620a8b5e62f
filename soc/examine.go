package soc

import (
	"fmt"
	"math"
)

// Node is what a finding needs to know of a node: its operator, and the opset
// version that the model imports for the operator's domain.
type Node struct {
	Name         string
	Domain, Type string
	Opset        int
}

// Kind is what a finding means for the model.
type Kind string

// The kinds, the worst first.
const (
	Refused  Kind = "refused"  // the parser does not take the node; compiling fails
	Unproven Kind = "unproven" // parsed, but nobody has shown a kernel
	DataSize Kind = "dynamic"  // its output's shape depends on values
	OffCore  Kind = "aicpu"    // computed by the AI CPU
)

// Finding is something about a node that keeps it off the AI Core, or the model off
// the chip.
type Finding struct {
	Node int // index in what was examined
	Kind Kind
	// Code is what the compiler reports; empty when it does not complain.
	Code   string
	Reason string // a sentence without the node's name
	Remedy string // what to do; empty when nothing is known
}

// The range of opsets of ai.onnx that the parser knows, and the one with the fewest
// gaps in it.
const (
	OldestOpset    = 8
	NewestOpset    = 18
	preferredOpset = 17
)

// The compiler's codes.
const (
	codeNoPlugin = "E13010" // the parser does not know the operator
	codeNoKernel = "EZ3003" // no engine takes the node
)

// Examine looks at the nodes of a model and says which of them a family cannot hold,
// and why. It knows operators, not attributes and types: a node without a finding may
// still be refused for those (see Operator.RefusedWhen and CoreTypes). On families
// without rows on engines only what the parser refuses is found.
func Examine(family FamilyName, nodes []Node) []Finding {
	var findings []Finding
	for i, n := range nodes {
		for _, f := range examine(FamilyOf(family), n) {
			f.Node = i
			findings = append(findings, f)
		}
	}
	return findings
}

// Refusals are the findings that make compiling fail, on whatever chip.
func Refusals(nodes []Node) []Finding {
	return Examine("", nodes)
}

func examine(family Family, n Node) []Finding {
	o, err := LookupOperator(n.Domain, n.Type)
	if err != nil {
		return []Finding{{Kind: Refused, Code: codeNoPlugin, Reason: err.Error(), Remedy: unknownRemedy(n)}}
	}
	if !o.Opsets.Has(n.Opset) {
		return []Finding{o.opsetFinding(n)}
	}
	if !family.Engines {
		return nil
	}
	var findings []Finding
	switch o.Engine(family.Name) {
	case Unknown:
		findings = append(findings, Finding{Kind: Unproven, Code: codeNoKernel, Remedy: o.Remedy,
			Reason: fmt.Sprintf("no kernel for %s is known on %s", n.Type, family.Name)})
	case CPUOnly:
		findings = append(findings, Finding{Kind: OffCore, Remedy: o.Remedy,
			Reason: fmt.Sprintf("%s has a kernel for the AI CPU only on %s", n.Type, family.Name)})
	}
	if o.DataShape {
		findings = append(findings, Finding{Kind: DataSize, Remedy: o.Remedy,
			Reason: fmt.Sprintf("the shape of what %s gives depends on values, so the model is not static", n.Type)})
	}
	return findings
}

// unknownRemedy is for operators that the table has no row of.
func unknownRemedy(n Node) string {
	if fullDomain(n.Domain) == standardDomain {
		return ""
	}
	return fmt.Sprintf("write the operators of domain %q with those of ONNX, or expand the function if it is one of the model's own", n.Domain)
}

// opsetFinding says why the parser does not take an operator that the table has.
func (o Operator) opsetFinding(n Node) Finding {
	f := Finding{Kind: Refused, Code: codeNoPlugin, Remedy: o.Remedy}
	standard := o.Domain == standardDomain
	switch {
	case len(o.Opsets) == 0:
		f.Reason = fmt.Sprintf("CANN's parser does not know %s, at no opset", n.Type)
	case standard && n.Opset > NewestOpset:
		f.Reason = fmt.Sprintf("the model imports opset %d; CANN's parser knows %s at %v and takes no other", n.Opset, n.Type, o.Opsets)
		f.Remedy = o.convert(preferredOpset)
	case standard && n.Opset < OldestOpset:
		f.Reason = fmt.Sprintf("the model imports opset %d; CANN's parser begins at %d", n.Opset, OldestOpset)
		f.Remedy = o.convert(preferredOpset)
	default:
		f.Reason = fmt.Sprintf("CANN's parser knows %s at opset %v, not at %d", n.Type, o.Opsets, n.Opset)
		if f.Remedy == "" {
			f.Remedy = o.convert(n.Opset)
		}
	}
	return f
}

// convert names the opset nearest to a wish at which the operator is known.
func (o Operator) convert(wish int) string {
	return fmt.Sprintf("convert the model to opset %d", o.Opsets.nearest(wish))
}

// nearest gives the version closest to another one.
func (s Opsets) nearest(version int) int {
	best, distance := 0, math.MaxInt
	for _, r := range s {
		near := min(max(version, r.First), r.Last)
		if d := max(near-version, version-near); d < distance {
			best, distance = near, d
		}
	}
	return best
}
