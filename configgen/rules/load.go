package rules

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/findings"
)

// loadRules are what the server checks when it loads a model, in its order.
func loadRules() []Rule {
	return []Rule{
		{"version-none", errorLevel, refuses, Text{"no version to serve", "没有可提供的版本"}, notLoaded,
			Text{"add a version folder (1, 2, …) or correct version_policy", "添加版本目录（1、2……）或改正 version_policy"}, Text{"no version of model %q is available under its version policy; there are: %s", "按版本策略，模型 %q 没有可用版本；现有：%s"}, (*context).checkVersionNone},
		{"backend-installed", warningLevel, loads, Text{"the backend has to be installed", "后端需要安装"},
			Text{"where the backend's library is missing, the server does not load the model", "若缺少后端库，服务器不加载该模型"},
			Text{"check that the server image has this backend (backends/<name>/libtriton_<name>.so)", "确认服务器镜像带有该后端（backends/<名字>/libtriton_<名字>.so）"},
			Text{"needs the backend %q on the server", "服务器上需要有后端 %q"}, (*context).checkBackendInstalled},
		{"runtime-installed", warningLevel, loads, Text{"another backend library than usual", "指定了其他后端库"},
			Text{"where the library is missing, the server does not load the model", "若缺少该库，服务器不加载该模型"},
			Text{"remove runtime, or check that the server has this library beside the backend or the model", "删去 runtime，或确认服务器的后端目录或模型目录中有该库"},
			Text{"runtime %q has to be on the server", "服务器上需要有 runtime %q"}, (*context).checkRuntimeInstalled},
		{"instance-gpus", errorLevel, refuses, Text{"GPUs for instances that run on none", "不在 GPU 上运行的实例列出了 gpus"}, notLoaded,
			Text{"remove gpus; the NPUs of npu_ge are chosen by the parameter device_ids", "删去 gpus；npu_ge 的 NPU 用参数 device_ids 选择"}, Text{"%s with gpus", "%s 不能有 gpus"}, (*context).checkInstanceGPUs},
		{"instance-gpu-ge", errorLevel, refuses, Text{"KIND_GPU for the Ascend backend", "昇腾后端使用了 KIND_GPU"},
			Text{"GPUs are NVIDIA's: a host with Ascend chips has none, and the server does not load the model", "GPU 指 NVIDIA GPU：昇腾主机没有，服务器不加载该模型"},
			Text{"use KIND_CPU: npu_ge chooses NPUs by device_ids", "使用 KIND_CPU：npu_ge 用 device_ids 选择 NPU"}, Text{"%s, but npu_ge runs on NPUs, not on GPUs", "%s，但 npu_ge 运行在 NPU 上，而不是 GPU"}, (*context).checkGPUForGE},
		{"instance-gpu-negative", errorLevel, refuses, Text{"a GPU number below 0", "GPU 编号为负"}, notLoaded,
			Text{"number GPUs from 0", "GPU 从 0 编号"}, Text{"gpus: %d is no GPU", "gpus: %d 不是 GPU 编号"}, (*context).checkGPUNegative},
		{"instance-gpu-there", warningLevel, loads, Text{"the instances need GPUs", "实例需要 GPU"},
			Text{"where a GPU is missing, the server does not load the model", "若缺少 GPU，服务器不加载该模型"},
			Text{"check the target machine", "检查目标机器"}, Text{"%s needs GPUs on the target machine", "%s 需要目标机器上有 GPU"}, (*context).checkGPUThere},
		{"instance-kind", errorLevel, refuses, Text{"an instance kind that there is not", "实例 kind 不存在"}, notLoaded,
			Text{"use KIND_AUTO, KIND_CPU, KIND_GPU or KIND_MODEL", "使用 KIND_AUTO、KIND_CPU、KIND_GPU 或 KIND_MODEL"}, Text{"instance kind %d is unknown", "实例 kind %d 未知"}, (*context).checkInstanceKind},
		{"instance-profile", errorLevel, refuses, Text{"profile outside TensorRT", "profile 只用于 TensorRT"}, notLoaded,
			Text{"remove profile", "删去 profile"}, Text{"profile %q: only TensorRT models have profiles, numbered from 0", "profile %q：只有 TensorRT 模型有 profile，从 0 编号"}, (*context).checkProfile},
		{"io-name", errorLevel, refuses, Text{"a tensor without a name", "张量没有名字"}, notLoaded,
			Text{"write the name that the model gives the tensor", "写上模型中的张量名"}, Text{"an %s has no name", "有一个 %s 没有 name"}, (*context).checkIOName},
		{"io-type", errorLevel, refuses, Text{"a tensor without a type", "张量没有类型"}, notLoaded,
			Text{"write data_type: TYPE_FP32 …", "写 data_type: TYPE_FP32 等"}, Text{"%s %q has no data_type", "%s %q 没有 data_type"}, (*context).checkIOType},
		{"io-dims", errorLevel, refuses, Text{"a tensor without dims", "张量没有 dims"}, notLoaded,
			Text{"write dims, [ 1 ] for a single value", "写 dims，单个值写 [ 1 ]"}, Text{"%s %q has no dims", "%s %q 没有 dims"}, (*context).checkIODims},
		{"reshape-empty", errorLevel, refuses, Text{"an empty reshape in a model without batching", "非批处理模型使用空 reshape"}, notLoaded,
			Text{"write dims: [ 1 ] and no reshape", "写 dims: [ 1 ]，不写 reshape"}, Text{"%s %q: an empty reshape needs max_batch_size above 0", "%s %q：空 reshape 需要 max_batch_size 大于 0"}, (*context).checkReshapeEmpty},
		{"io-dim", errorLevel, refuses, Text{"a dim that is neither positive nor -1", "dims 的值无效"}, notLoaded,
			Text{"use sizes from 1 up, or -1 for an open dim", "使用 1 以上的大小，可变维写 -1"}, Text{"%s %q: dim %d is neither a size nor -1", "%s %q：维度 %d 既不是大小也不是 -1"}, (*context).checkIODim},
		{"reshape-dim", errorLevel, refuses, Text{"a reshape dim that is neither positive nor -1", "reshape 的值无效"}, notLoaded,
			Text{"use sizes from 1 up, or -1 for an open dim", "使用 1 以上的大小，可变维写 -1"}, Text{"%s %q: reshape dim %d is neither a size nor -1", "%s %q：reshape 维度 %d 既不是大小也不是 -1"}, (*context).checkReshapeDim},
		{"reshape-size", errorLevel, refuses, Text{"dims and reshape of different sizes", "dims 与 reshape 的元素数不同"}, notLoaded,
			Text{"keep the number of elements, and open dims where they are", "保持元素个数，可变维保持次序"}, Text{"%s %q: dims %s and reshape %s have different sizes", "%s %q：dims %s 与 reshape %s 的元素数不同"}, (*context).checkReshapeSize},
		{"reshape-open", errorLevel, refuses, Text{"dims and reshape with different numbers of open dims", "dims 与 reshape 的可变维个数不同"}, notLoaded,
			Text{"use -1 as often in one as in the other", "两边 -1 的个数要一致"}, Text{"%s %q: dims %s and reshape %s have different numbers of open dims", "%s %q：dims %s 与 reshape %s 的可变维个数不同"}, (*context).checkReshapeOpen},
		{"format-dims", errorLevel, refuses, Text{"an image format without three dims", "图像格式需要三个维度"}, notLoaded,
			Text{"give three dims (the batch is not among them), or remove format", "写三个维度（不含批），或删去 format"}, Text{"input %q: FORMAT_NHWC and FORMAT_NCHW take 3 dims, not %d", "输入 %q：FORMAT_NHWC 和 FORMAT_NCHW 需要 3 个维度，而不是 %d 个"}, (*context).checkFormat},
		{"shape-tensor", errorLevel, refuses, Text{"a shape tensor outside TensorRT", "形状张量只用于 TensorRT"}, notLoaded,
			Text{"remove is_shape_tensor", "删去 is_shape_tensor"}, Text{"%s %q: only TensorRT has shape tensors", "%s %q：只有 TensorRT 支持形状张量"}, (*context).checkShapeTensor},
		{"non-linear-format", errorLevel, refuses, Text{"a non-linear format outside TensorRT", "非线性格式只用于 TensorRT"}, notLoaded,
			Text{"remove is_non_linear_format_io", "删去 is_non_linear_format_io"}, Text{"%s %q: only TensorRT has non-linear formats, with 3 dims", "%s %q：只有 TensorRT 支持非线性格式，且需 3 个维度"}, (*context).checkNonLinear},
		{"batch-input-kind", errorLevel, refuses, Text{"a batch_input kind that there is not", "batch_input 的 kind 不存在"}, notLoaded,
			Text{"use one of the BATCH_… kinds", "使用已有的 BATCH_… 之一"}, Text{"batch_input kind %d is unknown", "batch_input 的 kind %d 未知"}, (*context).checkBatchInputKind},
		{"batch-input-sources", errorLevel, refuses, Text{"a batch_input without exactly one source", "batch_input 必须恰好有一个来源"}, notLoaded,
			Text{"name one source_input", "写一个 source_input"}, Text{"batch_input %s takes one source_input, not %d", "batch_input %s 需要一个 source_input，而不是 %d 个"}, (*context).checkBatchInputSources},
		{"batch-input-type", errorLevel, refuses, Text{"a batch_input of another type than INT32 or FP32", "batch_input 的类型必须是 INT32 或 FP32"}, notLoaded,
			Text{"use TYPE_INT32 or TYPE_FP32", "使用 TYPE_INT32 或 TYPE_FP32"}, Text{"batch_input of type %s", "batch_input 的类型是 %s"}, (*context).checkBatchInputType},
		{"batch-source", errorLevel, refuses, Text{"a source that is no input", "来源不是输入"}, notLoaded,
			Text{"name an input of the model", "写模型的某个输入"}, Text{"%s: source_input %q is no input", "%s：source_input %q 不是输入"}, (*context).checkBatchSource},
		{"batch-output-kind", errorLevel, refuses, Text{"a batch_output without exactly one source, or of unknown kind", "batch_output 的来源或 kind 有误"}, notLoaded,
			Text{"use BATCH_SCATTER_WITH_INPUT_SHAPE with one source_input", "使用 BATCH_SCATTER_WITH_INPUT_SHAPE 和一个 source_input"}, Text{"batch_output kind %s with %d source inputs", "batch_output 的 kind 为 %s，来源 %d 个"}, (*context).checkBatchOutputKind},
		{"batch-output-target", errorLevel, refuses, Text{"a batch_output target that is no output, or is there twice", "batch_output 的目标有误"}, notLoaded,
			Text{"name each output once", "每个输出只写一次"}, Text{"batch_output: target_name %q is no output, or is named twice", "batch_output：target_name %q 不是输出，或重复"}, (*context).checkBatchOutputTarget},
		{"label-missing", errorLevel, refuses, Text{"a label file that is not there", "标签文件不存在"}, notLoaded,
			Text{"put the file beside config.pbtxt, or remove label_filename", "把文件放在 config.pbtxt 旁边，或删去 label_filename"}, Text{"label file %q is not there", "标签文件 %q 不存在"}, (*context).checkLabelMissing},
		{"label-folder", errorLevel, refuses, Text{"a label file that is a folder", "标签文件是目录"}, Text{"the server dies at load, with every other model it serves", "服务器在加载时崩溃，其他模型一并中断"},
			Text{"name a text file with one label a line", "写一个每行一个标签的文本文件"}, Text{"label_filename %q is a folder", "label_filename %q 是目录"}, (*context).checkLabelFolder},
		{"label-outside", errorLevel, loads, Text{"a label file outside the model's folder", "标签文件在模型目录之外"},
			Text{"any client that asks for classification can read its lines; newer servers do not load the model", "任何请求 classification 的客户端都能读到其内容；新版服务器不加载"},
			Text{"copy the file into the model's folder", "把文件复制到模型目录内"}, Text{"label file %q lies outside the model's folder", "标签文件 %q 在模型目录之外"}, (*context).checkLabelOutside},
		{"metric-tag-key", errorLevel, refuses, Text{"a metric tag that is no label name", "metric_tags 的键不合法"}, Text{"the server dies at load, with every other model it serves", "服务器在加载时崩溃，其他模型一并中断"},
			Text{"use A-Z a-z 0-9 _, not beginning with _", "只用 A-Z a-z 0-9 _，且不以 _ 开头"}, Text{"metric_tags key %q may hold only A-Z a-z 0-9 _ and may not begin with _", "metric_tags 的键 %q 只能含 A-Z a-z 0-9 _，且不能以 _ 开头"}, (*context).checkMetricTag},
		{"batch-strategy", errorLevel, refuses, Text{"TRITON_BATCH_STRATEGY_PATH that cannot be used", "TRITON_BATCH_STRATEGY_PATH 不可用"}, notLoaded,
			Text{"give the path of a library that is there, and no sequence_batching", "给出存在的库路径，且不用 sequence_batching"}, Text{"TRITON_BATCH_STRATEGY_PATH %q: %s", "TRITON_BATCH_STRATEGY_PATH %q：%s"}, (*context).checkBatchStrategy},
		{"python-class", errorLevel, refuses, Text{"a model.py without TritonPythonModel", "model.py 中没有 TritonPythonModel"}, notLoaded,
			Text{"define class TritonPythonModel with execute(self, requests)", "定义 class TritonPythonModel 及 execute(self, requests)"}, Text{"%s defines no class TritonPythonModel", "%s 没有定义 TritonPythonModel 类"}, (*context).checkPythonClass},
		{"warmup-open-dim", errorLevel, refuses, Text{"a warm-up input with an open dim", "预热输入含可变维"}, notLoaded,
			Text{"give every dim a size", "给每一维写大小"}, Text{"warm-up %q: input %q has an open dim", "预热 %q：输入 %q 含可变维"}, (*context).checkWarmupOpen},
		{"warmup-memory", errorLevel, refuses, Text{"a warm-up sample larger than memory", "预热样本超过内存"}, Text{"the server dies at load, with every other model it serves", "服务器在加载时崩溃，其他模型一并中断"},
			Text{"correct the dims", "改正 dims"}, Text{"warm-up %q: input %q takes %s", "预热 %q：输入 %q 需要 %s"}, (*context).checkWarmupMemory},
		{"warmup-no-data", errorLevel, refuses, Text{"a warm-up input without data", "预热输入没有数据来源"}, notLoaded,
			Text{"set zero_data, random_data or input_data_file", "设置 zero_data、random_data 或 input_data_file"}, Text{"warm-up %q: input %q has no data", "预热 %q：输入 %q 没有数据来源"}, (*context).checkWarmupData},
		{"warmup-file", errorLevel, refuses, Text{"a warm-up file that is not there or too short", "预热文件不存在或太短"}, notLoaded,
			Text{"put a file with the sample's bytes into the warmup folder", "在 warmup 目录放入样本数据文件"}, Text{"warm-up %q: file %q %s", "预热 %q：文件 %q %s"}, (*context).checkWarmupFile},
		{"warmup-input-missing", errorLevel, refuses, Text{"a warm-up sample without a required input", "预热样本缺少必需输入"}, notLoaded,
			Text{"give every input that is not optional, by its name", "按名字给出所有非可选输入"}, Text{"warm-up %q lacks the input %q", "预热 %q 缺少输入 %q"}, (*context).checkWarmupMissing},
		{"warmup-type", errorLevel, refuses, Text{"a warm-up input of another type", "预热输入类型不符"}, notLoaded,
			Text{"use the input's own type", "使用该输入的类型"}, Text{"warm-up %q: input %q is %s, the model's is %s", "预热 %q：输入 %q 为 %s，模型为 %s"}, (*context).checkWarmupType},
		{"warmup-shape", errorLevel, refuses, Text{"a warm-up input of another shape", "预热输入形状不符"}, notLoaded,
			Text{"write the dims as the input has them, without the batch", "按该输入的 dims 书写，不含批"}, Text{"warm-up %q: input %q has dims %s, the model's are %s", "预热 %q：输入 %q 的 dims 为 %s，模型为 %s"}, (*context).checkWarmupShape},
		{"state-initial", errorLevel, refuses, Text{"an initial state that does not fit the state", "initial_state 与 state 不符"}, notLoaded,
			Text{"give initial_state a name, the state's type and dims, and data", "为 initial_state 写 name、与 state 相同的类型和 dims 以及数据"}, Text{"state %q: %s", "状态 %q：%s"}, (*context).checkInitialState},
		{"sequence-slots-memory", errorLevel, refuses, Text{"more sequence slots than memory", "序列槽位超过内存"}, Text{"direct sequence batching makes max_batch_size slots an instance; the server runs out of memory and dies", "direct 序列批处理为每个实例创建 max_batch_size 个槽位；服务器内存耗尽而崩溃"},
			Text{"set max_batch_size to the number of streams an instance serves at once", "把 max_batch_size 设为每个实例同时服务的流数"}, Text{"%d slots (max_batch_size %d × %d instances)", "%d 个槽位（max_batch_size %d × %d 个实例）"}, (*context).checkSlotMemory},
	}
}

