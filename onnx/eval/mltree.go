package eval

import (
	"math"
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// treeOperators are forests of decision trees.
var treeOperators = []operator{
	{domain: machineLearning, name: "TreeEnsemble", since: 5, run: onFloats(0, treeEnsemble[float32], treeEnsemble[float64])},
	{domain: machineLearning, name: "TreeEnsembleClassifier", since: 1, run: onFeatures(treeClassifier[float32], treeClassifier[float64])},
	{domain: machineLearning, name: "TreeEnsembleRegressor", since: 1, run: onFeatures(treeRegressor[float32], treeRegressor[float64])},
}

// branchMode is the comparison that a node makes.
type branchMode uint8

// The modes, by their numbers in TreeEnsemble, and a leaf.
const (
	branchLessOrEqual branchMode = iota
	branchLess
	branchGreaterOrEqual
	branchGreater
	branchEqual
	branchNotEqual
	branchMember
	branchLeaf
)

var branchModes = map[string]branchMode{
	"BRANCH_LEQ": branchLessOrEqual, "BRANCH_LT": branchLess, "BRANCH_GTE": branchGreaterOrEqual, "BRANCH_GT": branchGreater,
	"BRANCH_EQ": branchEqual, "BRANCH_NEQ": branchNotEqual, "LEAF": branchLeaf,
}

// treeNode is a question about one feature, or a leaf.
type treeNode struct {
	mode    branchMode
	missing bool // the answer for NaN
	feature int
	value   float64
	members []float64 // of branchMember
	yes, no int       // the next node
	votes   []treeVote
}

// treeVote is what a leaf adds to a target.
type treeVote struct {
	target int
	weight float64
}

func (n *treeNode) answer(v float64) bool {
	if v != v {
		return n.missing
	}
	switch n.mode {
	case branchLessOrEqual:
		return v <= n.value
	case branchLess:
		return v < n.value
	case branchGreaterOrEqual:
		return v >= n.value
	case branchGreater:
		return v > n.value
	case branchEqual:
		return v == n.value
	case branchNotEqual:
		return v != n.value
	}
	return slices.Contains(n.members, v)
}

// forest is many trees over one list of nodes.
type forest struct {
	nodes   []treeNode
	roots   []int
	targets int
	columns int // least number of features
}

// leafOf walks down one tree; nil when the nodes run in a circle.
func leafOf[T floating](f *forest, root int, x []T) *treeNode {
	at := root
	for range f.nodes {
		n := &f.nodes[at]
		if n.mode == branchLeaf {
			return n
		}
		at = n.no
		if n.answer(float64(x[n.feature])) {
			at = n.yes
		}
	}
	return nil
}

// check finds children, features and targets that are not there.
func (f *forest) check(c *Call) error {
	for i, n := range f.nodes {
		for _, v := range n.votes {
			if v.target < 0 || v.target >= f.targets {
				return c.Errorf("tree node %d votes for target %d of %d", i, v.target, f.targets)
			}
		}
		if n.mode == branchLeaf {
			continue
		}
		if n.yes < 0 || n.no < 0 || n.yes >= len(f.nodes) || n.no >= len(f.nodes) || n.feature < 0 {
			return c.Errorf("tree node %d leads to nodes %d and %d of %d by feature %d", i, n.yes, n.no, len(f.nodes), n.feature)
		}
		f.columns = max(f.columns, n.feature+1)
	}
	return nil
}

// aggregation says how the votes for one target become one number.
type aggregation int

// The kinds, by their numbers in TreeEnsemble.
const (
	averageVotes aggregation = iota
	sumVotes
	leastVote
	greatestVote
)

var aggregations = map[string]aggregation{"AVERAGE": averageVotes, "SUM": sumVotes, "MIN": leastVote, "MAX": greatestVote}

// tally collects the votes of all trees for one row.
type tally struct {
	kind   aggregation
	scores []float64
	voted  []bool
}

func newTally(kind aggregation, targets int) *tally {
	return &tally{kind, make([]float64, targets), make([]bool, targets)}
}

// count lets all trees vote, in order, in float64. Targets without votes have 0.
func count[T floating](t *tally, f *forest, x []T) bool {
	clear(t.scores)
	clear(t.voted)
	for _, root := range f.roots {
		leaf := leafOf(f, root, x)
		if leaf == nil {
			return false
		}
		for _, v := range leaf.votes {
			t.add(v)
		}
	}
	if t.kind == averageVotes {
		for k := range t.scores {
			t.scores[k] /= float64(len(f.roots))
		}
	}
	return true
}

func (t *tally) add(v treeVote) {
	s := &t.scores[v.target]
	switch {
	case t.kind == sumVotes || t.kind == averageVotes:
		*s += v.weight
	case !t.voted[v.target]:
		*s = v.weight
	case t.kind == leastVote:
		*s = min(*s, v.weight)
	default:
		*s = max(*s, v.weight)
	}
	t.voted[v.target] = true
}

// eachRow tallies every row, on several cores, and hands the result to finish,
// which must write only what belongs to the row.
func eachRow[T floating](c *Call, f *forest, kind aggregation, x *features[T], finish func(row int, t *tally)) error {
	if f.columns > x.columns {
		return c.Errorf("the trees ask for %d features, a row has %d", f.columns, x.columns)
	}
	circle := make([]bool, x.rows)
	c.Parallel(x.rows, 1+(1<<12)/(8*len(f.roots)+1), func(first, last int) {
		t := newTally(kind, f.targets)
		for r := first; r < last; r++ {
			if circle[r] = !count(t, f, x.row(r)); !circle[r] {
				finish(r, t)
			}
		}
	})
	if slices.Contains(circle, true) {
		return c.Errorf("the nodes of a tree run in a circle")
	}
	return nil
}

// regress is what the two regressors share: aggregate, add base values, transform.
func regress[T floating](c *Call, f *forest, kind aggregation, base []float64, transform scoreTransform, x *features[T], y []T) error {
	return eachRow(c, f, kind, x, func(row int, t *tally) {
		for k := range t.scores {
			if len(base) > 0 {
				t.scores[k] += base[k%len(base)]
			}
		}
		transform(t.scores)
		for k, v := range t.scores {
			y[row*f.targets+k] = T(v)
		}
	})
}

func treeRegressor[T floating](c *Call) error {
	x, err := featureInput[T](c)
	if err != nil {
		return err
	}
	f, err := c.keptForest("target", int(min(c.Int("n_targets", 1), math.MaxInt32)))
	if err != nil {
		return err
	}
	kind, ok := aggregations[c.String("aggregate_function", "SUM")]
	if !ok {
		return c.Errorf("attribute \"aggregate_function\" is %q", c.String("aggregate_function", ""))
	}
	base, err := c.baseValues(f.targets)
	if err != nil {
		return err
	}
	transform, err := c.regressionTransform(f.targets)
	if err != nil {
		return err
	}
	values, err := c.New(tensor.TypeOf[T](), x.rows, f.targets)
	if err != nil {
		return err
	}
	if err := regress(c, f, kind, base, transform, x, tensor.Data[T](values)); err != nil {
		return err
	}
	return c.setOutput(c.cast(values, tensor.Float32))
}

// treeEnsemble has the type of its input throughout.
func treeEnsemble[T floating](c *Call) error {
	x, err := featureInput[T](c)
	if err != nil {
		return err
	}
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	made, err := c.Once(func() (any, error) { return c.ensemble() })
	if err != nil {
		return err
	}
	f := made.(*forest)
	kind := c.Int("aggregate_function", int64(sumVotes))
	post := c.Int("post_transform", 0)
	names := []string{"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"}
	if kind < 0 || kind > int64(greatestVote) || post < 0 || post >= int64(len(names)) {
		return c.Errorf("aggregate_function %d, post_transform %d", kind, post)
	}
	y, err := newResult[T](c, 0, d.Type(), x.rows, f.targets)
	if err != nil {
		return err
	}
	if err := regress(c, f, aggregation(kind), nil, scoreTransforms[names[post]], x, y.data); err != nil {
		return err
	}
	return y.finish()
}

// treeClassifier chooses the class with the greatest sum of votes.
//
// A forest for two classes whose leaves vote for class 0 only means, by a custom
// that all exporters follow and the specification does not mention, one score for
// the second class. As in ONNX Runtime it wins above ½ where no weight is negative,
// and above 0 otherwise. Where ONNX Runtime departs from the text further (labels 0
// and 1 when both of two classes have votes; classes without votes never win) we
// do not follow.
func treeClassifier[T floating](c *Call) error {
	x, err := featureInput[T](c)
	if err != nil {
		return err
	}
	labels, err := c.classLabels("classlabels_int64s")
	if err != nil {
		return err
	}
	f, err := c.keptForest("class", labels.Len())
	if err != nil {
		return err
	}
	base, err := c.baseValues(f.targets)
	if err != nil {
		return err
	}
	if len(base) != 0 && len(base) != f.targets && !f.isOneScore() {
		return c.Errorf("%d base values for %d classes", len(base), f.targets)
	}
	name, transform, err := c.postTransform()
	if err != nil {
		return err
	}
	decide := severalClasses(base, transform)
	if f.isOneScore() && len(base) < 2 {
		decide = oneScore(base, name, f.hasNegative())
	}
	classes, scores := make([]int, x.rows), make([][]float64, x.rows)
	err = eachRow(c, f, sumVotes, x, func(row int, t *tally) { classes[row], scores[row] = decide(t) })
	if err != nil {
		return err
	}
	k := &classifier{call: c, labels: labels}
	for r := range classes {
		k.add(classes[r], scores[r])
	}
	return k.finish()
}

// decision makes a class and scores of votes.
type decision func(t *tally) (int, []float64)

func severalClasses(base []float64, transform scoreTransform) decision {
	return func(t *tally) (int, []float64) {
		scores := slices.Clone(t.scores)
		for k := range base {
			scores[k] += base[k]
		}
		class := argmax(scores)
		transform(scores)
		return class, scores
	}
}

func oneScore(base []float64, transform string, signed bool) decision {
	return func(t *tally) (int, []float64) {
		s := t.scores[0]
		if len(base) > 0 {
			s += base[0]
		}
		if signed {
			return positive(s), twoScores(s, transform, true)
		}
		return positive(s - 0.5), twoScores(s, transform, false)
	}
}

// isOneScore says whether there are two classes, and all votes are for the first.
func (f *forest) isOneScore() bool {
	return f.targets == 2 && !slices.ContainsFunc(f.nodes, func(n treeNode) bool {
		return slices.ContainsFunc(n.votes, func(v treeVote) bool { return v.target != 0 })
	})
}

func (f *forest) hasNegative() bool {
	return slices.ContainsFunc(f.nodes, func(n treeNode) bool {
		return slices.ContainsFunc(n.votes, func(v treeVote) bool { return v.weight < 0 })
	})
}
