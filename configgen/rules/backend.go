package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/findings"
)

// backendRules are about the Ascend GE backend, npu_ge: what it makes of parameters
// and tensors, which the server itself passes on unread.
func backendRules() []Rule {
	return []Rule{
		{"ge-parameter", warningLevel, loads, Text{"a parameter that npu_ge does not know", "npu_ge 不认识的参数"}, Text{"the backend ignores it without a word", "后端不提示地忽略它"},
			Text{"correct the key", "改正键名"}, Text{"npu_ge has no parameter %q", "npu_ge 没有参数 %q"}, (*context).checkGEParameter},
		{"ge-number", errorLevel, loads, Text{"a parameter of npu_ge that is no number", "npu_ge 的参数不是数字"}, Text{"the backend does not load the model: Failed to create model state: stoi", "后端不加载该模型：Failed to create model state: stoi"},
			Text{"write whole numbers, in quotes; device_ids are joined by commas", "写整数并加引号；device_ids 用逗号分隔"}, Text{"%s: %q is no whole number", "%s：%q 不是整数"}, (*context).checkGENumber},
		{"ge-count", warningLevel, loads, Text{"a number of streams or a device that cannot be", "流数或设备编号无效"}, Text{"no stream is ever free, or the device is skipped; requests wait", "没有可用的流，或设备被跳过；请求一直等待"},
			Text{"use streams from 1 up and devices from 0 up, each once", "流数从 1 起，设备从 0 起且不重复"}, Text{"%s: %q", "%s：%q"}, (*context).checkGECount},
		{"ge-option-ignored", warningLevel, loads, Text{"an option that npu_ge does not read from the file", "npu_ge 不从文件读取的选项"}, Text{"it has no effect: ge.* counts only on the server's command line (--backend-config) or in GE_NPU_CONFIG, and global.* nowhere", "不起作用：ge.* 只在服务器命令行（--backend-config）或 GE_NPU_CONFIG 中有效，global.* 从不使用"},
			Text{"use session.ge.… or graph.ge.…, or the command line", "改用 session.ge.… 或 graph.ge.…，或命令行"}, Text{"%s is ignored in config.pbtxt", "config.pbtxt 中的 %s 被忽略"}, (*context).checkGEIgnored},
		{"ge-value", warningLevel, loads, Text{"a value that npu_ge or GE does not know", "npu_ge 或 GE 不认识的值"}, Text{"the setting has no effect, or compiling the graph fails", "设置不起作用，或图编译失败"},
			Text{"use one of the known values", "使用已知的值"}, Text{"%s: %q is not one of %s", "%s：%q 不是 %s 之一"}, (*context).checkGEValue},
		{"ge-static-batching", warningLevel, loads, Text{"static_model with dynamic_batching", "static_model 与 dynamic_batching 同用"}, Text{"the graph is built for batch 1, and a batch of n runs n times in a loop", "图按批 1 编译，批 n 要循环运行 n 次"},
			Text{"use gears (graph.ge.dynamicDims) for batches, or leave one of them out", "用档位（graph.ge.dynamicDims）处理批，或去掉其一"}, Text{"static_model is on and dynamic_batching groups requests", "启用了 static_model，同时 dynamic_batching 会合并请求"}, (*context).checkGEStatic},
		{"ge-static-open", warningLevel, loads, Text{"static_model with open dims", "static_model 有可变维"}, Text{"a static graph needs every dim but the batch; building it fails", "静态图除批之外每一维都要确定，否则构建失败"},
			Text{"write sizes for the dims, or take static_model out", "写明各维大小，或去掉 static_model"}, Text{"static_model is on and %s %q has open dims", "启用了 static_model，但 %s %q 有可变维"}, (*context).checkGEStaticOpen},
		{"ge-gears-incomplete", warningLevel, loads, Text{"gears that lack a part", "档位设置不完整"}, Text{"without graph.ge.inputShape, graph.ge.dynamicDims and graph.ge.dynamicNodeType together the graph has no gears", "缺少 graph.ge.inputShape、graph.ge.dynamicDims、graph.ge.dynamicNodeType 之一时图没有档位"},
			Text{"set all three; graph.ge.dynamicNodeType is \"1\"", "三者都要设置；graph.ge.dynamicNodeType 为 \"1\""}, Text{"gears without %s", "档位缺少 %s"}, (*context).checkGearsIncomplete},
		{"ge-gears-shape", errorLevel, loads, Text{"gears that do not fit the input shapes", "档位与输入形状不符"}, Text{"the graph does not compile, and the model does not load", "图无法编译，模型不加载"},
			Text{"give each gear one number for every -1 of graph.ge.inputShape, in its order", "每个档位对应 graph.ge.inputShape 中每个 -1 一个数，按次序"}, Text{"%s", "%s"}, (*context).checkGearsShape},
		{"ge-gears-input", warningLevel, loads, Text{"graph.ge.inputShape names an input that the config has not", "graph.ge.inputShape 中的输入不在配置里"}, Text{"the graph does not compile, or has other gears than meant", "图无法编译，或档位与预期不同"},
			Text{"use the inputs' names and dims, the batch first", "使用输入的名字和维度，批在最前"}, Text{"graph.ge.inputShape: %s", "graph.ge.inputShape：%s"}, (*context).checkGearsInput},
		{"ge-gear-missing", warningLevel, loads, Text{"batches without a gear", "有的批没有档位"}, Text{"npu_ge does not pad: a batch that is no gear fails", "npu_ge 不填充：没有对应档位的批会失败"},
			Text{"list a gear for every batch from 1 to the largest that can occur", "为 1 到最大可能的每个批都列出档位"}, Text{"no gear for batch %s", "批 %s 没有档位"}, (*context).checkGearMissing},
		{"ge-types", warningLevel, loads, Text{"a type that npu_ge cannot hold", "npu_ge 不支持的类型"}, Text{"the backend takes the type for invalid, or counts a string as one byte", "后端把该类型视为无效，或把字符串当作一个字节"},
			Text{"use another type, and cast in the model", "改用其他类型，在模型中转换"}, Text{"%s %q: npu_ge does not support %s", "%s %q：npu_ge 不支持 %s"}, (*context).checkGETypes},
		{"ge-merge", warningLevel, loads, Text{"dynamic_batching without preferred sizes", "dynamic_batching 没有首选大小"}, Text{"npu_ge merges only when preferred_batch_size is set: grouped requests run one after another", "npu_ge 只在设置 preferred_batch_size 时合并：被分组的请求逐个运行"},
			Text{"set preferred_batch_size", "设置 preferred_batch_size"}, Text{"dynamic_batching without preferred_batch_size", "dynamic_batching 缺少 preferred_batch_size"}, (*context).checkGEMerge},
		{"ge-split", warningLevel, loads, Text{"instance_exec_blocks above 1", "instance_exec_blocks 大于 1"}, Text{"published versions of npu_ge compute wrong results or damage device memory with it", "已发布的 npu_ge 版本会因此算错或破坏设备内存"},
			Text{"leave it at 1 and use more instances", "保持为 1，增加实例数"}, Text{"instance_exec_blocks is %d", "instance_exec_blocks 为 %d"}, (*context).checkGESplit},
		{"ge-unsupported", warningLevel, loads, Text{"something that npu_ge does not do", "npu_ge 不支持的功能"}, Text{"the backend takes no notice of it", "后端不予理会"},
			Text{"remove it, or use the Python backend", "删去，或改用 Python 后端"}, Text{"npu_ge does not handle %s", "npu_ge 不支持 %s"}, (*context).checkGEUnsupported},
		{"ge-model-missing", warningLevel, loads, Text{"no .onnx or .pb for npu_ge", "没有供 npu_ge 使用的 .onnx 或 .pb"}, Text{"the backend does not load the model: Model file not found; it does not read .om", "后端不加载该模型：Model file not found；它不读取 .om"},
			Text{"put the .onnx into the version folder; an .om is served by the Python backend", "把 .onnx 放入版本目录；.om 由 Python 后端提供"}, Text{"%s", "%s"}, (*context).checkGEModel},
		{"ge-model-ambiguous", warningLevel, loads, Text{"several models for npu_ge", "npu_ge 有多个模型文件"}, Text{"the backend takes the first that it happens to find, whatever the version", "后端取碰巧先找到的那个，不论版本"},
			Text{"keep one .onnx in the model's folder", "模型目录中只留一个 .onnx"}, Text{"the model's folder holds %d .onnx files: %s", "模型目录中有 %d 个 .onnx 文件：%s"}, (*context).checkGEAmbiguous},
		{"ge-dump", noteLevel, loads, Text{"dump or profiling is on", "启用了 dump 或 profiling"}, Text{"it slows every request down and fills the disk", "会拖慢每个请求并占用磁盘"},
			Text{"remove it from what goes into production", "生产环境中删去"}, Text{"%s is on", "启用了 %s"}, (*context).checkGEDump},
	}
}

