package onnxpass

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/infer"
	"github.com/npuctl/npuctl/onnx/schema"
)

// Options says what an optimisation may do.
type Options struct {
	// Only and Skip choose passes by name; both empty means all.
	Only, Skip []string
	// MaxResultGrowth bounds, in bytes, by how much one folded result may be
	// larger than the stored tensors that die with it.
	MaxResultGrowth int64
	// MaxTotalGrowth bounds the sum of that over all folding, in bytes.
	MaxTotalGrowth int64
	// Specialized says that inputs have other dims than the file declares, so that
	// what it declares of other values is out of date.
	Specialized bool
	// Verify runs the checker after every pass, and holds the graph's outputs against
	// what was known of them before the first one.
	Verify bool
	// Progress is told, when set, before every pass.
	Progress func(round int, pass string)
}

// ErrBroken is wrapped by what [Options.Verify] finds: a fault of a pass, not of the
// model.
var ErrBroken = errors.New("the graph is broken")

// DefaultMaxResultGrowth is what one folded result may add: 1 MiB.
const DefaultMaxResultGrowth = 1 << 20

// DefaultMaxTotalGrowth is what all folding together may add to a file of size
// bytes: a quarter of it, or 1 MiB when that is more.
func DefaultMaxTotalGrowth(size int64) int64 { return max(size/4, 1<<20) }

// Report says what an optimisation did.
type Report struct {
	// Changes counts, for each pass in order, the nodes or tensors it changed.
	Changes []PassChanges
	// Kept lists constants that could have been computed and were not.
	Kept []Kept
	// Conflicts lists what the file declares and inference contradicts.
	Conflicts []infer.Conflict
	// Dynamic lists the tensors whose shape is not known before running.
	Dynamic []Dynamic
	Rounds  int
}

// PassChanges is the tally of one pass over all rounds.
type PassChanges struct {
	Pass    string        `json:"name"`
	Changes int           `json:"changes"`
	Time    time.Duration `json:"-"`
}

// Kept is a node that stays though its inputs are constant, and why.
type Kept struct {
	Node   string `json:"node"`
	Reason string `json:"reason"`
}

// State is what a pass works on.
type State struct {
	ctx     context.Context
	model   *onnx.Model
	infer   *infer.Inference
	options Options

	inferOptions infer.Options
	outputs      []output // as they were before the first pass; only to verify

	changes int   // by the running pass
	grown   int64 // bytes that folding has added so far
	stopped bool  // the total was about to be passed
	frozen  bool  // it was in an earlier run: see stoppedKey
	kept    map[*onnx.Node]string

	effectful map[*onnx.Function]bool // functions that have been looked at: see isEffectful
}

// stoppedKey is the metadata that says that the total growth limit stopped
// folding. A run that finds it folds nothing that grows: with a new allowance it
// would go on where the first one stopped, and two runs would not be as one.
const stoppedKey = "npuctl.folding"

// maxRounds bounds the rounds; a graph that still changes then has a pair of
// passes that undo each other, which the tests would show.
const maxRounds = 32

// Optimize runs the passes on m until nothing changes. The model is edited in
// place; after an error it must not be used.
func Optimize(ctx context.Context, m *onnx.Model, o Options) (*Report, error) {
	chosen, err := choose(o.Only, o.Skip)
	if err != nil {
		return nil, err
	}
	if o.MaxResultGrowth == 0 {
		o.MaxResultGrowth = DefaultMaxResultGrowth
	}
	if o.MaxTotalGrowth == 0 {
		o.MaxTotalGrowth = DefaultMaxTotalGrowth(0)
	}
	if err := m.Graph.Sort(); err != nil {
		return nil, err
	}
	m.MakeNamesUnique()
	m.IsolateBranchOutputs()
	if err := m.Check(); err != nil {
		return nil, err
	}
	s := &State{ctx: ctx, model: m, options: o, kept: map[*onnx.Node]string{}, effectful: map[*onnx.Function]bool{}}
	s.inferOptions.StaleDeclarations = o.Specialized
	s.frozen = slices.ContainsFunc(m.Metadata, func(p onnx.Property) bool { return p.Key == stoppedKey })
	r := &Report{}
	for _, p := range chosen {
		r.Changes = append(r.Changes, PassChanges{Pass: p.Name})
	}
	for changed := true; changed && r.Rounds < maxRounds; r.Rounds++ {
		if changed, err = s.round(r, chosen); err != nil {
			return nil, err
		}
	}
	return r, s.finish(r)
}

