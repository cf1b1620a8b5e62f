package optable

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheNewestRowNotAfterTheOpsetHolds(t *testing.T) {
	type row struct {
		domain, name string
		since        int
		text         string
	}
	families := [][]row{
		{{"", "Softmax", 13, "per axis"}, {"", "Softmax", 1, "flattened"}},
		{{"ai.onnx.ml", "Softmax", 1, "another domain's"}},
	}
	table := New(families, func(r row) Key { return Key{Operator{r.domain, r.name}, r.since} })
	for _, test := range []struct {
		domain, name string
		opset        int
		want         string // "": there is none
	}{
		{"", "Softmax", 0, ""},
		{"", "Softmax", 1, "flattened"},
		{"", "Softmax", 12, "flattened"},
		{"", "Softmax", 13, "per axis"},
		{"", "Softmax", 99, "per axis"},
		{"ai.onnx.ml", "Softmax", 3, "another domain's"},
		{"", "Softmin", 13, ""},
	} {
		got, ok := table.Lookup(test.domain, test.name, test.opset)
		if got.text != test.want || ok != (test.want != "") {
			t.Errorf("%s %s at %d: %q, %v, want %q", test.domain, test.name, test.opset, got.text, ok, test.want)
		}
	}
	want := []Operator{{"", "Softmax"}, {"ai.onnx.ml", "Softmax"}}
	if diff := cmp.Diff(want, table.Operators()); diff != "" {
		t.Errorf("operators (-want +got):\n%s", diff)
	}
}
