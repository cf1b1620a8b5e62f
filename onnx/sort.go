package onnx

import (
	"fmt"
	"slices"
)

// Sort brings the nodes of g, and of the graphs inside it, into an order in
// which every value is made before it is read. Nodes that are in order already
// keep their places. A cycle is an error that names a node on it.
func (g *Graph) Sort() error {
	s := sorter{graph: g}
	nodes := g.Nodes()
	for _, n := range nodes {
		n.sorting = sortNew
	}
	s.out = make([]*Node, 0, len(nodes))
	for _, n := range nodes {
		if err := s.place(n); err != nil {
			return err
		}
	}
	g.nodes = s.out
	for _, n := range g.nodes {
		for _, a := range n.attributes {
			for _, h := range a.graphs {
				if err := h.Sort(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// sortState is how far sorting has come with a node.
type sortState uint8

const (
	sortNew sortState = iota
	sortOpen
	sortDone
)

type sorter struct {
	graph *Graph
	out   []*Node
}

// place emits root after everything it needs, without recursion: depth is the file's choice.
func (s *sorter) place(root *Node) error {
	type frame struct {
		node *Node
		need []*Node
	}
	if root.sorting == sortDone {
		return nil
	}
	root.sorting = sortOpen
	stack := []frame{{root, s.needs(root)}}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if len(top.need) == 0 {
			top.node.sorting = sortDone
			s.out = append(s.out, top.node)
			stack = stack[:len(stack)-1]
			continue
		}
		next := top.need[0]
		top.need = top.need[1:]
		switch next.sorting {
		case sortOpen:
			return fmt.Errorf("%s: %s depends on its own output (a cycle)", s.graph.Where(), next.Where())
		case sortNew:
			next.sorting = sortOpen
			stack = append(stack, frame{next, s.needs(next)})
		}
	}
	return nil
}

// needs lists the nodes of the sorted graph, not placed yet, that n reads from,
// itself or inside its subgraphs.
func (s *sorter) needs(n *Node) (out []*Node) {
	add := func(v *Value) {
		if v != nil && v.producer != nil && v.graph == s.graph && v.producer.sorting != sortDone && !v.producer.removed {
			out = append(out, v.producer)
		}
	}
	for _, v := range n.inputs {
		add(v)
	}
	for _, a := range n.attributes {
		for _, h := range a.graphs {
			h.visitReads(add)
		}
	}
	return out
}

// visitReads calls f with every value that the nodes and outputs of g, and of graphs inside, read.
func (g *Graph) visitReads(f func(*Value)) {
	for _, n := range g.Nodes() {
		for _, v := range n.inputs {
			f(v)
		}
		for _, a := range n.attributes {
			for _, h := range a.graphs {
				h.visitReads(f)
			}
		}
	}
	for _, v := range g.outputs {
		f(v)
	}
}

// Captures lists the values of outer graphs that g reads, each once, in the order of first reading.
func (g *Graph) Captures() []*Value {
	var out []*Value
	seen := map[*Value]bool{}
	g.visitReads(func(v *Value) {
		if v != nil && !seen[v] && v.graph != g && v.graph.Encloses(g) {
			seen[v] = true
			out = append(out, v)
		}
	})
	return slices.Clip(out)
}
