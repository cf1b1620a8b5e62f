package schema

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/npuctl/npuctl/internal/onnxpb"
)

func TestLookupTakesTheNewestVersionNotAfterTheOpset(t *testing.T) {
	tests := []struct {
		domain, name string
		opset        int
		since        int // 0: no such operator at that opset
	}{
		{"", "Softmax", 12, 11},
		{"", "Softmax", 13, 13},
		{"ai.onnx", "Softmax", 28, 13},
		{"", "ReduceSum", 12, 11},
		{"", "ReduceSum", 13, 13},
		{"", "ReduceMean", 17, 13},
		{"", "ReduceMean", 18, 18},
		{"", "Clip", 10, 6},
		{"", "Clip", 11, 11},
		{"", "Abs", 1, 1}, // the first row of the table
		{"", "Abs", 0, 0},
		{"", "Where", 8, 0},
		{"", "Where", 9, 9},
		{"", "Cast", 1000, 28}, // opsets of the future
		{"", "softmax", 13, 0},
		{"", "", 13, 0},
		{"", "LabelEncoder", 13, 0},
		{"ai.onnx.ml", "LabelEncoder", 3, 2},
		{"ai.onnx.ml", "Softmax", 5, 0},
		{"ai.onnx.preview.training", "Momentum", 1, 1}, // the last row
		{"com.microsoft", "Gelu", 1, 0},
		{"zzz", "Zzz", 1, 0},
	}
	for _, test := range tests {
		operator, found := Lookup(test.domain, test.name, test.opset)
		if found != (test.since != 0) {
			t.Errorf("Lookup(%q, %q, %d) found: %v", test.domain, test.name, test.opset, found)
			continue
		}
		if found && (operator.Since != test.since || operator.Name != test.name) {
			t.Errorf("Lookup(%q, %q, %d) = %s %d, want version %d",
				test.domain, test.name, test.opset, operator.Name, operator.Since, test.since)
		}
	}
}

