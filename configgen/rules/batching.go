package rules

import (
	"slices"
	"strings"
	"time"

	"github.com/npuctl/npuctl/configgen"
)

// batchingRules are about queues and batches that do something else than meant.
func batchingRules() []Rule {
	return []Rule{
		{"batcher-idle", warningLevel, loads, Text{"dynamic_batching without batching", "max_batch_size 为 0 时的 dynamic_batching"}, Text{"requests are never grouped and never delayed", "请求既不合并也不等待"},
			Text{"set max_batch_size, or remove dynamic_batching", "设置 max_batch_size，或删去 dynamic_batching"}, Text{"dynamic_batching does nothing at max_batch_size 0", "max_batch_size 为 0 时 dynamic_batching 不起作用"}, (*context).checkBatcherIdle},
		{"delay-overflow", errorLevel, loads, Text{"a delay that overflows in nanoseconds", "延迟换算为纳秒时溢出"}, Text{"the delay wraps around to almost nothing; requests go at once", "延迟回绕成极小值，请求立即发出"},
			Text{"write microseconds: 2000 is two milliseconds", "单位是微秒：2000 即 2 毫秒"}, Text{"%s %d overflows in nanoseconds", "%s %d 换算为纳秒时溢出"}, (*context).checkDelayOverflow},
		{"delay-long", errorLevel, loads, Text{"a delay of minutes", "延迟长达数分钟"}, Text{"a lone request is not answered for that long", "单个请求要等这么久才有回应"},
			Text{"write microseconds: milliseconds or nanoseconds meant?", "单位是微秒：是否误写成毫秒或纳秒？"}, Text{"%s is %s", "%s 为 %s"}, (*context).checkDelayLong},
		{"preferred-one", warningLevel, loads, Text{"preferred batch size 1", "首选批大小为 1"}, Text{"the first arrival already is a preferred size: every batch is 1", "第一个请求就满足首选大小：每批都是 1"},
			Text{"take 1 out of preferred_batch_size", "从 preferred_batch_size 去掉 1"}, Text{"preferred size 1 defeats batching", "首选大小 1 使批处理失效"}, (*context).checkPreferredOne},
		{"preferred-small-first", warningLevel, loads, Text{"a smaller preferred size before a larger one", "较小的首选大小排在较大的之前"}, Text{"reaching the smaller one sends at once; the larger forms only if it already waits when looked at", "达到较小值就立即发出；较大的批只有在查看时已排满才会形成"},
			Text{"keep only the size that is wanted", "只保留想要的大小"}, Text{"preferred sizes %s: %d keeps %d from forming", "首选大小 %s：%d 使 %d 难以形成"}, (*context).checkPreferredSmall},
		{"preferred-waits", warningLevel, loads, Text{"a batch that waits the whole delay", "批等满整个延迟"}, Text{"with fewer clients than the smallest preferred size each batch waits the whole delay", "客户端少于最小首选大小时，每批都等满延迟"},
			Text{"lower the delay, or prefer a size that the clients reach", "降低延迟，或选择客户端能达到的大小"}, Text{"batches below %d wait %s each", "小于 %d 的批各等 %s"}, (*context).checkPreferredWaits},
		{"queue-stall", warningLevel, loads, Text{"a queue policy or priorities", "设置了队列策略或优先级"}, Text{"they turn prefetching off and can leave the instance idle for up to 500 ms between batches", "会关闭预取，批与批之间实例可能空闲长达 500 毫秒"},
			Text{"do without, or use several instances, which hides most of it", "不使用，或配置多个实例以减轻影响"}, Text{"%s turns prefetching off", "%s 会关闭预取"}, (*context).checkQueueStall},
		{"queue-timeout-late", warningLevel, loads, Text{"a queue timeout is noticed late", "队列超时发现得晚"}, Text{"when nothing else arrives, the timeout is noticed up to a second late; it bounds waiting, not running", "没有新请求到达时，超时最多晚一秒发现；它只限制等待，不限制执行"},
			Text{"let clients keep deadlines of their own", "由客户端自行控制截止时间"}, Text{"a timeout of %s is noticed up to a second late", "%s 的超时最多晚一秒才被发现"}, (*context).checkTimeoutLate},
		{"timeout-override-unused", warningLevel, loads, Text{"allow_timeout_override without a default timeout", "没有默认超时却允许覆盖"}, Text{"a request's own timeout is ignored: it only ever shortens a default that is not 0", "请求自带的超时被忽略：它只能缩短非 0 的默认值"},
			Text{"set default_timeout_microseconds", "设置 default_timeout_microseconds"}, Text{"allow_timeout_override does nothing without default_timeout_microseconds", "没有 default_timeout_microseconds 时 allow_timeout_override 不起作用"}, (*context).checkOverrideUnused},
		{"priority-unused", warningLevel, loads, Text{"priorities without levels", "没有级别的优先级设置"}, Text{"they are ignored", "设置被忽略"},
			Text{"set priority_levels", "设置 priority_levels"}, Text{"%s is ignored without priority_levels", "没有 priority_levels 时 %s 被忽略"}, (*context).checkPriorityUnused},
		{"preserve-ordering", warningLevel, loads, Text{"preserve_ordering with several instances", "多实例下的 preserve_ordering"}, Text{"short requests wait for long ones that came before", "短请求要等先到的长请求"},
			Text{"leave it out unless clients need the order", "除非客户端需要次序，否则不要设置"}, Text{"preserve_ordering with %d instances makes short requests wait for long ones", "preserve_ordering 与 %d 个实例同用，短请求要等长请求"}, (*context).checkPreserve},
		{"sequence-idle", warningLevel, loads, Text{"sequences that end while a client thinks", "序列空闲时间过短"}, Text{"after that time without a request the sequence is gone, and the next request is refused: it must specify the START flag", "超过该时间没有请求，序列即失效，下一个请求被拒绝，要求带 START 标志"},
			Text{"write microseconds: 5000000 is five seconds", "单位是微秒：5000000 即 5 秒"}, Text{"max_sequence_idle_microseconds is %s", "max_sequence_idle_microseconds 为 %s"}, (*context).checkSequenceIdle},
		{"state-growable", warningLevel, loads, Text{"use_growable_memory where it cannot be", "use_growable_memory 不可用"}, Text{"the model loads, and the first request of every sequence fails", "模型可以加载，但每个序列的第一个请求都会失败"},
			Text{"remove use_growable_memory: it needs GPUs and one buffer for input and output", "删去 use_growable_memory：它需要 GPU 且输入输出共用缓冲"}, Text{"state %q: use_growable_memory needs KIND_GPU and use_same_buffer_for_input_output", "状态 %q：use_growable_memory 需要 KIND_GPU 和 use_same_buffer_for_input_output"}, (*context).checkGrowable},
		{"sequence-slots", warningLevel, loads, Text{"few sequence slots", "序列槽位很少"}, Text{"a further sequence waits until one ends or idles out", "更多的序列要等某个结束或超时"},
			Text{"raise max_batch_size or the instance count to the number of streams", "按流数提高 max_batch_size 或实例数"}, Text{"%d slots (max_batch_size × instances)", "%d 个槽位（max_batch_size × 实例数）"}, (*context).checkSequenceSlots},
	}
}

