package onnx_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/npuctl/npuctl/internal/onnxpb"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/text"
)

// weights makes 2 KiB of floats that begin with first.
func weights(first float32) *tensor.Dense {
	data := make([]float32, 512)
	for i := range data {
		data[i] = first + float32(i)
	}
	return tensor.Of(data, 512)
}

// twoWeights is a model whose initializers a and b are worth a side file and whose
// small one is not.
func twoWeights(t testing.TB) *onnx.Model {
	m := text.MustParse(t, `(float[512] x) => () <float[1] small = {5}> { s = Add (x, small) }`)
	g := m.Graph
	a, b := g.AddInitializer("a", weights(1)), g.AddInitializer("b", weights(1000))
	p := g.Add("Add", []*onnx.Value{g.Find("s"), a}, []string{"p"}).Output(0)
	g.AddOutput(g.Add("Mul", []*onnx.Value{p, b}, []string{"y"}).Output(0))
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	return parse(t, encode(t, m))
}

func save(t testing.TB, m *onnx.Model, path string, mode onnx.ExternalData) {
	t.Helper()
	if err := m.Save(path, onnx.SaveOptions{ExternalData: mode}); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, path string) *onnx.Model {
	t.Helper()
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// holdsWeights checks the elements of a and b, wherever they lie.
func holdsWeights(t testing.TB, m *onnx.Model) {
	t.Helper()
	for name, first := range map[string]float32{"a": 1, "b": 1000} {
		d, err := m.Graph.Find(name).Initializer().Dense()
		if err != nil {
			t.Error(err)
		} else if !tensor.EqualBits(d, weights(first)) {
			t.Errorf("%s is %s", name, d)
		}
	}
}

// places tells where each external initializer lies.
func places(m *onnx.Model) (out []string) {
	for _, v := range m.Graph.Initializers() {
		if location, offset, length := v.Initializer().External(); location != "" {
			out = append(out, fmt.Sprintf("%s@%s:%d+%d", v.Name(), location, offset, length))
		}
	}
	return out
}

func list(t testing.TB, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func same[T any](t testing.TB, what string, got, want []T) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestSplitAndInline(t *testing.T) {
	folder := t.TempDir()
	original := twoWeights(t)
	path := filepath.Join(folder, "m.onnx")
	save(t, original, path, onnx.SplitExternal)
	split := open(t, path)
	same(t, "places", places(split), []string{"a@m.onnx.data:0+2048", "b@m.onnx.data:4096+2048"})
	holdsWeights(t, split)
	same(t, "files", list(t, folder), []string{"m.onnx", "m.onnx.data"})

	inline := filepath.Join(folder, "inline.onnx")
	save(t, split, inline, onnx.InlineExternal)
	m := open(t, inline)
	same(t, "places", places(m), nil)
	holdsWeights(t, m)
	sameMessage(t, encode(t, m), encode(t, original))
	sameMessage(t, encode(t, split), encode(t, original))
}

func TestKeepLeavesSideFilesAlone(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "m.onnx")
	save(t, twoWeights(t), path, onnx.SplitExternal)
	m := open(t, path)
	before, _ := os.ReadFile(path)

	beside := filepath.Join(folder, "opt.onnx")
	save(t, m, beside, onnx.KeepExternal)
	after, _ := os.ReadFile(beside)
	sameMessage(t, after, before)
	same(t, "files", list(t, folder), []string{"m.onnx", "m.onnx.data", "opt.onnx"})

	other := t.TempDir()
	save(t, m, filepath.Join(other, "far.onnx"), onnx.KeepExternal)
	far := open(t, filepath.Join(other, "far.onnx"))
	same(t, "places", places(far), []string{"a@far.onnx.data:0+2048", "b@far.onnx.data:4096+2048"})
	holdsWeights(t, far)
}

// Over and over the model that is being read is written, in every way.
func TestSaveOverTheModelItself(t *testing.T) {
	modes := []onnx.ExternalData{onnx.SplitExternal, onnx.KeepExternal, onnx.SplitExternal, onnx.InlineExternal, onnx.KeepExternal, onnx.SplitExternal}
	path := filepath.Join(t.TempDir(), "m.onnx")
	save(t, twoWeights(t), path, onnx.InlineExternal)
	for _, mode := range modes {
		m := open(t, path)
		// Something new at the front makes every offset another one.
		m.Graph.Find("small").SetInitializer(onnx.NewTensor(tensor.Of([]float32{5}, 1)))
		save(t, m, path, mode)
		holdsWeights(t, m)
		holdsWeights(t, open(t, path))
	}
}

// The side file that a save would replace may belong to the model that is read.
func TestSideFileOfTheSourceIsNotTaken(t *testing.T) {
	folder := t.TempDir()
	source, target := filepath.Join(folder, "m.onnx"), filepath.Join(folder, "n.onnx")
	save(t, twoWeights(t), source, onnx.SplitExternal)
	if err := os.Rename(source+".data", target+".data"); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(source)
	if err := os.WriteFile(source, bytes.ReplaceAll(b, []byte("m.onnx.data"), []byte("n.onnx.data")), 0o644); err != nil {
		t.Fatal(err)
	}
	m := open(t, source)
	save(t, m, target, onnx.SplitExternal)
	same(t, "places", places(open(t, target)), []string{"a@n.onnx.1.data:0+2048", "b@n.onnx.1.data:4096+2048"})
	holdsWeights(t, open(t, target))
	holdsWeights(t, open(t, source))

	err := m.Save(target+".data", onnx.SaveOptions{})
	if err == nil || !strings.Contains(err.Error(), "external data of the model") {
		t.Errorf("writing the model over its side file: %v", err)
	}
	holdsWeights(t, open(t, source))
}

// A model saved inline does not delete what lay beside the one it replaces: others
// may read it, as a model does that was saved with KeepExternal.
func TestSideFilesOfOverwrittenModelsStay(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "m.onnx")
	save(t, twoWeights(t), path, onnx.SplitExternal)
	m := open(t, path)
	save(t, m, filepath.Join(folder, "kept.onnx"), onnx.KeepExternal)
	save(t, m, path, onnx.InlineExternal)
	holdsWeights(t, open(t, filepath.Join(folder, "kept.onnx")))
}

