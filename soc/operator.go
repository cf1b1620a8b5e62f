package soc

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/npuctl/npuctl/internal/suggest"
)

// operatorRows is the table of operators: one line each, columns as the first line
// names them, "-" for nothing to say. Opsets are those the parser has, exactly: it
// never looks for an older one. Engine columns are for the main operator where one
// ONNX operator becomes several. Core types are those of the AI Core: "*" where the
// operator's own code decides, "~" behind a list that only an old package gives.
//
//go:embed operators.tsv
var operatorRows string

// Engine is what computes an operator on a family.
type Engine string

// The engines.
const (
	CoreOnly Engine = "aicore"  // AI Core; no other kernel was seen
	CoreOr   Engine = "both"    // AI Core for the listed types, AI CPU for others
	CPUOnly  Engine = "aicpu"   // AI CPU: right, but slow
	Host     Engine = "host"    // no kernel: removed, folded or control flow
	NoEngine Engine = "none"    // the parser does not know the operator
	Unknown  Engine = "unknown" // nobody has said
)

// Confidence says how well a row is supported.
type Confidence string

// The confidences.
const (
	High   Confidence = "high"   // two sources of different kind agree
	Medium Confidence = "medium" // one good source
	Low    Confidence = "low"    // old, indirect, or of one family only
)

// Types are the element types that the AI Core takes for an operator.
type Types struct {
	// Names are as in the tables of the vendor: f16, bf16, i64, u8, bool, …; empty
	// when nobody lists them.
	Names []string
	// ByCode is set when the operator's own code decides and no list exists.
	ByCode bool
	// Old is set when only a package of 2021 lists them.
	Old bool
}

// shortTypes are the table's names of ONNX's types.
var shortTypes = map[string]string{
	"float16": "f16", "bfloat16": "bf16", "float": "f32", "float32": "f32", "double": "f64", "float64": "f64",
	"int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "int4": "i4",
	"uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "bool",
}

// Has tells whether the AI Core takes an element type by its ONNX or NumPy name.
// known is false when no list says.
func (t Types) Has(dtype string) (has, known bool) {
	if len(t.Names) == 0 {
		return false, false
	}
	return slices.Contains(t.Names, shortTypes[strings.ToLower(dtype)]), true
}

// Operator is what is known of an ONNX operator on Ascend.
type Operator struct {
	Domain string // "ai.onnx", "npu", "mmdeploy"
	Name   string
	// Opsets are the opset versions for which the parser knows the operator, exactly.
	Opsets Opsets
	// Custom marks operators of the vendor that ONNX does not have.
	Custom bool
	// GEOperators are what it can become in the compiled graph.
	GEOperators []string
	// DataShape is set when the shape of its result depends on values: the model
	// cannot be static.
	DataShape  bool
	Confidence Confidence
	// ConstantInputs must be constants, or the model is not static.
	ConstantInputs []string
	// RefusedWhen says in which forms the parser refuses it all the same, and Ignored
	// which attributes it drops without a word.
	RefusedWhen, Ignored string
	// Remedy is what to do when it is not known or slow; empty when nothing is known.
	Remedy string

	engines map[FamilyName]Engine
	core    map[FamilyName]Types
}

// Engine says what computes the operator on a family; Unknown for families that the
// table has no column for.
func (o Operator) Engine(f FamilyName) Engine {
	if e, ok := o.engines[f]; ok {
		return e
	}
	if len(o.Opsets) == 0 {
		return NoEngine // the parser is the same everywhere
	}
	return Unknown
}

// CoreTypes gives the element types that the AI Core of a family takes.
func (o Operator) CoreTypes(f FamilyName) Types { return o.core[f] }

// Opsets is a set of versions as ranges.
type Opsets []struct{ First, Last int }

// Has tells whether a version is among them.
func (s Opsets) Has(version int) bool {
	for _, r := range s {
		if r.First <= version && version <= r.Last {
			return true
		}
	}
	return false
}

// anyVersion ends a range without end.
const anyVersion = 1 << 30

// String writes them as 8-16,18.
func (s Opsets) String() string {
	parts := make([]string, len(s))
	for i, r := range s {
		switch {
		case r.First == r.Last:
			parts[i] = strconv.Itoa(r.First)
		case r.Last == anyVersion:
			parts[i] = fmt.Sprintf("%d and up", r.First)
		default:
			parts[i] = fmt.Sprintf("%d-%d", r.First, r.Last)
		}
	}
	return strings.Join(parts, ",")
}

