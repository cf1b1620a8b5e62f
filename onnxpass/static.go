package onnxpass

import (
	"fmt"
	"strings"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/infer"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// Dynamic is a tensor whose type or shape is not known before running, and why.
type Dynamic struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Node   string `json:"node,omitempty"` // the node that makes it; empty for a graph input
	Reason string `json:"reason"`
}

// dynamics lists every value of the model that is not static, in the order of
// the graph, each with its reason.
func dynamics(m *onnx.Model, inference *infer.Inference) []Dynamic {
	finder := dynamicFinder{inference: inference, reasons: map[*onnx.Value]string{}}
	finder.graph(m.Graph)
	return finder.found
}

type dynamicFinder struct {
	inference *infer.Inference
	reasons   map[*onnx.Value]string
	found     []Dynamic
}

func (f *dynamicFinder) graph(g *onnx.Graph) {
	for _, v := range g.Inputs() {
		if v.Initializer() == nil {
			if !f.inference.Of(v).IsStatic() {
				f.add(v, inputReason(g, v))
			}
		}
	}
	for _, n := range g.Nodes() {
		for _, h := range n.Subgraphs() {
			f.graph(h)
		}
		for _, v := range n.Outputs() {
			if v != nil && !f.inference.Of(v).IsStatic() {
				f.add(v, f.valueReason(n, v))
			}
		}
	}
}

func (f *dynamicFinder) add(v *onnx.Value, reason string) {
	info := f.inference.Of(v)
	f.reasons[v] = reason
	d := Dynamic{Name: v.Name(), Type: info.String(), Reason: reason}
	if n := v.Producer(); n != nil {
		d.Node = n.Where()
	}
	f.found = append(f.found, d)
}

// inputReason says how to fix an input of the main graph.
func inputReason(g *onnx.Graph, v *onnx.Value) string {
	if g.Owner() != nil {
		return "it is an input of " + g.Where()
	}
	switch {
	case v.Type == nil, v.Type.IsTensor() && v.Type.Elem == tensor.Undefined:
		return "the input declares no element type; the export should give it one"
	case !v.Type.IsTensor():
		return fmt.Sprintf("the input is %s: no flag fixes the shapes in it", v.Type)
	case v.Type.Shape == nil:
		return fmt.Sprintf("the input's shape is open: fix it with --input-shape %s:…", v.Name())
	}
	var open []string
	for i, d := range v.Type.Shape.Dims {
		switch {
		case d.Known:
		case d.Param != "":
			open = append(open, fmt.Sprintf("dim %d is %q (--dim %s=SIZE)", i, d.Param, d.Param))
		default:
			open = append(open, fmt.Sprintf("dim %d has no name (--input-shape %s:…)", i, v.Name()))
		}
	}
	return "the input is open: " + strings.Join(open, ", ")
}

// valueReason says why a node's result is dynamic: what its first open dim is made
// of, as inference followed it back, or, when even the rank is unknown, the node.
func (f *dynamicFinder) valueReason(n *onnx.Node, v *onnx.Value) string {
	for _, d := range f.inference.Of(v).Dims {
		if _, known := d.Known(); known {
			continue
		}
		for _, c := range f.inference.Causes(d) {
			switch {
			case c.Input != nil && f.reasons[c.Input] != "":
				return f.reasons[c.Input]
			case c.Node != nil:
				return operatorReason(c.Node)
			}
		}
	}
	for _, w := range n.Inputs() {
		if why := f.reasons[w]; why != "" {
			return why
		}
	}
	return operatorReason(n)
}

func operatorReason(n *onnx.Node) string {
	if n.CanonicalDomain() != "" {
		return fmt.Sprintf("%s is an operator of domain %q, whose result's shape nobody here knows", n.Where(), n.Domain)
	}
	return fmt.Sprintf("the shape that %s gives depends on its data", n.Where())
}
