package eval

import (
	"fmt"
	"testing"
)

func TestFeatureOperators(t *testing.T) {
	stored := "float[2,2] x = {1, -2, 3, 4}, int64[2,2] i = {1, -2, 3, 4}, float[1,2] zeros = {0, 0}, float[1,3] odd = {nan, 1, nan}, int64[1,2] columns = {1, 0}, int64[1] three = {3}, float[2] v = {1, 2}, int32[2,1] narrow = {7, 8}"
	runOperatorCases(t, []operatorCase{
		{ml: 1, opset: 18, stored: stored, node: "y = ai.onnx.ml.Scaler <offset = [1.0, 2.0], scale = [2.0]> (x)", want: "FLOAT[2,2]{0, -8, 4, 4}"},
		{ml: 1, opset: 18, stored: stored, node: "y = ai.onnx.ml.Scaler <offset = [1.0], scale = [0.5, 10.0]> (i)", want: "FLOAT[2,2]{0, -30, 1, 30}"},
		{ml: 1, opset: 18, stored: stored, node: "y = ai.onnx.ml.Scaler <offset = [1.0, 2.0, 3.0], scale = [0.5]> (x)", want: "error: 3 offsets and 1 scales for 2 features"},
		{ml: 1, opset: 18, stored: stored, node: `y = ai.onnx.ml.Normalizer <norm = "L1"> (x)`, want: "FLOAT[2,2]{0.33333334, -0.6666667, 0.42857143, 0.5714286}"},
		{ml: 1, opset: 18, stored: stored, node: `y = ai.onnx.ml.Normalizer <norm = "L2"> (i)`, want: "FLOAT[2,2]{0.4472136, -0.8944272, 0.6, 0.8}"},
		{ml: 1, opset: 18, stored: stored, node: "y = ai.onnx.ml.Normalizer (x)", want: "FLOAT[2,2]{1, -2, 0.75, 1}"},
		{ml: 1, opset: 18, stored: stored, node: "y = ai.onnx.ml.Normalizer (zeros)", want: "FLOAT[1,2]{0, 0}"},
		{ml: 1, opset: 18, stored: stored, node: "y = ai.onnx.ml.Binarizer <threshold = 1.0> (i)", want: "INT64[2,2]{0, 0, 1, 1}"},
		{ml: 1, opset: 18, stored: stored, node: "y = ai.onnx.ml.Imputer <imputed_value_floats = [5.0, 6.0, 7.0], replaced_value_float = nan> (odd)", want: "FLOAT[1,3]{5, 1, 7}"},
		{ml: 1, opset: 18, stored: stored, node: "y = ai.onnx.ml.Imputer <imputed_value_int64s = [9], replaced_value_int64 = -2> (i)", want: "INT64[2,2]{1, 9, 3, 4}"},
		{ml: 1, opset: 18, stored: stored, node: "y = ai.onnx.ml.Imputer <imputed_value_int64s = [9, 8, 7]> (i)", want: "error: 3 imputed values for 2 features"},
		{ml: 1, opset: 18, stored: stored, node: "y = ai.onnx.ml.ArrayFeatureExtractor (x, columns)", want: "FLOAT[2,2]{-2, 1, 4, 3}"},
		{ml: 1, opset: 18, stored: stored, node: "y = ai.onnx.ml.ArrayFeatureExtractor (v, columns)", want: "FLOAT[1,2]{2, 1}"},
		{ml: 1, opset: 18, stored: stored, node: "y = ai.onnx.ml.ArrayFeatureExtractor (x, three)", want: "error: column 3 of 2"},
		{ml: 1, opset: 18, stored: stored, node: "y = ai.onnx.ml.FeatureVectorizer <inputdimensions = [1, 3]> (x, narrow)", want: "FLOAT[2,4]{1, 7, 0, 0, 3, 8, 0, 0}"},
		{ml: 1, opset: 18, stored: stored, node: "y = ai.onnx.ml.FeatureVectorizer <inputdimensions = [2, 2]> (x, v)", want: "error: input 1 has 1 rows, the first 2"},
	})
}

