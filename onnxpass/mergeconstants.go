package onnxpass

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// mergeConstants keeps one of several stored tensors that are equal in element
// type, shape and every bit: +0 and -0 differ, and so do int32 0 and float 0.
//
//	before: initializers a = {1, 2}, b = {1, 2};  y = Add(x, a);  z = Mul(x, b)
//	after:  initializer  a = {1, 2};              y = Add(x, a);  z = Mul(x, a)
//
// Defaults of graph inputs and graph outputs keep their own tensor. Weights are
// read only when another one of the same type and shape agrees with them in a
// few sampled places.
func mergeConstants(s *State) error {
	merger := constantMerger{state: s, seed: maphash.MakeSeed()}
	for _, root := range roots(s.model) {
		if err := merger.graph(root, nil); err != nil {
			return err
		}
	}
	return nil
}

// constantGroup is the tensors that may be equal, by what is cheap to know.
type constantGroup struct {
	elem   tensor.Type
	shape  string
	sample uint64
}

type constantScope struct {
	groups map[constantGroup][]*onnx.Value
	outer  *constantScope
}

type constantMerger struct {
	state *State
	seed  maphash.Seed // only groups candidates; what is merged does not depend on it
}

func (m *constantMerger) graph(g *onnx.Graph, outer *constantScope) error {
	here := &constantScope{groups: map[constantGroup][]*onnx.Value{}, outer: outer}
	for _, v := range slices.Clone(g.Initializers()) {
		if v.Constant() == nil || v.IsInput() && hasDefaults(g) || v.Initializer().IsSparse() {
			continue
		}
		if err := m.place(g, v, here); err != nil {
			return err
		}
	}
	for _, n := range g.Nodes() {
		for _, h := range n.Subgraphs() {
			if err := m.graph(h, here); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasDefaults says whether initializers that are listed as inputs are real inputs.
func hasDefaults(g *onnx.Graph) bool { return g.Model().IRVersion >= 4 }

// place merges v into an equal constant that its graph sees, or remembers it.
func (m *constantMerger) place(g *onnx.Graph, v *onnx.Value, here *constantScope) error {
	t := v.Initializer()
	sample, err := m.sample(t)
	if err != nil {
		return fmt.Errorf("initializer %q: %w", v.Name(), err)
	}
	group := constantGroup{t.Type(), fmt.Sprint(t.Shape()), sample}
	for sc := here; sc != nil; sc = sc.outer {
		for _, w := range sc.groups[group] {
			same, err := equalTensors(t, w.Initializer())
			if err != nil {
				return fmt.Errorf("initializer %q: %w", v.Name(), err)
			}
			if !same {
				continue
			}
			if len(v.Uses()) > 0 && !v.IsOutput() {
				v.ReplaceUses(w)
				m.state.changed()
			}
			return nil
		}
	}
	here.groups[group] = append(here.groups[group], v)
	return nil
}

// sampleBytes is how much of a large tensor is looked at in each of three places.
const sampleBytes = 64

// sample hashes a few bytes of a tensor: all of a small one. The first one of
// its kind costs up to three pages of the file.
func (m *constantMerger) sample(t *onnx.Tensor) (uint64, error) {
	var h maphash.Hash
	h.SetSeed(m.seed)
	if t.Type() == tensor.String {
		d, err := t.Dense()
		if err != nil {
			return 0, err
		}
		for _, s := range tensor.Data[string](d) {
			h.WriteString(s)
			h.WriteByte(0)
		}
		return h.Sum64(), nil
	}
	raw, err := t.Raw()
	if err != nil {
		return 0, err
	}
	if len(raw) <= 3*sampleBytes {
		h.Write(raw)
		return h.Sum64(), nil
	}
	for _, at := range []int{0, len(raw)/2 - sampleBytes/2, len(raw) - sampleBytes} {
		h.Write(raw[at : at+sampleBytes])
	}
	return h.Sum64(), nil
}

func equalTensors(a, b *onnx.Tensor) (bool, error) {
	if a.Type() == tensor.String {
		x, err := a.Dense()
		if err != nil {
			return false, err
		}
		y, err := b.Dense()
		if err != nil {
			return false, err
		}
		return tensor.EqualBits(x, y), nil
	}
	x, err := a.Raw()
	if err != nil {
		return false, err
	}
	y, err := b.Raw()
	if err != nil {
		return false, err
	}
	return bytes.Equal(x, y), nil
}
