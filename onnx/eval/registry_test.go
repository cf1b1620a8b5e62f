package eval

import (
	"slices"
	"testing"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/internal/optable"
	"github.com/npuctl/npuctl/onnx/schema"
)

// notBuilt names the operators of the specification that have no kernel.
var notBuilt = map[string][]string{
	"ai.onnx.preview.training": {"Gradient"},
}

// TestEveryOperatorHasAKernel looks at every version of every operator.
func TestEveryOperatorHasAKernel(t *testing.T) {
	for _, domain := range schema.Domains() {
		for _, name := range schema.Names(domain) {
			for _, version := range schema.Versions(domain, name) {
				m := onnx.NewModel(10, version)
				m.Opsets[0].Domain = domain
				n := m.Graph.Add(name, nil, nil)
				n.Domain = domain
				if want := !slices.Contains(notBuilt[domain], name); Supports(n) != want {
					t.Errorf("%s of domain %q at opset %d: supported is %v", name, domain, version, !want)
				}
			}
		}
	}
}

// TestRowsNameOperators finds rows that no model can reach.
func TestRowsNameOperators(t *testing.T) {
	seen := map[optable.Key]bool{}
	for _, family := range families() {
		for _, row := range family {
			versions := schema.Versions(row.domain, row.name)
			// Some operators were experimental before their first version.
			if len(versions) == 0 || row.since > versions[0] && !slices.Contains(versions, row.since) {
				t.Errorf("%s of domain %q has versions %v, not %d", row.name, row.domain, versions, row.since)
			}
			if seen[row.key()] {
				t.Errorf("%s of domain %q since %d has two rows", row.name, row.domain, row.since)
			}
			seen[row.key()] = true
		}
	}
}
