package eval

import (
	"math"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// castOperators change the element type.
var castOperators = []operator{
	{name: "Cast", since: 1, run: runCast},
	{name: "CastLike", since: 15, run: runCastLike},
	{name: "BitCast", since: 26, run: bitCast},
}

// runCast is Cast, whose target is a name in version 1 and a number from then on.
func runCast(c *Call) error {
	to := tensor.Type(c.Int("to", 0))
	if c.Opset < 6 {
		to, _ = tensor.ParseType(c.String("to", ""))
	}
	return runCastTo(c, to)
}

func runCastLike(c *Call) error {
	like, err := c.Tensor(1)
	if err != nil {
		return err
	}
	return runCastTo(c, like.Type())
}

// roundModes are the values of the attribute round_mode.
var roundModes = map[string]tensor.RoundMode{"up": tensor.RoundUp, "down": tensor.RoundDown, "nearest": tensor.RoundNearest}

func runCastTo(c *Call, to tensor.Type) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	mode, ok := roundModes[c.String("round_mode", "up")]
	if !ok {
		return c.Errorf("round_mode is %q", c.String("round_mode", ""))
	}
	if !to.Valid() {
		return c.Unsupported("element type %d", to)
	}
	return c.setOutput(c.castAs(d, to, casting{saturate: c.Int("saturate", 1) != 0, mode: mode}))
}

// bitCast reads the bits of each element as another type of the same width.
func bitCast(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	to := tensor.Type(c.Int("to", 0))
	if to.Bits() == 0 || to.Bits() != d.Type().Bits() {
		return c.Errorf("%s cannot be read as %s: the widths differ", d.Type(), to)
	}
	if err := c.reserve(to, d.Shape()); err != nil {
		return err
	}
	out, err := tensor.FromRaw(to, d.Shape(), d.Raw())
	if err != nil {
		return c.Errorf("%w", err)
	}
	c.Outputs[0] = out
	return nil
}

// casting says how numbers become floats of 8 bits.
type casting struct {
	saturate bool
	mode     tensor.RoundMode
}

// cast converts as Cast does by default.
func (c *Call) cast(d *tensor.Dense, to tensor.Type) (*tensor.Dense, error) {
	return c.castAs(d, to, casting{saturate: true})
}

// castAs converts the elements of d.
//
// Whole numbers that do not fit an integer keep their low bits. Floats lose their
// fraction; where the rest does not fit, the result is undefined: here the low
// bits of its int64 form, which is the smallest number for NaN and what int64
// cannot hold, and the smallest number for INT32. Floats round once, to nearest
// even.
func (c *Call) castAs(d *tensor.Dense, to tensor.Type, how casting) (*tensor.Dense, error) {
	from := d.Type()
	switch {
	case from == to:
		return d, nil
	case from == tensor.String || to == tensor.String:
		return c.castString(d, to, how)
	case from.IsComplex() || to.IsComplex():
		return nil, c.noKernel(from)
	}
	if err := c.checkCast(d, to); err != nil {
		return nil, err
	}
	out, err := c.New(to, d.Shape()...)
	if err != nil {
		return nil, err
	}
	c.Parallel(d.Len(), elementGrain, func(first, last int) {
		convert := converter(d, out, how, min(blockLength, last-first))
		for ; first < last; first += blockLength {
			convert(first, min(blockLength, last-first))
		}
	})
	return out, nil
}

// converter gives a function that converts n elements, at most size, from a
// position on.
func converter(from, to *tensor.Dense, how casting, size int) func(at, n int) {
	if isWhole(from.Type()) && isWhole(to.Type()) {
		read, write := integerCodecs[from.Type()].read, integerCodecs[to.Type()].write
		block := make([]int64, size)
		return func(at, n int) {
			read(from, at, block[:n])
			write(to, at, block[:n])
		}
	}
	read := floatReader(from, to.Type(), size)
	write := floatWriter(to, how, size)
	block := make([]float64, size)
	return func(at, n int) {
		read(at, block[:n])
		write(at, block[:n])
	}
}

func isWhole(t tensor.Type) bool { return t.IsInteger() || t == tensor.Bool }

// integerCodec reads elements as int64 and writes the low bits of int64.
type integerCodec struct {
	read  func(d *tensor.Dense, at int, out []int64)
	write func(d *tensor.Dense, at int, in []int64)
}

