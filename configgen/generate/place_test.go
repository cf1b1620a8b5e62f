package generate_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/configgen/generate"
	"github.com/npuctl/npuctl/internal/atomicfile"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A link in the repository gives way to a file; what it points to is never written.
func TestLinksGiveWay(t *testing.T) {
	for _, how := range []string{"copied", "linked"} {
		job := generate.Job{Model: model(t, longer), Repository: t.TempDir(), Name: "net", Force: true, Link: how == "linked"}
		outside := filepath.Join(t.TempDir(), "theirs.pbtxt")
		if err := os.WriteFile(outside, []byte("name: \"theirs\"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		version := filepath.Join(job.Repository, "net", "1")
		if err := os.MkdirAll(version, 0o755); err != nil {
			t.Fatal(err)
		}
		links := map[string]string{filepath.Join(version, "model.onnx"): job.Model, filepath.Join(job.Repository, "net", "config.pbtxt"): outside}
		for link, to := range links {
			if err := os.Symlink(to, link); err != nil {
				t.Skipf("no symbolic links here: %v", err)
			}
		}
		before := read(t, job.Model)
		r, err := job.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if read(t, job.Model) != before || read(t, outside) != "name: \"theirs\"\n" {
			t.Error("what a link pointed to has changed")
		}
		for link := range links {
			if to, err := os.Readlink(link); err == nil {
				t.Errorf("%s is still a link to %s", link, to)
			}
		}
		if read(t, r.Config) != r.Text || !strings.Contains(strings.Join(r.Notes, "\n"), "which stays as it is") {
			t.Errorf("%v", r.Notes)
		}
	}
	// A link that leads nowhere stands in the way until forced.
	job := generate.Job{Model: model(t, batched), Repository: t.TempDir(), Name: "net"}
	link, nowhere := filepath.Join(job.Repository, "net", "1", "model.onnx"), filepath.Join(t.TempDir(), "none")
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(nowhere, link); err != nil {
		t.Fatal(err)
	}
	if _, err := job.Run(context.Background()); fault.FamilyOf(err) != fault.Usage {
		t.Errorf("a link to nothing: %v", err)
	}
	job.Force = true
	if _, err := job.Run(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(nowhere); err == nil {
		t.Error("a file was made where a link pointed to")
	}
}

// Folders that are links, and files where folders have to be, are refused.
func TestFoldersOfTheRepository(t *testing.T) {
	elsewhere := t.TempDir()
	for _, at := range []string{"net", "net/1", "net/warmup"} {
		for _, isLink := range []bool{true, false} {
			job := generate.Job{Model: model(t, batched), Repository: t.TempDir(), Name: "net"}
			path := filepath.Join(job.Repository, filepath.FromSlash(at))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			make := func() error { return os.WriteFile(path, nil, 0o644) }
			if isLink {
				make = func() error { return os.Symlink(elsewhere, path) }
			}
			if err := make(); err != nil {
				t.Skipf("no symbolic links here: %v", err)
			}
			for _, job.Force = range []bool{false, true} {
				if _, err := job.Run(context.Background()); fault.FamilyOf(err) != fault.Usage || !strings.Contains(err.Error(), path+" is a ") {
					t.Errorf("%s, link %v: %v", at, isLink, err)
				}
			}
		}
	}
	if entries, _ := os.ReadDir(elsewhere); len(entries) > 0 {
		t.Errorf("written through a link: %v", entries)
	}
	file := model(t, batched)
	if _, err := (generate.Job{Model: file, Repository: file}).Run(context.Background()); fault.FamilyOf(err) != fault.Usage {
		t.Errorf("a repository that is a file: %v", err)
	}
	if _, err := (generate.Job{Model: file, Repository: t.TempDir(), Name: strings.Repeat("n", 300)}).Run(context.Background()); fault.FamilyOf(err) != fault.Usage {
		t.Errorf("a long name: %v", err)
	}
}

// A model in its place is not replaced by a copy that differs from it.
func TestInputIsNotReplaced(t *testing.T) {
	job := generate.Job{Repository: t.TempDir(), Name: "net", Force: true}
	job.Model = filepath.Join(job.Repository, "net", "1", "model.onnx")
	if err := os.MkdirAll(filepath.Dir(job.Model), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(model(t, longer), job.Model); err != nil {
		t.Fatal(err)
	}
	before := read(t, job.Model)
	if _, err := job.Run(context.Background()); fault.FamilyOf(err) != fault.Usage || read(t, job.Model) != before {
		t.Errorf("%v", err)
	}
	// Another name of the same file is no input: the file itself stays.
	other := generate.Job{Model: filepath.Join(t.TempDir(), "other.onnx"), Repository: job.Repository, Name: "net", Force: true}
	if err := os.Link(job.Model, other.Model); err != nil {
		t.Skipf("no hard links here: %v", err)
	}
	if _, err := other.Run(context.Background()); err != nil || read(t, other.Model) != before {
		t.Errorf("%v", err)
	}
}

// Files of the caller come with the repository's or not at all.
func TestBeside(t *testing.T) {
	job := generate.Job{Model: model(t, batched), Repository: filepath.Join(t.TempDir(), "r"), Name: "net"}
	service := filepath.Join(t.TempDir(), "service.yaml")
	job.Beside = func(*generate.Result) ([]*atomicfile.File, error) {
		f, err := atomicfile.Create(service)
		if err != nil {
			return nil, err
		}
		return []*atomicfile.File{f}, fault.New(fault.Usage, "it is there")
	}
	if _, err := job.Run(context.Background()); fault.FamilyOf(err) != fault.Usage {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(job.Repository); err == nil {
		t.Error("the repository was made")
	}
	if left, _ := os.ReadDir(filepath.Dir(service)); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	job.Beside = func(*generate.Result) ([]*atomicfile.File, error) {
		f, err := atomicfile.Create(service)
		return []*atomicfile.File{f}, err
	}
	for range 2 { // the second time for the file alone
		if r, err := job.Run(context.Background()); err != nil || !r.Written {
			t.Errorf("%+v, %v", r, err)
		}
		if _, err := os.Stat(service); err != nil {
			t.Error(err)
		}
		os.Remove(service)
	}
}

// Data in a file that npu_ge might load for the model is refused for it.
func TestSideFilesNamedLikeModels(t *testing.T) {
	m := onnx.NewModel(8, 13)
	x := m.Graph.AddInput("x", onnx.TensorType(tensor.Float32, 2, 4096))
	w, err := tensor.Make(make([]float32, 4096), 4096)
	if err != nil {
		t.Fatal(err)
	}
	y := m.Graph.Add("Add", []*onnx.Value{x, m.Graph.AddInitializer("w", w)}, []string{"y"}).Output(0)
	y.Type = x.Type
	m.Graph.AddOutput(y)
	folder := t.TempDir()
	if err := m.Save(filepath.Join(folder, "net.onnx"), onnx.SaveOptions{ExternalData: onnx.SplitExternal}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "net.onnx" {
			continue
		}
		// The name within the model is made to end in .onnx, at the same length.
		name := e.Name()[:len(e.Name())-5] + ".onnx"
		text := strings.ReplaceAll(read(t, filepath.Join(folder, "net.onnx")), e.Name(), name)
		if err := os.WriteFile(filepath.Join(folder, "net.onnx"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(folder, e.Name()), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	job := generate.Job{Model: filepath.Join(folder, "net.onnx"), Repository: t.TempDir(), Name: "net", NoOptimize: true}
	if _, err := job.Run(context.Background()); fault.FamilyOf(err) != fault.Input || !strings.Contains(err.Error(), "might take for the model") {
		t.Errorf("%v", err)
	}
	job.Backend, job.NoOptimize = generate.ONNXRuntime, false
	if _, err := job.Run(context.Background()); err != nil {
		t.Errorf("onnxruntime: %v", err)
	}
}

// What is told of the model's tensors is told once.
func TestFindingsAreToldOnce(t *testing.T) {
	job := generate.Job{Model: model(t, `net (float x) => (float y) { y = Relu (x) }`), Repository: t.TempDir()}
	r, err := job.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, f := range r.Findings {
		if seen[f.Rule+f.Message]++; seen[f.Rule+f.Message] > 1 {
			t.Errorf("told twice: %s %s", f.Rule, f.Message)
		}
	}
	if len(seen) == 0 {
		t.Error("nothing is told of scalars")
	}
}

// A dim that npu_ge takes for the batch is not said to be unknown.
func TestBatchElsewhereInAnOutput(t *testing.T) {
	job := generate.Job{Model: model(t, `net (float[batch,3] x) => (float[3,batch] y) { y = Transpose (x) }`), Repository: t.TempDir()}
	_, err := job.Run(context.Background())
	if fault.FamilyOf(err) != fault.Input || !strings.Contains(err.Error(), "dim 1 of output y is batch, the first dim of all inputs") {
		t.Errorf("%v", err)
	}
}