func TestTensorsThatShareTheirBytes(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "m.onnx")
	m := twoWeights(t)
	g := m.Graph
	g.AddInitializerTensor("tied", g.Find("a").Initializer())
	save(t, m, path, onnx.SplitExternal)
	m = open(t, path)
	want := []string{"a@m.onnx.data:0+2048", "b@m.onnx.data:4096+2048", "tied@m.onnx.data:0+2048"}
	same(t, "places", places(m), want)
	save(t, m, path, onnx.SplitExternal)
	m = open(t, path)
	same(t, "places", places(m), want)
	if info, _ := os.Stat(path + ".data"); info.Size() != 4096+2048 {
		t.Errorf("the side file has %d bytes", info.Size())
	}
	holdsWeights(t, m)
}

// A failed save leaves everything as it was, and nothing behind.
func TestFailedSaveLeavesNothing(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "m.onnx")
	if err := os.MkdirAll(filepath.Join(path, "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	m := twoWeights(t)
	if err := m.Save(path, onnx.SaveOptions{ExternalData: onnx.SplitExternal}); err == nil {
		t.Error("a model was written over a folder")
	}
	same(t, "files", list(t, folder), []string{"m.onnx"})
	if err := m.Save(filepath.Join(folder, "missing", "m.onnx"), onnx.SaveOptions{}); err == nil {
		t.Error("a model was written into a folder that is not there")
	}
}

// externalModel writes a model whose initializer w, two floats, has these
// external_data entries: key, value, key, value.
func externalModel(t testing.TB, path string, entries ...string) {
	t.Helper()
	w := &onnxpb.TensorProto{
		Name: str("w"), DataType: num(int32(tensor.Float32)), Dims: []int64{2}, DataLocation: onnxpb.TensorProto_EXTERNAL.Enum(),
	}
	for pair := range slices.Chunk(entries, 2) {
		w.ExternalData = append(w.ExternalData, property(pair[0], pair[1])...)
	}
	b := marshal(t, &onnxpb.ModelProto{IrVersion: num(int64(8)), Graph: &onnxpb.GraphProto{
		Initializer: []*onnxpb.TensorProto{w}, Output: []*onnxpb.ValueInfoProto{info("w", nil)},
	}})
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// tree makes a model folder with a side file of 12 bytes, one beside the folder,
// and links to both.
func tree(t testing.TB) (model string) {
	t.Helper()
	root := t.TempDir()
	folder := filepath.Join(root, "model")
	if err := os.MkdirAll(filepath.Join(folder, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	data := tensor.Of([]float32{1, 2, 3}, 3).Raw()
	for _, path := range []string{filepath.Join(folder, "in.bin"), filepath.Join(folder, "sub", "in.bin"), filepath.Join(root, "out.bin")} {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"good": "in.bin", "bad": "../out.bin", "up": ".."} {
		if err := os.Symlink(to, filepath.Join(folder, link)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	return filepath.Join(folder, "m.onnx")
}

func TestExternalData(t *testing.T) {
	model := tree(t)
	for _, c := range []struct {
		name    string
		entries []string
		want    string // the elements, or the error
	}{
		{"whole entry", []string{"location", "in.bin", "offset", "4", "length", "8"}, "FLOAT[2]{2, 3}"},
		{"no offset", []string{"location", "in.bin", "length", "8"}, "FLOAT[2]{1, 2}"},
		{"no length", []string{"location", "in.bin", "offset", "4"}, "FLOAT[2]{2, 3}"},
		{"checksum and other keys", []string{"location", "in.bin", "checksum", "x", "basepath", "y"}, "FLOAT[2]{1, 2}"},
		{"folder below", []string{"location", "sub/in.bin"}, "FLOAT[2]{1, 2}"},
		{"dots that stay inside", []string{"location", "sub/../in.bin"}, "FLOAT[2]{1, 2}"},
		{"link inside", []string{"location", "good"}, "FLOAT[2]{1, 2}"},
		{"no location", []string{"offset", "0"}, "without a location"},
		{"parent", []string{"location", "../out.bin"}, "leaves the model's folder"},
		{"parent by a way round", []string{"location", "sub/../../out.bin"}, "leaves the model's folder"},
		{"absolute", []string{"location", filepath.Join(filepath.Dir(model), "in.bin")}, "leaves the model's folder"},
		{"backslash", []string{"location", `sub\in.bin`}, "leaves the model's folder"},
		{"link to a file outside", []string{"location", "bad"}, "is a link that leaves the model's folder"},
		{"link to a folder outside", []string{"location", "up/out.bin"}, "is a link that leaves the model's folder"},
		{"folder", []string{"location", "sub"}, "is not a regular file"},
		{"missing", []string{"location", "none.bin"}, `external data file "none.bin": no such file or directory; it belongs beside the model`},
		{"short", []string{"location", "in.bin", "offset", "8"}, "has 12 bytes; the tensor needs 8 from offset 8"},
		{"far beyond", []string{"location", "in.bin", "offset", "9223372036854775807"}, "has 12 bytes"},
		{"negative offset", []string{"location", "in.bin", "offset", "-4"}, "offset -4"},
		{"other length", []string{"location", "in.bin", "length", "12"}, "does not fit the 8 bytes of its dims"},
		{"no number", []string{"location", "in.bin", "offset", "4x"}, "is no number"},
	} {
		t.Run(c.name, func(t *testing.T) {
			externalModel(t, model, c.entries...)
			m, err := onnx.Open(model)
			if err != nil {
				oneLine(t, err, c.want)
				if !strings.Contains(err.Error(), `initializer "w"`) || !strings.Contains(err.Error(), model) {
					t.Errorf("the error names no file or initializer: %v", err)
				}
				return
			}
			defer m.Close()
			d, err := m.Graph.Find("w").Initializer().Dense()
			if err != nil || d.String() != c.want {
				t.Errorf("%v, %v, want %s", d, err, c.want)
			}
		})
	}
}

// oneLine checks that an error is one line and says what is wanted.
func oneLine(t testing.TB, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want one line with %q", err, want)
	}
}

// Caches of downloads keep files under other names and link to them: the model and
// its side file are both links into one folder. That is no way out of it.
func TestModelThatIsALink(t *testing.T) {
	root := t.TempDir()
	blobs, snapshot := filepath.Join(root, "blobs"), filepath.Join(root, "snapshot")
	for _, folder := range []string{blobs, snapshot} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	save(t, twoWeights(t), filepath.Join(snapshot, "m.onnx"), onnx.SplitExternal)
	for file, blob := range map[string]string{"m.onnx": "0a1b", "m.onnx.data": "2c3d"} {
		if err := os.Rename(filepath.Join(snapshot, file), filepath.Join(blobs, blob)); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("..", "blobs", blob), filepath.Join(snapshot, file)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	m := open(t, filepath.Join(snapshot, "m.onnx"))
	holdsWeights(t, m)
	save(t, m, filepath.Join(snapshot, "out.onnx"), onnx.KeepExternal)
	holdsWeights(t, open(t, filepath.Join(snapshot, "out.onnx")))
	save(t, m, filepath.Join(snapshot, "m.onnx"), onnx.SplitExternal) // follows the link
	same(t, "files", list(t, blobs), []string{"0a1b", "0a1b.data", "2c3d"})
	holdsWeights(t, open(t, filepath.Join(snapshot, "m.onnx")))
	holdsWeights(t, m)
}

// A file that loses bytes while a model stands on it is an error, no crash.
func TestFileCutShortWhileItIsRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files are read at once there")
	}
	large := func(t *testing.T) *onnx.Model {
		m := text.MustParse(t, `(float x) => (float y) { y = Neg (x) }`)
		m.Graph.AddInitializer("big", tensor.Of(make([]float32, 1<<18), 1<<18))
		m.Graph.AddInitializer("flags", tensor.Of(make([]bool, 3000), 3000))
		return m
	}
	for _, c := range []struct {
		name string
		mode onnx.ExternalData
		cut  string // what is appended to the model's name
	}{
		{"model", onnx.InlineExternal, ""},
		{"side file", onnx.SplitExternal, ".data"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "m.onnx")
			save(t, large(t), path, c.mode)
			m := open(t, path)
			big, flags := m.Graph.Find("big").Initializer(), m.Graph.Find("flags").Initializer()
			if _, err := big.Raw(); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path+c.cut, 100); err != nil {
				t.Fatal(err)
			}
			const want = "changed while it was being read"
			_, err := big.Dense()
			oneLine(t, err, want)
			_, err = big.Raw()
			oneLine(t, err, want)
			_, err = flags.Dense()
			oneLine(t, err, want)
			_, err = m.Encode()
			oneLine(t, err, want)
			for _, mode := range []onnx.ExternalData{onnx.InlineExternal, onnx.SplitExternal} {
				out := filepath.Join(t.TempDir(), "out.onnx")
				oneLine(t, m.Save(out, onnx.SaveOptions{ExternalData: mode}), want)
				same(t, "files", list(t, filepath.Dir(out)), nil)
			}
		})
	}
}

// Tensors may be asked for from many goroutines at once, and a model saved meanwhile.
func TestTensorsInParallel(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "m.onnx")
	save(t, twoWeights(t), path, onnx.SplitExternal)
	m := open(t, path)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			holdsWeights(t, m)
			if d, err := m.Graph.Find("small").Constant().Dense(); err != nil || d.Len() != 1 {
				t.Errorf("small is %v, %v", d, err)
			}
		})
	}
	for i := range 4 {
		group.Go(func() {
			out := filepath.Join(folder, fmt.Sprint(i, ".onnx"))
			if err := m.Save(out, onnx.SaveOptions{ExternalData: onnx.ExternalData(i % 3)}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}
