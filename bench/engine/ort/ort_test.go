package ort

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/bench/engine/enginetest"
	"github.com/npuctl/npuctl/internal/fault"
)

// opened is the engine, if ONNX Runtime is on this machine.
func opened(t testing.TB, o Options) engine.Engine {
	t.Helper()
	e, err := New(o)
	if fault.FamilyOf(err) == fault.Missing {
		t.Skip("SKIPPED, nothing was tested: ONNX Runtime is not on this machine; bring it by running .ci/fetch-onnxruntime")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func TestEngine(t *testing.T) {
	for name, o := range map[string]Options{
		"one session":                {Threads: 1},
		"a session for each":         {Threads: 2, SessionPerInstance: true, NoSpinning: true},
		"as the graph is written":    {Threads: 1, Level: "none"},
		"operators at the same time": {Threads: 1, InterOpThreads: 2, Level: "basic"},
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Run(t, enginetest.Suite{Engine: opened(t, o)})
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for want, o := range map[string]Options{
		"basic":   {Level: "basics"},
		"below 0": {Threads: -1},
	} {
		if _, err := New(o); fault.FamilyOf(err) != fault.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := opened(t, Options{}).Open(context.Background(), "model.om"); fault.FamilyOf(err) != fault.Usage {
		t.Errorf("a compiled model: %v", err)
	}
}

// A run like the one before allocates nothing in Go, whatever the size.
func BenchmarkRun(b *testing.B) {
	e := opened(b, Options{Threads: 1})
	for _, m := range enginetest.Models() {
		if m.Name != "arithmetic" {
			continue
		}
		opened, err := e.Open(context.Background(), enginetest.SaveONNX(b, m))
		if err != nil {
			b.Fatal(err)
		}
		defer opened.Close()
		i, err := opened.NewInstance(engine.Placement{})
		if err != nil {
			b.Fatal(err)
		}
		defer i.Close()
		for _, ctx := range []context.Context{context.Background(), b.Context()} {
			b.Run(fmt.Sprintf("can be stopped %t", ctx.Done() != nil), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					for at, p := range opened.Inputs() {
						if _, err := i.Input(at, p.Dims); err != nil {
							b.Fatal(err)
						}
					}
					if _, err := i.Run(ctx); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
