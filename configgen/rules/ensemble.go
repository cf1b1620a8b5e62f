package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/findings"
)

// ensembleRules are about graphs of models: first what the file itself says, then
// what it says against the models of its steps.
func ensembleRules() []Rule {
	graph := []Rule{
		{"ensemble-platform", errorLevel, refuses, Text{"ensemble_scheduling in a model that is no ensemble", "非 ensemble 模型写了 ensemble_scheduling"}, notLoaded,
			Text{"write platform: \"ensemble\" and no backend", "写 platform: \"ensemble\"，不写 backend"}, Text{"ensemble_scheduling needs platform: \"ensemble\", not %q", "ensemble_scheduling 需要 platform: \"ensemble\"，而不是 %q"}, (*context).checkEnsemblePlatform},
		{"ensemble-instance-group", errorLevel, refuses, Text{"an ensemble with instances", "ensemble 不能有 instance_group"}, notLoaded,
			Text{"remove instance_group: the step models have instances", "删去 instance_group，实例由各步模型提供"}, Text{"ensemble %q has an instance_group", "ensemble %q 写了 instance_group"}, (*context).checkEnsembleGroup},
		{"ensemble-optimization", errorLevel, refuses, Text{"an ensemble with optimization", "ensemble 不能有 optimization"}, notLoaded,
			Text{"remove optimization", "删去 optimization"}, Text{"ensemble %q has an optimization block", "ensemble %q 写了 optimization"}, (*context).checkEnsembleOptimization},
		{"ensemble-warmup", errorLevel, refuses, Text{"an ensemble with warm-up", "ensemble 不能有 model_warmup"}, notLoaded,
			Text{"warm the step models up instead", "改为预热各步模型"}, Text{"ensemble %q has a model_warmup", "ensemble %q 写了 model_warmup"}, (*context).checkEnsembleWarmup},
		{"ensemble-no-steps", errorLevel, refuses, Text{"an ensemble without steps", "ensemble 没有步骤"}, notLoaded,
			Text{"add a step", "添加 step"}, Text{"ensemble %q has no step", "ensemble %q 没有 step"}, (*context).checkEnsembleSteps},
		{"ensemble-step-incomplete", errorLevel, refuses, Text{"a step without model_name, input_map or output_map", "步骤缺少 model_name、input_map 或 output_map"}, notLoaded,
			Text{"complete the step", "补全该步骤"}, Text{"step %d has no %s", "第 %d 步缺少 %s"}, (*context).checkStepComplete},
		{"ensemble-tensor-twice", errorLevel, refuses, Text{"a tensor that two steps write", "同一张量由两个步骤写入"}, notLoaded,
			Text{"give one of them another name", "给其中之一改名"}, Text{"tensor %q is written by more than one output_map entry (step %d)", "张量 %q 被多个 output_map 写入（第 %d 步）"}, (*context).checkTensorTwice},
		{"ensemble-input-unused", errorLevel, refuses, Text{"an ensemble input that no step takes", "ensemble 输入没有步骤使用"}, notLoaded,
			Text{"map it to a step's input, or remove it", "映射到某一步的输入，或删去"}, Text{"ensemble input %q is not used by any step", "ensemble 输入 %q 没有被任何步骤使用"}, (*context).checkEnsembleInputs},
		{"ensemble-output-unused", errorLevel, refuses, Text{"an ensemble output that no map mentions", "ensemble 输出没有出现在映射中"}, notLoaded,
			Text{"map a step's output to it, or remove it", "把某一步的输出映射到它，或删去"}, Text{"ensemble output %q is not used by any step", "ensemble 输出 %q 没有出现在任何步骤中"}, (*context).checkEnsembleOutputs},
		{"ensemble-unconnected", errorLevel, refuses, Text{"an output that cannot be reached from the inputs", "输出无法由输入得到"}, notLoaded,
			Text{"check the maps: key is the model's tensor, value the ensemble's; cycles cannot run", "检查映射：key 是模型的张量，value 是 ensemble 的张量；环路无法运行"},
			Text{"output %q is not written: %q has no source", "输出 %q 没有被写入：%q 没有来源"}, (*context).checkUnconnected},
		{"ensemble-tensor-unused", errorLevel, refuses, Text{"a tensor that is written and never read", "张量写入后没有使用"}, notLoaded,
			Text{"remove it from the output_map, or make it an output", "从 output_map 删去，或作为输出"}, Text{"tensor %q is unused in ensemble %q", "张量 %q 在 ensemble %q 中没有使用"}, (*context).checkTensorUnused},
		{"ensemble-scheduling-missing", errorLevel, refuses, Text{"an ensemble without ensemble_scheduling", "ensemble 缺少 ensemble_scheduling"}, notLoaded,
			Text{"add ensemble_scheduling", "添加 ensemble_scheduling"}, Text{"model %q has platform \"ensemble\" and no ensemble_scheduling", "模型 %q 的 platform 是 \"ensemble\"，但没有 ensemble_scheduling"}, (*context).checkSchedulingMissing},
	}
	steps := []Rule{
		{"ensemble-step-missing", errorLevel, refuses, Text{"a step's model is not in the repository", "步骤的模型不在仓库中"}, notLoaded,
			Text{"add the model to the repository, or correct model_name", "把模型加入仓库，或改正 model_name"}, Text{"step %d: there is no model %q", "第 %d 步：没有模型 %q"}, (*context).checkStepThere},
		{"ensemble-circular", errorLevel, refuses, Text{"an ensemble that contains itself", "ensemble 包含自身"}, notLoaded,
			Text{"break the circle", "打破循环"}, Text{"ensemble %q contains itself, through %q", "ensemble %q 经由 %q 包含自身"}, (*context).checkCircular},
		{"ensemble-step-refused", errorLevel, refuses, Text{"a step's model does not load", "步骤的模型无法加载"}, notLoaded,
			Text{"repair that model first: it has findings of its own", "先修复该模型，它自己有检查结果"}, Text{"step %d: model %q does not load", "第 %d 步：模型 %q 无法加载"}, (*context).checkStepRefused},
		{"ensemble-step-version", errorLevel, refuses, Text{"a step's version is not served", "步骤要求的版本没有提供"}, notLoaded,
			Text{"write model_version: -1 for the newest, or serve that version", "写 model_version: -1 取最新，或提供该版本"}, Text{"step %d needs version %d of %q, served: %s", "第 %d 步需要 %[3]q 的版本 %[2]d，现有：%[4]s"}, (*context).checkStepVersion},
		{"ensemble-step-batch", errorLevel, refuses, Text{"a step takes smaller batches than the ensemble", "步骤的最大批比 ensemble 小"}, notLoaded,
			Text{"lower the ensemble's max_batch_size, or raise the step's", "降低 ensemble 的 max_batch_size，或提高该步模型的"}, Text{"max_batch_size %d, but model %q takes at most %d", "max_batch_size 为 %d，但模型 %q 最多 %d"}, (*context).checkStepBatch},
		{"ensemble-map-input", errorLevel, refuses, Text{"input_map names an input that the model has not", "input_map 中的输入不存在"}, notLoaded,
			Text{"the key is a name of the step model's input", "key 应为该步模型的输入名"}, Text{"model %q has no input %q", "模型 %q 没有输入 %q"}, (*context).checkMapInput},
		{"ensemble-input-unmapped", errorLevel, refuses, Text{"an input of a step that nothing is mapped to", "步骤的输入没有映射"}, notLoaded,
			Text{"map it, or make it optional in the step's model", "为其添加映射，或在该步模型中设为 optional"}, Text{"input %q of model %q is not mapped", "模型 %[2]q 的输入 %[1]q 没有映射"}, (*context).checkInputUnmapped},
		{"ensemble-map-output", errorLevel, refuses, Text{"output_map names an output that the model has not", "output_map 中的输出不存在"}, notLoaded,
			Text{"the key is a name of the step model's output", "key 应为该步模型的输出名"}, Text{"model %q has no output %q", "模型 %q 没有输出 %q"}, (*context).checkMapOutput},
		{"ensemble-type", errorLevel, refuses, Text{"a tensor of two types", "同一张量的类型不一致"}, notLoaded,
			Text{"make the types equal: nothing converts between steps", "统一类型：步骤之间不做转换"}, Text{"tensor %q is %s for %q and %s for %q", "张量 %q 在 %[3]q 中是 %[2]s，在 %[5]q 中是 %[4]s"}, (*context).checkStepType},
		{"ensemble-shape", errorLevel, refuses, Text{"a tensor of two shapes", "同一张量的形状不一致"}, notLoaded,
			Text{"make the dims equal, or open (-1) on one side", "统一 dims，或在一侧写 -1"}, Text{"tensor %q is %s for %q and %s for %q", "张量 %q 在 %[3]q 中是 %[2]s，在 %[5]q 中是 %[4]s"}, (*context).checkStepShape},
		{"ensemble-decoupled-mix", errorLevel, refuses, Text{"a step that joins answers of different decoupled models", "步骤汇合了不同解耦模型的结果"}, notLoaded,
			Text{"let only one decoupled model feed a step", "一个步骤只能接收同一个解耦模型的结果"}, Text{"model %q takes tensors from different decoupled models", "模型 %q 的输入来自不同的解耦模型"}, (*context).checkDecoupledMix},
	}
	return slices.Concat(graph, laterPollRules(), steps)
}

