package eval

import (
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/npuctl/npuctl/onnx/eval/internal/elementary"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// randomOperators draw numbers. The numbers are ours alone: no two runtimes draw
// the same ones, even from one seed. They follow from the attribute seed, or from
// the name of the node's output where that is left out, so that every run draws the
// same. Folding leaves these operators alone.
var randomOperators = []operator{
	{name: "Bernoulli", since: 15, run: bernoulli},
	{name: "Multinomial", since: 7, run: multinomial},
	{name: "RandomNormal", since: 1, run: random(normalNumbers, shapeAttribute)},
	{name: "RandomNormalLike", since: 1, run: random(normalNumbers, shapeOfInput)},
	{name: "RandomUniform", since: 1, run: random(uniformNumbers, shapeAttribute)},
	{name: "RandomUniformLike", since: 1, run: random(uniformNumbers, shapeOfInput)},
}

// dice gives numbers from 0 up to 1.
type dice struct{ source *rand.PCG }

func (c *Call) dice() (*dice, error) {
	if err := c.Undefined("numbers drawn at random"); err != nil {
		return nil, err
	}
	if a := c.Attribute("seed"); a != nil {
		return &dice{rand.NewPCG(uint64(math.Float32bits(a.Float())), 0)}, nil
	}
	name := fnv.New64a()
	if v := c.Node.Output(0); v != nil {
		name.Write([]byte(v.Name()))
	}
	return &dice{rand.NewPCG(name.Sum64(), 1)}, nil
}

// uniform is below 1 by at least 2^-53.
func (d *dice) uniform() float64 { return float64(d.source.Uint64()>>11) / (1 << 53) }

// normal has mean 0 and deviation 1, by the method of Box and Muller.
func (d *dice) normal() float64 {
	radius := math.Sqrt(-2 * elementary.Log(1-d.uniform()))
	return radius * elementary.Cos(2*math.Pi*d.uniform())
}

func uniformNumbers(c *Call, d *dice) func() float64 {
	low, high := float64(c.Float("low", 0)), float64(c.Float("high", 1))
	return func() float64 { return low + float64(d.uniform()*(high-low)) }
}

func normalNumbers(c *Call, d *dice) func() float64 {
	mean, scale := float64(c.Float("mean", 0)), float64(c.Float("scale", 1))
	return func() float64 { return mean + float64(scale*d.normal()) }
}

// shapeAttribute gives the shape that an attribute states, and float32 by default.
func shapeAttribute(c *Call) ([]int, tensor.Type, error) {
	dims, _ := c.Ints("shape")
	shape, err := toInts(c, dims)
	return shape, tensor.Float32, err
}

// shapeOfInput gives the shape of input 0, and its type by default.
func shapeOfInput(c *Call) ([]int, tensor.Type, error) {
	d, err := c.Tensor(0)
	if err != nil {
		return nil, tensor.Undefined, err
	}
	return d.Shape(), d.Type(), nil
}

// random fills a shape with numbers.
func random(numbers func(c *Call, d *dice) func() float64, shapeOf func(c *Call) ([]int, tensor.Type, error)) Kernel {
	return func(c *Call) error {
		shape, typ, err := shapeOf(c)
		if err != nil {
			return err
		}
		typ = tensor.Type(c.Int("dtype", int64(typ)))
		if !typ.IsFloat() {
			return c.Errorf("random numbers of type %s", typ)
		}
		d, err := c.dice()
		if err != nil {
			return err
		}
		return c.drawn(typ, shape, numbers(c, d))
	}
}

// drawn sets output 0 to numbers, one after the other, in a type.
func (c *Call) drawn(typ tensor.Type, shape []int, next func() float64) error {
	values, err := c.New(tensor.Float64, shape...)
	if err != nil {
		return err
	}
	for i := range tensor.Data[float64](values) {
		tensor.Data[float64](values)[i] = next()
	}
	return c.setOutput(c.cast(values, typ))
}

// bernoulli gives 1 with the probability that each element of the input states, else 0.
func bernoulli(c *Call) error {
	x, err := c.Tensor(0)
	if err != nil {
		return err
	}
	probabilities, ok := x.Float64s()
	typ := tensor.Type(c.Int("dtype", int64(x.Type())))
	if !ok || !typ.IsFloat() && !typ.IsInteger() && typ != tensor.Bool {
		return c.Errorf("Bernoulli of %s to %s", x.Type(), typ)
	}
	d, err := c.dice()
	if err != nil {
		return err
	}
	i := 0
	return c.drawn(typ, x.Shape(), func() float64 {
		i++
		if d.uniform() < probabilities[i-1] {
			return 1
		}
		return 0
	})
}

// multinomial draws classes, whose probabilities are given by their logarithms up
// to a constant, with replacement.
func multinomial(c *Call) error {
	x, err := c.Tensor(0)
	if err != nil {
		return err
	}
	logarithms, ok := x.Float64s()
	typ := tensor.Type(c.Int("dtype", int64(tensor.Int32)))
	if !ok || x.Rank() != 2 || typ != tensor.Int32 && typ != tensor.Int64 {
		return c.Errorf("classes of type %s drawn by %s%v", typ, x.Type(), x.Shape())
	}
	samples, err := toInts(c, []int64{c.Int("sample_size", 1)})
	if err != nil {
		return err
	}
	classes := x.Shape()[1]
	if classes == 0 && x.Shape()[0] > 0 {
		return c.Errorf("no classes to draw from")
	}
	d, err := c.dice()
	if err != nil {
		return err
	}
	drawn := 0
	var limits []float64
	return c.drawn(typ, []int{x.Shape()[0], samples[0]}, func() float64 {
		if drawn%samples[0] == 0 {
			at := drawn / samples[0] * classes
			limits = cumulated(logarithms[at : at+classes])
		}
		drawn++
		point := d.uniform() * limits[classes-1]
		for k, limit := range limits {
			if point < limit {
				return float64(k)
			}
		}
		return float64(classes - 1)
	})
}

// cumulated gives the sums of the first probabilities, up to a common factor.
func cumulated(logarithms []float64) []float64 {
	most := logarithms[0]
	for _, v := range logarithms {
		most = max(most, v)
	}
	sums := make([]float64, len(logarithms))
	var sum float64
	for k, v := range logarithms {
		sum += elementary.Exp(v - most)
		sums[k] = sum
	}
	return sums
}
