package load

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
)

// mix sends requests to several targets.
type mix struct {
	targets []Target
	sums    []float64 // of the weights
	seed    uint64
}

// Mix makes one target of several: each request goes to one of them, as often as its
// weight says. Which one depends on the seed and the number of the request alone, so that
// every run has the same mix. The kind of a record is the number of its target.
func Mix(targets []Target, weights []float64, seed uint64) (Target, error) {
	if len(targets) == 0 || len(targets) != len(weights) {
		return nil, fmt.Errorf("a mix of %d targets with %d weights", len(targets), len(weights))
	}
	m := &mix{targets: targets, seed: seed}
	sum := 0.0
	for _, w := range weights {
		if !(w > 0) || math.IsInf(w, 0) {
			return nil, fmt.Errorf("the weight %v in a mix is no number above 0", w)
		}
		sum += w
		m.sums = append(m.sums, sum)
	}
	return m, nil
}

// Do sends a request to its target.
func (m *mix) Do(ctx context.Context, r Request) (Result, error) {
	var draw rand.PCG // of this request alone; on the stack
	draw.Seed(m.seed, uint64(r.Number))
	share := float64(draw.Uint64()>>11) / (1 << 53)
	i := min(len(m.sums)-1, sort.SearchFloat64s(m.sums, share*m.sums[len(m.sums)-1]))
	result, err := m.targets[i].Do(ctx, r)
	result.Kind = int32(i)
	return result, err
}
