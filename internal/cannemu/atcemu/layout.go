package atcemu

import (
	"fmt"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// cube is C0 of the layout NC1HWC0: channels come in groups of 16 FLOAT16.
const cube = 16

// packInput makes an input of NC1HWC0 out of one of NCHW:
//
//	x [N,C1,H,W,16] → Transpose → [N,C1,16,H,W] → Reshape → [N,C1*16,H,W] → Slice → [N,C,H,W]
//
// ATC does the same with a TransData; it needs every size.
func (c *carried) packInput(in *carriedInput) error {
	size, err := planar(in.value)
	if err != nil {
		return fmt.Errorf("--is_input_adjust_hw_layout: input %w", err)
	}
	v := in.value
	groups := (size[1] + cube - 1) / cube
	unpacked := c.readBy(v, "Transpose", onnx.IntsAttribute("perm", 0, 1, 4, 2, 3))
	joined := c.readBy(unpacked, "Reshape")
	joined.Producer().SetInput(1, c.constant(size[0], groups*cube, size[2], size[3]))
	c.slice(joined, size[1])
	v.Type = onnx.TensorType(tensor.Float16, int(size[0]), int(groups), int(size[2]), int(size[3]), cube)
	in.isPacked, in.channels = true, size[1]
	in.dims = nil
	for _, n := range []int64{size[0], groups, size[2], size[3], cube} {
		in.dims = append(in.dims, atc.Fixed(n))
	}
	return nil
}

// slice cuts the channels that fill up the last group.
func (c *carried) slice(v *onnx.Value, channels int64) {
	if c.model.Opset("") < 10 {
		c.readBy(v, "Slice", onnx.IntsAttribute("axes", 1), onnx.IntsAttribute("starts", 0), onnx.IntsAttribute("ends", channels))
		return
	}
	cut := c.readBy(v, "Slice")
	for i, n := range []int64{0, channels, 1} { // starts, ends, axes
		cut.Producer().SetInput(i+1, c.constant(n))
	}
}

// packOutput makes NC1HWC0 of an output of NCHW, the other way round. Its sizes are
// those that inference finds.
func (c *carried) packOutput(out *carriedOutput, dims []int64) error {
	if len(dims) != 4 {
		return fmt.Errorf("--is_output_adjust_hw_layout: output %q has rank %d, not 4", out.value.Name(), len(dims))
	}
	name := c.takeName(out.value)
	groups := (dims[1] + cube - 1) / cube
	v := out.value
	add := func(op string, inputs []*onnx.Value, attributes ...*onnx.Attribute) *onnx.Value {
		made := c.model.FreshName(name + "_" + op)
		if op == "Transpose" {
			made = name
		}
		return c.model.Graph.Add(op, inputs, []string{made}, attributes...).Output(0)
	}
	pads := []int64{0, 0, 0, 0, 0, groups*cube - dims[1], 0, 0}
	if c.model.Opset("") < 11 {
		v = add("Pad", []*onnx.Value{v}, onnx.IntsAttribute("pads", pads...))
	} else {
		v = add("Pad", []*onnx.Value{v, c.constant(pads...)})
	}
	v = add("Reshape", []*onnx.Value{v, c.constant(dims[0], groups, cube, dims[2], dims[3])})
	out.value = add("Transpose", []*onnx.Value{v}, onnx.IntsAttribute("perm", 0, 1, 3, 4, 2))
	out.isPacked = true
	return nil
}

func (c *carried) constant(values ...int64) *onnx.Value {
	return c.model.Graph.AddInitializer("npuctl_layout", tensor.Of(values, len(values)))
}

// planar is the size of a value of four known dims.
func planar(v *onnx.Value) (size [4]int64, err error) {
	dims, ok := v.Type.Shape.Ints()
	if !ok || len(dims) != 4 {
		return size, fmt.Errorf("%q is %s: the layout NC1HWC0 needs four known dims", v.Name(), v.Type)
	}
	for i, n := range dims {
		size[i] = int64(n)
	}
	return size, nil
}
