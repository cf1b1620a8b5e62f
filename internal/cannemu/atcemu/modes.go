package atcemu

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/npuctl/npuctl/internal/onnxpb"
	"github.com/npuctl/npuctl/om"
	"github.com/npuctl/npuctl/onnx"
)

// check is mode 3: the parser's look at the model, and its report.
func (r *run) check(context.Context) error {
	m, err := onnx.Open(r.line.Value("model"))
	if err != nil {
		return &failure{code: "E13005", message: fmt.Sprintf("Failed to parse file %s: %v", r.line.Value("model"), err)}
	}
	defer m.Close()
	g := gate{model: m}
	g.preCheck() // passed before, or we would not be here
	return r.writeReport(g.report)
}

// showInfo is mode 6: what an .om says of its making.
func (r *run) showInfo(context.Context) error { return printInfo(r.out, r.line.Value("om")) }

// printInfo prints the block of mode 6.
func printInfo(w io.Writer, path string) error {
	f, err := om.Open(path)
	if err != nil {
		return &failure{code: "E10001", message: fmt.Sprintf("Value %s for parameter --om is invalid. Reason: %v", path, err)}
	}
	defer f.Close()
	provenance, err := f.Provenance()
	if err != nil {
		return internalFailure(err.Error(), "DisplayModelInfo", "main_impl.cc")
	}
	needs, err := f.Needs()
	if err != nil {
		return internalFailure(err.Error(), "DisplayModelInfo", "main_impl.cc")
	}
	size := func(t om.PartitionType) int64 { p, _ := f.Partition(0, t); return p.Bytes }
	fmt.Fprintln(w, "============ Display Model Info start ============")
	fmt.Fprintf(w, "Original Atc command line: %s\n", provenance.CommandLine)
	fmt.Fprintf(w, "system   info: atc_version[%s], soc_version[%s], framework_type[%s].\n", provenance.Tool, provenance.SoC, provenance.Framework)
	fmt.Fprintf(w, "resource info: memory_size[%d B], weight_size[%d B], stream_num[%d], event_num[%d].\n",
		needs.MemoryBytes, needs.WeightBytes, needs.Streams, needs.Events)
	fmt.Fprintf(w, "om       info: modeldef_size[%d B], weight_data_size[%d B], tbe_kernels_size[%d B], cust_aicpu_kernel_store_size[%d B], task_info_size[%d B], so_store_size[%d B].\n",
		size(om.ModelDef), size(om.WeightsData), size(om.TBEKernels), size(om.CustomAICPU), size(om.TaskInfo), size(om.HostLibraries))
	fmt.Fprintln(w, "============ Display Model Info end   ============")
	return nil
}

// toJSON is mode 1: an .om, or an ONNX model, as JSON.
func (r *run) toJSON(context.Context) error {
	path, target := r.line.Value("om"), r.line.Value("json")
	var data []byte
	var err error
	switch r.line.Value("framework") {
	case "5":
		data, err = modelJSON(path)
	case "-1":
		data, err = omJSON(path)
	default:
		err = fmt.Errorf("npuctl's emulator turns .om files and ONNX models into JSON alone")
	}
	if err != nil {
		return &failure{code: "E10001", message: fmt.Sprintf("Value %s for parameter --om is invalid. Reason: %v", path, err)}
	}
	return r.writeFile(target, data)
}