var integerCodecs = map[tensor.Type]integerCodec{
	tensor.Int8:   {readWhole[int8], writeWhole[int8]},
	tensor.Int16:  {readWhole[int16], writeWhole[int16]},
	tensor.Int32:  {readWhole[int32], writeWhole[int32]},
	tensor.Int64:  {readWhole[int64], writeWhole[int64]},
	tensor.Uint8:  {readWhole[uint8], writeWhole[uint8]},
	tensor.Uint16: {readWhole[uint16], writeWhole[uint16]},
	tensor.Uint32: {readWhole[uint32], writeWhole[uint32]},
	tensor.Uint64: {readWhole[uint64], writeWhole[uint64]},
	tensor.Int4:   {readWhole[tensor.I4], writeBits[tensor.I4]},
	tensor.Uint4:  {readWhole[tensor.U4], writeBits[tensor.U4]},
	tensor.Int2:   {readWhole[tensor.I2], writeBits[tensor.I2]},
	tensor.Uint2:  {readWhole[tensor.U2], writeBits[tensor.U2]},
	tensor.Bool:   {readBool, writeBool},
}

// whole is the types of whole numbers, those of less than a byte included.
type whole interface {
	tensor.Element
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

func readWhole[T whole](d *tensor.Dense, at int, out []int64) {
	for i, v := range tensor.Data[T](d)[at : at+len(out)] {
		out[i] = int64(v)
	}
}

func writeWhole[T whole](d *tensor.Dense, at int, in []int64) {
	to := tensor.Data[T](d)[at : at+len(in)]
	for i, v := range in {
		to[i] = T(v)
	}
}

// writeBits is writeWhole for types that do not fill the byte they lie in.
func writeBits[T whole](d *tensor.Dense, at int, in []int64) {
	to := tensor.Data[T](d)[at : at+len(in)]
	spare := 64 - d.Type().Bits()
	signed := d.Type().IsSigned()
	for i, v := range in {
		if signed {
			to[i] = T(v << spare >> spare)
		} else {
			to[i] = T(uint64(v) << spare >> spare)
		}
	}
}

func readBool(d *tensor.Dense, at int, out []int64) {
	for i, v := range tensor.Words[uint8](d)[at : at+len(out)] {
		out[i] = int64(v)
	}
}

func writeBool(d *tensor.Dense, at int, in []int64) {
	to := tensor.Data[bool](d)[at : at+len(in)]
	for i, v := range in {
		to[i] = v != 0
	}
}

// floatReader reads elements, at most size at once, as float64. Whole numbers that it cannot hold are
// rounded to nearest when float64 is the target, else to odd: the target's own
// rounding then gives what rounding once would have.
func floatReader(d *tensor.Dense, to tensor.Type, size int) func(at int, out []float64) {
	switch d.Type() {
	case tensor.Float32:
		return func(at int, out []float64) {
			for i, v := range tensor.Data[float32](d)[at : at+len(out)] {
				out[i] = float64(v)
			}
		}
	case tensor.Float64:
		return func(at int, out []float64) { copy(out, tensor.Data[float64](d)[at:]) }
	case tensor.Float16:
		return narrowReader[tensor.F16](d)
	case tensor.BFloat16:
		return narrowReader[tensor.BF16](d)
	case tensor.Float8E4M3FN:
		return narrowReader[tensor.E4M3FN](d)
	case tensor.Float8E4M3FNUZ:
		return narrowReader[tensor.E4M3FNUZ](d)
	case tensor.Float8E5M2:
		return narrowReader[tensor.E5M2](d)
	case tensor.Float8E5M2FNUZ:
		return narrowReader[tensor.E5M2FNUZ](d)
	case tensor.Float8E8M0:
		return narrowReader[tensor.E8M0](d)
	case tensor.Float4E2M1:
		return narrowReader[tensor.E2M1](d)
	case tensor.Uint64:
		return unsignedReader(d, to != tensor.Float64)
	}
	read := integerCodecs[d.Type()].read
	odd, block := to != tensor.Float64, make([]int64, size)
	return func(at int, out []float64) {
		read(d, at, block[:len(out)])
		for i, v := range block[:len(out)] {
			if odd {
				v = oddInt(v)
			}
			out[i] = float64(v)
		}
	}
}

func narrowReader[S narrowFloat](d *tensor.Dense) func(at int, out []float64) {
	return func(at int, out []float64) {
		for i, v := range tensor.Data[S](d)[at : at+len(out)] {
			out[i] = float64(v.Float32())
		}
	}
}

func unsignedReader(d *tensor.Dense, odd bool) func(at int, out []float64) {
	return func(at int, out []float64) {
		for i, v := range tensor.Data[uint64](d)[at : at+len(out)] {
			if odd {
				v = oddUint(v)
			}
			out[i] = float64(v)
		}
	}
}

// lostBits is how many of the 64 bits of a large number float64 has no room for.
const lostBits = 11

// oddUint clears the bits that float64 may not have room for, and leaves a trace
// of them in the lowest one that it has.
func oddUint(v uint64) uint64 {
	if v < 1<<53 || v&(1<<lostBits-1) == 0 {
		return v
	}
	return v>>lostBits<<lostBits | 1<<lostBits
}

func oddInt(v int64) int64 {
	if v < 0 && v != math.MinInt64 {
		return -int64(oddUint(uint64(-v)))
	}
	return int64(oddUint(uint64(v)))
}

// floatWriter writes float64s, at most size at once, as elements of d.
func floatWriter(d *tensor.Dense, how casting, size int) func(at int, in []float64) {
	switch d.Type() {
	case tensor.Float32:
		return encoder(d, func(v float64) float32 { return float32(v) })
	case tensor.Float64:
		return func(at int, in []float64) { copy(tensor.Data[float64](d)[at:], in) }
	case tensor.Float16:
		return encoder(d, tensor.F16FromFloat64)
	case tensor.BFloat16:
		return encoder(d, tensor.BF16FromFloat64)
	case tensor.Float8E4M3FN:
		return encoder(d, func(v float64) tensor.E4M3FN { return tensor.E4M3FNFromFloat64(v, how.saturate) })
	case tensor.Float8E4M3FNUZ:
		return encoder(d, func(v float64) tensor.E4M3FNUZ { return tensor.E4M3FNUZFromFloat64(v, how.saturate) })
	case tensor.Float8E5M2:
		return encoder(d, func(v float64) tensor.E5M2 { return tensor.E5M2FromFloat64(v, how.saturate) })
	case tensor.Float8E5M2FNUZ:
		return encoder(d, func(v float64) tensor.E5M2FNUZ { return tensor.E5M2FNUZFromFloat64(v, how.saturate) })
	case tensor.Float8E8M0:
		return encoder(d, func(v float64) tensor.E8M0 { return tensor.E8M0FromFloat64(v, how.mode, how.saturate) })
	case tensor.Float4E2M1:
		return encoder(d, tensor.E2M1FromFloat64)
	case tensor.Bool:
		return encoder(d, func(v float64) bool { return v != 0 })
	}
	write, to, block := integerCodecs[d.Type()].write, d.Type(), make([]int64, size)
	return func(at int, in []float64) {
		for i, v := range in {
			block[i] = truncate(v, to)
		}
		write(d, at, block[:len(in)])
	}
}

func encoder[T tensor.Element](d *tensor.Dense, f func(float64) T) func(at int, in []float64) {
	return func(at int, in []float64) {
		out := tensor.Data[T](d)[at : at+len(in)]
		for i, v := range in {
			out[i] = f(v)
		}
	}
}

// truncate gives the low bits of the whole part of v: see castAs.
func truncate(v float64, to tensor.Type) int64 {
	switch {
	case v > -1<<63-1 && v < 1<<63:
		n := int64(v)
		if to == tensor.Int32 && n != int64(int32(n)) {
			return math.MinInt32
		}
		return n
	case to == tensor.Uint64 && v >= 1<<63 && v < 1<<64:
		return int64(uint64(v))
	case to == tensor.Int32:
		return math.MinInt32
	}
	return math.MinInt64
}

// checkCast refuses, while folding, what the specification leaves open.
func (c *Call) checkCast(d *tensor.Dense, to tensor.Type) error {
	if !c.Strict() || !(d.Type().IsFloat() && to.IsInteger()) && to != tensor.Float8E8M0 && to != tensor.Float4E2M1 {
		return nil
	}
	values, ok := d.Float64s()
	if !ok {
		return c.noKernel(d.Type())
	}
	low, high := castRange(to)
	for _, v := range values {
		if !(v > low && v < high) {
			return c.Undefined("%v as %s", v, to)
		}
	}
	return nil
}

// castRange gives the open interval of the numbers whose conversion is defined.
func castRange(to tensor.Type) (low, high float64) {
	switch {
	case to == tensor.Float4E2M1:
		return math.Inf(-1), math.Inf(1)
	case to == tensor.Float8E8M0:
		return 0, math.Inf(1)
	case to.IsSigned():
		half := math.Ldexp(1, to.Bits()-1)
		if to.Bits() == 64 {
			return math.Nextafter(-half, math.Inf(-1)), half
		}
		return -half - 1, half
	}
	return -1, math.Ldexp(1, to.Bits())
}
