package om

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/npuctl/npuctl/internal/fault"
)

// Field numbers inside MODEL_DEF.
const (
	modelName          = 1
	modelCustomVersion = 3
	modelGraph         = 7
	modelAttribute     = 11

	graphOperator = 6

	operatorName      = 1
	operatorType      = 2
	operatorAttribute = 10
	operatorInput     = 33
	operatorOutput    = 34

	descriptorType   = 2
	descriptorShape  = 3
	descriptorLayout = 4
	descriptorSize   = 10
)

const maxGraphs = 1 << 16

// model is a MODEL_DEF of which only the outline has been walked.
type model struct {
	w             *window
	name          string
	customVersion string
	graphs        []span
	attributes    Attributes
	dictionary    *dictionary
}

// model walks the outline of a model's graph and reads its attributes. Graphs, and
// the copy of the tasks among the attributes, are jumped over.
func (f *File) model(n int) (*model, error) {
	p, ok := f.Partition(n, ModelDef)
	if !ok || f.Header.Encrypted {
		return nil, fault.New(fault.Input, "model %d has no graph that can be read", n)
	}
	m, entries := &model{w: f.window()}, []span(nil)
	for field, err := range m.w.fields(p.span()) {
		if err != nil {
			return nil, err
		}
		if len(m.graphs) > maxGraphs || len(entries) > maxAttributes {
			return nil, fault.New(fault.Input, "it has more graphs or attributes than any compiler writes")
		}
		switch {
		case field.is(modelName, protowire.BytesType):
			m.name, err = m.w.shortText(field.body)
		case field.is(modelCustomVersion, protowire.BytesType):
			m.customVersion, err = m.w.shortText(field.body)
		case field.is(modelGraph, protowire.BytesType):
			m.graphs = append(m.graphs, field.body)
		case field.is(modelAttribute, protowire.BytesType):
			entries = append(entries, field.body)
		}
		if err != nil {
			return nil, err
		}
	}
	return m, m.readAttributes(f, n, entries)
}

func (m *model) readAttributes(f *File, n int, entries []span) (err error) {
	if m.attributes, err = m.w.attributes(entries, nil); err != nil {
		return err
	}
	m.dictionary = newDictionary(m.attributes, nil)
	if n == 0 || len(m.dictionary.names) == 0 {
		return nil
	}
	root, err := f.model(0)
	if err != nil {
		return fmt.Errorf("the root model: %w", err)
	}
	m.dictionary.root = root.dictionary
	return nil
}

// shortText reads a name.
func (w *window) shortText(s span) (string, error) {
	if s.size() > maxNameBytes {
		return "", fault.New(fault.Input, "a name of %d bytes", s.size())
	}
	return w.text(s)
}

// Attributes reads the attributes of a model; 0 is the root model. Those of its
// operators are given by [File.Operators].
func (f *File) Attributes(n int) (Attributes, error) {
	m, err := f.model(n)
	if err != nil {
		return nil, named(f.Name, fmt.Errorf("%v: %w", ModelDef, err))
	}
	return m.attributes, nil
}

// Operator is one operator of the compiled graph.
type Operator struct {
	Graph int // 0 is the main graph, others are what it calls
	Name  string
	Type  string // in GE's words: "Conv2D", "Data", "NetOutput"

	m    *model
	body span
}

// Operators walks the operators of a model, graph by graph, in the file's order.
// Each is valid only until the next one. It ends at the first error.
func (f *File) Operators(n int) iter.Seq2[Operator, error] {
	return func(yield func(Operator, error) bool) {
		m, err := f.model(n)
		if err != nil {
			yield(Operator{}, named(f.Name, fmt.Errorf("%v: %w", ModelDef, err)))
			return
		}
		for i := range m.graphs {
			for op, err := range m.operators(i) {
				if err != nil {
					err = named(f.Name, fmt.Errorf("%v: %w", ModelDef, err))
				}
				if !yield(op, err) || err != nil {
					return
				}
			}
		}
	}
}

