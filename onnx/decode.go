package onnx

import (
	"cmp"
	"errors"
	"fmt"
)

// decoder turns an encoded model into a Model. What it does not look into stays
// encoded, in the bytes of the file.
type decoder struct {
	source *source
	result *Model
	words  map[string]string // operator, domain and attribute names, each stored once
	depth  int

	// Many small things are cut from few large ones.
	values     slab[Value]
	lists      slab[*Value]
	slots      slab[int32]
	attributes slab[Attribute]
	attrLists  slab[*Attribute]
	scratch    []*Value
}

// slab hands out pieces of slices that are allocated in one go.
type slab[T any] struct{ free []T }

// take gives n zero items, with no room to grow into the next piece.
func (s *slab[T]) take(n int) []T {
	if n > len(s.free) {
		s.free = make([]T, max(n, 256))
	}
	out := s.free[:n:n]
	s.free = s.free[n:]
	return out
}

// keep gives a copy of a list that was gathered in a scratch buffer; nil for an empty one.
func (s *slab[T]) keep(list []T) []T {
	if len(list) == 0 {
		return nil
	}
	out := s.take(len(list))
	copy(out, list)
	return out
}

// maxDepth bounds how deeply graphs may be nested.
const maxDepth = 100

// The fields of ModelProto.
const (
	modelIRVersion = 1
	modelProducer  = 2
	modelProducerV = 3
	modelDomain    = 4
	modelVersion   = 5
	modelDoc       = 6
	modelGraph     = 7
	modelOpset     = 8
	modelMetadata  = 14
	modelFunction  = 25
)

func (d *decoder) model(message []byte) (*Model, error) {
	m := &Model{source: d.source}
	d.result = m
	var graph []byte
	var functions [][]byte
	f := fields{rest: message}
	for f.next() {
		switch {
		case f.number == modelIRVersion && f.isVarint():
			m.IRVersion = int64(f.bits)
		case f.number == modelVersion && f.isVarint():
			m.Version = int64(f.bits)
		case !f.isBytes():
		case f.number == modelProducer:
			m.ProducerName = string(f.bytes)
		case f.number == modelProducerV:
			m.ProducerVersion = string(f.bytes)
		case f.number == modelDomain:
			m.Domain = string(f.bytes)
		case f.number == modelDoc:
			m.Doc = string(f.bytes)
		case f.number == modelGraph:
			graph = merged(graph, f.bytes)
		case f.number == modelOpset:
			m.Opsets = append(m.Opsets, decodeOpset(f.bytes))
		case f.number == modelMetadata:
			m.Metadata = append(m.Metadata, decodeProperty(f.bytes))
		case f.number == modelFunction:
			functions = append(functions, f.bytes)
		}
	}
	if f.err != nil {
		return nil, f.err
	}
	if graph == nil {
		return nil, errNoGraph
	}
	m.encoded = message
	m.Graph = m.newGraph(nil)
	if err := d.graph(m.Graph, graph, nil); err != nil {
		return nil, err
	}
	for _, b := range functions {
		fn, err := d.function(b)
		if err != nil {
			return nil, err
		}
		m.Functions = append(m.Functions, fn)
	}
	return m, nil
}

// errNoGraph says that the bytes are a protobuf message perhaps, but no model.
var errNoGraph = errors.New("it holds no graph")

func decodeOpset(message []byte) (o OpsetImport) {
	for f := (fields{rest: message}); f.next(); {
		switch {
		case f.number == 1 && f.isBytes():
			o.Domain = string(f.bytes)
		case f.number == 2 && f.isVarint():
			o.Version = int64(f.bits)
		}
	}
	return o
}

func decodeProperty(message []byte) Property {
	return Property{string(find(message, 1)), string(find(message, 2))}
}

// decodeProperties reads the metadata_props of a message: its fields of that number.
func decodeProperties(message []byte, number int) (out []Property) {
	for f := (fields{rest: message}); f.next(); {
		if int(f.number) == number && f.isBytes() {
			out = append(out, decodeProperty(f.bytes))
		}
	}
	return out
}