// warmupRules are about warm-up that the server takes and suffers from.
func warmupRules() []Rule {
	return []Rule{
		{"warmup-batch-huge", errorLevel, refuses, Text{"a warm-up of millions of requests", "预热请求数以百万计"}, Text{"the load does not end, and the server is never live", "加载不会结束，服务器始终不就绪"},
			Text{"use a batch_size up to max_batch_size", "batch_size 不超过 max_batch_size"}, Text{"warm-up %q: batch_size %d", "预热 %q：batch_size %d"}, (*context).checkWarmupHuge},
		{"warmup-batch", errorLevel, loads, Text{"a warm-up batch above max_batch_size", "预热批超过 max_batch_size"}, Text{"the sample runs with a batch that no request may have: a gear that does not exist", "样本以任何请求都不允许的批运行：没有对应的档位"},
			Text{"use a batch_size up to max_batch_size", "batch_size 不超过 max_batch_size"}, Text{"warm-up %q: batch_size %d is above max_batch_size %d", "预热 %q：batch_size %d 超过 max_batch_size %d"}, (*context).checkWarmupBatch},
		{"warmup-overflow", errorLevel, loads, Text{"a warm-up sample whose size overflows", "预热样本大小溢出"}, Text{"the byte size wraps around; the model runs with that shape and no data", "字节数回绕；模型以该形状运行却没有数据"},
			Text{"correct the dims", "改正 dims"}, Text{"warm-up %q: the size of input %q, %s, overflows 64 bits", "预热 %q：输入 %q 的大小 %s 超出 64 位"}, (*context).checkWarmupOverflow},
		{"warmup-outside", errorLevel, loads, Text{"a warm-up file outside the warmup folder", "预热文件在 warmup 目录之外"}, Text{"the server reads any file that it may", "服务器会读取其有权访问的任何文件"},
			Text{"put the file into the model's warmup folder", "把文件放入模型的 warmup 目录"}, Text{"warm-up %q: file %q lies outside the warmup folder", "预热 %q：文件 %q 在 warmup 目录之外"}, (*context).checkWarmupOutside},
		{"warmup-slow", warningLevel, loads, Text{"a warm-up that runs many times", "预热次数很多"}, Text{"each instance runs it that often before the server is live", "每个实例都要运行这么多次，之后服务器才就绪"},
			Text{"lower count: two or three runs warm a model up", "减小 count：两三次就够"}, Text{"warm-up %q runs %d times on each instance", "预热 %q 在每个实例上运行 %d 次"}, (*context).checkWarmupSlow},
		{"warmup-python-none", warningLevel, refuses, Text{"warm-up of a Python model whose execute returns nothing", "execute 没有返回值的 Python 模型使用预热"}, Text{"the load hangs: the answer to the warm-up never comes", "加载挂起：预热的响应永远不来"},
			Text{"execute must return a list with one InferenceResponse for each request", "execute 必须返回列表，每个请求对应一个 InferenceResponse"}, Text{"execute of %s returns no list", "%s 的 execute 没有返回列表"}, (*context).checkPythonNone},
	}
}

