package pipeline_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/npuctl/npuctl/configgen/generate"
	"github.com/npuctl/npuctl/configgen/pipeline"
	"github.com/npuctl/npuctl/configgen/rules"
	"github.com/npuctl/npuctl/internal/cannemu/atcemu"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/findings"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/text"
)

var update = flag.Bool("update", false, "write the golden configs anew")

// Models as small as the shapes that matter allow.
const (
	// clip gives the mean of each row of a picture, and of words what they are.
	clip = `clip (float[N,3,32,32] image, int64[N,4] words) => (float[N,96] image_features, float[N,4] word_features) {
		rows = ReduceMean <axes = [3], keepdims = 0> (image)
		image_features = Flatten (rows)
		word_features = Cast <to = 1> (words)
	}`
	classifier = `net (float[N,H,W,3] pixels) => (float[N,5] p) <int64[1] five = {5}> {
		flat = ReduceMean <axes = [1, 2], keepdims = 0> (pixels)
		more = Concat <axis = 1> (flat, flat)
		zero = Constant <value = int64[1] {0}> ()
		axis = Constant <value = int64[1] {1}> ()
		cut = Slice (more, zero, five, axis)
		p = Softmax (cut)
	}`
	plain = `net (float[N,3] x) => (float[N,3] y) { y = Relu (x) }`
	fixed = `net (float[2,3,8,8] image) => (float[2,3,8,8] y, float[2,3] z) {
		y = Relu (image)
		z = ReduceMean <axes = [2, 3], keepdims = 0> (y)
	}`
	alone = `net (uint8[8,8,1] image) => (uint8[8,8,1] y) { y = Identity (image) }`
)

// detector gives, for each of 16 places of a grid, a box of 24 x 24 and as scores of
// three classes the means of the three channels there.
func detector() string {
	var x, y, side []string
	for row := range 4 {
		for column := range 4 {
			x, y, side = append(x, fmt.Sprint(16*column+8)), append(y, fmt.Sprint(16*row+8)), append(side, "24")
		}
	}
	grid := strings.Join([]string{strings.Join(x, ","), strings.Join(y, ","), strings.Join(side, ","), strings.Join(side, ",")}, ",")
	return `detector (float[1,3,64,64] images) => (float[1,7,16] output0) <float[1,4,16] grid = {` + grid + `}, int64[3] flat = {1, 3, 16}> {
		means = AveragePool <kernel_shape = [16, 16], strides = [16, 16]> (images)
		scores = Reshape (means, flat)
		output0 = Concat <axis = 1> (grid, scores)
	}`
}