// The fields of FunctionProto.
const (
	functionName      = 1
	functionInput     = 4
	functionOutput    = 5
	functionAttribute = 6
	functionNode      = 7
	functionDoc       = 8
	functionOpset     = 9
	functionDomain    = 10
	functionDefault   = 11
	functionValueInfo = 12
	functionOverload  = 13
	functionMetadata  = 14
)

func (d *decoder) function(message []byte) (*Function, error) {
	fn := &Function{encoded: message}
	g := d.result.newGraph(nil)
	g.function, fn.Body = fn, g
	var inputs, outputs, nodes, defaults, infos [][]byte
	lists := map[int]*[][]byte{
		functionInput: &inputs, functionOutput: &outputs, functionNode: &nodes,
		functionDefault: &defaults, functionValueInfo: &infos,
	}
	texts := map[int]*string{
		functionName: &fn.Name, functionDoc: &fn.Doc, functionDomain: &fn.Domain, functionOverload: &fn.Overload,
	}
	f := fields{rest: message}
	for f.next() {
		if !f.isBytes() {
			continue
		}
		number := int(f.number)
		if list := lists[number]; list != nil {
			*list = append(*list, f.bytes)
		} else if text := texts[number]; text != nil {
			*text = string(f.bytes)
		} else if number == functionAttribute {
			fn.Attributes = append(fn.Attributes, string(f.bytes))
		} else if number == functionOpset {
			fn.Opsets = append(fn.Opsets, decodeOpset(f.bytes))
		}
	}
	if f.err != nil {
		return nil, f.err
	}
	sc := newScope(nil, len(inputs)+len(nodes))
	for _, name := range inputs {
		if err := sc.define(g.AddInput(string(name), nil)); err != nil {
			return nil, fmt.Errorf("%s: %w", g.Where(), err)
		}
	}
	for _, b := range defaults {
		a := &Attribute{}
		if err := d.attribute(a, b, nil, sc); err != nil {
			return nil, fmt.Errorf("%s: attribute %q: %w", g.Where(), a.name, err)
		}
		fn.Defaults = append(fn.Defaults, a)
	}
	if err := d.body(g, sc, nodes); err != nil {
		return nil, err
	}
	for _, name := range outputs {
		v := sc.find(name)
		if v == nil {
			return nil, fmt.Errorf("%s: output %q is made by nothing", g.Where(), name)
		}
		g.AddOutput(v)
	}
	return fn, d.valueInfo(g, sc, infos)
}

// scope finds values by name: those of a graph, then those of the graphs around it.
type scope struct {
	values map[string]*Value
	outer  *scope
}

func newScope(outer *scope, size int) *scope {
	return &scope{values: make(map[string]*Value, size), outer: outer}
}

func (s *scope) find(name []byte) *Value {
	for ; s != nil; s = s.outer {
		if v := s.values[string(name)]; v != nil {
			return v
		}
	}
	return nil
}

func (s *scope) define(v *Value) error {
	if s.values[v.name] != nil {
		return fmt.Errorf("two values bear the name %q: a graph must assign each name once", v.name)
	}
	s.values[v.name] = v
	return nil
}

// The fields of GraphProto.
const (
	graphNode        = 1
	graphName        = 2
	graphInitializer = 5
	graphDoc         = 10
	graphInput       = 11
	graphOutput      = 12
	graphValueInfo   = 13
	graphAnnotation  = 14
	graphSparse      = 15
	graphMetadata    = 16
)

