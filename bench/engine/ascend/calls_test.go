package ascend

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/internal/cannemu/cannemutest"
)

// stub compiles the library that does nothing.
func stub(t testing.TB) string {
	t.Helper()
	folder := t.TempDir()
	library := filepath.Join(folder, "libascendcl.so")
	flags := []string{"-std=gnu11", "-O2", "-fPIC", "-I", filepath.Join("..", "..", "..", "internal", "ascendcl")}
	for _, args := range [][]string{
		{"-c", "-DDEFAULTS", "testdata/stub.c", "-o", folder + "/defaults.o"},
		{"-c", "testdata/stub.c", "-o", folder + "/stub.o"},
		{"-shared", folder + "/stub.o", folder + "/defaults.o", "-o", library},
	} {
		if said, err := exec.Command("cc", append(args, flags...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
	}
	return library
}

// stubbed opens the engine on it, with a model of two gears.
func stubbed(t testing.TB) (engine.Engine, engine.Model) {
	t.Helper()
	emulator := cannemutest.Build(t) // it has the compiler, and skips where there is none
	path := emulator.Compile(t, batches, "--input_shape=x:-1,3;k:5", "--dynamic_batch_size=1,4")
	e, err := New(Options{Library: stub(t)})
	if err != nil && strings.Contains(err.Error(), "cgo") {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := e.Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	return e, m
}

// rows runs a batch.
func rows(t testing.TB, i engine.Instance, x, k []int64) {
	for n, shape := range [...][]int64{x, k} {
		if _, err := i.Input(n, shape); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := i.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// Which functions runs call, in which order: the gear is set when it changes, limits are
// those of the thread while it launches, and nothing is made but at the beginning, nor
// given back but at the end, in the order that AscendCL asks for.
func TestCalls(t *testing.T) {
	log := filepath.Join(t.TempDir(), "calls")
	t.Setenv("STUB_LOG", log)
	e, m := stubbed(t)
	i, err := m.NewInstance(engine.Placement{VectorCores: 8})
	if err != nil {
		t.Fatal(err)
	}
	rows(t, i, []int64{4, 3}, []int64{5})
	rows(t, i, []int64{4, 3}, []int64{5})
	rows(t, i, []int64{1, 3}, []int64{5})
	i.Close()
	m.Close()
	e.Close()
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	launch := `aclrtSetCurrentContext aclrtUseStreamResInCurrentThread`
	choose := ` aclmdlSetDynamicBatchSize aclmdlGetCurOutputDims aclmdlGetCurOutputDims`
	rest := ` aclrtRecordEvent aclrtMemcpyAsync aclrtMemcpyAsync aclrtRecordEvent aclmdlExecuteAsync aclrtRecordEvent aclrtMemcpyAsync aclrtMemcpyAsync
		aclrtRecordEvent aclrtUnuseStreamResInCurrentThread aclrtSynchronizeStreamWithTimeout aclrtEventElapsedTime aclrtEventElapsedTime aclrtEventElapsedTime `
	port := ` aclrtMalloc aclrtMallocHost aclCreateDataBuffer aclmdlAddDatasetBuffer`
	want := strings.Fields(`aclrtGetVersion aclrtSetDevice aclrtCreateContext aclrtSetCurrentContext aclrtGetSocName aclrtSetCurrentContext
		aclrtSetCurrentContext aclrtMalloc
		aclrtCreateContext aclrtCreateStream aclrtCreateEventExWithFlag aclrtCreateEventExWithFlag aclrtCreateEventExWithFlag aclrtCreateEventExWithFlag
		aclrtMalloc aclmdlLoadFromFileWithMem aclmdlCreateDesc aclmdlGetDesc aclmdlGetOutputNameByIndex aclmdlGetOutputNameByIndex
		aclrtSetCurrentContext aclmdlCreateDataset aclmdlCreateDataset` + port + port + ` aclrtMalloc aclCreateDataBuffer aclmdlAddDatasetBuffer` + port + port + `
		aclrtSetCurrentContext aclrtSetStreamResLimit ` +
		launch + choose + rest + launch + rest + launch + choose + rest + `
		aclrtSetCurrentContext aclDestroyDataBuffer aclDestroyDataBuffer aclDestroyDataBuffer aclDestroyDataBuffer aclDestroyDataBuffer
		aclmdlDestroyDataset aclmdlDestroyDataset aclmdlDestroyDesc aclmdlUnload
		aclrtFree aclrtFreeHost aclrtFree aclrtFreeHost aclrtFree aclrtFree aclrtFreeHost aclrtFree aclrtFreeHost aclrtFree
		aclrtDestroyEvent aclrtDestroyEvent aclrtDestroyEvent aclrtDestroyEvent aclrtDestroyStream aclrtDestroyContext
		aclrtSetCurrentContext aclrtFree
		aclrtSetCurrentContext aclrtDestroyContext aclrtResetDevice aclFinalize`)
	if diff := cmp.Diff(want, strings.Fields(string(data))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// BenchmarkOverhead is a run on a library that does nothing: the engine's own time.
func BenchmarkOverhead(b *testing.B) {
	e, m := stubbed(b)
	defer e.Close()
	defer m.Close()
	i, err := m.NewInstance(engine.Placement{})
	if err != nil {
		b.Fatal(err)
	}
	defer i.Close()
	x, k := []int64{4, 3}, []int64{5}
	b.ReportAllocs()
	for b.Loop() {
		rows(b, i, x, k)
	}
}
