package compilation

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/gears"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/om"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// verify reads the .om back and holds it against what was asked: an .om for another
// chip, with other gears or other shapes is worse than none.
func (b *build) verify(path string, m *onnx.Model) error {
	signature, origin, err := b.readBack(path)
	if err != nil {
		return err
	}
	kind, rows := "", [][]int64(nil)
	if b.shapes.plan != nil {
		kind, rows = gearKinds[b.shapes.flag], b.shapes.gearRows()
	}
	wrong := append(b.compareChip(origin), compareGears(signature, kind, rows)...)
	if !b.list.has("insert_op_conf") { // which changes types and shapes of inputs
		wrong = append(wrong, b.compareInputs(signature, m)...)
	}
	return b.notAsked(append(wrong, b.compareOutputs(signature, m)...))
}

// readBack reads what a result says of itself.
func (b *build) readBack(path string) (*om.Signature, om.Provenance, error) {
	f, err := om.Open(path)
	if err != nil {
		return nil, om.Provenance{}, b.unreadable("atc made an .om that cannot be read", err)
	}
	defer f.Close()
	signature, err := f.Signature()
	if err != nil {
		return nil, om.Provenance{}, b.unreadable("the signature of the .om", err)
	}
	origin, err := f.Provenance()
	if err != nil {
		return nil, om.Provenance{}, b.unreadable("the .om says nothing of its origin", err)
	}
	if _, isEmulated := f.Partition(0, om.EmulatedModel); isEmulated {
		b.result.Emulated = true // whatever the toolkit says of itself
	}
	b.result.Inputs, b.result.Outputs, b.result.Bytes = signature.Inputs, signature.Outputs, f.Size()
	if b.result.Kind == "" { // of a command line that is not ours
		b.result.Kind = StaticKind
		if signature.Gears != nil {
			b.result.Kind = GearsKind
		} else if f.Header.Dynamic {
			b.result.Kind = DynamicKind
		}
	}
	return signature, origin, nil
}

// unreadable is the failure of an .om that ATC wrote and nobody can read. What is to be
// done about files of other people's is no remedy here: the log of the run may tell.
func (b *build) unreadable(what string, err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		err = f.Err
	}
	return fault.New(fault.Program, "%s: %s: %w", b.model, what, err).
		With("nothing was written; look for the reason in the log, in %s", b.result.LogFolder)
}

// notAsked is the failure of an .om that differs from what was asked for.
func (b *build) notAsked(wrong []string) error {
	if len(wrong) == 0 {
		return nil
	}
	return fault.New(fault.Program, "%s: the .om is not what was asked for: %s", b.model, strings.Join(wrong, "; ")).
		With("nothing was written; report it with the log in %s", b.result.LogFolder)
}

func (b *build) compareChip(origin om.Provenance) []string {
	if origin.SoC == "" || origin.SoC == b.chip.Name {
		return nil
	}
	return []string{fmt.Sprintf("it is for %s, not for %s", origin.SoC, b.chip.Name)}
}

// gearKinds are the kinds of gears as package om names them.
var gearKinds = map[atc.GearKind]string{atc.BatchGears: "batch", atc.ImageGears: "image", atc.DimsGears: "dims"}

// compareGears holds the gears against those asked for; without a kind there were none.
func compareGears(s *om.Signature, kind string, rows [][]int64) []string {
	switch {
	case kind == "" && s.Gears == nil:
		return nil
	case kind == "":
		return []string{fmt.Sprintf("it has %d gears, and none were asked for", len(s.Gears.Rows))}
	case s.Gears == nil:
		return []string{"it has no gears"}
	}
	var wrong []string
	if s.Gears.Kind != kind {
		wrong = append(wrong, fmt.Sprintf("its gears are of kind %s, not %s", s.Gears.Kind, kind))
	}
	// ATC may sort them: which there are is what counts.
	want, got := sortedRows(rows), sortedRows(s.Gears.Rows)
	if !slices.EqualFunc(want, got, slices.Equal) {
		wrong = append(wrong, fmt.Sprintf("its gears are %s, not %s", rowsText(got), rowsText(want)))
	}
	return wrong
}

