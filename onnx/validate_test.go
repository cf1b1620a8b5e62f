package onnx_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/text"
)

func TestValidate(t *testing.T) {
	const header = `<ir_version: 8, opset_import: ["": 16, "my": 1, "ai.onnx.ml": 2]> `
	for _, c := range []struct{ name, body, want string }{
		{"nothing wrong", `(float[2] x) => (y) { y = Add (x, x) }`, ""},
		{"too few inputs", `(float[2] x) => (y) { y = Add (x) }`, `error: Add node that makes "y": it has 1 input; Add takes 2`},
		{"too many inputs", `(float[2] x) => (y) { y = Relu (x, x) }`, `it has 2 inputs; Relu takes 1`},
		{"too few of many", `(float[2] x) => (y) { y = Concat <axis = 0> () }`, `it has 0 inputs; Concat takes at least 1`},
		{"absent inputs at the end", `(float[2] x) => (y) { y = Clip (x, "", "") }`, ""},
		{"a needed input left out", `(float[2] x) => (y) { y = Add ("", x) }`, `input 0 (A) is left out, but not optional`},
		{"too many outputs", `(float[2] x) => (y) { y, z = Relu (x) }`, `it has 2 outputs; Relu takes 1`},
		{"a place beyond the last, without a name", `(float[2] x) => (y) { y = Relu (x, "") }`, `it has 2 inputs, 1 of them without a name; Relu takes 1`},
		{"places beyond the last", `(float[2] x) => (y) { y = Clip (x, "", "", "", "") }`, `it has 5 inputs, 4 of them without a name; Clip takes 1 to 3`},
		{"an output beyond the last, without a name", `(float[2] x) => (y) { y, "" = Relu (x) }`, `it has 2 outputs, 1 of them without a name; Relu takes 1`},
		{"an output that nobody reads, left out", `(float[2] x, int64[1] k) => (y) { "", y = TopK (x, k) }`, ""},
		{"attributes of other kinds", `(float[2] x) => (y) { y = Transpose <perm = 0> (x) }`, `attribute "perm" is an int, not a list of ints`},
		{"branches that take something", `(bool c, float[2] x) => (y) { y = If (c) <then_branch = t (float[2] a) => (p) { p = Neg (a) }, else_branch = e () => (q) { q = Neg (x) }> }`, `its then_branch has 1 input; a branch takes none`},
		{"one value to repeat", `(int64[1] s) => (y) { y = ConstantOfShape <value = float[2] {1, 2}> (s) }`, `attribute "value" has 2 elements; the value that it repeats is one`},
		{"no value to repeat", `(int64[1] s) => (y) { y = ConstantOfShape <value = float[0] {}> (s) }`, `attribute "value" has 0 elements`},
		{"a value to repeat", `(int64[1] s) => (y) { y = ConstantOfShape <value = float {1}> (s) }`, ""},
		{"parts by an input", `(float[4] x, int64[2] s) => (y, z) { y, z = Split (x, s) }`, ""},
		{"parts by the outputs", `(float[4] x) => (y, z) { y, z = Split (x) }`, ""},
		{"a padding of no name", `(float[1,1,4] x) => (y) { y = MaxPool <kernel_shape = [2], auto_pad = ""> (x) }`, ""},
		{"a padding that there is not", `(float[1,1,4] x) => (y) { y = MaxPool <kernel_shape = [2], auto_pad = "SAME"> (x) }`, `attribute "auto_pad" is "SAME"; MaxPool takes NOTSET, SAME_UPPER, SAME_LOWER or VALID`},
		{"a mode of another operator", `(float[1,1,4] x, int64[6] p) => (y) { y = Pad <mode = "linear"> (x, p) }`, `attribute "mode" is "linear"; Pad takes constant, reflect, edge or wrap`},
		{"a mode", `(float[1,1,4] x, int64[6] p) => (y) { y = Pad <mode = "edge"> (x, p) }`, ""},
		{"a direction that there is not", `(float[1,1,4] x) => (y) { y = GRU <hidden_size = 1, direction = "backward"> (x, x, x) }`, `attribute "direction" is "backward"; GRU takes forward, reverse or bidirectional`},
		{"outputs left out", `(float[2] x) => (y) { y, "", "" = LSTM <hidden_size = 1> (x, x, x) }`, ""},
		{"missing attribute", `(float[2] x) => (y) { y = Cast (x) }`, `attribute "to" is missing`},
		{"attribute of another kind", `(float[2] x) => (y) { y = Cast <to = 1.0> (x) }`, `attribute "to" is a float, not an int`},
		{"attribute twice", `(float[2] x) => (y) { y = Cast <to = 1, to = 1> (x) }`, `attribute "to" is given twice`},
		{"unknown attribute", `(float[2] x) => (y) { y = Relu <alpha = 1.0> (x) }`, `warning: Relu node that makes "y": Relu has no attribute "alpha" in opset 16`},
		{"type not allowed", `(string[2] x) => (y) { y = Add (x, x) }`, `input 0 (A) is tensor(string), which Add does not take`},
		{"types that differ", `(float[2] x, int64[2] z) => (y) { y = Add (x, z) }`, `input 1 (B) is tensor(int64), but must be of the same type as another, which is tensor(float)`},
		{"output of another type", `(float[2] x) => (int64[2] y) { y = Relu (x) }`, `output 0 (Y) is tensor(int64), but must be`},
		{"sequences", `(seq(float[2]) s, int64 i) => (float[2] y) { y = SequenceAt (s, i) }`, ""},
		{"an operator of a later opset", `(float[2] x) => (y) { y = Mish (x) }`, `warning: Mish node that makes "y": operator Mish came with opset 18; the model imports 16`},
		{"an unknown operator", `(float[2] x) => (y) { y = Mush (x) }`, `note: Mush node that makes "y": operator Mush is none of domain ""`},
		{"an unknown domain", `(float[2] x) => (y) { y = my.Thing (x) z = my.Thing (x) }`, `operator Thing of domain "my" is opaque`},
		{"a domain not imported", `(float[2] x) => (y) { y = your.Thing (x) }`, `imports no opset for its domain "your"`},
		{"a deprecated operator", `(float[2] x, float[1] s) => (y) { y = Upsample (x, s) }`, `warning: Upsample node that makes "y": operator Upsample is deprecated in opset 16`},
		{"no operator", `(float[2] x) => (y) { y = "" (x) }`, `it names no operator`},
		{"another domain that is known", `(float[2] x) => (y) { y = ai.onnx.ml.Scaler <offset = [0.0]> () }`, `it has 0 inputs; Scaler takes 1`},
		{"no order of axes", `(float[5] x) => (y) { y = Transpose <perm = [5]> (x) }`, `attribute "perm" is [5], no order of 1 axis`},
		{"an order that names an axis twice", `(float[5,5] x) => (y) { y = Transpose <perm = [1, 1]> (x) }`, `attribute "perm" is [1 1], no order of 2 axes`},
		{"an order of axes", `(float[5,5] x) => (y) { y = Transpose <perm = [1, 0]> (x) }`, ""},
		{"a cast to no type", `(float[5] x) => (y) { y = Cast <to = 4294967297> (x) }`, `attribute "to" is 4294967297, no element type that ONNX has`},
		{"a stride of zero", `(float[1,1,4] x) => (y) { y = MaxPool <kernel_shape = [2], strides = [0]> (x) }`, `attribute "strides" holds 0, where a number must be at least 1`},
		{"a negative group", `(float[1,1,4] x) => (y) { y = Conv <group = -1> (x, x) }`, `attribute "group" holds -1`},
		{"branches are looked into", `(bool c, float[2] x) => (y) { y = If (c) <then_branch = t () => (p) { p = Neg () }, else_branch = e () => (q) { q = Neg (x) }> }`, `Neg node that makes "p": it has 0 inputs`},
		{"a call", `(float[2] x) => (y) { y = my.F <must = 1> (x) } <domain: "my", opset_import: ["": 16]> F <must, may = 2> (a) => (b) { b = Neg (a) }`, ""},
		{"a call without its attribute", `(float[2] x) => (y) { y = my.F (x) } <domain: "my", opset_import: ["": 16]> F <must> (a) => (b) { b = Neg (a) }`, `warning: F node that makes "y": attribute "must" is missing, which function F needs`},
		{"a call with more", `(float[2] x) => (y) { y, z = my.F <k = 1> (x, x) } <domain: "my", opset_import: ["": 16]> F (a) => (b) { b = Neg (a) }`, `it has 2 inputs; function F takes at most 1`},
		{"a function that calls itself", `(float[2] x) => (y) { y = my.F (x) } <domain: "my", opset_import: ["my": 1]> F (a) => (b) { b = my.F (a) }`, `error: F node that makes "b": by this call function "F" calls itself`},
		{"functions that call each other", `(float[2] x) => (y) { y = my.F (x) } <domain: "my", opset_import: ["my": 1]> F (a) => (b) { b = my.G (a) } <domain: "my", opset_import: ["my": 1]> G (a) => (b) { b = my.F (a) }`, `error: F node that makes "b": by this call function "F" calls itself`},
		{"a function's body", `(float[2] x) => (y) { y = my.F (x) } <domain: "my", opset_import: ["": 16]> F (a) => (b) { b = Neg (a, a) }`, `Neg node that makes "b": it has 2 inputs`},
	} {
		t.Run(c.name, func(t *testing.T) {
			findings := text.MustParse(t, header+c.body).Validate()
			if c.want == "" {
				if len(findings) > 0 {
					t.Errorf("findings: %v", findings)
				}
				return
			}
			for _, f := range findings {
				if strings.Contains(f.String(), c.want) {
					return
				}
			}
			t.Errorf("findings %v, want %q", findings, c.want)
		})
	}
}