func (c *context) checkEnsemblePlatform() {
	if p := c.identify().platform; c.isEnsemble() && p != "ensemble" {
		c.refuse(c.Config.At("ensemble_scheduling"), fmt.Sprintf("ensemble scheduling cannot be set for model '%s' whose platform is not ensemble", c.displayName()), p)
	}
}

// isGraph says whether the model is an ensemble by platform too: the checks of its
// graph come behind that of the platform.
func (c *context) isGraph() bool { return c.isEnsemble() && c.identify().platform == "ensemble" }

func (c *context) checkEnsembleGroup() {
	if c.isGraph() && len(c.Config.InstanceGroup) > 0 {
		f := c.report(c.Config.At("instance_group"), c.displayName())
		says(f, "instance group should not be specified for ensemble '%s'", c.displayName())
		c.removeAll(f, "instance_group")
	}
}

func (c *context) checkEnsembleOptimization() {
	if c.isGraph() && c.Config.Optimization != nil {
		f := c.report(c.Config.At("optimization"), c.displayName())
		says(f, "optimization should not be specified for ensemble '%s'", c.displayName())
		c.removeAll(f, "optimization")
	}
}

func (c *context) checkEnsembleWarmup() {
	if c.isGraph() && len(c.Config.Warmup) > 0 {
		c.refuse(c.Config.At("model_warmup"), fmt.Sprintf("model_warmup can not be specified for ensemble '%s'", c.displayName()), c.displayName())
	}
}

