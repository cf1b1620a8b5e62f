package eval

import (
	"slices"

	"github.com/npuctl/npuctl/onnx/eval/internal/gemm"
	"github.com/npuctl/npuctl/onnx/eval/internal/simd"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// convOperators slide kernels over images.
var convOperators = []operator{
	{name: "Conv", since: 1, run: onFloats(0, conv[float32], conv[float64])},
	{name: "ConvTranspose", since: 1, run: onFloats(0, convTranspose[float32], convTranspose[float64])},
	{name: "Col2Im", since: 18, run: onNumbers(0, tensor.Numbers[Kernel]{
		Float32: col2Im[float32], Float64: col2Im[float64],
		Int32: col2Im[int32], Int64: col2Im[int64], Uint32: col2Im[uint32], Uint64: col2Im[uint64],
	})},
	{name: "DeformConv", since: 19, run: onFloats(0, deformConv[float32], deformConv[float64])},
	{name: "CausalConvWithState", since: 27, run: onFloats(0, causalConv[float32], causalConv[float64])},
}

// convolution is the geometry of a Conv: channels fall into groups, each of which
// has its own kernels.
type convolution struct {
	*window
	batch, groups         int
	channelsIn, featureIn int // in all, and of one group
	channels, features    int // of the output, in all and of one group
}

func newConvolution(c *Call, x, w []int) (*convolution, error) {
	batch, channels, size, err := spatialShape(c, x, 1)
	if err != nil {
		return nil, err
	}
	groups := int(c.Int("group", 1))
	if len(w) != len(x) || groups < 1 || channels%groups != 0 || w[0]%groups != 0 || w[1] != channels/groups {
		return nil, c.Errorf("weights of shape %v do not fit an image of shape %v in %d groups", w, x, groups)
	}
	kernel, err := kernelShape(c, w[2:])
	if err != nil {
		return nil, err
	}
	window, err := newWindow(c, size, kernel)
	if err != nil {
		return nil, err
	}
	return &convolution{
		window: window, batch: batch, groups: groups,
		channelsIn: channels, featureIn: w[1], channels: w[0], features: w[0] / groups,
	}, nil
}

// shape is that of the output.
func (v *convolution) shape() []int { return append([]int{v.batch, v.channels}, v.out...) }

// depth is the number of products that make one element.
func (v *convolution) depth() int { return v.featureIn * product(v.kernel) }

// pointwise says that the kernel is one element that visits every position once:
// the image is then the matrix to multiply by.
func (v *convolution) pointwise() bool {
	return product(v.kernel) == 1 && slices.Equal(v.in, v.out) && !slices.ContainsFunc(v.begin, func(n int) bool { return n != 0 }) &&
		!slices.ContainsFunc(v.stride, func(n int) bool { return n != 1 })
}

// image gives the planes that group g of image n is made of.
func image[T any](v *convolution, data []T, n, g int) []T {
	size := product(v.in)
	return data[(n*v.channelsIn+g*v.featureIn)*size:][:v.featureIn*size]
}

// feature gives the planes that group g of image n makes.
func feature[T any](v *convolution, data []T, n, g int) []T {
	size := product(v.out)
	return data[(n*v.channels+g*v.features)*size:][:v.features*size]
}

// columnsOf gives the matrix that the kernels of a group are multiplied by: for each
// element of a kernel (steps k0 to k1 of them), what it sees at every position.
func columnsOf[T number](v *convolution, k *gemm.Kernel[T], planes []T, k0, k1 int) *gemm.Operand[T] {
	inSize, outSize, kernelSize := product(v.in), product(v.out), product(v.kernel)
	if v.pointwise() {
		return k.Right(gemm.RowMajor(planes[k0*inSize:k1*inSize], k1-k0, inSize))
	}
	return k.RightRows(k1-k0, outSize, func(dst []T, k, first int) {
		channel, position := (k0+k)/kernelSize, (k0+k)%kernelSize
		unfold(v.window, dst, planes[channel*inSize:][:inSize], position, first)
	})
}

// conv convolves: with one input channel to a group directly, else as a product of
// matrices whose right side is unfolded while it is multiplied.
func conv[T floating](c *Call) error {
	x, err := numberInput[T](c, 0)
	if err != nil {
		return err
	}
	w, err := c.Tensor(1)
	if err != nil {
		return err
	}
	v, err := newConvolution(c, x.shape, w.Shape())
	if err != nil {
		return err
	}
	if slices.Contains(v.in, 0) {
		return c.Errorf("an image of size %v has no pixels", v.in) // so says ONNX Runtime, and shape inference relies on it
	}
	out, err := newResult[T](c, 0, x.typ, v.shape()...)
	if err != nil {
		return err
	}
	if err := fillBias(c, out.data, 2, v.batch, v.channels, product(v.out)); err != nil {
		return err
	}
	if v.featureIn == 1 {
		err = convDepthwise(c, v, out.data, x.data)
	} else {
		err = convProduct(c, v, out.data, x.data)
	}
	if err != nil {
		return err
	}
	return out.finish()
}

// fillBias starts each channel of images with its element of input i, if that is there.
func fillBias[T number](c *Call, out []T, i, batch, channels, size int) error {
	bias, err := vectorInput[T](c, i, channels)
	if err != nil || bias == nil {
		return err
	}
	c.Parallel(batch*channels, 1+elementGrain/max(1, size), func(first, last int) {
		for p := first; p < last; p++ {
			plane, b := out[p*size:][:size], bias[p%channels]
			for i := range plane {
				plane[i] = b
			}
		}
	})
	return nil
}

func convProduct[T floating](c *Call, v *convolution, out, x []T) error {
	k := multiplier[T](c)
	keep := c.keeps(1)
	weights, err := matrices(c, 1, keep, v.features*v.depth(), func(data []T) *gemm.Operand[T] {
		m := k.Left(gemm.RowMajor(data, v.features, v.depth()))
		if keep {
			return m
		}
		return m.Pack(c.Parallel)
	})
	if err != nil {
		return err
	}
	products := make([]gemm.Product[T], v.groups)
	for n := range v.batch {
		for g := range v.groups {
			products[g] = gemm.Product[T]{
				C: feature(v, out, n, g), Step: product(v.out),
				A: weights(g), B: columnsOf(v, k, image(v, x, n, g), 0, v.depth()),
			}
		}
		k.Run(c.Parallel, products...)
	}
	return nil
}

// convDepthwise convolves groups of one input channel, row by row.
func convDepthwise[T floating](c *Call, v *convolution, out, x []T) error {
	weights, err := numberInput[T](c, 1)
	if err != nil {
		return err
	}
	outSize, inSize, kernelSize := product(v.out), product(v.in), product(v.kernel)
	grain := 1 + elementGrain/max(1, outSize*kernelSize)
	c.Parallel(v.batch*v.channels, grain, func(first, last int) {
		var buffer []place
		for p := first; p < last; p++ {
			n, m := p/v.channels, p%v.channels
			source := x[(n*v.channelsIn+m/v.features)*inSize:][:inSize]
			kernel := weights.data[m*kernelSize:][:kernelSize]
			buffer = convPlane(v.window, out[p*outSize:][:outSize], source, kernel, buffer)
		}
	})
	return nil
}

// convPlane adds the convolution of one plane by one kernel to a plane of the output.
func convPlane[T floating](w *window, out, in, kernel []T, buffer []place) []place {
	last := len(w.in) - 1
	wide := w.out[last]
	if wide == 0 {
		return buffer
	}
	k0, k1 := w.kernelReach(last)
	for outRow := range len(out) / wide {
		row := out[outRow*wide:][:wide]
		buffer = w.places(buffer, outRow)
		for _, p := range buffer {
			source := in[p.inRow*w.in[last]:][:w.in[last]]
			for k := k0; k < k1; k++ {
				from, to := w.valid(last, k)
				if from < to {
					start := from*w.stride[last] + k*w.dilation[last] - w.begin[last]
					addTimes(row[from:to], source[start:], w.stride[last], kernel[p.kernelRow*w.kernel[last]+k])
				}
			}
		}
	}
	return buffer
}

// addTimes adds factor times every step-th element of src to dst.
func addTimes[T floating](dst, src []T, step int, factor T) {
	if step != 1 {
		at := 0
		for i := range dst {
			dst[i] += T(src[at] * factor)
			at += step
		}
		return
	}
	src = src[:len(dst)]
	if single, ok := any(dst).([]float32); ok {
		simd.AddScaled(single, any(src).([]float32), float32(factor))
		return
	}
	for i, v := range src {
		dst[i] += T(v * factor)
	}
}
