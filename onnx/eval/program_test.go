package eval

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/text"
)

// prepare makes a program of a model in text form.
func prepare(t testing.TB, source string, o Options) *Program {
	t.Helper()
	p, err := Prepare(text.MustParse(t, source), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// runText runs a model whose output is called y.
func runText(t testing.TB, source string, o Options, inputs map[string]Value) (Value, error) {
	t.Helper()
	out, err := prepare(t, source, o).Run(t.Context(), inputs, nil)
	if err != nil {
		return nil, err
	}
	return out["y"], nil
}

// wantText is runText for results given in text form, as arrays print.
func wantText(t testing.TB, source string, inputs map[string]Value, want string) {
	t.Helper()
	got, err := runText(t, source, Options{}, inputs)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != want {
		t.Errorf("y is %v, want %s", got, want)
	}
}

func TestRunGivesTheOutputsAskedFor(t *testing.T) {
	p := prepare(t, `g (float[2] x, float[2] d = {3, 4}) => (a, b) {
		a = Add (x, d)
		b = Sub (x, d)
	}`, Options{})
	x := vector[float32](1, 2)
	out, err := p.Run(t.Context(), map[string]Value{"x": x}, []string{"b"})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) != 1 || fmt.Sprint(out["b"]) != "FLOAT[2]{-2, -2}" {
		t.Errorf("outputs %v", out)
	}
	out, err = p.Run(t.Context(), map[string]Value{"x": x, "d": x}, nil)
	if err != nil || fmt.Sprint(out["a"]) != "FLOAT[2]{2, 4}" {
		t.Errorf("with the default replaced: outputs %v, error %v", out, err)
	}
}

func TestRunRefusesInputs(t *testing.T) {
	source := `g (float[2,N] x) => (y) { y = Relu (x) }`
	for _, c := range []struct {
		name   string
		inputs map[string]Value
		want   string
	}{
		{"missing", nil, `input "x" is missing`},
		{"type", map[string]Value{"x": tensor.Of([]int64{1, 2}, 2, 1)}, `is INT64, the model wants FLOAT`},
		{"shape", map[string]Value{"x": tensor.Of([]float32{1}, 1, 1)}, `has shape [1 1], the model wants [2,N]`},
		{"unknown", map[string]Value{"x": tensor.Of([]float32{1, 2}, 2, 1), "z": vector[float32]()}, `has no input "z"`},
	} {
		if _, err := runText(t, source, Options{}, c.inputs); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %s", c.name, err, c.want)
		}
	}
	fixed := `<ir_version: 3, opset_import: ["": 7]> g (float[1] x, float[1] w = {1}) => (y) { y = Add (x, w) }`
	one := vector[float32](1)
	if _, err := runText(t, fixed, Options{}, map[string]Value{"x": one, "w": one}); err == nil || !strings.Contains(err.Error(), "is a constant") {
		t.Errorf("an initializer of an old model was set: error %v", err)
	}
}

func TestPrepareNamesAllThatIsMissing(t *testing.T) {
	_, err := Prepare(text.MustParse(t, `g (float x) => (y) {
		a = Frobnicate (x)
		b = my.Thing (a)
		y = Frobnicate (b)
	}`), Options{})
	if !errors.Is(err, ErrUnsupported) {
		t.Fatalf("error %v", err)
	}
	if s := err.Error(); strings.Count(s, "Frobnicate of") != 1 || !strings.Contains(s, `Thing of domain "my"`) {
		t.Errorf("error %v does not name each operator once", err)
	}
}

// chain doubles 1 MiB of float32 n times.
func chain(n int) string {
	var b strings.Builder
	b.WriteString("g (float[262144] x) => (y) {\n  v0 = Add (x, x)\n")
	for i := range n {
		fmt.Fprintf(&b, "  v%d = Add (v%d, v%d)\n", i+1, i, i)
	}
	fmt.Fprintf(&b, "  y = Identity (v%d)\n}", n)
	return b.String()
}

