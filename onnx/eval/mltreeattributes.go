package eval

import (
	"math"
)

// keptForest reads a forest once for all runs.
func (c *Call) keptForest(votes string, targets int) (*forest, error) {
	made, err := c.Once(func() (any, error) { return c.forest(votes, targets) })
	if err != nil {
		return nil, err
	}
	return made.(*forest), nil
}

// treeKey names a node: the tree's id and its own.
type treeKey struct{ tree, node int64 }

// forest reads the attributes of the two operators that list leaves among the
// nodes. votes is the first part of the names of those that say what leaves vote
// for: target or class.
func (c *Call) forest(votes string, targets int) (*forest, error) {
	f := &forest{targets: targets}
	trees, _ := c.Ints("nodes_treeids")
	ids, _ := c.Ints("nodes_nodeids")
	features, _ := c.Ints("nodes_featureids")
	yes, _ := c.Ints("nodes_truenodeids")
	no, _ := c.Ints("nodes_falsenodeids")
	missing, _ := c.Ints("nodes_missing_value_tracks_true")
	modes := c.strings("nodes_modes")
	values, err := c.floatsOrTensor("nodes_values")
	if err != nil {
		return nil, err
	}
	n := len(trees)
	for _, length := range []int{len(ids), len(features), len(yes), len(no), len(modes), len(values)} {
		if length != n {
			return nil, c.Errorf("the nodes_ attributes have different lengths")
		}
	}
	if targets < 1 || len(missing) != 0 && len(missing) != n {
		return nil, c.Errorf("%d targets, %d nodes, %d entries for missing values", targets, n, len(missing))
	}
	place := make(map[treeKey]int, n)
	for i := range trees {
		place[treeKey{trees[i], ids[i]}] = i
	}
	if len(place) != n {
		return nil, c.Errorf("a tree has two nodes of one id")
	}
	isChild := make([]bool, n)
	f.nodes = make([]treeNode, n)
	for i := range f.nodes {
		mode, known := branchModes[modes[i]]
		if !known {
			return nil, c.Errorf("tree node %d compares by %q", i, modes[i])
		}
		node := treeNode{mode: mode, value: values[i], missing: len(missing) > 0 && missing[i] != 0}
		if mode != branchLeaf {
			node.feature = clampToInt(features[i])
			node.yes, node.no = child(place, trees[i], yes[i]), child(place, trees[i], no[i])
			for _, k := range []int{node.yes, node.no} {
				if k >= 0 {
					isChild[k] = true
				}
			}
		}
		f.nodes[i] = node
	}
	for i, is := range isChild {
		if !is {
			f.roots = append(f.roots, i)
		}
	}
	if err := c.addVotes(f, votes, place); err != nil {
		return nil, err
	}
	return f, f.check(c)
}

// child gives the place of a node, -1 when the tree has none of that id.
func child(place map[treeKey]int, tree, node int64) int {
	if i, ok := place[treeKey{tree, node}]; ok {
		return i
	}
	return -1
}

// clampToInt makes a number that is too large for an index a negative one.
func clampToInt(v int64) int {
	if v > math.MaxInt32 {
		return -1
	}
	return int(v)
}

func (c *Call) addVotes(f *forest, name string, place map[treeKey]int) error {
	trees, _ := c.Ints(name + "_treeids")
	nodes, _ := c.Ints(name + "_nodeids")
	targets, _ := c.Ints(name + "_ids")
	weights, err := c.floatsOrTensor(name + "_weights")
	if err != nil {
		return err
	}
	if len(nodes) != len(trees) || len(targets) != len(trees) || len(weights) != len(trees) {
		return c.Errorf("the %s_ attributes have different lengths", name)
	}
	for i := range trees {
		at := child(place, trees[i], nodes[i])
		if at < 0 {
			return c.Errorf("no tree %d has a node %d", trees[i], nodes[i])
		}
		n := &f.nodes[at]
		n.votes = append(n.votes, treeVote{clampToInt(targets[i]), weights[i]})
	}
	return nil
}

// floatsOrTensor reads a floats attribute, or the tensor attribute that stands in
// for it from version 3 on.
func (c *Call) floatsOrTensor(name string) ([]float64, error) {
	if a := c.Attribute(name + "_as_tensor"); a != nil {
		return c.tensorAttribute(name + "_as_tensor")
	}
	single := c.floats(name)
	values := make([]float64, len(single))
	for i, v := range single {
		values[i] = float64(v)
	}
	return values, nil
}