func (c *context) checkEnsembleSteps() {
	if c.isGraph() && len(c.Config.Ensemble.Step) == 0 {
		c.refuse(c.Config.At("ensemble_scheduling"), fmt.Sprintf("must specify 'step' for ensemble '%s'", c.displayName()), c.displayName())
	}
}

// steps gives the steps of an ensemble.
func (c *context) steps() []configgen.Step {
	if !c.isGraph() {
		return nil
	}
	return c.Config.Ensemble.Step
}

func (c *context) checkStepComplete() {
	for i, s := range c.steps() {
		missing := ""
		switch {
		case s.ModelName == "":
			missing = "model_name"
		case len(s.InputMap) == 0:
			missing = "input_map"
		case len(s.OutputMap) == 0:
			missing = "output_map"
		default:
			continue
		}
		c.refuse(s.At(""), fmt.Sprintf("must specify '%s' in step %d of ensemble '%s'", missing, i, c.displayName()), i, missing)
	}
}

// node is a tensor of an ensemble's graph.
type node struct {
	name             string
	isWritten        bool // by a step
	isReady          bool // it can be computed from the inputs
	sources, targets []*node
	offset           int
}

// graph is an ensemble as the server builds it: every tensor with what it is made of.
type graph struct {
	nodes map[string]*node
	order []*node
}

