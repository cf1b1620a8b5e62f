package part

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/bench/ensemble/picture"
	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/onnx/tensor"
)

var update = flag.Bool("update", false, "write testdata/golden.json anew, by the Python models")

// value is a tensor as the reference reads and writes it.
type value struct {
	Name  string   `json:"name"`
	Type  string   `json:"type"`
	Shape []int64  `json:"shape"`
	Data  []byte   `json:"data,omitempty"`
	Texts [][]byte `json:"texts,omitempty"`
	// Sum is the SHA-256 of data that golden.json leaves out: of those that must be the same
	// to the bit, and are long.
	Sum string `json:"sum,omitempty"`
}

// sum is that of the data, in which what is no number has the same bits everywhere.
func (v *value) sum() string {
	data := bytes.Clone(v.Data)
	for at := 0; v.Type == "FP32" && at < len(data); at += 4 {
		if x := math.Float32frombits(binary.LittleEndian.Uint32(data[at:])); x != x {
			binary.LittleEndian.PutUint32(data[at:], 0x7fc00000)
		}
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))
}

// answer is what a model gives.
type answer struct {
	Outputs []value `json:"outputs,omitempty"`
	Error   string  `json:"error,omitempty"`
}

// job is a request of a model.
type job struct {
	name   string
	kind   Kind
	folder string
	config *configgen.Config
	inputs []value
	// levels is how far numbers may be off; bytes of a picture are whole levels.
	levels float64
}

const (
	python   = "../../../configgen/pipeline/python"
	pictures = "../picture/testdata"
	golden   = "testdata/golden.json"
)

// The models that are known are those that npuctl config writes now.
func TestKindOf(t *testing.T) {
	folders, err := os.ReadDir(python)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		data, err := os.ReadFile(filepath.Join(python, f.Name(), "model.py"))
		if err != nil {
			t.Fatal(err)
		}
		if got := KindOf(data); string(got) != f.Name() {
			t.Errorf("%s/model.py is taken for %q: has it changed? See to it that this package computes the same, and add its hash to kind.go", f.Name(), got)
		}
		if got := KindOf(bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))); string(got) != f.Name() {
			t.Errorf("%s/model.py with the line ends of Windows is taken for %q", f.Name(), got)
		}
		if got := KindOf(append(data, '#')); got != Unknown {
			t.Errorf("%s/model.py, changed, is taken for %q", f.Name(), got)
		}
	}
}

// Every part gives what the Python models gave, as golden.json keeps it.
func TestGolden(t *testing.T) {
	all := jobs(t)
	if *update {
		writeGolden(t, all, reference(t, all))
	}
	compare(t, all, readGolden(t, all))
}

// Every part gives what the Python models give, where a Python with NumPy and Pillow is.
func TestAgainstPython(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts Python")
	}
	all := jobs(t)
	compare(t, all, reference(t, all))
}

func compare(t *testing.T, all []job, want []answer) {
	for i := range all {
		j := &all[i]
		t.Run(j.name, func(t *testing.T) {
			got := j.run(t)
			if got.Error != want[i].Error && !(got.Error != "" && strings.Contains(got.Error, "cannot be decoded") && strings.Contains(want[i].Error, "cannot be decoded")) {
				t.Fatalf("error %q, want %q", got.Error, want[i].Error)
			}
			for o := range want[i].Outputs {
				j.hold(t, &got.Outputs[o], &want[i].Outputs[o])
			}
		})
	}
}

