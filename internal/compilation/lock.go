package compilation

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/npuctl/npuctl/internal/fault"
)

// lockEvery is how often a lock that somebody else has is tried.
const lockEvery = 100 * time.Millisecond

// lockFolder keeps other runs of npuctl from writing the constants that the results of a
// folder share, until unlock is called or this process ends. What a failed run has added
// there is told from what was there before by what came in between, so that two at a time
// would take each other's files away. Locks are held by the system: a killed process holds
// none, and no file is left. Where the system or the disk has no such locks there is none.
func lockFolder(ctx context.Context, folder string, waiting func()) (unlock func(), err error) {
	for told := false; ; {
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return nil, fault.New(fault.Missing, "make the folder of the result: %w", err).With("name a place that can be written with --output")
		}
		l, err := openLock(folder)
		if err != nil {
			return nil, fault.New(fault.Missing, "open the folder of the result: %w", err).With("name a place that can be written with --output")
		}
		for !l.try() {
			if !told {
				waiting()
				told = true
			}
			select {
			case <-ctx.Done():
				l.close()
				return nil, ctx.Err()
			case <-time.After(lockEvery):
			}
		}
		if l.isOf(folder) {
			return l.close, nil
		}
		l.close() // whoever had it took the folder away, which was empty
	}
}

// lockWeights locks the folder of a build's result.
func (b *build) lockWeights(ctx context.Context) (unlock func(), err error) {
	return lockFolder(ctx, filepath.Dir(b.target), func() {
		b.job.say("waiting for another npuctl that writes weights in %s", filepath.Dir(b.target))
	})
}
