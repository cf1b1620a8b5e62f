package eval

import (
	"math"
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// normalizationOperators bring elements to mean 0 and variance 1, or the like.
var normalizationOperators = []operator{
	{name: "BatchNormalization", since: 1, run: onFloats(0, batchNormalization[float32], batchNormalization[float64])},
	{name: "InstanceNormalization", since: 1, run: onFloats(0, instanceNormalization[float32], instanceNormalization[float64])},
	{name: "GroupNormalization", since: 18, run: onFloats(0, groupNormalization[float32], groupNormalization[float64])},
	{name: "LayerNormalization", since: 17, run: onFloats(0, layerNormalization[float32], layerNormalization[float64])},
	{name: "RMSNormalization", since: 23, run: onFloats(0, rmsNormalization[float32], rmsNormalization[float64])},
	{name: "LpNormalization", since: 1, run: onFloats(0, lpNormalization[float32], lpNormalization[float64])},
	{name: "MeanVarianceNormalization", since: 9, run: onFloats(0, meanVariance[float32], meanVariance[float64])},
}

// moments gives the mean and the variance of a row, in float64.
func moments[T floating](row []T) (mean, variance float64) {
	n := float64(len(row))
	mean = total(row) / n
	return mean, squareDistance(row, mean) / n
}

// squareDistance adds up the squares of the distances from centre.
func squareDistance[T floating](row []T, centre float64) float64 {
	var s0, s1, s2, s3 float64
	for len(row) >= 4 {
		d0, d1, d2, d3 := float64(row[0])-centre, float64(row[1])-centre, float64(row[2])-centre, float64(row[3])-centre
		s0 += float64(d0 * d0)
		s1 += float64(d1 * d1)
		s2 += float64(d2 * d2)
		s3 += float64(d3 * d3)
		row = row[4:]
	}
	for _, v := range row {
		d := float64(v) - centre
		s0 += float64(d * d)
	}
	return (s0 + s1) + (s2 + s3)
}

// affine writes x·scale + shift, rounded once: the two may nearly cancel.
func affine[T floating](dst, x []T, scale, shift float64) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = T(float64(float64(v)*scale) + shift)
	}
}

// channels is an image as channels, each of which has its own statistics: element k
// of channel i of item n is data[(n*count+i)*size+k].
type channels struct{ items, count, size int }

// perChannel gives the channels of a BatchNormalization's input of a shape. A vector
// is one channel. Versions before 9 can ask for statistics of every single element.
func perChannel(c *Call, shape []int) (channels, error) {
	switch {
	case len(shape) == 0:
		return channels{}, c.Errorf("input 0 is a scalar")
	case len(shape) == 1:
		return channels{1, 1, shape[0]}, nil
	case c.Opset < 9 && c.Int("spatial", 1) == 0:
		return channels{shape[0], product(shape[1:]), 1}, nil
	}
	return channels{shape[0], shape[1], product(shape[2:])}, nil
}

// batchNormalization uses the statistics it is given, or in training mode those of
// the batch. Before version 14 the mode was training when more than one output is
// there and, in versions 1 and 6, is_test does not forbid it.
func batchNormalization[T floating](c *Call) error {
	x, err := numberInput[T](c, 0)
	if err != nil {
		return err
	}
	ch, err := perChannel(c, x.shape)
	if err != nil {
		return err
	}
	var parameters [4][]T // scale, bias, mean, variance
	for i := range parameters {
		if parameters[i], err = vectorInput[T](c, 1+i, ch.count); err != nil {
			return err
		}
		if parameters[i] == nil {
			return c.Errorf("input %d is missing", 1+i)
		}
	}
	mean, variance := parameters[2], parameters[3]
	training := c.Int("training_mode", 0) != 0
	if c.Opset < 14 {
		training = len(c.Outputs) > 1 && (c.Opset >= 7 || c.Int("is_test", 0) == 0)
	}
	if training {
		if mean, variance, err = trainBatch(c, ch, x.data, mean, variance); err != nil {
			return err
		}
	}
	out, err := newResult[T](c, 0, x.typ, x.shape...)
	if err != nil {
		return err
	}
	epsilon := float64(c.Float("epsilon", 1e-5))
	c.Parallel(ch.items*ch.count, 1+elementGrain/max(1, ch.size), func(first, last int) {
		for p := first; p < last; p++ {
			i := p % ch.count
			scale := float64(parameters[0][i]) / math.Sqrt(float64(variance[i])+epsilon)
			shift := float64(parameters[1][i]) - float64(float64(mean[i])*scale)
			affine(out.data[p*ch.size:][:ch.size], x.data[p*ch.size:][:ch.size], scale, shift)
		}
	})
	return out.finish()
}

