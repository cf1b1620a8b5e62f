package inference

import (
	"context"
	"errors"
	"strings"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/feeds"
	"github.com/npuctl/npuctl/internal/modelfile"
	"github.com/npuctl/npuctl/internal/valuefile"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/infer"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnxpass"
)

// blame says whose fault it is that a model refused all random inputs: that of the
// model, when no others could do better; that of the sizes that the user gave, when it
// could run without them; else that of the inputs, which the user can give.
func (j Job) blame(ctx context.Context, s subject, refusals []error) error {
	if s.file == nil {
		inference, err := inferred(ctx, s.model)
		if err != nil {
			return err
		}
		if why, ok := modelfile.Impossible(inference.Conflicts()); ok {
			return j.impossible(ctx, why)
		}
		if agree(refusals) && isOwnFault(s.model, inference, refusals[0]) {
			return j.unable(refusals[0])
		}
	}
	return fault.New(fault.Usage, "%s: random inputs do not suit the model: %w", j.Model, refusals[0]).With("%s", remedy(s.model))
}

// unable is the failure of a model that no inputs suit.
func (j Job) unable(why error) error {
	return fault.New(fault.Input, "%s: no inputs suit the model: %w", j.Model, why)
}

func inferred(ctx context.Context, m *onnx.Model) (*infer.Inference, error) {
	inference := infer.New(m, infer.Options{})
	return inference, inference.Run(ctx)
}

// impossible is the failure of a model whose shapes contradict each other: without the
// sizes that the user gave, too, or only with them.
func (j Job) impossible(ctx context.Context, why string) error {
	own := j.unable(errors.New(why))
	if j.Sizes.Batch == 0 && len(j.Sizes.Shapes)+len(j.Sizes.Dims) == 0 {
		return own
	}
	m, err := modelfile.Open(j.Model)
	if err != nil {
		return err
	}
	defer m.Close()
	inference, err := inferred(ctx, m)
	if err != nil {
		return err
	}
	if _, ok := modelfile.Impossible(inference.Conflicts()); ok {
		return own
	}
	return fault.New(fault.Usage, "%s: the model cannot run in the sizes that are given: %s", j.Model, why).
		With("give others with --dim, --batch or --input-shape, or leave them out")
}

// unmade is the failure of inputs that could not be made up: what the user can do about
// it depends on whether files can hold them.
func (j Job) unmade(m *onnx.Model, why error) error {
	for _, v := range onnxpass.RealInputs(m) {
		if v.Initializer() == nil && !valuefile.Reads(v.Type) {
			return fault.New(fault.Missing, "%s: %w, nor read from files: npuctl does not run such models", j.Model, why)
		}
	}
	return fault.New(fault.Usage, "%s: %w", j.Model, why).With("%s", remedy(m))
}

// remedy says how the user can give other inputs.
func remedy(m *onnx.Model) string {
	for _, v := range onnxpass.RealInputs(m) {
		t := v.Type
		if !t.IsTensor() {
			continue
		}
		if _, fixed := t.Shape.Ints(); !fixed {
			return "give inputs with --inputs, or sizes with --dim, --batch or --input-shape"
		}
	}
	return "give inputs with --inputs"
}

// agree says whether a model refused all sets of inputs in the same words. Of what is
// wrong with sizes or elements the words tell these, so that others would be there.
func agree(refusals []error) bool {
	for _, err := range refusals[1:] {
		if err.Error() != refusals[0].Error() {
			return false
		}
	}
	return true
}

// isOwnFault says whether the node that failed had nothing from the inputs that could
// have made it fail: all that decides about it is constant.
func isOwnFault(m *onnx.Model, inference *infer.Inference, err error) bool {
	n := failed(m, err.Error())
	if n == nil || len(n.Subgraphs()) > 0 {
		return false
	}
	for _, f := range m.Validate() {
		if f.Node == n && f.Declared {
			return true // the types that the inputs have are none for it
		}
	}
	given := fromInputs(m)
	for i, v := range n.Inputs() {
		if v == nil || !given[v] {
			continue
		}
		if !inference.Of(v).Elem.IsFloat() || feeds.Decides(n, i) {
			return false
		}
	}
	return true
}

// failed is the node of the main graph with which an engine's message begins; nil when
// there is none. One inside a function stands behind its call.
func failed(m *onnx.Model, message string) *onnx.Node {
	message = strings.TrimPrefix(message, "in ")
	for _, n := range m.Graph.Nodes() {
		if strings.HasPrefix(message, n.Where()+": ") {
			return n
		}
	}
	return nil
}

// fromInputs lists the values of the main graph whose elements depend on those of its
// inputs. Shapes do not count: with other sizes the words of a failure differ.
func fromInputs(m *onnx.Model) map[*onnx.Value]bool {
	given := map[*onnx.Value]bool{}
	for _, v := range m.Graph.Inputs() {
		given[v] = true
	}
	for _, n := range m.Graph.Nodes() {
		if n.Is("Shape") || n.Is("Size") {
			continue
		}
		depends := len(n.Subgraphs()) > 0 // which may read anything
		for _, v := range n.Inputs() {
			depends = depends || given[v]
		}
		for _, v := range n.Outputs() {
			if depends && v != nil {
				given[v] = true
			}
		}
	}
	return given
}

// isFinal says whether other inputs would meet the same failure.
func isFinal(err error) bool {
	return errors.Is(err, eval.ErrUnsupported) || errors.Is(err, eval.ErrBudget) || errors.Is(err, tensor.ErrTooLarge) || errors.Is(err, eval.ErrFault) || isDeviceFault(err) || isShortage(err)
}