func (d *decoder) graph(g *Graph, message []byte, outer *scope) error {
	if d.depth == maxDepth {
		return fmt.Errorf("graphs nested deeper than %d", maxDepth)
	}
	d.depth++
	defer func() { d.depth-- }()
	g.encoded = message
	var lists [graphMetadata + 1][][]byte
	f := fields{rest: message}
	for f.next() {
		switch {
		case !f.isBytes() || f.number > graphMetadata:
		case f.number == graphName:
			g.Name = string(f.bytes)
		case f.number == graphDoc:
			g.Doc = string(f.bytes)
		default:
			lists[f.number] = append(lists[f.number], f.bytes)
		}
	}
	if f.err != nil {
		return fmt.Errorf("%s: %w", g.Where(), f.err)
	}
	sc := newScope(outer, len(lists[graphInput])+len(lists[graphInitializer])+len(lists[graphNode]))
	for _, b := range lists[graphInput] {
		v := g.AddInput(string(find(b, infoName)), nil)
		if err := cmp.Or(v.declare(b), sc.define(v)); err != nil {
			return fmt.Errorf("%s: input %q: %w", g.Where(), v.name, err)
		}
	}
	if err := d.initializers(g, sc, lists[graphInitializer], lists[graphSparse]); err != nil {
		return fmt.Errorf("%s: %w", g.Where(), err)
	}
	if err := d.body(g, sc, lists[graphNode]); err != nil {
		return err
	}
	if err := d.outputs(g, sc, lists[graphOutput]); err != nil {
		return fmt.Errorf("%s: %w", g.Where(), err)
	}
	if err := d.valueInfo(g, sc, lists[graphValueInfo]); err != nil {
		return fmt.Errorf("%s: %w", g.Where(), err)
	}
	return nil
}

func (d *decoder) initializers(g *Graph, sc *scope, dense, sparse [][]byte) error {
	store := func(messages [][]byte, what string, decode func([]byte) (*Tensor, error)) error {
		for _, b := range messages {
			t, err := decode(b)
			if err != nil {
				return fmt.Errorf("%s %q: %w", what, initializerName(b, what), err)
			}
			if err := d.store(g, sc, t); err != nil {
				return err
			}
		}
		return nil
	}
	if err := store(dense, "initializer", d.tensor); err != nil {
		return err
	}
	return store(sparse, "sparse initializer", d.sparseTensor)
}

func initializerName(message []byte, what string) []byte {
	if what == "initializer" {
		return find(message, tensorName)
	}
	return find(find(message, sparseValues), tensorName)
}

func (d *decoder) store(g *Graph, sc *scope, t *Tensor) error {
	v := sc.values[t.name]
	if v == nil {
		v = d.result.newValue(g, t.name)
		v.Type = TensorType(t.elem, t.dims...)
		sc.values[t.name] = v
	}
	if v.init != nil {
		return fmt.Errorf("two initializers bear the name %q", t.name)
	}
	v.init, v.sparse = t, t.sparse != nil
	g.initializers = append(g.initializers, v)
	return nil
}

func (d *decoder) outputs(g *Graph, sc *scope, messages [][]byte) error {
	for _, b := range messages {
		name := find(b, infoName)
		v := sc.find(name)
		if v == nil {
			return fmt.Errorf("output %q is made by nothing", name)
		}
		g.AddOutput(v)
		g.outputInfo[len(g.outputInfo)-1] = b
		if v.info == nil && v.graph == g {
			if err := v.declare(b); err != nil {
				return fmt.Errorf("output %q: %w", name, err)
			}
		}
	}
	return nil
}

// The fields of ValueInfoProto.
const (
	infoName     = 1
	infoType     = 2
	infoDoc      = 3
	infoMetadata = 4
)

// valueInfo attaches declared types to values in between. What a file says of a
// name that nothing bears is kept as it is.
func (d *decoder) valueInfo(g *Graph, sc *scope, messages [][]byte) error {
	for _, b := range messages {
		name := find(b, infoName)
		v := sc.values[string(name)]
		if v == nil || v.info != nil {
			g.valueInfo = append(g.valueInfo, infoEntry{dangling: b})
			continue
		}
		// What a file says of values in between is often wrong; the rest of it stands.
		if err := v.declare(b); err != nil && !errors.Is(err, errNegativeDim) {
			return fmt.Errorf("value_info of %q: %w", name, err)
		}
		g.valueInfo = append(g.valueInfo, infoEntry{value: v})
	}
	return nil
}

// declare takes over what a ValueInfoProto says. Of a stored tensor the tensor
// itself knows the type better.
func (v *Value) declare(message []byte) (err error) {
	v.info = message
	var t []byte
	f := fields{rest: message}
	for f.next() {
		if f.number == infoType && f.isBytes() {
			t = merged(t, f.bytes)
		}
	}
	if f.err != nil {
		return f.err
	}
	v.declared, err = decodeType(t, 0)
	if v.init != nil && !v.isInput {
		v.declared = v.Type
	}
	v.Type = v.declared
	return err
}