// geKeys are the parameters that npu_ge reads, beside options of GE.
var geKeys = []string{"device_ids", "device_exec_blocks", "instance_exec_blocks", "static_model", "dump_graph", "dump_data", "profiling"}

// gePrefixes are how options of GE begin.
var gePrefixes = []string{"ge.", "session.", "graph.", "global."}

// gearKeys are the three options that make gears.
var gearKeys = []string{"graph.ge.inputShape", "graph.ge.dynamicDims", "graph.ge.dynamicNodeType"}

// geParameters calls look for each parameter of a model that npu_ge serves.
func (c *context) geParameters(look func(key, value string, at *configgen.Entry[string, configgen.Parameter])) {
	if !c.isGE() {
		return
	}
	for i := range c.Config.Parameters {
		e := &c.Config.Parameters[i]
		look(e.Key, e.Value.StringValue, e)
	}
}

func hasGEPrefix(key string) bool {
	return slices.ContainsFunc(gePrefixes, func(p string) bool { return strings.HasPrefix(key, p) })
}

func (c *context) checkGEParameter() {
	known := slices.Concat(geKeys, gearKeys, []string{"session.ge.exec.precision_mode_v2", "session.ge.exec.precision_mode"})
	c.geParameters(func(key, _ string, at *configgen.Entry[string, configgen.Parameter]) {
		if slices.Contains(geKeys, key) || hasGEPrefix(key) || strings.HasPrefix(key, "TRITON_") {
			return
		}
		f := c.report(at.At("key"), key)
		near := nearest(key, known)
		c.near(f, near)
		if field := at.Message().Field("key"); field != nil && near != "" {
			replace(f, field.Values[0], quoted(near))
		}
	})
}

