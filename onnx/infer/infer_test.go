package infer

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/schema"
	"github.com/npuctl/npuctl/onnx/text"
)

// inferText infers a model written as text.
func inferText(t text.TB, source string) (*onnx.Model, *Inference) {
	t.Helper()
	m := text.MustParse(t, source)
	i := New(m, Options{})
	if err := i.Run(context.Background()); err != nil {
		t.Fatalf("infer: %v", err)
	}
	return m, i
}

// outputsOf lists what is known of the graph outputs, one a line.
func outputsOf(m *onnx.Model, i *Inference) string {
	var lines []string
	for _, v := range m.Graph.Outputs() {
		lines = append(lines, v.Name()+" "+i.Of(v).String())
	}
	return strings.Join(lines, "\n")
}

type inferCase struct{ name, model, want string }

func runCases(t *testing.T, cases []inferCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m, i := inferText(t, c.model)
			if diff := cmp.Diff(c.want, outputsOf(m, i)); diff != "" {
				t.Errorf("inferred (-want +got):\n%s", diff)
			}
			for _, f := range i.Conflicts() {
				t.Errorf("conflict: %s", f.Message)
			}
		})
	}
}

func TestShapes(t *testing.T) { runCases(t, shapeCases) }

var shapeCases = []inferCase{
	{"broadcast", `g (float[batch,1,3] a, float[height,1] b) => (y) { y = Add (a, b) }`,
		"y FLOAT[batch,height,3]"},
	{"the same unknown", `g (float[?,3] a) => (y) { b = Relu (a)  y = Add (a, b) }`,
		"y FLOAT[?1,3]"},
	{"two unknowns", `g (float[?] a, float[?] b) => (y) { y = Mul (a, b) }`,
		"y FLOAT[broadcast(?1,?2)]"},
	{"a number decides", `g (float[n,4] a, float[7,m] b) => (y) { y = Mul (a, b) }`,
		"y FLOAT[7,4]"},
	{"matrix and vector", `g (float[batch,2,3] a, float[3] b, float[3,4] c) => (y, z) { y = MatMul (a, b)  z = MatMul (b, c) }`,
		"y FLOAT[batch,2]\nz FLOAT[4]"},
	{"transposed product", `g (float[k,m] a, float[n,k] b) => (y) { y = Gemm <transA = 1, transB = 1> (a, b) }`,
		"y FLOAT[m,n]"},
	{"convolution", `g (float[batch,3,height,width] x, float[8,3,3,3] w) => (y, z) {
			y = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (x, w)
			z = Conv (x, w)
		}`, "y FLOAT[batch,8,floor((height+1)/2),floor((width+1)/2)]\nz FLOAT[batch,8,height-2,width-2]"},
	{"convolution to the same size", `g (float[1,3,height,9] x, float[8,3,3,3] w) => (y) {
			y = Conv <strides = [2, 2], auto_pad = "SAME_UPPER"> (x, w)
		}`, "y FLOAT[1,8,floor((height+1)/2),5]"},
	{"transposed convolution", `g (float[1,4,height,9] x, float[4,2,2,2] w) => (y) {
			y = ConvTranspose <strides = [2, 2], group = 3> (x, w)
		}`, "y FLOAT[1,6,2*height,18]"},
	{"the last window begins inside", `g (float[1,1,3,height] x) => (y) {
			y = MaxPool <kernel_shape = [1, 2], strides = [3, 2], ceil_mode = 1> (x)
		}`, "y FLOAT[1,1,1,floor((height+1)/2)]"},
	{"reduction", `g (float[batch,4,width] x) => (y, z) {
			axes = Constant <value_ints = [-1]> ()
			y = ReduceMean <keepdims = 0> (x, axes)
			z = ReduceSum (x)
		}`, "y FLOAT[batch,4]\nz FLOAT[1,1,1]"},
	{"concatenation", `g (float[batch,height] a, float[batch,3] b) => (y) { y = Concat <axis = -1> (a, b, a) }`,
		"y FLOAT[batch,2*height+3]"},
	{"pieces, the last smaller", `g (float[5,n] x) => (a, b, c) { a, b, c = Split <num_outputs = 3> (x) }`,
		"a FLOAT[2,n]\nb FLOAT[2,n]\nc FLOAT[1,n]"},
	{"cut", `g (float[batch,8,n] x) => (y, z) {
			s = Constant <value_ints = [1, -3]> ()  e = Constant <value_ints = [-1, 9223372036854775807]> ()  a = Constant <value_ints = [1, 2]> ()
			y = Slice (x, s, e, a)
			last = Constant <value_ints = [-1]> ()  least = Constant <value_ints = [-9223372036854775807]> ()
			z = Slice (x, last, least, last, last)
		}`, "y FLOAT[batch,6,n-max(n-3,0)]\nz FLOAT[batch,8,n]"},
	{"indices", `g (float[n,4] x, int64[k,2] i, float[?] c) => (y, z, nz) {
			y = Gather <axis = 1> (x, i)
			z = GatherND (x, i)
			nz = NonZero (c)
		}`, "y FLOAT[n,k,2]\nz FLOAT[k]\nnz INT64[1,?2]"},
	{"einsum", `g (float[batch,i,j] a, float[j,k] b) => (y, z) {
			y = Einsum <equation = "...ij, jk -> ...ki"> (a, b)
			z = Einsum <equation = "bij,jk"> (a, b)
		}`, "y FLOAT[batch,k,i]\nz FLOAT[batch,i,k]"},
	{"recurrence", `g (float[n,batch,4] x, float[2,32,4] w, float[2,32,8] r) => (y, h, c) {
			y, h, c = LSTM <direction = "bidirectional", hidden_size = 8> (x, w, r)
		}`, "y FLOAT[n,2,batch,8]\nh FLOAT[2,batch,8]\nc FLOAT[2,batch,8]"},
	{"nobody knows the rank", `g (float[n,1] x) => (y) { y = Squeeze (x) }`, "y FLOAT[...]"},
	{"types without shapes", `g (float16[] x, int8[] q) => (y, z) { y = Relu (x)  z = Cast <to = 11> (q) }`,
		"y FLOAT16[...]\nz DOUBLE[...]"},
}

