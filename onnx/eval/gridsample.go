package eval

import (
	"math"
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// gridOperators sample images at places that a tensor names.
var gridOperators = []operator{
	{name: "GridSample", since: 16, run: gridSample},
	{name: "AffineGrid", since: 20, run: onFloats(0, affineGrid[float32], affineGrid[float64])},
}

func gridSample(c *Call) error {
	x, err := c.Tensor(0)
	if err != nil {
		return err
	}
	switch {
	case x.Type() == tensor.Float64 || x.Type().IsInteger():
		return sampleGrid[float64](c)
	case x.Type().IsFloat():
		return sampleGrid[float32](c)
	}
	return c.Unsupported("GridSample of %s", x.Type())
}

// sampler is what a GridSample does at every place of its grid.
type sampler[T floating] struct {
	batch, channels int
	in, out         []int // sizes of the image and of the grid
	planes          []T
	grid            []float64
	mode            string // nearest, linear or cubic
	padding         string // zeros, border or reflection
	aligned         bool
	strides         []int // of the image
}

func newSampler[T floating](c *Call, x *tensor.Dense) (*sampler[T], error) {
	batch, channels, in, err := spatialShape(c, x.Shape(), 1)
	if err != nil {
		return nil, err
	}
	grid, err := floatList(c, 1)
	if err != nil {
		return nil, err
	}
	g, err := c.Tensor(1)
	if err != nil {
		return nil, err
	}
	rank, shape := len(in), g.Shape()
	if len(shape) != rank+2 || shape[0] != batch || shape[rank+1] != rank || slices.Contains(in, 0) && g.Len() > 0 {
		return nil, c.Errorf("a grid of shape %v for an image of shape %v", shape, x.Shape())
	}
	s := &sampler[T]{
		batch: batch, channels: channels, in: in, out: shape[1 : rank+1], grid: grid, strides: tensor.Strides(in),
		padding: c.String("padding_mode", "zeros"), aligned: c.Int("align_corners", 0) != 0,
	}
	mode := c.String("mode", "linear")
	s.mode = map[string]string{"nearest": "nearest", "linear": "linear", "bilinear": "linear", "cubic": "cubic", "bicubic": "cubic"}[mode]
	if s.mode == "" || !slices.Contains([]string{"zeros", "border", "reflection"}, s.padding) {
		return nil, c.Errorf("mode %q or padding_mode %q is not known", mode, s.padding)
	}
	s.planes, err = interpolationInput[T](c, x)
	return s, err
}

// sampleGrid looks up every place of the grid in all channels of an image. Results of
// integer type are cut off, as casting does.
func sampleGrid[T floating](c *Call) error {
	x, err := c.Tensor(0)
	if err != nil {
		return err
	}
	s, err := newSampler[T](c, x)
	if err != nil {
		return err
	}
	out, err := c.New(x.Type(), append([]int{s.batch, s.channels}, s.out...)...)
	if err != nil {
		return err
	}
	result, err := scratch[T](c, out.Len())
	if err != nil {
		return err
	}
	c.Parallel(s.batch*product(s.out), 1+elementGrain/max(1, 16*s.channels), func(first, last int) { s.run(result, first, last) })
	if out.Type().IsInteger() {
		for i, v := range result {
			result[i] = T(math.Trunc(float64(v)))
		}
	}
	c.Outputs[0] = out
	if !saturated(c, out, result) {
		return c.Unsupported("results of type %s", x.Type())
	}
	return nil
}

// run looks up the places first to last, counted on over the batch.
func (s *sampler[T]) run(result []T, first, last int) {
	places, size, rank := product(s.out), product(s.in), len(s.in)
	look := &look[T]{sampler: s, taps: make([][]tap, rank)}
	for p := first; p < last; p++ {
		look.at(s.grid[p*rank:][:rank])
		for channel := range s.channels {
			plane := p/places*s.channels + channel
			result[plane*places+p%places] = look.sum(s.planes[plane*size:][:size])
		}
	}
}

// look is one place: the elements around it with their weights.
type look[T floating] struct {
	*sampler[T]
	taps    [][]tap // by axis
	offsets []int
	weights []T
}

// tap is an element along an axis; index -1 is a zero beyond the edge.
type tap struct {
	index  int
	weight float64
}

// at finds the elements around a place, which is given for the last axis first.
func (l *look[T]) at(place []float64) {
	l.offsets, l.weights = append(l.offsets[:0], 0), append(l.weights[:0], 1)
	for axis := range l.in {
		l.findTaps(axis, place[len(place)-1-axis])
		count := len(l.offsets)
		for i := range count {
			for _, t := range l.taps[axis] {
				if t.index >= 0 && t.weight != 0 {
					l.offsets = append(l.offsets, l.offsets[i]+t.index*l.strides[axis])
					l.weights = append(l.weights, l.weights[i]*T(t.weight))
				}
			}
		}
		l.offsets = append(l.offsets[:0], l.offsets[count:]...)
		l.weights = append(l.weights[:0], l.weights[count:]...)
	}
}

func (l *look[T]) sum(plane []T) T {
	var sum T
	for i, offset := range l.offsets {
		sum += T(plane[offset] * l.weights[i])
	}
	return sum
}

// findTaps fills the taps of an axis for a place between -1 and 1. A place that is no
// number, or far from the image, counts as one beyond the edge. In mode cubic with
// border padding the elements are brought to the border, the place itself is not: so
// do PyTorch and ONNX Runtime; the reference implementation moves the place as well.
func (l *look[T]) findTaps(axis int, place float64) {
	n := float64(l.in[axis])
	low, high := -0.5, n-0.5
	x := ((place+1)*n - 1) / 2
	if l.aligned {
		low, high = 0, n-1
		x = (place + 1) / 2 * (n - 1)
	}
	if l.mode == "nearest" {
		x = math.RoundToEven(x)
	}
	switch {
	case x >= low && x <= high:
	case l.padding == "border" && l.mode != "cubic":
		x = min(max(x, 0), n-1)
	case l.padding == "reflection":
		x = reflected(x, low, high)
	}
	taps := l.taps[axis][:0]
	if math.Abs(x) < 1<<52 {
		first, width := math.Floor(x), 1
		switch l.mode {
		case "linear":
			width = 2
		case "cubic":
			first, width = first-1, 4
		}
		for k := range width {
			element := first + float64(k)
			taps = append(taps, tap{l.element(element, n, low, high), l.weight(math.Abs(x - element))})
		}
	}
	l.taps[axis] = taps
}

func (l *look[T]) weight(distance float64) float64 {
	switch l.mode {
	case "nearest":
		return 1
	case "linear":
		return 1 - distance
	}
	return cubicWeight(distance, -0.75)
}

// element brings a position to one of the n elements of an axis, -1 for none.
func (l *look[T]) element(at, n, low, high float64) int {
	if at >= 0 && at < n {
		return int(at)
	}
	switch l.padding {
	case "border":
		return int(min(max(at, 0), n-1))
	case "reflection":
		return int(min(max(reflected(at, low, high), 0), n-1))
	}
	return -1
}

// reflected mirrors a position at the borders until it lies between them.
func reflected(x, low, high float64) float64 {
	span := high - low
	if span <= 0 {
		return low
	}
	distance := math.Mod(math.Abs(x-low), 2*span)
	if distance > span {
		distance = 2*span - distance
	}
	return low + distance
}

// affineGrid applies affine maps to the centres of an image's pixels, or to positions
// from corner to corner. A corner-aligned axis of one pixel has no spacing: the
// specification leaves open where the pixel is, and it is at -1 here.
func affineGrid[T floating](c *Call) error {
	theta, err := numberInput[T](c, 0)
	if err != nil {
		return err
	}
	given, err := c.IntsInput(1)
	if err != nil {
		return err
	}
	size, err := toInts(c, given)
	if err != nil {
		return err
	}
	rank := len(size) - 2
	if rank != 2 && rank != 3 || !slices.Equal(theta.shape, []int{size[0], rank, rank + 1}) {
		return c.Errorf("maps of shape %v for an image of shape %v", theta.shape, size)
	}
	out, err := newResult[T](c, 0, theta.typ, append(append([]int{size[0]}, size[2:]...), rank)...)
	if err != nil {
		return err
	}
	aligned := c.Int("align_corners", 0) != 0
	if aligned && slices.Contains(size[2:], 1) {
		if err := c.Undefined("a corner-aligned axis of one pixel"); err != nil {
			return err
		}
	}
	places := product(size[2:])
	c.Parallel(size[0]*places, elementGrain/4, func(first, last int) {
		position := make([]float64, rank)
		for p := first; p < last; p++ {
			rest := p % places
			for axis := rank - 1; axis >= 0; axis-- {
				n := size[2+axis]
				position[rank-1-axis] = pixelCentre(rest%n, n, aligned)
				rest /= n
			}
			for row := range rank {
				m := theta.data[(p/places*rank+row)*(rank+1):][:rank+1]
				sum := float64(m[rank])
				for k, v := range position {
					sum += float64(float64(m[k]) * v)
				}
				out.data[p*rank+row] = T(sum)
			}
		}
	})
	return out.finish()
}

// pixelCentre is where pixel i of n lies between -1 and 1.
func pixelCentre(i, n int, aligned bool) float64 {
	switch {
	case !aligned:
		return (2*float64(i)+1)/float64(n) - 1
	case n == 1:
		return -1
	}
	return 2*float64(i)/float64(n-1) - 1
}
