package onnxpass

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/suggest"
	"github.com/npuctl/npuctl/internal/terminal"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// Specialization says what the user fixes about a model's inputs before the
// passes run.
type Specialization struct {
	// Shapes gives whole shapes by input name; a dim of -1 stays as it is.
	Shapes map[string][]int64
	// Dims gives sizes by symbolic name, wherever an input has it.
	Dims map[string]int64
	// Batch is the size of the first axis of every input that has it open; 0 leaves them.
	Batch int64
	// Bind gives values by input name: that input becomes a constant.
	Bind map[string]string
}

// Specialize applies sp to the model's inputs. What contradicts the model, or
// names something it does not have, is a usage fault and nothing is changed.
func Specialize(m *onnx.Model, sp Specialization) error {
	if err := sp.checkNames(m); err != nil {
		return err
	}
	types := map[*onnx.Value]*onnx.Type{}
	for _, v := range RealInputs(m) {
		t, err := sp.typeOf(v)
		if err != nil {
			return err
		}
		types[v] = t
	}
	sizes, err := agreedSizes(m, types)
	if err != nil {
		return err
	}
	if err := sp.checkBatch(m); err != nil {
		return err
	}
	tensors := map[*onnx.Value]*tensor.Dense{}
	for _, v := range RealInputs(m) {
		text, bound := sp.Bind[v.Name()]
		if !bound {
			continue
		}
		d, err := parseBinding(v, types[v], text)
		if err != nil {
			return err
		}
		tensors[v] = d
	}
	for v, t := range types {
		v.Type = t
	}
	fixOutputs(m, sizes)
	for _, v := range slices.Clone(m.Graph.Inputs()) {
		if d := tensors[v]; d != nil {
			m.Graph.StoreAs(v, onnx.NewTensor(d))
		}
	}
	return nil
}

// RealInputs lists the inputs that a caller may set: before IR version 4
// initializers were listed as well and could not be set.
func RealInputs(m *onnx.Model) []*onnx.Value {
	return slices.DeleteFunc(slices.Clone(m.Graph.Inputs()), func(v *onnx.Value) bool {
		return v.Initializer() != nil && m.IRVersion < 4
	})
}

func (sp Specialization) checkNames(m *onnx.Model) error {
	var inputs, dims []string
	for _, v := range RealInputs(m) {
		inputs = append(inputs, v.Name())
		if v.Type.IsTensor() && v.Type.Shape != nil {
			for _, d := range v.Type.Shape.Dims {
				if d.Param != "" && !slices.Contains(dims, d.Param) {
					dims = append(dims, d.Param)
				}
			}
		}
	}
	for _, flag := range []struct {
		name  string
		what  string
		given []string
		known []string
	}{
		{"--input-shape", "input", keys(sp.Shapes), inputs},
		{"--bind", "input", keys(sp.Bind), inputs},
		{"--dim", "symbolic dim", keys(sp.Dims), dims},
	} {
		for _, name := range flag.given {
			if !slices.Contains(flag.known, name) && !(flag.name == "--dim" && len(dims) == 0 && hasSize(m, sp.Dims[name])) {
				return fault.New(fault.Usage, "%s %s: the model has no %s of that name", flag.name, name, flag.what).
					With("%s", suggest.Text(name, flag.known))
			}
		}
	}
	return nil
}

// hasSize says whether an input has a dim of that size. A model whose dims have all
// got sizes has no names any more: giving it the same ones again changes nothing.
func hasSize(m *onnx.Model, size int64) bool {
	for _, v := range RealInputs(m) {
		for _, d := range declaredDims(v) {
			if d.Known && d.Value == size {
				return true
			}
		}
	}
	return false
}

