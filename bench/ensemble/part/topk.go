package part

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// topK is topk/model.py.
type topK struct {
	kind    tensor.Type
	k       int
	softmax bool
	labels  []string
}

func newTopK(s *settings) (Part, error) {
	if !s.tensors(1, 2, 3) {
		return nil, s.err
	}
	p := &topK{kind: s.floatType(&s.config.Input[0]), k: s.int("k", 1, math.MaxInt16), softmax: s.bool("softmax")}
	if len(s.config.Output) > 2 {
		p.labels = s.labels()
	}
	return p, nil
}

// Run gives the numbers of the best classes, their scores and their names.
func (p *topK) Run(in, out []engine.Buffer) error {
	list, err := float32sOf(p.kind, &in[0])
	if err != nil {
		return err
	}
	classes, err := lastDim(&in[0])
	if err != nil {
		return err
	}
	rows, k := len(list)/classes, min(p.k, classes)
	lead := in[0].Shape[:len(in[0].Shape)-1]
	numbers := shaped(&out[0], 4*rows*k, lead, int64(k))
	scores := shaped(&out[1], 4*rows*k, lead, int64(k))
	var names []string
	if len(out) > 2 {
		names = shapedStrings(&out[2], rows*k, lead, int64(k))
	}
	order, row := make([]int32, classes), make([]float32, classes)
	for r := range rows {
		copy(row, list[r*classes:])
		if p.softmax {
			softmax(row)
		}
		for at, class := range best(order, row)[:k] {
			binary.LittleEndian.PutUint32(numbers[4*(r*k+at):], uint32(class))
			binary.LittleEndian.PutUint32(scores[4*(r*k+at):], math.Float32bits(row[class]))
			if names == nil {
				continue
			}
			if names[r*k+at], err = label(p.labels, class); err != nil {
				return err
			}
		}
	}
	return nil
}

// softmax makes probabilities of scores, in place.
func softmax(row []float32) {
	highest := slices.Max(row)
	for i, x := range row {
		row[i] = float32(math.Exp(float64(x - highest)))
	}
	total := sum(row)
	for i := range row {
		row[i] /= total
	}
}

// best sorts the numbers of scores, the best first. Equal ones keep their order, and what
// is no number comes last.
func best(order []int32, scores []float32) []int32 {
	for i := range order {
		order[i] = int32(i)
	}
	// For cmp, too, what is no number is below all others.
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(scores[b], scores[a]) })
	return order
}
