package project

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/npuctl/npuctl/gears"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/yamlfile"
)

const full = `
model:
  path: net/model.onnx
  batch: 2
  dims: {height: 640, width: 640}
  input_shapes: {x: "1,3,?,?"}
  bind: {sr: 16000}
soc: [Ascend910B3, Ascend310P3]
optimize: {skip: [cse]}
compile:
  static: true
  precision: origin
  atc_args: [--log=info]
  timeout: 1h30m
  jobs: 2
serve: {name: net, max_batch_size: 8, devices: [0, 1], max_queue_delay: 2ms}
bench: {concurrency: 8, duration: 30s}
`

func TestParse(t *testing.T) {
	p, err := Parse([]byte(full), "some/npuctl.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := &Project{
		Path: "some/npuctl.yaml",
		Model: Model{
			Path: "net/model.onnx", Batch: 2, Dims: map[string]int64{"height": 640, "width": 640},
			InputShapes: map[string]string{"x": "1,3,?,?"}, Bind: map[string]string{"sr": "16000"},
		},
		SoC: []string{"Ascend910B3", "Ascend310P3"}, Optimize: Optimize{Skip: []string{"cse"}},
		Compile: Compile{Static: true, Precision: "origin", ATCArgs: []string{"--log=info"}, Timeout: 90 * time.Minute, Jobs: 2},
		Serve:   Serve{Name: "net", MaxBatchSize: 8, Devices: []int64{0, 1}, MaxQueueDelay: 2 * time.Millisecond},
		Bench:   Bench{Concurrency: 8, Duration: 30 * time.Second},
	}
	if diff := cmp.Diff(want, p, cmpopts.IgnoreUnexported(Project{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got, want := p.ModelPath(), filepath.FromSlash("some/net/model.onnx"); got != want {
		t.Errorf("model %s, want %s", got, want)
	}
}

func TestParseShortForms(t *testing.T) {
	for text, want := range map[string]Project{
		"":                               {},
		"# nothing":                      {},
		"model: a.onnx":                  {Model: Model{Path: "a.onnx"}},
		"soc: Ascend310P3":               {SoC: []string{"Ascend310P3"}},
		"compile:":                       {},
		"gears: 262;326":                 {Gears: Gears{"262;326"}},
		"gears: [1, 2, 4]":               {Gears: Gears{"1;2;4"}},
		"gears: [[224, 224], [336,336]]": {Gears: Gears{"224,224;336,336"}},
		"gears: ['1,32', '4,64']":        {Gears: Gears{"1,32;4,64"}},
		"soc: &a [X]\nmodel: {path: b}":  {SoC: []string{"X"}, Model: Model{Path: "b"}},
	} {
		p, err := Parse([]byte(text), "")
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, *p, cmpopts.IgnoreUnexported(Project{})); diff != "" {
			t.Errorf("%q: -want +got:\n%s", text, diff)
		}
	}
}

// An error says where, what, and what was probably meant.
func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"modle: a":                              `npuctl.yaml:1:1: there is no "modle" here; did you mean "model"?`,
		"model: a\ncompile:\n  presision: fp16": `npuctl.yaml:3:3: there is no "presision" here; did you mean "precision"?`,
		"model: a\nmodel: b":                    "npuctl.yaml:2:1: model is given twice",
		"model: {dims: {h: , h: 2}}":            "npuctl.yaml:1:21: h is given twice",
		"soc: a: b":                             "npuctl.yaml:1:7: mapping values are not allowed in this context",
		"compile: {jobs: many}":                 `npuctl.yaml:1:17: "many" is not a whole number`,
		"compile: {static: maybe}":              `npuctl.yaml:1:19: "maybe" is not true or false`,
		"compile: {timeout: 30}":                `"30" is not a time such as 30m, 90s or 2ms`,
		"compile: [a]":                          "npuctl.yaml:1:10: a list of name: value is wanted here, not a list",
		"compile: {output: [a]}":                "a text is wanted here, not a list",
		"soc: {a: b}":                           "a list is wanted here, not a list of name: value",
		"gears: {a: b}":                         "a list of gears is wanted",
		"bench: {rate: x}":                      `"x" is not a number`,
		"- a":                                   "npuctl.yaml:1:1: a list of name: value is wanted here",
		"a: [":                                  "npuctl.yaml:1:4: did not find expected node content",
		"compile: {static: true}\ngears: [1,2]": "npuctl.yaml:2:1: gears and compile.static exclude each other",
		"bench: {rate: 1, concurrency: 2}":      "rate and concurrency exclude each other",
		"model: {batch: -1}":                    "batch is at least 1",
		"\tx":                                   "npuctl.yaml:1:1: found character that cannot start any token",
		"model: a\n---\nsoc: b":                 "npuctl.yaml:2:1: a second document begins here",
		"model: {batch: 0}":                     "npuctl.yaml:1:16: batch is at least 1",
		"model:\n  batch: 99999999999":          "npuctl.yaml:2:10: batch is at least 1, and at most 2147483647",
		"compile:\n  jobs: 0":                   "npuctl.yaml:2:9: jobs is at least 1",
		"compile: {timeout: 0s}":                "npuctl.yaml:1:20: timeout is more than 0",
		"bench: {rate: -1}":                     "npuctl.yaml:1:15: rate is more than 0",
		"model: {dims: {h: -4}}":                "npuctl.yaml:1:19: -4 is no size of a dim",
		"model:\n  input_shapes:\n    x: 1,b":   "npuctl.yaml:3:8: ",
		"model: !secret x":                      "npuctl.yaml:1:8: the tag !secret means nothing here",
		"soc: !!binary aGk=":                    "npuctl.yaml:1:6: the tag !!binary means nothing here",
		"model: [a.onnx, b.onnx]":               "npuctl.yaml:1:8: one model is wanted here",
	} {
		_, err := Parse([]byte(text), "npuctl.yaml")
		if fault.FamilyOf(err) != fault.Input || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// Aliases of aliases may not blow up.
func TestParseBoundsAliases(t *testing.T) {
	text := "gears:\n  - &a [1,1,1,1,1,1,1,1,1,1]\n"
	for range 40 {
		text += "  - [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
	}
	if _, err := Parse([]byte(text), "npuctl.yaml"); err == nil {
		t.Error("lists of lists of lists are taken for gears")
	}
}

func TestFind(t *testing.T) {
	folder := t.TempDir()
	if p, err := Find(folder); p != nil || err != nil {
		t.Errorf("%v, %v", p, err)
	}
	path := filepath.Join(folder, FileName)
	if err := os.WriteFile(path, []byte("model: m.onnx"), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := Find(folder)
	if err != nil || p.ModelPath() != filepath.Join(folder, "m.onnx") {
		t.Errorf("%+v, %v", p, err)
	}
	if got, want := p.Resolve("out/"), filepath.Join(folder, "out")+string(filepath.Separator); got != want {
		t.Errorf("a folder is %s, want %s", got, want)
	}
	if err := os.Truncate(path, yamlfile.MaxBytes+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(folder); fault.FamilyOf(err) != fault.Input {
		t.Errorf("a file too large: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("gone.yaml", path); err != nil {
		t.Skip(err)
	}
	if _, err := Find(folder); fault.FamilyOf(err) != fault.Input {
		t.Errorf("a link to nothing: %v", err)
	}
}

// A first file reads back as what it was written from, whatever names the model
// has, and so does one whose comments are taken away.
func TestTemplate(t *testing.T) {
	for name, f := range map[string]Facts{
		"open dims": {Model: "m.onnx", SoC: "Ascend910B3", Inputs: []gears.Input{
			{Name: "x", Dims: []gears.Dim{{Open: true, Name: "batch"}, {Size: 3}, {Open: true}}},
		}, Outputs: []string{"y FLOAT[batch]"}},
		"fixed":     {Model: "sub dir/m.onnx", Inputs: []gears.Input{{Name: "x", Dims: []gears.Dim{{Size: 3}}}}},
		"odd names": {Model: "- a: #b\n.onnx", SoC: "x", Inputs: []gears.Input{{Name: "a\nsoc: evil", Dims: []gears.Dim{{Open: true, Name: "b\u2028c: d"}}}}, Outputs: []string{"\x00\r"}},
		"numbers":   {Model: "1", SoC: "true"},
	} {
		text := Template(f)
		p, err := Parse([]byte(text), "")
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		want := &Project{Model: Model{Path: f.Model}}
		if f.SoC != "" {
			want.SoC = []string{f.SoC}
		}
		if diff := cmp.Diff(want, p, cmpopts.IgnoreUnexported(Project{})); diff != "" {
			t.Errorf("%s: -want +got:\n%s\n%s", name, diff, text)
		}
	}
}

// The examples behind the comment signs are of the format.
func TestTemplateExamplesAreValid(t *testing.T) {
	text := Template(Facts{Model: "m.onnx", Inputs: []gears.Input{{Name: "x", Dims: []gears.Dim{{Open: true, Name: "batch"}}}}})
	for _, off := range []string{"# soc:", "# optimize:", "# gears:", "# compile:", "# serve:", "# bench:"} {
		on := strings.Replace(text, off, strings.TrimPrefix(off, "# "), 1)
		if on == text {
			t.Errorf("there is no %q", off)
		}
		head, tail, _ := strings.Cut(on, strings.TrimPrefix(off, "# "))
		lines := strings.SplitAfter(tail, "\n")
		for i := 1; i < len(lines) && strings.HasPrefix(lines[i], "#   "); i++ {
			lines[i] = strings.TrimPrefix(lines[i], "# ")
		}
		on = head + strings.TrimPrefix(off, "# ") + strings.Join(lines, "")
		if _, err := Parse([]byte(on), FileName); err != nil {
			t.Errorf("%s: %v\n%s", off, err, on)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{full, "gears: [[1,2],[3,4]]", "model: &a {path: *a}", "a: [", "? x", "soc: !!binary aGk="} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := Parse(data, "f"); err != nil && fault.FamilyOf(err) != fault.Input {
			t.Errorf("%q: %v", data, err)
		}
	})
}

// Every value has its place, and what is not there that of what is around it.
func TestPlace(t *testing.T) {
	p, err := Parse([]byte("model: {path: a.onnx, dims: {h: 8}}\ncompile:\n  precision: fp16\ngears:\n  - 1\n  - 2\n"), "npuctl.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for want, names := range map[string][]string{
		"npuctl.yaml:1:15": {"model", "path"}, "npuctl.yaml:1:33": {"model", "dims", "h"}, "npuctl.yaml:3:14": {"compile", "precision"},
		"npuctl.yaml:5:3": {"gears"}, "npuctl.yaml:3:3": {"compile", "jobs"}, "npuctl.yaml": {"bench", "rate"},
	} {
		if got := p.Place(names...); got != want {
			t.Errorf("%v: %s, want %s", names, got, want)
		}
	}
	if got := (&Project{}).Place("gears"); got != "" {
		t.Errorf("no file has the place %s", got)
	}
}
