package compilation

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/text"
)

// A result replaces files, and nothing else: what stands in a folder of its name stays.
func TestFoldersAreNotReplaced(t *testing.T) {
	for _, name := range []string{"net.om", "net.om.json", "net.om.onnx", "net_linux_x86_64.om"} {
		w := newWorkshop(t, fixedModel)
		inside := filepath.Join(w.folder, name, "precious.txt")
		writeFile(t, inside, "years of work")
		_, err := w.job.Run(context.Background())
		if fault.FamilyOf(err) != fault.Usage || !strings.Contains(err.Error(), name+" is a folder") {
			t.Errorf("%s: %v", name, err)
		}
		if data, err := os.ReadFile(inside); err != nil || string(data) != "years of work" {
			t.Errorf("%s: %q, %v", name, data, err)
		}
		if left := w.leftovers(t, name); len(left) > 0 {
			t.Errorf("%s: the folder has %v", name, left)
		}
	}
}

// Also one that appears while ATC runs is not taken away.
func TestPlaceRefusesFolders(t *testing.T) {
	folder := t.TempDir()
	made, place1, old := filepath.Join(folder, "made"), filepath.Join(folder, "net.om"), filepath.Join(folder, "old")
	writeFile(t, made, "new")
	writeFile(t, filepath.Join(place1, "precious.txt"), "x")
	if err := place([]move{{made, place1}}, old); err == nil {
		t.Error("a folder was replaced")
	}
	if _, err := os.Stat(filepath.Join(place1, "precious.txt")); err != nil {
		t.Error(err)
	}
}

// A link stays, and the file it points to is replaced, as everywhere in npuctl.
func TestLinksAreFollowed(t *testing.T) {
	w := newWorkshop(t, fixedModel)
	store := filepath.Join(w.folder, "store", "v1.om")
	writeFile(t, store, "old")
	link := filepath.Join(w.folder, "net.om")
	if err := os.Symlink(store, link); err != nil {
		t.Skip(err)
	}
	if _, err := w.job.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(link); err != nil || to != store {
		t.Errorf("link to %q, %v", to, err)
	}
	if data, err := os.ReadFile(store); err != nil || string(data) == "old" {
		t.Errorf("it points to %d bytes, %v", len(data), err)
	}
}

// What is read is never written over, and no result by another.
func TestInputsAreNotReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		models []string
		set    func(j *Job, folder string)
		want   string
	}{
		"the graph":      {[]string{"net.om.onnx"}, func(*Job, string) {}, "net.om.onnx would be written over"},
		"the record":     {[]string{"y.om.json"}, func(j *Job, folder string) { j.Output = filepath.Join(folder, "y.om") }, "y.om.json, which is read"},
		"the result":     {[]string{"y.om"}, func(*Job, string) {}, "y.om, which is read"},
		"an option":      {[]string{"a.onnx"}, func(j *Job, folder string) { j.Options.KeepDType = filepath.Join(folder, "a.om.json") }, "a.om.json, which is read"},
		"optimised twin": {[]string{"a.onnx", "a.opt.onnx"}, func(*Job, string) {}, "leave out the one that npuctl made"},
		"one name": {[]string{"a.onnx", "sub/a.onnx"}, func(j *Job, folder string) { j.Output = filepath.Join(folder, "out") + "/" },
			"each with its own -o, or give them different names"},
		"one file for two":       {[]string{"a.onnx", "b.onnx"}, func(j *Job, folder string) { j.Output = filepath.Join(folder, "one.om") }, "give a folder: -o "},
		"no name":                {[]string{"a.onnx"}, func(j *Job, folder string) { j.Output = ".om" }, "no name before .om"},
		"another spelling of it": {[]string{"a.onnx", "./sub/../a.onnx"}, func(*Job, string) {}, "is named twice"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkshop(t, fixedModel)
			w.job.Models = nil
			var paths []string
			for _, m := range append(c.models, "a.om.json") {
				path := w.folder + string(filepath.Separator) + filepath.FromSlash(m)
				if err := os.MkdirAll(filepath.Join(w.folder, "sub"), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := text.MustParse(t, fixedModel).Save(path, onnx.SaveOptions{}); err != nil {
					t.Fatal(err)
				}
				paths = append(paths, path)
			}
			w.job.Models = paths[:len(c.models)]
			before := readAll(t, paths)
			c.set(&w.job, w.folder)
			_, err := w.job.Run(context.Background())
			if err == nil || fault.FamilyOf(err) != fault.Usage || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if readAll(t, paths) != before {
				t.Error("an input has changed")
			}
			if _, err := os.Stat(filepath.Join(w.folder, "one.om")); err == nil {
				t.Error("there is one.om")
			}
		})
	}
}

// External data of the model is read as well.
func TestExternalDataIsNotReplaced(t *testing.T) {
	w := newWorkshop(t, fixedModel)
	m := text.MustParse(t, `<ir_version: 8, opset_import: ["": 17]>
net (float[1,512] x) => (float[1,512] y) <float[512] w = {`+strings.ReplaceAll(numbersTo(512), ";", ",")+`}> { y = Mul (x, w) }`)
	if err := m.Save(w.model, onnx.SaveOptions{ExternalData: onnx.SplitExternal}); err != nil {
		t.Fatal(err)
	}
	data := w.model + ".data"
	if _, err := os.Stat(data); err != nil {
		t.Fatal(err)
	}
	before := readAll(t, []string{data})
	out := filepath.Join(w.folder, "x.om")
	if err := os.Symlink(data, out); err != nil {
		t.Skip(err)
	}
	w.job.Output = out
	_, err := w.job.Run(context.Background())
	if fault.FamilyOf(err) != fault.Usage || !strings.Contains(err.Error(), "net.onnx.data") {
		t.Errorf("%v", err)
	}
	if readAll(t, []string{data}) != before {
		t.Error("the data has changed")
	}
}

// The way from optimize to compile: the .om has the model's name, and what optimize
// wrote stays as it is.
func TestOptimisedInput(t *testing.T) {
	w := newWorkshop(t, fixedModel)
	optimised := filepath.Join(w.folder, "net.opt.onnx")
	if err := text.MustParse(t, fixedModel).Save(optimised, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	before := readAll(t, []string{optimised})
	w.job.Models = []string{optimised}
	for range 2 {
		if _, err := w.job.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if readAll(t, []string{optimised}) != before {
		t.Error("what optimize wrote has changed")
	}
	if left := w.leftovers(t, "net.opt.onnx", "net.om", "net.om.json", "net.om.onnx"); len(left) > 0 {
		t.Errorf("the folder: %v", left)
	}
}

// A job that fails leaves no folder that it made.
func TestNoEmptyFolder(t *testing.T) {
	w := newWorkshop(t, fixedModel, "fails")
	w.job.SoCs = []string{"Ascend910B3", "Ascend310P3"}
	w.job.Output = filepath.Join(w.folder, "new", "out") + "/"
	if _, err := w.job.Run(context.Background()); err == nil {
		t.Fatal("no error")
	}
	if left := w.leftovers(t); len(left) > 0 {
		t.Errorf("the folder has %v", left)
	}
}

func TestKindOf(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no devices there")
	}
	if err := mayWrite(os.DevNull); err == nil || !strings.Contains(err.Error(), "is a device") {
		t.Errorf("%v", err)
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readAll(t *testing.T, paths []string) string {
	t.Helper()
	all := ""
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		all += string(data) + "\x00"
	}
	return all
}
