package ensemble

import (
	"fmt"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/suggest"
)

// onlyKnown holds that a map has no keys but names of a model.
func (p *Plan) onlyKnown(step int, what string, names []string, model string, list []configgen.Entry[string, string]) error {
	for _, e := range list {
		if !slices.Contains(names, e.Key) {
			return p.refuse("step %d: %s has no %s %q", step, model, what, e.Key).With("%s", suggest.Text(e.Key, names))
		}
	}
	return nil
}

// checkWire holds what makes a tensor against what takes it.
func (p *Plan) checkWire(w *wire, taker string, kind configgen.DataType, dims []int64, hasBatch bool) error {
	maker, made, madeDims, madeBatch := "the input "+w.name, configgen.TypeInvalid, []int64(nil), p.Config.MaxBatchSize > 0
	if w.from == nil {
		in := p.Inputs[slices.IndexFunc(p.Inputs, func(t Tensor) bool { return t.Name == w.name })]
		made, madeDims = in.Type, in.Dims
	} else {
		out := &w.from.Config.Output[w.out]
		maker, made, madeDims, madeBatch = "output "+out.Name+" of "+w.from.Name, out.DataType, out.Dims, w.from.Config.MaxBatchSize > 0
	}
	if made != kind {
		return p.refuse("tensor %q: %s is %v, and %s is %v", w.name, maker, made, taker, kind).With("nothing converts between steps: make the types equal")
	}
	if !agree(madeDims, madeBatch, dims, hasBatch) {
		return p.refuse("tensor %q: %s is %s, and %s is %s", w.name, maker, shapeText(madeDims, madeBatch), taker, shapeText(dims, hasBatch)).
			With("make the dims equal, or open (-1) on one side")
	}
	return nil
}

// agree says whether dims can be of one tensor. A batch of 1 comes or goes where one side
// has a batch and the other has none.
func agree(a []int64, aBatch bool, b []int64, bBatch bool) bool {
	equal := func(a, b []int64) bool {
		return slices.EqualFunc(a, b, func(x, y int64) bool { return x == y || x < 0 || y < 0 })
	}
	open := func(dims []int64, hasBatch bool) []int64 {
		if hasBatch {
			return slices.Concat([]int64{-1}, dims)
		}
		return dims
	}
	return equal(open(a, aBatch), open(b, bBatch)) || aBatch != bBatch && equal(a, b)
}

// shapeText writes dims with the batch that comes before them.
func shapeText(dims []int64, hasBatch bool) string {
	text := strings.ReplaceAll(strings.Trim(fmt.Sprint(dims), "[]"), " ", ", ")
	if hasBatch {
		return "[batch, " + text + "]"
	}
	return "[" + text + "]"
}

// finish brings the steps into an order, and refuses what cannot run or is for nothing.
func (p *Plan) finish() error {
	if err := p.sort(); err != nil {
		return err
	}
	for _, w := range p.tensors {
		switch {
		case w.used:
		case w.from == nil:
			return p.refuse("no step takes the input %q", w.name).With("map it to an input of a step, or take it out")
		default:
			return p.refuse("step %d: nothing takes %q, which %s makes", w.from.number, w.name, w.from.Name).With("take it out of output_map, or make it an output")
		}
	}
	return nil
}

// sort brings the steps into an order in which each has its inputs.
func (p *Plan) sort() error {
	var order []*Step
	left := p.Steps
	for len(left) > 0 {
		i := slices.IndexFunc(left, func(s *Step) bool {
			return !slices.ContainsFunc(s.inputs, func(at int) bool {
				return at >= 0 && p.tensors[at].from != nil && !slices.Contains(order, p.tensors[at].from)
			})
		})
		if i < 0 {
			return p.circle(left)
		}
		order = append(order, left[i])
		left = slices.Delete(slices.Clone(left), i, i+1)
	}
	p.Steps = order
	for i, s := range order {
		for _, at := range s.inputs {
			if at < 0 || p.tensors[at].from == nil {
				continue
			}
			from := slices.Index(order, p.tensors[at].from)
			if !slices.Contains(s.after, from) {
				s.after = append(s.after, from)
				order[from].before = append(order[from].before, i)
			}
		}
	}
	return nil
}

// circle names steps that wait for each other.
func (p *Plan) circle(left []*Step) error {
	var path []*Step
	for s := left[0]; ; {
		if at := slices.Index(path, s); at >= 0 {
			path = path[at:]
			break
		}
		path = append(path, s)
		for _, at := range s.inputs {
			if at >= 0 && slices.Contains(left, p.tensors[at].from) {
				s = p.tensors[at].from
				break
			}
		}
	}
	var words []string
	for _, s := range path {
		words = append(words, fmt.Sprintf("step %d (%s)", s.number, s.Name))
	}
	return p.refuse("steps wait for each other in a circle: %s", strings.Join(append(words, words[0]), " waits for ")).With("no order of them can run")
}
