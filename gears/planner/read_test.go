package planner

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// asText shows sizes in one line: names, then each size with its weight.
func asText(s *Sizes) string {
	var words []string
	for i := range s.Len() {
		words = append(words, fmt.Sprintf("%v*%g", s.row(i), s.weights[i]))
	}
	return strings.Join(s.Axes, ",") + " " + strings.Join(words, " ")
}

func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		how  Reading
		want string
	}{
		"lines":               {"262\n326\n\n# more\n 390 \r\n", Reading{}, " [262]*1 [326]*1 [390]*1"},
		"a name":              {"262\n326", Reading{Axes: []string{"length"}}, "length [262]*1 [326]*1"},
		"pairs":               {"224,336\n224 336\n224x336\n224; 336\n", Reading{}, ", [224 336]*1 [224 336]*1 [224 336]*1 [224 336]*1"},
		"byte order mark":     {"\ufeff262\n", Reading{}, " [262]*1"},
		"table":               {"h,w,weight\n10,20,3\n# note\n1, 2, 0.5\n", Reading{}, "h,w [10 20]*3 [1 2]*0.5"},
		"chosen columns":      {"time,w,h,count\nnoon,20,10,3\n", Reading{Axes: []string{"h", "w"}, Weight: "count"}, "h,w [10 20]*3"},
		"no weights":          {"length\n5\n7\n", Reading{}, "length [5]*1 [7]*1"},
		"weight 0":            {"length,weight\n5,0\n7,1\n", Reading{}, "length [7]*1"},
		"quoted":              {"\"a,b\",weight\n\"5\",2\n", Reading{}, "a,b [5]*2"},
		"JSON numbers":        {"[5, 7,\n 9]", Reading{}, " [5]*1 [7]*1 [9]*1"},
		"JSON lists":          {"[[5, 7], [9, 1]]", Reading{Axes: []string{"h", "w"}}, "h,w [5 7]*1 [9 1]*1"},
		"JSON objects":        {`[{"w": 7, "h": 5, "weight": 2}, {"h": 9, "w": 1}]`, Reading{}, "h,w [5 7]*2 [9 1]*1"},
		"objects by the line": {"{\"w\": 7, \"h\": 5, \"path\": \"a\"}\n{\"h\": 9, \"w\": 1}\n", Reading{Axes: []string{"w", "h"}}, "w,h [7 5]*1 [1 9]*1"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Read(strings.NewReader(c.text), c.how)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, asText(s)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "there is not one size in it",
		"# nothing\n\n":                     "there is not one size in it",
		"length,weight\n5,0\n":              "there is not one size in it that counts",
		"length\n":                          "there is not one size in it that counts",
		"[]":                                "there is not one size in it that counts",
		"5\nabc\n":                          `line 2: "abc" is no size: give whole numbers from 1 to 2147483647`,
		"5\n-3\n":                           `line 2: "-3" is no size`,
		"5\n7.5\n":                          `line 2: "7.5" is no size`,
		"5\n0\n":                            "line 2: 0 is no size",
		"5\n99999999999999999999999\n":      `line 2: "99999999999999999999999" is too large for a size: at most 2147483647`,
		"5\n7,8\n":                          "line 2: 2 numbers, where there are 1 axes",
		"1,2,3,4,5,6,7,8,9\n":               "line 1: 9 numbers: a size has at most 8",
		"h,w\n1,2\n3\n":                     "record on line 3: wrong number of fields",
		"h,w\n1,2\n3,x\n":                   `line 3: w "x" is no size`,
		"h,weight\n1,-2\n":                  `line 2: weight "-2" is no weight: give a number from 0 to 1e+15`,
		"h,weight\n1,NaN\n":                 `line 2: weight "NaN" is no weight`,
		"h,h\n1,2\n":                        "line 1: column 2 needs a name of its own",
		"weight\n1\n":                       "0 axes: a size has 1 to 8",
		"h\n" + strings.Repeat("9", 70_000): "line 2: it is longer than 65536 bytes",
		"[5,\n \"x\"]":                      `line 2: "\"x\"" is no size`,
		"[5,\n 7":                           "line 2: it ends in the middle of a value",
		"[5,\n 7]]":                         "line 2: invalid character ']'",
		"[[5,7],\n[1]]":                     "line 2: 1 numbers, where there are 2 axes",
		"[[]]":                              "line 1: a size without a number",
		"[{\"h\":1},\n{\"w\":1}]":           `line 2: an object has no "h"`,
		"[{\"h\":1.5}]":                     `line 1: h "1.5" is no size`,
		"[[[1]]]":                           `line 1: "[1]" is no size`,
		"[{\"h\":1,\"weight\":\"x\"}]":      `line 1: weight "\"x\"" is no weight`,
	} {
		if _, err := Read(strings.NewReader(text), Reading{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: error %v, want %s", text, err, want)
		}
	}
	for want, how := range map[string]Reading{
		`there is no column "hight"; did you mean "height"?`:      {Axes: []string{"hight"}},
		`there is no column "count"; there are "height", "width"`: {Weight: "count"},
		"the axes need names of their own, other than weight":     {Axes: []string{"height", "height"}},
	} {
		if _, err := Read(strings.NewReader("height,width\n1,2\n"), how); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if _, err := Read(strings.NewReader("1,2,3\n"), Reading{Axes: []string{"h", "w"}}); err == nil || !strings.Contains(err.Error(), "a column of weights needs a header") {
		t.Errorf("error %v", err)
	}
}

// Whatever is read holds sizes and weights in their bounds, and can be planned for.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"262\n326\n", "224x336\n1,2", "h,w,weight\n10,20,3\n", "[5,7]", "[[5,7],[1,2]]", `[{"h":1,"w":2,"weight":0.5}]`, `{"h":1}{"h":2}`,
		"\ufeff# a\n1", "[", "{\"a\":", "\"a\nb\",c\n1,2", "h,weight\n1,1e308\n", "9999999999\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Read(strings.NewReader(text), Reading{})
		if err != nil {
			return
		}
		if s.Len() == 0 || len(s.Axes) == 0 || len(s.Axes) > MaxAxes {
			t.Fatalf("%q gives %s", text, asText(s))
		}
		for i, weight := range s.weights {
			for _, n := range s.row(i) {
				if n < 1 || n > 1<<31-1 || !(weight > 0) || weight > maxWeight {
					t.Fatalf("%q gives %s", text, asText(s))
				}
			}
		}
		if len(s.Axes) == 1 {
			agrees(t, s, Options{Max: 3}, plan(t, s, Options{Max: 3}))
		}
	})
}