func TestIntermediatesAreLetGoAfterTheirLastUse(t *testing.T) {
	x := map[string]Value{"x": tensor.Of(make([]float32, 1<<18), 1<<18)}
	if _, err := runText(t, chain(20), Options{MaxBytes: 5 << 19}, x); err != nil {
		t.Errorf("two arrays at a time do not fit 2.5 MiB: %v", err)
	}
	if _, err := runText(t, chain(20), Options{MaxBytes: 3 << 19}, x); !errors.Is(err, ErrBudget) {
		t.Errorf("two arrays at a time fit 1.5 MiB: error %v", err)
	}
}

func TestSharedArraysCountOnce(t *testing.T) {
	source := `g (float[262144] x) => (y) <int64[2] s = {512, 512}, int64[1] flat = {-1}> {
		a = Add (x, x)
		b = Reshape (a, s)
		c = Identity (b)
		d = Reshape (c, flat)
		e = Identity (b)
		y = Add (d, x)
	}`
	x := map[string]Value{"x": tensor.Of(make([]float32, 1<<18), 1<<18)}
	if _, err := runText(t, source, Options{MaxBytes: 5 << 19}, x); err != nil {
		t.Errorf("one array under four names and the result do not fit 2.5 MiB: %v", err)
	}
	if _, err := runText(t, source, Options{MaxBytes: 3 << 19}, x); !errors.Is(err, ErrBudget) {
		t.Errorf("an array that still has a name was taken for gone: error %v", err)
	}
}

// TestMemoryBalances holds the books after a run to the outputs that are left.
func TestMemoryBalances(t *testing.T) {
	p := prepare(t, `g (int64 n, float[4] x) => (v, s, z) <bool yes = {1}> {
		k = Add (x, x)
		v, s = Loop <body = b (int64 i, bool c, float[4] a) => (c2, d, k) {
			c2 = Identity (c)
			d = Add (a, k)
			unused = Mul (d, d)
		}> (n, yes, x)
		z = If (yes) <then_branch = t () => (k) {}, else_branch = e () => (q) { q = Neg (k) }>
	}`, Options{})
	r := &run{ctx: t.Context(), table: p.table, plans: p.plans, fixed: true, memory: newMemory(0, true)}
	out, err := r.runGraph(p.model.Graph, nil, nil, []Value{tensor.Scalar(int64(100)), vector[float32](1, 2, 3, 4)})
	if err != nil {
		t.Fatal(err)
	}
	var want int64
	for _, v := range out {
		want += sizeOf(v.(*tensor.Dense))
	}
	if r.memory.used != want {
		t.Errorf("%d bytes are charged after the run, the outputs take %d", r.memory.used, want)
	}
	for _, v := range out {
		r.memory.drop(v)
	}
	if r.memory.used != 0 || len(r.memory.held) != 0 {
		t.Errorf("%d bytes and %d arrays are left of nothing", r.memory.used, len(r.memory.held))
	}
}

func TestSmallFilesCannotClaimMuchMemory(t *testing.T) {
	shape := tensor.Of([]int64{1 << 20, 1 << 15}, 2)
	for _, source := range []string{
		`g (int64[2] s) => (y) { y = ConstantOfShape (s) }`,
		`g (int64[2] s) => (y) <float one = {1}> { y = Expand (one, s) }`,
		`g (int64[2] s) => (y) <float[1,1] one = {1}> { y = Tile (one, s) }`,
		`g (int64[2] s) => (y) <int64 a = {0}, int64 b = {100000000000}, int64 c = {1}> { y = Range (a, b, c) }`,
		`g (int64[2] s) => (y) <int64 a = {0}, float[2] v = {0, 1}, int64 d = {10000000000}> { y = OneHot (a, d, v) }`,
		`g (int64[2] s) => (y) <int64[2] p = {10000000000, 0}, float[1] one = {1}> { y = Pad (one, p) }`,
		`g (int64[2] s) => (y) <string one = {"a rather long string to be doubled again and again"}, int64 n = {60}, bool c = {1}> {
			y = Loop <body = b (int64 i, bool c, string a) => (c2, d) { c2 = Identity (c)  d = StringConcat (a, a) }> (n, c, one)
		}`,
		`g (int64[2] s) => (y) <int64 n = {1000000000}, bool c = {1}> {
			y = Loop <body = b (int64 i, bool c) => (c2, i2) { c2 = Identity (c)  i2 = Neg (i) }> (n, c)
		}`,
		`g (int64[2] s) => (y) <int64[1] z = {0}, int64 n = {1000000000}, bool c = {1}> {
			y = Loop <body = b (int64 i, bool c) => (c2, e) { c2 = Identity (c)  e = ConstantOfShape (z) }> (n, c)
		}`,
		`g (int64[2] s) => (y) <int64[1] z = {0}, int64[2] s2 = {1000000000, 0}> {
			e = ConstantOfShape (s2)
			y = Scan <num_scan_inputs = 1, body = b (float[0] a) => (c) { c = Identity (a) }> (e)
		}`,
	} {
		_, err := runText(t, source, Options{MaxBytes: 4 << 20}, map[string]Value{"s": shape})
		if !errors.Is(err, ErrBudget) {
			t.Errorf("%s: error %v, want one that is ErrBudget", source, err)
		}
	}
}