// hold compares two outputs.
func (j *job) hold(t *testing.T, got, want *value) {
	t.Helper()
	if got.Name != want.Name || got.Type != want.Type || fmt.Sprint(got.Shape) != fmt.Sprint(want.Shape) {
		t.Fatalf("%s %s %v, want %s %s %v", got.Name, got.Type, got.Shape, want.Name, want.Type, want.Shape)
	}
	if fmt.Sprintf("%q", got.Texts) != fmt.Sprintf("%q", want.Texts) {
		t.Errorf("%s: %q, want %q", got.Name, got.Texts, want.Texts)
	}
	if bytes.Equal(got.Data, want.Data) || want.Sum != "" && got.sum() == want.Sum {
		return
	}
	if want.Sum != "" {
		t.Fatalf("%s: other numbers than those of the Python model; TestAgainstPython says which", got.Name)
	}
	a, b := got.numbers(), want.numbers()
	worst, sum, count := 0.0, 0.0, 0
	for i := range b {
		if math.IsNaN(a[i]) && math.IsNaN(b[i]) || a[i] == b[i] {
			continue
		}
		if d := math.Abs(a[i] - b[i]); d > 0 || math.IsNaN(d) {
			worst, sum, count = max(worst, d), sum+d, count+1
		}
	}
	if count == 0 {
		return
	}
	text := fmt.Sprintf("%s: %d of %d numbers differ, by %.3g at most and %.3g in the mean", got.Name, count, len(b), worst, sum/float64(len(b)))
	if worst > j.levels || math.IsNaN(worst) {
		t.Errorf("%s; %.3g is allowed", text, j.levels)
		return
	}
	t.Log(text)
}

func (v *value) numbers() (out []float64) {
	d, err := tensor.FromRaw(typesByName[v.Type], []int{len(v.Data) * 8 / typesByName[v.Type].Bits()}, v.Data)
	if err != nil {
		panic(err)
	}
	out, ok := d.Float64s()
	if !ok {
		list, _ := d.Float32s()
		for _, x := range list {
			out = append(out, float64(x))
		}
	}
	if list, ok := d.Int64s(); ok && out == nil {
		for _, x := range list {
			out = append(out, float64(x))
		}
	}
	return out
}

var typesByName = map[string]tensor.Type{"FP16": tensor.Float16, "FP32": tensor.Float32, "FP64": tensor.Float64, "UINT8": tensor.Uint8, "INT32": tensor.Int32}

// run has the part answer; twice, as memory is used again.
func (j *job) run(t *testing.T) (a answer) {
	t.Helper()
	p, err := New(j.kind, j.config, j.folder)
	if err != nil {
		t.Fatal(err)
	}
	in, out := make([]engine.Buffer, len(j.inputs)), make([]engine.Buffer, len(j.config.Output))
	for i, v := range j.inputs {
		in[i] = engine.Buffer{Shape: v.Shape, Bytes: v.Data}
		for _, text := range v.Texts {
			in[i].Strings = append(in[i].Strings, string(text))
		}
	}
	for range 2 {
		if err := p.Run(in, out); err != nil {
			return answer{Error: err.Error()}
		}
	}
	for i, b := range out {
		v := value{Name: j.config.Output[i].Name, Type: strings.TrimPrefix(j.config.Output[i].DataType.String(), "TYPE_"), Shape: b.Shape, Data: b.Bytes}
		for _, text := range b.Strings {
			v.Texts = append(v.Texts, []byte(text))
		}
		a.Outputs = append(a.Outputs, v)
	}
	return a
}

// reference has the Python models answer.
func reference(t *testing.T, all []job) (answers []answer) {
	t.Helper()
	var list []map[string]any
	for i := range all {
		j := &all[i]
		list = append(list, map[string]any{"model": filepath.Join(python, string(j.kind), "model.py"), "folder": j.folder, "config": modelConfig(j.config), "inputs": j.inputs})
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(findPython(t), "testdata/reference.py")
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text), &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	if err := json.Unmarshal(out.Bytes(), &answers); err != nil {
		t.Fatal(err)
	}
	return answers
}

// findPython gives a Python with NumPy and Pillow: $NPUCTL_TEST_PYTHON, that of the path,
// or that beside the Triton server of the tests.
func findPython(t *testing.T) string {
	t.Helper()
	cache, _ := os.UserCacheDir()
	for _, path := range []string{os.Getenv("NPUCTL_TEST_PYTHON"), "python3", filepath.Join(cache, "npuctl", "triton", "venv", "bin", "python3")} {
		if path != "" && exec.Command(path, "-c", "import numpy, PIL").Run() == nil {
			return path
		}
	}
	t.Skip("SKIPPED: no Python with numpy and pillow is here, so that nothing was held against the Python models; NPUCTL_TEST_PYTHON names one")
	return ""
}

