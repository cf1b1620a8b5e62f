package measure

import (
	"context"
	"testing"

	"github.com/npuctl/npuctl/bench/load"
)

// What making, keeping and summing up a request costs, with a target that does nothing and
// eight clients: all that is measured has this much of the machine less.
func BenchmarkRun(b *testing.B) {
	nothing := load.TargetFunc(func(context.Context, load.Request) (load.Result, error) { return load.Result{}, nil })
	r, err := NewRecorder(Settings{Mode: Closed, Workers: 8, MaxCount: int64(b.N)})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	level, err := r.Run(b.Context(), nothing, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(level.Throughput, "requests/s")
	b.ReportMetric(1000*level.Latency.P50, "p50-µs")
	b.ReportMetric(1000*level.Latency.P99, "p99-µs")
}
