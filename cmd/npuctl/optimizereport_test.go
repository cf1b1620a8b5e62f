package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/internal/optimization"
	"github.com/npuctl/npuctl/onnxpass"
)

// However much is dynamic, people read ten lines: first what flags fix, then what
// there is advice on.
func TestDynamicIsShort(t *testing.T) {
	var list []onnxpass.Dynamic
	add := func(reason string) {
		for range 50 {
			list = append(list, onnxpass.Dynamic{Name: fmt.Sprint("t", len(list)), Type: "FLOAT[?1]", Node: "a node", Reason: reason})
		}
	}
	for i := range 20 {
		add(fmt.Sprintf("the shape that Concat node \"c%d\" gives depends on its data", i))
	}
	add(`the shape that NonZero node "where" gives depends on its data`)
	add(`it is an input of graph "body" of Loop node "turn"`)
	add(`the input is open: dim 0 is "batch" (--dim batch=SIZE)`)
	var out strings.Builder
	printDynamic(&out, list)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) > 10 || !strings.HasPrefix(lines[0], "the input is open") {
		t.Errorf("%d lines:\n%s", len(lines), out.String())
	}
	for _, want := range []string{"and 49 more (--json lists all)", "export a mask and a Where", "a fixed number of turns", "and 1000 more tensors for 20 more reasons (--json lists all)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestSetsText(t *testing.T) {
	sets := func(values ...string) (out []optimization.CheckedSet) {
		for _, v := range values {
			out = append(out, optimization.CheckedSet{Values: v})
		}
		return out
	}
	for _, test := range []struct {
		sets  []optimization.CheckedSet
		tried int
		want  string
	}{
		{sets("random", "random in 0..1", "random", "zeros", "NaN", "infinities", "extremes"), 8, "all 7 sets (3 random, 4 of edge values; 1 more was refused by the original)"},
		{sets("random with lengths", "zeros"), 5, "all 2 sets (1 random, 1 of edge values; 3 more were refused by the original)"},
		{sets("random", "random"), 2, "all 2 sets (2 random)"},
		{sets("random"), 1, "the one set (1 random)"},
	} {
		if got := setsText(&optimization.Check{Tried: test.tried, Inputs: len(test.sets), Sets: test.sets}); got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
	}
}