// folder writes models and other files into a folder of their own.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if filepath.Ext(name) != ".onnx" {
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		m, err := text.Parse(`<ir_version: 8, opset_import: ["": 13]> ` + content)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Save(path, onnx.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// ensemble runs the job of a pipeline in a folder.
func ensemble(dir, repository string) (*pipeline.Result, error) {
	return pipeline.EnsembleJob{Pipeline: filepath.Join(dir, "pipe.yaml"), Options: pipeline.Options{Repository: repository}}.Run(context.Background())
}

// stands holds a repository against the rules of npuctl validate.
func stands(t testing.TB, repository string) {
	t.Helper()
	result, err := rules.Check([]string{repository}, rules.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range result.Findings {
		if f.Severity != findings.Note {
			t.Errorf("%s: %s (%s)", f.Place(), f.Message, f.Rule)
		}
	}
}

// What is written for each kind; run with -update after a change, and read the diff.
func TestGolden(t *testing.T) {
	for _, test := range []struct {
		name, model, pipe string
		files             map[string]string
	}{
		{"features", clip, `
preprocess: { preset: cn_clip, input: picture, instances: 4 }
model: { path: model.onnx, backend: python, threads: 2 }
postprocess: { kind: features, from: image_features }
outputs: [word_features]`, nil},
		{"topk", classifier, `
name: labeller
max_batch_size: 4
environment: $$TRITON_MODEL_DIRECTORY/packages.tar.gz
preprocess: { preset: imagenet, size: 16, upright: true }
model: { path: model.onnx, backend: onnxruntime, dims: { H: 16, W: 16 } }
postprocess: { kind: topk, k: 2, labels: names.txt }`, map[string]string{"names.txt": "cat\ndog\n人\nbird\nfish"}},
		{"boxes", detector(), `
preprocess: { preset: yolo }
model: { path: model.onnx, gears: "", precision: origin, devices: [0, 1], instances: 2 }
postprocess: { kind: boxes, confidence: 0.5, max_boxes: 20, labels: names.txt }`, map[string]string{"names.txt": "red\ngreen\nblue\n"}},
		{"fixed_batch", fixed, `
preprocess: { resize: crop, interpolation: nearest, mean: [1, 2, 3], std: 0.5 }
model: { path: model.onnx, backend: python }
postprocess: { kind: features, normalise: false, from: z }`, nil},
		{"one_picture", alone, `
preprocess: { resize: letterbox, pad: 0 }
model: { path: model.onnx, backend: python }`, nil},
		{"no_preprocess", clip, `
model: { path: model.onnx, backend: python, name: net, dims: { N: 2 } }
postprocess: { kind: features, from: image_features }`, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := map[string]string{"model.onnx": test.model, "pipe.yaml": test.pipe}
			for name, content := range test.files {
				files[name] = content
			}
			dir, repository := folder(t, files), t.TempDir()
			r, err := ensemble(dir, repository)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Written {
				t.Error("nothing was written")
			}
			stands(t, repository)
			var got strings.Builder
			for _, m := range r.Models {
				written, err := os.ReadFile(m.Config)
				if err != nil || string(written) != m.Text {
					t.Errorf("%s is not what was told: %v", m.Config, err)
				}
				config := m.Text
				if m.Role == "model" && m.Backend != pipeline.Python {
					config = "as npuctl config writes it, for " + m.Backend + "\n"
				}
				fmt.Fprintf(&got, "-- %s --\n%s", m.Name, config)
				for _, f := range m.Files {
					if info, err := os.Stat(f.Path); err != nil || info.Size() != f.Bytes {
						t.Errorf("%s: %v", f.Path, err)
					}
				}
			}
			for _, n := range r.Notes {
				fmt.Fprintf(&got, "note: %s\n", n)
			}
			golden := filepath.Join("testdata", test.name+".txtar")
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got.String()); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if again, err := ensemble(dir, repository); err != nil || again.Written || again.Diff != "" {
				t.Errorf("again: written, %v", err)
			}
		})
	}
}

