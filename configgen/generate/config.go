package generate

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/suggest"
	"github.com/npuctl/npuctl/internal/terminal"
)

// document gives the config as a tree with its reasons, and reads its text back: one
// that does not read is a fault of ours.
func (p *plan) document() (*configgen.Document, error) {
	doc := configgen.NewDocument(configFile, p.config())
	p.explain(doc)
	if _, err := configgen.Parse(configFile, doc.Print()); err != nil {
		return nil, fault.New(fault.Internal, "the config that was made does not read: %w", err)
	}
	return doc, nil
}

const (
	configFile = "config.pbtxt"
	modelFile  = "model.onnx"
)

// config gives the plan as a config.
func (p *plan) config() *configgen.Config {
	policy, _ := parsePolicy(p.VersionPolicy) // it has been checked
	c := &configgen.Config{
		Name: p.Name, Backend: p.Backend, MaxBatchSize: p.maxBatch, VersionPolicy: policy, DynamicBatching: p.batching,
		InstanceGroup: []configgen.InstanceGroup{p.instances()}, Warmup: p.warmups,
	}
	for _, in := range p.inputs {
		dims, reshape := p.dims(in)
		c.Input = append(c.Input, configgen.Input{Name: in.name, DataType: in.kind, Dims: dims, Reshape: reshape})
		p.explainTensor("input", in, reshape)
	}
	for _, out := range p.outputs {
		dims, reshape := p.dims(out)
		c.Output = append(c.Output, configgen.Output{Name: out.name, DataType: out.kind, Dims: dims, Reshape: reshape})
		p.explainTensor("output", out, reshape)
	}
	if p.isGE() {
		c.Parameters = p.parameters()
		p.choose("version_policy", "This is for the server. npu_ge itself takes the first .onnx that it finds in this model's folder, whatever the version: keep one.")
	}
	return c
}

// dims are a tensor's dims in the config. The server wants at least one: a scalar is
// [1], and one number for each element of a batch is [1] that the model does not see.
func (p *plan) dims(t port) (dims []int64, reshape *configgen.Reshape) {
	rest := t.dims
	if p.maxBatch > 0 {
		rest = rest[1:]
	}
	for _, d := range rest {
		dims = append(dims, d.size)
	}
	switch {
	case len(dims) > 0:
		return dims, nil
	case p.maxBatch > 0:
		return []int64{1}, &configgen.Reshape{}
	}
	return []int64{1}, nil
}

func (p *plan) explainTensor(side string, t port, reshape *configgen.Reshape) {
	field := side + "." + t.name
	switch {
	case reshape != nil:
		p.choose(field, "The model has one number for each element of the batch. The server wants a dim, which reshape takes away again.")
	case len(t.dims) == 0:
		p.choose(field, "A scalar in the model; the server wants at least one dim.")
	}
}

// parsePolicy reads latest, latest:N, all and specific:1,3.
func parsePolicy(text string) (*configgen.VersionPolicy, error) {
	word, rest, hasRest := strings.Cut(text, ":")
	bad := fault.New(fault.Usage, "--version-policy %s: give latest, latest:N, all or specific:1,3", text)
	switch {
	case word == "" && !hasRest || word == "latest" && !hasRest:
		return &configgen.VersionPolicy{Latest: &configgen.Latest{NumVersions: 1}}, nil
	case word == "all" && !hasRest:
		return &configgen.VersionPolicy{All: &configgen.All{}}, nil
	case word == "latest":
		n, err := strconv.ParseUint(rest, 10, 31)
		if err != nil || n < 1 {
			return nil, bad
		}
		return &configgen.VersionPolicy{Latest: &configgen.Latest{NumVersions: uint32(n)}}, nil
	case word != "specific":
		return nil, bad
	}
	specific := &configgen.Specific{}
	for number := range strings.SplitSeq(rest, ",") {
		n, err := strconv.ParseInt(number, 10, 63)
		if err != nil || n < 1 || slices.Contains(specific.Versions, n) {
			return nil, bad
		}
		specific.Versions = append(specific.Versions, n)
	}
	return &configgen.VersionPolicy{Specific: specific}, nil
}

func (p *plan) instances() configgen.InstanceGroup {
	g := configgen.InstanceGroup{Count: int32(p.Instances)}
	switch {
	case p.isGE():
		g.Kind = configgen.KindCPU
		p.choose("instance_group", "KIND_CPU: the server knows no NPUs. npu_ge chooses them by itself; an instance is a thread that brings requests to them.")
	case p.CPU:
		g.Kind = configgen.KindCPU
	case len(p.Devices) > 0:
		g.Kind = configgen.KindGPU
		for _, d := range p.Devices {
			g.GPUs = append(g.GPUs, int32(d))
		}
		p.choose("instance_group", fmt.Sprintf("%s on each of these GPUs.", terminal.Counted(p.Instances, "instance")))
	default:
		p.choose("instance_group", "Without a kind: on every GPU that the server finds, else on the CPU.")
	}
	return g
}

