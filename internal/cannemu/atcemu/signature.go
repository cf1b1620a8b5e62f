package atcemu

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/internal/cannemu/datatype"
	"github.com/npuctl/npuctl/internal/cannemu/omwriter"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// aclFormat numbers.
const (
	formatNCHW    = 0
	formatND      = 2
	formatNC1HWC0 = 3
	formatNCDHW   = 30
)

// hiddenInput is the input through which gears are chosen.
const hiddenInput = "ascend_mbatch_shape_data"

// signature describes the compiled model as MODEL_INOUT_INFO does.
func (r *request) signature(c *carried, a *analysis) (*omwriter.Signature, error) {
	s := &omwriter.Signature{}
	for i, in := range c.inputs {
		port, err := r.inputPort(c, in, i, a)
		if err != nil {
			return nil, err
		}
		s.Inputs = append(s.Inputs, port)
	}
	for i, out := range c.outputs {
		port, err := r.outputPort(c, out, i, a)
		if err != nil {
			return nil, err
		}
		s.Outputs = append(s.Outputs, port)
	}
	r.addGears(s, c, a)
	return s, nil
}

func (r *request) inputPort(c *carried, in *carriedInput, i int, a *analysis) (omwriter.Port, error) {
	v := in.value
	number, ok := datatype.ACL(v.Type.Elem)
	if !ok {
		return omwriter.Port{}, internalFailure(fmt.Sprintf("tensor_proto data type %d is undefined", v.Type.Elem), "ConvertDataType", "onnx_parser.cc")
	}
	p := omwriter.Port{Name: v.Name(), DataType: number, Format: r.format(len(in.dims), in.isPacked)}
	isOpen := false
	for _, b := range in.dims {
		dim := b.Low
		if !b.IsFixed() {
			dim, isOpen = -1, true
		}
		p.Dims = append(p.Dims, dim)
	}
	p.DimsV2 = slices.Clone(p.Dims)
	switch {
	case r.gears.Kind != atc.NoGears:
		for _, row := range r.gears.Rows {
			p.Bytes = max(p.Bytes, bytesOf(v.Type.Elem, r.gearDims(c, row)[i]))
		}
	case !isOpen && !a.isDynamic:
		p.Bytes = bytesOf(v.Type.Elem, p.Dims)
	case isOpen:
		for _, b := range in.dims {
			p.Ranges = append(p.Ranges, [2]int64{b.Low, b.High})
		}
	}
	if a.isDynamic && !isOpen {
		p.Bytes = bytesOf(v.Type.Elem, p.Dims)
	}
	return p, nil
}

// format is how GE calls the layout of a tensor: that of --input_format for the rank
// it is made for, else plain.
func (r *request) format(rank int, isPacked bool) int32 {
	switch {
	case isPacked:
		return formatNC1HWC0
	case rank == 4 && r.inputFormat == "NCHW":
		return formatNCHW
	case rank == 5 && r.inputFormat == "NCDHW":
		return formatNCDHW
	}
	return formatND
}

func (r *request) outputPort(c *carried, out *carriedOutput, i int, a *analysis) (omwriter.Port, error) {
	t := a.outputs[i]
	p := omwriter.Port{Name: r.outputName(c, out)}
	if !t.IsTensor() {
		return p, internalFailure(fmt.Sprintf("output %s is no tensor of a known type", p.Name), "BuildModelWithGraphId", "ge_generator.cc")
	}
	number, ok := datatype.ACL(t.Elem)
	if !ok {
		return p, internalFailure(fmt.Sprintf("output %s is of type %s", p.Name, t.Elem), "BuildModelWithGraphId", "ge_generator.cc")
	}
	p.DataType = number
	p.Dims = dimsOf(t)
	if largest := a.largestGear(t.Elem, i); largest != nil {
		p.Dims, p.Bytes = largest, bytesOf(t.Elem, largest)
	} else if !slices.Contains(p.Dims, -1) {
		p.Bytes = bytesOf(t.Elem, p.Dims)
	}
	p.DimsV2 = slices.Clone(p.Dims)
	p.Format = r.format(len(p.Dims), out.isPacked)
	return p, nil
}

