package infer

import "github.com/npuctl/npuctl/onnx/tensor"

// detectionOperators work on boxes.
var detectionOperators = []operator{
	{name: "NonMaxSuppression", since: 10, rule: nonMaxSuppression},
	{name: "RoiAlign", since: 10, rule: roiAlign},
	{name: "MaxRoiPool", since: 1, rule: maxRoiPool},
}

// nonMaxSuppression gives batch, class and box of each one selected.
func nonMaxSuppression(c *call) {
	c.setElem(0, tensor.Int64)
	c.setDims(0, Unknown(), Const(3))
}

func roiAlign(c *call) {
	c.regions(Const(c.int("output_height", 1)), Const(c.int("output_width", 1)))
}

func maxRoiPool(c *call) {
	if shape, ok := c.intList("pooled_shape"); ok && len(shape) == 2 {
		c.regions(Const(shape[0]), Const(shape[1]))
	}
}

// regions says that output 0 has for each region a picture of the given size.
func (c *call) regions(height, width Dim) {
	count, channels := Unknown(), Unknown()
	if dims, ok := c.dims(1); ok && len(dims) > 0 {
		count = dims[0]
	}
	if dims, ok := c.dims(0); ok && len(dims) > 1 {
		channels = dims[1]
	}
	c.setDims(0, count, channels, height, width)
}
