package generate_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/configgen/generate"
	"github.com/npuctl/npuctl/internal/cannemu/omwriter"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/findings"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/tensor/npy"
	"github.com/npuctl/npuctl/soc"
)

// layers is a model of which everything can be counted by hand: a weight of 16 numbers,
// and two results in between of N × 16, which are alive together while the second is
// made of the first.
const layers = `net (float[N,16] x) => (float[N,16] y) <float[16] w = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}>
	{ a = Add (x, w) b = Relu (a) y = Neg (b) }`

// Memory is the sum of its parts: weights once where a static graph shares them, else
// once a stream; work, inputs and outputs once a stream.
func TestMemory(t *testing.T) {
	for _, test := range []struct {
		name, graph string
		job         generate.Job
		want        generate.Memory
	}{
		{"half precision, which is the default", layers, generate.Job{MaxBatch: sized(4)}, generate.Memory{
			Sizes: "batch 4", Streams: 1, WeightBytes: 32, WeightCopies: 1, WorkBytes: 2 * 4 * 16 * 2, InputBytes: 256, OutputBytes: 256, TotalBytes: 32 + 256 + 512}},
		{"full precision on streams", layers, generate.Job{MaxBatch: sized(4), Precision: "origin", Streams: 3}, generate.Memory{
			Sizes: "batch 4", Streams: 3, WeightBytes: 64, WeightCopies: 3, WorkBytes: 512, InputBytes: 256, OutputBytes: 256, TotalBytes: 3 * (64 + 512 + 512)}},
		{"a static graph runs a batch one by one", layers, generate.Job{MaxBatch: sized(4), Static: true, Instances: 2}, generate.Memory{
			Sizes: "batch 4", Streams: 2, WeightBytes: 32, WeightCopies: 1, WorkBytes: 64, InputBytes: 256 + 64, OutputBytes: 256, TotalBytes: 32 + 2*(64+320+256)}},
		{"the largest gear", layers, generate.Job{Gears: "1,2", Instances: 4, Devices: []int{0, 1}}, generate.Memory{
			Sizes: "gear 2", Streams: 2, WeightBytes: 32, WeightCopies: 2, WorkBytes: 128, InputBytes: 128, OutputBytes: 128, TotalBytes: 2 * (32 + 384)}},
		{"open dims count as 1 and are told", lengths, generate.Job{}, generate.Memory{
			Sizes: "one request", Streams: 1, WeightCopies: 1, InputBytes: 16, OutputBytes: 16, TotalBytes: 32, Open: []string{"x[0] (N)", "x[1] (L)"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			job := test.job
			job.Model, job.Repository = model(t, test.graph), t.TempDir()
			r, err := job.Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			want := test.want
			want.Source = "graph"
			if want.Open == nil {
				want.Open = []string{}
			}
			if d := cmp.Diff(&want, r.Memory); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// What does not fit on the chip is found, and what hardly does.
func TestMemoryOfAChip(t *testing.T) {
	for _, test := range []struct {
		bytes int64
		want  []findings.Severity
	}{{1000, nil}, {860, []findings.Severity{findings.Warning}}, {700, []findings.Severity{findings.Error}}, {0, nil}} {
		chip := &soc.Chip{Name: "Ascend310P3", Family: soc.Family310P, MemoryBytes: test.bytes}
		job := generate.Job{Model: model(t, layers), Repository: t.TempDir(), MaxBatch: sized(4), Chip: chip}
		r, err := job.Run(context.Background())
		isTooMuch := test.bytes == 700
		if isTooMuch != (fault.FamilyOf(err) == fault.Goal) || !isTooMuch && err != nil || r.Written == isTooMuch {
			t.Fatalf("%d bytes: written %v, %v", test.bytes, r.Written, err)
		}
		if job.Force = true; isTooMuch {
			if r, err = job.Run(context.Background()); err != nil || !r.Written {
				t.Fatalf("with force: %v", err)
			}
		}
		var got []findings.Severity
		for _, f := range r.Findings {
			if f.Rule == "chip-memory" {
				got = append(got, f.Severity)
			}
		}
		if d := cmp.Diff(test.want, got); d != "" || r.Memory.ChipBytes != test.bytes {
			t.Errorf("%d bytes: %s", test.bytes, d)
		}
	}
	job := generate.Job{Model: model(t, layers), Repository: t.TempDir(), Backend: generate.ONNXRuntime}
	if r, err := job.Run(context.Background()); err != nil || r.Memory != nil {
		t.Errorf("memory of NPUs without one: %+v, %v", r, err)
	}
	job = generate.Job{Model: model(t, layers), Repository: t.TempDir(), Compiled: "missing.om"}
	if _, err := job.Run(context.Background()); fault.FamilyOf(err) != fault.Input || !strings.Contains(err.Error(), "--om") {
		t.Errorf("%v", err)
	}
}

// An open output dim that the operators give a formula for has a size where its names
// have sizes.
func TestMemoryOfFormulas(t *testing.T) {
	job := generate.Job{Model: model(t, longer), Repository: t.TempDir(), Gears: "1,8;2,8"}
	r, err := job.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Memory.Open) > 0 || r.Memory.OutputBytes != 2*16*4*4 {
		t.Errorf("%+v", r.Memory)
	}
}

// Without a chip, what fits on none is told all the same.
func TestMemoryBeyondEveryChip(t *testing.T) {
	job := generate.Job{Model: model(t, layers), Repository: t.TempDir(), MaxBatch: sized(2147483647)}
	r, err := job.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(r.Findings, func(f findings.Finding) bool {
		return f.Rule == "chip-memory" && f.Severity == findings.Warning && strings.Contains(f.Message, "the largest chip that is known has")
	}) {
		t.Errorf("%+v", r.Findings)
	}
}

// What the compiler of an .om planned is preferred; one of another chip is refused, and
// one of another model is told.
func TestMemoryOfCompiled(t *testing.T) {
	compiled := func(input string) string {
		path := filepath.Join(t.TempDir(), "net.om")
		definition := omwriter.ModelDef{Name: "net", Attributes: []omwriter.Attribute{
			{Name: "soc_version", Value: omwriter.Text("Ascend310P3")}, {Name: "memory_size", Value: omwriter.Int(1000)}, {Name: "weight_size", Value: omwriter.Int(64)}}}
		file := omwriter.File{Name: "net", Models: []omwriter.Model{omwriter.NewModel(omwriter.Parts{
			Signature: &omwriter.Signature{Inputs: []omwriter.Port{{Name: input, Dims: []int64{4, 16}}}}, ModelDef: &definition})}}
		if err := file.Save(path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	job := generate.Job{Model: model(t, layers), Repository: t.TempDir(), MaxBatch: sized(4), Compiled: compiled("x"), Chip: chip("310P3")}
	r, err := job.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if m := r.Memory; m.Source != "net.om" || m.WorkBytes != 1000 || m.WeightBytes != 64 || m.TotalBytes != 1000+64+512 || len(r.Notes) > 0 {
		t.Errorf("%+v, notes %v", m, r.Notes)
	}
	job.Chip = chip("910B3")
	if _, err := job.Run(context.Background()); fault.FamilyOf(err) != fault.Usage || !strings.Contains(err.Error(), "compiled for Ascend310P3") {
		t.Errorf("%v", err)
	}
	job = generate.Job{Model: model(t, layers), Repository: t.TempDir(), Compiled: compiled("picture")}
	if r, err := job.Run(context.Background()); err != nil || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "other inputs (picture)") {
		t.Errorf("%+v, %v", r, err)
	}
}

// Warm-up files go into the folder that the server reads: plain bytes as they are,
// arrays as plain bytes. One serves all batches; of gears with other sizes it serves
// those that it fits.
func TestWarmupData(t *testing.T) {
	folder := t.TempDir()
	array, err := tensor.Make(make([]float32, 3*8*8), 1, 3, 8, 8)
	if err != nil {
		t.Fatal(err)
	}
	var image bytes.Buffer
	if err := npy.WriteNPY(&image, array); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"image.npy": image.Bytes(), "words.bin": make([]byte, 32), "short.bin": make([]byte, 31), "other.npy": image.Bytes()} {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file := func(name string) string { return filepath.Join(folder, name) }

	job := generate.Job{Model: model(t, batched), Repository: t.TempDir(), Gears: "1,2,3", Warmup: &generate.Warmup{Data: map[string]string{"image": file("image.npy"), "words": file("words.bin")}}}
	r, err := job.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		file string
		size int64
	}{{"image.bin", 3 * 8 * 8 * 4}, {"words.bin", 32}} {
		info, err := os.Stat(filepath.Join(job.Repository, "net", "warmup", test.file))
		if err != nil || info.Size() != test.size {
			t.Errorf("%s: %v, %v", test.file, info, err)
		}
	}
	doc, err := configgen.Parse("", []byte(r.Text))
	if err != nil {
		t.Fatal(err)
	}
	warmups := doc.Config().Warmup
	if len(warmups) != 3 || warmups[2].BatchSize != 3 || *warmups[2].Inputs[0].Value.InputDataFile != "image.bin" {
		t.Errorf("%+v", warmups)
	}
	stands(t, r)
	if again, err := job.Run(context.Background()); err != nil || again.Written {
		t.Errorf("again: %+v, %v", again, err)
	}

	// The file's shape is that of open dims.
	job = generate.Job{Model: model(t, `net (float[N,C,8,8] image) => (float[N,C,8,8] y) { y = Relu (image) }`), Repository: t.TempDir(), Warmup: &generate.Warmup{Data: map[string]string{"image": file("image.npy")}}}
	r, err = job.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.Text, "dims: [ 1, 3, 8, 8 ]") || !strings.Contains(r.Text, `input_data_file: "image.bin"`) {
		t.Errorf("%s", r.Text)
	}

	for data, want := range map[string]string{"short.bin": "31 bytes", "missing.bin": "missing.bin", "other.npy": "TYPE_FP32"} {
		job := generate.Job{Model: model(t, batched), Repository: t.TempDir(), Warmup: &generate.Warmup{Data: map[string]string{"words": file(data)}}}
		if _, err := job.Run(context.Background()); fault.FamilyOf(err) != fault.Input || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", data, err)
		}
	}
}
