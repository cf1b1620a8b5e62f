package eval

import (
	"cmp"
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// mapOperators make maps and read them.
var mapOperators = []operator{
	{domain: machineLearning, name: "CastMap", since: 1, run: castMap},
	{domain: machineLearning, name: "DictVectorizer", since: 1, run: dictVectorizer},
	{domain: machineLearning, name: "ZipMap", since: 1, run: zipMap},
}

func (c *Call) mapInput() (*Map, error) {
	m, ok := c.value(0).(*Map)
	if !ok {
		return nil, c.Errorf("the input is no map")
	}
	if m.Keys.Len() != m.Values.Len() {
		return nil, c.Errorf("a map of %d keys and %d values", m.Keys.Len(), m.Values.Len())
	}
	return m, nil
}

// zipMap makes a map of each row, with the same keys.
func zipMap(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	if d.Rank() < 1 || d.Rank() > 2 || d.Type() != tensor.Float32 {
		return c.Errorf("%s%v, not rows of FLOAT", d.Type(), d.Shape())
	}
	keys, err := c.classLabels("classlabels_int64s")
	if err != nil {
		return err
	}
	columns := d.Shape()[d.Rank()-1]
	if keys.Len() != columns {
		return c.Errorf("%d keys for %d columns", keys.Len(), columns)
	}
	rows := 1
	if d.Rank() == 2 {
		rows = d.Shape()[0]
	}
	if err := c.Charge(int64(rows) * arrayHeader); err != nil {
		return err
	}
	s := &Sequence{Items: make([]Value, rows)}
	for r := range rows {
		values, err := c.New(tensor.Float32, columns)
		if err != nil {
			return err
		}
		copyPart(values, 0, d, r*columns, columns)
		s.Items[r] = &Map{Keys: keys, Values: values}
	}
	c.Outputs[0] = s
	return nil
}

// classLabels gives the labels of a classifier: strings, or the integers in the
// attribute named.
func (c *Call) classLabels(integers string) (*tensor.Dense, error) {
	if s := c.strings("classlabels_strings"); len(s) > 0 {
		return tensor.Of(s, len(s)), nil
	}
	if n, ok := c.Ints(integers); ok {
		return tensor.Of(slices.Clone(n), len(n)), nil
	}
	return nil, c.Errorf("no attribute names the classes")
}

// dictVectorizer puts each value of a map at the place of its key in the
// vocabulary. Keys that the map lacks give 0, or an empty string.
func dictVectorizer(c *Call) error {
	m, err := c.mapInput()
	if err != nil {
		return err
	}
	names := c.strings("string_vocabulary")
	vocabulary := tensor.Of(names, len(names))
	if m.Keys.Type() != tensor.String {
		numbers, _ := c.Ints("int64_vocabulary")
		vocabulary = tensor.Of(slices.Clone(numbers), len(numbers))
	}
	places, err := c.positionsIn(vocabulary, m.Keys)
	if err != nil {
		return err
	}
	out, err := c.New(m.Values.Type(), vocabulary.Len())
	if err != nil {
		return err
	}
	for i, p := range places {
		if p < 0 {
			return c.Errorf("key %d of the map is not in the vocabulary", i)
		}
		copyPart(out, p, m.Values, i, 1)
	}
	return c.setOutput(out, nil)
}

// castMap gives the values of a map in the order of its keys: beside each other,
// or each at the place that its key says, in one row.
func castMap(c *Call) error {
	m, err := c.mapInput()
	if err != nil {
		return err
	}
	keys := tensor.Data[int64](m.Keys)
	if keys == nil {
		return c.Errorf("the keys are %s, not INT64", m.Keys.Type())
	}
	values, err := c.mapValues(m.Values)
	if err != nil {
		return err
	}
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
	size := len(keys)
	sparse := c.String("map_form", "DENSE") == "SPARSE"
	if sparse {
		sizes, err := toInts(c, []int64{c.Int("max_map", 1)})
		if err != nil {
			return err
		}
		size = sizes[0]
	}
	out, err := c.New(values.Type(), 1, size)
	if err != nil {
		return err
	}
	for at, i := range order {
		if sparse {
			if keys[i] < 0 || keys[i] >= int64(size) {
				return c.Errorf("key %d for max_map %d", keys[i], size)
			}
			at = int(keys[i])
		}
		copyPart(out, at, values, i, 1)
	}
	return c.setOutput(out, nil)
}

// mapValues converts the values of a map as attribute cast_to says.
func (c *Call) mapValues(d *tensor.Dense) (*tensor.Dense, error) {
	to, ok := map[string]tensor.Type{"TO_FLOAT": tensor.Float32, "TO_STRING": tensor.String, "TO_INT64": tensor.Int64}[c.String("cast_to", "TO_FLOAT")]
	if !ok {
		return nil, c.Errorf("attribute \"cast_to\" is %q", c.String("cast_to", ""))
	}
	return c.cast(d, to)
}