// modelConfig is a config as the server gives it to a model.
func modelConfig(c *configgen.Config) map[string]any {
	parameters := map[string]any{}
	for _, p := range c.Parameters {
		parameters[p.Key] = map[string]string{"string_value": p.Value.StringValue}
	}
	var in, out []map[string]any
	for _, p := range c.Input {
		in = append(in, map[string]any{"name": p.Name, "data_type": p.DataType.String(), "dims": p.Dims})
	}
	for _, p := range c.Output {
		out = append(out, map[string]any{"name": p.Name, "data_type": p.DataType.String(), "dims": p.Dims})
	}
	return map[string]any{"max_batch_size": c.MaxBatchSize, "input": in, "output": out, "parameters": parameters}
}

// golden.json has a line for each job; data are compressed.

func writeGolden(t *testing.T, all []job, answers []answer) {
	t.Helper()
	var out bytes.Buffer
	for i, a := range answers {
		for o := range a.Outputs {
			if v := &a.Outputs[o]; all[i].levels == 0 && len(v.Data) > 200 {
				v.Sum, v.Data = v.sum(), nil
			}
			a.Outputs[o].Data = deflated(a.Outputs[o].Data)
		}
		line, err := json.Marshal(struct {
			Job string `json:"job"`
			answer
		}{all[i].name, a})
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(line, '\n'))
	}
	if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readGolden(t *testing.T, all []job) (answers []answer) {
	t.Helper()
	data, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(lines) != len(all) {
		t.Fatalf("%s has %d lines for %d jobs: run with -update", golden, len(lines), len(all))
	}
	for i, line := range lines {
		var row struct {
			Job string `json:"job"`
			answer
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil || row.Job != all[i].name {
			t.Fatalf("%s: line %d is of %q, not of %q: %v", golden, i+1, row.Job, all[i].name, err)
		}
		for o := range row.Outputs {
			if row.Outputs[o].Data != nil {
				if row.Outputs[o].Data, err = io.ReadAll(flate.NewReader(bytes.NewReader(row.Outputs[o].Data))); err != nil {
					t.Fatal(err)
				}
			}
		}
		answers = append(answers, row.answer)
	}
	return answers
}

func deflated(data []byte) []byte {
	if data == nil {
		return nil
	}
	var out bytes.Buffer
	w, _ := flate.NewWriter(&out, flate.BestCompression)
	w.Write(data)
	w.Close()
	return out.Bytes()
}

// jobs are all that is compared.
func jobs(t *testing.T) (all []job) {
	t.Helper()
	all = append(all, decodeJobs(t)...)
	all = append(all, scaleJobs(t)...)
	all = append(all, featureJobs()...)
	all = append(all, topKJobs(t)...)
	return append(all, boxJobs(t)...)
}

// imageConfig is that of an image model; settings win over the usual ones.
func imageConfig(batch int32, kind configgen.DataType, height, width, channels int64, settings ...string) *configgen.Config {
	parameters := map[string]string{
		"size": fmt.Sprintf("%d,%d", height, width), "resize": "stretch", "short_side": "64", "interpolation": "bilinear", "pad": "114", "colour": "rgb", "layout": "NHWC",
		"scale": "1", "mean": "0", "std": "1", "upright": "false", "max_pixels": "1000000",
	}
	dims := []int64{height, width, channels}
	for i := 0; i < len(settings); i += 2 {
		parameters[settings[i]] = settings[i+1]
	}
	if parameters["layout"] == "NCHW" {
		dims = []int64{channels, height, width}
	}
	return &configgen.Config{
		MaxBatchSize: batch, Parameters: entries(parameters),
		Input:  []configgen.Input{{Name: "files", DataType: configgen.TypeString, Dims: []int64{1}}},
		Output: []configgen.Output{{Name: "picture", DataType: kind, Dims: dims}, {Name: "geometry", DataType: configgen.TypeFP32, Dims: []int64{6}}},
	}
}

func entries(parameters map[string]string) (list []configgen.Entry[string, configgen.Parameter]) {
	for key, text := range parameters {
		list = append(list, configgen.Entry[string, configgen.Parameter]{Key: key, Value: configgen.Parameter{StringValue: text}})
	}
	return list
}

func filesOf(files ...[]byte) []value {
	return []value{{Name: "files", Type: "STRING", Shape: []int64{int64(len(files)), 1}, Texts: files}}
}

func pictureFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(pictures, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// decodeJobs give each picture as it is, in colours and in gray.
func decodeJobs(t *testing.T) (all []job) {
	names, err := filepath.Glob(filepath.Join(pictures, "*.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range names {
		name := filepath.Base(path)
		if filepath.Ext(name) == ".py" || name == "wide.png" || name == "high.png" {
			continue
		}
		data := pictureFile(t, name)
		for _, colour := range []string{"rgb", "gray"} {
			channels := int64(len(colour)) // 3, and 4 for gray
			if colour == "gray" {
				channels = 1
			}
			m, err := picture.Decode(string(data), picture.Options{MaxPixels: 1e6, Upright: true})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			j := job{name: "decode " + name + " " + colour, kind: Image, inputs: filesOf(data),
				config: imageConfig(8, configgen.TypeUint8, int64(m.Height), int64(m.Width), channels, "colour", colour, "upright", "true")}
			if filepath.Ext(name) == ".jpg" {
				j.levels = 3
			}
			all = append(all, j)
		}
	}
	for name, j := range map[string]job{
		"a text":              {inputs: filesOf([]byte("no picture"))},
		"nothing":             {inputs: filesOf(pictureFile(t, "rgb.png"), []byte{})},
		"a broken picture":    {inputs: filesOf(pictureFile(t, "rgb.png")[:1200])},
		"too many pixels":     {config: imageConfig(8, configgen.TypeUint8, 8, 8, 3, "max_pixels", "1246")},
		"too much on its way": {config: imageConfig(8, configgen.TypeUint8, 8, 8, 3, "resize", "crop", "short_side", "30000")},
	} {
		j.name, j.kind = "refused: "+name, Image
		if j.inputs == nil {
			j.inputs = filesOf(pictureFile(t, "rgb.png"))
		}
		if j.config == nil {
			j.config = imageConfig(8, configgen.TypeUint8, 8, 8, 3)
		}
		all = append(all, j)
	}
	return sorted(all)
}

func sorted(all []job) []job {
	for i := range all {
		for k := i; k > 0 && all[k].name < all[k-1].name; k-- {
			all[k], all[k-1] = all[k-1], all[k]
		}
	}
	return all
}

// scaleJobs bring pictures to other sizes in every way, and to every type.
func scaleJobs(t *testing.T) (all []job) {
	for _, resize := range []string{"stretch", "crop", "letterbox"} {
		for _, filter := range []string{"nearest", "bilinear", "bicubic", "lanczos", "box"} {
			for _, size := range [][3]int64{{24, 20, 24}, {70, 96, 100}, {90, 31, 97}} {
				all = append(all, job{
					name: fmt.Sprintf("scale %s %s %v", resize, filter, size), kind: Image,
					inputs: filesOf(pictureFile(t, "wide.png"), pictureFile(t, "high.png")),
					config: imageConfig(8, configgen.TypeUint8, size[0], size[1], 3, "resize", resize, "interpolation", filter, "short_side", fmt.Sprint(size[2])),
				})
			}
		}
	}
	clip := []string{"scale", "0.00392156862745098", "mean", "0.48145466,0.4578275,0.40821073", "std", "0.26862954,0.26130258,0.27577711", "interpolation", "bicubic"}
	for _, kind := range []configgen.DataType{configgen.TypeFP16, configgen.TypeFP32, configgen.TypeFP64} {
		for _, more := range [][]string{{"layout", "NCHW"}, {"layout", "NHWC", "colour", "bgr"}} {
			all = append(all, job{name: fmt.Sprintf("normalise %v %v", kind, more), kind: Image, inputs: filesOf(pictureFile(t, "rgb.png")),
				config: imageConfig(4, kind, 9, 11, 3, append(clip[:len(clip):len(clip)], more...)...)})
		}
	}
	single := imageConfig(0, configgen.TypeFP32, 9, 11, 1, "colour", "gray", "layout", "NCHW", "resize", "letterbox", "pad", "7", "mean", "1", "std", "127.5")
	single.Output[1].Dims = []int64{6}
	all = append(all, job{name: "normalise one picture", kind: Image, config: single, inputs: []value{{Name: "files", Type: "STRING", Shape: []int64{1}, Texts: [][]byte{pictureFile(t, "rgba.png")}}}})
	return all
}

// floats are numbers of a seed, in a type.
func floats(kind string, seed uint64, shape ...int64) value {
	v := value{Name: "raw", Type: kind, Shape: shape}
	r := rand.New(rand.NewPCG(seed, 1))
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	for range n {
		x := r.NormFloat64() * 3
		switch kind {
		case "FP16":
			v.Data = binary.LittleEndian.AppendUint16(v.Data, uint16(tensor.F16From(float32(x))))
		case "FP32":
			v.Data = binary.LittleEndian.AppendUint32(v.Data, math.Float32bits(float32(x)))
		default:
			v.Data = binary.LittleEndian.AppendUint64(v.Data, math.Float64bits(x))
		}
	}
	return v
}

func (v value) with(at int, x float32) value {
	v.Data = bytes.Clone(v.Data)
	binary.LittleEndian.PutUint32(v.Data[4*at:], math.Float32bits(x))
	return v
}

// postConfig is a model behind the model.
func postConfig(batch int32, in []configgen.Input, out []configgen.Output, settings ...string) *configgen.Config {
	parameters := map[string]string{}
	for i := 0; i < len(settings); i += 2 {
		parameters[settings[i]] = settings[i+1]
	}
	return &configgen.Config{MaxBatchSize: batch, Input: in, Output: out, Parameters: entries(parameters)}
}

func featureJobs() (all []job) {
	for i, v := range []value{
		floats("FP32", 1, 3, 5), floats("FP32", 2, 2, 96), floats("FP16", 3, 2, 200), floats("FP64", 4, 3, 515), floats("FP32", 5, 1, 1025),
		{Name: "raw", Type: "FP32", Shape: []int64{1, 8}, Data: make([]byte, 32)}, floats("FP32", 6, 1, 9).with(3, float32(math.Inf(1))), floats("FP32", 7, 1, 9).with(3, 1e30),
	} {
		for _, normalise := range []string{"true", "false"} {
			all = append(all, job{name: fmt.Sprintf("features %d %s %v %s", i, v.Type, v.Shape, normalise), kind: Features, inputs: []value{v}, config: postConfig(8,
				[]configgen.Input{{Name: "raw", DataType: configgenType(v.Type), Dims: v.Shape[1:]}},
				[]configgen.Output{{Name: "features", DataType: configgen.TypeFP32, Dims: v.Shape[1:]}}, "normalise", normalise)})
		}
	}
	return all
}

func configgenType(name string) configgen.DataType {
	return map[string]configgen.DataType{"FP16": configgen.TypeFP16, "FP32": configgen.TypeFP32, "FP64": configgen.TypeFP64}[name]
}

// labelled makes a model's folder with names of classes.
func labelled(t *testing.T, content string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "labels.txt"), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func topKJobs(t *testing.T) (all []job) {
	ties := floats("FP32", 11, 2, 7).with(2, 5).with(4, 5).with(6, 5).with(9, float32(math.Copysign(0, -1)))
	folder := labelled(t, "cat\r\ndog\rbird\n人\n\nfish\nox\n")
	for i, v := range []value{floats("FP32", 8, 2, 7), floats("FP16", 9, 1, 1000), floats("FP64", 10, 3, 130), ties, ties.with(3, float32(math.NaN())), floats("FP32", 12, 2, 3)} {
		for _, softmax := range []string{"true", "false"} {
			j := job{name: fmt.Sprintf("topk %d %s %v %s", i, v.Type, v.Shape, softmax), kind: TopK, inputs: []value{v}, folder: folder, config: postConfig(8,
				[]configgen.Input{{Name: "raw", DataType: configgenType(v.Type), Dims: v.Shape[1:]}},
				[]configgen.Output{{Name: "classes", DataType: configgen.TypeInt32}, {Name: "scores", DataType: configgen.TypeFP32}},
				"k", "5", "softmax", softmax, "labels", "labels.txt")}
			if v.Shape[1] == 7 {
				j.config.Output = append(j.config.Output, configgen.Output{Name: "labels", DataType: configgen.TypeString})
			}
			if softmax == "true" {
				j.levels = 2e-7
			}
			all = append(all, j)
		}
	}
	return all
}

// crowd are candidates that cover each other, in one of the formats.
func crowd(format string, seed uint64, pictures, n, classes int) value {
	v := value{Name: "raw", Type: "FP32", Shape: []int64{int64(pictures), int64(4 + classes), int64(n)}}
	columns := map[string]int{"yolo11": 4 + classes, "yolov5": 5 + classes, "end2end": 6}[format]
	if format != "yolo11" {
		v.Shape = []int64{int64(pictures), int64(n), int64(columns)}
	}
	r := rand.New(rand.NewPCG(seed, 2))
	for range pictures {
		rows := make([][]float32, n)
		for i := range rows {
			x, y := float32(r.IntN(5)*24)+r.Float32()*6, float32(r.IntN(5)*24)+r.Float32()*6
			row := []float32{x, y, 20 + 10*r.Float32(), 20 + 10*r.Float32()}
			if format == "end2end" {
				row = []float32{x, y, x + row[2], y + row[3], r.Float32(), float32(r.IntN(classes))}
			}
			for len(row) < columns {
				row = append(row, r.Float32())
			}
			if i%7 == 0 {
				row[4] = 0.625 // equal scores
			}
			rows[i] = row
		}
		for k := range n * columns {
			x := float32(0)
			if format == "yolo11" {
				x = rows[k%n][k/n]
			} else {
				x = rows[k/columns][k%columns]
			}
			v.Data = binary.LittleEndian.AppendUint32(v.Data, math.Float32bits(x))
		}
	}
	return v
}

func boxJobs(t *testing.T) (all []job) {
	places := value{Name: "geometry", Type: "FP32", Shape: []int64{2, 6}}
	for _, x := range []float32{1.28, 1.28, 0, 14, 100, 78, 0.731, 0.733, 3, 0, 160, 171} {
		places.Data = binary.LittleEndian.AppendUint32(places.Data, math.Float32bits(x))
	}
	folder := labelled(t, "red\ngreen\nblue\n")
	for _, format := range []string{"yolo11", "yolov5", "end2end"} {
		for seed, more := range [][]string{
			{}, {"across_classes", "true", "overlap", "0.3"}, {"max_boxes", "4", "confidence", "0.1"}, {"max_candidates", "9"}, {"confidence", "1"}, {"overlap", "0"},
		} {
			for _, withGeometry := range []bool{false, true} {
				v := crowd(format, uint64(seed), 2, 90, 3)
				v = v.with(4*int(v.Shape[2])+3, float32(math.NaN()))
				settings := append([]string{"format", format, "confidence", "0.25", "overlap", "0.7", "across_classes", "false", "max_boxes", "30", "max_candidates", "30000", "labels", "labels.txt"}, more...)
				j := job{name: fmt.Sprintf("boxes %s %v %v", format, more, withGeometry), kind: Boxes, inputs: []value{v}, folder: folder, config: postConfig(8,
					[]configgen.Input{{Name: "raw", DataType: configgen.TypeFP32, Dims: v.Shape[1:]}},
					[]configgen.Output{{Name: "boxes", DataType: configgen.TypeFP32}, {Name: "scores", DataType: configgen.TypeFP32}, {Name: "classes", DataType: configgen.TypeInt32}, {Name: "count", DataType: configgen.TypeInt32}}, settings...)}
				if withGeometry {
					j.inputs = append(j.inputs, places)
					j.config.Input = append(j.config.Input, configgen.Input{Name: "geometry", DataType: configgen.TypeFP32, Dims: []int64{6}})
					j.config.Output = append(j.config.Output, configgen.Output{Name: "labels", DataType: configgen.TypeString})
				}
				all = append(all, j)
			}
		}
	}
	return all
}