func modelJSON(path string) ([]byte, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var m onnxpb.ModelProto
	if err := proto.Unmarshal(raw, &m); err != nil {
		return nil, err
	}
	data, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(&m)
	if err != nil {
		return nil, err
	}
	// The protobuf library varies its blanks on purpose.
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// omJSON writes the graph of an .om: attributes as a list of keys and values, as the
// real one does, with the dictionary of shortened names undone.
func omJSON(path string) ([]byte, error) {
	f, err := om.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	attributes, err := f.Attributes(0)
	if err != nil {
		return nil, err
	}
	provenance, err := f.Provenance()
	if err != nil {
		return nil, err
	}
	type operator struct {
		Name   string         `json:"name"`
		Type   string         `json:"type"`
		Inputs []string       `json:"input,omitempty"`
		Attr   map[string]any `json:"attr"`
	}
	var ops []operator
	for op, err := range f.Operators(0) {
		if err != nil {
			return nil, err
		}
		attr, err := op.Attributes()
		if err != nil {
			return nil, err
		}
		o := operator{Name: op.Name, Type: op.Type, Attr: map[string]any{}}
		for name, value := range attr {
			o.Attr[name] = value
		}
		ops = append(ops, o)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err = e.Encode(map[string]any{"name": provenance.Model, "attr": attributes, "graph": []any{map[string]any{"name": provenance.Model, "op": ops}}})
	return out.Bytes(), err
}

// textToJSON is mode 5: a protobuf text (ge_proto*.txt) as JSON.
func (r *run) textToJSON(context.Context) error {
	raw, err := os.ReadFile(r.line.Value("om"))
	if err == nil {
		var value any
		if value, err = parseText(string(raw)); err == nil {
			var data []byte
			if data, err = json.MarshalIndent(value, "", "  "); err == nil {
				return r.writeFile(r.line.Value("json"), append(data, '\n'))
			}
		}
	}
	return &failure{code: "E13018", message: fmt.Sprintf("Failed to parse file %s through google::protobuf::TextFormat::Parse: %v", r.line.Value("om"), err)}
}

// maxTextDepth bounds the nesting of a protobuf text.
const maxTextDepth = 200

// parseText reads a protobuf text without its schema: fields become members of an
// object; one that occurs again becomes a list.
func parseText(text string) (map[string]any, error) {
	p := textParser{words: textWords(text)}
	return p.message(0)
}

// textWords cuts a protobuf text: names, values, quoted strings, braces.
func textWords(text string) (words []string) {
	for len(text) > 0 {
		switch c := text[0]; {
		case strings.IndexByte(" \t\r\n,;:", c) >= 0:
			text = text[1:]
		case c == '#':
			_, text, _ = strings.Cut(text, "\n")
		case c == '{' || c == '}':
			words, text = append(words, text[:1]), text[1:]
		case c == '"':
			n := quoted(text)
			words, text = append(words, text[:n]), text[n:]
		default:
			n := strings.IndexAny(text, " \t\r\n,;:{}\"#")
			if n < 0 {
				n = len(text)
			}
			words, text = append(words, text[:n]), text[n:]
		}
	}
	return words
}

// quoted is the length of the string that text begins with.
func quoted(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

type textParser struct {
	words []string
	at    int
}

func (p *textParser) next() (word string, ok bool) {
	if p.at == len(p.words) {
		return "", false
	}
	p.at++
	return p.words[p.at-1], true
}

func (p *textParser) message(depth int) (map[string]any, error) {
	if depth > maxTextDepth {
		return nil, fmt.Errorf("it is nested deeper than %d", maxTextDepth)
	}
	out := map[string]any{}
	for {
		name, ok := p.next()
		if !ok && depth == 0 || name == "}" && depth > 0 {
			return out, nil
		}
		if !ok || strings.ContainsAny(name[:1], `{}"`) {
			return nil, fmt.Errorf("word %d: a field's name is missing", p.at)
		}
		value, err := p.value(depth)
		if err != nil {
			return nil, err
		}
		switch old := out[name].(type) {
		case nil:
			out[name] = value
		case []any:
			out[name] = append(old, value)
		default:
			out[name] = []any{old, value}
		}
	}
}

func (p *textParser) value(depth int) (any, error) {
	word, ok := p.next()
	switch {
	case !ok || word == "}":
		return nil, fmt.Errorf("word %d: a value is missing", p.at)
	case word == "{":
		return p.message(depth + 1)
	case word[0] == '"':
		return p.text(word)
	}
	return word, nil
}

// text is what a quoted string says. One with an escape that nobody knows stays as it is.
func (p *textParser) text(word string) (string, error) {
	inside := strings.TrimSuffix(word[1:], `"`)
	if len(inside) == len(word)-1 || (len(inside)-len(strings.TrimRight(inside, `\`)))%2 == 1 {
		return "", fmt.Errorf("word %d: a string without an end", p.at)
	}
	if said, err := strconv.Unquote(word); err == nil {
		return strings.ToValidUTF8(said, "\uFFFD"), nil
	}
	return inside, nil
}
