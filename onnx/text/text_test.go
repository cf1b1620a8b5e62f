package text_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/text"
)

func TestParseBuildsTheGraph(t *testing.T) {
	m := text.MustParse(t, `
		<ir_version: 9, opset_import: ["": 18]>
		net (float[N,3] x) => (float[N,2] y)
		<float[3,2] w = {1, 2, 3, 4, 5, 6}> {
		  z = MatMul (x, w)   # the weights are the identity's neighbours
		  [last] y = LeakyRelu <alpha = 0.5> (z)
		}`)
	g := m.Graph
	if m.IRVersion != 9 || m.Opset("") != 18 || g.Name != "net" {
		t.Errorf("header: IR %d, opset %d, graph %q", m.IRVersion, m.Opset(""), g.Name)
	}
	last := g.Outputs()[0].Producer()
	if last.Name != "last" || last.Float("alpha", 0) != 0.5 || last.Input(0).Producer().OpType != "MatMul" {
		t.Errorf("the last node is %s", last.Where())
	}
	w, err := g.Find("w").Constant().Dense()
	if err != nil || w.String() != "FLOAT[3,2]{1, 2, 3, 4, 5, 6}" {
		t.Errorf("w = %v, %v", w, err)
	}
}

// Every text here is as Print writes it, so that Print after Parse is the identity.
var texts = map[string]string{
	"branches": `<ir_version: 10, opset_import: ["" : 21]>
net (bool c, float[2] x) => (float[2] y)
<float[2] w = {1, -0.5}> {
  y = If (c) <then_branch = yes () => (float[2] a) {
    a = Add (x, w)
  }, else_branch = no () => (b)
  <int64[1] axes = {0}> {
    b = Identity (x)
  }>
}
`,
	"attributes": `<ir_version: 10, opset_import: ["" : 21, "my.ops" : 1]>
"" () => (y) {
  [n] y, "" = my.ops.Everything <f = 0.1, i = -3, s = "a\"b\x80", fs = [1.0, inf, nan], is = [1, 2], ss = ["", "é"], none: ints = [], t = float[2] {1, nan}, ts = [int64 {7}, string[1] name = {"s"}], sp = sparse_tensor(float[3,4]) {float[2] {1, 2}, int64[2] {0, 5}}, tp: type_proto = seq(optional(float[N,?])), tps: type_protos = [int8[], map(string, double[3])]> ("", "")
}
`,
	"names": `<ir_version: 3, opset_import: ["ai.onnx" : 7, "x-y" : 2], producer_name: "me", model_version: 4, doc_string: "d", metadata_props: ["k": "v"]>
g (float["a dim",3] "0" @doc "first" @meta ["a": "b"]) => ("/y/0") @doc "graph" {
  ["node 1"] "/y/0" = "x-y".Op:over ("0") @meta ["n": "1"]
}
`,
	"functions": `<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
g (float[2] x) => (float[2] y) {
  y = my.Leaky <slope = 0.25> (x)
}
<domain: "my", opset_import: ["" : 18], doc_string: "leaks">
Leaky <must, slope = 0.01> (a) => (b)
<float[] c> {
  c = Identity (a)
  b = LeakyRelu <alpha: float = @slope> (c)
}
`,
	"types": `<ir_version: 14, opset_import: ["" : 25]>
g (float16 a, bfloat16[0] b = {}, optional(seq(float[2])) c, opaque(my.dom, name) d, opaque() e) => (float[2,2] sp)
<float8e4m3fn[2] f1 = {-448, nan},
 float8e5m2[2] f2 = {-inf, 1.75},
 float8e8m0[2] f3 = {0.5, nan},
 float4e2m1[3] f4 = {6, -0, 1.5},
 int4[3] i4 = {-8, 7, 1},
 uint2[5] u2 = {0, 1, 2, 3, 1},
 int2[2] i2 = {-2, 1},
 uint64 u64 = {18446744073709551615},
 complex64[1] z = {1, -2.5},
 bool[2] flags = {1, 0},
 double pi = {3.141592653589793},
 sparse_tensor(float[2,2]) sp = {float[1] {5}, int64[1,2] {1, 0}}> {
}
`,
}

