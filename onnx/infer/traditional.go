package infer

import (
	"slices"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// machineLearning is the domain of classifiers, trees and the like.
const machineLearning = "ai.onnx.ml"

// traditionalOperators are those of domain ai.onnx.ml.
var traditionalOperators = []operator{
	{domain: machineLearning, name: "ArrayFeatureExtractor", since: 1, rule: arrayFeatureExtractor},
	{domain: machineLearning, name: "Binarizer", since: 1, rule: sameAsFirst},
	{domain: machineLearning, name: "CastMap", since: 1, rule: castMap},
	{domain: machineLearning, name: "CategoryMapper", since: 1, rule: categoryMapper},
	{domain: machineLearning, name: "DictVectorizer", since: 1, rule: dictVectorizer},
	{domain: machineLearning, name: "FeatureVectorizer", since: 1, rule: featureVectorizer},
	{domain: machineLearning, name: "Imputer", since: 1, rule: sameAsFirst},
	{domain: machineLearning, name: "LabelEncoder", since: 1, rule: labelEncoder},
	{domain: machineLearning, name: "LinearClassifier", since: 1, rule: classifier},
	{domain: machineLearning, name: "LinearRegressor", since: 1, rule: regressor},
	{domain: machineLearning, name: "Normalizer", since: 1, rule: sameAsFirst},
	{domain: machineLearning, name: "OneHotEncoder", since: 1, rule: oneHotEncoder},
	{domain: machineLearning, name: "SVMClassifier", since: 1, rule: classifier},
	{domain: machineLearning, name: "SVMRegressor", since: 1, rule: regressor},
	{domain: machineLearning, name: "Scaler", since: 1, rule: sameAsFirst},
	{domain: machineLearning, name: "TreeEnsemble", since: 5, rule: regressor},
	{domain: machineLearning, name: "TreeEnsembleClassifier", since: 1, rule: classifier},
	{domain: machineLearning, name: "TreeEnsembleRegressor", since: 1, rule: regressor},
	{domain: machineLearning, name: "ZipMap", since: 1, rule: zipMap},
}

// length gives the number of entries of a list attribute, 0 when it is left out.
func (c *call) length(name string) int {
	a := c.attribute(name)
	switch {
	case a == nil:
		return 0
	case a.Tensor() != nil:
		return a.Tensor().Len()
	}
	return len(a.Ints()) + len(a.Floats()) + len(a.Strings())
}

// rows gives the batch size of input 0: its first dim, or 1 of a vector.
func (c *call) rows() Dim {
	dims, ok := c.dims(0)
	switch {
	case ok && len(dims) >= 2:
		return dims[0]
	case ok && len(dims) == 1:
		return Const(1)
	}
	return Unknown()
}

// arrayFeatureExtractor picks from the last axis; a vector becomes a row.
func arrayFeatureExtractor(c *call) {
	dims, ok := c.dims(0)
	if !ok || len(dims) == 0 {
		return
	}
	out := slices.Clone(dims)
	if len(out) == 1 {
		out = []Dim{Const(1), Unknown()}
	}
	out[len(out)-1] = c.in(1).Count()
	c.setDims(0, out...)
}

// castMap gives one row, as wide as asked for when sparse.
func castMap(c *call) {
	types := map[string]tensor.Type{"TO_FLOAT": tensor.Float32, "TO_STRING": tensor.String, "TO_INT64": tensor.Int64}
	c.setElem(0, types[c.string("cast_to", "TO_FLOAT")])
	width := Unknown()
	if c.string("map_form", "DENSE") == "SPARSE" {
		width = Const(c.int("max_map", 1))
	}
	c.setDims(0, Const(1), width)
}

// categoryMapper turns strings to integers, or the other way round.
func categoryMapper(c *call) {
	c.sameDims(0, 0)
	switch c.in(0).Elem {
	case tensor.String:
		c.setElem(0, tensor.Int64)
	case tensor.Int64:
		c.setElem(0, tensor.String)
	}
}

// dictVectorizer looks up every key of its vocabulary.
func dictVectorizer(c *call) {
	if inner := c.in(0).Inner; inner != nil {
		c.setElem(0, inner.Elem)
	}
	c.setDims(0, Const(1), Const(int64(c.length("string_vocabulary")+c.length("int64_vocabulary"))))
}

// featureVectorizer joins rows.
func featureVectorizer(c *call) {
	c.setElem(0, tensor.Float32)
	width := Const(0)
	if list, ok := c.intList("inputdimensions"); ok {
		for _, n := range list {
			width = width.AddConst(n)
		}
	} else {
		width = Unknown()
	}
	c.setDims(0, c.rows(), width)
}

// labelEncoder replaces each element. Before opset 2 it goes between strings and
// int64; later the type of the values decides.
func labelEncoder(c *call) {
	c.sameDims(0, 0)
	if c.opset < 2 {
		categoryMapper(c)
		return
	}
	switch {
	case c.attribute("values_strings") != nil:
		c.setElem(0, tensor.String)
	case c.attribute("values_int64s") != nil:
		c.setElem(0, tensor.Int64)
	case c.attribute("values_floats") != nil:
		c.setElem(0, tensor.Float32)
	}
	if a := c.attribute("values_tensor"); a != nil && a.Tensor() != nil {
		c.setElem(0, a.Tensor().Type())
	}
}

// classifier gives a label and the scores of all classes for each row.
func classifier(c *call) {
	c.setElem(0, tensor.Int64)
	c.setElem(1, tensor.Float32)
	strings := c.length("classlabels_strings")
	if strings > 0 {
		c.setElem(0, tensor.String)
	}
	labels := strings + c.length("classlabels_ints") + c.length("classlabels_int64s")
	rows := c.rows()
	if rows.IsUnknown() {
		rows = c.fresh()
	}
	c.setDims(0, rows)
	classes := Unknown()
	if labels > 1 {
		classes = Const(int64(labels))
	}
	c.setDims(1, rows, classes)
}

// regressor gives one column for each target.
func regressor(c *call) {
	targets := Const(c.int("targets", 1))
	if a := c.attribute("n_targets"); a != nil {
		targets = Const(a.Int())
	}
	c.setDims(0, c.rows(), targets)
}

// oneHotEncoder adds a dim with a place for each category.
func oneHotEncoder(c *call) {
	c.setElem(0, tensor.Float32)
	if dims, ok := c.dims(0); ok {
		n := max(c.length("cats_int64s"), c.length("cats_strings"))
		c.setDims(0, append(slices.Clone(dims), Const(int64(n)))...)
	}
}

// zipMap gives a map from class to score for each row.
func zipMap(c *call) {
	key := tensor.Int64
	if c.length("classlabels_strings") > 0 {
		key = tensor.String
	}
	score := Tensor(tensor.Float32)
	scores := Info{Kind: onnx.KindMap, Elem: key, Inner: &score}
	c.set(0, Info{Kind: onnx.KindSequence, Inner: &scores})
}
