package eval

import (
	"github.com/npuctl/npuctl/onnx/eval/internal/gemm"
)

// transposeWindow works out a ConvTranspose over an image of size in. The window is
// that of the convolution it turns around: its input is our output.
//
// An explicit output_shape decides the padding, which is shared out as auto_pad
// says; where the output is larger than all that the image reaches, the padding is 0
// and the rest of the output, at the end, holds the bias alone.
//
// An odd one goes to the end with SAME_UPPER and to the beginning with SAME_LOWER, and
// with an output_shape to the beginning with any other mode. That is what the equations
// of opset 11 say. Those of opset 1 say the reverse, and contradict their own text on
// auto_pad; ONNX Runtime follows the later ones in every opset, and so do we. An output
// is as large as the image times the stride with both, whatever output_padding says.
func transposeWindow(c *Call, in, kernel []int) (*window, error) {
	w := &window{in: make([]int, len(in)), out: in, kernel: kernel}
	if err := w.read(c, in); err != nil {
		return nil, err
	}
	extra, err := spatialInts(c, "output_padding", len(in), 0, 0)
	if err != nil {
		return nil, err
	}
	wanted, err := wantedOutput(c, len(in))
	if err != nil {
		return nil, err
	}
	mode := c.String("auto_pad", "NOTSET")
	for i := range in {
		natural := w.stride[i]*(in[i]-1) + extra[i] + w.extent(i)
		switch {
		case wanted != nil:
			w.in[i] = wanted[i]
		case mode == "SAME_UPPER" || mode == "SAME_LOWER":
			w.in[i] = in[i] * w.stride[i]
		default:
			w.in[i] = natural - w.begin[i] - w.end[i]
		}
		if wanted != nil || mode == "SAME_UPPER" || mode == "SAME_LOWER" {
			w.split(i, max(0, natural-w.in[i]), mode == "SAME_UPPER")
		}
		if w.in[i] < 0 {
			return nil, c.Errorf("axis %d of the output would have size %d", i, w.in[i])
		}
	}
	return w, nil
}

// wantedOutput gives the attribute output_shape, whose last rank entries are the
// spatial ones; nil when it is left out.
func wantedOutput(c *Call, rank int) ([]int, error) {
	values, _ := c.Ints("output_shape")
	if len(values) == 0 {
		return nil, nil
	}
	if len(values) != rank && len(values) != rank+2 {
		return nil, c.Errorf("output_shape %v does not have %d entries", values, rank)
	}
	return toInts(c, values[len(values)-rank:])
}

// convTranspose multiplies first, which gives what every position of the image adds
// to each position of the output it reaches, and then adds all that up.
func convTranspose[T floating](c *Call) error {
	x, err := numberInput[T](c, 0)
	if err != nil {
		return err
	}
	weights, err := c.Tensor(1)
	if err != nil {
		return err
	}
	batch, channels, size, err := spatialShape(c, x.shape, 1)
	if err != nil {
		return err
	}
	shape, groups := weights.Shape(), int(c.Int("group", 1))
	if len(shape) != len(x.shape) || groups < 1 || channels%groups != 0 || shape[0] != channels {
		return c.Errorf("weights of shape %v do not fit an image of shape %v in %d groups", shape, x.shape, groups)
	}
	kernel, err := kernelShape(c, shape[2:])
	if err != nil {
		return err
	}
	w, err := transposeWindow(c, size, kernel)
	if err != nil {
		return err
	}
	t := &transposed[T]{window: w, batch: batch, groups: groups, channels: channels / groups, features: shape[1]}
	out, err := newResult[T](c, 0, x.typ, append([]int{batch, groups * t.features}, w.in...)...)
	if err != nil {
		return err
	}
	if err := fillBias(c, out.data, 2, batch, groups*t.features, product(w.in)); err != nil {
		return err
	}
	if err := t.run(c, out.data, x.data); err != nil {
		return err
	}
	return out.finish()
}

// transposed is the geometry of a ConvTranspose; channels and features are those of
// a group.
type transposed[T floating] struct {
	*window
	batch, groups, channels, features int
}

func (t *transposed[T]) run(c *Call, out, x []T) error {
	k := multiplier[T](c)
	kernelSize, inSize, outSize := product(t.kernel), product(t.out), product(t.in)
	high := t.features * kernelSize
	keep := c.keeps(1)
	weights, err := matrices(c, 1, keep, t.channels*high, func(data []T) *gemm.Operand[T] {
		return k.Left(gemm.RowMajor(data, t.channels, high).Transposed())
	})
	if err != nil {
		return err
	}
	work, err := scratch[T](c, high, inSize)
	if err != nil {
		return err
	}
	for i := range t.batch * t.groups {
		clear(work)
		right := k.Right(gemm.RowMajor(x[i*t.channels*inSize:][:t.channels*inSize], t.channels, inSize))
		k.Run(c.Parallel, gemm.Product[T]{C: work, Step: inSize, A: weights(i % t.groups), B: right})
		planes := out[i*t.features*outSize:][:t.features*outSize]
		c.Parallel(t.features, 1+elementGrain/max(1, kernelSize*inSize), func(first, last int) {
			for m := first; m < last; m++ {
				fold(t.window, planes[m*outSize:][:outSize], work[m*kernelSize*inSize:][:kernelSize*inSize])
			}
		})
	}
	return nil
}

// col2Im adds up overlapping blocks, given as columns, to images.
func col2Im[T number](c *Call) error {
	x, err := numberInput[T](c, 0)
	if err != nil {
		return err
	}
	w, err := blockWindow(c)
	if err != nil {
		return err
	}
	blocks, positions := product(w.kernel), product(w.out)
	if len(x.shape) != 3 || x.shape[1]%blocks != 0 || x.shape[2] != positions {
		return c.Errorf("columns of shape %v do not hold %d blocks of %v", x.shape, positions, w.kernel)
	}
	batch, channels, size := x.shape[0], x.shape[1]/blocks, product(w.in)
	out, err := newResult[T](c, 0, x.typ, append([]int{batch, channels}, w.in...)...)
	if err != nil {
		return err
	}
	c.Parallel(batch*channels, 1+elementGrain/max(1, blocks*positions), func(first, last int) {
		for p := first; p < last; p++ {
			fold(w, out.data[p*size:][:size], x.data[p*blocks*positions:][:blocks*positions])
		}
	})
	return out.finish()
}

// blockWindow is the window whose columns Col2Im is given: image_shape and
// block_shape are its inputs 1 and 2.
func blockWindow(c *Call) (*window, error) {
	sizes := [2][]int{}
	for i := range sizes {
		values, err := c.IntsInput(i + 1)
		if err != nil {
			return nil, err
		}
		if sizes[i], err = toInts(c, values); err != nil {
			return nil, err
		}
		for _, n := range sizes[i] {
			if n < 1 || n > maxExtent {
				return nil, c.Errorf("input %d holds size %d, which is not possible", i+1, n)
			}
		}
	}
	if len(sizes[0]) == 0 || len(sizes[0]) != len(sizes[1]) {
		return nil, c.Errorf("an image of %d axes and blocks of %d", len(sizes[0]), len(sizes[1]))
	}
	for _, s := range sizes {
		if _, err := countOf(c, s); err != nil {
			return nil, err
		}
	}
	w, err := newWindow(c, sizes[0], sizes[1])
	if err != nil {
		return nil, err
	}
	_, err = countOf(c, w.out)
	return w, err
}
