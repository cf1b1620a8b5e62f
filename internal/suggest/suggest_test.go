package suggest

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNearest(t *testing.T) {
	passes := []string{"fold", "inline-if", "identities", "cse", "dead-code", "merge-constants"}
	for _, test := range []struct {
		name  string
		known []string
		want  string
	}{
		{"fold", passes, "fold"},
		{"flod", passes, "fold"},            // two letters changed places
		{"identites", passes, "identities"}, // one is missing
		{"inline_if", passes, "inline-if"},  // one is another
		{"deadcodee", passes, "dead-code"},  // one missing, one too many
		{"CSE", passes, "cse"},              // the case is another
		{"quantize", passes, ""},            // nothing like it
		{"x", []string{"y", "input"}, "y"},  // short names may differ in their only letter
		{"x", []string{"input"}, ""},        // but not in length
		{"images", []string{"image"}, "image"},
		{"bacth", []string{"batch", "bach"}, "batch"}, // the nearer of two
		{"ab", []string{"ac", "ad"}, "ac"},            // the first of equals
		{"", []string{"input"}, ""},
		{"维度", []string{"维数", "batch"}, "维数"},
		{"any", nil, ""},
	} {
		if got := Nearest(test.name, test.known); got != test.want {
			t.Errorf("Nearest(%q, %q) = %q, want %q", test.name, test.known, got, test.want)
		}
	}
}

func TestText(t *testing.T) {
	many := strings.Fields("in0 in1 in2 in3 in4 in5 in6 in7 in8")
	for _, test := range []struct {
		name  string
		known []string
		want  string
	}{
		{"iamge", []string{"image", "text"}, `did you mean "image"?`},
		{"zzzzzzz", []string{"image", "text"}, `there are "image", "text"`},
		{"zzzzzzz", nil, "it has none at all"},
		{"zzzzzzz", many, `there are 9, such as "in0", "in1", "in2", "in3", "in4", "in5", "in6", "in7"`},
		{"ipnut", []string{`odd"name`, "input"}, `did you mean "input"?`},
	} {
		if got := Text(test.name, test.known); got != test.want {
			t.Errorf("Text(%q, %q) = %q, want %q", test.name, test.known, got, test.want)
		}
	}
}

func TestDistanceIsADistance(t *testing.T) {
	word := rapid.StringMatching(`[a-cA-C]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := distance(a, b)
		switch {
		case d != distance(b, a):
			t.Fatalf("from a to b %d, back %d", d, distance(b, a))
		case (d == 0) != (a == b):
			t.Fatalf("distance %d", d)
		case d > 2*max(len(a), len(b)):
			t.Fatalf("distance %d is more than writing all anew", d)
		}
	})
}

// A name from a hostile file may be of any length.
func TestLongNamesTakeNoTime(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	if got := Nearest(long+"b", []string{long}); got != "" && got != long {
		t.Errorf("got a name of %d letters", len(got))
	}
}
