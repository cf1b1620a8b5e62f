package cpu

import (
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// Memory grows with the shapes, stays where it is as long as it is large enough, begins at
// a line of the cache, and is never larger than an array may be.
func TestInputs(t *testing.T) {
	in := NewInputs([]engine.Port{{Name: "x", Type: tensor.Float32, Dims: []int64{-1, -1}}})
	var last *byte
	for _, step := range []struct {
		shape []int64
		stays bool
		fault string
	}{
		{[]int64{2, 3}, false, ""}, {[]int64{2, 3}, true, ""}, {[]int64{1, 2}, true, ""}, {[]int64{0, 2}, true, ""}, {[]int64{64, 3}, false, ""}, {[]int64{2, 3}, true, ""},
		{[]int64{2}, true, "does not fit -1x-1"}, {[]int64{-1, 2}, true, "does not fit"}, {[]int64{1 << 40, 1 << 40}, true, "too large"},
		{[]int64{math.MaxInt64, 2}, true, "too large"}, {[]int64{1 << 33, 1}, true, "too large"},
	} {
		b, err := in.Input(0, step.shape)
		if step.fault != "" {
			if err == nil || !strings.Contains(err.Error(), step.fault) || !strings.Contains(err.Error(), `"x"`) {
				t.Errorf("%v: %v", step.shape, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		at := unsafe.SliceData(b.Bytes)
		if uintptr(unsafe.Pointer(at))%alignment != 0 || len(b.Bytes) != cap(b.Bytes) {
			t.Errorf("%v: it begins at %p, and has room for %d bytes more", step.shape, at, cap(b.Bytes)-len(b.Bytes))
		}
		if (at == last) != step.stays {
			t.Errorf("%v: it moved: %t", step.shape, at != last)
		}
		last = at
	}
}

// What an input was last is told once.
func TestTake(t *testing.T) {
	in := NewInputs([]engine.Port{{Name: "x", Type: tensor.Uint8, Dims: []int64{-1}}, {Name: "o", Type: tensor.Uint8, Dims: []int64{1}, Optional: true}})
	for i, run := range []struct {
		x    int64 // 0 is not asked for
		o    bool
		want string
	}{
		{2, false, "x changed, o left"}, {2, false, "x same, o left"}, {2, true, "x same, o changed"}, {3, true, "x changed, o same"},
		{3, false, "x same, o left"}, {3, true, "x same, o changed"}, {0, true, `input "x" is missing`}, {3, true, "x same, o same"},
	} {
		if run.x > 0 {
			if _, err := in.Input(0, []int64{run.x}); err != nil {
				t.Fatal(err)
			}
		}
		if run.o {
			if _, err := in.Input(1, []int64{1}); err != nil {
				t.Fatal(err)
			}
		}
		var said []string
		err := in.Take(func(i int, _ engine.Buffer, changed bool) error {
			said = append(said, in.ports[i].Name+map[bool]string{true: " changed", false: " same"}[changed])
			return nil
		}, func(i int) error {
			said = append(said, in.ports[i].Name+" left")
			return nil
		})
		got := strings.Join(said, ", ")
		if err != nil {
			got = err.Error()
		}
		if got != run.want {
			t.Errorf("run %d: %s, want %s", i, got, run.want)
		}
	}
}