// What a pipeline gets wrong is told with its place, before anything is written.
func TestRefused(t *testing.T) {
	for _, test := range []struct{ name, model, pipe, want string }{
		{"no YAML", clip, "a: [", "pipe.yaml:1:4: did not find"},
		{"empty", clip, "", "pipe.yaml: the file is empty"},
		{"a list", clip, "- a", "pipe.yaml:1:1: a list of name: value is wanted here, not a list"},
		{"two documents", clip, "name: a\n---\nname: b", "pipe.yaml:2:1: a second document begins here"},
		{"a misspelt section", clip, "preproces: {}", `pipe.yaml:1:1: there is no "preproces" here; did you mean "preprocess"?`},
		{"a misspelt setting", clip, "model:\n  pth: model.onnx", `pipe.yaml:2:3: there is no "pth" here; did you mean "path"?`},
		{"given twice", clip, "name: a\nname: b", "pipe.yaml:2:1: name is given twice; the first stands in line 1"},
		{"a word for a number", clip, "version: one", `pipe.yaml:1:10: "one" is not a whole number`},
		{"a list for a text", clip, "name: [a, b]", "pipe.yaml:1:7: a text is wanted here, not a list"},
		{"a bad name", clip, "name: a/b\nmodel: {path: model.onnx}", `pipe.yaml:1:7: "a/b" is no name for a model`},
		{"a name that leads out", clip, "name: ..\nmodel: {path: model.onnx}", `pipe.yaml:1:7: ".." is no name for a model`},
		{"no model", clip, "preprocess: {}", "pipe.yaml:1:1: there is no model: section"},
		{"a model alone", clip, "model: {path: model.onnx}", "pipe.yaml:1:1: the pipeline is the model alone"},
		{"a compiled model", clip, "model: {path: model.om}\npreprocess: {}", "pipe.yaml:1:15: model.om is a compiled model, which npu_ge does not load"},
		{"no file", clip, "model: {path: other.onnx}\npreprocess: {}", "pipe.yaml:1:8: "},
		{"an unknown backend", clip, "model: {path: model.onnx, backend: pyton}\npreprocess: {}", `pipe.yaml:1:36: there is no "pyton" here; did you mean "python"?`},
		{"a setting of another backend", clip, "model: {path: model.onnx, threads: 2}\npreprocess: {}", "pipe.yaml:1:36: threads would be ignored: it is for backend: python"},
		{"a setting of another kind", clip, "model: {path: model.onnx}\npostprocess: {kind: topk, overlap: 0.5}", "pipe.yaml:2:36: overlap would be ignored: it is for kind: boxes"},
		{"no kind", clip, "model: {path: model.onnx}\npostprocess: {k: 5}", "pipe.yaml:2:14: postprocess has no kind"},
		{"a share above 1", clip, "model: {path: model.onnx}\npostprocess: {kind: boxes, confidence: 25}", "pipe.yaml:2:40: 25 is not between 0 and 1"},
		{"a division by 0", clip, "model: {path: model.onnx}\npreprocess: {std: [1, 0, 1]}", "pipe.yaml:2:19: std divides, and one of them is 0"},
		{"no input for pictures", plain, "model: {path: model.onnx, backend: python}\npreprocess: {}", "pipe.yaml:2:13: no input of pipe_model takes pictures: x FP32 [3]"},
		{"an input that there is not", clip, "model: {path: model.onnx, backend: python}\npreprocess: {to: imgae}", `pipe.yaml:2:18: the model pipe_model has no input "imgae"; did you mean "image"?`},
		{"an input of another type", clip, "model: {path: model.onnx, backend: python}\npreprocess: {to: words}", "pipe.yaml:2:18: input words is INT64 [4]: pictures are"},
		{"another size than the model's", clip, "model: {path: model.onnx, backend: python}\npreprocess: {size: [32, 64]}", "pipe.yaml:2:20: the model takes pictures of 32 x 32 (height x width), not 32 x 64"},
		{"no size at all", classifier, "model: {path: model.onnx, backend: python}\npreprocess: {}", "pipe.yaml:2:13: the model leaves the size of its pictures open"},
		{"another layout than the model's", clip, "model: {path: model.onnx, backend: python}\npreprocess: {layout: NHWC}", "takes pictures"},
		{"gray for three channels", clip, "model: {path: model.onnx, backend: python}\npreprocess: {colour: gray}", "pipe.yaml:2:22: gray: the model takes 3 channels"},
		{"two means for three channels", clip, "model: {path: model.onnx, backend: python}\npreprocess: {mean: [1, 2]}", "pipe.yaml:2:20: 2 numbers for 3 channels"},
		{"a mean of bytes", alone, "model: {path: model.onnx, backend: python}\npreprocess: {mean: 3}", "pipe.yaml:2:20: it would be ignored: the model takes bytes"},
		{"a crop out of less", clip, "model: {path: model.onnx, backend: python}\npreprocess: {resize: crop, short_side: 31}", "pipe.yaml:2:40: 31 is shorter than the 32 that are cut out"},
		{"an output that there is not", clip, "model: {path: model.onnx, backend: python}\npostprocess: {kind: features, from: features}", `pipe.yaml:2:37: the model pipe_model has no output "features"`},
		{"two outputs that could be meant", clip, "model: {path: model.onnx, backend: python}\npostprocess: {kind: features}", "pipe.yaml:2:14: features could be made of several outputs of pipe_model: image_features and word_features"},
		{"boxes of a vector", clip, "model: {path: model.onnx, backend: python}\npostprocess: {kind: boxes}", "image_features is FP32 [96]: boxes need 2 dims behind the batch"},
		{"more of the best than there are", classifier, "model: {path: model.onnx, backend: python}\npostprocess: {kind: topk, k: 6}", "pipe.yaml:2:30: the model has 5 classes"},
		{"names that are too few", classifier, "model: {path: model.onnx, backend: python}\npostprocess: {kind: topk, labels: names.txt}", "pipe.yaml:2:35: names.txt has 2 lines, and the model 5 classes"},
		{"another format than the model's", detector(), "model: {path: model.onnx, backend: python}\npostprocess: {kind: boxes, format: end2end}", "pipe.yaml:2:36: output output0 is FP32 [1, 7, 16]: that is not the format end2end"},
		{"another output that there is not", clip, "model: {path: model.onnx, backend: python}\npreprocess: {}\noutputs: [word_feature]", `pipe.yaml:3:10: the model pipe_model has no output "word_feature"; did you mean "word_features"?`},
		{"one name for two models", clip, "model: {path: model.onnx, backend: python, name: pipe}\npreprocess: {}", "two models are called pipe"},
		{"a picture called as another input", clip, "model: {path: model.onnx, backend: python}\npreprocess: {input: words}", `two things are called "words"`},
		{"pictures called as an output", clip, "model: {path: model.onnx, backend: python}\npreprocess: {input: word_features}", `pipe.yaml:2:21: two things are called "word_features": the output word_features of pipe_model, and the pictures; give the pictures another name with input: in preprocess`},
		{"pictures called as an answer", clip, "model: {path: model.onnx, backend: python}\npreprocess: {input: features}\npostprocess: {kind: features, from: image_features}", `pipe.yaml:2:21: two things are called "features": the pictures, and the output features of pipe_postprocess`},
		{"pictures without a name", clip, "model: {path: model.onnx, backend: python}\npreprocess: {input: ''}", "pipe.yaml:2:21: the pictures need a name"},
		{"an input called as the pictures usually are", strings.ReplaceAll(clip, "words", "picture"), "model: {path: model.onnx, backend: python}\npreprocess: {to: image}", `pipe.yaml:2:13: two things are called "picture": the input picture of pipe_model, and the pictures; give the pictures another name`},
		{"an output listed twice", clip, "model: {path: model.onnx, backend: python}\npreprocess: {}\noutputs: [word_features, word_features]", `pipe.yaml:3:10: outputs lists "word_features" twice`},
		{"no outputs at all", clip, "model: {path: model.onnx, backend: python}\npreprocess: {}\noutputs: []", "pipe.yaml:3:10: outputs lists none"},
		{"a size that is no gear", clip, `model: {path: model.onnx, gears: "1,2,4", preferred: 8}` + "\npreprocess: {}", "pipe.yaml:1:54: preferred 8 is above max_batch_size 4; raise max_batch_size, or leave the size out"},
		{"a batch above the gears", clip, "max_batch_size: 8\nmodel: {path: model.onnx, gears: '1,2,4'}\npreprocess: {}", "pipe.yaml:1:17: max_batch_size 8: the largest batch of gears is 4, and no other batch runs; make them equal, or leave max_batch_size out"},
		{"a precision that there is not", clip, "model: {path: model.onnx, gears: '1,2', precision: fp8}\npreprocess: {}", "pipe.yaml:1:52: precision fp8: there is no such mode"},
		{"gears that are none", clip, "model: {path: model.onnx, gears: '1,,2'}\npreprocess: {}", "pipe.yaml:1:34: gears 1,,2: "},
		{"a delay that is none", clip, "model: {path: model.onnx, backend: onnxruntime, max_queue_delay: 5ns}\npreprocess: {}", "pipe.yaml:1:66: max_queue_delay 5ns: the server counts whole microseconds"},
		{"a dim that there is not", clip, "model: {path: model.onnx, backend: onnxruntime, dims: {Q: 3}}\npreprocess: {}", "pipe.yaml:1:55: dims Q: the model has no symbolic dim of that name"},
		{"a batch that the model has not", fixed, "max_batch_size: 4\nmodel: {path: model.onnx, backend: python}\npreprocess: {}", "the model has no batch axis"},
		{"a model that is not there", clip, "model: {name: absent}\npreprocess: {}", "pipe.yaml:1:15: there is no "},
		{"speech", clip, "speech: {encoder: a, words: b, audio_root: /c}", "pipe.yaml:1:9: speech is one Python model, and no ensemble"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir, repository := folder(t, map[string]string{"model.onnx": test.model, "pipe.yaml": test.pipe, "names.txt": "a\nb\n"}), t.TempDir()
			_, err := ensemble(dir, repository)
			if err == nil {
				t.Fatal("it was taken")
			}
			if got := strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), ""); !strings.Contains(got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if f := fault.FamilyOf(err); f != fault.Input {
				t.Errorf("family %s: %v", f, err)
			}
			if strings.Contains(err.Error(), "--") {
				t.Errorf("it names a flag, and nobody gave one: %v", err)
			}
			if left, _ := os.ReadDir(repository); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// A model that npuctl config has written can be used as it is.
func TestModelThatIsThere(t *testing.T) {
	dir, repository := folder(t, map[string]string{"model.onnx": clip, "pipe.yaml": "model: {name: net}\npreprocess: {}\npostprocess: {kind: features, from: image_features}"}), t.TempDir()
	four := int32(4)
	job := generate.Job{Model: filepath.Join(dir, "model.onnx"), Repository: repository, Name: "net", MaxBatch: &four}
	if _, err := job.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	r, err := ensemble(dir, repository)
	if err != nil {
		t.Fatal(err)
	}
	if r.MaxBatchSize != 4 || r.Models[1].Text != "" || r.Models[1].Backend != generate.GE {
		t.Errorf("%+v", r)
	}
	stands(t, repository)
}

// What is there and differs stays, unless it is forced.
func TestForceAndDiff(t *testing.T) {
	dir, repository := folder(t, map[string]string{"model.onnx": clip, "pipe.yaml": "model: {path: model.onnx, backend: python}\npreprocess: {}"}), t.TempDir()
	r, err := ensemble(dir, repository)
	if err != nil {
		t.Fatal(err)
	}
	program := r.Models[0].Files[0].Path
	if err := os.WriteFile(program, []byte("# mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err = ensemble(dir, repository); fault.FamilyOf(err) != fault.Usage || !strings.Contains(err.Error(), "model.py is there and says something else") {
		t.Fatal(err)
	}
	job := pipeline.EnsembleJob{Pipeline: filepath.Join(dir, "pipe.yaml"), Options: pipeline.Options{Repository: repository, Preview: true}}
	if r, err = job.Run(context.Background()); err != nil || r.Written || !strings.Contains(r.Diff, "-# mine\n") {
		t.Fatalf("%v\n%s", err, r.Diff)
	}
	if mine, _ := os.ReadFile(program); string(mine) != "# mine\n" {
		t.Error("a preview wrote")
	}
	job.Preview, job.Force = false, true
	if r, err = job.Run(context.Background()); err != nil || !r.Written {
		t.Fatal(err)
	}
	if mine, _ := os.ReadFile(program); string(mine) == "# mine\n" {
		t.Error("--force wrote nothing")
	}
}

// Tensors between the steps make room for names that clients see, and so do the last
// step's outputs, which is told.
func TestNames(t *testing.T) {
	for _, test := range []struct{ name, model, pipe, inputs, outputs, note string }{
		{"a model's output called raw", strings.ReplaceAll(clip, "word_features", "raw"),
			"preprocess: {}\nmodel: {path: model.onnx, backend: python}\npostprocess: {kind: features, from: image_features}\noutputs: [raw]", "picture words", "features raw", ""},
		{"a model's input called prepared", strings.ReplaceAll(clip, "words", "prepared"),
			"preprocess: {}\nmodel: {path: model.onnx, backend: python}\noutputs: [image_features]", "picture prepared", "image_features", ""},
		{"a model's output called as the answer", strings.ReplaceAll(clip, "image_features", "features"),
			"preprocess: {}\nmodel: {path: model.onnx, backend: python}\npostprocess: {kind: features, from: features}\noutputs: [features]", "picture words", "features_ features",
			"the output features of postprocess is called features_: features is the output features of pipe_model"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir, repository := folder(t, map[string]string{"model.onnx": test.model, "pipe.yaml": test.pipe}), t.TempDir()
			r, err := ensemble(dir, repository)
			if err != nil {
				t.Fatal(err)
			}
			stands(t, repository)
			names := func(tensors []generate.Tensor) string {
				var list []string
				for _, v := range tensors {
					list = append(list, v.Name)
				}
				return strings.Join(list, " ")
			}
			if got := names(r.Inputs); got != test.inputs {
				t.Errorf("inputs %s", got)
			}
			if got := names(r.Outputs); got != test.outputs {
				t.Errorf("outputs %s", got)
			}
			if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, test.note) {
				t.Errorf("notes %s", notes)
			}
		})
	}
}

// What a link in the repository leads to stays as it is, whatever is forced.
func TestLinks(t *testing.T) {
	const mine = "mine\n"
	for _, test := range []struct {
		name, link string
		to         string // in the folder of what is mine
	}{
		{"a config", "pipe/config.pbtxt", "file"},
		{"a program", "pipe_preprocess/1/model.py", "file"},
		{"the model", "pipe_model/1/model.onnx", "file"},
		{"a link that leads nowhere", "pipe/config.pbtxt", "absent"},
		{"a model's folder", "pipe_model", "folder"},
		{"a version's folder", "pipe_preprocess/1", "folder"},
		{"a folder that is not there", "pipe/1", "absent"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir, repository := folder(t, map[string]string{"model.onnx": clip, "pipe.yaml": "model: {path: model.onnx, backend: python}\npreprocess: {}"}), t.TempDir()
			outside := folder(t, map[string]string{"file": mine})
			if err := os.Mkdir(filepath.Join(outside, "folder"), 0o755); err != nil {
				t.Fatal(err)
			}
			link := filepath.Join(repository, filepath.FromSlash(test.link))
			if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(outside, test.to), link); err != nil {
				t.Skip("no links here: ", err)
			}
			if _, err := ensemble(dir, repository); fault.FamilyOf(err) != fault.Usage {
				t.Errorf("without --force: %v", err)
			}
			job := pipeline.EnsembleJob{Pipeline: filepath.Join(dir, "pipe.yaml"), Options: pipeline.Options{Repository: repository, Preview: true, Force: true}}
			if _, err := job.Run(context.Background()); err != nil {
				t.Errorf("--diff: %v", err)
			}
			job.Preview = false
			_, err := job.Run(context.Background())
			if got, _ := os.ReadFile(filepath.Join(outside, "file")); string(got) != mine {
				t.Errorf("the file behind the link holds %q", got)
			}
			if left, _ := os.ReadDir(outside); len(left) != 2 {
				t.Errorf("outside is %v", left)
			}
			if left, _ := os.ReadDir(filepath.Join(outside, "folder")); len(left) != 0 {
				t.Errorf("written through a folder: %v", left)
			}
			info, statErr := os.Lstat(link)
			if statErr != nil {
				t.Fatal(statErr)
			}
			if test.to == "folder" || test.link == "pipe/1" {
				if fault.FamilyOf(err) != fault.Usage || info.Mode()&os.ModeSymlink == 0 {
					t.Errorf("%v, and the link is now %v", err, info.Mode())
				}
				return
			}
			if err != nil || !info.Mode().IsRegular() {
				t.Fatalf("%v, and the link is now %v", err, info.Mode())
			}
			stands(t, repository)
			if beside, _ := filepath.Glob(link + ".*"); len(beside) > 0 {
				t.Errorf("left: %v", beside)
			}
		})
	}
}