// operatorKey finds a row.
type operatorKey struct{ domain, name string }

// operators is the table, read when it is first asked.
var operators = sync.OnceValue(func() map[operatorKey]Operator {
	table := map[operatorKey]Operator{}
	rows := strings.Split(strings.TrimSpace(operatorRows), "\n")
	columns := strings.Split(rows[0], "\t")
	for _, row := range rows[1:] {
		cells := map[string]string{}
		for i, cell := range strings.Split(row, "\t") {
			if cell != "-" && i < len(columns) {
				cells[columns[i]] = cell
			}
		}
		o := readOperator(cells)
		table[operatorKey{o.Domain, o.Name}] = o
	}
	return table
})

// engineColumns name the columns of the families that the table knows. The two
// families with the same core share their types.
var engineColumns = []struct {
	family        FamilyName
	engine, types string
}{
	{Family310P, "310p", "core_310p"},
	{Family910, "910", "core_910"},
	{Family910B, "910b", "core_910b"},
	{FamilyA3, "910_93", "core_910b"},
}

func readOperator(cells map[string]string) Operator {
	o := Operator{
		Domain: cells["domain"], Name: cells["operator"], Opsets: readOpsets(cells["opsets"]),
		Custom: cells["origin"] == "ascend", GEOperators: list(cells["ge_operators"]),
		DataShape: cells["shape"] == "data", Confidence: Confidence(cells["confidence"]),
		ConstantInputs: list(cells["constant_inputs"]), RefusedWhen: cells["refused_when"],
		Ignored: cells["ignored"], Remedy: cells["remedy"],
		engines: map[FamilyName]Engine{}, core: map[FamilyName]Types{},
	}
	for _, c := range engineColumns {
		o.engines[c.family] = Engine(cells[c.engine])
		o.core[c.family] = readTypes(cells[c.types])
	}
	return o
}

func readTypes(cell string) Types {
	if cell == "*" {
		return Types{ByCode: true}
	}
	names, old := strings.CutSuffix(cell, "~")
	return Types{Names: list(names), Old: old}
}

// readOpsets reads "8-16,18", "1-" (without end) or "none". The table is ours: a
// test holds it to this form.
func readOpsets(cell string) Opsets {
	var s Opsets
	for _, part := range list(cell) {
		first, last, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(first)
		if err != nil {
			continue // "none"
		}
		b := a
		if isRange {
			if b, err = strconv.Atoi(last); err != nil {
				b = anyVersion
			}
		}
		s = append(s, struct{ First, Last int }{a, b})
	}
	return s
}

func list(cell string) []string {
	if cell == "" {
		return nil
	}
	return strings.Split(cell, ",")
}

// standardDomain is the domain that models write as an empty text.
const standardDomain = "ai.onnx"

func fullDomain(domain string) string {
	if domain == "" {
		return standardDomain
	}
	return domain
}

// Operators lists the table, sorted by domain and name.
func Operators() []Operator {
	var list []Operator
	for _, o := range operators() {
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b Operator) int {
		return strings.Compare(a.Domain+"\x00"+a.Name, b.Domain+"\x00"+b.Name)
	})
	return list
}

// LookupOperator finds an operator; the domain "" is ai.onnx. The error says what
// name was probably meant, or that the parser has nothing in that domain.
func LookupOperator(domain, name string) (Operator, error) {
	domain = fullDomain(domain)
	if o, ok := operators()[operatorKey{domain, name}]; ok {
		return o, nil
	}
	var known []string
	for k := range operators() {
		if k.domain == domain {
			known = append(known, k.name)
		}
	}
	if len(known) == 0 {
		return Operator{}, fmt.Errorf("CANN's parser knows no operators of the domain %q", domain)
	}
	slices.Sort(known)
	if near := suggest.Nearest(name, known); near != "" {
		return Operator{}, fmt.Errorf("CANN's parser knows no operator %s::%s; the nearest name is %q", domain, name, near)
	}
	return Operator{}, fmt.Errorf("CANN's parser knows no operator %s::%s", domain, name)
}