// leadingInteger says whether a text begins with a number, which is all that the
// backend asks.
var leadingInteger = regexp.MustCompile(`^\s*[-+]?\d+`)

func (c *context) checkGENumber() {
	c.geParameters(func(key, value string, at *configgen.Entry[string, configgen.Parameter]) {
		var words []string
		switch key {
		case "device_ids":
			words = slices.DeleteFunc(strings.Split(value, ","), func(w string) bool { return w == "" })
		case "device_exec_blocks", "instance_exec_blocks", "static_model":
			words = []string{value}
		}
		for _, word := range words {
			if leadingInteger.MatchString(word) {
				continue
			}
			f := c.report(at.Value.At("string_value"), key, word)
			if word == "" {
				f.Severity = warningLevel // a value that somebody still has to fill in
			}
		}
	})
}

func (c *context) checkGECount() {
	c.geParameters(func(key, value string, at *configgen.Entry[string, configgen.Parameter]) {
		switch key {
		case "device_exec_blocks", "instance_exec_blocks":
			if n, err := strconv.Atoi(strings.TrimSpace(value)); err == nil && n < 1 {
				c.report(at.Value.At("string_value"), key, value)
			}
		case "device_ids":
			seen := map[int]bool{}
			for word := range strings.SplitSeq(value, ",") {
				n, err := strconv.Atoi(strings.TrimSpace(word))
				if err == nil && (n < 0 || seen[n]) {
					c.report(at.Value.At("string_value"), key, value)
					return
				}
				seen[n] = err == nil
			}
		}
	})
}

func (c *context) checkGEIgnored() {
	c.geParameters(func(key, _ string, at *configgen.Entry[string, configgen.Parameter]) {
		if strings.HasPrefix(key, "ge.") || strings.HasPrefix(key, "global.") {
			c.report(at.At("key"), key)
		}
	})
}

// geValues are the words that parameters take.
var geValues = map[string][]string{
	"profiling":                         {"true", "dynamic"},
	"static_model":                      {"0", "1"},
	"dump_graph":                        {"0", "1"},
	"dump_data":                         {"0", "1"},
	"graph.ge.dynamicNodeType":          {"1"},
	"session.ge.exec.precision_mode_v2": {"fp16", "origin", "cube_fp16in_fp32out", "mixed_float16", "mixed_bfloat16", "cube_hif8", "mixed_hif8"},
	"session.ge.exec.precision_mode":    {"force_fp32", "force_fp16", "allow_fp32_to_fp16", "must_keep_origin_dtype", "allow_mix_precision", "allow_mix_precision_fp16", "allow_mix_precision_bf16", "cube_fp16in_fp32out", "allow_fp32_to_bf16"},
}