func TestSparseTensorsCountAsDense(t *testing.T) {
	source := `g () => (y) <sparse_tensor(float[1000,1000]) w = {float[1] {5}, int64[1] {7}}> { y = Identity (w) }`
	if _, err := Prepare(text.MustParse(t, source), Options{MaxBytes: 1 << 20}); !errors.Is(err, ErrBudget) {
		t.Errorf("4 MB fit 1 MiB: error %v", err)
	}
	if _, err := runText(t, source, Options{MaxBytes: 8 << 20}, nil); err != nil {
		t.Error(err)
	}
}

// functions is the tail of a model with local functions.
const functions = `
<domain: "my", opset_import: ["": 21, "my": 1]>
Leaky <slope = 0.5> (a) => (b) { b = LeakyRelu <alpha: float = @slope> (a) }
<domain: "my", opset_import: ["": 21, "my": 1]>
Twice <steep> (a) => (c) {
	b = my.Leaky <slope: float = @steep> (a)
	c = my.Leaky <slope: float = @steep> (b)
}
<domain: "my", opset_import: ["": 21, "my": 1]>
Clip2 (a, lo, hi) => (b) { b = Clip (a, lo, hi) }
<domain: "my", opset_import: ["": 21, "my": 1]>
Fixed <v = 3> () => (b) { b = Constant <value_int: int = @v> () }
<domain: "my", opset_import: ["": 21, "my": 1]>
Branch <slope = 0.5> (c, x) => (y) {
	y = If (c) <then_branch = t () => (b) { b = LeakyRelu <alpha: float = @slope> (x) }, else_branch = e () => (x) {}>
}`