// stopping is a context that is cancelled when it has been asked a number of times.
type stopping struct {
	context.Context
	asked *int
	at    int
}

func (s stopping) Err() error {
	if *s.asked++; s.at > 0 && *s.asked >= s.at {
		return context.Canceled
	}
	return s.Context.Err()
}

// A link comes back when the job is stopped at the last moment.
func TestLinkComesBack(t *testing.T) {
	dir := folder(t, map[string]string{"model.onnx": clip, "pipe.yaml": "model: {path: model.onnx, backend: python}\npreprocess: {}", "mine": "mine\n"})
	run := func(at int) (link string, asked int, err error) {
		repository := t.TempDir()
		link = filepath.Join(repository, "pipe_preprocess", "config.pbtxt")
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(dir, "mine"), link); err != nil {
			t.Skip("no links here: ", err)
		}
		job := pipeline.EnsembleJob{Pipeline: filepath.Join(dir, "pipe.yaml"), Options: pipeline.Options{Repository: repository, Force: true}}
		_, err = job.Run(stopping{context.Background(), &asked, at})
		return link, asked, err
	}
	_, asked, err := run(0)
	if err != nil {
		t.Fatal(err)
	}
	link, _, err := run(asked)
	if fault.FamilyOf(err) != fault.Interrupted {
		t.Fatal(err)
	}
	if to, err := os.Readlink(link); err != nil || to != filepath.Join(dir, "mine") {
		t.Errorf("%s, %v", to, err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(link)); len(entries) != 1 {
		t.Errorf("left: %v", entries)
	}
}