func (c *context) checkVersionNone() {
	if len(c.served()) > 0 || c.hasTooLarge() {
		return
	}
	var there []string
	for _, v := range c.Versions {
		there = append(there, v.Folder)
	}
	text := strings.Join(there, ", ")
	if text == "" {
		text = Text{"none", "无"}.In(c.options.Language)
	}
	f := c.report(c.Config.At("version_policy"), c.displayName(), text)
	says(f, "at least one version must be available under the version policy of model '%s'", c.displayName())
}

func (c *context) hasTooLarge() bool {
	return slices.ContainsFunc(c.Versions, func(v Version) bool { return v.TooLarge })
}

// alwaysThere are backends that need no word: the one this tool is for, and one that
// every server has.
var alwaysThere = []string{geBackend, "python"}

func (c *context) checkBackendInstalled() {
	id := c.identify()
	if id.undetermined || id.backend == "" || slices.Contains(alwaysThere, id.backend) {
		return
	}
	f := c.report(c.Config.At("backend"), id.backend)
	says(f, "unable to find backend library for backend '%s', try specifying runtime on the model configuration.", id.backend)
	known := []string{geBackend, "python", "onnxruntime", "tensorrt", "tensorflow", "pytorch", "openvino", "dali", "identity", "fil", "vllm", "tensorrtllm"}
	if slices.Contains(known, id.backend) {
		f.Severity = noteLevel // they come with images of the server
		return
	}
	near := nearest(path.Base(id.backend), known)
	if strings.Contains(strings.ToLower(id.backend), "ascend") || strings.Contains(strings.ToLower(id.backend), "npu") {
		near = geBackend
	}
	c.near(f, near)
	if field := c.Config.Message(); near != "" && field != nil && strings.EqualFold(near, id.backend) && c.Config.Has("backend") {
		replace(f, field.Field("backend").Values[0], strconv.Quote(near))
	}
}