func (m *model) operators(graph int) iter.Seq2[Operator, error] {
	return func(yield func(Operator, error) bool) {
		for field, err := range m.w.fields(m.graphs[graph]) {
			if err == nil && !field.is(graphOperator, protowire.BytesType) {
				continue
			}
			op := Operator{Graph: graph, m: m, body: field.body}
			if err == nil {
				err = op.readNames()
			}
			if !yield(op, err) || err != nil {
				return
			}
		}
	}
}

// readNames reads name and type, which stand at the front, and no further.
func (o *Operator) readNames() error {
	haveName, haveType := false, false
	for f, err := range o.m.w.fields(o.body) {
		if err != nil {
			return err
		}
		switch {
		case f.is(operatorName, protowire.BytesType):
			o.Name, err = o.m.w.shortText(f.body)
			haveName = true
		case f.is(operatorType, protowire.BytesType):
			o.Type, err = o.m.w.shortText(f.body)
			haveType = true
		}
		if err != nil || haveName && haveType {
			return err
		}
	}
	return nil
}

// Attributes reads the operator's attributes, names and texts in clear.
func (o Operator) Attributes() (Attributes, error) {
	entries, err := o.spans(operatorAttribute)
	if err != nil {
		return nil, err
	}
	return o.m.w.attributes(entries, o.m.dictionary)
}

// spans finds all fields of a number.
func (o Operator) spans(number protowire.Number) ([]span, error) {
	var spans []span
	for f, err := range o.m.w.fields(o.body) {
		if err != nil {
			return nil, err
		}
		if f.is(number, protowire.BytesType) {
			spans = append(spans, f.body)
		}
		if len(spans) > maxTensors {
			return nil, fault.New(fault.Input, "operator %q has more than %d parts of a kind", o.Name, maxTensors)
		}
	}
	return spans, nil
}

// Attributes that make up a signature.
const (
	attrIndex       = "index"
	attrOutputNames = "attr_model_out_nodes_name"
	attrOpenDims    = "_mbatch_origin_input_dims"
	attrGearCount   = "_batch_num"
	attrGearRow     = "_pred_value_"
	attrGearKind    = "mbatch_dynamic_type"
	attrGearOrder   = "user_designate_shape_order"
)

// gearKinds are the values of the attribute that says what gears are about.
var gearKinds = map[int64]string{1: "batch", 2: "image", 3: "dims"}

// graphSignature gathers the signature from the main graph: its Data operators are
// the inputs, what its NetOutput reads the outputs. Other graphs have Data and
// NetOutput operators of their own, which are nobody's business here.
func (f *File) graphSignature() (*Signature, error) {
	m, err := f.model(0)
	if err != nil {
		return nil, err
	}
	if len(m.graphs) == 0 {
		return nil, fault.New(fault.Input, "it has no graph")
	}
	s, inputs := &Signature{FromGraph: true}, []indexed(nil)
	for op, err := range m.operators(0) {
		if err != nil {
			return nil, err
		}
		switch op.Type {
		case "Data":
			var in indexed
			in, err = op.input(len(inputs))
			inputs = append(inputs, in)
		case "NetOutput":
			s.Outputs, err = op.outputs(m.attributes.Texts(attrOutputNames))
		case "Case":
			s.Gears, err = op.gears(s.Gears)
		}
		if err != nil {
			return nil, fmt.Errorf("operator %q: %w", op.Name, err)
		}
		if len(inputs) > maxTensors {
			return nil, fault.New(fault.Input, "it has more than %d inputs", maxTensors)
		}
	}
	slices.SortStableFunc(inputs, func(a, b indexed) int { return cmp.Compare(a.index, b.index) })
	for _, in := range inputs {
		s.Inputs = append(s.Inputs, in.Tensor)
	}
	return s, nil
}

// indexed is an input with its place in the model's signature.
type indexed struct {
	Tensor
	index int64
}

