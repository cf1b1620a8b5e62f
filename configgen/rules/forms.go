package rules

import (
	"slices"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// A form is a way of writing a node that CANN's parser does not take, though it knows
// the operator, or takes for something else. The table solves kinds, not models: what
// is asked is the node's attributes, inputs and outputs.
type form struct {
	operators   []string
	first, last int // opsets of ai.onnx at which it holds
	rule        string
	applies     func(onnxNode) bool
	reason      Text
	remedy      Text // empty for what the rule says
}

// onnxNode is a node with what is known of its tensors.
type onnxNode struct {
	*onnx.Node
	// rank and size answer by the file's own types: -1 is not known.
	rank func(v *onnx.Value) int
	size func(v *onnx.Value, axis int) int64
}

// Names of rules about nodes.
const (
	refusedRule  = "chip-refused"
	formRule     = "chip-form"
	misreadRule  = "chip-misread"
	slowRule     = "chip-slow"
	dynamicRule  = "chip-dynamic"
	unprovenRule = "chip-unproven"
)

// anyOpset is the last opset of forms that hold for all that the parser knows.
const anyOpset = 1 << 20

// forms is the table: first what the parser refuses, then what it dies of, then what
// it reads as something else, then what the AI Core leaves to the AI CPU.
func forms() []form {
	return slices.Concat(refusedForms(), crashForms(), misreadForms(), slowForms())
}

var explicitPads = Text{"compute the padding and write it as pads", "算出填充并写成 pads"}

func refusedForms() []form {
	row := func(operators []string, first, last int, applies func(onnxNode) bool, reason, remedy Text) form {
		return form{operators, first, last, formRule, applies, reason, remedy}
	}
	return []form{
		row([]string{"Transpose"}, 0, anyOpset, lacks("perm"),
			Text{"it has no perm, and the parser does not know ONNX's default", "没有 perm，而解析器不知道 ONNX 的默认值"},
			Text{"write perm: the axes in reverse order", "写上 perm：轴的逆序"}),
		row([]string{"Conv"}, 0, anyOpset, lacks("kernel_shape", "pads", "strides", "dilations"),
			Text{"it has none of kernel_shape, pads, strides and dilations", "kernel_shape、pads、strides、dilations 一个都没有"},
			Text{"write kernel_shape: the weight's last dims", "写上 kernel_shape：权重的最后几维"}),
		row([]string{"Conv"}, 0, anyOpset, func(n onnxNode) bool { return isSame(n) && n.spatial() == 3 },
			Text{"it has three spatial axes and auto_pad SAME_…", "有三个空间轴且 auto_pad 为 SAME_…"}, explicitPads),
		row([]string{"ConvTranspose"}, 0, anyOpset, lacks("kernel_shape"),
			Text{"it has no kernel_shape", "没有 kernel_shape"},
			Text{"write kernel_shape: the weight's last dims", "写上 kernel_shape：权重的最后几维"}),
		row([]string{"Clip"}, 11, anyOpset, func(n onnxNode) bool { return n.Input(1) == nil && n.Input(2) == nil },
			Text{"it has neither min nor max", "既没有 min 也没有 max"}, Text{"remove it: it changes nothing", "删去：它不改变任何值"}),
		row([]string{"Split"}, 0, 12, func(n onnxNode) bool {
			sizes, ok := n.Ints("split")
			return ok && len(sizes) != len(n.Outputs())
		}, Text{"split has another number of parts than there are outputs", "split 的个数与输出数不同"}, Text{"write one size for each output", "每个输出写一个大小"}),
		row([]string{"Split"}, 18, 18, func(n onnxNode) bool { return n.splitsByCount() && !n.isComputed(0) && !n.splitsEvenly() },
			Text{"num_outputs does not fit: it has to be the number of outputs and divide the axis, whose size has to be known", "num_outputs 不合适：必须等于输出数并整除该轴，且该轴大小已知"},
			Text{"give the sizes as a constant second input", "用常量的第二个输入给出各部分大小"}),
		row([]string{"MaxPool"}, 8, anyOpset, func(n onnxNode) bool { return n.Output(1) != nil },
			Text{"it gives the indices, too", "它还输出索引"}, Text{"do without the indices, or compute them outside", "不使用索引输出，或在模型外计算"}),
		row([]string{"MaxPool"}, 8, anyOpset, func(n onnxNode) bool { return n.Int("storage_order", 0) != 0 },
			Text{"storage_order is not 0", "storage_order 不是 0"}, Text{"remove storage_order", "删去 storage_order"}),
		row([]string{"ArgMax", "ArgMin"}, 12, anyOpset, func(n onnxNode) bool { return n.Int("select_last_index", 0) != 0 },
			Text{"select_last_index is 1", "select_last_index 为 1"}, Text{"use select_last_index 0, over the reversed axis", "反转该轴后用 select_last_index 0"}),
		row([]string{"Selu"}, 0, anyOpset, func(n onnxNode) bool {
			return isOff(n.Float("alpha", seluAlpha), seluAlpha) || isOff(n.Float("gamma", seluGamma), seluGamma)
		}, Text{"alpha or gamma is not the default", "alpha 或 gamma 不是默认值"}, Text{"write it as Elu times gamma", "写成 Elu 乘以 gamma"}),
		row([]string{"GatherND"}, 12, anyOpset, func(n onnxNode) bool { return n.Int("batch_dims", 0) != 0 },
			Text{"batch_dims is not 0", "batch_dims 不是 0"}, Text{"use GatherElements, or indices that hold the batch", "使用 GatherElements，或让索引包含批"}),
		row([]string{"ScatterND"}, 16, anyOpset, func(n onnxNode) bool { return n.String("reduction", "none") == "mul" },
			Text{"reduction is mul", "reduction 为 mul"}, Text{"gather, multiply and scatter without reduction", "先 Gather 再相乘，然后不带 reduction 地 Scatter"}),
		row([]string{"IsInf"}, 10, anyOpset, func(n onnxNode) bool { return n.Int("detect_negative", 1) == 0 || n.Int("detect_positive", 1) == 0 },
			Text{"it looks for one sign of infinity only", "只检测一种符号的无穷"}, Text{"detect both, and And it with a comparison to 0", "两种都检测，再与 0 的比较相与"}),
		row([]string{"Col2Im"}, 18, anyOpset, func(n onnxNode) bool {
			pads, _ := n.Ints("pads")
			return n.Attribute("dilations") == nil || len(pads) == 4
		}, Text{"it has no dilations, or pads of four numbers", "没有 dilations，或 pads 有四个数"}, Text{"write dilations, and pad outside", "写上 dilations，并在外部填充"}),
		row([]string{"Resize"}, 10, 10, func(n onnxNode) bool { return n.String("mode", "nearest") == "cubic" },
			Text{"mode is cubic", "mode 为 cubic"}, Text{"convert the model to opset 11 or newer", "把模型转换到 opset 11 或更新"}),
		row([]string{"Pad"}, 18, anyOpset, func(n onnxNode) bool { return n.Input(3) != nil },
			Text{"it has axes", "它有 axes 输入"}, Text{"write pads for every axis and no axes", "为每个轴写 pads，不写 axes"}),
		row([]string{"ReduceSumSquare"}, 18, anyOpset, func(n onnxNode) bool { return n.Input(1) != nil },
			Text{"its axes are an input", "axes 以输入给出"}, Text{"write Mul and ReduceSum, or convert the model to opset 17", "写成 Mul 加 ReduceSum，或转换到 opset 17"}),
		row([]string{"Upsample"}, 0, 8, func(onnxNode) bool { return true },
			Text{"its scales are an attribute", "scales 以属性给出"}, Text{"convert the model to opset 11 or newer: it becomes Resize", "把模型转换到 opset 11 或更新，变为 Resize"}),
		row([]string{"If"}, 0, anyOpset, func(n onnxNode) bool { return len(n.Attributes()) > 2 },
			Text{"it has attributes besides its two branches", "除两个分支外还有其他属性"}, Text{"remove them", "删去它们"}),
		row([]string{"If"}, 0, anyOpset, omitsInput,
			Text{"a node in a branch leaves an optional input out", "分支中有节点省略了可选输入"}, Text{"give the input a constant, or decide the If: npuctl optimize inlines one whose condition is constant", "给该输入一个常量，或消除 If：npuctl optimize 会内联条件为常量的 If"}),
		row([]string{"Constant"}, 0, anyOpset, func(n onnxNode) bool {
			return slices.ContainsFunc([]string{"value_int", "value_ints", "value_float", "value_floats", "value_string", "value_strings", "sparse_value"}, func(a string) bool { return n.Attribute(a) != nil })
		}, Text{"the parser reads value alone: it takes this for an empty constant, without a word", "解析器只读 value：会把它当成空常量，且没有提示"},
			Text{"store the constant as an initializer, or as value; npuctl optimize does", "把常量存为 initializer 或 value；npuctl optimize 会这样做"}),
		row([]string{"Constant"}, 0, anyOpset, func(n onnxNode) bool {
			t := n.ConstantValue()
			return t != nil && slices.Contains(unreadTypes, t.Type())
		}, Text{"the parser does not read constants of its type", "解析器不读取该类型的常量"}, Text{"store another type and cast", "存为其他类型再转换"}),
	}
}

// crashForms end the parser's process: npu_ge runs it in the server's own.
func crashForms() []form {
	return []form{{[]string{"Split"}, 18, 18, formRule, func(n onnxNode) bool { return n.splitsByCount() && n.isComputed(0) },
		Text{"num_outputs of what a node computed: the parser's process dies, and with npu_ge the server", "对节点计算结果用 num_outputs：解析进程崩溃，在 npu_ge 中连同服务器"},
		Text{"give the sizes as a constant second input", "用常量的第二个输入给出各部分大小"}}}
}

func misreadForms() []form {
	row := func(operators []string, applies func(onnxNode) bool, reason Text) form {
		return form{operators, 0, anyOpset, misreadRule, applies, reason, Text{}}
	}
	dropped := func(attribute string) Text {
		return Text{"the parser drops " + attribute + " without a word", "解析器不提示地丢弃 " + attribute}
	}
	isList := func(attribute string, want int64) func(onnxNode) bool {
		return func(n onnxNode) bool {
			values, _ := n.Ints(attribute)
			return slices.ContainsFunc(values, func(v int64) bool { return v != want })
		}
	}
	isSet := func(attribute string) func(onnxNode) bool {
		return func(n onnxNode) bool { return n.Int(attribute, 0) != 0 }
	}
	isThere := func(attribute string) func(onnxNode) bool {
		return func(n onnxNode) bool { return n.Attribute(attribute) != nil }
	}
	recurrent := []string{"LSTM", "GRU"}
	return []form{
		row([]string{"MaxPool"}, func(n onnxNode) bool { return n.spatial() == 2 && isList("dilations", 1)(n) }, dropped("dilations")),
		row([]string{"MaxPool", "AveragePool"}, func(n onnxNode) bool { return n.String("auto_pad", "NOTSET") == "SAME_LOWER" },
			Text{"the parser takes SAME_LOWER for SAME_UPPER", "解析器把 SAME_LOWER 当作 SAME_UPPER"}),
		row([]string{"LpPool"}, isSet("ceil_mode"), dropped("ceil_mode")),
		row([]string{"LpPool"}, isList("dilations", 1), dropped("dilations")),
		row([]string{"Resize"}, isSet("antialias"), dropped("antialias")),
		row([]string{"Resize"}, isThere("axes"), dropped("axes")),
		row([]string{"Resize"}, func(n onnxNode) bool {
			return n.String("keep_aspect_ratio_policy", "stretch") != "stretch"
		}, dropped("keep_aspect_ratio_policy")),
		row([]string{"Resize"}, func(n onnxNode) bool {
			mode := n.String("nearest_mode", "round_prefer_floor")
			return n.String("mode", "nearest") == "nearest" && (mode == "ceil" || mode == "round_prefer_ceil")
		}, dropped("nearest_mode")),
		row([]string{"Resize"}, func(n onnxNode) bool {
			return n.String("mode", "nearest") == "cubic" && isOff(n.Float("cubic_coeff_a", cubicCoefficient), cubicCoefficient)
		}, dropped("cubic_coeff_a")),
		row([]string{"Resize"}, isSet("exclude_outside"), dropped("exclude_outside")),
		row([]string{"Resize"}, func(n onnxNode) bool { return isOff(n.Float("extrapolation_value", 0), 0) }, dropped("extrapolation_value")),
		row([]string{"Resize", "Upsample"}, scalesOtherAxes,
			Text{"nearest scales the last two axes alone", "nearest 只缩放最后两个轴"}),
		{[]string{"Shape"}, 15, anyOpset, misreadRule, func(n onnxNode) bool { return n.Int("start", 0) != 0 || n.Attribute("end") != nil },
			dropped("start, end"), Text{"fix the sizes: npuctl optimize --static computes it once and for all", "固定大小：npuctl optimize --static 会预先算出它"}},
		row([]string{"Unique"}, isThere("axis"), dropped("axis")),
		row([]string{"Unique"}, func(n onnxNode) bool { return n.Output(1) != nil && n.Output(1).HasUses() },
			Text{"the first indices that it gives are zeros", "它输出的首次索引全为 0"}),
		row([]string{"Mod"}, isSet("fmod"), Text{"the parser drops fmod without a word; results differ where an operand is negative", "解析器不提示地丢弃 fmod；有负数时结果不同"}),
		row([]string{"RoiAlign"}, func(n onnxNode) bool { return n.String("mode", "avg") != "avg" }, dropped("mode")),
		row(recurrent, isThere("activations"), dropped("activations")),
		row(recurrent, isThere("clip"), dropped("clip")),
		row(recurrent, isSet("layout"), dropped("layout")),
		row([]string{"LSTM"}, isSet("input_forget"), dropped("input_forget")),
		row([]string{"GRU"}, isSet("linear_before_reset"), dropped("linear_before_reset")),
		row([]string{"If"}, capturesFromAfar, Text{"a nested If takes a tensor from two graphs up, and is left without it", "嵌套的 If 取用上两层图的张量，结果该输入悬空"}),
	}
}

// The limits of pooling on the AI Core.
const (
	poolStride = 63
	poolArea   = 255
)

func slowForms() []form {
	row := func(operators []string, applies func(onnxNode) bool, reason, remedy Text) form {
		return form{operators, 0, anyOpset, slowRule, applies, reason, remedy}
	}
	return []form{
		row([]string{"MaxPool", "AveragePool"}, func(n onnxNode) bool {
			strides, _ := n.Ints("strides")
			kernel, _ := n.Ints("kernel_shape")
			area := int64(1)
			for _, k := range kernel {
				area *= max(1, min(k, 1<<20))
				if area > poolArea {
					return true
				}
			}
			return slices.ContainsFunc(strides, func(s int64) bool { return s > poolStride })
		}, Text{"a window of more than 255 elements, or a stride above 63, runs on the AI CPU", "窗口超过 255 个元素或步长超过 63 时在 AI CPU 上运行"},
			Text{"pool in two stages, or use a global pool or ReduceMax where the window is the whole plane", "分两级池化；窗口为整个平面时用全局池化或 ReduceMax"}),
		row([]string{"TopK"}, func(n onnxNode) bool { return n.Int("sorted", 1) == 0 },
			Text{"sorted is 0, which runs on the AI CPU", "sorted 为 0，在 AI CPU 上运行"}, Text{"set sorted to 1: any order is right when 0 is asked for", "把 sorted 设为 1：要求 0 时任何次序都正确"}),
	}
}

// unreadTypes are those whose constants the parser does not read.
var unreadTypes = []tensor.Type{tensor.Float8E4M3FN, tensor.Float8E4M3FNUZ, tensor.Float8E5M2, tensor.Float8E5M2FNUZ, tensor.Uint4, tensor.Float4E2M1, tensor.Float8E8M0}

// Defaults of attributes, as the specification has them.
const (
	seluAlpha        = 1.67326319217681884765625
	seluGamma        = 1.05070102214813232421875
	cubicCoefficient = -0.75
)

// isOff says whether a float is another one than it should be, beyond what writing it
// with few digits costs.
func isOff(value, want float32) bool { return max(value-want, want-value) > 1e-4 }

// lacks says of nodes whether they have none of some attributes.
func lacks(attributes ...string) func(onnxNode) bool {
	return func(n onnxNode) bool {
		return !slices.ContainsFunc(attributes, func(a string) bool { return n.Attribute(a) != nil })
	}
}

func isSame(n onnxNode) bool {
	pad := n.String("auto_pad", "NOTSET")
	return pad == "SAME_UPPER" || pad == "SAME_LOWER"
}

// spatial is the number of axes behind batch and channels; -1 when nothing tells.
func (n onnxNode) spatial() int {
	if kernel, ok := n.Ints("kernel_shape"); ok {
		return len(kernel)
	}
	for _, i := range []int{1, 0} { // the weight, else the input
		if v := n.Input(i); v != nil {
			if rank := n.rank(v); rank > 2 {
				return rank - 2
			}
		}
	}
	return -1
}

// splitsByCount says whether a Split has no sizes.
func (n onnxNode) splitsByCount() bool { return n.Input(1) == nil }

// isComputed says whether an input comes from a node.
func (n onnxNode) isComputed(i int) bool {
	v := n.Input(i)
	return v != nil && v.Producer() != nil
}

// splitsEvenly says whether the axis is known and can be shared out to the outputs.
func (n onnxNode) splitsEvenly() bool {
	outputs := int64(len(n.Outputs()))
	v := n.Input(0)
	if v == nil || n.Int("num_outputs", outputs) != outputs || outputs == 0 {
		return false
	}
	axis := int(n.Int("axis", 0))
	if axis < 0 {
		axis += n.rank(v)
	}
	size := n.size(v, axis)
	return size >= 0 && size%outputs == 0
}

// omitsInput says whether a node in a branch leaves an optional input out.
func omitsInput(n onnxNode) bool {
	return slices.ContainsFunc(n.Subgraphs(), func(g *onnx.Graph) bool {
		return slices.ContainsFunc(g.Nodes(), func(inner *onnx.Node) bool { return slices.Contains(inner.Inputs(), nil) })
	})
}

// capturesFromAfar says whether a node inside this one's branches holds a graph that
// takes a tensor from outside of this one.
func capturesFromAfar(n onnxNode) bool {
	return slices.ContainsFunc(n.Subgraphs(), func(branch *onnx.Graph) bool {
		return slices.ContainsFunc(branch.Nodes(), func(inner *onnx.Node) bool {
			return slices.ContainsFunc(inner.Subgraphs(), func(g *onnx.Graph) bool {
				return slices.ContainsFunc(g.Captures(), func(v *onnx.Value) bool { return v.Graph() != branch && v.Graph() != g && !branch.Encloses(v.Graph()) })
			})
		})
	})
}

// scalesOtherAxes says whether a nearest resize changes batch or channels, or has more
// axes than height and width. Only constant scales tell.
func scalesOtherAxes(n onnxNode) bool {
	if n.String("mode", "nearest") != "nearest" {
		return false
	}
	at := 2
	if n.Is("Upsample") || n.Opset() < 11 {
		at = 1
	}
	v := n.Input(at)
	if v == nil || v.Constant() == nil || v.Constant().Type() != tensor.Float32 || v.Constant().Len() > 8 {
		return false
	}
	dense, err := v.Constant().Dense()
	if err != nil {
		return false
	}
	scales := tensor.Data[float32](dense)
	return len(scales) > 2 && slices.ContainsFunc(scales[:len(scales)-2], func(s float32) bool { return s != 1 })
}
