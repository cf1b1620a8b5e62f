package rules

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/suggest"
)

// pollRules are what the server checks when it looks through the repository, before
// it loads anything.
func pollRules() []Rule {
	return []Rule{
		{"file-unreadable", errorLevel, refuses, Text{"the config file cannot be read", "配置文件无法读取"}, notLoaded,
			Text{"make it a readable file", "使其成为可读的普通文件"}, Text{"%s", "%s"}, (*context).checkReadable},
		{"agents-empty", errorLevel, refuses, Text{"model_repository_agents without an agent", "model_repository_agents 为空"},
			Text{"the server dies at load, with every other model it serves", "服务器在加载时崩溃，其他模型一并中断"},
			Text{"remove the empty block", "删去这个空块"}, Text{"model_repository_agents names no agent", "model_repository_agents 没有列出任何 agent"}, (*context).checkAgentsEmpty},
		{"agent-library", warningLevel, loads, Text{"a repository agent has to be installed", "仓库代理需要安装"},
			Text{"where the agent's library is missing, the server does not load the model", "若缺少该代理库，服务器不加载该模型"},
			Text{"install the agent on the server, or remove it", "在服务器上安装该代理，或删去"}, Text{"needs the repository agent %q (libtritonrepoagent_%[1]s.so)", "需要仓库代理 %q（libtritonrepoagent_%[1]s.so）"}, (*context).checkAgentLibrary},
		{"backend-undetermined", errorLevel, refuses, Text{"nothing says which backend serves the model", "无法确定后端"}, notLoaded,
			Text{"write backend: \"npu_ge\", \"python\", \"onnxruntime\" …", "写明 backend: \"npu_ge\"、\"python\"、\"onnxruntime\" 等"},
			Text{"model %q has no backend, and neither its files nor its name tell one", "模型 %q 没有 backend，从文件和名字也推断不出"}, (*context).checkBackendUndetermined},
		{"platform-unknown", errorLevel, refuses, Text{"a platform that is none", "platform 不存在"}, notLoaded,
			Text{"write backend instead of platform; platform is for ensembles", "用 backend 代替 platform；platform 用于 ensemble"},
			Text{"platform %q of model %q is unknown and no backend is given", "模型 %[2]q 的 platform %[1]q 未知，且没有 backend"}, (*context).checkPlatformUnknown},
		{"ensemble-backend", errorLevel, refuses, Text{"an ensemble with a backend", "ensemble 不能有 backend"}, notLoaded,
			Text{"remove backend", "删去 backend"}, Text{"ensemble %q has the backend %q", "ensemble %q 写了 backend %q"}, (*context).checkEnsembleBackend},
		{"platform-backend-pair", errorLevel, refuses, Text{"platform and backend do not belong together", "platform 与 backend 不匹配"}, notLoaded,
			Text{"remove platform: the server completes it", "删去 platform，由服务器补全"}, Text{"platform %q does not belong to backend %q", "platform %q 不属于 backend %q"}, (*context).checkPair},
		{"max-batch-negative", errorLevel, refuses, Text{"max_batch_size below 0", "max_batch_size 为负"}, notLoaded,
			Text{"use 0 for a model without a batch axis of its own", "没有批处理轴的模型写 0"}, Text{"max_batch_size %d is negative", "max_batch_size %d 为负数"}, (*context).checkMaxBatch},
		{"preferred-not-positive", errorLevel, refuses, Text{"a preferred batch size below 1", "首选批大小小于 1"}, notLoaded,
			Text{"list sizes from 1 to max_batch_size", "只列 1 到 max_batch_size 的值"}, Text{"preferred_batch_size %d is not positive", "preferred_batch_size %d 不是正数"}, (*context).checkPreferredPositive},
		{"preferred-over-max", errorLevel, refuses, Text{"a preferred batch size above max_batch_size", "首选批大小超过 max_batch_size"}, notLoaded,
			Text{"raise max_batch_size or take the size out", "提高 max_batch_size 或删去该值"}, Text{"preferred_batch_size %d is above max_batch_size %d", "preferred_batch_size %d 超过 max_batch_size %d"}, (*context).checkPreferredMax},
		{"priority-default", errorLevel, refuses, Text{"default_priority_level outside the levels", "default_priority_level 超出范围"}, notLoaded,
			Text{"set default_priority_level from 1 to priority_levels", "default_priority_level 取 1 到 priority_levels"}, Text{"default_priority_level %d is not in 1 to %d", "default_priority_level %d 不在 1 到 %d 之间"}, (*context).checkPriorityDefault},
		{"priority-policy-level", errorLevel, refuses, Text{"a queue policy for a level that there is not", "队列策略的优先级不存在"}, notLoaded,
			Text{"use keys from 1 to priority_levels", "键取 1 到 priority_levels"}, Text{"priority_queue_policy is for level %d, the levels are 1 to %d", "priority_queue_policy 的级别 %d 不在 1 到 %d 之间"}, (*context).checkPriorityPolicy},
		{"priority-preserve", errorLevel, refuses, Text{"preserve_ordering with several priority levels", "preserve_ordering 与多个优先级冲突"}, notLoaded,
			Text{"remove one of them", "二者只留其一"}, Text{"preserve_ordering does not go with %d priority levels", "preserve_ordering 不能与 %d 个优先级同用"}, (*context).checkPriorityPreserve},
		{"delay-preserve", errorLevel, refuses, Text{"preserve_ordering with DELAY", "preserve_ordering 与 DELAY 冲突"}, notLoaded,
			Text{"use REJECT, or drop preserve_ordering", "改用 REJECT，或去掉 preserve_ordering"}, Text{"preserve_ordering does not go with a timeout that delays (timeout_action DELAY)", "preserve_ordering 不能与 timeout_action DELAY 的超时同用"}, (*context).checkDelayPreserve},
		{"cache-sequence", errorLevel, refuses, Text{"a response cache for sequences", "序列模型不能用响应缓存"}, notLoaded,
			Text{"remove response_cache", "删去 response_cache"}, Text{"response_cache does not go with sequence_batching", "response_cache 不能与 sequence_batching 同用"}, (*context).checkCacheSequence},
		{"control-name", errorLevel, refuses, Text{"a control tensor without a name", "控制张量没有名字"}, notLoaded,
			Text{"give the control tensor a name", "给控制张量命名"}, Text{"a control_input has no name", "control_input 缺少 name"}, (*context).checkControlName},
		{"control-tensor-twice", errorLevel, refuses, Text{"a control tensor listed twice", "控制张量重复"}, notLoaded,
			Text{"put all its controls into one control_input", "把它的全部 control 放进同一个 control_input"}, Text{"the control tensor %q is listed a second time", "控制张量 %q 重复出现"}, (*context).checkControlTwice},
		{"control-kind-twice", errorLevel, refuses, Text{"two tensors for one control", "同一种控制有两个张量"}, notLoaded,
			Text{"keep one tensor for the control", "每种控制只留一个张量"}, Text{"%s is told by several tensors", "%s 由多个张量给出"}, (*context).checkControlKindTwice},
		{"control-values", errorLevel, refuses, Text{"a control without exactly two values of one type", "控制值必须是同一类型的两个值"}, notLoaded,
			Text{"give one of int32_false_true, fp32_false_true, bool_false_true with two values: [ 0, 1 ]", "在 int32_false_true、fp32_false_true、bool_false_true 中给出一个，含两个值：[ 0, 1 ]"},
			Text{"%s: %s", "%s：%s"}, (*context).checkControlValues},
		{"corrid-values", errorLevel, refuses, Text{"CORRID with false/true values", "CORRID 不能有 false/true 值"}, notLoaded,
			Text{"remove the values and set data_type", "删去这些值，写 data_type"}, Text{"CONTROL_SEQUENCE_CORRID holds the sequence's id and takes no false/true values", "CONTROL_SEQUENCE_CORRID 存放序列号，不能有 false/true 值"}, (*context).checkCorrIDValues},
		{"corrid-type", errorLevel, refuses, Text{"CORRID of a type that holds no sequence id", "CORRID 的类型不对"}, notLoaded,
			Text{"use TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 or TYPE_STRING", "使用 TYPE_UINT64、TYPE_INT64、TYPE_UINT32、TYPE_INT32 或 TYPE_STRING"}, Text{"CONTROL_SEQUENCE_CORRID of type %s", "CONTROL_SEQUENCE_CORRID 的类型是 %s"}, (*context).checkCorrIDType},
		{"sequence-preferred", errorLevel, refuses, Text{"a preferred size of oldest outside 1 to max_batch_size", "oldest 的首选批大小超出范围"}, notLoaded,
			Text{"list sizes from 1 to max_batch_size", "只列 1 到 max_batch_size 的值"}, Text{"sequence_batching.oldest: preferred_batch_size %d is not in 1 to max_batch_size %d", "sequence_batching.oldest 的 preferred_batch_size %d 不在 1 到 max_batch_size %d 之间"}, (*context).checkSequencePreferred},
		{"slot-utilization", errorLevel, refuses, Text{"minimum_slot_utilization outside 0 to 1", "minimum_slot_utilization 超出 0 到 1"}, notLoaded,
			Text{"use a share from 0 to 1", "取 0 到 1 之间的比例"}, Text{"minimum_slot_utilization %v is not in 0 to 1", "minimum_slot_utilization %v 不在 0 到 1 之间"}, (*context).checkSlotUtilization},
	}
}

