package rules

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/om"
	"github.com/npuctl/npuctl/soc"
)

// chipRules hold models against the chip and CANN's parser.
func chipRules() []Rule {
	return []Rule{
		{"chip-refused", errorLevel, loads, Text{"a node that CANN's parser does not take", "CANN 解析器不支持的节点"}, Text{"the graph does not compile; npu_ge does not load the model", "图无法编译；npu_ge 不加载该模型"},
			Text{"replace the operator before export, or convert the opset", "导出前替换该算子，或转换 opset"}, Text{"%s: %s", "%s：%s"}, (*context).checkChipRefused},
		{"chip-slow", warningLevel, loads, Text{"a node that the AI Core does not compute", "AI Core 不计算的节点"}, Text{"it runs on the AI CPU or breaks the static graph, which costs time on every request", "它在 AI CPU 上运行或打断静态图，每个请求都要付出时间"},
			Text{"replace the operator; npuctl optimize removes many", "替换该算子；npuctl optimize 可消除许多"}, Text{"%s: %s", "%s：%s"}, (*context).checkChipSlow},
		{"chip-cores", warningLevel, loads, Text{"a core limit beyond the chip", "核数限制超过芯片"}, Text{"GE refuses the option, or it has no effect", "GE 拒绝该选项，或不起作用"},
			Text{"use at most the chip's cores, cube|vector", "不超过芯片的核数，格式 cube|vector"}, Text{"%s %q: %s has %s", "%s %q：%s 有 %s"}, (*context).checkChipCores},
		{"om-chip", errorLevel, loads, Text{"an .om for another chip", ".om 是为其他芯片编译的"}, Text{"loading it on the device fails", "在设备上加载会失败"},
			Text{"compile it for this chip: npuctl compile --soc", "为该芯片编译：npuctl compile --soc"}, Text{"%s was compiled for %s, not %s", "%s 是为 %s 编译的，而不是 %s"}, nil},
		{"om-unreadable", errorLevel, loads, Text{"an .om that is none", ".om 文件无法识别"}, Text{"loading it on the device fails", "在设备上加载会失败"},
			Text{"compile it again", "重新编译"}, Text{"%s: %s", "%s：%s"}, nil},
	}
}

// examine gives what the tables say of the model's nodes.
func (c *context) examine(nodes []soclessNode) []soc.Finding {
	list := make([]soc.Node, len(nodes))
	for i, n := range nodes {
		list[i] = soc.Node{Name: n.name, Domain: n.domain, Type: n.kind, Opset: n.opset}
	}
	if c.options.Chip == nil {
		return soc.Refusals(list)
	}
	return soc.Examine(c.options.Chip.Family, list)
}

func (c *context) checkChipRefused() {
	if c.isGE() {
		c.reportNodes(c.modelFile(), true)
	}
}

func (c *context) checkChipSlow() {
	if c.isGE() && c.options.Chip != nil {
		c.reportNodes(c.modelFile(), false)
	}
}

// nodesLimit bounds how many findings one model's nodes make: each kind of operator
// is told once.
func (c *context) reportNodes(file modelFile, refused bool) {
	told := map[string]bool{}
	for _, f := range c.examine(file.nodes) {
		n := file.nodes[f.Node]
		if (f.Kind == soc.Refused) != refused || told[n.kind+f.Reason] {
			continue
		}
		told[n.kind+f.Reason] = true
		name := n.name
		if name == "" {
			name = n.kind
		}
		found := c.reportFile(file.path, name, f.Reason)
		if f.Remedy != "" {
			found.Fix = f.Remedy
		}
	}
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
		c.reportFile(path, path, err)
		return
	}
	defer f.Close()
	p, err := f.Provenance()
	if err != nil {
		c.use("om-unreadable")
		c.reportFile(path, path, err)
		return
	}
	if chip := c.options.Chip; chip != nil && p.SoC != "" && p.SoC != chip.Name {
		c.use("om-chip")
		c.reportFile(path, path, p.SoC, chip.Name)
	}
}
