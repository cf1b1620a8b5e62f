package onnx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/onnx/schema"
)

// What the schemas do not say of nodes and only the prose of the specification does,
// as far as it holds whatever flows into the node: these are tables beside the one of
// numbers in validate.go. Held against are only rules that ONNX Runtime insists on.

// words lists, for an operator's attribute, the words that it may be. An empty one
// stands for the default where runtimes take it so.
var words = map[[2]string][]string{
	{"BitShift", "direction"}:                      {"LEFT", "RIGHT"},
	{"DepthToSpace", "mode"}:                       {"DCR", "CRD"},
	{"Gelu", "approximate"}:                        {"none", "tanh"},
	{"GridSample", "mode"}:                         {"linear", "nearest", "cubic", "bilinear", "bicubic"},
	{"GridSample", "padding_mode"}:                 {"zeros", "border", "reflection"},
	{"GRU", "direction"}:                           directions,
	{"ImageDecoder", "pixel_format"}:               {"RGB", "BGR", "Grayscale"},
	{"LSTM", "direction"}:                          directions,
	{"Pad", "mode"}:                                {"constant", "reflect", "edge", "wrap"},
	{"Resize", "coordinate_transformation_mode"}:   {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn"},
	{"Resize", "keep_aspect_ratio_policy"}:         {"stretch", "not_larger", "not_smaller"},
	{"Resize", "mode"}:                             {"nearest", "linear", "cubic"},
	{"Resize", "nearest_mode"}:                     {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", ""},
	{"RNN", "direction"}:                           directions,
	{"RoiAlign", "coordinate_transformation_mode"}: {"half_pixel", "output_half_pixel"},
	{"RoiAlign", "mode"}:                           {"avg", "max"},
	{"StringNormalizer", "case_change_action"}:     {"LOWER", "UPPER", "NONE"},
	{"TfIdfVectorizer", "mode"}:                    {"TF", "IDF", "TFIDF"},
	{"Upsample", "mode"}:                           {"nearest", "linear", "bilinear", "cubic"},
}

var (
	directions = []string{"forward", "reverse", "bidirectional"}
	paddings   = []string{"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", ""}
)

// word says what is wrong with a word that an operator cannot mean.
func (v *validator) word(a *Attribute) {
	allowed, listed := words[[2]string{v.node.OpType, a.name}]
	if a.name == "auto_pad" {
		allowed, listed = paddings, true
	}
	if listed && a.Kind() == AttributeString && !slices.Contains(allowed, a.String()) {
		known := slices.DeleteFunc(slices.Clone(allowed), func(w string) bool { return w == "" })
		last := len(known) - 1
		v.add(Error, "attribute %q is %s; %s takes %s or %s", a.name, quote(a.String()), v.node.OpType, strings.Join(known[:last], ", "), known[last])
	}
}

// nodeRules says of operators what their attributes, inputs and outputs must be to
// each other; "" for a node of which that is true.
var nodeRules = map[string]func(*Node) string{
	"ConstantOfShape": oneFillValue,
	"If":              branchesTakeNothing,
	"Split":           partsAreNamedOnce,
}

// oneFillValue: what a ConstantOfShape repeats is one element.
func oneFillValue(n *Node) string {
	a := n.Attribute("value")
	if a == nil || a.Tensor() == nil {
		return ""
	}
	if t := a.Tensor(); t.Len() != 1 {
		return fmt.Sprintf("attribute \"value\" has %s; the value that it repeats is one", counted(t.Len(), "element"))
	}
	return ""
}

// branchesTakeNothing: a branch reads what is around it by name.
func branchesTakeNothing(n *Node) string {
	for _, name := range []string{"then_branch", "else_branch"} {
		if a := n.Attribute(name); a != nil && a.Graph() != nil && len(a.Graph().inputs) > 0 {
			return fmt.Sprintf("its %s has %s; a branch takes none, and reads the values around it", name, counted(len(a.Graph().inputs), "input"))
		}
	}
	return ""
}

// partsAreNamedOnce: since opset 18 a Split says by its sizes or by a number into how
// many parts it goes, not both; before, without sizes, its outputs say it.
func partsAreNamedOnce(n *Node) string {
	const opsetWithNumber, opsetWithInput = 18, 13
	sizes, number := n.Input(1) != nil, n.Attribute("num_outputs")
	switch {
	case n.Opset() < opsetWithInput:
		if list, given := n.Ints("split"); given && len(list) != len(n.outputs) && !n.HasReferences() {
			return fmt.Sprintf("attribute \"split\" lists %s, and it has %s", counted(len(list), "part"), counted(len(n.outputs), "output"))
		}
	case n.Opset() < opsetWithNumber:
	case sizes && number != nil:
		return `it has both the input "split" and the attribute "num_outputs"; it takes one of them`
	case !sizes && number == nil:
		return `it has neither the input "split" nor the attribute "num_outputs", so the sizes of its parts are open`
	case number != nil && number.reference == "" && number.integer != int64(len(n.outputs)):
		return fmt.Sprintf("attribute \"num_outputs\" is %d, and it has %s", number.integer, counted(len(n.outputs), "output"))
	}
	return ""
}

// holds says what is wrong with an attribute that does not hold what its kind says:
// "" when it does. Numbers and words that are left out are 0 and empty.
func (a *Attribute) holds() string {
	lacks := false
	switch a.Kind() {
	case AttributeTensor, AttributeSparseTensor:
		lacks = len(a.tensors) != 1
	case AttributeGraph:
		lacks = len(a.graphs) != 1
	case AttributeType:
		lacks = len(a.types) == 0
	}
	if lacks {
		return "holds no " + a.Kind().String()
	}
	return ""
}

// attributeKinds names the kinds as the specification does, in its numbering.
var attributeKinds = [...]string{
	AttributeUndefined: "of no kind",
	AttributeFloat:     "float", AttributeInt: "int", AttributeString: "string", AttributeTensor: "tensor", AttributeGraph: "graph",
	AttributeFloats: "list of floats", AttributeInts: "list of ints", AttributeStrings: "list of strings",
	AttributeTensors: "list of tensors", AttributeGraphs: "list of graphs",
	AttributeSparseTensor: "sparse tensor", AttributeSparseTensors: "list of sparse tensors", AttributeType: "type", AttributeTypes: "list of types",
}

// String names the kind for people: "int", "list of ints".
func (k AttributeKind) String() string {
	if k < 0 || int(k) >= len(attributeKinds) {
		return fmt.Sprintf("unknown kind %d", int32(k))
	}
	return attributeKinds[k]
}

// article puts "a" or "an" before a word of [AttributeKind.String].
func article(word string) string {
	switch {
	case strings.HasPrefix(word, "of "):
		return word
	case strings.HasPrefix(word, "int"), strings.HasPrefix(word, "unknown"):
		return "an " + word
	}
	return "a " + word
}

// counted is a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// leftOver is how many inputs or outputs at the end have no name.
func leftOver(values []*Value) (n int) {
	for n < len(values) && values[len(values)-1-n] == nil {
		n++
	}
	return n
}

// arity holds the number of inputs, or outputs, against what an operator takes. Those
// at the end without a name are left out, but there must be a place that they leave.
func (v *validator) arity(noun string, values []*Value, least, most int, parameter func(int) (*schema.Parameter, bool)) {
	unnamed := leftOver(values)
	given := len(values) - unnamed
	switch {
	case given < least || given > most:
		v.add(Error, "it has %s; %s takes %s", counted(given, noun), v.node.OpType, countRange(least, most))
		return
	case len(values) > most:
		v.add(Error, "it has %s, %d of them without a name; %s takes %s", counted(len(values), noun), unnamed, v.node.OpType, countRange(least, most))
		return
	}
	if noun == "output" {
		return // any of them may go unread, and so without a name
	}
	for i := range given {
		if p, ok := parameter(i); ok && values[i] == nil && p.Option == schema.Single {
			v.add(Error, "input %d (%s) is left out, but not optional", i, p.Name)
		}
	}
}
