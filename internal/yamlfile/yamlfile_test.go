package yamlfile

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/npuctl/npuctl/internal/fault"
)

// What is no YAML is told with its place: where the reader stumbles, or where that begins
// which never ends.
func TestPlaceOfErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a: [":                                  "f.yaml:1:4: did not find expected node content",
		"a: 1\nb: [1, 2\nc: 3\n":                "f.yaml:2:5: did not find expected ',' or ']'",
		"a: 'never ends\nb: 1\n":                "f.yaml:1:4: found unexpected end of stream",
		"a: 'it\n  ends'\nb: 1\nc: \"no\n  end": "f.yaml:4:4: found unexpected end of stream",
		"soc: a: b":                             "f.yaml:1:7: mapping values are not allowed in this context",
		"model: a\nsoc: wrong: here\n":          "f.yaml:2:11: mapping values are not allowed in this context",
		"model: a\n\tsoc: b\n":                  "f.yaml:2:1: ",
		"model:\n  path: a\n bad: c\n":          "f.yaml:3:",
		"model:\n  - a\n  b: c\n":               "f.yaml:3:",
		"a: *nobody\n":                          "f.yaml:1:",
		"größe: ä: b\n":                         "f.yaml:1:9: mapping values",
		"a: \x01\n":                             "f.yaml:1:4: control characters are not allowed",
		"a: \xff\n":                             "f.yaml:1:4: ",
		"a: 1\n---\nb: [":                       "f.yaml:3:4: ",
		"%YAML 9.9\n---\na: b\n":                "f.yaml:1:",
		strings.Repeat("a: 1\n", 3) + "a:]":     "f.yaml:4:",
	} {
		_, err := Parse("f.yaml", []byte(text))
		if fault.FamilyOf(err) != fault.Input || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "yaml: ") {
			t.Errorf("%q: error %v\nwant %s", text, err, want)
		}
	}
}

type section struct {
	Text   string            `yaml:"text"`
	Number int64             `yaml:"number"`
	Share  float64           `yaml:"share"`
	On     bool              `yaml:"on"`
	Wait   time.Duration     `yaml:"wait"`
	List   []int64           `yaml:"list"`
	Texts  []string          `yaml:"texts"`
	Sizes  map[string]int64  `yaml:"sizes"`
	Inner  *section          `yaml:"inner"`
	Own    doubled           `yaml:"own"`
	At     placed            `yaml:"at"`
	Never  map[string]string `yaml:"-"`
}

// doubled reads itself.
type doubled struct{ text string }

func (d *doubled) DecodeYAML(_ *Decoder, n *yaml.Node) error {
	d.text = n.Value + n.Value
	return nil
}

// placed knows where it stands.
type placed struct {
	where string
	A     int64 `yaml:"a"`
}

func (p *placed) SetPlace(at Place) { p.where = at.String() }

func decoded(text string) (s section, err error) {
	root, err := Parse("f.yaml", []byte(text))
	if err != nil || root == nil {
		return s, err
	}
	return s, NewDecoder("f.yaml").Decode(root, &s)
}

func TestDecode(t *testing.T) {
	for text, want := range map[string]section{
		"":                                  {},
		"# nothing":                         {},
		"text: a\nnumber: -3\nshare: 0.5":   {Text: "a", Number: -3, Share: 0.5},
		"on: true\nwait: 2ms":               {On: true, Wait: 2 * time.Millisecond},
		"list: [1, 2]\ntexts: alone":        {List: []int64{1, 2}, Texts: []string{"alone"}},
		"sizes: {h: 8, w: }":                {Sizes: map[string]int64{"h": 8}},
		"text:\nlist:\nsizes:\nat:":         {},
		"inner: {text: b}":                  {Inner: &section{Text: "b"}},
		"own: a":                            {Own: doubled{"aa"}},
		"text: b\nat:\n  a: 1":              {Text: "b", At: placed{"f.yaml:3:3", 1}},
		"texts: &a [x]\ninner: {texts: *a}": {Texts: []string{"x"}, Inner: &section{Texts: []string{"x"}}},
		"texts: !!seq [x]":                  {Texts: []string{"x"}},
	} {
		got, err := decoded(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(doubled{}, placed{})); diff != "" {
			t.Errorf("%q: -want +got:\n%s", text, diff)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"txt: a":                `f.yaml:1:1: there is no "txt" here; did you mean "text"?`,
		"text: a\ntext: b":      "f.yaml:2:1: text is given twice; the first stands in line 1",
		"sizes: {h: 1, h: 2}":   "f.yaml:1:15: h is given twice",
		"sizes: {h: , h: 2}":    "f.yaml:1:14: h is given twice",
		"sizes: [1]":            "f.yaml:1:8: a list of name: value is wanted here, not a list",
		"number: one":           `f.yaml:1:9: "one" is not a whole number`,
		"share: x":              `f.yaml:1:8: "x" is not a number`,
		"on: yes":               `f.yaml:1:5: "yes" is not true or false`,
		"wait: 5":               `f.yaml:1:7: "5" is not a time such as 30m, 90s or 2ms`,
		"wait: -5s":             `f.yaml:1:7: "-5s" is not a time such as`,
		"text: [a]":             "f.yaml:1:7: a text is wanted here, not a list",
		"list: {a: 1}":          "f.yaml:1:7: a list is wanted here, not a list of name: value",
		"list:\n- 1\n-\n":       "f.yaml:3:2: a whole number is wanted here, not nothing",
		"inner:":                `f.yaml:1:7: a list of name: value is wanted here, not ""`,
		"- a":                   "f.yaml:1:1: a list of name: value is wanted here, not a list",
		"text: !secret x":       "f.yaml:1:7: the tag !secret means nothing here; leave it out",
		"text: a\n---\ntext: b": "f.yaml:2:1: a second document begins here",
		"inner: &a {inner: *a}": "the file is too large, or its aliases multiply",
		"Never: {a: b}":         `there is no "Never" here`,
	} {
		if _, err := decoded(text); fault.FamilyOf(err) != fault.Input || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v\nwant %s", text, err, want)
		}
	}
}

func TestLookup(t *testing.T) {
	root, err := Parse("f.yaml", []byte("a: &a {b: 1}\nc: *a"))
	if err != nil {
		t.Fatal(err)
	}
	if v := Value(Value(root, "c"), "b"); v == nil || v.Value != "1" {
		t.Errorf("through an alias: %+v", v)
	}
	if Value(root, "d") != nil || Value(nil, "d") != nil || Key(root, "d") != root || Key(root, "c").Line != 2 {
		t.Error("what is not there")
	}
	if got := (Place{File: "f.yaml"}).String(); got != "f.yaml" {
		t.Errorf("nowhere is %s", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a: [", "text: 'x", "inner: &a {inner: *a}", "- \t- a", "%TAG ! x", "a: *b", "\xff\xfe", "text: !!binary aGk="} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := decoded(text); err != nil && (fault.FamilyOf(err) != fault.Input || !strings.HasPrefix(err.Error(), "f.yaml:")) {
			t.Errorf("%q: %v", text, err)
		}
	})
}