// microseconds writes a time of the config.
func microseconds(us uint64) string {
	if us > uint64(1<<62/int64(time.Microsecond)) {
		return "for ever"
	}
	return (time.Duration(us) * time.Microsecond).String()
}

func (c *context) checkBatcherIdle() {
	if c.Config.DynamicBatching != nil && c.Config.MaxBatchSize == 0 {
		f := c.report(c.Config.At("dynamic_batching"))
		if len(c.Config.DynamicBatching.PreferredBatchSize) == 0 {
			c.removeAll(f, "dynamic_batching")
		}
	}
}

// wait is a time that requests wait, with where it stands.
type wait struct {
	field  string
	us     uint64
	offset int
}

// delays gives the times that requests wait for others.
func (c *context) delays() (out []wait) {
	const field = "max_queue_delay_microseconds"
	if d := c.Config.DynamicBatching; d != nil {
		out = append(out, wait{field, d.MaxQueueDelay, d.At(field)})
	}
	if s := c.Config.SequenceBatching; s != nil && s.Direct != nil {
		out = append(out, wait{field, s.Direct.MaxQueueDelay, s.Direct.At(field)})
	}
	if s := c.Config.SequenceBatching; s != nil && s.Oldest != nil {
		out = append(out, wait{field, s.Oldest.MaxQueueDelay, s.Oldest.At(field)})
	}
	return out
}

// overflowing is from where on microseconds do not fit as nanoseconds.
const overflowing = 1<<64/1000 + 1

// longDelay is what nobody waits for.
const longDelay = uint64(time.Minute / time.Microsecond)

func (c *context) checkDelayOverflow() {
	for _, d := range c.delays() {
		if d.us >= overflowing {
			c.report(d.offset, d.field, d.us)
		}
	}
}

func (c *context) checkDelayLong() {
	for _, d := range c.delays() {
		if d.us > longDelay && d.us < overflowing {
			c.report(d.offset, d.field, microseconds(d.us))
		}
	}
}

func (c *context) checkPreferredOne() {
	if d := c.Config.DynamicBatching; d != nil && c.Config.MaxBatchSize > 1 {
		if i := slices.Index(d.PreferredBatchSize, 1); i >= 0 {
			c.report(d.ValueAt("preferred_batch_size", i))
		}
	}
}

