package onnxpass

import (
	"fmt"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/infer"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// output is what is known of one output of the main graph.
type output struct {
	name string
	info infer.Info
}

// outputsOf lists the outputs of the main graph as an inference knows them.
func outputsOf(m *onnx.Model, inference *infer.Inference) []output {
	var all []output
	for _, v := range m.Graph.Outputs() {
		all = append(all, output{v.Name(), *inference.Of(v)})
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