func (c *context) checkRuntimeInstalled() {
	id := c.identify()
	usual := []string{"", "libtriton_" + id.backend + ".so", "triton_" + id.backend + ".dll", "model.py"}
	if slices.Contains(usual, c.Config.Runtime) || c.isEnsemble() {
		return
	}
	f := c.report(c.Config.At("runtime"), c.Config.Runtime)
	says(f, "unable to find backend library '%s' for model '%s', searched: ", c.Config.Runtime, c.displayName())
}

// groups gives the instance groups with the names that the server gives them.
func (c *context) groups() []configgen.InstanceGroup {
	if c.isEnsemble() {
		return nil
	}
	out := slices.Clone(c.Config.InstanceGroup)
	for i := range out {
		if out[i].Name == "" {
			out[i].Name = fmt.Sprintf("%s_%d", c.displayName(), i)
		}
	}
	return out
}

func (c *context) checkInstanceGPUs() {
	for _, g := range c.groups() {
		isLost := g.Kind == configgen.KindAuto && c.isGE() // no GPU, so KIND_AUTO becomes KIND_CPU
		if len(g.GPUs) == 0 || g.Kind != configgen.KindCPU && g.Kind != configgen.KindModel && !isLost {
			continue
		}
		kind := g.Kind
		if isLost {
			kind = configgen.KindCPU
		}
		f := c.report(g.At("gpus"), g.Kind)
		says(f, "instance group %s of model %s has kind %s but specifies one or more GPUs", g.Name, c.displayName(), kind)
		for _, field := range g.Message().All("gpus") {
			remove(f, c.Doc, field)
		}
	}
}

