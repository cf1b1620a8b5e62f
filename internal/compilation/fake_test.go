package compilation

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/internal/cannemu/omwriter"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/text"
	"github.com/npuctl/npuctl/onnxpass"
)

// fakeVariable makes this test program act as an atc; its words say how it behaves.
const fakeVariable = "NPUCTL_TEST_COMPILER"

func TestMain(m *testing.M) {
	words := os.Getenv(fakeVariable)
	switch {
	case words == "":
		os.Exit(m.Run())
	case len(os.Args) > 1 && os.Args[1] == "worker":
		time.Sleep(time.Minute)
		os.Exit(0)
	}
	os.Exit(fakeATC(strings.Split(words, ",")))
}

// fakeATC reads a command line as ATC does and writes an .om with the signature that
// it asks for, or fails as told.
func fakeATC(words []string) int {
	is := map[string]bool{}
	for _, w := range words {
		is[w] = true
	}
	fmt.Println("ATC start working now, please wait for a moment.")
	if log := os.Getenv("ASCEND_PROCESS_LOG_PATH"); log != "" {
		folder := filepath.Join(log, "debug", "plog")
		os.MkdirAll(folder, 0o755)
		os.WriteFile(filepath.Join(folder, "plog-1_2.log"), []byte("[ERROR] GE(1,atc.bin):2025-03-18-14:35:48.619.348 [graph.cc:7]1 Build: graph of [second] is odd\n"), 0o644)
	}
	line, _ := atc.Parse(os.Args[1:])
	switch {
	case is["fails"]:
		fmt.Print("...\nATC run failed, Please check the detail log, Try 'atc --help' for more information\n" +
			"EZ3003: [PID: 3] 2025-02-25-14:07:19.774.362 No supported Ops kernel and engine are found for [second], optype [Relu].\n")
		return 255
	case is["lies"]:
		fmt.Println("ATC run success, welcome to the next use.")
		return 0
	case is["hangs"]:
		time.Sleep(time.Minute)
	}
	if is["workers"] {
		worker := exec.Command(os.Args[0], "worker")
		if err := worker.Start(); err != nil {
			panic(err)
		}
		defer worker.Process.Kill()
	}
	path := line.Value("output") + ".om"
	if is["suffix"] {
		path = line.Value("output") + "_linux_x86_64.om"
	}
	if is["link"] { // to a file of somebody else's
		os.Remove(path)
		if err := os.Symlink(os.Getenv(linkVariable), path); err != nil {
			panic(err)
		}
		fmt.Println("ATC run success, welcome to the next use.")
		return 0
	}
	if is["half"] || is["half-fails"] {
		os.WriteFile(path, []byte("IMOD half of it"), 0o600)
		if is["half-fails"] {
			return 255
		}
		fmt.Println("ATC run success, welcome to the next use.")
		return 0
	}
	weights := filepath.Join(filepath.Dir(path), "weight")
	if is["weights"] && !is["half-hangs"] && line.Value("log") == "debug" { // one of two at a time, which fails at its end
		os.MkdirAll(weights, 0o755)
		os.WriteFile(filepath.Join(weights, "weight_of_the_first"), []byte("w"), 0o600)
		time.Sleep(500 * time.Millisecond)
		return 255
	}
	if is["half-hangs"] {
		os.WriteFile(path, []byte("IMOD half of it"), 0o600)
		if is["weights"] {
			os.MkdirAll(weights, 0o755)
			os.WriteFile(filepath.Join(weights, "weight_1"), []byte("w"), 0o600)
		}
		time.Sleep(time.Minute)
	}
	if is["slow"] { // in a file of half a size
		os.WriteFile(path, []byte("IMOD half of it"), 0o600)
		os.MkdirAll(filepath.Join(os.Getenv("ASCEND_WORK_PATH"), "kernel_meta"), 0o755)
		time.Sleep(20 * time.Millisecond)
		os.Remove(path)
	}
	if err := writeInPlace(path, fakeFile(line, is)); err != nil {
		panic(err)
	}
	if is["weights"] {
		os.MkdirAll(weights, 0o755)
		os.WriteFile(filepath.Join(weights, "weight_1"), []byte("w"), 0o600)
	}
	if !is["silent"] {
		fmt.Println("ATC run success, welcome to the next use.")
	}
	return 0
}

// linkVariable says where the link leads that the fake makes in place of an .om.
const linkVariable = "NPUCTL_TEST_LINK"

// writeInPlace writes an .om as ATC does: at its place, where a kill leaves half of it.
func writeInPlace(path string, f *omwriter.File) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Write(out), out.Close())
}

