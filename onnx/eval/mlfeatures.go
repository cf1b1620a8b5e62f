package eval

import (
	"math"
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// machineLearning is the domain of classical models.
const machineLearning = "ai.onnx.ml"

// featureOperators prepare rows of features.
var featureOperators = []operator{
	{domain: machineLearning, name: "ArrayFeatureExtractor", since: 1, run: arrayFeatureExtractor},
	{domain: machineLearning, name: "Binarizer", since: 1, run: onNumbers(0, tensor.Numbers[Kernel]{
		Float32: binarizer[float32], Float64: binarizer[float64], Int32: binarizer[int32], Int64: binarizer[int64]})},
	{domain: machineLearning, name: "FeatureVectorizer", since: 1, run: featureVectorizer},
	{domain: machineLearning, name: "Imputer", since: 1, run: onNumbers(0, tensor.Numbers[Kernel]{
		Float32: imputer(floatValues[float32]), Float64: imputer(floatValues[float64]),
		Int32: imputer(integerValues[int32]), Int64: imputer(integerValues[int64])})},
	{domain: machineLearning, name: "Normalizer", since: 1, run: onFeatures(normalizer[float32], normalizer[float64])},
	{domain: machineLearning, name: "Scaler", since: 1, run: onFeatures(scaler[float32], scaler[float64])},
}

// features is the input of a model: rows of equally many numbers, in the type to
// compute in. A vector is one row.
type features[T floating] struct {
	rows, columns int
	data          []T
	shape         []int
}

// onFeatures computes float64 in float64, other floats and integers in float32.
func onFeatures(single, double Kernel) Kernel {
	return func(c *Call) error {
		d, err := c.Tensor(0)
		if err != nil {
			return err
		}
		switch d.Type() {
		case tensor.Float64:
			return double(c)
		case tensor.Float32, tensor.Float16, tensor.Int32, tensor.Int64:
			return single(c)
		}
		return c.noKernel(d.Type())
	}
}

func featureInput[T floating](c *Call) (*features[T], error) {
	d, err := c.Tensor(0)
	if err != nil {
		return nil, err
	}
	if d.Rank() < 1 || d.Rank() > 2 {
		return nil, c.Errorf("features of shape %v, not [N, F] or [F]", d.Shape())
	}
	wide, err := c.cast(d, tensor.TypeOf[T]())
	if err != nil {
		return nil, err
	}
	f := &features[T]{rows: 1, columns: d.Shape()[d.Rank()-1], data: tensor.Data[T](wide), shape: d.Shape()}
	if d.Rank() == 2 {
		f.rows = d.Shape()[0]
	}
	return f, nil
}

func (f *features[T]) row(i int) []T { return f.data[i*f.columns : (i+1)*f.columns] }

// scaler is (x - offset)·scale.
func scaler[T floating](c *Call) error {
	x, err := featureInput[T](c)
	if err != nil {
		return err
	}
	offset, scale := columnValuesOf(c.floats("offset"), 0), columnValuesOf(c.floats("scale"), 1)
	if !offset.fits(x.columns) || !scale.fits(x.columns) {
		return c.Errorf("%d offsets and %d scales for %d features", len(offset), len(scale), x.columns)
	}
	y, err := Output[float32](c, 0, x.shape...)
	if err != nil {
		return err
	}
	for i := range y {
		y[i] = float32((x.data[i] - T(offset.at(i%x.columns))) * T(scale.at(i%x.columns)))
	}
	return nil
}

// columnValues has one number for all columns, or one for each.
type columnValues []float32

func columnValuesOf(values []float32, otherwise float32) columnValues {
	if len(values) == 0 {
		return columnValues{otherwise}
	}
	return values
}

func (v columnValues) fits(columns int) bool { return len(v) == 1 || len(v) == columns }

func (v columnValues) at(column int) float32 {
	if len(v) == 1 {
		return v[0]
	}
	return v[column]
}

// normalizer divides each row by its greatest number, its sum of magnitudes or its
// length; what would be divided by 0 stays.
func normalizer[T floating](c *Call) error {
	x, err := featureInput[T](c)
	if err != nil {
		return err
	}
	norm := map[string]func([]T) float64{"MAX": greatest[T], "L1": sumOfMagnitudes[T], "L2": euclideanLength[T]}[c.String("norm", "MAX")]
	if norm == nil {
		return c.Errorf("attribute \"norm\" is %q", c.String("norm", ""))
	}
	y, err := Output[float32](c, 0, x.shape...)
	if err != nil || len(y) == 0 {
		return err
	}
	c.Parallel(x.rows, elementGrain/x.columns+1, func(first, last int) {
		for r := first; r < last; r++ {
			divisor := norm(x.row(r))
			if divisor == 0 {
				divisor = 1
			}
			for k, v := range x.row(r) {
				y[r*x.columns+k] = float32(float64(v) / divisor)
			}
		}
	})
	return nil
}

func greatest[T floating](row []T) float64 { return float64(slices.Max(row)) }

func sumOfMagnitudes[T floating](row []T) (sum float64) {
	for _, v := range row {
		sum += math.Abs(float64(v))
	}
	return sum
}

func euclideanLength[T floating](row []T) float64 {
	var sum float64
	for _, v := range row {
		sum += float64(float64(v) * float64(v))
	}
	return math.Sqrt(sum)
}

// binarizer is 1 above the threshold, else 0.
func binarizer[T number](c *Call) error {
	x, err := numberInput[T](c, 0)
	if err != nil {
		return err
	}
	y, err := newResult[T](c, 0, x.typ, x.shape...)
	if err != nil {
		return err
	}
	threshold := float64(c.Float("threshold", 0))
	for i, v := range x.data {
		if float64(v) > threshold {
			y.data[i] = 1
		}
	}
	return y.finish()
}

// imputer replaces one value, which may be NaN, by another, or by one for each
// column.
func imputer[T number](valuesOf func(c *Call) (replaced T, imputed []T)) Kernel {
	return func(c *Call) error {
		x, err := numberInput[T](c, 0)
		if err != nil {
			return err
		}
		replaced, imputed := valuesOf(c)
		columns := 1
		if len(x.shape) > 0 {
			columns = x.shape[len(x.shape)-1]
		}
		if len(imputed) != 1 && (len(imputed) != columns || columns == 0) {
			return c.Errorf("%d imputed values for %d features", len(imputed), columns)
		}
		y, err := newResult[T](c, 0, x.typ, x.shape...)
		if err != nil {
			return err
		}
		for i, v := range x.data {
			if v == replaced || v != v && replaced != replaced {
				v = imputed[i%columns%len(imputed)]
			}
			y.data[i] = v
		}
		return y.finish()
	}
}

func floatValues[T floating](c *Call) (replaced T, imputed []T) {
	for _, v := range c.floats("imputed_value_floats") {
		imputed = append(imputed, T(v))
	}
	return T(c.Float("replaced_value_float", 0)), imputed
}

func integerValues[T int32 | int64](c *Call) (replaced T, imputed []T) {
	values, _ := c.Ints("imputed_value_int64s")
	for _, v := range values {
		imputed = append(imputed, T(v))
	}
	return T(c.Int("replaced_value_int64", 0)), imputed
}

// featureVectorizer joins rows, each cut or filled with zeros to the width that
// inputdimensions says.
func featureVectorizer(c *Call) error {
	widths, _ := c.Ints("inputdimensions")
	parts, rows, total, err := vectorizerParts(c, widths)
	if err != nil {
		return err
	}
	y, err := Output[float32](c, 0, rows, total)
	if err != nil || len(y) == 0 {
		return err
	}
	at := 0
	for _, p := range parts {
		for r := range rows {
			copy(y[r*total+at:r*total+at+p.width], p.row(r))
		}
		at += p.width
	}
	return nil
}

// vectorizerPart is one input and the width it takes in the result.
type vectorizerPart struct {
	features[float32]
	width int
}

func vectorizerParts(c *Call, widths []int64) (parts []vectorizerPart, rows, total int, err error) {
	all, err := c.Tensors(0)
	if err != nil {
		return nil, 0, 0, err
	}
	for i, d := range all {
		if d.Rank() < 1 || d.Rank() > 2 || d.Type() == tensor.String {
			return nil, 0, 0, c.Errorf("input %d is %s%v", i, d.Type(), d.Shape())
		}
		wide, err := c.cast(d, tensor.Float32)
		if err != nil {
			return nil, 0, 0, err
		}
		p := vectorizerPart{features[float32]{rows: 1, columns: d.Shape()[d.Rank()-1], data: tensor.Data[float32](wide)}, 0}
		if d.Rank() == 2 {
			p.rows = d.Shape()[0]
		}
		p.width = p.columns
		if i < len(widths) {
			if widths[i] < 0 || widths[i] > tensor.MaxElements {
				return nil, 0, 0, c.Errorf("attribute \"inputdimensions\" is %v", widths)
			}
			p.width = int(widths[i])
		}
		if i > 0 && p.rows != rows {
			return nil, 0, 0, c.Errorf("input %d has %d rows, the first %d", i, p.rows, rows)
		}
		rows = p.rows
		total += p.width
		parts = append(parts, p)
	}
	return parts, rows, total, nil
}

// arrayFeatureExtractor picks columns of the last axis. A vector gives one row.
func arrayFeatureExtractor(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	indices, err := c.IntsInput(1)
	if err != nil {
		return err
	}
	if d.Rank() == 0 {
		return c.Errorf("a scalar has no columns")
	}
	columns := d.Shape()[d.Rank()-1]
	for _, i := range indices {
		if i < 0 || i >= int64(columns) {
			return c.Errorf("column %d of %d", i, columns)
		}
	}
	shape := slices.Clone(d.Shape())
	shape[len(shape)-1] = len(indices)
	if len(shape) == 1 {
		shape = []int{1, len(indices)}
	}
	out, err := c.New(d.Type(), shape...)
	if err != nil || out.Len() == 0 {
		return c.setOutput(out, err)
	}
	move := copyRows.For(d.Type())
	for k, i := range indices {
		move(out, k, len(indices), d, int(i), columns, 1, d.Len()/columns)
	}
	return c.setOutput(out, nil)
}