// preferredSizes are the sizes at which a batch is sent at once.
func (c *context) preferredSizes() []int32 {
	d := c.Config.DynamicBatching
	if len(d.PreferredBatchSize) == 0 {
		return []int32{c.Config.MaxBatchSize}
	}
	return d.PreferredBatchSize
}

func (c *context) checkPreferredSmall() {
	d := c.Config.DynamicBatching
	if d == nil || d.MaxQueueDelay == 0 || len(d.PreferredBatchSize) == 0 {
		return
	}
	low, high := slices.Min(d.PreferredBatchSize), slices.Max(d.PreferredBatchSize)
	if low != high && low > 1 {
		sizes := make([]int64, len(d.PreferredBatchSize))
		for i, s := range d.PreferredBatchSize {
			sizes[i] = int64(s)
		}
		c.report(d.At("preferred_batch_size"), dimsText(sizes), low, high)
	}
}

// noticeable is a wait that users notice.
const noticeable = uint64(5 * time.Millisecond / time.Microsecond)

func (c *context) checkPreferredWaits() {
	d := c.Config.DynamicBatching
	if d == nil || c.Config.MaxBatchSize < 2 || d.MaxQueueDelay < noticeable || d.MaxQueueDelay > longDelay {
		return
	}
	if low := slices.Min(c.preferredSizes()); low > 1 {
		c.report(d.At("max_queue_delay_microseconds"), low, microseconds(d.MaxQueueDelay))
	}
}

func (c *context) checkQueueStall() {
	d := c.Config.DynamicBatching
	if d == nil {
		return
	}
	if d.PriorityLevels > 0 {
		c.report(d.At("priority_levels"), "priority_levels")
		return
	}
	if p := d.DefaultQueuePolicy; p != nil {
		for _, field := range []string{"default_timeout_microseconds", "allow_timeout_override", "max_queue_size"} {
			isSet := map[string]bool{"default_timeout_microseconds": p.DefaultTimeout != 0, "allow_timeout_override": p.AllowTimeoutOverride, "max_queue_size": p.MaxQueueSize != 0}
			if isSet[field] {
				c.report(p.At(field), field)
				return
			}
		}
	}
}

func (c *context) checkTimeoutLate() {
	if d := c.Config.DynamicBatching; d != nil {
		for _, p := range queuePolicies(d) {
			if p.DefaultTimeout != 0 && p.TimeoutAction == configgen.TimeoutReject {
				c.report(p.At("default_timeout_microseconds"), microseconds(p.DefaultTimeout))
			}
		}
	}
}

func (c *context) checkOverrideUnused() {
	if d := c.Config.DynamicBatching; d != nil {
		for _, p := range queuePolicies(d) {
			if p.AllowTimeoutOverride && p.DefaultTimeout == 0 {
				c.report(p.At("allow_timeout_override"))
			}
		}
	}
}

func (c *context) checkPriorityUnused() {
	d := c.Config.DynamicBatching
	if d == nil || d.PriorityLevels != 0 {
		return
	}
	if d.DefaultPriority != 0 {
		c.report(d.At("default_priority_level"), "default_priority_level")
	}
	if len(d.PriorityQueuePolicy) > 0 {
		c.report(d.At("priority_queue_policy"), "priority_queue_policy")
	}
}

func (c *context) checkPreserve() {
	if d := c.Config.DynamicBatching; d != nil && d.PreserveOrdering && c.instanceCount() > 1 {
		c.report(d.At("preserve_ordering"), c.instanceCount())
	}
}

func (c *context) checkSequenceIdle() {
	s := c.Config.SequenceBatching
	if s != nil && s.MaxSequenceIdle != 0 && s.MaxSequenceIdle < uint64(time.Second/time.Microsecond) {
		c.report(s.At("max_sequence_idle_microseconds"), microseconds(s.MaxSequenceIdle))
	}
}

func (c *context) checkGrowable() {
	if c.Config.SequenceBatching == nil {
		return
	}
	isOnGPU := len(c.Config.InstanceGroup) > 0
	for _, g := range c.Config.InstanceGroup {
		isOnGPU = isOnGPU && (g.Kind == configgen.KindGPU || g.Kind == configgen.KindAuto && !c.isGE())
	}
	for _, s := range c.Config.SequenceBatching.State {
		switch {
		case !s.UseGrowableMemory:
		case !s.UseSameBuffer || !isOnGPU:
			c.report(s.At("use_growable_memory"), s.InputName)
		}
	}
}