func TestFunctions(t *testing.T) {
	x := map[string]Value{"x": vector[float32](-8, 8)}
	for _, c := range []struct{ name, body, want string }{
		{"an attribute", `y = my.Leaky <slope = 0.25> (x)`, "FLOAT[2]{-2, 8}"},
		{"a default", `y = my.Leaky (x)`, "FLOAT[2]{-4, 8}"},
		{"nested", `y = my.Twice <steep = 0.25> (x)`, "FLOAT[2]{-0.5, 8}"},
		{"nested, the attribute left out", `y = my.Twice (x)`, "FLOAT[2]{-2, 8}"},
		{"inputs left out", `y = my.Clip2 (x)`, "FLOAT[2]{-8, 8}"},
		{"an input left out", `y = my.Clip2 (x, "", two)`, "FLOAT[2]{-8, 2}"},
		{"a constant", `y = my.Fixed ()`, "INT64[]{3}"},
		{"a constant by attribute", `y = my.Fixed <v = 7> ()`, "INT64[]{7}"},
		{"a reference in a branch", `y = my.Branch <slope = 0.25> (yes, x)`, "FLOAT[2]{-2, 8}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantText(t, `<ir_version: 10, opset_import: ["": 21, "my": 1]>
				g (float[2] x) => (y) <float two = {2}, bool yes = {1}> { `+c.body+" }"+functions, x, c.want)
		})
	}
}

func TestOneFunctionManyCallsInOneProgram(t *testing.T) {
	wantText(t, `<ir_version: 10, opset_import: ["": 21, "my": 1]>
		g (float[2] x) => (y) {
			a = my.Leaky <slope = 0.5> (x)
			b = my.Leaky <slope = 0.125> (x)
			y = Add (a, b)
		}`+functions, map[string]Value{"x": vector[float32](-8, 8)}, "FLOAT[2]{-5, 16}")
}

func TestRecursionIsRefused(t *testing.T) {
	for _, bodies := range []string{
		`<domain: "my", opset_import: ["": 21, "my": 1]> F (a) => (b) { b = my.F (a) }`,
		`<domain: "my", opset_import: ["": 21, "my": 1]> F (a) => (b) { b = my.G (a) }
		 <domain: "my", opset_import: ["": 21, "my": 1]> G (a) => (b) { b = my.F (a) }`,
		`<domain: "my", opset_import: ["": 21, "my": 1]> F (a) => (b) {
			c = Constant <value = bool {1}> ()
			b = If (c) <then_branch = t () => (d) { d = my.F (a) }, else_branch = e () => (a) {}>
		}`,
	} {
		m := text.MustParse(t, `<ir_version: 10, opset_import: ["": 21, "my": 1]> g (float x) => (y) { y = my.F (x) } `+bodies)
		if _, err := Prepare(m, Options{}); err == nil || !strings.Contains(err.Error(), "calls itself") {
			t.Errorf("%s: error %v", bodies, err)
		}
		n := m.Graph.Nodes()[0]
		if _, err := Fold(t.Context(), n, []Value{tensor.Scalar(float32(1))}, nil, 0); err == nil {
			t.Errorf("%s: folded", bodies)
		}
	}
}

func TestInnerNamesShadowOuterOnes(t *testing.T) {
	wantText(t, `g (bool c, float x) => (y) <float w = {1}> {
		a = Add (x, w)
		y = If (c) <then_branch = t () => (r) <float w = {10}> { a = Add (x, w)  r = Add (a, a) }, else_branch = e () => (a) {}>
	}`, map[string]Value{"c": tensor.Scalar(true), "x": tensor.Scalar(float32(0))}, "FLOAT[]{20}")
}

func TestObserveSeesEveryNode(t *testing.T) {
	var seen []string
	source := `<ir_version: 10, opset_import: ["": 21, "my": 1]>
	g (float[2] x) => (y) <int64 n = {2}, bool c = {1}> {
		one = Constant <value_float = 1.0> ()
		a = my.Leaky (x)
		y = Loop <body = b (int64 i, bool c, float[2] s) => (c2, s2) { c2 = Identity (c)  s2 = Add (s, one) }> (n, c, a)
	}` + functions
	_, err := runText(t, source, Options{Observe: func(n *onnx.Node, out []Value) {
		seen = append(seen, fmt.Sprint(n.OpType, len(out)))
	}}, map[string]Value{"x": vector[float32](1, 2)})
	if got := strings.Join(seen, " "); err != nil || got != "LeakyRelu1 Leaky1 Identity1 Add1 Identity1 Add1 Loop1" {
		t.Errorf("seen %s, error %v", got, err)
	}
}

func TestRunsSideBySide(t *testing.T) {
	p := prepare(t, `<ir_version: 10, opset_import: ["": 21, "my": 1]>
	g (float[2,3] x, int64 n) => (y) <float[3,2] w = {1, 2, 3, 4, 5, 6}, bool c = {1}> {
		a = MatMul (x, w)
		z = Constant <value = int64[1] {1}> ()
		k = ConstantOfShape <value = float[1] {2}> (z)
		y = Loop <body = b (int64 i, bool c, float[2,2] s) => (c2, s2) { c2 = Identity (c)  s2 = Mul (s, k) }> (n, c, a)
	}`, Options{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			x := tensor.Of([]float32{float32(i), 0, 0, 0, 0, 0}, 2, 3)
			out, err := p.Run(t.Context(), map[string]Value{"x": x, "n": tensor.Scalar(int64(3))}, nil)
			want := fmt.Sprintf("FLOAT[2,2]{%d, %d, 0, 0}", i*8, i*16)
			if err != nil || fmt.Sprint(out["y"]) != want {
				t.Errorf("run %d gives %v, %v, want %s", i, out["y"], err, want)
			}
		})
	}
	wg.Wait()
}

func TestEndlessLoops(t *testing.T) {
	source := `g (bool c) => (y) { y = Loop <body = b (int64 i, bool c, bool v) => (c2, v) { c2 = Identity (c) }> ("", c, c) }`
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	p := prepare(t, source, Options{})
	yes := tensor.Scalar(true)
	if _, err := p.Run(ctx, map[string]Value{"c": yes}, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a run that was given up ends with %v", err)
	}
	n := p.model.Graph.Nodes()[0]
	if _, err := Fold(t.Context(), n, []Value{nil, yes, yes}, nil, 1<<20); !errors.Is(err, ErrBudget) {
		t.Errorf("folding it ends with %v", err)
	}
}

func TestFoldSeesCaptures(t *testing.T) {
	m := text.MustParse(t, `g (float k, bool c) => (y) {
		y = If (c) <then_branch = t () => (r) { r = Add (k, k) }, else_branch = e () => (k) {}>
	}`)
	n, k := m.Graph.Nodes()[0], m.Graph.Find("k")
	lookup := func(v *onnx.Value) (Value, bool) { return tensor.Scalar(float32(4)), v == k }
	for cond, want := range map[bool]string{true: "FLOAT[]{8}", false: "FLOAT[]{4}"} {
		out, err := Fold(t.Context(), n, []Value{tensor.Scalar(cond)}, lookup, 0)
		if err != nil || fmt.Sprint(out[0]) != want {
			t.Errorf("%v: %v, %v, want %s", cond, out, err, want)
		}
	}
	if _, err := Fold(t.Context(), n, []Value{tensor.Scalar(true)}, nil, 0); err == nil {
		t.Error("folded without the value it captures")
	}
}

func TestOnceIsKeptWithTheNode(t *testing.T) {
	made := 0
	p := prepare(t, `g (int64 n, float x) => (y) <bool c = {1}> {
		y = Loop <body = b (int64 i, bool c, float s) => (c2, s2) { c2 = Identity (c)  s2 = Neg (s) }> (n, c, x)
	}`, Options{})
	count := func(c *Call) error {
		_, err := c.Once(func() (any, error) { made++; return nil, nil })
		c.Outputs[0] = c.Inputs[0]
		return err
	}
	for _, plan := range p.plans {
		for i := range plan.steps {
			if plan.steps[i].node.OpType == "Neg" {
				plan.steps[i].run = count
			}
		}
	}
	for range 2 {
		in := map[string]Value{"n": tensor.Scalar(int64(5)), "x": tensor.Scalar(float32(1))}
		if _, err := p.Run(t.Context(), in, nil); err != nil {
			t.Fatal(err)
		}
	}
	if made != 1 {
		t.Errorf("made %d times", made)
	}
}

func TestWeightsAreDecodedOnce(t *testing.T) {
	made := onnx.NewModel(10, 21)
	w := made.Graph.AddInitializer("w", tensor.Of(make([]tensor.I4, 1<<14), 1<<14)) // not kept by its tensor
	made.Graph.AddOutput(made.Graph.Add("Identity", []*onnx.Value{w}, []string{"y"}).Output(0))
	data, err := made.Encode()
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Parse(data, "")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Prepare(m, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var seen []Value
	for range 2 {
		out, err := p.Run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, out["y"])
	}
	if seen[0] != seen[1] {
		t.Error("the second run decoded the weight again")
	}
}

func BenchmarkLoop(b *testing.B) {
	p := prepare(b, `g (int64 n, float x) => (y) <bool c = {1}> {
		y = Loop <body = b (int64 i, bool c, float s) => (c2, s2) { c2 = Identity (c)  s2 = Neg (s) }> (n, c, x)
	}`, Options{})
	in := map[string]Value{"n": tensor.Scalar(int64(1000)), "x": tensor.Scalar(float32(1))}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Run(b.Context(), in, nil); err != nil {
			b.Fatal(err)
		}
	}
}
