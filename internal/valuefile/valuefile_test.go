package valuefile

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/compare"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/tensor/npy"
)

func TestEscape(t *testing.T) {
	for name, want := range map[string]string{
		"x": "x", "/model/layer.0:out": "%2Fmodel%2Flayer.0%3Aout", "..": "%2E%2E", "../../etc/passwd": "%2E.%2F..%2Fetc%2Fpasswd",
		".hidden": "%2Ehidden", "end.": "end%2E", "": "%", "%": "%25", "a%2Fb": "a%252Fb", "文本": "文本", "a b": "a%20b", "\x00\xff": "%00%FF",
		"CON": "%43ON", "nul.txt": "%6Eul.txt", "com1": "%63om1", "com10": "com10", `a\b`: "a%5Cb", "e\u0301": "e%CC%81",
	} {
		if got := Escape(name); got != want {
			t.Errorf("Escape(%q) = %q, want %q", name, got, want)
		}
	}
}

// Any name comes back, and its file lies in the folder it is put into.
func TestEscapeIsReversibleAndSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.StringMatching(`[./\\%:a-cA-C0-9]{0,8}`), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "name")
		file := Escape(name)
		if got := Unescape(file); got != name {
			t.Fatalf("%q became %q and came back as %q", name, file, got)
		}
		if !filepath.IsLocal(file) || filepath.Base(file) != file || strings.ContainsAny(file, `/\:`) {
			t.Fatalf("%q became %q", name, file)
		}
	})
}

func TestEscapeAll(t *testing.T) {
	got := EscapeAll([]string{"x", "X", "y"})
	if want := []string{"x", "%58", "y"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if Unescape(got[1]) != "X" {
		t.Errorf("%q does not come back", got[1])
	}
}

func FuzzUnescape(f *testing.F) {
	for _, seed := range []string{"", "%", "%2", "%zz", "a%2Fb", "%%41"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, escaped string) {
		name := Unescape(escaped)
		if again := Unescape(Escape(name)); again != name {
			t.Errorf("%q means %q, which comes back as %q", escaped, name, again)
		}
	})
}

// put makes files below a fresh folder: arrays as .npy, others as they are.
func put(t *testing.T, files map[string]any) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, content := range files {
		var data []byte
		switch c := content.(type) {
		case *tensor.Dense:
			var b bytes.Buffer
			if err := npy.WriteNPY(&b, c); err != nil {
				t.Fatal(err)
			}
			data = b.Bytes()
		case map[string]*tensor.Dense:
			var b bytes.Buffer
			if err := npy.WriteNPZ(&b, c); err != nil {
				t.Fatal(err)
			}
			data = b.Bytes()
		case []byte:
			data = c
		}
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

var (
	floats = tensor.Of([]float32{1, 2}, 2)
	ints   = tensor.Of([]int64{3, 4, 5}, 3)
)

func proto(name string, d *tensor.Dense) []byte { return onnx.EncodeTensor(name, d) }

func reader(slots ...Slot) Reader {
	return Reader{Side: Inputs, Slots: slots, Flag: "--inputs", Ignore: []string{"result"}}
}

func twoSlots() Reader {
	return reader(Slot{"/in/x:0", onnx.TensorType(tensor.Float32, 2)}, Slot{"ids", onnx.TensorType(tensor.Int64, 3)})
}

func TestReadFindsTheSlot(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]any
		paths []string // relative to the folder; none: the folder itself
	}{
		{"a folder by name", map[string]any{"%2Fin%2Fx%3A0.npy": floats, "ids.npy": ints, "result.npy": ints, "README.md": []byte("x"), ".ids.npy": []byte("x")}, nil},
		{"a folder by number", map[string]any{"input_0.pb": proto("any", floats), "input_1.pb": proto("", ints), "output_0.pb": []byte("x")}, nil},
		{"numbered .npy", map[string]any{"input_0.npy": floats, "input_1.npy": ints}, nil},
		{"files by name", map[string]any{"a/%2Fin%2Fx%3A0.npy": floats, "ids.npy": ints}, []string{"ids.npy", "a/%2Fin%2Fx%3A0.npy"}},
		{"files by number", map[string]any{"input_0.pb": proto("", floats), "input_1.pb": proto("", ints)}, []string{"input_1.pb", "input_0.pb"}},
		{"by the name inside", map[string]any{"a.pb": proto("ids", ints), "b.pb": proto("/in/x:0", floats)}, []string{"a.pb", "b.pb"}},
		{"an archive by name", map[string]any{"all.npz": map[string]*tensor.Dense{"/in/x:0": floats, "ids": ints, "result": floats}}, []string{"all.npz"}},
		{"an archive by position", map[string]any{"all.npz": map[string]*tensor.Dense{"arr_0": floats, "arr_1": ints}}, []string{"all.npz"}},
		{"raw", map[string]any{"%2Fin%2Fx%3A0.bin": floats.Raw(), "ids.bin": ints.Raw()}, nil},
		{"a file and a folder", map[string]any{"a/ids.npy": ints, "%2Fin%2Fx%3A0.NPY": floats}, []string{"a", "%2Fin%2Fx%3A0.NPY"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := put(t, test.files)
			paths := []string{folder}
			if test.paths != nil {
				paths = nil
				for _, p := range test.paths {
					paths = append(paths, filepath.Join(folder, p))
				}
			}
			got, err := twoSlots().Read(paths)
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]*tensor.Dense{"/in/x:0": floats, "ids": ints} {
				if r := compare.Values(want, got[name], compare.Options{}); !r.Equal {
					t.Errorf("%s: %v", name, r)
				}
			}
		})
	}
}

