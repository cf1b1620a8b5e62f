package optimization

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/npuctl/npuctl/internal/engine"
	"github.com/npuctl/npuctl/internal/feeds"
	"github.com/npuctl/npuctl/onnx/compare"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// trial is a comparison under way.
type trial struct {
	checker          *checker
	original, result engine.Program
	report           *Check
	refusal          error              // why the original refused a set last
	accepted         []feeds.Set        // sets that it took
	longest          time.Duration      // that it took for one
	scales           map[string]float64 // how large each output is on ordinary inputs
}

// kinds are the sorts of values for random sets, in the order in which they are
// tried: zeros are better than nothing for a model that takes nothing else.
var kinds = [...]feeds.Kind{feeds.Normal, feeds.Binary, feeds.Lengths, feeds.Zeros}

// maxRefused bounds how many sets are tried that the original refuses.
const maxRefused = 50

// sets compares on the inputs that are given, or on random ones and edge values.
func (t *trial) sets(ctx context.Context) {
	for i, values := range t.checker.given {
		t.checker.job.progress("check: inputs %d of %d", i+1, len(t.checker.given))
		t.compareOn(ctx, values, feeds.Set{}, CheckedSet{Values: "given"}, true)
	}
	if t.checker.given != nil {
		return
	}
	t.randomSets(ctx)
	if t.checker.edges {
		t.edgeSets(ctx)
	}
}

// randomSets compares on as many random sets as the job asks for, each with other
// sizes of the open dims as long as the original takes them.
func (t *trial) randomSets(ctx context.Context) {
	refused := map[feeds.Set]bool{} // without its seed
	sets := t.checker.job.Check
	if t.checker.maker.IsEmpty() {
		sets = 1
	}
	for i := range sets {
		t.checker.job.progress("check: random inputs %d of %d", i+1, sets)
		t.randomSet(ctx, i, refused)
		if ctx.Err() != nil || len(t.accepted) == 0 {
			return
		}
	}
	if t.checker.maker.HasDefaults() {
		s := t.accepted[0]
		s.Override = true
		t.compare(ctx, s, true)
	}
}

// randomSet compares on one set: number i begins with plan i, so that sizes differ.
func (t *trial) randomSet(ctx context.Context, i int, refused map[feeds.Set]bool) {
	usual, all := t.checker.maker.UsualPlans(), t.checker.maker.Plans()
	for _, kind := range kinds {
		for k := range all {
			s := feeds.Set{Plan: k, Kind: kind}
			if k < usual {
				s.Plan = (i + k) % usual
			}
			isNeedless := k >= usual && len(t.accepted) > 0 && t.accepted[0].Plan < usual
			if isNeedless || refused[s] || len(refused) > maxRefused || ctx.Err() != nil {
				continue
			}
			seeded := s
			seeded.Seed = t.checker.job.CheckSeed + uint64(i)
			if t.compare(ctx, seeded, false) {
				t.accepted = append(t.accepted, seeded)
				return
			}
			refused[s] = true
		}
	}
}

// edgePatience is how long an edge set may run: it may send a loop round for ever.
const edgePatience = 10 * time.Second

// edgeSets compares on edge values.
func (t *trial) edgeSets(ctx context.Context) {
	if len(t.accepted) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, edgePatience+20*t.longest)
	defer cancel()
	for _, kind := range t.checker.maker.Edges() {
		t.checker.job.progress("check: %s", kind)
		s := t.accepted[0]
		s.Kind = kind
		t.compare(ctx, s, true)
	}
}

// errHollow says why a set that the original ran proves nothing.
var errHollow = errors.New("most of the original's results are NaN or infinite")

// compare is compareOn on inputs that are made.
func (t *trial) compare(ctx context.Context, s feeds.Set, hollow bool) bool {
	values, err := t.checker.maker.Make(s)
	if err != nil {
		t.report.Tried++
		t.refusal = err
		return false
	}
	set := CheckedSet{Values: s.Kind.String(), Seed: s.Seed, Sizes: t.checker.maker.PlanText(s.Plan), Defaults: s.Override}
	return t.compareOn(ctx, values, s, set, hollow)
}

