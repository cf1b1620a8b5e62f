package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/configgen"
)

// tensorRules are about what the server takes and cannot use: tensors, instances,
// ensembles, texts that mean something else than they seem to.
func tensorRules() []Rule {
	return []Rule{
		{"input-twice", errorLevel, loads, Text{"two inputs of one name", "两个输入同名"}, Text{"the model can never be called: it wants two tensors, and a request may hold a name once", "模型永远无法调用：它要两个张量，而请求中一个名字只能出现一次"},
			Text{"remove one, or give it its own name", "删去一个，或改名"}, Text{"input %q is listed twice", "输入 %q 出现了两次"}, (*context).checkInputTwice},
		{"output-twice", errorLevel, loads, Text{"two outputs of one name", "两个输出同名"}, Text{"the metadata lists two, an answer carries one", "元数据列出两个，响应只带一个"},
			Text{"remove one, or give it its own name", "删去一个，或改名"}, Text{"output %q is listed twice", "输出 %q 出现了两次"}, (*context).checkOutputTwice},
		{"type-number", errorLevel, loads, Text{"a data type that there is not", "data_type 不存在"}, Text{"the model is READY and every request is refused (400)", "模型显示 READY，但每个请求都被拒绝（400）"},
			Text{"use a TYPE_… name", "使用 TYPE_… 名称"}, Text{"%s %q: there is no data type %d", "%s %q：没有数据类型 %d"}, (*context).checkTypeNumber},
		{"size-overflow", errorLevel, loads, Text{"a tensor whose size overflows", "张量大小溢出"}, Text{"the byte size wraps around; answers are 200 without data", "字节数溢出回绕；返回 200 但没有数据"},
			Text{"correct the dims; write -1 where the size is open", "改正 dims；大小不定写 -1"}, Text{"%s %q: the size of %s × %s overflows 64 bits", "%s %q：%s × %s 的大小超出 64 位"}, (*context).checkSizeOverflow},
		{"no-tensors", errorLevel, loads, Text{"neither inputs nor outputs", "没有输入也没有输出"}, Text{"a request without inputs answers 200 with nothing", "没有输入的请求返回 200 且内容为空"},
			Text{"list input and output as the model has them", "按模型列出 input 和 output"}, Text{"model %q lists neither input nor output, and nothing completes them", "模型 %q 没有列出 input 和 output，也无从补全"}, (*context).checkNoTensors},
		{"optional-all", warningLevel, loads, Text{"every input is optional", "所有输入都是可选的"}, Text{"a request without any input runs as batch 1", "不带任何输入的请求按批 1 执行"},
			Text{"leave optional out for at least one input", "至少一个输入不要设为 optional"}, Text{"every input of model %q is optional", "模型 %q 的所有输入都是可选的"}, (*context).checkOptionalAll},
		{"batch-in-dims", warningLevel, loads, Text{"the batch is in max_batch_size and in dims", "批同时写在 max_batch_size 和 dims 中"}, Text{"the full shape has two batch axes; requests of the model's own shape are refused", "完整形状多出一个批轴；按模型形状发送的请求会被拒绝"},
			Text{"take the batch out of dims, or set max_batch_size: 0", "从 dims 去掉批，或写 max_batch_size: 0"}, Text{"max_batch_size is %d and the first dim of every tensor is %[1]d too", "max_batch_size 是 %d，且每个张量的第一维也是 %[1]d"}, (*context).checkBatchInDims},
		{"batch-input-clash", warningLevel, loads, Text{"a batch_input with the name of an input", "batch_input 与输入同名"}, Text{"the client's tensor and the server's have one name", "客户端的张量与服务器生成的张量同名"},
			Text{"give the target another name", "给目标改名"}, Text{"batch_input target %q is an input too", "batch_input 的目标 %q 也是输入"}, (*context).checkBatchInputClash},
		{"label-short", warningLevel, loads, Text{"fewer labels than elements", "标签数少于元素数"}, Text{"classification answers lack the label for the rest", "classification 响应中其余元素没有标签"},
			Text{"write one label a line for every element", "每个元素写一行标签"}, Text{"%s has %d labels, output %q has %d elements", "%s 有 %d 个标签，输出 %q 有 %d 个元素"}, (*context).checkLabelShort},
		{"instance-count", errorLevel, loads, Text{"an instance count below 1", "实例数小于 1"}, Text{"the server makes it 1, or 2 on CPU for onnxruntime and tensorflow", "服务器按 1 处理（onnxruntime 和 tensorflow 在 CPU 上为 2）"},
			Text{"write a count from 1 up", "写 1 以上的数"}, Text{"instance count %d", "实例数 %d"}, (*context).checkInstanceCount},
		{"instance-count-huge", warningLevel, loads, Text{"an instance count beyond reason", "实例数过大"}, Text{"instances are made one after another, a thread each; the server is not live until all are there, and may run out of threads", "实例逐个创建，每个一条线程；全部完成前服务器不就绪，还可能耗尽线程"},
			Text{"lower the count", "减少实例数"}, Text{"%d instances", "%d 个实例"}, (*context).checkInstanceCountHuge},
		{"instance-name-twice", warningLevel, loads, Text{"two instance groups of one name", "实例组重名"}, Text{"instances of both carry the same names; logs and traces cannot tell them apart", "两组实例名字相同，日志和跟踪无法区分"},
			Text{"give each group its own name, or none", "每组用不同的名字，或都不写"}, Text{"instance group name %q is used twice", "实例组名 %q 重复"}, (*context).checkGroupTwice},
		{"passive-only", errorLevel, loads, Text{"no active instance", "没有活动实例"}, Text{"the model is READY, and its first request kills the server", "模型显示 READY，第一个请求就使服务器崩溃"},
			Text{"leave one group without passive", "至少一个组不设 passive"}, Text{"every instance of model %q is passive", "模型 %q 的所有实例都是 passive"}, (*context).checkPassiveOnly},
		{"decoupled-http", noteLevel, loads, Text{"decoupled answers", "解耦响应"}, Text{"only gRPC streams can call the model; HTTP infer answers 501", "只有 gRPC 流能调用；HTTP infer 返回 501"},
			Text{"call it by ModelStreamInfer", "用 ModelStreamInfer 调用"}, Text{"model %q is decoupled", "模型 %q 是解耦的"}, (*context).checkDecoupled},
		{"control-is-input", errorLevel, loads, Text{"a control or state tensor that is an input too", "控制或状态张量也被声明为输入"}, Text{"the client's tensor and the server's have one name", "客户端的张量与服务器的张量同名"},
			Text{"take it out of input: the server makes it", "从 input 中删去：由服务器提供"}, Text{"%q is a %s tensor of sequence_batching and an input", "%q 既是 sequence_batching 的 %s 张量，又是输入"}, (*context).checkControlIsInput},
		{"ensemble-writes-input", errorLevel, loads, Text{"a step that writes an input of the ensemble", "步骤写入了 ensemble 的输入"}, Text{"one request runs the steps in a circle for ever, is never answered, and holds up shutdown", "一个请求会让步骤无限循环，永不返回，并阻碍关停"},
			Text{"give the step's output another name", "给该步输出改名"}, Text{"step %d writes %q, an input of the ensemble", "第 %d 步写入 %q，而它是 ensemble 的输入"}, (*context).checkWritesInput},
		{"ensemble-output-is-input", warningLevel, loads, Text{"an ensemble output that no step makes", "没有步骤产生的 ensemble 输出"}, Text{"the input comes back as an output: the payload crosses the network twice", "输入原样返回，数据在网络上往返"},
			Text{"remove it from output", "从 output 删去"}, Text{"output %q is an input that no step writes", "输出 %q 是输入，没有步骤写入"}, (*context).checkOutputIsInput},
		{"ensemble-empty-tensor", warningLevel, loads, Text{"a tensor without a name joins two steps", "连接步骤的张量没有名字"}, Text{"it works, and no message can name the tensor", "可以工作，但消息中无法指明该张量"},
			Text{"give the tensor a name in both maps", "在两个映射中给它命名"}, Text{"step %d maps %q to a tensor without a name", "第 %d 步把 %q 映射到无名张量"}, (*context).checkEmptyTensor},
		{"ensemble-step-not-batching", warningLevel, loads, Text{"a step that takes one item at a time", "步骤一次只处理一个"}, Text{"batch 1 works; any larger batch is refused at run time: unexpected shape for the step's input", "批 1 可用；更大的批在运行时被拒绝"},
			Text{"let the step batch, or set the ensemble's max_batch_size to 1", "让该步支持批处理，或把 ensemble 的 max_batch_size 设为 1"}, Text{"ensemble max_batch_size %d, but model %q takes batch 1 only (max_batch_size 0)", "ensemble 的 max_batch_size 是 %d，但模型 %q 只支持批 1（max_batch_size 为 0）"}, (*context).checkStepNotBatching},
		{"octal-number", warningLevel, loads, Text{"a number that begins with 0", "以 0 开头的数字"}, Text{"it is read as octal: 010 is 8", "按八进制读取：010 是 8"},
			Text{"write it without the 0", "去掉开头的 0"}, Text{"%s: %s is octal and means %v", "%s：%s 是八进制，等于 %v"}, (*context).checkOctal},
		{"map-key-twice", warningLevel, loads, Text{"a key twice in one map", "映射中键重复"}, Text{"the last entry counts, the others are lost", "以最后一项为准，其他丢失"},
			Text{"keep one entry", "只保留一项"}, Text{"%s: the key %v is there twice", "%s：键 %v 重复"}, (*context).checkMapKeyTwice},
		{"template-in-string", warningLevel, loads, Text{"a placeholder inside a string", "字符串中有模板占位符"}, Text{"the server takes it for text", "服务器把它当作普通文本"},
			Text{"fill the template in, if it is one", "如果是模板，请先渲染"}, Text{"%s stands in a string as it is", "字符串中保留了 %s"}, (*context).checkTemplateInString},
		{"newer-field", warningLevel, loads, Text{"a field that older servers do not know", "旧版服务器不认识的字段"}, Text{"a server before that release cannot read the file", "更早版本的服务器无法读取该文件"},
			Text{"remove it, or serve with a newer release", "删去，或使用更新的版本"}, Text{"%s is known since release %s", "%s 自 %s 版起才有"}, (*context).checkNewerField},
		{"cache-server", noteLevel, loads, Text{"a response cache needs a flag of the server", "响应缓存需要服务器参数"}, Text{"nothing is cached unless the server was started with --cache-config", "服务器未用 --cache-config 启动时不会缓存"},
			Text{"start the server with --cache-config=local,size=…", "用 --cache-config=local,size=… 启动服务器"}, Text{"response_cache is asked for", "启用了 response_cache"}, (*context).checkCacheServer},
		{"rate-limiter-server", noteLevel, loads, Text{"a rate limiter needs a flag of the server", "速率限制需要服务器参数"}, Text{"it is ignored unless the server was started with --rate-limit", "服务器未用 --rate-limit 启动时被忽略"},
			Text{"start the server with --rate-limit=execution_count", "用 --rate-limit=execution_count 启动服务器"}, Text{"instance group %s has a rate_limiter", "实例组 %s 设置了 rate_limiter"}, (*context).checkRateLimiter},
	}
}

