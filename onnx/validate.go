package onnx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/onnx/schema"
)

// Severity says how bad a finding is.
type Severity int

const (
	// Note is something to know: nobody here can say more of that operator.
	Note Severity = iota
	// Warning is something runtimes may refuse or read differently.
	Warning
	// Error breaks the specification of the operator.
	Error
)

var severityNames = [...]string{Note: "note", Warning: "warning", Error: "error"}

// String gives the severity as a word.
func (s Severity) String() string { return severityNames[s] }

// Finding is one thing that [Model.Validate] has to say of a node.
type Finding struct {
	Severity Severity
	Node     *Node
	Message  string
}

// String gives the finding as one line that names the node.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s", f.Severity, f.Node.Where(), f.Message)
}

// Validate holds every node against what its operator, or the local function it
// calls, asks for: how many inputs and outputs, which attributes of which kind,
// which types where these are known. Operators that the schemas do not know are
// noted once each. The findings come in the order of the nodes.
func (m *Model) Validate() []Finding {
	v := validator{noted: map[string]bool{}}
	for n := range m.Nodes() {
		v.node = n
		if f := m.Callee(n); f != nil {
			v.call(f)
			continue
		}
		v.operator()
	}
	return v.findings
}

type validator struct {
	node     *Node
	noted    map[string]bool
	findings []Finding
}

func (v *validator) add(s Severity, format string, args ...any) {
	v.findings = append(v.findings, Finding{s, v.node, fmt.Sprintf(format, args...)})
}

// note says something of an operator or domain the first time it comes up.
func (v *validator) note(about, format string, args ...any) {
	if !v.noted[about] {
		v.noted[about] = true
		v.add(Note, format, args...)
	}
}

func (v *validator) operator() {
	n := v.node
	domain, opset := n.CanonicalDomain(), n.Opset()
	newest := schema.Newest(domain)
	switch {
	case n.OpType == "":
		v.add(Error, "it names no operator")
		return
	case opset == 0:
		v.add(Error, "the model, or function, imports no opset for its domain %q", n.Domain)
		return
	case newest == 0:
		v.note(domain+"\x00"+n.OpType, "operator %s of domain %q is opaque: nothing is known of it", n.OpType, n.Domain)
		return
	case opset > newest:
		v.note(domain, "opset %d of domain %q is newer than the newest known, %d; its operators are taken as in that one", opset, n.Domain, newest)
	}
	op, ok := schema.Lookup(domain, n.OpType, opset)
	if !ok {
		v.unknown(domain, opset)
		return
	}
	if op.Deprecated {
		v.add(Warning, "operator %s is deprecated in opset %d", n.OpType, opset)
	}
	v.arity("inputs", n.inputs, op.MinInputs, op.MaxInputs, op.Input)
	v.arity("outputs", n.outputs, op.MinOutputs, op.MaxOutputs, op.Output)
	v.attributes(op)
	v.types(op)
}

func (v *validator) unknown(domain string, opset int) {
	n := v.node
	if versions := schema.Versions(domain, n.OpType); len(versions) > 0 {
		v.add(Error, "operator %s came with opset %d; the model imports %d", n.OpType, versions[0], opset)
		return
	}
	v.note(domain+"\x00"+n.OpType, "operator %s is none of domain %q, as far as known; it is opaque", n.OpType, n.Domain)
}

func (v *validator) arity(what string, values []*Value, least, most int, parameter func(int) (*schema.Parameter, bool)) {
	given := len(values)
	for given > 0 && values[given-1] == nil {
		given--
	}
	if given < least || given > most {
		v.add(Error, "it has %d %s; %s takes %s", given, what, v.node.OpType, countRange(least, most))
		return
	}
	for i := range given {
		p, ok := parameter(i)
		if ok && values[i] == nil && p.Option == schema.Single && what == "inputs" {
			v.add(Error, "input %d (%s) is left out, but not optional", i, p.Name)
		}
	}
}

func countRange(least, most int) string {
	switch {
	case least == most:
		return fmt.Sprint(least)
	case most == schema.Unbounded:
		return fmt.Sprintf("at least %d", least)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

func (v *validator) attributes(op *schema.Operator) {
	seen := map[string]bool{}
	for _, a := range v.node.attributes {
		if seen[a.name] {
			v.add(Error, "attribute %q is given twice", a.name)
		}
		seen[a.name] = true
		formal, ok := op.Attribute(a.name)
		switch {
		case !ok:
			v.add(Warning, "%s has no attribute %q in opset %d", op.Name, a.name, v.node.Opset())
		case a.Kind() != AttributeKind(formal.Kind):
			v.add(Error, "attribute %q is of kind %d, not %d", a.name, a.Kind(), formal.Kind)
		}
	}
	for i := range op.Attributes {
		if a := &op.Attributes[i]; a.Required && !seen[a.Name] {
			v.add(Error, "attribute %q is missing", a.Name)
		}
	}
}

// types holds the known types of inputs and outputs against what the parameters
// allow, and those that share a type variable against each other.
func (v *validator) types(op *schema.Operator) {
	bound := map[string]string{}
	check := func(what string, values []*Value, parameter func(int) (*schema.Parameter, bool)) {
		for i, value := range values {
			p, ok := parameter(i)
			if !ok || value == nil || value.Type == nil {
				continue
			}
			is := specName(value.Type)
			if is == "" {
				continue
			}
			if allowed := op.AllowedTypes(p); !slices.Contains(allowed, is) {
				v.add(Error, "%s %d (%s) is %s, which %s does not take", what, i, p.Name, is, op.Name)
				continue
			}
			if p.Heterogeneous || strings.Contains(p.Type, "(") {
				continue
			}
			if first, ok := bound[p.Type]; ok && first != is {
				v.add(Error, "%s %d (%s) is %s, but must be of the same type as another, which is %s", what, i, p.Name, is, first)
			}
			bound[p.Type] = is
		}
	}
	check("input", v.node.inputs, op.Input)
	check("output", v.node.outputs, op.Output)
}

// specName writes a type as the specification of operators does, without shapes;
// "" for one it has no name for.
func specName(t *Type) string {
	switch {
	case t == nil:
		return ""
	case t.Kind == KindTensor && t.Elem.Valid():
		return "tensor(" + strings.ToLower(t.Elem.String()) + ")"
	case t.Kind == KindSequence && t.Inner != nil:
		return "seq(" + specName(t.Inner) + ")"
	case t.Kind == KindOptional && t.Inner != nil:
		return "optional(" + specName(t.Inner) + ")"
	case t.Kind == KindMap && t.Inner != nil:
		return "map(" + strings.ToLower(t.Elem.String()) + "," + specName(t.Inner) + ")"
	}
	return ""
}

// call holds a node against the local function it calls.
func (v *validator) call(f *Function) {
	if most := len(f.Body.inputs); len(v.node.inputs) > most {
		v.add(Error, "it has %d inputs; function %s takes at most %d", len(v.node.inputs), f.Name, most)
	}
	if most := len(f.Body.outputs); len(v.node.outputs) > most {
		v.add(Error, "it has %d outputs; function %s makes %d", len(v.node.outputs), f.Name, most)
	}
	for _, name := range f.Attributes {
		if v.node.Attribute(name) == nil {
			v.add(Error, "attribute %q is missing, which function %s needs", name, f.Name)
		}
	}
	for _, a := range v.node.attributes {
		if !slices.Contains(f.Attributes, a.name) && !slices.ContainsFunc(f.Defaults, func(d *Attribute) bool { return d.name == a.name }) {
			v.add(Warning, "function %s has no attribute %q", f.Name, a.name)
		}
	}
}