func (c *context) checkGEValue() {
	c.geParameters(func(key, value string, at *configgen.Entry[string, configgen.Parameter]) {
		values, known := geValues[key]
		if !known || slices.Contains(values, value) || key == "static_model" && !leadingInteger.MatchString(value) {
			return
		}
		f := c.report(at.Value.At("string_value"), key, value, strings.Join(values, ", "))
		near := nearest(value, values)
		c.near(f, near)
	})
}

// isStatic says whether the config asks for a static graph.
func (c *context) isStatic() bool {
	value, _ := c.Config.Parameter("static_model")
	return c.isGE() && strings.TrimSpace(value) == "1"
}

func (c *context) checkGEStatic() {
	if c.isStatic() && c.Config.DynamicBatching != nil {
		c.report(c.parameterOffset("static_model"))
	}
}

func (c *context) checkGEStaticOpen() {
	if !c.isStatic() {
		return
	}
	for _, p := range c.ports() {
		dims := p.dims
		if c.Config.MaxBatchSize == 0 && len(dims) > 0 {
			dims = dims[1:] // the first axis may be the batch
		}
		if p.side == "input" && slices.Contains(dims, -1) {
			c.report(p.At("dims"), p.side, p.name)
		}
	}
}

// gearSettings are the three options, as far as they are there.
func (c *context) gearSettings() (values map[string]string, hasGears bool) {
	values = map[string]string{}
	if !c.isGE() {
		return values, false
	}
	for _, key := range gearKeys {
		if value, ok := c.Config.Parameter(key); ok {
			values[key] = value
			hasGears = hasGears || key != "graph.ge.inputShape"
		}
	}
	return values, hasGears
}

func (c *context) checkGearsIncomplete() {
	values, hasGears := c.gearSettings()
	if !hasGears {
		return
	}
	for _, key := range gearKeys {
		if _, ok := values[key]; !ok {
			at := gearKeys[slices.IndexFunc(gearKeys, func(k string) bool { _, ok := values[k]; return ok })]
			c.report(c.parameterOffset(at), key)
		}
	}
}

// gearInput is one input of graph.ge.inputShape.
type gearInput struct {
	name string
	dims []int64
}

// parseInputShape reads name:1,3,-1,-1;name:… and gives what does not read.
func parseInputShape(text string) (inputs []gearInput, bad string) {
	for part := range strings.SplitSeq(strings.TrimRight(text, "; "), ";") {
		colon := strings.LastIndex(part, ":")
		if colon < 1 {
			return inputs, part
		}
		in := gearInput{name: strings.TrimSpace(part[:colon])}
		for word := range strings.SplitSeq(part[colon+1:], ",") {
			n, err := strconv.ParseInt(strings.TrimSpace(word), 10, 64)
			if err != nil || n < 1 && n != -1 {
				return inputs, part
			}
			in.dims = append(in.dims, n)
		}
		inputs = append(inputs, in)
	}
	return inputs, ""
}

// parseGears reads 1;2;4 or 224,224;336,336.
func parseGears(text string) (gears [][]int64, bad string) {
	for part := range strings.SplitSeq(strings.TrimRight(text, "; "), ";") {
		var gear []int64
		for word := range strings.SplitSeq(part, ",") {
			n, err := strconv.ParseInt(strings.TrimSpace(word), 10, 64)
			if err != nil || n < 1 {
				return gears, part
			}
			gear = append(gear, n)
		}
		gears = append(gears, gear)
	}
	return gears, ""
}

// gearPlan is what the options say, when they can be read.
func (c *context) gearPlan() (inputs []gearInput, gears [][]int64, ok bool) {
	values, hasGears := c.gearSettings()
	if !hasGears {
		return nil, nil, false
	}
	inputs, bad := parseInputShape(values["graph.ge.inputShape"])
	gears, badGear := parseGears(values["graph.ge.dynamicDims"])
	return inputs, gears, bad == "" && badGear == ""
}

