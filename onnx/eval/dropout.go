package eval

import "github.com/npuctl/npuctl/onnx/tensor"

// dropoutOperators are the identity, unless a model is being trained.
var dropoutOperators = []operator{
	{name: "Dropout", since: 1, run: dropoutByTest},
	{name: "Dropout", since: 7, run: dropout},
	{name: "Dropout", since: 12, run: dropoutByInput},
}

// dropoutByTest trains unless the attribute is_test is set: versions 1 and 6.
func dropoutByTest(c *Call) error {
	if c.Int("is_test", 0) == 0 && c.Float("ratio", 0.5) != 0 {
		return c.Unsupported("Dropout in training draws random numbers")
	}
	return dropout(c)
}

// dropoutByInput trains when an input says so. A ratio of 0 drops nothing.
func dropoutByInput(c *Call) error {
	if !c.Has(2) {
		return dropout(c)
	}
	trains, err := c.flag(c.Inputs[2], "training_mode")
	if err != nil {
		return err
	}
	ratio := []float64{0.5}
	if c.Has(1) {
		d, err := c.Tensor(1)
		if err != nil {
			return err
		}
		var ok bool
		if ratio, ok = d.Float64s(); !ok || len(ratio) != 1 {
			return c.Errorf("the ratio is %s%v, not one number", d.Type(), d.Shape())
		}
	}
	if trains && ratio[0] != 0 {
		return c.Unsupported("Dropout in training draws random numbers")
	}
	return dropout(c)
}

// dropout passes its input on. The mask, which has the data's type before version
// 10, is all ones; before version 12 the specification says nothing of it in inference.
func dropout(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	c.Outputs[0] = d
	if !c.Wants(1) {
		return nil
	}
	if c.Opset < 12 {
		if err := c.Undefined("the mask of a Dropout that does not drop"); err != nil {
			return err
		}
	}
	t := tensor.Bool
	if c.Opset < 10 {
		t = d.Type()
	}
	one, err := c.cast(tensor.Scalar(true), t)
	if err != nil {
		return err
	}
	mask, err := c.New(t, d.Shape()...)
	if err != nil {
		return err
	}
	fill.For(t)(mask, one)
	c.Outputs[1] = mask
	return nil
}
