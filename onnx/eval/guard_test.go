package eval

import (
	"errors"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/onnx/text"
)

// A kernel that goes wrong ends the run with an error, not the process: in its own
// goroutine and in those that share its work.
func TestKernelsThatPanic(t *testing.T) {
	for _, test := range []struct {
		name   string
		kernel Kernel
	}{
		{"in its own goroutine", func(*Call) error { panic("at sea") }},
		{"in a goroutine beside it", func(*Call) error {
			var w workers
			for i := range 8 {
				w.start(func() {
					if i%2 == 1 {
						panic("at sea")
					}
				})
			}
			w.wait()
			return nil
		}},
		{"in a loop that is shared out", func(c *Call) error {
			c.Parallel(1<<20, 1<<10, func(first, last int) { panic("at sea") })
			return nil
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			node := text.MustParse(t, `(float[2] x) => (y) { y = Relu (x) }`).Graph.Nodes()[0]
			c := &Call{Node: node, frame: &frame{run: &run{ctx: t.Context(), threads: 4}}}
			err := guarded(test.kernel, c)
			if !errors.Is(err, ErrFault) || !strings.Contains(err.Error(), "at sea") || !strings.Contains(err.Error(), "guard_test.go") {
				t.Errorf("error %v", err)
			}
		})
	}
}