// laterPollRules stand behind those of ensembles.
func laterPollRules() []Rule {
	return []Rule{
		{"cache-decoupled", errorLevel, refuses, Text{"a response cache for a decoupled model", "解耦模型不能用响应缓存"}, notLoaded,
			Text{"remove response_cache", "删去 response_cache"}, Text{"response_cache does not go with decoupled answers", "response_cache 不能与 decoupled 同用"}, (*context).checkCacheDecoupled},
		{"name-directory", errorLevel, refuses, Text{"the name is not that of the folder", "name 与目录名不一致"}, notLoaded,
			Text{"rename the folder, or remove name: the server takes the folder's", "改目录名，或删去 name 由服务器取目录名"}, Text{"name %q, but the model's folder is %q", "name 是 %q，但模型目录是 %q"}, (*context).checkNameDirectory},
		{"model-ambiguous", errorLevel, refuses, Text{"a model in two repositories", "同名模型出现在多个仓库"}, Text{"it is loaded from neither", "两处都不加载"},
			Text{"keep it in one repository", "只保留在一个仓库"}, Text{"model %q is in %s too", "模型 %q 也在 %s 中"}, nil},
	}
}

func (c *context) checkReadable() {
	if c.readErr != nil {
		c.reportFile(c.ConfigPath, c.readErr)
	}
}