// input reads a Data operator. Its input, not its output, is what the caller hands
// over: the output may be padded or of another type.
func (o Operator) input(position int) (indexed, error) {
	in := indexed{Tensor: Tensor{Name: o.Name, DType: undefined, Format: undefined, Dims: []int64{}}, index: int64(position)}
	attributes, err := o.Attributes()
	if err != nil {
		return in, err
	}
	if n, ok := attributes[attrIndex].(int64); ok {
		in.index = n
	}
	for _, number := range []protowire.Number{operatorInput, operatorOutput} {
		descriptors, err := o.spans(number)
		if err != nil {
			return in, err
		}
		if len(descriptors) > 0 {
			in.Tensor, err = o.m.w.descriptor(descriptors[0], o.Name)
			if open := attributes.Ints(attrOpenDims); len(open) == len(in.Dims) && len(open) > 0 {
				in.Dims = open
			}
			return in, err
		}
	}
	return in, nil
}

// outputs reads what a NetOutput receives. Names that the model does not say are
// made of their number.
func (o Operator) outputs(names []string) ([]Tensor, error) {
	descriptors, err := o.spans(operatorInput)
	if err != nil {
		return nil, err
	}
	var outputs []Tensor
	for i, d := range descriptors {
		name := fmt.Sprintf("output_%d", i)
		if i < len(names) {
			name = names[i]
		}
		t, err := o.m.w.descriptor(d, name)
		if err != nil {
			return nil, err
		}
		outputs = append(outputs, t)
	}
	return outputs, nil
}

// descriptor reads a tensor's type, shape and layout.
func (w *window) descriptor(s span, name string) (Tensor, error) {
	t := Tensor{Name: name, Dims: []int64{}, Format: undefined}
	var size, dtype int64
	for f, err := range w.fields(s) {
		if err != nil {
			return t, err
		}
		switch {
		case f.is(descriptorType, protowire.VarintType):
			dtype = int64(min(f.value, math.MaxInt32))
		case f.is(descriptorShape, protowire.BytesType):
			t.Dims, err = w.shape(f.body)
		case f.is(descriptorLayout, protowire.BytesType):
			t.Format, err = w.shortText(f.body)
		case f.is(descriptorSize, protowire.VarintType):
			size = int64(min(f.value, math.MaxInt64))
		}
		if err != nil {
			return t, err
		}
	}
	e := elementOf(graphElements, dtype)
	t.DType = e.name
	if bytes, ok := tensorBytes(e, t.Format, t.Dims); ok {
		t.Bytes = bytes
	} else if !slices.ContainsFunc(t.Dims, func(d int64) bool { return d < 0 }) {
		t.Bytes = size
	}
	return t, nil
}

func (w *window) shape(s span) ([]int64, error) {
	if s.size() > maxRank {
		return nil, fault.New(fault.Input, "a shape of %d bytes", s.size())
	}
	dims := []int64{}
	for f, err := range w.fields(s) {
		if err == nil && f.number == 1 {
			err = w.varints(f, func(n uint64) { dims = append(dims, int64(n)) })
		}
		if err != nil {
			return nil, err
		}
	}
	return dims, nil
}

// gears reads the gears off the Case that chooses between them. An ordinary Case
// leaves what was found before.
func (o Operator) gears(before *Gears) (*Gears, error) {
	attributes, err := o.Attributes()
	if err != nil {
		return nil, err
	}
	count := attributes.Int(attrGearCount)
	if count < 1 || count > maxTensors {
		return before, nil
	}
	g := &Gears{Kind: cmp.Or(gearKinds[attributes.Int(attrGearKind)], "dims"), Order: attributes.Texts(attrGearOrder)}
	for i := range count {
		row, ok := attributes[fmt.Sprint(attrGearRow, i)].([]int64)
		if !ok {
			return nil, fault.New(fault.Input, "gear %d of %d is missing", i, count)
		}
		g.Rows = append(g.Rows, row)
	}
	return g, nil
}