// tensorAttribute gives the numbers of a tensor attribute; nil when it is left out.
func (c *Call) tensorAttribute(name string) ([]float64, error) {
	a := c.Attribute(name)
	if a == nil || a.Tensor() == nil {
		return nil, nil
	}
	d, err := a.Tensor().Dense()
	if err != nil {
		return nil, c.Errorf("attribute %q: %w", name, err)
	}
	values, ok := d.Float64s()
	if !ok {
		return nil, c.Errorf("attribute %q is %s", name, d.Type())
	}
	return values, nil
}

// baseValues are added to the scores: none, one for each target, or, for two
// classes, one for both.
func (c *Call) baseValues(targets int) ([]float64, error) {
	base, err := c.floatsOrTensor("base_values")
	if err != nil {
		return nil, err
	}
	if len(base) != 0 && len(base) != targets && !(len(base) == 1 && targets == 2) {
		return nil, c.Errorf("%d base values for %d targets", len(base), targets)
	}
	return base, nil
}

// ensemble reads the attributes of TreeEnsemble, which lists leaves apart. Here they
// follow the other nodes.
func (c *Call) ensemble() (*forest, error) {
	targets := clampToInt(c.Int("n_targets", 1))
	roots, _ := c.Ints("tree_roots")
	features, _ := c.Ints("nodes_featureids")
	yes, _ := c.Ints("nodes_truenodeids")
	no, _ := c.Ints("nodes_falsenodeids")
	yesLeaf, _ := c.Ints("nodes_trueleafs")
	noLeaf, _ := c.Ints("nodes_falseleafs")
	missing, _ := c.Ints("nodes_missing_value_tracks_true")
	leafTargets, _ := c.Ints("leaf_targetids")
	lists := map[string][]float64{"nodes_modes": nil, "nodes_splits": nil, "leaf_weights": nil, "membership_values": nil}
	for name := range lists {
		var err error
		if lists[name], err = c.tensorAttribute(name); err != nil {
			return nil, err
		}
	}
	modes, splits, weights := lists["nodes_modes"], lists["nodes_splits"], lists["leaf_weights"]
	n := len(features)
	for _, length := range []int{len(yes), len(no), len(yesLeaf), len(noLeaf), len(modes), len(splits)} {
		if length != n {
			return nil, c.Errorf("the nodes_ attributes have different lengths")
		}
	}
	if targets < 1 || len(weights) != len(leafTargets) || len(missing) != 0 && len(missing) != n {
		return nil, c.Errorf("%d targets, %d leaves with %d weights, %d nodes with %d entries for missing values",
			targets, len(leafTargets), len(weights), n, len(missing))
	}
	f := &forest{targets: targets, nodes: make([]treeNode, n, n+len(weights))}
	next := func(id, isLeaf int64) int {
		if isLeaf != 0 {
			if id < 0 || id >= int64(len(weights)) {
				return -1
			}
			return n + int(id)
		}
		if id < 0 || id >= int64(n) {
			return -1
		}
		return int(id)
	}
	for i := range f.nodes {
		if modes[i] < 0 || modes[i] > float64(branchMember) {
			return nil, c.Errorf("tree node %d compares by %v", i, modes[i])
		}
		f.nodes[i] = treeNode{
			mode: branchMode(modes[i]), value: splits[i], missing: len(missing) > 0 && missing[i] != 0,
			feature: clampToInt(features[i]), yes: next(yes[i], yesLeaf[i]), no: next(no[i], noLeaf[i]),
		}
	}
	for i, w := range weights {
		f.nodes = append(f.nodes, treeNode{mode: branchLeaf, votes: []treeVote{{clampToInt(leafTargets[i]), w}}})
	}
	for _, r := range roots {
		if r < 0 || r >= int64(n) {
			return nil, c.Errorf("a tree starts at node %d of %d", r, n)
		}
		f.roots = append(f.roots, int(r))
	}
	if !f.setMembers(lists["membership_values"]) {
		return nil, c.Errorf("membership_values do not have a set for each node that asks for one")
	}
	return f, f.check(c)
}

// setMembers hands out sets, which NaNs end, to the nodes that ask for membership,
// in the order of the nodes.
func (f *forest) setMembers(values []float64) bool {
	for i := range f.nodes {
		n := &f.nodes[i]
		if n.mode != branchMember {
			continue
		}
		end := 0
		for end < len(values) && values[end] == values[end] {
			end++
		}
		if end == len(values) {
			return false
		}
		n.members, values = values[:end], values[end+1:]
	}
	return len(values) == 0
}