func (c *context) checkAgentsEmpty() {
	if a := c.Config.RepositoryAgents; a != nil && len(a.Agents) == 0 {
		f := c.report(c.Config.At("model_repository_agents"))
		says(f, "died of signal SIGSEGV")
		remove(f, c.Doc, c.Config.Message().Field("model_repository_agents"))
	}
}

func (c *context) checkAgentLibrary() {
	if c.Config.RepositoryAgents == nil {
		return
	}
	for _, a := range c.Config.RepositoryAgents.Agents {
		c.report(a.At("name"), a.Name)
	}
}

func (c *context) checkBackendUndetermined() {
	if !c.identify().undetermined {
		return
	}
	f := c.report(c.Config.At(""), c.Name)
	says(f, "Invalid model name: Could not determine backend for model '%s' with no backend in model configuration. Expected model name of the form 'model.<backend_name>'.", c.Name)
}

func (c *context) checkPlatformUnknown() {
	id := c.identify()
	if id.undetermined || id.backend != "" || id.platform == "ensemble" {
		return
	}
	f := c.report(c.Config.At("platform"), id.platform, c.displayName())
	says(f, "unexpected platform type '%s' for %s", id.platform, c.displayName())
	if strings.EqualFold(id.platform, "ensemble") {
		c.near(f, "ensemble")
		if field := c.Config.Message().Field("platform"); field != nil {
			replace(f, field.Values[0], `"ensemble"`)
		}
	}
}

