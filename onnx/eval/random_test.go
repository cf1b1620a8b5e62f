package eval

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// randomCases name an operator, and the mean and deviation of many draws.
var randomCases = []struct {
	node            string
	mean, deviation float64
}{
	{"y = RandomUniform <shape = [100, 100]> ()", 0.5, math.Sqrt(1. / 12)},
	{"y = RandomUniform <shape = [10000], low = -2.0, high = 4.0, seed = 3.0> ()", 1, math.Sqrt(3)},
	{"y = RandomUniformLike <dtype = 11> (many)", 0.5, math.Sqrt(1. / 12)},
	{"y = RandomNormal <shape = [10000], mean = 2.0, scale = 3.0> ()", 2, 3},
	{"y = RandomNormalLike (many)", 0, 1},
	{"y = Bernoulli <dtype = 6> (many)", 0.25, math.Sqrt(0.25 * 0.75)},
	{"y = Multinomial <sample_size = 10000, dtype = 7> (logarithms)", 0.75, math.Sqrt(0.25 * 0.75)},
}

const randomModel = `<opset_import: ["": 22]> g () => (y) <int64 n = {10000}, float quarter = {0.25}, int64[1] shape = {10000}, float[1,2] logarithms = {0, 1.0986123}> {
	many = Expand (quarter, shape)
	%s }`

func TestRandomNumbers(t *testing.T) {
	for _, c := range randomCases {
		t.Run(c.node, func(t *testing.T) {
			source := fmt.Sprintf(randomModel, c.node)
			got, err := runText(t, source, Options{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			values, _ := got.(*tensor.Dense).Float64s()
			var sum, squares float64
			for _, v := range values {
				sum += v
				squares += (v - c.mean) * (v - c.mean)
			}
			n := float64(len(values))
			if n != 10000 || math.Abs(sum/n-c.mean) > 4*c.deviation/math.Sqrt(n) {
				t.Errorf("the mean of %v draws is %v, want about %v", n, sum/n, c.mean)
			}
			if d := math.Sqrt(squares / n); math.Abs(d/c.deviation-1) > 0.05 {
				t.Errorf("the deviation is %v, want about %v", d, c.deviation)
			}
			again, err := runText(t, source, Options{}, nil)
			if err != nil || !tensor.EqualBits(got.(*tensor.Dense), again.(*tensor.Dense)) {
				t.Errorf("a second run draws other numbers (%v)", err)
			}
		})
	}
}

func TestRandomNumbersAreNotFolded(t *testing.T) {
	c := operatorCase{opset: 22, stored: "float[1] p = {1}", node: "y = Bernoulli (p)"}
	if _, err := c.fold(t); !errors.Is(err, ErrUndefined) {
		t.Errorf("folding gives the error %v", err)
	}
}
