package onnxpass

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// constant stores d in g: as an initializer, or in a function body, which has
// none, as a Constant node.
func (s *State) constant(g *onnx.Graph, base string, d *tensor.Dense) *onnx.Value {
	if g.Function() == nil {
		return g.AddInitializer(base, d)
	}
	n := g.Add("Constant", nil, []string{s.model.FreshName(base)}, onnx.TensorAttribute("value", d))
	s.infer.SetConstant(n.Output(0), d)
	return n.Output(0)
}

// intsConstant stores a list of numbers in g.
func (s *State) intsConstant(g *onnx.Graph, base string, values []int64) *onnx.Value {
	return s.constant(g, base, tensor.Of(slices.Clone(values), len(values)))
}

// storeAs makes v, a result of n, a constant that holds d.
func (s *State) storeAs(n *onnx.Node, v *onnx.Value, d *tensor.Dense) {
	g := n.Graph()
	if g.Function() == nil {
		g.StoreAs(v, onnx.NewTensor(d))
		return
	}
	g.Forward(n, v, s.constant(g, v.Name(), d))
}

// denseFromInts makes an array of integers or truth values of any type that has
// whole bytes.
func denseFromInts(t tensor.Type, values []int64, shape []int) (*tensor.Dense, error) {
	width := t.Bits() / 8
	if width == 0 {
		return nil, fmt.Errorf("%s has no whole bytes", t)
	}
	raw := make([]byte, 0, width*len(values))
	for _, v := range values {
		raw = append(raw, binary.LittleEndian.AppendUint64(nil, uint64(v))[:width]...)
	}
	return tensor.FromRaw(t, shape, raw)
}