func (g *graph) node(name string, offset int) *node {
	if n := g.nodes[name]; n != nil {
		return n
	}
	n := &node{name: name, offset: offset}
	g.nodes[name] = n
	g.order = append(g.order, n)
	return n
}

// buildGraph makes the graph of an ensemble and marks what can be computed from its
// inputs.
func (c *context) buildGraph() *graph {
	g := &graph{nodes: map[string]*node{}}
	for _, s := range c.steps() {
		var outputs []*node
		for _, e := range s.OutputMap {
			n := g.node(e.Value, e.At("value"))
			n.isWritten = true
			outputs = append(outputs, n)
		}
		for _, e := range s.InputMap {
			in := g.node(e.Value, e.At("value"))
			for _, out := range outputs {
				out.sources = append(out.sources, in)
				in.targets = append(in.targets, out)
			}
		}
	}
	var ready []*node
	for _, in := range c.Config.Input {
		if n := g.nodes[in.Name]; n != nil {
			n.isReady = true
			ready = append(ready, n)
		}
	}
	for len(ready) > 0 {
		n := ready[0]
		ready = ready[1:]
		for _, target := range n.targets {
			if target.isReady || slices.ContainsFunc(target.sources, func(s *node) bool { return !s.isReady }) {
				continue
			}
			target.isReady = true
			ready = append(ready, target)
		}
	}
	return g
}

func (c *context) checkTensorTwice() {
	written := map[string]bool{}
	for i, s := range c.steps() {
		for _, e := range s.OutputMap {
			if written[e.Value] {
				c.refuse(e.At("value"), fmt.Sprintf("ensemble tensor '%s' can appear in an output map only once for ensemble '%s' step %d", e.Value, c.displayName(), i), e.Value, i)
			}
			written[e.Value] = true
		}
	}
}

func (c *context) checkEnsembleInputs() {
	if len(c.steps()) == 0 {
		return
	}
	g := c.buildGraph()
	for _, in := range c.Config.Input {
		if g.nodes[in.Name] == nil {
			c.refuse(in.At("name"), fmt.Sprintf("ensemble input '%s' for ensemble %s' is not used", in.Name, c.displayName()), in.Name)
		}
	}
}

func (c *context) checkEnsembleOutputs() {
	if len(c.steps()) == 0 {
		return
	}
	g := c.buildGraph()
	for _, out := range c.Config.Output {
		if g.nodes[out.Name] == nil {
			c.refuse(out.At("name"), fmt.Sprintf("ensemble output '%s' for ensemble %s' is not used", out.Name, c.displayName()), out.Name)
		}
	}
}

func (c *context) checkUnconnected() {
	if len(c.steps()) == 0 {
		return
	}
	g := c.buildGraph()
	for _, out := range c.Config.Output {
		n := g.nodes[out.Name]
		if n == nil || n.isReady {
			continue
		}
		source := n.missingSource()
		server := fmt.Sprintf("output '%s' for ensemble '%s' is not written", out.Name, c.displayName())
		if source != n {
			server += fmt.Sprintf(": at least one of its depending tensors, '%s', is not connected", source.name)
		}
		c.refuse(out.At("name"), server, out.Name, source.name)
	}
}

// missingSource follows what is not ready to where it begins.
func (n *node) missingSource() *node {
	seen := map[string]bool{}
	for {
		i := slices.IndexFunc(n.sources, func(s *node) bool { return !s.isReady && !seen[s.name] })
		if i < 0 {
			return n
		}
		n = n.sources[i]
		seen[n.name] = true
	}
}