// trainBatch computes the statistics of the batch and sets the outputs that follow the
// running ones along; versions before 14 give the batch's as well.
func trainBatch[T floating](c *Call, ch channels, x, runningMean, runningVariance []T) (mean, variance []T, err error) {
	batch, err := scratch[T](c, 2, ch.count)
	if err != nil {
		return nil, nil, err
	}
	mean, variance = batch[:ch.count], batch[ch.count:]
	n := float64(ch.items * ch.size)
	c.Parallel(ch.count, 1+elementGrain/max(1, ch.items*ch.size), func(first, last int) {
		for i := first; i < last; i++ {
			plane := func(item int) []T { return x[(item*ch.count+i)*ch.size:][:ch.size] }
			sum, squares := 0.0, 0.0
			for item := range ch.items {
				sum += total(plane(item))
			}
			for item := range ch.items {
				squares += squareDistance(plane(item), sum/n)
			}
			mean[i], variance[i] = T(sum/n), T(squares/n)
		}
	})
	momentum := float64(c.Float("momentum", 0.9))
	for k, pair := range [][2][]T{{runningMean, mean}, {runningVariance, variance}} {
		d, err := c.Tensor(3 + k)
		if err != nil {
			return nil, nil, err
		}
		moved, err := newResult[T](c, 1+k, d.Type(), d.Shape()...)
		if err != nil {
			return nil, nil, err
		}
		for i := range moved.data {
			moved.data[i] = T(float64(float64(pair[0][i])*momentum) + float64(float64(pair[1][i])*(1-momentum)))
		}
		if err := moved.finish(); err != nil {
			return nil, nil, err
		}
		if c.Opset >= 14 {
			continue
		}
		saved, err := newResult[T](c, 3+k, d.Type(), d.Shape()...)
		if err != nil {
			return nil, nil, err
		}
		copy(saved.data, pair[1])
		if err := saved.finish(); err != nil {
			return nil, nil, err
		}
	}
	return mean, variance, nil
}

// instanceNormalization normalises every channel of every image.
func instanceNormalization[T floating](c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	if d.Rank() < 2 {
		return c.Errorf("input 0 has shape %v, which is no batch of images", d.Shape())
	}
	return normalizeGroups[T](c, d.Shape()[1], d.Shape()[1])
}

// groupNormalization normalises groups of channels of every image. Scales and biases
// are those of a group in version 18, of a channel from 21 on.
func groupNormalization[T floating](c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	groups := c.Int("num_groups", 0)
	if d.Rank() < 2 || groups < 1 || groups > maxExtent || d.Shape()[1]%int(groups) != 0 {
		return c.Errorf("input 0 of shape %v does not fall into %d groups of channels", d.Shape(), groups)
	}
	parameters := d.Shape()[1]
	if c.Opset < 21 {
		parameters = int(groups)
	}
	return normalizeGroups[T](c, int(groups), parameters)
}

// normalizeGroups normalises each of groups equal parts of an image's channels; scale
// and bias, inputs 1 and 2, have so many parameters.
func normalizeGroups[T floating](c *Call, groups, parameters int) error {
	x, err := numberInput[T](c, 0)
	if err != nil {
		return err
	}
	scale, err := shapedInput[T](c, 1, parameters)
	if err != nil {
		return err
	}
	bias, err := shapedInput[T](c, 2, parameters)
	if err != nil {
		return err
	}
	out, err := newResult[T](c, 0, x.typ, x.shape...)
	if err != nil {
		return err
	}
	channels, size := x.shape[1], product(x.shape[2:])
	epsilon := float64(c.Float("epsilon", 1e-5))
	group := channels / max(groups, 1) * size
	c.Parallel(x.shape[0]*groups, 1+elementGrain/max(1, group), func(first, last int) {
		for g := first; g < last; g++ {
			part := x.data[g*group:][:group]
			mean, variance := moments(part)
			inverse := 1 / math.Sqrt(variance+epsilon)
			for i := 0; i < group; i += size {
				channel := (g*group + i) / size % channels * parameters / channels
				factor := float64(scale[channel]) * inverse
				shift := float64(bias[channel]) - float64(mean*factor)
				affine(out.data[g*group+i:][:size], part[i:][:size], factor, shift)
			}
		}
	})
	return out.finish()
}

// rowParameters is a scale or bias beside rows of an array: every row's own, or one for all.
type rowParameters[T floating] struct {
	data []T
	step int // from row to row: 0 when all have the same
}

func (p rowParameters[T]) row(i, n int) []T { return p.data[i*p.step:][:n] }