// agreedSizes gives the sizes of the dims that have names, where all that bear the name
// are fixed, and refuses two sizes for one name: a name means one size.
func agreedSizes(m *onnx.Model, types map[*onnx.Value]*onnx.Type) (map[string]int64, error) {
	type place struct {
		input *onnx.Value
		axis  int
	}
	first, sizes, open := map[string]place{}, map[string]int64{}, map[string]bool{}
	for _, v := range RealInputs(m) {
		for i, declared := range declaredDims(v) {
			fixed := types[v].Shape.Dims[i]
			name := declared.Param
			if declared.Known || name == "" {
				continue
			}
			if !fixed.Known {
				open[name] = true
				continue
			}
			other, seen := first[name]
			if !seen {
				first[name], sizes[name] = place{v, i}, fixed.Value
			} else if sizes[name] != fixed.Value {
				return nil, fault.New(fault.Usage, "dim %q would be %d in input %s (axis %d) and %d in input %s (axis %d)",
					name, sizes[name], other.input.Name(), other.axis, fixed.Value, v.Name(), i).
					With("give it one size; if two were meant, export the model with two names")
			}
		}
	}
	maps.DeleteFunc(sizes, func(name string, _ int64) bool { return open[name] })
	return sizes, nil
}

// fixOutputs writes sizes in place of the names that outputs share with inputs. Where
// inference finds another size it has the last word, as with everything declared.
func fixOutputs(m *onnx.Model, sizes map[string]int64) {
	for _, v := range m.Graph.Outputs() {
		if v.IsInput() || !slices.ContainsFunc(declaredDims(v), func(d onnx.Dim) bool { return isFixed(d, sizes) }) {
			continue
		}
		dims := slices.Clone(v.Type.Shape.Dims)
		for i, d := range dims {
			if isFixed(d, sizes) {
				dims[i].Value, dims[i].Known, dims[i].Param = sizes[d.Param], true, ""
			}
		}
		v.Type = v.Type.WithShape(&onnx.Shape{Dims: dims})
	}
}

// isFixed says whether a dim bears a name that has a size.
func isFixed(d onnx.Dim, sizes map[string]int64) bool {
	_, named := sizes[d.Param]
	return named && !d.Known
}

func keys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// typeOf is the type of an input with everything fixed that the flags fix.
func (sp Specialization) typeOf(v *onnx.Value) (*onnx.Type, error) {
	shape, given := sp.Shapes[v.Name()]
	if !v.Type.IsTensor() {
		if given {
			return nil, fault.New(fault.Usage, "--input-shape %s: the input is %s, not a tensor", v.Name(), v.Type)
		}
		return v.Type, nil
	}
	if v.Type.Shape == nil {
		if !given {
			return v.Type, nil
		}
		dims := make([]onnx.Dim, len(shape))
		return v.Type.WithShape(&onnx.Shape{Dims: dims}), sp.fix(v, shape, dims)
	}
	dims := slices.Clone(v.Type.Shape.Dims)
	if given && len(shape) != len(dims) {
		return nil, fault.New(fault.Usage, "--input-shape %s: %s given, the model's input is %s", v.Name(), terminal.Counted(len(shape), "dim"), v.Type)
	}
	if err := sp.fix(v, shape, dims); err != nil {
		return nil, err
	}
	return v.Type.WithShape(&onnx.Shape{Dims: dims}), nil
}

// fix writes into dims what the flags say of v: its shape first, then dims by
// name, then the batch.
func (sp Specialization) fix(v *onnx.Value, shape []int64, dims []onnx.Dim) error {
	for i, size := range shape {
		if size < 0 {
			continue
		}
		if dims[i].Known && dims[i].Value != size {
			return fault.New(fault.Usage, "--input-shape %s: dim %d is %d, the model fixes it to %d", v.Name(), i, size, dims[i].Value).
				With("export the model with that axis dynamic, or give %d", dims[i].Value)
		}
		dims[i] = onnx.KnownDim(int(size))
	}
	return sp.fixOpen(v, declaredDims(v), dims)
}

