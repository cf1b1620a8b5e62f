package onnxpass

import (
	"fmt"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/infer"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// output is what is known of one output of the main graph, and what the model says of it.
type output struct {
	name     string
	info     infer.Info
	declared *onnx.Type
}

// outputsOf lists the outputs of the main graph as an inference knows them.
func outputsOf(m *onnx.Model, inference *infer.Inference) []output {
	var all []output
	for _, v := range m.Graph.Outputs() {
		all = append(all, output{v.Name(), *inference.Of(v), v.Type})
	}
	return all
}

// checkOutputs proves, with an inference of its own, that the graph's outputs are what
// they were before the first pass: the same names in the same order, and of each what
// was known of its kind, element type, rank and fixed dims. A pass that loses one of
// these has broken the graph, or wrote a node that inference cannot follow.
func (s *State) checkOutputs() error {
	fresh := infer.New(s.model, s.inferOptions)
	if err := fresh.Run(s.ctx); err != nil {
		return err
	}
	now := outputsOf(s.model, fresh)
	if len(now) != len(s.outputs) {
		return fmt.Errorf("%w: it had %d outputs and has %d", ErrBroken, len(s.outputs), len(now))
	}
	for i, was := range s.outputs {
		if was.name != now[i].name {
			return fmt.Errorf("%w: output %d was %q and is %q", ErrBroken, i, was.name, now[i].name)
		}
		if what := lost(&was.info, &now[i].info); what != "" {
			return fmt.Errorf("%w: output %q was %s and is %s: its %s is another, or not known any more", ErrBroken, was.name, &was.info, &now[i].info, what)
		}
	}
	return nil
}

// lost names the first thing that was known of a value and does not hold of it now.
func lost(was, now *infer.Info) string {
	typeless := was.Kind == onnx.KindTensor && was.Elem == tensor.Undefined
	switch {
	case was.Kind != now.Kind && !typeless:
		return "kind"
	case was.Elem != now.Elem && was.Elem != tensor.Undefined:
		return "element type"
	case was.Inner != nil && now.Inner == nil:
		return "content"
	case was.Inner != nil:
		return lost(was.Inner, now.Inner)
	case !was.Ranked:
		return ""
	case !now.Ranked || len(was.Dims) != len(now.Dims):
		return "rank"
	}
	for k, d := range was.Dims {
		if n, fixed := d.Known(); fixed && !now.Dims[k].Is(n) {
			return fmt.Sprintf("dim %d", k)
		}
	}
	return ""
}

// checkDeclarations proves, once the types are written, that every output still has the
// rank and the fixed dims that the model declared, where inference knows no better.
func (s *State) checkDeclarations() error {
	for i, now := range outputsOf(s.model, s.infer) {
		was := s.outputs[i].declared
		if what := lostDeclaration(was, now.declared, &now.info); what != "" {
			return fmt.Errorf("%w: output %q was declared %s and is declared %s: its %s is lost", ErrBroken, now.name, was, now.declared, what)
		}
	}
	return nil
}

// lostDeclaration names the first thing that was declared of a value, is not any more, and
// is not known otherwise.
func lostDeclaration(was, now *onnx.Type, known *infer.Info) string {
	switch {
	case was == nil || now != nil && (was.Kind != now.Kind || was.Elem != now.Elem):
		return "" // inference's kinds and types are compared in lost
	case now == nil:
		return "type"
	case was.Inner != nil && known.Inner != nil:
		return lostDeclaration(was.Inner, now.Inner, known.Inner)
	case was.Shape == nil || known.Ranked && len(known.Dims) != len(was.Shape.Dims):
		return ""
	case now.Shape == nil || len(now.Shape.Dims) != len(was.Shape.Dims):
		return "rank"
	}
	for k, d := range was.Shape.Dims {
		found := infer.Unknown()
		if known.Ranked {
			found = known.Dims[k]
		}
		kept := now.Shape.Dims[k]
		if _, fixed := found.Known(); d.Known && !fixed && (!kept.Known || kept.Value != d.Value) {
			return fmt.Sprintf("dim %d", k)
		}
	}
	return ""
}