// rowParametersOf spreads input i over the rows of an array of a shape, which are as
// long as the axes from axis on; nil data when the input is left out.
func rowParametersOf[T floating](c *Call, i int, shape []int, axis int) (rowParameters[T], error) {
	v, err := optionalNumbers[T](c, i)
	if err != nil || v.data == nil {
		return rowParameters[T]{}, err
	}
	if slices.Equal(v.shape, shape[axis:]) {
		return rowParameters[T]{data: v.data}, nil
	}
	strides, err := tensor.BroadcastStrides(v.shape, shape)
	if err != nil {
		return rowParameters[T]{}, c.Errorf("input %d: %w", i, err)
	}
	d, err := tensor.Make(v.data, v.shape...)
	if err != nil {
		return rowParameters[T]{}, c.Errorf("%w", err)
	}
	if d, err = c.Strided(d, 0, shape, strides); err != nil {
		return rowParameters[T]{}, err
	}
	return rowParameters[T]{tensor.Data[T](d), product(shape[axis:])}, nil
}

// layerNormalization normalises rows: all axes from axis on.
func layerNormalization[T floating](c *Call) error {
	x, err := numberInput[T](c, 0)
	if err != nil {
		return err
	}
	axis, err := normalAxis(c, c.Int("axis", -1), len(x.shape))
	if err != nil {
		return err
	}
	out, err := newResult[T](c, 0, x.typ, x.shape...)
	if err != nil {
		return err
	}
	scale, err := rowParametersOf[T](c, 1, x.shape, axis)
	if err != nil {
		return err
	}
	bias, err := rowParametersOf[T](c, 2, x.shape, axis)
	if err != nil {
		return err
	}
	saved, err := savedStatistics[T](c, x.shape, axis)
	if err != nil {
		return err
	}
	rows, n := product(x.shape[:axis]), product(x.shape[axis:])
	epsilon := float64(c.Float("epsilon", 1e-5))
	c.Parallel(rows, 1+elementGrain/max(1, n), func(first, last int) {
		for i := first; i < last; i++ {
			mean, variance := moments(x.data[i*n:][:n])
			inverse := 1 / math.Sqrt(variance+epsilon)
			row := out.data[i*n:][:n]
			affine(row, x.data[i*n:], inverse, -mean*inverse)
			scaleRow(row, scale, bias, i)
			saved[0].data[i], saved[1].data[i] = T(mean), T(inverse)
		}
	})
	for _, s := range saved {
		if err := s.finish(); err != nil {
			return err
		}
	}
	return out.finish()
}

// savedStatistics makes room for the mean and the inverse deviation of rows.
func savedStatistics[T floating](c *Call, shape []int, axis int) ([2]*result[T], error) {
	kept := slices.Clone(shape)
	for i := axis; i < len(kept); i++ {
		kept[i] = 1
	}
	var saved [2]*result[T]
	for k := range saved {
		var err error
		if saved[k], err = newResult[T](c, 1+k, tensor.Type(c.Int("stash_type", 1)), kept...); err != nil {
			return saved, err
		}
	}
	return saved, nil
}

// scaleRow multiplies row i by its scale and adds its bias, where there are any.
func scaleRow[T floating](row []T, scale, bias rowParameters[T], i int) {
	n := len(row)
	switch {
	case scale.data != nil && bias.data != nil:
		s, b := scale.row(i, n), bias.row(i, n)
		for k, v := range row {
			row[k] = T(v*s[k]) + b[k]
		}
	case scale.data != nil:
		for k, s := range scale.row(i, n) {
			row[k] *= s
		}
	case bias.data != nil:
		for k, b := range bias.row(i, n) {
			row[k] += b
		}
	}
}

// rmsNormalization divides rows, all axes from axis on, by their root mean square.
func rmsNormalization[T floating](c *Call) error {
	x, err := numberInput[T](c, 0)
	if err != nil {
		return err
	}
	axis, err := normalAxis(c, c.Int("axis", -1), len(x.shape))
	if err != nil {
		return err
	}
	weights, err := c.Tensor(1)
	if err != nil {
		return err
	}
	out, err := newResult[T](c, 0, weights.Type(), x.shape...)
	if err != nil {
		return err
	}
	scale, err := rowParametersOf[T](c, 1, x.shape, axis)
	if err != nil {
		return err
	}
	rows, n := product(x.shape[:axis]), product(x.shape[axis:])
	epsilon := float64(c.Float("epsilon", 1e-5))
	c.Parallel(rows, 1+elementGrain/max(1, n), func(first, last int) {
		for i := first; i < last; i++ {
			row := out.data[i*n:][:n]
			inverse := 1 / math.Sqrt(squareDistance(x.data[i*n:][:n], 0)/float64(n)+epsilon)
			affine(row, x.data[i*n:], inverse, 0)
			scaleRow(row, scale, rowParameters[T]{}, i)
		}
	})
	return out.finish()
}
