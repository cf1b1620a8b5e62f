package rules

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/om"
)

// chipRules hold models against the chip and CANN's parser.
func chipRules() []Rule {
	return []Rule{
		{"chip-opset", errorLevel, loads, Text{"an opset that CANN's parser has not", "CANN 解析器没有的 opset"}, Text{"the parser takes no node of the model: it looks operators up at exactly this opset", "解析器不接受任何节点：它只按这个 opset 查找算子"},
			Text{"convert the model to opset 17", "把模型转换到 opset 17"}, Text{"the model imports opset %s, the parser has %s", "模型导入 opset %s，解析器只有 %s"}, checkNodes("chip-opset")},
		{refusedRule, errorLevel, loads, Text{"a node that CANN's parser does not take", "CANN 解析器不支持的节点"}, Text{"the graph does not compile; npu_ge does not load the model", "图无法编译；npu_ge 不加载该模型"},
			Text{"replace the operator before export, or convert the opset", "导出前替换该算子，或转换 opset"}, nodeText, checkNodes(refusedRule)},
		{formRule, errorLevel, loads, Text{"a way of writing a node that CANN's parser does not take", "CANN 解析器不接受的节点写法"}, Text{"the graph does not compile, or not as it is meant; npu_ge does not load the model", "图无法编译或编译结果不符；npu_ge 不加载该模型"},
			Text{"write the node otherwise", "换一种写法"}, nodeText, checkNodes(formRule)},
		{"chip-graph", errorLevel, loads, Text{"a graph that CANN's parser does not take", "CANN 解析器不接受的图"}, Text{"the graph does not compile; npu_ge does not load the model", "图无法编译；npu_ge 不加载该模型"},
			Text{"repair the model: npuctl optimize names every node, and compile does it on the way", "修复模型：npuctl optimize 会为每个节点命名，compile 会顺带完成"}, nodeText, checkNodes("chip-graph")},
		{misreadRule, warningLevel, loads, Text{"a node that CANN's parser reads as something else", "CANN 解析器会误读的节点"}, Text{"the graph compiles and gives other numbers", "图可以编译，但结果不同"},
			Text{"write the node without it, and compare the results: npuctl infer --expect", "不使用该属性，并比较结果：npuctl infer --expect"}, nodeText, checkNodes(misreadRule)},
		{"scalar-tensor", warningLevel, loads, Text{"an input or output that is a scalar, or of unknown shape", "标量或形状未知的输入输出"}, Text{"npu_ge looks at the first dim of every tensor: without one it reads beyond the shape", "npu_ge 会读取每个张量的第一维：没有维度时会越界"},
			Text{"reshape it to [1] in the model, or leave it out of the outputs", "在模型中把它 reshape 为 [1]，或不作为输出"}, Text{"%s %q %s", "%s %q %s"}, (*context).checkScalars},
		{slowRule, warningLevel, loads, Text{"a node that the AI Core does not compute", "AI Core 不计算的节点"}, Text{"it runs on the AI CPU, which costs time on every request", "它在 AI CPU 上运行，每个请求都要付出时间"},
			Text{"replace the operator; npuctl optimize removes many", "替换该算子；npuctl optimize 可消除许多"}, nodeText, checkNodes(slowRule)},
		{dynamicRule, warningLevel, loads, Text{"a node that cuts the sunk graph", "打断整图下沉的节点"}, Text{"shapes behind it are known only when it has run: the graph is not static, and the host takes part in every request", "它之后的形状要运行后才知道：图不再是静态的，每个请求都要主机参与"},
			Text{"replace the operator, or cut the model before it", "替换该算子，或在它之前截断模型"}, nodeText, checkNodes(dynamicRule)},
		{unprovenRule, noteLevel, loads, Text{"a node for which nobody has shown a kernel", "未证实有 kernel 的节点"}, Text{"it may compile to the AI Core, run on the AI CPU, or not compile at all: EZ3003", "可能在 AI Core 上，可能在 AI CPU 上，也可能无法编译：EZ3003"},
			Text{"compile it on a machine with CANN to know", "在装有 CANN 的机器上编译以确认"}, nodeText, checkNodes(unprovenRule)},
		{"chip-cores", warningLevel, loads, Text{"a core limit beyond the chip", "核数限制超过芯片"}, Text{"GE refuses the option, or it has no effect", "GE 拒绝该选项，或不起作用"},
			Text{"use at most the chip's cores, cube|vector", "不超过芯片的核数，格式 cube|vector"}, Text{"%s %q: %s has %s", "%s %q：%s 有 %s"}, (*context).checkChipCores},
		{"om-chip", errorLevel, loads, Text{"an .om for another chip", ".om 是为其他芯片编译的"}, Text{"loading it on the device fails", "在设备上加载会失败"},
			Text{"compile it for this chip: npuctl compile --soc", "为该芯片编译：npuctl compile --soc"}, Text{"%s was compiled for %s, not %s", "%s 是为 %s 编译的，而不是 %s"}, nil},
		{"om-unreadable", errorLevel, loads, Text{"an .om that is none", ".om 文件无法识别"}, Text{"loading it on the device fails", "在设备上加载会失败"},
			Text{"compile it again", "重新编译"}, Text{"%s: %s", "%s：%s"}, nil},
	}
}