func (c *context) checkGPUForGE() {
	for _, g := range c.groups() {
		if g.Kind != configgen.KindGPU || !c.isGE() {
			continue
		}
		f := c.report(g.At("kind"), g.Kind)
		server := fmt.Sprintf("instance group %s of model %s has kind KIND_GPU but no GPUs are available", g.Name, c.displayName())
		if len(g.GPUs) > 0 {
			server = fmt.Sprintf("instance group %s of model %s specifies invalid or unsupported gpu id %d. GPUs with at least the minimum required CUDA compute compatibility of 6.000000 are:", g.Name, c.displayName(), g.GPUs[0])
		}
		says(f, "%s", server)
		replace(f, g.Message().Field("kind").Values[0], "KIND_CPU")
		for _, field := range g.Message().All("gpus") {
			remove(f, c.Doc, field)
		}
	}
}

func (c *context) checkGPUNegative() {
	for _, g := range c.groups() {
		for i, gpu := range g.GPUs {
			if gpu < 0 && g.Kind == configgen.KindGPU && !c.isGE() {
				f := c.report(g.ValueAt("gpus", i), gpu)
				says(f, "instance group %s of model %s specifies invalid or unsupported gpu id %d", g.Name, c.displayName(), gpu)
			}
		}
	}
}

func (c *context) checkGPUThere() {
	for _, g := range c.groups() {
		needs := g.Kind == configgen.KindGPU || g.Kind == configgen.KindAuto && len(g.GPUs) > 0
		if needs && !c.isGE() {
			c.report(g.At("kind"), g.Name)
		}
	}
}

func (c *context) checkInstanceKind() {
	for _, g := range c.groups() {
		if g.Kind < configgen.KindAuto || g.Kind > configgen.KindModel {
			c.refuse(g.At("kind"), fmt.Sprintf("instance group %s of model %s has unexpected kind KIND_AUTO", g.Name, c.displayName()), g.Kind)
		}
	}
}

func (c *context) checkProfile() {
	platform := c.identify().platform
	for _, g := range c.groups() {
		for i, profile := range g.Profile {
			if platform != "tensorrt_plan" {
				c.refuse(g.ValueAt("profile", i), fmt.Sprintf("instance group %s of model %s and platform %sspecifies profile field which is only supported for TensorRT models", g.Name, c.displayName(), platform), profile)
				break
			}
			if n, err := strconv.Atoi(profile); err != nil || n < 0 {
				c.refuse(g.ValueAt("profile", i), fmt.Sprintf("instance group %s of model %s and platform %s specifies invalid profile %s. The field should contain the string representation of a non-negative integer.", g.Name, c.displayName(), platform, profile), profile)
			}
		}
	}
}

// port is an input or an output.
type port struct {
	configgen.Node
	side      string // "input" or "output"
	name      string
	kind      configgen.DataType
	dims      []int64
	reshape   *configgen.Reshape
	isShape   bool
	isSpecial bool
}

// ports gives inputs and outputs.
func (c *context) ports() (out []port) {
	for _, in := range c.Config.Input {
		out = append(out, port{in.Node, "input", in.Name, in.DataType, in.Dims, in.Reshape, in.IsShapeTensor, in.IsNonLinearFormatIO})
	}
	for _, o := range c.Config.Output {
		out = append(out, port{o.Node, "output", o.Name, o.DataType, o.Dims, o.Reshape, o.IsShapeTensor, o.IsNonLinearFormatIO})
	}
	return out
}

