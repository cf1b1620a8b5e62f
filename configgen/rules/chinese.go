package rules

import "regexp"

// inBoth gives a text of package soc in both languages. That package holds facts and
// speaks English; a text that has no row here stays as it is, which a test forbids.
func inBoth(english string) Text {
	if chinese, ok := chineseTexts[english]; ok {
		return Text{english, chinese}
	}
	for _, p := range chinesePatterns {
		if p.english.MatchString(english) {
			return Text{english, p.english.ReplaceAllString(english, p.chinese)}
		}
	}
	return same(english)
}

// chinesePatterns are texts that hold names and numbers.
var chinesePatterns = []struct {
	english *regexp.Regexp
	chinese string
}{
	{regexp.MustCompile(`^no kernel for (\S+) is known on (.+)$`), "$2 上未知 $1 的 kernel"},
	{regexp.MustCompile(`^(\S+) has a kernel for the AI CPU only on (.+)$`), "$2 上 $1 只有 AI CPU 的 kernel"},
	{regexp.MustCompile(`^the shape of what (\S+) gives depends on values, so the model is not static$`), "$1 输出的形状取决于数值，因此模型不是静态的"},
	{regexp.MustCompile(`^CANN's parser does not know (\S+), at no opset$`), "CANN 解析器在任何 opset 都不认识 $1"},
	{regexp.MustCompile(`^the model imports opset (\d+); CANN's parser knows (\S+) at (.+) and takes no other$`), "模型导入 opset $1；CANN 解析器只在 $3 认识 $2"},
	{regexp.MustCompile(`^the model imports opset (\d+); CANN's parser begins at (\d+)$`), "模型导入 opset $1；CANN 解析器从 $2 开始支持"},
	{regexp.MustCompile(`^CANN's parser knows (\S+) at opset (.+), not at (\d+)$`), "CANN 解析器在 opset $2 认识 $1，在 $3 不认识"},
	{regexp.MustCompile(`^CANN's parser knows no operator (\S+)$`), "CANN 解析器不认识算子 $1"},
	{regexp.MustCompile(`^CANN's parser knows no operator (\S+); the nearest name is (.+)$`), "CANN 解析器不认识算子 $1；最接近的名字是 $2"},
	{regexp.MustCompile(`^CANN's parser knows no operators of the domain (.+)$`), "CANN 解析器不认识域 $1 的任何算子"},
	{regexp.MustCompile(`^convert the model to opset (\d+)$`), "把模型转换到 opset $1"},
	{regexp.MustCompile(`^write the operators of domain (".*") with those of ONNX, or expand the function if it is one of the model's own$`), "用 ONNX 的算子改写域 $1 的算子；若是模型自带的函数则将其展开"},
}

// chineseTexts are remedies of the table of operators.
var chineseTexts = map[string]string{
	"":                                       "",
	"cast int64 and bool to int32 around it": "在它前后把 int64 和 bool 转换为 int32",
	"cast int64 indices to int32":            "把 int64 索引转换为 int32",
	"cast int64 to int32 around it":          "在它前后把 int64 转换为 int32",
	"compute in float, or quantize with the AscendQuant operators": "用浮点计算，或用 AscendQuant 算子量化",
	"do it on the host, outside of the model":                      "放到主机上、模型之外去做",
	"end the model before it and run it on the host":               "在它之前结束模型，在主机上运行它",
	"fold it":                                      "将其折叠为常量",
	"fold it, or do it outside of the model":       "将其折叠为常量，或放到模型之外去做",
	"fold it, or use a mask":                       "将其折叠为常量，或使用掩码",
	"gather with constant indices":                 "用常量索引做 Gather",
	"its size is constant: fold it":                "它的大小是常量：将其折叠",
	"keep integers out of it where they are int64": "不要让 int64 整数经过它",
	"leave the training loss out":                  "去掉训练用的损失",
	"make its shape constant":                      "让它的形状成为常量",
	"make the random numbers an input":             "把随机数改为输入",
	"multiply or divide int32 by the power of two": "用 int32 乘以或除以 2 的幂",
	"remove it":                      "去掉它",
	"unroll it":                      "将其展开",
	"unroll it into MatMul and Tanh": "展开为 MatMul 和 Tanh",
	"unroll it where the number of turns is constant, else split the model there": "循环次数为常量时将其展开，否则在该处拆分模型",
	"use Resize":          "使用 Resize",
	"use ScatterElements": "使用 ScatterElements",
	"use ScatterND, or a mask with constant indices":          "使用 ScatterND，或用常量索引的掩码",
	"use a mask of fixed size":                                "使用固定大小的掩码",
	"use opset 17, or Abs and ReduceSum":                      "使用 opset 17，或 Abs 和 ReduceSum",
	"use opset 17, or Mul, ReduceSum and Sqrt":                "使用 opset 17，或 Mul、ReduceSum 和 Sqrt",
	"use the Ascend operator DeformableConv2D":                "使用昇腾算子 DeformableConv2D",
	"write boolean branches with And, Or and Not":             "用 And、Or 和 Not 写布尔分支",
	"write it as ArgMax and OneHot":                           "改写为 ArgMax 和 OneHot",
	"write it as Cast":                                        "改写为 Cast",
	"write it as Conv or MatMul with constant bases":          "改写为常量基的 Conv 或 MatMul",
	"write it as MatMul and Softmax":                          "改写为 MatMul 和 Softmax",
	"write it as MatMul with a constant matrix":               "改写为常量矩阵的 MatMul",
	"write it as Reshape, InstanceNormalization, Mul and Add": "改写为 Reshape、InstanceNormalization、Mul 和 Add",
	"write it as ScatterND":                                   "改写为 ScatterND",
	"write it as Sigmoid and Mul":                             "改写为 Sigmoid 和 Mul",
	"write it as Slice and Pad":                               "改写为 Slice 和 Pad",
	"write it in simpler operators":                           "用更简单的算子改写",
	"write it with Erf or Tanh":                               "用 Erf 或 Tanh 改写",
	"write it with ReduceMean, or use npu::NPURmsNorm":        "用 ReduceMean 改写，或使用 npu::NPURmsNorm",
	"write out the formula of small matrices":                 "小矩阵直接写出公式",
	"write sequences of fixed length as separate tensors":     "把固定长度的序列写成多个张量",
}