func sortedRows(rows [][]int64) [][]int64 {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, slices.Compare)
	return rows
}

func rowsText(rows [][]int64) string {
	words := make([]string, len(rows))
	for i, r := range rows {
		words[i] = gears.Text(r)
	}
	return strings.Join(words, ";")
}

// compareInputs holds names, dims and types of the inputs against the graph's.
func (b *build) compareInputs(s *om.Signature, m *onnx.Model) (wrong []string) {
	if len(s.Inputs) != len(b.shapes.inputs) {
		return []string{fmt.Sprintf("it has %d inputs, the model %d", len(s.Inputs), len(b.shapes.inputs))}
	}
	for _, want := range b.shapes.inputs {
		i := slices.IndexFunc(s.Inputs, func(t om.Tensor) bool { return t.Name == want.Name })
		if i < 0 {
			wrong = append(wrong, fmt.Sprintf("it has no input %s", want.Name))
			continue
		}
		got := s.Inputs[i]
		if !dimsAgree(want.Dims, got.Dims) {
			wrong = append(wrong, fmt.Sprintf("its input %s is %v, not %s", want.Name, got.Dims, dimsText(want)))
		}
		if typ := b.inputType(m, want.Name); typ != "" && got.DType != typ {
			wrong = append(wrong, fmt.Sprintf("its input %s is %s, not %s", want.Name, got.DType, typ))
		}
	}
	return wrong
}

// dimsAgree compares fixed sizes: an open one is -1 there, or what the largest gear has.
func dimsAgree(want []gears.Dim, got []int64) bool {
	if len(want) != len(got) {
		return false
	}
	for i, d := range want {
		if !d.Open && got[i] != d.Size {
			return false
		}
	}
	return true
}

// inputType is the type that an input should have; "" where nobody can say: ATC
// changes types it has no kernels for.
func (b *build) inputType(m *onnx.Model, name string) string {
	if slices.Contains(b.job.Options.FP16Inputs, name) {
		return "float16"
	}
	if b.list.has("input_fp16_nodes") {
		return ""
	}
	for _, v := range m.Graph.Inputs() {
		if v.Name() == name && v.Type.IsTensor() {
			return numpyNames[v.Type.Elem]
		}
	}
	return ""
}

// numpyNames are the types that go through ATC as they are.
var numpyNames = map[tensor.Type]string{
	tensor.Float32: "float32", tensor.Float16: "float16", tensor.Int8: "int8", tensor.Uint8: "uint8", tensor.Int32: "int32", tensor.Int64: "int64", tensor.Bool: "bool",
}

// compareOutputs holds number, names and known dims of the outputs against the
// graph's. A name that the .om leads back to a tensor must be the tensor's.
func (b *build) compareOutputs(s *om.Signature, m *onnx.Model) (wrong []string) {
	if b.list.has("out_nodes") {
		return nil
	}
	outputs := m.Graph.Outputs()
	if len(s.Outputs) != len(outputs) {
		return []string{fmt.Sprintf("it has %d outputs, the model %d", len(s.Outputs), len(outputs))}
	}
	for i, v := range outputs {
		got := s.Outputs[i]
		if got.Tensor != "" && got.Tensor != v.Name() {
			wrong = append(wrong, fmt.Sprintf("its output %d is %s, not %s", i, got.Tensor, v.Name()))
		}
		if b.shapes.kind != StaticKind || !v.Type.IsTensor() {
			continue
		}
		dims, known := v.Type.Shape.Ints()
		if known && !slices.EqualFunc(dims, got.Dims, func(a int, b int64) bool { return int64(a) == b }) {
			wrong = append(wrong, fmt.Sprintf("its output %s is %v, not %v", v.Name(), got.Dims, dims))
		}
	}
	return wrong
}