func (c *context) checkTensorUnused() {
	if len(c.steps()) == 0 {
		return
	}
	g := c.buildGraph()
	isOutput := map[string]bool{}
	for _, out := range c.Config.Output {
		isOutput[out.Name] = true
		if n := g.nodes[out.Name]; n != nil && !n.isReady {
			return // the server stops at the output that is not written
		}
	}
	for _, n := range g.order {
		if !isOutput[n.name] && (!n.isReady || len(n.targets) == 0) {
			c.refuse(n.offset, fmt.Sprintf("ensemble tensor '%s' is unused in ensemble '%s'", n.name, c.displayName()), n.name, c.displayName())
		}
	}
}

func (c *context) checkSchedulingMissing() {
	if id := c.identify(); !c.isEnsemble() && id.platform == "ensemble" && id.backend == "" {
		c.refuse(c.Config.At("platform"), fmt.Sprintf("ensemble scheduling must be set for ensemble %s whose platform is ensemble", c.displayName()), c.displayName())
	}
}

// eachStep calls look for the steps whose models are there and readable.
func (c *context) eachStep(look func(i int, s configgen.Step, m *Model)) {
	for i, s := range c.steps() {
		if m := c.repository.model(s.ModelName); m != nil && m.Config != nil {
			look(i, s, m)
		}
	}
}

func (c *context) checkStepThere() {
	var missing []string
	for _, s := range c.steps() {
		if s.ModelName != "" && c.repository.model(s.ModelName) == nil && !slices.Contains(missing, s.ModelName) {
			missing = append(missing, s.ModelName)
		}
	}
	slices.Sort(missing)
	for i, s := range c.steps() {
		if !slices.Contains(missing, s.ModelName) {
			continue
		}
		f := c.report(s.At("model_name"), i, s.ModelName)
		says(f, "ensemble %s contains models that are not available or ambiguous: %s", c.displayName(), strings.Join(missing, ", "))
		c.near(f, nearest(s.ModelName, c.repository.names()))
	}
}

func (c *context) checkCircular() {
	if last := c.repository.circleThrough(c.Model); last != "" {
		c.refuse(c.Config.At("ensemble_scheduling"), fmt.Sprintf("circular dependency between ensembles: %s -> ... -> %s -> %s", c.Name, last, c.Name), c.Name, last)
	}
}

func (c *context) checkStepRefused() {
	for i, s := range c.steps() {
		m := c.repository.model(s.ModelName)
		if m == nil || m == c.Model || m.imagined || c.repository.circleThrough(c.Model) != "" {
			continue
		}
		if c.repository.isRefused(m, c.options) {
			c.refuse(s.At("model_name"), fmt.Sprintf("ensemble '%s' depends on '%s' which has no loaded version.", c.displayName(), s.ModelName), i, s.ModelName)
		}
	}
}

func (c *context) checkStepVersion() {
	c.eachStep(func(i int, s configgen.Step, m *Model) {
		served := m.served()
		if m == c.Model || s.ModelVersion == -1 || len(served) == 0 || slices.Contains(served, s.ModelVersion) {
			return
		}
		f := c.report(s.At("model_version"), i, s.ModelVersion, s.ModelName, dimsText(served))
		says(f, "ensemble '%s' depends on '%s' whose required version %d is not loaded.", c.displayName(), s.ModelName, s.ModelVersion)
		switch field := s.Message().Field("model_version"); {
		case field == nil:
			at := s.Message().Start + 1
			f.Edits = append(f.Edits, findings.Edit{Start: at, End: at, Text: " model_version: -1"})
		case s.ModelVersion == 0:
			replace(f, field.Values[0], "-1")
		}
	})
}

func (c *context) checkStepBatch() {
	c.eachStep(func(_ int, s configgen.Step, m *Model) {
		if n := m.Config.MaxBatchSize; n != 0 && n < c.Config.MaxBatchSize {
			c.refuse(s.At("model_name"), fmt.Sprintf("ensemble %s allows maximum batch size %d, but it contains model %s which only allows maximum batch size to be %d", c.displayName(), c.Config.MaxBatchSize, s.ModelName, n),
				c.Config.MaxBatchSize, s.ModelName, n)
		}
	})
}