func (s *State) round(r *Report, chosen []Pass) (changed bool, err error) {
	if err := s.inferAgain(); err != nil {
		return false, err
	}
	if s.options.Verify && r.Rounds == 0 {
		s.outputs = outputsOf(s.model, s.infer)
	}
	for i, p := range chosen {
		if err := s.ctx.Err(); err != nil {
			return false, err
		}
		if s.options.Progress != nil {
			s.options.Progress(r.Rounds+1, p.Name)
		}
		s.changes = 0
		start := time.Now()
		if err := p.run(s); err != nil {
			return false, fmt.Errorf("pass %s: %w", p.Name, err)
		}
		r.Changes[i].Changes += s.changes
		r.Changes[i].Time += time.Since(start)
		if s.changes == 0 {
			continue
		}
		changed = true
		if err := s.settle(); err != nil {
			return false, fmt.Errorf("after pass %s: %w", p.Name, err)
		}
	}
	return changed, nil
}

// settle brings the graph in order after a pass that changed it.
func (s *State) settle() error {
	if err := s.model.Graph.Sort(); err != nil {
		return err
	}
	for _, f := range s.model.Functions {
		if err := f.Body.Sort(); err != nil {
			return err
		}
	}
	if !s.options.Verify {
		return nil
	}
	if err := s.model.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return s.checkOutputs()
}

// inferAgain makes inference forget everything and start anew.
func (s *State) inferAgain() error {
	s.infer = infer.New(s.model, s.inferOptions)
	return s.infer.Run(s.ctx)
}

// finish writes what inference found into the model, so that the file declares
// every value's type once and rightly.
func (s *State) finish(r *Report) error {
	if err := s.inferAgain(); err != nil {
		return err
	}
	for g := range s.model.Graphs() {
		for v := range g.Values() {
			if v.Initializer() == nil && !v.IsInput() {
				s.infer.Declare(v)
			}
		}
		g.AnnotateValues()
	}
	if s.options.Verify {
		if err := s.checkDeclarations(); err != nil {
			return err
		}
	}
	if s.stopped && !s.frozen {
		s.model.Metadata = append(s.model.Metadata, onnx.Property{Key: stoppedKey,
			Value: fmt.Sprintf("stopped: it may add %d bytes", s.options.MaxTotalGrowth)})
	}
	r.Conflicts = s.infer.Conflicts()
	r.Dynamic = dynamics(s.model, s.infer)
	for n, why := range s.kept {
		if !n.Removed() {
			r.Kept = append(r.Kept, Kept{n.Where(), why})
		}
	}
	slices.SortFunc(r.Kept, func(a, b Kept) int { return compareKept(a, b) })
	return nil
}

func compareKept(a, b Kept) int {
	if a.Node != b.Node {
		if a.Node < b.Node {
			return -1
		}
		return 1
	}
	return 0
}

// changed counts one change by the running pass.
func (s *State) changed() { s.changes++ }

// replace makes readers of n's only output read v, and removes n when it is dead
// then. An Identity that has to stay, because a graph output needs a name of its
// own, does not count as a change.
func (s *State) replace(n *onnx.Node, v *onnx.Value) {
	if n.Graph().Forward(n, n.Output(0), v) {
		s.changed()
	}
	removeUnread(n)
}

// removeUnread removes a node none of whose outputs anybody reads, and says whether it did.
func removeUnread(n *onnx.Node) bool {
	if slices.ContainsFunc(n.Outputs(), func(v *onnx.Value) bool { return v != nil && v.HasUses() }) {
		return false
	}
	n.Graph().Remove(n)
	return true
}

// eachNode calls f with every node of every graph that a pass may look at:
// those that depend on no function attribute. f may remove the node.
func (s *State) eachNode(f func(n *onnx.Node) error) error {
	for g := range s.model.Graphs() {
		for _, n := range slices.Clone(g.Nodes()) {
			if n.Removed() || n.HasReferences() {
				continue
			}
			if err := f(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// isEffectful says whether a node does more than compute its outputs from its
// inputs: draws random numbers, or trains, itself or inside.
func (s *State) isEffectful(n *onnx.Node) bool {
	if schema.NonDeterministic(n.Domain, n.OpType) {
		return true
	}
	switch {
	case n.Is("Dropout"):
		return dropoutTrains(n)
	case n.Is("BatchNormalization"):
		return n.Opset() >= 14 && n.Int("training_mode", 0) != 0
	}
	for _, g := range n.Subgraphs() {
		if slices.ContainsFunc(g.Nodes(), s.isEffectful) {
			return true
		}
	}
	f := n.Model().Callee(n)
	if f == nil {
		return false
	}
	// Each body is looked at once: calls of calls would multiply.
	effectful, seen := s.effectful[f]
	if !seen {
		s.effectful[f] = false
		effectful = slices.ContainsFunc(f.Body.Nodes(), s.isEffectful)
		s.effectful[f] = effectful
	}
	return effectful
}

// dropoutTrains says whether a Dropout may drop: its training_mode input is
// there and not known to be false, or, before version 7, is_test is not set.
func dropoutTrains(n *onnx.Node) bool {
	if n.Opset() < 7 {
		return n.Int("is_test", 0) == 0
	}
	mode := n.Input(2)
	if mode == nil {
		return false
	}
	known, value := constantBool(mode)
	return !known || value
}
