package atcemu

import (
	"cmp"
	"runtime"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/atc"
)

// newRequest reads what the compile depends on out of a command line that was checked.
func newRequest(r *run) (*request, error) {
	value := r.line.Value
	q := &request{
		commandLine: r.commandLine(), model: value("model"), output: value("output"), chip: value("soc_version"),
		inputFormat: cmp.Or(value("input_format"), "NCHW"),
		outNodes:    readOutNodes(value("out_nodes")), fp16Inputs: words(value("input_fp16_nodes"), ";"),
		adjustInputs: truths(value("is_input_adjust_hw_layout")), adjustOutputs: truths(value("is_output_adjust_hw_layout")),
		compressAttributes: !strings.EqualFold(value("enable_attr_compression"), "false"),
		saveOriginal:       value("save_original_model") == "true",
		showInfo:           value("display_model_info") == "1",
		isPackage:          value("mode") == "7",
		hostSystem:         cmp.Or(value("host_env_os"), "linux"),
		hostProcessor:      cmp.Or(value("host_env_cpu"), hostProcessor(runtime.GOARCH)),
		hostGiven:          r.line.IsSet("host_env_os") || r.line.IsSet("host_env_cpu"),
	}
	q.externalWeight, _ = strconv.Atoi(value("external_weight")) // one of a set
	q.readOutputTypes(value("output_type"))
	return q, q.readShapes(value)
}

// readShapes reads shapes and gears. A list of ranges wins over one of shapes.
func (q *request) readShapes(value func(string) string) error {
	text := value("input_shape")
	if ranges := value("input_shape_range"); ranges != "" {
		text = strings.NewReplacer("[", "", "]", "").Replace(ranges)
	}
	if text != "" {
		shapes, d := atc.ParseInputShape(text)
		if d != nil {
			return &failure{code: d.Code, message: d.Message, remedy: d.Remedy}
		}
		q.shapes = lastOfEach(shapes)
	}
	for _, kind := range []atc.GearKind{atc.BatchGears, atc.ImageGears, atc.DimsGears} {
		text := value(kind.Flag())
		if text == "" {
			continue
		}
		gears, d := atc.ParseGears(kind, text)
		if d != nil {
			return &failure{code: d.Code, message: d.Message, remedy: d.Remedy}
		}
		q.gears = gears
	}
	return nil
}

// lastOfEach keeps one shape for each input: an input that is given twice has the last.
func lastOfEach(shapes []atc.InputShape) (out []atc.InputShape) {
	place := map[string]int{}
	for _, s := range shapes {
		if i, known := place[s.Name]; known {
			out[i] = s
			continue
		}
		place[s.Name] = len(out)
		out = append(out, s)
	}
	return out
}

// readOutNodes reads node:port;node:port, or names of tensors. A tensor's name may
// hold colons only if no item ends in a number behind one.
func readOutNodes(text string) (nodes []outNode) {
	for _, word := range words(text, ";") {
		colon := strings.LastIndexByte(word, ':')
		port, err := strconv.Atoi(word[colon+1:])
		if colon < 0 || err != nil {
			nodes = append(nodes, outNode{tensor: word})
			continue
		}
		nodes = append(nodes, outNode{node: word[:colon], port: port})
	}
	return nodes
}

// readOutputTypes reads one type for all, or node:port:TYPE;….
func (q *request) readOutputTypes(text string) {
	if !strings.Contains(text, ":") {
		q.outputType = text
		return
	}
	q.outputTypes = map[outNode]string{}
	for _, word := range words(text, ";") {
		colon := strings.LastIndexByte(word, ':')
		for _, node := range readOutNodes(word[:max(colon, 0)]) {
			q.outputTypes[node] = word[colon+1:]
		}
	}
}

func words(text, separator string) (out []string) {
	for word := range strings.SplitSeq(text, separator) {
		if word = strings.TrimSpace(word); word != "" {
			out = append(out, word)
		}
	}
	return out
}

func truths(text string) (out []bool) {
	for _, word := range words(text, ",") {
		out = append(out, strings.EqualFold(word, "true"))
	}
	return out
}

// hostProcessor is how CANN calls this machine's processor.
func hostProcessor(arch string) string {
	if arch == "arm64" {
		return "aarch64"
	}
	return "x86_64"
}