func (c *context) checkEnsembleBackend() {
	id := c.identify()
	if id.platform == "ensemble" && id.backend != "" {
		c.refuse(c.Config.At("backend"), fmt.Sprintf("Ensemble model '%s' must have platform type 'ensemble' and empty backend type", c.displayName()), c.displayName(), id.backend)
	}
}

// platformsOf are the backends that insist on a platform, with those they take.
var platformsOf = map[string][]string{
	"tensorflow":  {"tensorflow_graphdef", "tensorflow_savedmodel"},
	"tensorrt":    {"tensorrt_plan"},
	"onnxruntime": {"onnxruntime_onnx"},
	"pytorch":     {"pytorch_libtorch"},
}

func (c *context) checkPair() {
	id := c.identify()
	if takes, known := platformsOf[id.backend]; known && !slices.Contains(takes, id.platform) {
		c.refuse(c.Config.At("platform"), fmt.Sprintf("unexpected 'platform' and 'backend' pair, got:%s, %s", id.platform, id.backend), id.platform, id.backend)
	}
}

func (c *context) checkMaxBatch() {
	if n := c.Config.MaxBatchSize; n < 0 {
		c.refuse(c.Config.At("max_batch_size"), fmt.Sprintf("'max_batch_size' must be non-negative value for %s", c.displayName()), n)
	}
}

func (c *context) checkPreferredPositive() {
	d := c.Config.DynamicBatching
	if d == nil {
		return
	}
	for i, size := range d.PreferredBatchSize {
		if size <= 0 {
			c.refuse(d.ValueAt("preferred_batch_size", i), "dynamic batching preferred size must be positive for "+c.displayName(), size)
		}
	}
}

func (c *context) checkPreferredMax() {
	d := c.Config.DynamicBatching
	if d == nil {
		return
	}
	for i, size := range d.PreferredBatchSize {
		if size > 0 && size > c.Config.MaxBatchSize {
			c.refuse(d.ValueAt("preferred_batch_size", i), "dynamic batching preferred size must be <= max batch size for "+c.displayName(), size, c.Config.MaxBatchSize)
		}
	}
}

func (c *context) checkPriorityDefault() {
	d := c.Config.DynamicBatching
	if d != nil && d.PriorityLevels != 0 && (d.DefaultPriority == 0 || d.DefaultPriority > d.PriorityLevels) {
		c.refuse(d.At("default_priority_level"), fmt.Sprintf("default priority level must be in range [1, %d] for %s", d.PriorityLevels, c.displayName()), d.DefaultPriority, d.PriorityLevels)
	}
}

func (c *context) checkPriorityPolicy() {
	d := c.Config.DynamicBatching
	if d == nil || d.PriorityLevels == 0 {
		return
	}
	for _, e := range d.PriorityQueuePolicy {
		if e.Key == 0 || e.Key > d.PriorityLevels {
			c.refuse(e.At("key"), fmt.Sprintf("priority queue policy must have priority level in range [1, %d] for %s", d.PriorityLevels, c.displayName()), e.Key, d.PriorityLevels)
		}
	}
}

func (c *context) checkPriorityPreserve() {
	if d := c.Config.DynamicBatching; d != nil && d.PreserveOrdering && d.PriorityLevels > 1 {
		c.refuse(d.At("preserve_ordering"), "Only one priority level is allowed when 'preserve_ordering' is true for "+c.displayName(), d.PriorityLevels)
	}
}

