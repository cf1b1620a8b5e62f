package simulation

import (
	"io"
	"testing"
	"time"

	"github.com/npuctl/npuctl/bench/executor"
)

// BenchmarkRun is what a simulated request costs, and BenchmarkJSON one with its line.
func BenchmarkRun(b *testing.B) { benchmark(b, false) }

func BenchmarkJSON(b *testing.B) { benchmark(b, true) }

func benchmark(b *testing.B, keeps bool) {
	setup := on(0)
	setup.Policy = executor.Policy{MaxBatch: 8, Dynamic: true, Delay: 5 * time.Millisecond}
	r := simulated(b, Run{Setup: setup, Seed: 1, Keeps: keeps, Traffic: &Traffic{Rate: 1000, Poisson: true, Requests: b.N},
		Service: &Service{Fixed: 4 * time.Millisecond, Item: 400 * time.Microsecond}})
	if keeps {
		if err := (&Report{Summary: r}).WriteJSON(io.Discard, []Kind{{}}); err != nil {
			b.Fatal(err)
		}
	}
}