// knowsTensors says whether a step's model tells its tensors: one whose config leaves
// them to the backend does not.
func knowsTensors(m *Model) bool { return len(m.Config.Input) > 0 && len(m.Config.Output) > 0 }

func (c *context) checkMapInput() {
	c.eachStep(func(_ int, s configgen.Step, m *Model) {
		names := inputNames(m.Config)
		for _, e := range s.InputMap {
			if slices.Contains(names, e.Key) || !knowsTensors(m) || m == c.Model {
				continue
			}
			f := c.report(e.At("key"), s.ModelName, e.Key)
			says(f, "in ensemble %s, ensemble tensor %s is mapping to non-existing input %s in model %s", c.displayName(), e.Value, e.Key, s.ModelName)
			c.suggestKey(f, e, names)
		}
	})
}

func (c *context) checkMapOutput() {
	c.eachStep(func(_ int, s configgen.Step, m *Model) {
		names := outputNames(m.Config)
		for _, e := range s.OutputMap {
			if slices.Contains(names, e.Key) || !knowsTensors(m) || m == c.Model {
				continue
			}
			f := c.report(e.At("key"), s.ModelName, e.Key)
			says(f, "in ensemble %s, ensemble tensor %s is mapped from non-existing output %s in model %s", c.displayName(), e.Value, e.Key, s.ModelName)
			c.suggestKey(f, e, names)
		}
	})
}

func (c *context) checkInputUnmapped() {
	c.eachStep(func(_ int, s configgen.Step, m *Model) {
		for _, in := range m.Config.Input {
			isMapped := slices.ContainsFunc(s.InputMap, func(e configgen.Entry[string, string]) bool { return e.Key == in.Name })
			if !isMapped && !in.Optional && m != c.Model {
				c.refuse(s.At("input_map"), fmt.Sprintf("in ensemble %s, input %s in model %s is not mapped to any ensemble tensors", c.displayName(), in.Name, s.ModelName), in.Name, s.ModelName)
			}
		}
	})
}

func inputNames(c *configgen.Config) []string {
	out := make([]string, len(c.Input))
	for i, in := range c.Input {
		out[i] = in.Name
	}
	return out
}

func outputNames(c *configgen.Config) []string {
	out := make([]string, len(c.Output))
	for i, o := range c.Output {
		out[i] = o.Name
	}
	return out
}

// joint is one place at which a tensor of an ensemble gets type and shape.
type joint struct {
	model      string
	kind       configgen.DataType
	dims, full []int64
	offset     int
}

func newJoint(model string, kind configgen.DataType, dims []int64, isBatching bool, offset int) joint {
	full := dims
	if isBatching {
		full = append([]int64{-1}, dims...)
	}
	return joint{model, kind, dims, full, offset}
}

// eachJoint calls look with each place at which a tensor is used a second time, and
// with the first one. It stops where the server stops: at the first contradiction.
func (c *context) eachJoint(look func(tensor string, first, second joint) (canGoOn bool)) {
	if !c.isGraph() {
		return
	}
	known := map[string]joint{}
	isBatching := c.Config.MaxBatchSize > 0
	for _, in := range c.Config.Input {
		known[in.Name] = newJoint(c.displayName(), in.DataType, shapeOf(in.Dims, in.Reshape), isBatching, in.At("dims"))
	}
	for _, out := range c.Config.Output {
		if _, isInput := known[out.Name]; !isInput {
			known[out.Name] = newJoint(c.displayName(), out.DataType, shapeOf(out.Dims, out.Reshape), isBatching, out.At("dims"))
		}
	}
	canGoOn := true
	meet := func(tensor string, j joint) {
		first, isKnown := known[tensor]
		switch {
		case !canGoOn:
		case isKnown:
			canGoOn = look(tensor, first, j)
		default:
			known[tensor] = j
		}
	}
	c.eachStep(func(_ int, s configgen.Step, m *Model) {
		if m == c.Model {
			return
		}
		isBatching := m.Config.MaxBatchSize > 0
		for _, in := range m.Config.Input {
			for _, e := range s.InputMap {
				if e.Key == in.Name {
					meet(e.Value, newJoint(s.ModelName, in.DataType, in.Dims, isBatching, e.At("value")))
				}
			}
		}
		for _, e := range s.OutputMap {
			for _, out := range m.Config.Output {
				if e.Key == out.Name {
					meet(e.Value, newJoint(s.ModelName, out.DataType, out.Dims, isBatching, e.At("value")))
				}
			}
		}
	})
}