func (c *context) checkInputTwice() {
	seen := map[string]bool{}
	for _, in := range c.Config.Input {
		if seen[in.Name] && in.Name != "" {
			c.report(in.At("name"), in.Name)
		}
		seen[in.Name] = true
	}
}

func (c *context) checkOutputTwice() {
	seen := map[string]bool{}
	for _, out := range c.Config.Output {
		if seen[out.Name] && out.Name != "" {
			c.report(out.At("name"), out.Name)
		}
		seen[out.Name] = true
	}
}

func (c *context) checkTypeNumber() {
	for _, p := range c.ports() {
		if p.kind < configgen.TypeInvalid || p.kind > configgen.TypeBF16 {
			c.report(p.At("data_type"), p.side, p.name, int32(p.kind))
		}
	}
}

func (c *context) checkSizeOverflow() {
	for _, p := range c.ports() {
		// Open dims only make it larger.
		fixed := slices.DeleteFunc(slices.Clone(p.dims), func(d int64) bool { return d == -1 })
		if slices.ContainsFunc(fixed, func(d int64) bool { return d < 1 }) {
			continue
		}
		if _, isExact := sampleBytes(configgen.WarmupInput{DataType: p.kind, Dims: fixed}); !isExact {
			c.report(p.At("dims"), p.side, p.name, dimsText(p.dims), p.kind)
		}
	}
}