// The forms that operators had in old versions.
func TestOldVersions(t *testing.T) { runCases(t, oldCases) }

var oldCases = []inferCase{
	{"opset 1", `<ir_version: 3, opset_import: ["": 1]> g (float[n,4] x, float[4] b) => (y, z, w) {
			y = Reshape <shape = [0, 2, -1]> (x)
			z = Cast <to = "FLOAT16"> (x)
			w = Add <broadcast = 1, axis = 1> (x, b)
		}`, "y FLOAT[n,2,2]\nz FLOAT16[n,4]\nw FLOAT[n,4]"},
	{"opset 9", `<ir_version: 4, opset_import: ["": 9]> g (float[n,4,3] x) => (y, z, v, w, u) {
			y = Slice <starts = [1], ends = [3], axes = [1]> (x)
			z, v = TopK <k = 2> (x)
			w = Upsample <mode = "nearest"> (x, s)
			u = Unsqueeze <axes = [0]> (x)
			s = Constant <value = float[3] {1, 2, 1.5}> ()
		}`, "y FLOAT[n,2,3]\nz FLOAT[n,4,2]\nv INT64[n,4,2]\nw FLOAT[n,8,4]\nu FLOAT[1,n,4,3]"},
	{"opset 10", `<ir_version: 5, opset_import: ["": 10]> g (float[n,4] x) => (y, m, p) {
			y, m = Dropout (x)
			p = Pad <pads = [0, 1, 0, -2]> (x)
		}`, "y FLOAT[n,4]\nm BOOL[n,4]\np FLOAT[n,3]"},
}

// Shape arithmetic as exporters write it.
func TestValues(t *testing.T) { runCases(t, valueCases) }

