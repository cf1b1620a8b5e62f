package eval

import (
	"math"

	"github.com/npuctl/npuctl/onnx/eval/internal/elementary"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// signalOperators prepare sound and other signals, and take them to frequencies.
var signalOperators = []operator{
	{name: "BlackmanWindow", since: 17, run: windowOf(0.42, -0.5, 0.08)},
	{name: "DFT", since: 17, run: dft17},
	{name: "DFT", since: 20, run: dft20},
	{name: "HammingWindow", since: 17, run: windowOf(25./46, -21./46)},
	{name: "HannWindow", since: 17, run: windowOf(0.5, -0.5)},
	{name: "MelWeightMatrix", since: 17, run: melWeightMatrix},
	{name: "STFT", since: 17, run: stft},
}

// windowOf is a window that is a sum of cosines: coefficients[k]·cos(2πkn/N), where N
// is the size of a periodic window, and one less for a symmetric one. A symmetric
// window of one point would divide by 0; ours has the period of a single point.
func windowOf(coefficients ...float64) Kernel {
	return func(c *Call) error {
		size, err := c.count(0)
		if err != nil {
			return err
		}
		period := size
		if c.Int("periodic", 1) == 0 {
			period--
		}
		if period == 0 && size > 0 {
			if err := c.Undefined("a symmetric window of one point"); err != nil {
				return err
			}
			period = 1
		}
		values, err := c.New(tensor.Float64, size)
		if err != nil {
			return err
		}
		for n := range tensor.Data[float64](values) {
			var sum float64
			for k, coefficient := range coefficients {
				_, cosine := elementary.SincosTurn(k*n, period)
				sum += float64(coefficient * cosine)
			}
			tensor.Data[float64](values)[n] = sum
		}
		return c.convertedOutput(values)
	}
}

// count gives input i, one number that counts things.
func (c *Call) count(i int) (int, error) {
	values, err := c.IntsInput(i)
	if err != nil {
		return 0, err
	}
	if len(values) != 1 || values[0] < 0 || values[0] > tensor.MaxElements {
		return 0, c.Errorf("input %d is %v, not one number that counts something", i, values)
	}
	return int(values[0]), nil
}

// number gives input i, one number of any real type.
func (c *Call) number(i int) (float64, error) {
	d, err := c.Tensor(i)
	if err != nil {
		return 0, err
	}
	values, ok := d.Float64s()
	if !ok || len(values) != 1 {
		return 0, c.Errorf("input %d is %s%v, not one number", i, d.Type(), d.Shape())
	}
	return values[0], nil
}

// convertedOutput sets output 0 to numbers in the type of attribute
// output_datatype. Integers are truncated, as Cast does.
func (c *Call) convertedOutput(values *tensor.Dense) error {
	typ := tensor.Type(c.Int("output_datatype", int64(tensor.Float32)))
	if !typ.IsFloat() && !typ.IsInteger() {
		return c.Errorf("attribute \"output_datatype\" is %s", typ)
	}
	return c.setOutput(c.cast(values, typ))
}

// melWeightMatrix has a triangle of weights for each mel band. The corners are
// spaced evenly on the mel scale, over one step more than the specification's
// picture suggests, and rounded down to bins of the spectrum, as the reference
// implementation does. A band whose corners fall outside the spectrum is refused.
func melWeightMatrix(c *Call) error {
	var counts [3]int
	for i := range counts {
		var err error
		if counts[i], err = c.count(i); err != nil {
			return err
		}
	}
	bands, length, rate := counts[0], counts[1], counts[2]
	low, err := c.number(3)
	if err != nil {
		return err
	}
	high, err := c.number(4)
	if err != nil {
		return err
	}
	bins := length/2 + 1
	values, err := c.New(tensor.Float64, bins, bands)
	if err != nil {
		return err
	}
	corner := melCorners(low, high, bands, length, rate)
	for band := range bands {
		left, middle, right := corner(band), corner(band+1), corner(band+2)
		if !(0 <= left && left <= middle && middle <= right && right <= float64(bins) && middle < float64(bins)) {
			return c.Errorf("band %d from bin %v over %v to %v is not within %d bins", band, left, middle, right, bins)
		}
		triangle(tensor.Data[float64](values)[band:], bands, int(left), int(middle), int(right))
	}
	return c.convertedOutput(values)
}

// melCorners gives the bin of corner i of the bands between two frequencies.
func melCorners(low, high float64, bands, length, rate int) func(i int) float64 {
	mel := func(hertz float64) float64 { return float64(2595 / math.Ln10 * elementary.Log1p(hertz/700)) }
	first := mel(low)
	step := (mel(high) - first) / float64(bands+2)
	return func(i int) float64 {
		hertz := 700 * elementary.Expm1((float64(float64(i)*step)+first)*(math.Ln10/2595))
		return math.Floor(float64(length+1) * hertz / float64(rate))
	}
}

// triangle fills a column, whose elements are step apart, with a ramp up to 1 at
// middle and down to 0 at right.
func triangle(column []float64, step, left, middle, right int) {
	for j := left; j <= middle; j++ {
		column[j*step] = 1
		if middle > left {
			column[j*step] = float64(j-left) / float64(middle-left)
		}
	}
	for j := middle; j < right; j++ {
		column[j*step] = float64(right-j) / float64(right-middle)
	}
}