// completing are backends that read the tensors from the model when the config lists
// none.
var completing = []string{"onnxruntime", "tensorrt", "tensorflow", "openvino", "pytorch"}

func (c *context) checkNoTensors() {
	id := c.identify()
	if len(c.Config.Input)+len(c.Config.Output) > 0 || c.isEnsemble() || id.undetermined || slices.Contains(completing, id.backend) {
		return
	}
	switch id.backend {
	case geBackend:
		if c.modelFile().model != nil {
			return
		}
	case "python":
		for _, text := range c.pythonFiles() {
			if strings.Contains(text, "auto_complete_config") {
				return
			}
		}
		if c.imagined {
			return
		}
	}
	c.report(c.Config.At(""), c.displayName())
}

func (c *context) checkOptionalAll() {
	if len(c.Config.Input) == 0 {
		return
	}
	for _, in := range c.Config.Input {
		if !in.Optional {
			return
		}
	}
	c.report(c.Config.Input[0].At("optional"), c.displayName())
}

func (c *context) checkBatchInDims() {
	n := int64(c.Config.MaxBatchSize)
	ports := c.ports()
	if n < 2 || len(ports) == 0 || len(c.Config.Input) == 0 {
		return
	}
	for _, p := range ports {
		if len(p.dims) < 2 || p.dims[0] != n || p.reshape != nil {
			return
		}
	}
	if !c.hasModelShapes() { // a model may well have an axis of that size
		c.report(ports[0].At("dims"), n)
	}
}

