// Package schema knows what the ONNX specification says of every operator of its
// own domains, in every version: how many inputs and outputs, which are optional,
// which types are allowed, which attributes exist and what they default to.
//
// Whoever must not guess asks here. Merging equal nodes needs the defaults of the
// attributes that were left out; validation needs arity, attribute kinds and
// types; a pass that writes a new node needs the form of the graph's own opset.
// What an operator computes is not told here: see packages infer and eval.
//
// The facts come from the schemas that the onnx Python package carries and lie in
// table.go, which generate.py writes. They are plain composite literals, so the
// linker lays them out and the package has no start-up cost. Everything returned
// points into that table: read it, never change it.
//
// What the schemas do not say is not here either: defaults that only the prose
// states (ConstantOfShape's value) or that follow from a shape (Conv's strides),
// limits on the values of attributes, and whether a Dropout or BatchNormalization
// is in training mode, which the caller reads off the node. One default of the
// schemas is missing because no Go constant can hold it: the negative zero of
// LabelEncoder's default_float.
package schema

//go:generate python3 generate.py

import (
	"math"
	"slices"
	"sort"
	"strings"
)

// Unbounded is the MaxInputs or MaxOutputs of an operator whose last parameter is
// variadic.
const Unbounded = math.MaxInt32

// Operator is one version of one operator.
type Operator struct {
	Domain string // "" for the default domain
	Name   string
	Since  int // the opset of its domain that brought this version

	// Deprecated marks a version that models of that opset should not use: either
	// the operator ended here (Upsample 10) or upstream withdrew the version in
	// favour of a later one (GroupNormalization 18). Such nodes exist in the wild.
	Deprecated   bool
	Experimental bool
	// Function is set when the specification gives a body in terms of other
	// operators, whether fixed or depending on the node.
	Function bool
	// Determinism is upstream's own flag. It calls If, Loop, Scan and every Dropout
	// non-deterministic, as they may be; for operators that always draw numbers ask
	// NonDeterministic.
	Determinism Determinism

	// A node has between MinInputs and MaxInputs inputs; optional ones in between
	// may be left out by an empty name. The same holds for outputs.
	MinInputs, MaxInputs   int
	MinOutputs, MaxOutputs int

	Inputs, Outputs []Parameter
	Attributes      []Attribute      // sorted by name
	Types           []TypeConstraint // in the specification's order
}

// Parameter is a formal input or output. Only the last one can be variadic.
type Parameter struct {
	Name   string
	Option Option
	// Heterogeneous is set on a variadic parameter whose actual values may differ
	// in type from each other (the inputs of Loop); all others agree.
	Heterogeneous bool
	// Type is the name of a constraint of the operator ("T") or a type in ONNX's
	// notation ("tensor(int64)"); see Operator.AllowedTypes.
	Type string
}

// Option says how often a parameter may occur.
type Option uint8

const (
	Single   Option = iota // exactly once
	Optional               // once, or left out
	Variadic               // any number from the arity's minimum on
)

// TypeConstraint lists the types that a type variable of an operator can take.
// Parameters that share the variable have the same type.
//
// Types are written as the specification writes them, nested and without spaces:
// tensor(float), sparse_tensor(E), seq(T), optional(T), map(int64,tensor(float)).
type TypeConstraint struct {
	Name    string
	Allowed []string // sorted
}

// Attribute is a formal attribute.
type Attribute struct {
	Name     string
	Kind     AttributeKind
	Required bool
	Default  *Value // nil when the schema gives none
}

// Value is an attribute's default; the field that belongs to the kind is set.
type Value struct {
	Int     int64
	Float   float32
	String  string
	Ints    []int64
	Strings []string
}

// AttributeKind is the type of an attribute, numbered like AttributeProto.AttributeType.
type AttributeKind int32

const (
	KindFloat        AttributeKind = 1
	KindInt          AttributeKind = 2
	KindString       AttributeKind = 3
	KindTensor       AttributeKind = 4
	KindGraph        AttributeKind = 5
	KindFloats       AttributeKind = 6
	KindInts         AttributeKind = 7
	KindStrings      AttributeKind = 8
	KindSparseTensor AttributeKind = 11
	KindTypeProto    AttributeKind = 13
)

// Determinism is what a schema declares about equal inputs giving equal outputs.
type Determinism uint8

const (
	Deterministic Determinism = iota
	NotDeterministic
	DeterminismUnknown
)

