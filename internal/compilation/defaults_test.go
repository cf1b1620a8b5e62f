package compilation

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/project"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/text"
	"github.com/npuctl/npuctl/onnxpass"
)

// completed fills a job from a project file in a folder with some models.
func completed(t *testing.T, j Job, yaml string, files []string, given ...string) (Job, []string, error) {
	t.Helper()
	folder := t.TempDir()
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(folder, f), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var p *project.Project
	if yaml != "" {
		var err error
		if p, err = project.Parse([]byte(yaml), filepath.Join(folder, project.FileName)); err != nil {
			t.Fatal(err)
		}
	}
	isGiven := func(flag string) bool {
		for _, g := range given {
			if g == flag {
				return true
			}
		}
		return false
	}
	chosen, err := j.Complete(folder, p, isGiven)
	for i := range j.Models {
		j.Models[i] = strings.TrimPrefix(j.Models[i], folder+string(filepath.Separator))
	}
	j.Options.KeepDType = strings.TrimPrefix(j.Options.KeepDType, folder+string(filepath.Separator))
	return j, chosen, err
}

// A mistake in the file is told with its place and in the file's words, whatever meets it.
func TestMistakesOfTheFile(t *testing.T) {
	for yaml, want := range map[string]string{
		"model: gone.onnx":                                "npuctl.yaml:1:8: model: there is no file ",
		"soc: 910B33":                                     "npuctl.yaml:1:6: soc 910B33: ",
		"compile:\n  precision: fp61":                     "npuctl.yaml:2:14: compile.precision fp61: there is no such mode",
		"compile: {atc_args: [output=x]}":                 "npuctl.yaml:1:21: compile.atc_args output=x: npuctl sets --output itself",
		"gears: '1,2;3'":                                  "npuctl.yaml:1:8: gears 1,2;3: gear 1,2 has 2 numbers",
		"gears: [1, 1]":                                   "npuctl.yaml:1:8: gears 1;1: gear 1 is given twice",
		"model: {path: net.onnx, dims: {hight: 3}}":       `npuctl.yaml:1:31: model.dims hight: the model has no symbolic dim`,
		"model: {path: net.onnx, input_shapes: {z: '1'}}": `npuctl.yaml:1:39: model.input_shapes z: the model has no input`,
		"model: {path: net.onnx, bind: {z: '1'}}":         `npuctl.yaml:1:31: model.bind z: the model has no input`,
		"compile: {keep_dtype: none.txt}":                 "npuctl.yaml:1:23: compile.keep_dtype, ",
		"compile: {aicore_num: '21|10'}":                  "npuctl.yaml:1:23: compile.aicore_num: ",
		"compile: {fp16_inputs: [z]}":                     "npuctl.yaml:1:24: compile.fp16_inputs: ",
		"compile: {atc_args: [allow_hf32=1]}":             "npuctl.yaml:1:21: compile.atc_args: ",
		"optimize: {skip: [fuse-afine]}":                  "npuctl.yaml:1:18: optimize.skip: ",
	} {
		t.Run(yaml, func(t *testing.T) {
			w := newWorkshop(t, `<ir_version: 8, opset_import: ["": 17]>
net (float[batch,3] x) => (float[batch,3] y) { y = Abs (x) }`)
			if !strings.Contains(yaml, "gears") {
				w.job.Dynamic = true
			}
			p, err := project.Parse([]byte(yaml), filepath.Join(w.folder, project.FileName))
			if err != nil {
				t.Fatal(err)
			}
			w.job.Models = nil // the file's, or the only one there
			if len(p.SoC) > 0 {
				w.job.SoCs = nil
			}
			_, err = w.job.Complete(w.folder, p, func(string) bool { return false })
			w.job.Dynamic = p.Gears.Text == ""
			if err == nil {
				_, err = w.job.Run(context.Background())
			}
			if fault.FamilyOf(err) != fault.Input || !strings.Contains(err.Error(), filepath.Join(w.folder, "")+string(filepath.Separator)+want) {
				t.Errorf("%v error %v\nwant %s", fault.FamilyOf(err), err, want)
			}
			if left := w.leftovers(t); len(left) > 0 {
				t.Errorf("the folder has %v", left)
			}
		})
	}
}