// What can be wrong with gears.
var (
	gearsUnread  = Text{"%s: %q cannot be read", "%s：%q 无法解析"}
	gearsNothing = Text{"graph.ge.inputShape has no -1 that gears could set", "graph.ge.inputShape 中没有可由档位设置的 -1"}
	gearsCount   = Text{"gear %s has %d numbers, graph.ge.inputShape has %d open dims", "档位 %s 有 %d 个数，graph.ge.inputShape 有 %d 个可变维"}
)

func (c *context) checkGearsShape() {
	values, hasGears := c.gearSettings()
	if !hasGears {
		return
	}
	l := c.options.Language
	tell := func(key, format string, args ...any) {
		c.report(c.parameterOffset(key), fmt.Sprintf(format, args...))
	}
	shape, hasShape := values["graph.ge.inputShape"]
	inputs, bad := parseInputShape(shape)
	if hasShape && bad != "" {
		tell("graph.ge.inputShape", gearsUnread.In(l), "graph.ge.inputShape", bad)
	}
	dims, hasDims := values["graph.ge.dynamicDims"]
	gears, badGear := parseGears(dims)
	if hasDims && badGear != "" {
		tell("graph.ge.dynamicDims", gearsUnread.In(l), "graph.ge.dynamicDims", badGear)
	}
	if !hasShape || !hasDims || bad != "" || badGear != "" {
		return
	}
	open := 0
	for _, in := range inputs {
		open += countOpen(in.dims)
	}
	if open == 0 {
		tell("graph.ge.inputShape", "%s", gearsNothing.In(l))
		return
	}
	for _, gear := range gears {
		if len(gear) != open {
			tell("graph.ge.dynamicDims", gearsCount.In(l), strings.Trim(dimsText(gear), "[]"), len(gear), open)
			return
		}
	}
}

func countOpen(dims []int64) (n int) {
	for _, d := range dims {
		if d == -1 {
			n++
		}
	}
	return n
}

// What can be wrong with the inputs of gears.
var (
	gearUnknownInput = Text{"there is no input %q", "没有输入 %q"}
	gearOtherShape   = Text{"%q is %s, the config says %s", "%q 为 %s，配置中是 %s"}
)

func (c *context) checkGearsInput() {
	inputs, _, ok := c.gearPlan()
	if !ok || len(c.Config.Input) == 0 {
		return
	}
	l := c.options.Language
	for _, g := range inputs {
		i := slices.IndexFunc(c.Config.Input, func(in configgen.Input) bool { return in.Name == g.name })
		if i < 0 {
			f := c.report(c.parameterOffset("graph.ge.inputShape"), fmt.Sprintf(gearUnknownInput.In(l), g.name))
			c.near(f, nearest(g.name, inputNames(c.Config)))
			continue
		}
		full := shapeOf(c.Config.Input[i].Dims, c.Config.Input[i].Reshape) // gears are of the model's own shapes
		if c.Config.MaxBatchSize > 0 {
			full = append([]int64{-1}, full...)
		}
		if !fit(full, g.dims) {
			c.report(c.parameterOffset("graph.ge.inputShape"), fmt.Sprintf(gearOtherShape.In(l), g.name, dimsText(g.dims), dimsText(full)))
		}
	}
}

func (c *context) checkGearMissing() {
	inputs, gears, ok := c.gearPlan()
	if !ok || c.Config.MaxBatchSize == 0 || len(inputs) == 0 {
		return
	}
	isBatchOnly := true
	for _, in := range inputs {
		isBatchOnly = isBatchOnly && (countOpen(in.dims) == 0 || countOpen(in.dims) == 1 && in.dims[0] == -1)
	}
	var missing []string
	for batch := int64(1); isBatchOnly && batch <= int64(c.Config.MaxBatchSize) && len(missing) < 9; batch++ {
		if !slices.ContainsFunc(gears, func(g []int64) bool { return len(g) > 0 && g[0] == batch }) {
			missing = append(missing, strconv.FormatInt(batch, 10))
		}
	}
	if len(missing) == 9 {
		missing[8] = "…"
	}
	if len(missing) > 0 {
		c.report(c.parameterOffset("graph.ge.dynamicDims"), strings.Join(missing, ", "))
	}
}

func (c *context) checkGETypes() {
	if !c.isGE() {
		return
	}
	for _, p := range c.ports() {
		switch p.kind {
		case configgen.TypeFP64, configgen.TypeBF16, configgen.TypeString:
			c.report(p.At("data_type"), p.side, p.name, p.kind)
		}
	}
}

