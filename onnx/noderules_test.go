package onnx

import (
	"slices"
	"testing"

	"github.com/npuctl/npuctl/onnx/schema"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// A file may state a kind and hold nothing of it.
func TestAttributesHoldWhatTheirKindSays(t *testing.T) {
	for _, c := range []struct {
		a    *Attribute
		want string
	}{
		{&Attribute{kind: AttributeTensor}, "holds no tensor"},
		{&Attribute{kind: AttributeGraph}, "holds no graph"},
		{&Attribute{kind: AttributeType}, "holds no type"},
		{&Attribute{kind: AttributeSparseTensor}, "holds no sparse tensor"},
		{&Attribute{kind: AttributeInt}, ""},
		{&Attribute{kind: AttributeInts}, ""},
		{TensorAttribute("value", tensor.Of([]float32{1}, 1)), ""},
		{TypeAttribute("type", TensorType(tensor.Float32)), ""},
	} {
		if got := c.a.holds(); got != c.want {
			t.Errorf("%s: %q, want %q", c.a.Kind(), got, c.want)
		}
	}
}

// The words are those of attributes that there are, in some version of an operator,
// and the default is among them.
func TestWordsAreThoseOfTheSchemas(t *testing.T) {
	for key, allowed := range words {
		found := false
		for _, since := range schema.Versions("", key[0]) {
			op, _ := schema.Lookup("", key[0], since)
			a, ok := op.Attribute(key[1])
			if !ok {
				continue
			}
			found = true
			if a.Kind != schema.KindString {
				t.Errorf("%s %d: %s is no string", key[0], since, key[1])
			}
			// The first GRU has a misspelt default, which nobody writes.
			if a.Default != nil && !slices.Contains(allowed, a.Default.String) && a.Default.String != "foward" {
				t.Errorf("%s %d: the default of %s is %q, which %q lacks", key[0], since, key[1], a.Default.String, allowed)
			}
		}
		if !found {
			t.Errorf("%s has no attribute %s", key[0], key[1])
		}
	}
}

func TestKindsHaveNames(t *testing.T) {
	for k, want := range map[AttributeKind]string{AttributeInt: "an int", AttributeFloats: "a list of floats", AttributeUndefined: "of no kind", 99: "an unknown kind 99", -1: "an unknown kind -1"} {
		if got := article(k.String()); got != want {
			t.Errorf("%d is %q, want %q", int(k), got, want)
		}
	}
}