var valueCases = []inferCase{
	{"flatten heads", `g (float[batch,seq,8,16] x) => (y, target) {
			shape = Shape (x)
			zero = Constant <value_int = 0> ()  one = Constant <value_int = 1> ()
			b = Gather (shape, zero)  s = Gather (shape, one)
			axis = Constant <value_ints = [0]> ()
			b1 = Unsqueeze (b, axis)  s1 = Unsqueeze (s, axis)
			rest = Constant <value_ints = [-1]> ()
			target = Concat <axis = 0> (b1, s1, rest)
			y = Reshape (x, target)
		}`, "y FLOAT[batch,seq,128]\ntarget INT64[3]{batch,seq,-1}"},
	{"windows", `g (float[batch,height,width,3] x) => (y) {
			shape = Shape (x)
			seven = Constant <value_int = 7> ()  i = Constant <value_ints = [1]> ()
			b = Shape <start = 0, end = 1> (x)
			h = Gather (shape, i)
			rows = Div (h, seven)
			rest = Constant <value_ints = [7, -1]> ()
			target = Concat <axis = 0> (b, rows, rest)
			y = Reshape (x, target)
		}`, "y FLOAT[batch,nonzero(floor(height/7),height),7,floor((3*height*width)/(7*nonzero(floor(height/7),height)))]"},
	{"pad to a multiple", `g (float[1,n] x) => (y) {
			n = Shape <start = 1> (x)
			m = Constant <value_ints = [32]> ()
			r = Mod (n, m)  d = Sub (m, r)  p = Mod (d, m)
			zeros = Constant <value_ints = [0, 0, 0]> ()
			pads = Concat <axis = 0> (zeros, p)
			y = Pad (x, pads)
		}`, "y FLOAT[1,32*floor((n+31)/32)]"},
	{"twice as large, through floats", `g (float[1,3,height,width] x) => (y, sizes) {
			shape = Shape <start = 2> (x)
			f = Cast <to = 1> (shape)
			two = Constant <value_float = 2.0> ()
			g = Mul (f, two)  h = Floor (g)
			sizes = Cast <to = 7> (h)
			front = Shape <end = 2> (x)
			all = Concat <axis = 0> (front, sizes)
			y = Resize (x, "", "", all)
		}`, "y FLOAT[1,3,2*height,2*width]\nsizes INT64[2]{2*height,2*width}"},
	{"a third, through floats", `g (float[n] x) => (y) {
			shape = Shape (x)
			f = Cast <to = 1> (shape)
			three = Constant <value_float = 3.0> ()
			q = Div (f, three)  c = Ceil (q)
			y = Cast <to = 7> (c)
		}`, "y INT64[1]{floor((n+2)/3)}"},
	{"rounded arithmetic is not followed", `g (float[n] x) => (y) {
			shape = Shape (x)
			f = Cast <to = 1> (shape)
			three = Constant <value_float = 3.0> ()
			q = Div (f, three)  r = Mul (q, three)  c = Floor (r)
			y = Cast <to = 7> (c)
		}`, "y INT64[1]{?}"},
	{"a scale of two sizes", `g (float[1,1,h] x, float[1,1,2] z) => (y) {
			a = Shape (x)
			k = Constant <value_ints = [1, 1, 4]> ()
			b = Mul (a, k)
			af = Cast <to = 1> (a)  bf = Cast <to = 1> (b)
			s = Div (bf, af)
			y = Resize (x, "", s)
		}`, "y FLOAT[1,1,4*h]"},
	{"expand keeps what is -1", `g (float[1,n] x) => (y) {
			shape = Shape (x)
			wanted = Constant <value_ints = [5, -1]> ()
			minus = Constant <value_ints = [-1]> ()
			same = Equal (wanted, minus)
			target = Where (same, shape, wanted)
			y = Expand (x, target)
		}`, "y FLOAT[5,n]"},
	{"one unknown in a target", `g (float[n,6] x, int64 k) => (y, z) {
			axis = Constant <value_ints = [0]> ()
			k1 = Unsqueeze (k, axis)
			three = Constant <value_ints = [3]> ()
			t = Concat <axis = 0> (k1, three)
			y = Reshape (x, t)
			u = Concat <axis = 0> (k1, three, k1)
			z = Reshape (x, u)
		}`, "y FLOAT[2*n,3]\nz FLOAT[?2,3,?3]"},
	{"counting", `g (float[n] x, int64 stop) => (r, s, z) {
			zero = Constant <value_int = 0> ()  one = Constant <value_int = 1> ()  two = Constant <value_int = 2> ()  nine = Constant <value_int = 9> ()
			size = Size (x)
			r = Range (zero, size, two)
			s = Range (one, nine, two)
			z = Range (zero, stop, one)
		}`, "r INT64[floor((n+1)/2)]\ns INT64[4]{1,3,5,7}\nz INT64[max(?1,0)]"},
	{"reversed, picked, scattered", `g (float[a,b,c] x) => (r, t) {
			shape = Shape (x)
			last = Constant <value_ints = [-1]> ()  least = Constant <value_ints = [-9223372036854775807]> ()  axis = Constant <value_ints = [0]> ()
			r = Slice (shape, last, least, axis, last)
			at = Constant <value = int64[1,1] {1}> ()
			t = ScatterND (shape, at, last)
		}`, "r INT64[3]{c,b,a}\nt INT64[3]{a,-1,c}"},
	{"comparisons", `g (float[n] x) => (a, b, c, d) {
			n = Shape (x)
			zero = Constant <value_ints = [0]> ()  one = Constant <value_ints = [1]> ()
			m = Add (n, one)
			a = Equal (n, m)  b = Greater (m, n)  c = Less (n, zero)  d = Equal (n, one)
		}`, "a BOOL[1]{0}\nb BOOL[1]{1}\nc BOOL[1]{0}\nd BOOL[1]{?}"},
	{"as many as there are", `g (float[a,4] x) => (y, z) {
			shape = Shape (x)
			n = ReduceProd <keepdims = 0> (shape)
			axis = Constant <value_ints = [0]> ()
			n1 = Unsqueeze (n, axis)
			y = ConstantOfShape (n1)
			narrow = Cast <to = 6> (shape)
			z = Cast <to = 3> (narrow)
		}`, "y FLOAT[4*a]\nz INT8[2]{?,4}"},
}

