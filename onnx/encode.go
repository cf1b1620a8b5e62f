package onnx

import (
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// placement says where a tensor's bytes lie in the side file that is being written.
type placement struct {
	location       string
	offset, length int64
}

// describe writes a tensor's external_data entries.
func (p placement) describe(r *rope) {
	for _, entry := range []Property{
		{"location", p.location},
		{"offset", strconv.FormatInt(p.offset, 10)},
		{"length", strconv.FormatInt(p.length, 10)},
	} {
		r.property(tensorExternal, entry)
	}
}

// encoder turns a model into bytes. It starts from the bytes that were read and
// writes anew only what an edit can change, so that all else stays as it was,
// what this package has no name for included.
type encoder struct {
	rope
	// external gives the place of each tensor that goes into a side file.
	external map[*Tensor]placement
	// keepExternal leaves the other external tensors where they are; else they come into the model file.
	keepExternal bool
	// bareExternal leaves out what their external_data says besides the place.
	bareExternal bool
	source       *mapping
	err          error // the first tensor that could not be read
}

// firstBuffer bounds the room made at first for what is not copied from file to
// file: weights aside, models are smaller.
const firstBuffer = 4 << 20

// encode gives the model as a rope.
func (m *Model) encode(external map[*Tensor]placement, keepExternal, bareExternal bool) (*rope, error) {
	e := &encoder{external: external, keepExternal: keepExternal, bareExternal: bareExternal, source: m.source.mapping()}
	e.small = make([]byte, 0, min(len(m.encoded), firstBuffer))
	err := m.source.guarded(func() error {
		e.model(m)
		return e.err
	})
	return &e.rope, err
}

func (e *encoder) fail(err error) {
	if err != nil && e.err == nil {
		e.err = err
	}
}

func (e *encoder) model(m *Model) {
	had := presentFields(m.encoded)
	own := ownFields{
		bytes: numbers(modelProducer, modelProducerV, modelDomain, modelDoc, modelGraph, modelOpset, modelMetadata, modelFunction),
		other: numbers(modelIRVersion, modelVersion),
	}
	e.patch(m.encoded, e.source, own, func(n protowire.Number) {
		switch n {
		case modelIRVersion:
			e.optionalInt(n, m.IRVersion, had)
		case modelProducer:
			e.optional(n, m.ProducerName, had)
		case modelProducerV:
			e.optional(n, m.ProducerVersion, had)
		case modelDomain:
			e.optional(n, m.Domain, had)
		case modelVersion:
			e.optionalInt(n, m.Version, had)
		case modelDoc:
			e.optional(n, m.Doc, had)
		case modelGraph:
			e.message(n, func() { e.graph(m.Graph) })
		case modelOpset:
			e.opsets(n, m.encoded, m.Opsets)
		case modelMetadata:
			keepOrWrite(e, n, m.encoded, m.Metadata, decodeProperty, e.property)
		case modelFunction:
			for _, fn := range m.Functions {
				e.message(n, func() { e.function(fn) })
			}
		}
	})
}

// presentFields tells which fields a message has: an empty string that was there stays.
func presentFields(message []byte) (had ownFields) {
	for f := (fields{rest: message}); f.next(); {
		if f.isBytes() {
			had.bytes |= numbers(f.number)
		} else if f.isVarint() {
			had.other |= numbers(f.number)
		}
	}
	return had
}

// optional writes a string that is not empty, or was there.
func (r *rope) optional(n protowire.Number, s string, had ownFields) {
	if s != "" || had.bytes.has(n) {
		r.string(n, s)
	}
}

func (r *rope) optionalInt(n protowire.Number, v int64, had ownFields) {
	if v != 0 || had.other.has(n) {
		r.varint(n, uint64(v))
	}
}

func (r *rope) property(n protowire.Number, p Property) {
	r.message(n, func() {
		r.string(1, p.Key)
		r.string(2, p.Value)
	})
}

func (e *encoder) opsets(n protowire.Number, message []byte, now []OpsetImport) {
	keepOrWrite(e, n, message, now, decodeOpset, func(n protowire.Number, o OpsetImport) {
		e.message(n, func() {
			e.string(1, o.Domain)
			e.varint(2, uint64(o.Version))
		})
	})
}

// keepOrWrite writes a list: entries that stood in the message in the same form, others anew.
func keepOrWrite[T comparable](e *encoder, n protowire.Number, message []byte, now []T, decode func([]byte) T, write func(protowire.Number, T)) {
	var was [][]byte
	for f := (fields{rest: message}); f.next(); {
		if f.number == n && f.isBytes() {
			was = append(was, f.bytes)
		}
	}
	for _, item := range now {
		i := slices.IndexFunc(was, func(b []byte) bool { return decode(b) == item })
		if i < 0 {
			write(n, item)
			continue
		}
		e.bytes(n, was[i], e.source)
		was = slices.Delete(was, i, i+1)
	}
}

func (e *encoder) graph(g *Graph) {
	had := presentFields(g.encoded)
	own := ownFields{bytes: numbers(graphNode, graphName, graphInitializer, graphDoc, graphInput, graphOutput, graphValueInfo, graphSparse)}
	e.patch(g.encoded, e.source, own, func(n protowire.Number) {
		switch n {
		case graphNode:
			for _, node := range g.Nodes() {
				e.message(n, func() { e.node(node) })
			}
		case graphName:
			e.optional(n, g.Name, had)
		case graphInitializer:
			e.initializers(n, g, false)
		case graphDoc:
			e.optional(n, g.Doc, had)
		case graphInput:
			for _, v := range g.listedInputs() {
				e.declaration(n, v.info, v.name, v.Type, v.Type == v.declared)
			}
		case graphOutput:
			for i, v := range g.outputs {
				e.declaration(n, g.outputInfo[i], v.name, v.Type, v.Type == v.declared || v.Type == nil)
			}
		case graphValueInfo:
			e.valueInfo(n, g)
		case graphSparse:
			e.initializers(n, g, true)
		}
	})
}

func (e *encoder) initializers(n protowire.Number, g *Graph, sparse bool) {
	for _, v := range g.initializers {
		if v.sparse != sparse {
			continue
		}
		e.message(n, func() {
			if err := e.tensor(v.init, v.name); err != nil {
				e.fail(fmt.Errorf("initializer %q: %w", v.name, err))
			}
		})
	}
}

// listedInputs is the list of inputs as the file must have it: before IR
// version 4 every initializer is on it.
func (g *Graph) listedInputs() []*Value {
	if g.model.IRVersion >= 4 || g.owner != nil || g.function != nil {
		return g.inputs
	}
	out := g.inputs[:len(g.inputs):len(g.inputs)]
	for _, v := range g.initializers {
		if !v.isInput {
			out = append(out, v)
		}
	}
	return out
}

// valueInfo writes the types of values in between: those still there, and that
// have not become outputs, which a graph declares elsewhere and a function here.
func (e *encoder) valueInfo(n protowire.Number, g *Graph) {
	for _, entry := range g.valueInfo {
		switch v := entry.value; {
		case v == nil:
			e.bytes(n, entry.dangling, e.source)
		case v.graph == g && v.exists() && (g.function != nil || !slices.Contains(v.outputOf, g)):
			e.declaration(n, v.info, v.name, v.Type, v.Type == v.declared)
		}
	}
}

// declaration writes a ValueInfoProto, as it was when nothing about it has changed.
func (e *encoder) declaration(n protowire.Number, info []byte, name string, t *Type, unchanged bool) {
	if info != nil && unchanged && string(find(info, infoName)) == name {
		e.bytes(n, info, e.source)
		return
	}
	own := ownFields{bytes: numbers(infoName)}
	if info == nil || !unchanged {
		own.bytes |= numbers(infoType)
	}
	e.message(n, func() {
		e.patch(info, e.source, own, func(n protowire.Number) {
			switch {
			case n == infoName:
				e.string(n, name)
			case t != nil:
				e.message(n, func() { e.encodeType(t) })
			}
		})
	})
}

func (e *encoder) function(fn *Function) {
	had := presentFields(fn.encoded)
	body := fn.Body
	own := ownFields{bytes: numbers(functionName, functionInput, functionOutput, functionAttribute, functionNode, functionDoc,
		functionOpset, functionDomain, functionDefault, functionValueInfo, functionOverload)}
	e.patch(fn.encoded, e.source, own, func(n protowire.Number) {
		switch n {
		case functionName:
			e.optional(n, fn.Name, had)
		case functionInput:
			e.names(n, body.inputs)
		case functionOutput:
			e.names(n, body.outputs)
		case functionAttribute:
			for _, name := range fn.Attributes {
				e.string(n, name)
			}
		case functionNode:
			for _, node := range body.Nodes() {
				e.message(n, func() { e.node(node) })
			}
		case functionDoc:
			e.optional(n, fn.Doc, had)
		case functionOpset:
			e.opsets(n, fn.encoded, fn.Opsets)
		case functionDomain:
			e.optional(n, fn.Domain, had)
		case functionDefault:
			for _, a := range fn.Defaults {
				e.attribute(n, a)
			}
		case functionValueInfo:
			e.valueInfo(n, body)
		case functionOverload:
			e.optional(n, fn.Overload, had)
		}
	})
}

// names writes the names of values; one left out is an empty name.
func (e *encoder) names(n protowire.Number, values []*Value) {
	for _, v := range values {
		if v == nil {
			e.string(n, "")
		} else {
			e.string(n, v.name)
		}
	}
}

func (e *encoder) node(node *Node) {
	before := e.err
	had := presentFields(node.encoded)
	own := ownFields{bytes: numbers(nodeInput, nodeOutput, nodeName, nodeOpType, nodeAttribute, nodeDoc, nodeDomain, nodeOverload)}
	e.patch(node.encoded, e.source, own, func(n protowire.Number) {
		switch n {
		case nodeInput:
			e.names(n, node.inputs)
		case nodeOutput:
			e.names(n, node.outputs)
		case nodeName:
			e.optional(n, node.Name, had)
		case nodeOpType:
			e.optional(n, node.OpType, had)
		case nodeAttribute:
			for _, a := range node.attributes {
				e.attribute(n, a)
			}
		case nodeDoc:
			e.optional(n, node.Doc, had)
		case nodeDomain:
			e.optional(n, node.Domain, had)
		case nodeOverload:
			e.optional(n, node.Overload, had)
		}
	})
	if e.err != nil && before == nil {
		e.err = fmt.Errorf("%s: %w", node.Where(), e.err)
	}
}

// attribute writes an attribute: its message as it was, but for the subgraphs in
// it and the tensors that were made in memory or change their place.
func (e *encoder) attribute(n protowire.Number, a *Attribute) {
	own := ownFields{bytes: numbers(a.graphFields...)}
	if slices.ContainsFunc(a.tensors, e.rewrites) {
		own.bytes |= numbers(a.tensorFields...)
	}
	if own.bytes == 0 {
		e.bytes(n, a.encoded, e.source)
		return
	}
	e.message(n, func() {
		e.patch(a.encoded, e.source, own, func(n protowire.Number) { e.nestedIn(a, n) })
	})
}

// nestedIn writes the tensors or graphs that the attribute has in field n.
func (e *encoder) nestedIn(a *Attribute, n protowire.Number) {
	for i, t := range a.tensors {
		if a.tensorFields[i] == n {
			e.message(n, func() { e.fail(e.tensor(t, t.name)) })
		}
	}
	for i, g := range a.graphs {
		if a.graphFields[i] == n {
			e.message(n, func() { e.graph(g) })
		}
	}
}
