package onnx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/onnx/schema"
	"github.com/npuctl/npuctl/onnx/tensor"
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
	// Declared says that the finding rests on a type that the file declares. Types in
	// between are often stale or wrong in files that every runtime runs, so this alone
	// is no reason to refuse a model.
	Declared bool
}

// String gives the finding as one line that names the node.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s", f.Severity, f.Node.Where(), f.Message)
}

// Validate holds every node against what its operator, or the local function it
// calls, asks for: how many inputs and outputs, which attributes of which kind and
// with which values, which types where these are known. No function may call itself.
// Operators that the schemas do not know are noted once each. The findings come in
// the order of the nodes.
func (m *Model) Validate() []Finding { return m.validate(true) }

// ValidateNodes is [Model.Validate] without a look at the types that the file
// declares: what it finds is true of the nodes whatever flows between them.
func (m *Model) ValidateNodes() []Finding { return m.validate(false) }

func (m *Model) validate(declared bool) []Finding {
	v := validator{
		noted: map[string]bool{}, declared: declared, functions: map[functionKey]*Function{},
		calls: map[*Function][]*Function{}, places: map[call]*Node{},
	}
	for _, f := range slices.Backward(m.Functions) { // of two with one name the first is called
		v.functions[functionKey{CanonicalDomain(f.Domain), f.Name, f.Overload}] = f
	}
	for n := range m.Nodes() {
		v.node = n
		if f := v.functions[functionKey{n.CanonicalDomain(), n.OpType, n.Overload}]; f != nil {
			v.call(f)
			continue
		}
		v.operator()
	}
	if caller, callee := recursion(m.Functions, v.calls); caller != nil {
		v.node = v.places[call{caller, callee}]
		v.add(Error, "by this call function %q calls itself, which ONNX forbids", callee.Name)
	}
	return v.findings
}

type validator struct {
	node      *Node
	declared  bool // look at declared types, too
	functions map[functionKey]*Function
	calls     map[*Function][]*Function // who calls whom
	places    map[call]*Node            // by which node
	noted     map[string]bool
	findings  []Finding
}

// call is one function's call of another.
type call struct{ caller, callee *Function }

func (v *validator) add(s Severity, format string, args ...any) {
	v.findings = append(v.findings, Finding{Severity: s, Node: v.node, Message: fmt.Sprintf(format, args...)})
}

// addDeclared adds an error that rests on a declared type.
func (v *validator) addDeclared(format string, args ...any) {
	v.add(Error, format, args...)
	v.findings[len(v.findings)-1].Declared = true
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
	v.arity("input", n.inputs, op.MinInputs, op.MaxInputs, op.Input)
	v.arity("output", n.outputs, op.MinOutputs, op.MaxOutputs, op.Output)
	v.attributes(op)
	if rule := nodeRules[n.OpType]; rule != nil && domain == "" {
		if problem := rule(n); problem != "" {
			v.add(Error, "%s", problem)
		}
	}
	if v.declared {
		v.types(op)
	}
}

// unknown speaks of an operator that its opset does not have. Files with one of a
// later opset are about: ONNX Runtime takes LayerNormalization before opset 17.
func (v *validator) unknown(domain string, opset int) {
	n := v.node
	if versions := schema.Versions(domain, n.OpType); len(versions) > 0 {
		v.add(Warning, "operator %s came with opset %d; the model imports %d", n.OpType, versions[0], opset)
		return
	}
	v.note(domain+"\x00"+n.OpType, "operator %s is none of domain %q, as far as known; it is opaque", n.OpType, n.Domain)
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
		case a.Kind() == 0 && a.Reference() != "":
			// Some writers leave the kind to the function's formal attribute.
		case a.Kind() != AttributeKind(formal.Kind):
			v.add(Error, "attribute %q is %s, not %s", a.name, article(a.Kind().String()), article(AttributeKind(formal.Kind).String()))
		case a.reference == "":
			v.attributeValue(a)
		}
	}
	for i := range op.Attributes {
		if a := &op.Attributes[i]; a.Required && !seen[a.Name] {
			v.add(Error, "attribute %q is missing", a.Name)
		}
	}
}

