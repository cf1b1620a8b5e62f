package onnx

import (
	"iter"
	"strconv"
)

// Model is one ONNX file: a graph, the functions it calls, and what the file says of itself.
type Model struct {
	IRVersion       int64
	Opsets          []OpsetImport
	ProducerName    string
	ProducerVersion string
	Domain          string
	Version         int64
	Doc             string
	Metadata        []Property

	// Graph is the main graph.
	Graph *Graph
	// Functions are the local functions, in the file's order.
	Functions []*Function
	// Path is the file the model was read from; "" for a model made in memory.
	Path string

	source  *source
	encoded []byte // the ModelProto as read: training information, device configurations, unknown fields
	nextID  int
	names   map[string]int // how many values bear each name; nil until a fresh name is asked for
	serial  map[string]int // the last number tried for each base of a fresh name
}

// OpsetImport says which version of a domain's operators a model, or a function, means.
type OpsetImport struct {
	Domain  string
	Version int64
}

// Property is one entry of a metadata_props list.
type Property struct{ Key, Value string }

// Function is a local function: a named graph that nodes call as an operator.
type Function struct {
	Domain, Name, Overload string
	Doc                    string
	Opsets                 []OpsetImport
	// Attributes are the names of attributes that a call must give;
	// Defaults those it may give, with the value they have otherwise.
	Attributes []string
	Defaults   []*Attribute
	// Body holds the nodes; its inputs and outputs are those of the function.
	Body *Graph

	encoded []byte // the FunctionProto as read
}

// Metadata lists the function's metadata_props.
func (f *Function) Metadata() []Property { return decodeProperties(f.encoded, functionMetadata) }

// NewestIRVersion is the newest version of the format that this package knows.
const NewestIRVersion = 14

// NewModel makes an empty model of the given IR version that imports the
// default domain at opset.
func NewModel(irVersion int64, opset int) *Model {
	m := &Model{IRVersion: irVersion, Opsets: []OpsetImport{{"", int64(opset)}}}
	m.Graph = m.newGraph(nil)
	return m
}

// CanonicalDomain writes the default domain's two names, "" and "ai.onnx", as "".
func CanonicalDomain(domain string) string {
	if domain == "ai.onnx" {
		return ""
	}
	return domain
}

func findOpset(imports []OpsetImport, domain string) int {
	domain = CanonicalDomain(domain)
	for _, o := range imports {
		if CanonicalDomain(o.Domain) == domain {
			return int(o.Version)
		}
	}
	return 0
}

// Opset is the imported version of a domain, 0 when the model does not import it.
// Before IR version 3 there were no imports, and the default domain had one version.
func (m *Model) Opset(domain string) int {
	if m.IRVersion < 3 && len(m.Opsets) == 0 && CanonicalDomain(domain) == "" {
		return 1
	}
	return findOpset(m.Opsets, domain)
}

// MaxID is larger than every value's ID: the length for a side table.
func (m *Model) MaxID() int { return m.nextID }

// Function is the local function that a node calls, or nil.
func (m *Model) Function(domain, name, overload string) *Function {
	domain = CanonicalDomain(domain)
	for _, f := range m.Functions {
		if f.Name == name && CanonicalDomain(f.Domain) == domain && f.Overload == overload {
			return f
		}
	}
	return nil
}

// Callee is the local function that n calls, or nil.
func (m *Model) Callee(n *Node) *Function {
	if len(m.Functions) == 0 {
		return nil
	}
	return m.Function(n.Domain, n.OpType, n.Overload)
}

// Graphs yields every graph of the model: the main one, function bodies, and the
// subgraphs of both, an outer one before those inside it.
func (m *Model) Graphs() iter.Seq[*Graph] {
	return func(yield func(*Graph) bool) {
		if !yieldNested(m.Graph, yield) {
			return
		}
		for _, f := range m.Functions {
			if !yieldNested(f.Body, yield) {
				return
			}
		}
	}
}

// Nodes yields every node of every graph of the model.
func (m *Model) Nodes() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for g := range m.Graphs() {
			for _, n := range g.Nodes() {
				if !yield(n) {
					return
				}
			}
		}
	}
}

func yieldNested(g *Graph, yield func(*Graph) bool) bool {
	if !yield(g) {
		return false
	}
	for _, n := range g.Nodes() {
		for _, a := range n.attributes {
			for _, s := range a.graphs {
				if !yieldNested(s, yield) {
					return false
				}
			}
		}
	}
	return true
}

// FreshName gives a name that no value of the model bears: base itself, or base_1, base_2 and so on.
func (m *Model) FreshName(base string) string {
	m.indexNames()
	if base != "" && m.names[base] == 0 {
		return base
	}
	for i := m.serial[base] + 1; ; i++ {
		name := base + "_" + strconv.Itoa(i)
		if m.names[name] == 0 {
			m.serial[base] = i
			return name
		}
	}
}

func (m *Model) indexNames() {
	if m.names != nil {
		return
	}
	m.names, m.serial = map[string]int{}, map[string]int{}
	for g := range m.Graphs() {
		for v := range g.Values() {
			m.names[v.name]++
		}
		for _, entry := range g.valueInfo {
			if entry.value == nil {
				m.names[string(find(entry.dangling, infoName))]++ // must not come to mean a new value
			}
		}
	}
}

func (m *Model) takeName(name string) {
	if m.names != nil {
		m.names[name]++
	}
}

func (m *Model) forgetName(name string) {
	if m.names != nil {
		m.names[name]--
	}
}

// MakeNamesUnique renames every value of a nested graph whose name another
// value of the model bears as well, so that nodes can move between graphs. The
// main graph's names and those of function signatures stay.
func (m *Model) MakeNamesUnique() (renamed int) {
	m.indexNames()
	for g := range m.Graphs() {
		if g.owner == nil {
			continue
		}
		for v := range g.Values() {
			if m.names[v.name] > 1 {
				v.Rename(m.FreshName(v.name))
				renamed++
			}
		}
	}
	return renamed
}

func (m *Model) newValue(g *Graph, name string) *Value {
	v := &Value{}
	m.initValue(v, g, name)
	return v
}

func (m *Model) initValue(v *Value, g *Graph, name string) {
	v.name, v.id, v.graph = name, m.nextID, g
	m.nextID++
}

// quote writes a name from a file into a message of one line.
func quote(s string) string {
	const most = 200
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strconv.Quote(s)
}