// What fails or is stopped leaves nothing.
func TestNothingIsLeft(t *testing.T) {
	dir, repository := folder(t, map[string]string{"model.onnx": clip, "pipe.yaml": "model: {path: model.onnx, backend: python}\npreprocess: {}"}), t.TempDir()
	// A folder stands where the last file should go.
	if err := os.MkdirAll(filepath.Join(repository, "pipe", "config.pbtxt"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := ensemble(dir, repository); err == nil {
		t.Fatal("a folder was replaced")
	}
	if entries, _ := os.ReadDir(repository); len(entries) != 1 {
		t.Errorf("left: %v", entries)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	empty := filepath.Join(t.TempDir(), "repository")
	if _, err := (pipeline.EnsembleJob{Pipeline: filepath.Join(dir, "pipe.yaml"), Options: pipeline.Options{Repository: empty}}).Run(ctx); err == nil {
		t.Error("it went on")
	}
	if _, err := os.Stat(empty); err == nil {
		t.Error("something is left")
	}
}

// compile makes an .om of model.onnx with the emulator's own compiler.
func compile(t testing.TB, dir string, args ...string) string {
	t.Helper()
	var out strings.Builder
	process := atcemu.Process{Getenv: func(string) string { return dir }, Version: "test"}
	args = append([]string{"--framework=5", "--model=" + filepath.Join(dir, "model.onnx"), "--output=" + filepath.Join(dir, "model"), "--soc_version=Ascend910B3"}, args...)
	if code := atcemu.Main(context.Background(), args, process, &out, &out); code != 0 {
		t.Fatalf("exit code %d: %s", code, out.String())
	}
	made, err := filepath.Glob(filepath.Join(dir, "model*.om")) // of open shapes, the name has the host's system in it
	if err != nil || len(made) != 1 {
		t.Fatalf("made %v, %v", made, err)
	}
	return made[0]
}

// The parameters of a compiled model say which gears there are, and what follows them.
func TestCompiled(t *testing.T) {
	for _, test := range []struct {
		name, model string
		args        []string
		want        map[string]string
		in, out     []int64
	}{
		{"static", plain, []string{"--input_shape=x:2,3"}, map[string]string{"mode": "static", "gears": "", "cuts": "-,-"}, []int64{2, 3}, []int64{2, 3}},
		{"batches", plain, []string{"--input_shape=x:-1,3", "--dynamic_batch_size=1,4"}, map[string]string{"mode": "dymbatch", "gears": "1,3|4,3", "cuts": "0.0,-"}, []int64{-1, 3}, []int64{-1, 3}},
		{"dims", `net (float[N,L] x) => (float[N,L] y) { y = Relu (x) }`, []string{"--input_format=ND", "--input_shape=x:2,-1", "--dynamic_dims=5;2;9"},
			map[string]string{"mode": "dymdims", "gears": "2,5|2,2|2,9", "cuts": "-,0.1"}, []int64{2, -1}, []int64{2, -1}},
		{"open", plain, []string{"--input_shape=x:-1,3"}, map[string]string{"mode": "dymshape", "gears": "", "cuts": "-,-"}, []int64{-1, 3}, []int64{-1, 3}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir, repository := folder(t, map[string]string{"model.onnx": test.model}), t.TempDir()
			job := pipeline.PythonJob{Model: compile(t, dir, test.args...), Devices: []int{3, 1}, Instances: 2, Options: pipeline.Options{Repository: repository, Environment: "venv"}}
			r, err := job.Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			stands(t, repository)
			test.want["devices"] = "3,1"
			for key, value := range test.want {
				if line := fmt.Sprintf("key: %q value { string_value: %q }", key, value); value != "" && !strings.Contains(r.Models[0].Text, line) {
					t.Errorf("no %s in\n%s", line, r.Models[0].Text)
				}
			}
			if d := cmp.Diff(test.in, r.Inputs[0].Dims) + cmp.Diff(test.out, r.Outputs[0].Dims); d != "" {
				t.Error(d)
			}
			if !strings.Contains(strings.Join(r.Notes, "\n"), "npu_ge does not load compiled models") {
				t.Errorf("notes %v", r.Notes)
			}
		})
	}
}

func TestPythonRefused(t *testing.T) {
	dir := folder(t, map[string]string{"model.onnx": plain, "pipe.yaml": "model: {path: model.onnx}\npreprocess: {}"})
	om := compile(t, dir, "--input_shape=x:2,3")
	eight := int32(8)
	for _, test := range []struct {
		job  pipeline.PythonJob
		want string
	}{
		{pipeline.PythonJob{Model: filepath.Join(dir, "model.onnx"), Devices: []int{0}}, "--devices would be ignored"},
		{pipeline.PythonJob{Model: om, Providers: []string{"CPUExecutionProvider"}}, "--providers would be ignored"},
		{pipeline.PythonJob{Model: om, MaxBatch: &eight}, "--max-batch-size: an .om has the batch"},
		{pipeline.PythonJob{Model: om, Devices: []int{1, 1}}, "--devices: 1: give numbers"},
		{pipeline.PythonJob{Model: om, Name: "a/b"}, "--name a/b"},
		{pipeline.PythonJob{Model: filepath.Join(dir, "absent.om")}, "absent.om"},
		{pipeline.PythonJob{Model: filepath.Join(dir, "pipe.yaml")}, "there is no speech: section"},
	} {
		if _, err := test.job.Run(context.Background()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
}

// No file makes the reader panic, or reads as something that it does not refuse.
func FuzzSpec(f *testing.F) {
	for _, seed := range []string{
		"model: {path: a.onnx}\npreprocess: {size: [1, 2], mean: [0.5]}", "a: &a [*a]", "name: \"\\0\"", "model: {path: 1, dims: {a: 2}}\n",
		"postprocess:\n  kind: boxes\n  confidence: .nan\n", "speech: {encoder: x, words: y, audio_root: /z, devices: [0]}", "model: *m", "? [a]\n: b",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := pipeline.ParseSpec("pipe.yaml", data)
		switch {
		case err != nil && fault.FamilyOf(err) != fault.Input:
			t.Errorf("family %s: %v", fault.FamilyOf(err), err)
		case err == nil && s.Model == nil && s.Speech == nil:
			t.Error("nothing was read")
		}
	})
}

// The files in examples/ read; that of the model which lies there makes a repository.
func TestExamples(t *testing.T) {
	examples, err := filepath.Glob(filepath.Join("..", "..", "examples", "pipelines", "*.yaml"))
	if err != nil || len(examples) < 4 {
		t.Fatalf("%v, %v", examples, err)
	}
	for _, path := range examples {
		if _, err := pipeline.ReadSpec(path); err != nil {
			t.Error(err)
		}
	}
	repository := t.TempDir()
	job := pipeline.EnsembleJob{Pipeline: filepath.Join("..", "..", "examples", "pipelines", "attention.yaml"), Options: pipeline.Options{Repository: repository}}
	if _, err := job.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	stands(t, repository)
}

// Every field of --json is documented.
func TestJSONIsDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "pipelines.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## `--json`")
	for _, object := range []any{pipeline.Result{}, pipeline.Model{}, generate.File{}, generate.Tensor{}} {
		of := reflect.TypeOf(object)
		for i := range of.NumField() {
			if name := of.Field(i).Tag.Get("json"); !strings.Contains(section, "`"+name+"`") {
				t.Errorf("%s of %T is not there", name, object)
			}
		}
	}
}

// The comments of a model's config name settings of the pipeline's file, not flags that
// there are not; the model is optimised unless the file says otherwise.
func TestCommentsNameSettings(t *testing.T) {
	const twice = `net (float[N,3] x) => (float[N,3] y) <float[3] a = {1, 2, 3}, float[3] b = {4, 5, 6}> { c = Add (a, b) y = Mul (x, c) }`
	for _, test := range []struct{ settings, want string }{{"", "2 nodes are now 1"}, {"  no_optimize: true\n", ""}} {
		dir := folder(t, map[string]string{"net.onnx": twice, "pipe.yaml": "name: pipe\npostprocess: { kind: features }\nmodel:\n  path: net.onnx\n" + test.settings})
		r, err := ensemble(dir, filepath.Join(dir, "models"))
		if err != nil {
			t.Fatal(err)
		}
		if notes := strings.Join(r.Notes, "\n"); test.want == "" && strings.Contains(notes, "nodes are") || !strings.Contains(notes, test.want) {
			t.Errorf("notes %q", r.Notes)
		}
		for line := range strings.Lines(r.Models[0].Text) {
			if strings.HasPrefix(line, "#") && strings.Contains(line, "--") {
				t.Errorf("a comment names a flag: %s", line)
			}
		}
		if text := r.Models[0].Text; !strings.Contains(text, "(max_batch_size)") || !strings.Contains(text, "(precision)") {
			t.Errorf("no setting is named:\n%s", text)
		}
	}
}
