package eval

import (
	"math"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// taps says of every position along an axis which elements it is made of: n each, with
// weights that add up to 1.
type taps[T floating] struct {
	n       int
	indices []int
	weights []T
	beyond  []bool // the position is to be replaced
}

// interpolate resizes one axis after the other. Integers are rounded at the end, half
// to even, and brought into the range of their type.
func interpolate[T floating](c *Call, r *resizing) error {
	x, err := c.Tensor(0)
	if err != nil {
		return err
	}
	data, err := interpolationInput[T](c, x)
	if err != nil {
		return err
	}
	all := make([]*taps[T], len(r.axes))
	shape := append([]int(nil), x.Shape()...)
	for axis, a := range r.axes {
		if r.same(a) {
			continue
		}
		if all[axis], err = newTaps[T](c, r, a); err != nil {
			return err
		}
		from := append([]int(nil), shape...)
		shape[axis] = a.out
		resized, err := scratch[T](c, shape...)
		if err != nil {
			return err
		}
		all[axis].apply(c, resized, data, from, axis)
		data = resized
	}
	replaceBeyond(data, all, shape, T(r.beyond))
	out, err := c.New(x.Type(), shape...)
	if err != nil {
		return err
	}
	c.Outputs[0] = out
	if !saturated(c, out, data) {
		return c.Unsupported("results of type %s", x.Type())
	}
	return nil
}

// interpolationInput gives the elements in float32 or, for integers, float64.
func interpolationInput[T floating](c *Call, x *tensor.Dense) ([]T, error) {
	if x.Type() != tensor.TypeOf[T]() {
		if err := c.Charge(int64(x.Len()) * 8); err != nil {
			return nil, err
		}
	}
	if data, ok := widened[T](x); ok {
		return data, nil
	}
	return nil, c.Unsupported("interpolation of %s", x.Type())
}

// newTaps works out the elements and weights of an axis.
func newTaps[T floating](c *Call, r *resizing, a resizedAxis) (*taps[T], error) {
	reach, squeeze := 1.0, 1.0
	if r.mode == "cubic" {
		reach = 2
	}
	if r.antialias {
		squeeze = min(a.scale, 1)
	}
	// The elements are those closer than reach, when the kernel is stretched.
	before := -math.Floor(-reach/squeeze) - 1
	if !(before < 1<<40) {
		return nil, c.Errorf("an axis of size %d cannot be scaled by %v", a.in, a.scale)
	}
	n := 2 * (int(before) + 1)
	if err := c.Charge(int64(a.out) * int64(n) * 16); err != nil {
		return nil, err
	}
	t := &taps[T]{n: n, indices: make([]int, a.out*n), weights: make([]T, a.out*n), beyond: make([]bool, a.out)}
	weights := make([]float64, n)
	for o := range a.out {
		source := a.source(r.coordinates, o)
		if !(math.Abs(source) < 1<<52) {
			return nil, c.Errorf("position %v cannot be interpolated", source)
		}
		first := int(math.Ceil(source)) - 1 - int(before)
		sum := r.weigh(weights, a, first, source, squeeze)
		for i, w := range weights {
			t.indices[o*n+i] = min(max(first+i, 0), a.in-1)
			t.weights[o*n+i] = T(w / sum)
		}
		t.beyond[o] = r.isBeyond(a, source)
	}
	return t, nil
}

// weigh fills the weights of the elements from first on around a position, and gives
// what to divide them by.
func (r *resizing) weigh(weights []float64, a resizedAxis, first int, source, squeeze float64) float64 {
	sum := 0.0
	for i := range weights {
		at := first + i
		weights[i] = r.weight((float64(at) - source) * squeeze)
		if r.exclude && (at < 0 || at >= a.in) {
			weights[i] = 0
		}
		sum += weights[i]
	}
	if sum == 0 || !r.exclude && !r.antialias {
		return 1
	}
	return sum
}

// weight is the kernel at a distance: a triangle, or the cubic of R. Keys ("Cubic
// convolution interpolation for digital image processing", 1981).
func (r *resizing) weight(distance float64) float64 {
	x := math.Abs(distance)
	if r.mode == "linear" {
		return max(0, 1-x)
	}
	return cubicWeight(x, r.cubic)
}

// cubicWeight is the cubic convolution kernel with parameter a, at distance x ≥ 0.
func cubicWeight(x, a float64) float64 {
	switch {
	case x <= 1:
		return float64((float64((a+2)*x)-(a+3))*x*x) + 1
	case x < 2:
		return float64((float64((float64(a*x)-5*a)*x)+8*a)*x) - 4*a
	}
	return 0
}

// apply resizes an axis of an array of shape from.
func (t *taps[T]) apply(c *Call, out, in []T, from []int, axis int) {
	inSize, inner := from[axis], product(from[axis+1:])
	outSize := len(t.beyond)
	c.Parallel(product(from[:axis])*outSize, 1+elementGrain/max(1, inner*t.n), func(first, last int) {
		for i := first; i < last; i++ {
			outer, o := i/outSize, i%outSize
			row := out[i*inner:][:inner]
			indices, weights := t.indices[o*t.n:][:t.n], t.weights[o*t.n:][:t.n]
			if inner == 1 {
				line := in[outer*inSize:][:inSize]
				var sum T
				for k, index := range indices {
					sum += T(line[index] * weights[k])
				}
				row[0] = sum
				continue
			}
			for k, index := range indices {
				addTimes(row, in[(outer*inSize+index)*inner:][:inner], 1, weights[k])
			}
		}
	})
}

// replaceBeyond sets the elements whose position along any axis is to be replaced.
func replaceBeyond[T floating](data []T, all []*taps[T], shape []int, with T) {
	for axis, t := range all {
		if t == nil {
			continue
		}
		inner := product(shape[axis+1:])
		for i := range product(shape[:axis+1]) {
			if t.beyond[i%shape[axis]] {
				row := data[i*inner:][:inner]
				for k := range row {
					row[k] = with
				}
			}
		}
	}
}

// saturated fills dst from floats: integers are rounded half to even and brought into
// range, NaN as 0. It says whether dst has a type it knows.
func saturated[T floating](c *Call, dst *tensor.Dense, src []T) bool {
	switch dst.Type() {
	case tensor.Int8:
		saturateTo(c, tensor.Data[int8](dst), src, math.MinInt8, math.MaxInt8)
	case tensor.Uint8:
		saturateTo(c, tensor.Data[uint8](dst), src, 0, math.MaxUint8)
	case tensor.Int16:
		saturateTo(c, tensor.Data[int16](dst), src, math.MinInt16, math.MaxInt16)
	case tensor.Uint16:
		saturateTo(c, tensor.Data[uint16](dst), src, 0, math.MaxUint16)
	case tensor.Int32:
		saturateTo(c, tensor.Data[int32](dst), src, math.MinInt32, math.MaxInt32)
	case tensor.Uint32:
		saturateTo(c, tensor.Data[uint32](dst), src, 0, math.MaxUint32)
	case tensor.Int64:
		saturateTo(c, tensor.Data[int64](dst), src, math.MinInt64, math.MaxInt64)
	case tensor.Uint64:
		saturateTo(c, tensor.Data[uint64](dst), src, 0, math.MaxUint64)
	default:
		return narrow(c, dst, src)
	}
	return true
}

func saturateTo[To tensor.Number, From floating](c *Call, dst []To, src []From, lowest, highest To) {
	convertTo(c, dst, src, func(v From) To {
		switch rounded := math.RoundToEven(float64(v)); {
		case rounded != rounded:
			return 0
		case rounded <= float64(lowest):
			return lowest
		case rounded >= float64(highest):
			return highest
		default:
			return To(rounded)
		}
	})
}
