package feeds

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/text"
)

// makerOf makes inputs for the model that src is the text of.
func makerOf(t *testing.T, src string) *Maker {
	m := text.MustParse(t, src)
	return New(m, m.Graph.Inputs())
}

func makeSet(t *testing.T, k *Maker, s Set) map[string]eval.Value {
	t.Helper()
	values, err := k.Make(s)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

func dense(t *testing.T, v eval.Value) *tensor.Dense {
	t.Helper()
	d, ok := v.(*tensor.Dense)
	if !ok {
		t.Fatalf("%T is no tensor", v)
	}
	return d
}

func TestSizesAreTheSameForOneName(t *testing.T) {
	k := makerOf(t, `(float[batch,3,height,width] image, int64[batch,seq] ids, float[batch,"past + 1"] mask, float[batch,past] cache, float[?,7] free)
		=> (y) { y = Identity (image) }`)
	if k.Plans() < 5 {
		t.Fatalf("%d plans", k.Plans())
	}
	for plan := range k.Plans() {
		v := makeSet(t, k, Set{Plan: plan})
		image, ids := dense(t, v["image"]).Shape(), dense(t, v["ids"]).Shape()
		mask, cache := dense(t, v["mask"]).Shape(), dense(t, v["cache"]).Shape()
		if image[0] != ids[0] || image[1] != 3 || mask[0] != image[0] || mask[1] != cache[1]+1 || dense(t, v["free"]).Shape()[1] != 7 {
			t.Errorf("plan %d (%s): %v %v %v %v", plan, k.PlanText(plan), image, ids, mask, cache)
		}
	}
	if got, want := k.PlanText(1), "batch=2, height=96, width=96, seq=8, past=5, free[0]=2"; got != want {
		t.Errorf("plan 1 is %q, want %q", got, want)
	}
}

// The large sizes come last, and a recurrent state has the batch in its middle.
func TestSoundModels(t *testing.T) {
	k := makerOf(t, `(float[?,?] input, float[2,?,128] state, int64 sr) => (y) { y = Identity (input) }`)
	largest := 0
	for plan := range k.Plans() {
		v := makeSet(t, k, Set{Plan: plan})
		input, state := dense(t, v["input"]).Shape(), dense(t, v["state"]).Shape()
		if state[1] != input[0] {
			t.Errorf("plan %d: %v %v", plan, input, state)
		}
		if plan < k.UsualPlans() && input[1] > 200 {
			t.Errorf("plan %d is usual with %v", plan, input)
		}
		largest = max(largest, input[1])
	}
	if largest < 8000 {
		t.Errorf("the largest size is %d", largest)
	}
}

func TestOnePlanWhenNothingIsOpen(t *testing.T) {
	k := makerOf(t, `(float[2,3] x) => (y) { y = Relu (x) }`)
	if k.Plans() != 1 || k.PlanText(0) != "" {
		t.Errorf("%d plans, the first %q", k.Plans(), k.PlanText(0))
	}
}

func TestUnknownRanks(t *testing.T) {
	k := makerOf(t, `(float[] x) => (y) { y = Relu (x) }`)
	var ranks []int
	for plan := range k.Plans() {
		ranks = append(ranks, dense(t, makeSet(t, k, Set{Plan: plan})["x"]).Rank())
	}
	for _, want := range []int{0, 1, 2, 4} {
		if !slices.Contains(ranks, want) {
			t.Errorf("ranks tried are %v, want %d among them", ranks, want)
		}
	}
}

func TestIndicesStayInTheirTable(t *testing.T) {
	for name, src := range map[string]string{
		"straight": `(int64[50] ids) => (y) <float[5,2] w = {1,2,3,4,5,6,7,8,9,10}> { y = Gather (w, ids) }`,
		"through a cast and a reshape, other axis": `(int32[50] ids) => (y) <float[2,5] w = {1,2,3,4,5,6,7,8,9,10}, int64[2] s = {5, 10}> {
			a = Cast <to = 7> (ids)  b = Reshape (a, s)  y = Gather <axis = -1> (w, b) }`,
		"inside a function": `<opset_import: ["": 18, "my": 1]> (int64[50] ids) => (y) <float[5,2] w = {1,2,3,4,5,6,7,8,9,10}> { y = my.Embed (ids, w) }
			<domain: "my", opset_import: ["": 18]> Embed (i, w) => (o) { o = Gather (w, i) }`,
	} {
		t.Run(name, func(t *testing.T) {
			k := makerOf(t, src)
			if name == "inside a function" {
				// The table is the caller's: its length is not seen, small numbers are.
				if got := k.inputs[0].traits.below; got != 0 {
					t.Errorf("bound %d", got)
				}
				return
			}
			for _, kind := range []Kind{Normal, Binary, Zeros, Extremes} {
				values, _ := dense(t, makeSet(t, k, Set{Kind: kind})["ids"]).Int64s()
				if slices.Min(values) < 0 || slices.Max(values) > 4 {
					t.Errorf("%v: from %d to %d", kind, slices.Min(values), slices.Max(values))
				}
				if kind == Normal && slices.Max(values) != 4 {
					t.Errorf("the last row is never used")
				}
			}
		})
	}
}

func TestSizesStaySmall(t *testing.T) {
	for _, src := range []string{
		`(int64[2] n) => (y) { y = ConstantOfShape (n) }`,
		`(int64 n) => (y) <int64 a = {0}, int64 b = {1}> { c = Mul (n, n)  y = Range (a, c, b) }`,
		`(float[4] n, float[1,1,2,2] x) => (y) { y = Resize (x, "", n) }`,
		`(int64 n, bool c) => (y) <float z = {0}> { y = Loop (n, c, z) <body = b (int64 i, bool go, float s) => (go2, s2) { go2 = Identity (go)  s2 = Identity (s) }> }`,
		`(int64 n, bool c) => (y) { y = If (c) <then_branch = a () => (s) { s = ConstantOfShape (n) }, else_branch = b () => (e) { e = ConstantOfShape (n) }> }`,
	} {
		k := makerOf(t, src)
		for _, kind := range []Kind{Normal, Binary, Zeros, Extremes, Infinities, NotNumbers} {
			values, _ := dense(t, makeSet(t, k, Set{Kind: kind, Seed: 7})["n"]).Float64s()
			if slices.Min(values) < 0 || slices.Max(values) > 2 {
				t.Errorf("%v: %v for\n%s", kind, values, src)
			}
		}
	}
	k := makerOf(t, `(int64[4] n) => (y) { s = Shape (n)  y = ConstantOfShape (s) }`)
	if k.inputs[0].traits.size {
		t.Error("the elements of n are no sizes, though its shape is one")
	}
}

func TestLengths(t *testing.T) {
	k := makerOf(t, `(float[B,T,80] speech, int32[B] lengths) => (y) { y = Identity (speech) }`)
	v := makeSet(t, k, Set{Plan: 1, Kind: Lengths})
	lengths, _ := dense(t, v["lengths"]).Int64s()
	if want := int64(dense(t, v["speech"]).Shape()[1]); lengths[0] != want || lengths[1] != want {
		t.Errorf("lengths %v, want %d", lengths, want)
	}
}

func TestEdgeValues(t *testing.T) {
	k := makerOf(t, `(float[40] x, int8[40] i, double[2] d, float16[1] h) => (y) { y = Identity (x) }`)
	if got := fmt.Sprint(k.Edges()); got != "[zeros NaN infinities extremes]" {
		t.Errorf("edges %s", got)
	}
	for kind, is := range map[Kind]func(float64) bool{
		Zeros:      func(x float64) bool { return x == 0 && math.Signbit(x) },
		NotNumbers: math.IsNaN,
		Infinities: func(x float64) bool { return math.IsInf(x, 0) },
	} {
		v := makeSet(t, k, Set{Kind: kind})
		for _, name := range []string{"x", "d", "h"} {
			values, _ := dense(t, v[name]).Float64s()
			if kind == Zeros && name != "x" {
				continue // too few to have both signs for sure
			}
			if !slices.ContainsFunc(values, is) {
				t.Errorf("%v: none in %s: %v", kind, name, values)
			}
			if name == "x" && kind != Zeros && !slices.ContainsFunc(values, func(x float64) bool { return !is(x) }) {
				t.Errorf("%v: nothing else in x", kind)
			}
		}
	}
	v := makeSet(t, k, Set{Kind: Extremes})
	x, _ := dense(t, v["x"]).Float64s()
	i, _ := dense(t, v["i"]).Int64s()
	if !slices.ContainsFunc(x, func(x float64) bool { return math.Abs(x) == math.MaxFloat32 }) {
		t.Errorf("no largest float in %v", x)
	}
	if !slices.Contains(i, -128) && !slices.Contains(i, 127) {
		t.Errorf("no extreme in %v", i)
	}
	if got := fmt.Sprint(makerOf(t, `(int64[2] x) => (y) { y = Identity (x) }`).Edges()); got != "[zeros extremes]" {
		t.Errorf("edges of a model of integers %s", got)
	}
}

func TestDefaultsAreOverriddenOnRequest(t *testing.T) {
	m := text.MustParse(t, `<ir_version: 8> (float[2] x, float[2] bias = {1, 2}) => (y) { y = Add (x, bias) }`)
	k := New(m, m.Graph.Inputs())
	if v := makeSet(t, k, Set{}); v["bias"] != nil || v["x"] == nil {
		t.Errorf("got %v", v)
	}
	if v := makeSet(t, k, Set{Override: true}); dense(t, v["bias"]).Len() != 2 {
		t.Errorf("got %v", v)
	}
	if !k.HasDefaults() {
		t.Error("no defaults seen")
	}
}

func TestOtherKindsOfValues(t *testing.T) {
	k := makerOf(t, `(seq(float[N,2]) s, optional(int64[N]) o, map(string, float) m, seq(seq(int64)) deep) => (y) { y = Identity (s) }`)
	v := makeSet(t, k, Set{Plan: 1})
	s := v["s"].(*eval.Sequence)
	if len(s.Items) != 3 || s.Elem != tensor.Float32 || dense(t, s.Items[0]).Shape()[0] != 2 || tensor.EqualBits(dense(t, s.Items[0]), dense(t, s.Items[1])) {
		t.Errorf("sequence %v", s)
	}
	if o := v["o"].(*eval.Optional); dense(t, o.Value).Len() != 2 {
		t.Errorf("optional %v", o)
	}
	if o := makeSet(t, k, Set{Kind: Zeros})["o"].(*eval.Optional); o.Value != nil {
		t.Errorf("the optional of zeros is %v, want an empty one", o)
	}
	if m := v["m"].(*eval.Map); m.Keys.Type() != tensor.String || m.Values.Type() != tensor.Float32 || m.Keys.Len() != m.Values.Len() {
		t.Errorf("map %v", m)
	}
}

func TestHugeInputsAreRefused(t *testing.T) {
	for _, src := range []string{
		`(float[1000000,1000000] x) => (y) { y = Identity (x) }`,
		`(float[4611686018427387904,4] x) => (y) { y = Identity (x) }`,
		`(string[50000000] x) => (y) { y = Identity (x) }`,
	} {
		if _, err := makerOf(t, src).Make(Set{}); err == nil {
			t.Errorf("no error for %s", src)
		}
	}
}

// Every type of element, any kind and seed: the array is of its type and shape, and the same twice.
func TestAllTypes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(tensor.Types()).Draw(t, "type")
		shape := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 3).Draw(t, "shape")
		set := Set{Kind: Kind(rapid.IntRange(int(Normal), int(Extremes)).Draw(t, "kind")), Seed: rapid.Uint64().Draw(t, "seed")}
		in := input{name: "x", typ: onnx.TensorType(typ, shape...)}
		in.traits = traits{below: rapid.Int64Range(0, 3).Draw(t, "below"), size: rapid.Bool().Draw(t, "size")}
		k := &Maker{inputs: []input{in}, plans: plansFor([]input{in})}
		a, err := k.Make(set)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := k.Make(set)
		x := a["x"].(*tensor.Dense)
		if x.Type() != typ || !slices.Equal(x.Shape(), shape) {
			t.Fatalf("got %s%v", x.Type(), x.Shape())
		}
		if !tensor.EqualBits(x, b["x"].(*tensor.Dense)) {
			t.Fatal("two runs differ")
		}
	})
}

