package ref

import (
	"testing"

	"github.com/npuctl/npuctl/bench/engine/enginetest"
)

func TestEngine(t *testing.T) {
	enginetest.Run(t, enginetest.Suite{Engine: New(Options{Threads: 1}), Allocations: -1})
}
