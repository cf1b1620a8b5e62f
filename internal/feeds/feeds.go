package feeds

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// Kind says what sort of values a set has.
type Kind int

// The kinds of values.
const (
	// Normal floats are normally distributed, integers small or inside their table.
	Normal Kind = iota
	// Binary floats are between 0 and 1, integers 0 and 1: masks, probabilities.
	Binary
	// Lengths is Normal, but scalars and vectors of integers hold the size of an
	// open axis, as the lengths of padded sequences do.
	Lengths
	// Zeros are 0 and -0.
	Zeros
	// NotNumbers is Normal with NaN here and there.
	NotNumbers
	// Infinities is Normal with both infinities here and there.
	Infinities
	// Extremes is Normal with the largest, smallest and closest to 0 of the type.
	Extremes
)

var kindNames = [...]string{"random", "random in 0..1", "random with lengths", "zeros", "NaN", "infinities", "extremes"}

// String names the kind for reports.
func (k Kind) String() string { return kindNames[k] }

// IsEdge says whether the kind is of edge values.
func (k Kind) IsEdge() bool { return k >= Zeros }

// EdgeNames lists the names of the kinds of edge values.
func EdgeNames() (names []string) {
	for k := range kindNames {
		if Kind(k).IsEdge() {
			names = append(names, Kind(k).String())
		}
	}
	return names
}

// Set says which values to make.
type Set struct {
	// Plan is the number of the choice of sizes, from 0 to Plans()-1.
	Plan int
	Kind Kind
	Seed uint64
	// Override gives values to inputs that have a default, too.
	Override bool
}

// Maker makes inputs for one model.
type Maker struct {
	inputs []input
	plans  []sizes
	floats bool // whether any input holds floats
}

// input is what is known of one input of the model.
type input struct {
	name       string
	typ        *onnx.Type
	hasDefault bool
	traits     traits
}

// New looks at a model. The sizes that its user has decided are to be written into
// the types of the inputs before. inputs are those to make values for.
func New(m *onnx.Model, inputs []*onnx.Value) *Maker {
	k := &Maker{}
	for _, v := range inputs {
		in := input{name: v.Name(), typ: v.Type, hasDefault: v.Initializer() != nil, traits: traitsOf(v)}
		if in.hasDefault && (in.typ == nil || in.typ.Shape == nil) {
			in.typ = onnx.TensorType(v.Initializer().Type(), v.Initializer().Shape()...)
		}
		k.inputs = append(k.inputs, in)
		k.floats = k.floats || holdsFloats(in.typ)
	}
	k.plans = plansFor(k.inputs)
	return k
}

func holdsFloats(t *onnx.Type) bool {
	for t != nil && t.Kind != onnx.KindTensor {
		t = t.Inner
	}
	return t != nil && (t.Elem.IsFloat() || t.Elem.IsComplex())
}

// Plans is the number of different choices of sizes: 1 when no dim is open. The
// first is the likeliest to be legal.
func (k *Maker) Plans() int { return len(k.plans) }

// UsualPlans is the number of choices, of the first ones, that are small enough for
// any model; the others are for one that refuses these.
func (k *Maker) UsualPlans() int {
	usual := 0
	for _, p := range k.plans {
		if p.number < usualChoices {
			usual++
		}
	}
	return usual
}

// PlanText says what the plan gives the open dims: "batch=2, seq=8"; "" when none is open.
func (k *Maker) PlanText(plan int) string { return k.plans[plan].String() }

// IsEmpty says whether the model takes no inputs, so that all sets are one.
func (k *Maker) IsEmpty() bool { return len(k.inputs) == 0 }

// HasDefaults says whether a set with Override differs from one without.
func (k *Maker) HasDefaults() bool {
	for _, in := range k.inputs {
		if in.hasDefault {
			return true
		}
	}
	return false
}

// Edges lists the kinds of edge values that differ for this model.
func (k *Maker) Edges() []Kind {
	switch {
	case len(k.inputs) == 0:
		return nil
	case !k.floats:
		return []Kind{Zeros, Extremes}
	}
	return []Kind{Zeros, NotNumbers, Infinities, Extremes}
}

