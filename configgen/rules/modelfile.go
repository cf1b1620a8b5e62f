package rules

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/findings"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/soc"
)

// modelFileRules hold the config against the model file beside it.
func modelFileRules() []Rule {
	return []Rule{
		{"model-not-onnx", errorLevel, loads, Text{"a model file that is no ONNX", "模型文件不是 ONNX"}, Text{"the server does not look at it; the backend fails at load, or later", "服务器不检查；后端在加载时或之后失败"},
			Text{"fetch the file again; for Git LFS, run git lfs pull", "重新获取文件；若用 Git LFS，运行 git lfs pull"}, Text{"%s: %s", "%s：%s"}, (*context).checkNotONNX},
		{"model-tensor-unknown", errorLevel, loads, Text{"a tensor that the model has not", "模型中没有的张量"}, Text{"onnxruntime does not load the model; npu_ge goes by position and hides the error", "onnxruntime 不加载；npu_ge 按位置取用，掩盖了错误"},
			Text{"use the model's own name", "使用模型中的名字"}, Text{"the model has no %s %q", "模型没有 %s %q"}, (*context).checkTensorUnknown},
		{"model-tensor-missing", errorLevel, loads, Text{"a tensor of the model that the config leaves out", "配置遗漏了模型的张量"}, Text{"the backend does not load the model, or feeds inputs by the wrong position", "后端不加载该模型，或按错误的位置输入"},
			Text{"list every input of the model", "列出模型的所有输入"}, Text{"the config leaves out the model's %s %q", "配置遗漏了模型的 %s %q"}, (*context).checkTensorMissing},
		{"model-type", errorLevel, loads, Text{"a type that is not the model's", "类型与模型不符"}, Text{"the backend does not load the model, or reads wrong numbers", "后端不加载该模型，或读出错误的数"},
			Text{"use the model's type", "使用模型的类型"}, Text{"%s %q is %s, the model's is %s", "%s %q 为 %s，模型中是 %s"}, (*context).checkModelType},
		{"model-batch-fixed", errorLevel, loads, Text{"max_batch_size for a model whose batch is fixed", "批固定的模型设置了 max_batch_size"}, Text{"the batch counts twice: requests of the model's own shape are refused", "批被算了两次：按模型形状的请求被拒绝"},
			Text{"set max_batch_size: 0 and write the batch into dims, or export the model with an open batch axis", "写 max_batch_size: 0 并把批写进 dims，或以可变批轴导出模型"}, Text{"%s %q: the model's first dim is %d, max_batch_size is %d", "%s %q：模型的第一维是 %d，max_batch_size 是 %d"}, (*context).checkBatchFixed},
		{"model-dims", errorLevel, loads, Text{"dims that are not the model's", "dims 与模型不符"}, Text{"the backend does not load the model, or runs it with wrong sizes", "后端不加载该模型，或以错误的大小运行"},
			Text{"write the model's dims, without the batch where max_batch_size is above 0", "按模型书写 dims；max_batch_size 大于 0 时不含批"}, Text{"%s %q is %s, the model's is %s", "%s %q 为 %s，模型中是 %s"}, (*context).checkModelDims},
		{"model-order", errorLevel, loads, Text{"inputs in another order than the model's", "输入次序与模型不同"}, Text{"npu_ge goes by position: it feeds each input to the wrong tensor", "npu_ge 按位置取用：输入会送到错误的张量"},
			Text{"list the inputs in the model's order", "按模型的次序列出输入"}, Text{"%ss are listed as %s, the model has %s", "%s 的次序是 %s，模型中是 %s"}, (*context).checkModelOrder},
		{"model-output-name", errorLevel, loads, Text{"an open output dim without a usable name", "可变输出维没有可用的名字"}, Text{"npu_ge computes it from the dim's name over the inputs' dim names; the model does not load", "npu_ge 用维名和输入维名计算它；模型不加载"},
			Text{"name the dim in the model by an expression over input dim names, or fix it", "在模型中用输入维名的表达式命名该维，或固定它"}, Text{"output %q, dim %d: %q is no expression over the inputs' dim names", "输出 %q 第 %d 维：%q 不是由输入维名组成的表达式"}, (*context).checkOutputNames},
	}
}

