package eval

// linearModelOperators are weighted sums of features.
var linearModelOperators = []operator{
	{domain: machineLearning, name: "LinearClassifier", since: 1, run: onFeatures(linearClassifier[float32], linearClassifier[float64])},
	{domain: machineLearning, name: "LinearRegressor", since: 1, run: onFeatures(linearRegressor[float32], linearRegressor[float64])},
}

// linearModel is a matrix of coefficients, a row for each result, and what is added.
type linearModel struct {
	results    int
	rows       []float32
	intercepts []float32 // nil or one for each result
}

func newLinearModel(c *Call, results, columns int) (*linearModel, error) {
	m := &linearModel{results: results, rows: c.floats("coefficients"), intercepts: c.floats("intercepts")}
	if results < 1 || len(m.rows)%results != 0 || len(m.rows)/results != columns {
		return nil, c.Errorf("%d coefficients for %d results of %d features", len(m.rows), results, columns)
	}
	if len(m.intercepts) > 0 && len(m.intercepts) < results {
		return nil, c.Errorf("%d intercepts for %d results", len(m.intercepts), results)
	}
	return m, nil
}

// apply computes the results for one row of features, in order, in float64.
func apply[T floating](m *linearModel, to []float64, x []T) {
	for k := range to {
		var sum float64
		for i, weight := range m.rows[k*len(x) : (k+1)*len(x)] {
			sum += float64(float64(x[i]) * float64(weight))
		}
		if len(m.intercepts) > 0 {
			sum += float64(m.intercepts[k])
		}
		to[k] = sum
	}
}

func linearRegressor[T floating](c *Call) error {
	x, err := featureInput[T](c)
	if err != nil {
		return err
	}
	targets, err := toInts(c, []int64{c.Int("targets", 1)})
	if err != nil {
		return err
	}
	m, err := newLinearModel(c, targets[0], x.columns)
	if err != nil {
		return err
	}
	transform, err := c.regressionTransform(m.results)
	if err != nil {
		return err
	}
	y, err := Output[float32](c, 0, x.rows, m.results)
	if err != nil {
		return err
	}
	scores := make([]float64, m.results)
	for r := range x.rows {
		apply(m, scores, x.row(r))
		transform(scores)
		for k, v := range scores {
			y[r*m.results+k] = float32(v)
		}
	}
	return nil
}

// linearClassifier chooses the class with the greatest sum. A model of one sum for
// two classes chooses the second where the sum is positive.
func linearClassifier[T floating](c *Call) error {
	x, err := featureInput[T](c)
	if err != nil {
		return err
	}
	labels, err := c.classLabels("classlabels_ints")
	if err != nil {
		return err
	}
	results := len(c.floats("coefficients")) / max(x.columns, 1)
	m, err := newLinearModel(c, results, x.columns)
	if err != nil {
		return err
	}
	if labels.Len() < results || results == 1 && labels.Len() < 2 {
		return c.Errorf("%d labels for %d classes", labels.Len(), results)
	}
	name, transform, err := c.postTransform()
	if err != nil {
		return err
	}
	k := &classifier{call: c, labels: labels}
	for r := range x.rows {
		scores := make([]float64, results)
		apply(m, scores, x.row(r))
		class := argmax(scores)
		if results == 1 {
			class, scores = positive(scores[0]), twoScores(scores[0], name, false)
		} else {
			transform(scores)
		}
		k.add(class, scores)
	}
	return k.finish()
}