func TestReadAnyNameForTheOnlySlot(t *testing.T) {
	folder := put(t, map[string]any{"photo.npy": floats, "other.npy": ints})
	one := reader(Slot{"x", onnx.TensorType(tensor.Float32, 2)})
	got, err := one.Read([]string{filepath.Join(folder, "photo.npy")})
	if err != nil || got["x"] == nil {
		t.Errorf("got %v, %v", got, err)
	}
	got, err = twoSlots().Read([]string{"ids=" + filepath.Join(folder, "other.npy")})
	if err != nil || got["ids"] == nil {
		t.Errorf("NAME=FILE: got %v, %v", got, err)
	}
}

// Keras calls inputs input_1 and so on: a folder by name, not by number.
func TestReadNamesThatLookLikeNumbers(t *testing.T) {
	r := reader(Slot{"input_1", onnx.TensorType(tensor.Float32, 2)}, Slot{"input_0", onnx.TensorType(tensor.Int64, 3)})
	got, err := r.Read([]string{put(t, map[string]any{"input_1.npy": floats, "input_0.npy": ints})})
	if err != nil || got["input_1"] == nil || got["input_0"] == nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	for _, test := range []struct {
		name   string
		files  map[string]any
		family fault.Family
		want   []string
	}{
		{"unknown name", map[string]any{"idz.npy": ints, "%2Fin%2Fx%3A0.npy": floats}, fault.Usage, []string{`idz.npy: the model has no input "idz"; did you mean "ids"?`}},
		{"too many by number", map[string]any{"input_0.npy": floats, "input_7.npy": ints}, fault.Usage, []string{"input_7.npy: the model has 2 inputs"}},
		{"twice", map[string]any{"ids.npy": ints, "ids.pb": proto("", ints)}, fault.Usage, []string{`input "ids" is given by`}},
		{"nothing", map[string]any{"README.md": []byte("x")}, fault.Usage, []string{"the folder holds no .npy, .npz, .bin or .pb file"}},
		{"type and shape, told at once", map[string]any{"ids.npy": floats, "%2Fin%2Fx%3A0.npy": tensor.Of([]float32{1, 2, 3}, 3)}, fault.Input,
			[]string{`input "ids" from `, `it holds FLOAT[2], the model wants INT64[3]; in Python, array.astype("int64") converts it`, "\n", `it holds FLOAT[3], the model wants FLOAT[2]`}},
		{"damaged", map[string]any{"ids.pb": []byte("\xff\xff\xff"), "%2Fin%2Fx%3A0.npy": []byte("no array")}, fault.Input, []string{"ids.pb: ", ".npy: "}},
		{"raw of the wrong size", map[string]any{"ids.bin": []byte("12345")}, fault.Input, []string{"5 bytes do not make INT64[3]"}},
		{"an unknown name in an archive", map[string]any{"a.npz": map[string]*tensor.Dense{"idz": ints}}, fault.Usage, []string{`did you mean "ids"?`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := twoSlots().Read([]string{put(t, test.files)})
			if fault.FamilyOf(err) != test.family {
				t.Fatalf("error %v", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
			}
		})
	}
	if _, err := twoSlots().Read([]string{"/nowhere/x.npy"}); fault.FamilyOf(err) != fault.Usage || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("error %v", err)
	}
	folder := put(t, map[string]any{"ids.txt": []byte("1 2 3")})
	if _, err := twoSlots().Read([]string{filepath.Join(folder, "ids.txt")}); !strings.Contains(err.Error(), "it is no .npy, .npz, .bin or .pb file") {
		t.Errorf("error %v", err)
	}
}

