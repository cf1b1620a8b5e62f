package rules

import (
	"regexp"
	"testing"

	"github.com/npuctl/npuctl/soc"
)

var chineseLetter = regexp.MustCompile(`\p{Han}`)

// Whatever package soc says of an operator is told in Chinese, too.
func TestChipTextsInChinese(t *testing.T) {
	seen := 0
	tell := func(english string) {
		if english == "" {
			return
		}
		seen++
		if both := inBoth(english); both[English] != english || !chineseLetter.MatchString(both[Chinese]) {
			t.Errorf("not in Chinese: %q", english)
		}
	}
	var nodes []soc.Node
	for opset := range 25 {
		for _, o := range soc.Operators() {
			nodes = append(nodes, soc.Node{Domain: o.Domain, Type: o.Name, Opset: opset})
		}
	}
	nodes = append(nodes, soc.Node{Type: "Relux", Opset: 13}, soc.Node{Type: "QQQQQQQQQ", Opset: 13}, soc.Node{Domain: "my.own", Type: "Thing", Opset: 1},
		soc.Node{Domain: "ai.onnx.ml", Type: "TreeEnsemble", Opset: 3})
	for _, family := range append(soc.Families(), soc.Family{}) {
		for _, f := range soc.Examine(family.Name, nodes) {
			tell(f.Reason)
			tell(f.Remedy)
		}
	}
	for _, o := range soc.Operators() {
		tell(o.Remedy)
	}
	if seen < 1000 {
		t.Errorf("only %d texts were seen", seen)
	}
}