func TestSeedsDiffer(t *testing.T) {
	k := makerOf(t, `(float[8] x, float[8] z) => (y) { y = Identity (x) }`)
	a, b := makeSet(t, k, Set{Seed: 1}), makeSet(t, k, Set{Seed: 2})
	if tensor.EqualBits(dense(t, a["x"]), dense(t, b["x"])) || tensor.EqualBits(dense(t, a["x"]), dense(t, a["z"])) {
		t.Error("the same numbers again")
	}
}

// Names of dims come from a file and may be anything.
func FuzzDimNames(f *testing.F) {
	for _, seed := range []string{"batch", "past + 1", "a+b", "+", "", "-5", "1+", "2*n", "9999999+9", "9999999999999999999 + x", "a + a + a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		typ := onnx.TensorType(tensor.Float32, 0, 2)
		typ.Shape.Dims[0] = onnx.Dim{Param: name}
		in := input{name: "x", typ: typ}
		k := &Maker{inputs: []input{in}, plans: plansFor([]input{in})}
		for plan := range k.Plans() {
			if size := k.plans[plan].size(name); size > 1<<20 {
				continue // legal, and slow
			}
			values, err := k.Make(Set{Plan: plan})
			if err != nil {
				continue
			}
			if d := values["x"].(*tensor.Dense); d.Rank() != 2 || d.Shape()[1] != 2 {
				t.Errorf("%q gives shape %v", name, d.Shape())
			}
		}
	})
}