// attributeValues says of attributes, by name, which values no operator can mean,
// whatever its inputs are; "" for one that some can.
var attributeValues = map[string]func(*Attribute) string{
	"blocksize":    positive,
	"dilations":    positive,
	"group":        positive,
	"hidden_size":  positive,
	"kernel_shape": positive,
	"num_outputs":  positive,
	"perm":         permutation,
	"strides":      positive,
	"to":           elementType,
}

func (v *validator) attributeValue(a *Attribute) {
	if problem := a.holds(); problem != "" {
		v.add(Error, "attribute %q %s", a.name, problem)
		return
	}
	if v.node.CanonicalDomain() != "" {
		return
	}
	v.word(a)
	if wrong := attributeValues[a.name]; wrong != nil {
		if problem := wrong(a); problem != "" {
			v.add(Error, "attribute %q %s", a.name, problem)
		}
	}
}

func positive(a *Attribute) string {
	list := a.ints
	if a.Kind() == AttributeInt {
		list = []int64{a.integer}
	}
	for _, n := range list {
		if n < 1 {
			return fmt.Sprintf("holds %d, where a number must be at least 1", n)
		}
	}
	return ""
}

func permutation(a *Attribute) string {
	sorted := slices.Sorted(slices.Values(a.ints))
	for i, n := range sorted {
		if n != int64(i) {
			return fmt.Sprintf("is %v, no order of %s", a.ints[:min(len(a.ints), 8)], countedAxes(len(a.ints)))
		}
	}
	return ""
}

func countedAxes(n int) string {
	if n == 1 {
		return "1 axis"
	}
	return fmt.Sprintf("%d axes", n)
}

func elementType(a *Attribute) string {
	if a.Kind() == AttributeInt && (a.integer != int64(int32(a.integer)) || !tensor.Type(a.integer).Valid()) {
		return fmt.Sprintf("is %d, no element type that ONNX has (1 to %d)", a.integer, len(tensor.Types()))
	}
	return ""
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
				v.addDeclared("%s %d (%s) is %s, which %s does not take", what, i, p.Name, is, op.Name)
				continue
			}
			if p.Heterogeneous || strings.Contains(p.Type, "(") {
				continue
			}
			if first, ok := bound[p.Type]; ok && first != is {
				v.addDeclared("%s %d (%s) is %s, but must be of the same type as another, which is %s", what, i, p.Name, is, first)
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

// call holds a node against the local function it calls. An attribute without a
// default may be left out: what refers to it in the body is left out then, too.
func (v *validator) call(f *Function) {
	if caller := v.node.graph.Function(); caller != nil {
		v.calls[caller] = append(v.calls[caller], f)
		v.places[call{caller, f}] = v.node
	}
	if most := len(f.Body.inputs); len(v.node.inputs) > most {
		v.add(Error, "it has %s; function %s takes at most %d", counted(len(v.node.inputs), "input"), f.Name, most)
	}
	if most := len(f.Body.outputs); len(v.node.outputs) > most {
		v.add(Error, "it has %s; function %s makes %d", counted(len(v.node.outputs), "output"), f.Name, most)
	}
	for _, name := range f.Attributes {
		if v.node.Attribute(name) == nil {
			v.add(Warning, "attribute %q is missing, which function %s needs", name, f.Name)
		}
	}
	for _, a := range v.node.attributes {
		if !slices.Contains(f.Attributes, a.name) && !slices.ContainsFunc(f.Defaults, func(d *Attribute) bool { return d.name == a.name }) {
			v.add(Warning, "function %s has no attribute %q", f.Name, a.name)
		}
	}
}
