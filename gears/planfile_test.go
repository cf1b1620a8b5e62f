package gears

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What FileText writes, Expand reads, with names of axes as far as a list can hold them.
func TestPlanFile(t *testing.T) {
	for want, c := range map[string]struct {
		axes  []string
		gears [][]int64
	}{
		"262;326":                         {nil, [][]int64{{262}, {326}}},
		"224,224;336,336":                 {[]string{"", ""}, [][]int64{{224, 224}, {336, 336}}},
		"height,width: 224,224;336,336":   {[]string{"height", "width"}, [][]int64{{224, 224}, {336, 336}}},
		"true,~,a b,-\": 1,2,3,4;5,6,7,8": {[]string{"true", "~", "a b", "-\""}, [][]int64{{1, 2, 3, 4}, {5, 6, 7, 8}}},
		"1,2;3,4":                         {[]string{"a:b", "c"}, [][]int64{{1, 2}, {3, 4}}},
		"höhe,x\u2028y: 1,2;3,4":          {[]string{"höhe", "x\u2028y"}, [][]int64{{1, 2}, {3, 4}}},
	} {
		path := filepath.Join(t.TempDir(), "plan.yaml")
		if err := os.WriteFile(path, []byte(FileText("two\nlines", c.axes, c.gears)), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Expand(AtFile(path))
		if err != nil || got != want {
			t.Errorf("%q: %q, %v", want, got, err)
		}
		rows, err := Parse(got)
		if diff := cmp.Diff(c.gears, rows); diff != "" || err != nil {
			t.Errorf("%q: %v, %s", want, err, diff)
		}
	}
	if got, err := Expand("1,2"); got != "1,2" || err != nil {
		t.Errorf("a list: %q, %v", got, err)
	}
}

func TestPlanFileRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "p.yaml: no gears are given",
		"gears: {a: b}":                      "p.yaml:1:8: a list of gears is wanted here",
		"geers: [1]":                         `did you mean "gears"?`,
		"gears: [[1], [x]]":                  `p.yaml: "x" is no size`,
		"axes: [h, w]\ngears: [[1, 2], [3]]": "p.yaml: gears has a gear that is not of 2 numbers, as axes says",
		"gears: [":                           "p.yaml:1:8:",
	} {
		if _, err := parsePlan("p.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
	if _, err := Expand("@" + filepath.Join(t.TempDir(), "none.yaml")); err == nil || !strings.Contains(err.Error(), "read the plan of gears") {
		t.Errorf("error %v", err)
	}
}

// A list that names its axes fits a model that has them in another order.
func TestFitByName(t *testing.T) {
	for list, want := range map[string][][]int64{
		"L,N: 32,1;64,4": {{1, 32}, {4, 64}},
		"N,L: 1,32;4,64": {{1, 32}, {4, 64}},
		"h,w: 1,32;4,64": {{1, 32}, {4, 64}}, // names that the model does not know say nothing
	} {
		p, err := Fit(text, list)
		if diff := cmp.Diff(want, p.Gears); diff != "" || err != nil {
			t.Errorf("%s: %v %s", list, err, diff)
		}
	}
	if p, err := Fit(speech, "T: 262,326"); err != nil || len(p.Gears) != 2 {
		t.Errorf("%v, %v", p, err)
	}
	for list, want := range map[string]string{
		"L,x: 32,1;64,4": "the gears are of L, x, the model leaves 2 axes open: N (ids[0], mask[0]), L (ids[1], mask[1])",
		"L: 32;64":       "the gears are of L, the model leaves 2 axes open",
		" : 1;2":         "before the colon the names of the axes are wanted",
	} {
		if _, err := Fit(text, list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", list, err, want)
		}
	}
}

func FuzzPlanFile(f *testing.F) {
	for _, seed := range []string{FileText("x", []string{"h", "w"}, [][]int64{{1, 2}, {3, 4}}), "gears: 1;2", "gears: [[1], 2]", "axes: a\ngears: [1]", "gears: &a [*a]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := parsePlan("p.yaml", []byte(text))
		if err != nil {
			return
		}
		if _, err := Parse(list); err != nil {
			t.Errorf("%q gives %q: %v", text, list, err)
		}
	})
}
