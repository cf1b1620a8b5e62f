package rules_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/configgen/rules"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/text"
	"github.com/npuctl/npuctl/soc"
)

// checkModel checks a model that is written as text, and lists the rules that found
// something, with the node.
func checkModel(t *testing.T, model, chip string) []string {
	t.Helper()
	m, err := text.Parse(model)
	if err != nil {
		t.Fatalf("%s\n%v", model, err)
	}
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := m.Save(path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	options := rules.Options{}
	if chip != "" {
		c, err := soc.Lookup(chip)
		if err != nil {
			t.Fatal(err)
		}
		options.Chip = &c
	}
	result, err := rules.Check([]string{path}, options)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range result.Findings {
		node, _, _ := strings.Cut(f.Message, ":")
		found = append(found, f.Rule+" "+node)
	}
	slices.Sort(found)
	return found
}

// graph is a model of an opset around some nodes, with inputs of many kinds.
func graph(opset int, nodes string) string {
	return fmt.Sprintf(`<ir_version: 10, opset_import: ["": %d]>
net (float[4,6] a, float[1,3,8,8] image, float[1,3,8,8,8] cube, float[3,3,3,3] w, float[3,3,3,3,3] w3, int64[4,6] i, bool flag) => (float y)
<int64[2] two = {1, 1}, int64[2] halves = {3, 3}, float[4] scales = {1, 1, 2, 2}, float[4] deep = {1, 2, 2, 2}, float zero = {0}> {
%s
}`, opset, nodes)
}

// The forms that CANN's parser refuses, dies of, or reads as something else, each with a
// neighbour that it takes.
func TestNodeForms(t *testing.T) {
	const form, misread, refused = "chip-form", "chip-misread", "chip-refused"
	for _, test := range []struct {
		opset int
		node  string
		want  string // the rule, or ""
	}{
		{17, "y = Transpose (a)", form},
		{17, "y = Transpose <perm = [1, 0]> (a)", ""},
		{17, "y = Conv (image, w)", form},
		{17, "y = Conv <pads = [0, 0, 0, 0]> (image, w)", ""},
		{17, "y = Conv <auto_pad = \"SAME_UPPER\", strides = [1, 1, 1]> (cube, w3)", form},
		{17, "y = Conv <auto_pad = \"SAME_UPPER\", strides = [1, 1]> (image, w)", ""},
		{17, "y = ConvTranspose <strides = [2, 2]> (image, w)", form},
		{17, "y = ConvTranspose <kernel_shape = [3, 3]> (image, w)", ""},
		{11, "y = Clip (a)", form},
		{11, "y = Clip (a, zero)", ""},
		{10, "y = Clip (a)", ""},
		{18, "y, z = Split <axis = 1, num_outputs = 2> (a)", ""},
		{18, "y, z = Split <axis = -1, num_outputs = 2> (a)", ""},
		{18, "y, z, q, r = Split <axis = 1, num_outputs = 4> (a)", form},
		{18, "y, z = Split <axis = 1, num_outputs = 3> (a)", form},
		{18, "b = Relu (a) y, z = Split <axis = 1, num_outputs = 2> (b)", form},
		{18, "b = Relu (a) y, z = Split <axis = 1> (b, halves)", ""},
		{11, "y, z = Split <axis = 1, split = [2, 2, 2]> (a)", form},
		{13, "b = Relu (a) y, z = Split <axis = 1> (b)", ""},
		{17, "y, z = MaxPool <kernel_shape = [2, 2]> (image)", form},
		{17, "y = MaxPool <kernel_shape = [2, 2], storage_order = 1> (image)", form},
		{17, "y = MaxPool <kernel_shape = [2, 2]> (image)", ""},
		{17, "y = ArgMax <select_last_index = 1> (a)", form},
		{17, "y = ArgMin <select_last_index = 0> (a)", ""},
		{17, "y = Selu <alpha = 1.0> (a)", form},
		{17, "y = Selu <alpha = 1.67326319> (a)", ""},
		{17, "y = GatherND <batch_dims = 1> (a, i)", form},
		{17, "y = GatherND (a, i)", ""},
		{16, "y = ScatterND <reduction = \"mul\"> (a, i, a)", form},
		{16, "y = ScatterND <reduction = \"add\"> (a, i, a)", ""},
		{17, "y = IsInf <detect_negative = 0> (a)", form},
		{17, "y = IsInf (a)", ""},
		{18, "y = Col2Im (image, two, two)", form},
		{18, "y = Col2Im <dilations = [1, 1], pads = [0, 0]> (image, two, two)", ""},
		{10, "y = Resize <mode = \"cubic\"> (image, scales)", form},
		{11, "y = Resize <mode = \"cubic\"> (image, \"\", scales)", ""},
		{18, "y = Pad (a, two, zero, two)", form},
		{18, "y = Pad (a, two, zero)", ""},
		{18, "y = ReduceSumSquare (a, two)", form},
		{17, "y = ReduceSumSquare <axes = [1]> (a)", ""},
		{8, "y = Upsample <scales = [1.0, 1.0, 2.0, 2.0]> (image)", form},
		{9, "y = Upsample (image, scales)", ""},
		{13, "y = Constant <value_float = 1.0> ()", form},
		{13, "y = Constant <value = float {1}> ()", ""},
		{18, "y = ReduceL1 (a, two)", refused},
		{17, "y = ReduceL1 <axes = [1]> (a)", ""},
		{10, "y = MaxUnpool <kernel_shape = [2, 2]> (image, i)", refused},
		{17, "y = Loop (i, flag, a)", refused},

		{17, "y = MaxPool <kernel_shape = [2, 2], dilations = [2, 2]> (image)", misread},
		{17, "y = MaxPool <kernel_shape = [2, 2, 2], dilations = [2, 2, 2]> (cube)", ""},
		{17, "y = AveragePool <kernel_shape = [2, 2], auto_pad = \"SAME_LOWER\"> (image)", misread},
		{17, "y = AveragePool <kernel_shape = [2, 2], auto_pad = \"SAME_UPPER\"> (image)", ""},
		{18, "y = LpPool <kernel_shape = [2, 2], ceil_mode = 1> (image)", misread},
		{18, "y = Resize <antialias = 1> (image, \"\", scales)", misread},
		{18, "y = Resize <axes = [2, 3]> (image, \"\", scales)", misread},
		{18, "y = Resize <nearest_mode = \"ceil\"> (image, \"\", scales)", misread},
		{18, "y = Resize <nearest_mode = \"floor\"> (image, \"\", scales)", ""},
		{18, "y = Resize (image, \"\", deep)", misread},
		{17, "y = Shape <start = 1> (a)", misread},
		{17, "y = Shape (a)", ""},
		{17, "y = Mod <fmod = 1> (a, a)", misread},
		{17, "y = Unique <axis = 0> (a)", misread},
		{17, "y = RoiAlign <mode = \"max\"> (image, a, i)", misread},
		{17, "y = GRU <linear_before_reset = 1, hidden_size = 4> (a, a, a)", misread},
		{17, "y = GRU <hidden_size = 4> (a, a, a)", ""},
		{17, "y = LSTM <clip = 1.0, hidden_size = 4> (a, a, a)", misread},
	} {
		found := checkModel(t, graph(test.opset, test.node), "")
		found = slices.DeleteFunc(found, func(f string) bool { return strings.HasPrefix(f, "scalar-tensor") })
		var got string
		for _, f := range found {
			got, _, _ = strings.Cut(f, " ")
		}
		if got != test.want || len(found) > 1 {
			t.Errorf("opset %d: %s: %v, want %q", test.opset, test.node, found, test.want)
		}
	}
}

// What graphs as a whole are refused for.
func TestGraphForms(t *testing.T) {
	for _, test := range []struct{ name, model, want string }{
		{"no input", `<ir_version: 10, opset_import: ["": 17]> net () => (float[1] y) { y = Constant <value = float[1] {1}> () }`, "[chip-graph net]"},
		{"no output", `<ir_version: 10, opset_import: ["": 17]> net (float[1] x) => () { y = Relu (x) }`, "[chip-graph net]"},
		{"no opset", `<ir_version: 10, opset_import: ["my": 1]> net (float[1] x) => (float[1] y) { y = Relu (x) }`, "[chip-graph net chip-refused Relu]"},
		{"a node named as an input", `<ir_version: 10, opset_import: ["": 17]> net (float[1] x) => (float[1] y) { [x] y = Relu (x) }`, "[chip-graph x]"},
		{"an input of a type", `<ir_version: 10, opset_import: ["": 17]> net (uint4[1] x) => (uint4[1] y) { y = Identity (x) }`, "[chip-graph x]"},
		{"a sequence", `<ir_version: 10, opset_import: ["": 17]> net (seq(float[1]) x) => (seq(float[1]) y) { y = Identity (x) }`, "[chip-graph x]"},
		{"an omitted input in a branch", `<ir_version: 10, opset_import: ["": 17]>
			net (bool c, float[1,3,8,8] x, float[4] s) => (float[1,3,8,8] y) {
			  y = If (c) <then_branch = a () => (float[1,3,8,8] p) { p = Resize (x, "", s) }, else_branch = b () => (float[1,3,8,8] q) { q = Identity (x) }>
			}`, "[chip-form If scalar-tensor input \"c\" is a scalar]"},
		{"fine", `<ir_version: 10, opset_import: ["": 17]> net (float[1] x) => (float[1] y) { y = Relu (x) }`, "[]"},
	} {
		got := fmt.Sprint(checkModel(t, test.model, ""))
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// What a chip computes elsewhere than on the AI Core, and what cuts a graph.
func TestChipNodes(t *testing.T) {
	for _, test := range []struct{ chip, node, want string }{
		{"Ascend310P3", "y = Cast <to = 1> (i)", "chip-slow"},
		{"Ascend910B3", "y = Cast <to = 1> (i)", ""},
		{"Ascend910B3", "y = Cast <to = 11> (i)", "chip-slow"},
		{"Ascend910B3", "y = Mod (i, i)", "chip-slow"},
		{"Ascend910B3", "y = Where (b, a, a) b = Cast <to = 9> (a)", ""},
		{"Ascend910B3", "y = MaxPool <kernel_shape = [16, 16]> (image)", "chip-slow"},
		{"Ascend910B3", "y = MaxPool <kernel_shape = [2, 2], strides = [64, 64]> (image)", "chip-slow"},
		{"Ascend910B3", "y = MaxPool <kernel_shape = [2, 2], strides = [63, 63]> (image)", ""},
		{"Ascend910B3", "y = NonZero (a)", "chip-dynamic"},
		{"Ascend910B3", "s = Shape (a) y = Expand (a, s)", ""},
		{"Ascend910B3", "c = Cast <to = 7> (a) y = Expand (a, c)", "chip-dynamic"},
		{"Ascend910B3", "y = If (flag) <then_branch = p () => (float[4,6] u) { u = Relu (a) }, else_branch = q () => (float[4,6] v) { v = Abs (a) }>", "chip-dynamic"},
	} {
		var got []string
		for _, f := range checkModel(t, graph(13, test.node), test.chip) {
			if rule, _, _ := strings.Cut(f, " "); rule != "scalar-tensor" && !slices.Contains(got, rule) {
				got = append(got, rule)
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %s: %v, want %q", test.chip, test.node, got, test.want)
		}
	}
}
