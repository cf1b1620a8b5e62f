package infer

import (
	"strings"
	"testing"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/text"
)

func TestConflictsNameBothPlaces(t *testing.T) {
	for _, c := range []struct {
		name, model string
		warning     bool
		want        []string // parts of the message
	}{
		{"no broadcast", `g (float[2,3] a, float[2,4] b) => (y) { [first] c = Relu (b)  [sum] y = Add (a, c) }`, false,
			[]string{`Add node "sum"`, `"a" FLOAT[2,3] (an input`, `"c" FLOAT[2,4] (made by Relu node "first")`, "broadcast"}},
		{"product", `g (float[n,3] a, float[4,m] b) => (y) { [p] y = MatMul (a, b) }`, false,
			[]string{`MatMul node "p"`, `dim 1 of "a" FLOAT[n,3]`, `dim 0 of "b" FLOAT[4,m]`, "equal"}},
		{"channels", `g (float[1,4,8,8] x, float[2,3,3,3] w) => (y) { y = Conv (x, w) }`, false,
			[]string{"channels of", `"x" FLOAT[1,4,8,8]`, `"w" FLOAT[2,3,3,3]`}},
		{"window", `g (float[1,3,2,8] x, float[2,3,5,3] w) => (y) { y = Conv (x, w) }`, false,
			[]string{"the window is larger than", `"x" FLOAT[1,3,2,8]`}},
		{"elements", `g (float[2,5] x) => (y) { t = Constant <value_ints = [3, -1]> ()  y = Reshape (x, t) }`, false,
			[]string{`"x" FLOAT[2,5]`, "does not divide into the target [3,?]"}},
		{"element count", `g (float[2,5] x) => (y) { t = Constant <value_ints = [3, 4]> ()  y = Reshape (x, t) }`, false,
			[]string{"10 elements", "[3,4]", "12"}},
		{"a remainder", `g (float[2,3,5] x) => (y) { t = Constant <value_ints = [4, 0, -1]> ()  y = Reshape (x, t) }`, false,
			[]string{"does not divide into the target [4,3,?]"}},
		{"pieces", `g (float[n,6] x) => (y, z) { [s] y, z = Split <axis = 1> (x, t)  t = Constant <value_ints = [2, 3]> () }`, false,
			[]string{`Split node "s"`, `add up to 5`, `"x" FLOAT[n,6]`, "has 6"}},
		{"pieces for nobody", `g (float[n,6] x) => (y, z) { [s] y, z = Split <axis = 1> (x, t)  t = Constant <value_ints = [2, 2, 2]> () }`, false,
			[]string{`Split node "s"`, `sizes of 3 pieces for 2 outputs`}},
		{"ranks", `g (float[2] x, float[2,1] z) => (y) { y = Concat <axis = 0> (x, z) }`, false,
			[]string{`"x" FLOAT[2]`, `"z" FLOAT[2,1]`, "different ranks"}},
		{"axis", `g (float[2] x) => (y) { y = ArgMax <axis = 3> (x) }`, false, []string{"axis 3", "rank 1"}},
		{"one name, two sizes", `g (float[n,8] a, float[3,8] b, float[4,8] c) => (y, z) {
			[one] y = Concat <axis = 1> (a, b)
			[two] z = Concat <axis = 1> (c, a)
		}`, false, []string{`named "n" must be 4 here and 3 at Concat node "one"`, `node "two"`}},
		{"declared dim", `g (float[n,8] a) => (float[n,9] y) { [r] y = Relu (a) }`, true,
			[]string{`declares output "y" as FLOAT[n,9]`, `Relu node "r" makes FLOAT[n,8]`}},
		{"declared name", `g (float[n,8] a) => (float[n] y) { y = ReduceSum <keepdims = 0> (a, axes)  axes = Constant <value_ints = [0]> () }`, true,
			[]string{`declares output "y" as FLOAT[n]`, "makes FLOAT[8]"}},
		{"declared rank", `g (float[n,8] a) => (float[n] y) { y = Relu (a) }`, true, []string{"the ranks differ"}},
		{"declared type", `g (float[n,8] a) => (int8[n,8] y) { y = Relu (a) }`, true, []string{"the element types differ"}},
		{"declared input of a body", `g (float[n,2] x, int64 k) => (y) {
			[l] y = Loop (k, "", x) <body = b (int64 i, bool c, float[n,3] have) => (c, more) { more = Relu (have) }>
		}`, true, []string{`of Loop node "l" declares input "have" as FLOAT[n,3], but is given FLOAT[n,2]`}},
		{"in a branch", `g (bool c, float[2] a, float[3] b) => (y) {
			y = If (c) <then_branch = t () => (p) { p = Add (a, b) }, else_branch = e () => (q) { q = Identity (a) }>
		}`, true, []string{"do not broadcast"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, i := inferText(t, sorted(t, c.model))
			if len(i.Conflicts()) != 1 {
				t.Fatalf("conflicts: %v", i.Conflicts())
			}
			f := i.Conflicts()[0]
			if f.Warning != c.warning {
				t.Errorf("warning is %v: %s", f.Warning, f.Message)
			}
			for _, part := range c.want {
				if !strings.Contains(f.Message, part) {
					t.Errorf("%q is not in: %s", part, f.Message)
				}
			}
		})
	}
}