// fixOpen writes what --dim and --batch say into the dims that the model leaves
// open; they must agree with --input-shape and with each other.
func (sp Specialization) fixOpen(v *onnx.Value, declared, dims []onnx.Dim) error {
	set := func(i int, flag string, size int64) error {
		if dims[i].Known && dims[i].Value != size {
			return fault.New(fault.Usage, "%s: dim %d of input %s is %d by another flag", flag, i, v.Name(), dims[i].Value).
				With("give each dim one size")
		}
		dims[i] = onnx.KnownDim(int(size))
		return nil
	}
	for i, d := range declared {
		if size, ok := sp.Dims[d.Param]; ok && !d.Known && d.Param != "" {
			if err := set(i, fmt.Sprintf("--dim %s=%d", d.Param, size), size); err != nil {
				return err
			}
		}
	}
	if sp.Batch > 0 && len(dims) > 0 && (len(declared) == 0 || !declared[0].Known) {
		return set(0, fmt.Sprintf("--batch %d", sp.Batch), sp.Batch)
	}
	return nil
}

// declaredDims are an input's dims as the model declares them; none when it does not.
func declaredDims(v *onnx.Value) []onnx.Dim {
	if !v.Type.IsTensor() || v.Type.Shape == nil {
		return nil
	}
	return v.Type.Shape.Dims
}

// checkBatch refuses a batch size that no input can take.
func (sp Specialization) checkBatch(m *onnx.Model) error {
	if sp.Batch == 0 {
		return nil
	}
	fixed := ""
	for _, v := range RealInputs(m) {
		if !v.Type.IsTensor() || v.Type.Shape == nil || len(v.Type.Shape.Dims) == 0 {
			continue
		}
		d := v.Type.Shape.Dims[0]
		if !d.Known || d.Value == sp.Batch {
			return nil
		}
		fixed = fmt.Sprintf(" (%s is %s)", v.Name(), v.Type)
	}
	return fault.New(fault.Usage, "--batch %d: no input has its first axis open%s", sp.Batch, fixed).
		With("export the model with a dynamic batch axis (dynamic_axes / dynamic_shapes)")
}

// parseBinding reads the elements of a bound input from text: one value, which
// fills the shape, or as many as there are elements, between commas.
func parseBinding(v *onnx.Value, t *onnx.Type, text string) (*tensor.Dense, error) {
	refuse := func(format string, args ...any) error {
		return fault.New(fault.Usage, "--bind %s=%s: %s", v.Name(), text, fmt.Sprintf(format, args...))
	}
	if !t.IsTensor() || t.Elem == tensor.Undefined {
		return nil, refuse("the input is %s, not a tensor of a known type", t)
	}
	words := strings.Split(text, ",")
	dims, ok := t.Shape.Ints()
	if !ok {
		if t.Shape != nil && len(t.Shape.Dims) != 1 && (len(t.Shape.Dims) != 0 || len(words) != 1) {
			return nil, refuse("the input is %s: give its shape too, with --input-shape %s:…", t, v.Name())
		}
		dims = []int{len(words)}
	}
	count, err := tensor.Count(dims)
	if err != nil {
		return nil, refuse("%v", err)
	}
	if len(words) != 1 && len(words) != count {
		return nil, refuse("%s for %s, which has %s", terminal.Counted(len(words), "value"), t, terminal.Counted(count, "element"))
	}
	if count > maxBinding {
		return nil, refuse("%s is too large to be bound", t)
	}
	d, err := parseElements(t.Elem, words, dims, count)
	if err != nil {
		return nil, refuse("%v; the input is %s", err, t)
	}
	return d, nil
}

// maxBinding bounds the elements of a bound input: it is stored in the model.
const maxBinding = 1 << 20

// ParseElements reads the elements of a tensor as they are typed: as many as it has, or
// one for all.
func ParseElements(t tensor.Type, words []string, dims ...int) (*tensor.Dense, error) {
	count, err := tensor.Count(dims)
	if err != nil {
		return nil, err
	}
	if len(words) != count && (len(words) != 1 || count > maxBinding) {
		return nil, fmt.Errorf("%s for a shape of %s", terminal.Counted(len(words), "value"), terminal.Counted(count, "element"))
	}
	return parseElements(t, words, dims, count)
}