// maxSetBytes bounds the memory of one set: sizes come from a file.
const maxSetBytes = 256 << 20

// Make makes the values of a set, by input name.
func (k *Maker) Make(s Set) (map[string]eval.Value, error) {
	out := map[string]eval.Value{}
	budget := int64(maxSetBytes)
	for _, in := range k.inputs {
		if in.hasDefault && !s.Override {
			continue
		}
		g := generator{kind: s.Kind, traits: in.traits, length: k.plans[s.Plan].length(in), random: randomFor(in.name, s.Seed), budget: &budget}
		v, err := g.value(in.typ, k.plans[s.Plan].shape(in), 0)
		if err != nil {
			return nil, fmt.Errorf("make a value for input %q: %w", in.name, err)
		}
		out[in.name] = v
	}
	return out, nil
}

// randomFor gives every input a stream of its own, so that its values do not
// depend on the other inputs.
func randomFor(name string, seed uint64) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// generator makes the values of one input.
type generator struct {
	kind   Kind
	traits traits
	length int64
	random *rand.Rand
	budget *int64
}

// maxNesting bounds sequences of sequences: types come from a file.
const maxNesting = 8

func (g *generator) value(t *onnx.Type, shape []int, depth int) (eval.Value, error) {
	if t == nil {
		return nil, fmt.Errorf("the model does not say its type")
	}
	if depth > maxNesting {
		return nil, fmt.Errorf("type %s is nested too deep", t)
	}
	switch t.Kind {
	case onnx.KindTensor:
		if t.Elem == tensor.Undefined {
			return nil, fmt.Errorf("the model does not say of which type its elements are")
		}
		return g.tensor(t.Elem, shape)
	case onnx.KindSequence:
		return g.sequence(t, shape, depth)
	case onnx.KindOptional:
		if g.kind == Zeros {
			return &eval.Optional{}, nil
		}
		v, err := g.value(t.Inner, shape, depth+1)
		return &eval.Optional{Value: v}, err
	case onnx.KindMap:
		return g.mapping(t)
	}
	return nil, fmt.Errorf("values of type %s cannot be made", t)
}

// sequenceLength is how many items a sequence gets.
const sequenceLength = 3

func (g *generator) sequence(t *onnx.Type, shape []int, depth int) (eval.Value, error) {
	s := &eval.Sequence{}
	if t.Inner.IsTensor() {
		s.Elem = t.Inner.Elem
	}
	for range sequenceLength {
		v, err := g.value(t.Inner, shape, depth+1)
		if err != nil {
			return nil, err
		}
		s.Items = append(s.Items, v)
	}
	return s, nil
}

func (g *generator) mapping(t *onnx.Type) (eval.Value, error) {
	if !t.Inner.IsTensor() {
		return nil, fmt.Errorf("values of type %s cannot be made", t)
	}
	var keys *tensor.Dense
	switch t.Elem {
	case tensor.String:
		keys = tensor.Of(append([]string{}, words[:sequenceLength]...), sequenceLength)
	case tensor.Int64:
		keys = tensor.Of([]int64{0, 1, 2}, sequenceLength)
	default:
		return nil, fmt.Errorf("maps with keys of type %s cannot be made", t.Elem)
	}
	values, err := g.tensor(t.Inner.Elem, []int{sequenceLength})
	return &eval.Map{Keys: keys, Values: values}, err
}

// stringHeader is what a string takes besides its letters.
const stringHeader = 16

// charge takes the memory of an array from the set's budget.
func (g *generator) charge(t tensor.Type, shape []int) (count int, err error) {
	if count, err = tensor.Count(shape); err != nil {
		return 0, err
	}
	width := t.Width()
	if t == tensor.String {
		width = stringHeader
	}
	if count > maxSetBytes {
		*g.budget = -1
	}
	if *g.budget -= int64(count) * int64(width); *g.budget < 0 {
		return 0, fmt.Errorf("%s%v takes more than a random input may", t, shape)
	}
	return count, nil
}