// hasModelShapes says whether the model file is there and has every tensor of the config
// in the shape that the config gives it.
func (c *context) hasModelShapes() bool {
	matching := 0
	c.matched(func(p port, t modelTensor) {
		if t.hasShape && fit(c.modelShape(p), t.dims) {
			matching++
		}
	})
	return matching > 0 && matching == len(c.ports())
}

func (c *context) checkBatchInputClash() {
	for _, b := range c.Config.BatchInput {
		for i, target := range b.TargetName {
			if slices.Contains(inputNames(c.Config), target) {
				c.report(b.ValueAt("target_name", i), target)
			}
		}
	}
}

func (c *context) checkLabelShort() {
	c.labels(func(o configgen.Output, kind entryKind) {
		elements, ok := elementCount(o.Dims)
		if c.imagined || kind != regularFile || !ok || elements < 1 {
			return
		}
		text, err := c.folder.read(o.LabelFilename, 64<<20)
		if err != nil {
			return
		}
		labels := strings.Count(strings.TrimRight(string(text), "\r\n"), "\n") + 1
		if len(text) == 0 {
			labels = 0
		}
		if int64(labels) < elements {
			c.report(o.At("label_filename"), o.LabelFilename, labels, o.Name, elements)
		}
	})
}

func (c *context) checkInstanceCount() {
	for _, g := range c.groups() {
		if g.Count > 0 || !g.Has("count") {
			continue
		}
		f := c.report(g.At("count"), g.Count)
		replace(f, g.Message().Field("count").Values[0], "1")
	}
}

// instanceLimit is more than the threads of any backend's documented pattern.
const instanceLimit = 256

func (c *context) checkInstanceCountHuge() {
	for _, g := range c.groups() {
		if g.Count > instanceLimit {
			c.report(g.At("count"), g.Count)
		}
	}
}

func (c *context) checkGroupTwice() {
	seen := map[string]bool{}
	for _, g := range c.groups() {
		if seen[g.Name] {
			c.report(g.At("name"), g.Name)
		}
		seen[g.Name] = true
	}
}

func (c *context) checkPassiveOnly() {
	groups := c.groups()
	for _, g := range groups {
		if !g.Passive {
			return
		}
	}
	if len(groups) > 0 {
		c.report(groups[0].At("passive"), c.displayName())
	}
}

func (c *context) checkDecoupled() {
	if c.Config.Decoupled() {
		c.report(c.Config.At("model_transaction_policy"), c.displayName())
	}
}

