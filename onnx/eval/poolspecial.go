package eval

import (
	"math"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// roiOperators pool regions of interest, undo a pooling, and normalise across channels.
var roiOperators = []operator{
	{name: "MaxUnpool", since: 9, run: onFloats(0, maxUnpool[float32], maxUnpool[float64])},
	{name: "MaxRoiPool", since: 1, run: onFloats(0, maxRoiPool[float32], maxRoiPool[float64])},
	{name: "RoiAlign", since: 10, run: onFloats(0, roiAlign[float32], roiAlign[float64])},
	{name: "LRN", since: 1, run: onFloats(0, localResponse[float32], localResponse[float64])},
}

// maxUnpool puts elements where a MaxPool took them from. Positions count in the
// image that follows from the window alone; a larger output_shape puts zeros after it.
func maxUnpool[T floating](c *Call) error {
	x, err := numberInput[T](c, 0)
	if err != nil {
		return err
	}
	inner, outer, err := unpooledShapes(c, x.shape)
	if err != nil {
		return err
	}
	indices, err := c.IntsInput(1)
	if err != nil {
		return err
	}
	if len(indices) != len(x.data) {
		return c.Errorf("%d positions for %d elements", len(indices), len(x.data))
	}
	out, err := newResult[T](c, 0, x.typ, outer...)
	if err != nil {
		return err
	}
	count, strides := int64(product(inner)), tensor.Strides(outer)
	for i, index := range indices {
		if index < 0 || index >= count {
			return c.Errorf("position %d is outside %v", index, inner)
		}
		at, rest := 0, int(index)
		for axis := len(inner) - 1; axis >= 0; axis-- {
			at += rest % inner[axis] * strides[axis]
			rest /= inner[axis]
		}
		out.data[at] = x.data[i]
	}
	return out.finish()
}

// unpooledShapes gives the shape that positions count in, and that of the output.
func unpooledShapes(c *Call, shape []int) (inner, outer []int, err error) {
	batch, channels, size, err := spatialShape(c, shape, 1)
	if err != nil {
		return nil, nil, err
	}
	kernel, err := kernelShape(c, nil)
	if err != nil {
		return nil, nil, err
	}
	w, err := transposeWindow(c, size, kernel)
	if err != nil {
		return nil, nil, err
	}
	inner = append([]int{batch, channels}, w.in...)
	if !c.Has(2) {
		return inner, inner, nil
	}
	wanted, err := c.IntsInput(2)
	if err != nil {
		return nil, nil, err
	}
	if outer, err = toInts(c, wanted); err != nil {
		return nil, nil, err
	}
	for i := range inner {
		if len(outer) != len(inner) || outer[i] < inner[i] {
			return nil, nil, c.Errorf("output_shape %v is less than %v", outer, inner)
		}
	}
	return inner, outer, nil
}

// roiImage is the image that regions are cut from.
type roiImage[T floating] struct {
	array[T]
	channels, high, wide int
}

// newRoiImage checks the image, and the regions' shape.
func newRoiImage[T floating](c *Call, perRegion int) (img roiImage[T], regions []T, err error) {
	x, err := numberInput[T](c, 0)
	if err != nil {
		return img, nil, err
	}
	r, err := numberInput[T](c, 1)
	if err != nil {
		return img, nil, err
	}
	if len(x.shape) != 4 || len(r.shape) != 2 || r.shape[1] != perRegion || len(x.data) == 0 {
		return img, nil, c.Errorf("regions of shape %v on an image of shape %v", r.shape, x.shape)
	}
	return roiImage[T]{x, x.shape[1], x.shape[2], x.shape[3]}, r.data, nil
}

// plane gives one channel of an image of the batch.
func (r *roiImage[T]) plane(batch, channel int) []T {
	size := r.high * r.wide
	return r.data[(batch*r.channels+channel)*size:][:size]
}

// maxRoiPool divides each region, brought to whole pixels, into a grid of cells, and
// gives the largest pixel of each; 0 for a cell without pixels.
func maxRoiPool[T floating](c *Call) error {
	img, regions, err := newRoiImage[T](c, 5)
	if err != nil {
		return err
	}
	shape, _ := c.Ints("pooled_shape")
	if len(shape) != 2 || min(shape[0], shape[1]) < 1 || max(shape[0], shape[1]) > maxExtent {
		return c.Errorf("pooled_shape %v is not possible", shape)
	}
	high, wide := int(shape[0]), int(shape[1])
	n := len(regions) / 5
	for i := range n {
		if b := float64(regions[i*5]); !(b >= 0 && b < float64(img.shape[0])) {
			return c.Errorf("region %d is on image %v of %d", i, b, img.shape[0])
		}
	}
	out, err := newResult[T](c, 0, img.typ, n, img.channels, high, wide)
	if err != nil {
		return err
	}
	scale := float64(c.Float("spatial_scale", 1))
	c.Parallel(n*img.channels, 1+elementGrain/max(1, img.high*img.wide), func(first, last int) {
		for p := first; p < last; p++ {
			roi := regions[p/img.channels*5:][:5]
			plane := img.plane(int(roi[0]), p%img.channels)
			rows := roiCells(float64(roi[2])*scale, float64(roi[4])*scale, high, img.high)
			columns := roiCells(float64(roi[1])*scale, float64(roi[3])*scale, wide, img.wide)
			for i, row := range rows {
				for j, column := range columns {
					out.data[(p*high+i)*wide+j] = largest(plane, img.wide, row, column)
				}
			}
		}
	})
	return out.finish()
}

// roiCells divides the pixels from start to end, both included, into cells, and
// cuts these to the image.
func roiCells(start, end float64, cells, size int) [][2]int {
	first := math.Floor(start + 0.5)
	extent := math.Max(math.Floor(end+0.5)-first+1, 1)
	step := extent / float64(cells)
	clamp := func(v float64) int { return int(math.Min(math.Max(v, 0), float64(size))) }
	out := make([][2]int, cells)
	for i := range out {
		out[i] = [2]int{clamp(math.Floor(float64(float64(i)*step)) + first), clamp(math.Ceil(float64(float64(i+1)*step)) + first)}
	}
	return out
}

func largest[T floating](plane []T, wide int, rows, columns [2]int) T {
	if rows[0] >= rows[1] || columns[0] >= columns[1] {
		return 0
	}
	best := plane[rows[0]*wide+columns[0]]
	for y := rows[0]; y < rows[1]; y++ {
		for _, v := range plane[y*wide+columns[0] : y*wide+columns[1]] {
			if v > best {
				best = v
			}
		}
	}
	return best
}

// maxSampling bounds the points that RoiAlign looks at along one side of a cell: a
// region of a sane image needs far fewer.
const maxSampling = 1 << 12

// roiAlign averages, or takes the largest, of points between pixels, spread evenly
// over each cell of a region. In mode max the four weighted pixels around a point
// compete one by one, as in the reference implementation.
func roiAlign[T floating](c *Call) error {
	img, regions, err := newRoiImage[T](c, 4)
	if err != nil {
		return err
	}
	batch, err := c.IntsInput(2)
	if err != nil {
		return err
	}
	if len(batch)*4 != len(regions) {
		return c.Errorf("%d batch indices for %d regions", len(batch), len(regions)/4)
	}
	for i, b := range batch {
		if b < 0 || b >= int64(img.shape[0]) {
			return c.Errorf("region %d is on image %d of %d", i, b, img.shape[0])
		}
	}
	a, err := newAlignment(c)
	if err != nil {
		return err
	}
	out, err := newResult[T](c, 0, img.typ, len(batch), img.channels, a.high, a.wide)
	if err != nil {
		return err
	}
	size := a.high * a.wide
	if err := c.Charge(alignBytes(a, regions)); err != nil {
		return err
	}
	for r, b := range batch {
		roi := regions[r*4:][:4]
		rows := a.cells(float64(roi[1]), float64(roi[3]), a.high, img.high)
		columns := a.cells(float64(roi[0]), float64(roi[2]), a.wide, img.wide)
		c.Parallel(img.channels, 1+elementGrain/(16*size), func(first, last int) {
			for channel := first; channel < last; channel++ {
				plane := img.plane(int(b), channel)
				cells := out.data[(r*img.channels+channel)*size:][:size]
				for i := range cells {
					cells[i] = T(pointsOf(plane, img.wide, rows[i/a.wide], columns[i%a.wide], a.largest))
				}
			}
		})
	}
	return out.finish()
}

// alignment is the attributes of a RoiAlign.
type alignment struct {
	high, wide    int
	sampling      int
	scale, offset float64
	aligned       bool // pixels' centres lie at halves
	largest       bool
}

func newAlignment(c *Call) (*alignment, error) {
	high, wide, sampling := c.Int("output_height", 1), c.Int("output_width", 1), c.Int("sampling_ratio", 0)
	if min(high, wide) < 1 || max(high, wide) > maxExtent || sampling < 0 || sampling > maxSampling {
		return nil, c.Errorf("output %dx%d with sampling ratio %d is not possible", high, wide, sampling)
	}
	mode := c.String("mode", "avg")
	if mode != "avg" && mode != "max" {
		return nil, c.Errorf("mode %q is not known", mode)
	}
	a := &alignment{
		high: int(high), wide: int(wide), sampling: int(sampling),
		scale: float64(c.Float("spatial_scale", 1)), largest: mode == "max",
	}
	a.aligned = c.Opset >= 16 && c.String("coordinate_transformation_mode", "half_pixel") == "half_pixel"
	if a.aligned {
		a.offset = 0.5
	}
	return a, nil
}

// cell is the points along one side of a cell: those that lie on the image, and how
// many there are in all.
type cell struct {
	points []point
	count  int
}

// point is a place between two pixels.
type point struct {
	low, high int
	part      float64 // how far it is from low to high
}

// alignBytes bounds the memory that the cells and points of any one region take.
func alignBytes[T floating](a *alignment, regions []T) int64 {
	most := int64(0)
	for ; len(regions) >= 4; regions = regions[4:] {
		_, _, rows := a.divide(float64(regions[1]), float64(regions[3]), a.high)
		_, _, columns := a.divide(float64(regions[0]), float64(regions[2]), a.wide)
		most = max(most, int64(a.high)*int64(40+24*rows)+int64(a.wide)*int64(40+24*columns))
	}
	return most
}

// divide cuts one side of a region into cells: where the first starts, how long each
// is, and how many points it has.
func (a *alignment) divide(start, end float64, cells int) (first, step float64, count int) {
	first = float64(start*a.scale) - a.offset
	extent := float64(end*a.scale) - a.offset - first
	if !a.aligned {
		extent = math.Max(extent, 1)
	}
	step = extent / float64(cells)
	count = a.sampling
	if points := math.Ceil(step); count == 0 && points > 0 {
		count = int(math.Min(points, maxSampling))
	}
	return first, step, count
}

// cells spreads points over the cells along one side of a region.
func (a *alignment) cells(start, end float64, cells, size int) []cell {
	first, step, count := a.divide(start, end, cells)
	out := make([]cell, cells)
	for i := range out {
		out[i].count = count
		for k := range count {
			at := first + float64(float64(i)*step) + float64((float64(k)+0.5)*step)/float64(count)
			if at >= -1 && at <= float64(size) {
				out[i].points = append(out[i].points, pointAt(at, size))
			}
		}
	}
	return out
}

func pointAt(at float64, size int) point {
	at = math.Max(at, 0)
	low := int(at)
	if low >= size-1 {
		return point{size - 1, size - 1, 0}
	}
	return point{low, low + 1, at - float64(low)}
}

// pointsOf gives the average of the points of a cell, those off the image being 0, or
// the largest.
func pointsOf[T floating](plane []T, wide int, rows, columns cell, largest bool) float64 {
	sum, best := 0.0, math.Inf(-1)
	for _, y := range rows.points {
		for _, x := range columns.points {
			at := func(row, column int) float64 { return float64(plane[row*wide+column]) }
			v := [4]float64{
				(1 - y.part) * (1 - x.part) * at(y.low, x.low), (1 - y.part) * x.part * at(y.low, x.high),
				y.part * (1 - x.part) * at(y.high, x.low), y.part * x.part * at(y.high, x.high),
			}
			sum += (v[0] + v[1]) + (v[2] + v[3])
			best = max(best, v[0], v[1], v[2], v[3])
		}
	}
	points := rows.count * columns.count
	switch {
	case !largest:
		return sum / float64(max(points, 1))
	case len(rows.points)*len(columns.points) < points:
		return max(best, 0)
	case points == 0:
		return 0
	}
	return best
}

// localResponse divides by a power of the sum of squares over neighbouring channels.
func localResponse[T floating](c *Call) error {
	x, err := numberInput[T](c, 0)
	if err != nil {
		return err
	}
	batch, channels, dims, err := spatialShape(c, x.shape, 0)
	if err != nil {
		return err
	}
	reach := c.Int("size", 0)
	if reach < 1 || reach > maxExtent {
		return c.Errorf("size %d is not possible", reach)
	}
	out, err := newResult[T](c, 0, x.typ, x.shape...)
	if err != nil {
		return err
	}
	alpha, beta := float64(c.Float("alpha", 1e-4)), float64(c.Float("beta", 0.75))
	bias, before, after := float64(c.Float("bias", 1)), int(reach-1)/2, int(reach)/2
	size := product(dims)
	c.Parallel(batch*channels, 1+elementGrain/max(1, size), func(first, last int) {
		squares := make([]float64, size)
		for p := first; p < last; p++ {
			clear(squares)
			channel := p % channels
			for k := max(0, channel-before); k <= min(channels-1, channel+after); k++ {
				for i, v := range x.data[(p-channel+k)*size:][:size] {
					squares[i] += float64(float64(v) * float64(v))
				}
			}
			for i, v := range x.data[p*size:][:size] {
				out.data[p*size+i] = T(float64(v) / realPower(bias+float64(alpha*squares[i])/float64(reach), beta))
			}
		}
	})
	return out.finish()
}