// refusePort reports a tensor; the server's words are the same for all kinds of trouble.
func (c *context) refusePort(p port, offset int, trouble string, args ...any) {
	c.refuse(offset, fmt.Sprintf("model %s '%s' %s for %s", p.side, p.name, trouble, c.displayName()), append([]any{p.side, p.name}, args...)...)
}

func (c *context) checkIOName() {
	for _, p := range c.ports() {
		if p.name == "" {
			c.refuse(p.At("name"), fmt.Sprintf("model %s must specify 'name' for %s", p.side, c.displayName()), p.side)
		}
	}
}

func (c *context) checkIOType() {
	for _, p := range c.ports() {
		if p.name != "" && p.kind == configgen.TypeInvalid {
			c.refusePort(p, p.At("data_type"), "must specify 'data_type'")
		}
	}
}

func (c *context) checkIODims() {
	for _, p := range c.ports() {
		if p.name != "" && len(p.dims) == 0 {
			c.refusePort(p, p.At("dims"), "must specify 'dims'")
		}
	}
}

func (c *context) checkReshapeEmpty() {
	for _, p := range c.ports() {
		if p.reshape != nil && len(p.reshape.Shape) == 0 && c.Config.MaxBatchSize == 0 {
			c.refusePort(p, p.At("reshape"), "cannot have empty reshape for non-batching model as scalar tensors are not supported")
		}
	}
}

func isDim(d int64) bool { return d >= 1 || d == -1 }

const dimTrouble = "dimension must be integer >= 1, or -1 to indicate a variable-size dimension"

func (c *context) checkIODim() {
	for _, p := range c.ports() {
		for i, d := range p.dims {
			if !isDim(d) {
				c.refusePort(p, p.ValueAt("dims", i), dimTrouble, d)
			}
		}
	}
}

func (c *context) checkReshapeDim() {
	for _, p := range c.ports() {
		if p.reshape == nil {
			continue
		}
		for i, d := range p.reshape.Shape {
			if !isDim(d) {
				c.refusePort(p, p.reshape.ValueAt("shape", i), "reshape "+strings.Replace(dimTrouble, "dimension must", "dimensions must", 1), d)
			}
		}
	}
}

// segments are the products of the dims between open ones.
func segments(dims []int64) (out []int64) {
	product := int64(1)
	for _, d := range dims {
		if d == -1 {
			out = append(out, product)
			product = 1
			continue
		}
		product *= d
	}
	return append(out, product)
}

// reshapes calls look for each reshape whose dims are dims.
func (c *context) reshapes(look func(p port, dims, shape []int64)) {
	for _, p := range c.ports() {
		if p.reshape == nil || slices.ContainsFunc(slices.Concat(p.dims, p.reshape.Shape), func(d int64) bool { return !isDim(d) }) || len(p.dims) == 0 {
			continue
		}
		look(p, p.dims, p.reshape.Shape)
	}
}

func (c *context) checkReshapeSize() {
	c.reshapes(func(p port, dims, shape []int64) {
		size, _ := elementCount(dims)
		reshaped, _ := elementCount(shape)
		a, b := segments(dims), segments(shape)
		isOff := size != reshaped && (reshaped != 0 || size != 1)
		isOff = isOff || size == -1 && len(a) == len(b) && !slices.Equal(a, b)
		if isOff {
			c.refusePort(p, p.reshape.At("shape"), "has different size for dims and reshape", dimsText(dims), dimsText(shape))
		}
	})
}

func (c *context) checkReshapeOpen() {
	c.reshapes(func(p port, dims, shape []int64) {
		size, _ := elementCount(dims)
		reshaped, _ := elementCount(shape)
		if size == -1 && reshaped == -1 && len(segments(dims)) != len(segments(shape)) {
			c.refusePort(p, p.reshape.At("shape"), "has different number of variable-size dimensions for dims and reshape", dimsText(dims), dimsText(shape))
		}
	})
}

func (c *context) checkFormat() {
	for _, in := range c.Config.Input {
		if (in.Format == configgen.FormatNHWC || in.Format == configgen.FormatNCHW) && len(in.Dims) != 3 {
			c.refuse(in.At("format"), "model input NHWC/NCHW require 3 dims for "+c.displayName(), in.Name, len(in.Dims))
		}
	}
}

func (c *context) checkShapeTensor() {
	for _, p := range c.ports() {
		if p.isShape && c.identify().platform != "tensorrt_plan" {
			c.refuse(p.At("is_shape_tensor"), "shape tensors are only supported for TensorRT platform for "+c.displayName(), p.side, p.name)
		}
	}
}

func (c *context) checkNonLinear() {
	for _, p := range c.ports() {
		switch {
		case !p.isSpecial:
		case c.identify().platform != "tensorrt_plan":
			c.refuse(p.At("is_non_linear_format_io"), "Non-linear IO format is only supported for the TensorRT platform for "+c.displayName(), p.side, p.name)
		case len(p.dims) != 3:
			c.refuse(p.At("is_non_linear_format_io"), fmt.Sprintf("Non-linear IO format %s requires 3 dims for %s", p.side, c.displayName()), p.side, p.name)
		}
	}
}

func (c *context) checkBatchInputKind() {
	for _, b := range c.Config.BatchInput {
		if b.Kind < 0 || b.Kind > 5 {
			c.refuse(b.At("kind"), fmt.Sprintf("unknown batch input kind '' for %s", c.displayName()), b.Kind)
		}
	}
}

func (c *context) checkBatchInputSources() {
	for _, b := range c.Config.BatchInput {
		if len(b.SourceInput) != 1 {
			c.refuse(b.At("source_input"), fmt.Sprintf("batch input kind '%s' expects 1 source input, got %d for %s", b.Kind, len(b.SourceInput), c.displayName()), b.Kind, len(b.SourceInput))
		}
	}
}

func (c *context) checkBatchInputType() {
	for _, b := range c.Config.BatchInput {
		if b.DataType != configgen.TypeInt32 && b.DataType != configgen.TypeFP32 {
			c.refuse(b.At("data_type"), "batch input data type must be TYPE_INT32 or TYPE_FP32 for "+c.displayName(), b.DataType)
		}
	}
}