// The history of the operators that exporters write most, from the specification's
// change log, so that a generator that loses versions is noticed.
func TestVersions(t *testing.T) {
	tests := []struct {
		name     string
		versions []int
	}{
		{"Constant", []int{1, 9, 11, 12, 13, 19, 21, 23, 24, 25}},
		{"Identity", []int{1, 13, 14, 16, 19, 21, 23, 24, 25}},
		{"Shape", []int{1, 13, 15, 19, 21, 23, 24, 25}},
		{"Size", []int{1, 13, 19, 21, 23, 24, 25}},
		{"Gather", []int{1, 11, 13}},
		{"Slice", []int{1, 10, 11, 13}},
		{"Concat", []int{1, 4, 11, 13}},
		{"Unsqueeze", []int{1, 11, 13, 21, 23, 24, 25}},
		{"Squeeze", []int{1, 11, 13, 21, 23, 24, 25}},
		{"Reshape", []int{1, 5, 13, 14, 19, 21, 23, 24, 25}},
		{"Cast", []int{1, 6, 9, 13, 19, 21, 23, 24, 25, 28}},
		{"CastLike", []int{15, 19, 21, 23, 24, 25}},
		{"ConstantOfShape", []int{9, 20, 21, 23, 24, 25}},
		{"Expand", []int{8, 13}},
		{"Tile", []int{1, 6, 13}},
		{"Transpose", []int{1, 13, 21, 23, 24, 25}},
		{"Range", []int{11, 27}},
		{"Add", []int{1, 6, 7, 13, 14}},
		{"Sub", []int{1, 6, 7, 13, 14}},
		{"Mul", []int{1, 6, 7, 13, 14}},
		{"Div", []int{1, 6, 7, 13, 14}},
		{"Mod", []int{10, 13, 28}},
		{"Neg", []int{1, 6, 13}},
		{"Abs", []int{1, 6, 13}},
		{"Sign", []int{9, 13}},
		{"Floor", []int{1, 6, 13}},
		{"Ceil", []int{1, 6, 13}},
		{"Round", []int{11, 22}},
		{"Sqrt", []int{1, 6, 13}},
		{"Reciprocal", []int{1, 6, 13}},
		{"Exp", []int{1, 6, 13}},
		{"Log", []int{1, 6, 13}},
		{"Pow", []int{1, 7, 12, 13, 15}},
		{"Min", []int{1, 6, 8, 12, 13}},
		{"Max", []int{1, 6, 8, 12, 13}},
		{"Sum", []int{1, 6, 8, 13}},
		{"Mean", []int{1, 6, 8, 13}},
		{"Equal", []int{1, 7, 11, 13, 19}},
		{"Less", []int{1, 7, 9, 13}},
		{"Greater", []int{1, 7, 9, 13}},
		{"LessOrEqual", []int{12, 16}},
		{"GreaterOrEqual", []int{12, 16}},
		{"And", []int{1, 7}},
		{"Or", []int{1, 7}},
		{"Xor", []int{1, 7}},
		{"Not", []int{1}},
		{"Where", []int{9, 16}},
		{"ReduceSum", []int{1, 11, 13}},
		{"ReduceProd", []int{1, 11, 13, 18}},
		{"ReduceMax", []int{1, 11, 12, 13, 18, 20}},
		{"ReduceMin", []int{1, 11, 12, 13, 18, 20}},
		{"ReduceMean", []int{1, 11, 13, 18}},
		{"Pad", []int{1, 2, 11, 13, 18, 19, 21, 23, 24, 25}},
		{"ScatterND", []int{11, 13, 16, 18}},
		{"NoSuchOperator", nil},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.versions, Versions("ai.onnx", test.name)); diff != "" {
			t.Errorf("versions of %s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestAttributeDefaultsDependOnTheVersion(t *testing.T) {
	none := (*Value)(nil)
	tests := []struct {
		name      string
		opset     int
		attribute string
		want      *Attribute // nil: that version has no such attribute
	}{
		{"Softmax", 11, "axis", &Attribute{Name: "axis", Kind: KindInt, Default: &Value{Int: 1}}},
		{"Softmax", 13, "axis", &Attribute{Name: "axis", Kind: KindInt, Default: &Value{Int: -1}}},
		{"ReduceSum", 11, "axes", &Attribute{Name: "axes", Kind: KindInts}},
		{"ReduceSum", 13, "axes", nil},
		{"ReduceSum", 13, "noop_with_empty_axes",
			&Attribute{Name: "noop_with_empty_axes", Kind: KindInt, Default: &Value{}}},
		{"Clip", 6, "min", &Attribute{Name: "min", Kind: KindFloat, Default: &Value{Float: -3.4028235e38}}},
		{"Clip", 11, "min", nil},
		{"Cast", 1, "to", &Attribute{Name: "to", Kind: KindString, Required: true}},
		{"Cast", 6, "to", &Attribute{Name: "to", Kind: KindInt, Required: true}},
		{"Cast", 13, "saturate", nil},
		{"Cast", 19, "saturate", &Attribute{Name: "saturate", Kind: KindInt, Default: &Value{Int: 1}}},
		{"Constant", 9, "value", &Attribute{Name: "value", Kind: KindTensor, Required: true}},
		{"Constant", 11, "sparse_value", &Attribute{Name: "sparse_value", Kind: KindSparseTensor}},
		{"Constant", 11, "value_ints", nil},
		{"Constant", 12, "value", &Attribute{Name: "value", Kind: KindTensor}},
		{"Constant", 12, "value_float", &Attribute{Name: "value_float", Kind: KindFloat}},
		{"Constant", 12, "value_floats", &Attribute{Name: "value_floats", Kind: KindFloats}},
		{"Constant", 12, "value_int", &Attribute{Name: "value_int", Kind: KindInt}},
		{"Constant", 12, "value_ints", &Attribute{Name: "value_ints", Kind: KindInts}},
		{"Constant", 12, "value_string", &Attribute{Name: "value_string", Kind: KindString}},
		{"Constant", 12, "value_strings", &Attribute{Name: "value_strings", Kind: KindStrings}},
		{"Concat", 1, "axis", &Attribute{Name: "axis", Kind: KindInt, Default: none}},
		{"Concat", 4, "axis", &Attribute{Name: "axis", Kind: KindInt, Required: true}},
		{"HardSigmoid", 6, "alpha", &Attribute{Name: "alpha", Kind: KindFloat, Default: &Value{Float: 0.2}}},
		{"Conv", 11, "auto_pad", &Attribute{Name: "auto_pad", Kind: KindString, Default: &Value{String: "NOTSET"}}},
		{"LSTM", 14, "direction", &Attribute{Name: "direction", Kind: KindString, Default: &Value{String: "forward"}}},
		{"Optional", 15, "type", &Attribute{Name: "type", Kind: KindTypeProto}},
		{"If", 13, "then_branch", &Attribute{Name: "then_branch", Kind: KindGraph, Required: true}},
		{"Add", 6, "consumed_inputs", nil},
		{"Add", 6, "broadcast", &Attribute{Name: "broadcast", Kind: KindInt, Default: &Value{}}},
		{"Add", 7, "broadcast", nil},
	}
	for _, test := range tests {
		operator := mustLookup(t, "", test.name, test.opset)
		attribute, found := operator.Attribute(test.attribute)
		if found != (test.want != nil) {
			t.Errorf("%s %d has attribute %s: %v", test.name, test.opset, test.attribute, found)
			continue
		}
		if diff := cmp.Diff(test.want, attribute); diff != "" {
			t.Errorf("%s %d, attribute %s (-want +got):\n%s", test.name, test.opset, test.attribute, diff)
		}
	}
}

// Its default is a negative zero, which must not turn into a positive one.
func TestNegativeZeroIsNoDefault(t *testing.T) {
	encoder := mustLookup(t, "ai.onnx.ml", "LabelEncoder", 2)
	attribute, found := encoder.Attribute("default_float")
	if !found || attribute.Default != nil {
		t.Errorf("default_float of LabelEncoder: %v, want one without a default", attribute)
	}
}

func TestArity(t *testing.T) {
	tests := []struct {
		name                         string
		opset                        int
		minIn, maxIn, minOut, maxOut int
	}{
		{"Clip", 6, 1, 1, 1, 1},
		{"Clip", 11, 1, 3, 1, 1},
		{"Constant", 13, 0, 0, 1, 1},
		{"Concat", 13, 1, Unbounded, 1, 1},
		{"Split", 13, 1, 2, 1, Unbounded},
		{"Dropout", 12, 1, 3, 1, 2},
		{"BatchNormalization", 9, 5, 5, 1, 5},
		{"BatchNormalization", 15, 5, 5, 1, 3},
		{"Loop", 13, 2, Unbounded, 1, Unbounded},
		{"If", 13, 1, 1, 1, Unbounded},
		{"SequenceConstruct", 11, 1, Unbounded, 1, 1},
	}
	for _, test := range tests {
		o := mustLookup(t, "", test.name, test.opset)
		got := [...]int{o.MinInputs, o.MaxInputs, o.MinOutputs, o.MaxOutputs}
		want := [...]int{test.minIn, test.maxIn, test.minOut, test.maxOut}
		if got != want {
			t.Errorf("%s %d: arity %v, want %v", test.name, test.opset, got, want)
		}
	}
}

func TestParameters(t *testing.T) {
	clip := mustLookup(t, "", "Clip", 13)
	low, _ := clip.Input(1)
	want := &Parameter{Name: "min", Option: Optional, Type: "T"}
	if diff := cmp.Diff(want, low); diff != "" {
		t.Errorf("second input of Clip (-want +got):\n%s", diff)
	}
	if p, found := clip.Input(3); found {
		t.Errorf("fourth input of Clip: %v", p)
	}
	if p, found := clip.Input(-1); found {
		t.Errorf("input -1 of Clip: %v", p)
	}
	if p, found := mustLookup(t, "", "Constant", 13).Input(0); found {
		t.Errorf("an input of Constant: %v", p)
	}

	concat, _ := mustLookup(t, "", "Concat", 13).Input(1000)
	if concat == nil || concat.Option != Variadic || concat.Heterogeneous {
		t.Errorf("input 1000 of Concat: %v, want variadic and of one type", concat)
	}
	loop, _ := mustLookup(t, "", "Loop", 13).Output(7)
	if loop == nil || loop.Option != Variadic || !loop.Heterogeneous {
		t.Errorf("output 7 of Loop: %v, want variadic of any types", loop)
	}
}

func TestAllowedTypes(t *testing.T) {
	not := mustLookup(t, "", "Not", 1)
	if diff := cmp.Diff([]string{"tensor(bool)"}, not.AllowedTypes(&not.Inputs[0])); diff != "" {
		t.Errorf("Not (-want +got):\n%s", diff)
	}
	reshape := mustLookup(t, "", "Reshape", 5)
	if diff := cmp.Diff([]string{"tensor(int64)"}, reshape.AllowedTypes(&reshape.Inputs[1])); diff != "" {
		t.Errorf("shape of Reshape, a concrete type (-want +got):\n%s", diff)
	}

	zipMap := mustLookup(t, "ai.onnx.ml", "ZipMap", 1)
	maps := []string{"seq(map(int64,tensor(float)))", "seq(map(string,tensor(float)))"}
	if diff := cmp.Diff(maps, zipMap.AllowedTypes(&zipMap.Outputs[0])); diff != "" {
		t.Errorf("ZipMap (-want +got):\n%s", diff)
	}

	// bfloat16 arithmetic came with opset 13, 8-bit integers with 14.
	for opset, want := range map[int][2]bool{7: {false, false}, 13: {true, false}, 14: {true, true}} {
		add := mustLookup(t, "", "Add", opset)
		allowed := add.AllowedTypes(&add.Inputs[0])
		got := [2]bool{slices.Contains(allowed, "tensor(bfloat16)"), slices.Contains(allowed, "tensor(int8)")}
		if got != want {
			t.Errorf("Add %d takes bfloat16, int8: %v, want %v", opset, got, want)
		}
	}
}

func TestFlags(t *testing.T) {
	type flags struct {
		Deprecated, Function bool
		Determinism          Determinism
	}
	tests := []struct {
		domain, name string
		opset        int
		want         flags
	}{
		{"", "Upsample", 9, flags{}},
		{"", "Upsample", 10, flags{Deprecated: true}},
		{"", "Scatter", 11, flags{Deprecated: true}},
		{"", "GroupNormalization", 18, flags{Deprecated: true, Function: true}},
		{"", "GroupNormalization", 21, flags{Function: true}},
		{"", "LayerNormalization", 17, flags{Function: true}},
		{"", "Softmax", 11, flags{}},
		{"", "Softmax", 13, flags{Function: true}},
		{"", "RandomNormal", 22, flags{Determinism: NotDeterministic}},
		{"", "Bernoulli", 15, flags{Determinism: NotDeterministic, Function: true}},
		{"ai.onnx.ml", "TreeEnsembleClassifier", 5, flags{Deprecated: true}},
	}
	for _, test := range tests {
		o := mustLookup(t, test.domain, test.name, test.opset)
		got := flags{o.Deprecated, o.Function, o.Determinism}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s %d (-want +got):\n%s", test.name, test.opset, diff)
		}
	}
	if !mustLookup(t, "", "Upsample", 1).Experimental {
		t.Error("Upsample 1 is not experimental")
	}
}

func TestNonDeterministic(t *testing.T) {
	for _, name := range Names("") {
		want := strings.HasPrefix(name, "Random") || name == "Bernoulli" || name == "Multinomial"
		if got := NonDeterministic("ai.onnx", name); got != want {
			t.Errorf("%s draws random numbers: %v, want %v", name, got, want)
		}
	}
	if NonDeterministic("com.example", "RandomNormal") {
		t.Error("an operator of another domain is taken for ONNX's")
	}
}

func TestDomainsAndNames(t *testing.T) {
	want := []string{"", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training"}
	if diff := cmp.Diff(want, Domains()); diff != "" {
		t.Errorf("domains (-want +got):\n%s", diff)
	}
	for domain, want := range map[string]int{"": 28, "ai.onnx": 28, "ai.onnx.ml": 5, "com.example": 0} {
		if got := Newest(domain); got != want {
			t.Errorf("Newest(%q) = %d, want %d", domain, got, want)
		}
	}
	training := []string{"Adagrad", "Adam", "Gradient", "Momentum"}
	if diff := cmp.Diff(training, Names("ai.onnx.preview.training")); diff != "" {
		t.Errorf("training operators (-want +got):\n%s", diff)
	}
	if names := Names("com.example"); names != nil {
		t.Errorf("operators of an unknown domain: %v", names)
	}
}

// TestTableKeepsItsPromises checks what the look-ups rely on, row by row.
func TestTableKeepsItsPromises(t *testing.T) {
	key := func(o *Operator) string { return o.Domain + " " + o.Name }
	for i := range operators {
		o := &operators[i]
		if i > 0 {
			before := &operators[i-1]
			newer := key(before) == key(o) && before.Since < o.Since
			if !newer && (before.Domain > o.Domain || before.Domain == o.Domain && before.Name >= o.Name) {
				t.Errorf("%s %d stands after %s %d", key(o), o.Since, key(before), before.Since)
			}
		}
		if got, found := Lookup(o.Domain, o.Name, o.Since); !found || got != o {
			t.Errorf("%s %d is not found", key(o), o.Since)
		}
		if o.Since < 1 || o.Since > Newest(o.Domain) {
			t.Errorf("%s: version %d outside 1 to %d", key(o), o.Since, Newest(o.Domain))
		}
		if !slices.IsSortedFunc(o.Attributes, func(a, b Attribute) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("%s %d: attributes not sorted", key(o), o.Since)
		}
		checkParameters(t, o, o.Inputs, o.MinInputs, o.MaxInputs)
		checkParameters(t, o, o.Outputs, o.MinOutputs, o.MaxOutputs)
	}
}

func checkParameters(t *testing.T, o *Operator, parameters []Parameter, least, most int) {
	t.Helper()
	unbounded := false
	for i := range parameters {
		p := &parameters[i]
		unbounded = p.Option == Variadic
		if unbounded && i != len(parameters)-1 {
			t.Errorf("%s %d: variadic %s is not the last", o.Name, o.Since, p.Name)
		}
		for _, allowed := range o.AllowedTypes(p) {
			if !strings.HasSuffix(allowed, ")") {
				t.Errorf("%s %d: %s has type %q, neither a constraint nor a type", o.Name, o.Since, p.Name, allowed)
			}
		}
	}
	if least > most || unbounded != (most == Unbounded) || !unbounded && most != len(parameters) {
		t.Errorf("%s %d: %d to %d of %d parameters, variadic %v", o.Name, o.Since, least, most, len(parameters), unbounded)
	}
}

func TestAttributeKindsAreNumberedLikeTheFileFormat(t *testing.T) {
	want := map[AttributeKind]onnxpb.AttributeProto_AttributeType{
		KindFloat:        onnxpb.AttributeProto_FLOAT,
		KindInt:          onnxpb.AttributeProto_INT,
		KindString:       onnxpb.AttributeProto_STRING,
		KindTensor:       onnxpb.AttributeProto_TENSOR,
		KindGraph:        onnxpb.AttributeProto_GRAPH,
		KindFloats:       onnxpb.AttributeProto_FLOATS,
		KindInts:         onnxpb.AttributeProto_INTS,
		KindStrings:      onnxpb.AttributeProto_STRINGS,
		KindSparseTensor: onnxpb.AttributeProto_SPARSE_TENSOR,
		KindTypeProto:    onnxpb.AttributeProto_TYPE_PROTO,
	}
	for kind, number := range want {
		if int32(kind) != int32(number) {
			t.Errorf("kind %d, want %v (%d)", kind, number, number)
		}
	}
}

// TestNoStartUpCost runs this binary again and reads the runtime's own account of
// package initialisation: a package that the linker could lay out is not in it.
func TestNoStartUpCost(t *testing.T) {
	if testing.CoverMode() != "" {
		t.Skip("counting coverage adds start-up code to every package")
	}
	command := exec.Command(os.Args[0], "-test.run=^$")
	command.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	trace, err := command.CombinedOutput()
	if errors.Is(err, syscall.ENOEXEC) {
		t.Skip("this machine cannot start the binary that it is running: an emulator does")
	}
	if err != nil {
		t.Fatalf("run the test binary: %v\n%s", err, trace)
	}
	if !strings.Contains(string(trace), "init runtime ") {
		t.Fatalf("no trace of package initialisation:\n%s", trace)
	}
	if strings.Contains(string(trace), "init github.com/npuctl/npuctl/onnx/schema") {
		t.Errorf("the package runs code at start-up:\n%s", trace)
	}
}

func BenchmarkLookup(b *testing.B) {
	for b.Loop() {
		if _, found := Lookup("", "ReduceMean", 17); !found {
			b.Fatal("ReduceMean not found")
		}
	}
}

func mustLookup(t *testing.T, domain, name string, opset int) *Operator {
	t.Helper()
	operator, found := Lookup(domain, name, opset)
	if !found {
		t.Fatalf("%s is unknown at opset %d", name, opset)
	}
	return operator
}
