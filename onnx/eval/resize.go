package eval

import (
	"math"
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// resizeOperators change the size of images and of any other arrays.
var resizeOperators = []operator{
	{name: "Upsample", since: 1, run: resize(readUpsample1)},
	{name: "Upsample", since: 7, run: resize(readUpsample7)},
	{name: "Upsample", since: 9, run: resize(readUpsample9)},
	{name: "Resize", since: 10, run: resize(readUpsample9)},
	{name: "Resize", since: 11, run: resize(readResize)},
}

// resizing is what one of these operators asks for.
type resizing struct {
	axes []resizedAxis // all of the array's
	mode string        // nearest, linear or cubic

	coordinates string // how positions of the output map to the input
	nearest     string // how a position between two elements is rounded
	cubic       float64
	antialias   bool
	exclude     bool // elements beyond the edge have no weight
	beyond      float64
}

// resizedAxis is one axis of a resizing.
type resizedAxis struct {
	in, out    int
	scale      float64
	length     float64 // of the output, before it was rounded down
	start, end float64 // region of interest, in parts of the input
}

// resize makes a kernel of a way to read the parameters. The size of the output
// follows from scales alone, also where a region of interest is cut out, as in all
// implementations.
func resize(read func(c *Call, x *tensor.Dense) (*resizing, error)) Kernel {
	return func(c *Call) error {
		x, err := c.Tensor(0)
		if err != nil {
			return err
		}
		r, err := read(c, x)
		if err != nil {
			return err
		}
		for axis, a := range r.axes {
			if a.out < 0 || a.in == 0 && a.out > 0 {
				return c.Errorf("axis %d of size %d cannot get size %d", axis, a.in, a.out)
			}
		}
		switch {
		case r.mode == "nearest":
			return r.nearestOf(c, x)
		case x.Type() == tensor.Float64 || x.Type().IsInteger():
			return interpolate[float64](c, r)
		case x.Type().IsFloat():
			return interpolate[float32](c, r)
		}
		return c.Unsupported("mode %q on %s", r.mode, x.Type())
	}
}

// simple is the resizing of the operators that have scales and a mode only: positions
// map by division. Rounding is down, but up where the array shrinks, as the test
// models of version 10 want it.
func simple(c *Call, x *tensor.Dense, scales []float64) (*resizing, error) {
	r := &resizing{mode: c.String("mode", "nearest"), coordinates: "asymmetric", nearest: "simple", cubic: -0.75}
	if r.mode == "bilinear" || r.mode == "trilinear" {
		r.mode = "linear"
	}
	if len(scales) != x.Rank() {
		return nil, c.Errorf("%d scales for shape %v", len(scales), x.Shape())
	}
	for axis, dim := range x.Shape() {
		a, err := scaledAxis(c, dim, scales[axis])
		if err != nil {
			return nil, err
		}
		r.axes = append(r.axes, a)
	}
	return r, r.check(c)
}

// scaledAxis is an axis that grows, or shrinks, by a factor. The size is a product in
// float32, as in shape inference.
func scaledAxis(c *Call, dim int, scale float64) (resizedAxis, error) {
	size := math.Floor(float64(float32(dim) * float32(scale)))
	if !(scale > 0) || !(size <= float64(tensor.MaxElements)) {
		return resizedAxis{}, c.Errorf("an axis of size %d cannot be scaled by %v", dim, scale)
	}
	return resizedAxis{in: dim, out: int(size), scale: scale, length: float64(dim) * scale, end: 1}, nil
}

func readUpsample1(c *Call, x *tensor.Dense) (*resizing, error) {
	return simple(c, x, []float64{1, 1, float64(c.Float("height_scale", 1)), float64(c.Float("width_scale", 1))})
}

func readUpsample7(c *Call, x *tensor.Dense) (*resizing, error) {
	var scales []float64
	if a := c.Attribute("scales"); a != nil {
		for _, s := range a.Floats() {
			scales = append(scales, float64(s))
		}
	}
	return simple(c, x, scales)
}

func readUpsample9(c *Call, x *tensor.Dense) (*resizing, error) {
	scales, err := floatList(c, 1)
	if err != nil {
		return nil, err
	}
	return simple(c, x, scales)
}

// floatList gives a float input as numbers; none when it is left out.
func floatList(c *Call, i int) ([]float64, error) {
	if !c.Has(i) {
		return nil, nil
	}
	d, err := c.Tensor(i)
	if err != nil {
		return nil, err
	}
	values, ok := d.Float64s()
	if !ok || !d.Type().IsFloat() {
		return nil, c.Errorf("input %d is %s, not floats", i, d.Type())
	}
	return values, nil
}

// readResize reads the operator as it is from version 11 on: inputs X, roi, scales and
// sizes, one of the last two absent or empty.
func readResize(c *Call, x *tensor.Dense) (*resizing, error) {
	r := &resizing{
		mode: c.String("mode", "nearest"), coordinates: c.String("coordinate_transformation_mode", "half_pixel"),
		nearest: c.String("nearest_mode", "round_prefer_floor"), cubic: float64(c.Float("cubic_coeff_a", -0.75)),
		antialias: c.Int("antialias", 0) != 0, exclude: c.Int("exclude_outside", 0) != 0,
		beyond: float64(c.Float("extrapolation_value", 0)),
	}
	for _, dim := range x.Shape() {
		r.axes = append(r.axes, resizedAxis{in: dim, out: dim, scale: 1, length: float64(dim), end: 1})
	}
	axes := make([]int, x.Rank())
	for i := range axes {
		axes[i] = i
	}
	if given, ok := c.Ints("axes"); ok && len(given) > 0 {
		var err error
		if axes, err = normalAxes(c, given, x.Rank()); err != nil {
			return nil, err
		}
	}
	scales, err := floatList(c, 2)
	if err != nil {
		return nil, err
	}
	sizes, err := c.IntsInput(3)
	if err != nil {
		return nil, err
	}
	switch {
	case len(scales) > 0 && len(sizes) == 0:
		err = r.scaleTo(c, axes, scales)
	case len(sizes) > 0 && len(scales) == 0:
		err = r.sizeTo(c, axes, sizes)
	case len(axes) > 0:
		err = c.Errorf("%d scales and %d sizes: exactly one of the two must be there", len(scales), len(sizes))
	}
	if err == nil {
		err = r.readRegion(c, axes)
	}
	if err == nil {
		err = r.check(c)
	}
	return r, err
}

func (r *resizing) scaleTo(c *Call, axes []int, scales []float64) error {
	if len(scales) != len(axes) {
		return c.Errorf("%d scales for %d axes", len(scales), len(axes))
	}
	for i, axis := range axes {
		var err error
		if r.axes[axis], err = scaledAxis(c, r.axes[axis].in, scales[i]); err != nil {
			return err
		}
	}
	return nil
}

// sizeTo sets the sizes, or those that keep the aspect ratio and are none of them
// larger, or none smaller.
func (r *resizing) sizeTo(c *Call, axes []int, sizes []int64) error {
	wanted, err := toInts(c, sizes)
	if err != nil {
		return err
	}
	if len(wanted) != len(axes) {
		return c.Errorf("%d sizes for %d axes", len(sizes), len(axes))
	}
	policy := c.String("keep_aspect_ratio_policy", "stretch")
	var scales []float64
	for i, axis := range axes {
		a := &r.axes[axis]
		a.out, a.length, a.scale = wanted[i], float64(wanted[i]), float64(wanted[i])/float64(max(a.in, 1))
		scales = append(scales, a.scale)
	}
	var scale float64
	switch policy {
	case "stretch":
		return nil
	case "not_larger":
		scale = slices.Min(scales)
	case "not_smaller":
		scale = slices.Max(scales)
	default:
		return c.Errorf("keep_aspect_ratio_policy %q is not known", policy)
	}
	for _, axis := range axes {
		a := &r.axes[axis]
		a.scale, a.length = scale, scale*float64(a.in)
		a.out = int(math.Floor(a.length + 0.5))
	}
	return nil
}

// readRegion reads the region of interest: starts, then ends.
func (r *resizing) readRegion(c *Call, axes []int) error {
	if r.coordinates != "tf_crop_and_resize" {
		return nil
	}
	region, err := floatList(c, 1)
	if err != nil {
		return err
	}
	if len(region) != 2*len(axes) {
		return c.Errorf("a region of %d numbers for %d axes", len(region), len(axes))
	}
	for i, axis := range axes {
		r.axes[axis].start, r.axes[axis].end = region[i], region[len(axes)+i]
	}
	return nil
}

func (r *resizing) check(c *Call) error {
	modes := []string{"nearest", "linear", "cubic"}
	coordinates := []string{
		"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize",
	}
	roundings := []string{"simple", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}
	if !slices.Contains(modes, r.mode) || !slices.Contains(coordinates, r.coordinates) || !slices.Contains(roundings, r.nearest) {
		return c.Errorf("mode %q, coordinates %q, rounding %q: one of them is not known", r.mode, r.coordinates, r.nearest)
	}
	return nil
}

func (r *resizing) shape() []int {
	shape := make([]int, len(r.axes))
	for i, a := range r.axes {
		shape[i] = a.out
	}
	return shape
}

// source maps a position of the output to one of the input. Multiplying first keeps
// places exact that lie on an element, or half-way between two.
func (a *resizedAxis) source(coordinates string, position int) float64 {
	x, last := float64(position), float64(a.in-1)
	switch coordinates {
	case "asymmetric":
		return x * float64(a.in) / a.length
	case "tf_half_pixel_for_nn":
		return (x + 0.5) * float64(a.in) / a.length
	case "align_corners":
		if a.length == 1 {
			return 0
		}
		return x * last / (a.length - 1)
	case "tf_crop_and_resize":
		if a.length == 1 {
			return 0.5 * (a.start + a.end) * last
		}
		return float64(a.start*last) + float64(x*(a.end-a.start)*last)/(a.length-1)
	case "pytorch_half_pixel":
		if a.out <= 1 {
			return 0
		}
	}
	if coordinates == "half_pixel_symmetric" {
		// The middle of the output lies on the middle of the input.
		return last/2 + (x+0.5-float64(a.out)/2)*float64(a.in)/a.length
	}
	return (x+0.5)*float64(a.in)/a.length - 0.5
}

// isBeyond says whether a position of the input is one that cropping replaces.
func (r *resizing) isBeyond(a resizedAxis, source float64) bool {
	return r.coordinates == "tf_crop_and_resize" && !(source >= 0 && source <= float64(a.in-1))
}

// same says that an axis stays as it is.
func (r *resizing) same(a resizedAxis) bool {
	return a.in == a.out && a.scale == 1 && (r.coordinates != "tf_crop_and_resize" || a.start == 0 && a.end == 1) &&
		r.coordinates != "tf_half_pixel_for_nn"
}

// nearestOf takes the nearest element, of whatever type.
func (r *resizing) nearestOf(c *Call, x *tensor.Dense) error {
	if err := c.Charge(r.indexBytes(1)); err != nil {
		return err
	}
	strides := tensor.Strides(x.Shape())
	offsets := make([][]int, len(r.axes))
	for axis, a := range r.axes {
		for o := range a.out {
			source := a.source(r.coordinates, o)
			at := int(min(max(r.round(a, source), 0), float64(a.in-1))) * strides[axis]
			if r.isBeyond(a, source) {
				at = -1
			}
			offsets[axis] = append(offsets[axis], at)
		}
	}
	with, err := c.New(x.Type(), 1)
	if err != nil {
		return err
	}
	if r.beyond != 0 && !saturated(c, with, []float64{r.beyond}) {
		return c.Unsupported("extrapolation_value %v in %s", r.beyond, x.Type())
	}
	out, err := c.New(x.Type(), r.shape()...)
	if err != nil {
		return err
	}
	c.Outputs[0] = out
	if len(r.axes) == 0 {
		copyPart(out, 0, x, 0, 1)
		return nil
	}
	wide := r.axes[len(r.axes)-1].out
	c.Parallel(out.Len()/max(wide, 1), 1+elementGrain/max(wide, 1), func(first, last int) {
		takeRows.For(x.Type())(out, x, with, offsets, first, last)
	})
	return nil
}

// indexBytes is what the positions, and weights, of all axes take.
func (r *resizing) indexBytes(each int) int64 {
	n := int64(0)
	for _, a := range r.axes {
		n += int64(a.out) * int64(each) * 16
	}
	return n
}

// round gives the nearest whole position.
func (r *resizing) round(a resizedAxis, source float64) float64 {
	switch r.nearest {
	case "floor":
		return math.Floor(source)
	case "ceil":
		return math.Ceil(source)
	case "round_prefer_ceil":
		return math.Floor(source + 0.5)
	case "simple":
		if a.scale < 1 {
			return math.Ceil(source)
		}
		return math.Floor(source)
	}
	return math.Ceil(source - 0.5)
}

var takeRows = tensor.NewMovers(takeWordRows[uint8], takeWordRows[uint16], takeWordRows[uint32],
	takeWordRows[uint64], takeWordRows[[2]uint64], takeWordRows[string])

// takeWordRows fills rows of the output: element (i, j, …) is that of the input at the
// sum of the axes' offsets, or the one element of with where one of them is negative.
func takeWordRows[T tensor.Word](out, in, with *tensor.Dense, offsets [][]int, first, last int) {
	dst, src, beyond := tensor.Words[T](out), tensor.Words[T](in), tensor.Words[T](with)[0]
	outer, along := offsets[:len(offsets)-1], offsets[len(offsets)-1]
	for row := first; row < last; row++ {
		at, rest, outside := 0, row, false
		for axis := len(outer) - 1; axis >= 0; axis-- {
			offset := outer[axis][rest%len(outer[axis])]
			rest /= len(outer[axis])
			at += offset
			outside = outside || offset < 0
		}
		line := dst[row*len(along):][:len(along)]
		for i, offset := range along {
			if outside || offset < 0 {
				line[i] = beyond
			} else {
				line[i] = src[at+offset]
			}
		}
	}
}
