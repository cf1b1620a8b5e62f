package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// Result is what comparing two values gives.
type Result struct {
	Equal bool
	// Problem says what is different when it is not single elements: type, shape,
	// length, keys. Elements are not compared then.
	Problem string
	// Elements is how many elements were compared, Differing how many of them are
	// further apart than the tolerance allows.
	Elements, Differing int
	// MaxAbs and MaxRel are the largest difference, and the largest relative to the
	// wanted element, of all pairs that are both finite.
	MaxAbs, MaxRel float64
	// Cosine is the cosine of the angle between the two as vectors of their finite
	// elements: 1 is the same direction. For sequences it is the lowest inside.
	Cosine float64
	// First is the first element that differs; nil when none does.
	First *Difference
}

// Difference is one element that is not what it should be.
type Difference struct {
	// Path leads to the array inside a sequence, optional or map, as in [2]["key"];
	// "" for a plain array.
	Path string
	// Index is the element's place in the array.
	Index     []int
	Want, Got string
}

// String writes a difference as [2][0,17]: 1.5 instead of 1.25.
func (d Difference) String() string {
	return fmt.Sprintf("%s%s: %s instead of %s", d.Path, indexText(d.Index), d.Got, d.Want)
}

func indexText(index []int) string {
	return strings.ReplaceAll(fmt.Sprint(index), " ", ",")
}

// String says in one line how two values compare.
func (r Result) String() string {
	switch {
	case r.Problem != "":
		return r.Problem
	case r.Equal && r.MaxAbs == 0:
		return "equal"
	case r.Equal:
		return fmt.Sprintf("equal, at most %.3g apart", r.MaxAbs)
	}
	return fmt.Sprintf("%d of %d elements differ, by up to %.3g; first %s", r.Differing, r.Elements, r.MaxAbs, r.First)
}

// Tolerance says how far a float may be off; see the package comment.
type Tolerance struct{ Relative, Absolute float64 }

// tolerances holds the element types that have one.
var tolerances = map[tensor.Type]Tolerance{
	tensor.Float64:    {1e-7, 1e-8},
	tensor.Complex128: {1e-7, 1e-8},
	tensor.Float32:    {1e-4, 1e-5},
	tensor.Complex64:  {1e-4, 1e-5},
	tensor.Float16:    {1e-2, 2e-3},
	tensor.BFloat16:   {4e-2, 1e-2},
}

// ToleranceOf is the tolerance for elements of type t: none for those that must be equal.
func ToleranceOf(t tensor.Type) Tolerance { return tolerances[t] }

// Options says how to compare. The zero value is the default.
type Options struct {
	// Tolerance replaces that of the element type for floats of 16 bits and more.
	Tolerance *Tolerance
	// Scale is a lower bound for how large the elements of an array are taken to be:
	// from other runs, when in this one nearly everything cancels out.
	Scale float64
	// Uncertainty is how far the wanted floats may be off by themselves, beyond the
	// tolerance: a difference of that size says nothing.
	Uncertainty float64
	// AllowOverflow takes a float as equal to anything when it or its counterpart is
	// not finite: for inputs so large that the order of operations decides whether
	// something overflows on the way.
	AllowOverflow bool
}

func (o Options) tolerance(t tensor.Type) Tolerance {
	own := ToleranceOf(t)
	if o.Tolerance != nil && own != (Tolerance{}) {
		return *o.Tolerance
	}
	return own
}

// Values compares got with want: see [eval.Value] for what they may be.
func Values(want, got eval.Value, o Options) Result {
	c := comparison{options: o}
	c.values("", want, got)
	return c.finish()
}

// comparison gathers what is found on the way through two values.
type comparison struct {
	options Options
	result  Result
	cosine  float64 // the lowest so far; only if measured
	// measured says that some array had a direction to compare.
	measured bool
}

func (c *comparison) finish() Result {
	r := c.result
	r.Equal = r.Problem == "" && r.Differing == 0
	switch {
	case c.measured:
		r.Cosine = c.cosine
	case r.Equal:
		r.Cosine = 1
	}
	return r
}

// problem notes the first thing that makes elements incomparable.
func (c *comparison) problem(path, format string, args ...any) {
	if c.result.Problem == "" {
		c.result.Problem = strings.TrimPrefix(path+": "+fmt.Sprintf(format, args...), ": ")
	}
}

func (c *comparison) values(path string, want, got eval.Value) {
	switch w := want.(type) {
	case *tensor.Dense:
		if g, ok := got.(*tensor.Dense); ok && g != nil && w != nil {
			c.arrays(path, w, g)
			return
		}
	case *eval.Sequence:
		if g, ok := got.(*eval.Sequence); ok {
			c.sequences(path, w, g)
			return
		}
	case *eval.Optional:
		if g, ok := got.(*eval.Optional); ok {
			c.optionals(path, w, g)
			return
		}
	case *eval.Map:
		if g, ok := got.(*eval.Map); ok {
			c.maps(path, w, g)
			return
		}
	case nil:
		if got == nil {
			return
		}
	}
	c.problem(path, "%s instead of %s", kindOf(got), kindOf(want))
}

