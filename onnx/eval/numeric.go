package eval

import (
	"slices"

	"github.com/npuctl/npuctl/onnx/eval/internal/gemm"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// number is the types that the costly kernels compute in: floats narrower than 32
// bits in float32, integers narrower than 32 bits in int32.
type number = gemm.Number

// floating is those of them that are floats.
type floating interface{ float32 | float64 }

// onNumbers makes a kernel of instances of a generic one; the type of an input
// picks the instance that computes in it or in the next wider type.
func onNumbers(input int, kernels tensor.Numbers[Kernel]) Kernel {
	return func(c *Call) error {
		d, err := c.Tensor(input)
		if err != nil {
			return err
		}
		k := kernels.For(d.Type())
		switch {
		case d.Type() == tensor.Float16 || d.Type() == tensor.BFloat16:
			k = kernels.Float32
		case k == nil && d.Type().IsInteger() && d.Type().Width() < 4:
			k = kernels.Int32
		}
		if k == nil {
			return c.Errorf("input %d is %s, which is no type for it", input, d.Type())
		}
		return k(c)
	}
}

// onFloats is onNumbers for floats alone. Where any input is DOUBLE, the wide
// instance runs.
func onFloats(input int, narrow, wide Kernel) Kernel {
	pick := onNumbers(input, tensor.Numbers[Kernel]{Float32: narrow, Float64: wide})
	widen := onNumbers(input, tensor.Numbers[Kernel]{Float32: wide, Float64: wide})
	return func(c *Call) error {
		for _, v := range c.Inputs {
			if d, ok := v.(*tensor.Dense); ok && d.Type() == tensor.Float64 {
				return widen(c)
			}
		}
		return pick(c)
	}
}

// array is a tensor as a kernel reads it.
type array[T number] struct {
	typ   tensor.Type
	shape []int
	data  []T
}

// numberInput gives input i, which must be there, in the type to compute in.
func numberInput[T number](c *Call, i int) (array[T], error) {
	d, err := c.Tensor(i)
	if err != nil {
		return array[T]{}, err
	}
	if d.Type() != tensor.TypeOf[T]() {
		if err := c.Charge(int64(d.Len()) * int64(tensor.TypeOf[T]().Width())); err != nil {
			return array[T]{}, err
		}
	}
	data, ok := widened[T](d)
	if !ok {
		return array[T]{}, c.Errorf("input %d is %s, which is no type for it", i, d.Type())
	}
	return array[T]{d.Type(), d.Shape(), data}, nil
}

// widened gives the elements of d in T, when T holds them all.
func widened[T number](d *tensor.Dense) ([]T, bool) {
	var data any
	var ok bool
	switch t := tensor.TypeOf[T](); {
	case t == d.Type():
		return tensor.Data[T](d), true
	case t == tensor.Float32:
		data, ok = d.Float32s()
	case t == tensor.Float64:
		data, ok = d.Float64s()
	case t == tensor.Int32 && d.Type().Width() < 4 && (d.Type().IsInteger() || d.Type() == tensor.Bool):
		var values []int64
		values, ok = d.Int64s()
		narrow := make([]int32, len(values))
		for i, v := range values {
			narrow[i] = int32(v)
		}
		data = narrow
	}
	if !ok {
		return nil, false
	}
	return data.([]T), true
}

// optionalNumbers is numberInput for an input that may be left out; its data are nil then.
func optionalNumbers[T number](c *Call, i int) (array[T], error) {
	if !c.Has(i) {
		return array[T]{}, nil
	}
	return numberInput[T](c, i)
}

// vectorInput is optionalNumbers for an input that, if there, must have n elements.
func vectorInput[T number](c *Call, i, n int) ([]T, error) {
	v, err := optionalNumbers[T](c, i)
	if err != nil || v.data == nil {
		return nil, err
	}
	if len(v.data) != n {
		return nil, c.Errorf("input %d has shape %v, not %d elements", i, v.shape, n)
	}
	return v.data, nil
}

// shapedInput is numberInput for an input that must have a certain shape.
func shapedInput[T number](c *Call, i int, shape ...int) ([]T, error) {
	v, err := numberInput[T](c, i)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(v.shape, shape) {
		return nil, c.Errorf("input %d has shape %v, not %v", i, v.shape, shape)
	}
	return v.data, nil
}

// result is an output of a kernel: data is filled in the type computed in, then
// finish brings it, rounded once, into the type of the output.
type result[T number] struct {
	data   []T
	call   *Call
	output int
	typ    tensor.Type
	shape  []int
}

// newResult makes room, zeroed, for output i.
func newResult[T number](c *Call, i int, typ tensor.Type, shape ...int) (*result[T], error) {
	d, err := c.New(tensor.TypeOf[T](), shape...)
	if err != nil {
		return nil, err
	}
	if i < len(c.Outputs) {
		c.Outputs[i] = d
	}
	return &result[T]{data: tensor.Data[T](d), call: c, output: i, typ: typ, shape: shape}, nil
}

// scratch makes a zeroed array that lives as long as the call.
func scratch[T number](c *Call, shape ...int) ([]T, error) {
	d, err := c.New(tensor.TypeOf[T](), shape...)
	if err != nil {
		return nil, err
	}
	return tensor.Data[T](d), nil
}

// finish sets the output when its type is not the one computed in.
func (r *result[T]) finish() error {
	if r.typ == tensor.TypeOf[T]() || r.output >= len(r.call.Outputs) {
		return nil
	}
	d, err := r.call.New(r.typ, r.shape...)
	if err != nil {
		return err
	}
	r.call.Outputs[r.output] = d
	if !narrow(r.call, d, r.data) {
		return r.call.Unsupported("results of type %s", r.typ)
	}
	return nil
}

// narrow fills dst, which has one of the types that T computes for, from src.
// Integers wrap.
func narrow[T number](c *Call, dst *tensor.Dense, src []T) bool {
	switch dst.Type() {
	case tensor.Float32:
		convertTo(c, tensor.Data[float32](dst), src, func(v T) float32 { return float32(v) })
	case tensor.Float64:
		convertTo(c, tensor.Data[float64](dst), src, func(v T) float64 { return float64(v) })
	case tensor.Float16:
		convertTo(c, tensor.Data[tensor.F16](dst), src, func(v T) tensor.F16 { return tensor.F16FromFloat64(float64(v)) })
	case tensor.BFloat16:
		convertTo(c, tensor.Data[tensor.BF16](dst), src, func(v T) tensor.BF16 { return tensor.BF16FromFloat64(float64(v)) })
	case tensor.Int8:
		convertTo(c, tensor.Data[int8](dst), src, func(v T) int8 { return int8(int64(v)) })
	case tensor.Uint8:
		convertTo(c, tensor.Data[uint8](dst), src, func(v T) uint8 { return uint8(int64(v)) })
	case tensor.Int16:
		convertTo(c, tensor.Data[int16](dst), src, func(v T) int16 { return int16(int64(v)) })
	case tensor.Uint16:
		convertTo(c, tensor.Data[uint16](dst), src, func(v T) uint16 { return uint16(int64(v)) })
	default:
		return false
	}
	return true
}

func convertTo[To any, From number](c *Call, dst []To, src []From, convert func(From) To) {
	c.Parallel(len(src), elementGrain, func(first, last int) {
		for i := first; i < last; i++ {
			dst[i] = convert(src[i])
		}
	})
}

// elementGrain is the number of elements of simple work that another core is worth.
const elementGrain = 1 << 14

// multiplier is the kernel for matrices of T: the host's fastest, or the one that
// has the same bits everywhere when a constant is folded.
func multiplier[T number](c *Call) *gemm.Kernel[T] {
	if !c.Strict() {
		if k, ok := any(gemm.Fast32()).(*gemm.Kernel[T]); ok {
			return k
		}
	}
	return gemm.Portable[T]()
}

// keeps says whether what is made of input i can be kept for the next run.
func (c *Call) keeps(i int) bool { return !c.Strict() && c.IsConstant(i) }