func parseElements(t tensor.Type, words []string, dims []int, count int) (*tensor.Dense, error) {
	at := func(i int) string { return strings.TrimSpace(words[min(i, len(words)-1)]) }
	switch {
	case t == tensor.String:
		out := make([]string, count)
		for i := range out {
			out[i] = words[min(i, len(words)-1)]
		}
		return tensor.Make(out, dims...)
	case t == tensor.Bool:
		return collect(count, dims, func(i int) (bool, error) { return strconv.ParseBool(at(i)) })
	case t == tensor.Float64:
		return collect(count, dims, func(i int) (float64, error) { return strconv.ParseFloat(at(i), 64) })
	case t == tensor.Float32, t == tensor.Float16, t == tensor.BFloat16:
		return parseFloats(t, count, dims, at)
	case t.IsInteger() && t.Bits() >= 8:
		return parseInts(t, count, dims, at)
	}
	return nil, fmt.Errorf("values of type %s cannot be given on the command line", t)
}

func collect[T tensor.Element](count int, dims []int, parse func(int) (T, error)) (*tensor.Dense, error) {
	out := make([]T, count)
	for i := range out {
		var err error
		if out[i], err = parse(i); err != nil {
			return nil, fmt.Errorf("%q is no %s", err.(*strconv.NumError).Num, tensor.TypeOf[T]())
		}
	}
	return tensor.Make(out, dims...)
}

func parseFloats(t tensor.Type, count int, dims []int, at func(int) string) (*tensor.Dense, error) {
	largest, _ := t.LargestFinite()
	number := func(i int) (float64, error) {
		f, err := strconv.ParseFloat(at(i), 64)
		if err == nil && math.Abs(f) > largest && !math.IsInf(f, 0) {
			err = &strconv.NumError{Num: at(i), Err: strconv.ErrRange}
		}
		return f, err
	}
	switch t {
	case tensor.Float16:
		return collect(count, dims, func(i int) (tensor.F16, error) {
			f, err := number(i)
			return tensor.F16FromFloat64(f), err
		})
	case tensor.BFloat16:
		return collect(count, dims, func(i int) (tensor.BF16, error) {
			f, err := number(i)
			return tensor.BF16FromFloat64(f), err
		})
	}
	return collect(count, dims, func(i int) (float32, error) {
		f, err := strconv.ParseFloat(at(i), 32)
		return float32(f), err
	})
}

// parseInts reads integers of any width; one that does not fit is an error.
func parseInts(t tensor.Type, count int, dims []int, at func(int) string) (*tensor.Dense, error) {
	values := make([]int64, count)
	for i := range values {
		var err error
		if t.IsSigned() {
			values[i], err = strconv.ParseInt(at(i), 0, t.Bits())
		} else {
			var u uint64
			u, err = strconv.ParseUint(at(i), 0, t.Bits())
			values[i] = int64(u)
		}
		if err != nil {
			return nil, fmt.Errorf("%q is no %s", at(i), t)
		}
	}
	return denseFromInts(t, values, dims)
}

// ParseShape reads a shape as flags have it: 1,3,224,224 or 1x3x224x224, with ?
// or -1 for a dim that stays as it is; "" is a scalar's.
func ParseShape(text string) ([]int64, error) {
	if text == "" {
		return []int64{}, nil
	}
	var dims []int64
	for _, word := range strings.Split(strings.NewReplacer("x", ",", "X", ",").Replace(text), ",") {
		if word == "?" || word == "-1" {
			dims = append(dims, -1)
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(word), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt32 {
			return nil, fmt.Errorf("%q is no size of a dim", word)
		}
		dims = append(dims, n)
	}
	return dims, nil
}
