package atc

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/internal/suggest"
)

// shapeRank holds the number of axes of fixed sizes, and of gears, against the
// model. What the model does not say, or a scalar of it, is not compared.
func shapeRank(c *checker) (out []Diagnosis) {
	sizes := c.sortedInputs()
	for _, in := range c.graph().inputs {
		at := slices.IndexFunc(sizes, func(s sizedInput) bool { return s.name == in.name })
		if at < 0 || !in.ranked || len(sizes[at].sizes) == len(in.dims) {
			continue
		}
		out = append(out, problem("E19999", "input_shape", "--input_shape gives %q %d axes, in the model it has %d; ATC says only that parsing the model to a graph failed", in.name, len(sizes[at].sizes), len(in.dims)).
			about(in.name).with("give %q %d sizes", in.name, len(in.dims)))
	}
	return out
}

// shapeNeeded asks for the sizes of axes that the model leaves open.
func shapeNeeded(c *checker) (out []Diagnosis) {
	s := c.shape()
	if s.gears != NoGears || s.ranges != "" {
		return nil
	}
	given := c.sortedInputs()
	for _, in := range c.graph().inputs {
		isGiven := slices.ContainsFunc(given, func(g sizedInput) bool { return g.name == in.name })
		if isGiven || !slices.Contains(in.dims, -1) {
			continue
		}
		d := problem("E10001", "input_shape", "--input_shape does not give the sizes of %q, whose shape the model leaves open: %s", in.name, dimsText(in.dims)).
			about(in.name).with(`add --input_shape="%s:%s" with real sizes, or -1 for a model of dynamic shape`, in.name, dimsText(in.dims))
		if wrong := c.misspelt(in.name); wrong != "" {
			d = d.with("the model has no %q; did you mean %q?", wrong, in.name)
		}
		out = append(out, d)
	}
	return out
}

// misspelt gives the name in --input_shape that is no input's and near to this one.
func (c *checker) misspelt(input string) string {
	var strangers []string
	for _, in := range c.inputs() {
		if !slices.Contains(c.graph().inputNames(), in.name) {
			strangers = append(strangers, in.name)
		}
	}
	return nearest(input, strangers)
}

func dimsText(dims []int64) string {
	words := make([]string, len(dims))
	for i, d := range dims {
		words[i] = strconv.FormatInt(d, 10)
	}
	return strings.Join(words, ",")
}

// asInput holds a name against the inputs of the model.
func (c *checker) asInput(flag, name string) *Diagnosis {
	g := c.graph()
	node, known := g.nodes[name]
	var d Diagnosis
	switch {
	case !known:
		d = problem("E10016", flag, "--%s names %q, which the model does not have", flag, name)
	case !node.isInput:
		d = problem("E10017", flag, "--%s names %q, which is a node of the model but no input", flag, name)
	default:
		return nil
	}
	d = d.about(name).with("%s", suggest.Text(name, g.inputNames()))
	return &d
}

// shapeNames holds the names of fixed sizes, and of gears, against the model.
func shapeNames(c *checker) (out []Diagnosis) {
	for _, in := range c.inputs() {
		if d := c.asInput("input_shape", in.name); d != nil {
			out = append(out, *d)
		}
	}
	return out
}

func (c *checker) ranges() []namedRange {
	ranges, _ := parseRanges(c.shape().ranges)
	return ranges
}

// rangeNames does the same for ranges. ATC speaks of --input_shape here too.
func rangeNames(c *checker) (out []Diagnosis) {
	for _, r := range c.ranges() {
		if d := c.asInput("input_shape", r.name); d != nil {
			out = append(out, *d)
		}
	}
	return out
}

// rangeFits holds ranges against the shapes of the model.
func rangeFits(c *checker) (out []Diagnosis) {
	ranges := c.ranges()
	for _, in := range c.graph().inputs {
		at := slices.IndexFunc(ranges, func(r namedRange) bool { return r.name == in.name })
		if at < 0 || !in.ranked {
			continue
		}
		if d := fits(in, ranges[at].axes); d != nil {
			out = append(out, *d)
		}
	}
	return out
}

