package eval

import (
	"math"

	"github.com/npuctl/npuctl/onnx/eval/internal/elementary"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// supportVectorOperators are support vector machines.
var supportVectorOperators = []operator{
	{domain: machineLearning, name: "SVMClassifier", since: 1, run: onFeatures(svmClassifier[float32], svmClassifier[float64])},
	{domain: machineLearning, name: "SVMRegressor", since: 1, run: onFeatures(svmRegressor[float32], svmRegressor[float64])},
}

// svmKernel measures how alike two rows are.
type svmKernel func(dot, squaredDistance float64) float64

// svmKernel reads kernel_type and kernel_params: gamma, coef0 and degree.
func (c *Call) svmKernel() (svmKernel, error) {
	var gamma, offset, degree float64
	if p := c.floats("kernel_params"); len(p) >= 3 {
		gamma, offset, degree = float64(p[0]), float64(p[1]), float64(p[2])
	}
	switch kind := c.String("kernel_type", "LINEAR"); kind {
	case "LINEAR":
		return func(dot, _ float64) float64 { return dot }, nil
	case "POLY":
		return func(dot, _ float64) float64 { return power64(float64(gamma*dot)+offset, degree) }, nil
	case "RBF":
		return func(_, distance float64) float64 { return elementary.Exp(-gamma * distance) }, nil
	case "SIGMOID":
		return func(dot, _ float64) float64 { return elementary.Tanh(float64(gamma*dot) + offset) }, nil
	default:
		return nil, c.Errorf("attribute \"kernel_type\" is %q", kind)
	}
}

// supportVectors is a matrix with a vector in each row, and the kernel.
type supportVectors struct {
	count   int
	vectors []float32
	kernel  svmKernel
}

func (c *Call) supportVectors(count, columns int) (*supportVectors, error) {
	s := &supportVectors{count: count, vectors: c.floats("support_vectors")}
	if columns == 0 || len(s.vectors)/columns < count {
		return nil, c.Errorf("support_vectors holds %d numbers, for %d vectors of %d features", len(s.vectors), count, columns)
	}
	var err error
	s.kernel, err = c.svmKernel()
	return s, err
}

// alike compares a row with every support vector.
func alike[T floating](s *supportVectors, to []float64, x []T) {
	for k := range to {
		var dot, distance float64
		for i, v := range s.vectors[k*len(x) : (k+1)*len(x)] {
			a, b := float64(x[i]), float64(v)
			dot += float64(a * b)
			distance += float64((a - b) * (a - b))
		}
		to[k] = s.kernel(dot, distance)
	}
}

// svmRegressor is a weighted sum of kernels, or of the features when there are no
// support vectors. A one-class machine says 1 for what belongs, else -1. The number
// is not transformed, as runtimes have it, whatever post_transform says.
func svmRegressor[T floating](c *Call) error {
	x, err := featureInput[T](c)
	if err != nil {
		return err
	}
	supports, err := toInts(c, []int64{c.Int("n_supports", 0)})
	if err != nil {
		return err
	}
	weights, rho := c.floats("coefficients"), c.floats("rho")
	terms := x.columns
	var s *supportVectors
	if supports[0] > 0 {
		terms = supports[0]
		if s, err = c.supportVectors(terms, x.columns); err != nil {
			return err
		}
	}
	if len(weights) < terms || len(rho) < 1 {
		return c.Errorf("%d coefficients and %d offsets for %d terms", len(weights), len(rho), terms)
	}
	if name := c.String("post_transform", "NONE"); name != "NONE" {
		if err := c.Undefined("post_transform %s of a single number", name); err != nil {
			return err
		}
	}
	y, err := Output[float32](c, 0, x.rows, 1)
	if err != nil {
		return err
	}
	m := &linearModel{results: 1, rows: weights[:terms], intercepts: rho}
	kernels, sum := make([]float64, terms), make([]float64, 1)
	for r := range x.rows {
		if s == nil {
			apply(m, sum, x.row(r))
		} else {
			alike(s, kernels, x.row(r))
			apply(m, sum, kernels)
		}
		if c.Int("one_class", 0) != 0 {
			sum[0] = float64(2*positive(sum[0]) - 1)
		}
		y[r] = float32(sum[0])
	}
	return nil
}

// svmModel is a classifier: a machine for each pair of classes, or without support
// vectors a weighted sum of the features for each class.
type svmModel struct {
	labels       *tensor.Dense
	classes      int
	vectors      *supportVectors // nil for a linear model
	starts       []int           // where the vectors of each class start, and the end
	coefficients []float32
	rho          []float32
	probA, probB []float32
	allPositive  bool // no coefficient is negative
	transform    string
}

func newSVMModel(c *Call, columns int) (*svmModel, error) {
	m := &svmModel{coefficients: c.floats("coefficients"), rho: c.floats("rho"), probA: c.floats("prob_a"), probB: c.floats("prob_b")}
	var err error
	if m.labels, err = c.classLabels("classlabels_ints"); err != nil {
		return nil, err
	}
	if m.transform, _, err = c.postTransform(); err != nil {
		return nil, err
	}
	m.classes = m.labels.Len()
	m.allPositive = true
	for _, v := range m.coefficients {
		m.allPositive = m.allPositive && v >= 0
	}
	counts, _ := c.Ints("vectors_per_class")
	m.starts = []int{0}
	total := 0
	for _, n := range counts {
		if n < 0 || n > tensor.MaxElements {
			return nil, c.Errorf("attribute \"vectors_per_class\" is %v", counts)
		}
		total += int(n)
		m.starts = append(m.starts, total)
	}
	if total == 0 {
		return m, m.checkLinear(c, columns)
	}
	if m.vectors, err = c.supportVectors(total, columns); err != nil {
		return nil, err
	}
	return m, m.checkPairs(c, total)
}

func (m *svmModel) checkLinear(c *Call, columns int) error {
	if m.classes == 0 || len(m.coefficients) != m.classes*columns || len(m.rho) < 1 {
		return c.Errorf("%d coefficients and %d offsets for %d classes of %d features", len(m.coefficients), len(m.rho), m.classes, columns)
	}
	return nil
}

func (m *svmModel) checkPairs(c *Call, vectors int) error {
	pairs := m.classes * (m.classes - 1) / 2
	if m.classes < 2 || len(m.starts)-1 != m.classes || len(m.coefficients) < (m.classes-1)*vectors || len(m.rho) < pairs {
		return c.Errorf("%d coefficients and %d offsets for %d classes and %d support vectors", len(m.coefficients), len(m.rho), m.classes, vectors)
	}
	if len(m.probA) > 0 && (len(m.probA) < pairs || len(m.probB) < pairs) {
		return c.Errorf("%d and %d probability coefficients for %d pairs of classes", len(m.probA), len(m.probB), pairs)
	}
	return nil
}

func svmClassifier[T floating](c *Call) error {
	x, err := featureInput[T](c)
	if err != nil {
		return err
	}
	m, err := newSVMModel(c, x.columns)
	if err != nil {
		return err
	}
	k := &classifier{call: c, labels: m.labels}
	for r := range x.rows {
		if m.vectors == nil {
			scores := make([]float64, m.classes)
			apply(&linearModel{rows: m.coefficients}, scores, x.row(r))
			for i := range scores {
				scores[i] += float64(m.rho[0])
			}
			m.decide(k, scores, scores)
			continue
		}
		kernels := make([]float64, m.vectors.count)
		alike(m.vectors, kernels, x.row(r))
		scores, votes := m.pairScores(kernels)
		if len(m.probA) > 0 {
			scores = m.probabilities(scores)
		}
		m.decide(k, scores, votes)
	}
	return k.finish()
}

// pairScores lets each pair of classes compete; the winner has a vote. A class's
// vectors have one coefficient for each other class: row j-1 against a later class
// j, row i against an earlier class i.
func (m *svmModel) pairScores(kernels []float64) (scores, votes []float64) {
	votes = make([]float64, m.classes)
	for i := range m.classes {
		for j := i + 1; j < m.classes; j++ {
			s := m.weighted(kernels, i, j-1) + m.weighted(kernels, j, i) + float64(m.rho[len(scores)])
			if s > 0 {
				votes[i]++
			} else {
				votes[j]++
			}
			scores = append(scores, s)
		}
	}
	return scores, votes
}

// weighted sums the kernels of a class's vectors with one row of coefficients.
func (m *svmModel) weighted(kernels []float64, class, row int) float64 {
	var sum float64
	for v := m.starts[class]; v < m.starts[class+1]; v++ {
		sum += float64(float64(m.coefficients[row*m.vectors.count+v]) * kernels[v])
	}
	return sum
}

// decide chooses the class with the most votes, and writes the scores. How the one
// score of two classes becomes two the specification does not say; this is how ONNX
// Runtime does it.
func (m *svmModel) decide(k *classifier, scores, votes []float64) {
	class := argmax(votes)
	if len(scores) == 1 && m.classes == 2 {
		scores = twoScores(scores[0], m.transform, m.transform == "NONE")
	} else {
		scoreTransforms[m.transform](scores)
	}
	k.add(class, scores)
}

// probabilities makes probabilities of the classes of the scores of the pairs: each
// score first becomes the probability that the first of the two is right.
func (m *svmModel) probabilities(scores []float64) []float64 {
	n := m.classes
	pairwise := make([][]float64, n)
	for i := range pairwise {
		pairwise[i] = make([]float64, n)
	}
	pair := 0
	for i := range n {
		for j := i + 1; j < n; j++ {
			p := elementary.Sigmoid(-(float64(scores[pair]*float64(m.probA[pair])) + float64(m.probB[pair])))
			p = min(max(p, 1e-7), 1-1e-7)
			pairwise[i][j], pairwise[j][i] = p, 1-p
			pair++
		}
	}
	return coupled(pairwise)
}

// coupled finds the probabilities p of classes that agree best with those of pairs:
// the least Σ (r[j][i]·p[i] - r[i][j]·p[j])² with Σ p = 1, by the fixed-point
// iteration of Wu, Lin and Weng ("Probability estimates for multi-class
// classification by pairwise coupling", 2004), with the limits libsvm has.
func coupled(r [][]float64) []float64 {
	n := len(r)
	q := make([][]float64, n)
	p := make([]float64, n)
	for i := range n {
		q[i] = make([]float64, n)
		p[i] = 1 / float64(n)
		for j := range n {
			if j != i {
				q[i][i] += float64(r[j][i] * r[j][i])
				q[i][j] = -r[j][i] * r[i][j]
			}
		}
	}
	product := make([]float64, n)
	for range max(100, n) {
		total := quadratic(q, p, product)
		worst := 0.0
		for _, v := range product {
			worst = max(worst, math.Abs(v-total))
		}
		if worst < 0.005/float64(n) {
			break
		}
		for t := range n {
			step := (total - product[t]) / q[t][t]
			p[t] += step
			total = (total + float64(step*(float64(step*q[t][t])+2*product[t]))) / (1 + step) / (1 + step)
			for j := range n {
				product[j] = (product[j] + float64(step*q[t][j])) / (1 + step)
				p[j] /= 1 + step
			}
		}
	}
	return p
}

// quadratic sets product to q·p and gives p·q·p.
func quadratic(q [][]float64, p, product []float64) (total float64) {
	for i, row := range q {
		product[i] = 0
		for j, v := range row {
			product[i] += float64(v * p[j])
		}
		total += float64(p[i] * product[i])
	}
	return total
}
