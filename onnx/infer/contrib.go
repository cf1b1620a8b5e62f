package infer

import "github.com/npuctl/npuctl/onnx/tensor"

// microsoft is the domain of ONNX Runtime's own operators.
const microsoft = "com.microsoft"

// contribOperators are operators of ONNX Runtime that its quantiser and its
// optimiser leave in models people ship. The interpreter does not run them; their
// shapes are documented with ONNX Runtime, and follow from their inputs alone.
var contribOperators = []operator{
	{microsoft, "DynamicQuantizeLSTM", 1, likeInput(0, recurrent)},
	{microsoft, "DynamicQuantizeMatMul", 1, likeInput(0, matMul(0, 1))},
	{microsoft, "MatMulIntegerToFloat", 1, likeInput(2, matMul(0, 1))},
	{microsoft, "Gelu", 1, likeInput(0, sameAsFirst)},
	{microsoft, "FastGelu", 1, likeInput(0, sameAsFirst)},
	{microsoft, "QuickGelu", 1, likeInput(0, sameAsFirst)},
	{microsoft, "BiasGelu", 1, likeInput(0, sameAsFirst)},
	{microsoft, "QLinearSigmoid", 1, likeInput(0, sameAsFirst)},
	{microsoft, "QLinearLeakyRelu", 1, likeInput(0, sameAsFirst)},
	{microsoft, "SkipLayerNormalization", 1, likeInput(0, sameAsFirst)},
	{microsoft, "SkipSimplifiedLayerNormalization", 1, likeInput(0, sameAsFirst)},
}

// likeInput gives every output the element type of an input, and the shapes that r says.
func likeInput(input int, r rule) rule {
	return func(c *call) {
		r(c)
		if t := c.in(input).Elem; t != tensor.Undefined {
			for i := range c.outputs {
				c.setElem(i, t)
			}
		}
	}
}
