package rules

import (
	"strings"
	"testing"
)

// A name is put right only where it is clear which one is meant.
func TestLoneMissing(t *testing.T) {
	for _, c := range []struct{ config, model, want string }{
		{"x y", "x z", "z"},
		{"x", "x", ""},
		{"x y", "x", ""},      // nothing is left for y
		{"y", "x z", ""},      // two are
		{"a b", "x z", ""},    // two are unknown
		{"x y x", "x z", "z"}, // a name twice is another fault
	} {
		var ports []port
		for _, name := range strings.Fields(c.config) {
			ports = append(ports, port{name: name})
		}
		if got := loneMissing(ports, strings.Fields(c.model)); got != c.want {
			t.Errorf("%s against %s: %q, want %q", c.config, c.model, got, c.want)
		}
	}
}

// Findings that other packages make have their texts, whichever table the rule stands in.
func TestFindGivesTexts(t *testing.T) {
	for _, language := range []Language{English, Chinese} {
		f := Find("om-chip", language, "net.om", "net.om", "Ascend910B3", "Ascend310P3")
		if strings.Contains(f.Message, "%!") || !strings.Contains(f.Message, "Ascend310P3") || f.Effect == "" || f.Fix == "" {
			t.Errorf("%v: %+v", language, f)
		}
	}
}
