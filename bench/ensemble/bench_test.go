package ensemble

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/npuctl/npuctl/bench/engine/null"
)

// BenchmarkOverhead is what the way through the graph costs, with an engine that copies
// 16 bytes an item: of a model alone, and of a graph of three.
func BenchmarkOverhead(b *testing.B) {
	dir := repositoryOf(b, diamond())
	for _, name := range []string{"relu", "fork"} {
		for _, clients := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s/clients=%d", name, clients), func(b *testing.B) {
				e := opened(b, dir, name, null.New(null.Options{}))
				var left atomic.Int64
				left.Store(int64(b.N))
				var wait sync.WaitGroup
				b.ReportAllocs()
				b.ResetTimer()
				for range clients {
					c := e.NewCall()
					c.Inputs[0] = floats(1, 2, 3, 4)
					wait.Go(func() {
						for left.Add(-1) >= 0 {
							if err := e.Do(context.Background(), c); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wait.Wait()
			})
		}
	}
}