func TestCategoryOperators(t *testing.T) {
	stored := `string[3] s = {"a", "b", "zz"}, int64[3] i = {0, 1, 7}, float[3] f = {nan, -0.0, 1.5}, int16[2] h = {1, 2}`
	runOperatorCases(t, []operatorCase{
		{ml: 1, opset: 18, stored: stored, node: `y = ai.onnx.ml.LabelEncoder <classes_strings = ["b", "a"], default_int64 = -7> (s)`, want: "INT64[3]{1, 0, -7}"},
		{ml: 1, opset: 18, stored: stored, node: `y = ai.onnx.ml.LabelEncoder <classes_strings = ["b", "a"]> (i)`, want: `STRING[3]{"b", "a", "_Unused"}`},
		{ml: 2, opset: 18, stored: stored, node: `y = ai.onnx.ml.LabelEncoder <keys_strings = ["a", "b"], values_floats = [0.5, 1.5]> (s)`, want: "FLOAT[3]{0.5, 1.5, -0}"},
		{ml: 4, opset: 18, stored: stored, node: `y = ai.onnx.ml.LabelEncoder <keys_floats = [nan, 0.0], values_int64s = [1, 2]> (f)`, want: "INT64[3]{1, 2, -1}"},
		{ml: 4, opset: 18, stored: stored, node: `y = ai.onnx.ml.LabelEncoder <keys_tensor = int16[3] {2, 2, 5}, values_tensor = double[3] {1, 2, 3}, default_tensor = double[1] {9}> (h)`, want: "DOUBLE[2]{9, 2}"},
		{ml: 4, opset: 18, stored: stored, node: `y = ai.onnx.ml.LabelEncoder <keys_strings = ["a", "b"], values_int64s = [1]> (s)`, want: "error: 2 keys for 1 values"},
		{ml: 4, opset: 18, stored: stored, node: `y = ai.onnx.ml.LabelEncoder <keys_strings = ["a"], values_int64s = [1]> (i)`, want: "error: the input is INT64, the keys STRING"},
		{ml: 1, opset: 18, stored: stored, node: `y = ai.onnx.ml.CategoryMapper <cats_int64s = [7, 1], cats_strings = ["x", "b"]> (i)`, want: `STRING[3]{"_Unused", "b", "x"}`},
		{ml: 1, opset: 18, stored: stored, node: `y = ai.onnx.ml.OneHotEncoder <cats_strings = ["b", "a"]> (s)`, want: "FLOAT[3,2]{0, 1, 1, 0, 0, 0}"},
		{ml: 1, opset: 18, stored: stored, node: `y = ai.onnx.ml.OneHotEncoder <cats_int64s = [1, 0], zeros = 0> (i)`, want: "error: element 2 is none of the 2 categories"},
	})
}

func TestMaps(t *testing.T) {
	tests := []struct{ nodes, want string }{
		{`y = ai.onnx.ml.DictVectorizer <int64_vocabulary = [3, 5]> (map)`, "error: the input is no map"},
		{`y = ai.onnx.ml.ZipMap <classlabels_int64s = [5]> (x)`, "error: 1 keys for 2 columns"},
		{"z = ai.onnx.ml.ZipMap <classlabels_int64s = [5, 3]> (x)\nm = SequenceAt (z, last)\ny = ai.onnx.ml.DictVectorizer <int64_vocabulary = [3, 4, 5]> (m)", "FLOAT[3]{4, 0, 3}"},
		{"z = ai.onnx.ml.ZipMap <classlabels_strings = [\"p\", \"q\"]> (x)\nm = SequenceAt (z, last)\ny = ai.onnx.ml.DictVectorizer <string_vocabulary = [\"q\"]> (m)", "error: key 0 of the map is not in the vocabulary"},
		{"z = ai.onnx.ml.ZipMap <classlabels_int64s = [5, 3]> (x)\nm = SequenceAt (z, last)\ny = ai.onnx.ml.CastMap (m)", "FLOAT[1,2]{4, 3}"},
		{"z = ai.onnx.ml.ZipMap <classlabels_int64s = [2, 0]> (x)\nm = SequenceAt (z, last)\ny = ai.onnx.ml.CastMap <map_form = \"SPARSE\", max_map = 4, cast_to = \"TO_INT64\"> (m)", "INT64[1,4]{4, 0, 3, 0}"},
		{"z = ai.onnx.ml.ZipMap <classlabels_int64s = [2, 9]> (x)\nm = SequenceAt (z, last)\ny = ai.onnx.ml.CastMap <map_form = \"SPARSE\", max_map = 4> (m)", "error: key 9 for max_map 4"},
	}
	for _, tt := range tests {
		t.Run(tt.nodes, func(t *testing.T) {
			source := fmt.Sprintf(`<opset_import: ["": 18, "ai.onnx.ml": 3]> g () => (y) <float[2,2] x = {1, 2, 3, 4}, float[1] map = {1}, int64 last = {-1}> { %s }`, tt.nodes)
			got, err := runText(t, source, Options{}, nil)
			checkOutcome(t, "running", got, err, tt.want)
		})
	}
}

