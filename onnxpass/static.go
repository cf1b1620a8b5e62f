package onnxpass

import (
	"fmt"
	"strings"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/infer"
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
			f.add(v, inputReason(g, v))
		}
	}
	for _, n := range g.Nodes() {
		for _, h := range n.Subgraphs() {
			f.graph(h)
		}
		for _, v := range n.Outputs() {
			if v != nil {
				f.add(v, f.nodeReason(n))
			}
		}
	}
}

func (f *dynamicFinder) add(v *onnx.Value, reason string) {
	info := f.inference.Of(v)
	if info.IsStatic() {
		return
	}
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
	if !v.Type.IsTensor() || v.Type.Shape == nil {
		return fmt.Sprintf("the input's shape is open: fix it with --input-shape %s:…", v.Name())
	}
	var open []string
	for i, d := range v.Type.Shape.Dims {
		switch {
		case d.Known:
		case d.Param != "":
			open = append(open, fmt.Sprintf("dim %d is %q (--dim %s=N)", i, d.Param, d.Param))
		default:
			open = append(open, fmt.Sprintf("dim %d has no name (--input-shape %s:…)", i, v.Name()))
		}
	}
	return "the input is open: " + strings.Join(open, ", ")
}

// nodeReason follows a node's dynamic result back: to a dynamic input of the
// node if it has one, else to the operator itself.
func (f *dynamicFinder) nodeReason(n *onnx.Node) string {
	for _, v := range n.Inputs() {
		if why := f.reasons[v]; why != "" {
			return why
		}
	}
	for _, h := range n.Subgraphs() {
		for _, v := range h.Captures() {
			if why := f.reasons[v]; why != "" {
				return why
			}
		}
	}
	if n.CanonicalDomain() != "" {
		return fmt.Sprintf("%s is an operator of domain %q, whose result's shape nobody here knows", n.Where(), n.Domain)
	}
	return fmt.Sprintf("the shape that %s gives depends on its data", n.Where())
}