func fits(in graphInput, axes []Range) *Diagnosis {
	var d Diagnosis
	if len(axes) != len(in.dims) {
		d = problem("E10049", "input_shape", "--input_shape gives %q %d axes, in the model it has %d", in.name, len(axes), len(in.dims)).
			about(in.name)
		return &d
	}
	for i, size := range in.dims {
		switch a := axes[i]; {
		case size == -1:
		case size < a.Low || a.High >= 0 && size > a.High:
			d = problem("E10050", "input_shape", "axis %d of %q is %d in the model, outside %d~%d of --input_shape", i, in.name, size, a.Low, a.High).
				about(in.name).with("give that axis the size %d", size)
			return &d
		case a.High < -1:
			d = badRange(strconv.FormatInt(a.High, 10), "a size is positive, or -1").about(in.name)
			return &d
		}
	}
	return nil
}

// hwLayout checks the list of truth values of an is_…_adjust_hw_layout flag.
func hwLayout(flag string) func(*checker) []Diagnosis {
	return ifGiven(flag, func(c *checker) []Diagnosis {
		for _, word := range strings.Split(c.value(flag), ",") {
			word = strings.TrimSpace(word)
			if word != "true" && word != "false" {
				return []Diagnosis{wrongValue("E10005", flag, c.value(flag), "%q is neither true nor false", word).
					with("give a list such as true,false")}
			}
		}
		return nil
	})
}

// outNode is one entry of --out_nodes by node and index.
type outNode struct {
	node  string
	index int64
}

// outNodesForm reads --out_nodes: node:index of all, or tensor names of all.
func outNodesForm(c *checker) *Diagnosis {
	_, _, d := parseOutNodes(c.value("out_nodes"))
	return d
}

func parseOutNodes(text string) (nodes []outNode, tensors []string, wrong *Diagnosis) {
	if text == "" {
		return nil, nil, nil
	}
	for _, item := range strings.Split(text, ";") {
		parts := strings.Split(item, ":")
		var d Diagnosis
		switch {
		case len(parts) > 2:
			d = wrongValue("E10001", "out_nodes", text, "%q is neither node:index nor a tensor's name", item)
		case len(parts) == 2 && len(tensors) > 0, len(parts) == 1 && len(nodes) > 0:
			d = wrongValue("E10001", "out_nodes", text, "it is node:index for all outputs or tensor names for all, without a ; at the end")
		case len(parts) == 1:
			tensors = append(tensors, item)
			continue
		default:
			index, d := outIndex("out_nodes", text, parts[1])
			if d != nil {
				return nil, nil, d
			}
			nodes = append(nodes, outNode{parts[0], index})
			continue
		}
		d = d.with(`write --out_nodes="node:0;other:0"`)
		return nil, nil, &d
	}
	return nodes, tensors, nil
}

// outIndex reads the number of an output.
func outIndex(flag, whole, word string) (int64, *Diagnosis) {
	var d Diagnosis
	n, err := strconv.ParseInt(word, 10, 32)
	switch {
	case word == "":
		d = wrongValue("E10014", flag, whole, "an index is missing")
	case strings.Trim(word, "0123456789") != "":
		d = wrongValue("E10001", flag, whole, "%q is no index: only digits, without blanks", word)
	case err != nil:
		d = wrongValue("E10013", flag, whole, "%s is beyond 32 bits", word)
	default:
		return n, nil
	}
	return 0, &d
}

func outTensors(c *checker) (out []Diagnosis) {
	_, tensors, _ := parseOutNodes(c.value("out_nodes"))
	g := c.graph()
	for _, name := range tensors {
		if _, known := g.tensors[name]; !known {
			out = append(out, problem("E19999", "out_nodes", "--out_nodes names the tensor %q, which the model does not have", name).
				about(name).with("%s", suggest.Text(name, slices.Concat(g.outputs, slices.Sorted(maps.Keys(g.tensors))))))
		}
	}
	return out
}

func outNodes(c *checker) (out []Diagnosis) {
	nodes, _, _ := parseOutNodes(c.value("out_nodes"))
	g := c.graph()
	for _, n := range nodes {
		known, ok := g.nodes[n.node]
		switch {
		case !ok:
			out = append(out, problem("E10016", "out_nodes", "--out_nodes names the node %q, which the model does not have", n.node).
				about(n.node).with("%s", suggest.Text(n.node, slices.Sorted(maps.Keys(g.nodes)))))
		case n.index >= int64(known.outputs):
			out = append(out, problem("E10003", "out_nodes", "--out_nodes takes output %d of %q, which has %d", n.index, n.node, known.outputs).
				about(n.node).with("outputs count from 0"))
		}
	}
	return out
}