func (c *context) checkControlIsInput() {
	if c.Config.SequenceBatching == nil {
		return
	}
	names := inputNames(c.Config)
	for _, in := range c.controls() {
		if in.Name != "" && slices.Contains(names, in.Name) {
			c.report(in.At("name"), in.Name, "control")
		}
	}
	for _, s := range c.Config.SequenceBatching.State {
		if s.InputName != "" && slices.Contains(names, s.InputName) {
			c.report(s.At("input_name"), s.InputName, "state")
		}
	}
}

func (c *context) checkWritesInput() {
	names := inputNames(c.Config)
	for i, s := range c.steps() {
		for _, e := range s.OutputMap {
			if slices.Contains(names, e.Value) {
				c.report(e.At("value"), i, e.Value)
			}
		}
	}
}

func (c *context) checkOutputIsInput() {
	if len(c.steps()) == 0 {
		return
	}
	names := inputNames(c.Config)
	g := c.buildGraph()
	for _, out := range c.Config.Output {
		if n := g.nodes[out.Name]; slices.Contains(names, out.Name) && n != nil && !n.isWritten {
			c.report(out.At("name"), out.Name)
		}
	}
}

func (c *context) checkEmptyTensor() {
	for i, s := range c.steps() {
		for _, e := range slices.Concat(s.InputMap, s.OutputMap) {
			if e.Value == "" {
				c.report(e.At("value"), i, e.Key)
			}
		}
	}
}

func (c *context) checkStepNotBatching() {
	c.eachStep(func(_ int, s configgen.Step, m *Model) {
		if c.Config.MaxBatchSize > 1 && m.Config.MaxBatchSize == 0 && m != c.Model && m.HasConfig {
			c.report(s.At("model_name"), c.Config.MaxBatchSize, s.ModelName)
		}
	})
}

var octalLiteral = regexp.MustCompile(`^-?\s*0[0-7]+$`)

func (c *context) checkOctal() {
	c.eachField(func(f *configgen.Field) {
		if f.Type.Kind == configgen.String || f.Type.Kind == configgen.Nested {
			return
		}
		for _, v := range f.Values {
			if text := c.Doc.Text[v.Start:v.End]; octalLiteral.MatchString(text) && strings.Trim(text, "-0 ") != "" {
				replace(c.report(v.Start, f.Name, text, v.Scalar), v, fmt.Sprint(v.Scalar))
			}
		}
	})
}

// eachField calls look for every field of the file.
func (c *context) eachField(look func(*configgen.Field)) {
	if c.Doc == nil {
		return
	}
	var visit func(m *configgen.Message)
	visit = func(m *configgen.Message) {
		for _, f := range m.Fields {
			look(f)
			for _, v := range f.Values {
				if v.Message != nil {
					visit(v.Message)
				}
			}
		}
	}
	visit(c.Doc.Root)
}

func (c *context) checkMapKeyTwice() {
	if c.Doc == nil {
		return
	}
	var visit func(m *configgen.Message)
	visit = func(m *configgen.Message) {
		seen := map[string]bool{}
		for _, f := range m.Fields {
			for _, v := range f.Values {
				if v.Message == nil {
					continue
				}
				visit(v.Message)
				if !f.Type.Map {
					continue
				}
				var key any = ""
				if field := v.Message.Field("key"); field != nil {
					key = field.Values[0].Scalar
				}
				if id := fmt.Sprintf("%s\x00%v", f.Name, key); seen[id] {
					c.report(v.Start, f.Name, key)
				} else {
					seen[id] = true
				}
			}
		}
	}
	visit(c.Doc.Root)
}

func (c *context) checkTemplateInString() {
	if c.Doc == nil {
		return
	}
	for _, p := range c.Doc.Placeholders() {
		if p.InString {
			c.report(p.Offset, p.Text)
		}
	}
}

func (c *context) checkNewerField() {
	c.eachField(func(f *configgen.Field) {
		if f.Type.Since != "" {
			c.report(f.Start, f.Name, f.Type.Since)
		}
	})
}

func (c *context) checkCacheServer() {
	if c.Config.Cached() {
		c.report(c.Config.At("response_cache"))
	}
}

func (c *context) checkRateLimiter() {
	for _, g := range c.groups() {
		if g.RateLimiter != nil {
			c.report(g.At("rate_limiter"), g.Name)
		}
	}
}
