package eval

import "github.com/npuctl/npuctl/onnx/tensor"

// floatFunction is an element-wise function on real numbers: dst[i] from src[i],
// in the two widths that floats are computed in.
type floatFunction struct {
	single func(dst, src []float32)
	double func(dst, src []float64)
}

// functionGrain is how many elements make it worth while to bring in another core.
const functionGrain = 1 << 13

// floatKernel makes a kernel of a function that may depend on attributes.
func floatKernel(of func(c *Call) floatFunction) Kernel {
	return func(c *Call) error {
		d, err := c.Tensor(0)
		if err != nil {
			return err
		}
		switch d.Type() {
		case tensor.Float32:
			return c.setOutput(mapped(c, d, of(c).single))
		case tensor.Float64:
			return c.setOutput(mapped(c, d, of(c).double))
		case tensor.Float16:
			return c.setOutput(mapped(c, d, viaFloat32(tensor.F16From, of(c).single)))
		case tensor.BFloat16:
			return c.setOutput(mapped(c, d, viaFloat32(tensor.BF16From, of(c).single)))
		}
		return c.noKernel(d.Type())
	}
}

// viaDouble is a floatFunction that computes in float64 and rounds once: by fast,
// which has bits enough for float32, and by exact for float64.
func viaDouble(fast, exact func(float64) float64) floatFunction {
	return floatFunction{
		func(dst, src []float32) {
			for i, v := range src {
				dst[i] = float32(fast(float64(v)))
			}
		},
		func(dst, src []float64) {
			for i, v := range src {
				dst[i] = exact(v)
			}
		},
	}
}

// withVectors puts a loop that may use the host's vector unit in the place of the
// one for float32, but not while folding, whose bits must be those of every host.
func (f floatFunction) withVectors(c *Call, single func(dst, src []float32)) floatFunction {
	if !c.Strict() {
		f.single = single
	}
	return f
}