// compareOn runs both models on a set; false when the original refuses it. Results
// that are mostly NaN prove nothing: unless hollow ones are asked for, as edge
// values do, such a set counts as refused, though a difference is still one.
func (t *trial) compareOn(ctx context.Context, values map[string]eval.Value, s feeds.Set, set CheckedSet, hollow bool) bool {
	t.report.Tried++
	start := time.Now()
	want, err := t.runOriginal(ctx, values)
	if err != nil {
		t.refusal = err
		return false
	}
	t.longest = max(t.longest, time.Since(start))
	got, err := t.result.Run(ctx, values)
	if err != nil && ctx.Err() != nil {
		t.refusal = ctx.Err()
		return false
	}
	proves := hollow || !isHollow(want)
	if proves {
		t.report.Inputs++
		t.report.Sets = append(t.report.Sets, set)
	} else {
		t.refusal = errHollow
	}
	if err != nil {
		t.fail(fmt.Sprintf("the result fails where the original runs (%s): %v", set, err))
		return true
	}
	moved := &shaken{inputs: values}
	for i := range t.report.Outputs {
		o := &t.report.Outputs[i]
		if o.Compared == "shape" {
			o.note(compareShapes(want[o.Name], got[o.Name], t.checker.fixed[o.Name]), set)
		} else {
			t.compareValues(ctx, o, want[o.Name], got[o.Name], set, t.options(s, o.Name, want[o.Name]), moved)
		}
		t.report.Equal = t.report.Equal && o.Equal
	}
	return proves || !t.report.Equal
}

// compareValues compares one output. Where single floats are further off than their
// tolerance, it is asked how exact the original is.
func (t *trial) compareValues(ctx context.Context, o *CheckedOutput, want, got eval.Value, set CheckedSet, options compare.Options, moved *shaken) {
	r := compare.Values(want, got, options)
	if !r.Equal && r.Problem == "" && !t.isWish(o.Name, want) {
		options.Uncertainty = t.uncertainty(ctx, moved, o.Name, want)
		o.Uncertain = max(o.Uncertain, options.Uncertainty)
		r = compare.Values(want, got, options)
	}
	o.note(r, set)
}

// isWish says whether somebody said how far an output may be off: then that counts, and
// not how exact the original is.
func (t *trial) isWish(output string, want eval.Value) bool {
	_, isWish := t.toleranceOf(output, want)
	return isWish
}

// toleranceOf is how far an output may be off; nil for what its type allows.
func (t *trial) toleranceOf(output string, want eval.Value) (tolerance *compare.Tolerance, isWish bool) {
	d, isArray := want.(*tensor.Dense)
	if !isArray || t.checker.tolerance == nil {
		return nil, false
	}
	one, isWish := t.checker.tolerance(output, d.Type())
	return &one, isWish
}

// isHollow says whether the float results of a run are mostly no finite numbers.
func isHollow(results map[string]eval.Value) bool {
	finite, all := 0, 0
	for _, v := range results {
		d, ok := v.(*tensor.Dense)
		if !ok || !d.Type().IsFloat() {
			continue
		}
		values, _ := d.Float64s()
		for _, x := range values {
			if x-x == 0 {
				finite++
			}
		}
		all += len(values)
	}
	return 2*finite < all
}

// options says how to compare an output on a set. Fused operators round, and
// overflow, at other places than separate ones: what is 0 but for rounding is held
// against the output's usual size, and what is beyond the range of floats says nothing.
func (t *trial) options(s feeds.Set, output string, want eval.Value) compare.Options {
	if !s.Kind.IsEdge() {
		t.scales[output] = max(t.scales[output], compare.ScaleOf(want))
	}
	tolerance, _ := t.toleranceOf(output, want)
	return compare.Options{Tolerance: tolerance, Scale: t.scales[output], AllowOverflow: s.Kind == feeds.Extremes}
}

// runOriginal runs the original, which still has inputs that the user bound.
func (t *trial) runOriginal(ctx context.Context, values map[string]eval.Value) (map[string]eval.Value, error) {
	all := maps.Clone(values)
	maps.Copy(all, t.checker.bound)
	return t.original.Run(ctx, all)
}

// fail notes that the result as a whole is wrong.
func (t *trial) fail(why string) {
	t.report.Equal = false
	for i := range t.report.Outputs {
		if o := &t.report.Outputs[i]; o.Equal {
			o.Equal, o.Cosine, o.Difference = false, 0, why
		}
	}
}

// String says which set it is: random, batch=2.
func (s CheckedSet) String() string {
	text := s.Values
	if s.Defaults {
		text += ", defaults overridden"
	}
	if s.Sizes != "" {
		text += ", " + s.Sizes
	}
	return text
}

// note takes one comparison into account.
func (o *CheckedOutput) note(r compare.Result, s CheckedSet) {
	o.MaxAbs, o.MaxRel, o.Cosine = max(o.MaxAbs, r.MaxAbs), max(o.MaxRel, r.MaxRel), min(o.Cosine, r.Cosine)
	if !r.Equal && o.Equal {
		o.Equal, o.Difference = false, fmt.Sprintf("%s (inputs: %s)", r, s)
	}
}
