package benchmark

import (
	"context"
	"errors"
	"fmt"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/bench/measure"
	"github.com/npuctl/npuctl/bench/report"
	"github.com/npuctl/npuctl/internal/fault"
)

// compare measures the model under two configurations in turns.
func (b *bench) compare(ctx context.Context, e engine.Engine) (*report.Report, error) {
	if len(b.Compare) != 2 {
		return nil, fault.New(fault.Usage, "--compare takes two configurations, not %d", len(b.Compare)).With("as in --compare a.pbtxt,b.pbtxt")
	}
	clients := b.clients()
	if len(clients) > 1 {
		return nil, fault.New(fault.Usage, "--compare measures at one number of clients, not %d", len(clients)).With("give --concurrency one number")
	}
	var sides [2]*target
	for i, config := range b.Compare {
		at := b.places[0]
		at.config = config
		t, err := b.target(ctx, e, at, 0)
		if err != nil {
			return nil, err
		}
		defer t.close()
		if err := t.ready(clients[0]); err != nil {
			return nil, err
		}
		sides[i] = t
	}
	b.sum = sumOf(sides[0].file)
	if err := b.begin(); err != nil {
		return nil, err
	}
	c := measure.Compare{Rounds: b.Rounds, Clients: clients[0], Seed: b.Load.Seed,
		Progress: func(round, rounds int) { b.say("round %d of %d", round, rounds) }}
	found, err := c.Do(ctx, sides[0], sides[1])
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, fault.New(fault.Input, "--compare: %w", err)
	}
	r := report.New(b.result.Provenance, []*measure.Level{})
	r.Comparison = found
	b.result = r
	if err := b.finish(); err != nil {
		return nil, errors.Join(err, fmt.Errorf("write the report to %s", b.Out))
	}
	return b.result, nil
}
