package part

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// features is features/model.py.
type features struct {
	kind      tensor.Type
	normalise bool
}

func newFeatures(s *settings) (Part, error) {
	if !s.tensors(1, 1, 1) {
		return nil, s.err
	}
	return &features{s.floatType(&s.config.Input[0]), s.bool("normalise")}, nil
}

// tiny is the smallest normal number: zeros divided by it stay zeros.
const tiny = 0x1p-126

// Run gives each vector, at length 1 if that is wanted.
func (p *features) Run(in, out []engine.Buffer) error {
	list, err := float32sOf(p.kind, &in[0])
	if err != nil {
		return err
	}
	row, err := lastDim(&in[0])
	if err != nil {
		return err
	}
	to := shaped(&out[0], 4*len(list), in[0].Shape)
	squares := make([]float32, row)
	for at := 0; at < len(list); at += row {
		vector, length := list[at:at+row], float32(1)
		if p.normalise {
			for i, x := range vector {
				squares[i] = x * x
			}
			length = max(float32(math.Sqrt(float64(sum(squares)))), tiny)
		}
		for i, x := range vector {
			binary.LittleEndian.PutUint32(to[4*(at+i):], math.Float32bits(x/length))
		}
	}
	return nil
}

// lastDim is how many numbers a row has.
func lastDim(b *engine.Buffer) (int, error) {
	if len(b.Shape) == 0 || b.Shape[len(b.Shape)-1] < 1 {
		return 0, errors.New("there are no numbers in the last dim")
	}
	return int(b.Shape[len(b.Shape)-1]), nil
}

// sum adds in the order of NumPy: eight sums side by side, in halves of at most 128.
func sum(list []float32) float32 {
	const lanes, most = 8, 128
	if len(list) < lanes {
		total := float32(0)
		for _, x := range list {
			total += x
		}
		return total
	}
	if len(list) > most {
		middle := len(list) / 2
		middle -= middle % lanes
		return sum(list[:middle]) + sum(list[middle:])
	}
	r := [lanes]float32(list)
	at := lanes
	for ; at+lanes <= len(list); at += lanes {
		for i, x := range list[at : at+lanes] {
			r[i] += x
		}
	}
	total := ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]))
	for _, x := range list[at:] {
		total += x
	}
	return total
}