func (c *context) checkBatchSource() {
	names := inputNames(c.Config)
	look := func(what string, n configgen.Node, sources []string) {
		for i, source := range sources {
			if !slices.Contains(names, source) {
				f := c.report(n.ValueAt("source_input", i), what, source)
				says(f, "unknown source input name '%s' for %s", source, c.displayName())
				c.nearValue(f, n.Message().Values("source_input")[i], nearest(source, names))
			}
		}
	}
	for _, b := range c.Config.BatchInput {
		look("batch_input", b.Node, b.SourceInput)
	}
	for _, b := range c.Config.BatchOutput {
		look("batch_output", b.Node, b.SourceInput)
	}
}

func (c *context) checkBatchOutputKind() {
	for _, b := range c.Config.BatchOutput {
		switch {
		case b.Kind != 0:
			c.refuse(b.At("kind"), fmt.Sprintf("unknown batch output kind '' for %s", c.displayName()), b.Kind, len(b.SourceInput))
		case len(b.SourceInput) != 1:
			c.refuse(b.At("source_input"), fmt.Sprintf("batch output kind '%s' expects 1 source input, got %d for %s", b.Kind, len(b.SourceInput), c.displayName()), b.Kind, len(b.SourceInput))
		}
	}
}

func (c *context) checkBatchOutputTarget() {
	names := outputNames(c.Config)
	for _, b := range c.Config.BatchOutput {
		for i, target := range b.TargetName {
			switch {
			case !slices.Contains(names, target):
				f := c.report(b.ValueAt("target_name", i), target)
				says(f, "unknown target output name '%s' for %s", target, c.displayName())
				c.nearValue(f, b.Message().Values("target_name")[i], nearest(target, names))
			case slices.Contains(b.TargetName[:i], target):
				c.refuse(b.ValueAt("target_name", i), fmt.Sprintf("target output name '%s' can only be specified once for %s", target, c.displayName()), target)
			}
		}
	}
}

// labels calls look for each label file with what stands in its place.
func (c *context) labels(look func(o configgen.Output, kind entryKind)) {
	for _, o := range c.Config.Output {
		if o.LabelFilename == "" {
			continue
		}
		kind, _ := c.folder.stat(o.LabelFilename)
		look(o, kind)
	}
}

func (c *context) checkLabelMissing() {
	c.labels(func(o configgen.Output, kind entryKind) {
		if kind == nothing || kind == danglingLink {
			f := c.report(o.At("label_filename"), o.LabelFilename)
			says(f, "failed to open text file for read %s: No such file or directory", c.Name+"/"+strings.TrimPrefix(o.LabelFilename, "/"))
			c.near(f, nearest(o.LabelFilename, c.folder.list(path.Dir(o.LabelFilename))))
		}
	})
}

func (c *context) checkLabelFolder() {
	c.labels(func(o configgen.Output, kind entryKind) {
		if kind == directory {
			f := c.report(o.At("label_filename"), o.LabelFilename)
			says(f, "died of signal SIGABRT; terminate called after throwing an instance of 'std::length_error'")
		}
	})
}

func (c *context) checkLabelOutside() {
	c.labels(func(o configgen.Output, kind entryKind) {
		if _, isInside := inside(o.LabelFilename); !isInside && kind == regularFile {
			c.report(o.At("label_filename"), o.LabelFilename)
		}
	})
}