// What two classes' single score becomes is that of ONNX Runtime 1.32.
func TestLinearModels(t *testing.T) {
	stored := "float[2,2] x = {1, 0, 0, 1}, float[1,3] wide = {1, 2, 3}"
	two := "coefficients = [2.0, -1.0], intercepts = [0.0], classlabels_ints = [10, 20]"
	runOperatorCases(t, []operatorCase{
		{ml: 1, opset: 18, stored: stored, node: "y = ai.onnx.ml.LinearRegressor <coefficients = [1.0, 2.0, 3.0, 4.0], intercepts = [0.5, 0.0], targets = 2> (x)", want: "FLOAT[2,2]{1.5, 3, 2.5, 4}"},
		{ml: 1, opset: 18, stored: stored, node: "y = ai.onnx.ml.LinearRegressor <coefficients = [1.0, 2.0]> (wide)", want: "error: 2 coefficients for 1 results of 3 features"},
		{ml: 1, opset: 18, stored: stored, node: `y = ai.onnx.ml.LinearRegressor <coefficients = [1.0, 2.0], post_transform = "LOGISTIC"> (x)`, want: "FLOAT[2,1]{1, 2}", folds: ErrUndefined},
		{ml: 1, opset: 18, stored: stored, node: "y, z = ai.onnx.ml.LinearClassifier <coefficients = [1.0, 0.0, 0.0, 2.0, 0.0, 0.0], intercepts = [0.0, 0.0, 0.5], classlabels_strings = [\"a\", \"b\", \"c\"]> (x)", want: `STRING[2]{"a", "b"}`},
		{ml: 1, opset: 18, stored: stored, node: "y, z = ai.onnx.ml.LinearClassifier <" + two + "> (x)", want: "INT64[2]{20, 10}"},
		{ml: 1, opset: 18, stored: stored, node: "l, y = ai.onnx.ml.LinearClassifier <" + two + "> (x)", want: "FLOAT[2,2]{-1, 2, 2, -1}"},
		{ml: 1, opset: 18, stored: stored, node: `l, y = ai.onnx.ml.LinearClassifier <post_transform = "LOGISTIC", ` + two + "> (x)", want: "FLOAT[2,2]{0.11920292, 0.8807971, 0.7310586, 0.26894143}"},
		{ml: 1, opset: 18, stored: stored, node: `l, y = ai.onnx.ml.LinearClassifier <post_transform = "SOFTMAX_ZERO", coefficients = [0.0, 1.0, 0.0, 0.0, 0.0, 2.0], intercepts = [0.0, 0.0, 0.0], classlabels_ints = [1, 2, 3]> (x)`, want: "FLOAT[2,3]{0, 0, 0, 0.26894143, 0, 0.7310586}"},
		{ml: 1, opset: 18, stored: stored, node: `y = ai.onnx.ml.LinearRegressor <post_transform = "PROBIT", coefficients = [0.975, 0.5]> (x)`, want: "FLOAT[2,1]{1.9599644, 0}"},
		{ml: 1, opset: 18, stored: stored, node: "y, z = ai.onnx.ml.LinearClassifier <coefficients = [1.0, 2.0, 3.0], classlabels_ints = [1, 2]> (x)", want: "error: "},
	})
}

