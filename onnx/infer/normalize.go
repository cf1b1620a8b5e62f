package infer

import (
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// normalizeOperators keep the shape of their input and may give statistics beside it.
var normalizeOperators = []operator{
	{name: "BatchNormalization", since: 1, rule: batchNormalization},
	{name: "LayerNormalization", since: 17, rule: layerNormalization},
	{name: "RMSNormalization", since: 23, rule: sameAsFirst},
	{name: "GroupNormalization", since: 18, rule: sameAsFirst},
	{name: "Dropout", since: 1, rule: dropout},
	{name: "QuantizeLinear", since: 10, rule: quantize},
	{name: "DequantizeLinear", since: 10, rule: dequantize},
	{name: "DynamicQuantizeLinear", since: 11, rule: dynamicQuantize},
}

// batchNormalization gives one mean and variance a channel in training.
func batchNormalization(c *call) {
	c.sameDims(0, 0)
	channels := Unknown()
	if dims, ok := c.dims(0); ok && len(dims) > 1 {
		channels = dims[1]
	}
	for i := 1; i < len(c.outputs); i++ {
		c.setElem(i, firstElem(c.in(3), c.in(0)))
		c.setDims(i, channels)
	}
}

// layerNormalization gives mean and inverse deviation with 1 in the normalised axes.
func layerNormalization(c *call) {
	c.sameDims(0, 0)
	stash := c.typeAttribute("stash_type", tensor.Float32)
	c.setElem(1, stash)
	c.setElem(2, stash)
	dims, ok := c.dims(0)
	if !ok {
		return
	}
	axis, ok := c.axis("axis", -1, len(dims))
	if !ok {
		return
	}
	out := slices.Clone(dims)
	for k := axis; k < len(out); k++ {
		out[k] = Const(1)
	}
	c.setDims(1, out...)
	c.setDims(2, out...)
}

// dropout gives a mask beside; it became boolean with opset 10.
func dropout(c *call) {
	c.sameDims(0, 0)
	c.sameDims(1, 0)
	c.setElem(0, c.in(0).Elem)
	if c.opset < 10 {
		c.setElem(1, c.in(0).Elem)
		return
	}
	c.setElem(1, tensor.Bool)
}

// quantize has the type of the zero point; without one it is uint8, or since
// opset 21 what output_dtype says.
func quantize(c *call) {
	c.sameDims(0, 0)
	otherwise := tensor.Uint8
	if t := c.typeAttribute("output_dtype", tensor.Undefined); t != tensor.Undefined {
		otherwise = t
	}
	if c.has(2) {
		otherwise = c.in(2).Elem
	}
	c.setElem(0, otherwise)
}

// dequantize has the type of the scale, or since opset 23 what output_dtype says.
func dequantize(c *call) {
	c.sameDims(0, 0)
	t := c.typeAttribute("output_dtype", tensor.Undefined)
	switch {
	case t != tensor.Undefined:
	case c.opset < 19:
		t = tensor.Float32
	default:
		t = c.in(1).Elem
	}
	c.setElem(0, t)
}

// dynamicQuantize gives a scale and a zero point beside.
func dynamicQuantize(c *call) {
	c.sameDims(0, 0)
	c.setElem(0, tensor.Uint8)
	c.setElem(1, tensor.Float32)
	c.setElem(2, tensor.Uint8)
	c.setDims(1)
	c.setDims(2)
}