// nodeText is a node and what is about it.
var nodeText = Text{"%s: %s", "%s：%s"}

// nodeRules are the rules that examineModel finds.
var nodeRules = []string{"chip-opset", refusedRule, formRule, "chip-graph", misreadRule, slowRule, dynamicRule, unprovenRule}

// checkNodes makes the check of a rule about nodes of the model that npu_ge compiles.
func checkNodes(rule string) func(*context) {
	return func(c *context) {
		if c.isGE() {
			c.reportNodes(c.modelFile(), rule)
		}
	}
}

// reportNodes tells what a rule finds in a model file: of each kind of operator once,
// with how many more there are.
func (c *context) reportNodes(file modelFile, rule string) {
	l := c.options.Language
	type kind struct{ operator, reason, remedy string }
	count := map[kind]int{}
	for _, n := range file.nodes {
		if n.rule == rule {
			count[kind{n.kind, n.reason.In(l), n.remedy.In(l)}]++
		}
	}
	for _, n := range file.nodes {
		k := kind{n.kind, n.reason.In(l), n.remedy.In(l)}
		more := count[k] - 1
		if n.rule != rule || more < 0 {
			continue
		}
		count[k] = 0
		name := n.node
		if more > 0 {
			name = fmt.Sprintf(Text{"%s and %d more", "%s 等，另有 %d 个"}.In(l), name, more)
		}
		found := c.reportFile(file.path, name, n.reason.In(l))
		if fix := n.remedy.In(l); fix != "" {
			found.Fix = fix
		}
	}
}

// What can be wrong with a tensor's rank.
var (
	isScalar    = Text{"is a scalar: it has no dims", "是标量：没有维度"}
	isShapeless = Text{"has no shape", "没有形状"}
)

func (c *context) checkScalars() {
	if c.isGE() {
		c.reportScalars(c.modelFile())
	}
}

// reportScalars tells of tensors of a model file that have no first dim.
func (c *context) reportScalars(file modelFile) {
	if file.model == nil {
		return
	}
	look := func(side string, tensors []modelTensor) {
		for _, t := range tensors {
			switch {
			case !t.hasShape && t.kind != configgen.TypeInvalid:
				c.reportFile(file.path, side, t.name, isShapeless.In(c.options.Language))
			case t.hasShape && len(t.dims) == 0:
				c.reportFile(file.path, side, t.name, isScalar.In(c.options.Language))
			}
		}
	}
	look("input", file.model.inputs)
	look("output", file.model.outputs)
}

func (c *context) checkChipCores() {
	if c.options.Chip == nil {
		return
	}
	first, second := c.options.Chip.MaxCores()
	c.geParameters(func(key, value string, at *configgen.Entry[string, configgen.Parameter]) {
		if !strings.HasSuffix(key, "ge.aicoreNum") {
			return
		}
		limits := []int{first, second}
		for i, word := range strings.Split(value, "|") {
			n, err := strconv.Atoi(strings.TrimSpace(word))
			if i > 1 || err != nil || n < 1 || limits[i] > 0 && n > limits[i] || limits[i] == 0 {
				c.report(at.Value.At("string_value"), key, value, c.options.Chip.Name, fmt.Sprintf("%d|%d", first, second))
				return
			}
		}
	})
}

// checkOM looks at an .om file by itself.
func (c *context) checkOM(path string) {
	f, err := om.Open(path)
	if err != nil {
		c.use("om-unreadable")
		c.reportFile(path, path, strings.TrimPrefix(err.Error(), path+": "))
		return
	}
	defer f.Close()
	p, err := f.Provenance()
	if err != nil {
		c.use("om-unreadable")
		c.reportFile(path, path, strings.TrimPrefix(err.Error(), path+": "))
		return
	}
	if chip := c.options.Chip; chip != nil && p.SoC != "" && p.SoC != chip.Name {
		c.use("om-chip")
		c.reportFile(path, path, p.SoC, chip.Name)
	}
}
