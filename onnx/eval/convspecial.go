package eval

import (
	"math"

	"github.com/npuctl/npuctl/onnx/eval/internal/elementary"
	"github.com/npuctl/npuctl/onnx/eval/internal/gemm"
)

// deformConv is a convolution whose kernel elements look beside the places they
// would: by an offset of their own at every position, between pixels. Only images of
// two axes are known in practice, and here.
func deformConv[T floating](c *Call) error {
	x, err := numberInput[T](c, 0)
	if err != nil {
		return err
	}
	w, err := numberInput[T](c, 1)
	if err != nil {
		return err
	}
	if len(x.shape) != 4 {
		return c.Unsupported("DeformConv on an image with %d axes", len(x.shape)-2)
	}
	v, err := newConvolution(c, x.shape, w.shape)
	if err != nil {
		return err
	}
	out, err := newResult[T](c, 0, x.typ, v.shape()...)
	if err != nil {
		return err
	}
	d, err := newDeformation[T](c, v)
	if err != nil {
		return err
	}
	if err := fillBias(c, out.data, 3, v.batch, v.channels, product(v.out)); err != nil {
		return err
	}
	k := multiplier[T](c)
	for n := range v.batch {
		for g := range v.groups {
			kernels := w.data[g*v.features*v.depth():][:v.features*v.depth()]
			k.Run(c.Parallel, gemm.Product[T]{
				C: feature(v, out.data, n, g), Step: product(v.out),
				A: k.Left(gemm.RowMajor(kernels, v.features, v.depth())).Pack(c.Parallel),
				B: k.RightRows(v.depth(), product(v.out), func(dst []T, k, first int) {
					d.unfold(dst, image(v, x.data, n, g), n, g*v.featureIn, k, first)
				}),
			})
		}
	}
	return out.finish()
}

// deformation is the offsets and weights of a DeformConv.
type deformation[T floating] struct {
	*convolution
	groups       int // groups of input channels that share offsets
	offset, mask []T // mask is nil when all is 1
}

func newDeformation[T floating](c *Call, v *convolution) (*deformation[T], error) {
	d := &deformation[T]{convolution: v, groups: int(c.Int("offset_group", 1))}
	if d.groups < 1 || v.channelsIn%d.groups != 0 {
		return nil, c.Errorf("%d channels do not fall into %d groups of offsets", v.channelsIn, d.groups)
	}
	places := d.groups * product(v.kernel)
	var err error
	if d.offset, err = shapedInput[T](c, 2, v.batch, 2*places, v.out[0], v.out[1]); err != nil {
		return nil, err
	}
	if c.Has(4) {
		d.mask, err = shapedInput[T](c, 4, v.batch, places, v.out[0], v.out[1])
	}
	return d, err
}

// unfold writes what element k of the kernels sees from position first on.
func (d *deformation[T]) unfold(dst, planes []T, n, firstChannel, k, first int) {
	kernelSize, outSize := product(d.kernel), product(d.out)
	channel, position := k/kernelSize, k%kernelSize
	plane := planes[channel*product(d.in):][:product(d.in)]
	group := (firstChannel + channel) / (d.channelsIn / d.groups)
	place := (n*d.groups+group)*kernelSize + position
	ky, kx := position/d.kernel[1], position%d.kernel[1]
	for i := range dst {
		p := first + i
		y := T(p/d.out[1]*d.stride[0]+ky*d.dilation[0]-d.begin[0]) + d.offset[2*place*outSize+p]
		x := T(p%d.out[1]*d.stride[1]+kx*d.dilation[1]-d.begin[1]) + d.offset[(2*place+1)*outSize+p]
		dst[i] = bilinear(plane, d.in[0], d.in[1], y, x)
		if d.mask != nil {
			dst[i] *= d.mask[place*outSize+p]
		}
	}
}