// largestGear gives the dims of an output at the gear where it has most bytes; nil
// for a model without gears.
func (a *analysis) largestGear(elem tensor.Type, i int) (dims []int64) {
	for _, types := range a.gears {
		d := dimsOf(types[i])
		if dims == nil || bytesOf(elem, d) > bytesOf(elem, dims) {
			dims = d
		}
	}
	return dims
}

// dimsOf gives a type's dims, -1 for those not known.
func dimsOf(t *onnx.Type) []int64 {
	dims := []int64{}
	if t.Shape == nil {
		return []int64{-1}
	}
	for _, d := range t.Shape.Dims {
		n := int64(-1)
		if d.Known {
			n = d.Value
		}
		dims = append(dims, n)
	}
	return dims
}

// bytesOf is the size of a tensor; 0 when a dim is open or the size is beyond all bounds.
func bytesOf(t tensor.Type, dims []int64) uint64 {
	count := int64(1)
	for _, d := range dims {
		if d < 0 || d > 0 && count > (1<<50)/d {
			return 0
		}
		count *= d
	}
	size, ok := t.RawSize(count)
	if !ok {
		return 0
	}
	return uint64(size)
}

// outputName is what AscendCL calls an output: node, port and tensor. The node is GE's:
// one ONNX node may have become several.
func (r *request) outputName(c *carried, out *carriedOutput) string {
	if out.tensor == "" {
		return fmt.Sprintf("%s:%d", out.port.node, out.port.port)
	}
	return fmt.Sprintf("%s:%d:%s", geNodeName(out.producer, out.port.node), out.port.port, out.tensor)
}

func (r *request) addGears(s *omwriter.Signature, c *carried, a *analysis) {
	if r.gears.Kind == atc.NoGears {
		return
	}
	rows := unsigned(r.gears.Rows)
	switch r.gears.Kind {
	case atc.BatchGears:
		for _, row := range rows {
			s.Batches = append(s.Batches, row[0])
		}
	case atc.ImageGears:
		s.Images = rows
	default:
		s.Dims = rows
	}
	width := int64(len(rows[0]))
	s.Inputs = append(s.Inputs, omwriter.Port{Name: hiddenInput, Bytes: uint64(4 * width), Format: formatND,
		DataType: 3, Dims: []int64{width}, DimsV2: []int64{width}})
	s.OutputShapes = a.outputShapes()
	for _, in := range c.inShapeOrder(r.shapes) {
		s.ShapeOrder = append(s.ShapeOrder, in.value.Name())
	}
}

func unsigned(rows [][]int64) (out [][]uint64) {
	for _, row := range rows {
		var u []uint64
		for _, v := range row {
			u = append(u, uint64(v))
		}
		out = append(out, u)
	}
	return out
}

// outputShapes tells every output's dims at every gear. An output that has the same at
// all of them is told once, for gear -1.
func (a *analysis) outputShapes() (lines []string) {
	for gear, types := range a.gears {
		for i, t := range types {
			if !a.dependsOnGear(i) {
				if gear == 0 {
					lines = append(lines, shapeLine(-1, i, dimsOf(t)))
				}
				continue
			}
			lines = append(lines, shapeLine(gear, i, dimsOf(t)))
		}
	}
	return lines
}

func (a *analysis) dependsOnGear(output int) bool {
	first := dimsOf(a.gears[0][output])
	for _, types := range a.gears {
		if !slices.Equal(dimsOf(types[output]), first) {
			return true
		}
	}
	return false
}

func shapeLine(gear, output int, dims []int64) string {
	words := []string{strconv.Itoa(gear), strconv.Itoa(output)}
	for _, d := range dims {
		words = append(words, strconv.FormatInt(d, 10))
	}
	return strings.Join(words, ",")
}