// CanonicalDomain maps the two spellings of the default domain, "" and "ai.onnx",
// to the first and returns every other domain as it is.
func CanonicalDomain(domain string) string {
	if domain == "ai.onnx" {
		return ""
	}
	return domain
}

// Lookup returns the version of an operator that a model importing the given opset
// of the domain means: the newest that is not newer than the opset. It returns
// false when the operator is unknown or came later. An opset beyond Newest(domain)
// gets the newest known version; the caller decides whether that is good enough.
func Lookup(domain, name string, opset int) (*Operator, bool) {
	domain = CanonicalDomain(domain)
	after := firstAfter(domain, name, opset)
	if after == 0 {
		return nil, false
	}
	operator := &operators[after-1]
	if operator.Domain != domain || operator.Name != name {
		return nil, false
	}
	return operator, true
}

// firstAfter returns the index of the first row that sorts after the given version.
func firstAfter(domain, name string, opset int) int {
	return sort.Search(len(operators), func(i int) bool {
		row := &operators[i]
		if row.Name != name && row.Domain == domain {
			return row.Name > name
		}
		return row.Domain > domain || row.Domain == domain && row.Since > opset
	})
}

// Versions returns the opsets that brought a version of the operator, ascending;
// none when the operator is unknown.
func Versions(domain, name string) []int {
	domain = CanonicalDomain(domain)
	var versions []int
	for i := firstAfter(domain, name, 0); i < len(operators); i++ {
		row := &operators[i]
		if row.Domain != domain || row.Name != name {
			break
		}
		versions = append(versions, row.Since)
	}
	return versions
}

// Names returns the names of a domain's operators in every version, sorted, for
// listings and for suggesting the near one to a misspelt one; none when the domain
// is unknown.
func Names(domain string) []string {
	domain = CanonicalDomain(domain)
	var names []string
	for i := range operators {
		row := &operators[i]
		if row.Domain == domain && (len(names) == 0 || names[len(names)-1] != row.Name) {
			names = append(names, row.Name)
		}
	}
	return names
}

// domainVersion is a domain with the highest opset that is known of it.
type domainVersion struct {
	domain string
	newest int
}

// Domains returns the domains in the table, sorted, the default domain as "".
func Domains() []string {
	names := make([]string, len(domains))
	for i, row := range domains {
		names[i] = row.domain
	}
	return names
}

// Newest returns the highest opset known of a domain, 0 when the domain is unknown.
func Newest(domain string) int {
	domain = CanonicalDomain(domain)
	for _, row := range domains {
		if row.domain == domain {
			return row.newest
		}
	}
	return 0
}

// Attribute returns the formal attribute of that name.
func (o *Operator) Attribute(name string) (*Attribute, bool) {
	i, found := slices.BinarySearchFunc(o.Attributes, name, func(a Attribute, name string) int {
		return strings.Compare(a.Name, name)
	})
	if !found {
		return nil, false
	}
	return &o.Attributes[i], true
}

// Input returns the formal parameter that the actual input at index i stands for;
// a variadic parameter takes all that are left.
func (o *Operator) Input(i int) (*Parameter, bool) {
	return parameterAt(o.Inputs, i)
}

// Output returns the formal parameter of the actual output at index i, like Input.
func (o *Operator) Output(i int) (*Parameter, bool) {
	return parameterAt(o.Outputs, i)
}

func parameterAt(parameters []Parameter, i int) (*Parameter, bool) {
	last := len(parameters) - 1
	if i < 0 || last < 0 {
		return nil, false
	}
	if i > last && parameters[last].Option == Variadic {
		i = last
	}
	if i > last {
		return nil, false
	}
	return &parameters[i], true
}

// AllowedTypes returns the types that a value given for the parameter may have, in
// ONNX's notation.
func (o *Operator) AllowedTypes(parameter *Parameter) []string {
	for i := range o.Types {
		if o.Types[i].Name == parameter.Type {
			return o.Types[i].Allowed
		}
	}
	return []string{parameter.Type}
}

// NonDeterministic reports whether the operator draws random numbers, in any
// version, so that two equal nodes need not have equal results and none may be
// computed ahead. Dropout and BatchNormalization are not among them: their
// training mode is a property of the node.
func NonDeterministic(domain, name string) bool {
	return CanonicalDomain(domain) == "" && slices.Contains(randomOperators[:], name)
}

var randomOperators = [...]string{
	"Bernoulli",
	"Multinomial",
	"RandomNormal",
	"RandomNormalLike",
	"RandomUniform",
	"RandomUniformLike",
}