func TestReadRawWithAnOpenDim(t *testing.T) {
	open := onnx.TensorType(tensor.Float32, 0, 2)
	open.Shape.Dims[0] = onnx.Dim{Param: "N"}
	for _, test := range []struct {
		bytes int
		want  string // of the error; "" for [3,2]
	}{{24, ""}, {23, "23 bytes do not make FLOAT[N,2]"}} {
		got, err := reader(Slot{"x", open}).Read([]string{put(t, map[string]any{"x.bin": make([]byte, test.bytes)})})
		if test.want != "" {
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v", err)
			}
			continue
		}
		if err != nil || !slices.Equal(got["x"].(*tensor.Dense).Shape(), []int{3, 2}) {
			t.Errorf("got %v, %v", got["x"], err)
		}
	}
	open.Shape.Dims[1] = onnx.Dim{}
	if _, err := reader(Slot{"x", open}).Read([]string{put(t, map[string]any{"x.bin": make([]byte, 8)})}); err == nil || !strings.Contains(err.Error(), "--input-shape") {
		t.Errorf("error %v", err)
	}
}

func values() []Named {
	return []Named{
		{"/out/y:0", floats},
		{"../../up", ints},
		{"Y", tensor.Of([]tensor.BF16{1, 2}, 2)},
		{"y", tensor.Scalar(true)},
		{"seq", &eval.Sequence{Elem: tensor.Float32, Items: []eval.Value{floats, floats}}},
		{"opt", &eval.Optional{Value: ints}},
		{"none", &eval.Optional{}},
		{"map", &eval.Map{Keys: tensor.Of([]string{"a", "b"}, 2), Values: floats}},
		{"maps", &eval.Sequence{Items: []eval.Value{&eval.Map{Keys: tensor.Of([]int64{-1, 300}, 2), Values: floats}}}},
	}
}

// types are those that a model would declare for values.
func types() []Slot {
	f, i := onnx.TensorType(tensor.Float32, 2), onnx.TensorType(tensor.Int64, 3)
	toFloat := func(key tensor.Type) *onnx.Type {
		return &onnx.Type{Kind: onnx.KindMap, Elem: key, Inner: onnx.TensorType(tensor.Float32)}
	}
	return []Slot{
		{"/out/y:0", f}, {"../../up", i}, {"Y", onnx.TensorType(tensor.BFloat16, 2)}, {"y", onnx.TensorType(tensor.Bool)},
		{"seq", onnx.SequenceType(f)}, {"opt", onnx.OptionalType(i)}, {"none", onnx.OptionalType(i)},
		{"map", toFloat(tensor.String)}, {"maps", onnx.SequenceType(toFloat(tensor.Int64))},
	}
}

// What is written is read back, and every file lies inside the target.
func TestRoundTrip(t *testing.T) {
	for _, format := range Formats() {
		t.Run(format, func(t *testing.T) {
			outer := t.TempDir()
			target := filepath.Join(outer, "a", "b", "out")
			paths, err := Write(target, format, Outputs, values())
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range paths {
				if filepath.Dir(p) != target {
					t.Errorf("%s is not in the target", p)
				}
			}
			if entries, _ := os.ReadDir(outer); len(entries) != 1 {
				t.Errorf("%d entries beside the target", len(entries))
			}
			if entries, _ := os.ReadDir(target); len(entries) != len(values()) {
				t.Errorf("%d files for %d values", len(entries), len(values()))
			}
			got, err := Reader{Side: Outputs, Slots: types(), Flag: "--expect"}.Read([]string{target})
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range values() {
				if r := compare.Values(v.Value, got[v.Name], compare.Options{}); !r.Equal {
					t.Errorf("%s: %v", v.Name, r)
				}
			}
		})
	}
}

func TestArchiveRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.npz")
	if _, err := Write(path, "npy", Outputs, values()[:4]); err != nil {
		t.Fatal(err)
	}
	got, err := Reader{Side: Outputs, Slots: types()[:4], Flag: "--expect"}.Read([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values()[:4] {
		if r := compare.Values(v.Value, got[v.Name], compare.Options{}); !r.Equal {
			t.Errorf("%s: %v", v.Name, r)
		}
	}
	if _, err := Write(path, "npy", Outputs, values()); err == nil || !strings.Contains(err.Error(), `"seq"`) {
		t.Errorf("error %v", err)
	}
}

// A failure leaves nothing, and a link in the place of a file is not followed.
func TestWriteFailsWhole(t *testing.T) {
	target, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("keep"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(target, "b.npy")); err != nil {
		t.Skip(err)
	}
	_, err := Write(target, "npy", Outputs, []Named{{"a", floats}, {"b", ints}})
	if err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("error %v", err)
	}
	if _, err := Write(target, "npy", Outputs, []Named{{strings.Repeat("long", 100), floats}}); err == nil || !strings.Contains(err.Error(), ".npz") {
		t.Errorf("error %v", err)
	}
	if entries, _ := os.ReadDir(target); len(entries) != 1 {
		t.Errorf("%d entries are left", len(entries))
	}
	if data, _ := os.ReadFile(outside); string(data) != "keep" {
		t.Errorf("the file outside is %q now", data)
	}
}

func TestMissing(t *testing.T) {
	r := twoSlots()
	got := r.Missing(map[string]eval.Value{}, func(name string) bool { return name == "ids" })
	if !slices.Equal(got, []string{"/in/x:0"}) {
		t.Errorf("got %q", got)
	}
}

// Files come from anywhere.
func FuzzDecode(f *testing.F) {
	for _, v := range values() {
		data, err := encode(v.Name, v.Value)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	folder := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, s := range types() {
			v, err := decode(data, s.Type, folder, 0)
			if err != nil {
				continue
			}
			if _, err := encode("x", v); err != nil {
				t.Errorf("%s was read and cannot be written: %v", s.Name, err)
			}
		}
	})
}

// Tensors may come as arrays of NumPy, all else only in ONNX's own form, and some not at all.
func TestFilesOfTypes(t *testing.T) {
	float := onnx.TensorType(tensor.Float32, 2)
	for _, c := range []struct {
		typ   *onnx.Type
		file  string
		reads bool
	}{
		{nil, "x%2Fy.npy", true},
		{float, "x%2Fy.npy", true},
		{onnx.OptionalType(float), "x%2Fy.npy", true},
		{onnx.SequenceType(float), "x%2Fy.pb", true},
		{onnx.OptionalType(onnx.SequenceType(float)), "x%2Fy.pb", true},
		{&onnx.Type{Kind: onnx.KindMap, Elem: tensor.Int64, Inner: float}, "x%2Fy.pb", true},
		{&onnx.Type{Kind: onnx.KindMap, Elem: tensor.Int32, Inner: float}, "x%2Fy.pb", false},
		{onnx.SequenceType(&onnx.Type{Kind: onnx.KindOpaque}), "x%2Fy.pb", false},
		{&onnx.Type{Kind: onnx.KindSparseTensor, Elem: tensor.Float32}, "x%2Fy.pb", false},
	} {
		if got := FileName(Slot{"x/y", c.typ}); got != c.file {
			t.Errorf("%v: %s, want %s", c.typ, got, c.file)
		}
		if got := Reads(c.typ); got != c.reads {
			t.Errorf("%v: read %v, want %v", c.typ, got, c.reads)
		}
	}
}