func (c *context) checkDelayPreserve() {
	d := c.Config.DynamicBatching
	if d == nil || !d.PreserveOrdering {
		return
	}
	for _, p := range queuePolicies(d) {
		if p.DefaultTimeout != 0 && p.TimeoutAction == configgen.TimeoutDelay {
			c.refuse(p.At("timeout_action"), "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for "+c.displayName())
		}
	}
}

// queuePolicies gives the default policy and those of the levels.
func queuePolicies(d *configgen.DynamicBatching) (out []configgen.QueuePolicy) {
	if d.DefaultQueuePolicy != nil {
		out = append(out, *d.DefaultQueuePolicy)
	}
	for _, e := range d.PriorityQueuePolicy {
		out = append(out, e.Value)
	}
	return out
}

func (c *context) checkCacheSequence() {
	if c.Config.SequenceBatching != nil && c.Config.Cached() {
		c.refuse(c.Config.At("response_cache"), fmt.Sprintf("Response Cache does not currently support model %s with sequence batching scheduler. Please disable the response cache.", c.displayName()))
	}
}

// controls gives the control inputs of a sequence model.
func (c *context) controls() []configgen.ControlInput {
	if c.Config.SequenceBatching == nil {
		return nil
	}
	return c.Config.SequenceBatching.ControlInput
}

func (c *context) checkControlName() {
	for _, in := range c.controls() {
		if in.Name == "" {
			c.refuse(in.At(""), "sequence batching control tensor must have a name for "+c.displayName())
		}
	}
}

func (c *context) checkControlTwice() {
	seen := map[string]bool{"": true}
	for _, in := range c.controls() {
		if seen[in.Name] && in.Name != "" {
			c.refuse(in.At("name"), fmt.Sprintf("sequence batching control tensor '%s' is specified for multiple control kinds for %s", in.Name, c.displayName()), in.Name)
		}
		seen[in.Name] = true
	}
}

func (c *context) checkControlKindTwice() {
	seen := map[configgen.ControlKind]bool{}
	for _, in := range c.controls() {
		for _, control := range in.Control {
			if seen[control.Kind] && isControlKind(control.Kind) {
				c.refuse(control.At("kind"), fmt.Sprintf("sequence batching specifies multiple %s tensors for %s", control.Kind, c.displayName()), control.Kind)
			}
			seen[control.Kind] = true
		}
	}
}

func isControlKind(k configgen.ControlKind) bool {
	return k >= configgen.ControlStart && k <= configgen.ControlCorrID
}

func (c *context) checkControlValues() {
	for _, in := range c.controls() {
		for _, control := range in.Control {
			if isControlKind(control.Kind) && control.Kind != configgen.ControlCorrID {
				c.checkValues(control)
			}
		}
	}
}

// valuesProblems are what can be wrong with the values of a control.
var (
	noValues      = Text{"it has no values", "没有值"}
	severalValues = Text{"it has values of several types", "有多种类型的值"}
	countOfValues = Text{"it has not exactly two values", "值不是恰好两个"}
)

func (c *context) checkValues(control configgen.Control) {
	counts := map[string]int{"int32_false_true": len(control.Int32FalseTrue), "fp32_false_true": len(control.FP32FalseTrue), "bool_false_true": len(control.BoolFalseTrue)}
	var given []string
	for _, field := range []string{"int32_false_true", "fp32_false_true", "bool_false_true"} {
		if counts[field] > 0 {
			given = append(given, field)
		}
	}
	l, name := c.options.Language, c.displayName()
	const all = "'int32_false_true', 'fp32_false_true' and 'bool_false_true'"
	switch {
	case len(given) == 0:
		c.refuse(control.At("kind"), fmt.Sprintf("sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for %s for %s", control.Kind, name), control.Kind, noValues.In(l))
	case len(given) > 1:
		c.refuse(control.At(given[1]), fmt.Sprintf("sequence batching specifies more than one from %s for %s for %s", all, control.Kind, name), control.Kind, severalValues.In(l))
	case counts[given[0]] != 2:
		c.refuse(control.At(given[0]), fmt.Sprintf("sequence batching control '%s' must have exactly 2 entries for %s for %s", given[0], control.Kind, name), control.Kind, countOfValues.In(l))
	}
}