// fewSlots is less than most services have streams.
const fewSlots = 4

func (c *context) checkSequenceSlots() {
	s := c.Config.SequenceBatching
	if s == nil || s.Oldest != nil || s.IterativeSequence {
		return
	}
	if slots := int64(max(1, c.Config.MaxBatchSize)) * c.instanceCount(); slots < fewSlots {
		c.report(c.Config.At("sequence_batching"), slots)
	}
}

// endlessBatch is a number of requests that takes longer to make than anybody waits.
const endlessBatch = 1 << 20

func (c *context) checkWarmupHuge() {
	for _, w := range c.Config.Warmup {
		if w.BatchSize >= endlessBatch && !c.isEnsemble() {
			says(c.report(w.At("batch_size"), w.Name, w.BatchSize), "no answer to the load")
		}
	}
}

func (c *context) checkWarmupBatch() {
	for _, w := range c.Config.Warmup {
		if w.BatchSize > uint32(max(1, c.Config.MaxBatchSize)) && w.BatchSize < endlessBatch && !c.isEnsemble() {
			f := c.report(w.At("batch_size"), w.Name, w.BatchSize, c.Config.MaxBatchSize)
			if c.Config.MaxBatchSize == 0 {
				f.Severity = warningLevel // several requests of one item each
			}
		}
	}
}

func (c *context) checkWarmupOverflow() {
	c.samples(func(w configgen.Warmup, in configgen.Entry[string, configgen.WarmupInput]) {
		if _, isExact := sampleBytes(in.Value); !isExact {
			c.report(in.Value.At("dims"), w.Name, in.Key, dimsText(in.Value.Dims))
		}
	})
}

func (c *context) checkWarmupOutside() {
	c.samples(func(w configgen.Warmup, in configgen.Entry[string, configgen.WarmupInput]) {
		if in.Value.InputDataFile == nil {
			return
		}
		name := *in.Value.InputDataFile
		if _, isInside := inside(name); !isInside {
			c.report(in.Value.At("input_data_file"), w.Name, name)
		}
	})
}

// manyRuns are more than warm anything up.
const manyRuns = 10

func (c *context) checkWarmupSlow() {
	for _, w := range c.Config.Warmup {
		if w.Count > manyRuns && w.BatchSize > 0 {
			c.report(w.At("count"), w.Name, w.Count)
		}
	}
}

func (c *context) checkPythonNone() {
	isWarm := slices.ContainsFunc(c.Config.Warmup, func(w configgen.Warmup) bool { return w.BatchSize > 0 })
	if !isWarm || c.Config.Decoupled() {
		return
	}
	files := c.pythonFiles()
	for _, name := range sortedKeys(files) {
		if pythonClass.MatchString(files[name]) && !returnsList(files[name]) {
			says(c.reportFile(c.placeOf(name), name), "no answer to the load")
		}
	}
}

// returnsList says whether the execute method in a Python file returns something. It
// reads lines, not Python: what it cannot tell counts as returning.
func returnsList(text string) bool {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	start := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "def execute(") })
	if start < 0 {
		return true
	}
	if _, after, ok := strings.Cut(lines[start], "):"); ok && strings.TrimSpace(after) != "" {
		return returnsValue(strings.TrimSpace(after))
	}
	indent := indentOf(lines[start])
	for _, line := range lines[start+1:] {
		code := strings.TrimSpace(line)
		if code == "" || strings.HasPrefix(code, "#") {
			continue
		}
		if indentOf(line) <= indent && code != "):" {
			return false
		}
		if returnsValue(code) {
			return true
		}
	}
	return false
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// returnsValue says whether a line returns something, be it behind a colon.
func returnsValue(code string) bool {
	at := strings.Index(code, "return ")
	if at < 0 || at > 0 && code[at-1] != ' ' && code[at-1] != ':' && code[at-1] != '\t' {
		return strings.Contains(code, "yield")
	}
	value, _, _ := strings.Cut(code[at+len("return "):], "#")
	value = strings.TrimSpace(value)
	return value != "" && value != "None" && !strings.HasPrefix(value, "[None]")
}