// modelFile is the model file that the backend would open.
type modelFile struct {
	path  string // display path; empty when there is none
	model *signature
	err   error
	// nodes is what is found of its nodes, and of its graph.
	nodes []nodeFinding
}

// signature is what the rules need to know of a model file.
type signature struct {
	inputs, outputs []modelTensor
}

type modelTensor struct {
	name string
	kind configgen.DataType
	// dims has -1 for open ones; names has their symbolic names.
	dims  []int64
	names []string
	// hasShape is false when even the rank is unknown.
	hasShape bool
	// isOther is set for what is no tensor: a sequence, a map, an optional.
	isOther bool
}

// modelFile reads the model's file once.
func (c *context) modelFile() modelFile {
	c.onnxOnce.Do(func() { c.Model.onnx = c.readModelFile() })
	return c.Model.onnx
}

// modelFileName is the file that the backend would open, or "".
func (c *context) modelFileName() string {
	id := c.identify()
	switch id.backend {
	case geBackend:
		files := slices.DeleteFunc(c.filesBelow(), func(f string) bool { return !strings.HasSuffix(f, ".onnx") })
		if len(files) > 0 {
			return files[0]
		}
	case "onnxruntime":
		for _, version := range c.served() {
			name := join(folderOf(version), id.filename)
			if kind, _ := c.folder.stat(name); kind == regularFile {
				return name
			}
		}
	}
	return ""
}

func (c *context) readModelFile() modelFile {
	disk, isOnDisk := c.folder.(diskFolder)
	name := c.modelFileName()
	if name == "" || !isOnDisk {
		return modelFile{}
	}
	return openModelFile(disk.path(name), disk.display(name), c.options.Chip)
}

func openModelFile(path, display string, chip *soc.Chip) modelFile {
	out := modelFile{path: display}
	m, err := onnx.Open(path)
	if err != nil {
		out.err = err
		return out
	}
	defer m.Close()
	s := &signature{}
	for _, v := range m.Graph.Inputs() {
		if v.Initializer() == nil {
			s.inputs = append(s.inputs, tensorOf(v))
		}
	}
	for _, v := range m.Graph.Outputs() {
		s.outputs = append(s.outputs, tensorOf(v))
	}
	out.model = s
	out.nodes = examineModel(m, chip)
	return out
}

// onnxTypes are the element types that both sides know.
var onnxTypes = map[tensor.Type]configgen.DataType{
	tensor.Bool: configgen.TypeBool, tensor.Uint8: configgen.TypeUint8, tensor.Uint16: configgen.TypeUint16, tensor.Uint32: configgen.TypeUint32, tensor.Uint64: configgen.TypeUint64,
	tensor.Int8: configgen.TypeInt8, tensor.Int16: configgen.TypeInt16, tensor.Int32: configgen.TypeInt32, tensor.Int64: configgen.TypeInt64,
	tensor.Float16: configgen.TypeFP16, tensor.Float32: configgen.TypeFP32, tensor.Float64: configgen.TypeFP64, tensor.String: configgen.TypeString, tensor.BFloat16: configgen.TypeBF16,
}

func tensorOf(v *onnx.Value) modelTensor {
	t := modelTensor{name: v.Name()}
	if v.Type == nil || v.Type.Kind != onnx.KindTensor {
		t.isOther = v.Type != nil
		return t
	}
	t.kind = onnxTypes[v.Type.Elem]
	if v.Type.Shape == nil {
		return t
	}
	t.hasShape = true
	for _, d := range v.Type.Shape.Dims {
		size := int64(-1)
		if d.Known {
			size = d.Value
		}
		t.dims, t.names = append(t.dims, size), append(t.names, d.Param)
	}
	return t
}