// Into how many parts a Split goes is said in another way in each of three opsets.
func TestValidateSplit(t *testing.T) {
	for _, c := range []struct {
		opset      int
		node, want string
	}{
		{11, `y, z = Split <split = [1, 3]> (x)`, ""},
		{11, `y, z = Split (x)`, ""},
		{11, `y, z = Split <split = [1, 2, 1]> (x)`, `attribute "split" lists 3 parts, and it has 2 outputs`},
		{13, `y, z = Split (x)`, ""},
		{13, `y, z = Split (x, s)`, ""},
		{18, `y, z = Split (x, s)`, ""},
		{18, `y, z = Split <num_outputs = 2> (x)`, ""},
		{18, `y, z = Split (x)`, `it has neither the input "split" nor the attribute "num_outputs"`},
		{18, `y, z = Split <num_outputs = 2> (x, s)`, `it has both the input "split" and the attribute "num_outputs"`},
		{18, `y, z = Split <num_outputs = 3> (x)`, `attribute "num_outputs" is 3, and it has 2 outputs`},
	} {
		m := text.MustParse(t, fmt.Sprintf(`<ir_version: 8, opset_import: ["": %d]> (float[4] x, int64[2] s) => (y, z) { %s }`, c.opset, c.node))
		findings := m.Validate()
		switch {
		case c.want == "" && len(findings) > 0:
			t.Errorf("opset %d: %s: %v", c.opset, c.node, findings)
		case c.want != "" && (len(findings) != 1 || !strings.Contains(findings[0].Message, c.want)):
			t.Errorf("opset %d: %s: findings %v, want %q", c.opset, c.node, findings, c.want)
		}
	}
}

// What is noted of an operator is noted once, whatever the number of its nodes.
func TestValidateNotesOnce(t *testing.T) {
	m := text.MustParse(t, `<ir_version: 8, opset_import: ["": 999, "my": 1]> (float[2] x) => (y) { a = my.A (x) b = my.A (a) c = my.B (b) d = Relu (c) y = Relu (d) }`)
	findings := m.Validate()
	if len(findings) != 3 || findings[0].Severity != onnx.Note || !strings.Contains(findings[2].Message, "newer than the newest known") {
		t.Errorf("%v", findings)
	}
}

// What rests on declared types is marked, and can be left out.
func TestValidateNodesIgnoresDeclarations(t *testing.T) {
	m := text.MustParse(t, `(float[2] x) => (int64[2] y) { y = Relu (x) }`)
	if f := m.Validate(); len(f) != 1 || !f[0].Declared {
		t.Errorf("findings %v, want one of a declared type", f)
	}
	if f := m.ValidateNodes(); len(f) != 0 {
		t.Errorf("findings %v of the nodes alone", f)
	}
}