// parameters are the settings of npu_ge and of GE.
func (p *plan) parameters() (list []configgen.Entry[string, configgen.Parameter]) {
	add := func(key, value, why string) {
		list = append(list, configgen.Entry[string, configgen.Parameter]{Key: key, Value: configgen.Parameter{StringValue: value}})
		p.choose("parameters."+key, why)
	}
	if p.form == Static {
		why := "Every dim is fixed: one graph, whose weights all streams of a device share."
		if p.maxBatch > 0 {
			why = "The graph is compiled for batch 1; a batch of n runs it n times. Gears (--gears) would run it at once."
		}
		add("static_model", "1", why)
	}
	if len(p.Devices) > 0 {
		words := make([]string, len(p.Devices))
		for i, d := range p.Devices {
			words[i] = strconv.Itoa(d)
		}
		add("device_ids", strings.Join(words, ","), "The NPUs of this model; without it, all of them.")
	}
	if n := p.streams(); n > 0 {
		why := "Streams on each NPU."
		if p.form != Static {
			why += " Each has the weights for itself."
		}
		add("device_exec_blocks", strconv.Itoa(n), why)
	}
	if p.gears != nil {
		add("graph.ge.inputShape", p.shapeText(), "The sizes that gears set are -1 here, with the batch in front.")
		add("graph.ge.dynamicDims", p.gears.dimsText(), p.gearsWhy())
		add("graph.ge.dynamicNodeType", "1", "Gears are sizes of the graph's inputs.")
	}
	for _, d := range p.Dump {
		add("dump_"+d, "1", dumpWhy[d])
	}
	if p.Profiling != "" {
		add("profiling", p.Profiling, profilingWhy[p.Profiling])
	}
	if p.AICoreNum != "" {
		add("session.ge.aicoreNum", p.AICoreNum, "Cores for this model. Without session. in front, npu_ge would ignore it in this file.")
	}
	key, _ := precisionKey(p.Precision) // it has been checked
	if p.Precision == "" {
		add(key, "fp16", "What GE takes for inference when nobody says otherwise (--precision); origin keeps the model's types.")
	} else {
		add(key, p.Precision, "As asked.")
	}
	return list
}

// What the switches of the backend do. Its folders are relative to where the server was
// started, which must not be the repository.
var (
	dumpWhy = map[string]string{
		"graph": "Each compiled graph is written into ./dump_graph, which is emptied first. Not for production.",
		"data":  "Every tensor of every request is written into ./dump_data, which must exist. Not for production.",
	}
	profilingWhy = map[string]string{
		"true":    "The profiler runs as long as the server; msprof --export=on --output=./ reads what it left in ./profiling.",
		"dynamic": "msprof --dynamic=on --pid=PID attaches to the server and starts and stops the profiler.",
	}
)

func (p *plan) gearsWhy() string {
	why := fmt.Sprintf("%s.", p.gears.axesText())
	if p.gears.batchAxis < 0 {
		return why + " A request of another size fails: npu_ge does not pad."
	}
	why += fmt.Sprintf(" Every batch from 1 to %d has one, for npu_ge does not pad.", p.gears.largest)
	if len(p.gears.added) > 0 {
		why += fmt.Sprintf(" %s added to those asked for.", wasText(len(p.gears.added)))
	}
	return why
}

func wasText(n int) string {
	if n == 1 {
		return "1 was"
	}
	return fmt.Sprintf("%d were", n)
}

// precisionKeys are the options of precision modes, the newer one first.
var precisionKeys = [...]string{"precision_mode_v2", "precision_mode"}

// precisionPrefix begins the parameters of precision modes.
const precisionPrefix = "session.ge.exec."

// precisionKey gives the parameter of a precision mode: the newer one where it has the
// word.
func precisionKey(mode string) (string, error) {
	var all []string
	for _, option := range precisionKeys {
		for _, f := range atc.Flags() {
			if f.Name != option {
				continue
			}
			if mode == "" || slices.Contains(f.Values, mode) {
				return precisionPrefix + option, nil
			}
			all = append(all, f.Values...)
		}
	}
	return "", fault.New(fault.Usage, "--precision %s: there is no such mode", mode).With("%s", suggest.Text(mode, all))
}

// explain writes the reasons into the document.
func (p *plan) explain(doc *configgen.Document) {
	head := fmt.Sprintf("Made by npuctl config of %s. It writes comments that begin with a colon anew when what they explain changes; all else is yours.", visible(filepath.Base(p.Model)))
	switch {
	case p.gears != nil:
		head += " Form: gears."
	case p.form == Static:
		head += " Form: static."
	default:
		head += " Form: dynamic, open dims stay open."
	}
	comment(&doc.Root.Field("name").Leading, head)
	if p.isGE() && len(p.inputs)+len(p.outputs) > 2 {
		comment(&doc.Root.Field("input").Leading, "Tensors stand in the model's order: npu_ge takes them by position.")
	}
	for _, c := range p.choices {
		kind, name, isNamed := strings.Cut(c.Field, ".")
		if !isNamed {
			if f := doc.Root.Field(kind); f != nil {
				comment(&f.Leading, c.Why)
			}
			continue
		}
		label := "name"
		if kind == "parameters" {
			label = "key"
		}
		for _, v := range doc.Root.Values(kind) {
			if f := v.Message.Field(label); f != nil && f.Values[0].Scalar == name {
				comment(&v.Leading, c.Why)
			}
		}
	}
}

// commentWidth is how long a line of a comment gets.
const commentWidth = 88

// comment adds a text in lines, which bear the mark of what npuctl wrote.
func comment(lines *[]string, text string) {
	line := ""
	for _, word := range strings.Fields(visible(text)) {
		if line != "" && len(line)+1+len(word) > commentWidth {
			*lines = append(*lines, line)
			line = ""
		}
		if line == "" {
			line = configgen.OwnMark
		}
		line += " " + word
	}
	*lines = append(*lines, line)
}

// visible is a text without what could end a comment or deceive its reader. Names come
// from files that others wrote.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) || r == '#' || r == '�' {
			return '?'
		}
		return r
	}, text)
}
