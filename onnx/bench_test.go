package onnx

import (
	"os"
	"testing"
)

// benchModel opens the model that NPUCTL_BENCH_MODEL names, such as an export of
// a Swin transformer: the figures mean something on graphs of thousands of nodes.
func benchModel(b *testing.B) *Model {
	path := os.Getenv("NPUCTL_BENCH_MODEL")
	if path == "" {
		b.Skip("NPUCTL_BENCH_MODEL names no model")
	}
	m, err := Open(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { m.Close() })
	b.ReportAllocs()
	return m
}

func BenchmarkOpen(b *testing.B) {
	path := benchModel(b).Path
	for b.Loop() {
		m, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		m.Close()
	}
}

func BenchmarkEncode(b *testing.B) {
	m := benchModel(b)
	for b.Loop() {
		if _, err := m.encode(nil, false, false); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSort(b *testing.B) {
	m := benchModel(b)
	for b.Loop() {
		if err := m.Graph.Sort(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	m := benchModel(b)
	if err := m.Graph.Sort(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := m.Check(); err != nil {
			b.Fatal(err)
		}
	}
}