func (c *context) checkGEMerge() {
	d := c.Config.DynamicBatching
	if c.isGE() && d != nil && len(d.PreferredBatchSize) == 0 && c.Config.MaxBatchSize > 0 {
		f := c.report(c.Config.At("dynamic_batching"))
		c.preferMax(f)
	}
}

// preferMax lets --fix prefer the largest batch, which is what the server does when
// nothing is preferred.
func (c *context) preferMax(f *findings.Finding) {
	field := c.Config.Message().Field("dynamic_batching")
	block := field.Values[0]
	f.Edits = append(f.Edits, findings.Edit{Start: block.Start + 1, End: block.Start + 1,
		Text: fmt.Sprintf(" preferred_batch_size: [ %d ]", c.Config.MaxBatchSize)})
}

func (c *context) checkGESplit() {
	c.geParameters(func(key, value string, at *configgen.Entry[string, configgen.Parameter]) {
		if n, err := strconv.Atoi(strings.TrimSpace(value)); key == "instance_exec_blocks" && err == nil && n > 1 {
			c.report(at.Value.At("string_value"), n)
		}
	})
}

func (c *context) checkGEUnsupported() {
	if !c.isGE() {
		return
	}
	if c.Config.SequenceBatching != nil {
		c.report(c.Config.At("sequence_batching"), "sequence_batching")
	}
	if c.Config.Decoupled() {
		c.report(c.Config.At("model_transaction_policy"), "decoupled")
	}
	for _, in := range c.Config.Input {
		if in.AllowRaggedBatch {
			c.report(in.At("allow_ragged_batch"), "allow_ragged_batch")
		}
	}
}

// What can be wrong with the model file of npu_ge.
var (
	geNoModel = Text{"the model's folder holds no .onnx and no .pb", "模型目录中没有 .onnx 或 .pb"}
	geOnlyOM  = Text{"npu_ge does not load .om (%s)", "npu_ge 不加载 .om（%s）"}
)

func (c *context) checkGEModel() {
	if !c.isGE() {
		return
	}
	l := c.options.Language
	if name := c.Config.DefaultModelFilename; strings.HasSuffix(name, ".om") {
		c.report(c.Config.At("default_model_filename"), fmt.Sprintf(geOnlyOM.In(l), name))
		return
	}
	files := c.filesBelow()
	has := func(ending string) string {
		i := slices.IndexFunc(files, func(f string) bool { return strings.HasSuffix(f, ending) })
		if i < 0 {
			return ""
		}
		return files[i]
	}
	if has(".onnx") != "" || has(".pb") != "" {
		return
	}
	if file := has(".om"); file != "" {
		c.report(c.Config.At("backend"), fmt.Sprintf(geOnlyOM.In(l), file))
		return
	}
	if !c.imagined {
		c.report(c.Config.At("backend"), geNoModel.In(l))
	}
}

func (c *context) checkGEAmbiguous() {
	if !c.isGE() {
		return
	}
	models := slices.DeleteFunc(c.filesBelow(), func(f string) bool { return !strings.HasSuffix(f, ".onnx") })
	if len(models) > 1 && !c.imagined {
		c.report(c.Config.At("backend"), len(models), strings.Join(models[:min(4, len(models))], ", "))
	}
}

// entriesLimit bounds how much of a folder is looked through; links may make circles.
const entriesLimit = 4096

// filesBelow lists the files of the model's folder, among the first entriesLimit names.
func (c *context) filesBelow() (out []string) {
	seen := 0
	var visit func(folder string, depth int)
	visit = func(folder string, depth int) {
		for _, name := range c.folder.list(folder) {
			path := join(folder, name)
			kind, _ := c.folder.stat(path)
			switch seen++; {
			case seen > entriesLimit:
				return
			case kind == directory && depth < 8:
				visit(path, depth+1)
			case kind == regularFile:
				out = append(out, path)
			}
		}
	}
	visit(".", 0)
	return out
}

func (c *context) checkGEDump() {
	c.geParameters(func(key, value string, at *configgen.Entry[string, configgen.Parameter]) {
		isOn := (key == "dump_graph" || key == "dump_data") && value == "1" || key == "profiling" && (value == "true" || value == "dynamic")
		if isOn {
			c.report(at.At("key"), key)
		}
	})
}