// bilinear is the value of a plane between pixels; beyond the edge lie zeros.
func bilinear[T floating](plane []T, high, wide int, y, x T) T {
	if !(y > -1 && x > -1 && y < T(high) && x < T(wide)) {
		return 0
	}
	y0, x0 := int(math.Floor(float64(y))), int(math.Floor(float64(x)))
	fy, fx := y-T(y0), x-T(x0)
	at := func(y, x int) T {
		if y < 0 || y >= high || x < 0 || x >= wide {
			return 0
		}
		return plane[y*wide+x]
	}
	top := T(at(y0, x0)*(1-fx)) + T(at(y0, x0+1)*fx)
	bottom := T(at(y0+1, x0)*(1-fx)) + T(at(y0+1, x0+1)*fx)
	return T(top*(1-fy)) + T(bottom*fy)
}

// causalConv is a depthwise convolution along time that looks back only. What lies
// before the first step is the state of an earlier call, else zeros; the state to
// hand on is the last steps that the next call looks back on.
func causalConv[T floating](c *Call) error {
	v, err := newCausal[T](c)
	if err != nil {
		return err
	}
	out, err := newResult[T](c, 0, v.x.typ, v.x.shape...)
	if err != nil {
		return err
	}
	state, err := newResult[T](c, 1, v.x.typ, v.batch, v.channels, v.back)
	if err != nil {
		return err
	}
	c.Parallel(v.batch*v.channels, 1+elementGrain/max(1, v.length*v.back), func(first, last int) {
		line := make([]T, v.back+v.length)
		for p := first; p < last; p++ {
			v.run(p, out.data[p*v.length:][:v.length], state.data[p*v.back:][:v.back], line)
		}
	})
	if err := state.finish(); err != nil {
		return err
	}
	return out.finish()
}

// causal is the inputs of a CausalConvWithState.
type causal[T floating] struct {
	x, weights              array[T]
	bias, past              []T // nil when left out
	batch, channels, length int
	back                    int // steps that the kernel looks back
	activated               bool
}

func newCausal[T floating](c *Call) (*causal[T], error) {
	x, err := numberInput[T](c, 0)
	if err != nil {
		return nil, err
	}
	w, err := numberInput[T](c, 1)
	if err != nil {
		return nil, err
	}
	if len(x.shape) != 3 || len(w.shape) != 3 || w.shape[0] != x.shape[1] || w.shape[1] != 1 || w.shape[2] < 1 {
		return nil, c.Errorf("weights of shape %v do not fit an input of shape %v", w.shape, x.shape)
	}
	activation := c.String("activation", "none")
	if activation != "none" && activation != "silu" && activation != "swish" {
		return nil, c.Errorf("activation %q is not known", activation)
	}
	v := &causal[T]{
		x: x, weights: w, batch: x.shape[0], channels: x.shape[1], length: x.shape[2], back: w.shape[2] - 1,
		activated: activation != "none",
	}
	if v.bias, err = vectorInput[T](c, 2, v.channels); err != nil {
		return nil, err
	}
	if c.Has(3) {
		v.past, err = shapedInput[T](c, 3, v.batch, v.channels, v.back)
	}
	return v, err
}

// run convolves channel p, counted on over the batch; line has room for the channel
// with what lies before it.
func (v *causal[T]) run(p int, out, state, line []T) {
	clear(line[:v.back])
	if v.past != nil {
		copy(line, v.past[p*v.back:][:v.back])
	}
	copy(line[v.back:], v.x.data[p*v.length:][:v.length])
	copy(state, line[v.length:])
	channel := p % v.channels
	for k := range v.back + 1 {
		addTimes(out, line[k:], 1, v.weights.data[channel*(v.back+1)+k])
	}
	if v.bias != nil {
		addRow(out, v.bias[channel:], 0, 1)
	}
	if v.activated {
		silu(out)
	}
}

// silu is x·sigmoid(x), in place.
func silu[T floating](row []T) {
	for i, v := range row {
		row[i] = T(float64(v) * elementary.Sigmoid(float64(v)))
	}
}
