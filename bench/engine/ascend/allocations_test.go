//go:build !asan && !race

package ascend

import (
	"context"
	"testing"

	"github.com/npuctl/npuctl/bench/engine"
)

// A run takes no memory of Go, with a context that may end or without, in one gear or
// several, and of open shape.
func TestAllocations(t *testing.T) {
	emulator, e := emulated(t, 0)
	living, cancel := context.WithCancel(context.Background())
	defer cancel()
	for name, path := range map[string]string{
		"gears": emulator.Compile(t, batches, "--input_shape=x:-1,3;k:5", "--dynamic_batch_size=1,4"),
		"open":  emulator.Compile(t, text, "--input_shape=x:-1,3;k:-1"),
	} {
		t.Run(name, func(t *testing.T) {
			m, err := e.Open(context.Background(), path)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			i, err := m.NewInstance(engine.Placement{})
			if err != nil {
				t.Fatal(err)
			}
			defer i.Close()
			shapes := [2][2][]int64{{{4, 3}, {5}}, {{1, 3}, {5}}}
			round := 0
			run := func() {
				for n, shape := range shapes[round%2] {
					if _, err := i.Input(n, shape); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := i.Run(living); err != nil {
					t.Fatal(err)
				}
				i.Output(0)
				i.Output(1)
				round++
			}
			if n := testing.AllocsPerRun(50, run); n > 0 {
				t.Errorf("%v allocations in a run", n)
			}
		})
	}
}
