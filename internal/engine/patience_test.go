package engine

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/text"
)

// Work that ends is waited for, and its result and failures are its own.
func TestHeldWorkThatEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var l leash
	if got, err := held(ctx, &l, func() (int, error) { return 7, nil }); got != 7 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	failure := errors.New("no")
	if _, err := held(ctx, &l, func() (int, error) { return 0, failure }); err != failure {
		t.Error(err)
	}
	func() {
		defer func() {
			if r := recover(); r != "oh" {
				t.Errorf("panic %v", r)
			}
		}()
		_, _ = held(ctx, &l, func() (int, error) { panic("oh") })
	}()
	cancel()
	stopped := func() (int, error) { <-ctx.Done(); return 0, ctx.Err() }
	if _, err := held(ctx, &l, stopped); !errors.Is(err, context.Canceled) || l.isLoose() {
		t.Errorf("%v, loose %v", err, l.isLoose())
	}
}

// Work that does not end is left behind, and what it holds stays open.
func TestHeldWorkThatDoesNotEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	release := make(chan bool)
	defer close(release)
	var l leash
	cancel()
	_, err := held(ctx, &l, func() (int, error) { <-release; return 0, nil })
	if !errors.Is(err, context.Canceled) || !l.isLoose() {
		t.Errorf("%v, loose %v", err, l.isLoose())
	}
}

// One node that takes long does not keep a run from being given up, in either engine.
func TestGivingUpInOneNode(t *testing.T) {
	const size = 4000
	path := filepath.Join(t.TempDir(), "m.onnx")
	if err := text.MustParse(t, `<ir_version: 8, opset_import: ["": 17]> (float[N,N] x) => (y) { y = MatMul (x, x) }`).Save(path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	x, err := tensor.Make(make([]float32, size*size), size, size)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range GraphEngines() {
		t.Run(name, func(t *testing.T) {
			e, err := Open(name, Options{})
			if err != nil {
				t.Skip(err)
			}
			defer e.Close()
			p, err := e.Load(context.Background(), Source{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			start := time.Now()
			if _, err := p.Run(ctx, map[string]eval.Value{"x": x}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v after %v", err, time.Since(start))
			}
			if took := time.Since(start); took > 10*patience {
				t.Errorf("given up after %v", took)
			}
		})
	}
}