func TestSupportVectorMachines(t *testing.T) {
	stored := "float[2,2] x = {1, 2, -1, 0}"
	pair := `kernel_type = "LINEAR", support_vectors = [1.0, 0.0, 0.0, 1.0], coefficients = [1.0, 0.5], vectors_per_class = [1, 1], rho = [-0.5], classlabels_ints = [10, 20]`
	runOperatorCases(t, []operatorCase{
		{ml: 1, opset: 18, stored: stored, node: "y = ai.onnx.ml.SVMRegressor <coefficients = [1.0, 2.0], rho = [0.5]> (x)", want: "FLOAT[2,1]{5.5, -0.5}"},
		{ml: 1, opset: 18, stored: stored, node: `y = ai.onnx.ml.SVMRegressor <n_supports = 1, support_vectors = [1.0, 1.0], coefficients = [2.0], rho = [0.0], kernel_type = "POLY", kernel_params = [1.0, 1.0, 2.0]> (x)`, want: "FLOAT[2,1]{32, 0}"},
		{ml: 1, opset: 18, stored: stored, node: `y = ai.onnx.ml.SVMRegressor <n_supports = 1, support_vectors = [1.0, 1.0], coefficients = [1.0], rho = [-0.1], kernel_type = "RBF", kernel_params = [1.0, 0.0, 0.0], one_class = 1> (x)`, want: "FLOAT[2,1]{1, -1}"},
		{ml: 1, opset: 18, stored: stored, node: "y = ai.onnx.ml.SVMRegressor <n_supports = 2, support_vectors = [1.0, 1.0], coefficients = [1.0, 1.0], rho = [0.0]> (x)", want: "error: support_vectors holds 2 numbers"},
		{ml: 1, opset: 18, stored: stored, node: "y, z = ai.onnx.ml.SVMClassifier <" + pair + "> (x)", want: "INT64[2]{10, 20}"},
		{ml: 1, opset: 18, stored: stored, node: "l, y = ai.onnx.ml.SVMClassifier <" + pair + "> (x)", want: "FLOAT[2,2]{-1.5, 1.5, 1.5, -1.5}"},
		{ml: 1, opset: 18, stored: stored, node: "l, y = ai.onnx.ml.SVMClassifier <prob_a = [-1.0], prob_b = [0.0], " + pair + "> (x)", want: "FLOAT[2,2]{0.81757414, 0.18242584, 0.18236715, 0.81763285}"},
		{ml: 1, opset: 18, stored: stored, node: "y, z = ai.onnx.ml.SVMClassifier <coefficients = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0], rho = [0.0], classlabels_ints = [10, 20, 30]> (x)", want: "INT64[2]{20, 20}"},
		{ml: 1, opset: 18, stored: stored, node: "y, z = ai.onnx.ml.SVMClassifier <vectors_per_class = [1, 1], support_vectors = [1.0, 0.0, 0.0, 1.0], coefficients = [1.0], rho = [0.0], classlabels_ints = [10, 20]> (x)", want: "error: 1 coefficients and 1 offsets for 2 classes and 2 support vectors"},
	})
}

// Two trees of one question each: is feature 0 at most 0, is feature 1 at most 0?
const twoTrees = `nodes_treeids = [0, 0, 0, 1, 1, 1], nodes_nodeids = [0, 1, 2, 0, 1, 2], nodes_featureids = [0, 0, 0, 1, 0, 0],
	nodes_values = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0], nodes_truenodeids = [1, 0, 0, 1, 0, 0], nodes_falsenodeids = [2, 0, 0, 2, 0, 0],
	nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"]`

