package onnxpass

import (
	"errors"
	"fmt"
	"slices"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/infer"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// fold computes ahead what does not depend on the graph's inputs: nodes whose
// inputs are all constant, Loops and Ifs of constants included, and nodes whose
// result follows from shapes alone.
//
//	before: s = Shape(x);  n = Gather(s, 0);  m = Mul(n, 2);  y = Expand(z, m)     x FLOAT[4,3]
//	after:  y = Expand(z, {8})
//
// It goes over the graph once forward, together with inference, and marks what
// can be computed; small results are computed at once, for inference to use.
// Then it goes backward over what somebody still needs, and stores it. So the
// intermediate results of a chain never count, and a large one that would only
// be thrown away is never made.
//
// # Growth
//
// A stored result may be at most Options.MaxResultGrowth larger than the stored
// tensors that die with it, and all of them together at most
// Options.MaxTotalGrowth. A node over the limit stays, and its inputs are what is
// stored. A result that is one value over and over stays a ConstantOfShape,
// whatever led to it, unless it is tiny.
//
// # What is never folded
//
// Random operators and training; operators the interpreter does not know;
// results that the specification leaves undefined; DequantizeLinear and
// DynamicQuantizeLinear, whose inputs are what the compiler wants to see.
func fold(s *State) error {
	s.infer = infer.New(s.model, s.inferOptions)
	budget := int64(foldMemory) + timesInputs*storedBytes(s.model)
	for _, root := range roots(s.model) {
		f := &folder{State: s, budget: budget, known: map[*onnx.Value]eval.Value{}, splat: map[*onnx.Value]*tensor.Dense{},
			foldable: map[*onnx.Node]bool{}, claimed: map[*onnx.Value]bool{}, stored: map[uint64][]*tensor.Dense{}}
		if err := f.forward(root); err != nil {
			return err
		}
		if err := f.backward(root); err != nil {
			return err
		}
	}
	return nil
}

const (
	// eagerBytes is the size of results that are computed as soon as they can be.
	eagerBytes = 64 << 10
	// splatBytes is the size from which a repeated value is not stored.
	splatBytes = 1 << 10
	// foldMemory bounds what computing one result may take, beside a few times what it
	// is computed from, and what all of them may, beside a few times what is stored: a loop
	// that doubles its state, or as many Concats, must not take what there is.
	foldMemory  = 128 << 20
	timesInputs = 4
)

// neverFolded lists operators that a compiler for the NPU wants to see.
var neverFolded = map[string]bool{"DequantizeLinear": true, "DynamicQuantizeLinear": true, "Constant": true}

// storedBytes is how much a model stores.
func storedBytes(m *onnx.Model) (total int64) {
	for g := range m.Graphs() {
		for v := range g.Values() {
			if t := v.Constant(); t != nil {
				total += t.Bytes()
			}
		}
	}
	return total
}

type folder struct {
	*State
	budget   int64                         // bytes that results may still take while folding
	known    map[*onnx.Value]eval.Value    // results that have been computed
	splat    map[*onnx.Value]*tensor.Dense // results that repeat one value: that value, as a scalar
	foldable map[*onnx.Node]bool           // nodes that will not be needed at run time
	claimed  map[*onnx.Value]bool          // stored tensors whose death has been counted
	stored   map[uint64][]*tensor.Dense    // results that take a place in the file, by hash
}

// forward marks what can be folded in g and the graphs inside it.
func (f *folder) forward(g *onnx.Graph) error {
	for _, n := range g.Nodes() {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		f.infer.Node(n)
		if n.HasReferences() {
			continue
		}
		if f.foldable[n] = f.canFold(n); f.foldable[n] {
			continue
		}
		for _, h := range f.liveSubgraphs(n) {
			if err := f.forward(h); err != nil {
				return err
			}
		}
	}
	return nil
}

// liveSubgraphs lists the graphs inside n that may run: one branch of an If
// whose condition is known.
func (f *folder) liveSubgraphs(n *onnx.Node) []*onnx.Graph {
	if n.Is("If") && n.Input(0) != nil {
		if cond, ok := f.knownBool(n.Input(0)); ok {
			name := "else_branch"
			if cond {
				name = "then_branch"
			}
			if a := n.Attribute(name); a != nil {
				return a.Graphs()
			}
		}
	}
	return n.Subgraphs()
}

func (f *folder) knownBool(v *onnx.Value) (value, ok bool) {
	if d, isDense := f.known[v].(*tensor.Dense); isDense && d.Type() == tensor.Bool && d.Len() == 1 {
		return tensor.Data[bool](d)[0], true
	}
	ok, value = constantBool(v)
	return value, ok
}

// canFold says whether n's results are known before running, and computes them
// when they are small.
func (f *folder) canFold(n *onnx.Node) bool {
	if f.isEffectful(n) || neverFolded[n.OpType] && n.CanonicalDomain() == "" {
		return false
	}
	if f.followsFromShapes(n) {
		return true
	}
	if len(n.Inputs()) == 0 && len(n.Subgraphs()) == 0 && n.Model().Callee(n) == nil && !isGenerator(n) {
		return false
	}
	if !f.allConstant(n) || !eval.Supports(n) {
		return false
	}
	if f.repeatsOneValue(n) {
		return true
	}
	if !f.isSmall(n) {
		return true
	}
	return f.compute(n) == nil
}

// isGenerator names operators of no inputs whose results are constants.
func isGenerator(n *onnx.Node) bool { return n.Is("SequenceEmpty") || n.Is("Optional") }

// followsFromShapes takes results that inference knows whole.
func (f *folder) followsFromShapes(n *onnx.Node) bool {
	results := make([]*tensor.Dense, len(n.Outputs()))
	some := false
	for i, v := range n.Outputs() {
		if v == nil || !v.HasUses() {
			continue
		}
		if results[i] = denseOf(f.infer.Of(v)); results[i] == nil {
			return false
		}
		some = true
	}
	for i, v := range n.Outputs() {
		if results[i] != nil {
			f.known[v] = results[i]
		}
	}
	return some
}

// allConstant says whether every value that n reads, in its subgraphs too, is
// stored or will have been computed.
func (f *folder) allConstant(n *onnx.Node) bool {
	for _, v := range n.Inputs() {
		if v != nil && !f.isConstant(v) {
			return false
		}
	}
	for _, h := range n.Subgraphs() {
		for _, v := range h.Captures() {
			if !f.isConstant(v) {
				return false
			}
		}
	}
	return true
}

func (f *folder) isConstant(v *onnx.Value) bool {
	return v.Constant() != nil || v.Producer() != nil && f.foldable[v.Producer()]
}

// isSmall says whether computing n now costs next to nothing: its inputs and
// results are small, or the results' sizes cannot be told without computing.
func (f *folder) isSmall(n *onnx.Node) bool {
	for _, v := range n.Outputs() {
		if size, ok := f.size(v); ok && size > eagerBytes {
			return false
		}
	}
	for _, v := range n.Inputs() {
		if size, ok := f.size(v); ok && size > 16*eagerBytes {
			return false
		}
	}
	return true
}

// size is the number of bytes of a tensor whose dims are all known.
func (f *folder) size(v *onnx.Value) (bytes int64, ok bool) {
	if v == nil {
		return 0, true
	}
	if t := v.Constant(); t != nil {
		return t.Bytes(), true
	}
	dims, ok := f.knownDims(v)
	if !ok {
		return 0, false
	}
	count, err := tensor.Count(dims)
	if err != nil {
		return 0, false
	}
	return f.infer.Of(v).Elem.RawSize(int64(count))
}

// compute runs n on the values of its inputs and keeps the results. A node that
// cannot be computed is remembered with the reason.
func (f *folder) compute(n *onnx.Node) error {
	inputs := make([]eval.Value, len(n.Inputs()))
	memory := int64(foldMemory)
	for i, v := range n.Inputs() {
		if v == nil {
			continue
		}
		if bytes, ok := f.size(v); ok {
			memory += timesInputs * bytes
		}
		var err error
		if inputs[i], err = f.value(v); err != nil {
			return err
		}
	}
	results, err := eval.Fold(f.ctx, n, inputs, f.lookUp, min(memory, max(f.budget, 1)))
	if err != nil {
		f.keep(n, err)
		return err
	}
	for _, r := range results {
		if d, ok := r.(*tensor.Dense); ok {
			f.budget -= d.Bytes()
		}
	}
	for i, v := range n.Outputs() {
		if v == nil {
			continue
		}
		f.known[v] = results[i]
		if d, ok := results[i].(*tensor.Dense); ok {
			f.infer.SetConstant(v, d)
		}
	}
	return nil
}

// value gives a constant's value, computing what leads to it when that was put off.
func (f *folder) value(v *onnx.Value) (eval.Value, error) {
	if known := f.known[v]; known != nil {
		return known, nil
	}
	if t := v.Constant(); t != nil {
		return t.Dense()
	}
	if err := f.compute(v.Producer()); err != nil {
		return nil, err
	}
	if f.known[v] == nil {
		return nil, fmt.Errorf("%s gave no value for %q", v.Producer().Where(), v.Name())
	}
	return f.known[v], nil
}

func (f *folder) lookUp(v *onnx.Value) (eval.Value, bool) {
	value, err := f.value(v)
	return value, err == nil
}

// keep remembers why a node with constant inputs stays.
func (f *folder) keep(n *onnx.Node, why error) {
	reason := why.Error()
	switch {
	case errors.Is(why, eval.ErrUndefined):
		reason = "its result is undefined by the ONNX specification: " + reason
	case errors.Is(why, eval.ErrUnsupported):
		return // opaque to us: nothing a reader could act on
	}
	f.kept[n] = reason
}

// backward decides, from the results back, what is stored in place of which node.
func (f *folder) backward(g *onnx.Graph) error {
	nodes := g.Nodes()
	for i := len(nodes) - 1; i >= 0; i-- {
		n := nodes[i]
		if f.foldable[n] {
			if err := f.store(n); err != nil {
				return err
			}
		}
		if f.foldable[n] {
			continue
		}
		for _, h := range n.Subgraphs() {
			if err := f.backward(h); err != nil {
				return err
			}
		}
	}
	return nil
}

// store puts constants in the place of those results of n that somebody still
// needs; when one of them cannot be had, n stays as it is.
func (f *folder) store(n *onnx.Node) error {
	var needed []*onnx.Value
	for _, v := range n.Outputs() {
		if v != nil && f.isNeeded(v) {
			needed = append(needed, v)
		}
	}
	for _, v := range needed {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		if err := f.mayStore(n, v); err != nil {
			f.keep(n, err)
			f.foldable[n] = false
			return nil
		}
	}
	for _, v := range needed {
		if f.put(n, v) {
			f.changed()
		} else {
			f.foldable[n] = false
		}
	}
	return nil
}

// isNeeded says whether a graph output or a node that will run reads v.
func (f *folder) isNeeded(v *onnx.Value) bool {
	for _, g := range v.OutputOf() {
		if g.Owner() == nil || !f.vanishes(g.Owner()) {
			return true
		}
	}
	for _, u := range v.Uses() {
		if !f.vanishes(u.Node) {
			return true
		}
	}
	return false
}

// vanishes says whether n, or a node around it, is folded.
func (f *folder) vanishes(n *onnx.Node) bool {
	for n != nil {
		if f.foldable[n] {
			return true
		}
		n = n.Graph().Owner()
	}
	return false
}

// mayStore says whether v may be stored, by its kind and by the growth rules.
func (f *folder) mayStore(n *onnx.Node, v *onnx.Value) error {
	if f.splat[v] != nil {
		return nil
	}
	size, known := f.size(v)
	var dying int64
	var leaves []*onnx.Value
	if known && size <= f.options.MaxResultGrowth || !known {
		// Computing is cheap enough to do before weighing.
		d, err := f.dense(v)
		if err != nil {
			return err
		}
		size = d.Bytes()
	}
	if size > 64 {
		dying, leaves = f.dyingBytes(n)
	}
	growth := size - dying
	if known && size <= f.options.MaxResultGrowth && f.isStoredAlready(v) {
		growth = 0 // merge-constants will make one of the two
	}
	if growth > f.options.MaxResultGrowth {
		return fmt.Errorf("its result of %d bytes would be %d larger than what dies with it (limit %d)", size, growth, f.options.MaxResultGrowth)
	}
	if growth > 0 && f.frozen {
		return fmt.Errorf("folding reached its limit in an earlier run (metadata %s); its result would add %d bytes", stoppedKey, growth)
	}
	if growth > 0 && f.grown+growth > f.options.MaxTotalGrowth {
		f.stopped = true
		return fmt.Errorf("its result would add %d bytes, and folding has %d left of the %d it may add", growth, f.options.MaxTotalGrowth-f.grown, f.options.MaxTotalGrowth)
	}
	if _, err := f.dense(v); err != nil {
		return err
	}
	f.grown += growth
	for _, v := range leaves {
		f.claimed[v] = true
	}
	return nil
}

// isStoredAlready says whether an equal result has been stored, or remembers v as stored.
func (f *folder) isStoredAlready(v *onnx.Value) bool {
	d, err := f.dense(v)
	if err != nil {
		return false
	}
	h := d.Hash()
	if slices.ContainsFunc(f.stored[h], func(e *tensor.Dense) bool { return tensor.EqualBits(d, e) }) {
		return true
	}
	f.stored[h] = append(f.stored[h], d)
	return false
}

func (f *folder) dense(v *onnx.Value) (*tensor.Dense, error) {
	value, err := f.value(v)
	if err != nil {
		return nil, err
	}
	d, ok := value.(*tensor.Dense)
	if !ok {
		return nil, fmt.Errorf("a sequence or optional cannot be stored")
	}
	return d, nil
}

// dyingBytes adds up the stored tensors that only lead to n and that no other
// result has been set off against.
func (f *folder) dyingBytes(n *onnx.Node) (total int64, leaves []*onnx.Value) {
	seen := map[*onnx.Node]bool{n: true}
	work := []*onnx.Node{n}
	for len(work) > 0 && len(seen) < 10_000 {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		for _, v := range n.Inputs() {
			if v == nil || f.isNeeded(v) {
				continue
			}
			if t := v.Constant(); t != nil && !f.claimed[v] && !slices.Contains(leaves, v) {
				leaves = append(leaves, v)
				total += t.Bytes()
			}
			if p := v.Producer(); p != nil && !seen[p] {
				seen[p] = true
				work = append(work, p)
			}
		}
	}
	return total, leaves
}

// put stores v in n's place. It answers false when n is already what would be put there.
func (f *folder) put(n *onnx.Node, v *onnx.Value) bool {
	if scalar := f.splat[v]; scalar != nil {
		if n.Is("ConstantOfShape") {
			return false
		}
		f.putConstantOfShape(n, v, scalar)
		return true
	}
	d := f.known[v].(*tensor.Dense)
	f.storeAs(n, v, d)
	return true
}
