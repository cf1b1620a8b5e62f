package infer

import "github.com/npuctl/npuctl/onnx/tensor"

// attentionOperators are the building blocks of transformers, and other layers
// that carry a state.
var attentionOperators = []operator{
	{name: "Attention", since: 23, rule: attention},
	{name: "RotaryEmbedding", since: 23, rule: sameAsFirst},
	{name: "LinearAttention", since: 27, rule: linearAttention},
	{name: "CausalConvWithState", since: 27, rule: causalConvolution},
	{domain: "ai.onnx.preview", name: "FlexAttention", since: 1, rule: flexAttention},
}

// heads is one of the three inputs of an attention, as batch, heads, length and size.
type heads struct{ batch, heads, length, size Dim }

// heads reads input i: four dims, or three with the heads in the last, as many
// as the attribute says.
func (c *call) heads(i int, attribute string) (h heads, ok bool) {
	dims, ok := c.dims(i)
	switch {
	case ok && len(dims) == 4:
		return heads{dims[0], dims[1], dims[2], dims[3]}, true
	case ok && len(dims) == 3:
		n := Const(c.int(attribute, 0))
		return heads{dims[0], n, dims[1], dims[2].Div(n)}, true
	}
	return heads{}, false
}

// attention gives the result in the form of the query, the keys and values with
// those of the past before them, and the scores.
func attention(c *call) {
	for i := range c.outputs {
		c.setElem(i, c.in(0).Elem)
	}
	c.setElem(2, firstElem(c.in(2), c.in(0)))
	query, ok := c.heads(0, "q_num_heads")
	key, okKey := c.heads(1, "kv_num_heads")
	value, okValue := c.heads(2, "kv_num_heads")
	if !ok || !okKey || !okValue {
		return
	}
	if len(c.in(0).Dims) == 4 {
		c.setDims(0, query.batch, query.heads, query.length, value.size)
	} else {
		c.setDims(0, query.batch, query.length, query.heads.Mul(value.size))
	}
	total := key.length
	if c.has(4) {
		total = Unknown()
		if past, ok := c.dims(4); ok && len(past) == 4 {
			total = past[2].Add(key.length)
		}
	}
	if total.IsUnknown() {
		total = c.fresh()
	}
	c.setDims(1, key.batch, key.heads, total, key.size)
	c.setDims(2, value.batch, value.heads, total, value.size)
	c.setDims(3, query.batch, query.heads, query.length, total)
}

// flexAttention takes four dims always.
func flexAttention(c *call) {
	query, ok := c.dims(0)
	value, okToo := c.dims(2)
	if ok && okToo && len(query) == 4 && len(value) == 4 {
		c.setDims(0, query[0], query[1], query[2], value[3])
	}
}

// linearAttention keeps a matrix for each head of keys and values.
func linearAttention(c *call) {
	query, ok := c.heads(0, "q_num_heads")
	key, okKey := c.heads(1, "kv_num_heads")
	value, okValue := c.heads(2, "kv_num_heads")
	c.setElem(1, firstElem(c.in(3), &Info{Elem: tensor.Undefined}))
	if !c.has(3) {
		c.setElem(1, c.in(0).Elem)
	}
	if !ok || !okKey || !okValue {
		return
	}
	c.setDims(0, query.batch, query.length, query.heads.Mul(value.size))
	c.setDims(1, key.batch, key.heads, key.size, value.size)
}

// causalConvolution carries the last inputs, one fewer than the kernel is long.
func causalConvolution(c *call) {
	c.sameDims(0, 0)
	batch, channels, carried := Unknown(), Unknown(), Unknown()
	if dims, ok := c.dims(0); ok && len(dims) == 3 {
		batch, channels = dims[0], dims[1]
	}
	if weights, ok := c.dims(1); ok && len(weights) == 3 {
		carried = weights[2].AddConst(-1)
	}
	c.setDims(1, batch, channels, carried)
}