func TestTreeEnsembles(t *testing.T) {
	stored := "float[3,2] x = {-1, -1, 1, 1, nan, 1}, double[1,2] d = {1, -1}, float[1,1] narrow = {1}"
	target := ", target_treeids = [0, 0, 1, 1], target_nodeids = [1, 2, 1, 2], target_ids = [0, 0, 0, 0], target_weights = [1.0, 2.0, 10.0, 20.0]"
	class := ", class_treeids = [0, 0, 1, 1], class_nodeids = [1, 2, 1, 2], class_ids = [0, 0, 0, 0], class_weights = [0.1, 0.3, 0.2, 0.4], classlabels_int64s = [10, 20]"
	three := ", class_treeids = [0, 0, 1, 1], class_nodeids = [1, 2, 1, 2], class_ids = [0, 1, 2, 2], class_weights = [5.0, 6.0, 1.0, 9.0], classlabels_strings = [\"a\", \"b\", \"c\"]"
	regressor := "y = ai.onnx.ml.TreeEnsembleRegressor <n_targets = 1, " + twoTrees + target
	classifier := "ai.onnx.ml.TreeEnsembleClassifier <" + twoTrees
	runOperatorCases(t, []operatorCase{
		{ml: 3, opset: 18, stored: stored, node: regressor + "> (x)", want: "FLOAT[3,1]{11, 22, 22}"},
		{ml: 3, opset: 18, stored: stored, node: regressor + ", nodes_missing_value_tracks_true = [1, 0, 0, 0, 0, 0]> (x)", want: "FLOAT[3,1]{11, 22, 21}"},
		{ml: 3, opset: 18, stored: stored, node: regressor + `, aggregate_function = "AVERAGE", base_values = [0.5]> (x)`, want: "FLOAT[3,1]{6, 11.5, 11.5}"},
		{ml: 3, opset: 18, stored: stored, node: regressor + `, aggregate_function = "MIN"> (d)`, want: "FLOAT[1,1]{2}"},
		{ml: 3, opset: 18, stored: stored, node: regressor + `, aggregate_function = "MAX"> (x)`, want: "FLOAT[3,1]{10, 20, 20}"},
		{ml: 3, opset: 18, stored: stored, node: regressor + "> (narrow)", want: "error: the trees ask for 2 features, a row has 1"},
		{ml: 3, opset: 18, stored: stored, node: "y, z = " + classifier + class + "> (x)", want: "INT64[3]{10, 20, 20}"},
		{ml: 3, opset: 18, stored: stored, node: "l, y = " + classifier + class + "> (x)", want: "FLOAT[3,2]{0.7, 0.3, 0.29999998, 0.70000005, 0.29999998, 0.70000005}"},
		{ml: 3, opset: 18, stored: stored, node: "y, z = " + classifier + three + "> (x)", want: `STRING[3]{"a", "c", "c"}`},
		{ml: 3, opset: 18, stored: stored, node: "l, y = " + classifier + three + "> (d)", want: "FLOAT[1,3]{0, 6, 1}"},
	})
}

func TestTreesThatAreNone(t *testing.T) {
	stored := "float[1,1] x = {1}"
	node := func(yes, no int) string {
		return fmt.Sprintf(`y = ai.onnx.ml.TreeEnsembleRegressor <n_targets = 1, nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2], nodes_featureids = [0, 0, 0],
			nodes_values = [0.0, 0.0, 0.0], nodes_truenodeids = [1, %d, 0], nodes_falsenodeids = [1, %d, 0], nodes_modes = ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"],
			target_treeids: ints = [], target_nodeids: ints = [], target_ids: ints = [], target_weights: floats = []> (x)`, yes, no)
	}
	runOperatorCases(t, []operatorCase{
		{ml: 3, opset: 18, stored: stored, node: node(2, 2), want: "FLOAT[1,1]{0}"},
		{ml: 3, opset: 18, stored: stored, node: node(1, 1), want: "error: run in a circle"},
		{ml: 3, opset: 18, stored: stored, node: node(2, 7), want: "error: leads to nodes 2 and -1"},
	})
}

func TestTreeEnsembleWithSets(t *testing.T) {
	stored := "float[4,1] x = {1, 3, 2, nan}"
	node := func(members string) string {
		return `y = ai.onnx.ml.TreeEnsemble <n_targets = 2, tree_roots = [0], nodes_featureids = [0], nodes_modes = uint8[1] {6}, nodes_splits = float[1] {0},
			nodes_truenodeids = [0], nodes_trueleafs = [1], nodes_falsenodeids = [1], nodes_falseleafs = [1],
			leaf_targetids = [0, 1], leaf_weights = float[2] {5, 7}, membership_values = ` + members + "> (x)"
	}
	runOperatorCases(t, []operatorCase{
		{ml: 5, opset: 18, stored: stored, node: node("float[3] {1, 3, nan}"), want: "FLOAT[4,2]{5, 0, 5, 0, 0, 7, 0, 7}"},
		{ml: 5, opset: 18, stored: stored, node: node("float[2] {1, 3}"), want: "error: membership_values"},
		{ml: 5, opset: 18, stored: stored, node: node("float[4] {1, nan, 3, nan}"), want: "error: membership_values"},
	})
}
