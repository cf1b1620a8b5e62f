package eval

import (
	"slices"

	"github.com/npuctl/npuctl/onnx/eval/internal/elementary"
)

// lossOperators measure how far a prediction is from the truth.
var lossOperators = []operator{
	{name: "NegativeLogLikelihoodLoss", since: 12, run: onFloats(0, likelihoodLoss[float32], likelihoodLoss[float64])},
	{name: "SoftmaxCrossEntropyLoss", since: 12, run: onFloats(0, crossEntropyLoss[float32], crossEntropyLoss[float64])},
}

// likelihoodLoss takes the logarithms of probabilities as they are.
func likelihoodLoss[T floating](c *Call) error {
	x, err := numberInput[T](c, 0)
	if err != nil {
		return err
	}
	return reduceLoss(c, x, x.data)
}

// crossEntropyLoss makes them of scores, by softmax along axis 1; they are its
// second output.
func crossEntropyLoss[T floating](c *Call) error {
	x, err := numberInput[T](c, 0)
	if err != nil {
		return err
	}
	if len(x.shape) < 2 {
		return c.Errorf("scores of shape %v, which has no axis of classes", x.shape)
	}
	y, err := newResult[T](c, 1, x.typ, x.shape...)
	if err != nil {
		return err
	}
	classes, inner := x.shape[1], product(x.shape[2:])
	if len(y.data) > 0 {
		c.Parallel(x.shape[0]*inner, 1+functionGrain/classes, func(first, last int) {
			for i := first; i < last; i++ {
				at := i/inner*classes*inner + i%inner
				logSoftmaxColumn(y.data[at:], x.data[at:], classes, inner)
			}
		})
	}
	// The loss is of the numbers before they are rounded to the output's type.
	if err := reduceLoss(c, x, y.data); err != nil {
		return err
	}
	return y.finish()
}

// logSoftmaxColumn computes n elements, step apart.
func logSoftmaxColumn[T floating](dst, src []T, n, step int) {
	most := src[0]
	for i := range n {
		most = max(most, src[i*step])
	}
	var sum float64
	for i := range n {
		sum += elementary.Exp(float64(src[i*step]) - float64(most))
	}
	total := elementary.Log(sum)
	for i := range n {
		dst[i*step] = T(float64(src[i*step]) - float64(most) - total)
	}
}

// lossTerms is the loss of each sample, and the weight of its class.
type lossTerms struct{ losses, weights []float64 }

// reduceLoss picks the number of the true class of each sample, weighs and reduces.
// Sums run in the order of the samples, in float64. A mean over samples that weigh
// nothing together is 0/0, NaN.
func reduceLoss[T floating](c *Call, x array[T], logarithms []T) error {
	if len(x.shape) < 2 {
		return c.Errorf("an input of shape %v, which has no axis of classes", x.shape)
	}
	terms, err := pickTerms(c, x, logarithms)
	if err != nil {
		return err
	}
	var shape []int
	var values []float64
	switch how := c.String("reduction", "mean"); how {
	case "none":
		shape, values = removeDim(x.shape, 1), terms.losses
	case "sum":
		values = []float64{sumOf(terms.losses)}
	case "mean":
		values = []float64{sumOf(terms.losses) / sumOf(terms.weights)}
	default:
		return c.Errorf("attribute \"reduction\" is %q", how)
	}
	y, err := newResult[T](c, 0, x.typ, shape...)
	if err != nil {
		return err
	}
	for i, v := range values {
		y.data[i] = T(v)
	}
	return y.finish()
}

func sumOf(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

func pickTerms[T floating](c *Call, x array[T], logarithms []T) (*lossTerms, error) {
	target, err := c.Tensor(1)
	if err != nil {
		return nil, err
	}
	labels, err := c.IntsInput(1)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(target.Shape(), removeDim(x.shape, 1)) {
		return nil, c.Errorf("classes of shape %v for an input of shape %v", target.Shape(), x.shape)
	}
	classes, inner := x.shape[1], product(x.shape[2:])
	weights, err := vectorInput[T](c, 2, classes)
	if err != nil {
		return nil, err
	}
	if err := c.Charge(int64(len(labels)) * 16); err != nil {
		return nil, err
	}
	ignore := c.Attribute("ignore_index")
	terms := &lossTerms{make([]float64, len(labels)), make([]float64, len(labels))}
	for i, label := range labels {
		if ignore != nil && label == ignore.Int() {
			continue
		}
		if label < 0 || label >= int64(classes) {
			return nil, c.Errorf("class %d of %d", label, classes)
		}
		weight := 1.0
		if weights != nil {
			weight = float64(weights[label])
		}
		terms.weights[i] = weight
		terms.losses[i] = -weight * float64(logarithms[(i/inner*classes+int(label))*inner+i%inner])
	}
	return terms, nil
}