func TestControlFlow(t *testing.T) { runCases(t, controlCases) }

var controlCases = []inferCase{
	{"the other branch is not looked at", `g (float[n,1,3] x) => (y) {
			one = Constant <value_int = 1> ()
			d = Shape <start = 1, end = 2> (x)
			is = Equal (d, one)
			y = If (is) <
				then_branch = squeezed () => (s) { axis = Constant <value_ints = [1]> ()  s = Squeeze (x, axis) },
				else_branch = kept () => (k) { k = Identity (x) }>
		}`, "y FLOAT[n,3]"},
	{"what both branches say", `g (bool c, float[n,4] x, float[n,5] z) => (y) {
			y = If (c) <then_branch = a () => (p) { p = Identity (x) }, else_branch = b () => (q) { q = Identity (z) }>
		}`, "y FLOAT[n,?1]"},
	{"a loop that appends", `g (float[n,2] x, int64 rounds) => (all, slices) {
			true = Constant <value = bool {1}> ()
			all, slices = Loop (rounds, true, x) <body = b (i, c, have) => (d, more, slice) {
				d = Identity (c)
				more = Concat <axis = 0> (have, x)
				slice = ReduceSum <keepdims = 0> (x)
			}>
		}`, "all FLOAT[?5,2]\nslices FLOAT[max(?4,0)]"},
	{"a loop of so many rounds", `g (float[n,2] x) => (kept, slices) {
			rounds = Constant <value_int = 3> ()
			kept, slices = Loop (rounds, "", x) <body = b (i, c, have) => (d, more, have) {
				d = Identity (c)
				more = Relu (have)
			}>
		}`, "kept FLOAT[n,2]\nslices FLOAT[3,n,2]"},
	{"a loop that never runs", `g (float[n,2] x) => (kept, slices) {
			rounds = Constant <value_int = 0> ()
			kept, slices = Loop (rounds, "", x) <body = b (i, c, have) => (c, more, have) { more = Concat <axis = 0> (have, x) }>
		}`, "kept FLOAT[n,2]\nslices FLOAT[0,?4,2]"},
	{"scan", `g (float[3] s, float[time,batch,3] x) => (last, all) {
			last, all = Scan (s, x) <num_scan_inputs = 1, scan_output_axes = [1], body = b (state, item) => (next, out) {
				out = Add (item, state)
				next = ReduceMean <keepdims = 0> (out, axes)
				axes = Constant <value_ints = [0]> ()
			}>
		}`, "last FLOAT[3]\nall FLOAT[batch,time,3]"},
	{"each call of a function for itself", `<ir_version: 10, opset_import: ["": 21, "my": 1]>
		g (float[n,6] x, float[m] z) => (a, b, c) {
			a = my.Fold <parts = 2> (x)
			b = my.Fold <parts = 3> (x)
			c = my.Edge (z)
		}
		<domain: "my", opset_import: ["": 18]>
		Fold <parts> (v) => (w) {
			p = Constant <value_int: int = @parts> ()
			axis = Constant <value_ints = [0]> ()
			p1 = Unsqueeze (p, axis)
			zero = Constant <value_ints = [0, -1]> ()
			t = Concat <axis = 0> (zero, p1)
			w = Reshape (v, t)
		}
		<domain: "my", opset_import: ["": 18]>
		Edge <to = 10> (v, limit) => (w) {
			u = Clip (v, limit)
			w = Cast <to: int = @to> (u)
		}`, "a FLOAT[n,3,2]\nb FLOAT[n,2,3]\nc FLOAT16[m]"},
	{"sequences", `g (float[n,6] x, float[k,6] z) => (at, joined, stacked, length) {
			s = SequenceConstruct (x, z)
			zero = Constant <value_int = 0> ()
			at = SequenceAt (s, zero)
			parts = SplitToSequence <axis = 1, keepdims = 0> (x)
			joined = ConcatFromSequence <axis = 0> (s)
			stacked = ConcatFromSequence <axis = 1, new_axis = 1> (parts)
			length = SequenceLength (s)
		}`, "at FLOAT[?1,6]\njoined FLOAT[?2,6]\nstacked FLOAT[n,?3]\nlength INT64[]"},
	{"a sequence that grows in a loop", `g (float[n,6] x, int64 rounds) => (joined) {
			none = SequenceEmpty ()
			s = Loop (rounds, "", none) <body = b (i, c, have) => (c, more) { more = SequenceInsert (have, x) }>
			joined = ConcatFromSequence <axis = 0> (s)
		}`, "joined FLOAT[?4,6]"},
	{"optionals", `g (optional(float[n]) o, float[3] x) => (e, has, w, yes) {
			e = OptionalGetElement (o)
			has = OptionalHasElement (o)
			w = Optional (x)
			yes = OptionalHasElement (x)
		}`, "e FLOAT[n]\nhas BOOL[]\nw optional(FLOAT[3])\nyes BOOL[]{1}"},
}

