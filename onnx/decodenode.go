package onnx

import (
	"cmp"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// The fields of NodeProto.
const (
	nodeInput     = 1
	nodeOutput    = 2
	nodeName      = 3
	nodeOpType    = 4
	nodeAttribute = 5
	nodeDoc       = 6
	nodeDomain    = 7
	nodeOverload  = 8
	nodeMetadata  = 9
)

// body decodes nodes, which may stand in any order: first what they make, then
// what they read.
func (d *decoder) body(g *Graph, sc *scope, messages [][]byte) error {
	nodes := make([]Node, len(messages))
	g.nodes = make([]*Node, len(messages))
	for i, b := range messages {
		n := &nodes[i]
		n.graph, g.nodes[i] = g, n
		if err := d.node(n, sc, b); err != nil {
			return fmt.Errorf("%s: %s: %w", g.Where(), n.Where(), err)
		}
	}
	for i, b := range messages {
		if err := d.wire(g.nodes[i], sc, b); err != nil {
			return fmt.Errorf("%s: %s: %w", g.Where(), g.nodes[i].Where(), err)
		}
	}
	return nil
}

// node reads what a node is, makes its outputs, and room for its inputs and attributes.
func (d *decoder) node(n *Node, sc *scope, message []byte) (err error) {
	n.encoded = message
	outputs := d.scratch[:0]
	inputs, attributes := 0, 0
	f := fields{rest: message}
	for f.next() {
		if !f.isBytes() {
			continue
		}
		switch f.number {
		case nodeInput:
			inputs++
		case nodeAttribute:
			attributes++
		case nodeOutput:
			v, problem := d.output(n, sc, f.bytes)
			if err == nil {
				err = problem // told when it is known what node this is
			}
			outputs = append(outputs, v)
		case nodeName:
			n.Name = string(f.bytes)
		case nodeOpType:
			n.OpType = d.word(f.bytes)
		case nodeDoc:
			n.Doc = string(f.bytes)
		case nodeDomain:
			n.Domain = d.word(f.bytes)
		case nodeOverload:
			n.Overload = d.word(f.bytes)
		}
	}
	n.outputs, d.scratch = d.lists.keep(outputs), outputs
	n.inputs, n.slots = d.lists.take(inputs)[:0], d.slots.take(inputs)
	n.attributes = d.attrLists.take(attributes)[:0]
	return cmp.Or(f.err, err)
}

func (d *decoder) output(n *Node, sc *scope, name []byte) (*Value, error) {
	if len(name) == 0 {
		return nil, nil
	}
	v := &d.values.take(1)[0]
	d.result.initValue(v, n.graph, string(name))
	v.producer = n
	return v, sc.define(v)
}

// word gives the string of some bytes that are likely to come again.
func (d *decoder) word(b []byte) string {
	if s, ok := d.words[string(b)]; ok {
		return s
	}
	s := string(b)
	d.words[s] = s
	return s
}

// wire finds the values that a node reads and decodes its attributes.
func (d *decoder) wire(n *Node, sc *scope, message []byte) error {
	f := fields{rest: message}
	for f.next() {
		switch {
		case f.number == nodeInput && f.isBytes():
			v, err := sc.read(f.bytes)
			if err != nil {
				return err
			}
			if v != nil {
				v.addUse(n, len(n.inputs))
			}
			n.inputs = append(n.inputs, v)
		case f.number == nodeAttribute && f.isBytes():
			a := &d.attributes.take(1)[0]
			if err := d.attribute(a, f.bytes, n, sc); err != nil {
				return fmt.Errorf("attribute %q: %w", a.name, err)
			}
			n.attributes = append(n.attributes, a)
		}
	}
	return f.err
}

// read finds the value that an input names, nil for one left out.
func (s *scope) read(name []byte) (*Value, error) {
	if len(name) == 0 {
		return nil, nil
	}
	v := s.find(name)
	if v == nil {
		return nil, fmt.Errorf("input %q is made by nothing", name)
	}
	return v, nil
}

// attribute reads an attribute of owner, which is nil for a function's default.
func (d *decoder) attribute(a *Attribute, message []byte, owner *Node, sc *scope) error {
	a.encoded = message
	// A message field that stands twice is one message with the fields of both.
	var single [attrSparseTensor + 1][]byte
	f := fields{rest: message}
	for f.next() {
		switch f.number {
		case attrTensor, attrGraph, attrSparseTensor, attrType:
			if f.isBytes() {
				single[f.number] = merged(single[f.number], f.bytes)
			}
		case attrTensors, attrGraphs, attrSparseTensors, attrTypes:
			if !f.isBytes() {
				continue
			}
			if err := d.nested(a, f.number, f.bytes, owner, sc); err != nil {
				return err
			}
		default:
			d.plain(a, &f)
		}
	}
	for number, b := range single {
		if b == nil {
			continue
		}
		if err := d.nested(a, protowire.Number(number), b, owner, sc); err != nil {
			return err
		}
	}
	return f.err
}

// plain reads a field of an attribute that is no message.
func (d *decoder) plain(a *Attribute, f *fields) {
	switch {
	case f.number == attrFloats:
		a.floats = appendFloats(a.floats, f)
	case f.number == attrInts:
		a.ints = appendVarints(a.ints, f)
	case f.number == attrFloat && f.kind == protowire.Fixed32Type:
		a.float = math.Float32frombits(uint32(f.bits))
	case f.number == attrInt && f.isVarint():
		a.integer = int64(f.bits)
	case f.number == attrKind && f.isVarint():
		a.kind = AttributeKind(f.bits)
	case !f.isBytes():
		return
	case f.number == attrName:
		a.name = d.word(f.bytes)
	case f.number == attrReference:
		a.reference = d.word(f.bytes)
	case f.number == attrString:
		a.text = f.bytes
	case f.number == attrStrings:
		a.texts = append(a.texts, f.bytes)
	}
	a.set |= numbers(f.number)
}

// nested reads a field of an attribute that is a message.
func (d *decoder) nested(a *Attribute, number protowire.Number, message []byte, owner *Node, sc *scope) error {
	a.set |= numbers(number)
	switch number {
	case attrTensor, attrTensors:
		t, err := d.tensor(message)
		a.addTensor(number, t)
		return err
	case attrSparseTensor, attrSparseTensors:
		t, err := d.sparseTensor(message)
		a.addTensor(number, t)
		return err
	case attrGraph, attrGraphs:
		g := d.result.newGraph(owner)
		a.addGraph(number, g)
		return d.graph(g, message, sc)
	}
	t, err := decodeType(message, 0)
	a.types = append(a.types, t)
	return err
}