// kindOf names what a value is.
func kindOf(v eval.Value) string {
	switch v := v.(type) {
	case *tensor.Dense:
		return typeText(v)
	case *eval.Sequence:
		return "a sequence"
	case *eval.Optional:
		return "an optional"
	case *eval.Map:
		return "a map"
	case nil:
		return "nothing"
	}
	return fmt.Sprintf("%T", v)
}

func typeText(d *tensor.Dense) string { return d.Type().String() + indexText(d.Shape()) }

func (c *comparison) sequences(path string, want, got *eval.Sequence) {
	if len(want.Items) != len(got.Items) {
		c.problem(path, "a sequence of %d instead of %d", len(got.Items), len(want.Items))
		return
	}
	for i := range want.Items {
		c.values(fmt.Sprintf("%s[%d]", path, i), want.Items[i], got.Items[i])
	}
}

func (c *comparison) optionals(path string, want, got *eval.Optional) {
	switch {
	case want.Value == nil && got.Value != nil:
		c.problem(path, "an optional that holds something instead of an empty one")
	case want.Value != nil && got.Value == nil:
		c.problem(path, "an empty optional instead of one that holds something")
	default:
		c.values(path, want.Value, got.Value)
	}
}

func (c *comparison) maps(path string, want, got *eval.Map) {
	if want.Keys.Type() != got.Keys.Type() || want.Values.Type() != got.Values.Type() {
		c.problem(path, "a map from %s to %s instead of from %s to %s", got.Keys.Type(), got.Values.Type(), want.Keys.Type(), want.Values.Type())
		return
	}
	order, missing := matchKeys(want.Keys, got.Keys)
	if missing != "" {
		c.problem(path, "the map has other keys: %s", missing)
		return
	}
	for i, at := range order {
		w, errWant := want.Values.Strided(i, []int{1}, []int{1})
		g, errGot := got.Values.Strided(at, []int{1}, []int{1})
		if errWant != nil || errGot != nil {
			c.problem(path, "a map with fewer values than keys")
			return
		}
		c.arrays(fmt.Sprintf("%s[%s]", path, elementText(want.Keys, i)), w, g)
	}
}

// matchKeys gives for each key of want its place in got.
func matchKeys(want, got *tensor.Dense) (order []int, problem string) {
	if want.Len() != got.Len() {
		return nil, fmt.Sprintf("%d instead of %d", got.Len(), want.Len())
	}
	places := map[string]int{}
	for i := range got.Len() {
		places[elementText(got, i)] = i
	}
	for i := range want.Len() {
		at, ok := places[elementText(want, i)]
		if !ok {
			return nil, elementText(want, i) + " is missing"
		}
		order = append(order, at)
	}
	return order, ""
}

func (c *comparison) arrays(path string, want, got *tensor.Dense) {
	if want.Type() != got.Type() || !slices.Equal(want.Shape(), got.Shape()) {
		c.problem(path, "%s instead of %s", typeText(got), typeText(want))
		return
	}
	c.result.Elements += want.Len()
	if tensor.EqualBits(want, got) {
		return
	}
	var differing, first int
	switch {
	case want.Type() == tensor.String || want.Type() == tensor.Bool || want.Type().IsInteger():
		differing, first = exact.For(want.Type())(want, got)
	default:
		differing, first = c.options.floats(want, got)
	}
	c.measure(want, got)
	c.result.Differing += differing
	if first >= 0 && c.result.First == nil {
		c.result.First = &Difference{Path: path, Index: position(want.Shape(), first), Want: elementText(want, first), Got: elementText(got, first)}
	}
}

// position is the index of the element number at in row-major order.
func position(shape []int, at int) []int {
	index := make([]int, len(shape))
	for axis := len(shape) - 1; axis >= 0; axis-- {
		index[axis] = at % shape[axis]
		at /= shape[axis]
	}
	return index
}

// elementText writes one element as people do.
func elementText(d *tensor.Dense, i int) string {
	one, err := d.Strided(i, nil, nil)
	if err != nil {
		return "?"
	}
	text := one.String() // TYPE[]{element}
	open := strings.Index(text, "{")
	return strings.TrimSuffix(text[open+1:], "}")
}

// exact counts the elements whose storage differs, and gives the first.
var exact = tensor.NewMovers(exactWords[uint8], exactWords[uint16], exactWords[uint32],
	exactWords[uint64], exactWords[[2]uint64], exactWords[string])

func exactWords[T tensor.Word](want, got *tensor.Dense) (differing, first int) {
	first = -1
	g := tensor.Words[T](got)
	for i, w := range tensor.Words[T](want) {
		if w != g[i] {
			differing++
			if first < 0 {
				first = i
			}
		}
	}
	return differing, first
}

// measure notes how far two arrays of numbers are apart.
func (c *comparison) measure(want, got *tensor.Dense) {
	if want.Type() == tensor.String || want.Len() == 0 {
		return
	}
	var m distance
	m.scale = max(largest(want), largest(got), math.SmallestNonzeroFloat64)
	for w, g := range pairs(want, got) {
		m.add(w, g)
	}
	c.result.MaxAbs = max(c.result.MaxAbs, m.maxAbs)
	c.result.MaxRel = max(c.result.MaxRel, m.maxRel)
	if cosine, ok := m.cosine(); ok && (!c.measured || cosine < c.cosine) {
		c.cosine, c.measured = cosine, true
	}
}