// eachCorrID calls look for the controls that hold the sequence's id.
func (c *context) eachCorrID(look func(configgen.Control)) {
	for _, in := range c.controls() {
		for _, control := range in.Control {
			if control.Kind == configgen.ControlCorrID {
				look(control)
			}
		}
	}
}

func (c *context) checkCorrIDValues() {
	c.eachCorrID(func(control configgen.Control) {
		if len(control.Int32FalseTrue)+len(control.FP32FalseTrue)+len(control.BoolFalseTrue) > 0 {
			c.refuse(control.At("kind"), "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for CONTROL_SEQUENCE_CORRID for "+c.displayName())
		}
	})
}

func (c *context) checkCorrIDType() {
	allowed := []configgen.DataType{configgen.TypeUint64, configgen.TypeInt64, configgen.TypeUint32, configgen.TypeInt32, configgen.TypeString}
	c.eachCorrID(func(control configgen.Control) {
		if !slices.Contains(allowed, control.DataType) {
			c.refuse(control.At("data_type"), fmt.Sprintf("unexpected data type for control CONTROL_SEQUENCE_CORRID for %s. Allowed data types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING", c.displayName()), control.DataType)
		}
	})
}

func (c *context) checkSequencePreferred() {
	s := c.Config.SequenceBatching
	if s == nil || s.Oldest == nil {
		return
	}
	for i, size := range s.Oldest.PreferredBatchSize {
		server := "sequence batching preferred batch size must be <= max batch size for " + c.displayName()
		if size <= 0 {
			server = "sequence batching preferred batch size must be positive for " + c.displayName()
		}
		if size <= 0 || size > c.Config.MaxBatchSize {
			c.refuse(s.Oldest.ValueAt("preferred_batch_size", i), server, size, c.Config.MaxBatchSize)
		}
	}
}

func (c *context) checkSlotUtilization() {
	s := c.Config.SequenceBatching
	if s == nil || s.Direct == nil {
		return
	}
	if u := s.Direct.MinimumSlotUtilization; u < 0 || u > 1 {
		c.refuse(s.Direct.At("minimum_slot_utilization"), "sequence batching minimum slot utilization must be in range (0.0, 1.0] for "+c.displayName(), u)
	}
}

func (c *context) checkCacheDecoupled() {
	if c.Config.Decoupled() && c.Config.Cached() {
		c.refuse(c.Config.At("response_cache"), fmt.Sprintf("Response Cache does not currently support model %s with 'decoupled' transaction policy. Please disable the response cache.", c.displayName()))
	}
}

func (c *context) checkNameDirectory() {
	name := c.Config.Name
	if name == "" || name == c.Name {
		return
	}
	f := c.report(c.Config.At("name"), name, c.Name)
	says(f, "unexpected directory name '%s' for model '%s', directory name must equal model name", c.Name, name)
	if values := c.Config.Message().Values("name"); !c.imagined && len(values) > 0 {
		replace(f, values[len(values)-1], quoted(c.Name))
	}
}

// quoted writes a string for a config.
func quoted(s string) string {
	doc := configgen.NewDocument("", &configgen.Config{Name: s, MaxBatchSize: 1})
	line, _, _ := strings.Cut(string(doc.Print()), "\n")
	return strings.TrimPrefix(line, "name: ")
}

// nearest suggests a name.
func nearest(name string, names []string) string { return suggest.Nearest(name, names) }

// join joins a folder and a name for messages.
func join(parts ...string) string { return path.Join(parts...) }
