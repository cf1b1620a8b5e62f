package infer

import "slices"

// windowOperators slide a window over spatial dims.
var windowOperators = []operator{
	{name: "Conv", since: 1, rule: convolution(0, 1)},
	{name: "ConvInteger", since: 10, rule: convolution(0, 1)},
	{name: "QLinearConv", since: 10, rule: convolution(0, 3)},
	{name: "DeformConv", since: 19, rule: convolution(0, 1)},
	{name: "MaxPool", since: 1, rule: pool},
	{name: "AveragePool", since: 1, rule: pool},
	{name: "LpPool", since: 1, rule: pool},
}

// sliding is the geometry of a window along each spatial dim.
type sliding struct {
	kernel            []Dim
	strides, dilation []int64
	pads              []int64 // all beginnings, then all ends
	auto              string
	ceil              bool
	// pools says that a window which hangs over its input may be taken all the same: see
	// positions.
	pools bool
}

// sliding reads the geometry for rank spatial dims; ok is false when the
// attributes do not fit together.
func (c *call) sliding(rank int, kernel []Dim) (s sliding, ok bool) {
	s = sliding{kernel: kernel, auto: c.string("auto_pad", "NOTSET"), ceil: c.int("ceil_mode", 0) != 0}
	var okStrides, okDilation, okPads bool
	s.strides, okStrides = c.spatial("strides", rank, 1, 1)
	s.dilation, okDilation = c.spatial("dilations", rank, 1, 1)
	s.pads, okPads = c.spatial("pads", 2*rank, 0, -maxBlock)
	if !okStrides || !okDilation || !okPads || len(kernel) != rank {
		c.conflictf("strides, dilations, pads or kernel_shape do not fit the %d spatial dims of %s", rank, c.describe(0))
		return s, false
	}
	return s, true
}

// spatial reads an ints attribute of n entries between least and a sane limit; all are otherwise when it is left out.
func (c *call) spatial(name string, n int, otherwise, least int64) (list []int64, ok bool) {
	list, given := c.intList(name)
	if !given {
		return slices.Repeat([]int64{otherwise}, n), true
	}
	for _, x := range list {
		if x < least || x > maxBlock {
			return nil, false
		}
	}
	return list, len(list) == n
}

// output gives the number of positions of the window along spatial dim k.
func (s sliding) output(k int, in Dim) Dim {
	stride := Const(s.strides[k])
	switch s.auto {
	case "SAME_UPPER", "SAME_LOWER":
		return in.CeilDiv(stride)
	case "VALID":
		return s.positions(k, in, 0, 0)
	}
	return s.positions(k, in, s.pads[k], s.pads[len(s.pads)/2+k])
}

// positions counts windows over a padded dim. With ceil_mode a last one may hang
// over the end, but it must begin before the end padding does.
func (s sliding) positions(k int, in Dim, begin, end int64) Dim {
	stride := s.strides[k]
	extent := s.kernel[k].AddConst(-1).MulConst(s.dilation[k]).AddConst(1)
	span := in.AddConst(begin + end).Sub(extent)
	if over, ok := span.Known(); ok && over < 0 && !s.ceil {
		if s.pools && over/stride+1 >= 0 {
			// The formula rounds down, ONNX Runtime towards zero: an empty result or a
			// window that hangs over. Neither is counted on.
			return Unknown()
		}
		return Const(-1) // which no window is: see windowCount
	}
	if !s.ceil {
		return span.FloorDiv(Const(stride)).AddConst(1)
	}
	count := span.CeilDiv(Const(stride))
	overhang := in.AddConst(begin - 1).Sub(count.MulConst(stride))
	switch {
	case overhang.NonNegative() || extent.AddConst(-end-stride).NonNegative():
		return count.AddConst(1)
	case overhang.MulConst(-1).Positive():
		return count
	}
	return Unknown()
}

// convolution makes the rule of a convolution with its data and weights at the given inputs.
func convolution(data, weights int) rule {
	return func(c *call) {
		x, ok := c.dims(data)
		w, okToo := c.dims(weights)
		if !ok {
			if okToo {
				c.setDims(0, unknowns(len(w))...)
			}
			return
		}
		out := unknowns(len(x))
		if len(x) < 3 {
			c.conflictf("%s has no spatial dims", c.describe(data))
			return
		}
		out[0] = x[0]
		var kernel []Dim
		if okToo && len(w) == len(x) {
			out[1], kernel = w[0], w[2:]
			if n := c.int("group", 1); n > 0 {
				c.agreeDims(x[1], w[1].MulConst(n), func() string {
					return "channels of " + c.describe(data) + " and, times group, dim 1 of " + c.describe(weights)
				})
			}
		}
		if list, ok := c.intList("kernel_shape"); ok {
			kernel = numbersOf(list)
		}
		if s, ok := c.sliding(len(x)-2, kernel); kernel != nil && ok {
			for k, d := range x[2:] {
				out[2+k] = c.windowCount(s.output(k, d), data)
			}
			if c.node.OpType == "Conv" {
				// Engines refuse an image without pixels, whatever the batch, but those that
				// padding makes large enough.
				c.notePositive(s.unpadded(x[2:]))
				c.notePositive(out[2:])
			}
		}
		c.setDims(0, out...)
	}
}

// unpadded are those of the dims that no window reaches beyond.
func (s sliding) unpadded(dims []Dim) (list []Dim) {
	for k, d := range dims {
		if s.auto == "VALID" || s.auto == "NOTSET" && s.pads[k] <= 0 && s.pads[len(dims)+k] <= 0 {
			list = append(list, d)
		}
	}
	return list
}

// windowCount refuses windows that do not fit their input once.
func (c *call) windowCount(n Dim, data int) Dim {
	if k, ok := n.Known(); ok && k < 0 {
		c.conflictf("the window is larger than %s", c.describe(data))
		return Unknown()
	}
	return n
}

func numbersOf(list []int64) []Dim {
	dims := make([]Dim, len(list))
	for k, n := range list {
		dims[k] = Const(n)
	}
	return dims
}

// pool keeps batch and channels; MaxPool may give positions beside.
func pool(c *call) {
	dims, ok := c.dims(0)
	list, given := c.intList("kernel_shape")
	if !ok || !given {
		return
	}
	if len(dims) != len(list)+2 {
		c.conflictf("kernel_shape %v does not fit %s", list, c.describe(0))
		return
	}
	s, ok := c.sliding(len(list), numbersOf(list))
	if !ok {
		return
	}
	s.pools = true
	out := slices.Clone(dims)
	for k, d := range dims[2:] {
		out[2+k] = c.windowCount(s.output(k, d), 0)
	}
	c.setDims(0, out...)
	c.setDims(1, out...)
}
