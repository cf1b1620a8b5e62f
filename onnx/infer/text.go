package infer

import (
	"slices"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// textOperators read strings.
var textOperators = []operator{
	{name: "StringNormalizer", since: 10, rule: stringNormalizer},
	{name: "StringSplit", since: 20, rule: stringSplit},
	{name: "TfIdfVectorizer", since: 9, rule: tfIdfVectorizer},
}

// stringNormalizer may drop words, of a vector or of one row.
func stringNormalizer(c *call) {
	dims, ok := c.dims(0)
	if !ok || len(dims) == 0 {
		return
	}
	if words := c.attribute("stopwords"); words == nil || len(words.Strings()) == 0 {
		c.setDims(0, dims...)
		return
	}
	out := slices.Clone(dims)
	out[len(out)-1] = Unknown()
	c.setDims(0, out...)
}

// stringSplit gives the pieces of each string in a new last dim, and how many there are.
func stringSplit(c *call) {
	c.setElem(0, tensor.String)
	c.setElem(1, tensor.Int64)
	c.sameDims(1, 0)
	if dims, ok := c.dims(0); ok {
		c.setDims(0, append(slices.Clone(dims), Unknown())...)
	}
}

// tfIdfVectorizer counts the n-grams of a vector or of each row.
func tfIdfVectorizer(c *call) {
	c.setElem(0, tensor.Float32)
	indexes, _ := c.intList("ngram_indexes")
	dims, ok := c.dims(0)
	if !ok || len(dims) == 0 || len(indexes) == 0 {
		return
	}
	out := slices.Clone(dims)
	out[len(out)-1] = Const(slices.Max(indexes)).AddConst(1)
	c.setDims(0, out...)
}
