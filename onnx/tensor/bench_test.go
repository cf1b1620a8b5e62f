package tensor_test

import (
	"testing"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// million is the element count of the benchmarks, so that ns/op is ns an element
// times a million.
const million = 1 << 20

func benchmarkRaw(b *testing.B, typ tensor.Type, off int) {
	size, _ := typ.RawSize(million)
	raw := shifted(make([]byte, size), off)
	b.SetBytes(size)
	for b.Loop() {
		if _, err := tensor.FromRaw(typ, []int{million}, raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFromRaw(b *testing.B) {
	b.Run("aliased", func(b *testing.B) { benchmarkRaw(b, tensor.Float32, 0) })
	b.Run("misaligned", func(b *testing.B) { benchmarkRaw(b, tensor.Float32, 1) })
	b.Run("bool", func(b *testing.B) { benchmarkRaw(b, tensor.Bool, 0) })
	b.Run("int4", func(b *testing.B) { benchmarkRaw(b, tensor.Int4, 0) })
	b.Run("uint2", func(b *testing.B) { benchmarkRaw(b, tensor.Uint2, 0) })
}

func BenchmarkRawInt4(b *testing.B) {
	d := tensor.Of(make([]tensor.I4, million), million)
	b.SetBytes(d.Bytes())
	for b.Loop() {
		d.Raw()
	}
}

func BenchmarkHash(b *testing.B) {
	d := tensor.Of(make([]float32, million), million)
	b.SetBytes(d.Bytes())
	for b.Loop() {
		d.Hash()
	}
}

func BenchmarkHashScalar(b *testing.B) {
	d := tensor.Scalar(int64(7))
	for b.Loop() {
		d.Hash()
	}
}

func BenchmarkFloat32s(b *testing.B) {
	for _, typ := range smallFloats() {
		d, err := tensor.New(typ, million)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("from "+typ.String(), func(b *testing.B) {
			for b.Loop() {
				d.Float32s()
			}
		})
		values := make([]float32, million)
		for i := range values {
			values[i] = float32(i) / million
		}
		b.Run("to "+typ.String(), func(b *testing.B) {
			for b.Loop() {
				if _, err := tensor.FromFloat32s(typ, values, million); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkStrided(b *testing.B) {
	for _, bench := range []struct {
		name           string
		shape, strides []int
	}{
		{"transpose", []int{1024, 1024}, []int{1, 1024}},
		{"NCHW to NHWC", []int{16, 256, 256}, []int{256, 1, 4096}},
		{"swap heads", []int{16, 128, 512}, []int{512, 8192, 1}},
		{"expand", []int{1024, 1024}, []int{1, 0}},
		{"reverse", []int{1024, 1024}, []int{-1024, 1}},
	} {
		d := tensor.Of(make([]float32, million), million)
		offset := 0
		if bench.strides[0] < 0 {
			offset = -bench.strides[0] * (bench.shape[0] - 1)
		}
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(d.Bytes())
			for b.Loop() {
				if _, err := d.Strided(offset, bench.shape, bench.strides); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkBroadcastWalk(b *testing.B) {
	shape := []int{32, 64, 512}
	x, y := make([]float32, million), make([]float32, 64)
	out := make([]float32, million)
	for b.Loop() {
		walk, err := tensor.BroadcastWalk(shape, shape, []int{64, 1})
		if err != nil {
			b.Fatal(err)
		}
		n := walk.Len()
		walk.Range(0, walk.Runs(), func(run int, at []int) {
			row, to, bias := x[at[0]:][:n], out[run*n:][:n], y[at[1]]
			for i, v := range row {
				to[i] = v + bias
			}
		})
	}
}

func BenchmarkDataOfScalar(b *testing.B) {
	d := tensor.Scalar(int64(7))
	for b.Loop() {
		if tensor.Data[int64](d)[0] != 7 {
			b.Fatal("wrong element")
		}
	}
}