func fakeFile(line *atc.CommandLine, is map[string]bool) *omwriter.File {
	m, err := onnx.Open(line.Value("model"))
	if err != nil {
		panic(err)
	}
	defer m.Close()
	given := map[string]atc.InputShape{}
	if text := line.Value("input_shape"); text != "" {
		shapes, d := atc.ParseInputShape(text)
		if d != nil {
			panic(d.Message)
		}
		for _, s := range shapes {
			given[s.Name] = s
		}
	}
	s := &omwriter.Signature{}
	for _, v := range onnxpass.RealInputs(m) {
		s.Inputs = append(s.Inputs, port(v, given[v.Name()]))
		s.ShapeOrder = append(s.ShapeOrder, v.Name())
	}
	for i, v := range m.Graph.Outputs() {
		p := port(v, atc.InputShape{})
		p.Name = fmt.Sprintf("node%d:0:%s", i, v.Name())
		s.Outputs = append(s.Outputs, p)
	}
	if is["wrong-shape"] {
		s.Inputs[0].Dims[0]++
	}
	for _, kind := range []atc.GearKind{atc.BatchGears, atc.ImageGears, atc.DimsGears} {
		if text := line.Value(kind.Flag()); text != "" {
			g, d := atc.ParseGears(kind, text)
			if d != nil {
				panic(d.Message)
			}
			setGears(s, g)
		}
	}
	chip := line.Value("soc_version")
	if is["wrong-chip"] {
		chip = "Ascend310P3"
	}
	name := filepath.Base(line.Value("output"))
	return &omwriter.File{Name: name, Models: []omwriter.Model{omwriter.NewModel(omwriter.Parts{
		Signature: s, ModelDef: &omwriter.ModelDef{Name: name, Version: 2, Platform: omwriter.DefaultPlatform,
			Graphs: []omwriter.Graph{{Name: name}}, Attributes: []omwriter.Attribute{{Name: "soc_version", Value: omwriter.Text(chip)}}},
	})}}
}

func port(v *onnx.Value, given atc.InputShape) omwriter.Port {
	p := omwriter.Port{Name: v.Name(), Format: 2, DataType: map[tensor.Type]int32{tensor.Float32: 0, tensor.Int64: 9}[v.Type.Elem]}
	for i, d := range v.Type.Shape.Dims {
		size := int64(-1)
		switch {
		case given.Name != "" && given.Axes[i].IsFixed():
			size = given.Axes[i].High
		case given.Name == "" && d.Known:
			size = d.Value
		}
		p.Dims = append(p.Dims, size)
	}
	p.DimsV2 = p.Dims
	return p
}

func setGears(s *omwriter.Signature, g atc.Gears) {
	for _, row := range g.Rows {
		var wide []uint64
		for _, n := range row {
			wide = append(wide, uint64(n))
		}
		switch g.Kind {
		case atc.BatchGears:
			s.Batches = append(s.Batches, wide[0])
		case atc.ImageGears:
			s.Images = append(s.Images, wide)
		case atc.DimsGears:
			s.Dims = append(s.Dims, wide)
		}
	}
}

// The models that tests compile: one with a picture's open sizes, one with texts.
const (
	imageModel = `<ir_version: 8, opset_import: ["": 17]>
net (float[batch,3,height,width] x) => (float[batch,3,height,width] y) {
  a = Abs (x)
  [second] b = Relu (a)
  y = Neg (b)
}`
	textModel = `<ir_version: 8, opset_import: ["": 17]>
net (int64[batch,length] ids, int64[batch,length] mask) => (int64[batch,length] y) { y = Mul (ids, mask) }`
	fixedModel = `<ir_version: 8, opset_import: ["": 17]>
net (float[1,3] x) => (float[1,3] y) <float[1] zero = {0}> { a = Add (x, zero)  y = Relu (a) }`
)

// workshop is a folder with a model and a toolkit whose atc is this test program.
type workshop struct {
	folder, model string
	kit           string
	job           Job
}

// emulated makes the workshop's toolkit an emulator.
func (w workshop) emulated(t *testing.T) workshop {
	t.Helper()
	writeFile(t, filepath.Join(w.kit, atc.MarkerFile), "{}")
	return w
}

func newWorkshop(t *testing.T, model string, behaviour ...string) workshop {
	t.Helper()
	folder := t.TempDir()
	w := workshop{folder: folder, model: filepath.Join(folder, "net.onnx")}
	if err := text.MustParse(t, model).Save(w.model, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	kit := filepath.Join(t.TempDir(), "kit")
	for _, f := range []string{"bin", "opp"} {
		if err := os.MkdirAll(filepath.Join(kit, f), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(self, filepath.Join(kit, "bin", "atc")); err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(filepath.Join(kit, "version.cfg"), []byte("toolkit_running_version=[7.7.0:8.1.RC1]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(fakeVariable, strings.Join(append([]string{"good"}, behaviour...), ","))
	w.kit = kit
	w.job = Job{
		Models: []string{w.model}, SoCs: []string{"Ascend910B3"}, CANN: kit, Cache: filepath.Join(t.TempDir(), "cache"),
		Version: "test", Command: []string{"npuctl", "compile"},
	}
	return w
}

// leftovers lists what is in the folder beside what should be.
func (w workshop) leftovers(t *testing.T, expected ...string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(w.folder)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"net.onnx": true}
	for _, e := range expected {
		want[e] = true
	}
	for _, e := range entries {
		if !want[e.Name()] {
			out = append(out, e.Name())
		}
		delete(want, e.Name())
	}
	delete(want, "net.onnx")
	for name := range want {
		out = append(out, "no "+name)
	}
	return out
}