// sorted gives a model's text with the nodes in order.
func sorted(t *testing.T, source string) string {
	t.Helper()
	m := text.MustParse(t, source)
	if err := m.Graph.Sort(); err != nil {
		t.Fatal(err)
	}
	return text.String(m)
}

func TestAConflictIsToldOnce(t *testing.T) {
	m, i := inferText(t, `g (float[2,3] a, float[2,4] b) => (y) { y = Add (a, b) }`)
	for range 3 {
		i.Node(m.Graph.Nodes()[0])
	}
	if n := len(i.Conflicts()); n != 1 {
		t.Errorf("%d conflicts", n)
	}
}

func TestDeclare(t *testing.T) {
	for _, c := range []struct {
		name, model string
		stale       bool
		want        string
	}{
		{"numbers, names and blanks", `g (float[n,2,h] x) => (y) { p = Relu (x)  [cut] q = MaxPool <kernel_shape = [2], strides = [2]> (p)  y = Identity (q) }`, false,
			"FLOAT[n,2,?]"},
		{"labels of outputs stay", `g (float[n,h] x) => (float[batch,half] y) { y = Shrink (x) }`, false,
			"FLOAT[batch,half]"},
		{"but not the names of other inputs", `g (float[n,h] x) => (float[h,n] y) { y = Shrink (x) }`, false,
			"FLOAT[n,h]"},
		{"numbers win", `g (float[2,3] x) => (float[batch,4] y) { y = Shrink (x) }`, false,
			"FLOAT[2,3]"},
		{"a declaration fills gaps", `g (float[] x) => (float[4,?] y) { y = Shrink (x) }`, false,
			"FLOAT[4,?]"},
		{"with other sizes of inputs too", `g (float[?,3] x) => (float[4,3] y) { y = Shrink (x) }`, true,
			"FLOAT[4,3]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := text.MustParse(t, c.model)
			i := New(m, Options{StaleDeclarations: c.stale})
			if err := i.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			for v := range m.Graph.Values() {
				i.Declare(v)
			}
			if got := m.Graph.Outputs()[0].Type.String(); got != c.want {
				t.Errorf("declared %s, want %s", got, c.want)
			}
		})
	}
}

// A type that says the same already stays the object it was, so that the file's
// own spelling of it is kept.
func TestDeclareKeepsWhatIsRight(t *testing.T) {
	m, i := inferText(t, `g (float[n,3] x) => (float[n,3] y) { y = Relu (x) }`)
	y := m.Graph.Outputs()[0]
	was := y.Type
	i.Declare(y)
	if y.Type != was {
		t.Errorf("another type of the same meaning: %s", y.Type)
	}
	if was.Kind != onnx.KindTensor {
		t.Errorf("kind %v", was.Kind)
	}
}
