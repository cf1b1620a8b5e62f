package infer

// lossOperators are for training.
var lossOperators = []operator{
	{name: "NegativeLogLikelihoodLoss", since: 12, rule: loss},
	{name: "SoftmaxCrossEntropyLoss", since: 12, rule: loss},
	{domain: "ai.onnx.preview.training", name: "Gradient", since: 1, rule: gradient},
	{domain: "ai.onnx.preview.training", name: "Adagrad", since: 1, rule: optimizer},
	{domain: "ai.onnx.preview.training", name: "Adam", since: 1, rule: optimizer},
	{domain: "ai.onnx.preview.training", name: "Momentum", since: 1, rule: optimizer},
}

// loss is one number, or with reduction none one for each label; the logarithms
// of the probabilities may come beside.
func loss(c *call) {
	if c.string("reduction", "mean") == "none" {
		c.sameDims(0, 1)
	} else {
		c.setDims(0)
	}
	c.setElem(1, c.in(0).Elem)
	c.sameDims(1, 0)
}

// gradient gives for each variable that xs names what has its shape; which
// inputs those are the attributes xs and zs say, xs first.
func gradient(c *call) {
	for i := range c.outputs {
		c.setElem(i, c.in(i).Elem)
		c.sameDims(i, i)
	}
}

// optimizer gives new tensors and states for those after the learning rate and
// the step: the tensors in front, their gradients in between left out.
func optimizer(c *call) {
	n := len(c.outputs)
	for i := range c.outputs {
		c.setElem(i, c.in(2+i).Elem)
	}
	perTensor := map[string]int{"Adagrad": 3, "Momentum": 3, "Adam": 4}[c.node.OpType]
	tensors := (len(c.inputs) - 2) / perTensor
	for i := range n {
		from := 2 + i
		if i >= tensors {
			from += tensors
		}
		c.setElem(i, c.in(from).Elem)
		c.sameDims(i, from)
	}
}
