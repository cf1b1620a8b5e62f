package om_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/npuctl/npuctl/om"
)

// counting counts what is read of a file.
type counting struct {
	file  *os.File
	bytes atomic.Int64
}

func (c *counting) ReadAt(b []byte, offset int64) (int, error) {
	c.bytes.Add(int64(len(b)))
	return c.file.ReadAt(b, offset)
}

// sparse writes a container whose last partition has the given size, of which only
// the beginning is on disk.
func sparse(t testing.TB, c container, size int64) *os.File {
	t.Helper()
	b := c.bytes()
	last := len(c.models[0]) - 1
	entry := 256 + 4 + 12*last + 8
	grow := size - int64(len(b))
	lastBytes := int64(len(c.models[0][last].body)) + grow
	if c.wide {
		binary.LittleEndian.PutUint64(b[256+8+24*last+16:], uint64(lastBytes))
		binary.LittleEndian.PutUint64(b[184:], uint64(size-256))
	} else {
		binary.LittleEndian.PutUint32(b[entry:], uint32(lastBytes))
		binary.LittleEndian.PutUint32(b[76:], uint32(size-256))
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "large.om"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	if _, err := file.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
	return file
}

const gigabyte = 1 << 30

// largeFile is a file of a gigabyte, and how much of it a signature may take.
type largeFile struct {
	name string
	file container
	most int64 // bytes read
}

// largeFiles are one of today, and one that has its signature in its graph only: here of
// 500 operators with 40 kB of attributes each, and a copy of the tasks.
func largeFiles() []largeFile {
	operators := [][]byte{operator("x", "Data", attribute(10, "index", 0), tensor(33, 1, "ND", 12, 3))}
	for i := range 500 {
		operators = append(operators, operator(fmt.Sprint("conv", i), "Conv2D", attribute(10, "compile_info_json", string(make([]byte, 40000)))))
	}
	operators = append(operators, operator("out", "NetOutput", tensor(33, 1, "ND", 64, 3)))
	graph := modelDef("net", graph("main", operators...), attribute(11, "tasks", make([]byte, 2<<20)),
		attribute(11, "attr_model_out_nodes_name", []string{"y:0"}))
	stated := signature([]described{{name: "x", dims: []int64{3}, bytes: 12}}, []described{{name: "y:0", dims: []int64{3}, bytes: 12}})
	return []largeFile{
		{"of today", current(stated, graph, part{om.WeightsData, nil}), 10_000},
		{"of 2020", container{version: 0x10000000, models: [][]part{{graph, {om.WeightsData, nil}}}}, 1_000_000},
	}
}

// readSignature opens the file and reads its signature, and gives the bytes that took.
func (l largeFile) readSignature(t testing.TB, source *counting) int64 {
	source.bytes.Store(0)
	f, err := om.Read(source, gigabyte, "large.om")
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Signature()
	if err != nil || len(s.Inputs) != 1 || len(s.Outputs) != 1 || s.Outputs[0].Name != "y:0" {
		t.Fatalf("%+v, %v", s, err)
	}
	return source.bytes.Load()
}

// Of a gigabyte, hardly anything is read for the signature.
func TestLargeFilesAreHardlyRead(t *testing.T) {
	for _, large := range largeFiles() {
		t.Run(large.name, func(t *testing.T) {
			if n := large.readSignature(t, &counting{file: sparse(t, large.file, gigabyte)}); n > large.most {
				t.Errorf("%d bytes were read, more than %d", n, large.most)
			}
		})
	}
}

// How long the signature of a gigabyte takes, and how many bytes of it:
//
//	go test ./om -run '^$' -bench Gigabyte
func BenchmarkSignatureOfAGigabyte(b *testing.B) {
	for _, large := range largeFiles() {
		b.Run(large.name, func(b *testing.B) {
			source := &counting{file: sparse(b, large.file, gigabyte)}
			var n int64
			for b.Loop() {
				n = large.readSignature(b, source)
			}
			b.ReportMetric(float64(n), "read-bytes/op")
		})
	}
}

// A few bytes that announce much do not make anybody allocate it.
func TestAnnouncedSizesAllocateNothing(t *testing.T) {
	huge := protowire.AppendVarint(protowire.AppendTag(nil, 11, protowire.BytesType), 1<<40)
	for _, c := range []container{
		current(part{om.ModelDef, huge}),
		current(modelDef("n"), part{om.ModelInOutInfo, block(0, u32(nil, 1<<31))}),
		current(modelDef("n"), part{om.ModelInOutInfo, block(3, append(u32(nil, 1), u32(nil, 1<<31)...))}),
		current(modelDef("n"), part{om.TBEKernels, u32(u32(u32(nil, 0x5D776EFD), 1<<31), 1<<31)}),
	} {
		b := c.bytes()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		tryEverything(b)
		runtime.ReadMemStats(&after)
		allocated := after.TotalAlloc - before.TotalAlloc
		if allocated > 1<<20 {
			t.Errorf("%d bytes allocated for a file of %d", allocated, len(b))
		}
	}
}