func fp16Nodes(c *checker) (out []Diagnosis) {
	list := c.value("input_fp16_nodes")
	if list == "" {
		return nil
	}
	for _, name := range strings.Split(list, ";") {
		if d := c.asInput("input_fp16_nodes", name); d != nil {
			out = append(out, *d)
		}
	}
	return out
}

// outputTypes are the element types that --output_type takes.
var outputTypes = []string{"FP32", "FP16", "UINT8", "INT8", "HIF8", "HIF4", "FP8E5M2", "FP8E4M3FN"}

func outputType(c *checker) *Diagnosis {
	text := c.value("output_type")
	if text == "" {
		return nil
	}
	wrong := func(why string, args ...any) *Diagnosis {
		d := wrongValue("E10001", "output_type", text, why, args...).
			with(`write --output_type=FP16, or --output_type="node:0:FP16" for a node of --out_nodes`)
		return &d
	}
	if !strings.Contains(text, ":") {
		if !slices.Contains(outputTypes, text) {
			return wrong("it takes %s", listed(outputTypes))
		}
		return nil
	}
	var named []string
	for _, item := range strings.Split(text, ";") {
		parts := strings.Split(item, ":")
		if len(parts) != 3 {
			return wrong("%q is not of the form node:index:type", item)
		}
		node, index, elem := strings.TrimSpace(parts[0]), strings.TrimSpace(parts[1]), strings.TrimSpace(parts[2])
		if _, d := outIndex("output_type", text, index); d != nil {
			return d
		}
		if !slices.Contains(outputTypes, elem) {
			return wrong("%q is no type it takes: %s", elem, listed(outputTypes))
		}
		named = append(named, node+":"+index)
	}
	asked := c.askedOutputs()
	for _, name := range named {
		if !slices.Contains(asked, name) {
			return wrong("%s is not in --out_nodes", name)
		}
	}
	return nil
}

// askedOutputs lists the outputs of --out_nodes as node:index.
func (c *checker) askedOutputs() (out []string) {
	nodes, tensors, _ := parseOutNodes(c.value("out_nodes"))
	for _, n := range nodes {
		out = append(out, n.node+":"+strconv.FormatInt(n.index, 10))
	}
	for _, name := range tensors {
		out = append(out, c.graph().port(name))
	}
	return out
}

// port gives node:index of a tensor.
func (g *graphFacts) port(tensor string) string {
	if v := g.model.Graph.Find(tensor); v != nil && v.Producer() != nil {
		return g.tensors[tensor] + ":" + strconv.Itoa(slices.Index(v.Producer().Outputs(), v))
	}
	return g.tensors[tensor] + ":0"
}

// operatorType is how --keep_dtype names a type of operators.
var operatorType = regexp.MustCompile(`^[A-Z][a-zA-Z0-9]*$`)

// keepTypes looks at the types of operators in the file of --keep_dtype.
func keepTypes(c *checker) *Diagnosis {
	name := c.value("keep_dtype")
	if name == "" {
		return nil
	}
	data, err := readLimited(c.path(name), mostRawOptions)
	if err != nil {
		return nil // told already
	}
	for line := range strings.Lines(string(data)) {
		kind, isType := strings.CutPrefix(strings.TrimSpace(line), "OpType::")
		if isType && !operatorType.MatchString(kind) {
			d := wrongValue("E10003", "keep_dtype", name, "%q is no type of operators", kind).about(name).
				with("types begin with a capital letter, as in OpType::MatMul")
			return &d
		}
	}
	return nil
}

// amctLibrary is what --compression_optimize_conf needs.
const amctLibrary = "libamctacl.so"

func compressionTool(c *checker) *Diagnosis {
	conf := c.value("compression_optimize_conf")
	if conf == "" {
		return nil
	}
	paths, _ := c.env.Lookup("LD_LIBRARY_PATH")
	if c.env.Toolkit.Root != "" { // which puts its own folders in front, for atc
		_, paths = newEnvironment(c.env.Toolkit.Environment([]string{"LD_LIBRARY_PATH=" + paths})).find("LD_LIBRARY_PATH")
	}
	for _, folder := range filepath.SplitList(paths) {
		if isReadable(filepath.Join(folder, amctLibrary)) {
			return nil
		}
	}
	d := wrongValue("E10001", "compression_optimize_conf", conf, "AMCT is not installed: %s is on no path of LD_LIBRARY_PATH", amctLibrary).
		with("install AMCT, or leave the flag out")
	return &d
}
