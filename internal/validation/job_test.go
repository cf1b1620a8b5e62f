package validation

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/npuctl/npuctl/configgen/rules"
	"github.com/npuctl/npuctl/internal/cannemu/omwriter"
	"github.com/npuctl/npuctl/internal/compilation"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/findings"
	"github.com/npuctl/npuctl/internal/tritonserver"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/text"
)

const someModel = `<ir_version: 10, opset_import: ["": 13]>
net (float[batch,4] a, float[batch,4] b) => (float[batch,4] c) {
  c = Add (a, b)
}`

// save writes a model from its text.
func save(t *testing.T, path, model string) string {
	t.Helper()
	m, err := text.Parse(model)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Save(path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// compiled writes an .om of a chip, and its record, as a compile of model.onnx would.
func compiled(t *testing.T, folder, chip string, edit func(*compilation.Record)) string {
	t.Helper()
	path := filepath.Join(folder, "model.om")
	definition := omwriter.ModelDef{Name: "net", Attributes: []omwriter.Attribute{{Name: "soc_version", Value: omwriter.Text(chip)}}}
	file := omwriter.File{Name: "net", Models: []omwriter.Model{omwriter.NewModel(omwriter.Parts{ModelDef: &definition})}}
	if err := file.Save(path); err != nil {
		t.Fatal(err)
	}
	sum := func(name string) string {
		s, err := sumOf(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	r := compilation.Record{Format: 1, Key: "key", SoC: chip,
		Input:   []compilation.FileFacts{{Path: "model.onnx", SHA256: sum("model.onnx")}},
		Outputs: []compilation.FileFacts{{Path: "model.om", SHA256: sum("model.om")}}}
	if edit != nil {
		edit(&r)
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path+".json", string(data))
	return path
}

// ids lists the rules of findings, sorted.
func ids(all []findings.Finding) string {
	var out []string
	for _, f := range all {
		out = append(out, f.Rule)
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " ")
}

func check(t *testing.T, paths ...string) rules.Result {
	t.Helper()
	r, err := Job{Paths: paths}.check()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// An .om is held against its record, and the record against what the model is now.
func TestBuild(t *testing.T) {
	for _, test := range []struct {
		name string
		edit func(t *testing.T, folder string)
		want string
	}{
		{"as it was built", func(*testing.T, string) {}, ""},
		{"the model has changed", func(t *testing.T, folder string) { write(t, filepath.Join(folder, "model.onnx"), "other") }, "om-stale"},
		{"the model is gone", func(t *testing.T, folder string) { os.Remove(filepath.Join(folder, "model.onnx")) }, "om-source-missing"},
		{"no record", func(t *testing.T, folder string) { os.Remove(filepath.Join(folder, "model.om.json")) }, "om-no-record"},
		{"a record that is none", func(t *testing.T, folder string) { write(t, filepath.Join(folder, "model.om.json"), "{}") }, "om-changed"},
		{"another .om", func(t *testing.T, folder string) {
			old, _ := os.ReadFile(filepath.Join(folder, "model.om.json"))
			compiled(t, folder, "Ascend310P3", nil)
			write(t, filepath.Join(folder, "model.om.json"), string(old))
		}, "om-changed"},
		{"a record of another file", func(t *testing.T, folder string) {
			compiled(t, folder, "Ascend910B3", func(r *compilation.Record) { r.Outputs[0].Path = "other.om" })
		}, "om-changed"},
		{"a record of another chip", func(t *testing.T, folder string) {
			compiled(t, folder, "Ascend910B3", func(r *compilation.Record) { r.SoC = "Ascend310P3" })
		}, "om-changed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := t.TempDir()
			save(t, filepath.Join(folder, "model.onnx"), someModel)
			path := compiled(t, folder, "Ascend910B3", nil)
			test.edit(t, folder)
			if got := ids(check(t, path).Findings); got != test.want {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}

// What the emulator compiled runs on no device.
func TestEmulated(t *testing.T) {
	folder := t.TempDir()
	save(t, filepath.Join(folder, "model.onnx"), someModel)
	path := compiled(t, folder, "Ascend910B3", nil)
	definition := omwriter.ModelDef{Name: "net", Attributes: []omwriter.Attribute{{Name: "soc_version", Value: omwriter.Text("Ascend910B3")}}}
	parts := omwriter.Parts{ModelDef: &definition, Emulation: omwriter.Emulation{{Key: omwriter.EmulationInfo, Value: []byte("{}")}}}
	file := omwriter.File{Name: "net", Models: []omwriter.Model{omwriter.NewModel(parts)}}
	if err := file.Save(path); err != nil {
		t.Fatal(err)
	}
	if got := ids(check(t, path).Findings); got != "om-changed om-emulated" {
		t.Errorf("found %q", got)
	}
	// In a repository as well, by whichever path it is named.
	model := filepath.Join(folder, "models", "net")
	if err := os.MkdirAll(filepath.Join(model, "1"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := file.Save(filepath.Join(model, "1", "model.om")); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(model, "config.pbtxt")
	if err := os.WriteFile(config, []byte(`name: "net" backend: "python" max_batch_size: 0`), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, named := range []string{filepath.Dir(model), model, config} {
		if got := ids(check(t, named).Findings); !strings.Contains(got, "om-emulated") {
			t.Errorf("%s: found %q", named, got)
		}
	}
}

// A project file is held against everything that it names, each finding in its place.
func TestProject(t *testing.T) {
	const wrong = `model: {path: model.onnx, dims: {bach: 1}, bind: {mode: "1"}}
soc: Ascend910B3
gears: "1,2;3,4,5"
compile: {precision: fp17, mixlist: gone.json}
serve: {repository: models, name: net}
bench: {inputs: nowhere}
`
	folder := t.TempDir()
	save(t, filepath.Join(folder, "model.onnx"), someModel)
	compiled(t, folder, "Ascend310P3", nil)
	write(t, filepath.Join(folder, "models", "net", "config.pbtxt"), "backend: \"npu_ge\"\nmax_batch_size: -1\n")
	write(t, filepath.Join(folder, "models", "net", "1", "x"), "")
	path := write(t, filepath.Join(folder, "npuctl.yaml"), wrong)
	found := map[string][]string{}
	for _, f := range check(t, path).Findings {
		if f.File == path {
			found[f.Rule] = append(found[f.Rule], strings.TrimPrefix(f.Place(), path+":")+" "+f.Message)
			continue
		}
		found[f.Rule] = append(found[f.Rule], filepath.Base(f.File))
	}
	for rule, want := range map[string][]string{
		"project-name":       {`1:40 model.dims: the model has no "bach"`, `1:57 model.bind: the model has no "mode"`},
		"project-gears":      {`3:8 gears: gear 1,2 has 2 numbers, the model leaves 1 axis open: batch (a[0], b[0])`},
		"project-value":      {`4:22 compile.precision: "fp17"`},
		"project-path":       {"4:37 compile.mixlist: gone.json is not there", "6:17 bench.inputs: nowhere is not there"},
		"om-chip":            {"model.om"},
		"max-batch-negative": {"config.pbtxt"},
	} {
		if !slices.Equal(found[rule], want) {
			t.Errorf("%s: %q, want %q", rule, found[rule], want)
		}
	}
	for text, want := range map[string]string{
		"model: gone.onnx\n":             "project-path",
		"model: model.onnx\nwhat: 3\n":   "project-file",
		"soc: Ascend1\n":                 "project-value project-file",
		"model: [\n":                     "project-file",
		"":                               "",
		"model: {path: model.onnx}\n":    "om-chip",
		"serve: {repository: nowhere}\n": "",

		"serve: {backend: npu_gee}\n":                      "project-value",
		"serve: {backend: npu_ge, warmup_data: {x: no}}\n": "project-path",
	} {
		write(t, path, text)
		got := ids(check(t, path).Findings)
		if got != want && !strings.Contains(want, got) || (got == "") != (want == "" || want == "om-chip") {
			t.Errorf("%q: found %q, want %q", text, got, want)
		}
	}
}

// What a server says becomes findings, in the place where a rule said the same.
func TestHeard(t *testing.T) {
	known := []findings.Finding{
		{Rule: "preferred-over-max", File: "m/config.pbtxt", Line: 3, Column: 7, Server: "must be <= max batch size for m", Refuses: true},
	}
	for _, test := range []struct {
		outcome     tritonserver.Outcome
		rule, place string
	}{
		{tritonserver.Outcome{State: tritonserver.Refused, Cause: "preferred size must be <= max batch size for m"}, "load-refused", "m/config.pbtxt:3:7"},
		{tritonserver.Outcome{State: tritonserver.Refused, Cause: "Error parsing", Line: 4, Column: 2}, "load-refused", "m/config.pbtxt:4:2"},
		{tritonserver.Outcome{State: tritonserver.Refused, Cause: "no library", MissingBackend: "dali"}, "load-backend", "m/config.pbtxt"},
		{tritonserver.Outcome{State: tritonserver.Killed, Cause: "died of signal SIGSEGV"}, "load-killed", "m/config.pbtxt"},
		{tritonserver.Outcome{State: tritonserver.Hung, Took: 5 * time.Second}, "load-hung", "m/config.pbtxt"},
		{tritonserver.Outcome{State: tritonserver.Ready}, "load-accepted", "m/config.pbtxt:3:7"},
	} {
		test.outcome.Model = "m"
		found := Job{}.heard(test.outcome, "m/config.pbtxt", known)
		if len(found) != 1 || found[0].Rule != test.rule || found[0].Place() != test.place || found[0].Server != test.outcome.Cause {
			t.Errorf("%+v: %+v", test.outcome, found)
		}
	}
	if found := (Job{}).heard(tritonserver.Outcome{Model: "m", State: tritonserver.Ready}, "other/config.pbtxt", known); found != nil {
		t.Errorf("a model that loads as the rules say: %+v", found)
	}
}

// --load needs something to load, and says so before it looks for a server.
func TestLoadNothing(t *testing.T) {
	path := save(t, filepath.Join(t.TempDir(), "model.onnx"), someModel)
	_, err := Job{Paths: []string{path}, Load: true}.Run(context.Background())
	if fault.FamilyOf(err) != fault.Usage {
		t.Errorf("%v", err)
	}
}

// Every rule that is found outside of configgen/rules is found by one of these tests, or,
// of memory, by those of configgen/generate.
func TestOutsideRulesHaveTests(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, filepath.Join("..", "..", "configgen", "generate", "memory_test.go"))
	var all strings.Builder
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	for _, r := range rules.Rules() {
		if r.IsOutside() && !strings.Contains(all.String(), `"`+r.ID) && !strings.Contains(all.String(), " "+r.ID) {
			t.Errorf("no test names %s", r.ID)
		}
		if !r.IsOutside() {
			continue
		}
		for _, l := range []rules.Language{rules.English, rules.Chinese} {
			f := rules.Find(r.ID, l, "file", "a", "b", "c")
			if strings.Contains(strings.Split(f.Message, "%!(EXTRA")[0], "%!") || f.Severity != r.Severity {
				t.Errorf("%s: %q", r.ID, f.Message)
			}
		}
	}
}