// Where the file says CANN is, and it is not, the place is told; that is no mistake of the
// file for sure, as other machines may have it.
func TestNoCANNWhereTheFileSays(t *testing.T) {
	w := newWorkshop(t, fixedModel)
	p, err := project.Parse([]byte("compile: {cann: /nowhere}"), filepath.Join(w.folder, project.FileName))
	if err != nil {
		t.Fatal(err)
	}
	w.job.CANN = ""
	if _, err := w.job.Complete(w.folder, p, func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if _, err := w.job.Run(context.Background()); fault.FamilyOf(err) != fault.Missing || !strings.HasPrefix(err.Error(), p.Path+":1:17: compile.cann /nowhere: there is no atc") {
		t.Errorf("%v error %v", fault.FamilyOf(err), err)
	}
}

// What a flag gives is told in the flag's words, whatever the file says beside it.
func TestMistakesOfFlags(t *testing.T) {
	w := newWorkshop(t, fixedModel)
	p, err := project.Parse([]byte("compile: {precision: fp16, atc_args: [log=info]}"), filepath.Join(w.folder, project.FileName))
	if err != nil {
		t.Fatal(err)
	}
	w.job.Options.Precision, w.job.Options.InputFormat = "fp61", "NXYZ"
	if _, err := w.job.Complete(w.folder, p, func(flag string) bool { return flag == "precision" || flag == "input-format" }); err != nil {
		t.Fatal(err)
	}
	if _, err := w.job.Run(context.Background()); fault.FamilyOf(err) != fault.Usage || !strings.HasPrefix(err.Error(), "--precision fp61: ") {
		t.Errorf("%v error %v", fault.FamilyOf(err), err)
	}
	w.job.Options.Precision = "fp16"
	if _, err := w.job.Run(context.Background()); fault.FamilyOf(err) != fault.Usage || !strings.HasPrefix(err.Error(), w.model+": atc would refuse this") {
		t.Errorf("%v error %v", fault.FamilyOf(err), err)
	}
}

func TestComplete(t *testing.T) {
	const full = `
model: {path: a.onnx, batch: 2, input_shapes: {x: "2,3"}}
soc: Ascend910B3
optimize: {skip: [cse]}
compile: {static: true, precision: origin, keep_dtype: keep.txt, timeout: 5m, jobs: 3, atc_args: [log=info]}
`
	filled := Job{
		Models: []string{"a.onnx"}, SoCs: []string{"Ascend910B3"}, Static: true, Jobs: 3, Timeout: 5 * time.Minute,
		Sizes: onnxpass.Specialization{Batch: 2, Shapes: map[string][]int64{"x": {2, 3}}}, Passes: onnxpass.Options{Skip: []string{"cse"}},
		Options: Options{Precision: "origin", KeepDType: "keep.txt", Extra: []string{"log=info"}},
	}
	for name, c := range map[string]struct {
		job    Job
		yaml   string
		files  []string
		given  []string
		want   Job
		chosen string
	}{
		"the only model": {Job{}, "", []string{"a.onnx", "a.opt.onnx", "b.txt"}, nil, Job{Models: []string{"a.onnx"}}, "it is the only one here"},
		"the file":       {Job{}, full, []string{"a.onnx", "b.onnx"}, nil, filled, "npuctl.yaml says so"},
		"flags win": {Job{SoCs: []string{"310P3"}, Gears: "1,2", Options: Options{Precision: "fp16"}}, full, []string{"a.onnx"}, []string{"soc", "gears", "precision", "keep-dtype", "batch", "atc-arg"},
			func() Job {
				j := filled
				j.SoCs, j.Gears, j.Static, j.Sizes, j.Options = []string{"310P3"}, "1,2", false, onnxpass.Specialization{}, Options{Precision: "fp16"}
				return j
			}(), ""},
		"sizes are of the file's model only": {Job{Models: []string{"b.onnx"}}, full, []string{"a.onnx", "b.onnx"}, nil,
			func() Job {
				j := filled
				j.Models, j.Sizes = []string{"b.onnx"}, onnxpass.Specialization{}
				return j
			}(), ""},
		"sizes win over gears": {Job{Sizes: onnxpass.Specialization{Batch: 4}}, "model: a.onnx\ngears: [1, 2]", []string{"a.onnx"}, []string{"batch"},
			Job{Models: []string{"a.onnx"}, Sizes: onnxpass.Specialization{Batch: 4}}, "gears 1;2 of npuctl.yaml are left out: --batch is given"},
		"gears win over sizes": {Job{Gears: "1,2"}, "model: {path: a.onnx, batch: 1}", []string{"a.onnx"}, []string{"gears"},
			Job{Models: []string{"a.onnx"}, Gears: "1,2"}, "sizes of open dims in npuctl.yaml are left out: --gears is given"},
		"gears beside sizes": {Job{Gears: "1,2"}, "model: {path: a.onnx, dims: {h: 8}}\ngears: [4, 8]", []string{"a.onnx"}, []string{"gears"},
			Job{Models: []string{"a.onnx"}, Gears: "1,2", Sizes: onnxpass.Specialization{Dims: map[string]int64{"h": 8}}}, "gears 4;8 of npuctl.yaml are left out: --gears is given"},
		"dynamic": {Job{Dynamic: true}, "model: {path: a.onnx, dims: {h: 8}, bind: {sr: 16}}", []string{"a.onnx"}, []string{"dynamic"},
			Job{Models: []string{"a.onnx"}, Dynamic: true, Sizes: onnxpass.Specialization{Bind: map[string]string{"sr": "16"}}}, "--dynamic is given"},
		"output is the file's model's": {Job{Models: []string{"b.onnx"}}, "model: a.onnx\ncompile: {output: special.om}", []string{"a.onnx", "b.onnx"}, nil,
			Job{Models: []string{"b.onnx"}}, ""},
		"gears of another model": {Job{Models: []string{"b.onnx"}}, "model: a.onnx\ngears: [1, 2]", []string{"a.onnx", "b.onnx"}, nil,
			Job{Models: []string{"b.onnx"}}, "sizes and gears of npuctl.yaml are left out: they are of a.onnx"},
		"gears of nobody's": {Job{Models: []string{"b.onnx"}}, "gears: [1, 2]", []string{"a.onnx", "b.onnx"}, nil,
			Job{Models: []string{"b.onnx"}}, "sizes and gears of npuctl.yaml are left out: it does not name the model that they are of"},
	} {
		t.Run(name, func(t *testing.T) {
			got, chosen, err := completed(t, c.job, c.yaml, c.files, c.given...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(Job{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if all := strings.Join(chosen, "\n"); !strings.Contains(all, c.chosen) {
				t.Errorf("chosen %s", all)
			}
		})
	}
}

func TestCompleteRefuses(t *testing.T) {
	for want, c := range map[string]struct {
		yaml  string
		files []string
	}{
		"there is no .onnx file here":      {"", nil},
		"there are 2 here: a.onnx, b.onnx": {"", []string{"a.onnx", "b.onnx"}},
		"model: there is no file":          {"model: gone.onnx", nil},
	} {
		if _, _, err := completed(t, Job{}, c.yaml, c.files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestWriteProject(t *testing.T) {
	folder := t.TempDir()
	if err := text.MustParse(t, imageModel).Save(filepath.Join(folder, "net.onnx"), onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	path, err := WriteProject(folder, "", "910b3")
	if err != nil {
		t.Fatal(err)
	}
	p, err := project.Read(path)
	if err != nil || p.Model.Path != "net.onnx" || len(p.SoC) != 1 || p.SoC[0] != "Ascend910B3" {
		t.Errorf("%+v, %v", p, err)
	}
	before, _ := os.ReadFile(path)
	if !strings.Contains(string(before), "input  x [batch, 3, height, width]") {
		t.Errorf("the file:\n%s", before)
	}
	if _, err := WriteProject(folder, "", ""); fault.FamilyOf(err) != fault.Usage {
		t.Errorf("written over: %v", err)
	}
	if after, _ := os.ReadFile(path); string(after) != string(before) {
		t.Error("the file has changed")
	}
}