// Two elements of a sequence are not the same size because both are of unknown size.
func TestElementsOfASequenceDiffer(t *testing.T) {
	m, i := inferText(t, `g (seq(float[n]) s) => (a, b) {
		zero = Constant <value_int = 0> ()  one = Constant <value_int = 1> ()
		a = SequenceAt (s, zero)
		b = SequenceAt (s, one)
	}`)
	a, b := i.Of(m.Graph.Outputs()[0]), i.Of(m.Graph.Outputs()[1])
	if a.Dims[0].Equal(b.Dims[0]) {
		t.Errorf("%s and %s are taken to be of one size", a, b)
	}
}

func TestDeclarationsInBetweenAreNotTrusted(t *testing.T) {
	runCases(t, []inferCase{
		{"stale", `<ir_version: 10, opset_import: ["": 21, "my": 1]> g (float[n,3] x) => (y) <float[7,7] a> { a = Relu (x)  y = Relu (a) }`,
			"y FLOAT[n,3]"},
		{"custom operator", `<ir_version: 10, opset_import: ["": 21, "my": 1]> g (float[n,3] x) => (y, z) <float16[n,other,4] a> {
			a = my.Op (x)
			y = Relu (a)
			z = my.Op (x)
		}`, "y FLOAT16[n,?1,4]\nz UNDEFINED[...]"},
	})
	m := text.MustParse(t, `<ir_version: 10, opset_import: ["": 21, "my": 1]> g (float[2,3] x) => (y) <float16[n,3] a> { a = my.Op (x)  y = Relu (a) }`)
	i := New(m, Options{StaleDeclarations: true})
	if err := i.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := outputsOf(m, i); got != "y FLOAT16[?2,?3]" {
		t.Errorf("with other input sizes than the file's: %s", got)
	}
}

