package eval

import "testing"

func TestStrings(t *testing.T) {
	stored := `string[2] a = {"x", "y"}, string[2,1] b = {"1", "2"}, string[3] words = {"one two  three ", "", " a "}, string[2] paths = {"a,b,,c", "d"}, string[3] names = {"Monday", "tuesday", "MONDAY"}, float f = {1}`
	runOperatorCases(t, []operatorCase{
		{opset: 20, stored: stored, node: "y = StringConcat (a, b)", want: `STRING[2,2]{"x1", "y1", "x2", "y2"}`},
		{opset: 20, stored: stored, node: "y = StringConcat (a, f)", want: "error: input 1 is FLOAT"},
		{opset: 20, stored: stored, node: "y, n = StringSplit (words)", want: `STRING[3,3]{"one", "two", "three", "", "", "", "a", "", …}`},
		{opset: 20, stored: stored, node: "p, y = StringSplit (words)", want: "INT64[3]{3, 0, 1}"},
		{opset: 20, stored: stored, node: "y, n = StringSplit <maxsplit = 1> (words)", want: `STRING[3,2]{"one", "two  three", "", "", "a", ""}`},
		{opset: 20, stored: stored, node: `y, n = StringSplit <delimiter = ","> (paths)`, want: `STRING[2,4]{"a", "b", "", "c", "d", "", "", ""}`},
		{opset: 20, stored: stored, node: `y, n = StringSplit <delimiter = ",", maxsplit = 1> (paths)`, want: `STRING[2,2]{"a", "b,,c", "d", ""}`},
		{opset: 20, stored: stored, node: `y = RegexFullMatch <pattern = "[a-z]+day|x"> (names)`, want: "BOOL[3]{false, true, false}"},
		{opset: 20, stored: stored, node: `y = RegexFullMatch <pattern = "(?i)monday"> (names)`, want: "BOOL[3]{true, false, true}"},
		{opset: 20, stored: stored, node: `y = RegexFullMatch <pattern = "a)(b"> (names)`, want: `error: attribute "pattern"`},
		{opset: 10, stored: stored, node: `y = StringNormalizer <stopwords = ["monday"], case_change_action = "UPPER"> (names)`, want: `STRING[1]{"TUESDAY"}`},
		{opset: 10, stored: stored, node: `y = StringNormalizer <stopwords = ["Monday"], is_case_sensitive = 1> (names)`, want: `STRING[2]{"tuesday", "MONDAY"}`},
		{opset: 10, stored: stored, node: `y = StringNormalizer <stopwords = ["x", "y"]> (a)`, want: `STRING[1]{""}`},
		{opset: 10, stored: stored, node: `y = StringNormalizer <locale = "tr_TR"> (a)`, want: `error: locale "tr_TR"`, folds: ErrUnsupported},
		{opset: 10, stored: stored, node: "y = StringNormalizer (b)", want: "error: an input of shape [2 1]"},
	})
}

func TestTfIdfVectorizer(t *testing.T) {
	stored := `int64[6] x = {1, 1, 3, 3, 3, 7}, string[1,3] s = {"a", "b", "a"}`
	pool := `ngram_counts = [0, 2], ngram_indexes = [0, 1, 2, 3], pool_int64s = [1, 3, 1, 3, 3, 7]`
	runOperatorCases(t, []operatorCase{
		{opset: 9, stored: stored, node: `y = TfIdfVectorizer <mode = "TF", min_gram_length = 1, max_gram_length = 1, max_skip_count = 0, ` + pool + `> (x)`, want: "FLOAT[4]{2, 3, 0, 0}"},
		{opset: 9, stored: stored, node: `y = TfIdfVectorizer <mode = "TF", min_gram_length = 1, max_gram_length = 2, max_skip_count = 0, ` + pool + `> (x)`, want: "FLOAT[4]{2, 3, 1, 1}"},
		{opset: 9, stored: stored, node: `y = TfIdfVectorizer <mode = "TF", min_gram_length = 2, max_gram_length = 2, max_skip_count = 1, ` + pool + `> (x)`, want: "FLOAT[4]{0, 0, 3, 2}"},
		{opset: 9, stored: stored, node: `y = TfIdfVectorizer <mode = "IDF", min_gram_length = 1, max_gram_length = 1, max_skip_count = 0, weights = [0.5, 0.25, 1.0, 1.0], ` + pool + `> (x)`, want: "FLOAT[4]{0.5, 0.25, 0, 0}"},
		{opset: 9, stored: stored, node: `y = TfIdfVectorizer <mode = "TFIDF", min_gram_length = 1, max_gram_length = 1, max_skip_count = 0, weights = [0.5, 0.25], ngram_counts = [0], ngram_indexes = [1, 0], pool_int64s = [1, 3]> (x)`, want: "FLOAT[2]{1.5, 0.5}", folds: ErrUndefined},
		{opset: 9, stored: stored, node: `y = TfIdfVectorizer <mode = "TF", min_gram_length = 1, max_gram_length = 1, max_skip_count = 0, ngram_counts = [0], ngram_indexes = [0, 1], pool_strings = ["b", "a"]> (s)`, want: "FLOAT[1,2]{1, 2}"},
		{opset: 9, stored: stored, node: `y = TfIdfVectorizer <mode = "TF", min_gram_length = 1, max_gram_length = 1, max_skip_count = 0, ngram_counts = [0, 9], ngram_indexes = [0, 1], pool_strings = ["b", "a"]> (s)`, want: "error: ngram_counts [0 9] for a pool of 2"},
	})
}

// Strings that double again and again stop at the budget.
func TestStringConcatKeepsToTheBudget(t *testing.T) {
	source := `<opset_import: ["": 20]> g () => (y) <string s = {"0123456789abcdef"}, int64 rounds = {60}, bool on = {1}> {
		y = Loop <body = b (int64 i, bool c, string x) => (c2, z) { c2 = Identity (c)
			z = StringConcat (x, x) }> (rounds, on, s)
	}`
	got, err := runText(t, source, Options{MaxBytes: 1 << 20}, nil)
	checkOutcome(t, "running", got, err, "error: over the memory budget")
}