func TestPrintAfterParseIsTheIdentity(t *testing.T) {
	for name, source := range texts {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(source, text.String(text.MustParse(t, source))); diff != "" {
				t.Errorf("printed text differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrorsSayWhere(t *testing.T) {
	const start = "g (float x) => (y) {\n  "
	for _, c := range []struct{ source, want string }{
		{start + "y = Relu (z)\n}", `2:13: nothing makes "z"`},
		{start + "yy = Relu (x)\n}", `1:17: nothing makes "y"`},
		{start + "y = Relu (x)", `2:15: the name of an output is expected, not the end`},
		{start + "y = Relu x", `2:12: "(" is expected, not "x"`},
		{start + "y = If (x) <b = q () => (k) { k = Neg (j) }> }", `2:42: nothing makes "j"`},
		{start + "y = A (x) y = B (x) }", `2:13: "y" is made twice in one graph`},
		{start + "y = A <axis> (x) }", `2:14: "=" is expected, not ">"`},
		{start + "y = A <axis: Int = 1> (x) }", `2:16: there is no kind of attribute "Int"; did you mean int?`},
		{start + "y = A <axis = @k> (x) }", `2:17: a reference needs a kind`},
		{start + "y = A <axes = []> (x) }", `2:17: an empty list needs a kind`},
		{start + "y = A <axes: ints = 1> (x) }", `2:23: ints is expected in brackets`},
		{start + "y = A <axes: int = [1]> (x) }", `2:22: one int is expected, not a list`},
		{start + "y = A <axes = [1, 2.5]> (x) }", `2:21: an integer is expected, not "2.5"`},
		{start + "y = A <f = 1e60> (x) }", `2:14: a number of 32 bits is expected`},
		{start + "y = A <i = 99999999999999999999> (x) }", `beyond 64 bits`},
		{start + "y = A <s = sparse_tensor(float[3]) {float[1] {1}}> (x) }", `"," is expected`},
		{start + "y = A (x) & }", `2:13: the character '&' has no meaning here`},
		{start + "y = A (\"x) }\n", `2:10: a string is not closed`},
		{start + "y = A (x) @metta [] }", `there is no note @metta here`},
		{"<ir_version: 8, opsets: []> " + start, `1:17: there is no key "opsets" here`},
		{"<ir_version: \"8\"> ", `1:14: an integer is expected, not the string "8"`},
		{"g (flaot[3] x) => () {}", `1:4: there is no type "flaot"; did you mean "float"?`},
		{"g () => () <float[2] w = {1}> {}", `1:26: 1 elements for dims [2], which need 2`},
		{"g () => () <float[N] w = {1}> {}", `1:22: a stored tensor needs known dims`},
		{"g () => () <float[] w = {1}> {}", `1:21: a stored tensor needs a known rank`},
		{"g () => () <float[99999,99999] w = {}> {}", `more than`},
		{"g () => () <seq(float) w = {}> {}", `"w" cannot be stored`},
		{"g () => () <int8[1] w = {128}> {}", `1:26: "128" is no element of int8`},
		{"g () => () <uint4[1] w = {-1}> {}", `"-1" is no element of uint4`},
		{"g () => () <float16[1] w = {1e6}> {}", `"1e6" is no element of float16`},
		{"g () => () <string[1] w = {1}> {}", `a quoted string is expected`},
		{"g () => () <float[3] w = {1, …}> {}", `1:30: elements were left out`},
		{"g () => (y) {} g () => () {}", `nothing makes "y"`},
		{"é (", `1:1: the character 'é' has no meaning here`},
		{"\"é\" (x y", `1:6: there is no type "x"`},
		{strings.Repeat("g () => () { = If () <b = ", 300), `nested deeper than`},
		{"g (" + strings.Repeat("seq(", 300), `nested deeper than`},
	} {
		_, err := text.Parse(c.source)
		var where *text.Error
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &where) {
			t.Errorf("Parse(%.60q): %v, want %s", c.source, err, c.want)
		}
	}
}

// What the text is not to blame for comes from the reader of models.
func TestParseReadsTheModelItMakes(t *testing.T) {
	_, err := text.Parse(`g () => () <float[2] w = ["location": "../w.bin"]> {}`)
	if err == nil || !strings.Contains(err.Error(), "leaves the model's folder") {
		t.Error(err)
	}
}

func TestPrintOptions(t *testing.T) {
	m := text.MustParse(t, `(float[20] x) => (y)
		<float[20] w = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}, float[20] z> {
		z = Add (x, w) y = Neg (z) }`)
	for _, c := range []struct {
		options text.Options
		want    string
	}{
		{text.Options{}, "<float[20] w = {0, 1, 2, 3, 4, 5, 6, 7, …},\n float[20] z> {"},
		{text.Options{MaxElements: 3, OmitTypes: true}, "<float[20] w = {0, 1, 2, …}> {"},
		{text.Options{MaxElements: 20, OmitTypes: true}, "17, 18, 19}> {"},
		{text.Options{MaxElements: -1, OmitTypes: true}, "17, 18, 19}> {"},
	} {
		var b strings.Builder
		if err := text.Print(&b, m, c.options); err != nil || !strings.Contains(b.String(), c.want) {
			t.Errorf("%+v: %v\n%s", c.options, err, &b)
		}
	}
	if err := text.Print(failingWriter{}, m, text.Options{}); err == nil {
		t.Error("Print does not tell that the writer failed")
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("full") }

// Every element type prints so that it reads back, bit for bit but for NaN's payload.
func TestEveryElementTypeReadsBack(t *testing.T) {
	for _, elem := range tensor.Types() {
		size, ok := elem.RawSize(256)
		if !ok {
			continue
		}
		raw := make([]byte, size)
		for i := range raw {
			raw[i] = byte(i*37 + i>>8)
		}
		if elem == tensor.Bool {
			for i := range raw {
				raw[i] &= 1
			}
		}
		want, err := tensor.FromRaw(elem, []int{256}, raw)
		if err != nil {
			t.Fatal(err)
		}
		m := onnx.NewModel(14, 25)
		m.Graph.AddOutput(m.Graph.AddInitializer("w", want))
		again := text.MustParse(t, text.String(m))
		got, err := again.Graph.Find("w").Initializer().Dense()
		if err != nil {
			t.Fatal(err)
		}
		if text.String(again) != text.String(m) || !elem.IsFloat() && !elem.IsComplex() && !tensor.EqualBits(got, want) {
			t.Errorf("%s came back as %s", want, got)
		}
	}
}

// FuzzText parses whatever there is. What can be parsed prints as a text that means
// the same.
func FuzzText(f *testing.F) {
	for _, source := range texts {
		f.Add(source)
	}
	f.Add("<ir_version: 3> (x) => (x) {} # done")
	f.Fuzz(func(t *testing.T, source string) {
		if strings.Contains(source, "location") {
			return // would look for files
		}
		m, err := text.Parse(source)
		if err != nil {
			return
		}
		once := text.String(m)
		again, err := text.Parse(once)
		if err != nil {
			t.Fatalf("what was printed cannot be parsed: %v\n%s", err, once)
		}
		if twice := text.String(again); twice != once {
			t.Fatalf("printed:\n%s\nand after parsing that:\n%s", once, twice)
		}
	})
}