// Every operator that the specification knows has a rule, in every version, and
// every row of the table is an operator of the specification.
func TestEveryOperatorHasARule(t *testing.T) {
	for _, domain := range schema.Domains() {
		for _, name := range schema.Names(domain) {
			for _, version := range schema.Versions(domain, name) {
				if !Supports(domain, name, version) {
					t.Errorf("no rule for %s of domain %q, version %d", name, domain, version)
				}
			}
		}
	}
	for _, o := range table().Operators() {
		if o.Domain != microsoft && len(schema.Versions(o.Domain, o.Name)) == 0 {
			t.Errorf("a rule for %s of domain %q, which nobody knows", o.Name, o.Domain)
		}
	}
}

// What ONNX Runtime's quantiser makes of an LSTM has an LSTM's shapes.
func TestContribOperators(t *testing.T) {
	m := text.MustParse(t, `<opset_import: ["": 17, "com.microsoft": 1]>
		g (float[s,b,8] x, int8[2,8,64] w, int8[2,16,64] r) => (y, h, c) {
			a, h, c = com.microsoft.DynamicQuantizeLSTM <direction = "bidirectional", hidden_size = 16> (x, w, r)
			y = com.microsoft.FastGelu (a)
		}`)
	i := New(m, Options{})
	if err := i.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := outputsOf(m, i), "y FLOAT[s,2,b,16]\nh FLOAT[2,b,16]\nc FLOAT[2,b,16]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Passes work node by node: what they make has to be told, and what they change
// inferred again.
func TestStepByStep(t *testing.T) {
	m := text.MustParse(t, `g (float[n,3] x) => (y) { a = Shape (x)  y = Reshape (x, a) }`)
	i := New(m, Options{})
	nodes := m.Graph.Nodes()
	i.Node(nodes[0])
	if y := i.Of(m.Graph.Outputs()[0]); y.Ranked {
		t.Errorf("y is known before its turn: %s", y)
	}
	made := m.Graph.Add("Cast", []*onnx.Value{nodes[0].Output(0)}, []string{"made"}, onnx.IntAttribute("to", 7)).Output(0)
	i.Set(made, Tensor(i.Of(nodes[0].Output(0)).Elem, Const(2)).WithValues(Integer(Const(-1)), Integer(Const(1))))
	nodes[1].SetInput(1, made)
	i.Node(nodes[1])
	if got := outputsOf(m, i); got != "y FLOAT[3*n,1]" {
		t.Errorf("with another target: %s", got)
	}
	i.Forget(made)
	if f := i.Of(made); f.Ranked {
		t.Errorf("forgotten, but known: %s", f)
	}
}

func TestCausesTellWhereUnknownsComeFrom(t *testing.T) {
	m, i := inferText(t, `g (float[n,?,3] x) => (y) {
		[found] a = NonZero (x)
		b = Concat <axis = 1> (a, a)
		c = Shape (x)
		d = Shape (b)
		e = Concat <axis = 0> (c, d)
		y = ConstantOfShape (e)
	}`)
	var causes []string
	for _, d := range i.Of(m.Graph.Outputs()[0]).Dims {
		for _, c := range i.Causes(d) {
			where := "input"
			if c.Node != nil {
				where = c.Node.Where()
			}
			causes = append(causes, c.Symbol+" of "+where)
		}
	}
	want := []string{"n of input", "?1 of input", `?2 of NonZero node "found"`}
	if diff := cmp.Diff(want, causes); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
}
