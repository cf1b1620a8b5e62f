package eval

import (
	"math"
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// quantizationOperators change between numbers and their quantised form.
var quantizationOperators = []operator{
	{name: "DequantizeLinear", since: 10, run: dequantizeLinear},
	{name: "DynamicQuantizeLinear", since: 11, run: dynamicQuantizeLinear},
	{name: "QuantizeLinear", since: 10, run: quantizeLinear},
}

// granularity says which scale belongs to which element of x. It cuts x into runs,
// each of neighbours that have one scale, or scales that are neighbours as well.
type granularity struct {
	// Runs of length elements follow each other without gaps; the last of every
	// line may be cut short where lines of lineLength end.
	runs, length, lineLength, perLine int
	scale                             func(run int) int // place of the first element's scale
	step                              int               // from one element's scale to the next: 0 or 1
}

// run gives the first element of run r, how many it has, and where its scales start.
func (g granularity) run(r int) (first, n, scale int) {
	line, k := r/g.perLine, r%g.perLine
	first = line*g.lineLength + k*g.length
	return first, min(g.length, (line+1)*g.lineLength-first), g.scale(r)
}

// granularityOf finds out how scale applies to x: one for all, one for each index
// of the axis, or one for each block along it.
func granularityOf(c *Call, x, scale []int) (granularity, error) {
	g, err := cutRuns(c, x, scale)
	if product(x) == 0 {
		g.runs = 0 // of no elements each
	}
	return g, err
}

func cutRuns(c *Call, x, scale []int) (granularity, error) {
	total := product(x)
	if len(scale) == 0 || len(scale) == 1 && scale[0] == 1 && (len(x) <= 1 || c.Int("block_size", 0) == 0) {
		const chunk = 1 << 12 // so that the runs can be shared out
		return granularity{
			runs: (total + chunk - 1) / chunk, length: chunk, lineLength: max(total, 1), perLine: (total + chunk - 1) / chunk,
			scale: func(int) int { return 0 },
		}, nil
	}
	axis, err := normalAxis(c, c.Int("axis", 1), len(x))
	if err != nil {
		return granularity{}, err
	}
	outer, dim, inner := product(x[:axis]), x[axis], product(x[axis+1:])
	block := c.Int("block_size", 0)
	switch {
	case block < 0:
		return granularity{}, c.Errorf("attribute \"block_size\" is %d", block)
	case block > 0:
		return blocks(c, x, scale, axis, int(min(block, int64(max(dim, 1)))))
	case len(scale) != 1 || scale[0] != dim:
		return granularity{}, c.Errorf("scales of shape %v fit neither %v nor its axis %d", scale, x, axis)
	case inner == 1:
		return granularity{runs: outer, length: dim, lineLength: dim, perLine: 1, scale: func(int) int { return 0 }, step: 1}, nil
	}
	return granularity{runs: outer * dim, length: inner, lineLength: inner, perLine: 1, scale: func(r int) int { return r % dim }}, nil
}

// blocks is the granularity of blocked quantisation: every block elements along
// axis share a scale.
func blocks(c *Call, x, scale []int, axis, block int) (granularity, error) {
	outer, dim, inner := product(x[:axis]), x[axis], product(x[axis+1:])
	count := (dim + block - 1) / block
	want := slices.Clone(x)
	want[axis] = count
	if !slices.Equal(scale, want) {
		return granularity{}, c.Errorf("scales have shape %v; blocks of %d along axis %d of %v need %v", scale, block, axis, x, want)
	}
	if inner == 1 {
		return granularity{
			runs: outer * count, length: block, lineLength: dim, perLine: max(count, 1), scale: func(r int) int { return r },
		}, nil
	}
	return granularity{
		runs: outer * dim, length: inner, lineLength: inner, perLine: 1, step: 1,
		scale: func(r int) int { return (r/dim*count + r%dim/block) * inner },
	}, nil
}

// each calls visit for all runs, on several cores when there is much to do.
func (g granularity) each(c *Call, visit func(first, n, scale int)) {
	c.Parallel(g.runs, elementGrain/max(g.length, 1)+1, func(begin, end int) {
		for r := begin; r < end; r++ {
			visit(g.run(r))
		}
	})
}

// zeroPoints gives the zero point input, which must have the shape of the scales,
// as numbers; nil when it is left out.
func zeroPoints(c *Call, scale *tensor.Dense) ([]float32, *tensor.Dense, error) {
	if !c.Has(2) {
		return nil, nil, nil
	}
	d, err := c.Tensor(2)
	if err != nil {
		return nil, nil, err
	}
	if d.Len() != scale.Len() {
		return nil, nil, c.Errorf("zero points have shape %v, scales %v", d.Shape(), scale.Shape())
	}
	values, err := quantizedNumbers(c, d)
	return values, d, err
}

// quantizedNumbers gives elements of a quantised type, all of which float32 holds
// exactly (32-bit integers apart).
func quantizedNumbers(c *Call, d *tensor.Dense) ([]float32, error) {
	if values, ok := d.Float32s(); ok {
		return values, nil
	}
	integers, ok := d.Int64s()
	if !ok {
		return nil, c.Errorf("%s is no quantised type", d.Type())
	}
	values := make([]float32, len(integers))
	for i, v := range integers {
		values[i] = float32(v)
	}
	return values, nil
}

// dequantizeLinear is (x - zero point)·scale, computed in float32 and rounded once
// to the type of the scale, or to output_dtype.
func dequantizeLinear(c *Call) error {
	x, err := c.Tensor(0)
	if err != nil {
		return err
	}
	scale, err := c.Tensor(1)
	if err != nil {
		return err
	}
	g, err := granularityOf(c, x.Shape(), scale.Shape())
	if err != nil {
		return err
	}
	scales, ok := scale.Float32s()
	if !ok {
		return c.Errorf("scales are %s", scale.Type())
	}
	zeros, zero, err := zeroPoints(c, scale)
	if err != nil {
		return err
	}
	if zero != nil && zero.Type() != x.Type() {
		return c.Errorf("x is %s, its zero point %s", x.Type(), zero.Type())
	}
	if zeros == nil {
		zeros = make([]float32, len(scales))
	}
	read := quantizedReaders[x.Type()]
	if read == nil {
		return c.Errorf("%s is no quantised type", x.Type())
	}
	typ := scale.Type()
	if to := tensor.Type(c.Int("output_dtype", 0)); to != tensor.Undefined {
		typ = to
	}
	if typ != tensor.Float32 && typ != tensor.Float16 && typ != tensor.BFloat16 {
		return c.Errorf("the result would be %s", typ)
	}
	y, err := newResult[float32](c, 0, typ, x.Shape()...)
	if err != nil {
		return err
	}
	g.each(c, func(first, n, at int) {
		dst := y.data[first : first+n]
		read(x, first, dst)
		if g.step == 0 {
			s, z := scales[at], zeros[at]
			for i, v := range dst {
				dst[i] = (v - z) * s
			}
			return
		}
		scales, zeros := scales[at:at+n], zeros[at:at+n]
		for i, v := range dst {
			dst[i] = (v - zeros[i]) * scales[i]
		}
	})
	return y.finish()
}

// quantizedReaders copy elements from position first on to dst.
var quantizedReaders = map[tensor.Type]func(x *tensor.Dense, first int, dst []float32){
	tensor.Int8: readIntegers[int8], tensor.Uint8: readIntegers[uint8], tensor.Int16: readIntegers[int16],
	tensor.Uint16: readIntegers[uint16], tensor.Int32: readIntegers[int32], tensor.Int4: readIntegers[tensor.I4],
	tensor.Uint4: readIntegers[tensor.U4], tensor.Int2: readIntegers[tensor.I2], tensor.Uint2: readIntegers[tensor.U2],
	tensor.Float8E4M3FN: readFloats[tensor.E4M3FN], tensor.Float8E4M3FNUZ: readFloats[tensor.E4M3FNUZ],
	tensor.Float8E5M2: readFloats[tensor.E5M2], tensor.Float8E5M2FNUZ: readFloats[tensor.E5M2FNUZ],
	tensor.Float4E2M1: readFloats[tensor.E2M1],
}

func readIntegers[T interface {
	tensor.Element
	~int8 | ~uint8 | ~int16 | ~uint16 | ~int32
}](x *tensor.Dense, first int, dst []float32) {
	src := tensor.Data[T](x)[first:]
	for i := range dst {
		dst[i] = float32(src[i])
	}
}

func readFloats[T interface {
	tensor.Element
	Float32() float32
}](x *tensor.Dense, first int, dst []float32) {
	src := tensor.Data[T](x)[first:]
	for i := range dst {
		dst[i] = src[i].Float32()
	}
}

// quantizeLinear is x/scale, rounded to the nearest even integer, plus the zero
// point, kept within the type. The quotient has the precision of the scale's type,
// or of attribute precision. Float types are not rounded to an integer first; their
// zero point is added as it is. NaN, which no integer type has, is undefined; ours
// becomes the type's least number.
func quantizeLinear(c *Call) error {
	x, err := c.Tensor(0)
	if err != nil {
		return err
	}
	scale, err := c.Tensor(1)
	if err != nil {
		return err
	}
	g, err := granularityOf(c, x.Shape(), scale.Shape())
	if err != nil {
		return err
	}
	zeros, zero, err := zeroPoints(c, scale)
	if err != nil {
		return err
	}
	typ := tensor.Type(c.Int("output_dtype", 0))
	switch {
	case zero != nil && typ != tensor.Undefined && typ != zero.Type():
		return c.Errorf("attribute \"output_dtype\" says %s, the zero point is %s", typ, zero.Type())
	case zero != nil:
		typ = zero.Type()
	case typ == tensor.Undefined:
		typ = tensor.Uint8
	}
	write := quantizedWriters[typ]
	if write == nil {
		return c.Errorf("%s is no type to quantise to", typ)
	}
	if zeros == nil {
		zeros = make([]float32, scale.Len())
	}
	divide, err := newDivision(c, x, scale)
	if err != nil {
		return err
	}
	y, err := c.New(typ, x.Shape()...)
	if err != nil {
		return err
	}
	c.Outputs[0] = y
	if c.Strict() && !isFloat8(typ) && divide.givesNaN(g) {
		return c.Undefined("NaN as %s", typ)
	}
	saturate := c.Int("saturate", 1) != 0
	g.each(c, func(first, n, at int) {
		var buffer [512]float32
		for i := 0; i < n; i += len(buffer) {
			quotients := buffer[:min(len(buffer), n-i)]
			divide.run(quotients, first+i, at+i*g.step, g.step)
			write(y, first+i, quotients, zeros[at+i*g.step:], g.step, saturate)
		}
	})
	return nil
}

func isFloat8(t tensor.Type) bool { return t.IsFloat() && t != tensor.Float4E2M1 }

// quantizedWriters store quotients, to which zero points are added, from position
// first on.
var quantizedWriters = map[tensor.Type]func(y *tensor.Dense, first int, quotients, zeros []float32, step int, saturate bool){
	tensor.Int8: writeIntegers[int8], tensor.Uint8: writeIntegers[uint8], tensor.Int16: writeIntegers[int16],
	tensor.Uint16: writeIntegers[uint16], tensor.Int4: writeIntegers[tensor.I4], tensor.Uint4: writeIntegers[tensor.U4],
	tensor.Int2: writeIntegers[tensor.I2], tensor.Uint2: writeIntegers[tensor.U2],
	tensor.Float8E4M3FN: writeFloats(tensor.E4M3FNFrom), tensor.Float8E4M3FNUZ: writeFloats(tensor.E4M3FNUZFrom),
	tensor.Float8E5M2: writeFloats(tensor.E5M2From), tensor.Float8E5M2FNUZ: writeFloats(tensor.E5M2FNUZFrom),
	tensor.Float4E2M1: writeFloats(func(f float32, _ bool) tensor.E2M1 { return tensor.E2M1From(f) }),
}

// roundingBias is 1.5·2^23. Adding it to a float32 of small magnitude rounds that to
// an integer, ties to even, which then is the difference of the bit patterns.
const roundingBias = 12582912

func writeIntegers[T interface {
	tensor.Element
	~int8 | ~uint8 | ~int16 | ~uint16
}](y *tensor.Dense, first int, quotients, zeros []float32, step int, _ bool) {
	dst := tensor.Data[T](y)[first : first+len(quotients)]
	low, high := integerLimits(y.Type())
	if step == 0 {
		roundInto(dst, quotients, float32(low), float32(high), zeros[0])
		return
	}
	for i := range dst {
		roundInto(dst[i:i+1], quotients[i:i+1], float32(low), float32(high), zeros[i])
	}
}

// roundInto rounds quotients, adds zero, and keeps the sum between low and high,
// which have few enough digits for the bias.
func roundInto[T ~int8 | ~uint8 | ~int16 | ~uint16](dst []T, quotients []float32, low, high, zero float32) {
	least, most := low-zero, high-zero
	shift := int32(zero) - int32(math.Float32bits(roundingBias))
	for i, q := range quotients {
		if !(q >= least) {
			q = least
		} else if q > most {
			q = most
		}
		dst[i] = T(int32(math.Float32bits(q+roundingBias)) + shift)
	}
}

func writeFloats[T tensor.Element](from func(f float32, saturate bool) T) func(y *tensor.Dense, first int, quotients, zeros []float32, step int, saturate bool) {
	return func(y *tensor.Dense, first int, quotients, zeros []float32, step int, saturate bool) {
		dst := tensor.Data[T](y)[first:]
		for i, q := range quotients {
			if zero := zeros[i*step]; zero != 0 {
				q += zero
			}
			dst[i] = from(q, saturate)
		}
	}
}

// division gives quotients of x by scales in a stated precision.
type division struct {
	x      *tensor.Dense
	read   func(x *tensor.Dense, first int, dst []float32)
	scales []float32
	round  func(float32) float32 // to the precision; nil for float32
}

func newDivision(c *Call, x, scale *tensor.Dense) (*division, error) {
	d := &division{x: x, read: dividendReaders[x.Type()]}
	if d.read == nil {
		return nil, c.Errorf("QuantizeLinear does not take %s", x.Type())
	}
	var err error
	if d.scales, err = quantizedNumbers(c, scale); err != nil {
		return nil, err
	}
	precision := tensor.Type(c.Int("precision", 0))
	if precision == tensor.Undefined {
		precision = scale.Type()
	}
	switch precision {
	case tensor.Float16:
		d.round = func(f float32) float32 { return tensor.F16From(f).Float32() }
	case tensor.BFloat16:
		d.round = func(f float32) float32 { return tensor.BF16From(f).Float32() }
	case tensor.Float32, tensor.Int32, tensor.Float8E8M0: // the latter two say nothing of a quotient
	default:
		return nil, c.Errorf("the division would be in %s", precision)
	}
	return d, nil
}

var dividendReaders = map[tensor.Type]func(x *tensor.Dense, first int, dst []float32){
	tensor.Float32: func(x *tensor.Dense, first int, dst []float32) { copy(dst, tensor.Data[float32](x)[first:]) },
	tensor.Float16: readFloats[tensor.F16], tensor.BFloat16: readFloats[tensor.BF16], tensor.Int32: readIntegers[int32],
}

// run divides elements of x from position first on.
func (d *division) run(dst []float32, first, scale, step int) {
	d.read(d.x, first, dst)
	if d.round != nil {
		for i, v := range dst {
			dst[i] = d.round(d.round(v) / d.round(d.scales[scale+i*step]))
		}
		return
	}
	if step == 0 {
		s := d.scales[scale]
		for i, v := range dst {
			dst[i] = v / s
		}
		return
	}
	for i, s := range d.scales[scale : scale+len(dst)] {
		dst[i] /= s
	}
}

// givesNaN says whether a quotient is no number.
func (d *division) givesNaN(g granularity) bool {
	quotients := make([]float32, g.length)
	for r := range g.runs {
		first, n, scale := g.run(r)
		d.run(quotients[:n], first, scale, g.step)
		if slices.ContainsFunc(quotients[:n], func(q float32) bool { return q != q }) {
			return true
		}
	}
	return false
}

// dynamicQuantizeLinear chooses scale and zero point so that uint8 covers all of x,
// and 0. Where x has nothing but zeros, or no elements, the formula divides by 0;
// ours has scale 1 then, as ONNX Runtime. NaN in x is undefined as well.
func dynamicQuantizeLinear(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	x := tensor.Data[float32](d)
	if x == nil {
		return c.Errorf("DynamicQuantizeLinear does not take %s", d.Type())
	}
	low, high, isNumber := leastAndMost(c, x)
	if !isNumber || low == high || math.IsInf(float64(high-low), 1) {
		if err := c.Undefined("no scale for numbers from %v to %v", low, high); err != nil {
			return err
		}
	}
	scale := float32(1)
	if low != high {
		scale = (high - low) / 255
	}
	zero := []uint8{0}
	roundInto(zero, []float32{-low / scale}, 0, 255, 0)
	y, err := Output[uint8](c, 0, d.Shape()...)
	if err != nil {
		return err
	}
	c.Parallel(len(y), elementGrain, func(first, last int) {
		var buffer [512]float32
		for at := first; at < last; at += len(buffer) {
			quotients := buffer[:min(len(buffer), last-at)]
			for i, v := range x[at : at+len(quotients)] {
				quotients[i] = v / scale
			}
			roundInto(y[at:], quotients, 0, 255, float32(zero[0]))
		}
	})
	c.scalars(1, tensor.Scalar(scale), tensor.Scalar(zero[0]))
	return nil
}

// leastAndMost is the least and greatest number of x and 0; isNumber is false when a
// NaN is among them.
func leastAndMost(c *Call, x []float32) (low, high float32, isNumber bool) {
	const piece = 1 << 14
	pieces := (len(x) + piece - 1) / piece
	found := make([][2]float32, pieces)
	c.Parallel(pieces, 1, func(first, last int) {
		for p := first; p < last; p++ {
			var low, high float32
			for _, v := range x[p*piece : min(len(x), (p+1)*piece)] {
				low, high = min(low, v), max(high, v)
			}
			found[p] = [2]float32{low, high}
		}
	})
	for _, f := range found {
		low, high = min(low, f[0]), max(high, f[1])
	}
	return low, high, low == low
}

// scalars sets outputs from first on, as far as the node has them.
func (c *Call) scalars(first int, values ...*tensor.Dense) {
	for i, v := range values {
		if first+i < len(c.Outputs) {
			c.own(v)
			c.Outputs[first+i] = v
		}
	}
}
