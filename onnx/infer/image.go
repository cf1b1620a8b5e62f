package infer

import (
	"math"
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// imageOperators change the size of pictures and the like.
var imageOperators = []operator{
	{name: "Pad", since: 1, rule: pad},
	{name: "Upsample", since: 1, rule: upsamplePicture},
	{name: "Upsample", since: 7, rule: upsample},
	{name: "Resize", since: 10, rule: upsample},
	{name: "Resize", since: 11, rule: resize},
	{name: "CenterCropPad", since: 18, rule: centerCropPad},
	{name: "Col2Im", since: 18, rule: columnsToImage},
	{name: "ConvTranspose", since: 1, rule: transposedConvolution},
	{name: "MaxUnpool", since: 9, rule: maxUnpool},
	{name: "GridSample", since: 16, rule: gridSample},
	{name: "AffineGrid", since: 20, rule: affineGrid},
	{name: "ImageDecoder", since: 20, rule: imageDecoder},
}

// pad adds to both ends of axes; negative numbers crop. The numbers are an
// attribute before opset 11 and an input since; axes may be named since 18.
func pad(c *call) {
	dims, ok := c.dims(0)
	if !ok {
		return
	}
	pads := c.padding()
	axes, given, known := c.axes(3, 18)
	if !given || c.opset < 18 {
		axes = nil
		for k := range dims {
			axes = append(axes, int64(k))
		}
	}
	if !known || len(pads) != 2*len(axes) {
		c.setDims(0, unknowns(len(dims))...)
		return
	}
	out := slices.Clone(dims)
	for k, a := range axes {
		axis, ok := c.normalAxis(a, len(dims))
		if !ok {
			return
		}
		out[axis] = out[axis].Add(pads[k].Dim()).Add(pads[len(axes)+k].Dim())
	}
	c.setDims(0, out...)
}

func (c *call) padding() []Value {
	if c.opset >= 11 {
		return c.elements(1)
	}
	list, ok := c.intList("pads")
	if !ok {
		list, _ = c.intList("paddings") // its name in version 1
	}
	return valuesOfInts(list)
}

func valuesOfInts(list []int64) []Value {
	values := make([]Value, len(list))
	for k, n := range list {
		values[k] = Integer(Const(n))
	}
	return values
}

// upsamplePicture is version 1 of Upsample: height and width have a scale each.
func upsamplePicture(c *call) {
	dims, ok := c.dims(0)
	if !ok || len(dims) != 4 {
		return
	}
	scales := []Value{{}, {}}
	for k, name := range []string{"height_scale", "width_scale"} {
		if a := c.attribute(name); a != nil {
			scales[k] = Float(float64(a.Float()))
		}
	}
	c.setDims(0, scaleDims(dims, scales, []int{2, 3})...)
}

// upsample multiplies dims by scales: an attribute in version 7 of Upsample, an
// input later.
func upsample(c *call) {
	dims, ok := c.dims(0)
	if !ok {
		return
	}
	var scales []Value
	if a := c.attribute("scales"); a != nil {
		for _, x := range a.Floats() {
			scales = append(scales, Float(float64(x)))
		}
	} else {
		scales = c.values(1)
	}
	c.setDims(0, scaleDims(dims, scales, nil)...)
}

// scaleDims gives floor(dim · scale) for the axes, all when there are none.
func scaleDims(dims []Dim, scales []Value, axes []int) []Dim {
	out := slices.Clone(dims)
	if axes == nil {
		axes = allAxes(len(dims))
	}
	for k, axis := range axes {
		out[axis] = Unknown()
		if len(scales) == len(axes) {
			out[axis] = scaleDim(dims[axis], scales[k])
		}
	}
	return out
}

func allAxes(rank int) []int {
	axes := make([]int, rank)
	for k := range axes {
		axes[k] = k
	}
	return axes
}

// scaleDim computes a number in float32, as runtimes do, and an expression where
// the scale is a simple fraction.
func scaleDim(d Dim, scale Value) Dim {
	x, isFloat := scale.Float()
	n, known := d.Known()
	if isFloat && known && n < 1<<24 {
		scaled := math.Floor(float64(float32(n) * float32(x)))
		if !(scaled >= 0 && scaled < 1<<53) {
			return Unknown()
		}
		return Const(int64(scaled))
	}
	numerator, denominator, ok := scale.fraction()
	if !ok {
		return Unknown()
	}
	return d.Mul(numerator).FloorDiv(Const(denominator))
}

// resize takes sizes or scales, for all axes or since opset 18 named ones.
func resize(c *call) {
	dims, ok := c.dims(0)
	if !ok {
		return
	}
	axes, ok := c.resizeAxes(len(dims))
	if !ok {
		return
	}
	if sizes := c.elements(3); len(sizes) > 0 && len(sizes) == len(axes) {
		c.setDims(0, c.resizeTo(dims, sizes, axes)...)
		return
	}
	scales := c.values(2)
	if c.string("coordinate_transformation_mode", "") == "tf_crop_and_resize" {
		scales = nil // the region of interest has a say
	}
	c.setDims(0, scaleDims(dims, scales, axes)...)
}

func (c *call) resizeAxes(rank int) ([]int, bool) {
	list, given := c.intList("axes")
	if !given {
		return allAxes(rank), true
	}
	axes := make([]int, len(list))
	for k, a := range list {
		var ok bool
		if axes[k], ok = c.normalAxis(a, rank); !ok {
			return nil, false
		}
	}
	return axes, true
}

// resizeTo gives the wanted sizes, or with a policy of keeping the aspect ratio
// the largest that fit in, or the smallest that cover, them.
func (c *call) resizeTo(dims []Dim, sizes []Value, axes []int) []Dim {
	out := slices.Clone(dims)
	policy := c.string("keep_aspect_ratio_policy", "stretch")
	scale, known := commonScale(dims, sizes, axes, policy)
	for k, axis := range axes {
		switch n, number := dims[axis].Known(); {
		case policy == "stretch":
			out[axis] = sizes[k].Dim()
		case known && number:
			out[axis] = Const(int64(math.Floor(scale*float64(n) + 0.5)))
		default:
			out[axis] = Unknown()
		}
	}
	return out
}

func commonScale(dims []Dim, sizes []Value, axes []int, policy string) (scale float64, known bool) {
	for k, axis := range axes {
		n, ok := dims[axis].Known()
		size, okToo := sizes[k].Int()
		if !ok || !okToo || n <= 0 || n > 1<<31 || size < 0 || size > 1<<31 {
			return 0, false
		}
		s := float64(size) / float64(n)
		if k == 0 || policy == "not_larger" && s < scale || policy == "not_smaller" && s > scale {
			scale = s
		}
	}
	return scale, len(axes) > 0
}

// centerCropPad brings axes to the wanted sizes.
func centerCropPad(c *call) {
	dims, ok := c.dims(0)
	if !ok {
		return
	}
	axes, ok := c.resizeAxes(len(dims))
	if !ok {
		return
	}
	out := slices.Clone(dims)
	sizes := c.elements(1)
	for k, axis := range axes {
		out[axis] = dimAt(sizes, k)
	}
	c.setDims(0, out...)
}

// columnsToImage has batch, the channels that a block's elements leave, and the image.
func columnsToImage(c *call) {
	image, block := c.elements(1), c.elements(2)
	n, ok := c.vectorLength(1)
	if !ok {
		return
	}
	out := unknowns(n + 2)
	if dims, ok := c.dims(0); ok && len(dims) == 3 {
		out[0] = dims[0]
		if block != nil {
			area := Const(1)
			for _, v := range block {
				area = area.Mul(v.Dim())
			}
			out[1] = dims[1].Div(area)
		}
	}
	for k, v := range image {
		out[2+k] = v.Dim()
	}
	c.setDims(0, out...)
}

// transposedConvolution undoes the size of a convolution: output_shape says the
// result, else it follows from strides and pads.
func transposedConvolution(c *call) {
	x, ok := c.dims(0)
	w, okToo := c.dims(1)
	if !ok || len(x) < 3 {
		return
	}
	rank := len(x) - 2
	out := unknowns(len(x))
	out[0] = x[0]
	var kernel []Dim
	if okToo && len(w) == len(x) {
		c.agree(0, 1, 1, 0)
		out[1], kernel = w[1].MulConst(c.int("group", 1)), w[2:]
	}
	if list, ok := c.intList("kernel_shape"); ok {
		kernel = numbersOf(list)
	}
	wanted, given := c.intList("output_shape")
	extra, okExtra := c.spatial("output_padding", rank, 0, 0)
	s, ok := c.sliding(rank, kernel)
	switch {
	case given && len(wanted) >= rank:
		copy(out[2:], numbersOf(wanted[len(wanted)-rank:]))
	case ok && okExtra:
		for k, d := range x[2:] {
			out[2+k] = s.undo(k, d, extra[k])
		}
	}
	c.setDims(0, out...)
}

// undo gives the size along spatial dim k whose windows are in.
func (s sliding) undo(k int, in Dim, extra int64) Dim {
	switch s.auto {
	case "SAME_UPPER", "SAME_LOWER":
		return in.MulConst(s.strides[k])
	}
	begin, end := s.pads[k], s.pads[len(s.pads)/2+k]
	if s.auto == "VALID" {
		begin, end = 0, 0
	}
	extent := s.kernel[k].AddConst(-1).MulConst(s.dilation[k]).AddConst(1)
	return in.AddConst(-1).MulConst(s.strides[k]).Add(extent).AddConst(extra - begin - end)
}

// maxUnpool has the wanted shape, or undoes the size of a pool.
func maxUnpool(c *call) {
	dims, ok := c.dims(0)
	if c.has(2) {
		sizes := c.elements(2)
		if sizes == nil && ok {
			c.setDims(0, unknowns(len(dims))...)
		} else if sizes != nil {
			c.setDims(0, dimsOf(sizes)...)
		}
		return
	}
	list, given := c.intList("kernel_shape")
	if !ok || !given || len(dims) != len(list)+2 {
		return
	}
	s, ok := c.sliding(len(list), numbersOf(list))
	if !ok {
		return
	}
	out := slices.Clone(dims)
	for k, d := range dims[2:] {
		out[2+k] = s.undo(k, d, 0)
	}
	c.setDims(0, out...)
}

// dimsOf reads elements as dims.
func dimsOf(values []Value) []Dim {
	dims := make([]Dim, len(values))
	for k, v := range values {
		dims[k] = v.Dim()
	}
	return dims
}

// gridSample has batch and channels of the picture and the positions of the grid.
func gridSample(c *call) {
	x, ok := c.dims(0)
	grid, okToo := c.dims(1)
	switch {
	case ok && okToo && len(x) == len(grid) && len(x) > 2:
		c.setDims(0, slices.Concat(x[:2], grid[1:len(grid)-1])...)
	case ok && len(x) > 2:
		c.setDims(0, slices.Concat(x[:2], unknowns(len(x)-2))...)
	}
}

// affineGrid has for every position of a picture of the wanted size its coordinates.
func affineGrid(c *call) {
	n, ok := c.vectorLength(1)
	if !ok || n < 3 {
		return
	}
	out := unknowns(n)
	if size := c.elements(1); size != nil {
		out = dimsOf(size)
		out = slices.Delete(out, 1, 2)
		out = append(out, Unknown())
	}
	out[n-1] = Const(int64(n - 2))
	c.setDims(0, out...)
}

// imageDecoder gives height, width and channels.
func imageDecoder(c *call) {
	c.setElem(0, tensor.Uint8)
	channels := Const(3)
	if c.string("pixel_format", "RGB") == "Grayscale" {
		channels = Const(1)
	}
	c.setDims(0, Unknown(), Unknown(), channels)
}
