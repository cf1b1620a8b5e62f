package infer

import (
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// signalOperators transform signals and make windows for them.
var signalOperators = []operator{
	{name: "DFT", since: 17, rule: fourier},
	{name: "STFT", since: 17, rule: shortTimeFourier},
	{name: "MelWeightMatrix", since: 17, rule: melWeights},
	{name: "HannWindow", since: 17, rule: signalWindow},
	{name: "HammingWindow", since: 17, rule: signalWindow},
	{name: "BlackmanWindow", since: 17, rule: signalWindow},
}

// single gives the only element of input i as an expression.
func (c *call) single(i int) Dim {
	if v := c.scalar(i); !v.IsUnknown() {
		return v.Dim()
	}
	return Unknown()
}

// signalWindow has so many elements.
func signalWindow(c *call) {
	c.setElem(0, c.typeAttribute("output_datatype", tensor.Float32))
	c.setDims(0, c.single(0))
}

// melWeights has a row for each frequency of a real transform, and a column for each bin.
func melWeights(c *call) {
	c.setElem(0, c.typeAttribute("output_datatype", tensor.Float32))
	c.setDims(0, halfSpectrum(c.single(1)), c.single(0))
}

// halfSpectrum is the number of frequencies that a real signal of length n has.
func halfSpectrum(n Dim) Dim { return n.FloorDiv(Const(2)).AddConst(1) }

// fourier transforms one axis; the last holds real and imaginary parts. The axis
// is an attribute in opset 17, default 1, and an input since 20, default -2.
func fourier(c *call) {
	dims, ok := c.dims(0)
	if !ok || len(dims) < 2 {
		return
	}
	oneSided, inverse := c.int("onesided", 0) != 0, c.int("inverse", 0) != 0
	last := len(dims) - 1
	out := slices.Clone(dims)
	out[last] = Const(2)
	if oneSided && inverse {
		out[last] = Const(1)
	}
	axis, ok := c.fourierAxis(len(dims))
	if !ok {
		copy(out, unknowns(last))
		c.setDims(0, out...)
		return
	}
	length := dims[axis]
	if c.has(1) {
		length = c.single(1)
	} else if oneSided && inverse {
		length = dims[axis].AddConst(-1).MulConst(2)
	}
	if oneSided && !inverse {
		length = halfSpectrum(length)
	}
	out[axis] = length
	c.setDims(0, out...)
}

func (c *call) fourierAxis(rank int) (axis int, ok bool) {
	if c.opset < 20 {
		return c.axis("axis", 1, rank)
	}
	if !c.has(2) {
		return rank - 2, true
	}
	n, known := c.integer(2)
	if !known {
		return 0, false
	}
	return c.normalAxis(n, rank)
}

// shortTimeFourier has a transform for each frame of the signal.
func shortTimeFourier(c *call) {
	dims, ok := c.dims(0)
	if !ok || len(dims) < 2 {
		c.setDims(0, unknowns(4)...)
		return
	}
	length := dims[1]
	if window, ok := c.dims(2); ok && len(window) == 1 {
		length = window[0]
	} else if c.has(2) {
		length = Unknown()
	}
	if c.has(3) {
		length = c.single(3)
	}
	frames := Unknown()
	if step := c.single(1); !step.IsUnknown() {
		frames = dims[1].Sub(length).FloorDiv(step).AddConst(1)
	}
	if c.int("onesided", 1) != 0 {
		length = halfSpectrum(length)
	}
	c.setDims(0, dims[0], frames, length, Const(2))
}
