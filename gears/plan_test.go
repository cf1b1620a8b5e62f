package gears

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func open(name string) Dim      { return Dim{Open: true, Name: name} }
func fixed(size int64) Dim      { return Dim{Size: size} }
func at(in string, d int) Place { return Place{in, d} }

var (
	speech = []Input{{"speech", []Dim{fixed(1), open("T"), fixed(80)}}, {"lengths", []Dim{fixed(1)}}}
	text   = []Input{{"ids", []Dim{open("N"), open("L")}}, {"mask", []Dim{open("N"), open("L")}}}
	image  = []Input{{"x", []Dim{fixed(1), fixed(3), open(""), open("")}}}
)

func TestFit(t *testing.T) {
	for name, c := range map[string]struct {
		inputs []Input
		list   string
		want   Plan
	}{
		"lengths":                {speech, "262;326", Plan{[]Axis{{"T", []Place{at("speech", 1)}}}, [][]int64{{262}, {326}}}},
		"lengths between commas": {speech, "262, 326,", Plan{[]Axis{{"T", []Place{at("speech", 1)}}}, [][]int64{{262}, {326}}}},
		"images":                 {image, "224,224;336,336", Plan{[]Axis{{"", []Place{at("x", 2)}}, {"", []Place{at("x", 3)}}}, [][]int64{{224, 224}, {336, 336}}}},
		"a number for each name": {text, "1,32;4,64;", Plan{
			[]Axis{{"N", []Place{at("ids", 0), at("mask", 0)}}, {"L", []Place{at("ids", 1), at("mask", 1)}}}, [][]int64{{1, 32}, {4, 64}}}},
		"a number for each place": {text, "1,32,1,32;4,64,4,64", Plan{
			[]Axis{{"N", []Place{at("ids", 0)}}, {"L", []Place{at("ids", 1)}}, {"N", []Place{at("mask", 0)}}, {"L", []Place{at("mask", 1)}}},
			[][]int64{{1, 32, 1, 32}, {4, 64, 4, 64}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Fit(c.inputs, c.list)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFitRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		inputs     []Input
		list, want string
	}{
		"nothing":         {speech, " ; ", "no gears"},
		"no number":       {speech, "262;x", `"x" is no size`},
		"zero":            {speech, "0;1", `"0" is no size`},
		"too large":       {speech, "99999999999;1", "99999999999 is too large for a size: at most 2147483647"},
		"twice":           {speech, "262;326;262", "262 is given twice"},
		"one":             {speech, "262", "at least two"},
		"too few numbers": {image, "224;336", "gear 224 has 1 number, the model leaves 2 axes open: x[2], x[3]"},
		"uneven":          {text, "1,32;4", "gear 4 has 1 number, the model leaves 2 axes open: N (ids[0], mask[0]), L (ids[1], mask[1])"},
		"fixed model":     {[]Input{{"x", []Dim{fixed(1)}}}, "1,2", "no dim open"},
		"too many":        {speech, strings.Repeat("1;", 2000), "more than 1024"},
	} {
		if _, err := Fit(c.inputs, c.list); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

func TestSizes(t *testing.T) {
	p, err := Fit(text, "8,16;4,64;1,128")
	if err != nil {
		t.Fatal(err)
	}
	if size, ok := p.SizeAt(p.Gears[1], at("mask", 1)); size != 64 || !ok {
		t.Errorf("size %d, %v", size, ok)
	}
	if _, ok := p.SizeAt(p.Gears[1], at("mask", 2)); ok {
		t.Error("a dim that is not there has a size")
	}
	if diff := cmp.Diff([]int64{4, 64}, p.Largest()); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"1,2,4", "224,224;336,336", ";;", "1;-1", "99999999999999999999", " 1 ; 2 "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Parse(text)
		if err != nil {
			return
		}
		for _, gear := range list {
			for _, n := range gear {
				if n < 1 {
					t.Errorf("%q gives %v", text, list)
				}
			}
		}
	})
}