// notONNX says what a file that is no model looks like.
func notONNX(data []byte, err error) string {
	head := bytes.TrimLeft(data, " \t\r\n")
	switch {
	case len(data) == 0:
		return "the file is empty"
	case bytes.HasPrefix(head, []byte("version https://git-lfs")):
		return "a Git LFS pointer, not the model"
	case bytes.HasPrefix(bytes.ToLower(head), []byte("<!doctype")), bytes.HasPrefix(bytes.ToLower(head), []byte("<html")), bytes.HasPrefix(head, []byte("<?xml")):
		return "a web page, such as a download's error page, not the model"
	}
	return err.Error()
}

func (c *context) checkNotONNX() {
	file := c.modelFile()
	if file.err == nil {
		return
	}
	head, _ := c.folder.read(c.modelFileName(), 256)
	c.reportFile(file.path, c.modelFileName(), notONNX(head, file.err))
}

// sides pairs the config's tensors with the model's.
func (c *context) sides(look func(side string, ports []port, tensors []modelTensor)) {
	file := c.modelFile()
	if file.model == nil {
		return
	}
	var in, out []port
	for _, p := range c.ports() {
		if p.side == "input" {
			in = append(in, p)
		} else {
			out = append(out, p)
		}
	}
	if len(in) > 0 {
		look("input", in, file.model.inputs)
	}
	if len(out) > 0 {
		look("output", out, file.model.outputs)
	}
}

// matched calls look for each tensor that config and model both have.
func (c *context) matched(look func(p port, t modelTensor)) {
	c.sides(func(_ string, ports []port, tensors []modelTensor) {
		for _, p := range ports {
			if i := slices.IndexFunc(tensors, func(t modelTensor) bool { return t.name == p.name }); i >= 0 {
				look(p, tensors[i])
			}
		}
	})
}

func tensorNames(tensors []modelTensor) []string {
	out := make([]string, len(tensors))
	for i, t := range tensors {
		out[i] = t.name
	}
	return out
}

func (c *context) checkTensorUnknown() {
	c.sides(func(side string, ports []port, tensors []modelTensor) {
		for _, p := range ports {
			names := tensorNames(tensors)
			if slices.Contains(names, p.name) || p.name == "" {
				continue
			}
			f := c.report(p.At("name"), side, p.name)
			near := nearest(p.name, names)
			c.near(f, near)
			if near != "" && near == loneMissing(ports, names) {
				replace(f, p.Message().Field("name").Values[0], quoted(near))
			}
		}
	})
}

// loneMissing is the model's tensor that the config leaves out, where it is one alone and
// one name alone of the config is unknown: then it is clear which is which. Else it is "".
func loneMissing(ports []port, names []string) (missing string) {
	unknown := 0
	for _, p := range ports {
		if !slices.Contains(names, p.name) {
			unknown++
		}
	}
	for _, name := range names {
		if slices.ContainsFunc(ports, func(p port) bool { return p.name == name }) {
			continue
		}
		if missing != "" || unknown != 1 {
			return ""
		}
		missing = name
	}
	return missing
}

func (c *context) checkTensorMissing() {
	c.sides(func(side string, ports []port, tensors []modelTensor) {
		for _, t := range tensors {
			if t.kind == configgen.TypeInvalid && t.isOther {
				continue // sequences and maps are nothing that a config could list
			}
			isListed := slices.ContainsFunc(ports, func(p port) bool { return p.name == t.name })
			if !isListed && len(ports) < len(tensors) {
				f := c.report(ports[0].At(""), side, t.name)
				if side == "output" {
					f.Severity = warningLevel // outputs may be left out for onnxruntime
				}
			}
		}
	})
}

func (c *context) checkModelType() {
	c.matched(func(p port, t modelTensor) {
		if t.kind != configgen.TypeInvalid && p.kind != t.kind && p.kind != configgen.TypeInvalid {
			f := c.report(p.At("data_type"), p.side, p.name, p.kind, t.kind)
			replace(f, p.Message().Field("data_type").Values[0], t.kind.String())
		}
	})
}