// labelName is what the metrics library takes. A name that begins with a digit, or
// none at all, passes.
var labelName = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9_]*)?$`)

func (c *context) checkMetricTag() {
	for _, e := range c.Config.MetricTags {
		if !labelName.MatchString(e.Key) {
			f := c.report(e.At("key"), e.Key)
			says(f, "died of signal SIGABRT; terminate called after throwing an instance of 'std::invalid_argument'; what(): Invalid label name")
		}
	}
}

func (c *context) checkBatchStrategy() {
	const key = "TRITON_BATCH_STRATEGY_PATH"
	value, ok := c.Config.Parameter(key)
	if !ok {
		return
	}
	l := c.options.Language
	if c.Config.SequenceBatching != nil {
		c.refuse(c.parameterOffset(key), key+" cannot be specified with sequence batcher, using default batching strategy", value, Text{"it does not go with sequence_batching", "不能与 sequence_batching 同用"}.In(l))
		return
	}
	if kind, _ := diskFolder(".").statAbsolute(value); kind == nothing {
		c.refuse(c.parameterOffset(key), "Batching library path not found: "+value, value, Text{"there is no such file", "文件不存在"}.In(l))
	}
}

// parameterOffset is where a parameter stands.
func (c *context) parameterOffset(key string) int {
	for _, e := range c.Config.Parameters {
		if e.Key == key {
			return e.At("key")
		}
	}
	return 0
}

var pythonClass = regexp.MustCompile(`(?m)\bTritonPythonModel\b`)

// pythonFiles gives the model files of a Python model that are there, with their text.
func (c *context) pythonFiles() map[string]string {
	out := map[string]string{}
	id := c.identify()
	if id.backend != "python" || id.filename == "" {
		return out
	}
	for _, version := range c.served() {
		name := join(folderOf(version), id.filename)
		if kind, _ := c.folder.stat(name); kind != regularFile {
			continue
		}
		if text, err := c.folder.read(name, 1<<20); err == nil {
			out[name] = string(text)
		}
	}
	return out
}

func (c *context) checkPythonClass() {
	for _, name := range sortedKeys(c.pythonFiles()) {
		if !pythonClass.MatchString(c.pythonFiles()[name]) {
			f := c.reportFile(c.placeOf(name), name)
			says(f, "AttributeError: module '%s' has no attribute 'TritonPythonModel'", strings.ReplaceAll(strings.TrimSuffix(name, ".py"), "/", "."))
		}
	}
}

// placeOf is the path of a file of the model, or of the config where the file is only
// made up.
func (c *context) placeOf(name string) string {
	if c.imagined {
		return c.ConfigPath
	}
	return c.folder.display(name)
}

// samples calls look for each input of each warm-up sample that the server makes.
func (c *context) samples(look func(w configgen.Warmup, in configgen.Entry[string, configgen.WarmupInput])) {
	for _, w := range c.Config.Warmup {
		if w.BatchSize == 0 || c.isEnsemble() {
			continue
		}
		for _, in := range w.Inputs {
			look(w, in)
		}
	}
}

func (c *context) checkWarmupOpen() {
	c.samples(func(w configgen.Warmup, in configgen.Entry[string, configgen.WarmupInput]) {
		if slices.Contains(in.Value.Dims, -1) {
			c.refuse(in.Value.At("dims"), fmt.Sprintf("warmup setting expects all variable-size dimensions are specified for input '%s'", in.Key), w.Name, in.Key)
		}
	})
}

// sampleBytes is the size of a sample as the server computes it. isExact is false
// where the true size does not fit 64 bits.
func sampleBytes(in configgen.WarmupInput) (bytes int64, isExact bool) {
	count, isExact := elementCount(in.Dims)
	width := in.DataType.Bytes()
	if width == 0 {
		width = 4
	}
	if count != 0 && count*width/width != count {
		isExact = false
	}
	return count * width, isExact
}

// memoryLimit is what no host has for one sample.
const memoryLimit = 1 << 40

func (c *context) checkWarmupMemory() {
	c.samples(func(w configgen.Warmup, in configgen.Entry[string, configgen.WarmupInput]) {
		bytes, isExact := sampleBytes(in.Value)
		if in.Value.InputDataFile == nil && isExact && bytes > memoryLimit {
			f := c.report(in.Value.At("dims"), w.Name, in.Key, byteText(bytes))
			says(f, "died of signal SIGSEGV; failed to allocate non-pinned system memory")
		}
	})
}

// byteText writes a large size.
func byteText(n int64) string {
	const gib = 1 << 30
	if n < gib {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%d GiB", n/gib)
}

func (c *context) checkWarmupData() {
	c.samples(func(w configgen.Warmup, in configgen.Entry[string, configgen.WarmupInput]) {
		if in.Value.ZeroData == nil && in.Value.RandomData == nil && in.Value.InputDataFile == nil {
			c.refuse(in.At("value"), fmt.Sprintf("[request id: <id_unknown>] warmup setting expects input '%s' to have input_data_type set", in.Key), w.Name, in.Key)
		}
	})
}

func (c *context) checkWarmupFile() {
	l := c.options.Language
	c.samples(func(w configgen.Warmup, in configgen.Entry[string, configgen.WarmupInput]) {
		if in.Value.InputDataFile == nil {
			return
		}
		name := *in.Value.InputDataFile
		kind, size := c.folder.stat("warmup/" + name)
		need, _ := sampleBytes(in.Value)
		switch {
		case kind == nothing || kind == danglingLink:
			c.refuse(in.Value.At("input_data_file"), fmt.Sprintf("failed to open text file for read %s/warmup/%s: No such file or directory", c.Name, strings.TrimPrefix(name, "/")),
				w.Name, name, Text{"is not there", "不存在"}.In(l))
		case kind == regularFile && in.Value.DataType != configgen.TypeString && size < need:
			c.refuse(in.Value.At("input_data_file"), fmt.Sprintf("[request id: <id_unknown>] warmup setting expects %d bytes, but the data provided from %sonly has %d bytes", need, name, size),
				w.Name, name, fmt.Sprintf(Text{"has %d bytes, the sample takes %d", "有 %d 字节，样本需要 %d 字节"}.In(l), size, need))
		}
	})
}

func (c *context) checkWarmupMissing() {
	for _, w := range c.Config.Warmup {
		if w.BatchSize == 0 || c.isEnsemble() {
			continue
		}
		var given, missing []string
		for _, in := range w.Inputs {
			if slices.Contains(inputNames(c.Config), in.Key) {
				given = append(given, in.Key)
			}
		}
		for _, in := range c.Config.Input {
			if !in.Optional && !slices.Contains(given, in.Name) {
				missing = append(missing, in.Name)
			}
		}
		slices.Sort(given)
		for _, name := range missing {
			f := c.report(w.At("inputs"), w.Name, name)
			says(f, "[request id: <id_unknown>] expected %d inputs but got %d inputs for model '%s'. Got input(s) [%s], but missing required input(s) [%s]. Please provide all required input(s).",
				len(c.Config.Input), len(given), c.displayName(), quotedList(given), quotedList(missing))
			c.nearWarmup(f, w, name, given)
		}
	}
}

// nearWarmup suggests the input that a misspelt key of a sample means.
func (c *context) nearWarmup(f *findings.Finding, w configgen.Warmup, name string, given []string) {
	for _, in := range w.Inputs {
		if !slices.Contains(given, in.Key) && nearest(in.Key, []string{name}) != "" {
			c.near(f, name)
			if field := in.Message().Field("key"); field != nil {
				replace(f, field.Values[0], strconv.Quote(name))
			}
		}
	}
}

func quotedList(names []string) string {
	parts := make([]string, len(names))
	for i, n := range names {
		parts[i] = "'" + n + "'"
	}
	return strings.Join(parts, ",")
}

// sampled calls look for each input of a sample that is an input of the model.
func (c *context) sampled(look func(w configgen.Warmup, sample configgen.Entry[string, configgen.WarmupInput], in configgen.Input)) {
	c.samples(func(w configgen.Warmup, sample configgen.Entry[string, configgen.WarmupInput]) {
		for _, in := range c.Config.Input {
			if in.Name == sample.Key {
				look(w, sample, in)
				return
			}
		}
	})
}

// protocolType is the name of a type in requests.
func protocolType(t configgen.DataType) string {
	if t == configgen.TypeString {
		return "BYTES"
	}
	return strings.TrimPrefix(t.String(), "TYPE_")
}

func (c *context) checkWarmupType() {
	c.sampled(func(w configgen.Warmup, sample configgen.Entry[string, configgen.WarmupInput], in configgen.Input) {
		if sample.Value.DataType == in.DataType {
			return
		}
		f := c.report(sample.Value.At("data_type"), w.Name, in.Name, sample.Value.DataType, in.DataType)
		says(f, "[request id: <id_unknown>] inference input '%s' data-type is '%s', but model '%s' expects '%s'", in.Name, protocolType(sample.Value.DataType), c.displayName(), protocolType(in.DataType))
		if field := sample.Value.Message().Field("data_type"); field != nil {
			replace(f, field.Values[0], in.DataType.String())
		}
	})
}

func (c *context) checkWarmupShape() {
	c.sampled(func(w configgen.Warmup, sample configgen.Entry[string, configgen.WarmupInput], in configgen.Input) {
		dims := sample.Value.Dims
		if slices.Contains(dims, -1) || fit(dims, in.Dims) && !slices.ContainsFunc(dims, func(d int64) bool { return d < 0 }) {
			return
		}
		full, note, got := in.Dims, "", dims
		if c.Config.MaxBatchSize > 0 {
			full, got = append([]int64{-1}, full...), append([]int64{1}, got...)
			note = " NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each input shape."
		}
		f := c.report(sample.Value.At("dims"), w.Name, in.Name, dimsText(dims), dimsText(in.Dims))
		says(f, "[request id: <id_unknown>] unexpected shape for input '%s' for model '%s'. Expected %s, got %s.%s", in.Name, c.displayName(), dimsText(full), dimsText(got), note)
	})
}

// What can be wrong with an initial state.
var (
	stateSeveral = Text{"it has more than one initial_state", "有多个 initial_state"}
	stateType    = Text{"initial_state has another data_type", "initial_state 的 data_type 不同"}
	stateName    = Text{"initial_state has no name", "initial_state 没有 name"}
	stateTwice   = Text{"its input_name is used by another state", "input_name 与另一个状态重复"}
	stateRank    = Text{"initial_state has another number of dims", "initial_state 的维数不同"}
	stateOpen    = Text{"initial_state has an open dim", "initial_state 含可变维"}
	stateDims    = Text{"initial_state has other dims", "initial_state 的 dims 不同"}
	stateData    = Text{"initial_state has neither zero_data nor data_file", "initial_state 没有 zero_data 或 data_file"}
	stateFile    = Text{"the data_file is not in the initial_state folder, or too short", "data_file 不在 initial_state 目录中，或太短"}
)

func (c *context) checkInitialState() {
	if c.Config.SequenceBatching == nil {
		return
	}
	seen := map[string]bool{}
	for _, s := range c.Config.SequenceBatching.State {
		if len(s.InitialState) == 0 {
			continue
		}
		if len(s.InitialState) > 1 {
			c.refuse(s.At("initial_state"), fmt.Sprintf("initial_state field for state input '%s' must contain exactly one or zero element. Found '%d' elements.", s.InputName, len(s.InitialState)), s.InputName, stateSeveral.In(c.options.Language))
			continue
		}
		c.checkOneState(s, s.InitialState[0], seen[s.InputName])
		seen[s.InputName] = true
	}
}

func (c *context) checkOneState(s configgen.State, initial configgen.InitialState, isTwice bool) {
	tell := func(offset int, what Text, format string, args ...any) {
		c.refuse(offset, fmt.Sprintf(format, args...), s.InputName, what.In(c.options.Language))
	}
	switch {
	case initial.DataType != s.DataType:
		tell(initial.At("data_type"), stateType, "The data type used for 'initial_state' field of state '%s' does not match the state data type.", s.InputName)
	case initial.Name == "":
		tell(initial.At("name"), stateName, "Field 'name' must be set when using initial_state for state input '%s'.", s.InputName)
	case isTwice:
		tell(s.At("input_name"), stateTwice, "State input name '%s' specified more than once.", s.InputName)
	case len(initial.Dims) != len(s.Dims):
		tell(initial.At("dims"), stateRank, "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input '%s'. %d != %d", s.InputName, len(initial.Dims), len(s.Dims))
	case slices.Contains(initial.Dims, -1):
		tell(initial.At("dims"), stateOpen, "'initial_state' field for state input name '%s' contains variable dimensions.", s.InputName)
	case !fit(initial.Dims, s.Dims):
		i := slices.IndexFunc(initial.Dims, func(d int64) bool { return true })
		for n := range initial.Dims {
			if s.Dims[n] != -1 && initial.Dims[n] != s.Dims[n] {
				i = n
				break
			}
		}
		tell(initial.At("dims"), stateDims, "'initial_state' dim for input name '%s' doesn't match 'state' dim description. %d != %d", s.InputName, initial.Dims[i], s.Dims[i])
	case initial.ZeroData == nil && initial.DataFile == nil:
		tell(initial.At(""), stateData, "initial_state setting expects state'%s' to have state_data set", s.InputName)
	case initial.DataFile != nil:
		c.checkStateFile(s, initial, tell)
	}
}

func (c *context) checkStateFile(s configgen.State, initial configgen.InitialState, tell func(int, Text, string, ...any)) {
	kind, size := c.folder.stat("initial_state/" + *initial.DataFile)
	need, _ := sampleBytes(configgen.WarmupInput{DataType: initial.DataType, Dims: initial.Dims})
	switch {
	case kind != regularFile:
		tell(initial.At("data_file"), stateFile, "failed to open text file for read %s/initial_state/%s: No such file or directory", c.Name, *initial.DataFile)
	case initial.DataType != configgen.TypeString && size < need:
		tell(initial.At("data_file"), stateFile, "initial_state setting expects %d bytes, but the data provided from %sonly has %d bytes.", need, *initial.DataFile, size)
	}
}

// slotLimit is far beyond what anybody serves and well below what a host's memory
// holds.
const slotLimit = 1 << 24

func (c *context) checkSlotMemory() {
	s := c.Config.SequenceBatching
	if s == nil || s.Oldest != nil {
		return
	}
	instances := c.instanceCount()
	if slots := int64(c.Config.MaxBatchSize) * instances; slots > slotLimit {
		f := c.report(c.Config.At("max_batch_size"), slots, c.Config.MaxBatchSize, instances)
		says(f, "died of signal SIGABRT; std::bad_alloc")
	}
}

// instanceCount is how many instances the model has.
func (c *context) instanceCount() (n int64) {
	for _, g := range c.groups() {
		n += int64(max(1, g.Count)) * int64(max(1, len(g.GPUs)))
	}
	return max(1, n)
}
