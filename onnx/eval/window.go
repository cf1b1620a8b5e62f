package eval

import (
	"strings"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// window is how a kernel slides over the spatial axes of an image; every slice has
// one entry an axis. Position o of the output and position k of the kernel meet at
// position o·stride + k·dilation - begin of the input.
type window struct {
	in, out, kernel  []int
	stride, dilation []int
	begin, end       []int // padding
}

// maxExtent bounds strides, paddings and kernels, so that sums of their products
// stay within an int.
const maxExtent = 1 << 30

// newWindow reads strides, dilations, pads and auto_pad, and works out the output
// for an image of size in. With auto_pad SAME the output is as large as if the
// stride were the only thing that mattered, and padding makes up for the rest.
func newWindow(c *Call, in, kernel []int) (*window, error) {
	w := &window{in: in, kernel: kernel}
	if err := w.read(c, in); err != nil {
		return nil, err
	}
	ceil := c.Int("ceil_mode", 0) != 0
	mode := c.String("auto_pad", "NOTSET")
	w.out = make([]int, len(in))
	for i := range in {
		switch mode {
		case "SAME_UPPER", "SAME_LOWER":
			w.pad(i, mode == "SAME_UPPER")
		case "NOTSET", "VALID", "":
			w.out[i] = w.count(i, ceil)
		default:
			return nil, c.Errorf("auto_pad %q is not known", mode)
		}
		if over := w.begin[i] + in[i] + w.end[i] - w.extent(i); over < 0 && !ceil && over/w.stride[i]+1 >= 0 && isPool(c) {
			return nil, c.Unsupported("a window of %d that hangs over %d with padding %d and %d: runtimes disagree on it", w.extent(i), in[i], w.begin[i], w.end[i])
		}
		if w.out[i] <= 0 && in[i] > 0 || w.out[i] < 0 {
			return nil, c.Errorf("a window of %d does not fit into %d with padding %d and %d", w.extent(i), in[i], w.begin[i], w.end[i])
		}
	}
	return w, nil
}

// isPool says whether the call takes a maximum, a mean or a norm of each window.
func isPool(c *Call) bool { return strings.HasSuffix(c.Node.OpType, "Pool") }

// read reads strides and dilations, which default to 1, and pads, which default to
// 0; pads may be negative, and crop then. given is the size of the image.
func (w *window) read(c *Call, given []int) error {
	n := len(w.in)
	if len(w.kernel) != n {
		return c.Errorf("a kernel of shape %v on an image of size %v", w.kernel, given)
	}
	var err error
	if w.stride, err = spatialInts(c, "strides", n, 1, 1); err != nil {
		return err
	}
	if w.dilation, err = spatialInts(c, "dilations", n, 1, 1); err != nil {
		return err
	}
	pads, err := spatialInts(c, "pads", 2*n, 0, -maxExtent)
	if err != nil {
		return err
	}
	if mode := c.String("auto_pad", "NOTSET"); mode != "NOTSET" && mode != "" {
		pads = make([]int, 2*n)
	}
	w.begin, w.end = pads[:n:n], pads[n:]
	for i, k := range w.kernel {
		if k < 1 || k > maxExtent || k > 1 && w.dilation[i] > maxExtent/(k-1) || given[i] > 4*maxExtent {
			return c.Errorf("a kernel of shape %v with dilations %v on an image of size %v is not possible", w.kernel, w.dilation, given)
		}
	}
	return nil
}

// spatialInts gives an ints attribute that has n entries, none below lowest; all are
// otherwise when it is left out.
func spatialInts(c *Call, name string, n, otherwise, lowest int) ([]int, error) {
	out := make([]int, n)
	values, ok := c.Ints(name)
	if ok && len(values) != n && len(values) > 0 {
		return nil, c.Errorf("attribute %q has %d entries, not %d", name, len(values), n)
	}
	for i := range out {
		out[i] = otherwise
		if len(values) == 0 {
			continue
		}
		if values[i] < int64(lowest) || values[i] > maxExtent {
			return nil, c.Errorf("attribute %q holds %d, which is not possible", name, values[i])
		}
		out[i] = int(values[i])
	}
	return out, nil
}

// kernelShape gives the attribute of that name; otherwise holds where it is left out.
func kernelShape(c *Call, otherwise []int) ([]int, error) {
	values, ok := c.Ints("kernel_shape")
	if !ok || len(values) == 0 {
		return otherwise, nil
	}
	shape := make([]int, len(values))
	for i, v := range values {
		if v < 1 || v > maxExtent || otherwise != nil && (len(values) != len(otherwise) || int(v) != otherwise[i]) {
			return nil, c.Errorf("kernel_shape %v does not fit the weights' %v", values, otherwise)
		}
		shape[i] = int(v)
	}
	return shape, nil
}

// extent is how much of the input the kernel spans along an axis.
func (w *window) extent(i int) int { return (w.kernel[i]-1)*w.dilation[i] + 1 }

// count is the number of places of the window along an axis. When rounded up, the
// last window may hang over the end, but must start inside the input or the padding
// before it.
func (w *window) count(i int, ceil bool) int {
	room := w.in[i] + w.begin[i] + w.end[i] - w.extent(i)
	if !ceil {
		return floorDiv(room, w.stride[i]) + 1
	}
	n := -floorDiv(-room, w.stride[i]) + 1
	if (n-1)*w.stride[i] >= w.in[i]+w.begin[i] {
		n--
	}
	return n
}

// pad sets the output and the padding of an axis for auto_pad SAME.
func (w *window) pad(i int, upper bool) {
	w.out[i] = (w.in[i] + w.stride[i] - 1) / w.stride[i]
	total := max(0, (w.out[i]-1)*w.stride[i]+w.extent(i)-w.in[i])
	w.split(i, total, upper)
}

// split shares padding out to both ends; the odd one goes to the end when upper.
func (w *window) split(i, total int, upper bool) {
	w.begin[i], w.end[i] = total/2, total-total/2
	if !upper {
		w.begin[i], w.end[i] = w.end[i], w.begin[i]
	}
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// valid gives the positions first to last of the output, along an axis, at which
// position k of the kernel lies on the input.
func (w *window) valid(axis, k int) (first, last int) {
	offset := k*w.dilation[axis] - w.begin[axis]
	first = min(max(0, -floorDiv(offset, w.stride[axis])), w.out[axis])
	last = min(floorDiv(w.in[axis]-1-offset, w.stride[axis])+1, w.out[axis])
	return first, max(first, last)
}

// kernelRange gives the positions first to last of the kernel, along an axis, that
// lie on the input when the window is at position o of the output.
func (w *window) kernelRange(axis, o int) (first, last int) {
	start := o*w.stride[axis] - w.begin[axis]
	first = min(max(0, -floorDiv(start, w.dilation[axis])), w.kernel[axis])
	last = min(floorDiv(w.in[axis]-1-start, w.dilation[axis])+1, w.kernel[axis])
	return first, max(first, last)
}

// kernelReach gives the positions first to last of the kernel, along an axis, that
// lie on the input at any position of the output.
func (w *window) kernelReach(axis int) (first, last int) {
	if w.out[axis] == 0 {
		return 0, 0
	}
	first, _ = w.kernelRange(axis, w.out[axis]-1)
	_, last = w.kernelRange(axis, 0)
	return first, max(first, last)
}

// place is a row of the kernel and a row of the input that meet.
type place struct{ kernelRow, inRow int }

// places gives, for a row of the output, the rows of the kernel that lie on rows of
// the input, in order. It uses buffer's room.
func (w *window) places(buffer []place, outRow int) []place {
	outer := len(w.in) - 1
	buffer = append(buffer[:0], place{})
	for axis := range outer {
		o := outRow / product(w.out[axis+1:outer]) % w.out[axis]
		first, last := w.kernelRange(axis, o)
		count := len(buffer)
		for _, p := range buffer[:count] {
			for k := first; k < last; k++ {
				x := o*w.stride[axis] + k*w.dilation[axis] - w.begin[axis]
				buffer = append(buffer, place{p.kernelRow*w.kernel[axis] + k, p.inRow*w.in[axis] + x})
			}
		}
		buffer = append(buffer[:0], buffer[count:]...)
	}
	return buffer
}

// rows is the number of rows of an image: of its positions along all axes but the last.
func rows(size []int) int { return product(size[:len(size)-1]) }

// unfold writes what one position of the kernel sees on a plane of the input while
// the window takes the output's positions from first on; 0 off the input.
func unfold[T any](w *window, dst, plane []T, kernelPosition, first int) {
	last := len(w.in) - 1
	wide, stride := w.out[last], w.stride[last]
	kernelRow, k := kernelPosition/w.kernel[last], kernelPosition%w.kernel[last]
	from, to := w.valid(last, k)
	offset := k*w.dilation[last] - w.begin[last]
	for len(dst) > 0 {
		outRow, start := first/wide, first%wide
		line := dst[:min(len(dst), wide-start)]
		dst, first = dst[len(line):], first+len(line)
		inRow, ok := w.meet(outRow, kernelRow)
		if !ok {
			clear(line)
			continue
		}
		left := min(max(from-start, 0), len(line))
		right := min(max(to-start, left), len(line))
		clear(line[:left])
		clear(line[right:])
		if left == right {
			continue
		}
		source := plane[inRow*w.in[last]+(start+left)*stride+offset:]
		if stride == 1 {
			copy(line[left:right], source)
			continue
		}
		for i := left; i < right; i++ {
			line[i] = source[(i-left)*stride]
		}
	}
}

// meet gives the row of the input on which a row of the kernel lies when the window
// is at a row of the output; ok is false when it lies beside the input.
func (w *window) meet(outRow, kernelRow int) (inRow int, ok bool) {
	step := 1
	for axis := len(w.in) - 2; axis >= 0; axis-- {
		o, k := outRow%w.out[axis], kernelRow%w.kernel[axis]
		outRow, kernelRow = outRow/w.out[axis], kernelRow/w.kernel[axis]
		x := o*w.stride[axis] + k*w.dilation[axis] - w.begin[axis]
		if x < 0 || x >= w.in[axis] {
			return 0, false
		}
		inRow += x * step
		step *= w.in[axis]
	}
	return inRow, true
}

// fold is the reverse of unfold: it adds to a plane of the input, where each position
// of the kernel saw it, what the columns hold: kernel positions by output positions.
func fold[T number](w *window, plane, columns []T) {
	last := len(w.in) - 1
	wide, stride := w.out[last], w.stride[last]
	outRows := rows(w.out)
	for kernelRow := range rows(w.kernel) {
		for k := range w.kernel[last] {
			line := columns[(kernelRow*w.kernel[last]+k)*outRows*wide:][:outRows*wide]
			from, to := w.valid(last, k)
			offset := k*w.dilation[last] - w.begin[last]
			for outRow := range outRows {
				inRow, ok := w.meet(outRow, kernelRow)
				if !ok || from == to {
					continue
				}
				at := inRow*w.in[last] + from*stride + offset
				for _, v := range line[outRow*wide+from : outRow*wide+to] {
					plane[at] += v
					at += stride
				}
			}
		}
	}
}

// countOf is the number of elements of a shape that came from outside.
func countOf(c *Call, shape []int) (int, error) {
	n, err := tensor.Count(shape)
	if err != nil {
		return 0, c.Errorf("%w", err)
	}
	return n, nil
}

// spatialShape gives the batch and channel dims of an image, and its size.
func spatialShape(c *Call, shape []int, least int) (batch, channels int, size []int, err error) {
	if len(shape) < 2+least {
		return 0, 0, nil, c.Errorf("input 0 has shape %v, which is no batch of images", shape)
	}
	return shape[0], shape[1], shape[2:], nil
}