// modelShape is the shape that the model sees for a tensor of the config.
func (c *context) modelShape(p port) []int64 {
	shape := shapeOf(p.dims, p.reshape)
	if c.Config.MaxBatchSize > 0 {
		return append([]int64{-1}, shape...)
	}
	return shape
}

func (c *context) isBatchFixed(t modelTensor) bool {
	return c.Config.MaxBatchSize > 0 && t.hasShape && len(t.dims) > 0 && t.dims[0] != -1
}

func (c *context) checkBatchFixed() {
	c.matched(func(p port, t modelTensor) {
		if c.isBatchFixed(t) {
			c.report(p.At("dims"), p.side, p.name, t.dims[0], c.Config.MaxBatchSize)
		}
	})
}

func (c *context) checkModelDims() {
	c.matched(func(p port, t modelTensor) {
		full := c.modelShape(p)
		if !t.hasShape || c.isBatchFixed(t) || fit(full, t.dims) || len(p.dims) == 0 {
			return
		}
		// A scalar of the model is [1] in a config without batching.
		if c.Config.MaxBatchSize == 0 && len(t.dims) == 0 && slices.Equal(p.dims, []int64{1}) {
			return
		}
		c.report(p.At("dims"), p.side, p.name, dimsText(full), dimsText(t.dims))
	})
}

func (c *context) checkModelOrder() {
	if !c.isGE() {
		return
	}
	c.sides(func(side string, ports []port, tensors []modelTensor) {
		names := tensorNames(tensors)
		listed := make([]string, len(ports))
		for i, p := range ports {
			listed[i] = p.name
		}
		a, b := slices.Sorted(slices.Values(listed)), slices.Sorted(slices.Values(names))
		if slices.Equal(a, b) && !slices.Equal(listed, names) {
			c.report(ports[0].At("name"), side, strings.Join(listed, ", "), strings.Join(names, ", "))
		}
	})
}

func (c *context) checkOutputNames() {
	file := c.modelFile()
	if !c.isGE() || file.model == nil {
		return
	}
	var known []string
	for _, in := range file.model.inputs {
		known = append(known, in.names...)
	}
	c.matched(func(p port, t modelTensor) {
		if p.side != "output" {
			return
		}
		first := 0
		if c.Config.MaxBatchSize > 0 {
			first = 1
		}
		for i, d := range p.dims {
			at := i + first
			if d != -1 || at >= len(t.names) || i == 0 && first == 0 {
				continue // the first axis of a model without max_batch_size may be the batch
			}
			if !IsDimExpression(t.names[at], known) {
				c.report(p.ValueAt("dims", i), p.name, i, t.names[at])
			}
		}
	})
}

// IsDimExpression says whether npu_ge can compute a dim of this name: whether the text
// is made of known names, numbers, + - * / and brackets, in an order that can be computed.
func IsDimExpression(text string, names []string) bool {
	depth, wantsValue := 0, true
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimLeft(text, " ") {
		n := 1
		switch b := text[0]; {
		case wantsValue && b == '(':
			depth++
		case wantsValue && isWordByte(b):
			for n < len(text) && isWordByte(text[n]) {
				n++
			}
			word := text[:n]
			if strings.Trim(word, "0123456789") != "" && !slices.Contains(names, word) {
				return false
			}
			wantsValue = false
		case !wantsValue && b == ')' && depth > 0:
			depth--
		case !wantsValue && strings.IndexByte("+-*/", b) >= 0:
			wantsValue = true
		default:
			return false
		}
		text = text[n:]
	}
	return depth == 0 && !wantsValue
}

// reportModelFile tells that a model file named on the command line does not read.
func (c *context) reportModelFile(file modelFile, head []byte) *findings.Finding {
	c.use("model-not-onnx")
	return c.reportFile(file.path, fmt.Sprint(file.path), notONNX(head, file.err))
}