func shapeOf(dims []int64, r *configgen.Reshape) []int64 {
	if r != nil {
		return r.Shape
	}
	return dims
}

// fit says whether two shapes are equal but for open dims.
func fit(a, b []int64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && a[i] != -1 && b[i] != -1 {
			return false
		}
	}
	return true
}

func (c *context) checkStepType() {
	c.eachJoint(func(tensor string, first, second joint) bool {
		if first.kind == second.kind {
			return true
		}
		c.refuse(second.offset, fmt.Sprintf("in ensemble %s, ensemble tensor %s: inconsistent data type: %s is inferred from model %s while %s is inferred from model %s",
			c.displayName(), tensor, first.kind, first.model, second.kind, second.model), tensor, first.kind, first.model, second.kind, second.model)
		return true
	})
}

func (c *context) checkStepShape() {
	c.eachJoint(func(tensor string, first, second joint) bool {
		if first.kind != second.kind || fit(first.dims, second.dims) || fit(first.full, second.full) {
			return true
		}
		c.refuse(second.offset, fmt.Sprintf("in ensemble %s, ensemble tensor %s: inconsistent shape: %s is inferred from model %s while %s is inferred from model %s",
			c.displayName(), tensor, dimsText(first.full), first.model, dimsText(second.full), second.model), tensor, dimsText(first.full), first.model, dimsText(second.full), second.model)
		return true
	})
}

// checkDecoupledMix follows which decoupled model each tensor comes from: a step is
// looked at when the origins of all that it reads are known.
func (c *context) checkDecoupledMix() {
	d := decoupling{context: c, origin: map[string]int{}}
	for _, in := range c.Config.Input {
		d.origin[in.Name] = 0
	}
	c.eachStep(func(_ int, s configgen.Step, m *Model) { d.waiting = append(d.waiting, joinedStep{s, m}) })
	for before := -1; before != len(d.waiting); {
		before = len(d.waiting)
		d.waiting = slices.DeleteFunc(d.waiting, d.isDone)
	}
}

// joinedStep is a step with its model.
type joinedStep struct {
	step  configgen.Step
	model *Model
}

// decoupling numbers the decoupled models of an ensemble, from 1, and knows for each
// tensor from which it comes; 0 is the ensemble's own request.
type decoupling struct {
	*context
	origin  map[string]int
	last    int
	waiting []joinedStep
}

// isDone looks at a step, unless what it reads has not been made yet.
func (d *decoupling) isDone(j joinedStep) bool {
	label, isFirst := 0, true
	for _, e := range j.step.InputMap {
		from, ok := d.origin[e.Value]
		if !ok {
			return false
		}
		if !isFirst && from != label {
			d.refuse(j.step.At("input_map"), fmt.Sprintf("in ensemble %s, step of model '%s' receives inputs originated from different decoupled models", d.displayName(), d.homeOf(j.step)), j.step.ModelName)
			return true
		}
		label, isFirst = from, false
	}
	if j.model.Config.Decoupled() {
		d.last++
		label = d.last
	}
	for _, e := range j.step.OutputMap {
		if _, isKnown := d.origin[e.Value]; !isKnown {
			d.origin[e.Value] = label
		}
	}
	return true
}

// homeOf is the model that the server names for what a step writes: the ensemble for
// its own outputs, else the step's.
func (c *context) homeOf(s configgen.Step) string {
	for _, e := range s.OutputMap {
		if slices.Contains(outputNames(c.Config), e.Value) {
			return c.displayName()
		}
	}
	return s.ModelName
}
