package rules_test

import (
	"strings"
	"testing"

	"github.com/npuctl/npuctl/configgen/rules"
)

// A file with the same fault over and over is told of a hundred times, and judged all
// the same.
func TestManyFindings(t *testing.T) {
	const many = 2000
	for name, text := range map[string]string{
		"dims":           "name: \"m\" backend: \"npu_ge\" input { name: \"x\" data_type: TYPE_FP32 dims: [" + strings.Repeat("0,", many) + "0] }",
		"unknown fields": strings.Repeat("fo: 3\n", many),
		"versions":       strings.Repeat("version_policy { latest { } }\n", many),
	} {
		r := rules.CheckText("m/config.pbtxt", []byte(text), rules.Options{})
		byRule := map[string]int{}
		for _, f := range r.Findings {
			byRule[f.Rule]++
		}
		most, of := 0, ""
		for rule, n := range byRule {
			if n > most {
				most, of = n, rule
			}
		}
		if most < 90 || most > 100 || r.Verdict != rules.Refuse {
			t.Errorf("%s: %d findings of %s, verdict %s", name, most, of, r.Verdict)
		}
	}
}
