package onnx_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/npuctl/npuctl/internal/onnxpb"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// chain makes a model of n weights of 4 MiB each, which all stand on one array.
func chain(n int) *onnx.Model {
	const width = 1024
	data := make([]float32, width*width)
	for i := range data {
		data[i] = float32(i%1000) / 1e6
	}
	m := onnx.NewModel(8, 13)
	g := m.Graph
	v := g.AddInput("x", onnx.TensorType(tensor.Float32, 1, width))
	w := onnx.NewTensor(tensor.Of(data, width, width))
	for i := range n {
		weight := g.AddInitializerTensor(fmt.Sprint("w", i), w)
		v = g.Add("MatMul", []*onnx.Value{v, weight}, []string{fmt.Sprint("v", i)}).Output(0)
	}
	g.AddOutput(v)
	return m
}

// Beyond 2 GiB a model cannot be one file: it is split by itself where nothing else
// was asked for, and refused where it was.
func TestModelThatGrewBeyondOneFile(t *testing.T) {
	m := chain(600)
	path := filepath.Join(t.TempDir(), "m.onnx")
	oneLine(t, m.Save(path, onnx.SaveOptions{ExternalData: onnx.InlineExternal}), "save it with external data")
	_, err := m.Encode()
	oneLine(t, err, "2 GiB")
	same(t, "files", list(t, filepath.Dir(path)), nil)

	save(t, m, path, onnx.KeepExternal)
	split := open(t, path)
	got, err := split.Graph.Find("w599").Initializer().Dense()
	want, _ := m.Graph.Find("w0").Initializer().Dense()
	if err != nil || !tensor.EqualBits(got, want) {
		t.Errorf("w599 is %v, %v", got, err)
	}
	// The weights are one array, so their bytes are written once.
	if info, err := os.Stat(path + ".data"); err != nil || info.Size() != 4<<20 {
		t.Errorf("the side file: %v, %v", info, err)
	}
}

// A model whose weights are far more than one message can hold, in a side file
// that is nothing but a hole.
func TestModelOfMoreThan2GiB(t *testing.T) {
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("needs a file of 2.5 GiB with holes")
	}
	folder := t.TempDir()
	const count, size = 640, 4 << 20
	p := &onnxpb.GraphProto{}
	for i := range count {
		p.Initializer = append(p.Initializer, &onnxpb.TensorProto{
			Name: str(fmt.Sprint("w", i)), DataType: num(int32(tensor.Float32)), Dims: []int64{size / 4}, DataLocation: onnxpb.TensorProto_EXTERNAL.Enum(),
			ExternalData: append(property("location", "w.bin"), property("offset", fmt.Sprint(i*size))...),
		})
	}
	path := filepath.Join(folder, "m.onnx")
	if err := os.WriteFile(path, marshal(t, &onnxpb.ModelProto{IrVersion: num(int64(8)), Graph: p}), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "w.bin"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(folder, "w.bin"), count*size); err != nil {
		t.Skipf("no file with holes: %v", err)
	}
	m := open(t, path)
	oneLine(t, m.Save(filepath.Join(folder, "inline.onnx"), onnx.SaveOptions{ExternalData: onnx.InlineExternal}), "more than the 2 GiB")
	beside := filepath.Join(folder, "beside.onnx")
	save(t, m, beside, onnx.KeepExternal)
	again := open(t, beside)
	if got := len(places(again)); got != count {
		t.Errorf("%d external tensors came back", got)
	}
	d, err := again.Graph.Find("w639").Initializer().Dense()
	if err != nil || d.Len() != size/4 {
		t.Errorf("the last weight: %v, %v", d, err)
	}
}

// BenchmarkSaveLarge saves a model of 400 MiB whose weights nothing touches, and
// copies its file as cp does. It prints how much longer saving takes, and how much
// memory is taken from the heap meanwhile.
func BenchmarkSaveLarge(b *testing.B) {
	folder := b.TempDir()
	path, out := filepath.Join(folder, "m.onnx"), filepath.Join(folder, "out.onnx")
	save(b, chain(100), path, onnx.InlineExternal)
	var copying, saving time.Duration
	var before, after runtime.MemStats
	var heap uint64
	b.ResetTimer()
	for range b.N {
		start := time.Now()
		copyFile(b, path, filepath.Join(folder, "copy.onnx"))
		copying += time.Since(start)
		os.Remove(filepath.Join(folder, "copy.onnx"))

		runtime.GC()
		runtime.ReadMemStats(&before)
		start = time.Now()
		m, err := onnx.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		save(b, m, out, onnx.KeepExternal)
		saving += time.Since(start)
		runtime.ReadMemStats(&after)
		heap = max(heap, after.TotalAlloc-before.TotalAlloc)
		m.Close()
		os.Remove(out) // replacing a file means waiting for the disk, which cp does not
	}
	b.ReportMetric(saving.Seconds()/copying.Seconds(), "×cp")
	b.ReportMetric(float64(heap)/(1<<20), "MiB-heap")
}

func copyFile(b *testing.B, from, to string) {
	b.Helper()
	src, err := os.Open(from)
	if err != nil {
		b.Fatal(err)
	}
	defer src.Close()
	dst, err := os.Create(to)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(dst, src); err != nil {
		b.Fatal(err)
	}
	if err := dst.Close(); err != nil {
		b.Fatal(err)
	}
}
