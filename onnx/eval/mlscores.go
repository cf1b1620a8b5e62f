package eval

import (
	"math"

	"github.com/npuctl/npuctl/onnx/eval/internal/elementary"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// scoreTransform changes the scores of one row in place: attribute post_transform.
type scoreTransform func(scores []float64)

var scoreTransforms = map[string]scoreTransform{
	"NONE":         func([]float64) {},
	"LOGISTIC":     func(scores []float64) { mapScores(scores, elementary.Sigmoid) },
	"PROBIT":       func(scores []float64) { mapScores(scores, probit) },
	"SOFTMAX":      softmaxScores,
	"SOFTMAX_ZERO": softmaxNonzero,
}

func (c *Call) postTransform() (name string, f scoreTransform, err error) {
	name = c.String("post_transform", "NONE")
	f = scoreTransforms[name]
	if f == nil {
		return "", nil, c.Errorf("attribute \"post_transform\" is %q", name)
	}
	return name, f, nil
}

// regressionTransform is the transform of a regressor's results. Of a single result
// runtimes leave all transforms but PROBIT out, against the letter of the
// specification; so do we, and folding leaves such a node alone.
func (c *Call) regressionTransform(results int) (scoreTransform, error) {
	name, f, err := c.postTransform()
	if err != nil || results > 1 || name == "NONE" || name == "PROBIT" {
		return f, err
	}
	return scoreTransforms["NONE"], c.Undefined("post_transform %s of a single number", name)
}

// twoScores makes the scores of two classes of the one that says how much speaks
// for the second: with a sign, as a difference from 0, or as a share of 1.
func twoScores(s float64, transform string, signed bool) []float64 {
	switch {
	case transform == "LOGISTIC":
		return []float64{elementary.Sigmoid(-s), elementary.Sigmoid(s)}
	case transform == "PROBIT":
		s = probit(s)
	}
	if signed {
		return []float64{-s, s}
	}
	return []float64{1 - s, s}
}

// positive is the class, 1 or 0, that a score speaks for.
func positive(s float64) int {
	if s > 0 {
		return 1
	}
	return 0
}

func mapScores(scores []float64, f func(float64) float64) {
	for i, v := range scores {
		scores[i] = f(v)
	}
}

func softmaxScores(scores []float64) {
	most := math.Inf(-1)
	for _, v := range scores {
		most = max(most, v)
	}
	var sum float64
	for i, v := range scores {
		scores[i] = elementary.Exp(v - most)
		sum += scores[i]
	}
	for i := range scores {
		scores[i] /= sum
	}
}

// softmaxNonzero is softmax of the scores that are not 0; those that are stay so.
func softmaxNonzero(scores []float64) {
	const zero = 1e-7 // what runtimes take for 0
	most := math.Inf(-1)
	for _, v := range scores {
		most = max(most, v)
	}
	var sum float64
	for i, v := range scores {
		if math.Abs(v) > zero {
			scores[i] = elementary.Exp(v - most)
			sum += scores[i]
		}
	}
	for i, v := range scores {
		if sum != 0 {
			scores[i] = v / sum
		}
	}
}

// probit is the number below which a normal distribution lies with probability p.
func probit(p float64) float64 { return math.Sqrt2 * inverseErf(2*p-1) }

// inverseErf solves erf(y) = x, by Newton's steps from a rough start; the slope of
// erf is 2/√π·e^(-y²). ±1 have no solution but infinity, what lies beyond none.
func inverseErf(x float64) float64 {
	switch {
	case math.Abs(x) > 1 || x != x:
		return math.NaN()
	case math.Abs(x) == 1:
		return math.Inf(int(x))
	}
	// Winitzki's approximation, good for three digits.
	const a = 0.147
	l := elementary.Log((1 - x) * (1 + x))
	t := 2/(math.Pi*a) + float64(l/2)
	y := math.Copysign(math.Sqrt(math.Sqrt(float64(t*t)-l/a)-t), x)
	for range 4 {
		y -= (elementary.Erf(y) - x) / (2 / math.SqrtPi * elementary.Exp(-float64(y*y)))
	}
	return y
}

// classifier collects the results of a classifier row by row: the label of each,
// and its scores.
type classifier struct {
	call   *Call
	labels *tensor.Dense // to choose from
	chosen []int
	scores []float32 // of all rows
	width  int       // scores of a row
}

// finish sets both outputs.
func (k *classifier) finish() error {
	c := k.call
	rows := len(k.chosen)
	labels, err := c.New(k.labels.Type(), rows)
	if err != nil {
		return err
	}
	for r, class := range k.chosen {
		copyPart(labels, r, k.labels, class, 1)
	}
	c.Outputs[0] = labels
	if len(c.Outputs) < 2 {
		return nil
	}
	scores, err := Output[float32](c, 1, rows, k.width)
	if err != nil {
		return err
	}
	copy(scores, k.scores)
	return nil
}

// add takes the result of the next row.
func (k *classifier) add(class int, scores []float64) {
	k.chosen = append(k.chosen, class)
	k.width = len(scores)
	for _, v := range scores {
		k.scores = append(k.scores, float32(v))
	}
}

// argmax is the first place of the greatest number.
func argmax(values []float64) int {
	best := 0
	for i, v := range values {
		if v > values[best] {
			best = i
		}
	}
	return best
}
