package eval

import (
	"math"
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// categoryOperators translate between labels and numbers.
var categoryOperators = []operator{
	{domain: machineLearning, name: "CategoryMapper", since: 1, run: categoryMapper},
	{domain: machineLearning, name: "LabelEncoder", since: 1, run: labelEncoder1},
	{domain: machineLearning, name: "LabelEncoder", since: 2, run: labelEncoder},
	{domain: machineLearning, name: "OneHotEncoder", since: 1, run: oneHotEncoder},
}

// positions gives for each key its place in keys, or -1. Of equal keys the last
// counts. same brings together what means the same.
func positions[K comparable](keys, wanted []K, same func(K) K) []int {
	place := make(map[K]int, len(keys))
	for i, k := range keys {
		place[same(k)] = i
	}
	out := make([]int, len(wanted))
	for i, k := range wanted {
		if p, ok := place[same(k)]; ok {
			out[i] = p
		} else {
			out[i] = -1
		}
	}
	return out
}

func itself[K any](k K) K { return k }

// positionsIn is positions for arrays of one type. Floats are compared as numbers,
// and all NaNs are equal.
func (c *Call) positionsIn(keys, wanted *tensor.Dense) ([]int, error) {
	if keys.Type() != wanted.Type() {
		return nil, c.Errorf("the input is %s, the keys %s", wanted.Type(), keys.Type())
	}
	switch keys.Type() {
	case tensor.String:
		return positions(tensor.Data[string](keys), tensor.Data[string](wanted), itself), nil
	case tensor.Int64:
		return positions(tensor.Data[int64](keys), tensor.Data[int64](wanted), itself), nil
	case tensor.Int32:
		return positions(tensor.Data[int32](keys), tensor.Data[int32](wanted), itself), nil
	case tensor.Int16:
		return positions(tensor.Data[int16](keys), tensor.Data[int16](wanted), itself), nil
	case tensor.Float32:
		return positions(tensor.Words[uint32](keys), tensor.Words[uint32](wanted), func(bits uint32) uint32 {
			return math.Float32bits(sameNumber(math.Float32frombits(bits)))
		}), nil
	case tensor.Float64:
		return positions(tensor.Words[uint64](keys), tensor.Words[uint64](wanted), func(bits uint64) uint64 {
			return math.Float64bits(sameNumber(math.Float64frombits(bits)))
		}), nil
	}
	return nil, c.noKernel(keys.Type())
}

// sameNumber makes one NaN of all, and one zero of both.
func sameNumber[T floating](v T) T {
	switch {
	case v != v:
		return T(math.NaN())
	case v == 0:
		return 0
	}
	return v
}

// pick sets output 0 to elements of values, in the shape of x: those at the places
// given, and otherwise, a single one, for places of -1.
func (c *Call) pick(values, otherwise *tensor.Dense, places []int, shape []int) error {
	if otherwise.Type() != values.Type() || otherwise.Len() != 1 {
		return c.Errorf("the default is %s%v, the values are %s", otherwise.Type(), otherwise.Shape(), values.Type())
	}
	out, err := c.New(values.Type(), shape...)
	if err != nil {
		return err
	}
	move := copyRows.For(values.Type())
	for i, p := range places {
		if p < 0 {
			move(out, i, 0, otherwise, 0, 0, 1, 1)
		} else if p < values.Len() {
			move(out, i, 0, values, p, 0, 1, 1)
		} else {
			return c.Errorf("%d values are too few for the keys", values.Len())
		}
	}
	return c.setOutput(out, nil)
}

// labelEncoder maps keys to values of another type. The text of version 2 compares
// floats by their bits, that of 4 calls all NaNs equal; all runtimes do the latter,
// and so do we.
func labelEncoder(c *Call) error {
	x, err := c.Tensor(0)
	if err != nil {
		return err
	}
	keys, err := c.labelList("keys")
	if err != nil {
		return err
	}
	values, err := c.labelList("values")
	if err != nil {
		return err
	}
	if keys.Len() > values.Len() || c.Opset >= 4 && keys.Len() != values.Len() {
		return c.Errorf("%d keys for %d values", keys.Len(), values.Len())
	}
	otherwise, err := c.labelDefault(values.Type())
	if err != nil {
		return err
	}
	places, err := c.positionsIn(keys, x)
	if err != nil {
		return err
	}
	return c.pick(values, otherwise, places, x.Shape())
}

// labelList gives the one attribute of that name that the node has, whatever its type.
func (c *Call) labelList(name string) (*tensor.Dense, error) {
	if a := c.Attribute(name + "_tensor"); a != nil && a.Tensor() != nil {
		d, err := a.Tensor().Dense()
		if err != nil {
			return nil, c.Errorf("%w", err)
		}
		return d, nil
	}
	if s := c.strings(name + "_strings"); s != nil {
		return tensor.Of(s, len(s)), nil
	}
	if f := c.floats(name + "_floats"); f != nil {
		return tensor.Of(slices.Clone(f), len(f)), nil
	}
	if n, ok := c.Ints(name + "_int64s"); ok {
		return tensor.Of(slices.Clone(n), len(n)), nil
	}
	return nil, c.Errorf("no attribute says the %s", name)
}

// labelDefault is what stands for labels that are not among the keys.
func (c *Call) labelDefault(typ tensor.Type) (*tensor.Dense, error) {
	if a := c.Attribute("default_tensor"); a != nil && a.Tensor() != nil {
		d, err := a.Tensor().Dense()
		if err != nil {
			return nil, c.Errorf("%w", err)
		}
		return d, nil
	}
	negativeZero := float32(math.Copysign(0, -1))
	switch typ {
	case tensor.String:
		return tensor.Scalar(c.String("default_string", "_Unused")), nil
	case tensor.Float32:
		return tensor.Scalar(c.Float("default_float", negativeZero)), nil
	case tensor.Float64:
		return tensor.Scalar(float64(c.Float("default_float", negativeZero))), nil
	case tensor.Int64, tensor.Int32, tensor.Int16:
		return c.cast(tensor.Scalar(c.Int("default_int64", -1)), typ)
	}
	return nil, c.noKernel(typ)
}

// labelEncoder1 numbers a list of strings, and gives the string of a number.
func labelEncoder1(c *Call) error {
	classes := c.strings("classes_strings")
	numbers := make([]int64, len(classes))
	for i := range numbers {
		numbers[i] = int64(i)
	}
	return c.translate(classes, numbers)
}

// categoryMapper is a list of pairs that is read either way.
func categoryMapper(c *Call) error {
	names := c.strings("cats_strings")
	numbers, _ := c.Ints("cats_int64s")
	if len(names) != len(numbers) {
		return c.Errorf("%d strings for %d numbers", len(names), len(numbers))
	}
	return c.translate(names, numbers)
}

// translate makes numbers of strings and strings of numbers.
func (c *Call) translate(names []string, numbers []int64) error {
	x, err := c.Tensor(0)
	if err != nil {
		return err
	}
	from, to := tensor.Of(names, len(names)), tensor.Of(slices.Clone(numbers), len(numbers))
	if x.Type() != tensor.String {
		from, to = to, from
	}
	places, err := c.positionsIn(from, x)
	if err != nil {
		return err
	}
	otherwise, err := c.labelDefault(to.Type())
	if err != nil {
		return err
	}
	return c.pick(to, otherwise, places, x.Shape())
}

// oneHotEncoder gives each element a row with a 1 in the column of its category.
// Numbers are truncated to integers first. An unknown category has a row of zeros,
// or, with attribute zeros 0, is an error.
func oneHotEncoder(c *Call) error {
	x, err := c.Tensor(0)
	if err != nil {
		return err
	}
	categories := tensor.Of(c.strings("cats_strings"), len(c.strings("cats_strings")))
	if x.Type() != tensor.String {
		numbers, _ := c.Ints("cats_int64s")
		categories = tensor.Of(slices.Clone(numbers), len(numbers))
		if x, err = c.cast(x, tensor.Int64); err != nil {
			return err
		}
	}
	places, err := c.positionsIn(categories, x)
	if err != nil {
		return err
	}
	columns := categories.Len()
	y, err := Output[float32](c, 0, append(slices.Clone(x.Shape()), columns)...)
	if err != nil {
		return err
	}
	for i, p := range places {
		if p >= 0 {
			y[i*columns+p] = 1
		} else if c.Int("zeros", 1) == 0 {
			return c.Errorf("element %d is none of the %d categories", i, columns)
		}
	}
	return nil
}
